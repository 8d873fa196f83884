"""Attention: softmax, scores and masks, and what attention can and cannot know about position."""

import functools
import itertools

import numpy as np
import sympy as sp

from posref import attention
from posref.absolute import sinusoidal
from proofs.kit import *

DEFAULTS = {"causal": False}
ROUNDS = {"_group": "grouped_heads"}
BRANCHES_ON_SIZES = {
    "_summed_over_sharing": "gradient_by_calculus",
    "with_heads_of": "grouped_heads",
    "row_maximum": "pinned_softmax",
}

N, M, D, E = size("n"), size("m"), size("d"), size("e")
WHOLE = [attention.attend, attention.scores, attention.softmax]


def definition(scores, mask=None, m=sp):
    """One row of softmax weights: exp(s) over the allowed keys, divided by their sum; zeros where nothing is allowed."""
    allowed = [True] * len(scores) if mask is None else list(mask)
    weights = [m.exp(s) if a else 0 * m.exp(0) for s, a in zip(scores, allowed, strict=True)]
    return [w / sum(weights) for w in weights] if any(allowed) else weights


def rows(values):
    """The rows of an array as lists of expressions."""
    return [[expression(v) for v in row] for row in values]


def plain(q, k, v):
    """Attention on generators, without subtracting the maximum; `pinned_softmax` shows that softmax equals this form."""
    weights = np.exp(q @ k.T)
    return weights / weights.sum(axis=-1, keepdims=True) @ v


# softmax, scores, attend


EXACT = "equal in exact arithmetic; what it does to overflow is tested"


@theorem(
    of=[attention.softmax, attention.row_maximum],
    sizes="n = 0, 1, 2, 3, all masks",
    equivalent={
        "softmax: total = total if mask is None else np.where(mask.any(axis=-1, keepdims=True), total, 1)  ->  "
        "total = total if mask is None else np.where(mask.any(axis=-1, keepdims=True), total, 2)": "an empty row is zeros",
    },
)
def pinned_softmax():
    """softmax(s, mask) is exp(s) / sum exp(s) over the allowed keys and zeros in an empty row, on every path of its maximum,
    which is the largest of the allowed scores."""
    nothing = symbols("s", 2, 0)
    prove_that(attention.softmax(nothing).shape == (2, 0), "without keys there are no weights")
    prove_that(attention.row_maximum(nothing, None).shape == (2, 1), "without keys a row has some maximum")
    for bits in itertools.product((False, True), repeat=3):
        row, mask = np.array([4, 9, 1]), np.array([bits, [True] * 3])
        largest = attention.row_maximum(np.array([row, row + 20]), mask)[:, 0].tolist()
        prove_that(largest[1] == 29 and (not any(bits) or largest[0] == row[mask[0]].max()), f"the largest score of {bits}")
    for n in (1, 2, 3):
        s = symbols("s", 2, n)
        for _, weights in all_paths(lambda s=s: attention.softmax(s)):
            prove_equal(weights, [definition(row) for row in rows(s)], mention=s if n > 1 else [])
        for bits in itertools.product((False, True), repeat=n):
            mask = np.array([bits, [True] * n])
            for _, weights in all_paths(lambda s=s, mask=mask: attention.softmax(s, mask)):
                prove_equal(weights, [definition(row, allowed) for row, allowed in zip(rows(s), mask, strict=True)])


@pinned_softmax.control
def masked_keys_keep_their_share():
    """A masked key is merely not shown: the others are divided by the sum over all keys."""
    s = symbols("s", 1, 2)
    for _, weights in all_paths(lambda: attention.softmax(s, np.array([[True, False]]))):
        prove_equal(weights[0, :1], [definition(rows(s)[0])[0]])


@theorem(of=[attention.softmax], sizes="all n")
def blind_to_a_row_shift():
    """softmax(s + c_i) = softmax(s) = exp(s) / sum exp(s): a constant in a row, the maximum among them, changes nothing."""
    s, c = sized("s", N, M), sized("c", N, 1)
    raised = np.exp(s)
    prove_equal(*entries(None, attention.softmax(s + c), attention.softmax(s)))
    prove_equal(*entries(None, attention.softmax(s), raised / raised.sum(axis=-1, keepdims=True)))


