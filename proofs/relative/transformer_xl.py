"""Transformer-XL: content and position in four terms, the query's own position replaced by two vectors."""

import mpmath
import numpy as np
import sympy as sp

from posref import pairing
from posref.absolute import sinusoidal
from posref.relative import transformer_xl
from posref.relative.offsets import clip, skew
from proofs.absolute.sinusoidal import definition as sinusoid
from proofs.absolute.sinusoidal import frequency
from proofs.kit import (
    array,
    assuming,
    index,
    pair,
    prove_equal,
    prove_that,
    size,
    sized,
    symbol,
    symbols,
    theorem,
)
from proofs.kit.symbols import nonnegative
from proofs.relative.shaw import rearranged
from proofs.vectors import average, case, dot, exact, flag, growth, painted, softmax, terms, total

H, D, E = size("h"), size("d"), size("e")
MEM, ROW, COL, GAP, LATER = (sp.Symbol(name, integer=True, nonnegative=True) for name in ("mem", "i", "j", "gap", "later"))
N = LATER + 1  # queries, at least one
M = N + MEM  # keys
INSIDE = sp.Ge(N - 1 - ROW, 0), sp.Ge(M - 1 - COL, 0)  # query i and key j
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


@theorem(of=[transformer_xl.distances, clip], sizes="n <= m <= 6, clamp_len 1, 2, 9 and none")
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
            prove_that(pairs == set(range(n + m - 1)), "the pairs use every row")


@distances_pinned.control
def distances_ascend():
    """The first row is distance 0, as with a learned table that is read forward."""
    prove_that(transformer_xl.distances(2, 3, bidirectional=False).tolist() == [0, 1, 2], "the order")


@distances_pinned.control
def never_clipped():
    """R_{i-j} is not clipped, as an article has it; with clamp_len it is."""
    prove_that(transformer_xl.distances(1, 9, bidirectional=False, clamp_len=4).max() == 8, "the largest distance")


@theorem(of=[transformer_xl.embeddings, sinusoidal.encode, pairing.join], sizes="all n, d")
def embeddings_pinned():
    """Feature t of R is sin(distance w_t), feature t + d/2 its cosine. Sines are odd and cosines even: the rows of +o and -o
    differ in every sine."""
    n, w = size("n"), sized("w", H)
    o, i = sized("o", n), index(n)
    t, a, b = pair("half", 2 * H)
    there, back = transformer_xl.embeddings(o, w), transformer_xl.embeddings(-o, w)
    prove_equal([there.at(i, a), there.at(i, b)], sinusoid(o.at(i), [w.at(t)], "half"), mention=[o.at(i), w.at(t)])
    prove_equal([back.at(i, a), back.at(i, b)], [-there.at(i, a), there.at(i, b)], mention=[o.at(i)])


@embeddings_pinned.control
def past_and_future_have_one_row():
    """The rows of +o and -o are equal, as a table of sin(|o| w) has them."""
    o, w = symbol("o"), symbols("w", 2)
    prove_equal(transformer_xl.embeddings(array([o]), w), transformer_xl.embeddings(array([-o]), w))


@embeddings_pinned.control
def interleaved_sinusoid():
    """Sine and cosine alternate, as in Vaswani et al."""
    o, w = symbol("o"), symbols("w", 2)
    prove_equal(transformer_xl.embeddings(array([o]), w)[0], sinusoid(o.e, [x.e for x in w], "interleaved"))


# the shift


@theorem(of=[transformer_xl.shift, skew], sizes="all heads, n, mem")
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
    """The released shift up to its last step: a pad in front of every row, read with the axes exchanged."""
    n, m = x.shape
    return np.concatenate([np.full((n, 1), -1), x], axis=1).reshape(m + 1, n)


