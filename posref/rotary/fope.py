r"""FoPE: each pair is rotated by a mixture of frequencies; frequencies below one full turn in training are left out.

RoPE gives each pair one frequency, but the layers around attention mix frequencies. And a pair with less than one full turn in
the trained length has seen only a part of its circle. FoPE mixes frequencies in each pair and does not rotate such slow pairs.

Also called: Fourier position embedding, Fourier series of rotary frequencies.

Definition. Of RoPE's frequencies those w_D with w_D L >= 2 pi are kept. Pair u of a query or key at m is multiplied by

    (a, b)  ->  (a c_u - b s_u, a s_u + b c_u)
    c_u  =  sum_D cos(m w_D) C_Du     s_u  =  sum_D sin(m w_D) S_Du     for pairs u below the width of C
    c_u  =  1                         s_u  =  1 or 0                    for the others

Symbols.

    m (..., n)                             positions
    length                                 L, the trained length
    frequencies (kept,)                    w
    cos_coefficients (h, kept, width)      C, one matrix a key head
    sin_coefficients (h, kept, width)      S
    cos, sin (..., h, n, dim/2)            tables for `rope.rotate`, with layout="half"

Conventions. C and S are `step_eye` plus noise, drawn once and stored with the model, not trained; they belong to key heads, and
queries that share a key share them (`attention.repeat_heads`). convention="released": s = 1 in pairs that do not rotate, which
is sqrt(2) times a rotation by 45 degrees, so what they add to a score is doubled; "zero_phase": s = 0, and they pass. A model
trained with one is wrong with the other. No frequency of a rational base equals 2 pi / L exactly, so >= and > give the same
frequencies.

Example. Without noise pairs are RoPE's, here 1 radian for each step, or 1 and 1, doubled, where nothing rotates.

>>> w = frequencies(4, length=64)
>>> one = step_eye(1, 1)[None]
>>> cos, sin = tables(np.arange(3), w, one, one, dim=4, convention="released")
>>> cos[0].round(3)
array([[ 1.   ,  1.   ],
       [ 0.54 ,  1.   ],
       [-0.416,  1.   ]])
>>> sin[0].round(3)
array([[0.   , 1.   ],
       [0.841, 1.   ],
       [0.909, 1.   ]])

Where implementations differ.

    what | who | value | version | source
    sin where nothing rotates | the authors' code; on purpose: a frequency of 0, not a phase of 0 | 1 | bd94b20d82
      | olmo/model.py FourierEmbedding; TsinghuaC3I/Fourier-Position-Embedding#6
    sin where nothing rotates | Intern-S1-Pro's code; lmdeploy | 1 | a copy, 4591d649e4; 1263d5cd88
      | muyaostudio/intern-s1-pro-vs-qwen3-235b-a22b; lmdeploy/pytorch/backends/default/rotary_embedding.py
    sin where nothing rotates | vLLM, which serves Intern-S1-Pro | 0 | 151a2c744a
      | rotary_embedding/fope.py; vllm-project/vllm#55204, #55243
    width of C and S | the authors' code | min(kept, dim/4) | bd94b20d82 | olmo/model.py FourierEmbedding
    width of C and S | Intern-S1-Pro's code, lmdeploy, vLLM | kept | as above | as above
    w L = 2 pi | the authors' code; the others | kept; left out | as above | get_inv_freq; _compute_inv_freq
    matrices | the authors' code; the others | one per query head; one per key head | as above | as above

References. Hua et al., Fourier Position Embedding, arXiv 2412.17739; github.com/TsinghuaC3I/Fourier-Position-Embedding.
"""

from typing import Literal, get_args

import numpy as np

from posref import _require
from posref._contract import Array, Count, Even, Numbers, Positive, contract
from posref.rotary import rope

Convention = Literal["released", "zero_phase"]
CONVENTIONS = get_args(Convention)

PRESETS = {
    "fope_60m": {
        "dim": 64,
        "base": 10000.0,
        "length": 1024,
        "source": "configs/c4/length-1024/ce-fourier/OLMo-60M: 512 / 8 features a head, max_sequence_length 1024, gain 0.3",
    },
    "fope_1.2b": {
        "dim": 128,
        "base": 10000.0,
        "length": 1024,
        "source": "configs/c4/length-1024/ce-fourier/OLMo-1200M: 2048 / 16 features a head, max_sequence_length 1024, gain 0.6",
    },
    "intern_s1_pro": {
        "dim": 128,
        "base": 5000000.0,
        "length": 262144,
        "source": "internlm/Intern-S1-Pro config.json: head_dim, rope_theta, max_position_embeddings; num_inv_freq null",
    },
}


@contract
def frequencies(dim: Even, base: Positive = 10000.0, *, length: Positive) -> Numbers[Array, "kept"]:
    """The first frequencies of `rope.frequencies(dim, base)`, those with at least one full turn in `length` tokens: `(kept,)`.

    >>> frequencies(16, length=64).round(4)
    array([1.    , 0.3162, 0.1   ])
    """
    w = rope.frequencies(dim, base)
    return w[w * length >= 2 * np.pi]


@contract
def step_eye(kept: Count, width: Count) -> Numbers[Array, "kept width"]:
    """The coefficients without noise: 1 at (u ceil(kept / width), u), else 0; a column whose 1 is beyond the last row is 0.

    >>> step_eye(3, 2)
    array([[1, 0],
           [0, 0],
           [0, 1]])
    """
    step = -(-kept // width)
    return 1 * (np.arange(kept)[:, None] == step * np.arange(width))


@contract(cos_coefficients="stored as cos_coef, for frequencies(dim, base, length=the trained length)")
def tables(
    positions: Numbers[Array, "... n"],
    frequencies: Numbers[Array, "kept"],
    cos_coefficients: Numbers[Array, "h kept width"],
    sin_coefficients: Numbers[Array, "h kept width"],
    *,
    dim: Even,
    convention: Convention,
) -> tuple[Numbers[Array, "... h n dim/2"], Numbers[Array, "... h n dim/2"]]:
    """c and s of every pair for `rope.rotate`: two arrays `(..., h, n, dim/2)`. ValueError if C is wider than dim/2.

    Positions of a batch are `(batch, n)` or `(1, n)`.

    >>> one = np.ones((1, 1, 1))
    >>> cos, sin = tables(np.array([0.0]), np.ones(1), one, one, dim=4, convention="zero_phase")
    >>> cos, sin
    (array([[[1., 1.]]]), array([[[0., 0.]]]))
    """
    width = cos_coefficients.shape[-1]
    _require.at_most("fope.tables", "width of the coefficients", width, "half of a head", dim // 2, "pass the whole width")
    angle = positions[..., None, :, None] * frequencies
    cos, sin = np.cos(angle) @ cos_coefficients, np.sin(angle) @ sin_coefficients
    still = np.ones_like(cos, shape=(*cos.shape[:-1], dim // 2 - width))
    phase = still if convention == "released" else 0 * still
    return np.concatenate([cos, still], axis=-1), np.concatenate([sin, phase], axis=-1)
