r"""xPos: RoPE whose scores also decay with the offset, at a different rate for every pair.

RoPE's scores oscillate at any distance. A factor below 1 per step makes far tokens count less, most of all in the fast pairs.

Also called: extrapolatable position embedding, XPOS.

Definition. The pair t of a query at m and of a key at n is rotated as in RoPE, and stretched or shrunk by its position:

    q_m -> zeta_t^((m - c) / B) R(m theta_t) q_m
    k_n -> zeta_t^(-(n - c) / B) R(n theta_t) k_n
    zeta_t = (2t / dim + 0.4) / 1.4

so that the score is sum_t zeta_t^((m - n) / B) (pair t of RoPE's score): it sees the offset n - m alone, and the centre c
cancels.

Symbols.

    x (..., n, dim)              queries or keys
    m, n (..., n)                positions
    c, B                         center and scale_base; both cancel or only rescale positions, 512 in the paper
    zeta (dim/2,)                between 2/7 and 1
    scales (..., n, dim/2)       zeta_t^((m - c) / B)

Conventions. Queries are multiplied, keys divided: `side`. A centre near the middle of the text keeps both within the range of
narrow types; all queries and keys of one cache need the same one. Scores decay for n < m and grow for n > m: causal attention
only.

Example. Four equal tokens with one pair of features: the score is cos(j - i) times a factor below 1 for each step back.

>>> cos, sin = rope.tables(np.arange(4), np.ones(1))
>>> factors = scales(np.arange(4), 2, center=0, scale_base=8.0)
>>> x = np.full((4, 2), 0.5**0.5)
>>> q, k = (rotate(x, cos, sin, factors, layout="half", side=side) for side in ("query", "key"))
>>> np.tril(q @ k.T).round(3)
array([[ 1.   ,  0.   ,  0.   ,  0.   ],
       [ 0.462,  1.   ,  0.   ,  0.   ],
       [-0.304,  0.462,  1.   ,  0.   ],
       [-0.619, -0.304,  0.462,  1.   ]])

Where implementations differ.

    what | who | value | version | source
    center | torchscale | half of the length, upwards | 776b070d | torchscale/component/xpos_relative_position.py
    pairing | torchscale | interleaved | 776b070d | torchscale/component/xpos_relative_position.py

References. Sun et al., A Length-Extrapolatable Transformer, arXiv 2212.10554, section 3.2 and Algorithm 1.
"""

from typing import Literal

import numpy as np

from posref._contract import Array, Even, Number, Numbers, Positive, Signed, contract
from posref.pairing import Layout
from posref.rotary import rope

Side = Literal["query", "key"]


@contract
def scales(
    positions: Signed[Array, "..."], dim: Even, *, center: Number, scale_base: Positive = 512.0
) -> Numbers[Array, "... dim/2"]:
    """zeta_t^((m - c) / B), zeta_t = (10 t / dim + 2) / 7: one factor for each pair, `positions.shape + (dim/2,)`.

    Computed in float64.

    >>> scales(np.array([0, 512]), 4, center=0).round(4)
    array([[1.    , 1.    ],
           [0.2857, 0.6429]])
    """
    zeta = (10 * np.arange(dim // 2) / dim + 2) / 7
    return zeta ** ((positions[..., None] - center) / scale_base)


@contract
def rotate(
    x: Numbers[Array, "... n? dim"],
    cos: Numbers[Array, "(...) #n dim/2"],
    sin: Numbers[Array, "=cos"],
    scales: Numbers[Array, "=cos"],
    *,
    layout: Layout,
    side: Side,
) -> Numbers[Array, "... n? dim"]:
    """Rotated pairs, multiplied by `scales` on the side of the query and divided on that of the key: shape of `x`.

    Tables as in `rope.rotate`.

    >>> x, m = np.ones((1, 2)), np.array([512])
    >>> given = [*rope.tables(m, np.array([0.0])), scales(m, 2, center=0)]
    >>> [rotate(x, *given, layout="half", side=side).round(4).tolist() for side in ("query", "key")]
    [[[0.2857, 0.2857]], [[3.5, 3.5]]]
    """
    factor = scales if side == "query" else 1 / scales
    return rope.rotate(x, cos * factor, sin * factor, layout=layout)
