"""The compiled ALiBi bias against the specification, bit by bit, and against rational numbers."""

import importlib
import itertools
import threading
from fractions import Fraction

import numpy as np
import pytest

from posref.relative import alibi

pytest.importorskip("numba", reason="needs posref[fast]")
fast = importlib.import_module("posref.fast.alibi")

FLOATS = (np.float32, np.float64)
INTEGERS = (np.int8, np.int16, np.int32, np.int64)
SIZES = (0, 1, 2, 3, 7, 33, 130)


def some_slopes(heads, dtype=np.float64):
    """Neither powers of two nor sorted, so that products are rounded."""
    return np.random.default_rng(0).standard_normal(heads).astype(dtype)


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("form", alibi.FORMS)
@pytest.mark.parametrize("slope_dtype", FLOATS)
def test_every_size(form, slope_dtype):
    for n, m, heads in itertools.product(SIZES, SIZES, (1, 3)):
        query, key, slopes = np.arange(n) * 3 + m, np.arange(m) ** 2, some_slopes(heads, slope_dtype)
        expected = alibi.bias(query, key, slopes, form=form)
        assert same_bits(fast.bias(query, key, slopes, form=form), expected)
        assert same_bits(fast.bias(query, key, slopes, form=form, threads=5), expected)


@pytest.mark.parametrize("form", alibi.FORMS)
def test_dtypes_promote_like_the_specification(form):
    for query_dtype, key_dtype, dtype in itertools.product((*INTEGERS, *FLOATS), (*INTEGERS, *FLOATS), FLOATS):
        query, key = np.array([0, 5, 100], query_dtype), np.array([[3, 7], [-128, 127]], key_dtype)
        slopes = some_slopes(2, dtype)
        assert same_bits(fast.bias(query, key, slopes, form=form), alibi.bias(query, key, slopes, form=form))


@pytest.mark.parametrize("form", ["signed", "absolute"])
def test_a_float32_result_is_the_float64_product_rounded_once(form):
    """Against rational numbers: the nearest float32 to slope times offset, rounded to float64 before."""
    slopes, query, key = some_slopes(3, np.float32), np.array([0, 123_457]), np.array([999_983, 2**30 + 1, 7])
    made = fast.bias(query, key, slopes, form=form, dtype=np.float32)
    assert same_bits(made, fast.bias(query, key, slopes, form=form, out=np.empty((3, 2, 3), np.float32)))
    assert made.dtype == np.float32
    for (h, i, j), got in np.ndenumerate(made):
        offset = int(key[j]) - int(query[i])
        product = Fraction(float(slopes[h])) * (offset if form == "signed" else -abs(offset))
        assert got == np.float32(float(product))
    assert same_bits(made, alibi.bias(query, key, slopes, form=form).astype(np.float32))


def test_a_float32_result_does_not_round_the_offset():
    """(1 + 2^-23) (2^24 + 1) is 2^24 + 3 and a little, so 2^24 + 4; with the offset in float32, 2^24, it is 2^24 + 2."""
    slope = np.array([1 + 2.0**-23], np.float32)
    assert slope[0] * np.float32(2**24 + 1) == 2**24 + 2
    assert fast.bias(np.array([0]), np.array([2**24 + 1]), slope, form="signed", dtype=np.float32) == 2**24 + 4


@pytest.mark.parametrize("form", alibi.FORMS)
def test_dtype_and_out(form):
    query, key, slopes = np.arange(3), np.arange(4), some_slopes(2)
    exact = alibi.bias(query, key, slopes, form=form)
    for dtype in FLOATS:
        assert same_bits(fast.bias(query, key, slopes, form=form, dtype=dtype), exact.astype(dtype))
        out = np.full(exact.shape, 7, dtype)
        assert fast.bias(query, key, slopes, form=form, out=out) is out
        assert same_bits(out, exact.astype(dtype))
        wide = np.full((*exact.shape[:-1], 9), 7, dtype)
        fast.bias(query, key, slopes, form=form, out=wide[..., 2:6], threads=3)
        assert same_bits(wide[..., 2:6], exact.astype(dtype))
        assert (np.delete(wide, range(2, 6), axis=-1) == 7).all()
        flipped = np.asfortranarray(np.zeros_like(out))
        assert same_bits(fast.bias(query, key, slopes, form=form, out=flipped), exact.astype(dtype))


