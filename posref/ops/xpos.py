"""xPos: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.ops import Mistake, layers, missing, using
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


def _scales_at_rows(f, a):
    rows = np.arange(a.x.shape[-2])
    tables = rope.tables(per_head(a.positions, a.x), rope.frequencies(a.dim, a.base))
    scales = xpos.scales(rows, a.dim, center=a.center, scale_base=a.scale_base)
    return xpos.rotate(a.x, *tables, scales, layout=a.layout, side=a.side)


MISTAKES = {
    "other_side": Mistake(using(side=lambda a: {"query": "key", "key": "query"}[a.side])).words("""
        keys are multiplied by the factor and queries divided
        Scores grow with the distance.
        Multiply queries by the factor and divide keys by it."""),
    "both_multiplied": Mistake(using(side=lambda a: "query" if a.side == "key" else missing())).words("""
        keys are multiplied by the factor like queries, instead of divided
        Scores depend on the sum of the positions.
        Divide the keys by the factor."""),
    "unscaled": Mistake(_unscaled).words("""
        the factors are left out: plain RoPE
        Scores do not decay.
        Multiply the turned queries by zeta^((m - c) / scale_base), and divide the keys."""),
    "other_center": Mistake(using(center=lambda a: a.center + 64)).words("""
        positions are counted from another center, here 64 later
        Right if queries and keys agree, wrong with a cache of another centre.
        Use one centre for queries and keys, cached ones too."""),
    "scale_base_halved": Mistake(using(scale_base=lambda a: a.scale_base / 2)).words("""
        scale_base is halved: 256 in place of 512
        Scores decay twice as fast.
        Use the scale_base of the weights, 512 in the paper."""),
    "scales_at_rows": Mistake(_scales_at_rows, seen_in=("lucidrains/rotary-embedding-torch#27",)).words("""
        the factors are those of the rows 0, 1, 2, .. of this call, while the rotation has the positions
        Scores of cached keys decay by the wrong offset.
        Make the factors of the positions that the tables are made of."""),
    "other_layout": Mistake(using(layout=lambda a: OTHER_LAYOUT[a.layout])).words("""
        features are paired (t, t + dim/2) instead of (2t, 2t+1), or the reverse
        A valid map of the wrong features.
        Change the pairing, or permute the projections (posref.rotary.layouts)."""),
    "factor_of_the_feature": Mistake(_by_feature).words("""
        zeta_t = (t / dim + 0.4) / 1.4: the index of the pair is taken for that of its feature
        Slow pairs decay too fast.
        Take zeta_t = (2t / dim + 0.4) / 1.4 for pair t."""),
}

SCORES = {"rope": ("offset", "offset", "offset", "offset")}


def _head(t):
    q, k, v = t.projected(t.x)
    cos, sin = rope.tables(t.positions, rope.frequencies(t.dim))
    scales = xpos.scales(t.positions, t.dim, center=0)
    q, k = (xpos.rotate(y, cos, sin, scales, layout=layers.LAYOUT, side=side) for y, side in ((q, "query"), (k, "key")))
    return t.attended(q, k, v)
