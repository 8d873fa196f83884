"""DeBERTa, compiled: the kernel that adds entries is given the specification's indices."""

import numpy as np

from posref.fast import deberta as fast
from posref.fast import entries as laid_out
from posref.relative import deberta
from proofs.kit import *

SCALE = symbol("scale")

# (batch, 1, n, m): each row of the batch has its own offsets, beyond K = 2 and 3 on both sides
OWN = np.array([[[[-3, -2, 1], [0, 2, 3]]], [[[-4, 4, 0], [5, -1, -9]]]])


@theorem(
    of=[fast._ends, laid_out.calls, laid_out._add],
    sizes="batch 2, h = 3, n = 2, m = 3, d = 2, K = 2 and 3; none, one, two terms; every vector",
)
def pieces_are_the_scores():
    """With the products of the specification the pieces write its scores: both conventions, each term alone, shared offsets and
    those of a batch."""
    q, k, q_r, k_r = symbols("q", 2, 3, 2, 2), symbols("k", 2, 3, 3, 2), symbols("a", 3, 6, 2), symbols("b", 3, 4, 2)
    content = q @ np.swapaxes(k, -1, -2)
    by_query, by_key = q @ np.swapaxes(k_r, -1, -2), k @ np.swapaxes(q_r, -1, -2)
    for convention in deberta.CONVENTIONS:
        for first, second in ((by_query, by_key), (by_query, None), (None, by_key), (None, None)):
            rows = q_r if second is not None else None, k_r if first is not None else None
            ends = fast._ends(k_r, "released"), fast._ends(q_r, convention)
            for at in (OWN[0, 0], OWN):
                expected = deberta.scores(q, k, *rows, at, scale=SCALE, convention=convention)
                for threads in (1, 2):
                    out, within = np.full(content.shape, None, dtype=object), content.copy()
                    for source, apart in ((content, out), (within, None)):
                        pieces = laid_out.calls(source, first, second, at, *ends, SCALE, apart, 3, threads)
                        prove_that(sum(piece[0].size for piece in pieces) == out.size, "each cell once")
                        for piece in pieces:
                            laid_out._add.py_func(*piece)
                    prove_equal(out, expected)
                    prove_equal(within, expected)


@pieces_are_the_scores.claim("The released code reads delta(i, j) in position-to-content, the paper delta(j, i).")
def conventions_are_one():
    """The released code computes the paper's scores."""
    content, by_key, scores = symbols("c", 1, 2, 3), symbols("k", 1, 3, 6), []
    for convention in deberta.CONVENTIONS:
        scores.append(room("out", 1, 2, 3))
        ends = fast._ends(by_key.swapaxes(1, 2), convention)
        laid_out._add.py_func(content, None, by_key, OWN[0, 0], None, ends, 3, scores[-1], None, None)
    prove_equal(*scores)
