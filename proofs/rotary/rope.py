"""RoPE: rotary position embedding."""

from itertools import pairwise

import mpmath
import numpy as np
import sympy as sp

from posref import attention, pairing
from posref.rotary import rope
from proofs.kit import (
    array,
    entries,
    filled,
    index,
    pair,
    prove_equal,
    prove_induction,
    prove_that,
    size,
    sized,
    summing,
    symbol,
    symbols,
    theorem,
)

N, H, REST = size("n"), size("h"), size("rest")
ROTATION = [rope.rotate, rope.tables, pairing.split, pairing.join]


def definition(a, b, position, frequency, m=sp):
    """A pair turned counter-clockwise by the angle position * frequency; RoFormer Eq. (13)."""
    angle = position * frequency
    return a * m.cos(angle) - b * m.sin(angle), a * m.sin(angle) + b * m.cos(angle)


def frequency(t, dim, base):
    """theta_t = base^(-2t/dim), t from 0; RoFormer Eq. (15)."""
    return 1 / base ** sp.Rational(2 * t, dim)


def turned(x, position, w, layout):
    """The shipped rotation, all rows of x at one position."""
    return rope.rotate(x, *rope.tables(filled((1,), position), w), layout=layout)


def dot(x, y):
    """Scores of all rows of x with all rows of y."""
    return x @ np.swapaxes(y, -1, -2)


# what it is


@theorem(of=ROTATION, sizes="all n, d")
def pinned():
    """Pair t of row i turns as defined by position m_i and frequency w_t, in both layouts."""
    x, w, m = sized("x", N, 2 * H), sized("w", H), sized("m", N)
    for layout in pairing.LAYOUTS:
        y = rope.rotate(x, *rope.tables(m, w), layout=layout)
        i, (t, a, b) = index(N), pair(layout, 2 * H)
        expected = definition(x.at(i, a), x.at(i, b), m.at(i), w.at(t))
        prove_equal([y.at(i, a), y.at(i, b)], expected, mention=[m.at(i), w.at(t)])


@pinned.control
def pinned_by_the_negative_angle():
    """Rotation by -m, which every relative theorem accepts."""
    x, w, m = symbols("x", 1, 2), symbols("w", 1), symbol("m")
    y = rope.rotate(x, *rope.tables(array([m]), w), layout="half")
    prove_equal(y[0], definition(x[0, 0].e, x[0, 1].e, -m.e, w[0].e))


@pinned.control
def pinned_in_the_other_layout():
    """The layouts are one map."""
    x, w, m = symbols("x", 1, 4), symbols("w", 2), array([symbol("m")])
    cos, sin = rope.tables(m, w)
    prove_equal(rope.rotate(x, cos, sin, layout="half"), rope.rotate(x, cos, sin, layout="interleaved"))


@theorem(of=[rope.rotate], sizes="all n, d, rotary_dim")
def partial():
    """With rotary_dim the first features turn by themselves and the rest pass."""
    x, c, s = sized("x", N, 2 * H + REST), sized("c", N, H), sized("s", N, H)
    for layout in pairing.LAYOUTS:
        y = rope.rotate(x, c, s, layout=layout, rotary_dim=2 * H)
        prove_equal(*entries(layout, y[..., : 2 * H], rope.rotate(x[..., : 2 * H], c, s, layout=layout)))
        prove_equal(*entries(None, y[..., 2 * H :], x[..., 2 * H :]))


@partial.control
def partial_as_the_tail():
    """The last features turn and the first pass, as where a rotary part is appended (DeepSeek)."""
    x, c, s = symbols("x", 1, 4), symbols("c", 1, 1), symbols("s", 1, 1)
    tail = np.concatenate([x[:, :2], rope.rotate(x[:, 2:], c, s, layout="half")], axis=-1)
    prove_equal(rope.rotate(x, c, s, layout="half", rotary_dim=2), tail)


