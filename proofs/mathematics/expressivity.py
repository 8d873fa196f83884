"""Expressivity: the shipped scores have the spaces of `posref.expressivity`, and the constructions behind every yes.

A score has four parts: they depend on the content of both, of the query, of the key, and of neither.
"""

import itertools

import numpy as np
import sympy as sp

from posref import attention, expressivity, offsets
from posref.relative import alibi, deberta, shaw, swin, t5, transformer_xl, tupe
from posref.rotary import rope
from proofs.kit import *
from proofs.mathematics.decay import dot, products, turned

N, D = 4, 2
PLACES = np.arange(N)
OFFSETS = offsets.offsets(PLACES, PLACES)
REACH = expressivity.MOST - 1  # offsets of the texts that the table is made of
NEAR, FAR, ROWS = np.arange(-REACH, REACH + 1), 10**9, size("rows")


def integers(names):
    return [symbol(name, integer=True) for name in names.split()]


def parts(score, n_query=N, n_key=N):
    """M, u, v and b of a score of two contents, for generic content that is equal at all places: four (n_query, n_key)."""
    x, y = symbols("x", 1, D), symbols("y", 1, D)
    at = lambda x, y: score(np.repeat(x, n_query, axis=0), np.repeat(y, n_key, axis=0))
    b = at(0 * x, 0 * y)
    u, v = at(x, 0 * y) - b, at(0 * x, y) - b
    return at(x, y) - u - v - b, u, v, b


def tails():
    """All offsets beyond the reach, on the left and on the right, with a symbol for the excess."""
    far = symbol("d", integer=True, nonnegative=True) + REACH
    return -far, far


def readings(name, causal=False):
    """The index at all offsets: one number beyond the reach on the left, one on the right, and those of near offsets."""
    index, sides = expressivity.INDEX[name], tails()[: 1 if causal else 2]
    far = [{int(x[0]) for _, x in all_paths(lambda side=side: index(array([side])))} for side in sides]
    return [number for (number,) in far] + index(NEAR[NEAR <= 0] if causal else NEAR).tolist()


def prove_spaces(name, score):
    """One query with keys at near and far offsets: entries that the spaces of a system make equal are equal."""
    at = np.array([-FAR, FAR, *NEAR])
    for part, space in zip(parts(lambda q, k: score(q, k, at), 1, len(at)), expressivity.SYSTEMS[name].spaces, strict=True):
        together = [0] * len(at) if space == "one" else readings(space.split(" + ")[0])
        prove_equal(part[0], [part[0, together.index(value)] for value in together])


def with_table(q, k, at):
    table = symbols("a", 2 * expressivity.CLIP + 1, D)
    return shaw.scores(q, k, table, at[None], scale=symbol("s"))


def disentangled(*terms):
    rows = [symbols(name, 2 * expressivity.SPAN, D) if name in terms else None for name in ("p2c", "c2p")]
    return lambda q, k, at: deberta.scores(q, k, *rows, at[None], scale=symbol("s"), convention="paper")


def with_buckets(bidirectional):
    table, rules = symbols("t", expressivity.BUCKETS, 1), {"max_distance": expressivity.MAX_DISTANCE}
    bias = lambda at: t5.bias(np.array([0]), at, table, **rules, bidirectional=bidirectional)[0]
    return lambda q, k, at: attention.scores(q, k, scale=1) + bias(at)


def with_memory(q, k):
    r, u, v = symbols("r", 1, 2 * N - 1, D), symbols("g", 1, D), symbols("h", 1, D)
    return transformer_xl.scores(q[None], k[None], r, u, v, scale=symbol("s"))[0]


def rotated(q, k):
    tables = rope.tables(PLACES, symbols("w", 1))
    return attention.scores(*(rope.rotate(x, *tables, layout="half") for x in (q, k)), scale=symbol("s"))


SHIPPED = {
    "shaw clipped": with_table,
    "deberta": disentangled("p2c", "c2p"),
    "deberta c2p": disentangled("c2p"),
    "deberta p2c": disentangled("p2c"),
    "t5 encoder": with_buckets(True),
    "t5 decoder": with_buckets(False),
}


