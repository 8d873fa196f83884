"""Fitted: factors and shifts solved from the output, steps that run twice or not at all, arrays read along other axes.

Least squares over all elements solve a number, for the result first, then for each argument and setting. The number is named if
there are three different values, if it explains the errors, and if every element is within its bound.
"""

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, permutations
from typing import Any

import numpy as np

from posref.check.engine import CONSTANTS, NO_ANSWER, Named, Question, ratios
from posref.ops import Arguments, Mistake, changing, result, using
from posref.ops.variation import steps, varied
from posref.vectors.models import rms

DIGITS = (1, 2, 3, 4, 6)
MORE = 9  # digits that are asked at last: what is known, or an edit, says more
STARTS = np.array([sign * 2.0**power for power in range(-7, 8) for sign in (1, -1)])
EXPLAINED = 2  # bits by which errors against a fitted answer are smaller than those against the right one
EVIDENCE = 16  # bits of all different values together, but for that which the number is fitted to
ROUNDS = 6  # of Newton's method
PRODUCT = 2.0**-24  # rounding of one product in float32
LEAST = 2.0**-20  # of numbers: what is nearer to 0 is 0
MOST = 2**15  # elements of a result whose arguments are solved for
POWERS = (2.0, 3.0, 4.0, 8.0, 10.0, 16.0, 100.0, 1000.0)

Vary = Callable[[float], dict[str, Any]]


def factors(a: Arguments) -> dict[str, float]:
    """Factors by which a number may be wrong, by their words; of equal factors only the first."""
    known, seen = _factors(a), dict[float, str]()
    for words, factor in known.items():
        seen.setdefault(round(factor, 9), words)
    return {words: known[words] for words in seen.values()}


def factor(words: str, number: float) -> Callable[[Arguments], float]:
    """A function that returns the factor with these words for any arguments, such as the width of an array."""
    return lambda a: _factors(a).get(words, number)


def _factors(a: Arguments) -> dict[str, float]:
    found = {"-1": -1.0, "1/2": 0.5, "log2 e": np.log2(np.e), "ln 2": np.log(2.0), "1/10": 0.1, "1 / ln 10": 1 / np.log(10)}
    found |= {"2 pi": 2 * np.pi, "1 / 2 pi": 0.5 / np.pi} | {f"1/{power}": 1 / power for power in (4, 8, 16)}
    found |= {f"{power:g}": power for power in POWERS}
    for name, value in sorted(a.items(), key=lambda each: np.ndim(each[1])):  # what was asked for comes before widths
        shape, kind = np.shape(value), getattr(getattr(value, "dtype", None), "kind", "f")  # or a number with its error
        if len(shape) > 1 and kind == "f" and shape[-1] > 1:
            width, of = shape[-1], f"the width of {name}"
            found |= {f"root of {of}": width**0.5, f"1 / root of {of}": width**-0.5, of: float(width), f"1 / {of}": 1 / width}
        elif name in ("scale", "dim", "heads", "head_dim") and type(value) in (int, float) and value not in (0, 1):
            found |= {f"{name}": float(value), f"1 / {name}": 1 / value}
            found |= {f"root of {name}": value**0.5, f"1 / root of {name}": value**-0.5} if value > 0 else {}
    for s in (2, 4, 8, 16, 32, 40, 64):
        found |= {f"YaRN's magnitude for factor {s}": 0.1 * np.log(s) + 1}
        found |= {f"the square of YaRN's magnitude for factor {s}": (0.1 * np.log(s) + 1) ** 2}
    return found


def of_result(question: Question, got: np.ndarray, digits: tuple[int, ...] = DIGITS) -> Iterator[Named]:
    """The result times a number, or plus a number."""
    if not _telling(question, got):
        return
    right = question.right
    bound = question.tolerance[question.models[-1]] + PRODUCT * np.abs(right)  # of what is only looked up nothing is rounded
    with np.errstate(all="ignore"):
        weight = np.where((bound > 0) & (right != 0), 1 / bound, 0.0) ** 2
        measured = float((weight * got * right).sum() / (weight * right * right).sum())
    shift = float(np.median(got - right))
    if np.isfinite(measured) and explains(question, got, measured * right):
        every = (times("result", *known) for known in _plain(measured, factors(question.a), digits))
        yield from first_that_fits(question, got, every)
    elif shift and explains(question, got, right + shift):
        every = (_plus("result", number, result(partial(np.add, number))) for number in _rounded(shift, digits))
        yield from first_that_fits(question, got, every)


