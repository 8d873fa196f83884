"""Offsets, compiled: the kernels are the Toeplitz matrix and the gather of the specification."""

import numpy as np
import sympy as sp

from posref import offsets
from posref.fast import _pairs
from posref.fast import offsets as fast
from proofs.kit import *

N, M, H = size("n"), size("m"), size("h")


def empty(*shape):
    """An array of objects to write to."""
    return np.full(shape, None, dtype=object)


@theorem(of=[fast._dense], sizes="all heads, n, m", as_written="kernel")
def kernel_is_toeplitz():
    """The compiled matrix is the one that toeplitz shows as a view: every cell is written once, with its value."""
    by_offset, out = sized("b", H, N + M - 1), Output((H, N, M))
    with assuming(sp.Ge(N + M, 2)):
        prove_kernel(fast._dense, [by_offset, out], (out, offsets.toeplitz(by_offset, N, M)))


@kernel_is_toeplitz.control
def rows_shift_the_other_way():
    """Row i begins at entry i: the matrix of i - j."""
    b, out = symbols("b", 1, 4), empty(1, 2, 3)
    fast._dense.py_func(b, out)
    prove_equal(out, np.lib.stride_tricks.sliding_window_view(b, 3, axis=-1))


@theorem(of=[fast._dense_calls, _pairs.cut, fast._dense], sizes="h = 1, 3; n = 1, 2, 5; m = 4; 1 to 5 threads")
def pieces_are_the_whole():
    """However the work is cut for threads, the pieces write the Toeplitz matrix, each contiguous, and no cell twice."""
    for heads, n in ((1, 1), (1, 5), (3, 2), (3, 5)):
        b = symbols("b", heads, n + 3)
        for threads in range(1, 6):
            out, count = empty(heads, n, 4), 0
            for piece in fast._dense_calls(2, b, out, threads):
                fast._dense.py_func(*piece)
                count += piece[1].size
                prove_that(piece[0].shape[1] == piece[1].shape[1] + piece[1].shape[2] - 1, "the offsets of its rows, no others")
                prove_that(piece[1].flags.c_contiguous and np.shares_memory(piece[1], out), "a contiguous part of out")
            prove_that(count == out.size, "as many cells as there are")
            prove_equal(out, offsets.toeplitz(b, n, 4))


@pieces_are_the_whole.control
def pieces_share_their_offsets():
    """Every piece reads the offsets from the lowest on."""
    b, out = symbols("b", 1, 8), empty(1, 5, 4)
    for _, piece in fast._dense_calls(1, b, out, 2):
        fast._dense.py_func(b, piece)
    prove_equal(out, offsets.toeplitz(b, 5, 4))


@theorem(
    of=[fast._gather, fast._gather_calls, _pairs.stacks],
    sizes="batch 2, h = 3, n = 2, m = 5, seven entries; every table",
    equivalent={
        "_gather: out[h, i, j] = by_offset[h, 0, offsets[i, j] - lowest]  ->  "
        "out[h, i, j] = by_offset[h, -1, offsets[i, j] - lowest]": "that axis has one entry"
    },
    as_written="kernel",
)
def kernel_gathers():
    """The compiled gather reads the entry offset - lowest of its own head and batch row, in pieces too."""
    shared = np.array([[-2, 0, 1, -1, 4], [1, 3, -2, 2, -1]])
    b = symbols("b", 3, 7)
    expected = offsets.gather(b, shared, -2)
    for threads in (1, 3):
        out = empty(3, 2, 5)
        for piece in fast._gather_calls(b[:, None], shared, -2, out, threads):
            fast._gather.py_func(*piece)
        prove_equal(out, expected)
    b, own = symbols("b", 2, 3, 7), np.stack([shared, 2 - shared[:, ::-1]])[:, None]
    expected = offsets.gather(b, own, -2)
    for threads in (1, 3):
        out = empty(2, 3, 2, 5)
        for piece in fast._gather_calls(b[..., None, :], own, -2, out, threads):
            fast._gather.py_func(*piece)
        prove_equal(out, expected)


@kernel_gathers.control
def lowest_is_ignored():
    """The offset itself is the index."""
    b, out = symbols("b", 1, 1, 3), empty(1, 1, 2)
    fast._gather.py_func(b, np.array([[0, 1]]), -1, out)
    prove_equal(out, b[:, :, [0, 1]])
