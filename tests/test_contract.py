"""Contracts: their text and their errors, and that they change no result; each test covers all public functions.

tests/contracts.txt lists the arguments of every function; `python -m tests.test_contract` writes this file anew.
"""

import ast
import difflib
import importlib
import inspect
import itertools
import os
import pkgutil
import pydoc
import re
import subprocess
import sys
import typing
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pytest

import posref
from posref import discovery
from posref._contract import (
    Array,
    Booleans,
    Count,
    Even,
    Integers,
    Number,
    Numbers,
    Signed,
    compiled,
    contract,
    finite,
    kept,
    kinds,
)
from posref._contract.axes import TOGETHER, joined, shape_of
from posref._contract.kinds import Arrays, Scalar
from tests.every import every

SPECIFICATIONS = [*discovery.COMMON, *discovery.names()]
FUNCTIONS = {
    f"{name}.{member.__name__}": member
    for name in SPECIFICATIONS
    for member in discovery.members(importlib.import_module(f"posref.{name}"))
    if hasattr(member, "contract")
}
CASES = [(name, argument) for name, f in FUNCTIONS.items() for argument in f.contract.arguments if "." not in argument]


PUBLIC = [
    (f"{module.name}.{name}", f)
    for module in pkgutil.walk_packages(posref.__path__, "posref.")
    if module.name.count(".") <= 3 and "__main__" not in module.name and not re.search(r"\._", module.name)
    for name, f in vars(importlib.import_module(module.name)).items()
    if inspect.isfunction(f) and f.__module__ == module.name and not name.startswith("_")
]
MARKS = {name: value for name, value in vars(kinds).items() if isinstance(value, (kinds.Kind, Scalar))}


@every(PUBLIC, name=lambda pair: pair[0])
def test_help_shows_readable_types(name, function):
    """Each annotation is printed as it is written in the source, and reads back as itself."""
    signature = inspect.signature(function)
    shown = [pydoc.plain(pydoc.render_doc(function)), str(signature)]
    assert not [text for text in shown if re.search(r"\b(Kind|Arrays|Scalar|Optional)\(|dtypes=|<class 'posref\._", text)]
    for annotation in [p.annotation for p in signature.parameters.values()] + [signature.return_annotation]:
        if isinstance(annotation, (Arrays, Scalar, kinds.Optional)):
            written = re.sub(r"\[(?=\")", "[Array, ", repr(annotation))
            assert eval(written, {**MARKS, "Array": Array, "finite": finite, "kept": kept}) == annotation


# The transcript: an annotation, a default or a remedy that changes is a line that changes

TRANSCRIPT = Path(__file__).with_name("contracts.txt")


def transcript():
    """Every function with a contract, as `inspect.signature` prints it, the remedies of its errors, and the records."""
    records = set()
    for name, function in PUBLIC:
        if hasattr(function, "contract"):
            signature, arguments = inspect.signature(function), function.contract.arguments
            parameters = [p.replace(annotation=_annotation(arguments[n])) for n, p in signature.parameters.items()]
            shown = signature.replace(parameters=parameters, return_annotation=function.contract.returns)
            yield f"{name.removeprefix('posref.')}{shown}"
            yield from (f"    {argument}: {remedy}" for argument, remedy in function.contract.remedies.items())
            records |= {a.rule for a in arguments.values() if isinstance(a.rule, type) and issubclass(a.rule, tuple)}
    yield from sorted(
        f"{record.__module__.removeprefix('posref.')}.{record.__name__}{inspect.signature(record)}" for record in records
    )


def _annotation(argument):
    return kinds.Optional(argument.rule) if argument.optional else argument.rule


def test_contracts_are_those_of_the_transcript():
    changes = difflib.unified_diff(
        TRANSCRIPT.read_text().splitlines(), [*transcript()], "contracts.txt", "posref", "", "", 0, ""
    )
    assert not (lines := [*changes]), "python -m tests.test_contract writes the file anew:\n" + "\n".join(lines)


# Values that fit: extents by search, then arrays of them


