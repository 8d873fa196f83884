"""Offsets: the relative position of a key, and the matrices that depend on nothing else."""

import numpy as np
import sympy as sp

from posref import offsets
from proofs.kit import *

N, M, H = size("n"), size("m"), size("h")
SIZES = sp.Ge(N + M, 2)  # either is at least 1


def definition(i, j):
    """The offset of the key at j from the query at i. Shaw et al., section 3.2."""
    return j - i


def clipped(offset, low, high):
    """min(max(o, low), high), written case by case."""
    return low if offset < low else high if offset > high else offset


def integers(names):
    """Symbols that stand for integers."""
    return [symbol(name, integer=True) for name in names.split()]


# offsets


@theorem(of=[offsets.offsets], sizes="all batches, n, m, positions")
def offsets_pinned():
    """Entry (i, j) of offsets is the position of key j minus that of query i: it does not change when all tokens move by s."""
    query, key, s = sized("i", H, N), sized("j", H, M), symbol("s").e
    a, i, j = index(H), index(N), index(M)
    got = offsets.offsets(query, key)
    prove_equal([got.at(a, i, j)], [definition(query.at(a, i), key.at(a, j))], mention=[query.at(a, i), key.at(a, j)])
    prove_equal([offsets.offsets(query + s, key + s).at(a, i, j)], [got.at(a, i, j)])


@offsets_pinned.claim("Here an offset is j - i; those papers print i - j.")
def query_minus_key():
    """The offset is i - j, as in Transformer-XL, XLNet and DeBERTa."""
    i, j = symbols("i", 2), symbols("j", 3)
    prove_equal(offsets.offsets(i, j), i[:, None] - j)


@offsets_pinned.claim("Queries and keys count from one origin: a cached step has the position of its token.")
def invariant_when_keys_alone_move():
    """A cached step may count its query from 0."""
    i, j, s = symbols("i", 2), symbols("j", 3), symbol("s")
    prove_equal(offsets.offsets(i, j + s), offsets.offsets(i, j))


# clip


def on_path(conditions, claims):
    """Whether each of these expressions is at least 0 if the comparisons have the given answers."""
    with assuming(*[fact if answer else fact.negated for fact, answer in conditions]):
        return [nonnegative(claim.e) for claim in claims]


@theorem(of=[offsets.clip], sizes="all offsets, low <= high; five pairs from -3 to 3 at -4 .. 4")
def clip_pinned():
    """clip is low below low, high above high, and the offset itself between, on every path of its comparisons."""
    o, low, high = (symbol(name) for name in ("o", "low", "high"))
    with assuming(sp.Le(low.e, high.e)):
        for conditions, (got,) in all_paths(lambda: offsets.clip(array([o]), low, high)):
            prove_that(all(on_path(conditions, (got - low, high - got))), "low <= clip(o) <= high")
            case_of = {low.e: [low - o], high.e: [o - high], o.e: [o - low, high - o]}
            prove_that(all(on_path(conditions, case_of.get(got.e, [array([-1])[0]]))), f"clip(o) is {got} where it should be")
    reach = range(-4, 5)
    for low, high in ((-2, 2), (-2, 1), (0, 3), (-3, -1), (1, 1)):
        for step in (1, 0.375):  # integers and fractions, both exact
            at = [step * o for o in reach]
            prove_that(
                offsets.clip(np.array(at), low, high).tolist() == [clipped(o, low, high) for o in at], f"steps of {step}"
            )


@clip_pinned.control
def clip_wraps_around():
    """Offsets beyond the end of the interval count from its start (k = 2)."""
    prove_equal(offsets.clip(np.array([3]), -2, 2), [(3 + 2) % 5 - 2])


@theorem(of=[offsets.clip, offsets.offsets], sizes="all positions, shifts, low <= high")
def clip_saturates():
    """The clipped offset does not change when all tokens move; the next offset, hence any larger one, never has a smaller one;
    clipping again changes nothing."""
    i, j, s, low, high = integers("i j s low high")
    clip = lambda query, key: offsets.clip(offsets.offsets(array([query]), array([key])), low, high)[0, 0]
    with assuming(sp.Le(low.e, high.e)):
        for conditions, (here, there, later, again) in all_paths(
            lambda: (clip(i, j), clip(i + s, j + s), clip(i, j + 1), clip(0, clip(i, j)))
        ):
            prove_equal([there, again], [here, here])
            prove_that(on_path(conditions, [later - here]) == [True], "clip keeps the order")


