"""Engine: which formula is it? Every wrong answer of an op is computed and compared; nothing here knows an encoding.

From fine to coarse models, and in each: the right answer first, then every mistake. So a mistake that fits closely is named
before a right answer that fits loosely. A mistake is claimed only where the right answer fails, and if this data tells it from
the right one. Of several that fit all are named; one that fits within a wide bound does not stand beside one that fits closely.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from posref.check.ranged import FROM_FINE, Ranged, Units, allowed, constant, units
from posref.ops import Arguments, NotHere, Op, Wrong, both

# settings that enter formulas as numbers; what a mistake puts in their place has an error too
CONSTANTS = ("base", "max_bias", "alpha", "factor")
NO_ANSWER = (NotHere, TypeError, ValueError, ArithmeticError)  # no place here, refused by the specification, or overflow


class Found(NamedTuple):
    """What an output is: `ok` and the coarsest `model` needed, or the mistakes that fit. Distances are in units of the bound.

    `nearest` are those that do not fit, with their distances, `tried` their number.
    """

    ok: bool
    model: str
    worst: float
    fits: tuple[tuple[str, float], ...] = ()
    nearest: tuple[tuple[str, float], ...] = ()
    tried: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The mistakes that fit."""
        return tuple(name for name, _ in self.fits)


