"""Sandwich: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref.ops import inside, result, with_words
from posref.relative import sandwich


def bias(query_positions, key_positions, *, heads, dim, base=10000.0):
    return sandwich.bias(query_positions, key_positions, sandwich.frequencies(dim, base), sandwich.slopes(heads))


def _of_sinusoids(a):
    """What products of sinusoids are off, each with an angle of |p| w (3 |ln w| + 4) roundings, a third of them."""
    w, m = sandwich.frequencies(a.dim, a.base), sandwich.slopes(a.heads)
    reach = abs(a.query_positions)[..., None, :, None] + abs(a.key_positions)[..., None, None, :]
    return m[:, None, None] * (reach * (w * (3 * abs(np.log(w)) + 4)).sum() / 3 + a.dim)


INSIDE = {"bias": _of_sinusoids}
REPLACED = {"sign"}  # of positions: cosines have none


def _slopes(change):
    return inside(sandwich, "slopes", lambda right: lambda heads: change(right, heads))


def _bias(change):
    return inside(sandwich, "bias", lambda right: lambda i, j, w, m: change(right, i, j, w, m))


MISTAKES = with_words(
    __name__,
    sign_of_the_bias=result(lambda y: -y),
    frequency_one=inside(sandwich, "frequencies", lambda right: lambda dim, base: base ** (-2 * np.arange(dim // 2) / dim)),
    slopes_multiplied=_slopes(lambda right, heads: 1 / right(heads)),
    slopes_of_alibi=_slopes(lambda right, heads: 2 ** (-8 * np.arange(1, heads + 1) / heads)),
    heads_from_zero=_slopes(lambda right, heads: heads / (8 * np.arange(2, heads + 2))),
    average=_bias(lambda right, i, j, w, m: right(i, j, w, m) / w.shape[-1]),
    no_constant=_bias(lambda right, i, j, w, m: right(i, j, w, m) + w.shape[-1] * m[:, None, None]),
)

SCORES = "one curve of the distance, a sum of cosines, and no trained number; any bias expresses it"


def _head(t):
    bias = sandwich.bias(t.positions, t.positions, sandwich.frequencies(t.dim), sandwich.slopes(1))[0]
    return t.attended(*t.projected(t.x), bias)
