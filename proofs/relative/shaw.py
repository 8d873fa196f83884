"""Shaw et al.: one vector an offset, added to keys and to values."""

import mpmath
import numpy as np

from posref import attention
from posref.relative import shaw
from posref.relative.offsets import clip, offsets
from proofs.attention import definition as softmax
from proofs.attention import rows
from proofs.kit import array, prove_equal, prove_that, symbol, symbols, theorem
from proofs.relative.offsets import clipped
from proofs.vectors import average, case, dot, exact, flag, painted, total
from proofs.vectors import softmax as weighted

SCORES = [shaw.scores, shaw._content, shaw._max_distance, clip]
KEY, BOTH = shaw.VARIANTS
FORMS = [(variant, heads) for variant in shaw.VARIANTS for heads in ((), (3,))]


def vector(table, offset):
    """a_ij = w_clip(j - i, -k, k), the rows of w being -k .. k. Shaw et al., section 3.2."""
    k = len(table) // 2
    return table[clipped(offset, -k, k) + k]


def definition(q, k, table, offset, scale, variant="relative_key"):
    """scale q . (k + a), Eq. (4); with the product k . a as well, Huang et al. 2020, method 4."""
    a = vector(table, offset)
    score = sum(x * (y + z) for x, y, z in zip(q, k, a, strict=True))
    if variant == "relative_key_query":
        score = score + sum(y * z for y, z in zip(k, a, strict=True))
    return scale * score


def output(weights, v, table, at):
    """sum_j weight_j (v_j + a_ij), Eq. (3), for the offsets `at` of one query."""
    return sum(w * (value + vector(table, o)) for w, value, o in zip(weights, v, at, strict=True))


def every_score(q, k, table, at, scale, variant):
    """`definition` for all batches, heads and pairs."""
    shape = (*q.shape[:-1], k.shape[-2])
    at, out = np.broadcast_to(at, shape), np.empty(shape, dtype=object)
    for b, h, i, j in np.ndindex(*shape):
        own = table[h] if table.ndim == 3 else table
        out[b, h, i, j] = definition(q[b, h, i], k[b, h, j], own, at[b, h, i, j], scale, variant)
    return out


def contiguous(n, m):
    """Offsets of n queries at the end of m keys."""
    return offsets(np.arange(m - n, m), np.arange(m))


# what it is


@theorem(of=[shaw.embed, shaw._max_distance, clip], sizes="h = 3, k = 2; every offset up to 5 and 10^9")
def table_pinned():
    """embed gives row clip(j - i, -k, k) + k, of the table of each head if there are heads; k is half the number of rows."""
    at = np.array([[-5, -3, -2, -1, 0], [1, 2, 3, 5, 10**9]])
    for lead in ((), (3,)):
        w = symbols("w", *lead, 5, 2)
        got = shaw.embed(w, at)
        tables = w if lead else [w]
        expected = [[[vector(table, o) for o in row] for row in at.tolist()] for table in tables]
        prove_equal(got, expected if lead else expected[0], mention=w)
    prove_that(shaw.embed(w, at[None, None])[:, 0].shape == (1, 2, 5, 2), "a batch of offsets has as many axes as the scores")


@table_pinned.control
def last_row_for_the_last_offset_but_one():
    """k rows on each side and none for 0: the clip ends at k - 1."""
    w = symbols("w", 5, 1)
    prove_equal(shaw.embed(w, np.array([[1]])), [[w[4]]])


@theorem(of=[shaw.scores, shaw._content, shaw._max_distance, clip], sizes="batch 2, h = 3, n = 2, m = 5, k = 3, d = 2")
def scores_pinned():
    """scores is scale q_i . (k_j + a_ij), and + scale k_j . a_ij for relative_key_query, for any integer offsets: one matrix of
    them or one for each batch, one table or one for each head."""
    q, k, scale = symbols("q", 2, 3, 2, 2), symbols("k", 2, 3, 5, 2), symbol("scale")
    at = (np.arange(20).reshape(2, 1, 2, 5) * 7) % 13 - 6
    for variant, heads in FORMS:
        w = symbols("w", *heads, 7, 2)
        for each in (at[0, 0], at):
            got = shaw.scores(q, k, w, each, scale=scale, variant=variant)
            prove_equal(got, every_score(q, k, w, each, scale, variant), mention=[scale])
    prove_equal(shaw.scores(q, k, w, at, scale=1), every_score(q, k, w, at, 1, "relative_key"))


