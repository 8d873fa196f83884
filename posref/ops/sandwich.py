"""Sandwich: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.ops import Mistake, inside, result
from posref.relative import sandwich


def bias(query_positions, key_positions, *, heads, dim, base=10000.0):
    return sandwich.bias(query_positions, key_positions, sandwich.frequencies(dim, base), sandwich.slopes(heads))


def _of_sinusoids(a):
    """The error of products of sinusoids: each angle is off by |p| w (3 |ln w| + 4) roundoffs; the unit here is three
    roundoffs."""
    w, m = sandwich.frequencies(a.dim, a.base), sandwich.slopes(a.heads)
    reach = abs(a.query_positions)[..., None, :, None] + abs(a.key_positions)[..., None, None, :]
    return m[:, None, None] * (reach * (w * (3 * abs(np.log(w)) + 4)).sum() / 3 + a.dim)


INSIDE = {"bias": _of_sinusoids}
REPLACED = {"sign"}  # of positions: cosines have none


def _slopes(change):
    return inside(sandwich, "slopes", lambda right: lambda heads: change(right, heads))


def _bias(change):
    return inside(sandwich, "bias", lambda right: lambda i, j, w, m: change(right, i, j, w, m))


MISTAKES = {
    "sign_of_the_bias": Mistake(result(lambda y: -y)).words("""
        the bias has the wrong sign: it rewards distance
        Far tokens are preferred.
        The bias is 0 or below."""),
    "frequency_one": Mistake(
        inside(sandwich, "frequencies", lambda right: lambda dim, base: base ** (-2 * np.arange(dim // 2) / dim))
    ).words("""
        t starts at 0: the frequencies of the sinusoid are taken, which begin at 1
        Every second or third token is preferred.
        Begin at t = 1."""),
    "slopes_multiplied": Mistake(_slopes(lambda right, heads: 1 / right(heads))).words("""
        8 a / h: the bias is multiplied by its divisor
        The last head is the sharpest.
        Divide by 8 a / h."""),
    "slopes_of_alibi": Mistake(_slopes(lambda right, heads: 2 ** (-8 * np.arange(1, heads + 1) / heads))).words("""
        2^(-8 a / h): the slopes of ALiBi are used
        All heads but one are off.
        h / (8 a)."""),
    "heads_from_zero": Mistake(_slopes(lambda right, heads: heads / (8 * np.arange(2, heads + 2)))).words("""
        h / (8 (a + 1)): the index of the head is one too large
        All heads are too flat.
        The first head has h / 8."""),
    "average": Mistake(_bias(lambda right, i, j, w, m: right(i, j, w, m) / w.shape[-1])).words("""
        the cosines are averaged over the frequencies instead of summed
        d/2 times too flat.
        Add them up."""),
    "no_constant": Mistake(_bias(lambda right, i, j, w, m: right(i, j, w, m) + w.shape[-1] * m[:, None, None])).words("""
        d/2 is not subtracted from the sum of cosines
        Equal after softmax, not before.
        Subtract d/2, or compare after the softmax."""),
}

SCORES = "the bias is a fixed sum of cosines of the offset; any bias can give it"


def _head(t):
    bias = sandwich.bias(t.positions, t.positions, sandwich.frequencies(t.dim), sandwich.slopes(1))[0]
    return t.attended(*t.projected(t.x), bias)
