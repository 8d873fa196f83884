"""DeBERTa: disentangled attention, content and relative position in two terms of their own."""

# Over budget: two conventions, logarithmic buckets, the decoder, and the gradient

from itertools import product

import mpmath
import numpy as np
import sympy as sp

from posref.offsets import offsets, scatter_rows
from posref.relative import deberta
from proofs.kit import *

DEFAULTS = {"steps": 2}  # He et al.

N, M, K = size("n"), size("m"), size("K")


def delta(i, j, span):
    """He et al., Eq. (3), case by case."""
    if i - j <= -span:
        return 0
    if i - j >= span:
        return 2 * span - 1
    return i - j + span


def definition(q, k, q_r, k_r, i, j, convention):
    """The score of query q at i and key k at j, not scaled: He et al., Eq. (4), or with delta(i, j) twice as released. Rows are
    lists of vectors, or None for a term that is left out."""
    dot = lambda a, b: sum(x * y for x, y in zip(a, b, strict=True))
    total = dot(q, k)
    if k_r is not None:
        total += dot(q, k_r[delta(i, j, len(k_r) // 2)])
    if q_r is not None:
        total += dot(k, q_r[delta(j, i, len(q_r) // 2) if convention == "paper" else delta(i, j, len(q_r) // 2)])
    return total


def log_bucket(offset, buckets, max_position):
    """The offset o up to m = buckets/2, then sign(o) (m + ceil(log(|o|/m) / log(M/m) (m - 1))) with M = max_position - 1, in
    integers: the least k with |o|^(m-1) m^k <= M^k m^(m-1). make_log_bucket_position in microsoft/DeBERTa."""
    middle, last, distance, k = buckets // 2, max_position - 1, abs(offset), 0
    if distance <= middle:
        return offset
    while distance ** (middle - 1) * middle**k > last**k * middle ** (middle - 1):
        k += 1
    return middle + k if offset > 0 else -middle - k


# the index


@theorem(of=[deberta.position_index], sizes="all K; all offsets; also K = 1, 2, 5")
def index_pinned():
    """position_index is delta(i, j): 0 from offset K on, 2K - 1 down from offset 1 - K, and i - j + K between."""
    t, inside = symbol("t", integer=True, nonnegative=True).e, index(2 * K - 1)
    at = lambda offset: deberta.position_index(filled((1,), offset), span=K).at(0)
    prove_equal([at(K + 1 + t), at(K), at(-K - t), at(1 - K)], [0, 0, 2 * K - 1, 2 * K - 1])
    prove_equal([at(K - 1 - inside)], [inside + 1], mention=[inside])
    for span in (1, 2, 5):
        reach = range(-span - 3, span + 4)
        got = deberta.position_index(np.array(reach), span=span).tolist()
        prove_that(got == [delta(0, offset, span) for offset in reach], f"offsets with K = {span}")


@index_pinned.control
def key_minus_query():
    """The index grows with j - i: the next key is in row K + 1."""
    prove_equal(deberta.position_index(np.array([1]), span=4), [5])


@index_pinned.claim("DeBERTa's index has 2K values, for the offsets 1 - K to K.")
def symmetric_clip():
    """The clip is that of Shaw et al., to K on both sides, 2K + 1 rows."""
    prove_equal([len(set(deberta.position_index(np.arange(-9, 10), span=4).tolist()))], [9])


@theorem(of=[deberta.position_index, offsets], sizes="all n, m, K, positions")
def translation_invariant():
    """Moving all tokens by s changes no index, on every path of the clip; positions enter a score through the index alone."""
    i, j, s = sized("i", N), sized("j", M), symbol("s").e
    index = lambda by: deberta.position_index(offsets(i + by, j + by), span=K)
    values = set()
    for _, (moved, still) in all_paths(lambda: [cell[0] for cell in entries(None, index(s), index(0))]):
        prove_equal([moved], [still])
        values.add(moved.has(sp.Indexed))
    prove_that(values == {True, False}, "positions occur unless they are clipped away")


@translation_invariant.control
def invariant_when_keys_alone_move():
    """Nothing changes when the keys move and the queries stay."""
    still, moved = (deberta.position_index(offsets(np.array([0]), np.arange(3) + s), span=4) for s in (0, 1))
    prove_equal(still, moved)


@theorem(of=[deberta.position_index], sizes="all K; all offsets", as_written="formula")
def ends_are_asymmetric():
    """delta is K - t and K + t at the offsets t and -t for t < K, whose sum is 2K, and 0 and 2K - 1 for t >= K: offsets from K
    on have row 0 to themselves, those from -K on share the last row with offset 1 - K."""
    t = symbol("t", integer=True, nonnegative=True).e
    both = lambda offset: [deberta.position_index(filled((1,), o), span=K).at(0) for o in (offset, -offset)]
    with assuming(sp.Le(t, K - 1)):
        prove_equal(both(t), [K - t, K + t])
    prove_equal([both(K), both(K + 1 + t), both(K - 1)], [[0, 2 * K - 1], [0, 2 * K - 1], [1, 2 * K - 1]])


@ends_are_asymmetric.control
def delta_is_antisymmetric():
    """delta(j, i) = 2K - delta(i, j) at every offset."""
    prove_equal([sum(deberta.position_index(np.array([7, -7]), span=4).tolist())], [8])


# the scores


def inputs():
    """Free q, k, q_r, k_r with 2 sequences, 3 heads, 2 queries, 5 keys, 4 features, 6 rows; offsets beyond both ends."""
    shapes = {"q": (2, 3, 2, 4), "k": (2, 3, 5, 4), "u": (3, 6, 4), "w": (3, 6, 4)}
    return *(symbols(name, *shape) for name, shape in shapes.items()), np.array([[0, 5], [9, 2]]), np.array([4, 7, 3, 0, 2])


WHOLE = [deberta.scores, deberta.content_to_position, deberta.position_to_content, deberta.position_index]


@theorem(of=[*WHOLE, offsets], sizes="batch 2, h = 3, n = 2, m = 5, d = 4, K = 3; all vectors")
def pinned():
    """scores is Eq. (4) of the paper or, with delta(i, j) in both terms, the released code, entry by entry: for offsets of a
    batch and shared ones, with both position terms, one or none, and scale times all of them."""
    q, k, q_r, k_r, queries, keys = inputs()
    scale = symbol("scale")
    for convention, first, second in product(deberta.CONVENTIONS, (q_r, None), (k_r, None)):
        for at in (queries, queries[0]):
            offset = offsets(at, keys)[:, None] if at.ndim == 2 else offsets(at, keys)
            got = deberta.scores(q, k, first, second, offset, scale=scale, convention=convention)
            expected = np.empty((2, 3, 2, 5), dtype=object)
            for b, h, i, j in np.ndindex(2, 3, 2, 5):
                rows = [None if r is None else r[h] for r in (first, second)]
                i_at, j_at = int(np.broadcast_to(at, (2, 2))[b, i]), int(keys[j])
                expected[b, h, i, j] = scale * definition(q[b, h, i], k[b, h, j], *rows, i_at, j_at, convention)
            prove_equal(got, expected, mention=[scale, *q.ravel()])


@pinned.claim("The released code reads delta(i, j) where Eq. (4) has delta(j, i).")
def the_released_code_follows_the_paper():
    """The code in transformers computes Eq. (4) of the paper."""
    k, q_r, offset = symbols("k", 1, 2, 1), symbols("u", 1, 4, 1), np.array([[0, 1]])
    prove_equal(*(deberta.position_to_content(k, q_r, offset, convention=c) for c in ("released", "paper")))


@pinned.claim("The code applies the index before the transpose, so it is not the paper's.")
def released_without_the_transpose():
    """The released index clip(-o + K) is applied after the transpose, where it is the paper's (nntrainer #3982)."""
    k, q_r = symbols("k", 1, 2, 1), symbols("u", 1, 4, 1)
    got = deberta.position_to_content(k, q_r, np.array([[0, 1]]), convention="released")[0, 0]
    prove_equal(got, [k[0, 0, 0] * q_r[0, 2, 0], k[0, 1, 0] * q_r[0, 3, 0]])


@theorem(
    of=[deberta.scores, deberta.position_to_content, deberta.position_index], sizes="K = 2, 3, offsets to K + 2; all vectors"
)
def conventions_agree_exactly_on_symmetric_rows():
    """The conventions agree for i = j, and for all keys and offsets exactly if row m of q^r equals row 2K - m and row 0 the
    last row: when position-to-content cannot tell left from right. Reversing the rows, m to 2K - m, turns one convention into
    the other for |j - i| < K, and not at the ends."""
    for span in (2, 3):
        reach = np.arange(-span - 2, span + 3)
        q, k, q_r = np.zeros((1, 1, 1), dtype=int), symbols("k", 1, len(reach), 1), symbols("u", 1, 2 * span, 1)
        at = {"offsets": reach[None], "scale": 1}
        score = lambda rows, c, q=q, k=k, at=at: deberta.scores(q, k, rows, None, convention=c, **at)[0, 0]
        paper, released = score(q_r, "paper"), score(q_r, "released")
        prove_equal(paper[reach == 0], released[reach == 0])
        solution = solve_forall([expression(x) for x in paper - released], q_r)
        row = [solution[u.e] for u in q_r[0, :, 0]]
        prove_equal(row[1:], row[:0:-1])
        prove_equal([row[0]], [row[-1]])
        prove_that(len(set(row)) == span, f"{span} of the {2 * span} rows are free")
        backwards = score(q_r[:, (2 * span - np.arange(2 * span)) % (2 * span)], "released")
        inside = abs(reach) < span
        prove_equal(backwards[inside], paper[inside])
        prove_that(all(a.e != b.e for a, b in zip(backwards[~inside], paper[~inside], strict=True)), "the ends differ")


@conventions_agree_exactly_on_symmetric_rows.claim("Reversing the rows does it for |j - i| < K, and not at the ends.")
def weights_may_be_reversed():
    """Reversing the rows of q^r converts a checkpoint from one convention to the other, at every offset."""
    k, q_r, reach = symbols("k", 1, 5, 1), symbols("u", 1, 4, 1), np.array([[-2, -1, 0, 1, 2]])
    backwards = deberta.position_to_content(k, q_r[:, [0, 3, 2, 1]], reach, convention="released")
    prove_equal(backwards, deberta.position_to_content(k, q_r, reach, convention="paper"))


@theorem(of=WHOLE, sizes="d = 4, K = 2, every offset to 3; all vectors")
def without_position_to_position():
    """The paper's score is (q_i + q^r_delta(j,i)) . (k_j + k^r_delta(i,j)) - q^r . k^r: position-to-position is left out of the
    four terms, and a score without content is 0."""
    (q, k), q_r, k_r = (symbols(name, 1, 1, 4) for name in "qk"), symbols("u", 1, 4, 4), symbols("w", 1, 4, 4)
    for offset in range(-3, 4):
        at = np.array([[offset]])
        score = lambda q, k, at=at: deberta.scores(q, k, q_r, k_r, at, scale=1, convention="paper")[0, 0]
        u, w = q_r[0, delta(offset, 0, 2)], k_r[0, delta(0, offset, 2)]
        prove_equal(score(q, k), [(q[0, 0] + u) @ (k[0, 0] + w) - u @ w], mention=[*u, *w])
        prove_equal(score(0 * q, 0 * k), [0])


@without_position_to_position.claim("Position-to-position is left out.")
def all_four_terms():
    """The score is the product of content plus position with content plus position."""
    (q, k), q_r, k_r = (symbols(name, 1, 1, 1) for name in "qk"), symbols("u", 1, 4, 1), symbols("w", 1, 4, 1)
    got = deberta.scores(q, k, q_r, k_r, np.array([[1]]), scale=1, convention="paper")
    prove_equal(got[0, 0], (q[0, 0] + q_r[0, 3]) * (k[0, 0] + k_r[0, 1]))


@theorem(
    of=WHOLE,
    sizes="d = 1, 2, 4; none, one, two terms",
    argument="different products of independent entries of mean 0 are uncorrelated, so their variances add",
    values="the coefficients of a polynomial are read",
)
def scale_counts_terms():
    """For independent entries of mean 0 and variance 1 a score has variance scale^2 d (1 + terms), the sum of the squares of
    the coefficients of its monomials, which are products of different entries; 1/sqrt(3d) is for both terms."""
    scale, names = symbol("scale"), {"q": 1, "k": 1, "u": 2, "w": 2}
    for dim in (1, 2, 4):
        q, k, q_r, k_r = (symbols(name, 1, rows, dim) for name, rows in names.items())
        for count, rows in ((0, (None, None)), (1, (q_r, None)), (1, (None, k_r)), (2, (q_r, k_r))):
            score = deberta.scores(q, k, *rows, np.array([[0]]), scale=scale, convention="paper")[0, 0, 0]
            monomials = sp.Poly(score.e, *(x.e for part in (q, k, q_r, k_r) for x in part.ravel())).terms()
            prove_that(all(max(powers) == 1 for powers, _ in monomials), "no entry is squared")
            prove_equal([sum(c**2 for _, c in monomials)], [scale.e**2 * dim * (1 + count)], mention=[scale])


@scale_counts_terms.claim("With both position terms the scale is 1/sqrt(3d).")
def scale_of_one_term():
    """1/sqrt(d), as in the Transformer, makes the variance 1 with both position terms too (d = 1)."""
    q, k, q_r, k_r = symbols("q", 1, 1, 1), symbols("k", 1, 1, 1), symbols("u", 1, 2, 1), symbols("w", 1, 2, 1)
    score = deberta.scores(q, k, q_r, k_r, np.array([[0]]), scale=1, convention="paper")[0, 0, 0].e
    free = [x.e for part in (q, k, q_r, k_r) for x in part.ravel()]
    prove_equal([sum(c**2 for c in sp.Poly(score, *free).coeffs())], [1])


# the log buckets of version 2 and 3

PAIRS = [(4, 4), (4, 30), (6, 9), (8, 109), (18, 17), (32, 64), (32, 128)]  # buckets and max_position, beside 256 and 512
PUBLISHED = {0: 0, 127: 127, 128: 128, 129: 129, 200: 169, 300: 207, 400: 233, 510: 255, 511: 255}


@example(
    of=[deberta.bucket_ends],
    sizes="8 pairs of buckets and max_position",
    equivalent={
        "bucket_ends: power, distances = (middle - 1, range(last + 1))  ->  "
        "power, distances = (middle - 1, range(last + 2))": "no end is beyond max_position - 1"
    },
)
def ends_pinned():
    """bucket_ends[b] is the last distance in a bucket up to b; it never decreases, is b up to m, ends at max_position - 1."""
    for buckets, max_position in [*PAIRS, (256, 512)]:
        ends = deberta.bucket_ends(buckets, max_position).tolist()
        prove_that(len(ends) == buckets and ends == sorted(ends) and ends[-1] == max_position - 1, "order and end")
        prove_that(ends[: buckets // 2 + 1] == [*range(buckets // 2 + 1)], "the first have one distance")
        bucket = lambda distance, b=buckets, m=max_position: log_bucket(distance, b, m)
        chosen = range(buckets) if buckets < 64 else range(100, 256, 31)
        prove_that(all(bucket(ends[b]) <= b < bucket(ends[b] + 1) for b in chosen), f"ends of {buckets} and {max_position}")


@ends_pinned.control
def rounded_to_the_nearest():
    """The ends are the geometric means to the nearest integer (32 buckets, max_position 64)."""
    middle, last = 16, mpmath.mpf(63)
    nearest = [int(mpmath.nint(middle * (last / middle) ** (mpmath.mpf(k) / 15))) for k in range(16)]
    prove_equal(deberta.bucket_ends(32, 64)[16:], nearest)


@example(of=[deberta.log_bucket, deberta.bucket_ends, deberta.position_index], sizes="8 pairs; |o| to max_position + 9, 10^12")
def log_buckets_pinned():
    """log_bucket is the definition up to max_position - 1, odd, and never decreases. Beyond, "microsoft" stays in the last
    bucket and "transformers" goes on counting, which the clip of position_index makes one more bucket."""
    for (buckets, max_position), source in product(PAIRS, deberta.SOURCES):
        inside = np.arange(1 - max_position, max_position)
        far = np.array([max_position, max_position + 9, 10**12])
        bucket = lambda o, b=buckets, m=max_position, s=source: deberta.log_bucket(o, buckets=b, max_position=m, source=s)
        expected = [log_bucket(offset, buckets, max_position) for offset in inside.tolist()]
        prove_that(bucket(inside).tolist() == expected == sorted(expected), f"{source}, {buckets} and {max_position}")
        prove_that(bool((bucket(inside) == -bucket(-inside)).all()), f"{source} is odd")
        beyond = buckets if source == "transformers" else buckets - 1
        prove_that(bucket(far).tolist() == [beyond] * 3 and bucket(-far).tolist() == [-beyond] * 3, f"{source} beyond")
        if source == "transformers":
            counted = [log_bucket(sign * int(n), buckets, max_position) for n in far[:2] for sign in (1, -1)]
            clipped = deberta.position_index(np.array(counted), span=buckets).tolist()
            prove_that(clipped == [0, 2 * buckets - 1] * 2, "the clip")
    for source in deberta.SOURCES:
        got = deberta.log_bucket(np.array([*PUBLISHED]), buckets=256, max_position=512, source=source)
        prove_that(got.tolist() == [*PUBLISHED.values()], f"the published pair, {source}")


@log_buckets_pinned.claim("From max_position on the two sources differ by one bucket.")
def the_sources_read_the_same_rows():
    """A key 512 tokens to the right has one row in microsoft/DeBERTa and transformers: it is row 1, and row 0."""
    rows = []
    for source in deberta.SOURCES:
        bucket = deberta.log_bucket(np.array([512]), buckets=256, max_position=512, source=source)
        rows.append(deberta.position_index(bucket, span=256).tolist())
    prove_equal(*rows)


@log_buckets_pinned.control
def buckets_end_at_max_position():
    """The logarithm runs to max_position = 512, so that 511 is not in the last bucket yet."""
    got = deberta.log_bucket(np.array([510, 511]), buckets=256, max_position=512, source="microsoft").tolist()
    prove_that(got[0] < got[1], counterexample=f"the offset 510 has bucket {got[0]}, the offset 511 has bucket {got[1]}")


def rounded(distance, buckets, max_position, bits):
    """log_bucket of a distance by logarithms, each operation rounded to so many bits."""
    middle = buckets // 2
    with mpmath.workprec(bits):
        far = mpmath.log(mpmath.mpf(distance) / middle) / mpmath.log(mpmath.mpf(max_position - 1) / middle) * (middle - 1)
        return distance if distance <= middle else int(mpmath.ceil(far)) + middle


@example(of=[deberta.log_bucket, deberta.bucket_ends], sizes="256 and 512, every distance; 18 and 17")
def rounded_logarithms():
    """With operations rounded to 24 bits (float32) or 53 every distance of 256 buckets and max_position 512 is right. With 18
    and 17 the logarithm of distance 12 is a whole number, 4, which float32 exceeds, so that it becomes 5."""
    distance = np.arange(1, 512)
    got = deberta.log_bucket(distance, buckets=256, max_position=512, source="transformers").tolist()
    for bits in (24, 53):
        prove_that([rounded(n, 256, 512, bits) for n in distance.tolist()] == got, f"256 and 512 with {bits} bits")
    tie = deberta.log_bucket(np.array([12]), buckets=18, max_position=17, source="transformers").tolist()
    prove_that(tie == [13] and rounded(12, 18, 17, 24) == 14, "the tie at 12")


@rounded_logarithms.claim("It is right at 256 and 512, and wrong at 18 and 17.")
def float32_is_always_right():
    """Rounded logarithms are right for every pair."""
    right = deberta.log_bucket(np.array([12]), buckets=18, max_position=17, source="transformers")[0]
    prove_equal([rounded(12, 18, 17, 24)], [right])


# the enhanced mask decoder


@theorem(of=[deberta.enhanced_mask_decoder], sizes="batch 2, n = 3, d = 2; 1, 2, 3 steps; any layer")
def decoder_pinned():
    """The decoder is layer(.. layer(layer(p, H), H) .., H), H + p in the place of p as released: one layer of weights, used
    `steps` times, with H as keys and values each time."""
    hidden, positions, f = symbols("H", 2, 3, 2), symbols("p", 3, 2), sp.Function("layer", real=True)
    layer = np.frompyfunc(lambda query, keys: Scalar(f(expression(query), expression(keys))), 2, 1)
    for convention, start in (("paper", array([positions, positions])), ("released", hidden + positions)):
        expected = start
        for steps in (1, 2, 3):
            expected = layer(expected, hidden)
            got = deberta.enhanced_mask_decoder(layer, hidden, positions, steps=steps, convention=convention)
            prove_equal(got, expected, mention=[*hidden.ravel(), *positions.ravel()])


@decoder_pinned.claim("H stays keys and values in every step.")
def keys_follow_the_query():
    """The second step attends to the output of the first, as two more layers would."""
    hidden, positions, f = symbols("H", 1, 1), symbols("p", 1, 1), sp.Function("layer", real=True)
    layer = np.frompyfunc(lambda query, keys: Scalar(f(query.e, keys.e)), 2, 1)
    once = layer(positions, hidden)
    prove_equal(deberta.enhanced_mask_decoder(layer, hidden, positions, convention="paper"), layer(once, once))


@decoder_pinned.claim("The paper starts from p, the released code from H + p.")
def the_same_start():
    """Starting from p and from H + p is the same decoder."""
    hidden, positions = symbols("H", 1, 1), symbols("p", 1, 1)
    layer = lambda query, keys: query + keys
    prove_equal(*(deberta.enhanced_mask_decoder(layer, hidden, positions, convention=c) for c in deberta.CONVENTIONS))


@theorem(of=[deberta.scores_gradient, scatter_rows], sizes="2 queries, 3 keys, d = 1, span 1 and 2, one head")
def gradient_by_calculus():
    """scores_gradient is the gradient of <g, scores> by q, k and both kinds of rows, in both conventions, by symbolic
    differentiation."""
    q, k, g, scale = symbols("q", 2, 1), symbols("k", 3, 1), symbols("g", 2, 3), symbol("scale")
    for span, convention in product((1, 2), ("paper", "released")):
        q_r, k_r = symbols("qr", 2 * span, 1), symbols("kr", 2 * span, 1)
        stated = [[scale * definition(q[i], k[j], q_r, k_r, i, j, convention) for j in range(3)] for i in range(2)]
        loss = expression((g * array(stated)).sum())
        given = [x[None] for x in (g, q, k, q_r, k_r)]
        got = deberta.scores_gradient(*given, offsets(np.arange(2), np.arange(3))[None], scale=scale, convention=convention)
        for part, inputs in zip(got, (q, k, q_r, k_r), strict=True):
            prove_equal(part[0], [[loss.diff(x.e) for x in row] for row in inputs], mention=[scale])


@gradient_by_calculus.claim("Position-to-content reads rows by delta(j, i): its gradient adds up over columns.")
def the_conventions_have_one_gradient():
    """The gradients do not depend on the convention."""
    g, q, k, q_r, k_r = (symbols(name, 1, rows, 1) for name, rows in (("g", 1), ("q", 1), ("k", 1), ("qr", 4), ("kr", 4)))
    at = np.array([[1]])
    both = (deberta.scores_gradient(g, q, k, q_r, k_r, at, scale=1, convention=name) for name in ("paper", "released"))
    paper, released = both
    prove_equal(paper.q_r, released.q_r)
