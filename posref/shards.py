"""Shards: attention over some of the keys, to be merged with that over the others.

Definition. Over the keys of a shard S that query i may attend to, with scores s_ij as in `posref.attention`:

    m_i = max_j s_ij,   l_i = sum_j exp(s_ij - m_i),   a_i = sum_j exp(s_ij - m_i) v_j
    merge   m = max(m, m'),   l = e^{m - max} l + e^{m' - max} l',   a likewise
    finish  o_i = a_i / l_i

Symbols. q (..., h, n_query, d), k (..., h, n_shard, d), v (..., h, n_shard, d_v); m, l (..., h, n_query, 1); a, o
(..., h, n_query, d_v); bias and mask are those of the columns of the shard.

Conventions. A row that met no key has l = 0, a = 0 and any finite m, which `merge` ignores; `finish` makes zeros of it.
`merge` is commutative, and associative but for rounding, so shards may come in any order and any tree.

Where implementations differ. flash-attn returns o and the logarithm m + log l of the denominator; that pair is
(m + log l, 1, o) here. Ring attention and context parallelism pass states or keys from device to device; either way the merged
result is attention over all keys, which is what can be checked.

Properties. proofs/shards.py: pinned, merge_adds, shards_are_the_whole.

References. Milakov and Gimelshein, Online normalizer calculation for softmax, arXiv 1805.02867; Liu et al., Ring Attention,
arXiv 2310.01889.
"""

from typing import NamedTuple

import numpy as np

from posref import _require, attention


class State(NamedTuple):
    """Attention over some of the keys, before the division. A row that met no key has denominator 0 and any finite maximum."""

    maximum: np.ndarray  # (..., n_query, 1): m_i, the largest score
    denominator: np.ndarray  # (..., n_query, 1): sum_j exp(s_ij - m_i)
    accumulator: np.ndarray  # (..., n_query, d_v): sum_j exp(s_ij - m_i) v_j


def attend(q, k, v, *, scale, bias=None, mask=None):
    """The State of `attention.attend` over a shard of the keys, which may be none. Arguments and errors are the same.

    >>> q, k, v = np.ones((1, 1)), np.array([[1.0], [2.0], [3.0]]), np.array([[2.0], [4.0], [6.0]])
    >>> left, right = attend(q, k[:1], v[:1], scale=1.0), attend(q, k[1:], v[1:], scale=1.0)
    >>> finish(merge(left, right)).round(4), attention.attend(q, k, v, scale=1.0).round(4)
    (array([[5.1504]]), array([[5.1504]]))
    """
    _require.values("shards.attend", q, k, v)
    s = attention.scores(q, k, scale=scale, bias=bias)
    allowed = True if mask is None else mask
    if mask is not None:
        _require.mask("shards.attend", mask, s.shape)
    if k.shape[-2] == 0:
        highest = s.sum(axis=-1, keepdims=True)
    else:
        highest = np.where(allowed, s, s.min(axis=-1, keepdims=True)).max(axis=-1, keepdims=True)
    weights = np.where(allowed, np.exp(np.where(allowed, s, highest) - highest), 0)
    return State(highest, weights.sum(axis=-1, keepdims=True), weights @ v)


def merge(a, b):
    """The State over the keys of both: sums move to the higher maximum and add up. Commutative; associative but for rounding.

    TypeError if one of them is no State, ValueError if their shapes differ.

    >>> one, none = State(np.array([[-9.0]]), np.array([[1.0]]), np.array([[5.0]])), State(*np.zeros((3, 1, 1)))
    >>> merge(one, none)
    State(maximum=array([[-9.]]), denominator=array([[1.]]), accumulator=array([[5.]]))
    """
    _require_states("shards.merge", a, b)
    m_a, m_b = np.where(a.denominator == 0, b.maximum, a.maximum), np.where(b.denominator == 0, a.maximum, b.maximum)
    highest = np.maximum(m_a, m_b)
    scale_a, scale_b = np.exp(m_a - highest), np.exp(m_b - highest)
    denominator = scale_a * a.denominator + scale_b * b.denominator
    return State(highest, denominator, scale_a * a.accumulator + scale_b * b.accumulator)


def finish(state):
    """accumulator / denominator: what `attention.attend` returns for all keys merged; zeros where there was none.

    >>> finish(State(np.zeros((2, 1)), np.array([[2.0], [0.0]]), np.array([[3.0], [0.0]])))
    array([[1.5],
           [0. ]])
    """
    _require_states("shards.finish", state)
    return state.accumulator / np.where(state.denominator == 0, 1, state.denominator)


def _require_states(function, *states):
    for state in states:
        if not isinstance(state, State):
            raise TypeError(f"{function}: got a {type(state).__name__}, expected a State, as shards.attend returns it")
    shapes = [tuple(part.shape for part in state) for state in states]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"{function}: the states have shapes {shapes[0]} and {shapes[1]}; they must be of the same queries")
