"""What is measured in an output names the cause: the position of each vector, frequencies, a bias, a band, a table's end."""

from functools import partial

import numpy as np
import pytest

from posref.check import check, check_cache, check_rope, verdict
from posref.check.engine import Question
from posref.check.implementation import example
from posref.check.report import Report
from posref.explain import presets
from posref.ops import Mistake, op
from tests.every import every

ROPE = {"dim": 16, "layout": "half"}
SINES = {"dim": 16, "layout": "interleaved"}
AXES = {"dim": 16, "layout": "half", "axis": np.repeat([0, 1], 4)}
FALLING = 10000.0 ** (-np.arange(0, 16, 2) / 16)


def turned(x, positions, frequencies=FALLING):
    angle = np.float64(positions)[..., None] * frequencies
    a, b = x[..., :8], x[..., 8:16]
    rotated = a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)
    return np.concatenate([*rotated, x[..., 16:]], axis=-1)


def of_rows(x, start):
    """Rows are counted as if heads stood behind them."""
    texts, heads, n, _ = x.shape
    return turned(x, start + np.arange(texts * heads * n).reshape(texts, heads, n) // heads % n)


def strided(x, positions):
    rows = np.append(positions.ravel(), np.zeros(positions.size, int))
    return turned(x, rows[2 * np.arange(positions.size)].reshape(positions.shape)[:, None])


def by_another_row(x, positions):
    i = np.arange(positions.shape[1])
    return turned(x, positions[:, np.minimum(2 * i, i[-1])][:, None])


def waves(positions, frequencies):
    angle = np.float64(positions)[..., None] * frequencies
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(*positions.shape, 16)


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def crossed(q, k, v):
    offsets = np.arange(k.shape[2]) - np.arange(q.shape[2])[:, None]
    return softmax(q @ k.swapaxes(2, 3) + np.sin(offsets + np.arange(q.shape[1])[:, None, None])) @ v


def masked_late(q, k, v, mask):
    with np.errstate(all="ignore"):
        return np.where(mask, softmax(q @ k.swapaxes(2, 3) / 4), -np.inf) @ v


def band(lengths):
    i = np.arange(sum(lengths))
    return abs(i[:, None] - i) <= 3


def two_layouts(x, coordinates):
    wide = np.tile(np.float64(coordinates).repeat(4, axis=1) * FALLING, 2)
    return x * np.cos(wide) + np.stack([-x[..., 1::2], x[..., ::2]], axis=-1).reshape(x.shape) * np.sin(wide)


def by_features(x, coordinates):
    wide, (a, b) = np.float64(coordinates)[:, [0] * 5 + [1] * 11] * np.tile(FALLING, 2), np.split(x, 2, axis=-1)
    return x * np.cos(wide) + np.concatenate([-b, a], axis=-1) * np.sin(wide)


def by_heads(q, k, v, mask):
    return softmax(np.where(mask, q @ k.swapaxes(2, 3) * np.resize([0.25, 1.0], (q.shape[1], 1, 1)), -np.inf)) @ v


def by_log_n(x, p):
    return turned(x, p[:, None]) * np.maximum(1, np.log(p + 1) / np.log(2048))[:, None, :, None]


def padded_state(k, v, decays, state):
    return op("retention.remember").spec(k, v, decays, state) * decays[:, None, None] ** (-k.shape[2] % 16)


def linear_mean(q, k, v, positions):
    return op("linear_attention.attend").spec(q, k, v, positions, **ROPE | {"dim": 6}) / np.arange(1, q.shape[2] + 1)[:, None]


def by_the_first_axis(x, coordinates):
    angle = np.float64(coordinates).repeat(4, axis=1) * np.tile(FALLING[:4], 2)
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], axis=-1)


def normed(q, k, v, mask):
    q, k = (x / np.sqrt((x * x).sum(axis=-1, keepdims=True, dtype=float) + 1e-6) for x in (q, k))
    return softmax(np.where(mask, q @ k.swapaxes(2, 3) / 4, -np.inf)) @ v


def ring(i, j):
    apart = i[:, :, None] % 4 - j[:, None] % 4
    return (apart >= 0) & (apart < 4)