@clip_saturates.claim("Offsets beyond the clip are one.")
def clip_keeps_offsets_apart():
    """Other offsets have other clipped offsets, so an encoding with a clip distinguishes all distances (k = 2)."""
    prove_equal([len(set(offsets.clip(np.arange(-4, 5), -2, 2).tolist()))], [9])


@theorem(of=[offsets.clip], sizes="all offsets, k >= 1; how many values for k = 1, 2, 5")
def intervals():
    """(-k, k) has 2k + 1 values and is symmetric: clip(-o) = -clip(o), so a table for i - j is the table for j - i reversed.
    (-k, k - 1), DeBERTa's, has 2k: the values of (-k, k) with k and k - 1 taken together."""
    o, k = symbol("o", integer=True), symbol("k", integer=True, positive=True)
    clip = lambda offset, high: offsets.clip(array([offset]), -k, high)[0]
    for _, (there, back, stated) in all_paths(lambda: (clip(o, k), clip(-o, k), clipped(o, -k, k))):
        prove_equal([there, back], [stated, -stated])
    for _, (wide, narrow) in all_paths(lambda: (clip(clip(o, k), k - 1), clip(o, k - 1))):
        prove_equal([narrow], [wide])
    for k in (1, 2, 5):
        reach = np.arange(-k - 2, k + 3)
        prove_that(len(set(offsets.clip(reach, -k, k).tolist())) == 2 * k + 1, f"2 * {k} + 1 values")
        prove_that(len(set(offsets.clip(reach, -k, k - 1).tolist())) == 2 * k, f"2 * {k} values")


@intervals.claim("DeBERTa's interval is (-k, k - 1).")
def deberta_is_symmetric():
    """DeBERTa's interval is symmetric too: the offset k is minus the offset -k."""
    k = 4
    prove_equal(offsets.clip(np.array([k]), -k, k - 1), -offsets.clip(np.array([-k]), -k, k - 1))


# matrices


@theorem(of=[offsets.toeplitz], sizes="all heads, n, m; diagonals for 3 heads, n = 2, m = 5")
def toeplitz_pinned():
    """toeplitz is T_ij = b[j - i + n - 1], hence T_{i+1, j+1} = T_ij: constant along diagonals."""
    b, a, i, j = sized("b", H, N + M - 1), index(H), index(N), index(M)
    with assuming(SIZES):
        prove_equal([offsets.toeplitz(b, N, M).at(a, i, j)], [b.at(a, j - i + N - 1)])
    b = symbols("b", 3, 6)
    matrix = offsets.toeplitz(b, 2, 5)
    prove_equal(matrix[:, 1:, 1:], matrix[:, :-1, :-1], mention=b[:, 1:5])
    prove_that(np.shares_memory(matrix, b), "nothing is copied")


@toeplitz_pinned.control
def toeplitz_of_query_minus_key():
    """The entries ascend in i - j."""
    b = symbols("b", 4)
    prove_equal(offsets.toeplitz(b, 2, 3), [[b[i - j + 2] for j in range(3)] for i in range(2)])


@theorem(
    of=[offsets.skew, offsets.toeplitz],
    sizes="all batches, n, m; 2 of up to 6 diagonals, (n, m) = (1, 1), (1, 4), (4, 1), (2, 5), (5, 2), (3, 3)",
)
def skew_pinned():
    """out_ij = x[i, j - i + n - 1] for the reshape with one spare column: entry (i, j) of the result stands in the flat array
    at i (n + m - 1) + j + n - 1 = i (n + m) + (j - i + n - 1), and 0 <= j - i + n - 1 < n + m, so that is its row and its
    column. With equal rows skew is toeplitz."""
    x, a, i, j = sized("x", H, N, N + M - 1), index(H), index(N), index(M)
    with assuming(SIZES):
        prove_equal([offsets.skew(x).at(a, i, j)], [x.at(a, i, j - i + N - 1)])
        row = sized("b", H, 1, N + M - 1)
        same = np.broadcast_to(row, (H, N, N + M - 1))
        prove_equal([offsets.skew(same).at(a, i, j)], [offsets.toeplitz(row[:, 0], N, M).at(a, i, j)])
    for n, m in ((1, 1), (1, 4), (4, 1), (2, 5), (5, 2), (3, 3)):
        x = symbols("x", 2, n, n + m - 1)
        prove_equal(offsets.skew(x), [[[x[a, i, j - i + n - 1] for j in range(m)] for i in range(n)] for a in range(2)])


