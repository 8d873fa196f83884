"""The sinusoid against many digits, the printed formula and known numbers; every refusal."""

import numpy as np
import pytest

from posref.absolute import sinusoidal

EPS = np.finfo(float).eps


def test_known_numbers_at_512():
    paper, code = (sinusoidal.frequencies(512, divisor=divisor) for divisor in sinusoidal.DIVISORS)
    assert f"{paper[-1]:.5e} {paper[1]:.7f}" == "1.03663e-04 0.9646616"
    assert f"{code[-1]:.5e} {code[1]:.7f}" == "1.00000e-04 0.9645255"


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
