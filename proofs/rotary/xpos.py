"""xPos: rotation in which every pair has its own decay."""

import itertools

import numpy as np
import sympy as sp

from posref import pairing
from posref.rotary import rope, xpos
from posref.state import _memory, retention
from proofs.kit import *
from proofs.rotary.rope import definition as turned

DEFAULTS = {"scale_base": 512.0}  # Sun et al., Algorithm 1

N, H = size("n"), size("h")


def definition(a, b, position, frequency, zeta, center, base, side, m=sp):
    """A pair, rotated and scaled; arXiv 2212.10554, Algorithm 1."""
    factor = zeta ** ((position - center) / base * (1 if side == "query" else -1))
    return [factor * each for each in turned(a, b, position, frequency, m)]


def factor(zeta, position, center, base):
    """(1, dim/2) scales of one position for free positive zeta."""
    return array([[z.e ** ((position.e - center.e) / base) for z in zeta]])


def exact(position):
    """One position as an exact number, so that powers of fractions stay fractions."""
    return np.array([sp.Integer(position)], dtype=object)


@theorem(of=[xpos.rotate, rope.rotate], sizes="d = 4")
def pinned():
    """Pair t is turned by m theta_t and multiplied by zeta_t^((m - c) / B) for queries, divided by it for keys."""
    x, w, m, c, zeta = symbols("x", 1, 4), symbols("w", 2), symbol("m"), symbol("c"), symbols("zeta", 2, positive=True)
    cos, sin = rope.tables(array([m]), w)
    for layout, side in itertools.product(pairing.LAYOUTS, ("query", "key")):
        got = xpos.rotate(x, cos, sin, factor(zeta, m, c, 512), layout=layout, side=side)[0]
        for t in range(2):
            first, second = (2 * t, 2 * t + 1) if layout == "interleaved" else (t, t + 2)
            stated = definition(x[0, first].e, x[0, second].e, m.e, w[t].e, zeta[t].e, c.e, 512, side)
            prove_equal([got[first], got[second]], stated, mention=[m, c])


@pinned.control
def both_sides_are_multiplied():
    """Keys are multiplied like queries."""
    x, w, m, c, zeta = symbols("x", 1, 2), symbols("w", 1), symbol("m"), symbol("c"), symbols("zeta", 1, positive=True)
    given = [*rope.tables(array([m]), w), factor(zeta, m, c, 512)]
    prove_equal(*(xpos.rotate(x, *given, layout="half", side=side) for side in ("query", "key")))


