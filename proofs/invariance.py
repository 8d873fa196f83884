"""Invariance: in all relative encodings, positions enter attention only through offsets.

First a schema for all sizes: any vectors and numbers that depend on the shipped offset, added where encodings add them. Then
every shipped system, from positions to the output of attention.
"""

import numpy as np
import sympy as sp

from posref import attention
from posref.offsets import offsets
from posref.relative import alibi, deberta, nezha, shaw, t5, transformer_xl, xlnet
from proofs.kit import *

N, MEM, H, D = size("n"), size("mem"), size("h"), size("d")
M = N + MEM  # keys: at least one more than queries, so that the oldest can be dropped
SCALE = symbol("scale")


def by_offset(name, at, *features):
    """An array (n, m, ..) of free numbers that depend on the offset only."""
    function = sp.Function(name, real=True)
    return SizedArray((*at.shape, *features), lambda i, j, *rest: function(at.at(i, j), *rest))


def relative_attention(q, k, v, query_positions, key_positions):
    """softmax(scale (q . k + q . a + k . b + c)) (v + e), where a, b, c, e are any functions of the offset: Shaw and NEZHA have
    a and e, DeBERTa a and b, T5 and ALiBi c, TUPE-R c beside absolute scores."""
    at = offsets(query_positions, key_positions)
    a, b, e = (by_offset(name, at, D) for name in "abe")
    terms = (q[:, None, :] * a).sum(axis=-1) + (k[None, :, :] * b).sum(axis=-1) + by_offset("c", at)
    weights = attention.softmax(attention.scores(q, k, scale=1) + terms)
    return weights @ v + (weights[:, None, :] @ e)[:, 0, :]


OPERANDS = sized("q", N, D), sized("k", M, D), sized("v", M, D)
POSITIONS = sized("i", N), sized("j", M)
SCHEMA = [offsets, attention.scores, attention.softmax]


@theorem(of=SCHEMA, sizes="all n, m, d, positions, shifts")
def translation_invariant():
    """Softmax attention with any vectors and numbers that the offset decides does not change when all tokens move by s. The
    offset does matter: positions occur in the output."""
    (i, j), s, row, c = POSITIONS, symbol("s").e, index(N), index(D)
    here = relative_attention(*OPERANDS, i, j)
    prove_equal([relative_attention(*OPERANDS, i + s, j + s).at(row, c)], [here.at(row, c)], mention=[i.at(row)])


@translation_invariant.claim("Queries and keys count from one origin.")
def invariant_when_queries_alone_move():
    """The queries of a cached step may count from 0 while the keys keep their positions (two keys, a quadratic bias)."""
    i, j, s = symbols("i", 1), symbols("j", 2), symbol("s")
    weights = lambda queries: attention.softmax(np.square(offsets(queries, j)))
    for _, (moved, here) in all_paths(lambda: (weights(i + s), weights(i))):
        prove_equal(moved, here)


@theorem(of=SCHEMA, sizes="all n, m, d, positions; a step of one query")
def a_decoding_step_is_the_last_row():
    """Softmax attention of one query with its own position, among all keys, is the last row of that of all queries."""
    (q, k, v), (i, j), c = OPERANDS, POSITIONS, index(D)
    step = relative_attention(q[N - 1 :], k, v, i[N - 1 :], j)
    prove_equal([step.at(0, c)], [relative_attention(q, k, v, i, j).at(N - 1, c)], mention=[i.at(N - 1)])


@a_decoding_step_is_the_last_row.claim("The step has the position of its token.")
def a_step_starts_at_zero():
    """A decoding step is at position 0 (three tokens, a bias)."""
    c, keys = sp.Function("c", real=True), np.arange(3)
    bias = lambda queries: [c(o) for o in offsets(np.array(queries), keys)[-1].tolist()]
    prove_equal(bias([0]), bias([0, 1, 2]))


# every system, from positions to the output

UNIT = symbol("unit", positive=True)  # scores are distinct integers times one unit, so that their order is known
HEADS, QUERIES, KEYS = 2, np.array([7, 2]), np.array([0, 2, 7, 3])
SLOPES = UNIT * np.array([1, 3])


def numbers(start, *shape):
    """An array of small integers without a pattern."""
    return (np.arange(start, start + np.prod(shape)) ** 3 % 11 % 5 - 2).reshape(shape)


def layers(at_query=slice(None)):
    """{system: attention as a function of positions}, for every shipped system and some of the queries."""
    q, k, v = numbers(3, HEADS, 2, 2)[:, at_query], UNIT * numbers(20, HEADS, 4, 2), symbols("v", HEADS, 4, 2)
    bias = lambda b: attention.attend(q, k, v, scale=1, bias=b)
    buckets, rows = UNIT * numbers(5, 32, HEADS), UNIT * numbers(7, 5, 2)
    values, q_r, k_r = symbols("e", 5, 2), numbers(8, HEADS, 6, 2), UNIT * numbers(9, HEADS, 6, 2)
    vectors = lambda i, j: shaw.attend(q, k, v, rows, values, offsets(i, j), scale=1)
    dots = lambda i, j, c: deberta.scores(q, k, q_r, k_r, offsets(i, j), scale=1, convention=c)
    return {
        "t5 encoder": lambda i, j: bias(t5.bias(i, j, buckets, bidirectional=True)),
        "t5 decoder": lambda i, j: bias(t5.bias(i, j, buckets, bidirectional=False)),
        "alibi signed": lambda i, j: bias(alibi.bias(i, j, SLOPES, form="signed")),
        "alibi absolute": lambda i, j: bias(alibi.bias(i, j, SLOPES, form="absolute")),
        "alibi key": lambda i, j: bias(alibi.bias(i, j, SLOPES, form="key")),
        "shaw": vectors,
        "nezha": lambda i, j: nezha.attend(q, k, v, rows, offsets(i, j), scale=1),
        "deberta": lambda i, j: attention.softmax(dots(i, j, "paper")) @ v,
        "deberta released": lambda i, j: attention.softmax(dots(i, j, "released")) @ v,
    }


