"""Pairing of features against positions written out by hand."""

import numpy as np
import pytest

from posref import pairing


@pytest.mark.parametrize("layout", pairing.LAYOUTS)
def test_one_pair_is_the_same_in_both_layouts(layout):
    assert pairing.join(np.array([[5]]), np.array([[7]]), layout).tolist() == [[5, 7]]


def test_join_promotes_and_does_not_truncate():
    joined = pairing.join(np.array([1]), np.array([0.5]), "interleaved")
    assert joined.tolist() == [1.0, 0.5]
    assert pairing.join(np.array([1]), np.array([0.5]), "half").tolist() == [1.0, 0.5]
