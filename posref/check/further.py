"""Further: the same question again, at other shapes and at other positions."""

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from posref.check import engine, rounded
from posref.check.call import Caller, Misbehaved
from posref.check.judge import judged, needed, unseen
from posref.check.report import Report
from posref.ops import Arguments, Mistake, NotHere, Op, common, probe

# beside the first probe: one row, one text, one head, many heads, lengths that are no multiple of a tile
BATTERY: tuple[dict[str, int], ...] = (
    {"n_query": 1},
    {"n_query": 1, "n_key": 1},
    {"batch": 1},
    {"heads": 1},
    {"heads": 32, "n_key": 5},
    {"n_query": 33, "n_key": 33},
    {"n_query": 17, "n_key": 129},
)


def reshaped(got: np.ndarray, question: engine.Question) -> np.ndarray:
    """Axes of extent 1 more or less are put right, and elements without a meaning."""
    right = question.right
    if got.size != right.size or got.squeeze().shape != right.squeeze().shape:
        return got
    return np.where(question.op.meant(question.a), got.reshape(right.shape), right)


def battery(report: Report, caller: Caller, op: Op, settings: dict[str, Any], first: engine.Question) -> list[engine.Question]:
    """The same question at other shapes, those that were answered rightly; the first that fails is described."""
    tried: dict[str, engine.Question] = {}
    models = models_after(report, first)
    for shape in _shapes(op, settings):
        a = op.make(**settings | shape)
        words = ", ".join(f"{key}={value}" for key, value in shape.items())
        try:
            got = caller(a)
        except Misbehaved as error:
            report.failed(f"shape {words}", str(error))
            return [*tried.values()]
        question = further(op, a, models)
        if not all(np.isfinite(bound).all() for bound in question.tolerance.values()):
            continue  # the bound leaves the numbers before the values do
        if not also(report, f"shape {words}", question, got):
            return [*tried.values()]
        tried[words] = question
    if tried:
        report.passed("shapes", "; ".join(tried))
    return [*tried.values()]


def further(op: Op, a: Arguments, models: tuple[str, ...]) -> engine.Question:
    """A question after the first, which says enough of all elements together."""
    return engine.Question(op, a, models, rms=dict.fromkeys(models, np.inf))


def models_after(report: Report, first: engine.Question) -> tuple[str, ...]:
    """The model that the first output needed, and the coarsest that it may need."""
    return tuple(dict.fromkeys((needed(report, first), first.models[-1])))


def also(report: Report, name: str, question: engine.Question, got: np.ndarray) -> bool:
    """Whether a further output is right; if not, the report says what it is."""
    part = Report(report.subject)
    return judged(part, question, reshaped(got, question)) or failed(report, name, part)


def failed(report: Report, name: str, part: Report) -> bool:
    report.failed(name, next(check.detail for check in part.checks if check.status == "failed"))
    report.diagnosis += part.diagnosis
    report.advice += part.advice
    return False


def far(
    report: Report, caller: Caller, settings: dict[str, Any], first: engine.Question, *others: engine.Question
) -> list[engine.Question]:
    """The same question on both sides of where numbers of few bits end, as far as there are such positions.

    Beyond 2^24, where float32 has no odd numbers, nobody is accused: the report says what happens there. That is asked only
    where it tells a mistake that nothing has told before.
    """
    asked: dict[int, engine.Question] = {}
    hidden = unseen(report, first, *others)
    # a word of the system, or of the probe
    limit = np.inf if "max_position" in first.a else settings.get("max_position", np.inf)
    for end in probe.ENDS if report.ok and caller.positions != "range" else ():
        try:
            a = probe.moved(first.a, end)
            if _last(first.a) >= end or _last(a) > limit:
                continue
            question = _there(caller, a, models_after(report, first))
            still = question.blind(needed(report, first), hidden)
            if end > probe.REHEARSAL and still == hidden:
                if "f32_positions" in hidden:
                    report.skipped("far positions", f"from {end} on float32 positions are within the bound")
                continue
            if end > probe.REHEARSAL:
                _rehearsed(caller, first.a, probe.moved(first.a, probe.REHEARSAL))
            got = caller(a)
        except NotHere:
            break
        except (Misbehaved, ValueError) as error:
            report.skipped("far positions", f"none from {end} on: {error}")
            break
        asked[end], hidden, part = question, still, report if end < probe.REHEARSAL else Report(report.subject)
        if not also(part, f"positions from {end} on", question, got):
            known = ", ".join(finding.name for finding in part.diagnosis) or "by no mistake that is known"
            if part is not report:
                report.skipped("far positions", f"wrong from {end} on: {known}; all else was checked below")
            break
    else:
        if asked:
            report.passed("far positions", ", ".join(map(str, asked)))
    return [*asked.values()]


