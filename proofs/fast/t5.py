"""T5 bias, compiled: the kernel copies the biases of the nearest offsets from the specification."""

import numpy as np
import sympy as sp

from posref import offsets
from posref.fast import t5 as fast
from posref.fast.offsets import _dense
from posref.relative import t5
from proofs.kit import *

N, M, H, R = size("n"), size("m"), size("h"), size("reach")


def positions(name, length):
    """Any integers."""
    function = sp.Function(name, integer=True)
    return SizedArray((length,), lambda i: function(i))


@theorem(of=[fast._bias], sizes="all heads, n, m, reaches, integer positions, tables", as_written="kernel")
def kernel_gathers_at_the_clipped_offset():
    """Cell (h, i, j) is entry clip(j - i, -reach, reach) + reach of head h, and every cell is written once."""
    by_offset, query, key = sized("b", H, 2 * R + 1), positions("i", N), positions("j", M)

    def prove():
        out = Output((H, N, M))
        index = offsets.clip(offsets.offsets(query, key), -R, R) + R
        prove_kernel(fast._bias, [by_offset, query, key, out], (out, by_offset[:, index]))

    for _ in all_paths(prove):
        pass


@kernel_gathers_at_the_clipped_offset.control
def clipped_one_early():
    """Offsets are clipped to DeBERTa's interval, -reach .. reach - 1."""
    b, out = symbols("b", 1, 5), room("out", 1, 1, 1)
    fast._bias.py_func(b, np.array([0]), np.array([2]), out)
    prove_equal(out, b[:, None, [min(2, 1) + 2]])


# positions that ascend by one, and others
RUNS = ((np.arange(3, 5), np.arange(4)), (np.array([31]), np.arange(32)), (np.arange(25), np.arange(20, 31)))
GAPS = (
    (np.array([0, 2, 4, 30]), np.arange(5)),
    (np.arange(3), np.array([8, 30])),
    (np.array([2, 1]), np.arange(3)),
    (np.array([2, 2]), np.arange(3)),
    (np.arange(3), np.array([1, 1])),
    (np.array([1, 3]), np.array([7])),
    (np.array([7]), np.array([1, 3])),
)


@theorem(
    of=[fast._by_offset, fast._calls, fast._farthest, fast._bias],
    sizes="4, 6 and 7 buckets, max_distance 5 and 9, two directions, |j - i| <= 31, h = 3; every table",
    equivalent={
        "_by_offset: return np.ascontiguousarray(t5.bias(query, keys, table, max_distance=max_distance, "
        "bidirectional=bidirectional)[:, 0])  ->  return np.ascontiguousarray(t5.bias(query, keys, table, "
        "max_distance=max_distance, bidirectional=bidirectional)[:, -1])": "there is one query",
        "_calls: offsets = key[0] - query[-1] + np.arange(len(query) + len(key) - 1)  ->  "
        "offsets = key[0] - query[-1] + np.arange(len(query) + len(key) - 0)": "entries beyond the last are not read",
        "_calls: offsets = key[0] - query[-1] + np.arange(len(query) + len(key) - 1)  ->  "
        "offsets = key[0] - query[-1] + np.arange(len(query) + len(key) + 1)": "entries beyond the last are not read",
    },
)
def table_of_the_nearest():
    """The kernels read a table of the biases of the offsets up to max_distance. Their result is the specification's at every
    offset; beyond max_distance each side has one bucket. The Toeplitz kernel runs where the positions ascend by one. The pieces
    of the work together write the whole result."""
    for (query, key), buckets, max_distance in ((p, b, d) for p in (*RUNS, *GAPS) for b in (4, 6, 7) for d in (5, 9)):
        table = symbols("t", buckets, 3)
        reach = fast._farthest(query, key)
        prove_that(reach == max(abs(j - i) for i in query.tolist() for j in key.tolist()), "the largest distance")
        ascend = all(np.array_equal(x, x[0] + np.arange(len(x))) for x in (query, key))
        for bidirectional in (True, False) if buckets % 2 == 0 else (False,):
            by_offset = fast._by_offset(table, reach, max_distance, bidirectional)
            prove_that(by_offset.shape == (3, 2 * min(reach, max_distance) + 1), "no more entries than needed")
            expected = t5.bias(query, key, table, max_distance=max_distance, bidirectional=bidirectional)
            for threads in (1, 2):
                out = np.full(expected.shape, None, dtype=object)
                for kernel, *arguments in fast._calls(1, by_offset, query, key, out, threads):
                    prove_that(kernel is (_dense if ascend else fast._bias), "the kernel that is meant")
                    kernel.py_func(*arguments)
                prove_equal(out, expected)
    none = np.arange(0)
    prove_that([fast._farthest(none, key), fast._farthest(key, none)] == [0, 0], "without a pair, no distance")


@table_of_the_nearest.control
def beyond_max_distance_is_the_first_bucket():
    """A query that is farther than max_distance from a key sees the bucket of offset 0."""
    table = symbols("t", 4, 1)
    by_offset = fast._by_offset(table, 40, 5, False)
    prove_equal(by_offset[:, :1], t5.bias(np.array([0]), np.array([0]), table, max_distance=5, bidirectional=False)[0])
