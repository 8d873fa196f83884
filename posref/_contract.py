"""Contracts: what a function takes, said once by its annotations and checked before its body.

    @contract
    def rotate(x: Numbers[Array, "... n? rotary_dim+"], cos: Numbers[Array, "(...) #n rotary_dim/2"],
               sin: Numbers[Array, "=cos"], *, layout: Layout, rotary_dim: Even | None = None) -> Numbers[Array, "... n? d"]:

Axes. A name is an extent, one number over all arguments of a call; an integer argument of that name is that number too.

    n               an extent                               2*span, dim/2     a multiple, a half; never empty
    n!              n, never empty; 3 is just this          n_query+n_key-1   a sum; n+2 is at least 2
    #n              n, or 1, or missing in front            a|b               one of two
    n?              may be missing, in front                rotary_dim+       rotary_dim if that argument was given, or more
    h%h_key         h, a multiple of h_key                  n_key>=n_query    n_key, not less than n_query
    n ...           axes from the front, and any others behind them
    ...             leading axes, which broadcast together with those of the other arguments
    %...            ..., where the last may divide that of the arguments before: heads of keys that queries share
    #...            leading axes that broadcast to them and enlarge nothing; in 2 #... d they stand behind the axis of 2
    (...)           the same, and none or all of them: so a batch of masks is never read as heads
    [...]           none or all of them, and may enlarge those of length 1
    =x              exactly the shape of the argument x

Kinds. Numbers, Signed (no unsigned integers, which wrap below 0), Integers, SignedIntegers, Booleans, Complex, Anything. After
the axes may stand `kept` (integers keep their dtype) and `finite` (the values are searched for NaN and infinities). Only
arguments are searched in which they would not show in the result: what is compared, clipped, masked or exponentiated. Object
arrays, which hold symbols, are of every kind; np.matrix, whose * is @ and axes stay two, of none.

Others. Integer, Count (at least 1), Even (at least 2), Number, Positive, AboveOne, Factor (at least 1), Fraction (0 to 1). A
choice is a Literal, a flag bool, a function a Callable; a NamedTuple and a tuple[..] of arrays are checked part by part.
`| None` makes an argument optional.

`contract` writes one function of plain comparisons, compiled as `<contract of rope.rotate>`: it looks, and calls the body with
the very arguments that it got, but for NumPy's integers, whose sums and products wrap: a single one arrives as Python's int, an
array of them as int64, unless it is `kept` for a body that only moves it. `f.contract` is the contract as data,
`f.contract.source` the code, `f.__wrapped__` the body. For a type checker the kinds are `typing.Annotated` and the scalars are
int and float.
"""

import ast
import collections.abc
import inspect
import itertools
import linecache
import sys
import types
import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

import numpy as np

from posref import _require

LARGE = 2**63  # NumPy's signed integers end before it
kept, finite = "dtype kept", "finite"
F = TypeVar("F", bound=collections.abc.Callable[..., Any])


@dataclass(frozen=True)
class Kind:
    """A sort of array: its mark in signatures, its name in errors and the kinds of its dtypes; O holds symbols."""

    mark: str
    name: str
    dtypes: str

    def __getitem__(self, item):
        _, axes, *marks = item
        return Arrays(self, axes, tuple(marks))


class Arrays(NamedTuple):
    """The annotation of an array."""

    kind: Kind
    axes: str
    marks: tuple

    def __or__(self, other):
        return Optional(self)

    def __str__(self):
        return f"{self.kind.name} {self.axes}"

    def __repr__(self):
        """What `help` and `inspect.signature` print."""
        return f'{self.kind.mark}["{self.axes}"' + "".join(f", {mark.split()[-1]}" for mark in self.marks) + "]"

    def __call__(self):
        """Python 3.10 takes for the type of a field only what can be called."""
        raise TypeError(f"{self} is an annotation")


class Scalar(NamedTuple):
    """The annotation of a single number: its mark, its name in errors, whether it can be an extent, and what it satisfies."""

    mark: str
    name: str
    integer: bool
    condition: str

    def __or__(self, other):
        return Optional(self)

    def __repr__(self):
        return self.mark


class Optional(NamedTuple):
    """An annotation or None."""

    rule: Any

    def __repr__(self):
        return f"{self.rule!r} | None"


if TYPE_CHECKING:
    from typing import Annotated as Anything
    from typing import Annotated as Booleans
    from typing import Annotated as Complex
    from typing import Annotated as Integers
    from typing import Annotated as Numbers
    from typing import Annotated as Signed
    from typing import Annotated as SignedIntegers
    from typing import TypeAlias

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
    Integer: TypeAlias = int
    Count: TypeAlias = int
    Even: TypeAlias = int
    Number: TypeAlias = float
    Positive: TypeAlias = float
    AboveOne: TypeAlias = float
    Factor: TypeAlias = float
    Fraction: TypeAlias = float
