"""TUPE: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref import attention
from posref.absolute import learned
from posref.ops import Mistake, inside, missing, using
from posref.ops.probe import painted
from posref.relative import tupe

positional = tupe.positional_scores


def reset(t, theta_1, theta_2):
    return tupe.reset(t, theta_1, theta_2)


def untie(t):
    return tupe.reset(*tupe.untie(t))


def scores(q, k, t, theta_1, theta_2, b=None, *, scale, convention):
    return tupe.scores(q, k, t, theta_1, theta_2, relative_bias=b, scale=scale, convention=convention)


def attend(q, k, v, t, theta_1, theta_2, b=None, *, scale, convention, mask=None):
    return attention.softmax(scores(q, k, t, theta_1, theta_2, b, scale=scale, convention=convention), mask) @ v


ARRAYS = {
    "q": lambda s: painted((s.batch, s.heads, s.n_key, s.head_dim), 1),
    "p": lambda s: painted((s.n_key, 6), 1),
    "u_q": lambda s: painted((s.heads, 6, s.head_dim), 2),
    "u_k": lambda s: painted((s.heads, 6, s.head_dim), 4),
    "t": lambda s: painted((s.heads, s.n_key, s.n_key), 6),
    "theta_1": lambda s: painted((s.heads,), 5),
    "theta_2": lambda s: -painted((s.heads,), 3),
    "b": lambda s: painted((s.heads, s.n_key, s.n_key), 10),
}


def _reset(change):
    """Another reset: change(right, t, cls_to_other, other_to_cls)."""
    return inside(tupe, "reset", lambda right: lambda t, a, b: change(right, t, a, b))


def _swapped(x):
    return np.swapaxes(x, -1, -2)


def _with_bias(change):
    return lambda a: change(a) if a.get("b") is not None else missing()


def _positional(a):
    """The scores of positions, without the scores of words."""
    return scores(0 * a.q, a.k, a.t, a.theta_1, a.theta_2, a.get("b"), scale=a.scale, convention=a.convention)


OTHER = {"paper": "released", "released": "paper"}

MISTAKES = {
    "other_convention": Mistake(using(convention=_with_bias(lambda a: OTHER[a.convention]))).words("""
        the bias is added after the reset instead of before it, or the reverse
        [CLS] sees offsets, or does not.
        Reset t + b for the paper's form; add b after the reset for the released one."""),
    "thetas_swapped": Mistake(_reset(lambda right, t, a, b: right(t, b, a))).words("""
        theta_1 and theta_2 are exchanged
        [CLS] is weighted wrongly.
        theta_1 fills the row of [CLS], theta_2 the rest of its column."""),
    "column_over_row": Mistake(_reset(lambda right, t, a, b: _swapped(right(_swapped(t), b, a))), kind="reset").words("""
        the column of [CLS] is written last, so ([CLS], [CLS]) is theta_2
        One score of [CLS] is wrong.
        Write the row last: ([CLS], [CLS]) is theta_1."""),
    "no_reset": Mistake(_reset(lambda right, t, a, b: t), kind="reset").words("""
        the reset of [CLS] is left out: it keeps its position
        [CLS] is pulled to the first words.
        Write theta_1 into the row of [CLS] and theta_2 into the rest of its column."""),
    "row_alone": Mistake(
        _reset(lambda right, t, a, b: np.where(np.arange(t.shape[-2])[:, None] == 0, a[..., None, None], t)), kind="reset"
    ).words("""
        theta_2 is left out: the column of [CLS] keeps its positions
        Far words see [CLS] less.
        Write theta_2 into column 0 of all other rows."""),
    "scaled_by_sqrt_d": Mistake(using(scale=lambda a: a.scale * np.sqrt(2.0))).words("""
        1/sqrt(d) instead of 1/sqrt(2 d)
        Scores are too large by sqrt(2).
        Scale both products by 1/sqrt(2 d)."""),
    "position_not_scaled": Mistake(using(scale=1), only="positional").words("""
        only q . k is scaled, the position term p U_Q U_K p is not
        Position outweighs content.
        Multiply p U_Q U_K p by the scale, as q . k."""),
    "projections_exchanged": Mistake(using(u_q=lambda a: a.u_k, u_k=lambda a: a.u_q)).words("""
        U_Q and U_K are exchanged
        The scores are transposed.
        U_Q makes the rows, which are queries, U_K the columns."""),
    "bias_transposed": Mistake(using(b=_with_bias(lambda a: _swapped(a.b)))).words("""
        b_{i - j}: the offset of the bias has the wrong sign
        Past and future change places.
        The bias is b_{j - i}: key - query."""),
    "no_bias": Mistake(using(b=_with_bias(lambda a: None))).words("""
        the bias is left out: TUPE-A in place of TUPE-R
        No relative position.
        Pass b for TUPE-R; TUPE-A has none."""),
    "theta_of_the_first_head": Mistake(_reset(lambda right, t, a, b: right(t, a[:1] + 0 * a, b[:1] + 0 * b))).words("""
        all heads use the theta of head 0
        Heads look alike.
        Keep the axis of the heads: both thetas are (h,)."""),
    "extra_row_kept": Mistake(
        inside(tupe, "untie", lambda right: lambda t: (t[..., 1:, 1:], t[..., 0, 0], t[..., 1, 0]))
    ).words("""
        theta_2 = t_10: the wrong entry of the larger matrix
        Words see [CLS] wrongly.
        theta_1 is T_00, theta_2 is T_11."""),
}

FURTHER = {
    "added_after_softmax": Mistake(
        lambda f, a: attention.softmax(attention.scores(a.q, a.k, scale=a.scale), a.get("mask")) @ a.v + _positional(a) @ a.v,
        only="attend",
    ).words("""
        the scores of positions are added to the weights, after the softmax
        Weights do not sum to 1.
        Add the scores of positions to those of the words, then take the softmax."""),
    "unprojected": Mistake(
        lambda f, a: np.broadcast_to(a.scale * (a.p @ np.swapaxes(a.p, -1, -2)), (len(a.u_q), len(a.p), len(a.p))),
        only="positional",
    ).words("""
        p_i . p_j: the vectors of positions are not projected by U_Q and U_K
        All heads have the same scores of positions.
        Project queries and keys of positions head by head."""),
}

SCORES = {"tupe": ("one", "one", "one", "any")}


def _head(t):
    q, k, v = t.projected(t.x)
    p, scale = learned.encode(t.positions, t.parameter(t.trained, t.dim)), (2 * t.dim) ** -0.5
    positional = tupe.positional_scores(p, t.parameter(1, t.dim, t.dim), t.parameter(1, t.dim, t.dim), scale=scale)
    thetas = t.parameter(1), t.parameter(1)
    return t.scored(tupe.scores(q[None], k[None], positional, *thetas, scale=scale, convention="paper")[0], v)
