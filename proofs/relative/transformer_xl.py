"""Transformer-XL: content and position in four terms, the query's own position replaced by two vectors."""

# Over budget: the shift above the diagonal, and the derivation from the absolute score

import numpy as np
import sympy as sp

from posref import pairing
from posref.absolute import sinusoidal
from posref.offsets import clip, gather_rows, skew
from posref.relative import transformer_xl
from proofs.absolute.sinusoidal import definition as sinusoid
from proofs.kit import *

H, D, E = size("h"), size("d"), size("e")
ROW, COL, GAP = (sp.Symbol(name, integer=True, nonnegative=True) for name in ("i", "j", "gap"))
MEM, LATER = size("mem", least=0).e, size("later", least=0).e
N = LATER + 1  # queries, at least one
M = N + MEM  # keys
INSIDE = sp.Ge(N - 1 - ROW, 0), sp.Ge(M - 1 - COL, 0)  # query i and key j
SCORES = [transformer_xl.scores, transformer_xl._products, transformer_xl._shift]
SIZES = [(3, 3), (2, 5), (1, 4), (1, 1), (4, 6)]


def definition(q, k, r, u, v, scale):
    """scale times the terms (a) to (d) of section 3.3: q . k + q . r + u . k + v . r, with r of the distance i - j."""
    inner = lambda x, y: sum(a * b for a, b in zip(x, y, strict=True))
    return scale * (inner(q, k) + inner(q, r) + inner(u, k) + inner(v, r))


def row(i, j, n_query, n_key):
    """The row of r for query i and key j: distances descend from n_key - 1, and query i stands at i + n_key - n_query."""
    distance = i + n_key - n_query - j
    return n_key - 1 - distance


def every_score(q, k, r, u, v, scale):
    """`definition` for all batches, heads and pairs; 0 where r has no row for the distance."""
    out = np.empty((*q.shape[:-1], k.shape[-2]), dtype=object)
    for b, h, i, j in np.ndindex(*out.shape):
        at = row(i, j, q.shape[-2], k.shape[-2])
        own = r[b, h] if r.ndim == 4 else r[h]
        out[b, h, i, j] = definition(q[b, h, i], k[b, h, j], own[at], u[h], v[h], scale) if at < len(own) else 0
    return out


def operands(n_query, n_key, rows):
    """q, k, r, u, v of batch 2, three heads and one feature."""
    shapes = {"q": (2, 3, n_query, 1), "k": (2, 3, n_key, 1), "r": (3, rows, 1), "u": (3, 1), "v": (3, 1)}
    return [symbols(name, *shape) for name, shape in shapes.items()]


# distances


@example(of=[transformer_xl.distances, clip], sizes="n <= m <= 6, clamp_len 1, 2, 9 and none")
def distances_pinned():
    """Row c is the distance n_key - 1 - c, down to 0 or, bidirectional, to 1 - n_query, so every pair has a row; clamp_len
    limits it on both sides."""
    for n in range(1, 7):
        for m in range(n, 7):
            for both in (False, True):
                for clamp in (None, 1, 2, 9):
                    got = transformer_xl.distances(n, m, bidirectional=both, clamp_len=clamp).tolist()
                    expected = [m - 1 - c for c in range(m + both * (n - 1))]
                    expected = [min(max(o, -(clamp or 99)), clamp or 99) for o in expected]
                    prove_that(got == expected, f"{n} queries, {m} keys, bidirectional {both}, clamp_len {clamp}")
            pairs = {row(i, j, n, m) for i in range(n) for j in range(m)}
            premise(pairs == set(range(n + m - 1)), "the pairs use every row")


@distances_pinned.control
def distances_ascend():
    """The first row is distance 0, as with a learned table that is read forward."""
    prove_equal(transformer_xl.distances(2, 3, bidirectional=False), [0, 1, 2])


