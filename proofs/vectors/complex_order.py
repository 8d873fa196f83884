"""Complex Order: every feature of a word is a wave in its position."""

# Over budget: encodings and scores, in two variants, in no order, halved, below 0 and far

import mpmath
import numpy as np

from posref.check import rounded
from proofs.absolute.complex_order import definition
from proofs.vectors import *

SOURCES = (
    "Wang et al., Encoding Word Order in Complex Embeddings, arXiv 1912.12333, section 2",
    "iclr-complex-order/complex-order 4c4ec24, TEXT CLASSIFICATION/CNN/model_cnn/Complex_order.py: no phase",
)

CONVENTIONS = {
    "axes": "amplitude, frequency and phase are (batch, n, d), positions (batch, n)",
    "parts": "complex results have a last axis of two, real and imaginary part",
    "op encode": "r e^{i (w m + theta)}",
    "op scores": "Re(q conj(k)^T) of encoded queries and keys: (batch, n_query, n_key)",
    "op released_frequencies": "v / 10000^(2t/dim), t = 0 .. dim - 1",
}
REJECTED = (("complex_order/released/d2/encode", "phase", {"phase": cut}, "shape", "One phase for each amplitude."),)
REASONS = """
encode released no_phase | the released code has no phase: it is 0
encode released phase_sign | the released code has no phase: it is 0
scores shared shared_frequency | words share their frequencies in this variant: the mistake is the rule
scores shared starts_at_one | with shared frequencies a score depends on the offset alone
"""

POSITIONS = [[0, 1, 2, 7, 300], [5, 0, 48047, 9, 1]]
ANY = "sign starts_at_one shared_frequency turns"


def vectors():
    yield _encode("paper", POSITIONS, 3, ANY + " no_phase phase_sign")
    yield _encode("released", POSITIONS, 2, ANY, phased=False)
    yield _scores("paper", shared=False)
    yield _scores("shared", shared=True)
    yield _scores("shared", shared=True, far=BEYOND - 19)
    yield _encode("paper", PLACES[2:], 3, NARROW, probe="beyond-f32")
    yield _encode("released", PLACES[2:], 2, NARROW, phased=False, probe="beyond-f32")
    for variant in ("paper", "released"):
        given = {"phased": variant == "paper"}
        yield _encode(variant, PLACES[:2], 2, f"{WRAPPED} positions_ignored sign", probe="places", **given)
        yield _encode(variant, HALVES[None], 2, "positions_ignored sign", probe="fractional", **given)
        yield _encode(variant, BELOW[None], 2, "positions_ignored sign", probe="negative", **given)
    yield _scores("paper", shared=False, far=BEYOND - 19)
    for shared in (False, True):
        variant = "shared" if shared else "paper"
        yield _scores(variant, shared=shared, at=(PLACES[:2, ::2], PLACES[:2, 1:]))
        halves = np.array([[2.5, 0.25], [7, 4.75]]), np.array([[0.5, 2.25, 9], [4.25, 40, 1.5]])
        yield _scores(variant, shared=shared, at=halves, probe="fractional")
        below = BELOW[:2] + np.array([[0], [-7]]), BELOW[1:] + np.array([[3], [-40]])
        yield _scores(variant, shared=shared, at=below, probe="negative")
    v, dim = [0, 1, 7, 30521], 6
    rows = [[word / mpmath.mpf(10000) ** (mpmath.mpf(2 * t) / dim) for t in range(dim)] for word in v]
    id = f"complex_order/released/d{dim}/frequencies"
    cond = {"phase": [[x * growth(mpmath.mpf(10000) ** (-mpmath.mpf(2 * t) / dim)) for t, x in enumerate(row)] for row in rows]}
    yield case(id, "released_frequencies", {"dim": dim}, {"words": v}, rows, cond, "half_schedule")