def fitting(made, **chosen):
    """Arguments that a contract takes, made from what it says, with the numbers and words that are chosen."""
    names = {n for a in made.arguments.values() if a.shape for axis in a.shape.axes for n in (axis.by, *_names(axis)) if n}
    sizes = {name: 4 for name in names}
    for a in made.arguments.values():
        for axis in a.shape.axes if a.shape else ():
            if axis.by:
                sizes[axis.by] = 2
    sizes |= {name: chosen[name] for name in names & {*chosen}}
    values = {name: _value(name, argument, made, sizes) for name, argument in made.arguments.items() if "." not in name}
    return values | {name: value for name, value in chosen.items() if name in values}


def _names(axis):
    return [name for term in axis.terms for name in term.names]


def _value(name, argument, made, sizes):
    rule = argument.rule
    if isinstance(rule, Arrays):
        return _array(rule, _shape(argument, made, sizes))
    if isinstance(rule, Scalar):
        number = sizes.get(name, 4)
        return number if rule.integer else next(v for v in (1.0, 2.0, 0.5) if _satisfies(rule, v))
    if typing.get_origin(rule) is Literal:
        return typing.get_args(rule)[0]
    if isinstance(rule, type) and issubclass(rule, tuple):
        fields = [made.arguments[f"{name}.{field}"] for field in rule._fields]
        return rule(*(_array(field.rule, _shape(field, made, sizes)) for field in fields))
    if callable(rule) and typing.get_origin(rule) is not None:
        return abs
    return argument.default if argument.default is not inspect.Parameter.empty else None


def _satisfies(rule, value):
    return eval(rule.condition.format("value"), {"value": value, "_infinity": float("inf")})


