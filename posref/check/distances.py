"""Distances: a result that depends only on the offset key - query, computed with another function of that offset."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from posref.check.engine import NO_ANSWER, Named, Question, distance
from posref.check.fitted import explains, first_that_fits
from posref.check.general import offsets
from posref.ops import Arguments, Mistake, NotHere

Law = Callable[[Any], Any]
FUNCTIONS: dict[str, tuple[Law, str]] = {
    "logarithms_of_1_more": (np.log1p, "the logarithm of 1 + the distance"),
    "roots": (np.sqrt, "the root of the distance"),
    "squares": (np.square, "the square of the distance"),
}
SIGNS: dict[str, tuple[Callable[[Law], Law], str]] = {
    "": (lambda f: lambda o: np.sign(o) * f(np.abs(o)), ""),
    "_without_sign": (lambda f: lambda o: -f(np.abs(o)), ", negative for keys after the query too,"),
}
SIDES = {
    "": (1, 1, ""),
    "_of_past_keys": (1, 0, " and 0 for keys after the query"),
    "_of_later_keys": (0, 1, " and 0 for past keys"),
}
ENDS = sorted({2**n - less for n in range(1, 21) for less in (0, 1)} - {0})
REMEDY = "Use the distance as the formula has it."


def hypotheses(question: Question, got: np.ndarray) -> Iterator[Named]:
    """Known functions of the distance, then a maximum distance, if the right result depends only on the offset."""
    a, right = question.a, question.right
    if not {"query_positions", "key_positions"} <= a.keys() or got.shape != right.shape or got.ndim < 2:
        return
    try:
        again = _with(question.op.spec, a, np.positive)
    except NO_ANSWER:
        return
    if again.shape != right.shape or distance(again, right, question.tolerance[question.models[-1]]) > 1:
        return
    for name, (function, words) in FUNCTIONS.items():
        yield from (_mistake(name + more, sign(function), words + signed) for more, (sign, signed) in SIGNS.items())
    for more, (past, later, words) in SIDES.items():
        limits = ((n, partial(np.clip, a_min=-n * past, a_max=n * later)) for n in ENDS)
        ends = (_mistake(f"at_most_{n}{more}", law, f"the distance, at most {n}{words},") for n, law in limits)
        answers = ((each, question.answer(each[0], each[1].wrong)) for each in ends)
        near = (each for each, y in answers if y is not None and y.shape == got.shape and explains(question, got, y))
        yield from first_that_fits(question, got, near)


def _mistake(name: str, law: Law, words: str) -> Named:
    bug = f"{words} stands in the place of the offset key - query"
    return f"distances_{name}", Mistake(lambda f, a: _with(f, a, law), bug, remedy=REMEDY, kind="general")


def _with(f: Any, a: Arguments, law: Law) -> Any:
    """The result with `law` applied to each offset: one query at position 0 sees a key at each new offset."""
    every, place = np.unique(offsets(a, np.empty(0)), return_inverse=True)
    row = f(**a | {"query_positions": np.zeros(1, int), "key_positions": law(every)})[..., 0, :]
    if row.shape[-1] != len(every):
        raise NotHere("the result has no row of keys")
    pairs = np.broadcast_shapes(a.query_positions.shape[:-1], a.key_positions.shape[:-1])
    shape = (*pairs, a.query_positions.shape[-1], a.key_positions.shape[-1])
    return np.moveaxis(row[..., place.reshape(shape)], 0, -3) if row.ndim > 1 else row[place.reshape(shape)]
