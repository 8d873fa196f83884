"""Transformer-XL against the four terms of section 3.3 in whole numbers, and the shift against numbers readable by eye."""

from fractions import Fraction

import numpy as np
import pytest

from posref import attention
from posref.relative import transformer_xl

BATCH, HEADS, DIM = 2, 3, 5
SIZES = [(3, 3), (2, 5), (1, 4), (1, 1), (4, 6)]


def whole(seed, *shape):
    return np.random.default_rng(seed).integers(-9, 10, shape)


def readable(n_query, n_key):
    """10 i + distance, distances n_key - 1 .. 0 in the columns."""
    return 10 * np.arange(n_query)[:, None] + np.arange(n_key - 1, -1, -1)


def test_shift_readable_by_eye():
    assert transformer_xl.shift(readable(3, 3)).tolist() == [[0, 0, 0], [11, 10, 0], [22, 21, 20]]
    assert transformer_xl.shift(readable(2, 5)).tolist() == [[3, 2, 1, 0, 0], [14, 13, 12, 11, 10]]


def terms(q, k, vector, u, v):
    """Section 3.3: (a) + (b) + (c) + (d), with `vector(h, distance)` the projected sinusoid; None is undefined."""
    n_query, n_key = q.shape[-2], k.shape[-2]
    out = np.zeros((*q.shape[:-1], n_key), dtype=int)
    for b, h, i, j in np.ndindex(out.shape):
        r = vector(h, i + (n_key - n_query) - j)
        if r is not None:
            x, y = q[b, h, i], k[b, h, j]
            out[b, h, i, j] = sum(
                int(x[t]) * int(y[t]) + int(x[t]) * int(r[t]) + int(u[h, t]) * int(y[t]) + int(v[h, t]) * int(r[t])
                for t in range(q.shape[-1])
            )
    return out


@pytest.fixture(params=SIZES)
def case(request):
    n_query, n_key = request.param
    q, k = whole(1, BATCH, HEADS, n_query, DIM), whole(2, BATCH, HEADS, n_key, DIM)
    return q, k, whole(3, HEADS, DIM), whole(4, HEADS, DIM)


def test_left_padding_is_a_mask():
    """Two keys in front that nobody may see change nothing: distances count from the query."""
    q, k, value, r = (whole(seed, HEADS, 6, DIM) for seed in (7, 8, 9, 10))
    u, v = whole(11, 2, HEADS, DIM)
    alone = transformer_xl.scores(q[:, 2:], k[:, 2:], r[:, 2:], u, v, scale=1 / 64)
    padded = transformer_xl.scores(q, k, r, u, v, scale=1 / 64)
    mask = transformer_xl.visible(6, 6) & (np.arange(6) >= 2)
    got = attention.softmax(padded, mask) @ value
    want = attention.softmax(alone, transformer_xl.visible(4, 4)) @ value[:, 2:]
    # Scores are exact. Either average is off by 2 n + 5 units of 2^-52 (exp 2, sums 2 n + 1, division 1, product 1), |v| <= 9.
    assert np.abs(got[:, 2:] - want).max() <= 2 * (2 * 6 + 5) * 2.0**-52 * 9
    assert (got[:, :2] == 0).all()


def test_dtypes(case):
    q, k, u, v = (x.astype(np.float32) for x in case)
    n_query, n_key = q.shape[-2], k.shape[-2]
    for rows in (n_key, n_query + n_key - 1):
        r = whole(5, HEADS, rows, DIM)
        assert transformer_xl.scores(q, k, r.astype(np.float32), u, v, scale=0.5).dtype == np.float32
        assert transformer_xl.scores(*case[:2], r, *case[2:], scale=0.5).dtype == np.float64


def test_runs_on_objects(case):
    q, k, u, v = case
    third = np.vectorize(lambda n: Fraction(int(n), 3), otypes=[object])
    for rows in (k.shape[-2], q.shape[-2] + k.shape[-2] - 1):
        r = whole(5, HEADS, rows, DIM)
        exact = transformer_xl.scores(*(third(x) for x in (q, k, r, u, v)), scale=Fraction(9))
        assert (exact == transformer_xl.scores(q, k, r, u, v, scale=1)).all()


Q, KEYS, U, V, R = whole(0, 2, 3, 4, 5), whole(1, 2, 3, 6, 5), whole(2, 3, 5), whole(3, 3, 5), whole(4, 3, 6, 5)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"r": R[:, 1:]},
            ValueError,
            r"r has shape \(3, 5, 5\), .* expected n_key = 6 or n_query\+n_key-1 = 9 .*; n_key rows if causal",
        ),
        ({"r": whole(0, 3, 10, 5)}, ValueError, r"r has shape \(3, 10, 5\), .* expected n_key = 6 or n_query\+n_key-1 = 9 "),
        ({"r": R[..., 1:]}, ValueError, r"r has shape .* expected d = 5 "),
        ({"r": R[:2]}, ValueError, r"r has shape \(2, 6, 5\), .* does not broadcast"),
        ({"u": U[:2]}, ValueError, "u has shape"),
        ({"v": V[..., 1:]}, ValueError, r"v has shape .* expected d = 5 "),
        ({"u": U[0, 0]}, ValueError, "u has shape .*at least 1 axes"),
        ({"k": KEYS[..., :3, :]}, ValueError, r"k has shape .* expected at least n_query = 4, .*; the queries are the last"),
        ({"q": Q.tolist()}, TypeError, "q is a list"),
    ],
)
def test_scores_reject(change, error, message):
    with pytest.raises(error, match=message):
        transformer_xl.scores(**({"q": Q, "k": KEYS, "r": R, "u": U, "v": V} | change), scale=1)


def test_the_rest_rejects():
    with pytest.raises(TypeError, match=r"transformer_xl\.shift: x is a list"):
        transformer_xl.shift([[1]])
    with pytest.raises(ValueError, match=r"transformer_xl\.shift: x has shape \(3, 2\), .* expected at least n_query = 3"):
        transformer_xl.shift(np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"transformer_xl\.distances: 3 queries and 2 keys"):
        transformer_xl.distances(3, 2, bidirectional=True)
    with pytest.raises(ValueError, match="n_query is 0"):
        transformer_xl.distances(0, 2, bidirectional=True)
    with pytest.raises(TypeError, match=r"n_key is 2\.5"):
        transformer_xl.visible(1, 2.5)
    with pytest.raises(ValueError, match="clamp_len is -1"):
        transformer_xl.distances(2, 2, bidirectional=True, clamp_len=-1)
