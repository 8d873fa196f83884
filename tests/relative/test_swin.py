"""Swin: tokens beyond the window, extreme vectors, a capped temperature, a mask that leaks."""

import numpy as np
import pytest

from posref import attention
from posref.relative import swin
from posref.vectors import case
from tests.refused import refused

test_refused = refused(
    vars(swin),
    r"""
    rows(a([0, 0], [2, 0]), height=2, width=3) | offsets of rows run from -2 to 2
    rows(a([0, 0], [0, 3]), height=2, width=3) | offsets of columns
    bias(rows(a(*np.ndindex(2, 3)), height=2, width=3), np.zeros((14, 1))) | rows runs from 0 to 14 and table has 14 rows
    scores(np.zeros((1, 1, 2)), np.ones((1, 1, 2)), np.zeros(1)) | norm 0
    shift_mask(a([0, 0]), height=4, width=6, shift=-1) | shift is -1 and the image 4 x 6, expected 0 to 4; released code
    shift_mask(a([0, 0]), height=4, width=6, shift=5) | ^swin\.shift_mask: shift is 5 and the image 4 x 6
    shift_mask(a([4, 0]), height=4, width=6, shift=1) | rows of coordinates run from 4 to 4 and length is 4; .* in 0 \.\. 3
    shift_mask(a([0, -3]), height=4, width=6, shift=1) | columns of coordinates run from -3 to -3 and length is 6
    """,
)


@pytest.mark.parametrize(
    ("dtype", "size"), [("f2", 300), ("f2", 6e-8), ("f4", 1e20), ("f4", 1e-40), ("f8", 1e200), ("f8", 1e-200)]
)
def test_cosines_of_vectors_whose_squares_overflow_or_vanish(dtype, size):
    q, k = (np.array(x) * np.array(size, dtype) for x in ([[[1, 1]]], [[[1, 1], [1, 0]]]))
    got = swin.scores(q, k, np.zeros(1, dtype))
    assert np.abs(got - [[[1, 0.5**0.5]]]).max() <= 4 * np.finfo(dtype).eps


def test_the_temperature_is_capped():
    q = np.array([[[1.0, 0.0]]])
    assert swin.scores(q, q, np.array([4.0])).item() == np.exp(4.0)
    assert abs(swin.scores(q, q, np.array([5.0])).item() - 100) <= 2.0**-44  # the exponential of a rounded logarithm


def test_the_released_mask_leaks():
    """Two tokens of an image's two ends in one window; the forbidden key is the query itself, the other its opposite."""
    mask = swin.shift_mask(np.array([[0, 2], [0, 3]]), height=1, width=4, shift=1)
    scores = np.array([[-100.0, 100.0]])
    added = [attention.softmax(scores + times * swin.shift_bias(mask)[:1])[0, 1] for times in (1, 2)]
    assert added == [1.0, 0.5]
    assert attention.softmax(scores, mask[:1])[0, 1] == 0


def test_the_largest_shift():
    assert swin.shift_mask(np.array([[3, 5], [0, 5]]), height=4, width=6, shift=4).tolist() == [[True] * 2] * 2


def test_it_is_in_the_vectors():
    leak = case("swin/v2/cosine-d2/leak")
    assert {"mask_of_100", "mask_added_twice"} <= set(leak.flags)
