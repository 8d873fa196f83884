"""Stick-breaking attention: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref import attention
from posref.ops import Mistake, instead, result
from posref.ops.probe import ending, padded_mask, painted
from posref.relative import forgetting, stick_breaking

weights = stick_breaking.weights
remainder = stick_breaking.remainder


ARRAYS = {"scores": lambda s: ending(painted((s.batch, s.heads, s.n_query, s.n_key), 1), 100, -100), "mask": padded_mask}


def _from_the_far_end(scores, mask):
    return stick_breaking.weights(scores[..., ::-1], mask[..., ::-1])[..., ::-1]


def _shares(scores, mask):
    return np.where(mask, 1 / (1 + np.exp(-scores)), 0)


def _all_keys_break(scores, mask):
    return np.where(mask, stick_breaking.weights(scores, np.ones_like(mask)), 0)


MISTAKES = {
    "softmax": Mistake(instead(lambda scores, mask: attention.softmax(scores, mask)), only="weights").words("""
        the scores go through a softmax
        There is no order of the keys left.
        Break the stick: no softmax, no other position."""),
    "normalized": Mistake(
        result(lambda y: y / np.where(y.sum(axis=-1, keepdims=True) == 0, 1, y.sum(axis=-1, keepdims=True))), only="weights"
    ).words("""
        A / sum A: rows are divided by their sum
        A query that wants nothing attends all the same.
        Leave the remainder out, or give it to the value of the token itself."""),
    "from_the_far_end": Mistake(instead(_from_the_far_end), only="weights").words("""
        prod over l < j: the stick is broken from the first key on
        The oldest key comes first.
        Sum the logarithms from the last key backwards."""),
    "never_broken": Mistake(instead(_shares), only="weights").words("""
        sigmoid(z): the product over later keys is left out
        Sigmoid attention, which knows no order.
        Multiply by what later keys left."""),
    "own_share_left": Mistake(result(lambda y, a: y * (1 - _shares(a.scores, a.mask))), only="weights").words("""
        prod over j <= l: the product is inclusive, so a key shrinks by its own share
        Strong keys get nearly nothing.
        The product begins after the key."""),
    "masked_keys_break": Mistake(instead(_all_keys_break), only="weights").words("""
        the mask is applied to the weights alone: masked keys take their share
        Keys in the future shrink those in the past.
        Leave masked keys out of the product."""),
    "remainder_of_the_last": Mistake(
        instead(lambda scores, mask: 1 - _shares(scores, mask).sum(axis=-1)), only="remainder"
    ).words("""
        1 - sum of sigmoid(z): the remainder subtracts the shares instead of the weights
        It is negative.
        Multiply what every key leaves."""),
}

SCORES = "its attention weights are not a softmax of scores"


def _head(t):
    q, k, v = t.projected(t.x)
    scores = attention.scores(q, k, scale=t.scale)
    left = forgetting.log_sigmoid(-scores)
    c = np.cumsum(left, axis=-1) - left  # the logarithm of the weight, and its continuation to keys in the future
    mask = np.tril(np.ones(scores.shape, dtype=bool), -1)
    return scores + np.diagonal(c)[:, None] - c, stick_breaking.weights(scores, mask) @ v


def _weights(t):
    scores = attention.scores(*t.projected(t.x)[:2], scale=t.scale)
    return stick_breaking.weights(scores, np.tri(len(scores), k=-1, dtype=bool))
