"""Gated linear attention: the functions to check, and the mistakes that implementations make."""

# Over budget: a family of released rules (GLA, Mamba-2, its gates), with a state in two layouts and packed texts

import numpy as np

from posref import attention
from posref.ops import Mistake, changing, chunks, instead, missing, using
from posref.ops.common import in_texts, of_the_first, rounded
from posref.ops.probe import ending, painted
from posref.relative import forgetting
from posref.state import gated

log_gates = gated.log_gates


def bounded_log_gates(x, a_log, bias, *, lower_bound=-5.0):
    return gated.bounded_log_gates(x, a_log, bias, lower_bound=lower_bound)


def attend(q, k, v, log_gates, state, *, scale, state_layout):
    """The outputs. Queries and keys may have fewer heads than values; `state` is the state after an earlier text."""
    q, k = (attention.with_heads_of(v, x) for x in (q, k))
    return gated.recurrent(q, k, v, log_gates, scale=scale, state_layout=state_layout, state=state).output


def remember(k, v, log_gates, state, *, state_layout):
    """The state after the last token."""
    k = attention.with_heads_of(v, k)
    return gated.recurrent(k, k, v, log_gates, scale=1, state_layout=state_layout, state=state).state


def packed(q, k, v, log_gates, boundaries, *, scale):
    """The outputs for packed texts, computed by chunks. Text m is rows boundaries[m] .. boundaries[m + 1] - 1."""
    q, k = (attention.with_heads_of(v, x) for x in (q, k))
    return in_texts(gated.chunked, boundaries, q, k, v, log_gates, scale=scale, state_layout="kv", chunk=2)


def _keeping(s):
    """1 for every other head, which keeps its state over hundreds of tokens; 0 for the rest."""
    return np.arange(s.heads)[:, None, None] % 2


def _value_width(s):
    """The width of values: that of keys, or twice that in long texts."""
    return s.head_dim * (1 + (s.n_key > 128))


def _gates(s):
    """Log gates down to -2, and some from -14 to -16; about -0.001 in the heads of `_keeping`."""
    x = -abs(painted((s.batch, s.heads, s.n_key, s.head_dim if s.features else 1), 8))
    return np.where(_keeping(s), x / 1024, np.where(x < -1.75, 8 * x, x))


def _before(s, tag):
    """The state before the first token, in the layout asked for."""
    rows = s.head_dim, _value_width(s)
    return painted((s.batch, s.heads, *(rows[::-1] if s.get("state_layout") == "vk" else rows)), tag)


