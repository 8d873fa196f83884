r"""Delta rule: the value that a key recalls from the state is replaced, not added to.

Linear attention adds a value to what the key already recalls, so memories of like keys pile up. The delta rule first recalls
k . S, the value that the state holds for the key, then writes the difference to the new value. Gates also make the state fade.

Also called: DeltaNet, gated DeltaNet, GDN, gated delta net, gated delta rule, KDA, Kimi Delta Attention, Kimi Linear.

Definition. Token i has a strength b_i and gates f_i as in `gated`: none in DeltaNet, one gate per head in gated
DeltaNet, one gate per feature in KDA:

    S'_i = diag(f_i) S_{i-1}
    S_i = S'_i + b_i k_i (v_i - k_i . S'_i)^T                         recurrent, S_{-1} = 0 or the last state of an earlier call
    o_i = s q_i . S_i
    A_ij = sum_a k_ia exp(c_ia - c_ja) k_ja                           c_i = sum_{l<=i} ln f_l
    w_i = b_i (exp(c_i) k_i - sum_{j<i} A_ij w_j)                     WY form: no state in it
    u_i = b_i (v_i - sum_{j<i} A_ij u_j)
    e_i = u_i - w_i . S_{-1}                                          what is written
    o_i = s sum_{j<=i} (sum_a q_ia exp(c_ia - c_ja) k_ja) e_j + s sum_a q_ia exp(c_ia) S_{-1,a}     quadratic

and chunked: the quadratic form of a few tokens at a time; each chunk begins with the last state of the chunk before.

Symbols.

    q, k (..., n, d)            queries and keys, of norm 1 in released models (`unit`)
    v (..., n, d_v)             values
    beta (..., n)               b: 0 writes nothing, 1 replaces; up to 2 in models with negative eigenvalues
    log_gates (..., n, d)       ln f, not above 0; (.., n, 1) for one gate per head, zeros for DeltaNet
    s                           scale
    S (..., d, d_v)             `state`, keys by values for state_layout="kv", (.., d_v, d) for "vk"
    w, u (..., n, d), (..., n, d_v)   keys and values of the WY form
    o (..., n, d_v)             output

Conventions. Each token does four things in this order: gate the state, recall with k and subtract from v, write, read with q.
With fewer heads of keys than of values, as in Qwen3-Next, head a of the values uses head a // (h_v / h_k) of queries and keys:
`attention.repeat_heads`. Where A_ij = 0 for all j < i, nothing is recalled and the rule is gated linear attention with values
b v; with one gate per head, orthogonal keys suffice (k_i . k_j = 0). Where k has the norm 1 and b = 1, the state then recalls
exactly v for k. The weight of v_j in o_i depends on all keys between j and i; where keys are orthogonal and all gates are one
number f, the weight is s b_j f^(i-j) q_i . k_j. Where several texts are packed into one row (cu_seqlens), each text begins with
an empty state.

Example. The same key three times: the state recalls the last value, not a sum.

>>> one, v = np.ones((3, 1)), np.array([[1.0], [5.0], [7.0]])
>>> recurrent(one, one, v, np.ones(3), 0 * one, scale=1, state_layout="kv").output.ravel()
array([1., 5., 7.])

Where implementations differ.

    what | who | value | version | source
    gates | Qwen3-Next, gated DeltaNet | -exp(A_log) softplus(a + dt_bias), one per value head | 5.23.0 | modeling_qwen3_next.py
    gates | Kimi Linear | the same, one per feature | 5.23.0 | modeling_kimi_linear.py KimiLinearForgetGate
    gates | GLM-5 Next; KDA in fla, with lower_bound | `gated.bounded_log_gates`, lower_bound -5 | 5.23.0, bc3b101dcb
      | modeling_glm5_next.py Glm5NextTextForgetGate; fla/ops/kda/gate.py
    norm of q and k | fla, transformers | x / sqrt(sum x^2 + 1e-6) | bc3b101dcb, 5.23.0 | modeling_qwen3_next.py l2norm
    norm of q and k in bfloat16 | transformers | in bfloat16 in 5.12.1, in float32 in 5.18.0 and 5.23.0 | 5.12.1, 5.18.0
      | modeling_qwen3_next.py torch_chunk_gated_delta_rule
    norm of q and k | torch.nn.functional.normalize | x / max(|x|, 1e-12) | 2.13.0 | torch/nn/functional.py
    heads | transformers, fla | queries and keys are repeated for neighbouring value heads | 5.23.0
      | modeling_qwen3_next.py torch_chunk_gated_delta_rule
    heads | onnx LinearAttention | fewer heads of keys and values than of queries: several heads of queries read one state
      | 1.23.2 | op_linear_attention.py
    scale | transformers, fla, onnx | d^(-1/2) on the queries, after they are normalized | 5.23.0, 1.23.2
      | modeling_qwen3_next.py; op_linear_attention.py
    padding of the last chunk | transformers | keys 0, gates ln f = 0: the state does not change | 5.23.0
      | modeling_qwen3_next.py torch_chunk_gated_delta_rule

References. Yang et al., DeltaNet, arXiv 2406.06484, section 3; Yang et al., Gated Delta Networks, arXiv 2412.06464, Eq. (10);
Kimi Team, Kimi Linear, arXiv 2510.26692, section 3.
"""

