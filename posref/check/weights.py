"""Weights: what was added to the scores of an attention, from its output.

With as many features of v as keys, or more, the weights of an output follow from it. Their logarithm, less that of the right
weights, is what the scores have more, up to a constant per row. If texts with other contents have the same, it is a bias.
"""

import numpy as np

from posref.check.engine import Question

REMEDY = "Compare the bias with the one asked for, and whether this attention has one at all."
SAME = 2.0**-12  # in units of the logarithm, of all keys by their weight
SEEN = 2.0**-5  # of all weights of a row: what is much less says nothing about its key


def added(question: Question, got: np.ndarray) -> str:
    """That a bias is added to the scores, which all texts share, by head, query and key; nothing where it is not so."""
    v = np.asarray(question.a.get("v", 0.0))
    if "attention" not in question.op.tags or not v.ndim == got.ndim == 4 or v.shape[0] == 1:
        return ""
    if not v.shape[2] <= v.shape[3] == got.shape[3] or got.shape[1] % v.shape[1]:
        return ""
    inverse = np.linalg.pinv(np.repeat(v, got.shape[1] // v.shape[1], axis=1))
    theirs, right = got @ inverse, question.right @ inverse
    if np.abs(theirs[right < 2.0**-40]).max(initial=0) > SAME or (theirs < 2.0**-20 * right)[right > SAME].any():
        return ""  # other keys are masked
    both = np.minimum(theirs, right).clip(0)
    with np.errstate(all="ignore"):
        more = np.where(both > 0, np.log(theirs) - np.log(right), 0)
    more = more - _mean(more - more[0], np.minimum(both, both[0]), -1)  # each row has a constant of its own
    bias = _mean(more, both, 0)[0]
    off = _mean(np.abs(more - bias), both, -1)
    seen = both.max(axis=0) > SEEN
    differ = np.where(seen, bias, -np.inf).max(axis=-1) - np.where(seen, bias, np.inf).min(axis=-1)
    if off.max() > SAME or differ.max() < 0.1:
        return ""
    return _words(bias)


def _mean(x: np.ndarray, weights: np.ndarray, axis: int) -> np.ndarray:
    return (weights * x).sum(axis=axis, keepdims=True) / weights.sum(axis=axis, keepdims=True).clip(2.0**-60)


def _words(bias: np.ndarray) -> str:
    low, high = bias[0].min(), bias[0].max()
    words = f"a bias is added, the same in all texts: within a row of head 0 it differs by up to {high - low:.3g}"
    steps, near = np.diff(bias, axis=-1), SAME * max(1, np.abs(bias).max())
    offsets = np.arange(1, bias.shape[2]) - np.arange(bias.shape[1])[:, None]
    if np.ptp(steps, axis=1).max() <= near:
        return f"{words}; it depends on the key alone"
    if max(np.ptp(steps[:, offsets == each], axis=1).max() for each in np.unique(offsets)) <= near:
        return f"{words}; it depends on key minus query alone, as a relative bias does"
    return words
