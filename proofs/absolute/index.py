"""Index: the position itself, as a number; and the requirements of an encoding, decided for each absolute encoding."""

# Over budget: the table of requirements of all absolute encodings

import re

import numpy as np
import sympy as sp

from posref import offsets
from posref.absolute import complex_order, floater, hierarchical, index, learned, merge, recurrent, sinusoidal
from posref.relative import shaw, t5
from posref.rotary import rope
from proofs.kit import Scalar, array, entries, filled, premise, prove_equal, prove_that, size, sized, symbol, symbols, theorem
from proofs.kit import index as cell

B, N, M, D, H = size("b"), size("n"), size("m"), size("d"), size("h")


def definition(position, length=None, denominator="length"):
    """i, or i / length, or i / (length - 1)."""
    return position if length is None else position / (length if denominator == "length" else length - 1)


# what it is


@theorem(of=[index.encode, index.encode_normalized], sizes="all batches, n, positions, lengths")
def pinned():
    """The one feature is i, i / length or i / (length - 1)."""
    m = sized("m", B, N)
    b, i = cell(B), cell(N)
    prove_equal([index.encode(m).at(b, i, 0)], [definition(m.at(b, i))], mention=[m.at(b, i)])
    prove_that(index.encode(m).shape == (B, N, 1), "one feature, on an axis of its own")
    for denominator in index.DENOMINATORS:
        got = index.encode_normalized(m, M + 1, denominator=denominator)
        prove_equal([got.at(b, i, 0)], [definition(m.at(b, i), M + 1, denominator)], mention=[m.at(b, i), M])


@pinned.claim("It is 1 with the denominator length - 1, and 1 - 1/n with length.")
def last_position_is_one():
    """The last of n tokens has the value 1 with either denominator."""
    for denominator in index.DENOMINATORS:
        prove_equal(index.encode_normalized(array([4]), 5, denominator=denominator), [[1]])


# the requirements of an encoding, and which encodings fulfil them: length independent, content independent, unique, small


def answers(table):
    """Rows `encoding | system | its answers`, as a dictionary; an indented line continues the line before it."""
    rows = re.sub(r"\n +", " ", table.strip()).split("\n")
    return {name: tuple(rest) for name, *rest in (row.split(" | ") for row in rows)}


ANSWERS = answers("""
index | absolute.index | yes | yes | yes | no: i itself
normalized index | absolute.index | no: i / n changes with n | yes | depends: 1 / 2 = 2 / 4 in another text | yes: at most 1
sinusoid | absolute.sinusoidal | yes | yes | yes: since w_0 = 1 | yes: at most 1
learned table | absolute.learned | yes: up to its rows | yes | depends: on the rows | depends: on the rows
stretched table | absolute.hierarchical | yes: up to n^2 | yes | depends: not for every table of distinct rows |
    depends: at most 1 + 2 abs(alpha / (1 - alpha)) times the table
recurrence | absolute.recurrent | yes | yes | depends: p -> -p repeats after 2 steps | depends: p -> 2p grows
FLOATER | absolute.floater | yes | yes | depends: with a field of 0 all positions are equal |
    depends: with a field of 1 it grows
Complex Order | absolute.complex_order | yes | no: waves of the word | depends: with frequency 0 all positions are equal |
    yes: as large as at position 0
Shaw et al. | relative.shaw | yes | yes | no: all offsets beyond k share a row | depends: on the rows
T5 bias | relative.t5 | yes | yes | no: -8 and -9 share a bucket | depends: on the table
RoPE | rotary.rope | yes | no: it rotates the word, and a word of zeros stays 0 | yes: since w_0 = 1 | yes: lengths are kept
""")

TABLE, LONG, SHORT = symbols("P", 9, 2), np.arange(9), np.arange(4)
WAVE = [symbols(name, 3) for name in ("r", "w", "theta")]
ENCODINGS = (index, sinusoidal, learned, hierarchical, recurrent, floater, complex_order)
ABSOLUTE = [*(system.encode for system in ENCODINGS), shaw.embed, t5.bias, rope.rotate, rope.tables]


def anything(p):
    """A free function as step."""
    return array([sp.Function("f", real=True)(*(x.e for x in p)), sp.Function("g", real=True)(*(x.e for x in p))])


def field(t, p):
    """A free function of time as field."""
    return array([sp.Function("f", real=True)(sp.expand(getattr(t, "e", t)))] * len(p))


