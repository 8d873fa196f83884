"""Ranged: numbers that carry the largest error an honest computation may have. A specification runs on them unchanged.

All tolerances come from here. Each element has an absolute error per compute model (`posref.vectors.models`), in two layers:
one for the arithmetic of the model, one as if all were computed in the finer precision of its angles. The rules, with u the
unit roundoff of an operation (|computed - exact| <= u |exact|):

1. Operations. The product of two factors that are off by e and f is off by |b| e + |a| f + e f, plus u |a b| for its rounding.
   Quotients, roots and exponentials likewise, exactly and not to first order: exp turns e into |v| expm1(e). Powers of two,
   signs, conjugates, comparisons and functions that only move numbers (stack, take, swapaxes, ..) round nothing.
2. Angles. cos, sin and exp(i .) use the finer layer, since 16-bit code computes angles in float32; their derivative is at most
   1.
3. Constants. A float that is exact in 8 bits was chosen, and is exact. Any other was computed, like base^(-2t/d), with up to
   three roundings of an exponent of size |ln v| and four of the result: it is off by k u of the finer precision, with k = 3 |ln
   v| + 4. One k for all is too small: float32 recipes exceed ln(base) + 4 by 1.4 times. Models whose name ends in "-iterative"
   also allow phi_t = phi_{t-1} r (ggml): each step adds its own rounding and the error of r, k = |ln v| + 3t + 4. Those in
   "-given" take a stored setting, which is divided or multiplied by a factor or a position: k = 4.
4. Softmax. The number subtracted from the scores before exp is arbitrary, so a maximum carries no error.
5. Sums. n terms of total size s, added in any order or tree: each term meets at most n - 1 roundings, so the sum is off by at
   most (n - 1) u s more than its terms. (n, s) are kept, and charged when the sum is used: sums of sums are charged once. The
   result of a matrix product is rounded to the format of the tensors before it is used again.
6. Underflow. A product, quotient or exponential below the smallest normal number of its format may become 0: the absolute error
   `tiny`, 2^-126 in float32 and bfloat16. Float16 keeps smaller numbers, rounded to a multiple of 2^-24.

Products of several roundings of one number are left out. They are below 2^-5 of the sum of the others (derived in
`posref.vectors.models`), hence the factor in `allowed`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from posref.vectors.models import F16, F32, F64, MODELS, Model

# attention in 16 bits: tensors, tables and products of elements in 16 bits, sums in float32
SUMS_IN_F32 = {"bf16-f32sums": "bf16-all", "f16-f32sums": "f16-all"}
ALL_MODELS: dict[str, Model] = {**MODELS, **{name: MODELS[like] for name, like in SUMS_IN_F32.items()}}

# for each dtype of an output, from the strictest to the loosest model that a correct implementation may need
BY_DTYPE = {
    "float64": ("f64", "f32"),
    "float32": ("f32",),
    "float16": ("f16-f32math", "f16-f32sums", "f16-all"),
    "bfloat16": ("bf16-f32math", "bf16-f32sums", "bf16-all"),
}
MEANING = {
    "f64": "float64 throughout",
    "f32": "float32 angles, tables and products",
    "f16-f32math": "float32 mathematics; the result, and products of matrices on the way, stored in float16",
    "f16-f32sums": "products in float16, sums in float32",
    "f16-all": "float32 angles; tables and products in float16",
    "bf16-f32math": "float32 mathematics; the result, and products of matrices on the way, stored in bfloat16",
    "bf16-f32sums": "products in bfloat16, sums in float32",
    "bf16-all": "float32 angles; tables and products in bfloat16",
}
TINY = {3 * F16: 2.0**-25, 4 * F64: 2.0**-1022}  # by the arithmetic; float32 and bfloat16 end at 2^-126
BASIC = {int, np.int64, slice, type(None), type(...)}  # of an index that takes no array
WAYS = {"": "power", "-iterative": "repeated", "-given": "given"}
MEANING |= {f"{name}-iterative": f"{text}; angles by repeated multiplication" for name, text in MEANING.items()} | {
    f"{name}-given": f"{text}; frequencies as given" for name, text in MEANING.items()
}


def models(dtype: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The models that an output of this dtype may come from, strictest first, with their variants for making frequencies.

    >>> models("float32", {}), models("float32", {"base": 10000.0})
    (('f32',), ('f32', 'f32-iterative'))
    """
    given = arguments.get("frequencies") is not None
    ways = ("-given", "") if given else ("", "-iterative") if "base" in arguments else ("",)
    return tuple(name + way for name in BY_DTYPE.get(dtype, ()) for way in ways)


