import math

import numpy as np
import pytest

from posref.rotary import rope

U = 2.0**-53
LAYOUTS = ["interleaved", "half"]
X8 = np.arange(1.0, 9.0)


def bound(a, b, angle, base):
    """Bound on the error of a rotated pair in float64; U is the unit roundoff.

    The angle: the exponent is rounded once and multiplied by ln(base) in the power, the power and the product each add an
    ulp, so |d angle| <= |angle| (ln base + 4) U. cos, sin within an ulp (2U), two products and a sum within 2U of |a| + |b|.
    """
    return math.hypot(a, b) * abs(angle) * (math.log(base) + 4) * U + (abs(a) + abs(b)) * 4 * U


# Two evaluations of one pair at one and the same angle, entries below 4.
ROUNDING = 2 * bound(4, 4, 0, 1)

# -- frequencies and tables


def test_frequencies_divide_by_the_rotated_width():
    # 0.947.. and 0.805.. are base^(-2/512) and base^(-2/128) for base 1e6: a table for a quarter of 512 features is not the
    # beginning of the table for all of them
    assert rope.frequencies(512, 1e6)[1] == pytest.approx(0.947463526, abs=5e-10)
    assert rope.frequencies(128, 1e6)[1] == pytest.approx(0.805842188, abs=5e-10)


def test_tables_keep_the_axes_of_positions():
    positions = np.array([[[3, 1, 4]], [[1, 5, 9]]])
    cos, sin = rope.tables(positions, rope.frequencies(8))
    assert cos.shape == sin.shape == (2, 1, 3, 4)
    assert cos[1, 0, 2, 0] == pytest.approx(math.cos(9), abs=2 * U)
    assert sin[0, 0, 1, 0] == pytest.approx(math.sin(1), abs=2 * U)


def test_tables_of_fractional_and_negative_positions():
    cos, sin = rope.tables(np.array([-2.5]), np.array([1.0]))
    assert cos[0, 0] == pytest.approx(math.cos(2.5), abs=2 * U)
    assert sin[0, 0] == pytest.approx(-math.sin(2.5), abs=2 * U)


# -- rotation: against the definition


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("half", [-1.984110649, 1.959900667, 2.462377902, 4.019799668]),
        ("interleaved", [-1.142639664, 1.922075597, 2.959850668, 4.029799502]),
    ],
)
def test_published_numbers(layout, expected):
    x, theta = np.array([1.0, 2.0, 3.0, 4.0]), rope.frequencies(4)
    np.testing.assert_allclose(rope.rotate(x, *rope.tables(np.array(1), theta), layout=layout), expected, atol=5e-10)


def test_published_numbers_partial():
    expected = [-1.984110649, 1.959900667, 2.462377902, 4.019799668, 5, 6, 7, 8]
    y = rope.rotate(X8, *rope.tables(np.array(1), rope.frequencies(4)), layout="half", rotary_dim=4)
    np.testing.assert_allclose(y, expected, atol=5e-10)


def test_published_numbers_proportional():
    # frequencies of the whole head, the later half of them zero: another system than partial rotation
    expected = [-3.667052618, 1.391007831, 3, 4, 3.542982514, 6.169691825, 7, 8]
    theta = np.concatenate([rope.frequencies(8)[:2], np.zeros(2)])
    y = rope.rotate(X8, *rope.tables(np.array(1), theta), layout="half")
    np.testing.assert_allclose(y, expected, atol=5e-10)


def test_published_numbers_of_mistakes():
    x, theta = np.array([1.0, 2.0, 3.0, 4.0]), rope.frequencies(4)
    backwards = rope.rotate(x, *rope.tables(np.array(-1), theta), layout="half")
    np.testing.assert_allclose(backwards, [3.064715260, 2.039899334, 0.779435933, 3.979800335], atol=5e-10)
    # a table laid out for halves with a rotation of adjacent features is no rotation
    angles = np.concatenate([theta, theta])
    mixed = x * np.cos(angles) + np.array([-2.0, 1.0, -4.0, 3.0]) * np.sin(angles)
    np.testing.assert_allclose(mixed, [-1.142639664, 2.009899834, -1.744977022, 4.029799502], atol=5e-10)
    assert np.linalg.norm(mixed) == pytest.approx(4.962817, abs=5e-7)
    for layout in LAYOUTS:
        right = rope.rotate(x, *rope.tables(np.array(1), theta), layout=layout)
        assert np.linalg.norm(right) == pytest.approx(math.sqrt(30), abs=ROUNDING)


# -- the other forms


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
