"""Rounded: numbers that are rounded as in one honest implementation among many. A specification runs on them unchanged.

Tolerances bound the worst case: every rounding at its largest, all in one direction. The errors of honest code are far smaller,
since they differ in sign. How large they are together is measured here: the specification runs in every *way* of a model, and
each operation is rounded. The ways differ in

1. the order of sums: forward, backward, in pairs, in four lanes;
2. what is in 16 bits: every operation; products and results, with sums in float32; what is stored between operations; only the
   result;
3. exp as it is, or as 2^(x log2 e);
4. rounding: to the nearest number, or by a random share of the unit roundoff, since the nearest may be right by luck, above all
   with few elements. A number that the format holds stays as it is.

Angles are computed in float32, as in 16-bit code; tables are rounded when they meet a tensor. Operations run in float64 and
their results are rounded to fewer digits; random numbers are a frozen stream: the figures are the same on every machine.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from posref.check.ranged import growth, rounded_to
from posref.ops import Arguments
from posref.vectors.models import ratios, rms

BITS = {"f16": 11, "bf16": 8}
ORDERS = ("forward", "backward", "pairs", "lanes")
SEEDS = range(8)
SLACK = 3  # an honest implementation that is not among the ways may be off by so much more
MOVED = (np.negative, np.positive, np.absolute, np.sign, np.floor, np.ceil, np.rint, np.maximum, np.minimum)
SUMMED = ("dot", "einsum", "inner", "tensordot", "vdot", "prod")  # with an order of their own


class Way(NamedTuple):
    """How numbers are rounded: the significant bits of products and tables, of sums, and of stored numbers; the order of sums;
    exp or exp2."""

    product: int
    sum: int
    stored: int
    order: str = "forward"
    two: bool = False
    random: Any = None
    angles: str = "power"


def ways(model: str) -> Iterator[Way]:
    """The ways of a model, 26 if the 16 bits have two places. First each place with forward sums, then each with random
    rounding.

    >>> len(list(ways("bf16-all"))), next(ways("f16-f32math"))
    (26, Way(product=24, sum=24, stored=24, order='forward', two=False, random=None, angles='power'))
    """
    low = BITS.get(model.partition("-")[0], 24)
    formats = [(24, 24, 24), (24, 24, low)] if "f32math" in model else [(low, low, low), (low, 24, low)]
    formats = formats[1:] if "f32sums" in model else formats[:1] if low == 24 else formats
    angles = "repeated" if model.endswith("-iterative") else "power"
    chances = ((bits, seed) for seed in SEEDS for bits in formats)
    by_chance = [Way(*bits, ORDERS[n % 4], random=np.random.RandomState(n), angles=angles) for bits, n in chances]
    in_order = [Way(*bits, order) for order in ORDERS for bits in formats]
    yield from (*in_order[: len(formats)], *by_chance[: len(formats)], *in_order[len(formats) :])
    yield from (Way(*bits, two=True) for bits in formats)
    yield from by_chance[len(formats) :]


class Rounded(np.ndarray[Any, Any]):
    """float64 values, rounded as their `way` says; `fine` marks values made of settings only, which are in float32."""

    way: Way
    fine: bool
    is_positive = None  # a number to contracts, as symbols are

    def __array_finalize__(self, source: Any) -> None:
        self.way, self.fine = getattr(source, "way", Way(53, 53, 53)), getattr(source, "fine", False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        named.pop("out", None)
        given = [x for x in inputs if isinstance(x, Rounded)]
        way, fine = given[0].way, all(x.fine for x in given)
        values = [x if fine else _entered(x, way) for x in inputs]
        values = [np.asarray(x) for x in values]
        if method == "reduce" and ufunc is np.add:
            return made(_reduced(values[0], way, 24 if fine else way.sum, **named), way, fine)
        if method == "accumulate" and ufunc is np.add:
            return made(_accumulated(values[0], way, 24 if fine else way.sum, **named), way, fine)
        if method == "__call__" and ufunc is np.matmul:
            return made(_matmul(values[0], values[1], way), way, False)
        y = getattr(ufunc, method)(*values, **named)
        if y.dtype.kind != "f":
            if y.dtype.kind == "c":
                raise TypeError("complex numbers are not rounded")
            return y
        if method != "__call__" or ufunc in MOVED:
            return made(y, way, fine)
        if ufunc is np.exp and way.two and not fine:
            y = np.exp2(_short(values[0] * np.log2(np.e), way.product, way))
        if ufunc is np.power and fine:
            return made(_computed(y, way), way, fine)
        if ufunc in (np.cos, np.sin):
            fine = False
        return made(_short(y, 24 if fine else way.product, way), way, fine)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        if function.__name__ in SUMMED:
            raise TypeError(f"{function.__name__} has an order of its own")
        found = list(_found((args, tuple(named.values()))))
        y = super().__array_function__(function, types, args, named)
        return made(y, found[0].way, all(x.fine for x in found)) if getattr(y, "dtype", np.dtype(int)).kind == "f" else y


def made(values: Any, way: Way, fine: bool = False) -> Rounded:
    y = np.asarray(values, dtype=float).view(Rounded)
    y.way, y.fine = way, fine
    return y


def in_this_arithmetic(a: Mapping[str, Any], way: Way, constants: tuple[str, ...]) -> Arguments:
    """Arguments in this arithmetic: tensors are exact, the settings in `constants` are computed."""
    made_of = Arguments(a)
    for name, value in a.items():
        if name in constants and isinstance(value, (int, float, np.ndarray)):
            made_of[name] = made(_computed(np.asarray(value, dtype=float), way), way, True)
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
            made_of[name] = made(value, way)
    return made_of


def run(spec: Callable[..., Any], a: Mapping[str, Any], way: Way, low: int, constants: tuple[str, ...]) -> np.ndarray:
    """The result of the specification in this way, stored in `low` bits."""
    with np.errstate(all="ignore"):
        y = spec(**in_this_arithmetic(a, way, constants))
        return _short(np.asarray(y, dtype=float), low, way)


def allowed_together(outputs: Iterable[Any], right: Any, tolerance: Any, c_out: float, counts: Any = True) -> float:
    """r of `posref.vectors.models`, from the outputs of all ways."""
    once = rms(ratios(c_out * right, tolerance), counts)
    return min(1.0, max([once, *(SLACK * rms(ratios(y - right, tolerance), counts) for y in outputs)]))


def bits(model: str) -> int:
    """Significant bits of a model's results: 11 or 8 in 16 bits, 24 in float32, 0 for a model without ways.

    >>> bits("f16-all"), bits("f32"), bits("f64")
    (11, 24, 0)
    """
    return 24 if model.startswith("f32") else BITS.get(model.partition("-")[0], 0)


def _found(tree: Any) -> Iterator[Rounded]:
    if isinstance(tree, Rounded):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for branch in tree:
            yield from _found(branch)


def _entered(x: Any, way: Way) -> Any:
    """A table or a setting, rounded when it meets a tensor."""
    fine = getattr(x, "fine", not isinstance(x, Rounded) and np.asarray(x).dtype.kind == "f")
    return _short(np.asarray(x), way.product, way) if fine else x


def _computed(v: np.ndarray, way: Way) -> np.ndarray:
    """Frequencies (powers, exponentials, products) in float32, or off by a random share of what rule 3 of `ranged` allows."""
    if way.random is None or v.ndim == 0:
        return _short(v, 24, way)
    return np.where(v == 1, v, v * (1 + 2.0**-24 * growth(v, way.angles) * way.random.uniform(-1, 1, v.shape)))


def _short(v: np.ndarray, bits: int, way: Way) -> np.ndarray:
    """Rounded to this many bits: to the nearest, or off by a random share of the roundoff; what the format holds is kept."""
    if bits == 53:
        return v
    near = np.float32(v).astype(float) if bits == 24 else np.float16(v).astype(float) if bits == 11 else rounded_to(v, bits)
    if way.random is None:
        return near
    share = way.random.uniform(-1, 1, np.shape(v))
    share *= 2.0**-bits
    share += 1
    share *= v
    return np.where(near == v, v, share)


def _sum(terms: np.ndarray, bits: int, way: Way, order: str) -> np.ndarray:
    """The sum over the first axis in this order, with each step rounded."""
    if order == "backward":
        terms = terms[::-1]
    if order == "lanes" and len(terms) > 4:
        return _sum(np.stack([_sum(terms[lane::4], bits, way, "forward") for lane in range(4)]), bits, way, "forward")
    if order == "pairs" and len(terms) > 2:
        half = len(terms) // 2
        return _sum(np.stack([_sum(part, bits, way, order) for part in (terms[:half], terms[half:])]), bits, way, "forward")
    total = terms[0] if len(terms) else np.zeros(terms.shape[1:])
    for term in terms[1:]:
        total = _short(total + term, bits, way)
    return total


def _reduced(x: np.ndarray, way: Way, bits: int, axis: Any = 0, keepdims: bool = False, **_: Any) -> np.ndarray:
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    kept = [n for n in range(x.ndim) if n not in [each % x.ndim for each in axes]]
    terms = x.transpose(*[each % x.ndim for each in axes], *kept).reshape(-1, *[x.shape[n] for n in kept])
    y = _short(_sum(terms, bits, way, way.order), min(bits, way.product), way)
    return np.expand_dims(y, axes) if keepdims else y


def _accumulated(x: np.ndarray, way: Way, bits: int, axis: int = 0, **_: Any) -> np.ndarray:
    steps = list(np.moveaxis(x, axis, 0))
    for n in range(1, len(steps)):
        steps[n] = _short(steps[n - 1] + steps[n], bits, way)
    return np.moveaxis(np.stack(steps), 0, axis)


def _matmul(a: np.ndarray, b: np.ndarray, way: Way) -> np.ndarray:
    if way.stored < way.product:
        a, b = (_short(x, way.stored, way) for x in (a, b))
    if way.sum == 53:
        return _short(a @ b, way.stored, way)
    if min(a.ndim, b.ndim) < 2:
        raise TypeError("a product of vectors has an order of its own")
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b))
    if way.random is None and way.order == "forward":
        return _short(_summed_one_by_one(a, b, way.sum), way.stored, way)
    terms = np.moveaxis(a, -1, 0)[..., None] * np.moveaxis(b, -2, 0)[..., None, :]
    return _short(_sum(_short(terms, way.sum, way), way.sum, way, way.order), way.stored, way)


def _summed_one_by_one(a: np.ndarray, b: np.ndarray, bits: int) -> np.ndarray:
    """The matrix product a b, one term after the other: all terms at once would need the memory of d results."""
    single = [np.asarray(x, dtype=np.float32) for x in (a, b)]
    held = bits == 24 and all((x == y).all() for x, y in zip(single, (a, b), strict=True))  # then float32 itself rounds
    a, b = single if held else (a, b)
    short = partial(_short, bits=53 if held else bits, way=Way(bits, bits, bits))
    terms = (short(a[..., t, None] * b[..., t, None, :]) for t in range(a.shape[-1]))
    total = next(terms, np.zeros((*a.shape[:-1], b.shape[-1])))
    for term in terms:
        total = short(total + term)
    return total.astype(float)