@scores_pinned.control
def position_is_not_scaled():
    """The scale is that of q . k alone."""
    q, k, w, scale = symbols("q", 1, 2), symbols("k", 1, 2), symbols("w", 3, 2), symbol("scale")
    got = shaw.scores(q, k, w, np.array([[1]]), scale=scale)
    prove_equal(got[0], [scale * (q[0] @ k[0]) + q[0] @ w[2]])


@scores_pinned.control
def keys_by_their_own_offset():
    """In relative_key_query the key meets a_ji."""
    q, k, w = symbols("q", 1, 2), symbols("k", 1, 2), symbols("w", 3, 2)
    got = shaw.scores(q, k, w, np.array([[1]]), scale=1, variant="relative_key_query")
    prove_equal(got[0], [q[0] @ k[0] + q[0] @ w[2] + k[0] @ w[0]])


CHECKED = "read for its heads and width alone, which k has as well"


@theorem(
    of=[shaw.scores_naive, shaw.scores_skewed, shaw.embed, *SCORES],
    sizes="h = 3, k = 2, d = 2; (n, m) = (2, 5), (1, 4), (3, 3)",
    equivalent={
        "_content: content, distance = (attention.scores(q, k, scale=1), _require_table(function, 'key_table', key_table, "
        "'q', q))  ->  content, distance = (attention.scores(q, k, scale=1), _require_table(function, 'key_table', key_table, "
        "'q', k))": CHECKED,
        "scores_skewed: distance = _require_table('shaw.scores_skewed', 'key_table', key_table, 'q', q)  ->  "
        "distance = _require_table('shaw.scores_skewed', 'key_table', key_table, 'q', k)": CHECKED,
    },
)
def forms_equal():
    """scores = scores_naive, for any offsets; scores = scores_skewed where the queries are the last of contiguous keys."""
    scale = symbol("scale")
    for n, m in ((2, 5), (1, 4), (3, 3)):
        q, k = symbols("q", 3, n, 2), symbols("k", 3, m, 2)
        for variant, heads in FORMS:
            w = symbols("w", *heads, 5, 2)
            at = contiguous(n, m)[::-1] + 1
            gathered = shaw.scores(q, k, w, at, scale=scale, variant=variant)
            prove_equal(shaw.scores_naive(q, k, w, at, scale=scale, variant=variant), gathered, mention=[scale])
            prove_equal(shaw.scores_skewed(q, k, w, scale=scale), shaw.scores(q, k, w, contiguous(n, m), scale=scale))
    prove_equal(shaw.scores_naive(q, k, w, at, scale=scale), shaw.scores(q, k, w, at, scale=scale))


@forms_equal.control
def skewed_for_queries_at_the_start():
    """scores_skewed is meant for queries that begin with the keys."""
    q, k, w = symbols("q", 1, 2, 1), symbols("k", 1, 3, 1), symbols("w", 5, 1)
    prove_equal(shaw.scores_skewed(q, k, w, scale=1), shaw.scores(q, k, w, contiguous(3, 3)[:2], scale=1))


