"""Generators: the exponential against other roads, Cayley's basis, timm's RoPE-Mixed, what the body refuses."""

from statistics import NormalDist

import numpy as np
import pytest

from posref.rotary import generators, rope
from tests.painted import painted

EXACT = {"terms": 18, "halvings": 8}


def by_eigenvectors(coordinates, made):
    """exp of a skew matrix from the eigenvectors of i S, which is Hermitian."""
    values, vectors = np.linalg.eigh(1j * np.tensordot(coordinates, made, 1))
    return (vectors * np.exp(-1j * values)) @ vectors.conj().T


def test_exponential_by_eigenvectors():
    made = generators.skew(painted((2, 6, 6), 1))
    for coordinates in painted((7, 2), 2) / 2:
        got, stated = generators.exponential(coordinates, made, **EXACT), by_eigenvectors(coordinates, made)
        # 2^8 squarings of matrices of length 1, with 6 sums of 6 products each
        np.testing.assert_allclose(got, stated, rtol=0, atol=256 * 36 * 6 * 2**-53)
        np.testing.assert_allclose(got @ got.T, np.eye(6), rtol=0, atol=256 * 36 * 6 * 2**-53)


def test_a_basis_by_cayley():
    """numpy's solver is another road, and P of the size of a head is orthogonal."""
    s, one = generators.skew(painted((3, 64, 64), 1)), np.eye(64)
    p = generators.cayley(s)
    # elimination without exchange meets 64 steps of 64 numbers, which stay below the largest row of 1 + S
    bound = 64 * 64 * 2**-52 * np.abs(one + s).sum(axis=-1).max()
    np.testing.assert_allclose(p, np.linalg.solve(one + s, one - s), rtol=0, atol=bound)
    np.testing.assert_allclose(p @ p.swapaxes(-1, -2), np.broadcast_to(one, s.shape), rtol=0, atol=bound)


def golden_gate(heads, pairs, axes):
    """Directions of golden gate RoPE, one for each head and pair: normal quantiles of multiples of the powers of 1/phi, on the
    unit sphere, with phi^(axes + 1) = phi + 1; magnitudes in a geometric series."""
    phi = max(np.roots([1, *[0] * (axes - 1), -1, -1]).real)
    parts = np.arange(1, heads * pairs + 1)[:, None] / phi ** np.arange(1, axes + 1) % 1
    quantiles = np.vectorize(NormalDist().inv_cdf)(parts).reshape(heads, pairs, axes)
    return np.geomspace(1, 20, pairs)[:, None] * quantiles / np.linalg.norm(quantiles, axis=-1, keepdims=True)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_golden_gate_turns_in_planes_of_its_own(layout):
    """The author's layout is half, that of Falcon-Perception interleaved."""
    x, positions, frequencies = painted((5, 8), 1), painted((5, 2), 2) / 2, golden_gate(3, 4, 2)
    for w in frequencies:
        made = generators.planes(w.T, layout=layout)
        assert not generators.commutators(made).any()
        got = (generators.exponential(positions, made, **EXACT) @ x[..., None])[..., 0]
        angle = positions @ w.T
        stated = rope.rotate(x, np.cos(angle), np.sin(angle), layout=layout)
        np.testing.assert_allclose(got, stated, rtol=0, atol=256 * 64 * 8 * 2**-53 * np.abs(x).max())
    assert np.abs(np.diff(frequencies, axis=0)).min() > 0  # no two heads have a frequency in common


def test_refused():
    with pytest.raises(ValueError, match=r"rows of x S sum to 25, expected 1 at most; take 5 more"):
        generators.exponential(np.array([50.0]), np.array([[[0.0, 1.0], [-1.0, 0.0]]]), terms=18, halvings=1)
