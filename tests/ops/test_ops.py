"""Every op runs from settings; every mistake is a wrong answer; a changed step is in a copy of the op alone."""

import inspect
import re
import types

import numpy as np
import pytest

from posref import ops, vectors
from posref.check import check
from posref.ops import Arguments, NotHere, pages
from posref.relative import alibi
from tests import golden, own
from tests.every import every
from tests.settings import settings

OPS = [op for name in ops.names() for op in ops.system(name).values()]
SETTINGS = settings("""
    form='signed' layout='half' state_layout='kv' convention='released' bidirectional=True scale=0.25 dim=8 heads=3 key_heads=3
    span=4 buckets=16 max_position=60 max_distance=12 source='microsoft' target='half' length=24 step=0.25 denominator='length'
    alpha=0.25 low=-4 high=4 padding='zero' undo=True attn_type='bi' first=1 count=2 clamp_len=2 factor=4.0 fraction=0.5
    leftover='transformers' side='key' original_length=32 low_freq_factor=1.0 high_freq_factor=4.0 truncate=True of='q' width=3
    height=2 shift=1 query_size=4 key_size=3
""")
CHOICES = {f"learned.{name}": {"convention": "opt"} for name in ("position_ids", "token_ids", "embed")} | {
    "cope.scores": {"convention": "nodiv"},
    "cope.positions": {"rows": 3},
    "forgetting.bias": {"form": "difference"},
    "kerple.bias": {"form": "log"},
    "fope.step_eye": {"kept": 5, "width": 2},
    "axes.rotate": {"axis": (0, 1, 2, 0), "order": (0, 2, 1, 3)},
    "sinusoidal_2d.encode": {"convention": "mae"},
    "resizing.resize": {"convention": "timm", "height": 4},
    "resizing.weights": {"convention": "dino", "length": 5, "new": 3},
    "layouts.scores": {"source": "interleaved", "head_dim": 12},
    "rope.permute": {"source": "interleaved"},
    "position_ids.zigzag": {"n": 16, "ranks": 2, "rank": 1},
    "position_ids.streaming": {"n": 10, "sinks": 2, "window": 3},
    "position_ids.self_extend": {"group": 2, "window": 5, "phase": "prefill"},
    "position_ids.rerope": {"window": 5},
    "position_ids.lambda_mask": {"window": 5, "sinks": 2},
    "position_ids.dual_chunk": {"chunk_size": 8, "local": 3},
    "position_ids.multimodal": {"merge": 2, "convention": "longer_side"},
    "position_ids.temperature": {"amount": 0.25, "convention": "llama4"},
}


def settings(op):
    """Those above, and for what an op needs and they do not say the first that its golden cases have."""
    parameters = inspect.signature(op.make).parameters
    chosen = {name: SETTINGS[name] for name in parameters if name in SETTINGS} | CHOICES.get(op.name, {})
    unsaid = [name for name, p in parameters.items() if p.default is p.empty and name not in chosen]
    return chosen | ({name: own.first(op)[name] for name in unsaid} if unsaid else {})


def wrong(op, name, arguments):
    with np.errstate(all="ignore"):
        return np.asarray(op.mistakes[name].wrong(op.spec, arguments))


@every(OPS, name=lambda op: op.name)
def test_an_op_runs_from_settings(op):
    arguments = op.make(**settings(op))
    assert np.isfinite(op.spec(**arguments)).all()
    assert set(op.given) <= set(inspect.signature(op.spec).parameters)


@every(vectors.names())
def test_flags_are_the_mistakes_of_the_system(name):
    """Its own in its words, those that it shares in the words of all."""
    known = ops.flags(name)
    shared = {flag: m for op in ops.system(name).values() for flag, m in op.mistakes.items()}
    for flag, words in vectors.load(name).flags.items():
        assert words == known[flag] if flag in known else words["bug"] == shared[flag].bug


OF_CASES = {case.id: ops.of_case(case)[0].name for case in golden.cases()}


@every(OPS, name=lambda op: op.name)
def test_the_first_wrong_value_of_a_mistake_is_of_its_own_op(op):
    for mistake in op.mistakes:
        wrong = pages.first_wrong(op.name, mistake)
        assert wrong is None or OF_CASES[wrong.case] == op.name


# the wrong answer of these needs what the op has no argument for, or leaves the range of float64
DECLARED = {("t5.cross_attend", "bias_in_cross_attention"), ("floater.field", "whole_size")}


