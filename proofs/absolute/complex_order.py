"""Complex Order: every feature of a word is a wave in its position."""

import mpmath
import numpy as np
import sympy as sp

from posref import pairing
from posref.absolute import complex_order
from posref.rotary import rope
from proofs.kit import (
    array,
    entries,
    index,
    prove_equal,
    prove_that,
    size,
    sized,
    summing,
    symbol,
    symbols,
    theorem,
)
from proofs.vectors import case, dot, flag, growth, painted, stored, terms

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


@pinned.control
def phase_left_out():
    """r e^{i w m}, the released code, is the paper's formula."""
    m, r, w, theta = symbol("m"), *(symbols(name, 1) for name in ("r", "w", "theta"))
    real, imaginary = definition(m.e, r[0].e, w[0].e, 0)
    prove_equal(complex_order.encode(array([m]), r, w, theta)[0], [real + sp.I * imaginary])


@pinned.control
def second_entry_after_an_ellipsis():
    """The vector is (1, .., 2, .., d), as a survey's Eq. (12) prints it: feature 1 and then feature 3."""
    m, r, w, theta = symbol("m"), *(symbols(name, 4) for name in ("r", "w", "theta"))
    g = complex_order.encode(array([m]), r, w, theta)[0]
    prove_equal(g, g[[0, 2, 1, 3]])


@theorem(of=[complex_order.released_frequencies], sizes="d = 1, 2, 4, 8, every word")
def released_frequencies_pinned():
    """w_t = v / 10000^(2t/d) with t up to d - 1, so that the last frequencies are below v / 10^7."""
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


@theorem(of=[complex_order.encode], sizes="all sequences")
def bounded_linear_offsets_are_waves():
    """Let going on by one multiply a feature by a fixed z != 0. Then g(p) = C z^p for all integers (`rsolve`) and, with
    rho = |z|, |g(p)|^2 = |C|^2 rho^(2p), where rho^p >= 1 + p (rho - 1) (Bernoulli, by induction), which is unbounded for
    rho > 1, as rho^-p is for rho < 1. So bounded on all integers it is |C| e^{i (p arg z + arg C)}, what encode gives."""
    z, n, first = sp.Symbol("z"), sp.Symbol("n", integer=True), sp.Function("y")
    prove_that(sp.rsolve(first(n + 1) - z * first(n), first(n), {first(0): 1}) == z**n, "y(n + 1) = z y(n), y(0) = 1")
    rho, phi, p, r, theta = symbol("rho", positive=True).e, *(symbol(name).e for name in ("phi", "p", "r", "theta"))
    g = lambda p: r * sp.exp(sp.I * theta) * rho**p * sp.exp(sp.I * phi * p)
    prove_equal([g(p + 1)], [rho * sp.exp(sp.I * phi) * g(p)], mention=[p])
    prove_equal([g(p) * sp.conjugate(g(p))], [r**2 * rho ** (2 * p)], mention=[p])
    power, s = symbol("power").e, symbol("s").e  # power stands for (1 + s)^p
    prove_equal([(1 + s) * power - (1 + (p + 1) * s)], [(1 + s) * (power - 1 - p * s) + p * s**2])
    got = complex_order.encode(array([p]), array([r]), array([phi]), array([theta]))
    prove_equal(got[0], [g(p).subs(rho, 1)], mention=[p])


@bounded_linear_offsets_are_waves.control
def bounded_on_the_naturals():
    """Bounded for p >= 0 is enough: 2^-p, bounded by 1 there and with g(p + n) = 2^-n g(p), has a constant modulus."""
    prove_equal([sp.Rational(1, 2) ** p for p in range(3)], [1, 1, 1])


