"""Swin: the functions to check, and the mistakes that implementations make."""

# Over budget: two versions, BEiT's table, volumes, shifted windows and released masks

import numpy as np

from posref import attention, offsets
from posref.ops import Mistake, both, inside, instead, missing, result, using
from posref.ops.probe import painted
from posref.relative import swin


def bias(coordinates, table, *, height, width, depth=None):
    # depth: for a window of a volume with coordinates plane, row, column; planes are (2H - 1)(2W - 1) rows apart
    rows = swin.rows(coordinates[..., -2:], height=height, width=width)
    return swin.bias(rows if depth is None else rows + (2 * height - 1) * (2 * width - 1) * _planes(coordinates, depth), table)


def _planes(coordinates, depth):
    return depth - 1 - offsets.offsets(coordinates[..., 0], coordinates[..., 0])


def bias_with_cls(coordinates, table, *, height, width):
    return swin.bias(swin.rows_with_cls(coordinates, height=height, width=width), table)


def attend(q, k, v, coordinates, table, *, height, width, scale):
    return attention.attend(q, k, v, scale=scale, bias=bias(coordinates, table, height=height, width=width))


continuous_bias = swin.continuous_bias
logarithmic_bias = swin.logarithmic_bias


def shift_mask(coordinates, *, height, width, shift, depth=None):
    # shift: one number for all axes, or one per axis; depth: for a volume with coordinates plane, row, column
    sides = _sides(height, width, depth)
    if len(sides) == 2 and np.ndim(shift) == 0:
        return swin.shift_mask(coordinates, height=height, width=width, shift=shift)
    shifts = _for_each(shift, sides)
    axes = (np.stack([x, x], axis=-1) for x in np.moveaxis(coordinates, -1, 0))
    masks = (swin.shift_mask(x, height=n, width=n, shift=s) for x, n, s in zip(axes, sides, shifts.tolist(), strict=True))
    return np.logical_and.reduce([*masks])


def attend_v2(q, k, v, logit_scale, bias, mask):
    return attention.softmax(swin.scores(q, k, logit_scale) + bias, mask) @ v


def _grid(s):
    sides = _sides(s.get("height", 2), s.get("width", 3), s.get("depth"))
    return np.indices(sides).reshape(len(sides), -1).T


def _sides(height, width, depth):
    return [height, width] if depth is None else [depth, height, width]


def _for_each(shift, sides):
    """One shift per axis. ValueError if a shift is longer than its axis."""
    shifts = np.asarray(shift)
    if shifts.ndim > 1 or shifts.size not in (1, len(sides)):
        raise ValueError(f"swin.shift_mask: shift is {shift}, expected one number, or {len(sides)}, one for each axis")
    shifts = np.broadcast_to(shifts, len(sides))
    if (shifts < 0).any() or (shifts > sides).any():
        raise ValueError(
            f"swin.shift_mask: shifts are {shifts.tolist()} and sides {sides}, expected 0 to the side of each axis; "
            "give the shift in tokens, half of the window along this axis"
        )
    return shifts


