"""Parts: integers that are right except for runs of entries in one row or column, and the one law that these entries follow.

Positions of caches, images and padding can be wrong in this way: reset, counted anew, shifted, scaled, or of another column.
Blocks of entries, such as the tokens of one rank or of one image, can also have another order, in several rows or columns.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from posref.check.engine import Named, Question
from posref.ops import Arguments, Mistake, missing

BITS = 12  # of wrong numbers beyond what a law and its runs are chosen from
LEAST = 3  # wrong numbers
REMEDY = "Compare what your code computes for these entries with what it computes for the others."


def hypotheses(question: Question, got: np.ndarray) -> Iterator[Named]:
    """The law of the wrong numbers with the most evidence: of one row or column, or of blocks that have another order."""
    right = question.right
    whole = question.kind in "iu" and np.isfinite(got).all()
    wrong = got != right if got.shape == right.shape else np.zeros(0, dtype=bool)
    if not whole or right.ndim not in (1, 2) or wrong.sum() < LEAST or (got != np.rint(got)).any():
        return
    found = list[tuple[float, str, str]]()
    for columns in (False, True)[: right.ndim]:
        ours, theirs = (np.atleast_2d(y.T if columns else y) for y in (right, got))
        lines = np.flatnonzero((ours != theirs).any(axis=1))
        named = (("columns", "rows") if columns else ("rows", "columns")) if right.ndim == 2 else ("", "entries")
        found += _of_blocks(ours, theirs, lines, named)
        if len(lines) == 1 and not wrong.all():
            found += _of_line(ours, theirs, int(lines[0]), named)
    if found:
        _, name, words = max(found)
        yield name, Mistake(as_given(got), words, remedy=REMEDY, kind="part")


def as_given(got: np.ndarray) -> Any:
    """The output itself, since the law was solved from it; with other arguments the mistake cannot occur."""

    def wrong(f: Any, a: Arguments) -> Any:
        return got if np.shape(f(**a)) == got.shape else missing()

    return wrong


def _of_line(ours: np.ndarray, theirs: np.ndarray, line: int, named: tuple[str, str]) -> Iterator[tuple[float, str, str]]:
    """Laws that the wrong numbers of one line follow: evidence, name and words."""
    of, entries = named
    right, got = ours[line], theirs[line]
    wrong = np.flatnonzero(right != got)
    runs = np.split(wrong, np.flatnonzero(np.diff(wrong) > 1) + 1)
    number = np.log2(2 + max(np.ptp(ours), np.ptp(theirs)))
    place = np.log2(len(right) + 1)
    left = len(wrong) * number - BITS - 2 * len(runs) * place - np.log2(len(ours)) - 4
    said = ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
    where = f"{of[:-1]} {line}, {entries} {said}" if of else f"{entries} {said}"
    for free, name, words in _laws(ours, got, line, runs, of):
        if left - free * number >= 0:
            yield left - free * number, f"part_of_result_{name}", f"{where} of the result {words}; all others are right"


def _laws(ours: np.ndarray, got: np.ndarray, line: int, runs: list[np.ndarray], of: str) -> Iterator[tuple[float, str, str]]:
    """For each law: how many numbers it is free to choose, its name, and its words."""
    right, wrong = ours[line], np.concatenate(runs)
    x, y = right[wrong], got[wrong]
    apart = y - x
    starts = np.concatenate([np.full(len(run), run[0]) for run in runs])
    if np.ptp(y) == 0:
        yield 1, "constant" if y[0] else "zero", f"are all {y[0]:g}"
    if np.ptp(apart) == 0:
        yield 1, f"{'plus' if apart[0] > 0 else 'minus'}_{abs(apart[0]):g}", f"are off by {apart[0]:+g}"
    if x.all() and np.ptp(y / x) == 0:
        yield 1, f"times_{y[0] / x[0]:g}", f"are multiplied by {y[0] / x[0]:g}"
    for divisor in range(2, 9):
        if (y == x // divisor).all():
            yield 1, f"over_{divisor}", f"are divided by {divisor} and rounded down"
    if (y == x - right[starts]).all() and y.any():
        yield 0, "from_zero", "are counted from 0 again in each run"
    if (starts > 0).all() and (y == right[starts - 1]).all():
        yield 0, "repeated", "repeat the number before them"
    if (y == wrong).all():
        yield 0, "by_place", "are their places"
    for other in range(len(ours)):
        if other != line and (y == ours[other][wrong]).all():
            yield 1, "of_another_axis", f"are those of {of[:-1]} {other}"
    for step in (-2, -1, 1, 2):
        if (wrong + step >= 0).all() and (wrong + step < len(right)).all() and (y == right[wrong + step]).all():
            yield 1, f"of_places_{step:+d}", f"are the right numbers {abs(step)} {'before' if step < 0 else 'behind'} them"
    parts = [got[run] - right[run] for run in runs]
    if len(runs) > 1 and all(np.ptp(part) == 0 for part in parts):
        shifts = ", ".join(f"{part[0]:+g}" for part in parts)
        yield len(runs), "shifted_by_run", f"are off by one number in each run: {shifts}"
    if len(np.unique(x)) > 2:
        slope = (y[-1] - y[x != x[-1]][0]) / (x[-1] - x[x != x[-1]][0])
        if (y == slope * x + (y[0] - slope * x[0])).all():
            yield 2, "in_a_line", f"are {slope:g} times the right ones {y[0] - slope * x[0]:+g}"


def _of_blocks(
    ours: np.ndarray, theirs: np.ndarray, lines: np.ndarray, named: tuple[str, str]
) -> Iterator[tuple[float, str, str]]:
    """The order of the least blocks of entries that hold the right ones in another order, in all lines that have wrong ones."""
    right, got, size = ours[lines], theirs[lines], ours.shape[1]
    number = np.unique(np.hstack([right, got]), axis=1, return_inverse=True)[1].ravel()
    ends = np.flatnonzero(np.cumsum(number[size:] - number[:size]) == 0) + 1
    blocks = [(first, last) for first, last in pairwise([0, *ends]) if last > first + 1]
    if (right != got).sum() != (right != got)[:, [i for block in blocks for i in range(*block)]].sum():
        return
    left = (right != got).sum() * np.log2(2 + max(np.ptp(ours), np.ptp(theirs))) - BITS - 1
    left -= len(lines) * np.log2(len(ours)) + len(blocks) * np.log2(size + 1)
    where = f"{named[0]} {', '.join(map(str, lines))}, " if 0 < len(lines) < len(ours) else ""
    for name, beside, words in (("reversed", 0, "in reverse order"), ("by_columns", 1, "written column by column")):
        spans = [(first - beside, last + beside) for first, last in blocks]  # a transposed grid keeps its first and last entry
        if spans and spans[0][0] >= 0 and spans[-1][1] <= size:
            ways = [_ways(right[:, i:j], got[:, i:j], beside) for i, j in spans]
            said = ", ".join(f"{i} to {j - 1}" for i, j in spans)
            if left - sum(ways) >= 0:
                words = f"{where}{named[1]} {said} of the result are the right ones {words}; all others are right"
                yield left - sum(ways), f"part_of_result_{name}", words


def _ways(right: np.ndarray, got: np.ndarray, by_columns: int) -> float:
    """The bits that choose how a block is read, reversed or column by column; infinite if no such way gives its entries."""
    lines, n = right.shape
    heights = [rows for rows in range(2, n) if n % rows == 0] if by_columns else []
    grids = (right.reshape(lines, rows, -1).swapaxes(1, 2).reshape(lines, n) for rows in heights)
    fits = any(np.array_equal(got, each) for each in (grids if by_columns else [right[:, ::-1]]))
    return float(np.log2(max(1, len(heights)))) if fits else np.inf
