r"""FLOATER: position as the solution of a differential equation.

Definition. For a vector field f and a start p(t_0):

    dp/dt = f(t, p),   p_i = p(t_i) = p(t_0) + integral of f(s, p(s)) over s from t_0 to t_i

Between neighboring times the integral is `substeps` Runge-Kutta steps of order 4 and size h = (t_{i+1} - t_i) / substeps:

    k_1 = f(t, p),                  k_2 = f(t + h/3, p + h k_1/3),
    k_3 = f(t + 2h/3, p + h (k_2 - k_1/3)),   k_4 = f(t + h, p + h (k_1 - k_2 + k_3)),
    p(t + h) = p + h (k_1 + 3 k_2 + 3 k_3 + k_4) / 8

Symbols. start (..., d); times (n,); derivative f takes (t, p) and gives the shape of p; result (..., n, d).

Conventions. Time comes first in f, as in torchdiffeq. Axes before d are solved together: for biases of q, k, v in every block
start is (3, blocks, d) and the result (3, blocks, n, d), to be added to the projections before q is scaled. torchdiffeq's
odeint puts the times first, (n, 3, blocks, d).

Where implementations differ. The paper leaves the solver open. The released code (xuanqing94/FLOATER d788b5e,
flow_transformer.py) calls torchdiffeq's "rk4", which is the 3/8 rule above and not the classical one, on t_i = 0.01 i with
substeps 5. Its biases enter q, k and v, not the input, and are solved for all blocks with one f; fflow_transformer.py solves
those of the first block alone and leaves the others trained constants, the same at all positions. Its f is Linear, ReLU,
Linear, each of the two on its input with t appended.

Properties. proofs/absolute/floater.py: step_pinned, pinned; order_four (all eight conditions, and no fifth order);
linear_step_is_taylor; sinusoid_solves_a_linear_field, with B antisymmetric; every_curve_is_a_solution of some field that
depends on t, so that the sinusoid is one says nothing; steps_shorten_the_sinusoid (by 1e-18 at the released size).

References. Liu et al., Learning to Encode Position for Transformer with Continuous Dynamical Model, arXiv 2003.09229.
"""

from itertools import pairwise

import numpy as np

from posref import _require, pairing

PRESETS = {"released": {"step": 0.01, "substeps": 5, "source": "xuanqing94/FLOATER d788b5e flow_transformer.py"}}


def encode(derivative, start, times, *, substeps):
    """p(t_i) for every time: `(..., n, d)`; row 0 is `start`.

    ValueError if `times` is empty or not one axis, `substeps` below 1, or the derivative of another shape or not finite.

    >>> times = np.array([0.0, 0.5, 1.0])
    >>> encode(lambda t, p: -p, np.array([1.0]), times, substeps=5)[:, 0].round(5)
    array([1.     , 0.60653, 0.36788])
    """
    _require.array("floater.encode", "start", start, ndim=1)
    _require.array("floater.encode", "times", times, kinds=_require.SIGNED_NUMBERS)
    _require.axes("floater.encode", "times", times, "(n,)")
    _require.count("floater.encode", "substeps", substeps)
    _require.function("floater.encode", "derivative", derivative)
    p, states = start, [start]
    for begin, end in pairwise(times):
        size = (end - begin) / substeps
        for k in range(substeps):
            p = step(derivative, begin + k * size, p, size)
        states.append(p)
    return np.stack(states, axis=-2)


def step(derivative, t, p, size):
    """One Runge-Kutta step, p(t) to p(t + size), by the 3/8 rule: shape of `p`.

    ValueError if the derivative is not finite or has another shape than `p`.

    >>> step(lambda t, p: 3 * t**2 + 0 * p, 0, np.array([1.0]), 2)
    array([9.])
    """
    _require.array("floater.step", "p", p)

    def f(t, p):
        slope = derivative(t, p)
        _require_slope(slope, p, t)
        return slope

    k1 = f(t, p)
    k2 = f(t + size / 3, p + size * k1 / 3)
    k3 = f(t + 2 * size / 3, p + size * (k2 - k1 / 3))
    k4 = f(t + size, p + size * (k1 - k2 + k3))
    return p + size * (k1 + 3 * k2 + 3 * k3 + k4) / 8


def antisymmetric(frequencies, *, layout):
    """B with dp/dt = B p for the sinusoid p(t): `(dim, dim)`, w_t from sine to cosine and -w_t back.

    >>> antisymmetric(np.array([1.0]), layout="half")
    array([[ 0.,  1.],
           [-1.,  0.]])
    """
    _require.array("floater.antisymmetric", "frequencies", frequencies, kinds=_require.SIGNED_NUMBERS)
    _require.axes("floater.antisymmetric", "frequencies", frequencies, "(dim/2,)")
    dim = 2 * frequencies.shape[-1]
    sine, cosine = pairing.indices(dim, layout)
    generator = np.zeros((dim, dim), dtype=frequencies.dtype)
    generator[sine, cosine], generator[cosine, sine] = frequencies, -frequencies
    return generator


def _require_slope(slope, p, t):
    _require.array("floater.step", f"the derivative at t = {t}", slope)
    if slope.shape != p.shape:
        raise ValueError(f"floater.step: the derivative has shape {slope.shape} and p {p.shape}; they must be equal")
