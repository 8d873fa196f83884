"""FoPE: pairs that rotate by mixtures of frequencies, and pairs that do not rotate."""

import numpy as np
import sympy as sp

from posref.rotary import fope, rope
from proofs.kit import *

WHOLE = [fope.tables, rope.rotate]


def definition(position, frequencies, coefficients, m=sp):
    """sum_D cos(m w_D) C_D and sum_D sin(m w_D) S_D for one pair, C and S by their columns. Hua et al., arXiv 2412.17739."""
    cos, sin = coefficients
    angles = [position * w for w in frequencies]
    mixed = lambda of, column: sum(of(angle) * c for angle, c in zip(angles, column, strict=True))
    return mixed(m.cos, cos), mixed(m.sin, sin)


def still(convention):
    """cos and sin of the pairs that do not rotate."""
    return 1, 1 if convention == "released" else 0


SHAPED = "tables: still = np.ones_like({}, shape=(*cos.shape[:-1], dim // 2 - width))"


@theorem(
    of=[fope.tables],
    sizes="h = 2, kept = 2, width = 1, 2, dim = 4, 6, a batch of 1",
    equivalent={f"{SHAPED.format('cos')}  ->  {SHAPED.removeprefix('tables: ').format('sin')}": "a kind alone"},
)
def pinned():
    """Pair u of head h has sum_D cos(m w_D) C_Du and sum_D sin(m w_D) S_Du, and beyond the width 1 and 1, or 1 and 0."""
    for width, dim in ((1, 4), (2, 4), (2, 6)):
        m, w, c, s = symbols("m", 1, 2), symbols("w", 2), symbols("c", 2, 2, width), symbols("s", 2, 2, width)
        for convention in fope.CONVENTIONS:
            got = fope.tables(m, w, c, s, dim=dim, convention=convention)
            prove_that(got[0].shape == got[1].shape == (1, 2, 2, dim // 2), "batch, heads, queries, pairs")
            for h, i, u in np.ndindex(2, 2, dim // 2):
                columns = [[each.e for each in x[h, :, min(u, width - 1)]] for x in (c, s)]
                stated = definition(m[0, i].e, [each.e for each in w], columns) if u < width else still(convention)
                named = [c[h, 1, u], w[1], m[0, i]] if u < width else []
                prove_equal([x[0, h, i, u] for x in got], stated, mention=named)


pinned.control_by(
    "fope.rotate",
    "other_padding",
    x=symbols("x", 1, 1, 4),
    positions=symbols("m", 1),
    cos_coefficients=symbols("c", 1, 1, 1),
    sin_coefficients=symbols("s", 1, 1, 1),
    dim=4,
    base=10000,
    length=64,
    convention="released",
)


@pinned.control
def one_matrix():
    """Sines are mixed by C, too."""
    m, w, c, s = symbols("m", 1), symbols("w", 2), symbols("c", 1, 2, 1), symbols("s", 1, 2, 1)
    prove_equal(*(fope.tables(m, w, c, x, dim=2, convention="released")[1].ravel() for x in (s, c)))


BASE, LENGTH = symbol("base", positive=True), symbol("L", positive=True)


@theorem(of=[fope.frequencies, rope.frequencies], sizes="dim = 2, 4, every base and every length L")
def frequencies_pinned():
    """Kept are RoPE's frequencies with w L >= 2 pi, in their order."""
    for dim in (2, 4):

        def both(dim=dim):
            plain = rope.frequencies(sp.Integer(dim), BASE)
            return fope.frequencies(sp.Integer(dim), BASE, length=LENGTH), [w for w in plain if w * LENGTH >= 2 * np.pi]

        for _, (got, stated) in all_paths(both):
            prove_equal([*got, LENGTH], [*stated, LENGTH])


@frequencies_pinned.control
def all_are_kept():
    """Kept are all of them."""
    for _, got in all_paths(lambda: fope.frequencies(sp.Integer(4), BASE, length=LENGTH)):
        prove_that(len(got) == 2, counterexample=f"dim = 4: {len(got)} of 2 frequencies are kept")


@example(
    of=[fope.frequencies, rope.frequencies],
    sizes="three released configurations",
    argument="powers of a rational base are algebraic, 2 pi / L is not: w L is never 2 pi, so >= and > give the same result",
)
def what_models_keep():
    """The 60M model keeps 18 of 32 frequencies, the 1.2B model 36 of 64, and Intern-S1-Pro 45 of 64. In each model the last
    kept pair turns more than once in the trained length, and the next pair less than once."""
    for name, kept in (("fope_60m", 18), ("fope_1.2b", 36), ("intern_s1_pro", 45)):
        dim, base, length = (fope.PRESETS[name][each] for each in ("dim", "base", "length"))
        prove_that(len(fope.frequencies(dim, base, length=length)) == kept, f"{name} keeps {kept}")
        last, next_one = (length * sp.Integer(int(base)) ** sp.Rational(-2 * t, dim) for t in (kept - 1, kept))
        premise(
            bool(next_one < 2 * sp.pi) and bool(2 * sp.pi < last),
            f"the last kept pair of {name} turns more than once, the next one less",
        )


@what_models_keep.control
def a_quarter_of_the_head():
    """The 60M model keeps a quarter of the 64 features' number."""
    kept = len(fope.frequencies(64, 10000.0, length=1024))
    prove_that(kept == 16, counterexample=f"length 1024: {kept} frequencies are kept, expected 16")


@example(of=[fope.step_eye], sizes="kept = 1 .. 6, width = 1 .. 7")
def step_eye_pinned():
    """Ones stand at (u ceil(kept / width), u) and nowhere else; columns whose row is beyond the last one are empty: 7 of the 16
    columns of the 60M model."""
    for kept, width in np.ndindex(6, 7):
        stated = [[int(row == -(-(kept + 1) // (width + 1)) * u) for u in range(width + 1)] for row in range(kept + 1)]
        prove_equal(np.ravel(fope.step_eye(kept + 1, width + 1)), np.ravel(stated))
    prove_that(int(fope.step_eye(18, 16).sum()) == 9, "nine of sixteen columns have a one")


@step_eye_pinned.control
def steps_are_rounded_down():
    """Ones stand at (u floor(kept / width), u)."""
    prove_equal(fope.step_eye(3, 2).ravel(), [1, 0, 0, 1, 0, 0])


def one_pair(count):
    """A query and a key of one pair, their positions, and `count` frequencies."""
    return symbols("q", 1, 1, 2), symbols("k", 1, 1, 2), symbol("m"), symbol("n"), symbols("w", count)


def at(x, position, w, c, s, convention="released"):
    """The shipped map at one position, for one head."""
    tables = fope.tables(array([position]), w, c[None], s[None], dim=x.shape[-1], convention=convention)
    return rope.rotate(x, *tables, layout="half")


def score(q, k, m, n, *coefficients):
    return (at(q, m, *coefficients) * at(k, n, *coefficients)).sum()


def column(*entries):
    return array([[each] for each in entries])


@theorem(of=WHOLE, sizes="d = 2, two frequencies, all coefficients")
def turned_and_stretched():
    """With c and s of its definition a pair is turned, and its length is multiplied by sqrt(c^2 + s^2), which depends on the
    position."""
    x, _, m, _, w = one_pair(2)
    c, s = symbols("c", 2, 1), symbols("s", 2, 1)
    got = at(x, m, w, c, s)
    cos, sin = definition(m.e, [each.e for each in w], [[each.e for each in y[:, 0]] for y in (c, s)])
    a, b = (each.e for each in x[0, 0])
    prove_equal(got.ravel(), [a * cos - b * sin, a * sin + b * cos], mention=[m, c[1, 0], s[0, 0]])
    prove_equal([(got * got).sum()], [(cos**2 + sin**2) * (a**2 + b**2)])


@turned_and_stretched.claim("It is a rotation where c^2 + s^2 = 1, as without noise.")
def lengths_are_kept():
    """FoPE is a rotation: the lengths of queries stay."""
    x, _, m, _, w = one_pair(1)
    got = at(x, m, w, symbols("c", 1, 1), symbols("s", 1, 1))
    prove_equal([(got * got).sum()], [(x * x).sum()])


@theorem(of=[*WHOLE, rope.tables], sizes="d = 4, one frequency; d = 6, two", as_written="runs")
def rope_without_noise():
    """With the step-eye for both matrices and zero_phase it is RoPE, the frequencies that are left out 0."""
    for kept in (1, 2):
        x, m, w = symbols("x", 1, 1, 2 * kept + 2), symbol("m"), symbols("w", kept)
        eye = fope.step_eye(kept, kept)
        plain = rope.rotate(x, *rope.tables(array([[m]]), np.append(w, 0)), layout="half")
        prove_equal(at(x, m, w, eye, eye, "zero_phase").ravel(), plain.ravel(), mention=[m, w[0]])


@rope_without_noise.control
def as_released():
    """It is RoPE as released, too."""
    x, m, w, eye = symbols("x", 1, 1, 4), symbol("m"), symbols("w", 1), fope.step_eye(1, 1)
    prove_equal(at(x, m, w, eye, eye).ravel(), at(x, m, w, eye, eye, "zero_phase").ravel())


@theorem(of=WHOLE, sizes="d = 4, one frequency, all coefficients")
def still_pairs_are_doubled():
    """As released the pairs that do not turn add twice the product of query and key to a score, with zero_phase once."""
    q, k, m, n, w = symbols("q", 1, 1, 4), symbols("k", 1, 1, 4), symbol("m"), symbol("n"), symbols("w", 1)
    c, s = symbols("c", 1, 1), symbols("s", 1, 1)
    rest = (q[..., 1::2] * k[..., 1::2]).sum()
    moving = score(q[..., ::2], k[..., ::2], m, n, w, c, s)
    for convention, times in (("released", 2), ("zero_phase", 1)):
        prove_equal([score(q, k, m, n, w, c, s, convention)], [moving + times * rest], mention=[q[0, 0, 1]])


@still_pairs_are_doubled.claim("The turn by 45 degrees cancels, and the factor sqrt(2) on both sides does not.")
def the_padding_is_immaterial():
    """The padding of sin does not matter: queries and keys share the phase, and it cancels."""
    q, k, m, n, w = symbols("q", 1, 1, 4), symbols("k", 1, 1, 4), symbol("m"), symbol("n"), symbols("w", 1)
    prove_equal(*([score(q, k, m, n, w, column(1), column(1), each)] for each in fope.CONVENTIONS))


@theorem(of=WHOLE, sizes="d = 6, two frequencies, both conventions")
def relative_without_mixing():
    """The score depends on n - m alone where every column has one entry, and S = C."""
    q, k, m, n, shift = symbols("q", 1, 1, 6), symbols("k", 1, 1, 6), symbol("m"), symbol("n"), symbol("shift")
    w, (a, b) = symbols("w", 2), symbols("a", 2)
    c = array([[0, a], [b, 0]])
    for convention in fope.CONVENTIONS:
        both = (score(q, k, *place, w, c, c, convention) for place in ((m + shift, n + shift), (m, n)))
        prove_equal(*([each] for each in both), mention=[m, n, a])


@relative_without_mixing.claim("It is where nothing is mixed; noise makes every score see both places.")
def fope_is_relative():
    """FoPE is a relative encoding: scores stay when query and key move together."""
    *some, m, n, w = one_pair(1)
    c, s = symbols("c", 1, 1), symbols("s", 1, 1)
    prove_equal(*([score(*some, *place, w, c, s)] for place in ((m + 1, n + 1), (m, n))))


@theorem(of=WHOLE, sizes="d = 2, one and two frequencies")
def what_mixing_adds():
    """For one frequency the score of (1, 0) with itself is (c^2 + s^2)/2 cos((n - m) w) + (c^2 - s^2)/2 cos((n + m) w); for two
    with the same c = (a, b) in both matrices a^2 cos((n - m) w_1) + b^2 cos((n - m) w_2) and
    a b (cos(m w_1 - n w_2) + cos(m w_2 - n w_1)): the last terms see the places."""
    _, _, m, n, (v, w) = one_pair(2)
    x, (a, b) = array([[[1, 0]]]), symbols("a", 2)
    got = score(x, x, m, n, array([w]), column(a), column(b))
    prove_equal([got], [(a**2 + b**2) / 2 * np.cos((n - m) * w) + (a**2 - b**2) / 2 * np.cos((n + m) * w)], mention=[m, n])
    same = column(a, b)
    got = score(x, x, m, n, array([v, w]), same, same)
    near = a**2 * np.cos((n - m) * v) + b**2 * np.cos((n - m) * w)
    prove_equal([got], [near + a * b * (np.cos(m * v - n * w) + np.cos(m * w - n * v))], mention=[m, n])


@what_mixing_adds.control
def a_sum_of_two_ropes():
    """The score of a mixture of two frequencies is the sum of the scores of two RoPEs."""
    _, _, m, n, (v, w) = one_pair(2)
    x, (a, b) = array([[[1, 0]]]), symbols("a", 2)
    got = score(x, x, m, n, array([v, w]), column(a, b), column(a, b))
    prove_equal([got], [a**2 * np.cos((n - m) * v) + b**2 * np.cos((n - m) * w)])
