"""XLNet: Transformer-XL's score in both directions, and a term for the segment."""

import numpy as np
import sympy as sp

from posref.offsets import clip
from posref.relative import transformer_xl, xlnet
from proofs.kit import *
from proofs.relative.transformer_xl import COL, INSIDE, ROW, SIZES, D, H, M, N
from proofs.relative.transformer_xl import definition as four_terms

SCORES = [xlnet.scores, transformer_xl._products, transformer_xl._shift]


def definition(q, k, r, e, u, v, s, scale):
    """scale ((q + u) . k + (q + v) . r + (q + s) . e), e being the vector of the pair. Yang et al., section 2.5."""
    return four_terms(q, k, r, u, v, scale) + scale * sum((x + y) * z for x, y, z in zip(q, s, e, strict=True))


def row(i, j, n_query, n_key):
    """The row of r for query i and key j: distances descend from n_key, and query i stands at i + n_key - n_query."""
    distance = i + n_key - n_query - j
    return n_key - distance


def every_score(q, k, r, e, u, v, s, same, scale):
    """`definition` for all batches, heads and pairs; 0 where r has no row for the distance."""
    out = np.empty((*q.shape[:-1], k.shape[-2]), dtype=object)
    same = np.broadcast_to(same, out.shape)
    for b, h, i, j in np.ndindex(*out.shape):
        at = row(i, j, q.shape[-2], k.shape[-2])
        kind = e[0 if same[b, h, i, j] else 1, h]
        vectors = (q[b, h, i], k[b, h, j], r[h, min(at, r.shape[1] - 1)], kind, u[h], v[h], s[h])
        out[b, h, i, j] = definition(*vectors, scale) if at < r.shape[1] else 0
    return out


def operands(n, m, rows):
    """q, k, r, e, u, v, s of batch 2, three heads and one feature."""
    shapes = {"q": (2, 3, n, 1), "k": (2, 3, m, 1), "r": (3, rows, 1), "e": (2, 3, 1), "u": (3, 1), "v": (3, 1), "s": (3, 1)}
    return [symbols(name, *shape) for name, shape in shapes.items()]


def pattern(n, m, batch=2):
    """Segments that differ for each batch and pair: boolean `(batch, 1, n, m)`."""
    return (np.arange(batch * n * m) ** 2 % 3 == 1).reshape(batch, 1, n, m)


# what it is


@example(of=[xlnet.distances, clip], sizes="n <= m <= 6, clamp_len 1, 2, 9 and none")
def distances_pinned():
    """Row c is the distance n_key - c, down to 0 or 1 - n_query; without the first these are Transformer-XL's distances,
    and the first, n_key, belongs to no pair."""
    for n in range(1, 7):
        for m in range(n, 7):
            for kind in xlnet.ATTENTION_TYPES:
                for clamp in (None, 1, 2, 9):
                    got = xlnet.distances(n, m, attn_type=kind, clamp_len=clamp).tolist()
                    expected = [m - c for c in range(m + (n if kind == "bi" else 1))]
                    stated = [min(max(o, -(clamp or 99)), clamp or 99) for o in expected]
                    prove_that(got == stated, f"{n}, {m}, {kind}, {clamp}")
                    shorter = transformer_xl.distances(n, m, bidirectional=kind == "bi", clamp_len=clamp).tolist()
                    prove_that(got[1:] == shorter, "one row more than Transformer-XL")
            pairs = {row(i, j, n, m) for i in range(n) for j in range(m)}
            premise(pairs == set(range(1, n + m)), "the pairs use all rows but the first")


@distances_pinned.claim("XLNet's rows begin at distance n_key, one more than Transformer-XL's.")
def as_many_rows_as_keys():
    """The first row is distance n_key - 1, as in Transformer-XL."""
    prove_equal(xlnet.distances(2, 3, attn_type="bi")[:1], [2])


