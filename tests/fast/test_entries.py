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
    """For every pair of tables, rows before, across and beyond them; columns after the last are not read."""
    for n_key, query, key, height in itertools.product((1, 11), ENDS, ENDS, (4, 40)):
        first = np.arange(8, -9 - n_key, -1)[:, None]
        at, shape = first + np.arange(n_key), (2, len(first), n_key)
        by_query, by_key = random(*shape[:2], 9), random(2, n_key, 10, seed=1)
        by_query[..., 7:] = by_key[..., 7:] = np.nan
        tables = None if query is None else by_query, None if key is None else by_key
        looked, laid, source = (random(*shape, seed=2) for _ in range(3))
        rooms = np.empty(n_key), None if key is None else np.empty((height, n_key + 1))
        for kernel, scores, index in (
            (fast._add, looked, at),
            (fast._add_straight, laid, first),
            (fast._add.py_func, source, at),
        ):
            kernel(scores, *tables, index, query, key, np.float64(0.3), None, *rooms)
        assert looked.tobytes() == laid.tobytes() == source.tobytes()
        assert np.isfinite(laid).all()


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
