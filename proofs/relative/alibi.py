"""ALiBi: attention with linear biases, a fixed slope times the distance."""

# Over budget: three forms, where they agree, and the recursion of the slopes

from fractions import Fraction
from itertools import pairwise

import numpy as np
import sympy as sp

from posref import attention
from posref.offsets import offsets
from posref.relative import alibi
from proofs.attention import definition as softmax
from proofs.kit import *

DEFAULTS = {"max_bias": 8}  # Press et al., section 3
ROUNDS = {"slopes": "slopes_pinned"}

N, M, H, D = size("n"), size("m"), size("h"), size("d")


def steps(heads):
    """x_a in the slope m_a = 2^(-max_bias x_a): a / heads for a power of two; else those of the largest power P below, and then
    every other one of 2P. Press et al., section 3, and get_slopes in their code."""
    power = 1
    while 2 * power <= heads:
        power *= 2
    if power == heads:
        return [Fraction(a, heads) for a in range(1, heads + 1)]
    return steps(power) + steps(2 * power)[::2][: heads - power]


def slope(step, max_bias=8, m=sp):
    """2^(-max_bias step)"""
    return m.exp(-max_bias * step.numerator * m.log(2) / step.denominator)


def definition(i, j, slope, form="signed"):
    """The bias of query position i and key position j. Press et al., section 3 (signed)."""
    return slope * (j if form == "key" else -abs(j - i) if form == "absolute" else j - i)


def exactly(heads):
    """The shipped slopes in exact numbers."""
    return [expression(m) for m in alibi.slopes(heads, max_bias=Scalar(8))]


def prove_one_ratio(slopes):
    ratios = [b / a for a, b in pairwise(slopes)]
    first, other = (float(ratio) for ratio in (ratios[0], next((r for r in ratios if r != ratios[0]), ratios[0])))
    prove_that(len(set(ratios)) == 1, counterexample=f"two slopes have the ratio {first:.4f}, two others {other:.4f}")


# the slopes


@theorem(
    of=[alibi.slopes],
    sizes="h = 1 .. 256",
    equivalent={
        "slopes: steps = np.array([*range(2, 2 * power + 1, 2), *range(1, 2 * (heads - power), 2)])  ->  "
        "steps = np.array([*range(2, 2 * power + 2, 2), *range(1, 2 * (heads - power), 2)])": "2 power + 1 is odd"
    },
)
def slopes_pinned():
    """slopes is the published recursion: for 1 to 256 heads at max_bias 256, where all slopes are powers of two, which float64
    has exactly; for 1, 3, 6 and 12 heads with any max_bias, slope a is 2^(-max_bias x_a). The default is 8."""
    for heads in range(1, 257):
        fractions, exponents = np.frexp(alibi.slopes(heads, max_bias=256))
        prove_that(bool((fractions == 0.5).all()), f"the slopes of {heads} heads are powers of two")
        prove_that((1 - exponents).tolist() == [256 * step for step in steps(heads)], f"the exponents of {heads} heads")
    max_bias = symbol("max_bias", positive=True)
    for heads in (1, 3, 6, 12):
        stated = [sp.Pow(2, -max_bias.e * sp.Rational(step)) for step in steps(heads)]
        prove_equal(alibi.slopes(heads, max_bias=max_bias), stated)
    for heads, exponents in ((3, (4, 8, 2)), (6, (2, 4, 6, 8, 1, 3))):
        prove_that(alibi.slopes(heads).tolist() == [2.0**-e for e in exponents], f"the slopes of {heads} heads with 8")


@slopes_pinned.claim("For a number of heads that is no power of two the published slopes are not in order.")
def slopes_are_sorted():
    """The slopes fall from head to head, as a user of TensorRT-LLM made them (12 heads)."""
    slopes = [float(each) for each in exactly(12)]
    rise = next(a for a, (x, y) in enumerate(pairwise(slopes)) if y >= x)
    witness = f"head {rise} has the slope {slopes[rise]:.4f}, head {rise + 1} has {slopes[rise + 1]:.4f}"
    prove_that(slopes[rise + 1] < slopes[rise], counterexample=witness)


