"""FLOATER: the functions to check, and the mistakes that implementations make."""

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
    # times up to 2: the errors of this wave grow with time, and from 5 on exceed its values
    "times": lambda s: (np.arange(s.n_key) / 4 + (np.arange(s.n_key) > 2) / 8) * min(1, 8 / s.n_key),
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


def _trapezoid(right, d, t, p, h):
    slope = d(t, p)
    return p + h * (slope + d(t + h, p + h * slope)) / 2


MISTAKES = {
    "classical": Mistake(_step(_classical)).words("""
        the classical rule of order 4 is used instead of the 3/8 rule
        Results differ in the fifth order of the step.
        Take the 3/8 rule, which is torchdiffeq's rk4."""),
    "euler": Mistake(_step(lambda right, d, t, p, h: p + h * d(t, p))).words("""
        p + h f(t, p): Euler's rule, one slope per step
        Errors of first order.
        Take the four slopes of the 3/8 rule in every step."""),
    "one_substep": Mistake(using(substeps=1)).words("""
        one step between neighboring times, without substeps
        Less exact.
        Cut every interval into `substeps` steps; the released code has 5."""),
    "whole_size": Mistake(_whole_size).words("""
        every substep has the size h of the whole interval instead of h / substeps
        Time runs faster.
        Divide the interval: h = (t_{i+1} - t_i) / substeps."""),
    "frozen_time": Mistake(_step(lambda right, d, t, p, h: right(lambda _, x: d(t, x), t, p, h))).words("""
        f(t_i, p) within a step: the stages do not move on in time
        Errors of first order.
        Ask for the slopes at t, t + h/3, t + 2h/3 and t + h."""),
    "sign": Mistake(inside(floater, "antisymmetric", lambda right: lambda w, *, layout: -right(w, layout=layout))).words("""
        -B: the field has the wrong sign
        Sines have the wrong sign.
        The sine grows by w times the cosine, the cosine by -w times the sine."""),
    "unit_times": Mistake(using(step=1.0)).words("""
        the times are 0, 1, 2, ..: the step 0.01 is left out
        Time runs a hundred times faster.
        Multiply positions by the step: t_i = 0.01 i in the released code."""),
    "closed_form": Mistake(instead(_closed_form)).words("""
        sin and cos are computed directly, without the solver
        Better, and not what the rule gives.
        Run the solver; its error is part of the result."""),
    "start_skipped": Mistake(_start_skipped).words("""
        row 0 is the state at t_1: the start is left out
        Positions are one too large.
        Row 0 is the start itself; the first step leads to row 1."""),
    "other_layout": Mistake("other_layout").words("""
        pairs are (2t, 2t+1) instead of (t, t + d/2), or the reverse
        Garbage.
        Build the field and the start in the layout that is asked for."""),
}

FURTHER = {
    "midpoint": Mistake(_step(lambda right, d, t, p, h: p + h * d(t + h / 2, p + h / 2 * d(t, p)))).words("""
        the midpoint rule: one slope, at the middle of the step
        Errors of second order.
        Take the four slopes of the 3/8 rule in every step."""),
    "trapezoid": Mistake(_step(_trapezoid)).words("""
        Heun's rule: the mean of the slopes at both ends of the step
        Errors of second order.
        Take the four slopes of the 3/8 rule in every step."""),
}

SCORES = {"added": ("one", "key", "query", "any")}


def _head(t):
    field, first = t.parameter(t.dim, t.dim), t.parameter(t.dim)
    times = np.arange(t.start + len(t.x)) / 10
    return t.added(floater.encode(lambda time, p: np.tanh(p @ field), first, times, substeps=1)[t.start :])
