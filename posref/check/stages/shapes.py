"""Shapes: the same question with other extents, with large counts, and with texts of the trained length."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from posref.check import edits, engine, masks
from posref.check.axes import names as axis_names
from posref.check.call import Caller, Misbehaved
from posref.check.report import Finding, Report
from posref.check.stages.later_questions import (
    answered_rightly,
    decides,
    is_right,
    keep_alone,
    last_position,
    later_question,
    models_after,
    of_lengths_left,
    reshaped,
    within_numbers,
)
from posref.check.verdict import ALL, as_booleans, judged
from posref.check.wrong_elements import columns, where
from posref.ops import Arguments, Mistake, NotHere, Op, further, probe
from posref.ops.common import CHUNKS
from posref.ops.scaling import ByLength

# after the first probe: one row, one text, one head, many of each, lengths that are no multiple of a tile
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
# more batch rows, heads and keys than a block, a warp or a short table has
LARGE: tuple[dict[str, int], ...] = (
    {"batch": 17, "n_query": 2, "n_key": 4},
    {"batch": 1, "heads": 131},
    {"batch": 1, "n_query": 1, "n_key": 1031},
    {"batch": 1, "n_query": 261, "n_key": 263},
)
Output = tuple[str, engine.Question, np.ndarray]  # what was asked, in words, and as a question
MOST = 1_000_000  # pairs of queries and keys; more take seconds
SMALL: tuple[dict[str, int], ...] = ({"batch": 1, "n_query": 23, "n_key": 23},)
KEEP_NOTHING = "Compute positions from the arguments of each call: a length that a call leaves is that of another text."
DENSE = 33, 257  # keys without gaps, at least and at most: three windows, if they are known


def other_shapes(
    report: Report,
    caller: Caller,
    op: Op,
    settings: dict[str, Any],
    first: engine.Question,
    shapes: Iterable[dict[str, int]] = BATTERY,
    name: str = "shapes",
    changed: Callable[[Arguments], Arguments] = Arguments,
    more: str = "",
) -> list[engine.Question]:
    """The same question at other shapes. Returns those whose right answer proves something; the first that fails is
    reported."""
    tried: dict[str, engine.Question] = {}
    beyond: list[str] = []
    models = models_after(report, first)
    for shape in extents_that_differ(op, settings, shapes) if report.ok else ():
        a = changed(op.make(**settings | shape))
        words = ", ".join(f"{key}={value}" for key, value in shape.items()) + more
        question = later_question(op, a, models)
        if not (all(np.isfinite(bound).all() for bound in question.tolerance.values()) and within_numbers(caller, question)):
            beyond.append(words)  # the bound may leave the numbers before the values do
            continue
        try:
            got = caller(a)
        except Misbehaved as error:
            report.failed(f"shape {words}", str(error))
            return [*tried.values()]
        if not answered_rightly(report, f"shape {words}", caller, first, question, got):
            _part_of_an_earlier_one(report, question, got, {"the first call": first} | tried)
            others = [changed(op.make(**settings | each)) for each in extents_that_differ(op, settings, BATTERY)]
            _length_of_an_earlier_one(report, caller, question, others)
            if any(_in_chunks(question.claimed.get(finding.name)) for finding in report.diagnosis):
                confirmed(report, caller, op, settings | shape, question, reshaped(got, question))
            if not report.diagnosis:
                _edge(report, caller, op, settings, shape, models, changed)
            return [*tried.values()]
        tried |= {words: question} if decides(question) else {}
    if tried:
        report.passed(name, "; ".join(tried))
    if beyond:
        report.skipped(
            name, f"{'; '.join(beyond)}: right answers, or what rounding allows, leave the numbers of the format there"
        )
    return [*tried.values()]


def _part_of_an_earlier_one(report: Report, question: engine.Question, got: Any, earlier: dict[str, engine.Question]) -> None:
    """Say if this output is the first or last part of an earlier result: that may be kept, or a size may be fixed."""
    got, bound = reshaped(got, question), question.tolerance[question.models[-1]]
    for call, before in earlier.items():
        sizes = [*zip(before.right.shape, got.shape, strict=False)] if before.right.ndim == got.ndim else [(0, 1)]
        if any(n < m for n, m in sizes) or all(n == m for n, m in sizes) or got.shape != question.right.shape:
            continue
        for part, cut in {"first": [slice(m) for _, m in sizes], "last": [slice(n - m, n) for n, m in sizes]}.items():
            if len(np.unique(got)) >= 3 and engine.distance(got, before.right[tuple(cut)], bound) <= 1:
                made = call if call.startswith("the") else f"the call with {call}"
                words = f"your output is the {part} part of the right result of {made}, as where that is kept and cut to"
                report.failed("earlier result", f"{words} the new shape, or where a size is fixed")
                return


def _length_of_an_earlier_one(report: Report, caller: Caller, question: engine.Question, others: list[Arguments]) -> None:
    """Say if all positions are the length of the call before: after two calls of other lengths they are these lengths."""
    placed = [name for name in probe.PLACED if isinstance(question.a.get(name), np.ndarray)]
    before = [*{max(a[name].shape[-1] for name in placed): a for a in others if placed}.items()][-2:]
    for name in [each for each in placed if len(before) > 1 and any(f.name == f"other_{each}" for f in report.diagnosis)]:
        with suppress(Misbehaved):
            for length, other in before:
                caller(other)
                a = Arguments(question.a | {name: np.full_like(question.a[name], length)})
                if not is_right(engine.Question(question.op, a, question.models), reshaped(caller(question.a), question)):
                    return
            lengths = " and ".join(str(length) for length, _ in before)
            words = f"all {name} are the length of the call before: {lengths} after calls of these lengths"
            report.diagnosis, report.advice = [Finding("length_of_an_earlier_call", words, KEEP_NOTHING)], [KEEP_NOTHING]


def _edge(
    report: Report,
    caller: Caller,
    op: Op,
    settings: dict[str, Any],
    shape: dict[str, int],
    models: tuple[str, ...],
    changed: Callable[[Arguments], Arguments],
) -> None:
    """Say from which extent on a function that is right at smaller shapes is wrong: blocks of a kernel end there.

    The interval is halved, first for each extent alone and then for all together, so that few calls are made.
    """
    usual = {name: p.default for name, p in inspect.signature(op.make).parameters.items()} | settings
    for names in dict.fromkeys([*((name,) for name in shape), (*shape,)]):

        def asked(n: int, names: tuple[str, ...] = names) -> tuple[engine.Question, np.ndarray]:
            extents = shape | {name: min(n, shape[name]) for name in names}
            question = later_question(op, changed(op.make(**settings | extents)), models)
            return question, reshaped(caller(question.a), question)

        with suppress(Misbehaved, TypeError, ValueError):
            low, high = (max(of[name] for name in names) for of in (usual, shape))
            if low >= high or not is_right(*asked(low)) or is_right(*asked(high)):
                continue
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if is_right(*asked(middle)) else (low, middle)
            question, got = asked(high)
            wrong = engine.ratios(got, question.right, question.tolerance[question.models[-1]]) > 1
            called = axis_names(question)
            place = where(wrong, called) + columns(wrong, called[-1])
            report.failed("edge", f"right up to {'='.join(names)}={low}, wrong from {high} on, of the sizes tried{place}")
            return


def _without_gaps(a: Arguments, chunk: int) -> dict[str, int]:
    """The extents of a question with every offset up to three times the largest limit, and four chunks, the last not full."""
    limits = [a[name] for name in probe.LIMITS if isinstance(a.get(name), int)]
    n = int(np.clip(max(3 * max(limits, default=0), 4 * chunk - 1), *DENSE)) | 1  # of no tile
    return {"n_query": n, "n_key": n}


def _in_chunks(mistake: Mistake | None) -> int:
    """The size of the chunks that a mistake speaks of, or the largest that is known if it has none; 0 without chunks."""
    said = re.search(r"(?:by chunks|inside a chunk)(?: of (\d+) tokens)?", mistake.bug if mistake else "")
    return int(said[1] or CHUNKS[-1]) if said else 0


def large_counts(report: Report, caller: Caller, first: engine.Question) -> None:
    """Counts beyond 16-bit integers, if the op has no positions that could be moved."""
    try:
        a = probe.counted(caller.op, first.a)
        got = caller(a) if report.ok else None
    except NotHere:
        return
    except Misbehaved as error:
        report.skipped("large counts", str(error))
        return
    if got is not None and answered_rightly(
        report, "large counts", caller, first, later_question(caller.op, a, models_after(report, first)), got
    ):
        report.passed("large counts")


def trained_lengths(
    report: Report, caller: Caller, op: Op, settings: dict[str, Any], first: engine.Question
) -> list[engine.Question]:
    """Texts of half, all, just more than all, and twice the trained length, if the frequencies follow the length."""
    asked: list[engine.Question] = []
    switches = first.a.by_length.switches() if isinstance(first.a.by_length, ByLength) else {}
    for limit in _ends(caller, first):
        a = op.make(**settings | {"max_position": limit})
        left = of_lengths_left(op._replace(further={**op.further, **switches}), first, *asked)
        question = later_question(left, a, models_after(report, first))
        try:
            got = caller(a)
        except Misbehaved as error:
            report.failed(f"length {limit + 1}", str(error))
            return asked
        if not answered_rightly(report, f"length {limit + 1}", caller, first, question, got):
            return asked
        asked.append(question)
    if asked:
        report.passed("lengths", ", ".join(str(last_position(question.a) + 1) for question in asked))
    return asked


def _ends(caller: Caller, first: engine.Question) -> list[int]:
    """The last positions of texts of half, about all, and twice the trained length, below that of the first question."""
    trained = getattr(first.a.by_length, "original_length", None) if caller.positions in ("batch", "shared") else None
    ends = () if trained is None else (int(trained) // 2 - 1, int(trained) - 1, int(trained), 2 * int(trained) - 1)
    return [end for end in ends if 0 < end < last_position(first.a)]


def distinguished(report: Report, caller: Caller, op: Op, settings: dict[str, Any], first: engine.Question) -> None:
    """Of several mistakes that give the first output, keep those that also give it at trained lengths and other shapes."""
    left = [finding.name for finding in report.diagnosis]
    if not set(left) <= op.mistakes.keys():
        return
    elsewhere = chain(({"max_position": end} for end in _ends(caller, first)), extents_that_differ(op, settings, BATTERY))
    for change in elsewhere if len(left) > 1 else ():
        question = later_question(op, op.make(**settings | change), first.models)
        try:
            got = reshaped(caller(question.a), question)
        except Misbehaved:
            break
        left = [name for name in left if question.fits(got, name, op.mistakes[name].wrong)] or left
        if len(left) == 1:
            break
    keep_alone(report, left)


def confirmed(
    report: Report, caller: Caller, op: Op, settings: dict[str, Any], first: engine.Question, got: np.ndarray
) -> None:
    """Keep the diagnoses that also give the output at another length without gaps; else take those found there that fit here.

    A few entries fit a constant or a window by chance, any factor fits one length, and of mistakes in chunks several fit two
    chunks. A mistake that cannot occur there stays. Of a few wrong entries of a mask that nothing explains, an edit may explain
    the longer text, which has more of them.
    """
    bits = np.isin(first.right, (0, 1)).all()
    claimed = {finding.name: first.claimed.get(finding.name) for finding in report.diagnosis}
    chunk = max(map(_in_chunks, claimed.values()), default=0)
    settings = {name: value for name, value in settings.items() if not chunk or name not in ("n_query", "n_key")}
    few = bits and got.shape == first.right.shape and np.count_nonzero(got != first.right) < edits.MARKS
    general = all(mistake and (bits or mistake.kind == "general") for mistake in claimed.values())
    doubtful = chunk or (general and (claimed or few))
    rules = {name: mistake for name, mistake in claimed.items() if mistake and mistake.kind == "mask rule"}
    others = [*_outputs(caller, op, settings, first, chunk, beyond=bool(rules))] if doubtful else []
    if not others:
        return
    got = as_booleans(first, got)
    if chunk and any(_replaced_by_a_rule(report, each, first, got, others) for each in report.diagnosis):
        return
    refuted = {name: by for name, mistake in claimed.items() if mistake and (by := _refuting(others, name, mistake))}
    if len(refuted) < len(claimed):
        keep_alone(report, [name for name in claimed if name not in refuted])
        return
    if len(rules) == len(claimed) == 1 and _replaced_by_a_rule(report, report.diagnosis[0], first, got, others):
        return
    words, question, other = next(iter(refuted.values()), others[0])
    part = Report(report.subject)
    if refuted:
        judged(part, question, other)
    fitting = [
        name
        for name, mistake in question.claimed.items()
        if _fits(first, got, name, mistake) and not _refuting(others, name, mistake)
    ]
    lines = {line for finding in report.diagnosis for line in finding.remedy.split("\n")}
    report.advice = [line for line in report.advice if line not in lines]
    report.ambiguous = [line for line in report.ambiguous if not line.endswith(ALL)]
    report.diagnosis = [finding for finding in part.diagnosis if finding.name in fitting]
    report.advice += [line for line in part.advice if report.diagnosis]
    edited = [] if report.diagnosis else edits.hypotheses(question, other)
    for name, mistake in edited:
        if _fits(first, got, name, mistake) and not _refuting(others, name, mistake):
            report.found(name, f"your output equals {op.name} {mistake.bug}", mistake.remedy)
    if refuted and not report.diagnosis:
        said = ", ".join(rules[name].bug if name in rules else name for name in refuted)
        report.ambiguous.append(f"{said} would explain this output, but not the output of {words}.")


def _outputs(
    caller: Caller, op: Op, settings: dict[str, Any], first: engine.Question, chunk: int, *, beyond: bool
) -> Iterator[Output]:
    """A longer text without gaps, and its output; with `beyond`, also queries after many keys of a cache."""
    asked = [(_without_gaps(first.a, chunk), probe.dense, " without gaps"), (BATTERY[-1], lambda a: a, "")]
    for shape, change, gaps in asked[: 1 + beyond]:
        for extents in extents_that_differ(op, settings, [shape]):
            question = later_question(op, change(op.make(**settings | extents)), first.models)
            words = ", ".join(f"{key}={value}" for key, value in extents.items())
            with suppress(Misbehaved):
                yield words + gaps, question, as_booleans(question, reshaped(caller(question.a), question))


def _refuting(others: Iterable[Output], name: str, mistake: Mistake) -> Output | None:
    """The first output that a mistake does not give; None if it gives all."""
    return next((each for each in others if _fits(each[1], each[2], name, mistake) is False), None)


def _replaced_by_a_rule(report: Report, said: Finding, first: engine.Question, got: np.ndarray, others: list[Output]) -> bool:
    """Replace the mask rule in the report by the simplest rule that gives all outputs, or chunks without a size by those with
    one; False if there is none."""
    outputs = [("", first, got), *others]
    rules: Iterable[Any] = chain.from_iterable(masks.ranked(question, output) for _, question, output in outputs)
    if first.kind != "b":
        rules = ((name, m) for name, m in further(first.op).items() if name.rpartition("_")[0] == said.name)
    for name, rule in rules:
        if not _refuting(outputs, name, rule):
            sentence = said.sentence.replace(f"{said.name}: {first.claimed[said.name].bug}", f"{name}: {rule.bug}")
            keep_alone(report, [said.name])
            report.diagnosis = [replace(said, name=name, sentence=sentence)]
            return True
    return False


def _fits(question: engine.Question, got: np.ndarray, name: str, mistake: Mistake) -> bool | None:
    """Whether a mistake of another question gives this output; None if it cannot occur here."""
    elsewhere = f"{name}: {mistake.bug}, elsewhere"  # its numbers are of that question
    try:
        answer = question.answer(elsewhere, mistake.wrong)
    except IndexError:  # of as many texts or heads as there were
        return None
    return question.fits(got, elsewhere, mistake.wrong) if answer is not None and answer.shape == got.shape else None


def extents_that_differ(op: Op, settings: dict[str, Any], shapes: Iterable[dict[str, int]]) -> Iterator[dict[str, int]]:
    """The shapes that change an array of this op; extents that were chosen, or are settings of the op, stay."""
    sizes = _extents(op.make(**settings))
    own = {*settings, *inspect.signature(op.spec).parameters} | ({"heads"} if settings.get("key_heads") else set())
    free = inspect.signature(op.make).parameters.keys() - own
    for shape in map(dict, dict.fromkeys(tuple(each for each in shape.items() if each[0] in free) for shape in shapes)):
        possible = _pairs(op, settings | shape) <= MOST and _runs(op, settings | shape)
        if possible and _extents(op.make(**settings | shape)) != sizes:
            yield shape


def _pairs(op: Op, settings: dict[str, Any]) -> int:
    """The number of queries times keys in all heads of all batch rows; keys times keys if no array depends on queries."""
    sizes = {name: p.default for name, p in inspect.signature(op.make).parameters.items()} | settings
    made = [_extents(op.make(**settings | {"n_query": n})) for n in (1, 2)] if "n_query" in sizes else [0, 0]
    queries = sizes.get("n_query" if made[0] != made[1] else "n_key", 1)
    return int(np.prod([queries, *(sizes.get(name, 1) for name in ("batch", "heads", "n_key"))]))


def _runs(op: Op, settings: dict[str, Any]) -> bool:
    """Whether the specification accepts the shape."""
    try:
        with np.errstate(all="ignore"):
            op.spec(**op.make(**settings))
    except (TypeError, ValueError):
        return False
    return True


def _extents(a: Arguments) -> list[tuple[int, ...]]:
    return [np.shape(value) for value in a.values()]
