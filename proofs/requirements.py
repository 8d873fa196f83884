"""Requirements of an encoding (`proofs.absolute.index`), decided for grids of patches and for encodings at the scores."""

import numpy as np
import sympy as sp

from posref.absolute import resizing, sinusoidal_2d
from posref.relative import cope, decomposed, fire, forgetting, kerple, sandwich, stick_breaking, swin
from posref.rotary import generators, path
from proofs.absolute.index import answers
from proofs.kit import *

ANSWERS = answers("""
2-D sinusoid | absolute.sinusoidal_2d | yes | yes | yes: since w_0 = 1 | yes: at most 1
resized table | absolute.resizing | no: another size reads between other rows | yes | depends: on the rows |
    depends: on the rows, and cubics go beyond them
RoPE-Mixed | rotary.generators | yes | no: it rotates the word | depends: with w = 0 all positions are equal |
    yes: lengths are kept
PaTH | rotary.path | yes | no: reflections of the tokens in between | depends: with b = 0 all positions are equal |
    yes: no step makes a vector longer, 0 <= b <= 2
KERPLE | relative.kerple | yes | yes | no: offsets o and -o are equal | no: it grows with the distance
FIRE | relative.fire | yes: but the position of the query enters | yes | no: offsets o and -o are equal |
    depends: on f between 0 and 1
Sandwich | relative.sandwich | yes | yes | no: offsets o and -o are equal | yes: at most 2 slopes per pair
FoX | relative.forgetting | yes | no: gates of the tokens in between | depends: gates of 1 forget nothing |
    no: it grows with the distance
CoPE | relative.cope | yes | no: gates of query and keys | depends: closed gates count nothing |
    depends: on the query and the rows
stick-breaking | relative.stick_breaking | yes | no: it is made of scores alone | depends: two keys can have equal weights |
    yes: weights sum to 1 at most
Swin | relative.swin | yes: within a window | yes | depends: on the table | depends: on the table
decomposed | relative.decomposed | yes: while the table is not resized | no: the query meets the rows |
    depends: on the rows | depends: on the query and the rows
""")

OF_TOKENS = [
    sinusoidal_2d.encode,
    generators.planes,
    path.scores,
    kerple.bias,
    fire.progress,
    sandwich.bias,
    forgetting.bias,
    stick_breaking.weights,
    swin.bias,
    decomposed.rows,
    decomposed.bias,
]
OF_PLACES = {
    "2-D sinusoid": sinusoidal_2d.encode,
    "resized table": resizing.resize,
    "KERPLE": kerple.bias,
    "FIRE": fire.progress,
    "Sandwich": sandwich.bias,
    "Swin": swin.bias,
}
WORDS = {"x", "q", "k", "v", "scores", "gates", "log_gates"}  # arguments that come from the words
C, P, A = symbol("c", positive=True), symbols("p", 1, positive=True), symbols("a", 1, positive=True)
WINDOW, WIDE = np.array([*np.ndindex(3, 3)]), symbols("T", 25, 1)
QUARTERS = [Scalar(sp.Rational(k % 3 + 1, 4)) for k in range(81)]
ODDS = array([sp.log(k % 3 + 1) for k in range(81)]).reshape(9, 9)  # whose sigmoids are 1/2, 2/3, 3/4


def each(call):
    """The result of a call whose arguments have only one path."""
    ((_, result),) = all_paths(call)
    return result


def square(n):
    return decomposed.rows(WINDOW[:n, 0], WINDOW[:n, 0], query_size=3, key_size=3)


def of_tokens(n):
    """{name: array}: the encodings of the first n of nine tokens, or of their pairs."""
    at, seen, x, w = np.arange(n), np.tri(n, dtype=bool), symbols("x", 9, 2)[:n], symbols("w", 2, 1)
    return {
        "2-D sinusoid": sinusoidal_2d.encode(x, w[0], convention="mae"),
        "RoPE-Mixed": generators.exponential(x, generators.planes(w, layout="half"), terms=1, halvings=1),
        "PaTH": seen * path.scores(x, x, w.T[np.zeros(n, int)], symbols("b", 9)[:n], scale=1),
        "KERPLE": each(lambda: kerple.bias(at, at, P, A, form="log")),
        "FIRE": each(lambda: fire.progress(at, at, c=C, threshold=3, eps=0)),
        "Sandwich": sandwich.bias(at, at, w[0], A),
        "FoX": forgetting.bias(symbols("g", 1, 9)[:, :n], form="difference"),
        "CoPE": each(lambda: cope.positions(np.reshape(QUARTERS, (9, 9))[:n, :n] * seen, rows=6)),
        "stick-breaking": each(lambda: stick_breaking.weights(ODDS[:n, :n], seen)),
        "Swin": swin.bias(swin.rows(WINDOW[:n], height=3, width=3), WIDE),
        "decomposed": decomposed.bias(x, *symbols("R", 2, 5, 2), square(n), square(n)),
    }