@example(of=[xpos.scales], sizes="d = 2, 4, 8, 16; positions c + k B, B = 3 and 512")
def pinned_scales():
    """scales is zeta_t^((m - c) / B) with zeta_t = (2t / dim + 2/5) / (7/5), which rises from 2/7 and stays below 1."""
    for dim in (2, 4, 8, 16):
        zeta = [(sp.Rational(2 * t, dim) + sp.Rational(2, 5)) / sp.Rational(7, 5) for t in range(dim // 2)]
        for k, base in itertools.product((-1, 0, 2), (3, 512)):
            got = xpos.scales(exact(7 + base * k), sp.Integer(dim), center=7, scale_base=base)
            prove_equal(got[0], [z**k for z in zeta])
        premise(sp.Rational(2, 7) == zeta[0] and zeta[-1] < 1, "zeta is between 2/7 and 1")


@pinned_scales.control
def zeta_without_its_offset():
    """zeta_t = 2t / dim"""
    prove_equal(xpos.scales(exact(512), sp.Integer(4), center=0, scale_base=512)[0], [0, sp.Rational(1, 2)])


@theorem(of=[xpos.rotate, rope.rotate, rope.tables], sizes="d = 4")
def relative():
    """With scales zeta^((m - c) / B), B = 512, a score does not change when both positions move, and the centre c cancels."""
    q, k, w, zeta = symbols("q", 1, 4), symbols("k", 1, 4), symbols("w", 2), symbols("zeta", 2, positive=True)
    m, n, shift, c = (symbol(name) for name in ("m", "n", "shift", "c"))
    for layout in pairing.LAYOUTS:
        at = lambda x, p, c, side, layout=layout: xpos.rotate(
            x, *rope.tables(array([p]), w), factor(zeta, p, c, 512), layout=layout, side=side
        )
        score = lambda m, n, c, at=at: at(q, m, c, "query") @ at(k, n, c, "key").T
        prove_equal(score(m + shift, n + shift, c), score(m, n, symbol("zero") * 0), mention=[m, n])


@relative.claim("All keys of a cache and their queries need one centre: torchscale turns all raw keys again at each step.")
def two_centers_in_one_cache():
    """Keys cached with another centre still give the same scores."""
    q, k, w, zeta = symbols("q", 1, 2), symbols("k", 1, 2), symbols("w", 1), symbols("zeta", 1, positive=True)
    m, n, c, later = (symbol(name) for name in ("m", "n", "c", "later"))
    at = lambda x, p, c, side: xpos.rotate(x, *rope.tables(array([p]), w), factor(zeta, p, c, 512), layout="half", side=side)
    prove_equal(at(q, m, later, "query") @ at(k, n, c, "key").T, at(q, m, c, "query") @ at(k, n, c, "key").T)


@theorem(of=[xpos.rotate, rope.rotate], sizes="all n, d", as_written="runs")
def without_scales_it_is_rope():
    """With scales of 1 it is RoPE, on either side."""
    x, c, s = sized("x", N, 2 * H), sized("c", N, H), sized("s", N, H)
    ones = c * 0 + 1
    for layout, side in itertools.product(pairing.LAYOUTS, ("query", "key")):
        with summing(layout):
            plain = rope.rotate(x, c, s, layout=layout)
            prove_equal(*entries(layout, xpos.rotate(x, c, s, ones, layout=layout, side=side), plain))


@without_scales_it_is_rope.control
def lengths_are_kept():
    """xPos keeps the lengths of queries."""
    x, w, z = symbols("x", 1, 2), symbols("w", 1), symbols("z", 1, 1)
    y = xpos.rotate(x, *rope.tables(array([symbol("m")]), w), z, layout="half", side="query")
    prove_equal(y @ y.T, x @ x.T)


@theorem(
    of=[retention.quadratic, _memory.start, xpos.rotate, rope.rotate, rope.tables, pairing.split, pairing.join],
    sizes="n = 3, one pair of features, all frequencies, centres, scale bases and zeta",
)
def one_pair_is_a_retention():
    """xPos with one pair, without softmax, is retention of turned keys with the decay zeta^(1/B), where b = 1/B: the centre
    cancels."""
    prove_equal(*xpos_beside_retention(3, symbol("c"), 1), mention=[symbol("b")])


def xpos_beside_retention(n, center, power):
    """Outputs of keys and queries stretched by xPos, without decay, and of turned ones with the decay zeta^(power / B)."""
    q, k, v = (symbols(name, 1, n, 2) for name in "qkv")
    zeta, rate, tables = symbols("z", 1, positive=True), symbol("b"), rope.tables(np.arange(n), symbols("w", 1))
    factors = zeta ** ((np.arange(n)[:, None] - center) * rate)
    stretched = [xpos.rotate(x, *tables, factors, layout="half", side=side) for x, side in ((q, "query"), (k, "key"))]
    plain = [rope.rotate(x, *tables, layout="half") for x in (q, k)]
    given = ((stretched, np.array([1])), (plain, zeta ** (power * rate)))
    return [retention.quadratic(*pair, v, g, scale=1).output for pair, g in given]


@one_pair_is_a_retention.control
def whatever_the_decay():
    """xPos is that retention with another decay, zeta^(2/B)."""
    prove_equal(*xpos_beside_retention(2, 0, 2))
