r"""Sandwich: the inner product of two sinusoids as a bias; it falls with the distance, and nothing is trained.

The inner product of the encodings of two positions decays with their distance: at first linearly, like ALiBi, then more and
more slowly.

Also called: sinusoidal bias.

Definition. Head a of h, a = 1 .. h, and frequencies that begin at the second one of a sinusoid:

    s_ij = q_i . k_j / sqrt(d) + h / (8 a) sum_t (cos((j - i) w_t) - 1)
    w_t = base^(-2t/d)                                 t = 1 .. d/2

Symbols.

    w, frequencies (pairs,)         radians per position; pairs is d/2
    slopes (h,)                     h / (8 a): the first head is the sharpest
    i, j (..., n)                   positions, in tokens
    bias (..., h, n_query, n_key)   what is added to the scores

Conventions. The -1 makes the bias 0 at distance 0; it is constant per row, so softmax ignores it. The bias is the same on both
sides, and is never positive. It is not monotone: with d = 128 it rises at distance 14 for the first time.

Example. Two heads of 4 features, a token at 200 and what it sees 200 and 100 tokens before.

>>> positions = np.array([0, 100, 200])
>>> bias(positions[2:], positions, frequencies(4), slopes(2)).round(3)
array([[[-0.354, -0.115,  0.   ]],
<BLANKLINE>
       [[-0.177, -0.057,  0.   ]]])

Where implementations differ.

    what | who | value | version | source
    frequencies | NeMo | t from 1: no frequency 1 | 000b931e | sandwich_relative_position_embedding.py
    slopes | NeMo | divided by 8 a / h | 000b931e | sandwich_relative_position_embedding.py
    d | NeMo | the width of a head | 000b931e | sandwich_relative_position_embedding.py

References. Chi et al., Dissecting Transformer Length Extrapolation via the Lens of Receptive Field Analysis, arXiv 2212.10356.
"""

import numpy as np

from posref._contract import Array, Count, Even, Numbers, Positive, Signed, contract
from posref.offsets import offsets


@contract
def frequencies(dim: Even, base: Positive = 10000.0) -> Numbers[Array, "dim/2"]:
    """base^(-2t/d) for t = 1 .. d/2: radians per position, float64 `(dim/2,)`. The sinusoid's begin at t = 0.

    >>> frequencies(4).round(6)
    array([0.01  , 0.0001])
    """
    return base ** (-2 * np.arange(1, dim // 2 + 1) / dim)


@contract
def slopes(heads: Count) -> Numbers[Array, "heads"]:
    """h / (8 a) for a = 1 .. h: float64 `(heads,)`.

    >>> slopes(4)
    array([0.5       , 0.25      , 0.16666667, 0.125     ])
    """
    return heads / (8 * np.arange(1, heads + 1))


@contract(slopes="one entry per head")
def bias(
    query_positions: Signed[Array, "... n_query"],
    key_positions: Signed[Array, "... n_key"],
    frequencies: Numbers[Array, "pairs"],
    slopes: Numbers[Array, "h"],
) -> Numbers[Array, "... h n_query n_key"]:
    """slope sum_t (cos((j - i) w_t) - 1), to be added to scaled scores: `(..., h, n_query, n_key)`.

    >>> bias(np.array([0]), np.array([0, 1]), np.array([np.pi]), np.ones(1))
    array([[[ 0., -2.]]])
    """
    angles = offsets(query_positions, key_positions)[..., None, :, :, None] * frequencies
    return slopes[:, None, None] * (np.cos(angles) - 1).sum(axis=-1)
