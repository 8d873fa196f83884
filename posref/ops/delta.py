"""Delta rule: the functions to check, and the mistakes that implementations make."""

# Over budget: a state in two layouts, shared heads, three places of gates, and the WY form

import numpy as np

from posref import attention
from posref.ops import Mistake, chunks, instead, missing, using
from posref.ops.common import in_texts
from posref.ops.gated import MISTAKES as OF_GATES
from posref.ops.gated import _before, _gates, _keeping, _value_width
from posref.ops.probe import painted
from posref.state import _memory, delta, gated

unit = delta.unit


def attend(q, k, v, beta, log_gates, state, *, scale, state_layout):
    """The outputs. Queries and keys may have fewer heads than values; `state` is the state after an earlier text."""
    q, k = (attention.with_heads_of(v, x) for x in (q, k))
    return delta.recurrent(q, k, v, beta, log_gates, scale=scale, state_layout=state_layout, state=state).output


def remember(k, v, beta, log_gates, state, *, state_layout):
    """The state after the last token."""
    k = attention.with_heads_of(v, k)
    return delta.recurrent(k, k, v, beta, log_gates, scale=1, state_layout=state_layout, state=state).state


def packed(q, k, v, beta, log_gates, boundaries, *, scale):
    """The outputs for packed texts, computed by chunks. Text m is rows boundaries[m] .. boundaries[m + 1] - 1."""
    q, k = (attention.with_heads_of(v, x) for x in (q, k))

    def form(q, k, v, log_gates, beta, **told):
        return delta.chunked(q, k, v, beta[..., 0], log_gates, **told)

    arrays = q, k, v, log_gates, beta[..., None]
    return in_texts(form, boundaries, *arrays, scale=scale, state_layout="kv", chunk=2)


def wy(k, v, beta, log_gates):
    """Keys and values of the WY form side by side."""
    return np.concatenate(delta.wy_form(k, v, beta, log_gates), axis=-1)


def _keys(s, tag):
    """Keys with a norm of about 1: with longer keys the bounds of rounding grow from token to token."""
    return painted((s.batch, s.get("key_heads") or s.heads, s.n_key, s.head_dim), tag) / 2 ** np.ceil(np.log2(s.head_dim) / 2)


