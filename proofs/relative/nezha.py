"""NEZHA: Shaw's attention with a fixed sinusoid for keys and values."""

import numpy as np
import sympy as sp

from posref import pairing
from posref.absolute import sinusoidal
from posref.offsets import clip, offsets
from posref.relative import nezha, shaw
from proofs.absolute.sinusoidal import definition as sinusoid
from proofs.attention import definition as softmax
from proofs.attention import rows
from proofs.kit import *
from proofs.offsets import clipped
from proofs.relative.shaw import contiguous, every_score, output

K, H = size("k"), size("h")
ENCODE = [nezha.encode, sinusoidal.encode, pairing.join, clip]


def definition(offset, k, frequencies, convention, layout="interleaved", m=sp):
    """Sine and cosine of the offset (section 2.2), or of its row 0 .. 2k (the released code), for each frequency. The paper
    has no clip; with k >= n - 1 nothing is clipped."""
    o = clipped(offset, -k, k)
    return sinusoid(o if convention == "paper" else o + k, frequencies, layout, m)


def encoded(offset, w, convention, k=K):
    """The vector of one symbolic offset: an array of shape (1, d)."""
    return nezha.encode(filled((1,), offset), w, max_distance=k, convention=convention)


# what it is


@theorem(of=ENCODE, sizes="all offsets, k, d; 2 x 3 offsets at k = 3, d = 4")
def encode_pinned():
    """Pair t of encode is (sin(o w_t), cos(o w_t)) at o = clip(j - i, -k, k), or at o + k, on every path of the clip."""
    o, w = symbol("o", integer=True), sized("w", H)
    t, a, b = pair("interleaved", 2 * H)
    for convention, first in (("paper", 0), ("released", K)):

        def both(convention=convention):
            vector = encoded(o, w, convention)
            return [vector.at(0, a), vector.at(0, b)], clip(array([o]), -K, K)[0]

        for _, (got, limited) in all_paths(both):
            prove_equal(got, sinusoid(expression(limited) + first, [w.at(t)], "interleaved"))
    reach, w = np.array([[-9, -3, -1], [0, 2, 10**9]]), symbols("w", 2)
    for convention in nezha.CONVENTIONS:
        expected = [[definition(o, 3, [x.e for x in w], convention) for o in row] for row in reach.tolist()]
        prove_equal(nezha.encode(reach, w, max_distance=3, convention=convention), expected, mention=w)


@encode_pinned.claim("The released table is the formula at o + k.")
def released_is_the_formula():
    """The released code computes the paper's formula."""
    w = symbols("w", 2)
    got = nezha.encode(np.array([1]), w, max_distance=2, convention="released")
    prove_equal(got[0], definition(1, 2, [x.e for x in w], "paper"))


@encode_pinned.claim("Sine and cosine alternate in NEZHA's table.")
def sines_first():
    """The layout is that of tensor2tensor, all sines and then all cosines."""
    w = symbols("w", 2)
    got = nezha.encode(np.array([1]), w, max_distance=2, convention="paper")
    prove_equal(got[0], definition(1, 2, [x.e for x in w], "paper", "half"))


