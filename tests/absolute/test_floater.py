"""FLOATER: blocks at once, one time, what the derivative must not give."""

import numpy as np
import pytest

from posref.absolute import floater


def test_biases_of_all_blocks_at_once():
    start = np.random.default_rng(0).normal(size=(3, 2, 4))  # q, k, v; blocks; features
    preset = floater.PRESETS["released"]
    times = preset["step"] * np.arange(5)
    p = floater.encode(lambda t, p: np.tanh(p) + t, start, times, substeps=preset["substeps"])
    assert p.shape == (3, 2, 5, 4)
    assert np.array_equal(p[..., 0, :], start)
    alone = floater.encode(lambda t, p: np.tanh(p) + t, start[2, 1], times, substeps=preset["substeps"])
    assert np.array_equal(p[2, 1], alone)


def test_one_time_takes_no_step():
    assert floater.encode(pytest.fail, np.array([3.0]), np.array([7.0]), substeps=1).tolist() == [[3.0]]


@pytest.mark.parametrize(
    ("derivative", "start", "times", "substeps", "error", "message"),
    [
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
    with pytest.raises(ValueError, match=r"floater\.step: the derivative at t = .* has shape \(2,\) and p \(1,\)"):
        floater.step(lambda t, p: np.ones(2), 0, np.ones(1), 1)
