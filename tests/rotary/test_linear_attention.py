import math

import numpy as np
import pytest

from posref.rotary import linear_attention, rope

U = 2.0**-53


def test_elu_plus_one():
    x = np.array([-800.0, -1.0, -0.0, 0.0, 1e-3, 2.0, 800.0])
    expected = [0.0, math.exp(-1), 1, 1, 1.001, 3, 801]
    np.testing.assert_allclose(linear_attention.elu_plus_one(x), expected, rtol=2 * U, atol=0)
    # continuous with slope 1 at 0, and positive wherever e^x does not underflow
    assert linear_attention.elu_plus_one(np.array([-1e-9]))[0] == pytest.approx(1 - 1e-9, abs=1e-17)
    assert (linear_attention.elu_plus_one(np.linspace(-700, 700, 101)) > 0).all()
    np.testing.assert_allclose(linear_attention.elu_plus_one(np.array([-1, 3])), [math.exp(-1), 4], rtol=2 * U, atol=0)


def call(feature_map, causal=True):
    x, tables = np.ones((5, 4)), rope.tables(np.arange(5), rope.frequencies(4))
    return linear_attention.attend(x, x, x, *tables, feature_map=feature_map, layout="half", causal=causal)


def test_zero_denominators_are_refused_and_counted():
    message = r"linear_attention.attend: 5 of 5 queries have denominator zero; use a positive feature_map, .* elu_plus_one"
    for causal in (True, False):
        with pytest.raises(ValueError, match=message):
            call(lambda x: np.maximum(-x, 0), causal)


def test_tables_are_those_of_the_mapped_features():
    with pytest.raises(ValueError, match=r"cos has shape \(5, 2\), .* rotary_dim/2 = 4 .*, since x has shape \(5, 8\)"):
        call(lambda x: np.concatenate([x, x], axis=-1))
