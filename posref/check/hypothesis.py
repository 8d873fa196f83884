"""Hypothesis: one mistake as data. The mistakes themselves are in `wrong_pairs`, `wrong_positions`, `wrong_numbers`.

A change is a function `(asked, rotation) -> rotation`; changes of different kinds ("pairs", "sign", "magnitude",
"positions", "frequencies", "precision") can be combined. `same_as` lists what gives the same numbers whatever the data.
"""

from collections.abc import Callable
from dataclasses import dataclass

from posref.check.rotation import Asked, Rotation

Change = Callable[[Asked, Rotation], Rotation]


@dataclass(frozen=True)
class Hypothesis:
    """One mistake. `sentence` completes "your output equals RoPE". Without two rows along `axis` it says nothing."""

    name: str
    kind: str
    sentence: str
    remedy: str
    change: Change
    same_as: tuple[str, ...] = ()
    axis: int | None = None
