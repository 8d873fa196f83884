"""Hierarchical decomposition: a trained table of n positions stretched to n^2."""

import itertools

import numpy as np
import sympy as sp

from posref.absolute import hierarchical
from proofs.kit import *

N, D = size("n"), size("d")
GAP = symbol("c", nonzero=True)
ALPHA = 1 + GAP  # every alpha but 1
BOTH = [hierarchical.extend, hierarchical.encode]


def definition(first, slow, fast, alpha):
    """q_{i n + j} from the entries p_0, p_i, p_j: alpha u_i + (1 - alpha) u_j with u_k = (p_k - alpha p_0) / (1 - alpha).
    Su, kexue.fm/archives/7947, counted from 0."""
    u = lambda entry: (entry - alpha * first) / (1 - alpha)
    return alpha * u(slow) + (1 - alpha) * u(fast)


def stretched(name="p", alpha=ALPHA):
    """The trained table and its n^2 rows, for all n and d."""
    p = sized(name, N, D)
    return p, hierarchical.extend(p, alpha=alpha)


# what it is


@theorem(of=BOTH, sizes="all n, d; encode for 2 x 3 positions at n = 3, d = 2")
def pinned():
    """Row i n + j of extend is the definition, entry by entry, and there are n^2 rows; encode reads the same rows."""
    p, q = stretched()
    i, j, t = index(N), index(N), index(D)
    expected = definition(p.at(0, t), p.at(i, t), p.at(j, t), ALPHA.e)
    prove_equal([q.at(i * N + j, t)], [expected], mention=[p.at(i, t), p.at(j, t), GAP])
    prove_that(q.shape == (N**2, D), "n^2 rows of d features")
    p = symbols("p", 3, 2)
    positions = np.array([[0, 5, 7], [8, 3, 1]])
    prove_equal(hierarchical.encode(positions, p, alpha=ALPHA), hierarchical.extend(p, alpha=ALPHA)[positions])


@pinned.control
def fast_digit_first():
    """i = position % n is the digit that alpha belongs to."""
    p = symbols("p", 2, 1)
    q = hierarchical.extend(p, alpha=ALPHA)
    prove_equal(q[1], [definition(p[0, 0].e, p[1, 0].e, p[0, 0].e, ALPHA.e)])


@pinned.claim("The printed rows count from 1, encode from 0.")
def counted_from_one():
    """Rows 1, 2, .. as printed, fed with 0-based positions: position 1 is the first row."""
    p = symbols("p", 2, 1)
    prove_equal(hierarchical.encode(np.array([1]), p, alpha=ALPHA)[0], p[0])


@pinned.control
def alpha_on_the_other_side():
    """(1 - alpha) u_i + alpha u_j"""
    p = symbols("p", 2, 1)
    q = hierarchical.extend(p, alpha=ALPHA)[2, 0].e
    u = [(x.e - ALPHA.e * p[0, 0].e) / (1 - ALPHA.e) for x in p[:, 0]]
    prove_equal([q], [(1 - ALPHA.e) * u[1] + ALPHA.e * u[0]])


# what it does


@theorem(of=[hierarchical.extend], sizes="all n, d, alpha != 1")
def keeps_the_table():
    """The first n rows are the trained ones."""
    p, q = stretched()
    j, t = index(N), index(D)
    prove_equal([q.at(j, t)], [p.at(j, t)])


@keeps_the_table.control
def mixes_trained_rows_directly():
    """alpha p_i + (1 - alpha) p_j, without the base vectors u, keeps the first rows as well."""
    p = symbols("p", 2, 1)
    mixed = ALPHA * p[0, 0] + (1 - ALPHA) * p[1, 0]
    prove_equal([mixed], hierarchical.extend(p, alpha=ALPHA)[1])


@theorem(of=[hierarchical.extend], sizes="all n, d, alpha != 1")
def exchanged_digits():
    """q_{(i, j)} - q_{(j, i)} = (2 alpha - 1) / (1 - alpha) (p_i - p_j): the two are equal at alpha = 1/2, and for distinct
    rows at no other alpha."""
    p, q = stretched()
    i, j, t = index(N), index(N), index(D)
    gap = q.at(i * N + j, t) - q.at(j * N + i, t)
    prove_equal([gap], [(2 * ALPHA.e - 1) / (1 - ALPHA.e) * (p.at(i, t) - p.at(j, t))], mention=[p.at(i, t), p.at(j, t)])
    _, q = stretched(alpha=Scalar(sp.Rational(1, 2)))
    prove_equal([q.at(i * N + j, t)], [q.at(j * N + i, t)], mention=[p.at(i, t)])


@exchanged_digits.claim("Only alpha = 1/2 gives (i, j) and (j, i) one vector, for distinct rows.")
def exchanged_for_every_alpha():
    """(i, j) and (j, i) have one vector for alpha = 0.4 too."""
    q = hierarchical.extend(symbols("p", 2, 1), alpha=Scalar(sp.Rational(2, 5)))
    prove_equal(q[1], q[2])


@theorem(
    of=[hierarchical.extend],
    sizes="n = 2, 3, 4; a symbol alpha",
    argument="the coefficients of a difference sum to 0, so affinely independent rows distinguish what unit vectors do",
)
def unique_for_independent_rows():
    """All n^2 rows differ for alpha not 0, 1/2 or 1 if the p_k are affinely independent. q_{ij} - q_{kl} =
    alpha/(1 - alpha) (p_i - p_k) + p_j - p_l, whose coefficients sum to 0; with unit vectors for p they can be read: one of
    them is, up to its sign, 1, r, r - 1 or r + 1 with r = alpha/(1 - alpha), and does not vanish."""
    ratio = ALPHA.e / (1 - ALPHA.e)
    for n in (2, 3, 4):
        q = hierarchical.extend(np.eye(n, dtype=int) * Scalar(1), alpha=ALPHA)
        for a, b in itertools.combinations(range(n * n), 2):
            gap = [x.e for x in q[a] - q[b]]
            allowed = [sign * value for value in (sp.Integer(1), ratio, ratio - 1, ratio + 1) for sign in (1, -1)]
            prove_that(any(is_zero(x - value) for x in gap for value in allowed), f"rows {a} and {b} of {n * n} differ")


@unique_for_independent_rows.claim("The rows have to be affinely independent.")
def unique_for_distinct_rows():
    """Distinct rows are enough: 0, 1, 2 with alpha = 1/3, where (0, 1) and (2, 0) meet."""
    q = hierarchical.extend(np.array([[0], [1], [2]]) * Scalar(1), alpha=Scalar(sp.Rational(1, 3)))
    prove_equal([len({x.e for x in q[:, 0]})], [9])


@theorem(of=[hierarchical.extend], sizes="all n, d, alpha != 1", as_written="runs")
def affine_in_each_digit():
    """q_{(i, j)} - q_{(i, 0)} = q_{(0, j)} - q_{(0, 0)}: no information beyond that of the two digits."""
    _, q = stretched()
    i, j, t = index(N), index(N), index(D)
    prove_equal([q.at(i * N + j, t)], [q.at(i * N, t) + q.at(j, t) - q.at(0, t)])


@affine_in_each_digit.control
def sum_of_the_digits():
    """q_{(i, j)} = q_{(i, 0)} + q_{(0, j)}"""
    q = hierarchical.extend(symbols("p", 2, 1), alpha=ALPHA)
    prove_equal(q[3], q[2] + q[1])
