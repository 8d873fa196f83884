"""Loops run turn by turn: the pieces are those of the source, and what cannot be told apart is refused."""

import ast
from pathlib import Path

import pytest
import sympy as sp

import proofs
from proofs.kit import Scalar, expression, symbol
from proofs.kit.loops import Cells, Loop
from proofs.kit.mutants import mutants, swapped, tree
from proofs.kit.record import RECORD
from proofs.kit.runner import in_file, names
from proofs.kit.theorem import vocabulary
from proofs.kit.verdicts import NotProved


def _source(file):
    return (Path(proofs.__file__).parent / f"{file.replace('.', '/')}.py").read_text()


BY_PIECES = [file for file in names() if not file.startswith("fast.") and "kit.loops import" in _source(file)]


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
    assert expression(inner.turn({"total": symbol("t")}, j=k)["total"]) == symbol("t").e - k.e
    assert inner.after({"total": 3}) == {"total": 3}
    assert outer.after({"total": 3, "n": 5})["returned"] == (3, 5)


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


@pytest.mark.parametrize("file", BY_PIECES)
def test_every_line_of_a_function_that_is_run_by_pieces_runs(file):
    """What no piece runs could do anything, also at sizes at which nothing was run whole. Theorems of kernels name pieces."""
    ran = set()
    for theorem in in_file(file):
        if "Loop" in vocabulary(theorem.body):
            theorem.prove()
            ran |= set(RECORD.loops)
    assert ran
    for function in {function for function, _ in ran}:
        lines = {
            node.lineno
            for node in ast.walk(tree(function).body[0])
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.Return))
        }
        assert lines == lines & {line for f, line in ran if f is function}, function.__name__


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
