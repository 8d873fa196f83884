"""ALiBi: attention with linear biases, a fixed slope times the distance."""

from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import sympy as sp

from posref import attention
from posref.relative import alibi
from posref.relative.offsets import offsets
from proofs.attention import definition as softmax
from proofs.kit import (
    Scalar,
    all_paths,
    array,
    entries,
    expression,
    index,
    is_zero,
    prove_equal,
    prove_that,
    size,
    sized,
    symbol,
    symbols,
    theorem,
)
from proofs.vectors import attend, case, exact, flag, growth, narrow, painted, stored, terms

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


# the slopes


@theorem(
    of=[alibi.slopes],
    sizes="h = 1 .. 128",
    equivalent={
        "slopes: steps = np.array([*range(2, 2 * power + 1, 2), *range(1, 2 * (heads - power), 2)])  ->  "
        "steps = np.array([*range(2, 2 * power + 2, 2), *range(1, 2 * (heads - power), 2)])": "2 power + 1 is odd"
    },
)
def slopes_pinned():
    """slopes is the published recursion for every number of heads: at max_bias 256 all of them are powers of two, which float64
    has exactly; and slope a is 2^(-max_bias x_a) for every max_bias, 8 if none is given."""
    for heads in range(1, 129):
        fractions, exponents = np.frexp(alibi.slopes(heads, max_bias=256))
        prove_that(bool((fractions == 0.5).all()), f"the slopes of {heads} heads are powers of two")
        prove_that((1 - exponents).tolist() == [256 * step for step in steps(heads)], f"the exponents of {heads} heads")
    max_bias = symbol("max_bias", positive=True)
    for heads in (1, 3, 6, 12):
        powers = [expression(m) for m in alibi.slopes(heads, max_bias=max_bias)]
        expected = [sp.Pow(2, -max_bias.e * sp.Rational(step)) for step in steps(heads)]
        prove_that(powers == expected, f"the slopes of {heads} heads as powers")
    for heads, exponents in ((3, (4, 8, 2)), (6, (2, 4, 6, 8, 1, 3))):
        prove_that(alibi.slopes(heads).tolist() == [2.0**-e for e in exponents], f"the slopes of {heads} heads with 8")


@slopes_pinned.control
def slopes_are_sorted():
    """The slopes fall from head to head, as a user of TensorRT-LLM made them (12 heads)."""
    prove_that(all(b < a for a, b in pairwise(exactly(12))), "they fall")


@slopes_pinned.control
def plain_geometric_sequence():
    """m_a = 2^(-8 a / h) for every h, as "a geometric sequence that starts at 2^(-8/h)" reads: 0.63 first, not 0.5 (h = 12)."""
    prove_that(exactly(12) == [slope(Fraction(a, 12)) for a in range(1, 13)], "the slopes of 12 heads")


@slopes_pinned.control
def heads_counted_from_zero():
    """m_a = 2^(-8 a / h) with a = 0 for the first head: the first of 8 slopes is 1."""
    prove_equal(exactly(8), [slope(Fraction(a, 8)) for a in range(8)])


@slopes_pinned.control
def slopes_of_a_shard():
    """The last three of the slopes of 6 heads are the slopes of 3 heads, so a rank can ask for its own."""
    prove_equal(exactly(6)[3:], exactly(3))


@theorem(of=[alibi.slopes], sizes="h = 1 .. 128")
def geometric_exactly_for_powers_of_two():
    """The slopes are a geometric sequence if and only if the number of heads is a power of two, as published and sorted. For
    every number they differ, are below 1, and the flattest is 2^-max_bias."""
    for heads in range(1, 129):
        published = (np.frexp(alibi.slopes(heads, max_bias=256))[1] - 1).tolist()  # the exponents, by slopes_pinned
        for order in (published, sorted(published)):
            steady = len({b - a for a, b in pairwise(order)}) <= 1
            prove_that(steady is (heads & (heads - 1) == 0), f"geometric or not with {heads} heads")
        prove_that(len(set(published)) == heads, f"{heads} slopes differ")
        prove_that(min(published) == -256 and max(published) < 0, f"the range of {heads} slopes")


