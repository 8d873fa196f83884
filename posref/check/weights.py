"""Weights: what was added to the scores of an attention, and where two parts of its keys are merged, from its output.

With as many features of v as keys, or more, the weights of an output follow from it. Their logarithm, less that of the right
weights, is what the scores have more, up to a constant per row. If texts with other contents have the same, it is a bias.
If it is one constant for the first keys and another one for the others, two parts were merged with wrong shares.
"""

from typing import NamedTuple

import numpy as np

from posref.check.engine import Question

REMEDY = "Compare the bias with the one asked for, and whether this attention has one at all."
SHARES = {  # by what power of the right share of a part its share is too large
    np.log2(np.e) - 1: "the logsumexp of a part has base 2, and exp is taken of it",
    np.log(2) - 1: "the logsumexp of a part has base e, and 2 to its power is taken",
    -1.0: "the parts have equal shares: their logsumexps are not used",
}
MERGE = "Weigh the output of each part by the exponential of its logsumexp, in one base, less the largest of them."
ROWS = 3  # rows with both parts: fewer are met by any law
SAME = 2.0**-12  # in units of the logarithm, of all keys by their weight
SEEN = 2.0**-5  # of all weights of a row: what is much less says nothing about its key


class Solved(NamedTuple):
    """The weights of an output, the right ones, and how far rounding may move one: `(batch, heads, n_query, n_key)`."""

    theirs: np.ndarray
    right: np.ndarray
    off: np.ndarray


def _solved(question: Question, got: np.ndarray) -> Solved | None:
    """The weights, where the width of v is at least the number of keys."""
    v = np.asarray(question.a.get("v", 0.0))
    if "attention" not in question.op.tags or not v.ndim == got.ndim == 4 or not np.isfinite(got).all():
        return None
    if not v.shape[2] <= v.shape[3] == got.shape[3] or got.shape[1] % v.shape[1]:
        return None
    inverse = np.linalg.pinv(np.repeat(v, got.shape[1] // v.shape[1], axis=1))
    off = question.tolerance[question.models[-1]] @ np.abs(inverse)
    return Solved(got @ inverse, question.right @ inverse, off)


def merged(question: Question, got: np.ndarray) -> tuple[str, str] | None:
    """That the keys before one place, and those from there on, have the right weights but for a factor per row; and its law."""
    solved = _solved(question, got)
    if solved is None or (np.abs(solved.theirs) > 4 * solved.off)[solved.right < 2.0**-40].any():
        return None
    least = np.minimum(solved.theirs, solved.right)
    unsure = np.where(least > 0, 4 * solved.off / np.maximum(least, 2.0**-60), np.inf)
    clear = unsure < 2.0**-8
    with np.errstate(all="ignore"):
        more = np.where(clear, np.log(solved.theirs / solved.right), np.nan)
    n = more.shape[-1]
    found = [each for cut in range(2, n - 1) if (each := _cut(more, np.where(clear, unsure, 0), solved.right, cut))]
    return found[0] if len(found) == 1 else None


def _cut(more: np.ndarray, unsure: np.ndarray, right: np.ndarray, cut: int) -> tuple[str, str] | None:
    """The words for the parts before and from `cut` on, and a law; nothing where a part has several factors in a row."""
    parts = [np.ma.masked_invalid(x) for x in (more[..., :cut], more[..., cut:])]
    most = [np.maximum(x.max(axis=-1), 2.0**-20) for x in (unsure[..., :cut], unsure[..., cut:])]
    if any((np.ma.filled(np.ma.ptp(x, axis=-1), 0) > 2 * each).any() for x, each in zip(parts, most, strict=True)):
        return None
    apart = parts[0].mean(axis=-1) - parts[1].mean(axis=-1)
    both = ~np.ma.getmaskarray(apart)
    y, error = np.asarray(apart)[both], (most[0] + most[1])[both]
    if (np.abs(y) > 4 * error).sum() < ROWS:
        return None
    x = np.log(right[..., :cut].sum(axis=-1)[both] / right[..., cut:].sum(axis=-1)[both])
    laws = [words for power, words in SHARES.items() if (np.abs(y - power * x) <= 2 * error + 2.0**-10).all()]
    words = f"keys 0 to {cut - 1} and keys {cut} to {more.shape[-1] - 1}, each part right in itself, have wrong shares"
    return words, laws[0] if len(laws) == 1 else ""


def added(question: Question, got: np.ndarray) -> str:
    """That a bias is added to the scores, which all texts share, by head, query and key; nothing where it is not so."""
    solved = _solved(question, got)
    if solved is None or got.shape[0] == 1:
        return ""
    theirs, right, _ = solved
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
