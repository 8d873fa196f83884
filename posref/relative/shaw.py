r"""Shaw et al.: relative position representations; one trained vector per offset is added to keys, another one to values.

Often the relative position of a word matters more than its absolute position. Each offset up to k has one vector for the score
and one for the output; all larger offsets share the last vector.

Also called: classic relative encoding, RPR, relative_key, relative_key_query.

Definition. Tables w^K and w^V hold a vector for each offset -k .. k:

    s_ij = scale q_i . (k_j + a^K_ij)                        variant="relative_key"
    s_ij = scale (q_i . k_j + (q_i + k_j) . a^K_ij)          variant="relative_key_query"
    o_i = sum_j softmax_j(s_ij) (v_j + a^V_ij)
    a^K_ij = w^K_{clip(j - i, -k, k)}
    a^V_ij = w^V_{clip(j - i, -k, k)}

`scores` reads q_i . w^K_r, one product with 2k + 1 rows; `scores_naive` makes the vectors a_ij; `scores_skewed` moves rows.

Symbols.

    q (..., h, n_query, d)              queries
    k (..., h, n_key, d)                keys
    v (..., h, n_key, d_v)              values
    w^K, key_table (2k + 1, d)          row r for the offset r - k; (h, 2k + 1, d) with one table per head
    w^V, value_table (2k + 1, d_v)      the same for values
    offsets (..., n_query, n_key)       integers j - i
    o (..., h, n_query, d_v)            output

Conventions. Positive offset: the key is to the right. The number of rows is odd and gives k. `scale` covers both terms;
the paper uses 1/sqrt(d). Offsets with a batch axis have as many axes as the scores: (batch, 1, n_query, n_key).

Example. Four tokens and k = 2: the offset whose vector each pair gets.

>>> positions = np.arange(4)
>>> embed(np.arange(-2, 3)[:, None], positions - positions[:, None])[..., 0]
array([[ 0,  1,  2,  2],
       [-1,  0,  1,  2],
       [-2, -1,  0,  1],
       [-2, -2, -1,  0]])

Where implementations differ.

    what | who | value | version | source
    sign | Shaw et al. | j - i | arXiv 1803.02155 | section 3.2
    sign | tensor2tensor | j - i; expects q to be scaled | bafdc1b | common_attention.py dot_product_attention_relative
    sign | NEZHA | j - i | cef06a9 | NEZHA-TensorFlow/modeling.py _generate_relative_positions_matrix
    sign | Su's survey | i - j: reverse its table with table[::-1] | - | kexue.fm/archives/8130, Eq. (6)
    sign | transformers' BERT | i - j: reverse its table with table[::-1] | 4
      | modeling_bert.py, position_embedding_type="relative_key" or "relative_key_query"
    clip | transformers' BERT | none: 2 max_position_embeddings - 1 rows are k = max_position_embeddings - 1 | 4
      | modeling_bert.py
    clip | transformers' Wav2Vec2-BERT | j - i to (-left, right), left > right: repeat its last row left - right times | 5.23.0
      | modeling_wav2vec2_bert.py
    value term | transformers' BERT | left out: value_table=None | 4 | modeling_bert.py
    value term | transformers' Wav2Vec2-BERT | left out: value_table=None | 5.23.0 | modeling_wav2vec2_bert.py
    tables | Shaw et al., base model | one per head | arXiv 1803.02155 | section 4.1
    tables | Shaw et al., big model | one for all heads | arXiv 1803.02155 | section 4.1
    tables | tensor2tensor | one for all heads | bafdc1b | common_attention.py _generate_relative_positions_embeddings

References. Shaw et al., arXiv 1803.02155, Eqs. (3) values, (4) keys, (5) efficient form; Huang et al., arXiv 2009.13658,
method 4 (relative_key_query); Huang et al., Music Transformer, arXiv 1809.04281, section 3.4 (skewing);
Su, kexue.fm/archives/8130.
"""

from typing import Literal, NamedTuple, get_args

import numpy as np

from posref import attention
from posref import offsets as relative
from posref._contract import Array, Booleans, Number, Numbers, SignedIntegers, contract, kept

Variant = Literal["relative_key", "relative_key_query"]
VARIANTS = get_args(Variant)

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


ROWS = "an odd number of rows, one an offset from -k to k"


