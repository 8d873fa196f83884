"""RoPE: rotary position embedding, compiled. The definition is `posref.rotary.rope`.

`rotate` and `gradient` are bitwise equal to the specification for the same tables: the kernels only multiply, add and
subtract, in its order, without fused operations. `tables` forms the angle in float64 whatever the inputs and rounds each
cosine and sine once to the dtype asked for, so float32 tables keep the phase of float64; in float64 it is within
one unit in the last place of the specification, whose cosine is numpy's.

Results are float32 or float64; other dtypes are a TypeError.
"""

import functools
import math

import numpy as np

from posref._contract import twin
from posref.fast import _machine
from posref.rotary import rope
from posref.rotary.rope import frequencies

__all__ = ["frequencies", "gradient", "rotate", "tables"]

COSINE = 64  # a cosine and a sine take as long as writing their bytes this many times
PIECES = 4  # a thread, so that one that is held up leaves its rest to the others
BLOCK = 2**20  # bytes: an array that is strided or of another dtype is copied in pieces that stay in the cache


@twin(rope.tables)
def tables(positions, frequencies, *, dtype=None, out=None, threads=None):
    """cos and sin of the angles m theta_t: two arrays `positions.shape + (dim/2,)`.

    `dtype` is float32 or float64; without it that of `out`, else by promotion as in the specification. The angle is
    float64 always. `out` is a pair of arrays to write to, `threads` a number or None to choose by size.
    ValueError or TypeError for frequencies of more than one axis, another dtype, or an `out` that does not fit or overlaps.

    >>> cos, sin = tables(np.array([0, 1]), frequencies(4), dtype=np.float32)
    >>> cos.round(4)
    array([[1.    , 1.    ],
           [0.5403, 1.    ]], dtype=float32)
    """
    name = "fast.rope.tables"
    if out is not None and not (isinstance(out, tuple) and len(out) == 2):
        raise TypeError(f"{name}: out is a {type(out).__name__}, expected a tuple of two arrays, for cos and for sin")
    dtype = _table_dtype(name, positions, frequencies, dtype, out)
    shape, reads = (*positions.shape, len(frequencies)), {"positions": positions, "frequencies": frequencies}
    cos, sin = out or (None, None)
    cos = _machine.output(name, "out[0]", cos, shape, dtype, reads=reads)
    sin = _machine.output(name, "out[1]", sin, shape, dtype, reads={**reads, "out[0]": cos})
    c, s = (a if a.flags.carray else np.empty(shape, dtype) for a in (cos, sin))
    m, theta = positions.astype(np.float64).reshape(-1), frequencies.astype(np.float64)
    rows = (len(m), len(theta))
    threads = _machine.thread_count(name, threads, COSINE * cos.nbytes)
    calls = [(m[part], theta, c.reshape(rows)[part], s.reshape(rows)[part]) for part in _machine.parts(len(m), threads)]
    _machine.run(_tables, calls, threads)
    for result, made in ((cos, c), (sin, s)):
        if result is not made:
            result[...] = made
    return cos, sin


@twin(rope.rotate)
def rotate(x, cos, sin, *, layout, rotary_dim=None, out=None, threads=None):
    """R(m) x: every pair of features turned by its angle, shape of `x`, dtype by promotion. RoFormer Eqs. (14), (34).

    Arguments and errors are those of `posref.rotary.rope.rotate`, and bit for bit its result.
    `out` is the array to write to, `x` itself to work in place, and otherwise not overlapping `x`, `cos` or `sin`;
    `threads` is a number or None to choose by size. ValueError or TypeError for an `out` that does not fit or overlaps.

    >>> x = np.array([[1.0, 2.0, 3.0, 4.0]])
    >>> cos, sin = tables(np.array([1]), frequencies(4))
    >>> rotate(x, cos, sin, layout="half", out=x).round(4)
    array([[-1.9841,  1.9599,  2.4624,  4.0198]])
    >>> x.round(4)
    array([[-1.9841,  1.9599,  2.4624,  4.0198]])
    """
    name = "fast.rope.rotate"
    cosine, sine = np.result_type(x, cos), np.result_type(x, sin)  # dtypes of the products, which the specification adds
    _machine.floating(name, "the result", cosine)
    _machine.floating(name, "the result", sine)
    reads = {"x": x, "cos": cos, "sin": sin}
    out = _machine.output(name, "out", out, x.shape, max(cosine, sine), reads=reads, in_place=True)
    threads = _machine.thread_count(name, threads, out.nbytes)
    if out.size > 0:
        kernel = functools.partial(_turn, {"interleaved": _interleaved, "half": _half}[layout], min(cosine, sine))
        cos, sin = np.ascontiguousarray(cos, cosine), np.ascontiguousarray(sin, sine)
        _machine.run(kernel, _pieces(x, cos, sin, out, threads), threads)
    return out


@twin(rope.gradient)
def gradient(output_gradient, cos, sin, *, layout, rotary_dim=None, out=None, threads=None):
    """Gradient with respect to `x` of `rotate`: rotation by the negative angle, since R(m)^T = R(-m).

    >>> cos, sin = tables(np.array([1]), frequencies(2))
    >>> gradient(np.array([[1.0, 0.0]]), cos, sin, layout="half").round(4)
    array([[ 0.5403, -0.8415]])
    """
    return rotate(output_gradient, cos, -sin, layout=layout, rotary_dim=rotary_dim, out=out, threads=threads)


