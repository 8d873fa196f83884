"""Swin: what an implementation can be asked for, and how it goes wrong."""

# Over budget: two versions, BEiT's table, shifted windows and released masks

import numpy as np

from posref import attention
from posref.ops import Mistake, inside, instead, missing, result, using, with_words
from posref.ops.probe import painted
from posref.relative import swin


def bias(coordinates, table, *, height, width):
    return swin.bias(swin.rows(coordinates, height=height, width=width), table)


def bias_with_cls(coordinates, table, *, height, width):
    return swin.bias(swin.rows_with_cls(coordinates, height=height, width=width), table)


def attend(q, k, v, coordinates, table, *, height, width, scale):
    return attention.attend(q, k, v, scale=scale, bias=bias(coordinates, table, height=height, width=width))


continuous_bias = swin.continuous_bias
logarithmic_bias = swin.logarithmic_bias
shift_mask = swin.shift_mask


def attend_v2(q, k, v, logit_scale, bias, mask):
    return attention.softmax(swin.scores(q, k, logit_scale) + bias, mask) @ v


def _grid(s):
    return np.stack(np.divmod(np.arange(s.get("height", 2) * s.get("width", 3)), s.get("width", 3)), axis=-1)


def _last_window(height, width, shift):
    """Places of the lower right window of an image of more windows, where what was rolled round begins."""
    first = [max(min(side // 2, side - shift - 1), 0) for side in (height, width)]
    return np.stack(np.meshgrid(*map(np.arange, first, (height, width)), indexing="ij"), axis=-1).reshape(-1, 2)


def _features(tag):
    return lambda s: painted((s.batch, s.heads, len(_grid(s)), s.head_dim), tag)


def _together(n):
    return np.arange(n)[:, None] // 2 == np.arange(n) // 2


ARRAYS = {
    "coordinates": lambda s: _last_window(s.height, s.width, s.shift) if "shift" in s else _grid(s),
    "table": lambda s: painted(((2 * s.height - 1) * (2 * s.width - 1) + 3, s.heads), 6),
    "q": _features(1),
    "k": _features(2),
    "v": _features(4),
    "logit_scale": lambda s: np.array([2.5, 5.0, -0.25, 4.0] * s.heads)[: s.heads],
    # what the mask forbids has 0, 150 or 300 in turn, so that no mask, and masks of -100 and -200, show
    "bias": lambda s: 2 * painted((s.heads, 6, 6), 6) + 150 * (np.arange(6)[:, None] % 3) * ~_together(6),
    "mask": lambda s: _together(6),
    "w_1": lambda s: painted((5, 2), 8),
    "b_1": lambda s: painted((5,), 9),
    "w_2": lambda s: painted((s.heads, 5), 10),
    "b_2": lambda s: painted((s.heads,), 11),
}


def _exchanged(a):
    return a.coordinates[..., ::-1]


def _stride(right):
    """Rows of the table as far apart as the window is high, and not wide; beyond the table, its last row."""

    def rows(coordinates, *, height, width):
        dy, dx = np.divmod(right(coordinates, height=height, width=width), 2 * width - 1)
        return np.minimum(dy * (2 * height - 1) + dx, (2 * height - 1) * (2 * width - 1) - 1)

    return rows


def _no_stride(right):
    return lambda at, *, height, width: np.add(*np.divmod(right(at, height=height, width=width), 2 * width - 1))


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
    """Weights of `old` samples at the centres of `new` ones."""
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


def _no_sigmoid(y):
    return np.log(y / (16 - y))


MISTAKES = with_words(
    __name__,
    sign=using(coordinates=lambda a: -a.coordinates),
    rows_and_columns_exchanged=using(coordinates=_exchanged, height=lambda a: a.width, width=lambda a: a.height),
    stride_of_the_height=inside(swin, "rows", _stride),
    no_stride=inside(swin, "rows", _no_stride),
    transposed_table=using(table=_transposed),
    cls_last=result(_cls_last),
    divided_by_the_window=using(height=lambda a: a.height + 1, width=lambda a: a.width + 1),
    linear_coordinates=inside(swin, "log_spaced", _linear),
    no_sigmoid=result(_no_sigmoid),
    uncapped=inside(swin, "scores", _uncapped),
    scaled=inside(swin, "scores", _scaled),
    mask_of_100=_masked_by(1),
    mask_added_twice=_masked_by(2),
    base_of_8=using(w_1=lambda a: a.w_1 / np.log(8)),
    sigmoid_of_it=result(lambda y: 8 * (1 + np.tanh(y / 2))),
    no_last_bias=using(b_2=lambda a: 0 * a.b_2),
    padded_after_rolling=using(height=lambda a: a.height + 1, width=lambda a: a.width + 1),
    not_rolled=using(shift=0),
)

PRESETS = {name: ("bias", swin.PRESETS[name]) for name in swin.PRESETS}

SCORES = {"swin": ("one", "one", "one", "vector")}


def _head(t):
    """Rows of eight, in one window as large as the text that was trained."""
    coordinates, height = np.stack(np.divmod(t.positions, 8), axis=-1), -(-t.trained // 8)
    rows = swin.rows(coordinates, height=height, width=8)
    return t.attended(*t.projected(t.x), swin.bias(rows, t.parameter((2 * height - 1) * 15, 1))[0])


def _window_of(n):
    return lambda a: n if (a.height, a.width) != (n, n) else missing()


def _cls_exchanged(a):
    return np.concatenate([a.table[:-3], a.table[[-2, -3, -1]]])


FURTHER = with_words(
    __name__,
    **{
        f"{words}_alone": Mistake(
            using(coordinates=lambda a, keep=keep: a.coordinates * keep),
            f"the mask is filled by the {words} alone: the slices of the other axis are missing",
            "Windows see across one edge of the image.",
            "Number the regions by both axes: nine of them.",
            only="shift_mask",
        )
        for words, keep in (("rows", [1, 0]), ("columns", [0, 1]))
    },
    **{
        f"window_{n}": Mistake(
            using(height=_window_of(n), width=_window_of(n)),
            f"offsets are divided by {n - 1}, as if the model had been trained with windows of {n} by {n}",
            "Every offset but 0 has another bias.",
            "Divide by the trained window less one: pretrained_window_size, or window_size where that is 0.",
            only="continuous_bias",
        )
        for n in (2, 6, 7, 8, 12, 14, 16, 24)
    },
    logarithm_to_base_2=inside(swin, "log_spaced", lambda right: lambda offsets, *, window: 3 * right(offsets, window=window)),
    natural_logarithm=inside(
        swin, "log_spaced", lambda right: lambda offsets, *, window: np.log(8) * right(offsets, window=window)
    ),
    rows_of_cls_exchanged=using(table=_cls_exchanged),
)
