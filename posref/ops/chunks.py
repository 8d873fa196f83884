"""Chunks: mistakes of kernels that read a text in chunks and carry a state between chunks, for gated, delta and retention.

c are the running sums of the log gates of a chunk. Outputs read the state before the chunk times exp(c_i), and the tokens of
the chunk times exp(c_i - c_j). The state after the chunk is the state before it times exp(c_last), plus the tokens times
exp(c_last - c_j).
"""

from typing import Any, NamedTuple

import numpy as np

from posref import attention
from posref.ops import Mistake, missing
from posref.ops.common import CHUNKS
from posref.state import _memory, delta

MOST = 256  # tokens of one chunk
SHORT = 2, *CHUNKS  # sizes of chunks of which a text has several


class Chunk(NamedTuple):
    """A chunk: queries and keys, what its tokens write, the running sums of its gates, and the states before it."""

    q: Any
    k: Any
    written: Any
    sums: Any
    state: Any
    earlier: Any  # the state before the previous chunk
    passed: Any  # the sum of the log gates of all earlier chunks
    first: Any  # the state that the text begins with


def _read(x, within=None, before=None):
    """The outputs of a chunk; `within` and `before` replace the sums that weigh its tokens and the state before it."""
    within, before = (x.sums if each is None else each for each in (within, before))
    return _memory.pairs(x.q, x.k, within) @ x.written + (np.exp(before) * x.q) @ x.state


def _after(x, last=None, keys=None):
    """The state after a chunk; `last` replaces the sum of all its log gates, `keys` replaces the decayed keys."""
    last = x.sums[..., -1:, :] if last is None else last
    keys = np.exp(last - x.sums) * x.k if keys is None else keys
    return np.swapaxes(np.exp(last), -1, -2) * x.state + np.swapaxes(keys, -1, -2) @ x.written


def _ended_at(token):
    """The state after a chunk, with the total decay read at another token; right if the chunk has one token."""
    return lambda x: _after(x, x.sums[..., token, None, :] if x.sums.shape[-2] > 1 else None)


def _with_the_first(x, times):
    """The outputs of a chunk in which the first state counts `times` its value, not its decayed value. The first chunk is
    right."""
    return (
        _read(x)
        if x.state is x.first
        else _read(x._replace(state=x.state + (times - np.swapaxes(np.exp(x.passed), -1, -2)) * x.first))
    )


def _new_values(k, v, beta, gates, state):
    """The values that the delta rule writes."""
    w, u = delta.wy_form(k, v, beta[..., 0], gates)
    return u - w @ state


def _recalled_undecayed(k, v, beta, gates, state):
    return delta.wy_form(k, v, beta[..., 0], gates).u - delta.wy_form(k, k, beta[..., 0], gates).u @ state


def _in_chunks(size, read=_read, after=_after, short=None, write=_new_values):
    """The op by chunks of `size` tokens (0: one chunk) with another step; `short` is the step for a shorter last chunk."""

    def wrong(f, a):
        n = a.k.shape[-2]
        chunk = size or max(n, CHUNKS[-1])
        if "state" not in a or n <= size or (n > MOST and not size) or (short and n % chunk == 0):
            missing()
        q, k = (attention.with_heads_of(a.v, a.get(name, a.k)) for name in "qk")
        gates = a.log_gates if "log_gates" in a else np.log(a.decays)[:, None, None] + 0 * a.k[..., :1]
        beta, layout = a.get("beta", a.v[..., 0])[..., None], a.get("state_layout", "kv")
        start = state = earlier = _memory.laid(a.state, layout)
        passed, rows = 0 * gates[..., :1, :], []
        for first in range(0, n, chunk):
            q_, k_, v_, beta_, gates_ = (x[..., first : first + chunk, :] for x in (q, k, a.v, beta, gates))
            written = write(k_, v_, beta_, gates_, state) if "beta" in a else v_
            x = Chunk(q_, k_, written, np.cumsum(gates_, axis=-2), state, earlier, passed, start)
            rows += [read(x)] if "q" in a else []
            earlier, state = state, (short if short and n < first + chunk else after)(x)
            passed = passed + x.sums[..., -1:, :]
        return a.scale * np.concatenate(rows, axis=-2) if "q" in a else _memory.laid(state, layout)

    return wrong


def _kind(name, only, *, sizes=(0, *SHORT), **change):
    """A function that makes, from the words of a mistake, the mistake for each chunk size; size 0 means one chunk."""
    called = {size: (name + f"_{size}" * (size > 0), f" of {size} tokens" * (size > 0)) for size in sizes}
    return lambda words: {
        each: Mistake(_in_chunks(size, **change), only=only).words(f"by chunks{tokens}: {words.strip()}")
        for size, (each, tokens) in called.items()
    }


