"""What numpy's functions do with arrays of symbolic size: the part that specifications use, with numpy's rules.

Keywords that are not listed here are refused by Python itself; a dtype is followed by kind (`proofs.kit.dtypes`).
"""

import numpy as np
import sympy as sp

from proofs.kit import dtypes
from proofs.kit.cases import at_case, nonnegative
from proofs.kit.dtypes import ORDER, kind_of
from proofs.kit.indices import axis_of, cell_of
from proofs.kit.paths import decide
from proofs.kit.sized import FUNCTIONS, UFUNCS, SizedArray, extents, same, total
from proofs.kit.symbols import Scalar, divided, expression, index, raised
from proofs.kit.verdicts import Undecided


def _frozen(a):
    return a.freeze() if isinstance(a, SizedArray) else a


def common_shape(*shapes):
    """numpy's broadcasting; a symbolic size is broadcast to nothing but itself."""
    out = [sp.Integer(1)] * max(map(len, shapes))
    for shape in shapes:
        for place, n in enumerate(reversed(shape), 1):
            if n == 1:
                continue
            if out[-place] != 1 and sp.expand(out[-place] - n) != 0:
                raise ValueError(f"shapes {shapes} do not broadcast")
            out[-place] = n
    return tuple(out)


def _read(a, ix):
    """One cell of an operand at broadcast indices."""
    shape = extents(a)
    if not shape:
        return expression(a[()] if isinstance(a, np.ndarray) else a)
    own = [sp.Integer(0) if n == 1 else i for i, n in zip(ix[len(ix) - len(shape) :], shape, strict=True)]
    return a.at(*own) if isinstance(a, SizedArray) else expression(a[tuple(int(i) for i in own)])


def _elementwise(f, result=None):
    """The ufunc that does f to every entry; the kind is that of the operands, or `result`."""

    def ufunc(*args):
        kind = result or joined(*args)
        return SizedArray(common_shape(*map(extents, args)), lambda *ix: f(*[_read(a, ix) for a in args]), kind=kind)

    return ufunc


def _of_numbers(f):
    """As above, where numpy means something else, or nothing, if all operands are booleans."""
    ufunc = _elementwise(f)

    def checked(*args):
        if joined(*args) == "b":
            raise Undecided("arithmetic of booleans")
        return ufunc(*args)

    return checked


def _power(a, b):
    if joined(a, b) == "i" and not nonnegative(expression(b) if isinstance(b, (int, Scalar)) else sp.Integer(-1)):
        raise Undecided("integers to the power of integers that may be negative, which numpy refuses")
    return _of_numbers(raised)(a, b)


def joined(*args):
    """The kind that numpy promotes to."""
    return max(map(kind_of, args), key=ORDER.index)


def _matmul(a, b):
    if a.ndim == 1 and b.ndim == 1:
        if sp.expand(extents(a)[0] - extents(b)[0]) != 0:
            raise ValueError(f"matmul of shapes {extents(a)} and {extents(b)}")
        return Scalar(total(lambda j: a.at(j) * b.at(j), a.extents[0]))
    if a.ndim < 2 or b.ndim < 2:
        raise Undecided("a product of a matrix and a vector; add an axis")
    if sp.expand(extents(a)[-1] - extents(b)[-2]) != 0:
        raise ValueError(f"matmul of shapes {extents(a)} and {extents(b)}")
    lead = common_shape(extents(a)[:-2], extents(b)[:-2]) if a.ndim > 2 or b.ndim > 2 else ()

    def at(*ix):
        row, column = ix[-2], ix[-1]
        return total(lambda j: _row(a, ix, (row, j)) * _row(b, ix, (j, column)), extents(a)[-1])

    return SizedArray((*lead, extents(a)[-2], extents(b)[-1]), at, kind=joined(a, b))


def _row(a, ix, last):
    shape = extents(a)
    lead = ix[: len(ix) - 2][len(ix) - len(shape) :] if len(shape) > 2 else ()
    own = [sp.Integer(0) if n == 1 else i for i, n in zip(lead, shape[:-2], strict=True)]
    return a.at(*own, *last) if isinstance(a, SizedArray) else expression(a[tuple(int(i) for i in (*own, *last))])


def _smaller(a, b):
    return a if decide(sp.Le(a, b)) else b


def _larger(a, b):
    return a if decide(sp.Ge(a, b)) else b


UFUNCS |= {
    np.matmul: _matmul,
    np.add: _of_numbers(lambda a, b: a + b),
    np.subtract: _of_numbers(lambda a, b: a - b),
    np.multiply: _elementwise(lambda a, b: a * b),
    np.true_divide: _elementwise(divided, "f"),
    np.floor_divide: _of_numbers(lambda a, b: sp.floor(divided(a, b))),
    np.power: _power,
    np.negative: _of_numbers(lambda a: -a),
    np.positive: _of_numbers(lambda a: a),
    np.square: _of_numbers(lambda a: a**2),
    np.conjugate: _elementwise(sp.conjugate),
    np.cos: _elementwise(sp.cos, "f"),
    np.sin: _elementwise(sp.sin, "f"),
    np.exp: _elementwise(sp.exp, "f"),
    np.log: _elementwise(sp.log, "f"),
    np.log2: _elementwise(lambda a: sp.log(a, 2), "f"),
    np.tanh: _elementwise(sp.tanh, "f"),
    np.sqrt: _elementwise(sp.sqrt, "f"),
    np.absolute: _of_numbers(lambda a: a if decide(sp.Ge(a, 0)) else -a),
    np.minimum: _elementwise(_smaller),
    np.maximum: _elementwise(_larger),
    np.less: _elementwise(sp.Lt, "b"),
    np.less_equal: _elementwise(sp.Le, "b"),
    np.greater: _elementwise(sp.Gt, "b"),
    np.greater_equal: _elementwise(sp.Ge, "b"),
    np.equal: _elementwise(sp.Eq, "b"),
}


