"""T5 bias: one trained number per head and per bucket of offsets, compiled. The definition is `posref.relative.t5`.

Attention needs no array of the bias: `fast.attention` takes the `rule`. For positions without gaps, `posref.offsets.toeplitz`
of the bias of the n_query + n_key - 1 offsets, table[bucket(offsets)].T, makes a view in microseconds. `bias` writes the whole
matrix for any positions.

The specification computes the bias of every offset up to max_distance; beyond max_distance each side has one bucket. The
kernels copy these numbers and take no logarithm, so the result has the same bits as the specification's.
"""

import math

import numpy as np

from posref._contract import Array, Integer, Numbers, contract, twin
from posref.fast import _machine, _pairs
from posref.fast.offsets import _dense, _dense_calls
from posref.relative import t5
from posref.relative.t5 import bucket, bucket_starts

__all__ = ["bias", "bucket", "bucket_starts", "rule"]


@twin(t5.bias)
def bias(query_positions, key_positions, table, *, max_distance=128, bidirectional, out=None, threads=None):
    """B[bucket(j - i), h]: `(..., h, n_query, n_key)`, to be added to the scores of every layer.

    Arguments and errors are those of `posref.relative.t5.bias`; the dtype is that of `table`, float32 or float64, else
    TypeError. `out` is the array to write to, `threads` a number or None to choose by size; ValueError or TypeError for an
    `out` that does not fit or overlaps. Positions that ascend by one, queries and keys, are faster than others.

    >>> table = np.arange(8.0)[:, None]
    >>> bias(np.array([2, 3]), np.array([0, 1, 2, 3]), table, bidirectional=True)
    array([[[2., 1., 0., 5.],
            [2., 2., 1., 0.]]])
    """
    name = "fast.t5.bias"
    _machine.floating(name, "the bias", table.dtype)
    query, key = _pairs.positions(name, query_positions, key_positions)
    by_offset = _by_offset(table, _farthest(query, key), max_distance, bidirectional)
    lead, reads = key.shape[:-1], {"query_positions": query_positions, "key_positions": key_positions, "table": table}
    shape = (*lead, table.shape[1], query.shape[-1], key.shape[-1])
    out = _machine.output(name, "out", out, shape, table.dtype, reads=reads)
    threads = _machine.thread_count(name, threads, out.nbytes)
    made = _pairs.contiguous(out)
    if out.size > 0:
        stacks = math.prod(lead)
        calls = [c for at in np.ndindex(lead) for c in _calls(stacks, by_offset, query[at], key[at], made[at], threads)]
        _machine.run(lambda kernel, *arguments: kernel(*arguments), calls, threads)
    return _pairs.finish(out, made)


@contract(table="one row per bucket, one column per head")
def rule(table: Numbers[Array, "buckets h"], *, max_distance: Integer = 128, bidirectional: bool):
    """The bias as the `bias_rule` of `fast.attention.attend_by_offset`: offsets up to max_distance, then it is constant.

    >>> near, before, after = rule(np.arange(8.0)[:, None], max_distance=4, bidirectional=True)
    >>> near
    array([[3., 3., 2., 1., 0., 5., 6., 7., 7.]])
    """
    flat = np.zeros(table.shape[1], table.dtype)
    return _by_offset(table, max_distance, max_distance, bidirectional), flat, flat


@_machine.jit
def _bias(by_offset, query, key, out):
    """by_offset (heads, 2 reach + 1); query (n_query,); key (n_key,); out (heads, n_query, n_key)."""
    heads, n_query, n_key = out.shape
    reach = by_offset.shape[1] // 2
    for h in range(heads):
        for i in range(n_query):
            for j in range(n_key):
                out[h, i, j] = by_offset[h, min(max(key[j] - query[i], -reach), reach) + reach]


def _by_offset(table, reach, max_distance, bidirectional):
    """The bias of the offsets -reach .. reach, or of -max_distance .. max_distance if that is less: (heads, offsets)."""
    reach = min(reach, max_distance)
    query, keys = np.array([reach]), np.arange(2 * reach + 1)
    return np.ascontiguousarray(t5.bias(query, keys, table, max_distance=max_distance, bidirectional=bidirectional)[:, 0])


def _calls(stacks, by_offset, query, key, out, threads):
    """Kernels and arguments for one of `stacks` matrices; the Toeplitz kernel if positions ascend by one."""
    reach = by_offset.shape[1] // 2
    if (np.diff(query) == 1).all() and (np.diff(key) == 1).all():
        offsets = key[0] - query[-1] + np.arange(len(query) + len(key) - 1)
        near = by_offset[:, np.clip(offsets, -reach, reach) + reach]
        return [(_dense, *arguments) for arguments in _dense_calls(stacks, near, out, threads)]
    parts = _pairs.cut(stacks, *out.shape[:2], threads)
    return [(_bias, by_offset[heads], query[rows], key, out[heads, rows]) for heads, rows in parts]


def _farthest(query, key):
    """The largest distance between a query and a key."""
    if query.size == 0 or key.size == 0:
        return 0
    return max(abs(int(key.max()) - int(query.min())), abs(int(key.min()) - int(query.max())))
