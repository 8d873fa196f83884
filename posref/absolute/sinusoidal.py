r"""Sinusoidal encoding: sines and cosines of geometrically spaced frequencies.

Definition. Position m has one (sine, cosine) pair for each frequency:

    p_{m, t} = (sin(m w_t), cos(m w_t)),   w_t = base^(-2t / dim),   t = 0 .. dim/2 - 1

Symbols. positions (...) in tokens; frequencies w (dim/2,) in radians per position; p (..., dim).

Conventions. 0-based positions and pairs; sine first. `layout="interleaved"` writes sin, cos, sin, cos, ..;
`layout="half"` writes all sines, then all cosines. `divisor="dim"` is the paper's exponent 2t/dim; `divisor="dim - 2"`
spaces the frequencies from 1 to exactly 1/base, exponent t/(dim/2 - 1).

Where implementations differ. The paper prints interleaved with divisor dim; the paper's own code, tensor2tensor
(get_timing_signal_1d), computes half with dim - 2, and so do fairseq, M2M100 and Whisper. Marian, Transformer-XL and XLNet
are half with dim; bert4keras is the printed form. At dim 512 the last frequency is 1.0366e-4 (dim) or 1e-4 (dim - 2).
Odd widths: tensor2tensor, fairseq and M2M100 append a zero column, Marian has one sine more than cosines, Whisper and
bert4keras refuse, and so does this. fairseq and M2M100 count positions from padding_idx + 1. Vaswani et al. multiply the token
embedding by sqrt(dim) before adding p.

Properties. proofs/absolute/sinusoidal.py: pinned, frequencies_pinned, dot_product, shift_is_linear,
second_order_recurrence, addition_is_bilinear, distance, unique, spanning, components_reach_both_signs.

References. Vaswani et al., Attention Is All You Need, arXiv 1706.03762, section 3.5; tensor2tensor
layers/common_attention.py.
"""

import numpy as np

from posref import _require, pairing

DIVISORS = ("dim", "dim - 2")

PRESETS = {
    "transformer_base": {"dim": 512, "divisor": "dim", "layout": "interleaved", "source": "arXiv 1706.03762 section 3.5"},
    "tensor2tensor": {"dim": 512, "divisor": "dim - 2", "layout": "half", "source": "tensor2tensor get_timing_signal_1d"},
    "whisper_tiny": {"dim": 384, "divisor": "dim - 2", "layout": "half", "source": "openai/whisper model.py sinusoids"},
}


def frequencies(dim, base=10000.0, *, divisor="dim"):
    """w_t = base^(-2t/divisor): float64 `(dim/2,)`, radians per position.

    ValueError if `dim` is odd, `base` not positive or `divisor` unknown. With `divisor="dim - 2"` and dim 2 the only
    frequency is 1, as in tensor2tensor.

    >>> frequencies(4)
    array([1.  , 0.01])
    >>> frequencies(4, divisor="dim - 2")
    array([1.e+00, 1.e-04])
    """
    _require.even("sinusoidal.frequencies", "dim", dim)
    _require.positive("sinusoidal.frequencies", "base", base)
    _require.choice("sinusoidal.frequencies", "divisor", divisor, DIVISORS)
    width = dim if divisor == "dim" else max(dim - 2, 1)
    return base ** (-2 * np.arange(dim // 2) / width)


def encode(positions, frequencies, *, layout):
    """p_m for every position: `positions.shape + (dim,)`; positions are integers or floats of any shape.

    TypeError if either is not an array of numbers, ValueError if `frequencies` is not one axis or `layout` unknown.

    >>> encode(np.array([0, 1]), frequencies(4), layout="interleaved").round(4)
    array([[0.    , 1.    , 0.    , 1.    ],
           [0.8415, 0.5403, 0.01  , 1.    ]])
    """
    _require.array("sinusoidal.encode", "positions", positions)
    _require.array("sinusoidal.encode", "frequencies", frequencies)
    _require.axes("sinusoidal.encode", "frequencies", frequencies, "(dim/2,)")
    angle = positions[..., None] * frequencies
    return pairing.join(np.sin(angle), np.cos(angle), layout)


def shift_matrix(offset, frequencies, *, layout):
    """M with p_{m + offset} = M p_m for every m: `(dim, dim)`, orthogonal, the same for all positions.

    TypeError if `offset` is not one number, ValueError if `frequencies` is not one axis.

    >>> M = shift_matrix(3, frequencies(4), layout="half")
    >>> p = encode(np.array([5, 8]), frequencies(4), layout="half")
    >>> bool(np.allclose(M @ p[0], p[1]))
    True
    """
    _require.number("sinusoidal.shift_matrix", "offset", offset)
    _require.array("sinusoidal.shift_matrix", "frequencies", frequencies)
    _require.axes("sinusoidal.shift_matrix", "frequencies", frequencies, "(dim/2,)")
    cos, sin = np.cos(offset * frequencies), np.sin(offset * frequencies)
    dim = 2 * frequencies.shape[-1]
    a, b = pairing.indices(dim, layout)
    shift = np.zeros((dim, dim), dtype=cos.dtype)
    shift[a, a], shift[a, b] = cos, sin
    shift[b, a], shift[b, b] = -sin, cos
    return shift
