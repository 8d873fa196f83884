"""Weights: what an attention's output shows about its weights: what was added to the scores, or where two parts were merged.

If v has as many features as keys, or more, the weights follow from the output. Their logarithm, minus that of the right
weights, is what was added to the scores, up to a constant per row. If it is the same for texts with other contents, it is a
bias. If it is one constant for the first keys and another for the rest, two parts were merged with wrong shares.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from posref.check.engine import Question
from posref.ops import Arguments

REMEDY = "Compare the bias with the one asked for, and whether this attention has one at all."
SHARES = {  # by what power of the right share of a part its share is too large
    np.log2(np.e) - 1: "the logsumexp of a part has base 2, and exp is taken of it",
    np.log(2) - 1: "the logsumexp of a part has base e, and 2 to its power is taken",
    -1.0: "the parts have equal shares: their logsumexps are not used",
}
MERGE = "Weigh the output of each part by the exponential of its logsumexp, in one base, less the largest of them."
LAWS = {
    "weights_not_normalized": ("the weights of a row are right but for a factor", "Divide the weights of a row by their sum."),
    "weights_cut": (
        "the smallest weights of a row are left out, and the others keep what they have",
        "Divide the weights that are kept by their sum, or choose keys before the softmax.",
    ),
}
ROWS = 3  # rows with both parts: fewer are met by any law
SAME = 2.0**-12  # in units of the logarithm, of all keys by their weight
ENDS = (np.min, np.inf), (np.max, -np.inf)
SEEN = 2.0**-5  # of all weights of a row: what is much less says nothing about its key


class Solved(NamedTuple):
    """The weights of an output, the right weights, and how far rounding may move each: `(batch, heads, n_query, n_key)`."""

    theirs: np.ndarray
    right: np.ndarray
    off: np.ndarray


def _solved(question: Question, got: np.ndarray) -> Solved | None:
    """The weights, if v has at least as many features as there are keys; else None."""
    v = np.asarray(question.a.get("v", 0.0))
    if "attention" not in question.op.tags or not v.ndim == got.ndim == 4 or not np.isfinite(got).all():
        return None
    if not v.shape[2] <= v.shape[3] == got.shape[3] or got.shape[1] % v.shape[1]:
        return None
    inverse = np.linalg.pinv(np.repeat(v, got.shape[1] // v.shape[1], axis=1))
    off = question.tolerance[question.models[-1]] @ np.abs(inverse)
    return Solved(got @ inverse, question.right @ inverse, off)


def facts(question: Question, got: np.ndarray, call: Callable[[Arguments], np.ndarray] | None = None) -> tuple[str, str]:
    """What is true of the weights of an output and not of the right ones, and the name of their law if that is known.

    With `call`, the function is called with unit vectors as values, so that each output is weights.
    """
    solved = _solved(question, got) if call is None else _asked(question, got, call)
    if solved is None or not np.isfinite(solved.theirs).all() or (solved.right < -solved.off).any():
        return "", ""
    theirs, right, off = solved.theirs, solved.right, 4 * solved.off + SEEN**2
    seen, meant = np.abs(theirs) > off, right > off
    more, less, both = seen & (right < 2.0**-40), meant & ~seen, seen & meant
    sums, others = theirs.sum(axis=-1), right.sum(axis=-1)
    unlike = np.abs(sums - others) > off.sum(axis=-1)
    with np.errstate(all="ignore"):
        low, high = (reduced(theirs / right, axis=-1, initial=end, where=both) for reduced, end in ENDS)
        close = 1 + (off / np.minimum(theirs, right)).max(axis=-1, initial=0, where=both)
    factor = (both.sum(axis=-1) > 1).any() and bool((high <= low * close).all())
    alone = factor and bool((np.maximum(high, 1 / low) <= close)[both.any(axis=-1)].all())
    said = [
        _first(more, right, "sees key") * bool(more.any()),
        _first(less, right, "gives no weight to key") * bool(less.any()),
        "some weights are negative" * bool((theirs < -off).any()),
    ]
    if unlike.any():
        at = np.unravel_index(int(np.argmax(np.abs(sums - others))), sums.shape)
        said.append(f"the weights of {unlike.sum()} of {unlike.size} rows have another sum, of {_row(at)} {sums[at]:.4g}")
        said[-1] += f" instead of {others[at]:.4g}"
    if factor:
        said.append(f"all other weights are right{', but for a factor per row' * (not alone)}")
    elif np.ptp(np.ma.masked_array(theirs, ~seen), axis=-1).max() <= off.max():
        said.append("all keys that a row sees have one weight")
    smallest = (right.max(axis=-1, initial=0, where=less) <= right.min(axis=-1, initial=np.inf, where=both)).all()
    law = ""
    if factor and unlike.any() and not more.any():
        law = "weights_not_normalized" * (not less.any()) or "weights_cut" * bool(alone and smallest)
    return "; ".join(filter(None, said)) if unlike.any() or any(said[:-1]) else "", law


def _asked(question: Question, got: np.ndarray, call: Callable[[Arguments], np.ndarray]) -> Solved | None:
    """The weights, as the outputs for values that are unit vectors; None if they do not give the output from the values."""
    v, op = np.asarray(question.a.get("v", 0.0)), question.op
    if "attention" not in op.tags or not v.ndim == got.ndim == 4 or v.shape[3] != got.shape[3] or got.shape[1] % v.shape[1]:
        return None
    parts = []
    for first in range(0, v.shape[2], v.shape[3]):
        a = Arguments(question.a | {"v": np.broadcast_to(np.eye(v.shape[2], v.shape[3], -first), v.shape)})
        parts.append((np.reshape(call(a), got.shape), np.asarray(op.spec(**a), dtype=float)))
    theirs, right = (np.concatenate(each, axis=-1)[..., : v.shape[2]] for each in zip(*parts, strict=True))
    solved, most = Solved(theirs, right, np.full(right.shape, SAME)), np.abs(got).max()
    sums = ((w @ np.repeat(v, got.shape[1] // v.shape[1], axis=1), y) for w, y in ((theirs, got), (right, question.right)))
    return solved if all(np.abs(made - y).max() <= SAME * most for made, y in sums) else None


def _first(wrong: np.ndarray, right: np.ndarray, words: str) -> str:
    """Words for the first row and key where `wrong` holds, and for how many there are."""
    *row, key = place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    more = f", and so {wrong.sum()} of {wrong.size} pairs of a row and a key" if wrong.sum() > 1 else ""
    return f"{_row(row)} {words} {key}, whose right weight is {right[place]:.3g}{more}"


def _row(place: Sequence[Any]) -> str:
    return f"row {place[2]} of text {place[0]}, head {place[1]}"


def merged(question: Question, got: np.ndarray) -> tuple[str, str] | None:
    """Words for two parts of the keys whose weights are right up to a factor per row, and their law; None if there are none."""
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
    """Words for the parts before and from key `cut` on, and a law; None if a part has several factors in one row."""
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
    """Words for a bias that is added to the scores and that all texts share, by head, query and key; "" if there is none."""
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
    seen = (both > SEEN).sum(axis=0) > 1  # in one text alone it shows nothing of others
    differ = np.where(seen, bias, -np.inf).max(axis=-1) - np.where(seen, bias, np.inf).min(axis=-1)
    if off.max() > SAME or differ.max() < 0.1:
        return ""
    head = np.unravel_index(int(np.argmax(differ)), differ.shape)[0]
    words = f"a bias is added, the same in all texts: within a row of head {head} it differs by up to {differ.max():.3g}"
    return words + _law(np.ma.masked_array(bias, ~seen))


def _mean(x: np.ndarray, weights: np.ndarray, axis: int) -> np.ndarray:
    return (weights * x).sum(axis=axis, keepdims=True) / weights.sum(axis=axis, keepdims=True).clip(2.0**-60)


def _law(bias: Any) -> str:
    """Words for what the steps of a bias from key to key depend on, if three or more show it; else ""."""
    steps, near = np.ma.diff(bias, axis=-1), SAME * max(1, np.abs(bias).max())
    query, key = np.indices(steps.shape[1:])
    laws = {"the key alone": key, "key minus query alone, as a relative bias does": key - query}
    for words, group in laws.items():
        parts = [steps[:, group == each] for each in np.unique(group)]
        unlike = max(np.ma.filled(np.ma.ptp(each, axis=1), 0).max() for each in parts)
        if unlike <= near and max(each.count(axis=1).max() for each in parts) > 2:
            return f"; it depends on {words}"
    return ""