@geometric_exactly_for_powers_of_two.control
def geometric_for_twelve_heads():
    """The slopes of 12 heads are a geometric sequence."""
    prove_that(len({b / a for a, b in pairwise(exactly(12))}) == 1, "one ratio")


@geometric_exactly_for_powers_of_two.control
def geometric_for_twenty_heads_once_sorted():
    """The slopes of 20 heads are one once they are sorted."""
    prove_that(len({b / a for a, b in pairwise(sorted(exactly(20)))}) == 1, "one ratio")


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
            paths = all_paths(lambda cell=cell, facts=(i, j, slope, form): (cell(), definition(*facts)))
            for _, (entry, expected) in paths:
                prove_equal([entry], [expected], mention=[slope, j])


@pinned.control
def query_minus_key():
    """m_a (i - j), with the sign of the distance in the text."""
    i, j, m = symbols("i", 1), symbols("j", 1), symbols("m", 1)
    prove_equal(alibi.bias(i, j, m, form="signed")[0, 0], [definition(j[0], i[0], m[0])])


@theorem(of=[alibi.bias, offsets], sizes="all positions, slopes and distances t >= 1")
def falls_with_distance():
    """Every further token in the past costs m, in the signed and in the absolute form; in the future the absolute form costs as
    much and the signed form pays m t instead."""
    i, t, m = symbol("i", integer=True), symbol("t", integer=True, positive=True), symbols("m", 1)
    for form, future in (("signed", 1), ("absolute", -1)):
        got = alibi.bias(array([i]), array([i - t - 1, i - t, i, i + t]), m, form=form)[0, 0]
        prove_equal(got, [-m[0] * (t + 1), -m[0] * t, 0, future * m[0] * t])


@falls_with_distance.control
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


@translation_invariant.control
def key_form_is_invariant_itself():
    """The key form does not change when all tokens move, so that 16-bit floats hold it at every position."""
    j, m, shift = symbols("j", 2), symbols("m", 1), symbol("shift")
    prove_equal(alibi.bias(j + shift, j + shift, m, form="key"), alibi.bias(j, j, m, form="key"))


# the three forms after softmax


@theorem(of=[alibi.bias, offsets, attention.softmax], sizes="all h, n, m, positions; with a mask three keys")
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


@key_equals_signed.control
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


@absolute_agrees_in_the_past_alone.control
def absolute_equals_signed_after_softmax():
    """The absolute form gives the attention weights of the signed one, in every row (the first of two tokens, no mask)."""
    m, positions = symbols("m", 1), np.arange(2)
    signed, absolute = (alibi.bias(positions, positions, m, form=form)[0, 0] for form in ("signed", "absolute"))
    prove_equal(softmax([expression(x) for x in signed]), softmax([expression(x) for x in absolute]))


@theorem(of=[alibi.bias, offsets, attention.scores], sizes="all h, n, m, d, positions")
def bias_before_the_scale():
    """Falcon's scale (q . k + m j) is scale q . k + (scale m) j: ALiBi with its slopes divided by sqrt(d)."""
    q, k, scale = sized("q", H, N, D), sized("k", H, M, D), symbol("scale")
    i, j, m = sized("i", N), sized("j", M), sized("m", H)
    for form in ("signed", "key"):
        falcon = scale.e * (attention.scores(q, k, scale=1) + alibi.bias(i, j, m, form=form))
        prove_equal(*entries(None, falcon, attention.scores(q, k, scale=scale.e) + alibi.bias(i, j, scale.e * m, form=form)))


@bias_before_the_scale.control
def scale_covers_the_bias():
    """It makes no difference whether the bias is added before or after the scale (two keys, after softmax)."""
    s, j, m, scale = symbols("s", 2), symbols("j", 2), symbols("m", 1), symbol("scale")
    bias = alibi.bias(symbols("i", 1), j, m, form="key")[0, 0]
    before, after = scale * (s + bias), scale * s + bias
    prove_equal(softmax([x.e for x in before]), softmax([x.e for x in after]))


# golden vectors

SOURCES = (
    "Press et al., Train Short, Test Long, arXiv 2108.12409, section 3 and footnote 10",
    "github.com/ofirpress/attention_with_linear_biases, fairseq/models/transformer.py, get_slopes",
)

