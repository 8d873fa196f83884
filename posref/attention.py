"""Attention: what every positional encoding enters. It knows no encoding; everything arrives as arrays.

Definition. For queries q_i, keys k_j and values v_j:

    s_ij = scale q_i . k_j + b_ij,   a_ij = exp(s_ij) / sum_l exp(s_il) over the keys i may attend to,   o_i = sum_j a_ij v_j

Symbols. q (..., h, n_query, d), k (..., h, n_key, d), v (..., h, n_key, d_v); scores and bias (..., h, n_query, n_key);
masks boolean, broadcasting to the scores; o (..., h, n_query, d_v).

Conventions. The mask is boolean, True = may attend; a query with no key gets zeros, not NaN. A batch of masks is
(batch, 1, n_query, n_key), a padding mask (batch, n_key) enters as mask[:, None, None, :]. `scale` is always an argument:
1/sqrt(d) in Vaswani et al., 1 in T5, 1/sqrt(2d) in TUPE, 1/sqrt(3d) in DeBERTa. A bias is added after scaling.

Where implementations differ. Masks by adding -inf or a large negative number turn an empty row into NaN or into a uniform
average; a boolean mask says what is meant. Causal attention with fewer queries than keys is aligned at the end here (the
last query sees the last key), as in flash-attn since 2.1; PyTorch's is_causal aligns at the start. A causal window of w keys,
the query's own among them, is sliding_window = w in transformers and window_size = (w - 1, 0) in flash-attn, whose ends are
inclusive; in both directions transformers 5.23.0 (masking_utils.py) includes the distance sliding_window itself.

Properties. proofs/attention.py: pinned_softmax, blind_to_a_row_shift, pinned_scores, pinned_attend, masks_pinned,
offsets_pinned, permutation_equivariant, causal_mask_and_order, bias_of_the_offset_is_translation_invariant,
four_terms_add_up, relative_exactly_for_the_commutant.

References. Vaswani et al., arXiv 1706.03762, Eq. (1); the expansion: Dai et al., Transformer-XL, arXiv 1901.02860, section 3.3.
"""

from typing import NamedTuple

import numpy as np

from posref import _require


class FourTerms(NamedTuple):
    """The four parts of a score, each `(..., n, n)`; without scale they add up to the score of x + p."""

    content_content: np.ndarray
    content_position: np.ndarray
    position_content: np.ndarray
    position_position: np.ndarray


def softmax(scores, mask=None):
    """exp(s) / sum exp(s) over the last axis, over the keys where `mask` is True; a row of nothing is zeros.

    Computed on s - max(s), which changes nothing and cannot overflow.

    >>> softmax(np.array([[0.0, 0.0, 5.0], [1.0, 2.0, 3.0]]), np.array([[True, True, False], [False, False, False]]))
    array([[0.5, 0.5, 0. ],
           [0. , 0. , 0. ]])
    """
    _require.array("attention.softmax", "scores", scores, kinds=_require.SIGNED_NUMBERS, ndim=1)
    _require.wide("attention.softmax", scores=scores)
    if scores.shape[-1] == 0:
        return scores
    if mask is None:
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)
    _require.mask("attention.softmax", mask, scores.shape)
    highest = np.where(mask, scores, scores.min(axis=-1, keepdims=True)).max(axis=-1, keepdims=True)
    weights = np.where(mask, np.exp(np.where(mask, scores, highest) - highest), 0)
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(mask.any(axis=-1, keepdims=True), total, 1)


def scores(q, k, *, scale, bias=None):
    """scale q_i . k_j, plus bias_ij if there is one: `(..., n_query, n_key)`; `bias` broadcasts to it.

    >>> scores(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [0.0, 1.0]]), scale=0.5)
    array([[5.5, 1. ]])
    """
    _require.array("attention.scores", "q", q, ndim=2)
    _require.array("attention.scores", "k", k, ndim=2)
    _require.same_width("attention.scores", "q", q, "k", k)
    _require.leading_axes("attention.scores", "q", q, "k", k)
    _require.wide("attention.scores", q=q, k=k)
    _require.number("attention.scores", "scale", scale)
    s = scale * (q @ np.swapaxes(k, -1, -2))
    if bias is None:
        return s
    _require.array("attention.scores", "bias", bias)
    _require.broadcasts_to("attention.scores", "bias", bias, "scores", s.shape)
    return s + bias


def attend(q, k, v, *, scale, bias=None, mask=None):
    """o_i = sum_j softmax_j(scale q_i . k_j + bias_ij) v_j: `(..., n_query, d_v)`. Vaswani et al. Eq. (1).

    `bias` and `mask` broadcast to the scores.

    >>> q, k = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 5.0]])
    >>> attend(q, k, np.array([[2.0], [4.0]]), scale=1.0)
    array([[3.]])
    """
    _require.values("attention.attend", q, k, v)
    return softmax(scores(q, k, scale=scale, bias=bias), mask) @ v


def causal_mask(query_positions, key_positions):
    """True where the key is not in the future, j <= i: boolean `(..., n_query, n_key)`.

    >>> causal_mask(np.array([1, 2]), np.array([0, 1, 2]))
    array([[ True,  True, False],
           [ True,  True,  True]])
    """
    _require.array("attention.causal_mask", "query_positions", query_positions, ndim=1)
    _require.array("attention.causal_mask", "key_positions", key_positions, ndim=1)
    query, key = query_positions[..., :, None], key_positions[..., None, :]
    _require.leading_axes("attention.causal_mask", "query_positions[..., None]", query, "key_positions[..., None, :]", key)
    return key <= query


