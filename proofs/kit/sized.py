"""Arrays of symbolic size: shipped numpy code executed once for all sizes.

A `SizedArray` has a shape whose entries may be symbols (N, 2*h) and a function from indices to expressions. It implements the
part of numpy that specifications use, with numpy's semantics: ufuncs compute eagerly (a result remembers the memory as it
was), slices are views, writes are seen by later reads. Anything else raises `Undecided`; nothing is guessed. It has no
`.real`, and `np.asarray` of it raises.
"""

from contextlib import contextmanager

import numpy as np
import sympy as sp

from proofs.kit.normal_form import Undecided
from proofs.kit.symbols import Scalar, decide, expression, index, nonnegative


class SizedArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array given by its shape and a function from indices to expressions."""

    __array_priority__ = 1000
    dtype = np.dtype(object)

    def __init__(self, shape, at, base=None):
        self.shape = tuple(sp.sympify(n) for n in shape)
        self._at, self._base = at, base
        self._writes = []  # (selection, value) in the order of time
        self._visible = None  # how many writes a frozen reader sees

    def __array__(self, *args, **kwargs):
        raise Undecided("an array of symbolic size cannot become a numpy array")

    def __bool__(self):
        raise Undecided("an array of symbolic size has no truth value")

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return sp.prod(self.shape)

    @property
    def T(self):
        return SizedArray(self.shape[::-1], lambda *ix: self.at(*ix[::-1]), self)

    def _owner(self):
        return self if self._base is None else self._base._owner()

    def freeze(self):
        """The value at this moment, as numpy's eager evaluation sees it."""
        owner = self._owner()
        now = len(owner._writes)

        def at(*ix):
            before = owner._visible
            owner._visible = now if before is None else min(before, now)
            try:
                return self.at(*ix)
            finally:
                owner._visible = before

        return SizedArray(self.shape, at)

    copy = freeze

    def at(self, *ix):
        """The expression in one cell."""
        if len(ix) != self.ndim:
            raise Undecided(f"{len(ix)} indices into {self.ndim} axes")
        ix = tuple(sp.expand(expression(i)) for i in ix)
        for selection, value in reversed(self._writes[: self._visible]):
            inner = _inside(ix, selection)
            if inner is not None:
                return value.at(*inner)
        return expression(self._at(*ix))

    # indexing

    def __getitem__(self, key):
        key = self._full(key)
        if any(isinstance(k, SizedArray) for k in key):
            return self._gather(key)
        shape, plan, axis = [], [], 0  # plan: (start, step) of every own axis; step 0 is a single cell
        fresh = []  # for every axis of the result, the own axis it runs along, or None
        for k in key:
            if k is None:
                shape.append(1)
                fresh.append(None)
                continue
            if isinstance(k, slice):
                start, step, length = _slice(k, self.shape[axis])
                shape.append(length)
                fresh.append(axis)
                plan.append((start, step))
            else:
                plan.append((_cell(expression(k), self.shape[axis]), 0))
            axis += 1
        if not shape:
            return Scalar(self.at(*[start for start, _ in plan]))

        def at(*ix):
            own = [start for start, _ in plan]
            for i, axis in zip(ix, fresh, strict=True):
                if axis is not None:
                    own[axis] = plan[axis][0] + plan[axis][1] * i
            return self.at(*own)

        return SizedArray(shape, at, self)

    def _full(self, key):
        key = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, (bool, np.bool_, list, np.ndarray)) for k in key):
            raise Undecided(f"an index {key}")
        used = sum(k is not None and k is not Ellipsis for k in key)
        rest = (slice(None),) * (self.ndim - used)
        for place, k in enumerate(key):
            if k is Ellipsis:
                return key[:place] + rest + key[place + 1 :]
        return key + rest

    def _gather(self, key):
        axis = next(a for a, k in enumerate(key) if isinstance(k, SizedArray))
        if any(not (isinstance(k, slice) and k == slice(None)) for a, k in enumerate(key) if a != axis):
            raise Undecided("an index array together with other indices")
        where, source, length = key[axis].freeze(), self.freeze(), self.shape[axis]

        def at(*ix):
            chosen = where.at(*ix[axis : axis + where.ndim])
            return source.at(*ix[:axis], _cell(chosen, length), *ix[axis + where.ndim :])

        return SizedArray(self.shape[:axis] + where.shape + self.shape[axis + 1 :], at)

    def __setitem__(self, key, value):
        if self._base is not None:
            raise Undecided("a write through a view")
        key = self._full(key)
        if not all(isinstance(k, slice) for k in key):
            raise Undecided("a write to single cells outside a kernel")
        selection = [_slice(k, length) for k, length in zip(key, self.shape, strict=True)]
        shape = tuple(length for _, _, length in selection)
        self._writes.append((selection, _broadcast_to(value, shape)))

    # computing

    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        if method != "__call__" or kwargs:
            raise Undecided(f"numpy.{ufunc.__name__}.{method} {kwargs}")
        args = [_frozen(a) for a in args]
        if ufunc is np.matmul:
            return _matmul(*args)
        if ufunc not in _ELEMENTWISE:
            raise Undecided(f"numpy.{ufunc.__name__}")
        return _broadcast(_ELEMENTWISE[ufunc], *args)

    def __array_function__(self, function, types, args, kwargs):
        if function not in _FUNCTIONS:
            raise Undecided(f"numpy.{function.__name__}")
        return _FUNCTIONS[function](*args, **kwargs)

    def reshape(self, *shape):
        """Merge the first or the last two axes, or split the last into two; a shape that does not fit raises ValueError."""
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        if self.ndim > 2 and tuple(shape) == (-1, *self.shape[2:]):
            first_two = lambda i, *ix: self.at(*_divided(i, self.shape[1]), *ix)
            return SizedArray((self.shape[0] * self.shape[1], *self.shape[2:]), first_two, self)
        kept = min(len(shape), self.ndim) - 1
        if abs(len(shape) - self.ndim) != 1 or any(a != b for a, b in zip(shape[:kept], self.shape[:kept], strict=True)):
            raise Undecided(f"reshape from {self.shape} to {shape}")
        old, new = sp.prod(self.shape[kept:]), sp.prod(shape[kept:])
        if shape[-1] == -1 and kept == len(shape) - 1:
            shape, new = (*shape[:kept], old), old
        if sp.expand(new - old) != 0:
            raise ValueError(f"cannot reshape {self.shape} into {shape}")
        merged = lambda *ix: self.at(*ix[:-1], *_divided(ix[-1], self.shape[-1]))
        split = lambda *ix: self.at(*ix[:-2], ix[-2] * shape[-1] + ix[-1])
        return SizedArray(shape, merged if len(shape) < self.ndim else split, self)

    def sum(self, axis=None, keepdims=False):
        return self._reduce(axis, keepdims, lambda f, length, kept: _total(f, length))

    def max(self, axis=None, keepdims=False):
        return self._extremum(axis, keepdims)

    def min(self, axis=None, keepdims=False):
        return self._extremum(axis, keepdims)

    def _extremum(self, axis, keepdims):
        # an arbitrary function of the other indices: sound for results that may not depend on it
        name = sp.Function(f"extremum_{next(_serial)}", real=True)
        return self._reduce(axis, keepdims, lambda f, length, kept: name(*kept))

    def _reduce(self, axis, keepdims, how):
        if axis is None:
            raise Undecided("a reduction over all axes; name one")
        source, axis = self.freeze(), _axis(axis, self.ndim)
        length = self.shape[axis]

        def at(*ix):
            kept = ix[:axis] + ix[axis + keepdims :]
            return how(lambda j: source.at(*kept[:axis], j, *kept[axis:]), length, kept)

        return SizedArray(self.shape[:axis] + (1,) * keepdims + self.shape[axis + 1 :], at)


