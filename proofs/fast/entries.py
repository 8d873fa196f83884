"""Entries, compiled: the kernels add the entries at the specification's indices, looked up or copied."""

import functools
import itertools
import types

import numpy as np
import sympy as sp

from posref import offsets
from posref.fast import entries as fast
from posref.relative import deberta
from proofs.kit import *
from proofs.kit.loops import Cells, Loop, Parts, covers

N, M, H, K = size("n"), size("m"), size("h"), size("K")
SCALE = symbol("scale")
TURNS = "the loops are run turn by turn"
SHAW, PAPER, RELEASED = (K.e, 1, -K.e, K.e), (K.e, 1, -K.e, K.e - 1), (K.e, -1, 1 - K.e, K.e)
WIDTHS = {SHAW: 2 * K + 1, PAPER: 2 * K, RELEASED: 2 * K}


def rows(at, ends):
    """The specification's index: Shaw's clip(o) + k, and DeBERTa's delta(j, i) and delta(i, j)."""
    if ends == SHAW:
        return offsets.clip(at, -K, K)[None] + K
    return deberta.position_index(-offsets.clip(at, -K, K) if ends == PAPER else at, span=K)[None]


@theorem(of=[fast._add], sizes="all heads, n, m, K; all offsets", as_written="kernel")
def entries_are_looked_up():
    """Cell (h, i, j) is scale times the sum of the content, the query's entry and the key's, those that there are, each at the
    index of Shaw et al. or of one of both conventions of DeBERTa; every cell is written once, where the content is if there is
    no other place."""
    content, at = sized("c", H, N, M), integers("o", N, M)

    def prove(query_ends, key_ends):
        terms, total = [None, None], content
        if query_ends is not None:
            terms[0] = sized("q", H, N, WIDTHS[query_ends])
            total = total + np.take_along_axis(terms[0], rows(at, query_ends), axis=-1)
        if key_ends is not None:
            terms[1] = sized("k", H, M, WIDTHS[key_ends])
            by_column = np.take_along_axis(terms[1], np.swapaxes(rows(at, key_ends), -1, -2), axis=-1)
            total = total + np.swapaxes(by_column, -1, -2)
        rest = [*terms, at, query_ends, key_ends, SCALE]
        out, within = Output((H, N, M)), Output((H, N, M), contents=content)
        prove_kernel(fast._add, [content, *rest, out, None, None], (out, SCALE.e * total))
        if key_ends is None:
            prove_kernel(fast._add, [within, *rest, None, None, None], (within, SCALE.e * total))

    both = (
        (SHAW, None),
        (RELEASED, None),
        (None, PAPER),
        (None, RELEASED),
        (RELEASED, PAPER),
        (RELEASED, RELEASED),
        (None, None),
    )
    for query_ends, key_ends in both:
        for _ in all_paths(lambda query_ends=query_ends, key_ends=key_ends: prove(query_ends, key_ends)):
            pass


@entries_are_looked_up.control
def keys_read_their_own_row():
    """The key's entry is read in the query's row."""
    by_key, out, at = symbols("k", 1, 2, 4), room("out", 1, 2, 2), np.array([[0, 1], [-1, 0]])
    fast._add.py_func(np.zeros((1, 2, 2), dtype=object), None, by_key, at, None, (2, 1, -2, 1), 3, out, None, None)
    prove_equal(out, 3 * np.take_along_axis(by_key, 2 + at[None], axis=-1))


LAYS = (fast._lay_columns, fast._lay_row, fast._copy, fast._reverse)


def noted(called, name):
    """A function that records its arguments."""
    return lambda *arguments: called.setdefault(name, arguments)


