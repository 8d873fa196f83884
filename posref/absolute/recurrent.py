r"""Recurrent encoding: each position's vector is computed from the one before.

Definition. For a start vector p_0 and a step f:

    p_{k+1} = f(p_k),   k = 0, 1, ..

Symbols. start p_0 (..., d); step f maps arrays (..., d) to arrays (..., d); result (..., length, d).

Conventions. Position 0 is the start itself. f sees no position: the same f at each step, so the encoding reaches as far as
it is run. A linear f(p) = M p gives M^k p_0; the sinusoid is M = sinusoidal.shift_matrix(1, ..) with p_0 = encode(0).

Where implementations differ. A class of methods, without a published f. An RNN layer in front of attention is another thing:
its step sees the tokens too. `floater` is the limit of small steps.

Properties. proofs/absolute/recurrent.py: pinned for every step; same_step_everywhere (starting later shifts the sequence);
linear_step_is_the_sinusoid.

References. Su, kexue.fm/archives/8130, section "Recurrent".
"""

import numpy as np

from posref import _require


def encode(step, start, length):
    """p_0 .. p_{length-1}: `(..., length, d)`.

    ValueError if `length` is below 1, or if a step changes the shape or gives a NaN or infinity.

    >>> encode(lambda p: p / 2, np.array([8.0]), 4)[:, 0]
    array([8., 4., 2., 1.])

    The sinusoid, step by step:

    >>> from posref.absolute import sinusoidal
    >>> w = sinusoidal.frequencies(4)
    >>> M = sinusoidal.shift_matrix(1, w, layout="interleaved")
    >>> encode(lambda p: M @ p, np.array([0, 1, 0, 1]), 3).round(4)
    array([[ 0.    ,  1.    ,  0.    ,  1.    ],
           [ 0.8415,  0.5403,  0.01  ,  1.    ],
           [ 0.9093, -0.4161,  0.02  ,  0.9998]])
    """
    _require.array("recurrent.encode", "start", start, ndim=1)
    _require.count("recurrent.encode", "length", length)
    _require.function("recurrent.encode", "step", step)
    states = [start]
    while len(states) < length:
        states.append(step(states[-1]))
        _require_state(states[-1], start, len(states) - 1)
    return np.stack(states, axis=-2)


def _require_state(state, start, k):
    _require.array("recurrent.encode", f"p_{k}", state)
    if state.shape != start.shape:
        raise ValueError(
            f"recurrent.encode: step turned p_{k - 1} of shape {start.shape} into shape {state.shape}; it must keep the shape"
        )
