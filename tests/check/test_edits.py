"""An implementation that is the specification but for one expression: its line is named. What is no such edit has no line."""

import inspect
import tracemalloc
from functools import partial

import numpy as np
import pytest

from posref import ops, position_ids
from posref.check import check, edits
from posref.check.engine import FEW, Question
from posref.check.implementation import example
from posref.check.tensors import round_to
from posref.relative import cope, swin
from posref.rotary import rope
from tests import own
from tests.every import every

REAL = [op for op in own.OPS if np.size(op.spec(**op.make(**example(op)))) > 1]


def retention_without_decay_within_a_chunk(q, k, v, decays, state):
    """The keys of a chunk of 3 tokens enter the state as they are."""
    outputs, g = [], decays[:, None, None]
    for first in range(0, q.shape[-2], 3):
        a, b, c = (x[..., first : first + 3, :] for x in (q, k, v))
        i, j = np.indices((a.shape[-2], b.shape[-2]))
        seen = np.tril(g ** np.maximum(i - j, 0))
        outputs.append(np.einsum("bhid,bhjd,hij,bhje->bhie", a, b, seen, c) + g ** (i[:, :1] + 1) * a @ state)
        state = g ** len(i) * state + np.einsum("bhjd,bhje->bhde", b, c)
    return np.concatenate(outputs, axis=-2)


def test_a_line_of_a_form_by_chunks():
    report = check(retention_without_decay_within_a_chunk, "retention.attend", scale=1, heads=1)
    (finding,) = report.diagnosis
    assert "with `k` for `powers[:, -2::-1, None] * k` in state.retention.quadratic, by chunks of 3 tokens" in finding.sentence


def test_edits_are_of_the_formula():
    """Checks of arguments, annotations and names of lists stay; each edit is another text, and all can be called."""
    body = inspect.unwrap(position_ids.packed)
    words = [words for _, words in edits.edits(body)]
    assert {"`np.cumsum(lengths)` for `np.cumsum(lengths) - lengths`", "`np.cumsum(-lengths)` for `np.cumsum(lengths)`"} <= {
        *words
    }
    assert not [each for each in words if "require" in each or "Array" in each]
    assert edits.edits(inspect.unwrap(swin.bias))


def test_expressions_that_no_run_evaluates_are_not_changed():
    """Half the answers of all edits of a rotation are right: those of the other layout, of what is not given."""
    op = ops.op("rope.attend")
    a = op.make(**example(op))
    question = Question(op, a, ("f32",))
    evaluated = [(name, mistake.wrong) for name, mistake in edits.every(op.spec, a)]
    words = {name for name, _ in evaluated}
    everything = [
        edits._mistake(body, said, partial(edits._answer, body=body, edited=edited))
        for body in edits._bodies(op.spec)
        for edited, said in edits.edits(body)
    ]
    assert 2 * len(words) < len(everything)
    for name, mistake in everything[::21]:
        answer = question.answer(name, mistake.wrong)
        assert name in words or answer is None or np.array_equal(answer, question.right), name


@every([(1e6, 32768, "`0` for `np.maximum(low, 0)`"), (1e4, 4096, "beta_fast=1024 or more; you asked for beta_fast=32")])
def test_what_any_large_number_explains_is_no_setting(base, length, said):
    """YaRN's ramp begins at pair 0."""
    op, asked = ops.op("scaling.yarn"), {"dim": 128, "base": base, "factor": 8.0, "original_length": length, "truncate": True}
    got = op.spec(**op.make(**asked) | {"beta_fast": 4.0**9})
    (found,) = check(lambda *_: got, "scaling.yarn", **asked).diagnosis
    assert said in found.sentence


def test_one_number_is_no_evidence():
    """Positions that are all too large by 2 n_query: other numbers of the code may be that one."""
    question = Question(ops.op("position_ids.cached"), ops.op("position_ids.cached").make(n_query=5, n_key=23), ("f32",))
    assert not [*edits.hypotheses(question, question.right + 10)]
    assert [*edits.hypotheses(question, np.flip(question.right))] == []


@every(REAL[::9], name=lambda op: op.name, parts=10)
def test_noise_is_no_edit(op):
    """Right numbers with errors of 3 to 300 bounds, and numbers of their size, are those of no line."""
    rng = np.random.default_rng(8)
    question = Question(op, op.make(**example(op)), ("f32",))
    right, bound = question.right, question.tolerance["f32"]
    if np.asarray(op.spec(**question.a)).dtype.kind == "b":
        outputs = [right != (rng.uniform(size=right.shape) < share) for share in (0.1, 0.5)]
    else:
        errors = rng.uniform(-1, 1, (2, *right.shape)) * np.reshape([3, 300], (2, *[1] * right.ndim)) * bound
        outputs = [*(right + errors), rng.permuted(right.ravel()).reshape(right.shape)]
    for got in outputs:
        assert not [*edits.hypotheses(question, np.asarray(got, dtype=float))]


def delta_with_a_state_of_float16(q, k, v, beta, log_gates, state):
    """The gated delta rule, whose state is stored after each token."""
    outputs = []
    for t in range(q.shape[2]):
        state = np.exp(log_gates[:, :, t].astype(float))[..., None] * state.astype(np.float16).astype(float)
        error = v[:, :, t] - np.einsum("bhd,bhde->bhe", k[:, :, t], state)
        state = state + np.einsum("bhd,bhe,bh->bhde", k[:, :, t], error, beta[:, :, t])
        outputs.append(np.einsum("bhd,bhde->bhe", q[:, :, t], state.astype(np.float16).astype(float)))
    return np.stack(outputs, axis=2)


