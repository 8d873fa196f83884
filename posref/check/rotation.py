"""Rotation: what an implementation computes, with every choice a field, so that wrong ones can be written down as data.

`correct` is the specification; a hypothesis replaces some fields. `turn` evaluates in float64 and returns the conditions
that the tolerance needs (`posref.check.precision`). That `turn(correct(..))` is `rope.rotate` is tested.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from posref import pairing
from posref.check import precision
from posref.check.tensors import round_to

Positions = Callable[[np.ndarray, tuple[int, ...]], np.ndarray]


class Asked(NamedTuple):
    """What the implementation is supposed to be: frequencies base^(-2t/exponent_dim), or `given` ones.

    `exponent_dim` None is `rotary_dim`. With `given` frequencies `base` is that of their fastest pairs, before any scaling.
    """

    dim: int
    rotary_dim: int
    base: float
    layout: Any
    exponent_dim: int | None = None
    given: np.ndarray | None = None
    magnitude: float = 1.0
    sign: int = 1
    written: str = ""

    @property
    def divisor(self) -> int:
        """What the exponent 2t is divided by."""
        return self.exponent_dim or self.rotary_dim

    @property
    def frequencies(self) -> np.ndarray:
        """Of every pair, `(rotary_dim/2,)`."""
        return powers(self.base, self.rotary_dim // 2, self.divisor) if self.given is None else self.given

    def __str__(self) -> str:
        partial = "" if self.rotary_dim == self.dim else f" rotary_dim={self.rotary_dim}"
        exponent = "" if self.exponent_dim is None else f" exponent_dim={self.exponent_dim}"
        law = f"base={self.base:g}{exponent}"
        if self.given is not None:
            law = f"frequencies={self.given[0]:.6g}..{self.given[-1]:.6g}"
        more = f" magnitude={self.magnitude:g}" if self.magnitude != 1 else ""
        more += " sign=-1" if self.sign < 0 else ""
        return f"rope dim={self.dim}{partial} {law} layout={self.layout}{self.written}{more}"


def powers(base: float, pairs: int, divisor: float) -> np.ndarray:
    """base^(-2t/divisor), t = 0 .. pairs - 1."""
    return base ** (-2 * np.arange(pairs) / divisor)


class Pairs(NamedTuple):
    """Pair t reads features first[t], second[t] and writes to_first[t], to_second[t]; columns are those of the tables."""

    first: np.ndarray
    second: np.ndarray
    to_first: np.ndarray
    to_second: np.ndarray
    column_first: np.ndarray
    column_second: np.ndarray


# coefficients of (a cos, b sin) in the first member and of (a sin, b cos) in the second
FORMS = {
    "rotation": (1, -1, 1, 1),
    "inverse": (1, 1, -1, 1),
    "both minus": (1, -1, -1, 1),
    "both plus": (1, 1, 1, 1),
    "swapped": (1, -1, 1, 1),
}


@dataclass(frozen=True, eq=False)
class Rotation:
    """Every choice of an implementation; `roundings` widens the bound of its tables.

    `divisor` is that of the exponent of the frequencies. `form` "swapped" exchanges cos and sin. `positions` are maps from
    positions `(b, 1, n)` and the shape of x to the positions really used. `rounded` rounds "positions", "frequencies" or
    "angles" to a dtype. `table` is the dtype of the tables where that is a claim of its own.
    """

    pairs: Pairs
    frequencies: np.ndarray
    divisor: int
    form: str = "rotation"
    magnitude: float = 1.0
    positions: tuple[Positions, ...] = ()
    rounded: tuple[tuple[str, str], ...] = ()
    table: str | None = None
    roundings: float = 1.0


class Turned(NamedTuple):
    """The exact output and the conditions of its bound: phase = reach * growth, one growth for every way to make angles."""

    y: np.ndarray
    amp: np.ndarray
    reach: np.ndarray
    growth: dict[str, np.ndarray]

    def phase(self, way: str = "power") -> np.ndarray:
        """The phase condition where angles are made in this way."""
        return self.reach * self.growth[way]


TABLE_ROUNDOFF = {"bfloat16": precision.BF16, "float16": precision.F16}


def paired(layout: Any, width: int) -> Pairs:
    """The first `width` features, read and written in one layout."""
    first, second = pairing.indices(width, layout)
    column = np.arange(width // 2)
    return Pairs(first, second, first, second, column, column)


def correct(asked: Asked) -> Rotation:
    """The specification, `posref.rotary.rope`. A magnitude adds up to five roundings to the four of amp."""
    roundings = 9 / 4 if asked.magnitude != 1 else 1.0
    return Rotation(paired(asked.layout, asked.rotary_dim), asked.frequencies, asked.divisor, roundings=roundings)


def moving(rotation: Rotation) -> Rotation:
    """Without the pairs of frequency 0: they pass, so no output shows that they are pairs."""
    pairs = rotation.pairs
    turns = rotation.frequencies[pairs.column_first] != 0
    return rotation if turns.all() else replace(rotation, pairs=Pairs(*(side[turns] for side in pairs)))


def used_positions(rotation: Rotation, positions: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The positions that the rotation turns by, `(b or 1, heads or 1, n or 1)`."""
    for mapped in rotation.positions:
        positions = mapped(positions, shape)
    return positions