def _shape(argument, made, sizes):
    if argument.shape.like:
        return _shape(made.arguments[argument.shape.like], made, sizes)
    extents = []
    for axis in argument.shape.axes:
        term = axis.terms[0]
        total = sum(factor * (sizes[name] if name else 1) for name, factor in term.coefficients.items())
        extents.append(total // term.divisor)
    return tuple(extents)


def _array(rule, shape):
    if "b" in rule.kind.dtypes and "i" not in rule.kind.dtypes:
        return np.ones(shape, dtype=bool)
    return np.ones(shape, dtype=float if "f" in rule.kind.dtypes or not rule.kind.dtypes else np.int64)


def spied(function):
    """The contract of a function before a body that keeps what it is given and returns one object."""
    kept, result = [], object()
    plain = ", ".join(_parameters(function))
    space = {"keep": lambda values: kept.append(values) or result}
    exec(f"def {function.__name__}({plain}): return keep(dict(locals()))", space)
    return compiled(space[function.__name__], function.contract, function.contract.source), kept, result


def _parameters(function):
    star = False
    for parameter in inspect.signature(function.__wrapped__).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            star = True
            yield "*"
        yield parameter.name


# All public functions


@every(list(FUNCTIONS))
def test_arguments_and_results_pass_unchanged(name):
    """What arrives in the body is what was given, the very objects, defaults included; the body's result is the result."""
    function = FUNCTIONS[name]
    wrapped, kept, result = spied(function)
    values = fitting(function.contract)
    assert _call(wrapped, function, values) is result
    assert all(kept[0][argument] is value for argument, value in values.items()), name
    assert list(kept[0]) == list(values)
    defaults = {n: p.default for n, p in inspect.signature(function.__wrapped__).parameters.items() if p.default is not p.empty}
    kept.clear()
    assert _call(wrapped, function, {n: v for n, v in values.items() if n not in defaults}) is result
    assert all(kept[0][argument] is value for argument, value in defaults.items()), name


WHOLE = (int, np.int64, np.int32, np.uint8)


def _scalars(made):
    return [name for name, argument in made.arguments.items() if isinstance(argument.rule, Scalar)]


@every([name for name, function in FUNCTIONS.items() if _scalars(function.contract)])
def test_integers_of_every_kind_are_one(name):
    """A single integer of NumPy's arrives in the body as Python's, so that no power of it wraps, and the result is the same."""
    function = FUNCTIONS[name]
    (wrapped, kept, _), names = spied(function), _scalars(function.contract)
    for values in _choices(function.contract):
        values |= {n: int(values[n]) for n in names if _satisfies(function.contract.arguments[n].rule, int(values[n]))}
        results = []
        for kind in WHOLE:
            given = {n: kind(v) if n in names and type(v) is int else v for n, v in values.items()}
            _call(wrapped, function, given)
            assert [type(kept[-1][n]) for n in names] == [type(values[n]) for n in names], kind
            results.append(_said(function, given))
        assert results == results[:1] * len(WHOLE)


def _said(function, given):
    """The numbers and dtypes of a result, or the refusal."""
    try:
        result = _call(function, function, given)
        parts = map(np.asarray, result if isinstance(result, tuple) else (result,))
        return [(part.dtype, repr(part.tolist())) for part in parts]
    except (ValueError, TypeError, ZeroDivisionError) as refusal:
        return str(refusal)


@every(list(FUNCTIONS))
def test_no_body_writes_to_its_arguments(name):
    """Every argument is given and read-only, every choice made; a body that refuses the numbers has not written either."""
    function, given = FUNCTIONS[name], fitting(FUNCTIONS[name].contract)
    arrays = [a for value in given.values() for a in (value if isinstance(value, tuple) else (value,)) if hasattr(a, "flags")]
    for a in arrays:
        a.flags.writeable = False
    rules = {argument: function.contract.arguments[argument].rule for argument in given}
    choices = {argument: typing.get_args(rule) for argument, rule in rules.items() if typing.get_origin(rule) is Literal}
    for choice in itertools.product(*choices.values()):
        try:
            _call(function, function, given | dict(zip(choices, choice, strict=True)))
        except (ValueError, TypeError, ZeroDivisionError) as refusal:
            assert "read-only" not in str(refusal)  # noqa: PT017
    assert all((a == 1).all() for a in arrays)


def _call(wrapped, function, values):
    parameters = inspect.signature(function.__wrapped__).parameters
    by_place = [values[n] for n, p in parameters.items() if p.kind is not p.KEYWORD_ONLY and n in values]
    by_name = {n: values[n] for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY and n in values}
    return wrapped(*by_place, **by_name)


def wrong_values(argument, value):
    """(what, value, error) of everything that this argument must not be."""
    rule = argument.rule
    if isinstance(rule, Arrays):
        yield "a list", value.tolist(), TypeError
        yield "a matrix", np.atleast_2d(value.reshape(-1)).view(np.matrix), TypeError
        if rule.kind.dtypes:
            yield "another dtype", np.full(value.shape, "a"), TypeError
        if "b" in rule.kind.dtypes:
            yield "floats", value.astype(float), TypeError
        if finite in rule.marks and value.size and "f" in rule.kind.dtypes:
            yield "a NaN", np.full(value.shape, np.nan), ValueError
        if argument.shape.like or argument.shape.least:
            yield "no axes", value.reshape(-1)[0:1].reshape(()), ValueError
    elif isinstance(rule, Scalar):
        yield "a word", "4", TypeError
        yield "an array", np.ones(2), TypeError
        yield "a complex number", 4j, TypeError
        yield "a flag", np.True_, TypeError
        if rule.integer:
            yield "a float", 4.0, TypeError
        else:
            yield "NaN", float("nan"), ValueError
            yield "beyond all floats", 10**400, ValueError
        if rule.condition != "True":
            yield "a number out of range", -3 if _satisfies(rule, 4) and not _satisfies(rule, -3) else -(10**20), ValueError
    elif typing.get_origin(rule) is Literal:
        yield "another word", "no such word", ValueError
    elif isinstance(rule, type) and issubclass(rule, tuple):
        yield "a tuple", tuple(value), TypeError
    elif callable(rule) and typing.get_origin(rule) is not None:
        yield "no function", "abs", TypeError


@every(CASES)
def test_refusals_name_function_and_argument(name, argument):
    function = FUNCTIONS[name]
    made = function.contract
    wrapped, kept, _ = spied(function)
    values = fitting(made)
    for what, wrong, error in wrong_values(made.arguments[argument], values[argument]):
        with pytest.raises(error) as caught:
            _call(wrapped, function, {**values, argument: wrong})
        assert str(caught.value).startswith(f"{made.where}: "), what
        assert re.search(rf"\b{argument}\b", str(caught.value)), (what, str(caught.value))
        assert kept == [], what


@every(list(FUNCTIONS))
def test_an_extent_that_two_arguments_share_is_one(name):
    """An entry more along an axis that another argument also has is refused."""
    function = FUNCTIONS[name]
    made, (wrapped, _, _) = function.contract, spied(function)
    values = fitting(made)
    arrays = [a for a in made.arguments.values() if a.shape and "." not in a.name]
    for argument in arrays:
        for place, axis in enumerate(argument.shape.axes):
            others = [b for b in arrays if b is not argument and any(set(_names(x)) & set(_names(axis)) for x in b.shape.axes)]
            sure = [b for b in others if b.shape.axes and not any(x.mark for x in b.shape.axes)]
            if axis.mark or len(axis.terms) > 1 or not sure or len(_names(axis)) != 1:
                continue
            at = argument.shape.at(place)
            longer = np.repeat(values[argument.name], 2, axis=at)
            with pytest.raises(ValueError, match=re.escape(made.where)):
                _call(wrapped, function, {**values, argument.name: longer})


def leads(function):
    """Pairs of array arguments that have leading axes; those of the first broadcast together with others."""
    arrays = [a for a in function.contract.arguments.values() if a.shape and a.shape.lead and "." not in a.name]
    return [(a, b) for a in arrays for b in arrays if a is not b and a.shape.lead in TOGETHER]


@every([name for name, function in FUNCTIONS.items() if leads(function)])
def test_leading_axes_that_do_not_meet_are_refused(name):
    """Two sequences beside three; where heads may be shared, none of the two divides the other."""
    function = FUNCTIONS[name]
    wrapped, kept, _ = spied(function)
    for first, second in leads(function):
        values = fitting(function.contract)
        for argument, count in ((first, 2), (second, 3)):
            values[argument.name] = np.stack([values[argument.name]] * count, axis=argument.shape.front)
        with pytest.raises(ValueError, match=re.escape(function.contract.where)) as caught:
            _call(wrapped, function, values)
        assert second.name in str(caught.value) or first.name in str(caught.value)
        assert kept == []


NARROW = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.uint64)


