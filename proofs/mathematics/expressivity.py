"""Who can express whom: the shipped scores have the spaces of `posref.expressivity`, and the constructions behind its yes.

A score is taken apart into what the content of both, of the query, of the key and of neither decides.
"""

import numpy as np

from posref import attention, expressivity, offsets
from posref.relative import alibi, deberta, shaw, t5, transformer_xl, tupe
from posref.rotary import rope
from proofs.kit import example, prove_equal, prove_that, symbol, symbols, theorem

N, D = 4, 2
PLACES = np.arange(N)
OFFSETS = offsets.offsets(PLACES, PLACES)


def parts(score):
    """M, u, v and b of a score of two contents (n, d), at generic content that is the same at all places: four (n, n)."""
    x, y = symbols("x", 1, D), symbols("y", 1, D)
    at = lambda x, y: score(np.repeat(x, N, axis=0), np.repeat(y, N, axis=0))
    b = at(0 * x, 0 * y)
    u, v = at(x, 0 * y) - b, at(0 * x, y) - b
    return at(x, y) - u - v - b, u, v, b


def prove_spaces(name, score):
    """Entries that the spaces of a system of the table hold together are equal."""
    for part, space in zip(parts(score), expressivity.SYSTEMS[name].spaces, strict=True):
        together = np.argmax(expressivity.SPACES[space](N), axis=0)
        first = [np.argwhere(together == together[i, j])[0] for i in range(N) for j in range(N)]
        prove_equal(part.ravel(), [part[i, j] for i, j in first])


def with_table(q, k):
    table = symbols("a", 2 * expressivity.CLIP + 1, D)
    return shaw.scores(q, k, table, OFFSETS, scale=symbol("s"))


def with_memory(q, k):
    r, u, v = symbols("r", 1, 2 * N - 1, D), symbols("g", 1, D), symbols("h", 1, D)
    return transformer_xl.scores(q[None], k[None], r, u, v, scale=symbol("s"))[0]


def disentangled(q, k):
    rows = 2 * expressivity.SPAN
    return deberta.scores(q, k, symbols("b", rows, D), symbols("c", rows, D), OFFSETS, scale=symbol("s"), convention="paper")


def with_buckets(q, k):
    table = symbols("t", expressivity.BUCKETS, 1)
    bias = t5.bias(PLACES, PLACES, table, max_distance=expressivity.MAX_DISTANCE, bidirectional=True)
    return attention.scores(q, k, scale=1) + bias[0]


def rotated(q, k):
    tables = rope.tables(PLACES, symbols("w", 1))
    return attention.scores(*(rope.rotate(x, *tables, layout="half") for x in (q, k)), scale=symbol("s"))


SHIPPED = {
    "shaw clipped": with_table,
    "transformer_xl": with_memory,
    "deberta": disentangled,
    "t5 encoder": with_buckets,
}


@theorem(of=[shaw.scores, transformer_xl.scores, deberta.scores, t5.bias], sizes="n = 4, d = 2, clip 2, span 3, 8 buckets to 6")
def scores_lie_in_their_spaces():
    """Scores of Shaw, Transformer-XL, DeBERTa and T5 weigh products of contents alike at all places, and the query's content,
    the key's, and what is left as the table of who expresses whom says."""
    for name, score in SHIPPED.items():
        prove_spaces(name, score)


@scores_lie_in_their_spaces.claim("The content of the query reads Shaw's table, which it does with no bias.")
def a_relative_table_is_a_bias():
    """A relative table is a bias by offset."""
    prove_spaces("any bias", with_table)


@theorem(of=[rope.rotate, rope.tables], sizes="n = 4, d = 2")
def rotated_scores_lie_in_their_spaces():
    """What RoPE makes of a product of contents depends on the offset, and there is nothing beside it: u, v and b are 0."""
    prove_spaces("rope", rotated)
    _, u, v, b = parts(rotated)
    prove_equal([*u.ravel(), *v.ravel(), *b.ravel()], [0] * (3 * N * N))


