"""Scalars that numpy can compute with: symbols for concrete sizes, and symbolic sizes.

numpy's object loops call `element.cos()`, `element + other`, `element > other`. `Scalar` answers them with sympy
expressions, so shipped functions run on symbols unchanged. A comparison goes to `decide`.
"""

import functools
import operator

import numpy as np
import sympy as sp

from proofs.kit import cases, dtypes
from proofs.kit.cases import Remainder, at_case
from proofs.kit.normal_form import never_zero
from proofs.kit.paths import decide
from proofs.kit.record import RECORD
from proofs.kit.verdicts import Undecided, frozen

_printed = functools.lru_cache(2**14)(repr)  # results of several runs are compared as texts, and printing takes longest
_relation = functools.lru_cache(2**14, typed=True)(lambda op, a, b: op(a, b))  # each run compares the same


class Scalar:
    """A sympy expression as an element of a numpy array."""

    __slots__ = ("e",)
    is_positive = None  # read by checks of arguments; a comparison decides

    def __init__(self, value):
        self.e = expression(value)

    def __repr__(self):
        return _printed(self.e)

    def __hash__(self):
        if not self.e.is_number:  # a dictionary would compare by structure: two sizes of two names would never be equal
            raise TypeError(f"unhashable type: {self.e} as a key of a dictionary or a set; compare it with == in an if")
        return hash(self.e)

    def __bool__(self):
        raise TypeError("a symbol has no truth value")

    def __index__(self):
        if self.e.is_Integer:
            return int(self.e)
        raise TypeError(f"the symbol {self.e} where a number is needed")

    __int__ = __index__

    def __float__(self):
        raise TypeError("a symbol has no float value")

    def _sympy_(self):
        return self.e

    def __neg__(self):
        return Scalar(-self.e)

    def __pos__(self):
        return self

    def __abs__(self):
        return self if self >= 0 else -self

    def conjugate(self):
        return Scalar(sp.conjugate(self.e))


def expression(value):
    """The sympy expression behind a Scalar, a number, a boolean or an expression; a float is the dyadic number it is."""
    if isinstance(value, Scalar):
        return value.e
    if isinstance(value, sp.Basic):
        return value
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return sp.Integer(int(value))
    if isinstance(value, (float, np.floating)) and np.isfinite(value):
        return sp.Rational(*value.as_integer_ratio())
    if isinstance(value, (complex, np.complexfloating)):
        return expression(value.real) + sp.I * expression(value.imag)
    if isinstance(value, str):
        raise Undecided(f"the text {value!r} as a number")
    return sp.sympify(value, strict=True)  # otherwise sympy reads what has entries to its end, and arrays of any size have none


def _is_array(value):
    return hasattr(value, "__array_ufunc__") and not np.isscalar(value)


def divided(a, b):
    """a / b for b not 0; unless that is clear, it is recorded."""
    if not never_zero(b):
        RECORD.denominators[_printed(b)] = None
    return a / b


def raised(a, b):
    """a to the power b; a negative power of what may be 0 is recorded."""
    if not (b.is_Rational and b >= 0) and not never_zero(a):
        RECORD.denominators[_printed(a)] = None
    return a**b


_OPERATIONS = {name: getattr(operator, name) for name in ("add", "sub", "mul", "floordiv", "mod")}
_OPERATIONS |= {"truediv": divided, "pow": raised}


def _arithmetic(op):
    def forward(self, other):
        return NotImplemented if _is_array(other) else _made(self, other, op(self.e, expression(other)))

    def backward(self, other):
        return _made(self, other, op(expression(other), self.e))

    return forward, backward


def _made(self, other, e):
    """Arithmetic of sizes with integers stays a size, and a number once it is one; with an expression it is an expression."""
    if isinstance(self, Size) and isinstance(other, sp.Basic):
        return e
    return extent(e) if isinstance(self, Size) and e.is_integer and e.free_symbols <= cases._sizes else Scalar(e)


def _comparison(op):
    def compare(self, other):
        if _is_array(other):
            return NotImplemented
        if other is None or isinstance(other, str):
            return op is sp.Ne
        return decide(_relation(op, self.e, expression(other)))

    return compare


def _function(f):
    return lambda self: Scalar(f(self.e))


for _name, _op in _OPERATIONS.items():
    _forward, _backward = _arithmetic(_op)
    setattr(Scalar, f"__{_name}__", _forward)
    setattr(Scalar, f"__r{_name}__", _backward)
for _name, _op in {"lt": sp.Lt, "le": sp.Le, "gt": sp.Gt, "ge": sp.Ge, "eq": sp.Eq, "ne": sp.Ne}.items():
    setattr(Scalar, f"__{_name}__", _comparison(_op))
for _name in ("cos", "sin", "exp", "sqrt", "log", "cosh", "sinh", "tanh"):
    setattr(Scalar, _name, _function(getattr(sp, _name)))
Scalar.log2 = _function(lambda e: sp.log(e, 2))


# sizes


