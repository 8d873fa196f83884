r"""Precision: bounds for the error of rotation angles, for each number format and each way to compute the angles.

A model computes m w in float32 or less. The bounds hold for every position up to a length L and for the table that this machine
computes, so nothing is assumed about its pow, exp or log.

    |angle - m w| <= L |w' - w| + w' r(L) + s(L' w')        for all positions m <= L

w is base^(-2t/dim), taken with 40 digits; w' is the stored frequency; r(L) is half a spacing of the format of positions at L,
or 0 if the format holds them exactly; L' = L + r(L); s(x) is half a spacing of the format of angles at x, or 0 if w' is a power
of two. The proof is the triangle inequality, and that half a spacing never falls as numbers grow.

If each angle is computed from that of the pair before, c is base^(-2/dim) and c' is its stored value:

    |angle_t - m w_t| <= e_t = g_t + s(L w_t + g_t)
    g_t = c' e_(t-1) + L w_(t-1) |c' - c|

A score of positions m and n depends on the difference of two angles (proofs/mathematics/rounding.py): the error of a frequency
is multiplied by n - m only; the rounding of products counts twice, and makes the score change when both positions are shifted.
"""

import functools
from decimal import Decimal, localcontext
from typing import NamedTuple

import numpy as np

from posref.rotary import rope

__all__ = ["RECIPES", "Recipe", "bfloat16", "half_spacing", "longest", "page", "phase", "phase_of", "score", "table"]

LEGEND = """\
Rows are ways to compute the angles: all in one dtype; with exp and log in place of a power; from a table made in float64;
each frequency from the one before (pair from pair); with the frequencies alone in bfloat16 (bfloat16 table).
Each number is a bound for all positions, for the tables that this machine makes. lost: an angle can be off by pi or more."""
USUAL = ((64, 1e4), (128, 1e4), (128, 5e5), (128, 1e6), (256, 1e4), (256, 1e6))  # widths and bases of released models


class Recipe(NamedTuple):
    """A way to compute angles: `table(dim, base)` in float64, the bits of positions and products; or pair by pair."""

    table: object
    bits: int
    position_bits: int
    iterated: bool = False


def _pow(dim, base):
    """1 / base ** (arange(0, dim, 2) / dim), all in float32."""
    return 1 / np.float32(base) ** (np.arange(0, dim, 2, dtype=np.float32) / np.float32(dim))


def _exp_log(dim, base):
    """exp(-2t (ln(base) / dim)) in float32, the logarithm in float64."""
    return np.exp(np.arange(0, dim, 2, dtype=np.float32) * np.float32(-np.log(float(base)) / dim))


def bfloat16(x):
    """Round to the nearest numbers with 8 significant bits, ties to even.

    >>> bfloat16(np.array([257.0, 0.1])).tolist()
    [256.0, 0.10009765625]
    """
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


RECIPES = {
    "float64": Recipe(lambda dim, base: rope.frequencies(dim, float(base)), 53, 53),
    "float32": Recipe(_pow, 24, 24),
    "float32 by exp and log": Recipe(_exp_log, 24, 24),
    "float32 of a float64 table": Recipe(lambda dim, base: rope.frequencies(dim, float(base)).astype(np.float32), 24, 24),
    "float32, pair from pair": Recipe(lambda dim, base: np.float32(base) ** np.float32(-2.0 / dim), 24, 24, iterated=True),
    "bfloat16 table": Recipe(lambda dim, base: bfloat16(_pow(dim, base)), 24, 24),
    "bfloat16": Recipe(lambda dim, base: bfloat16(_pow(dim, base)), 8, 8),
}


def phase(recipe, dim, base, length):
    """A bound for |angle - m w| over all pairs and all positions m <= length, in radians.

    >>> float(round(phase("float32 of a float64 table", 128, 10000.0, 131072), 6))
    0.007802
    """
    made, exact = _made(recipe, dim, base)
    if RECIPES[recipe].iterated:
        return _iterated(float(made), exact, length, RECIPES[recipe].bits)
    return phase_of(made, exact, length, bits=RECIPES[recipe].bits, position_bits=RECIPES[recipe].position_bits)


def phase_of(table, exact, length, *, bits, position_bits, products=1):
    """The bound of `phase` for any stored table `(pairs,)`; `exact` is `(high, low)`, whose sum is exact to 32 digits."""
    off, rounding = _terms(table, exact, length, bits, position_bits)
    return float((off + products * rounding).max())


def score(recipe, dim, base, length, *, units=1.5):
    """A bound for the error of a rotated score at positions m, n <= length, in units of sum_t |q_t| |k_t|, to first order in u.

    Cosine and sine are within `units` u, products are not fused, and u is that of the angles (at least float32).
    """
    made, exact = _made(recipe, dim, base)
    chosen = RECIPES[recipe]
    if chosen.iterated:
        turned = 2 * phase(recipe, dim, base, length)
    else:
        turned = phase_of(made, exact, length, bits=chosen.bits, position_bits=chosen.position_bits, products=2)
    u = 2.0 ** -max(chosen.bits, 24)
    return float(2 * np.sin(min(turned, np.pi) / 2) + 2 * np.sqrt(2) * (units + 2) * u + dim * u)


