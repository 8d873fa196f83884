"""Stick-breaking attention: each key takes a share of the weight that later keys leave."""

import itertools

import numpy as np
import sympy as sp

from posref.ops import stick_breaking as ops
from posref.relative import forgetting, stick_breaking
from proofs.kit import *

WHOLE = [stick_breaking.weights, forgetting.log_sigmoid]
MASKS = [np.array(bits, dtype=bool)[None] for bits in itertools.product((False, True), repeat=3)]
ALL = np.ones((1, 2), dtype=bool)


def share(z, m=sp):
    """sigmoid(z)"""
    return 1 / (1 + m.exp(-z))


def definition(scores, mask, m=sp):
    """One row of weights: from the last key on, each key takes its share of the weight left. Tan et al., arXiv 2410.17980."""
    left, weights = 1, []
    for z, seen in reversed([*zip(scores, mask, strict=True)]):
        taken = left * share(z, m) if seen else 0 * left
        weights, left = [taken, *weights], left - taken
    return weights, left


def of(function, z, mask):
    """The first row of a result on every path, with the expressions of the scores."""
    for _, got in all_paths(lambda: function(z, mask)):
        yield got[0]


def row(z):
    return [expression(each) for each in z[0]]


@theorem(of=WHOLE, sizes="three keys, all masks")
def pinned():
    """Key after key, from the last, takes sigmoid(z) of what is left; masked keys take nothing and leave everything."""
    z = symbols("z", 1, 3)
    for mask in MASKS:
        for got in of(stick_breaking.weights, z, mask):
            prove_that(got.shape == (3,), "a weight for each key")
            prove_equal(got, definition(row(z), mask[0])[0], mention=z[mask] if mask[0, 0] else [])


@pinned.control
def broken_from_the_first_key():
    """The first key takes first."""
    z = symbols("z", 1, 2)
    for got in of(ops._from_the_far_end, z, ALL):
        prove_equal(got, definition(row(z), ALL[0])[0])


@pinned.control
def masked_keys_take_their_share():
    """A mask on the weights alone is enough."""
    z, mask = symbols("z", 1, 2), np.array([[True, False]])
    for got in of(ops._all_keys_break, z, mask):
        prove_equal(got, definition(row(z), mask[0])[0])


@theorem(of=[stick_breaking.remainder, *WHOLE], sizes="three keys, all masks")
def what_is_left():
    """The remainder is the product of what the keys leave, and 1 less the sum of the weights."""
    z = symbols("z", 1, 3)
    for mask in MASKS:
        for _, (taken, left) in all_paths(lambda m=mask: (stick_breaking.weights(z, m), stick_breaking.remainder(z, m))):
            prove_equal(left, [definition(row(z), mask[0])[1]], mention=z[mask])
            prove_equal([1 - taken[0].sum()], [left[0]])


@what_is_left.claim("They sum to 1 less the remainder, which is never 0.")
def rows_sum_to_one():
    """The weights of a row sum to 1, as those of a softmax do."""
    z = symbols("z", 1, 2)
    for got in of(stick_breaking.weights, z, ALL):
        prove_equal([got.sum()], [1])


@theorem(of=WHOLE, sizes="1 .. 5 keys")
def equal_scores_are_geometric():
    """With one score z for all keys the key t places back has s (1 - s)^(t - 1), s = sigmoid(z): a decay with the distance, by
    ln(1 + exp(z)) a place, as ALiBi's, without a position."""
    z = symbol("z")
    s = share(z.e)
    for n in range(1, 6):
        for got in of(stick_breaking.weights, array([[z] * n]), np.ones((1, n), dtype=bool)):
            prove_equal(got, [s * (1 - s) ** (n - 1 - j) for j in range(n)], mention=[z])


@equal_scores_are_geometric.claim("A softmax of equal scores is flat; here the nearest key takes most.")
def equal_scores_are_flat():
    """Equal scores give equal weights."""
    z = symbol("z")
    for got in of(stick_breaking.weights, array([[z, z]]), ALL):
        prove_equal(got[0], got[1])


@theorem(of=WHOLE, sizes="three keys and one more", as_written="runs")
def older_keys_change_nothing():
    """The weights of the last keys are the same whatever keys stand before them, so a window that is dropped changes no other
    weight: unlike a softmax, whose sum has all keys."""
    z = symbols("z", 1, 4)
    both = lambda: (stick_breaking.weights(z, np.ones((1, 4), bool)), stick_breaking.weights(z[:, 1:], np.ones((1, 3), bool)))
    for _, (longer, shorter) in all_paths(both):
        prove_equal(longer[0, 1:], shorter[0], mention=z[:, 1:])


@older_keys_change_nothing.control
def later_keys_change_nothing():
    """The weights of the first keys are the same whatever follows."""
    z = symbols("z", 1, 3)
    both = lambda: (stick_breaking.weights(z, np.ones((1, 3), bool)), stick_breaking.weights(z[:, :2], ALL))
    for _, (longer, shorter) in all_paths(both):
        prove_equal(longer[0, :2], shorter[0])