class Size(Scalar):
    """A symbolic size as shipped code sees it: a question about it is decided by facts, splits the theorem, or is refused."""

    __slots__ = ()
    is_integer = True

    def __repr__(self):
        return cases.spelled(self.e)

    def __mod__(self, other):
        return extent(_quotient_and_rest(self.e, expression(other))[1])

    def __floordiv__(self, other):
        return extent(_quotient_and_rest(self.e, expression(other))[0])


def size(name, least=1):
    """A symbolic size: an integer of at least `least`, 1 or 0."""
    return Size(cases.new_size(name, least))


def extent(e):
    """A size for shipped code: an int if it is known, a Size otherwise."""
    e = at_case(expression(e))
    return int(e) if e.is_Integer else Size(e)


def _quotient_and_rest(n, d):
    n, d = at_case(sp.expand(n)), at_case(d)
    if not d.is_Integer:
        q = sp.cancel(n / d)
        if q.is_polynomial() and q.is_integer:
            return q, sp.Integer(0)
        raise Undecided(f"{n} divided by {d}")
    number, rest = n.as_coeff_Add()
    if sp.expand(rest / d).is_integer:
        return sp.expand(rest / d) + number // d, number % d
    cases.ask(Remainder(n, int(d)))


def index(length, name="i"):
    """A fresh index with 0 <= index < length."""
    return cases.index(expression(length), name)


# symbols


ASSUMPTIONS = ("real", "integer", "positive", "nonnegative", "nonzero")


def symbol(name, **assumptions):
    """One real symbol; assumptions as in sympy (integer=True, positive=True)."""
    return _entry(name, name, assumptions)


def _entry(name, array, assumptions):
    """The symbol of this name, an entry of the array of that name."""
    if more := assumptions.keys() - ASSUMPTIONS:
        raise ValueError(f"symbol: {name!r} is made {', '.join(more)}, which no sentence says; pass {', '.join(ASSUMPTIONS)}")
    if name.startswith(("log_", "_")) or "#" in name:
        raise ValueError(f"symbol: {name!r} is a name of the kit's own; take another")
    if RECORD.arrays.setdefault(name, array) != array:
        raise cases.refusal(f"two arrays {array!r} and {RECORD.arrays[name]!r} with one entry {name}; rename one")
    return Scalar(sp.Symbol(name, **({"real": True} | assumptions)))


class SymbolArray(np.ndarray):
    """An object array of Scalars whose dtype is that of its entries, and which a narrower dtype does not truncate unseen."""

    kind = None  # of an array that waits for its entries

    def __array_finalize__(self, other):
        self.kind = getattr(other, "kind", None)

    @property
    def dtype(self):
        return dtypes.Dtype(self.kind or self)

    def astype(self, dtype, **kwargs):
        dtypes.cast(self.dtype.true_kind, dtype, kwargs)
        return self.copy()

    def __setitem__(self, key, value):
        if not self.flags.writeable:
            raise frozen()
        if self.kind is not None:
            dtypes.store(self.kind, dtypes.kind_of(value))
        super().__setitem__(key, value)

    def __array_ufunc__(self, ufunc, method, *args, out=None, **kwargs):
        plain = [a.view(np.ndarray) if isinstance(a, SymbolArray) else a for a in args]
        if ufunc in (np.isfinite, np.isnan):
            return np.full(self.shape, ufunc is np.isfinite)  # symbols stand for numbers
        if out is not None:
            for a in out:
                if not a.flags.writeable:
                    raise frozen()
            kwargs["out"] = tuple(a.view(np.ndarray) if isinstance(a, SymbolArray) else a for a in out)
        result = getattr(ufunc, method)(*plain, **kwargs)
        if out is not None:
            return out[0]
        return result.view(SymbolArray) if isinstance(result, np.ndarray) and result.dtype == object else result

    def __array_function__(self, function, types, args, kwargs):
        if function in (np.empty_like, np.zeros_like, np.ones_like, np.full_like):
            kind = dtypes.cast(args[0].dtype.true_kind, kwargs.pop("dtype", None), kwargs, widen=True)
            made = super().__array_function__(function, types, args, kwargs)
            made.kind = kind
            return made
        return super().__array_function__(function, types, args, kwargs)


def symbols(name, *shape, **assumptions):
    """An object array of real symbols name_0_0, name_0_1, ..: what a float array is to numbers. It is frozen: an argument."""
    out = np.empty(shape, dtype=object)
    for ix in np.ndindex(*shape):
        out[ix] = _entry("_".join([name, *map(str, ix)]), name, assumptions)
    out.flags.writeable = False
    return out.view(SymbolArray)


def room(name, *shape):
    """As `symbols`, but to be written to: what a kernel gets as its output."""
    return symbols(name, *shape).view(np.ndarray).copy()


def array(entries):
    """An object array of Scalars from nested lists of Scalars, expressions and numbers; frozen."""
    out = np.array(entries, dtype=object)
    for ix in np.ndindex(*out.shape):
        out[ix] = Scalar(out[ix])
    out.flags.writeable = False
    return out.view(SymbolArray)