@every(list(FUNCTIONS))
def test_integers_of_every_width_are_one(name):
    """Integers from end to end of every type arrive as int64, and give what these give, or are no signed integers.

    What keeps its dtype in the body gives the same numbers; there float32 stands beside them, and Python's integers.
    """
    function = FUNCTIONS[name]
    made, (wrapped, arrived, _) = function.contract, spied(function)
    rules = {n: a.rule for n, a in made.arguments.items() if "." not in n and isinstance(a.rule, Arrays)}
    names = [n for n, rule in rules.items() if "i" in rule.kind.dtypes]
    for values in _choices(made):
        given = {n: v.astype(np.float32) if getattr(v, "dtype", "") == "float64" else v for n, v in values.items()}
        given |= {n: int(v) for n, v in given.items() if type(v) is float and v == int(v)}
        for kind in NARROW:
            narrow = {n: _ends(n, values[n].shape, kind) for n in names}
            if np.dtype(kind).kind == "u" and any("u" not in rules[n].kind.dtypes for n in names):
                with pytest.raises(
                    TypeError, match=rf"{re.escape(made.where)}: \w+ has dtype {np.dtype(kind)}, expected signed"
                ):
                    _call(function, function, given | narrow)
                continue
            _call(wrapped, function, given | narrow)
            widths = [kind if kept in rules[n].marks else np.int64 for n in names]
            assert [arrived[-1][n].dtype for n in names] == widths, kind
            with np.errstate(all="ignore"):  # 64 bits have ends as well
                right = _said(function, given | {n: v.astype(np.int64) for n, v in narrow.items()})
                got = _said(function, given | narrow)
            same = got == right if np.int64 in widths and kind not in widths else _values(got) == _values(right)
            assert same, (kind, got, right)


