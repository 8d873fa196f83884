"""The compiled T5 bias: tables of odd sizes, the ends of integers, and what it refuses beyond its contract."""

import importlib
import itertools

import numpy as np
import pytest

from posref.relative import t5
from tests.fast.bits import same_bits

pytest.importorskip("numba", reason="needs posref[fast]")
fast = importlib.import_module("posref.fast.t5")

INTEGERS = (np.int8, np.int16, np.int32, np.int64)


def random(*shape, dtype=np.float64):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_published_and_odd_tables(bidirectional):
    query, key = np.array([3, 1000, 40]), np.arange(0, 1200, 7)
    for buckets, max_distance in ((32, 128), (320, 800), (4, 3), (6, 1000), (64, 10**9), (32, 10**12)):
        table = random(buckets, 2)
        arguments = {"max_distance": max_distance, "bidirectional": bidirectional}
        assert same_bits(fast.bias(query, key, table, **arguments), t5.bias(query, key, table, **arguments))


def test_one_cell():
    one, table = np.array([3]), random(32, 1)
    assert same_bits(*(form.bias(one, one + 2, table, bidirectional=True) for form in (fast, t5)))


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_the_ends_of_integers(dtype, bidirectional):
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if dtype == np.int64:
        low, high = -(2**62), 2**62 - 1
    ends, table = np.array([low, low + 1, 0, high], dtype), random(32, 3)
    made = fast.bias(ends, ends, table, bidirectional=bidirectional)
    assert same_bits(made, t5.bias(ends, ends, table, bidirectional=bidirectional))
    side = 15 if bidirectional else 31
    assert (made[:, 3, 0] == table[side]).all()
    assert (made[:, 0, 3] == table[31 if bidirectional else 0]).all()
    runs = [np.arange(low, low + 3, dtype=dtype), np.arange(high - 2, high, dtype=dtype)]
    for query, key in itertools.product(runs, runs):
        expected = t5.bias(query, key, table, bidirectional=bidirectional)
        assert same_bits(fast.bias(query, key, table, bidirectional=bidirectional), expected)


QUERY, KEY, TABLE = np.arange(2), np.arange(3), np.ones((8, 2))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"table": TABLE.astype(int)}, TypeError, "fast.t5.bias: the bias would have dtype int64"),
        ({"table": TABLE[:7]}, ValueError, "t5.bucket: buckets is 7, expected an even number when bidirectional"),
        ({"table": TABLE[:2]}, ValueError, "t5.bucket: buckets is 2, which leaves 1 on a side"),
        ({"max_distance": 2}, ValueError, "t5.bucket: max_distance is 2 and the first 2 distances"),
        ({"max_distance": -5}, ValueError, "t5.bucket: max_distance is -5"),
        ({"key_positions": KEY.astype(object)}, TypeError, "fast.t5.bias: the difference of positions would have dtype object"),
        ({"key_positions": np.array([-(2**63)])}, ValueError, "fast.t5.bias: key_positions run from .* do not fit into int64"),
    ],
)
def test_errors(change, error, message):
    arguments = {"query_positions": QUERY, "key_positions": KEY, "table": TABLE, "bidirectional": True, **change}
    with pytest.raises(error, match=message):
        fast.bias(**arguments)
