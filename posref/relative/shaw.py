r"""Shaw et al.: relative position representations, one vector an offset added to keys and to values.

Definition. With a^K_ij = w^K_{clip(j - i, -k, k)} and a^V_ij = w^V_{clip(j - i, -k, k)}:

    s_ij = scale q_i . (k_j + a^K_ij)          o_i = sum_j softmax_j(s_ij) (v_j + a^V_ij)

variant="relative_key_query" (Huang et al., method 4) adds the key's own product: s_ij = scale (q_i . k_j + (q_i + k_j) . a_ij).

Symbols. q (..., h, n_query, d), k (..., h, n_key, d), v (..., h, n_key, d_v); key_table (2k + 1, d) and value_table
(2k + 1, d_v), row r for the offset r - k, or (h, 2k + 1, d) with one table a head; offsets (..., n_query, n_key) integers
j - i.

Conventions. Positive offset: the key is to the right. The number of rows is odd and gives k. `scale` covers both terms;
the paper uses 1/sqrt(d). Offsets with a batch axis have as many axes as the scores: (batch, 1, n_query, n_key).

Where implementations differ. Sign: j - i in the paper, tensor2tensor (common_attention.py, dot_product_attention_relative,
which expects q scaled) and NEZHA; i - j in Su's survey, Eq. (6), and in transformers 4's BERT (modeling_bert.py,
position_embedding_type="relative_key" or "relative_key_query"): turn such a table round with table[::-1]. That BERT does not
clip: its 2 max_position_embeddings - 1 rows are k = max_position_embeddings - 1. transformers' Wav2Vec2-BERT clips j - i to
(-left, right) with left > right: repeat its last row left - right times. Both leave the value term out: value_table=None.
Heads: the paper's base model has one table a head, its big model and tensor2tensor one for all heads.

Properties. proofs/relative/shaw.py: table_pinned, scores_pinned, attend_pinned; forms_equal (naive, gathered, skewed);
values_by_offset; translation_invariant, with one offset beyond k; query_minus_key_is_the_table_reversed; one_sided_clip.

References. Shaw et al., arXiv 1803.02155, Eqs. (3) values, (4) keys, (5) efficient form; Huang et al., arXiv 2009.13658,
method 4; Huang et al., Music Transformer, arXiv 1809.04281, section 3.4 (skewing); Su, kexue.fm/archives/8130.
"""

import numpy as np

from posref import _require, attention
from posref import offsets as relative

VARIANTS = ("relative_key", "relative_key_query")

PRESETS = {
    "base": {"max_distance": 16, "shared_by_heads": False, "source": "arXiv 1803.02155 section 4.1, base model"},
    "big": {"max_distance": 8, "shared_by_heads": True, "source": "arXiv 1803.02155 section 4.1, big model"},
    "tensor2tensor": {"max_distance": 20, "shared_by_heads": True, "source": "tensor2tensor models/transformer.py"},
    "wav2vec2_bert": {
        "left": 64,
        "right": 8,
        "shared_by_heads": True,
        "values": False,
        "source": "transformers 5.23.0 configuration_wav2vec2_bert.py",
    },
}


def embed(table, offsets):
    """a_ij = table[clip(j - i, -k, k) + k]: `(..., n_query, n_key, d)`, with heads if the table has. Shaw et al. section 3.2.

    >>> embed(np.array([[-10.0], [0.0], [10.0]]), np.array([[0, 1, 2], [-1, 0, 1]]))[..., 0]
    array([[  0.,  10.,  10.],
           [-10.,   0.,  10.]])
    """
    k = _max_distance("shaw.embed", "table", table)
    _require.array("shaw.embed", "offsets", offsets, kinds=_require.SIGNED, ndim=2)
    rows = relative.clip(offsets, -k, k) + k
    return table[rows] if len(table.shape) == 2 else table[np.arange(table.shape[0])[:, None, None], rows]


def scores(q, k, key_table, offsets, *, scale, variant="relative_key"):
    """scale (q_i . k_j + q_i . a_ij), and + k_j . a_ij for "relative_key_query": `(..., h, n_query, n_key)`. Eqs. (4), (5).

    The gathered form: one product of the queries with the 2k + 1 rows, then an entry an offset; no (n, n, d) array.
    ValueError for a table with an even number of rows or another width, or offsets that do not fit the scores.

    >>> q, k = np.array([[[1.0], [2.0]]]), np.array([[[1.0], [1.0]]])
    >>> scores(q, k, np.array([[-10.0], [0.0], [10.0]]), np.array([[0, 1], [-1, 0]]), scale=1.0)
    array([[[  1.,  11.],
            [-18.,   2.]]])
    """
    content, distance = _content("shaw.scores", q, k, key_table, offsets, variant)
    clipped, rows = relative.clip(offsets, -distance, distance), np.swapaxes(key_table, -1, -2)
    position = relative.gather_rows(q @ rows, clipped, -distance)
    if variant == "relative_key_query":
        by_key = relative.gather_rows(k @ rows, np.swapaxes(clipped, -1, -2), -distance)
        position = position + np.swapaxes(by_key, -1, -2)
    return scale * (content + position)


