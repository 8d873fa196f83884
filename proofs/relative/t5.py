"""T5 bias: one trained number per head and bucket of offsets."""

# Over budget: rounded logarithms are decided for every bucket, and the gradient

from itertools import pairwise

import mpmath
import numpy as np
import sympy as sp

from posref import attention
from posref.offsets import offsets
from posref.relative import t5
from proofs.kit import *

DEFAULTS = {"buckets": 32, "max_distance": 128}  # Raffel et al., section 2.1

N, M, H, D = size("n"), size("m"), size("h"), size("d")

ENCODER, DECODER = (16, 128), (32, 128)  # buckets on a side, max_distance
SIDES = [(b, d) for b in (2, 3, 5, 8, 9, 16, 20, 32, 33) for d in (17, 24, 64, 100, 128, 243, 1000)]
STARTS = {
    ENCODER: [*range(9), 12, 16, 23, 32, 46, 64, 91],
    DECODER: [*range(17), 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113],
}


def one_side(distance, buckets, max_distance):
    """e + floor(log(n/e) / log(D/e) L), at most the last bucket, in integers: the largest k < L with n^L e^k >= D^k e^L.
    Raffel et al., section 2.1, and _relative_position_bucket in their code."""
    e = buckets // 2
    power, k = buckets - e, 0
    if distance < e:
        return distance
    while k + 1 < power and distance**power * e ** (k + 1) >= max_distance ** (k + 1) * e**power:
        k += 1
    return e + k


