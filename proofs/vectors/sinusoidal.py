"""Sinusoidal encoding: sines and cosines of geometrically spaced frequencies."""

import mpmath
import numpy as np

from proofs.absolute.sinusoidal import definition, frequency
from proofs.vectors import *

SOURCES = (
    "Vaswani et al., Attention Is All You Need, arXiv 1706.03762, section 3.5",
    "tensor2tensor, layers/common_attention.py, get_timing_signal_1d",
)

CONVENTIONS = {
    "axes": "the encoding has the axes of positions and then dim",
    "divisor": "frequencies base^(-2t/dim) for dim, base^(-2t/(dim - 2)) for dim - 2",
    "layout": "interleaved: sin, cos, sin, cos, ..; half: all sines, then all cosines",
    "op frequencies": "w, dim/2 numbers",
    "op encode": "the encoding of the positions",
}
REJECTED = (
    ("sinusoidal/interleaved-dim-2/d10-b1e4/offset", "odd-dim", {"dim": 9}, "range", "Sines and cosines come in pairs."),
    ("sinusoidal/interleaved-dim-2/d10-b1e4/offset", "no-layout", {"layout": None}, "missing", "Sines first, or in turn."),
    ("sinusoidal/interleaved-dim-2/d10-b1e4/offset", "divisor", {"divisor": "half"}, "choice", "dim or dim - 2."),
)


DIVISORS = ("dim", "dim - 2")
SPARSE = (0, 1, 2, 100, 257, 2049, 4097, 48040, 65503)
ANY = "other_layout cos_first divisor starts_at_one degrees turns wrong_base"


def vectors():
    for dim in (4, 6, 10, 384, 512):
        for divisor in DIVISORS:
            yield _frequencies(dim, divisor)
    id, params = "sinusoidal/dim-2/d2-b1e4/frequencies", {"dim": 2, "base": 10000.0, "divisor": "dim - 2"}
    comment = "One pair is the first and the last: the first is 1."
    yield case(id, "frequencies", params, {}, [mpmath.mpf(1)], {"phase": [growth(mpmath.mpf(1))]}, comment=comment)
    for divisor in DIVISORS:
        yield _frequencies(6, divisor, 500000)
    for layout in OTHER:
        for divisor in DIVISORS:
            yield _encode("tiny", range(6), 8, layout, divisor, ANY + " feature_index" * (divisor == "dim"))
    precision = "positions_ignored f16_positions bf16_positions bf16_frequencies bf16_angles"
    yield _encode("sparse", SPARSE, 64, "interleaved", "dim", f"{ANY} feature_index {precision}")
    yield _encode("sparse", SPARSE, 32, "half", "dim - 2", f"{ANY} {precision}")
    yield _encode("far", [131071, 1048575], 128, "interleaved", "dim", f"{ANY} positions_ignored bf16_frequencies")
    yield _encode("float64", [65535, 1048575], 32, "half", "dim", "f32_angles", models=("f64",))
    rows = "starts_at_one positions_shared_across_batch wrong_axis positions_ignored wrong_base"
    rows += " int16_positions positions_clamped positions_modulo"
    for layout in OTHER:
        for divisor in DIVISORS:
            more = {"models": ("f64", "f32"), "base": 500000}
            yield _encode("places", PLACES[:2], 6, layout, divisor, rows, **more)
            yield _encode("beyond-f32", PLACES[2], 6, layout, divisor, "f32_angles f32_positions", models=("f64",))
            yield _encode("fractional", HALVES, 6, layout, divisor, "starts_at_one degrees positions_ignored")
            yield _encode("negative", BELOW, 6, layout, divisor, "starts_at_one degrees positions_ignored")
    batch = [[0, 1, 2, 3, 4], [7, 5000, 7, 3, 0]]
    yield _encode("batch", batch, 6, "half", "dim", ANY + " positions_ignored positions_shared_across_batch")
    note = "One token at position 5."
    yield _encode("offset", [[5], [5]], 10, "interleaved", "dim - 2", ANY + " positions_ignored", comment=note)


def _frequencies_of(dim, divisor, base=10**4):
    return [frequency(t, dim, mpmath.mpf(base), divisor, mpmath) for t in range(dim // 2)]


def _rows(positions, frequencies, layout):
    """`definition` of every position."""
    at = np.array(positions, dtype=object)
    rows = [definition(position, frequencies, layout, mpmath) for position in at.ravel()]
    return np.array(rows, dtype=object).reshape(*at.shape, 2 * len(frequencies))


def _frequencies(dim, divisor, base=10**4):
    w = _frequencies_of(dim, divisor, base)
    id = f"sinusoidal/{divisor.replace(' - ', '-')}/d{dim}-{'b1e4' if base == 10**4 else 'b5e5'}/frequencies"
    params = {"dim": dim, "base": float(base), "divisor": divisor}
    return case(id, "frequencies", params, {}, w, {"phase": [v * growth(v) for v in w]}, "divisor wrong_base")


def _encode(probe, positions, dim, layout, divisor, kills, *, base=10**4, **rest):
    w, at = _frequencies_of(dim, divisor, base), np.array(positions)
    values = _rows(at.astype(object), w, layout)
    angles = np.abs(at.astype(object)[..., None] * np.array([v * growth(v) for v in w]))
    columns = [t for t in range(dim // 2) for _ in (0, 1)] if layout == "interleaved" else [*range(dim // 2)] * 2
    id = f"sinusoidal/{layout}-{divisor.replace(' - ', '-')}/d{dim}-{'b1e4' if base == 10**4 else 'b5e5'}/{probe}"
    params = {"dim": dim, "base": float(base), "divisor": divisor, "layout": layout}
    cond, stages = {"amp": terms(3, values), "phase": angles[..., columns]}, {"frequencies": w} if dim <= 64 else {}
    return case(id, "encode", params, {"positions": at}, values, cond, kills, stages=stages, **rest)
