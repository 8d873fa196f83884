"""Loops run turn by turn: the pieces are those of the source, and what cannot be distinguished is refused."""

import ast
import copy
import re

import numpy as np
import pytest
import sympy as sp

from posref.fast import attention as fast
from proofs.kit import Scalar, array, expression, prove_equal, size, sized, symbol
from proofs.kit.loops import Cells, Listed, Loop, Rows, Tokens, covers
from proofs.kit.mutants import code_of, mutants, python_function, swapped, tree
from proofs.kit.record import RECORD
from proofs.kit.runner import find
from proofs.kit.verdicts import NotProved


def powers(x, n):
    total = 0
    for k in range(1, n):
        total = total + x**k
        for j in range(n, k, 2):
            total = total - j
    return total, n


def test_pieces():
    x, k, n = symbol("x"), symbol("k", integer=True), symbol("n", integer=True)
    outer, inner = Loop(powers, 0), Loop(powers, 0, 0)
    assert outer.before({"x": x})["total"] == 0
    assert outer.turns({"n": n}) == [1, n.e]
    assert inner.turns({"n": n, "k": k}) == [n.e, k.e, 2]
    assert expression(inner.before({"x": x, "k": k, "total": symbol("t")})["total"]) == symbol("t").e + x.e**k.e
    assert expression(inner.turn({"total": symbol("t"), "n": n}, j=k)["total"]) == symbol("t").e - k.e
    assert inner.after({"total": x}) == {"total": x}
    assert outer.after({"total": x, "n": 5})["returned"] == (x, 5)


def test_a_mutant_is_what_runs():
    label, code = next((label, code) for label, code in mutants(powers) if "total - x ** k" in label)
    with swapped(powers, code):
        got = Loop(powers, 0, 0).before({"x": symbol("x"), "k": 2, "total": 0})["total"]
    assert expression(got) == -(symbol("x").e ** 2), label


def test_a_carried_name_may_not_stay_at_its_first_value():
    loop, j = Loop(powers, 0, 0), symbol("j", integer=True)
    names = loop.before({"x": symbol("x"), "k": symbol("k"), "n": 3, "total": 0})
    with pytest.raises(NotProved, match="total is carried from turn to turn"):
        loop.turn(names, j=j)
    loop.turn({**names, "total": symbol("t")}, j=j)


def test_what_no_piece_runs_is_not_covered():
    """It could do anything, also at sizes at which nothing was run whole."""
    RECORD.clear()
    outer, k = Loop(powers, 0), symbol("k", integer=True)
    x = symbol("x")
    prove_equal([outer.before({"x": x})["total"], *outer.after({"total": x, "n": 5})["returned"]], [0, x, 5])
    with pytest.raises(NotProved, match=re.escape("no piece of powers runs its line 'for k in range(1, n):'")):
        covers(powers)
    assert outer.turns({"n": 5}) == [1, 5]
    prove_equal([Loop(powers, 0, 0).before({"x": x, "total": 0, "k": k})["total"]], [x**k])
    assert Loop(powers, 0, 0).turns({"n": 5, "k": k}) == [5, k.e, 2]
    with pytest.raises(NotProved, match=re.escape("no piece of powers runs its line 'total = total - j'")):
        covers(powers)
    total = Loop(powers, 0, 0).turn({"total": symbol("t"), "n": 5}, j=k)["total"]
    with pytest.raises(NotProved, match=re.escape("a piece of powers leaves total to the next one, with -k + t; compare it")):
        covers(powers)
    prove_equal([total], [symbol("t") - k])
    covers(powers)
    bounds = outer.turns({"n": 7})
    assert [*bounds] != [2]
    assert not bounds == [2]  # noqa: SIM201
    with pytest.raises(NotProved, match=r"a piece of powers leaves how often a loop runs, with .*; compare it"):
        covers(powers)
    assert bounds == [1, 7]
    covers(powers)


def branching(x, out, n):
    for k in range(n):
        if n > 48:
            out = 2 * x
        out[k] = x[k]
        out[k + 1] = 0


def test_a_branch_that_is_not_taken_does_not_run():
    RECORD.clear()
    loop, out = Loop(branching, 0), Cells(sp.Function("out"))
    assert loop.turns({"n": 5}) == [5]
    loop.turn({"n": 5, "x": Cells(sp.Function("x")), "out": out}, k=symbol("k", integer=True))
    with pytest.raises(NotProved, match=re.escape("no piece of branching runs its line 'out = 2 * x'")):
        covers(branching)


