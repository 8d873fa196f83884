"""Permuted projections: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref import attention
from posref.ops import Mistake, inside, missing, using
from posref.ops.common import OTHER_LAYOUT
from posref.ops.probe import painted
from posref.rotary import layouts, rope


def scores(x, positions, w_q, w_k, b_q, b_k, *, dim, head_dim, heads, key_heads, base=10000.0, scale, source, target):
    positions = positions[:, None] if positions.ndim == 2 else positions
    tables = rope.tables(positions, rope.frequencies(dim, base))

    def turned(weight, bias, heads):
        rows = {"heads": heads, "rotary_dim": dim, "source": source, "target": target}
        weight, bias = (layouts.permute_projection(each, **rows) for each in (weight, bias))
        y = np.swapaxes((x @ weight.T + bias).reshape(*x.shape[:-1], heads, head_dim), 1, 2)
        return rope.rotate(y, *tables, layout=target, rotary_dim=dim)

    k = np.repeat(turned(w_k, b_k, key_heads), heads // key_heads, axis=1)
    return attention.scores(turned(w_q, b_q, heads), k, scale=scale)


ARRAYS = {
    "x": lambda s: painted((s.batch, s.n_key, 5), 1),
    "w_q": lambda s: painted((s.heads * s.head_dim, 5), 2),
    "w_k": lambda s: painted((s.key_heads * s.head_dim, 5), 4),
    "b_q": lambda s: painted((s.heads * s.head_dim,), 6),
    "b_k": lambda s: painted((s.key_heads * s.head_dim,), 8),
}


def _permute(change):
    """Another permutation of the rows: change(right, arguments of the op, weight, keywords)."""
    return inside(layouts, "permute_projection", lambda right, a: lambda weight, **rows: change(right, a, weight, rows))


def _of_source(right, a):
    return lambda x, cos, sin, *, layout, **rest: right(x, cos, sin, layout=a.source, **rest)


def _of_keys(weight, a):
    return weight.shape[0] == a.w_k.shape[0]


MISTAKES = {
    "not_converted": Mistake(_permute(lambda right, a, w, rows: w), seen_in=("huggingface/transformers#25199",)).words("""
        the weights are not converted: weights trained for one layout are rotated in the other
        Text begins well and turns into garbage.
        Permute the rows of W_q and W_k with their biases, or rotate in the layout of the weights."""),
    "switch_forgotten": Mistake(inside(rope, "rotate", _of_source)).words("""
        the weights are converted, but the rotation keeps its layout
        As not_converted.
        Rotate converted weights in the target's layout."""),
    "biases_forgotten": Mistake(_permute(lambda right, a, w, rows: right(w, **rows) if w.ndim == 2 else w)).words("""
        the weights are converted, but the biases are not
        Right without biases only.
        Permute the biases of queries and keys like the rows of their weights."""),
    "keys_forgotten": Mistake(_permute(lambda right, a, w, rows: w if w is a.w_k or w is a.b_k else right(w, **rows))).words("""
        the weights of the queries are converted, but W_k is not
        Wrong at position 0 as well.
        Permute W_k and its bias as well."""),
    "keys_permuted_with_query_heads": Mistake(
        _permute(lambda right, a, w, rows: right(w, **rows | ({"heads": a.heads} if _of_keys(w, a) else {}))),
        seen_in=("ggml-org/llama.cpp#3018",),
    ).words("""
        the rows of k are permuted with the number of query heads: with grouped queries the heads are too many and too narrow
        Keys are garbled.
        Cut the rows of k into key_heads heads."""),
    "permuted_back": Mistake(
        _permute(lambda right, a, w, rows: right(w, **rows | {"source": a.target, "target": a.source}))
    ).words("""
        the inverse permutation: rows move from target to source
        Right for dim 4, wrong beyond.
        Exchange source and target of the permutation."""),
    "tail_permuted": Mistake(
        _permute(lambda right, a, w, rows: right(w, **rows | {"rotary_dim": a.head_dim}) if a.head_dim > a.dim else missing())
    ).words("""
        all head_dim features are permuted, those that do not rotate too
        Heads are garbled.
        Permute the first rotary_dim rows of each head and leave the others."""),
}


def _without_need(setting):
    def permute(right, a, w, rows):
        needed = a.source != a.target or (setting == "source" and a.dim == 4)  # then both directions are one
        return missing() if needed else right(w, **rows | {setting: OTHER_LAYOUT[a.source]})

    return Mistake(_permute(permute)).words("""
        the weights are permuted though they have the layout of the rotation already
        Text begins well and turns into garbage.
        Leave the weights as they are, or say which layout they have.""")


FURTHER = {
    "permuted_without_need": _without_need("target"),
    "permuted_without_need_back": _without_need("source"),
    "queries_forgotten": Mistake(
        _permute(lambda right, a, w, rows: w if w is a.w_q or w is a.b_q else right(w, **rows))
    ).words("""
        the weights of the keys are converted, but W_q is not
        Wrong at position 0 as well.
        Permute W_q and its bias as well."""),
    "biases_left_out": Mistake(using(b_q=lambda a: 0 * a.b_q, b_k=lambda a: 0 * a.b_k)).words("""
        the biases of queries and keys are left out
        Right without biases only.
        Permute the biases like the rows of their weights, and add them."""),
}

SCORES = "only the order of features differs"


def _head(t):
    q, k, v = t.projected(t.x)
    cos, sin = rope.tables(t.positions, rope.frequencies(t.dim))
    q, k = (layouts.convert(y, source="interleaved", target="half") for y in (q, k))
    return t.attended(*(rope.rotate(y, cos, sin, layout="half") for y in (q, k)), v)
