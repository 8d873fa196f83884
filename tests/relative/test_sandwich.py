"""Sandwich: NeMo's class transcribed, values at d = 128."""

import numpy as np
import pytest

from posref.relative import sandwich


def nemo(n, dim, heads):
    """SandwichRelativePositionEmbedding, in numpy."""
    relative = np.arange(n)[None] - np.arange(n)[:, None]
    terms = [np.cos(relative / 10000 ** (2 * t / dim)) for t in range(1, dim // 2 + 1)]
    bias = sum(terms) - dim / 2
    return np.stack([bias / (8 * a / heads) for a in range(1, heads + 1)])


@pytest.mark.parametrize(("n", "dim", "heads"), [(6, 8, 4), (30, 64, 12)])
def test_nemo(n, dim, heads):
    i = np.arange(n)
    got = sandwich.bias(i, i, sandwich.frequencies(dim), sandwich.slopes(heads))
    # sums of dim / 2 numbers up to 1, whose angles are below 30 and have two roundings
    np.testing.assert_allclose(got, nemo(n, dim, heads), rtol=0, atol=dim * (dim + 60) * 2**-53 * heads / 8)
    assert np.array_equal(sandwich.bias(i[-1:], i, sandwich.frequencies(dim), sandwich.slopes(heads)), got[:, -1:])


def test_far_and_near_at_128_features():
    """At 1000 tokens the first of 12 heads loses 80.08, and the last a twelfth of that."""
    far = sandwich.bias(np.array([1000]), np.array([0]), sandwich.frequencies(128), sandwich.slopes(12))[:, 0, 0]
    assert far[0].round(2) == -80.08
    np.testing.assert_allclose(far, far[0] / np.arange(1, 13), rtol=1e-14)
