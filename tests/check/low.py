"""Low: a specification run as an honest implementation in few bits would run: every operation rounded, sums in several orders.

Two values are carried: in the arithmetic of the style, and in float32 as angles and constants are held; cos and sin read it.
"""

from typing import NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from posref.check.engine import CONSTANTS
from posref.check.tensors import round_to


class Style(NamedTuple):
    """Arithmetic, the format of tensors, the order of sums, and whether products are rounded before they are added."""

    arithmetic: str = "float32"
    stored: str = "float32"
    order: str = "forward"
    fused: bool = False


STYLES = [
    *(Style(order=order, fused=fused) for order in ("forward", "backward", "pairwise") for fused in (False, True)),
    *(Style(stored=dtype, order=order) for dtype in ("bfloat16", "float16") for order in ("forward", "pairwise")),
    *(Style(dtype, dtype, order) for dtype in ("bfloat16", "float16") for order in ("forward", "backward", "pairwise")),
]


def run(spec, arguments, style):
    """What the specification gives in this style, as float64 numbers of its output format."""

    def low(name, value):
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            return Low(value, style)
        return Low(np.float64(value), style) if name in CONSTANTS and isinstance(value, (int, float)) else value

    y = spec(**{name: low(name, value) for name, value in arguments.items()})
    return np.real(rounded(lifted(y, style).v, style.stored))


def rounded(x, dtype):
    if np.iscomplexobj(x):
        return rounded(x.real, dtype) + 1j * rounded(x.imag, dtype)
    return round_to(x, dtype).reshape(np.shape(x))


class Low(NDArrayOperatorsMixin):
    """`v` in the arithmetic of the style, `w` in float32; `t` if the value was stored in the format of tensors."""

    __hash__ = None
    __array_priority__ = 1000
    dtype = np.dtype(object)
    is_positive = None

    def __init__(self, v, style, w=None, t=False):
        self.v, self.style, self.t = np.asarray(v), style, t
        self.w = self.v if w is None else np.asarray(w)

    shape = property(lambda x: x.v.shape)
    ndim = property(lambda x: x.v.ndim)
    size = property(lambda x: x.v.size)
    T = property(lambda x: np.transpose(x))
    real = property(lambda x: Low(x.v.real, x.style, x.w.real))
    imag = property(lambda x: Low(x.v.imag, x.style, x.w.imag))

    def __len__(self):
        return len(self.v)

    def __iter__(self):
        return (self[i] for i in range(len(self.v)))

    def __float__(self):
        return float(self.v)

    def __bool__(self):
        return bool(self.v)

    def __getitem__(self, key):
        return Low(self.v[key], self.style, self.w[key], self.t)

    def __setitem__(self, key, value):
        value = lifted(value, self.style)
        self.v[key], self.w[key] = value.v, value.w

    def _each(self, change):
        return Low(change(self.v), self.style, change(self.w), self.t)

    def reshape(self, *shape):
        return self._each(lambda x: x.reshape(*shape))

    def repeat(self, repeats, axis):
        return self._each(lambda x: x.repeat(repeats, axis))

    def astype(self, *_, **__):
        return self

    def copy(self):
        return self._each(np.copy)

    def sum(self, axis=None, keepdims=False):
        return total(self, axis=axis, keepdims=keepdims)

    def max(self, **named):
        return self._each(lambda x: x.max(**named))

    def min(self, **named):
        return self._each(lambda x: x.min(**named))

    def any(self, **named):
        return self.v.any(**named)

    def all(self, **named):
        return self.v.all(**named)

    def __array_ufunc__(self, ufunc, method, *inputs, **_):
        if method != "__call__":
            return NotImplemented
        name, a, style = ufunc.__name__, [lifted(x, self.style) for x in inputs], self.style
        if name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "isfinite", "isnan"):
            return ufunc(*(x.v for x in a))
        if name == "matmul":
            return matmul(*a)
        if name in ("cos", "sin") or (name == "exp" and np.iscomplexobj(a[0].v)):
            y = ufunc(a[0].w)
            return Low(rounded(y, style.arithmetic), style, rounded(y, "float32"))
        if name == "power":
            y = rounded(ufunc(np.asarray(a[0].w, float), a[1].w), "float32")
            return Low(y, style, y)
        stored = any(x.t for x in a) and name in ("add", "subtract", "multiply", "divide")
        y = rounded(ufunc(*(x.v for x in a)), style.stored if stored else style.arithmetic)
        return Low(y, style, rounded(ufunc(*(x.w for x in a)), "float32"), stored)

    def __array_function__(self, function, types, args, named):
        if function.__name__ in FUNCTIONS:
            return FUNCTIONS[function.__name__](*args, **named)

        def walked(tree, get):
            if isinstance(tree, Low) or (isinstance(tree, np.ndarray) and tree.dtype.kind in "fcO"):
                return get(lifted(tree, self.style))
            if isinstance(tree, tuple):  # a named tuple, too
                return tuple(walked(x, get) for x in tree)
            return [walked(x, get) for x in tree] if isinstance(tree, list) else tree

        v, w = (function(*walked(tuple(args), get), **named) for get in (lambda x: x.v, lambda x: x.w))
        return Low(v, self.style, w)