@theorem(
    of=[shaw.attend, shaw.embed, attention.softmax, *SCORES],
    sizes="batch 2, h = 3, n = 2, m = 4, k = 1, d = 1, d_v = 2",
    equivalent={
        "attend: return weights @ v + (weights[..., None, :] @ embed(value_table, offsets))[..., 0, :]  ->  "
        "return weights @ v + (weights[..., None, :] @ embed(value_table, offsets))[..., -1, :]": "the axis has one entry"
    },
)
def attend_pinned():
    """attend is sum_j softmax_j(s_ij) (v_j + a^V_ij), a^V from one table or one for each head, or sum_j softmax_j(s_ij) v_j
    without one; a masked key has no part in either. Scores are integers times a positive symbol, values are free."""
    unit, at = symbol("unit", positive=True), contiguous(2, 4)
    q, k = np.arange(1, 13).reshape(2, 3, 2, 1) ** 2, np.arange(2, 26).reshape(2, 3, 4, 1) ** 3
    w, v = np.array([[5], [31], [7]]), symbols("v", 2, 3, 4, 2)
    mask = np.array([[True, False, True, True], [False, True, True, False]])
    one, each = symbols("a", 3, 2), symbols("a", 3, 3, 2)
    for seen, values, variant in ((None, one, KEY), (mask, each, BOTH), (mask, None, KEY), (None, None, BOTH)):
        got = shaw.attend(q, k, v, w, values, at, scale=unit, mask=seen, variant=variant)
        s, expected = every_score(q, k, w, at, unit, variant), np.empty((2, 3, 2, 2), dtype=object)
        for b, h, i in np.ndindex(2, 3, 2):
            weights = array(softmax(rows(s[b, h])[i], None if seen is None else seen[i]))
            own = np.zeros((3, 2), dtype=int) if values is None else values[h] if values is each else values
            expected[b, h, i] = output(weights, v[b, h], own, at[i].tolist())
        prove_equal(got, expected)


@attend_pinned.control
def values_without_the_term():
    """The value term can be left out unseen."""
    q, v, a = array([[0]]), symbols("v", 2, 1), symbols("a", 3, 1)
    w = array([[0], [0], [0]])
    prove_equal(shaw.attend(q, 0 * v, v, w, a, np.array([[0, 1]]), scale=1), [(v[0] + v[1]) / 2])


@attend_pinned.control
def values_take_the_table_of_the_keys():
    """The same table serves keys and values, as in NEZHA."""
    q, k, v, w, a = array([[0]]), array([[0]]), symbols("v", 1, 1), symbols("w", 1, 1), symbols("a", 1, 1)
    prove_equal(shaw.attend(q, k, v, w, a, np.array([[0]]), scale=1), [v[0] + w[0]])


@theorem(of=[shaw.attend, *SCORES], sizes="h = 3, n = 3, m = 5, k = 1, d = 1, d_v = 2")
def values_by_offset():
    """The value term is (weights summed over the keys of one clipped offset) @ table: no array of (n, m, d) is needed. Eq. (5)
    does this for the keys."""
    unit, at = symbol("unit", positive=True), contiguous(3, 5)
    q, k = np.arange(1, 10).reshape(3, 3, 1), unit * (np.arange(2, 17).reshape(3, 5, 1) ** 3)
    w, v, a = unit * np.array([[5], [31], [7]]), symbols("v", 3, 5, 2), symbols("a", 3, 2)
    weights = attention.softmax(shaw.scores(q, k, w, at, scale=1))
    summed = np.stack([np.where(clip(at, -1, 1) == o, weights, 0).sum(axis=-1) for o in (-1, 0, 1)], axis=-1)
    prove_equal(shaw.attend(q, k, v, w, a, at, scale=1), weights @ v + summed @ a, mention=a)


@values_by_offset.control
def values_by_the_mean_of_the_table():
    """The value term is the same for every query, so that it could be merged with a bias of the layer."""
    zero, a = array([[0], [0]]), symbols("a", 3, 1)
    out = shaw.attend(zero, zero, zero, array([[0], [0], [0]]), a, contiguous(2, 2), scale=1)
    prove_equal(out[0], out[1])


# what it does


