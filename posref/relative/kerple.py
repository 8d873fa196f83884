r"""KERPLE: ALiBi with a curve in place of the line; two trained numbers per head shape a logarithm or a power of the distance.

A straight line suppresses all far keys. Conditionally positive definite kernels give curves that each head can learn, from
nearly flat to steeper than a line.

Also called: kernelized relative positional embedding.

Definition. Each head has two trained numbers, p > 0 and a; with a = 0 it has no bias:

    s_ij = q_i . k_j / sqrt(d) - p ln(1 + a |j - i|)      form="log"
    s_ij = q_i . k_j / sqrt(d) - a |j - i|^p              form="power", 0 < p <= 2

Symbols.

    p (h,)                          log: the power with which weights decay; power: the exponent
    a (h,)                          log: how soon the decay begins; power: the slope
    i, j (..., n)                   positions, in tokens
    bias (..., h, n_query, n_key)   what is added to the scores

Conventions. The bias is added to scaled scores, before the mask, and is the same on both sides. power with p = 1 is ALiBi with
the slope a, and log is a weight (1 + a |j - i|)^-p. The kernel of power is conditionally positive definite for p <= 2 alone.

Example. One head of either form, three tokens.

>>> positions, one = np.arange(3), np.ones(1)
>>> bias(positions, positions, 2 * one, one, form="power")
array([[[-0., -1., -4.],
        [-1., -0., -1.],
        [-4., -1., -0.]]])
>>> bias(positions[2:], positions, one, one, form="log").round(3)
array([[[-1.099, -0.693, -0.   ]]])

Where implementations differ.

    what | who | value | version | source
    bounds | the paper's code | p, a >= 0.01, and p <= 2 in power; clamped in place in the forward pass | 25be3d712e
      | megatron/mpu/layers.py ParallelKerpleLog, ParallelKerplePower
    at the start | the paper's code | p uniform in (0, 2), a in (0, 1) | 25be3d712e | megatron/mpu/layers.py
    future | the paper's code | the bias of distance 0, until it is masked | 25be3d712e | megatron/mpu/layers.py
    weight form | the paper's code | with power, s is multiplied by exp(-a' |j - i|^p') first | 25be3d712e
      | megatron/mpu/layers.py ParallelKerplePower
    a | NeMo | 0 and not trained, so the bias is 0 everywhere | 03ea2629
      | megatron/position_embedding/kerple_relative_position_embedding.py

References. Chi et al., KERPLE, arXiv 2205.09921; github.com/chijames/KERPLE.
"""

from typing import Literal, get_args

import numpy as np

from posref import _require
from posref._contract import Array, Numbers, Signed, contract
from posref.offsets import offsets

Form = Literal["log", "power"]
FORMS = get_args(Form)


@contract(p="one entry per head", a="one entry per head")
def bias(
    query_positions: Signed[Array, "... n_query"],
    key_positions: Signed[Array, "... n_key"],
    p: Signed[Array, "h"],
    a: Signed[Array, "h"],
    *,
    form: Form,
) -> Numbers[Array, "... h n_query n_key"]:
    """-p ln(1 + a |j - i|) or -a |j - i|^p, to be added to scaled scores: `(..., h, n_query, n_key)`.

    ValueError for p of 0 or less, a below 0, and a power above 2, which is no kernel.

    >>> bias(np.array([3]), np.array([0, 3]), np.array([1.0]), np.array([0.5]), form="power")
    array([[[-1.5, -0. ]]])
    """
    _require.above_zero("kerple.bias", "p", p, "released code clamps at 0.01")
    _require.between("kerple.bias", "p", p, 0, None if form == "log" else 2)
    _require.between("kerple.bias", "a", a, 0)
    p, a = p[:, None, None], a[:, None, None]
    distance = np.abs(offsets(query_positions, key_positions))[..., None, :, :]
    return -p * np.log(1 + a * distance) if form == "log" else -a * distance**p