@theorem(
    of=[*OF_TOKENS, generators.exponential, cope.positions, swin.rows, resizing.weights, resizing.resize],
    sizes="4 and 9 tokens; a table of 2 rows",
    as_written="runs",
)
def length_independent():
    """What 4 tokens have, or their pairs, does not change when 5 more follow; FIRE divides by the query's place, not by the
    length. The resized table is the exception: place 1 of 2 is a row, place 1 of 3 the mean of that and the one before."""
    short, long = of_tokens(4), of_tokens(9)
    for name, rows in short.items():
        pairs = name.startswith(("2-D", "RoPE"))
        prove_equal(rows.ravel(), (long[name][:4] if pairs else long[name][..., :4, :4]).ravel())
        premise(ANSWERS[name][1].startswith("yes"), "the others are listed as independent of the length")
    table = symbols("t", 1, 2, 1)
    for new, stated in ((2, table[0, 1]), (3, (table[0, 0] + table[0, 1]) / 2)):
        prove_equal(resizing.resize(table, 1, new, convention="vilt")[0, 1], stated, mention=table[0, 1])


@length_independent.claim("Its rows are read between the old ones, and where depends on how many there are.")
def a_resized_table_stays():
    """A place keeps its row when a table of patches is resized."""
    prove_equal(*(resizing.weights(2, new, convention="vilt")[1] for new in (2, 3)))


@theorem(
    of=[f for f in OF_TOKENS if f not in OF_PLACES.values()] + [generators.exponential, cope.positions, resizing.resize],
    sizes="two and three tokens, all words; gates of CoPE are 1/4, 1/2, 3/4",
)
def content_independent():
    """KERPLE, FIRE, Sandwich, Swin, a resized table and the 2-D sinusoid take positions and parameters, and no word. The query
    meets the rows of decomposed positions: the term is linear in it and 0 for 0, as the turn of RoPE-Mixed is, which holds a
    coordinate and a parameter. The weights of stick-breaking are those of the scores; FoX adds a gate of the query, CoPE counts
    one of the pair, PaTH reflects the key."""
    for name, function in OF_PLACES.items():
        premise(
            (ANSWERS[name][2] == "yes") and not WORDS & function.contract.arguments.keys(),
            "these six functions take no features of tokens",
        )
    q, y, tables, at = symbols("q", 9, 2), symbols("y", 9, 2), symbols("R", 2, 5, 2), square(9)
    term = lambda q: decomposed.bias(q, *tables, at, at).ravel()
    prove_equal(term(C * q + y), C * term(q) + term(y), mention=[q[0, 0]])
    prove_equal(term(0 * q), [0] * 81)
    x, w = symbols("x", 1), symbols("w", 1, 1)
    turn, angle = generators.exponential(x, generators.planes(w, layout="half"), terms=1, halvings=1), x[0] * w[0, 0]
    prove_equal(turn.ravel(), [1 - angle**2 / 4, -angle, angle, 1 - angle**2 / 4], mention=[w[0, 0]])
    prove_equal(turn @ (C * q[0] + y[0]), C * (turn @ q[0]) + turn @ y[0], mention=[q[0, 0]])
    g = symbols("g", 1, 3)
    prove_equal(forgetting.bias(g, form="difference")[0, 1, :1], [g[0, 1]], mention=[g[0, 1]])
    for gate in QUARTERS[:3]:
        prove_equal(each(lambda gate=gate: cope.positions(array([[gate]]), rows=9)), [[gate]])
    table = symbols("t", 2, 2, 1)
    prove_equal(resizing.resize(table, 2, 2, convention="vilt").ravel(), table.ravel(), mention=[table[0, 0, 0]])
    w, b = symbols("v", 2, 2), symbols("b", 2)
    missing = path.scores(q[:2], y[:2], w, 0 * b, scale=1) - path.scores(q[:2], y[:2], w, b, scale=1)
    prove_equal([missing[1, 0]], [b[1] * (q[1] @ w[1]) * (w[1] @ y[0])], mention=[*w[1], b[1]])
    z = symbols("z", 1, 1)
    for _, taken in all_paths(lambda: stick_breaking.weights(z, np.ones((1, 1), dtype=bool))):
        prove_equal(taken[0], [1 / (1 + sp.exp(-z[0, 0].e))], mention=[z[0, 0]])