def from_tables(n):
    """{name: rows} of n tokens, for encodings that read tables or compute one row after the other."""
    at = np.arange(n)
    relative = offsets.offsets(at, at)
    return {
        "learned table": learned.encode(at, TABLE),
        "stretched table": hierarchical.encode(at, TABLE[:3], alpha=Scalar(sp.Rational(2, 5))),
        "recurrence": recurrent.encode(anything, TABLE[0], min(n, 5)),
        "FLOATER": floater.encode(field, TABLE[0], symbols("t", 9)[:n], substeps=2),
        "Shaw et al.": shaw.embed(TABLE[:5], relative),
        "T5 bias": np.moveaxis(t5.bias(at, at, TABLE[:8], max_distance=12, bidirectional=True), 0, -1),
    }


@theorem(of=[*ABSOLUTE, index.encode_normalized], sizes="all n where positions are free; 4 and 9 tokens of tables and steps")
def length_independent():
    """The vectors of n tokens (the pairs of n tokens, where it is relative) do not change when k more tokens follow. The
    normalized index is the exception: the difference is i k / (n (n + k)), or by i k / ((n - 1) (n + k - 1))."""
    m, w, x = sized("m", N + M), sized("w", H), sized("x", N + M, 2 * H)
    waves = [sized(name, N + M, D) for name in ("r", "w", "theta")]
    both = lambda encode: entries(None, encode(slice(None))[:N], encode(slice(0, N)))
    prove_equal(*both(lambda part: index.encode(m[part])))
    prove_equal(*both(lambda part: complex_order.encode(m[part], *(wave[part] for wave in waves))))
    i, t = cell(N), cell(H)
    for turn in (
        lambda part: sinusoidal.encode(m[part], w, layout="half"),
        lambda part: rope.rotate(x[part], *rope.tables(m[part], w), layout="half"),
    ):
        for column in (t, t + H):
            prove_equal([turn(slice(None)).at(i, column)], [turn(slice(0, N)).at(i, column)], mention=[m.at(i)])
    short, long = from_tables(len(SHORT)), from_tables(len(LONG))
    for name, rows in short.items():
        relative = ANSWERS[name][0].startswith("relative")
        prove_equal(rows, long[name][:4, :4] if relative else long[name][:4])
    for denominator, less in (("length", 0), ("length - 1", 1)):
        one, more = (index.encode_normalized(m, n + 1, denominator=denominator).at(i, 0) for n in (N, N + M))
        n = N + 1 - less
        prove_equal([one - more], [m.at(i) * M / (n * (n + M))], mention=[m.at(i), M])


@length_independent.claim("It falls when tokens follow: i / n becomes i / (n + k).")
def normalized_index_is_length_independent():
    """i / n does not change when tokens follow."""
    prove_equal(*(index.encode_normalized(array([1]), n, denominator="length") for n in (2, 3)))


@theorem(
    of=[*ABSOLUTE, merge.add, merge.multiply],
    sizes="all n, d for merging and RoPE; 4 tokens, 1 to 3 features and tables of 3, 5, 8 or 9 rows for the rest",
)
def content_independent():
    """What x + p adds to a word is p, for every word; the same holds of what Shaw et al. add to keys and T5 to scores. It is
    not so where the encoding belongs to the word (Complex Order), for products, which add x (p - 1) or x p, and for RoPE, which
    rotates the word: it is linear in it and leaves 0 alone."""
    x, p = sized("x", N, D), sized("p", N, D)
    prove_equal(*entries(None, merge.add(x, p) - x, p))
    prove_equal(*entries(None, merge.multiply(x, p, convention="paper") - x, x * (p - 1)))
    prove_equal(*entries(None, merge.multiply(x, p, convention="released") - x, x * p))
    m, w = symbols("m", 4), symbols("w", 1)
    additive = {"index": index.encode(m), "sinusoid": sinusoidal.encode(m, w, layout="half"), **from_tables(4)}
    for name, rows in additive.items():
        word = symbols("word", *rows.shape)
        prove_equal(merge.add(word, rows) - word, rows)
        premise(ANSWERS[name][2] == "yes", "what adds is listed as content independent")
    here, (r, w, theta), u = array([symbol("m")]), WAVE, symbols("u", 3)
    gap = complex_order.encode(here, r, w, theta) - complex_order.encode(here, r, u, theta)
    waves = [
        [a.e * (sp.exp(sp.I * (b.e * here[0].e + e.e)) - sp.exp(sp.I * (c.e * here[0].e + e.e)))]
        for a, b, c, e in zip(r, w, u, theta, strict=True)
    ]
    prove_equal(gap.T, waves, mention=[*w, *u])
    x, y, c = sized("x", N, 2 * H), sized("y", N, 2 * H), symbol("c")
    tables = rope.tables(sized("m", N), sized("w", H))
    turn = lambda x: rope.rotate(x, *tables, layout="half")
    prove_equal(*entries("half", turn(c * x + y), c * turn(x) + turn(y)))
    prove_equal(*entries("half", turn(0 * x), 0 * x))


