"""The compiled ALiBi bias against rational numbers, and its own `dtype`."""

import importlib
import itertools
from fractions import Fraction

import numpy as np
import pytest

from posref.relative import alibi
from tests.fast.bits import same_bits

pytest.importorskip("numba", reason="needs posref[fast]")
fast = importlib.import_module("posref.fast.alibi")

FLOATS = (np.float32, np.float64)
INTEGERS = (np.int8, np.int16, np.int32, np.int64)


def some_slopes(heads, dtype=np.float64):
    """Neither powers of two nor sorted, so that products are rounded."""
    return np.random.default_rng(0).standard_normal(heads).astype(dtype)


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


QUERY, KEY, SLOPES = np.arange(2), np.arange(3), np.ones(2)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"slopes": SLOPES.astype(int)}, TypeError, "the bias would have dtype int64"),
        ({"query_positions": QUERY.astype(object)}, TypeError, "the difference of positions would have dtype object"),
        ({"dtype": np.float16}, TypeError, "the bias would have dtype float16"),
        ({"dtype": np.float32, "out": np.empty((2, 2, 3))}, TypeError, "out has dtype float64 and the result has float32"),
        ({"out": np.empty((2, 2, 3), int)}, TypeError, "int64"),
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
