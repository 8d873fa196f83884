"""Attention: what every positional encoding enters. It knows no encoding; everything arrives as arrays.

Every query weighs all keys by how well they match it and averages their values. Without an encoding it cannot tell where a key
stands.

Also called: NoPE, no position encoding, DroPE.

Definition. For queries q_i, keys k_j and values v_j:

    s_ij = cap(scale r_i q_i . k_j) + b_ij             cap(s) = c tanh(s / c), or s without a cap
    a_ij = exp(s_ij) / (e^sink + sum_l exp(s_il))     over the keys l that i may attend to; e^sink is 0 without a sink
    o_i = sum_j a_ij v_j

Symbols.

    q (..., h, n_query, d)           queries
    k (..., h_key, n_key, d)         keys, with as many heads as q or a divisor: head a of q uses head a // (h / h_key)
    v (..., h_key, n_key, d_v)       values
    s, b (..., h, n_query, n_key)    scores and bias
    mask (..., n_query, n_key)       boolean, broadcasts to the scores
    r (..., n_query)                 row_scale, a factor for each query: a temperature
    c                                softcap, the bound of |score|
    sink (..., h, 1)                 one logit per head that takes a share of the weight and has no value
    o (..., h, n_query, d_v)         output

Conventions. The mask is boolean, True = may attend; a query with no key gets zeros, not NaN. A batch of masks is
(batch, 1, n_query, n_key), a padding mask (batch, n_key) enters as mask[:, None, None, :]. `scale` is always an argument:
1/sqrt(d) in Vaswani et al., 1 in T5, 1/sqrt(2d) in TUPE, 1/sqrt(3d) in DeBERTa. A bias is added after scaling. Causal attention
with fewer queries than keys is aligned at the end: the last query sees the last key.

A constant added to a row of scores changes nothing in a plain softmax; with a sink, or with a cap over the sum of scores and
bias, it does.

Where implementations differ.

    what | who | value | version | source
    cap and bias | flash-attn, transformers' Gemma 2 | capped before the bias or mask is added | 0251105a, 5.23.0
      | csrc/flash_attn/src/flash_fwd_kernel.h; modeling_gemma2.py
    cap and bias | flashinfer | ALiBi is added first, `cap(scores(.., bias=bias), softcap=c)` | - | variants.cuh
    sink | gpt-oss | one learned logit per head | 5.23.0 | modeling_gpt_oss.py eager_attention_forward
    empty row | masks by adding -inf | NaN | - | exp(-inf - (-inf))
    empty row | masks by adding a large negative number | the uniform average | - | -
    causal, n_query < n_key | flash-attn | aligned at the end | since 2.1 | flash_attn/flash_attn_interface.py
    causal, n_query < n_key | PyTorch, is_causal | aligned at the start | 2.13.0 | torch/nn/functional.py
    causal window of w keys, its own included | transformers | sliding_window = w | 5.23.0 | masking_utils.py
    causal window of w keys, its own included | flash-attn | window_size = (w - 1, 0), ends inclusive | 2.8.4
      | flash_attn/flash_attn_interface.py
    chunked attention | transformers' Llama 4 | keys up to the query with floor(j / c) = floor(i / c), left padding not counted
      | 5.23.0 | masking_utils.py chunked_overlay
    prefix of a padded text | transformers' PaliGemma | tokens of type 0; padding is masked after them | 5.23.0
      | masking_utils.py create_causal_mask
    window in both directions | transformers | includes the distance sliding_window itself | 5.23.0 | masking_utils.py

References. Vaswani et al., arXiv 1706.03762, Eq. (1); the expansion: Dai et al., Transformer-XL, arXiv 1901.02860, section 3.3.
"""

from typing import Any, NamedTuple

import numpy as np

from posref._contract import Array, Booleans, Count, Number, Numbers, Positive, Signed, contract, finite, kept


class FourTerms(NamedTuple):
    """The four parts of a score, each `(..., n, n)`; without scale they add up to the score of x + p."""

    content_content: Array
    content_position: Array
    position_content: Array
    position_position: Array


SINKS = "one per head, as a column: sinks[:, None]"