@slopes_pinned.claim("That is so for powers of two alone; other numbers interleave two sequences.")
def plain_geometric_sequence():
    """m_a = 2^(-8 a / h) for every h, one geometric sequence: 0.63 first, not 0.5 (h = 12)."""
    first = float(exactly(12)[0]), float(slope(Fraction(1, 12)))
    prove_that(first[0] == first[1], counterexample=f"h = 12: the first slope is {first[0]:.4f}, expected {first[1]:.4f}")


@slopes_pinned.claim("The first of 8 slopes is 1/2: heads are counted from 1.")
def heads_counted_from_zero():
    """m_a = 2^(-8 a / h) with a = 0 for the first head: the first of 8 slopes is 1."""
    prove_equal(exactly(8), [slope(Fraction(a, 8)) for a in range(8)])


@slopes_pinned.claim("A rank has to cut its slopes out of those of all heads.")
def slopes_of_a_shard():
    """The last three of the slopes of 6 heads are the slopes of 3 heads, so a rank can ask for its own."""
    prove_equal(exactly(6)[3:], exactly(3))


@example(of=[alibi.slopes], sizes="h = 1 .. 256, max_bias 256")
def geometric_exactly_for_powers_of_two():
    """Slopes form a geometric sequence if and only if the number of heads is a power of two, as published and sorted. For every
    number of heads they are powers of two, differ and stay below 1, and the flattest slope is 2^-max_bias."""
    for heads in range(1, 257):
        halves, exponents = np.frexp(alibi.slopes(heads, max_bias=256))
        prove_that(bool((halves == 0.5).all()), f"the {heads} slopes are powers of two")
        published = (exponents - 1).tolist()
        for order in (published, sorted(published)):
            steady = len({b - a for a, b in pairwise(order)}) <= 1
            prove_that(steady is (heads & (heads - 1) == 0), f"geometric or not with {heads} heads")
        prove_that(len(set(published)) == heads, f"{heads} slopes differ")
        prove_that(min(published) == -256 and max(published) < 0, f"the range of {heads} slopes")


@geometric_exactly_for_powers_of_two.claim("A geometric sequence is published for powers of two alone.")
def geometric_for_twelve_heads():
    """The slopes of 12 heads are a geometric sequence."""
    prove_one_ratio(exactly(12))


@geometric_exactly_for_powers_of_two.control
def geometric_for_twenty_heads_once_sorted():
    """The slopes of 20 heads are one once they are sorted."""
    prove_one_ratio(sorted(exactly(20)))


# the bias


@theorem(of=[alibi.bias, offsets], sizes="all h, n, m, batches, positions")
def pinned():
    """Head a, query position i, key position j: the bias is m_a (j - i), -m_a |j - i| or m_a j; "key" has a single row."""
    m = sized("m", H)
    for batch in ((), (D,)):
        queries, keys = sized("i", *batch, N), sized("j", *batch, M)
        for form in alibi.FORMS:
            got = alibi.bias(queries, keys, m, form=form)
            prove_that(got.shape == (*batch, H, 1 if form == "key" else N, M), f"the axes of {form}")
            b, a, row, column = [index(n) for n in batch], index(H), index(1 if form == "key" else N), index(M)
            i, j, slope = Scalar(queries.at(*b, row)), Scalar(keys.at(*b, column)), Scalar(m.at(a))
            cell = lambda got=got, at=(*b, a, row, column): got.at(*at)
            both = lambda cell=cell, facts=(i, j, slope, form): (cell(), definition(*facts))
            for _, (entry, expected) in all_paths(both):
                prove_equal([entry], [expected], mention=[slope, j])


@pinned.claim("The bias is a penalty: m (j - i), which is negative in the past.")
def query_minus_key():
    """m_a (i - j), with the sign of the distance in the text."""
    i, j, m = symbols("i", 1), symbols("j", 1), symbols("m", 1)
    prove_equal(alibi.bias(i, j, m, form="signed")[0, 0], [definition(j[0], i[0], m[0])])


