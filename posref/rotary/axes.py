r"""RoPE over several axes: each pair of features turns with one coordinate of its token.

Definition. Token i has a position on every axis, p_i = (p_i0, p_i1, ..), and pair t reads axis a_t:

    angle_it  =  p_i,a_t w_t          turned as in `posref.rotary.rope`

so the score sees the vector of offsets p_j - p_i alone. With equal positions on all axes it is RoPE, whatever a is.

Symbols. positions p (..., n, axes); frequencies w (dim/2,) in radians per position; axis a (dim/2,), integers from 0, for
videos in the order time, row, column; angles (..., n, dim/2); sizes: how many pairs an axis has.

Conventions. A model is an axis of every pair, its frequency, and a layout; nothing else. Frequencies are those of the whole
width in the order of the pairs (Qwen2-VL's text: its columns are slow), or those of a width of dim/2 once for each of two
axes (vision towers: w_0, w_2, .. twice), or dealt out in turn (Pixtral: rows w_0, w_2, .., columns w_1, w_3, ..).

Where implementations differ. Which pairs read which axis: in sections in Qwen2-VL and 2.5-VL, dealt out in Qwen3-VL and 3.5;
rows and columns in turn and then time, with the slowest frequencies, in Ernie 4.5 VL. What is left over when the axes are
dealt out unequally reads time in transformers and a fourth stream of positions in ggml, pairs 61 and 62 of Qwen3-VL. GLM-4.1V
is interleaved and GLM-4.5V half. Gemma 4's vision tower makes one RoPE of each half of the head. DINOv3 turns by 2 pi times
the centre of a patch between -1 and 1; Llama 4's vision tower counts from 1. V-JEPA 2 doubles its tables by tiling and pairs
adjacent features: that map is no rotation, and its authors keep it for the weights they released (`rotate_vjepa2`).

Properties. proofs/rotary/axes.py.

References. Wang et al., Qwen2-VL, arXiv 2409.12191, section 2.1; Heo et al., arXiv 2403.13298 (axial frequencies).
"""

import numpy as np

from posref import _require, pairing
from posref.rotary import rope

LEFTOVERS = ("transformers", "ggml")

# A model: pair t turns with frequency `order[t]` of `rope.frequencies(dim, base)` and reads axis `axis[t]` of its positions
VISION_TEXT = ("time", "row", "column")
PATCH = ("row", "column")
PRESETS = {
    "qwen2_vl": {
        "dim": 128,
        "base": 1000000.0,
        "axis": (0,) * 16 + (1,) * 24 + (2,) * 24,
        "order": tuple(range(64)),
        "axes": VISION_TEXT,
        "layout": "half",
        "source": "mrope_section [16, 24, 24] of Qwen2-VL's config, sophgo/LLM-TPU d581e7bfa2; transformers 5.23.0",
    },
    "qwen3_vl": {
        "dim": 128,
        "base": 5000000.0,
        "axis": (0, 1, 2) * 20 + (0,) * 4,
        "order": tuple(range(64)),
        "axes": VISION_TEXT,
        "layout": "half",
        "source": "mrope_section [24, 20, 20] of Qwen3-VL-8B-Instruct's config, aiconfigurator 095f58a51c; transformers 5.23.0",
    },
    "qwen3_5": {
        "dim": 64,
        "head_dim": 256,
        "base": 10000000.0,
        "axis": (0, 1, 2) * 10 + (0, 1),
        "order": tuple(range(32)),
        "axes": VISION_TEXT,
        "layout": "half",
        "source": "mrope_section [11, 11, 10] of Qwen3.5-397B-A17B's config, aiconfigurator 095f58a51c; transformers 5.23.0",
    },
    "glm_4v": {
        "dim": 64,
        "head_dim": 128,
        "base": 10000.0,
        "axis": (0,) * 8 + (1,) * 12 + (2,) * 12,
        "order": tuple(range(32)),
        "axes": VISION_TEXT,
        "layout": "interleaved",
        "source": "mrope_section [8, 12, 12] of GLM-4.1V's config, sophgo/LLM-TPU d581e7bfa2; transformers 5.23.0",
    },
    "ernie_4_5_vl": {
        "dim": 128,
        "base": 500000.0,
        "axis": (1, 2) * 22 + (0,) * 20,
        "order": tuple(range(64)),
        "axes": VISION_TEXT,
        "layout": "interleaved",
        "source": "transformers 5.23.0, defaults of Ernie4_5_VLMoeTextConfig",
    },
    "qwen2_vl_vision": {
        "dim": 80,
        "base": 10000.0,
        "axis": (0,) * 20 + (1,) * 20,
        "order": tuple(range(0, 40, 2)) * 2,
        "axes": PATCH,
        "layout": "half",
        "source": "transformers 5.23.0, Qwen2VLVisionRotaryEmbedding",
    },
    "pixtral": {
        "dim": 64,
        "base": 10000.0,
        "axis": (0,) * 16 + (1,) * 16,
        "order": (*range(0, 32, 2), *range(1, 32, 2)),
        "axes": PATCH,
        "layout": "half",
        "source": "transformers 5.23.0, PixtralVisionRotaryEmbedding",
    },
    "llama_4_vision": {
        "dim": 88,
        "base": 10000.0,
        "axis": (1,) * 22 + (0,) * 22,
        "order": tuple(range(0, 44, 2)) * 2,
        "axes": PATCH,
        "layout": "interleaved",
        "source": "transformers 5.23.0, Llama4VisionRotaryEmbedding; rows and columns count from 1",
    },
    "dinov3": {
        "dim": 64,
        "base": 100.0,
        "axis": (0,) * 16 + (1,) * 16,
        "order": tuple(range(0, 32, 2)) * 2,
        "axes": PATCH,
        "layout": "half",
        "source": "transformers 5.23.0, DINOv3ViTRopePositionEmbedding; positions are 2 pi times `centers`",
    },
}


