"""The error of streaming attention: the bound of `posref.fast.attention`, step by step, on the source of its kernels.

`Rounded` is a number with the error of a kernel to first order, in units of u: every operation adds its own rounding.
"""

import math
import types
from fractions import Fraction

import mpmath
import numpy as np
import sympy as sp

from posref import attention, shards
from posref.fast import attention as fast
from proofs.fast.attention import source
from proofs.kit import *

SILENT = "what a number is off is none of its numbers"

# exp


class Interval:
    """Numbers from `low` to `high`, computed within `error` of them; all computed ones are multiples of `grid`, if it is not 0.

    A result that is a multiple of g and at most 2^bits g is not rounded; nor is a sum with 0, nor a product with a power of 2.
    Ends are moved outwards by more than they round. Each may be an array.
    """

    __array_ufunc__ = None

    def __init__(self, low, high, bits, error=0.0, grid=0.0):
        self.low, self.high, self.bits, self.error, self.grid = low, high, bits, error, grid

    def most(self):
        return np.maximum(abs(self.low), abs(self.high)) + self.error

    def rounded(self, low, high, error, grid, exact=False):
        """The result of an operation whose exact value has the error `error`, rounded to nearest unless it is exact."""
        wide = 2.0**-50 * np.maximum(abs(low), abs(high))
        low, high = low - wide, high + wide
        most = np.maximum(abs(low), abs(high)) + error
        exact = exact | ((grid > 0) & (most <= 2.0**self.bits * grid))
        half = np.where(exact, 0, np.ldexp(0.5, np.frexp(most)[1] - self.bits))
        return Interval(low, high, self.bits, error * (1 + 2.0**-40) + half, np.where(exact, grid, 0))

    def of(self, other):
        """A float of the kernel: exact, and a multiple of its last bit."""
        if isinstance(other, Interval):
            return other
        value = np.asarray(other, float)
        part, power = np.frexp(abs(value))
        digits = (part * 2**53).astype(np.int64)
        return Interval(value, value, self.bits, 0.0, np.ldexp((digits & -digits).astype(float), power - 53))

    def __add__(self, other):
        other = self.of(other)
        low, high = self.low + other.low, self.high + other.high
        return self.rounded(low, high, self.error + other.error, np.minimum(self.grid, other.grid), other.most() == 0)

    def __neg__(self):
        return Interval(-self.high, -self.low, self.bits, self.error, self.grid)

    def __sub__(self, other):
        return self + -self.of(other)

    def __mul__(self, other):
        other = self.of(other)
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        error = self.error * other.most() + other.error * self.most()
        power = (other.low == other.high) & (other.grid == other.low)
        return self.rounded(np.minimum.reduce(ends), np.maximum.reduce(ends), error, self.grid * other.grid, power)

    __radd__, __rmul__ = __add__, __mul__

    def __ge__(self, other):
        return bool(np.all(self.low >= float(other)))

    __gt__ = __ge__  # at the end of the range either answer is the end


class Whole(Interval):
    """Integers n that record their factors: the two parts of ln 2."""

    def __init__(self, n, bits):
        super().__init__(n, n, bits, 0.0, 1.0)
        self.parts = []

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.low, dtype)

    def __mul__(self, other):
        self.parts.append(float(other))
        return super().__mul__(other)


class Series(np.polynomial.Polynomial):
    """A power series: the kernel's sum run on r itself gives its coefficients, none of them rounded."""

    __gt__ = __ge__ = lambda self, other: True


class Floats(np.ndarray):
    """Many numbers in the format of the kernel, which compare as one number."""

    __gt__ = __ge__ = lambda self, other: True


def run(source, x, floor=np.floor):
    """The source of exp on an Interval, a Series or Floats, from the end of its range on."""
    integer = {f"int{n}": lambda x, n=n: np.asarray(x, f"int{n}") for n in (32, 64)}
    numbers = types.SimpleNamespace(float32=np.float32, float64=np.float64, floor=floor, **integer)
    return types.FunctionType(source.__code__, {**source.__globals__, "np": numbers})(x)


CELLS = 32
KINDS = {np.float32: (fast._exp_float32, 24, 87), np.float64: (fast._exp_float64, 53, 708)}


def series_error(source, r):
    """A bound for |P(x) - e^x| / e^x for |x| <= r, where P is the sum with its actual coefficients."""
    sums = run(source, Series([0.0, 1.0]), lambda t: 0).coef
    off = [abs(float(Fraction(c) - Fraction(1, math.factorial(k)))) for k, c in enumerate(sums)]
    powers = r ** np.arange(len(sums) + 1)
    return (powers[:-1] @ off + powers[-1] / math.factorial(len(sums)) * np.exp(r)) * np.exp(r)


