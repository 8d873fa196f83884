"""Forgetting attention: values of the paper's code, large gates, both forms in attention, refusals."""

import mpmath
import numpy as np
import pytest

from posref import attention
from posref.relative import forgetting


def painted(shape, tag):
    n = np.arange(np.prod(shape))
    return (((7 * n * n + 31 * n + 17 * tag) % 251 - 125) / 64).reshape(shape)


def test_log_sigmoid_far_from_zero():
    x = np.array([-1e6, -700.0, -3.0, 0.0, 3.0, 30.0, 1e6])
    expected = [float(-mpmath.log1p(mpmath.exp(-mpmath.mpf(each)))) for each in x]
    # one rounding of 1 + exp(-|x|), which is at most 2, before the logarithm
    np.testing.assert_allclose(forgetting.log_sigmoid(x), expected, rtol=2**-51, atol=2**-52)


def test_a_product_of_gates():
    gates = np.array([[0.5, 0.25, 0.5, 1.0, 0.125]])
    kept = np.exp(forgetting.bias(np.log(gates), form="difference"))[0]
    for i in range(5):
        for j in range(i + 1):
            np.testing.assert_allclose(kept[i, j], np.prod(gates[0, j + 1 : i + 1]), rtol=1e-14)


@pytest.mark.parametrize("window", [6, 3])
def test_the_forms_attend_alike_and_a_step_is_the_last_row(window):
    q, k, v = (painted((1, 4, 6, 4), tag) for tag in (1, 2, 4))
    gates = forgetting.log_sigmoid(painted((1, 4, 6), 6))
    i = np.arange(6)
    mask = attention.causal_mask(i, i) & attention.window_mask(i, i, width=window)
    difference, key = (
        attention.attend(q, k, v, scale=0.5, bias=forgetting.bias(gates, form=form), mask=mask) for form in forgetting.FORMS
    )
    # scores are below 32, and a difference of sums of 6 gates adds as many roundings to the argument of exp
    np.testing.assert_allclose(difference, key, rtol=0, atol=64 * 16 * 2**-53)
    last = forgetting.bias(gates, form="difference")[..., -1:, :]
    step = attention.attend(q[..., -1:, :], k, v, scale=0.5, bias=last, mask=mask[-1:])
    np.testing.assert_allclose(step, difference[..., -1:, :], rtol=0, atol=1e-14)


def test_refused():
    with pytest.raises(ValueError, match=r"forgetting\.bias: form is 'signed', expected one of 'difference', 'key'"):
        forgetting.bias(np.zeros((2, 3)), form="signed")
    with pytest.raises(ValueError, match=r"forgetting\.bias: log_gates has shape \(3,\)"):
        forgetting.bias(np.zeros(3), form="key")
    with pytest.raises(TypeError, match=r"forgetting\.log_sigmoid: x is a list"):
        forgetting.log_sigmoid([0.0])
