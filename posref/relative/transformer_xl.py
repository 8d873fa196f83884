r"""Transformer-XL: the score has four terms of content and distance; two trained vectors replace the position of the query.

A model that keeps the keys of earlier segments in memory cannot use absolute positions, because every segment starts at 0
again. The distance back to a key is still well defined.

Also called: XL, rel_shift, Music Transformer, skewing.

Definition. The score of x_i + p_i and x_j + p_j has four terms (`posref.attention.four_terms`):

    (a) W_q x_i . W_k x_j        content meets content
    (b) W_q x_i . W_k p_j        content meets position
    (c) W_q p_i . W_k x_j        position meets content
    (d) W_q p_i . W_k p_j        position meets position

Position p_j becomes the sinusoid R_{i-j} of the distance, with a projection of its own; W_q p_i, which must not know i any
more, becomes a trained vector, u in (c) and v in (d). With q = W_q x and k = W_k x:

    r_{i-j} = W_{k,R} R_{i-j}
    s_ij = scale (q_i . k_j + q_i . r_{i-j} + u . k_j + v . r_{i-j})
    s_ij = scale ((q_i + u) . k_j + (q_i + v) . r_{i-j})

Symbols.

    q (..., h, n_query, d)       queries
    k (..., h, n_key, d)         keys
    u, v (h, d)                  trained vectors, r_w_bias and r_r_bias
    r (..., h, m, d)             one row a distance, in the order of `distances`
    mem = n_key - n_query        keys before the first query

Conventions. Distances are i - j, *query minus key*, and descend. Queries stand at the end of the keys: the distance of row i
and column j is i + mem - j. `scale` is 1/sqrt(d) and covers all four terms. The number of rows of r chooses between two forms:

    causal          m = n_key                distances n_key - 1 .. 0; keys of the future have no score
    bidirectional   m = n_query + n_key - 1  distances n_key - 1 .. 1 - n_query; every pair has one

With one query both are the same. A causal score with j > i + mem is undefined and comes back as exactly 0; the caller masks
it with `visible`.

Example. Three queries after one key of memory. Row i holds 10 i + distance for the distances 3, 2, 1, 0; `shift` moves each
to its key, and the zeros behind are those to be masked.

>>> shift(10 * np.arange(3)[:, None] + distances(3, 4, bidirectional=False))
array([[ 1,  0,  0,  0],
       [12, 11, 10,  0],
       [23, 22, 21, 20]])

Where implementations differ.

    what | who | value | version | source
    beyond j = i + mem | Transformer-XL, PyTorch | the pad, then the next row's; 0 as in `shift` if zero_triu=True | 0110210
      | pytorch/mem_transformer.py _rel_shift
    beyond j = i + mem | Transformer-XL, TensorFlow | the pad, then the next row's | 3a0086f | tf/model.py rel_shift
    beyond j = i + mem | Music Transformer's skew, which is this shift of q . r alone | a zero, then the next row's | bafdc1b677
      | tensor2tensor common_attention.py _relative_position_to_absolute_position_masked
    r beyond the table | Music Transformer | zeros, not the last row | bafdc1b677 | common_attention.py
      get_relative_embeddings_left
    shift | ESPnet's first Conformer | the causal one in a bidirectional encoder; legacy_rel_pos keeps it for old checkpoints
      | - | -
    distances | Transformer-XL, PyTorch | n_key - 1 .. 0 | 0110210 | pytorch/mem_transformer.py _forward
    distances | transformers' Wav2Vec2-Conformer | n - 1 .. 1 - n, 2n - 1 of them | 5.23.0
      | modeling_wav2vec2_conformer.py Wav2Vec2ConformerRelPositionalEmbedding
    sinusoid | Transformer-XL, PyTorch | all sines, then all cosines | 0110210
      | pytorch/mem_transformer.py PositionalEmbedding
    sinusoid | transformers' Wav2Vec2-Conformer | sine and cosine alternate | 5.23.0
      | modeling_wav2vec2_conformer.py Wav2Vec2ConformerRelPositionalEmbedding
    u, v | Transformer-XL, PyTorch | shared by all layers | 0110210 | pytorch/mem_transformer.py _create_params
    u, v | Transformer-XL, TensorFlow | shared by all layers, or one per layer with untie_r | 3a0086f | tf/model.py transformer
    clamp_len | Transformer-XL, PyTorch | limits the distance, not the score | 0110210 | pytorch/mem_transformer.py _forward
    r | labml | trained, no sinusoid | 1f38b23 | labml_nn/transformers/xl/relative_mha.py
    v . r | labml | one trained number a distance and head | 1f38b23 | labml_nn/transformers/xl/relative_mha.py

References. Dai et al., arXiv 1901.02860, section 3.3, terms (a) to (d), and appendix B (the shift);
kimiyoung/transformer-xl, pytorch/mem_transformer.py, RelPartialLearnableMultiHeadAttn (r_w_bias is u, r_r_bias is v).
"""

from typing import Any

import numpy as np

from posref import attention
from posref import offsets as relative
from posref._contract import Array, Booleans, Count, Integers, Number, Numbers, contract, kept
from posref.absolute import sinusoidal

