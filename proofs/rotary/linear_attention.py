"""RoPE in linear attention: rotated feature maps above the fraction, unrotated below."""

import itertools

import mpmath
import numpy as np
import sympy as sp

from posref import pairing
from posref.rotary import linear_attention, rope
from posref.vectors import MODELS
from proofs.kit import (
    all_paths,
    array,
    entries,
    filled,
    index,
    pair,
    prove_equal,
    prove_that,
    size,
    sized,
    summing,
    symbol,
    symbols,
    theorem,
)
from proofs.rotary.rope import definition as turn
from proofs.rotary.value import lists, rotated, turned
from proofs.vectors import case, exact, flag, painted, stored, terms

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


def elu_plus_one(x, m=sp):
    """elu(x) + 1 of a list of numbers: x + 1 above 0, e^x below. Katharopoulos et al., arXiv 2006.16236."""
    return [y + 1 if y > 0 else m.exp(y) for y in x]


def _dot(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


def attend(width, positions, layout, *, causal, v=None):
    """The shipped function for all e, n; phi(q) = f and phi(k) = g are free and of any width, whatever the width of q and k."""
    q, k, v = sized("q", E, N, C), sized("k", E, N, C), sized("v", E, N, D) if v is None else v
    f, g = sized("f", E, N, width), sized("g", E, N, width)
    cos, sin = rope.tables(positions, sized("w", width / 2))
    feature_map = lambda x: f if x is q else g
    return linear_attention.attend(q, k, v, cos, sin, layout=layout, feature_map=feature_map, causal=causal)


def tokens():
    """q, k, v of two tokens of width 2 and the tables of free positions."""
    return symbols("q", 2, 2), symbols("k", 2, 2), symbols("v", 2, 1), rope.tables(symbols("p", 2), symbols("w", 1))


def by_exp(q, k, v, tables, causal=False):
    """The shipped function with phi = exp, which elu + 1 is below 0."""
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
        MINIMUM + "x >= 0, x + 1, np.exp(np.minimum(x, 0 * x)))": "both branches are 1 at 0",
    },
)
def feature_map_pinned():
    """elu_plus_one(x) is x + 1 where x > 0 and e^x elsewhere: elu(x) + 1. It is positive, and 1 with slope 1 at 0."""
    x, more = symbols("x", 2), sp.Symbol("more", positive=True)
    for conditions, phi in all_paths(lambda: linear_attention.elu_plus_one(x)):
        for a, b in zip(lists(x), lists(phi), strict=True):
            above = dict(conditions).get(a > 0, dict(conditions).get(a >= 0))
            prove_that(above is not None, "the branches part at 0")
            prove_equal([b], [a + 1 if above else sp.exp(a)])
            prove_that((b.subs(a, more) if above else b).is_positive, "it is positive")
    y = symbol("y").e
    for branch in (y + 1, sp.exp(y)):
        prove_equal([branch.subs(y, 0), branch.diff(y).subs(y, 0)], [1, 1])


@feature_map_pinned.control
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


@pinned.control
def denominator_rotated():
    """The denominator is the sum of the rotated weights (two tokens)."""
    q, k, v, tables = tokens()
    out = by_exp(q, k, v, tables)
    weights = rope.rotate(np.exp(q), *tables, layout="half") @ rope.rotate(np.exp(k), *tables, layout="half").T
    prove_equal(out, weights @ v / weights.sum(axis=-1, keepdims=True))


@pinned.control
def rotated_before_the_feature_map():
    """phi(R(i) q_i) and phi(R(j) k_j) above the fraction (two tokens)."""
    q, k, v, tables = tokens()
    out = by_exp(q, k, v, tables)
    above = np.exp(rope.rotate(q, *tables, layout="half")) @ np.exp(rope.rotate(k, *tables, layout="half")).T
    prove_equal(out, above @ v / (np.exp(q) @ np.exp(k).T).sum(axis=-1, keepdims=True))


@theorem(of=WHOLE, sizes="all e, n, c, d, d_v")
def pinned_for_every_width():
    """The same for all widths of the feature map, as sum_t (R(i) phi(q_i))_t (S_i)_t over sum_t phi(q_i)_t (z_i)_t, where
    S_i = sum_j R(j) phi(k_j) v_j^T and z_i = sum_j phi(k_j); that finite sums change places is not checked here."""
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


@theorem(of=WHOLE, sizes="all e, n, c, d, d_v")
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


@relative.control
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


