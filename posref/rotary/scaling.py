r"""RoPE scaling: lower frequencies, so that a model trained on short texts can read long ones.

A model fails at angles that it never saw in training. A schedule lowers the frequencies, so that long texts use the same range
of angles as short ones.

Also called: context extension, position interpolation, PI, NTK-aware, NTK by parts, YaRN, LongRoPE, p-RoPE.

Definition. With pairs t = 0 .. h - 1, h = dim/2, and n_t = L w_t / 2 pi full turns of pair t in the L tokens of training:

    linear        w_t / s
    ntk           w_t s^(-t / (h - 1)), which is RoPE with the base b s^(dim / (dim - 2))
    dynamic_ntk   ntk with s max(l, L) / L - (s - 1) for s, where l is the length of the text
    yarn          (1 - e_t) w_t + e_t w_t / s,   e_t = clip((t - low) / (high - low), 0, 1)
    yarn_range    low, high = dim ln(L / 2 pi beta) / (2 ln b) for beta_fast and beta_slow, cut to 0 and to dim - 1
    llama3        (1 - c_t) w_t / s + c_t w_t,   c_t = clip((n_t - n_low) / (n_high - n_low), 0, 1)
    longrope      w_t / lambda_t
    proportional  w_t / s for the first floor(fraction h) pairs, 0 for the rest
    magnitude     yarn: 0.1 mscale ln s + 1,   longrope: sqrt(1 + ln s / ln L)

Symbols.

    w (dim/2,)              frequencies, in radians per position
    s                       factor, at least 1: `factor` of a configuration
    L                       original_length, in tokens: `original_max_position_embeddings`
    b                       base: `rope_theta`
    beta_fast, beta_slow    the turns at which YaRN's ramp begins and ends
    n_low, n_high           the same of Llama 3: `low_freq_factor`, `high_freq_factor`
    lambda (dim/2,)         factors: `short_factor` or `long_factor`
    fraction                `partial_rotary_factor`

Conventions. 0-based pairs. A schedule maps frequencies to frequencies and knows nothing else. The magnitude g is no part of
the frequencies: g multiplies queries and keys, so scores by g^2 where all features rotate. Whether YaRN's low and high are
truncated to integers has no default. With low_freq_factor = high_freq_factor, as in Llama 4 Scout, a pair exactly on the edge
keeps its frequency.

Example. Four pairs, a model trained on 64 tokens, and a factor of 4: by how much each schedule divides each frequency.

>>> theta = np.array([1.0, 0.1, 0.01, 0.001])
>>> given = {"factor": 4.0, "original_length": 64}
>>> (theta / linear(theta, factor=4.0)).round(3)
array([4., 4., 4., 4.])
>>> (theta / ntk(theta, factor=4.0)).round(3)
array([1.   , 1.587, 2.52 , 4.   ])
>>> (theta / yarn(theta, **given, base=10000.0, truncate=False)).round(3)
array([1.   , 3.907, 4.   , 4.   ])
>>> (theta / llama3(theta, **given, low_freq_factor=1.0, high_freq_factor=4.0)).round(3)
array([1.   , 3.927, 4.   , 4.   ])

Where implementations differ.

    what | who | value | version | source
    YaRN's ramp | the authors' code, transformers, vLLM | over the index t | 5.23.0 | modeling_rope_utils.py
    YaRN's ramp | the paper | over the turns n_t (`ramp="turns"`) | arXiv 2309.00071 | Definition 2
    YaRN's ramp | litgpt | upside down: fast pairs are divided | 0.5.13 | litgpt/model.py build_rope_cache
    truncate | transformers | true unless given, also where it is given by layer type | 5.23.0 | modeling_rope_utils.py
    truncate | mlx-lm | true, the key is not read | d78bf58e | mlx_lm/models/rope_utils.py YarnRoPE
    truncate | gpt-oss | false | 7b583341 | gpt_oss/torch/model.py
    low = high | transformers, mlx-lm | high + 0.001 | 5.23.0 | modeling_rope_utils.py
    low >= high | posref | refused: low > high turns the ramp upside down there | - | yarn_range
    beta_fast = 0 | transformers | read as 32 | 5.23.0 | modeling_rope_utils.py
    magnitude | transformers, gpt-oss | on the tables | 5.23.0 | modeling_rope_utils.py
    magnitude | mlx-lm | on the rotated features of queries and keys | d78bf58e | mlx_lm/models/rope_utils.py YarnRoPE
    magnitude | DeepSeek-V3 | its square on the softmax scale | 9b4e9788 | inference/model.py
    LongRoPE's list | transformers | long if the largest position + 1 exceeds L | 5.23.0 | modeling_rope_utils.py
    LongRoPE's list | vLLM | long if max_model_len exceeds L | 17d618b0 | phi3_long_rope_scaled_rope.py
    LongRoPE's list | llama.cpp | long if the context of one sequence exceeds L | - | get_rope_factors
    LongRoPE's list | mlx-lm | always long | d78bf58e | mlx_lm/models/rope_utils.py SuScaledRoPE
    dynamic NTK's length | transformers | the longest seen, until one shorter than L | 5.23.0 | modeling_rope_utils.py
    dynamic NTK's length | mlx-lm | the present one | d78bf58e | mlx_lm/models/rope_utils.py DynamicNTKScalingRoPE
    dynamic NTK's length | vLLM | s L, for every text | - | dynamic_ntk_scaling_rope.py
    dynamic NTK | keras-hub | all frequencies divided by s^(dim / (dim - 2)) | 0.32.0 | rotary_embedding.py

References. Chen et al., Position Interpolation, arXiv 2306.15595, Eq. (4); Peng et al., YaRN, arXiv 2309.00071, Definitions 1
to 3; Grattafiori et al., Llama 3, arXiv 2407.21783; Ding et al., LongRoPE, arXiv 2402.13753.
Not here: p-RoPE, arXiv 2410.06205, at queries and keys, under a name of its own: it is `proportional` with fraction p.
"""

