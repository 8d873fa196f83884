r"""Indexer: cheap scores choose the few keys, or compressed blocks of keys, that a query attends to.

Attention over a long text reads every key. An indexer has small heads of its own, which share one key per token. A query then
attends only to the keys with the largest scores. Position enters three times: queries and keys of the indexer are rotated
before, keys in the future are never selected, and a query sees a block if no token of the block comes after the query.

Also called: lightning indexer, DSA, DeepSeek sparse attention, CSA, HCA, compressed sparse attention, top-k attention, QSA.

Definition. Head a has the weight w_ia, a projection of the query's token; block m holds the tokens m r .. m r + r - 1:

    I_ij = scale sum_a w_ia max(q_ai . k_j, 0)
    S_i  = the `top` keys with the largest I_ij among the allowed keys; of equal scores the earlier key comes first
    c_m  = sum_t softmax_t(g_{mr+t} + B_t) x_{mr+t}        per feature, over the r tokens of a block
    block m is visible to query i:  m r + r - 1 <= i
    the unfinished block of query i:  r floor((i + 1) / r) <= j <= i

With overlap each token has two vectors, each with a gate. c_m is made of 2 r vectors: the first vectors of block m - 1 and the
second vectors of block m. Block 0 has its own r vectors alone.

Symbols.

    q (..., h, n_query, d)         queries of the indexer, rotated by the caller
    k (..., n_key, d)              keys of the indexer, one per token or block, rotated by the caller
    w (..., n_query, h)            `weights`, one per query and head, of either sign
    I (..., n_query, n_key)        scores
    x, g (..., blocks, r, d)       vectors that are compressed, and their gates, block by block; an unfinished block is left out
    B (r, d)                       `bias`, one row per token of a block; r is the compression rate
    c (..., blocks, d)             compressed vectors

Conventions. `scale` is (d h)^-1/2: 1/sqrt(d) for the products, 1/sqrt(h) for the weights. In DeepSeek V3.2 the first features
of a head are rotated, in the half layout; the attention beside it rotates in the interleaved layout. In V4 the last features
are rotated, interleaved, and the key of block m is rotated at m r, the position of its first token. A layer norm (V3.2) or RMS
norm (V4) comes before the rotation.

Example. Every query has the weight 1, every product is the key's number: two keys are selected.

>>> s = scores(np.ones((1, 3, 1)), np.array([[3], [-1], [2]]), np.ones((3, 1)), scale=1)
>>> s[0], select(s, np.tri(3, dtype=bool), top=2)[2]
(array([3., 0., 2.]), array([ True, False,  True]))

Where implementations differ.

    what | who | value | version | source
    layout of the indexer | transformers' DeepSeek-V3.2 | half, first 64 of 128 features | 5.23.0 | modeling_deepseek_v32.py
    layout of the indexer | transformers' DeepSeek-V4 | interleaved, last features | 5.23.0 | modeling_deepseek_v4.py
    equal scores | torch.topk | no order is promised | 2.13.0 | torch.topk, documentation
    fewer keys than `top` | transformers' DeepSeek-V4 | index -1 | 5.23.0 | modeling_deepseek_v4.py DeepseekV4Indexer
    scores | transformers' Qwen4-Exp, QSA | without weights (all 1), scale 1/sqrt(d) | 5.23.0
      | modeling_qwen4_exp.py Qwen4ExpTextQSAIndexer
    compressed keys | transformers' Qwen4-Exp, QSA | the plain mean: gates and bias 0; rotated at m r after an RMS norm | 5.23.0
      | modeling_qwen4_exp.py Qwen4ExpTextQSAIndexer
    what is attended to | transformers' Qwen4-Exp, QSA | tokens of the selected blocks, and `unfinished_mask` | 5.23.0
      | modeling_qwen4_exp.py Qwen4ExpTextQSAIndexer
    overlap | transformers' DeepSeek-V4 | rate 4 with overlap, rate 128 without | 5.23.0 | modeling_deepseek_v4.py

References. DeepSeek-AI, DeepSeek-V3.2, arXiv 2512.02556, Eqs. (1) and (2).
Not here: NSA (native sparse attention), arXiv 2502.11089, and MoBA, arXiv 2502.13189, at the scores: blocks are scored by
attention to a compressed key, or to the mean of their keys, and the best blocks are read; no released model here needs them.
"""

import numpy as np

from posref import attention, pairing
from posref._contract import Array, Booleans, Count, Integers, Number, Numbers, Signed, contract, finite

RATE = "one row per token of a block; the compression rate is the length of a block"


@contract
def scores(
    q: Numbers[Array, "... h n_query d"],
    k: Numbers[Array, "... n_key d"],
    weights: Numbers[Array, "... n_query h"],
    *,
    scale: Number,
) -> Numbers[Array, "... n_query n_key"]:
    """I_ij = scale sum_a w_ia max(q_ai . k_j, 0): `(..., n_query, n_key)`.

    >>> scores(np.array([[[1]], [[-1]]]), np.array([[5], [-2]]), np.array([[1, 10]]), scale=1)
    array([[ 5, 20]])
    """
    products = q @ np.swapaxes(k[..., None, :, :], -1, -2)
    return scale * (np.swapaxes(weights, -1, -2)[..., None] * np.maximum(products, 0)).sum(axis=-3)