@contract(table=ROWS)
def embed(
    table: Numbers[Array, "... 2*reach+1 d", kept], offsets: SignedIntegers[Array, "... n_query n_key"]
) -> Numbers[Array, "... n_query n_key d"]:
    """a_ij = table[clip(j - i, -k, k) + k]: `(..., n_query, n_key, d)`, with heads if the table has. Shaw et al. section 3.2.

    >>> embed(np.array([[-10.0], [0.0], [10.0]]), np.array([[0, 1, 2], [-1, 0, 1]]))[..., 0]
    array([[  0.,  10.,  10.],
           [-10.,   0.,  10.]])
    """
    reach = table.shape[-2] // 2
    rows = relative.clip(offsets, -reach, reach) + reach
    lead = np.broadcast_shapes(table.shape[:-2], rows.shape[:-2])
    spread, rows = np.broadcast_to(table, (*lead, *table.shape[-2:])), np.broadcast_to(rows, (*lead, *rows.shape[-2:]))
    return np.take_along_axis(spread[..., None, :, :], rows[..., None], axis=-2)


@contract(key_table=ROWS)
def scores(
    q: Numbers[Array, "... n_query d"],
    k: Numbers[Array, "... n_key d"],
    key_table: Numbers[Array, "#... 2*reach+1 d"],
    offsets: SignedIntegers[Array, "(...) n_query n_key"],
    *,
    scale: Number,
    variant: Variant = "relative_key",
) -> Numbers[Array, "... n_query n_key"]:
    """scale (q_i . k_j + q_i . a_ij), and + k_j . a_ij for "relative_key_query": `(..., h, n_query, n_key)`. Eqs. (4), (5).

    The gathered form: one product of the queries with the 2k + 1 rows, then one entry per offset; no (n, n, d) array.
    ValueError for a table with an even number of rows or another width, or offsets that do not fit the scores.

    >>> q, k = np.array([[[1.0], [2.0]]]), np.array([[[1.0], [1.0]]])
    >>> scores(q, k, np.array([[-10.0], [0.0], [10.0]]), np.array([[0, 1], [-1, 0]]), scale=1.0)
    array([[[  1.,  11.],
            [-18.,   2.]]])
    """
    reach = key_table.shape[-2] // 2
    clipped, rows = relative.clip(offsets, -reach, reach), np.swapaxes(key_table, -1, -2)
    position = relative.gather_rows(q @ rows, clipped, -reach)
    if variant == "relative_key_query":
        by_key = relative.gather_rows(k @ rows, np.swapaxes(clipped, -1, -2), -reach)
        position = position + np.swapaxes(by_key, -1, -2)
    return scale * (attention.scores(q, k, scale=1) + position)


class Gradient(NamedTuple):
    """The gradients of a scalar by the inputs of `scores`, given its gradient by every score."""

    q: Array
    k: Array
    key_table: Array


@contract(key_table=ROWS)
def scores_gradient(
    score_gradient: Numbers[Array, "... n_query n_key"],
    q: Numbers[Array, "... n_query d"],
    k: Numbers[Array, "... n_key d"],
    key_table: Numbers[Array, "#... 2*reach+1 d"],
    offsets: SignedIntegers[Array, "(...) n_query n_key"],
    *,
    scale: Number,
    variant: Variant = "relative_key",
) -> Gradient:
    """The gradients by q, k and the table, from the gradient by every score. A table that heads share gets the sum over heads.

    >>> q, k, g = np.array([[[1.0], [2.0]]]), np.array([[[1.0], [1.0]]]), np.ones((1, 2, 2))
    >>> scores_gradient(g, q, k, np.array([[-10.0], [0.0], [10.0]]), np.array([[0, 1], [-1, 0]]), scale=1.0).key_table
    array([[[2.],
            [3.],
            [1.]]])
    """
    rows, reach = key_table.shape[-2], key_table.shape[-2] // 2
    clipped, turned = relative.clip(offsets, -reach, reach), np.swapaxes(score_gradient, -1, -2)
    by_row = relative.scatter_rows(score_gradient, clipped, -reach, rows)
    of_q = score_gradient @ k + by_row @ key_table
    of_k, of_table = turned @ q, np.swapaxes(by_row, -1, -2) @ q
    if variant == "relative_key_query":
        by_key = relative.scatter_rows(turned, np.swapaxes(clipped, -1, -2), -reach, rows)
        of_k, of_table = of_k + by_key @ key_table, of_table + np.swapaxes(by_key, -1, -2) @ k
    return Gradient(scale * of_q, scale * of_k, scale * of_table)


