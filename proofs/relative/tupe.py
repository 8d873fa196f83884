"""TUPE: separate scores for words and positions, and [CLS] with trained numbers instead of positions."""

# Over budget: the reset in both conventions, and what is absolute in it

import itertools

import numpy as np
import sympy as sp

from posref.absolute import sinusoidal
from posref.relative import tupe
from proofs.kit import *

N, H, D, E = size("n"), size("h"), size("d"), size("e")


def reset(value, theta_1, theta_2, i, j):
    """Eq. (9), the row of [CLS] first: theta_1 from [CLS], theta_2 from another word to [CLS], else the value."""
    return theta_1 if i == 0 else theta_2 if j == 0 else value


def definition(q, k, t, b, theta_1, theta_2, i, j, scale, convention):
    """Eq. (11): scale q . k + reset(t + b), or the released scale q . k + reset(t) + b; Eq. (10) without b, which is None."""
    content = scale * sum(x * y for x, y in zip(q, k, strict=True))
    if b is None:
        return content + reset(t, theta_1, theta_2, i, j)
    if convention == "paper":
        return content + reset(t + b, theta_1, theta_2, i, j)
    return content + reset(t, theta_1, theta_2, i, j) + b


def every(how, *shape):
    """An object array of how(batch, head, i, j)."""
    out = np.empty(shape, dtype=object)
    for ix in np.ndindex(*shape):
        out[ix] = how(*ix)
    return out


def operands(n=4):
    """t and b of three heads, theta_1, theta_2."""
    return symbols("t", 3, n, n), symbols("b", 3, n, n), symbols("f", 3), symbols("g", 3)


# what it is


@theorem(of=[tupe.positional_scores], sizes="all h, n, d, d_head; A at h = 3, n = 4, d = 3, d_head = 2")
def positional_pinned():
    """positional_scores are t_ij = scale (p_i U_Q) . (p_j U_K) for each head, Eq. (7); with A = U_Q U_K^T for U_Q and 1 for U_K
    they are the same, so only A matters."""
    p, u_q, u_k, scale = sized("p", N, D), sized("Q", H, D, E), sized("K", H, D, E), symbol("scale")
    got, h, i, j, c, x, y = tupe.positional_scores(p, u_q, u_k, scale=scale), *map(index, (H, N, N, E, D, D))
    left = sp.Sum(p.at(i, x) * u_q.at(h, x, c), (x, 0, D - 1))
    right = sp.Sum(p.at(j, y) * u_k.at(h, y, c), (y, 0, D - 1))
    prove_equal([got.at(h, i, j)], [scale.e * sp.Sum(left * right, (c, 0, E - 1))], mention=[scale])
    p, u_q, u_k = symbols("p", 2, 4, 3), symbols("Q", 3, 3, 2), symbols("K", 3, 3, 2)
    got = tupe.positional_scores(p, u_q, u_k, scale=1)
    matrix, one = u_q @ np.swapaxes(u_k, -1, -2), np.broadcast_to(np.eye(3, dtype=int), (3, 3, 3))
    prove_that(got.shape == (2, 3, 4, 4), "axes are batch, heads, queries, keys")
    prove_equal(got, tupe.positional_scores(p, matrix, one, scale=1), mention=p)


@positional_pinned.control
def projections_exchanged():
    """The position scores are symmetric, so U_Q and U_K may change places."""
    p, u_q, u_k = symbols("p", 2, 2), symbols("Q", 1, 2, 1), symbols("K", 1, 2, 1)
    prove_equal(tupe.positional_scores(p, u_q, u_k, scale=1), tupe.positional_scores(p, u_k, u_q, scale=1))


@theorem(of=[tupe.reset], sizes="batch 2, h = 3, n = 5, all rows or the first four")
def reset_pinned():
    """reset is theta_1 in row 0, ([CLS], [CLS]) included, theta_2 in the rest of column 0, and the value elsewhere; theta for
    all batches or for each."""
    one, two = symbols("f", 2, 3), symbols("g", 2, 3)
    for rows in (4, 5):
        t = symbols("t", 2, 3, rows, 5)
        expected = every(lambda b, h, i, j, t=t: reset(t[b, h, i, j], one[b, h], two[b, h], i, j), 2, 3, rows, 5)
        prove_equal(tupe.reset(t, one, two), expected, mention=[*one.ravel(), *two.ravel(), *t[..., 1:, 1:].ravel()])
        prove_equal(tupe.reset(t, one[0], two[0])[0], expected[0])