@distances_pinned.claim("With clamp_len, as in evaluation, distances are clipped.")
def never_clipped():
    """R_{i-j} is not clipped, as an article has it; with clamp_len it is."""
    prove_equal([transformer_xl.distances(1, 9, bidirectional=False, clamp_len=4).max()], [8])


@theorem(of=[transformer_xl.embeddings, sinusoidal.encode, pairing.join], sizes="all n, d")
def embeddings_pinned():
    """Feature t of R is sin(distance w_t), feature t + d/2 its cosine. Sines are odd and cosines even: the rows of +o and -o
    differ in every sine."""
    n, w = size("n"), sized("w", H)
    o, i = sized("o", n), index(n)
    t, a, b = pair("half", 2 * H)
    there, back = transformer_xl.embeddings(o, w), transformer_xl.embeddings(-o, w)
    sine, cosine = sinusoid(o.at(i), [w.at(t)], "half")
    prove_equal([there.at(i, a), there.at(i, b)], [sine, cosine], mention=[o.at(i), w.at(t)])
    prove_equal([back.at(i, a), back.at(i, b)], [-sine, cosine], mention=[o.at(i)])


@embeddings_pinned.control
def past_and_future_have_one_row():
    """The rows of +o and -o are equal, as a table of sin(|o| w) has them."""
    o, w = symbol("o"), symbols("w", 2)
    prove_equal(transformer_xl.embeddings(array([o]), w), transformer_xl.embeddings(array([-o]), w))


@embeddings_pinned.claim("Transformer-XL puts all sines first, then all cosines.")
def interleaved_sinusoid():
    """Sine and cosine alternate, as in Vaswani et al."""
    o, w = symbol("o"), symbols("w", 2)
    prove_equal(transformer_xl.embeddings(array([o]), w)[0], sinusoid(o.e, [x.e for x in w], "interleaved"))


# the shift


@theorem(
    of=[transformer_xl.shift, transformer_xl._shift, skew],
    sizes="all heads, n, mem; 2 heads, (n, m) = (3, 3), (2, 5), (1, 4), (1, 1), (4, 6)",
)
def shift_pinned():
    """Entry (i, j) of shift is row i's value for the distance i + mem - j, x[i, m - 1 - (i + mem - j)], and exactly 0 where the
    distance is negative, so nothing of another row leaks in."""
    x, a = sized("x", H, N, M), index(H)
    out = transformer_xl.shift(x)
    with assuming(sp.Ge(N - 1 - ROW, 0), sp.Ge(ROW + MEM - GAP, 0), sp.Ge(M - 1 - GAP, 0)):  # the third follows from the others
        prove_equal([out.at(a, ROW, ROW + MEM - GAP)], [x.at(a, ROW, M - 1 - GAP)])
    with assuming(sp.Ge(M - 1 - (ROW + MEM + 1 + GAP), 0)):
        prove_equal([out.at(a, ROW, ROW + MEM + 1 + GAP)], [0])
    for n, m in SIZES:
        x = symbols("x", 2, n, m)
        place = lambda a, i, j, x=x, n=n, m=m: x[a, i, row(i, j, n, m)] if row(i, j, n, m) < m else 0
        prove_equal(transformer_xl.shift(x), [[[place(a, i, j) for j in range(m)] for i in range(n)] for a in range(2)])


def padded(x):
    """The released shift before its last step: a pad in front of every row, then reshaped with the axes exchanged."""
    n, m = x.shape
    return np.concatenate([np.full((n, 1), -1), x], axis=1).reshape(m + 1, n)


@shift_pinned.claim("Above the diagonal it leaves its pad and values of the next row, which must be masked.")
def released_shift_is_clean():
    """The pad and reshape alone leaves zeros above the diagonal; it leaves its pad, and then values of the next row."""
    x = symbols("x", 3, 3)
    prove_equal(transformer_xl.shift(x), padded(x)[1:].reshape(3, 3))


