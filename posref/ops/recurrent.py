"""Recurrent position: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref.absolute import recurrent, sinusoidal
from posref.ops import inside, result, using, with_words
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


MISTAKES = with_words(
    __name__,
    start_skipped=_start_skipped,
    transposed=_transposed,
    one_step=result(lambda y: y[..., np.minimum(np.arange(y.shape[-2]), 1), :]),
    zero_start=result(lambda y: 0 * y),
    other_layout="other_layout",
)

SCORES = {"added": ("one", "key", "query", "any")}


def _head(t):
    step, first = t.parameter(t.dim, t.dim), t.parameter(t.dim)
    return t.added(recurrent.encode(lambda p: np.tanh(p @ step), first, t.start + len(t.x))[t.start :])
