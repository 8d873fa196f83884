"""Compiled scores of Transformer-XL against the specification, bit by bit, and against the four terms in whole numbers."""

import importlib
import itertools
import threading

import numpy as np
import pytest

from posref.relative import transformer_xl

pytest.importorskip("numba", reason="needs posref[fast]")
fast = importlib.import_module("posref.fast.transformer_xl")

FLOATS = (np.float32, np.float64)
FORMS = ("causal", "bidirectional")


def random(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def rows(form, n, m):
    return m if form == "causal" else n + m - 1


def inputs(form, n, m, *, dim=5, heads=3, dtype=np.float64):
    q, k = random(2, heads, n, dim, dtype=dtype), random(2, heads, m, dim, dtype=dtype, seed=1)
    r = random(heads, rows(form, n, m), dim, dtype=dtype, seed=2)
    return q, k, r, random(heads, dim, dtype=dtype, seed=3), random(heads, dim, dtype=dtype, seed=4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_size(dtype, form):
    for n, m in itertools.product((1, 2, 3, 33, 100), (1, 2, 5, 34, 100, 131)):
        if n <= m:
            arguments = inputs(form, n, m, dtype=dtype)
            expected = transformer_xl.scores(*arguments, scale=0.3)
            for threads in (None, 1, 2, 7):
                assert same_bits(fast.scores(*arguments, scale=0.3, threads=threads), expected)


@pytest.mark.parametrize("form", FORMS)
def test_four_terms_in_whole_numbers(form):
    generator = np.random.default_rng(3)
    n, m = 4, 6
    shapes = ((2, n, 5), (2, m, 5), (2, rows(form, n, m), 5), (2, 5), (2, 5))
    q, k, r, u, v = (generator.integers(-9, 10, shape).astype(float) for shape in shapes)
    made = fast.scores(q, k, r, u, v, scale=0.5)
    for h, i, j in np.ndindex(2, n, m):
        distance = i + m - n - j
        if form == "causal" and distance < 0:
            assert made[h, i, j] == 0
        else:
            row = r[h, m - 1 - distance]
            assert made[h, i, j] == 0.5 * (q[h, i] @ k[h, j] + q[h, i] @ row + u[h] @ k[h, j] + v[h] @ row)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.usefixtures("cut")
def test_leading_axes_broadcast(form):
    cases = (
        ((3,), (1,), (), (3,)),
        ((1,), (3,), (1,), (1,)),
        ((2, 1), (3,), (), (2, 1)),
        ((2, 3), (2, 3), (3,), (2, 3)),
        ((2, 3), (3,), (2, 3), (3,)),
        ((0,), (0,), (), (1,)),
    )
    for query, key, distance, head in cases:
        q, k, r = random(*query, 4, 5), random(*key, 6, 5), random(*distance, rows(form, 4, 6), 5)
        arguments = (q, k, r, random(*head, 5), random(*head, 5, seed=7))
        expected = transformer_xl.scores(*arguments, scale=0.3)
        assert same_bits(fast.scores(*arguments, scale=0.3, threads=2), expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [0.3, np.float32(0.3), np.float64(0.3), 2])
def test_dtypes_promote_like_the_specification(scale, form):
    for dtypes in itertools.product(FLOATS, repeat=5):
        arguments = [x.astype(dtype) for x, dtype in zip(inputs(form, 3, 4, heads=1), dtypes, strict=True)]
        assert same_bits(fast.scores(*arguments, scale=scale), transformer_xl.scores(*arguments, scale=scale))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.usefixtures("cut")
def test_memory_layouts(dtype, form):
    arrays = inputs(form, 7, 8, dtype=dtype)
    changes = (
        np.asfortranarray,
        lambda x: np.repeat(x, 2, -1)[..., ::2],
        lambda x: np.ascontiguousarray(x[..., ::-1])[..., ::-1],
        lambda x: np.broadcast_to(x[..., :1, :], x.shape),
    )
    for change in changes:
        arguments = [change(x) for x in arrays]
        expected = transformer_xl.scores(*arguments, scale=0.3)
        assert same_bits(fast.scores(*arguments, scale=0.3, threads=2), expected)
        wide = np.full((2, 3, 7, 20), 7, dtype)
        for out in (
            np.empty_like(expected),
            np.asfortranarray(np.empty_like(expected)),
            wide[..., 5:13],
            wide[..., ::-2][..., :8],
        ):
            assert fast.scores(*arguments, scale=0.3, out=out, threads=2) is out
            assert same_bits(out, expected)
    wide = np.full((2, 3, 7, 20), 7, dtype)
    fast.scores(*arrays, scale=0.3, out=wide[..., 5:13])
    assert (np.delete(wide, range(5, 13), axis=-1) == 7).all()


def test_out_over_the_inputs_is_refused():
    good = dict(zip("qkruv", (x[0] if x.ndim == 4 else x for x in inputs("causal", 2, 4, heads=1)), strict=True))
    buffer = np.zeros(40)
    for name, value in good.items():
        arguments = {**good, name: buffer[1 : 1 + value.size].reshape(value.shape)}
        with pytest.raises(ValueError, match=rf"fast\.transformer_xl\.scores: out overlaps {name} in memory"):
            fast.scores(**arguments, scale=1.0, out=buffer[:8].reshape(1, 2, 4))


def test_two_python_threads_call_at_once():
    arguments, right = inputs("causal", 50, 64), []
    expected = transformer_xl.scores(*arguments, scale=0.3)

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
    content = random(2, 3, 4)
    for kernel, position in ((fast._causal, random(2, 3, 4)), (fast._bidirectional, random(2, 3, 7))):
        compiled, source = np.full(content.shape, 7.0), np.full(content.shape, 7.0)
        arguments = (content, position[..., :6], 0, 0.3)
        kernel(*arguments, compiled)
        kernel.py_func(*arguments, source)
        assert same_bits(compiled, source)


def test_the_rest_is_the_specification():
    for name in ("distances", "embeddings", "visible"):
        assert getattr(fast, name) is getattr(transformer_xl, name)


Q, K, R, U, V = inputs("causal", 4, 6)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"q": Q.tolist()}, TypeError, "q is a list"),
        ({"u": U[0, 0]}, ValueError, "u has shape .*at least 1 axes"),
        ({"u": U[:2]}, ValueError, "u has shape"),
        ({"v": V[:, 1:]}, ValueError, r"v has shape .* expected d = 5 "),
        ({"k": K[:, :2]}, ValueError, "the axes before .* must be equal or 1"),
        ({"r": R[:2]}, ValueError, r"r has shape \(2, 6, 5\), .* does not broadcast"),
        ({"r": R[:, 1:]}, ValueError, r"r has shape \(3, 5, 5\), .* expected n_key = 6 or n_query\+n_key-1 = 9 "),
        ({"k": K[:, :, :3], "r": R[:, :3]}, ValueError, r"k has shape .* expected at least n_query = 4, since q has"),
        ({"scale": np.ones(3)}, TypeError, "scale is .*, expected one number"),
        (
            {"q": Q.astype(np.float16), "u": U.astype(np.float16), "k": K.astype(np.float16)},
            TypeError,
            "would have dtype float16",
        ),
        ({"out": np.empty((2, 3, 6, 4))}, ValueError, r"out has shape \(2, 3, 6, 4\) and the result has \(2, 3, 4, 6\)"),
        ({"out": np.empty((2, 3, 4, 6), np.float32)}, TypeError, "out has dtype float32 and the result has float64"),
        ({"threads": 0}, ValueError, "threads is 0"),
    ],
)
def test_errors(change, error, message):
    arguments = {"q": Q, "k": K, "r": R, "u": U, "v": V, "scale": 1.0, **change}
    with pytest.raises(error, match=message) as caught:
        fast.scores(**arguments)
    assert str(caught.value).startswith("fast.transformer_xl.scores: ")
