"""Streaming attention, compiled: the Python source of the kernels is the specification."""

import functools
import importlib
import itertools
import types

import numpy as np
import sympy as sp

from posref import attention, shards
from posref.fast import alibi as rules
from posref.fast import attention as fast
from posref.fast import t5 as fast_t5
from posref.relative import alibi, t5
from proofs.kit import *
from proofs.kit.loops import Cells, Loop, Parts, Rows, covers
from proofs.kit.twins import Twin


def within_the_bound(given, dtype):
    """The specification in more digits, and the bound of the module; `proofs.mathematics.streaming` imports this file."""
    streaming = importlib.import_module("proofs.mathematics.streaming")
    wide = {n: x.astype(np.longdouble) if isinstance(x, np.ndarray) else x for n, x in given.items()}
    return [(attention.attend_by_offset(**wide), streaming.error_bound(**given, dtype=dtype))]


TWINS = {
    "attend_by_offset": Twin(near=within_the_bound),
    "partial_by_offset": Twin(lambda function, given: shards.finish(function(**given)), within_the_bound),
}


def source(kernel, **sizes):
    """The Python source of a kernel, which calls the Python source of other kernels; exp is exp, not its polynomial.

    `sizes` replace LANES, TILE and STRETCH.
    """
    function = kernel.py_func
    called = {name: function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__}
    uncompiled = {name: source(value, **sizes) for name, value in called.items() if hasattr(value, "py_func")}
    return types.FunctionType(function.__code__, {**function.__globals__, **uncompiled, **sizes}, function.__name__)


def zeros(*shape):
    return array(np.zeros(shape, dtype=int))


