r"""Sinusoidal encoding: sines and cosines of geometrically spaced frequencies.

Every position gets a vector of waves: fast waves distinguish neighbors, slow waves distinguish regions of the text. The
encoding needs no training and is defined for every position, and a shift by k positions is one linear map for all positions.

Also called: sinusoid, trigonometric, sine and cosine.

Definition. Position m has one pair (sine, cosine) for each of the dim/2 frequencies:

    w_t = base^(-2t / dim)          t = 0 .. dim/2 - 1, divisor="dim"
    w_t = base^(-2t / (dim - 2))    t = 0 .. dim/2 - 1, divisor="dim - 2"
    p_{m, t} = (sin(m w_t), cos(m w_t))

Symbols.

    m (...)       positions, in tokens
    w (dim/2,)    frequencies, in radians per position
    p (..., dim)  the encoding
    base          10000 in the paper
    dim           the number of features, even

Conventions. 0-based positions and pairs; sine first. `layout="interleaved"` writes sin, cos, sin, cos, ..; `layout="half"`
writes all sines, then all cosines. `divisor="dim"` is the paper's; "dim - 2" spaces the frequencies from 1 to exactly 1/base,
so that at dim 512 the last one is 1e-4 and not 1.0366e-4. The length of p is sqrt(dim/2) at every position. That is 35 times
the length of a word embedding with standard deviation 0.02, and 0.71 times its length once the embedding is multiplied by
sqrt(dim), as in the paper (standard deviation 1).

Example. Four positions and two frequencies, 1 and 1/100:

>>> print(encode(np.arange(4), frequencies(4), layout="interleaved").round(3))
[[ 0.     1.     0.     1.   ]
 [ 0.841  0.54   0.01   1.   ]
 [ 0.909 -0.416  0.02   1.   ]
 [ 0.141 -0.99   0.03   1.   ]]

Where implementations differ.

    what | who | value | version | source
    layout, divisor | Vaswani et al., as printed | interleaved, dim | arXiv 1706.03762 | section 3.5
    layout, divisor | tensor2tensor, the paper's code | half, dim - 2 | 1.15.7 | common_attention.py get_timing_signal_1d
    layout, divisor | fairseq | half, dim - 2 | 0491f26 | modules/sinusoidal_positional_embedding.py get_embedding
    layout, divisor | transformers' M2M100 | half, dim - 2 | 5.23.0 | modeling_m2m_100.py get_embedding
    layout, divisor | transformers' Whisper | half, dim - 2 | 5.23.0 | modeling_whisper.py sinusoids
    layout, divisor | transformers' Marian | half, dim | 5.23.0 | modeling_marian.py create_weight
    layout, divisor | Transformer-XL | half, dim | 0110210 | pytorch/mem_transformer.py PositionalEmbedding
    layout, divisor | transformers' XLNet | half, dim | 5.23.0 | modeling_xlnet.py relative_positional_encoding
    layout, divisor | bert4keras | interleaved, dim | 0.11.5 | backend.py sinusoidal_embeddings
    odd width | tensor2tensor | a column of zeros at the end | 1.15.7 | common_attention.py get_timing_signal_1d
    odd width | fairseq | a column of zeros at the end | 0491f26 | modules/sinusoidal_positional_embedding.py get_embedding
    odd width | transformers' M2M100 | a column of zeros at the end | 5.23.0 | modeling_m2m_100.py get_embedding
    odd width | transformers' Marian | one sine more than cosines | 5.23.0 | modeling_marian.py create_weight
    odd width | transformers' Whisper | refused, as here | 5.23.0 | modeling_whisper.py sinusoids
    odd width | bert4keras | refused, as here | 0.11.5 | backend.py sinusoidal_embeddings
    position of the first token | fairseq | padding_idx + 1 | 0491f26 | modules/sinusoidal_positional_embedding.py forward
    position of the first token | transformers' M2M100 | padding_idx + 1 | 5.23.0 | modeling_m2m_100.py forward
    token embedding before p is added | Vaswani et al. | times sqrt(dim) | arXiv 1706.03762 | section 3.4

References. Vaswani et al., Attention Is All You Need, arXiv 1706.03762, section 3.5.
"""

from typing import Literal, get_args

import numpy as np

from posref import pairing
from posref._contract import Array, Even, Number, Numbers, Positive, contract
from posref.pairing import Layout

Divisor = Literal["dim", "dim - 2"]
DIVISORS = get_args(Divisor)

PRESETS = {
    "transformer_base": {"dim": 512, "divisor": "dim", "layout": "interleaved", "source": "arXiv 1706.03762 section 3.5"},
    "tensor2tensor": {"dim": 512, "divisor": "dim - 2", "layout": "half", "source": "tensor2tensor get_timing_signal_1d"},
    "whisper_tiny": {"dim": 384, "divisor": "dim - 2", "layout": "half", "source": "openai/whisper model.py sinusoids"},
}


@contract
def frequencies(dim: Even, base: Positive = 10000.0, *, divisor: Divisor = "dim") -> Numbers[Array, "dim/2"]:
    """w_t = base^(-2t/divisor): float64 `(dim/2,)`, radians per position.

    ValueError if `dim` is odd, `base` not positive or `divisor` unknown. With `divisor="dim - 2"` and dim 2 the only
    frequency is 1, as in tensor2tensor.

    >>> frequencies(4)
    array([1.  , 0.01])
    >>> frequencies(4, divisor="dim - 2")
    array([1.e+00, 1.e-04])
    """
    width = dim if divisor == "dim" else max(dim - 2, 1)
    return base ** (-2 * np.arange(dim // 2) / width)


@contract
def encode(
    positions: Numbers[Array, "..."], frequencies: Numbers[Array, "dim/2"], *, layout: Layout
) -> Numbers[Array, "... dim"]:
    """p_m for every position: `positions.shape + (dim,)`; positions are integers or floats of any shape.

    TypeError if either is not an array of numbers, ValueError if `frequencies` is not one axis or `layout` unknown.

    >>> encode(np.array([0, 1]), frequencies(4), layout="interleaved").round(4)
    array([[0.    , 1.    , 0.    , 1.    ],
           [0.8415, 0.5403, 0.01  , 1.    ]])
    """
    angle = positions[..., None] * frequencies
    return pairing.join(np.sin(angle), np.cos(angle), layout)


@contract
def shift_matrix(offset: Number, frequencies: Numbers[Array, "dim/2"], *, layout: Layout) -> Numbers[Array, "dim dim"]:
    """M with p_{m + offset} = M p_m for every m: `(dim, dim)`, orthogonal, the same for all positions.

    TypeError if `offset` is not one number, ValueError if `frequencies` is not one axis.

    >>> M = shift_matrix(3, frequencies(4), layout="half")
    >>> p = encode(np.array([5, 8]), frequencies(4), layout="half")
    >>> bool(np.allclose(M @ p[0], p[1]))
    True
    """
    cos, sin = np.cos(offset * frequencies), np.sin(offset * frequencies)
    dim = 2 * frequencies.shape[-1]
    a, b = pairing.indices(dim, layout)
    shift = np.zeros_like(cos, shape=(dim, dim))
    shift[a, a], shift[a, b] = cos, sin
    shift[b, a], shift[b, b] = -sin, cos
    return shift