def of_inputs(question: Question, got: np.ndarray) -> Iterator[Named]:
    """The result with an input added, subtracted or multiplied: a residual, a gate, or the bias of another step."""
    arrays = {name: x for name, x in question.a.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.size > 2}
    changes = {"added to": np.add, "subtracted from": np.subtract, "multiplied with": np.multiply}
    for name, x in arrays.items() if _telling(question, got) else ():
        if x.shape != got.shape[got.ndim - x.ndim :]:
            continue
        for words, change in changes.items():
            if explains(question, got, change(question.right, x)):
                called, bug = f"{name}_{words.split()[0]}", f"{name} is {words} the result"
                yield _mistake(called, result(partial(_with_input, name=name, change=change)), bug)


def _with_input(y: Any, a: Arguments, *, name: str, change: Any) -> Any:
    return change(y, a[name])


def hypotheses(question: Question, got: np.ndarray) -> Iterator[Named]:
    """All hypotheses of this module: steps, settings, the result, inputs and arrays."""
    yield from of_steps(question.op.spec, question.a)
    for of in (of_settings, of_result, of_inputs, of_arrays):
        yield from of(question, got)


def of_settings(question: Question, got: np.ndarray) -> Iterator[Named]:
    """Each float setting times a number solved from the output; bases and factors are found elsewhere."""
    names = [name for name, value in question.a.items() if type(value) is float and value and name not in CONSTANTS]
    yield from _of_arguments(question, got, names)


def of_arrays(question: Question, got: np.ndarray) -> Iterator[Named]:
    """Each array times a number, or plus a number, solved from the output."""
    arrays = {name: question.a[name] for name in question.op.given if isinstance(question.a.get(name), np.ndarray)}
    yield from _of_arguments(question, got, [name for name, value in arrays.items() if value.dtype.kind == "f"])


def _of_arguments(question: Question, got: np.ndarray, names: list[str]) -> Iterator[Named]:
    if _telling(question, got) and question.right.size <= MOST:
        known = factors(question.a)
        yield from (each for name in names for each in _of_argument(question, got, name, known))


def _of_argument(question: Question, got: np.ndarray, name: str, known: dict[str, float]) -> Iterator[Named]:
    value = question.a[name]
    measured = _solved(question, got, lambda c: {name: c * value}, 1.0)
    shift = _solved(question, got, lambda c: {name: value + c}, 0.0) if measured is None and np.ndim(value) else None
    if measured is not None:
        every = (times(name, *each) for each in _plain(measured, known))
        yield from first_that_fits(question, got, every)
    elif shift is not None:
        every = (_plus(name, c, changing(partial(np.add, c), name)) for c in _rounded(shift))
        yield from first_that_fits(question, got, every)


def first_that_fits(question: Question, got: np.ndarray, every: Iterator[Named]) -> list[Named]:
    """The first hypothesis that is named for this output, in a list; `every` begins with the fewest digits."""
    return next(([each] for each in every if question.names(got, each)), [])


def _rounded(number: float, digits: tuple[int, ...] = DIGITS) -> list[float]:
    return [float(f"{number:.{each}g}") for each in digits]


def _telling(question: Question, got: np.ndarray) -> bool:
    """Whether output and right answer are finite and have three different values each: fewer values fit some number by
    chance."""
    right = question.right
    if got.shape != right.shape or not np.isfinite(got).all() or not np.isfinite(right).all():
        return False
    if question.kind != "f":
        return False
    return min(len(np.unique(got)), len(np.unique(right))) >= 3


def explains(question: Question, got: np.ndarray, answer: np.ndarray, bits: int = EXPLAINED) -> bool:
    """Whether errors against an answer are this many bits smaller than against the right one, over enough values."""
    bound = question.tolerance[question.models[-1]] + PRODUCT * np.abs(answer)
    with np.errstate(all="ignore"):
        before, after = rms(ratios(got, question.right, bound)), rms(ratios(got, answer, bound))
        times_less = np.log2(before / max(after, 2.0**-24 * before))
    return bool(times_less >= bits and (len(np.unique(question.right)) - 1) * times_less >= EVIDENCE)


def _plain(measured: float, known: dict[str, float], digits: tuple[int, ...] = DIGITS) -> Iterator[tuple[str, float]]:
    """What a measured factor may be: a known factor, or the number in few digits."""
    yield from (each for each in known.items() if abs(each[1] - measured) <= 2.0**-6 * abs(measured))
    for number in _rounded(measured, digits):
        if number == float(f"{measured:.6g}"):
            yield from ratio(measured)
        if f"{number:.6g}" not in ("0", "1") and abs(number - measured) <= 2.0**-8 * abs(measured):
            yield f"{number:g}{_dropout(number)}", number


