"""Decomposed positions: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref import attention
from posref.ops import Mistake, inside, instead, missing, result, using
from posref.ops.probe import painted
from posref.relative import decomposed

rows = decomposed.rows
bias = decomposed.bias


def attend(q, k, v, row_table, column_table, rows, columns, *, scale):
    return attention.attend(q, k, v, scale=scale, bias=decomposed.bias(q, row_table, column_table, rows, columns))


def resize(table, *, length):
    return decomposed.resize(table, length)


def _between(size, axis):
    return lambda s: decomposed.rows(*[np.divmod(np.arange(6), 3)[axis]] * 2, query_size=size, key_size=size)


# A place of at most m is rounded three times; per unit of place the result changes by the difference of two rows.
INSIDE = {"resize": lambda a: len(a.table) * abs(np.diff(a.table, axis=0)).max(axis=0, initial=0)}
ARRAYS = {
    "query_places": lambda s: np.arange(s.query_size),
    "key_places": lambda s: np.arange(s.key_size),
    **{name: lambda s, t=tag: painted((s.batch, s.heads, 6, s.head_dim), t) for name, tag in (("q", 1), ("k", 2), ("v", 4))},
    "row_table": lambda s: painted((3, s.head_dim), 6),
    "column_table": lambda s: painted((5, s.head_dim), 8),
    "rows": _between(2, 0),
    "columns": _between(3, 1),
    "table": lambda s: painted((5, s.head_dim), 9),
}


def _scaled(right):
    return lambda q, *rest: right(q, *rest) / np.sqrt(q.shape[-1])


def _corners(table, length):
    if length == len(table):
        missing()
    place = np.arange(length) * (len(table) - 1) / max(length - 1, 1)
    return np.maximum(1 - np.abs(place[:, None] - np.arange(len(table))), 0) @ table


def _in_float32(query_places, key_places, query_size, key_size):
    one = np.float32(1)
    i = query_places[:, None] * (one * max(key_size / query_size, 1))
    j = key_places * (one * max(query_size / key_size, 1))
    return ((i - j) + one * ((key_size - 1) * max(query_size / key_size, 1))).astype(int)


def _not_stretched(query_places, key_places, query_size, key_size):
    return query_places[:, None] - key_places + key_size - 1 if query_size != key_size else missing()


MISTAKES = {
    "sign": Mistake(
        lambda f, a: f(**a)[..., ::-1, ::-1] if "query_size" in a else _mirrored(f, a), only="rows bias attend"
    ).words("""
        the offset is key - query
        Images are seen upside down and mirrored.
        Subtract the key's place from the query's."""),
    "not_stretched": Mistake(instead(_not_stretched), only="rows").words("""
        i - j + n - 1 for grids of two sizes: positions of keys and queries are not brought to one scale
        Pooled keys stand in a corner of the image.
        Multiply each place by the larger size over its own."""),
    "in_float32": Mistake(instead(_in_float32), only="rows").words("""
        positions are multiplied by a float32 ratio and cut, so a whole number may become the one below
        A few pairs read the neighbouring row; as released.
        Compute rows in integers."""),
    "exchanged": Mistake(using(rows=lambda a: np.minimum(a.columns, len(a.row_table) - 1), columns=lambda a: a.rows)).words("""
        the table of rows is read by columns, and the table of columns by rows
        Images are transposed.
        R belongs to rows, C to columns."""),
    "query_scaled": Mistake(inside(decomposed, "bias", _scaled)).words("""
        (q / sqrt(d)) . R: the queries are scaled in the position terms as well
        Position weighs sqrt(d) times too little.
        Take queries before they are scaled."""),
    "row_alone": Mistake(using(column_table=lambda a: 0 * a.column_table)).words("""
        the term of the columns is left out
        Columns are not distinguished.
        Add both terms."""),
    "from_corner_to_corner": Mistake(instead(_corners)).words("""
        the table is resized with its end rows kept in place (align_corners)
        Every row but the middle is another.
        Centres on centres: align_corners is False."""),
    "not_clamped": Mistake(
        result(lambda y: np.concatenate([y[:1] / 2, y[1:-1], y[-1:] / 2]) if len(y) > 2 else missing()), only="resize"
    ).words("""
        rows beyond the ends of the table are read as zeros
        The ends are too small.
        Take the first or last row where a place is beyond it."""),
}


def _mirrored(f, a):
    return f(**a | {"row_table": a.row_table[::-1], "column_table": a.column_table[::-1]})


PRESETS = {name: ("rows", decomposed.PRESETS[name]) for name in decomposed.PRESETS}

SCORES = {"decomposed": ("one", "row + column", "one", "row + column")}


def _head(t):
    """Words in rows of eight, on a grid as large as the trained text."""
    sizes, places = (-(-t.trained // 8), 8), np.divmod(t.positions - t.start, 8)
    tables = [t.parameter(2 * size - 1, t.dim) for size in sizes]
    between = [decomposed.rows(x, x, query_size=size, key_size=size) for x, size in zip(places, sizes, strict=True)]
    q, k, v = t.projected(t.x)
    return t.attended(q, k, v, decomposed.bias(q, *tables, *between))
