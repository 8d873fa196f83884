"""Mutants: small wrong versions of shipped functions, swapped in place so that every caller sees them.

A theorem that still holds for a mutant does not see that part of the code. Checks of arguments (`_require...`, `if ..: raise`)
are left alone: ordinary tests own them.
"""

import ast
import contextlib
import copy
import functools
import inspect
import pickle
import re
import sys
import textwrap

SWAPPED_OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.Mod: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
SWAPPED_COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
SWAPPED_WORDS = {ast.And: ast.Or, ast.Or: ast.And}
SWAPPED_NAMES = {"cos": "sin", "sin": "cos", "minimum": "maximum", "maximum": "minimum", "max": "min", "min": "max"}
SWAPPED_LOCALS = [("cos", "sin"), ("a", "b"), ("c", "s"), ("first", "second"), ("q", "k"), ("i", "j"), ("x", "p"), ("u", "v")]

_trees = {}  # code object of a mutant -> its tree


class Tripwire(Exception):
    """Raised by a function whose body was replaced to see whether a theorem executes it."""


def python_function(function):
    """The Python function behind a numba dispatcher or a contract, or the function itself."""
    if hasattr(function, "contract") and function.__code__.co_filename.startswith("<contract of "):
        return function.__wrapped__
    return function.py_func if type(function).__module__.startswith("numba.") else function


def tree(function):
    """The syntax tree of the code that runs now, a mutant's own if one is swapped in."""
    function = python_function(function)
    return tree_of(function.__code__) or _written(function)


def tree_of(code):
    """The syntax tree of a mutant's code."""
    return _trees.get(code)


def mutants(function):
    """(label, code) of every mutant; the label shows the statement before and after."""
    function = python_function(function)
    root = pickle.dumps(original(function))  # read again in a third of the time of a deep copy
    number, labels = 0, set()
    while True:
        mutator = _Mutator(number, function.__code__.co_varnames)
        changed = mutator.visit(pickle.loads(root))
        if mutator.label is None:
            return
        label = f"{function.__name__}: {mutator.label}"
        while label in labels:  # the same statement, once more
            label += " (again)"
        labels.add(label)
        yield label, code_of(function, changed)
        number += 1


def tripwire(function):
    """Code that raises instead of computing."""
    function = python_function(function)
    return with_body(function, f"raise __import__({__name__!r}, fromlist=['Tripwire']).Tripwire({function.__name__!r})")


def with_body(function, text):
    """Code with the arguments of the code that runs now, and another body."""
    definition = copy.copy(tree(function).body[0])
    definition.body = ast.parse(text).body
    return code_of(function, ast.Module([definition], []))


def with_other_numbers(function):
    """Code that stores into arrays, and returns, other numbers."""
    function = python_function(function)
    return code_of(function, _Other().visit(original(function)))


@contextlib.contextmanager
def swapped(function, code):
    """Run with other code in the place of a function's own."""
    function = python_function(function)
    own, function.__code__ = function.__code__, code
    try:
        yield
    finally:
        function.__code__ = own


def codes_run_by(call, *arguments):
    """The code of every Python function that runs during a call, in the calling thread."""
    seen = set()
    sys.setprofile(lambda frame, event, _: seen.add(frame.f_code) if event == "call" else None)
    try:
        call(*arguments)
    finally:
        sys.setprofile(None)
    return seen


def posref_run_by(call):
    """The functions of posref that run during a call, but for contracts and checks of arguments."""
    codes = codes_run_by(call)
    return sorted(c.co_name for c in codes if "/posref/" in c.co_filename and not re.search(r"/_|^<", c.co_filename))


def original(function):
    """The syntax tree of a function as it was written, to be changed."""
    return copy.deepcopy(_written(function))


@functools.cache
def _written(function):
    root = ast.parse(textwrap.dedent(inspect.getsource(function)))
    definition = root.body[0]
    definition.decorator_list = []
    if ast.get_docstring(definition) is not None:
        definition.body = definition.body[1:] or [ast.Pass()]
    return root


def code_of(function, root):
    """The code of a changed syntax tree, in the globals of the function."""
    root = ast.fix_missing_locations(root)
    namespace = {}
    exec(compile(root, "<mutant>", "exec"), function.__globals__, namespace)
    code = namespace[root.body[0].name].__code__
    if code.co_freevars != function.__code__.co_freevars or hasattr(function, "__wrapped__"):
        raise TypeError(f"{function.__name__} is a closure or wrapped, so other code cannot take the place of its own")
    _trees[code] = root
    return code


def resumed(function):
    """Code that continues after each statement that raises an error."""
    return code_of(function, _Resumed().visit(original(function)))


def is_check(statement):
    if isinstance(statement, ast.Raise):
        return True
    if isinstance(statement, ast.If) and all(isinstance(s, ast.Raise) for s in statement.body) and not statement.orelse:
        return True
    if isinstance(statement, ast.For):
        return all(is_check(s) for s in statement.body)
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and "require" in ast.unparse(statement)


