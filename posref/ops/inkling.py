"""Inkling: what an implementation can be asked for, and how it goes wrong."""

from functools import partial

import numpy as np

from posref import attention
from posref import offsets as relative
from posref.ops import Mistake, inside, missing, using, with_words
from posref.ops.common import rounded
from posref.ops.probe import painted
from posref.relative import inkling

temperature = inkling.temperature
bias = inkling.bias


def scores(q, k, states, profiles, query_positions, key_positions, *, scale, amount=0.125, floor=4.0):
    at = query_positions, key_positions
    return inkling.scores(q, k, states, profiles, *at, scale=scale, amount=amount, floor=floor)


def attend(q, k, v, states, profiles, query_positions, key_positions, *, scale, amount=0.125, floor=4.0, mask):
    s = scores(q, k, states, profiles, query_positions, key_positions, scale=scale, amount=amount, floor=floor)
    return attention.softmax(s, mask) @ attention.with_heads_of(s, v)


EXTENTS = {"curves": 3, "extent": 7}
ARRAYS = {
    "states": lambda s: painted((s.batch, s.heads, s.n_query, s.curves), 6),
    "profiles": lambda s: painted((s.curves, s.extent), 8),
}


def _in(name, change):
    """change(right, ..) in the place of `right`, the function `name` of the specification."""
    return inside(inkling, name, lambda right: partial(change, right))


def _columns(change):
    """Another column of P, and another band: column, seen = change(distance, extent)."""

    def bias(right, states, profiles, queries, keys):
        column, seen = change(-relative.offsets(queries, keys)[..., None, :, :], profiles.shape[-1])
        return np.where(seen, relative.gather_rows(states @ profiles, np.clip(column, 0, profiles.shape[-1] - 1), 0), 0)

    return _in("bias", bias)


def _of_the_key(right, states, profiles, i, j):
    return np.swapaxes(right(states, profiles, -j, -i), -1, -2) if states.shape[-2] == j.shape[-1] else missing()


def _tau(a, at="query_positions"):
    return inkling.temperature(a[at], amount=a.amount, floor=a.floor)[..., None, :, None]


ONCE = "Multiply products and bias by tau once: q and r, or q and b, or the scores."
REPLACED = {"bias_twice"}  # of attention that adds the bias itself
MISTAKES = with_words(
    __name__,
    sign=_in("bias", lambda right, states, profiles, i, j: right(states, profiles, -i, -j)),
    last_column_beyond_the_extent=_columns(lambda t, n: (t, t >= 0)),
    wrapped=_columns(lambda t, n: (t % n, t >= 0)),
    one_column_less=_columns(lambda t, n: (t, (t >= 0) & (t < n - 1))),
    one_distance_more=_columns(lambda t, n: (t, (t >= 0) & (t <= n))),
    distance_from_one=_columns(lambda t, n: (t - 1, (t >= 1) & (t <= n))),
    profiles_reversed=using(profiles=lambda a: a.profiles[:, ::-1]),
    profiles_reshaped=using(profiles=lambda a: a.profiles.reshape(a.profiles.shape[::-1]).T),
    future_at_distance_0=_columns(lambda t, n: (t, t < n)),
    states_of_the_key=_in("bias", _of_the_key),
    states_of_the_first_head=using(states=lambda a: np.broadcast_to(a.states[..., :1, :, :], a.states.shape)),
    no_bias=using(states=lambda a: 0 * a.states),
    bias_before_scale=using(states=lambda a: a.states * a.scale),
    no_temperature=using(amount=0),
    bias_without_temperature=Mistake(
        using(states=lambda a: a.states / _tau(a)),
        "tau scale q . k + b: the temperature multiplies the products alone",
        "Right up to the position `floor` - 1, then the bias is too weak.",
        ONCE,
        kind="temperature",
    ),
    temperature_twice=Mistake(
        using(q=lambda a: a.q * _tau(a), states=lambda a: a.states * _tau(a)),
        "tau^2: queries and states have the temperature, and the scores again",
        "Right up to the position `floor` - 1, then attention is too sharp.",
        ONCE,
        kind="temperature",
    ),
    temperature_of_the_key=using(amount=0, k=lambda a: a.k * _tau(a, "key_positions")),
    counted_from_0=_in("temperature", lambda right, p, **given: right(p - 1, **given)),
    not_clamped=_in(
        "temperature", lambda _, p, amount, floor: 1 + amount * np.log((p + 1) / floor) if np.all(p >= 0) else missing()
    ),
    temperature_of_llama_4=_in(
        "temperature", lambda _, p, amount, floor: 1 + amount * np.log(1 + np.maximum(p + 1, 0) // floor)
    ),
)

FURTHER = with_words(
    __name__,
    temperature_in_bf16=_in("temperature", lambda right, p, **given: rounded(right(p, **given), 8)),
)

PRESETS = {name: ("temperature", inkling.PRESETS[name]) for name in inkling.PRESETS}

CAUSAL = True
SCORES = "Shaw's key vectors for the past, limited to mixtures of a few curves; then a temperature per query"


def _head(t):
    q, k, v = (x[None] for x in t.projected(t.x))
    states, profiles, settings = t.x[None] @ t.parameter(t.dim, 4), t.parameter(4, 16), {"amount": 0.1, "floor": t.trained}
    s = inkling.scores(q, k, states, profiles, t.positions, t.positions, scale=t.scale, **settings)
    return t.scored(s[0], v[0])