@rotated_scores_lie_in_their_spaces.claim("RoPE weighs each product of contents by the offset; tables and biases never do.")
def a_rotation_is_a_relative_table():
    """RoPE is Shaw's table, made of sines."""
    prove_spaces("shaw clipped", rotated)


# constructions


def wide(x, *columns):
    """More features, the same at all places."""
    return np.concatenate([x, *(np.broadcast_to(c, (len(x), 1)) for c in columns)], axis=1)


@theorem(of=[shaw.scores, transformer_xl.scores, deberta.scores], sizes="n = 4, d = 2")
def a_bias_by_offset():
    """Any bias beta(j - i) is Shaw's with one constant feature, DeBERTa's p2c with one, and Transformer-XL's v with one more
    feature that contents do not use."""
    q, k, beta = symbols("q", N, D), symbols("k", N, D), symbols("beta", 2 * N - 1)
    zero, one = 0 * beta[:1], 0 * beta[:1] + 1
    wanted = attention.scores(q, k, scale=1) + beta[OFFSETS + N - 1]
    rows = np.concatenate([np.zeros((2 * N - 1, D), int) * beta[0], beta[:, None]], axis=1)
    prove_equal(shaw.scores(wide(q, one), wide(k, zero), rows, OFFSETS, scale=1), wanted)
    last = wide(np.zeros((1, D), int) * beta[0], one)
    got = transformer_xl.scores(wide(q, zero)[None], wide(k, zero)[None], rows[None], 0 * last, last, scale=1)
    prove_equal(got[0], wanted)
    span = rows[np.clip(np.arange(2 * N) - N, 1 - N, N - 1) + N - 1]
    prove_equal(deberta.scores(wide(q, zero), wide(k, one), span, None, OFFSETS, scale=1, convention="paper"), wanted)


@a_bias_by_offset.control
def a_bias_without_the_constant_feature():
    """Shaw's table adds a bias to contents that have no constant feature."""
    beta = symbols("beta", 3)
    table = np.stack([0 * beta, beta], axis=1)
    content = np.stack([symbols("q", 2), 0 * symbols("q", 2)], axis=1)
    o = offsets.offsets(np.arange(2), np.arange(2))
    prove_equal(shaw.scores(content, content, table, o, scale=1) - attention.scores(content, content, scale=1), beta[o + 1])


@theorem(of=[tupe.positional_scores, attention.four_terms], sizes="n = 3, d = 2")
def any_matrix():
    """TUPE with n position features has any matrix of scores; so has an added table with n coordinates of its own."""
    bias, n = symbols("b", 3, 3), 3
    unit = np.eye(n, dtype=int) + 0 * bias
    prove_equal(tupe.positional_scores(unit, bias[None], unit[None], scale=1)[0], bias)
    x, p = np.concatenate([symbols("x", n, D), 0 * bias], axis=1), np.concatenate([0 * bias[:, :D], unit], axis=1)
    w_q, w_k = symbols("w", D, D), np.eye(D, dtype=int) + 0 * bias[:D, :D]
    block = lambda a, b: np.block([[a, np.zeros((D, n), int) * bias[0, 0]], [np.zeros((n, D), int) * bias[0, 0], b]])
    content = x[:, :D] @ w_q @ x[:, :D].T
    prove_equal(sum(attention.four_terms(x, p, block(w_q, bias), block(w_k, unit))), content + bias)


@any_matrix.control
def any_matrix_of_lower_rank():
    """One position feature is enough."""
    bias, one = symbols("b", 2, 2), symbols("p", 2, 1)
    prove_equal(tupe.positional_scores(one, one[:1][None], one[:1][None], scale=1)[0], bias)


