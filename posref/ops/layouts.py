"""Permuted projections: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref import attention
from posref.ops import inside, missing, with_words
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


MISTAKES = with_words(
    __name__,
    not_converted=_permute(lambda right, a, w, rows: w),
    switch_forgotten=inside(rope, "rotate", _of_source),
    biases_forgotten=_permute(lambda right, a, w, rows: right(w, **rows) if w.ndim == 2 else w),
    keys_forgotten=_permute(lambda right, a, w, rows: w if w is a.w_k or w is a.b_k else right(w, **rows)),
    keys_permuted_with_query_heads=_permute(
        lambda right, a, w, rows: right(w, **rows | ({"heads": a.heads} if _of_keys(w, a) else {}))
    ),
    permuted_back=_permute(lambda right, a, w, rows: right(w, **rows | {"source": a.target, "target": a.source})),
    tail_permuted=_permute(
        lambda right, a, w, rows: right(w, **rows | {"rotary_dim": a.head_dim}) if a.head_dim > a.dim else missing()
    ),
)

SCORES = "an order of features"


def _head(t):
    q, k, v = t.projected(t.x)
    cos, sin = rope.tables(t.positions, rope.frequencies(t.dim))
    q, k = (layouts.convert(y, source="interleaved", target="half") for y in (q, k))
    return t.attended(*(rope.rotate(y, cos, sin, layout="half") for y in (q, k)), v)
