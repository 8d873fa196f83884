r"""RoPE: rotary position embedding.

Definition. Pair t of the features of a query or key at position m turns counter-clockwise by the angle m theta_t:

    (a, b)  ->  (a cos(m theta_t) - b sin(m theta_t),  a sin(m theta_t) + b cos(m theta_t))
    theta_t  =  base^(-2t / dim),   t = 0 .. dim/2 - 1

so that <R(m) q, R(n) k> = <q, R(n - m) k>: the score sees the offset n - m alone.

Symbols. x (..., n, d) queries or keys; positions (..., n) in tokens; frequencies theta (dim/2,) in radians per position;
cos, sin (..., n, dim/2). dim is the rotated width (rotary_dim), d the width of a head; dim <= d.

Conventions. 0-based pairs and positions; angle +m theta; the exponent divides by the *rotated* width; with dim < d the
first dim features turn and the rest pass. Which features pair up is `layout` (`posref.pairing`): it has no default because
the world has none, and weights trained with one are wrong with the other (`posref.rotary.layouts` converts them).

Where implementations differ. Pairing: interleaved in RoFormer, Meta's Llama, GPT-J, DeepSeek-V3; half in transformers'
Llama (whose converter permutes the weights), GPT-NeoX, flash-attn's default. transformers' DeepSeek-V3 reads interleaved
and writes half. Copies of the "efficient form" end its third vector in (-x_{d-1}, x_d); that map is no rotation. RoFormer,
Eq. (34), has (-x_d, x_{d-1}), as `rotate_efficient`. Angles in float32 lose phase, with dim 128 up to 4e-3 rad at position
131 071 and 5e-2 rad at a million.

Properties. proofs/rotary/rope.py: pinned, partial, frequencies_pinned, relative, not_trivial, group, adjoint,
gradient_by_calculus, matrix_form, complex_form, efficient_form, attention_is_translation_invariant, one_parameter_groups,
classification, rotation_is_not_forced_on_integers, abel_summation, no_decay.

References. Su et al., RoFormer, arXiv 2104.09864, Eqs. (13)-(16) and (34); Su, kexue.fm/archives/8265.
"""

import numpy as np

from posref import _require, pairing

PRESETS = {
    "roformer": {"dim": 64, "base": 10000.0, "layout": "interleaved", "source": "arXiv 2104.09864"},
    "gpt_j_6b": {"dim": 64, "head_dim": 256, "base": 10000.0, "layout": "interleaved", "source": "EleutherAI/gpt-j-6b config"},
    "gpt_neox_20b": {"dim": 24, "head_dim": 96, "base": 10000.0, "layout": "half", "source": "EleutherAI/gpt-neox-20b config"},
    "llama_2_7b": {"dim": 128, "base": 10000.0, "layout": "half", "source": "transformers, meta-llama/Llama-2-7b-hf"},
    "code_llama_7b": {"dim": 128, "base": 1000000.0, "layout": "half", "source": "transformers, codellama/CodeLlama-7b-hf"},
}


