"""Generators: the exponential of a sum of skew matrices, relative exactly if they commute."""

# Over budget: one lemma, five constructors and the one that does not commute

import numpy as np
import sympy as sp

from posref import pairing
from posref.rotary import axes, generators, rope
from proofs.kit import *

ROUNDS = {"partition": "constructors_pinned"}

MADE = [generators.skew, generators.circulant, generators.partition, generators.planes, pairing.indices]


def expand(matrix):
    return np.vectorize(lambda each: expression(each), otypes=[object])(matrix)


def definition(coordinates, matrices, terms):
    """1 + S + S^2/2 + .. for S = sum_a x_a S_a, up to a power; the paper's exponential is the limit."""
    s = sum((x * m for x, m in zip(coordinates, matrices, strict=True)), 0 * matrices[0])
    power = total = sp.eye(s.rows)
    for n in range(1, terms + 1):
        power = power * s / n
        total = total + power
    return total


@theorem(
    of=[generators.exponential],
    sizes="2 axes, d = 2, 1 to 3 terms; one halving, and three",
    equivalent={"exponential: i = np.arange(s.shape[-1])  ->  i = np.arange(s.shape[-2])": "square"},
)
def pinned():
    """With one halving R(x) is the square of the series of S / 2, S = sum_a x_a S_a, cut after its last term; with three
    halvings and one term it is (1 + S / 8)^8 (one axis, d = 1)."""
    x, s = symbols("x", 2), symbols("s", 2, 2, 2)
    as_matrices = [sp.Matrix(2, 2, [each.e for each in m.ravel()]) for m in s]
    halves = [each.e / 2 for each in x]
    for terms in (1, 2, 3):
        series = definition(halves, as_matrices, terms)
        prove_equal(generators.exponential(x, s, terms=terms, halvings=1).ravel(), list(series * series), mention=[x[0]])

    eighth = generators.exponential(x[:1], s[:1, :1, :1], terms=1, halvings=3)
    prove_equal([eighth[0, 0]], [(1 + x[0] * s[0, 0, 0] / 8) ** 8])


@pinned.control
def the_axes_turn_one_after_the_other():
    """R(x) is the product of the exponentials of the axes."""
    x, s = symbols("x", 2), symbols("s", 2, 2, 2)
    turn = lambda a: generators.exponential(x[a : a + 1], s[a : a + 1], terms=2, halvings=1)
    prove_equal(generators.exponential(x, s, terms=2, halvings=1), turn(0) @ turn(1))


def defect(made):
    """R(t e_1) R(t e_2) - R(t (e_1 + e_2)) up to t^2, by its derivatives at t = 0: orders 0, 1, 2."""
    t, zero = sp.Symbol("t", real=True), 0
    at = lambda *x: generators.exponential(array([[Scalar(each) for each in x]]), made, terms=2, halvings=1)[0]
    gap = expand(at(t, zero) @ at(zero, t) - at(t, t))
    for order in range(3):
        yield np.vectorize(lambda e, order=order: sp.diff(e, t, order).subs(t, 0), otypes=[object])(gap)


def in_space():
    """Any two skew matrices of d = 3, in a basis where the first rotates only the plane of features 0 and 1."""
    a, b, c = symbols("s", 3)
    return generators.skew(array([[[0, a, 0], [0, 0, 0], [0, 0, 0]], [[0, b, 0], [0, 0, c], [0, 0, 0]]]))


LEMMA = [generators.exponential, generators.commutators]


@theorem(
    of=LEMMA,
    sizes="all skew S_1, S_2 of d = 3, in the basis of the first one",
    argument="a function that is zero for all t has no term of order 2",
    values="derivatives at 0",
)
def relative_only_if_they_commute():
    """R(t e_1) R(t e_2) = R(t e_1 + t e_2) + t^2 (S_1 S_2 - S_2 S_1)/2 + ..: if they do not commute it is not relative."""
    s = in_space()
    zeroth, first, second = defect(s)
    prove_equal([*zeroth.ravel(), *first.ravel()], [0] * 18)
    prove_equal(second.ravel(), generators.commutators(s)[0, 1].ravel(), mention=symbols("s", 3)[::2])


@relative_only_if_they_commute.claim("It is so for those that commute.")
def any_skew_matrices_are_relative():
    """The exponential of any skew matrices is relative."""
    *_, second = defect(in_space())
    prove_equal(second.ravel(), [0] * 9)


def commuting():
    """The constructors whose generators commute, on symbols."""
    yield "circulant", generators.circulant(symbols("c", 2, 4))
    yield "circulant", generators.circulant(symbols("c", 2, 5))
    blocks = generators.skew(symbols("b", 3, 2, 2))
    yield "axis partition", generators.partition(blocks, 2)
    yield "linearly dependent", symbols("h", 2)[:, None, None] * generators.skew(symbols("p", 3, 3))
    for layout in pairing.LAYOUTS:
        yield "planes", generators.planes(symbols("w", 2, 2), layout=layout)


