"""PoPE: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref import _require, attention, pairing
from posref.ops import inside, missing, using, with_words
from posref.ops.common import per_head
from posref.ops.probe import ending, painted
from posref.rotary import pope, rope


def encode(x, positions, phases, *, dim, base=10000.0, layout, side):
    w = pope.frequencies(dim, base)
    _require.choice("pope.encode", "side", side, ("query", "key"))
    if side == "query":
        return pope.encode(x, *rope.tables(per_head(positions, x), w), layout=layout)
    of_texts = positions[(None,) * (x.ndim - 2 - positions.ndim)]
    return pope.encode(x, *pope.tables(of_texts, w, pope.clamp(phases)), layout=layout)


def scores(q, k, query_positions, key_positions, phases, *, dim, base=10000.0, scale):
    given = {"dim": dim, "base": base, "layout": "half"}
    turned = encode(q, query_positions, phases, side="query", **given)
    return attention.scores(turned, encode(k, key_positions, phases, side="key", **given), scale=scale)


ARRAYS = {
    "x": lambda s: ending(painted((s.batch, s.heads, s.n_key, s.head_dim), 1), 100, -100),
    "phases": lambda s: 4 * painted((s.heads, s.head_dim), 4),  # on both sides of where they are clamped
}


def _of_keys(change):
    """Other phases; queries have none."""
    return using(phases=lambda a: missing() if a.get("side") == "query" else change(a.phases))


def _subtracted(right, positions, frequencies, phases):
    cos, sin = right(-positions, frequencies, phases)
    return cos, -sin


MISTAKES = with_words(
    __name__,
    no_phases=_of_keys(lambda phases: 0 * phases),
    phases_on_queries=using(side=lambda a: "key" if a.side == "query" else missing()),
    phases_subtracted=inside(pope, "tables", lambda right: lambda *given: _subtracted(right, *given)),
    phases_not_clamped=inside(pope, "clamp", lambda right: lambda phases: phases),
    phases_of_the_first_head=_of_keys(lambda phases: np.broadcast_to(phases[:1], phases.shape)),
    no_softplus=inside(pope, "softplus", lambda right: lambda x: x),
    relu=inside(pope, "softplus", lambda right: lambda x: (x + np.abs(x)) / 2),
    half_the_frequencies=inside(pope, "frequencies", lambda right: lambda dim, base: np.tile(rope.frequencies(dim, base), 2)),
    cos_sin_swapped=inside(pairing, "join", lambda right: lambda first, second, layout: right(second, first, layout)),
    scale_of_the_doubled_width=using(scale=lambda a: a.scale / 2**0.5),
)

SCORES = "rope of twice the width on lengths that softplus makes; not affine in the content"


def _head(t):
    q, k, v = t.projected(t.x)
    w = pope.frequencies(t.dim)
    q = pope.encode(q, *rope.tables(t.positions, w), layout="half")
    cos, sin = pope.tables(t.positions, w, t.parameter(1, t.dim) - 1)
    return t.attended(q, pope.encode(k, cos[0], sin[0], layout="half"), v)
