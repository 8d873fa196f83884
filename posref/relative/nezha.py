r"""NEZHA: Shaw's relative attention with a fixed sinusoid for keys and values.

Definition. With o = clip(j - i, -k, k), w_t = 10000^(-2t / d), t = 0 .. d/2 - 1, the same vectors for keys and values:

    a_ij = (sin(o w_t), cos(o w_t)) for each t                       convention="paper"
    a_ij = (sin((o + k) w_t), cos((o + k) w_t)) for each t           convention="released"

    s_ij = scale q_i . (k_j + a_ij)          o_i = sum_j softmax_j(s_ij) (v_j + a_ij)

Symbols. q, k, v (..., h, n, d); table (2k + 1, d), row r for the offset r - k; offsets (..., n_query, n_key) integers j - i.
d is the width of a head.

Conventions. Sine and cosine interleaved; 0-based pairs; scale 1/sqrt(d) covers both terms; no parameters.

Where implementations differ. The paper evaluates the sinusoid at the signed offset and names no clip; NEZHA-TensorFlow
(modeling.py, _generate_relative_positions_embeddings, max_relative_position = 64) clips and evaluates it at the index
o + k = 0 .. 2k. With k = n - 1 or more nothing is clipped. The released rows are the paper's rows with every pair turned by
the phase k w_t: one orthogonal matrix M for the whole table, `posref.absolute.sinusoidal.shift_matrix(k, ..)`, so
q . a_released = (M^T q) . a_paper. Weights trained with one form are wrong with the other. NEZHA-TensorFlow adds the position
term before the scale and asserts n_query = n_key.

Properties. proofs/relative/nezha.py: encode_pinned in both conventions; table_pinned; attend_pinned;
released_is_a_rotation_of_the_paper; translation_invariant; past_is_told_from_future.

References. Wei et al., NEZHA, arXiv 1909.00204, section 2.2, Eqs. (4) to (7); huawei-noah/Pretrained-Language-Model,
NEZHA-TensorFlow/modeling.py.
"""

import numpy as np

from posref import _require
from posref import offsets as relative
from posref.absolute import sinusoidal
from posref.relative import shaw

CONVENTIONS = ("paper", "released")

PRESETS = {
    "nezha": {
        "max_distance": 64,
        "dim": 64,
        "convention": "released",
        "source": "NEZHA-TensorFlow/modeling.py, max_relative_position = 64; 768 / 12 and 1024 / 16 features a head",
    },
}


def encode(offsets, frequencies, *, max_distance, convention):
    """a for every offset: `offsets.shape + (dim,)`, dim twice the number of frequencies. ValueError unless max_distance >= 1.

    >>> encode(np.array([-3, 0, 1]), np.array([1.0]), max_distance=1, convention="paper").round(4)
    array([[-0.8415,  0.5403],
           [ 0.    ,  1.    ],
           [ 0.8415,  0.5403]])
    """
    _require.array("nezha.encode", "offsets", offsets)
    _require.array("nezha.encode", "frequencies", frequencies, ndim=1)
    _require.count("nezha.encode", "max_distance", max_distance)
    _require.choice("nezha.encode", "convention", convention, CONVENTIONS)
    clipped = relative.clip(offsets, -max_distance, max_distance)
    angle_steps = clipped if convention == "paper" else clipped + max_distance
    return sinusoidal.encode(angle_steps, frequencies, layout="interleaved")


def table(max_distance, dim, *, convention):
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
    _require.count("nezha.table", "max_distance", max_distance)
    ascending = np.arange(-max_distance, max_distance + 1)
    return encode(ascending, sinusoidal.frequencies(dim), max_distance=max_distance, convention=convention)


def attend(q, k, v, table, offsets, *, scale, mask=None):
    """Shaw's attention with one table for keys and values: `(..., h, n_query, d)`. Errors as in `posref.relative.shaw.attend`.

    >>> q, k, v = np.zeros((1, 2, 2)), np.zeros((1, 2, 2)), np.zeros((1, 2, 2))
    >>> attend(q, k, v, table(1, 2, convention="paper"), np.array([[0, 1], [-1, 0]]), scale=1.0).round(4)
    array([[[ 0.4207,  0.7702],
            [-0.4207,  0.7702]]])
    """
    return shaw.attend(q, k, v, table, table, offsets, scale=scale, mask=mask)
