"""FoPE: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref.ops import inside, instead, missing, result, using, with_words
from posref.ops.probe import painted
from posref.rotary import fope, rope


def frequencies(*, dim, base=10000.0, length):
    return fope.frequencies(dim, base, length=length)


def step_eye(*, kept, width):
    return fope.step_eye(kept, width)


def rotate(x, positions, cos_coefficients, sin_coefficients, *, dim, base=10000.0, length, convention):
    of_texts = positions[(None,) * (x.ndim - 2 - positions.ndim)]
    given = fope.frequencies(dim, base, length=length), cos_coefficients, sin_coefficients
    return rope.rotate(x, *fope.tables(of_texts, *given, dim=dim, convention=convention), layout="half")


def _coefficients(tag):
    """The step-eye plus noise, as wide as what is kept."""

    def made(s):
        kept = len(fope.frequencies(s.dim, s.base, length=s.length))
        return fope.step_eye(kept, kept) + painted((s.heads, kept, kept), tag) / 2

    return made


ARRAYS = {"cos_coefficients": _coefficients(2), "sin_coefficients": _coefficients(4)}
NAMES = "cos_coefficients", "sin_coefficients"


def _both(change):
    """Other coefficients, C and S alike."""
    return using(**{name: lambda a, name=name: change(a[name]) for name in NAMES})


def _turning(right, a):
    """Tables in which the pairs that should stand still have the frequencies of RoPE."""

    def tables(positions, *given, **words):
        cos, sin = right(positions, *given, **words)
        width, w = a.cos_coefficients.shape[-1], rope.frequencies(a.dim, a.base)
        plain = rope.tables(positions[..., None, :], w[width:])
        ones = np.ones_like(cos[..., width:])
        return tuple(np.concatenate([x[..., :width], y * ones], axis=-1) for x, y in zip((cos, sin), plain, strict=True))

    return tables


def _dropped(y, a):
    turning = np.arange(a.dim // 2) < a.cos_coefficients.shape[-1]
    return y * np.concatenate([turning, turning])


MISTAKES = with_words(
    __name__,
    other_padding=using(convention=lambda a: {"released": "zero_phase", "zero_phase": "released"}[a.convention]),
    low_frequencies_turn=inside(fope, "tables", _turning),
    still_pairs_dropped=result(_dropped),
    cos_for_sin=using(cos_coefficients=lambda a: a.sin_coefficients, sin_coefficients=lambda a: a.cos_coefficients),
    one_matrix=using(sin_coefficients=lambda a: a.cos_coefficients),
    no_noise=_both(lambda c: fope.step_eye(*c.shape[-2:]) + 0 * c),
    transposed=_both(lambda c: np.swapaxes(c, -1, -2) if c.shape[-1] == c.shape[-2] else missing()),
    of_the_first_head=_both(lambda c: np.broadcast_to(c[:1], c.shape)),
    columns_normalized=_both(lambda c: c / c.sum(axis=-2, keepdims=True)),
    other_pairs=inside(rope, "rotate", lambda right: lambda x, cos, sin, layout: right(x, cos, sin, layout="interleaved")),
    all_frequencies=instead(lambda dim, base, length: rope.frequencies(dim, base)),
    radians_for_turns=using(length=lambda a: 2 * np.pi * a.length),
    plain_eye=instead(lambda kept, width: np.eye(kept, width)),
    steps_rounded_down=instead(lambda kept, width: 1 * (np.arange(kept)[:, None] == kept // width * np.arange(width))),
)

PRESETS = {name: ("frequencies", fope.PRESETS[name]) for name in fope.PRESETS}

SCORES = "rope where nothing is mixed; else scores of places, by coefficients that are drawn and not trained"


def _head(t):
    q, k, v = t.projected(t.x)
    w = rope.frequencies(t.dim)[:2]
    coefficients = [np.eye(2) + t.parameter(1, 2, 2) / 4 for _ in range(2)]
    cos, sin = fope.tables(t.positions, w, *coefficients, dim=t.dim, convention="released")
    return t.attended(*(rope.rotate(y, cos[0], sin[0], layout="half") for y in (q, k)), v)
