"""Later questions: helpers for the calls after the first one, in other shapes, at other positions or with other contents."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from posref.check import engine, rounded, weights
from posref.check.call import Caller, Misbehaved
from posref.check.report import Finding, Report
from posref.check.stages.reads import other_reads
from posref.check.verdict import ALL, IN_16_BITS, judged, needed, unseen
from posref.check.wrong_elements import large_scores
from posref.ops import Arguments, Mistake, Op, probe
from posref.ops.scaling import ByLength

SUBTRACT = "Subtract from all scores of a row the largest one that may be seen, wherever exp is taken and parts are merged."


def reshaped(got: np.ndarray, question: engine.Question) -> np.ndarray:
    """The output without missing or extra axes of extent 1, with equal rows merged if the right answer has one row, and with
    the right numbers in elements that have no meaning."""
    right = question.right
    if got.ndim == right.ndim and all(wanted in (1, size) for size, wanted in zip(got.shape, right.shape, strict=True)):
        one = got[tuple(map(slice, right.shape))]
        got = one if (got == one).all() else got
    if got.size != right.size or got.squeeze().shape != right.squeeze().shape:
        return got
    return np.where(question.op.meant(question.a), got.reshape(right.shape), right)


def later_question(op: Op, a: Arguments, models: tuple[str, ...]) -> engine.Question:
    """A question after the first. Each element is judged alone, except in 16-bit models whose bounds would accept garbage."""
    with np.errstate(all="ignore"):
        question = engine.Question(op, a, models)
        wide = (
            name.startswith((*rounded.BITS,)) and not engine.separates(question.right, question.tolerance[name])
            for name in models
        )
        return question.each_alone(name for name, held in zip(models, wide, strict=True) if not held)


def of_lengths_left(op: Op, *asked: engine.Question) -> Op:
    """The op without those mistakes about the length of a text that right outputs have refuted."""
    by_length = asked[0].a.by_length
    if not isinstance(by_length, ByLength):
        return op
    known = by_length.mistakes() | by_length.further()
    refuted = {name for name, m in known.items() if any(each.distinguishes(name, m.wrong) for each in asked)}
    mistakes, further = ({name: m for name, m in of.items() if name not in refuted} for of in (op.mistakes, op.further))
    return op._replace(mistakes=mistakes, further=further)


def within_numbers(caller: Caller, question: engine.Question) -> bool:
    """Whether the specification stays finite in the dtype of the function, float64 or float32; if not, nothing is asked."""
    dtype = np.float64 if caller.dtype == "float64" else np.float32
    floats = {name: x.astype(dtype) for name, x in question.a.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f"}
    try:
        with np.errstate(all="ignore"):
            return bool((np.isfinite(question.op.spec(**question.a | floats)) | ~np.isfinite(question.right)).all())
    except ValueError:
        return False


def models_after(report: Report, first: engine.Question) -> tuple[str, ...]:
    """The model that the first output needed, and the coarsest model that its dtype allows."""
    return tuple(dict.fromkeys((needed(report, first), first.models[-1])))


def answered_rightly(
    report: Report, name: str, caller: Caller, first: engine.Question, question: engine.Question, got: np.ndarray
) -> bool:
    """Whether a later output is right; if not, the report says what it is.

    Of several mistakes that fit, those stay that the first output, which was right, does not rule out.
    """
    part = Report(report.subject)
    got = reshaped(got, question)
    right = judged(part, question, got)
    if not right:
        overflow(part, caller, question, got)
    if not right and not part.diagnosis and np.isfinite(got).all() and not other_weights(part, caller, question, got):
        other_reads(part, caller, question, got)
    if len(part.diagnosis) > 1:
        hidden = unseen(report, first)
        keep_alone(part, [finding.name for finding in part.diagnosis if finding.name in hidden])
    part.diagnosis = [_under_its_condition(finding, name, first, question) for finding in part.diagnosis]
    return right or failed(report, name, part)


def _under_its_condition(finding: Finding, name: str, first: engine.Question, question: engine.Question) -> Finding:
    """What was found, with the calls where it holds if the first call, which was right, would have shown it too."""
    mistake = question.claimed.get(finding.name)
    if mistake is None or not first.distinguishes(finding.name, mistake.wrong):
        return finding
    here, there = (f" (positions up to {last})" if (last := last_position(each.a)) else "" for each in (question, first))
    words = f"; this holds in the call with {name}{here}, and the first call{there} is right"
    return replace(finding, sentence=finding.sentence + words)


def overflow(report: Report, caller: Caller, question: engine.Question, got: np.ndarray) -> None:
    """Say that exp overflows, if exactly the rows with large scores are not finite, and are right with smaller queries.

    If these rows are 0, exp may also underflow.
    """
    lost = (~np.isfinite(got) | (got == 0)).all(axis=-1)
    largest = large_scores(question, lost)
    if largest is None:
        return
    a = Arguments(question.a | {"q": question.a.q * 2.0 ** -np.ceil(np.log2(largest))})
    with suppress(Misbehaved):
        if is_right(engine.Question(question.op, a, question.models), caller(a)):
            name, verb = "exp_overflows", "overflows"
            if not got[lost].any():  # 0, where NaN may have been replaced
                name, verb = "exp_out_of_range", "overflows, or underflows"
            words = f"the rows with a score beyond {largest:.3g} are lost, and right with smaller queries: exp {verb}"
            report.diagnosis, report.advice = [Finding(name, words, SUBTRACT)], [SUBTRACT]


def other_weights(report: Report, caller: Caller, question: engine.Question, got: np.ndarray) -> bool:
    """Whether the report says how an attention's weights differ from the right ones, or that 16 bits are the cause."""
    if IN_16_BITS in report.advice:
        return True
    words = law = ""
    with suppress(Misbehaved, *engine.NO_ANSWER):
        words, law = weights.facts(question, got, caller)
    if words and not law:
        report.failed("weights", words)
    if law:
        sentence, remedy = weights.LAWS[law]
        report.found(law, f"{sentence}: {words}", remedy)
    return bool(words)


