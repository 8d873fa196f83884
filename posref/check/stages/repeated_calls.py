"""Repeated calls: the first question a second time, with the first result kept, with reused buffers, and with other strides."""

from functools import partial
from typing import Any

import numpy as np

from posref.check import engine
from posref.check.call import Caller, Misbehaved, between
from posref.check.report import Finding, Report
from posref.check.stages.later_questions import failed, question_with, refuses, reshaped
from posref.check.verdict import judged
from posref.ops import Arguments, Mistake, NotHere, probe, using

CACHED = Mistake(None).words("""
    tables are cached by a shape or a length: this call used the tables of an earlier call with the same shape
    The first text is right; later texts of the same length have the positions of the first text.
    Cache tables by the values that they are made of, or make the tables in every call.""")
STRIDES = Mistake(None).words("""
    an array is read as if it were contiguous: its strides are ignored
    Right for a fresh array; wrong for a slice, or for axes that were exchanged.
    Step by the strides, or make the array contiguous first.""")
REUSED = Mistake(None).words("""
    tables are cached by the address or identity of an array: this call used the tables of an earlier call with the same buffers
    The first call is right; later calls that fill the same buffers use the tables of the first call.
    Cache tables by the values that they are made of, or make the tables in every call.""")
KEPT = Mistake(None).words("""
    the frequencies of the longest text so far are kept: later, shorter texts use the same frequencies
    A text is right alone, and wrong after a longer text.
    Make the frequencies for the length of the text in every call, or reset the frequencies for shorter texts.""")
OVERWRITTEN = "your outputs share their memory: a later call overwrites the result of an earlier one"
NOT_REPEATED = "Look for state that a call leaves, memory that was never written, random numbers, and threads that race."
FIRST_OF_TORCH = (
    "On a CPU, torch built with oneMKL 2024 can compute the first cos or sin of a process with half the digits, if several "
    "threads begin at once (pytorch issue 188792): set OMP_NUM_THREADS=1, or compute one cos and one sin before."
)


def call_repeats(report: Report, caller: Caller, first: engine.Question, got: np.ndarray) -> None:
    """Report a wrong first output that a second call with the same arguments does not repeat."""
    try:
        again = reshaped(caller(first.a), first)
    except Misbehaved:
        return
    if again.shape != got.shape or np.array_equal(again, got, equal_nan=True):
        return
    then = "right" if again.shape == first.right.shape and first.ask(again).ok else "wrong too"
    differ = f"{(again != got).sum()} of {got.size} numbers differ, and the second output is {then}"
    sentence = f"a second call with the same arguments gives another output: {differ}"
    report.diagnosis.append(Finding("not_repeated", sentence, NOT_REPEATED))
    digits = then == "right" and np.abs(again - got).max() <= 2.0**-8 * np.abs(again).max()  # of the first call alone
    report.advice += [NOT_REPEATED, *([FIRST_OF_TORCH] if digits and type(caller.result).__module__ == "torch" else [])]


def second_call(report: Report, caller: Caller, first: engine.Question) -> list[engine.Question]:
    """A second call with arrays of the same shapes: it answers its own arguments, and leaves the first result unchanged."""
    try:
        a = _exchanged(first.a, caller.positions)
        old = using(**{name: first.a[name] for name in a if a[name] is not first.a[name]})
        longest = {"longest_length_kept": KEPT._replace(wrong=using(frequencies=first.a["frequencies"]))} if a.by_length else {}
        question = question_with(report, caller, first, a, {"cached_by_shape": CACHED._replace(wrong=old)} | longest)
        earlier, values = caller.result, caller.values(caller.result, first.a)
        got = caller(a)
    except (NotHere, ValueError):
        return []
    except Misbehaved as error:
        if refuses(caller, first.a):
            report.failed("second call", f"the first call returned a result; with the same arguments again {error}")
        else:
            report.skipped("second call", f"with other numbers of the same shapes {error}")
        return []
    part = Report(report.subject)
    right = judged(part, question, reshaped(got, question)) or failed(report, "second call", part)
    if not np.array_equal(caller.values(earlier, first.a), values, equal_nan=True):
        report.failed("second call", "the result of the first call is no longer what it was")
        report.diagnosis.append(Finding("output_overwritten", OVERWRITTEN, ""))
        report.advice.append("Return a new array from every call.")
    elif right:
        report.passed("second call")
    return [question] if right else []


def _exchanged(a: Arguments, positions: str) -> Arguments:
    """Other arguments of the same shapes; the same arguments if nothing can be exchanged."""
    try:
        return probe.exchanged(a, positions)
    except NotHere:
        return a


def reused_buffers(report: Report, caller: Caller, first: engine.Question) -> None:
    """A call with the buffers of an earlier call, which now hold other numbers."""
    if not report.ok:
        return
    try:
        a = probe.exchanged(first.a, caller.positions)
        old = using(**{name: first.a[name] for name in a if a[name] is not first.a[name]})
        question = question_with(report, caller, first, a, {"cached_by_address": REUSED._replace(wrong=old)})
        got = caller.refilled(first.a, a)
    except (NotHere, ValueError, Misbehaved):
        return
    part = Report(report.subject)
    if judged(part, question, reshaped(got, question)) or failed(report, "reused input buffers", part):
        report.passed("reused input buffers")


def strides(report: Report, caller: Caller, first: engine.Question) -> None:
    """The first question with slices of larger arrays; arrays of four axes have the middle two exchanged in memory."""
    spread = caller.with_strides()
    try:
        got = spread(first.a)
    except Misbehaved as error:
        report.skipped("strides", f"only contiguous arrays were checked: {error}")
        return
    if not spread.slices:
        return
    read = {name: partial(_in_a_row, name) for name in spread.slices} if caller.axes == "bhnd" else {}
    wrong = {f"strides_of_{name}_ignored": STRIDES._replace(wrong=using(**{name: read[name]})) for name in read}
    wrong |= {"strides_ignored": STRIDES._replace(wrong=using(**read))} if len(read) > 1 else {}
    question, part = question_with(report, caller, first, first.a, wrong), Report(report.subject)
    if judged(part, question, reshaped(got, question)) or failed(report, "strides", part):
        report.passed("strides", ", ".join(spread.slices))


def _in_a_row(name: str, a: Arguments) -> Any:
    """The numbers that are in memory from the start of a slice of `between` on."""
    x = a[name]
    return between(x).reshape(-1)[x.shape[-1] :][: x.size].reshape(*x.shape)