else:
    Array = np.ndarray
    Numbers, Complex = Kind("Numbers", "numbers", "iufO"), Kind("Complex", "numbers", "iufcO")
    Signed, Integers = Kind("Signed", "signed numbers", "ifO"), Kind("Integers", "integers", "iuO")
    SignedIntegers = Kind("SignedIntegers", "signed integers", "iO")
    Booleans = Kind("Booleans", "booleans", "bO")
    Anything = Kind("Anything", "values", "")
    Integer = Scalar("Integer", "an integer; 64 bits hold it", True, f"type({{0}}) is not int or {-LARGE} <= {{0}} < {LARGE}")
    Count = Scalar("Count", "an integer of at least 1", True, "{0} >= 1")
    Even = Scalar("Even", "an even number of at least 2; features turn in pairs", True, "{0} % 2 == 0 and {0} > 0")
    Number = Scalar("Number", "a finite number", False, "True")
    Positive = Scalar("Positive", "a positive finite number", False, "{0} > 0")
    AboveOne = Scalar("AboveOne", "a finite number above 1", False, "{0} > 1")
    Factor = Scalar("Factor", "a finite number of at least 1", False, "{0} >= 1")
    Fraction = Scalar("Fraction", "a number from 0 to 1", False, "{0} >= 0 and {0} <= 1")

TOGETHER, BESIDE = ("...", "%..."), ("#...", "(...)", "[...]")
LEADS = TOGETHER + BESIDE


class Term(NamedTuple):
    """A linear expression in extents, `numerator / divisor`: coefficients of the names, and a constant under ""."""

    text: str
    coefficients: dict
    divisor: int

    @property
    def names(self):
        return [name for name in self.coefficients if name]

    @property
    def scaled(self):
        """A multiple or a part of one extent: such an axis is never empty."""
        return self.divisor > 1 or any(abs(self.coefficients[name]) > 1 for name in self.names)


class Axis(NamedTuple):
    """One axis: a mark "", "#", "?", "+" or "!", the terms that its extent may equal, and two extents or "":
    one that divides it, and one that it is not less than."""

    mark: str
    terms: tuple
    by: str
    least: str


class Shape(NamedTuple):
    """The axes of one argument: its leading axes, "" or one of LEADS, the rest, or the argument of the same shape.

    `open` says that any axes may stand behind them, `front` how many axes stand before the leading ones.
    """

    text: str
    lead: str
    axes: tuple
    like: str
    open: bool
    front: int

    def at(self, place):
        """The index of an axis: from the back, unless the shape is open there."""
        return place if self.open or place < self.front else place - len(self.axes)

    def __str__(self):
        words = _words(self)
        words[self.front : self.front] = ["..."] * bool(self.lead)
        inner = ", ".join(words + ["..."] * self.open)
        return f"({inner},)" if len(self.axes) == 1 and not self.lead and not self.open else f"({inner})"

    @property
    def least(self):
        return sum(axis.mark not in ("#", "?") for axis in self.axes)


def shape_of(text):
    """The `Shape` that a text describes.

    >>> shape_of("... n 2*dim").axes[1].terms[0].coefficients
    {'dim': 2}
    """
    if text.startswith("="):
        return Shape(text, "", (), text[1:], False, 0)
    words = text.split()
    front = next((place for place, word in enumerate(words[:-1] or words) if word in LEADS), 0)
    lead = words.pop(front) if words[front:] and words[front] in LEADS else ""
    behind = words[-1:] == ["..."]
    return Shape(text, lead, tuple(_axis(word) for word in words[: len(words) - behind]), "", behind, front)


def _axis(word):
    mark = word[0] if word[0] == "#" else word[-1] if word[-1] in "?+!" else ""
    terms, _, least = word.strip("#?+!").partition(">=")
    terms, _, by = terms.partition("%")
    return Axis(mark, tuple(_term(part) for part in terms.split("|")), by, least)


def _term(text):
    divisor, node = 1, ast.parse(text, mode="eval").body
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        divisor, node = ast.literal_eval(node.right), node.left
    coefficients: dict = {}
    _collect(node, 1, coefficients)
    return Term(text, coefficients, divisor)


def _collect(node, factor, into):
    if isinstance(node, ast.Name):
        into[node.id] = into.get(node.id, 0) + factor
    elif isinstance(node, ast.Constant):
        into[""] = into.get("", 0) + factor * node.value
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Constant):
        _collect(node.right, factor * ast.literal_eval(node.left), into)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        _collect(node.left, factor, into)
        _collect(node.right, factor if isinstance(node.op, ast.Add) else -factor, into)
    else:
        raise ValueError(f"{ast.unparse(node)} is no extent; write sums of names with factors, such as n_query+n_key-1 or 2*k")


class Argument(NamedTuple):
    """What one argument must be: `rule` is its annotation without `| None`; `shape` is None unless it is an array."""

    name: str
    rule: Any
    shape: Any
    optional: bool
    default: Any
    remedy: str

    @property
    def said(self):
        """The annotation in words: axes and kind, or the name of a number, or the choices; and the default."""
        rule = self.rule
        if isinstance(rule, Arrays):
            shape = f"the shape of {self.shape.like}" if self.shape.like else str(self.shape)
            words = ", ".join([shape, rule.kind.name, *rule.marks])
        elif typing.get_origin(rule) is typing.Literal:
            words = " or ".join(map(repr, typing.get_args(rule)))
        elif isinstance(rule, Scalar):
            words = rule.name.partition(";")[0]
        else:
            words = (
                "a function" if typing.get_origin(rule) is collections.abc.Callable else getattr(rule, "__name__", str(rule))
            )
        given = self.default is not inspect.Parameter.empty and self.default is not None
        return words + " or None" * self.optional + (f", {self.default!r} by default" if given else "")