@every(golden.cases(), name=lambda case: case.id)
def test_every_flag_of_a_case_is_told_apart(case):
    op, arguments = ops.of_case(case)
    for flag in case.flags:
        if (op.name, flag) in DECLARED:
            continue
        got = wrong(op, flag, arguments)
        try:
            got = np.broadcast_to(got, case.expected.shape)
        except ValueError:
            continue  # another shape is distinguished
        assert vectors.error(case, got, case.models[-1]) > 1.9, flag


def test_a_mistake_without_a_place_says_so():
    bias = ops.op("alibi.bias")
    arguments = bias.make(heads=3, form="signed")
    with pytest.raises(NotHere):
        bias.mistakes["signed"].wrong(bias.spec, arguments)


def test_every_mistake_says_what_to_change():
    silent = {f"{op.name} {name}" for op in OPS for name, mistake in op.mistakes.items() if not mistake.remedy.endswith(".")}
    assert not silent


# words that name some values of a setting and are true whichever of them is asked for: what another model does, or a fact
OF_ANY_VALUE = {
    "no_clip",
    "centered",
    "unnormalized",
    "columns_normalized",
    "position_of_the_key",
    "cosines_over_angles_apart",
    "sines_over_angles_apart",
    "queries_left_aligned",
}
ENGLISH = {"key", "query", "half", "first", "last", "difference", "turns", "length"}  # values that are words of English, too


def values_of_settings():
    """{op: {setting: its values in the golden cases}}, of the settings that are words."""
    found = {}
    for case in golden.cases():
        op, arguments = ops.of_case(case)
        for name in arguments.keys() - {*op.given, "of"}:
            if isinstance(arguments[name], str):
                found.setdefault(op.name, {}).setdefault(name, set()).add(arguments[name])
    return found


def named_in(words, setting, values):
    """The values of a setting that words name; one that is a word of English where the setting is named beside it."""
    found = set()
    for value in sorted(values, key=len, reverse=True):
        beside = rf"{setting}={value}|{value} {setting}|(of|for) {value}\b"
        pattern = beside if value in ENGLISH else rf"(?<!\w){re.escape(value)}(?!\w)"
        found |= {value} if re.search(pattern, words, re.IGNORECASE) else set()
        words = re.sub(pattern, "", words, flags=re.IGNORECASE)
    return found


def shown(op, arguments, mistake):
    """Whether a mistake has a place, and another answer than the right one."""
    try:
        with np.errstate(all="ignore"):
            got = np.asarray(mistake.wrong(op.spec, arguments), dtype=complex)
    except Exception:
        return False
    right = np.asarray(op.spec(**arguments), dtype=complex)
    return got.shape != right.shape or not np.allclose(got, right, rtol=1e-9, atol=0, equal_nan=True)


def test_words_that_name_a_value_of_a_setting_depend_on_the_value_that_is_asked_for():
    """What is said of the signed form of ALiBi to those who ask for the absolute one may be untrue."""
    asked, said, once = values_of_settings(), {}, set()
    for case in golden.cases():
        op, arguments = ops.of_case(case)
        values = {name: each for name, each in asked.get(op.name, {}).items() if len(each) > 1}
        key = (op.name, *(str(arguments[name]) for name in values))
        if not values or key in once:
            continue
        once.add(key)
        for name, mistake in (op.mistakes | ops.further(op)).items():
            words = " ".join((mistake.at(arguments))[1:4])
            for setting, each in values.items():
                changed = setting in getattr(mistake.wrong, "change", ())  # another value is what the mistake is
                some = named_in(words, setting, each)
                if some and some != each and not changed and shown(op, arguments, mistake):
                    said.setdefault((f"{op.name}.{name}", setting, words), set()).add(arguments[setting])
    untold = {name for (name, _, _), values in said.items() if len(values) > 1}
    assert {name.split(".")[-1] for name in untold} == OF_ANY_VALUE, untold


def test_unknown_names_are_answered_with_the_known():
    with pytest.raises(ValueError, match=r"no op 'alibi.biases'; there are .*alibi\.bias"):
        ops.op("alibi.biases")
    with pytest.raises(ValueError, match="no system 'none'"):
        ops.op("none.bias")
    with pytest.raises(ValueError, match=r"bias has no setting 'head'; it has heads"):
        ops.op("alibi.bias").make(head=3)
    with pytest.raises(ValueError, match="bias needs form="):
        ops.op("alibi.bias").make(heads=3)


