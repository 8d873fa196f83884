"""Garbage never passes and has no name: zeros, noise, the negated, doubled and reversed answer, in every op and precision.

Zeros are named as zeros alone, noise has no name; the others by a listed mistake that equals them within the bound of the
right answer, without a fitted number. Where the right answer is its own variation, the report says that this is undecided.
"""

import inspect
import re
from itertools import chain, product

import numpy as np
import pytest

from posref import ops, vectors
from posref.check import check, diagnose, edits, fitted, general, indices, masks, tensors
from posref.check.engine import Question, distance
from posref.check.other_settings import hypotheses as settings_tried
from posref.check.ranged import models
from posref.check.report import Report
from posref.check.rotary.phases import stages
from posref.check.stages.later_questions import decides, later_question
from posref.check.stages.shapes import BATTERY, LARGE, extents_that_differ
from posref.check.verdict import SHORT, decided, judged
from posref.check.wrong_elements import of_a_part
from tests import golden, own
from tests.every import every
from tests.ops.test_ops import OPS, settings

DTYPES = ("float32", "bfloat16", "float16")
CASES = [case for case in golden.cases() if 0 < case.expected.size <= 2000]


GARBAGE = {
    "zeros": np.zeros_like,
    "noise": lambda y: (np.abs(y[np.isfinite(y)]).max(initial=0) or 1) * np.random.default_rng(5).normal(size=y.shape),
    "negated": lambda y: ~y if y.dtype == bool else -y,
    "doubled": lambda y: 2 * y,
    "reversed": lambda y: y.ravel()[::-1].reshape(y.shape),
    "constant": lambda y: np.full(y.shape, 0.37),  # no usual factor times a right answer that is constant
    "nan": lambda y: np.where(np.arange(y.size).reshape(y.shape) == y.size // 2, np.nan, y),
}
AFTERWARDS = {name: GARBAGE[name] for name in ("zeros", "negated", "nan")} | {
    "times 1.3": lambda y: 1.3 * y + (y.dtype.kind == "i")
}


def _error(y):
    raise RuntimeError("one call alone")


def refused(op, arguments, dtype, pairs=True, pieces=tuple(GARBAGE)):
    """Ask what each piece of garbage is; the right answer, rounded to the dtype, passes or cannot be decided."""
    right = np.asarray(op.spec(**arguments))
    held = right.dtype.kind not in "iub" and np.isfinite(tensors.round_to(right.real, dtype)).all()
    dtype = dtype if held else "float32"  # few bits hold no whole numbers, and float16 no large ones
    question = Question(op, arguments, models(dtype, arguments))
    for name in pieces:
        with np.errstate(over="ignore"):
            got = tensors.round_to(GARBAGE[name](question.right), dtype)
        report = Report(name)
        if judged(report, question, got, stages, pairs=pairs) and decided(report, question):
            assert distance(got, question.right, question.tolerance[report.precision.model]) <= 1
            assert report.ambiguous, (name, dtype, str(report))
            assert name == "reversed" or not question.right.any(), (name, dtype, str(report))
        elif report.diagnosis:
            assert all(equals(question, name, got, each.name) for each in report.diagnosis), (name, dtype, str(report))
    report = Report("right")
    assert judged(report, question, tensors.round_to(question.right, dtype), stages)
    assert decided(report, question) or "cannot decide" in str(report), (dtype, str(report))


def equals(question, name, got, said):
    """Whether a name is allowed: a listed mistake or two, or another setting of those that are tried, with these numbers."""
    if said in ("nothing_computed", "constant_output") or name in ("zeros", "noise", "constant"):
        return said == ("constant_output" if got.any() else "nothing_computed") and (got == got.flat[0]).all()
    others = (
        question.op.mistakes | ops.further(question.op) | dict(settings_tried(question)) | dict(general.hypotheses(question))
    ) | dict(chain(fitted.hypotheses(question, got), indices.hypotheses(question, got)))
    others |= dict(of_a_part(question, got, question.op.mistakes.items))
    known = [others.get(each) for each in (said.split(" and ") if said not in others else [said])]
    if None in known:
        known = [dict(edits.hypotheses(question, got)).get(said)]
    if None in known:
        return name == "doubled" and said in ("magnitude 2", "linear_scaling 0.5")
    answer = question.answer(said, ops.both(*(mistake.wrong for mistake in known)))
    bounds = (np.abs(GARBAGE[name](question.tolerance[model])) for model in question.ends)  # of the numbers where they are now
    return any(distance(got, answer, bound, question.gauge) <= 1 for bound in bounds)


@every(
    list(zip(OPS[::32], DTYPES * len(OPS), [*GARBAGE, *GARBAGE, "zeros"] * len(OPS), strict=False)),
    name=lambda case: case[0].name,
)
def test_garbage_is_refused_without_a_name(op, dtype, piece):
    """One piece for a few ops, in another order than dtypes; the tests below ask all of all."""
    refused(op, op.make(**settings(op)), dtype, pairs=False, pieces=[piece])


def test_a_wide_bound_gives_a_factor_no_other_name():
    """Unscaled gradients are 2.67 times as large, and twice is within the bound of bfloat16 around them."""
    refused(*ops.of_case(vectors.case("attention/gradient/h4-d2/k-shared")), "bfloat16", pieces=["doubled"])


def test_one_factor_that_few_bits_round_is_no_law_of_the_position():
    """Around position 4096, ln(p) / ln 64 is 2 within what float16 rounds."""
    op = ops.op("position_ids.self_extend")
    refused(op, op.make(**settings(op)), "float16", pieces=["doubled"])


def test_copies_of_numbers_of_8_bits_are_not_computed_in_8_bits():
    case = vectors.case("tupe/untied/h3-n5/reset")
    report = diagnose(case, 2 * case.expected, dtype="float32")
    assert not report.ok
    assert not any("computed in" in each.name for each in report.diagnosis), str(report)


@pytest.mark.slow
@every(list(product(OPS, DTYPES)), name=lambda pair: pair[0].name, parts=16)
def test_garbage_is_refused_in_every_precision(op, dtype):
    refused(op, op.make(**settings(op)), dtype)


@pytest.mark.slow
@every(list(zip(CASES, DTYPES * len(CASES), strict=False)), name=lambda pair: pair[0].id, parts=16)
def test_diagnose_refuses_garbage(case, dtype):
    op, arguments = ops.of_case(case)
    dtype = dtype if any(model.startswith(SHORT.get(dtype, "f32")) for model in case.models) else "float32"
    question = Question(op, arguments, models(dtype, arguments), right=case.expected, gauge=case.gauge)
    for name, change in GARBAGE.items():
        with np.errstate(over="ignore"):
            got = tensors.round_to(change(case.expected.astype(float)), dtype)
        got = got if case.ignore is None else np.where(case.ignore, case.expected, got)
        report = diagnose(case, got, dtype=dtype)
        right = np.array_equal(got, case.expected)  # the garbage stands where numbers have no meaning
        same = right or not case.expected.any() or (name == "reversed" and report.ambiguous)
        assert not report.ok or same, (name, dtype, str(report))
        assert all(equals(question, name, got, each.name) for each in report.diagnosis), (name, dtype, str(report))


@every([case for case in CASES if np.isin(case.expected, (0, 1)).all()], name=lambda case: case.id)
def test_numbers_that_are_no_mask_follow_no_rule_of_masks(case):
    op, arguments = ops.of_case(case)
    question = Question(op, arguments, models("float16", arguments), right=case.expected, gauge=case.gauge)
    noise = GARBAGE["noise"](case.expected.astype(float))
    assert list(masks.hypotheses(question, noise)) == []
    assert list(masks.hypotheses(question, np.where(case.expected, noise, 0))) == []


def of_shapes(op, dtype):
    """Questions after the first at other shapes, in the models that an output of this dtype may need."""
    numbers = settings(op)
    for shape in extents_that_differ(op, numbers, BATTERY + LARGE):
        arguments = op.make(**numbers | shape)
        if np.isfinite(tensors.round_to(np.asarray(op.spec(**arguments)).real, dtype)).all():
            question = later_question(op, arguments, models(dtype, arguments))
            if all(np.isfinite(bound).all() for bound in question.tolerance.values()):  # else `check` does not ask it
                yield question


@pytest.mark.slow
@every(list(product(OPS, DTYPES)), name=lambda pair: pair[0].name, parts=16)
def test_garbage_is_refused_at_every_shape(op, dtype):
    for question in of_shapes(op, dtype) if np.asarray(op.spec(**op.make(**settings(op)))).dtype.kind == "f" else ():
        assert question.ask(tensors.round_to(question.right, dtype)).ok
        for name in AFTERWARDS if question.right.any() and decides(question) else ():
            got = tensors.round_to(AFTERWARDS[name](question.right), dtype)
            assert not question.ask(got).ok, (name, dtype, question.right.shape, question.models)


LATER = list(zip(OPS, [*AFTERWARDS, "error"] * len(OPS), strict=False))


@pytest.mark.parametrize("asked", [LATER[::9], pytest.param(LATER, marks=pytest.mark.slow)], ids=len)
def test_right_at_first_and_garbage_or_an_error_afterwards_fails(asked):
    every(asked, name=lambda pair: pair[0].name)(wrong_afterwards)()


def wrong_afterwards(op, name):
    change = AFTERWARDS.get(name, _error)
    chosen, calls = own.first(op), []

    def once(*given, **named):
        calls.append(given)
        y = op.spec(*given, **named)
        return y if len(calls) == 1 else change(np.asarray(y))

    once.__signature__ = inspect.signature(op.spec)
    report = check(once, op.name, **chosen)
    assert not report.ok, str(report)


def flushed(case):
    size = np.abs(case.expected)
    return np.where(size < 2.0**-64 * size.max(), 0, case.expected)


@every([case for case in CASES if (flushed(case) != case.expected).any()], name=lambda case: case.id)
def test_numbers_that_are_0_beside_much_larger_ones_show_no_formula(case):
    report = diagnose(case, flushed(case), dtype="float32")
    assert not report.diagnosis, str(report)


@every([op for op in OPS if "attention" in op.tags], name=lambda op: op.name, parts=16)
def test_the_ratio_that_is_printed_is_the_one_that_was_compared(op):
    """A mistake may fit a strict model where the right answer is within a loose one: what fails is off by more than 1 there."""
    arguments = op.make(**settings(op))
    question = Question(op, arguments, models("bfloat16", arguments))
    for name, wrong in question.wrong.items():
        report, got = Report(name), tensors.round_to(wrong, "bfloat16")
        if got.shape == question.right.shape and question.ask(got).fits and not judged(report, question, got):
            said = re.findall(r"(\S+) times (?:the limit|what rounding in)", str(report.checks))
            assert [number for number in said if float(number.strip("(")) < 1] == [], str(report)


@every([op for op in OPS if np.asarray(op.spec(**op.make(**settings(op)))).dtype == bool], name=lambda op: op.name)
def test_a_mask_that_is_true_everywhere_reads_no_positions(op):
    arguments = op.make(**settings(op))
    question = Question(op, arguments, models("float32", arguments))
    report = Report(op.name)
    assert not judged(report, question, np.ones_like(question.right), stages)
    said = [each.name for each in report.diagnosis]
    assert said, str(report)
    assert "positions" not in {question.op.mistakes[name].kind for name in said if name in question.op.mistakes}, str(report)


def grows_with(op, arguments, name):
    """Whether twice an array of features of every text gives twice the result; weights, as TUPE's u, are none."""
    x = arguments.get(name)
    if not isinstance(x, np.ndarray) or x.ndim < 3 or x.dtype.kind != "f" or name in ("u_q", "u_k"):
        return False
    try:
        right, twice = (np.asarray(op.spec(**arguments | {name: each})) for each in (x, 2 * x))
    except ValueError:
        return False
    return bool(right.any()) and np.array_equal(2 * right, twice)


LINEAR = [op for op in OPS if any(grows_with(op, op.make(**own.first(op)), name) for name in op.given)]


@every(LINEAR, name=lambda op: op.name, parts=16)
def test_clipped_features_are_named(op):
    chosen = own.first(op)

    def clipped(*given, **named):
        return np.clip(op.spec(*given, **named), -100, 100)

    clipped.__signature__ = inspect.signature(op.spec)
    report = check(clipped, op.name, **chosen)
    failed = [each.name for each in report.checks if each.status == "failed"]
    assert failed, str(report)
    assert " times " not in failed[0] or [each.name for each in report.diagnosis] == ["clipped"], str(report)