EXTENTS = {"features": 1, "key_heads": None}  # features=None for one gate per head
ARRAYS = {
    "q": lambda s: painted((s.batch, s.get("key_heads") or s.heads, s.n_key, s.head_dim), 1),
    "k": lambda s: painted((s.batch, s.get("key_heads") or s.heads, s.n_key, s.head_dim), 2),
    "v": lambda s: painted((s.batch, s.heads, s.n_key, _value_width(s)), 4) / 256 ** _keeping(s),
    "log_gates": _gates,
    "state": lambda s: _before(s, 6),
    "boundaries": lambda s: np.unique([0, s.n_key // 3, s.n_key // 3 + 1, s.n_key]),  # the second text has one token
    "x": lambda s: ending(4 * painted((s.batch, s.n_key, s.heads), 1), 40, -40, 100, -100),
    "a_log": lambda s: painted((s.heads,), 9),
    "bias": lambda s: painted((s.heads,), 10),
}
OTHER = {"kv": "vk", "vk": "kv"}


def _later(gates):
    return np.concatenate([0 * gates[..., :1, :], gates[..., :-1, :]], axis=-2)


def _on_the_values(f, a):
    """The recurrence with the gates of key features applied to value features."""
    if "state" not in a or not a.k.shape[-1] == a.v.shape[-1] == a.log_gates.shape[-1] > 1:
        missing()
    state, rows, k = np.swapaxes(a.state, -1, -2) if a.state_layout == "vk" else a.state, [], attention.with_heads_of(a.v, a.k)
    for t in range(k.shape[-2]):
        state = np.exp(a.log_gates[..., t, None, :]) * state + k[..., t, :, None] * a.v[..., t, None, :]
        rows.append(a.scale * (attention.with_heads_of(a.v, a.q)[..., t, None, :] @ state) if "q" in a else 0)
    return np.concatenate(rows, axis=-2) if "q" in a else np.swapaxes(state, -1, -2) if a.state_layout == "vk" else state


def _cumulated_in_bf16(a):
    sums = rounded(np.cumsum(a.log_gates, axis=-2), 8)
    return sums - _later(sums)


def _mask_without_decay(f, a):
    """The text as one chunk: its tokens without decay, plus what the state before it gives."""
    return f(**a | {"log_gates": 0 * a.log_gates, "state": 0 * a.state}) + f(**a | {"v": 0 * a.v})


def _without_own_token(f, a):
    return f(**a) - a.scale * attention.with_heads_of(a.v, (a.q * a.k).sum(axis=-1, keepdims=True)) * a.v


MISTAKES = {
    "softplus_left_out": Mistake(instead(lambda x, a_log, bias: -np.exp(a_log) * (x + bias)), only="log_gates").words("""
        ln f = -exp(A) (x + b): the softplus is left out
        Gates above 1 wherever x + b is negative: the state grows without bound.
        Take softplus of x + b."""),
    "sigmoid_for_softplus": Mistake(
        instead(lambda x, a_log, bias: np.exp(a_log) * forgetting.log_sigmoid(x + bias)), only="log_gates"
    ).words("""
        ln f = exp(A) ln sigmoid(x + b): the gate opens where it should close
        Tokens that should keep forget.
        -softplus(x) is ln sigmoid(-x)."""),
    "a_not_exponentiated": Mistake(using(a_log=lambda a: np.log(abs(a.a_log))), only="log_gates").words("""
        ln f = -|A| softplus(x + b): the parameter is used as it is stored
        Every head forgets at a wrong rate.
        The stored parameter is a logarithm, A_log: take exp of it."""),
    "bias_left_out": Mistake(using(bias=lambda a: 0 * a.bias), only="log_gates bounded_log_gates").words("""
        dt_bias is not added to x
        Every head forgets at a wrong rate.
        Add dt_bias before the softplus, or the sigmoid."""),
    "bounded_gate": Mistake(
        instead(lambda x, a_log, bias: gated.bounded_log_gates(x, a_log, bias, lower_bound=-5)),
        seen_in=("MoonshotAI/FlashKDA#3", "MoonshotAI/FlashKDA#7"),
        only="log_gates",
    ).words("""
        ln f = -5 sigmoid(exp(A) (x + b)): KDA's gate with a lower bound
        Gates are wrong in all models that were trained without the bound, Kimi Linear among them.
        Take the gate of the training: a bound is no option of inference."""),
    "softplus_gate": Mistake(
        instead(lambda x, a_log, bias, lower_bound: gated.log_gates(x, a_log, bias)),
        seen_in=("MoonshotAI/FlashKDA#7",),
        only="bounded_log_gates",
    ).words("""
        ln f = -exp(A) softplus(x + b): KDA's gate without a lower bound
        Gates are wrong in all models that were trained with the bound.
        Take the gate of the training: m sigmoid(exp(A) (x + b))."""),
    "softplus_gate_cut_off": Mistake(
        instead(lambda x, a_log, bias, lower_bound: np.maximum(gated.log_gates(x, a_log, bias), lower_bound)),
        seen_in=("lightseekorg/tokenspeed#847",),
        only="bounded_log_gates",
    ).words("""
        ln f = max(m, -exp(A) softplus(x + b)): the gate without a bound is cut off at the bound
        Within the bound, and wrong everywhere.
        m sigmoid(exp(A) (x + b)) approaches the bound smoothly."""),
    "no_gates": Mistake(using(log_gates=lambda a: 0 * a.log_gates)).words("""
        f = 1: nothing is forgotten
        Right for the first token; later the sums grow with the length.
        Multiply the state by the gates of each token."""),
    "gate_of_the_negative": Mistake(using(log_gates=lambda a: np.log(1 - np.exp(a.log_gates)))).words("""
        1 - f: the gate is read as the share that is forgotten
        Tokens that should keep forget.
        f = 1 keeps everything."""),
    "gates_to_base_2": Mistake(using(log_gates=lambda a: np.log(2) * a.log_gates)).words("""
        2^g for e^g: exp2 is taken of natural logarithms
        Everything is remembered longer.
        Multiply by 1/ln 2 before exp2."""),
    "own_token_gated": Mistake(using(k=lambda a: np.exp(a.log_gates) * attention.with_heads_of(a.v, a.k))).words("""
        S = f (S + k v^T): the gate comes after the new key and value are added
        Each token forgets a part of itself.
        Gate the state first, then add."""),
    "gate_one_token_late": Mistake(using(log_gates=lambda a: _later(a.log_gates))).words("""
        the gate of a token acts at the next one
        A token cannot clear what was before it.
        The sum of the logarithms from key to query includes the query's gate, not the key's."""),
    "gates_of_the_first_head": Mistake(of_the_first("log_gates", -3)).words("""
        all heads use the gates of head 0
        Head 0 is right and no other.
        Use the gates of each head."""),
    "gate_of_the_first_feature": Mistake(of_the_first("log_gates", -1)).words("""
        all features of a head use the gate of feature 0
        Right for models with one gate per head.
        Use one gate per feature of the keys."""),
    "gates_on_the_values": Mistake(_on_the_values).words("""
        the gates act along the values: S = S diag(f) + k v^T
        Right for models with one gate per head.
        Gates belong to the features of keys."""),
    "gates_cumulated_in_bf16": Mistake(using(log_gates=_cumulated_in_bf16)).words("""
        the running sums of the log gates are rounded to bfloat16
        Right for short texts; from a sum of 256 on differences below 1 are lost.
        Sum in float32, and begin again in each chunk."""),
    "chunk_mask_without_decay": Mistake(_mask_without_decay, only="attend").words("""
        inside a chunk the mask is 1 for j <= i, not exp(c_i - c_j)
        Right token by token, wrong in prefill.
        Multiply the scores of the chunk by exp(c_i - c_j)."""),
    "own_token_left_out": Mistake(_without_own_token, only="attend").words("""
        o_i = q_i . S_{i-1}: the output is read before the token is added
        A token does not see itself.
        Add k v^T, then read."""),
    "other_state_layout": Mistake(
        using(state_layout=lambda a: OTHER[a.state_layout] if a.state.shape[-1] == a.state.shape[-2] else missing()),
        seen_in=("flashinfer-bench#156",),
    ).words("""
        the state is [V, K] where [K, V] is meant, or the reverse
        Right for one text from its start; garbage when a state is handed on between programs.
        Swap the last two axes of the state."""),
}

FURTHER = chunks.MISTAKES | {
    "bias_after_softplus": Mistake(
        instead(lambda x, a_log, bias: -np.exp(a_log) * (bias - forgetting.log_sigmoid(-x))), only="log_gates"
    ).words("""
        ln f = -exp(A) (softplus(x) + b): dt_bias is added after the softplus
        Gates above 1 wherever b is less than -softplus(x); elsewhere heads forget at a wrong rate.
        Add dt_bias before the softplus."""),
    "bias_not_multiplied": Mistake(
        instead(
            lambda x, a_log, bias, lower_bound: gated.bounded_log_gates(x, a_log, bias / np.exp(a_log), lower_bound=lower_bound)
        ),
        only="bounded_log_gates",
    ).words("""
        ln f = m sigmoid(exp(A) x + b): dt_bias is added after the product with exp(A)
        Every head forgets at a wrong rate.
        Add dt_bias to x, then multiply by exp(A)."""),
    "read_before_the_update": Mistake(changing(_later, "k", "v", "log_gates"), only="attend").words("""
        o_i = q_i . S_{i-1}: the output is read before the state is multiplied by the gate and the token is added
        A token does not see itself, and earlier tokens are one gate too strong.
        Multiply by the gate, add k v^T, then read."""),
}

CAUSAL = True
SCORES = "its attention weights are not a softmax of scores"


def _head(t):
    """The scores; those of later keys are not used."""
    q, k, v = t.projected(t.x)
    gates = gated.log_gates(t.x @ t.parameter(t.dim), t.parameter(1), t.parameter(1))
    scores = t.scale * (q @ k.T) * np.exp(forgetting.bias(gates[None], form="difference")[0])
    return scores, (np.tri(len(t.x), dtype=int) * scores) @ v


def _weights(t):
    return np.tri(len(t.x)) * _head(t)[0]
