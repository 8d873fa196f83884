"""What the functions of a theorem are written in: assignments, if, for, return, numpy, and calls of one another.

The model stands for numpy where code cannot distinguish them, and one run for all runs where no call can tell itself from the
next. So a theorem refuses functions that ask what a value is (type, isinstance, id, hash, its text, its memory), that keep
something between calls, that catch an exception, or that use anything not listed here. Checks of arguments are exempt.
"""

import ast
import builtins
import inspect
import types
from collections import namedtuple

import numpy as np

from proofs.kit import leading, rank
from proofs.kit.mutants import python_function, tree
from proofs.kit.verdicts import Undecided

CHECKS = ("posref._require", "posref._contract")
STATEMENTS = (ast.Assign, ast.AugAssign, ast.Return, ast.Expr, ast.For, ast.If, ast.Raise, ast.Pass, ast.FunctionDef)
EXPRESSIONS = (ast.NamedExpr, ast.Await, ast.JoinedStr)  # refused
BUILTINS = (range, len, max, min, abs, sum, int, slice, enumerate, zip, list, tuple, bool, any, all, ValueError, TypeError)
LIBRARY = ("math", "_bisect", "itertools")  # functions, but for iterators that are made already
ATTRIBUTES = "shape ndim size T sum min max any all reshape swapaxes astype append get bit_length start stop count"
NUMPY = """arange argwhere array ascontiguousarray broadcast_shapes broadcast_to clip concatenate cumsum diff
    flatnonzero full full_like meshgrid moveaxis ndim ndindex ones ones_like repeat searchsorted stack swapaxes take_along_axis
    where zeros zeros_like lib stride_tricks sliding_window_view float32 float64 int32 int64 pi inf"""
OF_KERNELS = "dtype empty empty_like"  # compiled functions make their own memory; a formula asks for no dtype
SCOPES = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
CONSTANTS = (bool, int, float, str, type(None))

_passed = set()  # functions, with their code of the moment, in which nothing was found


def check(function):
    """Raise Undecided unless `function`, and each of its package that it calls, keeps to the language."""
    arrays = frozenset(rank.batched(function)) if hasattr(function, "contract") else frozenset()
    todo, seen = [(python_function(function), arrays)], set()
    batches = not _of_kernels(todo[0][0]) and bool(not hasattr(function, "contract") or arrays)
    package = todo[0][0].__module__.split(".")[0]
    while todo:
        function, arrays = todo.pop()
        key = function, function.__code__, batches, arrays
        if key not in seen | _passed and not function.__module__.startswith(CHECKS):
            seen.add(key)
            if hasattr(function, "__wrapped__"):
                raise _refusal(function, "a decorator, whose code is not what stands there")
            listed = f"{function.__module__}.{function.__name__}" in leading.MAY
            if batches and not listed and (asked := leading.question(tree(function).body[0], arrays)):
                raise _refusal(function, f"{asked}, which asks about leading axes")
            for callee in _calls(function):
                where = callee.__module__.split(".")[0]
                if where not in (package, "numpy"):
                    raise _refusal(function, f"{where}.{callee.__name__}")
                todo += [(callee, _received(function, callee, arrays))] * (where == package)
    _passed.update(seen)


def _received(function, callee, arrays):
    """The arguments of a function that hold arrays with leading axes, as another one calls it."""
    definition = tree(function).body[0]
    names, parameters = leading.with_leading(definition, arrays), [a.arg for a in tree(callee).body[0].args.args]
    calls = [node for node in ast.walk(definition) if arrays and isinstance(node, ast.Call)]
    own = [node for node in calls if getattr(_value(function, node.func, ()), "__name__", "") == callee.__name__]
    return frozenset().union(*(leading.received(node, names, parameters) for node in own))


def reached(function, inside=""):
    """A function, and those of its module, or of the package `inside`, that it calls, they too; checks are left out."""
    found = [python_function(function)]
    inside = inside or found[0].__module__
    for each in found:
        called = dict.fromkeys(map(python_function, _calls(each)))
        own = (f for f in called if f"{f.__module__}.".startswith(f"{inside}.") and not f.__module__.startswith(CHECKS))
        found += [f for f in own if f not in found and not f.__name__.startswith("_require")]
    return found


def _calls(function):
    """The functions that a function names, after a look at all of its words."""
    definition = tree(function).body[0]
    local = _bound(definition)
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    found = [value for value in defaults if not _constant(value)]
    if found:
        raise _refusal(function, f"the default {found[0]!r}, which can change between calls")
    checks = [node for node in ast.walk(definition) if _is_check(function, node, local)]
    words = [part for node in checks for part in ast.walk(node) if isinstance(part, ast.JoinedStr)]
    told = [*words, *(node for node in ast.walk(definition) if isinstance(node, ast.Raise))]
    told = {id(part) for node in told for part in ast.walk(node)}  # words of errors
    in_module = {id(node.value) for node in ast.walk(definition) if isinstance(node, ast.Attribute)}
    for statement in definition.body:
        for node in ast.walk(statement):
            if id(node) not in told:
                _look(function, node, local)
                yield from _named(function, node, local, in_module)


def _is_check(function, node, local):
    """A statement that calls `_require`; of it the words are not looked at."""
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    owner = _value(function, called.value, local) if isinstance(called, ast.Attribute) else None
    return isinstance(owner, types.ModuleType) and owner.__name__ == CHECKS[0]