def ratio(number: float) -> list[tuple[str, float]]:
    """The ratio n / (n + 1) or n / (n - 1) of whole numbers that is nearest to a number near 1, with its words.

    >>> ratio(1.001001)
    [('1000/999', 1.001001001001001)]
    """
    n = round(number / (1 - number)) if 2.0**-14 < abs(1 - number) < 1 / 8 else 0
    near = n not in (0, -1) and abs(n / (n + 1) - number) < 2.0**-20
    return [(f"{abs(n)}/{abs(n + 1)}", n / (n + 1))] if near else []


def _dropout(factor: float) -> str:
    """Words for 1 / (1 - p), the factor of dropout, if p has two digits.

    >>> _dropout(1 / 0.9)
    ', 1 / (1 - 0.1)'
    """
    share = float(f"{1 - 1 / factor:.2g}")
    return f", 1 / (1 - {share:g})" if 0 < share < 1 and abs(1 - share - 1 / factor) < 2.0**-18 else ""


def _solved(question: Question, got: np.ndarray, vary: Vary, none: float) -> float | None:
    """The number for which `vary` gives the output, by Newton's method from the best start; None if there is none."""
    weight = 1 / np.maximum(question.tolerance[question.models[-1]], np.finfo(float).tiny)

    def error(number: float) -> np.ndarray:
        try:
            with np.errstate(all="ignore"):
                y = np.real(np.asarray(question.op.spec(**question.a | vary(number)), dtype=float))
        except NO_ANSWER:
            return np.full(got.shape, np.nan)
        return weight * (got - y) if y.shape == got.shape else np.full(got.shape, np.nan)

    def size(errors: np.ndarray) -> float:
        with np.errstate(all="ignore"):
            return rms(errors) if np.isfinite(errors).all() else np.inf

    first = size(error(none))
    if not np.isfinite(first):
        return None
    for number in (none, min(STARTS, key=lambda c: size(error(c)))):
        for _ in range(ROUNDS):
            here, step = error(number), 2.0**-16 * max(abs(number), 2.0**-6)
            slope = (error(number + step) - here) / step
            with np.errstate(all="ignore"):
                change = -(here * slope).sum() / (slope * slope).sum()
            if not np.isfinite(change) or size(error(number + change)) >= size(here):
                break
            number += float(change)
        if 2**EXPLAINED * size(error(number)) <= first and LEAST < abs(number) < 1 / LEAST:
            fitted = got - error(number) / weight
            return number if explains(question, got, fitted) else None
    return None


def times(name: str, words: str, number: float) -> Named:
    """The result or an argument times a number; `words` are those of `factors`, or the number itself."""
    measured, of = words.startswith(f"{number:g}"), factor(words, number)
    shown = f"{number:.9g}" if measured else f"{number:.6g}"
    called = {"-1": "negated", "2": "doubled", "1/2": "halved"}.get(words, f"times {shown}")
    wrong = result(lambda y, a: of(a) * y) if name == "result" else using(**{name: lambda a: of(a) * a[name]})
    said = words if measured else f"{shown}, {words}"
    changed = "the result is" if name == "result" else f"{name} is"
    return _mistake(f"{name}_{called}".replace(" ", "_"), wrong, f"{changed} multiplied by {said}")


def _plus(name: str, number: float, wrong: Any) -> Named:
    return _mistake(f"{name}_plus_{number:.9g}", wrong, f"{number:.6g} is added to {name.replace('result', 'the result')}")


def _mistake(name: str, wrong: Any, bug: str, remedy: str = "Look for what is applied once too often, or not at all.") -> Named:
    return name, Mistake(wrong, bug, remedy=remedy, kind="general")


def of_steps(f: Any, a: Arguments) -> Iterator[Named]:
    """A step of the formula that is applied twice or left out, in all its calls or in one of them; two steps in the other
    order."""
    named = {id(value): name for name, value in a.items() if isinstance(value, np.ndarray)}
    called = {step: calls for step in _own_steps(f) if (calls := _calls(f, a, step))}
    for step, calls in called.items():
        sets = [("", range(len(calls)))] + [
            (f"_for_{named.get(id(x), i + 1)}", [i]) for i, (x, _) in enumerate(calls) if 1 < len(calls) < 6
        ]
        for where, some in sets:
            said, place = step.__name__.strip("_"), where.replace("_", " ")
            for what, words in (("twice", "applied twice"), ("left_out", "left out")):
                wrong = _changed_step(step, {*some}, what == "twice")
                remedy = "Apply it once: look where it is done before, or where its result is dropped."
                yield _mistake(f"{said}_{what}{where}", wrong, f"the step {said} is {words}{place}", remedy)
    for first, second in permutations(called, 2):
        if any(np.array_equal(y, x) for _, y in called[first] for x, _ in called[second]):
            one, other = (step.__name__.strip("_") for step in (first, second))
            bug, remedy = f"the step {other} comes before the step {one}, not after it", f"Apply {one} first, then {other}."
            yield _mistake(f"{other}_before_{one}", partial(_exchanged, first, second), bug, remedy)


