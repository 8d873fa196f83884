"""KERPLE: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.ops import Mistake, inside, instead, result, using
from posref.ops.probe import painted
from posref.relative import kerple

bias = kerple.bias


ARRAYS = {"p": lambda s: abs(painted((s.heads,), 1)), "a": lambda s: abs(painted((s.heads,), 2))}
REPLACED = {"sign"}  # of positions: distances have none


def _past_alone(right):
    def bias(queries, keys, p, a, *, form):
        return np.where(keys[..., None, None, :] <= queries[..., None, :, None], right(queries, keys, p, a, form=form), 0)

    return bias


MISTAKES = {
    "sign_of_the_bias": Mistake(result(lambda y: -y)).words("""
        the bias has the wrong sign: it rewards distance
        Far tokens are preferred.
        The bias is 0 or below."""),
    "numbers_exchanged": Mistake(using(p=lambda a: a.a, a=lambda a: a.p)).words("""
        p and a are exchanged
        Every curve is another.
        In log, p multiplies and a is inside; in power, a multiplies and p is the exponent."""),
    "other_form": Mistake(using(form=lambda a: {"log": "power", "power": "log"}[a.form])).words("""
        the logarithmic form is used for the power form, or the reverse
        Far tokens weigh much too little, or too much.
        pos_emb kerple_log or kerple_power of the configuration."""),
    "a_of_zero": Mistake(using(a=lambda a: 0 * a.a)).words("""
        a = 0: it starts at 0 and is not trained
        The bias is 0 everywhere.
        Begin above 0 and train both numbers."""),
    "alibi": Mistake(using(p=lambda a: 0 * a.p + 1, form="power")).words("""
        p = 1: the exponent is left out
        ALiBi.
        Raise the distance to the power p, or take its logarithm."""),
    "no_one_inside": Mistake(
        instead(lambda query_positions, key_positions, p, a, form: _bare(query_positions, key_positions, p, a))
    ).words("""
        ln(max(a |j - i|, 1)): the 1 is a lower bound instead of a term
        Near tokens are one.
        ln(1 + a |j - i|)."""),
    "past_alone": Mistake(inside(kerple, "bias", _past_alone)).words("""
        the bias is 0 for keys in the future: the distance is taken from the lower triangle
        Right with a causal mask; without one the future is near.
        Take the absolute value."""),
}


def _bare(queries, keys, p, a):
    distance = abs(keys[..., None, None, :] - queries[..., None, :, None])
    return -p[:, None, None] * np.log(np.maximum(a[:, None, None] * distance, 1))


SCORES = "the bias is a curve of the distance; alibi absolute where its power is 1"


def _head(t):
    bias = kerple.bias(t.positions, t.positions, abs(t.parameter(1)), abs(t.parameter(1)), form="log")[0]
    return t.attended(*t.projected(t.x), bias)
