"""RoPE: rotary position embedding, compiled. The definition is `posref.rotary.rope`.

`rotate` and `gradient` have the same bits as the specification for the same tables: the kernels only multiply, add and
subtract, in its order, without fused operations. `tables` computes the angle in float64 for all inputs and rounds each cosine
and sine once to the result's dtype. So float32 tables are within 0.5 + 2^-20 units in the last place of the exact value, with
the same bits on every machine, for angles below 2^31 (`_series`). For larger angles, and in float64, the C library computes
them, in float64 as one of the two floats around the exact value; the specification uses numpy.

Results are float32 or float64; other dtypes give a TypeError.
"""

import functools
import math

import numba
import numpy as np
from llvmlite import ir

from posref._contract import twin
from posref.fast import _machine
from posref.rotary import rope
from posref.rotary.rope import frequencies

__all__ = ["frequencies", "gradient", "rotate", "rotator", "tables"]

COSINE = {"f": 4, "d": 64}  # a cosine and a sine cost this many times the writing of their bytes
NEAR = 2.0**31  # the angles that `_series` knows
HALF_PI = 3294198 / 2**21, 2761238 / 2**43, 2296019 / 2**65, 312930 / 2**87, 3.5215598651832e-27  # a sum
PIECES = 2  # a thread, so that one that is held up leaves its rest to the others; each reads the tables once
NEIGHBORS = 32  # positions: their tables and rows of one head fit into the L1 cache
BLOCK = 2**20  # bytes: an array that is strided or of another dtype is copied in pieces that stay in the cache
LINE = 64  # bytes of a line of the cache
LINES, ONE = ir.VectorType(ir.IntType(8), LINE).as_pointer(), ir.Constant(ir.IntType(32), 1)
LARGE = 2**22  # bytes: a result as large is written past the caches, in 0.5 to 0.9 of the time


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
    threads = _machine.thread_count(name, threads, COSINE[dtype.char] * cos.nbytes)
    calls = [(m[part], theta, c.reshape(rows)[part], s.reshape(rows)[part]) for part in _machine.parts(len(m), threads)]
    _machine.run(_tables, calls, threads)
    far = ~(np.abs(m) * np.abs(theta).max() < NEAR)
    if dtype == np.float32 and far.any():
        c.reshape(rows)[far], s.reshape(rows)[far] = tables(m[far], theta, threads=threads)
    for result, made in ((cos, c), (sin, s)):
        if result is not made:
            result[...] = made
    return cos, sin


@twin(rope.rotate)
def rotate(x, cos, sin, *, layout, rotary_dim=None, out=None, threads=None):
    """R(m) x: every pair of features rotated by its angle, shape of `x`, dtype by promotion. RoFormer Eqs. (14), (34).

    Arguments, errors and the bits of the result are those of `posref.rotary.rope.rotate`.
    `out` is the array to write to: `x` itself, to work in place, or an array that does not overlap `x`, `cos` or `sin`;
    `threads` is a number or None to choose by size. ValueError or TypeError for an `out` that does not fit or overlaps.

    >>> x = np.array([[1.0, 2.0, 3.0, 4.0]])
    >>> cos, sin = tables(np.array([1]), frequencies(4))
    >>> rotate(x, cos, sin, layout="half", out=x).round(4)
    array([[-1.9841,  1.9599,  2.4624,  4.0198]])
    >>> x.round(4)
    array([[-1.9841,  1.9599,  2.4624,  4.0198]])
    """
    return _rotated("fast.rope.rotate", {"x": x, "cos": cos, "sin": sin}, sin, layout, out, threads)


@twin(rope.rotate)
def rotator(x, cos, sin, *, layout, rotary_dim=None):
    """`rotate` prepared for arrays like these: a function of (x, cos, sin) that returns a new array.

    For a few tokens, `rotate` spends most of its time on checks. `rotator` makes these checks once; the function then only
    compares type, shape, dtype and memory with those of `x`, `cos` and `sin`, and passes other arrays to `rotate`. Errors are
    those of `rotate`.

    >>> cos, sin = tables(np.array([7]), frequencies(4))
    >>> turn = rotator(np.zeros((1, 4)), cos, sin, layout="half")
    >>> turn(np.array([[1.0, 2.0, 3.0, 4.0]]), cos, sin).round(4)
    array([[-1.2171,  1.7153,  2.9187,  4.1301]])
    """
    general = functools.partial(rotate, layout=layout, rotary_dim=rotary_dim)
    like = x, cos, sin, general(x, cos, sin)
    shape, dtype, table = x.shape, x.dtype, cos.shape
    straight = x.size > 0 and len({a.dtype for a in like}) == 1 and all(a.flags.carray for a in like)
    pieces = _pieces(*like, 1, True) if straight else []
    if len(pieces) != 1 or _machine.thread_count("fast.rope.rotator", None, x.nbytes) > 1:
        return general
    kernel = {"interleaved": _interleaved, "half": _half}[layout]
    rows, pairs = pieces[0][0].shape, pieces[0][1].shape

    def turn(x, cos, sin):
        arrays = type(x) is type(cos) is type(sin) is np.ndarray
        if not (arrays and x.shape == shape and cos.shape == sin.shape == table and x.dtype == cos.dtype == sin.dtype == dtype):
            return general(x, cos, sin)
        if not (x.flags.carray and cos.flags.carray and sin.flags.carray):
            return general(x, cos, sin)
        out = np.empty(shape, dtype)
        kernel(x.reshape(rows), cos.reshape(pairs), sin.reshape(pairs), out.reshape(rows))
        return out

    return turn


