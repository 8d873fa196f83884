"""RoPE on values: rotated values, turned back by the query's angle or not."""

import itertools
from functools import partial

import mpmath
import numpy as np
import sympy as sp

from posref import attention, pairing
from posref.rotary import rope, value
from proofs.attention import definition as softmax
from proofs.kit import (
    all_paths,
    array,
    entries,
    expression,
    filled,
    index,
    pair,
    prove_equal,
    size,
    sized,
    summing,
    symbol,
    symbols,
    theorem,
)
from proofs.rotary.rope import definition as turn
from proofs.vectors import attend, case, exact, flag, growth, painted, stored

N, M, E, H = size("n"), size("m"), size("e"), size("h")
WHOLE = [value.attend, attention.attend, attention.scores, attention.softmax, rope.rotate, rope.tables]


def definition(q, k, v, positions, key_positions, w, *, layout, scale, undo, mask=None, m=sp):
    """o_i = sum_j a_ij R(j - i) v_j, or R(j) v_j if not undone, where a_ij is the softmax of scale <R(i) q_i, R(j) k_j>; lists
    of lists, one head. Su, kexue.fm/archives/8130, last section; undone: labml.ai, transformers/rope/value_pe."""
    out = []
    for row, (x, i) in enumerate(zip(q, positions, strict=True)):
        dots = [_dot(rotated(x, i, w, layout, m), rotated(y, j, w, layout, m)) for y, j in zip(k, key_positions, strict=True)]
        weights = softmax([scale * s for s in dots], None if mask is None else mask[row], m)
        turned = [rotated(y, j - i if undo else j, w, layout, m) for y, j in zip(v, key_positions, strict=True)]
        out.append([_dot(weights, column) for column in zip(*turned, strict=True)])
    return out


def rotated(x, position, w, layout, m=sp):
    """R(position) x for a list of features."""
    half, y = len(w), list(x)
    for t in range(half):
        a, b = (2 * t, 2 * t + 1) if layout == "interleaved" else (t, t + half)
        y[a], y[b] = turn(x[a], x[b], position, w[t], m)
    return y