@theorem(of=[alibi.bias, attention.scores], sizes="n = 4, d = 2; all slopes")
def two_plain_features():
    """Signed ALiBi is two more features that do not turn, (-m i, m) for queries and (1, j) for keys; its key form is one."""
    q, k, m = symbols("q", N, D), symbols("k", N, D), symbols("m", 1)
    place = PLACES[:, None] + 0 * m
    plain = attention.scores(q, k, scale=1)
    signed = attention.scores(
        wide(np.concatenate([q, -m * place], axis=1), m), np.concatenate([wide(k, 0 * m + 1), place], axis=1), scale=1
    )
    prove_equal(signed, plain + alibi.bias(PLACES, PLACES, m, form="signed")[0])
    key = attention.scores(wide(q, m), np.concatenate([k, place], axis=1), scale=1)
    prove_equal(key, plain + np.broadcast_to(alibi.bias(PLACES, PLACES, m, form="key")[0], (N, N)))


@two_plain_features.control
def the_key_form_is_the_signed_one():
    """The two forms have the same scores; they have the same weights."""
    m = symbols("m", 1)
    prove_equal(
        np.broadcast_to(alibi.bias(PLACES, PLACES, m, form="key")[0], (N, N)), alibi.bias(PLACES, PLACES, m, form="signed")[0]
    )


def wave(n, terms=None):
    """Scores of constant features that turn at t_r = (2r - 1) pi / (n - 1), weighed by 1 / ((n - 1) sin^2(t_r / 2))."""
    r = np.arange(1, (n - 1) // 2 + 1)[:terms]
    t = (2 * r - 1) * np.pi / (n - 1)
    query = np.tile(np.repeat([1.0, 0.0], len(t)), (n, 1))
    key = query * np.tile(1 / ((n - 1) * np.sin(t / 2) ** 2), 2)
    tables = rope.tables(np.arange(n), t)
    return attention.scores(*(rope.rotate(x, *tables, layout="half") for x in (query, key)), scale=1)


@example(
    of=[rope.rotate, rope.tables],
    sizes="n = 3, 5, 9, 33, 129",
    argument="for all odd n: both sides are even with period 2 (n - 1) and mean 0, and their second differences are equal by "
    "the geometric sum",
)
def absolute_alibi_is_a_rotation():
    """(n - 1)/2 - |j - i|, absolute ALiBi and a constant, is a score of n - 1 constant features that turn on n tokens."""
    for n in (3, 5, 9, 33, 129):
        distance = abs(offsets.offsets(np.arange(n), np.arange(n)))
        off = abs(wave(n) - ((n - 1) / 2 - distance)).max()
        prove_that(off < 1e-12 * n * n, f"n = {n}: within {off:.1g}")


@absolute_alibi_is_a_rotation.control
def with_a_pair_less():
    """One pair less is enough (n = 9)."""
    prove_that(np.ptp(wave(9, terms=3) + abs(offsets.offsets(np.arange(9), np.arange(9)))) < 1e-9, "the triangle wave")


def offsets_reached(n, pairs, passing):
    """The rank of what pairs of constant features, and features that do not turn, make of the 2n - 1 offsets of n tokens."""
    tables = rope.tables(np.arange(1 - n, n), rope.frequencies(2 * pairs, 8.0))
    return np.linalg.matrix_rank(np.concatenate([*tables, np.ones((2 * n - 1, passing))], axis=1), tol=1e-10)


@example(
    of=[rope.tables, rope.frequencies],
    sizes="n = 2 to 5, base 8",
    argument="for all n: 2n - 1 values need as many features, and as many exponentials of distinct frequencies are independent "
    "on 2n - 1 integers (Vandermonde)",
)
def width_of_an_arbitrary_bias():
    """RoPE with given frequencies has any bias by offset on n tokens with 2n - 1 constant features, one of them still."""
    for n in (2, 3, 4, 5):
        prove_that(offsets_reached(n, n - 1, 1) == 2 * n - 1, f"n = {n}")


@width_of_an_arbitrary_bias.control
def width_without_the_passing_feature():
    """2n - 2 features that turn are enough."""
    prove_that(offsets_reached(4, 3, 0) == 7, "rank 7")
