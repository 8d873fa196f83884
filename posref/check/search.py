"""Search: which mistakes explain an output that is not the asked rotation.

A hypothesis is claimed only if the correct answer fails and the hypothesis fits (residual at most 1). Order: single
mistakes; a combination read from the phases, or one mistake on top of the pairs, sign and magnitude that were read;
tables or arithmetic of a low precision, whose bounds are wide and would cover others. The first stage that fits ends the
search, and everything that fits in it is reported.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from posref.check import hypotheses, precision, reading
from posref.check.hypotheses import Hypothesis
from posref.check.report import Finding, Report
from posref.check.rotation import TABLE_ROUNDOFF, Asked, Pairs, Rotation, correct, residual, turn


class Run(NamedTuple):
    """What was put in and what came out: x, got `(b, h, n, d)`, positions `(b, 1, n)`, models allowed for the output."""

    asked: Asked
    x: np.ndarray
    positions: np.ndarray
    got: np.ndarray
    models: tuple[str, ...]


class Outcome(NamedTuple):
    """A hypothesis, its residual, and the names of the mistakes it is made of."""

    hypothesis: Hypothesis
    residual: float
    parts: frozenset[str]


def fitness(run: Run, rotation: Rotation) -> float:
    """The smallest residual over the allowed models; of the first two heads alone where these do not fit already."""
    models = run.models if rotation.model is None else (rotation.model,)
    for heads in (slice(2), slice(None)):
        turned = turn(rotation, run.x[:, heads], run.positions)
        best = min(residual(run.got[:, heads], turned, model, rotation.table) for model in models)
        if best > 1:
            break
    return best


def explain(report: Report, run: Run, found: Pairs | None) -> None:
    """Fill `diagnosis`, `ambiguous`, `advice`, `nearest`. `found`: the pairs of the impulse response, if there is one."""
    tried: list[Outcome] = []
    start = correct(run.asked)
    singles = [h for h in hypotheses.all_hypotheses(run.asked) if h.axis is None or run.x.shape[h.axis] > 1]
    sharp = [h for h in singles if not _is_wide(h)]
    wide = [h for h in singles if _is_wide(h) and _is_below(h, run)]
    stages = (_applied(run, start, sharp), _combined(run, start, singles, found), _strictest(run, start, wide))
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
        changed = h.change(run.asked, start)
        if changed is not None:
            yield Outcome(h, fitness(run, changed), frozenset([h.name]))


def _strictest(run: Run, start: Rotation, wide: list[Hypothesis]) -> Iterator[Outcome]:
    """Wide bounds contain each other; stop at the narrowest that fits."""
    strict = run._replace(models=run.models[:1])
    order = sorted(wide, key=lambda h: (h.name.endswith("bfloat16"), h.name.startswith("computed")))
    for outcome in _applied(strict, start, order):
        yield outcome
        if outcome.residual <= 1:
            return


# combinations --------------------------------------------------------------------------------------------------------


def _combined(run: Run, start: Rotation, singles: list[Hypothesis], found: Pairs | None) -> Iterator[Outcome]:
    for base in _pairings(run, start, singles, found):
        read = reading.phases(run.x, run.got, run.positions, base.rotation.pairs)
        if read is None or read.spread > 0.1:
            continue
        yield from _from_phases(run, base, read)
        yield from _one_more(run, base, read, singles)


class Base(NamedTuple):
    """A rotation with some mistakes already in it, and their names."""

    rotation: Rotation
    parts: tuple[Hypothesis, ...]

    def plus(self, h: Hypothesis, asked: Asked) -> "Base":
        changed = h.change(asked, self.rotation)
        return self if changed is None else Base(changed, (*self.parts, h))

    def outcome(self, run: Run) -> Outcome:
        return Outcome(_joined(self.parts), fitness(run, self.rotation), frozenset(h.name for h in self.parts))


def _joined(parts: tuple[Hypothesis, ...]) -> Hypothesis:
    first = parts[0]
    if len(parts) == 1:
        return first
    return replace(
        first,
        name=" and ".join(h.name for h in parts),
        sentence=", and ".join(h.sentence for h in parts),
        remedy="\n".join(h.remedy for h in parts),
        same_as=tuple(other for h in parts for other in h.same_as),
    )


def _pairings(run: Run, start: Rotation, singles: list[Hypothesis], found: Pairs | None) -> Iterator[Base]:
    """The pairs that were found; without an impulse response, all that have a name."""
    named = [h for h in singles if h.kind == "pairs"]
    if found is None or reading.same_pairs(found, start.pairs):
        yield Base(start, ())
    matched = False
    for h in named:
        changed = h.change(run.asked, start)
        if changed is None or (found is not None and not reading.same_pairs(found, changed.pairs)):
            continue
        if not np.array_equal(changed.pairs.column_first, changed.pairs.column_second):
            continue
        matched = True
        yield Base(changed, (h,))
    if found is not None and not matched and not reading.same_pairs(found, start.pairs):
        yield _unnamed_pairs(run.asked, start, found)


def _unnamed_pairs(asked: Asked, start: Rotation, found: Pairs) -> Base:
    frequencies = asked.base ** (-2 * np.arange(len(found.first)) / (2 * len(found.first)))
    t = min(1, len(found.first) - 1)
    read, written = (int(found.first[t]), int(found.second[t])), (int(found.to_first[t]), int(found.to_second[t]))
    h = Hypothesis(
        "other pairs",
        "pairs",
        f"of {len(found.first)} pairs, where pair {t} reads features {read} and writes {written}",
        f"Rotate {hypotheses.members(asked.layout, asked.rotary_dim)}.",
        lambda asked, r: replace(r, pairs=found, frequencies=frequencies),
    )
    return Base(replace(start, pairs=found, frequencies=frequencies), (h,))


def _prepared(run: Run, base: Base, read: reading.Phases, sign: int) -> Base:
    """Sign and magnitude as read."""
    if sign < 0:
        inverse = next(h for h in hypotheses.all_hypotheses(run.asked) if h.name == "sign")
        base = base.plus(inverse, run.asked)
    magnitude = _plain(read.magnitude, precision.MODELS[run.models[0]].c_out)
    return base if magnitude == 1 else base.plus(hypotheses.magnified(magnitude), run.asked)


def _plain(number: float, roundoff: float) -> float:
    """1 within one rounding; else an attention factor 0.1 ln(s) + 1 or its square, or the fewest digits, within the noise.

    The median of thousands of magnitudes is far better than one of them; but the factor itself may be float32.
    """
    if abs(number - 1) <= 2 * roundoff:
        return 1.0
    noise = max(roundoff / 32, 2.0**-23)
    steps = 0.1 * np.log(np.arange(2, 129)) + 1
    short = (float(f"{number:.{digits}g}") for digits in (1, 2, 3, 4))
    for candidate in (*steps, *(steps**2), *short):
        if abs(candidate / number - 1) <= noise:
            return float(candidate)
    return float(f"{number:.9g}")


def _from_phases(run: Run, base: Base, read: reading.Phases) -> Iterator[Outcome]:
    """The parameters fitted to the phases, with as few digits as fit."""
    for limit in (np.inf, 300):
        fit = reading.fit(read, limit)
        if fit is None:
            continue
        prepared = _prepared(run, base, read, fit.sign)
        if prepared.parts:
            yield prepared.outcome(run)
        if abs(fit.offset) > 0.5:
            prepared = prepared.plus(hypotheses.offset(round(fit.offset)), run.asked)
            yield prepared.outcome(run)
        for candidate in _laws(run, prepared, fit):
            outcome = candidate.outcome(run)
            yield outcome
            if outcome.residual <= 1:
                return
        yield from _positions_read(run, prepared, read)


def _laws(run: Run, prepared: Base, fit: reading.Fit) -> Iterator[Base]:
    """Geometric frequencies with a plain base, a plain factor, both; then the frequencies as measured."""
    if np.isfinite(fit.base) and fit.base > 0:
        for digits in (1, 2, 3, 4, 6, 9):
            base = float(f"{fit.base:.{digits}g}")
            factor = float(f"{fit.factor:.{digits}g}")
            if abs(fit.factor - 1) > 1e-3:
                scaled = prepared.plus(hypotheses.scaled(factor), run.asked)
                yield scaled
                if base != run.asked.base:
                    yield scaled.plus(hypotheses.based(base, run.asked), run.asked)
            if base != run.asked.base:
                yield prepared.plus(hypotheses.based(base, run.asked), run.asked)
    if len(fit.frequencies) == len(prepared.rotation.frequencies):
        yield prepared.plus(_measured(fit.frequencies, prepared.rotation.frequencies), run.asked)


def _measured(frequencies: np.ndarray, expected: np.ndarray) -> Hypothesis:
    ratio = expected / frequencies
    shown = ", ".join(f"{ratio[t]:.4g} at pair {t}" for t in sorted({0, len(ratio) // 4, len(ratio) // 2, len(ratio) - 1}))
    return Hypothesis(
        "other frequencies",
        "frequencies",
        f"with other frequencies: those asked divided by those used are {shown}",
        "A ratio that rises from 1 to a constant is a scaling for long context (Llama 3, YaRN): ask for it or remove it.",
        lambda asked, r: replace(r, frequencies=frequencies),
    )


def _positions_read(run: Run, prepared: Base, read: reading.Phases) -> Iterator[Outcome]:
    """The positions that were really used, entry by entry; as a limit or a modulus if they are one."""
    sign = -1 if prepared.rotation.form == "inverse" else 1
    used = np.rint(reading.positions_of(read.phases, sign * prepared.rotation.frequencies))
    wrong = np.flatnonzero(used != read.positions)
    if len(wrong) == 0:
        return
    given = read.positions[wrong]
    first = wrong[np.argmin(given)]
    limits = {int(used[wrong].max())} if used[wrong].max() > 0 else set()
    moduli = {int(abs(p - u)) for p, u in zip(given, used[wrong], strict=True) if p > u >= 0}
    for limit in sorted(limits):
        yield prepared.plus(hypotheses.clamped(limit), run.asked).outcome(run)
    for length in sorted(moduli)[:8]:
        if length > 1:
            yield prepared.plus(hypotheses.modulo(length), run.asked).outcome(run)
    table = used.reshape(run.x.shape[0], 1, run.x.shape[2])
    h = Hypothesis(
        "other positions",
        "positions",
        f"with other positions: {len(wrong)} of {len(used)} differ, "
        f"position {read.positions[first]:g} is turned as {used[first]:g}",
        "Follow the positions from the call to the tables.",
        hypotheses.positions_change(lambda p, shape: table),
    )
    yield prepared.plus(h, run.asked).outcome(run)


def _one_more(run: Run, base: Base, read: reading.Phases, singles: list[Hypothesis]) -> Iterator[Outcome]:
    """One named mistake on top of the pairs, both signs, and the magnitude."""
    for sign in (1, -1):
        prepared = _prepared(run, base, read, sign)
        if prepared.parts:
            taken = {h.kind for h in prepared.parts}
            for h in singles:
                if h.kind not in taken and not _is_wide(h):
                    yield prepared.plus(h, run.asked).outcome(run)