@example(of=[nezha.table, *ENCODE], sizes="k = 1, 2, 5, 64; d = 2, 6, 64")
def table_pinned():
    """Row r of table is encode at the offset r - k with the frequencies 10000^(-2t/d), bit for bit: 2k + 1 rows. The paper's
    middle row and the released first row are (0, 1, 0, 1, ..)."""
    for k in (1, 2, 5, 64):
        for dim in (2, 6, 64):
            zero = [0.0, 1.0] * (dim // 2)
            for convention, at in (("paper", k), ("released", 0)):
                got = nezha.table(k, dim, convention=convention)
                w, rows = sinusoidal.frequencies(dim), range(2 * k + 1)
                by_row = [nezha.encode(np.array(r - k), w, max_distance=k, convention=convention) for r in rows]
                prove_that(got.tolist() == np.array(by_row).tolist(), f"rows for k = {k}, d = {dim}, {convention}")
                prove_that(got[at].tolist() == zero, "the row of angle zero")


@table_pinned.control
def begins_with_the_largest_offset():
    """Row 0 is the offset k, as a table for i - j has it."""
    last = nezha.encode(np.array(2), sinusoidal.frequencies(4), max_distance=2, convention="paper")
    first = nezha.table(2, 4, convention="paper")[0]
    witness = f"k = 2: row 0 is {first.round(4).tolist()}, the offset 2 is {last.round(4).tolist()}"
    prove_that(first.tolist() == last.tolist(), counterexample=witness)


@theorem(
    of=[nezha.attend, shaw.attend, shaw.scores, shaw.embed],
    sizes="batch 2, h = 3, n = 2, m = 4, k = 1, d = 2; one mask; integers, every v",
)
def attend_pinned():
    """attend is sum_j softmax_j(scale q_i . (k_j + a_ij)) (v_j + a_ij): one table for keys and values, masked or not."""
    unit, at = symbol("unit", positive=True), contiguous(2, 4)
    q, k = np.arange(1, 25).reshape(2, 3, 2, 2) ** 2, np.arange(2, 50).reshape(2, 3, 4, 2) ** 3
    a, v = np.array([[5, 2], [31, 3], [7, 1]]), symbols("v", 2, 3, 4, 2)
    s = every_score(q, k, a, at, unit, "relative_key")
    for mask in (None, np.array([[True, False, True, True], [False, True, True, False]])):
        expected = np.empty((2, 3, 2, 2), dtype=object)
        for b, h, i in np.ndindex(2, 3, 2):
            weights = array(softmax(rows(s[b, h])[i], None if mask is None else mask[i]))
            expected[b, h, i] = output(weights, v[b, h], a, at[i].tolist())
        prove_equal(nezha.attend(q, k, v, a, at, scale=unit, mask=mask), expected)


@attend_pinned.claim("NEZHA adds its vectors to the values too.")
def on_the_matrix_alone():
    """Values are left alone, as an article says of all encodings from Transformer-XL on."""
    q, k, v, a = array([[0, 0]]), array([[0, 0]]), symbols("v", 1, 2), symbols("a", 3, 2)
    prove_equal(nezha.attend(q, k, v, a, np.array([[0]]), scale=1), v)


# what it does


@theorem(of=[sinusoidal.shift_matrix, *ENCODE], sizes="d = 2, 4, 6, k = 3 and six offsets; pairs: any o, k, d")
def released_is_a_rotation_of_the_paper():
    """a_released(o) = M(k) a_paper(o) with the orthogonal shift M(k) of the sinusoid, the same matrix at each offset, so
    q . a_released = (M^T q) . a_paper; and it is the paper's vector at o + k, for a table that reaches to 2k. For all d pair t
    is turned by k w_t."""
    k = 3
    for dim in (2, 4, 6):
        w, q = symbols("w", dim // 2), symbols("q", dim)
        turn = sinusoidal.shift_matrix(k, w, layout="interleaved")
        prove_equal(turn.T @ turn, np.eye(dim, dtype=int))
        for o in (-9, -3, -1, 0, 2, 7):
            paper, released = (nezha.encode(np.array(o), w, max_distance=k, convention=c) for c in nezha.CONVENTIONS)
            prove_equal(turn @ paper, released)
            prove_equal([q @ released], [(turn.T @ q) @ paper])
            wider = nezha.encode(np.array(clipped(o, -k, k) + k), w, max_distance=2 * k, convention="paper")
            prove_equal(released, wider)
    o, w = symbol("o", integer=True), sized("w", H)
    t, a, b = pair("interleaved", 2 * H)
    c, s = sp.cos(K * w.at(t)), sp.sin(K * w.at(t))
    read = lambda: [[encoded(o, w, convention).at(0, member) for member in (a, b)] for convention in nezha.CONVENTIONS]
    for _, ((x, y), released) in all_paths(read):
        prove_equal(released, [c * x + s * y, c * y - s * x])


@released_is_a_rotation_of_the_paper.claim("A checkpoint is bound to its convention: one table is the other, rotated.")
def conventions_are_interchangeable():
    """Weights trained with one form serve the other: q . a is the same."""
    w, q = symbols("w", 1), symbols("q", 2)
    paper, released = (nezha.encode(np.array([1]), w, max_distance=2, convention=c) for c in nezha.CONVENTIONS)
    prove_equal(paper @ q, released @ q)


@released_is_a_rotation_of_the_paper.control
def rotation_of_rope():
    """a_released = M(k)^T a_paper."""
    w = symbols("w", 1)
    paper, released = (nezha.encode(np.array(1), w, max_distance=2, convention=c) for c in nezha.CONVENTIONS)
    prove_equal(sinusoidal.shift_matrix(2, w, layout="interleaved").T @ paper, released)


@theorem(of=[offsets, *ENCODE], sizes="all positions, shifts, k, d", as_written="runs")
def translation_invariant():
    """The vector of (i, j) does not change when all tokens move, in either convention and on every path."""
    i, j, s = (symbol(name, integer=True) for name in "ijs")
    w, (_, a, b) = sized("w", H), pair("interleaved", 2 * H)
    for convention in nezha.CONVENTIONS:

        def both(convention=convention):
            here, there = offsets(array([i]), array([j])), offsets(array([i + s]), array([j + s]))
            return [[encoded(at[0, 0], w, convention).at(0, member) for member in (a, b)] for at in (here, there)]

        for _, (here, there) in all_paths(both):
            prove_equal(there, here)


@translation_invariant.control
def invariant_when_keys_alone_move():
    """A cached step may count its query from 0."""
    w = symbols("w", 1)
    step = lambda query: nezha.encode(offsets(np.array([query]), np.arange(3)), w, max_distance=4, convention="paper")
    prove_equal(step(0), step(2))


@theorem(of=[nezha.table, *ENCODE], sizes="all k, d; a shipped table of k = 3, d = 4")
def past_is_told_from_future():
    """In the paper's form the sines of -o are those of o negated and the cosines equal, so the two sides differ."""
    o, w = symbol("o", integer=True), sized("w", H)
    _, a, b = pair("interleaved", 2 * H)
    for _, (there, back) in all_paths(lambda: [[encoded(x, w, "paper").at(0, c) for c in (a, b)] for x in (o, -o)]):
        prove_equal(back, [-there[0], there[1]])
    table = nezha.table(3, 4, convention="paper")
    prove_that(table[::-1, 1::2].tolist() == table[:, 1::2].tolist(), "cosines of the shipped table")
    prove_that(table[::-1, ::2].tolist() == (-table[:, ::2]).tolist(), "sines of the shipped table")


@past_is_told_from_future.control
def mirrored_in_the_released_form():
    """The released table is mirrored in the same way."""
    w = symbols("w", 1)
    there, back = nezha.encode(np.array([1, -1]), w, max_distance=2, convention="released")
    prove_equal(back, [-there[0], there[1]])