@theorem(
    of=[shaw.scores, deberta.scores, t5.bias],
    sizes="offsets up to 8, beyond which an index is one number, and 10^9; d = 2, clip 2, span 3, 8 buckets to 6",
)
def scores_lie_in_their_spaces():
    """A score is x^T M y + x^T u + y^T v + b with the contents x and y. For Shaw, DeBERTa's terms and T5 `posref express` takes
    M as one matrix, and each of u, v and b as one value or as a function of an index of the offset: so they are at these
    offsets."""
    for name, score in SHIPPED.items():
        prove_spaces(name, score)


@scores_lie_in_their_spaces.claim("The content of the query reads Shaw's table, which it does with no bias.")
def a_relative_table_is_a_bias():
    """A relative table is a bias by offset: u is constant."""
    prove_spaces("t5 encoder", with_table)


def prove_alike(part, space):
    """Entries with the same index, row or column are equal, as in a function of the offset, the query or the key."""
    i, j = np.indices((N, N))
    label = {"one": 0 * i, "offset": j - i, "query": i, "key": j}[space].ravel().tolist()
    prove_equal(part.ravel(), [part.ravel()[label.index(each)] for each in label])


@theorem(of=[transformer_xl.scores, attention.four_terms], sizes="n = 4, d = 2")
def scores_of_memories_and_of_tables_lie_in_theirs():
    """In Transformer-XL the parts of the query's content and of none are functions of the offset, the others constant. With an
    added table p the query's content meets a function of the key alone, and the key's one of the query."""
    for part, space in zip(parts(with_memory), expressivity.SYSTEMS["transformer_xl"].spaces, strict=True):
        prove_alike(part, space)
    p, w_q, w_k = symbols("p", N, D), symbols("w", D, D), symbols("z", D, D)
    added = lambda q, k: sum(attention.four_terms(np.concatenate([q, k]), np.concatenate([p, p]), w_q, w_k))[:N, N:]
    for part, space in zip(parts(added)[:3], expressivity.SYSTEMS["added"].spaces[:3], strict=True):
        prove_alike(part, space)


@scores_of_memories_and_of_tables_lie_in_theirs.control
def an_added_table_is_relative():
    """What an added table makes of the query's content is a function of the offset."""
    p, w = symbols("p", N, D), symbols("w", D, D)
    added = lambda q, k: sum(attention.four_terms(np.concatenate([q, k]), np.concatenate([p, p]), w, w))[:N, N:]
    prove_alike(parts(added)[1], "offset")


@theorem(of=[rope.rotate, rope.tables], sizes="n = 4, d = 2")
def rotated_scores_lie_in_their_spaces():
    """What RoPE makes of a product of contents depends on the offset, and there is nothing beside it: u, v and b are 0."""
    m, u, v, b = parts(rotated)
    prove_alike(m, "offset")
    prove_equal([*u.ravel(), *v.ravel(), *b.ravel()], [0] * (3 * N * N))


@rotated_scores_lie_in_their_spaces.claim("RoPE weighs each product of contents by the offset; tables and biases never do.")
def a_rotation_is_a_relative_table():
    """RoPE is Shaw's table, made of sines."""
    prove_alike(parts(rotated)[0], "one")


# inclusions, for all lengths


def needed():
    """(small, large, causal) for every yes of the table whose spaces are functions of an index."""
    found = set()
    for meaning in expressivity.MEANINGS:
        for s, t in itertools.product(expressivity.SYSTEMS, repeat=2):
            if expressivity.verdict(s, t, meaning=meaning) is None:
                spaces = zip(expressivity.SYSTEMS[s].spaces, expressivity.SYSTEMS[t].spaces, strict=True)
                found |= {(a, b, meaning == "causal") for a, b in spaces if a in expressivity.INDEX and a != b}
    return sorted((a, b, causal) for a, b, causal in found if b not in ("any", "offset", "vector"))