@twin(rope.gradient)
def gradient(output_gradient, cos, sin, *, layout, rotary_dim=None, out=None, threads=None):
    """The gradient of `rotate` with respect to `x`: rotation by the negative angle, since R(m)^T = R(-m).

    >>> cos, sin = tables(np.array([1]), frequencies(2))
    >>> gradient(np.array([[1.0, 0.0]]), cos, sin, layout="half").round(4)
    array([[ 0.5403, -0.8415]])
    """
    reads = {"output_gradient": output_gradient, "cos": cos, "sin": sin}
    return _rotated("fast.rope.gradient", reads, -sin, layout, out, threads)


def _rotated(name, reads, sin, layout, out, threads):
    """The first array of `reads`, rotated by the cosines in `reads` and the sines `sin`."""
    x, cos, _ = reads.values()
    cosine, sine = np.result_type(x, cos), np.result_type(x, sin)  # dtypes of the products, which the specification adds
    _machine.floating(name, "the result", cosine)
    _machine.floating(name, "the result", sine)
    target = _machine.output(name, "out", out, x.shape, max(cosine, sine), reads=reads, in_place=True)
    in_place, out = target is x, target if out is None else out
    threads = _machine.thread_count(name, threads, out.nbytes)
    if out.size > 0:
        kernel, dtype = {"interleaved": _interleaved, "half": _half}[layout], min(cosine, sine)
        straight = x.dtype == dtype and _contiguous(x, out)
        if not straight:
            kernel = functools.partial(_turn_copies, kernel, dtype)
        elif in_place:
            kernel = functools.partial(_turn_in_place, kernel)
        elif out.nbytes >= LARGE and out.ctypes.data % LINE == out.shape[-1] * out.itemsize % LINE == 0:
            kernel = {"interleaved": _interleaved_past_caches, "half": _half_past_caches}[layout]
            kernel = functools.partial(_turn_past_caches, kernel)
        cos, sin = np.ascontiguousarray(cos, cosine), np.ascontiguousarray(sin, sine)
        _machine.run(kernel, _pieces(x, cos, sin, out, threads, straight), threads)
    return out


def _turn_in_place(kernel, x, cos, sin, out):
    """Run the kernel on a piece that it rotates in place."""
    kernel(None, cos, sin, out)


def _turn_past_caches(kernel, x, cos, sin, out):
    """Run the kernel on a piece, with a row of memory of its own."""
    kernel(x, cos, sin, out, _machine.on_a_line(out.shape[-1:], out.dtype))


def _turn_copies(kernel, dtype, x, cos, sin, out):
    """Run the kernel on contiguous copies of a piece, because `x` or `out` is strided or `x` has another dtype."""
    turned = np.empty(out.shape, out.dtype)
    kernel(x.astype(dtype, order="C"), cos, sin, turned)
    out[...] = turned


def _read(x, out):
    """The array to rotate: `x`, or `out` if x is None. Compiled code contains one of the two, since their types may differ."""
    return out if x is None else x


@numba.extending.overload(_read)
def _compiled_read(x, out):
    return (lambda x, out: out) if x is numba.types.none else (lambda x, out: x)


@_machine.jit(pipeline_class=_machine.Separate)
def _interleaved(x, cos, sin, out):
    """x, out (batch, heads, groups, n, d); cos, sin (batch, groups, n, pairs). Without x in place."""
    read = _read(x, out)
    batch, heads, groups, length, dim = out.shape
    pairs = cos.shape[3]
    for b in range(batch):
        for g in range(groups):
            for h in range(heads):
                for p in range(length):
                    for t in range(pairs):
                        first, second = read[b, h, g, p, 2 * t], read[b, h, g, p, 2 * t + 1]
                        c, s = cos[b, g, p, t], sin[b, g, p, t]
                        out[b, h, g, p, 2 * t] = first * c - second * s
                        out[b, h, g, p, 2 * t + 1] = first * s + second * c
                    for t in range(dim - 2 * pairs):
                        out[b, h, g, p, 2 * pairs + t] = read[b, h, g, p, 2 * pairs + t]


