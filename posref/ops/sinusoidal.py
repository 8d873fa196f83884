"""The sinusoid: the functions to check, and the mistakes that implementations make."""

# Over budget: laws of the exponent that people write, and the timesteps of diffusion

import re

import numpy as np

from posref import _require, pairing
from posref.absolute import sinusoidal
from posref.ops import Mistake, inside, layers, missing, result, using
from posref.ops.common import rounded


def frequencies(dim, *, base=10000.0, divisor="dim"):
    return sinusoidal.frequencies(dim, base, divisor=divisor)


def encode(positions, *, dim, base=10000.0, divisor="dim", layout, order="sin_cos", factor=1, zeros=0):
    # timesteps of diffusion: cosines first, t times 1000; an odd width is dim plus one column of zeros at the end
    w = frequencies(dim, base=base, divisor=divisor)
    y = sinusoidal.encode(positions if factor == 1 else factor * positions, w, layout=layout)
    _require.choice("sinusoidal.encode", "order", order, ORDERS)
    y = y if order == ORDERS[0] else _reordered(y, layout)
    return np.concatenate([y, 0 * y[..., :zeros]], axis=-1) if zeros else y


ORDERS = ("sin_cos", "cos_sin")
TAGS = {"frequencies": "frequencies", "encode": "waves"}


def _reordered(y, layout):
    """Sines and cosines exchanged."""
    return pairing.join(*pairing.split(y, layout)[::-1], layout)


def _other_order(asked):
    return using(order=lambda a: ORDERS[1 - ORDERS.index(asked)] if a.order == asked else missing())


def _wave(angle, layout):
    return pairing.join(np.sin(angle), np.cos(angle), layout)


def _angle(of, wave=_wave):
    """Another angle, of(positions, frequencies), or another `wave` of it."""

    def encode(positions, w, *, layout):
        return wave(of(positions[..., None], w), layout)

    return inside(sinusoidal, "encode", lambda right: encode)


def _angle_of(of):
    """Another angle, of(positions, frequencies, arguments)."""

    def change(right, a):
        return lambda positions, w, *, layout: _wave(of(positions[..., None], w, a), layout)

    return Mistake(inside(sinusoidal, "encode", change))


def _by_rows(angle, layout):
    """Sines in even rows and cosines in odd rows, for the interleaved layout."""
    even = np.arange(angle.shape[-2])[:, None] % 2 == 0
    return np.where(even, np.sin(angle), np.cos(angle)) if layout == "interleaved" else missing()


def _of_every_feature(right, a, doubled):
    """The exponent of feature i instead of its pair: 2 i / dim if `doubled`, else i / dim. Cosines have i = 2t + 1."""
    if a.divisor != "dim":
        missing()

    def encode(positions, w, *, layout):
        angle = positions[..., None] * w**doubled
        return pairing.join(np.sin(angle), np.cos(angle * a.base ** (-doubled / a.dim)), layout)

    return encode


