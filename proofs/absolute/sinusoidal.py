"""Sinusoidal encoding: sines and cosines of geometrically spaced frequencies."""

# Over budget: the claims of four sources, most of them false

from itertools import pairwise

import mpmath
import numpy as np
import sympy as sp

from posref import pairing
from posref.absolute import sinusoidal
from proofs.kit import *

DEFAULTS = {"divisor": "dim"}  # Vaswani et al., section 3.5

N, H = size("n"), size("h")


def frequency(t, dim, base, divisor="dim", m=sp):
    """w_t = base^(-2t/dim), or base^(-2t/(dim - 2)) as in tensor2tensor. Vaswani et al., section 3.5."""
    width = dim if divisor == "dim" else dim - 2
    return m.exp(-2 * t * m.log(base) / width)


def definition(position, frequencies, layout, m=sp):
    """PE(position, 2t) = sin(position w_t), PE(position, 2t+1) = cos(position w_t); sines first with layout half."""
    sines, cosines = [m.sin(position * w) for w in frequencies], [m.cos(position * w) for w in frequencies]
    return sines + cosines if layout == "half" else [value for pair in zip(sines, cosines, strict=True) for value in pair]


# what it is


@theorem(of=[sinusoidal.encode, pairing.join], sizes="all n, d")
def pinned():
    """Pair t of encode is (sin(m_i w_t), cos(m_i w_t)), at 2t, 2t + 1 or at t, t + d/2."""
    m, w = sized("m", N), sized("w", H)
    for layout in pairing.LAYOUTS:
        p = sinusoidal.encode(m, w, layout=layout)
        i, (t, a, b) = index(N), pair(layout, 2 * H)
        prove_equal([p.at(i, a), p.at(i, b)], definition(m.at(i), [w.at(t)], "interleaved"), mention=[m.at(i), w.at(t)])


@pinned.control
def pinned_with_cosine_first():
    """The even features are cosines."""
    m, w = array([symbol("m")]), symbols("w", 1)
    prove_equal(sinusoidal.encode(m, w, layout="half")[0], definition(m[0].e, [w[0].e], "half")[::-1])


