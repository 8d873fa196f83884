"""Gauges: changes of scores that leave the weights unchanged, and the freedom that each system therefore has.

proofs/attention.py shows that softmax ignores a constant in a row, but not with a sink or with a cap over the sum.
"""

import numpy as np

from posref import attention, offsets, shards
from posref.relative import alibi, deberta, shaw, swin, t5, transformer_xl, tupe, xlnet
from posref.rotary import decoupled, rope, xpos
from proofs.kit import *

N, D = 3, 2
PLACES = np.arange(N)
OFFSETS = offsets.offsets(PLACES, PLACES)


@theorem(
    of=[attention.softmax],
    sizes="query 1 of 3 keys; every path",
    as_written="runs",
)
def under_masks():
    """A constant in a row changes no weight under a causal mask and a window of 2."""
    s, c, query = symbols("s", 1, N), symbols("c", 1, 1), PLACES[1:2]
    mask = attention.causal_mask(query, PLACES) & attention.window_mask(query, PLACES, width=2)
    for _, (shifted, plain) in all_paths(lambda: (attention.softmax(s + c, mask), attention.softmax(s, mask))):
        prove_equal(shifted, plain)


@under_masks.claim("A row has one constant, for its near keys and its far ones.")
def a_constant_for_what_is_seen():
    """Under a mask the keys that are seen may have constants of their own."""
    s, c = symbols("s", 1, 3), symbols("c", 2)
    mask = np.array([[True, True, False]])
    for _, (shifted, plain) in all_paths(
        lambda: (attention.softmax(s + np.array([[c[0], c[1], c[1]]]), mask), attention.softmax(s, mask))
    ):
        prove_equal(shifted, plain)


def state(name, shift):
    """A State of one row with its maximum moved by a constant, as a constant in the scores of its keys would do."""
    return shards.State(symbols(f"m{name}", 1, 1) + shift, symbols(f"d{name}", 1, 1, positive=True), symbols(f"a{name}", 1, D))


@theorem(of=[shards.merge, shards.finish], sizes="2 shards, d = 2; every path", as_written="runs")
def over_shards():
    """A constant in a row that is added on both shards moves both maxima, and leaves the merged result as it is."""
    c = symbol("c")
    call = lambda shift: shards.finish(shards.merge(state("a", shift), state("b", shift)))
    for _, (shifted, plain) in all_paths(lambda: (call(c), call(0 * c))):
        prove_equal(shifted, plain)


@over_shards.claim("All shards add the same constant: each must know the query's position, not only its own keys'.")
def each_shard_its_own():
    """Each shard may add a constant of its own."""
    c = symbol("c")
    call = lambda shift: shards.finish(shards.merge(state("a", shift), state("b", 0 * c)))
    for _, (shifted, plain) in all_paths(lambda: (call(c), call(0 * c))):
        prove_equal(shifted, plain)


@theorem(of=[attention.softmax], sizes="n = 2; every path")
def a_sink_sees_everything():
    """With a sink the weights tell the scores: e^(s_j - sink) = w_j / (1 - sum_i w_i); a constant that the sink gets too is not
    seen."""
    s, sink, c = symbols("s", 1, 1, 2), symbols("sink", 1, 1), symbol("c")
    for _, (weights, both) in all_paths(lambda: (attention.softmax(s, None, sink), attention.softmax(s + c, None, sink + c))):
        prove_equal(weights[0, 0] / (1 - weights.sum()), np.exp(s[0, 0] - sink[0, 0]))
        prove_equal(both, weights)


@a_sink_sees_everything.claim("Without a sink they sum to 1, and say nothing of a constant.")
def without_a_sink():
    """Weights tell the scores without a sink too: their ratio to the first is e^(s_j)."""
    s = symbols("s", 1, 2)
    for _, weights in all_paths(lambda: attention.softmax(s)):
        prove_equal(weights[0, 1] / weights[0, 0], np.exp(s[0, 1]))


def prove_free(changed, plain):
    """The change of the scores is one number per row."""
    change = changed - plain
    prove_equal(change, np.repeat(change[..., :1], change.shape[-1], axis=-1))


