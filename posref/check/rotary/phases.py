r"""Phases: what the phases of an output of RoPE show, if no mistake of the list explains it.

Each pair of the output divided by the same pair of the input is the complex number  magnitude e^{i phi}. Which features form a
pair is taken from a listed mistake, or seen from basis vectors. Over positions 0, 1, 2, 4, .. the phases give the frequencies:
a frequency with error d predicts the phase at position 2p up to 2pd, and unwrapping that phase halves the error. Compared with
the right answer, frequencies give base and factor, phi at position 0 gives the offset of positions, and later phases give the
positions that were used. Such a hypothesis has to fit like any mistake; of those that fit, the fewest digits are taken.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from posref import ops
from posref.check import edits, fitted
from posref.check.call import Caller, Misbehaved
from posref.check.engine import NO_ANSWER, Named, Question, together
from posref.check.ranged import ALL_MODELS, growth
from posref.check.rotary import schedules, sections
from posref.check.tensors import round_to
from posref.ops import Arguments, Mistake, result, using
from posref.ops.common import per_head
from posref.ops.rope import _theta
from posref.rotary.rope import frequencies

NEAR = 300  # up to here most tables reach, and 16 bits hold most positions
DIGITS = (1, 2, 3, 4, 6, 9)
MANY = 6  # frequencies that show a base and a factor: three for each number
FARTHEST = np.log(1e12)  # of bases that somebody chose, and of their inverses
MAGNITUDES = (  # power of the magnitude asked for, name, what cos and sin are, remedy
    (0, "left_out", "are not multiplied", "Multiply cos and sin by it: it sharpens attention beyond the trained length."),
    (2, "twice", "are multiplied twice", "Multiply once: in the tables, or its square in the scale of the scores."),
    (-1, "inverted", "are divided", "Multiply cos and sin by it."),
)
MAGNITUDE = (
    "Read attention_factor or mscale; without these YaRN has 0.1 ln(factor) + 1 and LongRoPE "
    "sqrt(1 + ln(factor) / ln(original_length))."
)
SCALED = "A ratio that rises from 1 to a constant is a scaling for long context (Llama 3, YaRN): ask for it or remove it."
COMPARE = "Compare your frequencies with those asked for: base, rotated width, and the factors and lengths of the schedule."
FAST = "Print your frequencies: they fall from 1 to about 1/base; no list that grows, and no base below 0, does so."
OWN = "Give pair t the frequency t: compare how many pairs one thread or vector holds."
WIDE = "Compute frequencies in float32: base^(-2t/dim) for each pair, then convert."
ONE_BASE = "Make all frequencies of the schedule from one base."
GROUPS = (2, 4, 8, 16)  # of pairs, as one thread or vector may hold
NARROW = "bfloat16", "float16"
NTK = "Remove the scaling of the base, or make it as configured: base * factor^(dim/(dim-2)), dim the width that turns."
NO_SUCH_BASE = "No configuration known here has such a base: look for a scaling of the base, or for a ratio that is rounded."
FACTORS = (2, 4, 8, 16, 32, 40, 64, 128)  # of scalings of released models
TURNS, FAR = 32, 2**20  # of the slowest pair, and positions, among which a position is looked for
SURE, ANGLE = 4, 1e-4  # times the least distance, and radians: turns this near are the same to all pairs
ZERO = 2.0**-26  # below the smallest number of float16

Stage = list[Named]


class Pairs(NamedTuple):
    """Pair t reads features first[t], second[t] and writes to_first[t], to_second[t]."""

    first: np.ndarray
    second: np.ndarray
    to_first: np.ndarray
    to_second: np.ndarray


class Phases(NamedTuple):
    """For every pair: `phases` `(m, pairs)` in radians at `positions` `(m,)`; and one magnitude for all pairs."""

    positions: np.ndarray
    phases: np.ndarray
    magnitude: float


class Fit(NamedTuple):
    """Positive frequencies, their sign +1 or -1, and the offset of the positions."""

    frequencies: np.ndarray
    sign: int
    offset: float


class Base(NamedTuple):
    """Mistakes that are already known, by name."""

    parts: tuple[Named, ...] = ()

    def plus(self, name: str, mistake: Mistake) -> "Base":
        return Base((*self.parts, (name, mistake)))

    def named(self) -> Stage:
        """These mistakes as one candidate; empty if there are none."""
        if not self.parts:
            return []
        return [(" and ".join(name for name, _ in self.parts), together(*(m for _, m in self.parts)))]

    def answer(self, question: Question) -> np.ndarray | None:
        return question.answer(self.named()[0][0], self.named()[0][1].wrong) if self.parts else question.right


def stages(question: Question, got: np.ndarray, call: Caller | None = None) -> Iterator[Stage]:
    """What may explain the output, the most informative first; with `call`, basis vectors show the pairs."""
    if "frequencies" in question.op.tags:
        yield from (
            _laws(question, Base(), Fit(got, 1, 0.0), Fit(question.right, 1, 0.0)) if len(got) > 2 and (got > 0).all() else ()
        )
    if {"coordinates", "axis"} <= question.a.keys():
        yield sections.stage(question, got)
    if "parts" in question.a:
        yield sections.time(question, got)
    if question.op.turned is None:
        return
    seen: list[Pairs | None] = []
    for base, pairs in _bases(question, got, call):
        answer = base.answer(question)
        read = None if answer is None or answer.shape != got.shape else _read(question, got, pairs)
        if answer is None or read is None:
            if answer is not None and pairs is not None:
                yield _of_vectors(question, got, base, pairs)
            continue
        fresh = not any(_same(pairs, other) for other in seen)
        seen.append(pairs)
        yield from _from_phases(question, got, base, pairs, fresh)


def _bases(question: Question, got: np.ndarray, call: Caller | None) -> Iterator[tuple[Base, Pairs | None]]:
    """The pairs that the output may have rotated: as asked, of a listed layout, of another width, or as basis vectors show."""
    turned = question.op.turned
    if not turned:
        yield Base(), None
        return
    bases = [Base()]
    changed = np.flatnonzero((got != question.a[turned]).any(axis=tuple(range(got.ndim - 1))))
    width = 2 * (int(changed.max(initial=0)) // 2 + 1)
    if width < question.a.dim or question.a.dim < width < got.shape[-1]:
        bases.append(Base((_width(width),)))
    bases += [base.plus(name, m) for base in bases for name, m in question.op.mistakes.items() if m.kind == "layout"]
    found = _impulse(question, call) if call else None
    known = [(base, _pairs(question, _spec(question, base))) for base in bases]
    yield from ((base, pairs) for base, pairs in known if pairs and (found is None or _same(found, pairs)))
    asked = known[0][1]
    if found and asked and len(found.first) < len(asked.first):
        turns = np.isin(asked.first, found.first)
        if _same(found, Pairs(*(side[turns] for side in asked))):
            yield Base((_still(question.a, turns),)), asked
    if found and asked and len(found.first) == len(asked.first) and not any(_same(found, pairs) for _, pairs in known):
        yield Base((_other_pairs(found, asked),)), found


def _spec(question: Question, base: Base) -> Callable[[Arguments], Any]:
    f = question.op.spec
    return (lambda a: base.named()[0][1].wrong(f, a)) if base.parts else lambda a: f(**a)


def _impulse(question: Question, call: Caller) -> Pairs | None:
    try:
        return _pairs(question, call)
    except Misbehaved:
        return None


def _pairs(question: Question, f: Callable[[Arguments], Any]) -> Pairs | None:
    """Which features reach which, seen from basis vectors at a few positions; None if they do not form pairs."""
    a, turned = question.a, question.op.turned
    dim, at = a[turned].shape[-1], np.unique(np.minimum([0, 1, 2, 3, 19, 100], np.max(a.positions)))
    basis = np.broadcast_to(np.eye(dim)[:, None, None, :], (dim, 1, len(at), dim)).copy()
    rows = np.broadcast_to(at, (dim, len(at))) if a.positions.ndim > 1 else at
    try:
        with np.errstate(all="ignore"):
            response = np.abs(np.asarray(f(Arguments(a | {turned: basis, "positions": rows})), dtype=float))
    except NO_ANSWER:
        return None
    if response.shape != basis.shape or not np.isfinite(response).all():
        return None
    reached = [tuple(np.flatnonzero(row).tolist()) for row in response[:, 0].max(axis=1) > ZERO]
    groups: dict[tuple[int, ...], list[int]] = {}
    for feature, support in enumerate(reached):
        if support != (feature,):
            groups.setdefault(support, []).append(feature)
    if not groups or any(len(support) != 2 or len(inputs) != 2 for support, inputs in groups.items()):
        return None
    ordered = sorted((inputs, support) for support, inputs in groups.items())
    (first, second), (to_first, to_second) = (np.array(side).T for side in zip(*ordered, strict=True))
    if (response[first, 0, 0, to_second] > response[first, 0, 0, to_first]).mean() > 0.5:
        to_first, to_second = to_second, to_first  # the output is permuted, and at the first position it says how
    return Pairs(first, second, to_first, to_second)


def _same(one: Pairs | None, other: Pairs | None) -> bool:
    return one is other or (one is not None and other is not None and all(map(np.array_equal, one, other)))


def _read(question: Question, y: np.ndarray, pairs: Pairs | None) -> Phases | None:
    """The phases of an output, averaged over heads; None if its pairs do not rotate rigidly."""
    at = question.a.positions
    if pairs is None:  # cosines, then sines
        half = y.shape[-1] // 2
        ratio = y[..., :half] + 1j * y[..., half:]
    else:
        x = question.a[question.op.turned]
        at = per_head(at, x)
        at = at.reshape((1,) * (x.ndim - 1 - at.ndim) + at.shape)
        before = x[..., pairs.first] + 1j * x[..., pairs.second]
        after = y[..., pairs.to_first] + 1j * y[..., pairs.to_second]
        shared = tuple(axis for axis, size in enumerate(at.shape) if size == 1)
        with np.errstate(all="ignore"):
            ratio = (after * before.conj()).sum(shared, keepdims=True) / (np.abs(before) ** 2).sum(shared, keepdims=True)
    sizes = np.abs(ratio)
    magnitude = float(np.median(sizes))
    if not np.isfinite(ratio).all() or magnitude == 0 or np.abs(sizes / magnitude - 1).max() > 0.1:
        return None
    return Phases(at.reshape(-1), np.angle(ratio).reshape(at.size, -1), magnitude)


def _from_phases(question: Question, got: np.ndarray, base: Base, pairs: Pairs | None, fresh: bool) -> Iterator[Stage]:
    """Hypotheses from the phases at all positions, then at near positions only, since far ones may be wrong for another reason.

    A base is fitted to `fresh` pairs only: over another width of the exponent, another base would give the same frequencies.
    """
    answer = base.answer(question)
    theirs, ours = _read(question, got, pairs), None if answer is None else _read(question, answer, pairs)
    if theirs is None or ours is None:
        return
    turning = np.abs(ours.phases).max(axis=0) > 0
    theirs, ours = (each._replace(phases=each.phases[:, turning]) for each in (theirs, ours))
    exact, prepared = _fit(ours), base
    magnitude = _plain(
        theirs.magnitude / ours.magnitude,
        ALL_MODELS[question.models[0].removesuffix("-iterative").removesuffix("-given")].c_out,
        theirs.phases.size,
    )
    if magnitude != 1:
        prepared = base.plus(*_magnitude(magnitude, question.a.magnitude))
    for limit in (np.inf, NEAR):
        fit = _fit(theirs, limit)
        if fit is None or exact is None:
            continue
        start = prepared
        if fit.sign != exact.sign and "sign" in question.op.mistakes:
            start = start.plus("sign", question.op.mistakes["sign"])
        yield start.named()
        offset = round(fit.offset - exact.offset)
        if offset:
            start = start.plus(*_offset(offset))
            yield start.named()
        yield from _positions(question, start, theirs, exact.sign * exact.frequencies * (fit.sign * exact.sign))
        for stage in _laws(question, start, fit, exact, turning) if fresh else ():
            yield stage
            for name, mistake in stage:
                if question.fits(got, name, mistake.wrong, _near(question, got)):
                    law = _known(question, name, mistake, pairs)
                    if law is not None:
                        yield from _positions(question, Base(((name, mistake),)), theirs, law.sign * law.frequencies)
        yield from _one_more(question, start)
    yield prepared.named()
    yield from _one_more(question, prepared)
    if exact is not None and theirs.phases.shape[1] >= 4:
        yield _used(question, prepared, theirs, exact)
    signed = _estimated(theirs)
    if exact is not None and signed is not None and _fit(theirs) is None and "other_pairs" not in dict(base.parts):
        yield [
            each
            for times in (2 * np.pi, np.pi, 180 / np.pi)
            if np.abs(_wrap(signed[1] - times * exact.sign * exact.frequencies)).max() <= ANGLE
            for each in prepared.plus(*_scaled(1 / times, question)).named()
        ]
        near = _edited(question.a, lambda made: np.abs(_wrap(made - _whole(signed[1], turning))).max() <= 1e-3)
        yield [named for each in near for named in (prepared.plus(*each).named() if prepared.parts else [each])]
        yield prepared.plus(*_in_both_directions(signed[1], exact.sign * exact.frequencies, turning)).named()
    if pairs is not None:
        yield _of_vectors(question, got, prepared, pairs)


def _known(question: Question, name: str, mistake: Mistake, pairs: Pairs | None) -> Fit | None:
    """The fit to the phases of a mistake's own answer; None if it has none."""
    answer = question.answer(name, mistake.wrong)
    read = None if answer is None else _read(question, answer, pairs)
    return None if read is None else _fit(read)


