"""NEZHA: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref import offsets as relative
from posref.absolute import sinusoidal
from posref.ops import inside, using, with_words
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
    """The sinusoid's columns in another order."""
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

MISTAKES = with_words(
    __name__,
    other_convention=using(convention=lambda a: {"paper": "released", "released": "paper"}[a.convention]),
    transposed=inside(nezha, "encode", _encode),
    half_layout=_columns(lambda right, p, w: right(p, w, layout="half")),
    cos_first=_columns(_cosines_first),
    no_clip=inside(relative, "clip", lambda right: lambda o, low, high: o),
    clip_one_early=inside(relative, "clip", lambda right: lambda o, low, high: right(o, low, high - 1)),
    width_of_the_model=inside(sinusoidal, "frequencies", lambda right: lambda dim, *base: right(12 * dim, *base)[: dim // 2]),
    no_value_term=_attend(lambda keys, values: (keys, None)),
    no_position=inside(shaw, "scores", _no_position),
    value_transposed=_attend(lambda keys, values: (keys, values[..., ::-1, :])),
)

PRESETS = {"nezha": ("table", nezha.PRESETS["nezha"])}

SCORES = {"shaw clipped": ("one", "clipped", "one", "clipped")}


def _head(t):
    q, k, v = t.projected(t.x)
    table = nezha.table(4, t.dim, convention="paper")
    scores = shaw.scores(q, k, table, t.offsets, scale=t.scale)
    return scores, nezha.attend(q, k, v, table, t.offsets, scale=t.scale)
