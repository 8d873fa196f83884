"""A wrong number in a setting has the name of the setting, and no other mistake loses its own."""

import numpy as np
import pytest

from posref import ops
from posref.check import check, diagnose, engine, other_settings
from posref.check.tensors import round_to
from tests import golden
from tests.every import every

IN_F32 = [case for case in golden.cases() if "f32" in case.models and case.expected.size < 20000]


def tried(case):
    """{name: answer} of every other setting that has a place in a golden case."""
    op, arguments = ops.of_case(case)
    question = engine.Question(op, arguments, ("f64",), right=case.expected, gauge=case.gauge)
    answers = {name: question.answer(name, mistake.wrong) for name, mistake in other_settings.hypotheses(question)}
    return {name: y for name, y in answers.items() if y is not None and y.shape == case.expected.shape}


@pytest.mark.parametrize(
    ("name", "asked", "default", "some", "none"),
    [
        ("max_distance", 128, 128, {64, 256, 127, 129, 800}, {0, 128, -128, None}),
        ("base", 10000.0, 10000.0, {500000.0, 1e6, 5000, 100}, {10000.0, None}),
        ("window", 16, None, {8, 32, 15, 17, 65, None}, {0, 1024}),
        ("softcap", None, None, {50.0}, {None, 0}),
        ("scale", 0.25, 0.25, {1, 0.125, 0.0625, 0.5}, {0.25}),
        ("bidirectional", True, True, set(), {False, 2, None}),
        ("layout", "half", "half", set(), {None}),
    ],
)
def test_what_is_tried(name, asked, default, some, none):
    op = ops.Op("x", eval(f"lambda *, {name}={default!r}: 0"), (), lambda: None, {})
    values = [value for _, value in other_settings.instead(name, ops.Arguments({name: asked}), op)]
    assert some <= set(values)
    assert not none & set(values)
    assert len(values) == len(set(values)) <= 40


@every(IN_F32[::200], name=lambda case: case.id)
def test_the_specification_with_another_number_is_named(case):
    named(case, every=9)


@pytest.mark.slow
@every(IN_F32, name=lambda case: case.id)
def test_the_specification_with_other_numbers_is_named(case):
    named(case, every=13)


def named(case, every):
    """It is right within the bound, or has its own name, or that of a mistake that is the same here.

    Where it differs in one or two values some other number fits by chance: then none is invented, but for one more or less.
    """
    op, arguments = ops.of_case(case)
    question = engine.Question(op, arguments, ("f64",), right=case.expected)
    of_bits = {words for words, _ in other_settings.neighbors(question)}
    invented = {words for words, _ in other_settings.hypotheses(question)} - of_bits
    for name, y in list(tried(case).items())[::every]:
        if np.isfinite(y).all():
            given = round_to(y, "float32")
            report = diagnose(case, given, dtype="float32")
            few = len(np.unique(given[abs(y - case.expected) > 1e-3 * abs(case.expected) + 1e-30])) < 3
            undecided = "all would give these numbers" in str(report)
            assert report.ok or report.diagnosis or few or undecided, (name, str(report))
            differ = len(np.unique(given[y != case.expected]))
            assert differ >= 3 or not invented & {each.name for each in report.diagnosis}, (name, str(report))


@every(golden.cases(), name=lambda case: case.id, parts=8)
def test_the_settings_of_every_op_are_tried_without_an_error(case):
    """Refusals, overflows and other shapes have no place; nothing else is raised, and the candidates are few."""
    op, arguments = ops.of_case(case)
    question = engine.Question(op, arguments, ("f64",), right=case.expected)
    names = [name for name, _ in other_settings.hypotheses(question)]
    assert len(names) == len(set(names)) <= 120, case.id
    tried(case)


def alibi(exponent, dtype="float32"):
    def bias(query_positions, key_positions):
        slopes = 2.0 ** (-exponent * np.arange(1, 17) / 16)
        return round_to(slopes[:, None, None] * (key_positions[:, None, None] - query_positions[:, None, :, None]), dtype)

    return bias


def test_the_report_says_both_numbers():
    report = check(alibi(16), "alibi.bias", heads=16, form="signed")
    assert [finding.name for finding in report.diagnosis] == ["max_bias 16"]
    assert "with max_bias=16; you asked for max_bias=8" in str(report)
    assert "Use max_bias as configured" in str(report)
    assert check(alibi(8), "alibi.bias", heads=16, form="signed").ok


def test_few_bits_hide_no_number():
    (finding,) = check(alibi(7, "bfloat16"), "alibi.bias", heads=16, form="signed").diagnosis
    assert finding.name == "max_bias 7 and computed in bfloat16"


def test_a_magnitude_alone_is_no_two_mistakes():
    """Where no positions 0 and 1 are, the phases say no frequencies, and yet the size of the pairs."""
    case = next(case for case in golden.cases() if case.id.startswith("rope/") and case.id.endswith("sparse1m"))
    (finding,) = diagnose(case, 2 * case.expected).diagnosis
    assert finding.name == "magnitude 2"
