"""FoPE: pairs turned by mixtures of frequencies."""

import mpmath
import numpy as np

from proofs.rotary.fope import definition, still
from proofs.rotary.rope import frequency
from proofs.vectors import *

SOURCES = (
    "Hua et al., Fourier Position Embedding, arXiv 2412.17739",
    "TsinghuaC3I/Fourier-Position-Embedding, olmo/model.py FourierEmbedding",
)

CONVENTIONS = {
    "axes": "x (batch, heads, n, dim), coefficients (heads, kept, width), positions (n,) or (batch, n)",
    "pairs": "(t, t + dim/2); those from the width of the coefficients on stand still",
    "convention": "sin of the pairs that stand still: released 1, zero_phase 0",
    "op frequencies": "base^(-2t/dim) with length base^(-2t/dim) >= 2 pi",
    "op rotate": "pair u times cos' = sum_D cos(m w_D) C_Du and sin' = sum_D sin(m w_D) S_Du",
    "op step_eye": "ones at (u ceil(kept / width), u)",
}
REJECTED = (
    ("fope/released/d8-l1024-w2/narrow", "no-convention", {"convention": None}, "missing", "sin is 1 or 0 in still pairs."),
    ("fope/released/d8-l1024-w2/narrow", "kept", {"length": 8192}, "shape", "Four frequencies, and coefficients for three."),
    ("fope/eye/k3-w3/step", "width-0", {"width": 0}, "range", "Nothing turns."),
)
REASONS = """
mutant frequencies: *  ->  *length > 2 * np.pi? | w L of a rational base is algebraic, and 2 pi is not
"""

OWN = "cos_for_sin one_matrix no_noise of_the_first_head columns_normalized other_pairs other_padding still_pairs_dropped"
ROWS = "positions_clamped positions_modulo bf16_positions int16_positions positions_shared_across_batch wrong_axis wrong_base"


def vectors():
    for name, dim, base, length in (("60m", 64, 10000, 1024), ("1.2b", 128, 10000, 1024), ("intern", 128, 5000000, 262144)):
        yield _frequencies(name, dim, base, length)
    for kept, width in ((3, 3), (5, 2), (18, 16), (2, 3)):
        expected = [[int(row == u * -(-kept // width)) for u in range(width)] for row in range(kept)]
        flags = "plain_eye steps_rounded_down" if (kept, width) == (18, 16) else ""
        yield case(f"fope/eye/k{kept}-w{width}/step", "step_eye", {"kept": kept, "width": width}, {}, expected, kills=flags)
    for convention in ("released", "zero_phase"):
        yield _rotate("square", [0, 5, 600], 8, 1024, 3, convention, kills=f"{OWN} transposed low_frequencies_turn")
        yield _rotate("narrow", [0, 3, 11], 8, 1024, 2, convention, kills=OWN)
        yield _rotate("places", PLACES[:2], 4, 2.0**20, 1, convention, base=500000, kills=ROWS, models=("f64", "f32"))
        kills = "f32_positions f16_positions"
        yield _rotate("beyond-f32", PLACES[2], 4, 64, 1, convention, kills=kills, models=("f64",))
        yield _rotate("fractional", HALVES, 4, 64, 1, convention, kills="positions_ignored")
        yield _rotate("negative", BELOW, 4, 64, 1, convention, kills="positions_ignored")


def _kept(dim, base, length):
    w = [frequency(t, dim, mpmath.mpf(base)) for t in range(dim // 2)]
    return [each for each in w if each * length >= 2 * mpmath.pi]


def _frequencies(name, dim, base, length):
    w = _kept(dim, base, length)
    id, params = f"fope/frequencies/d{dim}-l{length}/{name}", {"dim": dim, "base": float(base), "length": length}
    return case(id, "frequencies", params, {}, w, {"phase": [x * growth(x) for x in w]}, "all_frequencies radians_for_turns")


def _rotate(name, positions, dim, length, width, convention, *, base=10000, **rest):
    positions, w = np.array(positions), _kept(dim, base, length)
    x = painted((len(positions) if positions.ndim > 1 else 1, 2, positions.shape[-1], dim), 1)
    noise = [painted((2, len(w), width), tag) / 2 for tag in (2, 4)]
    c, s = (each + np.eye(len(w), width) for each in noise)
    at = np.broadcast_to(positions.astype(object).reshape(-1, 1, positions.shape[-1]), x.shape[:-1])
    y, phase, amp = (np.zeros(x.shape, dtype=object) for _ in range(3))
    for *lead, i, u in np.ndindex(*x.shape[:-1], dim // 2):
        place = (*lead, i, u), (*lead, i, u + dim // 2)
        a, b = (mpmath.mpf(x[each]) for each in place)
        cos, sin, moved, size = *still(convention), mpmath.mpf(0), mpmath.mpf(1)
        if u < width:
            columns = [[mpmath.mpf(each) for each in m[lead[1], :, u]] for m in (c, s)]
            m = mpmath.mpf(at[(*lead, i)])
            cos, sin = definition(m, w, columns, mpmath)
            most = [max(abs(each) for each in entries) for entries in zip(*columns, strict=True)]
            moved = sum(abs(m * each) * growth(each) * top for each, top in zip(w, most, strict=True))
            size = sum(most)
        y[place[0]], y[place[1]] = a * cos - b * sin, a * sin + b * cos
        phase[place[0]] = phase[place[1]] = (abs(a) + abs(b)) * moved
        # a sum over the frequencies, the product and the sum of the pair
        amp[place[0]] = amp[place[1]] = terms(len(w) + 3, (abs(a) + abs(b)) * size)
    id = f"fope/{convention}/d{dim}-l{int(length)}-w{width}/{name}"
    params = {"dim": dim, "base": float(base), "length": length, "convention": convention}
    tensors = {"x": x, "positions": positions, "cos_coefficients": c, "sin_coefficients": s}
    return case(id, "rotate", params, tensors, y, {"phase": phase, "amp": amp}, **rest)
