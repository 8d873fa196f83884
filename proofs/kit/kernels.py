"""Kernels on symbols: every loop runs once, at a generic index, which proves the kernel for all sizes.

`range(L)` yields one symbolic index 0 <= i < L; inputs are arrays of symbolic size; the output records writes. This is sound if
no iteration can see another one, and that is checked:

* no local may be read in a loop body before it is assigned in the same iteration (definite assignment); loops are
  `for i in range(L)` with L >= 0, and statements other than these loops, if, assignments and a last return are refused;
* arrays are stored into if they are outputs, and no other arguments but outputs, arrays of symbolic size and tuples of what
  cannot be stored into can hold anything;
* the output cannot be read; in place (`out` is an input) an iteration may read only cells that it writes itself, and before it
  writes any;
* the written cells must cover the output exactly once, and a cell names every loop around its store.

Indices and sizes are Scalars: a comparison of them is answered by arithmetic or both ways in `all_paths`.

Reductions do not fit: their loops are proved by an invariant, with `proofs.kit.loops`.
"""

import ast
import types

import sympy as sp

from proofs.kit import cases, language
from proofs.kit.cases import at_case, nonnegative, settled
from proofs.kit.claims import prove_equal
from proofs.kit.indices import runs_of
from proofs.kit.mutants import python_function, tree
from proofs.kit.record import RECORD
from proofs.kit.sized import SizedArray
from proofs.kit.symbols import Scalar, expression, extent, index
from proofs.kit.verdicts import NotProved, Undecided

ALLOWED = (ast.For, ast.If, ast.Assign, ast.AugAssign, ast.Return, ast.Raise, ast.Pass)
FORBIDDEN = (ast.Lambda, ast.NamedExpr, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Yield, ast.YieldFrom)
LOOPS = ("range", "prange")


class Output:
    """A write-only array; with `contents` the same memory as an input, for kernels that work in place."""

    def __init__(self, shape, contents=None):
        self.extents, self.ndim = tuple(at_case(expression(n)) for n in shape), len(shape)
        for n in self.extents:
            cases.use(n)
        self.shape = tuple(map(extent, self.extents))
        self.contents, self.writes, self.reads = contents, [], []
        self.active = ()  # the loops running now; run_kernel keeps it

    def __setitem__(self, cell, value):
        self.writes.append((_cell(cell), expression(value), tuple(self.active)))

    def __getitem__(self, cell):
        if self.contents is None:
            raise NotProved("the kernel reads its output: iterations may depend on each other")
        if any(iteration == tuple(self.active) for _, _, iteration in self.writes):
            raise NotProved("the kernel reads in place after it has written in the same iteration")
        self.reads.append((_cell(cell), tuple(self.active)))
        return Scalar(self.contents.at(*self.reads[-1][0]))


class _Input:
    """An array of symbolic size as a kernel may see it: cells, and sizes whose comparisons are answered."""

    def __init__(self, array):
        self.array, self.shape, self.ndim = array, tuple(map(extent, array.extents)), array.ndim

    def __getitem__(self, cell):
        return self.array[cell]


def run_kernel(kernel, *args):
    """Run a kernel's Python source with one generic iteration per loop; returns the loops as (index, length)."""
    function = python_function(kernel)
    check_iterations_are_independent(function)
    loops, active = [], []

    def one_generic(*bounds):
        if len(bounds) != 1:
            raise Undecided(f"range{bounds}; start loops at 0")
        length = settled(expression(bounds[0]))
        if not nonnegative(length):
            raise Undecided(f"a loop of length {length}, which may be negative")
        if length == 0:
            return
        i = index(length)
        loops.append((i, length))
        active.append(i)
        yield Scalar(i)
        active.pop()

    for a in args:
        if isinstance(a, Output):
            a.active = active
        elif not _is_fixed(a):
            raise Undecided(f"a {type(a).__name__} as an argument, by which iterations could pass something on")
    namespace = {**function.__globals__, "range": one_generic, "prange": one_generic}
    generic = types.FunctionType(function.__code__, namespace, function.__name__, function.__defaults__)
    with cases.kernel():
        generic(*map(_seen, args))
    return loops


def _is_fixed(a):
    """Nothing can be stored into it: an input, a number, None or a tuple of these."""
    kinds = SizedArray, Scalar, sp.Expr, int, float, type(None)
    return all(map(_is_fixed, a)) if type(a) is tuple else isinstance(a, kinds)


def _seen(a):
    """An argument as the kernel may see it."""
    if type(a) is tuple:
        return tuple(map(_seen, a))
    return _Input(a) if isinstance(a, SizedArray) else Scalar(a) if isinstance(a, sp.Expr) else a


def prove_kernel(kernel, arguments, *results):
    """The kernel writes every cell of each output exactly once, each with the value that the specification has there.

    `results` are pairs (output, what the specification returns for the same symbolic arrays); sizes are symbols, so this holds
    for all. The outputs are among the arguments.
    """
    given = [*map(id, (a for a in arguments if isinstance(a, SizedArray)))]
    if len(given) > len({*given}):
        raise NotProved(f"{kernel.__name__} gets the same array for two arguments; pass one for each")
    loops = run_kernel(kernel, *arguments)
    if not results:
        raise NotProved("nothing to compare")
    if any(isinstance(a, Output) and not any(a is out for out, _ in results) for a in arguments):
        raise NotProved("an output that is compared with nothing")
    for out, expected in results:
        _prove_cover(out, loops)
        own = {(cell, iteration) for cell, _, iteration in out.writes}
        if not set(out.reads) <= own:
            raise NotProved("the kernel reads cells in place that another iteration writes")
        if expected.ndim != out.ndim or any(sp.expand(a - b) != 0 for a, b in zip(expected.extents, out.extents, strict=True)):
            raise NotProved(f"the specification has shape {expected.shape}, the output {out.extents}")
        written = [*out.writes]
        out.writes.clear()  # what is expected is no write of the kernel
        said = [expected.at(*cell) for cell, _, _ in written]
        out.writes.extend(written)
        prove_equal([value for _, value, _ in written], said)
    RECORD.kernels.append((kernel, arguments, results))


