"""Gated linear attention: long texts, gates that are none, and the limits of what is refused."""

import numpy as np
import pytest

from posref.state import gated, retention

TOLD = {"scale": 1.0, "state_layout": "kv"}


def test_a_long_past_overflows_nothing():
    """Running sums down to -5e5, of which exp(-c) would be infinite; each output is the sum of the last few values."""
    one, gates = np.ones((500, 1)), np.full((500, 1), -1000.0)
    with np.errstate(all="raise", under="ignore"):
        for form in (gated.recurrent, gated.quadratic):
            np.testing.assert_array_equal(form(one, one, one, gates, **TOLD).output, one)


def test_no_number_overflows_in_a_long_retention():
    q, k, v = np.ones((3, 1, 1200, 1))  # 2^1200 is no float64
    got = retention.quadratic(q, k, v, np.array([0.5]), scale=1)
    np.testing.assert_allclose(got.output[0, -1], 2, rtol=2**-50)


def test_gates_above_1_are_refused():
    one = np.ones((2, 1))
    for form in (gated.recurrent, gated.quadratic):
        with pytest.raises(ValueError, match=r"-log_gates runs from -0.5 to -0.5, expected 0 or more"):
            form(one, one, one, 0.5 * one, **TOLD)


def test_a_state_in_the_other_layout_is_refused():
    q, v, state = np.ones((2, 3)), np.ones((2, 2)), np.ones((2, 3))
    with pytest.raises(ValueError, match=r"state, as keys by values, ends in the axes \(2, 3\) and k v\^T in \(3, 2\)"):
        gated.recurrent(q, q, v, 0 * q, scale=1.0, state_layout="kv", state=state)


def test_gates_of_parameters_far_from_zero():
    got = gated.log_gates(np.array([-1000.0, 0, 1000]), np.zeros(1), np.zeros(1))
    np.testing.assert_allclose(got, [0, -np.log(2), -1000], rtol=2**-51, atol=2**-51)
