"""General: mistakes that any op can have: a wrong order along an axis, or wrong numbers in an argument or in the result.

They are tried if no mistake of the op fits and no other value of a setting. No number is fitted here: every shift is a number
of the question, such as the length of the cache. `fitted` solves numbers from the output; `relation` states a fact about it.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, combinations, pairwise, permutations
from typing import Any

import numpy as np

from posref.check import fitted
from posref.check import rounded as rounding
from posref.check.axes import axes as labels_of
from posref.check.axes import names
from posref.check.engine import CONSTANTS, Named, Question, distance, ratios, separates, together
from posref.check.parts import as_given
from posref.check.ranged import rounded_to
from posref.ops import Arguments, Mistake, changing, result, using
from posref.ops.common import POSITIONS, rounded
from posref.ops.probe import PLACED

AXES = {
    1: ("entries",),
    2: ("rows", "columns"),
    3: ("blocks", "rows", "columns"),
    4: ("batch_rows", "heads", "rows", "columns"),
}
SHIFT, ALONG, END = "Remove the shift by one.", "Index by this axis too: one is read for all.", "Let the index reach both ends."
FAR = "Remove the shift."


def _rolled(i: Any, n: int, by: int) -> Any:
    return (i - by) % n


def _moved_on(i: Any, n: int, by: int) -> Any:
    return np.clip(i - by, 0, n - 1)


ORDERS: dict[str, tuple[Callable[[Any, int], Any], str, str]] = {  # the indices 0 .. n - 1 in another order
    "reversed": (lambda i, n: i[::-1], "are in reverse order", "Keep their order."),
    "one_late": (lambda i, n: (i - 1) % n, "are moved on by one, the last to the first place", SHIFT),
    "one_early": (lambda i, n: (i + 1) % n, "are moved back by one, the first to the last place", SHIFT),
    "one_late_from_the_first": (lambda i, n: np.maximum(i - 1, 0), "are moved on by one, and the first is there twice", SHIFT),
    "one_early_to_the_last": (
        lambda i, n: np.minimum(i + 1, n - 1),
        "are moved back by one, and the last is there twice",
        SHIFT,
    ),
    "last_repeated": (lambda i, n: np.minimum(i, n - 2), "end with the last but one, twice", END),
    "first_repeated": (lambda i, n: np.maximum(i, 1), "begin with the second, twice", END),
    "halves_exchanged": (lambda i, n: (i + n // 2) % n, "have their halves exchanged", "Keep the order of the halves."),
    "all_the_first": (lambda i, n: 0 * i, "are all the first of them", ALONG),
    "all_the_last": (lambda i, n: 0 * i + n - 1, "are all the last of them", ALONG),
    "first_half_twice": (lambda i, n: i % (n // 2), "are those of the first half, twice", "Count on through both."),
    "second_half_twice": (lambda i, n: n // 2 + i % (n // 2), "are those of the second half, twice", "Count from 0."),
}
for _k in (2, -2, 3, -3, 4, -4):
    _words = f"are moved {'on' if _k > 0 else 'back'} by {abs(_k)}, "
    ORDERS[f"{'late' if _k > 0 else 'early'}_by_{abs(_k)}"] = (partial(_rolled, by=_k), f"{_words}in a ring", FAR)
    ORDERS[f"{'late' if _k > 0 else 'early'}_by_{abs(_k)}_at_most"] = (partial(_moved_on, by=_k), f"{_words}up to the end", FAR)
EVEN = ("halves_exchanged", "first_half_twice", "second_half_twice")  # for an even number of entries
SHIFTED = ("one_late", "one_early", "one_late_from_the_first", "one_early_to_the_last", "last_repeated", "first_repeated")
LEAST = dict.fromkeys(ORDERS, 2) | dict.fromkeys(EVEN, 4) | dict.fromkeys(SHIFTED, 3)  # entries that show an order
LEAST |= {order: int(order.split("_by_")[1][0]) + 3 for order in ORDERS if "_by_" in order}
LIMITS = ((-np.inf, 1), (1, np.inf), (0, np.inf), (0, 1), (-1, 1), (-np.inf, 2))  # that people choose
CLOSE = 6  # bits by which a limit lessens the errors: of several it may come near to others within a few times its bound
SHOWN = 12  # numbers that are listed
GROWN = 16  # times as many places
NARROW = {8: "bfloat16", 11: "float16"}
POWERS = fitted.POWERS
RATES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 24, 25, 30)  # frames or samples per second
RATIOS = sorted({p / q for p in RATES for q in RATES} - {1})

Change = Callable[[Any], Any]


def _moved(first: int, inner: int, last: int) -> Change:
    """Adds one number to the first, one to each inner, and one to the last entry along the last axis."""
    return lambda p: p + np.array([first, *[inner] * (p.shape[-1] - 2), last])[: p.shape[-1]]


def _more(p: Any) -> Any:
    return p + 1


def _less(p: Any) -> Any:
    return p - 1


def _one_more(p: Any) -> Any:
    return np.concatenate([_moved(-1, 0, 0)(p), p[..., :1] * 0 + 1], axis=-1)


def _normed(x: Any, mean: bool, eps: float = 0.0) -> Any:
    squares = (x * x).sum(axis=-1, keepdims=True)
    return x / ((squares / x.shape[-1] if mean else squares) + eps) ** 0.5


def _standardized(x: Any) -> Any:
    apart = x - x.sum(axis=-1, keepdims=True) / x.shape[-1]
    return apart / ((apart * apart).sum(axis=-1, keepdims=True) / x.shape[-1]) ** 0.5


def _softmax(x: Any) -> Any:
    powers = np.exp(x)
    return powers / powers.sum(axis=-1, keepdims=True)


PLACES = "Use the places of the mask."
COUNT = "Count from where the contract says, and count once."
ENDS = "Compare both ends of every loop and slice, and the first and the last index."
WHOLE: dict[str, tuple[Change, str, str]] = {  # what is done to whole numbers
    "plus_1": (_more, "are too large by 1", COUNT),
    "minus_1": (_less, "are too small by 1", COUNT),
    "doubled": (lambda p: 2 * p, "are doubled", "Use them once: what is rotated twice has doubled positions as well."),
    "zero": (lambda p: 0 * p, "are 0", "Pass them on."),
    "negated": (lambda p: -p, "are negated", "Keep the signs."),
    "absolute": (np.abs, "have lost their signs", "Keep the signs."),
    "start_counted_twice": (lambda p: p + p[..., :1], "have the first of each row added once more", COUNT),
    "from_the_first": (lambda p: p - p[..., :1], "are counted from the first of each row", COUNT),
}
ENDS_MOVED: dict[str, tuple[Change, str, str]] = {  # what is done to the first, the last, or those between
    f"{part}_{sign}_1": (_moved(*(step * each for each in steps)), f"{words} too {size} by 1", ENDS)
    for sign, size, step in (("plus", "large", 1), ("minus", "small", -1))
    for part, words, steps in (
        ("first", "begin with a number that is", (1, 0, 0)),
        ("last", "end with a number that is", (0, 0, 1)),
        ("inner", "are, between the first and the last,", (0, 1, 0)),
    )
}
ENDS_MOVED |= {
    "ends_one_late": (_moved(1, 0, -1), "have all boundaries between them one late", ENDS),
    "ends_one_early": (_moved(-1, 0, 1), "have all boundaries between them one early", ENDS),
    "ends_and_the_last_one_early": (_one_more, "have all boundaries one early, that at the end too", ENDS),
}
REAL: dict[str, tuple[Change, str, str]] = {  # what is done to numbers
    "zero": (lambda x: 0 * x, "are 0", "Pass them on."),
    "negated": (lambda x: -x, "are negated", "Keep the signs."),
    "one": (lambda x: 0 * x + 1, "are 1", "Pass them on."),
    "squared": (lambda x: x * x, "are squared", "Apply them once."),
    "root": (lambda x: x**0.5, "are replaced by their roots", "Use them as given."),
    "inverted": (lambda x: 1 / x, "are inverted: divided by for multiplied by, or the reverse", "Use them as given."),
    "absolute": (np.abs, "have lost their signs", "Keep the signs."),
    "logarithms": (np.log, "are replaced by their logarithms", "Use them as given."),
    "exponentials": (np.exp, "are replaced by their exponentials", "Use them as given."),
    "plus_one": (_more, "have 1 added", "Use them as given."),
    "from_one": (lambda x: 1 - x, "are subtracted from 1", "Use them as given."),
    "centered": (lambda x: x - x.sum(axis=-1, keepdims=True) / x.shape[-1], "have their mean subtracted", "Subtract nothing."),
    "standardized": (
        _standardized,
        "have their mean subtracted and are divided by their standard deviation, as by a LayerNorm",
        "Use them as given.",
    ),
    "softmaxed": (_softmax, "go through a softmax", "Use them as given."),
    "of_length_1": (partial(_normed, mean=False), "are divided by their length along the last axis", "Use them as given."),
    "of_mean_square_1": (
        partial(_normed, mean=True),
        "are divided by the root of their mean square along the last axis",
        "Use them as given.",
    ),
}
ACTIVATIONS: dict[str, Change] = {
    "silu": lambda x: x / (1 + np.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.log(1 + np.exp(x)),
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / 2**0.5)) / 2,
    "gelu_by_tanh": lambda x: x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x))) / 2,
}
REAL |= {
    name: (change, f"go through {name.replace('_', ' ')}", "Apply an activation only where the contract has one.")
    for name, change in ACTIVATIONS.items()
}
NORMS = "of_length_1", "of_mean_square_1"
TOGETHER = {"f": {name: REAL[name] for name in (*NORMS, *ACTIVATIONS)}}  # what is done to queries and keys
WITH_EPS = {
    f"{name}_eps_{eps:g}": (partial(_normed, mean="mean" in name, eps=eps), f"{REAL[name][1]}, with eps {eps:g}", REAL[name][2])
    for name in NORMS
    for eps in (1e-6, 1e-5)
}
TRUTH: dict[str, tuple[Change, str, str]] = {
    "inverted": (np.logical_not, "have True and False exchanged", "Invert it."),
    "padded_left": (lambda x: np.sort(x, axis=-1), "are read as if all padding stood on the left", PLACES),
    "padded_right": (lambda x: np.sort(x, axis=-1)[..., ::-1], "are read as if all padding stood on the right", PLACES),
}
CHANGES = {"i": WHOLE, "u": WHOLE, "f": REAL, "b": TRUTH}
AT_ENDS = {"i": ENDS_MOVED, "u": ENDS_MOVED}


def stages(question: Question, got: np.ndarray | None = None) -> Iterator[Iterator[Named]]:
    """Changed numbers in an argument or in the result; then other orders and axes; then changes of first and last entries."""
    a = question.a
    arrays = {name: a[name] for name in question.op.given if isinstance(a.get(name), np.ndarray) and a[name].size > 1}
    groups = _groups(arrays)
    yield _numbers(question, got, arrays, groups)
    axes = (each for each in _axes(question, got, arrays) if not _grown(a, each[1]))
    yield chain(axes, fitted.along_heads(question, groups), _band(question, got), _of_a_sum(question))
    # eps comes later: beside large numbers nothing tells one eps from none
    normed = [("q_and_k", ["q", "k"])] * ({"q", "k"} <= arrays.keys()) + groups
    every = (each for called, names in normed for each in _changed(called, names, arrays[names[0]], {"f": WITH_EPS}))
    yield iter(every if got is None else fitted.first_that_fits(question, got, every))
    if got is None or in_several_places(question, got):
        yield (each for called, names in groups for each in _changed(called, names, arrays[names[0]], AT_ENDS))
    if question.right.ndim > 1 and question.kind in "iu":
        yield _of_result(ENDS_MOVED)


def in_16_bits(question: Question, got: np.ndarray) -> Iterator[Named]:
    """Positions, and all that is computed with them, in 16 bits, in the order of the specification. Float settings are in 16
    bits too, or kept as they are, as in torch, where they are numbers of Python."""
    a, remedy = question.a, "Keep positions, and what is computed with them, in float32."
    names = [name for name in PLACED if isinstance(a.get(name), np.ndarray)]
    settings = [name for name, value in a.items() if type(value) is float and name not in CONSTANTS]
    for bits, dtype in NARROW.items() if names and question.kind not in "iu" and question.right.size <= fitted.MOST else ():
        bug = f"positions, and all that is computed with them, are in {dtype}"
        kinds: tuple[tuple[str, str, list[str]], ...] = (
            (f"{dtype}_throughout", bug, settings),
            (f"{dtype}_settings_too", f"{bug}, and so are the settings", []),
        )
        every = (_mistake(name, partial(_in_16_bits, names, kept, bits), words, remedy) for name, words, kept in kinds)
        yield from fitted.first_that_fits(question, got, every)


def _in_16_bits(names: list[str], kept: list[str], bits: int, f: Any, a: Arguments) -> Any:
    way = rounding.Way(bits, bits, bits)
    held = {name: rounding.made(rounded_to(a[name], bits), way) for name in names}
    return rounding.run(f, a | held | {name: rounding.made(a[name], way) for name in kept}, way, bits, CONSTANTS)


def in_several_places(question: Question, got: np.ndarray) -> bool:
    """Whether three pairs of a row and a column are wrong: fewer would fit many mistakes at the ends of an axis."""
    wrong = ratios(got, question.right, question.tolerance[question.models[-1]]) > 1
    return int(np.count_nonzero(wrong.reshape(-1, *wrong.shape[-2:]).any(axis=0))) >= 3


def places(question: Question, got: np.ndarray) -> Iterator[Named]:
    """Positions whose start is added twice, that are off by one at an end, or read by heads. They are tried before measured
    positions."""
    arrays = {name: question.a[name] for name in question.op.given if name in PLACED and name in question.a}
    groups = _groups({name: p for name, p in arrays.items() if isinstance(p, np.ndarray) and p.size > 1})
    some = {"i": {"start_counted_twice": WHOLE["start_counted_twice"]}}
    some["i"] |= ENDS_MOVED if in_several_places(question, got) else {}
    yield from (each for called, names in groups for each in _changed(called, names, arrays[names[0]], some))
    yield from fitted.along_heads(question, groups)


def hypotheses(question: Question, got: np.ndarray | None = None) -> Iterator[Named]:
    """The hypotheses of all stages."""
    return chain.from_iterable(stages(question, got))


def _numbers(
    question: Question, got: np.ndarray | None, arrays: dict[str, np.ndarray], groups: list[tuple[str, list[str]]]
) -> Iterator[Named]:
    truth = question.kind == "b"  # few bits: factors of positions fit by accident
    for limit in (each for name, value in arrays.items() for each in _limited(name, value)):
        answer = question.answer(limit[0], limit[1].wrong)
        if got is None or (answer is not None and answer.shape == got.shape and fitted.explains(question, got, answer, CLOSE)):
            yield limit
    yield from (each for called, names in groups for each in _changed(called, names, arrays[names[0]], CHANGES))
    yield from _changed("q_and_k", ["q", "k"], arrays["q"], TOGETHER) if {"q", "k"} <= arrays.keys() else ()
    for one, other in combinations(arrays, 2):
        if arrays[one].shape == arrays[other].shape and arrays[one].dtype == arrays[other].dtype and "positions" not in one:
            yield from exchanged(one, other)
    yield from (each for name, value in arrays.items() if value.ndim == 1 and value.size > 2 for each in _joined(name, value))
    yield from _positions(question, arrays, truth)
    yield from shifts(question)
    if truth:
        yield _mistake("result_inverted", result(np.logical_not), "True and False of the result are exchanged", "Invert it.")
        return
    if got is not None and _at_limits(question, got):
        yield from clipped(got, question.right).items()
    most = got.max() if got is not None else np.nan
    if question.kind in "iu" and 1 < most < question.right.max():
        again = int(most) + 1
        words = f"the numbers of the result begin again at {again}"
        yield _mistake(f"result_modulo_{again}", result(lambda y: y % again), words, "Take no remainder.")
    if question.kind in "iu":
        yield from _with_fractions(question.right, got) if got is not None and got.shape == question.right.shape else ()
        for bits, dtype in NARROW.items():
            words = f"the result is held in {dtype}, which has {bits} bits for whole numbers"
            yield _mistake(f"result_in_{dtype}", _in_bits(bits), words, "Keep it in int32 or int64.")
    yield from _of_result(WHOLE if question.kind in "iu" else REAL)


def exchanged(one: str, other: str) -> Iterator[Named]:
    """One argument in the place of another, in each direction, and both exchanged."""
    for taken, place in ((one, other), (other, one)):
        wrong = using(**{place: lambda a, n=taken: a[n]})
        yield _mistake(f"{taken}_for_{place}", wrong, f"{taken} is used in the place of {place}", f"Pass {place}.")
    both = using(**{one: lambda a, n=other: a[n], other: lambda a, n=one: a[n]})
    words = f"{one} and {other} are exchanged"
    yield _mistake(f"{one}_and_{other}_exchanged", both, words, "Exchange them.")


def _with_fractions(right: np.ndarray, got: np.ndarray) -> Iterator[Named]:
    """The output itself, if its numbers have fractions, and rounding them gives whole numbers that are all right."""
    ways = {"down": np.floor, "towards 0": np.trunc, "up": np.ceil, "to the nearest": np.rint}
    way = next((words for words, change in ways.items() if (change(got) == right).all()), "")
    if way and len(np.unique(got % 1)) >= 3:
        bug = f"the numbers of the result have fractions; rounded {way}, they are right"
        yield _mistake("result_not_rounded", as_given(got), bug, f"Round {way}, and return integers.")


def _of_result(changes: dict[str, tuple[Change, str, str]]) -> Iterator[Named]:
    for name, (change, words, remedy) in changes.items():
        yield _mistake(f"result_{name}", result(change), f"the numbers of the result {words}", remedy)


def _limited(name: str, value: np.ndarray) -> Iterator[Named]:
    for low, high in LIMITS if value.dtype.kind == "f" else ():
        if low in (-np.inf, max(low, value.min())) and high in (np.inf, min(high, value.max())):
            words = " and ".join(f"at {word} {end:g}" for word, end in (("least", low), ("most", high)) if np.isfinite(end))
            limited = using(**{name: lambda a, low=low, high=high: np.clip(a[name], low, high)})
            yield _mistake(f"{name} {words}", limited, f"{name} are limited: {words}", "Use them as given.", "setting")


def _axes(question: Question, got: np.ndarray | None, arrays: dict[str, np.ndarray]) -> Iterator[Named]:
    """Other orders along an axis, and axes read as each other; none for one or two wrong bits, which fit an order by chance."""
    few = question.kind == "b"
    if few and got is not None and got.shape == question.right.shape and not in_several_places(question, got):
        return
    for name, value in {**arrays, "result": question.right}.items():
        yield from (_in_order(name, value, order, axis) for order, axis in _orders(value, few and name == "result"))
        yield from _mixed(name, value)
        for words, end in {"largest": np.max, "smallest": np.min}.items() if value.dtype.kind in "iu" else ():
            if (end(value, axis=0) != value[[0, -1]]).any(axis=tuple(range(1, value.ndim))).all():  # neither first nor last
                wrong = using(**{name: lambda a, n=name, end=end: np.zeros_like(a[n]) + end(a[n], axis=0)})
                bug = f"{name} are all the {words} of {'them' if value.ndim == 1 else 'the batch'}"
                yield _mistake(f"{name}_all_the_{words}", wrong, bug, ALONG)


def _grown(a: Arguments, mistake: Mistake) -> bool:
    """Whether changed sizes, such as frames, rows and columns, count far more places than before: too many to compute."""
    changed = {name: new(a) for name, new in getattr(mistake.wrong, "change", {}).items() if name not in PLACED}
    sizes = {name: x for name, x in changed.items() if x.ndim == 2 and x.dtype.kind in "iu"}
    return any(_counted(x) > GROWN * _counted(a[name]) for name, x in sizes.items())


def _counted(sizes: np.ndarray) -> Any:
    return np.prod(np.maximum(sizes, 1).astype(float), axis=-1).sum()


def _groups(arrays: dict[str, np.ndarray]) -> list[tuple[str, list[str]]]:
    """Each array alone, and arrays of one kind together: query_positions and key_positions, q_weight and k_weight."""
    kinds: dict[str, list[str]] = {}
    for name in arrays:
        kinds.setdefault(name.partition("_")[2], []).append(name)
    together = [(f"all_{kind}", names) for kind, names in kinds.items() if kind and len(names) > 1]
    return [(name, [name]) for name in arrays] + together


def _changed(called: str, names: list[str], value: np.ndarray, kinds: dict[str, Any]) -> Iterator[Named]:
    """The changes for numbers of this dtype, made in all of these arrays together."""
    for change, (changed, words, remedy) in kinds.get(value.dtype.kind, {}).items():
        wrong = changing(changed, *names)
        said = called.replace("all_", "all ").replace("_and_", " and ")
        yield _mistake(f"{called}_{change}", wrong, f"{said} {words}", remedy)


def _at_limits(question: Question, got: np.ndarray) -> bool:
    """Whether every wrong number is the smallest or largest of the output, and three different ones were expected there."""
    wrong = ratios(got, question.right, question.tolerance[question.models[-1]]) > 1
    ends = np.isin(got[wrong], (got.min(), got.max())).all()
    return bool(ends and all(len(np.unique(some)) >= 3 for some in (question.right[wrong], got[~wrong])))


def clipped(got: np.ndarray, right: Any = (-np.inf, np.inf)) -> dict[str, Mistake]:
    """The right result, clipped at the smallest or the largest number of the output, if right numbers lie beyond; else
    empty."""
    low, high = got.min(), got.max()
    beyond = 2.0**-20 * max(abs(low), abs(high))
    ends = low if np.min(right) < low - beyond else -np.inf, high if np.max(right) > high + beyond else np.inf
    if not np.isfinite(ends).any():
        return {}
    words = f"values are clipped at {' and '.join(f'{end:g}' for end in ends if np.isfinite(end))}"
    effect = "Right for small numbers; trained features and long texts have larger ones."
    return {"clipped": Mistake(result(lambda y: np.clip(y, *ends)), words, effect, "Do not clip.")}


def _band(question: Question, got: np.ndarray | None) -> Iterator[Named]:
    """A mask that sees, or hides, exactly the keys whose offset j - i is in one interval."""
    a = question.a
    placed = {"query_positions", "key_positions"} <= a.keys()
    if got is None or question.kind != "b" or not (placed or (got.ndim > 1 and got.shape[-1] == got.shape[-2])):
        return
    every = offsets(a, got)
    for chosen, are in ((got != 0, "seen"), (got == 0, "hidden")):
        some = every[chosen] if got.shape == every.shape else every
        first, last = some.min(initial=every.max()), some.max(initial=every.min())
        ends = {"from": first, "to": last} if are == "hidden" else {}
        ends |= {word: end for word, end, whole in (("from", first, every.min()), ("to", last, every.max())) if end != whole}
        others = {"from": every[every < first], "to": every[every > last]}
        nearest = {word: others[word][np.abs(others[word] - end).argmin()] for word, end in ends.items() if others[word].size}
        asked = {
            word: "" if abs(other - ends[word]) == 1 else f", next to which {other} was asked,"
            for word, other in nearest.items()
        }
        words = " ".join(f"{word} {end}{asked.get(word, '')}" for word, end in ends.items())
        low, high = ends.get("from", -np.inf), ends.get("to", np.inf)
        within = partial(_within, low=low, high=high, seen=are == "seen")
        if not chosen.any() or not ends or (within(question.op.spec, a) != (got != 0)).any():
            continue
        yield _mistake(
            "other_offsets", within, f"exactly the keys of the offsets j - i {words} are {are}", "Compare both ends."
        )
        return


def _within(f: Any, a: Arguments, low: float, high: float, seen: bool) -> np.ndarray:
    right = f(**a)
    every = offsets(a, right)
    return np.broadcast_to(((low <= every) & (every <= high)) == seen, right.shape)


def offsets(a: Arguments, got: np.ndarray) -> np.ndarray:
    """Key minus query, by position; by column and row if there are no positions."""
    if "key_positions" in a:
        return a.key_positions[..., None, :] - a.query_positions[..., :, None]
    return np.broadcast_to(np.arange(got.shape[-1]) - np.arange(got.shape[-1])[:, None], got.shape)


def _of_a_sum(question: Question) -> Iterator[Named]:
    """Gradients of what texts or heads share, such as keys or a table, that hold the gradient of the first or last alone."""
    name, right = next(iter(question.op.given), ""), question.right
    shape = np.shape(question.a.get(name, 0.0)) if "gradient" in question.op.tags else ()
    for axis, each in enumerate(("text", "head")) if len(shape) == 4 else ():
        sharing = shape[axis] // (right.shape[axis] if right.ndim == 4 else 1)
        for words, place in (("first", 0), ("last", sharing - 1)) if sharing > 1 else ():
            kept = (np.arange(shape[axis]) % sharing == place).reshape(-1, *[1] * (3 - axis))
            bug = f"of the {sharing} {each}s that share an entry the {words} alone has a part in its gradient, not all"
            called, remedy = f"gradient_of_the_{words}_{each}_alone", "Add up the gradients of all that share an entry."
            yield _mistake(called, changing(partial(np.multiply, kept), name), bug, remedy)


def _joined(name: str, value: np.ndarray) -> Iterator[Named]:
    """Integers that are added up in groups, as if boundaries were left out; lengths then keep their sum."""
    last = value.size - 1
    ways = {"after the first": [0, 1], "before the last": [0, last], "in pairs": [*range(0, last + 1, 2)]}
    for words, starts in ways.items() if value.dtype.kind in "iu" else ():
        wrong = changing(partial(np.add.reduceat, indices=starts), name)
        called = f"{name}_joined_{words.replace(' ', '_')}"
        yield _mistake(called, wrong, f"{name} {words} are added up and taken for one", "Use every boundary.")


def _in_bits(bits: int) -> Any:
    return result(lambda y: rounded(y, bits))


def _orders(value: np.ndarray, few: bool = False) -> Iterator[tuple[str, int]]:
    """The orders to try along each axis. For results of few bits, none that keeps one entry, except along texts and heads."""
    batches = max(value.ndim - 2, int(value.ndim == 2)) if few else value.ndim
    for axis, n in enumerate(value.shape if value.ndim in AXES else ()):
        for order in ORDERS if n > 1 else ():
            far = "_by_" in order and (few or axis < value.ndim - 2 or (axis == value.ndim - 1 > 1 and value.dtype.kind == "f"))
            one = order.startswith("all_the") and axis >= batches
            if n >= LEAST[order] and (order not in EVEN or n % 2 == 0) and not far and not one:
                yield order, axis


def _of(name: str, change: Change) -> Any:
    """The change, made in the result or in the argument of this name."""
    return result(change) if name == "result" else changing(change, name)


def _in_order(name: str, value: np.ndarray, order: str, axis: int) -> Named:
    (index, words, remedy), axis_name = ORDERS[order], AXES[value.ndim][axis]
    n = value.shape[axis]
    place = (slice(None),) * axis + (index(np.arange(n), n),)
    wrong = _of(name, lambda y: y[place])
    return _mistake(f"{name}_{axis_name}_{order}", wrong, f"the {axis_name.replace('_', ' ')} of {name} {words}", remedy)


def _heads_as_rows(y: Any) -> Any:
    return y.reshape(len(y), y.shape[2], y.shape[1], y.shape[3]).swapaxes(1, 2)


def _rows_as_heads(y: Any) -> Any:
    return y.swapaxes(1, 2).reshape(*y.shape)


def _reshaped(y: Any, axes: tuple[int, ...]) -> Any:
    """Numbers whose axes have another order in memory, read as if they had this one."""
    return np.transpose(y.reshape([y.shape[axis] for axis in axes]), np.argsort(axes))


def _rewritten(y: Any, axes: tuple[int, ...]) -> Any:
    """Numbers written with their axes in another order, read as if they had this one."""
    return np.transpose(y, axes).reshape(y.shape)


RESHAPED = (
    ("reshaped", _reshaped, "stood as ({}) in memory"),
    ("by_columns", _rewritten, "were written as ({}) without a change of shape"),
)


def _in_memory(ndim: int) -> list[tuple[int, ...]]:
    """Other orders that axes may have in memory: any for two or three axes; for four, the last two exchanged."""
    return [axes for axes in permutations(range(ndim)) if axes != (*range(ndim),) and (ndim < 4 or axes[:2] == (0, 1))]


def _mixed(name: str, value: np.ndarray) -> Iterator[Named]:
    """Axes that are read as each other, such as heads and rows, and a square that is transposed."""
    if value.ndim == 4 and value.shape[1] > 1 < value.shape[2]:
        heads, rows = value.shape[1:3]
        for mixed, words, change in (
            ("heads_and_rows", "(batch, heads, n, d) is read as (batch, n, heads, d)", _heads_as_rows),
            ("rows_and_heads", "(batch, n, heads, d) is read as (batch, heads, n, d)", _rows_as_heads),
        )[: 1 + (heads != rows)]:
            wrong = _of(name, change)
            remedy = "Transpose it: a view of another shape moves no numbers."
            yield _mistake(f"{name}_{mixed}_mixed", wrong, f"{name} {words} without a transposition", remedy)
    for axes in _in_memory(value.ndim):
        moved = [axis for axis in range(value.ndim) if axes[axis] != axis]
        before, after = ([value.shape[axis] for axis in each] for each in (moved, [axes[axis] for axis in moved]))
        for called, reshape, words in RESHAPED if before != after and min(before) > 1 else ():
            wrong = _of(name, partial(reshape, axes=axes))
            bug = f"{name} is read as if its axes {tuple(before)} {words.format(', '.join(map(str, after)))}"
            part = "" if moved == [value.ndim - 2, value.ndim - 1] else f"axes_{''.join(map(str, axes))}_"
            yield _mistake(f"{name}_{part}{called}", wrong, bug, "Exchange axes by a transposition, not by a reshape.")
    if value.ndim > 1 and value.shape[-1] == value.shape[-2] > 1:
        wrong = _of(name, lambda y: y.swapaxes(-1, -2))
        yield _mistake(f"{name}_transposed", wrong, f"the last two axes of {name} are exchanged", "Transpose it.")


def arrangements(question: Question, got: np.ndarray) -> Iterator[Named]:
    """The right numbers in another shape: other axes, heads merged into the features, or another length of one axis."""
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
        if got.shape == (*shape[:axis], got.shape[axis], *shape[axis + 1 :]) and 0 < got.shape[axis] != shape[axis]:
            yield from _other_length(question, got, axis, name)


def _other_length(question: Question, got: np.ndarray, axis: int, name: str) -> Iterator[Named]:
    """One axis of another length: a part of the right entries, these among others, or those of inputs padded with zeros."""
    size, n = got.shape[axis], question.right.shape[axis]
    right, bound, gauge = question.right, 2 * question.tolerance[question.models[-1]], question.gauge
    some = lambda y, first: np.take(y, range(first, first + min(size, n)), axis=axis)  # noqa: E731
    ours = f"the {size} {name} of the result are {name}"
    for first in (i for i in range(n - size + 1) if distance(got, some(right, i), some(bound, i), gauge) <= 1):
        part = f"{first} to {first + size - 1}"
        change, words = partial(np.take, indices=range(first, first + size), axis=axis), f"of the right {n}"
        yield _arranged(f"{name} {part}", change, f"{ours} {part} {words}", "Return all, or ask for a part.")
    among = [i for i in range(size - n + 1) if distance(some(got, i), right, bound, gauge) <= 1]
    for first in among if len(np.unique(right)) > 2 else ():
        part, words = f"{first} to {first + n - 1}", f"of the {size} {name} of the result"
        change = partial(_among, got, first, axis)
        yield _arranged(f"{name} {part} of {size}", change, f"{words} {part} are the right {n}", f"Return these {name} alone.")
    padded = _of_tokens(question)
    for first in range(max(n - size, 0) + 1, n + 1) if padded else ():
        part = f"{first} to {first + size - 1}"
        words = f"{ours} {part} of inputs followed by zeros; {name} 0 to {n - 1} are asked for"
        from_the_end = range(first - n - size, first - n)
        wrong = partial(_of_padded, padded, size, partial(np.take, indices=from_the_end, axis=axis))
        yield _mistake(f"result_{name}_{part} of padded inputs".replace(" ", "_"), wrong, words, ENDS)


def _among(got: np.ndarray, first: int, axis: int, y: Any) -> Any:
    """The right entries from `first` on, with the other entries of the output around them."""
    before, _, behind = np.split(got, [first, first + y.shape[axis]], axis=axis)
    return np.concatenate([before, y, behind], axis=axis)


def _of_tokens(question: Question) -> dict[str, int]:
    """The token axis of each array that has one; empty if one of these holds integers, such as positions: no zeros follow
    them."""
    labels = labels_of(question.op, question.a)
    found = {name: labels[name].index("tokens") for name in question.op.given if "tokens" in labels.get(name, ())}
    return found if all(question.a[name].dtype.kind == "f" for name in found) else {}


def _of_padded(padded: dict[str, int], size: int, change: Change, f: Any, a: Arguments) -> Any:
    zeros = {name: 0 * np.take(a[name], [0] * size, axis=axis) for name, axis in padded.items()}
    return change(f(**a | {name: np.concatenate([a[name], zeros[name]], axis=axis) for name, axis in padded.items()}))


def _arranged(name: str, change: Callable[[Any], Any], words: str, remedy: str) -> Named:
    return _mistake(f"result_{name}".replace(" ", "_"), lambda f, a: change(f(**a)), words, remedy)


def _same_beyond(question: Question, name: str, shift: int) -> bool:
    """Whether positions moved by one more give the same result: then the size of the shift is unknown."""
    moved = (question.a | {name: question.a[name] + by} for by in (shift, shift + (1 if shift > 0 else -1)))
    return np.array_equal(*(question.op.spec(**each) for each in moved))


def _positions(question: Question, arrays: dict[str, np.ndarray], truth: bool) -> Iterator[Named]:
    """Positions of one argument shifted against the other; all multiplied, divided or clipped; or summed over the batch."""
    names, powers = [name for name in arrays if name in POSITIONS or name == "coordinates"], () if truth else POWERS
    lengths: dict[str, Callable[[Arguments], int]] = {}
    lengths |= {f"the number of {name.removesuffix('_positions')} positions": partial(_length, name) for name in names}
    if len(lengths) == 2 and names[0] != "offsets":
        lengths["the length of the cache"] = lambda a: abs(_length(names[0], a) - _length(names[1], a))
    shifts = {of(question.a): (words, of) for words, of in lengths.items() if of(question.a) > 1}
    for name in names if len(names) == 2 else ():
        for size, (words, of) in shifts.items():
            for sign, side in ((1, "large"), (-1, "small")):
                if truth and _same_beyond(question, name, sign * size):
                    continue
                yield _mistake(
                    f"{name}_{'plus' if sign > 0 else 'minus'}_{size}",
                    using(**{name: lambda a, n=name, s=sign, of=of: a[n] + s * of(a)}),
                    f"{name} are too {side} by {size}, {words}, against the others",
                    "Count queries and keys from the same start.",
                )
    slots = {size: name for name, size in question.a.items() if type(size) is int and size > 1 and not name.startswith("n_")}
    for some in (names, *([name] for name in names if len(names) == 2)):
        for size, setting in slots.items() if names else ():
            bug = f"{' and '.join(some)} are taken modulo {size}, {setting}, as the slots of a ring buffer are"
            wrong = changing(partial(_modulo, size), *some)
            yield _mistake(f"{'_and_'.join(some)}_modulo_{size}", wrong, bug, "Compare positions, not the slots of the cache.")
    for start in names if len(names) == 2 else ():
        first = using(**{name: lambda a, n=name, s=start: a[n] - a[s][..., :1] for name in names})
        yield _mistake(
            f"all_positions_from_the_first_of_{start}", first, f"positions are counted from the first of {start}", COUNT
        )
    for shift in (2, 3, -2, -3) if len(names) == 1 else ():
        moved = changing(partial(np.add, shift), names[0])
        words = f"{names[0]} are too {'large' if shift > 0 else 'small'} by {abs(shift)}"
        name = f"{names[0]}_{'plus' if shift > 0 else 'minus'}_{abs(shift)}"
        yield _mistake(name, moved, words, "Use them as given.", "setting")
    if powers and names and all(arrays[name].dtype.kind in "iu" and arrays[name].min() == 0 for name in names):
        least = changing(partial(np.maximum, 1), *names)
        yield _mistake(f"{' and '.join(names)} at least 1", least, "position 0 is taken for 1", "Use 0 as given.", "setting")
    for power in powers if names else ():
        for words, change in (
            ("times", lambda p, c: p * int(c)),
            ("over", lambda p, c: p / c),
            ("whole_over", lambda p, c: p // int(c)),
        ):
            wrong = changing(partial(change, c=power), *names)
            said = {"times": "multiplied by", "over": "divided by", "whole_over": "divided, and rounded down, by"}[words]
            bug, remedy = f"positions are {said} {power:g}", "Use the positions that are given."
            yield _mistake(f"positions_{words}_{power:g}", wrong, bug, remedy, "setting")
    if powers and names == ["coordinates"] and arrays["coordinates"].ndim == 2:
        yield from _stretched(arrays["coordinates"].shape[1])
        for called, (read, words) in READ_AS_ONE.items() if arrays["coordinates"].shape[1] > 1 else ():
            wrong = using(coordinates=lambda a, f=read: f(a.coordinates))
            yield _mistake(f"coordinates_{called}", wrong, f"each axis reads {words}", "Read the coordinate of the axis.")
    for name in names:
        if arrays[name].ndim > 1 and arrays[name].shape[0] > 1:
            wrong = changing(lambda p: np.broadcast_to(p.sum(axis=0), p.shape), name)
            yield _mistake(f"{name}_summed_over_batch", wrong, f"{name} are summed over the batch", "Keep the batch axis.")


READ_AS_ONE: dict[str, tuple[Change, str]] = {  # of each place (axes,)
    "summed": (lambda c: 0 * c + c.sum(axis=-1, keepdims=True), "the sum of all coordinates"),
    "all_the_largest": (lambda c: 0 * c + c.max(axis=-1, keepdims=True), "the largest coordinate"),
    "all_the_row": (lambda c: 0 * c + np.arange(len(c))[:, None], "the number of the token"),
    "less_the_first_axis": (
        lambda c: np.concatenate([c[:, :1], c[:, 1:] - c[:, :1]], axis=-1),
        "its coordinate less that of axis 0, which alone is as given",
    ),
}


def _modulo(size: int, p: Any) -> Any:
    return p % size


def _length(name: str, a: Arguments) -> int:
    return int(a[name].shape[-1])


def _stretched(axes: int) -> Iterator[Named]:
    """One of several coordinates times a ratio of small numbers, as with another frame rate."""
    for axis in range(axes) if axes > 1 else ():
        for factor in RATIOS:
            one = 1 + (factor - 1) * (np.arange(axes) == axis)
            words = f"column {axis} of coordinates is multiplied by {factor:.6g}"
            wrong = using(coordinates=lambda a, c=one: a.coordinates * c)
            yield _mistake(f"coordinates_column_{axis}_times_{factor:.6g}", wrong, words, "Use them as given.")


def _measured(got: np.ndarray, right: np.ndarray) -> float:
    """The factor from answer to output, as the larger elements show it, since 16-bit bounds accept other factors; NaN if
    none."""
    size = np.abs(right)
    if got.shape != right.shape or not np.isfinite(size).all() or not size.any():
        return np.nan
    large = size >= np.median(size[size > 0])
    with np.errstate(all="ignore"):
        return float(np.median(got[large] / right[large]))


def shifts(question: Question) -> Iterator[Named]:
    """The right integers plus another integer, or plus the number of True or False in each row of a mask."""
    if question.kind in "iu":
        yield from (_shift(words, shift) for words, shift in _shifts(question.a).items())
        masks = {name: x for name, x in question.a.items() if isinstance(x, np.ndarray) and x.dtype.kind == "b" and x.ndim == 2}
        for name, x in masks.items():
            if x.shape == question.right.shape and np.ptp(x.sum(axis=-1)):  # of one number others may be the cause
                yield from _row_shifts(name)


def _row_shifts(name: str) -> Iterator[Named]:
    """The number of True or False in each row of a mask, added or subtracted everywhere or only where the mask is True."""
    for sign, verb in ((1, "added"), (-1, "subtracted")):
        for of, entry in ((True, "True"), (False, "False")):
            for everywhere, where in ((True, ""), (False, f", where {name} is True")):

                def wrong(f: Any, a: Arguments, sign: int = sign, of: bool = of, everywhere: bool = everywhere) -> Any:
                    return f(**a) + sign * (a[name] == of).sum(axis=-1, keepdims=True) * (a[name] | everywhere)

                words = f"in each row the number of {entry} in {name} is {verb}{where}"
                yield _mistake(f"number_of_{entry}_{verb}{'' if everywhere else '_where_True'}", wrong, words, COUNT)


def _shifts(a: Arguments) -> dict[str, int]:
    """Integers of the question by which integer results may be off."""
    sizes = {name: value for name, value in a.items() if type(value) is int and abs(value) > 1}
    if "n_key" in sizes and "n_query" in sizes:
        sizes["the length of the cache"] = sizes["n_key"] - sizes["n_query"]
    return {"1": 1, "-1": -1, **sizes, **{f"-{name}": -size for name, size in sizes.items()}}


def _shift(words: str, shift: int) -> Named:
    wrong = result(lambda y: y + shift)
    return _mistake(f"result_plus_{shift}", wrong, f"the result has {words} added to it", "Remove what is added.")


def with_a_factor(question: Question, got: np.ndarray) -> Iterator[Named]:
    """Each mistake that this data shows, and each step left out or repeated, times a known factor that fits the output."""
    known = {} if question.kind in "iu" else fitted.factors(question.a)
    mistakes = {name: question.op.mistakes[name] for name in question.shown()} if known else {}
    mistakes |= fitted.of_steps(question.op.spec, question.a) if known else {}
    for name, mistake in mistakes.items():
        answer = question.answer(name, mistake.wrong)
        if answer is None or answer.shape != question.right.shape or _multiple(answer, question.right):
            continue  # a factor twice is any number
        measured = _measured(got, answer)
        for words, factor in known.items():
            if abs(measured - factor) <= 2**-6 * abs(factor):
                other, times = fitted.times("result", words, factor)
                yield f"{name} and {other}", together(mistake, times)


def _multiple(answer: np.ndarray, right: np.ndarray) -> bool:
    """Whether a wrong answer is the right answer times a number."""
    size = np.abs(right)
    with np.errstate(all="ignore"):
        factor = answer.ravel()[size.argmax()] / right.ravel()[size.argmax()]
        return bool(np.abs(answer - factor * right).max() <= 2**-20 * np.abs(answer).max())


ROW = "in each row all numbers have the same error"
REMOVED = ", which a softmax over the row removes"


def relation(question: Question, got: np.ndarray, model: str) -> str:
    """A relation of the output to the right answer, over all elements or over the wrong entries of one axis; else ""."""
    right, bound = question.right, np.broadcast_to(question.tolerance[model], question.right.shape)
    if got.shape != right.shape or (said := _relation(question, got, right, bound)):
        return said if got.shape == right.shape else ""
    wrong = ratios(got, right, bound) > 1
    for axis in range(wrong.ndim - 1):
        part = np.flatnonzero(wrong.any(axis=tuple(i for i in range(wrong.ndim) if i != axis)))
        if 0 < len(part) < wrong.shape[axis]:
            said = _relation(question, *(y.take(part, axis) for y in (got, right, bound)))
            return said and f"there {said}"
    return ""


def _relation(question: Question, got: np.ndarray, right: np.ndarray, bound: np.ndarray) -> str:
    """A common factor or difference, limits, or a factor or difference that depends only on some axes."""
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
            return ROW + (_runs(shift.ravel()) if question.kind in "iu" and right.ndim == 2 else REMOVED)
    limits = [*clipped(got, right).items()]
    for _, mistake in limits if len(np.unique(got)) >= 3 and right.size > got.size // 2 else ():
        if distance(got, np.asarray(mistake.wrong(lambda: right, {})), 2 * bound) <= 1:
            return mistake.bug
    return "" if np.isin(right, (0, 1)).all() else _depends(question, got, right, bound)


def _runs(shift: np.ndarray) -> str:
    """Words for runs of rows that are off by one number each; "" for more than four runs.

    >>> _runs(np.array([0.0, -1, -1, 2]))
    ': -1 in rows 1 to 2, +2 in row 3'
    """
    ends = [0, *np.flatnonzero(np.diff(shift)) + 1, len(shift)]
    runs = [(shift[i], i, j - 1) for i, j in pairwise(ends) if shift[i]]
    said = [f"{by:+g} in row{'s' * int(j > i)} {f'{i} to {j}' if j > i else i}" for by, i, j in runs]
    return f": {', '.join(said)}" if len(said) < 5 else ""


def _depends(question: Question, got: np.ndarray, right: np.ndarray, bound: np.ndarray) -> str:
    """The axes on which alone a factor or a difference depends: one number per head, or per row and column."""
    called = names(question)
    for kept, words, numbers in dependent(got, right, bound):
        shown = f"{numbers.min():.3g} to {numbers.max():.3g}"
        if kept == (*range(right.ndim - 1),):
            return f"each row is the right one {words} a number of its own, {shown}"
        each = " and ".join(called[axis].removesuffix("s") for axis in kept)
        if len(kept) == 1 and numbers.size <= SHOWN:
            shown = ", ".join(f"{number:.4g}" for number in numbers.ravel())
        return f"every number is the right one {words} what depends on {each} alone, {shown}"
    return ""


def dependent(got: np.ndarray, right: np.ndarray, bound: np.ndarray) -> Iterator[tuple[tuple[int, ...], str, np.ndarray]]:
    """Factors ("times") or differences ("plus") that give the output and depend on some axes alone: the axes, which, and the
    numbers."""
    bound = 2 * (bound + 2.0**-22 * np.abs(right))
    for kept in (each for n in range(1, right.ndim) for each in combinations(range(right.ndim), n)):
        others = tuple(axis for axis in range(right.ndim) if axis not in kept)
        if np.ptp(right, axis=others).min() == 0 or np.prod([right.shape[axis] for axis in others]) < 3:
            continue  # fewer numbers have some factor
        with np.errstate(all="ignore"):
            factors = (got * right).sum(axis=others, keepdims=True) / (right * right).sum(axis=others, keepdims=True)
            shifts = (got - right).mean(axis=others, keepdims=True)
        for words, numbers, made in (("times", factors, factors * right), ("plus", shifts, right + shifts)):
            most = bound * np.maximum(1, np.abs(numbers)) if words == "times" else bound
            telling = len(np.unique(numbers)) > 1 and (words == "plus" or not np.isin(numbers, (0, 1)).all())
            if telling and np.isfinite(made).all() and distance(got, made, most) <= 1:
                yield kept, words, numbers


def _mistake(name: str, wrong: Any, bug: str, remedy: str, kind: str = "general") -> Named:
    return name, Mistake(wrong, bug, remedy=remedy, kind=kind)
