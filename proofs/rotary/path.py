"""PaTH: the product of the reflections between a key and a query."""

import numpy as np
import sympy as sp

from posref import pairing
from posref.rotary import path, rope
from proofs.kit import *


def reflection(w, b):
    """H = 1 - b w w^T"""
    w = sp.Matrix([expression(x) for x in w])
    return sp.eye(w.rows) - expression(b) * w * w.T


def definition(q, k, w, beta, i, j):
    """q_i . H_i H_{i-1} .. H_{j+1} k_j. Yang et al., arXiv 2505.16381."""
    key = sp.Matrix([expression(x) for x in k[j]])
    for t in range(j + 1, i + 1):
        key = reflection(w[t], beta[t]) * key
    return (sp.Matrix([[expression(x) for x in q[i]]]) * key)[0, 0]


@theorem(of=[path.scores], sizes="n = 1, 4, d = 2, two heads; all vectors, unit or not")
def pinned():
    """Entry (i, j <= i) is scale q_i . H_i .. H_{j+1} k_j: the key's own reflection is not in it, and the query's is."""
    scale = symbol("s")
    for n in (1, 4):
        q, k, w, b = symbols("q", 2, n, 2), symbols("k", 2, n, 2), symbols("w", 2, n, 2), symbols("b", 2, n)
        got = path.scores(q, k, w, b, scale=scale)
        prove_that(got.shape == (2, n, n), "heads, queries, keys")
        for h, i, j in np.ndindex(2, n, n):
            if j <= i:
                stated = scale.e * definition(q[h], k[h], w[h], b[h], i, j)
                prove_equal([got[h, i, j]], [stated], mention=[q[h, i, 0], k[h, j, 1]])


@pinned.control
def the_order_is_reversed():
    """It is q_i . H_{j+1} .. H_i k_j."""
    q, k, w, b = symbols("q", 3, 2), symbols("k", 3, 2), symbols("w", 3, 2), symbols("b", 3)
    other = w[np.array([0, 2, 1])], b[np.array([0, 2, 1])]
    prove_equal([path.scores(q, k, w, b, scale=1)[2, 0]], [definition(q, k, *other, 2, 0)])


@pinned.control
def the_keys_own_reflection_is_in_it():
    """s_ii is q_i . H_i k_i."""
    q, k, w, b = symbols("q", 1, 2), symbols("k", 1, 2), symbols("w", 1, 2), symbols("b", 1)
    prove_equal([path.scores(q, k, w, b, scale=1)[0, 0]], [definition([q[0]] * 2, [k[0]] * 2, [w[0]] * 2, [b[0]] * 2, 1, 0)])


def unit(angle):
    """A vector of length 1 in the plane."""
    return array([sp.cos(angle.e), sp.sin(angle.e)])


def alike(n, w, b):
    """The same vectors and numbers for all tokens."""
    q, k = symbols("q", 2), symbols("k", 2)
    rows = lambda x: np.stack([x] * n)
    return q, k, path.scores(rows(q), rows(k), rows(w), rows(array(b)), scale=1)


@theorem(of=[path.scores], sizes="n = 5, d = 2, all directions and b")
def equal_reflections_see_the_distance():
    """With one direction w and one b for all tokens t steps are 1 - (1 - (1 - b)^t) w w^T, a function of the distance."""
    w, b = unit(symbol("phi")), symbol("b")
    q, k, got = alike(5, w, b)
    for i, j in np.ndindex(5, 5):
        if j <= i:
            stated = (q * k).sum() - (1 - (1 - b) ** (i - j)) * (q * w).sum() * (w * k).sum()
            prove_equal([got[i, j]], [stated], mention=[q[0], k[1]])


@equal_reflections_see_the_distance.control
def also_for_directions_of_any_length():
    """So it is where w has another length (two steps)."""
    w, b = symbols("w", 2), symbol("b")
    q, k, got = alike(3, w, b)
    prove_equal([got[2, 0]], [(q * k).sum() - (1 - (1 - b) ** 2) * (q * w).sum() * (w * k).sum()])


@theorem(of=[path.scores, rope.matrix, pairing.indices], sizes="d = 2, all directions")
def two_reflections_are_a_turn():
    """Two tokens with b = 2 and directions at the angles phi and psi turn keys by 2 (psi - phi): by an angle of the text."""
    q, k, phi, psi = symbols("q", 3, 2), symbols("k", 3, 2), symbol("phi"), symbol("psi")
    w = np.stack([unit(phi), unit(phi), unit(psi)])
    got = path.scores(q, k, w, np.array([0, 2, 2]), scale=1)[2, 0]
    turn = rope.matrix(1, array([2 * (psi - phi)]), layout="half")
    prove_equal([got], [q[2] @ (turn @ k[0])], mention=[phi, psi])


@two_reflections_are_a_turn.control
def one_reflection_is_a_turn():
    """One token with b = 2 turns keys by twice the angle of its direction."""
    q, k, phi = symbols("q", 2, 2), symbols("k", 2, 2), symbol("phi")
    got = path.scores(q, k, np.stack([unit(phi), unit(phi)]), np.array([0, 2]), scale=1)[1, 0]
    prove_equal([got], [q[1] @ (rope.matrix(1, array([2 * phi]), layout="half") @ k[0])])


@theorem(of=[path.scores], sizes="two tokens, d = 3, all vectors")
def neighbours_are_symmetric():
    """The way of one step is a symmetric matrix: exchanging the vectors of a query and of the key before it changes nothing."""
    q, k, w, b = symbols("q", 2, 3), symbols("k", 2, 3), symbols("w", 2, 3), symbols("b", 2)
    exchanged = path.scores(k[::-1], q[::-1], w, b, scale=1)[1, 0]
    prove_equal([path.scores(q, k, w, b, scale=1)[1, 0]], [exchanged], mention=[q[1, 0]])


@neighbours_are_symmetric.claim("A turn is symmetric at the angles 0 and pi alone, and one step of PaTH always is.")
def rope_is_a_special_case():
    """RoPE is PaTH with some reflections: its score of neighbours stays when query and key are exchanged, too."""
    q, k, w, b = symbols("q", 2, 2), symbols("k", 2, 2), symbols("w", 2, 2), symbols("b", 2)
    turn = rope.matrix(1, symbols("theta", 1), layout="half")
    score, exchanged = (path.scores(x, y, w, b, scale=1)[1, 0] for x, y in ((q, k), (k[::-1], q[::-1])))
    prove_equal([q[1] @ (turn @ k[0]) - k[0] @ (turn @ q[1])], [score - exchanged])
