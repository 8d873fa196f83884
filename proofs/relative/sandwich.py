"""Sandwich: the inner product of two sinusoids as a bias."""

import numpy as np
import sympy as sp

from posref import pairing
from posref.absolute import sinusoidal
from posref.offsets import offsets
from posref.relative import sandwich
from proofs.kit import *

WHOLE = [sandwich.bias, offsets]


def definition(offset, frequencies, slope, m=sp):
    """slope (p_i . p_j - d/2) with the inner product of sinusoids as a sum of cosines. Chi et al., arXiv 2212.10356."""
    return slope * (sum(m.cos(offset * w) for w in frequencies) - len(frequencies))


def frequency(t, dim, base, m=sp):
    """base^(-2t/d), t = 1 .. d/2"""
    return m.exp(-2 * t * m.log(base) / dim)


@theorem(of=WHOLE, sizes="h = 2, 1 .. 3 frequencies, all positions")
def pinned():
    """Head a, positions i and j: m_a times (sum_t cos((j - i) w_t) - d/2)."""
    i, j, m = symbols("i", 2), symbols("j", 3), symbols("m", 2)
    for pairs in (1, 2, 3):
        w = symbols("w", pairs)
        got = sandwich.bias(i, j, w, m)
        prove_that(got.shape == (2, 2, 3), "heads, queries, keys")
        for a, row, column in np.ndindex(2, 2, 3):
            stated = definition(j[column].e - i[row].e, [each.e for each in w], m[a].e)
            prove_equal([got[a, row, column]], [stated], mention=[i[row], j[column], m[a]])


@pinned.claim("It is d/2 less: 0 at the distance 0.")
def the_inner_product_itself():
    """The bias is the inner product of two sinusoids."""
    i, j, w, m = symbols("i", 1), symbols("j", 1), symbols("w", 1), symbols("m", 1)
    prove_equal(sandwich.bias(i, j, w, m)[0, 0], [definition(j[0].e - i[0].e, [w[0].e], m[0].e) + m[0].e])


@theorem(of=[*WHOLE, sinusoidal.encode, pairing.join], sizes="2 frequencies, all positions, both layouts")
def an_inner_product_of_sinusoids():
    """The bias is m (p_i . p_j - d/2) with the sinusoids of the same frequencies, so as scores of d features it is linear."""
    i, j, w, m = symbols("i", 1), symbols("j", 1), symbols("w", 2), symbols("m", 1)
    for layout in pairing.LAYOUTS:
        p, r = (sinusoidal.encode(x, w, layout=layout) for x in (i, j))
        prove_equal(sandwich.bias(i, j, w, m)[0], m * (p @ r.T - 2), mention=[i, j])


@an_inner_product_of_sinusoids.control
def of_other_frequencies():
    """So it is for sinusoids of twice the frequencies."""
    i, j, w, m = symbols("i", 1), symbols("j", 1), symbols("w", 1), symbols("m", 1)
    p, r = (sinusoidal.encode(x, 2 * w, layout="half") for x in (i, j))
    prove_equal(sandwich.bias(i, j, w, m)[0], m * (p @ r.T - 1))


@theorem(of=WHOLE, sizes="2 frequencies, all positions")
def never_above_zero():
    """The bias is -2 m sum_t sin^2((j - i) w_t / 2): 0 at distance 0, and never positive where the slope m is not negative. It
    is the same on both sides."""
    i, j, w, m = symbols("i", 1), symbols("j", 1), symbols("w", 2), symbols("m", 1)
    squares = sum(sp.sin((j[0].e - i[0].e) * each.e / 2) ** 2 for each in w)
    prove_equal(sandwich.bias(i, j, w, m)[0, 0], [-2 * m[0].e * squares], mention=[i, j])
    prove_equal(sandwich.bias(j, i, w, m), sandwich.bias(i, j, w, m))


@never_above_zero.control
def it_grows_with_the_positions():
    """Moving the key alone changes nothing."""
    i, j, w, m, s = symbols("i", 1), symbols("j", 1), symbols("w", 1), symbols("m", 1), symbol("s")
    prove_equal(sandwich.bias(i, j + s, w, m), sandwich.bias(i, j, w, m))


@theorem(of=[sandwich.frequencies, sandwich.slopes], sizes="d = 2, 4, 8; h = 1 .. 12")
def frequencies_and_slopes_pinned():
    """Frequencies are base^(-2t/d) for t = 1 .. d/2, without the 1 of the sinusoid; slopes are h / (8 a) for a = 1 .. h."""
    base = symbol("base", positive=True)
    for dim in (2, 4, 8):
        got = [expression(w) for w in sandwich.frequencies(dim, base)]
        prove_equal(got, [base.e ** sp.Rational(-2 * t, dim) for t in range(1, dim // 2 + 1)], mention=[base])
    prove_that((abs(sandwich.frequencies(4) * [100, 10000] - 1) < 2.0**-50).all(), "the base is 10000 where none is given")
    for heads in range(1, 13):
        prove_that(sandwich.slopes(heads).tolist() == [heads / (8 * a) for a in range(1, heads + 1)], f"slopes of {heads}")


@frequencies_and_slopes_pinned.control
def the_first_frequency_is_one():
    """The frequencies are those of the sinusoid."""
    base = symbol("base", positive=True)
    prove_equal(sandwich.frequencies(2, base), [1])


@example(of=[*WHOLE, sandwich.frequencies, sandwich.slopes], sizes="d = 128")
def first_rise():
    """With 128 features the bias falls up to the distance 13 and rises at 14."""
    n = np.arange(16)
    steps = np.diff(sandwich.bias(n[:1], n, sandwich.frequencies(128), sandwich.slopes(1))[0, 0])
    prove_that(bool((steps[:13] < 0).all()) and steps[13] > 0, "the first rise is the step from 13 to 14")


@first_rise.claim("It falls up to 13 and rises at 14 (128 features).")
def monotone():
    """The bias falls with the distance."""
    n = np.arange(200)
    steps = np.diff(sandwich.bias(n[:1], n, sandwich.frequencies(128), sandwich.slopes(1))[0, 0])
    rise = int(np.argmax(steps >= 0))
    witness = f"from distance {rise} to {rise + 1} the bias changes by {steps[rise]:+.4f}, expected less than 0"
    prove_that(bool((steps < 0).all()), counterexample=witness)