@shift_pinned.control
def released_shift_is_clean():
    """The pad and reshape alone leaves zeros above the diagonal; it leaves its pad, and then values of the next row."""
    x = symbols("x", 3, 3)
    prove_equal(transformer_xl.shift(x), padded(x)[1:].reshape(3, 3))


@shift_pinned.control
def shift_that_drops_the_last_row():
    """[:-1] does for [1:] (labml)."""
    x = symbols("x", 3, 3)
    prove_equal(transformer_xl.shift(x)[2], padded(x)[:-1].reshape(3, 3)[2])


@theorem(of=[transformer_xl.shift], sizes="n <= m <= 6; on and below the diagonal by arithmetic for all n, m")
def released_shift_where_defined():
    """Pad, reshape, drop the first row (appendix B, _rel_shift) is shift where j <= i + mem: entry (i, j) of the result stands
    at n + i m + j = i (m + 1) + (n - i + j), and 1 <= n - i + j <= m there, which is column n - i + j - 1 of x."""
    with assuming(sp.Ge(N - 1 - ROW, 0), sp.Ge(ROW + MEM - COL, 0)):
        prove_equal([N + ROW * M + COL], [ROW * (M + 1) + (N - ROW + COL)], mention=[ROW, COL])
        prove_that(nonnegative(N - ROW + COL - 1) and nonnegative(M - (N - ROW + COL)), "1 <= n - i + j <= m")
        prove_equal([N - ROW + COL - 1], [row(ROW, COL, N, M)])
    for n in range(1, 7):
        for m in range(n, 7):
            x = symbols("x", n, m)
            seen = transformer_xl.visible(n, m)
            prove_equal(transformer_xl.shift(x)[seen], padded(x)[1:].reshape(n, m)[seen], mention=x[:, -1])


@released_shift_where_defined.control
def released_shift_in_both_directions():
    """The causal shift serves an encoder, as ESPnet's first Conformer had it: entry (0, 1) is the pad."""
    x = symbols("x", 2, 2)
    prove_equal([padded(x)[1:].reshape(2, 2)[0, 1]], [x[0, 0]])


@theorem(of=[transformer_xl.visible], sizes="n <= m <= 6")
def visible_pinned():
    """visible is j <= i + mem, all of the memory included: the pairs with a distance of at least 0."""
    for n in range(1, 7):
        for m in range(n, 7):
            expected = [[j <= i + m - n for j in range(m)] for i in range(n)]
            prove_that(transformer_xl.visible(n, m).tolist() == expected, f"{n} queries and {m} keys")


@visible_pinned.control
def memory_is_ignored():
    """j <= i, whatever the memory."""
    prove_that(transformer_xl.visible(2, 3).tolist() == np.tri(2, 3, dtype=bool).tolist(), "memory of one")


# scores


@theorem(of=[transformer_xl.scores, skew], sizes="all h, n, mem, d: bidirectional")
def four_terms():
    """(q + u) . k + (q + v) . r = (a) + (b) + (c) + (d), scaled, each with the row of its own distance."""
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


@theorem(of=[transformer_xl.scores, transformer_xl.shift, transformer_xl.visible, skew], sizes="batch 2, h = 3, d = 1; n <= m")
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


@theorem(of=[transformer_xl.scores], sizes="batch 2, h = 3, n = 3, m = 5, d = 1; both forms")
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


@translation_invariant.control
def step_without_its_memory():
    """A decoded query stands at position 0: its distances are 0, -1, ..."""
    q, k, r, u, v = operands(2, 2, 3)
    full = transformer_xl.scores(q, k, r, u, v, scale=1)
    prove_equal(transformer_xl.scores(q[:, :, 1:], k, r[:, 1:], u, v, scale=1), full[:, :, 1:])


# where u comes from


@theorem(of=[transformer_xl.scores, skew], sizes="all n, mem, widths; onto for 2 x 2")
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


