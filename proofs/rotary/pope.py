"""PoPE: softplus gives the lengths of pairs; positions and phases give their angles."""

import numpy as np
import sympy as sp

from posref import pairing
from posref.rotary import pope, rope
from proofs.kit import *
from proofs.rotary.rope import frequency

FULL = 2 * np.pi  # symbols meet the pi of the shipped code, which is any number to them


def softplus(x, m=sp):
    """ln(1 + exp(x)). Gopalakrishnan et al., arXiv 2509.10534."""
    return m.log(1 + m.exp(x))


def definition(length, angle, m=sp):
    """A pair in polar coordinates; arXiv 2509.10534."""
    return [length * m.cos(angle), length * m.sin(angle)]


def clamped(phase, full=FULL):
    """The nearest number of [-2 pi, 0]."""
    return 0 if phase > 0 else -full if phase < -full else phase


@theorem(of=[pope.softplus], sizes="one number, of either sign")
def lengths_pinned():
    """exp of the length is 1 + exp(x): softplus."""
    x = symbols("x", 1)
    for _, got in all_paths(lambda: pope.softplus(x)):
        prove_equal([sp.exp(expression(got[0]))], [sp.exp(softplus(x[0].e))], mention=x)


@lengths_pinned.control
def a_corner():
    """The length is max(x, 0)."""
    x = symbols("x", 1)
    for _, (got, corner) in all_paths(lambda: (pope.softplus(x), np.maximum(x, 0))):
        prove_equal(got, corner)


@theorem(of=[pope.encode, pairing.join], sizes="n = 1, d = 1, 2; all tables, both layouts")
def pinned():
    """Feature c becomes softplus(x_c) (cos, sin), at the places of pair c in the layout."""
    for d, layout in ((1, "half"), (2, "half"), (2, "interleaved")):
        x, w, m = symbols("x", 1, d), symbols("w", d), symbol("m")
        for _, (got, length) in all_paths(
            lambda x=x, w=w, m=m, layout=layout: (pope.encode(x, *rope.tables(array([m]), w), layout=layout), pope.softplus(x))
        ):
            prove_that(got.shape == (1, 2 * d), "twice as wide")
            for c in range(d):
                first, second = (2 * c, 2 * c + 1) if layout == "interleaved" else (c, c + d)
                stated = definition(length[0, c].e, m.e * w[c].e)
                prove_equal([got[0, first], got[0, second]], stated, mention=[x[0, c], w[c], m])


@pinned.control
def sines_come_first():
    """It becomes softplus(x_c) (sin, cos)."""
    x, cos, sin = symbols("x", 1, 1), symbols("c", 1, 1), symbols("s", 1, 1)
    for _, (got, length) in all_paths(lambda: (pope.encode(x, cos, sin, layout="half"), pope.softplus(x))):
        prove_equal(got[0], [length[0, 0] * sin[0, 0], length[0, 0] * cos[0, 0]])


@theorem(of=[pope.tables], sizes="h = 2, n = 2, d = 1, a batch of 1, all phases")
def tables_pinned():
    """Those of keys have the angle n w_c + delta_c, for each head."""
    n, w, delta = symbols("n", 1, 2), symbols("w", 1), symbols("delta", 2, 1)
    cos, sin = pope.tables(n, w, delta)
    prove_that(cos.shape == sin.shape == (1, 2, 2, 1), "batch, heads, keys, features")
    for h, j in np.ndindex(2, 2):
        stated = definition(1, n[0, j].e * w[0].e + delta[h, 0].e)
        prove_equal([cos[0, h, j, 0], sin[0, h, j, 0]], stated, mention=[n[0, j], w[0], delta[h, 0]])


@tables_pinned.control
def phases_are_subtracted():
    """Those of keys have the angle n w_c - delta_c."""
    n, w, delta = symbols("n", 1), symbols("w", 1), symbols("delta", 1, 1)
    prove_equal(pope.tables(n, w, delta)[0].ravel(), pope.tables(n, w, -delta)[0].ravel())


@theorem(of=[pope.clamp], sizes="all phases, one by one")
def phases_pinned():
    """A phase above 0 is 0, one below -2 pi is -2 pi, and others stay."""
    delta = symbols("delta", 1)
    for _, (got, stated) in all_paths(lambda: (pope.clamp(delta), clamped(delta[0]))):
        prove_equal(got, [stated])


@phases_pinned.claim("A phase above 0 is 0, and not the angle that it is modulo 2 pi.")
def phases_are_angles():
    """A phase counts as it is, which is what it is modulo 2 pi."""
    delta = symbols("delta", 1)
    for _, got in all_paths(lambda: pope.clamp(delta)):
        prove_equal([np.cos(got[0])], [np.cos(delta[0])])


@theorem(of=[pope.frequencies, rope.frequencies], sizes="d = 1, 2, 3, 8")
def frequencies_pinned():
    """w_c = base^(-c/d), c = 0 .. d - 1: RoPE's frequencies of twice the width."""
    base = symbol("base", positive=True)
    for dim in (1, 2, 3, 8):
        got = pope.frequencies(sp.Integer(dim), base)
        prove_equal(got, [frequency(c, 2 * dim, base.e) for c in range(dim)], mention=[base] if dim > 1 else [])
        prove_equal(got, rope.frequencies(sp.Integer(2 * dim), base))


