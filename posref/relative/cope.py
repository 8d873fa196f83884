r"""CoPE: contextual position; each query counts the keys that its gates let through.

The second sentence back from here has no fixed distance in tokens. One gate per query and key decides which keys are counted,
so one head can count sentences, another head words of one kind, and another head all tokens.

Also called: contextual position encoding.

Definition. The keys j <= i, and a trained table E of P rows:

    g_ij = sigmoid(q_i . k_j / sqrt(d))
    p_ij = min(sum_{j<=l<=i} g_il, P - 1)
    z_ij = q_i . e(p_ij),   e linear between the rows E_0, E_1, .., E_{P-1}
    s_ij = (q_i . k_j + z_ij) / sqrt(d)         convention="official"
    s_ij = q_i . k_j / sqrt(d) + z_ij           convention="nodiv"

Symbols.

    q (..., n_query, d)             queries
    k (..., n_key, d)               keys
    table (rows, d)                 E, one for all heads of a layer
    mask (n_query, n_key)           True where a key may be seen; others are not counted
    gates (..., n_query, n_key)     g, 0 where masked
    p (..., n_query, n_key)         positions, falling from the first key to the last

Conventions. The sum includes the gate of the key and the gate of the query, so p_ii = g_ii. The gate is scaled in both
conventions; whether z is scaled must be chosen. Keys in the future would be counted where they are not masked before the sum.
No other position enters.

Example. With all gates open a position is the distance and one more, up to the last row.

>>> positions(np.tril(np.ones((4, 4))), rows=4)
array([[1., 0., 0., 0.],
       [2., 1., 0., 0.],
       [3., 2., 1., 0.],
       [3., 3., 2., 1.]])

Where implementations differ.

    what | who | value | version | source
    scale of z | the paper's code | divided by sqrt(d); not with --cope-nodiv | e6f051fbcf | facebookresearch/RAM, projects/cope
    scale of z | x-transformers | not divided | 2.31.10 | x_transformers.py CoPE
    mask | x-transformers | masked scores are -max before the sigmoid | 2.31.10 | x_transformers.py CoPE
    rows | the paper's code | block + 1, zeros at first, shared by the heads | e6f051fbcf | facebookresearch/RAM, projects/cope
    gate | the paper's code | optional keys of its own, or the values | e6f051fbcf | facebookresearch/RAM, projects/cope
    interpolation | x-transformers | optional softmax over all rows by their distance | 2.31.10 | x_transformers.py CoPE

References. Golovneva et al., Contextual Position Encoding, arXiv 2405.18719, Eqs. (3) to (5).
"""

from typing import Literal

import numpy as np

from posref import attention
from posref._contract import Array, Booleans, Count, Number, Numbers, Signed, contract, finite
from posref.relative.forgetting import log_sigmoid

Convention = Literal["official", "nodiv"]


@contract
def positions(gates: Signed[Array, "... n_query n_key"], *, rows: Count) -> Numbers[Array, "... n_query n_key"]:
    """p_ij, the sum of the gates of j and of all keys after it, at most `rows` - 1: shape of `gates`.

    >>> positions(np.array([[0.5, 0.25, 1.0]]), rows=3)
    array([[1.75, 1.25, 1.  ]])
    """
    return np.minimum(np.cumsum(gates[..., ::-1], axis=-1)[..., ::-1], rows - 1)


@contract
def interpolate(
    by_row: Numbers[Array, "... n_query rows"], positions: Numbers[Array, "... n_query n_key", finite]
) -> Numbers[Array, "... n_query n_key"]:
    """z_ij, interpolated linearly at p_ij between the numbers of the two nearest rows: shape of `positions`.

    Row r has the weight max(1 - |p - r|, 0), so at most two rows have one. Computed in float64.

    >>> interpolate(np.array([[0.0, 10.0, 30.0]]), np.array([[0.5, 1.0, 1.75]]))
    array([[ 5., 10., 25.]])
    """
    away = np.abs(positions[..., None] - np.arange(by_row.shape[-1]))
    return (np.maximum(1 - away, 0) * by_row[..., None, :]).sum(axis=-1)


@contract
def scores(
    q: Numbers[Array, "... n_query d"],
    k: Numbers[Array, "... n_key d"],
    table: Numbers[Array, "rows d"],
    mask: Booleans[Array, "(...) #n_query #n_key"],
    *,
    scale: Number,
    convention: Convention,
) -> Numbers[Array, "... n_query n_key"]:
    """Scores to go through a softmax with the same `mask`: `(..., n_query, n_key)`. `scale` is 1/sqrt(d).

    Computed in float64.

    >>> one, mask = np.ones((2, 1)), np.tri(2, dtype=bool)
    >>> scores(one, 0 * one, np.array([[0.0], [4.0]]), mask, scale=0.5, convention="official")
    array([[1., 0.],
           [2., 1.]])
    """
    content = attention.scores(q, k, scale=scale)
    p = positions(mask * np.exp(log_sigmoid(content)), rows=table.shape[-2])
    by_row = q @ table.T
    z = interpolate(by_row, p)
    return content + (scale * z if convention == "official" else z)