class _Resumed(ast.NodeTransformer):
    """Puts each statement, also those in loops, into a `try` of its own; a limit of time still ends the run."""

    def visit(self, node):
        node = self.generic_visit(node)
        if not isinstance(node, ast.stmt) or isinstance(node, (ast.FunctionDef, ast.Return)):
            return node
        tried = ast.parse("try: pass\nexcept TimeoutError: raise\nexcept Exception: pass").body[0]
        tried.body = [node]
        return tried


class _Other(ast.NodeTransformer):
    """Makes 2x + 1 of what is returned and of what is stored into arrays; of a tuple of each part."""

    def visit_Return(self, node):
        if isinstance(node.value, ast.Tuple):
            node.value.elts = [self._other(part) for part in node.value.elts]
        elif node.value is not None:
            node.value = self._other(node.value)
        return node

    def visit_Assign(self, node):
        if any(isinstance(target, ast.Subscript) for target in getattr(node, "targets", None) or [node.target]):
            node.value = self._other(node.value)
        cells = getattr(getattr(node, "targets", [None])[0], "elts", [None])
        if all(isinstance(cell, ast.Subscript) for cell in cells):
            cells.reverse()  # of a call that returns them all
        return node

    visit_AugAssign = visit_Assign

    @staticmethod
    def _other(value):
        return ast.BinOp(ast.BinOp(value, ast.Add(), value), ast.Add(), ast.Constant(1))


class _Mutator(ast.NodeTransformer):
    """Applies the change number `target`; `label` stays None if there are fewer."""

    def __init__(self, target, local_names):
        self.target, self.count, self.label = target, -1, None
        self.swaps = {}
        for first, second in SWAPPED_LOCALS:
            if first in local_names and second in local_names:
                self.swaps |= {first: second, second: first}
        self.exact = 0  # inside subscripts and keywords a sign is part of the number

    def visit(self, node):
        if isinstance(node, ast.stmt) and not isinstance(node, (ast.FunctionDef, ast.ImportFrom)):
            if is_check(node):
                return node
            before = self._headline(node)
            done = self.label is not None
            node = super().visit(node)
            if not done and self.label == "":
                self.label = f"{before}  ->  {self._headline(node)}"
            return node
        return super().visit(node)

    def visit_FunctionDef(self, node):
        node.body = [self.visit(s) for s in node.body]
        return node

    def visit_BinOp(self, node):
        self.generic_visit(node)
        other = SWAPPED_OPERATORS.get(type(node.op))
        if other and self._hit():
            node.op = other()
        return node

    def visit_AugAssign(self, node):
        return self.visit_BinOp(node)

    def visit_BoolOp(self, node):
        self.generic_visit(node)
        if self._hit():
            node.op = SWAPPED_WORDS[type(node.op)]()
        return node

    def visit_IfExp(self, node):
        self.generic_visit(node)
        if self._hit():
            node.body, node.orelse = node.orelse, node.body
        return node

    def visit_UnaryOp(self, node):
        if self.exact and isinstance(node.operand, ast.Constant):  # an axis or an end: -1 becomes -2
            if self._hit():
                node.operand = ast.Constant(node.operand.value + 1)
            return node
        self.generic_visit(node)
        if isinstance(node.op, (ast.USub, ast.Not)) and self._hit():
            return node.operand
        return node

    def visit_Constant(self, node):
        if type(node.value) is bool and self._hit():
            return ast.copy_location(ast.Constant(not node.value), node)
        if type(node.value) is int:
            for value in (node.value + 1, node.value - 1):
                if self._hit():
                    return ast.copy_location(ast.Constant(value), node)
        return node

    def visit_Subscript(self, node):
        return self._exactly(node)

    def visit_keyword(self, node):
        return self._exactly(node)

    def visit_Compare(self, node):
        self.generic_visit(node)
        other = SWAPPED_COMPARISONS.get(type(node.ops[0]))
        if other and self._hit():
            node.ops = [other(), *node.ops[1:]]
        return node

    def visit_Attribute(self, node):
        if node.attr in ("shape", "dtype", "ndim"):
            return node
        self.generic_visit(node)
        if node.attr in SWAPPED_NAMES and self._hit():
            node.attr = SWAPPED_NAMES[node.attr]
        return node

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load) and node.id in self.swaps and self._hit():
            return ast.copy_location(ast.Name(self.swaps[node.id], ast.Load()), node)
        return node

    def _exactly(self, node):
        self.exact += 1
        node = self.generic_visit(node)
        self.exact -= 1
        return node

    def _hit(self):
        self.count += 1
        if self.count == self.target:
            self.label = ""
            return True
        return False

    @staticmethod
    def _headline(node):
        return ast.unparse(node).split("\n")[0]
