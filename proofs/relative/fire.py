"""FIRE: a network of the normalized distance."""

import numpy as np
import sympy as sp

from posref import attention
from posref.offsets import offsets
from posref.relative import fire
from proofs.attention import definition as softmax
from proofs.kit import *

WHOLE = [fire.progress, offsets]


def definition(i, j, c, threshold, eps, m=sp):
    """x_ij of a query at i and a key at j. Li et al., arXiv 2310.04418."""
    return m.log(1 + c * abs(j - i)) / (m.log(1 + c * max(i, threshold)) + eps)


def hidden(x, w, b):
    """relu(w x + b)"""
    return max(w * x + b, 0)


@theorem(of=WHOLE, sizes="positions -4 to 5, threshold 3, all c, all positive eps")
def pinned():
    """x_ij is ln(1 + c |j - i|) / (ln(1 + c max(i, L)) + eps)."""
    c, eps, i, j = symbol("c", positive=True), symbol("eps", positive=True), np.array([-4, 2, 3, 5]), np.arange(-4, 6)
    for _, got in all_paths(lambda: fire.progress(i, j, c=c, threshold=3, eps=eps)):
        prove_that(got.shape == (4, 10), "queries, keys")
        for row, column in np.ndindex(4, 10):
            stated = definition(int(i[row]), int(j[column]), c.e, 3, eps.e)
            prove_equal([got[row, column]], [stated], mention=[c, eps] if i[row] != j[column] else [])


@pinned.control
def the_keys_position_divides():
    """max(j, L) is in the denominator."""
    c, eps, i = symbol("c", positive=True), symbol("eps", positive=True), np.arange(6)
    got = fire.progress(i[5:], i[:1], c=c, threshold=3, eps=eps)
    prove_equal(got[0], [definition(0, 5, c.e, 3, eps.e)])


@theorem(of=WHOLE, sizes="positions 0 .. 5, threshold 5, shifts that stay below it, all c, all positive eps", as_written="runs")
def relative_up_to_the_threshold():
    """As long as no query is beyond L, moving all tokens changes nothing: x is a function of the distance."""
    c, eps, i = symbol("c", positive=True), symbol("eps", positive=True), np.arange(3)
    first = fire.progress(i, i, c=c, threshold=5, eps=eps)
    for shift in (1, 2, 3):
        prove_equal(fire.progress(i + shift, i + shift, c=c, threshold=5, eps=eps), first)
    prove_equal(first, np.swapaxes(first, 0, 1))


@relative_up_to_the_threshold.claim("It is one up to the threshold; beyond it each query has a denominator of its own.")
def relative():
    """FIRE is a relative bias at every length (queries at 3 and 4, threshold 2)."""
    c, i = symbol("c", positive=True), np.arange(3, 5)
    got = fire.progress(i, i - 1, c=c, threshold=2, eps=0)
    prove_equal(got[0, 0], got[1, 1])


@theorem(of=WHOLE, sizes="threshold 4, queries at 4 to 8; c, which cancels", as_written="formula")
def the_first_key_is_at_one():
    """Without eps the first key of a query at or beyond the threshold has x = 1, and the query's own key has x = 0."""
    c, i = symbol("c", positive=True), np.arange(4, 9)
    prove_equal(fire.progress(i, np.array([0]), c=c, threshold=4, eps=0), np.ones((5, 1), int))
    for n in i.tolist():
        prove_equal(fire.progress(i[i == n], np.array([n]), c=c, threshold=4, eps=0), [[0]])


@the_first_key_is_at_one.control
def below_the_threshold_too():
    """So it is for a query below the threshold."""
    c = symbol("c", positive=True)
    prove_equal(fire.progress(np.array([2]), np.array([0]), c=c, threshold=4, eps=0), [[1]])


@theorem(of=[fire.network], sizes="width 2, h = 2, n = 1 x 2")
def network_pinned():
    """The network is W_2 relu(w_1 x + b_1) + b_2, a number per head."""
    x, w_1, b_1, w_2, b_2 = symbols("x", 1, 2), symbols("w", 2), symbols("b", 2), symbols("v", 2, 2), symbols("g", 2)
    both = lambda: (
        fire.network(x, w_1, b_1, w_2, b_2),
        [[hidden(each, *of) for of in zip(w_1, b_1, strict=True)] for each in x[0]],
    )
    for _, (got, layer) in all_paths(both):
        prove_that(got.shape == (2, 1, 2), "heads, queries, keys")
        for h, j in np.ndindex(2, 2):
            prove_equal([got[h, 0, j]], [sum(w_2[t, h] * layer[j][t] for t in range(2)) + b_2[h]], mention=[b_2[h]])


@network_pinned.control
def without_the_relu():
    """It is linear in x."""
    x, w, b, v, g = symbols("x", 1, 1), symbols("w", 1), symbols("b", 1), symbols("v", 1, 1), symbols("g", 1)
    for _, got in all_paths(lambda: fire.network(x, w, b, v, g)):
        prove_equal(got[0], (x * w + b) * v[0] + g)


def network_of_width_1():
    return symbols("w", 1), symbols("b", 1), symbols("v", 1, 1), symbols("g", 1)


@theorem(of=[fire.network, attention.softmax], sizes="width 1, two keys")
def the_last_bias_is_a_gauge():
    """softmax(s + f(x)) is the same for every b_2: the bias of the last layer is a constant of the row."""
    s, x, w, b, v, g = symbols("s", 1, 1, 2), symbols("x", 1, 2), *network_of_width_1()
    both = lambda: (fire.network(x, w, b, v, 0 * g), attention.softmax(s + fire.network(x, w, b, v, g)))
    for _, (bias, weights) in all_paths(both):
        prove_equal(weights[0, 0], softmax([expression(each) for each in (s + bias)[0, 0]]))


@the_last_bias_is_a_gauge.control
def the_first_bias_is_one_too():
    """It is the same for every b_1."""
    s, x, w, b, v, g = symbols("s", 1, 1, 2), symbols("x", 1, 2), *network_of_width_1()
    both = lambda: (fire.network(x, w, 0 * b, v, g), attention.softmax(s + fire.network(x, w, b, v, g)))
    for _, (bias, weights) in all_paths(both):
        prove_equal(weights[0, 0], softmax([expression(each) for each in (s + bias)[0, 0]]))


@example(of=WHOLE, sizes="10000 tokens, c = 0.1, threshold 512, eps = 1e-6")
def between_zero_and_one():
    """With the published c, L and eps x lies in [0, 1] for all keys in the past of the queries at 0, 1, 511, 512, 513
    and 9999."""
    i = np.arange(10000)
    for query in (0, 1, 511, 512, 513, 9999):
        x = fire.progress(i[query : query + 1], i[: query + 1], c=0.1, threshold=512, eps=1e-6)
        prove_that(bool((x >= 0).all() and (x <= 1).all()), f"the range of x for the query at {query}")


@between_zero_and_one.control
def also_for_keys_to_come():
    """So it is for keys in the future."""
    x = fire.progress(np.array([0]), np.array([600]), c=0.1, threshold=512, eps=1e-6)
    prove_that(bool((x <= 1).all()), counterexample=f"query 0, key 600: x is {x.max():.4f}, expected at most 1")
