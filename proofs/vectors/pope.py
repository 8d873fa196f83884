"""PoPE: queries and keys in polar coordinates, and their scores."""

# Over budget: encodings of both sides and scores, and their sensitivities where exp overflows

import itertools

import mpmath
import numpy as np

from proofs.rotary.pope import clamped, definition, softplus
from proofs.rotary.rope import frequency
from proofs.vectors import *
from proofs.vectors import BITS

SOURCES = (
    'Gopalakrishnan et al., Decoupling the "What" and "Where", arXiv 2509.10534',
    "lucidrains/PoPE-pytorch, PoPE_pytorch/pope.py",
)

CONVENTIONS = {
    "axes": "x, q, k (batch, heads, n, dim); phases (heads, dim), as trained: to be clamped to [-2 pi, 0]",
    "positions": "(n,) or (batch, n)",
    "layout": "half: cosines, then sines; interleaved: in turn",
    "op encode": "softplus(x) (cos, sin) of position * base^(-c/dim), and of that plus the clamped phase for side key",
    "op scores": "scale times the products of encoded queries and encoded keys",
}
REJECTED = (
    ("pope/half-key/d6/near-2", "no-layout", {"layout": None}, "missing", "[cos | sin], or in turn."),
    ("pope/half-key/d6/near-2", "phases", {"phases": lambda p: p[:, :5]}, "shape", "A phase for every feature."),
    ("pope/half-key/d6/near-2", "heads", {"phases": lambda p: p[[0, 1, 1]]}, "shape", "Three rows of phases for two heads."),
)
REASONS = """
pair scores * phases_subtracted sign | two signs
"""

WITHDRAWN = {
    f"pope/{layout}-key/d6/near": "three values are the sine of 2 pi with 200 bits, 9e-62 to 3e-61, and not 0: take "
    f"pope/{layout}-key/d6/near-2"
    for layout in ("half", "interleaved")
}

LENGTHS = "no_softplus relu half_the_frequencies"
PHASES = "no_phases phases_subtracted phases_not_clamped phases_of_the_first_head"
ROWS = "positions_clamped positions_modulo bf16_positions int16_positions positions_shared_across_batch wrong_axis wrong_base"

LARGE = np.array([1000.0, -1000, 100, -100, 0.5, 1000, -0.25, 96]).reshape(1, 2, 2, 2)  # exp overflows


def vectors():
    for layout, side in itertools.product(("half", "interleaved"), ("query", "key")):
        own = f"{LENGTHS} cos_sin_swapped other_layout {PHASES if side == 'key' else 'phases_on_queries'}"
        yield _encode("near-2" if side == "key" else "near", [0, 5, 41], 6, layout, side, kills=own)
        yield _encode("places", PLACES[:2], 2, layout, side, base=500000, kills=ROWS, models=("f64", "f32"))
        yield _encode("beyond-f32", PLACES[2], 2, layout, side, kills="f32_positions f16_positions", models=("f64",))
        yield _encode("fractional", HALVES, 2, layout, side, kills="positions_ignored")
        yield _encode("negative", BELOW, 2, layout, side, kills="positions_ignored")
        yield _encode("large", [0, 5], 2, layout, side, x=LARGE, kills=LENGTHS, models=("f64", "f32"))
    own = f"{LENGTHS} {PHASES} scale_of_the_doubled_width sign"
    yield _scores("near", [0, 5, 2], [0, 5, 2, 7], 6, kills=own, models=MATH_IN_F32)
    yield _scores("decode", [7], [0, 1, 5, 7], 4, kills="queries_left_aligned row_for_position", models=MATH_IN_F32)
    yield _scores("places", PLACES[:2], PLACES[:2], 4, base=500000, kills=ROWS, models=("f64", "f32"))
    yield _scores("beyond-f32", FAR[-2:], FAR, 4, kills="f32_positions f16_positions", models=("f64",))
    yield _scores("fractional", HALVES[1:], HALVES, 4, kills="positions_ignored")
    yield _scores("negative", BELOW[1:], BELOW, 4, kills="positions_ignored")
    yield _scores("large", [0, 5], [0, 5], 2, x=LARGE, kills=LENGTHS, models=("f64", "f32"))


def _phases(dim):
    return 4 * painted((2, dim), 4)  # some above 0, some below -2 pi


@mpmath.workprec(BITS + 1500)  # the bits of 1 + exp(-1000), and of the sine of 2 pi, which is 0
def _pairs(x, positions, dim, base, side):
    """Cosines and sines of every feature, and their sensitivities: (value, cond), (value, cond)."""
    made = [[np.zeros(x.shape, dtype=object) for _ in range(3)] for _ in range(2)]
    at = np.broadcast_to(np.array(positions, dtype=object).reshape(-1, 1, x.shape[-2]), x.shape[:-1])
    phases = _phases(dim)
    for place in np.ndindex(*x.shape):
        w, length = frequency(place[-1], 2 * dim, mpmath.mpf(base)), softplus(mpmath.mpf(x[place]), mpmath)
        angle = mpmath.mpf(at[place[:-1]]) * w
        phase = clamped(mpmath.mpf(phases[place[-3], place[-1]]), 2 * mpmath.pi) if side == "key" else mpmath.mpf(0)
        # the sum of the angle and the phase is rounded, and pi is
        off = length * (abs(angle) * (growth(w) + 1) + 2 * abs(phase))
        for (value, moved, size), each in zip(made, definition(length, angle + phase, mpmath), strict=True):
            share = abs(each) / length
            # the exponential, what 1 + it rounds to, the logarithm, the sum, and the product
            value[place], moved[place], size[place] = each, off, terms(6, each) + terms(4, share)
    return [(value, {"phase": moved, "amp": size}) for value, moved, size in made]


def _joined(first, second, layout):
    both = np.stack([first, second], axis=-1 if layout == "interleaved" else -2)
    return both.reshape(*first.shape[:-1], -1)


def _encoded(x, positions, dim, base, side, layout):
    (cos, c), (sin, s) = _pairs(x, positions, dim, base, side)
    return _joined(cos, sin, layout), {name: _joined(c[name], s[name], layout) for name in c}


def _encode(name, positions, dim, layout, side, *, base=10000, x=None, **rest):
    positions = np.array(positions)
    x = painted((len(positions) if positions.ndim > 1 else 1, 2, positions.shape[-1], dim), 1) if x is None else x
    params = {"dim": dim, "base": float(base), "layout": layout, "side": side}
    tensors, answer = {"x": x, "positions": positions, "phases": _phases(dim)}, _encoded(x, positions, dim, base, side, layout)
    return case(f"pope/{layout}-{side}/d{dim}/{name}", "encode", params, tensors, *answer, **rest)


def _scores(name, queries, keys, dim, *, base=10000, x=None, **rest):
    queries, keys = np.array(queries), np.array(keys)
    batch = len(queries) if queries.ndim > 1 else 1
    q, k = painted((batch, 2, queries.shape[-1], dim), 1), painted((batch, 2, keys.shape[-1], dim), 2)
    q, k = (q, k) if x is None else (x, x[..., ::-1])
    sides = (q, queries, "query"), (k, keys, "key")
    pairs = [stored(*_encoded(x, positions, dim, base, side, "half")) for x, positions, side in sides]
    params = {"dim": dim, "base": float(base), "scale": 0.5}
    tensors = {"q": q, "k": k, "queries": queries, "keys": keys, "phases": _phases(dim)}
    return case(f"pope/scores/d{dim}/{name}", "scores", params, tensors, *dot(*pairs, 0.5), **rest)
