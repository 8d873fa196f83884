"""Shards: attention over some of the keys, to be merged with attention over the other keys.

If the keys do not fit on one device, each device attends to its own keys and passes on partial sums. The merged sums give
attention over all keys.

Definition. Over the keys of a shard S that query i may attend to, with scores s_ij as in `posref.attention`:

    m_i = max_j s_ij
    l_i = sum_j exp(s_ij - m_i)
    a_i = sum_j exp(s_ij - m_i) v_j
    merge    m = max(m, m'),   l = e^{m - max} l + e^{m' - max} l',   a likewise
    finish   o_i = a_i / l_i

Symbols.

    q (..., h, n_query, d)          queries
    k (..., h_key, n_shard, d)      keys of the shard, which heads of q may share as in `posref.attention`
    v (..., h_key, n_shard, d_v)    their values
    m, l (..., h, n_query, 1)       largest score and denominator
    a, o (..., h, n_query, d_v)     accumulator and output
    b, mask (..., n_query, n_shard)  bias and mask, those of the columns of the shard

Conventions. A row that met no key has l = 0, a = 0 and any finite m, which `merge` ignores; `finish` makes zeros of it. `merge`
is commutative, and associative but for rounding, so shards may come in any order and any tree. A masked score sets no maximum.
A sink belongs to no shard: add it once, by `with_sinks`; if every shard added it, it would count several times.

Where implementations differ.

    what | who | value | version | source
    state | flash-attn | o and the logarithm m + log l: the state (m + log l, 1, o) here | 2.8.4 | softmax_lse
    what travels | ring attention, context parallelism | states or keys, from device to device | - | arXiv 2310.01889

References. Milakov and Gimelshein, Online normalizer calculation for softmax, arXiv 1805.02867; Liu et al., Ring Attention,
arXiv 2310.01889.
"""

from typing import NamedTuple

import numpy as np

from posref import attention
from posref._contract import Array, Booleans, Number, Numbers, Positive, Signed, contract, finite


class State(NamedTuple):
    """Attention over some of the keys, before the division. A row that met no key has denominator 0 and any finite maximum."""

    maximum: Signed[Array, "... n_query 1"]  # m_i, the largest score
    denominator: Numbers[Array, "... n_query 1"]  # sum_j exp(s_ij - m_i)
    accumulator: Numbers[Array, "... n_query d_v"]  # sum_j exp(s_ij - m_i) v_j


@contract
def attend(
    q: Numbers[Array, "... n_query d"],
    k: Numbers[Array, "%... n_shard d"],
    v: Numbers[Array, "%... n_shard d_v"],
    *,
    scale: Number,
    bias: Numbers[Array, "#... #n_query #n_shard", finite] | None = None,
    mask: Booleans[Array, "(...) #n_query #n_shard"] | None = None,
    row_scale: Numbers[Array, "(...) #n_query"] | None = None,
    softcap: Positive | None = None,
) -> State:
    """The State of `attention.attend` over one shard of the keys, which may be empty. Arguments and errors are the same.

    >>> q, k, v = np.ones((1, 1)), np.array([[1.0], [2.0], [3.0]]), np.array([[2.0], [4.0], [6.0]])
    >>> left, right = attend(q, k[:1], v[:1], scale=1.0), attend(q, k[1:], v[1:], scale=1.0)
    >>> finish(merge(left, right)).round(4), attention.attend(q, k, v, scale=1.0).round(4)
    (array([[5.1504]]), array([[5.1504]]))
    """
    s = attention.scores(q, k, scale=scale, bias=bias, row_scale=row_scale, softcap=softcap)
    allowed, highest = True if mask is None else mask, attention.row_maximum(s, mask)
    weights = np.where(allowed, np.exp(np.where(allowed, s, highest) - highest), 0)
    return State(highest, weights.sum(axis=-1, keepdims=True), weights @ attention.with_heads_of(weights, v))


@contract(b="states to be merged are of the same queries")
def merge(a: State, b: State) -> State:
    """The State over the keys of both: sums move to the higher maximum and add up. Commutative; associative but for rounding.

    TypeError if one of them is no State, ValueError if their shapes differ.

    >>> one, none = State(np.array([[-9.0]]), np.array([[1.0]]), np.array([[5.0]])), State(*np.zeros((3, 1, 1)))
    >>> merge(one, none)
    State(maximum=array([[-9.]]), denominator=array([[1.]]), accumulator=array([[5.]]))
    """
    m_a, m_b = np.where(a.denominator == 0, b.maximum, a.maximum), np.where(b.denominator == 0, a.maximum, b.maximum)
    highest = np.maximum(m_a, m_b)
    scale_a, scale_b = np.exp(m_a - highest), np.exp(m_b - highest)
    denominator = scale_a * a.denominator + scale_b * b.denominator
    return State(highest, denominator, scale_a * a.accumulator + scale_b * b.accumulator)


@contract(sinks=attention.SINKS)
def with_sinks(state: State, sinks: Numbers[Array, "#... 1", finite]) -> State:
    """The State with one sink per head, `sinks` `(h, 1)`, whose exp enters the denominator. Call it once, not once per shard.

    >>> state = State(np.zeros((1, 2, 1)), np.ones((1, 2, 1)), np.ones((1, 2, 1)))
    >>> finish(with_sinks(state, np.zeros((1, 1)))).ravel()
    array([0.5, 0.5])
    """
    return merge(state, State(0 * state.maximum + sinks[..., None], 0 * state.denominator + 1, 0 * state.accumulator))


@contract
def finish(state: State) -> Numbers[Array, "... n_query d_v"]:
    """accumulator / denominator: what `attention.attend` returns for all keys merged; zeros for a row without keys.

    >>> finish(State(np.zeros((2, 1)), np.array([[2.0], [0.0]]), np.array([[3.0], [0.0]])))
    array([[1.5],
           [0. ]])
    """
    return state.accumulator / np.where(state.denominator == 0, 1, state.denominator)
