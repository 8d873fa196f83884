"""Pairing: which two features form a pair."""

import numpy as np

from posref import pairing
from proofs.kit import *

N, H = size("n"), size("h")


@theorem(of=[pairing.split], sizes="all n, even d")
def split_pinned():
    """Pair t is (x[2t], x[2t+1]) when interleaved and (x[t], x[t + d/2]) when half."""
    x = sized("x", N, 2 * H)
    for layout in pairing.LAYOUTS:
        first, second = pairing.split(x, layout)
        i, (t, a, b) = index(N), pair(layout, 2 * H)
        prove_equal([first.at(i, t), second.at(i, t)], [x.at(i, a), x.at(i, b)])


@split_pinned.control
def split_in_the_other_layout():
    """Half is interleaved (d = 4)."""
    x = symbols("x", 4)
    prove_equal(np.stack(pairing.split(x, "half")), np.stack(pairing.split(x, "interleaved")))


@theorem(of=[pairing.join, pairing.split], sizes="all n, d", as_written="runs")
def join_inverts_split():
    """join(split(x)) = x and split(join(a, b)) = (a, b)."""
    x, first, second = sized("x", N, 2 * H), sized("a", N, H), sized("b", N, H)
    for layout in pairing.LAYOUTS:
        prove_equal(*entries(layout, pairing.join(*pairing.split(x, layout), layout), x))
        again = pairing.split(pairing.join(first, second, layout), layout)
        prove_equal(*entries(None, again[0], first))
        prove_equal(*entries(None, again[1], second))


@join_inverts_split.claim("Reading one layout and writing the other permutes the features.")
def join_across_layouts():
    """Reading one layout and writing the other is the identity (d = 4), as DeepSeek-V3 in transformers would need."""
    x = symbols("x", 4)
    prove_equal(pairing.join(*pairing.split(x, "interleaved"), "half"), x)


@example(of=[pairing.indices], sizes="d = 2, 4, 6, 20")
def indices_pinned():
    """indices(d) are the places that split reads."""
    for dim in (2, 4, 6, 20):
        half = dim // 2
        first, second = pairing.indices(dim, "interleaved")
        prove_that(list(first) == [2 * t for t in range(half)], "interleaved first members stand at 2t")
        prove_that(list(second) == [2 * t + 1 for t in range(half)], "interleaved second members stand at 2t + 1")
        first, second = pairing.indices(dim, "half")
        prove_that(list(first) == list(range(half)), "first members of halves stand at t")
        prove_that(list(second) == list(range(half, dim)), "second members of halves stand at t + d/2")


@indices_pinned.control
def indices_are_the_same():
    """Both layouts read the same places."""
    prove_equal(pairing.indices(4, "half"), pairing.indices(4, "interleaved"))