@theorem(of=WHOLE, sizes="all n, d; witnesses at n = 2")
def weights_are_no_average():
    """Without rotation the weights of a row sum to 1. With it they need not: for two tokens with phi = (1, 1) at offset 3 they
    sum to (1 + cos 3) / 2 < 0.01, and the weight of the other token is cos 3 / 2 < -0.49."""
    for causal in (True, False):
        out = attend(2 * H, filled((N,), 0), "half", causal=causal, v=filled((E, N, D), 1))
        with summing("half"):
            prove_equal(*entries(None, out, filled((E, N, D), 1)))
    m = symbol("m")
    prove_equal(weight_sums(m)[1], [(1 + sp.cos(m.e)) / 2], mention=[m])
    prove_that(sp.Rational(1, 2) * (1 + sp.cos(3)) < sp.Rational(1, 100), "at offset 3 the sum is below 0.01")
    prove_that(sp.cos(3) / 2 < sp.Rational(-49, 100), "one weight is negative")


@weights_are_no_average.control
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
    prove_that(sp.cos(sp.pi / 2) == 0 and sp.cos(sp.pi) == -1, "cos vanishes at a quarter turn and is -1 at half a turn")
    prove_that(sp.cos(3) < sp.Rational(-98, 100), "theta = 1 and offset 3 will do")
    prove_that((f[0] @ g).e.is_positive, "a sum of products of positive numbers is positive")


@rotated_denominator.control
def rotated_denominator_is_that_of_the_paper():
    """For one key the rotated denominator is the unrotated one, hence positive."""
    f, g, m = symbols("f", 1, 2, positive=True), symbols("g", 1, 2, positive=True), symbol("m")
    prove_equal(f @ rope.rotate(g, *rope.tables(array([m]), array([1])), layout="half").T, f @ g.T)


# golden vectors

SOURCES = (
    "Su et al., RoFormer, arXiv 2104.09864, section 3.3, Eq. (19)",
    "Feature map: Katharopoulos et al., Transformers are RNNs, arXiv 2006.16236",
)

CONVENTIONS = {
    "axes": "q and k are (batch, heads, n, dim), v is (batch, heads, n, d_v); positions broadcast to all axes but the last",
    "causal": "if true, row i sees the rows j <= i, whatever the positions",
    "feature map": "phi(x) = elu(x) + 1, before the rotation; no scale",
    "frequencies": "theta_t = base^(-2t/dim); all features turn, counter-clockwise by position * theta",
    "layout": "interleaved pairs features (2t, 2t+1), half pairs (t, t + dim/2)",
    "op attend": "sum_j <R(i) phi(q_i), R(j) phi(k_j)> v_j / sum_j <phi(q_i), phi(k_j)>",
    "op feature_map": "phi(x)",
}

FLAGS = {
    "denominator_rotated": flag(
        "rotated denominator", "The rotated weights are divided by their sum.", "The denominator can vanish or turn negative."
    ),
    "rotated_before_phi": flag(
        "phi(R x) instead of R phi(x)",
        "The feature map comes after the rotation.",
        "The weights depend on i and j, not on j - i.",
    ),
    "not_rotated": flag("no rotation", "All positions are 0.", "The model sees no order."),
    "other_layout": flag(
        "pairs of the other layout", "Features are paired (t, t + dim/2) instead of (2t, 2t+1), or the reverse.", "Garbage."
    ),
    "sign": flag("angle -m theta", "The sine has the wrong sign.", "Past and future change places in the weights."),
    "positions_ignored": flag(
        "0, 1, 2, .. instead of the positions given", "Positions are taken from the place in the sequence.", "Gaps are lost."
    ),
    "positions_shared_across_batch": flag(
        "positions of the first batch row", "Every row uses the positions of row 0.", "Batches of different texts go wrong."
    ),
    "causal_ignored": flag("all keys", "The sums run over all keys.", "Queries see the future."),
    "sees_one_ahead": flag("j <= i + 1", "The prefix sums are one key ahead.", "Every token sees the next."),
    "denominator_of_all_keys": flag(
        "z is no prefix sum", "Above the fraction the sums are causal, below they are not.", "Early rows are too small."
    ),
    "elu": flag("elu(x)", "The 1 is not added.", "The feature map is negative below 0."),
    "relu_plus_one": flag("max(x, 0) + 1", "Another positive map.", "Negative features are constant."),
}

OTHER = {"half": "interleaved", "interleaved": "half"}
ANY = "denominator_rotated rotated_before_phi not_rotated other_layout sign positions_ignored"
CAUSAL = {True: "causal_ignored sees_one_ahead denominator_of_all_keys", False: ""}