@content_independent.claim("RoPE turns a word, so what it adds depends on the word.")
def rope_adds_one_vector_to_all_words():
    """R(m) x - x is the same for the words x and y."""
    x, y, tables = symbols("x", 1, 2), symbols("y", 1, 2), rope.tables(symbols("m", 1), symbols("w", 1))
    prove_equal(*(rope.rotate(word, *tables, layout="half") - word for word in (x, y)))


@content_independent.claim("Each word has frequencies of its own in Complex Order.")
def complex_order_is_shared():
    """Two words at one position have one encoding."""
    here, (r, w, theta) = array([symbol("m")]), WAVE
    prove_equal(complex_order.encode(here, r, w, theta), complex_order.encode(here, r, symbols("u", 3), theta))


@theorem(
    of=[*ABSOLUTE, index.encode_normalized],
    sizes="all integer positions; witnesses for the rest",
    argument="cos(a - b) = 1 makes a - b a multiple of 2 pi, which is irrational, so a = b for integers",
)
def unique():
    """Index: p_a - p_b = a - b, and over n within one length. Sinusoid, RoPE and a word with a frequency of 1: the squared
    distance is 2 - 2 cos(a - b) in the pair with w = 1, and never 0 for integers a != b, pi being irrational. A table gives
    what its rows are. The others have witnesses of two positions, or offsets, with one vector."""
    a, b = symbol("a"), symbol("b")
    both, one, gap = array([a, b]), array([1]), lambda p: (p[0] - p[1]) @ np.conj(p[0] - p[1])
    prove_equal([index.encode(both)[0] - index.encode(both)[1]], [[a - b]], mention=[a, b])
    within = index.encode_normalized(both, N, denominator="length")
    prove_equal(within[0] - within[1], [(a.e - b.e) / N], mention=[a, b])
    prove_equal(*(index.encode_normalized(array([k]), n, denominator="length") for k, n in ((1, 2), (2, 4))))
    on_circle = (
        sinusoidal.encode(both, one, layout="half"),
        rope.rotate(array([[1, 0], [1, 0]]), *rope.tables(both, one), layout="half"),
        complex_order.encode(both, one, one, 0 * one),
    )
    for p in on_circle:
        prove_equal([gap(p)], [2 - 2 * sp.cos(a.e - b.e)], mention=[a, b])
    premise(sp.pi.is_irrational, "pi is irrational")
    prove_equal(learned.encode(np.array([3]), TABLE) - learned.encode(np.array([5]), TABLE), TABLE[3:4] - TABLE[5:6])
    collide = lambda rows: prove_equal(rows[0], rows[1])
    collide(learned.encode(np.array([0, 1]), np.array([[3, 4], [3, 4]])))
    collide(hierarchical.encode(np.array([1, 6]), array([[0], [1], [2]]), alpha=Scalar(sp.Rational(1, 3))))
    collide(recurrent.encode(lambda p: -p, TABLE[0], 3)[::2])
    collide(floater.encode(lambda t, p: 0 * p, TABLE[0], both, substeps=2))
    collide(complex_order.encode(both, one, 0 * one, one))
    collide(shaw.embed(TABLE[:5], np.array([[2, 3]]))[0])
    collide(t5.bias(np.array([9]), np.array([1, 0]), symbols("B", 32, 1), bidirectional=True)[0, 0])


@unique.claim("Offsets beyond k are one.")
def shaw_tells_all_offsets_apart():
    """The offsets 2 and 3 have two vectors in a table with k = 2."""
    two, three = shaw.embed(np.arange(5)[:, None], np.array([[2, 3]])).ravel().tolist()
    prove_that(two != three, counterexample=f"k = 2: the offset 2 has row {two}, the offset 3 has row {three}")


