r"""Recurrent encoding: each position's vector is computed from the one before.

One learned step replaces a table, so the encoding reaches as far as the step is repeated. But positions can only be computed
one after the other.

Also called: RNN.

Definition. For a start vector p_0 and a step f:

    p_{k+1} = f(p_k)    k = 0, 1, ..

Symbols.

    p_0 (..., d)          `start` in the code
    f                     the step, from arrays (..., d) to arrays (..., d)
    p (..., length, d)    the result, one row a position

Conventions. Position 0 is the start itself. f sees no position: it is the same at each step. A linear f(p) = M p gives M^k
p_0, and the sinusoid is M = sinusoidal.shift_matrix(1, ..) with p_0 = encode(0). `floater` is the limit of small steps. An
RNN in front of attention is another thing: its step sees the tokens too.

Example. The step that halves:

>>> print(encode(lambda p: p / 2, np.array([8.0]), 4)[:, 0])
[8. 4. 2. 1.]

Where implementations differ.

    what | who | value | version | source
    step f | Su's text | left open: a class of methods | - | kexue.fm/archives/8130 section "Recurrent"

References. Su, kexue.fm/archives/8130, section "Recurrent".
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from posref import _require
from posref._contract import Array, Count, Numbers, contract


@contract
def encode(step: Callable[..., Any], start: Numbers[Array, "... d"], length: Count) -> Numbers[Array, "... length d"]:
    """p_0 .. p_{length-1}: `(..., length, d)`.

    ValueError if `length` is below 1, or if a step changes the shape or gives a NaN or infinity.

    The sinusoid, step by step:

    >>> from posref.absolute import sinusoidal
    >>> w = sinusoidal.frequencies(4)
    >>> M = sinusoidal.shift_matrix(1, w, layout="interleaved")
    >>> encode(lambda p: M @ p, np.array([0, 1, 0, 1]), 3).round(4)
    array([[ 0.    ,  1.    ,  0.    ,  1.    ],
           [ 0.8415,  0.5403,  0.01  ,  1.    ],
           [ 0.9093, -0.4161,  0.02  ,  0.9998]])
    """
    states = [start]
    for k in range(1, length):
        states.append(step(states[-1]))
        _require.like("recurrent.encode", f"p_{k}", states[k], "start", start)
    return np.stack(states, axis=-2)