CONVENTIONS = {
    "axes": "a bias is (heads, n_query, n_key) or (batch, heads, n_query, n_key); q, k, v are (batch, heads, n, d)",
    "form": "signed: m (j - i); absolute: -m |j - i|; key: m j, with one row for all queries",
    "gauge": "row_constant: a constant may be added to every row, so that the key form passes where signed is expected",
    "heads": "slopes in the published order, not sorted",
    "op attend": "softmax(scale q k^T + bias) v, causal: keys with j <= i only, if params say so",
    "op bias": "from positions, with the slopes of `heads` heads",
    "op shard": "`count` of the slopes of `heads` heads, from number `first` on, as a rank of tensor parallelism has them",
    "op slopes": "m, one number a head",
}

FLAGS = {
    "sorted_slopes": flag(
        "slopes sorted",
        "The slopes of a number of heads that is no power of two are put in order.",
        "Heads exchange their slopes: trained weights see other biases.",
        "NVIDIA/TensorRT-LLM#1611",
    ),
    "plain_geometric": flag(
        "2^(-8 a / h) for every h",
        "The formula for powers of two is used for other numbers of heads.",
        "All slopes are off; with 12 heads the first is 0.63 and not 0.5.",
        "ml-explore/mlx#343",
        "ml-explore/mlx#3071",
        "huggingface/transformers#28380",
    ),
    "next_power": flag(
        "the first h slopes of 2P heads", "The next power of two is used and cut.", "The flat heads are missing."
    ),
    "heads_from_zero": flag(
        "exponent one step short", "Heads are counted from 0.", "The first slope is 1.", "paiml/aprender#2143"
    ),
    "max_bias_ignored": flag("8 instead of max_bias", "The configured max_bias is not read.", "Every slope is another."),
    "slopes_of_the_shard": flag(
        "slopes of fewer heads", "A rank computes slopes for the number of its own heads.", "Another model with two ranks."
    ),
    "first_slopes": flag(
        "every rank has the first slopes",
        "The offset of the rank's heads is left out.",
        "Another model with two ranks.",
        "bigscience-workshop/Megatron-DeepSpeed#227",
        "flashinfer-ai/flashinfer#1606",
    ),
    "sign": flag("query - key", "The distance has the wrong sign.", "Far tokens are preferred."),
    "absolute": flag("|j - i|", "The absolute form is used where signed is meant.", "Keys in the future are punished."),
    "signed": flag(
        "j - i or j",
        "The form for causal attention is used in both directions.",
        "Keys in the future are rewarded for their distance.",
        "mosaicml/llm-foundry#186",
        "Dao-AILab/flash-attention#540",
        "ofirpress/attention_with_linear_biases#5",
    ),
    "key_form": flag("m j", "The key form where entries of the signed form are meant.", "Equal after softmax, not before."),
    "queries_left_aligned": flag(
        "queries start at 0",
        "Fewer queries than keys are aligned at the start instead of the end.",
        "Cached decoding sees keys in the future.",
        "Dao-AILab/flash-attention#907",
    ),
    "positions_ignored": flag(
        "0, 1, 2, .. instead of the positions given",
        "Padding is counted, or the cache is not.",
        "Rows that are padded on the left have other distances.",
        "huggingface/transformers#17866",
    ),
    "positions_shared_across_batch": flag("positions of the first batch row", "Every row uses row 0.", "Batches go wrong."),
    "bias_before_scale": flag(
        "scale (q k^T + bias)", "The bias is scaled with the scores, as in Falcon.", "Biases are sqrt(d) times too small."
    ),
    "no_bias": flag("no bias", "The bias is not added.", "The model sees order through the mask alone."),
    "no_mask": flag("no mask", "The bias is taken for a causal mask.", "Keys in the future have the largest bias."),
    "f16_key_form": flag(
        "m j in float16",
        "The key form is rounded to 11 bits, which positions beyond 2048 do not fit.",
        "Neighboring keys get one bias.",
    ),
}