class Contract:
    """What a function takes, as data, and the errors of what does not fit."""

    def __init__(self, function, remedies, specification=None, finds=()):
        self.function = f"{function.__module__.split('posref.')[-1]}.{function.__name__}"
        self.where = ".".join(self.function.split(".")[-2:])
        if self.function.startswith("fast."):
            self.where = f"fast.{self.where}"
        self.signature, self.remedies = inspect.signature(function), remedies
        said = specification.signature.parameters if specification else {}
        self.returns = specification.returns if specification else self.signature.return_annotation
        self.arguments = {}
        for name, parameter in self.signature.parameters.items():
            annotation = said.get(name, parameter).annotation
            if name in finds:
                annotation = annotation._replace(marks=tuple(mark for mark in annotation.marks if mark != finite))
            self._add(name, annotation, parameter.default, remedies.get(name, ""))
        self.filename = f"<contract of {self.where}>"
        self.source = _source(function.__name__, self)

    def _add(self, name, annotation, default, remedy, inside_optional=False):
        rule, optional = _unwrapped(annotation)
        optional = optional or inside_optional
        if rule is bool:
            rule = typing.Literal[True, False]
        shape = shape_of(rule.axes) if isinstance(rule, Arrays) else None
        self.arguments[name] = Argument(name, rule, shape, optional, default, remedy)
        for field, kind in _fields(rule):
            self._add(f"{name}{field}", kind, inspect.Parameter.empty, remedy, optional)

    # errors: each names the function, the argument, the numbers and the remedy

    def _error(self, kind, name, text, remedy=""):
        """The remedy is that of the argument, or else `remedy`."""
        remedy = self.arguments[name].remedy or remedy
        return kind(f"{self.where}: {name} {text}" + (f"; {remedy}" if remedy else ""))

    def _axis(self, name, place, values):
        """The axis at a place of an argument, and what every error about it begins with."""
        shape, got = self.arguments[name].shape, _get(values, name).shape
        at = shape.at(place)
        return shape.axes[place], f"has shape {got}, whose axis {at} is {got[at]}, expected"

    def not_arrays(self, values):
        for name, value in values.items():
            if self.arguments[name].optional and value is None:
                continue
            # dtypes of torch have no kind
            if not hasattr(value, "shape") or not hasattr(getattr(value, "dtype", None), "kind"):
                return TypeError(f"{self.where}: {name} is {_require.kind(value)}, not an array; pass np.array({name})")
        return None

    def matrix(self, name):
        return TypeError(f"{self.where}: {name} is an np.matrix, whose axes stay two and whose * is @; pass np.asarray({name})")

    def kind(self, name, value):
        wanted = self.arguments[name].rule.kind.name
        if wanted != "booleans":
            remedy = "convert it with .astype"
        elif value.dtype.kind in "iu":
            remedy = "True = may attend; convert zeros and ones with .astype(bool)"
        else:
            remedy = (
                f"a boolean mask, True = may attend; for an additive mask pass {name} > -1 (or {name} == 0), for torch's "
                f"key_padding_mask ~{name}"
            )
        return TypeError(f"{self.where}: {name} has dtype {value.dtype}, expected {wanted}; {remedy}")

    def widened(self, name, value):
        """Integers of any width as int64."""
        if value.dtype.kind == "u" and value.size and int(value.max()) >= LARGE:
            raise ValueError(f"{self.where}: {name} runs up to {value.max()}, beyond int64; convert it with .astype(float)")
        return value.astype(np.int64)

    def not_finite(self, name, value):
        count = value.size - int(np.isfinite(value).sum())
        return ValueError(
            f"{self.where}: {name} has {count} of {value.size} values that are NaN or infinite; "
            "remove them (a position to be ignored belongs in a boolean mask)"
        )

    def rank(self, name, value):
        shape = self.arguments[name].shape
        few = len(value.shape) < shape.least
        some = shape.lead or shape.open or few
        wanted = f"at least {shape.least} axes {shape}" if some else f"{shape}, with {len(shape.axes)} axes"
        remedy = "add them with [None]" if few else "pass them one by one"
        return self._error(ValueError, name, f"has shape {value.shape}, expected {wanted}", remedy)

    def extent(self, name, place, values):
        """An axis has another extent than the arguments around it say."""
        axis, begin = self._axis(name, place, values)
        said = " or ".join(f"{each.text} = {_value(each, values)}" if each.names else each.text for each in axis.terms)
        origin = self._origin([extent for each in axis.terms for extent in each.names], name, values)
        least = "at least " * (axis.mark == "+")
        return self._error(ValueError, name, f"{begin} {least}{said} in {self.arguments[name].shape}{origin}")

    def multiple(self, name, place, values):
        shape, got = self.arguments[name].shape, _get(values, name).shape
        term, at = shape.axes[place].terms[0], shape.at(place)
        step = max(abs(term.coefficients[each]) for each in term.names)
        first = term.coefficients.get("", 0) or step
        what = f"{first}, {first + step}, {first + 2 * step}, .." if step > 1 else f"at least {first}"
        what = "an even number of at least 2" if (first, step) == (2, 2) else what
        return self._error(ValueError, name, f"has shape {got}, expected {shape}; its axis {at} is {got[at]}, expected {what}")

    def related(self, name, place, relation, other, values):
        """An axis that is no multiple of another extent, or less than it."""
        _, begin = self._axis(name, place, values)
        origin = self._origin([other], name, values) if other not in self.arguments else ""
        return self._error(ValueError, name, f"{begin} {relation} {other} = {values[f'_{other}']}{origin}")

    def size(self, name, size, values):
        """An extent that is not what the argument of that name has to be."""
        origin = self._origin([name], name, values, ", as ")
        return ValueError(f"{self.where}: {name} is {size}{origin}, expected {self.arguments[name].rule.name}")

    def scalar(self, name, value):
        return self._error(ValueError, name, f"is {value}, expected {self.arguments[name].rule.name}")

    def integer(self, name, value):
        return _require.integer(self.where, name, value)

    def number(self, name, value):
        """A single number, no NaN or infinity; an integer as Python's own, or as a float where 64 bits do not hold it."""
        no_number = (str, bytes, bool, np.bool_, complex, np.complexfloating)
        if isinstance(value, no_number) or not (np.isscalar(value) or hasattr(value, "is_positive")):
            raise self._error(TypeError, name, f"is {value!r}, expected one number")
        too_large = isinstance(value, int) and abs(value) > sys.float_info.max
        if too_large or (isinstance(value, (float, np.floating)) and not np.isfinite(value)):
            raise self.scalar(name, value)
        if isinstance(value, (int, np.integer)):
            return int(value) if abs(int(value)) < LARGE else float(value)
        return value

    def choice(self, name, value):
        allowed = typing.get_args(self.arguments[name].rule)
        if isinstance(value, np.ndarray) or value not in allowed:
            raise ValueError(f"{self.where}: {name} is {value!r}, expected one of {', '.join(map(repr, allowed))}")

    def function_of(self, name, value):
        return TypeError(f"{self.where}: {name} is {value!r}, expected a function of arrays")

    def several(self, name, value):
        held = f"is {_require.kind(value)}" + (f" of {len(value)}" if isinstance(value, (tuple, list)) else "")
        wanted = len(typing.get_args(self.arguments[name].rule))
        return self._error(TypeError, name, f"{held}, expected a tuple of {wanted} arrays")

    def record(self, name, value):
        wanted = self.arguments[name].rule.__name__
        return TypeError(f"{self.where}: {name} is {_require.kind(value)}, expected a {wanted}")

    def together(self, names, values):
        """Two arguments whose leading axes do not broadcast."""
        given = [(name, _get(values, name).shape) for name in names if _get(values, name) is not None]
        leads = [(name, shape, _words(self.arguments[name].shape)) for name, shape in given]
        (left, shape, words), (right, other, others) = next(
            (a, b)
            for a, b in itertools.combinations(leads, 2)
            if (shared if self._shares(b[0]) else joined)(_before(a), _before(b)) is None
        )
        rest = " and ".join(dict.fromkeys(f"({', '.join(each)})" for each in (words, others)))
        return ValueError(
            f"{self.where}: {left} has shape {shape} and {right} {other}; the axes before {rest} must be equal or 1"
            + (", or their last a divisor" if self._shares(right) else _grouped(shape, other) if right == "k" else "")
        )

    def _shares(self, name):
        return self.arguments[name].shape.lead == "%..."

    def lead(self, name, values):
        """Leading axes that do not broadcast to those of the others."""
        shape = self.arguments[name].shape
        others = " and ".join(
            f"{other} of shape {_get(values, other).shape}"
            for other, each in self.arguments.items()
            if each.shape and each.shape.lead in TOGETHER and _get(values, other) is not None
        )
        remedy = "align trailing axes and insert missing ones with [None]"
        if shape.lead in ("(...)", "[...]"):
            remedy = f"if batched it has all of their axes, for instance (batch, 1, {', '.join(_words(shape))})"
        got = _get(values, name).shape
        return self._error(ValueError, name, f"has shape {got}, expected {shape}, which does not broadcast to {others}", remedy)

    def like(self, name, values):
        other = self.arguments[name].shape.like
        left, right = _get(values, name).shape, _get(values, other).shape
        return self._error(ValueError, name, f"has shape {left} and {other} {right}; they must be equal")

    def _origin(self, names, but, values, word=", since "):
        """Which other arguments say what the extents are: the number itself, or else the first array."""
        said = []
        for extent in dict.fromkeys(names):
            if extent != but and values.get(extent) is not None and extent in self.arguments:
                said.append(f"{extent} is {values[extent]}")
                continue
            for other, argument in self.arguments.items():
                value = _get(values, other)
                mentioned = argument.shape and any(extent in t.names for axis in argument.shape.axes for t in axis.terms)
                if mentioned and value is not None and other != but:
                    said.append(f"{other} has shape {value.shape}")
                    break
        return word + " and ".join(dict.fromkeys(said)) if said else ""


