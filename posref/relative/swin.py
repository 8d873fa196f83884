r"""Swin: one trained number per two-dimensional offset within a window of patches; in version 2 a small network computes it.

A window has few patches, so each offset (rows, columns) between two patches can have its own number. In version 2 a network of
the logarithm of the offset also serves window sizes that were never trained.

Also called: shifted windows, Swin v2, SwinV2, log-CPB, continuous position bias, BEiT, Data2Vec vision.

Definition. (dy, dx) = query - key in a window of H rows and W columns, and T a table with a row for each of its values:

    row(dy, dx) = (dy + H - 1)(2W - 1) + dx + W - 1
    s_ij = q_i . k_j / sqrt(d) + T[row(dy, dx), a]                           Swin
    s_ij = tau_a cos(q_i, k_j) + 16 sigmoid(m_a(g(dy, H), g(dx, W)))         Swin v2
    g(x, W) = sign(x) log_8(1 + 8 |x| / (W - 1)),  tau = min(e^s, 100)
    m(x) = w_2 max(w_1 x + b_1, 0)
    s_ij = tau_a cos(q_i, k_j) + m_a(l(dy), l(dx)) + b_2a                    Swin v2 "cr" of timm
    l(x) = sign(x) ln(1 + |x|)

An image whose windows are shifted is rolled, so that a window may hold both ends of an axis of n: a token at n - shift or
beyond, which came from the start, and one before do not attend to each other. Windows that are not square, and those of a
volume, have a shift for each axis; a closed axis, such as longitude, needs no mask: 0. In a volume the row of the table is
(dz + D - 1)(2H - 1)(2W - 1) more. BEiT has Swin's table and three rows more, for [CLS] in front: (CLS, any), (any, CLS),
(CLS, CLS).

Symbols.

    q (..., h, n_query, d)        queries
    k (..., h, n_key, d)          keys
    coordinates (..., n, 2)       row and column of every token
    H, W                          height and width: of the window; in g of the window that was trained
    table T (vectors, h)          (2H - 1)(2W - 1) rows
    logit_scale s (h,)            trained; starts at ln 10
    w_1 (hidden, 2)               the network, 512 hidden features in the release
    b_1 (hidden,)                 its bias
    w_2 (h, hidden)               no bias at the end, but for "cr"
    b_2 (h,)                      that bias

Conventions. The offset here is query minus key, the reverse of the other modules. The bias is added after the scale and before
the mask; Swin v2 has no 1/sqrt(d). Released code adds -100 where the mask forbids: `shift_bias`. That is not minus infinity
where logits are of this size: Swin v2's lie between -100 and 116.

If the windows do not divide the image, the image is padded with zeros on the right and below, after the layer norm. A padding
token then has the projection biases as its query, key and value. It gets the bias of its place and takes part in every softmax
of its window; no released mask excludes it. `height` and `width` of `shift_mask` are those of the image that was rolled.

Example. A window of two rows and two columns: nine vectors.

>>> rows(np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), height=2, width=2)
array([[4, 3, 1, 0],
       [5, 4, 2, 1],
       [7, 6, 4, 3],
       [8, 7, 5, 4]])

Where implementations differ.

    what | who | value | version | source
    mask | Swin, Swin v2 | -100 is added | f82860bfb5 | Swin-Transformer, models/swin_transformer_v2.py
    mask | transformers' Swin v2 | -100 is added twice | 5.23.0 | modeling_swinv2.py Swinv2SelfAttention.forward
    a window of one token | Swin v2 | 0/0 | f82860bfb5 | Swin-Transformer, models/swin_transformer_v2.py
    a window of one token | transformers' Swin v2 | the division is left out; refused here | 5.23.0 | modeling_swinv2.py
    a query of zeros | Swin v2 | has the score 0: norms are at least 1e-12; refused here | f82860bfb5 | F.normalize
    g | timm's RelPosMlp, by default, and its SwinV2Cr | l, no sigmoid: `logarithmic_bias` | 1.0.31
      | timm/layers/pos_embed_rel.py; swin_transformer_v2_cr.py
    roll | transformers' Swin and Donut | none, for any image, in a layer that once saw one that its window covers | 5.23.0
      | modeling_swin.py, modeling_donut_swin.py set_shift_and_window_size
    roll | transformers' backbones and MaskFormer | also where one window covers the image | 5.23.0
      | modeling_swin.py SwinBackbone; modeling_maskformer_swin.py
    padding | mmdetection, transformers | before it is rolled; no mask for it | 2a643e47; 5.23.0
      | mmdet/models/backbones/swin.py ShiftWindowMSA; modeling_swin.py SwinLayer
    padding | timm | after it was rolled, with the mask of the padded image: both ends see each other, neighbours do not
      | 1.0.31 | timm/models/swin_transformer.py SwinTransformerBlock._attn
    table of BEiT | transformers | resized always and read as (2W - 1, 2H - 1): wrong unless H = W | 5.23.0
      | modeling_beit.py BeitRelativePositionBias
    sign | timm's RelPosBiasTf, MaxViT of TensorFlow | key - query | 1.0.31 | timm/layers/pos_embed_rel.py
    table of TinyViT | timm | a row for each pair of distances, |dy| W + |dx| | 1.0.31 | timm/models/tiny_vit.py
    table of BEiT | timm | a gather | 1.0.31 | timm/models/beit.py

References. Liu et al., Swin, arXiv 2103.14030, Eq. (4); Swin v2, arXiv 2111.09883, Eqs. (2) to (4); Bao et al., BEiT, arXiv
2106.08254.
Not here: dynamic position bias (CrossFormer), at the scores: a network of SiLUs of i - j, or of sign(i - j) ln(1 + |i - j|), a
number for each head; x-transformers 2.31.10, DynamicPositionBias.
"""