@content_independent.claim("The gates belong to the words.")
def fox_is_a_bias_of_positions():
    """FoX adds one number to all texts."""
    prove_equal(*(forgetting.bias(symbols(name, 1, 2), form="difference")[0, 1, :1] for name in "gf"))


@theorem(
    of=[*OF_TOKENS, generators.exponential, cope.positions, swin.rows, resizing.resize],
    sizes="all integer places; witnesses for the rest",
    argument="cos(a - b) = 1 makes a - b a multiple of 2 pi, which is irrational, so a = b for integers",
)
def unique():
    """2-D sinusoid: the squared distance of two patches is 4 - 2 cos(y - y') - 2 cos(x - x') in the pairs with w = 1. KERPLE,
    FIRE and Sandwich have one number for an offset and its reverse. A table gives what its rows are, in Swin one for each
    vector of offsets. The others have witnesses of two tokens that are alike."""
    p, one = symbols("p", 2, 2), array([1])
    d = np.subtract(*sinusoidal_2d.encode(p, one, convention="mae"))
    prove_equal([d @ d], [4 - 2 * sum(sp.cos((a - b).e) for a, b in zip(*p, strict=True))], mention=[*p[0], *p[1]])
    both, w = np.arange(3), symbols("w", 1)
    for side in (
        each(lambda: kerple.bias(both[1:2], both, P, A, form="log"))[0, 0],
        each(lambda: kerple.bias(both[1:2], both, 1 + 0 * P, A, form="power"))[0, 0],
        each(lambda: fire.progress(both[1:2], both, c=C, threshold=3, eps=0))[0],
        sandwich.bias(both[1:2], both, w, A)[0, 0],
    ):
        prove_equal([side[0]], [side[2]], mention=[])
    between = swin.rows(WINDOW, height=3, width=3)
    prove_that(len(set(between.ravel())) == 25, "25 vectors of offsets have 25 rows")
    prove_equal(swin.bias(between, WIDE)[0, 0], WIDE[between[0], 0], mention=[WIDE[between[0, 8], 0]])
    table = symbols("t", 2, 2, 1)
    prove_equal(resizing.resize(table, 2, 2, convention="vilt").ravel(), table.ravel(), mention=[table[0, 0, 0]])
    prove_equal(
        *generators.exponential(
            symbols("x", 2, 1), generators.planes(0 * symbols("w", 1, 1), layout="half"), terms=2, halvings=1
        )
    )
    q, k = symbols("q", 3, 2), symbols("k", 1, 2)[[0, 0, 0]]
    last = path.scores(q, k, symbols("v", 3, 2), np.zeros(3, int), scale=1)[2]
    prove_equal(last[:2], last[1:], mention=[q[2, 0]])
    prove_equal(forgetting.bias(np.zeros((1, 3), int), form="difference").ravel(), [0] * 9)
    prove_equal(each(lambda: cope.positions(np.zeros((1, 3), int), rows=3)).ravel(), [0] * 3)
    half = array([[sp.log(1), -sp.log(2)]])  # the nearer key takes 1/3, the other half of 2/3
    prove_equal(each(lambda: stick_breaking.weights(half, np.ones((1, 2), dtype=bool)))[0], [sp.Rational(1, 3)] * 2)
    equal = decomposed.bias(symbols("q", 9, 2), *symbols("R", 2, 1, 2)[:, [0] * 5], square(9), square(9))
    prove_equal(equal[:, 0], equal[:, 8])


@unique.claim("The distance enters, not the offset: causal masks alone distinguish the sides.")
def kerple_tells_the_sides_apart():
    """KERPLE's bias has other numbers for what comes before and after."""
    side = each(lambda: kerple.bias(np.array([1]), np.arange(3), P, A, form="log"))[0, 0]
    prove_that(
        expression(side[0] - side[2]) != 0,
        counterexample=f"the key before and the key after the query at 1 both have {side[0]}",
    )