@pytest.mark.parametrize("form", ["signed", "absolute"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_the_ends_of_integers(form, dtype):
    """Slope 1 and the offset itself: what fits into float64 is exact, and nothing wraps."""
    low, high = int(np.iinfo(dtype).min) // 2, int(np.iinfo(dtype).max) // 2
    if dtype != np.int64:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    ends = np.array([low, 0, high], dtype)
    made = fast.bias(ends, ends, np.ones(1), form=form)
    for (_, i, j), got in np.ndenumerate(made):
        offset = int(ends[j]) - int(ends[i])
        assert got == float(offset if form == "signed" else -abs(offset))


def test_differences_beyond_int64_are_refused():
    for call in (alibi.bias, fast.bias):
        with pytest.raises(ValueError, match=r"key_positions run from 0 to 0 .* do not fit into int64"):
            call(np.array([-(2**63)]), np.array([0]), np.ones(1), form="absolute")


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
@pytest.mark.parametrize("form", alibi.FORMS)
def test_batched_positions(query_shape, key_shape, form):
    rng, slopes = np.random.default_rng(0), some_slopes(3)
    query, key = rng.integers(-50, 50, query_shape), rng.integers(-50, 50, key_shape)
    expected = alibi.bias(query, key, slopes, form=form)
    for threads in (None, 1, 2, 64):
        assert same_bits(fast.bias(query, key, slopes, form=form, threads=threads), expected)


@pytest.mark.parametrize("form", alibi.FORMS)
def test_memory_layouts(form):
    query, key, slopes = np.arange(12).reshape(3, 4), np.arange(15).reshape(3, 5) % 7, some_slopes(4)
    expected = alibi.bias(query, key, slopes, form=form)
    for change in (np.asfortranarray, lambda x: np.repeat(x, 2, -1)[..., ::2], lambda x: x[..., ::-1].copy()[..., ::-1]):
        assert same_bits(fast.bias(change(query), change(key), change(slopes), form=form, threads=2), expected)
    same = np.broadcast_to(np.int64(3), (3, 5))
    assert same_bits(fast.bias(query, same, slopes, form=form), alibi.bias(query, same, slopes, form=form))
    foreign = query.astype(">i4")
    assert same_bits(fast.bias(foreign, key, slopes, form=form), expected)


def test_out_over_the_inputs_is_refused():
    buffer = np.zeros(40)
    inputs = {"query_positions": np.zeros(2), "key_positions": np.zeros(5), "slopes": np.zeros(2)}
    for name, value in inputs.items():
        part = buffer[20 - len(value) // 2 :][: len(value)]
        arguments = {**inputs, name: part}
        with pytest.raises(ValueError, match=rf"fast\.alibi\.bias: out overlaps {name} in memory"):
            fast.bias(**arguments, form="signed", out=buffer[:20].reshape(2, 2, 5))


def test_two_python_threads_call_at_once():
    positions, slopes, right = np.arange(150), some_slopes(4), []
    expected = {form: alibi.bias(positions, positions, slopes, form=form) for form in alibi.FORMS}

    def call():
        for form in (*alibi.FORMS,) * 7:
            right.append(same_bits(fast.bias(positions, positions, slopes, form=form, threads=2), expected[form]))

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert right == [True] * 63


def test_kernels_equal_their_python_source():
    for kernel in (fast._signed, fast._absolute):
        compiled, source = np.zeros((2, 3, 4)), np.zeros((2, 3, 4))
        arguments = some_slopes(2), np.arange(3), np.arange(4)
        kernel(*arguments, compiled)
        kernel.py_func(*arguments, source)
        assert same_bits(compiled, source)


def test_slopes_are_those_of_the_specification():
    assert fast.slopes is alibi.slopes


QUERY, KEY, SLOPES = np.arange(2), np.arange(3), np.ones(2)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"form": "press"}, ValueError, "form is 'press', expected one of 'signed', 'absolute', 'key'"),
        ({"slopes": [1.0]}, TypeError, "slopes is a list"),
        ({"slopes": SLOPES[None]}, ValueError, r"slopes has shape \(1, 2\), expected \(h,\)"),
        ({"slopes": SLOPES.astype(int)}, TypeError, "the bias would have dtype int64"),
        ({"query_positions": QUERY.astype(np.uint8)}, TypeError, "query_positions has dtype uint8"),
        ({"query_positions": QUERY.astype(object)}, TypeError, "the difference of positions would have dtype object"),
        (
            {"key_positions": KEY.astype(np.float16), "query_positions": QUERY.astype(np.float16)},
            TypeError,
            "would have dtype float16",
        ),
        ({"key_positions": np.array(1)}, ValueError, r"key_positions has shape \(\)"),
        (
            {"query_positions": np.zeros((2, 3)), "key_positions": np.zeros((3, 3))},
            ValueError,
            "the axes before .* must be equal or 1",
        ),
        ({"dtype": np.float16}, TypeError, "the bias would have dtype float16"),
        ({"dtype": np.float32, "out": np.empty((2, 2, 3))}, TypeError, "out has dtype float64 and the result has float32"),
        ({"out": np.empty((2, 3, 2))}, ValueError, r"out has shape \(2, 3, 2\) and the result has \(2, 2, 3\)"),
        ({"out": np.empty((2, 2, 3), int)}, TypeError, "int64"),
        ({"out": [1]}, TypeError, "out is a list"),
        ({"threads": 0}, ValueError, "threads is 0"),
    ],
)
def test_errors(change, error, message):
    arguments = {"query_positions": QUERY, "key_positions": KEY, "slopes": SLOPES, "form": "signed", **change}
    with pytest.raises(error, match=message) as caught:
        fast.bias(**arguments)
    assert str(caught.value).startswith("fast.alibi.bias: ")


@pytest.mark.parametrize(("form", "after"), [("signed", 1), ("absolute", -1)])
def test_a_rule_holds_the_slopes_as_they_are(form, after):
    slopes = some_slopes(3)
    slopes.flags.writeable = False
    no_buckets, before, behind = fast.rule(slopes, form=form)
    assert no_buckets.tolist() == [[0], [0], [0]]
    assert before.tolist() == slopes.tolist()
    assert behind.tolist() == (after * slopes).tolist()