MISTAKES = {
    **_kind("chunk_mask_without_decay", "attend", read=lambda x: _read(x, within=0 * x.sums))("""
        inside a chunk the mask of the outputs is 1 for j <= i, not exp(c_i - c_j)
        Right token by token, wrong in prefill.
        Multiply the scores of the chunk by exp(c_i - c_j)."""),
    **_kind("state_undecayed_in_chunk", "attend", read=lambda x: _read(x, before=0 * x.sums))("""
        inside a chunk outputs read the state before it without the decay up to the token: q_i . S for q_i exp(c_i) . S
        Right without an earlier state until the first chunk ends.
        Multiply the queries by exp(c_i) before they read the state."""),
    **_kind("gates_summed_from_the_start", "attend", sizes=SHORT, read=lambda x: _read(x, before=x.passed + x.sums))("""
        inside a chunk the state is read with the sum of the log gates from the start of the text, not of the chunk
        Right in the first chunk; in later ones the state is decayed several times.
        Begin the running sum again in each chunk."""),
    **_kind("state_after_the_chunk", "attend", read=lambda x: _read(x._replace(state=_after(x))))("""
        each chunk reads the state that it leaves: the state was replaced before it was read
        Tokens of a chunk are seen twice, and before their time.
        Read the state that the chunk before left, then write the new one."""),
    **_kind("state_one_chunk_early", "attend", sizes=SHORT, read=lambda x: _read(x._replace(state=x.earlier)))("""
        each chunk reads the state from before the previous chunk
        What the previous chunk wrote is not seen.
        Read the state that the chunk before left."""),
    **_kind("first_state_decays_anew", "gated.attend retention.attend", sizes=SHORT, read=lambda x: _with_the_first(x, 1))("""
        the state that the text begins with decays from the start of each chunk, not of the text
        Right without such a state, and in the first chunk.
        Decay it with the running sum of all log gates before the token."""),
    **_kind(
        "first_state_in_the_first_chunk_alone",
        "gated.attend retention.attend",
        sizes=SHORT,
        read=lambda x: _with_the_first(x, 0),
    )("""
        the state that the text begins with is read in the first chunk alone
        Right without such a state.
        Carry it on: the state after a chunk is the state before times the decay, and what the chunk writes."""),
    **_kind("chunk_recalls_undecayed", "delta.attend delta.remember", write=_recalled_undecayed)("""
        inside a chunk keys recall from the state before it without the decay up to the token: w lacks exp(c_i)
        Right without an earlier state until the first chunk ends.
        w_i = b_i (exp(c_i) k_i - sum_{j<i} A_ij w_j)."""),
    **_kind(
        "state_before_chunk_not_decayed",
        "attend remember",
        after=lambda x: _after(x) + np.swapaxes(1 - np.exp(x.sums[..., -1:, :]), -1, -2) * x.state,
    )("""
        the state before a chunk is added to the state after it without the decay of the chunk
        Right token by token; what was before a chunk is never forgotten.
        Multiply the state by exp of the sum of the chunk's log gates."""),
    **_kind("chunk_keys_not_decayed", "attend remember", after=lambda x: _after(x, keys=x.k))("""
        keys enter the state without their decay up to the end of a chunk: k_j for exp(c_last - c_j) k_j
        Right token by token; the first tokens of a chunk weigh too much.
        Multiply the keys by exp(c_last - c_j) before they enter the state."""),
    **_kind("chunk_end_at_its_first_token", "attend remember", after=_ended_at(0))("""
        the sum of the log gates up to the end of a chunk is read at its first token
        Right token by token; states grow, because exp(c_first - c_j) is above 1.
        Read the running sum at the last token of the chunk."""),
    **_kind("chunk_end_one_token_early", "attend remember", after=_ended_at(-2))("""
        the sum of the log gates up to the end of a chunk is read at the token before the last
        Right token by token; the last gate of each chunk does not act on the state.
        Read the running sum at the last token of the chunk."""),
    **_kind(
        "state_before_chunk_lost", "attend remember", sizes=SHORT, after=lambda x: _after(x._replace(state=0 * x.state))
    )("""
        the state after a chunk holds the tokens of the chunk alone
        Right for one text from its start until the second chunk ends.
        Add the state before the chunk, times the decay of the chunk."""),
    **_kind("short_chunk_ends_in_padding", "remember", short=lambda x: _after(x, 0 * x.sums[..., -1:, :]))("""
        a shorter last chunk reads the sum of its log gates in a row of padding, where the sum is 0
        Right for texts of whole chunks; else the state is too large: the decay of the last chunk is left out.
        Read the running sum at the last token of the text."""),
    **_kind("short_chunk_dropped", "remember", sizes=SHORT, short=lambda x: x.state)("""
        a shorter last chunk is not added to the state
        Right for texts of whole chunks.
        Count chunks rounded up, and mask the rows beyond the text."""),
}
