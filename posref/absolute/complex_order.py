r"""Complex Order: every feature of a word is a wave in its position.

Definition. A word with amplitudes r, frequencies w and phases theta, one of each for every feature, has at position m the
complex embedding

    g(m)_t = r_t e^{i (w_t m + theta_t)},   t = 0 .. d - 1

so that going on by n positions multiplies by e^{i w_t n}, wherever one starts.

Symbols. positions (..., n) in tokens; amplitude, frequency (radians per position), phase (..., n, d), looked up for the
words, or (d,) if all words share them; g (..., n, d) complex; scores (..., n_query, n_key).

Conventions. All three belong to the word, not to the feature alone. RoPE is the case of frequencies that all words share:
r e^{i theta} is the pair x_{2t} + i x_{2t+1}, and `scores` is then the rotated dot product (`rope.rotate_complex`).

Where implementations differ. The paper has a phase and sets it to a constant in its experiments; the released code
(iclr-complex-order/complex-order 4c4ec24, TEXT CLASSIFICATION/CNN/model_cnn/Complex_order.py and CNN/multiply.py) has none:
pass np.zeros_like(frequency). It starts the frequencies of word v at v / 10000^(2t/d) with t up to d - 1, so they grow with
the rank of the word (`released_frequencies`), and counts tokens from 1 with 0 for padding. Its Transformer (beside CNN,
Transformer/model_transformer/Complex_order.py) starts all words at 10000^(-2 floor(t/2) / d) and counts positions down to 0
at the last token. Its language model adds the modulus of the content score to that of the position score.

Properties. proofs/absolute/complex_order.py: pinned; released_frequencies_pinned; offset_is_a_factor;
bounded_linear_offsets_are_waves, where bounded means on all integers; linearity_is_needed (tanh has an offset map too);
scores_pinned; scores_are_relative_for_shared_frequencies, and not for those of each word; rope_is_a_special_case.

References. Wang et al., Encoding Word Order in Complex Embeddings, arXiv 1912.12333, section 2, Eq. (5); Su,
kexue.fm/archives/8130, section "Complex-Valued".
"""

import numpy as np

from posref import _require


def encode(positions, amplitude, frequency, phase):
    """g = r e^{i (w m + theta)}: complex `(..., n, d)`; the four broadcast, positions as `(..., n, 1)`.

    ValueError if they do not have one width or do not broadcast.

    >>> one = np.array([1.0])
    >>> encode(np.array([0, 1, 2]), 2 * one, np.pi / 2 * one, 0 * one)[:, 0].round(4)
    array([ 2.+0.j,  0.+2.j, -2.+0.j])
    """
    _require.array("complex_order.encode", "positions", positions, ndim=1)
    for name, value in (("amplitude", amplitude), ("frequency", frequency), ("phase", phase)):
        _require.array("complex_order.encode", name, value, ndim=1)
        _require.same_width("complex_order.encode", "amplitude", amplitude, name, value)
    waves = {"amplitude": amplitude.shape, "frequency": frequency.shape, "phase": phase.shape}
    _require.together("complex_order.encode", positions=(*positions.shape, 1), **waves)
    angle = frequency * positions[..., None] + phase
    return amplitude * np.exp(1j * angle)


def scores(q, k):
    """Re(q conj(k)^T), as (z + conj z) / 2: `(..., n_query, n_key)`, of complex dtype with imaginary part 0.

    ValueError if q and k differ in width, or their leading axes do not broadcast.

    >>> scores(np.array([[1 + 2j]]), np.array([[3 + 1j], [1j]]))
    array([[5.+0.j, 2.+0.j]])
    """
    _require.array("complex_order.scores", "q", q, kinds=_require.COMPLEX, ndim=2)
    _require.array("complex_order.scores", "k", k, kinds=_require.COMPLEX, ndim=2)
    _require.same_width("complex_order.scores", "q", q, "k", k)
    _require.leading_axes("complex_order.scores", "q", q, "k", k)
    z = q @ np.swapaxes(np.conj(k), -1, -2)
    return (z + np.conj(z)) / 2


def released_frequencies(words, dim):
    """w_t = v / 10000^(2t/dim), t = 0 .. dim - 1, where training starts for word v: float64 `words.shape + (dim,)`.

    >>> released_frequencies(np.array([0, 3]), 2)
    array([[0.e+00, 0.e+00],
           [3.e+00, 3.e-04]])
    """
    _require.array("complex_order.released_frequencies", "words", words, kinds=_require.INTEGERS)
    _require.count("complex_order.released_frequencies", "dim", dim)
    return words[..., None] * 10000 ** (-2 * np.arange(dim) / dim)
