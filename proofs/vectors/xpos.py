"""xPos: rotated and scaled queries and keys."""

import itertools

import mpmath
import numpy as np

from proofs.rotary.rope import frequency
from proofs.rotary.xpos import definition
from proofs.vectors import *

SOURCES = (
    "Sun et al., A Length-Extrapolatable Transformer, arXiv 2212.10554, Algorithm 1",
    "microsoft/torchscale, torchscale/component/xpos_relative_position.py",
)

CONVENTIONS = {
    "x": "(batch, heads, n, dim); positions (n,)",
    "zeta": "zeta_t = (2t / dim + 0.4) / 1.4; the factor of a pair is zeta_t^((position - center) / scale_base)",
    "side": "query: multiplied by the factor; key: divided by it",
    "layout": "interleaved pairs features (2t, 2t+1), half pairs (t, t + dim/2)",
    "op rotate": "every pair turned by position * base^(-2t/dim) and scaled",
}
REJECTED = (("xpos/half-query/d8/centered", "side", {"side": "value"}, "choice", "query or key."),)
REASONS = """
pair rotate * both_multiplied other_side | divided for multiplied, and multiplied for divided
"""

ANY = "other_side unscaled other_center other_layout factor_of_the_feature scale_base_halved"


def vectors():
    for layout, side in itertools.product(("half", "interleaved"), ("query", "key")):
        yield _rotate("centered", [0, 5, 700, 1500], 8, layout, side, 32.0, ANY)
        rows = f"{ANY} positions_clamped positions_modulo bf16_positions int16_positions"
        rows += " positions_shared_across_batch wrong_axis wrong_base"
        more = {"base": 500000, "scale_base": 65536.0}
        yield _rotate("places", PLACES[:2], 4, layout, side, 32768.0, rows, models=("f64", "f32"), **more)
        more = {"scale_base": 2.0**24, "models": ("f64",)}
        yield _rotate("beyond-f32", PLACES[2], 4, layout, side, 32768.0, "f32_positions f16_positions", **more)
        yield _rotate("fractional", HALVES, 4, layout, side, 32.0, "positions_ignored", scale_base=2.0**22)
        yield _rotate("negative", BELOW, 4, layout, side, 32.0, "positions_ignored")
    yield _rotate("far", [4000, 4097, 5000], 16, "half", "key", 4097.0, ANY)


def zeta(t, dim):
    return (mpmath.mpf(2 * t) / dim + mpmath.mpf(2) / 5) / (mpmath.mpf(7) / 5)


def _members(t, dim, layout):
    return (2 * t, 2 * t + 1) if layout == "interleaved" else (t, t + dim // 2)


def _values(x, positions, dim, layout, side, center, base, scale_base):
    y, at = np.zeros(x.shape, dtype=object), _of_every_row(positions, x)
    for *lead, i, t in np.ndindex(*x.shape[:-1], dim // 2):
        first, second = ((*lead, i, f) for f in _members(t, dim, layout))
        pair = mpmath.mpf(x[first]), mpmath.mpf(x[second])
        given = mpmath.mpf(at[(*lead, i)]), frequency(t, dim, mpmath.mpf(base)), zeta(t, dim), mpmath.mpf(center)
        y[first], y[second] = definition(*pair, *given, mpmath.mpf(scale_base), side, m=mpmath)
    return y


def _of_every_row(positions, x):
    """Positions (n,) or (batch, n) for each row of x, (batch, heads, n, d)."""
    return np.broadcast_to(np.array(positions, dtype=object).reshape(-1, 1, x.shape[-2]), x.shape[:-1])


def _sensitivity(x, positions, dim, layout, side, center, base, scale_base):
    """Those of a rotation, times the factor; its power has the roundings of an exponent and of zeta."""
    phase, amp, at = np.zeros(x.shape, dtype=object), np.zeros(x.shape, dtype=object), _of_every_row(positions, x)
    for *lead, i, t in np.ndindex(*x.shape[:-1], dim // 2):
        first, second = ((*lead, i, f) for f in _members(t, dim, layout))
        a, b, w = abs(mpmath.mpf(x[first])), abs(mpmath.mpf(x[second])), frequency(t, dim, mpmath.mpf(base))
        position = mpmath.mpf(at[(*lead, i)])
        power, angle = (position - mpmath.mpf(center)) / scale_base, position * w
        factor = zeta(t, dim) ** (power if side == "query" else -power)
        cos, sin, roundings = abs(mpmath.cos(angle)), abs(mpmath.sin(angle)), 6 + 4 * abs(power) + 3 * abs(mpmath.log(factor))
        amp[first], amp[second] = (terms(roundings, factor * s) for s in (a * cos + b * sin, a * sin + b * cos))
        phase[first] = phase[second] = factor * mpmath.hypot(a, b) * abs(angle) * growth(w)
    return {"phase": phase, "amp": amp}


def _rotate(name, positions, dim, layout, side, center, kills, *, base=10000, scale_base=512.0, **rest):
    positions = np.array(positions)
    batch, given = len(positions) if positions.ndim > 1 else 1, (dim, layout, side, center, base, scale_base)
    x = painted((batch, 2, positions.shape[-1], dim), 1)
    id = f"xpos/{layout}-{side}/d{dim}/{name}"
    params = {"dim": dim, "base": float(base), "layout": layout, "side": side, "center": center, "scale_base": scale_base}
    cond = _sensitivity(x, positions, *given)
    return case(id, "rotate", params, {"x": x, "positions": positions}, _values(x, positions, *given), cond, kills, **rest)
