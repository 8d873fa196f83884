r"""RoPE scaling: slower frequencies, so that a model trained on short texts reads long ones.

Definition. With pairs t = 0 .. h - 1, h = dim/2, factor s, and n_t = L w_t / 2 pi turns in the L tokens of training:

    linear        w_t / s
    ntk           w_t s^(-t / (h - 1)), which is the base b s^(dim / (dim - 2))
    dynamic_ntk   ntk with s max(l, L) / L - (s - 1) for s, where l is the length of the text
    yarn          (1 - e_t) w_t + e_t w_t / s,  e_t = clip((t - low) / (high - low), 0, 1)
                  low, high  =  dim ln(L / 2 pi beta) / (2 ln b) for beta_fast and beta_slow, cut to 0 and to dim - 1
    llama3        (1 - c_t) w_t / s + c_t w_t,  c_t = clip((n_t - n_low) / (n_high - n_low), 0, 1)
    longrope      w_t / lambda_t
    proportional  w_t / s for the first floor(fraction h) pairs, 0 for the rest
    magnitude     yarn: 0.1 mscale ln s + 1,  longrope: sqrt(1 + ln s / ln L)

Symbols. frequencies w (dim/2,) in radians per position; factor s >= 1 (`factor` of a configuration); original_length L in
tokens (`original_max_position_embeddings`); base b (`rope_theta`); beta_fast, beta_slow, low_freq_factor n_low and
high_freq_factor n_high in turns; factors lambda (dim/2,) (`short_factor`, `long_factor`); fraction (`partial_rotary_factor`).

Conventions. 0-based pairs; dim is twice the number of frequencies. A magnitude g multiplies queries and keys alike, hence
scores by g^2 where all features turn. Whether YaRN's low and high are truncated to integers has no default.
With low_freq_factor = high_freq_factor, as in Llama 4 Scout, the pair exactly on the edge keeps its frequency.

Where implementations differ. YaRN's ramp runs over the index t in the authors' code and in every release, over the turns n_t in
the paper (`ramp="turns"`). gpt-oss does not truncate; ggml and mlx-lm always do. transformers 5.23.0 truncates unless
`truncate` is false, which it does not find where parameters are given by layer type; it reads beta_fast = 0 as 32, and widens
low = high by 0.001, while low > high, a ramp upside down there, is an error here. The magnitude is put on the tables by
transformers and gpt-oss, on queries and keys by mlx-lm, squared on the softmax scale by DeepSeek: the same thing if all
features turn and not otherwise. LongRoPE's list is chosen by the batch, by the server or not at all (`longrope_list`);
dynamic NTK has a memory in transformers (`dynamic_length`).

Properties. proofs/rotary/scaling.py.

References. Chen et al., Position Interpolation, arXiv 2306.15595, Eq. (4); Peng et al., YaRN, arXiv 2309.00071, Definitions 1
to 3; Grattafiori et al., Llama 3, arXiv 2407.21783; Ding et al., LongRoPE, arXiv 2402.13753.
"""

from typing import NamedTuple

import numpy as np

from posref import _require

RAMPS = ("index", "turns")
LIST_RULES = ("transformers", "vllm", "llama.cpp", "mlx-lm")
LENGTH_RULES = ("transformers", "vllm", "mlx-lm")

PRESETS = {
    "llama_3_1": {
        "schedule": "llama3",
        "dim": 128,
        "base": 500000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_length": 8192,
        "source": "transformers, meta-llama/Meta-Llama-3.1-70B config",
    },
}


class Range(NamedTuple):
    """Where YaRN's ramp begins and ends: pairs up to `low` keep their frequency, from `high` on it is divided."""

    low: float
    high: float


def linear(frequencies, *, factor):
    """w_t / s: position m turns as m / s did. Chen et al. Eq. (4); `rope_type` "linear".

    >>> linear(np.array([1.0, 0.01]), factor=4.0)
    array([0.25  , 0.0025])
    """
    _require_frequencies("scaling.linear", frequencies)
    _require_factor("scaling.linear", factor)
    return frequencies / factor


