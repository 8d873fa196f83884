"""FoPE: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.ops import Mistake, changing, inside, instead, missing, result, using
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
    """The step-eye plus noise, as wide as the number of kept frequencies."""

    def made(s):
        kept = len(fope.frequencies(s.dim, s.base, length=s.length))
        return fope.step_eye(kept, kept) + painted((s.heads, kept, kept), tag) / 2

    return made


ARRAYS = {"cos_coefficients": _coefficients(2), "sin_coefficients": _coefficients(4)}
NAMES = "cos_coefficients", "sin_coefficients"


def _both(change):
    """Both coefficients, C and S, changed in the same way."""
    return changing(change, *NAMES)


def _turning(right, a):
    """Tables in which the pairs that should not turn have the frequencies of RoPE."""

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


MISTAKES = {
    "other_padding": Mistake(
        using(convention=lambda a: {"released": "zero_phase", "zero_phase": "released"}[a.convention]),
        seen_in=("vllm-project/vllm#55204", "TsinghuaC3I/Fourier-Position-Embedding#6"),
    ).words("""
        pairs without a frequency have sin = 0 where it is 1, or the reverse, as in another implementation
        Their part of every score is halved, or doubled.
        Pad sin with what the model was trained with: 1 in the authors' code and in Intern-S1-Pro."""),
    "low_frequencies_turn": Mistake(inside(fope, "tables", _turning)).words("""
        pairs beyond the width of the coefficients turn by cos(m w), sin(m w) as in RoPE
        Right for short texts with sin 0; far ones meet angles that training had not seen.
        cos = 1 in the pairs beyond the width, and sin by convention."""),
    "still_pairs_dropped": Mistake(result(_dropped)).words("""
        cos = sin = 0: pairs that do not turn are multiplied by 0
        Content without position is lost.
        cos = 1 in the pairs beyond the width."""),
    "cos_for_sin": Mistake(
        using(cos_coefficients=lambda a: a.sin_coefficients, sin_coefficients=lambda a: a.cos_coefficients)
    ).words("""
        the matrices C and S are exchanged
        Everything is slightly wrong: both are near the step-eye.
        cos_coef is for cosines, sin_coef for sines."""),
    "one_matrix": Mistake(using(sin_coefficients=lambda a: a.cos_coefficients)).words("""
        the matrix C is used for sines as well as cosines
        Right for models with fourier_separate_basis false.
        Read both matrices."""),
    "no_noise": Mistake(_both(lambda c: fope.step_eye(*c.shape[-2:]) + 0 * c)).words("""
        the stored coefficients are not read: each pair has one frequency
        RoPE without its low frequencies.
        Load cos_coef and sin_coef; they are buffers, not weights."""),
    "transposed": Mistake(_both(lambda c: np.swapaxes(c, -1, -2) if c.shape[-1] == c.shape[-2] else missing())).words("""
        C^T and S^T: rows and columns are exchanged, (width, kept) for (kept, width)
        Everything is slightly wrong: both are near the step-eye.
        The first axis of a head's matrix is that of the frequencies."""),
    "of_the_first_head": Mistake(_both(lambda c: np.broadcast_to(c[:1], c.shape))).words("""
        all heads use the matrices of head 0
        Head 0 is right and no other.
        One matrix a key head; queries have that of their key."""),
    "columns_normalized": Mistake(_both(lambda c: c / c.sum(axis=-2, keepdims=True))).words("""
        the columns of C and S are divided by their sums (fourier_norm, which no released configuration sets)
        Pairs are turned by other mixtures, and stretched.
        Use the coefficients as they are."""),
    "other_pairs": Mistake(
        inside(rope, "rotate", lambda right: lambda x, cos, sin, layout: right(x, cos, sin, layout="interleaved"))
    ).words("""
        features are paired (2t, 2t + 1)
        A valid map of the wrong features.
        Pair t is (t, t + dim/2)."""),
    "all_frequencies": Mistake(instead(lambda dim, base, length: rope.frequencies(dim, base)), only="frequencies").words("""
        no frequency is left out: they are RoPE's
        Coefficients have fewer rows than there are frequencies.
        Keep those with w length >= 2 pi."""),
    "radians_for_turns": Mistake(using(length=lambda a: 2 * np.pi * a.length), only="frequencies").words("""
        w L >= 1: a frequency is kept from one radian on instead of one turn
        Coefficients have fewer rows than there are frequencies.
        Keep those with w length >= 2 pi."""),
    "plain_eye": Mistake(instead(lambda kept, width: np.eye(kept, width)), only="step_eye").words("""
        ones at (u, u): the step is 1, so only the fastest frequencies are kept
        Right where the width is what is kept.
        Row u ceil(kept / width) for column u."""),
    "steps_rounded_down": Mistake(
        instead(lambda kept, width: 1 * (np.arange(kept)[:, None] == kept // width * np.arange(width))), only="step_eye"
    ).words("""
        floor(kept / width): the step is rounded down
        No column is empty, and the slowest frequencies are left out.
        Row u ceil(kept / width) for column u."""),
}

PRESETS = {name: ("frequencies", fope.PRESETS[name]) for name in fope.PRESETS}

SCORES = "RoPE where no frequencies are mixed; else scores depend on absolute positions, by coefficients that are not trained"


def _head(t):
    q, k, v = t.projected(t.x)
    w = rope.frequencies(t.dim)[:2]
    coefficients = [np.eye(2) + t.parameter(1, 2, 2) / 4 for _ in range(2)]
    cos, sin = fope.tables(t.positions, w, *coefficients, dim=t.dim, convention="released")
    return t.attended(*(rope.rotate(y, cos[0], sin[0], layout="half") for y in (q, k)), v)
