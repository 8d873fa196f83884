"""Run: what went into an implementation and what came out, and how well a rotation fits it."""

from typing import NamedTuple

import numpy as np

from posref.check.hypothesis import Hypothesis
from posref.check.rotation import Asked, Rotation, residual, turn


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
