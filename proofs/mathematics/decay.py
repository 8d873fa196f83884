"""Decay: RoPE's scores at growing distances. They fall for a while, not monotonically, and they rise again."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import sympy as sp
from mpmath import libmp

from posref.rotary import rope
from proofs.kit import *

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


@example(of=[rope.rotate, rope.frequencies], sizes="d = 128, base 10000")
def roformer_is_loose():
    """RoFormer's bound holds, and was larger than sum |q_t| |k_t|, which holds at every offset, in each of 600 random cases, at
    each of the offsets 1, 100 and 10000."""
    for offset in (1, 100, 10000):
        bound, trivial, score = bounds(offset, offset)
        prove_that(bool((score <= bound).all() and (score <= trivial).all()), f"both bounds hold at offset {offset}")
        premise(bool((bound > 2 * trivial).all()), f"RoFormer's is more than twice the other at offset {offset}")


@roformer_is_loose.claim("For random contents the bound is many times what holds at every offset.")
def roformer_shows_decay():
    """The bound shows that scores of distant tokens are small."""
    bound, trivial, _ = bounds(10000, 0)
    least = (bound / trivial).min()
    prove_that(
        bool(least < 1),
        counterexample=f"offset 10000: the bound is at least {least:.2f} times the one that holds at every offset",
    )


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

BITS = 96  # of a fraction: all numbers here are integers, times 2^-96
FINEST = 24  # halvings of a cell: what is not shown to be positive then is enclosed between its ends


def fixed(x):
    """The integer nearest to 2^96 times an interval, within 1 unit of every number in it."""
    low, high = (libmp.to_int(libmp.mpf_shift(end, BITS), "n") for end in x._mpi_)
    premise(low == high, "the interval is narrower than a unit")
    return low


def enclosures(dim, base):
    """The frequencies base^(-2t/dim) as intervals of 200 bits, and their context."""
    iv = mpmath.ctx_iv.MPIntervalContext()
    iv.prec = 200
    return iv, [iv.mpf(base) ** (-iv.mpf(2 * t) / dim) for t in range(dim // 2)]


class Walk:
    """S(x) = sum_t cos(x w_t) along a text, decided by integers alone.

    A rotation of (cos, sin) of all pairs errs by less than 4 units: 1 in each number of the rotation, and 1 in each truncation.
    So after k rotations each sum of `pairs` numbers, with weights of at most 1, errs by less than 4 pairs (k + 2).
    """

    def __init__(self, dim, base):
        self.iv, self.w = enclosures(dim, base)
        self.weights, self.pairs = np.array([fixed(w) for w in self.w], object), dim // 2
        self.squares = sum(w * w for w in self.weights.tolist()) + (3 * self.pairs << BITS)
        self.turns = {}

    def start(self):
        return np.array([1 << BITS] * self.pairs, object), np.array([0] * self.pairs, object)

    def turned(self, point, x):
        """A point (cos, sin), rotated by the angles x w_t."""
        if x not in self.turns:
            angles = [w * x.numerator / x.denominator for w in self.w]
            self.turns[x] = [np.array([fixed(part(a)) for a in angles], object) for part in (self.iv.cos, self.iv.sin)]
        (a, b), (cos, sin) = point, self.turns[x]
        return (a * cos - b * sin) >> BITS, (a * sin + b * cos) >> BITS

    def sign(self, point, turns):
        total = int(point[0].sum())
        premise(abs(total) > self.slack(turns), "the sign is decided")
        return 1 if total > 0 else -1

    def slack(self, turns):
        return 4 * self.pairs * (turns + 2)

    def stays_positive(self, point, turns, halvings):
        """Whether S > 0 within r = 2^-halvings of a point, by the lower bound S - r |S'| - r^2/2 sum w^2."""
        slope = abs(int((self.weights * point[1]).sum())) >> BITS
        falls = (slope + self.slack(turns) >> halvings) + (self.squares >> BITS + 2 * halvings + 1) + 2
        return int(point[0].sum()) - self.slack(turns) > falls

    def not_positive(self, point, turns, x, halvings=1):
        """The first x within 2^-halvings where S is not shown to be positive, with its point; None if S is positive there."""
        if self.stays_positive(point, turns, halvings):
            return None
        if halvings == FINEST:
            return x, point, turns
        quarter = Fraction(1, 2 << halvings)
        before = self.not_positive(self.turned(point, -quarter), turns + 1, x - quarter, halvings + 1)
        return before or self.not_positive(self.turned(point, quarter), turns + 1, x + quarter, halvings + 1)

    def zero(self, point, m):
        """An interval that contains the first zero within 1/2 of the position m; None if there is no zero."""
        found = self.not_positive(point, m, Fraction(m))
        if found is None:
            return None
        (x, point, turns), behind = found, Fraction(1, 1 << FINEST - 6)
        premise(self.sign(self.turned(point, behind), turns + 1) < 0, "the sum is negative just after the zero")
        return x - Fraction(1, 1 << FINEST), x + behind


