"""RoPE in linear attention: rotated feature maps above the fraction, unrotated below."""

# Over budget: prefix sums for every width, and why the denominator is not rotated

import itertools

import numpy as np
import sympy as sp

from posref import pairing
from posref.rotary import linear_attention, rope
from proofs.kit import *
from proofs.rotary.rope import definition as turn
from proofs.rotary.value import lists, rotated

N, E, C, D, H = size("n"), size("e"), size("c"), size("d"), size("h")
WHOLE = [linear_attention.attend, rope.rotate, pairing.split, pairing.join]


def definition(q, k, v, positions, w, *, layout, phi, causal, m=sp, ahead=0, turn_below=False, all_below=False):
    """o_i = sum_j <R(i) phi(q_i), R(j) phi(k_j)> v_j / sum_j <phi(q_i), phi(k_j)> over all j, or j <= i if causal; lists of
    lists, one head. RoFormer Eq. (19). Mistakes: keys up to i + ahead, a denominator that turns, or counts all keys."""
    phi_q, phi_k = ([phi(x, m) for x in rows] for rows in (q, k))
    turned_q, turned_k = (
        [rotated(x, p, w, layout, m) for x, p in zip(rows, positions, strict=True)] for rows in (phi_q, phi_k)
    )
    below_q, below_k = (turned_q, turned_k) if turn_below else (phi_q, phi_k)
    out, every = [], range(len(k))
    for i in range(len(q)):
        keys = every[: i + 1 + ahead] if causal else every
        total = sum(_dot(below_q[i], below_k[j]) for j in (every if all_below else keys))
        weights = [_dot(turned_q[i], turned_k[j]) / total for j in keys]
        out.append([sum(weights[j] * v[j][c] for j in keys) for c in range(len(v[0]))])
    return out