def chosen(x, rows, n, m):
    for _ in range(n):
        rows.append((2 * x if n > 48 else x) * (m > 9 and 3))


@pytest.mark.parametrize(("runs", "line"), [([(49, 10)], "x"), ([(5, 10)], "2 * x"), ([(49, 5), (5, 5)], "3")])
def test_a_part_of_an_expression_that_is_left_out_does_not_run(runs, line):
    RECORD.clear()
    for n, m in runs:
        loop = Loop(chosen, 0)
        loop.turns({"n": n})
        loop.turn({"n": n, "m": m, "x": symbol("x"), "rows": []}, _=symbol("k", integer=True))
    with pytest.raises(NotProved, match=re.escape(f"no piece of chosen runs its line '{line}'")):
        covers(chosen)


def doubling(x, n):
    total = x
    for _ in range(n):
        total = total + x
    total = 2 * total
    return total


def from_one(x, n):
    total = 0
    for _ in range(1, n):
        total = total + x
    return total


def test_what_stands_before_the_first_turn_and_what_is_returned_are_compared():
    RECORD.clear()
    loop, x, k = Loop(doubling, 0), symbol("x"), symbol("k", integer=True)
    first = loop.before({"x": x + 1})["total"]
    assert loop.turns({"n": 5}) == [5]
    with pytest.raises(NotProved, match=re.escape("total begins with [x + 1] in doubling, expected [k*x] at the first turn")):
        loop.turn({"x": x, "total": k * x}, _=k)
    prove_equal([loop.turn({"x": x, "total": (k + 1) * x + 1}, _=k)["total"]], [(k + 2) * x + 1])
    for wrong in (7, k * x, 5 * x + 1):
        with pytest.raises(NotProved, match=r"doubling ends with total = .*; pass symbols, or the last invariant"):
            loop.after({"total": wrong})
    last = loop.after({"total": 6 * x + 1})["returned"]
    with pytest.raises(NotProved, match=re.escape("a piece of doubling leaves total to the first one, with x + 1; compare it")):
        covers(doubling)
    prove_equal([first], [x + 1])
    with pytest.raises(NotProved, match=re.escape("a piece of doubling leaves what is returned, with 12*x + 2; compare it")):
        covers(doubling)
    prove_equal([last], [12 * x + 2])
    covers(doubling)


@pytest.mark.parametrize(
    ("k", "said"), [(symbol("k", integer=True, positive=True), "k"), (2 * symbol("j", integer=True), "2*j")]
)
def test_a_turn_may_be_any(k, said):
    """The first one is turn 0, and every turn is one."""
    names = {"x": symbol("x"), "total": symbol("t")}
    with pytest.raises(NotProved, match=re.escape(f"a turn of doubling runs at _ = {said} alone")):
        Loop(doubling, 0).turn(names, _=k)
    Loop(from_one, 0).turn(names, _=symbol("k", integer=True, positive=True))


def shifted(x, out, n):
    for k in range(n):
        out[k] = x[k]
        out[k + 1] = 0


def test_each_cell_that_a_turn_writes_is_read():
    RECORD.clear()
    loop, out, k = Loop(shifted, 0), Cells(sp.Function("out")), symbol("k", integer=True)
    assert loop.turns({"n": 5}) == [5]
    loop.turn({"n": 5, "x": Cells(sp.Function("x")), "out": out}, k=k)
    assert expression(out[k]) == sp.Function("x")(k.e)
    with pytest.raises(NotProved, match=re.escape("a piece of shifted leaves out to the next one, with (k + 1,); compare it")):
        covers(shifted)
    assert expression(out[k + 1]) == 0
    covers(shifted)


def test_a_turn_at_a_number_is_no_turn():
    with pytest.raises(NotProved, match="a turn of powers runs at k = 1 alone; pass a symbol"):
        Loop(powers, 0).turn({"x": symbol("x"), "total": symbol("t"), "n": 0}, k=1)
    with pytest.raises(NotProved, match="a turn of powers runs at k = 1 alone; pass a symbol"):
        Loop(powers, 0, 0).turn({"total": symbol("t"), "k": 1, "n": 5}, j=symbol("j"))