@theorem(of=[alibi.bias, offsets], sizes="all positions, slopes and distances t >= 1")
def falls_with_distance():
    """Every further token in the past costs m, in the signed and in the absolute form; in the future the absolute form costs as
    much and the signed form adds m t."""
    i, t, m = symbol("i", integer=True), symbol("t", integer=True, positive=True), symbols("m", 1)
    for form, future in (("signed", 1), ("absolute", -1)):
        got = alibi.bias(array([i]), array([i - t - 1, i - t, i, i + t]), m, form=form)[0, 0]
        prove_equal(got, [-m[0] * (t + 1), -m[0] * t, 0, future * m[0] * t])


@falls_with_distance.claim("The signed form rewards the future; an encoder needs the absolute one.")
def signed_is_symmetric():
    """The signed form costs m t on both sides, so it will do for an encoder."""
    got = alibi.bias(array([0]), array([-1, 1]), symbols("m", 1), form="signed")[0, 0]
    prove_equal(got[0], got[1])


@theorem(of=[alibi.bias, offsets], sizes="all h, n, m, positions")
def translation_invariant():
    """Moving all tokens by s changes no entry of the signed and the absolute form; the key form gains m s everywhere, so the
    attention weights do not change."""
    i, j, m, s, shift = sized("i", N), sized("j", M), sized("m", H), sized("s", H, N, M), symbol("shift")
    moved = lambda form, by: alibi.bias(i + by, j + by, m, form=form)
    a, column = index(H), index(M)
    for form, row, gain in (("signed", index(N), 0), ("absolute", index(N), 0), ("key", 0, m.at(a) * shift.e)):
        cells = lambda form=form, row=row: [moved(form, by).at(a, row, column) for by in (shift.e, 0)]
        for _, (left, right) in all_paths(cells):
            prove_equal([left], [right + gain], mention=[j.at(column)])
    prove_equal(*entries(None, attention.softmax(s + moved("key", shift.e)), attention.softmax(s + moved("key", 0))))


@translation_invariant.control
def invariant_when_keys_alone_move():
    """Nothing changes when the keys move and the queries stay (signed form, entry by entry)."""
    i, j, m, shift = symbols("i", 1), symbols("j", 2), symbols("m", 1), symbol("shift")
    prove_equal(alibi.bias(i, j + shift, m, form="signed"), alibi.bias(i, j, m, form="signed"))


@translation_invariant.claim("The key form grows with the position, and only its softmax is invariant.")
def key_form_is_invariant_itself():
    """The key form does not change when all tokens move, so that 16-bit floats hold it at every position."""
    j, m, shift = symbols("j", 2), symbols("m", 1), symbol("shift")
    prove_equal(alibi.bias(j + shift, j + shift, m, form="key"), alibi.bias(j, j, m, form="key"))


# the three forms after softmax


@theorem(
    of=[alibi.bias, offsets, attention.softmax], sizes="all h, n, m, positions; with a mask one head, one query, three keys"
)
def key_equals_signed():
    """softmax(s + m_a j) = softmax(s + m_a (j - i)), with every mask, causal ones among them: the position of the query is
    immaterial, and so is a mistake in it (vLLM #945)."""
    s, queries, keys, m = sized("s", H, N, M), sized("i", N), sized("j", M), sized("m", H)
    weights = [attention.softmax(s + alibi.bias(queries, keys, m, form=form)) for form in ("signed", "key")]
    prove_equal(*entries(None, *weights))
    s, query, keys, m = symbols("s", 1, 1, 3), symbols("i", 1), symbols("j", 3), symbols("m", 1)
    signed, key = (s + alibi.bias(query, keys, m, form=form) for form in ("signed", "key"))
    for bits in np.ndindex(2, 2, 2):
        mask = np.array(bits, dtype=bool)
        expected = softmax([expression(x) for x in key[0, 0]], mask)
        for _, weights in all_paths(lambda mask=mask: attention.softmax(signed, mask)):
            prove_equal(weights[0, 0], expected, mention=keys[mask] if mask.sum() > 1 else [])


