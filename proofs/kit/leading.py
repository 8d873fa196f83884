"""Leading axes: a body may hand on how many there are and how long they are; it may not ask.

A theorem runs a function at one rank, and a batch in numbers has two rows. So what stands for the leading axes (`x.ndim`, a
part of `x.shape` from the front, names for them) goes into a shape or an axis and into nothing else: no comparison, no
product, no index, no loop. A sum over all axes mixes the rows of a batch, and is refused, too.
"""

import ast

INTO = ["range", "tuple", "len", "reshape", "broadcast_to", "broadcast_shapes"]  # calls that take them
STILL = ["range", "tuple", "len", "broadcast_shapes", "ndim"]  # calls whose results stand for them, too
REDUCTIONS = ["sum", "min", "max", "any", "all"]


def question(definition):
    """The first expression of a function that asks about leading axes, as text; "" if there is none."""
    handed, before = set(), None
    while handed != before:  # until no assignment hands them on to another name
        before = {*handed}
        bound = [pair for node in ast.walk(definition) if isinstance(node, ast.Assign) for pair in _pairs(node)]
        handed |= {target.id for target, value in bound if isinstance(target, ast.Name) and _stands(value, handed)}
    return next((ast.unparse(node) for node in ast.walk(definition) if _asks(node, handed)), "")


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
        return node.attr in ("ndim", "shape")
    if isinstance(node, ast.Subscript):
        from_the_front = isinstance(node.slice, ast.Slice) and not isinstance(node.slice.lower, ast.UnaryOp)
        return from_the_front and _stands(node.value, handed)
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