def joined(left, right):
    """The leading axes that both broadcast to, None if there are none.

    >>> joined((2, 1), (3,)), joined((2,), (3,))
    ((2, 3), None)
    """
    if len(left) < len(right):
        left, right = right, left
    both = list(left)
    for place, m in enumerate(right, len(left) - len(right)):
        n = both[place]
        if n != m and m != 1:
            if n != 1:
                return None
            both[place] = m
    return tuple(both)


def shared(left, right):
    """`joined`, where the last axis on the right may also divide that on the left.

    >>> shared((2, 8), (2, 4)), shared((4,), (8,)), shared((8,), (3,))
    ((2, 8), None, None)
    """
    both = joined(left, right)
    if both is not None or not left or not right or right[-1] == 0 or left[-1] % right[-1] != 0:
        return both
    rest = joined(left[:-1], right[:-1])
    return None if rest is None else (*rest, left[-1])


def reaches(shape, target):
    """Whether leading axes broadcast to others and enlarge nothing.

    >>> reaches((1, 3), (2, 3)), reaches((2, 3), (1, 3)), reaches((), (2,))
    (True, False, True)
    """
    extra = len(target) - len(shape)
    return extra >= 0 and not any(n != m and n != 1 for n, m in zip(shape, target[extra:], strict=True))