@theorem(of=[], sizes="all real positions")
def linearity_is_needed():
    """Without linearity the offset property says nothing: for any injective g the map T_n = g o (+n) o g^-1 has g(p + n) =
    T_n(g(p)). Bounded on all integers and no wave: g = tanh, with T_n(x) = (x + tanh n) / (1 + x tanh n)."""
    p, n = symbol("p").e, symbol("n").e
    tanh = lambda x: sp.sinh(x) / sp.cosh(x)
    x, y = tanh(p), tanh(n)
    prove_equal([tanh(p + n)], [(x + y) / (1 + x * y)], mention=[p, n])
    prove_equal([1 - x**2], [1 / sp.cosh(p) ** 2])  # so |tanh| < 1


@linearity_is_needed.control
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
    """Moving all tokens by s multiplies each term q conj(k) by e^{i (w_q - w_k) s}. With frequencies that all words share
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
    score = lambda s: complex_order.scores(
        complex_order.encode(here + s, r, shared, theta), complex_order.encode(there + s, rho, shared, eta)
    )
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


# golden vectors

SOURCES = (
    "Wang et al., Encoding Word Order in Complex Embeddings, arXiv 1912.12333, section 2",
    "iclr-complex-order/complex-order 4c4ec24, TEXT CLASSIFICATION/CNN/model_cnn/Complex_order.py: no phase",
)

CONVENTIONS = {
    "axes": "amplitude, frequency and phase are (batch, n, d), positions (batch, n)",
    "parts": "complex results have a last axis of two, real and imaginary part",
    "op encode": "r e^{i (w m + theta)}",
    "op scores": "Re(q conj(k)^T) of encoded queries and keys: (batch, n_query, n_key)",
    "op released_frequencies": "v / 10000^(2t/dim), t = 0 .. dim - 1",
}

FLAGS = {
    "no_phase": flag("theta = 0", "The phase is left out.", "All words start at the positive real axis."),
    "phase_sign": flag("w m - theta", "The phase has the wrong sign.", "Words are mirrored at position 0."),
    "sign": flag("e^{-i (w m + theta)}", "The wave runs backwards.", "Imaginary parts have the wrong sign."),
    "starts_at_one": flag("positions from 1", "Positions are one too large.", "Token 0 is turned."),
    "shared_frequency": flag("w of the first word", "All words turn alike.", "RoPE in the place of Complex Order."),
    "turns": flag("2 pi w m", "The frequency is taken in turns.", "Other waves."),
    "half_schedule": flag("10000^(t/dim)", "t runs over pairs.", "Frequencies are too high."),
    "no_conjugate": flag("Re(q k^T)", "The keys are not conjugated.", "Scores see the sum of positions."),
    "imaginary": flag("Im(q conj(k)^T)", "The imaginary part is taken.", "Other scores."),
    "modulus": flag("|q conj(k)^T|", "The modulus is taken.", "Scores are never negative."),
}
POSITIONS = [[0, 1, 2, 7, 300], [5, 0, 48047, 9, 1]]
ANY = "sign starts_at_one shared_frequency turns"


def vectors():
    yield _encode("paper", POSITIONS, 3, ANY + " no_phase phase_sign")
    yield _encode("released", POSITIONS, 2, ANY, phased=False)
    yield _scores("paper", shared=False)
    yield _scores("shared", shared=True)
    v, dim = [0, 1, 7, 30521], 6
    rows = lambda factor: [[word / mpmath.mpf(10000) ** (mpmath.mpf(factor * t) / dim) for t in range(dim)] for word in v]
    yield case(
        f"complex_order/released/d{dim}/frequencies",
        op="released_frequencies",
        params={"dim": dim},
        tensors={"words": v},
        expected=rows(2),
        cond={
            "phase": [
                [x * growth(mpmath.mpf(10000) ** (-mpmath.mpf(2 * t) / dim)) for t, x in enumerate(row)] for row in rows(2)
            ]
        },
        mistakes={"half_schedule": rows(1)},
    )


def _word(lead, tag, phased=True):
    """Amplitude, frequency and phase, as mpf."""
    exact = np.frompyfunc(mpmath.mpf, 1, 1)
    parts = [painted(lead, tag), painted(lead, tag + 1) / 4, painted(lead, tag + 7) if phased else np.zeros(lead)]
    return parts, [exact(part) for part in parts]


def _waves(positions, r, w, theta):
    """The two parts, on a last axis."""
    m = np.array(positions, dtype=object)[..., None]
    parts = np.frompyfunc(lambda m, r, w, theta: definition(m, r, w, theta, mpmath), 4, 2)(m, r, w, theta)
    return np.stack(parts, axis=-1)


def _sensitivity(positions, r, w, theta):
    """amp: cosine (2) and product (1); phase: the angle after a product and a sum."""
    m = np.array(positions, dtype=object)[..., None]
    phase = abs(r) * (abs(w * m) + abs(w * m + theta))
    return {"amp": terms(3, _waves(positions, r, w, theta)), "phase": np.stack([phase, phase], axis=-1)}


def _wrong(name, positions, r, w, theta):
    at = np.array(positions)
    if name == "sign":
        return _waves(positions, r, w, theta) * np.array([1, -1])
    changes = {
        "no_phase": {"theta": 0 * theta},
        "phase_sign": {"theta": -theta},
        "starts_at_one": {"positions": (at + 1).astype(object)},
        "shared_frequency": {"w": np.broadcast_to(w[..., :1, :], w.shape)},
        "turns": {"w": 2 * mpmath.pi * w},
    }
    return _waves(**{"positions": at.astype(object), "r": r, "w": w, "theta": theta} | changes[name])


def _encode(variant, positions, dim, mistakes, *, phased=True):
    (r, w, theta), word = _word((2, 5, dim), 1, phased)
    return case(
        f"complex_order/{variant}/d{dim}/encode",
        op="encode",
        params={},
        tensors={"positions": positions, "amplitude": r, "frequency": w, "phase": theta},
        expected=_waves(positions, *word),
        cond=_sensitivity(positions, *word),
        mistakes={name: _wrong(name, positions, *word) for name in mistakes.split()},
        comment="" if phased else "The released code has no phase.",
    )


def _scores(variant, *, shared):
    here, there = [[3, 40], [0, 7]], [[0, 3, 50], [11, 1, 40]]
    (r, w, theta), q_word = _word((2, 2, 4), 1)
    (rho, u, eta), k_word = _word((2, 3, 4), 8)
    if shared:
        w, u = (np.broadcast_to(painted((4,), 6), part.shape) for part in (w, u))
        q_word[1], k_word[1] = (np.frompyfunc(mpmath.mpf, 1, 1)(part) for part in (w, u))
    q, k = _waves(here, *q_word), _waves(there, *k_word)
    flat = lambda x: x.reshape(*x.shape[:-2], -1)
    pairs = [
        stored(flat(x), {name: flat(part) for name, part in _sensitivity(at, *word).items()})
        for x, at, word in ((q, here, q_word), (k, there, k_word))
    ]
    expected, cond = dot(*pairs)
    product = lambda x, y: x @ np.swapaxes(y, -1, -2)
    imaginary = product(q[..., 1], k[..., 0]) - product(q[..., 0], k[..., 1])
    mistakes = {
        "no_conjugate": product(q[..., 0], k[..., 0]) - product(q[..., 1], k[..., 1]),
        "imaginary": imaginary,
        "modulus": np.frompyfunc(mpmath.hypot, 2, 1)(expected, imaginary),
    }
    return case(
        f"complex_order/{variant}/d4/scores",
        op="scores",
        params={},
        tensors={
            "q_positions": here,
            "q_amplitude": r,
            "q_frequency": w,
            "q_phase": theta,
            "k_positions": there,
            "k_amplitude": rho,
            "k_frequency": u,
            "k_phase": eta,
        },
        expected=expected,
        cond=cond,
        mistakes=mistakes,
        comment="All words share the frequencies, as in RoPE." if shared else "",
    )
