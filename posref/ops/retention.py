"""Retention: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.ops import Mistake, chunks, missing, using
from posref.ops.common import CHUNKS, of_the_first
from posref.ops.gated import _before, _value_width
from posref.ops.probe import painted
from posref.state import _memory, retention


def attend(q, k, v, decays, state, *, scale):
    """The outputs. `state` is the state after an earlier text, keys by values."""
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
    """The text as one chunk: its tokens without decay, plus what the state before it gives."""
    return f(**a | {"decays": 0 * a.decays + 1, "state": 0 * a.state}) + f(**a | {"v": 0 * a.v})


def _both_ways(f, a):
    """Past and future: the text and the reversed text, with each token counted once."""
    back = {name: a[name][..., ::-1, :] for name in ("q", "k", "v")} | {"state": 0 * a.state}
    own = a.scale * (a.q * a.k).sum(axis=-1, keepdims=True) * a.v
    return f(**a) + f(**a | back)[..., ::-1, :] - own


def _rows_normalized(size):
    """Outputs by chunks of `size` tokens, divided by a root within each chunk; size 0 means the whole text is one chunk."""

    def wrong(f, a):
        if a.k.shape[-2] <= size:
            missing()

        def form(q, k, v, *, state):
            right, inner = (retention.quadratic(q, k, v, a.decays, scale=a.scale, state=each) for each in (state, None))
            root = np.sqrt(np.cumsum(a.decays[:, None] ** np.arange(k.shape[-2]), axis=-1))[..., None]
            return right._replace(output=right.output - inner.output + inner.output / root)

        return _memory.in_chunks(form, size or a.k.shape[-2], a.state, a.q, a.k, a.v).output

    return wrong


MISTAKES = {
    "no_decay": Mistake(using(decays=lambda a: 0 * a.decays + 1)).words("""
        g = 1: nothing is forgotten
        Right for the first token; later the sums grow with the length.
        Multiply the state by the head's decay at each token."""),
    "own_token_decayed": Mistake(using(k=lambda a: a.decays[:, None, None] * a.k)).words("""
        S = g (S + k v^T): the decay comes after the new key and value are added
        Each token weighs itself g times; without an earlier state all outputs are g times what they should be.
        Decay the state first, then add."""),
    "chunk_mask_without_decay": Mistake(_mask_without_decay, only="attend").words("""
        inside a chunk the mask is 1 for j <= i, not g^(i-j)
        Right token by token, wrong in prefill.
        Multiply the mask of the chunk by g^(i-j)."""),
    "decays_of_the_first_head": Mistake(of_the_first("decays", -1)).words("""
        all heads use the decay of head 0
        Head 0 is right and no other.
        Use one decay per head."""),
    "heads_in_reverse": Mistake(using(decays=lambda a: a.decays[::-1] if len(a.decays) > 1 else missing())).words("""
        the decays are those of the heads from the last to the first
        Heads that should remember forget.
        Head 0 has the fastest decay: 1 - 2^-5 in RetNet."""),
    "decay_of_the_rest": Mistake(using(decays=lambda a: 1 - a.decays)).words("""
        1 - g for g: the decay is read as the share that is forgotten
        Almost nothing is remembered.
        g = 1 keeps all."""),
    "future_seen": Mistake(_both_ways, only="attend").words("""
        all keys are read, with g^|i-j|
        Training is too good, generation is bad.
        Read keys up to the token: j <= i."""),
    "state_decayed_once_less": Mistake(using(state=lambda a: a.state / a.decays[:, None, None])).words("""
        the first token reads the state before its decay: g^i for g^(i+1)
        What was before a chunk weighs too much by one factor.
        The state decays at the first token too."""),
    "state_transposed": Mistake(
        using(state=lambda a: np.swapaxes(a.state, -1, -2) if a.state.shape[-1] == a.state.shape[-2] else missing())
    ).words("""
        the state is read as values by keys
        Right for one text from its start; garbage after the first chunk.
        The state is keys by values; swap its last two axes."""),
}

FURTHER = chunks.MISTAKES | {
    "chunk_decays_normalized" + f"_{size}" * (size > 0): Mistake(_rows_normalized(size), only="attend").words(f"""
        inside a chunk{f" of {size} tokens" * (size > 0)} decays are divided by the root of their row sum, the state's are not
        Chunks differ from the recurrence.
        Divide both parts of a row by the same root, or none.""")
    for size in (0, 2, *CHUNKS)
}

CAUSAL = True
SCORES = "its attention weights are not a softmax of scores"


def _head(t):
    """The scores; those of later keys are not used."""
    q, k, v = t.projected(t.x)
    scores = t.scale * (q @ k.T) * (1 - abs(t.parameter(1)) / 2) ** -t.offsets
    return scores, (np.tri(len(t.x), dtype=int) * scores) @ v


def _weights(t):
    return np.tri(len(t.x)) * _head(t)[0]
