"""Rearranged: the right numbers in another order, and outputs of another shape that come from other axes, arguments or sums."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, combinations, permutations, product
from typing import Any

import numpy as np

from posref.check import fitted, general
from posref.check.axes import RESULT, names
from posref.check.axes import axes as labels_of
from posref.check.engine import Named, Question, distance
from posref.ops import Arguments, Mistake, changing, result

SAMPLE = 64  # elements that tell whether a rearrangement may give the output
MOST = 512  # numbers of an argument that is read as one row: a result may have a square of them
ORDER, CUT = "Exchange axes by a transposition, not by a reshape.", "Join parts along the axis that was cut."
SHAPE = "Return the result in the shape of the contract."
GIVEN, SUMMED = "Check which argument stands in which place, and the axes of each.", "Check the axis of every sum."


def hypotheses(question: Question, got: np.ndarray) -> Iterator[Named]:
    """The first move of the right numbers that gives this output; each is tried on the places of a few of them."""
    right, bound = question.right, question.tolerance[question.models[-1]].ravel()
    other = got.shape == right.shape or got.squeeze().shape != right.squeeze().shape  # an axis of size 1 moves no number
    if question.gauge == "none" and got.size == right.size and max(right.ndim, got.ndim) <= 5 and other:
        places, some = np.arange(right.size).reshape(right.shape), slice(None, None, got.size // SAMPLE | 1)
        backs = [*permutations(range(got.ndim))][: 1 if got.shape == right.shape else None]
        joined = _joined(right, got, names(question))
        moves = (
            _mistake(got, f"result_{name}", bug, result(move), remedy)
            for name, move, bug, remedy in chain(_orders(right, got, backs[:1]), joined, _orders(right, got, backs[1:]))
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


def _orders(right: np.ndarray, got: np.ndarray, backs: Iterable[tuple[int, ...]]) -> Iterator[tuple[str, Any, str, str]]:
    """The axes in another order, then another shape, and the axes of that shape in another order."""
    for back, axes in product(backs, permutations(range(right.ndim))):
        shape = [got.shape[back.index(i)] for i in range(got.ndim)]
        order = f", with its axes in the order {axes}," if [*axes] != sorted(axes) else ""
        bug = f"the result{order} is read in the shape {(*shape,)}"
        bug += f", whose axes are then put in the order {back}" if [*back] != sorted(back) else ""
        remedy = ORDER if order or [*back] != sorted(back) or sorted(got.shape) == sorted(right.shape) else SHAPE
        name = f"axes_{''.join(map(str, axes + back))}_reshaped"
        yield name, lambda y, a=axes, s=shape, b=back: np.transpose(_read(y.shape, a, s, y), b), bug, remedy


def _read(cut: Any, axes: Any, shape: Any, y: Any) -> Any:
    return np.transpose(y.reshape(cut), axes).reshape(shape)


def of_arguments(question: Question, got: np.ndarray) -> Iterator[Named]:
    """Arguments with other axes, in each other's places or returned, and sums along another axis, if the output looks so."""
    for name, mistake in chain(_given(question, got), _summed(question, got)):
        answer = question.answer(name, mistake.wrong)
        if answer is not None and answer.shape == got.shape:
            size, apart = (np.median(np.nan_to_num(np.abs(y))) for y in (answer, got - answer))
            yield from [(name, mistake)] if 4 * apart <= size else []


def _given(question: Question, got: np.ndarray) -> Iterator[Named]:
    """Each argument returned, or read with other axes or as one row; and one in the place of another of another size."""
    a, named = question.a, partial(_mistake, got)
    arrays = {name: x for name in question.op.given if isinstance(x := a.get(name), np.ndarray)}
    for name, x in a.items():
        numbers = np.unique(x if type(x) in (int, float, np.ndarray) else 0)
        if (numbers.size > 2 or numbers[:1].sum() > 2) and np.squeeze(x).shape == got.squeeze().shape:
            given = lambda f, a, name=name: np.reshape(a[name], got.shape)  # noqa: E731
            yield named(f"{name}_returned", f"{name} is returned as it is given", given)
    for name, x in arrays.items():
        for axes in [each for each in permutations(range(x.ndim)) if 0 < sum(i != j for i, j in enumerate(each)) < 4]:
            bug, moved = f"{name} is read with its axes in the order {axes}", changing(partial(np.transpose, axes=axes), name)
            back = lambda f, a, moved=moved, axes=axes: np.transpose(moved(f, a), np.argsort(axes))  # noqa: E731
            yield named(f"{name}_axes_{axes}", bug, moved)
            yield named(f"{name}_axes_{axes}_and_back", f"{bug}, and the result is put back in the order given", back)
        if x.ndim > 1 and x.size <= MOST:
            row = changing(partial(np.reshape, shape=(1,) * (x.ndim - 1) + (-1,)), name)
            flat = lambda f, a, row=row: row(f, a).reshape(got.shape)  # noqa: E731
            yield named(f"{name}_flattened", f"{name} is read as one row: all its axes are flattened", flat)
    for one, other in combinations(arrays, 2):
        if arrays[one].ndim == arrays[other].ndim and arrays[one].shape != arrays[other].shape:
            yield from general.exchanged(one, other)


def _summed(question: Question, got: np.ndarray) -> Iterator[Named]:
    """The result added up along an axis; and what it adds up over heads, kept apart or added up along another axis."""
    right, called, a = question.right, names(question), question.a
    for axis, over in ((i, name) for i, name in enumerate(called) if right.shape[i] > 1):
        added = result(partial(np.sum, axis=axis, keepdims=got.ndim == right.ndim))
        yield _mistake(got, f"result_summed_over_{over}", f"the result is added up over its {over}", added, SUMMED)
    labels = labels_of(question.op, a)
    heads = {name: labels[name].index("heads") for name in question.op.given if "heads" in labels.get(name, ())}
    if heads and "heads" not in labels[RESULT]:
        whole = question.answer("heads_summed", partial(_of_heads, heads, 0))
        told = whole is not None and distance(whole, right, 2 * question.tolerance[question.models[-1]]) <= 1
        for axis, over in enumerate((*called, ""), 1) if told else ():
            said = f"added up over {over}, not" if over else "not added up"
            wrong = partial(_of_heads, heads, axis)
            yield _mistake(got, f"terms_{said}_over_heads", f"the terms of the result are {said} over heads", wrong, SUMMED)


def _of_heads(heads: dict[str, int], axis: int, f: Any, a: Arguments) -> Any:
    """The results of single heads, stacked on a first axis, added up along `axis`; the heads then stand where they do in the
    first argument that has them. With one axis more than there is, nothing is added up."""
    first = next(iter(heads))
    each = [{n: np.take(a[n], [h], i) for n, i in heads.items()} for h in range(a[first].shape[heads[first]])]
    y = np.stack([f(**a | one) for one in each])
    y = y if axis == y.ndim else np.sum(y, axis=axis)
    return y if axis == 0 else np.moveaxis(y, 0, min(heads[first], y.ndim - 1) - (axis <= heads[first]))


def _mistake(got: np.ndarray, name: str, bug: str, wrong: Any, remedy: str = GIVEN) -> Named:
    """With the shape that its answer keeps, though it may be broadcast to that of the right one."""
    wrong.shape = got.shape
    return re.sub(r"[\W_]+", "_", name).strip("_"), Mistake(wrong, bug, remedy=remedy, kind="general")
