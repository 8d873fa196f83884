"""Transformer-XL: the functions to check, and the mistakes that implementations make."""

# Over budget: tables, the shift and its garbage, four terms

import numpy as np

from posref import attention
from posref.absolute import sinusoidal
from posref.ops import Arguments, Mistake, inside, missing, result, using
from posref.ops.common import UNMASKED, rounded
from posref.ops.probe import painted
from posref.relative import transformer_xl
from posref.rotary import rope


def distances(n_query, n_key, *, bidirectional: bool, clamp_len=None):
    return transformer_xl.distances(n_query, n_key, bidirectional=bidirectional, clamp_len=clamp_len or None)


def embeddings(distances, *, dim, base=10000.0):
    return transformer_xl.embeddings(distances, sinusoidal.frequencies(dim, base))


shift = transformer_xl.shift


def scores(q, k, r, u, v, *, scale, bidirectional: bool):
    return transformer_xl.scores(q, k, r, u, v, scale=scale)


def attend(q, k, r, u, v, values, *, scale, bidirectional: bool):
    mask = None if bidirectional else transformer_xl.visible(q.shape[-2], values.shape[-2])
    return attention.softmax(transformer_xl.scores(q, k, r, u, v, scale=scale), mask) @ values


MEANT = {
    "shift": lambda a: transformer_xl.visible(*a.x.shape[-2:]),
    "scores": lambda a: a.bidirectional or transformer_xl.visible(a.q.shape[-2], a.k.shape[-2]),
}
ARRAYS = {
    "distances": lambda s: np.array([4099, 301, *range(s.n_key - 1, -s.n_query, -1)]),
    "x": lambda s: painted((s.batch, s.heads, s.n_query, s.n_query + s.n_key - 1), 1),
    "r": lambda s: painted((s.heads, s.n_key + (s.n_query - 1 if s.bidirectional else 0), s.head_dim), 6),
    "u": lambda s: painted((s.heads, s.head_dim), 8),
    "v": lambda s: painted((s.heads, s.head_dim), 9),
    "values": lambda s: painted((s.batch, s.heads, s.n_key, s.head_dim), 4),
}


def _content(q, k, u):
    return attention.scores(q + u[..., None, :], k, scale=1)


def _seen(y, bidirectional):
    """y, with zeros at later keys if attention is causal."""
    return y if bidirectional else np.where(transformer_xl.visible(*y.shape[-2:]), y, 0)


def _padded(x, keep):
    """The pad and reshape of the published shift; `keep` says which rows are kept."""
    n, width = x.shape[-2:]
    flat = np.concatenate([0 * x[..., :1], x], axis=-1).reshape(*x.shape[:-2], width + 1, n)
    return flat[..., keep, :].reshape(x.shape)


def _first_dropped(x, n_key, bidirectional):
    return missing() if bidirectional else _padded(x, slice(1, None))


def _last_dropped(x, n_key, bidirectional):
    return missing() if bidirectional else _padded(x, slice(None, -1))


def _memory_ignored(x, n_key, bidirectional):
    """The entry of the distance i - j with the query index i counted from 0, as if there were no memory."""
    n = x.shape[-2]
    row = n_key - 1 - (np.arange(n)[:, None] - np.arange(n_key))
    row = np.broadcast_to(np.clip(row, 0, x.shape[-1] - 1), (*x.shape[:-1], n_key))
    return np.take_along_axis(x, row, -1)


def _shift(move, everywhere=False):
    """Another shift of (q + v) . r; with `everywhere`, entries of later keys are not set to 0."""

    def wrong(f, a):
        if "x" in a:
            return move(a.x, a.x.shape[-1], False)

        def scores(q, k, r, u, v, *, scale):
            n_key = k.shape[-2]
            position = move(_content(q, r, v), n_key, r.shape[-2] != n_key)[..., :n_key]
            y = scale * (_content(q, k, u) + position)
            return y if everywhere else _seen(y, a.bidirectional or r.shape[-2] != n_key)

        return inside(transformer_xl, "scores", lambda right: scores)(f, a)

    return wrong


def _causal_shift(f, a):
    if not a.bidirectional:
        missing()

    def scores(q, k, r, u, v, *, scale):
        position = _padded(_content(q, r[..., : k.shape[-2], :], v), slice(1, None))
        return scale * (_content(q, k, u) + position)

    return inside(transformer_xl, "scores", lambda right: scores)(f, a)


def _reversed(f, a):
    return f(**a)[::-1] if "n_key" in a else using(r=lambda a: a.r[..., ::-1, :])(f, a)


def _row_of_the_negative(x, n_key, bidirectional):
    """After the shift, the entry of distance -d in place of d; the nearest entry if there is none."""
    if not bidirectional:
        missing()
    n = x.shape[-2]
    row = n_key - 1 + (np.arange(n)[:, None] + n_key - n - np.arange(n_key))
    return np.take_along_axis(x, np.broadcast_to(np.clip(row, 0, x.shape[-1] - 1), (*x.shape[:-1], n_key)), -1)


def _negated(f, a):
    return f(**a | {"distances": -a.distances}) if "distances" in a else _shift(_row_of_the_negative)(f, a)


def _content_scaled(f, a):
    content = _seen(_content(a.q, a.k, a.u), a.bidirectional)
    return f(**a | {"scale": 1}) - (1 - a.scale) * content


