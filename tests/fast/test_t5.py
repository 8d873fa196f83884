"""The compiled T5 bias against the specification, bit by bit, and against a scalar loop over the paper's buckets."""

import importlib
import itertools
import threading

import numpy as np
import pytest

from posref.relative import t5

pytest.importorskip("numba", reason="needs posref[fast]")
fast = importlib.import_module("posref.fast.t5")

FLOATS = (np.float32, np.float64)
INTEGERS = (np.int8, np.int16, np.int32, np.int64)
SIZES = (0, 1, 2, 3, 7, 33, 150)


def random(*shape, dtype=np.float64):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_size_with_and_without_gaps(bidirectional, dtype):
    for n, m, heads in itertools.product(SIZES, SIZES, (1, 3)):
        table = random(32, heads, dtype=dtype)
        for query, key in (
            (np.arange(n) + 5, np.arange(m)),
            (np.arange(n) * 3, np.arange(m) ** 2),
            (np.arange(n), np.arange(m)[::-1]),
        ):
            expected = t5.bias(query, key, table, bidirectional=bidirectional)
            assert same_bits(fast.bias(query, key, table, bidirectional=bidirectional), expected)
            assert same_bits(fast.bias(query, key, table, bidirectional=bidirectional, threads=5), expected)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_published_and_odd_tables(bidirectional):
    query, key = np.array([3, 1000, 40]), np.arange(0, 1200, 7)
    for buckets, max_distance in ((32, 128), (320, 800), (4, 3), (6, 1000), (64, 10**9), (32, 10**12)):
        table = random(buckets, 2)
        arguments = {"max_distance": max_distance, "bidirectional": bidirectional}
        assert same_bits(fast.bias(query, key, table, **arguments), t5.bias(query, key, table, **arguments))


def test_against_a_scalar_loop():
    """Encoder, 32 buckets, 128: exact below 8, then floor(8 + 8 log(n / 8) / log(16)), in integers n^8 >= 8^(8-k) 128^k."""
    query, key, table = np.array([200, 0]), np.arange(0, 400, 3), random(32, 2)
    made = fast.bias(query, key, table, bidirectional=True)
    for (h, i, j), got in np.ndenumerate(made):
        offset = int(key[j]) - int(query[i])
        n = abs(offset)
        bucket = n if n < 8 else max(8 + k for k in range(8) if n**8 >= 8 ** (8 - k) * 128**k)
        assert got == table[bucket + 16 * (offset > 0), h]


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


BATCHES = [
    ((2, 3), (4,)),
    ((3,), (2, 4)),
    ((2, 3), (2, 4)),
    ((2, 1, 3), (5, 4)),
    ((1, 3), (2, 4)),
    ((0, 3), (4,)),
    ((2, 0), (2, 4)),
]


@pytest.mark.parametrize(("query_shape", "key_shape"), BATCHES)
def test_batched_positions(query_shape, key_shape):
    rng, table = np.random.default_rng(0), random(8, 3)
    query, key = rng.integers(-50, 50, query_shape), rng.integers(-50, 50, key_shape)
    query.reshape(-1)[: query.shape[-1]] = np.arange(query.shape[-1])[: query.size]  # one row of the batch without gaps
    expected = t5.bias(query, key, table, max_distance=20, bidirectional=True)
    for threads in (None, 1, 2, 64):
        got = fast.bias(query, key, table, max_distance=20, bidirectional=True, threads=threads)
        assert same_bits(got, expected)


def test_memory_layouts():
    query, key, table = np.arange(12).reshape(3, 4), np.arange(15).reshape(3, 5) % 7, random(8, 4)
    expected = t5.bias(query, key, table, bidirectional=False)
    for change in (np.asfortranarray, lambda x: np.repeat(x, 2, -1)[..., ::2], lambda x: x[..., ::-1].copy()[..., ::-1]):
        assert same_bits(fast.bias(change(query), change(key), change(table), bidirectional=False, threads=2), expected)
    same = np.broadcast_to(np.int64(3), (3, 5))
    assert same_bits(fast.bias(query, same, table, bidirectional=True), t5.bias(query, same, table, bidirectional=True))
    assert same_bits(fast.bias(query.astype(">i4"), key, table, bidirectional=False), expected)
    for out in (np.zeros((3, 4, 4, 9))[..., 2:7], np.asfortranarray(np.zeros((3, 4, 4, 5)))):
        assert fast.bias(query, key, table, bidirectional=False, out=out, threads=3) is out
        assert same_bits(out, expected)


