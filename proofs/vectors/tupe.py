"""TUPE: words and positions untied, and [CLS] untied from positions."""

import mpmath
import numpy as np

from posref.relative import tupe
from proofs.relative.tupe import every, reset
from proofs.vectors import average, case, dot, exact, painted, softmax, total

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


def _heads(how, size=TOKENS):
    """An object array of how(head, i, j)."""
    return every(how, 3, size, size)


def _positional(probe, mistakes):
    p, u_q, u_k = painted((TOKENS, 6), 1), painted((3, 6, 8), 2), painted((3, 6, 8), 4)

    def result(mistake=None):
        first, second = (u_k, u_q) if mistake == "projections_exchanged" else (u_q, u_k)
        scale = {"scaled_by_sqrt_d": SCALE * mpmath.sqrt(2), "position_not_scaled": 1}.get(mistake, SCALE)
        queries, keys = (dot(exact(p[None]), exact(np.swapaxes(u, -1, -2))) for u in (first, second))
        return dot(queries, keys, scale)

    expected, cond = result()
    return case(
        f"tupe/untied/h3-d6-e8/positional-{probe}",
        op="positional",
        params={"scale": 0.25},
        tensors={"p": p, "u_q": u_q, "u_k": u_k},
        expected=expected,
        cond=cond,
        mistakes={mistake: result(mistake)[0] for mistake in mistakes.split()},
    )


def _resets(t, theta_1, theta_2, mistake=None):
    """Eq. (9) for every head, with the mistake put in; t may carry anything that numpy can index."""
    if mistake == "thetas_swapped":
        theta_1, theta_2 = theta_2, theta_1
    if mistake == "theta_of_the_first_head":
        theta_1, theta_2 = (np.broadcast_to(theta[:1], theta.shape) for theta in (theta_1, theta_2))

    def value(h, i, j):
        if mistake == "no_reset" or (mistake == "row_alone" and i):
            return t[h, i, j]
        if mistake == "column_over_row" and j == 0:
            return theta_2[h]
        return reset(t[h, i, j], theta_1[h], theta_2[h], i, j)

    return _heads(value)


def _parts():
    """t, b, theta_1, theta_2."""
    return painted((3, TOKENS, TOKENS), 6), painted((3, TOKENS, TOKENS), 8), painted((3,), 9), painted((3,), 10)


def _reset(probe, mistakes):
    t, _, one, two = _parts()
    return case(
        f"tupe/untied/h3-n{TOKENS}/{probe}",
        op="reset",
        params={},
        tensors={"t": t, "theta_1": one, "theta_2": two},
        expected=_resets(t, one, two),
        mistakes={mistake: _resets(t, one, two, mistake) for mistake in mistakes.split()},
        comment="Entries of the inputs, unchanged.",
    )


def _untie():
    t = painted((3, TOKENS + 1, TOKENS + 1), 11)
    inner = t[:, 1:, 1:]
    return case(
        f"tupe/released/h3-n{TOKENS}/untie",
        op="untie",
        params={},
        tensors={"t": t},
        expected=_resets(inner, t[:, 0, 0], t[:, 1, 1]),
        mistakes={
            "extra_row_kept": _resets(inner, t[:, 0, 0], t[:, 1, 0]),
            "thetas_swapped": _resets(inner, t[:, 1, 1], t[:, 0, 0]),
            "no_reset": inner,
        },
        comment="Entries of the input, unchanged.",
    )


def _all_scores(q, k, t, one, two, b, convention, mistake):
    """Scores and their sensitivities; b is None for TUPE-A."""
    if mistake == "bias_transposed":
        b = np.swapaxes(b, -1, -2)
    if mistake == "other_convention":
        convention = tupe.CONVENTIONS[1 - tupe.CONVENTIONS.index(convention)]
    content = dot(exact(q), exact(k), SCALE * (mpmath.sqrt(2) if mistake == "scaled_by_sqrt_d" else 1))
    if b is None or mistake == "no_bias":
        return total(content, exact(_resets(t, one, two, mistake)))
    if convention == "released":
        return total(content, exact(_resets(t, one, two, mistake)), exact(b))
    value, cond = total(exact(t), exact(b))
    zero = np.zeros(3, dtype=int)
    own = {name: _resets(each, zero, zero, mistake) for name, each in cond.items()}
    return total(content, (_resets(value, one, two, mistake), own))


def _case(op, probe, convention, tensors, result, mistakes):
    expected, cond = result()
    return case(
        f"tupe/{convention}/h3-n{TOKENS}-e8/{op}-{probe}",
        op=op,
        params={"scale": 0.25, "convention": convention},
        tensors=tensors,
        expected=expected,
        cond=cond,
        mistakes={mistake: result(mistake)[0] for mistake in mistakes.split()},
    )


def _scores(probe, convention, biased, mistakes):
    q, k, (t, b, one, two) = painted((2, 3, TOKENS, 8), 1), painted((2, 3, TOKENS, 8), 2), _parts()
    tensors = {"q": q, "k": k, "t": t, "theta_1": one, "theta_2": two} | ({"b": b} if biased else {})
    result = lambda mistake=None: _all_scores(q, k, t, one, two, b if biased else None, convention, mistake)
    return _case("scores", probe, convention, tensors, result, mistakes)


def _attend(convention, mistakes):
    q, k, v = painted((2, 3, TOKENS, 8), 1) / 4, painted((2, 3, TOKENS, 8), 2), painted((2, 3, TOKENS, 4), 4)
    t, b, one, two = _parts()

    def result(mistake=None):
        return average(softmax(_all_scores(q, k, t, one, two, b, convention, mistake)), exact(v))

    tensors = {"q": q, "k": k, "v": v, "t": t, "theta_1": one, "theta_2": two, "b": b}
    return _case("attend", "r", convention, tensors, result, mistakes)
