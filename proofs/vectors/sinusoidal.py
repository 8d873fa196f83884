"""Sinusoidal encoding: sines and cosines of geometrically spaced frequencies."""

import mpmath
import numpy as np

from proofs.absolute.sinusoidal import definition, frequency
from proofs.vectors import case, flag, growth, narrow, terms

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


FLAGS = {
    "other_layout": flag(
        "columns of the other layout",
        "Sines and cosines are interleaved instead of concatenated, or the reverse.",
        "A permutation of the columns: harmless in training, wrong with somebody's weights.",
        "tensorflow/tensor2tensor#391",
        "facebookresearch/fairseq#4648",
        "allenai/allennlp#2993",
    ),
    "cos_first": flag(
        "cosines first", "Sine and cosine columns are exchanged.", "Position 0 is (1, 0, ..) instead of (0, 1, ..)."
    ),
    "divisor": flag(
        "the other divisor",
        "dim - 2 instead of dim, or the reverse.",
        "Frequencies drift apart towards the last pair, 3.7 % at dim 512.",
        "wenet-e2e/wenet#2141",
        "tensorflow/tensor2tensor#1423",
    ),
    "starts_at_one": flag("counts from 1", "Positions are one too large.", "Token 0 has the encoding of token 1."),
    "positions_ignored": flag(
        "0, 1, 2, .. instead of the positions given", "Positions are taken from the place in the sequence.", "Offsets are lost."
    ),
    "positions_shared_across_batch": flag(
        "positions of the first batch row", "Every row uses the positions of row 0.", "Padded batches go wrong."
    ),
    "degrees": flag("degrees", "The angle is taken in degrees.", "All frequencies are 57.3 times too small."),
    "turns": flag("full turns", "The angle is multiplied by 2 pi.", "The first pair is constant at whole positions."),
    "wrong_base": flag("base 1000", "1000 instead of 10000.", "Slow pairs turn too fast."),
    "f16_positions": flag("positions in float16", "Positions beyond 2048 collide.", "Neighbors get one encoding."),
    "bf16_positions": flag("positions in bfloat16", "Positions beyond 256 collide.", "Neighbors get one encoding."),
    "bf16_frequencies": flag(
        "frequencies in bfloat16", "w is rounded to 8 bits.", "Phase errors of radians beyond a thousand positions."
    ),
    "bf16_angles": flag(
        "angles in bfloat16", "The product of position and frequency is rounded to 8 bits.", "As bf16_frequencies."
    ),
    "f32_angles": flag(
        "float32 where float64 is meant",
        "Angles are rounded to 24 bits.",
        "Up to 0.06 rad at a million positions; only a float64 result can be told from it.",
    ),
}

OTHER = {"half": "interleaved", "interleaved": "half"}
DIVISORS = ("dim", "dim - 2")
SPARSE = (0, 1, 2, 100, 257, 2049, 4097, 48040, 65503)
ANY = "other_layout cos_first divisor starts_at_one degrees turns wrong_base"


def vectors():
    for dim in (4, 6, 10, 384, 512):
        for divisor in DIVISORS:
            yield _frequencies(dim, divisor)
    for layout in OTHER:
        for divisor in DIVISORS:
            yield _encode("tiny", range(6), 8, layout, divisor, ANY)
    precision = "positions_ignored f16_positions bf16_positions bf16_frequencies bf16_angles"
    yield _encode("sparse", SPARSE, 64, "interleaved", "dim", f"{ANY} {precision}")
    yield _encode("sparse", SPARSE, 32, "half", "dim - 2", f"{ANY} {precision}")
    yield _encode("far", [131071, 1048575], 128, "interleaved", "dim", f"{ANY} positions_ignored bf16_frequencies")
    yield _encode("float64", [65535, 1048575], 32, "half", "dim", "f32_angles", models=("f64",))
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


def _mistake(name, positions, dim, layout, divisor):
    """What `encode` gives with the mistake put in."""
    w, at = _frequencies_of(dim, divisor), np.array(positions, dtype=object)
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


def _frequencies(dim, divisor):
    w = _frequencies_of(dim, divisor)
    return case(
        f"sinusoidal/{divisor.replace(' - ', '-')}/d{dim}-b1e4/frequencies",
        op="frequencies",
        params={"dim": dim, "base": 10000.0, "divisor": divisor},
        tensors={},
        expected=w,
        cond={"phase": [v * growth(v) for v in w]},
        mistakes={
            "divisor": _frequencies_of(dim, *set(DIVISORS) - {divisor}),
            "wrong_base": _frequencies_of(dim, divisor, 1000),
        },
    )


def _encode(probe, positions, dim, layout, divisor, flags, **rest):
    w, at = _frequencies_of(dim, divisor), np.array(positions)
    values = _rows(at.astype(object), w, layout)
    angles = np.abs(at.astype(object)[..., None] * np.array([v * growth(v) for v in w]))
    columns = [t for t in range(dim // 2) for _ in (0, 1)] if layout == "interleaved" else [*range(dim // 2)] * 2
    return case(
        f"sinusoidal/{layout}-{divisor.replace(' - ', '-')}/d{dim}-b1e4/{probe}",
        op="encode",
        params={"dim": dim, "base": 10000.0, "divisor": divisor, "layout": layout},
        tensors={"positions": at},
        stages={"frequencies": w} if dim <= 64 else {},
        expected=values,
        cond={"amp": terms(3, values), "phase": angles[..., columns]},
        mistakes={name: _mistake(name, at.astype(object), dim, layout, divisor) for name in flags.split()},
        **rest,
    )
