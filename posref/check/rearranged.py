"""Rearranged: the right numbers in another order or shape: parts joined along another axis, a reshape for a transposition."""

import re
from collections.abc import Iterator
from functools import partial
from itertools import chain, permutations, product
from typing import Any

import numpy as np

from posref.check import fitted
from posref.check.axes import names
from posref.check.engine import Named, Question, distance
from posref.ops import Mistake, result

SAMPLE = 64  # elements that tell whether a rearrangement may give the output
ORDER, CUT = "Exchange axes by a transposition, not by a reshape.", "Join parts along the axis that was cut."


def hypotheses(question: Question, got: np.ndarray) -> Iterator[Named]:
    """The first move of the right numbers that gives this output; each is tried on the places of a few of them."""
    right, bound = question.right, question.tolerance[question.models[-1]].ravel()
    if question.gauge == "none" and got.size == right.size and max(right.ndim, got.ndim) <= 5:
        places, some = np.arange(right.size).reshape(right.shape), slice(None, None, got.size // SAMPLE | 1)
        moves = (
            _mistake(f"result_{name}", bug, result(move), remedy)
            for name, move, bug, remedy in chain(_orders(right, got), _joined(right, got, names(question)))
            for at in [move(places).ravel()[some]]
            if distance(got.ravel()[some], right.ravel()[at], 2 * bound[at]) <= 1
        )
        yield from fitted.first_that_fits(question, got, moves)


def _joined(right: np.ndarray, got: np.ndarray, called: tuple[str, ...]) -> Iterator[tuple[str, Any, str, str]]:
    """Two to four parts of one axis, in a row or in turn, joined along another axis or stacked on a new one."""
    for (axis, n), k, turn, to in product(enumerate(right.shape), (2, 3, 4), (0, 1), range(right.ndim + 1)):
        if n % k == 0 and n > k:
            cut = [*right.shape[:axis], *((n // k, k) if turn else (k, n // k)), *right.shape[axis + 1 :]]
            order = [i for i in range(right.ndim + 1) if i != axis + turn]
            order.insert(to, axis + turn)
            parts = ", ".join(f"{i}, {i + k}, .." for i in range(k)) if turn else f"in {k} equal parts"
            bug = f"the {called[axis]} of the result ({parts}) are stacked on a new axis {to} and read in the shape {got.shape}"
            sizes = [cut[i] for i in order]
            if to < right.ndim and got.shape == (*sizes[:to], k * sizes[to + 1], *sizes[to + 2 :]):
                bug = f"the {called[axis]} of the result ({parts}) are joined along axis {to}"
            name = f"{called[axis]}_in_{k}_{'turns' if turn else 'parts'}_along_{to}"
            yield name, partial(_read, cut, order, got.shape), bug, CUT


def _orders(right: np.ndarray, got: np.ndarray) -> Iterator[tuple[str, Any, str, str]]:
    """The axes in another order, then another shape, and the axes of that shape in another order."""
    every = permutations(range(got.ndim)) if got.shape != right.shape else [(*range(got.ndim),)]
    for back, axes in product(every, permutations(range(right.ndim))):
        shape = [got.shape[back.index(i)] for i in range(got.ndim)]
        bug = f"the result, with its axes in the order {axes}, is read in the shape {(*shape,)}"
        bug += f", whose axes are then put in the order {back}" if [*back] != sorted(back) else ""
        name = f"axes_{''.join(map(str, axes + back))}_reshaped"
        yield name, lambda y, a=axes, s=shape, b=back: np.transpose(_read(y.shape, a, s, y), b), bug, ORDER


def _read(cut: Any, axes: Any, shape: Any, y: Any) -> Any:
    return np.transpose(y.reshape(cut), axes).reshape(shape)


def _mistake(name: str, bug: str, wrong: Any, remedy: str) -> Named:
    return re.sub(r"[\W_]+", "_", name).strip("_"), Mistake(wrong, bug, remedy=remedy, kind="general")
