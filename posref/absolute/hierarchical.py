r"""Hierarchical decomposition: a trained table of n positions is stretched to n^2 positions.

A model that was trained with n positions can read longer texts without new parameters. The position is written with two digits
in base n, and each digit looks up one vector of the trained table.

Also called: hierarchical decomposition, stretched table.

Definition. For a trained table p_0 .. p_{n-1} and the digits i, j = 0 .. n - 1:

    u_k = (p_k - alpha p_0) / (1 - alpha)
    q_{i n + j} = alpha u_i + (1 - alpha) u_j

The base vectors u are those for which the first n rows are the trained ones: q_j = p_j.

Symbols.

    p (n, d)                  the trained table
    u (n, d)                  base vectors
    q (n^2, d) or (..., d)    the stretched table, all of it or the rows asked for
    alpha                     one number, the weight of the slow digit
    positions (...)           in tokens, below n^2

Conventions. 0-based: i = position // n is the slow digit. The text wants alpha in (0, 1) and not 1/2, where (i, j) and (j, i)
get one vector; every alpha but 1 is accepted here. A position from n^2 on is an error.

Example. Two rows become four:

>>> import numpy as np
>>> print(extend(np.array([[1.0], [3.0]]), alpha=0.25)[:, 0].round(3))
[1.    3.    1.667 3.667]

Where implementations differ.

    what | who | value | version | source
    first position | Su's text | 1 | - | kexue.fm/archives/7947
    first position | bert4keras | 0, as here | 0.11.5 | layers.py PositionEmbedding
    alpha | bert4keras, hierarchical=True | 0.4 | 0.11.5 | layers.py PositionEmbedding

References. Su, kexue.fm/archives/7947.
"""

from posref import _require
from posref._contract import Array, Integers, Number, Numbers, Signed, contract

PRESETS = {"bert4keras": {"alpha": 0.4, "source": "bert4keras c1ae0dc layers.py PositionEmbedding, hierarchical=True"}}


@contract
def extend(table: Signed[Array, "n d!"], *, alpha: Number) -> Numbers[Array, "n*n d"]:
    """All n^2 rows q: `(n^2, d)` from a table `(n, d)`.

    ValueError for alpha = 1, where u divides by zero, or a table that is not (n, d). `encode` builds the rows asked for alone.

    >>> import numpy as np
    >>> extend(np.array([[1.0, 0.0], [3.0, 1.0]]), alpha=0.25).round(4)
    array([[1.    , 0.    ],
           [3.    , 1.    ],
           [1.6667, 0.3333],
           [3.6667, 1.3333]])
    """
    u = _base_vectors("hierarchical.extend", table, alpha)
    q = alpha * u[:, None, :] + (1 - alpha) * u[None, :, :]
    return q.reshape(-1, table.shape[-1])


@contract
def encode(positions: Integers[Array, "..."], table: Signed[Array, "n d!"], *, alpha: Number) -> Numbers[Array, "... d"]:
    """Rows of `extend(table)` at `positions`: `positions.shape + (d,)`, without building the other rows.

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
    if alpha == 1:
        raise ValueError(
            f"{function}: alpha is {alpha}, and u = (p - alpha p_0) / (1 - alpha) divides by zero; bert4keras takes 0.4"
        )
    return (table - alpha * table[:1]) / (1 - alpha)
