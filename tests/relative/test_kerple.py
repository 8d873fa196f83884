"""KERPLE: the released layer, numbers of types, what the body refuses."""

import numpy as np
import pytest

from posref.relative import kerple

P, A = np.array([0.75, 1.5]), np.array([0.5, 0.25])


def released(n, p, a, form):
    """megatron/mpu/layers.py, ParallelKerpleLog and ParallelKerplePower without weights, in numpy: distances of the past."""
    diff = np.tril(np.arange(n)[:, None] - np.arange(n)[None])
    p, a = np.maximum(p, 0.01)[:, None, None], np.maximum(a, 0.01)[:, None, None]
    return -p * np.log(1 + a * diff) if form == "log" else -a * diff ** np.minimum(p, 2)


@pytest.mark.parametrize("form", kerple.FORMS)
def test_released(form):
    i = np.arange(9)
    got = kerple.bias(i, i, P, A, form=form)
    np.testing.assert_allclose(np.tril(got), released(9, P, A, form), rtol=1e-14)
    assert np.array_equal(got, np.swapaxes(got, -1, -2))
    assert np.array_equal(kerple.bias(i[-1:], i, P, A, form=form), got[:, -1:])


@pytest.mark.parametrize("form", kerple.FORMS)
def test_falls_with_the_distance_and_batches(form):
    queries, keys = np.array([[7], [3]]), np.stack([np.arange(7, -1, -1), np.arange(3, 11)])
    got = kerple.bias(queries, keys, P, A, form=form)
    assert got.shape == (2, 2, 1, 8)
    assert (np.diff(got[..., 0, :]) < 0).all()
    np.testing.assert_array_equal(got[0], got[1])


def test_refused():
    i = np.arange(3)
    with pytest.raises(ValueError, match=r"kerple\.bias: a runs from -0\.25 to 0\.5, expected 0 or more"):
        kerple.bias(i, i, P, np.array([0.5, -0.25]), form="log")
    with pytest.raises(ValueError, match=r"kerple\.bias: p runs from 0\.75 to 3\.0, expected 0 \.\. 2"):
        kerple.bias(i, i, np.array([3.0, 0.75]), A, form="power")
    for form in kerple.FORMS:  # |j - i|^0 is 1 at every distance, the token's own included
        with pytest.raises(ValueError, match=r"kerple\.bias: p runs from 0\.0 to 1\.0, expected positive numbers"):
            kerple.bias(i, i, np.array([0.0, 1.0]), A, form=form)