@shift_pinned.claim("The first row of the padded matrix is dropped.")
def shift_that_drops_the_last_row():
    """[:-1] does for [1:] (labml)."""
    x = symbols("x", 3, 3)
    prove_equal(transformer_xl.shift(x)[2], padded(x)[:-1].reshape(3, 3)[2])


@theorem(
    of=[transformer_xl.shift, transformer_xl._shift],
    sizes="n <= m <= 6; n and m are symbols in the arithmetic",
    argument="entry (i, j) after padding, reshaping and dropping n cells stands at n + i m + j of the flat array",
)
def released_shift_where_defined():
    """Pad, reshape, drop the first row (appendix B, _rel_shift) is shift where j <= i + mem: entry (i, j) of the result stands
    at n + i m + j = i (m + 1) + (n - i + j), and 1 <= n - i + j <= m there, which is column n - i + j - 1 of x."""
    i = index(N)
    with assuming(sp.Ge(i + MEM - COL, 0)):
        prove_equal([N + i * M + COL], [i * (M + 1) + (N - i + COL)], mention=[i, COL])
        premise(nonnegative(N - i + COL - 1) and nonnegative(M - (N - i + COL)), "1 <= n - i + j <= m")
        prove_equal([N - i + COL - 1], [row(i, COL, N, M)])
    for n in range(1, 7):
        for m in range(n, 7):
            x = symbols("x", n, m)
            seen = transformer_xl.visible(n, m)
            prove_equal(transformer_xl.shift(x)[seen], padded(x)[1:].reshape(n, m)[seen], mention=x[:, -1])


def skewed(x):
    """Music Transformer's skew: a column of zeros on the left, read as n + 1 rows of n, the first one dropped; tensor2tensor
    bafdc1b677, common_attention.py _relative_position_to_absolute_position_masked."""
    n = len(x)
    return np.concatenate([0 * x[:, :1], x], axis=1).reshape(n + 1, n)[1:]


@theorem(of=[transformer_xl.shift, transformer_xl._shift, gather_rows], sizes="n <= 6, d = 2; every table", as_written="runs")
def music_transformer_skew():
    """Music Transformer's skew of q E^T, row r of E for the offset r - (n - 1), is shift where j <= i: both are q_i . E at
    j - i. Above the diagonal it holds a zero and then the next row's values, which must be masked."""
    for n in range(1, 7):
        q, table = symbols("q", n, 2), symbols("E", n, 2)
        by_offset, seen = q @ table.T, np.tri(n, dtype=bool)
        offset = np.minimum(np.arange(n) - np.arange(n)[:, None], 0)
        expected = gather_rows(by_offset, offset, 1 - n)[seen]
        prove_equal(transformer_xl.shift(by_offset)[seen], expected, mention=[q[0, 0], table[0, 0]])
        prove_equal(skewed(by_offset)[seen], expected)
        for i in range(n - 1):
            prove_equal(skewed(by_offset)[i, i + 1 :], [0, *by_offset[i + 1, : n - i - 2]])


@music_transformer_skew.claim("Above the diagonal it leaves a zero and the next row's values.")
def the_skew_is_clean():
    """The skew is shift, above the diagonal as well."""
    x = symbols("x", 3, 3)
    prove_equal(skewed(x), transformer_xl.shift(x))


@music_transformer_skew.claim("Offsets beyond the table have a vector of zeros.")
def far_offsets_are_clipped():
    """Offsets beyond the table share its last vector, as in Shaw's attention (three queries, a table of two)."""
    q, table = symbols("q", 3, 1), symbols("E", 2, 1)
    offset = clip(np.arange(3) - np.arange(3)[:, None], -1, 0)
    by_offset = q @ np.concatenate([0 * table[:1], table]).T
    prove_equal(transformer_xl.shift(by_offset)[2], gather_rows(q @ table.T, offset, -1)[2])