def _one_more(question: Question, base: Base) -> Iterator[Stage]:
    """Each listed mistake on top of the mistakes in `base`."""
    taken = {m.kind for _, m in base.parts}
    if base.parts:
        yield [each for name, m in question.op.mistakes.items() if m.kind not in taken for each in base.plus(name, m).named()]


def _near(question: Question, got: np.ndarray) -> np.ndarray:
    rows = per_head(question.a.positions, got) if question.op.turned else question.a.positions
    return np.broadcast_to(rows <= NEAR, got.shape[:-1])


def _estimated(read: Phases, limit: float = np.inf) -> tuple[np.ndarray, np.ndarray] | None:
    """Phases at 0, and frequencies by doubling along the positions up to `limit`; None without positions 0 and 1.

    Frequencies are from -pi to pi: at whole positions, whole turns cannot be seen.
    """
    order = [int(np.flatnonzero(read.positions == p)[0]) for p in np.unique(read.positions) if p <= limit]
    at, phase = read.positions[order], read.phases[order]
    if len(at) < 3 or at[0] != 0 or at[1] != 1 or not phase.size:
        return None
    start, estimate = phase[0], _wrap(phase[1] - phase[0])
    for p, row in zip(at[2:], phase[2:], strict=True):
        estimate = estimate + _wrap(row - start - p * estimate) / p
    return start, estimate


