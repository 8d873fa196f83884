"""KERPLE: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref.ops import inside, instead, result, using, with_words
from posref.ops.probe import painted
from posref.relative import kerple

bias = kerple.bias


ARRAYS = {"p": lambda s: abs(painted((s.heads,), 1)), "a": lambda s: abs(painted((s.heads,), 2))}
REPLACED = {"sign"}  # of positions: distances have none


def _past_alone(right):
    def bias(queries, keys, p, a, *, form):
        return np.where(keys[..., None, None, :] <= queries[..., None, :, None], right(queries, keys, p, a, form=form), 0)

    return bias


MISTAKES = with_words(
    __name__,
    sign_of_the_bias=result(lambda y: -y),
    numbers_exchanged=using(p=lambda a: a.a, a=lambda a: a.p),
    other_form=using(form=lambda a: {"log": "power", "power": "log"}[a.form]),
    a_of_zero=using(a=lambda a: 0 * a.a),
    alibi=using(p=lambda a: 0 * a.p + 1, form="power"),
    no_one_inside=instead(lambda query_positions, key_positions, p, a, form: _bare(query_positions, key_positions, p, a)),
    past_alone=inside(kerple, "bias", _past_alone),
)


def _bare(queries, keys, p, a):
    distance = abs(keys[..., None, None, :] - queries[..., None, :, None])
    return -p[:, None, None] * np.log(np.maximum(a[:, None, None] * distance, 1))


SCORES = "a curve of the distance in place of a line; alibi absolute where its power is 1"


def _head(t):
    bias = kerple.bias(t.positions, t.positions, abs(t.parameter(1)), abs(t.parameter(1)), form="log")[0]
    return t.attended(*t.projected(t.x), bias)
