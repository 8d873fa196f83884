"""xPos: the released module, decay."""

import numpy as np
import pytest

from posref.rotary import rope, xpos


def released(x, offset=0, downscale=False):
    """microsoft/torchscale, component/xpos_relative_position.py, in numpy: positions centred on half of the length."""
    length, dim = x.shape[-2:]
    scale = (np.arange(0, dim, 2) + 0.4 * dim) / (1.4 * dim)
    first = -(length + offset) // 2
    scale = scale ** (np.arange(first, length + offset + first)[:, None] / 512)
    angle = np.arange(scale.shape[0])[:, None] * 10000.0 ** (-np.arange(dim // 2) / (dim // 2))
    scale, angle = scale[-length:], angle[-length:]
    scale = 1 / scale if downscale else scale
    cos, sin = (np.repeat(table * scale, 2, axis=-1) for table in (np.cos(angle), np.sin(angle)))
    turned = np.stack([-x[..., 1::2], x[..., 0::2]], axis=-1).reshape(x.shape)
    return x * cos + turned * sin


@pytest.mark.parametrize(("length", "offset"), [(5, 0), (6, 0), (2, 7)])
@pytest.mark.parametrize("side", ["query", "key"])
def test_torchscale(length, offset, side):
    x, m = np.random.default_rng(0).normal(size=(3, length, 8)), np.arange(offset, offset + length)
    given = [*rope.tables(m, rope.frequencies(8)), xpos.scales(m, 8, center=(length + offset + 1) // 2)]
    got = xpos.rotate(x, *given, layout="interleaved", side=side)
    np.testing.assert_allclose(got, released(x, offset, side == "key"), rtol=1e-13)


def test_scores_decay_with_the_offset():
    """With aligned pairs the score of a slow pair falls for keys in the past, and grows for keys to come."""
    x, m = np.ones((1, 8)), np.array([0, -512, 512])
    at = [*rope.tables(m, np.zeros(4)), xpos.scales(m, 8, center=0)]
    k = xpos.rotate(np.ones((3, 8)), *at, layout="half", side="key")
    now, past, future = (x @ k.T)[0]
    assert past < now < future
