"""XLNet: Transformer-XL's score in both directions, and a term for the segment."""

import mpmath
import numpy as np
import sympy as sp

from posref.relative import transformer_xl, xlnet
from posref.relative.offsets import clip
from proofs.kit import assuming, filled, index, prove_equal, prove_that, sized, symbol, symbols, theorem
from proofs.relative.shaw import rearranged
from proofs.relative.transformer_xl import COL, INSIDE, ROW, SIZES, D, H, M, N
from proofs.relative.transformer_xl import definition as four_terms
from proofs.vectors import average, case, dot, exact, flag, painted, softmax, total


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


@theorem(of=[xlnet.distances, clip], sizes="n <= m <= 6, clamp_len 1, 2, 9 and none")
def distances_pinned():
    """Row c is the distance n_key - c, down to 0 or 1 - n_query; without the first these are Transformer-XL's distances,
    and the first, n_key, belongs to no pair."""
    for n in range(1, 7):
        for m in range(n, 7):
            for kind in xlnet.ATTENTION_TYPES:
                for clamp in (None, 1, 2, 9):
                    got = xlnet.distances(n, m, attn_type=kind, clamp_len=clamp).tolist()
                    expected = [m - c for c in range(m + (n if kind == "bi" else 1))]
                    prove_that(
                        got == [min(max(o, -(clamp or 99)), clamp or 99) for o in expected], f"{n}, {m}, {kind}, {clamp}"
                    )
                    shorter = transformer_xl.distances(n, m, bidirectional=kind == "bi", clamp_len=clamp).tolist()
                    prove_that(got[1:] == shorter, "one row more than Transformer-XL")
            pairs = {row(i, j, n, m) for i in range(n) for j in range(m)}
            prove_that(pairs == set(range(1, n + m)), "the pairs use all rows but the first")


@distances_pinned.control
def as_many_rows_as_keys():
    """The first row is distance n_key - 1, as in Transformer-XL."""
    prove_that(xlnet.distances(2, 3, attn_type="bi")[0] == 2, "the first distance")


@theorem(of=[xlnet.scores, transformer_xl.scores], sizes="all h, n, mem, d: attn_type bi, all pairs in one segment, or none")
def segments_for_all_sizes():
    """The score is the three products, with the row of its distance and the vector of its segment."""
    a, c, scale, at = index(H), index(D), symbol("scale"), row(ROW, COL, N, M)
    q, k, r, e = sized("q", H, N, D), sized("k", H, M, D), sized("r", H, sp.expand(N + M), D), sized("e", 2, H, D)
    u, v, s = (sized(name, H, D) for name in "uvs")
    for kind, truth in ((0, sp.true), (1, sp.false)):
        same = filled((N, M), truth)
        with assuming(*INSIDE):
            got = xlnet.scores(q, k, r, e, u, v, s, same, scale=scale).at(a, ROW, COL)
        query = q.at(a, ROW, c)
        products = (
            (query + u.at(a, c)) * k.at(a, COL, c),
            (query + v.at(a, c)) * r.at(a, at, c),
            (query + s.at(a, c)) * e.at(kind, a, c),
        )
        prove_equal([got], [scale.e * sum(sp.Sum(product, (c, 0, D - 1)) for product in products)], mention=[scale])


@segments_for_all_sizes.control
def other_segment_without_a_term():
    """Only pairs in one segment have a term (one query, one key)."""
    q, k, r, e, u, v, s = operands(1, 1, 2)
    got = xlnet.scores(q, k, r, e, u, v, s, np.array([[False]]), scale=1)
    prove_equal(got, every_score(q, k, r, 0 * e, u, v, s, np.array([[False]]), 1))


@theorem(of=[xlnet.scores, transformer_xl.scores, transformer_xl.visible], sizes="batch 2, h = 3, d = 1; five pairs n <= m")
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


@scores_pinned.control
def segments_exchanged():
    """Row 0 of the segment embedding is for another segment, as an id of 0 for "same" is read the wrong way."""
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