@blind_to_a_row_shift.control
def blind_to_a_column_shift():
    """A number for each key changes nothing (two keys)."""
    s, c = symbols("s", 2), symbols("c", 2)
    for _, (raised, plainly) in all_paths(lambda: (attention.softmax(s + c), attention.softmax(s))):
        prove_equal(raised, plainly)


@theorem(of=[attention.scores], sizes="all h, n, m, d")
def pinned_scores():
    """scores(q, k) is scale times the inner product of row i of q and row j of k."""
    q, k, scale = sized("q", E, N, D), sized("k", E, M, D), symbol("scale")
    a, i, j, c = index(E), index(N), index(M), index(D)
    got = attention.scores(q, k, scale=scale).at(a, i, j)
    prove_equal([got], [scale.e * sp.Sum(q.at(a, i, c) * k.at(a, j, c), (c, 0, D - 1))], mention=[scale])


@pinned_scores.control
def scores_are_symmetric():
    """The score of (i, j) is that of (j, i)."""
    q, k = symbols("q", 2, 2), symbols("k", 2, 2)
    s = attention.scores(q, k, scale=1)
    prove_equal(s, s.T)


@theorem(of=WHOLE, sizes="all h, n, m, d; one mask at n = 2, m = 3, d = 1")
def pinned_attend():
    """attend is softmax(scale q k^T + bias) times v, and the mask goes to the softmax."""
    q, k, v, scale = sized("q", E, N, D), sized("k", E, M, D), sized("v", E, M, D), symbol("scale")
    bias, a, i, c = sized("b", E, N, M), index(E), index(N), index(D)
    s = SizedArray((E, N, M), lambda a, i, j: scale.e * _inner(q, k, a, i, j) + bias.at(a, i, j))
    j, weight = index(M), lambda j: sp.exp(s.at(a, i, j))
    expected = sp.Sum(weight(j) * v.at(a, j, c), (j, 0, M - 1)) / sp.Sum(weight(j), (j, 0, M - 1))
    prove_equal([attention.attend(q, k, v, scale=scale, bias=bias).at(a, i, c)], [expected], mention=[scale])
    q, k, v, bias = symbols("q", 2, 1), symbols("k", 3, 1), symbols("v", 3, 1), symbols("b", 2, 3)
    mask = np.array([[True, False, True], [False, False, False]])
    weights = [definition(row, allowed) for row, allowed in zip(rows(scale * (q @ k.T) + bias), mask, strict=True)]
    for _, out in all_paths(lambda: attention.attend(q, k, v, scale=scale, bias=bias, mask=mask)):
        prove_equal(out, array(weights) @ v)


@pinned_attend.claim("The bias is added to scaled scores; Falcon's form has its slopes divided by sqrt(d).")
def bias_before_the_scale():
    """The bias is scaled too, as in Falcon."""
    q, k, v, b, scale = symbols("q", 1, 1), symbols("k", 2, 1), symbols("v", 2, 1), symbols("b", 1, 2), symbol("scale")
    weights = definition(rows(scale * (q @ k.T + b))[0])
    for _, out in all_paths(lambda: attention.attend(q, k, v, scale=scale, bias=b)):
        prove_equal(out, array([weights]) @ v)


def _inner(q, k, a, i, j):
    c = index(D)
    return sp.Sum(q.at(a, i, c) * k.at(a, j, c), (c, 0, D - 1))


# sinks, caps, scales per row, grouped heads


