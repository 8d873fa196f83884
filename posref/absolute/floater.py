r"""FLOATER: position as the solution of a differential equation.

The encodings of all positions lie on one curve, and a small network learns the direction of the curve. The number of parameters
does not grow with the length, and times between two tokens have an encoding too.

Also called: continuous dynamical model, neural ODE.

Definition. For a vector field f and a start p(t_0):

    dp/dt = f(t, p)
    p_i = p(t_i) = p(t_0) + integral of f(s, p(s)) over s from t_0 to t_i

The integral is computed, between neighboring times, in `substeps` Runge-Kutta steps (the 3/8 rule) of size h:

    h = (t_{i+1} - t_i) / substeps
    k_1 = f(t, p)
    k_2 = f(t + h/3, p + h k_1/3)
    k_3 = f(t + 2h/3, p + h (k_2 - k_1/3))
    k_4 = f(t + h, p + h (k_1 - k_2 + k_3))
    p(t + h) = p + h (k_1 + 3 k_2 + 3 k_3 + k_4) / 8

Symbols.

    p(t_0) (..., d)    `start` in the code
    t (n,)             times
    f                  the field, `derivative` in the code: takes (t, p) and gives the shape of p
    p (..., n, d)      the result, one row a time

Conventions. Time comes first in f, as in torchdiffeq. Axes before d are solved together: for biases of q, k, v in every block
start is (3, blocks, d) and the result (3, blocks, n, d), to be added to the projections before q is scaled. torchdiffeq's
odeint puts the times first, (n, 3, blocks, d).

Example. The field f(t, p) = -p from p(0) = 1 on gives e^-t:

>>> times = np.array([0.0, 1.0, 2.0, 3.0])
>>> print(encode(lambda t, p: -p, np.array([1.0]), times, substeps=5)[:, 0].round(3))
[1.    0.368 0.135 0.05 ]

Where implementations differ.

    what | who | value | version | source
    solver | Liu et al. | left open | arXiv 2003.09229 | -
    solver | the released code | torchdiffeq's "rk4" | d788b5e | models/flow_transformer.py
    "rk4" | torchdiffeq | the 3/8 rule, not the classical one | 03c6e63 | torchdiffeq/_impl/fixed_grid.py RK4
    times | the released code | t_i = 0.01 i, substeps 5 | d788b5e | models/flow_transformer.py
    where p enters | the released code | q, k, v of every block, not the input | d788b5e | modules/flow_attention.py
    what is solved | the released code | the biases of all blocks, with one f | d788b5e | models/flow_transformer.py
    what is solved | its variant | the biases of the first block; the others are the same at all positions | d788b5e
      | models/fflow_transformer.py
    field f | the released code | Linear, ReLU, Linear, the input of each with t appended | d788b5e | modules/flow_funcs.py

References. Liu et al., Learning to Encode Position for Transformer with Continuous Dynamical Model, arXiv 2003.09229;
code: xuanqing94/FLOATER, folder fairseq.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from posref import _require, pairing
from posref._contract import Array, Count, Number, Numbers, Signed, contract, finite
from posref.pairing import Layout

PRESETS = {"released": {"step": 0.01, "substeps": 5, "source": "xuanqing94/FLOATER d788b5e flow_transformer.py"}}


@contract
def encode(
    derivative: Callable[..., Any], start: Numbers[Array, "... d"], times: Signed[Array, "n!", finite], *, substeps: Count
) -> Numbers[Array, "... n d"]:
    """p(t_i) for every time: `(..., n, d)`; row 0 is `start`.

    ValueError if `times` is empty or not one axis, `substeps` below 1, or the derivative of another shape or not finite.

    >>> encode(lambda t, p: 2 * t + 0 * p, np.array([1.0]), np.array([0.0, 1.0, 3.0]), substeps=1)[:, 0].round(4)
    array([ 1.,  2., 10.])
    """
    p, states = start, [start]
    for begin, end in pairwise(times):
        size = (end - begin) / substeps
        for k in range(substeps):
            p = step(derivative, begin + k * size, p, size)
        states.append(p)
    return np.stack(states, axis=-2)


@contract
def step(derivative: Callable[..., Any], t: Number, p: Numbers[Array, "..."], size: Number) -> Numbers[Array, "=p"]:
    """One Runge-Kutta step, p(t) to p(t + size), by the 3/8 rule: shape of `p`.

    ValueError if the derivative is not finite or has another shape than `p`.

    >>> step(lambda t, p: 3 * t**2 + 0 * p, 0, np.array([1.0]), 2)
    array([9.])
    """

    def f(t, p):
        slope = derivative(t, p)
        _require.like("floater.step", f"the derivative at t = {t}", slope, "p", p)
        return slope

    k1 = f(t, p)
    k2 = f(t + size / 3, p + size * k1 / 3)
    k3 = f(t + 2 * size / 3, p + size * (k2 - k1 / 3))
    k4 = f(t + size, p + size * (k1 - k2 + k3))
    return p + size * (k1 + 3 * k2 + 3 * k3 + k4) / 8


@contract
def antisymmetric(frequencies: Signed[Array, "dim/2"], *, layout: Layout) -> Numbers[Array, "dim dim"]:
    """B with dp/dt = B p for the sinusoid p(t): `(dim, dim)`, w_t from sine to cosine and -w_t back.

    >>> antisymmetric(np.array([1.0]), layout="half")
    array([[ 0.,  1.],
           [-1.,  0.]])
    """
    dim = 2 * frequencies.shape[-1]
    sine, cosine = pairing.indices(dim, layout)
    generator = np.zeros_like(frequencies, shape=(dim, dim))
    generator[sine, cosine], generator[cosine, sine] = frequencies, -frequencies
    return generator