def _like(a, value, dtype):
    kind = dtypes.cast(kind_of(a), dtype, widen=True)
    return SizedArray(a.extents, lambda *ix: sp.Integer(value), kind=kind)


def _empty_like(a, dtype=None):
    def unwritten(*ix):
        raise Undecided(f"a read of the unwritten cell {ix}")

    return SizedArray(a.extents, unwritten, kind=dtypes.cast(kind_of(a), dtype, widen=True))


def _stack(arrays, axis=0):
    arrays = [_frozen(a) for a in arrays]
    if axis != -1:
        raise Undecided(f"stack along axis {axis}")
    if any(not same(extents(arrays[0]), extents(a)) for a in arrays[1:]):
        raise ValueError(f"stack of shapes {[extents(a) for a in arrays]}")
    return SizedArray((*extents(arrays[0]), len(arrays)), lambda *ix: _read(arrays[int(ix[-1])], ix[:-1]), kind=joined(*arrays))


def _concatenate(arrays, axis=0):
    arrays = [_frozen(a) for a in arrays]
    ndim = len(extents(arrays[0]))
    axis = axis_of(axis, ndim)
    lengths = [extents(a)[axis] for a in arrays]
    for a in arrays[1:]:
        if any(sp.expand(m - n) != 0 for x, (m, n) in enumerate(zip(extents(arrays[0]), extents(a), strict=True)) if x != axis):
            raise ValueError(f"concatenate of shapes {arrays[0].extents} and {a.extents} along axis {axis}")

    def at(*ix):
        j = ix[axis]
        for a, length in zip(arrays, lengths, strict=True):
            if nonnegative(length - 1 - j):
                return _read(a, (*ix[:axis], j, *ix[axis + 1 :]))
            if not nonnegative(j - length):
                raise Undecided(f"which part holds index {j}?")
            j = sp.expand(j - length)
        raise IndexError(f"index {ix[axis]} of a concatenation of lengths {lengths}")

    shape = list(extents(arrays[0]))
    shape[axis] = sp.Add(*lengths)
    return SizedArray(shape, at, kind=joined(*arrays))


def _swapaxes(a, first, second):
    order = list(range(a.ndim))
    order[first], order[second] = order[second], order[first]
    return SizedArray([a.extents[o] for o in order], lambda *ix: a.at(*[ix[o] for o in order]), a)


def _where(condition, yes, no):
    condition, yes, no = _frozen(condition), _frozen(yes), _frozen(no)
    shape = common_shape(*map(extents, (condition, yes, no)))

    def at(*ix):
        truth = _read(condition, ix)
        return _read(yes if (bool(truth) if truth.is_number else decide(truth)) else no, ix)

    return SizedArray(shape, at, kind=joined(yes, no))


def _take_along_axis(a, indices, axis):
    a, indices, axis = _frozen(a), _frozen(indices), axis_of(axis, a.ndim)
    if a.ndim != indices.ndim:
        raise ValueError(f"take_along_axis of shapes {a.extents} and {indices.extents}")
    shape = list(
        common_shape((*a.extents[:axis], 1, *a.extents[axis + 1 :]), (*indices.extents[:axis], 1, *indices.extents[axis + 1 :]))
    )
    shape[axis] = indices.extents[axis]

    def at(*ix):
        return _read(a, (*ix[:axis], cell_of(_read(indices, ix), a.extents[axis]), *ix[axis + 1 :]))

    return SizedArray(shape, at, kind=kind_of(a))


def _cumsum(a, axis=None):
    if axis is None:
        raise Undecided("a cumulative sum over all axes; name one")
    a, axis = _frozen(a), axis_of(axis, a.ndim)

    def at(*ix):
        j = index(ix[axis] + 1, "j")
        return sp.Sum(a.at(*ix[:axis], j, *ix[axis + 1 :]), (j, 0, ix[axis]))

    return SizedArray(a.extents, at, kind=kind_of(a))


def _broadcast_to(a, shape):
    a = _frozen(a)
    if not same(common_shape(extents(a), shape := tuple(at_case(expression(n)) for n in shape)), shape):
        raise ValueError(f"shape {extents(a)} does not broadcast to {shape}")
    return SizedArray(shape, lambda *ix: _read(a, ix), kind=kind_of(a))


def _sliding_window_view(a, window_shape, axis):
    window_shape = at_case(expression(window_shape))
    shape, axis = list(a.extents), axis_of(axis, a.ndim)
    if not nonnegative(shape[axis] - window_shape):
        raise Undecided(f"windows of {window_shape} in an axis of length {shape[axis]}")
    shape[axis] = sp.expand(shape[axis] - window_shape + 1)
    return SizedArray((*shape, window_shape), lambda *ix: a.at(*ix[:axis], ix[axis] + ix[-1], *ix[axis + 1 : -1]), a)


FUNCTIONS |= {
    np.empty_like: _empty_like,
    np.zeros_like: lambda a, dtype=None: _like(a, 0, dtype),
    np.ones_like: lambda a, dtype=None: _like(a, 1, dtype),
    np.stack: _stack,
    np.concatenate: _concatenate,
    np.swapaxes: _swapaxes,
    np.where: _where,
    np.take_along_axis: _take_along_axis,
    np.cumsum: _cumsum,
    np.broadcast_to: _broadcast_to,
    np.lib.stride_tricks.sliding_window_view: _sliding_window_view,
    np.clip: lambda a, low, high: np.minimum(np.maximum(a, low), high),
}