@theorem(
    of=[fast._lay_row],
    sizes="all numbers of keys, all ends, all offsets",
    argument="start is low - first and stop is high + 1 - first, brought into 0 .. n_key, start first: so first + j < low for "
    "j < start, first + j > high from stop on, and low <= first + j <= high between them",
    silent=TURNS,
    equivalent={
        "_lay_row: if sign > 0:  ->  if sign > -1:": "sign is 1 or -1",
        "_lay_row: if sign > 0:  ->  if sign >= 0:": "sign is 1 or -1",
    },
)
def entries_are_laid_out():
    """For all j below start, key j has the entry of `low`; for all below n_key - stop, key stop + j that of `high`, with
    start = min(max(low - first, 0), n_key) and stop = min(max(high + 1 - first, start), n_key). Keys from start to stop get a
    copy of the entries from that of first + start on or, where sign is -1, those from that of first + stop - 1 on, reversed."""
    base, low, high, first, j = (symbol(x, integer=True) for x in ("base", "low", "high", "first", "j"))
    n_key, entry = symbol("n_key", integer=True, nonnegative=True), sp.Function("values", real=True)

    def run(sign, loop):
        called = {}
        names = {name: noted(called, name) for name in ("_copy", "_reverse")}
        names |= {"first": first, "ends": (base, sign, low, high), "len": lambda x: n_key}
        Loop(fast._lay_row, 0).before(names | {name: Parts(name) for name in ("values", "row")})
        cells = {"values": Cells(entry), "row": Cells(sp.Function("row", real=True))}
        begun = Loop(fast._lay_row, 0).before(names | cells)
        return called, Loop(fast._lay_row, loop).turn(begun, j=j), *Loop(fast._lay_row, loop).turns(begun)

    for sign, loop in itertools.product((1, -1), range(2)):
        for _, (called, names, turns) in all_paths(functools.partial(run, sign, loop)):
            start, stop = names["start"], names["stop"]
            prove_that(expression(start) in (0, (low - first).e, n_key.e), "the first key that is not clipped")
            prove_that(
                expression(stop) in (expression(start), (high + 1 - first).e, n_key.e), "the first that is clipped again"
            )
            prove_equal([turns], [(start, n_key - stop)[loop]])
            index = base + sign * (low, high)[loop]
            prove_equal([names["row"][(0, stop)[loop] + j]], [entry(sp.expand(expression(index)))])
            ((name, (values, row)),) = called.items()
            (array, source), (room, target) = values.name, row.name
            prove_that((name, array, room, source.stop) == ("_copy" if sign > 0 else "_reverse", "values", "row", None), name)
            prove_equal([source.start], [base + sign * (first + (start if sign > 0 else stop - 1))])
            prove_equal([target.start, target.stop], [start, stop])
    covers(fast._lay_row)


@entries_are_laid_out.control
def rows_begin_with_their_first_entry():
    """Key j has entry j, whatever the first offset is."""
    row = room("row", 2)
    python(fast._lay_row)(symbols("v", 3), -1, (1, 1, -1, 1), row)
    prove_equal(row, symbols("v", 3)[1:])


@theorem(
    of=[fast._copy, fast._reverse],
    sizes="all lengths",
    argument="every j below the length is a turn",
    silent=TURNS,
    as_written="kernel",
)
def copies_are_straight_or_reversed():
    """Cell j of the copy is value j; the reverse has value j in cell length - 1 - j."""
    j, length = (symbol(x, integer=True, nonnegative=True) for x in ("j", "length"))
    entry = sp.Function("values", real=True)
    for kernel, turns, at in ((fast._copy, [length], j), (fast._reverse, [length - 1, -1, -1], length - 1 - j)):
        names = {"values": Cells(entry), "row": Cells(sp.Function("row", real=True)), "len": lambda x: length}
        names, loop = Loop(kernel, 0).before(names), Loop(kernel, 0)
        prove_equal(loop.turns(names), turns)
        prove_equal([loop.turn(names, j=j)["row"][at]], [entry(j.e)])
        covers(kernel)


@copies_are_straight_or_reversed.control
def reverses_are_copies():
    """Values that are reversed stay where they were."""
    row = room("row", 2)
    fast._reverse.py_func(symbols("v", 2), row)
    prove_equal(row, symbols("v", 2))


@theorem(
    of=[fast._lay_columns],
    sizes="all numbers of rows and keys, all ends, all offsets",
    argument="the entry at base - sign clip(r - first - j, -high, -low) is that at base + sign clip(first + j - r, low, high)",
    silent=TURNS,
)
def columns_are_laid_out_as_rows():
    """Column j of the rows is laid out from -first - j on, of the values of key j, with the ends of negated offsets."""
    base, sign, low, high, first, j, n = (symbol(x, integer=True) for x in ("base", "sign", "low", "high", "first", "j", "n"))
    called, loop = {}, Loop(fast._lay_columns, 0)
    names = {"values": Parts("values"), "rows": Parts("rows"), "first": first, "ends": (base, sign, low, high)}
    names = loop.before(names | {"len": lambda x: n, "_lay_row": noted(called, "_lay_row")})
    prove_equal(loop.turns(names), [n])
    loop.turn(names, j=j)
    values, start, ends, row = called["_lay_row"]
    prove_that((values.name, row.name) == (("values", j), ("rows", (slice(None), j))), "key j")
    prove_equal([start, *ends], [-first - j, base, -sign, -high, -low])
    covers(fast._lay_columns)


