"""xPos: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref.ops import layers, missing, using, with_words
from posref.ops.common import OTHER_LAYOUT, per_head
from posref.rotary import rope, xpos


def rotate(x, positions, *, dim, base=10000.0, layout, side, center=0.0, scale_base=512.0):
    at = per_head(positions, x)
    scales = xpos.scales(at, dim, center=center, scale_base=scale_base)
    return xpos.rotate(x, *rope.tables(at, rope.frequencies(dim, base)), scales, layout=layout, side=side)


def _unscaled(f, a):
    tables = rope.tables(per_head(a.positions, a.x), rope.frequencies(a.dim, a.base))
    return rope.rotate(a.x, *tables, layout=a.layout)


def _by_feature(f, a):
    at = per_head(a.positions, a.x)
    zeta = (np.arange(a.dim // 2) / a.dim + 2 / 5) / (7 / 5)
    scales = zeta ** ((at[..., None] - a.center) / a.scale_base)
    tables = rope.tables(at, rope.frequencies(a.dim, a.base))
    return xpos.rotate(a.x, *tables, scales, layout=a.layout, side=a.side)


MISTAKES = with_words(
    __name__,
    other_side=using(side=lambda a: {"query": "key", "key": "query"}[a.side]),
    both_multiplied=using(side=lambda a: "query" if a.side == "key" else missing()),
    unscaled=_unscaled,
    other_center=using(center=lambda a: a.center + 64),
    scale_base_halved=using(scale_base=lambda a: a.scale_base / 2),
    other_layout=using(layout=lambda a: OTHER_LAYOUT[a.layout]),
    factor_of_the_feature=_by_feature,
)

SCORES = {"rope": ("offset", "offset", "offset", "offset")}


def _head(t):
    q, k, v = t.projected(t.x)
    cos, sin = rope.tables(t.positions, rope.frequencies(t.dim))
    scales = xpos.scales(t.positions, t.dim, center=0)
    q, k = (xpos.rotate(y, cos, sin, scales, layout=layers.LAYOUT, side=side) for y, side in ((q, "query"), (k, "key")))
    return t.attended(q, k, v)