def sized(name, *shape):
    """An array of free real entries name[i, j, ..]: what `symbols` is for concrete sizes."""
    base = sp.IndexedBase(name, real=True)
    return SizedArray(shape, lambda *ix: base[tuple(sp.expand(i) for i in ix)])


def integers(name, *shape):
    """An array of free integer entries name(i, j, ..)."""
    function = sp.Function(name, integer=True)
    return SizedArray(shape, lambda *ix: function(*ix))


def filled(shape, value):
    """An array with one value everywhere, for instance a single position: filled((1,), m)."""
    return SizedArray(shape, lambda *ix: expression(value))


def entries(layout, *arrays):
    """One generic cell of each array, or both members of a generic pair of its last axis: lists of expressions.

    All arrays are read at the same indices. `layout` is None, "interleaved" or "half".
    """
    shape = arrays[0].shape
    for other in arrays[1:]:
        if len(other.shape) != len(shape) or any(sp.expand(a - b) != 0 for a, b in zip(shape, other.shape, strict=True)):
            raise ValueError(f"arrays of shapes {shape} and {other.shape}")
    if layout is None:
        cells = [_generic(shape)]
    else:
        lead = _generic(shape[:-1])
        cells = [(*lead, j) for j in pair(layout, shape[-1])[1:]]
    return [[a.at(*cell) for cell in cells] for a in arrays]