def exp_error(dtype):
    """The largest error of exp, in units of u, on all floats from -87 or -708 to 0."""
    source, bits, end = KINDS[dtype]
    n, slack = np.arange(-math.floor(end / math.log(2) + 0.5), 1.0)[:, None], 2.0 ** (12 - bits)
    cells = np.linspace(-0.5 - slack, 0.5 + slack, CELLS + 1, dtype=np.longdouble)
    ends = ((n + cells) * np.log(np.longdouble(2))).clip(-end, 0)
    low, high, whole = ends[:, :-1], ends[:, 1:], Whole(n, bits)

    def floor(t):
        prove_that(bool(np.all(t.error <= slack)), f"y / ln 2 + 1/2 is computed within {slack}")
        return whole

    nearest = abs(ends).min(axis=1, keepdims=True)
    grid = np.where(nearest > 0, np.ldexp(1.0, np.frexp(nearest)[1] - bits), 0)
    got = run(source, Interval(low, high, bits, 0.0, grid), floor)
    with mpmath.workprec(200):
        parts = float(abs(mpmath.ln2 - mpmath.mpf(whole.parts[0]) + mpmath.mpf(whole.parts[1])))
    series = series_error(source, math.log(2) / 2 + slack)
    return (float((got.error / np.exp(low)).max()) + series + 1.01 * len(n) * parts) * 2.0**bits


def measured(dtype):
    """The errors of the sum, unfused, in units of u, at a hundred thousand points."""
    source, bits, end = KINDS[dtype]
    x = np.random.default_rng(0).uniform(-end, 0, 10**5).astype(dtype)
    exact = fast._exp(x.astype(np.longdouble))
    return float(abs(run(source, x.view(Floats)) / exact - 1).max()) * 2.0**bits


@example(
    of=[fast._exp],
    sizes="floats of both widths, in cells of r",
    argument="a product and a sum that are fused round less",
    silent=SILENT,
)
def exp_is_within_two_units():
    """exp as it is compiled is within 2 u of e^x, relative to it, for all floats from -87 in float32, and -708
    in float64, to 0: the first part of ln 2 times n, and x less that, are not rounded; the rest of x, the sum of the series and
    its end make the error. Random numbers come within 3/4 of it."""
    for dtype in KINDS:
        error, seen = exp_error(dtype), measured(dtype)
        prove_that(3 / 4 * error < seen <= error < EXP, f"{dtype.__name__}: {seen:.3f} u seen, {error:.3f} u at most")


@exp_is_within_two_units.control
def exp_is_rounded_once():
    """exp is right to the last bit, to 1 u."""
    off = measured(np.float32)
    prove_that(off <= 1, counterexample=f"of 100000 places the worst is off by {off:.2f} u, expected at most 1 u")


# every other operation

EXP, TANH = 2, 4  # units of u: exp is off relative to its value, tanh absolutely


class Rounded:
    """A number of a kernel: `exact`, and `off`, the largest error of the computed number in units of u, to first order.

    Numbers are floats, or expressions of known sign. Sums with 0, products with 0, 1, 2, x - x and exp(0) are exact. If a
    kernel subtracts a computed number, this number is a maximum, which may be any number, so it counts as exact.
    """

    def __init__(self, exact, off=0):
        self.exact, self.off = exact, off

    def is_exactly(self, *numbers):
        return self.off == 0 and any(abs(self.exact) == number for number in numbers)

    def __add__(self, other):
        other = rounded(other)
        total, one_is_zero = self.exact + other.exact, self.is_exactly(0) or other.is_exactly(0)
        return Rounded(total, self.off + other.off + (0 if one_is_zero else abs(total)))

    def __neg__(self):
        return Rounded(-self.exact, self.off)

    def __sub__(self, other):
        return Rounded(0) if self is other else self + -rounded(rounded(other).exact)

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        other = rounded(other)
        product, simple = self.exact * other.exact, self.is_exactly(0, 1, 2) or other.is_exactly(0, 1, 2)
        return Rounded(product, self.off * abs(other.exact) + abs(self.exact) * other.off + (0 if simple else abs(product)))

    def __truediv__(self, other):
        other = rounded(other)
        quotient = self.exact / other.exact
        return Rounded(quotient, (self.off + abs(quotient) * other.off) / abs(other.exact) + abs(quotient))

    __radd__, __rmul__ = __add__, __mul__

    def __abs__(self):
        return Rounded(abs(self.exact), self.off)

    def __lt__(self, other):
        return bool(self.exact < rounded(other).exact)

    def __gt__(self, other):
        return bool(self.exact > rounded(other).exact)

    def exp(self):
        if self.is_exactly(0) or self.exact == -math.inf:
            return Rounded(1 if self.exact == 0 else 0)
        value = sp.exp(self.exact) if isinstance(self.exact, sp.Basic) else math.exp(self.exact)
        return Rounded(value, value * (self.off + EXP))

    def tanh(self):
        value = sp.tanh(self.exact) if isinstance(self.exact, sp.Basic) else math.tanh(self.exact)
        return Rounded(value, self.off * (1 - value**2) + TANH)


