"""Retention: the normalizations of the released code are factors of a row, which the norm behind them does not see."""

import numpy as np

from posref.state import retention

HEADS, N, D = 2, 7, 4


def given():
    rng = np.random.default_rng(0)
    return (*rng.normal(size=(3, HEADS, N, D)), retention.decays(HEADS))


def released(q, k, v, g):
    """torchscale 4d1e0e82e5, torchscale/component/multiscale_retention.py parallel_forward, in numpy."""
    back = np.arange(N)[:, None] - np.arange(N)
    mask = np.tril(g[:, None, None] ** np.maximum(back, 0))
    mask = mask / np.sqrt(mask.sum(axis=-1, keepdims=True))
    scores = (q @ np.swapaxes(D**-0.5 * k, -1, -2)) * mask
    return scores / np.clip(abs(scores).sum(axis=-1, keepdims=True), 1, 5e4) @ v


def released_step(q, k, v, g):
    """recurrent_forward of the same file: kv and its scale, token by token."""
    kv, scale, rows = np.zeros((HEADS, D, D)), np.zeros(HEADS), []
    for t in range(N):
        before, scale = scale, scale * g + 1
        kv = kv * (np.sqrt(before) * g / np.sqrt(scale))[:, None, None]
        kv = kv + D**-0.5 * k[:, t, :, None] * v[:, t, None, :] / np.sqrt(scale)[:, None, None]
        rows.append((q[:, t, :, None] * kv).sum(axis=-2))
    return np.stack(rows, axis=-2)


def direction(y):
    return y / np.abs(y).max(axis=-1, keepdims=True)


def test_released_up_to_the_norm():
    """Sums of 7 products of dot products over 4 features; the sizes of their terms beside the largest entry of a row."""
    ours = retention.recurrent(*given(), scale=1).output
    size = retention.recurrent(*map(abs, given()), scale=1).output
    cancelled = np.max(size / np.abs(ours).max(axis=-1, keepdims=True))
    for theirs in (released(*given()), released_step(*given())):
        assert np.abs(direction(theirs) - direction(ours)).max() <= 2 * 40 * 2**-53 * cancelled
        assert np.abs(theirs - ours).max() > 0.1
