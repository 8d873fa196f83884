"""Forgetting attention: the logarithm of gates far from zero."""

import mpmath
import numpy as np

from posref.relative import forgetting


def test_log_sigmoid_far_from_zero():
    x = np.array([-1e6, -700.0, -3.0, 0.0, 3.0, 30.0, 1e6])
    expected = [float(-mpmath.log1p(mpmath.exp(-mpmath.mpf(each)))) for each in x]
    # one rounding of 1 + exp(-|x|), which is at most 2, before the logarithm
    np.testing.assert_allclose(forgetting.log_sigmoid(x), expected, rtol=2**-51, atol=2**-52)
