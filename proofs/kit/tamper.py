"""Edits that no mutant makes, drawn by a seed, each of another class: an operator, an index, a keyword that is dropped."""

import ast
import contextlib
import copy
import inspect
from typing import NamedTuple

from proofs.kit import mutants

BINARY = (ast.Add, ast.Mult, ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


class Edit(NamedTuple):
    """An edit of a function: its class, file and line, the statement before and after it, and the code."""

    function: object
    kind: str
    where: str
    before: str
    after: str
    code: object


def changes(node, names, number):
    """(class, what takes the place of a node) for each edit of it; the text of some is what it was."""
    plus = lambda e, n=1, op=ast.Add: ast.BinOp(e, op(), ast.Constant(n))
    kind, read = type(node), isinstance(getattr(node, "ctx", None), ast.Load)
    if kind is ast.BinOp:
        yield from (("operator", _with(node, op=op())) for op in BINARY)
        yield from (("operand", e) for e in (node.left, node.right, _with(node, left=node.right, right=node.left)))
    if kind is ast.Compare and type(node.ops[0]) in COMPARED:
        yield from (("comparison", _with(node, ops=[op(), *node.ops[1:]])) for op in COMPARED)
    if kind in (ast.If, ast.IfExp):
        yield "condition", _with(node, test=ast.UnaryOp(ast.Not(), node.test))
    if kind in (ast.AugAssign, ast.Expr, ast.If) or (kind is ast.Assign and _changes(node)):
        yield "statement", ast.Pass()
    if kind is ast.Constant and type(node.value) in (int, float):
        yield from (("constant", ast.Constant(n)) for n in (0, 2 * node.value, node.value + number))
    if kind is ast.Call:
        yield from (("call", e) for e in node.args[:1])
        yield "arguments", _with(node, args=[*node.args[1::-1], *node.args[2:]])
        for word in node.keywords:
            rest = [other for other in node.keywords if other is not word]
            yield "keyword", _with(node, keywords=rest)
            if word.arg == "axis":
                yield from (("axis", _with(node, keywords=[*rest, ast.keyword("axis", ast.Constant(n))])) for n in (0, None))
    method = kind is ast.Call and isinstance(node.func, ast.Attribute) and node.func.value
    if method and (not isinstance(method, ast.Name) or method.id in names):
        yield "method", method
    if kind is ast.Subscript:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for place in (p for p, e in enumerate(parts) if not isinstance(e, (ast.Slice, ast.Constant))):
            moved = [*parts[:place], plus(parts[place]), *parts[place + 1 :]]
            yield "index", _with(node, slice=ast.Tuple(moved, ast.Load()) if len(parts) > 1 else moved[0])
    if kind is ast.Slice:
        ends = [end for end in ("lower", "upper", "step") if getattr(node, end)]
        yield from (("slice", _with(node, **{end: e})) for end in ends for e in (None, plus(getattr(node, end))))
    if kind is ast.Name and read and node.id in names:
        yield from (("name", ast.Name(name, ast.Load())) for name in names)
        yield from (("value", plus(node, number, op)) for op in BINARY[:2])


def drawn(functions, source):
    """Edits that no mutant is, as long as there are any; the next one is of another class, while one is left."""
    found, tried = {}, {}
    for f in map(mutants.python_function, functions):
        root, number = mutants.original(f), source.randrange(2, 1000)
        for node, statement in _nodes(root.body[0]):
            for kind, new in changes(node, f.__code__.co_varnames, number):
                found.setdefault(kind, []).append((f, root, node, new, statement))
    while found := {kind: left for kind, left in found.items() if left}:
        for kind in source.sample([*found], len(found)):
            edit = None
            while found[kind] and not edit:
                f, *how = found[kind].pop(source.randrange(len(found[kind])))
                if f not in tried:
                    tried[f] = {ast.unparse(mutants.tree_of(code)) for _, code in mutants.mutants(f)}
                    tried[f].add(ast.unparse(mutants.original(f)))
                edit = _made(f, kind, tried[f], *how)
            yield from [edit] if edit else []


def _made(f, kind, tried, root, node, new, statement):
    """The edit, unless its text is one of those that were tried, or is no function."""
    copies = {}
    changed = copy.deepcopy(root, copies)
    changed = _Put(copies[id(node)], new).visit(changed)
    before, after = (ast.unparse(s).split("\n")[0] for s in (statement, new if node is statement else copies[id(statement)]))
    where = f"{f.__module__.replace('.', '/')}.py:{inspect.getsourcelines(f)[1] + statement.lineno - 1}"
    with contextlib.suppress(TypeError, SyntaxError):  # such as those of a closure
        if (text := ast.unparse(changed)) not in tried:
            tried.add(text)
            return Edit(f, kind, where, before, after, mutants.code_of(f, changed))


class _Put(ast.NodeTransformer):
    """Puts another node in the place of one."""

    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else self.generic_visit(node)


def _nodes(function):
    """Each node of a body with its statement; checks of arguments, and defaults, are left alone."""
    todo = [(statement, statement) for statement in function.body]
    while todo:
        node, statement = todo.pop()
        if isinstance(node, ast.stmt) and mutants.is_check(node):
            continue
        yield node, statement
        todo += [(child, child if isinstance(child, ast.stmt) else statement) for child in ast.iter_child_nodes(node)]


def _changes(assignment):
    """Whether a statement makes a new value of what it assigns to; without another one the name is not known."""
    old = {ast.unparse(target).split("[")[0] for target in assignment.targets}
    inside = isinstance(assignment.targets[0], ast.Subscript)
    return inside or any(isinstance(node, ast.Name) and node.id in old for node in ast.walk(assignment.value))


def _with(node, **parts):
    return type(node)(**{**{name: getattr(node, name, None) for name in node._fields}, **parts})
