"""Ways to merge content and position: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref.absolute import merge, sinusoidal
from posref.ops import instead, layers, missing, using, with_words
from posref.ops.probe import painted

add = merge.add
multiply = merge.multiply
concatenate = merge.concatenate


ARRAYS = {
    "x": lambda s: painted((s.batch, s.n_key, s.head_dim), 1),
    "p": lambda s: painted((s.n_key, s.head_dim), 2),
}


def _where(asked, other):
    return using(convention=lambda a: other if a.convention == asked else missing())


def _position_first(x, p):
    return np.concatenate([np.broadcast_to(p, (*x.shape[:-1], p.shape[-1])), x], axis=-1)


MISTAKES = with_words(
    __name__,
    literal=_where("released", "paper"),
    one_plus=_where("paper", "released"),
    added=instead(lambda x, p: x + p),
    multiplied=instead(lambda x, p: x * p),
    scaled=instead(lambda x, p: x * np.sqrt(x.shape[-1]) + p),
    position_first=instead(_position_first),
    shared_row=using(p=lambda a: a.p[:1] + 0 * a.p),
)

SCORES = "how a table joins the input, not a table"


def _head(t):
    p = sinusoidal.encode(t.positions, sinusoidal.frequencies(t.dim), layout=layers.LAYOUT)
    return t.attended(*t.projected(merge.multiply(t.x, p, convention="released")))
