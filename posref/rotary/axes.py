r"""RoPE over several axes: each pair of features is rotated by one coordinate of its token.

A word has one position. A patch of an image has a row and a column, and a patch of a video has a time as well.

Also called: M-RoPE, mrope, 2-D RoPE, multimodal RoPE, XD-RoPE, xdrope.

Definition. Token i has a position on every axis, p_i = (p_i0, p_i1, ..), and pair t reads axis a_t:

    angle_it = p_i,a_t w_t     rotated as in `posref.rotary.rope`

so the score sees the vector of offsets p_j - p_i alone. With equal positions on all axes it is RoPE, whatever a is.

Symbols.

    p (..., n, axes)       positions; for videos in the order time, row, column
    w (dim/2,)             frequencies, in radians per position
    a (dim/2,)             axis of each pair, integers from 0
    angle (..., n, dim/2)  what a pair rotates by
    sizes (axes,)          how many pairs an axis has

Conventions. A model is defined by the axis of every pair, the frequency of every pair, and a layout. Three choices of
frequencies are in use: those of the whole width in the order of the pairs (Qwen2-VL's text: the columns get the slow pairs),
those of a width of dim/2 once per axis (vision towers: w_0, w_2, .. twice), or alternating between the axes (Pixtral: rows w_0,
w_2, .., columns w_1, w_3, ..).

Example. Four patches in two rows and two columns, and two pairs: the first reads the row, the second the column.

>>> angles(grid(2, 2), np.array([1.0, 0.1]), np.array([0, 1]))
array([[0. , 0. ],
       [0. , 0.1],
       [1. , 0. ],
       [1. , 0.1]])

Where implementations differ.

    what | who | value | version | source
    axes of text | Qwen2-VL, Qwen2.5-VL | in sections: time, rows, columns | 5.23.0 | modeling_qwen2_vl.py
    axes of text | Qwen3-VL, Qwen3.5 | dealt out in turn, the rest reads time | 5.23.0 | modeling_qwen3_vl.py
    axes of text | ggml, Qwen3-VL | dealt out, the rest reads a fourth stream: pairs 61 and 62 | - | GGML_ROPE_TYPE_IMROPE
    axes of text | Ernie 4.5 VL | rows and columns in turn, then time, with the slowest frequencies | 5.23.0
      | modeling_ernie4_5_vl_moe.py
    pairing | GLM-4.1V | interleaved | 5.23.0 | modeling_glm4v.py
    pairing | GLM-4.5V | half | 5.23.0 | modeling_glm4v_moe.py
    frequencies of patches | Qwen2-VL's tower | the same for rows and columns | 5.23.0 | modeling_qwen2_vl.py
    frequencies of patches | Pixtral | dealt out between rows and columns | 5.23.0 | modeling_pixtral.py
    pairs of patches | Gemma 4's tower | each half of the head is a RoPE of its own | 5.23.0 | modeling_gemma4.py
    positions of patches | DINOv3 | 2 pi times the centre, between -1 and 1 (`centers`) | 5.23.0 | modeling_dinov3_vit.py
    positions of patches | Llama 4's tower | rows and columns from 1, columns first | 5.23.0 | modeling_llama4.py
    positions of patches | timm's EVA-02 | from 0, times 16 / side: as in its training of 16 x 16 | 1.0.31
      | timm/layers/pos_embed_sincos.py _build_grid, ref_feat_shape
    frequencies of patches | timm, in_pixels | pi 2^(t log2(112) / 15), positions from -1 to 1 | 1.0.31 | pixel_freq_bands
    axes of patches | timm's RoPE-Mixed | every pair reads both, with trained frequencies | 1.0.31 | get_mixed_freqs
    positions of patches | Qwen-Image, NucleusMoE-Image | `grid` less (H - H // 2, W - W // 2): negative before the centre
      | 0.42.1 | diffusers, transformer_qwenimage.py QwenEmbedRope with scale_rope
    positions of text | Qwen-Image, NucleusMoE-Image | from max(H // 2, W // 2) on, the same on all axes | 0.42.1
      | diffusers, transformer_qwenimage.py QwenEmbedRope.forward
    frequencies of time | RIFLEx, for longer videos | one pair, chosen per model, has 0.9 * 2 pi / frames: less than a full turn
      | 2502.15894 | Eq. (8); get_1d_rotary_pos_embed_riflex in the README of its code
    axes of text | HunYuan-VL, xdrope_section | sections of 2 s features of doubled tables: pairs read two axes, no rotation
      (`rotate_features`) | 5.23.0 | modeling_hunyuan_vl.py recomposition_frequencies
    the map | V-JEPA 2 | tables tiled, features paired as neighbours: no rotation (`rotate_vjepa2`) | 5.23.0
      | modeling_vjepa2.py rotate_queries_or_keys

References. Wang et al., Qwen2-VL, arXiv 2409.12191, section 2.1; Heo et al., arXiv 2403.13298 (axial frequencies).
Not here: VideoRoPE and HoPE for video, arXiv 2505.20444, at queries and keys: time has the pairs of the lowest frequencies,
which HoPE replaces by 0; that is `order`, or a frequency of 0.
"""