@theorem(of=SCORES, sizes="all h, n, mem, d: attn_type bi, all pairs in one segment, or none")
def segments_for_all_sizes():
    """The score is the three products, with the row of its distance and the vector of its segment."""
    a, c, scale, at = index(H), index(D), symbol("scale"), row(ROW, COL, N, M)
    q, k, r, e = sized("q", H, N, D), sized("k", H, M, D), sized("r", H, sp.expand(N + M), D), sized("e", 2, H, D)
    u, v, s = (sized(name, H, D) for name in "uvs")
    for kind, truth in ((0, sp.true), (1, sp.false)):
        same = filled((N, M), truth)
        with assuming(*INSIDE):
            query = q.at(a, ROW, c)
            factors = (u, k.at(a, COL, c)), (v, r.at(a, at, c)), (s, e.at(kind, a, c))
            products = [(query + of.at(a, c)) * x for of, x in factors]
            got = xlnet.scores(q, k, r, e, u, v, s, same, scale=scale).at(a, ROW, COL)
            prove_equal([got], [scale.e * sum(sp.Sum(product, (c, 0, D - 1)) for product in products)], mention=[scale])


@segments_for_all_sizes.control
def other_segment_without_a_term():
    """Only pairs in one segment have a term (one query, one key)."""
    q, k, r, e, u, v, s = operands(1, 1, 2)
    got = xlnet.scores(q, k, r, e, u, v, s, np.array([[False]]), scale=1)
    prove_equal(got, every_score(q, k, r, 0 * e, u, v, s, np.array([[False]]), 1))


@theorem(
    of=[*SCORES, transformer_xl.visible],
    sizes="batch 2, h = 3, d = 1; five pairs n <= m of 1 to 6",
    equivalent={
        "scores: kinds = np.swapaxes(segment_embedding[..., None, :], 0, -2)[0]  ->  "
        "kinds = np.swapaxes(segment_embedding[..., None, :], 0, -2)[-1]": "the axis has one entry"
    },
)
def scores_pinned():
    """scores is the definition for any segments, one matrix of them or one for each batch; with attn_type uni the scores of the
    future are exactly 0, and the others equal those of bi."""
    scale = symbol("scale")
    for n, m in SIZES:
        q, k, r, e, u, v, s = operands(n, m, n + m)
        for same in (pattern(n, m), pattern(n, m)[0, 0]):
            both = xlnet.scores(q, k, r, e, u, v, s, same, scale=scale)
            prove_equal(both, every_score(q, k, r, e, u, v, s, same, scale), mention=[scale])
        past = xlnet.scores(q, k, r[:, : m + 1], e, u, v, s, same, scale=scale)
        prove_equal(past, every_score(q, k, r[:, : m + 1], e, u, v, s, same, scale))
        seen = transformer_xl.visible(n, m)
        prove_equal(past[..., seen], both[..., seen])


@scores_pinned.claim("Row 0 is for the same segment.")
def segments_exchanged():
    """Row 0 of the segment embedding is for another segment."""
    q, k, r, e, u, v, s = operands(1, 2, 3)
    same = np.array([[True, False]])
    prove_equal(xlnet.scores(q, k, r, e, u, v, s, same, scale=1), xlnet.scores(q, k, r, e[::-1], u, v, s, same, scale=1))


@scores_pinned.control
def segment_is_not_scaled():
    """The scale is that of content and position."""
    q, k, r, e, u, v, s = operands(1, 1, 2)
    same = np.array([[True]])
    got = xlnet.scores(q, k, r, e, u, v, s, same, scale=2)
    prove_equal(got[0, 0, 0, 0], xlnet.scores(q, k, r, e / 2, u, v, s, same, scale=2)[0, 0, 0, 0])


# what it does


