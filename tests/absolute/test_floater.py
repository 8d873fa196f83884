"""FLOATER: blocks at once, one time, what the derivative must not give."""

import numpy as np
import pytest

from posref.absolute import floater
from tests.refused import refused


def test_one_time_takes_no_step():
    assert floater.encode(pytest.fail, np.array([3.0]), np.array([7.0]), substeps=1).tolist() == [[3.0]]


def test_a_single_number_is_stepped():
    assert floater.step(lambda t, p: 3 * t**2 + 0 * p, 0, np.array(1.0), 2) == 9


test_refused = refused(
    vars(floater),
    r"""
    encode(lambda t, p: p[:1], np.ones(2), a(0.0, 1), substeps=1) | the derivative at t = .* has shape \(1,\) and p \(2,\)
    encode(lambda t, p: 0.0, np.ones(2), a(0.0, 1), substeps=1) | TypeError: the derivative at t = 0.0 is a float
    encode(lambda t, p: p + np.inf, np.ones(2), a(0.0, 1), substeps=1) | the derivative at t = 0.0 has 2 of 2 values
    step(lambda t, p: np.ones(2), 0, np.ones(1), 1) | floater\.step: the derivative at t = .* has shape \(2,\) and p \(1,\)
    """,
)
