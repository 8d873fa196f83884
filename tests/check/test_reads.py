"""Which entries of its inputs a wrong function reads, and from which length on it is wrong: found by calling it again."""

import inspect
from contextlib import suppress
from operator import attrgetter

import numpy as np
import pytest

from posref import check, ops
from posref.check import engine
from posref.check.call import Caller
from posref.check.implementation import example
from posref.check.report import Report
from posref.check.stages.later_questions import reshaped
from posref.check.stages.reads import other_reads
from posref.check.stages.shapes import _edge
from posref.ops import Arguments
from tests.every import every

OPS = [op for system in ops.names() for op in ops.system(system).values()]


def outputs_for_inputs(x, kernel, state):
    rows = np.concatenate([state, x], axis=1)
    kept = sum(rows[:, t : t + x.shape[1]] * kernel[:, t] for t in range(kernel.shape[1]))
    return np.concatenate([state, kept], axis=1)[:, 1 - kernel.shape[1] :]


def test_entries_that_are_read():
    report = str(check.check(outputs_for_inputs, "convolution.keep"))
    assert "reads: your output changes with kernel; the right one changes with no entry of kernel" in report, report


XL, WINDOW = {"scale": 0.25, "bidirectional": False}, {"height": 7, "width": 7, "heads": 4}
HIDDEN = [  # a number that two columns have in common; scores that are cut to whole numbers
    ("swin.bias", WINDOW, lambda _, table: np.tile(table[17][:, None, None], (1, 49, 49))),
    ("transformer_xl.scores", XL, lambda *arrays: np.trunc(ops.op("transformer_xl.scores").spec(*arrays, **XL))),
]


@every(HIDDEN, name=lambda case: case[0])
def test_what_one_change_does_not_show_is_read_all_the_same(name, asked, fn):
    op, report = ops.op(name), Report(name)
    caller, question = Caller(fn, op, None, None, "bhnd", "batch"), engine.Question(op, op.make(**asked), ("f32",))
    other_reads(report, caller, question, np.asarray(caller(question.a)))
    assert report == Report(name), str(report)


@every(OPS, name=attrgetter("name"), parts=4)
def test_errors_of_long_texts_have_bounds(op):
    """A bound that is not finite judges nothing, or accuses what is right."""
    with suppress(TypeError, ValueError), np.errstate(all="ignore"):  # ops of fixed sizes refuse the length
        question = engine.Question(op, op.make(**example(op) | {"n_key": 31}), ("f32",))
        assert np.isfinite(question.tolerance["f32"][np.isfinite(question.right)]).all()


@every(OPS, name=attrgetter("name"), parts=16)
def test_other_numbers_of_the_same_entries_are_no_other_entries(op):
    """Each number of the right result changed alone, with that of smaller numbers added, which exp and min hide in none."""
    a = op.make(**example(op))

    def fn(*arrays):
        smaller = [x / 64 if getattr(x, "dtype", x) in (np.float32, np.float64) else x for x in arrays]
        of, by = (np.asarray(op.spec(**a | dict(zip(received, each, strict=True)))) for each in (arrays, smaller))
        return ~of if of.dtype.kind == "b" else 3 * of + by + 1  # 1 where no number has a meaning

    received = [name for name in op.given if a.get(name) is not None]
    caller, report = Caller(fn, op, None, None, "bhnd", "batch"), Report(op.name)
    question = engine.Question(op, a, ("f32",))
    other_reads(report, caller, question, reshaped(np.asarray(caller(a)).reshape(question.right.shape), question))
    assert report == Report(op.name), str(report)


@every(OPS, name=attrgetter("name"), parts=12)
def test_the_length_from_which_a_function_is_wrong(op):
    """Of each op that has a length: right up to 30 tokens, and from 31 on all numbers are others."""
    asked, sizes = example(op), inspect.signature(op.make).parameters.keys() - inspect.signature(op.spec).parameters.keys()
    made = [op.make(**asked | {"n_key": n}) for n in range(7, 41)] if "n_key" in sizes else []
    received = [name for name in op.given if made and made[0].get(name) is not None]
    shapes = [tuple(np.shape(a[name]) for name in received) for a in made]
    others = {repr([value for name, value in a.items() if name not in received]) for a in made}
    if len(others) != 1 or len({*shapes}) < len(made):
        return

    def fn(*arrays):
        exact = [x.astype(float) if x.dtype.kind == "f" else x for x in arrays]
        y = np.asarray(op.spec(**made[0] | dict(zip(received, exact, strict=True))))
        return y if tuple(map(np.shape, arrays)) in shapes[:24] else ~y if y.dtype.kind == "b" else 3 * y + 1

    report = Report(op.name)
    _edge(report, Caller(fn, op, None, None, "bhnd", "batch"), op, asked, {"n_key": 40}, ("f32",), Arguments)
    assert [each.detail.partition(" on,")[0] for each in report.checks] == ["right up to n_key=30, wrong from 31"]


@pytest.mark.parametrize("kept", [False, True])
def test_a_result_that_is_cut_from_an_earlier_one_is_said(kept):
    slopes, made = 2.0 ** -np.arange(1, 9), []

    def bias(n_query, n_key):
        if not (kept and made and made[0].shape[1] >= n_query and made[0].shape[2] >= n_key):
            offsets = np.arange(n_key) - np.arange(n_key - n_query, n_key)[:, None]
            made[:] = [-slopes[:, None, None] * np.abs(offsets)]
        return made[0][:, :n_query, :n_key].astype(np.float32)

    report = check.check(bias, "alibi.bias", heads=8, form="absolute", positions="range")
    assert report.ok is not kept
    assert ("the first part of the right result of the first call" in str(report)) is kept
