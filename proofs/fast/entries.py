"""Entries, compiled: the kernels add the entries at the specification's indices, looked up or copied."""

import functools
import itertools
import types

import numpy as np
import sympy as sp

from posref import offsets
from posref.fast import entries as fast
from posref.relative import deberta
from proofs.fast.attention import Parts
from proofs.kit import (
    Output,
    all_paths,
    example,
    expression,
    integers,
    prove_equal,
    prove_kernel,
    prove_that,
    room,
    size,
    sized,
    symbol,
    symbols,
    theorem,
)
from proofs.kit.loops import Cells, Loop

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


@theorem(of=[fast._add], sizes="all heads, n, m, K; all offsets")
def entries_are_looked_up():
    """Cell (h, i, j) is scale times the sum of the content, the query's entry and the key's, those that there are, each at the
    index of Shaw et al. or of one of both conventions of DeBERTa; every cell is written once."""
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
        out = Output((H, N, M))
        prove_kernel(fast._add, [content, *terms, at, query_ends, key_ends, SCALE, out, None, None], (out, SCALE.e * total))

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


LAYS = (fast._lay_row, fast._lay_column)


@theorem(
    of=LAYS,
    sizes="all numbers of keys, all ends, all offsets",
    argument="start is low - first and stop is high + 1 - first, brought into 0 .. n_key, start first: so first + j < low for "
    "j < start, first + j > high from stop on, and low <= first + j <= high between them",
    silent=TURNS,
)
def entries_are_laid_out():
    """For all j below start, key j has the entry of `low`; for all below stop - start, key start + j that of first + start + j;
    for all below n_key - stop, key stop + j that of `high`, with start = min(max(low - first, 0), n_key) and
    stop = min(max(high + 1 - first, start), n_key)."""
    base, sign, low, high, first, j = (symbol(x, integer=True) for x in ("base", "sign", "low", "high", "first", "j"))
    n_key, entry = symbol("n_key", integer=True, nonnegative=True), sp.Function("values", real=True)

    def run(kernel, loop):
        values, row = Cells(entry), Cells(sp.Function("row", real=True), (n_key,))
        names = {"values": values, "row": row, "first": first, "ends": (base, sign, low, high), "len": lambda x: x.shape[0]}
        names = Loop(kernel, 0).before(names)
        return Loop(kernel, loop).turn(names, j=j), *Loop(kernel, loop).turns(names)

    for kernel, loop in itertools.product(LAYS, range(3)):
        for _, (names, turns) in all_paths(functools.partial(run, kernel, loop)):
            start, stop = names["start"], names["stop"]
            prove_that(expression(start) in (0, (low - first).e, n_key.e), "the first key that is not clipped")
            prove_that(
                expression(stop) in (expression(start), (high + 1 - first).e, n_key.e), "the first that is clipped again"
            )
            prove_equal([turns], [(start, stop - start, n_key - stop)[loop]])
            at = (0, start, stop)[loop] + j
            index = base + sign * (low, first + at, high)[loop]
            expected = entry(*(sp.expand(expression(x)) for x in ((at, index) if kernel is fast._lay_column else (index,))))
            prove_equal([names["row"][at]], [expected])


@entries_are_laid_out.control
def rows_begin_with_their_first_entry():
    """Key j has entry j, whatever the first offset is."""
    row = room("row", 2)
    fast._lay_row.py_func(symbols("v", 3), -1, (1, 1, -1, 1), row)
    prove_equal(row, symbols("v", 3)[1:])


def straight(*arguments):
    """The source of `_add_straight`, calling that of the kernels it calls."""
    function = fast._add_straight.py_func
    called = {kernel.py_func.__name__: kernel.py_func for kernel in LAYS}
    types.FunctionType(function.__code__, {**function.__globals__, **called})(*arguments)


