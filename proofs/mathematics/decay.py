"""Decay: what RoPE's scores do as tokens move apart. They fall for a while, not monotonically, and they come back."""

import mpmath
import numpy as np

from posref.rotary import rope
from proofs.kit import example, prove_equal, prove_that, size, sized, summing, symbol, symbols, theorem

H = size("h")


def dot(x, y):
    return (x * y).sum(axis=-1)


def turned(x, angle):
    return rope.rotate(x, np.cos(angle), np.sin(angle), layout="half")


def products(q, k):
    """a_t and b_t of score(o) = sum_t a_t cos(o w_t) + b_t sin(o w_t)."""
    half = q.shape[-1] // 2
    (q1, q2), (k1, k2) = ((x[:, :half], x[:, half:]) for x in (q, k))
    return q1 * k1 + q2 * k2, q2 * k1 - q1 * k2


def jump(x):
    return x[1:] - x[:-1]


# RoFormer's inequality


@theorem(
    of=[rope.rotate],
    sizes="d = 2, 4, 6, 8",
    argument="by the triangle inequality |score| <= sum_t |S_(t+1)| |h_(t+1) - h_t| <= max_t |h_(t+1) - h_t| sum_j |S_j|",
)
def roformer_by_parts():
    """A score is -sum_t of the parts of S_(t+1) (h_(t+1) - h_t), where S_j = sum_(t<j) e^(i o w_t), h_t = a_t + i b_t is the
    product of the contents of pair t, and h is 0 beyond the last pair."""
    for half in (1, 2, 3, 4):
        q, k, angle = symbols("q", 1, 2 * half), symbols("k", 1, 2 * half), symbols("w", half)
        a, b = (np.append(x[0], 0 * x[0, :1]) for x in products(q, k))
        cos, sin = np.cumsum(np.cos(angle)), np.cumsum(np.sin(angle))
        prove_equal(dot(q, turned(k, angle)), [-(cos * jump(a) + sin * jump(b)).sum()])


@roformer_by_parts.claim("The jump from the last pair to 0 counts too, with the whole sum.")
def roformer_without_the_last_jump():
    """Only the differences of neighbouring pairs count."""
    q, k, angle = symbols("q", 1, 4), symbols("k", 1, 4), symbols("w", 2)
    a, b = (x[0] for x in products(q, k))
    cos, sin = np.cumsum(np.cos(angle)), np.cumsum(np.sin(angle))
    prove_equal(dot(q, turned(k, angle)), [-(cos[:1] * jump(a) + sin[:1] * jump(b)).sum()])


def bounds(offset, seed):
    """RoFormer's bound, the bound sum |h_t|, and |score|, for 200 random queries and keys of width 128."""
    random, w = np.random.default_rng(seed), rope.frequencies(128, 10000.0)
    q, k = random.normal(size=(2, 200, 128))
    score = dot(q, turned(k, offset * w))
    a, b = products(q, k)
    h = a + 1j * b
    jumps = abs(np.diff(np.append(h, np.zeros((200, 1)), axis=1), axis=1)).max(axis=1)
    return jumps * abs(np.cumsum(np.exp(1j * offset * w))).sum(), abs(h).sum(axis=1), abs(score)


@example(of=[rope.rotate, rope.frequencies], sizes="d = 128, base 10000; offsets 1, 100, 10000; 600 random pairs")
def roformer_is_loose():
    """RoFormer's bound holds, and was larger than sum |q_t| |k_t|, which holds at every offset, in each of 600 random cases."""
    for offset in (1, 100, 10000):
        bound, trivial, score = bounds(offset, offset)
        prove_that(bool((score <= bound).all() and (score <= trivial).all()), f"both bounds hold at offset {offset}")
        prove_that(bool((bound > 2 * trivial).all()), f"RoFormer's is more than twice the other at offset {offset}")


@roformer_is_loose.claim("For random contents the bound is many times what holds at every offset.")
def roformer_shows_decay():
    """The bound shows that scores of distant tokens are small."""
    bound, trivial, _ = bounds(10000, 0)
    prove_that(bool((bound < trivial).any()), "it is below the bound that holds at every offset")


# no decay at infinity


@theorem(
    of=[rope.rotate],
    sizes="all d",
    argument="for N >= 2, M >= 1 some m in [M, M N^(d/2)] has all m w_t within 2 pi/N of a multiple of 2 pi, by pigeonhole "
    "among N^(d/2) boxes; with e_t = m w_t / 2 modulo pi, |score(o + m) - score(o)| <= 2 sin(pi/N) sum_t |q_t| |k_t|",
)
def almost_periodic():
    """Angles larger by 2 e_t change a score by 2 sum_t sin(e_t) (b_t cos(o w_t + e_t) - a_t sin(o w_t + e_t)): where all
    sin(e_t) are small, the score comes back, at any fixed width, so that no score decays for ever."""
    q, k, x, e = sized("q", 1, 2 * H), sized("k", 1, 2 * H), sized("x", H), sized("e", H)
    a, b = products(q, k)
    with summing("half"):
        change = dot(q, turned(k, x + 2 * e)) - dot(q, turned(k, x))
        stated = (2 * np.sin(e) * (b * np.cos(x + e) - a * np.sin(x + e))).sum(axis=-1)
        prove_equal([change.at(0)], [stated.at(0)])


@almost_periodic.claim("A multiple of pi is half a turn: every score changes its sign.")
def back_after_half_turns():
    """Scores come back after half a turn of every pair."""
    q, k, x = symbols("q", 1, 2), symbols("k", 1, 2), symbols("x", 1)
    prove_equal([dot(q, rope.rotate(k, -np.cos(x), -np.sin(x), layout="half"))[0]], [dot(q, turned(k, x))[0]])


