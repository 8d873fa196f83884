"""Entries: what relative scores add to the products of queries and keys, one entry of another product for each offset.

The products are numpy's own, so sums in the specification's order have its bits. Where the offsets of each row ascend by one,
as those of contiguous positions do, entries lie side by side but for both ends, and are copied instead of looked up.
"""

import math
from typing import NamedTuple

import numpy as np

from posref.fast import _machine, _pairs

FAR = 2**62  # an offset as large is beyond every table, and what is added to it does not wrap


class Ends(NamedTuple):
    """Where products with a table have the entry of an offset: at base + sign o, with o clipped to low .. high."""

    base: int
    sign: int
    low: int
    high: int


def add(q, k, index, query_rows, query_ends, key_rows, key_ends, scale, out, threads):
    """`out`, contiguous, becomes scale (q k^T + q r^T + k r'^T), products with rows r, r' read at their Ends, or left out."""
    first = straight(index)
    kernel, index = (_add, index) if first is None else (_add_straight, first)
    pairs = [(q, k), *((x, rows) for x, rows in ((q, query_rows), (k, key_rows)) if rows is not None)]
    for at, content, *made in _pairs.products(out.shape[:-2], *pairs):
        terms = [None if rows is None else made[end] for rows, end in ((query_rows, 0), (key_rows, -1))]
        pieces = calls(content, *terms, _pairs.part(index, at), query_ends, key_ends, scale, out[at], threads)
        _machine.run(kernel, pieces, threads)


def calls(content, by_query, by_key, index, query_ends, key_ends, scale, out, threads):
    """Arguments of `_add`, or of `_add_straight`, for every piece."""
    added = [x for x in (by_query, by_key) if x is not None]
    pieces = []
    for at, part, rows, c, *some, o in _pairs.work(index, threads, content, *added, out):
        query = None if by_query is None else some[0][part, rows]
        key = None if by_key is None else some[-1][part]
        rooms = [None if x is None else np.empty(out.shape[-1:], x.dtype) for x in (by_query, by_key)]
        pieces.append((c[part, rows], query, key, at[rows], query_ends, key_ends, scale, o[part, rows], *rooms))
    return pieces


def straight(offsets):
    """The first offset of every row `(.., n_query, 1)` if all rows ascend by one from there, else None.

    >>> straight(np.array([[0, 1, 2], [-1, 0, 1]])), straight(np.array([[0, 1, 3], [-1, 0, 1]]))
    (array([[ 0],
           [-1]]), None)
    """
    ascends = _ascend(offsets.reshape(math.prod(offsets.shape[:-1]), offsets.shape[-1]))
    return np.clip(offsets[..., :1], -FAR, FAR) if ascends else None


@_machine.jit
def _add(content, by_query, by_key, offsets, query_ends, key_ends, scale, out, row, column):
    """out (heads, n_query, n_key) is scale times the sum of content and, if not None, of by_query and by_key at the offset.

    content and by_query (heads, n_query, ..) and by_key (heads, n_key, ..) have more columns than are read.
    """
    heads, n_query, n_key = out.shape
    for i in range(n_query):
        for h in range(heads):
            for j in range(n_key):
                total = content[h, i, j]
                if by_query is not None:
                    base, sign, low, high = query_ends
                    total = total + by_query[h, i, base + sign * min(max(offsets[i, j], low), high)]
                if by_key is not None:
                    base, sign, low, high = key_ends
                    total = total + by_key[h, j, base + sign * min(max(offsets[i, j], low), high)]
                out[h, i, j] = scale * total


@_machine.jit
def _add_straight(content, by_query, by_key, first, query_ends, key_ends, scale, out, row, column):
    """As `_add`, where the offsets of each row ascend from first[i, 0] on: what is added is laid out along the keys before."""
    heads, n_query, n_key = out.shape
    for h in range(heads):
        for i in range(n_query):
            if by_query is not None:
                _lay_row(by_query[h, i], first[i, 0], query_ends, row)
            if by_key is not None:
                _lay_column(by_key[h], first[i, 0], key_ends, column)
            for j in range(n_key):
                total = content[h, i, j]
                if by_query is not None:
                    total = total + row[j]
                if by_key is not None:
                    total = total + column[j]
                out[h, i, j] = scale * total


@_machine.jit
def _lay_row(values, first, ends, row):
    """row[j] is the entry of `values` for the offset first + j: one and the same before start and from stop on."""
    base, sign, low, high = ends
    start = min(max(low - first, 0), len(row))
    stop = min(max(high + 1 - first, start), len(row))
    middle, last = row[start:], row[stop:]
    for j in range(start):
        row[j] = values[base + sign * low]
    for j in range(stop - start):
        middle[j] = values[base + sign * (first + start + j)]
    for j in range(len(row) - stop):
        last[j] = values[base + sign * high]


@_machine.jit
def _lay_column(values, first, ends, row):
    """row[j] is the entry of values[j] for the offset first + j."""
    base, sign, low, high = ends
    start = min(max(low - first, 0), len(row))
    stop = min(max(high + 1 - first, start), len(row))
    middle, near, last, late = row[start:], values[start:], row[stop:], values[stop:]
    for j in range(start):
        row[j] = values[j, base + sign * low]
    for j in range(stop - start):
        middle[j] = near[j, base + sign * (first + start + j)]
    for j in range(len(row) - stop):
        last[j] = late[j, base + sign * high]


@_machine.jit
def _ascend(offsets):
    """offsets (n, n_key): offsets[i, j] is offsets[i, 0] + j everywhere, which wraps nowhere."""
    for i in range(offsets.shape[0]):
        ascends = offsets[i, -1] >= offsets[i, 0]
        for j in range(offsets.shape[1]):
            ascends &= offsets[i, j] == offsets[i, 0] + j
        if not ascends:
            return False
    return True
