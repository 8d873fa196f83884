"""Search: which mistakes explain an output that is not the asked rotation.

A hypothesis is claimed only if the correct answer fails and the hypothesis fits (residual at most 1). The first stage in
which something fits ends the search, and everything that fits in it is reported:

1. single mistakes;
2. combinations, read from the impulse response and the phases, or one mistake on top of what was read;
3. a result of 16-bit numbers in a wider dtype: correct, or with the mistakes of 1 and 2, by the bounds of 16 bits;
4. 16-bit tables, whose bound is wide and would cover others.
"""

from collections.abc import Iterable, Iterator

from posref.check import precision
from posref.check.combinations import combinations
from posref.check.hypotheses import all_hypotheses
from posref.check.hypothesis import Hypothesis
from posref.check.report import Finding, Report
from posref.check.rotation import TABLE_ROUNDOFF, Pairs, Rotation, correct
from posref.check.run import Outcome, Run, fitness, joined
from posref.check.tensors import round_to
from posref.check.wrong_numbers import low_result, low_tables


def explain(report: Report, run: Run, found: Pairs | None) -> None:
    """Fill `diagnosis`, `ambiguous`, `advice`, `nearest`. `found`: the pairs of the impulse response, if there is one."""
    tried: list[Outcome] = []
    for stage in _stages(run, found):
        outcomes = list(stage)
        fitting = _simplest([outcome for outcome in outcomes if outcome.residual <= 1])
        tried += [outcome for outcome in outcomes if outcome.residual > 1]
        if fitting:
            _claim(report, fitting)
            break
    missed = {outcome.hypothesis.name: outcome.residual for outcome in tried}
    report.ruled_out = len(missed)
    report.nearest = sorted(missed.items(), key=lambda item: item[1])[:2]


def _stages(run: Run, found: Pairs | None) -> Iterator[Iterable[Outcome]]:
    start = correct(run.asked)
    singles = [h for h in all_hypotheses(run.asked) if h.axis is None or run.x.shape[h.axis] > 1]
    yield _applied(run, start, singles)
    yield combinations(run, start, singles, found)
    low = _grid(run)
    if low is None:
        yield _tables(run, start)
        return
    run, result = run._replace(models=precision.BY_DTYPE[low]), low_result(low)
    yield _applied(run, start, [result])
    yield _with(result, _applied(run, start, singles))
    yield _with(result, combinations(run, start, singles, found))


def _grid(run: Run) -> str | None:
    """The 16-bit dtype that all values belong to, if it is coarser than the dtype of the result."""
    for dtype, roundoff in TABLE_ROUNDOFF.items():
        if roundoff > _roundoff(run) and (round_to(run.got, dtype) == run.got).all():
            return dtype
    return None


def _roundoff(run: Run) -> float:
    return max(precision.MODELS[model].c_out for model in run.models)


def _with(result: Hypothesis, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    for outcome in outcomes:
        both = joined((outcome.hypothesis, result))
        yield Outcome(both, outcome.residual, outcome.parts | {result.name})


def _simplest(fitting: list[Outcome]) -> list[Outcome]:
    """Without repetitions, without those that contain another, and without measured ones where a named one fits."""
    unique = list({outcome.hypothesis.name: outcome for outcome in fitting}.values())
    least = [o for o in unique if not any(other.parts < o.parts for other in unique)]
    named = [o for o in least if not any(part.startswith("other ") for part in o.parts)]
    return named or least


def _claim(report: Report, fitting: list[Outcome]) -> None:
    for h, ratio, _ in fitting:
        sentence = f"your output equals RoPE {h.sentence}"
        report.diagnosis.append(Finding(h.name, sentence, h.remedy, ratio, h.same_as))
        report.ambiguous += [f'"{h.name}" and {other}: the same numbers on any data.' for other in h.same_as]
    if len(fitting) > 1:
        report.ambiguous.append("; ".join(o.hypothesis.name for o in fitting) + ": all fit this data.")
    report.advice += dict.fromkeys(line for o in fitting for line in o.hypothesis.remedy.split("\n"))


def _applied(run: Run, start: Rotation, candidates: Iterable[Hypothesis]) -> Iterator[Outcome]:
    for h in candidates:
        yield Outcome(h, fitness(run, h.change(run.asked, start)), frozenset([h.name]))


def _tables(run: Run, start: Rotation) -> Iterator[Outcome]:
    """The bounds contain each other; stop at the narrowest that fits."""
    strict = run._replace(models=run.models[:1])
    for dtype in ("float16", "bfloat16"):
        if TABLE_ROUNDOFF[dtype] > _roundoff(run):
            for outcome in _applied(strict, start, [low_tables(dtype)]):
                yield outcome
                if outcome.residual <= 1:
                    return