@theorem(of=[xlnet.scores, transformer_xl.scores], sizes="batch 2, h = 3, d = 1; five pairs n <= m")
def without_segments_transformer_xl():
    """With one segment the term adds a number to every row, which softmax does not see; with e = 0 the score is
    Transformer-XL's at r without its first row, which no score knows."""
    for n, m in SIZES:
        q, k, r, e, u, v, s = operands(n, m, n + m)
        for rows in (n + m, m + 1):
            plain = transformer_xl.scores(q, k, r[:, 1:rows], u, v, scale=1)
            got = xlnet.scores(q, k, r[:, :rows], 0 * e, u, v, s, pattern(n, m), scale=1)
            prove_equal(got, plain, mention=r[:, 1:rows])
            prove_that(
                not {x.e for x in r[:, 0].ravel()} & set().union(*(x.free_symbols for x in exprs(got))), "row 0 is unseen"
            )
        one = xlnet.scores(q, k, r, e, u, v, s, np.full((n, m), True), scale=1)
        added = one - transformer_xl.scores(q, k, r[:, 1:], u, v, scale=1)
        prove_equal(added, np.broadcast_to(added[..., :1], added.shape), mention=s)


def exprs(values):
    """The expressions of an array of scalars and numbers."""
    return [sp.sympify(getattr(value, "e", value)) for value in values.ravel()]


@without_segments_transformer_xl.control
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


@theorem(of=[xlnet.scores], sizes="batch 2, h = 3, n = 3, m = 5, d = 1; both types")
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


@translation_invariant.control
def segments_by_their_number():
    """The vector is that of the key's segment, as in BERT: it changes when the two ids are exchanged."""
    q, e = symbols("q", 1), symbols("e", 2, 1)
    prove_equal([q @ e[0]], [q @ e[1]])


# golden vectors

SOURCES = (
    "Yang et al., XLNet, arXiv 1906.08237, sections 2.4 and 2.5",
    "zihangdai/xlnet, modeling.py, relative_positional_encoding, rel_shift, rel_attn_core",
)

CONVENTIONS = {
    "axes": "q, k are (batch, heads, n, d), r (heads, rows, d), u, v, s (heads, d), e (2, heads, d), same segment first",
    "distance": "query position - key position; the last query stands at the last key; rows of r begin at n_key",
    "future": "scores of uni for keys after the query are 0 and have no meaning",
    "op attend": "softmax(scores) values, masked if uni",
    "op distances": "the distance of every row of r, exactly; clamp_len 0 is none",
    "op scores": "scale ((q + u) . k + (q + v) . r + (q + s) . e)",
    "same": "1 where query and key are in one segment, (n_query, n_key) or (batch, 1, n_query, n_key)",
}

FLAGS = {
    "first_row_kept": flag("rows from distance n_key - 1", "Transformer-XL's rows on XLNet's r.", "Distances are off by one."),
    "not_shifted": flag("no shift", "Row i has the distances of the first row.", "Every query counts from one place."),
    "memory_ignored": flag("distance i - j", "The memory is not counted.", "Distances are too small by its length."),
    "segments_exchanged": flag(
        "e_1 for the same segment", "The two vectors are exchanged.", "Segments repel or attract wrongly."
    ),
    "no_segments": flag("no segment term", "(q + s) . e is left out.", "The model does not see the sentences of a pair."),
    "segment_of_the_first_batch": flag("segments of batch row 0", "Every row uses row 0.", "Batches go wrong."),
    "no_s": flag("q . e", "The vector s is left out.", "No bias of the segments."),
    "segment_not_scaled": flag("scale on the other terms alone", "The segment is not scaled.", "It outweighs content."),
    "vectors_rotated": flag("v, s, u for u, v, s", "The three vectors are in another order.", "All biases are wrong."),
    "clamp_ignored": flag("no clamp_len", "Distances are not limited.", "Far tokens have unseen distances."),
    "clamp_one_side": flag("minimum alone", "Negative distances are not limited.", "Far keys of the future run on."),
    "one_row_less": flag("Transformer-XL's distances", "The list begins at n_key - 1.", "The list has another length."),
    "no_mask": flag("no mask", "Keys of the future are seen.", "Training looks better than decoding."),
}


def vectors():
    for kind, clamp in (("bi", 0), ("uni", 0), ("bi", 2), ("uni", 2)):
        yield _distances(4, 6, kind, clamp)
    every = "first_row_kept not_shifted segments_exchanged no_segments no_s segment_not_scaled vectors_rotated"
    yield _scores("square", 5, 5, "bi", every)
    yield _scores("memory", 2, 5, "bi", every + " memory_ignored", batched=True)
    yield _scores("memory", 2, 5, "uni", every + " memory_ignored", batched=True)
    yield _scores("decode", 1, 5, "bi", "first_row_kept segments_exchanged no_segments no_s segment_not_scaled vectors_rotated")
    yield _attend("square", 5, 5, "uni", "segments_exchanged no_segments no_mask not_shifted")


