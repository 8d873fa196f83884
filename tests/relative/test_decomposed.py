"""Decomposed positions: values of the official code, refused rows, rows on symbols of rounding."""

import numpy as np
import pytest

from posref.relative import decomposed


def painted(shape, tag):
    n = np.arange(np.prod(shape))
    return (((7 * n * n + 31 * n + 17 * tag) % 251 - 125) / 64).reshape(shape)


def square(n):
    return decomposed.rows(np.arange(n), np.arange(n), query_size=n, key_size=n)


def sums(values):
    """The sum of all entries, and of each times (1 + n mod 13) / 16."""
    n = np.arange(np.size(values))
    return [np.sum(values), np.sum(np.ravel(values) * (1 + n % 13) / 16)]


def between(query, key):
    places = [np.array([*np.ndindex(grid)]).T for grid in (query, key)]
    return [decomposed.rows(places[0][a], places[1][a], query_size=query[a], key_size=key[a]) for a in (0, 1)]


def test_values_of_the_official_code():
    """segment-anything dca509fe79 and mvit dfbdfdf60e, run in float64; one feature of four where a table is resized."""
    for m, n, expected in ((3, 4, [-12.5, -3.82268415179]), (9, 3, [-3.0375, -1.00390625])):
        got = decomposed.resize(painted((m, 4), 2), 2 * n - 1)[square(n), 0]
        np.testing.assert_allclose(sums(got), expected, rtol=1e-11)
    got = decomposed.bias(painted((2, 6, 4), 1), painted((3, 4), 2), painted((5, 4), 3), *between((2, 3), (2, 3)))
    np.testing.assert_allclose(sums(got), [51.6403808594, 15.5199890137], rtol=1e-11)
    q = painted((1, 2, 17, 4), 1)[:, :, 1:]  # [CLS] has no terms
    got = decomposed.bias(q, painted((7, 4), 2), painted((7, 4), 3), *between((4, 4), (2, 2)))
    np.testing.assert_allclose(sums(np.pad(got, ((0, 0), (0, 0), (1, 0), (1, 0)))), [-64.466796875, -20.7196960449], rtol=1e-11)
    got = painted((5, 1), 2)[decomposed.rows(np.arange(3), np.arange(2), query_size=3, key_size=2), 0]
    assert sums(got) == [-2.09375, -0.1279296875]


def test_a_short_table_is_refused():
    q, table = np.ones((4, 2)), np.ones((3, 2))
    with pytest.raises(ValueError, match="offsets run from 0 to 6 and by_offset holds 3"):
        decomposed.bias(q, table, table, square(4), square(4))
    assert np.array_equal(decomposed.bias(q, *[decomposed.resize(table, 7)] * 2, square(4), square(4)), np.full((4, 4), 4.0))


def test_tables_of_whole_numbers_are_stretched():
    assert decomposed.resize(np.array([[0], [3]]), 4)[:, 0].tolist() == [0, 0.75, 2.25, 3]
    assert decomposed.resize(np.array([[5.0]]), 3).tolist() == [[5.0]] * 3