@theorem(of=[shaw.scores, shaw.attend, shaw.embed, offsets, clip], sizes="h = 2, n = 2, m = 4, k = 2, d = 1; shifts")
def translation_invariant():
    """Scores do not change when all tokens move: positions enter through clipped offsets, and those do not change for any
    positions and shifts (proofs/relative/offsets.py: clip_saturates). All offsets beyond k are one; every row of the table is
    used by some offset, so within k the offset does matter."""
    q, k, w = symbols("q", 2, 2, 1), symbols("k", 2, 4, 1), symbols("w", 5, 1)
    query, key = np.array([3, 4]), np.array([1, 3, 4, 9])
    here = shaw.scores(q, k, w, offsets(query, key), scale=1)
    for s in (-1, 5, 10**9):
        prove_equal(shaw.scores(q, k, w, offsets(query + s, key + s), scale=1), here)
    zero, v = 0 * q, symbols("v", 2, 4, 1)
    out = shaw.attend(zero, zero[:, [0, 0, 1, 1]], v, 0 * w, w, offsets(query, key), scale=1)
    prove_equal(shaw.attend(zero, zero[:, [0, 0, 1, 1]], v, 0 * w, w, offsets(query + 7, key + 7), scale=1), out, mention=v)
    prove_equal(shaw.embed(w, np.array([[-3, -100, 3, 10**9]])), [[w[0], w[0], w[4], w[4]]])
    prove_equal(shaw.embed(w, np.arange(-2, 3)[None]), [list(w)], mention=w)


@translation_invariant.control
def invariant_when_keys_alone_move():
    """A cached step may count its query from 0."""
    q, k, w = symbols("q", 1, 1), symbols("k", 3, 1), symbols("w", 5, 1)
    prove_equal(shaw.scores(q, k, w, contiguous(1, 3), scale=1), shaw.scores(q, k, w, contiguous(3, 3)[:1], scale=1))


@translation_invariant.control
def all_distances_are_told_apart():
    """Two keys at different distances have different position terms (k = 2, offsets 2 and 3: they have one)."""
    w = symbols("w", 5, 1)
    prove_that(str(shaw.embed(w, np.array([[2]]))) != str(shaw.embed(w, np.array([[3]]))), "offsets 2 and 3")


# tables of others


@theorem(of=[shaw.embed, shaw.scores, shaw._max_distance], sizes="k = 2; every offset up to 5")
def query_minus_key_is_the_table_reversed():
    """w[clip(i - j)], as Su's survey writes and BERT in transformers 4 computes, is this encoding with the table reversed."""
    w, at = symbols("w", 5, 2), np.arange(-5, 6)[None]
    prove_equal(shaw.embed(w[::-1], at), [[vector(w, -o) for o in at[0].tolist()]], mention=w)
    q, k = symbols("q", 1, 2), symbols("k", 11, 2)
    prove_equal(shaw.scores(q, k, w[::-1], at, scale=1), shaw.scores(q, k, w, -at, scale=1))


@query_minus_key_is_the_table_reversed.control
def query_minus_key_is_the_same():
    """w[clip(i - j)] is Shaw's w[clip(j - i)]."""
    w, at = symbols("w", 3, 1), np.array([[-1, 0, 1]])
    prove_equal(shaw.embed(w, at), shaw.embed(w, -at))


@theorem(of=[shaw.embed, shaw._max_distance], sizes="left = 4, right = 1; every offset up to 6")
def one_sided_clip():
    """A table for clip(j - i, -left, right) with left > right, as in Wav2Vec2-BERT, is Shaw's after its last row was repeated
    left - right times."""
    w, at = symbols("w", 6, 2), np.arange(-6, 7)[None]
    longer = np.concatenate([w, w[[-1, -1, -1]]])
    prove_equal(shaw.embed(longer, at), [[w[clipped(o, -4, 1) + 4] for o in at[0].tolist()]], mention=w)


@one_sided_clip.control
def one_sided_as_it_is():
    """A table of odd length needs no repetition (left = 3, right = 1)."""
    w = symbols("w", 5, 1)
    prove_equal(shaw.embed(w, np.array([[0]])), [[w[3]]])


# golden vectors

SOURCES = (
    "Shaw et al., Self-Attention with Relative Position Representations, arXiv 1803.02155, Eqs. (3) and (4)",
    "Huang et al., Improve Transformer Models with Better Relative Position Embeddings, arXiv 2009.13658, section 3",
)

CONVENTIONS = {
    "axes": "q, k, v are (batch, heads, n, d); tables are (2k + 1, d) or (heads, 2k + 1, d), row r for the offset r - k",
    "mask": "causal: the key's position is at most the query's",
    "offset": "key position - query position, limited to -k .. k",
    "op attend": "softmax(scores) (v + value vector of the offset); without value_table softmax(scores) v",
    "op scores": "scale q . (k + key vector of the offset), and + scale k . (that vector) for relative_key_query",
}

