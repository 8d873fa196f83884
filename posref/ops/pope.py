"""PoPE: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref import _require, attention, pairing
from posref.ops import Mistake, inside, missing, using
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
    """Other phases of the keys; queries have no phases."""
    return using(phases=lambda a: missing() if a.get("side") == "query" else change(a.phases))


def _subtracted(right, positions, frequencies, phases):
    cos, sin = right(-positions, frequencies, phases)
    return cos, -sin


MISTAKES = {
    "no_phases": Mistake(_of_keys(lambda phases: 0 * phases)).words("""
        delta = 0: the phases are left out, or are on the queries too, where they cancel
        Every feature looks at its own place first; right for a model at its start.
        Add the phases of the head to the angles of the keys, and of the keys alone."""),
    "phases_on_queries": Mistake(using(side=lambda a: "key" if a.side == "query" else missing())).words("""
        m w + delta: the queries have the phases too
        The phases cancel in the scores.
        Add phases to the angles of keys alone."""),
    "phases_subtracted": Mistake(inside(pope, "tables", lambda right: lambda *given: _subtracted(right, *given))).words("""
        n w - delta: the phases have the wrong sign
        What was looked for before a token is looked for behind it.
        Add the phases, which are 0 or below."""),
    "phases_not_clamped": Mistake(inside(pope, "clamp", lambda right: lambda phases: phases)).words("""
        delta is not clamped to -2 pi .. 0, or is wrapped modulo 2 pi
        Right until training drives a phase over an end.
        Clamp the phases to [-2 pi, 0] in every call."""),
    "phases_of_the_first_head": Mistake(_of_keys(lambda phases: np.broadcast_to(phases[:1], phases.shape))).words("""
        all heads use the phases of head 0
        Head 0 is right and no other.
        One row of phases for each key head."""),
    "no_softplus": Mistake(inside(pope, "softplus", lambda right: lambda x: x)).words("""
        x (cos, sin): features are used as magnitudes without softplus
        A feature below 0 turns its pair by half a turn.
        Take softplus of queries and keys."""),
    "relu": Mistake(inside(pope, "softplus", lambda right: lambda x: (x + np.abs(x)) / 2)).words("""
        max(x, 0): ReLU in place of softplus
        Features below 0 are lost.
        softplus(x) = ln(1 + exp(x))."""),
    "half_the_frequencies": Mistake(
        inside(pope, "frequencies", lambda right: lambda dim, base: np.tile(rope.frequencies(dim, base), 2))
    ).words("""
        base^(-2t/d), each twice: RoPE's d/2 frequencies are used for the d features
        Half of the features have the frequency of another one.
        w_c = base^(-c/d) for each of the d features."""),
    "cos_sin_swapped": Mistake(
        inside(pairing, "join", lambda right: lambda first, second, layout: right(second, first, layout)), only="encode"
    ).words("""
        [sin, cos]: the members of the pairs are exchanged
        Right if queries and keys agree, wrong with a cache of the other order.
        Cosines first."""),
    "scale_of_the_doubled_width": Mistake(using(scale=lambda a: a.scale / 2**0.5)).words("""
        (2 d)^-1/2: the scale uses the width of the encoded vectors
        Attention is too even.
        d^-1/2 with the width before it doubles; attention functions that take it from their arguments need `scale`."""),
}

SCORES = "RoPE of twice the width on softplus of the features, so scores do not have this form"


def _head(t):
    q, k, v = t.projected(t.x)
    w = pope.frequencies(t.dim)
    q = pope.encode(q, *rope.tables(t.positions, w), layout="half")
    cos, sin = pope.tables(t.positions, w, t.parameter(1, t.dim) - 1)
    return t.attended(q, pope.encode(k, cos[0], sin[0], layout="half"), v)
