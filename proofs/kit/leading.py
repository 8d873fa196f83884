"""Leading axes: a body may hand on how many there are and how long they are; it may not ask.

A theorem runs a function at one rank, and a batch in numbers has two rows. So what stands for the leading axes (`x.ndim`,
`x.size`, a part of `x.shape`, names for them) goes into a shape or an axis and into nothing else: no comparison, no product, no
index, no loop. A sum over all axes mixes the rows of a batch, and is refused, too. An array that may have leading axes is
indexed from the back, `x[..., :h]`, and has no length and no turns: its first axis is the batch.
"""

import ast
import builtins

INTO = ["range", "tuple", "len", "reshape", "broadcast_to", "broadcast_shapes"]  # calls that take them
STILL = ["range", "tuple", "len", "broadcast_shapes", "ndim"]  # calls whose results stand for them, too
LIBRARY = ["itertools", "math", "bisect"]
MAY = {  # with and without an axis of heads -> the theorem that runs both
    "posref.attention.with_heads_of": "grouped_heads",
    "posref.attention._summed_over_sharing": "gradient_by_calculus",
}
REDUCTIONS = ["sum", "min", "max", "any", "all"]


def question(definition, arrays=()):
    """The first expression of a function that asks about leading axes, as text; "" if there is none.

    `arrays` are those of its arguments that may have some.
    """
    handed, first = _closed(definition, set(), _stands), with_leading(definition, arrays)
    asked = (node for node in ast.walk(definition) if _asks(node, handed) or _of_the_first(node, first))
    return next(map(ast.unparse, asked), "")


def with_leading(definition, arrays):
    """The names of a function that hold arrays with leading axes, if these arguments do."""
    return _closed(
        definition, {*arrays}, lambda value, names: not isinstance(value, (ast.List, ast.Tuple)) and _has(value, names)
    )


def received(call, arrays, parameters):
    """The parameters that a call hands an array with leading axes."""
    given = [*zip(parameters, call.args, strict=False), *((keyword.arg, keyword.value) for keyword in call.keywords)]
    return {name for name, value in given if _has(value, arrays)}


def _closed(definition, names, holds):
    """The names, and those that an assignment hands them on to."""
    bound = [pair for node in ast.walk(definition) if isinstance(node, ast.Assign) for pair in _pairs(node)]
    while more := {t.id for t, value in bound if isinstance(t, ast.Name) and t.id not in names and holds(value, names)}:
        names = names | more
    return names


def _has(node, arrays):
    """Whether an expression is an array with leading axes: one of these, a part of it, or what numpy makes of it."""
    if isinstance(node, (ast.Name, ast.Subscript)):
        return _has(node.value, arrays) if isinstance(node, ast.Subscript) else node.id in arrays
    if isinstance(node, ast.Call):
        method = isinstance(node.func, ast.Attribute) and _has(node.func.value, arrays)
        return method or (_word(node.func) not in [*STILL, *dir(builtins)] and any(_has(a, arrays) for a in node.args))
    parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else ast.iter_child_nodes(node)
    holds = (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.List, ast.Tuple, ast.Starred)
    return isinstance(node, holds) and any(_has(part, arrays) for part in parts)


def _of_the_first(node, arrays):
    """Whether a node goes along the first axis of such an array."""
    if isinstance(node, ast.Subscript):
        index = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
        return _has(node.value, arrays) and not (isinstance(index, ast.Constant) and index.value is ...)
    if isinstance(node, ast.Call):
        owner = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        handed = any(_has(a, arrays) and not isinstance(a, (ast.List, ast.Tuple)) for a in node.args)
        python = ast.unparse(owner) in LIBRARY or (isinstance(node.func, ast.Name) and node.func.id in dir(builtins))
        return (handed and python and _word(node.func) != "abs") or (_has(node, arrays) and _from_the_front(node))
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        return isinstance(node.value, (ast.Name, ast.Subscript)) and _has(node.value, arrays)
    if isinstance(node, ast.Attribute):
        return node.attr == "T" and _has(node.value, arrays)
    iterated = node.iter if isinstance(node, (ast.For, ast.comprehension)) else getattr(node, "value", None)
    along = isinstance(node, (ast.For, ast.comprehension, ast.Starred))
    return along and isinstance(iterated, (ast.Name, ast.Subscript)) and _has(iterated, arrays)


def _from_the_front(call):
    """Whether a call counts an axis from the front."""
    axes = [
        keyword.value for keyword in call.keywords if keyword.arg in ("axis", "axes", "axis1", "axis2", "source", "destination")
    ]
    axes += call.args if _word(call.func) in ("swapaxes", "moveaxis") else []
    return any(isinstance(axis, ast.Constant) and type(axis.value) is int for axis in axes)


def _pairs(assignment):
    """Targets and values; a part of `a, b = x.shape` has none, for then there are two axes, but the rest in `*a, b` has."""
    target, value = assignment.targets[0], assignment.value
    if not isinstance(target, ast.Tuple):
        return [(target, value)]
    if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
        return [*zip(target.elts, value.elts, strict=True)]
    return [(part.value, value) for part in target.elts if isinstance(part, ast.Starred)]


def _stands(node, handed):
    """Whether an expression stands for the leading axes."""
    if isinstance(node, ast.Name):
        return node.id in handed
    if isinstance(node, ast.Attribute):
        return node.attr in ("ndim", "shape", "size")
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and _stands(node.value, handed)
    if isinstance(node, ast.Call):
        return _word(node.func) in STILL and (_word(node.func) == "ndim" or any(_stands(a, handed) for a in node.args))
    return any(_stands(child, handed) for child in ast.iter_child_nodes(node))


def _asks(node, handed):
    stands = lambda *nodes: any(_stands(each, handed) for each in nodes)
    if isinstance(node, ast.Compare):
        return stands(node.left, *node.comparators)
    if isinstance(node, ast.BoolOp):
        return stands(*node.values)
    if isinstance(node, (ast.If, ast.IfExp)):
        return stands(node.test)
    if isinstance(node, (ast.For, ast.comprehension)):
        return stands(node.iter)
    if isinstance(node, ast.Subscript):
        return stands(node.slice)
    if isinstance(node, ast.BinOp):
        sum_of_numbers = isinstance(node.op, (ast.Add, ast.Sub)) and isinstance(node.right, (ast.Constant, ast.Tuple))
        return stands(node.left, node.right) and not sum_of_numbers
    if isinstance(node, ast.Call):
        words = {keyword.arg for keyword in node.keywords}
        reduced = (
            isinstance(node.func, ast.Attribute) and node.func.attr in REDUCTIONS and not node.args and "axis" not in words
        )
        return reduced or (stands(*node.args) and _word(node.func) not in INTO)
    return False


def _word(function):
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
