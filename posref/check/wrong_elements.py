"""Boxes: where the wrong elements are, when they fill a box of rows, heads or features."""

from typing import Any

import numpy as np

NAMES = {
    1: ("features",),
    2: ("rows", "features"),
    3: ("heads", "rows", "features"),
    4: ("batch rows", "heads", "rows", "features"),
}


def where(wrong: np.ndarray, got: np.ndarray | None = None, inputs: Any = None) -> str:
    """ "; wrong exactly for rows 16 to 22" if the wrong elements fill a box that is not everything, else nothing.

    With `got` and `inputs` it says when the elements there equal an input: a tail that the kernel does not reach.

    >>> wrong = np.zeros((2, 5, 4), dtype=bool)
    >>> wrong[:, 3:] = True
    >>> where(wrong)
    '; wrong for rows 3 to 4 alone'
    """
    if wrong.ndim not in NAMES or not wrong.any():
        return ""
    spans, box = [], []
    for axis, name in enumerate(NAMES[wrong.ndim]):
        along = np.flatnonzero(wrong.any(axis=tuple(i for i in range(wrong.ndim) if i != axis)))
        first, last = int(along[0]), int(along[-1])
        box.append(slice(first, last + 1))
        if (first, last) != (0, wrong.shape[axis] - 1) and axis != wrong.ndim - 1:
            spans.append(f"{name} {first} to {last}" if last > first else f"{name[:-1]} {first}")
    inside = wrong[tuple(box)]
    if not spans or inside.any(axis=-1).mean() < 0.5:
        return ""
    return f"; wrong for {', '.join(spans)} alone{_equal(tuple(box), got, inputs)}"


def columns(wrong: np.ndarray, name: str = "features") -> str:
    """Which entries of the last axis are wrong, if they are few, one or two runs, or every second: a pair, a half, a tail.

    >>> wrong = np.zeros((5, 8), dtype=bool)
    >>> wrong[1:, [2, 6]] = True
    >>> columns(wrong), columns(~wrong[1:]), columns(wrong[1:], "keys")
    ('; all in features 2 and 6', '', '; all in keys 2 and 6')
    """
    if wrong.ndim == 0:
        return ""
    along, size = np.flatnonzero(wrong.any(axis=tuple(range(wrong.ndim - 1)))), wrong.shape[-1]
    for first, words in ((0, "even"), (1, "odd")):
        if size > 4 and np.array_equal(along, np.arange(first, size, 2)):
            return f"; all in {words} {name}"
    runs = np.split(along, np.flatnonzero(np.diff(along) > 1) + 1)
    if len(along) in (0, size) or (len(runs) > 2 and len(along) > 4):
        return ""
    said = [words for run in runs for words in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    listed = f"{', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else said[0]
    return f"; all in {name if len(along) > 1 else name[:-1]} {listed}"


def _equal(box: tuple[slice, ...], got: np.ndarray | None, inputs: Any) -> str:
    found = "" if got is None or untouched(got, inputs) else untouched(got, inputs, box)  # not where all of it is so
    tail = "a tail that is not written" if found == "is 0" else "a tail that the kernel does not reach"
    return f", which {found.replace('is', 'are').replace('equals', 'equal')}: {tail}" if found else ""


def untouched(got: np.ndarray, inputs: Any, box: tuple[Any, ...] = ()) -> str:
    """What the elements are, if they are 0 or those of an input.

    >>> untouched(np.ones(2), {"q": np.zeros(2), "k": np.ones(2)})
    'equals k'
    """
    if not got[box].any():
        return "is 0"
    for name, value in (inputs or {}).items():
        if isinstance(value, np.ndarray) and value.shape == got.shape and np.array_equal(value[box], got[box]):
            return f"equals {name}"
    return ""