@position_of_the_query_becomes_u.control
def merging_never_changes_the_family():
    """u may always be written b W_Q, as an article has it: with W_Q = ((1, 2), (2, 4)) u_1 is not 2 u_0."""
    u = symbols("u", 2)
    prove_equal([u[1]], [2 * u[0]])


# golden vectors

SOURCES = (
    "Dai et al., Transformer-XL, arXiv 1901.02860, section 3.3, terms (a) to (d), and appendix B",
    "kimiyoung/transformer-xl, pytorch/mem_transformer.py, RelPartialLearnableMultiHeadAttn",
)

CONVENTIONS = {
    "axes": "q, k are (batch, heads, n, d), r (heads, rows, d), u and v (heads, d)",
    "distance": "query position - key position; the last query stands at the last key",
    "future": "causal scores of keys after the query are 0 and have no meaning",
    "op attend": "softmax(scores) values, causal scores masked; r is given",
    "op distances": "the distance of every row of r, exactly; clamp_len 0 is none",
    "op embeddings": "R, sines first, of the distances",
    "op scores": "scale ((q + u) . k + (q + v) . r)",
    "op shift": "a matrix whose column c is the distance n_key - 1 - c, moved so that entry (i, j) is row i's value for key j",
}

FLAGS = {
    "shift_dropped_at_the_end": flag(
        "[:-1] for [1:]",
        "The pad and reshape drops the last row instead of the first.",
        "Every entry has the distance of another.",
        "labmlai/annotated_deep_learning_paper_implementations#185",
    ),
    "garbage_above_the_diagonal": flag(
        "no mask after the shift",
        "Entries of the future hold the pad and values of the next row.",
        "Rows leak into each other.",
    ),
    "not_shifted": flag("no shift", "Row i has the distances of the last row.", "Every query counts from the end."),
    "memory_ignored": flag("distance i - j", "The memory is not counted.", "Distances are too small by its length."),
    "reversed_distances": flag("rows from distance 0 up", "r is in the reverse order.", "Near and far change places."),
    "negated_distances": flag("key - query", "Distances have the wrong sign.", "Past and future change places."),
    "absolute_distances": flag(
        "|i - j|",
        "The sines of the future are not negated.",
        "Keys before and after the query at one distance look alike.",
        "speechbrain/speechbrain#3070",
    ),
    "causal_shift": flag(
        "the causal shift in an encoder",
        "n_key rows for a bidirectional score.",
        "Keys of the future have values of other rows.",
        "espnet/espnet#2816",
    ),
    "u_and_v_swapped": flag("u with r, v with k", "The two vectors are exchanged.", "Both biases are wrong."),
    "no_u": flag("no u . k", "Term (c) is left out.", "No bias of the content."),
    "no_v": flag("no v . r", "Term (d) is left out.", "No bias of the position."),
    "content_scaled_alone": flag("scale on q . k alone", "Position is not scaled.", "Position outweighs content by sqrt(d)."),
    "interleaved": flag("sin, cos, sin, cos, ..", "The layout of Vaswani et al.", "Columns of R meet other weights."),
    "clamp_ignored": flag("no clamp_len", "Distances are not limited.", "Far tokens have unseen distances."),
    "clamp_one_side": flag("minimum alone", "Negative distances are not limited.", "Far keys of the future run on."),
    "no_mask": flag("no mask", "Keys of the future are seen, at score 0.", "Training looks better than decoding."),
    "bf16_distances": flag(
        "distances in bfloat16", "Distances beyond 256 are rounded to 8 bits.", "Neighbors get one embedding."
    ),
}