def _ends(name, shape, kind):
    """Numbers from one end of a type to the other, or, where as many places are made, small ones."""
    low, high = np.iinfo(kind).min, min(np.iinfo(kind).max, 2**40)
    return np.resize([0, 1, 2, 3] if name in ("lengths", "sizes") else [high, low, high - 1, 1, low + 1, 0], shape).astype(kind)


def _values(said):
    return said if type(said) is str else [values for _, values in said]


@every(list(FUNCTIONS))
def test_extents_of_zero_are_computed_or_refused_in_our_words(name):
    """Every extent in turn; a function that is a value here takes two arguments."""
    function = FUNCTIONS[name]
    made = function.contract
    names = {n for a in made.arguments.values() if a.shape for axis in a.shape.axes for n in _names(axis)}
    for empty, values in itertools.product(names, _choices(made)):
        sizes = {n: 0 if n == empty else 4 for n in names}
        arrays = {n: a for n, a in made.arguments.items() if "." not in n and isinstance(a.rule, Arrays)}
        said = _said(function, values | {n: _array(a.rule, _shape(a, made, sizes)) for n, a in arrays.items()})
        assert type(said) is list or re.match(r"([a-z_0-9]+\.)+[a-z_0-9]+: |abs\(\) takes", said), said


def _choices(made):
    """`fitting` values with every choice of every argument in turn."""
    values = fitting(made)
    yield values
    for name, argument in made.arguments.items():
        if typing.get_origin(argument.rule) is Literal:
            yield from ({**values, name: choice} for choice in typing.get_args(argument.rule)[1:])


def test_most_functions_are_contracts():
    """The tests above would pass for none; a module that is not converted yet has no contracts."""
    assert len(FUNCTIONS) >= 60
    assert len(CASES) >= 200


PRESETS = [
    (f"{name} in {module}.{function.__name__}", function, {key: value for key, value in preset.items() if key != "source"})
    for module in discovery.names()
    for name, preset in getattr(importlib.import_module(f"posref.{module}"), "PRESETS", {}).items()
    for function in discovery.members(importlib.import_module(f"posref.{module}"))
    if hasattr(function, "contract")
]


@every(PRESETS, name=lambda row: row[0])
def test_presets_run(name, function, preset):
    """Every function of a system runs with what a preset says of its arguments and extents; defaults stay as they are."""
    chosen = {key: np.array(value) if isinstance(value, tuple) else value for key, value in preset.items()}
    given = {
        n: (lambda *arrays: arrays[-1]) if value is abs else value
        for n, value in fitting(function.contract, **chosen).items()
        if n in chosen or function.contract.arguments[n].default is inspect.Parameter.empty
    }
    _call(function, function, given)


# The vocabulary


@contract
def sample(
    x: Numbers[Array, "... n 2*pairs"],
    y: Numbers[Array, "#... #n 2*pairs"] | None = None,
    mask: Booleans[Array, "(...) #n"] | None = None,
    total: Integers[Array, "n+pairs-1"] | None = None,
) -> Numbers[Array, "..."]:
    """x.

    >>> sample(np.ones((1, 2))) is not None
    True
    """
    return x


class Pair(NamedTuple):
    first: Numbers[Array, "... n"]
    second: Numbers[Array, "... n"]


@contract(key="make it with a key maker")
def other(pair: Pair, key: Signed[Array, "m", finite], *, size: Even, count: Count = 1, scale: Number = 1.0) -> Pair:
    """pair."""
    return pair


