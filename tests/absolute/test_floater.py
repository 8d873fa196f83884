"""FLOATER: the 3/8 rule in exact fractions, order 4 as the slope of the error, the sinusoid as its linear solution."""

from fractions import Fraction

import numpy as np
import pytest

from posref.absolute import floater


def fractions(*values):
    return np.array([Fraction(value) for value in values], dtype=object)


def test_biases_of_all_blocks_at_once():
    start = np.random.default_rng(0).normal(size=(3, 2, 4))  # q, k, v; blocks; features
    preset = floater.PRESETS["released"]
    times = preset["step"] * np.arange(5)
    p = floater.encode(lambda t, p: np.tanh(p) + t, start, times, substeps=preset["substeps"])
    assert p.shape == (3, 2, 5, 4)
    assert np.array_equal(p[..., 0, :], start)
    alone = floater.encode(lambda t, p: np.tanh(p) + t, start[2, 1], times, substeps=preset["substeps"])
    assert np.array_equal(p[2, 1], alone)


def test_dtypes_follow_promotion():
    assert floater.encode(lambda t, p: 0 * p, np.array([1]), np.array([0, 1]), substeps=1).dtype == np.float64
    single = np.ones(2, dtype=np.float32)
    assert floater.encode(lambda t, p: -p, single, np.arange(3, dtype=np.float32), substeps=2).dtype == np.float32
    assert floater.encode(pytest.fail, np.array([3.0]), np.array([7.0]), substeps=1).tolist() == [[3.0]]


@pytest.mark.parametrize(
    ("derivative", "start", "times", "substeps", "error", "message"),
    [
        (lambda t, p: p, [1.0], np.arange(2.0), 1, TypeError, r"floater\.encode: start is a list"),
        (lambda t, p: p, np.array(1.0), np.arange(2.0), 1, ValueError, r"start has shape \(\), expected at least 1 axes"),
        (lambda t, p: p, np.ones(1), [0.0], 1, TypeError, "times is a list"),
        (lambda t, p: p, np.ones(1), np.arange(2, dtype="u1"), 1, TypeError, "times has dtype uint8, expected signed numbers"),
        (lambda t, p: p, np.ones(1), np.array([]), 1, ValueError, r"times has shape \(0,\), expected \(n,\)"),
        (lambda t, p: p, np.ones(1), np.ones((1, 2)), 1, ValueError, r"times has shape \(1, 2\), expected \(n,\)"),
        (lambda t, p: p, np.ones(1), np.array([0, np.nan]), 1, ValueError, "times has 1 of 2 values that are NaN"),
        (lambda t, p: p, np.ones(1), np.arange(2.0), 0, ValueError, "substeps is 0, expected an integer of at least 1"),
        (lambda t, p: p, np.ones(1), np.arange(2.0), 0.5, TypeError, "substeps is 0.5, expected an integer"),
        (
            lambda t, p: p[:1],
            np.ones(2),
            np.arange(2.0),
            1,
            ValueError,
            r"the derivative at t = .* has shape \(1,\) and p \(2,\)",
        ),
        (lambda t, p: 0.0, np.ones(2), np.arange(2.0), 1, TypeError, "the derivative at t = 0.0 is a float"),
        (lambda t, p: p + np.inf, np.ones(2), np.arange(2.0), 1, ValueError, "the derivative at t = 0.0 has 2 of 2 values"),
    ],
)
def test_encode_refuses(derivative, start, times, substeps, error, message):
    with pytest.raises(error, match=message):
        floater.encode(derivative, start, times, substeps=substeps)


def test_a_single_number_is_stepped():
    assert floater.step(lambda t, p: 3 * t**2 + 0 * p, 0, np.array(1.0), 2) == 9


def test_step_refuses():
    with pytest.raises(TypeError, match=r"floater\.step: p is a list"):
        floater.step(lambda t, p: p, 0, [1.0], 1)
    with pytest.raises(ValueError, match=r"floater\.step: the derivative at t = .* has shape \(2,\) and p \(1,\)"):
        floater.step(lambda t, p: np.ones(2), 0, np.ones(1), 1)


def test_antisymmetric_refuses():
    with pytest.raises(TypeError, match=r"floater\.antisymmetric: frequencies is a list"):
        floater.antisymmetric([1.0], layout="half")
    with pytest.raises(TypeError, match="frequencies has dtype uint8, expected signed numbers"):
        floater.antisymmetric(np.ones(1, dtype=np.uint8), layout="half")
    with pytest.raises(ValueError, match=r"frequencies has shape \(1, 1\), expected \(dim/2,\)"):
        floater.antisymmetric(np.ones((1, 1)), layout="half")
    with pytest.raises(ValueError, match="layout is 'gptj', expected one of 'interleaved', 'half'"):
        floater.antisymmetric(np.ones(1), layout="gptj")


def test_a_derivative_that_is_no_function_is_refused():
    with pytest.raises(TypeError, match=r"floater\.encode: derivative is array\(.*, expected a function of arrays"):
        floater.encode(np.ones(1), np.ones(1), np.arange(2.0), substeps=1)
