"""Gated linear attention: what an implementation can be asked for, and how it goes wrong."""

# Over budget: a family of released rules (GLA, Mamba-2, its gates), with a state in two layouts and packed texts

import numpy as np

from posref.ops import instead, missing, using, with_words
from posref.ops.common import in_texts, rounded
from posref.ops.probe import ending, painted
from posref.relative import forgetting
from posref.state import gated

log_gates = gated.log_gates


def bounded_log_gates(x, a_log, bias, *, lower_bound=-5.0):
    return gated.bounded_log_gates(x, a_log, bias, lower_bound=lower_bound)


def attend(q, k, v, log_gates, state, *, scale, state_layout):
    """What is read; `state` is what an earlier text left."""
    return gated.recurrent(q, k, v, log_gates, scale=scale, state_layout=state_layout, state=state).output


def remember(k, v, log_gates, state, *, state_layout):
    """The state after the last token."""
    return gated.recurrent(k, k, v, log_gates, scale=1, state_layout=state_layout, state=state).state


def packed(q, k, v, log_gates, boundaries, *, scale):
    """What is read in texts one after the other, text m in rows boundaries[m] .. boundaries[m + 1] - 1; here in chunks."""
    return in_texts(gated.chunked, boundaries, q, k, v, log_gates, scale=scale, state_layout="kv", chunk=2)


def _keeping(s):
    """1 for the heads that keep their state over hundreds of tokens, 0 for the others: every other head."""
    return np.arange(s.heads)[:, None, None] % 2


def _value_width(s):
    """That of keys, and twice that in long texts."""
    return s.head_dim * (1 + (s.n_key > 128))


def _gates(s):
    """Down to -2, and some from -14 to -16; about -0.001 in the heads that keep."""
    x = -abs(painted((s.batch, s.heads, s.n_key, s.head_dim if s.features else 1), 8))
    return np.where(_keeping(s), x / 1024, np.where(x < -1.75, 8 * x, x))


def _before(s, tag):
    """The state before the first token, in its layout."""
    rows = s.head_dim, _value_width(s)
    return painted((s.batch, s.heads, *(rows[::-1] if s.get("state_layout") == "vk" else rows)), tag)


EXTENTS = {"features": 1}  # None for one gate per head
ARRAYS = {
    "q": lambda s: painted((s.batch, s.heads, s.n_key, s.head_dim), 1),
    "k": lambda s: painted((s.batch, s.heads, s.n_key, s.head_dim), 2),
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


def _first_feature(a):
    return a.log_gates[..., :1] if a.log_gates.shape[-1] > 1 else missing()


def _on_the_values(f, a):
    """The recurrence with the gates of the features of keys along those of values."""
    if "state" not in a or not a.k.shape[-1] == a.v.shape[-1] == a.log_gates.shape[-1] > 1:
        missing()
    state, rows = np.swapaxes(a.state, -1, -2) if a.state_layout == "vk" else a.state, []
    for t in range(a.k.shape[-2]):
        state = np.exp(a.log_gates[..., t, None, :]) * state + a.k[..., t, :, None] * a.v[..., t, None, :]
        rows.append(a.scale * (a.q[..., t, None, :] @ state) if "q" in a else 0)
    return np.concatenate(rows, axis=-2) if "q" in a else np.swapaxes(state, -1, -2) if a.state_layout == "vk" else state


def _gates_of_one_head(a):
    return 0 * a.log_gates + a.log_gates[..., :1, :, :] if a.log_gates.shape[-3] > 1 else missing()


def _cumulated_in_bf16(a):
    sums = rounded(np.cumsum(a.log_gates, axis=-2), 8)
    return sums - _later(sums)


def _mask_without_decay(f, a):
    """The tokens of one chunk, which is the text, and what was before it."""
    return f(**a | {"log_gates": 0 * a.log_gates, "state": 0 * a.state}) + f(**a | {"v": 0 * a.v})


def _without_own_token(f, a):
    return f(**a) - a.scale * (a.q * a.k).sum(axis=-1, keepdims=True) * a.v


MISTAKES = with_words(
    __name__,
    softplus_left_out=instead(lambda x, a_log, bias: -np.exp(a_log) * (x + bias)),
    sigmoid_for_softplus=instead(lambda x, a_log, bias: np.exp(a_log) * forgetting.log_sigmoid(x + bias)),
    a_not_exponentiated=using(a_log=lambda a: np.log(abs(a.a_log))),
    bias_left_out=using(bias=lambda a: 0 * a.bias),
    bounded_gate=instead(lambda x, a_log, bias: gated.bounded_log_gates(x, a_log, bias, lower_bound=-5)),
    softplus_gate=instead(lambda x, a_log, bias, lower_bound: gated.log_gates(x, a_log, bias)),
    softplus_gate_cut_off=instead(lambda x, a_log, bias, lower_bound: np.maximum(gated.log_gates(x, a_log, bias), lower_bound)),
    no_gates=using(log_gates=lambda a: 0 * a.log_gates),
    gate_of_the_negative=using(log_gates=lambda a: np.log(1 - np.exp(a.log_gates))),
    gates_to_base_2=using(log_gates=lambda a: np.log(2) * a.log_gates),
    own_token_gated=using(k=lambda a: np.exp(a.log_gates) * a.k),
    gate_one_token_late=using(log_gates=lambda a: _later(a.log_gates)),
    gates_of_the_first_head=using(log_gates=_gates_of_one_head),
    gate_of_the_first_feature=using(log_gates=_first_feature),
    gates_on_the_values=_on_the_values,
    gates_cumulated_in_bf16=using(log_gates=_cumulated_in_bf16),
    chunk_mask_without_decay=_mask_without_decay,
    own_token_left_out=_without_own_token,
    other_state_layout=using(
        state_layout=lambda a: OTHER[a.state_layout] if a.state.shape[-1] == a.state.shape[-2] else missing()
    ),
)

FURTHER = with_words(
    __name__,
    read_before_the_update=using(**{name: lambda a, name=name: _later(a[name]) for name in ("k", "v", "log_gates")}),
)

CAUSAL = True
SCORES = "weights that are no softmax of scores"


def _head(t):
    """Scores of keys in the future are not read."""
    q, k, v = t.projected(t.x)
    gates = gated.log_gates(t.x @ t.parameter(t.dim), t.parameter(1), t.parameter(1))
    scores = t.scale * (q @ k.T) * np.exp(forgetting.bias(gates[None], form="difference")[0])
    return scores, (np.tri(len(t.x), dtype=int) * scores) @ v


def _weights(t):
    return np.tri(len(t.x)) * _head(t)[0]