def prove_function(small, large, causal):
    """The index of one space is a function of the index of the other, at every integer."""
    pairs = sorted(set(zip(readings(large, causal), readings(small, causal), strict=True)))
    twice = next(((a, b, c) for (a, b), (again, c) in itertools.pairwise(pairs) if a == again), (0, 0, 0))
    several = "where {} is {}, {} is {} and {}".format(large, twice[0], small, *twice[1:])
    prove_that(len({a for a, _ in pairs}) == len(pairs), f"{small} is a function of {large}", counterexample=several)


@theorem(
    of=[offsets.clip, deberta.position_index, t5.bucket],
    sizes="offsets -8 .. 8, and a symbol beyond them; the parameters of the table",
)
def functions_of_an_index():
    """Where the table of imitations replaces one index by another (clipped offsets, DeBERTa's index, T5's buckets), the index
    that is replaced is a function of the one in its place, at every integer: a row for each value of the second is enough."""
    for small, large, causal in needed():
        prove_function(small, "c2p" if large == "c2p + p2c" and small != "p2c" else large.split(" + ")[-1], causal)


@functions_of_an_index.claim(
    "On the left alone the decoder's buckets are finer; a future key has that of its own token in them."
)
def buckets_of_the_decoder_are_finer():
    """T5's decoder, with as many buckets for one side, distinguishes all that its encoder does."""
    prove_function("buckets", "causal buckets", False)


@functions_of_an_index.control
def clipped_offsets_are_the_wider_index():
    """DeBERTa's index with span 3 is a function of the offset clipped to 2."""
    prove_function("c2p", "clipped", False)


@theorem(
    of=[offsets.offsets, alibi.bias, t5.bias],
    sizes="all positions, slopes and tables; T5 with 8 buckets to 6",
    as_written="runs",
)
def functions_of_the_offset():
    """Offsets, signed and absolute ALiBi and T5's bias do not change when the positions i and j become i + s and j + s: they
    are functions of the offset, like everything that is read from a table by the offset."""
    i, j, s, m, table = *integers("i j s"), symbols("m", 1), symbols("t", expressivity.BUCKETS, 1)
    at = lambda make, i, j: make(array([i]), array([j])).ravel()
    bucketed = {"max_distance": expressivity.MAX_DISTANCE}
    for make in (
        offsets.offsets,
        lambda i, j: alibi.bias(i, j, m, form="signed"),
        lambda i, j: alibi.bias(i, j, m, form="absolute"),
        lambda i, j: t5.bias(i, j, table, **bucketed, bidirectional=True),
        lambda i, j: t5.bias(i, j, table, **bucketed, bidirectional=False),
    ):
        for _, (moved, here) in all_paths(lambda make=make: (at(make, i + s, j + s), at(make, i, j))):
            prove_equal(moved, here)


@functions_of_the_offset.claim("It is one up to a constant in the row: weights depend on the offset, the bias does not.")
def the_key_form_is_a_function_of_the_offset():
    """ALiBi's key form is a function of the offset."""
    i, j, s, m = *integers("i j s"), symbols("m", 1)
    prove_equal(*(alibi.bias(array([i + t]), array([j + t]), m, form="key").ravel() for t in (s, 0 * s)))


def row_of(*places):
    """The row of Swin's table from the first to the second of two places on a grid of 3 columns, on every path."""
    at = np.stack([array(place) for place in places])
    for _, row in all_paths(lambda: swin.rows(at, height=ROWS, width=expressivity.COLUMNS)[0, 1]):
        yield row


