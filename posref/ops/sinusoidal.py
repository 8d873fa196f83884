"""The sinusoid: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref import pairing
from posref.absolute import sinusoidal
from posref.ops import Mistake, inside, layers, missing, using
from posref.ops.common import rounded


def frequencies(dim, *, base=10000.0, divisor="dim"):
    return sinusoidal.frequencies(dim, base, divisor=divisor)


def encode(positions, *, dim, base=10000.0, divisor="dim", layout):
    return sinusoidal.encode(positions, frequencies(dim, base=base, divisor=divisor), layout=layout)


def _wave(angle, layout):
    return pairing.join(np.sin(angle), np.cos(angle), layout)


def _angle(of, wave=_wave):
    """Another angle, of(positions, frequencies), or another use of it."""

    def encode(positions, w, *, layout):
        return wave(of(positions[..., None], w), layout)

    return inside(sinusoidal, "encode", lambda right: encode)


def _of_every_feature(right, a):
    """The exponent 2 i / dim with i = 2t at the sine and 2t + 1 at the cosine."""
    if a.divisor != "dim":
        missing()

    def encode(positions, w, *, layout):
        angle = positions[..., None] * w * w
        return pairing.join(np.sin(angle), np.cos(angle * a.base ** (-2 / a.dim)), layout)

    return encode


MISTAKES = {
    "other_layout": Mistake(
        "other_layout",
        "columns of the other layout",
        "Sines and cosines are interleaved instead of concatenated, or the reverse.",
        "A permutation of the columns: harmless in training, wrong with somebody's weights.",
        (
            "tensorflow/tensor2tensor#391",
            "facebookresearch/fairseq#4648",
            "allenai/allennlp#2993",
        ),
    ),
    "cos_first": Mistake(
        _angle(lambda m, w: m * w, lambda angle, layout: pairing.join(np.cos(angle), np.sin(angle), layout)),
        "cosines first",
        "Sine and cosine columns are exchanged.",
        "Position 0 is (1, 0, ..) instead of (0, 1, ..).",
        remedy="The sine is the first of a pair, the cosine the second.",
    ),
    "divisor": Mistake(
        using(divisor=lambda a: {"dim": "dim - 2", "dim - 2": "dim"}[a.divisor]),
        "the other divisor",
        "dim - 2 instead of dim, or the reverse.",
        "Frequencies drift apart towards the last pair, 3.7 % at dim 512.",
        (
            "wenet-e2e/wenet#2141",
            "tensorflow/tensor2tensor#1423",
        ),
        remedy="Use the divisor of the weights: dim in the paper, dim - 2 in tensor2tensor, fairseq and Whisper.",
    ),
    "feature_index": Mistake(
        inside(sinusoidal, "encode", _of_every_feature),
        "2 i / dim for the feature i",
        "The exponent is doubled, because i counts features and not pairs, and the cosine has a frequency of its own.",
        "Half of the pairs turn slower than the slowest should; a shift is no rotation.",
        remedy="Count pairs: both features of pair t have the exponent 2 t / dim, which is 2 (i // 2) / dim.",
    ),
    "starts_at_one": Mistake(
        "position_plus_one",
        "counts from 1",
        "Positions are one too large.",
        "Token 0 has the encoding of token 1.",
    ),
    "positions_ignored": Mistake(
        "positions_ignored",
        "0, 1, 2, .. instead of the positions given",
        "Positions are taken from the place in the sequence.",
        "Offsets are lost.",
    ),
    "positions_shared_across_batch": Mistake(
        "positions_shared_across_batch",
        "positions of the first batch row",
        "Every row uses the positions of row 0.",
        "Padded batches go wrong.",
    ),
    "degrees": Mistake(
        _angle(lambda m, w: m * w * (np.pi / 180)),
        "degrees",
        "The angle is taken in degrees.",
        "All frequencies are 57.3 times too small.",
        remedy="Pass m w_t to sin and cos as it is: they take radians.",
    ),
    "turns": Mistake(
        _angle(lambda m, w: m * w * (2 * np.pi)),
        "full turns",
        "The angle is multiplied by 2 pi.",
        "The first pair is constant at whole positions.",
        remedy="Leave out the 2 pi: frequencies are in radians per position.",
    ),
    "wrong_base": Mistake(
        using(base=1000.0),
        "base 1000",
        "1000 instead of 10000.",
        "Slow pairs turn too fast.",
        remedy="Use the base of the configuration, 10000 in the paper.",
    ),
    "f16_positions": Mistake(
        "f16_positions",
        "positions in float16",
        "Positions beyond 2048 collide.",
        "Neighbors get one encoding.",
    ),
    "bf16_positions": Mistake(
        "bf16_positions",
        "positions in bfloat16",
        "Positions beyond 256 collide.",
        "Neighbors get one encoding.",
    ),
    "bf16_frequencies": Mistake(
        _angle(lambda m, w: m * rounded(w, 8)),
        "frequencies in bfloat16",
        "w is rounded to 8 bits.",
        "Phase errors of radians beyond a thousand positions.",
        remedy="Keep the frequencies in float32 when the model is cast.",
    ),
    "bf16_angles": Mistake(
        _angle(lambda m, w: rounded(m * rounded(w, 8), 8)),
        "angles in bfloat16",
        "The product of position and frequency is rounded to 8 bits.",
        "As bf16_frequencies.",
        remedy="Make frequencies, angles and sines in float32, and round the result once.",
    ),
    "f32_angles": Mistake(
        _angle(lambda m, w: rounded(m * rounded(w, 24), 24)),
        "float32 where float64 is meant",
        "Angles are rounded to 24 bits.",
        "Up to 0.06 rad at a million positions; only a float64 result can be told from it.",
        remedy="Make frequencies and angles in float64.",
    ),
}

PRESETS = {name: ("encode", sinusoidal.PRESETS[name]) for name in sinusoidal.PRESETS}

SCORES = {"added": ("one", "key", "query", "any")}


def _head(t):
    return t.added(sinusoidal.encode(t.positions, sinusoidal.frequencies(t.dim), layout=layers.LAYOUT))
