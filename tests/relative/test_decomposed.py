"""Decomposed positions: values of the official code, refused rows, rows on symbols of rounding."""

import numpy as np
import pytest

from posref.relative import decomposed


def square(n):
    return decomposed.rows(np.arange(n), np.arange(n), query_size=n, key_size=n)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_places_of_narrow_integers_do_not_wrap(dtype):
    """Places up to 63, times 64 and 64; and to the ends of the type."""
    places, ends = np.arange(64, dtype=dtype), np.array([np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    expected = [[i - j + 63 for j in range(64)] for i in range(64)]
    assert decomposed.rows(places, places, query_size=64, key_size=64).tolist() == expected
    for m, n in ((3, 2), (64, 48)):
        longest = max(m, n)
        expected = [[(i * longest * n + (n - 1 - j) * longest * m) // (m * n) for j in ends.tolist()] for i in ends.tolist()]
        assert decomposed.rows(ends, ends, query_size=m, key_size=n).tolist() == expected


def test_a_short_table_is_refused():
    q, table = np.ones((4, 2)), np.ones((3, 2))
    with pytest.raises(ValueError, match="offsets run from 0 to 6 and by_offset holds 3"):
        decomposed.bias(q, table, table, square(4), square(4))
    assert np.array_equal(decomposed.bias(q, *[decomposed.resize(table, 7)] * 2, square(4), square(4)), np.full((4, 4), 4.0))


def test_tables_of_whole_numbers_are_stretched():
    assert decomposed.resize(np.array([[0], [3]]), 4)[:, 0].tolist() == [0, 0.75, 2.25, 3]
    assert decomposed.resize(np.array([[5.0]]), 3).tolist() == [[5.0]] * 3
