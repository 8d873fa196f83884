"""Transformer-XL: the shift in numbers readable by eye, left padding as a mask, what the body refuses."""

import numpy as np
import pytest

from posref import attention
from posref.relative import transformer_xl

BATCH, HEADS, DIM = 2, 3, 5


def whole(seed, *shape):
    return np.random.default_rng(seed).integers(-9, 10, shape)


def readable(n_query, n_key):
    """10 i + distance, distances n_key - 1 .. 0 in the columns."""
    return 10 * np.arange(n_query)[:, None] + np.arange(n_key - 1, -1, -1)


def test_shift_readable_by_eye():
    assert transformer_xl.shift(readable(3, 3)).tolist() == [[0, 0, 0], [11, 10, 0], [22, 21, 20]]
    assert transformer_xl.shift(readable(2, 5)).tolist() == [[3, 2, 1, 0, 0], [14, 13, 12, 11, 10]]


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


def test_the_rest_rejects():
    with pytest.raises(ValueError, match=r"transformer_xl\.distances: 3 queries and 2 keys"):
        transformer_xl.distances(3, 2, bidirectional=True)