def _last_window(s):
    """Coordinates of the lower right window of a larger image, where the regions begin that each shift rolled around."""
    sides = _sides(s.height, s.width, s.depth)
    first = [max(min(side // 2, side - max(_for_each(s.shift, sides)) - 1), 0) for side in sides]
    return np.stack(np.meshgrid(*map(np.arange, first, sides), indexing="ij"), axis=-1).reshape(-1, len(sides))


def _features(tag):
    return lambda s: painted((s.batch, s.heads, len(_grid(s)), s.head_dim), tag)


def _together(n):
    return np.arange(n)[:, None] // 2 == np.arange(n) // 2


ARRAYS = {
    "coordinates": lambda s: _last_window(s) if "shift" in s else _grid(s),
    "table": lambda s: painted((np.prod([2 * n - 1 for n in _sides(s.height, s.width, s.get("depth"))]) + 3, s.heads), 6),
    "q": _features(1),
    "k": _features(2),
    "v": _features(4),
    "logit_scale": lambda s: np.array([2.5, 5.0, -0.25, 4.0] * s.heads)[: s.heads],
    # forbidden keys have 0, 150 or 300 in turn, which shows a missing mask and masks of -100 and -200
    "bias": lambda s: 2 * painted((s.heads, 6, 6), 6) + 150 * (np.arange(6)[:, None] % 3) * ~_together(6),
    "mask": lambda s: _together(6),
    "w_1": lambda s: painted((5, 2), 8),
    "b_1": lambda s: painted((5,), 9),
    "w_2": lambda s: painted((s.heads, 5), 10),
    "b_2": lambda s: painted((s.heads,), 11),
}


def _exchanged(a):
    return np.concatenate([a.coordinates[..., :-2], a.coordinates[..., :-3:-1]], axis=-1)


def _stride(right):
    """Table rows that are 2 height - 1 apart, instead of 2 width - 1; beyond the table, its last row."""

    def rows(coordinates, *, height, width):
        dy, dx = np.divmod(right(coordinates, height=height, width=width), 2 * width - 1)
        return np.minimum(dy * (2 * height - 1) + dx, (2 * height - 1) * (2 * width - 1) - 1)

    return rows


def _no_stride(right):
    return lambda at, *, height, width: np.add(*np.divmod(right(at, height=height, width=width), 2 * width - 1))


def _column_by_column(exchanged):
    """Token t = y W + x is placed at (t % H, t // H), or the reverse; vectors beyond the table are 0."""

    def rows(right):
        def changed(coordinates, *, height, width):
            if min(height, width) == 1 or coordinates.shape[-1] != 2:
                missing()
            t = coordinates[..., 0] * width + coordinates[..., 1]
            y, x = (t // height, t % height) if exchanged else (t % height, t // height)
            down, along = offsets.offsets(y, y), offsets.offsets(x, x)
            return (height - 1 - down) * (2 * width - 1) + width - 1 - along

        return changed

    def bias(right):
        def changed(rows, table):
            inside_of_it = (rows >= 0) & (rows < len(table))
            return inside_of_it[..., None, :, :] * right(np.where(inside_of_it, rows, 0), table)

        return changed

    return both(inside(swin, "rows", rows), inside(swin, "bias", bias))


def _transposed(a):
    rows, columns = 2 * a.height - 1, 2 * a.width - 1
    if rows == columns:
        missing()
    patches = a.table[: rows * columns].reshape(columns, rows, -1)
    y, x = (np.arange(n)[:, None] for n in (rows, columns))
    down, right = _bilinear(y, rows, columns), _bilinear(x, columns, rows)
    resized = np.einsum("yc,xr,crh->yxh", down, right, patches)
    return np.concatenate([resized.reshape(rows * columns, -1), a.table[rows * columns :]])


def _bilinear(places, new, old):
    """Bilinear weights of `old` samples at the centres of `new` samples."""
    at = np.clip((places + 0.5) * old / new - 0.5, 0, old - 1)
    return np.maximum(1 - np.abs(at - np.arange(old)), 0)


def _cls_last(y):
    order = np.roll(np.arange(y.shape[-1]), -1)
    return y[..., order[:, None], order]


def _masked_by(amount):
    def wrong(q, k, v, logit_scale, bias, mask):
        return attention.softmax(swin.scores(q, k, logit_scale) + bias + amount * swin.shift_bias(mask)) @ v

    return instead(wrong)


def _uncapped(right):
    return lambda q, k, s: right(q, k, 0 * s) * np.exp(s)[:, None, None]


def _scaled(right):
    return lambda q, k, s: right(q, k, s) / np.sqrt(q.shape[-1])


def _linear(right):
    return lambda offsets, *, window: offsets / (window - 1)


MISTAKES = {
    "sign": Mistake(
        using(coordinates=lambda a: -a.coordinates), only="bias bias_with_cls attend continuous_bias logarithmic_bias"
    ).words("""
        the offset is key - query, not Swin's query - key
        Images are seen upside down and mirrored.
        Subtract the key's coordinates from the query's."""),
    "rows_and_columns_exchanged": Mistake(
        using(coordinates=_exchanged, height=lambda a: a.width, width=lambda a: a.height),
        only="bias bias_with_cls attend continuous_bias",
    ).words("""
        rows and columns are exchanged: the table counts by columns first
        Images are transposed.
        row = (dy + H - 1)(2W - 1) + dx + W - 1."""),
    "stride_of_the_height": Mistake(inside(swin, "rows", _stride)).words("""
        (dy + H - 1)(2H - 1) + dx + W - 1: the stride is that of the other axis
        Right for square windows; else vectors share rows of the table.
        A row of the table's grid has 2W - 1 entries."""),
    "no_stride": Mistake(inside(swin, "rows", _no_stride)).words("""
        (dy + H - 1) + (dx + W - 1): the row is not multiplied by 2W - 1
        Vectors share rows of the table: down and right look alike.
        Multiply dy + H - 1 by 2W - 1, then add dx + W - 1."""),
    "transposed_table": Mistake(using(table=_transposed), only="bias_with_cls").words("""
        the table is resized as (2W - 1, 2H - 1), as in transformers' BEiT
        Right for square windows alone.
        Reshape the table to (2H - 1, 2W - 1, h); do not resize what fits."""),
    "cls_last": Mistake(result(_cls_last), only="bias_with_cls").words("""
        the three extra rows of [CLS] are put at the end of the table
        [CLS] has the bias of a patch.
        [CLS] is token 0."""),
    "divided_by_the_window": Mistake(
        using(height=lambda a: a.height + 1, width=lambda a: a.width + 1), only="continuous_bias"
    ).words("""
        offsets are divided by W instead of W - 1
        Coordinates end before 1.0566.
        Divide by the trained window less one."""),
    "linear_coordinates": Mistake(inside(swin, "log_spaced", _linear), only="continuous_bias").words("""
        x / (W - 1): coordinates are not spaced by a logarithm
        Near offsets are hardly distinguished.
        sign(x) log2(1 + 8 |x| / (W - 1)) / 3."""),
    "no_sigmoid": Mistake(result(lambda y: np.log(y / (16 - y))), only="continuous_bias").words("""
        16 sigmoid is left out: the network's output is the bias
        Biases are negative or too small.
        16 sigmoid(..) of what the network gives."""),
    "uncapped": Mistake(inside(swin, "scores", _uncapped)).words("""
        e^s: the temperature is not capped at 100
        Heads that learned a large one are too sharp.
        exp(min(s, ln 100))."""),
    "scaled": Mistake(inside(swin, "scores", _scaled)).words("""
        tau cos(q, k) / sqrt(d): the usual scale is applied as well
        Attention is too even.
        Cosines have no 1/sqrt(d)."""),
    "mask_of_100": Mistake(_masked_by(1), kind="mask", only="attend_v2").words("""
        masked scores get -100, as in the release, instead of minus infinity
        Where logits are as large, tokens of other regions are seen.
        Pass the boolean mask to the softmax."""),
    "mask_added_twice": Mistake(_masked_by(2), kind="mask", only="attend_v2").words("""
        masked scores get -200: the mask of -100 is added twice, as in transformers
        Closer to a mask than the released one: another model.
        Pass the boolean mask to the softmax."""),
    "base_of_8": Mistake(using(w_1=lambda a: a.w_1 / np.log(8)), only="logarithmic_bias").words("""
        sign(x) log_8(1 + |x|): Swin v2's logarithm in place of timm's
        Every patch is half as far away.
        The natural logarithm, of offsets that nothing divides."""),
    "sigmoid_of_it": Mistake(result(lambda y: 8 * (1 + np.tanh(y / 2))), only="logarithmic_bias").words("""
        16 sigmoid of the bias, as in Swin v2
        No bias is below 0, or above 16.
        The network's result as it is."""),
    "no_last_bias": Mistake(using(b_2=lambda a: 0 * a.b_2), only="logarithmic_bias").words("""
        b_2 is left out: the network ends without a bias, as in Swin v2
        Nothing: one number for all keys of a head cancels in a softmax.
        Add b_2, if biases are compared."""),
    "padded_after_rolling": Mistake(
        using(height=lambda a: a.height + 1, width=lambda a: a.width + 1), only="shift_mask"
    ).words("""
        the region that came round begins one too late, at n + 1 - shift: > for >=, or an image rolled, then padded, as in timm
        The two ends of the image see each other where windows do not divide it.
        Split each axis at its own n - shift; pad before rolling."""),
    "not_rolled": Mistake(using(shift=0), only="shift_mask").words("""
        the shift is ignored: the mask is that of an image that was not rolled
        The two ends of the image see each other.
        Split each axis at n - shift."""),
}

PRESETS = {name: ("bias", swin.PRESETS[name]) for name in swin.PRESETS}

SCORES = {"swin": ("one", "one", "one", "vector")}


def _head(t):
    """Words in rows of eight, in one window as large as the trained text."""
    coordinates, height = np.stack(np.divmod(t.positions, 8), axis=-1), -(-t.trained // 8)
    rows = swin.rows(coordinates, height=height, width=8)
    return t.attended(*t.projected(t.x), swin.bias(rows, t.parameter((2 * height - 1) * 15, 1))[0])


def _window_of(n):
    return lambda a: n if (a.height, a.width) != (n, n) else missing()


def _padded_to(n):
    """Regions that end, along each axis, n and `shift` places before the end of the image padded to windows of n."""

    def wrong(f, a):
        sides = _sides(a.height, a.width, a.depth)
        size = -(-np.array(sides) // n) * n
        if (size == sides).all() or not 0 < np.min(a.shift) <= np.max(a.shift) < n <= min(sides):
            missing()
        region = np.sum(a.coordinates[..., None] >= np.stack([size - n, size - a.shift], axis=-1), axis=-1)
        seen = (region[..., :, None, :] == region[..., None, :, :]).all(axis=-1)
        return seen if not seen.all() else missing()

    return wrong


def _shifted_by(change, planes=False):
    """Other shifts, at most the whole axis, if each axis has its own: change(shifts of planes, rows and columns)."""

    def shift(a):
        if np.ndim(a.shift) == 0 or (planes and not a.depth):
            missing()
        return np.minimum(change(np.asarray(a.shift)), _sides(a.height, a.width, a.depth))

    return Mistake(using(shift=shift), kind="shift", only="shift_mask")


def _axes_alone(*kept):
    """Planes, rows and columns are shifted only if their entry of `kept` is 1; an image has no planes."""

    def shift(a):
        if kept[0] and not a.depth:
            missing()
        return np.array(kept if a.depth else kept[1:]) * a.shift

    return using(shift=shift)


def _planes_apart(stride):
    """Planes of the table that are stride(2D - 1, 2H - 1, 2W - 1) rows apart; beyond the table, its last row."""

    def change(right, a):
        d, h, w = (2 * n - 1 for n in (a.depth or missing(), a.height, a.width))
        closer = (stride(d, h, w) - h * w) * _planes(a.coordinates, a.depth)
        return lambda rows, table: right(np.minimum(rows + closer, len(table) - 1), table)

    return inside(swin, "bias", change)


_as_in_nnformer = both(inside(swin, "rows", _stride), _planes_apart(lambda d, h, w: (3 * h + 1) // 2))


def _cls_exchanged(a):
    return np.concatenate([a.table[:-3], a.table[[-2, -3, -1]]])


FURTHER = {
    **{
        f"padded_to_windows_of_{n}": Mistake(_padded_to(n), only="shift_mask").words(f"""
            the regions of the mask are those of the image padded to windows of {n}: they begin at the padded size less {n}
            Two ends of the image see each other, and windows are cut in two.
            Make the mask for the size that the rolled image has.""")
        for n in (4, 7, 8, 12, 14, 16, 24)
    },
    **{
        f"{words}_alone": Mistake(_axes_alone(*kept), only="shift_mask").words(f"""
            the mask is filled by the {words.replace("_", " ")} alone: another axis is not shifted, or its slices are missing
            Windows see across one edge of the image.
            Number the regions by all axes that are shifted: nine in an image, 27 in a volume.""")
        for words, kept in (
            ("rows", (0, 1, 0)),
            ("columns", (0, 0, 1)),
            ("planes", (1, 0, 0)),
            ("rows_and_columns", (0, 1, 1)),
            ("planes_and_rows", (1, 1, 0)),
            ("planes_and_columns", (1, 0, 1)),
        )
    },
    **{
        f"tokens_column_by_column{name}": Mistake(
            _column_by_column(exchanged), kind="order", only="bias bias_with_cls attend"
        ).words(f"""
            the table is indexed as if the tokens were counted column by column{words}
            Images are transposed; right for windows of one column.
            Count tokens row by row: meshgrid(rows, columns, indexing="ij"), which TensorFlow does not by default.""")
        for name, words, exchanged in (
            ("", "", False),
            (
                "_and_axes_exchanged",
                ", and rows and columns change places with unchanged strides; what is beyond the table is 0",
                True,
            ),
        )
    },
    **{
        f"shift_of_{words}_for_all": _shifted_by(lambda shifts, n=n: np.full_like(shifts, shifts[n]), planes=n == -3).words(f"""
            the shift of the {words} is used for all axes
            Right for square windows; with others, tokens of both ends of an axis see each other.
            Give each axis its own shift, half of the window along this axis.""")
        for words, n in (("planes", -3), ("rows", -2), ("columns", -1))
    },
    **{
        f"planes_apart_{name}": Mistake(_planes_apart(stride), kind="planes", only="bias").words(f"""
            the planes of the table are {words} rows apart
            Vectors of two planes share rows of the table.
            A plane of the table has (2H - 1)(2W - 1) rows.""")
        for name, words, stride in (
            ("by_1", "1", lambda d, h, w: 1),
            ("by_rows", "2H - 1", lambda d, h, w: h),
            ("by_columns", "2W - 1", lambda d, h, w: w),
            ("as_in_nnformer", "3H - 1, as in nnFormer,", lambda d, h, w: (3 * h + 1) // 2),
            ("by_planes_and_rows", "(2D - 1)(2H - 1)", lambda d, h, w: d * h),
            ("by_planes_and_columns", "(2D - 1)(2W - 1)", lambda d, h, w: d * w),
            ("by_squares", "(2H - 1)(2H - 1)", lambda d, h, w: h * h),
        )
    },
    "strides_as_in_nnformer": Mistake(
        lambda f, a: _as_in_nnformer(f, a) if a.height != a.width else missing(), kind="planes", only="bias"
    ).words("""
        the planes of the table are 3H - 1 rows apart, and the rows of a plane 2H - 1, as in nnFormer
        Vectors of two planes share rows of the table.
        A plane of the table has (2H - 1)(2W - 1) rows, and a row of a plane 2W - 1."""),
    "shifts_exchanged": _shifted_by(lambda shifts: shifts[[*range(len(shifts) - 2), -1, -2]]).words("""
        the shifts of rows and columns are exchanged
        Right for square windows; with others, tokens of both ends of an axis see each other.
        Give the shifts in the order of the axes: rows, then columns."""),
    "shifts_in_reverse": _shifted_by(lambda shifts: shifts[::-1], planes=True).words("""
        the shifts are in reverse order: that of the columns first
        Right for windows that are cubes.
        Give the shifts in the order of the axes: planes, rows, then columns."""),
    **{
        f"window_{n}": Mistake(using(height=_window_of(n), width=_window_of(n)), only="continuous_bias").words(f"""
            offsets are divided by {n - 1}, as if the model had been trained with windows of {n} by {n}
            Every offset but 0 has another bias.
            Divide by the trained window less one: pretrained_window_size, or window_size where that is 0.""")
        for n in (2, 6, 7, 8, 12, 14, 16, 24)
    },
    "logarithm_to_base_2": Mistake(
        inside(swin, "log_spaced", lambda right: lambda offsets, *, window: 3 * right(offsets, window=window)),
        only="continuous_bias",
    ).words("""
        sign(x) log_2(1 + 8 |x| / (W - 1)): the division by log_2(8) is left out
        Coordinates are 3 times too large.
        Divide by log_2(8) = 3."""),
    "natural_logarithm": Mistake(
        inside(swin, "log_spaced", lambda right: lambda offsets, *, window: np.log(8) * right(offsets, window=window)),
        only="continuous_bias",
    ).words("""
        sign(x) ln(1 + 8 |x| / (W - 1)): the logarithm is not divided by ln 8
        Coordinates are 2.08 times too large.
        Divide by ln 8."""),
    "rows_of_cls_exchanged": Mistake(using(table=_cls_exchanged), only="bias_with_cls").words("""
        the rows of (CLS, any) and (any, CLS) are exchanged
        [CLS] reads the biases with which patches look at it.
        Of the last three rows the first is for [CLS] as query, the second for [CLS] as key."""),
}
