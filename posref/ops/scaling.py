"""RoPE scaling: what an implementation can be asked for, and how it goes wrong."""

# Over budget: seven schedules, their ranges and their magnitudes

from typing import NamedTuple

import numpy as np

from posref.ops import Mistake, instead, missing, result, using
from posref.rotary import rope, scaling


def linear(dim, *, base=10000.0, factor):
    return scaling.linear(rope.frequencies(dim, base), factor=factor)


def ntk(dim, *, base=10000.0, factor):
    return scaling.ntk(rope.frequencies(dim, base), factor=factor)


def dynamic_ntk(dim, *, base=10000.0, factor, length, original_length):
    w = rope.frequencies(dim, base)
    return scaling.dynamic_ntk(w, factor=factor, length=length, original_length=original_length)


def yarn(dim, *, base=10000.0, factor, original_length, beta_fast=32.0, beta_slow=1.0, truncate: bool, ramp="index"):
    return _yarn(dim, base, factor, original_length, beta_fast, beta_slow, truncate, ramp)


def yarn_tables(positions, *, dim, base=10000.0, factor, original_length, beta_fast=32.0, beta_slow=1.0, truncate: bool):
    w = _yarn(dim, base, factor, original_length, beta_fast, beta_slow, truncate, "index")
    return scaling.yarn_magnitude(factor) * np.concatenate(rope.tables(positions, w), axis=-1)


def llama3(dim, *, base=10000.0, factor, low_freq_factor, high_freq_factor, original_length):
    edges = {"low_freq_factor": low_freq_factor, "high_freq_factor": high_freq_factor}
    return scaling.llama3(rope.frequencies(dim, base), factor=factor, original_length=original_length, **edges)


def longrope(factors, *, dim, base=10000.0):
    return scaling.longrope(rope.frequencies(dim, base), factors=factors)


def proportional(dim, *, base=10000.0, fraction, factor=1.0):
    return scaling.proportional(rope.frequencies(dim, base), fraction=fraction, factor=factor)


class ByLength(NamedTuple):
    """Frequencies that follow the length of a text as transformers chooses them: by the largest position of the batch and one.

    Beyond `original_length` those of the long list, or where there is none those of dynamic NTK with `factor`.
    """

    frequencies: np.ndarray
    original_length: int
    long: np.ndarray | None = None
    factor: float = 1.0

    def __call__(self, length):
        if self.long is not None:
            return self.long if length > self.original_length else self.frequencies
        given = {"factor": self.factor, "original_length": self.original_length}
        return scaling.dynamic_ntk(self.frequencies, length=length, **given)

    def __str__(self):
        return f"by length, {self.original_length} trained"

    def mistakes(self):
        """Those of a program that does not look at the length."""
        start = f"frequencies of {self.original_length} tokens at most" if self.long is None else "the short list"
        longer = int(self.factor * self.original_length)
        end = f"frequencies of {longer} tokens" if self.long is None else "the long list"
        remedy = "Choose the frequencies in every call, by the largest position of the batch and one."
        return {
            "length_ignored": Mistake(
                using(frequencies=self.frequencies),
                f"{start}, whatever the length",
                "The frequencies do not follow the length of the text.",
                "Right within the trained length, garbage beyond it.",
                remedy=remedy,
                kind="base",
            ),
            "always_long": Mistake(
                using(frequencies=self(longer) if self.long is None else self.long),
                f"{end}, whatever the length",
                "The frequencies of long texts are used for short ones too.",
                "Texts within the trained length are a little wrong.",
                remedy=remedy,
                kind="base",
            ),
        }


def _yarn(dim, base, factor, original_length, beta_fast, beta_slow, truncate, ramp):
    given = {"factor": factor, "original_length": original_length, "base": base, "truncate": truncate, "ramp": ramp}
    return scaling.yarn(rope.frequencies(dim, base), **given, beta_fast=beta_fast, beta_slow=beta_slow)


def _other_ramp(asked, other):
    return using(ramp=lambda a: other if a.ramp == asked else missing())


def _upside_down(f, a):
    """What is kept and what is divided exchanged: w' and the result of the ramp 1 - e add up to w + w / s."""
    w = rope.frequencies(a.dim, a.base)
    return w + w / a.factor - f(**a)


def _every_frequency(dim, base, factor):
    return rope.frequencies(dim, base) / factor


def _times_the_base(dim, base, factor):
    return rope.frequencies(dim, base * factor)


