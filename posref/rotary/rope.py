r"""RoPE: rotary position embedding.

Queries and keys are rotated by angles proportional to their positions, so a score depends on the offset, not on the positions.

Also called: rotary, RoFormer, fusion-style, partial rotary, product of complex numbers.

Definition. Pair t of the features of a query or key at position m rotates counter-clockwise by the angle m theta_t:

    (a, b)  ->  (a cos(m theta_t) - b sin(m theta_t),  a sin(m theta_t) + b cos(m theta_t))
    theta_t  =  base^(-2t / dim),   t = 0 .. dim/2 - 1

so that <R(m) q, R(n) k> = <q, R(n - m) k>: the score sees the offset n - m alone.

Symbols.

    x (..., n, d)              queries or keys
    m (..., n)                 positions, in tokens
    theta (dim/2,)             frequencies, in radians per position
    cos, sin (..., n, dim/2)   tables of the angles
    dim                        the rotated width, rotary_dim in the code; dim <= d
    d                          the width of a head

Conventions. 0-based pairs and positions; angle +m theta; the exponent divides by the *rotated* width; with dim < d the first
dim features are rotated and the rest pass unchanged. `layout` says which features form a pair (`posref.pairing`). It has no
default because implementations disagree; weights trained with one layout are wrong with the other (`posref.rotary.layouts`
converts them). The transposed sign, angle -m theta, gives other scores, those of the reversed offset: weights and cached keys
of that sign need -sin for sin, or the members of every pair exchanged.

Example. Four equal tokens with one pair of features: the score is |x|^2 cos(j - i), constant along the diagonals.

>>> rotated = rotate(np.ones((4, 2)), *tables(np.arange(4), frequencies(2)), layout="half")
>>> (rotated @ rotated.T).round(3)
array([[ 2.   ,  1.081, -0.832, -1.98 ],
       [ 1.081,  2.   ,  1.081, -0.832],
       [-0.832,  1.081,  2.   ,  1.081],
       [-1.98 , -0.832,  1.081,  2.   ]])

Where implementations differ.

    what | who | value | version | source
    pairing | RoFormer, the paper | interleaved | arXiv 2104.09864 | Eqs. (15), (34)
    pairing | Meta's Llama, GPT-J | interleaved | - | llama/model.py apply_rotary_emb; modeling_gptj.py
    pairing | transformers' Llama | half; its converter permutes the weights | 5.23.0 | modeling_llama.py rotate_half
    pairing | transformers' DeepSeek-V3 | reads interleaved, writes half | 5.23.0
      | modeling_deepseek_v3.py apply_rotary_pos_emb_interleave
    pairing | flash-attn apply_rotary_emb | half (interleaved=False) | 2.8.4 | flash_attn/layers/rotary.py
    pairing | flash-attn flash_attn_with_kvcache | interleaved (rotary_interleaved=True) | 2.8.4
      | flash_attn/flash_attn_interface.py
    sign | transformers' nanochat | angle -m theta: rotate_half returns (x2, -x1) | 5.23.0 | modeling_nanochat.py
    efficient form, third vector | RoFormer | (-x_2, x_1, .., -x_d, x_{d-1}), as `rotate_efficient` | - | Eq. (34)
    efficient form, third vector | copies of Eq. (34) | ends in (-x_{d-1}, x_d), which is no rotation | - | -
    odd width | transformers' GLM-4.5, class defaults | width 21: the exponent divides by 21, and 22 features rotate | 5.23.0
      | modeling_glm4_moe.py compute_default_rope_parameters
    angles in float32 | dim 128, base 10000 | phase off by up to 7.8e-3 rad near position 131071 | - | -

References. Su et al., RoFormer, arXiv 2104.09864, Eqs. (13)-(16) and (34); Su, kexue.fm/archives/8265.
"""

import numpy as np

from posref import pairing
from posref._contract import Array, Complex, Even, Number, Numbers, Positive, contract
from posref.pairing import Layout

TABLES = (
    "make both with rope.tables(positions, rope.frequencies(rotary_dim)), and batched ones with all axes of x: (batch, 1, n)"
)