def pair(layout, length):
    """A generic pair of an axis of even length: (t, first, second), where t < length / 2 numbers the pair."""
    half = sp.sympify(length) / 2
    if not half.is_integer or layout == "single":
        raise Undecided(f"pairs of layout {layout!r} along an axis of length {length}")
    t = index(half, "t")
    return (t, *_members(layout, t, half))


def _generic(shape):
    return tuple(sp.Integer(0) if n == 1 else index(n) for n in shape)


# sums over a symbolic axis

_partition = ("single", "interleaved", "half")
_serial = iter(range(10**9))


@contextmanager
def summing(layout):
    """Sum axes of size 2h over pairs of this layout, so that both sides of an equation use one partition."""
    global _partition
    saved, _partition = _partition, (layout, "single")
    try:
        yield
    finally:
        _partition = saved


def _members(layout, t, half):
    return {"single": (t,), "interleaved": (2 * t, 2 * t + 1), "half": (t, t + half)}[layout]


def _total(f, length):
    length = sp.sympify(length)
    if length.is_Integer:
        return sp.Add(*[f(sp.Integer(j)) for j in range(int(length))])
    refusal = None
    for layout in _partition:
        count = length if layout == "single" else length / 2
        if not count.is_integer:
            continue
        j = index(count, "j")
        try:
            return sp.Sum(sp.Add(*[f(member) for member in _members(layout, j, count)]), (j, 0, count - 1))
        except Undecided as error:
            refusal = error
    raise refusal


# index arithmetic


def _slice(k, length):
    """(start, step, length) of a slice with positive step, or of a whole axis in reverse; numpy would clip what is refused."""
    if k.start is None and k.stop is None and k.step == -1:
        return length - 1, sp.Integer(-1), length
    step, start = expression(1 if k.step is None else k.step), expression(0 if k.start is None else k.start)
    stop = length if k.stop is None else expression(k.stop)
    start, stop = (sp.expand(length + end) if end.is_negative else end for end in (start, stop))
    if not step.is_positive:
        raise Undecided(f"a slice with step {step}")
    if not (nonnegative(start) and nonnegative(stop - start) and nonnegative(length - stop)):
        raise Undecided(f"a slice {k} of an axis of length {length}")
    extent = sp.expand(stop - start)
    quotient, remainder = _divided(extent, step)
    return start, step, quotient if remainder == 0 else quotient + 1


def _axis(axis, ndim):
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim


def _cell(i, length):
    """An index as numpy means it; one that may lie outside is refused."""
    if nonnegative(i) and nonnegative(length - 1 - i):
        return i
    if nonnegative(-1 - i) and nonnegative(i + length):
        return sp.expand(i + length)
    raise Undecided(f"index {i} into an axis of length {length}")


def _divided(i, n):
    """Quotient and remainder of an index: by a number from integer coefficients, by a symbolic size from bounds on the rest."""
    i, n = sp.expand(i), sp.sympify(n)
    if not n.is_Integer:
        # a quotient q is about the coefficient of some size; 0 <= i - q n < n decides, since only one q obeys it
        for s in sorted(n.free_symbols, key=str):
            number, terms = sp.expand(i.coeff(s) / n.coeff(s)).as_coeff_Add()
            for q in (terms + sp.floor(number), terms + sp.floor(number) - 1):
                rest = sp.expand(i - q * n)
                if q.is_integer and nonnegative(rest) and nonnegative(n - 1 - rest):
                    return q, rest
        raise Undecided(f"{i} divided by {n}")
    number, rest = i.as_coeff_Add()
    quotient = sp.expand(rest / n)
    if not (number.is_Integer and quotient.is_integer):
        raise Undecided(f"{i} divided by {n}")
    return quotient + number // n, number % n