def ntk(frequencies, *, factor):
    """w_t s^(-t / (h - 1)), h pairs: the first frequency is kept, the last divided by s. YaRN Definition 1.

    For w_t = b^(-2t / dim) it is another base, b s^(dim / (dim - 2)). ValueError for a single pair, which is first and last.

    >>> ntk(np.array([1.0, 0.1, 0.01]), factor=4.0)
    array([1.    , 0.05  , 0.0025])
    """
    _require_frequencies("scaling.ntk", frequencies)
    _require_factor("scaling.ntk", factor)
    last = frequencies.shape[-1] - 1
    if last == 0:
        raise ValueError(
            "scaling.ntk: frequencies has 1 entry, which would be kept and divided; use a rotated width of at least 4"
        )
    return frequencies * factor ** (-np.arange(last + 1) / last)


def dynamic_ntk(frequencies, *, factor, length, original_length):
    """`ntk` by as much as a text of `length` tokens needs: s max(l, L) / L - (s - 1). `rope_type` "dynamic".

    Texts up to `original_length` are untouched. Which length counts is `dynamic_length`'s matter. Errors as in `ntk`.

    >>> dynamic_ntk(np.array([1.0, 0.1, 0.01]), factor=2.0, length=5120, original_length=2048)
    array([1.    , 0.05  , 0.0025])
    """
    _require_factor("scaling.dynamic_ntk", factor)
    _require_length("scaling.dynamic_ntk", "length", length)
    _require_length("scaling.dynamic_ntk", "original_length", original_length)
    stretch = factor * np.maximum(length, original_length) / original_length - (factor - 1)
    return ntk(frequencies, factor=stretch)


def yarn(frequencies, *, factor, original_length, base, beta_fast=32.0, beta_slow=1.0, ramp="index", truncate):
    """(1 - e_t) w_t + e_t w_t / s: fast pairs are kept, slow ones divided, with a ramp between. `rope_type` "yarn".

    With `ramp="index"` e_t = clip((t - low) / (high - low), 0, 1) by `yarn_range`, as released; with "turns"
    e_t = clip((beta_fast - n_t) / (beta_fast - beta_slow), 0, 1), n_t = L w_t / 2 pi, as in the paper, and neither `base` nor
    `truncate` matters. YaRN Definition 2. The magnitude is `yarn_magnitude`. Errors as in `yarn_range`.

    >>> w = 10000.0 ** (-np.arange(8) / 8)
    >>> (w / yarn(w, factor=4.0, original_length=2048, base=10000.0, truncate=True)).round(3)
    array([1.   , 1.   , 1.   , 1.231, 1.6  , 2.286, 4.   , 4.   ])
    """
    _require_frequencies("scaling.yarn", frequencies)
    _require_factor("scaling.yarn", factor)
    _require.choice("scaling.yarn", "ramp", ramp, RAMPS)
    betas = {"beta_fast": beta_fast, "beta_slow": beta_slow}
    pairs = frequencies.shape[-1]
    low, high = yarn_range(2 * pairs, base, original_length=original_length, **betas, truncate=truncate)
    if ramp == "index":
        divided = np.clip((np.arange(pairs) - low) / (high - low), 0, 1)
    else:
        turns = original_length * frequencies / (2 * np.pi)
        divided = np.clip((beta_fast - turns) / (beta_fast - beta_slow), 0, 1)
    return (1 - divided) * frequencies + divided * frequencies / factor


