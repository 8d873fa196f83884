"""PoPE: large numbers, values of released code."""

import numpy as np
import pytest

from posref import attention
from posref.rotary import pope, rope
from tests.painted import painted


def score(q, k, positions, phases, layout):
    w = pope.frequencies(q.shape[-1])
    q = pope.encode(q, *rope.tables(positions, w), layout=layout)
    return attention.scores(q, pope.encode(k, *pope.tables(positions, w, pope.clamp(phases)), layout=layout), scale=1)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_values_that_released_code_printed(layout):
    """x-transformers 2.31.10 in float64, five tokens, two heads of width 4; 12 digits were kept."""
    q, k, phases = painted((2, 5, 4), 2), painted((2, 5, 4), 3), painted((2, 4), 1)
    np.testing.assert_allclose(pope.clamp(phases).ravel()[[0, 4, 7]], [-1.6875, -1.921875, -0.78125], rtol=0, atol=0)
    got = score(q, k, np.arange(5), phases, layout)
    stated = [2.6339002512, 0.837349520763, 2.62031782831]
    np.testing.assert_allclose(got.ravel()[[0, 25, 49]], stated, rtol=1e-11)
    np.testing.assert_allclose(got.sum(), 91.7175460946, rtol=1e-11)


def test_softplus_of_large_numbers():
    x = np.array([-800.0, -40.0, 0.0, 40.0, 800.0])
    np.testing.assert_allclose(pope.softplus(x), [0, 4.248354255291589e-18, np.log(2), 40, 800], rtol=1e-15, atol=1e-17)
    assert (pope.softplus(np.float32(x)) >= 0).all()
    assert pope.softplus(np.float32(x)).dtype == np.float32


def test_phases_of_a_model_in_training():
    """Phases that training drove over an end stay at it; those at the two ends are one angle."""
    q, k = painted((1, 3, 2), 1), painted((1, 3, 2), 2)
    over, at = (score(q, k, np.arange(3), np.array([[a, b]]), "half") for a, b in ((1.5, -9.0), (0.0, -2 * np.pi)))
    assert np.array_equal(over, at)
    np.testing.assert_allclose(at, score(q, k, np.arange(3), np.zeros((1, 2)), "half"), rtol=0, atol=1e-13)
