"""General: mistakes that any op can have, in the order of an axis, in the numbers of one argument, in a factor of the result.

Tried where no mistake of the op fits and no setting with another number. Nothing here is fitted: every factor and every shift
is a number of the question, such as the square root of the width of q. `relation` states a fitted number as a fact.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, permutations
from typing import Any

import numpy as np

from posref.check.engine import Named, Question, distance, ratios, separates, together
from posref.ops import Arguments, Mistake, result, using
from posref.ops.common import POSITIONS, rounded

AXES = {
    1: ("entries",),
    2: ("rows", "columns"),
    3: ("blocks", "rows", "columns"),
    4: ("batch_rows", "heads", "rows", "columns"),
}
ORDERS: dict[str, tuple[Callable[[int], np.ndarray], str, str]] = {
    "reversed": (lambda n: np.arange(n)[::-1], "are in reverse order", "Keep their order."),
    "one_late": (
        lambda n: (np.arange(n) - 1) % n,
        "are moved on by one, the last to the first place",
        "Remove the shift by one.",
    ),
    "one_early": (
        lambda n: (np.arange(n) + 1) % n,
        "are moved back by one, the first to the last place",
        "Remove the shift by one.",
    ),
    "halves_exchanged": (lambda n: (np.arange(n) + n // 2) % n, "have their halves exchanged", "Keep the order of the halves."),
    "all_the_first": (
        lambda n: np.zeros(n, dtype=int),
        "are all the first of them",
        "Index by this axis too: one is read for all.",
    ),
    "first_half_twice": (lambda n: np.arange(n) % (n // 2), "are those of the first half, twice", "Count on through both."),
    "second_half_twice": (lambda n: n // 2 + np.arange(n) % (n // 2), "are those of the second half, twice", "Count from 0."),
}
EVEN = ("halves_exchanged", "first_half_twice", "second_half_twice")  # for an even number of entries
LEAST = dict.fromkeys(ORDERS, 2) | dict.fromkeys(EVEN, 4) | {"one_late": 3, "one_early": 3}  # entries that show an order
LIMITS = ((-np.inf, 1), (1, np.inf), (0, np.inf), (0, 1), (-1, 1), (-np.inf, 2))  # that people choose
NARROW = {8: "bfloat16", 11: "float16"}
POWERS = (2.0, 3.0, 4.0, 8.0, 10.0, 16.0, 100.0, 1000.0)


def hypotheses(question: Question, got: np.ndarray | None = None) -> Iterator[Named]:
    """The result or one argument in another order, two arguments exchanged, positions shifted or multiplied, other factors."""
    a, right = question.a, np.asarray(question.right)
    arrays = {name: a[name] for name in question.op.given if isinstance(a.get(name), np.ndarray) and a[name].size > 1}
    yield from (_in_order("result", right, order, axis) for order, axis in _orders(right))
    yield from _mixed("result", right)
    for name, value in arrays.items():
        yield from (_in_order(name, value, order, axis) for order, axis in _orders(value))
        yield from _mixed(name, value)
        binding = (
            (low, high)
            for low, high in LIMITS
            if value.dtype.kind == "f" and low in (-np.inf, max(low, value.min())) and high in (np.inf, min(high, value.max()))
        )
        for low, high in binding:
            words = " and ".join(f"at {word} {end:g}" for word, end in (("least", low), ("most", high)) if np.isfinite(end))
            limited = using(**{name: lambda a, n=name, low=low, high=high: np.clip(a[n], low, high)})
            yield _mistake(f"{name} {words}", limited, f"{name} are limited: {words}", "Use them as given.", "setting")
        if value.dtype.kind == "b":
            yield _mistake(
                f"{name}_inverted",
                using(**{name: lambda a, n=name: ~a[n]}),
                f"True and False of {name} are exchanged",
                "Invert it.",
            )
    for one, other in combinations(arrays, 2):
        if arrays[one].shape == arrays[other].shape and arrays[one].dtype == arrays[other].dtype and "positions" not in one:
            change = {one: lambda a, n=other: a[n], other: lambda a, n=one: a[n]}
            yield _mistake(
                f"{one}_and_{other}_exchanged", using(**change), f"{one} and {other} are exchanged", "Exchange them."
            )
    truth = np.asarray(question.op.spec(**a)).dtype.kind == "b"  # few bits: factors of positions fit by accident
    yield from _positions(a, arrays, () if truth else POWERS)
    yield from shifts(question)
    if truth:
        yield from _band(a, got)
        yield _mistake("result_inverted", result(np.logical_not), "True and False of the result are exchanged", "Invert it.")
    elif got is not None and _at_limits(question, got):
        yield from clipped(got, question.right).items()
    elif _whole(question):
        for bits, dtype in NARROW.items():
            words = f"the result is held in {dtype}, which has {bits} bits for whole numbers"
            yield _mistake(f"result_in_{dtype}", _in_bits(bits), words, "Keep it in int32 or int64.")
    else:
        yield from (
            _factor(words, factor) for words, factor in factors(a).items() if got is None or _measured(got, right, factor)
        )


def _at_limits(question: Question, got: np.ndarray) -> bool:
    """Whether all wrong numbers are the smallest or the largest one, and three others of them and three right ones are not."""
    wrong = ratios(got, question.right, question.tolerance[question.models[-1]]) > 1
    ends = np.isin(got[wrong], (got.min(), got.max())).all()
    return bool(ends and all(len(np.unique(some)) >= 3 for some in (question.right[wrong], got[~wrong])))


def clipped(got: np.ndarray, right: Any = (-np.inf, np.inf)) -> dict[str, Mistake]:
    """The right result, between the smallest and the largest number of the output, as far as right ones are beyond these."""
    low, high = got.min(), got.max()
    beyond = 2.0**-20 * max(abs(low), abs(high))
    ends = low if np.min(right) < low - beyond else -np.inf, high if np.max(right) > high + beyond else np.inf
    words = f"values are clipped at {' and '.join(f'{end:g}' for end in ends if np.isfinite(end))}"
    effect = "Right for small numbers; trained features and long texts have larger ones."
    return {"clipped": Mistake(result(lambda y: np.clip(y, *ends)), words, effect, "Do not clip.")}


def _band(a: Arguments, got: np.ndarray | None) -> Iterator[Named]:
    """The offsets j - i whose keys a mask sees, where they are all from one number to another."""
    placed = {"query_positions", "key_positions"} <= a.keys()
    if got is None or not got.any() or not (placed or (got.ndim > 1 and got.shape[-1] == got.shape[-2])):
        return
    every = _offsets(a, got)
    seen = every[got != 0] if got.shape == every.shape else every
    first, last = (None if seen.min() == every.min() else seen.min()), (None if seen.max() == every.max() else seen.max())
    if first is None and last is None:
        return
    low, high = -np.inf if first is None else first, np.inf if last is None else last
    ends = (("from", first, every[every < low]), ("to", last, every[every > high]))
    nearest = {end: others[np.abs(others - end).argmin()] for _, end, others in ends if end is not None}
    asked = {end: "" if abs(other - end) == 1 else f", next to which {other} was asked," for end, other in nearest.items()}
    words = " ".join(f"{word} {end}{asked[end]}" for word, end, _ in ends if end is not None)
    bug = f"exactly the keys of the offsets j - i {words} are seen"
    within = lambda a: (low <= _offsets(a, got)) & (_offsets(a, got) <= high)  # noqa: E731
    yield _mistake("other_offsets", lambda f, a: np.broadcast_to(within(a), got.shape), bug, "Compare both ends.")


def _offsets(a: Arguments, got: np.ndarray) -> np.ndarray:
    """Key minus query, by position, or by row and column where there are no positions."""
    if "key_positions" in a:
        return a.key_positions[..., None, :] - a.query_positions[..., :, None]
    return np.broadcast_to(np.arange(got.shape[-1]) - np.arange(got.shape[-1])[:, None], got.shape)


def _in_bits(bits: int) -> Any:
    return result(lambda y: rounded(y, bits))


def _orders(value: np.ndarray) -> Iterator[tuple[str, int]]:
    batches = max(value.ndim - 2, int(value.ndim == 2))  # axes along which one may be read for all: texts and heads
    for axis, n in enumerate(value.shape if value.ndim in AXES else ()):
        for order in ORDERS if n > 1 else ():
            if n >= LEAST[order] and (order not in EVEN or n % 2 == 0) and (order != "all_the_first" or axis < batches):
                yield order, axis


def _in_order(name: str, value: np.ndarray, order: str, axis: int) -> Named:
    (index, words, remedy), axis_name = ORDERS[order], AXES[value.ndim][axis]
    place = (slice(None),) * axis + (index(value.shape[axis]),)
    wrong = result(lambda y: y[place]) if name == "result" else using(**{name: lambda a: a[name][place]})
    return _mistake(f"{name}_{axis_name}_{order}", wrong, f"the {axis_name.replace('_', ' ')} of {name} {words}", remedy)


def _heads_as_rows(y: Any) -> Any:
    return y.reshape(len(y), y.shape[2], y.shape[1], y.shape[3]).swapaxes(1, 2)


def _rows_as_heads(y: Any) -> Any:
    return y.swapaxes(1, 2).reshape(*y.shape)


def _reshaped(y: Any, axis: int) -> Any:
    """Axes (r, c) whose numbers stand as (c, r) in memory."""
    shape = (*y.shape[:axis], y.shape[axis + 1], y.shape[axis], *y.shape[axis + 2 :])
    return y.reshape(shape).swapaxes(axis, axis + 1)


def _mixed(name: str, value: np.ndarray) -> Iterator[Named]:
    """Axes of heads and rows that are read as each other, and a square that is transposed."""
    if value.ndim == 4 and value.shape[1] > 1 < value.shape[2]:
        heads, rows = value.shape[1:3]
        for mixed, words, change in (
            ("heads_and_rows", "(batch, heads, n, d) is read as (batch, n, heads, d)", _heads_as_rows),
            ("rows_and_heads", "(batch, n, heads, d) is read as (batch, heads, n, d)", _rows_as_heads),
        )[: 1 + (heads != rows)]:
            wrong = result(change) if name == "result" else using(**{name: lambda a, f=change: f(a[name])})
            remedy = "Transpose it: a view of another shape moves no numbers."
            yield _mistake(f"{name}_{mixed}_mixed", wrong, f"{name} {words} without a transposition", remedy)
    for axis in range(value.ndim - 1) if value.ndim < 4 else ():
        rows, columns = value.shape[axis : axis + 2]
        if 1 < rows != columns > 1:
            change = partial(_reshaped, axis=axis)
            wrong = result(change) if name == "result" else using(**{name: lambda a, f=change: f(a[name])})
            words = f"{name} is read as if its axes ({rows}, {columns}) stood as ({columns}, {rows}) in memory"
            called = f"{name}_reshaped" if axis == value.ndim - 2 else f"{name}_blocks_reshaped"
            yield _mistake(called, wrong, words, "Exchange axes by a transposition, not by a reshape.")
    if value.ndim > 1 and value.shape[-1] == value.shape[-2] > 1:
        wrong = (
            result(lambda y: y.swapaxes(-1, -2)) if name == "result" else using(**{name: lambda a: a[name].swapaxes(-1, -2)})
        )
        yield _mistake(f"{name}_transposed", wrong, f"the last two axes of {name} are exchanged", "Transpose it.")


def arrangements(question: Question, got: np.ndarray) -> Iterator[Named]:
    """The right numbers in another shape: other axes, heads merged into the features, or a part of one axis."""
    shape = question.right.shape
    names = [name.replace("_", " ") for name in AXES.get(len(shape), ())]
    for axes in permutations(range(len(names))):
        if tuple(shape[axis] for axis in axes) == got.shape:
            name, words = "".join(map(str, axes)), ", ".join(names[axis] for axis in axes)
            words = f"the axes of the result are ({words}), not ({', '.join(names)})"
            yield _arranged(f"axes_{name}", partial(np.transpose, axes=axes), words, "Transpose it back.")
    if len(shape) == 4 and got.shape == (shape[0], shape[2], shape[1] * shape[3]):
        merged = lambda y: y.swapaxes(1, 2).reshape(got.shape)  # noqa: E731
        words = "the result has no axis of heads: they are merged into the features, (batch, n, heads d)"
        yield _arranged("heads_merged", merged, words, "Return the heads before they are merged, or reshape and transpose.")
        words = "the result (batch, heads, n, d) is viewed as (batch, n, heads d) without a transposition"
        yield _arranged("heads_viewed", lambda y: y.reshape(got.shape), words, "Transpose first, then merge the heads.")
    for axis, name in enumerate(names if got.ndim == len(shape) else ()):
        size, n = got.shape[axis], shape[axis]
        if got.shape == (*shape[:axis], size, *shape[axis + 1 :]) and 0 < size < n and n % size == 0:
            for first in range(0, n, size):
                part, words = f"{first} to {first + size - 1}", f"of the {n} {name} the result has"
                change = partial(np.take, indices=range(first, first + size), axis=axis)
                yield _arranged(f"{name} {part}", change, f"{words} {part} alone", "Return all, or ask for a part.")


def _arranged(name: str, change: Callable[[Any], Any], words: str, remedy: str) -> Named:
    return _mistake(f"result_{name}".replace(" ", "_"), lambda f, a: change(f(**a)), words, remedy)


def _positions(a: Arguments, arrays: dict[str, np.ndarray], powers: tuple[float, ...]) -> Iterator[Named]:
    """Positions of one argument against those of the other shifted, all multiplied or divided, or summed over the batch."""
    names = [name for name in arrays if name in POSITIONS or name == "coordinates"]
    lengths = {f"the number of {name.removesuffix('_positions')} positions": arrays[name].shape[-1] for name in names}
    shifts = {1: "1", **{n: f"{n}, {words}" for words, n in lengths.items() if n > 1}}
    if len(lengths) == 2 and names[0] != "offsets":
        few, many = sorted(lengths.values())
        shifts |= {many - few: f"{many - few}, the length of the cache"} if many - few > 1 else {}
    for name in names if len(names) == 2 else ():
        for size, words in shifts.items():
            for sign, side in ((1, "large"), (-1, "small")):
                yield _mistake(
                    f"{name}_{'plus' if sign > 0 else 'minus'}_{size}",
                    using(**{name: lambda a, n=name, s=sign * size: a[n] + s}),
                    f"{name} are too {side} by {words}, against the others",
                    "Count queries and keys from the same start.",
                )
        twice, remedy = using(**{name: lambda a, n=name: 2 * a[n]}), "Turn each side once: before it is cached or after it."
        yield _mistake(f"{name}_doubled", twice, f"{name} are doubled, as where one side is rotated twice", remedy)
        zero = using(**{name: lambda a, n=name: 0 * a[n]})
        yield _mistake(f"{name}_zero", zero, f"{name} are 0, those of the others are as given", "Pass both on.")
    for shift in (1, 2, 3, -1, -2, -3) if len(names) == 1 else ():
        moved = using(**{names[0]: lambda a, s=shift: a[names[0]] + s})
        words = f"{names[0]} are too {'large' if shift > 0 else 'small'} by {abs(shift)}"
        name = f"{names[0]}_{'plus' if shift > 0 else 'minus'}_{abs(shift)}"
        yield _mistake(name, moved, words, "Use them as given.", "setting")
    if powers and names and all(arrays[name].dtype.kind in "iu" and arrays[name].min() == 0 for name in names):
        least = using(**{name: lambda a, n=name: np.maximum(a[n], 1) for name in names})
        yield _mistake(f"{' and '.join(names)} at least 1", least, "position 0 is taken for 1", "Use 0 as given.", "setting")
    for power in powers if names else ():
        for words, change in (
            ("times", lambda p, c: p * int(c)),
            ("over", lambda p, c: p / c),
            ("whole_over", lambda p, c: p // int(c)),
        ):
            wrong = using(**{name: lambda a, n=name, f=change, c=power: f(a[n], c) for name in names})
            said = {"times": "multiplied by", "over": "divided by", "whole_over": "divided, and rounded down, by"}[words]
            bug, remedy = f"positions are {said} {power:g}", "Use the positions that are given."
            yield _mistake(f"positions_{words}_{power:g}", wrong, bug, remedy, "setting")
    for name in names:
        if arrays[name].ndim > 1 and arrays[name].shape[0] > 1:
            wrong = using(**{name: lambda a, n=name: np.broadcast_to(a[n].sum(axis=0), a[n].shape)})
            yield _mistake(f"{name}_summed_over_batch", wrong, f"{name} are summed over the batch", "Keep the batch axis.")


def factors(a: Arguments) -> dict[str, float]:
    """Factors that a result may have too often or too rarely, by what they are."""
    found = {"-1": -1.0, "1/2": 0.5, "log2 e": np.log2(np.e), "ln 2": np.log(2.0), "1/10": 0.1}
    found |= {"2 pi": 2 * np.pi, "1 / 2 pi": 0.5 / np.pi} | {f"1/{power}": 1 / power for power in (4, 8, 16)}
    found |= {f"{power:g}": power for power in POWERS}
    for name, value in a.items():
        if isinstance(value, np.ndarray) and value.ndim > 1 and value.dtype.kind == "f" and value.shape[-1] > 1:
            width = value.shape[-1]
            found |= {
                f"root of {width}, the width of {name}": width**0.5,
                f"1 / root of {width}, the width of {name}": width**-0.5,
            }
            found |= {f"{width}, the width of {name}": float(width), f"1 / {width}, the width of {name}": 1 / width}
        elif name in ("scale", "dim", "heads", "head_dim") and type(value) in (int, float) and value not in (0, 1):
            found |= {f"{name}": float(value), f"1 / {name}": 1 / value}
            found |= {f"root of {name}": value**0.5, f"1 / root of {name}": value**-0.5} if value > 0 else {}
    seen: dict[float, str] = {}
    for words, factor in found.items():
        seen.setdefault(round(factor, 9), words)
    return {words: found[words] for words in seen.values()}


def _factor(words: str, factor: float) -> Named:
    name = {"-1": "negated", "2": "doubled", "1/2": "halved"}.get(words, f"times {factor:.6g}")
    remedy = (
        "Remove the factor, or a second place where it is applied." if abs(factor) > 1 else "Apply the factor that is missing."
    )
    return _mistake(
        f"result_{name}".replace(" ", "_"), result(lambda y: factor * y), f"the result is multiplied by {words}", remedy
    )


def _measured(got: np.ndarray, right: np.ndarray, factor: float) -> bool:
    """Whether the output is so many times an answer, as its large elements say: bounds of 16 bits hold other factors too."""
    size = np.abs(right)
    if got.shape != right.shape or not np.isfinite(size).all() or not size.any():
        return False
    large = size >= np.median(size[size > 0])
    with np.errstate(all="ignore"):
        return bool(abs(np.median(got[large] / right[large]) - factor) <= 2**-6 * abs(factor))


def shifts(question: Question) -> Iterator[Named]:
    """The right whole numbers with another one added."""
    if _whole(question):
        yield from (_shift(words, shift) for words, shift in _shifts(question.a).items())


def _whole(question: Question) -> bool:
    return np.asarray(question.op.spec(**question.a)).dtype.kind in "iu"


def _shifts(a: Arguments) -> dict[str, int]:
    """Whole numbers of the question by which whole results may be off."""
    sizes = {name: value for name, value in a.items() if type(value) is int and value}
    if "n_key" in sizes and "n_query" in sizes:
        sizes["the length of the cache"] = sizes["n_key"] - sizes["n_query"]
    return {"1": 1, "-1": -1, **sizes, **{f"-{name}": -size for name, size in sizes.items()}}


def _shift(words: str, shift: int) -> Named:
    wrong = result(lambda y: y + shift)
    return _mistake(f"result_plus_{shift}", wrong, f"the result has {words} added to it", "Remove what is added.")


def with_a_factor(question: Question, got: np.ndarray) -> Iterator[Named]:
    """Each mistake that this data shows with one of the factors, where the output is so many times its answer."""
    known = {} if _whole(question) else factors(question.a)
    for name in question.shown() if known else ():
        answer = question.wrong[name]
        if _multiple(answer, question.right):
            continue  # a factor twice is any number
        for words, factor in known.items():
            if _measured(got, answer, factor):
                other, mistake = _factor(words, factor)
                yield f"{name} and {other}", together(question.op.mistakes[name], mistake)


def _multiple(answer: np.ndarray, right: np.ndarray) -> bool:
    """Whether a wrong answer is the right one times a number."""
    size = np.abs(right)
    with np.errstate(all="ignore"):
        factor = answer.ravel()[size.argmax()] / right.ravel()[size.argmax()]
        return bool(np.abs(answer - factor * right).max() <= 2**-20 * np.abs(answer).max())


ROW = "in each row all numbers have the same error, which a softmax over the row removes"


def relation(question: Question, got: np.ndarray, model: str) -> str:
    """A fact about all numbers: a common factor or difference, one for each row, or another order."""
    right, bound = question.right, question.tolerance[model]
    if got.shape != right.shape or got.size < 3 or not np.isfinite(got).all() or not np.isfinite(right).all():
        return ""
    if not separates(right, 2 * bound):  # then many facts would fit
        return ""
    large = np.abs(right) > 0
    if len(np.unique(right[large])) >= 3:
        measured = float(np.median(got[large] / right[large]))
        product = bound + 2.0**-24 * np.abs(right)  # the product is rounded once more
        for factor in (*(float(f"{measured:.{digits}g}") for digits in (1, 2, 3, 4, 6)), measured):
            near = factor not in (0, 1) and abs(factor - measured) <= 2**-8 * abs(measured)  # bounds of 16 bits hold others too
            if near and distance(got, factor * right, 2 * abs(factor) * product) <= 1:
                return f"every number is {factor:g} times the right one"
    if len(np.unique(right)) >= 3:
        shift = float(np.median(got - right))
        if shift and distance(got, right + shift, 2 * bound) <= 1:
            return f"every number is the right one {'plus' if shift > 0 else 'minus'} {abs(shift):.6g}"
    if right.ndim > 1 and right.shape[-1] > 2 and "attention" not in question.op.tags:  # no softmax is to come
        shift = np.median(got - right, axis=-1, keepdims=True)
        most = 2 * np.count_nonzero(ratios(got, right, bound) > 1) > got.size  # else the bound may be as large as the constants
        if most and distance(got, right + shift, 2 * bound) <= 1:
            return ROW
    return _order(got, right, bound)


def _order(got: np.ndarray, right: np.ndarray, bound: np.ndarray) -> str:
    for axis, name in enumerate(AXES.get(right.ndim, ())):
        theirs, ours, most = (np.moveaxis(y, axis, 0) for y in (got, right, np.broadcast_to(bound, right.shape)))
        if not 1 < len(ours) <= 16:
            continue
        found = [next((j for j in range(len(ours)) if distance(each, ours[j], most[j]) <= 1), -1) for each in theirs]
        if -1 not in found and found != list(range(len(found))) and len({*found}) > 1:  # one entry everywhere is no order
            return f"; these are the right numbers with the {name.replace('_', ' ')} {', '.join(map(str, found))} in this order"
    return ""


def _mistake(name: str, wrong: Any, bug: str, remedy: str, kind: str = "general") -> Named:
    return name, Mistake(wrong, bug, remedy=remedy, kind=kind)
