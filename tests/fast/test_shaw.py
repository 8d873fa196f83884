"""Compiled scores of Shaw et al. against the specification, bit by bit; values within the error of two orders of a sum."""

import importlib
import itertools
import threading
from fractions import Fraction

import numpy as np
import pytest

from posref import attention, offsets
from posref.relative import shaw

pytest.importorskip("numba", reason="needs posref[fast]")
fast = importlib.import_module("posref.fast.shaw")

FLOATS = (np.float32, np.float64)


def random(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def inputs(n, m, *, reach=3, dim=5, dtype=np.float64, heads=3, table_heads=()):
    q, k = random(2, heads, n, dim, dtype=dtype), random(2, heads, m, dim, dtype=dtype, seed=1)
    table = random(*table_heads, 2 * reach + 1, dim, dtype=dtype, seed=2)
    return q, k, table, offsets.offsets(np.arange(n) + m // 2, np.arange(m))


@pytest.mark.parametrize("variant", shaw.VARIANTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_size(dtype, variant):
    for n, m, reach in itertools.product((0, 1, 2, 3, 33, 100), (0, 1, 5, 34), (0, 1, 9)):
        q, k, table, at = inputs(n, m, reach=reach, dtype=dtype)
        expected = shaw.scores(q, k, table, at, scale=0.3, variant=variant)
        for threads in (None, 1, 2, 7):
            assert same_bits(fast.scores(q, k, table, at, scale=0.3, variant=variant, threads=threads), expected)


def test_entry_by_entry_in_whole_numbers():
    generator = np.random.default_rng(3)
    q, k, table = (generator.integers(-9, 10, shape).astype(float) for shape in ((2, 4, 5), (2, 6, 5), (5, 5)))
    at = generator.integers(-4, 5, (4, 6))
    key = fast.scores(q, k, table, at, scale=0.5)
    both = fast.scores(q, k, table, at, scale=0.5, variant="relative_key_query")
    for h, i, j in np.ndindex(2, 4, 6):
        a = table[min(max(at[i, j], -2), 2) + 2]
        assert key[h, i, j] == 0.5 * (q[h, i] @ (k[h, j] + a))
        assert both[h, i, j] == 0.5 * (q[h, i] @ (k[h, j] + a) + k[h, j] @ a)


@pytest.mark.parametrize("variant", shaw.VARIANTS)
@pytest.mark.usefixtures("cut")
def test_offsets_of_batches_and_heads(variant):
    q, k, table, _ = inputs(7, 6, table_heads=(3,))
    for shape in ((7, 6), (1, 1, 7, 6), (2, 1, 7, 6), (2, 3, 7, 6), (1, 3, 7, 6)):
        at = np.random.default_rng(0).integers(-9, 10, shape)
        expected = shaw.scores(q, k, table, at, scale=0.3, variant=variant)
        for threads in (1, 5):
            assert same_bits(fast.scores(q, k, table, at, scale=0.3, variant=variant, threads=threads), expected)


@pytest.mark.parametrize("variant", shaw.VARIANTS)
@pytest.mark.usefixtures("cut")
def test_leading_axes_broadcast(variant):
    table, at = random(7, 5), np.random.default_rng(0).integers(-9, 10, (4, 6))
    for query, key in (((), ()), ((3,), (1,)), ((1,), (3,)), ((2, 1), (3,)), ((2, 3), ()), ((0,), (0,))):
        q, k = random(*query, 4, 5), random(*key, 6, 5)
        expected = shaw.scores(q, k, table, at, scale=0.3, variant=variant)
        assert same_bits(fast.scores(q, k, table, at, scale=0.3, variant=variant, threads=2), expected)


@pytest.mark.parametrize("variant", shaw.VARIANTS)
@pytest.mark.parametrize("scale", [0.3, np.float32(0.3), np.float64(0.3), 2, np.int64(2)])
def test_dtypes_promote_like_the_specification(scale, variant):
    for first, second, third in itertools.product(FLOATS, repeat=3):
        q, k, table, at = inputs(5, 6)
        q, k, table = q.astype(first), k.astype(second), table.astype(third)
        expected = shaw.scores(q, k, table, at, scale=scale, variant=variant)
        assert same_bits(fast.scores(q, k, table, at, scale=scale, variant=variant), expected)


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


@pytest.mark.parametrize("variant", shaw.VARIANTS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.usefixtures("cut")
def test_memory_layouts(dtype, variant):
    arrays = inputs(9, 8, dtype=dtype)
    changes = (
        np.asfortranarray,
        lambda x: np.repeat(x, 2, -1)[..., ::2],
        lambda x: np.ascontiguousarray(x[..., ::-1])[..., ::-1],
        lambda x: np.broadcast_to(x[..., :1, :], x.shape),
    )
    for change in changes:
        q, k, table, at = (change(x) for x in arrays)
        expected = shaw.scores(q, k, table, at, scale=0.3, variant=variant)
        assert same_bits(fast.scores(q, k, table, at, scale=0.3, variant=variant, threads=2), expected)
        wide = np.full((2, 3, 9, 20), 7, dtype)
        for out in (
            np.empty_like(expected),
            np.asfortranarray(np.empty_like(expected)),
            wide[..., 5:13],
            wide[..., ::-2][..., :8],
        ):
            assert fast.scores(q, k, table, at, scale=0.3, variant=variant, out=out, threads=2) is out
            assert same_bits(out, expected)
    wide = np.full((2, 3, 9, 20), 7, dtype)
    fast.scores(*arrays, scale=0.3, variant=variant, out=wide[..., 5:13])
    assert (np.delete(wide, range(5, 13), axis=-1) == 7).all()


def test_out_over_the_inputs_is_refused():
    buffer = np.zeros(100)
    good = {"q": random(4, 5), "k": random(4, 5), "key_table": random(3, 5), "offsets": np.zeros((4, 4), int)}
    parts = {"q": buffer[4:24], "k": buffer[:20], "key_table": buffer[1:16], "offsets": buffer.view(np.int64)[:16]}
    for name, part in parts.items():
        arguments = {**good, name: part.reshape(good[name].shape)}
        for call in (fast.scores, fast.attend):
            more = {"v": random(4, 4), "value_table": None} if call is fast.attend else {}
            with pytest.raises(ValueError, match=rf"out overlaps {name} in memory"):
                call(**arguments, **more, scale=1.0, out=buffer[:16].reshape(4, 4))


def test_two_python_threads_call_at_once():
    arguments, right = inputs(64, 50), []
    expected = shaw.scores(*arguments, scale=0.3)

    def call():
        for _ in range(20):
            right.append(same_bits(fast.scores(*arguments, scale=0.3, threads=2), expected))

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert right == [True] * 60


def test_kernels_equal_their_python_source():
    content, rows, columns = random(2, 3, 4), random(2, 3, 5), random(2, 4, 5)
    at = np.random.default_rng(0).integers(-4, 5, (3, 4))
    calls = (
        (fast._key, (content, rows, at, 0.3), (2, 3, 4)),
        (fast._key_query, (content, rows, columns, at, 0.3), (2, 3, 4)),
        (fast._sum, (content, at), (2, 3, 5)),
    )
    for kernel, arguments, shape in calls:
        compiled, source = np.zeros(shape), np.zeros(shape)
        kernel(*arguments, compiled)
        kernel.py_func(*arguments, source)
        assert same_bits(compiled, source)


# Values


def gamma(count, dtype):
    """The relative error of a sum of products of `count` roundings: n u / (1 - n u), Higham, Lemma 3.1."""
    u = Fraction(1, 2 ** (24 if dtype == np.float32 else 53))
    return float(count * u / (1 - count * u))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("table_heads", [(), (3,)])
def test_values_within_two_orders_of_a_sum(dtype, table_heads):
    """Both add products w a: the specification m of them, the kernel m weights and then 2k + 1 products."""
    for n, m, reach in itertools.product((1, 5, 40), (1, 6, 130), (0, 2, 20)):
        q, k, key_table, at = inputs(n, m, reach=reach, dtype=dtype)
        v, value_table = random(2, 3, m, 4, dtype=dtype), random(*table_heads, 2 * reach + 1, 4, dtype=dtype, seed=5)
        arguments = (q, k, v, key_table, value_table, at)
        masks = np.random.default_rng(0).random((2, 1, n, m)) < 0.7
        for allowed in (None, masks[0, 0], masks):
            expected = shaw.attend(*arguments, scale=0.3, mask=allowed)
            got = fast.attend(*arguments, scale=0.3, mask=allowed, threads=2)
            assert got.dtype == expected.dtype
            weights = attention.softmax(shaw.scores(q, k, key_table, at, scale=0.3), allowed)
            size = (weights[..., None, :] @ np.abs(shaw.embed(value_table, at)))[..., 0, :].astype(np.float64)
            error = (gamma(m, dtype) + gamma(m + 2 * reach + 1, dtype)) * size * (1 + 2 * gamma(m, dtype))
            error = error + np.spacing(np.abs(expected))  # the sum of both terms is rounded in either
            assert (np.abs(got.astype(np.float64) - expected) <= error).all()


@pytest.mark.parametrize("variant", shaw.VARIANTS)
def test_without_a_value_table_the_specification_bit_by_bit(variant):
    q, k, table, at = inputs(9, 8)
    v = random(2, 3, 8, 4)
    expected = shaw.attend(q, k, v, table, None, at, scale=0.3, variant=variant)
    assert same_bits(fast.attend(q, k, v, table, None, at, scale=0.3, variant=variant), expected)
    for out in (np.empty_like(expected), np.asfortranarray(np.empty_like(expected))):
        assert fast.attend(q, k, v, table, None, at, scale=0.3, variant=variant, out=out) is out
        assert same_bits(out, expected)


def test_threads_are_handed_on(monkeypatch):
    given = []
    monkeypatch.setattr(fast, "scores", lambda *a, threads, **more: given.append(threads) or shaw.scores(*a, **more))
    q, k, table, at = inputs(9, 8)
    fast.attend(q, k, random(2, 3, 8, 4), table, None, at, scale=0.3, threads=3)
    assert given == [3]


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


Q, K, TABLE, AT = inputs(4, 6)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"variant": "query"}, ValueError, "variant is 'query', expected one of 'relative_key', 'relative_key_query'"),
        ({"q": Q.tolist()}, TypeError, "q is a list"),
        ({"k": K[..., :4]}, ValueError, r"k has shape .* expected d = 5 .*, since q has"),
        ({"k": K[:, :2]}, ValueError, "the axes before .* must be equal or 1"),
        ({"key_table": TABLE[1:]}, ValueError, "key_table has shape .* an odd number of rows"),
        ({"key_table": TABLE[:, 1:]}, ValueError, r"key_table has shape \(7, 4\), .* expected d = 5 "),
        ({"offsets": AT[1:]}, ValueError, r"offsets has shape \(3, 6\), .* expected n_query = 4 "),
        ({"offsets": AT[None]}, ValueError, r"offsets has shape \(1, 4, 6\)"),
        ({"offsets": AT.astype(np.uint16)}, TypeError, "offsets has dtype uint16, expected signed integers"),
        ({"offsets": AT.astype(object)}, TypeError, "offsets has dtype object"),
        ({"scale": np.ones(3)}, TypeError, "scale is .*, expected one number"),
        ({"scale": np.nan}, ValueError, "scale is nan"),
        ({"scale": 1j}, TypeError, "the result would have dtype complex128"),
        ({"q": Q.astype(np.float16), "k": K.astype(np.float16)}, TypeError, "a term would have dtype float16"),
        ({"q": Q.astype(int), "k": K.astype(int)}, TypeError, "a term would have dtype int64"),
        ({"out": np.empty((2, 3, 6, 4))}, ValueError, r"out has shape \(2, 3, 6, 4\) and the result has \(2, 3, 4, 6\)"),
        ({"out": np.empty((2, 3, 4, 6), np.float32)}, TypeError, "out has dtype float32 and the result has float64"),
        ({"threads": 0}, ValueError, "threads is 0"),
    ],
)
def test_errors(change, error, message):
    arguments = {"q": Q, "k": K, "key_table": TABLE, "offsets": AT, "scale": 1.0, **change}
    with pytest.raises(error, match=message) as caught:
        fast.scores(**arguments)
    assert str(caught.value).startswith("fast.shaw.scores: ")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"v": random(2, 3, 5, 4)}, ValueError, r"v has shape .* expected n_key = 6 "),
        ({"value_table": random(6, 4)}, ValueError, "value_table has shape"),
        ({"value_table": random(7, 3)}, ValueError, r"value_table has shape \(7, 3\), .* expected d_v = 4 "),
        ({"out": np.empty((2, 3, 4, 3))}, ValueError, r"out has shape \(2, 3, 4, 3\) and the result has \(2, 3, 4, 4\)"),
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