def test_what_fits_passes():
    x = np.ones((5, 3, 4))
    for more in (
        {},
        {"y": np.ones(4)},
        {"y": np.ones((1, 4))},
        {"y": np.ones((5, 1, 4))},
        {"mask": np.ones(1, bool)},
        {"mask": np.ones((5, 3), bool)},
        {"total": np.arange(4)},
    ):
        assert sample(x, **more) is x


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"y": np.ones((2, 4))}, r"y has shape \(2, 4\), .* does not broadcast to x of shape \(5, 3, 4\)"),
        ({"y": np.ones((1, 5, 3, 4))}, r"y has shape .* does not broadcast"),
        ({"y": np.ones((3, 2))}, r"y has shape \(3, 2\), whose axis -1 is 2, expected 2\*pairs = 4 .*, since x has shape"),
        ({"mask": np.ones((2, 3), bool)}, r"mask has shape \(2, 3\), .*; if batched it has all of their axes"),
        ({"total": np.arange(5)}, r"total has shape \(5,\), whose axis -1 is 5, expected n\+pairs-1 = 4"),
        ({"x": np.ones((3, 5))}, r"x has shape \(3, 5\), .* expected an even number of at least 2"),
        ({"x": np.ones((3, 0))}, r"x has shape \(3, 0\), .* expected an even number of at least 2"),
    ],
)
def test_what_does_not_fit_is_refused(more, message):
    with pytest.raises(ValueError, match=rf"test_contract\.sample: {message}"):
        sample(**{"x": np.ones((5, 3, 4)), **more})


def test_a_matrix_is_refused_with_what_makes_an_array_of_it():
    x = np.ones((3, 4)).view(np.matrix)
    with pytest.raises(
        TypeError, match=r"sample: x is an np\.matrix, whose axes stay two and whose \* is @; pass np\.asarray\(x\)$"
    ):
        sample(x)
    with pytest.raises(TypeError, match=r"other: pair\.second is an np\.matrix, .*; pass np\.asarray\(pair\.second\)$"):
        other(Pair(np.ones((3, 4)), x), np.ones(2), size=2)
    assert sample(np.asarray(x)).shape == (3, 4)


@pytest.mark.parametrize(
    ("dtype", "remedy"),
    [
        (float, "a boolean mask, True = may attend; for an additive mask pass mask > -1 (or mask == 0)"),
        (float, "for torch's key_padding_mask ~mask"),
        (int, "convert zeros and ones with .astype(bool)"),
    ],
)
def test_a_mask_of_numbers_is_not_told_to_be_inverted(dtype, remedy):
    with pytest.raises(TypeError, match=re.escape(remedy)) as caught:
        sample(np.ones((3, 4)), mask=np.zeros(3, dtype=dtype))
    assert (".astype" in str(caught.value)) == (dtype is int)


@contract
def pairs(
    q: Numbers[Array, "... n d"],
    k: Numbers[Array, "... m>=n d"],
    offsets: Integers[Array, "[...] n m"],
    rest: Numbers[Array, "padding+2"] | None = None,
    kinds: Numbers[Array, "2 d"] | None = None,
) -> Numbers[Array, "... n m"]:
    """offsets."""
    return offsets


@pytest.mark.parametrize("lead", [(), (5, 1), (5, 3), (1, 3)])
def test_leading_axes_that_are_none_or_all_may_enlarge(lead):
    offsets = np.ones((*lead, 2, 4), int)
    assert pairs(np.ones((1, 3, 2, 6)), np.ones((1, 3, 4, 6)), offsets, np.ones(2), np.ones((2, 6))) is offsets


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": np.ones((3, 2, 4), int)}, r"offsets has shape \(3, 2, 4\), .* if batched it has all of their axes"),
        ({"offsets": np.ones((5, 2, 2, 4), int)}, r"offsets has shape .* does not broadcast to q of shape"),
        ({"k": np.ones((3, 1, 6))}, r"k has shape \(3, 1, 6\), whose axis -2 is 1, expected at least n = 2, since q has shape"),
        ({"rest": np.ones(1)}, r"rest has shape \(1,\), .* expected at least 2"),
        ({"kinds": np.ones((3, 6))}, r"kinds has shape \(3, 6\), whose axis -2 is 3, expected 2 in \(2, d\)"),
    ],
)
def test_pairs_that_do_not_fit_are_refused(change, message):
    with pytest.raises(ValueError, match=rf"test_contract\.pairs: {message}"):
        pairs(**{"q": np.ones((1, 3, 2, 6)), "k": np.ones((1, 3, 4, 6)), "offsets": np.ones((2, 4), int), **change})


