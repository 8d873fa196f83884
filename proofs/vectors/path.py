"""PaTH: the product of the reflections between a key and a query."""

import mpmath
import numpy as np

from proofs.vectors import *

SOURCES = ("Yang et al., PaTH Attention, arXiv 2505.16381",)

CONVENTIONS = {
    "axes": "q, k, w (.., heads, n, d), beta (.., heads, n), scores (.., heads, n, n), 0 for keys after the query",
    "w": "given as it is: of another length than 1 where an exact one is none",
    "op scores": "scale q_i . H_i .. H_(j+1) k_j with H_t = 1 - beta_t w_t w_t^T",
}
REJECTED = (("path/scores/h2-d3/painted", "beta", {"beta": cut}, "shape", "A number for every token."),)

EVERY = "own_reflection_of_the_key reflections_added half_beta query_alone no_reflections scale_ignored scale_squared"


def vectors():
    yield _scores("painted", painted((2, 5, 3), 4) / 4, abs(painted((2, 5), 6)))
    axes = np.eye(3)[np.array([[0, 1, 2, 1, 0], [2, 0, 0, 1, 2]])]
    yield _scores("units", axes, np.array([[2, 1, 0.5, 2, 1.5], [1, 2, 2, 0.25, 1]]))
    more = "keys_of_the_first_batch_row"
    yield _scores("batch", painted((2, 2, 3, 3), 6) / 4, abs(painted((2, 2, 3), 4)), more)


def _scores(probe, w, beta, kills="", scale=0.5):
    q, k, shape = painted(w.shape, 1), painted(w.shape, 2), (*beta.shape, beta.shape[-1])
    expected, amp = np.zeros(shape, dtype=object), np.zeros(shape, dtype=object)
    for *at, i, j in np.ndindex(*shape):
        if j > i:
            continue
        key, most = ([mpmath.mpf(f(x)) for x in k[(*at, j)]] for f in (float, abs))
        for t in range(j + 1, i + 1):
            along, b = sum(a * mpmath.mpf(x) for a, x in zip(key, w[(*at, t)], strict=True)), mpmath.mpf(beta[(*at, t)])
            key = [a - b * along * mpmath.mpf(x) for a, x in zip(key, w[(*at, t)], strict=True)]
            largest = sum(a * abs(mpmath.mpf(x)) for a, x in zip(most, w[(*at, t)], strict=True))
            most = [a + b * largest * abs(mpmath.mpf(x)) for a, x in zip(most, w[(*at, t)], strict=True)]
        expected[(*at, i, j)] = scale * sum(mpmath.mpf(x) * a for x, a in zip(q[(*at, i)], key, strict=True))
        size = scale * sum(abs(mpmath.mpf(x)) * a for x, a in zip(q[(*at, i)], most, strict=True))
        # a step: a sum of d products, two more factors, a difference; then d products of the score and the scale
        amp[(*at, i, j)] = (i - j) * terms(6, size, bits=24) + terms(4, size, bits=24)
    id, params = f"path/scores/h2-d3/{probe}", {"scale": scale}
    tensors, ignore = {"q": q, "k": k, "w": w, "beta": beta}, np.triu(np.ones(shape, dtype=bool), 1)
    # keys in a cache are multiplied again for every new token, which 16 bits do not stand
    return case(id, "scores", params, tensors, expected, amp, f"{EVERY} {kills}", ignore=ignore, models=("f64", "f32"))
