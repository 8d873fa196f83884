r"""TUPE: words and positions untied, each with its own projections, and [CLS] untied from positions.

Definition. With t the position scores of all pairs and [CLS] at index 0:

    t_ij       = scale (p_i U_Q) . (p_j U_K)
    reset(t)_ij = theta_1 if i = 0,  theta_2 if j = 0 and i != 0,  else t_ij

    TUPE-A   s_ij = scale q_i . k_j + reset(t)_ij
    TUPE-R   s_ij = scale q_i . k_j + reset(t + b)_ij        convention="paper"
             s_ij = scale q_i . k_j + reset(t)_ij + b_ij     convention="released"

Symbols. q, k (..., h, n, d_head); p (n, d) learned; U_Q, U_K (h, d, d_head), shared by all layers; theta_1 (h,) from [CLS]
to any word, theta_2 (h,) from any other word to [CLS]; b (h, n, n) a bias b_{j - i}, T5's buckets in the paper and the code.

Conventions. `scale` is 1/sqrt(2 d_head) for both products. Rows are queries. ([CLS], [CLS]) is
theta_1. Row 0 and column 0 are [CLS] and no others: padding goes to the right, and queries that start later are rows cut
from the full scores.

Where implementations differ. The released code, guolinke/TUPE, fairseq/modules/transformer_sentence_encoder.py,
(1) applies LayerNorm to p and adds biases in both projections, neither of which the paper's formula has: the caller writes
p = layer_norm(table), and a bias is one more row of U for a feature that is 1; (2) has no theta parameters: its table has one
extra row in front, and theta_1 = t_00, theta_2 = t_11 of the larger matrix (`untie`), so that row 1, the position of [CLS],
is used for theta_2 alone; (3) adds b after the reset, with a bucket of its own for column 0 (index rel_pos_bins) and for row 0
(index rel_pos_bins / 2, which no offset reaches): b itself is `reset`, and the sum is the paper's form with other thetas.
Both write the column first and the row over it.

Properties. proofs/relative/tupe.py: positional_pinned, reset_pinned, untie_pinned; scores_pinned in both conventions;
reset_projects; released_is_the_paper_with_other_thetas; from_cls_by_content_alone; absolute_but_for_the_commutant;
only_the_bias_is_t5s.

References. Ke, He, Liu, ICLR 2021, arXiv 2006.15595, Eqs. (7) untied, (8) bias, (9) reset, (10) TUPE-A, (11) TUPE-R.
"""

from typing import NamedTuple

import numpy as np

from posref import _require, attention

CONVENTIONS = ("paper", "released")

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

    position_scores: np.ndarray
    cls_to_other: np.ndarray
    other_to_cls: np.ndarray


def positional_scores(p, u_q, u_k, *, scale):
    """t_ij = scale (p_i U_Q) . (p_j U_K): `(..., h, n, n)`, the same for all layers. Second term of Eq. (7).

    `p` `(..., n, d)`; `u_q`, `u_k` `(h, d, d_head)`, or ValueError.

    >>> p, one = np.array([[1.0], [2.0]]), np.array([[[1.0]]])
    >>> positional_scores(p, one, 3 * one, scale=0.5)
    array([[[1.5, 3. ],
            [3. , 6. ]]])
    """
    _require.array("tupe.positional_scores", "p", p, ndim=2)
    for name, value in (("u_q", u_q), ("u_k", u_k)):
        _require.array("tupe.positional_scores", name, value, ndim=3)
        if value.shape[-2] != p.shape[-1]:
            raise ValueError(
                f"tupe.positional_scores: p has {p.shape[-1]} features and {name} has shape {value.shape}, "
                f"expected (h, {p.shape[-1]}, d_head)"
            )
    each_head = p[..., None, :, :]
    return attention.scores(each_head @ u_q, each_head @ u_k, scale=scale)


def untie(position_scores):
    """The released theta: `(..., h, n + 1, n + 1)` scores of a table with one extra row in front, into their three parts.

    ValueError for scores that are not square.

    >>> untie(np.array([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]]))
    Untied(position_scores=array([[[5., 6.],
            [8., 9.]]]), cls_to_other=array([1.]), other_to_cls=array([5.]))
    """
    _require_square("tupe.untie", position_scores)
    return Untied(position_scores[..., 1:, 1:], position_scores[..., 0, 0], position_scores[..., 1, 1])


def reset(position_scores, cls_to_other, other_to_cls):
    """Row 0 becomes theta_1 = `cls_to_other`, the rest of column 0 theta_2 = `other_to_cls`: shape of the scores. Eq. (9).

    Both thetas have one entry a head, `(h,)`, or none, `()`; ValueError otherwise.

    >>> reset(np.zeros((1, 3, 3)), np.array([1.0]), np.array([2.0]))
    array([[[1., 1., 1.],
            [2., 0., 0.],
            [2., 0., 0.]]])
    """
    _require.array("tupe.reset", "position_scores", position_scores, ndim=2)
    for name, value in (("cls_to_other", cls_to_other), ("other_to_cls", other_to_cls)):
        _require.array("tupe.reset", name, value)
        _require.broadcasts_to("tupe.reset", name, value, "the heads of position_scores", position_scores.shape[:-2])
    from_cls = np.arange(position_scores.shape[-2])[:, None] == 0
    to_cls = np.arange(position_scores.shape[-1]) == 0
    column = np.where(to_cls, other_to_cls[..., None, None], position_scores)
    return np.where(from_cls, cls_to_other[..., None, None], column)


def scores(q, k, position_scores, cls_to_other, other_to_cls, *, scale, convention, relative_bias=None):
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
    _require.choice("tupe.scores", "convention", convention, CONVENTIONS)
    _require_fits("position_scores", position_scores, content)
    if relative_bias is None:
        return content + reset(position_scores, cls_to_other, other_to_cls)
    _require_fits("relative_bias", relative_bias, content)
    if convention == "paper":
        return content + reset(position_scores + relative_bias, cls_to_other, other_to_cls)
    return content + reset(position_scores, cls_to_other, other_to_cls) + relative_bias


def _require_square(function, position_scores):
    _require.array(function, "position_scores", position_scores, ndim=2)
    rows, columns = position_scores.shape[-2:]
    if rows != columns or rows < 2:
        raise ValueError(
            f"{function}: position_scores has {rows} rows and {columns} columns, expected n + 1 of both for n tokens with [CLS]"
        )


def _require_fits(name, value, content):
    _require.array("tupe.scores", name, value, ndim=2)
    if value.shape[-2:] != content.shape[-2:]:
        raise ValueError(
            f"tupe.scores: {name} has shape {value.shape} and the scores {content.shape}; the last two axes must be equal, "
            "one row a query and one column a key"
        )
    _require.broadcasts_to("tupe.scores", name, value, "the scores", content.shape)
