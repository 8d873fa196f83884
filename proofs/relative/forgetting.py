"""Forgetting attention: the sum of the logarithms of the gates in between."""

import numpy as np
import sympy as sp

from posref import attention
from posref.offsets import offsets
from posref.relative import alibi, forgetting
from proofs.attention import definition as softmax
from proofs.kit import *

N, H, B = size("n"), size("h"), size("b")


def log_gate(x, m=sp):
    """ln sigmoid(x). Lin et al., section 3."""
    return -m.log(1 + m.exp(-x))


def definition(log_gates, i, j):
    """D_ij, the sum of ln f over j + 1 .. i; for a key in the future it is -D_ji. Lin et al., section 3."""
    return sum(log_gates[j + 1 : i + 1]) if j <= i else -definition(log_gates, j, i)


@theorem(of=[forgetting.log_sigmoid], sizes="one number, of either sign")
def gate_pinned():
    """exp of the shipped logarithm is 1 / (1 + exp(-x)), for either sign of x."""
    x = symbols("x", 1)
    for _, got in all_paths(lambda: forgetting.log_sigmoid(x)):
        prove_equal([sp.exp(got[0].e)], [1 / (1 + sp.exp(-x[0].e))], mention=x)


@gate_pinned.control
def gate_of_what_is_forgotten():
    """It is 1 / (1 + exp(x))."""
    x = symbols("x", 1)
    for _, got in all_paths(lambda: forgetting.log_sigmoid(x)):
        prove_equal([sp.exp(got[0].e)], [1 / (1 + sp.exp(x[0].e))])


@theorem(of=[forgetting.bias], sizes="batch 2, h = 2, n = 1, 4")
def pinned():
    """Entry (i, j) is the sum of ln f over j + 1 .. i, without the key's own gate; row i minus the one row of "key"
    is c_i."""
    for n in (1, 4):
        g = symbols("g", 2, 2, n)
        got, key = (forgetting.bias(g, form=form) for form in forgetting.FORMS)
        prove_that(got.shape == (2, 2, n, n) and key.shape == (2, 2, 1, n), "the axes")
        for *head, i, j in np.ndindex(2, 2, n, n):
            gates = [expression(each) for each in g[tuple(head)]]
            prove_equal([got[(*head, i, j)]], [definition(gates, i, j)], mention=[] if i == j else [g[(*head, max(i, j))]])
            prove_equal([got[(*head, i, j)] - key[(*head, 0, j)]], [sum(gates[: i + 1])])


pinned.control_by("forgetting.bias", "key_gate_included", log_gates=symbols("g", 1, 2), form="difference")


@theorem(of=[forgetting.bias, attention.softmax], sizes="all h, n, batches; with a mask one head and three keys")
def a_bias_by_key_is_enough():
    """softmax(s + c_i - c_j) = softmax(s - c_j) under every mask: what a query has forgotten is a constant of its row."""
    s, g = sized("s", B, H, N, N), sized("g", B, H, N)
    weights = [attention.softmax(s + forgetting.bias(g, form=form)) for form in forgetting.FORMS]
    prove_equal(*entries(None, *weights))
    s, g = symbols("s", 1, 1, 3), symbols("g", 1, 3)
    difference, key = (s + forgetting.bias(g, form=form)[:, -1:] for form in forgetting.FORMS)
    for bits in np.ndindex(2, 2, 2):
        mask = np.array(bits, dtype=bool)
        expected = softmax([expression(x) for x in key[0, 0]], mask)
        for _, weights in all_paths(lambda mask=mask: attention.softmax(difference, mask)):
            prove_equal(weights[0, 0], expected)


@a_bias_by_key_is_enough.claim("Row i of a sum that begins at j lacks ln f_i and has ln f_j, which is no constant of the row.")
def exclusive_sums_are_a_gauge():
    """Whether the gates are summed over j + 1 .. i or over j .. i - 1 is immaterial after softmax."""
    g = symbols("g", 1, 3)
    exclusive = np.cumsum(g, axis=-1) - g
    right, wrong = forgetting.bias(g, form="key")[0, 0], -exclusive[0]
    prove_equal(*(softmax([expression(x) for x in row]) for row in (right, wrong)))


@theorem(of=[forgetting.bias, alibi.bias, offsets], sizes="h = 2, n = 1 .. 5", as_written="runs")
def alibi_is_its_constant_gate():
    """With one gate f for all tokens of a head D_ij = ln f (i - j): ALiBi, signed, with the slope -ln f."""
    slopes = symbols("m", 2)
    for n in range(1, 6):
        gates = np.broadcast_to(-slopes[:, None], (2, n))
        prove_equal(forgetting.bias(gates, form="difference"), alibi.bias(np.arange(n), np.arange(n), slopes, form="signed"))


@alibi_is_its_constant_gate.claim("It is a relative bias for constant gates; other gates tell which tokens are in between.")
def relative():
    """D_ij depends on j - i alone."""
    g = symbols("g", 1, 3)
    got = forgetting.bias(g, form="difference")[0]
    prove_equal(got[1, 0], got[2, 1])


@theorem(of=[forgetting.bias], sizes="h = 1, n = 5, every i, j, a", as_written="runs")
def gates_multiply_along_the_way():
    """D_ij = D_ia + D_aj: to forget from j to i is to forget from j to a and from a to i, so a cache keeps one sum."""
    got = forgetting.bias(symbols("g", 1, 5), form="difference")[0]
    for i, j, a in np.ndindex(5, 5, 5):
        prove_equal(got[i, j], got[i, a] + got[a, j])


@gates_multiply_along_the_way.claim("It is 0 in any gates, since D_ii is a sum of nothing.")
def a_token_forgets_itself():
    """D_ii = ln f_i."""
    g = symbols("g", 1, 2)
    prove_equal(np.diagonal(forgetting.bias(g, form="difference")[0]), g[0])
