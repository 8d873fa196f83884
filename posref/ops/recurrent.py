"""Recurrent position: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.absolute import recurrent, sinusoidal
from posref.ops import Mistake, inside, result, using
from posref.ops.probe import painted


def linear(matrix, start, *, length=7):
    return recurrent.encode(lambda p: (matrix @ p[..., None])[..., 0], start, length)


def sinusoid(dim, length, *, base=10000.0, layout):
    w = sinusoidal.frequencies(dim, base)
    start = sinusoidal.encode(np.array(0), w, layout=layout)
    return linear(sinusoidal.shift_matrix(1, w, layout=layout), start, length=length)


ARRAYS = {"matrix": lambda s: painted((3, 3), 1) / 2, "start": lambda s: painted((s.batch, 3), 2)}


def _start_skipped(f, a):
    return f(**a | {"length": a.length + 1})[..., 1:, :]


def _transposed(f, a):
    if "matrix" in a:
        return using(matrix=lambda a: a.matrix.T)(f, a)
    return inside(sinusoidal, "shift_matrix", lambda right: lambda m, w, *, layout: right(-m, w, layout=layout))(f, a)


MISTAKES = {
    "start_skipped": Mistake(_start_skipped).words("""
        row 0 is f(p_0): a step is made before the first row
        Positions are one too large.
        Row 0 is the start itself; step from there."""),
    "transposed": Mistake(_transposed).words("""
        M^T: the matrix is multiplied from the other side
        The sinusoid turns backwards: sines have the wrong sign.
        Multiply columns, M p, or rows by the transpose, p M^T."""),
    "one_step": Mistake(result(lambda y: y[..., np.minimum(np.arange(y.shape[-2]), 1), :])).words("""
        f(p_0) in every later row: each step starts from p_0
        All positions but the first are equal.
        Step from the state before: p_{k+1} = f(p_k)."""),
    "zero_start": Mistake(result(lambda y: 0 * y)).words("""
        p_0 = 0: the state starts at zeros
        A linear step stays at zero.
        Begin with the start that is given; the sinusoid's is encode(0)."""),
    "other_layout": Mistake("other_layout").words("""
        columns are paired (2t, 2t+1) instead of (t, t + d/2), or the reverse
        Columns meet other weights.
        Write all sines, then all cosines, or a sine and a cosine in turn, as the layout says."""),
}

SCORES = {"added": ("one", "key", "query", "any")}


def _head(t):
    step, first = t.parameter(t.dim, t.dim), t.parameter(t.dim)
    return t.added(recurrent.encode(lambda p: np.tanh(p @ step), first, t.start + len(t.x))[t.start :])
