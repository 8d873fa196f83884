"""Merging by hand, the algebra between the three ways."""

import numpy as np

from posref.absolute import merge


def test_dtypes_follow_promotion():
    integers, single = np.array([[1, 2]]), np.array([[0.5, 0.25]], dtype=np.float32)
    assert merge.add(integers, np.array([[0.5, 0.25]])).tolist() == [[1.5, 2.25]]
    assert merge.concatenate(integers, np.array([[0.5]])).tolist() == [[1, 2, 0.5]]
    for merged in (
        merge.add(single, single),
        merge.multiply(single, single, convention="released"),
        merge.concatenate(single, single),
    ):
        assert merged.dtype == np.float32


def test_any_number_of_leading_axes():
    one, two = np.array([1, 2]), np.array([3, 4])
    assert merge.add(one, two).tolist() == [4, 6]
    assert merge.multiply(one, two, convention="released").tolist() == [4, 10]
    assert merge.concatenate(one, two).tolist() == [1, 2, 3, 4]
    assert merge.concatenate(np.ones((2, 3, 4)), np.ones((2, 3, 5))).shape == (2, 3, 9)


def test_nothing_to_append():
    assert merge.concatenate(np.ones((2, 3)), np.ones((2, 0))).shape == (2, 3)


def test_narrow_integers_do_not_wrap():
    x, p = np.full((1, 1), 200, np.uint8), np.full((1, 1), 100, np.uint8)
    assert merge.add(x, p).item() == 300
    assert merge.multiply(x, p, convention="paper").item() == 20000
    assert merge.concatenate(x, p).dtype == np.uint8  # moved, not computed