@_machine.jit(pipeline_class=_machine.Separate)
def _half(x, cos, sin, out):
    """x, out (batch, heads, groups, n, d); cos, sin (batch, groups, n, pairs). Without x in place."""
    read = _read(x, out)
    batch, heads, groups, length, dim = out.shape
    pairs = cos.shape[3]
    for b in range(batch):
        for g in range(groups):
            for h in range(heads):
                for p in range(length):
                    for t in range(pairs):
                        first, second = read[b, h, g, p, t], read[b, h, g, p, t + pairs]
                        c, s = cos[b, g, p, t], sin[b, g, p, t]
                        out[b, h, g, p, t] = first * c - second * s
                        out[b, h, g, p, t + pairs] = first * s + second * c
                    for t in range(dim - 2 * pairs):
                        out[b, h, g, p, 2 * pairs + t] = read[b, h, g, p, 2 * pairs + t]


@_machine.jit(pipeline_class=_machine.Separate)
def _interleaved_past_caches(x, cos, sin, out, row):
    """As `_interleaved`; each row is made in `row` (d,), and its lines are then written to `out` past the caches."""
    batch, heads, groups, length, dim = out.shape
    pairs = cos.shape[3]
    for b in range(batch):
        for g in range(groups):
            for h in range(heads):
                for p in range(length):
                    _fetch(x[b, h, g, p])
                    for t in range(pairs):
                        first, second = x[b, h, g, p, 2 * t], x[b, h, g, p, 2 * t + 1]
                        c, s = cos[b, g, p, t], sin[b, g, p, t]
                        row[2 * t] = first * c - second * s
                        row[2 * t + 1] = first * s + second * c
                    for t in range(2 * pairs, dim):
                        row[t] = x[b, h, g, p, t]
                    _send(row, out[b, h, g, p])


@_machine.jit(pipeline_class=_machine.Separate)
def _half_past_caches(x, cos, sin, out, row):
    """As `_half`; each row is made in `row` (d,), and its lines are then written to `out` past the caches."""
    batch, heads, groups, length, dim = out.shape
    pairs = cos.shape[3]
    for b in range(batch):
        for g in range(groups):
            for h in range(heads):
                for p in range(length):
                    _fetch(x[b, h, g, p])
                    for t in range(pairs):
                        first, second = x[b, h, g, p, t], x[b, h, g, p, t + pairs]
                        c, s = cos[b, g, p, t], sin[b, g, p, t]
                        row[t] = first * c - second * s
                        row[t + pairs] = first * s + second * c
                    for t in range(2 * pairs, dim):
                        row[t] = x[b, h, g, p, t]
                    _send(row, out[b, h, g, p])


def _fetch(row):
    """Does nothing in Python; the compiled form prefetches the memory ahead of a row.

    A block has few positions of each head. Without this, the processor starts to prefetch anew for each head, after waiting for
    its first lines: an AMD EPYC of the fifth generation took 1.8 times as long.
    """


numba.extending.overload(_fetch)(_machine.fetch)


def _send(source, target):
    """Copy `source` to `target`. The compiled form uses an instruction that does not first read the target into the cache.

    Another thread may see such writes late. The lock that tells it of the end of the work waits for these writes.
    """
    target[...] = source


