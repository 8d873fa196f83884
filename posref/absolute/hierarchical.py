r"""Hierarchical decomposition: a trained table of n positions stretched to n^2.

Definition. For a trained table p_0 .. p_{n-1} and positions written with two digits in base n:

    q_{i n + j} = alpha u_i + (1 - alpha) u_j,   u_k = (p_k - alpha p_0) / (1 - alpha),   i, j = 0 .. n - 1

The base vectors u are those for which the first n rows are the trained ones: q_j = p_j.

Symbols. table p (n, d); alpha one number; positions (...) in tokens, below n^2; q (n^2, d) or (..., d).

Conventions. 0-based: i = position // n is the slow digit. The text wants alpha in (0, 1) and not 1/2, where (i, j) and
(j, i) get one vector. Every alpha but 1 is accepted here.

Where implementations differ. The text counts from 1, bert4keras (c1ae0dc, layers.py PositionEmbedding) from 0 as here, with
alpha = 0.4 for hierarchical=True. A position from n^2 on is an error here.

Properties. proofs/absolute/hierarchical.py: pinned; keeps_the_table (the first n rows); exchanged_digits (equal at alpha = 1/2
alone); unique_for_independent_rows (distinct rows are not enough); affine_in_each_digit.

References. Su, kexue.fm/archives/7947; bert4keras 0.11.5 layers.py PositionEmbedding.
"""

from posref import _require

PRESETS = {"bert4keras": {"alpha": 0.4, "source": "bert4keras c1ae0dc layers.py PositionEmbedding, hierarchical=True"}}


def extend(table, *, alpha):
    """All n^2 rows q: `(n^2, d)` from a table `(n, d)`.

    ValueError for alpha = 1, where u divides by zero, or a table that is not (n, d). `encode` builds the rows asked for alone.

    >>> import numpy as np
    >>> extend(np.array([[1.0], [3.0]]), alpha=0.25)[:, 0].round(4)
    array([1.    , 3.    , 1.6667, 3.6667])
    """
    u = _base_vectors("hierarchical.extend", table, alpha)
    q = alpha * u[:, None, :] + (1 - alpha) * u[None, :, :]
    return q.reshape(-1, table.shape[-1])


def encode(positions, table, *, alpha):
    """Rows of `extend(table)` at `positions`: `positions.shape + (d,)`, without building the others.

    ValueError for a position outside 0 .. n^2 - 1 or alpha = 1, TypeError for positions that are not integers.

    >>> import numpy as np
    >>> encode(np.array([1, 3]), np.array([[1.0], [3.0]]), alpha=0.25).round(4)
    array([[3.    ],
           [3.6667]])
    """
    u = _base_vectors("hierarchical.encode", table, alpha)
    n = table.shape[0]
    _require.rows("hierarchical.encode", "positions", positions, n * n, "the stretched table")
    return alpha * u[positions // n] + (1 - alpha) * u[positions % n]


def _base_vectors(function, table, alpha):
    _require.array(function, "table", table)
    _require.axes(function, "table", table, "(n, d)")
    _require.number(function, "alpha", alpha)
    if alpha == 1:
        raise ValueError(
            f"{function}: alpha is {alpha}, and u = (p - alpha p_0) / (1 - alpha) divides by zero; bert4keras takes 0.4"
        )
    return (table - alpha * table[:1]) / (1 - alpha)
