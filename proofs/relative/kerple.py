"""KERPLE: the logarithm and the power of a distance."""

import numpy as np
import sympy as sp

from posref.offsets import offsets
from posref.relative import alibi, kerple
from proofs.kit import *

WHOLE = [kerple.bias, offsets]


def definition(distance, p, a, form, m=sp):
    """The bias at a distance. Chi et al., arXiv 2205.09921."""
    if form == "log":
        return -p * m.log(1 + a * distance)
    return -a * (m.exp(p * m.log(distance)) if distance != 0 else 0)


def at(distances, p, a, form):
    """The bias of a query at i and keys on both sides."""
    i = symbol("i", integer=True)
    keys = [i - t for t in distances] + [i + t for t in distances]
    for _, got in all_paths(lambda: kerple.bias(array([i]), array(keys), p, a, form=form)):
        yield got


@theorem(of=WHOLE, sizes="h = 2, all distances, on both sides")
def pinned():
    """Head by head -p ln(1 + a t) and -a t^p at the distance t, before and after the query; nothing at the distance 0."""
    t = symbol("t", integer=True, positive=True)
    p, a = symbols("p", 2, positive=True), symbols("a", 2, positive=True)
    for form in kerple.FORMS:
        for got in at([t], p, a, form):
            prove_that(got.shape == (2, 1, 2), "heads, queries, keys")
            for h, side in np.ndindex(2, 2):
                prove_equal([got[h, 0, side]], [definition(t.e, p[h].e, a[h].e, form)], mention=[t, a[h]])
    i = np.arange(2)
    prove_equal(np.diagonal(kerple.bias(i, i, p, a, form="log"), 0, 1, 2), [[0, 0], [0, 0]])
    prove_equal(np.diagonal(kerple.bias(i, i, np.array([1, 2]), a, form="power"), 0, 1, 2), [[0, 0], [0, 0]])


@pinned.control
def the_numbers_are_exchanged():
    """p is inside the logarithm and a multiplies."""
    t, p, a = symbol("t", integer=True, positive=True), symbols("p", 1, positive=True), symbols("a", 1, positive=True)
    for got in at([t], p, a, "log"):
        prove_equal(got[0, 0, 0], definition(t.e, a[0].e, p[0].e, "log"))


@theorem(of=[*WHOLE, alibi.bias], sizes="h = 2, n = 5", as_written="runs")
def alibi_is_the_first_power():
    """power with p = 1 is ALiBi, absolute, with the slopes a."""
    a, i = symbols("a", 2), np.arange(5)
    prove_equal(kerple.bias(i, i, np.ones(2, int), a, form="power"), alibi.bias(i, i, a, form="absolute"))


@alibi_is_the_first_power.claim("A logarithm is no line: it is p ln(1 + a t).")
def the_logarithm_is_alibi_too():
    """log with p = 1 is ALiBi with the slope a (at the distance 2)."""
    a = symbols("a", 1)
    got = kerple.bias(np.array([2]), np.array([0]), np.ones(1, int), a, form="log")
    prove_equal(got, alibi.bias(np.array([2]), np.array([0]), a, form="absolute"))


@theorem(of=WHOLE, sizes="p = 1, 2, 3, all a > 0, distances t >= 1", as_written="formula")
def log_weights_decay_like_a_power():
    """exp of the log form is (1 + a t)^-p: weights fall with a power of the distance and not exponentially, as ALiBi's do."""
    t, a = symbol("t", integer=True, positive=True), symbols("a", 1, positive=True)
    for p in (1, 2, 3):
        for got in at([t], np.array([p]), a, "log"):
            weights = [sp.exp(expression(each)) for each in got.ravel()]
            prove_equal(weights, [1 / (1 + a[0].e * t.e) ** p] * 2, mention=[t, a[0]])


@log_weights_decay_like_a_power.control
def they_decay_exponentially():
    """Twice the distance is the square of the weight."""
    t, a = symbol("t", integer=True, positive=True), symbols("a", 1, positive=True)
    for got in at([t, 2 * t], np.array([1]), a, "log"):
        near, far = (sp.exp(expression(each)) for each in got[0, 0, :2])
        prove_equal([near**2], [far])


@theorem(of=WHOLE, sizes="h = 2, n = 6", as_written="formula")
def without_a_there_is_no_bias():
    """With a = 0 the log form is 0 everywhere: the class that NeMo has stored adds nothing."""
    i = np.arange(6)
    prove_equal(kerple.bias(i, i, symbols("p", 2), np.zeros(2, int), form="log"), np.zeros((2, 6, 6), int))


@without_a_there_is_no_bias.control
def without_p_alone():
    """It is 0 for a = 1 as well."""
    prove_equal(kerple.bias(np.array([1]), np.array([0]), symbols("p", 1), np.ones(1, int), form="log"), [[[0]]])


def form_of(p, weights, a=1):
    """sum_ij c_i c_j b_ij on the points 0, 1, .. for the power p."""
    i = np.arange(len(weights))
    return weights @ kerple.bias(i, i, array([p]), np.array([a]), form="power")[0] @ weights


@theorem(of=WHOLE, sizes="four points, all weights of sum 0")
def squares_are_conditionally_positive():
    """For p = 2 and weights of sum 0 the form sum c_i c_j b_ij on the points 0 to 3 is 2 a (sum c_i i)^2, so never below 0 for
    a >= 0."""
    c, a = symbols("c", 3), symbol("a")
    weights = array([*c, -c.sum()])
    prove_equal([form_of(2, weights, a)], [2 * a * (weights @ np.arange(4)) ** 2], mention=c)


@squares_are_conditionally_positive.control
def for_weights_of_any_sum():
    """So it is for any weights."""
    c = symbols("c", 2)
    prove_equal([form_of(2, c)], [2 * (c @ np.arange(2)) ** 2])


@example(of=WHOLE, sizes="three points, p = 1, 2, 3")
def two_is_the_largest_power():
    """With the weights 1, -2, 1 on 0, 1, 2 the form is 8 - 2^(p + 1): 4, 0 and -8 for p = 1, 2, 3. So 2 is the bound."""
    values = [int(form_of(p, np.array([1, -2, 1]))) for p in (1, 2, 3)]
    prove_that(values == [4, 0, -8] == [8 - 2 ** (p + 1) for p in (1, 2, 3)], "the three values")


@two_is_the_largest_power.claim("It holds up to p = 2.")
def any_power_is_a_kernel():
    """-|x|^p is conditionally positive definite for every p > 0 (p = 3)."""
    form = form_of(3, np.array([1, -2, 1]))
    prove_that(form >= 0, counterexample=f"p = 3, weights 1, -2, 1: the form is {form}, expected at least 0")
