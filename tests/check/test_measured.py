"""What is measured in an output names the cause: the position of each vector, frequencies, a bias, a band, a table's end."""

from functools import partial

import numpy as np
import pytest

from posref.check import check, check_cache, check_rope, verdict
from posref.check.engine import Question
from posref.check.implementation import example
from posref.check.report import Report
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


def of_rows(x, start, heads_first):
    texts, heads, n, _ = x.shape
    row = np.arange(texts * heads * n).reshape(texts, heads, n)
    return turned(x, start + (row % n if heads_first else row // heads % n))


def strided(x, positions, stride):
    rows = np.append(positions.ravel(), np.zeros(positions.size, int))
    return turned(x, rows[stride * np.arange(positions.size)].reshape(positions.shape)[:, None])


def by_another_row(x, positions, row):
    return turned(x, positions[:, row(np.arange(positions.shape[1]))][:, None])


def ending(x, positions, rows):
    return np.where((positions < rows)[:, None, :, None], turned(x, positions[:, None]), 0)


def waves(positions, frequencies):
    angle = np.float64(positions)[..., None] * frequencies
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(*positions.shape, 16)


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def crossed(q, k, v, bias):
    offsets = np.arange(k.shape[2]) - np.arange(q.shape[2])[:, None]
    return softmax(q @ k.swapaxes(2, 3) + bias * np.sin(offsets + np.arange(q.shape[1])[:, None, None])) @ v


def masked_late(q, k, v, mask, late):
    scores = q @ k.swapaxes(2, 3) / 4
    with np.errstate(all="ignore"):
        return np.where(mask, softmax(scores), -np.inf) @ v if late else softmax(np.where(mask, scores, -np.inf)) @ v


def documents(lengths, band):
    of = np.repeat(np.arange(len(lengths)), lengths)
    return abs(np.arange(len(of))[:, None] - np.arange(len(of))) <= 3 if band else of[:, None] == of


def two_layouts(x, coordinates, half):
    angle = np.float64(coordinates).repeat(4, axis=1) * FALLING
    wide = np.tile(angle, 2)
    other = np.stack([-x[..., 1::2], x[..., ::2]], axis=-1).reshape(x.shape)
    quarter = np.concatenate([-x[..., 8:], x[..., :8]], axis=-1) if half else other
    return x * np.cos(wide) + quarter * np.sin(wide)


def by_features(x, coordinates, axes):
    wide, (a, b) = np.float64(coordinates)[:, axes] * np.tile(FALLING, 2), np.split(x, 2, axis=-1)
    return x * np.cos(wide) + np.concatenate([-b, a], axis=-1) * np.sin(wide)


def by_heads(q, k, v, mask, scales):
    return softmax(np.where(mask, q @ k.swapaxes(2, 3) * np.resize(scales, (q.shape[1], 1, 1)), -np.inf)) @ v


CASES = [  # what is asked, a function that is right with one value and wrong with another one, and the name
    (
        "rope.rotate",
        ROPE,
        lambda x, p, s: turned(x, p[:, None] + s * np.arange(x.shape[1])[:, None]),
        0,
        1,
        "positions_of_vectors",
    ),
    ("rope.rotate", ROPE | {"positions": "offset"}, of_rows, True, False, "positions_of_vectors"),
    ("rope.rotate", ROPE | {"head_dim": 24}, strided, 1, 2, "positions_of_other_rows"),
    ("rope.rotate", ROPE, by_another_row, lambda i: i, lambda i: np.minimum(2 * i, i[-1]), "positions_of_other_rows"),
    ("rope.rotate", ROPE, ending, 2**40, 4096, "part_zero"),
    (
        "rope.rotate",
        ROPE,
        lambda x, p, w: turned(x, p[:, None], w),
        FALLING,
        FALLING * np.resize([1, -1], 8),
        "other_frequencies",
    ),
    ("sinusoidal.encode", SINES, waves, FALLING, 1 / FALLING, "frequencies_inverted"),
    ("sinusoidal.encode", SINES, waves, FALLING, 31.25 * np.arange(8), "other_frequencies"),
    ("t5.cross_attend", {}, crossed, 0.0, 1.0, "bias_added"),
    ("attention.attend", {"scale": 0.25}, masked_late, False, True, "mask_not_finite"),
    ("position_ids.document_mask", {"causal": False}, documents, False, True, "other_offsets"),
    ("axes.rotate", AXES, by_features, [0] * 4 + [1] * 4 + [0] * 4 + [1] * 4, [0] * 5 + [1] * 11, "axes_of_features"),
    ("attention.attend", {"scale": 0.25}, by_heads, [0.25], [0.25, 1.0], "scale_ignored (head 1)"),
    ("axes.rotate", AXES, two_layouts, True, False, "tables_alone_right"),
]


@every(CASES, name=lambda case: f"{case[0]} {case[5]}")
def test_the_cause_is_named_and_right_passes(name, asked, fn, right, wrong, cause):
    def bound(value):
        return lambda *given: fn(*given, value)

    assert check(bound(right), name, **asked).ok
    report = check(bound(wrong), name, **asked)
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
    assert check_rope(of_frequencies(right), **asked).ok
    assert "the ramp of the schedule" in str(check_rope(of_frequencies(other), **asked))
    slower = np.where(right > 0.99 * plain, right, 0.8 * right)
    assert "those that are kept are right" in str(check_rope(of_frequencies(slower), **asked))


YARN = {"dim": 32, "base": 5e5, "layout": "half", "schedule": "yarn", "factor": 64.0, "original_length": 4096, "truncate": True}


@pytest.mark.parametrize("factor", [4.0, 64.0])  # 4 is that of a listed mistake
def test_the_magnitude_of_yarn_is_right_where_none_is_asked_for(factor):
    yarn = YARN | {"factor": factor}
    asked = {name: yarn[name] for name in ("dim", "base", "factor", "original_length", "truncate")}
    made = partial(of_frequencies, op("scaling.yarn").spec(**asked))
    own = 0.1 * np.log(factor) + 1
    assert check_rope(made(), **yarn).ok
    report = check_rope(made(own), **yarn)
    assert report.ok
    assert "pass magnitude=" in str(report)
    assert not check_rope(made(own), **yarn, magnitude=1.0).ok
    assert not check_rope(made(1.2), **yarn).ok
    assert "the logarithm is taken twice" in str(check_rope(made(0.1 * own * np.log(factor) + 1), **yarn))
    longer = of_frequencies(op("scaling.yarn").spec(**asked | {"original_length": 8192}), own)
    assert [finding.name for finding in check_rope(longer, **yarn).diagnosis] == ["original_length 8192"]


def test_a_preset_whose_pairing_is_not_known_takes_it():
    with pytest.raises(ValueError, match="pass layout="):
        check(turned, preset="internlm2_5-7b")
    report = check(lambda x, positions: x, preset="internlm2_5-7b", layout="half")
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


def counted_from_0(q, k, v, positions, past):
    own = np.arange(q.shape[2])
    return turned(q, own), positions, turned(k, own), v, positions


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


CALLS = [
    (counted_from_0, "each_call_from_zero"),
    (at_the_longest, "new_tokens_at_the_longest_text"),
    (one_late, "written_one_late"),
    (with_slots, "5_unwritten_slots"),
]


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


def resized(table, height, width):
    return op("resizing.resize").spec(table, height=height, width=width, convention="vilt")


def stretched(x, coordinates, times):
    return op("axes.rotate").spec(x, coordinates * times, **AXES)


def grid(height, width, more):
    return more + np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"), axis=-1).reshape(-1, 2)


ASKED = {"height": 7, "width": 9, "convention": "vilt"}
GENERATED = {"convention": "generate"}
NUMBERS = [
    ("position_ids.padded", {}, partial(counted, filler=0), ""),
    ("position_ids.padded", {}, partial(counted, filler=50256), "for all tokens; padding alone has 50256 instead of 0"),
    (
        "learned.embed",
        GENERATED,
        lambda mask, table: table[counted(mask, 1)],
        "tokens; padding alone has row 1 of table instead",
    ),
    ("position_ids.padded", {}, lambda mask: counted(mask, 7) + 1, "counted from 1; and padding has 8 instead of 0"),
    ("resizing.resize", ASKED, resized, ""),
    (
        "resizing.resize",
        ASKED,
        lambda table, height, width: resized(table, width, height).reshape(7, 9, -1),
        "height 9 and width 7",
    ),
    ("axes.rotate", AXES, partial(stretched, times=[1, 1]), ""),
    ("axes.rotate", AXES, partial(stretched, times=[1, 1.5]), "column 1 of coordinates is multiplied by 1.5"),
    ("axes.grid", {}, partial(grid, more=0), ""),
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
]


@every(NUMBERS, name=lambda case: f"{case[0]} {case[3]}")
def test_another_number_of_the_question(name, asked, fn, said):
    report = check(fn, name, **asked)
    assert report.ok is not bool(said)
    assert said in str(report), str(report)


@pytest.mark.parametrize("name", ["alibi.attend", "decoupled.attend"])
def test_noise_is_no_bias(name):
    """Where a key has next to no weight its logarithm is that of the rounding."""
    asked = op(name)
    a = asked.make(**example(asked))
    question, report = Question(asked, a, ("f32",)), Report("")
    noise = np.random.RandomState(0).uniform(-6, 6, question.right.shape) * question.tolerance["f32"]
    verdict.judged(report, question, np.float32(question.right + noise).astype(float), pairs=True)
    assert report.checks[-1].status == "failed"
    assert not report.diagnosis