class Question:
    """An op at arguments: the right answer, what is allowed, and every wrong answer."""

    def __init__(
        self,
        op: Op,
        arguments: Arguments,
        models: Collection[str],
        *,
        right: np.ndarray | None = None,
        tolerance: Mapping[str, np.ndarray] | None = None,
        gauge: str = "none",
    ):
        self.op, self.a, self.gauge = op, arguments, gauge
        self.models = tuple(name for name in FROM_FINE if name in models)
        self.right = np.asarray(op.spec(**arguments) if right is None else right, dtype=float)
        self.tolerance = tolerance or self.allowed(op.spec, self.models)
        self._bounds: dict[tuple[str, str], np.ndarray] = {}

    def allowed(self, spec: Any, models: Collection[str]) -> dict[str, np.ndarray]:
        """The allowed error of every element: the specification run on numbers that carry theirs."""
        u = units(*models)
        with np.errstate(all="ignore"):
            bounds = allowed(spec(**lifted(self.a, u)), u)[1]
        return {name: np.broadcast_to(bound, self.right.shape) for name, bound in bounds.items()}

    @cached_property
    def wrong(self) -> dict[str, np.ndarray]:
        """The answer of every mistake that has a place here."""
        answers = {name: self.answer(mistake.wrong) for name, mistake in self.op.mistakes.items()}
        return {name: answer for name, answer in answers.items() if answer is not None}

    def answer(self, wrong: Wrong) -> np.ndarray | None:
        """What a mistake gives here, or None where it has no place."""
        try:
            with np.errstate(all="ignore"):
                y = np.real(np.asarray(wrong(self.op.spec, self.a)).astype(complex))
        except NO_ANSWER:
            return None
        try:
            return np.broadcast_to(y, self.right.shape)
        except ValueError:
            return y

    def bound(self, name: str, wrong: Wrong, answer: np.ndarray, model: str) -> np.ndarray:
        """The allowed error of a wrong answer, computed once."""
        if (name, model) not in self._bounds:
            self._bounds[name, model] = self._bound(wrong, answer, model)
        return self._bounds[name, model]

    def _bound(self, wrong: Wrong, answer: np.ndarray, model: str) -> np.ndarray:
        """The largest of the right answer where a mistake does not run on numbers with error."""
        try:
            u = units(model)
            with np.errstate(all="ignore"):
                return np.broadcast_to(allowed(wrong(self.op.spec, lifted(self.a, u)), u)[1][model], answer.shape)
        except NO_ANSWER:
            return np.full(answer.shape, self.tolerance.get(model, np.zeros(1)).max(initial=0))

    def ask(self, got: np.ndarray, *, pairs: bool = False, without: Collection[str] = ()) -> Found:
        """Which formula gave this output. `pairs` tries two mistakes at once, for data rich enough."""
        near: dict[str, float] = {}
        for model in self.models:
            worst = distance(got, self.right, self.tolerance[model], self.gauge)
            if worst <= 1:
                return Found(True, model, worst)
            fits = self._fitting(got, model, self._singles(model, without), near)
            if fits:
                return Found(False, model, worst, fits, _least(near), len(near))
        if pairs:
            fits = self._fitting(got, model, self._pairs(got, without), near)
        return Found(False, model, worst, fits, _least(near), len(near))

    def blind(self, model: str) -> list[str]:
        """Mistakes that this data cannot tell from the right answer in this model."""
        return [name for name, answer in self.wrong.items() if not self._told(answer, model)]

    def _told(self, answer: np.ndarray, model: str) -> bool:
        return distance(answer, self.right, self.tolerance[model], self.gauge) > 1

    def _singles(self, model: str, without: Collection[str]) -> Iterator[tuple[str, Wrong, np.ndarray]]:
        for name, answer in self.wrong.items():
            if name not in without and self._told(answer, model):
                yield name, self.op.mistakes[name].wrong, answer

    def _pairs(self, got: np.ndarray, without: Collection[str]) -> Iterator[tuple[str, Wrong, np.ndarray]]:
        mistakes, model, shape = self.op.mistakes, self.models[-1], self.right.shape
        names = [n for n, y in self.wrong.items() if n not in without and y.shape == shape and self._told(y, model)]
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                if mistakes[first].kind and mistakes[first].kind == mistakes[second].kind:
                    continue
                wrong = both(mistakes[first].wrong, mistakes[second].wrong)
                answer = self.answer(wrong)
                if answer is not None and self._told(answer, model):
                    yield f"{first} and {second}", wrong, answer

    def _fitting(
        self, got: np.ndarray, model: str, candidates: Iterator[tuple[str, Wrong, np.ndarray]], near: dict[str, float]
    ) -> tuple[tuple[str, float], ...]:
        """Those that fit and how well, without those that fit far more loosely than the best."""
        fits: dict[str, tuple[Wrong, np.ndarray]] = {}
        for name, wrong, answer in candidates:
            if answer.shape != got.shape:
                continue
            rough = self.tolerance[model].max(initial=0) + 0.01 * np.abs(answer).max(initial=0)
            worst = 100 * float(np.abs(got - answer).max(initial=0)) / (rough or 1e-300)
            if self.gauge != "none" or worst <= 1000:  # near enough to ask for its own bound
                worst = distance(got, answer, self.bound(name, wrong, answer, model), self.gauge)
            if worst <= 1:
                fits[name] = wrong, answer
            else:
                near[name] = min(worst, near.get(name, np.inf))
        return tuple(self._closest(got, model, fits)) if fits else ()

    def _closest(self, got: np.ndarray, model: str, fits: dict[str, tuple[Wrong, np.ndarray]]) -> Iterator[tuple[str, float]]:
        """Those whose numbers are those of the best fit, as far as its bound and float64 tell."""
        best = min(fits, key=lambda name: np.abs(got - fits[name][1]).max(initial=0))
        nearest, bound = fits[best][1], self.bound(best, *fits[best], model)
        for name, (wrong, answer) in fits.items():
            if distance(answer, nearest, 2 * bound + self.bound(name, wrong, answer, "f64"), self.gauge) <= 1:
                yield name, distance(got, answer, self.bound(name, wrong, answer, model), self.gauge)


def distance(got: np.ndarray, expected: np.ndarray, bound: np.ndarray, gauge: str = "none") -> float:
    """The worst error in units of what is allowed; with "row_constant" up to a constant in every row."""
    if got.shape != expected.shape:
        return float("inf")
    error = got - expected
    if gauge == "row_constant":
        error, bound = error[..., :, None] - error[..., None, :], bound[..., :, None] + bound[..., None, :]
    with np.errstate(all="ignore"):
        ratio = np.where(error == 0, 0.0, np.abs(error) / bound)
    return float(np.where(np.isnan(ratio), np.inf, ratio).max(initial=0.0))


def lifted(a: Arguments, u: Units) -> Arguments:
    """Arguments as numbers with error: float arrays are exact, settings that enter formulas were computed."""
    made = Arguments(a)
    for name, value in a.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            made[name] = Ranged(value, u)
        elif name in CONSTANTS and isinstance(value, (int, float)):
            made[name] = constant(np.float64(value), u)
    return made


def _least(near: dict[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(near.items(), key=lambda item: item[1])[:2])
