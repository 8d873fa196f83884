r"""XLNet: Transformer-XL's score in both directions, with a term that says whether two tokens are in the same segment.

A model that reads two texts needs to know which tokens belong to the same text; which text came first does not matter. So each
pair of tokens gets one of two vectors, and the numbers of the texts are arbitrary.

Also called: relative segment encoding.

Definition. r_{i-j} is the projected sinusoid of the distance, as in `posref.relative.transformer_xl`:

    s_ij = scale ((q_i + u) . k_j + (q_i + v) . r_{i-j} + (q_i + s) . e_ij)
    e_ij = e_0          if query i and key j are in one segment
    e_ij = e_1          otherwise

Symbols.

    q (..., h, n_query, d)                   queries
    k (..., h, n_key, d)                     keys
    u, v, s (h, d)                           trained vectors, r_w_bias, r_r_bias and r_s_bias
    r (..., h, m, d)                         one row a distance, in the order of `distances`
    e, segment_embedding (2, h, d)           trained: for the same segment, for another
    same_segment (..., n_query, n_key)       boolean
    mem = n_key - n_query                    keys before the first query

Conventions. Distances are i - j, query minus key, and descend; the distance of row i and column j is i + mem - j.
attn_type="bi" has m = n_query + n_key rows, "uni" m = n_key + 1: one more than Transformer-XL, since the released shift drops
the first, distance n_key, which no pair has. With "uni" scores of the future are undefined and come back as exactly 0, to be
masked (`posref.relative.transformer_xl.visible`). `scale` is 1/sqrt(d) and covers all parts. Without segments the score is
transformer_xl.scores with r[..., 1:, :].

Example. Three tokens, the last one in another segment; q = 1, e_0 = 1, e_1 = 2 and nothing else: the score is e_ij.

>>> ids, one, nothing = np.array([7, 7, 5]), np.ones((1, 3, 1)), np.zeros((1, 1))
>>> e = np.array([[[1.0]], [[2.0]]])
>>> scores(one, 0 * one, np.zeros((1, 6, 1)), e, nothing, nothing, nothing, ids[:, None] == ids, scale=1)
array([[[1., 1., 2.],
        [1., 1., 2.],
        [2., 2., 1.]]])

Where implementations differ.

    what | who | value | version | source
    first row of r | zihangdai/xlnet | distance n_key, dropped by the shift | 0d0dd50 | modeling.py relative_positional_encoding
    first row of r | transformers | distance n_key, dropped by the shift | 5.23.0
      | modeling_xlnet.py relative_positional_encoding
    future in "uni" | zihangdai/xlnet | values of the next row, left to the mask | 0d0dd50 | modeling.py rel_shift
    segment of the memory | zihangdai/xlnet | id 0 | 0d0dd50 | modeling.py transformer_xl
    segment of the memory | transformers | id 0 | 5.23.0 | modeling_xlnet.py forward
    no segment ids | zihangdai/xlnet | no segment term | 0d0dd50 | modeling.py rel_attn_core
    no segment ids | transformers | no segment term | 5.23.0 | modeling_xlnet.py rel_attn_core
    bi_data=True | zihangdai/xlnet | half of the batch has the distances -n_key .. n_query - 1: r made from -distances | 0d0dd50
      | modeling.py relative_positional_encoding
    bi_data=True | transformers | the same; of a single text nothing comes out, an odd batch is refused | 5.23.0
      | modeling_xlnet.py relative_positional_encoding
    clamp_len | zihangdai/xlnet | limits the distance to -clamp_len .. clamp_len | 0d0dd50
      | modeling.py relative_positional_encoding
    clamp_len | transformers | the same | 5.23.0 | modeling_xlnet.py relative_positional_encoding
    u, v, s | zihangdai/xlnet | shared by all layers, or one per layer with untie_r | 0d0dd50 | modeling.py transformer_xl
    u, v, s | transformers | one per layer | 5.23.0 | modeling_xlnet.py XLNetRelativeAttention

References. Yang et al., arXiv 1906.08237, sections 2.4 (Transformer-XL) and 2.5 (relative segment encodings);
zihangdai/xlnet, modeling.py, relative_positional_encoding, rel_shift, rel_attn_core.
"""

from typing import Literal, get_args

import numpy as np

from posref import attention
from posref import offsets as relative
from posref._contract import Array, Booleans, Count, Integers, Number, Numbers, contract
from posref.relative import transformer_xl

AttentionType = Literal["bi", "uni"]
ATTENTION_TYPES = get_args(AttentionType)

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


@contract
def distances(
    n_query: Count, n_key: Count, *, attn_type: AttentionType, clamp_len: Count | None = None
) -> Integers[Array, "m"]:
    """i - j in the order of the rows of r, descending from n_key: `(n_query + n_key,)` or `(n_key + 1,)`, integers.

    `posref.relative.transformer_xl.embeddings` makes R of them. ValueError if there are more queries than keys.

    >>> distances(2, 3, attn_type="bi")
    array([ 3,  2,  1,  0, -1])
    >>> distances(2, 3, attn_type="uni", clamp_len=2)
    array([2, 2, 1, 0])
    """
    transformer_xl._require_memory("xlnet.distances", n_query, n_key)
    descending = np.arange(n_key, -n_query if attn_type == "bi" else -1, -1)
    if clamp_len is None:
        return descending
    return relative.clip(descending, -clamp_len, clamp_len)


@contract(
    k=transformer_xl.LAST,
    r='n_query + n_key rows for attn_type="bi", n_key + 1 for "uni", in the order of xlnet.distances',
    segment_embedding="row 0 for the same segment, row 1 for another",
)
def scores(
    q: Numbers[Array, "... n_query! d"],
    k: Numbers[Array, "... n_key>=n_query d"],
    r: Numbers[Array, "#... n_query+n_key|n_key+1 d"],
    segment_embedding: Numbers[Array, "2 #... d"],
    u: Numbers[Array, "#... d"],
    v: Numbers[Array, "#... d"],
    s: Numbers[Array, "#... d"],
    same_segment: Booleans[Array, "(...) n_query n_key"],
    *,
    scale: Number,
) -> Numbers[Array, "... n_query n_key"]:
    """scale ((q_i + u) . k_j + (q_i + v) . r_{i-j} + (q_i + s) . e_ij): `(..., h, n_query, n_key)`.

    `r` has n_query + n_key rows ("bi") or n_key + 1 ("uni": entries with j > i + mem are exactly 0, to be masked).
    `same_segment` is `query_ids[..., :, None] == key_ids[..., None, :]`, `(n_query, n_key)` or `(batch, 1, n_query, n_key)`.
    ValueError for another number of rows or other widths, TypeError if `same_segment` is not boolean.

    >>> q, k = np.ones((1, 1, 1)), np.array([[[1.0], [2.0]]])
    >>> r, e, zero = np.array([[[99.0], [10.0], [20.0]]]), np.array([[[100.0]], [[200.0]]]), np.zeros((1, 1))
    >>> scores(q, k, r, e, zero, zero, zero, np.array([[False, True]]), scale=1.0)
    array([[[211., 122.]]])
    """
    products, defined = transformer_xl._products(q, k, r[..., 1:, :], u, v, scale)
    kinds = np.swapaxes(segment_embedding[..., None, :], 0, -2)[0]
    by_segment = attention.scores(q + s[..., None, :], kinds, scale=scale)
    return np.where(defined, products + np.where(same_segment, by_segment[..., :1], by_segment[..., 1:]), 0)