@theorem(
    of=[t5.bias, shaw.scores, transformer_xl.scores, deberta.scores, alibi.bias],
    sizes="n = 3, d = 2; 8 buckets to 6, clip 2, span 3",
)
def left_free():
    """These changes do not change a softmax: in T5 one number per head added to all buckets; in Shaw, Transformer-XL and
    DeBERTa's c2p one vector added to all rows of the table; in ALiBi slope times query, so signed and key form agree."""
    q, k, scale, a = symbols("q", N, D), symbols("k", N, D), symbol("s"), symbols("a", 1, D)
    table = symbols("t", 8, 1)
    bias = lambda table: t5.bias(PLACES, PLACES, table, max_distance=6, bidirectional=True)
    prove_free(bias(table + symbol("c")), bias(table))
    rows = symbols("r", 5, D)
    prove_free(*(shaw.scores(q, k, each, OFFSETS, scale=scale) for each in (rows + a, rows)))
    u, v = symbols("u", 1, D), symbols("v", 1, D)
    prove_free(*(transformer_xl.scores(q[None], k[None], each[None], u, v, scale=scale) for each in (rows + a, rows)))
    spanned = symbols("p", 6, D)
    paper = {"scale": scale, "convention": "paper"}
    prove_free(*(deberta.scores(q, k, None, each, OFFSETS, **paper) for each in (spanned + a, spanned)))
    slopes = symbols("m", 1)
    signed, key = (np.broadcast_to(alibi.bias(PLACES, PLACES, slopes, form=form), (1, N, N)) for form in ("signed", "key"))
    prove_free(key, signed)


@left_free.claim("One vector in all rows of p2c weighs each key by its content.")
def one_vector_in_p2c():
    """In DeBERTa's p2c too one vector in all rows of the table is free."""
    q, k, rows, a = symbols("q", N, D), symbols("k", N, D), symbols("p", 6, D), symbols("a", 1, D)
    paper = {"scale": 1, "convention": "paper"}
    prove_free(*(deberta.scores(q, k, each, None, OFFSETS, **paper) for each in (rows + a, rows)))


@theorem(of=[rope.rotate, rope.tables], sizes="n = 3, d = 4")
def left_free_by_rope():
    """These changes do not change RoPE's scores: in each pair one rotation of both queries and keys, and one factor that
    multiplies queries and divides keys."""
    q, k, w = symbols("q", N, 4), symbols("k", N, 4), symbols("w", 2)
    angle, factor = symbols("p", 1, 2), symbols("f", 2, positive=True)
    tables = rope.tables(PLACES, w)
    score = lambda q, k: attention.scores(*(rope.rotate(x, *tables, layout="half") for x in (q, k)), scale=1)
    turned = lambda x: rope.rotate(x, np.cos(angle), np.sin(angle), layout="half")
    prove_equal(score(turned(q), turned(k)), score(q, k))
    both = np.concatenate([factor, factor])
    prove_equal(score(q * both, k / both), score(q, k))


@left_free_by_rope.claim("Features of different pairs may not be mixed: they turn at different speeds.")
def pairs_may_be_mixed():
    """Any orthogonal map of queries and keys together is free: here pairs are exchanged."""
    q, k, w = symbols("q", N, 4), symbols("k", N, 4), symbols("w", 2)
    tables = rope.tables(PLACES, w)
    score = lambda q, k: attention.scores(*(rope.rotate(x, *tables, layout="half") for x in (q, k)), scale=1)
    prove_equal(score(q[:, [1, 0, 3, 2]], k[:, [1, 0, 3, 2]]), score(q, k))


@theorem(of=[attention.scores], sizes="n = 3, d = 2")
def a_bias_of_the_keys():
    """What a projection adds to all keys alike is free, in every system that scores q . k: no weight depends on it."""
    q, k, a = symbols("q", N, D), symbols("k", N, D), symbols("a", 1, D)
    prove_free(*(attention.scores(q, each, scale=symbol("s")) for each in (k + a, k)))


@a_bias_of_the_keys.claim("RoPE turns what is added with its key: it meets the query at every angle.")
def a_bias_of_turned_keys():
    """It is free in RoPE too, added before the keys are turned."""
    q, k, a = symbols("q", N, 2), symbols("k", N, 2), symbols("a", 1, 2)
    tables = rope.tables(PLACES, symbols("w", 1))
    score = lambda k: attention.scores(*(rope.rotate(x, *tables, layout="half") for x in (q, k)), scale=1)
    prove_free(score(k + a), score(k))