MISTAKES = {
    "other_layout": Mistake(
        "other_layout", seen_in=("tensorflow/tensor2tensor#391", "facebookresearch/fairseq#4648", "allenai/allennlp#2993")
    ).words("""
        sines and cosines are interleaved instead of concatenated, or the reverse
        A permutation of the columns: harmless in training, wrong with somebody's weights."""),
    "cos_first": Mistake(_other_order("sin_cos")).words("""
        cosines come before sines
        Position 0 is (1, 0, ..) instead of (0, 1, ..).
        The sine is the first of a pair, the cosine the second."""),
    "divisor": Mistake(
        using(divisor=lambda a: {"dim": "dim - 2", "dim - 2": "dim"}[a.divisor]),
        seen_in=("wenet-e2e/wenet#2141", "tensorflow/tensor2tensor#1423"),
    ).words("""
        the divisor of the exponent is dim - 2 instead of dim, or the reverse
        Frequencies drift apart towards the last pair, 3.7 % at dim 512.
        Use the divisor of the weights: dim in the paper, dim - 2 in tensor2tensor, fairseq and Whisper."""),
    "feature_index": Mistake(inside(sinusoidal, "encode", lambda right, a: _of_every_feature(right, a, 2))).words("""
        exponent 2 i / dim for feature i: i counts features instead of pairs, and sine and cosine have different frequencies
        Half of the pairs turn slower than the slowest should; a shift is no rotation.
        Count pairs: both features of pair t have the exponent 2 t / dim, which is 2 (i // 2) / dim."""),
    "starts_at_one": Mistake("position_plus_one").words("""
        positions are counted from 1
        Token 0 has the encoding of token 1."""),
    "degrees": Mistake(_angle(lambda m, w: m * w * (np.pi / 180))).words("""
        the angle is read in degrees
        All frequencies are 57.3 times too small.
        Pass m w_t to sin and cos as it is: they take radians."""),
    "turns": Mistake(_angle(lambda m, w: m * w * (2 * np.pi))).words("""
        the angle is multiplied by 2 pi: it is read in full turns
        The first pair is constant at whole positions.
        Leave out the 2 pi: frequencies are in radians per position."""),
    "wrong_base": Mistake(using(base=1000.0)).words("""
        base 1000 instead of 10000
        Slow pairs turn too fast.
        Use the base of the configuration, 10000 in the paper."""),
    "f16_positions": Mistake("f16_positions").words("""
        positions are held in float16, so those beyond 2048 collide
        Neighbors get one encoding."""),
    "bf16_positions": Mistake("bf16_positions").words("""
        positions are held in bfloat16, so those beyond 256 collide
        Neighbors get one encoding."""),
    "bf16_frequencies": Mistake(_angle(lambda m, w: m * rounded(w, 8))).words("""
        the frequencies are held in bfloat16 (8 bits)
        Phase errors of radians beyond a thousand positions.
        Keep the frequencies in float32 when the model is cast."""),
    "bf16_angles": Mistake(_angle(lambda m, w: rounded(m * rounded(w, 8), 8))).words("""
        the angles, position times frequency, are held in bfloat16 (8 bits)
        As bf16_frequencies.
        Make frequencies, angles and sines in float32, and round the result once."""),
    "f32_angles": Mistake(_angle(lambda m, w: rounded(m * rounded(w, 24), 24))).words("""
        the angles are computed in float32 (24 bits) where float64 is meant
        Up to 0.06 rad at a million positions; only a float64 result can be told from it.
        Make frequencies and angles in float64."""),
}

PRESETS = {name: ("encode", sinusoidal.PRESETS[name]) for name in sinusoidal.PRESETS}

SCORES = {"added": ("one", "key", "query", "any")}


def _head(t):
    return t.added(sinusoidal.encode(t.positions, sinusoidal.frequencies(t.dim), layout=layers.LAYOUT))


def _by_parity(angle, layout):
    """Sine or cosine by the parity of the position, which is the first angle, since w_0 = 1; each angle is used twice."""
    even = np.rint(angle[..., :1]) % 2 == 0
    wave = np.where(even, np.sin(angle), np.cos(angle))
    return pairing.join(wave, wave, layout)


def _divisor(w, a):
    """The number that divides the index of a pair in the exponent: dim / 2 or dim / 2 - 1."""
    return w.shape[-1] - (a.divisor == "dim - 2") or missing()


def _less_two(words):
    """Words about the divisor dim, changed to the divisor dim - 2."""
    changed = words.replace("dim / 2)", "dim / 2 - 1)").replace("number of pairs", "number of pairs less 1")
    changed = changed.replace("the width of the encoding", "dim - 2").replace("by dim.", "by dim - 2.")
    return re.sub(r"/ dim\b(?! / 2)", "/ (dim - 2)", changed).replace("of dim", "of dim - 2")