def vectors():
    for both, clamp in ((False, 0), (True, 0), (True, 2), (False, 2)):
        yield _distances(4, 6, both, clamp)
    yield _embeddings("near", range(5, -4, -1), 6, "interleaved absolute_distances negated_distances")
    yield _embeddings("far", [2049, 1025, 300, 257, -257, -300], 16, "interleaved absolute_distances bf16_distances")
    every = "shift_dropped_at_the_end garbage_above_the_diagonal not_shifted"
    yield _shift(3, 3, every)
    yield _shift(2, 5, "shift_dropped_at_the_end not_shifted")
    mistakes = "u_and_v_swapped no_u no_v content_scaled_alone not_shifted"
    causal = " shift_dropped_at_the_end garbage_above_the_diagonal"
    yield _scores("square", 5, 5, False, mistakes + causal)
    yield _scores("memory", 2, 5, False, mistakes + causal + " memory_ignored reversed_distances")
    yield _scores("square", 5, 5, True, mistakes + " causal_shift negated_distances")
    yield _scores("memory", 2, 5, True, mistakes + " causal_shift negated_distances memory_ignored")
    yield _scores("decode", 1, 5, False, "u_and_v_swapped no_u no_v content_scaled_alone memory_ignored reversed_distances")
    yield _attend("memory", 2, 5, False, "u_and_v_swapped no_v not_shifted memory_ignored")
    yield _attend("square", 5, 5, False, "u_and_v_swapped not_shifted no_mask")


def _name(n_query, n_key, both):
    return f"transformer_xl/{'bidirectional' if both else 'causal'}/q{n_query}-k{n_key}"


def _distances(n, m, both, clamp):
    every = lambda low, high: [min(max(m - 1 - c, low), high) for c in range(m + both * (n - 1))]
    expected = every(-clamp, clamp) if clamp else every(-99, 99)
    wrong = {"reversed_distances": expected[::-1]}
    if clamp:
        wrong["clamp_ignored"] = every(-99, 99)
    if clamp and both:
        wrong["clamp_one_side"] = [min(m - 1 - c, clamp) for c in range(m + n - 1)]
    return case(
        f"{_name(n, m, both)}/distances" + f"-clamp{clamp}" * bool(clamp),
        op="distances",
        params={"n_query": n, "n_key": m, "bidirectional": both, "clamp_len": clamp},
        tensors={},
        expected=expected,
        mistakes=wrong,
    )


