"""FLOATER: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref.absolute import floater, sinusoidal
from posref.ops import Mistake, inside, instead, using
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


MISTAKES = {
    "classical": Mistake(
        _step(_classical),
        "the classical rule",
        "Another rule of order 4.",
        "Results differ in the fifth order of the step.",
        remedy="Take the 3/8 rule, which is torchdiffeq's rk4.",
    ),
    "euler": Mistake(
        _step(lambda right, d, t, p, h: p + h * d(t, p)),
        "p + h f(t, p)",
        "One slope a step.",
        "Errors of first order.",
        remedy="Take the four slopes of the 3/8 rule in every step.",
    ),
    "one_substep": Mistake(
        using(substeps=1),
        "no substeps",
        "One step between neighboring times.",
        "Less exact.",
        remedy="Cut every interval into `substeps` steps; the released code has 5.",
    ),
    "whole_size": Mistake(
        _whole_size,
        "h for h / substeps",
        "Every substep has the size of the whole interval.",
        "Time runs faster.",
        remedy="Divide the interval: h = (t_{i+1} - t_i) / substeps.",
    ),
    "frozen_time": Mistake(
        _step(lambda right, d, t, p, h: right(lambda _, x: d(t, x), t, p, h)),
        "f(t_i, p) within a step",
        "The stages do not move on in time.",
        "Errors of first order.",
        remedy="Ask for the slopes at t, t + h/3, t + 2h/3 and t + h.",
    ),
    "sign": Mistake(
        inside(floater, "antisymmetric", lambda right: lambda w, *, layout: -right(w, layout=layout)),
        "-B",
        "The field has the wrong sign.",
        "Sines have the wrong sign.",
        remedy="The sine grows by w times the cosine, the cosine by -w times the sine.",
    ),
    "unit_times": Mistake(
        using(step=1.0),
        "times 0, 1, 2, ..",
        "The step 0.01 is left out.",
        "Time runs a hundred times faster.",
        remedy="Multiply positions by the step: t_i = 0.01 i in the released code.",
    ),
    "closed_form": Mistake(
        instead(_closed_form),
        "sin and cos themselves",
        "No solver is run.",
        "Better, and not what the rule gives.",
        remedy="Run the solver; its error is part of the result.",
    ),
    "start_skipped": Mistake(
        _start_skipped,
        "row 0 at t_1",
        "The start is left out.",
        "Positions are one too large.",
        remedy="Row 0 is the start itself; the first step leads to row 1.",
    ),
    "other_layout": Mistake(
        "other_layout",
        "pairs of the other layout",
        "Pairs are (2t, 2t+1) instead of (t, t + d/2), or the reverse.",
        "Garbage.",
        remedy="Build the field and the start in the layout that is asked for.",
    ),
}

SCORES = {"added": ("one", "key", "query", "any")}


def _head(t):
    field, first = t.parameter(t.dim, t.dim), t.parameter(t.dim)
    times = np.arange(t.start + len(t.x)) / 10
    return t.added(floater.encode(lambda time, p: np.tanh(p @ field), first, times, substeps=1)[t.start :])