@theorem(of=[rope.frequencies], sizes="d = 2, 4, 8, 12, 128")
def frequencies_pinned():
    """frequencies(dim, base) is base^(-2t/dim), t = 0 .. dim/2 - 1, for every base."""
    base = symbol("base", positive=True)
    for dim in (2, 4, 8, 12, 128):
        expected = [frequency(t, dim, base.e) for t in range(dim // 2)]
        prove_equal(rope.frequencies(sp.Integer(dim), base), expected, mention=[base] if dim > 2 else [])


@frequencies_pinned.control
def frequencies_with_exponent_t_over_d():
    """The factor 2 of the exponent is left out."""
    base = symbol("base", positive=True)
    prove_equal(rope.frequencies(8, base), [base.e ** sp.Rational(-t, 8) for t in range(4)])


# what it does


@theorem(of=ROTATION, sizes="all d")
def relative():
    """<R(m) q, R(n) k> = <q, R(n - m) k> for all positions, frequencies and vectors: the score sees the offset alone."""
    q, k, w, m, n = sized("q", 1, 2 * H), sized("k", 1, 2 * H), sized("w", H), symbol("m"), symbol("n")
    for layout in pairing.LAYOUTS:
        with summing(layout):
            score = dot(turned(q, m, w, layout), turned(k, n, w, layout))
            prove_equal(*entries(None, score, dot(q, turned(k, n - m, w, layout))), mention=[m, n])


@relative.control
def relative_with_the_query_unturned():
    """<q, R(n) k> = <q, R(n - m) k>"""
    q, k, w, m, n = symbols("q", 1, 4), symbols("k", 1, 4), symbols("w", 2), symbol("m"), symbol("n")
    at = lambda p: rope.rotate(k, *rope.tables(array([p]), w), layout="half")
    prove_equal(dot(q, at(n)), dot(q, at(n - m)))


@relative.control
def relative_with_two_schedules():
    """Queries and keys turned with different frequencies, as after a change of base with old keys in the cache."""
    q, k, w, u = symbols("q", 1, 2), symbols("k", 1, 2), symbols("w", 1), symbols("u", 1)
    m, n, shift = symbol("m"), symbol("n"), symbol("s")
    at = lambda x, p, f: rope.rotate(x, *rope.tables(array([p]), f), layout="half")
    prove_equal(dot(at(q, m, w), at(k, n, u)), dot(at(q, m + shift, w), at(k, n + shift, u)))


@theorem(of=ROTATION, sizes="all d")
def not_trivial():
    """The score at offset n - m is sum_t |q_t| |k_t| cos-like in w_t (n - m): it changes with n, so the identity is refuted."""
    q, k, w, m, n = sized("q", 1, 2 * H), sized("k", 1, 2 * H), sized("w", H), symbol("m"), symbol("n")
    for layout in pairing.LAYOUTS:
        with summing(layout):
            score = dot(turned(q, m, w, layout), turned(k, n, w, layout)).at(0, 0)
            t, a, b = pair(layout, 2 * H)
            q1, q2, k1, k2 = q.at(0, a), q.at(0, b), k.at(0, a), k.at(0, b)
            angle = (n.e - m.e) * w.at(t)
            summand = (q1 * k1 + q2 * k2) * sp.cos(angle) + (q2 * k1 - q1 * k2) * sp.sin(angle)
            prove_equal([score], [sp.Sum(summand, (t, 0, H - 1))], mention=[m, n])


@not_trivial.control
def not_trivial_for_the_identity():
    """The score does not depend on positions."""
    q, k, w, m, n = symbols("q", 1, 2), symbols("k", 1, 2), symbols("w", 1), symbol("m"), symbol("n")
    at = lambda x, p: rope.rotate(x, *rope.tables(array([p]), w), layout="half")
    prove_equal(dot(at(q, m), at(k, n)), dot(q, k))


@theorem(of=ROTATION, sizes="all d")
def group():
    """R(m) R(n) = R(m + n) and R(0) = 1."""
    x, w, m, n = sized("x", 1, 2 * H), sized("w", H), symbol("m"), symbol("n")
    for layout in pairing.LAYOUTS:
        twice = turned(turned(x, n, w, layout), m, w, layout)
        prove_equal(*entries(layout, twice, turned(x, m + n, w, layout)), mention=[m, n])
        prove_equal(*entries(layout, turned(x, 0, w, layout), x))


@group.control
def group_of_differences():
    """R(m) R(n) = R(m - n)"""
    x, w, m, n = symbols("x", 1, 2), symbols("w", 1), symbol("m"), symbol("n")
    at = lambda x, p: rope.rotate(x, *rope.tables(array([p]), w), layout="half")
    prove_equal(at(at(x, n), m), at(x, m - n))


@theorem(of=[*ROTATION, rope.gradient], sizes="all d")
def adjoint():
    """<g, R(m) x> = <gradient(g), x>: the gradient is the rotation by -m. With g = R(m) x: lengths are kept."""
    g, x, w, m = sized("g", 1, 2 * H), sized("x", 1, 2 * H), sized("w", H), symbol("m")
    tables = rope.tables(filled((1,), m), w)
    for layout in pairing.LAYOUTS:
        with summing(layout):
            back = rope.gradient(g, *tables, layout=layout)
            prove_equal(*entries(None, dot(g, turned(x, m, w, layout)), dot(back, x)), mention=[m])
            prove_equal(*entries(layout, back, turned(g, -m, w, layout)), mention=[m])
            y = turned(x, m, w, layout)
            prove_equal(*entries(None, dot(y, y), dot(x, x)))


@adjoint.control
def adjoint_by_the_same_angle():
    """The gradient is turned like the input."""
    g, c, s = symbols("g", 1, 2), symbols("c", 1, 1), symbols("s", 1, 1)
    prove_equal(rope.gradient(g, c, s, layout="half"), rope.rotate(g, c, s, layout="half"))


@theorem(of=[rope.gradient, rope.rotate], sizes="d = 4, rotary_dim = 2, 4")
def gradient_by_calculus():
    """gradient(g) is d<g, rotate(x)>/dx, by symbolic differentiation, with the tables free."""
    x, g = symbols("x", 1, 4), symbols("g", 1, 4)
    for layout in pairing.LAYOUTS:
        for rotary_dim in (2, 4):
            c, s = symbols("c", 1, rotary_dim // 2), symbols("s", 1, rotary_dim // 2)
            loss = dot(g, rope.rotate(x, c, s, layout=layout, rotary_dim=rotary_dim))[0, 0].e
            prove_equal(rope.gradient(g, c, s, layout=layout, rotary_dim=rotary_dim)[0], [loss.diff(v.e) for v in x[0]])


@gradient_by_calculus.control
def gradient_with_the_product_turned():
    """g cos - turned(g) sin and g cos - turned(g sin) agree even if the halves of a wide table differ (Paddle #74716)."""
    g, c, s = symbols("g", 2), symbols("c", 2), symbols("s", 2)  # tables of width d whose two halves are free
    prove_equal([g[0] * c[0] + g[1] * s[0], g[1] * c[1] - g[0] * s[1]], [g[0] * c[0] + g[1] * s[1], g[1] * c[1] - g[0] * s[0]])


# its other forms


@theorem(of=[rope.matrix, pairing.indices, *ROTATION], sizes="d = 2, 4, 8")
def matrix_form():
    """matrix(m) x is rotate(x); R^T R = 1; and R(m) = exp(m B), that is dR/dm = B R and R(0) = 1, with a constant B^T = -B."""
    for dim in (2, 4, 8):
        x, w, m = symbols("x", 1, dim), symbols("w", dim // 2), symbol("m")
        for layout in pairing.LAYOUTS:
            turn = rope.matrix(m, w, layout=layout)
            prove_equal(x @ turn.T, rope.rotate(x, *rope.tables(array([m]), w), layout=layout), mention=[m])
            prove_equal(turn.T @ turn, np.eye(dim, dtype=int))
            slope = sp.Matrix(dim, dim, [e.e.diff(m.e) if hasattr(e, "e") else 0 for e in turn.ravel()])
            generator = slope.subs(m.e, 0)
            prove_equal(slope.tolist(), array(generator.tolist()) @ turn)
            prove_equal(generator.T.tolist(), (-generator).tolist())
            prove_equal(rope.matrix(0, w, layout=layout), np.eye(dim, dtype=int))


@matrix_form.control
def matrix_transposed():
    """Acting on row vectors without the transpose."""
    x, w, m = symbols("x", 1, 2), symbols("w", 1), symbol("m")
    prove_equal(x @ rope.matrix(m, w, layout="half"), rope.rotate(x, *rope.tables(array([m]), w), layout="half"))


@theorem(of=[rope.rotate_complex, pairing.split], sizes="all n, d")
def complex_form():
    """Entry t of rotate_complex(x) is the turned pair a + ib, that is (x_2t + i x_2t+1) e^{i m w_t}."""
    x, w, m = sized("x", N, 2 * H), sized("w", H), sized("m", N)
    z = rope.rotate_complex(x, m, w)
    i, (t, a, b) = index(N), pair("interleaved", 2 * H)
    first, second = definition(x.at(i, a), x.at(i, b), m.at(i), w.at(t))
    prove_equal([z.at(i, t)], [first + sp.I * second], mention=[m.at(i)])


@complex_form.control
def complex_conjugate():
    """e^{-i m w}"""
    x, w, m = symbols("x", 1, 2), symbols("w", 1), symbol("m")
    first, second = definition(x[0, 0].e, x[0, 1].e, -m.e, w[0].e)
    prove_equal(rope.rotate_complex(x, array([m]), w), [[first + sp.I * second]])


@theorem(of=[rope.rotate_efficient, rope.rotate, pairing.split, pairing.join], sizes="all n, d")
def efficient_form():
    """x * cos + turned(x) * sin with doubled tables is rotate(x): RoFormer Eq. (34) and transformers' rotate_half."""
    x, c, s = sized("x", N, 2 * H), sized("c", N, H), sized("s", N, H)
    for layout in pairing.LAYOUTS:
        prove_equal(
            *entries(layout, rope.rotate_efficient(x, c, s, layout=layout), rope.rotate(x, c, s, layout=layout)),
        )


@efficient_form.control
def efficient_form_as_printed():
    """The last two rows are (-x_{d-1}, x_d), as a slide deck prints them."""
    x, m, w = symbols("x", 4), symbol("m"), symbols("w", 2)
    (c,), (s,) = rope.tables(array([m]), w)
    printed = [x[0] * c[0] - x[1] * s[0], x[1] * c[0] + x[0] * s[0], x[2] * c[1] - x[2] * s[1], x[3] * c[1] + x[3] * s[1]]
    prove_equal(printed, rope.rotate(x[None], c[None], s[None], layout="interleaved")[0])


@efficient_form.control
def printed_form_keeps_lengths():
    """The printed map is at least a rotation."""
    x, m, w = symbols("x", 2), symbol("m"), symbol("w")
    c, s = np.cos(m * w), np.sin(m * w)
    y = array([x[0] * c - x[0] * s, x[1] * c + x[1] * s])
    prove_equal(y @ y, x @ x)


@theorem(of=[attention.attend, attention.scores, attention.softmax, *ROTATION], sizes="all n, d")
def attention_is_translation_invariant():
    """Softmax attention on turned queries and keys does not change when all positions move by s."""
    q, k, v, p, w = sized("q", N, 2 * H), sized("k", N, 2 * H), sized("v", N, 2 * H), sized("p", N), sized("w", H)
    scale, shift = symbol("scale"), symbol("s")

    def output(positions, layout):
        tables = rope.tables(positions, w)
        return attention.attend(*(rope.rotate(x, *tables, layout=layout) for x in (q, k)), v, scale=scale)

    for layout in pairing.LAYOUTS:
        with summing(layout):
            prove_equal(*entries(None, output(p + shift, layout), output(p, layout)), mention=[shift])


@attention_is_translation_invariant.control
def invariant_when_queries_alone_move():
    """Moving the queries and not the keys changes nothing (two tokens)."""
    q, k, v, w = symbols("q", 1, 2), symbols("k", 2, 2), array([[0], [1]]), symbols("w", 1)
    m, n, shift = symbol("m"), symbols("n", 2), symbol("s")
    at = lambda x, p: rope.rotate(x, *rope.tables(p, w), layout="half")
    weights = lambda p: np.exp(dot(at(q, array([p])), at(k, n)))
    output = lambda p: (weights(p) / weights(p).sum(axis=-1, keepdims=True)) @ v
    prove_equal(output(m), output(m + shift))


# what is true of every relative encoding


@theorem(of=[rope.matrix], sizes="all orders; d = 4")
def one_parameter_groups():
    """exp(mB)^T exp(nB) = exp((n - m)B) for B^T = -B: by Pascal's rule order r is (n - m)^r; R(m) has such a B."""
    m, n = symbol("m", integer=True).e, symbol("n", integer=True).e
    r, j, choose = symbol("r").e, symbol("j").e, sp.Function("C", real=True)
    x, y = symbol("x", positive=True).e, symbol("y", positive=True).e
    # T(r) = sum_j C(r, j) x^j y^(r-j): the power x^j of (x + y) T(r) meets C(r, j) + C(r, j-1), which Pascal's rule makes
    # C(r+1, j); so T(r+1) = (x + y) T(r), an identity of polynomials, hence true for x = -m and y = n
    before, here = choose(r, j - 1) * x ** (j - 1) * y ** (r - j + 1), choose(r, j) * x**j * y ** (r - j)
    prove_equal([x * before + y * here], [(choose(r, j) + choose(r, j - 1)) * x**j * y ** (r + 1 - j)], mention=[r, j, x, y])
    for order in range(8):
        expansion = sum(sp.binomial(order, i) * (-m) ** i * n ** (order - i) for i in range(order + 1))
        prove_equal([expansion], [(n - m) ** order], mention=[m, n] if order else [])
    w = symbols("w", 2)
    product = rope.matrix(symbol("m"), w, layout="half").T @ rope.matrix(symbol("n"), w, layout="half")
    prove_equal(product, rope.matrix(symbol("n") - symbol("m"), w, layout="half"), mention=[symbol("m"), symbol("n")])


@one_parameter_groups.control
def without_antisymmetry():
    """exp(mB)^T exp(nB) = exp((n - m)B) for the symmetric B = 1."""
    m, n = symbol("m").e, symbol("n").e
    prove_equal([sp.exp(m) * sp.exp(n)], [sp.exp(n - m)])


@one_parameter_groups.control
def powers_without_the_shift_of_the_index():
    """The power x^j of (x + y) T(r) meets 2 C(r, j)."""
    r, j, choose = symbol("r").e, symbol("j").e, sp.Function("C", real=True)
    x, y = symbol("x", positive=True).e, symbol("y", positive=True).e
    before, here = choose(r, j - 1) * x ** (j - 1) * y ** (r - j + 1), choose(r, j) * x**j * y ** (r - j)
    prove_equal([x * before + y * here], [2 * choose(r, j) * x**j * y ** (r + 1 - j)])


@theorem(of=[], sizes="all d; Gram step at d = 6")
def classification():
    """If <f(q, m), g(k, n)> depends on q, k and n - m alone for integers m, n, and f(x, 0) = g(x, 0) = x, then g(k, n) = G^n k
    and f(q, m) = G^{-T m} q for one invertible G. Linearity is derived: |f(x) - sum x_i f(e_i)|^2 = 0 whenever f keeps inner
    products; then G(-m) G(n) = G(n - m). G orthogonal is RoPE in a rotated basis, up to directions of +-1; G a shear is a bias
    linear in n - m (ALiBi). Checked here: the Gram identity and the shear; the rest is the argument above."""
    x, dim = symbols("x", 6), 6
    gram = np.eye(dim, dtype=int)  # <f(e_i), f(e_j)> = <e_i, e_j>, and <f(x), f(e_i)> = <x, e_i> = x_i
    prove_equal([x @ x - 2 * sum(x[i] * x[i] for i in range(dim)) + x @ gram @ x], [0])
    q, k, m, n = symbols("q", 2), symbols("k", 2), symbol("m"), symbol("n")
    shear = lambda p: array([[1, p], [0, 1]])
    score = (shear(-m).T @ q) @ (shear(n) @ k)
    prove_equal([score], [q @ k + (n - m) * q[0] * k[1]], mention=[m, n])


@classification.control
def shear_on_both_sides():
    """The shear without the inverse transpose on the query is relative."""
    q, k, m, n, s = symbols("q", 2), symbols("k", 2), symbol("m"), symbol("n"), symbol("s")
    shear = lambda p: array([[1, p], [0, 1]])
    prove_equal([(shear(m + s) @ q) @ (shear(n + s) @ k)], [(shear(m) @ q) @ (shear(n) @ k)])


@theorem(of=[], sizes="d = 2")
def rotation_is_not_forced_on_integers():
    """RoFormer's functional equation does not force e^{i m theta} on integer positions: A(m) = swap^m, a reflection, satisfies
    <A(m) q, A(n) k> = <q, A(n - m) k> too. It is forced with continuity in m, or for det A(1) = +1."""
    q, k = symbols("q", 2), symbols("k", 2)
    for m in range(4):
        for n in range(4):
            turn = lambda x, p: x if p % 2 == 0 else x[::-1]
            prove_equal([turn(q, m) @ turn(k, n)], [q @ turn(k, n - m)])
    prove_that(sp.Matrix([[0, 1], [1, 0]]).det() == -1, "the swap is a reflection, no rotation")


@rotation_is_not_forced_on_integers.control
def a_projection_satisfies_it_too():
    """A(m) = (first feature alone) for m != 0."""
    q, k = symbols("q", 2), symbols("k", 2)
    project = lambda x, p: x if p == 0 else x * np.array([1, 0])
    prove_equal([project(q, 1) @ project(k, 1)], [q @ project(k, 0)])


# long-term decay


@theorem(of=[], sizes="all d")
def abel_summation():
    """sum_{i<N} h_i (S_{i+1} - S_i) = h_N S_N - h_0 S_0 - sum_{i<N} S_{i+1} (h_{i+1} - h_i), whence RoFormer's bound
    |score| <= max |h_{i+1} - h_i| sum |S_{i+1}|, which is a bound and not the score."""
    n = sp.Symbol("N", integer=True, nonnegative=True)
    h, s = sp.Function("h", real=True), sp.Function("S", real=True)
    term = lambda i: h(i) * (s(i + 1) - s(i)) + s(i + 1) * (h(i + 1) - h(i))
    prove_induction(term, lambda i: h(i) * s(i) - h(0) * s(0), n)


@abel_summation.control
def abel_with_one_index():
    """S_i in the place of S_{i+1} on the right."""
    n = sp.Symbol("N", integer=True, nonnegative=True)
    h, s = sp.Function("h", real=True), sp.Function("S", real=True)
    prove_induction(lambda i: h(i) * (s(i + 1) - s(i)) + s(i) * (h(i + 1) - h(i)), lambda i: h(i) * s(i) - h(0) * s(0), n)


@theorem(of=ROTATION, sizes="all d")
def no_decay():
    """Scores need not decay: with q = R(r) k the score at offset r exceeds that at any other offset s, by
    2 sum_t |k_t|^2 sin^2(w_t (r - s) / 2). So "RoPE has long-term decay" is no theorem about scores."""
    k, w, r, s = sized("k", 1, 2 * H), sized("w", H), symbol("r"), symbol("s")
    for layout in pairing.LAYOUTS:
        with summing(layout):
            q = turned(k, r, w, layout)
            gap = dot(q, turned(k, r, w, layout)).at(0, 0) - dot(q, turned(k, s, w, layout)).at(0, 0)
            t, a, b = pair(layout, 2 * H)
            summand = 2 * (k.at(0, a) ** 2 + k.at(0, b) ** 2) * sp.sin(w.at(t) * (r.e - s.e) / 2) ** 2
            prove_equal([gap], [sp.Sum(summand, (t, 0, H - 1))], mention=[r, s])


@no_decay.control
def the_bound_is_monotone():
    """The average of |S_i| over i, the part of the bound with the offset in it, falls with the offset (d = 128, 0 to 40)."""
    with mpmath.workdps(30):
        w = [mpmath.mpf(10000) ** (-mpmath.mpf(t) / 64) for t in range(64)]
        bound = []
        for offset in range(41):
            partial_sums = np.cumsum([mpmath.expj(offset * x) for x in w])
            bound.append(sum(abs(s) for s in partial_sums) / 64)
    prove_that(all(b < a for a, b in pairwise(bound)), "the bound falls at every offset")