def first_signs(dim, base):
    """The least integer m >= 1 with sum_t cos(m w_t) < 0, and an interval that holds the first real zero of the sum."""
    walk, zero, m = Walk(dim, base), None, 0
    point = walk.start()
    while True:
        zero = zero or walk.zero(point, m)
        if m and walk.sign(point, m) < 0:
            return m, zero
        m, point = m + 1, walk.turned(point, Fraction(1))


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
    found, (low, high) = first_signs(dim, base)
    premise(found == integer, f"the first negative sum of width {dim}, base {base} is at {integer}")
    premise(abs(low - Fraction(zero)) < 1e-5 and abs(high - Fraction(zero)) < 1e-5, f"the first zero is at {zero}")
    around = rope.tables(np.array([zero - 1e-3, zero + 1e-3, integer]), rope.frequencies(dim, float(base)))[0].sum(axis=-1)
    prove_that((around > 0).tolist() == [True, False, False], "the shipped tables have these signs")


@example(
    of=[rope.tables, rope.frequencies], sizes="d = 64, base 10000; all nine widths and bases in tests/proofs/test_decay.py"
)
def first_sign_change():
    """sum_t cos(m w_t), the score of equal contents, is positive for real m below 724.09216, has a zero within 10^-5 of
    724.09217, and is first negative at the integer 725: decided by integers of 96 bits."""
    certify(64, 10**4)


@first_sign_change.claim("The first negative score can come earlier: at 9937 for base 500000 and at 6235 for 1000000 (d = 64).")
def a_larger_base_moves_it_out():
    """A larger base moves the first sign change out."""
    sums = [rope.tables(np.arange(10**4), rope.frequencies(64, base))[0].sum(axis=-1) for base in (5e5, 1e6)]
    first = [int(np.argmax(each < 0)) for each in sums]
    prove_that(
        first[0] < first[1],
        counterexample=f"the first negative sum is at {first[0]} with base 5e5, at {first[1]} with base 1e6",
    )


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


@theorem(
    of=[rope.rotate],
    sizes="all d",
    argument="given q, a key of mean 0 whose features are uncorrelated, of variance c_t in pair t, has E (x . k)^2 = sum_t c_t "
    "|x_t|^2, and the score is x . k with x the query that is turned back",
)
def mean_square_of_independent_contents():
    """E score^2 = sum_t c_t |q_t|^2 at every offset, for keys of mean 0 that are independent of q and have variance c_t in both
    features of pair t: with unit variances it is d."""
    q, x, c = sized("q", 1, 2 * H), sized("x", H), sized("c", H)
    both = np.concatenate([c, c])
    with summing("half"):
        prove_equal([(both * turned(q, -x) ** 2).sum(axis=-1).at(0)], [(both * q**2).sum(axis=-1).at(0)])


