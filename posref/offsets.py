r"""Offsets: the relative position of a key, and the matrices that depend on nothing else.

Most relative encodings have one number or one vector per offset between query and key, so they are constant along diagonals.

Definition. For a query at position i and a key at position j:

    offset_ij = j - i
    clip(o, low, high) = min(max(o, low), high)
    T_ij = t_{j - i}

T is a Toeplitz matrix: constant along diagonals, n_query + n_key - 1 numbers instead of n_query n_key.

Symbols.

    query_positions i (..., n_query)    in tokens
    key_positions j (..., n_key)        in tokens
    offsets o (..., n_query, n_key)     key minus query
    by_offset t (..., h, m)             one number per head and offset, ascending in the offset; entry 0 is the offset `lowest`

Conventions. Key minus query: negative is the past, positive the future. Rows are queries and columns are keys. Contiguous
positions that start together make `lowest` = 1 - n_query and m = n_query + n_key - 1; the order of by_offset is the same
for queries at the end of the keys (cached decoding), where `lowest` = 1 - n_key.

Where implementations differ.

    what | who | value | version | source
    sign | Shaw et al., tensor2tensor, NEZHA, T5's code, TUPE | j - i | - | -
    sign | Transformer-XL, XLNet, DeBERTa | i - j | - | -
    clip | Shaw et al., NEZHA | (-k, k), 2k + 1 values | - | arXiv 1803.02155, section 3.2
    clip | DeBERTa | i - j to (-k, k - 1), 2k values | - | arXiv 2006.03654, Eq. (3)
    clip | transformers' Wav2Vec2-BERT | j - i to (-left, right) | 5.23.0 | modeling_wav2vec2_bert.py

References. Shaw et al., arXiv 1803.02155, section 3.2 (clip).
"""

import numpy as np

from posref import _require
from posref._contract import Array, Count, Integer, Number, Numbers, Signed, SignedIntegers, contract, finite, kept


@contract
def offsets(
    query_positions: Signed[Array, "... n_query"], key_positions: Signed[Array, "... n_key"]
) -> Signed[Array, "... n_query n_key"]:
    """j - i for every query i and key j: `(..., n_query, n_key)`.

    Positions are integers, whose differences are int64, or floats; leading axes broadcast. TypeError for unsigned integers,
    whose differences wrap; ValueError for a difference beyond int64 or leading axes that do not broadcast.

    >>> offsets(np.array([1, 2]), np.array([0, 1, 2]))
    array([[-1,  0,  1],
           [-2, -1,  0]])
    """
    _require.differences("offsets.offsets", "key_positions", key_positions, "query_positions", query_positions)
    return key_positions[..., None, :] - query_positions[..., :, None]


@contract
def clip(offsets: Signed[Array, "...", finite], low: Number, high: Number) -> Signed[Array, "..."]:
    """min(max(o, low), high), shape of `offsets`: (-k, k) in Shaw et al., (-k, k - 1) on i - j in DeBERTa.

    Integers become int64. ValueError if low > high, TypeError for unsigned offsets.

    >>> clip(np.array([-5, -1, 0, 5]), -2, 2)
    array([-2, -1,  0,  2])
    """
    _require.ordered("offsets.clip", "low", low, "high", high)
    return np.clip(offsets, low, high)


@contract
def toeplitz(
    by_offset: Numbers[Array, "... n_query+n_key-1", kept], n_query: Count, n_key: Count
) -> Numbers[Array, "... n_query n_key"]:
    """T_ij = by_offset[j - i + n_query - 1]: `(..., n_query, n_key)` from `(..., n_query + n_key - 1)`.

    A read-only view with strides (-1, 1): nothing is copied. ValueError unless `by_offset` has n_query + n_key - 1 entries.

    >>> toeplitz(np.array([-2, -1, 0, 1]), 3, 2)
    array([[ 0,  1],
           [-1,  0],
           [-2, -1]])
    """
    windows = np.lib.stride_tricks.sliding_window_view(by_offset, n_key, axis=-1)
    return windows[..., ::-1, :]