@theorem(of=[xlnet.scores, transformer_xl.scores], sizes="batch 2, h = 3, d = 1; five pairs n <= m", as_written="runs")
def without_segments_transformer_xl():
    """If all tokens are of one segment, the segment term is one number in each row, which softmax does not see. With e = 0 the
    score is Transformer-XL's with r without its first row, which no score reads."""
    for n, m in SIZES:
        q, k, r, e, u, v, s = operands(n, m, n + m)
        for rows in (n + m, m + 1):
            plain = transformer_xl.scores(q, k, r[:, 1:rows], u, v, scale=1)
            got = xlnet.scores(q, k, r[:, :rows], 0 * e, u, v, s, pattern(n, m), scale=1)
            prove_equal(got, plain, mention=r[:, 1:rows])
            unseen = np.concatenate([0 * r[:, :1], r[:, 1:rows]], axis=1)
            prove_equal(xlnet.scores(q, k, unseen, 0 * e, u, v, s, pattern(n, m), scale=1), plain)
        if m == 1:
            continue  # one key: nothing differs in a row
        one = xlnet.scores(q, k, r, e, u, v, s, np.full((n, m), True), scale=1)
        added = one - transformer_xl.scores(q, k, r[:, 1:], u, v, scale=1)
        prove_equal(added, np.broadcast_to(added[..., :1], added.shape), mention=s)


@without_segments_transformer_xl.claim("The first row, not the last, belongs to no pair.")
def rows_of_transformer_xl():
    """r may be that of Transformer-XL, its last row left out."""
    q, k, r, e, u, v, s = operands(2, 2, 4)
    got = xlnet.scores(q, k, r, 0 * e, u, v, s, pattern(2, 2), scale=1)
    prove_equal(got, transformer_xl.scores(q, k, r[:, :-1], u, v, scale=1))


@without_segments_transformer_xl.control
def segments_never_matter():
    """With two segments the term is a number for each row, too."""
    q, k, r, e, u, v, s = operands(1, 2, 3)
    same = np.array([[True, False]])
    added = xlnet.scores(q, k, r, e, u, v, s, same, scale=1) - transformer_xl.scores(q, k, r[:, 1:], u, v, scale=1)
    prove_equal(added[..., 0], added[..., 1])


@theorem(of=SCORES, sizes="batch 2, h = 3, n = 3, m = 5, d = 1; both types")
def translation_invariant():
    """Dropping the oldest key, which moves all others by one, leaves the other scores as they are, and the last query decoded
    alone has the last row; segments enter as the same or not, so their ids may be renamed."""
    q, k, r, e, u, v, s = operands(3, 5, 8)
    ids = np.array([0, 0, 1, 1, 0])
    same = ids[2:, None] == ids
    for rows, alone in ((8, 6), (6, 6)):
        full = xlnet.scores(q, k, r[:, :rows], e, u, v, s, same, scale=1)
        prove_equal(full, every_score(q, k, r[:, :rows], e, u, v, s, same, 1), mention=[*r[:, 1:rows].ravel(), *e.ravel()])
        later = xlnet.scores(q, k[:, :, 1:], r[:, 1:rows], e, u, v, s, same[:, 1:], scale=1)
        prove_equal(later, full[..., 1:])
        step = xlnet.scores(q[:, :, 2:], k, r[:, :alone], e, u, v, s, same[2:], scale=1)
        prove_equal(step, full[:, :, 2:])
        renamed = xlnet.scores(q, k, r[:, :rows], e, u, v, s, (7 - ids)[2:, None] == 7 - ids, scale=1)
        prove_equal(renamed, full)


@translation_invariant.claim("XLNet asks whether two tokens share a segment, never which one it is.")
def segments_by_their_number():
    """The vector is that of the key's segment, as in BERT: it changes when the two ids are exchanged."""
    q, k, r, e, u, v, s = operands(1, 2, 3)
    by_number, by_relation = np.array([[True, False]]), np.array([[False, True]])  # a query of segment 1, keys of 0 and 1
    prove_equal(*(xlnet.scores(q, k, r, e, u, v, s, same, scale=1) for same in (by_number, by_relation)))