def test_a_changed_step_is_in_the_copy_alone():
    """Within the changed step the right function is there as ever, also where a specification imports it by name."""
    bias = ops.op("alibi.bias")
    arguments, slopes = bias.make(heads=3, form="signed"), alibi.slopes
    right = bias.spec(**arguments)

    def changed(original):
        def negated(*x, **named):
            assert alibi.slopes is slopes
            assert np.array_equal(bias.spec(**arguments), right)
            return -original(*x, **named)

        return negated

    assert np.array_equal(ops.inside(alibi, "slopes", changed)(bias.spec, arguments), -right)
    named = {"positions": np.arange(3), "heads": 2}
    by_name = types.FunctionType(_by_name.__code__, {"slopes": slopes}, "by_name")
    by_name.__module__ = "posref.by_name"
    assert np.array_equal(ops.inside(alibi, "slopes", changed)(by_name, named), -by_name(**named))


def _by_name(positions, heads):
    return slopes(heads)[:, None] * positions  # noqa: F821, in the globals that the test gives


def test_two_changes_of_one_function_nest():
    bias = ops.op("alibi.bias")
    arguments = bias.make(heads=3, form="signed")
    twice = ops.inside(alibi, "slopes", lambda right: lambda *x, **named: 2 * right(*x, **named))
    assert np.array_equal(ops.both(twice, twice)(bias.spec, arguments), 4 * bias.spec(**arguments))


def test_a_change_that_cannot_be_made_leaves_the_function():
    bias, slopes = ops.op("alibi.bias"), alibi.slopes
    with pytest.raises(NotHere):
        ops.inside(alibi, "slopes", lambda right, a: a.base)(bias.spec, bias.make(heads=3, form="signed"))
    assert alibi.slopes is slopes


def test_arguments_are_attributes():
    a = Arguments(base=2.0)
    assert a.base == 2.0
    with pytest.raises(NotHere, match="dim"):
        _ = a.dim
    with pytest.raises(NotHere, match="dim"):
        _ = a["dim"]


def test_a_mistake_answers_or_says_why_not():
    """No place, or refused by the specification in its own words; anything else is a mistake that a change left behind."""
    asked = [ops.of_case(case) for case in golden.cases()]
    every = [ops.op(f"{system}.{name}") for system in ops.names() for name in ops.system(system)]
    asked += [
        (op, op.make()) for op in every if all(p.default is not p.empty for p in inspect.signature(op.make).parameters.values())
    ]
    complaints = []
    for op, arguments in asked[::3]:
        for name, mistake in op.mistakes.items():
            try:
                with np.errstate(all="ignore"):
                    mistake.wrong(op.spec, arguments)
            except NotHere:
                continue
            except (TypeError, ValueError) as refusal:
                complaints += [f"{op.name} {name}: {refusal}"] * (re.match(r"[a-z_0-9]+\.[a-z_]+: ", str(refusal)) is None)
    assert not complaints


def test_a_cache_that_is_updated_before_it_is_read():
    """Token by token, each after its own row was put into the cache."""
    op = ops.op("convolution.convolve")
    a, outputs = op.make(), []
    for t in range(a.x.shape[-2]):
        a["state"] = np.concatenate([a.state, a.x[:, t : t + 1]], axis=-2)[:, 1:]
        outputs.append(op.spec(**a | {"x": a.x[:, t : t + 1]}))
    assert np.allclose(wrong(op, "state_one_row_ahead", op.make()), np.concatenate(outputs, axis=-2), rtol=1e-12, atol=0)


def test_the_mean_of_squares_is_rms_norm():
    op = ops.op("delta.unit")
    a = op.make(eps=0.5)
    rows = [[y / ((sum(z * z for z in row) / len(row) + 0.5) ** 0.5) for y in row] for row in a.x.reshape(-1, a.x.shape[-1])]
    assert np.allclose(wrong(op, "mean_of_squares", a).reshape(len(rows), -1), rows, rtol=1e-12, atol=0)
    report = check(lambda x: x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(1e-6)), "delta.unit", eps=1e-6)
    assert [finding.name for finding in report.diagnosis] == ["mean_of_squares"]
