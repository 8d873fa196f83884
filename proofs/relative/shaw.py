"""Shaw et al.: one vector per offset, added to keys and to values."""

# Over budget: keys, values, one-sided clips and the gradient

import numpy as np

from posref import attention
from posref.offsets import clip, offsets, scatter_rows
from posref.relative import shaw
from proofs.attention import definition as softmax
from proofs.attention import rows
from proofs.kit import *
from proofs.offsets import clipped

DEFAULTS = {"variant": "relative_key"}

SCORES = [shaw.scores, clip]
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


@theorem(of=[shaw.embed, clip], sizes="h = 3, k = 2; every offset up to 5 and 10^9")
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


@theorem(of=[shaw.scores, clip], sizes="batch 2, h = 3, n = 2, m = 5, k = 3, d = 2")
def scores_pinned():
    """scores is scale q_i . (k_j + a_ij), and + scale k_j . a_ij for relative_key_query, for offsets -6 to 6: one matrix of
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


@theorem(
    of=[shaw.scores_naive, shaw.scores_skewed, shaw.embed, *SCORES],
    sizes="h = 3, k = 2, d = 2; (n, m) = (2, 5), (1, 4), (3, 3)",
)
def forms_equal():
    """scores = scores_naive, for offsets in any order; scores = scores_skewed where the queries are the last of contiguous
    keys."""
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


@forms_equal.claim("scores_skewed is for queries that end with the keys.")
def skewed_for_queries_at_the_start():
    """scores_skewed is meant for queries that begin with the keys."""
    q, k, w = symbols("q", 1, 2, 1), symbols("k", 1, 3, 1), symbols("w", 5, 1)
    prove_equal(shaw.scores_skewed(q, k, w, scale=1), shaw.scores(q, k, w, contiguous(3, 3)[:2], scale=1))


@theorem(
    of=[shaw.attend, shaw.embed, attention.softmax, *SCORES],
    sizes="batch 2, h = 3, n = 2, m = 4, k = 1, d = 1, d_v = 2; one mask",
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


@attend_pinned.claim("Shaw et al. add vectors to the values too; leaving them out changes the output.")
def values_without_the_term():
    """The value term can be left out unseen."""
    q, v, a = array([[0]]), symbols("v", 2, 1), symbols("a", 3, 1)
    w = array([[0], [0], [0]])
    prove_equal(shaw.attend(q, 0 * v, v, w, a, np.array([[0, 1]]), scale=1), [(v[0] + v[1]) / 2])


@attend_pinned.claim("Keys and values have a table each; NEZHA shares one.")
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


@theorem(
    of=[shaw.embed, offsets, clip],  # the others get the same offsets twice
    sizes="h = 2, n = 2, m = 4, k = 2, d = 1; shifts",
    as_written="runs",
)
def translation_invariant():
    """Scores do not change when all tokens move: positions enter through clipped offsets, and those do not change (for
    symbols: clip_saturates of proofs/offsets.py). Offsets beyond k are one; each row of the table is used by some offset, so
    within k the offset does matter."""
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


@translation_invariant.claim("Offsets beyond k are one.")
def all_distances_are_told_apart():
    """Two keys at different distances have different position terms (k = 2, offsets 2 and 3: they have one)."""
    two, three = shaw.embed(np.arange(5)[:, None], np.array([[2, 3]])).ravel().tolist()
    prove_that(two != three, counterexample=f"k = 2: the offset 2 has row {two}, the offset 3 has row {three}")


# tables of other implementations


@theorem(of=[shaw.embed, shaw.scores], sizes="k = 2; every offset up to 5", as_written="runs")
def query_minus_key_is_the_table_reversed():
    """w[clip(i - j)], as Su's survey writes and BERT in transformers 4 computes, is this encoding with the table reversed."""
    w, at = symbols("w", 5, 2), np.arange(-5, 6)[None]
    prove_equal(shaw.embed(w[::-1], at), [[vector(w, -o) for o in at[0].tolist()]], mention=w)
    q, k = symbols("q", 1, 2), symbols("k", 11, 2)
    prove_equal(shaw.scores(q, k, w[::-1], at, scale=1), shaw.scores(q, k, w, -at, scale=1))


@query_minus_key_is_the_table_reversed.claim("With i - j the table is reversed.")
def query_minus_key_is_the_same():
    """w[clip(i - j)] is Shaw's w[clip(j - i)]."""
    w, at = symbols("w", 3, 1), np.array([[-1, 0, 1]])
    prove_equal(shaw.embed(w, at), shaw.embed(w, -at))


@theorem(of=[shaw.embed], sizes="left = 4, right = 1; every offset up to 6", as_written="formula")
def one_sided_clip():
    """A table for clip(j - i, -left, right) with left > right, as in Wav2Vec2-BERT, is Shaw's after its last row was repeated
    left - right times."""
    w, at = symbols("w", 6, 2), np.arange(-6, 7)[None]
    longer = np.concatenate([w, w[[-1, -1, -1]]])
    prove_equal(shaw.embed(longer, at), [[w[clipped(o, -4, 1) + 4] for o in at[0].tolist()]], mention=w)


@one_sided_clip.claim("The last row has to be repeated left - right times.")
def one_sided_as_it_is():
    """A table of odd length needs no repetition (left = 3, right = 1)."""
    w = symbols("w", 5, 1)
    prove_equal(shaw.embed(w, np.array([[0]])), [[w[3]]])


@theorem(of=[shaw.scores_gradient, scatter_rows], sizes="batch 2, one head, 2 queries, 3 keys, d = 1, reach 2")
def gradient_by_calculus():
    """By symbolic differentiation of <g, scores>, scores_gradient is the gradient by q, k and the table, for both variants,
    where each text of a batch has offsets of its own; a text without a batch has the same gradient."""
    q, k, w, g, scale = symbols("q", 2, 2, 1), symbols("k", 2, 3, 1), symbols("w", 5, 1), symbols("g", 2, 2, 3), symbol("scale")
    at = np.array([[[-3, 0, 1], [-1, 2, 0]], [[4, 0, -2], [1, 1, -1]]])
    for variant in shaw.VARIANTS:
        stated = every_score(q[:, None], k[:, None], w, at[:, None], scale, variant)[:, 0]
        loss = expression((g * stated).sum())
        got = shaw.scores_gradient(g[:, None], q[:, None], k[:, None], w, at[:, None], scale=scale, variant=variant)
        of_table = got.key_table.sum(axis=(0, 1))  # shared by the batch
        for part, inputs in ((got.q[:, 0], q), (got.k[:, 0], k), (of_table[None], w[None])):
            prove_equal(part, [[[loss.diff(x.e) for x in row] for row in rows] for rows in inputs], mention=[scale])
        alone = shaw.scores_gradient(g[:1], q[:1], k[:1], w, at[0], scale=scale, variant=variant)
        for part, whole in zip(alone, got, strict=True):
            prove_equal(part, whole[0])


@gradient_by_calculus.claim("Offsets beyond the reach share the last row, so its gradient is a sum.")
def rows_have_their_own_offset():
    """Each row of the table has the gradient of one offset."""
    q, k, w, g = symbols("q", 1, 1), symbols("k", 2, 1), symbols("w", 3, 1), symbols("g", 1, 2)
    got = shaw.scores_gradient(g[None], q[None], k[None], w[None], np.array([[-2, -1]]), scale=1).key_table[0]
    prove_equal(got[0], g[0, 1] * q[0])