FURTHER = {
    "sin_first": Mistake(_other_order("cos_sin")).words("""
        sines come before cosines
        Position 0 is (0, 1, ..) instead of (1, 0, ..).
        Concatenate cos, then sin: flip_sin_to_cos=True in diffusers."""),
    "first_column_zero": Mistake(
        result(lambda y, a: np.roll(y, a.zeros, axis=-1) if a.zeros else missing()),
        "the column of zeros is the first instead of the last",
        remedy="Pad on the right.",
    ),
    "exponent_floored": Mistake(_angle(lambda m, w: m * np.exp(-2.0 * np.arange(w.shape[-1])))).words("""
        -ln(base) // dim is -1: integer division in the exponent makes the frequencies e^(-2 t)
        All pairs but the first few are constant.
        Divide with /: in a // b the sign binds first and the quotient is rounded down."""),
    "exponent_floored_by_pairs": Mistake(_angle(lambda m, w: m * np.exp(-1.0 * np.arange(w.shape[-1])))).words("""
        -ln(base) // (dim / 2) is -1: integer division in the exponent makes the frequencies e^(-t)
        All pairs but the first few are constant.
        Divide with /: in a // b the sign binds first and the quotient is rounded down."""),
    **{
        f"exponent_over_{width}": _angle_of(
            lambda m, w, a, width=width: m * a.base ** (-2 * np.arange(w.shape[-1]) / width)
        ).words(f"""
            the exponent is divided by {width}, a number in the code, instead of dim
            Frequencies fall too slowly or too fast.
            Divide by the width of the encoding.""")
        for width in (64, 128, 256, 512, 768, 1024)
    },
    "exponent_not_divided": _angle_of(lambda m, w, a: m * w ** _divisor(w, a)).words("""
        the exponent is t instead of 2 t / dim
        All pairs but the first are constant.
        Divide by the number of pairs."""),
    "doubled_exponent_not_divided": _angle_of(lambda m, w, a: m * w ** (2 * _divisor(w, a))).words("""
        the exponent is 2 t instead of 2 t / dim
        All pairs but the first are constant.
        Divide by dim."""),
    "exponential_without_base": _angle_of(lambda m, w, a: m * np.exp(-np.arange(w.shape[-1]) / _divisor(w, a))).words("""
        the frequencies are e^(-2 t / dim): the logarithm of the base is missing
        All pairs turn nearly as fast as the first.
        Write exp(-ln(base) 2 t / dim)."""),
    "base_in_the_exponent": Mistake(_angle(lambda m, w: m * np.where(np.arange(w.shape[-1]) > 0, 0, w))).words("""
        the frequencies are e^(-base 2 t / dim): the base is a factor of the exponent
        All pairs but the first are constant.
        Write exp(-ln(base) 2 t / dim)."""),
    "sines_by_rows": Mistake(_angle(lambda m, w: m * np.repeat(w, 2), _by_rows)).words("""
        even rows are sines and odd rows are cosines, instead of features
        Neighbors have unlike encodings.
        Slice the last axis: [..., 0::2] and [..., 1::2]."""),
    "odd_exponents_of_cosines": Mistake(inside(sinusoidal, "encode", lambda right, a: _of_every_feature(right, a, 1))).words("""
        the exponent of the cosine is (2 t + 1) / dim, that of the sine 2 t / dim
        Sine and cosine of a pair have different frequencies; a shift is no rotation.
        Both features of pair t have the exponent 2 t / dim."""),
    "waves_by_token": Mistake(_angle(lambda m, w: m * w, _by_parity)).words("""
        even tokens have sines and odd ones cosines: the parity is that of the token, not of the feature
        Half of the numbers are missing.
        Each token has the sine and the cosine of each angle, in even and odd features."""),
}
FURTHER |= {
    name: m._replace(asked=((("divisor", "dim - 2"), Mistake(None, *map(_less_two, (m.bug, m.effect, m.remedy)))),))
    for name, m in FURTHER.items()
    if _less_two(m.bug) != m.bug and name != "odd_exponents_of_cosines"  # which has no place there
}
