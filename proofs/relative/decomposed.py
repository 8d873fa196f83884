"""Decomposed positions: rows of two tables, the query without its scale, and tables that are stretched."""

from fractions import Fraction

import numpy as np

from posref import attention
from posref.offsets import gather_rows
from posref.ops import decomposed as ops
from posref.relative import decomposed
from proofs.kit import *

ROUNDS = {"rows": "rows_pinned"}

GRIDS = [((2, 3), (2, 3)), ((3, 2), (1, 1)), ((2, 2), (1, 2)), ((1, 3), (2, 3))]


def row(i, j, m, n):
    """floor(i max(n/m, 1) - j max(m/n, 1) + (n - 1) max(m/n, 1)). Li et al., arXiv 2112.01526, and its code get_rel_pos."""
    one, other = max(Fraction(n, m), Fraction(1)), max(Fraction(m, n), Fraction(1))
    return int(i * one - j * other + (n - 1) * other)


def definition(q, rows, columns):
    """q . R + q . C for one pair, from the rows of both tables. Eq. (5)."""
    return sum(a * (r + c) for a, r, c in zip(q, rows, columns, strict=True))


def stretched(table, length):
    """A list, interpolated linearly at the centres of `length` cells; beyond its ends the end values."""
    found = []
    for t in range(length):
        place = min(max(Fraction(2 * t + 1, 2) * len(table) / length - Fraction(1, 2), 0), len(table) - 1)
        low = int(place)
        high, part = min(low + 1, len(table) - 1), place - low
        found.append(table[low] * (1 - part) + table[high] * part)
    return found


def between(query, key):
    """The rows of both axes between two grids, in the order of their tokens."""
    places = [np.array([*np.ndindex(grid)]).T for grid in (query, key)]
    return [decomposed.rows(places[0][a], places[1][a], query_size=query[a], key_size=key[a]) for a in (0, 1)]


# rows


@example(of=[decomposed.rows], sizes="all sizes up to 24 by 24")
def rows_pinned():
    """rows is the formula in whole numbers, lies within 0 .. 2 max(m, n) - 2, and is i - j + n - 1 if both sizes are n."""
    for m in range(1, 25):
        for n in range(1, 25):
            got = decomposed.rows(np.arange(m), np.arange(n), query_size=m, key_size=n)
            expected = [[row(i, j, m, n) for j in range(n)] for i in range(m)]
            prove_that(got.tolist() == expected, f"{m} queries, {n} keys")
            prove_that(got.min() >= 0 and got.max() <= 2 * max(m, n) - 2, f"the table of {m} and {n}")
        square = decomposed.rows(np.arange(m), np.arange(m), query_size=m, key_size=m)
        prove_that(square.tolist() == [[i - j + m - 1 for j in range(m)] for i in range(m)], f"Toeplitz at {m}")


rows_pinned.control_by("decomposed.rows", "sign", query_places=np.arange(3), key_places=np.arange(2), query_size=3, key_size=2)
PLACES = {"query_places": np.arange(2), "key_places": np.arange(4)}
rows_pinned.control_by("decomposed.rows", "not_stretched", **PLACES, query_size=2, key_size=4)


@rows_pinned.claim("Three queries and two keys read rows 0 to 3 of five.")
def every_row_is_used():
    """Every row of the table is read by some pair (3 queries, 2 keys)."""
    got = decomposed.rows(np.arange(3), np.arange(2), query_size=3, key_size=2)
    witness = f"rows {sorted(set(got.ravel().tolist()))} are read, expected rows 0 to 4"
    prove_that(sorted(set(got.ravel().tolist())) == list(range(5)), counterexample=witness)


@example(of=[decomposed.rows], sizes="all sizes up to 64 by 64")
def rounded_rows():
    """In float32, as released, every row is right where one size divides the other."""
    for m in range(1, 65):
        for n in (n for n in range(1, 65) if m % n == 0 or n % m == 0):
            exact = decomposed.rows(np.arange(m), np.arange(n), query_size=m, key_size=n)
            released = ops._in_float32(np.arange(m), np.arange(n), m, n)
            prove_that(bool((released == exact).all()), f"{m} queries, {n} keys")


