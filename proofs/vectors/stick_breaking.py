"""Stick-breaking attention: shares of what later keys have left."""

import mpmath
import numpy as np

from proofs.relative.stick_breaking import definition
from proofs.vectors import *

SOURCES = ("Tan et al., Scaling Stick-Breaking Attention, arXiv 2410.17980",)

CONVENTIONS = {
    "axes": "scores are (batch, heads, n_query, n_key), scaled; seen broadcasts to them",
    "seen": "the mask as integers: 1 may take, 0 may not; the last key that is seen takes first",
    "op remainder": "what no key took, one number per query",
    "op weights": "what each key took",
}
REJECTED = (("stick_breaking/weights/h2/decode", "mask", {"seen": cut}, "shape", "A mask has a column for every key."),)


def vectors():
    strict = np.tri(4, 4, -1, dtype=int)
    yield _weights("strict", strict, "own_share_left masked_keys_break")
    yield _weights("current", np.tri(4, 4, dtype=int), "own_share_left masked_keys_break normalized")
    yield _weights("decode", np.array([[0, 1, 1, 0], [0, 0, 1, 1]]), "own_share_left masked_keys_break mask_left_aligned")
    holes = np.array([[1, 0, 0, 1], [0, 1, 1, 1], [0, 1, 1, 1]])
    yield _weights("holes", holes, "masked_keys_break")
    yield _weights("large", holes, "own_share_left", LARGE)
    yield _remainder(strict)
    yield _remainder(holes, "holes")
    yield _remainder(holes, "large", LARGE)


LARGE = np.array([[1000.0, -1000, 80, -80], [1000, 72, -1000, 0.5], [1000, -72, -1000, 0.5]])  # exp overflows


def _scores(seen, given=None):
    return painted((2, 2, *seen.shape), 1) if given is None else np.broadcast_to(given, (1, 2, *seen.shape)).copy()


def _rows(scores, seen):
    exact = numbers(scores)
    at = np.broadcast_to(seen != 0, scores.shape)
    return [(where, *definition(exact[where], at[where], mpmath)) for where in np.ndindex(scores.shape[:-1])]


def _weights(probe, seen, kills, given=None):
    scores = _scores(seen, given)
    expected, amp = np.zeros(scores.shape, object), np.zeros(scores.shape, object)
    for where, weights, _ in _rows(scores, seen):
        expected[where], amp[where] = weights, _sensitivity(weights, scores[where], seen[where[-1]])
    id, kills = f"stick_breaking/weights/h2/{probe}", f"softmax from_the_far_end never_broken mask_inverted {kills}"
    models = tuple(MODELS) if given is None else ("f64", "f32")
    return case(id, "weights", {}, {"scores": scores, "seen": seen}, expected, amp, kills, models=models)


def _sensitivity(weights, scores, seen):
    """A logarithm of a share left is off by 3 roundings of ln 2 and two of its own; a sum of them is an exponent."""
    size = [mpmath.log1p(mpmath.exp(z)) + 1 if s else mpmath.mpf(0) for z, s in zip(scores, seen, strict=True)]
    return [terms(5, w * (sum(size[j:]) + abs(scores[j]) + 1)) for j, w in enumerate(weights)]


def _remainder(seen, probe="strict", given=None):
    scores = _scores(seen, given)
    rows = _rows(scores, seen)
    shape = scores.shape[:-1]
    expected = np.array([left for _, _, left in rows], dtype=object).reshape(shape)
    amp = [_sensitivity([left], [*scores[where]], seen[where[-1]])[0] for where, _, left in rows]
    id, tensors = f"stick_breaking/remainder/h2/{probe}", {"scores": scores, "seen": seen}
    cond, models = np.array(amp, dtype=object).reshape(shape), tuple(MODELS) if given is None else ("f64", "f32")
    return case(id, "remainder", {}, tensors, expected, cond, "remainder_of_the_last mask_inverted", models=models)