@theorem(
    of=[attention.softmax, attention.attend],
    sizes="n = 2 rows, 1 and 2 keys, all masks; every path",
    equivalent={
        "softmax: highest = highest if sinks is None else np.maximum(highest, sinks[..., None])  ->  "
        "highest = highest if sinks is None else np.minimum(highest, sinks[..., None])": EXACT
    },
)
def pinned_sinks():
    """With a sink the weights are exp(s) / (e^sink + sum exp(s)): those of a further key with this logit, left out, so that a
    row of nothing is zeros; attend averages with them."""
    sink, v = symbols("sink", 1, 1), symbols("v", 2, 1)
    for n in (1, 2):
        s, q, k = symbols("s", 1, 2, n), symbols("q", 1, 1, 1), symbols("k", 1, n, 1)
        for bits in (None, *itertools.product((False, True), repeat=n)):
            mask = None if bits is None else np.array([bits, [True] * n])
            whole = [[True, *row] for row in (np.ones((2, n), dtype=bool) if mask is None else mask)]
            stated = [definition([sink[0, 0].e, *row], allowed)[1:] for row, allowed in zip(rows(s[0]), whole, strict=True)]
            for _, weights in all_paths(lambda s=s, mask=mask: attention.softmax(s, mask, sink)):
                prove_equal(weights[0], stated, mention=[sink[0, 0]] if bits is None else [])
        for _, out in all_paths(lambda q=q, k=k, n=n: attention.attend(q, k, v[None, :n], scale=1, sinks=sink)):
            stated = definition([sink[0, 0].e, *rows(q[0] @ k[0].T)[0]])[1:]
            prove_equal(out[0], array([stated]) @ v[:n])


@pinned_sinks.claim("A sink takes a share: the weights sum to less than 1.")
def weights_sum_to_one_with_a_sink():
    """The weights of a row sum to 1."""
    for _, weights in all_paths(lambda: attention.softmax(symbols("s", 1, 1, 1), None, symbols("sink", 1, 1))):
        prove_equal([weights.sum()], [1])


@pinned_sinks.claim("A constant in a row, such as slope times the query in ALiBi's other form, moves the share of the sink.")
def blind_to_a_row_shift_with_a_sink():
    """With a sink too a constant in a row of scores changes nothing."""
    s, c, sink = symbols("s", 1, 1, 1), symbol("c"), symbols("sink", 1, 1)
    for _, (shifted, plain_) in all_paths(lambda: (attention.softmax(s + c, None, sink), attention.softmax(s, None, sink))):
        prove_equal(shifted, plain_)


@theorem(of=[attention.scores, attention.cap], sizes="all n, m, d; with a cap one query and one key of width 1")
def pinned_cap_and_row_scale():
    """scores are c tanh(scale r_i q_i . k_j / c) + b_ij: the row's factor inside the cap, the bias outside; without a cap a
    row's factor is a factor of its query."""
    q, k, b, r = sized("q", N, D), sized("k", M, D), sized("b", N, M), sized("r", N)
    scale, c, i, j, t = symbol("scale"), symbol("c", positive=True), index(N), index(M), index(D)
    product = scale.e * r.at(i) * sp.Sum(q.at(i, t) * k.at(j, t), (t, 0, D - 1))
    plain_ = attention.scores(q, k, scale=scale, bias=b, row_scale=r)
    prove_equal([plain_.at(i, j)], [product + b.at(i, j)], mention=[scale, r.at(i)])
    prove_equal([plain_.at(i, j)], [attention.scores(r[:, None] * q, k, scale=scale, bias=b).at(i, j)])
    q, k, b, r = symbols("q", 1, 1), symbols("k", 1, 1), symbols("b", 1, 1), symbols("r", 1)
    capped = attention.scores(q, k, scale=scale, bias=b, row_scale=r, softcap=c)
    x = scale * r[0] * q[0, 0] * k[0, 0] / c
    stated = c.e * (sp.exp(x.e) - sp.exp(-x.e)) / (sp.exp(x.e) + sp.exp(-x.e)) + b[0, 0].e
    prove_equal([expression(capped[0, 0]).rewrite(sp.exp)], [stated], mention=[scale, r[0], c])
    prove_equal([attention.cap(q, softcap=c)[0, 0]], [c * np.tanh(q[0, 0] / c)])


@pinned_cap_and_row_scale.claim("flash-attn and Gemma 2 cap the product, flashinfer the sum; they are two models.")
def the_bias_is_capped():
    """The bias is added before the cap."""
    q, k, b = symbols("q", 1, 1), symbols("k", 1, 1), symbols("b", 1, 1)
    over_the_sum = attention.cap(attention.scores(q, k, scale=1, bias=b), softcap=1)
    left, right = (
        expression(x[0, 0]).rewrite(sp.exp) for x in (attention.scores(q, k, scale=1, bias=b, softcap=1), over_the_sum)
    )
    prove_equal([left], [right])


