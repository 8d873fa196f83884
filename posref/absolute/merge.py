"""Merging: how an absolute encoding enters the token embedding.

Definition. For an embedding x_i and an encoding p_i of one width d, or of widths d and d_p for the last:

    add           x_i + p_i
    multiply      x_i p_i  (convention="paper")  or  x_i (1 + p_i)  (convention="released")
    concatenate   [x_i ; p_i]

Symbols. x (..., n, d), p (..., n, d) or (..., n, d_p).

Conventions. No scaling here: Vaswani et al. multiply x by sqrt(d) first, and that is the caller's line to write.

Where implementations differ. "Multiplicative" is x p in the text that proposes it and x (1 + p) in bert4keras
(layers.py, merge_mode="mul"). With the sinusoid the literal form deletes the sine half of token 0, since
p_0 = (0, 1, 0, 1, ..).

Properties. proofs/absolute/merge.py: pinned, concatenate_pinned, concatenation_contains_addition (a linear map of [x ; p]
can be any of x + p, not the reverse), literal_product_deletes_sines_of_token_zero (x (1 + p) keeps them).

References. Su, kexue.fm/archives/8130 (add, multiply, concatenate); bert4keras 0.11.5 layers.py PositionEmbedding.
"""

import numpy as np

from posref import _require

CONVENTIONS = ("paper", "released")


def add(x, p):
    """x + p: `(..., n, d)`. ValueError for another width, or a p that does not broadcast to x.

    >>> add(np.array([[1.0, 2.0]]), np.array([[0.0, 1.0]]))
    array([[1., 3.]])
    """
    _require_same_features("merge.add", x, p)
    return x + p


def multiply(x, p, *, convention):
    """x p (`"paper"`) or x (1 + p) (`"released"`, bert4keras): `(..., n, d)`. ValueError as in `add`.

    >>> multiply(np.array([[3.0, 2.0]]), np.array([[0.0, 1.0]]), convention="paper")
    array([[0., 2.]])
    >>> multiply(np.array([[3.0, 2.0]]), np.array([[0.0, 1.0]]), convention="released")
    array([[3., 4.]])
    """
    _require_same_features("merge.multiply", x, p)
    _require.choice("merge.multiply", "convention", convention, CONVENTIONS)
    return x * p if convention == "paper" else x * (1 + p)


def concatenate(x, p):
    """[x ; p]: `(..., n, d + d_p)`. ValueError if the leading axes of `p` do not broadcast to those of `x`.

    >>> concatenate(np.array([[1.0, 2.0]]), np.array([[0.0]]))
    array([[1., 2., 0.]])
    """
    _require.array("merge.concatenate", "x", x, ndim=1)
    _require.array("merge.concatenate", "p", p, ndim=1)
    shape = (*x.shape[:-1], p.shape[-1])
    _require.broadcasts_to("merge.concatenate", "p", p, "the axes of x and the features of p", shape)
    return np.concatenate([x, np.broadcast_to(p, shape)], axis=-1)


def _require_same_features(function, x, p):
    _require.array(function, "x", x, ndim=1)
    _require.array(function, "p", p, ndim=1)
    _require.same_width(function, "x", x, "p", p)
    _require.broadcasts_to(function, "p", p, "x", x.shape)