@theorem(
    of=[swin.rows], sizes="any number of rows, hence all n; 3 columns", as_written="the code computes the row as it is written"
)
def functions_of_a_vector():
    """In rows of 3 places the row of Swin's table gives the offset in the text: its distance from the row of the own place is
    5 down + right for a vector (down, right), and no other vector has it, since |right| <= 2; the offset is 3 down + right."""
    columns, down = expressivity.COLUMNS, index(ROWS)
    rights = range(1 - columns, columns)
    for right, sign in itertools.product(rights, (-1, 1)):
        here, there = [0, max(0, -right)], [sign * down, max(0, right)]
        (own,) = row_of([0, 0], [0, 0])
        for row in row_of(here, there):
            prove_equal([row], [own - (2 * columns - 1) * sign * down - right])
        places = [columns * at[0] + at[1] for at in (here, there)]
        prove_equal([places[1] - places[0]], [columns * sign * down + right])
    premise(all((a - b) % (2 * columns - 1) for a in rights for b in rights if a != b), "no two vectors have the same row")


@functions_of_a_vector.claim("An offset in the text is several vectors: a row down and one column back is 2 places on.")
def vectors_are_offsets():
    """The offset in the text gives Swin's row."""
    rows = swin.rows(np.stack(np.divmod(np.arange(9), 3), axis=-1), height=3, width=3)
    prove_that(
        rows[0, 2] == rows[2, 4], counterexample=f"2 places on: row {rows[0, 2]} from token 0, row {rows[2, 4]} from token 2"
    )


@theorem(of=[alibi.bias], sizes="all positions, hence all n; all slopes")
def forms_of_alibi():
    """ALiBi's signed form is its key form less m i, one number in row i; on j <= i the absolute form is the signed one."""
    i, j, m, back = *integers("i j"), symbols("m", 1), symbol("back", integer=True, positive=True)
    at = lambda form, j: alibi.bias(array([i]), array([j]), m, form=form).ravel()
    prove_equal(at("signed", j), at("key", j) - m * i)
    prove_equal(at("absolute", i), at("signed", i))
    for _, (absolute, signed) in all_paths(lambda: (at("absolute", i - back), at("signed", i - back))):
        prove_equal(absolute, signed)


@forms_of_alibi.claim("On j > i they differ in sign.")
def forms_of_alibi_in_both_directions():
    """The absolute form is the signed one, in both directions."""
    for _, (absolute, signed) in all_paths(
        lambda: (alibi.bias(PLACES, PLACES, symbols("m", 1), form=form).ravel() for form in ("absolute", "signed"))
    ):
        prove_equal(absolute, signed)


# constructions


def wide(x, *columns):
    """The content with more features, which are equal at all places."""
    return np.concatenate([x, *(np.broadcast_to(c, (len(x), 1)) for c in columns)], axis=1)


@theorem(of=[shaw.scores, transformer_xl.scores, deberta.scores], sizes="n = 4, d = 2", as_written="formula")
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


@theorem(of=[tupe.positional_scores, attention.four_terms], sizes="n = 3, width 5", as_written="formula")
def any_matrix():
    """TUPE with n position features has any matrix of scores; so has an added table with n coordinates of its own."""
    bias, n = symbols("b", 3, 3), 3
    unit = np.eye(n, dtype=int) + 0 * bias
    prove_equal(tupe.positional_scores(unit, bias[None], unit[None], scale=1)[0], bias)
    x, p = np.concatenate([symbols("x", n, D), 0 * bias], axis=1), np.concatenate([0 * bias[:, :D], unit], axis=1)
    w_q, w_k = symbols("w", D, D), np.eye(D, dtype=int) + 0 * bias[:D, :D]
    block = lambda a, b: np.block([[a, np.zeros((D, n), int) * bias[0, 0]], [np.zeros((n, D), int) * bias[0, 0], b]])
    content = x[:, :D] @ w_q @ x[:, :D].T
    terms = attention.four_terms(x, p, block(w_q, bias), block(w_k, unit))
    prove_equal(np.stack(terms), [content, 0 * bias, 0 * bias, bias])


@any_matrix.control
def any_matrix_of_lower_rank():
    """One position feature is enough."""
    bias, one = symbols("b", 2, 2), symbols("p", 2, 1)
    prove_equal(tupe.positional_scores(one, one[:1][None], one[:1][None], scale=1)[0], bias)


