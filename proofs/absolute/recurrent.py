"""Recurrent encoding: each position's vector is computed from the one before."""

import numpy as np
import sympy as sp

from posref import pairing
from posref.absolute import recurrent, sinusoidal
from proofs.absolute.sinusoidal import definition as sinusoid
from proofs.kit import *
from proofs.kit.loops import Listed, Loop, covers

N = size("n")
LINEAR = [recurrent.encode, sinusoidal.shift_matrix, sinusoidal.encode, pairing.indices, pairing.join]


def definition(step, start, position):
    """p_k = f(f(.. f(p_0))), k times. Su, kexue.fm/archives/8130, section "Recurrent"."""
    return start if position == 0 else step(definition(step, start, position - 1))


F, G = sp.Function("f", real=True), sp.Function("g", real=True)


def anything(p):
    """A free step: it maps (a, b) to (f(a, b), g(a, b)) in every row."""
    return array([[f(expression(a), expression(b)) for f in (F, G)] for a, b in p])


# what it is


@theorem(of=[recurrent.encode], sizes="every step; batch 3, d = 2, length 1 .. 5")
def pinned():
    """Row k is f applied k times to p_0, for any f; row 0 is p_0 itself."""
    start = symbols("p", 3, 2)
    for length in range(1, 6):
        got = recurrent.encode(anything, start, length)
        prove_that(got.shape == (3, length, 2), "axes are batch, length, d")
        for k in range(length):
            prove_equal(got[:, k], definition(anything, start, k), mention=start)


@pinned.control
def first_row_is_a_step_already():
    """Position 0 is f(p_0)."""
    start = symbols("p", 1, 2)
    prove_equal(recurrent.encode(anything, start, 2)[:, 0], definition(anything, start, 1))


def orbit(k):
    """The state at k of a free step: (p(k, 0), p(k, 1))."""
    return array([sp.Function("p", real=True)(expression(k), c) for c in range(2)])


def along_the_orbit(p):
    return array([expression(x).func(expression(x).args[0] + 1, expression(x).args[1]) for x in p])


@theorem(
    of=[recurrent.encode],
    sizes="every step, every length; d = 2",
    argument="induction over the turns: the body decides the first state, one turn and what is returned",
    silent="the loop is run turn by turn",
    values="the step reads the index of a state, and gives the entry at the next one",
)
def every_length():
    """Before turn k the last state is p_{k-1}: at first it is p_0, the start, and a turn appends f(p_{k-1}) = p_k and leaves
    the others; k runs from 1 to length - 1, and the rows are the states in their order."""
    k, length, loop = symbol("k", integer=True, positive=True), symbol("length", integer=True), Loop(recurrent.encode, 0)
    names = loop.before({"step": along_the_orbit, "start": orbit(0), "length": length})
    prove_that(loop.turns(names) == [1, length.e], "turns 1 .. length - 1")
    prove_equal(names["states"], [orbit(0)])
    states = loop.turn({**names, "states": Listed(orbit(k - 1))}, k=k)["states"]
    prove_that(len(states.added) == 1, "one state more")
    prove_equal(states[-1], orbit(k), mention=[k])
    rows = Listed(by=np.stack, axis=-2, joined=sized("rows", N, 2))
    prove_equal(*entries(None, loop.after({**names, "states": rows})["returned"], sized("rows", N, 2)))
    covers(recurrent.encode)


@every_length.control
def each_turn_begins_at_the_start():
    """Row k is f(p_0) for each k from 1 on."""
    loop, k = Loop(recurrent.encode, 0), symbol("k", integer=True, positive=True)
    names = {"step": along_the_orbit, "start": orbit(0), "states": Listed(orbit(k - 1))}
    prove_equal(loop.turn(names, k=k)["states"][-1], along_the_orbit(orbit(0)))


@theorem(of=[recurrent.encode], sizes="every step; d = 2, length 5", as_written="runs")
def same_step_everywhere():
    """What follows p_2 is the encoding that starts at p_2, and a shorter sequence has the same first rows."""
    start = symbols("p", 1, 2)
    whole = recurrent.encode(anything, start, 5)
    prove_equal(recurrent.encode(anything, whole[:, 2], 3), whole[:, 2:])
    prove_equal(recurrent.encode(anything, start, 3), whole[:, :3])


@same_step_everywhere.control
def differences_are_the_same_everywhere():
    """p_{k+1} - p_k is the same for all k."""
    whole = recurrent.encode(anything, symbols("p", 1, 2), 3)
    prove_equal(whole[:, 2] - whole[:, 1], whole[:, 1] - whole[:, 0])


# what it contains


@theorem(of=LINEAR, sizes="all k; d = 2, 4, 8", argument="induction over k, whose start and step are decided")
def linear_step_is_the_sinusoid():
    """With f(p) = M(1) p and p_0 = (0, 1, ..), row k is the sinusoid of k for every k: M(1) p_k = p_{k+1} at symbolic k, and
    the start is p_0."""
    k = symbol("k")
    for dim in (2, 4, 8):
        w = symbols("w", dim // 2)
        for layout in pairing.LAYOUTS:
            step = sinusoidal.shift_matrix(1, w, layout=layout)
            at = lambda positions, w=w, layout=layout: sinusoidal.encode(positions, w, layout=layout)
            start = at(np.array(0))
            prove_equal(start, sinusoid(0, [expression(x) for x in w], layout))
            prove_equal(step @ at(array(k.e)), at(array(k.e + 1)), mention=[k])
            prove_equal(recurrent.encode(lambda p, step=step: step @ p, start, 3), at(np.arange(3)))


@linear_step_is_the_sinusoid.control
def transposed_step():
    """f(p) = M(1)^T p, which turns backwards."""
    w = symbols("w", 1)
    step = sinusoidal.shift_matrix(1, w, layout="half").T
    start = sinusoidal.encode(np.array(0), w, layout="half")
    prove_equal(recurrent.encode(lambda p: step @ p, start, 2), sinusoidal.encode(np.arange(2), w, layout="half"))


@linear_step_is_the_sinusoid.claim("The start decides: from p_0 = 0 a linear step stays at 0.")
def any_start_will_do():
    """f(p) = M(1) p from p_0 = 0 is the sinusoid as well."""
    w = symbols("w", 1)
    step = sinusoidal.shift_matrix(1, w, layout="half")
    zeros = np.zeros(2, dtype=int)
    prove_equal(recurrent.encode(lambda p: step @ p, zeros, 2), sinusoidal.encode(np.arange(2), w, layout="half"))
