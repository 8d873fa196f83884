"""Complex Order: every feature of a word is a wave in its position."""

import numpy as np
import sympy as sp

from posref import pairing
from posref.absolute import complex_order
from posref.rotary import rope
from proofs.kit import *

B, N, M, D, H = size("b"), size("n"), size("m"), size("d"), size("h")


def definition(position, amplitude, frequency, phase, m=sp):
    """Real and imaginary part of r e^{i (w m + theta)}. Wang et al., arXiv 1912.12333, section 2."""
    angle = frequency * position + phase
    return amplitude * m.cos(angle), amplitude * m.sin(angle)


def words(name, n=N):
    """Amplitude, frequency and phase of n words, each of them with d features."""
    return [sized(f"{part}_{name}", n, D) for part in ("r", "w", "theta")]


# what it is


@theorem(of=[complex_order.encode], sizes="all n, d")
def pinned():
    """Feature t of token i is r_it e^{i (w_it m_i + theta_it)}; its modulus is r_it at every position; and the three may be
    shared by all words."""
    m, (r, w, theta) = sized("m", N), words("v")
    g, i, t = complex_order.encode(m, r, w, theta), index(N), index(D)
    real, imaginary = definition(m.at(i), r.at(i, t), w.at(i, t), theta.at(i, t))
    prove_equal([g.at(i, t)], [real + sp.I * imaginary], mention=[m.at(i), theta.at(i, t)])
    prove_equal([(g * np.conj(g)).at(i, t)], [r.at(i, t) ** 2])
    shared = [sized(part, D) for part in ("r", "w", "theta")]
    g = complex_order.encode(m, *shared)
    real, imaginary = definition(m.at(i), *(part.at(t) for part in shared))
    prove_equal([g.at(i, t)], [real + sp.I * imaginary], mention=[m.at(i)])


@pinned.claim("The released code has no phase: it is the paper's formula with theta = 0.")
def phase_left_out():
    """r e^{i w m}, the released code, is the paper's formula."""
    m, r, w, theta = symbol("m"), *(symbols(name, 1) for name in ("r", "w", "theta"))
    real, imaginary = definition(m.e, r[0].e, w[0].e, 0)
    prove_equal(complex_order.encode(array([m]), r, w, theta)[0], [real + sp.I * imaginary])


@pinned.claim("The entries are 1, 2, .., d: feature t has frequency number t.")
def second_entry_after_an_ellipsis():
    """The vector is (1, .., 2, .., d), as a survey's Eq. (12) prints it: feature 1 and then feature 3."""
    m, r, w, theta = symbol("m"), *(symbols(name, 4) for name in ("r", "w", "theta"))
    g = complex_order.encode(array([m]), r, w, theta)[0]
    prove_equal(g, g[[0, 2, 1, 3]])


@theorem(of=[complex_order.released_frequencies], sizes="d = 1, 2, 4, 8, every word")
def released_frequencies_pinned():
    """w_t = v / 10000^(2t/d), t = 0 .. d - 1."""
    v = symbols("v", 3)
    for dim in (1, 2, 4, 8):
        expected = [[x.e / sp.Integer(10000) ** sp.Rational(2 * t, dim) for t in range(dim)] for x in v]
        prove_equal(complex_order.released_frequencies(v, sp.Integer(dim)), expected, mention=v)


@released_frequencies_pinned.control
def sinusoidal_schedule():
    """They are v times the frequencies of a sinusoid with 2d features, base^(-t/d)."""
    got = complex_order.released_frequencies(symbols("v", 1), sp.Integer(4))[0]
    prove_equal(got, [symbols("v", 1)[0].e / sp.Integer(10000) ** sp.Rational(t, 4) for t in range(4)])


# offsets


@theorem(of=[complex_order.encode], sizes="all n, d, positions, offsets")
def offset_is_a_factor():
    """g(m + n) = e^{i w n} g(m): going on by n is linear and does not depend on where one starts."""
    m, (r, w, theta), step = sized("m", N), words("v"), symbol("s").e
    before, after = (complex_order.encode(p, r, w, theta) for p in (m, m + step))
    i, t = index(N), index(D)
    prove_equal([after.at(i, t)], [sp.exp(sp.I * w.at(i, t) * step) * before.at(i, t)], mention=[step])


