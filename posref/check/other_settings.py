"""Other settings: is an output the right formula with another value of a setting? Tried if no mistake of the list fits.

Each number among the settings is tried with values that people write in its place: half and double, neighbours, a tenth and ten
times, root and square, 0, 1 and None; then with the values of that name in released models, presets and defaults. Arrays with
one number per head or feature are changed in the same way. Also tried: only the first or the middle half of a trained table was
read. If the answer has more heads, features or rows, it is cut to those asked for. As for any mistake, all that fit within the
derived tolerance are named.
"""

import inspect
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from posref import ops
from posref.check.engine import Named, Question
from posref.explain import presets
from posref.ops import Arguments, Mistake

TABLES = ("table", "key_table", "value_table", "q_r", "k_r")  # trained rows `(..., rows, width)`, whose number is a setting
MOST = 16  # times as large: what counts heads, rows or steps takes its time

Change = dict[str, Any]


def hypotheses(question: Question, shape: tuple[int, ...] = ()) -> Iterator[Named]:
    """The op with one setting changed, with half of the rows of its tables, or with such a half and a setting halved.

    Answers have the shape asked for, or `shape`, that of an output.
    """
    a, shape = question.a, shape or question.right.shape
    changes = [(words, {name: value}) for name in _defaults(question.op) for words, value in instead(name, a, question.op)]
    yield from (_mistake(words, words, change, shape) for words, change in changes)
    for words, bug, tables in _halves(a):
        yield _mistake(words, bug, tables, shape)
        for half, change in changes:
            if all(type(value) is int and a[name] == 2 * value for name, value in change.items()):
                yield _mistake(f"{words}, {half}", f"{bug}, {half}", tables | change, shape)


def exchanged(question: Question) -> Iterator[Named]:
    """Two integer settings exchanged, such as a height and a width."""
    whole = {name: question.a[name] for name in _defaults(question.op) if type(question.a.get(name)) is int}
    for one, other in combinations(whole, 2):
        if whole[one] != whole[other]:
            words = f"{one} {whole[other]} and {other} {whole[one]}"
            yield _mistake(words, words, {one: whole[other], other: whole[one]}, question.right.shape)


def neighbors(question: Question, shape: tuple[int, ...] = ()) -> Iterator[Named]:
    """Each integer setting plus or minus 1, or another one, or an extent of `shape`. Others would fit few bits by chance."""
    whole = {name: question.a[name] for name in _defaults(question.op) if type(question.a.get(name)) is int}
    for name, value in whole.items():
        sums = (value + sign * more for other, more in whole.items() if other != name for sign in (1, -1))
        for number in dict.fromkeys((value - 1, value + 1, *sums, *shape)):
            yield _mistake(f"{name} {number}", f"{name} {number}", {name: number}, shape or question.right.shape)


def _defaults(op: ops.Op) -> dict[str, Any]:
    return {name: p.default for name, p in inspect.signature(op.spec).parameters.items()}


def instead(name: str, a: Arguments, op: ops.Op) -> list[tuple[str, Any]]:
    """Other values of a setting, with their words; empty if the setting is no number."""
    asked: Any = a.get(name)
    if isinstance(asked, np.ndarray) and asked.ndim == 1 and asked.dtype.kind == "f":
        size = abs(asked)
        one = [(f"{name} 1", np.ones_like(asked))] if name in op.given else []
        return [
            (f"{name} / 2", asked / 2),
            (f"2 {name}", 2 * asked),
            (f"{name}^2", size**2),
            (f"root of {name}", size**0.5),
            *([(f"logarithm of {name}", np.log(asked))] if (asked > 0).all() else ()),
            *one,
        ]
    known = usual().get(name, ())
    widths = {a[each].shape[-1] for each in ("q", "k") if name == "scale" and isinstance(a.get(each), np.ndarray)}
    known = (*known, *(width**power for width in sorted(widths) for power in (-0.5, -1.0)))
    if type(asked) is int and type(_defaults(op)[name]) is float:  # what is written as 8 counts nothing where 8.5 may stand
        asked = float(asked)
    values = _numbers(asked, known) if type(asked) in (int, float) else known if asked is None else ()
    none = [(f"no {name}", None)] if values and asked is not None and _defaults(op)[name] is None else []
    return [(f"{name} {value:.10g}", value) for value in values] + none