def rounded(x):
    return x if isinstance(x, Rounded) else Rounded(x)


class Maxima(np.ndarray):
    """An array of maxima; a number that is stored there counts as exact."""

    def __setitem__(self, at, value):
        super().__setitem__(at, rounded(value.exact) if isinstance(value, Rounded) else value)


def positive(names):
    return [sp.Symbol(name, positive=True) for name in names.split()]


def column(*numbers):
    out = np.empty(len(numbers), dtype=object)
    out[:] = numbers
    return out


@theorem(
    of=[fast._multiply],
    sizes="all d",
    argument="by induction over d, and so for the queries one by one, whose products are added in any order: two sums of a and "
    "b products have a A + b B + (A + B) <= (a + b)(A + B); products of both signs cancel and round no more than their sizes",
    silent=SILENT,
)
def inner_products():
    """A sum of d products q_t k_t is off by at most (d + 3) sum |q_t k_t| u where each q_t, a query times its factor, is off by
    3 u: one more product, for the first and for every later one, keeps the bound."""
    p, q, k, d, a, b, more = positive("P q k d A B e")
    for total, count in ((0, 0), (p, 1 + d)):
        sums = column(Rounded(total, (count + 3) * total), 0, 0, 0)
        source(fast._multiply, LANES=1)(column(Rounded(q, 3 * q)).reshape(1, 1), column(k), column(1), sums)
        prove_equal([sums[0].exact], [total + q * k])
        prove_equal([(count + 1 + 3) * (total + q * k) - sums[0].off], [q * k * (d if total else 0)])
    merged = (1 + d) * a + (1 + more) * b + (a + b)
    prove_equal([(1 + d + 1 + more) * (a + b) - merged], [d * b + more * a])


@inner_products.control
def products_are_free():
    """A sum of d products is off by (d - 1) sum |q_t k_t| u, one rounding for each addition (d = 2)."""
    p, q, k = positive("P q k")
    sums = column(Rounded(p), 0, 0, 0)
    source(fast._multiply, LANES=1)(column(Rounded(q)).reshape(1, 1), column(k), column(1), sums)
    prove_equal([sums[0].off], [p + q * k])


@theorem(
    of=[fast._adjust, fast._cap],
    sizes="one score",
    argument="|s| <= |f| sum |q_t k_t|; x <= sinh x cosh x, so that y (1 - tanh^2 y) + tanh y <= 2",
    silent=SILENT,
)
def bias_and_cap():
    """A bias adds |s| + |b| to what a score is off, in units of u. A cap c takes (1 - tanh^2) of what it was off, and adds
    c (y (1 - tanh^2 y) + tanh y + 4) with y = |s| / c: the quotient, the product and tanh, at most 6 c."""
    s, b, c, off = positive("s b c E")
    scores = column(Rounded(s, off))
    source(fast._adjust, LANES=1)(scores, 1, None, column(b).reshape(1, 1), 0, 0, 0, 1, column(0))
    prove_equal([scores[0].off], [off + s + b])
    capped, y = column(Rounded(s, off)), sp.tanh(s / c)
    source(fast._cap)(capped, c)
    prove_equal([capped[0].off], [off * (1 - y**2) + c * (s / c * (1 - y**2) + y + TANH)])


@bias_and_cap.control
def a_cap_divides_errors():
    """A cap only makes errors smaller."""
    s, c, off = positive("s c E")
    capped = column(Rounded(s, off))
    source(fast._cap)(capped, c)
    prove_equal([capped[0].off], [off * (1 - sp.tanh(s / c) ** 2)])


