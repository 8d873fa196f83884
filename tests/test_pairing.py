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


@pytest.mark.parametrize("layout", pairing.LAYOUTS)
def test_refusals(layout):
    with pytest.raises(ValueError, match=r"pairing\.split: x has shape \(2, 5\), .* expected an even number"):
        pairing.split(np.ones((2, 5)), layout)
    with pytest.raises(ValueError, match=r"x has shape \(2, 0\), .* expected an even number of at least 2"):
        pairing.split(np.ones((2, 0)), layout)
    with pytest.raises(ValueError, match=r"pairing\.indices: dim is 3, expected an even number"):
        pairing.indices(3, layout)
    with pytest.raises(ValueError, match="dim is -4, expected an even number of at least 2"):
        pairing.indices(-4, layout)
    with pytest.raises(TypeError, match=r"dim is 4\.0, expected an integer"):
        pairing.indices(4.0, layout)
    with pytest.raises(TypeError, match="dim is '4', expected an integer"):
        pairing.indices("4", layout)
    with pytest.raises(ValueError, match=r"pairing\.join: second has shape \(3,\) and first \(2,\); they must be equal"):
        pairing.join(np.ones(2), np.ones(3), layout)
    with pytest.raises(ValueError, match=r"pairing\.join: second has shape \(4, 3\) and first \(2, 3\); they must be equal"):
        pairing.join(np.ones((2, 3)), np.ones((4, 3)), layout)
    with pytest.raises(TypeError, match=r"pairing\.join: second is a list, not an array"):
        pairing.join(np.ones(2), [1.0, 2.0], layout)
    with pytest.raises(TypeError, match=r"pairing\.split: x is a list, not an array; pass np\.array\(x\)"):
        pairing.split([1.0, 2.0], layout)
    with pytest.raises(ValueError, match=r"pairing\.split: x has shape \(\), expected at least 1 axes"):
        pairing.split(np.array(1.0), layout)


def test_unknown_layouts_are_refused_by_name():
    for call in (
        lambda: pairing.split(np.ones(2), "neox"),
        lambda: pairing.join(np.ones(1), np.ones(1), "neox"),
        lambda: pairing.indices(2, "neox"),
    ):
        with pytest.raises(ValueError, match="layout is 'neox', expected one of 'interleaved', 'half'"):
            call()