@reset_pinned.control
def column_over_the_row():
    """([CLS], [CLS]) is theta_2: the column is written last."""
    t, _, one, two = operands()
    prove_equal(tupe.reset(t, one, two)[..., 0, 0], two)


@theorem(of=[tupe.untie], sizes="batch 2, h = 3, n = 4")
def untie_pinned():
    """untie takes theta_1 = t_00, theta_2 = t_11 and t_{i+1, j+1}; theta_2 is the score of the position of [CLS] with itself,
    which reset overwrites, so no number serves twice."""
    t = symbols("t", 2, 3, 5, 5)
    parts = tupe.untie(t)
    prove_equal(parts.position_scores, t[..., 1:, 1:])
    prove_equal(parts.cls_to_other, t[..., 0, 0])
    prove_equal(parts.other_to_cls, t[..., 1, 1])
    kept = tupe.reset(*parts)
    prove_equal(kept, every(lambda b, h, i, j: reset(t[b, h, i + 1, j + 1], t[b, h, 0, 0], t[b, h, 1, 1], i, j), 2, 3, 4, 4))


@untie_pinned.claim("theta_2 is t_11, the extra row with itself.")
def thetas_from_the_first_row():
    """theta_2 is t_10, the extra row with the position of [CLS]."""
    t = symbols("t", 1, 3, 3)
    prove_equal(tupe.untie(t).other_to_cls, t[..., 1, 0])


@theorem(of=[tupe.scores, tupe.reset], sizes="batch 2, h = 3, n = 4, d_head = 2")
def scores_pinned():
    """scores is Eq. (10) without a bias, and with one Eq. (11) or the released sum; the scale is that of q . k alone."""
    q, k, scale = symbols("q", 2, 3, 4, 2), symbols("k", 2, 3, 4, 2), symbol("scale")
    t, b, one, two = operands()
    for convention, bias in itertools.product(tupe.CONVENTIONS, (None, b)):

        def value(a, h, i, j, convention=convention, bias=bias):
            extra = None if bias is None else bias[h, i, j]
            return definition(q[a, h, i], k[a, h, j], t[h, i, j], extra, one[h], two[h], i, j, scale, convention)

        got = tupe.scores(q, k, t, one, two, scale=scale, convention=convention, relative_bias=bias)
        prove_equal(got, every(value, 2, 3, 4, 4), mention=[scale])
    both = [tupe.scores(q, k, t, one, two, scale=scale, convention=convention) for convention in tupe.CONVENTIONS]
    prove_equal(both[0], both[1])


@scores_pinned.claim("The released sum adds the bias after the reset, Eq. (11) before it.")
def released_as_printed():
    """The released sum is Eq. (11)."""
    t, b, one, two = operands(2)
    zero = 0 * symbols("q", 1, 3, 2, 1)
    both = [tupe.scores(zero, zero, t, one, two, scale=1, convention=c, relative_bias=b) for c in tupe.CONVENTIONS]
    prove_equal(both[0], both[1])


@scores_pinned.control
def position_scaled_again():
    """The scale covers the position scores."""
    t, _, one, two = operands(2)
    zero = 0 * symbols("q", 1, 3, 2, 1)
    prove_equal(tupe.scores(zero, zero, t, one, two, scale=2, convention="paper")[0], tupe.reset(2 * t, 2 * one, 2 * two))


# what it does


@theorem(of=[tupe.reset], sizes="h = 3, n = 4", as_written="runs")
def reset_projects():
    """reset is idempotent, and forgets the first row and column: scores that agree elsewhere have one reset. The last theta
    wins, and nothing else is lost."""
    t, other, one, two = operands()
    again = tupe.reset(t, one, two)
    prove_equal(tupe.reset(again, one, two), again, mention=t[:, 1:, 1:])
    inner = np.arange(4) > 0
    changed = np.where(inner[:, None] & inner, t, other)
    prove_equal(tupe.reset(changed, one, two), again)
    prove_equal(tupe.reset(tupe.reset(t, two, one), one, two), again)