def window_mask(query_positions, key_positions, *, width):
    """True where |j - i| < width: boolean `(..., n_query, n_key)`; and it with a causal mask for a sliding window.

    A causal window of `width` then holds `width` keys, the query's own among them, as in transformers' Mistral. TypeError for
    positions that are unsigned or have 8 or 16 bits, whose differences wrap.

    >>> window_mask(np.array([2]), np.array([0, 1, 2, 3]), width=2)
    array([[False,  True,  True,  True]])
    """
    for name, positions in (("query_positions", query_positions), ("key_positions", key_positions)):
        _require.array("attention.window_mask", name, positions, kinds=_require.SIGNED_NUMBERS, ndim=1)
        _require.wide("attention.window_mask", **{name: positions})
    _require.positive("attention.window_mask", "width", width)
    query, key = query_positions[..., :, None], key_positions[..., None, :]
    _require.leading_axes("attention.window_mask", "query_positions[..., None]", query, "key_positions[..., None, :]", key)
    return np.abs(key - query) < width


def four_terms(x, p, w_q, w_k):
    """(x_i + p_i) W_Q W_K^T (x_j + p_j)^T in its four parts; content is `x`, position is `p`, both `(..., n, d)`.

    `w_q`, `w_k` `(d, d_head)`. Transformer-XL section 3.3, terms (a) to (d).

    >>> x, p, one = np.array([[1.0]]), np.array([[2.0]]), np.array([[1.0]])
    >>> [term.item() for term in four_terms(x, p, one, one)]
    [1.0, 2.0, 2.0, 4.0]
    """
    for name, value in (("x", x), ("p", p), ("w_q", w_q), ("w_k", w_k)):
        _require.array("attention.four_terms", name, value, ndim=2)
        _require.wide("attention.four_terms", **{name: value})
    _require.same_width("attention.four_terms", "x", x, "p", p)
    _require.same_width("attention.four_terms", "x", x, "p", p, axis=-2)
    _require.same_width("attention.four_terms", "w_q", w_q, "w_k", w_k)
    if not x.shape[-1] == w_q.shape[-2] == w_k.shape[-2]:
        raise ValueError(
            f"attention.four_terms: x has {x.shape[-1]} features, w_q {w_q.shape[-2]} rows and w_k {w_k.shape[-2]}; "
            "they must be equal, since the vectors are rows: q = x w_q"
        )
    content_q, position_q = x @ w_q, p @ w_q
    content_k, position_k = np.swapaxes(x @ w_k, -1, -2), np.swapaxes(p @ w_k, -1, -2)
    return FourTerms(content_q @ content_k, content_q @ position_k, position_q @ content_k, position_q @ position_k)


def attend_by_offset(q, k, v, *, scale, bias_by_offset=None, causal=False, window=None):
    """`attend` with a bias that depends on the offset alone, and masks by rule: `(..., h, n_query, d_v)`.

    `bias_by_offset` `(h, n_query + n_key - 1)`: entry `j - i + n_query - 1` belongs to row i and column j. Rows and columns
    are aligned at the end: causal means j <= i + n_key - n_query, a window of width w means |j - i - (n_key - n_query)| < w.
    `k` and `v` may have fewer heads than `q` (grouped queries): head a of `q` uses head a // (h / h_key).

    >>> ones = np.ones((1, 3, 1))
    >>> v = np.array([[[0.0], [2.0], [4.0]]])
    >>> attend_by_offset(ones, ones, v, scale=1.0, causal=True)[0, :, 0]
    array([0., 1., 2.])
    """
    for name, value in (("q", q), ("k", k), ("v", v)):
        _require.array("attention.attend_by_offset", name, value, ndim=3)
    heads, n_query, n_key = q.shape[-3], q.shape[-2], k.shape[-2]
    if k.shape[-3] != v.shape[-3] or k.shape[-3] == 0 or heads % k.shape[-3] != 0:
        raise ValueError(
            f"attention.attend_by_offset: q has {heads} heads, k {k.shape[-3]} and v {v.shape[-3]}; "
            "k and v need the same number, a divisor of q's"
        )
    _require.choice("attention.attend_by_offset", "causal", causal, (True, False))
    query_positions, key_positions = np.arange(n_query) + (n_key - n_query), np.arange(n_key)
    mask = np.ones((n_query, n_key), dtype=bool)
    if causal:
        mask &= causal_mask(query_positions, key_positions)
    if window is not None:
        mask &= window_mask(query_positions, key_positions, width=window)
    bias = None
    if bias_by_offset is not None:
        _require_offsets("attention.attend_by_offset", bias_by_offset, n_query, n_key)
        bias = bias_by_offset[..., np.arange(n_key) - np.arange(n_query)[:, None] + n_query - 1]
    group = heads // k.shape[-3]
    return attend(q, np.repeat(k, group, axis=-3), np.repeat(v, group, axis=-3), scale=scale, bias=bias, mask=mask)


def _require_offsets(function, bias_by_offset, n_query, n_key):
    _require.array(function, "bias_by_offset", bias_by_offset, ndim=1)
    if bias_by_offset.shape[-1] != n_query + n_key - 1:
        raise ValueError(
            f"{function}: bias_by_offset has {bias_by_offset.shape[-1]} offsets, {n_query} queries and {n_key} keys need "
            f"{n_query + n_key - 1}"
        )
