"""Swin: tokens beyond the window, extreme vectors, a capped temperature, a mask that leaks."""

import numpy as np
import pytest

from posref import attention
from posref.relative import swin
from posref.vectors import case


def grid(height, width):
    return np.array([*np.ndindex(height, width)])


def test_tokens_beyond_the_window_are_refused():
    for places, text in (([[0, 0], [2, 0]], "offsets of rows run from -2 to 2"), ([[0, 0], [0, 3]], "offsets of columns")):
        with pytest.raises(ValueError, match=text):
            swin.rows(np.array(places), height=2, width=3)
    with pytest.raises(ValueError, match="rows runs from 0 to 14 and table has 14 rows"):
        swin.bias(swin.rows(grid(2, 3), height=2, width=3), np.zeros((14, 1)))
    with pytest.raises(ValueError, match="norm 0"):
        swin.scores(np.zeros((1, 1, 2)), np.ones((1, 1, 2)), np.zeros(1))


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


@pytest.mark.parametrize(
    ("place", "shift", "message"),
    [
        ([0, 0], -1, "shift is -1 and the image 4 x 6, expected 0 to 4; released code"),
        ([0, 0], 5, "shift is 5 and the image 4 x 6, expected 0 to 4; released code"),
        ([4, 0], 1, r"rows of coordinates run from 4 to 4 and length is 4; they must lie in 0 \.\. 3"),
        ([0, -3], 1, r"columns of coordinates run from -3 to -3 and length is 6; they must lie in 0 \.\. 5"),
    ],
)
def test_what_was_not_rolled_is_refused(place, shift, message):
    with pytest.raises(ValueError, match=rf"^swin\.shift_mask: {message}"):
        swin.shift_mask(np.array([place]), height=4, width=6, shift=shift)
    assert swin.shift_mask(np.array([[3, 5], [0, 5]]), height=4, width=6, shift=4).tolist() == [[True] * 2] * 2


def test_it_is_in_the_vectors():
    leak = case("swin/v2/cosine-d2/leak")
    assert {"mask_of_100", "mask_added_twice"} <= set(leak.flags)