@contract(sinks=SINKS)
def softmax(
    scores: Signed[Array, "... n_query? n_key", finite],
    mask: Booleans[Array, "(...) #n_query #n_key"] | None = None,
    sinks: Numbers[Array, "#... 1", finite] | None = None,
) -> Numbers[Array, "... n_query? n_key"]:
    """exp(s) / sum exp(s) over the last axis, over the keys where `mask` is True; a row without keys is zeros.

    Computed on s - max(s), which cannot overflow. Each of `sinks` `(h, 1)` is the logit of one more key, whose value is 0.

    >>> softmax(np.array([[0.0, 0.0, 5.0], [1.0, 2.0, 3.0]]), np.array([[True, True, False], [False, False, False]]))
    array([[0.5, 0.5, 0. ],
           [0. , 0. , 0. ]])
    """
    highest = row_maximum(scores, mask)
    highest = highest if sinks is None else np.maximum(highest, sinks[..., None])
    weights = np.exp((scores if mask is None else np.where(mask, scores, highest)) - highest)
    weights = weights if mask is None else np.where(mask, weights, 0)
    total = weights.sum(axis=-1, keepdims=True)
    total = total if sinks is None else total + np.exp(sinks[..., None] - highest)
    total = total if mask is None else np.where(mask.any(axis=-1, keepdims=True), total, 1)
    return weights / total


def row_maximum(scores: Any, mask: Any) -> Any:
    """The largest score of each row where `mask` is True, subtracted before exp: `(..., 1)`; any number for a row without True.

    >>> row_maximum(np.array([[1.0, 9.0]]), np.array([True, False])), row_maximum(np.zeros((1, 0)), None)
    (array([[1.]]), array([[0.]]))
    """
    if scores.shape[-1] == 0:
        return scores.sum(axis=-1, keepdims=True)
    if mask is not None:
        scores = np.where(mask, scores, scores.min(axis=-1, keepdims=True))
    return scores.max(axis=-1, keepdims=True)


@contract
def scores(
    q: Numbers[Array, "... n_query d"],
    k: Numbers[Array, "%... n_key d"],
    *,
    scale: Number,
    bias: Numbers[Array, "#... #n_query #n_key", finite] | None = None,
    row_scale: Numbers[Array, "(...) #n_query"] | None = None,
    softcap: Positive | None = None,
) -> Numbers[Array, "... n_query n_key"]:
    """scale q_i . k_j, plus bias_ij if there is one: `(..., n_query, n_key)`; `bias` broadcasts to it.

    `row_scale` `(n_query,)` multiplies the scores of each query, and `softcap` bounds them, before the bias is added. Keys with
    fewer heads are shared (grouped queries): head a of `q` uses head a // (h / h_key).

    >>> scores(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [0.0, 1.0]]), scale=0.5)
    array([[5.5, 1. ]])
    """
    s = scale * (q @ np.swapaxes(with_heads_of(q, k), -1, -2))
    if row_scale is not None:
        s = row_scale[..., None] * s
    if softcap is not None:
        s = cap(s, softcap=softcap)
    return s if bias is None else s + bias


@contract
def cap(scores: Numbers[Array, "..."], *, softcap: Positive) -> Numbers[Array, "..."]:
    """c tanh(s / c): scores between -c and c, in the same order. Gemma 2, `attn_logit_softcapping`.

    >>> cap(np.array([0.0, 1.0, 1000.0]), softcap=50.0).round(4)
    array([ 0.    ,  0.9999, 50.    ])
    """
    return softcap * np.tanh(scores / softcap)


@contract(heads="k and v of grouped queries have a divisor of the heads of q")
def repeat_heads(x: Numbers[Array, "... h_key n d", kept], *, heads: Count) -> Numbers[Array, "... heads n d"]:
    """Keys or values with as many heads as queries, a multiple: head a of q uses head a // (heads / h_key).

    >>> repeat_heads(np.array([[[1.0]], [[2.0]]]), heads=4)[:, 0, 0]
    array([1., 1., 2., 2.])
    """
    return np.repeat(x, _group(heads, x.shape[-3]), axis=-3)


def with_heads_of(q: Any, k: Any) -> Any:
    """Shared keys or values, repeated to the heads of `q`. Equal heads, one head and no head axis stay: numpy broadcasts them.

    >>> with_heads_of(np.zeros((4, 1, 1)), np.array([[[1.0]], [[2.0]]]))[:, 0, 0]
    array([1., 1., 2., 2.])
    """
    heads, key_heads = q.shape[-3:-2], k.shape[-3:-2]
    return k if () in (heads, key_heads) or heads == key_heads or 1 in heads + key_heads else repeat_heads(k, heads=q.shape[-3])


