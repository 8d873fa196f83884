"""Theorems in numbers: what the model says a shipped function returns, against what numpy returns.

The body of a theorem runs once on symbols, and its calls of shipped functions are noted. Each is made again on arrays,
read-only, at sizes 1 to 256 and in float64, float32 and integers; a cell of the result has to be what the symbolic result says
for the same numbers. So a cast, a width that wraps, a write to an argument and a branch that the model does not see are seen
here. Inputs are multiples of a unit near 1/8 that the dtype holds and the next narrower one does not.

The tolerance is 64 units in the last place of the dtype, of the largest number that the model's expression meets.
"""

import ast
import copy
import inspect
import types
import zlib
from contextlib import ExitStack

import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef

from proofs.kit import cases, paths
from proofs.kit.cases import every_case
from proofs.kit.mutants import code_of, python_function, swapped, tree
from proofs.kit.sized import SizedArray, generic, pair
from proofs.kit.symbols import Scalar
from proofs.kit.verdicts import Refuted, Undecided

SIZES = [(n, n) for n in (1, 2, 3, 17, 64, 80, 128, 256)] + [(64, 1), (17, 3)]  # (all sizes, the one called n)
CELLS = 24  # compared in each result
LARGEST = 2**18  # cells of an argument or a result; larger ones are left out
ALIKE = 2  # calls of one function with the same words that are tried
DTYPES = (np.float64, np.float32, np.int64)
ULPS = 64
ANY_NUMBER = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS  # of arguments: such calls are not noted


class Beyond(Exception):
    """Not evaluated: outside what this module knows."""


def check(theorem):
    """Every noted call agrees; returns how many results were compared. Raises Refuted."""
    calls = _distinct(noted(theorem))
    return sum(_agree(*call, size, dtype) for call in calls for size in SIZES for dtype in DTYPES)


def _distinct(calls):
    """The first few calls of every function with the same words and the same result of a tuple."""
    kept, seen = [], {}
    for call in calls:
        words = [(name, value if isinstance(value, (str, bool)) else type(value).__name__) for name, value in call[1].items()]
        key = str((call[0].__name__, words, call[3]))
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= ALIKE:
            kept.append(call)
    return kept


# calls


_calls, _depth = [], 0


def noted(theorem):
    """(function, arguments, result) of the calls from the body of the theorem, on symbols of symbolic size."""
    global _calls
    _calls = []
    functions = {python_function(f): f for f in theorem.of if isinstance(python_function(f), types.FunctionType)}
    plain = {f: _copy(f) for f in functions if not hasattr(functions[f], "py_func") and not f.__code__.co_flags & ANY_NUMBER}
    with ExitStack() as stack:
        for number, f in enumerate(plain):
            stack.enter_context(swapped(f, _noting(f, number)))
        _noting.table = [(functions[f], plain[f]) for f in plain]
        for _, error in every_case(theorem.body):
            if error is not None:
                raise error
            break
    return [call for call in _calls if any(isinstance(a, SizedArray) for a in call[1].values())]


def _copy(f):
    copy = types.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    copy.__kwdefaults__ = f.__kwdefaults__
    return copy


def _noting(f, number):
    """Code that notes the call and makes it."""
    root = copy.deepcopy(tree(f))  # of a mutant its own
    names = [a.arg for a in (*root.body[0].args.posonlyargs, *root.body[0].args.args, *root.body[0].args.kwonlyargs)]
    listed = ", ".join(f"{name!r}: {name}" for name in names)
    root.body[0].body = ast.parse(f"return __import__({__name__!r}, fromlist=['x']).called({number}, {{{listed}}})").body
    return code_of(f, root)


