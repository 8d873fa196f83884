"""Compiled offset matrices against the views of the specification, bit by bit."""

import importlib
import itertools
import threading

import numpy as np
import pytest

from posref import offsets

pytest.importorskip("numba", reason="needs posref[fast]")
fast = importlib.import_module("posref.fast.offsets")

FLOATS = (np.float32, np.float64)
SIZES = (1, 2, 3, 7, 16, 33, 130)


def random(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def strided(x):
    """The same numbers laid out in other ways."""
    yield "fortran", np.asfortranarray(x)
    yield "packed", np.concatenate([x, x], axis=-1)[..., : x.shape[-1]]
    yield "every other", np.repeat(x, 2, axis=-1)[..., ::2]
    yield "backwards", np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    yield "unaligned", np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)


@pytest.mark.parametrize("dtype", FLOATS)
def test_dense_of_every_size(dtype):
    for n, m, heads in itertools.product(SIZES, SIZES, (1, 3)):
        by_offset = random(heads, n + m - 1, dtype=dtype)
        expected = offsets.toeplitz(by_offset, n, m)
        assert same_bits(fast.dense(by_offset, n, m), expected)
        assert same_bits(fast.dense(by_offset, n, m, threads=5), expected)


@pytest.mark.parametrize("lead", [(), (1,), (0,), (2, 3), (2, 0, 3)])
def test_dense_of_every_rank(lead):
    by_offset = random(*lead, 6)
    assert same_bits(fast.dense(by_offset, 3, 4), offsets.toeplitz(by_offset, 3, 4))
    assert fast.dense(by_offset, np.int32(3), np.int64(4)).shape == (*lead, 3, 4)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["shared", "batched", "heads of their own", "one head"])
def test_gather_against_the_specification(kind, dtype):
    rng = np.random.default_rng(0)
    lead = {"shared": (), "batched": (2, 1), "heads of their own": (2, 3), "one head": (2, 1)}[kind]
    by_offset = random(1 if kind == "one head" else 3, 12, dtype=dtype)
    for n, m in itertools.product((0, 1, 2, 5, 33), (0, 1, 4, 17)):
        at = rng.integers(-4, 8, (*lead, n, m))
        expected = offsets.gather(by_offset, at, -4)
        for integer in (np.int8, np.int16, np.int32, np.int64):
            assert same_bits(fast.gather(by_offset, at.astype(integer), -4), expected)
        for threads in (1, 2, 7):
            assert same_bits(fast.gather(by_offset, at, np.int64(-4), threads=threads), expected)


def test_gather_of_tables_with_batches():
    by_offset, at = random(2, 3, 9), np.random.default_rng(0).integers(0, 9, (2, 1, 4, 5))
    assert same_bits(fast.gather(by_offset, at, 0), offsets.gather(by_offset, at, 0))
    assert same_bits(fast.gather(by_offset, at[0], 0), offsets.gather(by_offset, at[0], 0))
    assert same_bits(fast.gather(by_offset[0, 0], at[0, 0], 0), offsets.gather(by_offset[0, 0], at[0, 0], 0))


@pytest.mark.parametrize("dtype", FLOATS)
def test_memory_layouts(dtype):
    plain, at = random(2, 3, 11, dtype=dtype), np.random.default_rng(0).integers(-5, 6, (5, 7))
    dense, gathered = offsets.toeplitz(plain, 5, 7), offsets.gather(plain, at, -5)
    for name, by_offset in strided(plain):
        assert same_bits(fast.dense(by_offset, 5, 7, threads=2), dense), name
        for other, index in strided(at):
            assert same_bits(fast.gather(by_offset, index, -5, threads=2), gathered), (name, other)
    same = np.broadcast_to(plain[:1, :1], (2, 3, 11))
    assert same_bits(fast.dense(same, 5, 7), offsets.toeplitz(same, 5, 7))
    assert same_bits(fast.gather(same, np.broadcast_to(at[:1], (5, 7)), -5), offsets.gather(same, np.repeat(at[:1], 5, 0), -5))
    for name, out in strided(np.zeros((2, 3, 5, 7), dtype)):
        if out.flags.writeable:
            assert fast.dense(plain, 5, 7, out=out, threads=2) is out
            assert same_bits(out, dense), name
            assert fast.gather(plain, at, -5, out=out, threads=2) is out
            assert same_bits(out, gathered), name


