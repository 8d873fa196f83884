r"""Gated linear attention: the text decides how fast the state fades, by one gate per head or one gate per feature.

Retention forgets at a fixed rate. Here each token decides how much of the state is kept, so a model can clear its memory at
the end of a passage.

Also called: GLA, Mamba-2, SSD, state space duality, simple GLA, selective state space, SSM, RG-LRU, Griffin, Granite 4.

Definition. Token i has a gate for each feature of the keys, f_ia in (0, 1), or one gate per head:

    S_i = diag(f_i) S_{i-1} + k_i v_i^T                               recurrent, S_{-1} = 0 or the last state of an earlier call
    o_i = s q_i . S_i
    o_i = s sum_{j<=i} (sum_a q_ia k_ja exp(c_ia - c_ja)) v_j + s sum_a q_ia exp(c_ia) S_{-1,a}     quadratic
    c_i = sum_{l<=i} ln f_l
    ln f = -exp(A) softplus(x + b)                                    gates of Mamba-2, gated DeltaNet and KDA
    ln f = m sigmoid(exp(A) (x + b))                                  bounded gates of KDA
    k = B, q = C, v = softplus(x + b) x_v                             Mamba-2: the step also multiplies the value

and chunked: the quadratic form of a few tokens at a time; each chunk begins with the last state of the chunk before.

Symbols.

    q, k (..., n, d)            queries and keys
    v (..., n, d_v)             values
    log_gates (..., n, d)       ln f, not above 0; (.., n, 1) for one gate per head
    c (..., n, d)               running sums of ln f
    s                           scale
    S (..., d, d_v)             `state`, keys by values for state_layout="kv", (.., d_v, d) for "vk"
    o (..., n, d_v)             output
    A, b, x                     a_log, bias and what the projection gives
    m                           lower_bound, below 0; -5 in released models

Conventions. The gate of a token acts on what was before it, not on its own key and value: its own value has the weight
q_i . k_i. `forgetting` (FoX) uses the same gate: FoX adds c_i - c_j to the scores before softmax; here the scores are
multiplied by exp(c_i - c_j), which is at most 1. exp(-c_j) alone overflows. Where several texts are packed into one row
(cu_seqlens), each text begins with an empty state.

Example. Equal keys and values; the third token halves what was before it:

>>> one, gates = np.ones((3, 1)), np.log(np.array([[1.0], [1.0], [0.5]]))
>>> recurrent(one, one, one, gates, scale=1, state_layout="kv").output.ravel()
array([1., 2., 2.])

Where implementations differ.

    what | who | value | version | source
    gates | GLA in fla | ln sigmoid(x) / 16, one per feature | bc3b101dcb | fla/layers/gla.py
    gates | Mamba-2 in transformers | -exp(A_log) softplus(dt + dt_bias), one per head; dt also multiplies the value | 5.23.0
      | modeling_mamba2.py mamba2_chunk_scan
    limits of dt | Mamba-2 in transformers | time_step_limit holds in prefill, not in decoding
      | 5.23.0 | modeling_mamba2.py mamba2_chunk_scan, mamba2_selective_state_update
    state | Mamba-2 in transformers | values by keys | 5.23.0 | modeling_mamba2.py mamba2_chunk_scan
    state | fla, onnx LinearAttention | keys by values | bc3b101dcb, 1.23.2 | fla/ops/gla/naive.py; op_linear_attention.py
    heads | Mamba-2 in transformers | neighbouring heads share one group of B and C: repeated, not tiled | 5.23.0
      | modeling_mamba2.py mamba2_chunk_scan
    scale | fla, onnx LinearAttention | d^(-1/2) if none is given | bc3b101dcb, 1.23.2
      | fla/ops/gla/naive.py; op_linear_attention.py
    scale | Mamba-2 | 1 | 5.23.0 | modeling_mamba2.py mamba2_chunk_scan

References. Yang et al., Gated Linear Attention, arXiv 2312.06635, section 4; Dao and Gu, Mamba-2, arXiv 2405.21060, section 6.
"""

import numpy as np

from posref import _require
from posref._contract import Array, Count, Number, Numbers, Signed, contract
from posref.state._memory import Gates, Keys, Layout, Queries, Remembered, State, Values, in_chunks, laid, pairs, start