# Over budget: seven schedules, and the lengths and lists that they choose by

from typing import Literal, NamedTuple

import numpy as np

from posref import _require
from posref._contract import AboveOne, Array, Even, Factor, Fraction, Integers, Number, Numbers, Positive, contract

Ramp = Literal["index", "turns"]
ListRule = Literal["transformers", "vllm", "llama.cpp", "mlx-lm"]
LengthRule = Literal["transformers", "vllm", "mlx-lm"]

FACTOR = "a configuration calls it factor, and stretches the context by it"
LENGTH = "a configuration calls it original_max_position_embeddings"
BASE = "a configuration calls it rope_theta"


class Range(NamedTuple):
    """Where YaRN's ramp begins and ends: pairs up to `low` keep their frequency, from `high` on it is divided."""

    low: float
    high: float


@contract(factor=FACTOR)
def linear(frequencies: Numbers[Array, "dim/2"], *, factor: Factor) -> Numbers[Array, "dim/2"]:
    """w_t / s: position m rotates as m / s did. Chen et al. Eq. (4); `rope_type` "linear".

    >>> linear(np.array([1.0, 0.01]), factor=4.0)
    array([0.25  , 0.0025])
    """
    return frequencies / factor


@contract(factor=FACTOR)
def ntk(frequencies: Numbers[Array, "dim/2"], *, factor: Factor) -> Numbers[Array, "dim/2"]:
    """w_t s^(-t / (h - 1)), h pairs: the first frequency is kept, the last divided by s. YaRN Definition 1.

    For w_t = b^(-2t / dim) it is another base, b s^(dim / (dim - 2)). ValueError for a single pair, which is first and last.
    Computed in float64.

    >>> ntk(np.array([1.0, 0.1, 0.01]), factor=4.0)
    array([1.    , 0.05  , 0.0025])
    """
    last = frequencies.shape[-1] - 1
    _require_a_second_pair(last)
    return frequencies * factor ** (-np.arange(last + 1) / last)


@contract(factor=FACTOR, original_length=LENGTH)
def dynamic_ntk(
    frequencies: Numbers[Array, "dim/2"], *, factor: Factor, length: Positive, original_length: Positive
) -> Numbers[Array, "dim/2"]:
    """`ntk` with a factor that grows with the text of l = `length` tokens: s max(l, L) / L - (s - 1). `rope_type` "dynamic".

    Texts up to `original_length` are untouched. Which length counts is `dynamic_length`'s matter. Errors as in `ntk`.
    Computed in float64.

    >>> dynamic_ntk(np.array([1.0, 0.1, 0.01]), factor=2.0, length=5120, original_length=2048)
    array([1.    , 0.05  , 0.0025])
    """
    stretch = factor * np.maximum(length, original_length) / original_length - (factor - 1)
    return ntk(frequencies, factor=stretch)


