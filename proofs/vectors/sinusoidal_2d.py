"""2-D sinusoids: the order of features in MAE, DETR and timm, and DETR's counts of pixels."""

import mpmath
import numpy as np

from proofs.absolute.sinusoidal import frequency
from proofs.absolute.sinusoidal_2d import definition, features, places, turn
from proofs.vectors import *

SOURCES = (
    "He et al., Masked Autoencoders, arXiv 2111.06377, and mae efb2a8062c, util/pos_embed.py",
    "Carion et al., DETR, arXiv 2005.12872, appendix A.4, and detr 29901c51d7, models/position_encoding.py",
    "timm 1.0.31, timm/layers/pos_embed_sincos.py, build_sincos2d_pos_embed",
    "Tancik et al., arXiv 2006.10739, section 5, and transformers 5.23.0, modeling_sam.py SamPositionalEmbedding",
)

CONVENTIONS = {
    "axes": "coordinates (n, 2): row and column of each patch; an encoding is (n, dim), counts are (height, width, 2)",
    "convention": "mae: column, row, sines before cosines; detr: row, column, in turn; timm: sines of row and column, cosines",
    "op counted": "how many pixels of the column, of the row, are no padding up to here",
    "op encode": "dim/4 frequencies base^(-4t / dim) on each axis",
    "op fourier": "sines of c B, then cosines; coordinates c (n, axes), matrix B (axes, pairs)",
    "op normalized": "2 pi count / (last count + 10^-6) on each axis",
    "seen": "1 where a pixel is no padding",
}
REJECTED = (("sinusoidal_2d/mae/d8-b1e4/grid", "no-convention", {"convention": None}, "missing", "MAE, DETR and timm differ."),)
SEEN = [[int(x < 5 if y < 2 else x < 3 if y == 2 else 0) for x in range(6)] for y in range(4)]


def vectors():
    grid = [[y, x] for y in range(3) for x in range(4)]
    shared = "rows_and_columns_exchanged starts_at_one wrong_base frequencies_of_the_whole_width"
    for convention in ("mae", "detr", "timm"):
        others = " ".join(f"as_{name}" for name in ("mae", "detr", "timm") if name != convention)
        yield _encode("grid", grid, 8, convention, f"{shared} {others}")
        yield _encode("far", [[0, 255], [13, 0], [511, 64]], 16, convention, f"{shared} {others}")
        far = [[65536, 3], [5, 32768], [2.5, 7.25]]
        yield _encode("places", far, 8, convention, "rows_and_columns_exchanged wrong_base", 500000, models=("f64", "f32"))
        far = [[2**20 + 1, -3], [-40, 2**21 + 3]]
        yield _encode("beyond", far, 8, convention, "rows_and_columns_exchanged wrong_base", 500000, models=("f64",))
    centres = [[(2 * j + 1) / 4 - 1, (2 * i + 1) / 8 - 1] for i in range(8) for j in range(4)]
    yield _fourier("patches", centres, painted((2, 4), 1))
    yield _fourier("points", [[-1.0, 0.5, 0.25], [0.0, 0.0, 0.0], [0.75, -0.125, 1.0]], painted((3, 3), 2))
    yield _fourier("places", [[65536, 3], [5, 32768], [2.5, 7.25]], painted((2, 4), 1), models=("f64", "f32"))
    yield _fourier("beyond", [[2**20 + 1, -3], [-40, 2**21 + 3]], painted((2, 4), 1), models=("f64",))
    counts = places(SEEN)
    yield _counts("counted", counts, "padding_counted from_zero")
    last = [[[counts[-1][x][0], counts[y][-1][1]] for x in range(6)] for y in range(4)]
    turns = np.vectorize(lambda c, n: turn(int(c), int(n), mpmath), otypes=[object])(counts, last)
    yield _counts("normalized", turns, "padding_counted divided_by_the_size", {"amp": terms(6, turns)})


def _encode(probe, coordinates, dim, convention, mistakes, base=10000, **rest):
    w = [frequency(t, dim // 2, mpmath.mpf(base), m=mpmath) for t in range(dim // 4)]
    values = [definition(y, x, w, convention, mpmath) for y, x in coordinates]
    sizes = [_ordered([abs(c) * v * growth(v) for c in (y, x) for v in w], convention) for y, x in coordinates]
    id = f"sinusoidal_2d/{convention}/d{dim}-{'b1e4' if base == 10000 else 'b5e5'}/{probe}"
    params, cond = {"dim": dim, "base": float(base), "convention": convention}, {"amp": terms(3, values), "phase": sizes}
    return case(id, "encode", params, {"coordinates": coordinates}, values, cond, mistakes, **rest)


def _fourier(probe, coordinates, matrix, **rest):
    b = matrix.tolist()
    values = [features([mpmath.mpf(x) for x in c], b, mpmath) for c in coordinates]
    # a product for each axis, and their sum
    angles = 2 * len(b) * abs(np.array(coordinates)) @ abs(matrix)
    id = f"sinusoidal_2d/fourier/axes{len(b)}/{probe}"
    cond = {"amp": terms(3, values), "phase": np.concatenate([angles, angles], axis=-1)}
    kills = "two_pi_left_out coordinates_from_0_to_1 cosines_first sine_and_cosine_in_turn rows_and_columns_exchanged"
    return case(id, "fourier", {}, {"coordinates": coordinates, "matrix": b}, values, cond, kills, **rest)


def _ordered(sizes, convention):
    """Errors of the angles of row and column, twice each, in the order of the features."""
    h = len(sizes) // 2
    y, x = sizes[:h], sizes[h:]
    if convention == "mae":
        return [*x, *x, *y, *y]
    return [*y, *x, *y, *x] if convention == "timm" else [v for v in (*y, *x) for _ in (0, 1)]


def _counts(op, expected, mistakes, cond=None):
    return case(f"sinusoidal_2d/detr/4x6/{op}", op, {}, {"seen": SEEN}, expected, cond, mistakes)