def compiled_tanh(x, exp):
    """tanh as it is compiled, for x > 0; its constants -2 and 1 are exact in every format."""
    tanh = fast._compiled_tanh(fast.numba.types.float32)
    names = {"_exp": exp, "math": types.SimpleNamespace(copysign=lambda value, sign: value), "abs": abs}
    return types.FunctionType(tanh.__code__, names, closure=(types.CellType(int),))(x)


@theorem(
    of=[fast._tanh],
    sizes="every x > 0",
    argument="tanh is odd, and the sign is copied; t < 1",
    silent=SILENT,
    values="all of which an absolute value is taken is positive",
)
def tanh_is_within_four_units():
    """tanh as it is compiled, (1 - t) / (1 + t) with t = e^(-2 x) off by 2 u t, is within 4 u: what is left of that is
    (1 + 4 t + 7 t^2) / (1 + t)^2."""
    (x,) = positive("x")
    got, t = compiled_tanh(Rounded(x), Rounded.exp), sp.exp(-2 * x)
    prove_equal([got.exact], [expression(fast._tanh(array(x)[()])).rewrite(sp.exp)])
    off = got.off.replace(sp.Abs, lambda positive: positive)
    prove_equal([TANH - off], [(1 + 4 * t + 7 * t**2) / (1 + t) ** 2])


@tanh_is_within_four_units.control
def tanh_of_an_exact_exp():
    """What exp is off does not show in tanh: the sum, the difference and the quotient are all."""
    (x,) = positive("x")
    off = compiled_tanh(Rounded(x), Rounded.exp).off.replace(sp.Abs, lambda positive: positive)
    prove_equal([off], [3 * expression(fast._tanh(array(x)[()])).rewrite(sp.exp)])


def fold(gap, score_off, before, values):
    """A lane after `_step` on one key, whose score is `gap` above or below the maximum, and after adding its value."""
    m, a = sp.Symbol("m", real=True), values[0]
    s, top = column(Rounded(m + gap, score_off), 0), column(Rounded(m)).view(Maxima)
    total, flat = column(before), column(a, 0, 0, 0)
    source(fast._step, LANES=1)(s, 1, top, total)
    source(fast._multiply, LANES=1)(column(values[1]).reshape(1, 1), s, s[1:], flat)
    return total[0], flat[0]


@theorem(
    of=[fast._step, fast._multiply],
    sizes="any sums before, hence any number of keys; both orders of the scores",
    argument="induction over the keys of a tile, which share its one rescaling, and over the tiles",
    silent=SILENT,
)
def sums_of_weights():
    """After k keys and T tiles let a sum of weights l be off by at most (G + (k + 3 T) l) u, G = sum_j w_j (E_j + m - s_j), and
    that of the weights times values by u sum_j w_j |v_j| more. One tile later, with one key more, they are: the rescaling moves
    m - s_j by what the maximum moves, and adds 2 u for exp and u for the product; the sum adds u."""
    low, g, e, k, t, over, v = positive("l G E k T d v")
    for gap in (-over, over):
        moved, weight = sp.exp(-max(gap, 0)), sp.exp(min(gap, 0))
        shares = g + max(gap, 0) * low, weight * (e - min(gap, 0))
        stated = moved * shares[0] + shares[1] + (k + 1 + (EXP + 1) * (t + 1)) * (moved * low + weight)
        before = Rounded(low, g + (k + (EXP + 1) * t) * low)
        total, sums = fold(gap, e, before, (Rounded(v * low, v * (before.off + low)), v))
        spare = weight * (k + (EXP + 1) * t + 1) + (0 if gap == over else (EXP + 1) * low)
        prove_equal([total.exact], [moved * low + weight])
        prove_equal([stated - total.off], [spare])
        prove_equal([v * (stated + moved * low + weight) - sums.off], [v * spare])


@sums_of_weights.claim("Each rescaling adds 3 u and what the maximum moves; a kernel that rescales for every key adds 3 n u.")
def rescaling_is_free():
    """Moving the sums to a new maximum costs nothing: only additions round."""
    low, over = positive("l d")
    total, _ = fold(over, 0, Rounded(low), (Rounded(0), 1))
    prove_equal([total.off], [low * sp.exp(-over) + 1])


def divided(accumulator, denominator):
    cells = (column(x).reshape(1, 1) for x in (0, denominator, accumulator))
    return shards.finish(shards.State(*cells))[0, 0]


