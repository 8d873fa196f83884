"""PoPE: large numbers, phases at their ends."""

import numpy as np

from posref import attention
from posref.rotary import pope, rope
from tests.painted import painted


def score(q, k, positions, phases, layout):
    w = pope.frequencies(q.shape[-1])
    q = pope.encode(q, *rope.tables(positions, w), layout=layout)
    return attention.scores(q, pope.encode(k, *pope.tables(positions, w, pope.clamp(phases)), layout=layout), scale=1)


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
