"""FLOATER: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref.absolute import floater, sinusoidal
from posref.ops import inside, instead, using, with_words
from posref.ops.probe import painted


def sinusoid(dim, length, *, base=10000.0, layout, step=0.01, substeps=5):
    w = sinusoidal.frequencies(dim, base)
    field = floater.antisymmetric(w, layout=layout)
    start = sinusoidal.encode(np.array(0), w, layout=layout)
    return floater.encode(lambda t, p: field @ p, start, step * np.arange(length), substeps=substeps)


def field(start, times, *, substeps=5):
    return floater.encode(_wave, start, times, substeps=substeps)


def _wave(t, p):
    return np.stack([p[..., 1] - t * p[..., 0], t - p[..., 0] * p[..., 1]], axis=-1)


ARRAYS = {
    "start": lambda s: painted((s.batch, 2), 1) / 4,
    "times": lambda s: np.arange(s.n_key) / 4 + (np.arange(s.n_key) > 2) / 8,
}


def _step(change):
    """Another rule for one step: change(right, derivative, t, p, h)."""
    return inside(floater, "step", lambda right: lambda d, t, p, h: change(right, d, t, p, h))


def _classical(right, d, t, p, h):
    a = d(t, p)
    b = d(t + h / 2, p + h * a / 2)
    c = d(t + h / 2, p + h * b / 2)
    return p + h * (a + 2 * b + 2 * c + d(t + h, p + h * c)) / 6


def _whole_size(f, a):
    return _step(lambda right, d, t, p, h: right(d, t, p, h * a.substeps))(f, a)


def _start_skipped(f, a):
    return using(length=a.length + 1)(f, a)[..., 1:, :]


def _closed_form(dim, base, layout, length, step):
    return sinusoidal.encode(step * np.arange(length), sinusoidal.frequencies(dim, base), layout=layout)


MISTAKES = with_words(
    __name__,
    classical=_step(_classical),
    euler=_step(lambda right, d, t, p, h: p + h * d(t, p)),
    one_substep=using(substeps=1),
    whole_size=_whole_size,
    frozen_time=_step(lambda right, d, t, p, h: right(lambda _, x: d(t, x), t, p, h)),
    sign=inside(floater, "antisymmetric", lambda right: lambda w, *, layout: -right(w, layout=layout)),
    unit_times=using(step=1.0),
    closed_form=instead(_closed_form),
    start_skipped=_start_skipped,
    other_layout="other_layout",
)

SCORES = {"added": ("one", "key", "query", "any")}


def _head(t):
    field, first = t.parameter(t.dim, t.dim), t.parameter(t.dim)
    times = np.arange(t.start + len(t.x)) / 10
    return t.added(floater.encode(lambda time, p: np.tanh(p @ field), first, times, substeps=1)[t.start :])
