"""Wrong answers: frequencies with any base, factor or exponent, to compare an output with."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from posref.check import precision, reading
from posref.check.rotation import Asked, angles, correct
from posref.check.run import Hypothesis, Outcome, joined
from posref.check.search import mistakes
from posref.check.wrong_numbers import based
from posref.check.wrong_positions import FACTORS, scaled


def wrong_frequencies(case: Any, got: np.ndarray, models: tuple[str, ...]) -> Iterator[Outcome]:
    """Every mistake in frequencies, and how well it fits. They are angles at position 1: what changes a rotation is tried."""
    dim = case.params["dim"]
    divisor = max(dim - 2, 1) if case.params.get("divisor") == "dim - 2" else dim
    asked = Asked(dim, dim, case.params["base"], "half", divisor)
    start, one, shape = correct(asked), np.ones((1, 1, 1)), (1, 1, 1, dim)
    for h in _of_frequencies(asked, got):
        wrong = h.change(asked, start)
        theta = angles(wrong, one, shape).reshape(-1)
        phase = theta * precision.phase_growth(wrong.frequencies)
        bounds = (precision.tolerance(0, phase, theta, m) + precision.tolerance(0, phase, theta, "f64") for m in models)
        residual = min(float(precision.in_bounds(np.abs(got - theta), bound).max()) for bound in bounds)
        yield Outcome(replace(h, claim="equals the frequencies"), residual, frozenset(h.name.split(" and ")))


def _of_frequencies(asked: Asked, got: np.ndarray) -> Iterator[Hypothesis]:
    for h in mistakes(asked, (1, 1, 1, asked.dim)):
        if h.kind == "frequencies" or h.name.startswith("frequencies in"):
            yield h
    yield from (_times(factor) for factor in FACTORS)
    if len(got) > 2 and (got > 0).all():
        base, factor = reading.geometric(got)
        for digits in (1, 2, 3, 4, 6, 9):
            plain = float(f"{base ** (asked.divisor / asked.dim):.{digits}g}")
            if plain != asked.base:
                yield based(plain, asked)
                yield _both(based(plain, asked), _times(float(f"{factor:.{digits}g}")))
            yield _times(float(f"{factor:.{digits}g}"))


def _times(factor: float) -> Hypothesis:
    name = f"frequencies times {factor:g}"
    return replace(scaled(factor), name=name, sentence=f"times {factor:g}", same_as=())


def _both(first: Hypothesis, second: Hypothesis) -> Hypothesis:
    return replace(joined((first, second)), change=lambda asked, r: second.change(asked, first.change(asked, r)))
