"""Compiled values of Shaw et al. within the error of two orders of a sum, and offsets at the ends of integers."""

import importlib
import itertools

import numpy as np
import pytest

from posref import offsets
from posref.relative import shaw
from tests.fast.bits import random, same_bits

pytest.importorskip("numba", reason="needs posref[fast]")
fast = importlib.import_module("posref.fast.shaw")
about = importlib.import_module("proofs.fast.shaw")

FLOATS = (np.float32, np.float64)


def inputs(n, m, *, reach=3, dim=5, dtype=np.float64, heads=3, table_heads=()):
    q, k = random(2, heads, n, dim, dtype=dtype), random(2, heads, m, dim, dtype=dtype, seed=1)
    table = random(*table_heads, 2 * reach + 1, dim, dtype=dtype, seed=2)
    return q, k, table, offsets.offsets(np.arange(n) + m // 2, np.arange(m))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_extreme_offsets(dtype):
    ends = np.iinfo(dtype)
    at = np.array([[ends.min, -1, 0, 1, ends.max]] * 2, dtype)
    q, k = random(2, 2, 3), random(2, 5, 3)
    for reach in (0, 2, 100, 200):
        table = random(2 * reach + 1, 3)
        rows = [min(max(int(o), -reach), reach) + reach for o in at[0]]
        expected = 0.5 * (q @ np.swapaxes(k, -1, -2) + (q @ table.T)[..., rows])
        assert same_bits(fast.scores(q, k, table, at, scale=0.5), expected)
        assert same_bits(shaw.scores(q, k, table, at, scale=0.5), expected)


@pytest.mark.parametrize(
    ("variant", "products"), [("relative_key", [(0, 1), (0, 2)]), ("relative_key_query", [(0, 1), (0, 2), (1, 2)])]
)
def test_a_product_of_two_halves_is_refused(variant, products):
    """Also if a third array is wider; one half in a product is as good as any other float."""
    arrays, at = (random(1, 3), random(1, 3, seed=1), random(5, 3, seed=2)), np.zeros((1, 1), int)
    for dtypes in itertools.product((np.float16, np.float64), repeat=3):
        given = [x.astype(dtype) for x, dtype in zip(arrays, dtypes, strict=True)]
        if any(given[a].dtype == given[b].dtype == np.float16 for a, b in products):
            with pytest.raises(TypeError, match="a term would have dtype float16"):
                fast.scores(*given, at, scale=0.5, variant=variant)
        else:
            expected = shaw.scores(*given, at, scale=0.5, variant=variant)
            assert same_bits(fast.scores(*given, at, scale=0.5, variant=variant), expected)


# Values


@pytest.mark.parametrize(("dtype", "table_heads"), [*zip(FLOATS, ((), (3,)), strict=True)])
def test_values_within_two_orders_of_a_sum(dtype, table_heads):
    for n, m, reach in itertools.product((1, 5, 40), (1, 6, 130), (0, 2, 20)):
        q, k, key_table, at = inputs(n, m, reach=reach, dtype=dtype)
        v, value_table = random(2, 3, m, 4, dtype=dtype), random(*table_heads, 2 * reach + 1, 4, dtype=dtype, seed=5)
        given = {"q": q, "k": k, "v": v, "key_table": key_table, "value_table": value_table, "offsets": at, "scale": 0.3}
        masks = np.random.default_rng(0).random((2, 1, n, m)) < 0.7
        for allowed in (None, masks[0, 0], masks):
            ((expected, error),) = about.two_orders_of_a_sum(given | {"mask": allowed}, dtype)
            got = fast.attend(**given, mask=allowed, threads=2)
            assert got.dtype == dtype
            assert (np.abs(got.astype(np.float64) - expected) <= error).all()


def test_values_in_whole_numbers():
    """Weights of 1/4 each: every sum is exact."""
    q, k = np.zeros((2, 3, 5)), np.zeros((2, 4, 5))
    v, table = np.arange(16.0).reshape(2, 4, 2), np.arange(10.0).reshape(5, 2)
    at = np.array([[-3, -1, 0, 5], [2, 2, 2, 1], [0, 0, -9, 9]])
    out = np.full((2, 3, 2), 7.0)
    fast.attend(q, k, v, np.zeros((1, 5)), table, at, scale=1.0, out=out)
    for h, i in np.ndindex(2, 3):
        rows = [min(max(o, -2), 2) + 2 for o in at[i].tolist()]
        assert out[h, i].tolist() == ((v[h] + table[rows]).sum(axis=0) / 4).tolist()


def test_attention_over_nothing():
    q, k, table, at = inputs(3, 0)
    got = fast.attend(q, k, np.zeros((2, 3, 0, 4)), table, random(7, 4), at, scale=1.0)
    assert same_bits(got, np.zeros((2, 3, 3, 4)))


def test_attention_of_one_weight():
    q, k, table, at = (x[0] if x.ndim > 2 else x for x in inputs(1, 1, heads=1))
    v, value_table = random(1, 1, 4), random(7, 4, seed=1)
    assert same_bits(fast.attend(q, k, v, table, value_table, at, scale=1.0), v + value_table[at[0, 0] + 3])


Q, K, TABLE, AT = inputs(4, 6)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"value_table": random(6, 4)}, ValueError, "value_table has shape"),
        ({"value_table": random(7, 3)}, ValueError, r"value_table has shape \(7, 3\), .* expected d_v = 4 "),
    ],
)
def test_errors_of_attend(change, error, message):
    arguments = {
        "q": Q,
        "k": K,
        "v": random(2, 3, 6, 4),
        "key_table": TABLE,
        "value_table": random(7, 4),
        "offsets": AT,
        **change,
    }
    with pytest.raises(error, match=message) as caught:
        fast.attend(**arguments, scale=1.0)
    assert str(caught.value).startswith("fast.shaw.attend: ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": 1j}, "scale is 1j, expected one number"),
        ({"q": Q.astype(int), "k": K.astype(int)}, "a term would have dtype int64"),
    ],
)
def test_dtypes_that_no_kernel_has(change, message):
    with pytest.raises(TypeError, match=rf"^fast\.shaw\.scores: {message}"):
        fast.scores(**{"q": Q, "k": K, "key_table": TABLE, "offsets": AT, "scale": 1.0, **change})