@frequencies_pinned.control
def half_of_them():
    """They are base^(-2c/d)."""
    base = symbol("base", positive=True)
    prove_equal(pope.frequencies(sp.Integer(2), base), [1, 1 / base.e])


def score(q, k, m, n, w, phases, layout="half", on_queries=False):
    """The shipped score of a query at m and a key at n."""
    cos, sin = (each[0] for each in pope.tables(array([n]), w, phases))
    angles = [each[0] for each in pope.tables(array([m]), w, phases)] if on_queries else rope.tables(array([m]), w)
    return pope.encode(q, *angles, layout=layout) @ pope.encode(k, cos, sin, layout=layout).T


def given(d):
    """Queries, keys, two positions, frequencies and phases."""
    return symbols("q", 1, d), symbols("k", 1, d), symbol("m"), symbol("n"), symbols("w", d), symbols("delta", 1, d)


def lengths(q, k):
    return pope.softplus(q)[0] * pope.softplus(k)[0]


WHOLE = [pope.encode, pope.tables, rope.tables, pairing.join]


@theorem(of=WHOLE, sizes="d = 2, both layouts")
def relative():
    """The score is sum_c softplus(q_c) softplus(k_c) cos((n - m) w_c + delta_c), in either layout: it sees n - m alone."""
    q, k, *place = given(2)
    m, n, w, phases = place
    for layout in pairing.LAYOUTS:
        for _, (got, length) in all_paths(lambda layout=layout: (score(q, k, *place, layout), lengths(q, k))):
            stated = (length * np.cos((n - m) * w + phases[0])).sum()
            prove_equal(got.ravel(), [stated], mention=[m, n, w[1], phases[0, 1]])


@relative.claim("They shift the key's place against the query's, and are lost where both have them.")
def phases_on_both_sides():
    """The score is the same where the phases are on queries as well."""
    some = given(1)
    for _, (one, both) in all_paths(lambda: (score(*some), score(*some, on_queries=True))):
        prove_equal(one.ravel(), both.ravel())


@theorem(of=WHOLE, sizes="d = 2")
def phases_on_both_sides_cancel():
    """Where queries have the phases, too, the score is that without any."""
    *some, phases = given(2)
    for _, (both, none) in all_paths(lambda: (score(*some, phases, on_queries=True), score(*some, 0 * phases))):
        prove_equal(both.ravel(), none.ravel(), mention=some[2:4])


@phases_on_both_sides_cancel.control
def those_of_keys_cancel():
    """The phases of keys alone cancel."""
    *some, phases = given(1)
    for _, (one, none) in all_paths(lambda: (score(*some, phases), score(*some, 0 * phases))):
        prove_equal(one.ravel(), none.ravel())


@theorem(of=[pope.encode, pairing.join, rope.rotate, pairing.split], sizes="d = 2, both layouts, all tables", as_written="runs")
def rope_of_lengths():
    """An encoded vector is RoPE's of width 2 d for the pairs (softplus(x_c), 0): PoPE is RoPE after a map of
    queries and keys."""
    x, cos, sin = symbols("x", 1, 2), symbols("c", 1, 2), symbols("s", 1, 2)
    for layout in pairing.LAYOUTS:

        def both(layout=layout):
            pairs = pairing.join(pope.softplus(x), 0 * x, layout)
            return pope.encode(x, cos, sin, layout=layout), rope.rotate(pairs, cos, sin, layout=layout)

        for _, (got, turned) in all_paths(both):
            prove_equal(got.ravel(), turned.ravel(), mention=[cos[0, 0], sin[0, 1]])


@rope_of_lengths.claim("Lengths are not negative: what a token says cannot turn a pair.")
def the_sign_of_a_query_is_that_of_the_score():
    """As in RoPE the score of -q is minus that of q."""
    q, *some = given(1)
    for _, (one, other) in all_paths(lambda: (score(q, *some), score(-q, *some))):
        prove_equal(one.ravel(), -other.ravel())


@theorem(of=WHOLE, sizes="d = 2", argument="squares and lengths are not negative")
def bounded():
    """With h_c half of the angle (n - m) w_c + delta_c the score is L - 2 sum_c L_c sin^2 h_c = 2 sum_c L_c cos^2 h_c - L for
    L_c = softplus(q_c) softplus(k_c) and their sum L: it lies between -L and L, and is L at n = m without phases."""
    q, k, *place = given(2)
    m, n, w, phases = place
    half = (n - m) * w / 2 + phases[0] / 2
    run = lambda: (score(q, k, *place), score(q, k, m, m, w, 0 * phases), lengths(q, k))
    for _, (got, own, length) in all_paths(run):
        prove_equal(got.ravel(), [length.sum() - 2 * (length * np.sin(half) ** 2).sum()], mention=[m])
        prove_equal(got.ravel(), [2 * (length * np.cos(half) ** 2).sum() - length.sum()])
        prove_equal(own.ravel(), [length.sum()])


@bounded.claim("It is largest where the offset turns the phase back.")
def a_token_sees_itself_most():
    """At n = m the score is L, whatever the phases."""
    q, k, m, _, w, phases = given(1)
    for _, (got, length) in all_paths(lambda: (score(q, k, m, m, w, phases), lengths(q, k))):
        prove_equal(got.ravel(), length)
