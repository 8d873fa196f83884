r"""FIRE: a small trained network of the distance relative to the query's position.

A network fails at distances that it never saw in training. Divided by the position of the query, the distance lies between 0
and 1 at every length.

Also called: functional interpolation for relative positional encoding.

Definition. c > 0 and m are trained, L is fixed, and the network has one hidden layer of 32:

    b_ij = f(x_ij),   x_ij = ln(1 + c |i - j|) / (ln(1 + c max(i, |m L|)) + eps)
    f(x) = W_2 relu(w_1 x + b_1) + b_2
    s_ij = q_i . k_j / sqrt(d) + b_ij

Symbols.

    i, j (..., n)                   positions from 0, in tokens
    c                               the bend of the logarithm, 0.1 at first
    threshold                       |m L|, 512 at first: below it the denominator is one number
    w_1, b_1 (width,)               the first layer
    W_2, b_2                        `w_2` `(width, h)` and `b_2` `(h,)`: a number per head
    x (..., n_query, n_key)         between 0 and 1 for keys in the past

Conventions. The bias is added to scaled scores, before the mask. Up to the threshold it sees the distance alone, beyond it the
query's position too. Past and future are alike. b_2 is a constant of the row, which a softmax does not see.

Example. The last of five tokens, with a threshold of 2 and then of 100.

>>> i, settings = np.arange(5), {"c": 1.0, "eps": 0.0}
>>> progress(i[4:], i, threshold=2.0, **settings).round(3)
array([[1.   , 0.861, 0.683, 0.431, 0.   ]])
>>> progress(i[4:], i, threshold=100.0, **settings).round(3)
array([[0.349, 0.3  , 0.238, 0.15 , 0.   ]])

Where implementations differ.

    what | who | value | version | source
    positions | TAPE's copy | 0 .. n - 1 | 466d9e61e5 | models/llama/fire.py
    positions | mcleish7/arithmetic | in training a sorted random subset of 0 .. max_length - 1 | 86022a57d3 | FIRE
    eps | TAPE's copy | 1e-6 in the denominator | 466d9e61e5 | models/llama/fire.py
    c below 0 | TAPE's copy | |c (i - j)|, so its sign is immaterial | 466d9e61e5 | models/llama/fire.py
    precision | TAPE's copy | x in float32 | 466d9e61e5 | models/llama/fire.py

References. Li et al., Functional Interpolation for Relative Positions Improves Long Context Transformers, arXiv 2310.04418.
"""

import numpy as np

from posref._contract import Array, Number, Numbers, Positive, Signed, contract
from posref.offsets import offsets


@contract
def progress(
    query_positions: Signed[Array, "... n_query"],
    key_positions: Signed[Array, "... n_key"],
    *,
    c: Positive,
    threshold: Positive,
    eps: Number,
) -> Numbers[Array, "... n_query n_key"]:
    """x_ij, what the network sees: `(..., n_query, n_key)`.

    >>> progress(np.array([3]), np.array([0, 3]), c=1.0, threshold=3.0, eps=0.0)
    array([[1., 0.]])
    """
    distance = np.abs(offsets(query_positions, key_positions))
    longest = np.maximum(query_positions, threshold)[..., None]
    return np.log(1 + c * distance) / (np.log(1 + c * longest) + eps)


@contract
def network(
    x: Numbers[Array, "... n_query n_key"],
    w_1: Numbers[Array, "width"],
    b_1: Numbers[Array, "width"],
    w_2: Numbers[Array, "width h"],
    b_2: Numbers[Array, "h"],
) -> Numbers[Array, "... h n_query n_key"]:
    """f(x), the bias to be added to scaled scores: `(..., h, n_query, n_key)`.

    >>> network(np.array([[0.0, 1.0]]), np.array([2.0]), np.array([-1.0]), np.array([[3.0]]), np.array([0.5]))
    array([[[0.5, 3.5]]])
    """
    hidden = np.maximum(x[..., None] * w_1 + b_1, 0)
    return np.moveaxis(hidden @ w_2 + b_2, -1, -3)