SYSTEMS = [t5.bias, alibi.bias, shaw.attend, nezha.attend, deberta.scores, offsets, attention.attend, attention.softmax]


@theorem(
    of=[f for f in SYSTEMS if f not in (shaw.attend, nezha.attend)],  # which get the same offsets twice
    sizes="h = 2, n = 2, m = 4, unsorted positions; shifts -1, 5, 10^9; all values v, one example of queries, keys and tables",
    as_written="runs",
)
def every_system_is_translation_invariant():
    """The output of attention with T5, ALiBi (three forms), Shaw, NEZHA and DeBERTa (both conventions) does not change when all
    tokens move. `translation_invariant` says it of any functions of the offset; here these systems run from positions to
    output."""
    for layer in layers().values():
        here = layer(QUERIES, KEYS)
        for shift in (-1, 5, 10**9):
            prove_equal(layer(QUERIES + shift, KEYS + shift), here)


@every_system_is_translation_invariant.control
def any_system_when_the_queries_alone_move():
    """Moving the queries and not the keys changes nothing (T5)."""
    layer = layers()["t5 encoder"]
    prove_equal(layer(QUERIES + 5, KEYS), layer(QUERIES, KEYS))


@every_system_is_translation_invariant.claim("The output is invariant; the bias of the key form is not.")
def key_form_needs_no_softmax():
    """The bias of every ALiBi depends on the offset alone."""
    prove_equal(*(alibi.bias(QUERIES + s, KEYS + s, SLOPES, form="key") for s in (0, 1)))


@theorem(
    of=SYSTEMS,
    sizes="h = 2, n = 2, m = 4, unsorted positions; all values v, one example of queries, keys and tables",
    as_written="runs",
)
def every_system_decodes_by_its_last_row():
    """One query with its own position has its row of the output, in each of these systems."""
    whole, alone = layers(), layers(slice(1, 2))
    for name, layer in whole.items():
        prove_equal(alone[name](QUERIES[1:], KEYS), layer(QUERIES, KEYS)[:, 1:])


@every_system_decodes_by_its_last_row.control
def any_system_decodes_from_zero():
    """A step may count its query from 0 (Shaw)."""
    prove_equal(layers(slice(1, 2))["shaw"](np.array([0]), KEYS), layers()["shaw"](QUERIES, KEYS)[:, 1:])


# Transformer-XL and XLNet take no positions: the rows of r are distances, and the queries are the last of the keys

ROW, COL = (sp.Symbol(name, integer=True, nonnegative=True) for name in ("i", "j"))
LATER, MEM = size("later", least=0).e, size("mem", least=0).e
FEW = LATER + 1  # queries, at least one
ALL = FEW + MEM + 1  # keys; the oldest can be dropped


def scores_by_distance(q, k, r):
    """Scores of Transformer-XL and of XLNet with all tokens in one segment; r begins with a distance that no pair has."""
    (u, w, s), e, same = (sized(name, H, D) for name in "uws"), sized("e", 2, H, D), filled((q.shape[1], k.shape[1]), sp.true)
    scale = symbol("scale")
    return (transformer_xl.scores(q, k, r[:, 1:], u, w, scale=scale), xlnet.scores(q, k, r, e, u, w, s, same, scale=scale))


@theorem(of=[transformer_xl.scores, xlnet.scores], sizes="all h, n, mem, d, in both directions")
def distances_are_all_that_counts():
    """In Transformer-XL and XLNet dropping the oldest key, which moves all others by one, leaves the other scores as they are,
    and the last query alone has the last row."""
    q, k, r, a = sized("q", H, FEW, D), sized("k", H, ALL, D), sized("r", H, FEW + ALL, D), index(H)
    with assuming(sp.Ge(FEW - 1 - ROW, 0), sp.Ge(ALL - 2 - COL, 0)):
        full = [x.at(a, ROW, COL + 1) for x in scores_by_distance(q, k, r)]
        later = [x.at(a, ROW, COL) for x in scores_by_distance(q, k[:, 1:], r[:, 1:])]
        prove_equal(later, full)
        last = [x.at(a, FEW - 1, COL + 1) for x in scores_by_distance(q, k, r)]
        alone = [x.at(a, 0, COL + 1) for x in scores_by_distance(q[:, FEW - 1 :], k, r[:, : ALL + 1])]
        prove_equal(alone, last)


@distances_are_all_that_counts.control
def the_oldest_row_is_kept():
    """When the oldest key is dropped the rows of r stay, and the last one goes (one query, two keys)."""
    q, k, r = symbols("q", 1, 1, 1), symbols("k", 1, 2, 1), symbols("r", 1, 2, 1)
    u = symbols("u", 1, 1)
    full = transformer_xl.scores(q, k, r, u, u, scale=1)
    prove_equal(transformer_xl.scores(q, k[:, 1:], r[:, :1], u, u, scale=1), full[..., 1:])
