"""Arrays of symbolic size: shipped numpy code executed once for all sizes.

A `SizedArray` has a shape whose entries may be symbols (N, 2*h) and a function from indices to expressions. It implements the
part of numpy that specifications use, with numpy's semantics: ufuncs compute eagerly (a result remembers the memory as it
was), slices are views, writes are seen by later reads. Anything else raises `Undecided`; nothing is guessed. It has no
`.real`, and `np.asarray` of it raises.
"""

import sys
from contextlib import contextmanager

import numpy as np
import sympy as sp

from proofs.kit import cases, dtypes, paths
from proofs.kit.cases import at_case, settled
from proofs.kit.indices import axis_of, cell_of, divided, inside, slice_of
from proofs.kit.record import RECORD
from proofs.kit.symbols import Scalar, expression, extent, index
from proofs.kit.verdicts import Undecided, frozen

UFUNCS, FUNCTIONS = {}, {}  # what numpy's functions do with these arrays; filled by proofs.kit.functions


class SizedArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array given by its shape and a function from indices to expressions."""

    __array_priority__ = 1000
    frozen = False  # an argument of a theorem: shipped code must not write to it

    def __init__(self, shape, at, base=None, kind=None):
        self.kind = kind or (base.kind if base is not None else "f")
        self.frozen = base is not None and base.frozen
        self.extents = tuple(at_case(expression(n)) for n in shape)
        for n in self.extents:
            cases.use(n)
        self._at, self._base = at, base
        self._writes = []  # (selection, value) in the order of time
        self._visible = None  # how many writes a frozen reader sees
        self._known = {}  # cells that were read

    @property
    def __class__(self):
        """To the kit and to numpy what it is; to code that asks, an array like any other."""
        caller = sys._getframe(1).f_code.co_filename
        return SizedArray if caller.startswith(cases.KIT) or "/numpy/" in caller else np.ndarray

    def __array__(self, *args, **kwargs):
        raise Undecided("an array of symbolic size cannot become a numpy array")

    def __bool__(self):
        raise Undecided("an array of symbolic size has no truth value")

    @property
    def shape(self):
        """What shipped code sees: numbers, and sizes whose comparisons are decided."""
        return tuple(map(extent, self.extents))

    @property
    def dtype(self):
        return dtypes.Dtype(self.kind)

    def astype(self, dtype, **kwargs):
        kind = dtypes.cast(self.kind, dtype, kwargs)
        out = self.freeze()
        out.kind = kind
        return out

    def any(self):
        """No entry, as a hypothesis, which is recorded: only a contract, or a listed branch, may ask."""
        if self.kind != "b" or not cases.may_ask(cases.asker()):
            raise Undecided("any() of an array of symbolic size")
        RECORD.hypotheses[f"nowhere {self.at(*generic(self.extents))}"] = None
        return False

    def all(self):
        raise Undecided("all() of an array of symbolic size")

    @property
    def ndim(self):
        return len(self.extents)

    @property
    def size(self):
        return extent(sp.prod(self.extents))

    @property
    def T(self):
        return SizedArray(self.extents[::-1], lambda *ix: self.at(*ix[::-1]), self)

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

        return SizedArray(self.extents, at, kind=self.kind)

    copy = freeze

    def at(self, *ix):
        """The expression in one cell; a theorem may read those that there are."""
        if len(ix) != self.ndim:
            raise Undecided(f"{len(ix)} indices into {self.ndim} axes")
        ix = tuple(settled(i if i.is_Atom else sp.expand(i)) for i in map(expression, ix))
        if not sys._getframe(1).f_code.co_filename.startswith(cases.KIT):
            ix = tuple(map(cell_of, ix, self.extents))
        if paths.answering() or self._owner()._writes:  # the next answer, or a later reader, may see another value
            return self._computed(ix)
        key = ix, _partition, cases.ground()
        if key not in self._known:
            self._known[key] = self._computed(ix)
        return self._known[key]

    def _computed(self, ix):
        for selection, value in reversed(self._writes[: self._visible]):
            inner = inside(ix, selection)
            if inner is not None:
                return value.at(*inner)
        return at_case(expression(self._at(*ix)))

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
                start, step, length = slice_of(k, self.extents[axis])
                shape.append(length)
                fresh.append(axis)
                plan.append((start, step))
            else:
                plan.append((cell_of(expression(k), self.extents[axis]), 0))
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
        where, source, length = key[axis].freeze(), self.freeze(), self.extents[axis]

        def at(*ix):
            chosen = where.at(*ix[axis : axis + where.ndim])
            return source.at(*ix[:axis], cell_of(chosen, length), *ix[axis + where.ndim :])

        return SizedArray(self.extents[:axis] + where.extents + self.extents[axis + 1 :], at, kind=self.kind)

    def __setitem__(self, key, value):
        if self.frozen:
            raise frozen()
        if self._base is not None:
            raise Undecided("a write through a view")
        dtypes.store(self.kind, dtypes.kind_of(value))
        key = self._full(key)
        if not all(isinstance(k, slice) for k in key):
            raise Undecided("a write to single cells outside a kernel")
        selection = [slice_of(k, length) for k, length in zip(key, self.extents, strict=True)]
        self._writes.append((selection, FUNCTIONS[np.broadcast_to](value, tuple(length for _, _, length in selection))))

    # computing

    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        if method != "__call__" or kwargs:
            if any(a is self and self.frozen for a in kwargs.get("out", ())):
                raise frozen()
            raise Undecided(f"numpy.{ufunc.__name__}.{method} {kwargs}")
        if ufunc not in UFUNCS:
            raise Undecided(f"numpy.{ufunc.__name__}")
        return UFUNCS[ufunc](*[a.freeze() if isinstance(a, SizedArray) else a for a in args])

    def __array_function__(self, function, types, args, kwargs):
        if function not in FUNCTIONS:
            raise Undecided(f"numpy.{function.__name__}")
        return FUNCTIONS[function](*args, **kwargs)

    def reshape(self, *shape):
        """Merge the first or the last two axes, or split the last into two; a shape that does not fit raises ValueError."""
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        shape = tuple(at_case(expression(n)) for n in shape)
        if self.ndim > 2 and tuple(shape) == (-1, *self.extents[2:]):
            first_two = lambda i, *ix: self.at(*divided(i, self.extents[1]), *ix)
            return SizedArray((self.extents[0] * self.extents[1], *self.extents[2:]), first_two, self)
        kept = min(len(shape), self.ndim) - 1
        if abs(len(shape) - self.ndim) != 1 or any(a != b for a, b in zip(shape[:kept], self.extents[:kept], strict=True)):
            raise Undecided(f"reshape from {self.extents} to {shape}")
        old, new = sp.prod(self.extents[kept:]), sp.prod(shape[kept:])
        if shape[-1] == -1 and kept == len(shape) - 1:
            shape, new = (*shape[:kept], old), old
        if sp.expand(new - old) != 0:
            raise ValueError(f"cannot reshape {self.extents} into {shape}")
        merged = lambda *ix: self.at(*ix[:-1], *divided(ix[-1], self.extents[-1]))
        split = lambda *ix: self.at(*ix[:-2], ix[-2] * shape[-1] + ix[-1])
        return SizedArray(shape, merged if len(shape) < self.ndim else split, self)

    def sum(self, axis=None, keepdims=False):
        return self._reduce(axis, keepdims, lambda f, length, kept: total(f, length))

    def max(self, axis=None, keepdims=False):
        return self._extremum(axis, keepdims)

    def min(self, axis=None, keepdims=False):
        return self._extremum(axis, keepdims)

    def _extremum(self, axis, keepdims):
        # an arbitrary function of the other indices: sound for results that may not depend on it
        name = cases.again("extremum", lambda: sp.Function(f"extremum_{next(_serial)}", real=True))
        return self._reduce(axis, keepdims, lambda f, length, kept: name(*kept))

    def _reduce(self, axis, keepdims, how):
        if axis is None:
            raise Undecided("a reduction over all axes; name one")
        source, axis = self.freeze(), axis_of(axis, self.ndim)
        length = self.extents[axis]

        def at(*ix):
            kept = ix[:axis] + ix[axis + keepdims :]
            return how(lambda j: source.at(*kept[:axis], j, *kept[axis:]), length, kept)

        kind = "i" if self.kind == "b" else self.kind
        return SizedArray(self.extents[:axis] + (1,) * keepdims + self.extents[axis + 1 :], at, kind=kind)


def sized(name, *shape):
    """An array of free real entries name[i, j, ..]: what `symbols` is for concrete sizes."""
    base = sp.IndexedBase(name, real=True)
    return argument(SizedArray(shape, lambda *ix: base[tuple(sp.expand(i) for i in ix)]))


def argument(a):
    a.frozen = True
    return a


def integers(name, *shape):
    """An array of free integer entries name(i, j, ..)."""
    function = sp.Function(name, integer=True)
    return argument(SizedArray(shape, lambda *ix: function(*ix), kind="i"))


def filled(shape, value):
    """An array with one value everywhere, for instance a single position: filled((1,), m)."""
    return SizedArray(shape, lambda *ix: expression(value), kind=dtypes.kind_of(value))


def entries(layout, *arrays):
    """One generic cell of each array, or both members of a generic pair of its last axis: lists of expressions.

    All arrays are read at the same indices. `layout` is None, "interleaved" or "half".
    """
    shape = extents(arrays[0])
    for other in arrays[1:]:
        if not same(shape, extents(other)):
            raise ValueError(f"arrays of shapes {shape} and {extents(other)}")
    if layout is None:
        cells = [generic(shape)]
    else:
        lead = generic(shape[:-1])
        cells = [(*lead, j) for j in pair(layout, shape[-1])[1:]]
    return [[a.at(*cell) for cell in cells] for a in arrays]


def pair(layout, length):
    """A generic pair of an axis of even length: (t, first, second), where t < length / 2 numbers the pair."""
    half = at_case(expression(length)) / 2
    if not half.is_integer or layout == "single":
        raise Undecided(f"pairs of layout {layout!r} along an axis of length {length}")
    t = index(half, "t")
    return (t, *_members(layout, t, half))


def extents(a):
    """The shape of an array or a number in expressions."""
    return a.extents if isinstance(a, SizedArray) else tuple(map(sp.Integer, getattr(a, "shape", ())))


def same(left, right):
    """Whether two shapes are equal for all sizes."""
    return len(left) == len(right) and all(sp.expand(a - b) == 0 for a, b in zip(left, right, strict=True))


def generic(shape):
    """A generic cell."""
    return tuple(sp.Integer(0) if at_case(n) == 1 else index(n) for n in shape)


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


def total(f, length):
    """The sum of f over 0 .. length - 1, in the partition of `summing`."""
    length = at_case(expression(length))
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