import numpy as np

from posref import _require, attention
from posref._contract import (
    AboveOne,
    Array,
    Booleans,
    Count,
    Integer,
    Integers,
    Numbers,
    Signed,
    SignedIntegers,
    contract,
    kept,
)
from posref.offsets import offsets

PRESETS = {
    "swin_224": {"height": 7, "width": 7, "source": "Swin-Transformer f82860bfb5, configs/swin"},
    "swin_384": {"height": 12, "width": 12, "source": "Swin-Transformer f82860bfb5, configs/swin"},
}


@contract
def rows(coordinates: SignedIntegers[Array, "... n 2"], *, height: Count, width: Count) -> Integers[Array, "... n n"]:
    """The row of the table for every query and key: integers `(..., n, n)`.

    ValueError for tokens that are not within one window of `height` rows and `width` columns.

    >>> rows(np.array([[5, 8], [5, 9]]), height=1, width=2)
    array([[1, 0],
           [2, 1]])
    """
    down, right = (offsets(coordinates[..., axis], coordinates[..., axis]) for axis in (0, 1))
    _require.inside("swin.rows", "offsets of rows", down, "the window", 2 * height - 1, 1 - height)
    _require.inside("swin.rows", "offsets of columns", right, "the window", 2 * width - 1, 1 - width)
    return (height - 1 - down) * (2 * width - 1) + width - 1 - right


@contract
def rows_with_cls(
    coordinates: SignedIntegers[Array, "... n 2"], *, height: Count, width: Count
) -> Integers[Array, "... n+1 n+1"]:
    """`rows` with [CLS] as first token, which uses the last three rows of the table: integers `(..., n + 1, n + 1)`. BEiT.

    >>> rows_with_cls(np.array([[0, 0], [0, 1]]), height=1, width=2)
    array([[5, 3, 3],
           [4, 1, 0],
           [4, 2, 1]])
    """
    patches, own = rows(coordinates, height=height, width=width), (2 * height - 1) * (2 * width - 1)
    left = 0 * patches[..., :1] + own + 1
    top = 0 * np.concatenate([left[..., :1, :], patches[..., :1, :]], axis=-1) + own
    corner = np.arange(top.shape[-1]) == 0
    return np.concatenate([top + 2 * corner, np.concatenate([left, patches], axis=-1)], axis=-2)


@contract(table="one row per vector of offsets, one column per head")
def bias(rows: Integers[Array, "... n n"], table: Numbers[Array, "vectors h", kept]) -> Numbers[Array, "... h n n"]:
    """T[row, a]: `(..., h, n, n)`, to be added to scaled scores. ValueError for a row outside the table.

    >>> bias(np.array([[1, 0], [2, 1]]), np.array([[0.5], [1.0], [1.5]]))
    array([[[1. , 0.5],
            [1.5, 1. ]]])
    """
    _require.rows("swin.bias", "rows", rows, table.shape[0], "table")
    return np.moveaxis(table[rows], -1, -3)


@contract
def log_spaced(offsets: Signed[Array, "..."], *, window: AboveOne) -> Numbers[Array, "..."]:
    """g(x, window) = sign(x) log_8(1 + 8 |x| / (window - 1)), odd in x; at the window's end 1.0566, not 1.

    `window` is the extent on this axis of the window that was trained.

    >>> log_spaced(np.array([-7, 0, 7]), window=8).round(4)
    array([-1.0566,  0.    ,  1.0566])
    """
    size = np.log2(1 + 8 * np.abs(offsets) / (window - 1)) / 3
    return np.where(offsets < 0, -size, size)


