"""Contracts: annotations state what a function takes; compiled checks test its arguments before its body runs.

    @contract
    def rotate(x: Numbers[Array, "... n? rotary_dim+"], cos: Numbers[Array, "(...) #n rotary_dim/2"],
               sin: Numbers[Array, "=cos"], *, layout: Layout, rotary_dim: Even | None = None) -> Numbers[Array, "... n? d"]:

Axes. A name is an extent: one number, the same in all arguments of a call. An integer argument of that name is this number.

    n               an extent                               2*span, dim/2     a multiple, a half; never empty
    n!              n, never empty; 3 is exactly 3          n_query+n_key-1   a sum; n+2 is at least 2
    #n              n, or 1, or missing in front            a|b               a or b
    n?              may be missing, in front                rotary_dim+       rotary_dim if that argument was given, or more
    h%h_key         h, a multiple of h_key                  n_key>=n_query    n_key, at least n_query
    n ...           n is the first axis, and any other axes follow
    ...             leading axes, which broadcast together with those of the other arguments
    %...            as ..., but the last one may divide that of earlier arguments: several query heads share a key head
    #...            leading axes that broadcast to these and enlarge nothing; in `2 #... d` they follow the axis of length 2
    (...)           as #..., but with no leading axes or all of them: so a batch of masks is never read as heads
    [...]           no leading axes or all of them; they may enlarge leading axes of length 1
    =x              exactly the shape of the argument x

Kinds. Numbers, Signed (no unsigned integers, which wrap below 0), Integers, SignedIntegers, Booleans, Complex, Anything. Two
marks may follow the axes: `kept` (integers keep their dtype) and `finite` (NaN and infinities are refused). An argument is
marked `finite` only where NaN would not show in the result: it is compared, clipped, masked or exponentiated. Object arrays,
which hold symbols, fit every kind. np.matrix fits none, because its * is @ and it always has two axes.

Scalars. Integer, Count (at least 1), Even (at least 2), Number, Positive, AboveOne, Factor (at least 1), Fraction (0 to 1).
A choice is a Literal, a flag a bool, and a function a Callable. A NamedTuple and a tuple[..] of arrays are checked part by
part. `| None` makes an argument optional.

`contract` compiles one function of plain comparisons, `<contract of rope.rotate>`. It checks the arguments, then calls the body
with them unchanged, except that NumPy integers are widened, because their sums and products wrap: a single one becomes Python's
int, an array becomes int64. An array marked `kept` keeps its dtype, because the body only moves its values. `f.contract` is the
contract as data, `f.contract.source` the code of the checks, and `f.__wrapped__` the body. A type checker sees the kinds as
`typing.Annotated`, and the scalars as int and float.
"""

import collections.abc
import inspect
import linecache
import textwrap
import typing
from typing import Any, TypeVar, overload

import numpy as np

from posref._contract.axes import joined, reaches, shape_of, shared
from posref._contract.code import source_of
from posref._contract.errors import Errors
from posref._contract.kinds import (
    AboveOne,
    Anything,
    Array,
    Arrays,
    Booleans,
    Complex,
    Count,
    Even,
    Factor,
    Fraction,
    Integer,
    Integers,
    Number,
    Numbers,
    Positive,
    Signed,
    SignedIntegers,
    finite,
    kept,
)
from posref._contract.values import Argument, fields, is_record, unwrapped

__all__ = [
    "AboveOne",
    "Anything",
    "Array",
    "Booleans",
    "Complex",
    "Count",
    "Even",
    "Factor",
    "Fraction",
    "Integer",
    "Integers",
    "Number",
    "Numbers",
    "Positive",
    "Signed",
    "SignedIntegers",
    "contract",
    "finite",
    "kept",
    "twin",
]

F = TypeVar("F", bound=collections.abc.Callable[..., Any])


class Contract(Errors):
    """What a function takes, as data, and the errors for arguments that do not fit."""

    def __init__(self, function, remedies, specification=None, finds=()):
        self.function = f"{function.__module__.split('posref.')[-1]}.{function.__name__}"
        self.where = ".".join(self.function.split(".")[-2:])
        if self.function.startswith("fast."):
            self.where = f"fast.{self.where}"
        self.signature, self.remedies, self.specification = inspect.signature(function), remedies, specification
        said = specification.signature.parameters if specification else {}
        self.returns = specification.returns if specification else self.signature.return_annotation
        self.arguments = {}
        for name, parameter in self.signature.parameters.items():
            annotation = said.get(name, parameter).annotation
            if name in finds:
                annotation = annotation._replace(marks=tuple(mark for mark in annotation.marks if mark != finite))
            self._add(name, annotation, parameter.default, remedies.get(name, ""))
        self.filename = f"<contract of {self.where}>"
        self.source = source_of(function.__name__, self)

    def _add(self, name, annotation, default, remedy, inside_optional=False):
        rule, optional = unwrapped(annotation)
        optional = optional or inside_optional
        if rule is bool:
            rule = typing.Literal[True, False]
        shape = shape_of(rule.axes) if isinstance(rule, Arrays) else None
        self.arguments[name] = Argument(name, rule, shape, optional, default, remedy)
        for field, kind in fields(rule):
            self._add(f"{name}{field}", kind, inspect.Parameter.empty, remedy, optional)


@overload
def contract(function: F) -> F: ...
@overload
def contract(**remedies: str) -> collections.abc.Callable[[F], F]: ...
def contract(function: Any = None, **remedies: str) -> Any:
    """Compile the annotations of `function` into checks that run before its body.

    Each keyword names an argument. Its value is the remedy that ends every error about the shape or value of that argument.
    """
    if function is None:
        return lambda f: contract(f, **remedies)
    made = Contract(function, remedies)
    return compiled(function, made, made.source)


def twin(specification: Any, *, finds: tuple[str, ...] = (), **remedies: str) -> collections.abc.Callable[[F], F]:
    """Compile the contract of a specification before a function that takes the same arguments and more, such as `out`.

    Arguments in `finds` are not searched for NaN by the contract: the function itself finds NaN, and raises `not_finite`.
    """
    said = specification.contract

    def wrap(function):
        made = Contract(function, said.remedies | remedies, said, finds)
        return compiled(function, made, made.source)

    return wrap


def compiled(function, made, source):
    """`function`, called after the checks in `source`. The proofs also compile an edited source: a mutant of the contract."""
    defaults = {f"_default_{name}": parameter.default for name, parameter in made.signature.parameters.items()}
    given = {
        "_body": function,
        "_refuse": made,
        "_joined": joined,
        "_shared": shared,
        "_reaches": reaches,
        **defaults,
        **_HELPERS,
        **_records(made),
    }
    text = f"def make({', '.join(given)}):\n{textwrap.indent(source, '    ')}    return {function.__name__}\n"
    space: dict = {}
    exec(compile(text, made.filename, "exec"), function.__globals__, space)
    result = space["make"](**given)
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        setattr(result, attribute, getattr(function, attribute))
    result.__wrapped__, result.contract = function, made
    linecache.cache[made.filename] = (len(text), None, text.splitlines(keepends=True), made.filename)
    return result


_HELPERS = {
    "_isfinite": np.isfinite,
    "_matrix": np.matrix,
    "_int64": np.dtype(np.int64),
    "_integer": int,
    "_number": float,
    "_tuple": tuple,
    "_list": list,
}


def _records(made):
    return {f"_record_{name}": a.rule for name, a in made.arguments.items() if is_record(a.rule)}