@overload
def contract(function: F) -> F: ...
@overload
def contract(**remedies: str) -> collections.abc.Callable[[F], F]: ...
def contract(function: Any = None, **remedies: str) -> Any:
    """Compile the annotations of `function` into the checks before its body.

    Keywords are remedies: what an error about that argument ends with, its shape or its value.
    """
    if function is None:
        return lambda f: contract(f, **remedies)
    made = Contract(function, remedies)
    return compiled(function, made, made.source)


def twin(specification: Any, *, finds: tuple[str, ...] = (), **remedies: str) -> collections.abc.Callable[[F], F]:
    """Compile the contract of a specification before a function that takes the same arguments and more, such as `out`.

    Arguments in `finds` are not searched for NaN beforehand: the function finds it on its way, and raises `not_finite`.
    """
    said = specification.contract

    def wrap(function):
        made = Contract(function, said.remedies | remedies, said, finds)
        return compiled(function, made, made.source)

    return wrap


def compiled(function, made, source):
    """`function` behind checks whose code is `source`; a mutant of a contract is its source with an edit."""
    checks = ast.parse(source)
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
    maker = ast.parse(f"def make({', '.join(given)}):\n    return None")
    maker.body[0].body = [*checks.body, ast.parse(f"return {function.__name__}").body[0]]  # type: ignore[attr-defined]
    space: dict = {}
    exec(compile(ast.fix_missing_locations(maker), made.filename, "exec"), function.__globals__, space)
    result = space["make"](**given)
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        setattr(result, attribute, getattr(function, attribute))
    result.__wrapped__, result.contract = function, made
    linecache.cache[made.filename] = (len(source), None, source.splitlines(keepends=True), made.filename)
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
    return {f"_record_{name}": a.rule for name, a in made.arguments.items() if _is_record(a.rule)}


def _fields(rule):
    """(how it is reached, annotation) of every part of a record or a tuple."""
    if _is_record(rule):
        return [(f".{field}", kind) for field, kind in rule.__annotations__.items()]
    if typing.get_origin(rule) is tuple:
        return [(f"[{place}]", kind) for place, kind in enumerate(typing.get_args(rule))]
    return []


def _is_record(rule):
    return isinstance(rule, type) and issubclass(rule, tuple) and hasattr(rule, "_fields")


def _unwrapped(annotation):
    """An annotation without `| None`, and whether it had that."""
    if isinstance(annotation, Optional):
        return annotation.rule, True
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        rest = [each for each in typing.get_args(annotation) if each is not type(None)]
        if len(rest) == 1:
            return rest[0], True
    return annotation, False


def _get(values, name):
    """A value by name, also that of a part: "state.maximum", "tables[0]"."""
    first, dot, field = name.partition(".")
    first, bracket, place = first.partition("[")
    value = values.get(first)
    if value is None or not (dot or bracket):
        return value
    return getattr(value, field) if dot else value[int(place[:-1])]


def _grouped(q, k):
    """What to do with fewer heads of keys than of queries."""
    heads, key_heads = (q[-3:-2] or (1,))[0], (k[-3:-2] or (1,))[0]
    if key_heads == 0 or heads % key_heads != 0:
        return ""
    return f"; for grouped queries pass attention.repeat_heads(k, heads={heads}) and v alike"