@contract
def select(
    scores: Signed[Array, "... n_query n_key", finite], mask: Booleans[Array, "(...) #n_query #n_key"], *, top: Count
) -> Booleans[Array, "... n_query n_key"]:
    """True for the `top` largest scores of each query among the keys that `mask` allows: boolean, shape of `scores`.

    A query with fewer allowed keys selects all of them. Of equal scores the earlier key is selected first.

    >>> select(np.array([[1.0, 3.0, 3.0, 9.0]]), np.array([True, True, True, False]), top=1)
    array([[False,  True, False, False]])
    """
    here, other = scores[..., :, None], scores[..., None, :]
    place = np.arange(scores.shape[-1])
    ahead = np.where(place < place[:, None], other >= here, other > here)
    return mask & ((ahead & mask[..., None, :]).sum(axis=-1) < top)


@contract(bias=RATE)
def compress(
    x: Numbers[Array, "... rate d"], gates: Signed[Array, "... rate d", finite], bias: Numbers[Array, "rate d", finite]
) -> Numbers[Array, "... d"]:
    """c_m, the mean of the tokens of each block, weighted by the softmax of gates + bias: `(..., d)`.

    >>> compress(np.array([[[1.0], [3.0]], [[5.0], [9.0]]]), np.zeros((2, 2, 1)), np.zeros((2, 1)))
    array([[2.],
           [7.]])
    """
    return _mean(x, gates + bias)


@contract(bias=RATE)
def compress_overlapping(
    x: Numbers[Array, "... blocks rate 2*d", finite],
    gates: Signed[Array, "... blocks rate 2*d", finite],
    bias: Numbers[Array, "rate 2*d", finite],
) -> Numbers[Array, "... blocks d"]:
    """c_m of the first vectors of block m - 1 and the second vectors of block m, halves of `x`: `(..., blocks, d)`.

    >>> x = np.array([[[1.0, 2.0]], [[3.0, 4.0]]])
    >>> compress_overlapping(x, np.zeros((2, 1, 2)), np.zeros((1, 2)))
    array([[2. ],
           [2.5]])
    """
    seen = _with_block_before(np.ones_like(gates)) > 0
    return _mean(_with_block_before(x), _with_block_before(gates + bias), np.swapaxes(seen, -1, -2))


@contract
def block_positions(blocks: Integers[Array, "..."], *, rate: Count) -> Integers[Array, "..."]:
    """m r: where the key of block m is rotated, the position of its first token; shape of `blocks`.

    >>> block_positions(np.array([0, 1, 2]), rate=4)
    array([0, 4, 8])
    """
    return rate * blocks


@contract
def block_mask(
    query_positions: Numbers[Array, "... n_query", finite], blocks: Integers[Array, "... n_key"], *, rate: Count
) -> Booleans[Array, "... n_query n_key"]:
    """True where block m is complete at query i, m r + r - 1 <= i: boolean `(..., n_query, n_key)`.

    >>> block_mask(np.array([2, 3, 4, 7]), np.array([0, 1]), rate=4)
    array([[False, False],
           [ True, False],
           [ True, False],
           [ True,  True]])
    """
    return attention.causal_mask(query_positions, block_positions(blocks, rate=rate) + rate - 1)


@contract
def unfinished_mask(
    query_positions: Numbers[Array, "... n_query", finite], key_positions: Numbers[Array, "... n_key", finite], *, rate: Count
) -> Booleans[Array, "... n_query n_key"]:
    """True for keys up to the query whose block is not complete at the query, r floor((i + 1) / r) <= j <= i: boolean
    `(..., n_query, n_key)`. A query of QSA attends to these keys and to the tokens of the blocks that it selects.

    >>> unfinished_mask(np.array([4, 6, 7]), np.arange(8), rate=4).astype(int)
    array([[0, 0, 0, 0, 1, 0, 0, 0],
           [0, 0, 0, 0, 1, 1, 1, 0],
           [0, 0, 0, 0, 0, 0, 0, 0]])
    """
    first = rate * ((query_positions + 1) // rate)
    return attention.causal_mask(query_positions, key_positions) & (key_positions[..., None, :] >= first[..., None])


def _with_block_before(blocks):
    """First halves of the block before, zeros for block 0, in front of the second halves of the block."""
    first, second = pairing.split(blocks, "half")
    before = np.concatenate([0 * first[..., :1, :, :], first[..., :-1, :, :]], axis=-3)
    return np.concatenate([before, second], axis=-2)


def _mean(vectors, logits, mask=None):
    """The mean over the axis before the last, per feature."""
    weights = attention.softmax(np.swapaxes(logits, -1, -2), mask)
    return (weights * np.swapaxes(vectors, -1, -2)).sum(axis=-1)
