"""Leading axes: a body may hand on how many there are and how long they are; it may not ask.

A theorem runs a function at one rank, and a batch in numbers has two rows. So what stands for the leading axes (`x.ndim`,
`x.size`, a part of `x.shape`, names for them) goes into a shape or an axis and into nothing else: no comparison, no product, no
index, no loop. A sum over all axes mixes the rows of a batch, and is refused, too. An array that may have leading axes is
indexed from the back, `x[..., :h]`, and has no length and no turns: its first axis is the batch.
"""

import ast

INTO = ["range", "tuple", "len", "reshape", "broadcast_to", "broadcast_shapes"]  # calls that take them
STILL = ["range", "tuple", "len", "broadcast_shapes", "ndim"]  # calls whose results stand for them, too
OF_THE_FIRST = ["len", "enumerate", "zip", "list", "tuple", "sum", "max", "min", "any", "all"]
MAY = {"with_heads_of": "grouped_heads", "_summed_over_sharing": "gradient_by_calculus"}  # with and without an axis of heads
REDUCTIONS = ["sum", "min", "max", "any", "all"]


def question(definition, arrays=()):
    """The first expression of a function that asks about leading axes, as text; "" if there is none.

    `arrays` are those of its arguments that may have some.
    """
    if definition.name in MAY:
        return ""
    handed, first = _closed(definition, set(), _stands), _closed(definition, {*arrays}, _has)
    asked = (node for node in ast.walk(definition) if _asks(node, handed) or _of_the_first(node, first))
    return next(map(ast.unparse, asked), "")


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
        return (
            ast.unparse(node.func).startswith("np.")
            and _word(node.func) not in STILL
            and any(_has(a, arrays) for a in node.args)
        )
    parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else ast.iter_child_nodes(node)
    return isinstance(node, (ast.BinOp, ast.UnaryOp, ast.IfExp)) and any(_has(part, arrays) for part in parts)


def _of_the_first(node, arrays):
    """Whether a node goes along the first axis of such an array."""
    if isinstance(node, ast.Subscript):
        index = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
        return _has(node.value, arrays) and not (isinstance(index, ast.Constant) and index.value is ...)
    if isinstance(node, ast.Call):
        return _word(node.func) in OF_THE_FIRST and isinstance(node.func, ast.Name) and any(_has(a, arrays) for a in node.args)
    return isinstance(node, (ast.For, ast.comprehension)) and _has(node.iter, arrays)


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