def _interleaved(right):
    return lambda positions, w, *, layout: right(positions, w, layout="interleaved")


def _one_side(f, a):
    return np.minimum(f(**a | {"clamp_len": None}), a.clamp_len) if a.clamp_len else missing()


MISTAKES = {
    "shift_dropped_at_the_end": Mistake(
        _shift(_last_dropped, everywhere=True),
        seen_in=("labmlai/annotated_deep_learning_paper_implementations#185",),
        only="shift scores",
    ).words("""
        [:-1] for [1:]: the pad and reshape drops the last row instead of the first
        Every entry has the distance of another.
        Drop the first row after the reshape: [1:]."""),
    "garbage_above_the_diagonal": Mistake(
        lambda f, a: UNMASKED(lambda **b: _shift(_first_dropped, everywhere=True)(f, Arguments(b)), a), only="attend"
    ).words("""
        there is no mask after the shift, so entries of the future hold the pad and values of the next row
        Rows leak into each other.
        Mask the entries with j > i + mem (transformer_xl.visible)."""),
    "not_shifted": Mistake(_shift(lambda x, n_key, bidirectional: x[..., :n_key])).words("""
        the shift is left out: row i has the distances of the last row
        Every query counts from the end.
        Shift each row, so that column j of row i has the distance i + mem - j."""),
    "memory_ignored": Mistake(_shift(_memory_ignored)).words("""
        distance i - j: the length of the memory is not added
        Distances are too small by its length.
        Add mem = n_key - n_query: the distance is i + mem - j."""),
    "reversed_distances": Mistake(_reversed, only="distances scores").words("""
        the rows of r start at distance 0: they are in reverse order
        Near and far change places.
        Begin with the largest distance, n_key - 1, and descend."""),
    "cos_first": Mistake(
        result(lambda y: y[..., np.roll(np.arange(y.shape[-1]), y.shape[-1] // 2)]), only="embeddings"
    ).words("""
        cosines come before sines
        A permutation of the columns: harmless in training, wrong with somebody's weights.
        Concatenate sines, then cosines."""),
    "negated_distances": Mistake(_negated).words("""
        the distance is key - query
        Past and future change places.
        The distance is query - key."""),
    "absolute_distances": Mistake(
        using(distances=lambda a: np.abs(a.distances)), seen_in=("speechbrain/speechbrain#3070",)
    ).words("""
        |i - j|: the sines of the future are not negated
        Keys before and after the query at one distance look alike.
        Keep the sign of the distance when the sinusoid is made."""),
    "causal_shift": Mistake(_causal_shift, seen_in=("espnet/espnet#2816",), only="scores attend").words("""
        the causal shift is used in an encoder: n_key rows for a bidirectional score
        Keys of the future have values of other rows.
        Make n_query + n_key - 1 rows, and shift with posref.offsets.skew."""),
    "u_and_v_swapped": Mistake(using(u=lambda a: a.v, v=lambda a: a.u)).words("""
        u meets r and v meets k: the two vectors are exchanged
        Both biases are wrong.
        u goes with the keys, v with r: (q + u) . k + (q + v) . r."""),
    "no_u": Mistake(using(u=lambda a: 0 * a.u)).words("""
        term (c), u . k, is left out
        No bias of the content.
        Add u to the queries before the product with the keys."""),
    "no_v": Mistake(using(v=lambda a: 0 * a.v)).words("""
        term (d), v . r, is left out
        No bias of the position.
        Add v to the queries before the product with r."""),
    "content_scaled_alone": Mistake(_content_scaled, only="scores").words("""
        only q . k is scaled, the position terms are not
        Position outweighs content by sqrt(d).
        Add content and position first, then scale the sum."""),
    "interleaved": Mistake(inside(sinusoidal, "encode", _interleaved)).words("""
        sin, cos, sin, cos, ..: the layout of Vaswani et al.
        Columns of R meet other weights.
        Write all sines, then all cosines."""),
    "clamp_ignored": Mistake(using(clamp_len=lambda a: None if a.clamp_len else missing())).words("""
        distances are not limited by clamp_len
        Far tokens have unseen distances.
        Clip the distances to -clamp_len .. clamp_len before the sinusoid is made."""),
    "clamp_one_side": Mistake(_one_side, only="distances").words("""
        distances are limited by a minimum alone: negative ones are not
        Far keys of the future run on.
        Clip to -clamp_len .. clamp_len, both sides."""),
    "no_mask": Mistake(UNMASKED).words("""
        the mask is left out: keys of the future are seen, with position score 0
        Training looks better than decoding.
        Pass the mask transformer_xl.visible to the softmax."""),
    "bf16_distances": Mistake(using(distances=lambda a: rounded(a.distances, 8).astype(np.int64))).words("""
        distances are held in bfloat16, which rounds those beyond 256
        Neighbors get one embedding.
        Keep distances as integers, or in float32, until the angle is made."""),
}

SCORES = {"transformer_xl": ("one", "offset", "one", "offset")}


def _head(t):
    q, k, v = t.projected(t.x)
    distances = transformer_xl.distances(len(t.x), len(t.x), bidirectional=True)
    r = transformer_xl.embeddings(distances, rope.frequencies(t.dim)) @ t.parameter(t.dim, t.dim)
    vectors = t.parameter(1, t.dim), t.parameter(1, t.dim)
    return t.scored(transformer_xl.scores(q[None], k[None], r[None], *vectors, scale=t.scale)[0], v)
