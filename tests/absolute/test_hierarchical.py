"""Hierarchical decomposition against exact fractions written from the text, and what the body refuses."""

from fractions import Fraction

import numpy as np
import pytest

from posref.absolute import hierarchical
from tests.refused import refused

TABLE = [[1, 2], [3, -5], [0, 7]]


def exact(table, alpha):
    """The text's formula with its 1-based k, in fractions: q_{(i-1) n + j} = alpha u_i + (1 - alpha) u_j."""
    n, alpha = len(table), Fraction(alpha)
    p = {k: [Fraction(value) for value in row] for k, row in enumerate(table, start=1)}
    u = {k: [(a - alpha * first) / (1 - alpha) for a, first in zip(p[k], p[1], strict=True)] for k in p}
    q = {}
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            q[(i - 1) * n + j] = [alpha * a + (1 - alpha) * b for a, b in zip(u[i], u[j], strict=True)]
    return [q[k] for k in sorted(q)]


def rounding(table, alpha):
    """u takes 4 roundings and q another 4, on terms that add up to at most |p| (1 + alpha) / (1 - alpha)."""
    return 8 * np.finfo(float).eps / 2 * np.abs(table).max() * (1 + alpha) / (1 - alpha)


@pytest.mark.parametrize("alpha", [0.4, 0.25, 0.9])
def test_extend_is_the_formula_to_rounding(alpha):
    expected = np.array(exact(TABLE, alpha), dtype=float)
    q = hierarchical.extend(np.array(TABLE), alpha=alpha)
    assert np.abs(q - expected).max() <= rounding(TABLE, alpha)


def test_encode_reaches_where_the_extension_would_not_fit():
    table = np.arange(200_000.0)[:, None]
    last = np.array([200_000**2 - 1])
    assert hierarchical.encode(last, table, alpha=0.5).tolist() == [[2 * 199_999.0]]


test_refused = refused(
    vars(hierarchical),
    r"""
    extend(np.ones((2, 2)), alpha=1) | hierarchical\.extend: alpha is 1, and .* divides by zero
    extend(np.ones((2, 2)), alpha=1.0) | hierarchical\.extend: alpha is 1\.0, and .* divides by zero
    encode(a(0), np.ones((2, 2)), alpha=1) | hierarchical\.encode: alpha is 1, and .* divides by zero
    encode(a(0, 4), np.ones((2, 2)), alpha=0.4) | runs from 0 to 4 and the stretched table has 4 rows
    encode(a(-1), np.ones((2, 2)), alpha=0.4) | runs from -1 to -1
    """,
)
