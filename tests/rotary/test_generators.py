"""Generators: a basis by Cayley of the size of a head, and what the body refuses."""

import numpy as np
import pytest

from posref.rotary import generators
from tests.painted import painted


def test_a_basis_by_cayley():
    """numpy's solver is another road, and P of the size of a head is orthogonal."""
    s, one = generators.skew(painted((3, 64, 64), 1)), np.eye(64)
    p = generators.cayley(s)
    # elimination without exchange meets 64 steps of 64 numbers, which stay below the largest row of 1 + S
    bound = 64 * 64 * 2**-52 * np.abs(one + s).sum(axis=-1).max()
    np.testing.assert_allclose(p, np.linalg.solve(one + s, one - s), rtol=0, atol=bound)
    np.testing.assert_allclose(p @ p.swapaxes(-1, -2), np.broadcast_to(one, s.shape), rtol=0, atol=bound)


def test_refused():
    with pytest.raises(ValueError, match=r"rows of x S sum to 25, expected 1 at most; take 5 more"):
        generators.exponential(np.array([50.0]), np.array([[[0.0, 1.0], [-1.0, 0.0]]]), terms=18, halvings=1)
