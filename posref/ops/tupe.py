"""TUPE: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref import attention
from posref.absolute import learned
from posref.ops import inside, missing, using, with_words
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


OTHER = {"paper": "released", "released": "paper"}

MISTAKES = with_words(
    __name__,
    other_convention=using(convention=_with_bias(lambda a: OTHER[a.convention])),
    thetas_swapped=_reset(lambda right, t, a, b: right(t, b, a)),
    column_over_row=_reset(lambda right, t, a, b: _swapped(right(_swapped(t), b, a))),
    no_reset=_reset(lambda right, t, a, b: t),
    row_alone=_reset(lambda right, t, a, b: np.where(np.arange(t.shape[-2])[:, None] == 0, a[..., None, None], t)),
    scaled_by_sqrt_d=using(scale=lambda a: a.scale * np.sqrt(2.0)),
    position_not_scaled=using(scale=1),
    projections_exchanged=using(u_q=lambda a: a.u_k, u_k=lambda a: a.u_q),
    bias_transposed=using(b=_with_bias(lambda a: _swapped(a.b))),
    no_bias=using(b=_with_bias(lambda a: None)),
    theta_of_the_first_head=_reset(lambda right, t, a, b: right(t, a[:1] + 0 * a, b[:1] + 0 * b)),
    extra_row_kept=inside(tupe, "untie", lambda right: lambda t: (t[..., 1:, 1:], t[..., 0, 0], t[..., 1, 0])),
)

SCORES = {"tupe": ("one", "one", "one", "any")}


def _head(t):
    q, k, v = t.projected(t.x)
    p, scale = learned.encode(t.positions, t.parameter(t.trained, t.dim)), (2 * t.dim) ** -0.5
    positional = tupe.positional_scores(p, t.parameter(1, t.dim, t.dim), t.parameter(1, t.dim, t.dim), scale=scale)
    thetas = t.parameter(1), t.parameter(1)
    return t.scored(tupe.scores(q[None], k[None], positional, *thetas, scale=scale, convention="paper")[0], v)