@key_equals_signed.claim("It equals the signed form after softmax, under any mask.")
def key_equals_absolute():
    """The key form equals the absolute one too: linear biases are one and the same (two tokens, no mask)."""
    m, positions = symbols("m", 1), np.arange(2)
    key, absolute = (alibi.bias(positions[:1], positions, m, form=form)[0, 0] for form in ("key", "absolute"))
    prove_equal(softmax([expression(x) for x in key]), softmax([expression(x) for x in absolute]))


@theorem(of=[alibi.bias, offsets, attention.softmax], sizes="all positions; n = 2 .. 9; n = 3 on symbols")
def absolute_agrees_in_the_past_alone():
    """signed - absolute is 0 for a key in the past and 2 m (j - i) for one in the future. So they agree under a causal mask;
    without one they agree after softmax in the last row alone: along every other row the difference is not constant."""
    i, t, m = symbol("i", integer=True), symbol("t", integer=True, positive=True), symbols("m", 1)
    gap = lambda i, j, m: alibi.bias(i, j, m, form="signed") - alibi.bias(i, j, m, form="absolute")
    prove_equal(gap(array([i]), array([i - t, i, i + t]), m)[0, 0], [0, 0, 2 * m[0] * t])
    for n in range(2, 10):
        constant = [len(set(row)) == 1 for row in gap(np.arange(n), np.arange(n), np.array([1]))[0].tolist()]
        prove_that(constant == [False] * (n - 1) + [True], f"the last of {n} rows alone")
    s, positions, m = symbols("s", 3, 3), np.arange(3), symbols("m", 1)
    scores = [s + alibi.bias(positions, positions, m, form=form)[0] for form in ("signed", "absolute")]
    for row in range(3):
        signed, absolute = (softmax([x.e for x in each[row]]) for each in scores)
        for _, weights in all_paths(lambda row=row: attention.softmax(scores[1][row])):
            prove_equal(weights, absolute)
        equal = [is_zero(a - b) for a, b in zip(signed, absolute, strict=True)]
        prove_that(equal == [row == 2] * 3, f"row {row} of three after softmax")


@absolute_agrees_in_the_past_alone.claim("They agree under a causal mask, and without one in the last row alone.")
def absolute_equals_signed_after_softmax():
    """The absolute form gives the attention weights of the signed one, in every row (the first of two tokens, no mask)."""
    m, positions = symbols("m", 1), np.arange(2)
    signed, absolute = (alibi.bias(positions, positions, m, form=form)[0, 0] for form in ("signed", "absolute"))
    prove_equal(softmax([expression(x) for x in signed]), softmax([expression(x) for x in absolute]))


@theorem(of=[alibi.bias, offsets, attention.scores], sizes="all h, n, m, d, positions")
def bias_before_the_scale():
    """Falcon's score, scale (q . k + m j), is scale q . k + (scale m) j: ALiBi with its slopes divided by sqrt(d)."""
    q, k, scale = sized("q", H, N, D), sized("k", H, M, D), symbol("scale")
    i, j, m = sized("i", N), sized("j", M), sized("m", H)
    for form in ("signed", "key"):
        falcon = scale.e * (attention.scores(q, k, scale=1) + alibi.bias(i, j, m, form=form))
        prove_equal(*entries(None, falcon, attention.scores(q, k, scale=scale.e) + alibi.bias(i, j, scale.e * m, form=form)))


@bias_before_the_scale.claim("The paper adds the bias to scaled scores; under the scale slopes shrink by sqrt(d).")
def scale_covers_the_bias():
    """It makes no difference whether the bias is added before or after the scale (two keys, after softmax)."""
    s, j, m, scale = symbols("s", 2), symbols("j", 2), symbols("m", 1), symbol("scale")
    bias = alibi.bias(symbols("i", 1), j, m, form="key")[0, 0]
    before, after = scale * (s + bias), scale * s + bias
    prove_equal(softmax([x.e for x in before]), softmax([x.e for x in after]))
