"""Shaw et al., compiled: the kernels add the entry of the clipped offset, and the sums of weights give the values."""

import numpy as np

from posref import attention, offsets
from posref.fast import entries as laid_out
from posref.fast import shaw as fast
from posref.relative import shaw
from proofs.kit import *
from proofs.kit.twins import Twin

N, M, H, R = size("n"), size("m"), size("h"), size("k")
SCALE = symbol("scale")
ENDS = laid_out.Ends(2, 1, -2, 2)

# (batch, 1, n, m): each row of the batch has its own offsets, beyond k = 2 on both sides
OWN = np.array([[[[-3, -2, 1], [0, 2, 3]]], [[[1, -1, 0], [5, 0, -9]]]])


def gamma(count, dtype):
    """The relative error of a sum of products of `count` roundings: n u / (1 - n u), Higham, Lemma 3.1."""
    u = np.finfo(dtype).eps / 2
    return count * u / (1 - count * u)


def two_orders_of_a_sum(given, dtype):
    """Both add products w a: the specification m of them, the kernel m weights and then 2k + 1 products. Without a: bits."""
    table, at, count = given["value_table"], given["offsets"], given["k"].shape[-2]
    if table is None:
        return None
    rest = {n: x for n, x in given.items() if n not in ("v", "value_table", "mask")}
    weights = attention.softmax(shaw.scores(**rest), given.get("mask"))
    size = (weights[..., None, :] @ np.abs(shaw.embed(table, at)))[..., 0, :].astype(np.float64)
    error = (gamma(count, dtype) + gamma(count + table.shape[-2], dtype)) * size * (1 + 2 * gamma(count, dtype))
    expected = shaw.attend(**given)
    return [(expected.astype(np.float64), error + np.spacing(np.abs(expected)))]  # the sum of both terms is rounded in either


TWINS = {"attend": Twin(near=two_orders_of_a_sum)}


@theorem(
    of=[laid_out.calls, laid_out._add, fast._key_query_calls, fast._key_query],
    sizes="batch 2, h = 3, n = 2, m = 3, d = 2, k = 2; every vector and table",
)
def pieces_are_the_scores():
    """With the products of the specification the pieces write its scores, for shared offsets and for those of a batch, and for
    tables of each head."""
    q, k, table = symbols("q", 2, 3, 2, 2), symbols("k", 2, 3, 3, 2), symbols("t", 3, 5, 2)
    content, rows = q @ np.swapaxes(k, -1, -2), np.swapaxes(table, -1, -2)
    for at in (OWN[0, 0], OWN):
        for threads in (1, 2):
            out, within = np.full(content.shape, None, dtype=object), content.copy()
            for source, apart in ((content, out), (within, None)):
                pieces = laid_out.calls(source, q @ rows, None, at, ENDS, None, SCALE, apart, 3, threads)
                prove_that(sum(piece[0].size for piece in pieces) == out.size, "each cell once")
                for piece in pieces:
                    laid_out._add.py_func(*piece)
            prove_equal(out, shaw.scores(q, k, table, at, scale=SCALE))
            prove_equal(within, out)
            for piece in fast._key_query_calls(content, q @ rows, k @ rows, at, 2, SCALE, out, threads):
                fast._key_query.py_func(*piece)
            prove_equal(out, shaw.scores(q, k, table, at, scale=SCALE, variant="relative_key_query"))


@pieces_are_the_scores.control
def batches_share_the_first_offsets():
    """Every row of the batch has the offsets of the first."""
    q, k, table = symbols("q", 2, 1, 2, 1), symbols("k", 2, 1, 3, 1), symbols("t", 5, 1)
    out = np.full((2, 1, 2, 3), None, dtype=object)
    for piece in laid_out.calls(q @ np.swapaxes(k, -1, -2), q @ table.T, None, OWN[0, 0], ENDS, None, SCALE, out, 3, 1):
        laid_out._add.py_func(*piece)
    prove_equal(out, shaw.scores(q, k, table, OWN, scale=SCALE))


@theorem(of=[fast._sum, fast._sum_calls], sizes="batch 2, h = 3, n = 2, m = 3, d_v = 2, k = 2; every weight and table")
def sums_give_the_values():
    """The weights added up by the row of the table, times the table, are the sum over keys of weight times vector."""
    weights = symbols("w", 2, 3, 2, 3)
    for table in (symbols("t", 5, 2), symbols("t", 3, 5, 2)):
        for at in (OWN[0, 0], OWN):
            expected = (weights[..., None, :] @ shaw.embed(table, at))[..., 0, :]
            for threads in (1, 2):
                sums = np.zeros((2, 3, 2, 5), dtype=object)
                for piece in fast._sum_calls(weights, at, sums, threads):
                    fast._sum.py_func(*piece)
                prove_equal(sums @ table, expected)


@sums_give_the_values.control
def far_keys_are_dropped():
    """Keys farther than k contribute nothing."""
    weights, table, at = symbols("w", 1, 1, 2), symbols("t", 3, 1), np.array([[0, 5]])
    sums = np.zeros((1, 1, 3), dtype=object)
    fast._sum.py_func(weights, at, sums)
    prove_equal(sums @ table, weights[..., :1] * table[1])


@theorem(of=[fast._key_query], sizes="all heads, n, m, k; all offsets", as_written="kernel")
def kernel_adds_and_scales():
    """Cell (h, i, j) is scale (content + (by_query[i, clip(o) + k] + by_key[j, clip(o) + k])); every cell is written once."""
    content, by_query, by_key = sized("c", H, N, M), sized("q", H, N, 2 * R + 1), sized("k", H, M, 2 * R + 1)
    at = integers("o", N, M)

    def prove():
        rows = offsets.clip(at, -R, R)[None] + R
        by_row = np.take_along_axis(by_query, rows, axis=-1)
        by_column = np.swapaxes(np.take_along_axis(by_key, np.swapaxes(rows, -1, -2), axis=-1), -1, -2)
        out = Output((H, N, M))
        expected = SCALE.e * (content + (by_row + by_column))
        prove_kernel(fast._key_query, [content, by_query, by_key, at, R.e, SCALE, out], (out, expected))

    for _ in all_paths(prove):
        pass


@kernel_adds_and_scales.control
def position_is_not_scaled():
    """The scale covers the content alone."""
    content, by_query, out = symbols("c", 1, 1, 1), symbols("q", 1, 1, 3), room("out", 1, 1, 1)
    fast._key_query.py_func(content, by_query, 0 * by_query, np.array([[0]]), 1, 3, out)
    prove_equal(out, 3 * content + by_query[..., 1:2])
