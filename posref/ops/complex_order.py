"""Complex Order: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.absolute import complex_order, sinusoidal
from posref.ops import Mistake, inside, instead
from posref.ops.probe import painted


def encode(positions, amplitude, frequency, phase):
    g = complex_order.encode(positions, amplitude, frequency, phase)
    return np.stack([g.real, g.imag], axis=-1)


def scores(query_positions, q_amplitude, q_frequency, q_phase, key_positions, k_amplitude, k_frequency, k_phase):
    q = complex_order.encode(query_positions, q_amplitude, q_frequency, q_phase)
    k = complex_order.encode(key_positions, k_amplitude, k_frequency, k_phase)
    return complex_order.scores(q, k).real


def released_frequencies(words, *, dim):
    return complex_order.released_frequencies(words, dim)


def _of(rows, tag):
    return lambda s: painted((s.batch, s[rows], s.head_dim), tag)


ARRAYS = {
    "amplitude": _of("n_key", 1),
    "frequency": _of("n_key", 2),
    "phase": _of("n_key", 4),
    "q_amplitude": _of("n_query", 1),
    "q_frequency": _of("n_query", 2),
    "q_phase": _of("n_query", 4),
    "k_amplitude": _of("n_key", 6),
    "k_frequency": _of("n_key", 8),
    "k_phase": _of("n_key", 9),
    "words": lambda s: np.arange(s.n_key) * 3 + 1,
}


def _wave(change):
    """The wave with other arguments."""
    return inside(complex_order, "encode", lambda right: lambda m, r, w, p: right(*change(m, r, w, p)))


def _score(formula):
    """Another product of q and the transpose of k."""
    return inside(complex_order, "scores", lambda right: lambda q, k: formula(q, np.swapaxes(k, -1, -2)))


REPLACED = {"position_plus_one"}  # shared mistakes that have a form of their own here

MISTAKES = {
    "no_phase": Mistake(_wave(lambda m, r, w, p: (m, r, w, 0 * p))).words("""
        theta = 0: the phase is left out
        All words start at the positive real axis.
        Add the phase to the angle: w m + theta."""),
    "phase_sign": Mistake(_wave(lambda m, r, w, p: (m, r, w, -p))).words("""
        w m - theta: the phase has the wrong sign
        Words are mirrored at position 0.
        Add the phase where it is subtracted: w m + theta."""),
    "sign": Mistake(_wave(lambda m, r, w, p: (-m, r, w, -p)), only="encode").words("""
        e^{-i (w m + theta)}: the wave runs backwards
        Imaginary parts have the wrong sign.
        Write e^{i (w m + theta)}, not its conjugate."""),
    "starts_at_one": Mistake(_wave(lambda m, r, w, p: (m + 1, r, w, p))).words("""
        positions are counted from 1
        Token 0 is turned.
        Count from 0: the angle of the first token is its phase."""),
    "shared_frequency": Mistake(_wave(lambda m, r, w, p: (m, r, w[..., :1, :] + 0 * w, p))).words("""
        all words have the frequencies w of the first word
        RoPE in the place of Complex Order.
        Look up the frequencies of every word, as its amplitudes and phases."""),
    "turns": Mistake(_wave(lambda m, r, w, p: (m, r, 2 * np.pi * w, p))).words("""
        2 pi w m: the frequency is read in turns instead of radians
        Other waves.
        Leave out 2 pi; frequencies are radians per position."""),
    "half_schedule": Mistake(instead(lambda words, dim: words[..., None] * 10000 ** (-np.arange(dim) / dim))).words("""
        10000^(t/dim) with t counting pairs
        Frequencies are too high.
        Double the exponent: v / 10000^(2t/dim), t = 0 .. dim - 1."""),
    "no_conjugate": Mistake(_score(lambda q, k: q @ k)).words("""
        Re(q k^T): the keys are not conjugated
        Scores see the sum of positions.
        Conjugate the keys: Re(q conj(k)^T)."""),
    "imaginary": Mistake(_score(lambda q, k: -1j * (q @ np.conj(k)))).words("""
        Im(q conj(k)^T): the imaginary part is taken
        Other scores.
        Take the real part: Re(q conj(k)^T)."""),
    "modulus": Mistake(_score(lambda q, k: np.abs(q @ np.conj(k)) + 0j)).words("""
        |q conj(k)^T|: the modulus is taken
        Scores are never negative.
        Take the real part, which can be negative: Re(q conj(k)^T)."""),
}

FURTHER = {
    "phase_inside": Mistake(_wave(lambda m, r, w, p: (m, r, w, w * p))).words("""
        w (m + theta): the phase is multiplied by the frequency
        Phases differ by feature.
        Add the phase to the angle: w m + theta."""),
    "words_in_pairs": Mistake(
        instead(lambda words, dim: words[..., None] * 10000.0 ** (-2 * (np.arange(dim) // 2) / dim))
    ).words("""
        two features share a frequency, as sine and cosine of a sinusoid do
        Half of the frequencies are missing.
        Take one frequency for each feature: v / 10000^(2t/dim), t = 0 .. dim - 1."""),
    "reals_alone": Mistake(_score(lambda q, k: q.real @ k.real + 0j)).words("""
        Re(q) Re(k)^T: imaginary parts are dropped before the product
        Scores depend on absolute positions.
        Multiply complex numbers, then take the real part: Re(q conj(k)^T)."""),
}

SCORES = "positions multiply each word by a frequency of its own, so scores do not have this form"


def _head(t):
    waves = complex_order.encode(t.positions, t.x, sinusoidal.frequencies(2 * t.dim), 0 * t.x)
    q, k, v = t.projected(waves)
    return t.scored(t.scale * complex_order.scores(q, k).real, v)
