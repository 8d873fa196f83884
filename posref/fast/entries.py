"""Entries: what relative scores add to the products of queries and keys, one entry of another product for each offset.

The products are numpy's own, so sums in the specification's order have its bits; that of queries and keys is made where the
scores will be, if it has their type. Where the offsets of each row ascend by one, as those of contiguous positions do, a
query's entries lie side by side but for both ends, and are copied instead of looked up. So do a key's along the queries, where
each row begins one before the row above; they are laid out for many queries at a time, since one alone takes a single number
of every line of the cache.
"""

import math
from typing import NamedTuple

import numpy as np

from posref.fast import _machine, _pairs

ROWS = 64  # queries a time, in a room that stays in the cache
ASIDE = 16  # numbers: rows of a round number of bytes would have their columns at the same few places of the cache
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
    laid = first is not None and (key_rows is None or (np.diff(first, axis=-2) == -1).all())
    kernel, index = (_add_straight, first) if laid else (_add, index)
    pairs = [(q, k), *((x, rows) for x, rows in ((q, query_rows), (k, key_rows)) if rows is not None)]
    within = out.dtype == np.result_type(q, k)
    for at, content, *made in _pairs.products(out.shape[:-2], *pairs, place=out if within else None):
        terms = [None if rows is None else made[end] for rows, end in ((query_rows, 0), (key_rows, -1))]
        apart = None if within else out[at]
        pieces = calls(content, *terms, _pairs.part(index, at), query_ends, key_ends, scale, apart, k.shape[-2], threads)
        _machine.run(kernel, pieces, threads)


def calls(content, by_query, by_key, index, query_ends, key_ends, scale, out, n_key, threads):
    """Arguments of `_add`, or of `_add_straight`, for every piece."""
    pieces = []
    for at, part, rows, query, key, o, c in _pairs.work(index, threads, by_query, by_key, out, content):
        query, o = (None if x is None else x[part, rows] for x in (query, o))
        key = None if key is None else key[part]
        row = np.empty(n_key, (c if query is None else query).dtype)
        columns = None if key is None else np.empty((min(ROWS, rows.stop - rows.start), n_key + ASIDE), key.dtype)
        pieces.append((c[part, rows], query, key, at[rows], query_ends, key_ends, scale, o, row, columns))
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
def _add(content, by_query, by_key, offsets, query_ends, key_ends, scale, out, row, columns):
    """out (heads, n_query, n_key), or the content itself if it is None, is scale times the sum of content and, if not None, of
    by_query and by_key at the offset.

    content and by_query (heads, n_query, ..) and by_key (heads, n_key, ..) have more columns than are read.
    """
    n_query, n_key = offsets.shape
    for i in range(n_query):
        for h in range(content.shape[0]):
            for j in range(n_key):
                total = content[h, i, j]
                if by_query is not None:
                    base, sign, low, high = query_ends
                    total = total + by_query[h, i, base + sign * min(max(offsets[i, j], low), high)]
                if by_key is not None:
                    base, sign, low, high = key_ends
                    total = total + by_key[h, j, base + sign * min(max(offsets[i, j], low), high)]
                if out is None:
                    content[h, i, j] = scale * total
                else:
                    out[h, i, j] = scale * total


# Where no array is made, none need be counted; else numba counts every slice, longer than it takes to lay out a short one.
@_machine.jit(_nrt=False)
def _add_straight(content, by_query, by_key, first, query_ends, key_ends, scale, out, row, columns):
    """As `_add`, where the offsets of each row ascend from first[i, 0] on: what is added is laid out along the keys before."""
    n_query, n_key = len(first), len(row)
    for h in range(content.shape[0]):
        for i in range(n_query):
            if by_query is not None:
                _lay_row(by_query[h, i], first[i, 0], query_ends, row)
            if by_key is not None and i % len(columns) == 0:
                _lay_columns(by_key[h], first[i, 0], key_ends, columns[: n_query - i])
            for j in range(n_key):
                total = content[h, i, j]
                if by_query is not None:
                    total = total + row[j]
                if by_key is not None:
                    total = total + columns[i % len(columns), j]
                if out is None:
                    content[h, i, j] = scale * total
                else:
                    out[h, i, j] = scale * total


@_machine.jit(_nrt=False)
def _lay_columns(values, first, ends, rows):
    """rows[r, j] is the entry of values[j] for the offset first + j - r, whose negative, r - (first + j), ascends along r."""
    base, sign, low, high = ends
    for j in range(len(values)):
        _lay_row(values[j], -first - j, (base, -sign, -high, -low), rows[:, j])


@_machine.jit(_nrt=False)
def _lay_row(values, first, ends, row):
    """row[j] is the entry of `values` for the offset first + j: one and the same before start and from stop on."""
    base, sign, low, high = ends
    start = min(max(low - first, 0), len(row))
    stop = min(max(high + 1 - first, start), len(row))
    middle, last = row[start:stop], row[stop:]
    if sign > 0:
        _copy(values[base + first + start :], middle)
    else:
        _reverse(values[base + 1 - first - stop :], middle)
    for j in range(start):
        row[j] = values[base + sign * low]
    for j in range(len(row) - stop):
        last[j] = values[base + sign * high]


@_machine.jit(_nrt=False)
def _copy(values, row):
    for j in range(len(row)):
        row[j] = values[j]


@_machine.jit(_nrt=False)
def _reverse(values, row):
    end = len(row) - 1
    for j in range(end, -1, -1):
        row[end - j] = values[j]


@_machine.jit
def _ascend(offsets):
    """offsets (n, n_key): offsets[i, j] is offsets[i, 0] + j everywhere, which wraps nowhere."""
    for i in range(len(offsets)):
        first, differ = offsets[i, 0], 0  # the bits that differ
        for j in range(offsets.shape[1]):
            differ |= offsets[i, j] ^ (first + j)
        if differ != 0 or offsets[i, -1] < first:
            return False
    return True
