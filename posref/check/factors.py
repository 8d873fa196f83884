"""Factors: a result that is right but for a factor of each row or of each head, and the law of that factor.

The law is a function of the row's position or number, or an integer power of an input that has one number per head.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from posref.check.engine import Named, Question, separates
from posref.check.fitted import first_that_fits
from posref.check.general import dependent
from posref.check.wrong_elements import broadcast
from posref.ops import Arguments, Mistake, result
from posref.ops.common import CHUNKS, per_head
from posref.ops.probe import PLACED

LEAST = 3  # different factors that show a law of the position
NEAR = 2.0**-7  # relative difference of a factor from its law, which few bits may leave
REMEDY = "The contract has no such factor: leave it out, or ask for what has one."
STEPS = "Count each token once: padding may count as tokens."

Law = Callable[[Arguments, Any], Any]  # of the arguments and the result
Found = tuple[str, str, str, Law]  # name, words, remedy, law


def hypotheses(question: Question, got: np.ndarray) -> Iterator[Named]:
    """The law of the factors by which the result is wrong, if these depend on some axes alone."""
    right, a = question.right, question.a
    bound = np.broadcast_to(question.tolerance[question.models[-1]], right.shape)
    finite = got.shape == right.shape and np.isfinite(got).all() and np.isfinite(right).all()
    if question.kind != "f" or right.ndim < 2 or not finite or not separates(right, 2 * bound):
        return
    factors = next((numbers for _, words, numbers in dependent(got, right, bound) if words == "times"), np.ones(1))
    found = chain(_of_rows(a, factors), _of_heads(a, factors)) if factors.size > 1 and (factors > 0).all() else ()
    yield from first_that_fits(question, got, (_mistake(*each) for each in found if _near(each[3](a, factors), factors)))


def _near(made: Any, factors: np.ndarray) -> bool:
    return bool(np.allclose(made, factors, rtol=NEAR, atol=0))


def _mistake(name: str, words: str, remedy: str, law: Law) -> Named:
    bug = f"the result is multiplied by {name}{words}"
    return f"result times {name}", Mistake(result(lambda y, a: y * law(a, y)), bug, remedy=remedy, kind="general")


def _of_rows(a: Arguments, factors: np.ndarray) -> Iterator[Found]:
    """Roots and powers of the position of a row, or of its number, and logarithms whose base is measured."""
    changed = np.abs(factors - 1) > NEAR
    several = len(np.unique(factors[changed])) >= LEAST and np.ptp(factors[changed]) > 2 * NEAR * factors.max()
    telling = several and factors.shape[-1] == 1 < factors.shape[-2]  # one factor, rounded, is no law of the position
    for name in (*(each for each in PLACED if each in a), "") if telling else ():
        at = _places(name, a, factors)
        if broadcast(at, factors.shape) is None:
            continue
        words = f", where p is {f'one of {name}' if name else 'the number of the row, from 0'}"
        for power in (0.5, -0.5, 1, -1):
            yield f"(p + 1)^{power:g}", words, REMEDY, partial(_power, name, power)
        for more, count in ((1, "p + 1"), (0, "p")):
            with np.errstate(all="ignore"):
                base = np.rint(np.median(((at + more) ** (1 / factors))[changed]))
            for least in (base, 0) if base > 1 else ():
                law = f"ln({count}) / ln {base:.0f}"
                yield f"max(1, {law})" if least else law, words, REMEDY, partial(_logarithm, name, more, base, least)


def _places(name: str, a: Arguments, y: Any) -> Any:
    """The position of each row of y, or its number where there is no name."""
    return 1.0 * (per_head(a[name], y)[..., None] if name else np.arange(y.shape[-2])[:, None])


def _power(name: str, power: float, a: Arguments, y: Any) -> Any:
    return (_places(name, a, y) + 1) ** power


def _logarithm(name: str, more: int, base: float, least: float, a: Arguments, y: Any) -> Any:
    return np.log(np.maximum(_places(name, a, y) + more, least)) / np.log(base)


def _of_heads(a: Arguments, factors: np.ndarray) -> Iterator[Found]:
    """A power of an input with one number per head: as many as there are tokens of padding, or the same for any text."""
    heads, tokens = (factors.shape[-3] if factors.ndim > 3 else 0), (a["k"].shape[-2] if "k" in a else 0)
    for name, x in a.items() if 1 < heads == factors.size else ():
        if np.shape(x) == (heads,):
            with np.errstate(all="ignore"):
                power = np.rint(np.median(np.log(factors.ravel()) / np.log(x)))
            for size in (each for each in CHUNKS if -tokens % each == power > 1):
                words = f", one power for each token that is missing to a multiple of {size}"
                yield f"{name}^{power:.0f} (padding to {size})", words, STEPS, partial(_of_head, name, size, power)
            if 1 < abs(power) < np.inf:
                yield f"{name}^{power:.0f}", ", of each head", STEPS, partial(_of_head, name, 0, power)


def _of_head(name: str, size: int, power: float, a: Arguments, y: Any) -> Any:
    return (a[name] ** (-a["k"].shape[-2] % size if size else power))[:, None, None]
