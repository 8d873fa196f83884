"""Decoupled RoPE: the functions to check, and the mistakes that implementations make. Its rotary parts arrive rotated."""

import numpy as np

from posref.ops import Mistake, layers, using
from posref.ops.attention import MISTAKES as ATTENTION
from posref.ops.common import UNMASKED, of_the_first
from posref.ops.probe import padded_mask, painted
from posref.rotary import decoupled, rope


def scores(q, q_turned, k, k_turned, *, scale, key_heads=None):
    return decoupled.scores(q, q_turned, k, k_turned, scale=scale)


absorbed_scores = decoupled.absorbed_scores


def attend(q, q_turned, k, k_turned, v, mask=None, *, scale, key_heads=None):
    return decoupled.attend(q, q_turned, k, k_turned, v, scale=scale, mask=mask)


def _each_by_its_width(f, a):
    """Each product scaled by its own width; `scale` has the joint width, which the queries correct."""
    widths = a.q.shape[-1], a.q_turned.shape[-1]
    content, turned = (np.sqrt(sum(widths) / width) for width in widths)
    return f(**a | {"q": content * a.q, "q_turned": turned * a.q_turned})


def _of_the_content(a):
    """The scale of the content's width only."""
    return a.scale * np.sqrt((a.q.shape[-1] + a.q_turned.shape[-1]) / a.q.shape[-1])


def _keys_turned_first(a):
    return np.concatenate([np.broadcast_to(a.k_turned, (*a.k.shape[:-1], a.k_turned.shape[-1])), a.k], axis=-1)


ARRAYS = {
    "q": lambda s: painted((s.batch, s.heads, s.n_query, 6), 1),
    "q_turned": lambda s: painted((s.batch, s.heads, s.n_query, 4), 2),
    "k": lambda s: painted((s.batch, s.get("key_heads") or s.heads, s.n_key, 6), 4),
    "k_turned": lambda s: painted((s.batch, 1, s.n_key, 4), 6),
    "latents": lambda s: painted((s.batch, 1, s.n_key, 5), 8),
    "w_k": lambda s: painted((s.heads, 5, 6), 9),
    "mask": padded_mask,
}

MISTAKES = {
    "content_alone": Mistake(using(q_turned=lambda a: 0 * a.q_turned)).words("""
        the product of the rotated parts is left out
        The model sees no order.
        Add the product of the turned parts to the scores."""),
    "turned_alone": Mistake(using(q=lambda a: 0 * a.q)).words("""
        the product of the contents is left out
        The model sees order alone.
        Add the product of the contents to the scores."""),
    "scale_of_the_content": Mistake(using(scale=_of_the_content)).words("""
        1/sqrt(d) instead of 1/sqrt(d + d_rope): the scale leaves out the rotated part, 128 for 192 in DeepSeek-V3
        Attention is too sharp.
        Divide by the root of the whole width, content and turned part together."""),
    "each_by_its_width": Mistake(_each_by_its_width).words("""
        1/sqrt(d) and 1/sqrt(d_rope): each part is scaled by its own width
        Position weighs too much.
        One scale, (d + d_rope)^-1/2, for the sum."""),
    "turned_unscaled": Mistake(using(q_turned=lambda a: a.q_turned / a.scale)).words("""
        the rotated part is not scaled
        Position outweighs content.
        Scale the sum of both products."""),
    "heads_tiled": ATTENTION["heads_tiled"],
    "no_mask": Mistake(UNMASKED).words("""
        the mask is left out: masked keys are seen
        Loss is too good in training, text is bad in generation.
        Apply the mask to the scores before the softmax."""),
    "features_reversed": Mistake(using(q_turned=lambda a: a.q_turned[..., ::-1])).words("""
        rotated queries and keys order their features differently, as two layouts do
        Scores see noise.
        Turn queries and keys with one layout, and join their parts in one order."""),
    "heads_share_a_matrix": Mistake(of_the_first("w_k", -3), only="absorbed_scores").words("""
        all heads are absorbed by the matrix of head 0
        Head 0 right, the others wrong.
        Absorb into every head its own matrix."""),
}

FURTHER = {
    f"parts_of_{these}_exchanged": Mistake(
        using(
            **{
                name: lambda a, joined=joined: joined(a)[..., : a.q.shape[-1]],
                f"{name}_turned": lambda a, joined=joined: joined(a)[..., a.q.shape[-1] :],
            }
        ),
        only="scores attend",
    ).words(f"""
        {these} are joined as (rotated, content), {others} as (content, rotated)
        Rotated features meet contents: scores are noise.
        Join the parts of queries and keys in one order.""")
    for name, these, others, joined in (
        ("q", "queries", "keys", lambda a: np.concatenate([a.q_turned, a.q], axis=-1)),
        ("k", "keys", "queries", _keys_turned_first),
    )
}

SCORES = {"rope": ("offset", "offset", "offset", "offset")}


def _head(t):
    q, k, v = t.projected(t.x)
    cos, sin = rope.tables(t.positions, rope.frequencies(t.dim))
    q_turned, k_turned = (rope.rotate(t.x @ t.parameter(t.dim, t.dim), cos, sin, layout=layers.LAYOUT) for _ in range(2))
    return t.scored(decoupled.scores(q, q_turned, k, k_turned, scale=(2 * t.dim) ** -0.5), v)