PRESETS = {
    "enwik8_base": {"heads": 8, "dim": 64, "clamp_len": None, "source": "pytorch/run_enwik8_base.sh, train"},
    "enwik8_base_eval": {"heads": 8, "dim": 64, "clamp_len": 820, "source": "pytorch/run_enwik8_base.sh, eval"},
    "wt103_base": {"heads": 10, "dim": 41, "clamp_len": None, "source": "pytorch/run_wt103_base.sh, train"},
    "wt103_base_eval": {"heads": 10, "dim": 41, "clamp_len": 400, "source": "pytorch/run_wt103_base.sh, eval"},
}

LAST = "the queries are the last of the keys, pass them all"


@contract
def distances(n_query: Count, n_key: Count, *, bidirectional: bool, clamp_len: Count | None = None) -> Integers[Array, "m"]:
    """i - j in the order of the rows of r, descending from n_key - 1: `(n_key,)` or `(n_query + n_key - 1,)`, integers.

    With `clamp_len` distances are limited to -clamp_len .. clamp_len. ValueError if there are more queries than keys.

    >>> distances(2, 3, bidirectional=False)
    array([2, 1, 0])
    >>> distances(2, 3, bidirectional=True, clamp_len=1)
    array([ 1,  1,  0, -1])
    """
    _require_memory("transformer_xl.distances", n_query, n_key)
    descending = np.arange(n_key - 1, -n_query if bidirectional else -1, -1)
    if clamp_len is None:
        return descending
    return relative.clip(descending, -clamp_len, clamp_len)


@contract
def embeddings(distances: Numbers[Array, "..."], frequencies: Numbers[Array, "dim/2"]) -> Numbers[Array, "... dim"]:
    """R: the sinusoid of every distance, sines first, before its projection W_{k,R}: `distances.shape + (dim,)`.

    >>> embeddings(np.array([1, 0]), np.array([1.0, 0.01])).round(4)
    array([[0.8415, 0.01  , 0.5403, 1.    ],
           [0.    , 0.    , 1.    , 1.    ]])
    """
    return sinusoidal.encode(distances, frequencies, layout="half")


@contract(x=LAST)
def shift(x: Numbers[Array, "... n_query! n_key>=n_query", kept]) -> Numbers[Array, "... n_query n_key"]:
    """out_ij = x[i, j - i + n_query - 1] where j <= i + mem, exactly 0 beyond: `(..., n_query, n_key)`, the shape of `x`.

    Column c of `x` is the distance n_key - 1 - c, so entry (i, j) is row i's value for i + mem - j. The zeros are no
    scores: mask them. For 2n - 1 distances use `posref.offsets.skew`. ValueError for more queries than columns.
    Appendix B.

    >>> shift(np.array([[2, 1, 0], [12, 11, 10], [22, 21, 20]]))
    array([[ 0,  0,  0],
           [11, 10,  0],
           [22, 21, 20]])
    """
    return _shift(x, x.shape[-1])


@contract(k=LAST, r="n_key rows if causal, else n_query + n_key - 1, in the order of transformer_xl.distances")
def scores(
    q: Numbers[Array, "... n_query! d"],
    k: Numbers[Array, "... n_key>=n_query d"],
    r: Numbers[Array, "#... n_key|n_query+n_key-1 d"],
    u: Numbers[Array, "#... d"],
    v: Numbers[Array, "#... d"],
    *,
    scale: Number,
) -> Numbers[Array, "... n_query n_key"]:
    """scale ((q_i + u) . k_j + (q_i + v) . r_{i-j}): `(..., h, n_query, n_key)`. Section 3.3.

    `r` has n_key rows (causal: entries with j > i + mem are exactly 0, to be masked) or n_query + n_key - 1 (bidirectional).
    ValueError for another number of rows, other widths, or more queries than keys.

    >>> q, k, r = np.ones((1, 2, 1)), np.array([[[1.0], [2.0]]]), np.array([[[10.0], [20.0]]])
    >>> scores(q, k, r, np.array([[1.0]]), np.array([[0.0]]), scale=1.0)
    array([[[22.,  0.],
            [12., 24.]]])
    """
    total, defined = _products(q, k, r, u, v, scale)
    return np.where(defined, total, 0)


@contract
def visible(n_query: Count, n_key: Count) -> Booleans[Array, "n_query n_key"]:
    """True where a causal score is defined, j <= i + mem: boolean `(n_query, n_key)`, the mask for `posref.attention.softmax`.

    >>> visible(2, 3)
    array([[ True,  True, False],
           [ True,  True,  True]])
    """
    _require_memory("transformer_xl.visible", n_query, n_key)
    return attention.causal_mask(np.arange(n_query) + (n_key - n_query), np.arange(n_key))


def _products(q: Any, k: Any, r: Any, u: Any, v: Any, scale: Any) -> Any:
    """scale ((q_i + u) . k_j + (q_i + v) . r_{i-j}), and where r has a row for the distance."""
    n_key = k.shape[-2]
    content = attention.scores(q + u[..., None, :], k, scale=1)
    position = attention.scores(q + v[..., None, :], r, scale=1)
    return scale * (content + _shift(position, n_key)), _shift(np.ones_like(position), n_key) == 1


def _shift(x: Any, n_key: Any) -> Any:
    """Columns that descend from the distance n_key - 1, each moved to its key; 0 for a distance that has no column."""
    missing = np.zeros_like(x[..., : x.shape[-2] + n_key - 1 - x.shape[-1]])
    return relative.skew(np.concatenate([x, missing], axis=-1))


def _require_memory(function, n_query, n_key):
    if n_key < n_query:
        raise ValueError(f"{function}: {n_query} queries and {n_key} keys; {LAST}")