@contract(factor=FACTOR, original_length=LENGTH, base=BASE)
def yarn(
    frequencies: Numbers[Array, "dim/2"],
    *,
    factor: Factor,
    original_length: Positive,
    base: AboveOne,
    beta_fast: Positive = 32.0,
    beta_slow: Positive = 1.0,
    ramp: Ramp = "index",
    truncate: bool,
) -> Numbers[Array, "dim/2"]:
    """(1 - e_t) w_t + e_t w_t / s: fast pairs are kept, slow ones divided, with a ramp between. `rope_type` "yarn".

    With `ramp="index"` e_t = clip((t - low) / (high - low), 0, 1) by `yarn_range`, as released; with "turns"
    e_t = clip((beta_fast - n_t) / (beta_fast - beta_slow), 0, 1), n_t = L w_t / 2 pi, as in the paper, and neither `base` nor
    `truncate` matters. YaRN Definition 2. The magnitude is `yarn_magnitude`. Errors as in `yarn_range`.

    >>> w = 10000.0 ** (-np.arange(8) / 8)
    >>> (w / yarn(w, factor=4.0, original_length=2048, base=10000.0, truncate=True)).round(3)
    array([1.   , 1.   , 1.   , 1.231, 1.6  , 2.286, 4.   , 4.   ])
    """
    if ramp == "index":
        pairs, betas = frequencies.shape[-1], {"beta_fast": beta_fast, "beta_slow": beta_slow}
        low, high = yarn_range(2 * pairs, base, original_length=original_length, **betas, truncate=truncate)
        along = np.arange(pairs)
    else:
        low, high, along = -beta_fast, -beta_slow, -original_length * frequencies / (2 * np.pi)
        _require_ramp("yarn", low, high, beta_fast, beta_slow)
    divided = np.clip((along - low) / (high - low), 0, 1)
    return (1 - divided) * frequencies + divided * frequencies / factor


@contract(original_length=LENGTH, base=BASE)
def yarn_range(
    dim: Even,
    base: AboveOne,
    *,
    original_length: Positive,
    beta_fast: Positive = 32.0,
    beta_slow: Positive = 1.0,
    truncate: bool,
) -> Range:
    """low, high: the indices, as real numbers, of pairs that make beta_fast and beta_slow turns in `original_length` tokens.

    dim ln(L / 2 pi beta) / (2 ln b), with `truncate` rounded down and up, then cut to 0 below and dim - 1 above.
    ValueError where low is not below high: then there is no ramp.

    >>> np.round(yarn_range(64, 150000.0, original_length=4096, truncate=False), 6)
    array([ 8.092779, 17.398025])
    >>> np.round(yarn_range(64, 150000.0, original_length=4096, truncate=True), 6)
    array([ 8., 18.])
    """
    low = dim * np.log(original_length / (2 * np.pi * beta_fast)) / (2 * np.log(base))
    high = dim * np.log(original_length / (2 * np.pi * beta_slow)) / (2 * np.log(base))
    if truncate:
        low, high = np.floor(low), np.ceil(high)
    low, high = np.maximum(low, 0), np.minimum(high, dim - 1)
    _require_ramp("yarn_range", low, high, beta_fast, beta_slow)
    return Range(low, high)


@contract(factor=FACTOR, original_length=LENGTH)
def llama3(
    frequencies: Numbers[Array, "dim/2"],
    *,
    factor: Factor,
    low_freq_factor: Positive,
    high_freq_factor: Positive,
    original_length: Positive,
) -> Numbers[Array, "dim/2"]:
    """(1 - c_t) w_t / s + c_t w_t: c_t runs from 0 at `low_freq_factor` turns to 1 at `high_freq_factor`. `rope_type` "llama3".

    If the two are equal there is no blend: fewer turns are divided, as many or more kept. ValueError if low is above high.

    >>> w = 500000.0 ** (-np.arange(8) / 8)
    >>> (w / llama3(w, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_length=8192)).round(3)
    array([1.   , 1.   , 1.   , 1.   , 2.695, 8.   , 8.   , 8.   ])
    """
    _require_order(low_freq_factor, high_freq_factor)
    turns = original_length * frequencies / (2 * np.pi)
    span = high_freq_factor - low_freq_factor
    blend = (turns - low_freq_factor) / (span + (span == 0))  # equal edges leave nothing to blend
    kept = np.where(turns < low_freq_factor, 0, np.where(turns < high_freq_factor, blend, 1))
    return (1 - kept) * frequencies / factor + kept * frequencies


@contract(factors="a list has one factor per pair: half the rotated width (short_factor, long_factor)")
def longrope(frequencies: Numbers[Array, "dim/2"], *, factors: Numbers[Array, "dim/2"]) -> Numbers[Array, "dim/2"]:
    """w_t / lambda_t, a factor for each pair: `short_factor` or `long_factor`, see `longrope_list`. `rope_type` "longrope".

    >>> longrope(np.array([1.0, 0.01]), factors=np.array([1.0, 4.0]))
    array([1.    , 0.0025])
    """
    _require.above_zero("scaling.longrope", "factors", factors, "short_factor, long_factor")
    return frequencies / factors