def _dot(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


def attend(width, positions, layout, *, causal, v=None):
    """The shipped function for all e, n; phi(q) = f and phi(k) = g are free and of any width, also if q and k have another."""
    q, k, v = sized("q", E, N, C), sized("k", E, N, C), sized("v", E, N, D) if v is None else v
    f, g = sized("f", E, N, width), sized("g", E, N, width)
    cos, sin = rope.tables(positions, sized("w", width / 2))
    feature_map = lambda x: f if x is q else g
    return linear_attention.attend(q, k, v, cos, sin, layout=layout, feature_map=feature_map, causal=causal)


def tokens():
    """q, k, v of two tokens of width 2 and the tables of free positions."""
    return symbols("q", 2, 2), symbols("k", 2, 2), symbols("v", 2, 1), rope.tables(symbols("p", 2), symbols("w", 1))


def by_exp(q, k, v, tables, causal=False):
    """The shipped function with phi = exp, which equals elu + 1 below 0."""
    return linear_attention.attend(q, k, v, *tables, layout="half", feature_map=np.exp, causal=causal)


# the feature map


UNUSED = "equal where it is used, x <= 0; that the unused branch does not overflow is tested"
MINIMUM = "elu_plus_one: return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0 * x)))  ->  return np.where("


@theorem(
    of=[linear_attention.elu_plus_one],
    sizes="every shape, an entry at a time; every path",
    equivalent={
        MINIMUM + "x > 0, x + 1, np.exp(np.minimum(x, 1 * x)))": UNUSED,
        MINIMUM + "x > 0, x + 1, np.exp(np.minimum(x, 0 + x)))": UNUSED,
        MINIMUM + "x > 0, x + 1, np.exp(np.minimum(x, -1 * x)))": UNUSED,
        MINIMUM + "x >= 0, x + 1, np.exp(np.minimum(x, 0 * x)))": "both branches are 1 at 0",
    },
    values="the value and the slope at 0, and a number above 0",
)
def feature_map_pinned():
    """elu_plus_one(x) is x + 1 where x > 0 and e^x elsewhere: elu(x) + 1. It is positive, and 1 with slope 1 at 0."""
    x, more = symbols("x", 2), sp.Symbol("more", positive=True)
    for conditions, phi in all_paths(lambda: linear_attention.elu_plus_one(x)):
        for a, b in zip(lists(x), lists(phi), strict=True):
            (above,) = {so for asked, so in conditions if asked in (a > 0, a >= 0)}
            prove_equal([b], [a + 1 if above else sp.exp(a)])
            prove_that((b.subs(a, more) if above else b).is_positive, "it is positive")
    y = symbol("y").e
    for branch in (y + 1, sp.exp(y)):
        prove_equal([branch.subs(y, 0), branch.diff(y).subs(y, 0)], [1, 1])


@feature_map_pinned.claim("The feature map is elu(x) + 1.")
def relu_plus_one():
    """max(x, 0) + 1"""
    x = symbols("x", 1)
    for _, phi in all_paths(lambda: linear_attention.elu_plus_one(x)):
        for _, relu in all_paths(lambda: np.maximum(x, 0)):
            prove_equal(phi, relu + 1)


# what it is


@theorem(
    of=WHOLE,
    sizes="all e, n, c, d_v; width 2, 4, 6 of the feature map",
    equivalent={
        "attend: numerator = (turned_q[..., None, :] @ prefix)[..., 0, :]  ->  "
        "numerator = (turned_q[..., None, :] @ prefix)[..., -1, :]": "the axis has one entry"
    },
)
def pinned():
    """attend is RoFormer Eq. (19): the double sum over keys and features, all keys or those of rows j <= i, over a denominator
    without rotation. phi(q) and phi(k) are free."""
    p, v, e, i, j, c = sized("p", N), sized("v", E, N, D), index(E), index(N), index(N), index(D)
    for layout, causal, width in itertools.product(pairing.LAYOUTS, (True, False), (2, 4, 6)):
        w = [sized("w", width // 2).at(t) for t in range(width // 2)]
        f, g = ([sized(name, E, N, width).at(e, row, a) for a in range(width)] for name, row in (("f", i), ("g", j)))
        weight, keys = _dot(rotated(f, p.at(i), w, layout), rotated(g, p.at(j), w, layout)), (j, 0, i if causal else N - 1)
        expected = sp.Sum(weight * v.at(e, j, c), keys) / sp.Sum(_dot(f, g), keys)
        got = attend(sp.Integer(width), p, layout, causal=causal).at(e, i, c)
        prove_equal([got], [expected], mention=[p.at(i), *w])


@pinned.control
def strictly_causal():
    """A query does not see its own row, j < i (two tokens; the second sees the first alone)."""
    q, k, v, tables = tokens()
    out = by_exp(q, k, v, tables, causal=True)
    prove_equal(out[1], v[0])


@pinned.control
def denominator_of_all_keys():
    """When causal, the denominator still counts all keys (the first of two rows)."""
    q, k, v, tables = tokens()
    out = by_exp(q, k, v, tables, causal=True)
    f, g = np.exp(q), np.exp(k)
    prove_equal(out[0], (f[0] @ g[0]) * v[0] / (f[0] @ g[0] + f[0] @ g[1]))


@pinned.claim("RoFormer's denominator has no rotation.")
def denominator_rotated():
    """The denominator is the sum of the rotated weights (two tokens)."""
    q, k, v, tables = tokens()
    out = by_exp(q, k, v, tables)
    weights = rope.rotate(np.exp(q), *tables, layout="half") @ rope.rotate(np.exp(k), *tables, layout="half").T
    prove_equal(out, weights @ v / weights.sum(axis=-1, keepdims=True))


@pinned.claim("The feature map comes first, then the rotation.")
def rotated_before_the_feature_map():
    """phi(R(i) q_i) and phi(R(j) k_j) above the fraction (two tokens)."""
    q, k, v, tables = tokens()
    out = by_exp(q, k, v, tables)
    above = np.exp(rope.rotate(q, *tables, layout="half")) @ np.exp(rope.rotate(k, *tables, layout="half")).T
    prove_equal(out, above @ v / (np.exp(q) @ np.exp(k).T).sum(axis=-1, keepdims=True))


@theorem(of=WHOLE, sizes="all e, n, c, d, d_v", argument="finite sums over keys and over features change places")
def pinned_for_every_width():
    """The same for all widths of the feature map, as sum_t (R(i) phi(q_i))_t (S_i)_t over sum_t phi(q_i)_t (z_i)_t, where
    S_i = sum_j R(j) phi(k_j) v_j^T and z_i = sum_j phi(k_j)."""
    p, v, e, i, j, c = sized("p", N), sized("v", E, N, D), index(E), index(N), index(N), index(D)
    for layout, causal in itertools.product(pairing.LAYOUTS, (True, False)):
        (t, a, b), keys, w = pair(layout, 2 * H), (j, 0, i if causal else N - 1), sized("w", H)
        f, g = ([sized(name, E, N, 2 * H).at(e, row, member) for member in (a, b)] for name, row in (("f", i), ("g", j)))
        query, key = turn(*f, p.at(i), w.at(t)), turn(*g, p.at(j), w.at(t))
        state, z = [sp.Sum(x * v.at(e, j, c), keys) for x in key], [sp.Sum(x, keys) for x in g]
        with summing(layout):
            got = attend(2 * H, p, layout, causal=causal).at(e, i, c)
            expected = sp.Sum(_dot(query, state), (t, 0, H - 1)) / sp.Sum(_dot(f, z), (t, 0, H - 1))
            prove_equal([got], [expected], mention=[p.at(i), c])


@pinned_for_every_width.control
def state_without_rotation():
    """The prefix sum holds phi(k_j) v_j^T, unrotated (two tokens)."""
    q, k, v, tables = tokens()
    out = by_exp(q, k, v, tables)
    above = rope.rotate(np.exp(q), *tables, layout="half") @ np.exp(k).T
    prove_equal(out, above @ v / (np.exp(q) @ np.exp(k).T).sum(axis=-1, keepdims=True))


@theorem(of=WHOLE, sizes="n = 4, width 4, d_v = 2; n = 3 against the definition")
def causal_is_all_keys_so_far():
    """Row i of the causal output is the last row of attention over all keys of the first i + 1 tokens. Entry by entry both are
    the scalar definition of this file, from which the golden vectors come."""
    q, k, v, p, w = symbols("q", 4, 4), symbols("k", 4, 4), symbols("v", 4, 2), symbols("p", 4), symbols("w", 2)
    for layout in pairing.LAYOUTS:
        options = {"layout": layout, "feature_map": np.exp}
        causal = linear_attention.attend(q, k, v, *rope.tables(p, w), causal=True, **options)
        for n in range(1, 5):
            first = [x[:n] for x in (q, k, v, p)]
            so_far = linear_attention.attend(*first[:3], *rope.tables(first[3], w), causal=False, **options)
            prove_equal(causal[n - 1], so_far[-1])
            if n == 3:
                inputs = {"layout": layout, "phi": lambda x, m: [m.exp(y) for y in x]}
                prove_equal(causal[:3], definition(*map(lists, (*first, w)), causal=True, **inputs))
                prove_equal(so_far, definition(*map(lists, (*first, w)), causal=False, **inputs))


@causal_is_all_keys_so_far.control
def causal_changes_nothing():
    """The first row is that of attention over all keys."""
    q, k, v, tables = tokens()
    prove_equal(by_exp(q, k, v, tables, causal=True)[0], by_exp(q, k, v, tables)[0])


# what it does


@theorem(of=WHOLE, sizes="all e, n, c, d, d_v", values="the denominator is read for the names in it")
def relative():
    """A common shift of all positions changes nothing: the numerator sees offsets alone, the denominator no position at all."""
    p, shift = sized("p", N), symbol("s")
    for layout, causal in itertools.product(pairing.LAYOUTS, (True, False)):
        with summing(layout):
            moved, still = entries(None, *(attend(2 * H, p + s, layout, causal=causal) for s in (shift, 0)))
            prove_equal(moved, still, mention=[shift])
            for out in (*moved, *still):
                names = {str(atom.base) for atom in sp.fraction(out)[1].atoms(sp.Indexed)}
                prove_that(names == {"f", "g"}, "the denominator is made of phi(q) and phi(k)")


@relative.claim("A rotation before a nonlinear feature map is not relative.")
def relative_when_rotated_before_the_feature_map():
    """Rotating q and k before phi is relative as well (two tokens)."""
    q, k, v, _ = tokens()
    still = symbols("p", 2) * 0, symbols("w", 1)

    def output(positions):
        tables = rope.tables(positions, symbols("w", 1))
        turned = (rope.rotate(x, *tables, layout="half") for x in (q, k))
        return by_exp(*turned, v, rope.tables(*still))

    prove_equal(output(symbols("p", 2) + symbol("s")), output(symbols("p", 2)))


@relative.control
def blind_to_positions():
    """The output does not depend on positions at all: it is that without rotation (two tokens)."""
    q, k, v, tables = tokens()
    prove_equal(by_exp(q, k, v, tables), by_exp(q, k, v, rope.tables(symbols("p", 2) * 0, symbols("w", 1))))


# what the weights are


def weight_sums(offset):
    """sum_j of the weights of two rows, the output for values 1; phi is 1 everywhere, one pair with theta = 1."""
    ones, tables = array([[1, 1], [1, 1]]), rope.tables(array([0, offset]), array([1]))
    return linear_attention.attend(ones, ones, ones[:, :1], *tables, layout="half", feature_map=lambda x: x, causal=False)


@theorem(of=WHOLE, sizes="all n, d; witnesses at n = 2, d = 2, d_v = 1")
def weights_are_no_average():
    """Without rotation the weights of a row sum to 1. With it they need not: for two tokens with phi = (1, 1) at offset 3 they
    sum to (1 + cos 3) / 2 < 0.01, and the weight of the other token is cos 3 / 2 < -0.49."""
    for causal in (True, False):
        out = attend(2 * H, filled((N,), 0), "half", causal=causal, v=filled((E, N, D), 1))
        with summing("half"):
            prove_equal(*entries(None, out, filled((E, N, D), 1)))
    m = symbol("m")
    prove_equal(weight_sums(m)[1], [(1 + sp.cos(m.e)) / 2], mention=[m])
    premise(sp.Rational(1, 2) * (1 + sp.cos(3)) < sp.Rational(1, 100), "at offset 3 the sum is below 0.01")
    premise(sp.cos(3) / 2 < sp.Rational(-49, 100), "one weight is negative")


@weights_are_no_average.claim("With rotation in the numerator alone the weights of a row need not sum to 1.")
def weights_sum_to_one():
    """The weights of a row sum to 1, as after a softmax."""
    prove_equal(weight_sums(symbol("m"))[1], [1])


@weights_are_no_average.control
def sum_sees_nothing():
    """The sum of weights is at least blind to positions, as the denominator is."""
    m = symbol("m")
    prove_equal(weight_sums(m)[1], weight_sums(2 * m)[1])


@theorem(of=[rope.rotate, rope.tables, pairing.split, pairing.join], sizes="all n, d; witnesses at n = 1, d = 2")
def rotated_denominator():
    """sum_j <R(i) phi(q_i), R(j) phi(k_j)> is relative too, but for one key with phi(q) = phi(k) = f it is |f|^2 cos(theta m)
    at offset m, however positive f is: zero at a quarter turn, -|f|^2 at half a turn. Unrotated it is positive."""
    f, g, w, p, r, shift = sized("f", N, 2 * H), sized("g", N, 2 * H), sized("w", H), sized("p", N), sized("r", N), symbol("s")

    def below(s, layout):
        query, key = (rope.rotate(x, *rope.tables(at + s, w), layout=layout) for x, at in ((f, p), (g, r)))
        return (query @ key.T).sum(axis=-1)

    for layout in pairing.LAYOUTS:
        with summing(layout):
            prove_equal(*entries(None, below(shift, layout), below(0, layout)))
    f, g, m, theta = symbols("f", 1, 2, positive=True), symbols("g", 2, positive=True), symbol("m"), symbol("theta")
    key = rope.rotate(f, *rope.tables(array([m]), array([theta])), layout="half")
    prove_equal(f @ key.T, (f @ f.T) * np.cos(m * theta), mention=[m, theta])
    premise(sp.cos(sp.pi / 2) == 0 and sp.cos(sp.pi) == -1, "cos vanishes at a quarter turn and is -1 at half a turn")
    premise(sp.cos(3) < sp.Rational(-98, 100), "cos 3 < -0.98")
    premise((f[0] @ g).e.is_positive, "a sum of products of positive numbers is positive")


@rotated_denominator.claim("A rotated denominator can vanish; the paper's cannot.")
def rotated_denominator_is_that_of_the_paper():
    """For one key the rotated denominator is the unrotated one, hence positive."""
    f, g, m = symbols("f", 1, 2, positive=True), symbols("g", 1, 2, positive=True), symbol("m")
    prove_equal(f @ rope.rotate(g, *rope.tables(array([m]), array([1])), layout="half").T, f @ g.T)
