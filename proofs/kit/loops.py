"""Loops that carry something from one turn to the next, at any number of turns: an invariant, its base and its step.

`Loop(function, 1, 0)` is the first loop inside the second loop of a function. Its pieces run alone, on whatever the names stand
for:

    loop.before(names)       what comes before it, in the block around it
    loop.turns(names)        the arguments of its `range`
    loop.turn(names, c=c)    its body, once
    loop.after(names)        what comes after it

Each returns the names afterwards; a value that is returned has the name `returned`. A theorem runs `before` and compares with
the invariant at the first turn, runs a symbolic turn on the invariant and compares with the invariant at the next, and goes on
with the invariant at the end: induction over the turns, whose number nowhere enters. `covers(function)` says that no line of
it is left out. `Cells` is an array of any size, of which
cells with symbolic indices are read and written.
"""

import ast

import sympy as sp

from proofs.kit.mutants import python_function, tree
from proofs.kit.record import RECORD
from proofs.kit.symbols import Scalar, expression
from proofs.kit.verdicts import NotProved


class Loop:
    """A loop of a function, by its number in each block around it. Checks of arguments are left out."""

    def __init__(self, function, *path):
        self.function, self.path, self.base = python_function(function), path, {}

    def before(self, names):
        after = self._run(self._parts()[0], names)
        self.base = {name: value for name, value in after.items() if names.get(name, self) is not value}
        return after

    def turns(self, names):
        head = self._parts()[1]
        RECORD.loops.append((self.function, head.lineno))
        code = compile(ast.Expression(head.iter), "", "eval")
        bounds = eval(code, {**self.function.__globals__, **names, "range": lambda *bounds: bounds})
        return [expression(bound) for bound in bounds]

    def turn(self, names, **target):
        """NotProved if a name that the body writes still stands for what it was at the first turn."""
        body = self._parts()[1].body
        still = [name for name in _written(body) if name in names and names[name] is self.base.get(name, self)]
        if still:
            raise NotProved(f"{still[0]} is carried from turn to turn and has the value of the first; give it the invariant's")
        return self._run(body, {**names, **target})

    def after(self, names):
        return self._run(self._parts()[2], names)

    def _parts(self):
        """The statements before the loop in its block, the loop, and the statements after it."""
        block, path = tree(self.function).body[0].body, [*self.path]
        while True:
            loops = [at for at, statement in enumerate(block) if isinstance(statement, ast.For)]
            if len(loops) <= path[0]:
                self._run([s for s in block if isinstance(s, ast.Raise)], {})
                raise NotProved(f"{self.function.__name__} has no loop {self.path}")
            at = loops[path.pop(0)]
            if any(isinstance(node, ast.Return) for node in ast.walk(block[at])):
                raise NotProved(f"{self.function.__name__} returns inside a loop, after turns of which nobody knows how many")
            if not path:
                return block[:at], block[at], block[at + 1 :]
            block = block[at].body

    def _run(self, statements, names):
        names = dict(names)
        RECORD.loops += [
            (self.function, node.lineno) for each in statements for node in ast.walk(each) if isinstance(node, ast.stmt)
        ]
        module = ast.Module([_assigned(s) for s in statements if not _is_check(s)], type_ignores=[])
        code = compile(ast.fix_missing_locations(module), self.function.__code__.co_filename, "exec")
        exec(code, {**self.function.__globals__, **names}, names)
        return names


def covers(function):
    """NotProved if a line of the function ran in no piece of this theorem: it could do anything, at sizes that nobody runs.

    Nor may it be left open how often a loop over a `range` runs.
    """
    ran = {line for f, line in RECORD.loops if f is python_function(function)}
    for node in ast.walk(tree(python_function(function)).body[0]):
        counted = isinstance(node, ast.For) and ast.unparse(node.iter).startswith("range(")
        if (counted or isinstance(node, (ast.Assign, ast.AugAssign, ast.Return))) and node.lineno not in ran:
            raise NotProved(f"no piece of {function.__name__} runs its line {ast.unparse(node).splitlines()[0]!r}")


def _written(body):
    return {
        node.id for each in body for node in ast.walk(each) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _is_check(statement):
    return isinstance(statement, ast.Expr) and ast.unparse(statement).startswith("_require.")


def _assigned(statement):
    return ast.Assign([ast.Name("returned", ast.Store())], statement.value) if isinstance(statement, ast.Return) else statement


class Cells:
    """An array of any size: a cell that was not written is a value of `contents`; a slice of it begins elsewhere."""

    def __init__(self, contents, shape=(), written=None, start=0):
        self.contents, self.shape = contents, shape
        self.written, self.start = {} if written is None else written, start

    def __getitem__(self, key):
        if isinstance(key, slice):
            start = 0 if key.start is None else expression(key.start)
            return Cells(self.contents, self.shape, self.written, self.start + start)
        cell = self._cell(key)
        unclear = [other for other in self.written if other != cell and not _apart(other, cell)]
        if unclear:
            raise NotProved(f"cell {cell} may be {unclear[0]}, which was written")
        return self.written.get(cell, Scalar(self.contents(*cell)))

    def __setitem__(self, key, value):
        self.written[self._cell(key)] = value

    def _cell(self, key):
        first, *rest = map(expression, key if isinstance(key, tuple) else (key,))
        return tuple(map(sp.expand, (first + self.start, *rest)))


def _apart(a, b):
    return any(sp.expand(x - y).is_zero is False for x, y in zip(a, b, strict=True))