def _before(argument):
    """The leading axes of a (name, shape, words of the rest)."""
    _, shape, words = argument
    return shape[: len(shape) - len(words)]


def _words(shape):
    return [word.strip("#?+!").split(">=")[0].split("%")[0] for word in shape.text.split() if word not in LEADS]


def _value(term, values):
    known = {name: values.get(f"_{name}") for name in term.names}
    if None in known.values():
        return term.text
    total = sum(c * (known[name] if name else 1) for name, c in term.coefficients.items())
    return total / term.divisor if total % term.divisor else total // term.divisor


# The code of a contract


def _source(name, made):
    """The source of the function of comparisons."""
    writer = _Writer(made)
    lines = writer.scalars() + writer.arrays()
    signature = []
    for parameter in made.signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in signature:
            signature.append("*")
        default = "" if parameter.default is parameter.empty else f"=_default_{parameter.name}"
        signature.append(parameter.name + default)
    call = [f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else p.name for p in made.signature.parameters.values()]
    body = "".join(f"    {line}\n" for line in lines)
    return f"def {name}({', '.join(signature)}):\n{body}    return _body({', '.join(call)})\n"


class _Writer:
    """Writes the checks of one contract, line by line; extents are locals with an underscore, shapes end in `_shape`."""

    def __init__(self, made):
        self.made = made
        self.arguments = made.arguments
        self.array_arguments = [a for a in made.arguments.values() if isinstance(a.rule, Arrays)]
        self.bound = {}  # extents that are known here; True if always, False if only where an argument was given
        self.may_be_missing = {a.terms[0].text for each in self.array_arguments for a in each.shape.axes if a.mark == "?"}
        self.soft = set()  # extents that nobody says: all of their axes broadcast
        self.unsure = []  # extents that an optional argument says first
        self.read = set()  # (argument, place) of the axes that say an extent

    def scalars(self):
        """Everything that is no array, and the extents that integer arguments say."""
        lines = []
        for name, argument in self.arguments.items():
            checks = self._scalar(name, argument.rule)
            if checks and argument.optional:
                checks = [f"if {name} is not None:", *_indented(checks)]
            lines += checks
            if isinstance(argument.rule, Scalar) and argument.rule.integer and self._is_extent(name):
                lines.append(f"_{name} = {name}")
                self.bound[name] = not argument.optional
        return lines

    def _is_extent(self, name):
        axes = [axis for a in self.array_arguments for axis in a.shape.axes]
        return any(name in (axis.by, axis.least) or name in t.names for axis in axes for t in axis.terms)

    def _scalar(self, name, rule):
        if isinstance(rule, Scalar):
            kind, infinite = ("integer", "") if rule.integer else ("number", f" or {name} - {name} != 0")
            lines = [f"if type({name}) is not _{kind}{infinite}:", f"    {name} = _refuse.{kind}({name!r}, {name})"]
            if rule.condition != "True":
                lines += _refused(f"not ({rule.condition.format(name)})", f"scalar({name!r}, {name})")
            return lines
        if typing.get_origin(rule) is typing.Literal:
            allowed = typing.get_args(rule)
            if set(allowed) == {True, False}:
                return [f"if {name} is not True and {name} is not False:", f"    _refuse.choice({name!r}, {name})"]
            same = " and ".join(f"{name} is not {each!r}" if each is None else f"{name} != {each!r}" for each in allowed)
            return [f"if type({name}) is not {type(allowed[0]).__name__} or {same}:", f"    _refuse.choice({name!r}, {name})"]
        if typing.get_origin(rule) is collections.abc.Callable:
            return _refused(f"not callable({name})", f"function_of({name!r}, {name})")
        if _is_record(rule):
            return _refused(f"not isinstance({name}, _record_{name})", f"record({name!r}, {name})")
        if typing.get_origin(rule) is tuple:
            wrong = f"type({name}) not in (_tuple, _list) or len({name}) != {len(typing.get_args(rule))}"
            return _refused(wrong, f"several({name!r}, {name})")
        return []

    def arrays(self):
        lines = []
        if not self.array_arguments:
            return lines
        look = [line for argument in self.array_arguments for line in self._given(argument, self._look(argument))]
        values = ", ".join(
            f"{a.name!r}: {a.name if _whole(a) == a.name else _whole(a) + ' and ' + a.name}" for a in self.array_arguments
        )
        lines += ["try:", *_indented(look), "except AttributeError:"]
        lines += [
            f"    _error = _refuse.not_arrays({{{values}}})",
            "    if _error is None:",
            "        raise",
            "    raise _error from None",
        ]
        for argument in self.array_arguments:
            lines += self._given(argument, self._kind(argument) + self._rank(argument))
        checks = self._binds() + self._compares() + self._leads()
        return [*lines, *(f"_{name} = None" for name in self.unsure), *checks]

    def _given(self, argument, lines):
        """Lines for an argument that may be None."""
        return [f"if {_whole(argument)} is not None:", *_indented(lines)] if argument.optional and lines else lines

    def _look(self, argument):
        name, local = argument.name, _local(argument)
        return [f"{local}_shape = {name}.shape", f"{local}_kind = {name}.dtype.kind"]

    def _kind(self, argument):
        name, local, rule = argument.name, _local(argument), argument.rule
        lines = _refused(f"type({name}) is _matrix", f"matrix({name!r})")
        others = _refused(f"{local}_kind not in {rule.kind.dtypes!r}", f"kind({name!r}, {name})") if rule.kind.dtypes else []
        if "i" in rule.kind.dtypes and kept not in rule.marks and name == _whole(argument):
            narrow = f"if {local}_kind in 'iu' and {name}.dtype is not _int64:"
            others += [narrow, f"    {name} = _refuse.widened({name!r}, {name})"]
        floats = "f" in rule.kind.dtypes
        lines += [f"if {local}_kind != 'f':", *_indented(others)] if floats else others
        if finite in rule.marks:
            lines += _refused(f"{local}_kind in 'fc' and not _isfinite({name}).all()", f"not_finite({name!r}, {name})")
        return lines

    def _rank(self, argument):
        name, shape = argument.name, argument.shape
        rank = f"len({_local(argument)}_shape)"
        if shape.like:
            return []
        if shape.lead or shape.open:
            test = f"{rank} < {shape.least}" if shape.least else ""
        elif shape.least == len(shape.axes):
            test = f"{rank} != {shape.least}"
        else:
            test = f"not {shape.least} <= {rank} <= {len(shape.axes)}"
        return _refused(test, f"rank({name!r}, {name})") if test else []

    def _binds(self):
        """Extents that stand alone in some axis, which is where they are read; then those in 2*span and dim/2."""
        lines = []
        for plain in (True, False):
            for argument in self.array_arguments:
                for place, axis in enumerate(argument.shape.axes):
                    term = axis.terms[0]
                    alone = len(axis.terms) == 1 and axis.mark != "#" and len(self._unknown(term)) == 1
                    if alone and plain == (term.text in term.names) and axis.mark != "#":
                        (name,) = self._unknown(term)
                        if name not in self.bound or not self.bound[name]:
                            lines += self._bind(argument, place, axis, term, name)
        for name, argument in self.arguments.items():
            rule = argument.rule
            if isinstance(rule, Scalar) and name in self.bound and argument.optional and rule.condition != "True":
                sizes = rule.condition.format(f"_{name}")
                unsaid = f"{name} is None and _{name} is not None"
                lines += _refused(f"{unsaid} and not ({sizes})", f"size({name!r}, _{name}, locals())")
        return lines

    def _unknown(self, term):
        return [name for name in term.names if not self.bound.get(name)]

    def _bind(self, argument, place, axis, term, name):
        self.read.add((argument.name, place))
        extent = _extent(argument, place)
        coefficient = term.coefficients[name]
        rest = "".join(f" - {c} * _{other}" if other else f" - {c}" for other, c in term.coefficients.items() if other != name)
        value = f"{extent}{' * ' + str(term.divisor) if term.divisor > 1 else ''}{rest}"
        solved = value if coefficient == 1 else f"({value}) // {coefficient}" if coefficient > 1 else f"-({value})"
        wrong = []
        if term.scaled:
            tests = [f"{coefficient} * _{name} != {value}"] if coefficient > 1 else []
            tests.append(f"{extent} == 0")
            wrong = _refused(" or ".join(tests), f"multiple({argument.name!r}, {place}, locals())")
        elif term.coefficients.get("", 0) > 0:
            wrong = _refused(f"{extent} < {term.coefficients['']}", f"multiple({argument.name!r}, {place}, locals())")
        bind = [f"_{name} = {solved}", *wrong]
        if axis.mark == "?":
            bind = [f"if {_present(argument, place)}:", *_indented(bind), "else:", f"    _{name} = None"]
        if name in self.bound:  # bound only where an earlier argument was given
            refuse = f"raise _refuse.extent({argument.name!r}, {place}, locals())"
            bind = [f"if _{name} is None:", *_indented(bind), f"elif {_differs(extent, axis, term)}:", f"    {refuse}"]
        elif argument.optional:
            self.unsure.append(name)
        self.bound[name] = self.bound.get(name) or not argument.optional
        return self._given(argument, bind)

    def _compares(self):
        """Every other axis against the known extents; equality is asked before 1, so that equal symbols ask nothing else."""
        lines = []
        for argument in self.array_arguments:
            shape = argument.shape
            for place, axis in enumerate(shape.axes):
                extent = _extent(argument, place)
                at, checks = f"{argument.name!r}, {place}", []
                if axis.mark == "!":
                    checks.append((f"{extent} == 0", f"multiple({at}, locals())"))
                if axis.by:
                    test = f"_{axis.by} == 0 or {extent} % _{axis.by} != 0"
                    checks.append((test, f"related({at}, 'a multiple of', {axis.by!r}, locals())"))
                if axis.least:
                    checks.append((f"{extent} < _{axis.least}", f"related({at}, 'at least', {axis.least!r}, locals())"))
                for check in checks:
                    lines += self._given(argument, _refused(*check))
                if (argument.name, place) not in self.read:
                    lines += self._given(argument, self._compare(argument, place, axis))
            if shape.like:
                differs = f"{_local(argument)}_shape != {_local(self.arguments[shape.like])}_shape"
                lines += self._given(argument, _refused(differs, f"like({argument.name!r}, locals())"))
        return lines

    def _compare(self, argument, place, axis):
        extent, here = _extent(argument, place), _present(argument, place)
        name = axis.terms[0].text
        if axis.mark == "#" and name in axis.terms[0].names and (name not in self.bound or name in self.soft):
            return self._soften(name, extent, argument, here)
        tests = [_differs(extent, axis, term) for term in axis.terms]
        known = [f"_{n} is not None" for t in axis.terms for n in t.names if self.bound.get(n) is not True]
        if axis.mark != "#":
            return _refused(" and ".join([*known, *tests]), f"extent({argument.name!r}, {place}, locals())")
        missing = f"_{axis.terms[0].text} is None"  # beside an axis that is missing, this one would be new
        optional = [name for name in axis.terms[0].names if name in self.may_be_missing]
        wrong = f"({missing} or {tests[0]} and {extent} != 1)" if optional else " and ".join([*known, *tests, f"{extent} != 1"])
        return _refused(f"{here} and {wrong}", f"lead({argument.name!r}, locals())")

    def _soften(self, name, extent, argument, here):
        """An extent that only stands in axes with #: 1 gives way to what the others say."""
        if name not in self.bound:
            self.soft.add(name)
            self.bound[name] = not argument.optional
            self.unsure += [name] * argument.optional
            return [f"_{name} = {extent} if {here} else 1"]
        if not self.bound[name]:
            here += f" and _{name} is not None"
        refuse = f"raise _refuse.lead({argument.name!r}, locals())"
        differs = f"if {here} and {extent} != _{name} and {extent} != 1:"
        return [differs, f"    if _{name} != 1:", f"        {refuse}", f"    _{name} = {extent}"]

    def _leads(self):
        """Leading axes: those that broadcast together, then those that must not enlarge them."""
        lines, first = [], True
        together = [a for a in self.array_arguments if a.shape.lead in TOGETHER]
        names = [a.name for a in together]
        if any(a.optional for a in together[:1]) or (not together and any(a.shape.lead for a in self.array_arguments)):
            lines.append("_lead = ()")
            first = False
        needed = len(together) > 1 or any(a.shape.lead in BESIDE for a in self.array_arguments)
        for argument in together if needed else ():
            lead = self._lead(argument)
            if first:
                lines.append(f"_lead = {lead}")
                first = False
                continue
            lines += self._given(
                argument,
                [
                    f"if {lead} != _lead:",
                    f"    _lead = {'_shared' if argument.shape.lead == '%...' else '_joined'}(_lead, {lead})",
                    "    if _lead is None:",
                    f"        raise _refuse.together({names!r}, locals())",
                ],
            )
        for argument in self.array_arguments:
            if argument.shape.lead in BESIDE:
                lead, all_of = self._lead(argument), argument.shape.lead != "#..."
                fits = "_joined(_own, _lead) is not None" if argument.shape.lead == "[...]" else "_reaches(_own, _lead)"
                ranks = "len(_own) != len(_lead) or " if all_of else ""
                test = f"_own and _own != _lead and ({ranks}not ({fits}))"
                refused = _refused(test, f"lead({argument.name!r}, locals())")
                lines += self._given(argument, [f"_own = {lead}", *refused])
        return lines

    def _lead(self, argument):
        front = argument.shape.front or ""
        count = len(argument.shape.axes) - argument.shape.front
        return f"{_local(argument)}_shape[{front}:-{count}]" if count else f"{_local(argument)}_shape[{front}:]"


