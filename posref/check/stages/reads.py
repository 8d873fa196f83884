"""Reads: which entries of the inputs an output depends on, in the function and in the specification, found by changing each
entry."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import chain, combinations, product
from typing import Any

import numpy as np

from posref.check import engine
from posref.check.axes import names
from posref.check.call import Caller, Misbehaved
from posref.check.report import Finding, Report
from posref.ops import Arguments

MOST = 128, 2**23  # entries of an axis, each changed once; numbers of all answers then
TRIES = 6  # other whole numbers in the place of one, which may give the same answer
SMALL = 2.0**-12  # of the largest number: less may be lost on the way
CHANGED, BEYOND = 1, 2  # changed at all; by more than rounding allows
Answer = Callable[[Arguments], np.ndarray]
Effects = dict[tuple[str, int], list[np.ndarray]]


def other_reads(report: Report, caller: Caller, question: engine.Question, got: np.ndarray) -> None:
    """Report entries of an input on which a part of the output depends only in the function, or only in the specification.

    Of several such parts (a row, a head, a feature) that one is reported whose right numbers depend on the fewest entries.
    """

    def ours(a: Arguments) -> np.ndarray:
        return np.asarray(question.op.spec(**a), dtype=float)

    def theirs(a: Arguments) -> np.ndarray:
        """The output; where it has no meaning in one of the two calls, it changes as the right one does."""
        y, meant = np.reshape(caller(a), got.shape), question.op.meant(question.a) & question.op.meant(a)
        return y if np.all(meant) else np.where(meant, y, got + ours(a) - question.right)

    answers: tuple[tuple[Answer, np.ndarray], ...] = ((theirs, got), (ours, question.right))
    if got.shape != question.right.shape:
        return
    bound = question.tolerance[question.models[-1]] + SMALL * np.abs(question.right).max(initial=0)
    effects: Effects = {}
    for each in _axes(caller, question):
        with suppress(Misbehaved, *engine.NO_ANSWER):  # not every change makes sense
            changed, meant = (_effects(f, question.a, y, bound, *each) for f, y in answers)
            if (changed[meant == 0] == BEYOND).any():
                meant = np.maximum(meant, _elsewhere(ours, question.a, *each))
            effects[each] = [changed, meant]
    others = {name for name, _ in effects if question.a[name].dtype.kind in "iub"}
    *called, last = "", *names(question)
    say(report, [*called[1:], "columns" if last == "rows" else last], effects, others)


def say(report: Report, called: Sequence[str], effects: Effects, others: Collection[str] = ()) -> None:
    """Report the difference, between what the function reads and what it should read, that takes the fewest words.

    `effects` has, for each axis of an input, arrays `(entries, *shape of the answer)` of 0, CHANGED or BEYOND for the function
    and for the specification. `called` names the axes of the answer. With `others`, another number may give the same answer.
    """
    found = list[tuple[tuple[int, float], bool, Finding]]()
    for kept, ((name, axis), (theirs, ours)) in product(_kept(len(called)), effects.items()):
        whole = name in others
        read, meant = (_along(kept, y == BEYOND) for y in (theirs, ours))
        more, less = read & ~_along(kept, ours > 0), meant & ~_along(kept, theirs > 0) & (not whole)
        if (more | less).any() and (len(kept) < 2 or not whole) and (kept or not (read.any() and meant.any())):
            part = _part(called, kept, more | less)
            at = (slice(None), *part[1])
            finding = _finding(name, f"{name}[{':, ' * axis}", part, read[at], meant[at])
            as_many = bool((read.sum(axis=0) == meant.sum(axis=0)).all() and meant.any(axis=0).all())
            found.append(((len(kept), meant.mean()), as_many, finding))
    for _, as_many, finding in sorted(found, key=lambda each: each[0])[:1]:
        if as_many:  # an index is another one
            report.diagnosis.append(finding)
        else:  # one entry too many, or too few, can have any cause
            report.failed("reads", finding.sentence)
        report.advice.append(finding.remedy)


def _axes(caller: Caller, question: engine.Question) -> Iterator[tuple[str, int]]:
    """The axes of the arrays that the function receives, the shortest first."""
    a = question.a
    arrays = [name for name in caller.tensors(a) if isinstance(a[name], np.ndarray) and a[name].ndim]
    every = [(size, name, axis) for name in arrays for axis, size in enumerate(a[name].shape) if 1 < size <= MOST[0]]
    few = [each for each in every if each[0] * question.right.size <= MOST[1]]
    yield from ((name, axis) for _, name, axis in sorted(few, key=lambda each: each[0]))


def _effects(f: Answer, a: Arguments, y: np.ndarray, bound: np.ndarray, name: str, axis: int) -> np.ndarray:
    """How each number of an answer changes if one entry of an axis changes: `(entries, *shape of the answer)`."""
    size, kind = a[name].shape[axis], a[name].dtype.kind
    found = np.zeros((size, *y.shape), dtype=np.int8)
    for entry in range(size):
        place = (slice(None),) * axis + (entry,)
        for step in range(kind != "b", min(size, TRIES + 1) if kind in "iub" else 2):
            changed = a[name].copy()
            taken = (slice(None),) * axis + ((entry + step) % size,)
            changed[place] = changed[taken] if step else ~changed[place]
            with np.errstate(all="ignore"):
                other = f(Arguments(a | {name: changed}))
                by = np.abs(other - y) if other.shape == y.shape else np.zeros_like(y)
                found[entry] = np.maximum(found[entry], CHANGED * (by > 0) + (BEYOND - CHANGED) * (by > bound))
    return found


def _elsewhere(f: Answer, a: Arguments, name: str, axis: int) -> np.ndarray:
    """CHANGED where the answer changes with numbers near 0, in their order or reversed: exp or min may hide larger ones."""
    reals = {key: x for key, x in a.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.size}
    found = np.zeros(1, dtype=np.int8)
    for turn in (np.asarray, np.flip):
        small = Arguments(a | {key: turn(x) / (64 * max(1, np.abs(x).max())) for key, x in reals.items()})
        with suppress(*engine.NO_ANSWER):  # the specification refuses some of these numbers
            y = f(small)
            found = np.maximum(found, _effects(f, small, y, np.full(y.shape, np.inf), name, axis))
    return found


def _kept(ndim: int) -> Iterator[tuple[int, ...]]:
    """The axes along which parts of an answer are compared: none (the answer as a whole), one axis, two axes."""
    return chain.from_iterable(combinations(range(ndim), n) for n in (0, 1, 2))


def _along(kept: tuple[int, ...], effects: Any) -> Any:
    """Whether any number in each part of an answer, along the axes `kept`, changes with an entry."""
    return effects.any(axis=tuple(i + 1 for i in range(effects.ndim - 1) if i not in kept))


def _part(called: Sequence[str], kept: tuple[int, ...], differ: np.ndarray) -> tuple[str, tuple[int, ...], str]:
    """The first part of the output that reads other entries, its place, and how many such parts there are."""
    parts = differ.any(axis=0)
    place = tuple(map(int, np.argwhere(parts)[0]))
    words = ", ".join(f"{called[axis].removesuffix('s')} {i}" for axis, i in zip(kept, place, strict=True))
    return words and f"{words} of ", place, f"; so {parts.sum()} of {parts.size} differ" if parts.sum() > 1 else ""


def _finding(name: str, index: str, part: tuple[str, Any, str], read: np.ndarray, meant: np.ndarray) -> Finding:
    yours, right = (f"changes with {_entries(index, y)}" for y in (read, meant))
    more, less = read & ~meant, meant & ~read
    words = f"how {_entries(index, more)} gets" if more.any() else f"why {_entries(index, less)} does not get"
    sentence = f"{part[0]}your output {yours}; the right one {right}{part[2]}"
    into = part[0].removesuffix(" of ") or "the result"
    return Finding(f"other_entries_of_{name}", sentence, f"Find out {words} into {into}.")


def _entries(index: str, read: np.ndarray) -> str:
    """Entries as a NumPy index; the array itself if they are all.

    >>> _entries("k[:, ", np.array([False, True, True])), _entries("k[", np.array([True, False, True]))
    ('k[:, 1:3]', 'k[[0, 2]]')
    """
    entries, name = [int(i) for i in np.flatnonzero(read)], index.split("[")[0]
    if len(entries) in (0, len(read)):
        return name if entries else f"no entry of {name}"
    straight = entries == [*range(entries[0], entries[-1] + 1)]
    return f"{index}{entries[0] if len(entries) == 1 else f'{entries[0]}:{entries[-1] + 1}' if straight else entries}]"
