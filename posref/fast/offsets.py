"""Offsets: matrices that depend on the offset, compiled. The definition is `posref.offsets`.

`posref.offsets.toeplitz` is the first choice: it makes a view in microseconds for any size. `dense` writes the same
numbers to memory, for a consumer that needs them there, such as an attention kernel. `dense` and `gather` copy numbers
and compute nothing, so the bits are those of the specification. Results are float32 or float64.
"""

import numpy as np

from posref import _require
from posref import offsets as specification
from posref._contract import twin
from posref.fast import _machine, _pairs
from posref.offsets import offsets

__all__ = ["dense", "gather", "offsets"]


@twin(specification.toeplitz)
def dense(by_offset, n_query, n_key, *, out=None, threads=None):
    """T_ij = by_offset[j - i + n_query - 1], written out: `(..., n_query, n_key)` from `(..., n_query + n_key - 1)`.

    `posref.offsets.toeplitz` gives the same numbers as a view; use it if a view is enough. `out` is the array to
    write to, `threads` a number or None to choose by size. Errors as in the specification; TypeError unless float32 or
    float64; ValueError or TypeError for an `out` that does not fit or overlaps.

    >>> dense(np.array([-2.0, -1.0, 0.0, 1.0]), 3, 2)
    array([[ 0.,  1.],
           [-1.,  0.],
           [-2., -1.]])
    """
    name = "fast.offsets.dense"
    _machine.floating(name, "by_offset", by_offset.dtype)
    shape = (*by_offset.shape[:-1], int(n_query), int(n_key))
    out = _machine.output(name, "out", out, shape, by_offset.dtype, reads={"by_offset": by_offset})
    threads = _machine.thread_count(name, threads, out.nbytes)
    made = _pairs.contiguous(out)
    if out.size > 0:
        heads = out.size // (shape[-2] * shape[-1])
        by_offset, matrix = by_offset.reshape(heads, by_offset.shape[-1]), made.reshape(heads, *shape[-2:])
        _machine.run(_dense, _dense_calls(1, by_offset, matrix, threads), threads)
    return _pairs.finish(out, made)


@twin(specification.gather)
def gather(by_offset, offsets, lowest, *, out=None, threads=None):
    """by_offset[offset_ij - lowest] for any positions: `(..., n_query, n_key)`; for caches, packing, gaps.

    Arguments and errors are those of `posref.offsets.gather`, `out` and `threads` as in `dense`. For contiguous
    positions `dense` is faster, and `posref.offsets.toeplitz` needs no time at all.

    >>> gather(np.array([[10.0, 20.0, 30.0]]), offsets(np.array([4]), np.array([3, 4, 5, 4])), -1)
    array([[[10., 20., 30., 20.]]])
    """
    name = "fast.offsets.gather"
    _machine.floating(name, "by_offset", by_offset.dtype)
    index = _pairs.integers(name, "offsets", offsets)
    _require.inside(name, "offsets", offsets, "by_offset", by_offset.shape[-1], lowest)
    lead = np.broadcast_shapes(by_offset.shape[:-1], offsets.shape[:-2])
    reads = {"by_offset": by_offset, "offsets": offsets}
    out = _machine.output(name, "out", out, (*lead, *offsets.shape[-2:]), by_offset.dtype, reads=reads)
    threads = _machine.thread_count(name, threads, out.nbytes)
    made = _pairs.contiguous(out)
    if out.size > 0:
        rows = np.ascontiguousarray(np.broadcast_to(by_offset, (*lead, by_offset.shape[-1])))[..., None, :]
        _machine.run(_gather, _gather_calls(rows, index, int(lowest), made, threads), threads)
    return _pairs.finish(out, made)


@_machine.jit
def _dense(by_offset, out):
    """by_offset (heads, n_query + n_key - 1); out (heads, n_query, n_key)."""
    heads, n_query, n_key = out.shape
    for h in range(heads):
        for i in range(n_query):
            row = by_offset[h, n_query - 1 - i :]
            for j in range(n_key):
                out[h, i, j] = row[j]


@_machine.jit
def _gather(by_offset, offsets, lowest, out):
    """by_offset (heads, 1, m); offsets (n_query, n_key), the same for all heads; out (heads, n_query, n_key)."""
    heads, n_query, n_key = out.shape
    for i in range(n_query):
        for h in range(heads):
            for j in range(n_key):
                out[h, i, j] = by_offset[h, 0, offsets[i, j] - lowest]


def _dense_calls(stacks, by_offset, out, threads):
    """Arguments of `_dense` for the pieces of one of `stacks` arrays; rows a to b - 1 need those from row b - 1's first on."""
    heads, n_query, n_key = out.shape
    return [
        (np.ascontiguousarray(by_offset[part, n_query - rows.stop : n_query - rows.start + n_key - 1]), out[part, rows])
        for part, rows in _pairs.cut(stacks, heads, n_query, threads)
    ]


def _gather_calls(by_offset, index, lowest, out, threads):
    return [
        (table[part], at[rows], lowest, matrix[part, rows])
        for at, part, rows, table, matrix in _pairs.work(index, threads, by_offset, out)
    ]