@released_shift_where_defined.claim("Both directions need n + m - 1 rows and another cut.")
def released_shift_in_both_directions():
    """The causal shift serves an encoder, as ESPnet's first Conformer had it (two tokens, three distances)."""
    x = symbols("x", 2, 3)
    prove_equal(transformer_xl.shift(x[:, :2]), skew(x))


@example(of=[transformer_xl.visible], sizes="n <= m <= 6")
def visible_pinned():
    """visible is j <= i + mem, all of the memory included: the pairs with a distance of at least 0."""
    for n in range(1, 7):
        for m in range(n, 7):
            expected = [[j <= i + m - n for j in range(m)] for i in range(n)]
            prove_that(transformer_xl.visible(n, m).tolist() == expected, f"{n} queries and {m} keys")


@visible_pinned.control
def memory_is_ignored():
    """j <= i, whatever the memory."""
    prove_equal(transformer_xl.visible(2, 3), np.tri(2, 3, dtype=bool))


# scores


@theorem(of=[*SCORES, skew], sizes="all h, n, mem, d: bidirectional")
def four_terms():
    """A score is scale (q . k + q . r + u . k + v . r), the paper's terms (a) to (d), with the row r of the pair's distance."""
    a, c, scale, at = index(H), index(D), symbol("scale"), row(ROW, COL, N, M)
    q, k, r = sized("q", H, N, D), sized("k", H, M, D), sized("r", H, sp.expand(N + M - 1), D)
    u, v = sized("u", H, D), sized("v", H, D)
    with assuming(*INSIDE):
        got = transformer_xl.scores(q, k, r, u, v, scale=scale).at(a, ROW, COL)
        content = (q.at(a, ROW, c) * k.at(a, COL, c), u.at(a, c) * k.at(a, COL, c))
        position = (q.at(a, ROW, c) * r.at(a, at, c), v.at(a, c) * r.at(a, at, c))
        prove_equal([got], [scale.e * sum(sp.Sum(term, (c, 0, D - 1)) for term in content + position)], mention=[scale])


@four_terms.control
def vectors_exchanged():
    """u belongs to the position, v to the content."""
    q, k, r, u, v = operands(1, 2, 2)
    prove_equal(transformer_xl.scores(q, k, r, u, v, scale=1), every_score(q, k, r, v, u, 1))


@theorem(of=[*SCORES, transformer_xl.visible, skew], sizes="batch 2, h = 3, d = 1; n <= m")
def scores_pinned():
    """scores is the definition at the row of the distance, for r with one batch or several; causal scores of the future are
    exactly 0. The two forms agree where both are defined, and with one query they are the same."""
    scale = symbol("scale")
    for n, m in SIZES:
        q, k, r, u, v = operands(n, m, n + m - 1)
        causal = transformer_xl.scores(q, k, r[:, :m], u, v, scale=scale)
        both = transformer_xl.scores(q, k, r, u, v, scale=scale)
        prove_equal(causal, every_score(q, k, r[:, :m], u, v, scale))
        prove_equal(both, every_score(q, k, r, u, v, scale), mention=[scale])
        seen = transformer_xl.visible(n, m)
        prove_equal(causal[..., seen], both[..., seen], mention=[scale])
    own = symbols("r", 2, 3, 3, 1)
    q, k, _, u, v = operands(2, 3, 3)
    prove_equal(transformer_xl.scores(q, k, own, u, v, scale=1), every_score(q, k, own, u, v, 1))


@scores_pinned.control
def position_is_not_scaled():
    """The scale is that of the content alone."""
    q, k, r, u, v = operands(1, 2, 2)
    got = transformer_xl.scores(q, k, r, u, v, scale=2)
    prove_equal(got, every_score(q, k, 0 * r, u, v, 2) + every_score(q, 0 * k, r, u, v, 1))


