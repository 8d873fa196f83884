"""Compiled scores of DeBERTa against the specification, bit by bit, and against Eq. (4) in whole numbers."""

import importlib
import itertools
import threading

import numpy as np
import pytest

from posref import offsets
from posref.relative import deberta

pytest.importorskip("numba", reason="needs posref[fast]")
fast = importlib.import_module("posref.fast.deberta")

FLOATS = (np.float32, np.float64)
TERMS = ((True, True), (True, False), (False, True), (False, False))


def random(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def inputs(n, m, *, span=3, span_key=None, dim=5, heads=3, dtype=np.float64):
    q, k = random(2, heads, n, dim, dtype=dtype), random(2, heads, m, dim, dtype=dtype, seed=1)
    q_r, k_r = (
        random(heads, 2 * (span_key or span), dim, dtype=dtype, seed=2),
        random(heads, 2 * span, dim, dtype=dtype, seed=3),
    )
    return q, k, q_r, k_r, offsets.offsets(np.arange(n) + m // 2, np.arange(m))


def only(terms, q_r, k_r):
    return q_r if terms[0] else None, k_r if terms[1] else None


@pytest.mark.parametrize("convention", deberta.CONVENTIONS)
@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_size(dtype, terms, convention):
    for n, m, span, span_key in itertools.product((0, 1, 3, 33), (0, 1, 5, 34), (1, 9), (1, 4)):
        q, k, q_r, k_r, at = inputs(n, m, span=span, span_key=span_key, dtype=dtype)
        arguments = (q, k, *only(terms, q_r, k_r), at)
        expected = deberta.scores(*arguments, scale=0.3, convention=convention)
        for threads in (None, 1, 2, 7):
            assert same_bits(fast.scores(*arguments, scale=0.3, convention=convention, threads=threads), expected)


def delta(i, j, span):
    """Eq. (3), case by case."""
    return 0 if i - j <= -span else 2 * span - 1 if i - j >= span else i - j + span


@pytest.mark.parametrize("convention", deberta.CONVENTIONS)
def test_entry_by_entry_in_whole_numbers(convention):
    generator = np.random.default_rng(3)
    shapes = ((2, 4, 5), (2, 6, 5), (2, 6, 5), (2, 4, 5))
    q, k, q_r, k_r = (generator.integers(-9, 10, shape).astype(float) for shape in shapes)
    made = fast.scores(q, k, q_r, k_r, offsets.offsets(np.arange(4), np.arange(6)), scale=0.5, convention=convention)
    for h, i, j in np.ndindex(2, 4, 6):
        second = delta(j, i, 3) if convention == "paper" else delta(i, j, 3)
        assert made[h, i, j] == 0.5 * (q[h, i] @ k[h, j] + q[h, i] @ k_r[h, delta(i, j, 2)] + k[h, j] @ q_r[h, second])


@pytest.mark.parametrize("convention", deberta.CONVENTIONS)
@pytest.mark.parametrize("terms", TERMS[:3])
@pytest.mark.usefixtures("cut")
def test_offsets_of_batches_and_heads(terms, convention):
    q, k, q_r, k_r, _ = inputs(7, 6)
    for shape in ((7, 6), (1, 1, 7, 6), (2, 1, 7, 6), (2, 3, 7, 6), (1, 3, 7, 6)):
        arguments = (q, k, *only(terms, q_r, k_r), np.random.default_rng(0).integers(-9, 10, shape))
        expected = deberta.scores(*arguments, scale=0.3, convention=convention)
        for threads in (1, 5):
            assert same_bits(fast.scores(*arguments, scale=0.3, convention=convention, threads=threads), expected)


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.usefixtures("cut")
def test_leading_axes_broadcast(terms):
    cases = (
        ((3,), (1,), (3,), (4, 6)),
        ((1,), (3,), (1,), (4, 6)),
        ((2, 1), (2, 3), (3,), (4, 6)),
        ((1, 3), (1, 3), (3,), (2, 1, 4, 6)),
        ((2, 3), (3,), (2, 3), (4, 6)),
        ((0,), (0,), (1,), (4, 6)),
    )
    for query, key, head, shape in cases:
        q_r, k_r = random(*head, 6, 5, seed=1), random(*head, 4, 5, seed=2)
        at = np.random.default_rng(0).integers(-9, 10, shape)
        arguments = (random(*query, 4, 5), random(*key, 6, 5), *only(terms, q_r, k_r), at)
        expected = deberta.scores(*arguments, scale=0.3, convention="paper")
        assert same_bits(fast.scores(*arguments, scale=0.3, convention="paper", threads=2), expected)


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("scale", [0.3, np.float32(0.3), np.float64(0.3), 2])
def test_dtypes_promote_like_the_specification(scale, terms):
    q, k, q_r, k_r, at = inputs(3, 4)
    for a, b, c, d in itertools.product(FLOATS, repeat=4):
        arguments = (q.astype(a), k.astype(b), *only(terms, q_r.astype(c), k_r.astype(d)), at)
        expected = deberta.scores(*arguments, scale=scale, convention="released")
        assert same_bits(fast.scores(*arguments, scale=scale, convention="released"), expected)


@pytest.mark.parametrize("convention", deberta.CONVENTIONS)
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_extreme_offsets(dtype, convention):
    ends = np.iinfo(dtype)
    at = np.array([[ends.min, -1, 0, 1, ends.max]] * 2, dtype)
    q, k = random(1, 2, 3), random(1, 5, 3)
    for span in (1, 2, 100, 200):
        q_r, k_r = random(1, 2 * span, 3), random(1, 2 * span, 3, seed=1)
        made = fast.scores(q, k, q_r, k_r, at, scale=0.5, convention=convention)
        by_query, by_key = (q @ np.swapaxes(k_r, -1, -2))[0], (k @ np.swapaxes(q_r, -1, -2))[0]
        for i, j in np.ndindex(2, 5):
            first = delta(0, int(at[i, j]), span)
            second = delta(int(at[i, j]), 0, span) if convention == "paper" else first
            content = (q @ np.swapaxes(k, -1, -2))[0, i, j]
            assert made[0, i, j] == 0.5 * (content + by_query[i, first] + by_key[j, second])
        assert same_bits(made, deberta.scores(q, k, q_r, k_r, at, scale=0.5, convention=convention))


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.usefixtures("cut")
def test_memory_layouts(dtype, terms):
    arrays = inputs(9, 8, dtype=dtype)
    changes = (
        np.asfortranarray,
        lambda x: np.repeat(x, 2, -1)[..., ::2],
        lambda x: np.ascontiguousarray(x[..., ::-1])[..., ::-1],
        lambda x: np.broadcast_to(x[..., :1, :], x.shape),
    )
    for change in changes:
        q, k, q_r, k_r, at = (change(x) for x in arrays)
        arguments = (q, k, *only(terms, q_r, k_r), at)
        expected = deberta.scores(*arguments, scale=0.3, convention="released")
        assert same_bits(fast.scores(*arguments, scale=0.3, convention="released", threads=2), expected)
        wide = np.full((2, 3, 9, 20), 7, dtype)
        for out in (
            np.empty_like(expected),
            np.asfortranarray(np.empty_like(expected)),
            wide[..., 5:13],
            wide[..., ::-2][..., :8],
        ):
            assert fast.scores(*arguments, scale=0.3, convention="released", out=out, threads=2) is out
            assert same_bits(out, expected)
    wide = np.full((2, 3, 9, 20), 7, dtype)
    fast.scores(*arrays, scale=0.3, convention="paper", out=wide[..., 5:13])
    assert (np.delete(wide, range(5, 13), axis=-1) == 7).all()


def test_out_over_the_inputs_is_refused():
    good = {
        "q": random(1, 4, 5),
        "k": random(1, 4, 5),
        "q_r": random(1, 2, 5),
        "k_r": random(1, 2, 5),
        "offsets": np.zeros((4, 4), int),
    }
    buffer = np.zeros(40)
    for name, value in good.items():
        part = buffer.view(value.dtype)[3 : 3 + value.size].reshape(value.shape)
        with pytest.raises(ValueError, match=rf"fast\.deberta\.scores: out overlaps {name} in memory"):
            fast.scores(**{**good, name: part}, scale=1.0, convention="paper", out=buffer[:16].reshape(1, 4, 4))


def test_two_python_threads_call_at_once():
    arguments, right = inputs(64, 50), []
    expected = deberta.scores(*arguments, scale=0.3, convention="paper")

    def call():
        for _ in range(20):
            right.append(same_bits(fast.scores(*arguments, scale=0.3, convention="paper", threads=2), expected))

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert right == [True] * 60


def test_kernels_equal_their_python_source():
    content, rows, columns = random(2, 3, 4), random(2, 3, 6), random(2, 4, 8)
    at = np.random.default_rng(0).integers(-6, 7, (3, 4))
    calls = (
        (fast._both, (content, rows, columns, at, -4, 1, 0.3)),
        (fast._by_query, (content, rows, at, 0.3)),
        (fast._by_key, (content, columns, at, -3, -1, 0.3)),
    )
    for kernel, arguments in calls:
        compiled, source = np.zeros((2, 3, 4)), np.zeros((2, 3, 4))
        kernel(*arguments, compiled)
        kernel.py_func(*arguments, source)
        assert same_bits(compiled, source)


def test_log_bucket_is_that_of_the_specification():
    assert fast.log_bucket is deberta.log_bucket


Q, K, Q_R, K_R, AT = inputs(4, 6)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"convention": "code"}, ValueError, "convention is 'code', expected one of 'paper', 'released'"),
        ({"q": Q.tolist()}, TypeError, "q is a list"),
        ({"q": Q[0, 0, 0]}, ValueError, r"q has shape \(5,\), expected at least 2 axes"),
        ({"k": K[..., :4]}, ValueError, r"k has shape .* expected d = 5 .*, since q has shape"),
        ({"k": K[:, :2]}, ValueError, "the axes before .* must be equal or 1"),
        ({"k_r": K_R[:, 1:]}, ValueError, r"k_r has shape .* expected an even number"),
        ({"q_r": Q_R[:, :0]}, ValueError, r"q_r has shape .* its axis -2 is 0, expected an even number"),
        ({"q_r": Q_R[..., 1:]}, ValueError, r"q_r has shape .* expected d = 5 "),
        ({"q_r": Q_R[:2]}, ValueError, r"q has shape .* and q_r \(2, 6, 5\)"),
        ({"offsets": AT[1:]}, ValueError, r"offsets has shape \(3, 6\), .* expected n_query = 4"),
        ({"offsets": AT[None]}, ValueError, r"offsets has shape \(1, 4, 6\), .* does not broadcast"),
        ({"offsets": AT.astype(np.uint8)}, TypeError, "offsets has dtype uint8, expected signed integers"),
        ({"offsets": AT.astype(object)}, TypeError, "offsets has dtype object"),
        ({"scale": np.ones(3)}, TypeError, "scale is .*, expected one number"),
        ({"q": Q.astype(np.float16), "k": K.astype(np.float16)}, TypeError, "would have dtype float16"),
        ({"out": np.empty((2, 3, 6, 4))}, ValueError, r"out has shape \(2, 3, 6, 4\) and the result has \(2, 3, 4, 6\)"),
        ({"out": np.empty((2, 3, 4, 6), np.float32)}, TypeError, "out has dtype float32 and the result has float64"),
        ({"threads": 0}, ValueError, "threads is 0"),
    ],
)
def test_errors(change, error, message):
    arguments = {"q": Q, "k": K, "q_r": Q_R, "k_r": K_R, "offsets": AT, "scale": 1.0, "convention": "paper", **change}
    with pytest.raises(error, match=message) as caught:
        fast.scores(**arguments)
    assert str(caught.value).startswith("fast.deberta.scores: ")
