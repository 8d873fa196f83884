"""Hierarchical decomposition: a table of many rows, what the body refuses."""

import numpy as np

from posref.absolute import hierarchical
from tests.refused import refused


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