@theorem(of=[fast._add_straight, *LAYS], sizes="h = 2, n_key = 1, 3, tables of 4 and 5 entries, first offsets from -7 to 4")
def straight_rows_have_the_same_entries():
    """Where the offsets of a row ascend, the kernel that lays entries out writes what the one that looks them up writes."""
    for n_key in (1, 3):
        first = np.arange(-4 - n_key, 5)[:, None]
        at, shape = first + np.arange(n_key), (2, len(first), n_key)
        content, by_query, by_key = symbols("c", *shape), symbols("q", *shape[:2], 5), symbols("k", 2, n_key, 5)
        ends = None, (2, 1, -2, 2), (2, 1, -2, 1), (2, -1, -1, 2)
        for query, key in itertools.product(ends, repeat=2):
            arguments = content, None if query is None else by_query, None if key is None else by_key
            looked, laid = room("o", *shape), room("o", *shape)
            fast._add.py_func(*arguments, at, query, key, SCALE, looked, None, None)
            straight(*arguments, first, query, key, SCALE, laid, room("r", n_key), room("s", n_key))
            prove_equal(laid, looked)


@straight_rows_have_the_same_entries.control
def offsets_do_not_ascend():
    """All keys of a row have the entry of the first offset."""
    content, by_query, laid = symbols("c", 1, 1, 2), symbols("q", 1, 1, 3), room("o", 1, 1, 2)
    straight(content, by_query, None, np.array([[0]]), (1, 1, -1, 1), None, SCALE, laid, room("r", 2), None)
    prove_equal(laid, SCALE * (content + by_query[..., 1:2]))


def noted(called, name):
    """A function that notes its arguments."""
    return lambda *arguments: called.setdefault(name, arguments)


@theorem(
    of=[fast._add_straight],
    sizes="all heads, n, m; any entries",
    argument="every cell of a row is a turn of the innermost loop, which sees only what was laid out for its row",
    silent=TURNS,
)
def rows_are_added_one_by_one():
    """For head h and query i the query's row i and all of the head's keys are laid out from first[i], and then cell (h, i, j),
    for every j, is scale (content + row[j] + column[j]), with the terms that there are."""
    h, i, j = (symbol(x, integer=True, nonnegative=True) for x in "hij")
    cell = lambda name, *at: sp.Function(name, real=True)(*map(expression, at))
    for query, key in itertools.product((None, Parts("by_query")), (None, Parts("by_key"))):
        names = {name: Cells(sp.Function(name, real=True)) for name in ("content", "out", "row", "column", "first")}
        names |= {"heads": H, "n_query": N, "n_key": M, "h": h, "i": i, "scale": SCALE, "by_query": query, "by_key": key}
        names |= {"query_ends": "at the query's", "key_ends": "at the key's"}
        called = {}
        names |= {name: noted(called, name) for name in ("_lay_row", "_lay_column")}
        loops = [Loop(fast._add_straight, *[0] * depth) for depth in (1, 2, 3)]
        prove_that([loop.turns(names) for loop in loops] == [[H.e], [N.e], [M.e]], "all heads, queries and keys")
        loops[2].before(names)
        wanted = {"_lay_row": (query, ("by_query", (h, i)), "query_ends", "row")}
        wanted |= {"_lay_column": (key, ("by_key", h), "key_ends", "column")}
        prove_that(called.keys() == {name for name, (array, *_) in wanted.items() if array is not None}, "what there is")
        for name, (part, first, ends, laid) in called.items():
            _, taken, own_ends, own_room = wanted[name]
            prove_that(part.name == taken and ends is names[own_ends] and laid is names[own_room], "of this head and query")
            prove_equal([first], [cell("first", i, 0)])
        total = cell("content", h, i, j) + (0 if query is None else cell("row", j)) + (0 if key is None else cell("column", j))
        loops[2].turn(names, j=j)
        prove_equal([names["out"][h, i, j]], [SCALE.e * total])


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
    """Rows are straight if each number is one more than the one before; their first numbers stand for them."""
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
    prove_that(fast._ascend.py_func(np.array([[1, 0, -1]])), "1, 0, -1")