@mean_square_of_independent_contents.control
def for_variances_of_each_feature():
    """Each feature may have a variance of its own."""
    q, x, c = symbols("q", 1, 2), symbols("x", 1), symbols("c", 2)
    prove_equal((c * turned(q, -x) ** 2).sum(axis=-1), (c * q**2).sum(axis=-1))


def mean_square(cos, mean, square):
    """E (sum_t |q_t|^2 cos_t)^2 for independent pairs with E |q_t|^2 = mean and E |q_t|^4 = square, product by product."""
    pairs = [(a, b, square if t == u else mean * mean) for t, a in enumerate(cos) for u, b in enumerate(cos)]
    return sum(a * b * expected for a, b, expected in pairs)


@theorem(of=[rope.tables, rope.rotate], sizes="d = 2, 4, 6; all frequencies and moments")
def mean_square_of_equal_contents():
    """With k = q, pairs independent, E |q_t|^2 = a and E |q_t|^4 = b, E score(o)^2 = a^2 S(o)^2 + (b - a^2) (d/2 + S(2 o)) / 2,
    where S(o) = sum_t cos(o w_t): the square of the mean, and the variance."""
    a, b, o = symbol("a"), symbol("b"), symbol("o")
    for half in (1, 2, 3):
        q, w = symbols("q", 1, 2 * half), symbols("w", half)
        cos, twice = (rope.tables(np.array([k * o]), w)[0][0] for k in (1, 2))
        prove_equal(dot(q, turned(q, o * w)), (products(q, q)[0] * cos).sum(axis=-1))
        prove_equal([mean_square(cos, a, b)], [a**2 * cos.sum() ** 2 + (b - a**2) * (half + twice.sum()) / 2])


@mean_square_of_equal_contents.control
def the_square_of_the_mean():
    """E score^2 is the square of the mean score."""
    a, b, cos = symbol("a"), symbol("b"), rope.tables(np.array([symbol("o")]), symbols("w", 2))[0][0]
    prove_equal([mean_square(cos, a, b)], [a**2 * cos.sum() ** 2])


SAMPLES = 2_000  # a run with changed results has about a second


def normal_moments(cos):
    """E s^2 and E s^4 of s = sum_t |q_t|^2 cos_t for standard normal q, by its cumulants 2^n (n - 1)! sum_t cos_t^n."""
    k1, k2, k3, k4 = (2**n * math.factorial(n - 1) * (cos**n).sum() for n in (1, 2, 3, 4))
    return k2 + k1**2, k4 + 4 * k3 * k1 + 3 * k2**2 + 6 * k2 * k1**2 + k1**4


def deviations(scores, second, fourth):
    """The difference of the mean of the squares from E s^2, in standard deviations, which E s^4 gives."""
    return abs(np.mean(scores**2) - second) / np.sqrt((fourth - second**2) / len(scores))


def random_scores(dim, offset, independent):
    random = np.random.default_rng(offset)
    q = random.normal(size=(SAMPLES, dim))
    k = random.normal(size=(SAMPLES, dim)) if independent else q
    return dot(q, turned(k, offset * rope.frequencies(dim, 10000.0)))


@example(of=[rope.rotate], sizes="d = 64")
def mean_squares_are_met():
    """The mean of score^2 over random normal contents is d, with a variance of (2 d^2 + 6 d) / samples, where the key is
    independent, and with k = q that of the theorem with a = 2, b = 8: it is off by less than 5
    deviations of 2000 samples at the offsets 0, 1, 30 and 1000."""
    for offset in (0, 1, 30, 1000):
        scores = random_scores(64, offset, True)
        prove_that(bool(deviations(scores, 64, 3 * 64 * 66) < 5), f"independent contents, offset {offset}")
        cos = np.cos(offset * rope.frequencies(64, 10000.0))
        second, fourth = normal_moments(cos)
        stated = 4 * cos.sum() ** 2 + 4 * (32 + np.cos(2 * offset * rope.frequencies(64, 10000.0)).sum()) / 2
        premise(bool(abs(second - stated) < 1e-9 * stated), "cumulants and the theorem agree")
        prove_that(bool(deviations(random_scores(64, offset, False), second, fourth) < 5), f"k = q, offset {offset}")