def _prove_cover(out, loops):
    """The written cells are a product of partitions of the axes, and every loop is used for one of them."""
    lengths = dict(loops)
    cells = [cell for cell, _, _ in out.writes]
    for cell, _, iteration in out.writes:
        if set(iteration) != set(lengths) & set().union(*(part.free_symbols for part in cell)):
            raise NotProved(f"the store to {cell} stands in loops over {iteration}")
    product, used = 1, []
    for axis, length in enumerate(out.extents):
        members = {cell[axis] for cell in cells}
        used += _partition(members, length, lengths)
        product *= len(members)
    if len(set(cells)) != len(cells) or product != len(cells) or sorted(used, key=str) != sorted(lengths, key=str):
        raise NotProved(f"the {len(cells)} writes do not cover an output of shape {out.shape} exactly once")


def _partition(members, extent, lengths):
    """The loops whose indices partition range(extent): runs of {i}, {2i, 2i + 1} or {i, i + length}, one after the other."""
    start, rest, used = sp.Integer(0), set(members), []
    while rest:
        run = next((run for i in lengths for run in runs_of(i, lengths[i], start) if run[1] <= rest and i not in used), None)
        if run is None:
            break
        i, cells, count = run
        start, rest, used = sp.expand(start + count), rest - cells, [*used, i]
    if rest or sp.expand(start - extent) != 0:
        raise NotProved(f"writes at {sorted(map(str, members))} do not cover an axis of length {extent} exactly once")
    return used


def _cell(key):
    return tuple(sp.expand(expression(k)) for k in (key if isinstance(key, tuple) else (key,)))


# definite assignment


def check_iterations_are_independent(function):
    """Refuse every kernel in which one iteration could see a local that another one assigned."""
    language.check(function)
    definition = tree(function).body[0]
    ranges = {id(node.iter.func) for node in ast.walk(definition) if isinstance(node, ast.For) and _is_range(node.iter)}
    for node in ast.walk(definition):
        statement = isinstance(node, ast.stmt) and node is not definition
        if isinstance(node, FORBIDDEN) or (statement and not isinstance(node, ALLOWED)):
            raise Undecided(f"{type(node).__name__} in a kernel")
        if isinstance(node, ast.For) and any(isinstance(inner, ast.Return) for inner in ast.walk(node)):
            raise Undecided("return inside a loop")
        if isinstance(node, ast.For) and (not _is_range(node.iter) or node.orelse):
            raise Undecided(f"a loop that is not `for i in range(length)`: {ast.unparse(node.iter)}")
        if isinstance(node, ast.Name) and node.id in LOOPS and id(node) not in ranges:
            raise Undecided(f"{node.id} outside the head of a loop")
    arguments = {a.arg for a in definition.args.args}
    local = _names(definition, ast.Store)
    if not _stored_arrays(definition) <= arguments - local:
        raise Undecided("a store into an array that is no argument")
    _scan(definition.body, arguments, set())


def _is_range(node):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LOOPS


def _stored_arrays(definition):
    """What is stored into by index or by attribute: the text in front."""
    targets = [node for node in ast.walk(definition) if isinstance(node, (ast.Subscript, ast.Attribute))]
    return {ast.unparse(node.value) for node in targets if isinstance(node.ctx, ast.Store)}


def _scan(statements, assigned, carried):
    """Names certainly assigned after the statements; `carried`, which grows, are names that a loop around or before assigns."""
    for s in statements:
        if isinstance(s, ast.For):
            _read(s.iter, assigned, carried)
            stored = {name for b in s.body for name in _names(b, ast.Store)}
            target = _names(s.target, ast.Store)
            _scan(s.body, (assigned - stored) | target, carried | stored)
            assigned = assigned - stored - target
            carried.update(stored | target)
        elif isinstance(s, ast.If):
            _read(s.test, assigned, carried)
            assigned = _scan(s.body, set(assigned), carried) & _scan(s.orelse, set(assigned), carried)
        elif isinstance(s, ast.AugAssign):
            if not isinstance(s.target, ast.Name):
                raise Undecided("an augmented store into an array")
            _read(s.value, assigned, carried)
            _read(ast.Name(s.target.id, ast.Load()), assigned, carried)
            assigned = assigned | {s.target.id}
        elif isinstance(s, ast.Assign):
            _read(s.value, assigned, carried)
            for target in s.targets:
                _read(target, assigned, carried)
                assigned = assigned | _names(target, ast.Store)
        else:
            _read(s, assigned, carried)
    return assigned


def _names(node, context):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


def _read(node, assigned, carried):
    late = (_names(node, ast.Load) & carried) - assigned
    if late:
        raise NotProved(f"locals carried from one iteration to the next: {sorted(late)}")
