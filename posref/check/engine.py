"""Engine: which formula gave this output? Every wrong answer of an op is compared; no code here is specific to a system.

Precision models are tried from fine to coarse, in each the right answer first, then every mistake. So a mistake that fits
closely is named before a right answer that fits loosely. A mistake is named only if the right answer fails and this data
distinguishes the two. If several fit, all are named, but a loose fit is dropped when a close one exists. If none fits, the
stages of the caller follow: hypotheses read from the output, other values of settings, two mistakes at once, and more.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from posref.check import rounded
from posref.check.ranged import Ranged, Units, allowed, constant, units
from posref.check.ranged import model as model_of
from posref.ops import Arguments, Mistake, NotHere, Op, Wrong, both, worded
from posref.vectors.models import rms

# settings that formulas compute with; the numbers that a mistake puts in their place carry an error too
CONSTANTS = ("base", "max_bias", "alpha", "factor", "magnitude", "frequencies")
ELEMENTS = 2**26  # of hypotheses, and of bounds, that a search computes, at least 2^13 each: so that no processor decides
FEW = 2**12  # elements of an answer up to which those of two mistakes are kept
FIRST = 2  # ways of rounding that are always run
FAR = 8  # times what these allow together: no other way was seen to allow so much
SAMPLE = 512  # elements that tell whether an answer may be near
BITS = 8  # of evidence for a hypothesis: noise is named once in 256 times
MANY = 64  # elements; noise is within the bounds of so many only where they hold nearly everything
# a mistake has no answer: it cannot occur here, is refused, overflows, is too large, or leaves a table
NO_ANSWER = (NotHere, TypeError, ValueError, ArithmeticError, MemoryError, IndexError)

Named = tuple[str, Mistake]
Stages = Callable[["Question", np.ndarray], Iterable[Iterable[Named]]]


class Found(NamedTuple):
    """What an output is: `ok` and the coarsest `model` needed, or the mistakes that fit. Distances are in units of the
    tolerance.

    `nearest` are the closest mistakes that do not fit, with their distances; `tried` is how many do not fit.
    """

    ok: bool
    model: str
    worst: float
    fits: tuple[tuple[str, Mistake, float], ...] = ()
    nearest: tuple[tuple[str, float], ...] = ()
    tried: int = 0
    stopped: bool = False


class Question:
    """An op with its arguments: the right answer, the tolerance of each element, and every wrong answer."""

    def __init__(
        self,
        op: Op,
        arguments: Arguments,
        models: Collection[str],
        *,
        right: np.ndarray | None = None,
        tolerance: Mapping[str, np.ndarray] | None = None,
        gauge: str = "none",
        rms: Mapping[str, float] | None = None,
        meant: Collection[str] = tuple(rounded.BITS),
    ):
        arguments = arguments | {name: _sealed(value) for name, value in arguments.items()}
        self.op, self.a, self.gauge, self.models = worded(op, arguments), arguments, gauge, tuple(models)
        self.ends = tuple(dict.fromkeys((self.models[0], self.models[-1])))
        self.right = np.asarray(op.spec(**arguments) if right is None else right, dtype=float)
        self.tolerance = dict(tolerance or {})
        self.tolerance |= self._allowed([name for name in self.models if name not in self.tolerance])
        self._rms, self.meant = dict(rms or {}), meant
        self._limits: dict[str, Iterator[float]] = {}
        self._left, self.cut = ELEMENTS, False  # cut: whether a stage had more than it tried
        self.before: Question | None = None  # answered rightly: a mistake that it distinguishes is ruled out here
        self.claimed: dict[str, Mistake] = {}  # what was named here
        self._output, self._errors = self.right, dict[str, float]()  # the last output, and the error of the right answer
        self._answers: dict[str, np.ndarray | None] = {}
        self._blind: dict[str, list[str]] = {}
        self._bounds: dict[tuple[str, str], np.ndarray] = {}

    def _allowed(self, models: Collection[str]) -> dict[str, np.ndarray]:
        """The allowed error of every element: the specification runs on numbers that carry their error."""
        if not models:
            return {}
        u = units(*models)
        with np.errstate(all="ignore"):
            bounds = allowed(self.op.spec(**lifted(self.a, u)), u)[1]
        return {name: np.broadcast_to(bound + self._inside(name), self.right.shape) for name, bound in bounds.items()}

    def _inside(self, model: str) -> Any:
        """What the op adds to the allowed error: for numbers that it makes from integers, and for Fourier transforms."""
        return model_of(model).c_amp * self.op.inside(self.a) + model_of(model).c_phase * self.op.spectral(self.a)

    @cached_property
    def kind(self) -> str:
        """The kind of the right answer's dtype: "b" for booleans, "i" or "u" for integers, "f" for floating-point numbers."""
        return np.asarray(self.op.spec(**self.a)).dtype.kind

    @cached_property
    def wrong(self) -> dict[str, np.ndarray]:
        """The answer of every mistake that can occur at these arguments."""
        answers = {name: self.answer(name, mistake.wrong) for name, mistake in self.op.mistakes.items()}
        return {name: answer for name, answer in answers.items() if answer is not None}

    def answer(self, name: str, wrong: Wrong) -> np.ndarray | None:
        """The answer of a mistake, or None if it cannot occur here. Large answers of edits and of two mistakes are not kept."""
        if name in self._answers:
            return self._answers[name]
        answer = self._answer(wrong)
        if answer is None or answer.size <= FEW or not (" and " in name or " with " in name):
            self._answers[name] = answer
        return answer

    def _answer(self, wrong: Wrong) -> np.ndarray | None:
        try:
            with np.errstate(all="ignore"):
                y = np.real(np.asarray(wrong(self.op.spec, self.a)).astype(complex))
        except NO_ANSWER:
            return None
        if y.shape == getattr(wrong, "shape", self.right.shape) != self.right.shape:
            return y
        try:
            return np.where(self.op.meant(self.a), np.broadcast_to(y, self.right.shape), self.right)
        except ValueError:
            return y

    def bound(self, name: str, wrong: Wrong, answer: np.ndarray, model: str) -> np.ndarray:
        """The allowed error of a wrong answer, kept for later; that of the right answer if the mistake does not run on
        `Ranged`."""
        if (name, model) not in self._bounds:
            models = self.ends if model in self.ends else (model,)  # at once: the layers of one run
            self._left -= answer.size * len(models)
            for each, bound in self._bounds_of(wrong, models).items():
                self._bounds[name, each] = np.broadcast_to(bound, answer.shape)
        return self._bounds[name, model]

    def _bounds_of(self, wrong: Wrong, models: Collection[str]) -> dict[str, np.ndarray]:
        """The bounds of a wrong answer in several models, from one run; NaN becomes the largest bound of the right answer."""
        otherwise = {each: np.asarray(self.tolerance.get(each, np.zeros(1)).max(initial=0)) for each in models}
        try:
            u, spec = units(*models), self.op.spec
            with np.errstate(all="ignore"):
                made = allowed(wrong(lambda **a: spec(**lifted(a, u)), lifted(self.a, u)), u)[1]
        except NO_ANSWER:
            made = otherwise
        inside = {each: np.asarray(self._inside(each)) for each in models}
        if any(
            np.shape(made[each]) not in ((), self.right.shape) for each in models
        ):  # of a part, or of more than the right answer
            inside = {each: more.max(initial=0) for each, more in inside.items()}
        return {each: np.where(np.isnan(made[each]), otherwise[each], made[each]) + inside[each] for each in models}

    def ask(self, got: np.ndarray, stages: Stages | None = None) -> Found:
        """Which formula gave this output: the right one, a mistake, or a hypothesis of `stages`."""
        near: dict[str, float] = {}
        self._left, self.cut = ELEMENTS, False
        low = [each for each in self.op.mistakes.items() if each[1].kind == "precision"]  # in 16 bits these are right
        mistakes = [each for each in self.op.mistakes.items() if each[1].kind != "precision"]
        for model in self.models:
            worst = distance(got, self.right, self.tolerance[model], self.gauge)
            if worst <= 1 and self.spread(got, model) <= 1:
                return Found(True, model, worst)
            fits = _better(self._fitting(got, model, mistakes, near), worst)
            if fits:
                return Found(False, model, worst, fits, _least(near), len(near))
        for stage in chain([low], stages(self, got) if stages else ()):
            candidates = [each for each in stage if self._possible(got, each, near)]
            for model in self.ends:
                fits = _better(self._fitting(got, model, candidates, near), worst)
                if fits:
                    return Found(False, model, worst, fits, _least(near), len(near))
            if self._left < 0:
                break
        return Found(False, model, worst, (), _least(near), len(near), self._left < 0 or self.cut)

    def _possible(self, got: np.ndarray, named: Named, near: dict[str, float]) -> bool:
        """Whether a candidate may fit; two mistakes at once are computed for that. False once too many were computed."""
        self._left -= max(got.size, 2**13)
        name, mistake = named
        if self._left < 0 or " and " not in name:
            return self._left >= 0
        answer = self.answer(name, mistake.wrong)
        if answer is None or answer.shape != got.shape:
            return False
        possible = answer.shape != self.right.shape or any(self._near(got, answer, model) for model in self.ends)
        near |= {} if possible else {name: np.inf}
        return possible

    def spread(self, got: np.ndarray, model: str) -> float:
        """The root mean square of all errors in units of their tolerance, divided by its limit; 0 if there is no limit."""
        return self._together(got, self.right, self.tolerance[model], model)

    def _together(self, got: np.ndarray, answer: np.ndarray, bound: np.ndarray, model: str) -> float:
        together = rms(ratios(got, answer, bound)) if self._judged(model) else 0.0
        return together / self.limit(model, together) if together else 0.0

    def limit(self, model: str, of: float | None = None) -> float:
        """The largest root mean square of all errors in units of their tolerance; infinite if each element is judged alone.

        Only as many ways of rounding are run as decide whether `of` is within the limit; without `of`, all are. An `of` beyond
        FAR times the limit of the first ways is outside.
        """
        limit = self._rms[model] if self._judged(model) else np.inf
        while of is None or limit < of <= FAR * limit or not limit:
            following = next(self._limits.get(model, iter(())), None)
            if following is None:
                break
            self._rms[model] = limit = following
        return limit

    def _judged(self, model: str) -> bool:
        """Whether the errors of all elements are judged together in this model."""
        if model not in self._rms:
            bits = rounded.bits(model)
            judged = bits > 0 and self.gauge == "none" and ("attention" in self.op.tags or self._wide(model))
            self._rms[model] = 0.0 if judged else np.inf
            self._limits |= {model: self._growing(model, bits)} if judged else {}
        return self._rms[model] < np.inf

    def each_alone(self, models: Iterable[str]) -> "Question":
        """This question, with each element judged alone in these models."""
        self._rms |= dict.fromkeys(models, np.inf)
        return self

    def _wide(self, model: str) -> bool:
        """Whether the bounds of most elements accept an output that is 1.1 times too large."""
        held = ratios(1.1 * self.right, self.right, self.tolerance[model]) <= 1
        return bool(self.right.any()) and 2 * held[self.right != 0].sum() > np.count_nonzero(self.right)

    def passing(self, model: str) -> list[str]:
        """Plainly wrong outputs that would pass too: 1.3 times the right numbers, or these numbers in reverse order."""
        garbage = {"1.3 times these numbers": 1.3 * self.right, "these numbers in reverse order": _reversed(self.right)}
        held = ((words, y) for words, y in garbage.items() if distance(y, self.right, self.tolerance[model], self.gauge) <= 1)
        return [words for words, y in held if self.spread(y, model) <= 1]

    def _growing(self, model: str, bits: int) -> Iterator[float]:
        """r of `posref.vectors.models`, which grows as the specification is run in more and more ways of rounding.

        Infinite if the specification does not run in one of them.
        """
        ways, limit = [*rounded.ways(model)], 0.0
        for some in (ways[:FIRST], *([way] for way in ways[FIRST:])):
            try:
                outputs = [rounded.run(self.op.spec, self.a, way, bits, CONSTANTS) for way in some]
            except NO_ANSWER:
                yield np.inf
                return
            finite = [y for y in outputs if np.isfinite(y).all()]
            c_out = model_of(model).c_out
            limit = max(limit, rounded.allowed_together(finite, self.right, self.tolerance[model], c_out) if finite else 0.0)
            yield limit or np.inf

    def blind(self, model: str, among: Iterable[str] | None = None) -> list[str]:
        """Mistakes that this data cannot distinguish from the right answer: of all that can occur here, or of `among`."""
        if among is None:
            if model not in self._blind:
                self._blind[model] = [name for name, answer in self.wrong.items() if not self._told(answer, model)]
            return self._blind[model]
        answers = {name: self.answer(name, self.op.mistakes[name].wrong) for name in among}
        return [name for name, answer in answers.items() if answer is None or not self._told(answer, model)]

    def pairs(self) -> Iterator[Named]:
        """Two mistakes at once that are of different kinds and change different arguments, and that this data shows each."""
        names = self.shown()
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                one, other = self.op.mistakes[first], self.op.mistakes[second]
                if (not one.kind or one.kind != other.kind) and not changed(one) & changed(other):
                    yield f"{first} and {second}", together(one, other)

    def shown(self) -> list[str]:
        """Mistakes whose answer has the right shape and that this data distinguishes from the right answer."""
        model, shape = self.models[-1], self.right.shape
        return [name for name, answer in self.wrong.items() if answer.shape == shape and self._told(answer, model)]

    def distinguishes(self, name: str, wrong: Wrong) -> bool:
        """Whether this data distinguishes a mistake from the right answer."""
        answer = self.answer(name, wrong)
        return answer is not None and (answer.shape != self.right.shape or self._told(answer, self.models[-1]))

    def fits(self, got: np.ndarray, name: str, wrong: Wrong, where: Any = True) -> bool:
        """Whether a mistake explains the elements `where`, in the finest or the coarsest model."""
        answer = self.answer(name, wrong)
        if answer is None or answer.shape != got.shape:
            return False
        return any((ratios(got, answer, self.bound(name, wrong, answer, m))[where] <= 1).all() for m in self.ends)

    def names(self, got: np.ndarray, candidate: Named) -> bool:
        """Whether this mistake, tried alone, is named for this output, in the finest or the coarsest model."""
        return any(self._fitting(got, model, [candidate], {}) for model in self.ends)

    def _told(self, answer: np.ndarray, model: str) -> bool:
        exact = self.tolerance[model]
        return distance(answer, self.right, exact, self.gauge) > 1 or self._together(answer, self.right, exact, model) > 1

    def _shown(self, got: np.ndarray, answer: np.ndarray, model: str, bound: np.ndarray) -> bool:
        """Whether an output that fits a mistake cannot be right; if the bound is too wide to tell, whether it equals the
        answer.

        A bound that accepts zeros, or the mistake's own numbers in another order, says nothing: it would accept noise too.
        Bounds are judged where the mistake changes the answer, since equal elements say nothing about it.
        """
        exact = self.tolerance[model]
        if self.gauge == "none" and got.any() and not answer.any():
            return False  # beside large numbers the bound of zeros holds small ones
        if answer.shape != self.right.shape:
            return separates(answer, bound, self.gauge)
        if self._is_a_factor(got, answer, bound):
            return False
        changed = answer != self.right
        told = self.gauge != "none" or separates(answer[changed], bound[changed])
        if told and separates(answer, bound, self.gauge) and distance(answer, self.right, exact + bound, self.gauge) > 1:
            return True
        tells = ratios(answer, self.right, exact + bound) > 1  # at near positions alone, where frequencies are far too large
        if self.gauge == "none" and tells.sum() >= MANY and separates(answer[tells], bound[tells]):
            return True
        bound = np.minimum(exact, bound)  # no wider than that of the right answer, element by element
        equal = distance(got, answer, bound, self.gauge) <= 1
        return equal and self._told(answer, model) and separates(answer, bound, self.gauge)

    def _is_a_factor(self, got: np.ndarray, answer: np.ndarray, bound: np.ndarray) -> bool:
        """Whether the right answer times a number fits this output four times better than a mistake that fits loosely.

        The number is fitted, so fewer than three values prove nothing. A mistake within half of its bound keeps its name.
        """
        worst = distance(got, answer, bound)
        if self.gauge != "none" or worst <= 0.5 or len(np.unique(got)) < 3:
            return False
        with np.errstate(all="ignore"):
            factor = np.vdot(self.right, got) / np.vdot(self.right, self.right)
        return 4 * distance(got, factor * self.right, bound) < worst

    def _fitting(
        self, got: np.ndarray, model: str, candidates: Iterable[Named], near: dict[str, float]
    ) -> tuple[tuple[str, Mistake, float], ...]:
        """The candidates that fit, with their distances, without those that fit far more loosely than the best."""
        fits: dict[str, tuple[Mistake, np.ndarray]] = {}
        for name, mistake in candidates:
            answer = self.answer(name, mistake.wrong)
            if answer is None or answer.shape != got.shape:
                near |= {} if answer is None or got.shape == self.right.shape else {name: np.inf}
                continue
            if answer.shape != self.right.shape or self._near(got, answer, model):
                if answer.shape == self.right.shape and not self._told(answer, model):
                    continue  # it is right here, so that nothing can show it
                bound = self.bound(name, mistake.wrong, answer, model)
                most = rounded.SLACK**2  # the limit is that of the right answer, and a mistake rounds otherwise
                usual = np.maximum(bound, self.tolerance[model]) if answer.shape == self.right.shape else bound
                worst = max(distance(got, answer, bound, self.gauge), self._together(got, answer, usual, model) / most)
            else:  # far enough to be told by the bound of the right answer
                worst = np.inf if " and " in name else max(2.0, distance(got, answer, self.tolerance[model], self.gauge))
            if worst > 1:
                near[name] = min(worst, near.get(name, np.inf))
            elif self.before is not None and self.before.distinguishes(name, mistake.wrong):
                continue
            elif self._shown(got, answer, model, self.bound(name, mistake.wrong, answer, model)):
                fits[name] = mistake, answer
        return tuple(self._closest(got, model, fits)) if fits else ()

    def near(self, got: np.ndarray, answer: np.ndarray, part: np.ndarray) -> bool:
        """Whether an answer may fit one part of the output, with the right answer elsewhere, in the finest or the coarsest
        model."""
        if answer.shape != got.shape:
            return False
        placed, where = np.where(part, answer, self.right), np.broadcast_to(part, got.shape)
        return any(self._near(got, placed, model, where) for model in self.ends)

    def _near(self, got: np.ndarray, answer: np.ndarray, model: str, where: Any = ...) -> bool:
        """Whether most elements are nearer than halfway, in digits, from exact to unrelated; if not, no bound will accept them.

        False too if an element is NaN or infinite in only one of the two arrays.
        """
        if self.gauge != "none" or not answer.size:
            return True
        if any((kind(got) != kind(answer))[where].any() for kind in (np.isnan, np.isinf)):
            return False
        every = slice(None, None, answer.size // SAMPLE | 1)  # an odd step meets all features
        some, sample, exact = (y[where].ravel()[every] for y in (got, answer, self.tolerance[model]))
        with np.errstate(all="ignore"):
            error = _quantile(np.nan_to_num(np.abs(some - sample), nan=0.0), 0.3)
            size = _quantile(np.abs(np.nan_to_num(sample)), 0.5)
            # a right answer that is 0 or copied allows no error, but the answers of its mistakes are rounded
            exact = max(_quantile(exact, 0.5), model_of(model).c_out * size)
        return bool(error <= np.sqrt(size * exact) + 8 * exact) and not self._farther(got, answer, model)

    def _farther(self, got: np.ndarray, answer: np.ndarray, model: str) -> bool:
        """Whether an answer is no nearer to the output than the right one; then it is no diagnosis, and needs no bound."""
        exact = self.tolerance[model]
        if self._output is not got:
            self._output, self._errors = got, {}
        if model not in self._errors:
            self._errors[model] = rms(ratios(got, self.right, exact))
        return self._errors[model] <= rms(ratios(got, answer, exact)) < np.inf

    def _closest(
        self, got: np.ndarray, model: str, fits: dict[str, tuple[Mistake, np.ndarray]]
    ) -> Iterator[tuple[str, Mistake, float]]:
        """The fits whose numbers equal those of the best fit, within its bound and float64 rounding."""
        best = min(fits, key=lambda name: np.nanmax(np.abs(got - fits[name][1]), initial=0))
        nearest, bound = fits[best][1], self.bound(best, fits[best][0].wrong, fits[best][1], model)
        for name, (mistake, answer) in fits.items():
            exact = self.bound(name, mistake.wrong, answer, "f64")
            if distance(answer, nearest, 2 * bound + exact, self.gauge) <= 1:
                yield name, mistake, distance(got, answer, self.bound(name, mistake.wrong, answer, model), self.gauge)


def _better(fits: tuple[tuple[str, Mistake, float], ...], worst: float) -> tuple[tuple[str, Mistake, float], ...]:
    """The fits that are twice as close as the right answer, if that fails its bound: a smaller gain may be chance."""
    return tuple(each for each in fits if worst <= 1 or 2 * each[2] <= worst)


def changed(mistake: Mistake) -> set[str]:
    """The arguments that a mistake replaces."""
    return {*getattr(mistake.wrong, "change", ())}


def together(*mistakes: Mistake) -> Mistake:
    """Several mistakes as one, each applied on top of the one before."""
    words = [" ".join(filter(None, (m.effect, m.remedy))) for m in mistakes]
    return Mistake(both(*(m.wrong for m in mistakes)), ", and ".join(m.bug for m in mistakes), remedy="\n".join(words))


def ratios(got: np.ndarray, expected: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Every error divided by its bound: 0 for an expected NaN or infinity, infinite for an unexpected NaN."""
    with np.errstate(all="ignore"):
        ratio = np.asarray(np.abs(got - expected) / bound)
    if ratio.max(initial=0.0) < np.inf:
        return ratio
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    return np.where(same, 0.0, np.where(np.isnan(ratio), np.inf, ratio))


def distance(got: np.ndarray, expected: np.ndarray, bound: np.ndarray, gauge: str = "none") -> float:
    """The largest error divided by its bound; with gauge "row_constant", of the differences within each row.

    >>> infinite = np.array([-np.inf])
    >>> distance(infinite, infinite, np.ones(1)), distance(np.array([np.nan]), infinite, np.ones(1))
    (0.0, inf)
    """
    if got.shape != expected.shape:
        return float("inf")
    if gauge == "row_constant":
        got, expected = (y[..., :, None] - y[..., None, :] for y in (got, expected))
        bound = bound[..., :, None] + bound[..., None, :]
    return float(ratios(got, expected, bound).max(initial=0.0))


def separates(answer: np.ndarray, bound: np.ndarray, gauge: str = "none") -> bool:
    """Whether a bound distinguishes an answer from zeros, from its numbers reversed, from 1.3 times these, and from noise.

    Zeros and reversed numbers must be refused in half of the elements where they differ. Noise as large as the largest number
    is within the bounds of all elements with a probability of 2^-bits.

    >>> separates(np.array([1.0, -2.0]), np.array([0.01, 0.01])), separates(np.array([1.0, -2.0]), np.array([0.5, 0.5]))
    (True, False)
    """
    if gauge == "row_constant":
        return all(distance(other, answer, bound, gauge) > 1 for other in (0 * answer, -answer) if (other != answer).any())
    size = np.abs(answer[np.isfinite(answer)]).max(initial=0)
    if size == 0:
        return True
    others = (np.zeros_like(answer), _reversed(answer))
    told = [ratios(other, answer, bound)[~np.isclose(other, answer, rtol=0, atol=2**-40 * size)] > 1 for other in others]
    with np.errstate(all="ignore"):
        bits = np.log2(np.fmax(size / bound, 1)).sum()
    halves = all(2 * each.sum() >= each.size for each in told)
    return bool(halves and bits >= BITS and distance(1.3 * answer, answer, bound) > 1)


def _reversed(y: np.ndarray) -> np.ndarray:
    return y.ravel()[::-1].reshape(y.shape)


def _quantile(y: np.ndarray, part: float) -> Any:
    """The element that the share `part` of all elements does not exceed; `np.quantile` takes ten times as long."""
    return np.sort(y)[int(part * (y.size - 1))]


def _sealed(value: Any) -> Any:
    """A read-only view of an array: a hypothesis that writes to its arguments would change the question."""
    if type(value) is np.ndarray:
        value = value.view()
        value.flags.writeable = False
    return value


def lifted(a: Mapping[str, Any], u: Units) -> Arguments:
    """Arguments as numbers with error: settings that formulas compute with carry an error, other float arrays are exact."""
    made = Arguments(a)
    for name, value in a.items():
        if name in CONSTANTS and isinstance(value, (int, float, np.ndarray)):
            made[name] = constant(np.asarray(value, dtype=float)[()], u)
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f" and not hasattr(value, "waves"):  # positions in few bits
            made[name] = Ranged(value, u)
    return made


def _least(near: dict[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted((each for each in near.items() if np.isfinite(each[1])), key=lambda item: item[1])[:2])