@theorem(
    of=[shards.finish],
    sizes="any sums",
    argument="off A is sum_j w_j |v_j| (E_j + 1), off l is sum_j w_j E_j, and |A| <= sum_j w_j |v_j|",
    silent=SILENT,
    as_written="formula",
)
def the_division():
    """A quotient A / l is off by (off A + |A / l| off l) / l + |A / l|: sum_j a_j |v_j| (E_j + sum_l a_l E_l + 1)."""
    a, low, x, y = positive("A l X Y")
    quotient = divided(Rounded(a, x), Rounded(low, y))
    prove_equal([quotient.exact], [a / low])
    prove_equal([quotient.off], [(x + a / low * y) / low + a / low])


@the_division.control
def errors_of_numerator_and_denominator_cancel():
    """What both sums are off by cancels in the quotient, which is off by its own rounding alone."""
    a, low, x, y = positive("A l X Y")
    prove_equal([divided(Rounded(a, x), Rounded(low, y)).off], [a / low])


# whole kernels, at their tiles and lanes


def units(d, products, cap, bias, gap, keys, tile):
    """E_ij / u: products is |f_i| sum_t |q_it k_jt|, gap is m_i - s_ij, keys is n_i, and tile the number of keys per tile."""
    tiles = keys // tile + (3 if tile == fast.STRETCH else 2)  # for few queries the merge of shards rescales once more
    score = (d + 4) * products + (TANH + 2) * cap + abs(bias)
    return score + gap + keys + (EXP + 1) * tiles + EXP + 1


def bound(weights, e, values):
    """sum_j a_ij |v_je| (E_ij + sum_l a_il E_il + 1), in units of u."""
    return (weights * (e + (weights * e).sum(axis=-1, keepdims=True) + 1)) @ abs(values)


def error_bound(
    q, k, v, *, scale, bias_by_offset=None, causal=False, window=None, row_scale=None, softcap=None, sinks=None, dtype=None
):
    """What each number of `attend_by_offset` may be off in a dtype, q's if it is None; 1.01 is for what is of second order."""
    u = np.finfo(dtype or q.dtype).eps / 2
    n_query, n_key, d = q.shape[-2], k.shape[-2], q.shape[-1]
    k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], axis=-3) for x in (k, v))
    q, k, v = (x.astype(np.longdouble) for x in (q, k, v))
    offset = np.arange(n_key) - np.arange(n_query)[:, None]
    past = offset - (n_key - n_query)
    allowed = (past <= 0 if causal else True) & (np.abs(past) < (np.inf if window is None else window))
    b = 0 if bias_by_offset is None else bias_by_offset.astype(np.longdouble)[..., offset + n_query - 1]
    swapped, row_scale = np.swapaxes(k, -1, -2), 1 if row_scale is None else row_scale
    factor = scale * np.asarray(row_scale, np.longdouble)[..., None]
    s, c = factor * (q @ swapped), softcap or 0
    s = np.where(allowed, (s if softcap is None else c * np.tanh(s / c)) + b, -np.inf)
    m = s.max(axis=-1, keepdims=True, initial=-(10**300))
    m = m if sinks is None else np.maximum(m, sinks[..., None])
    a = attention.softmax(np.where(allowed, s, 0), np.broadcast_to(allowed, s.shape), sinks)
    n = np.broadcast_to(allowed, s.shape).sum(axis=-1, keepdims=True) + (sinks is not None)
    products, gap = abs(factor) * (np.abs(q) @ np.abs(swapped)), np.where(allowed, m - s, 0)
    e = 1.01 * units(d, products, c, b, gap, n, fast.STRETCH if n_query <= fast.FEW else fast.TILE)
    lost = np.exp(np.longdouble(-87 if u > 1e-10 else -708)) * n * np.abs(v).max(initial=0)
    return u * bound(a, e, v) + lost


def attend(kernel, q, k, v, bias, high, scale, softcap):
    """The result of one head at the kernel's tiles and lanes, as Rounded; queries times their factor have an error of 3 u."""
    (_, n_query, d), (_, n_key, width), lanes = q.shape, v.shape, fast.LANES
    zeros = lambda *shape: np.zeros(shape, object)
    queries = column(*(Rounded(x, 3 * abs(x)) for x in (scale * q).ravel())).reshape(q.shape)
    by_query = np.array([[*bias[::-1], *[0] * lanes]], dtype=object)
    out, top, total = zeros(1, n_query, width), zeros(1, n_query + lanes).view(Maxima), zeros(1, n_query + lanes)
    top[...] = -1e30
    rooms = zeros(d * lanes), zeros((fast.TILE + 1) * lanes), zeros((width + -width % 4) * lanes)
    contents, states = [x.astype(object) for x in (k, v)], (out, top, total, np.ones((1, n_query, 1), object), False)
    if kernel is fast._attend_few:
        queries, states, rooms = queries[0], [x[None] for x in (out[0], top, total)], [zeros(n_query, fast.STRETCH + 2)]
    source(kernel)(queries, *contents, by_query, *states, softcap, 1 - n_query - n_key, high, 0, 1, *rooms)
    return out[0] / total[0, :n_query, None]