def called(number, arguments):
    """One call: made, and noted if it comes from the body of the theorem and on no path of its own."""
    global _depth
    public, plain = _noting.table[number]
    _depth += 1
    try:
        keywords = {
            name: value for name, value in arguments.items() if name in (plain.__kwdefaults__ or ()) or _is_keyword(plain, name)
        }
        result = plain(*[v for name, v in arguments.items() if name not in keywords], **keywords)
    finally:
        _depth -= 1
    if _depth == 0 and paths._oracle is None:
        results = result if isinstance(result, tuple) else (result,)
        _calls.extend((public, arguments, r, number if isinstance(result, tuple) else None) for number, r in enumerate(results))
    return result


def _is_keyword(f, name):
    code = f.__code__
    return name in code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]


# agreement


def _agree(function, arguments, result, number, size, dtype):
    """Compare one call at one size in one dtype; 1 if it could be compared."""
    try:
        given = {name: numeric(value, size, dtype) for name, value in arguments.items()}
        cells, expected, largest = _expected(result, size, dtype)
    except (Beyond, Undecided, OverflowError):
        return 0
    try:
        with np.errstate(all="ignore"):
            positional = {name: v for name, v in given.items() if not _is_keyword(python_function(function), name)}
            got = function(*positional.values(), **{name: v for name, v in given.items() if name not in positional})
    except (TypeError, ValueError) as error:
        if "read-only" in str(error):
            raise Refuted(f"{function.__name__} writes to an argument (size {size}, {dtype.__name__})") from error
        return 0  # a contract refuses these numbers
    got = np.asarray(got if number is None else got[number])[tuple(cells)]
    allowed = ULPS * np.finfo(np.float64 if dtype is np.int64 else dtype).eps * (1 + largest)
    wrong = got != expected if got.dtype == bool else ~(np.abs(got - expected) <= allowed)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0]) if wrong.ndim else 0
        values = np.ravel(got)[at], np.ravel(expected)[at]
        raise Refuted(f"{function.__name__} at size {size} in {dtype.__name__} returns {values[0]}, the model says {values[1]}")
    return 1


def _expected(result, size, dtype):
    """Some cells of a symbolic result: their indices, their values, and the largest number met."""
    if not isinstance(result, SizedArray):
        raise Beyond
    shape = [_length(n, size) for n in result.extents]
    if np.prod(shape) > LARGEST:
        raise Beyond
    source, meter = np.random.default_rng(size), Meter(size, dtype)
    known, parts = {}, []
    with paths.answered_by(_no_answer):
        for axes, expression in _cells(result):
            for i in set().union(*(axis.free_symbols & cases._bounds.keys() for axis in axes)):
                known[i] = source.integers(0, _length(cases._bounds[i], size), CELLS)
            values = np.broadcast_to(meter.value(expression, known), (CELLS,))
            parts.append(([np.broadcast_to(meter.value(axis, known), (CELLS,)) for axis in axes], values))
    cells = [np.concatenate([part[0][axis] for part in parts]) for axis in range(len(shape))]
    return cells, np.concatenate([values for _, values in parts]), meter.largest


def _cells(result):
    """Generic cells and their expressions: one, or both members of a generic pair of the last axis."""
    try:
        axes = generic(result.extents)
        return [(axes, result.at(*axes))]
    except Undecided:
        lead = generic(result.extents[:-1])
    for layout in ("half", "interleaved"):
        try:
            return [((*lead, j), result.at(*lead, j)) for j in pair(layout, result.extents[-1])[1:]]
        except Undecided:
            continue
    raise Beyond


def _no_answer(relation):
    raise Beyond


def numeric(value, size, dtype):
    """The argument that numpy gets."""
    if isinstance(value, sp.Basic):
        value = Scalar(value)
    if isinstance(value, SizedArray):
        shape = [_length(n, size) for n in value.extents]
        if np.prod(shape) > LARGEST:
            raise Beyond
        axes = generic(value.extents)
        cells = np.indices(shape)
        known = {axis: cell for axis, cell in zip(axes, cells, strict=True) if axis.is_Symbol}
        out = np.broadcast_to(Meter(size, dtype).value(value.at(*axes), known), shape)
        kind = {"b": bool, "i": np.int64, "f": dtype}[value.kind]
        if kind is np.int64 and (out != np.round(out)).any():
            kind = np.float64  # cosines of whole numbers
        out = np.array(out.astype(kind))
        out.flags.writeable = False
        return out
    if isinstance(value, Scalar):
        number = Meter(size, dtype).value(value.e, {})
        return int(number) if value.e.is_integer else dtype(number)
    if isinstance(value, np.ndarray):
        raise Beyond
    return value