def longest(recipe, dim, base, *, tolerance):
    """The largest length whose bound is below `tolerance` radians; 0 if position 1 is off by more.

    >>> longest("bfloat16", 128, 10000.0, tolerance=0.01)
    2
    """
    right, wrong = 0, 1
    while phase(recipe, dim, base, wrong) < tolerance:
        right, wrong = wrong, 2 * wrong
    while wrong - right > 1:
        middle = (right + wrong) // 2
        right, wrong = (middle, wrong) if phase(recipe, dim, base, middle) < tolerance else (right, middle)
    return right


def table(dim=None, base=None, *, length, tolerance):
    """One record per recipe, width and base: the longest text within the tolerance, and the bounds up to a length."""
    _require(dim, base, length, tolerance)
    chosen = USUAL if dim is None and base is None else ((dim or 128, base or 10000.0),)
    return [
        {
            "recipe": recipe,
            "dim": width,
            "base": base,
            "longest": longest(recipe, width, base, tolerance=tolerance),
            "phase": phase(recipe, width, base, length),
            "score": score(recipe, width, base, length),
        }
        for recipe in RECIPES
        for width, base in chosen
    ]


def page(rows, length, tolerance):
    """The records as text: a row per recipe, a column per width and base."""
    titles = {
        "longest": f"Longest text whose angles are right to {tolerance:g} rad",
        "phase": f"Phase error up to position {length}, rad",
        "score": f"Error of a rotated score up to position {length}, relative to sum |q_t| |k_t| over pairs, to first order",
    }
    columns = list(dict.fromkeys((str(row["dim"]), f"{row['base']:g}") for row in rows))
    blocks = [_block(title, _shown(rows, key), columns) for key, title in titles.items()]
    return "\n\n".join([*blocks, LEGEND])


def _shown(rows, key):
    """{recipe: cells} of one block of the table; an error beyond pi makes an angle meaningless."""
    cells = {}
    for row in rows:
        lost = key != "longest" and row["phase"] >= np.pi
        cells.setdefault(row["recipe"], []).append("lost" if lost else f"{row[key]:.3g}" if key != "longest" else str(row[key]))
    return cells


def _block(title, cells, columns):
    width = max(map(len, RECIPES))
    heads = dict(zip(("dim", "base"), zip(*columns, strict=True), strict=True))
    lines = [f"{head:{width}}" + "".join(f"{cell:>16}" for cell in row) for head, row in (heads | cells).items()]
    return "\n".join([title, *lines])


def _require(dim, base, length, tolerance):
    """ValueError for arguments for which there is no table."""
    if dim is not None and (dim < 2 or dim % 2):
        raise ValueError(f"precision.table: dim is {dim}, expected an even number of at least 2")
    if base is not None and not 1 < base < float("inf"):
        raise ValueError(f"precision.table: base is {base}, expected a number above 1")
    if not 1 <= length <= 2**40:
        raise ValueError(f"precision.table: length is {length}, expected a position from 1 to 2^40")
    if not 0 < tolerance <= 1:
        raise ValueError(f"precision.table: tolerance is {tolerance}, expected radians above 0 and at most 1")


@functools.cache
def _made(recipe, dim, base):
    return RECIPES[recipe].table(dim, base), _exact(dim, base)


def _exact(dim, base):
    """base^(-2t/dim) with 40 digits, as two float64 numbers each."""
    with localcontext() as context:
        context.prec = 50
        powers = [Decimal(base) ** (Decimal(-2 * t) / Decimal(dim)) for t in range(dim // 2)]
        high = [float(w) for w in powers]
        return np.array(high), np.array([float(w - Decimal(h)) for w, h in zip(powers, high, strict=True)])


UP = 1 + 2.0**-40  # what the few roundings of a bound itself can take


def _terms(table, exact, length, bits, position_bits):
    """The error from frequency and position, and the product, for each pair at the length."""
    stored = np.asarray(table, np.float64)
    off = length * np.abs((stored - exact[0]) - exact[1])
    rounded = half_spacing(length, position_bits) if length > 2**position_bits else 0.0
    power_of_two = np.frexp(stored)[0] == 0.5
    product = np.where(power_of_two, 0.0, half_spacing((length + rounded) * stored * UP, bits))
    return (off + rounded * stored) * UP, product


def _iterated(step, exact, length, bits):
    """The largest e_t of the recurrence; the angle of pair 0 is the position itself."""
    c = exact[0] + exact[1]
    wrong, worst = abs((step - exact[0][1]) - exact[1][1]) if len(c) > 1 else 0.0, 0.0
    error = 0.0
    for t in range(1, len(c)):
        grown = (step * error + length * c[t - 1] * wrong) * UP
        error = grown + float(half_spacing((length * c[t] + grown) * UP, bits))
        worst = max(worst, error)
    return worst


def half_spacing(x, bits):
    """Half the distance of neighbouring numbers with `bits` significant bits at x: the largest error of rounding to nearest.

    >>> half_spacing(np.array([1.0, 3.0]), 24) * 2.0**24
    array([1., 2.])
    """
    return np.ldexp(0.5, np.frexp(x)[1] - bits)