EXTENTS = {"features": 1, "key_heads": None}  # features=None for one gate per head
ARRAYS = {
    "q": lambda s: _keys(s, 1),
    "k": lambda s: _keys(s, 2),
    "v": lambda s: painted((s.batch, s.heads, s.n_key, _value_width(s)), 4),
    "beta": lambda s: abs(painted((s.batch, s.heads, s.n_key), 6)) / 256 ** _keeping(s)[..., 0],
    "log_gates": _gates,
    "state": lambda s: _before(s, 9),
    "boundaries": lambda s: np.unique([0, s.n_key // 3, s.n_key // 3 + 1, s.n_key]),  # the second text has one token
    "x": lambda s: painted((s.batch, s.heads, s.n_key, s.head_dim), 1) / 64,
}


def _by_turns(turn):
    """The recurrence token by token with another step, turn(state, f, k, v, b)."""

    def wrong(f, a):
        if "state" not in a:
            missing()
        k = attention.with_heads_of(a.v, a.k)
        state, rows = np.swapaxes(a.state, -1, -2) if a.state_layout == "vk" else a.state, []
        for t in range(k.shape[-2]):
            tokens = k[..., t, None, :], a.v[..., t, None, :], a.beta[..., t, None, None]
            state = turn(state, np.exp(a.log_gates[..., t, :, None]), *tokens)
            rows.append(a.scale * (attention.with_heads_of(a.v, a.q)[..., t, None, :] @ state) if "q" in a else 0)
        return np.concatenate(rows, axis=-2) if "q" in a else np.swapaxes(state, -1, -2) if a.state_layout == "vk" else state

    return wrong


def _t(k):
    return np.swapaxes(k, -1, -2)


def _tiled(a, name):
    shared = a[name].shape[-3:-2] != a.v.shape[-3:-2]
    return np.concatenate([a[name]] * (a.v.shape[-3] // a[name].shape[-3]), axis=-3) if shared else missing()


def _ungated(which):
    """The WY form with gates in only one of its two halves."""

    def wrong(k, v, beta, log_gates):
        gated, plain = (delta.wy_form(k, v, beta, g) for g in (log_gates, 0 * log_gates))
        return np.concatenate([plain.w, gated.u] if which == "w" else [gated.w, plain.u], axis=-1)

    return instead(wrong)


def _one_step(k, v, beta, log_gates):
    """The WY form as a series that ends after its first term."""
    c = np.cumsum(log_gates, axis=-2)
    rows = beta[..., None] * np.concatenate([np.exp(c) * k, v], axis=-1)
    return rows - beta[..., None] * (_memory.pairs(k, k, c) * (1 - np.eye(k.shape[-2], dtype=int))) @ rows


TAKEN = """no_gates gates_to_base_2 gate_one_token_late gates_of_the_first_head gate_of_the_first_feature
    gates_cumulated_in_bf16 other_state_layout"""
MISTAKES = {name: OF_GATES[name] for name in TAKEN.split()} | {
    "decay_after_error": Mistake(
        _by_turns(lambda s, f, k, v, b: f * s + b * _t(k) * (v - k @ s)), seen_in=("flash-linear-attention#885",)
    ).words("""
        v - k . S_{i-1}: the error is that of the state before its gate
        Right without gates; else the correction is too large.
        Gate the state, then look what it recalls."""),
    "gated_after_writing": Mistake(_by_turns(lambda s, f, k, v, b: f * (s + b * _t(k) * (v - k @ s)))).words("""
        S = diag(f) (S + b k e^T): the gate comes after the token is written
        Each token forgets a part of itself.
        Gate the state, then write."""),
    "value_added": Mistake(_by_turns(lambda s, f, k, v, b: f * s + b * _t(k) * v)).words("""
        S = S' + b k v^T: nothing is subtracted
        Right while keys are orthogonal and features have equal gates; else memories pile up. It is gated linear attention.
        Write the difference between the value and what the state recalls."""),
    "error_added": Mistake(_by_turns(lambda s, f, k, v, b: f * s + b * _t(k) * (v + k @ (f * s)))).words("""
        v + k . S': the error has the wrong sign
        The state grows without bound.
        Subtract what the state recalls."""),
    "beta_on_the_value_alone": Mistake(_by_turns(lambda s, f, k, v, b: f * s + _t(k) * (b * v - k @ (f * s)))).words("""
        b v - k . S': b multiplies the value and not what is recalled
        Everything that a key recalls is erased, however small b is.
        b multiplies the whole error."""),
    "beta_twice": Mistake(_by_turns(lambda s, f, k, v, b: f * s + b * _t(k) * (b * v - k @ (f * s)))).words("""
        b (b v - k . S'): the value is multiplied by b twice
        Values are multiplied by b^2: too small below b = 1, too large above.
        Multiply the values or the error by b, not both."""),
    "beta_left_out": Mistake(using(beta=lambda a: 0 * a.beta + 1)).words("""
        b = 1: beta is ignored
        Each write replaces the old value whole.
        Multiply by b."""),
    "half_beta": Mistake(using(beta=lambda a: a.beta / 2)).words("""
        b = sigmoid where the model has 2 sigmoid: the factor 2 is left out
        No eigenvalue is negative: the state cannot track a parity.
        Double b where the configuration allows negative eigenvalues."""),
    "tiled_heads": Mistake(
        using(q=lambda a: _tiled(a, "q"), k=lambda a: _tiled(a, "k")),
        seen_in=("llama.cpp#19468", "ik_llama.cpp#1654"),
        only="attend",
    ).words("""
        value head a uses key head a modulo h_k: heads are tiled
        Right where keys and values have as many heads, wrong elsewhere.
        Value head a uses key head a // (h_v / h_k): repeat, do not tile."""),
    "w_without_gates": Mistake(_ungated("w"), only="wy").words("""
        w is made of k instead of exp(c) k, with k_i . k_j instead of A_ij
        Right without gates, and in the first chunk.
        Multiply the keys of w by exp(c_i), and A by exp(c_i - c_j)."""),
    "u_without_gates": Mistake(_ungated("u"), seen_in=("shainet#170",), only="wy").words("""
        u is made with k_i . k_j, without exp(c_i - c_j)
        Right without gates.
        A has the same decay in w and u."""),
    "first_order": Mistake(instead(_one_step), only="wy").words("""
        1 - A is used in place of the inverse of 1 + A
        Right for two tokens.
        Substitute forward, row by row."""),
    "eps_beside_the_length": Mistake(
        instead(lambda x, eps: x / (np.sqrt((x * x).sum(axis=-1, keepdims=True)) + eps)), only="unit"
    ).words("""
        x / (|x| + eps): eps is added to the norm, not to its square
        Equal for vectors of usual norm; short vectors come out longer.
        Add eps under the root."""),
    "eps_as_a_floor": Mistake(
        instead(lambda x, eps: x / np.maximum(np.sqrt((x * x).sum(axis=-1, keepdims=True)), eps)), only="unit"
    ).words("""
        x / max(|x|, eps), as torch.nn.functional.normalize: eps is a floor of the norm
        Equal for vectors of usual norm; short vectors come out longer.
        Add eps under the root."""),
    "mean_of_squares": Mistake(
        instead(lambda x, eps: x / np.sqrt((x * x).sum(axis=-1, keepdims=True) / x.shape[-1] + eps)), only="unit"
    ).words("""
        the root of the mean of squares is divided by: RMSNorm
        Keys have the norm sqrt(d): the state is overwritten d times and grows without bound.
        Divide by the root of the sum."""),
}


def _square(turn):
    """A recurrence with another step, for keys and values of the same width."""
    return Mistake(
        _by_turns(lambda s, f, k, v, b: turn(s, f, k, v, b) if k.shape[-1] == v.shape[-1] else missing()),
        only="attend remember",
    )


FURTHER = chunks.MISTAKES | {
    "keys_and_values_exchanged": Mistake(
        _by_turns(lambda s, f, k, v, b: f * s + b * _t(k - v @ _t(f * s)) * v), only="attend remember"
    ).words("""
        S = S' + b (k - S' v) v^T: what the value recalls is subtracted from the key: keys and values change roles in the update
        A key does not replace what it recalled.
        Write the key with what the value lacks: S = S' + b k (v - k . S')^T."""),
    "recalled_by_the_value": _square(lambda s, f, k, v, b: f * s + b * _t(k) * (v - v @ (f * s))).words("""
        v - v . S': the state is asked by the value, not by the key
        What is subtracted is not what the key recalls.
        Subtract k . S'."""),
    "written_for_each_other": _square(lambda s, f, k, v, b: f * s + b * _t(v - k @ (f * s)) * k).words("""
        S = S' + b (v - k . S') k^T: keys and values change places where the state is written
        The state is written transposed and read as it was.
        Write k (v - k . S')^T, keys along the axis that queries read."""),
}

CAUSAL = True
SCORES = "its attention weights are not a softmax of scores"


def _head(t):
    """The weights of the values, read from values that are unit vectors per token; later keys have no weight."""
    n = len(t.x)
    q, k, v = t.projected(t.x)
    k, beta = delta.unit(k, eps=1e-6), 1 + np.tanh(t.x @ t.parameter(t.dim))
    gates = gated.log_gates(t.x @ t.parameter(t.dim), t.parameter(1), t.parameter(1))[:, None]
    told = {"scale": t.scale, "state_layout": "kv"}
    scores = delta.recurrent(q, k, np.eye(n, dtype=int), beta, gates, **told).output
    return scores, scores @ v


def _weights(t):
    return _head(t)[0]
