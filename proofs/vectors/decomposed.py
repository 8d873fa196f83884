"""Decomposed positions: a table for the rows of an image and one for its columns, read by the query."""

from fractions import Fraction as _fraction

import numpy as np

from proofs.relative.decomposed import row, stretched
from proofs.vectors import *

SOURCES = (
    "Li et al., MViTv2, arXiv 2112.01526, Eqs. (4), (5)",
    "segment-anything dca509fe79, segment_anything/modeling/image_encoder.py, get_rel_pos, add_decomposed_rel_pos",
)

CONVENTIONS = {
    "axes": "q, k, v are (batch, heads, n, d), patches row by row; row_table and column_table (rows, d)",
    "rows, columns": "(n_query, n_key): which row of row_table, of column_table",
    "op attend": "softmax(scale q k^T + q . row_table[rows] + q . column_table[columns]) v",
    "op bias": "q . row_table[rows] + q . column_table[columns], q not scaled",
    "op resize": "the table at `length` places, centres on centres, by lines between its rows",
    "op rows": "floor(i M / m + (n - 1 - j) M / n), for m places of queries and n of keys, M the larger",
}
REJECTED = (("decomposed/square/d4/bias", "table", {"row_table": fewer}, "range", "2 max(m, n) - 1 rows, or a resized table."),)


def vectors():
    yield _rows(4, 4, "sign")
    yield _rows(3, 2, "sign")
    yield _rows(2, 4, "sign not_stretched")
    yield _rows(8, 6, "sign not_stretched in_float32")
    every = "sign exchanged query_scaled row_alone"
    yield _bias("square", (2, 3), (2, 3), every)
    yield _bias("pooled", (2, 4), (1, 2), "query_scaled row_alone")
    yield _attend((2, 3), every + " no_bias bias_before_scale")
    yield _attend((1, 3), "query_scaled bias_twice no_bias bias_before_scale", 2, 0.1875)
    yield _attend((2, 2), "scale_ignored heads_exchanged", 2, 2048.0, "-large", models=("f64", "f32"))
    for m, length in ((3, 7), (9, 5)):
        yield _resize(m, length, "from_corner_to_corner not_clamped")


def _rows(m, n, mistakes):
    tensors = {"query_places": range(m), "key_places": range(n)}
    expected = [[row(i, j, m, n) for j in range(n)] for i in range(m)]
    return case(f"decomposed/rows/m{m}-n{n}/rows", "rows", {"query_size": m, "key_size": n}, tensors, expected, kills=mistakes)


def _tables(query, key, d):
    """Both tables, and which of their rows each pair reads."""
    places = [[*np.ndindex(grid)] for grid in (query, key)]
    rows = [np.array([[row(i[a], j[a], query[a], key[a]) for j in places[1]] for i in places[0]]) for a in (0, 1)]
    sizes = [2 * max(query[a], key[a]) - 1 for a in (0, 1)]
    return *(painted((size, d), tag) for size, tag in zip(sizes, (6, 8), strict=True)), *rows


def _terms(q, row_table, column_table, rows, columns):
    """One product of the query with the sum of both vectors, or two products."""
    both = (numbers(row_table[rows]) + column_table[columns])[None, None]
    value, cond = dot(exact(q[..., None, :]), exact(both))
    largest = (abs(row_table)[rows] + abs(column_table)[columns])[None, None]
    sizes = terms(q.shape[-1] + 2, (abs(q[..., None, :]) @ np.swapaxes(largest, -1, -2)))
    return rearranged(lambda x: x[..., 0, :], (value, {**cond, "amp": sizes}))


def _named(tables):
    return dict(zip(("row_table", "column_table", "rows", "columns"), tables, strict=True))


def _bias(name, query, key, mistakes):
    q, tables = painted((2, 2, query[0] * query[1], 4), 1), _tables(query, key, 4)
    return case(f"decomposed/{name}/d4/bias", "bias", {}, {"q": q, **_named(tables)}, *_terms(q, *tables), mistakes)


def _attend(grid, mistakes, d=4, scale=0.5, probe="", models=("f64", "f32", "f16-f32math")):
    q, k, v = (painted((2, 2, grid[0] * grid[1], d), tag) / (1 if tag == 4 else 2) for tag in (1, 2, 4))
    tables = _tables(grid, grid, d)
    tensors = {"q": q, "k": k, "v": v, **_named(tables)}
    answer = attend(exact(q), exact(k), exact(v), scale, _terms(q, *tables), models=models if probe else tuple(MODELS))
    return case(f"decomposed/square/d{d}/attend{probe}", "attend", {"scale": scale}, tensors, *answer, mistakes, models=models)


def _resize(m, length, mistakes):
    table = painted((m, 4), 9)
    expected = np.array([stretched([*map(_fraction, column)], length) for column in table.T], dtype=object).T
    mixed = np.array([stretched([*map(_fraction, column)], length) for column in abs(table).T], dtype=object).T
    number = np.frompyfunc(lambda x: numbers(x.numerator) / x.denominator, 1, 1)
    id = f"decomposed/resize/m{m}-to-{length}/table"
    # a place of size m, in the table's unit
    cond = terms(6, number(mixed)) + terms(3 * m, np.full(mixed.shape, 2))
    return case(id, "resize", {"length": length}, {"table": table}, number(expected), cond, mistakes)