@_machine.jit
def _interleaved(x, cos, sin, out):
    """x, out (batch, heads, n, d); cos, sin (batch, n, pairs). `out` may be `x`: a pair is read before it is written."""
    batch, heads, length, dim = x.shape
    pairs = cos.shape[2]
    for b in range(batch):
        for h in range(heads):
            for p in range(length):
                for t in range(pairs):
                    first, second = x[b, h, p, 2 * t], x[b, h, p, 2 * t + 1]
                    c, s = cos[b, p, t], sin[b, p, t]
                    out[b, h, p, 2 * t] = first * c - second * s
                    out[b, h, p, 2 * t + 1] = first * s + second * c
                for t in range(dim - 2 * pairs):
                    out[b, h, p, 2 * pairs + t] = x[b, h, p, 2 * pairs + t]


@_machine.jit
def _half(x, cos, sin, out):
    """x, out (batch, heads, n, d); cos, sin (batch, n, pairs). `out` may be `x`: a pair is read before it is written."""
    batch, heads, length, dim = x.shape
    pairs = cos.shape[2]
    for b in range(batch):
        for h in range(heads):
            for p in range(length):
                for t in range(pairs):
                    first, second = x[b, h, p, t], x[b, h, p, t + pairs]
                    c, s = cos[b, p, t], sin[b, p, t]
                    out[b, h, p, t] = first * c - second * s
                    out[b, h, p, t + pairs] = first * s + second * c
                for t in range(dim - 2 * pairs):
                    out[b, h, p, 2 * pairs + t] = x[b, h, p, 2 * pairs + t]


@_machine.jit
def _tables(positions, frequencies, cos, sin):
    """positions (n,); frequencies (pairs,); cos, sin (n, pairs)."""
    for p in range(positions.shape[0]):
        for t in range(frequencies.shape[0]):
            angle = positions[p] * frequencies[t]
            cos[p, t] = np.cos(angle)
            sin[p, t] = np.sin(angle)


def _turn(kernel, dtype, x, cos, sin, out):
    """The kernel on one piece, through contiguous copies where `x` or `out` is strided or `x` has another dtype."""
    if x.dtype == dtype and _contiguous(x, out):
        kernel(x, cos, sin, out)
    else:
        turned = np.empty(out.shape, out.dtype)
        kernel(x.astype(dtype, order="C"), cos, sin, turned)
        out[...] = turned


def _contiguous(x, out):
    return x.flags.c_contiguous and x.flags.aligned and out.flags.carray


def _pieces(x, cos, sin, out, threads):
    """Arguments of the kernel for every piece: few large ones that need no copy, or as many as keep the copies small."""
    straight = x.dtype == out.dtype and _contiguous(x, out)
    if straight and threads == 1 and x.ndim > 1 and cos.size == x.shape[-2] * cos.shape[-1]:  # one table: the shortest way
        whole, table = (1, -1, *x.shape[-2:]), (1, x.shape[-2], cos.shape[-1])
        return [(x.reshape(whole), cos.reshape(table), sin.reshape(table), out.reshape(whole))]
    size = BLOCK if not straight else out.nbytes if threads == 1 else out.nbytes / (PIECES * threads)
    axes = max(2, x.ndim)
    blocks = _blocks(*(array[(None,) * (axes - array.ndim)] for array in (x, cos, sin, out)))
    return [piece for block in blocks for piece in _split(*block, round(block[-1].nbytes / size))]


def _blocks(x, cos, sin, out):
    """`x` and `out` (..., n, d) as views (batch, heads, n, d), the tables (.., n, pairs) as (batch, n, pairs), in few blocks.

    Axes along which the tables vary merge into `batch`, those after them, along which they have one entry, into `heads`.
    Where strides or another order of axes forbid that, the first axis is walked.
    """
    if cos.shape[-2] == 1 < x.shape[-2]:  # one position for all rows: rows are one more axis the tables are broadcast over
        x, out, cos, sin = x[..., None, :], out[..., None, :], cos[..., None, :], sin[..., None, :]
    *lead, n, dim = x.shape
    own = sum(rows != 1 for rows in cos.shape[:-2])
    batch, heads = math.prod(lead[:own]), math.prod(lead[own:])
    grouped = all(rows == 1 for rows in cos.shape[own:-2])
    mergeable = _contiguous(x, out) or own <= 1 >= len(lead) - own
    if grouped and mergeable:
        rows = (batch, n, cos.shape[-1])
        yield x.reshape(batch, heads, n, dim), cos.reshape(rows), sin.reshape(rows), out.reshape(batch, heads, n, dim)
    else:
        for i in range(len(x)):
            t = i if len(cos) > 1 else 0
            yield from _blocks(x[i], cos[t], sin[t], out[i])


def _split(x, cos, sin, out, count):
    """A block in about `count` pieces, cut along its first axis of more than one entry so that each stays contiguous."""
    if count <= 1:
        yield x, cos, sin, out
        return
    axis = next((axis for axis in range(3) if x.shape[axis] > 1), 2)
    enough = x.shape[axis] >= count or axis == 2
    for part in _machine.parts(x.shape[axis], count if enough else x.shape[axis]):
        data = (slice(None),) * axis + (part,)
        table = ((part,), (), (slice(None), part))[axis]
        piece = x[data], cos[table], sin[table], out[data]
        if enough:
            yield piece
        else:
            yield from _split(*piece, round(count / x.shape[axis]))


def _table_dtype(function, positions, frequencies, dtype, out):
    if dtype is None and out is None:
        dtype = np.result_type(positions, frequencies)
        dtype = np.dtype(np.float64) if dtype.kind in "iu" else dtype
    elif dtype is None:
        dtype = out[0].dtype if isinstance(out[0], np.ndarray) else np.dtype(np.float64)
    _machine.floating(function, "the table", np.dtype(dtype))
    return np.dtype(dtype)
