"""XLNet: the functions to check, and the mistakes that implementations make."""

# Over budget: four streams of positions, and segments

import numpy as np

from posref import _require, attention
from posref.ops import Mistake, inside, result, using
from posref.ops.common import UNMASKED, of_the_first
from posref.ops.probe import painted
from posref.ops.transformer_xl import MISTAKES as TRANSFORMER_XL
from posref.relative import transformer_xl, xlnet
from posref.rotary import rope


def distances(n_query, n_key, *, attn_type, clamp_len=None):
    return xlnet.distances(n_query, n_key, attn_type=attn_type, clamp_len=clamp_len or None)


def scores(q, k, r, e, u, v, s, same, *, scale, attn_type):
    _require.choice("xlnet.scores", "attn_type", attn_type, ("bi", "uni"))
    return xlnet.scores(q, k, r, e, u, v, s, same == 1, scale=scale)


def attend(q, k, r, e, u, v, s, same, values, *, scale, attn_type):
    _require.choice("xlnet.attend", "attn_type", attn_type, ("bi", "uni"))
    mask = None if attn_type == "bi" else transformer_xl.visible(q.shape[-2], values.shape[-2])
    return attention.softmax(xlnet.scores(q, k, r, e, u, v, s, same == 1, scale=scale), mask) @ values


MEANT = {"scores": lambda a: a.attn_type == "bi" or transformer_xl.visible(a.q.shape[-2], a.k.shape[-2])}
ARRAYS = {
    "r": lambda s: painted((s.heads, s.n_key + (s.n_query if s.attn_type == "bi" else 1), s.head_dim), 6),
    "e": lambda s: painted((2, s.heads, s.head_dim), 10),
    "u": lambda s: painted((s.heads, s.head_dim), 8),
    "v": lambda s: painted((s.heads, s.head_dim), 9),
    "s": lambda s: painted((s.heads, s.head_dim), 11),
    "same": lambda s: np.indices((s.batch, 1, s.n_query, s.n_key)).sum(axis=0) // 3 % 2,
    "values": lambda s: painted((s.batch, s.heads, s.n_key, s.head_dim), 4),
}


def _seen(y, a):
    return y if a.attn_type == "bi" else np.where(transformer_xl.visible(*y.shape[-2:]), y, 0)


def _row(of):
    """Another row of r for query i and key j: of(i, j, n_query, n_key)."""

    def wrong(f, a):
        def products(q, k, r, u, v, scale):
            n_query, n_key = q.shape[-2], k.shape[-2]
            x = attention.scores(q + v[..., None, :], a.r, scale=1)
            row = of(np.arange(n_query)[:, None], np.arange(n_key), n_query, n_key)
            row = np.broadcast_to(np.clip(row, 0, x.shape[-1] - 1), (*x.shape[:-1], n_key))
            content = attention.scores(q + u[..., None, :], k, scale=1)
            defined = a.attn_type == "bi" or transformer_xl.visible(n_query, n_key)
            return scale * (content + np.take_along_axis(x, row, -1)), defined

        return inside(transformer_xl, "_products", lambda right: products)(f, a)

    return wrong


def _segment_unscaled(f, a):
    by_segment = attention.scores(a.q + a.s[..., None, :], np.swapaxes(a.e, 0, 1), scale=1)
    term = np.where(a.same == 1, by_segment[..., :1], by_segment[..., 1:])
    return f(**a) + _seen((1 - a.scale) * term, a)


MISTAKES = {
    "first_row_kept": Mistake(_row(lambda i, j, n_query, n_key: n_query + j - i - 1)).words("""
        r begins at distance n_key - 1, as in Transformer-XL
        Distances are off by one.
        Row 0 is the distance n_key: the pair (i, j) reads row n_query + j - i."""),
    "not_shifted": Mistake(_row(lambda i, j, n_query, n_key: n_query + j + 0 * i)).words("""
        the shift is left out: row i has the distances of the first row
        Every query counts from one place.
        Shift each row, so that column j of row i has the distance i + mem - j."""),
    "memory_ignored": Mistake(_row(lambda i, j, n_query, n_key: n_key - (i - j))).words("""
        distance i - j: the length of the memory is not added
        Distances are too small by its length.
        Add mem = n_key - n_query: the distance is i + mem - j."""),
    "segments_exchanged": Mistake(using(e=lambda a: a.e[::-1])).words("""
        e_0 and e_1, same and other segment, are exchanged
        Segments repel or attract wrongly.
        e_0 is for the same segment, e_1 for another."""),
    "no_segments": Mistake(using(e=lambda a: 0 * a.e)).words("""
        the segment term (q + s) . e is left out
        The model does not see the sentences of a pair.
        Add (q_i + s) . e_ij to the other two products, and scale the sum."""),
    "segment_of_the_first_batch": Mistake(of_the_first("same", -4)).words("""
        all batch rows use the segments of row 0
        Batches go wrong.
        Keep the batch axis of the segments."""),
    "no_s": Mistake(using(s=lambda a: 0 * a.s)).words("""
        q . e: the vector s is left out
        No bias of the segments.
        Add s to the queries before the product with e."""),
    "segment_not_scaled": Mistake(_segment_unscaled, only="scores").words("""
        the segment term is not scaled, the other terms are
        It outweighs content.
        Add all three products first, then scale the sum."""),
    "vectors_rotated": Mistake(using(u=lambda a: a.v, v=lambda a: a.s, s=lambda a: a.u)).words("""
        u, v, s are used in the order v, s, u
        All biases are wrong.
        u (r_w_bias) goes with the keys, v (r_r_bias) with r, s (r_s_bias) with e."""),
    "clamp_ignored": TRANSFORMER_XL["clamp_ignored"],
    "clamp_one_side": TRANSFORMER_XL["clamp_one_side"],
    "one_row_less": Mistake(result(lambda y: y[1:]), only="distances").words("""
        the list of distances begins at n_key - 1, as in Transformer-XL
        The list has another length.
        Begin at n_key: the released shift drops that row."""),
    "no_mask": Mistake(UNMASKED).words("""
        the mask is left out: keys of the future are seen
        Training looks better than decoding.
        Pass the mask transformer_xl.visible to the softmax."""),
}

FURTHER = {
    "both_segments": Mistake(using(e=lambda a: 0 * a.e + a.e.sum(axis=0))).words("""
        the vectors of both segments are added up for every pair
        Tokens of one segment and of two have the same scores.
        Choose one: e[0] for tokens of one segment, e[1] for those of two.""")
}

SCORES = {"transformer_xl": ("one", "offset", "one", "offset")}


def _head(t):
    q, k, v = t.projected(t.x)
    distances = xlnet.distances(len(t.x), len(t.x), attn_type="bi")
    r = transformer_xl.embeddings(distances, rope.frequencies(t.dim)) @ t.parameter(t.dim, t.dim)
    segments, same = t.parameter(2, 1, t.dim), np.ones((len(t.x), len(t.x)), dtype=bool)
    vectors = t.parameter(1, t.dim), t.parameter(1, t.dim), t.parameter(1, t.dim)
    return t.scored(xlnet.scores(q[None], k[None], r[None], segments, *vectors, same, scale=t.scale)[0], v)