SCALE = {"scale": 0.25}
CASES = [  # what is asked, a function with a mistake, and the name
    ("rope.rotate", ROPE, lambda x, p: turned(x, p[:, None] + np.arange(x.shape[1])[:, None]), "positions_of_vectors"),
    ("rope.rotate", ROPE | {"positions": "offset"}, of_rows, "positions_of_vectors"),
    ("rope.rotate", ROPE | {"head_dim": 24}, strided, "positions_of_other_rows"),
    ("rope.rotate", ROPE, by_another_row, "positions_of_other_rows"),
    ("rope.rotate", ROPE, lambda x, p: np.where((p < 4096)[:, None, :, None], turned(x, p[:, None]), 0), "part_zero"),
    ("rope.rotate", ROPE, lambda x, p: turned(x, p[:, None], FALLING * np.resize([1, -1], 8)), "other_frequencies"),
    ("sinusoidal.encode", SINES, lambda p: waves(p, 1 / FALLING), "frequencies_inverted"),
    ("sinusoidal.encode", SINES, lambda p: waves(p, 31.25 * np.arange(8)), "other_frequencies"),
    ("t5.cross_attend", {}, crossed, "bias_added"),
    ("attention.attend", SCALE, masked_late, "mask_not_finite"),
    ("position_ids.document_mask", {"causal": False}, band, "other_offsets"),
    ("axes.rotate", AXES, by_features, "axes_of_features"),
    ("attention.attend", SCALE, by_heads, "scale_ignored (head 1)"),
    ("axes.rotate", AXES, two_layouts, "tables_alone_right"),
    ("rope.rotate", ROPE, by_log_n, "result times max(1, ln(p + 1) / ln 2048)"),
    ("retention.remember", {}, padded_state, "result times decays^9 (padding to 16)"),
    ("linear_attention.attend", ROPE | {"dim": 6}, linear_mean, "result times (p + 1)^-1"),
    ("axes.rotate", AXES, by_the_first_axis, "axis_1_by_the_frequencies_of_axis_0"),
    ("attention.attend", SCALE, normed, "q_and_k_of_length_1"),
    ("attention.window_mask", {"width": 4, "causal": True}, ring, "query_positions_and_key_positions_modulo_4"),
    ("sinusoidal.encode", SINES, lambda p: waves(p * 0.999, FALLING), "linear_scaling 1.001001"),
]


@every(CASES, name=lambda case: f"{case[0]} {case[3]}")
def test_the_cause_is_named(name, asked, fn, cause):
    report = check(fn, name, **asked)
    assert [finding.name for finding in report.diagnosis] == [cause], str(report)


RAMP = {"dim": 32, "base": 500000.0, "layout": "half", "schedule": "llama3", "factor": 8.0, "original_length": 8192}


def of_frequencies(frequencies, magnitude=1.0):
    def rotate(x, positions):
        angle = np.float64(positions)[:, None, :, None] * frequencies
        half = len(frequencies)
        a, b = x[..., :half], x[..., half:]
        return magnitude * np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], -1)

    return rotate