from typing import NamedTuple

import numpy as np

from posref import _require
from posref._contract import Array, Count, Number, Numbers, Positive, contract
from posref.state._memory import Gates, Keys, Layout, Queries, Remembered, State, Values, in_chunks, laid, pairs, start

Betas = Numbers[Array, "... n"]


class WY(NamedTuple):
    """Keys and values of a text without its state: token i writes u_i - w_i . S."""

    w: Numbers[Array, "... n d"]
    u: Numbers[Array, "... n d_v"]


@contract
def unit(x: Numbers[Array, "... d"], *, eps: Positive) -> Numbers[Array, "... d"]:
    """x / sqrt(sum x^2 + eps), queries or keys of norm 1: shape of `x`. fla's l2norm, eps 1e-6.

    >>> unit(np.array([3.0, 4.0]), eps=1e-6).round(6)
    array([0.6, 0.8])
    """
    return x / np.sqrt((x * x).sum(axis=-1, keepdims=True) + eps)


@contract
def recurrent(
    q: Queries, k: Keys, v: Values, beta: Betas, log_gates: Gates, *, scale: Number, state_layout: Layout, state: State = None
) -> Remembered:
    """o_i and the last S: `(..., n, d_v)` and `(..., d, d_v)`, or `(..., d_v, d)` for "vk". Gated Delta Networks, Eq. (10).

    >>> one, half = np.ones((1, 1)), np.log(np.array([[0.5]]))
    >>> recurrent(one, one, 3 * one, np.ones(1), half, scale=1, state_layout="kv", state=4 * one)
    Remembered(output=array([[3.]]), state=array([[3.]]))
    """
    _require.between("delta.recurrent", "-log_gates", -log_gates, 0)
    s, outputs = start(k, v, state, state_layout), []
    for t in range(k.shape[-2]):
        s = np.exp(log_gates[..., t, :, None]) * s
        error = v[..., t, None, :] - k[..., t, None, :] @ s
        s = s + beta[..., t, None, None] * k[..., t, :, None] * error
        outputs.append(scale * (q[..., t, None, :] @ s))
    return Remembered(np.concatenate(outputs, axis=-2), laid(s, state_layout))


@contract
def wy_form(k: Numbers[Array, "... n! d"], v: Values, beta: Betas, log_gates: Gates) -> WY:
    """w and u, row by row: `(..., n, d)` and `(..., n, d_v)`. DeltaNet, Eq. (8); with gates, Kimi Linear, section 3.

    >>> one = np.ones((2, 1))
    >>> wy_form(one, one, np.ones(2), 0 * one).u.ravel()
    array([1., 0.])
    """
    _require.between("delta.wy", "-log_gates", -log_gates, 0)
    c = np.cumsum(log_gates, axis=-2)
    recalled = pairs(k, k, c)
    return WY(*[_substituted(recalled, beta, x) for x in (np.exp(c) * k, v)])


@contract
def quadratic(
    q: Queries, k: Keys, v: Values, beta: Betas, log_gates: Gates, *, scale: Number, state_layout: Layout, state: State = None
) -> Remembered:
    """The result of `recurrent`, from the matrix of all pairs of tokens and the WY form. DeltaNet, section 3.2.

    >>> one = np.ones((2, 1))
    >>> quadratic(one, one, 3 * one, np.ones(2), 0 * one, scale=1, state_layout="kv").output.ravel()
    array([3., 3.])
    """
    s, c, (w, u) = start(k, v, state, state_layout), np.cumsum(log_gates, axis=-2), wy_form(k, v, beta, log_gates)
    written, last = u - w @ s, c[..., -1, None, :]
    after = np.swapaxes(np.exp(last), -1, -2) * s + np.swapaxes(np.exp(last - c) * k, -1, -2) @ written
    return Remembered(scale * (pairs(q, k, c) @ written + (np.exp(c) * q) @ s), laid(after, state_layout))


@contract
def chunked(
    q: Queries,
    k: Keys,
    v: Values,
    beta: Betas,
    log_gates: Gates,
    *,
    scale: Number,
    state_layout: Layout,
    chunk: Count,
    state: State = None,
) -> Remembered:
    """The result of `recurrent`, `chunk` tokens at a time; the last chunk may be shorter. DeltaNet, section 3.2.

    >>> one = np.ones((3, 1))
    >>> chunked(one, one, 3 * one, np.ones(3), 0 * one, scale=1, state_layout="kv", chunk=2).output.ravel()
    array([3., 3., 3.])
    """

    def form(q, k, v, beta, log_gates, *, state):
        return quadratic(q, k, v, beta[..., 0], log_gates, scale=scale, state_layout=state_layout, state=state)

    return in_chunks(form, chunk, state, q, k, v, beta[..., None], log_gates)


def _substituted(recalled, beta, x):
    """The rows y_i = b_i (x_i - sum_{j<i} A_ij y_j), from the first on."""
    rows = beta[..., :1, None] * x[..., :1, :] + 0 * recalled[..., :1, :1]
    for t in range(1, x.shape[-2]):
        row = x[..., t, None, :] - recalled[..., t, None, :t] @ rows
        rows = np.concatenate([rows, beta[..., t, None, None] * row], axis=-2)
    return rows