@contract(fraction="a configuration calls it partial_rotary_factor", factor=FACTOR)
def proportional(frequencies: Numbers[Array, "dim/2"], *, fraction: Fraction, factor: Factor = 1) -> Numbers[Array, "dim/2"]:
    """The first floor(fraction h) frequencies, divided by s, then 0: the other pairs do not rotate. `rope_type` "proportional".

    `frequencies` are those of the whole head, so half layout pairs features across it; partial rotary (`rotary_dim`) is another
    map. `fraction` is `partial_rotary_factor`.

    >>> proportional(np.array([1.0, 0.1, 0.01, 0.001]), fraction=0.5)
    array([1. , 0.1, 0. , 0. ])
    """
    pairs = frequencies.shape[-1]
    return np.where(np.arange(pairs) < np.floor(fraction * pairs), frequencies, 0) / factor


@contract(factor=FACTOR)
def yarn_magnitude(factor: Factor, *, mscale: Number = 1.0) -> Number:
    """mscale ln s / 10 + 1: what YaRN multiplies queries and keys by. YaRN section 3.4.

    With `mscale` and `mscale_all_dim` transformers takes the quotient of the two magnitudes; DeepSeek puts the square of that
    for `mscale_all_dim` on the softmax scale. A given `attention_factor` takes the place of all this.

    >>> round(float(yarn_magnitude(32.0)), 6)
    1.346574
    """
    return mscale * np.log(factor) / 10 + 1


@contract(factor=FACTOR, original_length=LENGTH)
def longrope_magnitude(factor: Factor, *, original_length: AboveOne) -> Number:
    """sqrt(1 + ln s / ln L): what LongRoPE multiplies queries and keys by, with either list.

    `factor` is max_position_embeddings / original_max_position_embeddings where a configuration has none.

    >>> round(float(longrope_magnitude(32.0, original_length=4096)), 6)
    1.190238
    """
    return np.sqrt(1 + np.log(factor) / np.log(original_length))


@contract(original_length=LENGTH)
def longrope_list(rule: ListRule, *, length: Positive, original_length: Positive, model_length: Positive) -> str:
    """Which list a program takes, "short" or "long": by the longest text of the batch, or by what it was started with.

    `length` is the largest position of the batch plus 1; `model_length` is vLLM's max_model_len or llama.cpp's context of one
    sequence. mlx-lm takes the long list always.

    >>> given = {"length": 100, "original_length": 4096, "model_length": 131072}
    >>> [longrope_list(rule, **given) for rule in ("transformers", "vllm", "llama.cpp", "mlx-lm")]
    ['short', 'long', 'long', 'long']
    """
    deciding = length if rule == "transformers" else model_length
    return "long" if rule == "mlx-lm" or deciding > original_length else "short"


@contract(factor=FACTOR, original_length=LENGTH)
def dynamic_length(rule: LengthRule, *, lengths: Integers[Array, "calls"], original_length: Positive, factor: Factor) -> Number:
    """The length that a program passes to `dynamic_ntk` in the last of its calls, whose texts had `lengths`.

    transformers keeps the longest until a text shorter than `original_length` resets it; mlx-lm takes the present one; vLLM
    always takes factor times original_length, so short texts too are stretched, by s^2 - s + 1.

    >>> given = {"lengths": np.array([100, 9000, 5000]), "original_length": 2048, "factor": 2.0}
    >>> [int(dynamic_length(rule, **given)) for rule in ("transformers", "vllm", "mlx-lm")]
    [9000, 4096, 5000]
    """
    longest = original_length
    for length in lengths:
        longest = max(longest, length) if length >= original_length else original_length
    return {"transformers": longest, "vllm": factor * original_length, "mlx-lm": [original_length, *lengths][-1]}[rule]


def _require_ramp(function, low, high, beta_fast, beta_slow):
    if not low < high:
        raise ValueError(
            f"scaling.{function}: beta_fast {beta_fast} and beta_slow {beta_slow} put the ramp from {low} to {high}; "
            "low must be below high, see original_max_position_embeddings and rope_theta"
        )


def _require_a_second_pair(last):
    if last == 0:
        raise ValueError("scaling.ntk: frequencies has 1 entry, both kept and divided; use a rotated width of at least 4")


def _require_order(low_freq_factor, high_freq_factor):
    if not low_freq_factor <= high_freq_factor:
        raise ValueError(
            f"scaling.llama3: low_freq_factor is {low_freq_factor} and high_freq_factor {high_freq_factor}; "
            "the low edge may not be above the high one"
        )