@theorem(of=[xlnet.scores, tupe.positional_scores, swin.bias], sizes="n = 3, d = 2; segments 1, 1, 2; a grid of one row")
def left_free_by_segments_grids_and_untied_positions():
    """These changes do not change a softmax: in XLNet one vector added to each row of the table, and one added to both vectors
    of segments; in TUPE one vector added to the projected keys of all positions; in Swin one number per head added to
    each row."""
    q, k, scale, a = symbols("q", N, D), symbols("k", N, D), symbol("s"), symbols("a", 1, D)
    (u, v, w), rows, kinds = (symbols(name, 1, D) for name in "uvw"), symbols("r", 1, 2 * N, D), symbols("e", 2, 1, D)
    same = np.equal.outer([1, 1, 2], [1, 1, 2])
    score = lambda r, e: xlnet.scores(q[None], k[None], r, e, u, v, w, same, scale=scale)
    prove_free(score(rows + a, kinds), score(rows, kinds))
    prove_free(score(rows, kinds + a), score(rows, kinds))
    places, w_q, w_k = symbols("p", N, D), symbols("x", 1, D, D), symbols("y", 1, D, D)
    one = lambda p: np.concatenate([p, 0 * p[:, :1] + 1], axis=1)
    more = lambda w, b: np.concatenate([w, b[None]], axis=1)
    untied = lambda b: tupe.positional_scores(one(places), more(w_q, 0 * a), more(w_k, b), scale=scale)
    prove_free(untied(a), untied(0 * a))
    table, grid = symbols("t", 2 * N - 1, 1), swin.rows(np.stack([0 * PLACES, PLACES], axis=-1), height=1, width=N)
    prove_free(swin.bias(grid, table + symbol("c")), swin.bias(grid, table))


@left_free_by_segments_grids_and_untied_positions.claim(
    "Only both vectors may move together: their difference is what is learned."
)
def one_vector_of_segments():
    """In XLNet the vector of other segments is free by itself."""
    q, k, a = symbols("q", 1, N, 1), symbols("k", 1, N, 1), symbol("a")
    z, rows, same = symbols("z", 1, 1), symbols("r", 1, 2 * N, 1), np.equal.outer([1, 1, 2], [1, 1, 2])
    score = lambda e: xlnet.scores(q, k, rows, array([[[symbol("x")]], [[e]]]), z, z, z, same, scale=1)
    prove_free(score(symbol("y") + a), score(symbol("y")))


@theorem(of=[xpos.rotate, decoupled.scores], sizes="n = 3, d = 4 and 2")
def left_free_by_xpos_and_by_parts():
    """These changes do not change scores: in xPos, in each pair, one rotation of both queries and keys, and one factor that
    multiplies queries and divides keys; in decoupled RoPE any invertible matrix of the unrotated queries that the unrotated
    keys undo."""
    q, k, angle, factor = symbols("q", N, 4), symbols("k", N, 4), symbols("p", 1, 2), symbols("f", 2, positive=True)
    tables = *rope.tables(PLACES, symbols("w", 2)), symbols("z", N, 2, positive=True)
    side = lambda x, side: xpos.rotate(x, *tables, layout="half", side=side)
    score = lambda q, k: attention.scores(side(q, "query"), side(k, "key"), scale=1)
    turned = lambda x: rope.rotate(x, np.cos(angle), np.sin(angle), layout="half")
    both = np.concatenate([factor, factor])
    prove_equal(score(turned(q) * both, turned(k) / both), score(q, k))
    m = symbols("m", 2, 2)
    determinant = m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]
    undone = np.array([[m[1, 1], -m[1, 0]], [-m[0, 1], m[0, 0]]]) / determinant  # the inverse, transposed
    (c, r), (d, s) = (symbols("c", N, 2), symbols("r", N, 2)), (symbols("d", N, 2), symbols("s", N, 2))
    prove_equal(decoupled.scores(c @ m, r, d @ undone, s, scale=1), decoupled.scores(c, r, d, s, scale=1))


@left_free_by_xpos_and_by_parts.claim("Keys are multiplied by the inverse, transposed.")
def keys_undo_by_the_same_matrix():
    """Queries and keys of the part without position may be multiplied by one matrix."""
    m, c, d, z = symbols("m", 1, 1), symbols("c", 1, 1), symbols("d", 1, 1), symbols("z", 1, 1)
    prove_equal(decoupled.scores(c @ m, z, d @ m, z, scale=1), decoupled.scores(c, z, d, z, scale=1))


@theorem(
    of=[attention.cap, attention.softmax],
    sizes="n = 2, a cap; every path",
    as_written="the code computes the ratio as it is written",
)
def a_cap_sees_everything():
    """With a cap c the weights tell the scores: the logarithm of a ratio of two is c tanh(s_1 / c) - c tanh(s_0 / c), which a
    constant in the row changes."""
    s, c = symbols("s", 1, 2), symbol("c", positive=True)
    for _, weights in all_paths(lambda: attention.softmax(attention.cap(s, softcap=c))):
        capped = c * np.tanh(s[0] / c)
        prove_equal(weights[0, 1] / weights[0, 0], np.exp(capped[1] - capped[0]))


@a_cap_sees_everything.claim("Only what adds to all capped scores alike is not seen.")
def a_constant_under_a_cap():
    """A constant in a row is not seen under a cap either."""
    s = symbols("s", 1, 2)
    for _, (shifted, plain) in all_paths(lambda: (attention.cap(s + symbol("a"), softcap=1), attention.cap(s, softcap=1))):
        prove_free(shifted, plain)