def frequencies(dim, base=10000.0):
    """theta_t = base^(-2t/dim): float64 `(dim/2,)`, radians per position. RoFormer Eq. (15).

    `dim` is the rotated width, not the width of the head. ValueError if it is odd or `base` is not positive.

    >>> frequencies(4)
    array([1.  , 0.01])
    """
    _require.even("rope.frequencies", "dim", dim)
    _require.positive("rope.frequencies", "base", base)
    return base ** (-2 * np.arange(dim // 2) / dim)


def tables(positions, frequencies):
    """cos and sin of the angles m theta_t: two arrays `positions.shape + (dim/2,)`.

    Positions are integers or floats of any shape; a batch axis keeps its place, so `(batch, 1, n)` fits `(batch, heads, n, d)`.
    TypeError if either is not an array of numbers, ValueError if `frequencies` is not one axis.

    >>> cos, sin = tables(np.array([0, 1]), frequencies(4))
    >>> cos.round(4)
    array([[1.    , 1.    ],
           [0.5403, 1.    ]])
    """
    _require.array("rope.tables", "positions", positions)
    _require.array("rope.tables", "frequencies", frequencies)
    _require.axes("rope.tables", "frequencies", frequencies, "(dim/2,)")
    angle = positions[..., None] * frequencies
    return np.cos(angle), np.sin(angle)


def rotate(x, cos, sin, *, layout, rotary_dim=None):
    """R(m) x: every pair of features turned by its angle, shape of `x`, dtype by promotion. RoFormer Eqs. (14), (34).

    `x` `(..., n, d)`; `cos`, `sin` `(..., n, rotary_dim/2)` broadcast to `x` and, if they have a batch axis, have as many axes.
    With `rotary_dim` the first `rotary_dim` features turn and the others pass; without it all of them turn.
    ValueError for an odd or too large width, an unknown layout, or tables of another width.

    >>> x = np.array([[1.0, 2.0, 3.0, 4.0]])
    >>> cos, sin = tables(np.array([1]), frequencies(4))
    >>> rotate(x, cos, sin, layout="half").round(4)
    array([[-1.9841,  1.9599,  2.4624,  4.0198]])
    >>> rotate(x, cos, sin, layout="interleaved").round(4)
    array([[-1.1426,  1.9221,  2.9599,  4.0298]])
    """
    _require_tables("rope.rotate", x, cos, sin, rotary_dim)
    if rotary_dim is not None:
        turned = rotate(x[..., :rotary_dim], cos, sin, layout=layout)
        return np.concatenate([turned, x[..., rotary_dim:]], axis=-1)
    a, b = pairing.split(x, layout)
    return pairing.join(a * cos - b * sin, a * sin + b * cos, layout)


def rotate_efficient(x, cos, sin, *, layout):
    """The same map as `rotate`, as element-wise products with doubled tables: x * cos + turned(x) * sin.

    turned(x) is (-x_2, x_1, -x_4, x_3, .., -x_d, x_{d-1}) when interleaved, `rotate_half` in transformers' words otherwise.
    RoFormer Eq. (34). All features turn; errors as in `rotate`.

    >>> cos, sin = tables(np.array([1]), frequencies(4))
    >>> rotate_efficient(np.array([[1.0, 2.0, 3.0, 4.0]]), cos, sin, layout="half").round(4)
    array([[-1.9841,  1.9599,  2.4624,  4.0198]])
    """
    _require_tables("rope.rotate_efficient", x, cos, sin, None)
    a, b = pairing.split(x, layout)
    return x * pairing.join(cos, cos, layout) + pairing.join(-b, a, layout) * pairing.join(sin, sin, layout)


def rotate_complex(x, positions, frequencies):
    """Adjacent pairs as complex numbers, times e^{i m theta}: complex `(..., n, dim/2)`; Meta's Llama computes it so.

    Entry t is (x_{2t} + i x_{2t+1}) e^{i m theta_t}; the score is the real part of q times conj(k). RoFormer Eq. (12).
    All features turn; errors as in `tables` and `rotate`.

    >>> rotate_complex(np.array([[1.0, 2.0, 3.0, 4.0]]), np.array([1]), frequencies(4)).round(4)
    array([[-1.1426+1.9221j,  2.9599+4.0298j]])
    """
    _require.array("rope.rotate_complex", "x", x, ndim=1)
    _require.array("rope.rotate_complex", "positions", positions)
    _require.array("rope.rotate_complex", "frequencies", frequencies)
    _require.axes("rope.rotate_complex", "frequencies", frequencies, "(dim/2,)")
    angle = positions[..., None] * frequencies
    _require_tables("rope.rotate_complex", x, angle, angle, None)
    a, b = pairing.split(x, "interleaved")
    return (a + 1j * b) * np.exp(1j * angle)


def matrix(position, frequencies, *, layout):
    """R(m) itself, block diagonal for adjacent pairs: `(dim, dim)`, acting on column vectors. RoFormer Eq. (15).

    `position` is one number, or TypeError. `rotate(x)` is `x @ matrix(..).T`.

    >>> matrix(1, frequencies(2), layout="interleaved").round(4)
    array([[ 0.5403, -0.8415],
           [ 0.8415,  0.5403]])
    """
    _require.number("rope.matrix", "position", position)
    _require.array("rope.matrix", "frequencies", frequencies)
    _require.axes("rope.matrix", "frequencies", frequencies, "(dim/2,)")
    cos, sin = np.cos(position * frequencies), np.sin(position * frequencies)
    dim = 2 * frequencies.shape[-1]
    a, b = pairing.indices(dim, layout)
    turn = np.zeros((dim, dim), dtype=cos.dtype)
    turn[a, a], turn[a, b] = cos, -sin
    turn[b, a], turn[b, b] = sin, cos
    return turn


def gradient(output_gradient, cos, sin, *, layout, rotary_dim=None):
    """Gradient with respect to `x` of `rotate`: rotation by the negative angle, since R(m)^T = R(-m). Errors as in `rotate`.

    >>> cos, sin = tables(np.array([1]), frequencies(2))
    >>> gradient(np.array([[1.0, 0.0]]), cos, sin, layout="half").round(4)
    array([[ 0.5403, -0.8415]])
    """
    _require.array("rope.gradient", "sin", sin, ndim=1)
    return rotate(output_gradient, cos, -sin, layout=layout, rotary_dim=rotary_dim)


def _require_tables(function, x, cos, sin, rotary_dim):
    _require.array(function, "x", x, ndim=1)
    _require.array(function, "cos", cos, ndim=1)
    _require.array(function, "sin", sin, ndim=1)
    width, head_dim = x.shape[-1], x.shape[-1]
    if rotary_dim is not None:
        width = rotary_dim
        _require.even(function, "rotary_dim", rotary_dim)
        if rotary_dim > head_dim:
            raise ValueError(
                f"{function}: rotary_dim is {rotary_dim} and x has {head_dim} features; rotary_dim cannot exceed them"
            )
    _require.even(function, "the rotated width", width)
    if cos.shape != sin.shape:
        raise ValueError(f"{function}: cos has shape {cos.shape} and sin {sin.shape}; make both with rope.tables")
    if 2 * cos.shape[-1] != width:
        raise ValueError(
            f"{function}: the tables have {cos.shape[-1]} columns, {width} rotated features need {width // 2}; "
            f"make them with frequencies({width}), one column a pair, and pass rotary_dim= if only some features turn"
        )
    if 2 < len(cos.shape) < len(x.shape):
        raise ValueError(
            f"{function}: the tables have {len(cos.shape)} axes and x has {len(x.shape)} (shapes {cos.shape} and {x.shape}); "
            "give batched positions the axes of x, for instance (batch, 1, n) for x of shape (batch, heads, n, d)"
        )
    _require.broadcasts_to(function, "each table, without its columns,", cos[..., 0], "x without its features", x.shape[:-1])