FLAGS = {
    "transposed": flag("query - key", "The table is read in reverse.", "Past and future change places."),
    "clip_one_early": flag(
        "clip to (-k, k - 1)", "DeBERTa's interval on Shaw's table.", "The far future shares a row with its neighbor."
    ),
    "clip_low_late": flag("clip to (1 - k, k)", "The first row is never used.", "The far past shares a row with its neighbor."),
    "no_position": flag("no key vectors", "The position term is left out.", "The scores see no order."),
    "content_scaled_alone": flag(
        "scale q . k + q . a", "The position term is not scaled.", "Position outweighs content by sqrt(d)."
    ),
    "position_of_the_key": flag("k . a instead of q . a", "The vector meets the key.", "Another method of the same paper."),
    "other_variant": flag("the other variant", "k . a is added, or left out.", "A term too many or too few."),
    "key_term_transposed": flag(
        "k_j . a_ji", "The key's product takes the offset of the query.", "Past and future change places in one term."
    ),
    "table_of_the_first_head": flag("one table for all heads", "Every head reads the first table.", "Heads look alike."),
    "positions_ignored": flag(
        "0, 1, 2, .. instead of the positions given", "The cache is not counted.", "Decoding and packed sequences go wrong."
    ),
    "positions_shared_across_batch": flag("positions of the first batch row", "Every row uses row 0.", "Batches go wrong."),
    "no_value_term": flag("no value vectors", "Eq. (3) is computed without a^V.", "Values carry no position."),
    "value_transposed": flag(
        "value vectors of query - key", "The value table is read in reverse.", "Past and future change places in the values."
    ),
    "value_by_key_table": flag("one table", "Values take the vectors of the keys.", "NEZHA's sharing, without being NEZHA."),
    "no_mask": flag("no mask", "Keys of the future are seen.", "Training looks better than decoding."),
}

PADDED = np.array([[0, 0, 1, 2, 3], [0, 1, 2, 3, 4]])  # the first row is padded on the left by a token


def vectors():
    every = "transposed clip_one_early clip_low_late no_position content_scaled_alone position_of_the_key other_variant"
    for variant in shaw.VARIANTS:
        both = " key_term_transposed" if variant == "relative_key_query" else ""
        yield _scores("chunk", [1, 4], range(5), variant, every + both + " positions_ignored")
        yield _scores("decode", [48043], [0, 48041, 48042, 48043, 48050], variant, "transposed positions_ignored" + both)
    yield _scores("heads", [1, 4], range(5), "relative_key", every + " table_of_the_first_head", heads=True)
    yield _scores("padded", PADDED[:, 2:], PADDED, "relative_key", "transposed positions_shared_across_batch")
    mistakes = "transposed no_position no_value_term value_transposed value_by_key_table"
    yield _attend("chunk", [1, 4], mistakes + " positions_ignored", causal=False)
    yield _attend("masked", [2, 4], mistakes + " no_mask", causal=True)
    yield _attend("decode", [4], "no_value_term value_by_key_table clip_low_late positions_ignored", causal=True)
    yield _attend("heads", [1, 4], mistakes + " table_of_the_first_head", causal=False, heads=True)
    yield _attend("keys-only", [1, 4], "transposed no_position", causal=False, values=False)


def rearranged(how, pair):
    """A view or selection of a value and its sensitivities."""
    value, cond = pair
    return how(value), {name: how(each) for name, each in cond.items()}


def _rows(queries, keys, k, mistake):
    """The row of the table for every pair: `(batch or 1, 1, n_query, n_key)`."""
    queries, keys = np.atleast_2d(queries), np.atleast_2d(keys)
    if mistake == "positions_ignored":
        queries, keys = (np.broadcast_to(np.arange(at.shape[-1]), at.shape) for at in (queries, keys))
    if mistake == "positions_shared_across_batch":
        queries, keys = np.broadcast_to(queries[0], queries.shape), np.broadcast_to(keys[0], keys.shape)
    sign = -1 if mistake == "transposed" else 1
    low, high = -k + (mistake == "clip_low_late"), k - (mistake == "clip_one_early")
    at = sign * (keys[:, None, None, :] - queries[:, None, :, None])
    return np.vectorize(lambda o: clipped(o, low, high) + k)(at)


