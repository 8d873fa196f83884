"""FIRE: a network of the distance as a share of the way."""

import mpmath
import numpy as np

from proofs.relative.fire import definition, hidden
from proofs.vectors import *

SOURCES = ("Li et al., Functional Interpolation for Relative Positions, arXiv 2310.04418",)

CONVENTIONS = {
    "axes": "a bias is (heads, n_query, n_key) or (batch, heads, n_query, n_key); w_1, b_1 (width,), w_2 (width, heads)",
    "op bias": "w_2 relu(w_1 x + b_1) + b_2 with x = ln(1 + c |i - j|) / (ln(1 + c max(i, threshold)) + eps)",
}
REJECTED = (("fire/bias/h3-c0.125/square", "c-0", {"c": 0.0}, "range", "Every distance would be 0."),)
WIDTH, HEADS = 6, 3
LAYERS = {"w_1": painted((WIDTH,), 1), "b_1": painted((WIDTH,), 2) / 4}
LAYERS |= {"w_2": painted((WIDTH, HEADS), 4), "b_2": painted((HEADS,), 6)}


def vectors():
    every = "no_threshold always_the_threshold not_normalized no_logarithm share_of_the_key no_relu no_output_bias"
    every += " counted_from_one gelu gelu_by_tanh"
    yield _bias("square", range(6), range(6), every)
    for probe in BY_DISTANCE:
        yield _bias(*probe)


def _bias(probe, queries, keys, kills, c=0.125, threshold=3.0, eps=2.0**-20):
    queries, keys = np.array(queries), np.array(keys)
    given = mpmath.mpf(c), mpmath.mpf(threshold), mpmath.mpf(eps)
    cell = np.vectorize(lambda i, j: definition(mpmath.mpf(float(i)), mpmath.mpf(float(j)), *given, mpmath), otypes=[object])
    x = cell(queries[..., :, None], keys[..., None, :])
    w_1, b_1, w_2, b_2 = map(numbers, LAYERS.values())
    layer = np.vectorize(hidden, otypes=[object])(x[..., None], w_1, b_1)
    # 1 + c t is rounded, and so is its logarithm: x is off by two units of 1 over its denominator, and three of its own
    below = np.vectorize(lambda i: mpmath.log1p(c * max(float(i), threshold)), otypes=[object])(queries)[..., :, None, None]
    off = terms(2, 1 / below * abs(w_1), bits=24) + terms(3, w_1 * x[..., None], bits=24)
    own = terms(2, w_1 * x[..., None], bits=24) + terms(1, b_1 + 0 * x[..., None], bits=24)
    heads = lambda y: np.moveaxis(y, -1, -3)
    id, params = f"fire/bias/h{HEADS}-c{c}/{probe}", {"c": c, "threshold": threshold, "eps": eps}
    tensors = {"queries": queries, "keys": keys, **LAYERS}
    cond = heads((off + own) @ abs(w_2) + terms(WIDTH + 1, layer @ abs(w_2) + abs(b_2), bits=24))
    # x is made in float32 by the released code
    return case(id, "bias", params, tensors, heads(layer @ w_2 + b_2), cond, kills, models=("f64", "f32"))