def test_another_ramp_is_said_to_be_one():
    right = op("scaling.llama3").spec(
        dim=32, base=5e5, factor=8.0, original_length=8192, low_freq_factor=1.0, high_freq_factor=4.0
    )
    plain = 5e5 ** (-np.arange(0, 32, 2) / 32)
    blended = (right < 0.99 * plain) & (right > 1.01 * plain / 8)
    other = np.where(blended, 0.8 * right, right)
    asked = RAMP | {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    assert "the ramp of the schedule" in str(check_rope(of_frequencies(other), **asked))
    slower = np.where(right > 0.99 * plain, right, 0.8 * right)
    assert "those that are kept are right" in str(check_rope(of_frequencies(slower), **asked))


YARN = {"dim": 32, "base": 5e5, "layout": "half", "schedule": "yarn", "factor": 64.0, "original_length": 4096, "truncate": True}


def of_yarn(factor, magnitude, **more):
    asked = {name: YARN[name] for name in ("dim", "base", "original_length", "truncate")} | {"factor": factor} | more
    return of_frequencies(op("scaling.yarn").spec(**asked), magnitude)


def test_the_magnitude_of_yarn_is_right_where_none_is_asked_for():
    own = 0.1 * np.log(64) + 1
    report = check_rope(of_yarn(64.0, own), **YARN)
    assert report.ok
    assert "pass magnitude=" in str(report)
    assert not check_rope(of_yarn(64.0, 1.2), **YARN).ok
    assert "the logarithm is taken twice" in str(check_rope(of_yarn(64.0, 0.1 * own * np.log(64) + 1), **YARN))
    longer = check_rope(of_yarn(64.0, own, original_length=8192), **YARN)
    assert [finding.name for finding in longer.diagnosis] == ["original_length 8192"]


def test_the_magnitude_of_a_listed_mistake_is_right_too():
    """That of the factor 4."""
    own = 0.1 * np.log(4) + 1
    assert check_rope(of_yarn(4.0, own), **YARN | {"factor": 4.0}).ok
    assert not check_rope(of_yarn(4.0, own), **YARN | {"factor": 4.0}, magnitude=1.0).ok


def test_a_configuration_whose_pairing_is_not_known_takes_it():
    """Of a model type that posref does not know the keys decide all but this."""
    config = {"model_type": "unknown", "rope_theta": 10000.0, "max_position_embeddings": 512}
    config |= {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
    with pytest.raises(ValueError, match=r"which features form a pair is not known; .*pass layout="):
        presets.op_and_settings(config)
    op_name, settings = presets.op_and_settings(config, layout="half")
    report = check(lambda x, positions: x, op_name, **settings)
    assert [finding.name for finding in report.diagnosis] == ["positions_zero"]


def cached(change):
    """Attention with a cache; change(q, k, v, positions, past) -> queries, their positions, keys, values, those of the keys."""

    def new():
        past = []

        def attend(q, k, v, positions):
            queries, own, *stored = change(q, k, v, positions, past)
            past.append(stored)
            keys, values, places = (np.concatenate(x, axis=i) for x, i in zip(zip(*past, strict=True), (2, 2, 1), strict=True))
            seen = places[:, None, None, :] <= own[:, None, :, None]
            return softmax(np.where(seen, queries @ keys.swapaxes(2, 3) / 4, -np.inf)) @ values

        return attend

    return new


def at_the_longest(q, k, v, positions, past):
    own = np.broadcast_to(positions.max(axis=0), positions.shape) if past else positions
    return turned(q, own[:, None]), own, turned(k, own[:, None]), v, own


def one_late(q, k, v, positions, past):
    if len(past) == 1:
        past.append([0 * k[:, :, :1], 0 * v[:, :, :1], positions[:, :1]])
    own = positions + bool(past)
    return turned(q, own[:, None]), own, turned(k, own[:, None]), v, own


def with_slots(q, k, v, positions, past):
    if len(past) == 1:
        past.append([np.zeros((*k.shape[:2], 5, 16)), np.zeros((*v.shape[:2], 5, 16)), np.zeros((len(k), 5))])
    return turned(q, positions[:, None]), positions, turned(k, positions[:, None]), v, positions


CALLS = [(at_the_longest, "new_tokens_at_the_longest_text"), (one_late, "written_one_late"), (with_slots, "5_unwritten_slots")]


@every(CALLS, name=lambda case: case[0].__name__)
def test_what_a_call_does_to_the_cache(change, name):
    report = check_cache(cached(change), dim=16, layout="half")
    assert not report.ok
    assert name in [each.name for each in report.diagnosis], str(report)


def of_one_text(f, a):
    """In the first text numbers that cancellation makes uncertain by 60, one of them far off; the other texts are right."""
    y = f(**a)
    return np.concatenate([(y[:1] + 1e9) - 1e9 + 1e4 * (np.arange(y.shape[-1]) == 0), y[1:]])


def test_what_a_mistake_leaves_right_tells_nothing_of_it():
    asked = op("alibi.bias")
    mistake = Mistake(of_one_text, "a text is off")
    question = Question(asked._replace(mistakes={"of_one_text": mistake}), asked.make(heads=8, form="signed"), ("f32",))
    answer = question.answer("of_one_text", of_one_text)
    unlike = 0.5 * (np.arange(len(answer)) == 0)[:, None, None, None]
    assert not question.ask(answer + unlike).fits


def counted(mask, filler):
    return np.where(mask, np.cumsum(mask, axis=-1) - 1, filler)


def grid(height, width, more):
    return more + np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"), axis=-1).reshape(-1, 2)


def slots(n, sinks, window):
    kept = np.r_[:sinks, n - window + sinks : n]
    return np.stack([kept, np.arange(len(kept))])


def other_shift(i, j):
    offset = j[None] - i[:, None]
    return np.where(offset > -10, offset, j[None] // 4 - (i[:, None] // 4 + 2))


def test_what_holds_in_some_calls_alone_is_said_with_them():
    """The magnitude is left out of short texts; the first call has long ones."""
    far = lambda x, p: turned(x, p[:, None]) * (1.2 if p.max() > 4096 else 1)  # noqa: E731
    report = check(far, "rope.rotate", magnitude=1.2, **ROPE)
    assert "magnitude=1; you asked for magnitude=1.2" in str(report)
    assert "this holds in the call with shape" in str(report)


GENERATED = {"convention": "generate"}
SELF_EXTEND = {"group": 4, "window": 10, "phase": "decode"}
WARM = {"amount": 0.1, "length": 8192, "convention": "llama4"}
NUMBERS = [
    ("position_ids.padded", {}, partial(counted, filler=50256), "for all tokens; padding alone has 50256 instead of 0"),
    (
        "learned.embed",
        GENERATED,
        lambda mask, table: table[counted(mask, 1)],
        "tokens; padding alone has row 1 of table instead",
    ),
    ("position_ids.padded", {}, lambda mask: counted(mask, 7) + 1, "counted from 1; and padding has 8 instead of 0"),
    (
        "resizing.resize",
        {"height": 7, "width": 9, "convention": "vilt"},
        lambda table, height, width: op("resizing.resize").spec(table, height=9, width=7, convention="vilt").reshape(7, 9, -1),
        "height 9 and width 7",
    ),
    (
        "axes.rotate",
        AXES,
        lambda x, c: op("axes.rotate").spec(x, c * [1, 1.5], **AXES),
        "column 1 of coordinates is multiplied by 1.5",
    ),
    ("axes.grid", {}, partial(grid, more=1), "the result has 1 added"),
    (
        "attention.attend",
        {"scale": 0.25},
        lambda q, k, v, mask: q @ k.swapaxes(2, 3) @ v,
        "softmax is left out, and the result",
    ),
    (
        "sinusoidal.encode",
        SINES,
        lambda positions: waves(0 * positions + 7, FALLING),
        "positions 7 instead of 0; 21 of 21 differ: 7 for all",
    ),
    ("position_ids.streaming", {"n": 40, "sinks": 4, "window": 16}, slots, "with window=12; you asked for window=16"),
    ("position_ids.self_extend", SELF_EXTEND, other_shift, "`window // group` for `window - window // group`"),
    ("position_ids.temperature", WARM, lambda p: 0.1 * (1 + np.log(1 + (p + 1) // 8192)), "with `1 * amount + amount * np.log"),
]


@every(NUMBERS, name=lambda case: f"{case[0]} {case[3]}")
def test_another_number_of_the_question(name, asked, fn, said):
    report = check(fn, name, **asked)
    assert not report.ok
    assert said in str(report), str(report)


def test_noise_is_no_bias():
    """Where a key has next to no weight its logarithm is that of the rounding."""
    asked = op("decoupled.attend")
    a = asked.make(**example(asked))
    question, report = Question(asked, a, ("f32",)), Report("")
    noise = np.random.RandomState(0).uniform(-6, 6, question.right.shape) * question.tolerance["f32"]
    verdict.judged(report, question, np.float32(question.right + noise).astype(float), pairs=True)
    assert report.checks[-1].status == "failed"
    assert not report.diagnosis
