"""Sinusoidal encoding: sines and cosines of geometrically spaced frequencies."""

import mpmath
import numpy as np

from proofs.absolute.sinusoidal import definition, frequency
from proofs.vectors import HALVES, PLACES, case, growth, narrow, terms

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


OTHER = {"half": "interleaved", "interleaved": "half"}
DIVISORS = ("dim", "dim - 2")
SPARSE = (0, 1, 2, 100, 257, 2049, 4097, 48040, 65503)
ANY = "other_layout cos_first divisor starts_at_one degrees turns wrong_base"


def vectors():
    for dim in (4, 6, 10, 384, 512):
        for divisor in DIVISORS:
            yield _frequencies(dim, divisor)
    yield case(
        "sinusoidal/dim-2/d2-b1e4/frequencies",
        op="frequencies",
        params={"dim": 2, "base": 10000.0, "divisor": "dim - 2"},
        tensors={},
        expected=[mpmath.mpf(1)],
        cond={"phase": [growth(mpmath.mpf(1))]},
        comment="One pair is the first and the last: the first is 1.",
    )
    for divisor in DIVISORS:
        yield _frequencies(6, divisor, 500000, kills="wrong_base")
    for layout in OTHER:
        for divisor in DIVISORS:
            yield _encode("tiny", range(6), 8, layout, divisor, ANY)
    precision = "positions_ignored f16_positions bf16_positions bf16_frequencies bf16_angles"
    yield _encode("sparse", SPARSE, 64, "interleaved", "dim", f"{ANY} {precision}")
    yield _encode("sparse", SPARSE, 32, "half", "dim - 2", f"{ANY} {precision}")
    yield _encode("far", [131071, 1048575], 128, "interleaved", "dim", f"{ANY} positions_ignored bf16_frequencies")
    yield _encode("float64", [65535, 1048575], 32, "half", "dim", "f32_angles", models=("f64",))
    rows = "positions_shared_across_batch wrong_axis positions_ignored wrong_base"
    rows += " int16_positions positions_clamped positions_modulo"
    for layout in OTHER:
        for divisor in DIVISORS:
            more = {"models": ("f64", "f32"), "base": 500000}
            yield _encode("places", PLACES[:2], 6, layout, divisor, "starts_at_one", kills=rows, **more)
            yield _encode("beyond-f32", PLACES[2], 6, layout, divisor, "f32_angles", kills="f32_positions", models=("f64",))
            yield _encode("fractional", HALVES, 6, layout, divisor, "starts_at_one degrees", kills="positions_ignored")
    batch = [[0, 1, 2, 3, 4], [7, 5000, 7, 3, 0]]
    yield _encode("batch", batch, 6, "half", "dim", ANY + " positions_ignored positions_shared_across_batch")
    yield _encode(
        "offset", [[5], [5]], 10, "interleaved", "dim - 2", ANY + " positions_ignored", comment="One token at position 5."
    )


def _frequencies_of(dim, divisor, base=10**4):
    return [frequency(t, dim, mpmath.mpf(base), divisor, mpmath) for t in range(dim // 2)]


def _rows(positions, frequencies, layout):
    """`definition` of every position."""
    at = np.array(positions, dtype=object)
    rows = [definition(position, frequencies, layout, mpmath) for position in at.ravel()]
    return np.array(rows, dtype=object).reshape(*at.shape, 2 * len(frequencies))


def _mistake(name, positions, dim, layout, divisor, base=10**4):
    """What `encode` gives with the mistake put in."""
    w, at = _frequencies_of(dim, divisor, base), np.array(positions, dtype=object)
    right = {"positions": at, "frequencies": w, "layout": layout}
    if name == "cos_first":
        rows = _rows(at, w, "half")
        rows = np.concatenate([rows[..., dim // 2 :], rows[..., : dim // 2]], axis=-1)
        return rows if layout == "half" else np.stack(np.split(rows, 2, axis=-1), axis=-1).reshape(rows.shape)
    if name in ("bf16_angles", "f32_angles"):
        bits = 8 if name == "bf16_angles" else 24
        angles = [[narrow(narrow(v, bits) * position, bits) for v in w] for position in at]
        return np.array([definition(1, row, layout, mpmath) for row in angles], dtype=object)
    changes = {
        "other_layout": lambda: {"layout": OTHER[layout]},
        "divisor": lambda: {"frequencies": _frequencies_of(dim, *set(DIVISORS) - {divisor})},
        "wrong_base": lambda: {"frequencies": _frequencies_of(dim, divisor, 1000)},
        "degrees": lambda: {"frequencies": [v * mpmath.pi / 180 for v in w]},
        "turns": lambda: {"frequencies": [v * 2 * mpmath.pi for v in w]},
        "bf16_frequencies": lambda: {"frequencies": [narrow(v, 8) for v in w]},
        "starts_at_one": lambda: {"positions": at + 1},
        "positions_ignored": lambda: {"positions": np.broadcast_to(np.arange(at.shape[-1]).astype(object), at.shape)},
        "positions_shared_across_batch": lambda: {"positions": np.broadcast_to(at[0], at.shape)},
        "f16_positions": lambda: {"positions": np.array([narrow(p, 11) for p in at])},
        "bf16_positions": lambda: {"positions": np.array([narrow(p, 8) for p in at])},
    }
    return _rows(**right | changes[name]())


def _frequencies(dim, divisor, base=10**4, **rest):
    w = _frequencies_of(dim, divisor, base)
    return case(
        f"sinusoidal/{divisor.replace(' - ', '-')}/d{dim}-{'b1e4' if base == 10**4 else 'b5e5'}/frequencies",
        op="frequencies",
        params={"dim": dim, "base": float(base), "divisor": divisor},
        tensors={},
        expected=w,
        cond={"phase": [v * growth(v) for v in w]},
        mistakes={"divisor": _frequencies_of(dim, *set(DIVISORS) - {divisor}, base)}
        | ({} if rest else {"wrong_base": _frequencies_of(dim, divisor, 1000)}),
        **rest,
    )


def _encode(probe, positions, dim, layout, divisor, flags, *, base=10**4, **rest):
    w, at = _frequencies_of(dim, divisor, base), np.array(positions)
    values = _rows(at.astype(object), w, layout)
    angles = np.abs(at.astype(object)[..., None] * np.array([v * growth(v) for v in w]))
    columns = [t for t in range(dim // 2) for _ in (0, 1)] if layout == "interleaved" else [*range(dim // 2)] * 2
    return case(
        f"sinusoidal/{layout}-{divisor.replace(' - ', '-')}/d{dim}-{'b1e4' if base == 10**4 else 'b5e5'}/{probe}",
        op="encode",
        params={"dim": dim, "base": float(base), "divisor": divisor, "layout": layout},
        tensors={"positions": at},
        stages={"frequencies": w} if dim <= 64 else {},
        expected=values,
        cond={"amp": terms(3, values), "phase": angles[..., columns]},
        mistakes={name: _mistake(name, at.astype(object), dim, layout, divisor, base) for name in flags.split()},
        **rest,
    )