@offset_is_a_factor.control
def factor_with_the_phase():
    """g(m + n) = e^{i (w n + theta)} g(m)"""
    m, step, r, w, theta = symbol("m"), symbol("s"), *(symbols(name, 1) for name in ("r", "w", "theta"))
    before, after = complex_order.encode(array([m, m + step]), r, w, theta)
    prove_equal(after, np.exp(array([sp.I * (w[0].e * step.e + theta[0].e)])) * before)


@offset_is_a_factor.control
def factor_shared_by_words():
    """Two words at one position go on by the same factor."""
    m, step, r, w = symbol("m"), symbol("s"), symbols("r", 2, 1), symbols("w", 2, 1)
    before, after = (complex_order.encode(array([p, p]), r, w, 0 * r) for p in (m, m + step))
    prove_equal(after[0] * before[1], after[1] * before[0])


@theorem(
    of=[complex_order.encode],
    sizes="all sequences",
    argument="what grows without bound is not bounded, so rho = 1, and a number of modulus 1 is e^{i arg z}",
    values="rho is 1 for bounded sequences",
)
def bounded_linear_offsets_are_waves():
    """Let going on by one multiply a feature by a fixed z != 0. Then g(p) = C z^p for all integers (`rsolve`) and, with
    rho = |z|, |g(p)|^2 = |C|^2 rho^(2p), where rho^p >= 1 + p (rho - 1) (Bernoulli, by induction), which is unbounded for
    rho > 1, as rho^-p is for rho < 1. So bounded on all integers it is |C| e^{i (p arg z + arg C)}, what encode gives."""
    z, n, first = sp.Symbol("z"), sp.Symbol("n", integer=True), sp.Function("y")
    premise(sp.rsolve(first(n + 1) - z * first(n), first(n), {first(0): 1}) == z**n, "y(n + 1) = z y(n), y(0) = 1")
    rho, phi, p, r, theta = symbol("rho", positive=True).e, *(symbol(name).e for name in ("phi", "p", "r", "theta"))
    g = lambda p: r * sp.exp(sp.I * theta) * rho**p * sp.exp(sp.I * phi * p)
    prove_equal([g(p + 1)], [rho * sp.exp(sp.I * phi) * g(p)], mention=[p])
    prove_equal([g(p) * sp.conjugate(g(p))], [r**2 * rho ** (2 * p)], mention=[p])
    power, s = symbol("power").e, symbol("s").e  # power stands for (1 + s)^p
    prove_equal([(1 + s) * power - (1 + (p + 1) * s)], [(1 + s) * (power - 1 - p * s) + p * s**2])
    got = complex_order.encode(array([p]), array([r]), array([phi]), array([theta]))
    prove_equal(got[0], [g(p).subs(rho, 1)], mention=[p])


@bounded_linear_offsets_are_waves.claim("It needs boundedness on all integers, or |z| = 1.")
def bounded_on_the_naturals():
    """Bounded for p >= 0 is enough: 2^-p, bounded by 1 there and with g(p + n) = 2^-n g(p), is one of these encodings."""
    g = complex_order.encode(np.arange(3), *(array([x]) for x in (1, symbol("w"), symbol("theta"))))[:, 0]
    prove_equal(g * np.conj(g), [sp.Rational(1, 4) ** p for p in range(3)])


@theorem(of=[], sizes="all real positions")
def linearity_is_needed():
    """Without linearity the offset property says nothing: for any injective g the map T_n = g o (+n) o g^-1 has g(p + n) =
    T_n(g(p)). Bounded on all integers and no wave: g = tanh, with T_n(x) = (x + tanh n) / (1 + x tanh n)."""
    p, n = symbol("p").e, symbol("n").e
    tanh = lambda x: sp.sinh(x) / sp.cosh(x)
    x, y = tanh(p), tanh(n)
    prove_equal([tanh(p + n)], [(x + y) / (1 + x * y)], mention=[p, n])
    prove_equal([1 - x**2], [1 / sp.cosh(p) ** 2])  # so |tanh| < 1


@linearity_is_needed.claim("An offset map exists for every injective encoding; that it is linear is the condition.")
def every_offset_map_is_linear():
    """T_n of tanh is a multiplication, by tanh(2n) / tanh(n), as it would be at p = n."""
    p, n = symbol("p").e, symbol("n").e
    tanh = lambda x: sp.sinh(x) / sp.cosh(x)
    prove_equal([tanh(p + n) * tanh(n)], [tanh(2 * n) * tanh(p)])


# scores