@theorem(of=[*MADE, generators.commutators], sizes="2 axes; d = 3, 4, 5, 6", as_written="runs")
def constructors_commute():
    """Generators of STRING (circulant), ComRoPE (axis partition, linearly dependent) and RoPE-Mixed are skew and commute."""
    for _, made in commuting():
        prove_equal((made + np.swapaxes(made, -1, -2)).ravel(), [0] * made.size)
        zero = generators.commutators(made)
        prove_equal(zero.ravel(), [0] * zero.size)


@constructors_commute.claim("Its matrices do not commute, and nothing in its training makes them.")
def lieres_generators_commute():
    """LieRE's generators commute, so LieRE is relative."""
    made = generators.commutators(generators.skew(symbols("u", 2, 3, 3)))
    prove_equal(made.ravel(), [0] * made.size)


@theorem(
    of=MADE,
    sizes="d = 3, 4, 6",
    equivalent={
        "skew: i = np.arange(matrix.shape[-1])  ->  i = np.arange(matrix.shape[-2])": "square",
        "skew: upper = (i[:, None] < i) * matrix  ->  upper = (i[:, None] <= i) * matrix": "the diagonal cancels",
    },
)
def constructors_pinned():
    """skew has u_ij above the diagonal and -u_ij below; circulant c_{j - i} - c_{i - j}; a block of the partition has its
    number, and the axis of its number; each pair of planes has -w and w, and all else is 0."""
    u, c, b, w = symbols("u", 3, 3), symbols("c", 2, 4), symbols("b", 3, 2, 2), symbols("w", 2, 3)
    made = generators.skew(u), generators.circulant(c), generators.partition(b, 2)
    for i, j in np.ndindex(3, 3):
        prove_equal([made[0][i, j]], [u[i, j] if i < j else -u[j, i] if j < i else 0], mention=[])
    for n, i, j in np.ndindex(2, 4, 4):
        prove_equal([made[1][n, i, j]], [c[n, (j - i) % 4] - c[n, (i - j) % 4]])
    for a, i, j in np.ndindex(2, 6, 6):
        inside = i // 2 == j // 2 and i // 2 % 2 == a
        prove_equal([made[2][a, i, j]], [b[i // 2, i % 2, j % 2] if inside else 0])
    for layout in pairing.LAYOUTS:
        turn, expected = generators.planes(w, layout=layout), np.zeros((2, 6, 6), dtype=object)
        for a, t in np.ndindex(2, 3):
            one, two = (2 * t, 2 * t + 1) if layout == "interleaved" else (t, t + 3)
            expected[a, [one, two], [two, one]] = -w[a, t], w[a, t]
        prove_equal(turn, expected, mention=w)


@constructors_pinned.control
def the_lower_triangle():
    """skew reads the entries below the diagonal."""
    u = symbols("u", 2, 2)
    prove_equal(generators.skew(u)[1, 0], u[1, 0])


@theorem(of=[generators.planes, pairing.indices, rope.matrix], sizes="2 axes, d = 4, both layouts, all x", as_written="runs")
def planes_turn_as_rope():
    """The rotation by the angles sum_a x_a w_at is 1 at x = 0, and its derivative along axis a is S_a times the rotation. These
    equations define the exponential of sum_a x_a S_a."""
    x, w = symbols("x", 2), symbols("w", 2, 2)
    for layout in pairing.LAYOUTS:
        turn = rope.matrix(1, x @ w, layout=layout)
        prove_equal(rope.matrix(1, 0 * x @ w, layout=layout).ravel(), np.eye(4, dtype=int).ravel())
        for a in range(2):
            slope = np.vectorize(lambda e, a=a: sp.diff(expression(e), x[a].e), otypes=[object])(turn)
            prove_equal(slope.ravel(), (generators.planes(w, layout=layout)[a] @ turn).ravel(), mention=[x[a], w[a, 0]])


@planes_turn_as_rope.control
def it_turns_clockwise():
    """The derivative is minus S_a times it."""
    x, w = symbols("x", 1), symbols("w", 1, 1)
    turn = rope.matrix(1, x @ w, layout="half")
    slope = np.vectorize(lambda e: sp.diff(expression(e), x[0].e), otypes=[object])(turn)
    prove_equal(slope.ravel(), (-generators.planes(w, layout="half")[0] @ turn).ravel())


@theorem(
    of=[generators.cayley],
    sizes="d = 1, 2, 3, all skew S",
    equivalent={"cayley: i = np.arange(skew.shape[-1])  ->  i = np.arange(skew.shape[-2])": "square"},
)
def cayley_pinned():
    """The product P (1 + S) is 1 - S, which is the paper's (1 - S)(1 + S)^-1, and P P^T = 1 for all skew S."""
    for d in (1, 2, 3):
        s, one = generators.skew(symbols("u", d, d)), np.eye(d, dtype=int)
        p = generators.cayley(s)
        prove_equal((p @ (one + s)).ravel(), (one - s).ravel(), mention=s[0, 1:])
        prove_equal((p @ p.T).ravel(), one.ravel(), mention=[])


cayley_pinned.control_by("generators.cayley", "half_of_the_matrix", matrix=symbols("u", 2, 2))


def moved(basis):
    """The matrices between a query at x and a key at y: with P R P^T, without the left P, and P R(y - x) P^T."""
    w, x, y = symbols("w", 2), symbol("x"), symbol("y")
    right = lambda position: rope.matrix(position, w, layout="half") @ basis.T
    between = lambda at: (at(x).T @ at(y)).ravel()
    return between(lambda position: basis @ right(position)), between(right), (basis @ right(y - x)).ravel()


@theorem(of=[generators.cayley, rope.matrix], sizes="d = 4, S within features 0 and 1, which are of two pairs")
def a_basis_is_absorbed():
    """For this P of Cayley the scores of P R(x) P^T are those of R(x) P^T: the left factor P cancels. They are also the scores
    of R(x) after q -> P^T q and k -> P^T k: the right factor can be merged into the projections."""
    upper = symbol("s") * (np.arange(16).reshape(4, 4) == 1)
    both, right, plain = moved(generators.cayley(generators.skew(array(upper))))
    prove_equal([*both, *right], [*plain, *plain], mention=[symbol("s")])


@a_basis_is_absorbed.control
def by_any_matrix():
    """So it is for any matrix P."""
    both, _, plain = moved(array(np.diag([2, 1, 1, 1])))
    prove_equal(both, plain)


MIXED = [generators.mixed, rope.frequencies, axes.angles, axes.sections]


@theorem(of=MIXED, sizes="2 axes, 4 pairs, all frequencies and phi", as_written="runs")
def mixed_at_the_start():
    """Half of the pairs have f (cos phi, sin phi), the others f (cos(phi + pi/2), sin(phi + pi/2)); with phi = 0 a patch turns
    as in RoPE of two axes, columns first, with the same f = base^(-4t/d), t < d/4, for both."""
    f, phi, x = symbols("f", 2), symbols("phi", 1), symbols("x", 1, 2)
    made = generators.mixed(f, phi)[0]
    for t, turn in np.ndindex(2, 2):
        angle = phi[0].e + turn * sp.pi / 2
        prove_equal(made[:, 2 * turn + t], [f[t] * sp.cos(angle), f[t] * sp.sin(angle)], mention=[f[t]])
    axial = axes.angles(x, np.concatenate([f, f]), axes.sections(np.array([2, 2])))
    prove_equal((x @ generators.mixed(f, 0 * phi)[0]).ravel(), axial.ravel(), mention=[x[0, 1]])
    for t in range(2):
        b = symbol("b", positive=True)
        prove_equal([rope.frequencies(4, b)[t]], [b ** sp.Rational(-4 * t, 8)])


mixed_at_the_start.control_by("generators.mixed", "no_normal", magnitudes=symbols("f", 2), phi=symbols("phi", 1))


def scores_of_liere(entries):
    """R(x)^T R(y) for (0, 0), (1, 1) and for both moved along the second axis."""
    made = generators.skew(entries)
    at = lambda *x: generators.exponential(np.array(x, dtype=float), made, terms=18, halvings=4)
    return at(0, 0).T @ at(1, 1), at(0, 1).T @ at(1, 2)


@example(of=[generators.exponential, generators.skew], sizes="d = 3, two axes")
def lieres_scores_depend_on_the_place():
    """With S_1 the turn about one axis of space and S_2 about another, the patches (0, 0), (1, 1) and (0, 1), (1, 2) have other
    scores, by more than 0.3; with S_2 = S_1 / 2 they are the same within rounding."""
    one = np.zeros((2, 3, 3))
    one[0, 0, 1] = one[1, 1, 2] = 1
    here, there = scores_of_liere(one)
    prove_that(bool(np.abs(here - there).max() > 0.3), "they differ")
    here, there = scores_of_liere(np.stack([one[0], one[0] / 2]))
    prove_that(bool(np.abs(here - there).max() < 1e-13), "they are the same")


@lieres_scores_depend_on_the_place.claim("Only where the generators commute.")
def liere_is_relative():
    """LieRE's scores depend on the difference of two patches alone."""
    one = np.zeros((2, 3, 3))
    one[0, 0, 1] = one[1, 1, 2] = 1
    here, there = scores_of_liere(one)
    apart = np.abs(here - there).max()
    witness = f"patches (0, 0), (1, 1) and (0, 1), (1, 2): the scores differ by {apart:.4f}, expected 0"
    prove_that(bool(apart < 1e-6), counterexample=witness)
