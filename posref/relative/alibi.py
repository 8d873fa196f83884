r"""ALiBi: attention with linear biases; a score loses a fixed slope times the distance.

Definition. Head a of h has the slope m_a; for H heads, a power of two, with the steepest first:

    s_ij = q_i . k_j / sqrt(d) + m_a (j - i),     m_a = 2^(-8 a / H),   a = 1 .. H

For another number of heads, H is the largest power of two below it: the H slopes of H heads come first, then every other
slope of 2H heads, 2^(-8 b / 2H) for b = 1, 3, 5, .., as many as are missing.

Symbols. slopes m (h,), per token of distance; positions (..., n) in tokens; bias (..., h, n_query, n_key).

Conventions. The bias is added after the scores are multiplied by 1/sqrt(d) and is not scaled itself (the paper's
footnote 10). `form` says what is stored:

    signed     m (j - i)       the paper's, for causal attention; it would reward keys in the future
    absolute  -m |j - i|       equals signed in the past; the one for attention in both directions
    key        m j             equals signed up to m i, a constant of the row, so softmax cannot tell

Where implementations differ. Order: the slopes are not sorted unless h is a power of two; sorting them, or 2^(-8 a / h) for
every h, is another model. Form: key in the paper's own code (fairseq/models/transformer.py), BLOOM and MPT (MPT's j ends at
0); absolute in x-transformers and llama.cpp. flash-attn 2 (csrc/flash_attn/src/alibi.h) has both: key if causal, absolute if
not, though its docstring says absolute always; the logsumexp it returns differs by m i. Positions: BLOOM counts only unmasked
tokens, MPT all. Falcon adds m j before the scores are divided by sqrt(d), which is `bias / sqrt(d)` here, and rounds m and
then the product m j to bfloat16: with m = 1/4, seven positions from 1022 on have the bias 256. Its eager attention in
transformers 5.23 adds the bias a second time, through the mask. MPT (alibi_bias_max) and ggml (max_bias) can replace the 8. In
float16 the key form of a slope that is a power of two gives positions 2048 and 2049 one value; the signed form of nearby keys
does not.

Properties. proofs/relative/alibi.py: slopes_pinned (1 to 128 heads); geometric_exactly_for_powers_of_two; pinned;
falls_with_distance; translation_invariant; key_equals_signed (after softmax, with any mask);
absolute_agrees_in_the_past_alone; bias_before_the_scale (Falcon's slopes are sqrt(d) times smaller).

References. Press et al., arXiv 2108.12409, section 3 and footnote 10; github.com/ofirpress/attention_with_linear_biases.
"""

import numpy as np

from posref import _require
from posref.relative.offsets import offsets

FORMS = ("signed", "absolute", "key")

PRESETS = {
    "paper_8": {"heads": 8, "max_bias": 8, "form": "signed", "source": "arXiv 2108.12409 section 3"},
    "paper_16": {"heads": 16, "max_bias": 8, "form": "signed", "source": "arXiv 2108.12409 section 3"},
    "bloom_176b": {"heads": 112, "max_bias": 8, "form": "key", "source": "bigscience/bloom config.json"},
    "mpt_7b": {"heads": 32, "max_bias": 8, "form": "key", "source": "mosaicml/mpt-7b config.json"},
}


def slopes(heads, *, max_bias=8):
    """m_a in the published order, not sorted: float64 `(heads,)`. Press et al., section 3.

    The flattest slope is 2^-max_bias. Slopes with an integer exponent are exact. For tensor parallelism
    slice the slopes of all heads; the slopes of fewer heads are other numbers. ValueError if `heads` < 1.

    >>> slopes(4)
    array([0.25      , 0.0625    , 0.015625  , 0.00390625])
    >>> slopes(3)
    array([0.0625    , 0.00390625, 0.25      ])
    """
    _require.count("alibi.slopes", "heads", heads)
    _require.positive("alibi.slopes", "max_bias", max_bias)
    power = 1 << (int(heads).bit_length() - 1)
    steps = np.array([*range(2, 2 * power + 1, 2), *range(1, 2 * (heads - power), 2)])
    return 2 ** (-max_bias * steps / (2 * power))


def bias(query_positions, key_positions, slopes, *, form):
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
    _require.choice("alibi.bias", "form", form, FORMS)
    _require.array("alibi.bias", "slopes", slopes, ndim=1)
    if len(slopes.shape) != 1:
        raise ValueError(f"alibi.bias: slopes has shape {slopes.shape}, expected one axis (heads,)")
    offset = offsets(query_positions, key_positions)[..., None, :, :]
    if form == "signed":
        return slopes[:, None, None] * offset
    if form == "absolute":
        return slopes[:, None, None] * -np.abs(offset)
    return slopes[:, None, None] * key_positions[..., None, None, :]