@contract(by_offset="a row has n_query + n_key - 1 entries")
def skew(by_offset: Numbers[Array, "... n_query! n_query+", kept]) -> Numbers[Array, "... n_query n_key"]:
    """`toeplitz` for values that also depend on the row: out_ij = by_offset[i, j - i + n_query - 1].

    `(..., n_query, n_query + n_key - 1)` to `(..., n_query, n_key)`. Row i starts n_query - 1 - i entries late, which is a
    reshape: with one spare column, entry (i, j) stands at i (n_query + n_key - 1) + j after n_query - 1 entries are dropped.

    >>> skew(np.array([[-2, -1, 0, 1], [8, 9, 10, 11], [18, 19, 20, 21]]))
    array([[ 0,  1],
           [ 9, 10],
           [18, 19]])
    """
    n_query, width = by_offset.shape[-2:]
    lead = by_offset.shape[:-2]
    spare = np.concatenate([by_offset, by_offset[..., :1]], axis=-1)
    flat = spare.reshape(*lead, n_query * (width + 1))[..., n_query - 1 : n_query - 1 + n_query * width]
    return flat.reshape(*lead, n_query, width)[..., : width - n_query + 1]


@contract
def gather(
    by_offset: Numbers[Array, "... m", kept], offsets: SignedIntegers[Array, "... n_query n_key"], lowest: Integer
) -> Numbers[Array, "... n_query n_key"]:
    """by_offset[offset_ij - lowest] for any positions: `(..., n_query, n_key)`; for caches, packing, gaps.

    `by_offset` `(..., m)` holds the offsets `lowest` .. `lowest + m - 1`; its leading axes broadcast with those of
    `offsets`: `(h, m)` and `(batch, 1, n_query, n_key)` give `(batch, h, n_query, n_key)`.
    ValueError for an offset outside the table: nothing wraps.

    >>> gather(np.array([[10, 20, 30]]), offsets(np.array([4]), np.array([3, 4, 5, 4])), -1)
    array([[[10, 20, 30, 20]]])
    """
    return gather_rows(by_offset[..., None, :], offsets, lowest)


@contract
def gather_rows(
    by_offset: Numbers[Array, "... m", kept], offsets: SignedIntegers[Array, "... n_key"], lowest: Integer
) -> Numbers[Array, "... n_query n_key"]:
    """by_offset[i, offset_ij - lowest]: like `gather`, for values `(..., n_query, m)` that also depend on the row.

    `(..., n_query, n_key)`; errors as in `gather`.

    >>> gather_rows(np.array([[10, 20, 30], [11, 21, 31]]), np.array([[0, 1], [-1, 0]]), -1)
    array([[20, 30],
           [11, 21]])
    """
    _require.inside("offsets.gather_rows", "offsets", offsets, "by_offset", by_offset.shape[-1], lowest)
    index, size = offsets - lowest, by_offset.shape[-1]
    rows = np.broadcast_shapes(by_offset.shape[:-1], index.shape[:-1])
    spread, index = np.broadcast_to(by_offset, (*rows, size)), np.broadcast_to(index, (*rows, index.shape[-1]))
    return np.take_along_axis(spread, index, axis=-1)


@contract
def scatter_rows(
    gradient: Numbers[Array, "... n_query n_key"],
    offsets: SignedIntegers[Array, "... n_query n_key"],
    lowest: Integer,
    m: Count,
) -> Numbers[Array, "... n_query m"]:
    """The gradient of `gather_rows` by its values: sum_j gradient_ij where offset_ij - lowest = r, for r below `m`.

    >>> scatter_rows(np.array([[1.0, 2.0], [4.0, 8.0]]), np.array([[0, 0], [-1, 0]]), -1, 3)
    array([[0., 3., 0.],
           [4., 8., 0.]])
    """
    return np.where(offsets[..., None] - lowest == np.arange(m), gradient[..., None], 0).sum(axis=-2)