@contract(
    dim="a configuration has head_dim, times partial_rotary_factor where it has one", base="a configuration calls it rope_theta"
)
def frequencies(dim: Even, base: Positive = 10000.0) -> Numbers[Array, "dim/2"]:
    """theta_t = base^(-2t/dim): float64 `(dim/2,)`, radians per position. RoFormer Eq. (15).

    `dim` is the rotated width, not the width of the head. ValueError if it is odd or `base` is not positive.

    >>> frequencies(4)
    array([1.  , 0.01])
    """
    return base ** (-2 * np.arange(dim // 2) / dim)


@contract
def tables(
    positions: Numbers[Array, "..."], frequencies: Numbers[Array, "dim/2"]
) -> tuple[Numbers[Array, "... dim/2"], Numbers[Array, "... dim/2"]]:
    """cos and sin of the angles m theta_t: two arrays `positions.shape + (dim/2,)`.

    Positions are integers or floats of any shape; a batch axis keeps its place, so `(batch, 1, n)` fits `(batch, heads, n, d)`.
    TypeError if either is not an array of numbers, ValueError if `frequencies` is not one axis.

    >>> cos, sin = tables(np.array([0, 1]), frequencies(4))
    >>> cos.round(4)
    array([[1.    , 1.    ],
           [0.5403, 1.    ]])
    """
    angle = positions[..., None] * frequencies
    return np.cos(angle), np.sin(angle)


@contract(cos=TABLES, sin=TABLES)
def rotate(
    x: Numbers[Array, "... n? rotary_dim+"],
    cos: Numbers[Array, "(...) #n rotary_dim/2"],
    sin: Numbers[Array, "=cos"],
    *,
    layout: Layout,
    rotary_dim: Even | None = None,
) -> Numbers[Array, "... n? d"]:
    """R(m) x: every pair of features rotated by its angle, shape of `x`, dtype by promotion. RoFormer Eqs. (14), (34).

    `x` `(..., n, d)`; `cos`, `sin` `(..., n, rotary_dim/2)` broadcast to `x` and, if they have a batch axis, have as many axes.
    With `rotary_dim` the first `rotary_dim` features rotate and the others pass; without it all of them rotate.
    ValueError for an odd or too large width, an unknown layout, or tables of another width.

    >>> x = np.array([[1.0, 2.0, 3.0, 4.0]])
    >>> cos, sin = tables(np.array([1]), frequencies(4))
    >>> rotate(x, cos, sin, layout="half").round(4)
    array([[-1.9841,  1.9599,  2.4624,  4.0198]])
    >>> rotate(x, cos, sin, layout="interleaved").round(4)
    array([[-1.1426,  1.9221,  2.9599,  4.0298]])
    >>> rotate(x, cos, -sin, layout="half").round(4)  # the transposed sign: nanochat
    array([[3.0647, 2.0399, 0.7794, 3.9798]])
    """
    if rotary_dim is not None:
        turned = rotate(x[..., :rotary_dim], cos, sin, layout=layout)
        return np.concatenate([turned, x[..., rotary_dim:]], axis=-1)
    a, b = pairing.split(x, layout)
    return pairing.join(a * cos - b * sin, a * sin + b * cos, layout)


@contract(cos=TABLES, sin=TABLES)
def rotate_efficient(
    x: Numbers[Array, "... n? dim"],
    cos: Numbers[Array, "(...) #n dim/2"],
    sin: Numbers[Array, "=cos"],
    *,
    layout: Layout,
) -> Numbers[Array, "... n? dim"]:
    """The same map as `rotate`, as element-wise products with doubled tables: x * cos + turned(x) * sin.

    turned(x) is (-x_2, x_1, -x_4, x_3, .., -x_d, x_{d-1}) when interleaved, `rotate_half` in transformers' words otherwise.
    RoFormer Eq. (34). All features rotate; errors as in `rotate`.

    >>> cos, sin = tables(np.array([1]), frequencies(4))
    >>> rotate_efficient(np.array([[1.0, 2.0, 3.0, 4.0]]), cos, sin, layout="half").round(4)
    array([[-1.9841,  1.9599,  2.4624,  4.0198]])
    """
    a, b = pairing.split(x, layout)
    return x * pairing.join(cos, cos, layout) + pairing.join(-b, a, layout) * pairing.join(sin, sin, layout)


@contract
def rotate_complex(
    x: Numbers[Array, "... n? dim"], positions: Numbers[Array, "(...) #n"], frequencies: Numbers[Array, "dim/2"]
) -> Complex[Array, "... n? dim/2"]:
    """Adjacent pairs as complex numbers, times e^{i m theta}: complex `(..., n, dim/2)`; Meta's Llama computes it so.

    Entry t is (x_{2t} + i x_{2t+1}) e^{i m theta_t}; the score is the real part of q times conj(k). RoFormer Eq. (12).
    All features rotate; errors as in `tables` and `rotate`.

    >>> rotate_complex(np.array([[1.0, 2.0, 3.0, 4.0]]), np.array([1]), frequencies(4)).round(4)
    array([[-1.1426+1.9221j,  2.9599+4.0298j]])
    """
    angle = positions[..., None] * frequencies
    a, b = pairing.split(x, "interleaved")
    return (a + 1j * b) * np.exp(1j * angle)


@contract
def matrix(position: Number, frequencies: Numbers[Array, "dim/2"], *, layout: Layout) -> Numbers[Array, "dim dim"]:
    """R(m) itself, block diagonal for adjacent pairs: `(dim, dim)`, acting on column vectors. RoFormer Eq. (15).

    `position` is one number, or TypeError. `rotate(x)` is `x @ matrix(..).T`.

    >>> matrix(1, frequencies(2), layout="interleaved").round(4)
    array([[ 0.5403, -0.8415],
           [ 0.8415,  0.5403]])
    """
    cos, sin = np.cos(position * frequencies), np.sin(position * frequencies)
    dim = 2 * frequencies.shape[-1]
    a, b = pairing.indices(dim, layout)
    turn = np.zeros_like(cos, shape=(dim, dim))
    turn[a, a], turn[a, b] = cos, -sin
    turn[b, a], turn[b, b] = sin, cos
    return turn


@contract(cos=TABLES, sin=TABLES)
def gradient(
    output_gradient: Numbers[Array, "... n? rotary_dim+"],
    cos: Numbers[Array, "(...) #n rotary_dim/2"],
    sin: Numbers[Array, "=cos"],
    *,
    layout: Layout,
    rotary_dim: Even | None = None,
) -> Numbers[Array, "... n? d"]:
    """Gradient with respect to `x` of `rotate`: rotation by the negative angle, since R(m)^T = R(-m). Errors as in `rotate`.

    >>> cos, sin = tables(np.array([1]), frequencies(2))
    >>> gradient(np.array([[1.0, 0.0]]), cos, sin, layout="half").round(4)
    array([[ 0.5403, -0.8415]])
    """
    return rotate(output_gradient, cos, -sin, layout=layout, rotary_dim=rotary_dim)
