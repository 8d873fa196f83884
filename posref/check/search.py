"""Search: which mistakes explain an output that is not the asked rotation.

A hypothesis is claimed only if the correct answer fails and the hypothesis fits (residual at most 1). Order: single
mistakes; a combination read from the phases, or one mistake on top of the pairs, sign and magnitude that were read;
tables or arithmetic of a low precision, whose bounds are wide and would cover others. The first stage that fits ends the
search, and everything that fits in it is reported.
"""

from collections.abc import Iterable, Iterator

from posref.check import precision
from posref.check.combinations import combinations
from posref.check.hypotheses import all_hypotheses
from posref.check.hypothesis import Hypothesis
from posref.check.report import Finding, Report
from posref.check.rotation import TABLE_ROUNDOFF, Pairs, Rotation, correct
from posref.check.run import Outcome, Run, fitness


def explain(report: Report, run: Run, found: Pairs | None) -> None:
    """Fill `diagnosis`, `ambiguous`, `advice`, `nearest`. `found`: the pairs of the impulse response, if there is one."""
    tried: list[Outcome] = []
    start = correct(run.asked)
    singles = [h for h in all_hypotheses(run.asked) if h.axis is None or run.x.shape[h.axis] > 1]
    sharp = [h for h in singles if not _is_wide(h)]
    wide = [h for h in singles if _is_wide(h) and _is_below(h, run)]
    stages = (_applied(run, start, sharp), combinations(run, start, sharp, found), _strictest(run, start, wide))
    for stage in stages:
        outcomes = list(stage)
        fitting = _simplest([outcome for outcome in outcomes if outcome.residual <= 1])
        tried += [outcome for outcome in outcomes if outcome.residual > 1]
        if fitting:
            _claim(report, fitting)
            break
    tried.sort(key=lambda outcome: outcome.residual)
    report.ruled_out = len(tried)
    report.nearest = [(outcome.hypothesis.name, outcome.residual) for outcome in tried[:2]]


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


def _is_wide(h: Hypothesis) -> bool:
    return h.name.startswith(("tables in", "computed in"))


def _is_below(h: Hypothesis, run: Run) -> bool:
    """The dtype of the claim is coarser than what the output's models allow already."""
    dtype = h.name.rsplit(" ", maxsplit=1)[-1]
    return TABLE_ROUNDOFF[dtype] > max(precision.MODELS[model].c_out for model in run.models)


def _applied(run: Run, start: Rotation, candidates: Iterable[Hypothesis]) -> Iterator[Outcome]:
    for h in candidates:
        yield Outcome(h, fitness(run, h.change(run.asked, start)), frozenset([h.name]))


def _strictest(run: Run, start: Rotation, wide: list[Hypothesis]) -> Iterator[Outcome]:
    """Wide bounds contain each other; stop at the narrowest that fits."""
    strict = run._replace(models=run.models[:1])
    order = sorted(wide, key=lambda h: (h.name.endswith("bfloat16"), h.name.startswith("computed")))
    for outcome in _applied(strict, start, order):
        yield outcome
        if outcome.residual <= 1:
            return
