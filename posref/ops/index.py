"""The index itself: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref.absolute import index
from posref.ops import using, with_words

encode = index.encode


def encode_normalized(positions, *, length, denominator):
    return index.encode_normalized(positions, length, denominator=denominator)


def steps(length, *, denominator):
    return np.diff(index.encode_normalized(np.arange(length), length, denominator=denominator), axis=0)


def _spread(s):
    """Positions all over the length, from 0 on, out of order."""
    length = s.get("length", 64)
    return np.arange(s.batch * s.n_key).reshape(s.batch, s.n_key) * (length * 5 // 13 + 1) % length


ARRAYS = {"positions": _spread}


def _starts_at_one(f, a):
    return f(**a) + (1 if "length" not in a else 1 / (a.length - (a.denominator == "length - 1")))


def _per_position(of_positions, of_steps):
    return lambda f, a: of_positions(a) if "positions" in a else np.full((a.length - 1, 1), of_steps(a))


REPLACED = {"position_plus_one"}  # shared mistakes that have a form of their own here

MISTAKES = with_words(
    __name__,
    starts_at_one=_starts_at_one,
    other_denominator=using(denominator=lambda a: {"length": "length - 1", "length - 1": "length"}[a.denominator]),
    centered=_per_position(lambda a: 2 * (a.positions[..., None] + 0.5) / a.length - 1, lambda a: 2 / a.length),
    unnormalized=_per_position(lambda a: a.positions[..., None], lambda a: 1),
)

SCORES = {"added": ("one", "key", "query", "any")}


def _head(t):
    return t.added(index.encode(t.positions))
