"""CoPE: the published code transcribed; tests/parity has x-transformers."""

import numpy as np
import pytest

from posref.relative import cope
from tests.painted import painted


def published(q, k, table, convention):
    """facebookresearch/RAM, projects/cope, in numpy: floor and ceil rows of a causal mask."""
    n, d = q.shape[-2:]
    mask = np.tri(n, dtype=bool)
    logits = q @ np.swapaxes(k, -1, -2)
    gates = mask / (1 + np.exp(-logits / d**0.5))
    p = np.minimum(np.flip(np.flip(gates, -1).cumsum(-1), -1), len(table) - 1)
    low, high = np.floor(p).astype(int), np.ceil(p).astype(int)
    by_row = q @ table.T
    w = p - low
    z = np.take_along_axis(by_row, high, -1) * w + np.take_along_axis(by_row, low, -1) * (1 - w)
    return (logits + z) / d**0.5 if convention == "official" else logits / d**0.5 + z


@pytest.mark.parametrize("convention", ["official", "nodiv"])
@pytest.mark.parametrize("rows", [1, 4, 20])
def test_published(rows, convention):
    q, k, table, mask = painted((2, 6, 4), 1), painted((2, 6, 4), 2), painted((rows, 4), 4), np.tri(6, dtype=bool)
    got = cope.scores(q, k, table, mask, scale=0.5, convention=convention)
    # sums of at most six numbers below 100
    np.testing.assert_allclose(got[:, mask], published(q, k, table, convention)[:, mask], rtol=0, atol=600 * 2**-50)
    last = cope.scores(q[:, -1:], k, table, mask[-1:], scale=0.5, convention=convention)
    np.testing.assert_allclose(last, got[:, -1:], rtol=0, atol=600 * 2**-50)


def test_positions_fall_along_the_keys():
    gates = np.random.default_rng(0).random((5, 9))
    p = cope.positions(gates, rows=4)
    assert (np.diff(p) <= 0).all()
    assert p.max() == 3
