"""RoPE scaling: the functions to check, and the mistakes that implementations make."""

# Over budget: seven schedules, their ranges and their magnitudes

from itertools import product
from typing import NamedTuple

import numpy as np

from posref.ops import Mistake, both, inside, instead, missing, result, using
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
    """Frequencies that follow the length of a text, as in transformers: the largest position of the batch plus one.

    Beyond `original_length` they are those of the `long` list or, without one, those of dynamic NTK with `factor`.
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
        """The mistakes of a program that ignores the length."""
        trained, longer = self.original_length, int(self.factor * self.original_length)
        if self.long is None:
            found, start, end = {}, f"frequencies for at most {trained} tokens are", f"frequencies for {longer} tokens are"
        else:
            start, end = "short list of factors is", "long list of factors is"
            exchanged = self._replace(frequencies=self.long, long=self.frequencies)._at
            words = f"the long list of factors is used up to {trained} tokens and the short one beyond"
            remedy = "Use the short list up to the trained length, the long one beyond."
            found = {"lists_exchanged": _base(exchanged, words, "Wrong at every length.", remedy)}
        words = "used at every length"
        remedy = "Choose the frequencies in every call, by the largest position of the batch plus one."
        far, late = self(longer) if self.long is None else self.long, "Texts within the trained length are a little wrong."
        return found | {
            "length_ignored": _base(self.frequencies, f"the {start} {words}", "Right within the trained length.", remedy),
            "always_long": _base(far, f"the {end} {words}", late, remedy),
        }

    def further(self):
        """The mistakes of a program with another trained length, another factor, or another length of the text."""
        longer, found, trained = int(self.factor * self.original_length), {}, self.original_length
        remedy = "Compare with original_max_position_embeddings where there is one, else with max_position_embeddings."
        for length in {trained // 2, 2 * trained, longer} - {trained} if self.long is None else ():
            words = f"the frequencies change beyond {length} tokens instead of {trained}"
            found[f"original_length {length}"] = _base(self._replace(original_length=length)._at, words, "", remedy)
        remedy = "Choose the frequencies once in every call, by the largest position of the batch plus one."
        for name, words, wrong in (
            ("length_of_each_row", "each row has frequencies of its own length", self._by_row),
            ("length_of_the_first_row", "the frequencies are those of the first row's length", self._of(lambda p: p[:1])),
            ("length_one_less", "the length is one too small", self._of(lambda p: p - 1)),
        )[: 2 + (self.long is None)]:
            found[name] = Mistake(wrong, words, "Right where all texts are short.", remedy, kind="base")
        for factor in {1.0, 2.0, 4.0, 8.0, self.factor / 2, 2 * self.factor} - {self.factor} if self.long is None else ():
            words = f"the factor is {factor:g} instead of {self.factor:g}"
            found[f"factor {factor:g}"] = _base(
                self._replace(factor=factor)._at, words, "", "Read the factor of the configuration."
            )
        return found

    def switches(self):
        """The mistakes of a program that changes the list at another length; texts near the trained length show them."""
        if self.long is None:
            return {}
        remedy = "Use the long list where the largest position and one is more than the trained length."
        late = f"the short list of factors is used beyond {self.original_length} tokens too: the length is compared with more"
        early = f"the long list of factors is used for {self.original_length} tokens already: the length is compared with less"
        return {
            "changes_late": _base(self.frequencies, f"{late}, or is one too small", "", remedy),
            "changes_early": _base(self.long, f"{early}, or by >= instead of >", "", remedy),
        }

    def _of(self, change):
        return using(frequencies=lambda a: self(int(change(np.atleast_2d(a.positions)).max()) + 1))

    def _by_row(self, f, a):
        if a.positions.ndim < 2:
            missing()
        rows = [a | {"x": a.x[i : i + 1], "positions": a.positions[i : i + 1]} for i in range(len(a.x))]
        return np.concatenate([f(**row | {"frequencies": self._at(row)}) for row in rows])

    def _at(self, a):
        """The frequencies at the length of these positions."""
        return self(int(a.positions.max()) + 1)


def _base(frequencies, bug, effect, remedy):
    return Mistake(using(frequencies=frequencies), bug, effect, remedy, kind="base")


def _yarn(dim, base, factor, original_length, beta_fast, beta_slow, truncate, ramp):
    given = {"factor": factor, "original_length": original_length, "base": base, "truncate": truncate, "ramp": ramp}
    return scaling.yarn(rope.frequencies(dim, base), **given, beta_fast=beta_fast, beta_slow=beta_slow)


def _other_ramp(asked, other):
    return using(ramp=lambda a: other if a.ramp == asked else missing())


def _upside_down(f, a):
    """Kept and divided frequencies exchanged: with the ramp e and with 1 - e the results add up to w + w / s."""
    w = rope.frequencies(a.dim, a.base)
    return w + w / a.factor - f(**a)


def _inverted(f, a):
    """(1 - e) w + e s w, where the specification gives w' = (1 - e) w + e w / s."""
    w = rope.frequencies(a.dim, a.base)
    return w + a.factor * (w - f(**a))