@theorem(of=[complex_order.scores], sizes="all batches, n, m, d")
def scores_pinned():
    """Entry (i, j) is sum_t Re(q_it) Re(k_jt) + Im(q_it) Im(k_jt), the inner product of pairs."""
    a, b, c, d = sized("a", B, N, D), sized("b", B, N, D), sized("c", B, M, D), sized("d", B, M, D)
    got = complex_order.scores(a + 1j * b, c + 1j * d)
    e, i, j, t = index(B), index(N), index(M), index(D)
    summand = a.at(e, i, t) * c.at(e, j, t) + b.at(e, i, t) * d.at(e, j, t)
    prove_equal([got.at(e, i, j)], [sp.Sum(summand, (t, 0, D - 1))])


@scores_pinned.control
def without_conjugate():
    """Re(q k^T)"""
    a, b, c, d = symbols("a", 1, 1), symbols("b", 1, 1), symbols("c", 1, 1), symbols("d", 1, 1)
    prove_equal(complex_order.scores(a + 1j * b, c + 1j * d), a * c - b * d)


@theorem(of=[complex_order.encode, complex_order.scores], sizes="all n, m, d, shifts")
def scores_are_relative_for_shared_frequencies():
    """Moving all tokens by s multiplies each product q conj(k) by e^{i (w_q - w_k) s}. With frequencies that all words share
    nothing changes; with frequencies of their own only words of equal frequencies see offsets alone."""
    here, there, s = sized("m", N), sized("n", M), symbol("s").e
    (r, w, theta), (rho, u, eta) = words("q"), words("k", M)
    term = lambda s, i, j, t: (
        complex_order.encode(here + s, r, w, theta).at(i, t)
        * sp.conjugate(complex_order.encode(there + s, rho, u, eta).at(j, t))
    )
    i, j, t = index(N), index(M), index(D)
    prove_equal([term(s, i, j, t)], [sp.exp(sp.I * (w.at(i, t) - u.at(j, t)) * s) * term(0, i, j, t)], mention=[s])
    shared = sized("w", D)
    word = complex_order.encode
    score = lambda s: complex_order.scores(word(here + s, r, shared, theta), word(there + s, rho, shared, eta))
    prove_equal(*entries(None, score(s), score(0)))


@scores_are_relative_for_shared_frequencies.control
def relative_for_words_with_frequencies():
    """The score of two words with frequencies of their own depends on the offset alone."""
    r, w, u, s, one = symbols("r", 1), symbols("w", 1), symbols("u", 1), symbol("s"), array([1])
    at = lambda p, w: complex_order.encode(array([p]), one, w, 0 * r)
    prove_equal(complex_order.scores(at(s, w), at(s, u)), complex_order.scores(at(0, w), at(0, u)))


@theorem(of=[complex_order.encode, complex_order.scores, rope.rotate_complex, rope.rotate, rope.tables], sizes="all n, m, d")
def rope_is_a_special_case():
    """RoPE is Complex Order with frequencies that all words share, and r e^{i theta} the pair x_2t + i x_2t+1: encode is
    rotate_complex, and scores is the product of rotated queries and keys."""
    shared, here, there = sized("w", H), sized("m", N), sized("n", M)

    def word(name, n):
        r, theta = sized(f"r_{name}", n, H), sized(f"theta_{name}", n, H)
        return r, theta, pairing.join(r * np.cos(theta), r * np.sin(theta), "interleaved")

    (r, theta, x), (rho, eta, y) = word("q", N), word("k", M)
    q, k = complex_order.encode(here, r, shared, theta), complex_order.encode(there, rho, shared, eta)
    prove_equal(*entries(None, rope.rotate_complex(x, here, shared), q))
    with summing("interleaved"):
        a, b = (rope.rotate(x, *rope.tables(p, shared), layout="interleaved") for x, p in ((x, here), (y, there)))
        prove_equal(*entries(None, complex_order.scores(q, k), a @ np.swapaxes(b, -1, -2)))


@rope_is_a_special_case.control
def rope_with_the_other_direction():
    """The pair is x_2t - i x_2t+1."""
    r, theta, w, m = symbols("r", 1), symbols("theta", 1), symbols("w", 1), array([symbol("m")])
    x = pairing.join(r * np.cos(theta), -r * np.sin(theta), "interleaved")[None]
    prove_equal(rope.rotate_complex(x, m, w), complex_order.encode(m, r, w, theta))