def yarn_range(dim, base, *, original_length, beta_fast=32.0, beta_slow=1.0, truncate):
    """low, high: the indices, as real numbers, of pairs that make beta_fast and beta_slow turns in `original_length` tokens.

    dim ln(L / 2 pi beta) / (2 ln b), with `truncate` rounded down and up, then cut to 0 below and dim - 1 above.
    ValueError where low is not below high: then there is no ramp.

    >>> np.round(yarn_range(64, 150000.0, original_length=4096, truncate=False), 6)
    array([ 8.092779, 17.398025])
    >>> np.round(yarn_range(64, 150000.0, original_length=4096, truncate=True), 6)
    array([ 8., 18.])
    """
    _require.even("scaling.yarn_range", "dim", dim)
    _require_length("scaling.yarn_range", "original_length", original_length)
    _require.positive("scaling.yarn_range", "beta_fast", beta_fast)
    _require.positive("scaling.yarn_range", "beta_slow", beta_slow)
    _require.choice("scaling.yarn_range", "truncate", truncate, (True, False))
    _require.positive("scaling.yarn_range", "base", base)
    if not base > 1:
        raise ValueError(f"scaling.yarn_range: base is {base}, expected more than 1 (rope_theta)")
    low = dim * np.log(original_length / (2 * np.pi * beta_fast)) / (2 * np.log(base))
    high = dim * np.log(original_length / (2 * np.pi * beta_slow)) / (2 * np.log(base))
    if truncate:
        low, high = np.floor(low), np.ceil(high)
    low, high = np.maximum(low, 0), np.minimum(high, dim - 1)
    if not low < high:
        raise ValueError(
            f"scaling.yarn_range: beta_fast {beta_fast} and beta_slow {beta_slow} put the ramp from {low} to {high}; "
            "low must be below high, see original_max_position_embeddings and rope_theta"
        )
    return Range(low, high)


def llama3(frequencies, *, factor, low_freq_factor, high_freq_factor, original_length):
    """(1 - c_t) w_t / s + c_t w_t: c_t runs from 0 at `low_freq_factor` turns to 1 at `high_freq_factor`. `rope_type` "llama3".

    If the two are equal there is no blend: fewer turns are divided, as many or more kept. ValueError if low is above high.

    >>> w = 500000.0 ** (-np.arange(8) / 8)
    >>> (w / llama3(w, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_length=8192)).round(3)
    array([1.   , 1.   , 1.   , 1.   , 2.695, 8.   , 8.   , 8.   ])
    """
    _require_frequencies("scaling.llama3", frequencies)
    _require_factor("scaling.llama3", factor)
    _require_length("scaling.llama3", "original_length", original_length)
    _require.positive("scaling.llama3", "low_freq_factor", low_freq_factor)
    if not low_freq_factor <= high_freq_factor:
        raise ValueError(
            f"scaling.llama3: low_freq_factor is {low_freq_factor} and high_freq_factor {high_freq_factor}; "
            "the low edge may not be above the high one"
        )
    turns = original_length * frequencies / (2 * np.pi)
    span = high_freq_factor - low_freq_factor
    blend = (turns - low_freq_factor) / (span + (span == 0))  # equal edges leave nothing to blend
    kept = np.where(turns < low_freq_factor, 0, np.where(turns < high_freq_factor, blend, 1))
    return (1 - kept) * frequencies / factor + kept * frequencies


def longrope(frequencies, *, factors):
    """w_t / lambda_t, a factor for each pair: `short_factor` or `long_factor`, see `longrope_list`. `rope_type` "longrope".

    >>> longrope(np.array([1.0, 0.01]), factors=np.array([1.0, 4.0]))
    array([1.    , 0.0025])
    """
    _require_frequencies("scaling.longrope", frequencies)
    _require.array("scaling.longrope", "factors", factors)
    _require.same_shape("scaling.longrope", "frequencies", frequencies, "factors", factors)
    return frequencies / factors


def proportional(frequencies, *, fraction, factor=1):
    """The first floor(fraction h) frequencies, divided by s, and 0 for the others, which pass. `rope_type` "proportional".

    `frequencies` are those of the whole head, so half layout pairs features across it; partial rotary (`rotary_dim`) is another
    map. `fraction` is `partial_rotary_factor`.

    >>> proportional(np.array([1.0, 0.1, 0.01, 0.001]), fraction=0.5)
    array([1. , 0.1, 0. , 0. ])
    """
    _require_frequencies("scaling.proportional", frequencies)
    _require_factor("scaling.proportional", factor)
    if not 0 <= fraction <= 1:
        raise ValueError(f"scaling.proportional: fraction is {fraction}, expected 0 to 1 (partial_rotary_factor)")
    turned = np.arange(frequencies.shape[-1]) + 1 <= fraction * frequencies.shape[-1]
    return np.where(turned, frequencies, 0) / factor


