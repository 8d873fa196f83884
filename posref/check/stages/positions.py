"""Positions: the first question at far positions, with queries and keys far apart, and at positions below 0."""

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from posref.check import engine, general
from posref.check.call import Caller, Misbehaved
from posref.check.report import Report
from posref.check.stages.later_questions import (
    decides,
    failed,
    is_right,
    last_position,
    later_question,
    models_after,
    question_with,
    refuses,
    reshaped,
)
from posref.check.verdict import judged, needed, unseen
from posref.ops import Arguments, Mistake, NotHere, common, probe

CLAMPED = Mistake(lambda p: np.maximum(p, 0)).words("""
    positions below 0 become 0
    Right for positions from 0 on.
    Compute with positions as given.""")
ABSOLUTE = Mistake(np.abs).words("""
    positions lose their sign: |p| for positions below 0
    Right for positions from 0 on.
    Compute with positions as given.""")
TYPES = {2**15: "int16", 2**16: "uint16"}  # by the first whole number that they do not hold
ODD = "odd positions near 2^24"


def far_positions(
    report: Report, caller: Caller, settings: dict[str, Any], first: engine.Question, *others: engine.Question
) -> list[engine.Question]:
    """The first question farther and farther out, until the function refuses, or takes as long as a table of all positions.

    Up to 2^24, where float32 holds every integer, a wrong result is a failure. Beyond, float32 holds the positions that are
    used, but perhaps not sums with them: there only positions that end or wrap are a failure. No function fails because its
    positions are in float32.
    """
    asked: dict[int, engine.Question] = {}
    names = probe.placed(caller.op, first.a) if report.ok and caller.positions != "range" else []
    # an argument of the system, or a setting of the probe
    limit = np.inf if "max_position" in first.a else settings.get("max_position", np.inf)
    ends = [end for end in (*probe.ENDS, *probe.FAR) if end > last_position(first.a, names) and names]
    usual = _seconds(caller, first.a) if ends else 0.0
    for end in ends:
        a = probe.moved(first.a, end, names) if end in probe.ENDS else probe.stretched(first.a, end, names)
        if last_position(a, names) > limit or (end > probe.EXACT and caller.positions == "offset"):
            break
        try:
            question = _there(caller, a, models_after(report, first))
            seconds = _seconds(caller, a)
            right = is_right(question, _answered(caller, question))
        except (Misbehaved, ValueError) as error:
            report.skipped("far positions", f"none from {end} on: {error}")
            return [*asked.values()]
        if not right:
            _far_positions_failed(
                report, caller, first, question, names, end, max(asked, default=last_position(first.a, names))
            )
            return [*asked.values()]
        asked |= {end: question} if decides(question) else {}
        if seconds > 3 * usual + 0.2:
            report.skipped("far positions", f"none beyond {end}, which takes {seconds:.1f} s, as a table of all positions does")
            return [*asked.values()]
    if asked:
        report.passed("far positions", f"up to {max(asked)}")
    return [
        *asked.values(),
        *(_odd(report, caller, first, names, *others, *asked.values()) if names and limit > 2 * probe.EXACT else []),
    ]