def _embeddings(probe, reach, dim, mistakes):
    w = [frequency(t, dim, mpmath.mpf(10000), m=mpmath) for t in range(dim // 2)]
    every = lambda distances, layout="half": np.array([sinusoid(o, w, layout, mpmath) for o in distances])
    expected = every(reach)
    wrong = {
        "interleaved": every(reach, "interleaved"),
        "absolute_distances": every(map(abs, reach)),
        "negated_distances": every([-o for o in reach]),
        "bf16_distances": every([mpmath.mpf(mpmath.mpf(o), prec=8) for o in reach]),
    }
    return case(
        f"transformer_xl/sinusoid/d{dim}-b1e4/{probe}",
        op="embeddings",
        params={"dim": dim, "base": 10000.0},
        tensors={"distances": list(reach)},
        expected=expected,
        cond={"amp": terms(3, expected), "phase": np.array([[abs(o) * x * growth(x) for x in w * 2] for o in reach])},
        mistakes={mistake: wrong[mistake] for mistake in mistakes.split()},
    )


def _moved(x, mistake=None):
    """x[i, row(i, j)], 0 where there is no such row; with a mistake what the released shift would give."""
    n, m = x.shape
    if mistake in ("shift_dropped_at_the_end", "garbage_above_the_diagonal"):
        flat = np.concatenate([np.full((n, 1), 0 * x[0, 0]), x], axis=1).reshape(m + 1, n)
        return (flat[1:] if mistake == "garbage_above_the_diagonal" else flat[:-1]).reshape(n, m)
    at = lambda i, j: j if mistake == "not_shifted" else row(i, j, n, m)
    return np.array([[x[i, at(i, j)] if at(i, j) < m else 0 * x[0, 0] for j in range(m)] for i in range(n)])


def _shift(n, m, mistakes):
    x = np.array([[[10 * i + 100 * b + m - 1 - c for c in range(m)] for i in range(n)] for b in (1, 2)])
    return case(
        f"{_name(n, m, False)}/shift",
        op="shift",
        params={},
        tensors={"x": x},
        expected=np.array([_moved(each) for each in x]),
        mistakes={mistake: np.array([_moved(each, mistake) for each in x]) for mistake in mistakes.split()},
        comment="Entries are 100 batch + 10 row + distance.",
    )


def _operands(n, m, both):
    shapes = {"q": (2, 3, n, 4), "k": (2, 3, m, 4), "r": (3, n + m - 1 if both else m, 4), "u": (3, 4), "v": (3, 4)}
    return {name: painted(shape, tag) for (name, shape), tag in zip(shapes.items(), (1, 2, 4, 6, 8), strict=True)}


def _all_scores(q, k, r, u, v, both, scale, mistake):
    """Scores and their sensitivities: two products, the second moved."""
    n, m = q.shape[-2], k.shape[-2]
    if mistake == "u_and_v_swapped":
        u, v = v, u
    first, second = total(exact(q), exact(u[:, None] * (mistake != "no_u"))), exact(v[:, None] * (mistake != "no_v"))
    second = total(exact(q), second)
    if mistake in ("reversed_distances", "negated_distances"):
        r = r[:, ::-1]
    content, position = dot(first, exact(k), scale), dot(second, exact(r), 1 if mistake == "content_scaled_alone" else scale)
    j, i = np.arange(m), np.arange(n)[:, None]
    at = row(i, j, n, m)
    if mistake == "memory_ignored":
        at = np.minimum(at + m - n, r.shape[-2] - 1)
    if mistake == "negated_distances" and n != m:
        at = np.clip(at - (m - n), 0, None)
    if mistake == "not_shifted":
        at = 0 * i + j
    seen = both | (j <= i + m - n)
    if mistake in ("garbage_above_the_diagonal", "shift_dropped_at_the_end", "causal_shift"):
        kind = mistake.replace("causal_shift", "garbage_above_the_diagonal")
        lead = lambda x: np.array([[_moved(head, kind) for head in batch] for batch in x[..., :m]])
        moved, seen = rearranged(lead, position), True
    else:
        inside = np.clip(at, 0, r.shape[-2] - 1)
        moved = rearranged(lambda x: np.take_along_axis(x, np.broadcast_to(inside, (2, 3, n, m)), axis=-1), position)
    return rearranged(lambda x: np.where(seen, x, 0), total(content, moved))


def _scores(probe, n, m, both, mistakes):
    tensors, scale = _operands(n, m, both), mpmath.mpf(1) / 2

    def result(mistake=None):
        return _all_scores(*tensors.values(), both, scale, mistake)

    expected, cond = result()
    return case(
        f"{_name(n, m, both)}-h3-d4/scores-{probe}",
        op="scores",
        params={"scale": 0.5, "bidirectional": both},
        tensors=tensors,
        expected=expected,
        cond=cond,
        mistakes={mistake: result(mistake)[0] for mistake in mistakes.split()},
    )


def _attend(probe, n, m, both, mistakes):
    tensors, scale = _operands(n, m, both), mpmath.mpf(1) / 2
    values = painted((2, 3, m, 4), 9)
    seen = both | (np.arange(m) <= np.arange(n)[:, None] + m - n)

    def result(mistake=None):
        scores = _all_scores(*tensors.values(), both, scale, mistake)
        return average(softmax(scores, None if mistake == "no_mask" else seen), exact(values))

    expected, cond = result()
    return case(
        f"{_name(n, m, both)}-h3-d4/attend-{probe}",
        op="attend",
        params={"scale": 0.5, "bidirectional": both},
        tensors={**tensors, "values": values},
        expected=expected,
        cond=cond,
        mistakes={mistake: result(mistake)[0] for mistake in mistakes.split()},
    )