def yarn_magnitude(factor, *, mscale=1.0):
    """0.1 mscale ln s + 1: what YaRN multiplies queries and keys by. YaRN section 3.4.

    With `mscale` and `mscale_all_dim` transformers takes the quotient of the two magnitudes; DeepSeek puts the square of that
    for `mscale_all_dim` on the softmax scale. A given `attention_factor` takes the place of all this.

    >>> yarn_magnitude(32.0).round(6)
    np.float64(1.346574)
    """
    _require_factor("scaling.yarn_magnitude", factor)
    return mscale * np.log(factor) / 10 + 1


def longrope_magnitude(factor, *, original_length):
    """sqrt(1 + ln s / ln L): what LongRoPE multiplies queries and keys by, with either list.

    `factor` is max_position_embeddings / original_max_position_embeddings where a configuration has none.

    >>> longrope_magnitude(32.0, original_length=4096).round(6)
    np.float64(1.190238)
    """
    _require_factor("scaling.longrope_magnitude", factor)
    _require_length("scaling.longrope_magnitude", "original_length", original_length)
    return np.sqrt(1 + np.log(factor) / np.log(original_length))


def longrope_list(rule, *, length, original_length, model_length):
    """Which list a program takes, "short" or "long": by the longest text of the batch, or by what it was started with.

    `length` is the largest position of the batch plus 1; `model_length` is vLLM's max_model_len or llama.cpp's context of one
    sequence. mlx-lm takes the long list always.

    >>> [longrope_list(rule, length=100, original_length=4096, model_length=131072) for rule in LIST_RULES]
    ['short', 'long', 'long', 'long']
    """
    _require.choice("scaling.longrope_list", "rule", rule, LIST_RULES)
    _require_length("scaling.longrope_list", "length", length)
    _require_length("scaling.longrope_list", "original_length", original_length)
    _require_length("scaling.longrope_list", "model_length", model_length)
    deciding = length if rule == "transformers" else model_length
    return "long" if rule == "mlx-lm" or deciding > original_length else "short"


def dynamic_length(rule, *, lengths, original_length, factor):
    """The length that a program gives to `dynamic_ntk` when its calls had `lengths`, the last being now.

    transformers keeps the longest until a text shorter than `original_length` resets it; mlx-lm takes the present one; vLLM
    always takes factor times original_length, so short texts too are stretched, by s^2 - s + 1.

    >>> [dynamic_length(rule, lengths=[100, 9000, 5000], original_length=2048, factor=2.0) for rule in LENGTH_RULES]
    [9000, 4096.0, 5000]
    """
    _require.choice("scaling.dynamic_length", "rule", rule, LENGTH_RULES)
    _require_length("scaling.dynamic_length", "original_length", original_length)
    _require_factor("scaling.dynamic_length", factor)
    if len(lengths) == 0:
        raise ValueError("scaling.dynamic_length: lengths is empty; the last length is that of the present text")
    longest = original_length
    for length in lengths:
        longest = max(longest, length) if length >= original_length else original_length
    return {"transformers": longest, "vllm": factor * original_length, "mlx-lm": lengths[-1]}[rule]


def _require_frequencies(function, frequencies):
    _require.array(function, "frequencies", frequencies)
    _require.axes(function, "frequencies", frequencies, "(dim/2,)")


def _require_factor(function, factor):
    _require.number(function, "factor", factor)
    if not factor >= 1:
        raise ValueError(f"{function}: factor is {factor}, expected at least 1 (rope_scaling's factor stretches the context)")


def _require_length(function, argument, length):
    if length is None:
        raise TypeError(f"{function}: {argument} is None, expected a number of tokens (original_max_position_embeddings)")
    _require.positive(function, argument, length)
