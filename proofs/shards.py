"""Shards: attention over some of the keys, merged, is attention over all of them."""

import functools
import itertools

import numpy as np

from posref import attention, shards
from proofs.attention import EXACT, definition, rows
from proofs.kit import *


def sums(state):
    """The sums that a State represents, without its maximum, which may be any number."""
    return state.denominator * np.exp(state.maximum), state.accumulator * np.exp(state.maximum)


def sums_of(*arguments, **keywords):
    """`attend`, whose maximum 0 for no keys becomes a Scalar, which has an exp."""
    return shards.State(*map(array, shards.attend(*arguments, **keywords)))


def state(name, empty=False):
    """A State of two rows and two features; with `empty`, the rows met no key."""
    denominator, accumulator = symbols(f"d{name}", 2, 1, positive=True), symbols(f"a{name}", 2, 2)
    return shards.State(symbols(f"m{name}", 2, 1), denominator * (1 - empty), accumulator * (1 - empty))


@theorem(of=[shards.attend], sizes="n = 2, m = 0, 1, 2, 3, all masks; 2 heads that share 2 keys; every path")
def pinned():
    """A State times e^maximum is the sums of e^s and of e^s v over the keys allowed, the maximum being one of the scores of its
    row; a row that meets no key has denominator 0. For one key it is the score, 1 and v; with a factor r per row
    and a cap c the score is c tanh(r q k / c). Heads may share keys."""
    q, k, v = symbols("q", 2, 1, 1), symbols("k", 1, 2, 1), symbols("v", 1, 2, 1)
    for one in range(2):
        key, value = k[:, one : one + 1], v[:, one : one + 1]
        of_one = shards.attend(q, key, value, scale=1)
        prove_equal(np.stack(of_one), np.stack([q * key, 0 * q + 1, 0 * q + value]))
        r, c = symbols("r", 2, 1), symbol("c", positive=True)
        capped = shards.attend(q, key, value, scale=1, row_scale=r, softcap=c)
        prove_equal(capped.maximum, c * np.tanh(r[..., None] * q * key / c))
    for _, got in all_paths(functools.partial(sums_of, q, k, v, scale=1)):
        for head, (denominator, accumulator) in enumerate(zip(*sums(got), strict=True)):
            weights = np.exp(q[head] @ k[0].T)
            prove_equal(denominator, weights.sum(axis=-1, keepdims=True))
            prove_equal(accumulator, weights @ v[0])
    scale, zero = symbol("scale"), np.zeros((2, 1), dtype=int)
    for m in range(4):
        q, k, v, b = symbols("q", 2, 1), symbols("k", m, 1), symbols("v", m, 2), symbols("b", 2, m)
        s = array([[scale * q[i, 0] * k[j, 0] + b[i, j] for j in range(m)] for i in range(2)])
        for mask in (None, *(np.array([bits, [True] * m], dtype=bool) for bits in itertools.product((False, True), repeat=m))):
            weights = np.where(np.ones((2, m), dtype=bool) if mask is None else mask, np.exp(s), 0)
            call = functools.partial(sums_of, q, k, v, scale=scale, bias=b, mask=mask)
            for _, got in all_paths(call):
                denominator, accumulator = sums(got)
                prove_equal(denominator, weights.sum(axis=-1, keepdims=True) if m else zero)
                prove_equal(accumulator, weights @ v if m else np.repeat(zero, 2, axis=-1))
                for row, highest in zip(s if m else (), got.maximum[:, 0], strict=False):
                    prove_that(expression(highest) in [x.e for x in row], "the maximum is a score of its row")


@pinned.claim("A denominator is divided by e^maximum.")
def denominators_without_their_maximum():
    """The denominator is the sum of e^s itself (two keys)."""
    q, k, v = symbols("q", 1, 1), symbols("k", 2, 1), symbols("v", 2, 1)
    for _, got in all_paths(lambda: shards.attend(q, k, v, scale=1)):
        prove_equal(got.denominator, np.exp(q @ k.T).sum(axis=-1, keepdims=True))


@theorem(
    of=[shards.merge],
    sizes="any states, hence all numbers of keys; two rows, d_v = 2; every path; any of the states empty",
    equivalent={"merge: highest = np.maximum(m_a, m_b)  ->  highest = np.minimum(m_a, m_b)": EXACT},
)
def merge_adds():
    """merge adds the sums, e^maximum times denominator and accumulator, so it is associative and commutative; its maximum is
    one of the two, not that of an empty row."""
    for empty in itertools.product((False, True), repeat=3):
        a, b, c = (state(name, e) for name, e in zip("abc", empty, strict=True))
        for order in ((a, b), (b, a)):
            for _, got in all_paths(functools.partial(shards.merge, *order)):
                _prove_sums(got, a, b)
                for x, y, highest in zip(a.maximum[:, 0], b.maximum[:, 0], got.maximum[:, 0], strict=True):
                    allowed = [y] if empty[:2] == (True, False) else [x] if empty[:2] == (False, True) else [x, y]
                    prove_that(expression(highest) in [m.e for m in allowed], "the maximum of a row that met a key")
        for merged in (functools.partial(_merged, a, b, c), functools.partial(_merged, b, c, first=a)):
            for _, got in all_paths(merged):
                _prove_sums(got, a, b, c)


