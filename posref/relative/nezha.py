r"""NEZHA: Shaw's relative attention with a fixed sinusoid for keys and values.

A fixed function replaces the trained table: it has no parameters, and every offset up to the clipping distance has its own row.

Also called: functional relative encoding.

Definition. The same vectors are added to keys and to values; t = 0 .. d/2 - 1:

    s_ij = scale q_i . (k_j + a_ij)
    o_i = sum_j softmax_j(s_ij) (v_j + a_ij)
    a_ij = (sin(c w_t), cos(c w_t)) for each t                    convention="paper"
    a_ij = (sin((c + k) w_t), cos((c + k) w_t)) for each t        convention="released"
    c = clip(j - i, -k, k)
    w_t = 10000^(-2t / d)

The released rows are the paper's with every pair rotated by the phase k w_t, one orthogonal matrix M for the whole table,
`posref.absolute.sinusoidal.shift_matrix(k, ..)`, so that

    q . a_released = (M^T q) . a_paper

Symbols.

    q, k, v (..., h, n, d)              queries, keys, values
    d                                   the width of a head
    k                                   max_distance
    table (2k + 1, d)                   row r for the offset r - k
    offsets (..., n_query, n_key)       integers j - i
    w (d/2,)                            frequencies

Conventions. Sine and cosine interleaved; 0-based pairs; scale 1/sqrt(d) covers both terms; no parameters. Weights trained with
one convention are wrong with the other. With k = n - 1 or more nothing is clipped.

Example. Three tokens, one pair of features, k = 2: the sines are those of the offsets.

>>> positions = np.arange(3)
>>> encode(positions - positions[:, None], np.array([1.0]), max_distance=2, convention="paper")[..., 0].round(4)
array([[ 0.    ,  0.8415,  0.9093],
       [-0.8415,  0.    ,  0.8415],
       [-0.9093, -0.8415,  0.    ]])

Where implementations differ.

    what | who | value | version | source
    argument of the sinusoid | the paper | the signed offset | arXiv 1909.00204 | Eqs. (4) to (7)
    argument of the sinusoid | NEZHA-TensorFlow | the row c + k = 0 .. 2k | cef06a9
      | modeling.py _generate_relative_positions_embeddings
    clip | the paper | none is named | arXiv 1909.00204 | section 2.2
    clip | NEZHA-TensorFlow | k = 64 | cef06a9 | modeling.py attention_layer
    scale | NEZHA-TensorFlow | the position term is added before it | cef06a9 | modeling.py attention_layer
    n_query unequal to n_key | NEZHA-TensorFlow | an assertion fails | cef06a9 | modeling.py attention_layer

References. Wei et al., NEZHA, arXiv 1909.00204, section 2.2, Eqs. (4) to (7); huawei-noah/Pretrained-Language-Model,
NEZHA-TensorFlow/modeling.py.
"""

from typing import Literal, get_args

import numpy as np

from posref import offsets as relative
from posref._contract import Array, Booleans, Count, Even, Number, Numbers, Signed, SignedIntegers, contract, finite
from posref.absolute import sinusoidal
from posref.relative import shaw

Convention = Literal["paper", "released"]
CONVENTIONS = get_args(Convention)

PRESETS = {
    "nezha": {
        "max_distance": 64,
        "dim": 64,
        "convention": "released",
        "source": "NEZHA-TensorFlow/modeling.py, max_relative_position = 64; 768 / 12 and 1024 / 16 features a head",
    },
}


@contract
def encode(
    offsets: Signed[Array, "...", finite],
    frequencies: Numbers[Array, "dim/2"],
    *,
    max_distance: Count,
    convention: Convention,
) -> Numbers[Array, "... dim"]:
    """a for every offset: `offsets.shape + (dim,)`, dim twice the number of frequencies. ValueError unless max_distance >= 1.

    >>> encode(np.array([-3, 0, 1]), np.array([1.0]), max_distance=1, convention="paper").round(4)
    array([[-0.8415,  0.5403],
           [ 0.    ,  1.    ],
           [ 0.8415,  0.5403]])
    """
    clipped = relative.clip(offsets, -max_distance, max_distance)
    angle_steps = clipped if convention == "paper" else clipped + max_distance
    return sinusoidal.encode(angle_steps, frequencies, layout="interleaved")


@contract
def table(max_distance: Count, dim: Even, *, convention: Convention) -> Numbers[Array, "2*max_distance+1 dim"]:
    """One row an offset from -k to k, k = `max_distance`: float64 `(2k + 1, dim)`, for Shaw's attention.

    ValueError if `dim` is odd or `max_distance` not positive.

    >>> table(1, 2, convention="paper").round(4)
    array([[-0.8415,  0.5403],
           [ 0.    ,  1.    ],
           [ 0.8415,  0.5403]])
    >>> table(1, 2, convention="released").round(4)
    array([[ 0.    ,  1.    ],
           [ 0.8415,  0.5403],
           [ 0.9093, -0.4161]])
    """
    ascending = np.arange(-max_distance, max_distance + 1)
    return encode(ascending, sinusoidal.frequencies(dim), max_distance=max_distance, convention=convention)


@contract(table="make it with nezha.table(max_distance, d, convention=..)")
def attend(
    q: Numbers[Array, "... n_query d"],
    k: Numbers[Array, "... n_key d"],
    v: Numbers[Array, "... n_key d"],
    table: Numbers[Array, "#... 2*reach+1 d"],
    offsets: SignedIntegers[Array, "(...) n_query n_key"],
    *,
    scale: Number,
    mask: Booleans[Array, "(...) #n_query #n_key"] | None = None,
) -> Numbers[Array, "... n_query d"]:
    """Shaw's attention with one table for keys and values: `(..., h, n_query, d)`. Errors as in `posref.relative.shaw.attend`.

    >>> q, k, v = np.zeros((1, 2, 2)), np.zeros((1, 2, 2)), np.zeros((1, 2, 2))
    >>> attend(q, k, v, table(1, 2, convention="paper"), np.array([[0, 1], [-1, 0]]), scale=1.0).round(4)
    array([[[ 0.4207,  0.7702],
            [-0.4207,  0.7702]]])
    """
    return shaw.attend(q, k, v, table, table, offsets, scale=scale, mask=mask)
