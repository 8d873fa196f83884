"""FLOATER: position as the solution of a differential equation."""

from dataclasses import dataclass

import mpmath

from proofs.absolute.floater import THREE_EIGHTS, reached
from proofs.absolute.sinusoidal import frequency
from proofs.vectors import *

SOURCES = (
    "Liu et al., arXiv 2003.09229",
    "xuanqing94/FLOATER d788b5e, flow_transformer.py: steps of 0.01, five substeps, torchdiffeq's rk4 (the 3/8 rule)",
)

CONVENTIONS = {
    "axes": "start is (.., d), the result (.., n, d) with the start as row 0",
    "rule": "Runge-Kutta 3/8, `substeps` equal steps between neighboring times",
    "op sinusoid": "dp/dt = B p; B takes sine to w cosine and cosine to -w sine, w = base^(-2t/dim); p_0 = (0, 1, ..)",
    "times": "i step for op sinusoid",
    "op field": "dp/dt = (p_1 - t p_0, t - p_0 p_1) at the times given",
}
REJECTED = (("floater/field/d2-s1/field", "no-substeps", {"substeps": 0}, "range", "At least one step from time to time."),)
REASONS = """
sinusoid * classical | for a linear field every rule of fourth order with four stages is the same polynomial
sinusoid * frozen_time | the field of the sinusoid does not depend on time
sinusoid released closed_form | at the released step of 0.01 the rule errs less than float32 rounds; `coarse` tells
sinusoid released one_substep | at the released step of 0.01 the rule errs less than float32 rounds; `coarse` tells
"""


@dataclass(frozen=True)
class Rounded:
    """A number and how many units of rounding its error may be, to first order; every operation adds one."""

    value: object
    error: object = 0

    def __add__(self, other):
        other = _rounded(other)
        value = self.value + other.value
        return Rounded(value, self.error + other.error + abs(value))

    def __mul__(self, other):
        other = _rounded(other)
        value = self.value * other.value
        return Rounded(value, abs(self.value) * other.error + abs(other.value) * self.error + abs(value))

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, whole):
        return Rounded(self.value / whole, self.error / whole + abs(self.value / whole))

    def __sub__(self, other):
        return self + -1 * _rounded(other)

    def __rsub__(self, other):
        return _rounded(other) - self


def _rounded(x):
    return x if isinstance(x, Rounded) else Rounded(x)


def vectors():
    flags, models = "sign unit_times whole_size start_skipped other_layout", {"models": ("f64", "f32")}
    for layout in OTHER:
        yield _sinusoid("released", layout, 6, 6, 0.01, 5, flags)
    flags += " euler one_substep closed_form"
    yield _sinusoid("coarse", "half", 4, 5, 0.75, 2, flags, **models)
    yield _sinusoid("released", "half", 4, 4, 0.01, 5, "sign other_layout wrong_base", base=100, **models)
    yield _sinusoid("coarse", "interleaved", 4, 5, 0.75, 2, flags + " wrong_base", base=100, **models)
    for substeps in (1, 3):
        yield _field(substeps, "classical euler frozen_time" + " one_substep whole_size" * (substeps > 1), **models)


def _columns(pairs, layout):
    """The features of [(sine, cosine), ..] in their layout."""
    return [x for pair in pairs for x in pair] if layout == "interleaved" else [pair[m] for m in (0, 1) for pair in pairs]


def _sinusoid(variant, layout, dim, length, step, substeps, flags, base=10000, **rest):
    w = [frequency(mpmath.mpf(t), dim, mpmath.mpf(base), m=mpmath) for t in range(dim // 2)]
    rows = lambda w, step: _solved(w, step, length, substeps, layout)
    tracked = rows([Rounded(v, v * growth(v)) for v in w], Rounded(mpmath.mpf(step), mpmath.mpf(step)))
    id = f"floater/{variant}/{layout}-d{dim}-s{substeps}/sinusoid"
    params = {"dim": dim, "base": float(base), "layout": layout, "length": length, "step": step, "substeps": substeps}
    return case(id, "sinusoid", params, {}, rows(w, mpmath.mpf(step)), _errors(tracked), flags, **rest)


def _solved(w, step, length, substeps, layout):
    """The rows of the sinusoid's field, pair by pair."""
    times, one = [i * step for i in range(length)], mpmath.mpf(1)
    pairs = [reached(lambda t, p, v=v: [v * p[1], -1 * v * p[0]], times, [0 * one, one], substeps, THREE_EIGHTS) for v in w]
    return [_columns(states, layout) for states in zip(*pairs, strict=True)]


def _errors(tracked):
    """amp of rounded numbers: a third of the roundings."""
    return [_errors(x) if isinstance(x, list) else x.error / 3 if isinstance(x, Rounded) else mpmath.mpf(0) for x in tracked]


def _field(substeps, flags, **rest):
    starts, times = painted((2, 2), 1), [mpmath.mpf(t) for t in (0, 0.5, 1.25, 1.5)]
    field = lambda t, p: [p[1] - t * p[0], t - p[0] * p[1]]
    rows = lambda lift: [
        reached(field, [*map(lift, times)], [lift(mpmath.mpf(x)) for x in row], substeps, THREE_EIGHTS) for row in starts
    ]
    id, tensors = f"floater/field/d2-s{substeps}/field", {"start": starts, "times": [float(t) for t in times]}
    return case(id, "field", {"substeps": substeps}, tensors, rows(mpmath.mpf), _errors(rows(Rounded)), flags, **rest)
