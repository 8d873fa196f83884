"""Combinations: several mistakes at once, as far as the impulse response and the phases show them.

The pairs come from the impulse response, or are tried in turn; sign, magnitude, base, factor and offset are read from the
phases; what is read is a hypothesis like any other and has to fit.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from posref.check import precision, properties, reading
from posref.check.rotation import Asked, Pairs, Rotation, moving, powers, ratios, turn
from posref.check.run import Hypothesis, Outcome, Run, fitness, joined
from posref.check.wrong_numbers import based, magnified
from posref.check.wrong_pairs import members, wrong_signs
from posref.check.wrong_positions import clamped, modulo, offset, positions_change, scaled


def combinations(run: Run, found: Pairs | None) -> Iterator[Outcome]:
    """Several mistakes at once: parameters read from the phases, or one named mistake more. `found` pairs, if known."""
    seen: list[Pairs] = []
    for base in _pairings(run, found):
        fresh = not any(reading.same_pairs(base.rotation.pairs, pairs) for pairs in seen)
        seen.append(base.rotation.pairs)
        read = reading.phases(run.x, run.got, run.positions, moving(base.rotation).pairs)
        if read is None or read.spread > 0.1:
            continue
        yield from _from_phases(run, base, read, fresh)
        yield from _one_more(run, base, read)


class Base(NamedTuple):
    """A rotation with some mistakes already in it, and their names."""

    rotation: Rotation
    parts: tuple[Hypothesis, ...]

    def plus(self, h: Hypothesis, asked: Asked) -> "Base":
        """With one more mistake."""
        return Base(h.change(asked, self.rotation), (*self.parts, h))

    def outcome(self, run: Run) -> Outcome:
        """How well it fits, as one hypothesis."""
        return Outcome(joined(self.parts), fitness(run, self.rotation), frozenset(h.name for h in self.parts))


def _pairings(run: Run, found: Pairs | None) -> Iterator[Base]:
    """The pairs that were found; without an impulse response, all that have a name."""
    none = Base(run.start, ())
    named = [none.plus(h, run.asked) for h in run.mistakes if h.kind == "pairs"]
    matching = [base for base in (none, *named) if found is None or reading.same_pairs(found, moving(base.rotation).pairs)]
    for base in matching:
        if np.array_equal(base.rotation.pairs.column_first, base.rotation.pairs.column_second):
            yield base
    if found is not None and not matching:
        yield _unnamed_pairs(run.asked, run.start, found)


def _unnamed_pairs(asked: Asked, start: Rotation, found: Pairs) -> Base:
    count = len(found.first)
    divisor = asked.divisor if 2 * count == asked.rotary_dim else 2 * count
    rotation = replace(start, pairs=found, frequencies=powers(asked.base, count, divisor), divisor=divisor)
    h = Hypothesis(
        "other pairs",
        "pairs",
        f"of {count} pairs, where {reading.one_pair(found)}",
        f"Rotate {members(asked.layout, asked.rotary_dim)}.",
        lambda asked, r: rotation,
    )
    return Base(rotation, (h,))


def _prepared(run: Run, base: Base, read: reading.Phases, sign: int) -> Base:
    """Sign and magnitude as read."""
    if sign < 0:
        inverse = next(h for h in wrong_signs() if h.name == "sign")
        base = base.plus(inverse, run.asked)
    magnitude = _plain(read.magnitude, precision.MODELS[run.models[0]].c_out)
    return base if magnitude == 1 else base.plus(magnified(magnitude), run.asked)


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


NEAR = 300  # up to here most tables reach, and 16 bits hold most positions


def _from_phases(run: Run, base: Base, read: reading.Phases, fresh: bool) -> Iterator[Outcome]:
    """The parameters fitted to the phases, with as few digits as fit; near positions alone say what far ones may hide.

    A base is fitted to `fresh` pairs only: over another divisor, another base would give the same frequencies.
    """
    for limit in (np.inf, NEAR):
        fit = reading.fit(read, limit)
        if fit is None:
            continue
        prepared = _prepared(run, base, read, fit.sign)
        if prepared.parts:
            yield prepared.outcome(run)
        if abs(fit.offset) > 0.5:
            prepared = prepared.plus(offset(round(fit.offset)), run.asked)
            yield prepared.outcome(run)
        yield from _positions_read(run, prepared, read)
        for candidate in _laws(run, prepared, fit) if fresh else ():
            outcome = candidate.outcome(run)
            yield outcome
            if outcome.residual <= 1:
                return
            if _fits_near(run, candidate.rotation):
                yield from _positions_read(run, candidate, read)


def _fits_near(run: Run, rotation: Rotation) -> bool:
    turned = turn(rotation, run.x, run.positions)
    near = np.broadcast_to(run.positions <= NEAR, run.x.shape[:-1])
    return any(bool((ratios(run.got, turned, model)[near] <= 1).all()) for model in run.models)


def _laws(run: Run, prepared: Base, fit: reading.Fit) -> Iterator[Base]:
    """Geometric frequencies with a plain base, a plain factor, both; then the frequencies as measured."""
    exponent = np.log(fit.base) * prepared.rotation.divisor / (2 * len(fit.frequencies))
    fitted = float(np.exp(min(exponent, 700.0)))
    for digits in (1, 2, 3, 4, 6, 9) if 0 < fitted < np.inf else ():
        base, factor = float(f"{fitted:.{digits}g}"), float(f"{fit.factor:.{digits}g}")
        starts = [prepared]
        if abs(fit.factor - 1) > 1e-3:
            starts.append(prepared.plus(scaled(factor), run.asked))
            yield starts[1]
        if base != run.asked.base or run.asked.given is not None:
            yield from (start.plus(based(base, run.asked), run.asked) for start in starts)
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
    """A limit or a modulus of the positions; else those that were really used, entry by entry.

    With fewer than four pairs nearly any phases belong to some positions, so that these would say nothing.
    """
    turning = moving(prepared.rotation)
    theta = turning.frequencies[turning.pairs.column_first] * (-1 if prepared.rotation.form == "inverse" else 1)
    noise = properties.entry_error(run.models[-1])
    relative = precision.MODELS[run.models[-1]].c_phase * precision.phase_growth(theta)
    limits, moduli = reading.limits(read, theta, noise, relative)
    yield from (prepared.plus(clamped(limit), run.asked).outcome(run) for limit in limits)
    yield from (prepared.plus(modulo(length), run.asked).outcome(run) for length in moduli)
    if read.phases.shape[1] < 4:
        return
    used = np.rint(reading.positions_of(read.phases, theta))
    wrong = np.flatnonzero(used != read.positions)
    if len(wrong) == 0:
        return
    first = wrong[np.argmin(read.positions[wrong])]
    table = used.reshape(run.x.shape[0], 1, run.x.shape[2])
    h = Hypothesis(
        "other positions",
        "positions",
        f"with other positions: {len(wrong)} of {len(used)} differ, "
        f"position {read.positions[first]:g} is turned as {used[first]:g}",
        "Follow the positions from the call to the tables.",
        positions_change(lambda p, shape: table),
    )
    yield prepared.plus(h, run.asked).outcome(run)


def _one_more(run: Run, base: Base, read: reading.Phases) -> Iterator[Outcome]:
    """One named mistake on top of the pairs, both signs, and the magnitude."""
    for sign in (1, -1):
        prepared = _prepared(run, base, read, sign)
        if prepared.parts:
            yield prepared.outcome(run)
            taken = {h.kind for h in prepared.parts}
            for h in run.mistakes:
                if h.kind not in taken:
                    yield prepared.plus(h, run.asked).outcome(run)
