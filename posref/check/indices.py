"""Indices: which entry of an array each part of an output was computed with, if that is not the right entry.

Each hypothesis puts one entry of an axis in place of all others. A row, head or text of the output that is right then was
computed with that entry. The same is done with one position for all. The output may also be the right result in another order.
"""

from collections.abc import Collection, Iterator
from functools import partial
from itertools import chain, combinations
from typing import Any

import numpy as np

from posref.check.axes import axes, names
from posref.check.engine import NO_ANSWER, Named, Question, ratios
from posref.ops import Arguments, Mistake, result
from posref.ops.common import POSITIONS

TOGETHER = ("k", "v"), ("q", "query_positions"), ("k", "v", "key_positions")  # read by one index
CALLED = {"batch": "batch row", "heads": "head", "tokens": "row", "rows": "row", "features": "feature"}
MOST = 2**22  # numbers of all answers of one axis
LISTED = 12
FAR, MANY = 64, 2**18  # how far from positions that occur others are tried; numbers of all answers then
BITS = 12  # of wrong numbers beyond those of the indices that are found: fewer are met by some index
REMEDY = "Compare the index, or the stride, with which your code reads it."

Changes = dict[str, Any]


def hypotheses(question: Question, got: np.ndarray) -> Iterator[Named]:
    """Wrong entries of each array, then of several arrays together, then wrong positions."""
    truth = np.isin(question.right, (0, 1)).all()
    if got.shape != question.right.shape or got.ndim < 2:
        return
    arrays = {name: question.a[name] for name in question.op.given if isinstance(question.a.get(name), np.ndarray)}
    labels = axes(question.op, question.a)
    together = [each for each in TOGETHER if {*each} <= arrays.keys()]
    of_heads = [name for name in arrays if "heads" in labels.get(name, ())]
    others = chain.from_iterable(combinations(of_heads, n) for n in range(2, len(of_heads)))  # of all the result says it
    for group in chain(((name,) for name in arrays), together, (each for each in others if each not in together)):
        for axis, size in enumerate(arrays[group[0]].shape):
            label = "".join(labels.get(group[0], ())[axis : axis + 1])
            if len(group) > 1 and group not in together and label != "heads":
                continue
            places = {group[0]: axis} | {n: labels[n].index(label) for n in group[1:] if label and label in labels.get(n, ())}
            if len(places) == len(group) and {arrays[n].shape[i] for n, i in places.items()} == {size}:
                entry, called = CALLED.get(label, "entry"), "_and_".join(group)
                every = [{n: _one(arrays[n], i, j) for n, i in places.items()} for j in range(size)]
                name, words = f"other_{entry}s_of_{called}".replace(" ", "_"), f"{entry} {{}} of {' and '.join(group)}"
                yield from read(question, got, name, words, every)
    for name in (name for name in POSITIONS if name in arrays and not truth):
        known = np.unique(np.concatenate([np.ravel(x) for n, x in arrays.items() if n in POSITIONS]))
        known = np.unique([*known, *range(max(got.shape[-2:]) + 1)])
        far = min(FAR, MANY // got.size // len(known) // 2)
        known = np.unique(known[:, None] + np.arange(-far, far + 1))
        known = known[known >= arrays[name].min(initial=0)]
        every = [{name: np.full_like(arrays[name], p)} for p in known]
        yield from read(question, got, f"other_{name}", f"{name} {{}}", every, known)


def _one(x: np.ndarray, axis: int, entry: int) -> np.ndarray:
    """One entry of an axis, in place of all entries."""
    return np.broadcast_to(x.take([entry], axis), x.shape)


def read(
    question: Question, got: np.ndarray, name: str, words: str, every: list[Changes], known: Any = None
) -> Iterator[Named]:
    """Which change in `every` gives each part of the output, if each part of the right result is given by one of them as
    well."""
    if not 1 < len(every) <= MOST // got.size:
        return
    try:
        answers = [np.broadcast_to(question.op.spec(**question.a | each), got.shape) for each in every]
    except NO_ANSWER:
        return
    bound = question.tolerance[question.models[-1]]
    same = [np.stack([ratios(y, answer, bound) <= 1 for answer in answers]) for y in (question.right, got)]
    for kept in (each for n in (1, 2, 3) for each in combinations(range(got.ndim - 1), n)):
        meant, read = (x.all(axis=tuple(i + 1 for i in range(got.ndim) if i not in kept)) for x in same)
        if not meant.any(axis=0).all() or not read.any(axis=0).all():
            continue
        wrong = np.asarray(~(meant & read).any(axis=0))
        if not wrong.any():
            return
        asked, used = (np.argmax(np.where(wrong, x, meant & read), axis=0) for x in (meant, read))
        shape = [got.shape[i] if i in kept else 1 for i in range(got.ndim)]
        values = np.arange(len(every)) if known is None else np.asarray(known)
        called = [names(question)[i].removesuffix("s") for i in kept]
        law = _law(values[asked].ravel(), values[used].ravel())
        free = 0 if law else np.count_nonzero(wrong) * np.log2(len(every))
        if np.count_nonzero(got != question.right) * bits(question.right) < BITS + free:
            return
        bug = _words(called, words, values[asked], values[used], wrong, law)
        yield name, Mistake(_as_read(every, used.reshape(shape)), bug, remedy=REMEDY, kind="general")
        return


def reindexed(question: Question, got: np.ndarray, some: Collection[str] = ()) -> Iterator[Named]:
    """Axes, all or `some`, along which each entry of the output is one entry of the right result, and which one.

    An entry needs enough numbers to be recognised: bits and single integers are too few.
    """
    right, bound = question.right, question.tolerance[question.models[-1]]
    if got.shape != right.shape or np.isin(right, (0, 1)).all() or len(np.unique(got[got != right])) < 3:
        return
    for axis, name in enumerate(names(question)):
        if some and name not in some:
            continue
        theirs, ours, most = (np.moveaxis(y, axis, 0) for y in (got, right, np.broadcast_to(bound, right.shape)))
        used, asked = _matched(theirs, ours, most), np.arange(len(ours))
        if not len(used) or np.array_equal(used, asked) or (ours.ndim == 1 and np.isfinite(bits(right))):
            continue
        law = _law(asked, used)
        free = 0 if law else np.count_nonzero(used != asked) * np.log2(len(ours))
        if np.count_nonzero(got != right) * bits(right) >= BITS + free:
            listed = ", ".join(map(str, used[:LISTED])) + ", .." * (used.size > LISTED)
            bug = f"its {name} are {name} {listed} of the right result{law and f': {law}'}"
            taken = result(partial(np.take, indices=used, axis=axis))
            yield f"result_{name}_reindexed".replace(" ", "_"), Mistake(taken, bug, remedy=REMEDY, kind="general")


def _matched(theirs: np.ndarray, ours: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """For each entry of the output, the one entry of the right result that it equals; empty if one has none, or several."""
    found = list[int]()
    for each in theirs if len(ours) * ours.size <= MOST else ():
        same = (ratios(each, ours, bound) <= 1).reshape(len(ours), -1).all(axis=1)
        if same.sum() != 1:
            return np.zeros(0, dtype=int)
        found.append(int(same.argmax()))
    return np.array(found, dtype=int)


def _as_read(every: list[Changes], used: np.ndarray) -> Any:
    def wrong(f: Any, a: Arguments) -> Any:
        first, *others = np.unique(used)
        y = f(**a | every[first])
        for each in others:
            y = np.where(used == each, f(**a | every[each]), y)
        return y

    return wrong


def bits(right: np.ndarray) -> float:
    """The bits of evidence in one number: few for integers, infinite for others."""
    whole = np.isfinite(right).all() and bool((right == np.rint(right)).all())
    return float(np.log2(1 + np.ptp(right))) if whole else np.inf


def _words(called: list[str], words: str, asked: np.ndarray, used: np.ndarray, wrong: np.ndarray, law: str) -> str:
    """Words for the first part that reads another entry, for how many parts do, and for their law if they have one."""
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    part = ", ".join(f"{name} {i}" for name, i in zip(called, place, strict=True))
    first = f"{part} is computed with {words.format(used[place])} instead of {asked[place]}"
    listed = ", ".join(map(str, used.ravel()[:LISTED])) + ", .." * (used.size > LISTED)
    return f"{first}; {wrong.sum()} of {wrong.size} differ: {law or f'all read {listed}'}"


def _law(asked: np.ndarray, used: np.ndarray) -> str:
    """Words for the function from the right entry to the used one; "" if no known function fits.

    >>> _law(np.arange(5), np.array([3, 4, 0, 1, 2])), _law(np.arange(5), np.array([2, 3, 4, 4, 4]))
    ('i + 3 modulo 5 for i', 'i + 2, at most 4, for i')
    """
    if np.ptp(used) == 0:
        return f"{used[0]} for all"
    shift, n = used[0] - asked[0], max(asked.max(), used.max()) + 1
    moved = f"i {'+' if shift > 0 else '-'} {abs(shift)}" if shift else "i"
    laws = {f"{moved} for i": asked + shift, f"{moved} modulo {n} for i": (asked + shift) % n}
    laws |= {f"{moved}, at most {used.max()}, for i": np.minimum(asked + shift, used.max())}
    late = asked[-1] - used[-1]
    laws |= {f"i - {late}, at least {used.min()}, for i": np.maximum(asked - late, used.min())} if late > 0 else {}
    laws |= {f"i modulo {m} for i": asked % m for m in (used.max() + 1,)}
    laws |= {f"i // {d} for i": asked // d for d in range(2, 9)} | {f"{d} i for i": asked * d for d in range(2, 9)}
    laws |= {f"{asked.max()} - i for i": asked.max() - asked}
    return next((words for words, law in laws.items() if np.array_equal(law, used)), "")