def angles(positions, frequencies, axis):
    """p_i,a_t w_t: the angle of every pair, `(..., n, dim/2)`, for `rope.rotate(x, np.cos(angle), np.sin(angle), layout=..)`.

    >>> angles(np.array([[0, 5, 7]]), np.array([1.0, 0.5, 0.1]), np.array([0, 1, 2]))
    array([[0. , 2.5, 0.7]])
    """
    _require.array("axes.angles", "positions", positions, ndim=1)
    _require.array("axes.angles", "frequencies", frequencies)
    _require.axes("axes.angles", "frequencies", frequencies, "(dim/2,)")
    _require.same_shape("axes.angles", "frequencies", frequencies, "axis", axis)
    _require.rows("axes.angles", "axis", axis, positions.shape[-1], "the last axis of positions")
    return positions[..., axis] * frequencies


def sections(sizes):
    """The axis of each pair where axes have consecutive pairs, as `mrope_section` of Qwen2-VL: integers `(sum of sizes,)`.

    >>> sections((1, 2, 2))
    array([0, 1, 1, 2, 2])
    """
    _require_sizes("axes.sections", sizes)
    return np.repeat(np.arange(len(sizes)), sizes)


def interleaved_sections(sizes, *, leftover):
    """The axis of each pair where axes are dealt out in turn, `mrope_interleaved` of Qwen3-VL: integers `(sum of sizes,)`.

    Pair t reads axis t mod k while that axis has pairs left. Others read axis 0 with `leftover="transformers"`, and with
    "ggml" an axis k of their own.

    >>> interleaved_sections((4, 1, 1), leftover="transformers")
    array([0, 1, 2, 0, 0, 0])
    >>> interleaved_sections((4, 1, 1), leftover="ggml")
    array([0, 1, 2, 0, 3, 3])
    """
    _require_sizes("axes.interleaved_sections", sizes)
    _require.choice("axes.interleaved_sections", "leftover", leftover, LEFTOVERS)
    pair, axes = np.arange(sum(sizes)), len(sizes)
    last = np.array([axes * size for size in sizes])
    return np.where(pair < last[pair % axes], pair % axes, {"transformers": 0, "ggml": axes}[leftover])


def grid(height, width, *, merge=1):
    """Row and column of every patch of an image, row by row: integers `(height * width, 2)`.

    With `merge` the patches of a square of merge x merge follow each other, as in Qwen's vision towers (`spatial_merge_size`).

    >>> grid(2, 2)
    array([[0, 0],
           [0, 1],
           [1, 0],
           [1, 1]])
    """
    for name, number in (("height", height), ("width", width), ("merge", merge)):
        _require.count("axes.grid", name, number)
    if height % merge != 0 or width % merge != 0:
        raise ValueError(
            f"axes.grid: {height} x {width} patches are no whole squares of {merge} x {merge} (spatial_merge_size)"
        )
    patches = np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"), axis=-1)
    squares = patches.reshape(height // merge, merge, width // merge, merge, 2)
    return squares.swapaxes(1, 2).reshape(height * width, 2)


def centers(height, width):
    """Centres of patches between -1 and 1, row by row: `(height * width, 2)`, rows first. DINOv3's positions.

    >>> centers(2, 1)
    array([[-0.5,  0. ],
           [ 0.5,  0. ]])
    """
    return (2 * grid(height, width) + 1) / np.array([height, width]) - 1


def rotate_vjepa2(x, cos, sin, *, convention):
    """A block of V-JEPA 2's heads at the angles of one axis: adjacent pairs turn, `(..., n, dim)`.

    convention="paper" is the rotation. With "released" feature f reads the angle f mod dim/2, because the tables are doubled by
    tiling while features are paired with their neighbours: two features of a pair have different angles.

    >>> x, angle = np.array([[1.0, 0.0, 1.0, 0.0]]), np.array([[0.0, np.pi / 2]])
    >>> rotate_vjepa2(x, np.cos(angle), np.sin(angle), convention="paper").round(1)
    array([[1., 0., 0., 1.]])
    >>> rotate_vjepa2(x, np.cos(angle), np.sin(angle), convention="released").round(1)
    array([[1., 1., 1., 1.]])
    """
    _require.choice("axes.rotate_vjepa2", "convention", convention, ("paper", "released"))
    turned = rope.rotate(x, cos, sin, layout="interleaved")
    if convention == "paper":
        return turned
    a, b = pairing.split(x, "interleaved")
    return x * pairing.join(cos, cos, "half") + pairing.join(-b, a, "interleaved") * pairing.join(sin, sin, "half")


def _require_sizes(function, sizes):
    for size in sizes:
        _require.count(function, "a section of sizes", size)