@contract
def continuous_bias(
    coordinates: SignedIntegers[Array, "... n 2"],
    w_1: Numbers[Array, "hidden 2"],
    b_1: Numbers[Array, "hidden"],
    w_2: Numbers[Array, "h hidden"],
    *,
    height: AboveOne,
    width: AboveOne,
) -> Numbers[Array, "... h n n"]:
    """16 sigmoid(m_a(g(dy), g(dx))), between 0 and 16: `(..., h, n, n)`, to be added to Swin v2's scores.

    `height`, `width` are those of the window that was trained; with them the bias of a vector is the same in every window.
    Computed in float64.

    >>> one = np.ones((1, 1))
    >>> continuous_bias(np.array([[0, 0], [0, 1]]), np.array([[0.0, 1.0]]), one[0], one, height=2, width=2).round(3)
    array([[[11.697,  8.   ],
            [14.186, 11.697]]])
    """
    down, right = (-offsets(coordinates[..., axis], coordinates[..., axis]) for axis in (0, 1))
    vector = np.stack([log_spaced(down, window=height), log_spaced(right, window=width)], axis=-1)
    sigmoid = (1 + np.tanh(_network(vector, w_1, b_1, w_2) / 2)) / 2  # which overflows nowhere
    return np.moveaxis(16 * sigmoid, -1, -3)


@contract
def logarithmic_bias(
    coordinates: SignedIntegers[Array, "... n 2"],
    w_1: Numbers[Array, "hidden 2"],
    b_1: Numbers[Array, "hidden"],
    w_2: Numbers[Array, "h hidden"],
    b_2: Numbers[Array, "h"],
) -> Numbers[Array, "... h n n"]:
    """m_a(l(dy), l(dx)) + b_2a of timm's "cr", which no window divides and no sigmoid bounds: `(..., h, n, n)`.

    Computed in float64.

    >>> one = np.ones((1, 1))
    >>> logarithmic_bias(np.array([[0, 0], [0, 1]]), np.array([[0.0, 1.0]]), one[0], one, 0 * one[0]).round(3)
    array([[[1.   , 0.307],
            [1.693, 1.   ]]])
    """
    vector = -np.stack([offsets(coordinates[..., axis], coordinates[..., axis]) for axis in (0, 1)], axis=-1)
    size = np.log(1 + np.abs(vector))
    return np.moveaxis(_network(np.where(vector < 0, -size, size), w_1, b_1, w_2) + b_2, -1, -3)


@contract
def scores(
    q: Numbers[Array, "... h n_query d"], k: Numbers[Array, "... h n_key d"], logit_scale: Numbers[Array, "h"]
) -> Numbers[Array, "... h n_query n_key"]:
    """tau_a cos(q_i, k_j) with tau = min(e^s, 100), Swin v2's scores without bias: `(..., h, n_query, n_key)`.

    ValueError for a query or key of norm 0, which has no direction.

    >>> scores(np.array([[[3.0, 4.0]]]), np.array([[[1.0, 0.0]]]), np.array([9.0])).round(6)
    array([[[60.]]])
    """
    tau = np.exp(np.minimum(logit_scale, np.log(100 + 0 * logit_scale)))
    return tau[:, None, None] * attention.scores(_unit("q", q), _unit("k", k), scale=1)


@contract
def shift_mask(
    coordinates: SignedIntegers[Array, "... n 2"], *, height: Count, width: Count, shift: Integer
) -> Booleans[Array, "... n n"]:
    """True where the roll wrapped both of two tokens round, or neither, on each axis: boolean `(..., n, n)`.

    `coordinates` are places in an image of `height` x `width` that was rolled by -shift. With shift 0 all tokens see each
    other. ValueError for a place outside the image, and for a shift below 0 or beyond a side.

    >>> shift_mask(np.array([[0, 2], [0, 3]]), height=4, width=4, shift=1)
    array([[ True, False],
           [False,  True]])
    """
    _require_rolled(coordinates, height, width, shift)
    came_round = coordinates >= np.array([height, width]) - shift
    return (came_round[..., :, None, :] == came_round[..., None, :, :]).all(axis=-1)


@contract
def shift_bias(mask: Booleans[Array, "... n n"]) -> Numbers[Array, "... n n"]:
    """The bias that released code adds as mask: 0 where `mask` is True, else -100. transformers' Swin v2 adds it twice.

    >>> shift_bias(np.array([[True, False]] * 2))[0]
    array([   0, -100])
    """
    return np.where(mask, 0, -100)


def _require_rolled(coordinates, height, width, shift):
    """Places lie in the image, which was rolled by no more than a side."""
    _require.within("swin.shift_mask", "rows of coordinates", coordinates[..., 0], height)
    _require.within("swin.shift_mask", "columns of coordinates", coordinates[..., 1], width)
    if not 0 <= shift <= min(height, width):
        raise ValueError(
            f"swin.shift_mask: shift is {shift} and the image {height} x {width}, expected 0 to {min(height, width)}; "
            "released code shifts by half of a window, and not at all where one window is the image"
        )


def _network(vector, w_1, b_1, w_2):
    return np.maximum(vector @ np.swapaxes(w_1, 0, 1) + b_1, 0) @ np.swapaxes(w_2, 0, 1)


def _unit(name, x):
    x = x / _require.nonzero("swin.scores", name, x)
    return x / np.sqrt((x * x).sum(axis=-1, keepdims=True))
