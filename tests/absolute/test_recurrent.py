"""Recurrent encoding: a text of one token, what the body refuses."""

import numpy as np
import pytest

from posref.absolute import recurrent
from tests.refused import refused


def test_start_alone():
    assert recurrent.encode(pytest.fail, np.array([4.0, 5.0]), 1).tolist() == [[4.0, 5.0]]


test_refused = refused(
    vars(recurrent),
    r"""
    encode(lambda p: p[:1], np.ones(2), 2) | recurrent\.encode: p_1 has shape \(1,\) and start \(2,\); they must be equal
    encode(lambda p: p.tolist(), np.ones(2), 2) | TypeError: p_1 is a list
    encode(lambda p: p[p > 1] if p[0] else p + 1, a(0.0, 1.0), 3) | p_2 has shape \(1,\) and start \(2,\)
    encode(lambda p: p * a(1.0, np.inf), np.ones(2), 3) | p_1 has 1 of 2 values that are NaN or infinite
    """,
)