@merge_adds.claim("Denominators are moved to one maximum before they are added.")
def states_add_up():
    """Denominators are added as they are."""
    a, b = state("a"), state("b")
    for _, ab in all_paths(lambda: shards.merge(a, b)):
        prove_equal(ab.denominator, a.denominator + b.denominator)


@theorem(
    of=[shards.attend, shards.merge, shards.finish, attention.attend],
    sizes="n = 1, shards of 1, 0 and 2 keys, some masked; every path",
    equivalent={
        "finish: return state.accumulator / np.where(state.denominator == 0, 1, state.denominator)  ->  "
        "return state.accumulator / np.where(state.denominator == 0, 2, state.denominator)": "an empty row is zeros, whatever "
        "divides it"
    },
)
def shards_are_the_whole():
    """finish(merge of shards of the keys) = attend over all keys, and zeros where nothing may be attended to."""
    scale = symbol("scale")
    q, k, v, b = symbols("q", 1, 1), symbols("k", 3, 1), symbols("v", 3, 2), symbols("b", 1, 3)

    def whole(mask):
        return attention.attend(q, k, v, scale=scale, bias=b, mask=mask)

    def in_shards(mask):
        cuts = (slice(0, 1), slice(1, 1), slice(1, 3))
        parts = (sums_of(q, k[c], v[c], scale=scale, bias=b[:, c], mask=mask[:, c]) for c in cuts)
        return shards.finish(_merged(*parts))

    for bits in ([True] * 3, [False, True, True], [True, False, False], [False] * 3):
        mask = np.array([bits])
        weights = [definition(row, allowed) for row, allowed in zip(rows(scale * (q @ k.T) + b), mask, strict=True)]
        for call in (whole, in_shards):
            for _, got in all_paths(functools.partial(call, mask)):
                prove_equal(got, array(weights) @ v)


@shards_are_the_whole.claim("Shards are weighted by their denominators.")
def averages_of_shards():
    """Attention over all keys is the mean of attention over the shards (two keys)."""
    q, k, v = symbols("q", 1, 1), symbols("k", 2, 1), symbols("v", 2, 1)
    for _, whole in all_paths(lambda: attention.attend(q, k, v, scale=1)):
        prove_equal(whole[0], (v[0] + v[1]) / 2)


@theorem(of=[shards.with_sinks, shards.merge, shards.finish], sizes="2 rows, d_v = 2; every path; rows that met no key")
def a_sink_enters_once():
    """with_sinks adds e^sink to the sum of e^s and nothing to that of e^s v; before or after merging, once, it gives the same
    sums, and finish then divides by e^sink + sum e^s."""
    sink = symbols("sink", 1)
    for empty in (False, True):
        a, b = state("a", empty), state("b")
        first = functools.partial(lambda a, b: shards.merge(shards.with_sinks(a, sink), b), a, b)
        last = functools.partial(lambda a, b: shards.with_sinks(shards.merge(a, b), sink), a, b)
        for call in (first, last):
            for _, got in all_paths(call):
                (total, values), (da, va), (db, vb) = sums(got), sums(a), sums(b)
                prove_equal(total, da + db + np.exp(sink), mention=[sink[0]])
                prove_equal(values, va + vb)
                prove_equal(shards.finish(got) * (da + db + np.exp(sink)), va + vb)


@a_sink_enters_once.claim("A sink enters once, for all keys; ranks that each add it give it as many shares.")
def each_shard_has_the_sink():
    """Each shard adds the sink of its heads before it is merged."""
    a, b, sink = state("a"), state("b"), symbols("sink", 1)
    for _, got in all_paths(lambda: shards.merge(shards.with_sinks(a, sink), shards.with_sinks(b, sink))):
        prove_equal(sums(got)[0], sums(a)[0] + sums(b)[0] + np.exp(sink))


def _prove_sums(got, *parts):
    for total, *each in zip(sums(got), *map(sums, parts), strict=True):
        prove_equal(total, sum(each[1:], each[0]))


def _merged(a, b, *more, first=None):
    """((a b) ..), or first (a b ..)."""
    merged = shards.merge(a, b)
    for c in more:
        merged = shards.merge(merged, c)
    return merged if first is None else shards.merge(first, merged)