from typing import Literal

import numpy as np

from posref import _require, pairing
from posref._contract import Array, Count, Integers, Numbers, SignedIntegers, contract
from posref.pairing import Layout
from posref.rotary import rope

Leftover = Literal["transformers", "ggml"]
Convention = Literal["paper", "released"]
ADD_UP = "sections add up to half the rotated width (mrope_section)"

# pair t turns with frequency `order[t]` of `rope.frequencies(dim, base)` and reads axis `axis[t]`; no configuration says it
PRESETS = {
    "eva_02": {
        "dim": 64,
        "base": 10000.0,
        "axis": (0,) * 16 + (1,) * 16,
        "order": tuple(range(0, 32, 2)) * 2,
        "layout": "interleaved",
        "source": "timm 1.0.31, RotaryEmbeddingCat as in models/eva.py; positions are `grid` times 16 / side",
    },
}


@contract(axis=ADD_UP, positions="tokens have a position on each axis of mrope_section")
def angles(
    positions: Numbers[Array, "... n axes"], frequencies: Numbers[Array, "dim/2"], axis: Integers[Array, "dim/2"]
) -> Numbers[Array, "... n dim/2"]:
    """p_i,a_t w_t: the angle of every pair, `(..., n, dim/2)`, for `rope.rotate(x, np.cos(angle), np.sin(angle), layout=..)`.

    ValueError for an axis that positions do not have.

    >>> angles(np.array([[0, 5, 7]]), np.array([1.0, 0.5, 0.1]), np.array([0, 1, 2]))
    array([[0. , 2.5, 0.7]])
    """
    _require.rows("axes.angles", "axis", axis, positions.shape[-1], "the last axis of positions")
    return positions[..., axis] * frequencies


@contract
def sections(sizes: SignedIntegers[Array, "axes"]) -> Integers[Array, "dim/2"]:
    """The axis of each pair where axes have consecutive pairs, `mrope_section` of Qwen2-VL: integers `(sum of sizes,)`.

    >>> sections(np.array([1, 2, 2]))
    array([0, 1, 1, 2, 2])
    """
    _require_pairs("sections", sizes)
    return np.repeat(np.arange(len(sizes)), sizes)


@contract
def interleaved_sections(sizes: SignedIntegers[Array, "axes"], *, leftover: Leftover) -> Integers[Array, "dim/2"]:
    """The axis of each pair where axes are dealt out in turn, `mrope_interleaved` of Qwen3-VL: integers `(sum of sizes,)`.

    Pair t reads axis t mod k while that axis has pairs left. Others read axis 0 with `leftover="transformers"`, and an axis k
    of their own with "ggml".

    >>> interleaved_sections(np.array([4, 1, 1]), leftover="transformers")
    array([0, 1, 2, 0, 0, 0])
    >>> interleaved_sections(np.array([4, 1, 1]), leftover="ggml")
    array([0, 1, 2, 0, 3, 3])
    """
    _require_pairs("interleaved_sections", sizes)
    deal, axis = np.divmod(np.arange(sizes.sum()), len(sizes))
    return np.where(deal < sizes[axis], axis, {"transformers": 0, "ggml": len(sizes)}[leftover])


