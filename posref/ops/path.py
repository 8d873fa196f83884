"""PaTH: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.ops import Mistake, instead, using
from posref.ops.probe import painted
from posref.rotary import path


def scores(q, k, w, beta, *, scale):
    """The scores; those of keys after the query are never used, and are 0 here."""
    return np.tri(q.shape[-2], dtype=int) * path.scores(q, k, w, beta, scale=scale)


MEANT = {"scores": lambda a: np.tri(a.q.shape[-2]) > 0}
ARRAYS = {
    "q": lambda s: painted((s.batch, s.heads, s.n_key, s.head_dim), 1),
    "k": lambda s: painted((s.batch, s.heads, s.n_key, s.head_dim), 2),
    "w": lambda s: painted((s.batch, s.heads, s.n_key, s.head_dim), 4) / 4,
    "beta": lambda s: abs(painted((s.batch, s.heads, s.n_key), 6)),
}


def _one_step(q, k, w, beta, scale):
    along = (q * w).sum(axis=-1)
    turned = q - (beta * along)[..., None] * w
    n = q.shape[-2]
    whole = scale * (turned @ np.swapaxes(k, -1, -2)) * np.tri(n, k=-1, dtype=int)
    return whole + scale * (q @ np.swapaxes(k, -1, -2)) * np.eye(n, dtype=int)


MISTAKES = {
    "own_reflection_of_the_key": Mistake(
        using(k=lambda a: a.k - (a.beta * (a.k * a.w).sum(axis=-1))[..., None] * a.w)
    ).words("""
        H_i .. H_j: the key's own reflection is applied to it
        A token does not see itself as it is.
        Begin with the token after the key."""),
    "reflections_added": Mistake(using(beta=lambda a: -a.beta)).words("""
        1 + b w w^T: the reflection has the wrong sign
        Scores grow without bound.
        Subtract b w w^T."""),
    "half_beta": Mistake(using(beta=lambda a: a.beta / 2)).words("""
        b = sigmoid: the factor 2 of b is left out
        Nothing is ever reflected, at most projected.
        b = 2 sigmoid."""),
    "query_alone": Mistake(instead(_one_step)).words("""
        H_i for all keys: only the query's reflection is applied
        Right for the token before.
        Multiply the cached keys by every token's reflection as it comes."""),
    "no_reflections": Mistake(using(beta=lambda a: 0 * a.beta)).words("""
        q . k: the reflections are left out
        There are no positions.
        Apply them."""),
}

CAUSAL = True
SCORES = "each token in between is a reflection, which is symmetric; the rotations of RoPE are not"


def _head(t):
    q, k, v = t.projected(t.x)
    w = t.x @ t.parameter(t.dim, t.dim)
    w = w / np.sqrt((w * w).sum(axis=-1, keepdims=True))
    beta = 1 + np.tanh(t.x @ t.parameter(t.dim))
    return t.scored(path.scores(q, k, w, beta, scale=t.scale), v)
