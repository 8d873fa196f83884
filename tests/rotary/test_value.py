import math

import numpy as np
import pytest

from posref.rotary import rope, value

# Entries below 4, at most 7 keys: weights are right to a few roundings times the size of the scores (below 200), sums of
# 7 terms below 6. Far above what happens, far below what a mistake changes.
CLOSE = 7 * 6 * 200 * 16 * 2.0**-53


def by_loops(q, k, v, query_positions, key_positions, theta, *, layout, scale, undo, turned, mask=None):
    """The definition for one head, a pair (i, j) at a time; the undone form with R(j - i), not by turning back."""
    out = []
    for i, m in enumerate(query_positions):
        allowed = [j for j in range(len(k)) if mask is None or mask[i][j]]
        exponents = [
            math.exp(scale * sum(turned(q[i], m, theta, layout) * turned(k[j], key_positions[j], theta, layout)))
            for j in allowed
        ]
        total = np.zeros(v.shape[-1])
        for e, j in zip(exponents, allowed, strict=True):
            total += e / sum(exponents) * turned(v[j], key_positions[j] - m if undo else key_positions[j], theta, layout)
        out.append(total)
    return np.array(out)


def inputs(n_query, n_key, d, seed=0, lead=()):
    rng = np.random.default_rng(seed)
    return (rng.uniform(-2, 2, (*lead, n, d)) for n in (n_query, n_key, n_key))


@pytest.mark.parametrize("undo", [True, False])
def test_batches_and_heads(undo, turned):
    q, k, v = inputs(5, 5, 4, lead=(2, 3))
    theta, positions = rope.frequencies(4), np.array([[[0, 1, 2, 3, 4]], [[9, 2, 2, 40, 1]]])
    got = value.attend(q, k, v, positions, theta, layout="half", scale=0.5, undo=undo)
    assert got.shape == (2, 3, 5, 4)
    for b, h in np.ndindex(2, 3):
        at = positions[b, 0]
        expected = by_loops(q[b, h], k[b, h], v[b, h], at, at, theta, layout="half", scale=0.5, undo=undo, turned=turned)
        np.testing.assert_allclose(got[b, h], expected, rtol=0, atol=CLOSE)


def test_runs_on_50_digits(digits):
    q, k, v = inputs(3, 4, 4)
    theta, here, there = np.array([1.0, 0.125]), np.array([0.0, 2.0, 5.0]), np.array([1.0, 3.0, 4.0, 8.0])
    options = {"layout": "interleaved", "scale": 0.5, "undo": True}
    exact = value.attend(digits(q), digits(k), digits(v), digits(here), digits(theta), key_positions=digits(there), **options)
    close = value.attend(q, k, v, here, theta, key_positions=there, **options)
    np.testing.assert_allclose(close, exact.astype(float), rtol=0, atol=CLOSE)


def test_keys_of_another_number_need_positions():
    q, k = np.ones((4, 6)), np.ones((7, 6))
    with pytest.raises(ValueError, match=r"value.attend: q has 4 positions and k has 7; pass key_positions= for the keys"):
        value.attend(q, k, k, np.arange(4), rope.frequencies(6), layout="half", scale=1.0, undo=True)
