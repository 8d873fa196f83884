"""RoPE over several axes: the functions to check, and the mistakes that implementations make."""

# Over budget: grids, sections and orders, and the axes of released models

from itertools import permutations

import numpy as np

from posref import pairing
from posref.ops import Mistake, layers, missing, result, using
from posref.ops.common import OTHER_LAYOUT, rounded
from posref.ops.rope import MISTAKES as ROPE
from posref.rotary import axes, rope

sections = axes.sections
interleaved_sections = axes.interleaved_sections
grid = axes.grid


def rotate(x, coordinates, *, dim, base=10000.0, frequencies=None, axis, order=None, layout):
    w = rope.frequencies(dim, base) if frequencies is None else frequencies
    angle = axes.angles(coordinates, w if order is None else w[_numbers("order", order, dim)], _numbers("axis", axis, dim))
    return rope.rotate(x, np.cos(angle), np.sin(angle), layout=layout, rotary_dim=dim)


def _numbers(name, given, dim):
    """An array of integers from 0 to dim/2 - 1, one per pair. ValueError for anything else."""
    found = np.array(given)
    if found.shape != (dim // 2,) or found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= dim // 2:
        raise ValueError(
            f"axes.rotate: {name} is {given}, expected {dim // 2} whole numbers from 0 to {dim // 2 - 1}, one per pair"
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


def _in_rounds(f, a):
    return np.concatenate([np.flatnonzero(a.sizes > deal) for deal in range(a.sizes.max())])


def _other_leftover(a):
    return {"transformers": "ggml", "ggml": "transformers"}[a.leftover]


def _same_frequencies(a):
    """Every axis uses the frequencies of the first pairs again."""
    axis = np.array(a.axis)
    count = max(np.count_nonzero(axis == each) for each in set(axis.tolist()))
    return np.arange(len(axis)) % count * (len(axis) // count) if count < len(axis) else missing()


def _natural(a):
    order = a.order if a.order is not None else missing()
    return np.arange(len(order)) if list(order) != [*range(len(order))] else missing()


def _coordinates(s):
    """Coordinates of a text with pictures, one column per axis: rows of three tokens, coarser and shuffled."""
    n, axis = np.arange(s.n_key), _numbers("axis", s.axis, s.dim)
    return np.stack([n // 3, n % 3, n * 2 % 5, n * 3 % 4][: axis.max() + 1], axis=-1)


def _pairs(change):
    """Another axis for each pair: change(axes)."""

    def wrong(f, a):
        axis = np.array(a.axis)
        return f(**a | {"axis": changed}) if (changed := change(axis)).tolist() != axis.tolist() else missing()

    return wrong


def _turns(axis):
    return np.arange(len(axis)) % (axis.max() + 1) if (np.diff(axis) >= 0).all() else missing()


def _to_the_end(f, a):
    """Axes in turn for all pairs, where the right ones begin with at least one whole turn."""
    right = np.array(a.axis) if "axis" in a else f(**a)
    turn = int((right == 0)[1:].argmax()) + 1
    if (
        turn < 2
        or (right[:turn] != np.arange(turn)).any()
        or (other := np.arange(len(right)) % turn).tolist() == right.tolist()
    ):
        missing()
    return f(**a | {"axis": other}) if "axis" in a else other


def _numbered(order):
    words = f"axes {', '.join(map(str, order))} are read in the place of 0, 1, 2"
    wrong = _pairs(lambda axis: np.array(order)[axis] if axis.max() == 2 else missing())
    return Mistake(wrong, words, "Right for text, wrong for images.", "Keep the order of the model: often time, row, column.")


def _sections(order):
    """The sections in another order, each with its own size."""

    def change(axis):
        return np.repeat(order, np.bincount(axis)[[*order]]) if axis.max() == 2 else missing()

    words = f"the sections come in the order {', '.join(map(str, order))}, each with the size of its axis"
    return Mistake(_pairs(change), words, "Right for text, wrong for images.", "Keep the order of the sections.")


def _geometric(w):
    """Whether frequencies are the powers 1, r, r^2, .. of one number r below 1."""
    return bool(len(w) > 2 and (w > 0).all() and np.allclose(w, w[1] ** np.arange(len(w)), rtol=1e-6, atol=0) and w[1] < 1)


def _of_the_whole_width(a):
    if a.frequencies is None or _geometric(a.frequencies):
        missing()
    return a.base ** (-2 * np.arange(a.dim // 2) / a.dim)


def _of_its_part(a):
    """For each axis, the frequencies 1, .. of a rotation with the width of its own part; the base is that of the whole
    width."""
    w, axis = rope.frequencies(a.dim, a.base) if a.frequencies is None else a.frequencies, np.array(a.axis)
    if not _geometric(w) or len(set(axis.tolist())) < 2:
        missing()
    ranks = np.array([np.count_nonzero(axis[:t] == each) for t, each in enumerate(axis)])
    return w[1] ** (ranks * len(w) / np.bincount(axis)[axis])


def _base(base):
    """Geometric frequencies 1, r, r^2, .. with another base."""

    def wrong(f, a):
        w = rope.frequencies(a.dim, a.base) if a.frequencies is None else a.frequencies
        return f(**a | {"frequencies": base ** (-2 * np.arange(len(w)) / a.dim)}) if _geometric(w) else missing()

    return Mistake(wrong).words(f"""
        the base is {base:g}, another than the configuration says
        Near tokens are almost right.
        Read rope_theta from the configuration.""")


def _to_the_power(power):
    """The exponent of geometric frequencies times power(a)."""

    def change(a):
        w = rope.frequencies(a.dim, a.base) if a.frequencies is None else a.frequencies
        return w ** power(a) if _geometric(w) and power(a) != 1 else missing()

    return using(frequencies=change)


def _angle(a, axis, index):
    w = rope.frequencies(a.dim, a.base) if a.frequencies is None else a.frequencies
    return axes.angles(a.coordinates, w[index] if a.order is None else w[np.array(a.order)[index]], axis)


def _of_features(spread):
    """Each feature reads its own axis: spread(axes of the pairs, number of pairs)."""

    def wrong(f, a):
        axis, half = np.sort(np.array(a.axis)), a.dim // 2
        if axis.tolist() != list(a.axis) or a.layout != "half" or axis.max() == 0:
            missing()
        angle = _angle(a, spread(axis, half), np.arange(a.dim) % half)
        x = a.x[..., : a.dim]
        turned = x * np.cos(angle) + np.concatenate([-x[..., half:], x[..., :half]], axis=-1) * np.sin(angle)
        return np.concatenate([turned, a.x[..., a.dim :]], axis=-1)

    return wrong


def _two_layouts(pairs, tables):
    """Pairs of one layout with full-width tables of another; both layouts are functions of the one asked for."""

    def wrong(f, a):
        angle = _angle(a, np.array(a.axis), np.arange(a.dim // 2))
        wide = pairing.join(angle, angle, tables(a.layout))
        first, second = pairing.split(a.x[..., : a.dim], pairs(a.layout))
        quarter = pairing.join(-second, first, pairs(a.layout))
        return np.concatenate([a.x[..., : a.dim] * np.cos(wide) + quarter * np.sin(wide), a.x[..., a.dim :]], axis=-1)

    return wrong


def _cos_sin_swapped(f, a):
    angle = _angle(a, np.array(a.axis), np.arange(a.dim // 2))
    return rope.rotate(a.x, np.sin(angle), np.cos(angle), layout=a.layout, rotary_dim=a.dim)


POWERS = {  # what an exponent is multiplied by
    "exponent_head_dim": lambda a: a.dim / a.x.shape[-1],
    "exponent_doubled": lambda a: 2,
    "exponent_halved": lambda a: 0.5,
}
WHOLE, DONE = (0, 1, 2), (0, 2, 1)  # orders of three axes: as asked, and rows_and_columns_exchanged

ARRAYS = {"height": lambda s: 4, "width": lambda s: 6, "sizes": lambda s: np.array([4, 2, 2]), "coordinates": _coordinates}

MISTAKES = {
    "dealt_out": Mistake(_dealt, only="sections").words("""
        pairs are dealt to the axes in turn where each axis has a section
        Right for text, wrong for images.
        Repeat axis a for its `mrope_section[a]` pairs, one axis after the other."""),
    "in_sections": Mistake(_apart, only="interleaved_sections").words("""
        each axis has a section of pairs where pairs are dealt to the axes in turn
        Right for text, wrong for images.
        Let pair t read axis t mod 3 while that axis has pairs left (mrope_interleaved)."""),
    "other_leftover": Mistake(using(leftover=_other_leftover), only="interleaved_sections").words("""
        pairs that are left over read a fourth stream of positions instead of time, or the reverse
        Low frequencies of some pairs are not turned.
        Let pairs without an axis left read time; ggml's IMROPE keeps a fourth stream for them."""),
    "rows_and_columns_exchanged": Mistake(using(coordinates=_exchanged), only="rotate").words("""
        rows and columns are exchanged
        Images are transposed.
        Order positions as time, row, column."""),
    "first_axis_alone": Mistake(using(axis=lambda a: 0 * np.array(a.axis)), only="rotate").words("""
        every pair reads the first axis
        Right for text; patches of an image have one position.
        Pick for every pair the position on its own axis before the angles are made."""),
    "order_ignored": Mistake(using(order=_natural), only="rotate").words("""
        the pairs take the frequencies of the whole width in their natural order
        Columns are turned too slowly.
        Take the frequencies in the order of the model: even ones for rows, then for columns."""),
    "frequencies_anew": Mistake(using(order=_same_frequencies), only="rotate").words("""
        the frequencies start again on every axis, instead of going on through all pairs
        Text of the later axes is turned too fast.
        Make one list of frequencies for the whole width and let pair t keep entry t."""),
    "other_layout": Mistake(using(layout=lambda a: OTHER_LAYOUT[a.layout]), only="rotate").words("""
        features are paired (t, t + dim/2) instead of (2t, 2t+1), or the reverse
        A valid rotation of the wrong features.
        Change the pairing, or permute the projections (posref.rotary.layouts)."""),
}


def _squares(f, a):
    """The grid as `(rows of squares, columns of squares, merge, merge, 2)`."""
    return f(**a).reshape(a.height // a.merge, a.width // a.merge, a.merge, a.merge, 2)


FURTHER = {
    "dealt_until_none_is_left": Mistake(_in_rounds, only="interleaved_sections").words("""
        pairs are dealt in rounds among the axes that have pairs left: a round becomes shorter where one axis has none
        Right where time has the most pairs and the others have the same number.
        Let pair t read axis t mod 3 while that axis has pairs left, and time otherwise."""),
    "columns_before_rows": Mistake(result(lambda y: y[..., ::-1]), only="grid").words("""
        each patch has (column, row) instead of (row, column)
        Images are transposed.
        Stack rows first: meshgrid with indexing='ij', and height before width."""),
    "column_by_column": Mistake(lambda f, a: f(a.width, a.height, merge=a.merge)[..., ::-1], only="grid").words("""
        patches are listed column by column instead of row by row
        Images are transposed.
        Let the column run fastest, as patches lie in memory."""),
    "square_column_by_column": Mistake(
        lambda f, a: _squares(f, a).swapaxes(2, 3).reshape(-1, 2) if a.merge > 1 else missing(), only="grid"
    ).words("""
        the patches of a square are listed column by column instead of row by row
        Two of four patches of each square have each other's positions.
        Let the column run fastest within a square."""),
    "squares_column_by_column": Mistake(
        lambda f, a: _squares(f, a).swapaxes(0, 1).reshape(-1, 2) if a.merge > 1 else missing(), only="grid"
    ).words("""
        the squares are listed column by column instead of row by row
        Images are transposed.
        Let the column of squares run fastest, as squares lie in memory."""),
    "centered": Mistake(lambda f, a: f(**a) - np.array([a.height // 2, a.width // 2]), only="grid").words("""
        rows and columns are counted from the middle of the image
        Right scores where all tokens are patches of one image; text and other images are at other distances.
        Count from 0, or subtract the middle in the model that does so."""),
    "not_merged": Mistake(using(merge=lambda a: 1 if a.merge > 1 else missing()), only="grid").words("""
        patches are listed row by row, not square by square
        Patches have each other's positions.
        List the merge x merge patches of a square one after the other."""),
    **{f"base {base:g}": _base(base) for base in (1e4, 5e5, 1e6, 5e6, 1e7)},
    "sections_for_turns": Mistake(_pairs(np.sort)).words("""
        each axis has a section of pairs where pairs are dealt to the axes in turn
        Right for text, wrong for images.
        Give pair t the axis that the list of the model says."""),
    "turns_for_sections": Mistake(_pairs(_turns)).words("""
        pairs are dealt to the axes in turn, one each, where each axis has a section
        Right for text, wrong for images.
        Repeat axis a for the pairs of its section, one axis after the other."""),
    "turns_to_the_end": Mistake(_to_the_end, only="rotate interleaved_sections").words("""
        pairs are dealt to the axes in turn to the end: how many pairs each axis has is forgotten
        Right for text, wrong for images in the last pairs.
        Deal pairs to an axis only while it has pairs left (mrope_section); later ones read time, or a fourth stream."""),
    **{f"axes_{''.join(map(str, order))}": _numbered(order) for order in permutations(range(3)) if order not in (DONE, WHOLE)},
    **{f"sections_{''.join(map(str, order))}": _sections(order) for order in permutations(range(3)) if order != WHOLE},
    **{
        f"second_half_on_axis_{words}": Mistake(_of_features(spread)).words(f"""
            the sections are laid over the first half of the features; all of the second half reads the {words} axis
            Not a rotation: norms change; right for text.
            Split cos and sin, which repeat the pairs, into the sections twice: sections * 2, then index i % 3.""")
        for words, spread in (
            ("first", lambda axis, half: np.append(axis, np.zeros(half, int))),
            ("last", lambda axis, half: np.append(axis, np.full(half, axis.max()))),
        )
    },
    "sections_of_features": Mistake(
        _of_features(lambda axis, half: np.repeat(np.arange(axis.max() + 1), 2 * np.bincount(axis)))
    ).words("""
        sections of twice the size are laid over the features, so that both members of a pair read different axes
        Not a rotation: norms change; right for text.
        Split cos and sin, which repeat the pairs, into the sections twice: sections * 2, then index i % 3."""),
    "sign": Mistake(using(coordinates=lambda a: -a.coordinates), "the sine has the wrong sign", remedy="Turn by +m theta."),
    "tables_alone_right": ROPE["tables_alone_right"]._replace(wrong=_two_layouts(OTHER_LAYOUT.get, str), kind=""),
    "tiled_tables": ROPE["tiled_tables"]._replace(wrong=_two_layouts(str, OTHER_LAYOUT.get), kind="", seen_in=()),
    "cos_sin_swapped": Mistake(
        _cos_sin_swapped, "cos and sin are exchanged", remedy="Check the order in which the tables are returned and unpacked."
    ),
    "frequencies_of_the_whole_width": Mistake(using(frequencies=_of_the_whole_width, order=None)).words("""
        base^(-2t/dim) over the whole width, where each axis has frequencies of its own part
        The later axes turn too slowly.
        Make the frequencies of one axis, base^(-2t/width of its part), and repeat them for each axis."""),
    "frequencies_of_each_part": Mistake(using(frequencies=_of_its_part, order=None)).words("""
        each axis has the frequencies of its own part, base^(-2t/width of its part), where one list goes through all pairs
        Right for no text: later pairs turn too fast.
        Make one list of frequencies for the whole width and let pair t keep entry t."""),
    **{name: ROPE[name]._replace(wrong=_to_the_power(power), kind="", only="rotate") for name, power in POWERS.items()},
    "bf16_frequencies": Mistake(
        using(frequencies=lambda a: rounded(rope.frequencies(a.dim, a.base) if a.frequencies is None else a.frequencies, 8)),
        "the frequencies are held in bfloat16 (8 bits)",
        remedy="Keep inv_freq in float32 when the model is cast.",
    ),
}

PRESETS = {name: ("rotate", values) for name, values in axes.PRESETS.items()}

SCORES = "positions of more than one axis; on one axis it is RoPE"


def _head(t):
    coordinates = np.stack(np.divmod(t.positions, 8), axis=-1)  # rows of 8
    angles = axes.angles(coordinates, rope.frequencies(t.dim), np.arange(t.dim // 2) % 2)
    q, k, v = t.projected(t.x)
    return t.attended(*(rope.rotate(y, np.cos(angles), np.sin(angles), layout=layers.LAYOUT) for y in (q, k)), v)