def test_leading_axes_behind_the_first():
    @contract
    def kinds(x: Numbers[Array, "... n d"], e: Numbers[Array, "2 #... d"]) -> None: ...

    x = np.ones((5, 3, 7, 4))
    for shape in ((2, 4), (2, 3, 4), (2, 1, 4), (2, 5, 3, 4)):
        assert kinds(x, np.ones(shape)) is None
    for shape, message in (
        ((3, 4), r"whose axis 0 is 3, expected 2 in \(2, \.\.\., d\)"),
        ((2, 5), "whose axis -1 is 5, expected d = 4"),
        ((4,), "expected at least 2 axes"),
        ((2, 5, 4), "does not broadcast to x of shape"),
        ((2, 6, 5, 3, 4), "does not broadcast to x of shape"),
    ):
        with pytest.raises(ValueError, match=rf"kinds: e has shape .*{message}"):
            kinds(x, np.ones(shape))


def taking(q, k):
    """A contract of two arrays with these axes."""
    space = {"__name__": __name__}
    exec("def two(q, k): return True", space)
    space["two"].__annotations__ = {"q": Numbers[Array, q], "k": Numbers[Array, k]}
    return contract(space["two"])


EXTENTS = r"""
n & n | (2,), (2,) | (2,), (3,) | k has shape \(3,\), whose axis -1 is 3, expected n = 2 .*, since q has
n! & n | (1,), (1,) | (0,), (0,) | q has shape \(0,\), expected \(n,\); its axis -1 is 0, expected at least 1
d & d/2 | (4,), (2,) | (4,), (3,) | k has shape \(3,\), .* expected d/2 = 2\b
2*n+1 & m | (5,), (2,) | (4,), (2,) | q has shape \(4,\), .* its axis -1 is 4, expected 1, 3, 5, \.\.
n m & n|n+m-1 | (2, 3), (4,) | (2, 3), (3,) | k has shape \(3,\), .* expected n = 2 or n\+m-1 = 4\b
n d & n ... | (2, 3), (2, 5, 6) | (2, 3), (3, 5) | k has shape \(3, 5\), whose axis 0 is 3, expected n = 2
... n & =q | (2, 3), (2, 3) | (2, 3), (3,) | k has shape \(3,\) and q \(2, 3\); they must be equal
h%g n & g n | (4, 3), (2, 3) | (4, 3), (3, 3) | q has shape \(4, 3\), .* expected a multiple of g = 3, since k
n & m>=n | (2,), (3,) | (2,), (1,) | k has shape \(1,\), .* expected at least n = 2, since q has
n? d & #n d | (3,), (3,) | (1, 2, 3), (2, 3) | q has shape \(1, 2, 3\), expected \(n, d\), with 2 axes
... n & (...) n | (5, 4, 3), (5, 1, 3) | (5, 4, 3), (4, 3) | k has shape \(4, 3\), .* all of their axes
... n & ... n | (1, 3), (2, 3) | (2, 3), (4, 3) | q has shape .* and k \(4, 3\); the axes before \(n\) must be equal
... n d & ... m d | (2, 3), (4, 3) | (4, 2, 3), (2, 2, 3) | pass attention\.repeat_heads\(k, heads=4\) and v alike
... n d & %... m d | (4, 2, 3), (2, 2, 3) | (4, 2, 3), (3, 2, 3) | must be equal or 1, or their last a divisor
""".strip()  # the axes of q and of k | shapes that fit | shapes that do not | what is said


@pytest.mark.parametrize("row", EXTENTS.splitlines())
def test_every_mark_is_enforced(row):
    axes, fit, wrong, message = row.split(" | ")
    two = taking(*axes.split(" & "))
    assert two(*map(np.ones, ast.literal_eval(fit)))
    with pytest.raises(ValueError, match=rf"test_contract\.two: .*{message}"):
        two(*map(np.ones, ast.literal_eval(wrong)))