def test_a_step_in_few_bits():
    settings = {"features": None, "state_layout": "kv", "scale": 1}
    (finding,) = check(delta_with_a_state_of_float16, "delta.attend", **settings).diagnosis
    assert "rounded(s + beta[..., t, None, None] * k[..., t, :, None] * error, 11)" in finding.sentence
    assert "11 bits are those of float16" in finding.remedy


def test_a_step_cast_to_integers():
    def encode(positions):
        angle = (positions[..., None] * 10000.0 ** (-np.arange(8) / 8)).astype(int)
        return np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)

    (finding,) = check(encode, "sinusoidal.encode", dim=16, layout="half").diagnosis
    assert "with `truncated(positions[..., None] * frequencies)`" in finding.sentence
    assert "drops what follows the point" in finding.remedy


def test_angles_in_few_bits():
    def rotate(x, positions):
        angles = positions[:, None, :, None] * 500000.0 ** (-np.arange(0, 64, 2) / 64)
        angles = round_to(angles.astype(np.float32), "bfloat16")
        first, second = np.split(x, 2, axis=-1)
        cos, sin = np.cos(angles), np.sin(angles)
        return np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1).astype(x.dtype)

    (finding,) = check(rotate, "rope.rotate", dim=64, layout="half", base=500000.0).diagnosis
    assert finding.name == "bf16_angles"


def test_a_large_answer_of_an_edit_is_not_kept():
    question, calls = Question(ops.op("alibi.slopes"), {"heads": 8, "max_bias": 8}, ("f32",)), []

    def wrong(f, a):
        calls.append(a)
        return np.zeros(FEW + 1)

    for name in ("slopes with 1 for 2", "slopes with 1 for 2", "large", "large"):
        assert question.answer(name, wrong).size == FEW + 1
    assert len(calls) == 3


@every([("retention.attend", {"scale": 0.25, "n_key": 12}), ("rope.inv_freq", {"dim": 64, "base": 8e6})])
@np.errstate(all="ignore")
def test_no_edit_takes_much_memory(name, asked):
    """Not one that adds axes to a state at each token, nor one that counts up to the base."""
    op = ops.op(name)
    question = Question(op, op.make(**asked), ("f32",))
    tracemalloc.start()
    for each, mistake in edits.every(op.spec, question.a):
        question.answer(each, mistake.wrong)
    assert tracemalloc.get_traced_memory()[1] < 2**28
    tracemalloc.stop()


def test_other_parentheses():
    """Sinks that are or-ed to the causal mask: three wrong entries."""

    def sinks_seen_by_all(query_positions, key_positions, window, sinks):
        distance = query_positions[:, None] - key_positions
        return ((distance >= 0) & (distance < window) | (key_positions < sinks)) * 1

    (finding,) = check(sinks_seen_by_all, "position_ids.lambda_mask", window=8, sinks=4).diagnosis
    assert "`(distance >= 0) & (distance < window) | first`" in finding.sentence


@pytest.mark.parametrize(("query", "key"), [(1, 0), (0, 1)])
def test_an_edit_of_a_mask_is_asked_of_a_longer_text(query, key):
    """In the first text a rule fits the 13 wrong entries by chance, or 5 entries are too few."""

    def chunk_of_the_length(query_positions, key_positions, width):
        q, k = query_positions[:, :, None], key_positions[:, None, :]
        return (k <= q) & ((q + query) // width == (k + key) // width)

    (finding,) = check(chunk_of_the_length, "attention.chunk_mask", width=4).diagnosis
    assert f"`_one_chunk(query_positions{' + 1' * query}, key_positions{' + 1' * key}, width)`" in finding.sentence


def test_an_order_that_is_not_reversed():
    def forward(q, k, table, mask):
        s = q @ k.swapaxes(-1, -2) / 2
        p = np.minimum(np.cumsum(mask / (1 + np.exp(-s)), axis=-1)[..., ::-1], len(table) - 1)
        return s + cope.interpolate(q @ table.T, p)

    (finding,) = check(forward, "cope.scores", scale=0.5, convention="nodiv").diagnosis
    assert "`gates` for `gates[..., ::-1]` in relative.cope.positions" in finding.sentence


def test_two_steps_in_the_other_order():
    def attend(q, k, v, positions):
        phi, tables = ops.op("linear_attention.feature_map").spec, rope.tables(positions[:, None], rope.frequencies(6))
        turned, weights = (rope.rotate(x, *tables, layout="half") for x in (q, k)), np.tri(q.shape[2])
        below, above = (weights * (phi(x) @ phi(y).swapaxes(2, 3)) for x, y in ((q, k), turned))
        return above @ v / below.sum(axis=-1, keepdims=True)

    (finding,) = check(attend, "linear_attention.attend", dim=6, layout="half").diagnosis
    assert finding.name == "rotate_before_elu_plus_one"


def flags_once(lengths):
    return np.isin(np.arange(lengths.sum()), np.cumsum(lengths)[:-1]).cumsum()


def empty_for_the_next(lengths):
    starts = np.cumsum(lengths) - lengths
    return np.where(starts <= np.arange(lengths.sum())[:, None], starts, -1).argmax(axis=1)


@pytest.mark.parametrize(("fn", "names"), [(flags_once, ["lengths_without_zeros"]), (empty_for_the_next, [])])
def test_an_empty_document_is_asked(fn, names):
    report = check(fn, "position_ids.documents")
    assert (report.ok, [each.name for each in report.diagnosis]) == (False, names)


def test_one_number_for_all_texts_is_the_largest():
    right = ops.op("attention.prefix_mask").spec
    (finding,) = check(lambda prefixes, n: right(0 * prefixes + prefixes.max(), n), "attention.prefix_mask").diagnosis
    assert finding.name == "prefixes_all_the_largest"
