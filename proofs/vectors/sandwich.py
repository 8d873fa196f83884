"""Sandwich: the inner product of two sinusoids as a bias."""

import mpmath
import numpy as np

from proofs.relative.sandwich import definition, frequency
from proofs.vectors import *

SOURCES = ("Chi et al., arXiv 2212.10356",)

CONVENTIONS = {
    "axes": "a bias is (heads, n_query, n_key) or (batch, heads, n_query, n_key)",
    "frequencies": "base^(-2t/dim), t = 1 .. dim/2",
    "slopes": "heads / (8 a), a = 1 .. heads",
    "op bias": "from positions",
}
REJECTED = (("sandwich/bias/h3-d6/square", "odd-dim", {"dim": 5}, "range", "Frequencies belong to pairs of features."),)


def vectors():
    every = "sign_of_the_bias frequency_one slopes_multiplied slopes_of_alibi heads_from_zero average no_constant"
    yield _bias("square", range(4), range(5), every)
    for probe, queries, keys, wrong in BY_DISTANCE:
        yield _bias(probe, queries, keys, wrong + " wrong_base" * (probe == "padded"))


def _bias(probe, queries, keys, kills, heads=3, dim=6, base=100.0):
    queries, keys = np.array(queries), np.array(keys)
    distance = abs(keys[..., None, None, :] - queries[..., None, :, None])
    w = [frequency(t, dim, mpmath.mpf(base), mpmath) for t in range(1, dim // 2 + 1)]
    slopes = np.array([mpmath.mpf(heads) / (8 * a) for a in range(1, heads + 1)], dtype=object)[:, None, None]
    at = lambda f: np.vectorize(f, otypes=[object])
    angles = at(lambda t, m: m * sum(mpmath.mpf(float(t)) * each * growth(each) for each in w))
    id, params = f"sandwich/bias/h{heads}-d{dim}/{probe}", {"heads": heads, "dim": dim, "base": base}
    expected = at(lambda t, m: definition(mpmath.mpf(float(t)), w, m, mpmath))(distance, slopes)
    # roundings: a cosine, the 1, their sum, the slope, the product
    cond = {"amp": terms(2 * len(w) + 3, slopes * 2 * len(w) + 0 * distance), "phase": angles(distance, slopes)}
    # of cosines near 1, minus 1, few digits are left in 16 bits
    return case(id, "bias", params, {"queries": queries, "keys": keys}, expected, cond, kills, models=("f64", "f32"))