def test_out_leaves_its_surroundings_alone():
    buffer, positions, table = np.full((3, 5, 20), 7.0), np.arange(5), random(8, 3)
    fast.bias(positions, positions, table, bidirectional=True, out=buffer[..., 4:9])
    assert (np.delete(buffer, range(4, 9), axis=-1) == 7).all()


def test_out_over_the_inputs_is_refused():
    buffer = np.zeros(60)
    positions = buffer.view(np.int64)
    good = {"query_positions": np.arange(2), "key_positions": np.arange(5), "table": np.zeros((8, 2))}
    parts = {"query_positions": positions[19:21], "key_positions": positions[:5], "table": buffer[18:34].reshape(8, 2)}
    for name, part in parts.items():
        with pytest.raises(ValueError, match=rf"fast\.t5\.bias: out overlaps {name} in memory"):
            fast.bias(**{**good, name: part}, bidirectional=True, out=buffer[:20].reshape(2, 2, 5))


def test_two_python_threads_call_at_once():
    positions, table, right = np.arange(150), random(32, 4), []
    expected = t5.bias(positions, positions[::3], table, bidirectional=True)

    def call():
        for _ in range(20):
            right.append(same_bits(fast.bias(positions, positions[::3], table, bidirectional=True, threads=2), expected))

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert right == [True] * 60


def test_kernel_equals_its_python_source():
    compiled, source = np.zeros((2, 3, 4)), np.zeros((2, 3, 4))
    arguments = random(2, 5), np.arange(3) * 2, np.arange(4)
    fast._bias(*arguments, compiled)
    fast._bias.py_func(*arguments, source)
    assert same_bits(compiled, source)


def test_buckets_are_those_of_the_specification():
    assert fast.bucket is t5.bucket
    assert fast.bucket_starts is t5.bucket_starts


QUERY, KEY, TABLE = np.arange(2), np.arange(3), np.ones((8, 2))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"table": [1.0]}, TypeError, "fast.t5.bias: table is a list"),
        (
            {"table": TABLE[None]},
            ValueError,
            r"fast.t5.bias: table has shape \(1, 8, 2\), expected \(buckets, h\), with 2 axes",
        ),
        ({"table": TABLE.astype(np.float16)}, TypeError, "fast.t5.bias: the bias would have dtype float16"),
        ({"table": TABLE.astype(int)}, TypeError, "fast.t5.bias: the bias would have dtype int64"),
        ({"table": TABLE[:7]}, ValueError, "t5.bucket: buckets is 7, expected an even number when bidirectional"),
        ({"table": TABLE[:2]}, ValueError, "t5.bucket: buckets is 2, which leaves 1 on a side"),
        ({"max_distance": 2}, ValueError, "t5.bucket: max_distance is 2 and the first 2 distances"),
        ({"max_distance": -5}, ValueError, "t5.bucket: max_distance is -5"),
        ({"max_distance": 128.0}, TypeError, "fast.t5.bias: max_distance is 128.0, expected an integer"),
        ({"query_positions": QUERY.astype(np.uint8)}, TypeError, "fast.t5.bias: query_positions has dtype uint8"),
        (
            {"query_positions": QUERY + 0.0},
            TypeError,
            "fast.t5.bias: query_positions has dtype float64, expected signed integers",
        ),
        ({"key_positions": KEY.astype(object)}, TypeError, "fast.t5.bias: the difference of positions would have dtype object"),
        ({"key_positions": np.array(1)}, ValueError, r"fast.t5.bias: key_positions has shape \(\)"),
        ({"query_positions": np.zeros((2, 3), int), "key_positions": np.zeros((3, 3), int)}, ValueError, "must be equal or 1"),
        ({"key_positions": np.array([-(2**63)])}, ValueError, "fast.t5.bias: key_positions run from .* do not fit into int64"),
        ({"out": np.empty((2, 3, 2))}, ValueError, r"fast.t5.bias: out has shape \(2, 3, 2\) and the result has \(2, 2, 3\)"),
        ({"out": np.empty((2, 2, 3), np.float32)}, TypeError, "fast.t5.bias: out has dtype float32"),
        ({"threads": 1.5}, TypeError, "fast.t5.bias: threads is 1.5"),
    ],
)
def test_errors(change, error, message):
    arguments = {"query_positions": QUERY, "key_positions": KEY, "table": TABLE, "bidirectional": True, **change}
    with pytest.raises(error, match=message):
        fast.bias(**arguments)
