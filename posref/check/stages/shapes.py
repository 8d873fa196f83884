"""Further: the same question again, at other shapes and at other positions."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from posref.check import engine, rounded
from posref.check.call import Caller, Misbehaved
from posref.check.report import Report
from posref.check.verdict import judged, needed, unseen
from posref.ops import Arguments, Mistake, NotHere, Op, common, probe

# beside the first probe: one row, one text, one head, many of each, lengths that are no multiple of a tile
BATTERY: tuple[dict[str, int], ...] = (
    {"n_query": 1},
    *({"n_query": 1, "n_key": n} for n in (8, 9)),  # steps of decoding, in order
    {"n_query": 1, "n_key": 1},
    {"batch": 1},
    {"heads": 1},
    {"heads": 32, "n_key": 5},
    {"n_query": 33, "n_key": 33},
    {"n_query": 17, "n_key": 129},
)
# more rows, heads and keys than a block, a warp or a short table has
LARGE: tuple[dict[str, int], ...] = (
    {"batch": 17, "n_query": 2, "n_key": 4},
    {"batch": 1, "heads": 131},
    {"batch": 1, "n_query": 1, "n_key": 1031},
    {"batch": 1, "n_query": 261, "n_key": 263},
)
ODD = "odd positions near 2^24"
MOST = 1_000_000  # pairs of queries and keys; more take seconds


def reshaped(got: np.ndarray, question: engine.Question) -> np.ndarray:
    """Axes of extent 1 more or less are put right, equal rows where the right answer has one row, and what has no meaning."""
    right = question.right
    if got.ndim == right.ndim and all(wanted in (1, size) for size, wanted in zip(got.shape, right.shape, strict=True)):
        one = got[tuple(map(slice, right.shape))]
        got = one if (got == one).all() else got
    if got.size != right.size or got.squeeze().shape != right.squeeze().shape:
        return got
    return np.where(question.op.meant(question.a), got.reshape(right.shape), right)


def battery(
    report: Report,
    caller: Caller,
    op: Op,
    settings: dict[str, Any],
    first: engine.Question,
    shapes: Iterable[dict[str, int]] = BATTERY,
    name: str = "shapes",
    changed: Callable[[Arguments], Arguments] = Arguments,
) -> list[engine.Question]:
    """The same question at other shapes: those that were answered rightly and say so; the first that fails is described."""
    tried: dict[str, engine.Question] = {}
    models = models_after(report, first)
    for shape in _shapes(op, settings, shapes) if report.ok else ():
        a = changed(op.make(**settings | shape))
        words = ", ".join(f"{key}={value}" for key, value in shape.items())
        question = further(op, a, models)
        if not all(np.isfinite(bound).all() for bound in question.tolerance.values()):
            continue  # the bound leaves the numbers before the values do
        try:
            got = caller(a)
        except Misbehaved as error:
            report.failed(f"shape {words}", str(error))
            return [*tried.values()]
        if not also(report, f"shape {words}", question, got):
            return [*tried.values()]
        tried |= {words: question} if _decides(question) else {}
    if tried:
        report.passed(name, "; ".join(tried))
    return [*tried.values()]


def counts(report: Report, caller: Caller, first: engine.Question) -> None:
    """Counts beyond the whole numbers of 16 bits, where the op has no positions that could be moved."""
    try:
        a = probe.counted(caller.op, first.a)
        got = caller(a) if report.ok else None
    except NotHere:
        return
    except Misbehaved as error:
        report.skipped("large counts", str(error))
        return
    if got is not None and also(report, "large counts", further(caller.op, a, models_after(report, first)), got):
        report.passed("large counts")


def lengths(report: Report, caller: Caller, op: Op, settings: dict[str, Any], first: engine.Question) -> list[engine.Question]:
    """Texts at the trained length, just beyond it and at twice that, where frequencies follow the length."""
    asked: list[engine.Question] = []
    trained = getattr(first.a.by_length, "original_length", None) if caller.positions in ("batch", "shared") else None
    limits = () if trained is None else (int(trained) - 1, int(trained), 2 * int(trained) - 1)
    for limit in (limit for limit in limits if 0 < limit < _last(first.a)):
        a = op.make(**settings | {"max_position": limit})
        question = further(op, a, models_after(report, first))
        try:
            got = caller(a)
        except Misbehaved as error:
            report.failed(f"length {limit + 1}", str(error))
            return asked
        if not also(report, f"length {limit + 1}", question, got):
            return asked
        asked.append(question)
    if asked:
        report.passed("lengths", ", ".join(str(_last(question.a) + 1) for question in asked))
    return asked


def further(op: Op, a: Arguments, models: tuple[str, ...]) -> engine.Question:
    """A question after the first, which says enough of all elements together, but where bounds of 16 bits hold garbage."""
    with np.errstate(all="ignore"):
        question = engine.Question(op, a, models)
        wide = (
            name.startswith((*rounded.BITS,)) and not engine.separates(question.right, question.tolerance[name])
            for name in models
        )
        return question.each_alone(name for name, held in zip(models, wide, strict=True) if not held)


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
    """The same question at positions farther and farther out, until the function refuses or takes the time of a table.

    Up to 2^24, where float32 holds every integer, a wrong result is a failure. Beyond, positions are integers that float32
    holds, but sums with them may not be: there only positions that end or wrap are a failure. Nobody is accused of positions in
    float32.
    """
    asked: dict[int, engine.Question] = {}
    names = probe.placed(caller.op, first.a) if report.ok and caller.positions != "range" else []
    # a word of the system, or of the probe
    limit = np.inf if "max_position" in first.a else settings.get("max_position", np.inf)
    ends = [end for end in (*probe.ENDS, *probe.FAR) if end > _last(first.a, names) and names]
    usual = _seconds(caller, first.a) if ends else 0.0
    for end in ends:
        a = probe.moved(first.a, end, names) if end in probe.ENDS else probe.stretched(first.a, end, names)
        if _last(a, names) > limit or (end > probe.EXACT and caller.positions == "offset"):
            break
        try:
            question = _there(caller, a, models_after(report, first))
            seconds = _seconds(caller, a)
            right = _right(question, _answered(caller, question))
        except (Misbehaved, ValueError) as error:
            report.skipped("far positions", f"none from {end} on: {error}")
            return [*asked.values()]
        if not right:
            _far_failed(report, caller, first.a, question, names, end, max(asked, default=_last(first.a, names)))
            return [*asked.values()]
        asked |= {end: question} if _decides(question) else {}
        if seconds > 3 * usual + 0.2:
            report.skipped("far positions", f"none beyond {end}, which takes {seconds:.1f} s, as a table of all positions does")
            return [*asked.values()]
    if asked:
        report.passed("far positions", f"up to {max(asked)}")
    return [
        *asked.values(),
        *(_odd(report, caller, first, names, *others, *asked.values()) if names and limit > 2 * probe.EXACT else []),
    ]


def _far_failed(
    report: Report, caller: Caller, near: Arguments, question: engine.Question, names: list[str], end: int, right: int
) -> None:
    """Say from where on positions are wrong, and whether they end or wrap there."""
    if end not in probe.ENDS:
        at = partial(probe.stretched, near, names=names)
        end = _last(_least(caller, question, lambda last: at(end=last), _last(question.a, names), right), names)
    ways = common.ends(end, names)
    for mistakes in (ways, caller.op.mistakes) if right < probe.EXACT else (ways,):
        part, op = Report(report.subject), caller.op._replace(mistakes=mistakes)
        judged(part, further(op, question.a, question.models), _answered(caller, question))
        if part.diagnosis:
            break
    if part.diagnosis or right < probe.EXACT:
        failed(report, f"positions from {end} on", part)
        report.advice.append(
            "If positions end there by intent, raise an error beyond, or pass max_position= with the last one."
        )
    else:
        beyond = f"wrong from {end} on, by no mistake that is known, where float32 does not hold every position"
        report.skipped("far positions", f"{beyond}; all else was checked below")


def _odd(
    report: Report, caller: Caller, first: engine.Question, names: list[str], *others: engine.Question
) -> list[engine.Question]:
    """The question on both sides of 2^24, where float32 has no odd numbers, if that tells positions in float32."""
    hidden = unseen(report, first, *others)
    if "f32_positions" not in hidden or _last(first.a, names) > probe.EXACT:
        return []
    try:
        question = _there(caller, probe.moved(first.a, probe.EXACT, names), models_after(report, first))
        if "f32_positions" in question.blind(needed(report, first), hidden):
            report.skipped(ODD, f"from {probe.EXACT} on float32 positions are within the bound")
            return []
        if _right(question, _answered(caller, question)):
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
        if gap > 2**20 and not _tells_a_cap(question):
            raise NotHere
        if gap > 2**20:
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


def _decides(question: engine.Question) -> bool:
    """Whether a right output says something: one that is plainly wrong would not pass."""
    return not question.right.any() or not any("times" in words for words in question.passing(question.models[-1]))


def _right(question: engine.Question, got: np.ndarray) -> bool:
    model = question.models[-1]
    return engine.distance(got, question.right, question.tolerance[model], question.gauge) <= 1


def _least(caller: Caller, question: engine.Question, at: Callable[[int], Arguments], wrong: int, right: int = 0) -> Arguments:
    """The arguments at the least gap or end that is answered wrongly, by halving."""
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
    if got.shape != question.right.shape or "attention" not in question.op.tags:
        return got
    return np.where((question.right == 0).all(axis=-1, keepdims=True), question.right, got)


def _there(caller: Caller, a: Arguments, models: tuple[str, ...]) -> engine.Question:
    """The question at other positions, of each element alone: right angles are made in ways that differ more there.

    ValueError where the specification refuses it or its numbers leave the dtype.
    """
    question = further(caller.op, a, models).each_alone(models)
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


def _last(a: Arguments, names: Iterable[str] = probe.PLACED) -> int:
    return max((int(a[name].max()) for name in names if isinstance(a.get(name), np.ndarray)), default=0)


def _shapes(op: Op, settings: dict[str, Any], shapes: Iterable[dict[str, int]]) -> Iterator[dict[str, int]]:
    """The extents that change an array of this op and were not chosen."""
    sizes = _extents(op.make(**settings))
    own = {*settings, *inspect.signature(op.spec).parameters} | ({"heads"} if settings.get("key_heads") else set())
    for shape in shapes:
        possible = shape.keys() <= inspect.signature(op.make).parameters.keys() - own
        possible = possible and _pairs(op, settings | shape) <= MOST and _runs(op, settings | shape)
        if possible and _extents(op.make(**settings | shape)) != sizes:
            yield shape


def _pairs(op: Op, settings: dict[str, Any]) -> int:
    """Queries times keys, in all heads of all batch rows; where nothing is made for queries, keys are taken for them."""
    sizes = {name: p.default for name, p in inspect.signature(op.make).parameters.items()} | settings
    made = [_extents(op.make(**settings | {"n_query": n})) for n in (1, 2)] if "n_query" in sizes else [0, 0]
    queries = sizes.get("n_query" if made[0] != made[1] else "n_key", 1)
    return int(np.prod([queries, *(sizes.get(name, 1) for name in ("batch", "heads", "n_key"))]))


def _runs(op: Op, settings: dict[str, Any]) -> bool:
    """False where the specification refuses the shape."""
    try:
        with np.errstate(all="ignore"):
            op.spec(**op.make(**settings))
    except (TypeError, ValueError):
        return False
    return True


def _extents(a: Arguments) -> list[tuple[int, ...]]:
    return [np.shape(value) for value in a.values()]