def keep_alone(report: Report, names: Sequence[str]) -> None:
    """Keep only the diagnoses with these names; keep all if no diagnosis has one."""
    kept = [finding for finding in report.diagnosis if finding.name in names]
    if not kept or len(kept) == len(report.diagnosis):
        return
    report.diagnosis, report.ambiguous = kept, [line for line in report.ambiguous if not line.endswith(ALL)]
    if len(kept) == 1:
        report.advice += [line for line in kept[0].remedy.split("\n") if line and line not in report.advice]
    else:
        report.ambiguous.append(f"{'; '.join(finding.name for finding in kept)}{ALL}")


def failed(report: Report, name: str, part: Report) -> bool:
    first, *others = [check for check in part.checks if check.status == "failed"]
    report.failed(name, first.detail)
    report.ruled_out, report.stopped = part.ruled_out, part.stopped
    report.checks += [check for check in others if check.name == "reads"]
    known = {finding.name for finding in report.diagnosis}
    report.diagnosis += [finding for finding in part.diagnosis if finding.name not in known]
    report.advice += [line for line in part.advice if line not in report.advice]
    return False


def decides(question: engine.Question) -> bool:
    """Whether a right output proves something: 1.3 times the right numbers would not pass."""
    return not question.right.any() or not any("times" in words for words in question.passing(question.models[-1]))


def is_right(question: engine.Question, got: np.ndarray) -> bool:
    model = question.models[-1]
    return engine.distance(got, question.right, question.tolerance[model], question.gauge) <= 1


def last_position(a: Arguments, names: Iterable[str] = probe.PLACED) -> int:
    return max((int(a[name].max()) for name in names if isinstance(a.get(name), np.ndarray)), default=0)


def question_with(
    report: Report, caller: Caller, first: engine.Question, a: Arguments, more: dict[str, Mistake]
) -> engine.Question:
    """A question about these mistakes and those that the first output, which was right, cannot rule out."""
    hidden = {name: caller.op.mistakes[name] for name in unseen(report, first)}
    return later_question(of_lengths_left(caller.op, first)._replace(mistakes=more | hidden), a, models_after(report, first))


def features(op: Op, a: Arguments) -> list[str]:
    """The names of the arrays of features, which differ per text; a table per head is a weight."""
    names = [
        name for name in op.given if isinstance(a.get(name), np.ndarray) and a[name].ndim > 2 and a[name].dtype.kind == "f"
    ]
    return [name for name in names if len(a[name]) == len(a[names[0]])]


def refuses(caller: Caller, a: Arguments) -> bool:
    """Whether the function raises, or returns no result, at these arguments."""
    try:
        caller(a)
    except Misbehaved:
        return True
    return False