def definition(offset, buckets, max_distance, bidirectional):
    """The bucket of a key `offset` tokens to the right: half of the buckets for each side, or all for the past."""
    if bidirectional:
        return one_side(abs(offset), buckets // 2, max_distance) + (buckets // 2 if offset > 0 else 0)
    return one_side(max(-offset, 0), buckets, max_distance)


def ties(buckets, max_distance):
    """The distances whose logarithm is a whole number of buckets."""
    e = buckets // 2
    power = buckets - e
    starts = {max_distance**k * e ** (power - k) for k in range(power + 1)}
    return [n for n in range(e, max_distance + 1) if n**power in starts]


# the buckets


@example(of=[t5.bucket_starts], sizes="63 pairs of buckets and max_distance, the published ones among them")
def starts_pinned():
    """bucket_starts[b] is the smallest distance with a bucket of at least b; it never decreases and begins 0, 1, .., e."""
    for side in SIDES:
        starts, bucket = t5.bucket_starts(*side).tolist(), lambda n, side=side: one_side(n, *side)
        prove_that(starts == sorted(starts) and starts[: side[0] // 2 + 1] == [*range(side[0] // 2 + 1)], f"order of {side}")
        prove_that(len(starts) == side[0], f"{side[0]} buckets")
        prove_that(all(bucket(n) >= b for b, n in enumerate(starts)), f"starts of {side} are late enough")
        prove_that(all(bucket(n - 1) < b for b, n in enumerate(starts) if n), f"starts of {side} are early enough")
    for side, starts in STARTS.items():
        prove_that(t5.bucket_starts(*side).tolist() == starts, f"the published starts of {side}")


@starts_pinned.claim("The last bucket begins at 91 in the encoder and at 113 in the decoder.")
def saturates_at_max_distance():
    """The last bucket begins at 128, the max_distance."""
    prove_equal(t5.bucket_starts(*ENCODER)[-1:], [128])


@starts_pinned.claim("It begins at 778: max_distance is where the formula would reach one bucket more.")
def wavlm_saturates_at_max_distance():
    """WavLM's last bucket begins at 800, its max_distance."""
    prove_equal(t5.bucket_starts(160, 800)[-1:], [800])


@starts_pinned.claim("With 128 buckets and max_distance 100 there are 27 that no distance reaches.")
def every_bucket_is_used():
    """Each bucket holds a distance. With 128 buckets and max_distance 100 there are 27 that none reaches."""
    starts = t5.bucket_starts(128, 100).tolist()
    empty = sum(a == b for a, b in pairwise(starts))
    prove_that(not empty, counterexample=f"of 128 buckets {empty} start where the next one starts, expected 0")


@example(of=[t5.bucket, t5.bucket_starts], sizes="30 pairs, two directions, |j - i| up to max_distance + 9, and 10^18")
def buckets_pinned():
    """bucket is the definition for both directions: ties, ends, and a distance of 10^18 included."""
    for buckets in (4, 6, 10, 18, 32, 40):
        for max_distance in (21, 64, 100, 128, 243):
            reach = [*range(-max_distance - 9, max_distance + 10), -(10**18), 10**18]
            for direction in (True, False):
                got = t5.bucket(np.array(reach), buckets=buckets, max_distance=max_distance, bidirectional=direction)
                expected = [definition(offset, buckets, max_distance, direction) for offset in reach]
                prove_that(got.tolist() == expected, f"{buckets} buckets, {max_distance}, bidirectional {direction}")
    table = [*range(9), 8, 8, 8, *[9] * 4, *[10] * 7, *[11] * 8]  # i - j = 0 .. 30, as an article prints it
    prove_that(t5.bucket(-np.arange(31), bidirectional=True).tolist() == table, "the printed table is the encoder's past")


@buckets_pinned.claim("T5's offset is memory minus query, j - i: the next key has bucket 17.")
def query_minus_key():
    """The offset is i - j: the key to the right of the query has bucket 1."""
    prove_equal(t5.bucket(np.array([1]), bidirectional=True), [1])


@buckets_pinned.claim("The printed table is the encoder's; the decoder has 32 buckets on its one side.")
def printed_table_is_the_decoders():
    """The printed table holds for the encoder and the decoder of T5."""
    prove_equal(*(t5.bucket(-np.arange(31), bidirectional=direction) for direction in (True, False)))


@buckets_pinned.claim("In the decoder every future key has the bucket of distance 0.")
def future_keys_keep_their_distance():
    """In the decoder a future key is told from the query's own."""
    own, after = t5.bucket(np.array([0, 1]), bidirectional=False).tolist()
    prove_that(own != after, counterexample=f"the own token has bucket {own}, the next key has bucket {after}")


@theorem(
    of=[t5.bucket, t5.bucket_starts],
    sizes="every distance; (buckets on the side, max_distance) = (32, 128), (16, 128), (9, 243), (2, 17)",
)
def never_decreases():
    """A farther key in the past never has a smaller bucket: on every path of the comparisons the next distance has the same
    bucket or a larger one. From the last start on, which is at most max_distance, the bucket is the last one."""
    d = symbol("d", integer=True, nonnegative=True)
    for buckets, max_distance in (DECODER, ENCODER, (9, 243), (2, 17)):
        last = int(t5.bucket_starts(buckets, max_distance)[-1])
        past = lambda *d, b=buckets, m=max_distance: t5.bucket(-array(d), buckets=b, max_distance=m, bidirectional=False)
        for _, (here, there) in all_paths(lambda past=past: past(d, d + 1)):
            prove_that(0 <= here <= there < buckets, f"the order of {buckets} buckets up to {max_distance}")
        for _, (far,) in all_paths(lambda past=past, last=last: past(d + last)):
            prove_that(far == buckets - 1 and last <= max_distance, f"{buckets} buckets end at {last}")


@never_decreases.control
def increases_with_distance():
    """Other distances have other buckets."""
    got = t5.bucket(-np.arange(20), bidirectional=True).tolist()
    same = next(n for n, (a, b) in enumerate(pairwise(got)) if a >= b)
    witness = f"distance {same} has bucket {got[same]}, distance {same + 1} has bucket {got[same + 1]}"
    prove_that(got[same] < got[same + 1], counterexample=witness)


# the logarithm


@theorem(
    of=[t5.bucket_starts],
    sizes="all n >= e, D > e, k, L, real; the starts of encoder and decoder",
    argument="exp grows, so the quotient is at least 1 exactly if L x >= k y; as y > 0 the largest such integer k is the floor",
)
def equivalent_to_the_logarithm():
    """n^L e^k >= D^k e^L exactly if log(n/e) L >= k log(D/e): with n = e exp(x) and D = e exp(y) the quotient of the two powers
    is exp(L x - k y). So the largest such k is floor(log(n/e) / log(D/e) L) over the reals, and start e + k is the first n."""
    e = symbol("e", positive=True).e
    x, y, k, length = (symbol(name).e for name in ("x", "y", "k", "L"))
    power = lambda base, logarithm, exponent: base**exponent * sp.exp(logarithm * exponent)
    quotient = power(e, x, length) * e**k / (power(e, y, k) * e**length)
    prove_equal([quotient], [sp.exp(length * x - k * y)], mention=[x, y])
    for side in (ENCODER, DECODER):
        prove_that(first_of_their_powers(side, side[0] // 2), f"the starts of {side} are the first of their powers")


def first_of_their_powers(side, divisor):
    """Whether start e + k is the first n with (n / divisor)^L >= (D / divisor)^k, for each k."""
    (buckets, d), e = side, side[0] // 2
    starts, length = t5.bucket_starts(*side).tolist(), buckets - e
    reached = lambda n, k: n**length * divisor**k >= d**k * divisor**length
    return all(reached(n, k) and not reached(n - 1, k) for k, n in enumerate(starts[e:]))


@equivalent_to_the_logarithm.control
def equivalent_with_distances_not_divided():
    """log n L is as good as log(n/e) L."""
    first = next(n for n in range(1, 129) if n**8 >= 128)
    start = t5.bucket_starts(*ENCODER)[ENCODER[0] // 2 + 1]
    words = f"L = 8: the first n with n^8 >= 128 is {first}, expected {start}"
    prove_that(first_of_their_powers(ENCODER, 1), counterexample=words)


def published(n, e, power, d):
    """The order of Mesh TensorFlow and transformers."""
    return mpmath.log(n / e) / mpmath.log(d / e) * power


def with_epsilon(n, e, power, d):
    """t5x: the machine epsilon inside the logarithm."""
    return mpmath.log(n / e + mpmath.eps) / mpmath.log(d / e) * power


def by_reciprocal(n, e, power, d):
    """A quotient as a product with the reciprocal, as compilers may compute it."""
    return mpmath.log(n / e) * (1 / mpmath.log(d / e)) * power


def factor_first(n, e, power, d):
    """The constant factor computed in advance."""
    return mpmath.log(n / e) * (power / mpmath.log(d / e))


def difference_of_logarithms(n, e, power, d):
    """log n - log e for log(n/e)."""
    return (mpmath.log(n) - mpmath.log(e)) / (mpmath.log(d) - mpmath.log(e)) * power


def rounded(variant, distance, buckets, max_distance, bits):
    """The bucket by a logarithm, each operation rounded to so many bits."""
    e = buckets // 2
    with mpmath.workprec(bits):
        k = variant(mpmath.mpf(distance), mpmath.mpf(e), mpmath.mpf(buckets - e), mpmath.mpf(max_distance))
    return min(e + int(k), buckets - 1) if distance >= e else distance


def wrong_at(variant, side, bits, distances):
    """The distances among these whose bucket is wrong."""
    buckets, max_distance = side
    right = t5.bucket(-np.array(distances), buckets=buckets, max_distance=max_distance, bidirectional=False).tolist()
    return [n for n, bucket in zip(distances, right, strict=True) if rounded(variant, n, *side, bits) != bucket]


VARIANTS = (published, with_epsilon, by_reciprocal, factor_first, difference_of_logarithms)


# {(side, bits of a rounded operation): the distances whose bucket is wrong, all of them ties}
WRONG = {
    (published, (9, 128), 53): [8, 16, 64],
    (by_reciprocal, (3, 100), 24): [10],
    (by_reciprocal, (20, 1000), 24): [100],
    (by_reciprocal, ENCODER, 53): [64],
    (factor_first, ENCODER, 53): [64],
    (difference_of_logarithms, (32, 256), 53): [64],
}


@example(of=[t5.bucket, t5.bucket_starts], sizes="encoder and decoder; ties of 63 pairs")
def rounded_logarithms():
    """A tie, where the logarithm is a whole number of buckets, is a start or max_distance. Off the ties none of the VARIANTS
    errs at the distances 1 to 200 for T5's encoder and decoder, each operation and logarithm being rounded correctly to 24 bits
    (float32) or 53.
    The published order, with epsilon or without, is right at their ties too, and in float32 at every tie of 63 pairs; the
    table WRONG says where orders fail. A library's logarithm need not be rounded correctly."""
    for side in (ENCODER, DECODER):
        for bits in (24, 53):
            for variant in VARIANTS:
                wrong = wrong_at(variant, side, bits, range(1, 201))
                prove_that(set(wrong) <= set(ties(*side)), f"{variant.__name__} off the ties of {side}")
                prove_that(not wrong or variant not in (published, with_epsilon), f"{variant.__name__} for {side}")
    premise(
        ties(*ENCODER) == [8, 16, 32, 64, 128] and ties(*DECODER) == [16, 128],
        "the ties are 8, 16, 32, 64, 128 in the encoder, 16 and 128 in the decoder",
    )
    for side in SIDES:
        prove_that({*ties(*side)} <= {side[1], *t5.bucket_starts(*side).tolist()}, f"ties of {side} are starts, or the end")
        for variant in (published, with_epsilon):
            prove_that(wrong_at(variant, side, 24, ties(*side)) == [], f"{variant.__name__} in float32 for {side}")
    for (variant, side, bits), distances in WRONG.items():
        prove_that(wrong_at(variant, side, bits, ties(*side)) == distances, f"{variant.__name__} for {side} with {bits} bits")


@rounded_logarithms.claim("By two usual orders of operations distance 64 has a wrong bucket in float64.")
def any_order_will_do():
    """float64 is fine enough for any order of the operations in the encoder."""
    wrong = {variant.__name__: wrong_at(variant, ENCODER, 53, range(1, 129)) for variant in VARIANTS}
    witness = f"wrong distances: {', '.join(f'{name} {at}' for name, at in wrong.items() if at)}, expected none"
    prove_that(not any(wrong.values()), counterexample=witness)


@rounded_logarithms.claim("With 9 buckets and 128 float32 is right at ties where float64 is not.")
def more_bits_are_safer():
    """Where float32 is right float64 is (9 buckets, max_distance 128)."""
    wrong = [wrong_at(published, (9, 128), bits, range(4, 129)) for bits in (24, 53)]
    prove_that(wrong[0] == wrong[1], counterexample=f"wrong distances: with 24 bits {wrong[0]}, with 53 bits {wrong[1]}")


@rounded_logarithms.claim("Eight bits put distances into wrong buckets.")
def bfloat16_logarithms():
    """Eight bits are enough, since buckets are wide."""
    wrong = wrong_at(published, ENCODER, 8, range(1, 129))
    prove_that(wrong == [], counterexample=f"8 bits: the buckets of the distances {wrong} are wrong")


# the bias


@theorem(of=[t5.bias, t5.bucket, t5.bucket_starts, offsets], sizes="batch 2, h = 3, n = 2, m = 5, 8 buckets; every table")
def pinned():
    """Entry (batch, h, i, j) of bias is B[bucket(j - i), h], B being free; one decoding step is the last row."""
    table, queries, keys = symbols("B", 8, 3), np.array([[4, 9], [0, 40]]), np.array([[0, 1, 5, 30, 9], [2, 3, 0, 41, 1]])
    for direction in (True, False):
        got = t5.bias(queries, keys, table, max_distance=20, bidirectional=direction)
        prove_that(got.shape == (2, 3, 2, 5), "axes are batch, heads, queries, keys")
        expected = np.empty((2, 3, 2, 5), dtype=object)
        for b, h, i, j in np.ndindex(2, 3, 2, 5):
            expected[b, h, i, j] = table[definition(int(keys[b, j] - queries[b, i]), 8, 20, direction), h]
        prove_equal(got, expected)
        full = t5.bias(np.arange(5), np.arange(5), table, max_distance=20, bidirectional=direction)
        prove_equal(t5.bias(np.array([4]), np.arange(5), table, max_distance=20, bidirectional=direction), full[:, -1:])


@pinned.claim("A decoding step has the position of its token in the text.")
def step_with_its_own_positions():
    """A decoding step may count its query from 0."""
    table = symbols("B", 8, 1)
    full = t5.bias(np.arange(3), np.arange(3), table, bidirectional=False)
    prove_equal(t5.bias(np.array([0]), np.arange(3), table, bidirectional=False), full[:, -1:])


@theorem(
    of=[t5.bias, t5.bucket, t5.bucket_starts, offsets],
    sizes="all i, j, shifts; 32 buckets and max_distance 128, and 4, 6, 8, 16 with 12",
    values="the key is the query moved by an offset",
)
def translation_invariant():
    """bias does not change when all tokens move by s, on every path of its comparisons, which ask for nothing but the offset.
    Every bucket that begins before the next one is reached, so the offset does matter."""
    i, j, s, o = (symbol(name, integer=True) for name in ("i", "j", "s", "o"))
    for buckets, limit in ((4, 12), (6, 12), (8, 12), (16, 12), (32, 128)):
        table = symbols("B", buckets, 1)
        for direction in (True, False):
            bias = lambda *at, t=table, m=limit, d=direction: t5.bias(*map(array, at), t, max_distance=m, bidirectional=d)
            reached = set()
            for conditions, (here, there) in all_paths(lambda bias=bias: (bias([i], [j]), bias([i + s], [j + s]))):
                prove_equal(there, here)
                asked = {fact.subs(j.e, i.e + o.e).free_symbols == {o.e} for fact, _ in conditions}
                prove_that(asked == {True}, "comparisons ask for the offset")
                reached.add(str(here[0, 0, 0]))
            side = buckets // 2 if direction else buckets
            starts = t5.bucket_starts(side, limit).tolist()
            used = {b for b in range(side) if b + 1 == side or starts[b] < starts[b + 1]}
            used |= {b + side for b in used if b} if direction else set()
            prove_that(reached == {f"B_{b}_0" for b in used}, f"the buckets reached of {buckets}")


@translation_invariant.control
def invariant_when_keys_alone_move():
    """Nothing changes when the keys move and the queries stay."""
    table, keys = symbols("B", 8, 1), np.arange(3)
    still, moved = (t5.bias(np.array([2]), keys + s, table, bidirectional=True) for s in (0, 1))
    prove_equal(still, moved)


@translation_invariant.claim("Encoder buckets tell left from right.")
def symmetric():
    """The bias of (i, j) is that of (j, i), a function of |i - j|."""
    table, positions = symbols("B", 8, 1), np.arange(3)
    bias = t5.bias(positions, positions, table, bidirectional=True)
    prove_equal(bias, np.swapaxes(bias, -1, -2))


@theorem(of=[attention.scores], sizes="all h, n, m, d")
def no_scale():
    """q . k + B is not scaled: 1/sqrt(d) is in the weights. With a scale c on q . k queries would have to grow by 1/c, and with
    one on both the bias as well."""
    q, k, b, c = sized("q", H, N, D), sized("k", H, M, D), sized("B", H, N, M), symbol("c").e
    plain = attention.scores(q, k, scale=1) + b
    prove_equal(*entries(None, attention.scores(q / c, k, scale=c) + b, plain))
    prove_equal(*entries(None, c * (attention.scores(q / c, k, scale=1) + b / c), plain))


@no_scale.claim("T5 does not scale; 1/sqrt(d) is in its initial weights.")
def scaled_as_usual():
    """The scores are q . k / sqrt(d) + B, as in every other Transformer (d = 4)."""
    q, k, b = symbols("q", 1, 4), symbols("k", 2, 4), symbols("B", 1, 2)
    prove_equal(attention.scores(q, k, scale=Scalar(1) / 2) + b, attention.scores(q, k, scale=1) + b)


@no_scale.control
def bias_inside_the_scale():
    """(q . k + B) / sqrt(d), with the queries multiplied by sqrt(d) to make up for it."""
    q, k, b, c = symbols("q", 1, 2), symbols("k", 2, 2), symbols("B", 1, 2), symbol("c")
    prove_equal(c * (attention.scores(q / c, k, scale=1) + b), attention.scores(q, k, scale=1) + b)


def gated(x, weight, offset, c, m=sp):
    """The paper's form for one row: with u, r the sigmoids of both sums, (1 + v) + (1 - v) r c at v = 1 - u. Chen et al.,
    WavLM, arXiv 2110.13900, and transformers 5.23.0 modeling_wavlm.py."""
    parts = [sum(a * b for a, b in zip(x, row, strict=True)) + o for row, o in zip(weight, offset, strict=True)]
    u, r = ((1 + m.tanh(sum(half) / 2)) / 2 for half in (parts[:4], parts[4:]))  # 1 / (1 + e^-z)
    return (2 - u) + u * r * c


@theorem(of=[t5.gate], sizes="2 heads, 2 rows, d = 2; every weight")
def gate_pinned():
    """gate is u (r c - 1) + 2 = (1 + v) + (1 - v) r c with v = 1 - u; at c = 1 it is 1 + (1 - u) + u r = 2 - u (1 - r), so that
    it lies between 1 and 2."""
    x, w, o, c = symbols("x", 2, 2, 2), symbols("w", 8, 2), symbols("o", 8), symbols("c", 2)
    got = t5.gate(x, w, o, c)
    expected = [[gated(row, w, o, c[h]) for row in x[h]] for h in (0, 1)]
    prove_equal(got, [[sp.expand(expression(y)) for y in row] for row in expected], mention=[c[0], w[0, 0], w[7, 0]])
    at_one = t5.gate(x, w, o, 0 * c + 1)
    u, r = ((1 + np.tanh(part / 2)) / 2 for part in ((x @ w.T + o)[..., :4].sum(-1), (x @ w.T + o)[..., 4:].sum(-1)))
    prove_equal(at_one, 2 - u * (1 - r))
    prove_equal(at_one, 1 + (1 - u) + u * r)


GATE = {"x": symbols("x", 1, 1, 1), "weight": symbols("w", 8, 1), "offset": symbols("o", 8), "constant": symbols("c", 1)}
gate_pinned.control_by("t5.gate", "halves_interleaved", **GATE)


@gate_pinned.claim("Where u is 0 the gate is 2: no gate takes the bias away.")
def a_closed_gate_takes_the_bias_away():
    """Where u is 0 row i has no bias."""
    got = t5.gate(np.zeros((1, 1, 1)), np.zeros((8, 1)), np.full(8, -200.0), np.ones(1))
    prove_equal(got, [[0]])


@theorem(of=[t5.bias_gradient], sizes="2 queries, 4 keys, 2 heads, 2 rows of a batch; 4 buckets", as_written="formula")
def bias_gradient_by_calculus():
    """bias_gradient is the gradient of <g, bias> by the table, by symbolic differentiation; a batch is summed."""
    table, g = symbols("w", 4, 2), symbols("g", 2, 2, 2, 4)
    query, key = np.array([[0, 9], [5, 6]]), np.array([[0, 1, 2, 9], [3, 4, 5, 6]])
    for bidirectional in (True, False):
        given = {"max_distance": 8, "bidirectional": bidirectional}
        loss = expression((g * t5.bias(query, key, table, **given)).sum())
        got = t5.bias_gradient(g, query, key, buckets=4, **given)
        prove_equal(got, [[loss.diff(x.e) for x in row] for row in table], mention=[g[0, 0, 0, 0]])


@bias_gradient_by_calculus.claim("A bucket has the sum over all of its offsets, whatever their number.")
def bias_gradient_is_an_average():
    """The gradient of a bucket is the average over its offsets."""
    g, positions = symbols("g", 1, 1, 2), np.array([0, 0])
    got = t5.bias_gradient(g, positions[:1], positions, buckets=4, max_distance=8, bidirectional=False)
    prove_equal([got[0, 0]], [(g[0, 0, 0] + g[0, 0, 1]) / 2])