@theorem(of=[alibi.bias, attention.scores], sizes="all positions, hence all n; d = 2; all slopes")
def two_plain_features():
    """Scores with signed ALiBi are those of two more features that do not turn, (-m i, m) for queries and (1, j) for keys; its
    key form needs one."""
    q, k, m, i, j = symbols("q", 1, D), symbols("k", 1, D), symbols("m", 1), *integers("i j")
    query, key = array([[i]]), array([[j]])
    plain, one = attention.scores(q, k, scale=1), 0 * m + 1
    signed = attention.scores(
        np.concatenate([q, -m * query, m[None]], axis=1), np.concatenate([wide(k, one), key], axis=1), scale=1
    )
    prove_equal(signed, plain + alibi.bias(query[0], key[0], m, form="signed")[0])
    lone = attention.scores(wide(q, m), np.concatenate([k, key], axis=1), scale=1)
    prove_equal(lone, plain + alibi.bias(query[0], key[0], m, form="key")[0])


@two_plain_features.control
def the_key_form_is_the_signed_one():
    """The two forms have the same scores; they have the same weights."""
    m = symbols("m", 1)
    prove_equal(
        np.broadcast_to(alibi.bias(PLACES, PLACES, m, form="key")[0], (N, N)), alibi.bias(PLACES, PLACES, m, form="signed")[0]
    )


