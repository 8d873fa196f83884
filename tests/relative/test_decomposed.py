"""Decomposed positions: a table that is too short."""

import numpy as np
import pytest

from posref.relative import decomposed


def square(n):
    return decomposed.rows(np.arange(n), np.arange(n), query_size=n, key_size=n)


def test_a_short_table_is_refused():
    q, table = np.ones((4, 2)), np.ones((3, 2))
    with pytest.raises(ValueError, match="offsets run from 0 to 6 and by_offset holds 3"):
        decomposed.bias(q, table, table, square(4), square(4))
    assert np.array_equal(decomposed.bias(q, *[decomposed.resize(table, 7)] * 2, square(4), square(4)), np.full((4, 4), 4.0))
