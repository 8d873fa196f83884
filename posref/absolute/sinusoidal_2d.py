r"""2-D sinusoid: half of the features for the row of a patch, half for its column.

A patch has two coordinates. Each coordinate gets its own sinusoid, so an image needs no trained table.

Also called: 2-D sin-cos, MAE, DETR, ViT without a table, Mask2Former, MoCo v3, Fourier features.

Definition. A patch at row y and column x, and h frequencies w; S and C are sines and cosines:

    (S(x w), C(x w), S(y w), C(y w))                            convention="mae"
    (S(y w_0), C(y w_0), S(y w_1), .., S(x w_0), C(x w_0), ..)  convention="detr"
    (S(y w), S(x w), C(y w), C(x w))                            convention="timm"
    w_t = T^(-t / h)                                            t = 0 .. h - 1, T = 10000

Fourier features mix the coordinates c, a row of any number of axes, by a matrix that is random or trained:

    (S(c B), C(c B))                                            `fourier`

DETR counts the pixels that are no padding, from 1, and may measure them in turns of an image:

    y = 2 pi count_y / (count_y of the last row + 10^-6)        x alike

Symbols.

    coordinates y, x (..., n, 2)    row and column of each patch, from 0
    frequencies w (h,)              in radians per patch: `sinusoidal.frequencies(2 * h)`
    coordinates c (..., n, axes)    of `fourier`, between -1 and 1 in released models
    matrix B (axes, h)              in radians per unit, one column for each pair; 2 pi times the matrix of SAM
    mask (..., height, width)       True where a pixel is no padding
    p (..., n, 4h)                  the encoding

Conventions. Rows before columns in `coordinates`; in MAE the **first half is the column**, whatever its code's names say.
Features are those of `sinusoidal` on each axis, and the three conventions are permutations of each other. [CLS] has zeros,
where there is one. In the last row and column "last" counts what is not padding, since a count stops there.

Example. Two patches of one row and one frequency:

>>> encode(np.array([[0, 0], [0, 1]]), np.array([1.0]), convention="mae").round(3)
array([[0.   , 1.   , 0.   , 1.   ],
       [0.841, 0.54 , 0.   , 1.   ]])
>>> encode(np.array([[0, 0], [0, 1]]), np.array([1.0]), convention="detr").round(3)
array([[0.   , 1.   , 0.   , 1.   ],
       [0.   , 1.   , 0.841, 0.54 ]])

Where implementations differ.

    what | who | value | version | source
    order | MAE, transformers' ViT-MAE | column, row; all sines of an axis, then its cosines | efb2a8062c | util/pos_embed.py
    order | DETR, transformers' DETR | row, column; sine and cosine in turn | 29901c51d7 | models/position_encoding.py
    order | transformers, build_2d_sinusoidal_position_embedding | row, column; sines of an axis, then its cosines | 5.23.0
      | modeling_vit_mae.py initialize_weights
    order | timm | sines of row and column, then cosines | 1.0.31 | pos_embed_sincos.py build_sincos2d_pos_embed
    first coordinate | DETR | 1; padding is not counted | 29901c51d7 | models/position_encoding.py
    first coordinate | MAE, timm | 0 | 1.0.31 | pos_embed_sincos.py build_sincos2d_pos_embed
    matrix B | SAM, SAM 2, EdgeTAM | 2 pi times random numbers that are stored with the weights | 5.23.0
      | modeling_sam.py SamPositionalEmbedding
    coordinates c | SAM, SAM 2, EdgeTAM | (column, row) from -1 to 1: of patches `axes.centers` with its axes exchanged | 5.23.0
      | modeling_sam.py SamModel.get_image_wide_positional_embeddings
    matrix B | Perceiver | pi f on one axis per pair, f from 1 to size / 2 in equal steps; c stands in front | 5.23.0
      | modeling_perceiver.py generate_fourier_features

References. Carion et al., DETR, arXiv 2005.12872, appendix A.4; He et al., MAE, arXiv 2111.06377, appendix A.1; Tancik et al.,
Fourier features, arXiv 2006.10739, section 5.
"""

from typing import Literal, get_args

import numpy as np

from posref._contract import Array, Booleans, Integers, Numbers, Signed, contract
from posref.absolute import sinusoidal

Convention = Literal["mae", "detr", "timm"]
CONVENTIONS = get_args(Convention)

PRESETS = {
    "mae_base": {"dim": 768, "convention": "mae", "source": "mae efb2a8062c, models_mae.py, util/pos_embed.py"},
    "detr_r50": {"dim": 256, "convention": "detr", "source": "detr 29901c51d7, models/position_encoding.py"},
}


@contract
def encode(
    coordinates: Numbers[Array, "... n 2"], frequencies: Numbers[Array, "h"], *, convention: Convention
) -> Numbers[Array, "... n 4*h"]:
    """p of every patch: `(..., n, 4h)`, in the order of features of MAE, DETR or timm.

    >>> encode(np.array([[0, 1]]), np.array([1.0]), convention="timm").round(3)
    array([[0.   , 0.841, 1.   , 0.54 ]])
    """
    y, x = coordinates[..., 0], coordinates[..., 1]
    if convention == "timm":
        angle = np.concatenate([y[..., None] * frequencies, x[..., None] * frequencies], axis=-1)
        return np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)
    if convention == "mae":
        return np.concatenate([sinusoidal.encode(axis, frequencies, layout="half") for axis in (x, y)], axis=-1)
    return np.concatenate([sinusoidal.encode(axis, frequencies, layout="interleaved") for axis in (y, x)], axis=-1)


@contract
def fourier(coordinates: Numbers[Array, "... n axes"], matrix: Signed[Array, "axes h"]) -> Numbers[Array, "... n 2*h"]:
    """Sines of c B, then cosines: `(..., n, 2h)`. Tancik et al., section 5; SAM's points and patches.

    >>> fourier(np.array([[0.5, 0.25]]), 2 * np.pi * np.array([[1.0], [1.0]])).round(3)
    array([[-1., -0.]])
    """
    angle = coordinates @ matrix
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)


@contract
def counted(mask: Booleans[Array, "... height width"]) -> Integers[Array, "... height width 2"]:
    """DETR's coordinates: the number of pixels up to this one that are no padding, in its column and in its row,
    `(..., height, width, 2)`.

    >>> counted(np.array([[True, True, False]]))[..., 1]
    array([[1, 2, 2]])
    """
    return np.stack([np.cumsum(mask, axis=-2), np.cumsum(mask, axis=-1)], axis=-1)


@contract
def normalized(counts: Numbers[Array, "... height! width! 2"]) -> Numbers[Array, "... height width 2"]:
    """DETR's coordinates as parts of a full turn, 2 pi count / (last count + 1 / 1000 / 1000): `(..., height, width, 2)`.

    >>> normalized(counted(np.array([[True, True, False]])))[..., 1].round(4)
    array([[3.1416, 6.2832, 6.2832]])
    """
    y, x = counts[..., 0], counts[..., 1]
    turns = [count / (last + (1 + 0 * last) / 1000 / 1000) for count, last in ((y, y[..., -1:, :]), (x, x[..., -1:]))]
    return 2 * np.pi * np.stack(turns, axis=-1)