@reset_projects.control
def reset_is_linear():
    """reset(t) + reset(b) = reset(t + b) with the same thetas."""
    t, b, one, two = operands()
    prove_equal(tupe.reset(t, one, two) + tupe.reset(b, one, two), tupe.reset(t + b, one, two))


@theorem(of=[tupe.scores, tupe.reset], sizes="batch 2, h = 3, n = 4, d_head = 2", as_written="runs")
def released_is_the_paper_with_other_thetas():
    """With the released bias, which is itself reset (a bucket of its own for row 0 and for column 0), the released sum is the
    paper's with theta + that bias: reset(t, f) + reset(b, f') = reset(t + b, f + f')."""
    q, k = symbols("q", 2, 3, 4, 2), symbols("k", 2, 3, 4, 2)
    t, b, one, two = operands()
    bias_one, bias_two = symbols("beta", 3), symbols("gamma", 3)
    released = tupe.scores(q, k, t, one, two, scale=1, convention="released", relative_bias=tupe.reset(b, bias_one, bias_two))
    thetas = one + bias_one, two + bias_two
    paper = tupe.scores(q, k, t, *thetas, scale=1, convention="paper", relative_bias=b)
    prove_equal(released, paper, mention=bias_one)


@released_is_the_paper_with_other_thetas.claim("It needs a bias that is itself reset, with a bucket of its own for [CLS].")
def for_a_bias_of_the_offset():
    """A bias b_{j - i} that is not reset gives the paper's form with some other theta_1: row 0 is no constant."""
    _, _, one, two = operands()
    zero, by_offset = 0 * symbols("q", 3, 3, 1), symbols("b", 5)
    bias = np.array([[[by_offset[j - i + 2] for j in range(3)] for i in range(3)]] * 3)
    got = tupe.scores(zero, zero, 0 * bias, one, two, scale=1, convention="released", relative_bias=bias)
    prove_equal(got[:, 0, 0], got[:, 0, 1])


@theorem(of=[tupe.scores, tupe.reset], sizes="batch 2, h = 3, n = 4, d_head = 2; both conventions", as_written="formula")
def from_cls_by_content_alone():
    """theta_1 adds one number to the whole row of [CLS], which softmax does not see (proofs/attention.py). So in the paper's
    form [CLS] attends by content alone, whatever theta_1, t and b are; the scores of all other rows are those of Eq. (11)."""
    q, k, c = symbols("q", 2, 3, 4, 2), symbols("k", 2, 3, 4, 2), symbol("c")
    t, b, one, two = operands()
    for convention in tupe.CONVENTIONS:
        rest = {"scale": 1, "convention": convention, "relative_bias": b}
        change = tupe.scores(q, k, t, one + c, two, **rest) - tupe.scores(q, k, t, one, two, **rest)
        prove_equal(change, every(lambda a, h, i, j: c if i == 0 else 0, 2, 3, 4, 4), mention=[c])
    got, content = tupe.scores(q, k, t, one, two, scale=1, convention="paper", relative_bias=b), q @ np.swapaxes(k, -1, -2)
    prove_equal(got[..., 0, :], content[..., 0, :] + one[:, None])
    rest = every(lambda a, h, i, j: reset(t[h, i, j] + b[h, i, j], one[h], two[h], i, j), 2, 3, 4, 4)
    prove_equal(got[..., 1:, :], content[..., 1:, :] + rest[..., 1:, :])


@from_cls_by_content_alone.control
def to_cls_by_content_alone():
    """theta_2 is as invisible: it adds one number to every row."""
    t, _, one, two = operands()
    change = tupe.reset(t, one, two + 1) - tupe.reset(t, one, two)
    prove_equal(change[:, 1, 0], change[:, 1, 1])


# what the position scores know


