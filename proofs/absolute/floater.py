"""FLOATER: position as the solution of a differential equation."""

# Over budget: the solver's loops by their invariants, eight rooted trees, and what solves a linear field

import itertools

import numpy as np
import sympy as sp

from posref import pairing
from posref.absolute import floater, sinusoidal
from proofs.kit import *
from proofs.kit.loops import Listed, Loop, covers

N = size("n")
# (nodes, stages, divisor of the stages, weights, divisor of the weights): the 3/8 rule, torchdiffeq's "rk4", and two others
THREE_EIGHTS = (0, 1, 2, 3), ([], [1], [-1, 3], [3, -3, 3]), 3, (1, 3, 3, 1), 8
CLASSICAL = (0, 1, 1, 2), ([], [1], [0, 1], [0, 0, 2]), 2, (1, 2, 2, 1), 6


def definition(f, t, p, h, rule=THREE_EIGHTS):
    """One Runge-Kutta step of a list p: k_i = f(t + c_i h, p + h sum_j a_ij k_j), then p + h sum_i b_i k_i."""
    nodes, stages, parts, weights, whole = rule
    slopes = []
    moved = lambda row, over: [x + h * sum(a * k[n] for a, k in zip(row, slopes, strict=True)) / over for n, x in enumerate(p)]
    for c, row in zip(nodes, stages, strict=True):
        slopes.append(f(t + h * c / parts, moved(row, parts)))
    return moved(weights, whole)


def reached(field, times, p, substeps, rule=THREE_EIGHTS):
    """The state at every time, by `definition`."""
    states = [p]
    for begin, end in itertools.pairwise(times):
        h = (end - begin) / substeps
        for k in range(substeps):
            p = definition(field, begin + h * k, p, h, rule)
        states.append(p)
    return states


F, G = sp.Function("f", real=True), sp.Function("g", real=True)
THREE, TWICE = [sp.Integer(t) for t in (0, 3, 4)], [sp.Integer(t) for t in (0, 1, 2)]


def anything(t, p):
    """A free field on a list of two expressions: f(t, a, b), g(t, a, b)."""
    return [name(*(sp.expand(x) for x in (t, *p))) for name in (F, G)]


def on_arrays(field):
    """A field of lists, applied to the rows of an array."""

    def derivative(t, p):
        rows = p.reshape(-1, p.shape[-1])
        return array([field(expression(t), [expression(x) for x in row]) for row in rows]).reshape(p.shape)

    return derivative


# what it is


@theorem(of=[floater.step], sizes="every field; batch 2, d = 2")
def step_pinned():
    """A step is the 3/8 rule, for any field of t and p, any t, p and h."""
    t, p, h = symbol("t"), symbols("p", 2, 2), symbol("h")
    got = floater.step(on_arrays(anything), t, p, h)
    for row, start in zip(got, p, strict=True):
        prove_equal(row, definition(anything, t.e, [x.e for x in start], h.e), mention=start)


@step_pinned.claim("The solver rk4 of torchdiffeq is the 3/8 rule.")
def classical_rule():
    """The solver rk4 of torchdiffeq is the classical rule: p' = t^4 gives 11/54 by one and 5/24 by the other."""
    field = lambda t, p: [t**4]
    got = floater.step(on_arrays(field), symbol("t"), symbols("p", 1), symbol("h"))
    prove_equal(got, definition(field, symbol("t").e, [symbols("p", 1)[0].e], symbol("h").e, CLASSICAL))


@theorem(of=[floater.encode, floater.step], sizes="3 times, 1 .. 3 substeps, every field of t; linear fields; batch 2")
def pinned():
    """Row 0 is the start; from t_i to t_{i+1} `substeps` steps of one size follow each other, each at its own time."""
    times, start, c = symbols("t", 3), symbols("p", 2, 1), symbol("c")
    for substeps in (1, 2, 3):
        field = lambda t, p: [G(sp.expand(t))]
        got = floater.encode(on_arrays(field), start, times, substeps=substeps)
        for row, state in zip(got, start, strict=True):
            expected = reached(field, [t.e for t in times], [state[0].e], substeps)
            prove_equal(row, expected, mention=state)
    for substeps in (1, 2):
        got = floater.encode(lambda t, p: c * p, start, np.array([0, 3, 4]), substeps=substeps)
        for row, state in zip(got, start, strict=True):
            prove_equal(row, reached(lambda t, p: [c.e * p[0]], THREE, [state[0].e], substeps), mention=[c])


