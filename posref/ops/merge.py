"""Ways to merge content and position: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.absolute import merge, sinusoidal
from posref.ops import Mistake, instead, layers, missing, using
from posref.ops.probe import painted

add = merge.add
multiply = merge.multiply
concatenate = merge.concatenate


ARRAYS = {"x": lambda s: painted((s.batch, s.n_key, s.head_dim), 1), "p": lambda s: painted((s.n_key, s.head_dim), 2)}


def _where(asked, other):
    return using(convention=lambda a: other if a.convention == asked else missing())


def _position_first(x, p):
    return np.concatenate([np.broadcast_to(p, (*x.shape[:-1], p.shape[-1])), x], axis=-1)


MISTAKES = {
    "literal": Mistake(_where("released", "paper")).words("""
        x p: the factor is p instead of 1 + p
        Features whose encoding is 0 vanish.
        Multiply by 1 + p."""),
    "one_plus": Mistake(_where("paper", "released")).words("""
        x (1 + p): the factor is 1 + p instead of p
        A word is added.
        Multiply by p itself."""),
    "added": Mistake(instead(lambda x, p: x + p), only="multiply").words("""
        x + p: a sum in place of a product
        Another model.
        Multiply feature by feature: x p, or x (1 + p)."""),
    "multiplied": Mistake(instead(lambda x, p: x * p), only="add").words("""
        x p: a product in place of a sum
        Another model.
        Add feature by feature: x + p."""),
    "scaled": Mistake(instead(lambda x, p: x * np.sqrt(x.shape[-1]) + p), only="add").words("""
        sqrt(d) x: the embedding is scaled inside
        Scaled twice where the caller scales.
        Leave x as it is; scaling by sqrt(d) is the caller's."""),
    "position_first": Mistake(instead(_position_first), only="concatenate").words("""
        [p ; x]: the parts are in the wrong order
        A permutation of features.
        Put the embedding first: [x ; p]."""),
    "shared_row": Mistake(using(p=lambda a: a.p[:1] + 0 * a.p)).words("""
        p_0 for every token: one row is broadcast
        All tokens have one position.
        Take row i of p for token i."""),
}

FURTHER = {
    "interleaved": Mistake(
        instead(lambda x, p: np.stack([x, np.broadcast_to(p, x.shape)], axis=-1).reshape(*x.shape[:-1], -1)), only="concatenate"
    ).words("""
        features of x and p alternate
        A permutation of features.
        Put the embedding first, then the position: [x ; p].""")
}

SCORES = "how a position vector joins the input, not what it is"


def _head(t):
    p = sinusoidal.encode(t.positions, sinusoidal.frequencies(t.dim), layout=layers.LAYOUT)
    return t.attended(*t.projected(merge.multiply(t.x, p, convention="released")))