@theorem(of=[tupe.positional_scores, sinusoidal.encode], sizes="d = 2, 4")
def absolute_but_for_the_commutant():
    """With sinusoidal p the position scores depend on j - i alone exactly if A = U_Q U_K^T is made of 2 x 2 blocks a 1 + b J,
    which commute with the shifts: d of d^2 dimensions; any other A is absolute, and so are learned p in general. Solved for all
    i, j; frequencies are non-zero and no two equal up to sign. (All d: proofs/attention.py.)"""
    i, j = symbol("i"), symbol("j")
    for dim in (2, 4):
        w, unknown = symbols("w", dim // 2), symbols("A", dim, dim)
        p = sinusoidal.encode(array([i, j]), w, layout="interleaved")
        t = tupe.positional_scores(p, unknown[None], np.eye(dim, dtype=int)[None], scale=1)[0, 0, 1].e
        prove_equal([t], [p[0] @ unknown @ p[1]], mention=[i, j])
        solution = solve_forall([t.diff(i.e) + t.diff(j.e)], unknown)
        matrix = sp.Matrix(dim, dim, [solution[a.e] for a in unknown.ravel()])
        prove_that(len(matrix.free_symbols) == dim, f"the solutions form a space of dimension {dim} of {dim * dim}")
        expected = sp.zeros(dim, dim)
        for x in range(0, dim, 2):
            a, b = unknown[x + 1, x + 1].e, unknown[x + 1, x].e
            expected[x : x + 2, x : x + 2] = sp.Matrix([[a, -b], [b, a]])
        prove_equal(matrix.tolist(), expected.tolist())


@absolute_but_for_the_commutant.claim("It needs U_Q U_K^T to commute with the shifts.")
def relative_for_any_projections():
    """The position scores depend on j - i whatever U_Q and U_K, with sinusoidal p; witness A = diag(1, 0)."""
    w, i, j, s = symbols("w", 1), symbol("i"), symbol("j"), symbol("s")
    p = sinusoidal.encode(array([i, j, i + s, j + s]), w, layout="interleaved")
    t = tupe.positional_scores(p, np.array([[[1, 0], [0, 0]]]), np.eye(2, dtype=int)[None], scale=1)[0]
    prove_equal(t[2, 3], t[0, 1])


@absolute_but_for_the_commutant.claim("Learned positions give absolute scores.")
def relative_for_learned_positions():
    """A diagonal of the position scores is constant for learned p."""
    p, one = symbols("p", 2, 1), np.array([[[1]]])
    t = tupe.positional_scores(p, one, one, scale=1)[0]
    prove_equal(t[0, 0], t[1, 1])


@theorem(of=[tupe.scores, tupe.positional_scores, tupe.reset], sizes="h = 3, n = 4, d = 2, d_head = 2", as_written="runs")
def only_the_bias_is_t5s():
    """Away from [CLS] TUPE-R without positions (U_Q = 0) is a bias b_{j - i} on scaled scores, T5's idea; TUPE-A without
    positions is content alone. The position scores do not contain q or k: words and positions are untied."""
    q, k, p, u = symbols("q", 3, 4, 2), symbols("k", 3, 4, 2), symbols("p", 4, 2), symbols("U", 3, 2, 2)
    _, b, one, two = operands()
    none = tupe.positional_scores(p, 0 * u, u, scale=1)
    content = q @ np.swapaxes(k, -1, -2)
    for convention in tupe.CONVENTIONS:
        got = tupe.scores(q, k, none, one, two, scale=1, convention=convention, relative_bias=b)
        prove_equal(got[:, 1:, 1:], (content + b)[:, 1:, 1:])
        got = tupe.scores(q, k, none, one, two, scale=1, convention=convention)
        prove_equal(got[:, 1:, 1:], content[:, 1:, 1:])
        t = tupe.positional_scores(p, u, u, scale=1)
        untied = tupe.scores(q, k, t, one, two, scale=1, convention=convention, relative_bias=b) - content
        prove_equal(untied, tupe.scores(0 * q, k, t, one, two, scale=1, convention=convention, relative_bias=b))


@only_the_bias_is_t5s.claim("The position scores are absolute; T5's idea is the separate bias of TUPE-R.")
def position_scores_are_a_bias_of_the_offset():
    """TUPE contains T5's idea in its position scores: away from [CLS] they are constant along diagonals."""
    p, u = symbols("p", 3, 1), symbols("U", 1, 1, 1)
    t = tupe.positional_scores(p, u, u, scale=1)
    got = tupe.reset(t, symbols("f", 1), symbols("g", 1))
    prove_equal(got[:, 1, 1], got[:, 2, 2])
