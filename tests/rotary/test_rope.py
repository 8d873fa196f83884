import math

import numpy as np
import pytest

from posref.rotary import rope

LAYOUTS = ["interleaved", "half"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_efficient_form_is_the_same_to_the_bit(layout):
    x = np.random.default_rng(3).standard_normal((2, 3, 5, 8))
    tables = rope.tables(np.array([0, 3, 48040, 7, 131071]), rope.frequencies(8))
    np.testing.assert_array_equal(rope.rotate_efficient(x, *tables, layout=layout), rope.rotate(x, *tables, layout=layout))


# -- properties, in numbers (for all positions they are theorems)


def test_how_much_phase_float32_loses():
    # the docstring of the module quotes it; the largest error over the 64 pairs of a head, base 10000
    exact, positions = rope.frequencies(128), np.arange(131072 - 4096, 131072)[:, None]
    angles = positions.astype(np.float32) * exact.astype(np.float32)
    assert np.abs(angles.astype(np.float64) - positions * exact).max() == pytest.approx(7.8e-3, rel=0.01)


def test_how_much_phase_half_precision_loses():
    # float16 angles: 1857 * 0.5625 becomes 1045 where 1044.27 is meant; bfloat16 positions: 15962 becomes 15936
    cos, _ = rope.tables(np.array([1857]), rope.frequencies(32))
    assert cos[0, 1] == pytest.approx(0.306693, abs=5e-7)
    assert math.cos(np.float16(1857) * np.float16(rope.frequencies(32)[1])) == pytest.approx(-0.408165, abs=5e-7)
    cos, _ = rope.tables(np.array([15962, 15936]), np.array([1.0]))
    np.testing.assert_allclose(cos[:, 0], [-0.908016, -0.267950], atol=5e-7)


# -- dtypes, symbols, purity


def good_tables(n=3, dim=4):
    return rope.tables(np.arange(n), rope.frequencies(dim))


def test_not_a_number_shows_in_the_result():
    x = np.ones((3, 4))
    x[0, 1] = np.nan
    assert np.isnan(rope.rotate(x, *good_tables(), layout="half")).tolist() == [[False, True] * 2, [False] * 4, [False] * 4]
    cos, sin = rope.tables(np.array([0.0, np.nan]), rope.frequencies(4))
    assert np.isnan(cos).tolist() == np.isnan(sin).tolist() == [[False, False], [True, True]]