def vectors():
    for heads, max_bias, mistakes in (
        (1, 8, "heads_from_zero"),
        (3, 8, "sorted_slopes plain_geometric next_power"),
        (6, 8, "sorted_slopes plain_geometric next_power"),
        (8, 8, "heads_from_zero"),
        (12, 8, "sorted_slopes plain_geometric next_power"),
        (12, 16, "sorted_slopes plain_geometric next_power max_bias_ignored"),
        (112, 8, "sorted_slopes plain_geometric next_power"),
    ):
        yield _slopes_case(heads, max_bias, mistakes)
    yield _shard(6, 3, 3)
    yield _bias_case("square", 3, range(4), range(4), "signed", "sign absolute key_form sorted_slopes plain_geometric")
    yield _bias_case("square", 3, range(4), range(4), "absolute", "signed key_form sorted_slopes plain_geometric")
    yield _bias_case("square", 3, range(4), range(4), "key", "sign sorted_slopes plain_geometric")
    yield _bias_case("after-softmax", 3, range(4), range(5), "signed", "sign absolute sorted_slopes", gauge="row_constant")
    aligned = "sign sorted_slopes queries_left_aligned positions_ignored"
    yield _bias_case("decode", 6, [4], range(5), "signed", "sign sorted_slopes queries_left_aligned plain_geometric")
    yield _bias_case("chunk", 6, [3, 4], range(5), "absolute", aligned + " signed")
    yield _bias_case("far", 3, [4097, 48040], [0, 4090, 48039], "signed", "sign positions_ignored absolute key_form")
    padded = np.array([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])  # the first row is padded on the left by two tokens
    both = "positions_ignored positions_shared_across_batch sorted_slopes"
    yield _bias_case("padded", 3, padded[:, 1:], padded, "absolute", both + " signed")
    yield _collision()
    yield _attend("causal", [9, 12], "signed", "sign bias_before_scale no_bias no_mask sorted_slopes plain_geometric", True)
    yield _attend("both-directions", [7, 9], "absolute", "signed bias_before_scale no_bias sorted_slopes", False)


def _slopes(heads, max_bias=8):
    return [slope(step, max_bias, mpmath) for step in steps(heads)]


def _power(heads):
    return 1 << (heads.bit_length() - 1)


def _other_slopes(name, heads, max_bias=8):
    """The slopes with the mistake put in, or the right ones if it is not about slopes."""
    return {
        "sorted_slopes": lambda: sorted(_slopes(heads, max_bias), reverse=True),
        "plain_geometric": lambda: [slope(Fraction(a, heads), max_bias, mpmath) for a in range(1, heads + 1)],
        "next_power": lambda: _slopes(2 * _power(heads), max_bias)[:heads],
        "heads_from_zero": lambda: [slope(Fraction(a, heads), max_bias, mpmath) for a in range(heads)],
        "max_bias_ignored": lambda: _slopes(heads),
    }.get(name, lambda: _slopes(heads, max_bias))()


def _reach(heads, max_bias=8):
    """`phase` of the slopes: an exponential as in `growth`, or a rounded base to the power of up to 2h."""
    return [m * (growth(m) + 2 * heads) for m in _slopes(heads, max_bias)]


def _slopes_case(heads, max_bias, mistakes):
    return case(
        f"alibi/slopes/h{heads}-b{max_bias}/slopes",
        op="slopes",
        params={"heads": heads, "max_bias": max_bias},
        tensors={},
        expected=_slopes(heads, max_bias),
        cond={"phase": _reach(heads, max_bias)},
        mistakes={name: _other_slopes(name, heads, max_bias) for name in mistakes.split()},
    )


def _shard(heads, first, count):
    return case(
        f"alibi/slopes/h{heads}-b8/rank-1-of-2",
        op="shard",
        params={"heads": heads, "max_bias": 8, "first": first, "count": count},
        tensors={},
        expected=_slopes(heads)[first : first + count],
        cond={"phase": _reach(heads)[first : first + count]},
        mistakes={"slopes_of_the_shard": _slopes(count), "first_slopes": _slopes(heads)[:count]},
    )


def _biases(slopes, queries, keys, form):
    """`definition` of every head and pair of positions; "key" has one row."""
    queries, keys = np.array(queries, dtype=object), np.array(keys, dtype=object)
    i = queries[..., None, :1, None] if form == "key" else queries[..., None, :, None]
    return definition(i, keys[..., None, None, :], np.array(slopes, dtype=object)[:, None, None], form)


