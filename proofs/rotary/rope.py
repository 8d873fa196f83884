"""RoPE: rotary position embedding."""

# Over budget: all other systems are compared with this system

from itertools import pairwise

import numpy as np
import sympy as sp

from posref import attention, pairing
from posref.offsets import offsets
from posref.relative import alibi
from posref.rotary import rope
from proofs.kit import *

DEFAULTS = {"base": 10000.0}  # Vaswani et al., section 3.5

N, D, H, REST = size("n"), size("d"), size("h"), size("rest")
ROTATION = [rope.rotate, rope.tables, pairing.split, pairing.join]


def definition(a, b, position, frequency, m=sp):
    """A pair rotated counter-clockwise by the angle position * frequency; RoFormer Eq. (13)."""
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


@pinned.claim("RoPE turns counter-clockwise; -m has the same scores for reversed offsets.")
def pinned_by_the_negative_angle():
    """Rotation by -m, which every relative theorem accepts."""
    x, w, m = symbols("x", 1, 2), symbols("w", 1), symbol("m")
    y = rope.rotate(x, *rope.tables(array([m]), w), layout="half")
    prove_equal(y[0], definition(x[0, 0].e, x[0, 1].e, -m.e, w[0].e))


@pinned.claim("The layouts pair other features; converting needs a permutation.")
def pinned_in_the_other_layout():
    """The layouts are one map."""
    x, w, m = symbols("x", 1, 4), symbols("w", 2), array([symbol("m")])
    cos, sin = rope.tables(m, w)
    prove_equal(rope.rotate(x, cos, sin, layout="half"), rope.rotate(x, cos, sin, layout="interleaved"))


@theorem(of=[rope.rotate], sizes="all n, d, rotary_dim", as_written="runs")
def partial():
    """With rotary_dim the first features turn by themselves and the rest pass."""
    x, c, s = sized("x", N, 2 * H + REST), sized("c", N, H), sized("s", N, H)
    for layout in pairing.LAYOUTS:
        y = rope.rotate(x, c, s, layout=layout, rotary_dim=2 * H)
        prove_equal(*entries(layout, y[..., : 2 * H], rope.rotate(x[..., : 2 * H], c, s, layout=layout)))
        prove_equal(*entries(None, y[..., 2 * H :], x[..., 2 * H :]))


@partial.claim("The first rotary_dim features turn and the rest pass.")
def partial_as_the_tail():
    """The last features turn and the first pass, as where a rotary part is appended (DeepSeek)."""
    x, c, s = symbols("x", 1, 4), symbols("c", 1, 1), symbols("s", 1, 1)
    tail = np.concatenate([x[:, :2], rope.rotate(x[:, 2:], c, s, layout="half")], axis=-1)
    prove_equal(rope.rotate(x, c, s, layout="half", rotary_dim=2), tail)


@theorem(of=ROTATION, sizes="all d")
def transposed_sign():
    """<R(-m) q, R(-n) k> = <R(n) q, R(m) k>, the score of the reversed offset; and R(-m) = S R(m) S, where S exchanges the
    members of every pair: queries and keys so exchanged have with one sign the scores of the other."""
    q, k, w, m, n = sized("q", 1, 2 * H), sized("k", 1, 2 * H), sized("w", H), symbol("m"), symbol("n")
    for layout in pairing.LAYOUTS:
        exchanged = lambda x, layout=layout: pairing.join(*pairing.split(x, layout)[::-1], layout)
        through = exchanged(turned(exchanged(q), m, w, layout))
        prove_equal(*entries(layout, turned(q, -m, w, layout), through), mention=[m])
        with summing(layout):
            score = dot(turned(q, -m, w, layout), turned(k, -n, w, layout))
            prove_equal(*entries(None, score, dot(turned(q, n, w, layout), turned(k, m, w, layout))), mention=[m, n])