def _by_row(products, at):
    """Entry (i, row of (i, j)) of the products with all rows of a table."""
    spread = lambda x: np.take_along_axis(x, np.broadcast_to(at, (*x.shape[:2], *at.shape[2:])), axis=-1)
    return rearranged(spread, products)


def _all_scores(q, k, table, at, scale, variant, mistake):
    q, k, variants, last = exact(q), exact(k), list(shaw.VARIANTS), table.shape[-2] - 1
    if mistake == "other_variant":
        variant = variants[1 - variants.index(variant)]
    if mistake == "table_of_the_first_head":
        table = np.broadcast_to(table[:1], table.shape)
    table = exact(table * (mistake != "no_position"))
    swap = lambda x: np.swapaxes(x, -1, -2)
    by_key = lambda at: rearranged(swap, _by_row(dot(k, table, scale), swap(at)))
    position = by_key(at) if mistake == "position_of_the_key" else _by_row(dot(q, table, scale), at)
    if mistake == "content_scaled_alone":
        position = _by_row(dot(q, table), at)
    parts = [dot(q, k, scale), position]
    if variant == "relative_key_query":
        parts.append(by_key(last - at if mistake == "key_term_transposed" else at))
    return total(*parts)


def _case(op, probe, queries, keys, params, tensors, result, mistakes, comment=""):
    expected, cond = result()
    q = tensors["q"]
    return case(
        f"shaw/{params['variant'].replace('_', '-')}/h{q.shape[1]}-d{q.shape[-1]}-k2/{op}-{probe}",
        op=op,
        params=params,
        tensors={**tensors, "queries": np.array(queries), "keys": np.array(keys)},
        expected=expected,
        cond=cond,
        mistakes={mistake: result(mistake)[0] for mistake in mistakes.split()},
        comment=comment,
    )


def _scores(probe, queries, keys, variant, mistakes, heads=False):
    scale, table = mpmath.mpf(1) / 2, painted((3, 5, 4) if heads else (5, 4), 4)
    q, k = painted((2, 3, np.shape(queries)[-1], 4), 1), painted((2, 3, 5, 4), 2)

    def result(mistake=None):
        return _all_scores(q, k, table, _rows(queries, keys, 2, mistake), scale, variant, mistake)

    params = {"variant": variant, "scale": 0.5}
    return _case("scores", probe, queries, keys, params, {"q": q, "k": k, "key_table": table}, result, mistakes)


def _attend(probe, queries, mistakes, causal, heads=False, values=True):
    scale, keys, lead = mpmath.mpf(1) / 2, np.arange(5), (3,) if heads else ()
    q, k, v = painted((2, 3, len(queries), 4), 1), painted((2, 3, 5, 4), 2), painted((2, 3, 5, 4), 6)
    table, value_table = painted((*lead, 5, 4), 4), painted((*lead, 5, 4), 8)
    mask = (keys <= np.array(queries)[:, None]) | (not causal)

    def result(mistake=None):
        at = _rows(queries, keys, 2, mistake)
        scores = _all_scores(q, k, table, at, scale, "relative_key", mistake)
        weights = weighted(scores, None if mistake == "no_mask" else mask)
        out = average(weights, exact(v))
        if not values or mistake == "no_value_term":
            return out
        own = table if mistake == "value_by_key_table" else value_table
        own = np.broadcast_to(own[:1], own.shape) if mistake == "table_of_the_first_head" else own
        at = 4 - at if mistake == "value_transposed" else at
        a = own[:, at[0, 0]] if heads else own[at[0, 0]]
        term = average(rearranged(lambda x: x[..., None, :], weights), exact(a))
        return total(out, rearranged(lambda x: x[..., 0, :], term))

    tensors = {"q": q, "k": k, "v": v, "key_table": table} | ({"value_table": value_table} if values else {})
    params = {"variant": "relative_key", "scale": 0.5, "causal": causal}
    return _case("attend", probe, queries, keys, params, tensors, result, mistakes)