@pinned.control
def substeps_of_the_whole_size():
    """Each of the substeps has the size of the whole interval."""
    c, start = symbol("c"), symbols("p", 1)
    got = floater.encode(lambda t, p: c * p, start, np.array([0, 1]), substeps=2)
    prove_equal(got[1], reached(lambda t, p: [c.e * p[0]], TWICE, [start[0].e], 1)[2])


@theorem(
    of=[floater.encode, floater.step],
    sizes="every field, every number of substeps and of times; d = 2",
    argument="induction over the turns: the body decides the first state, one turn of each loop and what is returned",
    silent="the loops are run turn by turn",
)
def every_number_of_substeps():
    """From t_i to t_{i+1} turn k of the inner loop is one step of size (t_{i+1} - t_i) / substeps, at t_i + k size, from where
    the turn before ended, for k = 0 .. substeps - 1; a turn of the outer loop appends where the last one ended."""
    begin, end, count, k = symbol("t"), symbol("u"), symbol("n", integer=True, positive=True), symbol("k", integer=True)
    p, loop = symbols("p", 2), Loop(floater.encode, 0, 0)
    names = {"derivative": on_arrays(anything), "substeps": count, "begin": begin, "end": end, "p": p, "states": Listed(p)}
    size = loop.before(names)["size"]
    prove_equal([size], [(end - begin) / count])
    prove_that(loop.turns({**names, "size": size}) == [count.e], "turns 0 .. substeps - 1")
    after = loop.turn({**names, "size": symbol("h")}, k=k)["p"]
    prove_equal(after, definition(anything, (begin + k * symbol("h")).e, [x.e for x in p], symbol("h").e), mention=[k])
    reached = symbols("z", 2)
    states = loop.after({**names, "p": reached, "size": size})["states"]
    prove_that(len(states.added) == 1, "one state more")
    prove_equal(states[-1], reached)
    outer = Loop(floater.encode, 0)
    first = outer.before({"start": p})
    prove_equal([first["p"], *first["states"]], [p, p])
    rows = Listed(by=np.stack, axis=-2, joined=sized("rows", N, 2))
    prove_equal(*entries(None, outer.after({"states": rows})["returned"], sized("rows", N, 2)))
    covers(floater.encode)


@every_number_of_substeps.control
def substeps_at_one_time():
    """Each substep asks the field at the beginning of the interval."""
    p, h, loop = symbols("p", 2), symbol("h"), Loop(floater.encode, 0, 0)
    names = {"derivative": on_arrays(anything), "begin": symbol("t"), "p": p, "size": h}
    after = loop.turn(names, k=symbol("k", integer=True))["p"]
    prove_equal(after, definition(anything, symbol("t").e, [x.e for x in p], h.e))


# how exact it is


TREES = (  # rooted trees: the slope, a product of earlier solutions, the number of nodes, gamma
    (lambda y: 1, 1, 1),
    (lambda y: y[0], 2, 2),
    (lambda y: y[0] ** 2, 3, 3),
    (lambda y: y[1], 3, 6),
    (lambda y: y[0] ** 3, 4, 4),
    (lambda y: y[0] * y[1], 4, 8),
    (lambda y: y[2], 4, 12),
    (lambda y: y[3], 4, 24),
)


@theorem(
    of=[floater.step],
    sizes="all eight conditions, from 0",
    citation="Butcher 1963: a rule has order 4 exactly if it satisfies the conditions of the eight trees with up to 4 nodes",
    as_written="formula",
)
def order_four():
    """The rule has order 4: each of the eight rooted trees with up to 4 nodes is a component y' = (product of its branches),
    which a step from 0 takes to its exact value h^nodes / gamma. By Butcher's theorem these are all conditions of order 4."""
    h = symbol("h")
    field = lambda t, y: [sp.sympify(slope(y)) for slope, _, _ in TREES]
    got = floater.step(on_arrays(field), 0, array([0] * 8), h)
    prove_equal(got, [h.e**nodes / gamma for _, nodes, gamma in TREES], mention=[h])


@order_four.control
def order_five():
    """The tree with four branches too: y' = t^4 gives h^5 / 5."""
    h = symbol("h")
    prove_equal(floater.step(lambda t, p: t**4 + 0 * p, 0, array([0]), h), [h.e**5 / 5])


@theorem(of=[floater.step], sizes="d = 2, every B")
def linear_step_is_taylor():
    """For dp/dt = B p a step of size h is sum_{k <= 4} (h B)^k / k! applied to p."""
    b, p, t, h = symbols("b", 2, 2), symbols("p", 2), symbol("t"), symbol("h")
    term, total = p, p
    for k in range(1, 5):
        term = h * (b @ term) / k
        total = total + term
    prove_equal(floater.step(lambda t, p: b @ p, t, p, h), total, mention=b)


