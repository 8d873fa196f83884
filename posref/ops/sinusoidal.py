"""The sinusoid: what an implementation can be asked for, and how it goes wrong."""

# Over budget: laws of the exponent that people write, and the timesteps of diffusion

import numpy as np

from posref import _require, pairing
from posref.absolute import sinusoidal
from posref.ops import Mistake, inside, layers, missing, result, using, with_words
from posref.ops.common import rounded


def frequencies(dim, *, base=10000.0, divisor="dim"):
    return sinusoidal.frequencies(dim, base, divisor=divisor)


def encode(positions, *, dim, base=10000.0, divisor="dim", layout, order="sin_cos", factor=1, zeros=0):
    # timesteps of diffusion: cosines first, t times 1000; an odd width is dim + 1 with a column of zeros at the end
    w = frequencies(dim, base=base, divisor=divisor)
    y = sinusoidal.encode(positions if factor == 1 else factor * positions, w, layout=layout)
    _require.choice("sinusoidal.encode", "order", order, ORDERS)
    y = y if order == ORDERS[0] else _reordered(y, layout)
    return np.concatenate([y, 0 * y[..., :zeros]], axis=-1) if zeros else y


ORDERS = ("sin_cos", "cos_sin")
TAGS = {"frequencies": "frequencies"}


def _reordered(y, layout):
    """Sines and cosines exchanged."""
    return pairing.join(*pairing.split(y, layout)[::-1], layout)


def _other_order(asked):
    return using(order=lambda a: ORDERS[1 - ORDERS.index(asked)] if a.order == asked else missing())


def _wave(angle, layout):
    return pairing.join(np.sin(angle), np.cos(angle), layout)


def _angle(of, wave=_wave):
    """Another angle, of(positions, frequencies), or another use of it."""

    def encode(positions, w, *, layout):
        return wave(of(positions[..., None], w), layout)

    return inside(sinusoidal, "encode", lambda right: encode)


def _angle_of(of):
    """Another angle, of(positions, frequencies, arguments)."""

    def change(right, a):
        return lambda positions, w, *, layout: _wave(of(positions[..., None], w, a), layout)

    return inside(sinusoidal, "encode", change)


def _by_rows(angle, layout):
    """Sines and cosines of interleaved features."""
    even = np.arange(angle.shape[-2])[:, None] % 2 == 0
    return np.where(even, np.sin(angle), np.cos(angle)) if layout == "interleaved" else missing()


def _of_every_feature(right, a, doubled):
    """The exponent 2 i / dim with i = 2t at the sine and 2t + 1 at the cosine; i / dim, if not doubled."""
    if a.divisor != "dim":
        missing()

    def encode(positions, w, *, layout):
        angle = positions[..., None] * w**doubled
        return pairing.join(np.sin(angle), np.cos(angle * a.base ** (-doubled / a.dim)), layout)

    return encode


MISTAKES = with_words(
    __name__,
    other_layout="other_layout",
    cos_first=_other_order("sin_cos"),
    divisor=using(divisor=lambda a: {"dim": "dim - 2", "dim - 2": "dim"}[a.divisor]),
    feature_index=inside(sinusoidal, "encode", lambda right, a: _of_every_feature(right, a, 2)),
    starts_at_one="position_plus_one",
    degrees=_angle(lambda m, w: m * w * (np.pi / 180)),
    turns=_angle(lambda m, w: m * w * (2 * np.pi)),
    wrong_base=using(base=1000.0),
    f16_positions="f16_positions",
    bf16_positions="bf16_positions",
    bf16_frequencies=_angle(lambda m, w: m * rounded(w, 8)),
    bf16_angles=_angle(lambda m, w: rounded(m * rounded(w, 8), 8)),
    f32_angles=_angle(lambda m, w: rounded(m * rounded(w, 24), 24)),
)

PRESETS = {name: ("encode", sinusoidal.PRESETS[name]) for name in sinusoidal.PRESETS}

SCORES = {"added": ("one", "key", "query", "any")}


def _head(t):
    return t.added(sinusoidal.encode(t.positions, sinusoidal.frequencies(t.dim), layout=layers.LAYOUT))


FURTHER = with_words(
    __name__,
    sin_first=_other_order("cos_sin"),
    first_column_zero=result(lambda y, a: np.roll(y, a.zeros, axis=-1) if a.zeros else missing()),
    exponent_floored=_angle(lambda m, w: m * np.exp(-2.0 * np.arange(w.shape[-1]))),
    exponent_floored_by_pairs=_angle(lambda m, w: m * np.exp(-1.0 * np.arange(w.shape[-1]))),
    **{
        f"exponent_over_{width}": Mistake(
            _angle_of(lambda m, w, a, width=width: m * a.base ** (-2 * np.arange(w.shape[-1]) / width)),
            f"the exponent is divided by {width}, a number in the code, instead of dim",
            "Frequencies fall too slowly or too fast.",
            "Divide by the width of the encoding.",
        )
        for width in (64, 128, 256, 512, 768, 1024)
    },
    exponent_not_divided=_angle(lambda m, w: m * w ** w.shape[-1]),
    doubled_exponent_not_divided=_angle(lambda m, w: m * w ** (2 * w.shape[-1])),
    exponential_without_base=_angle(lambda m, w: m * np.exp(-np.linspace(0, 1, w.shape[-1], endpoint=False))),
    base_in_the_exponent=_angle(lambda m, w: m * np.where(np.arange(w.shape[-1]) > 0, 0, w)),
    sines_by_rows=_angle(lambda m, w: m * np.repeat(w, 2), _by_rows),
    odd_exponents_of_cosines=inside(sinusoidal, "encode", lambda right, a: _of_every_feature(right, a, 1)),
)