@columns_are_laid_out_as_rows.control
def rows_have_the_offsets_of_the_first():
    """All rows have the entries of the first."""
    rows = room("row", 2, 1)
    python(fast._lay_columns)(symbols("v", 1, 3), 0, (1, 1, -1, 1), rows)
    prove_equal(rows, np.repeat(symbols("v", 1, 3)[:, 1], 2)[:, None])


def python(kernel):
    """The Python source of a kernel, which calls the Python source of other kernels."""
    names = dict(kernel.py_func.__globals__)
    names |= {k.py_func.__name__: types.FunctionType(k.py_func.__code__, names) for k in LAYS}
    return types.FunctionType(kernel.py_func.__code__, names)


@theorem(
    of=[fast._add_straight, *LAYS],
    sizes="h = 2, n_key = 1, 3, tables of 4 and 5 entries, first offsets from 4 to -7",
    as_written="runs",
)
def straight_rows_have_the_same_entries():
    """Where the offsets of a row ascend, and each row begins one before the last, the kernel that lays entries out writes what
    the one that looks them up writes, in rooms for 1, 4 and all rows, where the content is and elsewhere."""
    for n_key, height in ((1, 1), (3, 4), (3, 20)):
        first = np.arange(4, -5 - n_key, -1)[:, None]
        at, shape = first + np.arange(n_key), (2, len(first), n_key)
        content, by_query, by_key = symbols("c", *shape), symbols("q", *shape[:2], 5), symbols("k", 2, n_key, 5)
        ends = None, (2, 1, -2, 2), (2, 1, -2, 1), (2, -1, -1, 2)
        for query, key in itertools.product(ends, repeat=2):
            terms = None if query is None else by_query, None if key is None else by_key
            looked, laid, within = room("o", *shape), room("o", *shape), content.copy()
            fast._add.py_func(content, *terms, at, query, key, SCALE, looked, None, None)
            for source, out in ((content, laid), (within, None)):
                rooms = room("r", n_key), room("s", height, n_key)
                python(fast._add_straight)(source, *terms, first, query, key, SCALE, out, *rooms)
            prove_equal(laid, looked)
            prove_equal(within, looked)


@straight_rows_have_the_same_entries.control
def offsets_do_not_ascend():
    """All keys of a row have the entry of the first offset."""
    content, by_query, laid = symbols("c", 1, 1, 2), symbols("q", 1, 1, 3), room("out", 1, 1, 2)
    ends = (1, 1, -1, 1), None
    python(fast._add_straight)(content, by_query, None, np.array([[0]]), *ends, SCALE, laid, room("r", 2), None)
    prove_equal(laid, SCALE * (content + by_query[..., 1:2]))


HEIGHT = 3