@theorem(
    of=[*OF_TOKENS, cope.interpolate, resizing.weights, stick_breaking.remainder],
    sizes="all distances, words and tables; one step of PaTH, d = 2",
    argument="a sum of squares bounds its terms; exp of a skew matrix keeps lengths; cos >= -1; ln(1 + c t) grows with t",
)
def small():
    """The pairs of the 2-D sinusoid have length 1. RoPE-Mixed keeps lengths, the exponential of a skew matrix being orthogonal;
    a step of PaTH with |w| = 1 shortens the square of a key by b (2 - b) (w . k)^2. KERPLE adds -a t at p = 1 and FoX
    t ln f for one f: beyond any bound. Sandwich adds slope sum (cos - 1); FIRE's x is a share; three times CoPE's, Swin's and
    decomposed rows make three times the term. Weights of stick-breaking and what they leave sum to 1. Resized rows (-1, 1)
    reach more than 1 by a cubic."""
    x, w, t = symbols("x", 1, 2), symbols("w", 1), symbol("t", integer=True, positive=True)
    p = sinusoidal_2d.encode(x, w, convention="mae")[0] ** 2
    prove_equal([p[0] + p[1], p[2] + p[3]], [1, 1])
    slope = generators.planes(w[None], layout="half")[0]
    prove_equal((slope + slope.T).ravel(), [0] * 4)
    k, v, b = symbols("k", 2), symbols("v", 2), symbol("b")
    twice = lambda x: np.stack([x, x])
    after = array([path.scores(twice(q), twice(k), twice(v), array([b, b]), scale=1)[1, 0] for q in np.eye(2, dtype=int)])
    prove_equal([k @ k - after @ after], [b * (2 - b * (v @ v)) * (v @ k) ** 2], mention=[b])
    line = each(lambda: kerple.bias(array([t]), array([0]), 1 + 0 * P, A, form="power"))
    prove_equal(line[0, 0], [-A[0] * t], mention=[t])
    f = symbol("f")
    prove_equal(forgetting.bias(array([[f, f, f, f]]), form="difference")[0, 3], [3 * f, 2 * f, f, 0], mention=[f])
    prove_equal(sandwich.bias(array([t]), array([0]), w, A)[0, 0], [A[0].e * (sp.cos(t.e * w[0].e) - 1)], mention=[t])
    share = each(lambda: fire.progress(np.array([5]), np.array([0, 5]), c=C, threshold=3, eps=0))[0]
    prove_equal(share, [1, 0])
    for scaled, plain in (
        (cope.interpolate(3 * WIDE[:4].T, np.array([[1, 2]])), cope.interpolate(WIDE[:4].T, np.array([[1, 2]]))),
        (swin.bias(np.array([[3]]), 3 * WIDE), swin.bias(np.array([[3]]), WIDE)),
        *([decomposed.bias(s * symbols("q", 9, 2), *symbols("R", 2, 5, 2), square(9), square(9)) for s in (3, 1)],),
    ):
        prove_equal(scaled.ravel(), 3 * plain.ravel(), mention=[])
    prove_equal(cope.interpolate(WIDE[:4].T, np.array([[3]]))[0], [WIDE[3, 0]])  # the last row, where the count ends
    z, seen = symbols("z", 1, 2), np.ones((1, 2), dtype=bool)
    for _, (taken, left) in all_paths(lambda: (stick_breaking.weights(z, seen), stick_breaking.remainder(z, seen))):
        prove_equal([taken.sum() + left[0]], [1])
    beyond = resizing.weights(2, 4, convention="transformers")[3] @ np.array([-1, 1])
    prove_that(bool(1.2 < beyond < 1.22), "the last place is 1.21")


@small.claim("A cubic goes beyond the numbers that it is drawn through.")
def resized_rows_are_as_small_as_the_old():
    """Rows within [-1, 1] are resized to rows within [-1, 1]."""
    rows = resizing.weights(2, 4, convention="transformers") @ np.array([-1, 1])
    prove_that(
        bool(np.abs(rows).max() <= 1), counterexample=f"rows -1, 1 resized to 4 rows: {rows.tolist()}, expected at most 1"
    )


@small.control
def fox_is_bounded():
    """A penalty is at most that of one gate."""
    f = symbol("f")
    prove_equal(forgetting.bias(array([[f, f, f]]), form="difference")[0, 2, :1], [f])