@unique.claim("1/2 and 2/4 have one value: lengths and positions are confused.")
def normalized_index_is_unique():
    """i / n tells all pairs of a position and a length apart."""
    values = {index.encode_normalized(array([i]), n, denominator="length")[0, 0].e for n in (2, 4) for i in range(n)}
    prove_equal([len(values)], [6])


@theorem(
    of=[*ABSOLUTE, index.encode_normalized, floater.step],
    sizes="all positions, n, d; witnesses for the rest",
    argument="0 <= i <= n - 1 bounds the normalized index; a sum of squares bounds its terms",
)
def small():
    """Bounded for all positions: the normalized index by 1, the sinusoid by 1 since its pairs have length 1, Complex Order by
    the word, RoPE by the word, whose length it keeps. The index is not, and a table is as large as its rows are: scaling it
    scales the encoding. A stretched one is p_j + alpha / (1 - alpha) (p_i - p_0), which makes 7/3 of (-1, 1) at alpha = 2/5.
    Recurrences and fields may grow: by doubling to 2^k after k = 0 .. 4 steps, and with t."""
    i, t, c = cell(N), cell(H), symbol("c")
    for denominator, length in (("length", N), ("length - 1", N + 1)):
        value = index.encode_normalized(filled((1,), i), length, denominator=denominator).at(0, 0)
        prove_equal([value * N], [i])
    prove_equal([index.encode(array([c + 1]))], [[[c.e + 1]]], mention=[c])  # beyond any bound c
    m, w, x = sized("m", N), sized("w", H), sized("x", N, 2 * H)
    p, y = sinusoidal.encode(m, w, layout="half"), rope.rotate(x, *rope.tables(m, w), layout="half")
    length = lambda p: p.at(i, t) ** 2 + p.at(i, t + H) ** 2
    prove_equal([length(p), length(y)], [1, length(x)])
    g = complex_order.encode(symbols("m", 1), *WAVE)
    prove_equal((g * np.conj(g))[0], WAVE[0] ** 2)
    before, after = ({"table": TABLE * k, **read(TABLE * k)} for k in (1, c))
    for name, rows in before.items():
        prove_equal(after[name], c * rows)
    alpha = 1 + symbol("a", nonzero=True)
    q = hierarchical.encode(np.array([7]), TABLE[:3], alpha=alpha)[0]
    prove_equal(q, TABLE[1] + alpha / (1 - alpha) * (TABLE[2] - TABLE[0]))
    reached = hierarchical.encode(np.array([3]), array([[-1], [1]]), alpha=Scalar(sp.Rational(2, 5)))
    prove_equal(reached, [[1 + 2 * sp.Rational(2, 5) / sp.Rational(3, 5)]])
    prove_equal(recurrent.encode(lambda p: 2 * p, array([1]), 5)[:, 0], [2**k for k in range(5)])
    times = symbols("t", 3)
    grown = floater.encode(lambda t, p: 0 * p + 1, array([0]), times, substeps=2)[:, 0]
    prove_equal(grown, times - times[0], mention=times[1:])


def read(table):
    """What tables are read for, by a table of (9, 2)."""
    return {
        "learned": learned.encode(LONG[2:5], table),
        "stretched": hierarchical.encode(LONG[2:5], table[:3], alpha=Scalar(sp.Rational(2, 5))),
        "shaw": shaw.embed(table[:5], np.array([[-3, 0, 1]])),
        "t5": t5.bias(LONG[:2], LONG[:3], table[:8], max_distance=12, bidirectional=True),
    }


@small.control
def index_is_bounded():
    """The index stays below its bound 1000."""
    largest = index.encode(np.array([999, 1001])).max()
    prove_that(bool(largest < 1000), counterexample=f"position 1001: the index is {largest}, expected less than 1000")


@small.control
def stretched_table_is_as_small_as_its_rows():
    """Rows within [-1, 1] give rows within [-1, 1]."""
    q = hierarchical.encode(np.arange(4), array([[-1], [1]]), alpha=Scalar(sp.Rational(2, 5)))
    prove_that(all(bool(abs(x.e) <= 1) for x in q[:, 0]), counterexample=f"rows -1, 1 and alpha = 2/5: the rows are {q[:, 0]}")
