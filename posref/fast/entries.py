"""Entries: relative scores are q k^T plus, for each offset, one entry of another product; this module adds the entries.

numpy computes the products, so sums in the order of the specification have the same bits. q k^T is made in the array of the
scores if it has their dtype. If the offsets of each row ascend by one, as with contiguous positions, the entries of a query are
neighbours, except at both ends of the table, and are copied instead of looked up. The entries of a key are neighbours along
the queries, if each row begins one offset before the row above. They are copied for many queries at a time, because one query
uses a single number of every line of the cache.
"""

import math
from typing import NamedTuple

import numpy as np

from posref.fast import _machine, _pairs

ROWS = 64  # queries a time, in a room that stays in the cache
ASIDE = 16  # numbers: rows of a round number of bytes would have their columns at the same few places of the cache
FAR = 2**62  # an offset as large is beyond every table, and what is added to it does not wrap


class Ends(NamedTuple):
    """The index of an offset o in products with a table: base + sign o, with o clipped to low .. high."""

    base: int
    sign: int
    low: int
    high: int


def add(q, k, index, query_rows, query_ends, key_rows, key_ends, scale, out, threads):
    """Write scale (q k^T + q r^T + k r'^T) to the contiguous `out`; the last two are read at their Ends, or left out."""
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
    """The kernel (`_add` or `_add_straight`) and its arguments, for every piece of the work."""
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
    """Write scale times content plus the entries of by_query and by_key, if not None, to out (heads, n_query, n_key), or to
    content if out is None.

    content and by_query (heads, n_query, ..) and by_key (heads, n_key, ..) have more columns than the kernel reads.
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


# Without _nrt numba counts no references: the kernel makes no array, and counting each slice takes longer than a short copy.
@_machine.jit(_nrt=False)
def _add_straight(content, by_query, by_key, first, query_ends, key_ends, scale, out, row, columns):
    """As `_add`, for offsets that ascend by one in row i from first[i, 0]: entries are first copied to a row over the keys."""
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
    """Set rows[r, j] to the entry of values[j] for the offset first + j - r; its negative, r - (first + j), ascends along r."""
    base, sign, low, high = ends
    for j in range(len(values)):
        _lay_row(values[j], -first - j, (base, -sign, -high, -low), rows[:, j])


@_machine.jit(_nrt=False)
def _lay_row(values, first, ends, row):
    """Set row[j] to the entry of `values` for the offset first + j; it is constant before `start` and from `stop` on."""
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
    """Whether offsets (n, n_key) are offsets[i, 0] + j everywhere, and this sum wraps nowhere."""
    for i in range(len(offsets)):
        first, differ = offsets[i, 0], 0  # the bits that differ
        for j in range(offsets.shape[1]):
            differ |= offsets[i, j] ^ (first + j)
        if differ != 0 or offsets[i, -1] < first:
            return False
    return True