def vectors():
    x = [-2.0, -1.0, -0.25, 0.0, 0.5, 2.0]
    yield case(
        "linear_attention/elu-plus-one/x/feature_map",
        op="feature_map",
        params={},
        tensors={"x": x},
        expected=elu_plus_one(x, mpmath),
        cond=_feature_map(np.array(x))[1],
        mistakes={"elu": [y - 1 for y in elu_plus_one(x, mpmath)], "relu_plus_one": [max(y, 0.0) + 1 for y in x]},
    )
    batch = [[[0, 3, 5, 7, 9]], [[2, 11, 4, 40, 17]]]
    for layout, causal in itertools.product(OTHER, (True, False)):
        if (layout == "half") == causal:
            yield _attend("batch", (2, 3, 5, 6, 4), batch, layout, causal, ANY + " positions_shared_across_batch")
        yield _attend("far", (3, 5, 4, 6), [48040, 48043, 48050, 48053, 48056], layout, causal, ANY)


def _feature_map(x):
    """phi(x), stored; computed as e^x and x + 1, or as elu(x), stored, plus 1."""
    phi = np.array([elu_plus_one(row, mpmath) for row in x.reshape(-1, 1).tolist()], dtype=object).reshape(x.shape)
    return stored(phi, {"amp": terms(2, phi - 1) + terms(1, phi), "out": abs(phi - 1)})


def _summed(q, k, v, seen):
    """sum_j <q_i, k_j> v_j over the keys seen, in any order of the two sums; the sum over j or the weights may be stored."""
    (q, q_cond), (k, k_cond) = q, k
    over_keys = lambda q, k, v: np.where(seen, q @ np.swapaxes(k, -1, -2), 0) @ v
    cond = {name: over_keys(q_cond[name], abs(k), abs(v)) + over_keys(abs(q), k_cond[name], abs(v)) for name in q_cond}
    size = over_keys(abs(q), abs(k), abs(v))
    return stored(over_keys(q, k, v), cond | {"amp": cond["amp"] + terms(sum(k.shape[-2:]), size), "out": cond["out"] + size})


def _quotient(above, below):
    """above / below, where below is positive: |d(a/b)| <= (|da| + |a/b| |db|) / b / (1 - |db| / b)."""
    (a, a_cond), (b, b_cond) = above, below
    worst = np.max([(c.c_amp * b_cond["amp"] + c.c_out * b_cond["out"]) / b for c in MODELS.values()], axis=0)  # no phase below
    cond = {name: (a_cond[name] + abs(a / b) * b_cond[name]) / b / (1 - worst) for name in a_cond}
    return stored(a / b, cond | {"amp": cond["amp"] + terms(1, a / b)})


def _attend(probe, extents, positions, layout, causal, flags):
    *lead, n, dim, d_v = extents
    q, k, v = painted((*lead, n, dim), 1), painted((*lead, n, dim), 2), painted((*lead, n, d_v), 4)
    at = np.broadcast_to(positions, q.shape[:-1])
    theta = [mpmath.power(10000, -mpmath.mpf(2 * t) / dim) for t in range(dim // 2)]
    seen = np.tri(n, dtype=bool) | (not causal)

    def output(q=q, k=k, at=at, theta=theta, layout=layout, causal=causal, **mistake):
        out, options = np.empty(v.shape, dtype=object), {"layout": layout, "causal": causal, "phi": elu_plus_one, "m": mpmath}
        for head in np.ndindex(*lead):
            out[head] = definition(*(x[head].tolist() for x in (q, k, v, at)), theta, **options, **mistake)
        return out

    mistakes = {
        "denominator_rotated": lambda: output(turn_below=True),
        "rotated_before_phi": lambda: output(*(turned(exact(x), at, theta, layout)[0] for x in (q, k)), at * 0),
        "not_rotated": lambda: output(at=at * 0),
        "other_layout": lambda: output(layout=OTHER[layout]),
        "sign": lambda: output(at=-at),
        "positions_ignored": lambda: output(at=np.indices(at.shape)[-1]),
        "positions_shared_across_batch": lambda: output(at=np.broadcast_to(at[0], at.shape)),
        "causal_ignored": lambda: output(causal=False),
        "sees_one_ahead": lambda: output(ahead=1),
        "denominator_of_all_keys": lambda: output(all_below=True),
    }
    phi_q, phi_k = _feature_map(q), _feature_map(k)
    turned_q, turned_k = (turned(phi, at, theta, layout) for phi in (phi_q, phi_k))
    above, below = _summed(turned_q, turned_k, v, seen), _summed(phi_q, phi_k, np.ones((n, 1)), seen)
    return case(
        f"linear_attention/{layout}-{'causal' if causal else 'all-keys'}/d{dim}-b1e4/{probe}",
        op="attend",
        params={"dim": dim, "base": 10000.0, "layout": layout, "causal": causal},
        tensors={"q": q, "k": k, "v": v, "positions": np.array(positions)},
        expected=output(),
        cond=_quotient(above, below)[1],
        mistakes={name: mistakes[name]() for name in f"{flags} {CAUSAL[causal]}".split()},
    )