def _look(function, node, local):
    """Refuse a statement, an operator or an attribute that is not of the language."""
    text = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__.lower()
    if (isinstance(node, ast.stmt) and not isinstance(node, STATEMENTS)) or isinstance(node, EXPRESSIONS):
        raise _refusal(function, text)
    if isinstance(node, ast.For) and node.orelse:
        raise _refusal(function, "else after a loop, which no turn runs")
    if isinstance(node, ast.BinOp) and (_text(node.left) or _text(node.right)):
        raise _refusal(function, f"{text}: a text tells a symbol from a number")
    if isinstance(node, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops) and not _with_none(node):
        raise _refusal(function, f"{text}: only `is None` says the same of a symbol and of a number")
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".append") and _argument(function, node.func.value):
        raise _refusal(function, f"{text}: an argument stays as it is")
    if isinstance(node, ast.Attribute) and (isinstance(node.ctx, ast.Store) or not _known(function, node, local)):
        raise _refusal(function, text)


def _argument(function, node):
    code = function.__code__
    return ast.unparse(node) in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def _with_none(node):
    return all(isinstance(each, ast.Constant) and each.value is None for each in node.comparators)


def _known(function, node, local):
    """Whether an attribute is of numpy's listed functions, of a module of formulas, or a listed one of a value."""
    owner, more = _value(function, node.value, local), _of_kernels(function)
    if isinstance(owner, (types.FunctionType, type)):
        return False  # its attributes can change between calls
    if not isinstance(owner, types.ModuleType):
        return node.attr in ATTRIBUTES.split() + more or node.attr in _fields(function)
    return (
        _ufunc(getattr(owner, node.attr, None)) or node.attr in NUMPY.split() + more or not owner.__name__.startswith("numpy")
    )


def _ufunc(value):
    """One of numpy's own: one that `frompyfunc` makes can hold state."""
    return isinstance(value, np.ufunc) and getattr(np, value.__name__, None) is value


def _of_kernels(function):
    return OF_KERNELS.split() if function.__module__.startswith("posref.fast") else []


def _named(function, node, local, in_module):
    """The function behind a name that is not local; what else it may be is a constant, a record or a listed builtin."""
    if not isinstance(node, (ast.Name, ast.Attribute)) or (id(node) in local):
        return
    value = _value(function, node, local)
    if isinstance(node, ast.Attribute) and (
        value is None or not isinstance(_value(function, node.value, local), types.ModuleType)
    ):
        return
    value = python_function(value) if callable(value) else value
    if isinstance(value, types.FunctionType):
        yield value
    elif isinstance(value, types.ModuleType):
        if id(node) not in in_module:
            raise _refusal(function, f"the module {value.__name__} as a value")
    elif getattr(value, "__module__", None) == "builtins" and callable(value):
        if value not in BUILTINS:
            raise _refusal(function, f"{value.__name__}()")
    elif not (_constant(value) or _ufunc(value) or _record(value) or _of_a_library(function, value)):
        raise _refusal(function, f"{ast.unparse(node)}, which can hold state")


def _of_a_library(function, value):
    where = getattr(value, "__module__", None) or ""
    numpy = where.startswith("numpy") and getattr(value, "__name__", "") in [*NUMPY.split(), *_of_kernels(function)]
    return numpy or (where in LIBRARY and isinstance(value, (type, types.BuiltinFunctionType)))


def _value(function, node, local):
    """What a name or an attribute of a module stands for; None for all others."""
    if isinstance(node, ast.Attribute):
        owner = _value(function, node.value, local)
        return getattr(owner, node.attr, None) if isinstance(owner, types.ModuleType) else None
    if not isinstance(node, ast.Name) or id(node) in local:
        return None
    outer = inspect.getclosurevars(function).nonlocals
    return outer.get(node.id, function.__globals__.get(node.id, getattr(builtins, node.id, None)))


def _bound(definition):
    """The ids of names that a scope around them binds: the function, one inside it, or a comprehension."""
    found = set()

    def walk(node, names, around):
        names = around.get(id(node), names)
        if isinstance(node, ast.Name) and node.id in names:
            found.add(id(node))
        if isinstance(node, SCOPES):
            around = {id(each): names for each in _outside(node)}
            names = names | _stores(node)
        for child in ast.iter_child_nodes(node):
            walk(child, names, around)

    walk(definition, set(), {})
    return found


def _outside(scope):
    """What stands in a scope and is evaluated around it: defaults, and what a comprehension goes through first."""
    if isinstance(scope, (ast.FunctionDef, ast.Lambda)):
        return [*scope.args.defaults, *filter(None, scope.args.kw_defaults)]
    return [scope.generators[0].iter]


def _stores(scope):
    """What a scope binds itself: its arguments, targets and functions, not those of scopes inside it."""
    names = {node.arg for node in ast.walk(getattr(scope, "args", ast.Pass())) if isinstance(node, ast.arg)}
    todo = [*ast.iter_child_nodes(scope)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        todo += [] if isinstance(node, SCOPES) else ast.iter_child_nodes(node)
    return names


def _constant(value):
    return isinstance(value, CONSTANTS) or (isinstance(value, tuple) and all(map(_constant, value)))


def _record(value):
    """A named tuple without methods of its own, whose defaults are constants."""
    fields = getattr(value, "_fields", None)
    own = isinstance(value, type) and fields is not None and not _methods(value) - _methods(namedtuple("Record", fields))
    return own and all(map(_constant, value._field_defaults.values()))


def _methods(record):
    return {name for name, value in vars(record).items() if callable(value) or isinstance(value, property)}


def _fields(function):
    """The names in the records of the function's module; what an array has too is not known by its owner."""
    known = {field for value in function.__globals__.values() if _record(value) for field in value._fields}
    return known - set(dir(np.ndarray))


def _refusal(function, what):
    return Undecided(f"{function.__name__} uses {what}: the functions of a theorem are formulas; see proofs/kit/language.py")
