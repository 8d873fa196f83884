r"""TUPE: words and positions are untied, each with its own projections, and [CLS] is untied from positions.

The relation of two words and the relation of their positions are separate questions, so each has its own projections. [CLS]
represents the whole text, so it has no position.

Also called: untied positional encoding.

Definition. Content q_i, k_j, position vectors p_i, [CLS] at index 0:

    t_ij = scale (p_i U_Q) . (p_j U_K)
    reset(t)_ij = theta_1                                for i = 0
    reset(t)_ij = theta_2                                for j = 0, i > 0
    reset(t)_ij = t_ij                                   for i, j > 0
    s_ij = scale q_i . k_j + reset(t)_ij                 TUPE-A
    s_ij = scale q_i . k_j + reset(t + b)_ij             TUPE-R, convention="paper"
    s_ij = scale q_i . k_j + reset(t)_ij + b_ij          TUPE-R, convention="released"

The released code has no parameters theta, but a table p with one row more, in front, whose scores T are (n + 1, n + 1):

    untie(T):  t_ij = T_{i+1, j+1},  theta_1 = T_00,  theta_2 = T_11

Symbols.

    q, k (..., h, n, d_head)      content, [CLS] first
    p (n, d)                      position vectors, learned
    U_Q, U_K (h, d, d_head)       projections of positions, shared by all layers
    t (h, n, n)                   position scores
    theta_1 (h,)                  score from [CLS] to every word, and to itself
    theta_2 (h,)                  score from every other word to [CLS]
    b (h, n, n)                   bias b_{j - i}: T5's buckets in the paper and in the code

Conventions. `scale` is 1/sqrt(2 d_head) for both products. Rows are queries. Row 0 and column 0 are [CLS] and no others:
padding goes to the right, and queries that start later are rows cut from the full scores.

Example. [CLS] and three words, with theta_1 = -1 and theta_2 = -2.

>>> reset(np.arange(16).reshape(4, 4), np.array(-1), np.array(-2))
array([[-1, -1, -1, -1],
       [-2,  5,  6,  7],
       [-2,  9, 10, 11],
       [-2, 13, 14, 15]])

Where implementations differ.

    what | who | value | version | source
    p | the paper | the table | arXiv 2006.15595 | Eq. (7)
    p | the released code | layer_norm(table) | - | guolinke/TUPE fairseq/modules/transformer_sentence_encoder.py
    projections of positions | the paper | U_Q, U_K without a bias | arXiv 2006.15595 | Eq. (7)
    projections of positions | the released code | with biases: one more row of U, for a feature that is 1 | -
      | guolinke/TUPE fairseq/modules/transformer_sentence_encoder.py
    thetas | the paper | parameters | arXiv 2006.15595 | Eq. (9)
    thetas | the released code | `untie`; row 1, the position of [CLS], is used for theta_2 alone | -
      | guolinke/TUPE fairseq/modules/transformer_sentence_encoder.py
    bias b | the paper | reset together with t | arXiv 2006.15595 | Eq. (11)
    bias b | the released code | added after the reset, so it is the paper's form with other thetas: b is itself `reset`, with a
      bucket of its own for column 0 (index rel_pos_bins) and for row 0 (index rel_pos_bins / 2, which no offset reaches) | -
      | guolinke/TUPE fairseq/modules/transformer_sentence_encoder.py

References. Ke, He, Liu, ICLR 2021, arXiv 2006.15595, Eqs. (7) untied, (8) bias, (9) reset, (10) TUPE-A, (11) TUPE-R.
"""

from typing import Literal, NamedTuple, get_args

import numpy as np

from posref import attention
from posref._contract import Array, Number, Numbers, contract, finite, kept

Convention = Literal["paper", "released"]
CONVENTIONS = get_args(Convention)

PRESETS = {
    "tupe_r_base": {
        "heads": 12,
        "dim": 64,
        "convention": "released",
        "buckets": 32,
        "max_distance": 128,
        "source": "guolinke/TUPE transformer_sentence_encoder.py, rel_pos_bins and max_rel_pos; arch bert_base",
    },
}


class Untied(NamedTuple):
    """The parts of the released position scores, in the order in which `scores` takes them."""

    position_scores: Array
    cls_to_other: Array
    other_to_cls: Array