def turn(rotation: Rotation, x: np.ndarray, positions: np.ndarray) -> Turned:
    """The output for `x` `(b, h, n, d)` at `positions` `(b, 1, n)`, with its conditions; NaN where it overflows."""
    with np.errstate(invalid="ignore", over="ignore"):
        angle = angles(rotation, positions, x.shape)
        cos, sin = (rotation.magnitude * _rounded(rotation, "tables", table(angle)) for table in (np.cos, np.sin))
        if rotation.form == "swapped":
            cos, sin = sin, cos
        return _apply(rotation, x, cos, sin, abs(rotation.magnitude) * np.abs(angle))


def angles(rotation: Rotation, positions: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """In radians, `(b or 1, heads or 1, n or 1, pairs)`."""
    m = _rounded(rotation, "positions", used_positions(rotation, positions, shape).astype(np.float64))
    return _rounded(rotation, "angles", m[..., None] * _rounded(rotation, "frequencies", rotation.frequencies))


def _rounded(rotation: Rotation, what: str, value: np.ndarray) -> np.ndarray:
    for name, dtype in rotation.rounded:
        value = round_to(value, dtype) if name == what else value
    return value


def _apply(rotation: Rotation, x: np.ndarray, cos: np.ndarray, sin: np.ndarray, angle: np.ndarray) -> Turned:
    pairs, sign = rotation.pairs, FORMS[rotation.form]
    a, b = x[..., pairs.first], x[..., pairs.second]
    one, two = pairs.column_first, pairs.column_second
    a_cos, b_sin, a_sin, b_cos = a * cos[..., one], b * sin[..., one], a * sin[..., two], b * cos[..., two]
    reach = np.hypot(a, b) * np.maximum(angle[..., one], angle[..., two])
    growth = {}
    for way in precision.SUFFIXES:
        k = precision.phase_growth(rotation.frequencies, way)
        k = np.maximum(k[one], k[two])
        growth[way] = _scatter(pairs, np.zeros(x.shape[-1]), k, k)
    return Turned(
        _scatter(pairs, x, sign[0] * a_cos + sign[1] * b_sin, sign[2] * a_sin + sign[3] * b_cos),
        rotation.roundings * _scatter(pairs, 0 * x, np.abs(a_cos) + np.abs(b_sin), np.abs(a_sin) + np.abs(b_cos)),
        _scatter(pairs, 0 * x, reach, reach),
        growth,
    )


def _scatter(pairs: Pairs, x: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    y = np.array(x, dtype=np.float64)
    y[..., pairs.to_first], y[..., pairs.to_second] = first, second
    return y


def bound(turned: Turned, model: str, table: str | None = None) -> np.ndarray:
    """The tolerance around `turned.y`; `table` widens it to tables of that dtype. The reference itself is float64."""
    tolerance = precision.tolerance(turned.amp, turned.phase(precision.MODELS[model].way), turned.y, model)
    if table is not None:
        tolerance = tolerance + TABLE_ROUNDOFF[table] * turned.amp
    return tolerance + precision.tolerance(turned.amp, turned.phase(), turned.y, "f64")


def ratios(got: np.ndarray, turned: Turned, model: str, table: str | None = None) -> np.ndarray:
    """|got - y| / tolerance of every entry; NaN is right exactly where `turned` has it."""
    finite = np.isfinite(turned.y)
    error = np.abs(np.where(finite, got - turned.y, 0))
    ratio = precision.in_bounds(error, np.where(finite, bound(turned, model, table), 1))
    return np.where(finite == np.isfinite(got), ratio, np.inf)


def residual(got: np.ndarray, turned: Turned, model: str, table: str | None = None) -> float:
    """The largest of `ratios`: at most 1 if `got` is this rotation in that model."""
    return float(ratios(got, turned, model, table).max(initial=0.0))
