"""Mistakes of chunks are named: each is a change of the recurrence, token by token, which the mistakes do not use."""

from functools import partial
from types import SimpleNamespace

import numpy as np

from posref.check import check
from posref.ops import chunks
from tests.check.test_check_attention import is_mistake
from tests.every import every


def held(c, after=None):
    return c.old + c.new


def token_by_token(q, k, v, beta, log_gates, state, *, size, read=held, recall=held, end=held, last=None):
    """The delta rule, where a change takes what is known of the chunk so far: `end` its end, `last` that of a shorter one.

    `old` is the state before the chunk with its decay, `start` without; `new` is what the chunk wrote, `plain` without decay.
    """
    out, passed, before, begin = [], 0 * log_gates[:, :, 0, :, None], state, state
    for first in range(0, k.shape[2], size):
        c, seen = (
            SimpleNamespace(before=before, start=state, old=state, new=0, plain=0, sums=[], passed=passed, begin=begin),
            [],
        )
        for t in range(first, min(first + size, k.shape[2])):
            gate = log_gates[:, :, t, :, None].astype(float)
            c.old, c.new, c.sums = np.exp(gate) * c.old, np.exp(gate) * c.new, [*c.sums, gate + sum(c.sums[-1:])]
            error = v[:, :, t, None] - k[:, :, t, None] @ (recall(c) + 0 * state)
            write = beta[:, :, t, None, None] * k[:, :, t, :, None] * error
            c.new, c.plain = c.new + write, c.plain + write
            seen.append(SimpleNamespace(**vars(c)))
        before, state = state, (last if last and len(seen) < size else end)(c)
        passed = passed + c.sums[-1]
        out += [0.25 * q[:, :, first + i, None] @ read(each, state) for i, each in enumerate(seen)]
    return np.concatenate(out, axis=2), state


def attend(q, k, v, beta, log_gates, state, **change):
    return token_by_token(q, k, v, beta, log_gates, state, **change)[0]


def remember(k, *x, **change):
    return token_by_token(k, k, *x, **change)[1]


def gated(fn):
    """The same where nothing is recalled: no delta rule."""
    return lambda *x: fn(*x[:-2], np.ones(x[0].shape[:3]), *x[-2:], recall=lambda c: 0)


IN_CHUNKS = {  # a mistake of chunks: what has it, and the change of the recurrence
    "chunk_mask_without_decay": ("attend", {"read": lambda c, after: c.old + c.plain}),
    "state_undecayed_in_chunk": ("attend", {"read": lambda c, after: c.start + c.new}),
    "gates_summed_from_the_start": ("attend", {"read": lambda c, after: np.exp(c.passed) * c.old + c.new}),
    "state_after_the_chunk": ("attend", {"read": lambda c, after: np.exp(c.sums[-1]) * after + c.new}),
    "state_one_chunk_early": ("attend", {"read": lambda c, after: np.exp(c.sums[-1]) * c.before + c.new}),
    "first_state_decays_anew": (
        "gated.attend",
        {"read": lambda c, after: c.old + c.new + np.exp(c.sums[-1]) * (1 - np.exp(c.passed)) * c.begin},
    ),
    "first_state_in_the_first_chunk_alone": (
        "gated.attend",
        {"read": lambda c, after: c.old + c.new - np.exp(c.sums[-1] + c.passed) * c.begin * np.any(c.passed)},
    ),
    "chunk_recalls_undecayed": ("attend remember", {"recall": lambda c: c.start + c.new}),
    "state_before_chunk_not_decayed": ("attend remember", {"end": lambda c: c.start + c.new}),
    "chunk_keys_not_decayed": ("attend remember", {"end": lambda c: c.old + c.plain}),
    "chunk_end_at_its_first_token": ("attend remember", {"end": lambda c: np.exp(c.sums[0] - c.sums[-1]) * held(c)}),
    "chunk_end_one_token_early": ("attend remember", {"end": lambda c: np.exp(c.sums[-2:][0] - c.sums[-1]) * held(c)}),
    "state_before_chunk_lost": ("attend remember", {"end": lambda c: c.new}),
    "short_chunk_ends_in_padding": ("remember", {"last": lambda c: np.exp(-c.sums[-1]) * held(c)}),
    "short_chunk_dropped": ("remember", {"last": lambda c: c.start}),
}


ASKED = {"attend": {"state_layout": "kv", "scale": 0.25}, "remember": {"state_layout": "kv"}}
RIGHT = {"attend": attend, "remember": remember}


@every([(name, last) for name, (ops, _) in IN_CHUNKS.items() for last in ops.split()])
def test_a_mistake_of_chunks_is_named(name, last):
    """Of the delta rule by chunks of 4 tokens; a state that nothing is recalled from by chunks of 64, longer than the text."""
    change, (system, _, last) = IN_CHUNKS[name][1], last.rpartition(".")
    size = 2 if system else 4  # in two chunks to lose the first state is to lose any
    fn = partial(RIGHT[last], size=size, **change)
    assert is_mistake(f"{system or 'delta'}.{last}", ASKED[last], gated(fn) if system else fn, f"{name}_{size}")
    if name in chunks.MISTAKES and name != "chunk_recalls_undecayed" and last == "remember":
        report = check(gated(partial(RIGHT[last], size=64, **change)), f"gated.{last}", **ASKED[last])
        assert [f"{name}_64"] == [each.name for each in report.diagnosis], str(report)


def test_every_mistake_of_chunks_is_asked():
    assert {name.rstrip("0123456789").rstrip("_") for name in chunks.MISTAKES} == IN_CHUNKS.keys()


@every([("delta", "attend"), ("gated", "remember")])
def test_right_chunks_pass(op, last):
    fn = partial(RIGHT[last], size=4)
    report = check(gated(fn) if op == "gated" else fn, f"{op}.{last}", **ASKED[last])
    assert report.ok, str(report)


@every([4, 32])
def test_a_name_that_fits_two_chunks_is_asked_at_three(size):
    """Chunks after the first read the state with the decay of the token before: in the second, as if it had lost a gate."""
    early = partial(attend, size=size, read=lambda c, after: c.old * np.exp(-c.sums[0] * np.any(c.passed)) + c.new)

    def retain(q, k, v, decays, state):
        return gated(early)(q, k, v, np.log(decays)[:, None, None] + 0 * k[..., :1], state)

    report = check(retain, "retention.attend", scale=0.25)
    assert (report.ok, report.diagnosis) == (False, []), str(report)
