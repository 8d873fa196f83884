"""FIRE: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.ops import Mistake, inside, instead, using
from posref.ops.probe import painted
from posref.relative import fire


def bias(query_positions, key_positions, w_1, b_1, w_2, b_2, *, c=0.125, threshold=4.0, eps=2.0**-20):
    x = fire.progress(query_positions, key_positions, c=c, threshold=threshold, eps=eps)
    return fire.network(x, w_1, b_1, w_2, b_2)


ARRAYS = {
    "w_1": lambda s: painted((6,), 1),
    "b_1": lambda s: painted((6,), 2),
    "w_2": lambda s: painted((6, s.heads), 4),
    "b_2": lambda s: painted((s.heads,), 6),
}


def _progress(change):
    return inside(fire, "progress", lambda right: lambda i, j, *, c, threshold, eps: change(right, i, j, c, threshold, eps))


def _share_of_the_key(right, i, j, c, threshold, eps):
    swapped = right(j, i, c=c, threshold=threshold, eps=eps)
    return np.swapaxes(swapped, -1, -2)


def _no_logarithm(right, i, j, c, threshold, eps):
    distance = abs(j[..., None, :] - i[..., None])
    return distance / np.maximum(i, threshold)[..., None]


def _not_normalized(right, i, j, c, threshold, eps):
    return np.log(1 + c * abs(j[..., None, :] - i[..., None]))


def _activated(f):
    def formula(w_1, b_1, w_2, b_2, query_positions, key_positions, c, threshold, eps):
        x = fire.progress(query_positions, key_positions, c=c, threshold=threshold, eps=eps)
        return np.moveaxis(f(x[..., None] * w_1 + b_1) @ w_2 + b_2, -1, -3)

    return instead(formula)


def _gelu(h):
    """h Phi(h); the integral of the normal density from 0 to h by Gauss's rule, to 15 digits for |h| < 8."""
    at, weights = np.polynomial.legendre.leggauss(32)
    density = np.exp(-((h[..., None] * (1 + at) / 2) ** 2) / 2)
    return h / 2 + h * h * (density * weights).sum(axis=-1) / np.sqrt(8 * np.pi)


MISTAKES = {
    "no_threshold": Mistake(using(threshold=2.0**-20)).words("""
        max(i, 0): the threshold is left out
        The first tokens see their neighbors as far away.
        max(i, |m L|) in the denominator."""),
    "always_the_threshold": Mistake(
        _progress(lambda right, i, j, c, threshold, eps: right(0 * i, j - i[..., :1], c=c, threshold=threshold, eps=eps))
    ).words("""
        |m L| is the denominator in every row: the position of the query is left out
        Right for the first query alone.
        One denominator a query."""),
    "counted_from_one": Mistake(
        using(query_positions=lambda a: a.query_positions + 1, key_positions=lambda a: a.key_positions + 1), kind="positions"
    ).words("""
        max(i + 1, L): positions are counted from 1
        Distances are right and denominators are not; less so the later the query.
        Count from 0."""),
    "not_normalized": Mistake(_progress(_not_normalized)).words("""
        ln(1 + c |i - j|): the denominator is left out
        Far tokens leave the range that was trained.
        Divide by the logarithm at the query."""),
    "no_logarithm": Mistake(_progress(_no_logarithm)).words("""
        |i - j| / max(i, L): the logarithms are left out
        Near tokens are all at 0.
        Take ln(1 + c x) of both."""),
    "share_of_the_key": Mistake(_progress(_share_of_the_key)).words("""
        max(j, L): the denominator uses the key's position
        Near keys of a late query look far.
        The denominator is the query's."""),
    "no_relu": Mistake(_activated(lambda h: h)).words("""
        W_2 (w_1 x + b_1) + b_2: the network has no hidden nonlinearity
        A line.
        relu between the layers."""),
    "gelu": Mistake(_activated(_gelu)).words("""
        W_2 gelu(w_1 x + b_1) + b_2: the hidden nonlinearity is torch.nn.GELU()
        Close for large numbers, not for those around 0.
        relu between the layers."""),
    "gelu_by_tanh": Mistake(_activated(lambda h: h / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3))))).words("""
        W_2 gelu(w_1 x + b_1) + b_2 with the tanh approximation, the default of jax.nn.gelu
        Close for large numbers, not for those around 0.
        relu between the layers."""),
    "no_output_bias": Mistake(using(b_2=lambda a: 0 * a.b_2)).words("""
        b_2 = 0: the last layer has no bias
        Equal after softmax, not before.
        Add b_2, or compare after the softmax."""),
}
REPLACED = {"sign"}  # of positions: distances have none

SCORES = "the bias is a network of the distance and of the query's position"


def _head(t):
    width = 4
    x = fire.progress(t.positions, t.positions, c=0.1, threshold=t.trained / 8, eps=1e-6)
    layers = t.parameter(width), t.parameter(width), t.parameter(width, 1), t.parameter(1)
    return t.attended(*t.projected(t.x), fire.network(x, *layers)[0])