@contract(sinks=SINKS)
def attend(
    q: Numbers[Array, "... n_query d"],
    k: Numbers[Array, "%... n_key d"],
    v: Numbers[Array, "%... n_key d_v"],
    *,
    scale: Number,
    bias: Numbers[Array, "#... #n_query #n_key", finite] | None = None,
    mask: Booleans[Array, "(...) #n_query #n_key"] | None = None,
    row_scale: Numbers[Array, "(...) #n_query"] | None = None,
    softcap: Positive | None = None,
    sinks: Numbers[Array, "#... 1", finite] | None = None,
) -> Numbers[Array, "... n_query d_v"]:
    """o_i = sum_j softmax_j(scale q_i . k_j + bias_ij) v_j: `(..., n_query, d_v)`. Vaswani et al. Eq. (1).

    `bias`, `mask` broadcast to the scores; `row_scale`, `softcap` and shared `k`, `v` as in `scores`, `sinks` as in `softmax`.

    >>> q, k = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 5.0]])
    >>> attend(q, k, np.array([[2.0], [4.0]]), scale=1.0)
    array([[3.]])
    """
    s = scores(q, k, scale=scale, bias=bias, row_scale=row_scale, softcap=softcap)
    return softmax(s, mask, sinks) @ with_heads_of(s, v)


@contract
def causal_mask(
    query_positions: Numbers[Array, "... n_query", finite], key_positions: Numbers[Array, "... n_key", finite]
) -> Booleans[Array, "... n_query n_key"]:
    """True where the key is not in the future, j <= i: boolean `(..., n_query, n_key)`.

    >>> causal_mask(np.array([1]), np.array([0, 1, 2]))
    array([[ True,  True, False]])
    """
    return key_positions[..., None, :] <= query_positions[..., :, None]


@contract
def window_mask(
    query_positions: Signed[Array, "... n_query", finite],
    key_positions: Signed[Array, "... n_key", finite],
    *,
    width: Count,
    ahead: Count | None = None,
    causal: bool = False,
) -> Booleans[Array, "... n_query n_key"]:
    """True where |j - i| < width, with `ahead` -ahead < i - j < width, with `causal` j <= i too: `(..., n_query, n_key)`.

    A causal window holds `width` keys, the query's own among them, as in Mistral. TypeError for unsigned positions.

    >>> window_mask(np.array([2]), np.array([0, 1, 2, 3]), width=2, causal=True)
    array([[False,  True,  True, False]])
    """
    offset = key_positions[..., None, :] - query_positions[..., :, None]
    near = np.abs(offset) < width if ahead is None else (-width < offset) & (offset < ahead)
    return near & causal_mask(query_positions, key_positions) if causal else near


@contract
def four_terms(
    x: Numbers[Array, "... n d"],
    p: Numbers[Array, "... n d"],
    w_q: Numbers[Array, "... d d_head"],
    w_k: Numbers[Array, "... d d_head"],
) -> FourTerms:
    """(x_i + p_i) W_Q W_K^T (x_j + p_j)^T in its four parts; content is `x`, position is `p`, both `(..., n, d)`.

    `w_q`, `w_k` `(d, d_head)`. Transformer-XL section 3.3, terms (a) to (d).

    >>> x, p, one = np.array([[1.0]]), np.array([[2.0]]), np.array([[1.0]])
    >>> [term.item() for term in four_terms(x, p, one, one)]
    [1.0, 2.0, 2.0, 4.0]
    """
    content_q, position_q = x @ w_q, p @ w_q
    content_k, position_k = np.swapaxes(x @ w_k, -1, -2), np.swapaxes(p @ w_k, -1, -2)
    return FourTerms(content_q @ content_k, content_q @ position_k, position_q @ content_k, position_q @ position_k)


