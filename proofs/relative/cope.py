"""CoPE: positions that count the keys that gates let through."""

import numpy as np
import sympy as sp

from posref import attention
from posref.relative import cope
from posref.relative.forgetting import log_sigmoid
from proofs.kit import *

THIRDS = sp.log(3)  # a scale at which the sigmoids of scores -1, 0, 1 are 1/4, 1/2, 3/4


def count(gates, rows, m=min):
    """p_j, the sum of the gates from j on, at most rows - 1. Golovneva et al., Eq. (4)."""
    return [m(sum(gates[j:]), rows - 1) for j in range(len(gates))]


def between(by_row, p, m=sp):
    """The numbers of the rows below and above p, by their distances. Golovneva et al., Eq. (5)."""
    low, high = int(m.floor(p)), -int(m.floor(-p))
    return by_row[low] * (1 - (p - low)) + by_row[high] * (p - low)


@theorem(of=[cope.positions], sizes="three keys, all gates, rows = 1, 2, 4")
def positions_pinned():
    """p_j is the sum of the gates of j and of all keys after it, its own among them, or the last row if that is less."""
    g = symbols("g", 1, 3)
    for rows in (1, 2, 4):
        for _, (got, stated) in all_paths(lambda rows=rows: (cope.positions(g, rows=rows), count(list(g[0]), rows))):
            prove_equal(got[0], stated)


@positions_pinned.control
def the_own_gate_is_left_out():
    """It is the sum over the keys after j."""
    g = symbols("g", 1, 2)
    for _, got in all_paths(lambda: cope.positions(g, rows=100)):
        prove_equal(got[0, 0], g[0, 1])


@theorem(of=[cope.positions, cope.interpolate], sizes="n = 1 .. 6, rows = 4, all tables")
def open_gates_are_a_table_of_distances():
    """Where each gate is 1 the position is i - j + 1 and z is q . E_{i-j+1}, clipped: Shaw's table, causal, with one query."""
    by_row = symbols("r", 4)
    for n in range(1, 7):
        p = cope.positions(np.tri(n, dtype=int), rows=4)
        for i in range(n):
            prove_that(p[i, : i + 1].tolist() == [min(i - j + 1, 3) for j in range(i + 1)], f"row {i} of {n}")
            got = cope.interpolate(by_row[None], p[i : i + 1, : i + 1])[0]
            prove_equal(got, [by_row[min(i - j + 1, 3)] for j in range(i + 1)], mention=by_row[1:2])


@open_gates_are_a_table_of_distances.claim(
    "The query's own token is at its own gate, which is above 0: row 0 is never read alone."
)
def the_own_token_is_at_zero():
    """With open gates the query's own token has the position 0."""
    prove_equal(cope.positions(np.tri(3, dtype=int), rows=4)[2, 2], 0)


@theorem(of=[cope.interpolate], sizes="4 rows; positions 0, 1/12, 2/12, .. 3")
def interpolation_pinned():
    """Between two rows z is the mean of both by their distances, and at a row it is that row's."""
    by_row = symbols("r", 4)
    for twelfths in range(37):
        p = sp.Rational(twelfths, 12)
        got = cope.interpolate(by_row[None], array([[p]]))
        prove_equal(got[0], [between([each.e for each in by_row], p)], mention=by_row[twelfths // 12 : twelfths // 12 + 1])


@interpolation_pinned.control
def the_row_below():
    """z is that of the row below p."""
    by_row = symbols("r", 3)
    prove_equal(cope.interpolate(by_row[None], array([[sp.Rational(3, 2)]]))[0], by_row[1:2])


def counted(convention):
    """Scores with gates 3/4, 1/4, 1/2 of three keys, the last one masked for the first query; and what they should be."""
    x, table = symbols("x", 2), symbols("e", 3, 2)
    q, k = array([[1, x[0]], [1, x[1]]]), array([[1, 0], [-1, 0], [0, 0]])
    mask, gates = np.array([[True, True, False], [True, True, True]]), [sp.Rational(3, 4), sp.Rational(1, 4), sp.Rational(1, 2)]
    got = cope.scores(q, k, table, mask, scale=Scalar(THIRDS), convention=convention)
    for i in range(2):
        by_row = [e[0].e + x[i].e * e[1].e for e in table]
        z = [between(by_row, p) for p in count([g * int(m) for g, m in zip(gates, mask[i], strict=True)], 3)]
        content = [THIRDS * each for each in (1, -1, 0)]
        factor = THIRDS if convention == "official" else 1
        stated = [c + factor * each for c, each in zip(content, z, strict=True)]
        yield got[i], stated


@theorem(
    of=[cope.scores, cope.positions, cope.interpolate, log_sigmoid, attention.scores],
    sizes="2 queries, 3 keys, d = 2, gates 3/4, 1/4, 1/2; one mask",
)
def pinned():
    """Scores are scale q . k, and scale z (official) or z (nodiv), with gates of scaled scores that are counted where the mask
    is True alone."""
    for convention in ("official", "nodiv"):
        for got, stated in counted(convention):
            prove_equal(got, stated)


@pinned.claim("They differ by the scale of z: --cope-nodiv, and x-transformers, do not divide it.")
def the_conventions_are_one():
    """Whether z is divided by sqrt(d) is immaterial."""
    for (official, _), (_, nodiv) in zip(counted("official"), counted("nodiv"), strict=True):
        prove_equal(official, nodiv)