@pinned_cap_and_row_scale.claim("A cap over the sum of scores and bias sees the constant.")
def blind_to_a_row_shift_with_a_cap_over_the_sum():
    """With a cap over the sum too a constant in a row of scores changes nothing."""
    s, c = symbols("s", 2), symbol("c")
    gap = lambda s: [expression(x).rewrite(sp.exp) for x in attention.cap(s, softcap=1)]
    (first, second), (third, fourth) = gap(s), gap(s + c)
    prove_equal([first - second], [third - fourth])


@theorem(of=[attention.repeat_heads, attention.with_heads_of], sizes="1 to 6 heads, all divisors")
def pinned_repeat_heads():
    """Head a of the result is head floor(a h_key / heads) of the keys: consecutive heads share. Beside queries of so many
    heads with_heads_of is the same, one head being broadcast; keys without heads stay."""
    for heads in range(1, 7):
        q = symbols("q", heads, 1, 1)
        for key_heads in (n for n in range(1, heads + 1) if heads % n == 0):
            k = symbols("k", key_heads, 2, 1)
            repeated = k[[a * key_heads // heads for a in range(heads)]]
            prove_equal(attention.repeat_heads(k, heads=heads), repeated, mention=[k[0, 0, 0]])
            prove_equal(np.broadcast_to(attention.with_heads_of(q, k), repeated.shape), repeated)
            prove_equal(np.broadcast_to(attention.with_heads_of(q[None], k[None])[0], repeated.shape), repeated)
            prove_equal(attention.with_heads_of(q[:1], k), k)
        prove_equal(attention.with_heads_of(q, k[0]), k[0])
        prove_equal(attention.with_heads_of(q[0], k), k)


@pinned_repeat_heads.claim("Consecutive heads share: head a of 4 uses head a // 2 of 2.")
def heads_take_turns():
    """Head a uses head a modulo the number of key heads."""
    k = symbols("k", 2, 1, 1)
    prove_equal(attention.repeat_heads(k, heads=4), k[[0, 1, 0, 1]])


@theorem(of=[attention.attend, attention.scores], sizes="h = 2, 4, 6 on every divisor; attend at h = 4 on 2")
def grouped_heads():
    """scores and attend with h_key heads of keys, a divisor of h, are those with repeated heads: head a of the queries uses
    head floor(a h_key / h)."""
    for heads, key_heads in [(h, k) for h in (2, 4, 6) for k in range(1, h + 1) if h % k == 0]:
        q, k, of = symbols("q", heads, 1, 2), symbols("k", key_heads, 2, 2), [a * key_heads // heads for a in range(heads)]
        prove_equal(
            attention.scores(q, k, scale=1), [q[a] @ k[of[a]].T for a in range(heads)], mention=[q[0, 0, 0], k[0, 0, 0]]
        )
    ones, k, v = np.ones((4, 1, 1), dtype=int), np.array([[[1], [2]], [[7], [3]]]), symbols("v", 2, 2, 1)
    for _, out in all_paths(lambda: attention.attend(ones, symbol("s", positive=True) * k, v, scale=1)):
        weights = [definition([symbol("s", positive=True).e * x for x in k[a // 2, :, 0]]) for a in range(4)]
        prove_equal(out, [array([weights[a]]) @ v[a // 2] for a in range(4)], mention=[v[0, 0, 0], v[1, 1, 0]])


@grouped_heads.claim("Consecutive heads share their keys: repeat_interleave, where repeat deals them out in turn.")
def heads_repeated_in_turn():
    """Keys are repeated as a whole, so that head a of the queries uses head a modulo h_key."""
    q, k = symbols("q", 4, 1, 1), symbols("k", 2, 1, 1)
    prove_equal(attention.scores(q, k, scale=1), attention.scores(q, np.concatenate([k, k]), scale=1))


@theorem(
    of=[attention.attend_gradient],
    sizes="1 query, 2 keys, d = d_v = 1; 2 queries with a mask; 2 heads that share, in a batch; every path",
    equivalent={
        "_summed_over_sharing: heads, key_heads = (gradient.shape[-3:-2], k.shape[-3:-2])  ->  "
        "heads, key_heads = (gradient.shape[-4:-2], k.shape[-3:-2])": "heads that share with none are groups of one",
        "_summed_over_sharing: in_groups = (*gradient.shape[:-3], *key_heads, -1, *gradient.shape[-2:])  ->  "
        "in_groups = (*gradient.shape[:-3], *key_heads, -2, *gradient.shape[-2:])": "numpy takes any negative number so",
    },
)
def gradient_by_calculus():
    """attend_gradient is the gradient of <g, attend>: by q, k, v and every score, by symbolic differentiation of the
    definition; keys and values that heads share have the sum over these heads, and those without an axis of heads have the
    gradient of each head."""
    scale = symbol("scale")
    for n, mask in ((1, None), (2, np.array([[True, True], [False, True]]))):
        q, k, v, b, g = symbols("q", n, 1), symbols("k", 2, 1), symbols("v", 2, 1), symbols("b", n, 2), symbols("g", n, 1)
        allowed = np.ones((n, 2), dtype=bool) if mask is None else mask
        scores = rows(scale * (q @ k.T) + b)
        weights = [definition(row, able) for row, able in zip(scores, allowed, strict=True)]
        loss = expression((g * (array(weights) @ v)).sum())
        in_a_head = [x[None] for x in (g, q, k, v)]
        call = functools.partial(attention.attend_gradient, *in_a_head, scale=scale, bias=b[None], mask=mask)
        for _, got in all_paths(call):
            for (part,), inputs in zip(got, (q, k, v, b), strict=True):
                slopes = [[loss.diff(x.e) for x in row] for row in inputs]
                prove_equal(part, slopes, mention=[scale])
    q, k, v, g = symbols("q", 1, 2, 1, 1), symbols("k", 1, 1, 2, 1), symbols("v", 1, 1, 2, 1), symbols("g", 1, 2, 1, 1)
    b = symbols("b", 1, 2, 1, 2)
    weights = [definition(row) for row in rows(scale * (q[0, :, 0] @ k[0, 0].T) + b[0, :, 0])]
    losses = [expression(a * b) for (a,), (b,) in zip(g[0, :, 0], array(weights) @ v[0, 0], strict=True)]
    loss = sum(losses)
    for _, (got, broadcast, repeated) in all_paths(
        lambda: [
            attention.attend_gradient(*of, scale=scale, bias=bias)
            for *of, bias in (
                (g, q, k, v, b),
                (g[0], q[0], k[0, 0], v[0, 0], b[0]),
                (g[0], q[0], k[0].repeat(2, axis=0), v[0].repeat(2, axis=0), b[0]),
            )
        ]
    ):
        for part, inputs in zip(got, (q, k, v, b), strict=True):
            prove_equal(part, np.vectorize(lambda x: loss.diff(x.e), otypes=[object])(inputs), mention=[scale])
        for part, inputs in zip(repeated, (q[0], *(x[0].repeat(2, axis=0) for x in (k, v)), b[0]), strict=True):
            prove_equal(part, [[[own.diff(x.e) for x in row] for row in x] for own, x in zip(losses, inputs, strict=True)])
        for part, in_each_head in zip(broadcast, repeated, strict=True):
            prove_equal(part, in_each_head)


@gradient_by_calculus.claim("Each score takes the average of its row away: ds = a (da - sum a da).")
def gradient_without_the_average():
    """The gradient by a score is its weight times the gradient by the weight."""
    q, k, v, g = symbols("q", 1, 1), symbols("k", 2, 1), symbols("v", 2, 1), symbols("g", 1, 1)
    weights = array([definition(rows(q @ k.T)[0])])
    for _, got in all_paths(lambda: attention.attend_gradient(g, q, k, v, scale=1)):
        prove_equal(got.bias, weights * (g @ v.T))


# masks and offsets


@theorem(
    of=[attention.causal_mask, attention.window_mask],
    sizes="all n, m, positions; every width; windows of 1, 2, 5, also causal, and with 1 or 3 ahead, of the query at 10 and "
    "keys at 3 to 17",
)
def masks_pinned():
    """causal_mask is j <= i; window_mask is -width < j - i < width, -width < j - i < ahead if that is given, and j <= i too if
    causal; i, j are the positions of the query and the key."""
    query, key, width = sized("i", N), sized("j", M), size("width")
    a, b = index(N), index(M)
    i, j = query.at(a), key.at(b)
    prove_that(attention.causal_mask(query, key).at(a, b) == sp.Le(j, i), "causal is j <= i")
    for conditions, inside in all_paths(lambda: attention.window_mask(query, key, width=width).at(a, b)):
        distance = j - i if conditions[0][1] else i - j  # the one condition asks for the sign of j - i
        prove_that(inside == sp.Lt(distance, width.e), "the window is |j - i| < width")
    for width in (1, 2, 5):
        for offset in range(-7, 8):
            for causal, ahead in itertools.product((False, True), (None, 1, 3)):
                places = np.array([10]), np.array([10 + offset])
                got = attention.window_mask(*places, width=width, ahead=ahead, causal=causal)[0, 0]
                seen = -width < offset < (ahead or width) and not (causal and offset > 0)
                prove_that(bool(got) == seen, f"offset {offset}, width {width}, ahead {ahead}, causal {causal}")


@masks_pinned.claim("Here |j - i| < width; flash-attn's window_size = (w, w) allows |j - i| <= w.")
def window_counts_its_border():
    """|j - i| <= width, as in flash-attn's window_size."""
    got = attention.window_mask(np.array([0]), np.array([2]), width=2)[0, 0]
    prove_equal([got], [True])


@theorem(
    of=[attention.attend_by_offset, attention.causal_mask, attention.window_mask, *WHOLE],
    sizes="h = 4 on 2 heads of keys, n = 2, m = 4",
)
def offsets_pinned():
    """attend_by_offset is attend with bias b[j - i + n - 1] and the rules applied to j - i - (m - n); query head a uses head
    a // 2 of the keys. Scores are distinct integers times one positive symbol, values are free."""
    unit = symbol("unit", positive=True)
    q, k = np.arange(1, 9).reshape(4, 2, 1), unit * np.array([2, 3, 5, 7, 11, 13, 17, 19]).reshape(2, 4, 1)
    v, b = symbols("v", 2, 4, 1), unit * (np.arange(20).reshape(4, 5) ** 3)
    for causal, window in ((False, None), (True, None), (False, 2), (True, 1)):
        expected = np.empty((4, 2), dtype=object)
        for h, i in itertools.product(range(4), range(2)):
            s = [(q[h, i, 0] * k[h // 2, j, 0] + b[h, j - i + 1]).e for j in range(4)]
            kept = [(not causal or j - i <= 2) and (window is None or abs(j - i - 2) < window) for j in range(4)]
            expected[h, i] = array(definition(s, kept)) @ v[h // 2, :, 0]
        out = attention.attend_by_offset(q, k, v, scale=1, bias_by_offset=b, causal=causal, window=window)
        prove_equal(out[..., 0], expected)


@offsets_pinned.claim("With fewer queries than keys the last query sees the last key.")
def causal_aligned_at_the_start():
    """The first query sees the first key alone (PyTorch's is_causal)."""
    q, k, v = symbols("q", 1, 1, 1), symbols("k", 1, 2, 1), symbols("v", 1, 2, 1)
    for _, out in all_paths(lambda: attention.attend_by_offset(q, k, v, scale=1, causal=True)):
        prove_equal(out[0, 0], v[0, 0])


@theorem(of=[attention.attend_by_offset, *WHOLE, attention.cap], sizes="one query, one key; every path")
def offsets_and_the_rest():
    """A row's factor, a cap and a sink act in attend_by_offset as in attend: one key has the weight e^s / (e^s + e^sink) with
    s = c tanh(scale r q k / c) + b."""
    q, k, v, sink = symbols("q", 1, 1, 1), symbols("k", 1, 1, 1), symbols("v", 1, 1, 1), symbols("sink", 1, 1)
    scale, r, b, c = symbol("scale"), symbols("r", 1, 1), symbols("b", 1, 1), symbol("c", positive=True)
    s = expression(c * np.tanh(scale * r[0, 0] * q[0, 0, 0] * k[0, 0, 0] / c) + b[0, 0])
    more = {"bias_by_offset": b, "row_scale": r, "softcap": c, "sinks": sink}
    for _, out in all_paths(lambda: attention.attend_by_offset(q, k, v, scale=scale, **more)):
        stated = sp.exp(s) / (sp.exp(s) + sp.exp(sink[0, 0].e)) * v[0, 0, 0].e
        prove_equal(out[0, 0], [stated], mention=[r[0, 0], c, sink[0, 0]])


@offsets_and_the_rest.control
def sink_left_out():
    """One key has the whole weight."""
    q, v = symbols("q", 1, 1, 1), symbols("v", 1, 1, 1)
    for _, out in all_paths(lambda: attention.attend_by_offset(q, q, v, scale=1, sinks=symbols("sink", 1, 1))):
        prove_equal(out, v)


# what attention knows about position


@theorem(
    of=WHOLE,
    sizes="all n, m, d; orders of two, three and four tokens of one feature",
    argument="a sum over all keys whose summand names a key in k_j and v_j alone is blind to their order; for all n names are "
    "read off the expression; and the equation is decided for generators of S_2, S_3, S_4",
    values="the parts of the expression are read for the names in them",
)
def permutation_equivariant():
    """Without positions and without a mask attention is permutation equivariant, f(Px) = P f(x): output row i is made of q_i
    and of sums over all keys whose summand names no index outside q_i, k_j, v_j."""
    q, k, v, i, c = sized("q", N, D), sized("k", M, D), sized("v", M, D), index(N), index(D)
    output = attention.attend(q, k, v, scale=1)
    prove_equal(*entries(None, output, plain(q, k, v)))
    premise(_bare(plain(q, k, v).at(i, c)) <= {D.e, M.e}, "no index of a token stands outside q, k and v")
    for n in (2, 3, 4):
        q, k, v = symbols("q", n, 1), symbols("k", n, 1), symbols("v", n, 1)
        for order in ([1, 0, *range(2, n)], [*range(1, n), 0]):
            prove_equal(plain(q[order], k[order], v[order]), plain(q, k, v)[order], mention=q)


@permutation_equivariant.claim("It holds without a mask; a causal mask breaks it for earlier rows.")
def equivariant_under_a_causal_mask():
    """With a causal mask f(Px) = P f(x) still holds for every row (two tokens change places)."""
    x, at = symbols("x", 2, 1), np.arange(2)
    layer = lambda x: attention.attend(x, x, x, scale=1, mask=attention.causal_mask(at, at))
    for _, (turned, plainly) in all_paths(lambda: (layer(x[::-1]), layer(x))):
        prove_equal(turned[::-1], plainly)


@theorem(of=[attention.attend, attention.causal_mask], sizes="n = 3; one layer and two", as_written="formula")
def causal_mask_and_order():
    """A causal mask lets order through, but not at once: after one layer the last token does not see the order of the others,
    after two it does. Witness: uniform attention, twice, gives (11 x0 + 5 x1 + 2 x2) / 18, or (5, 11, 2) after a swap."""
    x, positions = symbols("x", 3, 1), np.arange(3)
    mask = attention.causal_mask(positions, positions)
    swapped = _causal(x[[1, 0, 2]])
    prove_equal(swapped[2], _causal(x)[2], mention=x)
    zero = array([[0], [0], [0]])
    layer = lambda v: attention.attend(zero, zero, v, scale=1, mask=mask)
    one, two = layer(x), layer(layer(x))
    prove_equal(one[2], [(x[0, 0] + x[1, 0] + x[2, 0]) / 3])
    prove_equal(two[2], [(11 * x[0, 0] + 5 * x[1, 0] + 2 * x[2, 0]) / 18])
    prove_equal(layer(layer(x[[1, 0, 2]]))[2], [(5 * x[0, 0] + 11 * x[1, 0] + 2 * x[2, 0]) / 18])


@causal_mask_and_order.claim("From two layers on the last token sees the order of the others.")
def two_causal_layers_are_blind():
    """After two causal layers the last token still does not see the order of the others."""
    x, zero = symbols("x", 3, 1), array([[0], [0], [0]])
    mask = attention.causal_mask(np.arange(3), np.arange(3))
    layer = lambda v: attention.attend(zero, zero, v, scale=1, mask=mask)
    prove_equal(layer(layer(x))[2], layer(layer(x[[1, 0, 2]]))[2])


# the four terms


@theorem(of=[attention.four_terms], sizes="all batches, n, d_model, d_head")
def four_terms_add_up():
    """The four terms content-content, content-position, position-content and position-position add up to
    (x_i + p_i) W_Q W_K^T (x_j + p_j)^T."""
    x, p, w_q, w_k = sized("x", M, N, D), sized("p", M, N, D), sized("Q", D, E), sized("K", D, E)
    whole = ((x + p) @ w_q) @ np.swapaxes((x + p) @ w_k, -1, -2)
    terms = attention.four_terms(x, p, w_q, w_k)
    prove_equal(*entries(None, terms[0] + terms[1] + terms[2] + terms[3], whole))
    products = [(a @ w_q) @ np.swapaxes(b @ w_k, -1, -2) for a, b in itertools.product((x, p), repeat=2)]
    for term, product in zip(terms, products, strict=True):
        prove_equal(*entries(None, term, product))


@four_terms_add_up.claim("The expansion needs W_K^T, with vectors as rows.")
def the_key_matrix_without_its_transpose():
    """W_Q (x_i + e_i) (W_K (x_j + e_j))^T expands with W_K on the right, as a blog prints it; it needs W_K^T."""
    x, e, q, k = (symbols(name, 2, 2) for name in "xeQK")
    terms = attention.four_terms(x, e, q, k)
    printed = [a @ q @ k @ b.T for a, b in itertools.product((x, e), repeat=2)]
    prove_equal(terms[0] + terms[1] + terms[2] + terms[3], sum(printed))


@theorem(
    of=[attention.four_terms, sinusoidal.encode],
    sizes="d = 2, 4, 6; every pair of blocks",
    argument="for all d the term is a sum over pairs of blocks, and d = 4 has every kind of pair",
)
def relative_exactly_for_the_commutant():
    """p_i A p_j^T with A = W_Q W_K^T and sinusoidal p depends on j - i alone exactly if A is block diagonal with 2 x 2 blocks
    a 1 + b J, which commute with the shifts: d of the d^2 dimensions. Solved for all i, j from the independent exponentials of
    (d/di + d/dj) p_i A p_j^T; frequencies are non-zero and no two equal up to sign."""
    i, j = symbol("i"), symbol("j")
    for dim in (2, 4, 6):
        w, unknown = symbols("w", dim // 2), symbols("A", dim, dim)
        p = sinusoidal.encode(array([i, j]), w, layout="interleaved")
        term = attention.four_terms(np.zeros_like(p), p, np.eye(dim, dtype=int), unknown.T).position_position[0, 1].e
        prove_equal([term], [p[0] @ unknown @ p[1]], mention=[i, j])
        solution = solve_forall([term.diff(i.e) + term.diff(j.e)], unknown)
        matrix = sp.Matrix(dim, dim, [solution[a.e] for a in unknown.ravel()])
        prove_that(len(matrix.free_symbols) == dim, f"the solutions form a space of dimension {dim} of {dim * dim}")
        expected = sp.zeros(dim, dim)
        for t in range(0, dim, 2):
            a, b = unknown[t + 1, t + 1].e, unknown[t + 1, t].e
            expected[t : t + 2, t : t + 2] = sp.Matrix([[a, -b], [b, a]])
        prove_equal(matrix.tolist(), expected.tolist())


@relative_exactly_for_the_commutant.claim("It needs W_Q W_K^T to commute with the shifts: d of d^2 dimensions.")
def relative_for_any_projections():
    """The position-position term depends on j - i whatever the projections, as a blog claims; witness A = diag(1, 0)."""
    w, i, j, s = symbols("w", 1), symbol("i"), symbol("j"), symbol("s")
    p = sinusoidal.encode(array([i, j, i + s, j + s]), w, layout="interleaved")
    term = lambda a, b: p[a, 0] * p[b, 0]
    prove_equal([term(0, 1)], [term(2, 3)])


def _causal(x):
    weights = np.exp(x @ x.T) * np.tri(len(x), dtype=int)
    return weights / weights.sum(axis=-1, keepdims=True) @ x


def _bare(e):
    """The symbols in the expressions that are no entries of arrays."""
    if isinstance(e, sp.Indexed):
        return set()
    if isinstance(e, sp.Sum):
        return (_bare(e.function) - {limit[0] for limit in e.limits}) | {s for limit in e.limits for s in limit[2].free_symbols}
    return {e} if e.is_Symbol else set().union(*map(_bare, e.args))
