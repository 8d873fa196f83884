"""PaTH: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref.ops import instead, using, with_words
from posref.ops.probe import painted
from posref.rotary import path


def scores(q, k, w, beta, *, scale):
    """Keys after the query are not attended to: 0, and any number is as good."""
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


MISTAKES = with_words(
    __name__,
    own_reflection_of_the_key=using(k=lambda a: a.k - (a.beta * (a.k * a.w).sum(axis=-1))[..., None] * a.w),
    reflections_added=using(beta=lambda a: -a.beta),
    half_beta=using(beta=lambda a: a.beta / 2),
    query_alone=instead(_one_step),
    no_reflections=using(beta=lambda a: 0 * a.beta),
)

CAUSAL = True
SCORES = "products of reflections of the tokens in between; no RoPE, whose turns are not symmetric"


def _head(t):
    q, k, v = t.projected(t.x)
    w = t.x @ t.parameter(t.dim, t.dim)
    w = w / np.sqrt((w * w).sum(axis=-1, keepdims=True))
    beta = 1 + np.tanh(t.x @ t.parameter(t.dim))
    return t.scored(path.scores(q, k, w, beta, scale=t.scale), v)
