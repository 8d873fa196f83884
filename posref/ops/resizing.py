"""Tables that are resized: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.absolute import learned, resizing
from posref.ops import Mistake, inside, instead, missing, using
from posref.ops.probe import painted

weights = resizing.weights


def resize(table, *, height, width, convention):
    if convention == "dino" and table.shape[:2] == (height, width):
        raise ValueError(
            f"ops: the table has {height} x {width} places, which DINO's code returns as it is; ask for another height or width"
        )
    return resizing.resize(table, height, width, convention=convention)


# The terms of the cubic for |x| <= 2 are at most 15 + 12 + 6 + 3; for both axes, whose weights sum to at most 1.5 each.
INSIDE = {"weights": lambda a: 40.0, "resize": lambda a: 120.0 * abs(a.table).sum(axis=(0, 1))}
ARRAYS = {"table": lambda s: painted((3, 5, s.head_dim), 6)}
NAMES = ("transformers", "timm", "dino", "vilt", "beit", "siglip2")


def _as(convention):
    return using(convention=lambda a: convention if a.convention != convention else missing())


def _kernel():
    """Another cubic, if the convention has a cubic."""
    return inside(resizing, "cubic", lambda right: lambda x, *, a: right(x, a=_other(a)))


def _other(a):
    return -1 / 2 if a == -3 / 4 else -3 / 4


def _nearest(table, height, width, convention):
    rows, columns = (np.arange(n) * m // n for m, n in zip(table.shape[:2], (height, width), strict=True))
    return table[rows][:, columns]


def _flattened(table, height, width, convention):
    """One axis in place of two: all patches in one row."""
    row = table.reshape(1, -1, table.shape[-1])
    return resizing.resize(row, 1, height * width, convention=convention).reshape(height, width, -1)


def _exchanged(table, height, width, convention):
    return resizing.resize(np.swapaxes(table, 0, 1), height, width, convention=convention)


MISTAKES = {
    **{
        f"as_{name}": Mistake(_as(name)).words(f"""
            the table is resized as in {name}: the kernel or the places between the rows differ
            Close at every patch, and nowhere the same.
            Take the kernel and the places of the model whose weights these are.""")
        for name in NAMES
    },
    "other_kernel": Mistake(_kernel()).words("""
        the cubic kernel has -1/2 for -3/4, or the reverse: the bicubic of another library
        Close at every patch, and nowhere the same.
        -3/4 without antialias (torch), -1/2 with it."""),
    "sides_exchanged": Mistake(using(height=lambda a: a.width, width=lambda a: a.height)).words("""
        width and height of the image are exchanged
        Right for square images alone.
        Rows first."""),
    "nearest": Mistake(instead(_nearest)).words("""
        the nearest row is taken: rows are repeated or left out
        Neighbouring patches share a place.
        Interpolate."""),
    "all_in_a_row": Mistake(instead(_flattened)).words("""
        the table is resized as one row of text instead of a grid
        Rows of the image run into each other.
        Reshape the table to its grid first."""),
}

FURTHER = {
    "axes_of_the_table_exchanged": Mistake(instead(_exchanged)).words("""
        the table is read with its rows for its columns, as where grid_sample receives (y, x) for (x, y)
        Places are mirrored at the diagonal.
        Rows of the table belong to rows of the image: grid_sample reads (x, y), columns first.""")
}

SCORES = {"added": ("one", "key", "query", "any")}


def _head(t):
    """Words in rows of eight; the table has half as many rows as the trained text."""
    height = -(-t.trained // 16)
    grown = resizing.resize(t.parameter(height, 8, t.dim), 2 * height, 8, convention="transformers")
    return t.added(learned.encode(t.positions, grown.reshape(-1, t.dim)))