def wave(n, terms=None):
    """Scores of constant features that rotate by t_r = (2r - 1) pi / (n - 1), with weights 1 / ((n - 1) sin^2(t_r / 2))."""
    r = np.arange(1, (n - 1) // 2 + 1)[:terms]
    t = (2 * r - 1) * np.pi / (n - 1)
    query = np.tile(np.repeat([1.0, 0.0], len(t)), (n, 1))
    key = query * np.tile(1 / ((n - 1) * np.sin(t / 2) ** 2), 2)
    tables = rope.tables(np.arange(n), t)
    return attention.scores(*(rope.rotate(x, *tables, layout="half") for x in (query, key)), scale=1)


@theorem(
    of=[rope.rotate],
    sizes="all widths; one query and one key, hence all n",
    argument="for 0 < |x| < N = 2n - 1 sin(pi x / N) is not 0, so the kernel is; its weights on beta are the discrete Fourier "
    "series of beta",
)
def any_bias_by_rope():
    """Any bias beta(j - i) on n tokens is RoPE's on 2n - 1 constant features, one of them still: the score with (1, 0) for each
    k_t is sum_t a_t cos(o w_t) + b_t sin(o w_t) with the features (a_t, b_t) of q; with w_t = 2 pi t / N, N = 2n - 1, the sum
    K(x) over t < n of 2 cos(x w_t), and 1 for t = 0, is 0 at all integers x but multiples of N, where it is N; so beta(o) is
    1/N sum_p beta(p) K(o - p)."""
    h = size("h")
    q, k, o = sized("q", 1, 2 * h), sized("k", 1, 2 * h), sized("o", h)
    a, b = products(q, k)
    with summing("half"):
        prove_equal([dot(q, turned(k, o)).at(0)], [(a * np.cos(o) + b * np.sin(o)).sum(axis=-1).at(0)])
    y, t, x = symbol("y"), sp.Symbol("t", integer=True, nonnegative=True), symbol("x", integer=True)
    n = sp.Symbol("n", integer=True, positive=True)
    above = array(t)[()] + 1
    whole = array(t)[()] + sp.Rational(1, 2)
    prove_induction(2 * np.sin(y / 2) * 2 * np.cos(above * y), 2 * np.sin(whole * y) - 2 * np.sin(y / 2), t)
    at = 2 * sp.pi * x.e / (2 * n - 1)
    prove_equal([sp.sin(sp.simplify((n - sp.Rational(1, 2)) * at))], [0])
    prove_equal([2 * sp.Sum(1, (t, 0, n - 1)) - 1], [2 * n - 1])


@any_bias_by_rope.claim("A feature of the constant that does not turn is one of them.")
def without_a_still_feature():
    """cos(x w_t) and sin(x w_t) alone sum to 0 at offsets other than 0 (N = 3, x = 1): 2 cos(2 pi / 3) = 0."""
    key = np.concatenate([symbols("q", 1, 1) * 0 + 1, symbols("q", 1, 1) * 0], axis=1)
    prove_equal([2 * turned(key, array([2 * sp.pi / 3]))[0, 0]], [0])


@theorem(
    of=[rope.tables],
    sizes="all odd n",
    argument="two even functions with the same second differences on |o| < N and one value in common are equal there",
)
def the_triangle_wave():
    """N/2 - |o| = sum_(r = 1 .. N/2) cos(o t_r) / (N sin^2(t_r / 2)) for |o| <= N = n - 1, t_r = (2r - 1) pi / N: the absolute
    form of ALiBi and a constant. The second difference of cos(o t) is -4 sin^2(t/2) cos(o t); sum_r cos(o t_r), which is
    sin(pi o) / (2 sin(pi o / N)), is 0 but at o = 0, where it is N/2 and the second difference -2; at o = N/2 every cosine is
    0."""
    o, t, y = symbol("o"), symbol("t"), symbol("y")
    before, here, after = rope.tables(array([o - 1, o, o + 1]), array([t]))[0][:, 0]
    prove_equal([after - 2 * here + before], [-4 * np.sin(t / 2) ** 2 * here])
    r, x, n = sp.Symbol("r", integer=True, nonnegative=True), symbol("x", integer=True), sp.Symbol("N", positive=True)
    term = array(r)[()]
    prove_induction(2 * np.sin(y) * np.cos((2 * term + 1) * y), np.sin(2 * term * y), r)
    prove_equal([sp.sin(sp.simplify(2 * (n / 2) * (sp.pi * x.e / n)))], [0])
    prove_equal([sp.cos(sp.simplify((n / 2) * (2 * r - 1) * sp.pi / n)).rewrite(sp.sin).simplify()], [0])


@the_triangle_wave.control
def second_differences_of_a_wave_are_its_own():
    """The second difference of cos(o t) is -t^2 cos(o t), as for derivatives."""
    o, t = symbol("o"), symbol("t")
    before, here, after = rope.tables(array([o - 1, o, o + 1]), array([t]))[0][:, 0]
    prove_equal([after - 2 * here + before], [-(t**2) * here])


@example(of=[rope.rotate, rope.tables], sizes="n = 3, 5, 9, 33, 129")
def absolute_alibi_is_a_rotation():
    """(n - 1)/2 - |j - i|, absolute ALiBi and a constant, is a score of n - 1 constant features that turn on n tokens."""
    for n in (3, 5, 9, 33, 129):
        distance = abs(offsets.offsets(np.arange(n), np.arange(n)))
        off = abs(wave(n) - ((n - 1) / 2 - distance)).max()
        prove_that(off < 1e-12 * n * n, f"n = {n}: within {off:.1g}")


@absolute_alibi_is_a_rotation.control
def with_a_pair_less():
    """One pair less is enough (n = 9)."""
    off = np.ptp(wave(9, terms=3) + abs(offsets.offsets(np.arange(9), np.arange(9))))
    prove_that(off < 1e-9, counterexample=f"n = 9, 3 pairs: the wave is off the distance by {off:.4f}, expected 0")


def offsets_reached(n, pairs, passing):
    """The rank of the functions of the 2n - 1 offsets of n tokens that rotated and unrotated constant features give."""
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
        cos, sin = rope.tables(np.arange(n), rope.frequencies(2, 8.0))
        turned = [f(np.arange(n))[:, None] for f in (np.cos, np.sin)]
        prove_that(np.array_equal([cos, sin], turned), "the first pair turns by 1")
        prove_that(offsets_reached(n, n - 1, 1) == 2 * n - 1, f"n = {n}")


@width_of_an_arbitrary_bias.control
def width_without_the_passing_feature():
    """2n - 2 features that turn are enough."""
    rank = offsets_reached(4, 3, 0)
    prove_that(rank == 7, counterexample=f"n = 4 with 6 features: the rank is {rank}, expected 7")