@contract
def attend_by_offset(
    q: Numbers[Array, "... h%h_key n_query d", finite],
    k: Numbers[Array, "... h_key n_key d", finite],
    v: Numbers[Array, "... h_key n_key d_v"],
    *,
    scale: Number,
    bias_by_offset: Numbers[Array, "#... #h n_query+n_key-1", finite] | None = None,
    causal: bool = False,
    window: Count | None = None,
    row_scale: Numbers[Array, "(...) #1 #n_query"] | None = None,
    softcap: Positive | None = None,
    sinks: Numbers[Array, "#... #h 1", finite] | None = None,
) -> Numbers[Array, "... h n_query d_v"]:
    """`attend` with a bias that depends only on the offset, and masks that are rules: `(..., h, n_query, d_v)`.

    `bias_by_offset` `(h, n_query + n_key - 1)`: entry `j - i + n_query - 1` belongs to row i and column j. Rows and columns
    are aligned at the end: causal means j <= i + n_key - n_query, a window of width w means |j - i - (n_key - n_query)| < w.

    >>> ones, v = np.ones((1, 3, 1)), np.array([[[0.0], [2.0], [4.0]]])
    >>> attend_by_offset(ones, ones, v, scale=1.0, causal=True)[0, :, 0]
    array([0., 1., 2.])
    """
    n_query, n_key = q.shape[-2], k.shape[-2]
    i, j = np.arange(n_query) + (n_key - n_query), np.arange(n_key)
    mask = causal_mask(i, j) if causal else np.ones((n_query, n_key), dtype=bool)
    mask = mask if window is None else mask & window_mask(i, j, width=window)
    bias = None if bias_by_offset is None else bias_by_offset[..., j - i[:, None] + n_key - 1]
    return attend(q, k, v, scale=scale, bias=bias, mask=mask, row_scale=row_scale, softcap=softcap, sinks=sinks)


class Gradient(NamedTuple):
    """The gradients of a scalar L by the inputs of `attend`, given its gradient by the output."""

    q: Array
    k: Array
    v: Array
    bias: Array


@contract
def attend_gradient(
    output_gradient: Numbers[Array, "... n_query d_v"],
    q: Numbers[Array, "... n_query d"],
    k: Numbers[Array, "%... n_key d"],
    v: Numbers[Array, "%... n_key d_v"],
    *,
    scale: Number,
    bias: Numbers[Array, "#... #n_query #n_key", finite] | None = None,
    mask: Booleans[Array, "(...) #n_query #n_key"] | None = None,
) -> Gradient:
    """dL/dq, dL/dk, dL/dv and dL/ds, the gradient by every score before broadcasting, for L with dL/do = `output_gradient`.

    dv = a^T do, ds = a (da - sum_j a da) with da = do v^T, dq = scale ds k, dk = scale ds^T q. Keys and values that heads of q
    share have the sum over these heads. The gradient by a bias that was broadcast is the sum of dL/ds over the broadcast axes.

    >>> q, k, v = np.array([[1.0]]), np.array([[0.0], [0.0]]), np.array([[2.0], [4.0]])
    >>> attend_gradient(np.array([[1.0]]), q, k, v, scale=1.0).bias
    array([[-0.5,  0.5]])
    """
    weights = softmax(scores(q, k, scale=scale, bias=bias), mask)
    by_weight = output_gradient @ np.swapaxes(with_heads_of(output_gradient, v), -1, -2)
    by_score = weights * (by_weight - (weights * by_weight).sum(axis=-1, keepdims=True))
    of_q, of_k = scale * (by_score @ with_heads_of(by_score, k)), scale * (np.swapaxes(by_score, -1, -2) @ q)
    of_v = np.swapaxes(weights, -1, -2) @ output_gradient
    return Gradient(of_q, _summed_over_sharing(of_k, k), _summed_over_sharing(of_v, v), by_score)


def _summed_over_sharing(gradient, k):
    """Gradients of keys that heads share: the sum over the heads that share one."""
    heads, key_heads = gradient.shape[-3:-2], k.shape[-3:-2]
    in_groups = *gradient.shape[:-3], *key_heads, -1, *gradient.shape[-2:]
    return gradient if () in (heads, key_heads) or heads == key_heads else gradient.reshape(in_groups).sum(axis=-3)


def _group(heads, key_heads):
    if key_heads == 0 or heads % key_heads != 0:
        raise ValueError(f"attention.repeat_heads: x has {key_heads} heads, expected a divisor of heads = {heads}")
    return heads // key_heads