def _dot(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


def lists(x):
    """Nested lists of expressions."""
    return expression(x) if np.ndim(x) == 0 else [lists(row) for row in x]


HERE, THERE, SHIFT = symbol("i"), symbol("j"), symbol("s")
V, W = lists(symbols("v", 4)), lists(symbols("w", 2))


def one_key(*, undo, shift=0, layout="half", there=THERE):
    """The output of a query at i and its only key at j, both moved by `shift`; the value is V, the frequencies W."""
    q, k, v, w = symbols("q", 1, 4), symbols("k", 1, 4), symbols("v", 4)[None], symbols("w", 2)
    keys = None if there is None else array([there + shift])
    return value.attend(q, k, v, array([HERE + shift]), w, layout=layout, scale=1, undo=undo, key_positions=keys)


# what it is


@theorem(of=WHOLE, sizes="d = 4")
def one_key_pinned():
    """A single key has weight 1: the output is R(j - i) v if undone and R(j) v if not, so positions occur. Without key
    positions the key is where the query is."""
    for layout in pairing.LAYOUTS:
        prove_equal(one_key(undo=True, layout=layout), [rotated(V, THERE.e - HERE.e, W, layout)], mention=[HERE, THERE])
        prove_equal(one_key(undo=False, layout=layout), [rotated(V, THERE.e, W, layout)], mention=[THERE])
        prove_equal(one_key(undo=True, layout=layout, there=None), [V])
        prove_equal(one_key(undo=False, layout=layout, there=None), [rotated(V, HERE.e, W, layout)], mention=[HERE])


@one_key_pinned.control
def values_are_left_alone():
    """The output is an average of the values themselves, as where queries and keys alone turn."""
    prove_equal(one_key(undo=True), [V])


@one_key_pinned.control
def undone_by_the_same_angle():
    """The sum is turned by R(i), not by R(-i)."""
    prove_equal(one_key(undo=True), [rotated(V, THERE.e + HERE.e, W, "half")])


@one_key_pinned.control
def undone_twice():
    """R(-2i) sum_j a_ij R(j) v_j"""
    prove_equal(one_key(undo=True), [rotated(V, THERE.e - 2 * HERE.e, W, "half")])


@one_key_pinned.control
def undone_by_the_key():
    """R(-j) instead of R(-i): nothing is left of positions."""
    prove_equal(one_key(undo=True), [rotated(V, 0, W, "half")])


@one_key_pinned.control
def values_turn_in_the_other_layout():
    """Values may pair their features differently."""
    prove_equal(one_key(undo=False), [rotated(V, THERE.e, W, "interleaved")])


@theorem(of=WHOLE, sizes="all e, n, m, d")
def pinned():
    """Pair t of row i is sum_j a_ij R(j - i) (v_ja, v_jb) if undone and sum_j a_ij R(j) (v_ja, v_jb) if not, where a_ij is
    exp(scale <R(i) q_i, R(j) k_j>) over its sum; so R(-i) sum_j a_ij R(j) v_j = sum_j a_ij R(j - i) v_j."""
    q, k, v = sized("q", E, N, 2 * H), sized("k", E, M, 2 * H), sized("v", E, M, 2 * H)
    here, there, w, scale = sized("p", N), sized("r", M), sized("w", H), symbol("scale")
    for layout, undo in itertools.product(pairing.LAYOUTS, (True, False)):
        with summing(layout):
            out = value.attend(q, k, v, here, w, layout=layout, scale=scale, undo=undo, key_positions=there)
            e, i, j, (t, a, b), (u, c, d) = index(E), index(N), index(M), pair(layout, 2 * H), pair(layout, 2 * H)
            query = turn(q.at(e, i, c), q.at(e, i, d), here.at(i), w.at(u))
            key = turn(k.at(e, j, c), k.at(e, j, d), there.at(j), w.at(u))
            weight = sp.exp(scale.e * sp.Sum(_dot(query, key), (u, 0, H - 1)))
            turned = turn(v.at(e, j, a), v.at(e, j, b), there.at(j) - here.at(i) if undo else there.at(j), w.at(t))
            over_keys = lambda x, j=j: sp.Sum(x, (j, 0, M - 1))
            expected = [over_keys(weight * x) / over_keys(weight) for x in turned]
            prove_equal([out.at(e, i, a), out.at(e, i, b)], expected, mention=[scale, w.at(t)])


@pinned.control
def weights_of_unturned_queries():
    """Only values turn: the weights are those of q . k (two keys)."""
    q, k, v, w, r = symbols("q", 1, 2), symbols("k", 2, 2), symbols("v", 2, 2), symbols("w", 1), symbols("r", 2)
    weights, options = np.exp(q @ k.T), {"layout": "half", "scale": 1, "undo": True, "key_positions": r}
    turned_values = array([rotated(x, j, lists(w), "half") for x, j in zip(lists(v), lists(r), strict=True)])
    for _, out in all_paths(partial(value.attend, q, k, v, array([0]), w, **options)):
        prove_equal(out, weights / weights.sum(axis=-1, keepdims=True) @ turned_values)


@theorem(of=WHOLE, sizes="n = 1, m = 3, d = 4; every path of the maximum")
def pinned_with_a_mask():
    """Under a mask only the allowed keys take part, and a query without a key gets zeros, turned or not."""
    q, k, v, w = symbols("q", 1, 4), symbols("k", 3, 4), symbols("v", 3, 4), symbols("w", 2)
    here, there = symbols("p", 1), symbols("r", 3)
    for undo in (True, False):
        for allowed in ([True, False, True], [False, False, False]):
            options = {"layout": "half", "scale": 3, "undo": undo, "mask": np.array([allowed])}
            expected = definition(*map(lists, (q, k, v, here, there, w)), **options)
            for _, out in all_paths(partial(value.attend, q, k, v, here, w, key_positions=there, **options)):
                prove_equal(out, expected)


@pinned_with_a_mask.control
def mask_ignored():
    """The masked key takes part."""
    q, k, v, w = symbols("q", 1, 2), symbols("k", 2, 2), symbols("v", 2, 2), symbols("w", 1)
    here, there, options = symbols("p", 1), symbols("r", 2), {"layout": "half", "scale": 1, "undo": True}
    expected = definition(*map(lists, (q, k, v, here, there, w)), **options)
    masked = partial(value.attend, q, k, v, here, w, key_positions=there, mask=np.array([[True, False]]), **options)
    for _, out in all_paths(masked):
        prove_equal(out, expected)


# what it does


def moved(shift, layout, *, undo):
    """The output for all n, m, d with all positions moved by `shift`."""
    q, k, v = sized("q", N, 2 * H), sized("k", M, 2 * H), sized("v", M, 2 * H)
    here, there, w, scale = sized("p", N) + shift, sized("r", M) + shift, sized("w", H), symbol("scale")
    return value.attend(q, k, v, here, w, layout=layout, scale=scale, undo=undo, key_positions=there)


@theorem(of=WHOLE, sizes="all n, m, d")
def relative_if_undone():
    """With undo, a common shift of all positions changes nothing: the output sees offsets alone."""
    for layout in pairing.LAYOUTS:
        with summing(layout):
            prove_equal(*entries(layout, moved(SHIFT, layout, undo=True), moved(0, layout, undo=True)), mention=[SHIFT])


@relative_if_undone.control
def relative_without_undoing():
    """Rotated values make a relative encoding as rotated keys do (one key, whose weight is 1)."""
    prove_equal(one_key(undo=False, shift=SHIFT), one_key(undo=False))


@relative_if_undone.control
def relative_when_queries_alone_move():
    """Moving the queries and not the keys changes nothing (one key)."""
    prove_equal(one_key(undo=True, shift=SHIFT, there=THERE - SHIFT), one_key(undo=True))


@theorem(of=WHOLE, sizes="all n, m, d")
def absolute_without_undo():
    """Without undo a common shift by s turns the output by R(s): the weights stay, the output tells the absolute position."""
    tables = rope.tables(filled((1,), SHIFT), sized("w", H))
    for layout in pairing.LAYOUTS:
        with summing(layout):
            turned = rope.rotate(moved(0, layout, undo=False), *tables, layout=layout)
            prove_equal(*entries(layout, moved(SHIFT, layout, undo=False), turned), mention=[SHIFT])


@absolute_without_undo.control
def the_shift_turns_backwards():
    """A shift by s turns the output by R(-s) (one key)."""
    prove_equal(one_key(undo=False, shift=SHIFT), [rotated(V, THERE.e - SHIFT.e, W, "half")])


# golden vectors

SOURCES = (
    "Su, kexue.fm/archives/8130, last section: rotated values, not undone",
    "labml.ai, transformers/rope/value_pe: rotated values, undone",
)

CONVENTIONS = {
    "axes": "q, k, v are (batch, heads, n, dim); positions broadcast to all axes but the last",
    "frequencies": "theta_t = base^(-2t/dim); all features turn, counter-clockwise by position * theta",
    "layout": "interleaved pairs features (2t, 2t+1), half pairs (t, t + dim/2)",
    "causal": "if true, a query sees the keys at positions up to its own",
    "op attend": "sum_j softmax_j(scale <R(i) q_i, R(j) k_j>) R(j) v_j, turned by R(-i) if undo is true",
}

FLAGS = {
    "not_undone": flag("R(-i) is missing", "The output is not turned back.", "The output depends on absolute positions."),
    "undone": flag("R(-i) although not asked for", "The output is turned back.", "Weights trained without it do not fit."),
    "undone_twice": flag("R(-2i)", "The output is turned back twice.", "The output depends on absolute positions."),
    "undone_forward": flag("R(i) instead of R(-i)", "The output is turned on.", "The output depends on absolute positions."),
    "values_unturned": flag("plain values", "Queries and keys turn, values do not.", "Only the weights know positions."),
    "values_other_layout": flag(
        "values pair other features", "Queries and keys use one layout, values the other.", "Weights right, output garbled."
    ),
    "other_layout": flag(
        "pairs of the other layout", "Features are paired (t, t + dim/2) instead of (2t, 2t+1), or the reverse.", "Garbage."
    ),
    "sign": flag("angle -m theta", "The sine has the wrong sign.", "Scores and output see the negative offset."),
    "positions_ignored": flag(
        "0, 1, 2, .. instead of the positions given", "Positions are taken from the place in the sequence.", "Gaps are lost."
    ),
    "positions_shared_across_batch": flag(
        "positions of the first batch row", "Every row uses the positions of row 0.", "Batches of different texts go wrong."
    ),
    "causal_ignored": flag("all keys", "The causal mask is left out.", "Queries see the future."),
}

OTHER = {"half": "interleaved", "interleaved": "half"}
ANY = "other_layout sign positions_ignored values_unturned values_other_layout"
UNDONE = {True: "not_undone undone_twice undone_forward", False: "undone"}


def vectors():
    here, there = [[[0, 3, 7, 9]], [[2, 11, 4, 30]]], [[[0, 3, 5, 7, 9]], [[2, 3, 40, 11, 17]]]
    near, before = [2, 6, 7, 9], [1, 2, 6, 7, 9]
    far, cached = [48047], [48040, 48041, 48043, 48046, 48047]
    for layout, undo in itertools.product(OTHER, (True, False)):
        yield _attend("one", (1, 1, 4), [1], [3], layout, undo, ANY, scale=2.0**-6, comment="One key: its weight is 1.")
        if (layout == "half") == undo:
            batch = ANY + " positions_shared_across_batch"
            yield _attend("batch", (2, 3, 4, 5, 6), here, there, layout, undo, batch)
        else:
            yield _attend("causal", (3, 4, 5, 6), near, before, layout, undo, ANY + " causal_ignored", causal=True)
        yield _attend("decode", (2, 3, 1, 5, 4), far, cached, layout, undo, ANY, comment="One query, the last of five tokens.")


def turned(x, positions, theta, layout):
    """R(positions) x of a pair (values, sensitivities), positions broadcasting to all axes but the last; stored."""
    (values, cond), at, theta = x, np.array(positions, dtype=object)[..., None], np.array(theta)
    members = _split(values, layout)
    cos, sin = (abs(np.frompyfunc(f, 1, 1)(at * theta)) for f in (mpmath.cos, mpmath.sin))
    mixed = lambda a, b: _join(a * cos + b * sin, a * sin + b * cos, layout)
    reach = np.frompyfunc(mpmath.hypot, 2, 1)(*members) * abs(at * theta) * np.array([growth(w) for w in theta])
    cond = {name: mixed(*_split(each, layout)) for name, each in cond.items()}
    cond["amp"], cond["phase"] = cond["amp"] + mixed(*map(abs, members)), cond["phase"] + _join(reach, reach, layout)
    pairs = np.frompyfunc(lambda *pair: turn(*pair, m=mpmath), 4, 2)(*members, at, theta)
    return stored(_join(*pairs, layout), cond)


def _split(x, layout):
    return (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else np.split(x, 2, axis=-1)


def _join(a, b, layout):
    return np.stack([a, b], axis=-1).reshape(*a.shape[:-1], -1) if layout == "interleaved" else np.concatenate([a, b], axis=-1)


def _theta(dim):
    return [mpmath.power(10000, -mpmath.mpf(2 * t) / dim) for t in range(dim // 2)]


def _output(q, k, v, here, there, layout, *, undo, scale, mask):
    """`definition` of every head."""
    out = np.empty(q.shape, dtype=object)
    for lead in np.ndindex(q.shape[:-2]):
        i, j = here[lead], there[lead]
        heads = (q[lead].tolist(), k[lead].tolist(), v[lead].tolist(), i.tolist(), j.tolist(), _theta(q.shape[-1]))
        out[lead] = definition(
            *heads, layout=layout, scale=scale, undo=undo, mask=None if mask is None else mask[lead], m=mpmath
        )
    return out


def _attend(probe, extents, here, there, layout, undo, flags, *, causal=False, scale=0.25, **rest):
    *lead, n_query, n_key, dim = extents
    q, k, v = painted((*lead, n_query, dim), 1), painted((*lead, n_key, dim), 2), painted((*lead, n_key, dim), 4)
    i, j, theta = np.broadcast_to(here, q.shape[:-1]), np.broadcast_to(there, k.shape[:-1]), _theta(dim)
    mask = j[..., None, :] <= i[..., None] if causal else None
    options = {"undo": undo, "scale": scale, "mask": mask}
    right = _output(q, k, v, i, j, layout, **options)
    turn_all = lambda x, positions, layout=layout: turned(exact(x), positions, theta, layout)[0]
    absolute = partial(_output, q, k, here=i, there=j, layout=layout, **options | {"undo": False})
    row_zero = lambda positions: np.broadcast_to(positions[0], positions.shape)
    mistakes = {
        "not_undone": lambda: absolute(v),
        "undone": lambda: turn_all(absolute(v), -i),
        "undone_twice": lambda: turn_all(right, -i),
        "undone_forward": lambda: turn_all(absolute(v), i),
        "values_unturned": lambda: absolute(turn_all(v, -j)),
        "values_other_layout": lambda: turn_all(
            absolute(turn_all(turn_all(v, j, OTHER[layout]), -j)), -i if undo else i * 0, OTHER[layout]
        ),
        "other_layout": lambda: _output(q, k, v, i, j, OTHER[layout], **options),
        "sign": lambda: _output(q, k, v, -i, -j, layout, **options),
        "positions_ignored": lambda: _output(q, k, v, *(np.indices(x.shape)[-1] for x in (i, j)), layout, **options),
        "positions_shared_across_batch": lambda: _output(q, k, v, row_zero(i), row_zero(j), layout, **options),
        "causal_ignored": lambda: _output(q, k, v, i, j, layout, **options | {"mask": None}),
    }
    rotated_inputs = (turned(exact(x), at, theta, layout) for x, at in ((q, i), (k, j), (v, j)))
    out = attend(*rotated_inputs, scale, mask=mask)
    return case(
        f"value/{layout}-{'undone' if undo else 'absolute'}/d{dim}-b1e4/{probe}",
        op="attend",
        params={"dim": dim, "base": 10000.0, "layout": layout, "scale": scale, "undo": undo, "causal": causal},
        tensors={"q": q, "k": k, "v": v, "q_positions": np.array(here), "k_positions": np.array(there)},
        expected=right,
        cond=(turned(out, -i, theta, layout) if undo else out)[1],
        mistakes={name: mistakes[name]() for name in f"{flags} {UNDONE[undo]}".split()},
        **rest,
    )
