"""FIRE: TAPE's module transcribed, sampled positions."""

import numpy as np
import pytest

from posref.relative import fire
from tests.painted import painted


def tape(n, w_1, b_1, w_2, b_2, c, length, multiplier, eps):
    """models/llama/fire.py, in numpy and float64: positions 0 .. n - 1."""
    distance = np.arange(n)[:, None] - np.arange(n)[None]
    threshold = abs(multiplier * length)
    normalizer = np.maximum(np.arange(n), threshold)[:, None]
    x = np.log(np.abs(c * distance) + 1) / (np.log(np.abs(c * normalizer) + 1) + eps)
    return np.transpose(np.maximum(x[..., None] @ w_1[None] + b_1, 0) @ w_2 + b_2, (2, 0, 1))


@pytest.mark.parametrize(("length", "multiplier"), [(512, 1.0), (3, -1.0), (8, 0.5)])
def test_tape(length, multiplier):
    w_1, b_1, w_2, b_2 = painted((32,), 1), painted((32,), 2), painted((32, 2), 4), painted((2,), 6)
    i = np.arange(20)
    x = fire.progress(i, i, c=0.1, threshold=abs(multiplier * length), eps=1e-6)
    expected = tape(20, w_1, b_1, w_2, b_2, 0.1, length, multiplier, 1e-6)
    # two logarithms and a quotient below 4, then sums of 32 products below 16
    np.testing.assert_allclose(fire.network(x, w_1, b_1, w_2, b_2), expected, rtol=0, atol=32 * 32 * 16 * 2**-53)
    last = fire.progress(i[-1:], i, c=0.1, threshold=abs(multiplier * length), eps=1e-6)
    assert np.array_equal(last, x[-1:])


def test_sampled_positions_have_their_own_distances():
    sampled = np.array([2, 3, 11, 40])
    x = fire.progress(sampled, sampled, c=1.0, threshold=1.0, eps=0.0)
    np.testing.assert_allclose(x[3], np.log([39, 38, 30, 1]) / np.log(41), rtol=1e-14)