def scores_naive(q, k, key_table, offsets, *, scale, variant="relative_key"):
    """`scores` as the definition is written, with one vector a pair; memory n_query n_key d. Shaw et al. Eq. (4). Same errors.

    >>> q, k = np.array([[[1.0], [2.0]]]), np.array([[[1.0], [1.0]]])
    >>> scores_naive(q, k, np.array([[-10.0], [0.0], [10.0]]), np.array([[0, 1], [-1, 0]]), scale=1.0)
    array([[[  1.,  11.],
            [-18.,   2.]]])
    """
    content, _ = _content("shaw.scores_naive", q, k, key_table, offsets, variant)
    a = embed(key_table, offsets)
    position = (q[..., :, None, :] * a).sum(axis=-1)
    if variant == "relative_key_query":
        position = position + (k[..., None, :, :] * a).sum(axis=-1)
    return scale * (content + position)


def scores_skewed(q, k, key_table, *, scale):
    """`scores` for contiguous positions, the last query at the last key: `(..., h, n_query, n_key)`. Music Transformer 3.4.

    One product with the n_query + n_key - 1 rows in the order of the offset, then each row shifted into place by a reshape.

    >>> q, k = np.array([[[1.0], [2.0]]]), np.array([[[1.0], [1.0]]])
    >>> scores_skewed(q, k, np.array([[-10.0], [0.0], [10.0]]), scale=1.0)
    array([[[  1.,  11.],
            [-18.,   2.]]])
    """
    content = attention.scores(q, k, scale=scale)
    distance = _require_table("shaw.scores_skewed", "key_table", key_table, "q", q)
    ascending = np.arange(1 - k.shape[-2], q.shape[-2])
    rows = key_table[..., relative.clip(ascending, -distance, distance) + distance, :]
    return content + scale * relative.skew(q @ np.swapaxes(rows, -1, -2))


def attend(q, k, v, key_table, value_table, offsets, *, scale, mask=None, variant="relative_key"):
    """o_i = sum_j softmax_j(s_ij) (v_j + a^V_ij): `(..., h, n_query, d_v)`. Shaw et al. Eqs. (3), (4).

    `value_table` None leaves the value term out; `mask` broadcasts to the scores, True = may attend. ValueError for tables or
    offsets that do not fit, as in `scores`.

    >>> q, k, v = np.zeros((1, 2, 1)), np.zeros((1, 2, 1)), np.array([[[1.0], [3.0]]])
    >>> table = np.array([[-10.0], [0.0], [10.0]])
    >>> attend(q, k, v, table, table, np.array([[0, 1], [-1, 0]]), scale=1.0)
    array([[[ 7.],
            [-3.]]])
    """
    _require.array("shaw.attend", "v", v, ndim=2)
    _require.same_width("shaw.attend", "k", k, "v", v, axis=-2)
    weights = attention.softmax(scores(q, k, key_table, offsets, scale=scale, variant=variant), mask)
    if value_table is None:
        return weights @ v
    _require_table("shaw.attend", "value_table", value_table, "v", v)
    return weights @ v + (weights[..., None, :] @ embed(value_table, offsets))[..., 0, :]


def _max_distance(function, argument, table):
    _require.array(function, argument, table, ndim=2)
    if len(table.shape) > 3 or table.shape[-2] % 2 != 1:
        raise ValueError(
            f"{function}: {argument} has shape {table.shape}, expected (2k + 1, d) or (h, 2k + 1, d): an odd number of rows, "
            "one an offset from -k to k"
        )
    return table.shape[-2] // 2


def _require_table(function, argument, table, name, x):
    distance = _max_distance(function, argument, table)
    _require.same_width(function, name, x, argument, table)
    _require.broadcasts_to(function, f"the head axis of {argument}", table[..., 0, 0], f"the heads of {name}", x.shape[:-2])
    return distance


def _content(function, q, k, key_table, offsets, variant):
    _require.choice(function, "variant", variant, VARIANTS)
    content, distance = attention.scores(q, k, scale=1), _require_table(function, "key_table", key_table, "q", q)
    _require.array(function, "offsets", offsets, kinds=_require.SIGNED, ndim=2)
    _require.pairs(function, "offsets", offsets, content.shape)
    return content, distance
