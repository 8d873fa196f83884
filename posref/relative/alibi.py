r"""ALiBi: attention with linear biases; each score is lowered by a fixed slope times the distance.

Far keys should count less at every length, also at lengths that were never trained. One slope per head says how much less, and
nothing is learned.

Also called: linear biases.

Definition. Head a of h has the slope m_a; H is the largest power of two that is not above h:

    s_ij = q_i . k_j / sqrt(d) + m_a (j - i)          form="signed", for causal attention
    s_ij = q_i . k_j / sqrt(d) - m_a |j - i|          form="absolute", for both directions
    s_ij = q_i . k_j / sqrt(d) + m_a j                form="key", the signed one after softmax
    m_a = 2^(-8 a / H)                                a = 1 .. H
    m_{H+c} = 2^(-8 (2c - 1) / (2H))                  c = 1 .. h - H: every other slope of 2H heads

Symbols.

    q (..., h, n_query, d)          queries
    k (..., h, n_key, d)            keys
    m (h,)                          slopes, per token of distance
    i, j (..., n)                   positions, in tokens
    8                               max_bias: the flattest slope is 2^-max_bias
    bias (..., h, n_query, n_key)   what is added to the scores

Conventions. The bias is added after the scores are multiplied by 1/sqrt(d) and is not scaled itself (the paper's footnote
10). "signed" would reward keys in the future; in the past "absolute" equals "signed". "key" differs from "signed" by m i, a
constant of the row, which a plain softmax ignores; with a sink, or a cap over the sum of scores and bias, the forms are
different models (`posref.attention`). The slopes are not sorted unless h is a power of two; sorting them, or 2^(-8 a / h) for
every h, is another model. In float16 the key form of a slope that is a power of two gives positions 2048 and 2049 one value;
the signed form of nearby keys does not.

Example. Four tokens and the first of eight heads, whose slope is 1/2.

>>> positions = np.arange(4)
>>> bias(positions, positions, slopes(8)[:1], form="absolute")
array([[[ 0. , -0.5, -1. , -1.5],
        [-0.5,  0. , -0.5, -1. ],
        [-1. , -0.5,  0. , -0.5],
        [-1.5, -1. , -0.5,  0. ]]])

Where implementations differ.

    what | who | value | version | source
    form | the paper's own code | key | - | fairseq/models/transformer.py
    form | BLOOM | key; only tokens that are not masked are counted | 5.23.0 | modeling_bloom.py build_alibi_tensor
    form | MPT | key; all tokens are counted, and the last j is 0 | 5.23.0 | modeling_mpt.py build_mpt_alibi_tensor
    form | x-transformers, llama.cpp | absolute | - | -
    form | flash-attn | key if causal, absolute if not; its docstring says absolute | 2 | csrc/flash_attn/src/alibi.h
    logsumexp of causal attention | flash-attn | differs by m i | 2 | csrc/flash_attn/src/alibi.h
    scale | Falcon | m j is added before the division by sqrt(d): `bias / sqrt(d)` here | 5.23.0 | modeling_falcon.py
    rounding | Falcon | m and then m j to bfloat16: with m = 1/4 seven positions from 1022 on have the bias 256 | 5.23.0
      | modeling_falcon.py build_alibi_tensor
    eager attention | Falcon | adds the bias a second time, through the mask | 5.23.0 | modeling_falcon.py
    the 8 | MPT | alibi_bias_max | 5.23.0 | modeling_mpt.py build_mpt_alibi_tensor
    the 8 | ggml | max_bias | - | -

References. Press et al., arXiv 2108.12409, section 3 and footnote 10; github.com/ofirpress/attention_with_linear_biases.
"""

from typing import Literal, get_args

import numpy as np

from posref._contract import Array, Count, Numbers, Positive, Signed, contract
from posref.offsets import offsets

Form = Literal["signed", "absolute", "key"]
FORMS = get_args(Form)

PRESETS = {
    "paper_8": {"heads": 8, "max_bias": 8, "form": "signed", "source": "arXiv 2108.12409 section 3"},
    "paper_16": {"heads": 16, "max_bias": 8, "form": "signed", "source": "arXiv 2108.12409 section 3"},
    "bloom_176b": {"heads": 112, "max_bias": 8, "form": "key", "source": "bigscience/bloom config.json"},
    "mpt_7b": {"heads": 32, "max_bias": 8, "form": "key", "source": "mosaicml/mpt-7b config.json"},
}


@contract
def slopes(heads: Count, *, max_bias: Positive = 8) -> Numbers[Array, "heads"]:
    """m_a in the published order, not sorted: float64 `(heads,)`. Press et al., section 3.

    The flattest slope is 2^-max_bias. Slopes with an integer exponent are exact. For tensor parallelism
    slice the slopes of all heads; the slopes of fewer heads are other numbers. ValueError if `heads` < 1.

    >>> slopes(4)
    array([0.25      , 0.0625    , 0.015625  , 0.00390625])
    >>> slopes(3)
    array([0.0625    , 0.00390625, 0.25      ])
    """
    power = 1 << (int(heads).bit_length() - 1)
    steps = np.array([*range(2, 2 * power + 1, 2), *range(1, 2 * (heads - power), 2)])
    return 2 ** (-max_bias * steps / (2 * power))


@contract(slopes="one entry per head")
def bias(
    query_positions: Signed[Array, "... n_query"],
    key_positions: Signed[Array, "... n_key"],
    slopes: Numbers[Array, "h"],
    *,
    form: Form,
) -> Numbers[Array, "... h #n_query n_key"]:
    """m (j - i), -m |j - i| or m j, to be added to scaled scores: `(..., h, n_query, n_key)`, with n_query 1 for "key".

    `query_positions` `(..., n_query)`, `key_positions` `(..., n_key)`, `slopes` `(h,)`. Positions of shape (batch, n) give
    a leading batch axis. One decoding step, queries at [n - 1], is the last row. TypeError for unsigned positions,
    ValueError for an unknown `form` or slopes of another rank.

    >>> bias(np.array([1, 2]), np.array([0, 1, 2]), slopes(1) * 256, form="signed")
    array([[[-1.,  0.,  1.],
            [-2., -1.,  0.]]])
    >>> bias(np.array([1, 2]), np.array([0, 1, 2]), slopes(1) * 256, form="absolute")
    array([[[-1.,  0., -1.],
            [-2., -1.,  0.]]])
    >>> bias(np.array([1, 2]), np.array([0, 1, 2]), slopes(1) * 256, form="key")
    array([[[0., 1., 2.]]])
    """
    m = slopes[:, None, None]
    if form == "key":
        return m * key_positions[..., None, None, :]
    offset = offsets(query_positions, key_positions)[..., None, :, :]
    return m * (offset if form == "signed" else -np.abs(offset))