# the first sign change

BITS = 96
SLACK = 1e-7  # what float64 may be off in a sum of at most 128 cosines of angles below 1e5, and far more


def first_negative(dim, base):
    """The least integer m >= 1 with sum_t cos(m w_t) < 0; signs before it are decided by integers of 96 bits.

    A product errs by less than 4 units; after m of them a sum of h numbers errs by less than 4 h (m + 2).
    """
    with mpmath.workprec(2 * BITS):
        steps = [mpmath.expj(mpmath.mpf(base) ** (-mpmath.mpf(2 * t) / dim)) for t in range(dim // 2)]
        cos, sin = (np.array([int(mpmath.nint(part(z) * 2**BITS)) for z in steps], object) for part in (mpmath.re, mpmath.im))
    x, y, m = np.array([1 << BITS] * (dim // 2), object), np.array([0] * (dim // 2), object), 0
    while True:
        m, x, y = m + 1, (x * cos - y * sin) >> BITS, (x * sin + y * cos) >> BITS
        total = int(x.sum())
        prove_that(abs(total) > 2 * dim * (m + 2), f"the sign at {m} is decided")
        if total < 0:
            return m


def positive(dim, base, end, cell=0.25):
    """Whether S(x) = sum_t cos(x w_t) > 0 on [0, end]: by S(c) - r |S'(c)| - r^2/2 sum w^2 on cells, halved where it fails."""
    w = rope.frequencies(dim, float(base))
    centres, radius = np.arange(cell, end + cell, 2 * cell), cell
    while len(centres) and radius > 1e-7:
        failed = []
        for some in np.array_split(centres, len(centres) // 4096 + 1):
            cos, sin = rope.tables(some, w)
            least = cos.sum(axis=-1) - radius * abs((w * sin).sum(axis=-1)) - radius**2 / 2 * (w * w).sum()
            failed.append(some[(least <= SLACK) & (some - radius < end)])
        wrong = np.concatenate(failed)
        centres, radius = np.concatenate([wrong - radius / 2, wrong + radius / 2]), radius / 2
        centres = centres[centres - radius < end]
    return not len(centres)


FIRST = {  # width, base: the first integer with a negative sum, and the first real zero
    (64, 10**4): (725, 724.09217),
    (64, 5 * 10**5): (9937, 6953.04021),
    (64, 10**6): (6235, 6234.69289),
    (128, 10**4): (1707, 1706.05783),
    (128, 5 * 10**5): (18438, 18437.78364),
    (128, 10**6): (27115, 27114.42163),
    (256, 10**4): (2653, 2652.85651),
    (256, 5 * 10**5): (37791, 37790.43142),
    (256, 10**6): (71627, 71626.32),
}


def certify(dim, base):
    """The stated first integer and first real zero of one width and base: proved, or Refuted."""
    integer, zero = FIRST[dim, base]
    prove_that(first_negative(dim, base) == integer, f"the first negative sum of width {dim}, base {base} is at {integer}")
    prove_that(positive(dim, base, zero - 1e-3), f"no zero before {zero}")
    after = rope.tables(np.array([zero + 1e-3]), rope.frequencies(dim, float(base)))[0].sum()
    prove_that(after < -SLACK, f"negative behind {zero}")


@example(
    of=[rope.tables, rope.frequencies],
    sizes="d = 64, base 10000; all nine widths and bases in tests/proofs/test_decay.py",
    argument="between integers, cosines of float64 are within 1e-9, of which 1e-7 is allowed in a sum",
)
def first_sign_change():
    """sum_t cos(m w_t), the score of equal contents, is positive below 724.09, and first negative at the integer 725."""
    certify(64, 10**4)


@first_sign_change.claim("The first negative score can come earlier: at 9937 for base 500000 and at 6235 for 1000000 (d = 64).")
def a_larger_base_moves_it_out():
    """A larger base moves the first sign change out."""
    rope.frequencies(64, 1e6)
    prove_that(first_negative(64, 5 * 10**5) < first_negative(64, 10**6), "9937 < 6235")


# random contents


@theorem(
    of=[rope.matrix, rope.rotate],
    sizes="d = 4, 6",
    argument="a law of keys that no rotation of pairs changes is that of the turned key, and the score has one law at all "
    "offsets",
)
def no_decay_without_correlation():
    """Keys whose pairs have covariance s_t times the identity have the same covariance turned, so that scores with keys that
    are independent of the query have one variance at all offsets; with k = q a score is sum_t |q_t|^2 cos(o w_t)."""
    for half in (2, 3):
        q, w, s, o = symbols("q", 1, 2 * half), symbols("w", half), symbols("s", half), symbol("o")
        turn = rope.matrix(o, w, layout="half")
        prove_equal(turn @ np.diag(np.concatenate([s, s])) @ turn.T, np.diag(np.concatenate([s, s])))
        prove_equal(dot(q, turned(q, o * w)), (products(q, q)[0] * np.cos(o * w)).sum(axis=-1))


@no_decay_without_correlation.claim("Where the two features of a pair differ in variance, a turn shows.")
def for_any_covariance():
    """No covariance of keys changes under a turn."""
    turn, s = rope.matrix(symbol("o"), symbols("w", 1), layout="half"), symbols("s", 2)
    prove_equal(turn @ np.diag(s) @ turn.T, np.diag(s))