def as_exponent(base: float, asked: float) -> str:
    """Words for the exponent with the same effect as this base, if it is the square or the root of the base asked for, or 1.

    >>> as_exponent(1e8, 1e4)
    ', the same as the exponent 4t/dim'
    """
    exponent = {asked**2: "4t/dim", asked**0.5: "t/dim", 1: "0, as where 2t/dim is divided in integers"}.get(base)
    return f", the same as the exponent {exponent}" if exponent else ""


def _numbers(asked: float, known: tuple[float, ...]) -> list[float]:
    """The numbers to try in place of a number. Integers keep their sign and are not 0."""
    near = [asked / 2, 2 * asked, asked / 4, 4 * asked, asked / 10, 10 * asked, abs(asked) ** 0.5, asked**2, 0, 1]
    if asked == round(asked):  # nobody writes the base 10001
        near += [value for value in (asked - 1, asked + 1) if type(asked) is int or float(f"{value:.2g}") == value]
    else:
        near += [asked / 2**0.5, asked * 2**0.5, 1 / asked]
    values = [int(value) if value == int(value) else value for value in (*near, *known)]
    if type(asked) is int and asked:
        values = [value for value in values if 0 < value / asked <= MOST]
    said = {f"{value:.10g}": value for value in reversed(values)}  # 10 times 1e-6 is 1e-5, which float64 holds otherwise
    return [value for value in reversed(said.values()) if f"{value:.10g}" != f"{asked:.10g}"]


@cache
def usual() -> dict[str, tuple[float, ...]]:
    """The values that settings of each name have in released models, in presets and as defaults.

    >>> usual()["max_distance"]
    (128, 64, 800)
    """
    chosen = [*presets.known_values(), *(settings for _, settings in ops.presets().values())]
    chosen += [_defaults(op) for system in ops.names() for op in ops.system(system).values()]
    found: dict[str, list[float]] = {"eps": [1e-5, 2.0**-23, 1e-8]}  # defaults of libraries
    for settings in chosen:
        for name, value in settings.items():
            if type(value) in (int, float):
                found.setdefault(name, []).append(value)
    return {name: tuple(dict.fromkeys(values)) for name, values in found.items()}


def _halves(a: Arguments) -> Iterator[tuple[str, str, Change]]:
    """The first and the middle half of the rows of all tables; of 2k + 1 rows for offsets up to k, those up to k/2."""
    tables = {name: a[name] for name in TABLES if isinstance(a.get(name), np.ndarray) and a[name].ndim > 1}
    for words in ("first", "middle") if tables else ():
        kept = {}
        for name, table in tables.items():
            rows = table.shape[-2]
            half = rows // 2 if rows % 2 == 0 else 2 * (rows // 4) + 1
            start = (rows - half) // 2 if words == "middle" else 0
            kept[name] = table[..., start : start + half, :]
        yield f"{words} half of {', '.join(tables)}", f"rows {start} to {start + half - 1} of {rows} alone", kept


def _mistake(name: str, bug: str, change: Change, shape: tuple[int, ...]) -> Named:
    """The op with other arguments; its answer is cut to the shape asked for."""

    def wrong(f: Any, a: Arguments) -> Any:
        y = f(**a | change)
        wanted = shape if y.shape == shape else np.shape(f(**a))  # which is another one in another question
        if y.size == np.prod(wanted):
            return y.reshape(wanted)
        return y[tuple(map(slice, wanted))] if y.ndim == len(wanted) else y

    wrong.change = change  # type: ignore[attr-defined]
    remedy = f"Use {', '.join(change)} as configured: compare the configuration with what your code reads from it."
    return name, Mistake(wrong, bug, remedy=remedy, kind="setting")
