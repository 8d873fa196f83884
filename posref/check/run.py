"""Run: what went into an implementation and what came out, what may be wrong with it, and how well a rotation fits it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from posref.check.rotation import Asked, Rotation, residual, turn, used_positions

Change = Callable[[Asked, Rotation], Rotation]


@dataclass(frozen=True)
class Hypothesis:
    """One mistake as data; the mistakes themselves are in `wrong_pairs`, `wrong_positions`, `wrong_numbers`.

    `change` puts it into a rotation; changes of different kinds ("pairs", "sign", "magnitude", "positions", "frequencies",
    "precision") can be combined. `claim` and `sentence` complete "your output". `same_as` lists what gives the same numbers
    whatever the data. Without two rows of x along `axis` it says nothing.
    """

    name: str
    kind: str
    sentence: str
    remedy: str
    change: Change
    same_as: tuple[str, ...] = ()
    axis: int | None = None
    claim: str = "equals {subject}"


class Run(NamedTuple):
    """What was put in and what came out: x, got `(b, h, n, d)`, positions `(b, 1, n)`, models allowed for the output.

    `start` is the right answer, `mistakes` are those that this data can show, `subject` says what was computed.
    """

    asked: Asked
    x: np.ndarray
    positions: np.ndarray
    got: np.ndarray
    models: tuple[str, ...]
    start: Rotation
    mistakes: list[Hypothesis]
    subject: str = "RoPE"


class Outcome(NamedTuple):
    """A hypothesis, its residual, and the names of the mistakes it is made of."""

    hypothesis: Hypothesis
    residual: float
    parts: frozenset[str]


def fitness(run: Run, rotation: Rotation) -> float:
    """The smallest residual over the allowed models; of two heads alone where these do not fit already, if heads turn alike."""
    alike = used_positions(rotation, run.positions, run.x.shape).shape[-2] == 1
    for heads in (slice(2), slice(None)) if alike else (slice(None),):
        turned = turn(rotation, run.x[:, heads], run.positions)
        best = min(residual(run.got[:, heads], turned, model, rotation.table) for model in run.models)
        if best > 1:
            break
    return best


def joined(parts: tuple[Hypothesis, ...]) -> Hypothesis:
    """Several mistakes as one hypothesis."""
    first = parts[0]
    if len(parts) == 1:
        return first
    return replace(
        first,
        name=" and ".join(h.name for h in parts),
        sentence=", and ".join(h.sentence for h in parts),
        remedy="\n".join(h.remedy for h in parts),
        same_as=tuple(f'{other} in place of "{h.name}"' for h in parts for other in h.same_as),
    )
