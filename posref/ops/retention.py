"""Retention: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref.ops import missing, using, with_words
from posref.ops.gated import _before, _value_width
from posref.ops.probe import painted
from posref.state import retention


def attend(q, k, v, decays, state, *, scale):
    """What is read; `state` is what an earlier text left, keys by values."""
    return retention.recurrent(q, k, v, decays, scale=scale, state=state).output


def remember(k, v, decays, state):
    """The state after the last token."""
    return retention.recurrent(k, k, v, decays, scale=1, state=state).state


ARRAYS = {
    "q": lambda s: painted((s.batch, s.heads, s.n_key, s.head_dim), 1),
    "k": lambda s: painted((s.batch, s.heads, s.n_key, s.head_dim), 2),
    "v": lambda s: painted((s.batch, s.heads, s.n_key, _value_width(s)), 4),
    "state": lambda s: _before(s, 6),
    "decays": lambda s: 1 - 1 / 2 ** (1 + 7 * np.arange(s.heads) % 8),  # the second keeps its state over 256 tokens
}


def _mask_without_decay(f, a):
    """The tokens of one chunk, which is the text, and what was before it."""
    return f(**a | {"decays": 0 * a.decays + 1, "state": 0 * a.state}) + f(**a | {"v": 0 * a.v})


def _both_ways(f, a):
    """Past, and the text turned around as the future; the token itself once."""
    back = {name: a[name][..., ::-1, :] for name in ("q", "k", "v")} | {"state": 0 * a.state}
    own = a.scale * (a.q * a.k).sum(axis=-1, keepdims=True) * a.v
    return f(**a) + f(**a | back)[..., ::-1, :] - own


MISTAKES = with_words(
    __name__,
    no_decay=using(decays=lambda a: 0 * a.decays + 1),
    own_token_decayed=using(k=lambda a: a.decays[:, None, None] * a.k),
    chunk_mask_without_decay=_mask_without_decay,
    decays_of_the_first_head=using(decays=lambda a: 0 * a.decays + a.decays[:1] if len(a.decays) > 1 else missing()),
    heads_in_reverse=using(decays=lambda a: a.decays[::-1] if len(a.decays) > 1 else missing()),
    decay_of_the_rest=using(decays=lambda a: 1 - a.decays),
    future_seen=_both_ways,
    state_decayed_once_less=using(state=lambda a: a.state / a.decays[:, None, None]),
    state_transposed=using(
        state=lambda a: np.swapaxes(a.state, -1, -2) if a.state.shape[-1] == a.state.shape[-2] else missing()
    ),
)

CAUSAL = True
SCORES = "weights that are no softmax of scores"


def _head(t):
    """Scores of keys in the future are not read."""
    q, k, v = t.projected(t.x)
    scores = t.scale * (q @ k.T) * (1 - abs(t.parameter(1)) / 2) ** -t.offsets
    return scores, (np.tri(len(t.x), dtype=int) * scores) @ v


def _weights(t):
    return np.tri(len(t.x)) * _head(t)[0]