@skew_pinned.claim("The first row of the padded matrix is dropped, not the last.")
def skew_leaves_the_first_entry():
    """The shift with [:-1] in the place of [1:] (labml): one entry of the flat array too early."""
    x = symbols("x", 2, 4)
    early = np.concatenate([x, x[:, :1]], axis=-1).reshape(10)[:8].reshape(2, 4)[:, :3]
    prove_equal(offsets.skew(x), early)


@skew_pinned.control
def all_rows_begin_at_the_same_offset():
    """Row i is the first m columns of x."""
    x = symbols("x", 2, 4)
    prove_equal(offsets.skew(x), x[:, :3])


@theorem(
    of=[offsets.gather, offsets.gather_rows, offsets.toeplitz, offsets.skew, offsets.offsets],
    sizes="batch 2, h = 3; n = 2, m = 4 and n = 1, 5; every table",
)
def gather_pinned():
    """gather is b[o - lowest], gather_rows b[i, o - lowest], for offsets -2 to 3; on contiguous positions they are
    toeplitz and skew, queries at the start of the keys or at the end."""
    at = np.array([[[[-2, 0, 1, 3], [3, -1, 0, -2]]], [[[1, 1, -2, 0], [2, 3, 2, -1]]]])  # (batch, 1, 2, 4)
    b, x = symbols("b", 3, 6), symbols("x", 3, 2, 6)
    got, by_row = offsets.gather(b, at, -2), offsets.gather_rows(x, at, -2)
    prove_that(got.shape == by_row.shape == (2, 3, 2, 4), "axes are batch, heads, queries, keys")
    for batch, head, i, j in np.ndindex(2, 3, 2, 4):
        row = at[batch, 0, i, j] + 2
        prove_equal([got[batch, head, i, j], by_row[batch, head, i, j]], [b[head, row], x[head, i, row]])
    for n, m in ((2, 4), (5, 3), (1, 4)):
        b, x = symbols("b", 2, n + m - 1), symbols("x", 2, n, n + m - 1)
        for first in (0, m - n):
            at = offsets.offsets(np.arange(first, first + n), np.arange(m))
            prove_equal(offsets.gather(b, at, 1 - n - first), offsets.toeplitz(b, n, m))
            prove_equal(offsets.gather_rows(x, at, 1 - n - first), offsets.skew(x))


@gather_pinned.control
def decoding_with_the_lowest_of_the_start():
    """With queries at the end of the keys the lowest offset is still 1 - n."""
    b, at = symbols("b", 7), offsets.offsets(np.arange(0, 2), np.arange(4))
    prove_equal(offsets.gather(b, at, -1), offsets.gather(b, at, -2))


@theorem(of=[offsets.scatter_rows, offsets.gather_rows], sizes="2 heads, 2 queries, 3 keys, 4 offsets")
def scatter_rows_is_adjoint():
    """<g, gather_rows(b)> = <scatter_rows(g), b>: the gradient of reading rows by their offset is adding at the offset."""
    g, b = symbols("g", 2, 2, 3), symbols("b", 2, 2, 4)
    at = np.array([[[-1, 0, 0], [2, 1, -1]], [[0, 0, 0], [1, 2, 2]]])
    gathered, scattered = offsets.gather_rows(b, at, -1), offsets.scatter_rows(g, at, -1, 4)
    prove_equal([(g * gathered).sum()], [(scattered * b).sum()], mention=[g[0, 0, 0]])


@scatter_rows_is_adjoint.claim("Entries of equal offsets are added up.")
def the_last_entry_stays():
    """Of entries with one offset the last is kept."""
    g = symbols("g", 1, 2)
    prove_equal(offsets.scatter_rows(g, np.array([[0, 0]]), 0, 1), [[g[0, 1]]])