def _length(e, size):
    return int(Meter(size).value(e, {}))


class Meter:
    """The value of an expression in float64 for arrays of indices, and the largest magnitude on the way."""

    def __init__(self, size, dtype=np.float64):
        self.size, self.whole, self.largest = size, dtype is np.int64, 0.0
        self.unit = 1 / 8 + 2.0 ** (-18 if dtype is np.float32 else -40)

    def entry(self, name, indices):
        """Up to 7 units, of either sign, for every cell of an array; -1, 0 or 1 where numbers are to be whole."""
        number = _entry(name, indices)
        return np.sign(number) if self.whole else number * self.unit

    def value(self, e, known):
        v = self._value(e, known)
        self.largest = max(self.largest, float(np.max(np.abs(v), initial=0.0)))
        return v

    def _value(self, e, known):
        if e in known:
            return known[e]
        if e.is_Number:
            return float(e) if not e.is_Integer else int(e)
        if e is sp.true or e is sp.false:
            return bool(e)
        if e.is_Symbol:
            if e in cases._sizes:
                return self.size[e.name == "n"]
            return (
                int(_entry(e.name, [])) % 3 + 1
                if e.is_integer
                else 1
                if self.whole
                else (abs(_entry(e.name, [])) + 1) * self.unit
            )
        if isinstance(e, sp.Indexed):
            return self.entry(str(e.base.label), [self.value(i, known) for i in e.indices])
        if isinstance(e, AppliedUndef):
            if e.func.__name__.startswith("extremum_"):
                return 0.5  # any number: results may not depend on it
            at = [self.value(i, known) for i in e.args]
            return _entry(e.func.__name__, at) if e.is_integer else self.entry(e.func.__name__, at)
        if isinstance(e, sp.Sum):
            return self._sum(e, known)
        if e.func in OPERATIONS:
            return OPERATIONS[e.func](*[self.value(a, known) for a in e.args])
        if e.is_Add or e.is_Mul:
            total = self.value(e.args[0], known)
            for a in e.args[1:]:
                total = total + self.value(a, known) if e.is_Add else total * self.value(a, known)
            return total
        raise Beyond

    def _sum(self, e, known):
        (j, _, high), *rest = e.limits[::-1]
        body = sp.Sum(e.function, *rest[::-1]) if rest else e.function
        high = self.value(high, known)
        count = int(np.max(high)) + 1
        depth = max([np.ndim(v) for v in known.values()] + [np.ndim(high)])
        indices = np.arange(count).reshape(count, *[1] * depth)
        terms = self.value(body, {**known, j: indices})
        return np.where(indices <= high, terms, 0).sum(axis=0)


OPERATIONS = {
    sp.Pow: lambda a, b: np.power(np.asarray(a, dtype=float), b),
    sp.exp: np.exp,
    sp.cos: np.cos,
    sp.sin: np.sin,
    sp.log: np.log,
    sp.tanh: np.tanh,
    sp.floor: np.floor,
    sp.LessThan: np.less_equal,
    sp.StrictLessThan: np.less,
    sp.GreaterThan: np.greater_equal,
    sp.StrictGreaterThan: np.greater,
    sp.Equality: np.equal,
}


def _entry(name, indices):
    """A whole number between -7 and 7 for every cell of an array."""
    seed = zlib.crc32(name.encode())
    mixed = np.asarray(seed % 97)
    for place, i in enumerate(indices):
        mixed = (mixed * 31 + (np.asarray(i).astype(np.int64) + 1) * (7 + 2 * place) * (1 + seed % 5)) % 9973
    return mixed % 15 - 7