def model(name: str) -> Model:
    """The roundings of the model of this name, whatever its variant for making frequencies."""
    return ALL_MODELS[_split(name)[0]]


def _split(name: str) -> tuple[str, str]:
    """The name of a model without its variant for making frequencies, and that variant."""
    plain = name.removesuffix("-iterative").removesuffix("-given")
    return plain, WAYS[name[len(plain) :]]


def growth(v: Any, way: str = "power") -> np.ndarray:
    """The factor k of rule 3.

    >>> growth(np.array([1.0, 0.01])).round(1)
    array([ 4. , 17.8])
    """
    size = np.abs(v)
    exponent = np.abs(np.log(np.where(size > 0, size, 1)))
    steps = np.arange(np.shape(v)[-1]) if np.ndim(v) else 0
    return {"power": 3 * exponent, "repeated": exponent + 3 * steps, "given": 0 * exponent}[way] + 4


class Units(NamedTuple):
    """Unit roundoffs, one entry per layer: first those of the models, then the finer precision of each model."""

    names: tuple[str, ...]
    ways: tuple[str, ...]
    product: np.ndarray
    sum: np.ndarray
    stored: np.ndarray
    fine: np.ndarray
    tiny: np.ndarray


def units(*names: str) -> Units:
    """The unit roundoffs of these models."""
    plain, ways = zip(*map(_split, names), strict=True) if names else ((), ())
    models = [ALL_MODELS[name] for name in plain]
    fine = [m.c_phase for m in models]
    none = [0.0] * len(models)
    return Units(
        names,
        ways + ways,
        np.array([m.c_amp / 3 for m in models] + fine),
        np.array([F32 if name in SUMS_IN_F32 else m.c_amp / 3 for name, m in zip(plain, models, strict=True)] + fine),
        np.array([m.c_out for m in models] + none),
        np.array(fine + fine),
        np.array([TINY.get(m.c_amp, 2.0**-126) for m in models] + none),
    )