def test_out_leaves_its_surroundings_alone():
    buffer = np.full((3, 5, 20), 7.0)
    by_offset = random(3, 11)
    fast.dense(by_offset, 5, 7, out=buffer[..., 4:11])
    assert same_bits(buffer[..., 4:11], offsets.toeplitz(by_offset, 5, 7))
    assert (buffer[..., :4] == 7).all()
    assert (buffer[..., 11:] == 7).all()


def test_out_over_the_inputs_is_refused():
    buffer = np.zeros(64)
    with pytest.raises(ValueError, match=r"fast\.offsets\.dense: out overlaps by_offset in memory"):
        fast.dense(buffer[:11], 5, 7, out=buffer[10:45].reshape(5, 7))
    with pytest.raises(ValueError, match=r"fast\.offsets\.gather: out overlaps by_offset in memory"):
        fast.gather(buffer[:1], np.zeros((1, 1), int), 0, out=buffer[:1, None])
    at = np.zeros((5, 7), int)
    with pytest.raises(ValueError, match="out overlaps offsets in memory"):
        fast.gather(np.zeros(1), at, 0, out=at.view(np.float64))


def test_two_python_threads_call_at_once():
    by_offset, right = random(4, 299), []
    expected = offsets.toeplitz(by_offset, 100, 200)

    def call():
        for _ in range(20):
            right.append(same_bits(fast.dense(by_offset, 100, 200, threads=2), expected))

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert right == [True] * 60


def test_kernels_equal_their_python_source():
    by_offset, at = random(2, 6), np.random.default_rng(0).integers(0, 6, (3, 4))
    for kernel, arguments in ((fast._dense, (by_offset,)), (fast._gather, (by_offset[:, None], at - 2, -2))):
        compiled, source = np.zeros((2, 3, 4)), np.zeros((2, 3, 4))
        kernel(*arguments, compiled)
        kernel.py_func(*arguments, source)
        assert same_bits(compiled, source)


B, AT = random(2, 6), np.zeros((3, 4), int)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fast.dense(B.tolist(), 3, 4), TypeError, "dense: by_offset is a list"),
        (
            lambda: fast.dense(B, 3, 5),
            ValueError,
            r"dense: by_offset has shape \(2, 6\), .* = 7 .*, since n_query is 3 and n_key is 5",
        ),
        (lambda: fast.dense(B, 0, 7), ValueError, "dense: n_query is 0"),
        (lambda: fast.dense(B, 3, 4.0), TypeError, "dense: n_key is 4.0"),
        (lambda: fast.dense(B.astype(int), 3, 4), TypeError, "dense: by_offset would have dtype int64; .* float32 and float64"),
        (lambda: fast.dense(B.astype(np.float16), 3, 4), TypeError, "dense: by_offset would have dtype float16"),
        (lambda: fast.dense(B, 3, 4, threads=0), ValueError, "dense: threads is 0"),
        (lambda: fast.dense(B, 3, 4, out=np.empty((2, 4, 3))), ValueError, r"dense: out has shape \(2, 4, 3\)"),
        (lambda: fast.dense(B, 3, 4, out=np.empty((2, 3, 4), np.float32)), TypeError, "dense: out has dtype float32"),
        (
            lambda: fast.gather(B, AT.astype(np.uint8), 0),
            TypeError,
            "gather: offsets has dtype uint8, expected signed integers",
        ),
        (lambda: fast.gather(B, AT.astype(object), 0), TypeError, "gather: offsets has dtype object"),
        (lambda: fast.gather(B, AT + 0.0, 0), TypeError, "gather: offsets has dtype float64"),
        (lambda: fast.gather(B, AT[0], 0), ValueError, r"gather: offsets has shape \(4,\), expected at least 2 axes"),
        (lambda: fast.gather(B, AT, 1), ValueError, "gather: offsets run from 0 to 0 and by_offset holds 6 entries for 1 to 6"),
        (lambda: fast.gather(B, AT + 6, 0), ValueError, "gather: offsets run from 6 to 6 .* 0 to 5"),
        (lambda: fast.gather(B, AT, 0.5), TypeError, "gather: lowest is 0.5, expected an integer"),
        (
            lambda: fast.gather(B, np.zeros((3, 3, 4), int), 0),
            ValueError,
            r"by_offset has shape \(2, 6\) and offsets \(3, 3, 4\)",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert str(caught.value).startswith("fast.offsets.")
