"""Entries that are looked up and entries that are laid out: the same bits, and those of the Python source."""

import importlib
import itertools

import numpy as np
import pytest

from tests.fast.bits import random

pytest.importorskip("numba", reason="needs posref[fast]")
fast = importlib.import_module("posref.fast.entries")

ENDS = (None, fast.Ends(3, 1, -3, 3), fast.Ends(3, 1, -3, 2), fast.Ends(3, -1, -2, 3))


def test_laid_out_as_looked_up():
    """For every pair of tables, of two dtypes, rows before, across and beyond them; columns after the last are not read."""
    for n_key, query, key, height in itertools.product((1, 11), ENDS, ENDS, (4, 40)):
        first = np.arange(8, -9 - n_key, -1)[:, None]
        at, shape = first + np.arange(n_key), (2, len(first), n_key)
        content = random(*shape[:2], n_key + 3, dtype=np.float32)
        by_query, by_key = random(*shape[:2], 9, dtype=np.float32), random(2, n_key, 10, dtype=np.float64, seed=1)
        by_query[..., 7:] = by_key[..., 7:] = content[..., n_key:] = np.nan
        terms = content, None if query is None else by_query, None if key is None else by_key
        looked, laid, source = (np.zeros(shape) for _ in range(3))
        row, columns = np.empty(n_key, np.float32), np.empty((height, n_key + 1))
        fast._add(*terms, at, query, key, np.float64(0.3), looked, None, None)
        fast._add_straight(*terms, first, query, key, np.float64(0.3), laid, row, columns)
        fast._add.py_func(*terms, at, query, key, np.float64(0.3), source, None, None)
        assert looked.tobytes() == laid.tobytes() == source.tobytes()
        assert np.isfinite(laid).all()


def test_scores_in_the_place_of_the_content():
    """With no other place for them; 70 queries are more than are laid out at a time."""
    first = np.arange(40, -30, -1)[:, None]
    at, by_query, by_key = first + np.arange(11), random(2, 70, 7, dtype=np.float64), random(2, 11, 7, dtype=np.float64)
    content = random(2, 70, 11, dtype=np.float64)
    for query, key in itertools.product(ENDS[1:], ENDS[::2]):
        terms = by_query, None if key is None else by_key
        apart = np.empty_like(content)
        fast._add.py_func(content, *terms, at, query, key, 0.3, apart, None, None)
        for kernel, index in ((fast._add, at), (fast._add_straight, first)):
            ((_, *arguments),) = fast.calls(content, *terms, index, query, key, np.float64(0.3), None, 11, 1)
            within = content.copy()
            kernel(within, *arguments)
            assert within.tobytes() == apart.tobytes()


def test_what_is_straight():
    ends = np.iinfo(np.int64)
    rows = np.arange(5) + np.array([[7], [-9], [7]])
    assert (fast.straight(rows) == rows[:, :1]).all()
    for i, j in np.ndindex(rows.shape):
        other = rows.copy()
        other[i, j] += 1
        assert fast.straight(other) is None
    assert fast.straight(np.array([[ends.max, ends.min]])) is None, "the sum wraps"
    assert fast.straight(np.array([[ends.min, ends.min + 1]])) == -fast.FAR
    assert fast.straight(np.array([[ends.max - 1, ends.max]])) == fast.FAR
    shared = np.broadcast_to(rows, (2, 3, 3, 5))
    assert fast.straight(shared).shape == (2, 3, 3, 1)