def _inside(ix, selection):
    """The indices within a written selection, or None if the cell lies outside it."""
    inner = []
    for i, (start, step, length) in zip(ix, selection, strict=True):
        quotient, remainder = _divided(i - start, step)
        if remainder != 0 or nonnegative(-1 - quotient) or nonnegative(quotient - length):
            return None
        if not (nonnegative(quotient) and nonnegative(length - 1 - quotient)):
            raise Undecided(f"is {quotient} inside a write of length {length}?")
        inner.append(quotient)
    return inner


# numpy's functions


def _frozen(a):
    return a.freeze() if isinstance(a, SizedArray) else a


def _shape(a):
    return tuple(sp.sympify(n) for n in getattr(a, "shape", ()))


def _same(left, right):
    return len(left) == len(right) and all(sp.expand(a - b) == 0 for a, b in zip(left, right, strict=True))


def _common_shape(*shapes):
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
    shape = _shape(a)
    if not shape:
        return expression(a[()] if isinstance(a, np.ndarray) else a)
    own = [sp.Integer(0) if n == 1 else i for i, n in zip(ix[len(ix) - len(shape) :], shape, strict=True)]
    return a.at(*own) if isinstance(a, SizedArray) else expression(a[tuple(int(i) for i in own)])


def _broadcast(f, *args):
    return SizedArray(_common_shape(*map(_shape, args)), lambda *ix: f(*[_read(a, ix) for a in args]))


def _matmul(a, b):
    if a.ndim == 1 and b.ndim == 1:
        if sp.expand(_shape(a)[0] - _shape(b)[0]) != 0:
            raise ValueError(f"matmul of shapes {a.shape} and {b.shape}")
        return Scalar(_total(lambda j: a.at(j) * b.at(j), a.shape[0]))
    if a.ndim < 2 or b.ndim < 2:
        raise Undecided("a product of a matrix and a vector; add an axis")
    if sp.expand(_shape(a)[-1] - _shape(b)[-2]) != 0:
        raise ValueError(f"matmul of shapes {a.shape} and {b.shape}")
    lead = _common_shape(_shape(a)[:-2], _shape(b)[:-2]) if a.ndim > 2 or b.ndim > 2 else ()

    def at(*ix):
        row, column = ix[-2], ix[-1]
        return _total(lambda j: _row(a, ix, (row, j)) * _row(b, ix, (j, column)), _shape(a)[-1])

    return SizedArray((*lead, _shape(a)[-2], _shape(b)[-1]), at)


def _row(a, ix, last):
    shape = _shape(a)
    lead = ix[: len(ix) - 2][len(ix) - len(shape) :] if len(shape) > 2 else ()
    own = [sp.Integer(0) if n == 1 else i for i, n in zip(lead, shape[:-2], strict=True)]
    return a.at(*own, *last) if isinstance(a, SizedArray) else expression(a[tuple(int(i) for i in (*own, *last))])


def _smaller(a, b):
    return a if decide(sp.Le(a, b)) else b


def _larger(a, b):
    return a if decide(sp.Ge(a, b)) else b


_ELEMENTWISE = {
    np.add: lambda a, b: a + b,
    np.subtract: lambda a, b: a - b,
    np.multiply: lambda a, b: a * b,
    np.true_divide: lambda a, b: a / b,
    np.floor_divide: lambda a, b: a // b,
    np.power: lambda a, b: a**b,
    np.negative: lambda a: -a,
    np.positive: lambda a: a,
    np.square: lambda a: a**2,
    np.conjugate: sp.conjugate,
    np.cos: sp.cos,
    np.sin: sp.sin,
    np.exp: sp.exp,
    np.absolute: lambda a: a if decide(sp.Ge(a, 0)) else -a,
    np.minimum: _smaller,
    np.maximum: _larger,
    np.less: sp.Lt,
    np.less_equal: sp.Le,
    np.greater: sp.Gt,
    np.greater_equal: sp.Ge,
    np.equal: sp.Eq,
}


def _empty_like(a, **kwargs):
    def unwritten(*ix):
        raise Undecided(f"a read of the unwritten cell {ix}")

    return SizedArray(a.shape, unwritten)