CASES = (  # queries, keys, features, spread of the contents, size of the bias, cap
    (50, 130, 3, 1.0, 0.0, None),
    (20, 70, 2, 4.0, 30.0, None),
    (20, 66, 2, 1.0, 1.0, 2.0),
    (3, fast.STRETCH + 4, 1, 0.1, 0.0, None),
    (3, 130, 30, 1.0, 5.0, None),
)


def shares(case, stated=units):
    """The share of the bound that the operations of the kernel use, for every output of one case."""
    n_query, n_key, d, spread, slope, cap = case
    random, scale = np.random.default_rng(n_key), d**-0.5
    q, k, v = (spread * random.normal(size=(1, n, w)) for n, w in ((n_query, d), (n_key, d), (n_key, 2)))
    v = abs(v)  # else sums of values cancel, and round less than their sizes
    bias, high = slope * random.normal(size=n_query + n_key - 1), n_key - n_query
    kernel, tile = (fast._attend_few, fast.STRETCH) if n_query <= fast.FEW else (fast._attend, fast.TILE)
    got = attend(kernel, q, k, v, bias, high, scale, cap)
    offset = np.arange(n_key) - np.arange(n_query)[:, None]
    seen, b = offset <= high, bias[offset + n_query - 1]
    s = scale * (q[0] @ k[0].T)
    s = np.where(seen, (cap * np.tanh(s / cap) if cap else s) + b, -np.inf)
    gap = s.max(axis=-1, keepdims=True) - s
    weights = np.exp(-gap) / np.exp(-gap).sum(axis=-1, keepdims=True)
    products = scale * (abs(q[0]) @ abs(k[0]).T)
    e = stated(d, products, cap or 0, b, np.where(seen, gap, 0), seen.sum(axis=-1, keepdims=True), tile)
    e = np.where(seen, e, 0)
    off, exact = (
        np.array([[x[f] for x in row] for row in [[vars(x) for x in row] for row in got]], float) for f in ("off", "exact")
    )
    prove_that(bool(abs(exact - weights @ v[0]).max() < 1e-12 * spread), "the kernel attends")
    return off / bound(weights, e, v[0])


@example(
    of=[fast._attend, fast._attend_few, fast._score, fast._meet, fast._gather],
    sizes="lanes and tiles as compiled; up to 2052 keys, 30 features; a bias, a cap, causal",
    silent=SILENT,
)
def the_bound_covers_every_operation():
    """With the rounding of every operation that the kernels do added up to first order, each output is off by no more than the
    bound of posref.fast.attention, and by more than a sixth of it somewhere in each case."""
    for case in CASES:
        used = shares(case)
        prove_that(bool(1 / 6 < used.max() <= 1), f"{case}: between {used.min():.2f} and {used.max():.2f} of the bound")


@the_bound_covers_every_operation.claim("It grows with the keys of a row: equal weights make sums of n numbers.")
def the_number_of_keys_does_not_matter():
    """The error does not grow with the number of keys."""
    used = shares(CASES[3], lambda d, products, cap, bias, gap, keys, tile: units(d, products, cap, bias, gap, 0 * keys, tile))
    prove_that(bool(used.max() <= 1), counterexample=f"the error is {used.max():.2f} times the bound without this term")


@the_bound_covers_every_operation.control
def products_do_not_round():
    """What the products of queries and keys round needs no term."""
    used = shares(CASES[1], lambda d, products, cap, bias, gap, keys, tile: units(d, 0 * products, cap, bias, gap, keys, tile))
    prove_that(bool(used.max() <= 1), counterexample=f"the error is {used.max():.2f} times the bound without this term")


@the_bound_covers_every_operation.control
def a_bias_does_not_round():
    """The sum with the bias needs no term."""
    used = shares(CASES[1], lambda d, products, cap, bias, gap, keys, tile: units(d, products, cap, 0 * bias, gap, keys, tile))
    prove_that(bool(used.max() <= 1), counterexample=f"the error is {used.max():.2f} times the bound without this term")