@contract
def log_gates(x: Signed[Array, "..."], a_log: Signed[Array, "#..."], bias: Signed[Array, "#..."]) -> Numbers[Array, "..."]:
    """ln f = -exp(A) softplus(x + b): shape of `x`. Dao and Gu, section 7; no exponential of a large number is taken.

    >>> log_gates(np.array([0.0, 100.0]), np.array([0.0]), np.array([0.0])).round(3)
    array([  -0.693, -100.   ])
    """
    size = np.abs(x + bias)
    return -np.exp(a_log) * ((x + bias + size) / 2 + np.log(1 + np.exp(-size)))


@contract
def bounded_log_gates(
    x: Signed[Array, "..."], a_log: Signed[Array, "#..."], bias: Signed[Array, "#..."], *, lower_bound: Number
) -> Numbers[Array, "..."]:
    """ln f = m sigmoid(exp(A) (x + b)), between `lower_bound` m and 0: shape of `x`. GLM-5 Next; KDA in fla.

    >>> bounded_log_gates(np.array([0.0, 100.0]), np.array([0.0]), np.array([0.0]), lower_bound=-5).round(3)
    array([-2.5, -5. ])
    """
    rate = np.exp(a_log) * (x + bias)
    return lower_bound * np.exp((rate - np.abs(rate)) / 2) / (1 + np.exp(-np.abs(rate)))


@contract
def recurrent(
    q: Queries, k: Keys, v: Values, log_gates: Gates, *, scale: Number, state_layout: Layout, state: State = None
) -> Remembered:
    """o_i and the last S: `(..., n, d_v)` and `(..., d, d_v)`, or `(..., d_v, d)` for "vk". Yang et al., Eq. (3).

    >>> one, gate = np.ones((1, 1)), np.log(np.array([[0.5]]))
    >>> recurrent(one, one, one, gate, scale=1, state_layout="kv", state=np.array([[4.0]]))
    Remembered(output=array([[3.]]), state=array([[3.]]))
    """
    _require.between("gated.recurrent", "-log_gates", -log_gates, 0)
    s, outputs = start(k, v, state, state_layout), []
    for t in range(k.shape[-2]):
        s = np.exp(log_gates[..., t, :, None]) * s + k[..., t, :, None] * v[..., t, None, :]
        outputs.append(scale * (q[..., t, None, :] @ s))
    return Remembered(np.concatenate(outputs, axis=-2), laid(s, state_layout))


@contract
def quadratic(
    q: Queries, k: Keys, v: Values, log_gates: Gates, *, scale: Number, state_layout: Layout, state: State = None
) -> Remembered:
    """The result of `recurrent`, from the matrix of all pairs of tokens. Yang et al., section 4.1; Dao and Gu, Eq. (7).

    >>> one, gates = np.ones((2, 1)), np.log(np.array([[0.5], [0.25]]))
    >>> quadratic(one, one, one, gates, scale=1, state_layout="kv").output.ravel()
    array([1.  , 1.25])
    """
    _require.between("gated.quadratic", "-log_gates", -log_gates, 0)
    s, c = start(k, v, state, state_layout), np.cumsum(log_gates, axis=-2)
    last = c[..., -1, None, :]
    after = np.swapaxes(np.exp(last), -1, -2) * s + np.swapaxes(np.exp(last - c) * k, -1, -2) @ v
    return Remembered(scale * (pairs(q, k, c) @ v + (np.exp(c) * q) @ s), laid(after, state_layout))


@contract
def chunked(
    q: Queries, k: Keys, v: Values, log_gates: Gates, *, scale: Number, state_layout: Layout, chunk: Count, state: State = None
) -> Remembered:
    """The result of `recurrent`, `chunk` tokens at a time; the last chunk may be shorter. Yang et al., section 4.2.

    >>> one, gates = np.ones((3, 1)), np.log(np.full((3, 1), 0.5))
    >>> chunked(one, one, one, gates, scale=1, state_layout="kv", chunk=2).output.ravel()
    array([1.  , 1.5 , 1.75])
    """

    def form(q, k, v, log_gates, *, state):
        return quadratic(q, k, v, log_gates, scale=scale, state_layout=state_layout, state=state)

    return in_chunks(form, chunk, state, q, k, v, log_gates)