@mean_squares_are_met.control
def equal_contents_have_one_mean_square():
    """With k = q the mean square is the same at offsets 1 and 1000."""
    moments = normal_moments(np.cos(rope.frequencies(64, 10000.0)))
    off = deviations(random_scores(64, 1000, False), *moments)
    prove_that(
        bool(off < 5), counterexample=f"the mean square of offset 1000 is {off:.0f} standard deviations from that of offset 1"
    )


# the mean over positions


@theorem(of=[rope.tables], sizes="the length is a symbol; all angles that are no multiple of 2 pi")
def sums_over_positions():
    """sum_(m < L) cos(m x) = 1/2 + sin((L - 1/2) x) / (2 sin(x/2)), and the product of cosines of two pairs is half the sum of
    the cosines of the difference and the sum of their angles."""
    x, a, b = symbol("x"), symbol("a"), symbol("b")
    half, length = np.sin(x / 2), sp.Symbol("L", integer=True, nonnegative=True)
    closed = half + np.sin((array(length)[()] - sp.Rational(1, 2)) * x)
    term = 2 * half * np.cos(array(length)[()] * x)
    prove_induction(term, closed, length)
    (at_a, at_b, apart, together), m = rope.tables(np.array([symbol("m")]), np.array([a, b, a - b, a + b]))[0][0], symbol("m")
    prove_equal([at_a * at_b], [(apart + together) / 2], mention=[m])


@sums_over_positions.control
def cosines_of_sums_multiply():
    """cos(m a) cos(m b) = cos(m (a + b))."""
    a, b = symbol("a"), symbol("b")
    at_a, at_b, together = rope.tables(np.array([symbol("m")]), np.array([a, b, a + b]))[0][0]
    prove_equal([at_a * at_b], [together])


def mean_over_positions(dim, base, length):
    """(1/L) sum_(m < L) S(m)^2 by the shipped tables; d/4 (more if angles agree); and a bound for their difference."""
    w = rope.frequencies(dim, base)
    mean = sum((rope.tables(m, w)[0].sum(axis=-1) ** 2).sum() for m in np.array_split(np.arange(length), 16)) / length
    reach = lambda x: 0.5 + 0.5 / abs(np.sin(x / 2))
    apart, together = w[:, None] - w, w[:, None] + w
    others = ~np.eye(len(w), dtype=bool)
    return mean, dim / 4, (reach(apart[others]).sum() + reach(together).sum()) / 2 / length


@example(
    of=[rope.tables, rope.frequencies],
    sizes="d = 16, 32 at base 10000",
    argument="by the sums over positions, for all d, L and frequencies whose sums and differences are no multiples of 2 pi",
)
def mean_square_over_positions():
    """(1/L) sum_(m < L) S(m)^2 is within sum (1 + 1/|sin(x/2)|) / (4 L) of d/4, x the sums of two frequencies and the
    differences of different ones: S returns to the size sqrt(d)/2 for ever. Here L = 10^5."""
    for dim in (16, 32):
        mean, stated, reach = mean_over_positions(dim, 10000.0, 10**5)
        prove_that(bool(abs(mean - stated) <= reach < stated), f"{mean:.3f} is within {reach:.3f} of {stated}")


@mean_square_over_positions.claim("The mean of S^2 tends to d/4, at every width.")
def the_mean_square_tends_to_zero():
    """S(m) is small for most positions of a long text: the mean of S^2 below 10^5 is below d/8 (d = 32)."""
    mean = mean_over_positions(32, 10000.0, 10**5)[0]
    prove_that(bool(mean < 4), counterexample=f"d = 32: the mean is {mean:.2f}, expected less than d/8 = 4")
