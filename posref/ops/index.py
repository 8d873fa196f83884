"""The index itself: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.absolute import index
from posref.ops import Mistake, using

encode = index.encode


def encode_normalized(positions, *, length, denominator):
    return index.encode_normalized(positions, length, denominator=denominator)


def steps(length, *, denominator):
    return np.diff(index.encode_normalized(np.arange(length), length, denominator=denominator), axis=0)


def _spread(s):
    """Positions over the whole length, from 0 on, out of order."""
    length = s.get("length", 64)
    return np.arange(s.batch * s.n_key).reshape(s.batch, s.n_key) * (length * 5 // 13 + 1) % length


ARRAYS = {"positions": _spread}


def _starts_at_one(f, a):
    return f(**a) + (1 if "length" not in a else 1 / (a.length - (a.denominator == "length - 1")))


def _per_position(of_positions, of_steps):
    return Mistake(
        lambda f, a: of_positions(a) if "positions" in a else np.full((a.length - 1, 1), of_steps(a)),
        only="encode_normalized steps",
    )


REPLACED = {"position_plus_one"}  # shared mistakes that have a form of their own here

MISTAKES = {
    "starts_at_one": Mistake(_starts_at_one, only="encode encode_normalized").words("""
        i + 1: positions are one too large
        Token 0 has the encoding of token 1.
        Count from 0; the first token gets 0."""),
    "other_denominator": Mistake(
        using(denominator=lambda a: {"length": "length - 1", "length - 1": "length"}[a.denominator]), only="encode_normalized"
    ).words("""
        length for length - 1, or the reverse
        Only length - 1 reaches 1.
        Divide by length - 1 if the last token is to get 1, else by length."""),
    "centered": _per_position(lambda a: 2 * (a.positions[..., None] + 0.5) / a.length - 1, lambda a: 2 / a.length).words("""
        2 (i + 1/2) / length - 1: the coordinates of DINOv3
        Values lie in (-1, 1).
        Divide the position itself; centers between -1 and 1 are DINOv3's."""),
    "unnormalized": _per_position(lambda a: a.positions[..., None], lambda a: 1).words("""
        i: the division is left out
        Values grow with the position.
        Divide by length or by length - 1, as is asked for."""),
}

FURTHER = {
    "both_sides": Mistake(lambda f, a: 2 * f(**a) - 1, only="encode_normalized").words("""
        2 x - 1: values lie in [-1, 1] instead of [0, 1]
        The middle of the text is 0.
        Divide the position, and change nothing else."""),
    "by_the_longest": Mistake(lambda f, a: a.positions[..., None] / a.positions.max(), only="encode_normalized").words("""
        positions are divided by the largest one of the batch instead of a fixed length
        A text is encoded otherwise beside a longer one.
        Divide by the length that is configured."""),
}

SCORES = {"added": ("one", "key", "query", "any")}


def _head(t):
    return t.added(index.encode(t.positions))