def _word(lead, tag, phased=True):
    """Amplitude, frequency and phase, as mpf."""
    parts = [painted(lead, tag), painted(lead, tag + 1) / 4, painted(lead, tag + 7) if phased else np.zeros(lead)]
    return parts, [*map(numbers, parts)]


def _waves(positions, r, w, theta):
    """The two parts, on a last axis."""
    m = np.array(positions, dtype=object)[..., None]
    parts = np.frompyfunc(lambda m, r, w, theta: definition(m, r, w, theta, mpmath), 4, 2)(m, r, w, theta)
    return np.stack(parts, axis=-1)


def _sensitivity(positions, r, w, theta):
    """amp: cosine (2) and product (1); phase: the angle after a product and a sum."""
    m = np.array(positions, dtype=object)[..., None]
    phase = abs(r) * (abs(w * m) + abs(w * m + theta))
    return {"amp": terms(3, _waves(positions, r, w, theta)), "phase": np.stack([phase, phase], axis=-1)}


def _encode(variant, positions, dim, mistakes, *, phased=True, probe="encode"):
    (r, w, theta), word = _word((*np.shape(positions), dim), 1, phased)
    id = f"complex_order/{variant}/d{dim}/{probe}"
    tensors, cond = {"positions": positions, "amplitude": r, "frequency": w, "phase": theta}, _sensitivity(positions, *word)
    comment, models = "" if phased else "The released code has no phase.", ("f64",) if probe == "beyond-f32" else tuple(MODELS)
    return case(id, "encode", {}, tensors, _waves(positions, *word), cond, mistakes, models=models, comment=comment)


def _rounded(x, way, bits):
    """The scores as sums of real products; angles are made in float32, and words are exact there."""

    def scores(**x):
        sides = []
        for side in "qk":
            w, theta = (rounded.made(np.asarray(x[f"{side}_{name}"]), way, True) for name in ("frequency", "phase"))
            angle = w * x[f"{side}_positions"][..., None] + theta
            waves = [x[f"{side}_amplitude"] * f(angle) for f in (np.cos, np.sin)]
            sides.append(np.concatenate(waves, axis=-1))
        return sides[0] @ np.swapaxes(sides[1], -1, -2)

    return rounded.run(scores, x, way, bits, ())


def _scores(variant, *, shared, far=0, at=None, probe="places"):
    here, there = (np.array([[3, 40], [0, 7]]) + far, np.array([[0, 3, 50], [11, 1, 40]]) + far) if at is None else at
    (r, w, theta), q_word = _word((2, 2, 4), 1)
    (rho, u, eta), k_word = _word((2, 3, 4), 8)
    if shared:
        w, u = (np.broadcast_to(painted((4,), 6), part.shape) for part in (w, u))
        q_word[1], k_word[1] = (numbers(part) for part in (w, u))
    q, k = _waves(here, *q_word), _waves(there, *k_word)
    flat = lambda x: x.reshape(*x.shape[:-2], -1)
    sides = (q, _sensitivity(here, *q_word)), (k, _sensitivity(there, *k_word))
    pairs = [stored(*rearranged(flat, side)) for side in sides]
    q_tensors = {"q_positions": here, "q_amplitude": r, "q_frequency": w, "q_phase": theta}
    tensors = q_tensors | {"k_positions": there, "k_amplitude": rho, "k_frequency": u, "k_phase": eta}
    id = f"complex_order/{variant}/d4/scores" + "-far" * bool(far) + f"-{probe}" * (at is not None)
    kills = "no_conjugate imaginary modulus" + f" {NARROW}" * bool(far) + f" {WRAPPED}" * (at is not None and probe == "places")
    comment = "All words share the frequencies, as in RoPE." if shared else ""
    models = ("f64",) if far else tuple(name for name in MODELS if at is None or probe != "places" or name != "f16-all")
    honest = lambda way, bits: _rounded(tensors, way, bits)
    return case(id, "scores", {}, tensors, *dot(*pairs), kills, honest=honest, models=models, comment=comment)