def _every_frequency(dim, base, factor):
    return rope.frequencies(dim, base) / factor


def _keras(dim, base, factor):
    return rope.frequencies(dim, base) / factor ** (dim / (dim - 2))


def _blended(of, over, fewest, most, backwards=False):
    """A blend of frequencies or of wavelengths, linear in the wavelength or in the turns; `backwards` reverses the blend."""

    def wrong(f, a):
        w = rope.frequencies(a.dim, a.base)
        if a[fewest] == a[most]:
            missing()
        wavelength = 2 * np.pi / w
        turns = (a.original_length / wavelength - a[fewest]) / (a[most] - a[fewest])
        longest, shortest = (a.original_length / a[edge] for edge in (fewest, most))
        kept = np.clip(turns if over == "turns" else (longest - wavelength) / (longest - shortest), 0, 1)
        kept = np.where((kept > 0) & (kept < 1) & backwards, 1 - kept, kept)
        return w * (kept + (1 - kept) / a.factor if of == "frequencies" else 1 / (kept + (1 - kept) * a.factor))

    return wrong


def _partial(dim, base, fraction):
    turned = int(fraction * dim / 2)
    return np.concatenate([rope.frequencies(2 * turned, base), np.zeros(dim // 2 - turned)])


def _blend_reversed(f, a):
    w, right = rope.frequencies(a.dim, a.base), f(**a)
    return np.where((right == w) | (right == w / a.factor), right, w + w / a.factor - right)


def _exponent(power):
    """The base times the factor to another power of dim, in NTK of any kind."""

    def change(right, a):
        return lambda frequencies, *, factor: rope.frequencies(a.dim, a.base * factor ** power(a.dim))

    return inside(scaling, "ntk", change)


def _stretch(formula):
    """Another factor of dynamic NTK beyond the trained length: formula(factor, length / original_length)."""

    def wrong(f, a):
        if a.length <= a.original_length:
            missing()
        return scaling.ntk(rope.frequencies(a.dim, a.base), factor=formula(a.factor, a.length / a.original_length))

    return wrong


def _range(base=None, times=1, widths=1):
    """The edges of the ramp, computed with another base, with `times` the trained length, or with `widths` the width."""

    def changed(right):
        return lambda dim, own, *, original_length, **rest: right(
            widths * dim, base or own, original_length=times * original_length, **rest
        )

    return inside(scaling, "yarn_range", changed)


def _power_of_the_magnitude(power):
    return result(lambda y, a: y * scaling.yarn_magnitude(a.factor) ** power)


EDGES = "low_freq_factor", "high_freq_factor"

ARRAYS = {"factors": lambda s: 1 + np.arange(s.dim // 2) / 4}

MISTAKES = {
    "unscaled": Mistake(
        instead(lambda dim, base: rope.frequencies(dim, base)), only="linear ntk dynamic_ntk yarn llama3 longrope proportional"
    ).words("""
        base^(-2t/dim): the scaling is not applied
        Right for short texts in some schedules, garbage beyond the trained length.
        Read rope_scaling (rope_parameters) and pass the frequencies through the schedule."""),
    "twice": Mistake(using(factor=lambda a: a.factor * a.factor), only="linear yarn llama3").words("""
        the factor is squared: frequencies and positions are both divided
        Order is blurred at any length.
        Divide the frequencies or the positions by the factor, not both."""),
    "inverted": Mistake(_inverted, only="linear yarn llama3").words("""
        the frequencies that are to be divided by the factor are multiplied by it
        Garbage at any length.
        Divide by the factor."""),
    "factors_multiplied": Mistake(result(lambda y, a: y * a.factors * a.factors), only="longrope").words("""
        the frequencies are multiplied by the factors instead of divided
        Garbage at any length.
        Divide each frequency by its factor."""),
    "every_frequency": Mistake(instead(_every_frequency), only="ntk yarn llama3").words("""
        all frequencies are divided by the factor: linear scaling instead of a schedule that keeps fast pairs
        Near tokens are blurred.
        Keep the fast pairs: use the schedule that rope_type names, not linear."""),
    "base_times_factor": Mistake(_exponent(lambda dim: 1), seen_in=("huggingface/diffusers",), only="ntk dynamic_ntk").words("""
        base times factor, without the exponent dim / (dim - 2)
        The last pair is stretched too little.
        Multiply the base by factor^(dim / (dim - 2))."""),
    "every_frequency_by_the_power": Mistake(instead(_keras), seen_in=("keras-team/keras-hub",), only="ntk").words("""
        all frequencies are divided by factor^(dim/(dim-2)), which belongs to the base
        The first pair is slowed down too.
        Apply the power to the base, before the frequencies are made."""),
    "at_its_longest": Mistake(using(length=lambda a: a.factor * a.original_length), only="dynamic_ntk").words("""
        length = factor * original_length for every text
        Short texts are stretched.
        Make the frequencies from the present length, and the plain ones up to original_length."""),
    "factor_alone": Mistake(instead(ntk), only="dynamic_ntk").words("""
        factor in place of factor * length / original_length - (factor - 1): the schedule does not follow the length
        Wrong at every length but one.
        Stretch by factor * length / original_length - (factor - 1)."""),
    "truncated": Mistake(
        using(truncate=lambda a: True if not a.truncate else missing()),
        seen_in=("vllm-project/vllm#27722", "vllm-project/vllm#28244"),
        only="yarn yarn_tables",
    ).words("""
        the edges of the ramp are rounded by floor and ceil, although they are not to be
        Frequencies in the ramp are off by up to a factor of 1.8 in gpt-oss.
        Keep the edges of the ramp as they are where the configuration has truncate: false."""),
    "not_truncated": Mistake(using(truncate=lambda a: False if a.truncate else missing()), only="yarn yarn_tables").words("""
        the edges of the ramp are not rounded by floor and ceil, although they are to be
        Frequencies in the ramp are off.
        Take floor of the low edge and ceil of the high one, unless the configuration has truncate: false."""),
    "ramp_upside_down": Mistake(_upside_down, seen_in=("Lightning-AI/litgpt",), only="yarn llama3").words("""
        e and 1 - e are exchanged: fast pairs are divided and slow ones kept
        Near tokens are blurred, far ones garbage.
        Keep the fast pairs and divide the slow ones."""),
    "ramp_over_turns": Mistake(_other_ramp("index", "turns"), only="yarn").words("""
        the ramp runs over the turns of a pair, as in the paper, instead of its index, as in every release
        Frequencies in the ramp are off.
        Let the ramp run over the index of the pair, as released code does."""),
    "ramp_over_index": Mistake(_other_ramp("turns", "index"), only="yarn").words("""
        the ramp runs over the index of a pair, as in every release, instead of its turns, as in the paper
        Frequencies in the ramp are off.
        Let the ramp run over the turns of the pair in original_length tokens."""),
    "betas_exchanged": Mistake(using(beta_fast=lambda a: 2 * a.beta_fast), only="yarn").words("""
        beta_fast is doubled: 64 in place of 32
        The ramp begins too early.
        Read beta_fast and beta_slow; without them they are 32 and 1."""),
    "no_blend": Mistake(
        using(low_freq_factor=lambda a: a.high_freq_factor if a.low_freq_factor != a.high_freq_factor else missing()),
        only="llama3",
    ).words("""
        a step in place of the blend: pairs between the edges are divided like slow ones
        Some pairs are too slow.
        Blend the pairs between low_freq_factor and high_freq_factor turns."""),
    "factor_of_the_other_release": Mistake(
        using(factor=lambda a: 4 * a.factor if a.factor == 8 else a.factor / 4 if a.factor == 32 else missing()), only="llama3"
    ).words("""
        factor 32 (Llama 3.2) in place of 8 (Llama 3.1), or the reverse
        Slow pairs are 4 times too slow, or too fast.
        Read factor from the model's own configuration."""),
    "blended_by_wavelength": Mistake(_blended("frequencies", "wavelength", *EDGES), only="llama3").words("""
        the blend is linear in the wavelength instead of the turns
        Pairs between the edges are off.
        Blend by the turns: (original_length / wavelength - low) / (high - low)."""),
    "list_reversed": Mistake(using(factors=lambda a: a.factors[::-1]), only="longrope").words("""
        the list of factors is read from its end
        Fast pairs are divided.
        Divide frequency t by entry t: the first factor belongs to the fastest pair."""),
    "partial_rotary": Mistake(instead(_partial), only="proportional").words("""
        the frequencies are those of fraction * dim: the exponent divides by the part that rotates, not by the whole head
        Every pair but the first is off.
        Make the frequencies over the whole head and set those beyond the share to 0."""),
    "no_magnitude": Mistake(_power_of_the_magnitude(-1), only="yarn_tables").words("""
        the magnitude 0.1 ln(factor) + 1 is left out of the tables
        Attention is too flat.
        Multiply cosine and sine by attention_factor, 0.1 ln(factor) + 1 where the file has none."""),
    "magnitude_squared": Mistake(_power_of_the_magnitude(1), only="yarn_tables").words("""
        the tables have the square of the magnitude, which belongs to the softmax scale
        Attention is too sharp.
        Multiply the tables by the magnitude once; its square belongs to the softmax scale."""),
}

FURTHER = {
    "blend_reversed": Mistake(_blend_reversed, only="llama3").words("""
        the blend between low_freq_factor and high_freq_factor is reversed
        Pairs in the blend jump at both edges.
        The share that is kept grows from 0 at low_freq_factor to 1 at high_freq_factor."""),
    **{
        f"blend_of_{of}_over_{over}{'_backwards' * backwards}": Mistake(
            _blended(of, over, *EDGES, backwards), only="llama3"
        ).words(f"""
            {of} are blended, by weights that are linear in the {over}{" and run backwards" * backwards}
            Pairs between the edges are off.
            Blend frequencies by the turns: the kept share is (original_length / wavelength - low) / (high - low).""")
        for of, over, backwards in (
            ("frequencies", "wavelength", True),
            *product(("wavelengths",), ("wavelength", "turns"), (False, True)),
        )
    },
    "range_without_2_pi": Mistake(_range(times=2 * np.pi), only="yarn yarn_tables").words("""
        the edges of the ramp are computed without 2 pi: original_length / turns for the wavelength
        Frequencies in the ramp are off.
        A pair turns original_length / wavelength times, and the wavelength is 2 pi / frequency."""),
    "ramp_over_wavelengths": Mistake(_blended("frequencies", "wavelength", "beta_slow", "beta_fast"), only="yarn")
    .words("""
        the ramp is linear in the wavelength, not in the index of the pair
        Frequencies in the ramp are off.
        Let the ramp run over the index of the pair, between the edges of beta_fast and beta_slow.""")
    .where("""ramp=turns
        the ramp is linear in the wavelength, not in the turns of the pair
        Frequencies in the ramp are off.
        Let the ramp run over the turns of the pair in original_length tokens, from beta_slow to beta_fast."""),
    "range_of_base_10000": Mistake(_range(base=10000.0), only="yarn yarn_tables").words("""
        the edges of the ramp are computed with base 10000, another than that of the frequencies
        Frequencies in the ramp are off.
        Compute the edges of the ramp with rope_theta."""),
    **{
        f"range_of_{widths}_widths": Mistake(_range(widths=widths), only="yarn yarn_tables").words(f"""
            the edges of the ramp are computed with {widths} times the width that turns, such as that {cause}
            Frequencies in the ramp are off, and pairs that are to be divided are kept.
            Compute the edges of the ramp with the number of features that turn.""")
        for widths, cause in ((2, "of features for pairs, or of a whole head"), (3, "of a whole head"), (4, "of a whole head"))
    },
    "betas_for_each_other": Mistake(
        both(
            using(beta_fast=lambda a: a.beta_slow, beta_slow=lambda a: a.beta_fast),
            inside(scaling, "_require_ramp", lambda right: lambda *x: None),
        ),
        only="yarn yarn_tables",
    ).words("""
        beta_fast and beta_slow are exchanged: the ramp runs backwards
        Near tokens are blurred, far ones garbage.
        beta_fast is the larger number, 32, and beta_slow 1."""),
    **{
        f"exponent_{words}": Mistake(_exponent(power), only="ntk dynamic_ntk").words(f"""
            the base is multiplied by the factor to the power of {formula}, not of dim / (dim - 2)
            The last pair is not stretched by the factor.
            Multiply the base by factor^(dim / (dim - 2)).""")
        for words, formula, power in (
            ("dim_less_one", "dim / (dim - 1)", lambda dim: dim / (dim - 1)),
            ("dim_more_two", "dim / (dim + 2)", lambda dim: dim / (dim + 2)),
            ("upside_down", "(dim - 2) / dim", lambda dim: (dim - 2) / dim),
            ("of_pairs", "h / (h - 2), h = dim / 2 pairs,", lambda dim: dim / (dim - 4) if dim > 4 else missing()),
        )
    },
    **{
        f"stretch_{words}": Mistake(_stretch(formula), only="dynamic_ntk").words(f"""
            the factor of NTK is {says} instead of s l / L - (s - 1), for the factor s, length l and trained length L
            Frequencies jump where a text outgrows the trained length.
            Stretch by s l / L - (s - 1).""")
        for words, says, formula in (
            ("without_the_difference", "s l / L", lambda s, r: s * r),
            ("without_the_factor", "l / L", lambda s, r: r),
            ("plus_the_difference", "s l / L + (s - 1)", lambda s, r: s * r + (s - 1)),
            ("less_one", "s l / L - 1", lambda s, r: s * r - 1 if s * r > 2 else missing()),
        )
    },
}

SCORES = {"rope": ("offset", "offset", "offset", "offset")}


def _head(t):
    return t.turned(scaling.linear(rope.frequencies(t.dim), factor=4.0))