@theorem(
    of=[sinusoidal.frequencies],
    sizes="d = 2, 4, 8, 12, 128",
    equivalent={
        "frequencies: width = dim if divisor == 'dim' else max(dim - 2, 1)  ->  "
        "width = dim if divisor == 'dim' else max(dim - 2, 2)": "0 over either is 0"
    },
)
def frequencies_pinned():
    """w_t = base^(-2t/d), or base^(-2t/(d - 2)), which ends at exactly 1/base; at d = 2 the one frequency is 1."""
    base = symbol("base", positive=True)
    for dim in (2, 4, 8, 12, 128):
        for divisor, width in (("dim", dim), ("dim - 2", max(dim - 2, 1))):
            expected = [1 / base.e ** sp.Rational(2 * t, width) for t in range(dim // 2)]
            prove_equal(sinusoidal.frequencies(sp.Integer(dim), base, divisor=divisor), expected)
    prove_equal(sinusoidal.frequencies(sp.Integer(8), base, divisor="dim - 2")[-1], 1 / base)


@frequencies_pinned.claim("With divisor dim the last frequency is base^(-(d - 2)/d); 1/base needs the divisor dim - 2.")
def the_paper_ends_at_one_over_base():
    """With divisor dim the last frequency is 1/base too."""
    base = symbol("base", positive=True)
    prove_equal(sinusoidal.frequencies(8, base)[-1], 1 / base)


# what it does


@theorem(of=[sinusoidal.encode, pairing.join], sizes="all n, d")
def dot_product():
    """p_i . p_j = sum_t cos(w_t (m_i - m_j)): a function of the offset, even in it, so left and right are not distinguished;
    and |p_i|^2 = d/2."""
    m, w = sized("m", N), sized("w", H)
    for layout in pairing.LAYOUTS:
        with summing(layout):
            p, i, j, t = sinusoidal.encode(m, w, layout=layout), index(N), index(N), index(H)
            gram = p @ np.swapaxes(p, -1, -2)
            expected = sp.Sum(sp.cos((m.at(i) - m.at(j)) * w.at(t)), (t, 0, H - 1))
            prove_equal([gram.at(i, j)], [expected], mention=[m.at(i), m.at(j)])
            prove_equal([gram.at(i, j)], [gram.at(j, i)])
            prove_equal([gram.at(i, i)], [H])


@dot_product.claim("It is even in k: direction cannot be read off the inner product.")
def dot_product_is_odd():
    """p_t . p_{t+k} changes sign with k, so that direction can be read off it."""
    m, k, w = symbol("m"), symbol("k"), symbols("w", 2)
    p = sinusoidal.encode(array([m, m + k, m - k]), w, layout="half")
    prove_equal([p[0] @ p[1]], [-(p[0] @ p[2])])


@dot_product.claim("It falls at first and then rises and falls.")
def similarity_falls_with_distance():
    """sum_t cos(w_t k) falls with |k| (d = 64, k = 0 .. 20), so that |k| can be read off it."""
    p = sinusoidal.encode(np.arange(21), sinusoidal.frequencies(64), layout="half")
    similarity = (p @ p[0]).tolist()
    rise = next(k for k, (a, b) in enumerate(pairwise(similarity)) if b >= a)
    witness = f"k = {rise}: the sum is {similarity[rise]:.4f}, and at k = {rise + 1} it is {similarity[rise + 1]:.4f}"
    prove_that(similarity[rise + 1] < similarity[rise], counterexample=witness)


@theorem(
    of=[sinusoidal.shift_matrix, sinusoidal.encode, pairing.join, pairing.indices],
    sizes="3 positions at d = 2, 4, 8; blocks for all d",
    equivalent={
        "shift_matrix: shift = np.zeros_like(cos, shape=(dim, dim))  ->  shift = np.zeros_like(sin, shape=(dim, dim))": "only "
        "the dtype is read, which cos and sin share"
    },
    values="a derivative at 0",
)
def shift_is_linear():
    """p_{m+k} = M(k) p_m for every m; M(k) is orthogonal, M(a) M(b) = M(a + b), and dp/dm = B p with a constant B^T = -B, the
    derivative of M at 0: an autonomous linear differential equation, and the recurrence p_{m+1} = M(1) p_m."""
    m, k, b = symbol("m"), symbol("k"), symbol("b")
    for dim in (2, 4, 8):
        w = symbols("w", dim // 2)
        for layout in pairing.LAYOUTS:
            p = sinusoidal.encode(array([m, m + k, m + 1]), w, layout=layout)
            shift = sinusoidal.shift_matrix(k, w, layout=layout)
            prove_equal(shift @ p[0], p[1], mention=[m, k])
            prove_equal(shift.T @ shift, np.eye(dim, dtype=int))
            prove_equal(shift @ sinusoidal.shift_matrix(b, w, layout=layout), sinusoidal.shift_matrix(k + b, w, layout=layout))
            slope = sp.Matrix(dim, dim, [expression(e).diff(k.e).subs(k.e, 0) for e in shift.ravel()])
            prove_equal([e.e.diff(m.e) for e in p[0]], array(slope.tolist()) @ p[0])
            prove_equal(slope.T.tolist(), (-slope).tolist())
    m, w, step = sized("m", N), sized("w", H), symbol("k").e
    for layout in pairing.LAYOUTS:
        before, after = sinusoidal.encode(m, w, layout=layout), sinusoidal.encode(m + step, w, layout=layout)
        i, (t, a, b) = index(N), pair(layout, 2 * H)
        c, s = sp.cos(w.at(t) * step), sp.sin(w.at(t) * step)
        turned = [c * before.at(i, a) + s * before.at(i, b), -s * before.at(i, a) + c * before.at(i, b)]
        prove_equal([after.at(i, a), after.at(i, b)], turned, mention=[step])


@shift_is_linear.control
def shift_by_the_transpose():
    """p_{m+k} = M(k)^T p_m, the rotation of RoPE instead of its inverse."""
    m, k, w = symbol("m"), symbol("k"), symbols("w", 1)
    p = sinusoidal.encode(array([m, m + k]), w, layout="half")
    prove_equal(sinusoidal.shift_matrix(k, w, layout="half").T @ p[0], p[1])


@theorem(of=[sinusoidal.encode, pairing.join], sizes="all d")
def second_order_recurrence():
    """Every component obeys x_{m+1} + x_{m-1} = 2 cos(w_t) x_m."""
    m, w = sized("m", N), sized("w", H)
    for layout in pairing.LAYOUTS:
        before, now, after = (sinusoidal.encode(m + step, w, layout=layout) for step in (-1, 0, 1))
        i, (t, a, b) = index(N), pair(layout, 2 * H)
        prove_equal([before.at(i, c) + after.at(i, c) for c in (a, b)], [2 * sp.cos(w.at(t)) * now.at(i, c) for c in (a, b)])


@second_order_recurrence.control
def arithmetic_progression():
    """x_{m+1} + x_{m-1} = 2 x_m"""
    m, w = symbol("m"), symbols("w", 1)
    p = sinusoidal.encode(array([m - 1, m, m + 1]), w, layout="half")
    prove_equal(p[0] + p[2], 2 * p[1])


@theorem(of=[sinusoidal.encode, pairing.join], sizes="d = 4")
def addition_is_bilinear():
    """p_{a+b} is bilinear in p_a and p_b: block by block the product of complex numbers. For d >= 4 it is in
    general no combination x p_a + y p_b with numbers x, y: a determinant of three components of p_a, p_b and p_{a+b} is not 0
    as a function of a, b and the frequencies."""
    a, b, w = symbol("a"), symbol("b"), symbols("w", 2)
    first, second, both = sinusoidal.encode(array([a, b, a + b]), w, layout="interleaved")
    product = []
    for t in (0, 2):
        product += [first[t] * second[t + 1] + first[t + 1] * second[t], first[t + 1] * second[t + 1] - first[t] * second[t]]
    prove_equal(both, product, mention=[a, b])
    minor = sp.Matrix([[e.e for e in row[:3]] for row in (first, second, both)]).det()
    prove_that(not is_zero(minor), "a 3 x 3 minor of p_a, p_b, p_{a+b} is not zero")


@addition_is_bilinear.claim("p_{a+b} is bilinear in p_a and p_b, block by block.")
def addition_is_a_sum():
    """p_{a+b} = p_a + p_b."""
    a, b, w = symbol("a"), symbol("b"), symbols("w", 2)
    first, second, both = sinusoidal.encode(array([a, b, a + b]), w, layout="half")
    prove_equal(both, first + second)


@theorem(of=[sinusoidal.encode, pairing.join], sizes="all d")
def distance():
    """|p_m - p_{m+k}|^2 = 4 sum_t sin^2(w_t k / 2)."""
    m, k, w = symbol("m"), symbol("k"), sized("w", H)
    for layout in pairing.LAYOUTS:
        with summing(layout):
            gap = sinusoidal.encode(filled((1,), m), w, layout=layout) - sinusoidal.encode(
                filled((1,), m + k), w, layout=layout
            )
            t = index(H)
            expected = sp.Sum(4 * sp.sin(w.at(t) * k.e / 2) ** 2, (t, 0, H - 1))
            prove_equal([(gap @ np.swapaxes(gap, -1, -2)).at(0, 0)], [expected], mention=[k])


@distance.control
def distance_with_a_full_angle():
    """4 sin^2(w k)"""
    m, k, w = symbol("m"), symbol("k"), symbols("w", 1)
    p = sinusoidal.encode(array([m, m + k]), w, layout="half")
    prove_equal([(p[0] - p[1]) @ (p[0] - p[1])], [4 * np.sin(w[0] * k) ** 2])


@theorem(
    of=[sinusoidal.encode, sinusoidal.frequencies, pairing.join],
    sizes="all integer positions; w_0 at d = 2, 4, 128",
    argument="cos(a - b) = 1 makes a - b a multiple of 2 pi, which is irrational, so a = b for integers; and so for w_t / 2 pi",
)
def unique():
    """Integer positions have different encodings as soon as one w_t / 2 pi is irrational, and w_0 = 1 for every width, base and
    divisor. Pair 0 is equal at a and b only if e^{i(a - b)} = 1, that is a - b in 2 pi Z, and pi is irrational. In exact
    arithmetic, that is."""
    base, a, b = symbol("base", positive=True), symbol("a"), symbol("b")
    for dim in (2, 4, 128):
        for divisor in sinusoidal.DIVISORS:
            prove_equal([sinusoidal.frequencies(dim, base, divisor=divisor)[0]], [1])
    p = sinusoidal.encode(array([a, b]), array([1]), layout="half")
    prove_equal([(p[0] - p[1]) @ (p[0] - p[1])], [2 - 2 * sp.cos(a.e - b.e)], mention=[a, b])
    premise(sp.pi.is_irrational, "pi is irrational, so cos(a - b) = 1 for integers only if a = b")


@unique.claim("One frequency over 2 pi has to be irrational; w_0 = 1 is.")
def unique_for_rational_turns():
    """Any frequency will do: with w = 2 pi / 3 positions 0 and 3 differ."""
    p = sinusoidal.encode(array([0, 3]), array([2 * sp.pi / 3]), layout="half")
    prove_that([x.e for x in p[0]] != [x.e for x in p[1]], counterexample=f"position 0 has {p[0]}, position 3 has {p[1]}")


@theorem(of=[sinusoidal.encode, pairing.join], sizes="d = 2, 4")
def spanning():
    """p_0 .. p_{d-1} span the space exactly if no w_a is a multiple of pi and no w_a = +-w_b modulo 2 pi: their determinant is
    -sin w_0 at d = 2, and +-4 sin w_0 sin w_1 (cos w_0 - cos w_1)^2 at d = 4."""
    w = symbols("w", 2)
    (a, b), (c, d) = sinusoidal.encode(np.arange(2), w[:1], layout="interleaved")
    prove_equal([a * d - b * c], [-sp.sin(w[0].e)])
    p = sinusoidal.encode(np.arange(4), w, layout="interleaved")
    determinant = sp.Matrix(4, 4, [expression(e) for e in p.ravel()]).det()
    closed = 4 * sp.sin(w[0].e) * sp.sin(w[1].e) * (sp.cos(w[0].e) - sp.cos(w[1].e)) ** 2
    prove_equal([determinant**2], [closed**2], mention=w)


@spanning.control
def spanning_for_any_frequencies():
    """Equal frequencies span as well."""
    w = symbol("w")
    p = sinusoidal.encode(np.arange(4), array([w, w]), layout="interleaved")
    found = sp.expand(sp.Matrix(4, 4, [expression(e) for e in p.ravel()]).det())
    prove_that(not is_zero(found), counterexample=f"positions 0 to 3 with frequencies w, w: the determinant is {found}")


# what the seeds and the folklore say


@example(of=[sinusoidal.encode, sinusoidal.frequencies], sizes="d = 512")
def components_reach_both_signs():
    """Later components are slow, not small: the last ones take both signs too. At d = 512 the last cosine first falls below
    zero at position 15153, and the last sine is -0.891 at position 50000."""
    with mpmath.workdps(40):
        w = frequency(mpmath.mpf(255), 512, mpmath.mpf(10000), m=mpmath)
        premise(mpmath.ceil(mpmath.pi / 2 / w) == 15153, "the last cosine is negative from 15153 on")
        premise(abs(mpmath.sin(50000 * w) + mpmath.mpf("0.891")) < mpmath.mpf("0.0005"), "the last sine at 50000")
    w = sinusoidal.frequencies(512)[255:]
    last = sinusoidal.encode(np.array([15152, 15153, 50000]), w, layout="half")
    prove_that(bool(last[0, 1] > 0 > last[1, 1] and last[2, 0] < -0.89), "the shipped functions agree")


@components_reach_both_signs.claim("It holds for texts of 100 tokens; the range grows with the text, down to -1.")
def later_components_stay_above_zero():
    """Later dimensions range over [0, 1]: what does for the 100 tokens of a figure, 232 to 511 of 512, does for 200."""
    w = sinusoidal.frequencies(512)[116:]
    low = sinusoidal.encode(np.arange(200), w, layout="interleaved").min(axis=1)
    last = int(np.argmax(low < 0))
    witness = f"position {last}: the least of them is {low[last]:.4f}, expected at least 0"
    prove_that(bool((low >= 0).all()), counterexample=witness)


@example(of=[sinusoidal.encode, sinusoidal.frequencies], sizes="d = 512, n = 100", argument="cos x >= 0 for 0 <= x <= pi / 2")
def range_of_later_components():
    """Below position n the features of pair t lie in [0, 1] exactly if (n - 1) w_t <= pi / 2, that is from
    t = (d / 2) log_base(2 (n - 1) / pi) on: for 100 tokens and d = 512 the features 232 to 511, and no pair before them."""
    w = sinusoidal.frequencies(512)
    low = sinusoidal.encode(np.arange(100), w, layout="interleaved").min(axis=0)
    with mpmath.workdps(40):
        first = mpmath.ceil(256 * mpmath.log(2 * mpmath.mpf(99) / mpmath.pi, 10000))
    premise(first == 116, "the first pair is 116")
    prove_that(bool((low[232:] >= 0).all()), "the later features stay in [0, 1]")
    prove_that(bool((low[:232].reshape(116, 2).min(axis=1) < 0).all()), "each pair before them does not")


@range_of_later_components.control
def half_of_the_features():
    """The upper half of the features is the later one: features 0 to 231 hold a pair in [0, 1] too."""
    low = sinusoidal.encode(np.arange(100), sinusoidal.frequencies(512), layout="interleaved").min(axis=0)
    witness = f"pair 115: its least value is {low[230:232].min():.4f}, expected at least 0"
    prove_that(bool((low[:232].reshape(116, 2).min(axis=1) >= 0).any()), counterexample=witness)


@theorem(of=[sinusoidal.encode, pairing.join], sizes="all n, d", argument="sin(x)^2 <= x^2")
def later_components_near_zero_and_one():
    """1 - cos(m w_t) = 2 sin(m w_t / 2)^2 <= (m w_t)^2 / 2, and sin(m w_t)^2 <= (m w_t)^2: pair t is near (0, 1) while m w_t is
    small, that is at positions far below 1 / w_t."""
    m, w = sized("m", N), sized("w", H)
    for layout in pairing.LAYOUTS:
        p = sinusoidal.encode(m, w, layout=layout)
        i, (t, _, b) = index(N), pair(layout, 2 * H)
        prove_equal([1 - p.at(i, b)], [2 * sp.sin(m.at(i) * w.at(t) / 2) ** 2], mention=[m.at(i), w.at(t)])


@later_components_near_zero_and_one.claim(
    "They approach sin(m w) and cos(m w) of the last w, 1.0366e-4 at d = 512: near 0 and 1 for positions far below 10^4."
)
def later_components_converge():
    """All even features converge to 0 and all odd ones to 1 at every position: at 50000 the last two of 512 do to 0.1."""
    sine, cosine = sinusoidal.encode(np.array([50000]), sinusoidal.frequencies(512)[255:], layout="half")[0]
    witness = f"position 50000: the last two features are {sine:.4f} and {cosine:.4f}, expected 0 and 1"
    prove_that(bool(abs(sine) < 0.1 and abs(cosine - 1) < 0.1), counterexample=witness)


@theorem(of=[sinusoidal.encode, pairing.join], sizes="all n, d")
def longer_than_small_words():
    """|p_i|^2 is 1 / (2 s^2) times d s^2, the squared length of a word whose d features have mean square s^2. Multiplied by
    sqrt(d), as Vaswani et al. do before they add p, words of mean square 1/d have s = 1."""
    m, w, s = sized("m", N), sized("w", H), symbol("s", positive=True)
    for layout in pairing.LAYOUTS:
        with summing(layout):
            p, i = sinusoidal.encode(m, w, layout=layout), index(N)
            squared = (p @ np.swapaxes(p, -1, -2)).at(i, i)
            prove_equal([squared / (2 * H * s.e**2)], [1 / (2 * s.e**2)])


@longer_than_small_words.claim(
    "Relative to embeddings of mean square s^2 it is 1 / (s sqrt 2) times as long: 35 times at s = 0.02."
)
def small_relative_to_the_input():
    """The values are small relative to the input: p is no longer than words whose features have a deviation of 0.02."""
    p = sinusoidal.encode(np.array([7]), sinusoidal.frequencies(512), layout="half")[0]
    ratio = np.sqrt(p @ p) / (0.02 * np.sqrt(512))
    witness = f"position 7: p is {ratio:.2f} times as long as such a word, expected at most 1"
    prove_that(bool(ratio <= 1), counterexample=witness)