@contract
def positional_scores(
    p: Numbers[Array, "... n d"],
    u_q: Numbers[Array, "h d d_head"],
    u_k: Numbers[Array, "h d d_head"],
    *,
    scale: Number,
) -> Numbers[Array, "... h n n"]:
    """t_ij = scale (p_i U_Q) . (p_j U_K): `(..., h, n, n)`, the same for all layers. Second term of Eq. (7).

    `p` `(..., n, d)`; `u_q`, `u_k` `(h, d, d_head)`, or ValueError.

    >>> p, one = np.array([[1.0], [2.0]]), np.array([[[1.0]]])
    >>> positional_scores(p, one, 3 * one, scale=0.5)
    array([[[1.5, 3. ],
            [3. , 6. ]]])
    """
    each_head = p[..., None, :, :]
    return attention.scores(each_head @ u_q, each_head @ u_k, scale=scale)


@contract(position_scores="pass the scores of [CLS], the words and the extra row in front, all of them")
def untie(position_scores: Numbers[Array, "... n+2 n+2", kept]) -> Untied:
    """The released scores of a table with one extra row in front, split: scores `(..., h, n + 1, n + 1)`, theta_1 and theta_2.

    ValueError for scores that are not square.

    >>> untie(np.array([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]]))
    Untied(position_scores=array([[[5., 6.],
            [8., 9.]]]), cls_to_other=array([1.]), other_to_cls=array([5.]))
    """
    return Untied(position_scores[..., 1:, 1:], position_scores[..., 0, 0], position_scores[..., 1, 1])


@contract
def reset(
    position_scores: Numbers[Array, "... n_query n_key", kept, finite],
    cls_to_other: Numbers[Array, "#...", kept],
    other_to_cls: Numbers[Array, "#...", kept],
) -> Numbers[Array, "... n_query n_key"]:
    """Row 0 becomes theta_1 = `cls_to_other`, the rest of column 0 theta_2 = `other_to_cls`: shape of the scores. Eq. (9).

    Both thetas have one entry per head, `(h,)`, or are one number, `()`; ValueError otherwise.

    >>> reset(np.zeros((1, 3, 3)), np.array([1.0]), np.array([2.0]))
    array([[[1., 1., 1.],
            [2., 0., 0.],
            [2., 0., 0.]]])
    """
    from_cls = np.arange(position_scores.shape[-2])[:, None] == 0
    to_cls = np.arange(position_scores.shape[-1]) == 0
    column = np.where(to_cls, other_to_cls[..., None, None], position_scores)
    return np.where(from_cls, cls_to_other[..., None, None], column)


@contract
def scores(
    q: Numbers[Array, "... n_query d_head"],
    k: Numbers[Array, "... n_key d_head"],
    position_scores: Numbers[Array, "#... n_query n_key", finite],
    cls_to_other: Numbers[Array, "#..."],
    other_to_cls: Numbers[Array, "#..."],
    *,
    scale: Number,
    convention: Convention,
    relative_bias: Numbers[Array, "#... n_query n_key", finite] | None = None,
) -> Numbers[Array, "... n_query n_key"]:
    """TUPE-A, or TUPE-R with a `relative_bias`: `(..., h, n, n)`. Eqs. (10), (11).

    `scale` multiplies q . k; the position scores carry theirs. "paper" resets the bias too, "released" adds it afterwards;
    without a bias they are equal, and `scores(q, k, *untie(t), ..)` is the released TUPE-A. ValueError for scores or a bias of
    other tokens.

    >>> q, t, b = np.ones((1, 2, 1)), np.zeros((1, 2, 2)), np.array([[[10.0, 20.0], [30.0, 40.0]]])
    >>> scores(q, q, t, np.array([1.0]), np.array([2.0]), scale=1.0, convention="paper", relative_bias=b)
    array([[[ 2.,  2.],
            [ 3., 41.]]])
    >>> scores(q, q, t, np.array([1.0]), np.array([2.0]), scale=1.0, convention="released", relative_bias=b)
    array([[[12., 22.],
            [33., 41.]]])
    """
    content = attention.scores(q, k, scale=scale)
    if relative_bias is None:
        return content + reset(position_scores, cls_to_other, other_to_cls)
    if convention == "paper":
        return content + reset(position_scores + relative_bias, cls_to_other, other_to_cls)
    return content + reset(position_scores, cls_to_other, other_to_cls) + relative_bias
