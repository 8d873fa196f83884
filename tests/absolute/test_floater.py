"""FLOATER: the 3/8 rule in exact fractions, order 4 as the slope of the error, the sinusoid as its linear solution."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from posref.absolute import floater, sinusoidal


def exact_step(f, t, p, h):
    """One step in fractions, from the Butcher tableau of the 3/8 rule."""
    nodes = [Fraction(0), Fraction(1, 3), Fraction(2, 3), Fraction(1)]
    tableau = [[], [Fraction(1, 3)], [Fraction(-1, 3), 1], [1, -1, 1]]
    weights = [Fraction(w, 8) for w in (1, 3, 3, 1)]
    slopes = []
    for node, row in zip(nodes, tableau, strict=True):
        slopes.append(f(t + node * h, p + h * sum(a * k for a, k in zip(row, slopes, strict=True))))
    return p + h * sum(w * k for w, k in zip(weights, slopes, strict=True))


def fractions(*values):
    return np.array([Fraction(value) for value in values], dtype=object)


def test_step_is_the_tableau_exactly():
    def f(t, p):
        return p * p - t * p + 2 * t

    t, h = Fraction(1, 5), Fraction(3, 7)
    stepped = floater.step(f, t, fractions("1/2", -3), h)
    assert stepped.tolist() == [exact_step(f, t, Fraction(p), h) for p in ("1/2", -3)]


def test_step_integrates_cubics_exactly_and_quartics_by_newton_and_not_simpson():
    one = fractions(0)
    cubic = floater.step(lambda t, p: 4 * t**3 + 0 * p, Fraction(0), one, Fraction(1))
    quartic = floater.step(lambda t, p: t**4 + 0 * p, Fraction(0), one, Fraction(1))
    assert cubic.tolist() == [1]
    assert quartic.tolist() == [Fraction(11, 54)]  # Simpson, in the classical Runge-Kutta method, gives 5/24


def test_step_of_a_linear_field_is_taylor_to_degree_four():
    h = Fraction(2, 3)
    stepped = floater.step(lambda t, p: -5 * p, Fraction(0), fractions(1), h)
    assert stepped.tolist() == [sum((-5 * h) ** k / math.factorial(k) for k in range(5))]


def test_error_falls_with_the_fourth_power_of_the_step():
    B = floater.antisymmetric(np.array([1.0]), layout="half")
    end = 2.0

    def error(substeps):
        p = floater.encode(lambda t, p: B @ p, np.array([0.0, 1.0]), np.array([0.0, end]), substeps=substeps)
        return math.hypot(p[1, 0] - math.sin(end), p[1, 1] - math.cos(end))

    def bounds(substeps):
        """In the complex plane n steps give R^n with R = e^{iz} - (iz)^5/120 (1 + ..), where |..| <= e^{z/6} - 1."""
        z = end / substeps
        low, high = (substeps * z**5 / 120 * (1 + sign * (math.exp(z / 6) - 1)) for sign in (-1, 1))
        spread = math.expm1(high) / high  # (1 + x)^n - 1 against n x
        return low * (2 - spread), high * spread

    coarse, fine = error(20), error(40)
    (coarse_low, coarse_high), (fine_low, fine_high) = bounds(20), bounds(40)
    assert coarse_low <= coarse <= coarse_high
    assert fine_low <= fine <= fine_high
    slope = math.log2(coarse / fine)
    assert math.log2(coarse_low / fine_high) <= slope <= math.log2(coarse_high / fine_low)
    assert 3.9 < math.log2(coarse_low / fine_high) < math.log2(coarse_high / fine_low) < 4.1


def test_order_four_for_a_field_that_is_neither_linear_nor_autonomous():
    with mpmath.workdps(30):
        solution = mpmath.odefun(lambda t, p: mpmath.cos(t) - p * p, 0, mpmath.mpf(1) / 2)
        expected = float(solution(1))

    def error(substeps):
        p = floater.encode(lambda t, p: np.cos(t) - p * p, np.array([0.5]), np.array([0.0, 1.0]), substeps=substeps)
        return abs(p[1, 0] - expected)

    # Halving the step divides the error by 2^order: halfway to orders 3 and 5 on the logarithmic scale is 3.5 and 4.5.
    assert 3.5 < math.log2(error(16) / error(32)) < 4.5


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_sinusoid_is_the_solution_of_the_antisymmetric_system(layout):
    frequencies = sinusoidal.frequencies(6)
    B = floater.antisymmetric(frequencies, layout=layout)
    assert np.array_equal(B, -B.T)
    times = np.array([0.0, 0.5, 2.0, 2.25])
    p = floater.encode(lambda t, p: B @ p, sinusoidal.encode(times[0], frequencies, layout=layout), times, substeps=300)
    # The largest step is 1.5 / 300, 900 steps in all: n z^5 / 120 (as above) is 3e-11 in the fastest pair.
    bound = 900 * (1.5 / 300) ** 5 / 120 * 1.01 + 900 * 8 * np.finfo(float).eps
    for i, time in enumerate(times):
        for t, w in enumerate(10000 ** (-2 * k / 6) for k in range(3)):
            first, second = (2 * t, 2 * t + 1) if layout == "interleaved" else (t, t + 3)
            assert abs(p[i, first] - math.sin(w * time)) <= bound
            assert abs(p[i, second] - math.cos(w * time)) <= bound


def test_generator_exponentiates_to_the_shift():
    B = floater.antisymmetric(np.array([1, 2]), layout="interleaved")
    assert B.tolist() == [[0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 2], [0, 0, -2, 0]]
    shift = mpmath.expm(mpmath.matrix(B.tolist()) * 3)
    expected = sinusoidal.shift_matrix(3, np.array([1, 2]), layout="interleaved")
    assert np.abs(np.array(shift.tolist(), dtype=float) - expected).max() <= 4 * np.finfo(float).eps


def test_biases_of_all_blocks_at_once():
    start = np.random.default_rng(0).normal(size=(3, 2, 4))  # q, k, v; blocks; features
    preset = floater.PRESETS["released"]
    times = preset["step"] * np.arange(5)
    p = floater.encode(lambda t, p: np.tanh(p) + t, start, times, substeps=preset["substeps"])
    assert p.shape == (3, 2, 5, 4)
    assert np.array_equal(p[..., 0, :], start)
    alone = floater.encode(lambda t, p: np.tanh(p) + t, start[2, 1], times, substeps=preset["substeps"])
    assert np.array_equal(p[2, 1], alone)


def test_substeps_are_the_same_as_finer_times():
    def f(t, p):
        return t - p

    coarse = floater.encode(f, np.array([1.0]), np.array([0.0, 1.0]), substeps=4)
    fine = floater.encode(f, np.array([1.0]), np.array([0.0, 0.25, 0.5, 0.75, 1.0]), substeps=1)
    assert coarse[-1] == fine[-1]  # quarters are exact


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