def _far_positions_failed(
    report: Report, caller: Caller, first: engine.Question, question: engine.Question, names: list[str], end: int, right: int
) -> None:
    """Say from which position on the output is wrong, and if positions end or wrap there; else which hidden mistake shows."""
    at = partial(probe.stretched, first.a, names=names)
    typed = _type_that_ends(caller, question, lambda last: at(end=last), end, right) if end in probe.ENDS else ""
    if end not in probe.ENDS:
        end = last_position(_least(caller, question, lambda last: at(end=last), last_position(question.a, names), right), names)
    got, ways = _answered(caller, question), common.ends(end, names)
    if end % 100 and end % 256 and _short(got.max()):  # no length ends there
        question = _there(caller, at(end=end + int(np.ptp(first.a[names[0]])) // 2), question.models)
        got = _answered(caller, question)
        ways = ways | general.clipped(got, question.right)
    for mistakes in (ways, caller.op.mistakes) if end <= probe.EXACT else (ways,):
        part, op = Report(report.subject), caller.op._replace(mistakes=mistakes)
        there = later_question(op, question.a, question.models)
        there.before = first
        judged(part, there, got)
        if part.diagnosis:
            break
    if end <= probe.EXACT or any(finding.name in ways for finding in part.diagnosis):
        failed(report, f"positions from {end} on", part)
        table = any(finding.name.startswith("positions_end") for finding in part.diagnosis)
        report.advice += [typed] if typed and not table else []
        report.advice.append(
            "If positions end there by intent, raise an error beyond, or pass max_position= with the last one."
        )
    else:
        beyond = f"wrong from {end} on, by no mistake that is known, where float32 does not hold every position"
        report.skipped("far positions", f"{beyond}; all else was checked below")


def _type_that_ends(caller: Caller, question: engine.Question, at: Callable[[int], Arguments], end: int, right: int) -> str:
    """Words for the dtype that ends where positions, or positions plus a width, begin to be wrong; "" if none does."""
    try:
        beyond = later_question(caller.op, at(end + 1), question.models)
        if is_right(beyond, _answered(caller, beyond)):
            return ""
        wrong = last_position(_least(caller, question, at, end + 1, right))
    except (Misbehaved, ValueError):
        return ""
    less = {0: ""} | {
        n: f" = {wrong + n} - {name}" for name, n in question.a.items() if name in probe.LIMITS and type(n) is int
    }
    lines = (f"Wrong from {wrong}{words} on: {TYPES[wrong + n]} ends there." for n, words in less.items() if wrong + n in TYPES)
    return next(lines, "")


def _short(number: float) -> bool:
    """Whether a number has at most three digits, as a limit that somebody wrote."""
    return abs(number - float(f"{number:.3g}")) <= 2.0**-22 * abs(number)


def _odd(
    report: Report, caller: Caller, first: engine.Question, names: list[str], *others: engine.Question
) -> list[engine.Question]:
    """The question on both sides of 2^24, where float32 has no odd numbers, if that shows positions in float32."""
    hidden = unseen(report, first, *others)
    if "f32_positions" not in hidden or last_position(first.a, names) > probe.EXACT:
        return []
    try:
        question = _there(caller, probe.moved(first.a, probe.EXACT, names), models_after(report, first))
        if "f32_positions" in question.blind(needed(report, first), hidden):
            report.skipped(ODD, f"from {probe.EXACT} on float32 positions are within the bound")
            return []
        if is_right(question, _answered(caller, question)):
            report.passed(ODD)
        else:
            part = Report(report.subject)
            judged(part, question, _answered(caller, question))
            known = ", ".join(finding.name for finding in part.diagnosis) or "by no mistake that is known"
            report.skipped(ODD, f"wrong from {probe.EXACT} on: {known}; all else was checked")
        return [question]
    except (Misbehaved, ValueError) as error:
        report.skipped(ODD, f"none from {probe.EXACT} on: {error}")
    return []


def far_keys(
    report: Report, caller: Caller, settings: dict[str, Any], first: engine.Question, *others: engine.Question
) -> list[engine.Question]:
    """Queries and keys far apart: at the limits that settings name, where 16-bit integers end, and where float32 integers end,
    if distances can be distinguished there.

    The farthest gap that the function accepts is asked. If it is wrong, the smallest wrong gap is searched.
    """
    asked: dict[int, engine.Question] = {}
    for gaps in _gaps(first.a, settings, others) if report.ok and caller.positions in ("batch", "shared") else ():
        refused = ""
        for gap in gaps:
            try:
                asked[gap] = _far_key_question(report, caller, gap, first, others)
                break
            except NotHere:
                continue
            except (Misbehaved, ValueError) as error:
                refused = refused or f"none of {gap}: {error}"
        if refused:
            report.skipped("far keys", refused)
        if not report.ok:
            return [*asked.values()]
    if asked:
        report.passed("far keys", f"distances about {', '.join(map(str, asked))}")
    return [*asked.values()]


def _gaps(a: Arguments, settings: dict[str, Any], others: tuple[engine.Question, ...]) -> Iterator[list[int]]:
    """Lists of gaps to try, the first that can be asked counts; none beyond the positions that are allowed or were asked."""
    try:
        near, meant = probe.distances(a)[-1], a.get("max_position", settings.get("max_position", np.inf))
    except NotHere:
        return
    yield from ([a[name]] for name in probe.LIMITS if isinstance(a.get(name), int) and near < a[name] <= meant)
    yield [gap for gap in probe.APART if near < gap <= meant]
    if any(last_position(other.a) > probe.FARTHEST for other in others):
        yield [probe.FARTHEST]


def _far_key_question(
    report: Report, caller: Caller, gap: int, first: engine.Question, others: tuple[engine.Question, ...]
) -> engine.Question:
    """The question at this gap: one call if the batch shows all cases at once, else up to three calls."""
    models = models_after(report, first)
    if caller.dtype == "float16" and gap > float(np.finfo(np.float16).max):
        raise ValueError("distances leave the numbers of float16")
    for turn in range(1 if len(np.atleast_2d(first.a.get("query_positions", 0))) > 2 or "offsets" in first.a else 3):
        question = _there(caller, probe.parted(first.a, gap, turn), models)
        if gap > 2**20 and not _tells_a_cap(question):
            raise NotHere
        if gap > 2**20:
            _rehearsed(caller, first.a, probe.parted(first.a, 2**20, turn))
        if not is_right(question, _answered(caller, question)):
            hidden = unseen(report, first, *others)
            op = caller.op._replace(mistakes={name: caller.op.mistakes[name] for name in hidden})
            nearest = _least(caller, question, partial(probe.parted, first.a, turn=turn), gap)
            both = [later_question(op, a, models) for a in (nearest, question.a)]
            _far_keys_failed(report, caller, both)
            break
    return question


def _tells_a_cap(question: engine.Question) -> bool:
    cut = question.answer("capped", common.capped(probe.APART[0]).wrong)
    return cut is not None and not is_right(question, cut)


def _least(caller: Caller, question: engine.Question, at: Callable[[int], Arguments], wrong: int, right: int = 0) -> Arguments:
    """The arguments at the smallest gap or end with a wrong answer, by bisection."""
    while wrong - right > 1:
        middle = (right + wrong) // 2
        there = later_question(caller.op, at(middle), question.models)
        try:
            served = is_right(there, _answered(caller, there))
        except Misbehaved:
            served = True
        right, wrong = (middle, wrong) if served else (right, middle)
    return at(wrong)


def _far_keys_failed(report: Report, caller: Caller, questions: list[engine.Question]) -> None:
    """Say what the first question shows; if it gives no diagnosis and the second does, what the second shows."""
    parts = [Report(report.subject) for _ in questions]
    for part, question in zip(parts, questions, strict=True):
        judged(part, question, _answered(caller, question), _distances)
    part = next((part for part in parts if part.diagnosis), parts[0])
    failed(report, f"distances from {probe.distances(questions[0].a)[-1]} on", part)


def _distances(question: engine.Question, got: np.ndarray) -> Iterator[list[tuple[str, Mistake]]]:
    """Offsets in few bits, then distances that end at a maximum: the maximum that fits best."""
    yield [*common.OFFSETS.items()]
    ends = {n: common.capped(n) for n in probe.distances(question.a)[-2:-200:-1].tolist()}
    answers = {n: question.answer(f"distances capped {n}", end.wrong) for n, end in ends.items()}
    off = {n: np.nanmax(np.abs(got - y), initial=0) for n, y in answers.items() if y is not None and y.shape == got.shape}
    yield [(f"distances capped {n}", ends[n]) for n in sorted(off, key=off.__getitem__)[:1]]


def _answered(caller: Caller, question: engine.Question) -> np.ndarray:
    """The output, with the right answer in rows of attention that see no key, since nobody agrees on their values."""
    got = reshaped(caller(question.a), question)
    if got.shape != question.right.shape or "attention" not in question.op.tags:
        return got
    return np.where((question.right == 0).all(axis=-1, keepdims=True), question.right, got)


def _there(caller: Caller, a: Arguments, models: tuple[str, ...]) -> engine.Question:
    """The question at other positions, each element judged alone: right ways to compute angles differ more there.

    ValueError if the specification refuses it, or if its numbers leave the dtype.
    """
    question = later_question(caller.op, a, models).each_alone(models)
    numbers = np.finfo(np.float16 if caller.dtype == "float16" else np.float32)
    sizes = np.abs(question.right[question.right != 0])
    if not (sizes <= numbers.max).all() or (sizes < numbers.smallest_normal).sum() > len(sizes) / 2:
        raise ValueError(f"results leave the numbers of {numbers.dtype}")
    least = float(numbers.smallest_subnormal)  # a few results may be almost 0, as cos near a right angle
    question.tolerance = {name: bound + least for name, bound in question.tolerance.items()}
    return question


def _rehearsed(caller: Caller, near: Arguments, half: Arguments) -> None:
    """ValueError if the function seems to make a table of all positions, which may be too large farther out."""
    usual, seconds = _seconds(caller, near), _seconds(caller, half)
    if seconds > 3 * usual + 0.2:
        raise ValueError(f"{last_position(half)} takes {seconds:.1f} s, as a table of all positions does")


def _seconds(caller: Caller, a: Arguments) -> float:
    start = perf_counter()
    caller(a)
    return perf_counter() - start


def negative_positions(report: Report, caller: Caller, settings: dict[str, Any], first: engine.Question) -> None:
    """Positions below 0, if the specification has numbers there.

    A function that clamps them at 0, raises, returns NaN, or reads a table from its end refuses them, and does not fail; nor
    does a function that hides keys below 0, as padding.
    """
    limited = "max_position" in settings and "max_position" not in first.a
    if not report.ok or limited or caller.positions == "range":
        return
    names = probe.placed(caller.op, first.a)
    try:
        a = probe.moved(first.a, -(2**12), names)
        ways = common.of_some("absolute_positions", names, ABSOLUTE)
        question = question_with(report, caller, first, a, {"clamped_at_0": common.of_all(names, CLAMPED)} | ways)
        question.before = first
        got = reshaped(caller(a), question)
    except (NotHere, ValueError):
        return
    except Misbehaved as error:
        report.skipped("negative positions", f"none: {error}")
        return
    if np.isnan(question.right).any():
        return
    part = Report(report.subject)
    if judged(part, question, got):
        report.passed("negative positions")
        return
    known = [finding.name for finding in part.diagnosis]
    masks = first.a.get("mask") is not None or np.isin(question.right, (0, 1)).all()
    unsure = not known and "key_positions" in names and masks
    ends = lambda: refuses(caller, probe.moved(first.a, -(2**22), names))  # noqa: E731, reading a table from its end raises
    if unsure or "clamped_at_0" in known or not np.isfinite(got).all() or ends():
        words = ", ".join(known) or "by no mistake that is known"
        report.skipped("negative positions", f"wrong before 0: {words}; all else was checked from 0 on")
    else:
        failed(report, "negative positions", part)
