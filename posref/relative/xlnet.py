r"""XLNet: Transformer-XL's score, in both directions, and a term for "same segment or not".

Definition. With e_ij = e_0 if query i and key j are in one segment, else e_1, and r_{i-j} the projected sinusoid:

    s_ij = scale ((q_i + u) . k_j + (q_i + v) . r_{i-j} + (q_i + s) . e_ij)

Symbols. q (..., h, n_query, d), k (..., h, n_key, d); u, v, s (h, d); r (..., h, m, d), one row a distance, in the order of
`distances`; segment_embedding (2, h, d); same_segment boolean (..., n_query, n_key); memory mem = n_key - n_query.

Conventions. Distances are i - j, query minus key, and descend; the distance of row i and column j is i + mem - j.
attn_type="bi" has m = n_query + n_key rows, "uni" m = n_key + 1: one more than Transformer-XL, since the released shift drops
the first, distance n_key, which no pair has. With "uni" scores of the future are undefined and come back as exactly 0, to be
masked (`posref.relative.transformer_xl.visible`). `scale` is 1/sqrt(d) and covers all parts.

Where implementations differ. zihangdai/xlnet (modeling.py) and transformers 5.23.0 (modeling_xlnet.py) agree. Both give
memory the segment id 0, and leave the segment term out when there are no segment ids: then the score is
transformer_xl.scores with r[..., 1:, :]. bi_data=True feeds the second half of the batch with reversed text and the distances
-n_key .. n_query - 1: r made from -distances. clamp_len limits the distance to -clamp_len .. clamp_len. u, v, s are
r_w_bias, r_r_bias, r_s_bias, one a layer with untie_r.

Properties. proofs/relative/xlnet.py: distances_pinned; segments_for_all_sizes; scores_pinned, both types;
without_segments_transformer_xl, and blind to the first row of r; translation_invariant.

References. Yang et al., arXiv 1906.08237, sections 2.4 (Transformer-XL) and 2.5 (relative segment encodings);
zihangdai/xlnet, modeling.py, relative_positional_encoding, rel_shift, rel_attn_core.
"""

import numpy as np

from posref import _require, attention
from posref import offsets as relative
from posref.relative import transformer_xl

ATTENTION_TYPES = ("bi", "uni")

PRESETS = {
    "xlnet_large": {
        "heads": 16,
        "dim": 64,
        "attn_type": "bi",
        "untie_r": True,
        "bi_data": True,
        "source": "zihangdai/xlnet README.md, pretraining command; xlnet.py (attn_type), train.py (bi_data by default)",
    },
}


def distances(n_query, n_key, *, attn_type, clamp_len=None):
    """i - j in the order of the rows of r, descending from n_key: `(n_query + n_key,)` or `(n_key + 1,)`, integers.

    `posref.relative.transformer_xl.embeddings` makes R of them. ValueError if there are more queries than keys.

    >>> distances(2, 3, attn_type="bi")
    array([ 3,  2,  1,  0, -1])
    >>> distances(2, 3, attn_type="uni", clamp_len=2)
    array([2, 2, 1, 0])
    """
    _require.choice("xlnet.distances", "attn_type", attn_type, ATTENTION_TYPES)
    _require.last_queries("xlnet.distances", n_query, n_key)
    descending = np.arange(n_key, -n_query if attn_type == "bi" else -1, -1)
    if clamp_len is None:
        return descending
    _require.count("xlnet.distances", "clamp_len", clamp_len)
    return relative.clip(descending, -clamp_len, clamp_len)


def scores(q, k, r, segment_embedding, u, v, s, same_segment, *, scale):
    """scale ((q_i + u) . k_j + (q_i + v) . r_{i-j} + (q_i + s) . e_ij): `(..., h, n_query, n_key)`.

    `r` has n_query + n_key rows ("bi") or n_key + 1 ("uni": entries with j > i + mem are exactly 0, to be masked).
    `same_segment` is `query_ids[..., :, None] == key_ids[..., None, :]`, `(n_query, n_key)` or `(batch, 1, n_query, n_key)`.
    ValueError for another number of rows or other widths, TypeError if `same_segment` is not boolean.

    >>> q, k = np.ones((1, 1, 1)), np.array([[[1.0], [2.0]]])
    >>> r, e, zero = np.array([[[99.0], [10.0], [20.0]]]), np.array([[[100.0]], [[200.0]]]), np.zeros((1, 1))
    >>> scores(q, k, r, e, zero, zero, zero, np.array([[False, True]]), scale=1.0)
    array([[[211., 122.]]])
    """
    _require_terms(q, k, r, segment_embedding, s)
    position = transformer_xl.scores(q, k, r[..., 1:, :], u, v, scale=scale)
    _require.array("xlnet.scores", "same_segment", same_segment, kinds=_require.BOOLEANS, ndim=2)
    _require.pairs("xlnet.scores", "same_segment", same_segment, position.shape)
    by_segment = attention.scores(q + s[..., None, :], np.swapaxes(segment_embedding, 0, 1), scale=scale)
    total = position + np.where(same_segment, by_segment[..., :1], by_segment[..., 1:])
    if r.shape[-2] == q.shape[-2] + k.shape[-2]:
        return total
    return np.where(transformer_xl.visible(q.shape[-2], k.shape[-2]), total, 0)


def _require_terms(q, k, r, segment_embedding, s):
    for name, value in (("q", q), ("k", k), ("r", r), ("s", s), ("segment_embedding", segment_embedding)):
        _require.array("xlnet.scores", name, value, ndim=2)
        _require.same_width("xlnet.scores", "q", q, name, value)
    n_query, n_key, rows = q.shape[-2], k.shape[-2], r.shape[-2]
    if rows not in (n_query + n_key, n_key + 1):
        raise ValueError(
            f'xlnet.scores: r has {rows} rows; {n_query} queries and {n_key} keys need {n_query + n_key} (attn_type="bi") or '
            f'{n_key + 1} ("uni"), in the order of xlnet.distances'
        )
    if len(segment_embedding.shape) != 3 or segment_embedding.shape[0] != 2:
        raise ValueError(
            f"xlnet.scores: segment_embedding has shape {segment_embedding.shape}, expected (2, h, d): row 0 for the same "
            "segment, row 1 for another"
        )
    _require.broadcasts_to("xlnet.scores", "s", s[..., None, :], "q", q.shape)
    _require.broadcasts_to("xlnet.scores", "segment_embedding of one kind", segment_embedding[0][..., None, :], "q", q.shape)