@transposed_sign.claim("They are those of the reversed offset: the same only where every pair of q and k is parallel.")
def the_sign_does_not_show_in_scores():
    """nanochat's sign is a matter of taste: scores see the offset alone, and so are the same."""
    q, k, w, m, n = symbols("q", 1, 2), symbols("k", 1, 2), symbols("w", 1), symbol("m"), symbol("n")
    at = lambda x, p: rope.rotate(x, *rope.tables(array([p]), w), layout="half")
    prove_equal(dot(at(q, -m), at(k, -n)), dot(at(q, m), at(k, n)))


@theorem(of=[rope.frequencies], sizes="d = 2, 4, 8, 12, 128")
def frequencies_pinned():
    """frequencies(dim, base) is base^(-2t/dim), t = 0 .. dim/2 - 1, for every base."""
    base = symbol("base", positive=True)
    for dim in (2, 4, 8, 12, 128):
        expected = [frequency(t, dim, base.e) for t in range(dim // 2)]
        prove_equal(rope.frequencies(sp.Integer(dim), base), expected, mention=[base] if dim > 2 else [])


frequencies_pinned.control_by("rope.inv_freq", "exponent_halved", dim=8, base=symbol("base", positive=True))


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


@relative.claim("Queries and keys need the same frequencies: a cache is bound to its base.")
def relative_with_two_schedules():
    """Queries and keys turned with different frequencies, as after a change of base with old keys in the cache."""
    q, k, w, u = symbols("q", 1, 2), symbols("k", 1, 2), symbols("w", 1), symbols("u", 1)
    m, n, shift = symbol("m"), symbol("n"), symbol("s")
    at = lambda x, p, f: rope.rotate(x, *rope.tables(array([p]), f), layout="half")
    prove_equal(dot(at(q, m, w), at(k, n, u)), dot(at(q, m + shift, w), at(k, n + shift, u)))


@theorem(of=ROTATION, sizes="all d")
def not_trivial():
    """The score is sum_t (q_a k_a + q_b k_b) cos w_t (n - m) + (q_b k_a - q_a k_b) sin w_t (n - m) over the pairs (a, b): the
    positions occur in it, so the identity, which is relative too, is excluded."""
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


ONE_PAIR = {"g": symbols("g", 1, 2), "positions": symbols("m", 1), "dim": 2, "base": symbol("base", positive=True)}
adjoint.control_by("rope.gradient", "gradient_forward", **ONE_PAIR, layout="half")


@theorem(
    of=[rope.gradient, rope.rotate],
    sizes="d = 4, rotary_dim = 2, 4",
    as_written="the code computes the derivative as it is written",
)
def gradient_by_calculus():
    """gradient(g) is d<g, rotate(x)>/dx, by symbolic differentiation, with the tables free."""
    x, g = symbols("x", 1, 4), symbols("g", 1, 4)
    for layout in pairing.LAYOUTS:
        for rotary_dim in (2, 4):
            c, s = symbols("c", 1, rotary_dim // 2), symbols("s", 1, rotary_dim // 2)
            loss = dot(g, rope.rotate(x, c, s, layout=layout, rotary_dim=rotary_dim))[0, 0].e
            prove_equal(rope.gradient(g, c, s, layout=layout, rotary_dim=rotary_dim)[0], [loss.diff(v.e) for v in x[0]])


@gradient_by_calculus.claim("They agree only if both halves of the wide table are equal.")
def gradient_with_the_product_turned():
    """g cos - turned(g) sin and g cos - turned(g sin) agree even if the halves of a wide table differ (Paddle #74716)."""
    x, g, c, s = symbols("x", 1, 2), symbols("g", 1, 2), symbols("c", 2, 1), symbols("s", 2, 1)  # row 0 is the first half
    turn = lambda half, member: rope.rotate(x, c[half : half + 1], s[half : half + 1], layout="half")[0, member]
    back = lambda half: rope.gradient(g, c[half : half + 1], s[half : half + 1], layout="half")[0, half]
    loss = (g[0, 0] * turn(0, 0) + g[0, 1] * turn(1, 1)).e
    prove_equal([back(0), back(1)], [loss.diff(v.e) for v in x[0]])


# its other forms


@theorem(
    of=[rope.matrix, pairing.indices, *ROTATION],
    sizes="matrix(m) x at d = 2, 4, 8, 16, 80; the rest at d = 2, 4, 8",
    argument="dR/dm = B R with R(0) = 1 has one solution, exp(m B)",
    equivalent={
        "matrix: turn = np.zeros_like(cos, shape=(dim, dim))  ->  "
        "turn = np.zeros_like(sin, shape=(dim, dim))": "cos and sin have one dtype"
    },
    values="a derivative at 0",
)
def matrix_form():
    """matrix(m) x is rotate(x); R^T R = 1; and R(m) = exp(m B), that is dR/dm = B R and R(0) = 1, with a constant B^T = -B."""
    for dim in (2, 4, 8, 16, 80):
        x, w, m = symbols("x", 1, dim), symbols("w", dim // 2), symbol("m")
        for layout in pairing.LAYOUTS:
            turn = rope.matrix(m, w, layout=layout)
            prove_equal(x @ turn.T, rope.rotate(x, *rope.tables(array([m]), w), layout=layout), mention=[m])
            if dim > 8:
                continue
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


@theorem(of=[rope.rotate_efficient, rope.rotate, pairing.split, pairing.join], sizes="all n, d", as_written="runs")
def efficient_form():
    """x * cos + turned(x) * sin with doubled tables is rotate(x): RoFormer Eq. (34) and transformers' rotate_half."""
    x, c, s = sized("x", N, 2 * H), sized("c", N, H), sized("s", N, H)
    for layout in pairing.LAYOUTS:
        prove_equal(*entries(layout, rope.rotate_efficient(x, c, s, layout=layout), rope.rotate(x, c, s, layout=layout)))


@efficient_form.claim("The last two rows are (-x_d, x_{d-1}).")
def efficient_form_as_printed():
    """The last two rows are (-x_{d-1}, x_d), as a slide deck prints them."""
    x, m, w = symbols("x", 4), symbol("m"), symbols("w", 2)
    (c,), (s,) = rope.tables(array([m]), w)
    printed = [x[0] * c[0] - x[1] * s[0], x[1] * c[0] + x[0] * s[0], x[2] * c[1] - x[2] * s[1], x[3] * c[1] + x[3] * s[1]]
    prove_equal(printed, rope.rotate(x[None], c[None], s[None], layout="interleaved")[0])


@efficient_form.claim("With (-x_{d-1}, x_d) the map is no rotation and changes lengths.")
def printed_form_keeps_lengths():
    """The printed map is at least a rotation."""
    x, m, w = symbols("x", 2), symbol("m"), symbol("w")
    c, s = np.cos(m * w), np.sin(m * w)
    y, turned = array([x[0] * c - x[0] * s, x[1] * c + x[1] * s]), rope.rotate(x, array([c]), array([s]), layout="half")
    prove_equal([y @ y], [turned @ turned])


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


@attention_is_translation_invariant.claim("Queries and keys count from one origin.")
def invariant_when_queries_alone_move():
    """Moving the queries and not the keys changes nothing (two tokens)."""
    q, k, v, w = symbols("q", 1, 2), symbols("k", 2, 2), array([[0], [1]]), symbols("w", 1)
    m, n, shift = symbol("m"), symbols("n", 2), symbol("s")
    at = lambda x, p: rope.rotate(x, *rope.tables(p, w), layout="half")
    weights = lambda p: np.exp(dot(at(q, array([p])), at(k, n)))
    output = lambda p: (weights(p) / weights(p).sum(axis=-1, keepdims=True)) @ v
    prove_equal(output(m), output(m + shift))


# what is true of every relative encoding


@theorem(
    of=[],
    sizes="the step for all orders; orders 0 to 7 written out",
    argument="Pascal's rule makes C(r + 1, j) of C(r, j) + C(r, j - 1), and exponential series multiply by Cauchy's product",
)
def exponentials_multiply():
    """e^(mB)^T e^(nB) = e^((n - m)B) for any B^T = -B. Order r of the product is sum_j C(r, j) (-m)^j n^(r-j) B^r, which is
    (n - m)^r B^r: times x + y the power x^j meets C(r, j) + C(r, j - 1), for x = -m and y = n."""
    m, n = symbol("m", integer=True).e, symbol("n", integer=True).e
    r, j, choose = symbol("r").e, symbol("j").e, sp.Function("C", real=True)
    x, y = symbol("x", positive=True).e, symbol("y", positive=True).e
    before, here = choose(r, j - 1) * x ** (j - 1) * y ** (r - j + 1), choose(r, j) * x**j * y ** (r - j)
    prove_equal([x * before + y * here], [(choose(r, j) + choose(r, j - 1)) * x**j * y ** (r + 1 - j)], mention=[r, j, x, y])
    for order in range(8):
        expansion = sum(sp.binomial(order, i) * (-m) ** i * n ** (order - i) for i in range(order + 1))
        prove_equal([expansion], [(n - m) ** order], mention=[m, n] if order else [])


@exponentials_multiply.control
def powers_without_the_shift_of_the_index():
    """The power x^j of (x + y) T(r) meets 2 C(r, j)."""
    r, j, choose = symbol("r").e, symbol("j").e, sp.Function("C", real=True)
    x, y = symbol("x", positive=True).e, symbol("y", positive=True).e
    before, here = choose(r, j - 1) * x ** (j - 1) * y ** (r - j + 1), choose(r, j) * x**j * y ** (r - j)
    prove_equal([x * before + y * here], [2 * choose(r, j) * x**j * y ** (r + 1 - j)])


@theorem(of=[rope.matrix], sizes="d = 2, 4, 16")
def one_parameter_groups():
    """R(m)^T R(n) = R(n - m) for the shipped matrix, whose generator is antisymmetric (matrix_form), in both layouts."""
    m, n = symbol("m"), symbol("n")
    for layout in pairing.LAYOUTS:
        for pairs in (1, 2, 8):
            to_m, to_n, to_key = (rope.matrix(p, symbols("w", pairs), layout=layout) for p in (m, n, n - m))
            prove_equal(to_m.T @ to_n, to_key, mention=[m, n])


@one_parameter_groups.control
def without_the_transpose():
    """R(m) R(n) = R(n - m)"""
    m, n, w = symbol("m"), symbol("n"), symbols("w", 1)
    turn = lambda p: rope.matrix(p, w, layout="half")
    prove_equal(turn(m) @ turn(n), turn(n - m))


@theorem(
    of=[*ROTATION, alibi.bias, offsets],
    sizes="all d; the shear for two features",
    argument="F is f(y, -o), by the hypothesis used three times; so each g(., o) is linear, B(o), and f(., -o) is its adjoint; "
    "<q, B(n - m) k> = <f(q, m), g(k, n)> = <q, B(-m) B(n) k>, so B(n - m) = B(-m) B(n), and by induction B(n) = B(1)^n",
)
def classification():
    """Let f and g be any functions for which <f(q, m), g(k, n)> depends on q, k and n - m alone, for all integers m and n, and
    f(x, 0) = g(x, 0) = x. Then g(k, n) = G^n k and f(q, m) = G^{-T m} q for one invertible linear G. Nothing else is assumed of
    f and g, neither that they are linear nor that they are equal: for y = g(a k + b k', o) - a g(k, o) - b g(k', o) the
    hypothesis makes |y|^2 equal to <F, a k + b k'> - a <F, k> - b <F, k'> with one vector F, which is 0. RoPE is G = R(1);
    signed ALiBi is a shear, at d = 2."""
    free, key, other, a, b = sized("F", 1, D), sized("k", 1, D), sized("l", 1, D), symbol("a"), symbol("b")
    prove_equal(*entries(None, dot(free, a * key + b * other), a * dot(free, key) + b * dot(free, other)), mention=[a, b])
    x, w, n = sized("x", 1, 2 * H), sized("w", H), symbol("n")
    for layout in pairing.LAYOUTS:
        prove_equal(*entries(layout, turned(x, n + 1, w, layout), turned(turned(x, n, w, layout), 1, w, layout)), mention=[n])
        prove_equal(*entries(layout, turned(x, 0, w, layout), x))
    q, k, m, slope = symbols("q", 2), symbols("k", 2), symbol("m"), symbols("slope", 1)
    power = lambda p: array([[1, slope[0] * p], [0, 1]])  # G^p, the p-th power of the shear
    prove_equal(power(m) @ power(n), power(m + n), mention=[m, n])
    bias = alibi.bias(array([m]), array([n]), slope, form="signed")[0, 0, 0]
    prove_equal([(power(-m).T @ q) @ (power(n) @ k)], [q @ k + bias * q[0] * k[1]], mention=[m, n])


@classification.control
def shear_on_both_sides():
    """The shear on both sides, without the inverse transpose on the query, is ALiBi as well."""
    q, k, m, n, slope = symbols("q", 2), symbols("k", 2), symbol("m"), symbol("n"), symbols("slope", 1)
    power = lambda p: array([[1, slope[0] * p], [0, 1]])
    bias = alibi.bias(array([m]), array([n]), slope, form="signed")[0, 0, 0]
    prove_equal([(power(m) @ q) @ (power(n) @ k)], [q @ k + bias * q[0] * k[1]])


@classification.control
def opposite_turns():
    """Turning q by m and k by -n is relative too: f and g need not be adjoint."""
    q, k, w, m, n, s = symbols("q", 1, 2), symbols("k", 1, 2), symbols("w", 1), symbol("m"), symbol("n"), symbol("s")
    at = lambda x, p: rope.rotate(x, *rope.tables(array([p]), w), layout="half")
    prove_equal(dot(at(q, m + s), at(k, -n - s)), dot(at(q, m), at(k, -n)))


@theorem(
    of=[rope.matrix, pairing.indices],
    sizes="d = 2",
    argument="swap^m depends on m modulo 2 alone, so the cases m, n = 0, 1 and n - m modulo 2 are all",
)
def rotation_is_not_forced_on_integers():
    """RoFormer's functional equation does not force e^{i m theta} on integer positions: A(m) = swap^m satisfies
    <A(m) q, A(n) k> = <q, A(n - m) k> too, and is no rotation: R(m) has determinant 1 for every frequency, the swap -1."""
    q, k, m, w = symbols("q", 2), symbols("k", 2), symbol("m"), symbols("w", 1)
    swap = lambda x, p: x if p % 2 == 0 else x[::-1]
    for i in range(2):
        for j in range(2):
            prove_equal([swap(q, i) @ swap(k, j)], [q @ swap(k, j - i)])
    (a, b), (c, d) = rope.matrix(m, w, layout="half")
    prove_equal([a * d - b * c], [1])
    (a, b), (c, d) = [swap(row, 1) for row in np.eye(2, dtype=int)]
    premise(a * d - b * c == -1, "the swap is a reflection")


@rotation_is_not_forced_on_integers.claim("The maps have to be invertible.")
def a_projection_satisfies_it_too():
    """One member of every turned pair is enough: <P R(m) q, P R(n) k> depends on n - m alone for P = diag(1, 0)."""
    q, k, w, m, n, s = symbols("q", 2), symbols("k", 2), symbols("w", 1), symbol("m"), symbol("n"), symbol("s")
    first = lambda x, p: (rope.matrix(p, w, layout="half") @ x)[0]
    prove_equal([first(q, m + s) * first(k, n + s)], [first(q, m) * first(k, n)])


# long-term decay


def partial_sums(offset, w):
    """S_0 = 0, S_1, ..: the sums of e^{i w_t offset} over the first pairs. RoFormer, section 3.4.3."""
    sums = [sp.Integer(0)]
    for frequency in w:
        sums.append(sums[-1] + sp.exp(sp.I * frequency.e * offset))
    return sums


def by_parts(q, k, sums):
    """Re sum_t -(h_{t+1} - h_t) S_t with h_t = (q_2t + i q_2t+1) (k_2t - i k_2t+1), and h = 0 after the last pair."""
    member = lambda x, t, sign: x[2 * t].e + sign * sp.I * x[2 * t + 1].e
    h = [member(q, t, 1) * member(k, t, -1) for t in range(len(q) // 2)] + [sp.Integer(0)]
    z = sum(-s * (later - now) for s, now, later in zip(sums, h, h[1:], strict=False))
    return (z + sp.conjugate(z)) / 2


@theorem(
    of=ROTATION,
    sizes="all numbers of terms; the shipped score at d = 2, 4, 8",
    argument="|score| <= max |h_{t+1} - h_t| sum |S_{t+1}| is the triangle inequality, applied to the sum",
)
def abel_summation():
    """sum_{i<N} h_i (S_{i+1} - S_i) = h_N S_N - h_0 S_0 - sum_{i<N} S_{i+1} (h_{i+1} - h_i) for every N. So the score is
    Re sum_t S_{t+1} (h_t - h_{t+1}), where S_t sums e^{i w_s (m - n)} over s < t and h_t is (q_2t + i q_2t+1) times the
    conjugate of (k_2t + i k_2t+1): whence RoFormer's bound, which bounds the score and is not the score."""
    count = sp.Symbol("N", integer=True, nonnegative=True)
    h, s = sp.Function("h", real=True), sp.Function("S", real=True)
    term = h(count) * (s(count + 1) - s(count)) + s(count + 1) * (h(count + 1) - h(count))
    prove_induction(term, h(count) * s(count) - h(0) * s(0), count)
    m, n = symbol("m"), symbol("n")
    for dim in (2, 4, 8):
        q, k, w = symbols("q", dim), symbols("k", dim), symbols("w", dim // 2)
        at = lambda x, p, w=w: rope.rotate(x[None], *rope.tables(array([p]), w), layout="interleaved")[0]
        prove_equal([at(q, m) @ at(k, n)], [by_parts(q, k, partial_sums(m.e - n.e, w)[1:])], mention=[m, n])


@abel_summation.control
def abel_with_one_index():
    """S_t in the place of S_{t+1}."""
    q, k, w, m, n = symbols("q", 4), symbols("k", 4), symbols("w", 2), symbol("m"), symbol("n")
    at = lambda x, p: rope.rotate(x[None], *rope.tables(array([p]), w), layout="interleaved")[0]
    prove_equal([at(q, m) @ at(k, n)], [by_parts(q, k, partial_sums(m.e - n.e, w))])


@theorem(of=ROTATION, sizes="all d")
def no_decay():
    """Scores need not decay: with q = R(r) k the score at offset r is at least that at any offset s, by
    2 sum_t |k_t|^2 sin^2(w_t (r - s) / 2); they are equal only where every pair with k_t != 0 has made whole turns. So the
    long-term decay that RoFormer names (section 3.4.3) is no theorem about scores."""
    k, w, r, s = sized("k", 1, 2 * H), sized("w", H), symbol("r"), symbol("s")
    for layout in pairing.LAYOUTS:
        with summing(layout):
            q = turned(k, r, w, layout)
            gap = dot(q, turned(k, r, w, layout)).at(0, 0) - dot(q, turned(k, s, w, layout)).at(0, 0)
            t, a, b = pair(layout, 2 * H)
            summand = 2 * (k.at(0, a) ** 2 + k.at(0, b) ** 2) * sp.sin(w.at(t) * (r.e - s.e) / 2) ** 2
            prove_equal([gap], [sp.Sum(summand, (t, 0, H - 1))], mention=[r, s])


@no_decay.claim("The average of |S_i| falls on the whole and rises at many offsets.")
def the_bound_is_monotone():
    """The average of |S_i| over i, the part of the bound with the offset in it, falls with the offset (d = 128, 0 to 40)."""
    cos, sin = rope.tables(np.arange(41), rope.frequencies(128))
    bound = np.hypot(cos.cumsum(axis=-1), sin.cumsum(axis=-1)).mean(axis=-1)
    rise = next(k for k, (a, b) in enumerate(pairwise(bound)) if b >= a)
    witness = f"offset {rise}: {bound[rise]:.4f}, offset {rise + 1}: {bound[rise + 1]:.4f}"
    prove_that(bound[rise + 1] < bound[rise], counterexample=witness)