def test_records_scalars_and_remedies():
    pair, key = Pair(np.ones(3), np.ones(3)), np.ones(2)
    assert other(pair, key, size=2) is pair
    with pytest.raises(ValueError, match=r"other: pair\.second has shape \(2,\), .* expected n = 3 .*, since pair\.first has"):
        other(Pair(np.ones(3), np.ones(2)), key, size=2)
    with pytest.raises(ValueError, match=r"key has shape \(2, 1\), .*; make it with a key maker"):
        other(pair, key[:, None], size=2)
    with pytest.raises(ValueError, match="size is 3, expected an even number of at least 2; features turn in pairs"):
        other(pair, key, size=3)
    with pytest.raises(ValueError, match="count is 0, expected an integer of at least 1"):
        other(pair, key, size=2, count=0)
    with pytest.raises(TypeError, match="count is True, expected an integer"):
        other(pair, key, size=2, count=True)
    with pytest.raises(TypeError, match="key has dtype uint32, expected signed numbers"):
        other(pair, key.astype(np.uint32), size=2)


def test_equal_sizes_are_asked_nothing_else():
    """Two equal symbols of an unknown size must not be compared with 1, which a proof cannot answer."""

    class Size(int):
        def __eq__(self, other):
            assert isinstance(other, Size)
            return int(self) == int(other)

        def __ne__(self, other):
            return not self == other

        __hash__ = int.__hash__

    class Sized:
        dtype = np.dtype(object)

        def __init__(self, *shape):
            self.shape = tuple(map(Size, shape))

    @contract
    def same(x: Numbers[Array, "... n d"], y: Numbers[Array, "#... #n d"]) -> None: ...

    assert same(Sized(2, 3, 4), Sized(2, 3, 4)) is None


def test_the_code_bears_its_name_and_can_be_changed():
    """Questions that a contract asks can be told by the file name of its code; a mutant is its source with an edit."""
    assert sample.__code__.co_filename == "<contract of test_contract.sample>"
    assert sample.__wrapped__.__code__.co_filename == __file__
    source = sample.contract.source
    assert source.count("if 2 * _pairs != ") == 1
    changed = compiled(sample.__wrapped__, sample.contract, source.replace("if 2 * _pairs != ", "if 2 * _pairs == "))
    with pytest.raises(ValueError, match="sample: x has shape"):
        changed(np.ones((3, 4)))


def test_an_extent_that_is_no_expression_is_refused():
    with pytest.raises(ValueError, match="is no extent"):
        shape_of("... n*m")


@pytest.mark.whole
def test_types_for_users(tmp_path):
    """`mypy --strict` accepts a user's file, and sees a wrong layout in it."""
    pytest.importorskip("mypy")
    good = "from posref.rotary import rope\n\ncos, sin = rope.tables(rope.frequencies(4), rope.frequencies(4))\n"
    good += 'x = rope.rotate(rope.frequencies(4), cos[0], sin[0], layout="half")\n'
    (tmp_path / "good.py").write_text(good)
    (tmp_path / "bad.py").write_text(good.replace('"half"', '"neox"'))
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache")]
    installed = {**os.environ, "MYPYPATH": str(Path(posref.__file__).parents[1])}  # silent: as mypy reads an installed package
    for name, code in (("good", 0), ("bad", 1)):
        done = subprocess.run(
            [*command, f"{name}.py"], cwd=tmp_path, env=installed, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
    assert "neox" in done.stdout


def test_leading_axes_join_as_numpy_broadcasts():
    """An axis of length 0 among them."""
    shapes = [shape for count in (0, 1, 2) for shape in itertools.product((0, 1, 2, 3), repeat=count)]
    for a, b in itertools.product(shapes, repeat=2):
        try:
            expected = np.broadcast_shapes(a, b)
        except ValueError:
            expected = None
        assert joined(a, b) == expected


if __name__ == "__main__":
    TRANSCRIPT.write_text("\n".join(transcript()) + "\n")