def _stack(arrays, axis=0):
    arrays = [_frozen(a) for a in arrays]
    if axis != -1:
        raise Undecided(f"stack along axis {axis}")
    if any(not _same(_shape(arrays[0]), _shape(a)) for a in arrays[1:]):
        raise ValueError(f"stack of shapes {[_shape(a) for a in arrays]}")
    return SizedArray((*_shape(arrays[0]), len(arrays)), lambda *ix: _read(arrays[int(ix[-1])], ix[:-1]))


def _concatenate(arrays, axis=0):
    arrays = [_frozen(a) for a in arrays]
    ndim = len(_shape(arrays[0]))
    axis = _axis(axis, ndim)
    lengths = [_shape(a)[axis] for a in arrays]
    for a in arrays[1:]:
        if any(sp.expand(m - n) != 0 for x, (m, n) in enumerate(zip(_shape(arrays[0]), _shape(a), strict=True)) if x != axis):
            raise ValueError(f"concatenate of shapes {arrays[0].shape} and {a.shape} along axis {axis}")

    def at(*ix):
        j = ix[axis]
        for a, length in zip(arrays, lengths, strict=True):
            if nonnegative(length - 1 - j):
                return _read(a, (*ix[:axis], j, *ix[axis + 1 :]))
            if not nonnegative(j - length):
                raise Undecided(f"which part holds index {j}?")
            j = sp.expand(j - length)
        raise IndexError(f"index {ix[axis]} of a concatenation of lengths {lengths}")

    shape = list(_shape(arrays[0]))
    shape[axis] = sp.Add(*lengths)
    return SizedArray(shape, at)


def _swapaxes(a, first, second):
    order = list(range(a.ndim))
    order[first], order[second] = order[second], order[first]
    return SizedArray([a.shape[o] for o in order], lambda *ix: a.at(*[ix[o] for o in order]), a)


def _where(condition, yes, no):
    condition, yes, no = _frozen(condition), _frozen(yes), _frozen(no)
    shape = _common_shape(*map(_shape, (condition, yes, no)))

    def at(*ix):
        truth = _read(condition, ix)
        return _read(yes if (bool(truth) if truth.is_number else decide(truth)) else no, ix)

    return SizedArray(shape, at)


def _take_along_axis(a, indices, axis):
    a, indices, axis = _frozen(a), _frozen(indices), _axis(axis, a.ndim)
    if a.ndim != indices.ndim:
        raise ValueError(f"take_along_axis of shapes {a.shape} and {indices.shape}")
    shape = list(
        _common_shape((*a.shape[:axis], 1, *a.shape[axis + 1 :]), (*indices.shape[:axis], 1, *indices.shape[axis + 1 :]))
    )
    shape[axis] = indices.shape[axis]

    def at(*ix):
        return _read(a, (*ix[:axis], _cell(_read(indices, ix), a.shape[axis]), *ix[axis + 1 :]))

    return SizedArray(shape, at)


def _cumsum(a, axis=None):
    if axis is None:
        raise Undecided("a cumulative sum over all axes; name one")
    a, axis = _frozen(a), _axis(axis, a.ndim)

    def at(*ix):
        j = index(ix[axis] + 1, "j")
        return sp.Sum(a.at(*ix[:axis], j, *ix[axis + 1 :]), (j, 0, ix[axis]))

    return SizedArray(a.shape, at)


def _broadcast_to(a, shape):
    a = _frozen(a)
    if not _same(_common_shape(_shape(a), shape := tuple(map(sp.sympify, shape))), shape):
        raise ValueError(f"shape {_shape(a)} does not broadcast to {shape}")
    return SizedArray(shape, lambda *ix: _read(a, ix))


def _sliding_window_view(a, window_shape, axis):
    shape, axis = list(a.shape), _axis(axis, a.ndim)
    if not nonnegative(shape[axis] - window_shape):
        raise Undecided(f"windows of {window_shape} in an axis of length {shape[axis]}")
    shape[axis] = sp.expand(shape[axis] - window_shape + 1)
    return SizedArray((*shape, window_shape), lambda *ix: a.at(*ix[:axis], ix[axis] + ix[-1], *ix[axis + 1 : -1]), a)


_FUNCTIONS = {
    np.empty_like: _empty_like,
    np.zeros_like: lambda a, **kwargs: filled(a.shape, 0),
    np.ones_like: lambda a, **kwargs: filled(a.shape, 1),
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
