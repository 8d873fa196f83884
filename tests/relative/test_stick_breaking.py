"""Stick-breaking attention: products against the shipped logarithms, extreme scores, refusals."""

import numpy as np
import pytest

from posref.relative import stick_breaking


def by_products(scores, mask):
    """The definition with products, in floating point: right where no share is close to 0 or 1."""
    shares = np.where(mask, 1 / (1 + np.exp(-scores)), 0)
    weights = np.zeros(scores.shape)
    for *at, j in np.ndindex(scores.shape):
        weights[(*at, j)] = shares[(*at, j)] * np.prod(1 - shares[(*at, slice(j + 1, None))])
    return weights, np.prod(1 - shares, axis=-1)


@pytest.mark.parametrize("diagonal", [-1, 0])
def test_products(diagonal):
    scores = np.random.default_rng(0).normal(size=(2, 3, 20, 20))
    mask = np.tri(20, 20, diagonal, dtype=bool)
    weights, left = by_products(scores, mask)
    # sums of 20 logarithms below 5 make an exponent off by 20 x 100 roundings at most
    np.testing.assert_allclose(stick_breaking.weights(scores, mask), weights, rtol=2000 * 2**-53)
    np.testing.assert_allclose(stick_breaking.remainder(scores, mask), left, rtol=2000 * 2**-53)


def test_scores_of_any_size():
    scores = np.array([[3.0, -1e5, 1e5, -1e5, 0.0]])
    mask = np.ones((1, 5), dtype=bool)
    expected = [[0, 0, 0.5, 0, 0.5]]  # two sums of numbers of the size 1e5 make an exponent
    np.testing.assert_allclose(stick_breaking.weights(scores, mask), expected, rtol=0, atol=4 * 1e5 * 2**-53)
    assert stick_breaking.remainder(scores, mask).tolist() == [0]


def test_the_first_token_sees_nothing():
    mask = np.tri(4, 4, -1, dtype=bool)
    scores = np.random.default_rng(1).normal(size=(4, 4))
    assert stick_breaking.weights(scores, mask)[0].tolist() == [0, 0, 0, 0]
    assert stick_breaking.remainder(scores, mask)[0] == 1


def test_refused():
    scores, mask = np.zeros((2, 3)), np.ones((2, 3), dtype=bool)
    with pytest.raises(ValueError, match=r"stick_breaking\.weights: mask has shape \(2, 4\)"):
        stick_breaking.weights(scores, np.ones((2, 4), dtype=bool))
    with pytest.raises(TypeError, match=r"stick_breaking\.weights: mask has dtype int64"):
        stick_breaking.weights(scores, mask.astype(int))
    with pytest.raises(ValueError, match=r"stick_breaking\.remainder: scores"):
        stick_breaking.remainder(scores + np.nan, mask)