@numba.extending.overload(_send, inline="always")
def _compiled_send(source, target):
    def send(source, target):
        for i in range(0, source.size, LINE // source.itemsize):
            _send_line(source, target, i)

    return send


@numba.extending.intrinsic
def _send_line(typing_context, source, target, i):
    """Copy the line of the cache that begins with entry i."""

    def generate(context, builder, signature, arguments):
        arrays = zip(signature.args[:2], arguments[:2], strict=True)
        data = [context.make_array(kind)(context, builder, x).data for kind, x in arrays]
        source, target = (builder.bitcast(builder.gep(x, [arguments[2]]), LINES) for x in data)
        written = builder.store(builder.load(source, align=LINE), target, align=LINE)
        written.set_metadata("nontemporal", builder.module.add_metadata([ONE]))
        return context.get_dummy_value()

    return numba.types.void(source, target, i), generate


@_machine.jit
def _tables(positions, frequencies, cos, sin):
    """positions (n,); frequencies (pairs,); cos, sin (n, pairs)."""
    for p in range(positions.shape[0]):
        for t in range(frequencies.shape[0]):
            cos[p, t], sin[p, t] = _cosine_and_sine(positions[p] * frequencies[t], cos)


def _cosine_and_sine(x, out):
    """cos x and sin x, to be stored in `out`. The compiled form uses `_series` for float32, else the C library."""
    return np.cos(x), np.sin(x)


def _series(x, out):
    """cos x and sin x for |x| < 2^31, each with a relative error of at most 2^-44; no function is called, so it vectorises.

    x = n pi/2 + r, n whole, |n| < 2^31. The parts of pi/2 have at most 22 bits, but for the last, so n times a part is exact.
    So are the first two differences: x and the parts are multiples of 2^-53 or more, and what is left is below 1, or x is a
    multiple of 2^-43. The next two are exact, or r is so large that half a unit in their last place is at most 2^-52 r: they
    are multiples of 2^-65 and 2^-87, exact below 2^-12 and 2^-34, and what is subtracted after them is less than half of that.
    The last part and its product are off by 2^-109, at most 2^-48 r: no float64 below 2^31 but 0 is nearer to a multiple of
    pi/2 than 2^-60.5 (by continued fractions, in the tests). The series end with r^14 / 14! and r^13 / 13!, |r| < pi/4 + 2^-20:
    the rest is below 2^-44.9 of the sine and 2^-48 of the cosine. Roundings are a few 2^-53.
    """
    n = np.floor(x * 0.6366197723675814 + 0.5)
    r = x - n * HALF_PI[0] - n * HALF_PI[1] - n * HALF_PI[2] - n * HALF_PI[3] - n * HALF_PI[4]
    y = r * r
    c = -1 / 87178291200
    c = c * y + 1 / 479001600
    c = c * y - 1 / 3628800
    c = c * y + 1 / 40320
    c = c * y - 1 / 720
    c = c * y + 1 / 24
    c = c * y - 1 / 2
    c = c * y + 1.0
    s = 1 / 6227020800
    s = s * y - 1 / 39916800
    s = s * y + 1 / 362880
    s = s * y - 1 / 5040
    s = s * y + 1 / 120
    s = s * y - 1 / 6
    s = s * y * r + r
    half = np.floor(n * 0.5)
    odd, sign = n - 2.0 * half, 1.0 - 2.0 * (half - 2.0 * np.floor(half * 0.5))
    cosine, sine = (s, c) if odd > 0 else (c, s)
    return cosine * (sign - 2.0 * sign * odd), sine * sign


@numba.extending.overload(_cosine_and_sine)
def _compiled_cosine_and_sine(x, out):
    return _series if out.dtype == numba.types.float32 else _cosine_and_sine


def _contiguous(x, out):
    return x.flags.c_contiguous and x.flags.aligned and out.flags.carray


def _pieces(x, cos, sin, out, threads, straight):
    """The kernel's arguments for every piece: few large pieces if they need no copy, else so many that copies stay small."""
    one = x.ndim > 1 and cos.shape[-2:-1] == x.shape[-2:-1] and all(rows == 1 for rows in cos.shape[:-2])
    if straight and threads == 1 and one:  # table for all rows: the shortest way
        rows = _groups(x.shape[-2])
        whole, table = (1, -1, *rows, x.shape[-1]), (1, *rows, cos.shape[-1])
        return [(x.reshape(whole), cos.reshape(table), sin.reshape(table), out.reshape(whole))]
    size = BLOCK if not straight else out.nbytes if threads == 1 else out.nbytes / (PIECES * threads)
    axes = max(2, x.ndim)
    blocks = _blocks(*(array[(None,) * (axes - array.ndim)] for array in (x, cos, sin, out)))
    pieces = [piece for block in blocks for piece in _split(*block, round(block[-1].nbytes / size))]
    return [tuple(a.reshape(*a.shape[:-2], *_groups(a.shape[-2]), a.shape[-1]) for a in piece) for piece in pieces]


def _groups(positions):
    """The number of groups and of positions per group, NEIGHBORS if it divides; a group reads its tables once for all heads."""
    return (positions // NEIGHBORS, NEIGHBORS) if positions % NEIGHBORS == 0 else (1, positions)


def _blocks(x, cos, sin, out):
    """Views in few blocks: `x` and `out` (..., n, d) as (batch, heads, n, d), the tables (.., n, pairs) as (batch, n, pairs).

    Axes along which the tables vary are merged into `batch`; later axes, along which the tables have one entry, into `heads`.
    If strides or the order of axes forbid this, there is a block for each index of the first axis.
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
    """A block in about `count` pieces, divided along its first axis with more than one entry so that they stay contiguous."""
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
    try:
        dtype = np.dtype(dtype)
    except TypeError:
        raise TypeError(f"{function}: dtype is {dtype!r}, expected np.float32 or np.float64") from None
    _machine.floating(function, "the table", dtype)
    return dtype
