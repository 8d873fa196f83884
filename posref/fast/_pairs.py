"""Shared by all kernels over pairs of a query and a key: their arguments, and how the work is divided.

Such a kernel writes (heads, n_query, n_key), contiguous; this module loops over the leading axes.
"""

import math

import numpy as np

from posref import _require
from posref.fast import _machine

PIECES = 4  # a thread, so that one that is held up leaves its rest to the others
GROUP = 2**23  # bytes of scores and of what is added to them: heads are done in groups that stay in the cache


def integers(function, argument, array):
    """An array of signed integers as contiguous int64."""
    if array.dtype.kind == "O":
        raise TypeError(f"{function}: {argument} has dtype object; the compiled kernels know integers, convert it with .astype")
    return np.ascontiguousarray(array, np.int64)


def positions(function, query_positions, key_positions):
    """Positions of queries and keys with the same leading axes, contiguous, both int64 or both of one float dtype."""
    both = query_positions, key_positions
    _require.differences(function, "key_positions", key_positions, "query_positions", query_positions)
    dtype = np.result_type(*(np.int64 if value.dtype.kind == "i" else value.dtype for value in both))
    if dtype != np.int64:
        _machine.floating(function, "the difference of positions", dtype)
    lead = np.broadcast_shapes(*(value.shape[:-1] for value in both))
    return (np.ascontiguousarray(np.broadcast_to(value, (*lead, value.shape[-1])), dtype) for value in both)


def contiguous(out):
    """`out` if it is contiguous, else a new array like it, which `finish` copies to `out`."""
    return out if out.flags.carray else np.empty(out.shape, out.dtype)


def finish(out, made):
    """Return `out`, after copying `made` to it if `made` is another array."""
    if made is not out:
        out[...] = made
    return out


def cut(stacks, heads, n_query, threads):
    """Slices (heads, queries) that divide one of `stacks` arrays (heads, n_query, n_key) among threads; each is contiguous.

    >>> cut(1, 8, 100, 2)[:2]
    [(slice(0, 1, None), slice(0, 100, None)), (slice(1, 2, None), slice(0, 100, None))]
    >>> cut(1, 1, 100, 2)[:2]
    [(slice(0, 1, None), slice(0, 12, None)), (slice(0, 1, None), slice(12, 25, None))]
    >>> [len(cut(count, heads, 100, 2)) for count, heads in ((1, 1), (1, 3), (1, 16), (4, 1), (8, 1))]
    [8, 9, 8, 2, 1]
    """
    count = 1 if threads == 1 else math.ceil(PIECES * threads / stacks)
    if heads >= count:
        return [(part, slice(0, n_query)) for part in _machine.parts(heads, count)]
    rows = _machine.parts(n_query, math.ceil(count / heads))
    return [(slice(h, h + 1), part) for h in range(heads) for part in rows]


def stacks(offsets, *arrays):
    """offsets (n_query, n_key) and arrays (heads, ..) for every index of the leading axes along which the offsets vary.

    The last of `arrays` is the result. All of `arrays` have its leading axes and are contiguous, or are None. Axes after the
    last axis along which the offsets vary are merged into heads. Axes that the offsets do not have
    are missing in front.
    """
    lead = arrays[-1].shape[:-2]
    axes = (1,) * (len(lead) + 2 - offsets.ndim) + offsets.shape[:-2]
    own = max((axis for axis, n in enumerate(axes, 1) if n > 1), default=0)
    offsets = np.broadcast_to(offsets.reshape(axes[:own] + offsets.shape[-2:]), lead[:own] + offsets.shape[-2:])
    for at in np.ndindex(lead[:own]):
        yield offsets[at], *(_stack(array, at, math.prod(lead[own:])) for array in arrays)


def _stack(array, at, heads):
    return None if array is None else array[at].reshape(heads, *array.shape[-2:])


def work(offsets, threads, *arrays):
    """(offsets, slice of heads, slice of queries, arrays) for every piece of the work: `stacks`, divided by `cut`."""
    groups = list(stacks(offsets, *arrays))
    for at, *stack in groups:
        for part, rows in cut(len(groups), len(stack[-1]), len(at), threads):
            yield at, part, rows, *stack


def groups(lead, size):
    """Indices of leading axes that select groups of heads; each head has `size` bytes.

    >>> list(groups((2, 3), GROUP // 2))
    [(0, slice(0, 2, None)), (0, slice(2, 3, None)), (1, slice(0, 2, None)), (1, slice(2, 3, None))]
    """
    if not lead:
        return [()]
    heads = max(1, GROUP // max(size, 1))
    return [(*at, slice(h, min(h + heads, lead[-1]))) for at in np.ndindex(lead[:-1]) for h in range(0, lead[-1], heads)]


def part(x, at):
    """`x` at an index of the leading axes; an axis that is missing in `x` or has length 1 is broadcast.

    >>> part(np.zeros((1, 7, 5, 4)), (3, slice(2, 4))).shape, part(np.zeros((5, 4)), (3, slice(2, 4))).shape
    ((2, 5, 4), (5, 4))
    """
    lead = x.shape[:-2]
    own = zip(at[len(at) - len(lead) :], lead, strict=True)
    return x[tuple(i if n != 1 else slice(None) if isinstance(i, slice) else 0 for i, n in own)]


def result(function, out, threads, shape, *terms, scale, reads):
    """The output array for scale times a sum of terms with these dtypes, the scale in its dtype, and the number of threads."""
    for dtype in terms:
        _machine.floating(function, "a term", dtype)
    dtype = (scale * np.empty(0, np.result_type(*terms))).dtype
    _machine.floating(function, "the result", dtype)
    out = _machine.output(function, "out", out, shape, dtype, reads=reads)
    return out, dtype.type(scale), _machine.thread_count(function, 1 if threads is None else threads, out.nbytes)


def products(lead, *factors, place=None):
    """For every group of heads its index and x y^T for all `factors` (x, y); rows are padded by a line of the cache.

    numpy computes the products, with the threads of its library, before the kernel begins. All groups use the same arrays, so
    a kernel reads them from the cache. The first product goes to `place`, an array for all heads, if it is given. numpy waits
    for its slowest thread: if other work shares the processors, OPENBLAS_NUM_THREADS=1 can be ten times faster.
    """
    rooms, apart = None, factors if place is None else factors[1:]
    size = sum(x.shape[-2] * y.shape[-2] * np.result_type(x, y).itemsize for x, y in factors)
    for at in groups(lead, size):
        heads = np.broadcast_to(0, lead)[at].shape
        rooms = rooms or [_room(heads, x.shape[-2], y.shape[-2], np.result_type(x, y)) for x, y in apart]
        made = [room[: heads[0]] if heads else room for room in rooms]
        made = made if place is None else [place[at], *made]
        for (x, y), room in zip(factors, made, strict=True):
            np.matmul(part(x, at), np.swapaxes(part(y, at), -1, -2), out=room[..., : y.shape[-2]])
        yield at, *made


def _room(heads, n, columns, dtype):
    """An array with padded rows: with rows of a round number of bytes, a column would fall on few places of the cache."""
    return np.empty((*heads, n, columns + _machine.LINE // dtype.itemsize), dtype)
