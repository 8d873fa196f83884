"""Forgetting attention: values of the paper's code, large gates, both forms in attention, refusals."""

import mpmath
import numpy as np
import pytest

from posref.relative import forgetting


def painted(shape, tag):
    n = np.arange(np.prod(shape))
    return (((7 * n * n + 31 * n + 17 * tag) % 251 - 125) / 64).reshape(shape)


def test_log_sigmoid_far_from_zero():
    x = np.array([-1e6, -700.0, -3.0, 0.0, 3.0, 30.0, 1e6])
    expected = [float(-mpmath.log1p(mpmath.exp(-mpmath.mpf(each)))) for each in x]
    # one rounding of 1 + exp(-|x|), which is at most 2, before the logarithm
    np.testing.assert_allclose(forgetting.log_sigmoid(x), expected, rtol=2**-51, atol=2**-52)


def test_refused():
    with pytest.raises(ValueError, match=r"forgetting\.bias: form is 'signed', expected one of 'difference', 'key'"):
        forgetting.bias(np.zeros((2, 3)), form="signed")
    with pytest.raises(ValueError, match=r"forgetting\.bias: log_gates has shape \(3,\)"):
        forgetting.bias(np.zeros(3), form="key")
    with pytest.raises(TypeError, match=r"forgetting\.log_sigmoid: x is a list"):
        forgetting.log_sigmoid([0.0])