def test_a_turn_reads_its_own_tokens():
    t, x = symbol("t", integer=True), array([1, 2])
    assert expression(Tokens(x, t)[t + 1,]) == 2
    for other in (0, t - 1, slice(t, None), slice(None, t + 1)):
        with pytest.raises(NotProved, match="a turn reads token"):
            Tokens(x, t)[other,]


def early(x, n):
    total = 0
    for k in range(n):
        total = total + x**k
        return total
    return total


def test_a_loop_that_returns_has_no_pieces():
    with pytest.raises(NotProved, match="early returns inside a loop"):
        Loop(early, 0).turn({"x": symbol("x"), "total": 0}, k=symbol("k"))


def test_no_such_loop():
    with pytest.raises(NotProved, match="powers has no loop"):
        Loop(powers, 1).turns({})


def test_cells():
    i, n = symbol("i", integer=True), symbol("n", integer=True, positive=True)
    cells = Cells(sp.Function("a"))
    cells[i] = Scalar(7)
    part = cells[i:]
    assert (expression(cells[i]), expression(part[0]), expression(part[n])) == (7, 7, sp.Function("a")(i.e + n.e))
    part[n] = Scalar(8)
    assert expression(cells[i + n]) == 8
    with pytest.raises(NotProved, match="may be"):
        cells[symbol("j", integer=True)]


class ExtraLoop(ast.NodeTransformer):
    """Puts a loop at the end of the block of this number."""

    def __init__(self, number):
        self.left = number

    def visit(self, node):
        if isinstance(getattr(node, "body", None), list):
            if self.left == 0:
                node.body.insert(len(node.body) - isinstance(node.body[-1], ast.Return), ast.parse(EXTRA).body[0])
            self.left -= 1
        return self.generic_visit(node)


EXTRA = """
for extra in range(0):
    extra = 0
"""
KERNELS = {
    "_score": "scores_of_any_size",
    "_meet": "keys_of_any_number",
    "_gather": "values_of_any_number",
    "_attend": "any_number_of_tiles",
    "_attend_few": "any_number_of_tiles_for_few_queries",
    "_step": "a_tile_of_any_size",
    "_multiply": "products_of_any_size",
    "_adjust": "a_band_of_any_size",
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_with_a_further_loop_is_not_what_was_proved(name):
    (t,) = find(f"fast.attention.{KERNELS[name]}")
    kernel = python_function(getattr(fast, name))
    blocks = sum(isinstance(getattr(node, "body", None), list) for node in ast.walk(tree(kernel).body[0]))
    for number in (0, blocks // 2, blocks - 1):
        changed = ast.fix_missing_locations(ExtraLoop(number).visit(copy.deepcopy(tree(kernel).body[0])))
        code = code_of(kernel, ast.Module([changed], type_ignores=[]))
        assert t.failure(kernel, code) is not None, ast.unparse(changed)
    assert blocks > 1
    assert t.failure(kernel, kernel.__code__) is None


def test_a_list_of_any_length_is_taken_whole():
    rows = sized("rows", size("n"), 2)
    listed = Listed(symbol("x"), by=np.stack, axis=-2, joined=rows)
    assert np.stack(listed, axis=-2) is rows
    assert listed[-1].e == symbol("x").e
    for taken in (
        lambda: listed[0],
        lambda: listed[-2],
        lambda: listed[:64],
        lambda: np.stack(listed),
        lambda: np.concatenate(listed, axis=-2),
        lambda: np.stack([each for each in listed], axis=-2),
        lambda: np.stack([*listed, *listed], axis=-2),
        lambda: bool(listed),
        lambda: listed == [],
    ):
        with pytest.raises(NotProved, match="list of any length"):
            taken()
    with pytest.raises(TypeError, match="has no len"):
        len(listed)
    listed.append(symbol("y"))
    with pytest.raises(NotProved, match="list of any length"):
        np.stack(listed, axis=-2)


def test_an_array_that_is_written_whole_has_one_value():
    cells = Cells(sp.Function("a"))
    cells[:] = 0
    cells[2] = symbol("x")
    assert (cells[1], cells[2].e) == (0, symbol("x").e)
    with pytest.raises(NotProved, match="pass Cells"):
        Rows("r")[1][2] = 0