def _with(name, heads, queries, keys, form):
    """The bias with the mistake put in."""
    queries, keys, slopes = np.array(queries), np.array(keys), _other_slopes(name, heads)
    count = np.arange(keys.shape[-1])
    if name in alibi.FORMS or name == "key_form":
        wrong = _biases(slopes, queries, keys, name.removesuffix("_form"))
        return wrong + np.zeros((queries.shape[-1], 1), dtype=int)  # a row for every query
    if name == "sign":
        return -_biases(slopes, queries, keys, form)
    if name == "queries_left_aligned":
        queries = np.arange(queries.shape[-1])
    if name == "positions_ignored":
        queries, keys = np.broadcast_to(count[: queries.shape[-1]], queries.shape), np.broadcast_to(count, keys.shape)
    if name == "positions_shared_across_batch":
        queries, keys = np.broadcast_to(queries[0], queries.shape), np.broadcast_to(keys[0], keys.shape)
    return _biases(slopes, queries, keys, form)


def _sensitivity(heads, queries, keys, form):
    """A product of the slope and a distance or position that is exact."""
    size = abs(_biases(_slopes(heads), queries, keys, form))
    error = abs(_biases(_reach(heads), queries, keys, form))
    return {"amp": terms(2, size), "phase": error}


def _bias_case(probe, heads, queries, keys, form, mistakes, gauge="none"):
    queries, keys = np.array(queries), np.array(keys)
    cond = _sensitivity(heads, queries, keys, form)
    if gauge == "row_constant":  # for either form
        key = _sensitivity(heads, queries, keys, "key")
        cond = {name: each + key[name] for name, each in cond.items()}
        cond["out"] = cond["amp"]
    return case(
        f"alibi/{form}/h{heads}/{probe}",
        op="bias",
        params={"heads": heads, "max_bias": 8, "form": form},
        tensors={"queries": queries, "keys": keys},
        stages={"slopes": _slopes(heads)},
        expected=_biases(_slopes(heads), queries, keys, form),
        cond=cond,
        gauge=gauge,
        mistakes={name: _with(name, heads, queries, keys, form) for name in mistakes.split()},
    )


def _collision():
    heads, queries, keys = 8, [4099], [4095, 4096, 4097, 4098, 4099]
    rounded = np.frompyfunc(narrow, 2, 1)(_biases(_slopes(heads), queries, keys, "key"), 11)
    return case(
        "alibi/signed/h8/collision",
        op="bias",
        params={"heads": heads, "max_bias": 8, "form": "signed"},
        tensors={"queries": queries, "keys": keys},
        expected=_biases(_slopes(heads), queries, keys, "signed"),
        cond=_sensitivity(heads, queries, keys, "signed"),
        gauge="row_constant",
        mistakes={"f16_key_form": rounded},
        comment="In float16 the key form rounds positions 4095 .. 4099 to multiples of 4.",
    )


def _attend(probe, queries, form, mistakes, causal):
    heads, scale, keys = 3, 0.5, [0, 3, 7, 9, 12]
    q, k, v = painted((2, heads, len(queries), 4), 1), painted((2, heads, 5, 4), 2), painted((2, heads, 5, 4), 4)
    mask = np.array([[not causal or j <= i for j in keys] for i in queries])

    def result(name=None):
        slopes = _biases(_slopes(heads), queries, keys, form) if name is None else _with(name, heads, queries, keys, form)
        bias = stored(slopes, _sensitivity(heads, queries, keys, form))
        if name in ("bias_before_scale", "no_bias"):
            bias = exact(slopes * (scale if name == "bias_before_scale" else 0))
        return attend(exact(q), exact(k), exact(v), scale, bias, None if name == "no_mask" else mask)

    expected, cond = result()
    return case(
        f"alibi/{form}/h{heads}-d4/{probe}",
        op="attend",
        params={"heads": heads, "max_bias": 8, "form": form, "scale": scale, "causal": causal},
        tensors={"q": q, "k": k, "v": v, "queries": queries, "keys": keys},
        stages={"slopes": _slopes(heads)},
        expected=expected,
        cond=cond,
        mistakes={name: result(name)[0] for name in mistakes.split()},
        comment="Positions have gaps.",
    )
