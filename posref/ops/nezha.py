"""NEZHA: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref import offsets as relative
from posref.absolute import sinusoidal
from posref.ops import Mistake, inside, using
from posref.relative import nezha, shaw

table = nezha.table


def encode(offsets, *, dim, max_distance, convention):
    return nezha.encode(offsets, sinusoidal.frequencies(dim), max_distance=max_distance, convention=convention)


def attend(q, k, v, query_positions, key_positions, *, scale, max_distance, convention, mask=None):
    rows = nezha.table(max_distance, q.shape[-1], convention=convention)
    offsets = relative.offsets(query_positions, key_positions)
    return nezha.attend(q, k, v, rows, offsets if offsets.ndim == 2 else offsets[:, None], scale=scale, mask=mask)


ARRAYS = {"offsets": lambda s: np.arange(-2 * s.max_distance, 2 * s.max_distance + 1)}


def _encode(right):
    return lambda offsets, frequencies, **rest: right(-offsets, frequencies, **rest)


def _columns(change):
    """The columns of the sinusoid in another order."""
    return inside(sinusoidal, "encode", lambda right: lambda p, w, *, layout: change(right, p, w))


def _cosines_first(right, p, w):
    y = right(p, w, layout="interleaved")
    return np.stack([y[..., 1::2], y[..., 0::2]], axis=-1).reshape(y.shape)


def _attend(change):
    """Other tables in Shaw's attention: change(key table, value table)."""
    return inside(
        shaw, "attend", lambda right: lambda q, k, v, keys, values, o, **rest: right(q, k, v, *change(keys, values), o, **rest)
    )


def _no_position(right):
    return lambda q, k, rows, offsets, **rest: right(q, k, 0 * rows, offsets, **rest)


REPLACED = {"sign"}  # shared mistakes that have a form of their own here

MISTAKES = {
    "other_convention": Mistake(using(convention=lambda a: {"paper": "released", "released": "paper"}[a.convention])).words("""
        the frequency is applied to the index o + k instead of the offset o, or the reverse
        Every pair is turned by k w_t.
        Take the sinusoid of o for weights of the paper's form, of o + k for released ones."""),
    "transposed": Mistake(inside(nezha, "encode", _encode)).words("""
        the offset is query - key
        Sines are negated.
        The offset is key - query."""),
    "half_layout": Mistake(_columns(lambda right, p, w: right(p, w, layout="half"))).words("""
        all sines, then all cosines, instead of pairs
        Columns meet other weights.
        Alternate sine and cosine: columns 2t and 2t + 1 are pair t."""),
    "cos_first": Mistake(_columns(_cosines_first)).words("""
        cosines come before sines
        Offset 0 is (1, 0, ..).
        The sine comes first in each pair."""),
    "no_clip": Mistake(inside(relative, "clip", lambda right: lambda o, low, high: o), only="encode").words("""
        offsets are not clipped
        Vectors that were never seen in training; the paper names no clip, max_distance asks for it.
        Clip the offset to (-k, k) before the sinusoid is made."""),
    "clip_one_early": Mistake(
        inside(relative, "clip", lambda right: lambda o, low, high: right(o, low, high - 1)), only="table encode"
    ).words("""
        offsets are clipped to (-k, k - 1), DeBERTa's interval
        The far future has its neighbor's vector.
        Clip to (-k, k): the table has 2k + 1 rows."""),
    "width_of_the_model": Mistake(
        inside(sinusoidal, "frequencies", lambda right: lambda dim, *base: right(12 * dim, *base)[: dim // 2])
    ).words("""
        the frequencies use the width of the model instead of that of a head
        All pairs but the first turn too fast.
        Make the frequencies from the width of a head: 10000^(-2t / d)."""),
    "no_value_term": Mistake(_attend(lambda keys, values: (keys, None))).words("""
        the vectors for values are left out (Shaw's Eq. 3)
        Values carry no position.
        Add the vectors a_ij to the values too."""),
    "no_position": Mistake(inside(shaw, "scores", _no_position)).words("""
        the vectors for keys are left out
        The weights see no order.
        Add the vectors a_ij to the keys too."""),
    "value_transposed": Mistake(_attend(lambda keys, values: (keys, values[..., ::-1, :]))).words("""
        the offset of the values is query - key
        Sines are negated in values.
        Read keys and values from one table in one order: row r is the offset r - k."""),
}

PRESETS = {"nezha": ("table", nezha.PRESETS["nezha"])}


def _rows_of_the_other(a):
    other = {"paper": "released", "released": "paper"}[a.convention]
    return nezha.table(a.max_distance, a.q.shape[-1], convention=other)


FURTHER = {
    "values_of_the_other_convention": Mistake(
        lambda f, a: _attend(lambda keys, values: (keys, _rows_of_the_other(a)))(f, a), only="attend"
    ).words("""
        keys have the table of this convention, values that of the other
        Scores are right, values are turned by k w_t.
        Use one table for keys and values.""")
}

SCORES = {"shaw clipped": ("one", "clipped", "one", "clipped")}


def _head(t):
    q, k, v = t.projected(t.x)
    table = nezha.table(4, t.dim, convention="paper")
    scores = shaw.scores(q, k, table, t.offsets, scale=t.scale)
    return scores, nezha.attend(q, k, v, table, t.offsets, scale=t.scale)