@scores_pinned.control
def causal_form_in_both_directions():
    """The causal form gives the scores of the future too."""
    q, k, r, u, v = operands(2, 2, 3)
    prove_equal(transformer_xl.scores(q, k, r[:, :2], u, v, scale=1), transformer_xl.scores(q, k, r, u, v, scale=1))


@theorem(of=SCORES, sizes="batch 2, h = 3, n = 3, m = 5, d = 1; both forms")
def translation_invariant():
    """A score knows the distance alone: dropping the oldest key, which moves all others by one, leaves the other scores as they
    are, and the last query decoded alone has the last row. The distance does matter: every row of r is used."""
    q, k, r, u, v = operands(3, 5, 7)
    for rows, alone in ((7, 5), (5, 5)):
        full = transformer_xl.scores(q, k, r[:, :rows], u, v, scale=1)
        prove_equal(full, every_score(q, k, r[:, :rows], u, v, 1), mention=r[:, :rows])
        later = transformer_xl.scores(q, k[:, :, 1:], r[:, 1:rows], u, v, scale=1)
        prove_equal(later, full[..., 1:])
        step = transformer_xl.scores(q[:, :, 2:], k, r[:, :alone], u, v, scale=1)
        prove_equal(step, full[:, :, 2:])


@translation_invariant.claim("A decoded query has the distances m - 1, .., 0.")
def step_without_its_memory():
    """A decoded query stands at position 0: its distances are 0, -1, ..."""
    q, k, r, u, v = operands(2, 2, 3)
    full = transformer_xl.scores(q, k, r, u, v, scale=1)
    prove_equal(transformer_xl.scores(q[:, :, 1:], k, r[:, 1:], u, v, scale=1), full[:, :, 1:])


# the origin of u


@theorem(of=[*SCORES, skew], sizes="all n, mem, widths")
def position_of_the_query_becomes_u():
    """With b in the place of the query's position, (x_i + b) W_Q . k_j is the score with u = b W_Q. Every u is such a b W_Q if
    W_Q is onto: b = u W_Q^-1 for any invertible 2 x 2 matrix; merging then loses nothing. If it is not onto, u is free to be
    what no b W_Q can, so merging enlarges the family: W_Q = ((1, 2), (2, 4)) gives multiples of (1, 2) alone."""
    x, b, w, a = sized("x", H, N, E), sized("b", 1, E), sized("W", E, D), index(H)
    k, zero = sized("k", H, M, D), sized("r", H, sp.expand(N + M - 1), D) * 0
    merged = transformer_xl.scores(x @ w, k, zero, b @ w, b @ w, scale=1)
    with assuming(*INSIDE):
        prove_equal([merged.at(a, ROW, COL)], [(((x + b) @ w) @ np.swapaxes(k, -1, -2)).at(a, ROW, COL)])
    w, u, b = symbols("W", 2, 2), symbols("u", 2), symbols("b", 2)
    determinant = w[0, 0] * w[1, 1] - w[0, 1] * w[1, 0]
    inverse = array([[w[1, 1], -w[0, 1]], [-w[1, 0], w[0, 0]]]) / determinant
    prove_equal(u @ inverse @ w, u, mention=u)
    image = b @ np.array([[1, 2], [2, 4]])
    prove_equal([image[1]], [2 * image[0]])


@position_of_the_query_becomes_u.claim("It does not if W_Q is onto; else u is freer than b W_Q.")
def merging_never_changes_the_family():
    """u may always be written b W_Q, as an article has it: with W_Q = ((1, 2), (2, 4)), b = (u_0, 0) gives its scores."""
    q, k, r, (u,) = symbols("q", 1, 1, 2), symbols("k", 1, 1, 2), np.zeros((1, 1, 2), dtype=int), symbols("u", 1, 2)
    score = lambda u: transformer_xl.scores(q, k, r, u[None], u[None], scale=1)
    prove_equal(score(u), score(array([u[0], 0]) @ np.array([[1, 2], [2, 4]])))