def _whole(argument):
    """The argument that a part such as "tables[0]" belongs to."""
    return argument.name.partition(".")[0].partition("[")[0]


def _local(argument):
    return "_" + argument.name.replace(".", "_").replace("[", "_").replace("]", "")


def _extent(argument, place):
    return f"{_local(argument)}_shape[{argument.shape.at(place)}]"


def _present(argument, place):
    """Whether an axis that is counted from the back is there."""
    return f"len({_local(argument)}_shape) > {-argument.shape.at(place) - 1}"


def _differs(extent, axis, term):
    """An extent that is not that of the term, or less with +."""
    left = extent if term.divisor == 1 else f"{term.divisor} * {extent}"
    return f"{left} {'<' if axis.mark == '+' else '!='} {_numerator(term)}"


def _numerator(term):
    """The expression, without its divisor, in the locals of the extents."""
    parts = []
    for name, factor in term.coefficients.items():
        part = (f"_{name}" if abs(factor) == 1 else f"{abs(factor)} * _{name}") if name else str(abs(factor))
        parts.append(("- " if factor < 0 else "+ ") + part)
    return " ".join(parts).removeprefix("+ ")


def _refused(test, error):
    return [f"if {test}:", f"    raise _refuse.{error}"]


def _indented(lines):
    return [f"    {line}" for line in lines]
