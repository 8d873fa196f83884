"""The sinusoid against many digits, the printed formula and known numbers; every refusal."""

import mpmath
import numpy as np
import pytest

from posref.absolute import sinusoidal

EPS = np.finfo(float).eps


def exact_frequency(t, dim, divisor, base=10000):
    width = {"dim": dim, "dim - 2": max(dim - 2, 1)}[divisor]
    return mpmath.power(base, -mpmath.mpf(2 * t) / width)


def column(t, dim, layout):
    return (2 * t, 2 * t + 1) if layout == "interleaved" else (t, t + dim // 2)


@pytest.mark.parametrize("divisor", sinusoidal.DIVISORS)
@pytest.mark.parametrize("dim", [2, 4, 6, 64, 512])
def test_frequencies_to_many_digits(dim, divisor):
    w = sinusoidal.frequencies(dim, divisor=divisor)
    assert w.shape == (dim // 2,)
    assert w[0] == 1
    for t in range(dim // 2):
        exact = exact_frequency(t, dim, divisor)
        # The exponent, at most 1 in size, is rounded, which the power multiplies by ln 10000 = 9.2; then the power is rounded.
        assert abs(w[t] - exact) <= (9.3 + 1) * EPS * exact


def test_known_numbers_at_512():
    paper, code = (sinusoidal.frequencies(512, divisor=divisor) for divisor in sinusoidal.DIVISORS)
    assert f"{paper[-1]:.5e} {paper[1]:.7f}" == "1.03663e-04 0.9646616"
    assert f"{code[-1]:.5e} {code[1]:.7f}" == "1.00000e-04 0.9645255"


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("name", sinusoidal.PRESETS)
def test_encode_to_many_digits(name, layout):
    preset = sinusoidal.PRESETS[name]
    dim, divisor = preset["dim"], preset["divisor"]
    positions = np.array([[0, 1, 4999], [50000, -3, 7]])
    p = sinusoidal.encode(positions, sinusoidal.frequencies(dim, divisor=divisor), layout=layout)
    assert p.shape == (2, 3, dim)
    for (b, i), m in np.ndenumerate(positions):
        for t in (0, 1, dim // 4, dim // 2 - 1):
            angle = int(m) * exact_frequency(t, dim, divisor)
            bound = abs(angle) * (9.3 + 2) * EPS + EPS  # the frequency, the product, and one rounding of sin or cos
            first, second = column(t, dim, layout)
            assert abs(p[b, i, first] - mpmath.sin(angle)) <= bound
            assert abs(p[b, i, second] - mpmath.cos(angle)) <= bound


def test_first_position_is_zeros_and_ones():
    w = sinusoidal.frequencies(6)
    assert sinusoidal.encode(np.array(0), w, layout="interleaved").tolist() == [0, 1, 0, 1, 0, 1]
    assert sinusoidal.encode(np.array(0), w, layout="half").tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("offset", [-7, 0, 1, 300])
def test_shift_matrix_moves_every_position(layout, offset):
    w = sinusoidal.frequencies(8)
    M = sinusoidal.shift_matrix(offset, w, layout=layout)
    m = np.array([0, 5, 600])
    shifted = sinusoidal.encode(m, w, layout=layout) @ M.T
    # Angles of at most 900 are rounded on both roads, 3 times in all; then 2 products, a sum and the functions: 6 more.
    bound = (3 * 900 + 6) * EPS
    for row, position in zip(shifted, m.tolist(), strict=True):
        for t in range(4):
            first, second = column(t, 8, layout)
            angle = (position + offset) * w[t]
            assert abs(row[first] - mpmath.sin(angle)) <= bound
            assert abs(row[second] - mpmath.cos(angle)) <= bound
    assert np.abs(M @ M.T - np.eye(8)).max() <= 4 * EPS


def test_shift_matrix_is_not_the_rotation_backwards():
    M = sinusoidal.shift_matrix(1, np.array([np.pi / 2]), layout="half")
    assert M.round(12).tolist() == [[0, 1], [-1, 0]]


def test_dot_product_is_the_sum_of_cosines_and_not_monotone():
    w = sinusoidal.frequencies(64)
    p = sinusoidal.encode(np.arange(8), w, layout="interleaved")
    products = p[:1] @ p.T
    by_offset = [sum(mpmath.cos(k * value) for value in w.tolist()) for k in range(8)]
    assert np.abs(products[0] - np.array(by_offset, dtype=float)).max() <= 64 * 8 * EPS
    rises = np.flatnonzero(np.diff(products[0]) > 0)
    assert rises[0] == 5  # distance 6 is more similar than distance 5


def test_dtypes_follow_promotion():
    w = sinusoidal.frequencies(4)
    assert sinusoidal.encode(np.arange(3, dtype=np.uint8), w, layout="half").dtype == np.float64
    single = sinusoidal.encode(np.arange(3, dtype=np.float32), w.astype(np.float32), layout="half")
    assert single.dtype == np.float32
    assert sinusoidal.encode(np.arange(3), np.array([1, 2]), layout="half").dtype == np.float64
    assert sinusoidal.shift_matrix(1, np.array([1]), layout="half").dtype == np.float64


def test_positions_need_not_be_integers():
    p = sinusoidal.encode(np.array([0.5]), np.array([np.pi]), layout="half")
    assert np.abs(p - [[1, 0]]).max() <= EPS


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((5,), ValueError, "dim is 5, expected an even number"),
        ((0,), ValueError, "dim is 0, expected an even number of at least 2"),
        ((-2,), ValueError, "dim is -2, expected an even number of at least 2"),
        ((4.0,), TypeError, r"dim is 4\.0, expected an integer"),
        ((4, 0), ValueError, "base is 0, expected a positive finite number"),
        ((4, -10000.0), ValueError, r"base is -10000\.0, expected a positive finite number"),
        ((4, np.inf), ValueError, "base is inf, expected a positive finite number"),
        ((4, np.nan), ValueError, "base is nan, expected a positive finite number"),
        ((4, [1.0]), TypeError, r"base is \[1\.0\], expected one number"),
    ],
)
def test_frequencies_refuse(arguments, error, message):
    with pytest.raises(error, match=r"sinusoidal\.frequencies: " + message):
        sinusoidal.frequencies(*arguments)


def test_frequencies_refuse_an_unknown_divisor():
    with pytest.raises(ValueError, match="divisor is 'd', expected one of 'dim', 'dim - 2'"):
        sinusoidal.frequencies(4, divisor="d")


W = np.array([1.0, 0.01])


@pytest.mark.parametrize(
    ("positions", "frequencies", "layout", "error", "message"),
    [
        ([0, 1], W, "half", TypeError, "positions is a list, not an array"),
        (np.array([True]), W, "half", TypeError, "positions has dtype bool, expected numbers"),
        (np.array([0]), [1.0], "half", TypeError, "frequencies is a list"),
        (np.array([0]), np.array(1.0), "half", ValueError, r"frequencies has shape \(\), expected .*\(dim/2,\)"),
        (np.array([0]), W, "neox", ValueError, "layout is 'neox', expected one of 'interleaved', 'half'"),
    ],
)
def test_encode_refuses(positions, frequencies, layout, error, message):
    with pytest.raises(error, match=message):
        sinusoidal.encode(positions, frequencies, layout=layout)


def test_layout_has_no_default():
    with pytest.raises(TypeError, match="layout"):
        sinusoidal.encode(np.array([0]), W)


@pytest.mark.parametrize(
    ("offset", "frequencies", "layout", "error", "message"),
    [
        (1, [1.0], "half", TypeError, "frequencies is a list"),
        (1, W[None], "half", ValueError, r"frequencies has shape \(1, 2\), expected \(dim/2,\)"),
        (np.array([1, 2]), W, "half", TypeError, "offset is .*, expected one number"),
        (np.nan, W, "half", ValueError, "offset is nan, expected a finite number"),
        (1, W, "neox", ValueError, "layout is 'neox'"),
    ],
)
def test_shift_matrix_refuses(offset, frequencies, layout, error, message):
    with pytest.raises(error, match=message):
        sinusoidal.shift_matrix(offset, frequencies, layout=layout)


def test_frequencies_of_every_position_are_refused():
    with pytest.raises(ValueError, match=r"sinusoidal\.encode: frequencies has shape \(3, 4\), expected \(dim/2,\)"):
        sinusoidal.encode(np.arange(3), np.ones((3, 4)), layout="half")
    with pytest.raises(TypeError, match=r"sinusoidal\.frequencies: base is '10000', expected one number"):
        sinusoidal.frequencies(8, "10000")
