import numpy as np
import pytest

from posref.rotary import rope

LAYOUTS = ["interleaved", "half"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_efficient_form_is_the_same_to_the_bit(layout):
    x = np.random.default_rng(3).standard_normal((2, 3, 5, 8))
    tables = rope.tables(np.array([0, 3, 48040, 7, 131071]), rope.frequencies(8))
    np.testing.assert_array_equal(rope.rotate_efficient(x, *tables, layout=layout), rope.rotate(x, *tables, layout=layout))


# -- dtypes, symbols, purity


def good_tables(n=3, dim=4):
    return rope.tables(np.arange(n), rope.frequencies(dim))


def test_not_a_number_shows_in_the_result():
    x = np.ones((3, 4))
    x[0, 1] = np.nan
    assert np.isnan(rope.rotate(x, *good_tables(), layout="half")).tolist() == [[False, True] * 2, [False] * 4, [False] * 4]
    cos, sin = rope.tables(np.array([0.0, np.nan]), rope.frequencies(4))
    assert np.isnan(cos).tolist() == np.isnan(sin).tolist() == [[False, False], [True, True]]