def _distances(n, m, kind, clamp):
    every = lambda first, low, high: [min(max(o, low), high) for o in range(first, -n if kind == "bi" else -1, -1)]
    limits = (-clamp, clamp) if clamp else (-99, 99)
    wrong = {"one_row_less": every(m - 1, *limits)}
    if clamp:
        wrong["clamp_ignored"] = every(m, -99, 99)
    if clamp and kind == "bi":
        wrong["clamp_one_side"] = every(m, -99, clamp)
    return case(
        f"xlnet/{kind}/q{n}-k{m}/distances" + f"-clamp{clamp}" * bool(clamp),
        op="distances",
        params={"n_query": n, "n_key": m, "attn_type": kind, "clamp_len": clamp},
        tensors={},
        expected=every(m, *limits),
        mistakes=wrong,
    )


def _operands(n, m, kind, batched):
    rows = n + m if kind == "bi" else m + 1
    shapes = {"q": (2, 3, n, 4), "k": (2, 3, m, 4), "r": (3, rows, 4), "e": (2, 3, 4), "u": (3, 4), "v": (3, 4), "s": (3, 4)}
    tensors = {name: painted(shape, tag) for (name, shape), tag in zip(shapes.items(), (1, 2, 4, 6, 8, 9, 10), strict=True)}
    return tensors | {"same": (pattern(n, m) if batched else pattern(n, m)[0, 0]).astype(int)}


def _all_scores(q, k, r, e, u, v, s, same, scale, mistake):
    """Scores and their sensitivities: three products, the second moved, the third chosen."""
    n, m = q.shape[-2], k.shape[-2]
    if mistake == "vectors_rotated":
        u, v, s = v, s, u
    if mistake == "segment_of_the_first_batch":
        same = np.broadcast_to(same[:1], same.shape)
    if mistake == "segments_exchanged":
        same = 1 - same
    content = dot(total(exact(q), exact(u[:, None])), exact(k), scale)
    position = dot(total(exact(q), exact(v[:, None])), exact(r), scale)
    own = 1 if mistake == "segment_not_scaled" else scale
    segment = dot(total(exact(q), exact(s[:, None] * (mistake != "no_s"))), exact(np.swapaxes(e, 0, 1)), own)
    j, i = np.arange(m), np.arange(n)[:, None]
    at = row(i, j, n, m) - (mistake == "first_row_kept")
    if mistake == "not_shifted":
        at = row(0 * i, j, n, m)
    if mistake == "memory_ignored":
        at = at + m - n
    at = np.minimum(at, r.shape[-2] - 1)
    moved = rearranged(lambda x: np.take_along_axis(x, np.broadcast_to(at, (2, 3, n, m)), axis=-1), position)
    chosen = rearranged(lambda x: np.where(same, x[..., :1], x[..., 1:]), segment)
    parts = (content, moved) if mistake == "no_segments" else (content, moved, chosen)
    seen = (r.shape[-2] == n + m) | (j <= i + m - n)
    return rearranged(lambda x: np.where(seen, x, 0), total(*parts))


def _case(op, probe, n, m, kind, tensors, result, mistakes):
    expected, cond = result()
    return case(
        f"xlnet/{kind}/q{n}-k{m}-h3-d4/{op}-{probe}",
        op=op,
        params={"scale": 0.5, "attn_type": kind},
        tensors=tensors,
        expected=expected,
        cond=cond,
        mistakes={mistake: result(mistake)[0] for mistake in mistakes.split()},
    )


def _scores(probe, n, m, kind, mistakes, batched=False):
    tensors, scale = _operands(n, m, kind, batched), mpmath.mpf(1) / 2
    mistakes += " segment_of_the_first_batch" * batched
    result = lambda mistake=None: _all_scores(*tensors.values(), scale, mistake)
    return _case("scores", probe, n, m, kind, tensors, result, mistakes)


def _attend(probe, n, m, kind, mistakes):
    tensors, scale = _operands(n, m, kind, False), mpmath.mpf(1) / 2
    tensors |= {name: tensors[name] / 2 for name in "qkre"}  # scores of moderate size
    values, seen = painted((2, 3, m, 4), 13), np.arange(m) <= np.arange(n)[:, None] + m - n

    def result(mistake=None):
        scores = _all_scores(*tensors.values(), scale, mistake)
        return average(softmax(scores, None if mistake == "no_mask" else seen), exact(values))

    return _case("attend", probe, n, m, kind, {**tensors, "values": values}, result, mistakes)
