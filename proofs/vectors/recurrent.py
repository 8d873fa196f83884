"""Recurrent encoding: each position's vector is computed from the one before."""

import mpmath
import numpy as np

from proofs.absolute.recurrent import definition
from proofs.absolute.sinusoidal import definition as sinusoid
from proofs.absolute.sinusoidal import frequency
from proofs.vectors import *

SOURCES = ('Su, kexue.fm/archives/8130, section "Recurrent"', "Vaswani et al., arXiv 1706.03762, section 3.5 (the linear step)")

CONVENTIONS = {
    "axes": "start is (.., d), the result (.., length, d); matrices act on column vectors",
    "op linear": "p_k = M^k p_0 with the matrix given",
    "op sinusoid": "the matrix is the shift by one position of the sinusoid with frequencies base^(-2t/dim), p_0 its row 0",
}
REJECTED = (("recurrent/linear/d3/integers", "negative", {"length": -1}, "range", "No fewer than 0 steps."),)


def vectors():
    matrix, start, length = np.array([[1, 1, 0], [2, 0, -1], [0, 1, 1]], dtype=object), [[1, 2, -1], [0, 3, 1]], 5
    rows = lambda m, x, n: [definition(lambda p: m @ p, np.array(x, dtype=object), k).tolist() for k in range(n)]
    id, tensors = "recurrent/linear/d3/integers", {"matrix": matrix.astype(int), "start": np.array(start)}
    expected, kills = [rows(matrix, x, length) for x in start], "start_skipped transposed one_step zero_start"
    yield case(id, "linear", {"length": length}, tensors, expected, kills=kills, comment="Integers.")
    for layout in ("half", "interleaved"):
        yield _sinusoid(6, 7, layout)
        yield _sinusoid(4, 5, layout, 500, kills="wrong_base start_skipped transposed one_step zero_start other_layout")


def _sinusoid(dim, length, layout, base=10000, kills="start_skipped transposed one_step zero_start other_layout"):
    w = [frequency(mpmath.mpf(t), dim, mpmath.mpf(base), m=mpmath) for t in range(dim // 2)]
    # a step adds four roundings of |c| + |s|, and an error of the angle; orthogonal steps do not enlarge earlier ones
    spread = [mpmath.sin(x) + mpmath.cos(x) for x in w]
    columns = [t for t in range(dim // 2) for _ in (0, 1)] if layout == "interleaved" else [*range(dim // 2)] * 2
    id = f"recurrent/sinusoid/{layout}-d{dim}-{'b1e4' if base == 10000 else 'b5e2'}/steps"
    params = {"dim": dim, "base": float(base), "layout": layout, "length": length}
    cond = {
        "amp": [[terms(4 * k, spread[t]) for t in columns] for k in range(length)],
        "phase": [[k * w[t] * growth(w[t]) for t in columns] for k in range(length)],
    }
    return case(id, "sinusoid", params, {}, [sinusoid(k, w, layout, mpmath) for k in range(length)], cond, kills)