def _own_steps(f: Any) -> list[Any]:
    found = [step for step in steps(f) if not step.__module__.startswith(("posref._", "posref.ops.common", "posref.check"))]
    bodies = [inspect.unwrap(step) for step in found if hasattr(step, "__wrapped__")]
    own = [step for step in found if step not in bodies and not step.__module__.startswith("posref.ops")]
    return own + [step for step in found if step not in (*bodies, *own) and not {*own} & {*steps(step)}]


def _calls(f: Any, a: Arguments, step: Any) -> list[tuple[Any, Any]]:
    """The first arguments and results of the calls of a step; empty if it changes a shape, or has two arrays of its shape."""
    found, other = list[tuple[Any, Any]](), list[tuple[Any, Any]]()

    def recorded(*x: Any, **named: Any) -> Any:
        y = step(*x, **named)
        like = [v for v in (*x, *named.values()) if getattr(v, "dtype", None) == np.float64 and v.shape == np.shape(y)]
        (found if len(like) == 1 and x and like[0] is x[0] else other).append((x[0] if x else None, y))
        return y

    try:
        with np.errstate(all="ignore"):
            varied(f, step, recorded)(**a)
    except NO_ANSWER:
        return []
    return [] if other else found


def _changed_step(step: Any, some: set[int], twice: bool) -> Any:
    def wrong(f: Any, a: Arguments) -> Any:
        number = count()

        def changed(x: Any, *rest: Any, **named: Any) -> Any:
            if next(number) not in some:
                return step(x, *rest, **named)
            return step(step(x, *rest, **named), *rest, **named) if twice else x

        return varied(f, step, changed)(**a)

    return wrong


def _exchanged(first: Any, second: Any, f: Any, a: Arguments) -> Any:
    """The answer in which `second`, where it gets a result of `first`, is called with what `first` got, and `first` follows."""
    made = list[tuple[Any, Any, Any]]()

    def before(x: Any, *rest: Any, **named: Any) -> Any:
        made.append((x, first(x, *rest, **named), lambda z: first(z, *rest, **named)))
        return made[-1][1]

    def after(y: Any, *rest: Any, **named: Any) -> Any:
        x, again = next(((x, again) for x, result, again in made if result is y), (y, lambda z: z))
        return again(second(x, *rest, **named))

    return varied(varied(f, first, before), second, after)(**a)


def along_heads(question: Question, groups: list[tuple[str, list[str]]]) -> Iterator[Named]:
    """Arrays with one row per text that are indexed by the head, or by the flattened texts and heads."""
    shape = question.right.shape
    if len(shape) != 4 or min(shape[:2]) < 2:
        return
    texts, heads = shape[:2]
    for called, names in groups:
        arrays = [question.a[name] for name in names]
        if any(x.ndim < 2 or len(x) != texts or (x.shape[1:2] == (heads,) and x.ndim > 2) for x in arrays):
            continue
        for way, (words, read) in READINGS.items():
            if all(x.dtype.kind in "iu" for x in arrays) or way in SHARED:
                bug = f"{called} {words}"
                yield _mistake(f"{called}_{way}", _by_head(names, read, texts, heads), bug, "Give each head what its text has.")


SHARED = "tiled_over_texts_and_heads", "repeated_over_heads_and_texts"  # by any array; the others are positions
Reading = Callable[[Any, np.ndarray, int, int, int], Any]
READINGS: dict[str, tuple[str, Reading]] = {  # of text b and head h
    SHARED[0]: ("are tiled over the rows of (batch heads)", lambda p, b, h, texts, heads: p[(b * heads + h) % texts]),
    SHARED[1]: ("are repeated over the rows of (heads batch)", lambda p, b, h, texts, heads: p[(h * texts + b) // heads]),
    "as_head_numbers": ("are the number of the head", lambda p, b, h, texts, heads: 0 * p + h),
    "as_rows_of_texts_and_heads": (
        "are the number of the row of (batch heads)",
        lambda p, b, h, texts, heads: 0 * p + (b * heads + h).reshape(-1, *[1] * (p.ndim - 1)),
    ),
}


def _by_head(names: list[str], read: Reading, texts: int, heads: int) -> Any:
    def wrong(f: Any, a: Arguments) -> Any:
        ways = ({name: read(a[name], np.arange(texts), h, texts, heads) for name in names} for h in range(heads))
        return np.concatenate([f(**a | each)[:, h : h + 1] for h, each in enumerate(ways)], axis=1)

    return wrong
