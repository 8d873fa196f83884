"""RoPE on values: rotated values, with or without rotating the output back by the query's angle."""

import itertools
from functools import partial

import numpy as np
import sympy as sp

from posref import attention, pairing
from posref.rotary import rope, value
from proofs.attention import definition as softmax
from proofs.kit import *
from proofs.rotary.rope import definition as turn

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


@one_key_pinned.claim("This encoding turns the values too.")
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


@one_key_pinned.claim("One layout serves queries, keys and values.")
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


@relative_if_undone.claim("Without undoing the output tells the absolute position.")
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
