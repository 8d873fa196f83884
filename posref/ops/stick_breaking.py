"""Stick-breaking attention: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref import attention
from posref.ops import instead, result, with_words
from posref.ops.probe import ending, padded_mask, painted
from posref.relative import forgetting, stick_breaking

weights = stick_breaking.weights
remainder = stick_breaking.remainder


ARRAYS = {
    "scores": lambda s: ending(painted((s.batch, s.heads, s.n_query, s.n_key), 1), 100, -100),
    "mask": padded_mask,
}


def _from_the_far_end(scores, mask):
    return stick_breaking.weights(scores[..., ::-1], mask[..., ::-1])[..., ::-1]


def _shares(scores, mask):
    return np.where(mask, 1 / (1 + np.exp(-scores)), 0)


def _all_keys_break(scores, mask):
    return np.where(mask, stick_breaking.weights(scores, np.ones_like(mask)), 0)


MISTAKES = with_words(
    __name__,
    softmax=instead(lambda scores, mask: attention.softmax(scores, mask)),
    normalized=result(lambda y: y / np.where(y.sum(axis=-1, keepdims=True) == 0, 1, y.sum(axis=-1, keepdims=True))),
    from_the_far_end=instead(_from_the_far_end),
    never_broken=instead(_shares),
    own_share_left=result(lambda y, a: y * (1 - _shares(a.scores, a.mask))),
    masked_keys_break=instead(_all_keys_break),
    remainder_of_the_last=instead(lambda scores, mask: 1 - _shares(scores, mask).sum(axis=-1)),
)

SCORES = "weights that are no softmax of scores"


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
