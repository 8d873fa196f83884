r"""Transformer-XL: content and position meet in four terms, the query's own position replaced by two vectors.

Definition. For a query at i, a key at j and the projected sinusoid r_{i - j} = W_{k,R} R_{i - j}:

    s_ij = scale (q_i . k_j + q_i . r_{i-j} + u . k_j + v . r_{i-j}) = scale ((q_i + u) . k_j + (q_i + v) . r_{i-j})

Symbols. q (..., h, n_query, d), k (..., h, n_key, d); u, v (h, d); r (..., h, m, d), one row a distance, in the order of
`distances`; memory mem = n_key - n_query keys before the first query.

Conventions. Distances are i - j, *query minus key*, and descend. Queries stand at the end of the keys: the distance of row i
and column j is i + mem - j. Two forms, told apart by the rows of r:

    causal          m = n_key                distances n_key - 1 .. 0; keys of the future have no score
    bidirectional   m = n_query + n_key - 1  distances n_key - 1 .. 1 - n_query; every pair has one

With one query both are the same. A causal score with j > i + mem is undefined and comes back as exactly 0; the caller masks
it with `visible`. `scale` is 1/sqrt(d) and covers all four terms.

Where implementations differ. The released `_rel_shift` (pytorch/mem_transformer.py; rel_shift in tf/model.py) pads a column
and reshapes; the part above the diagonal then holds a 0 and numbers that belong to the next row, unless zero_triu=True, which
is what `shift` returns. ESPnet's first Conformer used the causal shift in a bidirectional encoder; it survives there as
legacy_rel_pos for old checkpoints. Conformers list 2n - 1 distances. u and v are shared by all layers unless untie_r.
clamp_len limits the distance, not the score. labml's version learns r and term v . r. The released sinusoid has the half
layout, all sines then all cosines.

Properties. proofs/relative/transformer_xl.py: distances_pinned, embeddings_pinned; shift_pinned and four_terms for all sizes;
released_shift_where_defined; visible_pinned; scores_pinned, both forms equal where both are defined; translation_invariant;
position_of_the_query_becomes_u.

References. Dai et al., arXiv 1901.02860, section 3.3, terms (a) to (d), and appendix B (the shift);
kimiyoung/transformer-xl, pytorch/mem_transformer.py, RelPartialLearnableMultiHeadAttn (r_w_bias is u, r_r_bias is v).
"""

import numpy as np

from posref import _require, attention
from posref import offsets as relative
from posref.absolute import sinusoidal

PRESETS = {
    "enwik8_base": {"heads": 8, "dim": 64, "clamp_len": None, "source": "pytorch/run_enwik8_base.sh, train"},
    "enwik8_base_eval": {"heads": 8, "dim": 64, "clamp_len": 820, "source": "pytorch/run_enwik8_base.sh, eval"},
    "wt103_base": {"heads": 10, "dim": 41, "clamp_len": None, "source": "pytorch/run_wt103_base.sh, train"},
    "wt103_base_eval": {"heads": 10, "dim": 41, "clamp_len": 400, "source": "pytorch/run_wt103_base.sh, eval"},
}


def distances(n_query, n_key, *, bidirectional, clamp_len=None):
    """i - j in the order of the rows of r, descending from n_key - 1: `(n_key,)` or `(n_query + n_key - 1,)`, integers.

    With `clamp_len` distances are limited to -clamp_len .. clamp_len. ValueError if there are more queries than keys.

    >>> distances(2, 3, bidirectional=False)
    array([2, 1, 0])
    >>> distances(2, 3, bidirectional=True, clamp_len=1)
    array([ 1,  1,  0, -1])
    """
    _require.last_queries("transformer_xl.distances", n_query, n_key)
    descending = np.arange(n_key - 1, -n_query if bidirectional else -1, -1)
    if clamp_len is None:
        return descending
    _require.count("transformer_xl.distances", "clamp_len", clamp_len)
    return relative.clip(descending, -clamp_len, clamp_len)