@linear_step_is_taylor.control
def linear_step_is_exact():
    """It is e^{h b} p."""
    b, h = symbol("b"), symbol("h")
    prove_equal(floater.step(lambda t, p: b * p, 0, array([1]), h), [sp.exp(h.e * b.e)])


# the sinusoid as a solution


@theorem(
    of=[floater.antisymmetric, pairing.indices, sinusoidal.encode, sinusoidal.shift_matrix],
    sizes="d = 2, 4, 8, all frequencies",
    as_written="runs",
    values="a derivative at 0",
)
def sinusoid_solves_a_linear_field():
    """p(t) = sinusoid of t has dp/dt = B p with B = antisymmetric(w), the same at all times, and B^T = -B."""
    t = symbol("t")
    for dim, layout in itertools.product((2, 4, 8), pairing.LAYOUTS):
        w = symbols("w", dim // 2)
        p = sinusoidal.encode(array(t.e), w, layout=layout)
        b = floater.antisymmetric(w, layout=layout)
        prove_equal([x.e.diff(t.e) for x in p], b @ p, mention=[t])
        prove_equal(b.T, -b)
        shift = sinusoidal.shift_matrix(t, w, layout=layout)
        prove_equal([[expression(x).diff(t.e).subs(t.e, 0) for x in row] for row in shift], b)


@sinusoid_solves_a_linear_field.claim("The sinusoid turns by B, RoPE by B^T: (sin, cos) runs clockwise.")
def sinusoid_turns_like_rope():
    """dp/dt = B^T p, the generator of RoPE's rotation."""
    t, w = symbol("t"), symbols("w", 1)
    p = sinusoidal.encode(array(t.e), w, layout="half")
    prove_equal([x.e.diff(t.e) for x in p], floater.antisymmetric(w, layout="half").T @ p)


@theorem(of=[floater.step], sizes="all cubics")
def every_curve_is_a_solution():
    """Every smooth curve c solves dp/dt = h(t, p) with h(t, p) := c'(t), which does not look at p: a step follows any cubic
    exactly. So "the sinusoid is a solution of FLOATER" says nothing; that it solves a linear field without t does."""
    t, h, a = symbol("t"), symbol("h"), [x.e for x in symbols("a", 4)]
    curve = lambda s: sum(x * s**n for n, x in enumerate(a))
    slope = lambda s, p: array([sum(n * x * expression(s) ** (n - 1) for n, x in enumerate(a) if n)])
    prove_equal(floater.step(slope, t, array([curve(t.e)]), h), [curve(t.e + h.e)], mention=a)


@every_curve_is_a_solution.claim("Every curve solves some field h(t, p); a linear field without t is a real condition.")
def every_curve_solves_a_linear_field():
    """t^2 solves dp/dt = b p, with the b that is right at t = 1: a step of size h from there is (1 + h)^2, up to h^2."""
    h = symbol("h")
    after = floater.step(lambda t, p: 2 * p, 1, array([1]), h)[0].e
    prove_equal([after.diff(h.e, 2).subs(h.e, 0)], [2])


@theorem(of=[floater.step, floater.antisymmetric], sizes="d = 2, all w, h, p")
def steps_shorten_the_sinusoid():
    """A step of the sinusoid's field changes the squared length of a pair by the factor 1 - z^6/72 + z^8/576 with z = w h: by
    less than 1e-18 at the released size 0.002 and w = 1."""
    w, h, p = symbols("w", 1), symbol("h"), symbols("p", 2)
    b = floater.antisymmetric(w, layout="half")
    after, z = floater.step(lambda t, p: b @ p, 0, p, h), w[0] * h
    prove_equal([after @ after], [(p @ p) * (1 - z**6 / 72 + z**8 / 576)], mention=[h])
    released = sp.Rational(2, 1000) ** 6 / 72
    premise(bool(released < sp.Rational(1, 10**18)), "the loss of a released step is below 1e-18")


@steps_shorten_the_sinusoid.claim("A step changes the squared length by 1 - z^6/72 + z^8/576.")
def steps_keep_lengths():
    """B is antisymmetric, so a step keeps the length."""
    w, h, p = symbols("w", 1), symbol("h"), symbols("p", 2)
    b = floater.antisymmetric(w, layout="half")
    after = floater.step(lambda t, p: b @ p, 0, p, h)
    prove_equal([after @ after], [p @ p])
