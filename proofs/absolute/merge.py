"""Merging: how an absolute encoding enters the token embedding."""

import numpy as np
import sympy as sp

from posref import pairing
from posref.absolute import merge, sinusoidal
from proofs.kit import *

B, N, D, E, H = size("b"), size("n"), size("d"), size("e"), size("h")
PRODUCT = [merge.multiply, sinusoidal.encode, pairing.join]


def definition(x, p, way):
    """One feature: x + p, x p, or x (1 + p), bert4keras's merge_mode "mul". Su, kexue.fm/archives/8130."""
    return {"add": x + p, "paper": x * p, "released": x * (1 + p)}[way]


# what it is


@theorem(of=[merge.add, merge.multiply], sizes="all batches, n, d")
def pinned():
    """Entry (b, i, t) is x + p, x p or x (1 + p) of the entries x_bit and p_it."""
    x, p = sized("x", B, N, D), sized("p", N, D)
    ways = {"add": merge.add(x, p), **{c: merge.multiply(x, p, convention=c) for c in merge.CONVENTIONS}}
    b, i, t = index(B), index(N), index(D)
    for way, merged in ways.items():
        expected = definition(x.at(b, i, t), p.at(i, t), way)
        prove_equal([merged.at(b, i, t)], [expected], mention=[x.at(b, i, t), p.at(i, t)])


@pinned.claim("x (1 + p) is x + x p: the two differ by x.")
def conventions_agree():
    """x p and x (1 + p) are the same."""
    x, p = symbols("x", 1, 2), symbols("p", 1, 2)
    prove_equal(merge.multiply(x, p, convention="paper"), merge.multiply(x, p, convention="released"))


@theorem(of=[merge.concatenate], sizes="all batches, n, d, d_p")
def concatenate_pinned():
    """The first d features are x, the others p, which is shared by the batch."""
    x, p = sized("x", B, N, D), sized("p", N, E)
    both = merge.concatenate(x, p)
    b, i, t, u = index(B), index(N), index(D), index(E)
    prove_equal([both.at(b, i, t), both.at(b, i, D + u)], [x.at(b, i, t), p.at(i, u)])
    prove_that(both.shape == (B, N, D + E), "d + d_p features")


@concatenate_pinned.control
def position_goes_first():
    """[p ; x]"""
    x, p = symbols("x", 1, 2), symbols("p", 1, 2)
    prove_equal(merge.concatenate(x, p), np.concatenate([p, x], axis=-1))


# what it does


@theorem(of=[merge.add, merge.concatenate], sizes="all n, d = d_p, outputs; n = 4, d = 3, d_p = 2")
def concatenation_contains_addition():
    """[x ; p] W = x W_x + p W_p, where W_x and W_p are the upper and the lower rows of W; with W_x = W_p it is (x + p) W_x. So
    whatever a linear map makes of x + p, one makes of [x ; p]."""
    x, p, w = sized("x", N, H), sized("p", N, H), sized("w", 2 * H, E)
    with summing("half"):
        projected = merge.concatenate(x, p) @ w
        i, e, t = index(N), index(E), index(H)
        summand = x.at(i, t) * w.at(t, e) + p.at(i, t) * w.at(t + H, e)
        prove_equal([projected.at(i, e)], [sp.Sum(summand, (t, 0, H - 1))])
        w = sized("w", H, E)
        tied = merge.concatenate(x, p) @ np.concatenate([w, w])
        prove_equal(*entries(None, tied, merge.add(x, p) @ w))
    x, p, w = symbols("x", 4, 3), symbols("p", 4, 2), symbols("w", 5, 2)
    prove_equal(merge.concatenate(x, p) @ w, x @ w[:3] + p @ w[3:], mention=w)


@concatenation_contains_addition.claim("Concatenation contains addition, and not the other way round.")
def addition_contains_concatenation():
    """Some W has (x + p) W = [x ; p] (W_x ; W_p) for W_x = 1, W_p = 2 and all x, p."""
    x, p, w = symbols("x", 1, 1), symbols("p", 1, 1), symbols("w", 1, 1)
    gap = merge.add(x, p) @ w - merge.concatenate(x, p) @ array([[1], [2]])
    found = [value.subs({x[0, 0].e: 1, p[0, 0].e: 1}) for value in (e.e for e in gap.ravel())]
    solution = solve_forall(found, w)  # the only W that is right at x = p = 1
    prove_equal([e.e.subs(solution) for e in gap.ravel()], [0])


@theorem(of=PRODUCT, sizes="all d", as_written="formula")
def literal_product_deletes_sines_of_token_zero():
    """With the sinusoid, whose p_0 is 0 at sines and 1 at cosines, x p has zeros in half of the features of token 0, for every
    word; x (1 + p) is x there, and 2x at cosines."""
    x, w = sized("x", 1, 2 * H), sized("w", H)
    for layout in pairing.LAYOUTS:
        p = sinusoidal.encode(filled((1,), 0), w, layout=layout)
        _, sine, cosine = pair(layout, 2 * H)
        for convention, sine_factor, cosine_factor in (("paper", 0, 1), ("released", 1, 2)):
            merged = merge.multiply(x, p, convention=convention)
            expected = [sine_factor * x.at(0, sine), cosine_factor * x.at(0, cosine)]
            prove_equal([merged.at(0, sine), merged.at(0, cosine)], expected)


@literal_product_deletes_sines_of_token_zero.claim("x p deletes the sine features of token 0, for every word.")
def literal_product_keeps_every_word():
    """Two words that differ stay different at token 0 under x p."""
    x, w = symbols("x", 1, 2), symbols("w", 1)
    p = sinusoidal.encode(np.array([0]), w, layout="half")
    prove_equal(merge.multiply(x, p, convention="paper")[0], [x[0, 0], x[0, 1]])
