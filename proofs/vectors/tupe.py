"""TUPE: words and positions untied, and [CLS] untied from positions."""

# Over budget: both conventions, with and without resets, masks and two texts

import mpmath
import numpy as np

from posref.relative import tupe
from proofs.relative.tupe import every, reset
from proofs.vectors import *

SOURCES = (
    "Ke, He, Liu, Rethinking Positional Encoding in Language Pre-training, arXiv 2006.15595, Eqs. (7) to (11)",
    "guolinke/TUPE, fairseq/modules/transformer_sentence_encoder.py",
)

CONVENTIONS = {
    "axes": "q, k, v are (batch, heads, n, d_head), t and b (heads, n, n), thetas (heads,), p (n, d), u_q and u_k (heads, d, "
    "d_head)",
    "convention": "paper: reset(t + b); released: reset(t) + b",
    "op attend": "softmax(scores) v",
    "op positional": "scale (p U_Q) . (p U_K)",
    "op reset": "theta_1 in row 0, theta_2 in the rest of column 0, unchanged otherwise",
    "op scores": "scale q . k + reset of the position scores t, and the bias b; without b TUPE-A",
    "op untie": "reset of t with the extra row of the released code: theta_1 = t_00, theta_2 = t_11 of (n + 1, n + 1)",
    "scale": "1/sqrt(2 d_head)",
}
REJECTED = (("tupe/untied/h3-n5/reset", "no-theta", {"theta_2": cut}, "shape", "One number for every head."),)
REASONS = """
mutant reset: to_cls = * | position scores of a text with itself are square
"""

TOKENS, SCALE = 5, mpmath.mpf(1) / 4


def vectors():
    yield _positional("tiny", "projections_exchanged scaled_by_sqrt_d position_not_scaled")
    yield _reset("reset", "thetas_swapped column_over_row no_reset row_alone theta_of_the_first_head")
    yield _untie()
    common = "thetas_swapped column_over_row no_reset row_alone scaled_by_sqrt_d"
    yield _scores("a", "paper", False, common)
    for convention in tupe.CONVENTIONS:
        yield _scores("r", convention, True, common + " other_convention bias_transposed no_bias")
    yield _attend("released", "no_reset other_convention bias_transposed no_bias")
    yield _attend("released", "scale_ignored heads_exchanged", None, 256, models=("f64", "f32"))
    padded = np.array([[1, 1, 1, 1, 0], [1, 0, 1, 1, 0]])[:, None, None] | np.eye(TOKENS, dtype=int)
    yield _attend("released", "no_reset no_mask mask_inverted", padded, mpmath.mpf(3) / 16)


def _positional(probe, mistakes):
    p, u_q, u_k = painted((TOKENS, 6), 1), painted((3, 6, 8), 2), painted((3, 6, 8), 4)
    queries, keys = (dot(exact(p[None]), exact(np.swapaxes(u, -1, -2))) for u in (u_q, u_k))
    id = f"tupe/untied/h3-d6-e8/positional-{probe}"
    return case(id, "positional", {"scale": 0.25}, {"p": p, "u_q": u_q, "u_k": u_k}, *dot(queries, keys, SCALE), mistakes)


def _resets(t, theta_1, theta_2):
    """Eq. (9) for every head; t may carry anything that numpy can index."""
    return every(lambda h, i, j: reset(t[h, i, j], theta_1[h], theta_2[h], i, j), 3, TOKENS, TOKENS)


def _parts():
    """t, b, theta_1, theta_2."""
    return painted((3, TOKENS, TOKENS), 6), painted((3, TOKENS, TOKENS), 8), painted((3,), 9), painted((3,), 10)


def _reset(probe, mistakes):
    t, _, one, two = _parts()
    id, tensors = f"tupe/untied/h3-n{TOKENS}/{probe}", {"t": t, "theta_1": one, "theta_2": two}
    return case(id, "reset", {}, tensors, _resets(t, one, two), kills=mistakes, comment="Entries of the inputs, unchanged.")


def _untie():
    t = painted((3, TOKENS + 1, TOKENS + 1), 11)
    inner = t[:, 1:, 1:]
    id, expected = f"tupe/released/h3-n{TOKENS}/untie", _resets(inner, t[:, 0, 0], t[:, 1, 1])
    comment = "Entries of the input, unchanged."
    return case(id, "untie", {}, {"t": t}, expected, kills="extra_row_kept thetas_swapped no_reset", comment=comment)


def _all_scores(q, k, t, one, two, b, convention, scale=SCALE):
    """Scores and their sensitivities; b is None for TUPE-A."""
    content = dot(exact(q), exact(k), scale)
    if b is None:
        return total(content, exact(_resets(t, one, two)))
    if convention == "released":
        return total(content, exact(_resets(t, one, two)), exact(b))
    value, cond = total(exact(t), exact(b))
    zero = np.zeros(3, dtype=int)
    own = {name: _resets(each, zero, zero) for name, each in cond.items()}
    return total(content, (_resets(value, one, two), own))


def _case(op, probe, convention, tensors, result, mistakes, scale=SCALE, **rest):
    id = f"tupe/{convention}/h3-n{TOKENS}-e8/{op}-{probe}"
    return case(id, op, {"scale": float(scale), "convention": convention}, tensors, *result, mistakes, **rest)


def _scores(probe, convention, biased, mistakes):
    q, k, (t, b, one, two) = painted((2, 3, TOKENS, 8), 1), painted((2, 3, TOKENS, 8), 2), _parts()
    tensors = {"q": q, "k": k, "t": t, "theta_1": one, "theta_2": two} | ({"b": b} if biased else {})
    result = _all_scores(q, k, t, one, two, b if biased else None, convention)
    return _case("scores", probe, convention, tensors, result, mistakes)


def _attend(convention, mistakes, seen=None, scale=SCALE, models=tuple(MODELS)):
    batch = 2 if len(models) > 2 else 1
    q, k, v = (painted((batch, 3, TOKENS, d), tag) / by for d, tag, by in ((8, 1, 4), (8, 2, 1), (4, 4, 1)))
    t, b, one, two = _parts()
    scores = _all_scores(q, k, t, one, two, b, convention, scale)
    result = average(softmax(scores, None if seen is None else seen != 0, models=models), exact(v))
    tensors = {"q": q, "k": k, "v": v, "t": t, "theta_1": one, "theta_2": two, "b": b}
    tensors |= {} if seen is None else {"seen": seen}
    probe = "masked" if seen is not None else "r" if scale == SCALE else "large"
    return _case("attend", probe, convention, tensors, result, mistakes, scale, models=models)