def attend(q, k, v, bias=None, *, low, high, kernel=fast._attend, divide=True, lanes=2, tile=4, shard=2, **rules):
    """The State that a kernel writes, called as `_stream` calls it: in two pieces. `rules` are row_scale, softcap and sinks.

    For few queries it is merged from shards of this many tiles of keys.
    """
    (heads, n_query, dim), width = q.shape, v.shape[2]
    factor = rules.get("row_scale", np.ones(n_query, dtype=int))[:, None]
    bias = zeros(heads, 0) if bias is None else np.concatenate([bias[:, ::-1], zeros(heads, lanes)], axis=-1)
    few = kernel is fast._attend_few
    shards_ = -(-k.shape[1] // (shard * tile)) if few else 1
    out, maximum, denominator = (
        room("o", shards_, heads, n_query, width),
        *(room(x, shards_, heads, n_query + lanes) for x in "md"),
    )
    maximum[...], denominator[...] = -(10**9) * symbol("unit", positive=True), 0
    maximum[0], denominator[0] = rules.get("sinks", maximum[0]), int("sinks" in rules)
    many = room("t", dim * lanes), room("s", (tile + 1) * lanes), room("a", (width + -width % 4) * lanes)
    rooms, states = many, (out[0], maximum[0], denominator[0], np.broadcast_to(factor, (heads, n_query, 1)), divide)
    if few:
        rooms = (room("s", heads // k.shape[0] * n_query, tile + 2),)
        q, states = (q * factor).reshape(-1, dim), (out.reshape(shards_, -1, width), maximum, denominator)
    for x in (out, *rooms):
        x[...] = 0
    for first in range(2):
        source(kernel, LANES=lanes, TILE=tile, STRETCH=tile, SHARD=shard * tile)(
            q, k, v, bias, *states, rules.get("softcap"), low, high, first, 2, *rooms
        )
    parts = (
        shards.State(m[:, :n_query, None], d[:, :n_query, None], o) for m, d, o in zip(maximum, denominator, out, strict=True)
    )
    maximum, denominator, out = functools.reduce(shards.merge, parts)
    if divide and few:
        np.divide(out, denominator, out=out, where=(denominator > 0).astype(bool))
    return shards.State(maximum, denominator, out)


KERNELS = (fast._attend, fast._attend_few)


# the step


@theorem(
    of=[fast._step, fast._multiply],
    sizes="lanes, keys, d_v = 1, 1, 1 and 2, 1, 2 and 1, 2, 2",
    argument="induction over the keys: every step adds its own to the sums of those before",
)
def step_keeps_the_sums():
    """One key of score s: denominator e^maximum grows by e^s and weight e^maximum = e^s, on every path of the maximum. The
    products with its value, whose factor is the weight of the old maximum, make accumulator e^maximum grow by e^s times the
    value. So after any keys they are the sums over the keys, whatever the maxima were."""
    sizes = ("s", 4), ("m", 1), ("d", 1), ("a", 4)
    for lanes, count, width in ((1, 1, 1), (2, 1, 2), (1, 2, 2)):

        def run(lanes=lanes, count=count, width=width):
            s, m, d, a = (room(name, size * lanes) for name, size in sizes)
            source(fast._step, LANES=lanes)(s, count, m, d)
            source(fast._multiply, LANES=lanes)(symbols("v", count, width).T, s, s[count * lanes :], a)
            return s.reshape(4, lanes), m, d, a[: width * lanes].reshape(width, lanes)

        s0, m0, d0, a0 = (room(name, size * lanes) for name, size in sizes)
        s0, a0 = s0.reshape(4, lanes), a0[: width * lanes]
        for _, (s, m, d, a) in all_paths(run):
            weights, values = np.exp(s0[:count]), symbols("v", count, width)
            prove_equal(d * np.exp(m), d0 * np.exp(m0) + weights.sum(axis=0), mention=s0[:count])
            prove_equal(a * np.exp(m), a0.reshape(width, lanes) * np.exp(m0) + values.T @ weights, mention=a0)
            prove_equal(s[:count] * np.exp(m), weights)
            prove_equal(s[count + 1 :], s0[count + 1 :])
    highest = np.array([2], dtype=object)
    source(fast._step, LANES=1)(np.array([1, 3, 0, 0], dtype=object), 3, highest, room("d", 1))
    prove_that(highest[0] == 3, "it is the maximum")


@step_keeps_the_sums.control
def the_denominator_is_not_scaled():
    """The denominator only grows, by e^(s - maximum): it need not be moved to the new maximum."""

    def run():
        s, m, d = room("s", 2), room("m", 1), room("d", 1)
        source(fast._step, LANES=1)(s, 1, m, d)
        return m, d

    for _, (maximum, denominator) in all_paths(run):
        prove_equal(denominator, symbols("d", 1) + np.exp(room("s", 2)[:1] - maximum))


@theorem(of=[fast._multiply], sizes="lanes = 4 in one panel and in two, rows = 1 .. 5, columns = 0 .. 3", as_written="kernel")
def multiply_adds_the_product():
    """sums = factor sums + a x over the columns of a, cell by cell, or a x without a factor. Where the rows are no multiple of
    four, the last is met again, in spare rows."""
    for rows, count, panel, factor in itertools.product(range(1, 6), range(4), (2, 4), (symbols("f", 0), symbols("f", 4))):
        a, x, sums = room("a", rows, count), symbols("x", 3, 4), room("s", 32)
        product = a @ x[:count] if count else zeros(rows, 4)
        before = room("s", 32)[: 4 * rows].reshape(rows, 4) * (factor if len(factor) else 0)
        source(fast._multiply, LANES=4, _panel=lambda x, lanes, panel=panel: panel)(a, x.ravel(), factor, sums)
        prove_equal(sums[: 4 * rows].reshape(rows, 4), before + product)


@multiply_adds_the_product.control
def multiply_only_adds():
    """sums += a x, whatever the factor."""
    a, x, sums = room("a", 4, 1), symbols("x", 1, 1), room("s", 4)
    source(fast._multiply, LANES=1)(a, x[0], symbols("f", 1), sums)
    prove_equal(sums, room("s", 4) + (a @ x)[:, 0])


def adjusted(after, before, softcap=None, bias=None):
    """Scores of two keys in three lanes, and the denominator, after `_adjust`."""
    s, denominator = room("s", 9), room("d", 3)
    source(fast._adjust, LANES=3)(s, 2, softcap, zeros(2, 0) if bias is None else bias, 1, 5, after, before, denominator)
    return s.reshape(3, 3), denominator


GUARD = "_adjust: if after + c > 0 or before + c < LANES:  ->  "


@theorem(
    of=[fast._adjust],
    sizes="lanes = 3, keys = 2, all bands",
    equivalent={
        "_adjust: denominator[r] += row[r] - row[r]  ->  denominator[r] -= row[r] - row[r]": "0 or NaN either way",
        **{
            GUARD + more: "asks lanes of which none is masked"
            for more in (
                "if after + c > -1 or before + c < LANES:",
                "if after + c >= 0 or before + c < LANES:",
                "if after + c > 0 or before - c < LANES:",
                "if after + c > 0 or before + c <= LANES:",
            )
        },
    },
)
def scores_pinned():
    """Key c scores s + bias[head, start - c + r] in lane r, and -infinity unless after + c <= r < before + c; the search for
    numbers that are not finite leaves the denominator as it is."""
    b = symbols("b", 2, 8)
    for after, before, bias in itertools.product(range(-5, 5), range(-4, 6), (None, b)):
        (s, denominator), s0 = adjusted(after, before, bias=bias), room("s", 9).reshape(3, 3)
        for c, r in itertools.product(range(2), range(3)):
            if after + c <= r < before + c:
                prove_equal([s[c, r]], [s0[c, r] + (0 if bias is None else bias[1, 5 - c + r])])
            else:
                prove_that(s[c, r] == -np.inf, f"lane {r} is outside")
        prove_equal(s[2], s0[2])
        prove_equal(denominator, room("d", 3))


@scores_pinned.control
def the_bias_is_read_along_the_keys():
    """The bias of key c in lane r is bias[start + c - r]."""
    b = symbols("b", 2, 8)
    prove_equal([adjusted(-9, 9, bias=b)[0][1, 0]], [room("s", 9)[3] + b[1, 6]])


@theorem(of=[fast._cap, fast._adjust], sizes="lanes = 3, keys = 2", as_written="runs")
def scores_are_capped():
    """x becomes c tanh(x / c), as `attention.cap` has it, before the bias is added."""
    x, c, b = room("x", 3), symbol("c", positive=True), symbols("b", 2, 8)
    source(fast._cap)(x, c)
    prove_equal(x, attention.cap(symbols("x", 3), softcap=c))
    prove_equal(adjusted(-9, 9, c, b)[0][0], attention.cap(room("s", 9)[:3], softcap=c) + b[1, 5:])


@scores_are_capped.control
def the_cap_is_a_clip():
    """A score below the cap stays."""
    x = room("x", 1)
    source(fast._cap)(x, symbol("c", positive=True))
    prove_equal(x, symbols("x", 1))


def extended(rule, head, offsets):
    """The biases that `_extend` writes for some offsets, one by one."""
    row = room("r", 1, len(offsets))
    for x, offset in enumerate(offsets):
        source(fast._extend)(*(part[head : head + 1] for part in rule), int(offset), row[:, x : x + 1])
    return row[0]


NEAR = "rows[h, x] = near[h, end + reach] + "
GROWS = f"_extend: {NEAR}(before[h] if offset < 0 else after[h]) * (offset - end)  ->  {NEAR}"


@theorem(
    of=[fast._extend, rules.rule, fast_t5.rule],
    sizes="offsets -9 .. 9; T5 with 8 buckets, max_distance = 5",
    equivalent={
        GROWS + "(before[h] if offset < 1 else after[h]) * (offset - end)": "at offset 0 nothing is added",
        GROWS + "(before[h] if offset <= 0 else after[h]) * (offset - end)": "likewise",
    },
)
def rules_pinned():
    """By their rules the biases are those of ALiBi, in both forms, and of T5, in both directions; row by row backwards. Beyond
    the offsets that a rule lists it goes on from the last one with its slope."""
    zero, offsets = np.array([0]), np.arange(-9, 10)
    slopes, table = symbols("m", 2), symbols("B", 8, 2)
    for head in range(2):
        for form in ("signed", "absolute"):
            expected = alibi.bias(zero, offsets, slopes, form=form)[head, 0]
            prove_equal(extended(rules.rule(slopes, form=form), head, offsets), expected, mention=slopes[head : head + 1])
        for both in (False, True):
            rule = fast_t5.rule(table, max_distance=5, bidirectional=both)
            expected = t5.bias(zero, offsets, table, max_distance=5, bidirectional=both)[head, 0]
            prove_equal(extended(rule, head, offsets), expected)
            rows = room("r", 2, 19)
            source(fast._extend)(*rule, 9, rows)
            prove_equal(rows[head], expected[::-1])
        near, before, after = rule = symbols("n", 2, 3), symbols("p", 2), symbols("a", 2)
        ends = [near[head, 0] - 2 * before[head], *near[head], near[head, 2] + 2 * after[head]]
        prove_equal(extended(rule, head, [-3, -1, 0, 1, 3]), ends)


@rules_pinned.control
def rules_end_where_they_are_near():
    """ALiBi by rule stays what it is at offset 0."""
    slopes = symbols("m", 1)
    got = extended(rules.rule(slopes, form="signed"), 0, [-1])
    prove_equal(got, extended(rules.rule(slopes, form="signed"), 0, [0]))


# any number of keys, of lanes and of tiles: loop by loop

TURNS = "the loops are run turn by turn"


def whole(names, **more):
    """Symbols for integers, with the assumptions `more`."""
    return [symbol(name, integer=True, **more) for name in names.split()]


COUNT, LANES_, KEY, LANE, FEATURE = *whole("count lanes", positive=True), *whole("c r e", nonnegative=True)


def cells(name, *shape):
    return Cells(sp.Function(name, real=True), shape)


def one_of(**indices):
    """A replacement of `range`: a loop up to one of these numbers runs for one free iteration; iterations are independent."""

    def run(*bounds):
        known = [index for number, index in indices.values() if [expression(bound) for bound in bounds] == [expression(number)]]
        prove_that(len(known) == 1, f"a turn for each of the {' or the '.join(indices)}")
        return known

    return run


T = whole("t", nonnegative=True)[0]
WIDTH, INDICES = whole("width")[0], {"r": LANE, "c": KEY, "e": FEATURE}


def stepped(number, index, **given):
    """The effect of one iteration of a loop of `_step` on free or given arrays, and the iterations of this loop."""
    names = {name: cells(name) for name in ("maximum", "denominator", "s")} | given
    names = Loop(fast._step, 0).before(names | {"count": COUNT, "LANES": LANES_, "range": one_of(lanes=(LANES_, LANE))})
    loop = Loop(fast._step, number)
    loop.turn(names, **{index: INDICES[index]})
    return names, loop.turns(names)


@theorem(
    of=[fast._step],
    sizes="all lanes, all numbers of keys",
    argument="induction over the keys: the maximum and the denominator are those of the keys so far",
    silent=TURNS,
)
def a_tile_of_any_size():
    """With M the greatest of the old maximum m and the scores of a lane, the weights become e^(s_c - M), and that of the old
    maximum e^(m - M); the denominator begins at l e^(m - M) and each turn adds the weight of its key, so that times e^M it is
    l e^m + sum_(c < count) e^(s_c)."""
    cell = lambda name, *at: sp.Function(name, real=True)(*(expression(x) for x in at))
    top, s, old = cell("maximum", LANE), cell("s", KEY * LANES_ + LANE), cell("old", LANE)
    names, turns = stepped(0, "r")
    prove_that(turns == [LANES_.e], "all lanes")
    prove_equal([names["s"][COUNT * LANES_ + LANE]], [top])
    for _, (greater, (names, turns)) in all_paths(lambda: (max(Scalar(top), Scalar(s)), stepped(1, "c"))):
        prove_equal([names["maximum"][LANE]], [greater])
        prove_that(turns == [COUNT.e], "all keys")
    names, turns = stepped(2, "c")
    prove_that(turns == [COUNT.e + 1], "all keys, and the old maximum")
    prove_equal([names["s"][KEY * LANES_ + LANE]], [sp.exp(s - top)])
    weights = Cells(lambda at: sp.exp((cell("s", at) if at != sp.expand((COUNT * LANES_ + LANE).e) else old) - top))
    names, turns = stepped(3, "r", s=weights)
    prove_that(turns == [LANES_.e], "all lanes")
    prove_equal([expression(names["denominator"][LANE]) * sp.exp(top)], [cell("denominator", LANE) * sp.exp(old)])
    names, turns = stepped(4, "c", s=weights)
    prove_that(turns == [COUNT.e], "all keys")
    prove_equal([(expression(names["denominator"][LANE]) - cell("denominator", LANE)) * sp.exp(top)], [sp.exp(s)])
    covers(fast._step)


@a_tile_of_any_size.control
def the_last_key_is_the_old_maximum():
    """The weights of all keys but the last are added."""
    _, turns = stepped(4, "c")
    prove_equal(turns, [COUNT.e - 1])


PANEL, (AT, BEGUN) = whole("panel", positive=True)[0], whole("p row", nonnegative=True)


def multiplied(names):
    """The variables in one iteration of `_multiply` over the columns of a, on every path of its rows, and its effect."""
    one_of_panel = one_of(panel=(PANEL, LANE))
    loops = outer, panels, begins, columns = [Loop(fast._multiply, *path) for path in ((0,), (0, 0), (0, 0, 0), (0, 0, 1))]
    names = outer.before(names | {"LANES": LANES_, "_panel": lambda x, lanes: PANEL, "len": lambda x: x.shape[0]})
    for _, rows in all_paths(lambda: panels.before(names)):
        inside = begins.before(rows | {"p": AT})
        begun, four = (Cells(cells("sums").contents, start=expression(names["i"] * LANES_ + AT)) for _ in range(2))
        begins.turn({**inside, "four": begun, "range": one_of_panel}, row=BEGUN)
        columns.turn({**inside, "four": four, "range": one_of_panel}, t=names["t"])
        yield [loop.turns(inside) for loop in loops], inside, begun, four


def multiplying(factor):
    """`multiplied` for arrays of any size."""
    rows, columns = whole("rows columns", positive=True)
    i, t = whole("i t", nonnegative=True)
    arrays = {"a": cells("a", rows, columns), "x": cells("x"), "sums": cells("sums"), "factor": factor}
    return rows, columns, arrays | {"i": i, "t": t}


@theorem(
    of=[fast._multiply],
    sizes="all lanes, panels, numbers of rows and columns",
    argument="induction over the columns; turns of other rows and panels write other sums",
    silent=TURNS,
)
def products_of_any_size():
    """Rows i to i + 3 of the sums, i = 0, 4, .., begin as factor_r sums_r, or 0 without a factor, and grow in turn t by
    a_it x_tr and so on in every lane, panel by panel, for all columns t of a; past the last row of a that one is met again."""
    for factor in (cells("factor", 0), cells("factor", 1)):
        rows, columns, names = multiplying(factor)
        a, x, sums, i, t = (names[name] for name in ("a", "x", "sums", "i", "t"))
        for turns, inside, begun, four in multiplied(names):
            prove_that(turns[:2] == [[0, rows.e, 4], [0, LANES_.e, PANEL.e]], "four rows, a panel")
            prove_that(turns[2:] == [[0, 4 * LANES_.e, LANES_.e], [columns.e]], "four rows of sums, all columns")
            moved = factor.shape[0] and expression(factor[AT + LANE]) * expression(sums[i * LANES_ + AT + BEGUN + LANE])
            prove_equal([begun[BEGUN + LANE]], [moved])
            for more, row in enumerate((i, inside["i1"], inside["i2"], inside["i3"])):
                at = more * LANES_ + LANE
                product = expression(a[row, t]) * expression(x[t * LANES_ + AT + LANE])
                prove_equal([four[at]], [expression(sums[i * LANES_ + AT + at]) + product])
                prove_that(expression(row) in (i.e + more, rows.e - 1), "the next row, or the last")
    covers(fast._multiply)


@products_of_any_size.control
def all_rows_are_the_first():
    """Row i + 1 of the sums grows by a_it x_tr too."""
    _, _, names = multiplying(cells("factor", 0))
    a, x, sums, i, t = (names[name] for name in ("a", "x", "sums", "i", "t"))
    _, _, _, four = next(multiplied(names))
    grown = expression(sums[(i + 1) * LANES_ + AT + LANE]) + expression(a[i, t]) * expression(x[t * LANES_ + AT + LANE])
    prove_equal([four[LANES_ + LANE]], [grown])


def adjusted_lane(after, before, bias, **told):
    """The score of one key in one lane after `_adjust`, on every path."""

    def turn():
        names = {name: cells(name) for name in ("s", "denominator")} | {
            "LANES": LANES_,
            "range": one_of(lanes=(LANES_, LANE)),
            "softcap": None,
        }
        names |= {"bias": bias, "head": 0, "start": symbol("start", integer=True), "after": after, "before": before}
        names |= told
        Loop(fast._adjust, 0).turn(names, c=KEY)
        return names["s"][KEY * LANES_ + LANE], names["denominator"][LANE]

    with assuming(sp.Ge(LANES_.e - 1 - LANE.e, 0)):
        for _, result in all_paths(turn):
            yield result


@theorem(
    of=[fast._adjust],
    sizes="all lanes, keys, bands",
    argument="every key is a turn, which writes the scores of this key alone",
    silent=TURNS,
)
def a_band_of_any_size():
    """The scores of key c are given to the cap, if there is one. Then the key keeps its score, with the bias, in each lane
    r < lanes where after + c <= r < before + c, and has -infinity on both sides."""
    more, less = whole("x y", nonnegative=True)
    score = sp.Function("s", real=True)(sp.expand((KEY * LANES_ + LANE).e))
    bias, none, added = Rows("b", 1, 1), Rows("b", 1, 0), entry("b", 0, symbol("start", integer=True) - KEY + LANE)
    start = sp.Function("denominator", real=True)(LANE.e)
    for found, denominator in adjusted_lane(LANE - KEY - more, LANE - KEY + 1 + less, bias):
        prove_equal([found, denominator], [score + added, start])
    for after, before in ((LANE - KEY + 1 + more, LANE - KEY + less), (LANE - KEY - more, LANE - KEY - less)):
        for found, _ in adjusted_lane(after, before, none):
            prove_that(found == -np.inf, "outside of the band")
    capped, cap = [], symbol("cap")
    given = {"softcap": cap, "_cap": lambda *given: capped.append(given)}
    met = [*adjusted_lane(LANE - KEY - more, LANE - KEY + 1 + less, none, **given)]
    prove_that(
        all(row.start == (KEY * LANES_).e and by is cap for row, by in capped) and len(capped) == len(met) > 0,
        "the cap gets the scores",
    )
    prove_that(Loop(fast._adjust, 0).turns({"count": COUNT}) == [COUNT.e], "all keys")
    covers(fast._adjust)


@a_band_of_any_size.control
def a_band_with_its_end():
    """Lane before + c meets the key too."""
    at = (LANE - KEY).e.subs({LANE.e: 5, KEY.e: 2})
    for found, _ in adjusted_lane(LANE - KEY - 1, LANE - KEY, Rows("b", 1, 0)):
        words = f"lane 5, key 2, before = {at}: the score is {found}, expected a finite score"
        prove_that(found != -np.inf, counterexample=words)


NUMBERS = "n_query n_key low high i j h group rows dim width TILE"


BLOCK = "heads first step w shared blocks"


def begun_blocks(names):
    """The variables before the blocks of `_attend`, and the number of blocks."""
    shapes = {"q": ("heads", "n_query", "dim"), "k": ("shared",), "v": ("shared", "n_key", "width")}
    begun = Loop(fast._attend, 0).before(
        {name: Parts(name, *(names[x] for x in shape)) for name, shape in shapes.items()} | {"LANES": LANES_}
    )
    return begun, Loop(fast._attend, 0).turns({**begun, "first": names["first"], "step": names["step"]})


def begun_tiles(names):
    """The variables before the tiles of block w."""
    i = (names["blocks"] - 1 - names["w"] % names["blocks"]) * LANES_
    turns = one_of(lanes=(LANES_, LANE), queries=(names["n_query"] - i, LANE), features=(names["dim"], T))
    given = {name: cells(name) for name in ("q", "factor", "turned", "sums")} | {
        name: Parts(name) for name in ("maximum", "denominator")
    }
    return Loop(fast._attend, 0, 1).before(names | given | {"LANES": LANES_, "range": turns})


def written(names, divide):
    """What is left after the tiles of a block, and what the sums are divided by."""
    turns = one_of(rows=(names["rows"], LANE), width=(names["width"], FEATURE))
    given = {name: cells(name) for name in ("sums", "out", "products", "total")} | {"LANES": LANES_, "range": turns}
    total = given["total"][LANE]
    divisor = total if divide and total > 0 else 1
    return Loop(fast._attend, 0, 1).after(names | given | {"divide": divide}), divisor


def tiled():
    """{kernel: arguments} of the calls in one tile of `_attend`, and the iterations of its loop."""
    names = dict(zip(NUMBERS.split(), whole(NUMBERS), strict=True))
    called = {}
    note = lambda name: lambda *arguments: called.setdefault(name, arguments)
    arrays = {name: Parts(name) for name in ("q", "k", "v", "bias", "turned", "products", "sums", "top", "total")}
    names |= arrays | {"LANES": LANES_, "softcap": None, "end": symbol("end", integer=True)}
    loop = Loop(fast._attend, 0, 1)
    loop.turn(names | {name: note(name) for name in ("_multiply", "_adjust", "_step")}, j=names["j"])
    return names, called, loop.turns(names)


@theorem(
    of=[fast._attend],
    sizes="all lanes, tiles, queries and keys; any band",
    argument="induction over the tiles, which begin where the last one ended and end with the keys: by the theorems on a tile, "
    "its products and its band, the sums times e^M grow by those of its keys",
    silent=TURNS,
)
def any_number_of_tiles():
    """Tile j .. j + count - 1 of the keys, as long as a tile or up to the end, is asked for the offsets (j + c) - (i + r) from
    low to high and no others, and reads the bias at n_key - 1 - offset, which is that of the offset, backwards. Keys before the
    first tile and from the end on are met by no query r < rows of the block. Block w has the lanes from i on of head
    floor(w / blocks), i = (blocks - 1 - w mod blocks) lanes, as many as there are, times their factors, with their maxima and
    denominators; their sums begin at 0, and are written into the output of these queries, with `divide` over the denominators
    above 0."""
    names = dict(zip(f"{NUMBERS} {BLOCK}".split(), whole(f"{NUMBERS} {BLOCK}", positive=True), strict=True))
    n_query, heads, shared, blocks, w = (names[name] for name in ("n_query", "heads", "shared", "blocks", "w"))
    begun, turns = begun_blocks(names)
    prove_that(turns == [names["first"].e, (heads * begun["blocks"]).e, names["step"].e], "all blocks of all heads")
    prove_equal([begun["blocks"], begun["group"]], [(n_query + LANES_ - 1) // LANES_, heads // shared])
    i = (blocks - 1 - w % blocks) * LANES_
    for _, block in all_paths(lambda: begun_tiles(names)):
        prove_equal([block["h"], block["i"]], [w // blocks, i])
        rows, end = (sp.expand(expression(block[name])) for name in ("rows", "end"))
        prove_that(rows in (LANES_.e, sp.expand((n_query - i).e)), "all lanes, or the queries left")
        prove_that(end in (names["n_key"].e, sp.expand((i + rows + names["high"]).e)), "the last key of the band, or of all")
        for name, kept in (("maximum", "top"), ("denominator", "total")):
            array, (head, part) = block[kept].name
            prove_equal([head, part.start, part.stop], [w // blocks, i, i + LANES_])
            prove_that(array == name, f"the {name} of these queries")
        scaled = entry("q", w // blocks, i + LANE, T) * entry("factor", w // blocks, i + LANE, 0)
        prove_equal([block["turned"][T * LANES_ + LANE]], [scaled])
        prove_equal([block["sums"][FEATURE * LANES_ + LANE]], [0])
    for divide in (True, False):
        for _, (left, divisor) in all_paths(lambda divide=divide: written(names, divide)):
            out, at, divisor = left["out"], FEATURE * LANES_ + LANE, expression(divisor)
            found = left["products"][LANE], out[names["h"], names["i"] + LANE, FEATURE]
            prove_equal(found, [divisor, entry("sums", at) / divisor])
    for _, (names, called, turns) in all_paths(tiled):
        _, n_key, low, high, i, j, h, _, rows, *_, tile = (names[name] for name in NUMBERS.split())
        taken, head, start, after, before = (called["_adjust"][at] for at in (1, 4, 5, 6, 7))
        offset = (j + KEY) - (i + LANE)
        prove_equal([LANE - (after + KEY), (before + KEY) - 1 - LANE], [high - offset, offset - low])
        prove_equal([start - KEY + LANE, head], [n_key - 1 - offset, h])
        prove_that(expression(taken) in (tile.e, (names["end"] - j).e), "a tile, or what is left")
        prove_that(turns[0] in (0, (i + low).e), "from the band's first key")
        prove_that(turns == [turns[0], names["end"].e, tile.e], "tile by tile")
        prove_that(expression(called["_step"][1]) == expression(taken), "all keys")
        prove_that(called["_multiply"][2].name == ("turned", slice(None, 0)), "scores begin at 0")
    early, late = -1 - symbol("x", integer=True, nonnegative=True), symbol("x", integer=True, nonnegative=True)
    with assuming(sp.Ge(LANE.e, 0), sp.Ge(rows.e - 1 - LANE.e, 0)):
        prove_that(nonnegative((low - 1 - ((i + low + early) - (i + LANE))).e), "before the first tile: offsets below low")
        prove_that(nonnegative(((i + rows + high + late) - (i + LANE) - high - 1).e), "from the end on: offsets above high")
    covers(fast._attend)


@any_number_of_tiles.control
def the_band_counts_from_the_first_key():
    """The band is counted from the first key, not from the query: lane r meets keys from low to high."""
    for _, (names, called, _) in all_paths(tiled):
        prove_equal([LANE - (called["_adjust"][6] + KEY)], [names["high"] - (names["j"] + KEY)])


FEW = (fast._score, fast._meet, fast._gather)
ROWS, DIM = whole("rows dim", positive=True)
ROW = whole("r", nonnegative=True)[0]


def entry(name, *at):
    return sp.Function(name, real=True)(*(sp.expand(expression(x)) for x in at))


@theorem(
    of=[fast._score],
    sizes="all numbers of rows, keys and features",
    argument="induction over the features; every pair of rows and every key are turns of their own",
    silent=TURNS,
)
def scores_of_any_size():
    """Two rows at a time, and the last of an odd number alone, begin at 0, grow by q_rt k_ct in turn t, for all features, and
    are the scores of key c."""
    shapes = {"q": (ROWS, DIM), "keys": (COUNT, DIM), "s": ()}
    names = {name: cells(name, *shape) for name, shape in shapes.items()} | {"len": lambda x: x.shape[0]}
    names |= {"rows": ROWS, "dim": DIM, "c": KEY, "r": ROW}
    pairs, single = Loop(fast._score, 0, 0), Loop(fast._score, 0, 1)
    begun = Loop(fast._score, 0).before({"q": names["q"]})
    prove_equal([begun["rows"], begun["dim"]], [ROWS, DIM])
    prove_that(Loop(fast._score, 0).turns(names) == [COUNT.e], "all keys")
    prove_that(pairs.turns(names) == [0, ROWS.e - 1, 2], "two at a time while there are two")
    prove_that(single.turns(names) == [(ROWS - ROWS % 2).e, ROWS.e], "and what is left")
    two = Loop(fast._score, 0, 0, 0)
    begun = two.before(names)
    prove_equal([begun["first"], begun["second"]], [0, 0])
    grown = two.turn(names | {"first": symbol("x"), "second": symbol("y")}, t=T)
    product = lambda row: entry("q", row, T) * entry("keys", KEY, T)
    prove_equal([grown["first"], grown["second"]], [symbol("x").e + product(ROW), symbol("y").e + product(ROW + 1)])
    prove_equal([begun["s"][ROW, KEY]], [0])
    s = two.after(names | {"first": symbol("x"), "second": symbol("y")})["s"]
    prove_equal([s[ROW, KEY], s[ROW + 1, KEY]], [symbol("x"), symbol("y")])
    one = Loop(fast._score, 0, 1, 0)
    prove_equal([one.before(names | {"s": cells("s")})["s"][ROW, KEY]], [0])
    prove_equal([one.turn(names | {"s": cells("s")}, t=T)["s"][ROW, KEY]], [entry("s", ROW, KEY) + product(ROW)])
    prove_that(two.turns(names) == [DIM.e] and one.turns(names) == [DIM.e], "all features")
    pairs.before(names)
    covers(fast._score)


@scores_of_any_size.control
def both_scores_are_of_the_first_row():
    """The second score is the first row's too."""
    names = {"q": cells("q"), "keys": cells("keys"), "c": KEY, "r": ROW, "first": symbol("x"), "second": symbol("y")}
    grown = Loop(fast._score, 0, 0, 0).turn(names, t=T)
    prove_equal([grown["second"]], [symbol("y").e + entry("q", ROW, T) * entry("keys", KEY, T)])


def met(number, index, **given):
    """The effect of one iteration of a loop of `_meet` on free or given variables, and the iterations of this loop."""
    names = {name: cells(name) for name in ("s", "sums")} | {"count": COUNT, "highest": symbol("highest")}
    names |= {"denominator": symbol("denominator"), "len": lambda x: x.shape[0]} | given
    names["sums"].shape, loop = (WIDTH,), Loop(fast._meet, number)
    return loop.turn(names, **{index: INDICES[index]}), loop.turns(names)


def scored(after, before, bias, **told):
    """The variables of `_meet` before the search for the maximum, for one key, on every path."""
    count, one, place = COUNT + KEY, symbol("denominator"), lambda at: 0 if at == -1 else sp.Function("s", real=True)(at)
    names = {
        "s": Cells(place),
        "count": count,
        "bias": bias,
        "softcap": None,
        "head": 0,
        "start": symbol("start", integer=True),
    }
    names |= {
        "after": after,
        "before": before,
        "maximum": symbol("maximum"),
        "denominator": one,
        "range": one_of(keys=(count, KEY)),
    }
    for _, found in all_paths(lambda: Loop(fast._meet, 1).before(names | {"s": Cells(place)} | told)):
        prove_equal([found["s"][count], found["highest"], found["denominator"]], [*2 * [symbol("maximum")], one])
        yield found["s"][KEY]


@theorem(
    of=[fast._meet],
    sizes="all numbers of keys, all d_v",
    argument="induction over the keys: the maximum and the denominator are those of the keys so far",
    silent=TURNS,
)
def keys_of_any_number():
    """A query that has met its keys: with M the greatest score and the old maximum m, in place `count`, weights become
    e^(s_c - M); the denominator is scaled by e^(m - M), each turn adds the weight of its key, and the sums are scaled by
    e^(m - M). First a score is given to the cap, if there is one, gets its bias, and is -inf unless after <= c < before."""
    s, highest = sp.Function("s", real=True)(KEY.e), symbol("highest")

    for _, (greater, (names, turns)) in all_paths(lambda: (max(highest, Scalar(s)), met(1, "c"))):
        prove_equal([names["highest"]], [greater])
        prove_that(turns == [COUNT.e], "all keys")
    names, turns = met(2, "c")
    prove_equal([names["s"][KEY]], [sp.exp(s - highest.e)])
    prove_that(turns == [COUNT.e + 1], "all keys, and the old maximum")
    names, turns = met(3, "c")
    prove_equal([names["denominator"]], [symbol("denominator").e + s])
    names, scaled = met(4, "e")
    prove_equal([names["sums"][FEATURE]], [entry("sums", FEATURE) * entry("s", COUNT)])
    prove_that(turns == [COUNT.e], "all keys")
    prove_that(scaled == [WIDTH.e], "all features")
    ranges = one_of(keys=(COUNT, KEY), features=(WIDTH, FEATURE))
    given = {name: symbol(name) for name in ("highest", "denominator")} | {"count": COUNT, "range": ranges}
    given |= {"len": lambda x: WIDTH}
    kept = Loop(fast._meet, 2).after(given | {name: cells(name) for name in ("s", "sums")})
    prove_equal(kept["returned"], [highest, symbol("denominator").e * entry("s", COUNT) + s])
    prove_equal([kept["sums"][FEATURE]], [entry("sums", FEATURE) * entry("s", COUNT)])
    more, less = whole("x y", nonnegative=True)
    bias, none, added = Rows("b", 1, 1), Rows("b", 1, 0), entry("b", 0, symbol("start", integer=True) - KEY)
    for found in scored(KEY - more, KEY + 1 + less, bias):
        prove_equal([found], [s + added])
    for after, before in ((KEY + 1 + more, KEY + less), (KEY - more, KEY - less)):
        for found in scored(after, before, none):
            prove_that(found == -np.inf, "outside of the band")
    capped, cap = [], symbol("cap")
    met_keys = [*scored(KEY - more, KEY + 1 + less, none, softcap=cap, _cap=lambda *given: capped.append(given))]
    prove_that(
        all(row.start == 0 and by is cap for row, by in capped) and len(capped) == len(met_keys) > 0, "the cap gets them"
    )
    covers(fast._meet)


@keys_of_any_number.control
def sums_are_not_rescaled():
    """The sums stay when the maximum moves."""
    names, _ = met(4, "e")
    prove_equal([names["sums"][FEATURE]], [cells("sums")[FEATURE]])


def gathered(*path):
    """The variables in a loop of `_gather` within the loop over keys, and after one iteration over the features."""
    names = {"s": Rows("s"), "values": Rows("values", COUNT), "sums": cells("sums", ROWS, WIDTH), "len": lambda x: x.shape[0]}
    names = Loop(fast._gather, 0).before(names) | {"c": KEY, "r": ROW}
    inside = Loop(fast._gather, *path).before(Loop(fast._gather, 0, 1).before(names))
    return inside, Loop(fast._gather, *path).turn(inside, e=FEATURE)["sums"]


@theorem(
    of=[fast._gather],
    sizes="all numbers of rows and keys, all d_v",
    argument="turns begin at the multiples of four up to count - 4, so they meet the keys below the greatest one",
    silent=TURNS,
)
def values_of_any_number():
    """Every row of the sums grows by its weights of four keys times their values, for two rows at a time and the last of an odd
    number alone, then, from the greatest multiple of four on, by that of one."""
    grown = lambda row, *more: (
        entry("sums", row, FEATURE) + sum(entry("s", row, KEY + c) * entry("values", KEY + c, FEATURE) for c in more)
    )
    names, sums = gathered(0, 1, 0)
    prove_equal([sums[ROW, FEATURE], sums[ROW + 1, FEATURE]], [grown(ROW, *range(4)), grown(ROW + 1, *range(4))])
    prove_equal([gathered(0, 2, 0)[1][ROW, FEATURE]], [grown(ROW, *range(4))])
    one = Loop(fast._gather, 1, 0, 0)
    last = one.turn(names | {name: cells(name) for name in ("s", "values", "sums")}, e=FEATURE)
    prove_equal([last["sums"][ROW, FEATURE]], [grown(ROW, 0)])
    turns = [Loop(fast._gather, *path).turns(names) for path in ((0,), (1,), (0, 1), (0, 2), (1, 0))]
    keys = [0, COUNT.e - 3, 4], [(COUNT - COUNT % 4).e, COUNT.e]
    prove_that(turns[:2] == [*keys], "four at a time while there are four, and what is left")
    prove_that(turns[2:] == [[0, ROWS.e - 1, 2], [(ROWS - ROWS % 2).e, ROWS.e], [ROWS.e]], "all rows")
    features = [Loop(fast._gather, *path).turns(names) for path in ((0, 1, 0), (0, 2, 0), (1, 0, 0))]
    prove_that(features == 3 * [[WIDTH.e]], "all features")
    covers(fast._gather)


@values_of_any_number.control
def the_second_row_has_the_weights_of_the_first():
    """Row r + 1 grows by the weights of row r."""
    values = sum(entry("s", ROW, KEY + c) * entry("values", KEY + c, FEATURE) for c in range(4))
    prove_equal([gathered(0, 1, 0)[1][ROW + 1, FEATURE]], [entry("sums", ROW + 1, FEATURE) + values])


FEW_NUMBERS = "n_query n_key low high i j h g group p STRETCH SHARD"
FEW_LOOPS = [Loop(fast._attend_few, *[0] * depth) for depth in range(1, 6)]
HEADS, SHARED, SHARDS, FIRST, STEP = whole("heads shared shards first step", positive=True)
STATE = symbol("m"), symbol("d")


def few_tiled():
    """The iterations of the inner loops of `_attend_few`, its variables, and its calls."""
    called, names = {}, dict(zip(FEW_NUMBERS.split(), whole(FEW_NUMBERS), strict=True))
    note = lambda name: lambda *given: called.setdefault(name, given) and STATE
    names |= {name: Parts(name) for name in ("q", "k", "v", "bias", "out", "s")} | {"softcap": None, "len": lambda x: COUNT}
    names |= {name: cells(name) for name in ("maximum", "denominator")} | {"shards": SHARDS, "first": FIRST, "step": STEP}
    names |= {name: note(name) for name in ("_score", "_meet", "_gather")}
    for loop in FEW_LOOPS[1:4]:
        names = loop.before(names)
    FEW_LOOPS[3].after(names)
    turns = [loop.turns(names) for loop in FEW_LOOPS[1:]]
    return turns, FEW_LOOPS[4].turn(names, i=names["i"]), called


@theorem(
    of=[fast._attend_few],
    sizes="all shards, tiles, queries and keys; any band",
    argument="induction over the tiles, as for the kernel with lanes; shards are merged, as proved for `posref.shards`",
    silent=TURNS,
)
def any_number_of_tiles_for_few_queries():
    """Query i meets key c of the tile at j exactly if low <= (j + c) - i <= high, and reads the bias at n_key - 1 - offset. Its
    scores are in the row that is its place among the queries of the heads that share the keys, and its state is written where
    it was. Shard p has the keys from p SHARD on, up to the next shard or the last key; scores and values are of the same keys,
    for the queries of all heads that share them. Every `step`-th pair of shard and shared head runs."""
    outer, lengths = FEW_LOOPS[0], {"q": HEADS * DIM, "out": SHARDS}
    arrays = {name: Parts(name) for name in ("q", "out")} | {"k": Parts("k", SHARED), "v": Parts("v", SHARED, COUNT)}
    begun = outer.before(arrays | {"maximum": Parts("maximum", SHARDS, HEADS), "len": lambda x: lengths[x.name]})
    prove_equal([begun[name] for name in ("shards", "heads", "n_key", "group")], [SHARDS, HEADS, COUNT, HEADS // SHARED])
    prove_that(is_zero((begun["n_query"] - DIM).e), "all queries")
    prove_that(outer.turns(arrays) == [SHARED.e], "all shared heads")
    for _, ((shards_, tiles, heads, queries), names, called) in all_paths(few_tiled):
        s, count, _, _, head, start, after, before, sums, *state = called["_meet"]
        n_query, n_key, low, high, i, j, h, g, group, p, tile, shard = (names[name] for name in FEW_NUMBERS.split())
        offset = j + KEY - i
        prove_equal([KEY - after, before - 1 - KEY], [offset - low, high - offset])
        prove_equal([start - KEY, head, count], [n_key - 1 - offset, h, COUNT])
        row = (h - g * group) * n_query + i
        prove_equal(
            [s.name[1], sums.name[1], names["end"], names["top"]], [row, row, (g + 1) * group * n_query, g * group * n_query]
        )
        prove_equal(state, [entry("maximum", p, h, i), entry("denominator", p, h, i)])
        prove_equal([names[name][p, h, i] for name in ("maximum", "denominator")], [*STATE])
        first, end, behind = (sp.expand(expression(x)) for x in (*tiles[:2], names["last"]))
        prove_that(behind in (n_key.e, sp.expand(((p + 1) * shard).e)), "a shard ends where the next begins, or with the keys")
        prove_that(tiles == [tiles[0], tiles[1], tile.e], "tile by tile")
        prove_that(first in ((p * shard).e, low.e) and end in (behind, (n_query + high).e), "the band of all queries")
        (asked, keys, scores), (weights, values, into) = called["_score"], called["_gather"]
        for part, array in ((keys, "k"), (values, "v")):
            name, (head, taken) = part.name
            prove_equal([head, taken.start], [g, j])
            prove_that(name == array and sp.expand(expression(taken.stop)) in (behind, (j + tile).e), "a tile of the shard")
        (array, rows), (room_of, (shard_at, rows_of)) = asked.name, into.name
        prove_equal([shard_at, rows.start, rows.stop, rows_of.start, rows_of.stop], [p, *2 * (names["top"], names["end"])])
        prove_that((array, room_of) == ("q", "out") and scores is weights is names["s"], "queries, their sums and weights")
        prove_that(shards_ == [((FIRST - g * SHARDS) % STEP).e, SHARDS.e, STEP.e], "one in `step`")
        prove_that(heads == [(g * group).e, ((g + 1) * group).e], "all heads that share the keys")
        prove_that(queries == [n_query.e], "all queries")
    covers(fast._attend_few)


@any_number_of_tiles_for_few_queries.control
def few_queries_count_from_their_own_tile():
    """The first key that a query sees is at low, whatever the tile."""
    for _, (_, names, called) in all_paths(few_tiled):
        prove_equal([called["_meet"][6]], [names["low"]])


# the whole kernels


def example(n, m, d=3, width=1):
    """Comparable scores: distinct integers times one positive symbol. Values are free. Four query heads share two key heads."""
    unit = symbol("unit", positive=True)
    q = array(np.arange(4 * n * d).reshape(4, n, d) ** 2 % 11 - 5)
    k = unit * (np.arange(2 * m * d).reshape(2, m, d) ** 3 % 13 - 6)
    return q, k, symbols("v", 2, m, width), unit * (np.arange(4 * (n + m - 1)).reshape(4, n + m - 1) ** 3 % 17)


@theorem(of=[*KERNELS, *FEW], sizes="n = 1, m = 2, lanes = 1, tile = 4; every path")
def kernels_cap_scores():
    """With a softcap the kernels attend with capped scores."""
    q, k, v, c = symbols("q", 1, 1, 1), symbols("k", 1, 2, 1), symbols("v", 1, 2, 1), 1
    weights = np.exp(attention.cap(q[0] @ k[0].T, softcap=c))
    for kernel in KERNELS:
        for _, state in all_paths(functools.partial(attend, q, k, v, low=-9, high=9, kernel=kernel, lanes=1, softcap=c)):
            prove_equal(state.accumulator[0] * weights.sum(), weights @ v[0])


@kernels_cap_scores.control
def capped_scores_are_scores():
    """The cap leaves the weights as they are."""
    q, k, v = symbols("q", 1, 1, 1), symbols("k", 1, 2, 1), symbols("v", 1, 2, 1)
    weights = np.exp(q[0] @ k[0].T)
    for _, state in all_paths(lambda: attend(q, k, v, low=-9, high=9, lanes=1, softcap=1)):
        prove_equal(state.accumulator[0] * weights.sum(), weights @ v[0])


@theorem(of=[*KERNELS, *FEW], sizes="n = 2, m = 2, 3 and n = 1, m = 5; lanes = 1, 2, tile = 4; every path; causal and not")
def kernels_attend_on_every_path():
    """The kernels are attend_by_offset for any queries, keys, values, bias, temperature and sinks, however scores compare."""
    for lanes, n, m, high in ((1, 2, 3, 1), (2, 2, 2, 9), (1, 1, 5, 9), (0, 2, 3, 1), (0, 1, 5, 9)):
        kernel = KERNELS[lanes == 0]
        q, k, v, b = symbols("q", 1, n, 1), symbols("k", 1, m, 1), symbols("v", 1, m, 1), symbols("b", 1, n + m - 1)
        temperature, offset = symbols("r", n), np.arange(m) - np.arange(n)[:, None]
        weights = np.where(offset <= high, np.exp(temperature[:, None] * (q[0] @ k[0].T) + b[0][offset + n - 1]), 0)
        total = weights.sum(axis=-1, keepdims=True)
        call = functools.partial(attend, q, k, v, b, low=-9, high=high, kernel=kernel, lanes=lanes, row_scale=temperature)
        for _, state in all_paths(call):
            prove_equal(state.accumulator[0], weights @ v[0] / total, mention=[*q.ravel(), *v.ravel()])
            prove_equal(state.denominator[0] * np.exp(state.maximum[0]), total)


@kernels_attend_on_every_path.control
def the_maximum_is_no_part_of_the_state():
    """The denominator alone is the sum over the keys (two of them)."""
    q, k, v, b = symbols("q", 1, 1, 1), symbols("k", 1, 2, 1), symbols("v", 1, 2, 1), symbols("b", 1, 2)
    for _, state in all_paths(lambda: attend(q, k, v, b, low=-9, high=9, lanes=1)):
        prove_equal(state.denominator[0], np.exp(q[0] @ k[0].T + b).sum(axis=-1, keepdims=True))


MASKS = [(False, None), (True, None), (False, 3), (True, 2)]
SIZES = "h = 4 on 2 heads of keys, n = 3, 4, m = 5 and n = 4, m = 1, d = 3, d_v = 1, 3, lanes = 2, tile = 4"


@theorem(
    of=[*KERNELS, *FEW, fast._band],
    sizes=SIZES + "; causal, windows and both; with and without sinks",
    equivalent={
        "_meet: denominator += s[-1] * s[c]  ->  denominator -= s[-1] * s[c]": "0 or NaN either way",
        **{
            "_meet: if after > 0 or before < count:  ->  " + more: "asks keys of which none is masked"
            for more in (
                "if after > -1 or before < count:",
                "if after >= 0 or before < count:",
                "if after > 0 or before <= count:",
            )
        },
    },
)
def kernels_pinned():
    """The kernels are attend_by_offset: tiles, heads, blocks, bands, sinks, the division, and zeros where there is no key."""
    for (n, m), (causal, window) in (*(((4, 5), mask) for mask in MASKS), ((4, 1), (True, None))):
        q, k, v, b = example(n, m, width=1 if m > 1 else 3)
        b = b if m > 1 else None
        rules = {"sinks": symbol("unit", positive=True) * np.array([[3], [-5], [40], [0]])} if window == 2 else {}
        low, high = fast._band(n, m, causal, window, n - m)
        expected = attention.attend_by_offset(q, k, v, scale=1, bias_by_offset=b, causal=causal, window=window, **rules)
        for kernel in KERNELS:
            got = attend(q, k, v, b, low=low, high=high, kernel=kernel, shard=1, **rules)
            prove_equal(got.accumulator, expected, mention=v[:, -1])


@kernels_pinned.control
def band_aligned_at_the_start():
    """Without a shift the first query sees the first key alone."""
    q, k, v, b = example(3, 5)
    low, high = fast._band(3, 5, True, None, 0)
    expected = attention.attend_by_offset(q, k, v, scale=1, bias_by_offset=b, causal=True)
    prove_equal(attend(q, k, v, b, low=low, high=high).accumulator, expected)


@theorem(of=[*KERNELS, *FEW, fast._band], sizes=SIZES + "; shifts -6 .. 6")
def partial_pinned():
    """Undivided, the kernels are shards.attend over keys that begin `shift` after the queries, up to the chosen maximum."""
    q, k, v, b = example(3, 5)
    offset = np.arange(5) - np.arange(3)[:, None]
    k_all, v_all, bias = np.repeat(k, 2, axis=0), np.repeat(v, 2, axis=0), b[:, offset + 2]
    for shift, (causal, window) in zip((0, -6, -3, 0, 2, 6), [*MASKS, (False, 3), (True, None)], strict=True):
        mask = (offset + shift <= (0 if causal else 99)) & (abs(offset + shift) < (99 if window is None else window))
        expected = shards.attend(q, k_all, v_all, scale=1, bias=bias, mask=mask)
        low, high = fast._band(3, 5, causal, window, shift)
        met = mask.any(axis=-1)
        for kernel in KERNELS:
            state = attend(q, k, v, b, low=low, high=high, kernel=kernel, divide=False)
            for got, right in zip(state[1:], expected[1:], strict=True):
                prove_equal(got * np.exp(state.maximum), right * np.exp(expected.maximum))
            if met.any():
                prove_equal(state.maximum[:, met], expected.maximum[:, met])
            prove_that(all(d == 0 for d in state.denominator[:, ~met].ravel()), "no key, no denominator")


@partial_pinned.control
def shift_counts_the_other_way():
    """`shift` is the position of the first query minus that of the first key."""
    q, k, v, b = example(3, 5)
    offset = np.arange(5) - np.arange(3)[:, None]
    low, high = fast._band(3, 5, True, None, 2)
    state = attend(q, k, v, b, low=low, high=high, divide=False)
    expected = shards.attend(
        q, np.repeat(k, 2, axis=0), np.repeat(v, 2, axis=0), scale=1, bias=b[:, offset + 2], mask=offset - 2 <= 0
    )
    prove_equal(state.denominator * np.exp(state.maximum), expected.denominator * np.exp(expected.maximum))
