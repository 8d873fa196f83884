"""Complex Order: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref.absolute import complex_order, sinusoidal
from posref.ops import inside, instead, with_words
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
    """Other arguments of the wave."""
    return inside(complex_order, "encode", lambda right: lambda m, r, w, p: right(*change(m, r, w, p)))


def _score(formula):
    """Another product of q and the transposed k."""
    return inside(complex_order, "scores", lambda right: lambda q, k: formula(q, np.swapaxes(k, -1, -2)))


REPLACED = {"position_plus_one"}  # shared mistakes that have a form of their own here

MISTAKES = with_words(
    __name__,
    no_phase=_wave(lambda m, r, w, p: (m, r, w, 0 * p)),
    phase_sign=_wave(lambda m, r, w, p: (m, r, w, -p)),
    sign=_wave(lambda m, r, w, p: (-m, r, w, -p)),
    starts_at_one=_wave(lambda m, r, w, p: (m + 1, r, w, p)),
    shared_frequency=_wave(lambda m, r, w, p: (m, r, w[..., :1, :] + 0 * w, p)),
    turns=_wave(lambda m, r, w, p: (m, r, 2 * np.pi * w, p)),
    half_schedule=instead(lambda words, dim: words[..., None] * 10000 ** (-np.arange(dim) / dim)),
    no_conjugate=_score(lambda q, k: q @ k),
    imaginary=_score(lambda q, k: -1j * (q @ np.conj(k))),
    modulus=_score(lambda q, k: np.abs(q @ np.conj(k)) + 0j),
)

SCORES = "positions multiply each word by its own frequency; not affine in the content"


def _head(t):
    waves = complex_order.encode(t.positions, t.x, sinusoidal.frequencies(2 * t.dim), 0 * t.x)
    q, k, v = t.projected(waves)
    return t.scored(t.scale * complex_order.scores(q, k).real, v)