def embeddings(distances, frequencies):
    """R: the sinusoid of every distance, sines first, before its projection W_{k,R}: `distances.shape + (dim,)`.

    >>> embeddings(np.array([1, 0]), np.array([1.0, 0.01])).round(4)
    array([[0.8415, 0.01  , 0.5403, 1.    ],
           [0.    , 0.    , 1.    , 1.    ]])
    """
    return sinusoidal.encode(distances, frequencies, layout="half")


def shift(x):
    """out_ij = x[i, j - i + n_query - 1] where j <= i + mem, exactly 0 beyond: `(..., n_query, n_key)`, the shape of `x`.

    Column c of `x` is the distance n_key - 1 - c, so entry (i, j) is row i's value for i + mem - j. The zeros are no
    scores: mask them. For 2n - 1 distances use `posref.offsets.skew`. ValueError for more queries than columns.
    Appendix B.

    >>> shift(np.array([[2, 1, 0], [12, 11, 10], [22, 21, 20]]))
    array([[ 0,  0,  0],
           [11, 10,  0],
           [22, 21, 20]])
    """
    _require.array("transformer_xl.shift", "x", x, ndim=2)
    n_query = x.shape[-2]
    _require.last_queries("transformer_xl.shift", n_query, x.shape[-1])
    future = np.zeros_like(x[..., : n_query - 1])
    return relative.skew(np.concatenate([x, future], axis=-1))


def scores(q, k, r, u, v, *, scale):
    """scale ((q_i + u) . k_j + (q_i + v) . r_{i-j}): `(..., h, n_query, n_key)`. Section 3.3.

    `r` has n_key rows (causal: entries with j > i + mem are exactly 0, to be masked) or n_query + n_key - 1 (bidirectional).
    ValueError for another number of rows, other widths, or more queries than keys.

    >>> q, k, r = np.ones((1, 2, 1)), np.array([[[1.0], [2.0]]]), np.array([[[10.0], [20.0]]])
    >>> scores(q, k, r, np.array([[1.0]]), np.array([[0.0]]), scale=1.0)
    array([[[22.,  0.],
            [12., 24.]]])
    """
    _require_terms("transformer_xl.scores", q, k, r, u, v)
    n_query, n_key, rows = q.shape[-2], k.shape[-2], r.shape[-2]
    content = attention.scores(q + u[..., None, :], k, scale=1)
    position = attention.scores(q + v[..., None, :], r, scale=1)
    if rows == n_query + n_key - 1:
        return scale * (content + relative.skew(position))
    if rows != n_key:
        raise ValueError(
            f"transformer_xl.scores: r has {rows} rows; {n_query} queries and {n_key} keys need {n_key} (causal) or "
            f"{n_query + n_key - 1} (bidirectional), in the order of transformer_xl.distances"
        )
    return np.where(visible(n_query, n_key), scale * (content + shift(position)), 0)


def visible(n_query, n_key):
    """True where a causal score is defined, j <= i + mem: boolean `(n_query, n_key)`, the mask for `posref.attention.softmax`.

    >>> visible(2, 3)
    array([[ True,  True, False],
           [ True,  True,  True]])
    """
    _require.last_queries("transformer_xl.visible", n_query, n_key)
    return attention.causal_mask(np.arange(n_query) + (n_key - n_query), np.arange(n_key))


def _require_terms(function, q, k, r, u, v):
    for name, value in (("q", q), ("k", k), ("r", r), ("u", u), ("v", v)):
        _require.array(function, name, value, ndim=2)
    for name, value in (("k", k), ("r", r), ("u", u), ("v", v)):
        _require.same_width(function, "q", q, name, value)
    _require.broadcasts_to(function, "the head axis of r", r[..., 0, 0], "the heads of q", q.shape[:-2])
    for name, value in (("u", u), ("v", v)):
        _require.broadcasts_to(function, name, value[..., None, :], "q", q.shape)
    _require.last_queries(function, q.shape[-2], k.shape[-2])