@contract
def grid(height: Count, width: Count, *, merge: Count = 1) -> Integers[Array, "patches 2"]:
    """Row and column of every patch of an image, row by row: integers `(height * width, 2)`.

    With `merge` the patches of a square of merge x merge follow each other, as in Qwen's vision towers (`spatial_merge_size`).

    >>> grid(2, 2)
    array([[0, 0],
           [0, 1],
           [1, 0],
           [1, 1]])
    """
    _require_squares(height, width, merge)
    patches = np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"), axis=-1)
    squares = patches.reshape(height // merge, merge, width // merge, merge, 2)
    return squares.swapaxes(1, 2).reshape(height * width, 2)


@contract
def centers(height: Count, width: Count) -> Numbers[Array, "patches 2"]:
    """Centres of patches between -1 and 1, row by row: `(height * width, 2)`, rows first. DINOv3's positions.

    >>> centers(2, 1)
    array([[-0.5,  0. ],
           [ 0.5,  0. ]])
    """
    return (2 * grid(height, width) + 1) / np.array([height, width]) - 1


@contract
def rotate_vjepa2(
    x: Numbers[Array, "... n? dim"],
    cos: Numbers[Array, "(...) #n dim/2"],
    sin: Numbers[Array, "=cos"],
    *,
    convention: Convention,
) -> Numbers[Array, "... n? dim"]:
    """A block of V-JEPA 2's heads at the angles of one axis: adjacent pairs rotate, `(..., n, dim)`.

    convention="paper" is the rotation. With "released" feature f reads the angle f mod dim/2, because the tables are doubled by
    tiling while features are paired with their neighbours: two features of a pair have different angles.

    >>> x, angle = np.array([[1.0, 0.0, 1.0, 0.0]]), np.array([[0.0, np.pi / 2]])
    >>> rotate_vjepa2(x, np.cos(angle), np.sin(angle), convention="paper").round(1)
    array([[1., 0., 0., 1.]])
    >>> rotate_vjepa2(x, np.cos(angle), np.sin(angle), convention="released").round(1)
    array([[1., 1., 1., 1.]])
    """
    if convention == "paper":
        return rope.rotate(x, cos, sin, layout="interleaved")
    tiled = pairing.join(cos, cos, "half"), pairing.join(sin, sin, "half")
    return rotate_features(x, *tiled, layout="interleaved")


@contract
def rotate_features(
    x: Numbers[Array, "... n? dim"],
    cos: Numbers[Array, "(...) #n dim"],
    sin: Numbers[Array, "=cos"],
    *,
    layout: Layout,
) -> Numbers[Array, "... n? dim"]:
    """x cos + turned(x) sin with one angle per feature; a pair with two equal angles is rotated: `(..., n, dim)`.

    Released models use it where they have two. HunYuan-VL: layout="half", and feature f rotates by w_(f mod dim/2) times the
    position on the axis of f, `sections(2 * sizes)[f]`.

    >>> angle = np.array([[np.pi / 2, 0.0]])
    >>> rotate_features(np.array([[1.0, 1.0]]), np.cos(angle), np.sin(angle), layout="half").round(1)
    array([[-1.,  1.]])
    """
    a, b = pairing.split(x, layout)
    return x * cos + pairing.join(-b, a, layout) * sin


def _require_pairs(function, sizes):
    if (sizes < 1).any():
        raise ValueError(f"axes.{function}: sizes are {sizes.tolist()}, expected at least one pair an axis (mrope_section)")


def _require_squares(height, width, merge):
    if height % merge != 0 or width % merge != 0:
        raise ValueError(
            f"axes.grid: {height} x {width} patches are no whole squares of {merge} x {merge} (spatial_merge_size)"
        )