def apart(
    report: Report, caller: Caller, settings: dict[str, Any], first: engine.Question, *others: engine.Question
) -> list[engine.Question]:
    """Queries and keys far apart: about the limits that settings name, where whole numbers of 16 bits end, and where those of
    float32 do if that tells a distance from a nearer one.

    The farthest that the function serves is asked, and where it is wrong the nearest that is.
    """
    asked: dict[int, engine.Question] = {}
    for gaps in _gaps(first.a, settings, others) if report.ok and caller.positions in ("batch", "shared") else ():
        refused = ""
        for gap in gaps:
            try:
                asked[gap] = _apart(report, caller, gap, first, others)
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
    """Gaps to ask for, and instead of each what is nearer; none beyond the positions that are meant, or were asked together."""
    try:
        near, meant = probe.distances(a)[-1], a.get("max_position", settings.get("max_position", np.inf))
    except NotHere:
        return
    yield from ([a[name]] for name in probe.LIMITS if isinstance(a.get(name), int) and near < a[name] <= meant)
    yield [gap for gap in probe.APART if near < gap <= meant]
    if any(_last(other.a) > probe.FARTHEST for other in others):
        yield [probe.FARTHEST]


def _apart(
    report: Report, caller: Caller, gap: int, first: engine.Question, others: tuple[engine.Question, ...]
) -> engine.Question:
    """The question at this gap: one where rows take turns, three where there are no such rows."""
    models = models_after(report, first)
    if caller.dtype == "float16" and gap > np.finfo(np.float16).max:
        raise ValueError("distances leave the numbers of float16")
    for turn in range(1 if len(np.atleast_2d(first.a.get("query_positions", 0))) > 2 or "offsets" in first.a else 3):
        question = _there(caller, probe.parted(first.a, gap, turn), models)
        if gap > probe.REHEARSAL and not _tells_a_cap(question):
            raise NotHere
        if gap > probe.REHEARSAL:
            _rehearsed(caller, first.a, probe.parted(first.a, 2**20, turn))
        if not _right(question, _answered(caller, question)):
            hidden = unseen(report, first, *others)
            op = caller.op._replace(mistakes={name: caller.op.mistakes[name] for name in hidden})
            nearest = _least(caller, question, partial(probe.parted, first.a, turn=turn), gap)
            both = [further(op, a, models) for a in (nearest, question.a)]
            _apart_failed(report, caller, both)
            break
    return question


def _tells_a_cap(question: engine.Question) -> bool:
    cut = question.answer("capped", common.capped(probe.APART[0]).wrong)
    return cut is not None and not _right(question, cut)


def _right(question: engine.Question, got: np.ndarray) -> bool:
    model = question.models[-1]
    return engine.distance(got, question.right, question.tolerance[model], question.gauge) <= 1


def _least(caller: Caller, question: engine.Question, at: Callable[[int], Arguments], wrong: int) -> Arguments:
    """The arguments at the least gap that is answered wrongly, by halving."""
    right = 0
    while wrong - right > 1:
        middle = (right + wrong) // 2
        there = further(caller.op, at(middle), question.models)
        try:
            served = _right(there, _answered(caller, there))
        except Misbehaved:
            served = True
        right, wrong = (middle, wrong) if served else (right, middle)
    return at(wrong)