@rounded_rows.claim("A ratio like 4/3 is rounded, and a whole number may be cut to the one before.")
def float32_is_enough():
    """float32 is enough for every grid (8 queries, 6 keys)."""
    exact = decomposed.rows(np.arange(8), np.arange(6), query_size=8, key_size=6)
    wrong = np.argwhere(ops._in_float32(np.arange(8), np.arange(6), 8, 6) != exact)
    witness = f"{len(wrong)} of 48 rows differ, the first at query and key {wrong[0].tolist()}"
    prove_that(len(wrong) == 0, counterexample=witness)


# the terms


@theorem(of=[decomposed.bias, decomposed.rows, gather_rows], sizes="four pairs of grids, 2 heads, d = 2; every table")
def pinned():
    """Entry (a, i, j) is q_i . R[row of rows] + q_i . C[row of columns], the query not scaled."""
    for query, key in GRIDS:
        n, m = (height * width for height, width in (query, key))
        q, r, c = symbols("q", 2, n, 2), *(symbols(name, 2 * max(query[a], key[a]) - 1, 2) for a, name in ((0, "R"), (1, "C")))
        got = decomposed.bias(q, r, c, *between(query, key))
        for a, i, j in np.ndindex(2, n, m):
            (y, x), (z, w) = divmod(i, query[1]), divmod(j, key[1])
            rows = r[row(y, z, query[0], key[0])], c[row(x, w, query[1], key[1])]
            prove_equal([got[a, i, j]], [definition(q[a, i], *rows)], mention=[q[a, i, 0]])


SYMBOLS = {"q": symbols("q", 6, 2), "row_table": symbols("R", 3, 2), "column_table": symbols("C", 5, 2)}
SYMBOLS |= dict(zip(("rows", "columns"), between((2, 3), (2, 3)), strict=True))
pinned.control_by("decomposed.bias", "sign", **SYMBOLS)
pinned.control_by("decomposed.bias", "exchanged", **SYMBOLS)
pinned.control_by("decomposed.bias", "query_scaled", **SYMBOLS)
pinned.control_by("decomposed.bias", "row_alone", **SYMBOLS)


@theorem(of=[decomposed.bias, attention.scores, gather_rows], sizes="one query, one key, d = 3")
def keys_with_positions():
    """With the bias, the score is scale times the product of q and the key k + (R + C) / scale: each query has keys of its
    own, as in Shaw's attention, whose vectors are within the scale."""
    q, k, scale = symbols("q", 1, 3), symbols("k", 1, 3), symbol("scale")
    r, c, first = symbols("R", 1, 3), symbols("C", 1, 3), np.array([[0]])
    got = attention.scores(q, k, scale=scale) + decomposed.bias(q, r, c, first, first)
    prove_equal(got, attention.scores(q, k + (r + c) / scale, scale=scale), mention=[r[0, 0], c[0, 0]])


@keys_with_positions.claim("Within the scale the terms would be sqrt(d) times smaller.")
def within_the_scale():
    """scale q . k + bias is the score of the key k + R + C."""
    q, k, scale = symbols("q", 1, 1), symbols("k", 1, 1), symbol("scale")
    r, c, first = symbols("R", 1, 1), symbols("C", 1, 1), np.array([[0]])
    got = attention.scores(q, k, scale=scale) + decomposed.bias(q, r, c, first, first)
    prove_equal(got, attention.scores(q, k + r + c, scale=scale))


# tables of another length


@theorem(of=[decomposed.resize], sizes="tables of 1 to 6 rows, to 1 to 9; every table")
def resize_pinned():
    """resize reads lines between rows at the centres of cells; the same length changes nothing, and a constant stays."""
    for m in range(1, 7):
        table, c = symbols("T", m, 1), symbol("c")
        for length in range(1, 10):
            got = decomposed.resize(table, length)[:, 0]
            prove_equal(got, stretched(table[:, 0].tolist(), length))
            prove_equal(decomposed.resize(c + 0 * table, length)[:, 0], [c] * length)
        prove_equal(decomposed.resize(table, m), table)


resize_pinned.control_by("decomposed.resize", "from_corner_to_corner", table=symbols("T", 3, 1), length=5)
resize_pinned.control_by("decomposed.resize", "not_clamped", table=symbols("T", 3, 1), length=5)


@resize_pinned.claim("Fewer rows are read between the old ones, and the rest of the table is lost.")
def smaller_and_larger_again():
    """A table that was made shorter can be stretched back."""
    table = symbols("T", 5, 1)
    prove_equal(decomposed.resize(decomposed.resize(table, 3), 5), table)
