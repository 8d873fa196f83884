"""Search: which mistakes explain an output that is not the asked rotation.

`mistakes` lists the single ones. A hypothesis is claimed only if the correct answer fails and the hypothesis fits (residual
at most 1). The first stage in which something fits ends the search, and everything that fits in it is reported:

1. single mistakes;
2. combinations, read from the impulse response and the phases, or one mistake on top of what was read;
3. a result of 16-bit numbers in a wider dtype: correct, or with the mistakes of 1 and 2, by the bounds of 16 bits;
4. 16-bit tables, whose bound is wide and would cover others.
"""

from collections.abc import Iterable, Iterator

from posref.check import precision
from posref.check.combinations import combinations
from posref.check.report import Finding, Report
from posref.check.rotation import TABLE_ROUNDOFF, Asked, Pairs
from posref.check.run import Hypothesis, Outcome, Run, fitness, joined
from posref.check.tensors import round_to
from posref.check.wrong_numbers import low_result, low_tables, wrong_frequencies, wrong_precision
from posref.check.wrong_pairs import wrong_pairs, wrong_signs
from posref.check.wrong_positions import wrong_positions


def mistakes(asked: Asked, shape: tuple[int, ...]) -> list[Hypothesis]:
    """Every single mistake that x of this shape `(b, h, n, d)` can show, in the order of reporting.

    >>> len(mistakes(Asked(dim=64, rotary_dim=64, base=10000.0, layout="half"), (2, 3, 5, 64))) > 80
    True
    """
    everything = [*wrong_pairs(asked), *wrong_signs(), *wrong_positions(), *wrong_frequencies(asked), *wrong_precision()]
    return [h for h in everything if h.axis is None or shape[h.axis] > 1]


def explain(report: Report, run: Run, found: Pairs | None) -> None:
    """Fill `diagnosis`, `ambiguous`, `advice`, `nearest`. `found`: the pairs of the impulse response, if there is one."""
    settle(report, _stages(run, found), run.subject)


def settle(report: Report, stages: Iterable[Iterable[Outcome]], subject: str) -> None:
    """Claim what fits in the first stage in which something fits."""
    tried: list[Outcome] = []
    for stage in stages:
        outcomes = list(stage)
        fitting = _simplest([outcome for outcome in outcomes if outcome.residual <= 1])
        tried += [outcome for outcome in outcomes if outcome.residual > 1]
        if fitting:
            _claim(report, fitting, subject)
            break
    missed = {outcome.hypothesis.name: outcome.residual for outcome in tried}
    report.ruled_out = len(missed)
    report.nearest = sorted(missed.items(), key=lambda item: item[1])[:2]


def _stages(run: Run, found: Pairs | None) -> Iterator[Iterable[Outcome]]:
    yield _applied(run, run.mistakes)
    if run.start.form != "rotation":
        return  # phases are read of forward rotations
    yield combinations(run, found)
    low = _grid(run)
    if low is None:
        yield _tables(run)
        return
    models = precision.by_dtype(low, given=run.asked.given is not None)
    run, result = run._replace(models=models), low_result(low)
    yield _applied(run, [result])
    yield _with(result, _applied(run, run.mistakes))
    yield _with(result, combinations(run, found))


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


def _claim(report: Report, fitting: list[Outcome], subject: str) -> None:
    for h, ratio, _ in fitting:
        sentence = f"your output {h.claim.format(subject=subject)} {h.sentence}"
        report.diagnosis.append(Finding(h.name, sentence, h.remedy, ratio, h.same_as))
        report.ambiguous += [f'"{h.name}" and {other}: the same numbers on any data.' for other in h.same_as]
    if len(fitting) > 1:
        report.ambiguous.append("; ".join(o.hypothesis.name for o in fitting) + ": all fit this data.")
    report.advice += dict.fromkeys(line for o in fitting for line in o.hypothesis.remedy.split("\n"))


def _applied(run: Run, candidates: Iterable[Hypothesis]) -> Iterator[Outcome]:
    for h in candidates:
        yield Outcome(h, fitness(run, h.change(run.asked, run.start)), frozenset([h.name]))


def _tables(run: Run) -> Iterator[Outcome]:
    """The bounds contain each other; stop at the narrowest that fits."""
    strict = run._replace(models=run.models[:1])
    for dtype in ("float16", "bfloat16"):
        if TABLE_ROUNDOFF[dtype] > _roundoff(run):
            for outcome in _applied(strict, [low_tables(dtype)]):
                yield outcome
                if outcome.residual <= 1:
                    return