def _apart_failed(report: Report, caller: Caller, questions: list[engine.Question]) -> None:
    """Say what the first question shows; if it names nothing and the second does, what that shows."""
    parts = [Report(report.subject) for _ in questions]
    for part, question in zip(parts, questions, strict=True):
        judged(part, question, _answered(caller, question), _distances)
    part = next((part for part in parts if part.diagnosis), parts[0])
    failed(report, f"distances from {probe.distances(questions[0].a)[-1]} on", part)


def _distances(question: engine.Question, got: np.ndarray) -> Iterator[list[tuple[str, Mistake]]]:
    """Offsets in few bits, then distances that end: the end that comes nearest, one before the last or below."""
    yield [*common.OFFSETS.items()]
    ends = {n: common.capped(n) for n in probe.distances(question.a)[-2:-200:-1].tolist()}
    answers = {n: question.answer(f"distances capped {n}", end.wrong) for n, end in ends.items()}
    off = {n: np.nanmax(np.abs(got - y), initial=0) for n, y in answers.items() if y is not None and y.shape == got.shape}
    yield [(f"distances capped {n}", ends[n]) for n in sorted(off, key=off.__getitem__)[:1]]


def _answered(caller: Caller, question: engine.Question) -> np.ndarray:
    """The output; where a row of attention sees no key, what it should be: values of no keys are nobody's agreement."""
    got = reshaped(caller(question.a), question)
    if got.shape != question.right.shape or not rounded.attends(question.op.name):
        return got
    return np.where((question.right == 0).all(axis=-1, keepdims=True), question.right, got)


def _there(caller: Caller, a: Arguments, models: tuple[str, ...]) -> engine.Question:
    """The question at other positions; ValueError where the specification refuses it or its numbers leave the dtype."""
    question = further(caller.op, a, models)
    numbers = np.finfo(np.float16 if caller.dtype == "float16" else np.float32)
    sizes = np.abs(question.right[question.right != 0])
    if not ((sizes <= numbers.max) & (sizes >= numbers.smallest_normal)).all():
        raise ValueError(f"results leave the numbers of {numbers.dtype}")
    return question


def _rehearsed(caller: Caller, near: Arguments, half: Arguments) -> None:
    """ValueError where a table of all positions would be made, which may be too large farther out."""
    usual, seconds = _seconds(caller, near), _seconds(caller, half)
    if seconds > 3 * usual + 0.2:
        raise ValueError(f"{_last(half)} takes {seconds:.1f} s, as a table of all positions does")


def _seconds(caller: Caller, a: Arguments) -> float:
    start = perf_counter()
    caller(a)
    return perf_counter() - start


def _last(a: Arguments) -> int:
    return max((int(a[name].max()) for name in probe.PLACED if isinstance(a.get(name), np.ndarray)), default=0)


def _shapes(op: Op, settings: dict[str, Any]) -> Iterator[dict[str, int]]:
    """The extents of the battery that change an array of this op and were not chosen."""
    sizes = _extents(op.make(**settings))
    own = {*settings, *inspect.signature(op.spec).parameters} | (
        {"heads"} if "key_heads" in inspect.signature(op.make).parameters else set()
    )
    for shape in BATTERY:
        possible = shape.keys() <= inspect.signature(op.make).parameters.keys() - own and _runs(op, settings | shape)
        if possible and _extents(op.make(**settings | shape)) != sizes:
            yield shape


def _runs(op: Op, settings: dict[str, Any]) -> bool:
    """False where the specification refuses the shape."""
    try:
        op.spec(**op.make(**settings))
    except (TypeError, ValueError):
        return False
    return True


def _extents(a: Arguments) -> list[tuple[int, ...]]:
    return [np.shape(value) for value in a.values()]
