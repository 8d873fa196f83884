"""RoPE over several axes: what an implementation can be asked for, and how it goes wrong."""

# Over budget: grids, sections and orders, and the axes of released models

import numpy as np

from posref.ops import Mistake, layers, missing, using
from posref.ops.common import OTHER_LAYOUT
from posref.rotary import axes, rope


def sections(sizes):
    return axes.sections(sizes)


def interleaved_sections(sizes, *, leftover):
    return axes.interleaved_sections(sizes, leftover=leftover)


def rotate(x, coordinates, *, dim, base=10000.0, frequencies=None, axis, order=None, layout):
    w = rope.frequencies(dim, base) if frequencies is None else frequencies
    angle = axes.angles(coordinates, w if order is None else w[_numbers("order", order, dim)], _numbers("axis", axis, dim))
    return rope.rotate(x, np.cos(angle), np.sin(angle), layout=layout, rotary_dim=dim)


def _numbers(name, given, dim):
    """Whole numbers from 0, one for each pair, and no more of them than pairs."""
    found = np.array(given)
    if found.shape != (dim // 2,) or found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= dim // 2:
        raise ValueError(
            f"axes.rotate: {name} is {given}, expected {dim // 2} whole numbers from 0 to {dim // 2 - 1}, one a pair"
        )
    return found


def _exchanged(a):
    """The last two axes of the coordinates exchanged."""
    if a.coordinates.shape[-1] < 2:
        missing()
    return a.coordinates[..., [*range(a.coordinates.shape[-1] - 2), -1, -2]]


def _dealt(f, a):
    return axes.interleaved_sections(a.sizes, leftover="transformers")


def _apart(f, a):
    return axes.sections(a.sizes)


def _other_leftover(a):
    return {"transformers": "ggml", "ggml": "transformers"}[a.leftover]


def _same_frequencies(a):
    """Every axis has the frequencies of the first pairs, once more."""
    axis = np.array(a.axis)
    count = max(np.count_nonzero(axis == each) for each in set(axis.tolist()))
    return np.arange(len(axis)) % count * (len(axis) // count) if count < len(axis) else missing()


def _natural(a):
    order = a.order if a.order is not None else missing()
    return np.arange(len(order)) if list(order) != [*range(len(order))] else missing()


def _coordinates(s):
    """Of a text with pictures: as many axes as the pairs read, a row of three, coarser and shuffled."""
    n, axis = np.arange(s.n_key), _numbers("axis", s.axis, s.dim)
    return np.stack([n // 3, n % 3, n * 2 % 5, n * 3 % 4][: axis.max() + 1], axis=-1)


ARRAYS = {
    "sizes": lambda s: np.array([4, 2, 2]),
    "coordinates": _coordinates,
}

MISTAKES = {
    "dealt_out": Mistake(
        _dealt,
        "pairs are dealt to the axes in turn where each axis has a section",
        "Right for text, wrong for images.",
        "Repeat axis a for its `mrope_section[a]` pairs, one axis after the other.",
        only="sections",
    ),
    "in_sections": Mistake(
        _apart,
        "each axis has a section of pairs where pairs are dealt to the axes in turn",
        "Right for text, wrong for images.",
        "Let pair t read axis t mod 3 while that axis has pairs left (mrope_interleaved).",
        only="interleaved_sections",
    ),
    "other_leftover": Mistake(
        using(leftover=_other_leftover),
        "pairs that are left over read a fourth stream of positions instead of time, or the reverse",
        "Low frequencies of some pairs are not turned.",
        "Let pairs without an axis left read time; ggml's IMROPE keeps a fourth stream for them.",
        only="interleaved_sections",
    ),
    "rows_and_columns_exchanged": Mistake(
        using(coordinates=_exchanged),
        "rows and columns are exchanged",
        "Images are transposed.",
        "Order positions as time, row, column.",
        only="rotate",
    ),
    "first_axis_alone": Mistake(
        using(axis=lambda a: 0 * np.array(a.axis)),
        "every pair reads the first axis",
        "Right for text; patches of an image have one position.",
        "Pick for every pair the position on its own axis before the angles are made.",
        only="rotate",
    ),
    "order_ignored": Mistake(
        using(order=_natural),
        "the pairs take the frequencies of the whole width in their natural order",
        "Columns are turned too slowly.",
        "Take the frequencies in the order of the model: even ones for rows, then for columns.",
        only="rotate",
    ),
    "frequencies_anew": Mistake(
        using(order=_same_frequencies),
        "the frequencies start again on every axis, instead of going on through all pairs",
        "Text of the later axes is turned too fast.",
        "Make one list of frequencies for the whole width and let pair t keep entry t.",
        only="rotate",
    ),
    "other_layout": Mistake(
        using(layout=lambda a: OTHER_LAYOUT[a.layout]),
        "features are paired (t, t + dim/2) instead of (2t, 2t+1), or the reverse",
        "A valid rotation of the wrong features.",
        "Change the pairing, or permute the projections (posref.rotary.layouts).",
        only="rotate",
    ),
}

PRESETS = {name: ("rotate", values) for name, values in axes.PRESETS.items()}

SCORES = "positions of more than one axis; on one axis it is RoPE"


def _head(t):
    coordinates = np.stack(np.divmod(t.positions, 8), axis=-1)  # rows of 8
    angles = axes.angles(coordinates, rope.frequencies(t.dim), np.arange(t.dim // 2) % 2)
    q, k, v = t.projected(t.x)
    return t.attended(*(rope.rotate(y, np.cos(angles), np.sin(angles), layout=layers.LAYOUT) for y in (q, k)), v)
