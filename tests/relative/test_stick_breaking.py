"""Stick-breaking attention: products against the shipped logarithms, extreme scores."""

import numpy as np

from posref.relative import stick_breaking


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
