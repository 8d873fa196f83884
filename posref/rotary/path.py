r"""PaTH: between key and query each token contributes a reflection that depends on its content.

RoPE rotates by the same angle at every token. In PaTH each token has its own reflection, and the score uses the product of the
reflections between key and query. So attention can track a state that changes with the text, which a fixed rotation cannot.

Also called: PaTH attention, Householder position encoding.

Definition. Token t has a vector w_t of length 1 and a number b_t from 0 to 2, one per key head:

    s_ij = q_i . H_i H_{i-1} .. H_{j+1} k_j / sqrt(d)     j <= i
    H_t = 1 - b_t w_t w_t^T

Symbols.

    q, k (..., n, d)                queries and keys of the same tokens
    w (..., n, d)                   directions, of length 1
    beta (..., n)                   b: 0 passes, 1 projects, 2 reflects; what is beyond lengthens keys
    scores (..., n, n)              s; above the diagonal q_i . k_j, to be masked

Conventions. The key's own reflection is left out, the query's is in, so s_ii = q_i . k_i. A cache keeps every key multiplied by
the reflections of all tokens since: when token t comes, k -> k - b_t (w_t . k) w_t. Vectors of another length are another
model. Neighbouring positions differ by one symmetric matrix; a RoPE rotation is not symmetric, so no RoPE is a PaTH.

Example. The second of three tokens reflects the first feature, the third one passes.

>>> x, w = np.ones((3, 2)), np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
>>> np.tril(scores(x, x, w, np.array([2.0, 2.0, 0.0]), scale=1.0))
array([[2., 0., 0.],
       [0., 2., 0.],
       [0., 2., 2.]])

Where implementations differ.

    what | who | value | version | source
    w | fla | a projection of rank 32, a convolution over 3 tokens, SiLU, length 1 | bc3b101dcb | fla/layers/path_attn.py
    b | the paper, fla | 2 sigmoid of a projection, in (0, 2); rounded it is 0 or 2 at the ends | bc3b101dcb
      | fla/layers/path_attn.py
    forget gate | fla | optional c_i - c_j (`forgetting`), added before the scale: it is divided by sqrt(d) | bc3b101dcb
      | fla/layers/path_attn.py

References. Yang et al., PaTH Attention, arXiv 2505.16381.
"""

import numpy as np

from posref._contract import Array, Number, Numbers, contract


@contract
def scores(
    q: Numbers[Array, "... n! d"],
    k: Numbers[Array, "... n d"],
    w: Numbers[Array, "... n d"],
    beta: Numbers[Array, "... n"],
    *,
    scale: Number,
) -> Numbers[Array, "... n n"]:
    """s_ij for causal attention, one row per token: `(..., n, n)`. Yang et al., arXiv 2505.16381.

    >>> one = np.ones((2, 1))
    >>> scores(one, one, one, np.array([0.0, 0.5]), scale=1.0)
    array([[1. , 1. ],
           [0.5, 1. ]])
    """
    tokens, rows = np.arange(k.shape[-2])[:, None], []
    for t in range(k.shape[-2]):
        along = k @ w[..., t, :, None]
        k = k - (tokens < t) * (beta[..., t, None, None] * along * w[..., None, t, :])
        rows.append((k * q[..., None, t, :]).sum(axis=-1))
    return scale * np.stack(rows, axis=-2)
