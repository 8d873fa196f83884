"""KERPLE: the logarithm and the power of a distance."""

import mpmath
import numpy as np

from proofs.relative.kerple import definition
from proofs.vectors import *

SOURCES = ("Chi et al., KERPLE, arXiv 2205.09921", "github.com/chijames/KERPLE, megatron/mpu/layers.py")

CONVENTIONS = {
    "axes": "a bias is (heads, n_query, n_key) or (batch, heads, n_query, n_key); p and a have an entry per head",
    "form": "log: -p ln(1 + a |j - i|); power: -a |j - i|^p",
    "op bias": "from positions",
}
REJECTED = (
    ("kerple/power/h3/square", "no-form", {"form": None}, "missing", "A logarithm or a power."),
    ("kerple/power/h3/square", "power", {"p": [0.75, 1.5, 2.5]}, "range", "A power above 2 is no kernel."),
)
P, A = np.array([0.75, 1.5, 1.25]), np.array([0.5, 0.25, 1.75])


def vectors():
    every = "sign_of_the_bias numbers_exchanged other_form a_of_zero alibi no_one_inside"
    for form in ("log", "power"):
        yield _bias(form, "square", range(5), range(5), f"{every} past_alone")
        for probe in BY_DISTANCE:
            yield _bias(form, *probe)


def _bias(form, probe, queries, keys, kills):
    queries, keys = np.array(queries), np.array(keys)
    distance = abs(keys[..., None, None, :] - queries[..., None, :, None])
    p, a = (np.array([*map(mpmath.mpf, x)], dtype=object)[:, None, None] for x in (P, A))
    at = np.vectorize(lambda t, p, a: definition(mpmath.mpf(float(t)), p, a, form, mpmath), otypes=[object])
    expected = at(distance, p, a)
    # log: two roundings inside are a relative error of 1 + a t, and so p times that; power: an exponent
    steps = np.vectorize(lambda t, p: 3 * p * abs(mpmath.log(float(t) or 1)) + 4, otypes=[object])
    amp = terms(2, p + 0 * expected) + terms(4, expected)
    power = {"amp": terms(2, expected), "phase": abs(expected) * steps(distance, p)}
    tensors, cond = {"queries": queries, "keys": keys, "p": P, "a": A}, {"amp": amp} if form == "log" else power
    # float16 ends at 65504
    models = tuple(name for name in MODELS if probe != "far" or not name.startswith("f16"))
    return case(f"kerple/{form}/h3/{probe}", "bias", {"form": form}, tensors, expected, cond, kills, models=models)