def _fit(read: Phases, limit: float = np.inf) -> Fit | None:
    """Frequencies of one sign, and the offset of the positions; None if pairs turn in both directions, or not at all."""
    estimated = _estimated(read, limit)
    if estimated is None:
        return None
    start, estimate = estimated
    sign = 1 if np.median(estimate[: max(1, len(estimate) // 2)]) >= 0 else -1
    if (sign * estimate <= 0).any():
        return None
    return Fit(sign * estimate, sign, sign * float(_positions_of(start[None], estimate)[0]))


def _wrap(angle: np.ndarray) -> np.ndarray:
    """The same angle in [-pi, pi)."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def _positions_of(phase: np.ndarray, frequencies: np.ndarray, far: int = 0) -> np.ndarray:
    """The positions, nearest to 0, that phases `(m, pairs)` belong to, found from the slowest pair to the fastest.

    A slow pair gives the position roughly, and each faster pair refines it within its own turn, like the hands of a clock. The
    slowest pair may make several turns, up to `far` positions away: the nearest turn that all other pairs confirm is taken.
    """
    order = np.argsort(np.abs(frequencies))
    slowest = frequencies[order[0]]
    last = min(TURNS, int(np.ceil(far * np.abs(slowest) / (2 * np.pi))))
    turns = np.array(sorted(range(-last, last + 1), key=abs))[:, None]
    found = (_wrap(phase[:, order[0]]) + 2 * np.pi * turns) / slowest
    for t in order[1:]:
        found = found + _wrap(phase[:, t] - frequencies[t] * found) / frequencies[t]
    off = np.abs(_wrap(phase - found[..., None] * frequencies)).max(axis=-1)
    nearest = (off <= SURE * off.min(axis=0) + ANGLE).argmax(axis=0)
    return found[nearest, np.arange(len(phase))]


def _positions(question: Question, base: Base, read: Phases, theta: np.ndarray) -> Iterator[Stage]:
    """Positions may be clamped or may wrap: up to four limits and four lengths that agree with all phases.

    Both lie between the first wrong position and the position before it. A phase may be off by the error of an entry, and by a
    fraction of its angle.
    """
    model = ALL_MODELS[question.models[-1].removesuffix("-iterative").removesuffix("-given")]
    noise, relative = 1.04 * (np.sqrt(2) * model.c_amp + model.c_out), model.c_phase * growth(theta)

    def agree(phase: np.ndarray, used: np.ndarray, t: int) -> np.ndarray:
        angle = used * theta[t]
        return np.abs(_wrap(phase - angle)) <= noise + relative[t] * np.abs(angle)

    right = np.all([agree(read.phases[:, t], read.positions, t) for t in range(len(theta))], axis=0)
    if right.all() or (read.positions != np.rint(read.positions)).any():
        return
    first = int(read.positions[~right].min())
    low = int(read.positions[read.positions < first].max(initial=0))
    wrong_first = np.argsort(right, kind="stable")
    stage: Stage = []
    for used_of, mistake in ((np.minimum, _clamped), (np.mod, _modulo)):
        candidates = np.arange(max(low, 1), first + 1)
        for position, phase in zip(read.positions[wrong_first], read.phases[wrong_first], strict=True):
            for t in range(len(theta)) if len(candidates) else ():
                candidates = candidates[agree(phase[t], used_of(int(position), candidates), t)]
        stage += [each for number in candidates[:4].tolist() for each in base.plus(*mistake(number)).named()]
    yield stage


def _laws(question: Question, base: Base, fit: Fit, exact: Fit, turning: Any = None) -> Iterator[Stage]:
    """Geometric frequencies with a plain base, a plain factor or both, in more and more digits; then the measured
    frequencies."""
    a, theirs = question.a, fit.frequencies
    given = a.get("frequencies") is not None
    slope, factor = 1.0, float(theirs[0] / exact.frequencies[0])
    if len(theirs) > 1:
        exponent = np.log(exact.frequencies) if not given else -2 * np.flatnonzero(turning) / a.dim
        line = np.polyfit(exponent, np.log(theirs), 1, w=np.sqrt(theirs))
        slope, factor = float(line[0]), float(np.exp(line[1]))
    yield [named for each in _derived(exact.frequencies, theirs, turning) for named in base.plus(*each).named()]
    for digits in DIGITS:
        starts = [base]
        if abs(factor - 1) > 1e-4 and slope > 0 and (len(theirs) >= MANY or abs(slope - 1) < 1e-3):
            divisors = [float(f"{1 / factor:.{digits}g}"), *(n for _, n in fitted.ratio(1 / factor) if digits == 4)]
            starts += [base.plus(*_scaled(divisor, question)) for divisor in divisors]
        laws = [_other_law(number, width, a) for number, width in _bases_over(a, slope, turning, digits)]
        others = [[start.plus(*law) for start in starts] for law in laws if law]
        scaled = [base.plus(*_schedule(each)) for each in _known_schedules(a, theirs, turning, digits)]
        first, *others = others or [[]]
        for stage in ([*starts[1:], *first, *scaled], *others):
            yield [each for made in stage for each in made.named()]
    if turning is not None:
        near = _edited(a, lambda made: np.allclose(made, _whole(theirs, turning), rtol=1e-3, atol=0))
        yield [named for each in near for named in (base.plus(*each).named() if base.parts else [each])]
        yield base.plus(*_measured(theirs, exact.frequencies, turning)).named()


def _derived(asked: np.ndarray, used: np.ndarray, turning: Any) -> Iterator[Named]:
    """Laws that take another frequency of those asked for, a rounded ratio, or another base for one part of a schedule."""
    for name, made, bug, remedy in _laws_of(asked, used) if len(asked) >= 8 and (turning is None or turning.all()) else ():
        if np.allclose(made, used, rtol=1e-3, atol=0) and not np.array_equal(made, asked):
            times = partial(np.multiply, made / asked)
            wrong = result(times) if turning is None else using(frequencies=made)
            yield name, _mistake(wrong, bug, remedy, "base")


def _laws_of(asked: np.ndarray, used: np.ndarray) -> Iterator[tuple[str, np.ndarray, str, str]]:
    n, t, ratio = len(asked), np.arange(len(asked)), asked[1] / asked[0]
    for g in (each for each in GROUPS if 2 * each <= n):
        bug = f"each group of {g} pairs has the frequency of its first"
        yield f"frequencies_in_groups_of_{g}", asked[t // g * g], bug, OWN
        if n % g == 0:
            yield (
                f"first_{n // g}_frequencies_again",
                asked[t % (n // g)],
                f"pair t has the frequency of pair t % {n // g}",
                OWN,
            )
    for dtype in NARROW if np.allclose(asked[1:] / asked[:-1], ratio, rtol=1e-6) else ():
        held = round_to(np.full(n, ratio), dtype)
        bug = f"frequencies are powers of their ratio {ratio:.6g}, held in {dtype} as {held[0]:.10g}"
        yield f"ratio_in_{dtype}", asked[0] * held**t, bug, WIDE
        products = np.append(asked[0], held[1:])
        for i in range(1, n):
            products[i] = round_to(products[i - 1 : i] * held[i], dtype)[0]
        yield f"products_in_{dtype}", products, f"{bug}; each product is held in {dtype} too", WIDE
    for part, own, rest, factor in schedules.parts(asked):
        some = own > 0.1 * own.max()
        some[0] = False  # the same for any base
        with np.errstate(all="ignore"):
            slope = np.median(np.log((used - rest)[some] / own[some]) / t[some])
        measured, plain = np.exp(-slope * n), ratio**-n
        numbers = {plain * factor ** (n / (n - 1)): f", {plain:.6g} times {factor:.6g}^(dim/(dim-2)), as NTK has"}
        numbers |= {float(f"{measured:.{digits}g}"): "" for digits in DIGITS[:3] if np.isfinite(measured)}
        for base, words in numbers.items() if some.sum() >= MANY else ():
            bug = f"the frequencies that the schedule {part} have base {base:.6g}{words}; the others have base {plain:.6g}"
            yield f"base_{base:.6g}_where_the_schedule_{part}", own * base ** (-t / n) + rest, bug, ONE_BASE


def _bases_over(a: Arguments, slope: float, turning: Any, digits: int) -> Iterator[tuple[float, int]]:
    """Bases, each with the width of its exponent (0: the width asked for); the base asked for comes first."""
    given, asked = a.get("frequencies") is not None, a.get("exponent_dim") or (a.dim if turning is None else 2 * len(turning))
    slope = slope / a.dim if given else slope * np.log(a.base) / asked
    near = [width for width in dict.fromkeys((asked, a.dim)) if abs(slope * width) <= FARTHEST]
    found = [(float(f"{np.exp(slope * width):.{digits}g}"), width if given or width != asked else 0) for width in near]
    yield from sorted(found, key=lambda each: each[0] != a.base)


def _known_schedules(a: Arguments, theirs: np.ndarray, turning: Any, digits: int) -> Iterator[schedules.Known]:
    """Known schedules that the frequencies may be. Linear ones are named elsewhere; fewer than four pairs would fit many."""
    if turning is None or len(theirs) < 4 or digits > max(schedules.DIGITS):
        return
    whole = _whole(theirs, turning)
    bases = [each for each in (a.base, schedules.first_base(whole, digits)) if each > 1]
    yield from (each for each in schedules.known(whole, bases, digits) if each.name != "linear")


def _edited(a: Arguments, near: Callable[[np.ndarray], bool]) -> Stage:
    """The first edit of the frequency formula, or of the schedule asked for, whose frequencies are near enough."""
    known = None if a.frequencies is None else schedules.named(a.frequencies)
    if a.get("exponent_dim") or (known is None and a.frequencies is not None):
        return []
    spec = frequencies if known is None else ops.op(f"scaling.{known.name}").spec
    settings = Arguments({"base": a.base} if known is None else known.settings, dim=a.dim)

    def fitting() -> Iterator[Named]:
        for name, mistake in chain(edits.every(spec, settings), edits.in_few_bits(spec, settings)):
            with suppress(*NO_ANSWER), np.errstate(all="ignore"):
                made = np.asarray(mistake.wrong(spec, settings), dtype=float)
                if made.shape == (a.dim // 2,) and near(made):
                    yield name, mistake._replace(wrong=using(frequencies=made))

    return edits.settled(settings, fitting())


def _whole(estimate: np.ndarray, turning: np.ndarray) -> np.ndarray:
    """The frequencies of all pairs, with 0 for pairs that do not turn."""
    whole = np.zeros(len(turning))
    whole[turning] = estimate
    return whole


def far_positions(question: Question, got: np.ndarray) -> Iterator[Stage]:
    """The positions that were really used, if they are more than half a turn of the slowest pair from 0."""
    for base, pairs in _bases(question, got, None) if question.op.turned is not None else ():
        answer = base.answer(question)
        if answer is not None and answer.shape == got.shape:
            theirs, ours = _read(question, got, pairs), _read(question, answer, pairs)
            exact = None if ours is None else _fit(ours)
            if theirs is not None and exact is not None and len(exact.frequencies) >= 4:
                yield _used(question, base, theirs, exact, FAR)


def _used(question: Question, base: Base, read: Phases, exact: Fit, far: int = 0) -> Stage:
    """The positions that were really used, entry by entry. With few pairs nearly any phases match some positions."""
    used = np.rint(_positions_of(read.phases, exact.sign * exact.frequencies, far))
    wrong = np.flatnonzero(used != read.positions)
    if not len(wrong):
        return []
    first = wrong[np.argmin(read.positions[wrong])]
    words = f"{len(wrong)} of {len(used)} differ, position {read.positions[first]:g} is turned as {used[first]:g}"
    words += ", and so are all others" if len(used) > 2 and (used == used[first]).all() else ""
    table = used.reshape(np.shape(question.a.positions))
    return base.plus(
        "other_far_positions" if far else "other_positions",
        _mistake(using(positions=table), f"other positions: {words}", "Follow the positions from the call to the tables."),
    ).named()


def _of_vectors(question: Question, got: np.ndarray, base: Base, pairs: Pairs) -> Stage:
    """The position by which each vector was rotated, if heads or texts at one position are rotated differently.

    It is the position asked for plus a difference that the phases show, or the position of some token.
    """
    answer, x = base.answer(question), question.a[question.op.turned]
    if answer is None or x.ndim != 4 or answer.shape != got.shape or "positions" not in question.a:
        return []
    a = question.a
    theta = a.get("sign", 1) * _theta(a.dim, a.base, a.exponent_dim, a.frequencies)
    if len(theta) < 4 or len(theta) != len(pairs.first) or (theta == 0).any():
        return []
    asked = np.broadcast_to(per_head(a.positions, x), x.shape[:-1])
    with np.errstate(all="ignore"):
        theirs, right = (y[..., pairs.to_first] + 1j * y[..., pairs.to_second] for y in (got, answer))
        turned = np.angle(theirs * right.conj())
    moved = np.rint(_positions_of(turned.reshape(-1, len(theta)), theta)).reshape(asked.shape)
    known = np.unique(np.append(asked, 0))
    off = [np.abs(_wrap(turned - (each - asked)[..., None] * theta)).max(axis=-1) for each in known]
    tables = {"positions_of_vectors": asked + moved, "positions_of_other_rows": known[np.argmin(off, axis=0)]}
    if np.array_equal(*tables.values()):
        del tables["positions_of_other_rows"]
    found = [_by_vector(name, used, asked) for name, used in tables.items() if _several(used, asked)]
    return [each for one in found for each in base.plus(*one).named()]


def _several(used: np.ndarray, asked: np.ndarray) -> bool:
    """Whether vectors at one position use several, or use each other's positions: no function of the position explains that."""
    function = [np.ptp(used[asked == each]) == 0 for each in np.unique(asked)]
    return not all(function) or (len({*used.ravel()} - {*asked.ravel(), 0}) == 0 and (used != asked).mean() > 0.5)


def _by_vector(name: str, used: np.ndarray, asked: np.ndarray) -> Named:
    difference, (text, head, _) = used - asked, np.indices(asked.shape)
    place = tuple(int(i) for i in np.unravel_index(int((difference != 0).argmax()), asked.shape))
    words = (
        f"{np.count_nonzero(difference)} of {asked.size} vectors turn by another position: that of text {place[0]}, head "
        f"{place[1]}, row {place[2]} by {used[place]:g} instead of {asked[place]:g}"
    )
    rows = asked[:, 0].ravel()
    strided = np.append(rows, np.zeros(rows.size))[2 * np.arange(rows.size)].reshape(asked[:, 0].shape)
    if (difference == difference[0, -1, 0] / max(1, asked.shape[1] - 1) * head).all():
        words += f"; it is the position plus {difference[0, 1, 0]:g} for each head"
    elif (difference == asked.shape[2] * text).all():
        words += f"; the {asked.shape[2]} rows of each text are counted on from those of the text before"
    elif (used == strided[:, None]).all():
        words += "; row i turns as row 2 i: the table is read with twice its stride"
    elif (used == used[:1, :1]).all():
        words += "; all texts and heads turn alike"
    elif np.array_equal(used - used.min(), (np.arange(asked.size) // asked.shape[1] % asked.shape[2]).reshape(asked.shape)):
        words += "; rows are counted as in (batch, n, heads, d)"
    elif law := _row_for_row(used, asked):
        words += f"; row i turns as row {law}"
    elif law := _counted(used):
        words += f"; text b, head h, row i turns as position {law}"
    remedy = "Compare the strides of x and of the tables: which text, head and token each row in memory is."
    return name, _mistake(using(positions=used), words, remedy)


def _row_for_row(used: np.ndarray, asked: np.ndarray) -> str:
    """Which row's position row i uses, if that row is a multiple of i; else "".

    >>> _row_for_row(np.array([[[0, 7, 7]]]), np.array([[[0, 5, 7]]]))
    '2 i, the last where there is none'
    """
    rows, i = asked[:, 0], np.arange(asked.shape[2])
    for n in (2, 3, 4):
        for words, row in {"the last where there is none": np.minimum(n * i, i[-1]), "counted round": n * i % len(i)}.items():
            if (used == rows[:, None, row]).all():
                return f"{n} i, {words}"
    return ""


def _counted(used: np.ndarray) -> str:
    """Words for positions that are a number plus multiples of text b, head h and row i; "" if they are not.

    >>> _counted(np.arange(6.0).reshape(1, 3, 2))
    '2 h + i'
    """
    start, steps = used[0, 0, 0], [np.diff(used, axis=axis).ravel()[:1].sum() for axis in range(3)]
    if (used != start + sum(step * index for step, index in zip(steps, np.indices(used.shape), strict=True))).any():
        return ""
    terms = [f"{start:g}" * bool(start)]
    terms += [f"{step:g} {name}".removeprefix("1 ") * bool(step) for step, name in zip(steps, "bhi", strict=True)]
    return " + ".join(filter(None, terms)) or "0"


# mistakes made from what the phases show


def _mistake(wrong: Any, bug: str, remedy: str, kind: str = "positions") -> Mistake:
    return Mistake(wrong, bug, remedy=remedy, kind=kind)


def _width(width: int) -> Named:
    def wrong(f: Any, a: Arguments) -> Any:
        given = a.get("frequencies")
        return f(**a | {"dim": width, "frequencies": None if given is None else given[: width // 2]})

    remedy = "Rotate as many features as asked."
    return f"rotary_dim {width}", _mistake(wrong, f"the first {width} features turn", remedy, "layout")


def _other_pairs(found: Pairs, asked: Pairs) -> Named:
    """The pairs that basis vectors show, in place of those asked for."""

    def wrong(f: Any, a: Arguments) -> Any:
        x, y = a.x.copy(), a.x.copy()
        x[..., asked.first], x[..., asked.second] = a.x[..., found.first], a.x[..., found.second]
        turned = f(**a | {"x": x})
        y[..., found.to_first], y[..., found.to_second] = turned[..., asked.to_first], turned[..., asked.to_second]
        return y

    t = min(1, len(found.first) - 1)
    read, written = (int(found.first[t]), int(found.second[t])), (int(found.to_first[t]), int(found.to_second[t]))
    bug = f"other pairs: pair {t} reads features {read} and writes {written}"
    return "other_pairs", _mistake(wrong, bug, "Rotate the pairs of the layout that was asked for.", "layout")


def _magnitude(number: float, asked: float = 1.0) -> Named:
    """Tables times a number. If a magnitude was asked for, it may be left out, applied twice, inverted, or another number."""
    said, words = number * asked, f"{asked:.6g}, the magnitude that you asked for"
    bug, name = f"cos and sin times {said:.6g}{_yarn(said)}", f"magnitude {said:.6g}"
    remedy = "The rotation asked for keeps norms. Remove the factor; where the model has one (YaRN, LongRoPE), pass magnitude=."
    if bug.endswith("twice"):
        remedy = "Take it once: attention_factor is the final factor, mscale is multiplied by the logarithm."
    for power, called, what, advice in MAGNITUDES if asked != 1 else ():
        if abs(said - asked**power) < 1e-5:
            said, name, bug, remedy = asked**power, f"magnitude_{called}", f"cos and sin {what} by {words}", advice
    if asked != 1 and name.startswith("magnitude "):
        bug, remedy = f"{bug}, instead of {words}", MAGNITUDE
    return name, _mistake(using(magnitude=said), bug, remedy, "magnitude")


def _yarn(number: float) -> str:
    for power, word in ((1, ""), (2, ", squared")):
        factor = np.exp((abs(number) ** (1 / power) - 1) / 0.1)
        if 1 < factor < 1000 and abs(factor - round(factor)) < 1e-2 and round(factor) > 1:
            return f", the YaRN attention factor 0.1 ln(s) + 1 of s = {round(factor)}{word}"
    for factor in FACTORS:
        if abs(0.1 * (0.1 * np.log(factor) + 1) * np.log(factor) + 1 - number) < 1e-5:
            return f", 0.1 m ln(s) + 1 with s = {factor} and the attention factor itself for m: the logarithm is taken twice"
    return ""


def _plain(number: float, roundoff: float, count: int) -> float:
    """The factor in one digit, if that is within one rounding; else a YaRN factor 0.1 ln(s) + 1, its square, or the fewest
    digits.

    The median of `count` magnitudes is up to sqrt(count) times as exact as one of them, but the factor itself may be float32.
    """
    noise = max(roundoff / min(32, count**0.5), 2.0**-23)
    digit = float(f"{number:.1g}")
    if abs(number - digit) <= max((2 if digit == 1 else 1 / 4) * roundoff, noise) * digit:
        return digit
    steps = 0.1 * np.log(np.arange(2, 129)) + 1
    short = (float(f"{number:.{digits}g}") for digits in (1, 2, 3, 4))
    fitting = (float(each) for each in (*steps, *steps**2, *short) if abs(each / number - 1) <= noise)
    return next(fitting, float(f"{number:.9g}"))


def _offset(number: int) -> Named:
    name = {1: "position_plus_one", -1: "position_minus_one"}.get(number, f"positions shifted {number:+d}")
    wrong, remedy = using(positions=lambda a: a.positions + number), "Use the positions as they are given."
    return name, _mistake(wrong, f"positions too {'large' if number > 0 else 'small'} by {abs(number)}", remedy)


def _clamped(limit: int) -> Named:
    wrong, remedy = using(positions=lambda a: np.minimum(a.positions, limit)), f"Make the table longer than {limit + 1} rows."
    return f"positions_clamped {limit}", _mistake(wrong, f"positions beyond {limit} become {limit}", remedy)


def _modulo(length: int) -> Named:
    wrong, remedy = using(positions=lambda a: a.positions % length), f"Make the table longer than {length} rows."
    return f"positions_modulo {length}", _mistake(wrong, f"positions modulo {length}", remedy)


def _scaled(factor: float, question: Question) -> Named:
    argument = "positions" if "positions" in question.a else "result"
    twice = " (or the rotation applied twice)" if factor == 0.5 else ""
    wrong: Any = using(positions=lambda a: a.positions / factor) if argument == "positions" else lambda f, a: f(**a) / factor
    said = "".join(f" = {words}" for words, number in fitted.ratio(factor) if number == factor)
    changed = f"divided by {factor:.9g}" if factor > 0.4 else f"multiplied by {1 / factor:g}"
    bug = f"frequencies or positions {changed}{said}{twice}"
    return f"linear_scaling {factor:.9g}", _mistake(wrong, bug, "Remove the linear scaling, or ask for it.")


def _other_law(number: float, width: int, a: Arguments) -> Named | None:
    """Another base, with this width of the exponent, or with the width asked for if `width` is 0; None if nothing differs."""
    name, law = f"wrong_base {number:g}", f"frequencies {number:.10g}^(-2t/{'dim' if width == a.dim else width})"
    if number == 1:
        bug = "each pair turns by 1 radian per position, as with base 1, or where 2t / dim is divided in integers"
        wrong = lambda f, a: f(**a | {"base": 1.0, "frequencies": None})  # noqa: E731
        return "exponent_in_integers", _mistake(wrong, bug, "Divide the exponent in floating point.", "base")
    if a.get("frequencies") is not None:
        unscaled = (a.frequencies != 0) * number ** (-2 * np.arange(a.dim // 2) / width)
        remedy = "Use the frequencies that you asked for; check that the scaling of the configuration is read."
        scaled = ", not scaled" if number == float(f"{number:.3g}") else _origin(number, a)[0]
        bug = f"{law}{scaled}; you asked for other frequencies"
        steps = np.arange(len(a.frequencies)) / len(a.frequencies)
        name = f"exponent_dim {width}" if np.allclose(a.frequencies, number**-steps, rtol=2.0**-20, atol=0) else name
        return name, _mistake(using(frequencies=unscaled), bug, remedy, "base")
    if width:
        name = name if number != a.base else f"exponent_dim {width}"
        remedy = "Divide the exponent by the width that turns, or ask for another with exponent_dim=."
        return name, _mistake(using(base=number, exponent_dim=width), law, remedy, "base")
    if number == a.base:
        return None
    words, remedy = _origin(number, a)
    return name, _mistake(using(base=number), f"base {number:.10g}{words}", remedy, "base")


def _origin(number: float, a: Arguments) -> tuple[str, str]:
    """How NTK scaling may have made a base of more than three digits, in words; and the remedy."""
    digits = next(each for each in (*DIGITS, 17) if float(f"{number:.{each}g}") == number)
    if digits < 4:
        return "", "Read rope_theta from the configuration."
    for width in dict.fromkeys((a.get("exponent_dim") or a.dim, *np.shape(a.get("x", 0))[-1:])):
        factor = Fraction((number / a.base) ** (1 - 2 / width)).limit_denominator(4 if digits > 4 else 1)
        plain = width > 2 and factor != 1 and (1 / 8 <= factor <= 8 or factor in FACTORS)
        made = a.base * float(factor) ** (width / (width - 2)) if plain else 0
        if abs(made / number - 1) < 10.0**-digits * 5:
            law = f"{float(factor):g}^({width}/{width - 2})"
            return f" = {a.base:g} * {law}: NTK scaling by {float(factor):g} over a width of {width}", NTK
    return "", NO_SUCH_BASE


def _schedule(known: schedules.Known) -> Named:
    bug = f"frequencies {known}"
    if known.name == "ntk":
        base = schedules.first_base(known.frequencies, 6)
        bug += f", or dynamic_ntk at a length that makes this factor: base {base:g}"
    remedy = "Scale frequencies as configured: compare rope_type, base, factor and lengths with what your code reads."
    return f"schedule {known.name}", _mistake(using(frequencies=known.frequencies), bug, remedy, "base")


def _still(a: Arguments, turns: np.ndarray) -> Named:
    """The frequencies asked for, with 0 for pairs that should turn and do not."""
    law = a.base ** (-2 * np.arange(a.dim // 2) / (a.exponent_dim or a.dim)) if a.frequencies is None else a.frequencies
    used, first = np.copy(law), int(np.argmin(turns))
    used[np.flatnonzero(law)[: len(turns)][~turns]] = 0
    proportional = "" if turns[first:].any() else f"; schedule proportional has such, with fraction {first / len(law):g}"
    bug = f"{int((~turns).sum())} of {len(turns)} pairs do not turn, from pair {first} on{proportional}"
    return "pairs_still", _mistake(using(frequencies=used), bug, "Turn every pair that is to turn.", "base")


def _in_both_directions(estimate: np.ndarray, exact: np.ndarray, turning: np.ndarray) -> Named:
    whole, far = _whole(estimate, turning), np.abs(_wrap(estimate - exact)) > 1e-3 * np.abs(exact) + 1e-9
    off = np.flatnonzero(_whole(far, turning))
    shown = ", ".join(f"{whole[t]:.4g} of pair {t}" for t in dict.fromkeys([*off[:3], *off[-1:]]))
    right = f"; {len(whole) - len(off)} of {len(whole)} are right" if len(off) < len(whole) else ""
    bug = f"other frequencies, as if they were {shown}: up to whole turns a position, some are negative, 0 or far too large"
    return "other_frequencies", _mistake(using(frequencies=whole), f"{bug}{right}", COMPARE if right else FAST, "base")


def _measured(frequencies: np.ndarray, exact: np.ndarray, turning: np.ndarray) -> Named:
    ratio, whole = exact / frequencies, _whole(frequencies, turning)
    shown = ", ".join(f"{ratio[t]:.4g} at pair {t}" for t in sorted({0, len(ratio) // 4, len(ratio) // 2, len(ratio) - 1}))
    bug = f"other frequencies: those asked divided by those used are {shown}{where_scaled(ratio, exact)}"
    plain = len(exact) < 3 or np.allclose(exact[2:] / exact[1:-1], exact[1] / exact[0], rtol=1e-3)  # no schedule was asked
    rises = plain and abs(ratio[0] - 1) < 1e-3 and (np.diff(ratio) > -1e-3 * ratio[1:]).all() and ratio[-1] > 1
    return "other_frequencies", _mistake(using(frequencies=whole), bug, SCALED if rises else COMPARE, "base")


def where_scaled(ratio: np.ndarray, exact: np.ndarray) -> str:
    """Words for the wrong part of a schedule that keeps frequencies, then blends, then divides them: the ramp or what
    follows."""
    t, wrong = np.arange(len(exact)), np.flatnonzero(np.abs(ratio - 1) > 1e-3)
    if len(exact) < 8 or not len(wrong):
        return ""
    divided = (exact[1] / exact[0]) ** t * exact[0] / exact
    kept, last = np.abs(divided - 1) <= 1e-3, np.abs(divided / divided[-1] - 1) <= 1e-3
    if not (kept[:3].all() and last[-3:].all() and divided[-1] > 1.01) or kept[wrong].any():
        return ""
    blended = np.flatnonzero(~kept & ~last)
    if not last[wrong].any():
        part = f"the ramp of the schedule is another one: pairs {blended[0]} to {blended[-1]} are blended"
    else:
        others = f"of those that are blended or divided by {divided[-1]:.4g}"
        part = f"those that are kept are right; {others} {len(wrong)} of {(~kept).sum()} are not"
    return f"; {part}"