@theorem(
    of=[fast._add_straight],
    sizes="all heads, n, m; rooms for 3 queries; any entries",
    argument="every cell of a row is a turn of the innermost loop, which sees only what was laid out for its row",
    silent=TURNS,
)
def rows_are_added_one_by_one():
    """For head h and query i the query's row i is laid out from first[i]; for every third i so are all of the head's keys, from
    first[i] on, for as many queries as there still are; and then cell (h, i, j), for every j, is
    scale (content + row[j] + columns[i mod 3, j]), with the terms that there are, in `out` or in the content."""
    h, b, j = (symbol(x, integer=True, nonnegative=True) for x in "hbj")
    cell = lambda name, *at: sp.Function(name, real=True)(*map(expression, at))
    terms = itertools.product((None, "by_query"), (None, "by_key"), (None, "out"), range(HEIGHT))
    for query, key, out, r in terms:
        i = HEIGHT * b + r
        names = {name: Cells(sp.Function(name, real=True)) for name in ("content", "first", "row", "columns", "out")}
        for name, length in (("content", H), ("first", N), ("row", M), ("columns", HEIGHT)):
            names[name].shape = (length,)
        names |= {
            "h": h,
            "i": i,
            "scale": SCALE,
            "len": lambda x: x.shape[0] if x.shape else HEIGHT,
            "out": out and names["out"],
        }
        names |= {"by_query": query and Parts(query), "by_key": key and Parts(key)}
        names |= {"query_ends": "at the query's", "key_ends": "at the key's"}
        called = {}
        names |= {name: noted(called, name) for name in ("_lay_row", "_lay_columns")}
        loops = [Loop(fast._add_straight, *[0] * depth) for depth in (1, 2, 3)]
        names = loops[0].before(names)
        prove_that([loop.turns(names) for loop in loops] == [[H.e], [N.e], [M.e]], "all heads, queries and keys")
        loops[2].before(names | {"columns": Parts("columns")})
        wanted = {"_lay_row"} if query else set()
        prove_that(called.keys() == wanted | ({"_lay_columns"} if key and r == 0 else set()), "what there is")
        if query:
            part, first, ends, laid = called["_lay_row"]
            prove_that((part.name, ends, laid) == (("by_query", (h, i)), "at the query's", names["row"]), "of this query")
            prove_equal([first], [cell("first", i, 0)])
        if key and r == 0:
            part, first, ends, laid = called["_lay_columns"]
            prove_that((part.name, ends, laid.name[0]) == (("by_key", h), "at the key's", "columns"), "of this head")
            prove_equal([first, laid.name[1].stop], [cell("first", i, 0), N - i])
            prove_that(laid.name[1].start is None, "from the first row on")
        total = cell("content", h, i, j) + (cell("row", j) if query else 0) + (cell("columns", r, j) if key else 0)
        names = loops[2].turn(names, j=j)
        prove_equal([names[out or "content"][h, i, j]], [SCALE.e * total])
    covers(fast._add_straight)


@rows_are_added_one_by_one.control
def the_scale_covers_the_content():
    """What is laid out is not scaled."""
    names = {name: Cells(sp.Function(name, real=True)) for name in ("content", "out", "row")}
    at = dict(zip("hij", (symbol(x, integer=True, nonnegative=True) for x in "hij"), strict=True))
    Loop(fast._add_straight, 0, 0, 0).turn({**names, **at, "scale": SCALE, "by_query": 0, "by_key": None}, j=at["j"])
    content, row = names["content"][at["h"], at["i"], at["j"]], names["row"][at["j"]]
    prove_equal([names["out"][at["h"], at["i"], at["j"]]], [SCALE * content + row])


@example(
    of=[fast._ascend, fast.straight],
    sizes="all matrices (2, 3) of numbers from -1 to 1, one of (2, 1), and (1, 2) from both ends of int64",
)
def straight_is_what_ascends():
    """straight returns the first numbers of the rows if each number is one more than the number before it, else None."""
    for entries in itertools.product((-1, 0, 1), repeat=6):
        matrix = np.array(entries).reshape(2, 3)
        ascends = bool((np.diff(matrix) == 1).all())
        prove_that(fast._ascend.py_func(matrix) == ascends, f"{matrix}")
        found = fast.straight(matrix)
        prove_that((found is not None) == ascends and (found is None or (found == matrix[:, :1]).all()), f"{matrix}")
    prove_that(fast._ascend.py_func(np.array([[5], [1]])), "rows of one number")
    ends = np.iinfo(np.int64)
    with np.errstate(over="ignore"):
        for a, b in itertools.product((ends.min, ends.min + 1, ends.max - 1, ends.max), repeat=2):
            prove_that((fast.straight(np.array([[a, b]])) is not None) == (b - a == 1), f"{a}, {b}")
            prove_that(fast._ascend.py_func(np.array([[a, b]])) == (b - a == 1), f"{a}, {b}")
    prove_that(fast.straight(np.array([[ends.min]])) == -fast.FAR, "beyond every table")


@straight_is_what_ascends.control
def descending_rows_are_straight():
    """So are rows that descend by one."""
    row = np.array([[1, 0, -1]])
    straight = fast._ascend.py_func(row)
    prove_that(straight, counterexample=f"the row {row[0]}: straight is {straight}, expected True")
