r"""Complex Order: every feature of a word is a wave in its position.

Each word has an amplitude, which carries its meaning, and a frequency, which says how much its position matters. A step of n
positions then multiplies the embedding by the same factor everywhere in the text.

Also called: complex-valued encoding, complex embedding.

Definition. A word with amplitudes r, frequencies w and phases theta has at position m the complex embedding g(m), and queries
and keys of complex features the score s:

    encode                  g(m)_t = r_t e^{i (w_t m + theta_t)}    t = 0 .. d - 1
    scores                  s_ij = Re(q_i . conj(k_j))
    released_frequencies    w_t = v / 10000^(2t / d)                word number v, t = 0 .. d - 1

Symbols.

    m (..., n)                      positions, in tokens
    r, w, theta (..., n, d)         amplitude, frequency (radians per position) and phase, looked up for the words
    r, w, theta (d,)                the same, if all words share them
    g (..., n, d)                   complex
    q, k (..., n, d)                complex
    s (..., n_query, n_key)         scores
    v (...)                         word numbers, `words` in the code

Conventions. All three parameters belong to the word, not to the feature alone. RoPE is the case of frequencies that all words
share: r e^{i theta} is the pair x_{2t} + i x_{2t+1}, and `scores` is then the rotated dot product (`rope.rotate_complex`).

Example. A quarter turn at every position:

>>> one = np.array([1.0])
>>> print(encode(np.arange(4), 2 * one, np.pi / 2 * one, 0 * one)[:, 0].round(3))
[ 2.+0.j  0.+2.j -2.+0.j -0.-2.j]

Where implementations differ.

    what | who | value | version | source
    phase | Wang et al. | has one, constant in the experiments | arXiv 1912.12333 | section 2
    phase | the released CNN | none: pass np.zeros_like(frequency) | 4c4ec24 | CNN/multiply.py
    first frequencies | the released CNN | `released_frequencies`, growing with the rank of the word | 4c4ec24
      | CNN/model_cnn/Complex_order.py
    first frequencies | the released Transformer | 10000^(-2 floor(t/2) / d) for all words, 0 for padding | 4c4ec24
      | Transformer/model_transformer/Complex_order.py
    first position | the released CNN | 1, and 0 for padding | 4c4ec24 | CNN/helper.py position_index
    first position | the released Transformer | n - 1, down to 0 at the last token | 4c4ec24
      | Transformer/model_transformer/Complex_order.py
    score | the released language model | modulus of the content score plus modulus of the position score | 4c4ec24
      | pytorch-complex/complex_mem_transformer.py

References. Wang et al., Encoding Word Order in Complex Embeddings, arXiv 1912.12333, section 2, Eq. (5); Su,
kexue.fm/archives/8130, section "Complex-Valued"; code: iclr-complex-order/complex-order,
folders TEXT CLASSIFICATION and LANGUAGE MODELING.
"""

import numpy as np

from posref._contract import Array, Complex, Count, Integers, Numbers, contract


@contract
def encode(
    positions: Numbers[Array, "..."],
    amplitude: Numbers[Array, "... d"],
    frequency: Numbers[Array, "... d"],
    phase: Numbers[Array, "... d"],
) -> Complex[Array, "... d"]:
    """g = r e^{i (w m + theta)}: complex `(..., n, d)`; the four arguments broadcast; positions are `(..., n, 1)`.

    ValueError if they do not have one width or do not broadcast.

    >>> amplitude, frequency, phase = np.array([2.0, 1.0]), np.array([np.pi, np.pi / 2]), np.array([0.0, np.pi / 2])
    >>> encode(np.array([0, 1]), amplitude, frequency, phase).round(4)
    array([[ 2.+0.j,  0.+1.j],
           [-2.+0.j, -1.+0.j]])
    """
    angle = frequency * positions[..., None] + phase
    return amplitude * np.exp(1j * angle)


@contract
def scores(q: Complex[Array, "... n_query d"], k: Complex[Array, "... n_key d"]) -> Complex[Array, "... n_query n_key"]:
    """Re(q conj(k)^T), as (z + conj z) / 2: `(..., n_query, n_key)`, of complex dtype with imaginary part 0.

    ValueError if q and k differ in width, or their leading axes do not broadcast.

    >>> scores(np.array([[1 + 2j]]), np.array([[3 + 1j], [1j]]))
    array([[5.+0.j, 2.+0.j]])
    """
    z = q @ np.swapaxes(np.conj(k), -1, -2)
    return (z + np.conj(z)) / 2


@contract
def released_frequencies(words: Integers[Array, "..."], dim: Count) -> Numbers[Array, "... dim"]:
    """w_t = v / 10000^(2t/dim), t = 0 .. dim - 1, the frequencies of word v before training: float64 `words.shape + (dim,)`.

    >>> released_frequencies(np.array([0, 3]), 2)
    array([[0.e+00, 0.e+00],
           [3.e+00, 3.e-04]])
    """
    return words[..., None] * 10000 ** (-2 * np.arange(dim) / dim)
