"""Generators: the exponential of a sum of skew matrices."""

import mpmath
import numpy as np

from proofs.vectors import case, painted, terms

SOURCES = (
    "Ostmeier et al., LieRE, arXiv 2406.10322",
    "Yu et al., ComRoPE, arXiv 2506.03737",
    "Schenck et al., STRING, arXiv 2502.02562",
    "Heo et al., arXiv 2403.13298 (RoPE-Mixed)",
)

CONVENTIONS = {
    "axes": "matrix (.., d, d), row (.., d), blocks (blocks, size, size), frequencies (axes, pairs), coordinates (n, axes)",
    "op circulant": "C - C^T with C_ij = row_((j - i) mod d)",
    "op partition": "block b on the diagonal of the generator of axis b mod count",
    "op planes": "RoPE-Mixed: -w and w for each pair of the layout",
    "op skew": "U - U^T with U the entries above the diagonal",
    "op turn": "exp(sum_a coordinates_a (U_a - U_a^T)) x with U_a the entries of matrices_a above the diagonal",
}


def vectors():
    yield _made("skew", {"matrix": painted((2, 4, 4), 1)}, {}, _skew, "lower_triangle whole_matrix symmetric")
    yield _made("circulant", {"row": painted((2, 5), 2)}, {}, _circulant, "turned_back")
    yield _made("partition", {"blocks": painted((3, 2, 2), 4)}, {"count": 2}, _partition, "blocks_in_runs")
    for layout in ("half", "interleaved"):
        given = {"layout": layout}
        yield _made("planes", {"frequencies": painted((2, 3), 6)}, given, _planes, "turned_back other_layout", f"-{layout}")
    yield _turn("liere", painted((2, 4, 4), 4), "one_after_the_other")
    yield _turn("commuting", np.array([1, 0.5])[:, None, None] * painted((4, 4), 6), "")


def _skew(matrix):
    y = np.zeros(matrix.shape)
    for *lead, i, j in np.ndindex(*matrix.shape):
        y[(*lead, i, j)] = matrix[(*lead, i, j)] if i < j else -matrix[(*lead, j, i)] if j < i else 0
    return y


def _circulant(row):
    d = row.shape[-1]
    return np.array([[[c[(j - i) % d] - c[(i - j) % d] for j in range(d)] for i in range(d)] for c in row])


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
    return case(
        f"generators/{op}{variant}/painted/made",
        op=op,
        params=params,
        tensors=tensors,
        expected=np.vectorize(mpmath.mpf, otypes=[object])(expected),
        cond={"amp": terms(1, expected)},
        kills=kills,
    )


def _turn(probe, entries, kills):
    x, coordinates = painted((5, 4), 1), painted((5, 2), 2) / 2
    expected, size = np.zeros((5, 4), dtype=object), np.zeros((5, 4), dtype=object)
    made = [mpmath.matrix(_skew(each[None])[0].tolist()) for each in entries]
    for n in range(5):
        s = sum((mpmath.mpf(c) * m for c, m in zip(coordinates[n], made, strict=True)), mpmath.zeros(4))
        expected[n] = [*mpmath.expm(s, method="taylor") * mpmath.matrix(x[n].tolist())]
        # a turn keeps lengths, so an error of S by its roundings is one of its size; 16 steps add it up
        most = sum(abs(c) * mpmath.mnorm(m, "f") for c, m in zip(coordinates[n], made, strict=True))
        size[n] = [(most + 2) * mpmath.norm(mpmath.matrix(x[n].tolist()))] * 4
    return case(
        f"generators/turn/d4/{probe}",
        op="turn",
        params={"terms": 18, "halvings": 4},
        tensors={"x": x, "coordinates": coordinates, "matrices": entries},
        expected=expected,
        cond={"amp": terms(8, size, bits=24)},
        kills=f"axes_exchanged backwards first_order {kills}",
        models=("f64", "f32"),  # exponentials are taken in float32 by the released code
    )
