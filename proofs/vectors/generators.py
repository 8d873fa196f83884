"""Generators: the exponential of a sum of skew matrices."""

import mpmath
import numpy as np

from proofs.vectors import *

SOURCES = (
    "Ostmeier et al., LieRE, arXiv 2406.10322",
    "Yu et al., ComRoPE, arXiv 2506.03737",
    "Schenck et al., STRING, arXiv 2502.02562",
    "Heo et al., arXiv 2403.13298 (RoPE-Mixed)",
)

CONVENTIONS = {
    "axes": "matrix (.., d, d), row (.., d), blocks (blocks, size, size), frequencies (axes, pairs), coordinates (n, axes)",
    "op cayley": "(1 - S)(1 + S)^-1 with S = U - U^T, U the entries above the diagonal",
    "op circulant": "C - C^T with C_ij = row_((j - i) mod d)",
    "op mixed": "magnitudes (cos phi, sin phi), then magnitudes (-sin phi, cos phi): (.., column and row, pairs)",
    "op partition": "block b on the diagonal of the generator of axis b mod count",
    "op planes": "RoPE-Mixed: -w and w for each pair of the layout",
    "op skew": "U - U^T with U the entries above the diagonal",
    "op turn": "exp(sum_a coordinates_a (U_a - U_a^T)) x with U_a the entries of matrices_a above the diagonal",
}
REJECTED = (("generators/planes-half/painted/made", "no-layout", {"layout": None}, "missing", "Both layouts are in use."),)
REASONS = """
turn turn positions_below_2^20 | a series of 18 terms holds near 0 alone
"""


def vectors():
    yield _made("skew", {"matrix": painted((2, 4, 4), 1)}, {}, _skew, "lower_triangle whole_matrix symmetric")
    yield _made("circulant", {"row": painted((2, 5), 2)}, {}, _circulant, "turned_back")
    yield _made("partition", {"blocks": painted((3, 2, 2), 4)}, {"count": 2}, _partition, "blocks_in_runs")
    frequencies = {"frequencies": painted((2, 3), 6)}
    for layout in OTHER:
        yield _made("planes", frequencies, {"layout": layout}, _planes, "turned_back other_layout", f"-{layout}")
    yield _cayley(painted((5, 5), 4), "lower_triangle whole_matrix symmetric turned_back half_of_the_matrix")
    yield _mixed(np.array([1.0, 0.25, 0.0625]), np.array([0.5, 1.0, -2.5]), "no_normal quarter_turn_back rows_first")
    yield _turn("liere", painted((2, 4, 4), 4), "axes_exchanged backwards first_order one_after_the_other")
    yield _turn("commuting", np.array([1, 0.5])[:, None, None] * painted((4, 4), 6), "axes_exchanged backwards first_order")


def _skew(matrix):
    y = np.zeros(matrix.shape)
    for *lead, i, j in np.ndindex(*matrix.shape):
        y[(*lead, i, j)] = matrix[(*lead, i, j)] if i < j else -matrix[(*lead, j, i)] if j < i else 0
    return y


def _circulant(row):
    return np.array([[[c[(j - i) % len(c)] - c[(i - j) % len(c)] for j in range(len(c))] for i in range(len(c))] for c in row])


def _partition(blocks, count):
    n, size = blocks.shape[:2]
    y = np.zeros((count, n * size, n * size))
    for b, i, j in np.ndindex(n, size, size):
        y[b % count, b * size + i, b * size + j] = blocks[b, i, j]
    return y


def _planes(frequencies, layout):
    axes, pairs = frequencies.shape
    y = np.zeros((axes, 2 * pairs, 2 * pairs))
    for a, t in np.ndindex(axes, pairs):
        one, two = (2 * t, 2 * t + 1) if layout == "interleaved" else (t, t + pairs)
        y[a, one, two], y[a, two, one] = -frequencies[a, t], frequencies[a, t]
    return y


def _made(op, tensors, params, f, kills, variant=""):
    expected = f(*tensors.values(), **params)
    return case(f"generators/{op}{variant}/painted/made", op, params, tensors, numbers(expected), terms(1, expected), kills)


def _cayley(matrix, kills):
    one, s = mpmath.eye(len(matrix)), mpmath.matrix(_skew(matrix).tolist())
    expected = np.array(((one - s) * (one + s) ** -1).tolist())
    # 1 + S has no singular value below 1, so an error of S, or of one of d eliminations, is at most one of 2 (1 + |S|)
    cond = terms(3 * len(matrix), np.full(expected.shape, 2 * (1 + mpmath.mnorm(s, "f"))))
    return case("generators/cayley/d5/made", "cayley", {}, {"matrix": matrix}, expected, cond, kills, models=("f64", "f32"))


def _mixed(magnitudes, phi, kills):
    turned = lambda f: [[[w * f(p + h * mpmath.pi / 2) for w in magnitudes] for h in (0, 1)] for p in map(mpmath.mpf, phi)]
    expected = np.stack([np.reshape(turned(f), (len(phi), -1)) for f in (mpmath.cos, mpmath.sin)], axis=1)
    cond = terms(3, np.tile(np.abs(magnitudes), 2) + 0 * expected)
    return case("generators/mixed/pairs6/made", "mixed", {}, {"magnitudes": magnitudes, "phi": phi}, expected, cond, kills)


def _turn(probe, entries, kills):
    x, coordinates, made = painted((5, 4), 1), painted((5, 2), 2) / 2, [mpmath.matrix(_skew(each).tolist()) for each in entries]
    expected, size = np.zeros((5, 4), dtype=object), np.zeros((5, 4), dtype=object)
    for n in range(5):
        parts, row = [mpmath.mpf(c) * m for c, m in zip(coordinates[n], made, strict=True)], mpmath.matrix(x[n].tolist())
        expected[n] = [*mpmath.expm(sum(parts, mpmath.zeros(4)), method="taylor") * row]
        # a turn keeps lengths, so an error of S by its roundings is one of its size; 16 steps add it up
        size[n] = [(sum(mpmath.mnorm(part, "f") for part in parts) + 2) * mpmath.norm(row)] * 4
    id, tensors = f"generators/turn/d4/{probe}", {"x": x, "coordinates": coordinates, "matrices": entries}
    # exponentials are taken in float32 by the released code
    return case(
        id, "turn", {"terms": 18, "halvings": 4}, tensors, expected, terms(8, size, bits=24), kills, models=("f64", "f32")
    )