@contract(key_table=ROWS)
def scores_naive(
    q: Numbers[Array, "... n_query d"],
    k: Numbers[Array, "... n_key d"],
    key_table: Numbers[Array, "#... 2*reach+1 d"],
    offsets: SignedIntegers[Array, "(...) n_query n_key"],
    *,
    scale: Number,
    variant: Variant = "relative_key",
) -> Numbers[Array, "... n_query n_key"]:
    """`scores` as the definition is written, with one vector per query and key. Shaw et al. Eq. (4).

    Memory n_query n_key d; same errors.

    >>> q, k = np.array([[[1.0], [2.0]]]), np.array([[[1.0], [1.0]]])
    >>> scores_naive(q, k, np.array([[-10.0], [0.0], [10.0]]), np.array([[0, 1], [-1, 0]]), scale=1.0)
    array([[[  1.,  11.],
            [-18.,   2.]]])
    """
    a = embed(key_table, offsets)
    position = (q[..., :, None, :] * a).sum(axis=-1)
    if variant == "relative_key_query":
        position = position + (k[..., None, :, :] * a).sum(axis=-1)
    return scale * (attention.scores(q, k, scale=1) + position)


@contract(key_table=ROWS)
def scores_skewed(
    q: Numbers[Array, "... n_query d"],
    k: Numbers[Array, "... n_key d"],
    key_table: Numbers[Array, "#... 2*reach+1 d"],
    *,
    scale: Number,
) -> Numbers[Array, "... n_query n_key"]:
    """`scores` for contiguous positions, the last query at the last key: `(..., h, n_query, n_key)`. Music Transformer 3.4.

    One product with the n_query + n_key - 1 rows in the order of the offset, then each row shifted into place by a reshape.

    >>> q, k = np.array([[[1.0], [2.0]]]), np.array([[[1.0], [1.0]]])
    >>> scores_skewed(q, k, np.array([[-10.0], [0.0], [10.0]]), scale=1.0)
    array([[[  1.,  11.],
            [-18.,   2.]]])
    """
    reach, ascending = key_table.shape[-2] // 2, np.arange(1 - k.shape[-2], q.shape[-2])
    rows = key_table[..., relative.clip(ascending, -reach, reach) + reach, :]
    return attention.scores(q, k, scale=scale) + scale * relative.skew(q @ np.swapaxes(rows, -1, -2))


@contract(key_table=ROWS, value_table=ROWS)
def attend(
    q: Numbers[Array, "... n_query d"],
    k: Numbers[Array, "... n_key d"],
    v: Numbers[Array, "... n_key d_v"],
    key_table: Numbers[Array, "#... 2*reach+1 d"],
    value_table: Numbers[Array, "#... 2*value_reach+1 d_v"] | None,
    offsets: SignedIntegers[Array, "(...) n_query n_key"],
    *,
    scale: Number,
    mask: Booleans[Array, "(...) #n_query #n_key"] | None = None,
    variant: Variant = "relative_key",
) -> Numbers[Array, "... n_query d_v"]:
    """o_i = sum_j softmax_j(s_ij) (v_j + a^V_ij): `(..., h, n_query, d_v)`. Shaw et al. Eqs. (3), (4).

    `value_table` None leaves the value term out; `mask` broadcasts to the scores, True = may attend. ValueError for tables or
    offsets that do not fit, as in `scores`.

    >>> q, k, v = np.zeros((1, 2, 1)), np.zeros((1, 2, 1)), np.array([[[1.0], [3.0]]])
    >>> table = np.array([[-10.0], [0.0], [10.0]])
    >>> attend(q, k, v, table, table, np.array([[0, 1], [-1, 0]]), scale=1.0)
    array([[[ 7.],
            [-3.]]])
    """
    weights = attention.softmax(scores(q, k, key_table, offsets, scale=scale, variant=variant), mask)
    if value_table is None:
        return weights @ v
    return weights @ v + (weights[..., None, :] @ embed(value_table, offsets))[..., 0, :]