def lifted(x, style):
    if isinstance(x, Low):
        return x
    x = np.asarray(x)
    if x.dtype == object:
        parts = [lifted(i, style) for i in x.ravel()]
        return Low(*(np.array([f(p)[()] for p in parts]).reshape(x.shape) for f in (lambda p: p.v,)), style)
    return Low(rounded(x, "float32") if x.dtype.kind in "fc" else x, style)


def added(terms, dtype, style):
    """A list of arrays, added in the order of the style."""
    if style.order == "pairwise":
        while len(terms) > 1:
            pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
            terms = [rounded(pair[0] + pair[1], dtype) if len(pair) == 2 else pair[0] for pair in pairs]
        return terms[0]
    first, *rest = terms[::-1] if style.order == "backward" else terms
    for term in rest:
        first = rounded(first + term, dtype)
    return first


def product(a, b, dtype, style):
    terms = [a[..., :, i, None] * b[..., None, i, :] for i in range(a.shape[-1])]
    return added([term if style.fused else rounded(term, dtype) for term in terms], dtype, style)


def matmul(a, b):
    style = a.style
    row, column = a.ndim < 2, b.ndim < 2

    def wide(x, y):
        return x[None] if row else x, y[:, None] if column else y

    def narrow(y):
        y = y[..., 0] if column else y
        return (y[0] if column else y[..., 0, :]) if row else y

    v = product(*wide(rounded(a.v, style.stored), rounded(b.v, style.stored)), style.arithmetic, style)
    w = product(*wide(a.w, b.w), "float32", style)
    return Low(rounded(narrow(v), style.stored), style, narrow(w), True)


def total(x, axis=None, keepdims=False, **_):
    if isinstance(axis, tuple):  # one axis after another
        for one in sorted((each % x.ndim for each in axis), reverse=True):
            x = total(x, one, keepdims)
        return x

    def folded(v, dtype):
        if axis is None:
            return added(list(v.ravel()), dtype, x.style)
        y = added(list(np.moveaxis(v, axis, 0)), dtype, x.style)
        return np.expand_dims(y, axis) if keepdims else y

    return Low(folded(x.v, x.style.arithmetic), x.style, folded(x.w, "float32"))


def cumsum(x, axis=None):
    def folded(v, dtype):
        first, *rest = np.moveaxis(v, axis, 0)
        sums = [first]
        for term in rest:
            sums.append(rounded(sums[-1] + term, dtype))
        return np.moveaxis(np.stack(sums), 0, axis)

    return Low(folded(x.v, x.style.arithmetic), x.style, folded(x.w, "float32"))


def difference(x, axis=-1):
    x = np.swapaxes(x, axis, -1)
    return np.swapaxes(x[..., 1:] - x[..., :-1], axis, -1)


FUNCTIONS = {
    "sum": total,
    "cumsum": cumsum,
    "diff": difference,
    "clip": lambda x, low, high, **_: x._each(lambda v: np.clip(v, low, high)),
    "zeros_like": lambda x, **named: x._each(lambda v: np.zeros_like(v, **named)),
    "ones_like": lambda x, **named: x._each(lambda v: np.ones_like(v, **named)),
    "shape": lambda x: x.shape,
    "ndim": lambda x: x.ndim,
    "iscomplexobj": lambda x: np.iscomplexobj(x.v),
    "isrealobj": lambda x: np.isrealobj(x.v),
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
}
