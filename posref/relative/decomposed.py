r"""Decomposed positions: the query meets one trained vector for the offset in rows and one for the offset in columns.

One vector per two-dimensional offset would need a table as large as the image. One table per axis is only as long as a side of
the image.

Also called: decomposed relative position embedding, SAM, ViTDet, MViT, MViTv2.

Definition. (dy, dx) are offsets of rows and columns, query - key, on a grid of H rows and W columns:

    s_ij = q_i . k_j / sqrt(d) + q_i . R[dy + H - 1] + q_i . C[dx + W - 1]

On an axis with m places of queries and n places of keys, i and j, and the larger of them M:

    row(i, j) = floor(i M / m + (n - 1 - j) M / n)      i - j + n - 1 if m = n

Symbols.

    q (..., n_query, d)              queries, not scaled
    row_table R (rows_h, d)          2 max(m, n) - 1 vectors, shared by the heads of a layer; start at 0
    column_table C (rows_w, d)       the same for columns
    rows (..., n_query, n_key)       row(i, j) on the axis of rows
    columns (..., n_query, n_key)    row(i, j) on the axis of columns

Conventions. The offset here is query minus key, the reverse of the other modules. Queries are **not** scaled in the two terms,
so they weigh sqrt(d) times as much as they would within the scale. A table of another length is stretched first: `resize`.
[CLS], where there is one (MViT), has a row and a column of zeros.

Example. Two places of keys and three of queries: places 0, 2 of the second axis stand at 0 and 1.5 on the first.

>>> rows(np.arange(3), np.arange(2), query_size=3, key_size=2)
array([[1, 0],
       [2, 1],
       [3, 2]])

Where implementations differ.

    what | who | value | version | source
    queries in the terms | SAM, ViTDet, MViT, timm | not scaled | dca509fe79 | segment_anything/modeling/image_encoder.py
    a table of the right length | transformers' SAM | resized all the same, which changes nothing | 5.23.0 | modeling_sam.py
    a table of another length | MViT | an error | dfbdfdf60e | mvit/models/attention.py
    [CLS] | MViT | no terms | dfbdfdf60e | mvit/models/attention.py
    row(i, j) | detectron2, SAM, transformers | in float32, then cut: another row for 8 of 48 pairs at m = 8, n = 6; exact
      where m divides n or n divides m | 5.23.0 | modeling_sam.py get_rel_pos

References. Li et al., MViTv2, arXiv 2112.01526, Eqs. (4), (5); Li et al., ViTDet, arXiv 2203.16527; Kirillov et al., SAM, arXiv
2304.02643.
"""

import numpy as np

from posref._contract import Array, Count, Integers, Numbers, SignedIntegers, contract
from posref.offsets import gather_rows

PRESETS = {
    "sam": {"query_size": 64, "key_size": 64, "source": "segment-anything dca509fe79, global layers at 1024 x 1024"},
    "sam_window": {"query_size": 14, "key_size": 14, "source": "segment-anything dca509fe79, build_sam.py window_size"},
}


@contract
def rows(
    query_places: SignedIntegers[Array, "... n_query"],
    key_places: SignedIntegers[Array, "... n_key"],
    *,
    query_size: Count,
    key_size: Count,
) -> Integers[Array, "... n_query n_key"]:
    """row(i, j) of every query and key on one axis: integers `(..., n_query, n_key)`.

    Places are those of the tokens on this axis, `query_size` and `key_size` how many there are. Exact, in integers.

    >>> rows(np.array([0, 0, 1, 1]), np.array([0, 1]), query_size=2, key_size=2)
    array([[1, 0],
           [1, 0],
           [2, 1],
           [2, 1]])
    """
    longest = max(query_size, key_size)
    query = query_places[..., :, None] * (longest * key_size)
    key = (key_size - 1 - key_places[..., None, :]) * (longest * query_size)
    return (query + key) // (query_size * key_size)


@contract
def bias(
    q: Numbers[Array, "... n_query d"],
    row_table: Numbers[Array, "rows_h d"],
    column_table: Numbers[Array, "rows_w d"],
    rows: SignedIntegers[Array, "... n_query n_key"],
    columns: SignedIntegers[Array, "... n_query n_key"],
) -> Numbers[Array, "... n_query n_key"]:
    """q_i . R[rows_ij] + q_i . C[columns_ij]: `(..., n_query, n_key)`, to be added to scaled scores.

    `q` are the queries without the scale. ValueError for a row outside its table; `resize` the table.

    >>> one = np.array([[0, 1]])
    >>> bias(np.array([[2.0]]), np.array([[1.0], [10.0]]), np.array([[100.0], [1000.0]]), one, 1 - one)
    array([[2002.,  220.]])
    """
    by_row, by_column = q @ np.swapaxes(row_table, 0, 1), q @ np.swapaxes(column_table, 0, 1)
    return gather_rows(by_row, rows, 0) + gather_rows(by_column, columns, 0)


@contract
def resize(table: Numbers[Array, "m! d"], length: Count) -> Numbers[Array, "length d"]:
    """The table, linearly interpolated at `length` places, as pixels are, by their centres: `(length, d)`.

    Row t of the result stands at (t + 1/2) m / length - 1/2, and at the first or last row if that is beyond.
    Computed in float64.

    >>> resize(np.array([[0.0], [3.0]]), 4)[:, 0]
    array([0.  , 0.75, 2.25, 3.  ])
    """
    m = table.shape[0]
    unit = 2 * length  # in which places are whole
    place = np.clip((2 * np.arange(length) + 1) * m - length, 0, unit * (m - 1))
    return np.maximum(unit - np.abs(place[:, None] - unit * np.arange(m)), 0) @ table / unit
