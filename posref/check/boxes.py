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


def _equal(box: tuple[slice, ...], got: np.ndarray | None, inputs: Any) -> str:
    found = "" if got is None else untouched(got, inputs, box)
    tail = "a tail that is not written" if found == "is 0" else "a tail that the kernel does not reach"
    return f", which {found.replace('is', 'are').replace('equals', 'equal')}: {tail}" if found else ""


def untouched(got: np.ndarray, inputs: Any, box: tuple[slice, ...] = ()) -> str:
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