def _keras(dim, base, factor):
    return rope.frequencies(dim, base) / factor ** (dim / (dim - 2))


def _of_the_wavelength(f, a):
    """The blend is linear in the wavelength, from its longest to its shortest."""
    w = rope.frequencies(a.dim, a.base)
    if a.low_freq_factor == a.high_freq_factor:
        missing()
    longest, shortest = (a.original_length / edge for edge in (a.low_freq_factor, a.high_freq_factor))
    kept = np.clip((longest - 2 * np.pi / w) / (longest - shortest), 0, 1)
    return (1 - kept) * w / a.factor + kept * w


def _partial(dim, base, fraction):
    turned = int(fraction * dim / 2)
    return np.concatenate([rope.frequencies(2 * turned, base), np.zeros(dim // 2 - turned)])


def _power_of_the_magnitude(power):
    return result(lambda y, a: y * scaling.yarn_magnitude(a.factor) ** power)


ARRAYS = {"factors": lambda s: 1 + np.arange(s.dim // 2) / 4}

MISTAKES = {
    "unscaled": Mistake(
        instead(lambda dim, base: rope.frequencies(dim, base)),
        "base^(-2t/dim) as it is",
        "The schedule is not applied.",
        "Right for short texts in some schedules, garbage beyond the trained length.",
        only="linear ntk dynamic_ntk yarn llama3 longrope proportional",
        remedy="Read rope_scaling (rope_parameters) and pass the frequencies through the schedule.",
    ),
    "twice": Mistake(
        using(factor=lambda a: a.factor * a.factor),
        "factor squared",
        "Frequencies and positions are both divided.",
        "Order is blurred at any length.",
        only="linear yarn llama3",
        remedy="Divide the frequencies or the positions by the factor, not both.",
    ),
    "inverted": Mistake(
        result(lambda y, a: y * a.factor * a.factor),
        "times the factor",
        "Frequencies are multiplied where they are to be divided.",
        "Garbage at any length.",
        only="linear",
        remedy="Divide the frequencies by the factor.",
    ),
    "factors_multiplied": Mistake(
        result(lambda y, a: y * a.factors * a.factors),
        "times the factors",
        "Frequencies are multiplied where they are to be divided.",
        "Garbage at any length.",
        only="longrope",
        remedy="Divide each frequency by its factor.",
    ),
    "every_frequency": Mistake(
        instead(_every_frequency),
        "all divided by the factor",
        "Linear scaling in the place of a schedule that keeps fast pairs.",
        "Near tokens are blurred.",
        only="ntk yarn llama3",
        remedy="Keep the fast pairs: use the schedule that rope_type names, not linear.",
    ),
    "base_times_factor": Mistake(
        instead(_times_the_base),
        "base times factor",
        "The base is multiplied by the factor without the exponent dim / (dim - 2).",
        "The last pair is stretched too little.",
        ("huggingface/diffusers",),
        only="ntk",
        remedy="Multiply the base by factor^(dim / (dim - 2)).",
    ),
    "every_frequency_by_the_power": Mistake(
        instead(_keras),
        "all divided by factor^(dim/(dim-2))",
        "What belongs to the base divides the frequencies.",
        "The first pair is slowed down too.",
        ("keras-team/keras-hub",),
        only="ntk",
        remedy="Apply the power to the base, before the frequencies are made.",
    ),
    "at_its_longest": Mistake(
        using(length=lambda a: a.factor * a.original_length),
        "length = factor * original_length",
        "The longest text decides for all.",
        "Short texts are stretched.",
        only="dynamic_ntk",
        remedy="Make the frequencies from the present length, and the plain ones up to original_length.",
    ),
    "factor_alone": Mistake(
        instead(ntk),
        "the factor, not factor * length / original_length - (factor - 1)",
        "The schedule does not follow the length.",
        "Wrong at every length but one.",
        only="dynamic_ntk",
        remedy="Stretch by factor * length / original_length - (factor - 1).",
    ),
    "truncated": Mistake(
        using(truncate=lambda a: True if not a.truncate else missing()),
        "floor and ceil of the ramp's edges",
        "The edges are rounded although they are not to be.",
        "Frequencies in the ramp are off by up to a factor of 1.8 in gpt-oss.",
        ("vllm-project/vllm#27722", "vllm-project/vllm#28244"),
        only="yarn yarn_tables",
        remedy="Keep the edges of the ramp as they are where the configuration has truncate: false.",
    ),
    "not_truncated": Mistake(
        using(truncate=lambda a: False if a.truncate else missing()),
        "the ramp's edges as they are",
        "The edges are not rounded although they are to be.",
        "Frequencies in the ramp are off.",
        only="yarn yarn_tables",
        remedy="Take floor of the low edge and ceil of the high one, unless the configuration has truncate: false.",
    ),
    "ramp_upside_down": Mistake(
        _upside_down,
        "e and 1 - e exchanged",
        "Fast pairs are divided and slow ones kept.",
        "Near tokens are blurred, far ones garbage.",
        ("Lightning-AI/litgpt",),
        only="yarn",
        remedy="Keep pairs below the ramp and divide those above it.",
    ),
    "ramp_over_turns": Mistake(
        _other_ramp("index", "turns"),
        "the paper's ramp",
        "The ramp runs over the turns of a pair, as in the paper, not over its index, as in every release.",
        "Frequencies in the ramp are off.",
        only="yarn",
        remedy="Let the ramp run over the index of the pair, as released code does.",
    ),
    "ramp_over_index": Mistake(
        _other_ramp("turns", "index"),
        "the released ramp",
        "The ramp runs over the index of a pair, as in every release, not over its turns, as in the paper.",
        "Frequencies in the ramp are off.",
        only="yarn",
        remedy="Let the ramp run over the turns of the pair in original_length tokens.",
    ),
    "betas_exchanged": Mistake(
        using(beta_fast=lambda a: 2 * a.beta_fast),
        "beta_fast doubled",
        "Another setting for the fast edge, 64 in the place of 32.",
        "The ramp begins too early.",
        only="yarn",
        remedy="Read beta_fast and beta_slow; without them they are 32 and 1.",
    ),
    "no_blend": Mistake(
        using(low_freq_factor=lambda a: a.high_freq_factor if a.low_freq_factor != a.high_freq_factor else missing()),
        "a step in the place of the blend",
        "Pairs between the edges are divided like slow ones.",
        "Some pairs are too slow.",
        only="llama3",
        remedy="Blend the pairs between low_freq_factor and high_freq_factor turns.",
    ),
    "factor_of_the_other_release": Mistake(
        using(factor=lambda a: 4 * a.factor if a.factor == 8 else a.factor / 4 if a.factor == 32 else missing()),
        "32 for 8",
        "The factor of Llama 3.2 is used for Llama 3.1, or the reverse; all else is alike.",
        "Slow pairs are 4 times too slow, or too fast.",
        only="llama3",
        remedy="Read factor from the model's own configuration.",
    ),
    "blended_by_wavelength": Mistake(
        _of_the_wavelength,
        "blend linear in the wavelength",
        "The blend is computed from the wavelength where the turns are meant.",
        "Pairs between the edges are off.",
        only="llama3",
        remedy="Blend by the turns: (original_length / wavelength - low) / (high - low).",
    ),
    "list_reversed": Mistake(
        using(factors=lambda a: a.factors[::-1]),
        "the list from its end",
        "The last factor belongs to the first pair.",
        "Fast pairs are divided.",
        only="longrope",
        remedy="Divide frequency t by entry t: the first factor belongs to the fastest pair.",
    ),
    "partial_rotary": Mistake(
        instead(_partial),
        "frequencies of fraction * dim",
        "The exponent divides by the part that turns, not by the whole head.",
        "Every pair but the first is off.",
        only="proportional",
        remedy="Make the frequencies over the whole head and set those beyond the share to 0.",
    ),
    "no_magnitude": Mistake(
        _power_of_the_magnitude(-1),
        "tables without 0.1 ln(factor) + 1",
        "The magnitude of YaRN is left out.",
        "Attention is too flat.",
        only="yarn_tables",
        remedy="Multiply cosine and sine by attention_factor, 0.1 ln(factor) + 1 where the file has none.",
    ),
    "magnitude_squared": Mistake(
        _power_of_the_magnitude(1),
        "the magnitude twice",
        "Tables carry the square, which belongs to the softmax scale.",
        "Attention is too sharp.",
        only="yarn_tables",
        remedy="Multiply the tables by the magnitude once; its square belongs to the softmax scale.",
    ),
}

SCORES = {"rope": ("offset", "offset", "offset", "offset")}


def _head(t):
    return t.turned(scaling.linear(rope.frequencies(t.dim), factor=4.0))
