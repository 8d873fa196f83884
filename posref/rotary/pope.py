r"""PoPE: content sets the length of each pair, and position alone sets its angle.

In RoPE a pair has an angle before it is rotated, so the content of a token shifts the position at which it is found. PoPE makes
every feature a length that is never negative; its angle depends only on the position and a trained phase.

Also called: polar coordinate position embedding, polar embedding.

Definition. Feature c of a query at m and of a key at n becomes a pair, in polar coordinates:

    q_c -> softplus(q_c) (cos(m w_c), sin(m w_c))
    k_c -> softplus(k_c) (cos(n w_c + delta_c), sin(n w_c + delta_c))
    w_c  =  base^(-c / d),   c = 0 .. d - 1
    s_mn =  sum_c softplus(q_c) softplus(k_c) cos((n - m) w_c + delta_c)

Symbols.

    x (..., n, d)                   queries or keys
    m, n (..., n)                   positions
    frequencies (d,)                w: one per feature, where RoPE has one per pair
    phases (h, d)                   delta, trained, one for each key head and feature
    cos, sin (..., n, d)            tables; those of keys (..., h, n, d), with their phases
    encoded (..., n, 2*d)           pairs of lengths and angles, twice as wide

Conventions. Phases are on keys alone: on both sides they cancel. They are clamped to [-2 pi, 0] in every call (`clamp`), not
wrapped. The scale is d^-1/2 with the width before it doubles. `layout` says where the two members of a pair stand, [cos | sin]
or in turn: an order of features that scores do not see. The frequencies are those of RoPE with the width 2 d, and an encoded
vector is RoPE's of the pairs (softplus(x_c), 0).

Example. Four equal tokens with one feature of length 1: the score is cos(j - i - 1/2), as high for a token as for the next one.

>>> from posref.rotary import rope
>>> x, w = np.full((1, 4, 1), np.log(np.e - 1)), np.ones(1)
>>> q = encode(x, *rope.tables(np.arange(4), w), layout="half")
>>> k = encode(x, *tables(np.arange(4), w, np.array([[-0.5]])), layout="half")
>>> (q @ np.swapaxes(k, -1, -2))[0].round(3)
array([[ 0.878,  0.878,  0.071, -0.801],
       [ 0.071,  0.878,  0.878,  0.071],
       [-0.801,  0.071,  0.878,  0.878],
       [-0.936, -0.801,  0.071,  0.878]])

Where implementations differ.

    what | who | value | version | source
    layout | x-transformers | [cos, sin] | 2.31.10 | x_transformers.py apply_polar_pos_emb
    layout | PoPE-pytorch | in turn | 0.2.1 | PoPE_pytorch/pope.py apply_pope_to_qk
    delta at the start | both | 0, or uniform in (-2 pi, 0) | 2.31.10; 0.2.1 | PolarEmbedding; PoPE
    fewer frequencies than features | PoPE-pytorch | the others pass as they are, without softplus | 0.2.1
      | PoPE_pytorch/pope.py
    positions of a batch | x-transformers | added to the phases of the heads: an error, or with as many texts as heads phases of
      other heads | 2.31.10 | x_transformers.py Attention.forward, freqs + bias

References. Gopalakrishnan et al., Decoupling the "What" and "Where", arXiv 2509.10534; lucidrains/PoPE-pytorch.
"""

import numpy as np

from posref import pairing
from posref._contract import Array, Count, Numbers, Positive, Signed, contract
from posref.pairing import Layout

TABLES = (
    "one frequency per feature: rope.tables(positions, pope.frequencies(d)) of queries, pope.tables of keys; batched ones with "
    "all axes of x: (batch, 1, n, d)"
)


@contract
def frequencies(dim: Count, base: Positive = 10000.0) -> Numbers[Array, "dim"]:
    """w_c = base^(-c/d): float64 `(dim,)`, those of `rope.frequencies(2 * dim)`.

    >>> frequencies(4)
    array([1.   , 0.1  , 0.01 , 0.001])
    """
    return base ** (-np.arange(dim) / dim)


@contract
def softplus(x: Signed[Array, "..."]) -> Numbers[Array, "..."]:
    """ln(1 + exp(x)), above 0: shape of `x`. No exponential of a large number is taken.

    >>> softplus(np.array([0.0, 1000.0])).round(3)
    array([6.93e-01, 1.00e+03])
    """
    size = np.abs(x)
    return (x + size) / 2 + np.log(1 + np.exp(-size))


@contract
def clamp(phases: Signed[Array, "..."]) -> Numbers[Array, "..."]:
    """Trained phases, limited to [-2 pi, 0] as in every call of the model: shape of `phases`.

    >>> clamp(np.array([-7.0, -1.0, 0.5])).round(3)
    array([-6.283, -1.   ,  0.   ])
    """
    return np.clip(phases, -2 * np.pi, 0)


@contract(phases="one for each key head and feature; x-transformers stores (h, 1, d)")
def tables(
    positions: Numbers[Array, "... n"],
    frequencies: Numbers[Array, "d"],
    phases: Signed[Array, "h d"],
) -> tuple[Numbers[Array, "... h n d"], Numbers[Array, "... h n d"]]:
    """cos and sin of n w_c + delta_c for keys: two arrays `(..., h, n, d)`; those of queries are `rope.tables(positions, w)`.

    Positions of a batch are `(batch, n)` or `(1, n)` here, and `(batch, 1, n)` for queries. Trained phases are `clamp(phases)`.

    >>> cos, sin = tables(np.array([0, 1]), np.ones(1), np.array([[-1.0], [0.0]]))
    >>> cos[..., 0].round(3)
    array([[0.54, 1.  ],
           [1.  , 0.54]])
    """
    angle = positions[..., None, :, None] * frequencies + phases[:, None, :]
    return np.cos(angle), np.sin(angle)


@contract(cos=TABLES, sin=TABLES)
def encode(
    x: Signed[Array, "... n? d"],
    cos: Numbers[Array, "(...) #n d"],
    sin: Numbers[Array, "=cos"],
    *,
    layout: Layout,
) -> Numbers[Array, "... n? 2*d"]:
    """softplus(x_c) (cos, sin) as pairs of the layout: twice the width of `x`. Tables as in `rope.rotate`.

    >>> encode(np.zeros((1, 2)), np.ones((1, 2)), np.zeros((1, 2)), layout="interleaved").round(3)
    array([[0.693, 0.   , 0.693, 0.   ]])
    """
    length = softplus(x)
    return pairing.join(length * cos, length * sin, layout)
