"""Weightings: formulas that may stand in the place of softmax, in every op that calls it, at any depth.

Each is a function of the scores and the mask, and is computed here. `weights` instead measures the weights of an output.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from posref import attention
from posref.check.engine import Named, Question, distance, ratios
from posref.check.fitted import first_that_fits
from posref.ops import Arguments, Mistake, both
from posref.ops.attention import MISTAKES
from posref.ops.common import rounded
from posref.ops.variation import steps, varied

REMEDY = "Use softmax over the keys, within one text, head and query."
EMPTY = {"0": 0.0, "NaN": np.nan, "equal": 1.0}
OVERFLOW = float(np.log(np.finfo(np.float32).max))  # exp of more is infinite in float32
LOWEST = {"-1e4": -1e4, "-1e9": -1e9, "the lowest float32": float(np.finfo(np.float32).min)}
KEPT = range(1, 9)  # keys of largest score
AXES = {"queries": (-2,), "heads": (-3,), "texts": (-4,), "queries_and_keys": (-2, -1), "heads_and_keys": (-3, -1)}
TILES, SPLITS, MANY = (2, 4, 8, 16, 32, 64, 128, 256), (2, 3, 4), 32  # keys of a tile; parts; of more parts none is tried
SMALL = ("0.1", "0.01", "1e-3", "1e-4", "1e-5", "1e-6", "1e-8", "1e-10", "1e-12")  # that people add to a denominator
PARTS = ("scores", "exponentials", "sums", "weights")  # steps of softmax that may be stored in 16 bits
SHORT = {8: "bfloat16", 11: "float16"}

Weighting = Callable[[Any, Any], Any]


def _power(s: Any) -> Any:
    return np.exp(np.where(s > OVERFLOW, np.inf, s))


def _shifted(s: Any, seen: Any) -> Any:
    """exp(s - max s) for visible keys, else 0."""
    return np.where(seen, np.exp(s - attention.row_maximum(s, seen)), 0)


def _share(x: Any, more: float = 0) -> Any:
    total = x.sum(axis=-1, keepdims=True) + more
    return x / np.where(total == 0, 1, total)


def _over(s: Any, seen: Any, axes: tuple[int, ...], empty: str) -> Any:
    """Softmax over other axes; where nothing is visible the weights are 0, NaN or all equal, as masked scores would give
    them."""
    highest = np.where(seen, s, -np.inf).max(axis=axes, keepdims=True)
    none = ~np.isfinite(highest)
    power = np.where(seen, np.exp(np.where(seen, s - np.where(none, 0, highest), 0)), 0)
    power = np.where(none, EMPTY[empty], power)
    total = power.sum(axis=axes, keepdims=True)
    return power / np.where(total == 0, 1, total)


def _masked_afterwards(s: Any, seen: Any, low: float) -> Any:
    return np.where(seen, attention.softmax(s), low)


def _largest(s: Any, seen: Any, kept: int) -> Any:
    """Softmax over the keys with the largest scores only."""
    if kept >= s.shape[-1]:
        raise ValueError(f"{kept} of {s.shape[-1]} keys are all of them")
    least = np.sort(np.where(seen, s, -np.inf), axis=-1)[..., -kept, None]
    return attention.softmax(s, seen & (s >= least))


def _in_few_bits(s: Any, seen: Any, parts: tuple[str, ...], bits: int) -> Any:
    """Softmax with some of its steps stored in 16 bits."""

    def stored(x: Any, part: str) -> Any:
        return rounded(x, bits) if part in parts else x

    s = stored(s, "scores")
    power = stored(np.where(seen, np.exp(stored(s - attention.row_maximum(s, seen), "scores")), 0), "exponentials")
    total = stored(power.sum(axis=-1, keepdims=True), "sums")
    return stored(power / np.where(total == 0, 1, total), "weights")


def _without_rescaling(s: Any, seen: Any, cuts: Any, accumulator: bool, total: bool) -> Any:
    """Softmax by parts of the keys, where what was added before the largest score grew keeps the scale of then."""
    highest = (0 * s[..., i:j] + attention.row_maximum(s[..., :j], seen[..., :j]) for i, j in cuts(s))
    old, new = np.where(seen, np.exp(s - np.concatenate([*highest], axis=-1)), 0), _shifted(s, seen)
    every = (old if total else new).sum(axis=-1, keepdims=True)
    return (old if accumulator else new) / np.where(every == 0, 1, every)


def _of_equal_shares(s: Any, seen: Any, cuts: Any) -> Any:
    """The mean of softmax over each part of the keys."""
    each = [attention.softmax(s[..., i:j], seen[..., i:j]) for i, j in cuts(s)]
    return np.concatenate(each, axis=-1) / len(each)


def _masked_by_the_first(s: Any, seen: Any, cuts: Any) -> Any:
    return attention.softmax(s, np.concatenate([seen[..., : j - i] for i, j in cuts(s)], axis=-1))


def _less(s: Any, seen: Any, end: Any, axes: Any, dtype: Any) -> Any:
    """Softmax of scores less their `end` along `axes`, with exp as it is in `dtype`; without one another softmax follows."""
    low = np.where(seen, s, -1e30)
    x = low - end(low, axis=axes, keepdims=True)
    power = np.exp(x.astype(dtype)).astype(float) if dtype else attention.softmax(x)
    return power / power.sum(axis=-1, keepdims=True)


def _cut(s: Any, tile: int = 0, parts: int = 1) -> list[tuple[int, int]]:
    """The first key of each tile and the one after its last; or parts, as torch.chunk makes them."""
    n = s.shape[-1]
    cuts = [*range(0, n, tile or -(-n // parts)), n]
    if not 2 < len(cuts) <= min(MANY, n):
        raise ValueError(f"{n} keys have no such parts")
    return [*pairwise(cuts)]


WEIGHTINGS: dict[str, tuple[Weighting, str]] = {
    "sigmoid_for_softmax": (lambda s, seen: np.where(seen, 1 / (1 + np.exp(-s)), 0), "each weight is the sigmoid of its score"),
    "sigmoid_less_log_of_keys_for_softmax": (
        lambda s, seen: np.where(seen, 1 / (1 + np.exp(np.log(s.shape[-1]) - s)), 0),
        "each weight is the sigmoid of its score less the logarithm of the number of keys",
    ),
    "softmax_not_normalized": (
        lambda s, seen: np.where(seen, _power(s), 0),
        "each weight is exp of its score, not divided by the sum",
    ),
    "softmax_not_normalized_less_the_largest": (
        _shifted,
        "each weight is exp of its score less the largest, not divided by the sum",
    ),
    "softmax_with_one_in_the_sum": (
        lambda s, seen: _share(np.where(seen, _power(s), 0), 1),
        "1 is added to the sum of the exponentials, in the denominator",
    ),
    "softmax_with_one_in_the_sum_without_overflow": (
        lambda s, seen: attention.softmax(s, seen, np.zeros((s.shape[-3], 1))),
        "1 is added to the sum of the exponentials, in the denominator",
    ),
    "softmax_with_one_in_the_sum_after_the_largest": (
        lambda s, seen: _share(_shifted(s, seen), 1),
        "1 is added to the sum of exp(s - max s), in the denominator",
    ),
    "scores_for_softmax": (lambda s, seen: np.where(seen, s, 0), "each weight is its score: there is no softmax"),
    "scores_over_their_sum_for_softmax": (
        lambda s, seen: _share(np.where(seen, s, 0)),
        "each weight is its score over the sum",
    ),
    "scores_over_absolute_sum_for_softmax": (
        lambda s, seen: np.where(seen, s, 0) / np.maximum(np.abs(np.where(seen, s, 0)).sum(axis=-1, keepdims=True), 2.0**-60),
        "each weight is its score over the sum of absolute scores",
    ),
    "relu_for_softmax": (
        lambda s, seen: np.where(seen, np.maximum(s, 0), 0),
        "each weight is its score, or 0 where that is negative",
    ),
    "relu_over_the_sum_for_softmax": (
        lambda s, seen: _share(np.where(seen, np.maximum(s, 0), 0)),
        "each weight is its score, or 0 where that is negative, over the sum",
    ),
    "relu_over_keys_for_softmax": (
        lambda s, seen: np.where(seen, np.maximum(s, 0), 0) / s.shape[-1],
        "each weight is its score, or 0 where that is negative, over the number of keys",
    ),
    "squared_relu_over_keys_for_softmax": (
        lambda s, seen: np.where(seen, np.maximum(s, 0) ** 2, 0) / s.shape[-1],
        "each weight is the square of a positive score over the number of keys",
    ),
    "tanh_for_softmax": (lambda s, seen: np.where(seen, np.tanh(s), 0), "each weight is tanh of its score"),
    "softplus_over_the_sum_for_softmax": (
        lambda s, seen: _share(np.where(seen, np.where(s > OVERFLOW, np.inf, np.log(1 + np.exp(np.minimum(s, 90)))), 0)),
        "each weight is softplus of its score over the sum",
    ),
    "softmax_of_base_two": (
        lambda s, seen: attention.softmax(s * np.log(2), seen),
        "each weight is a power of 2 for a power of e",
    ),
    "weights_squared": (lambda s, seen: attention.softmax(s, seen) ** 2, "each weight is the square of the right one"),
    "weights_replaced_by_roots": (
        lambda s, seen: np.sqrt(attention.softmax(s, seen)),
        "each weight is the root of the right one",
    ),
    "softmax_of_second_order": (
        lambda s, seen: _share(np.where(seen, 1 + s + s * s / 2, 0)),
        "1 + s + s^2 / 2 stands in the place of exp(s)",
    ),
}
WEIGHTINGS |= {
    f"softmax_along_{name}{more}": (
        partial(_over, axes=axes, empty=empty),
        f"the softmax is along the {name.replace('_', ' ')}; where nothing is seen {words}",
    )
    for name, axes in AXES.items()
    for more, empty, words in (
        ("", "0", "the weights are 0"),
        ("_or_NaN", "NaN", "they are NaN"),
        ("_or_equal", "equal", "they are equal"),
    )
}
WEIGHTINGS |= {
    f"weights_masked_to_{name.replace(' ', '_')}_afterwards": (
        partial(_masked_afterwards, low=low),
        f"the weights of masked keys are set to {name} after the softmax",
    )
    for name, low in LOWEST.items()
}
WEIGHTINGS |= {
    f"softmax_of_the_{n}_largest": (partial(_largest, kept=n), f"each query weighs the {n} keys of largest score alone")
    for n in KEPT
}
LARGEST = "Subtract the largest score of each row, along the keys, and mask by large negative numbers: then exp stays in range."
SHIFTED = {
    f"largest_along_{name}_subtracted": (
        np.max,
        axes,
        f"before exp the largest score along the {name} is subtracted, not along keys",
    )
    for name, axes in AXES.items()
    if len(axes) == 1
} | {
    "rows_with_masked_keys_NaN": (
        np.min,
        (-1,),
        "rows are NaN that mask a key, or where exp overflows: before exp a number far below the largest score, as the "
        "least is, is subtracted, or masked scores are +infinity or NaN",
    )
}
RESCALE = "Multiply the accumulator and the sum by exp(old maximum - new maximum) before a tile is added."
IN_PARTS: dict[str, tuple[Any, str, str]] = {
    f"{name}_not_rescaled": (
        partial(_without_rescaling, accumulator="accumulator" in name, total="sum" in name),
        f"no rescaling of the {name.replace('_and_', ' and the ')} is made where the largest score grows",
        RESCALE,
    )
    for name in ("accumulator", "sum", "accumulator_and_sum")
}
IN_PARTS |= {
    "equal_shares": (
        _of_equal_shares,
        "the mean of the softmax of each part is taken",
        "Weigh each part by its share of the sum.",
    ),
    "mask_of_the_first": (
        _masked_by_the_first,
        "each part reads the first columns of the mask, as where a key is counted from the start of its part",
        "Index the mask by the key's place among all keys.",
    ),
}
CUTS = {f"{parts} parts": partial(_cut, parts=parts) for parts in SPLITS} | {
    f"tiles of {n}": partial(_cut, tile=n) for n in TILES
}
PARTED = {
    f"{name}_in_{words.replace(' ', '_')}": (partial(change, cuts=cuts), f"the keys are in {words}, and {bug}", remedy)
    for words, cuts in CUTS.items()
    for name, (change, bug, remedy) in IN_PARTS.items()
}


def hypotheses(question: Question) -> Iterator[Named]:
    """Every other weighting, if the op has a softmax over keys; of several with one answer, the first."""
    if _weighs(question):
        every = [_mistake(name, *each) for name, each in (WEIGHTINGS | PARTED).items()]
        answers = {name: question.answer(name, mistake.wrong) for name, mistake in every}
        once = {y.tobytes(): name for name, y in [*answers.items()][::-1] if y is not None}
        yield from (each for each in every if each[0] in once.values())


def with_uniform_rows(question: Question, got: np.ndarray, mistakes: Iterable[Named]) -> Iterator[Named]:
    """Mistakes that leave a row without keys, where masked scores are one large negative number, if a row has equal weights."""
    equal = _mistake("weights_equal", lambda s, seen: 0 * s + 1 / s.shape[-1], "")
    answer = question.answer(equal[0], equal[1].wrong) if _weighs(question) else None
    if answer is None or not (ratios(got, answer, question.tolerance[question.models[-1]]) <= 1).all(axis=-1).any():
        return
    filled = MISTAKES["empty_row_uniform"]
    for name, mistake in mistakes:
        if mistake.kind not in (filled.kind, "precision"):
            bug = f"{mistake.bug}; rows that then see no key are the mean of all values"
            yield f"{name} and empty_row_uniform", mistake._replace(wrong=both(mistake.wrong, filled.wrong), bug=bug)


def with_more_in_the_sum(question: Question, got: np.ndarray) -> list[Named]:
    """Softmax with a small number added to its denominator: the number that fits best, since a row's factor depends on its
    sum."""
    if not _weighs(question):
        return []
    every = (
        _mistake(
            f"softmax_with_{number}_in_the_sum{where}", partial(change, more=float(number)), f"{number} is added to {words}"
        )
        for number in SMALL
        for where, change, words in (
            ("", lambda s, seen, more: _share(np.where(seen, _power(s), 0), more), "the sum of the exponentials"),
            ("_after_the_largest", lambda s, seen, more: _share(_shifted(s, seen), more), "the sum of exp(s - max s)"),
        )
    )
    bound, fitting = question.tolerance[question.models[-1]], [each for each in every if question.names(got, each)]
    answers = {name: question.answer(name, mistake.wrong) for name, mistake in fitting}
    apart = {name: distance(got, answer, bound) for name, answer in answers.items() if answer is not None}
    return sorted(fitting, key=lambda each: apart[each[0]])[:1]


def shifted(question: Question, got: np.ndarray) -> list[Named]:
    """Softmax that subtracts another number than the largest score of each row."""
    every = (
        _mistake(f"{name}{more}", partial(_less, end=end, axes=axes, dtype=dtype), words, LARGEST)
        for more, dtype in (("", np.float32), ("_in_float64", float), ("_before_softmax", None))
        for name, (end, axes, words) in SHIFTED.items()
    )
    return first_that_fits(question, got, every) if _weighs(question) else []


def in_16_bits(question: Question, got: np.ndarray) -> list[Named]:
    """Softmax with the fewest of its steps, two or more, stored in 16 bits."""
    if not _weighs(question):
        return []
    stored = (
        _mistake(
            f"softmax_{'_and_'.join(parts)}_in_{dtype}",
            partial(_in_few_bits, parts=parts, bits=bits),
            f"{' and '.join(parts)} of the softmax are stored in {dtype}",
            "Compute the softmax in float32.",
        )
        for n in range(2, len(PARTS) + 1)
        for parts in combinations(PARTS, n)
        for bits, dtype in SHORT.items()
    )
    return first_that_fits(question, got, stored)


def _weighs(question: Question) -> bool:
    return "attention" in question.op.tags and any(step.__name__ == "softmax" for step in steps(question.op.spec))


def _mistake(name: str, change: Weighting, words: str, remedy: str = REMEDY) -> Named:
    def wrong(f: Any, a: Arguments) -> Any:
        def weighted(scores: Any, mask: Any = None, sinks: Any = None) -> Any:
            return change(scores, np.broadcast_to(True if mask is None else mask, scores.shape))

        return varied(f, attention.softmax, weighted)(**a)

    return name, Mistake(wrong, words, remedy=remedy, kind="weighting")
