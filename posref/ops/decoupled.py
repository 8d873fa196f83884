"""Decoupled RoPE: what an implementation can be asked for, and how it goes wrong. Its parts arrive turned."""

import numpy as np

from posref.ops import Mistake, using
from posref.ops.probe import painted
from posref.rotary import decoupled


def scores(q, q_turned, k, k_turned, *, scale):
    return decoupled.scores(q, q_turned, k, k_turned, scale=scale)


def absorbed_scores(q, q_turned, latents, k_turned, w_k, *, scale):
    return decoupled.absorbed_scores(q, q_turned, latents, k_turned, w_k, scale=scale)


def _of_the_content(a):
    """The scale of the content's width alone."""
    return a.scale * np.sqrt((a.q.shape[-1] + a.q_turned.shape[-1]) / a.q.shape[-1])


ARRAYS = {
    "q": lambda s: painted((s.batch, s.heads, s.n_query, 6), 1),
    "q_turned": lambda s: painted((s.batch, s.heads, s.n_query, 4), 2),
    "k": lambda s: painted((s.batch, s.heads, s.n_key, 6), 4),
    "k_turned": lambda s: painted((s.batch, 1, s.n_key, 4), 6),
    "latents": lambda s: painted((s.batch, 1, s.n_key, 5), 8),
    "w_k": lambda s: painted((s.heads, 5, 6), 9),
}

MISTAKES = {
    "content_alone": Mistake(
        using(q_turned=lambda a: 0 * a.q_turned),
        "no turned part",
        "The product of the turned parts is left out.",
        "The model sees no order.",
    ),
    "turned_alone": Mistake(
        using(q=lambda a: 0 * a.q),
        "no content",
        "The product of the contents is left out.",
        "The model sees order alone.",
    ),
    "scale_of_the_content": Mistake(
        using(scale=_of_the_content),
        "1/sqrt(d), not 1/sqrt(d + d_rope)",
        "The scale counts the width without the turned part: 128 for 192 in DeepSeek-V3.",
        "Attention is too sharp.",
    ),
    "features_reversed": Mistake(
        using(q_turned=lambda a: a.q_turned[..., ::-1]),
        "features of the query in another order",
        "Turned queries and keys have different orders of features, as two layouts have.",
        "Scores see noise.",
    ),
    "heads_share_a_matrix": Mistake(
        using(w_k=lambda a: np.broadcast_to(a.w_k[:1], a.w_k.shape)),
        "the matrix of head 0",
        "All heads are absorbed by one matrix.",
        "Head 0 right, the others wrong.",
        only="absorbed_scores",
    ),
}