class Ranged(NDArrayOperatorsMixin):
    """Values `v` with one error layer per unit in `e`; `n` terms of total size `s` were added and are not charged yet."""

    __slots__ = ("e", "n", "s", "stored", "u", "v")
    __hash__ = None  # type: ignore[assignment]
    dtype = np.dtype(object)  # as symbols: specifications compute with it and convert nothing
    is_positive = None
    __array_priority__ = 1000

    def __init__(self, v: Any, u: Units, e: Any = None, s: Any = None, n: int = 1, stored: bool = False):
        self.v, self.u, self.n, self.stored = np.asarray(v), u, n, stored
        self.e = np.zeros((len(u.product), *self.v.shape)) if e is None else e
        self.s = np.abs(self.v) if s is None else s

    shape = property(lambda self: self.v.shape)
    ndim = property(lambda self: self.v.ndim)
    size = property(lambda self: self.v.size)
    T = property(lambda self: np.transpose(self))
    real = property(lambda self: Ranged(self.v.real, self.u, self.e))
    imag = property(lambda self: Ranged(self.v.imag, self.u, self.e))
    exact = property(lambda self: self.n == 1 and not self.e.any())

    def charged(self, store: bool = False) -> np.ndarray:
        """The error, with the roundings of the sum; with `store`, also with the rounding to the format of the tensors."""
        e = self.e + _per(self.u.sum, (self.n - 1) * self.s) if self.n > 1 else self.e
        return e + _per(self.u.stored, np.abs(self.v)) if self.stored or (store and not self.exact) else e

    def rounded(self, bits: int) -> "Ranged":
        """Rounded to this many significant bits; the new error covers the rounded ends of the old error."""
        e, short = self.charged(), rounded_to(self.v, bits)
        return Ranged(short, self.u, np.maximum(rounded_to(self.v + e, bits) - short, short - rounded_to(self.v - e, bits)))

    def __len__(self) -> int:
        return len(self.v)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self.v)))

    def __float__(self) -> float:
        return float(self.v)

    def __bool__(self) -> bool:
        return bool(self.v)

    def __getitem__(self, key: Any) -> "Ranged":
        every = key if isinstance(key, tuple) else (key,)
        plain = {type(each) for each in every} <= BASIC  # arrays among them would move the axis of the layers
        e = self.e[(slice(None), *every)] if plain else np.stack([layer[key] for layer in self.e])
        return Ranged(self.v[key], self.u, e, self.s[key], self.n, self.stored)

    def __setitem__(self, key: Any, value: Any) -> None:
        given = _lifted(value, self.u)
        self.v[key], self.s[key] = given.v, np.abs(given.v)
        for layer, error in zip(self.e, given.charged(), strict=True):
            layer[key] = error

    def swapaxes(self, first: int, second: int) -> "Ranged":
        return np.swapaxes(self, first, second)  # type: ignore[call-overload, no-any-return]

    def reshape(self, *shape: Any) -> "Ranged":
        v = self.v.reshape(*shape)
        return Ranged(v, self.u, self.e.reshape(-1, *v.shape), self.s.reshape(v.shape), self.n, self.stored)

    def astype(self, *_: Any, **__: Any) -> "Ranged":
        return self

    def copy(self) -> "Ranged":
        return Ranged(self.v.copy(), self.u, self.e.copy(), self.s.copy(), self.n, self.stored)

    def repeat(self, repeats: int, axis: int) -> Any:
        return _moved(np.repeat, (self, repeats), {"axis": axis}, self.u)

    def sum(self, axis: Any = None, keepdims: bool = False) -> "Ranged":
        return _sum(self, axis, keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> "Ranged":
        return Ranged(self.v.max(axis=axis, keepdims=keepdims), self.u)

    def min(self, axis: Any = None, keepdims: bool = False) -> "Ranged":
        return Ranged(self.v.min(axis=axis, keepdims=keepdims), self.u)

    def any(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self.v.any(axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self.v.all(axis=axis, keepdims=keepdims)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Any:
        operation = OPERATIONS.get(ufunc.__name__) if method == "__call__" else None
        return NotImplemented if operation is None else operation(*(_lifted(x, self.u) for x in inputs))

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        known = FUNCTIONS.get(function.__name__)
        return _moved(function, args, named, self.u) if known is None else known(*args, **named)


def constant(v: Any, u: Units) -> Ranged:
    """A number that was computed, so that it carries an error, unless it is exact in 8 bits (rule 3)."""
    k = np.stack([growth(v, "given" if way == "given" else "power") for way in u.ways])
    return Ranged(v, u, _per(u.fine, np.where(_short(np.abs(v)), 0, np.abs(v))) * k)


def allowed(y: Any, u: Units) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The values of a result, and the allowed error of every element in each model: `{model: array}`."""
    y = y if isinstance(y, Ranged) else _lifted(y, u)
    e = Ranged(y.v, u, y.e, y.s, y.n).charged()
    models = {name: model(name) for name in u.names}
    out = {name: e[i] + m.c_out * np.abs(y.v) for i, (name, m) in enumerate(models.items())}
    return y.v, {name: (1 + 2**-5) * error + models[name].floor for name, error in out.items()}


def _per(unit: np.ndarray, x: Any) -> np.ndarray:
    """unit times x, with one layer per unit."""
    return unit.reshape(-1, *[1] * np.ndim(x)) * x


def rounded_to(v: np.ndarray, bits: int) -> np.ndarray:
    """The nearest number with this many significant bits; 11 bits are float16, where more than 65504 becomes infinite."""
    drop, u = 53 - bits, np.asarray(v, dtype=float).view(np.int64)  # a carry goes to the exponent, and from there to infinity
    if not drop:
        return np.asarray(v, dtype=float)
    short = ((u + 2 ** (drop - 1) - 1 + (u >> drop & 1)) >> drop << drop).view(float)
    return np.where(np.abs(short) > 65504, np.copysign(np.inf, short), short) if bits == 11 else short


def _short(size: np.ndarray) -> np.ndarray:
    return np.frexp(size)[0] * 256 % 1 == 0


def _power_of_two(x: Ranged) -> bool:
    """Whether multiplying by x rounds nothing: exact powers of two, 0, or one complex number of modulus 1."""
    if not x.exact:
        return False
    if np.iscomplexobj(x.v):
        return x.size == 1 and bool(abs(x.v) == 1)
    fraction = np.abs(np.frexp(x.v)[0])
    return bool(((fraction == 0.5) | (x.v == 0)).all())


def _lifted(x: Any, u: Units) -> Ranged:
    """x as `Ranged`: integers and short fractions are exact, other floats were computed, objects are stacked."""
    if isinstance(x, Ranged):
        return x
    x = np.asarray(x)
    if x.dtype != object:
        return constant(x, u) if x.dtype.kind in "fc" else Ranged(x, u)
    parts = [_lifted(entry, u) for entry in x.ravel()]
    errors = np.stack([part.charged().reshape(-1) for part in parts], axis=-1)
    return Ranged(np.array([part.v[()] for part in parts]).reshape(x.shape), u, errors.reshape(-1, *x.shape))


def _moved(function: Callable[..., Any], args: Any, named: Any, u: Units) -> Ranged:
    """A function that only moves numbers, applied to the values and to every error layer."""
    found: list[Ranged] = []

    def walked(tree: Any, get: Callable[[Ranged], Any]) -> Any:
        if isinstance(tree, Ranged) or (isinstance(tree, np.ndarray) and tree.dtype.kind in "fcO"):
            return get(_lifted(tree, u))
        if isinstance(tree, tuple):  # a named tuple, too
            return tuple(walked(branch, get) for branch in tree)
        return [walked(branch, get) for branch in tree] if isinstance(tree, list) else tree

    def done(get: Callable[[Ranged], Any]) -> Any:
        return function(*walked(tuple(args), get), **named)

    def layer(i: int, alike: bool) -> Any:
        return done(lambda r: r.e[i] if alike else r.charged()[i])

    walked(tuple(args), found.append)
    alike = len({(r.n, r.stored) for r in found}) == 1
    e = np.stack([layer(i, alike) for i in range(len(u.product))])
    v = done(lambda r: r.v)
    return Ranged(v, u, e, done(lambda r: r.s), found[0].n, found[0].stored) if alike else Ranged(v, u, e)


# operations: first the values, then the errors


def _wide(a: Ranged, b: Ranged) -> Callable[[np.ndarray], np.ndarray]:
    """A function that gives error layers the larger number of axes of a and b, so that arithmetic broadcasts them."""
    axes = max(a.ndim, b.ndim)
    return lambda e: e.reshape(len(e), *[1] * (axes - e.ndim + 1), *e.shape[1:])


def _add(a: Ranged, b: Ranged, sign: int = 1) -> Ranged:
    wide, v = _wide(a, b), np.asarray(a.v + sign * b.v)
    for x, zero in ((b, a), (a, b)):
        if zero.exact and not zero.v.any():
            e = np.broadcast_to(wide(x.e), (len(x.e), *v.shape))
            return Ranged(v, a.u, e, np.broadcast_to(x.s, v.shape), x.n, x.stored)
    ea, eb = (x.charged() if x.stored else x.e for x in (a, b))
    return Ranged(v, a.u, wide(ea) + wide(eb), a.s + b.s, a.n + b.n, a.stored or b.stored)


def _multiply(a: Ranged, b: Ranged) -> Ranged:
    wide, v = _wide(a, b), a.v * b.v
    for x, y in ((a, b), (b, a)):
        if _power_of_two(x):
            size = np.abs(x.v)
            return Ranged(v, a.u, size * wide(y.e), size * y.s, y.n, y.stored)
    ea, eb = wide(a.charged()), wide(b.charged())
    e = np.abs(b.v) * ea + np.abs(a.v) * eb + ea * eb
    return Ranged(v, a.u, e + _rounding(a.u.product, v, a.u))


def _divide(a: Ranged, b: Ranged) -> Ranged:
    wide = _wide(a, b)
    with np.errstate(all="ignore"):
        v = a.v / b.v
    if _power_of_two(b) and (b.v != 0).all():
        size = np.abs(b.v)
        return Ranged(v, a.u, wide(a.e) / size, a.s / size, a.n, a.stored)
    ea, eb = wide(a.charged()), wide(b.charged())
    least = np.maximum(np.abs(b.v) - eb, np.abs(b.v) / 4 + 1e-300)
    return Ranged(v, a.u, (ea + np.abs(v) * eb) / least + _rounding(a.u.product, v, a.u))


def _matmul(a: Ranged, b: Ranged) -> Ranged:
    v, size, u = a.v @ b.v, np.abs(a.v) @ np.abs(b.v), a.u
    layers = zip(a.charged(store=True), b.charged(store=True), strict=True)
    e = np.stack([np.abs(a.v) @ eb + ea @ (np.abs(b.v) + eb) for ea, eb in layers])
    tiny = (u.tiny * a.shape[-1]).reshape(-1, *[1] * v.ndim)
    return Ranged(v, u, e + _per(u.sum, size) + tiny, size, a.shape[-1], stored=True)


def _rounding(unit: np.ndarray, v: np.ndarray, u: Units) -> np.ndarray:
    """The error of one rounding of v, plus the absolute error of numbers below the normal range."""
    return _per(unit, np.abs(v)) + u.tiny.reshape(-1, *[1] * np.ndim(v))


def _fine(e: np.ndarray) -> np.ndarray:
    half = len(e) // 2
    return np.concatenate([e[half:], e[half:]])


def _table(f: Callable[[Any], Any]) -> Callable[[Ranged], Ranged]:
    def wave(x: Ranged) -> Ranged:
        v = f(x.v)
        return Ranged(v, x.u, np.minimum(_fine(x.charged()), 2) + _rounding(x.u.product, v, x.u))

    return wave


def _exp(x: Ranged) -> Ranged:
    v = np.exp(x.v)
    if np.iscomplexobj(x.v) and not x.v.real.any():
        e = np.minimum(_fine(x.charged()), 2)
    else:
        e = np.abs(v) * np.expm1(np.minimum(x.charged(), 50))
    return Ranged(v, x.u, e + _rounding(2 * x.u.product, v, x.u))


def _tanh(x: Ranged) -> Ranged:
    """tanh has its largest slope where |x| is smallest within its error."""
    v, e = np.tanh(x.v), x.charged()
    return Ranged(v, x.u, e / np.cosh(np.clip(np.abs(x.v) - e, 0, 300)) ** 2 + _rounding(2 * x.u.product, v, x.u))


def _power(a: Ranged, b: Ranged) -> Ranged:
    """Squares and cubes are products; other powers are exp(b ln a) in the finer precision, by rule 3."""
    if b.exact and b.size == 1 and b.v.item() in (2, 3):
        return _multiply(a, a) if b.v.item() == 2 else _multiply(a, _multiply(a, a))
    wide = _wide(a, b)
    v = np.abs(a.v).astype(float) ** b.v
    k = np.stack([growth(v, "repeated" if way == "repeated" else "power") for way in a.u.ways])
    e = _per(a.u.fine, np.where((b.v == 0) & (v == 1), 0, v)) * k
    if not (a.exact and b.exact):
        with np.errstate(all="ignore"):
            e = e + np.abs(v * b.v / a.v) * wide(a.charged()) + np.abs(v * np.log(np.abs(a.v))) * _fine(wide(b.charged()))
    return Ranged(v, a.u, e)


def _sqrt(x: Ranged) -> Ranged:
    v = np.sqrt(x.v)
    return Ranged(v, x.u, x.charged() / np.maximum(2 * v, 1e-300) + _per(x.u.product, v))


def _log(x: Ranged) -> Ranged:
    v = np.log(x.v)
    return Ranged(v, x.u, x.charged() / np.abs(x.v) + _per(x.u.fine, 3 * np.abs(v)))


def _chosen(f: Callable[[Any, Any], Any]) -> Callable[[Ranged, Ranged], Ranged]:
    def choice(a: Ranged, b: Ranged) -> Ranged:
        v, wide = f(a.v, b.v), _wide(a, b)
        return Ranged(v, a.u, np.where(v == a.v, wide(a.charged()), wide(b.charged())))

    return choice


def _kept(f: Callable[[Any], Any]) -> Callable[[Ranged], Ranged]:
    """A sign or a conjugate, which keeps the errors."""
    return lambda x: Ranged(f(x.v), x.u, x.e, x.s, x.n, x.stored)


def _plain(f: Callable[..., Any]) -> Callable[..., Any]:
    """A comparison, which returns a plain array."""
    return lambda *x: f(*(each.v for each in x))


def _whole(f: Callable[..., Any]) -> Callable[..., Ranged]:
    """A function that returns integers, which are taken as exact."""
    return lambda x, **named: Ranged(f(x.v, **named), x.u)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": _add,
    "subtract": lambda a, b: _add(a, b, -1),
    "multiply": _multiply,
    "divide": _divide,
    "matmul": _matmul,
    "power": _power,
    "square": lambda x: _multiply(x, x),
    "exp": _exp,
    "tanh": _tanh,
    "log": _log,
    "log2": lambda x: _multiply(_log(x), Ranged(1 / np.log(2), x.u)),
    "sqrt": _sqrt,
    "cos": _table(np.cos),
    "sin": _table(np.sin),
    "maximum": _chosen(np.maximum),
    "minimum": _chosen(np.minimum),
    **{f.__name__: _kept(f) for f in (np.negative, np.positive, np.absolute, np.conjugate)},
    **{f.__name__: _whole(f) for f in (np.sign, np.floor, np.ceil, np.rint)},
    "floor_divide": lambda a, b: Ranged(a.v // b.v, a.u),
    **{
        f.__name__: _plain(f)
        for f in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.isfinite, np.isnan)
    },
}


def _sum(x: Any, axis: Any = None, keepdims: bool = False, **_: Any) -> Ranged:
    v = np.sum(x.v, axis=axis, keepdims=keepdims)
    e = np.stack([np.sum(layer, axis=axis, keepdims=keepdims) for layer in x.charged()])
    return Ranged(v, x.u, e, np.sum(np.abs(x.v), axis=axis, keepdims=keepdims), x.size // max(1, v.size))


def _cumsum(x: Any, axis: int) -> Ranged:
    e = np.stack([np.cumsum(layer, axis=axis) for layer in x.charged()])
    return Ranged(np.cumsum(x.v, axis=axis), x.u, e, np.cumsum(np.abs(x.v), axis=axis), x.shape[axis])


def _where(condition: Any, *choices: Any) -> Ranged:
    """A plain number on one side adds nothing to the size of a sum on the other side, which is charged later."""
    like = next(x for x in choices if isinstance(x, Ranged))

    def lifted(x: Any) -> Ranged:
        return Ranged(x, like.u, _lifted(x, like.u).e, np.zeros(np.shape(x)), like.n, like.stored)

    return _moved(np.where, (condition, *(x if isinstance(x, Ranged) else lifted(x) for x in choices)), {}, like.u)


def _clip(x: Any, low: Any, high: Any, **_: Any) -> Ranged:
    """Where the value equals an end, the error of the end counts too: 2 pi, for instance, was computed."""
    ends = [_lifted(end, x.u) for end in (low, high)]
    v = np.clip(x.v, *(end.v for end in ends))
    return Ranged(v, x.u, x.charged() + sum((v == end.v) * _wide(x, end)(end.charged()) for end in ends))


def _difference(x: Any, axis: int = -1) -> Any:
    x = np.swapaxes(x, axis, -1)
    return np.swapaxes(x[..., 1:] - x[..., :-1], axis, -1)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": _sum,
    "cumsum": _cumsum,
    "clip": _clip,
    "where": _where,
    "diff": _difference,
    "sort": lambda x, axis=-1: np.take_along_axis(x, np.argsort(x.v, axis=axis), axis),
    "shape": lambda x: x.shape,
    "ndim": lambda x: x.ndim,
    "size": lambda x: x.size,
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "iscomplexobj": lambda x: np.iscomplexobj(x.v),
    "isrealobj": lambda x: np.isrealobj(x.v),
    "zeros_like": _whole(np.zeros_like),
    "ones_like": _whole(np.ones_like),
    "max": lambda x, **named: x.max(**named),
    "amax": lambda x, **named: x.max(**named),
    "min": lambda x, **named: x.min(**named),
    "amin": lambda x, **named: x.min(**named),
}

__all__ = ["ALL_MODELS", "BY_DTYPE", "MEANING", "Ranged", "Units", "allowed", "constant", "growth", "model", "models", "units"]
