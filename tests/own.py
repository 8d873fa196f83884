"""Own: every op of posref in every setting that it offers, and posref's own functions for it, all found in the code."""

import functools
import importlib
import inspect
import itertools
import typing
from functools import cache

import numpy as np

from posref import discovery, ops
from posref.check import check
from posref.check.implementation import _laid_out, _lengths, _same
from posref.check.tensors import dtype_name
from posref.ops.probe import EXTENTS, POSITIONS
from tests import golden

OPS = [op for system in ops.names() for op in ops.system(system).values()]
SHAPES = ({"batch": 1}, {"heads": 1}, {"n_query": 1}, {"n_query": 7}, {"n_query": 9}, {"n_key": 8}, {"head_dim": 12})


def languages():
    """What is passed as `to`, and what makes tensors of results, by the name of the language."""
    torch, jax = importlib.import_module("torch"), importlib.import_module("jax.numpy")
    return {
        "numpy": (None, np.asarray),
        "torch": (torch.from_numpy, lambda y: torch.from_numpy(np.array(y))),
        "jax": (jax.asarray, jax.asarray),
    }


def failures(name):
    """How often the functions of an op were asked, in all settings and languages, and what failed, in words."""
    op, wrong, asked = ops.op(name), [], 0
    for chosen, (language, (to, tensor)) in itertools.product(settings(op), languages().items()):
        for function in implementations(op, chosen):
            asked += 1
            heard, others = listening(function, op, chosen, tensor)
            with np.errstate(all="ignore"):
                seed = None if to else asked  # which draws sizes, the same in every language
                report = check(heard, name, to=to if _arrays(op, chosen) else None, seed=seed, **chosen)
            said = [str(report)] * (not report.ok) + others
            wrong += [f"{name} {chosen} in {language}, {function.__module__}: {each}" for each in said]
    return asked, wrong


def _arrays(op, chosen):
    return any(isinstance(value, np.ndarray) for value in op.make(**chosen).values())


@cache
def functions():
    """The public functions of posref, by the names of ops: "t5.bias"."""
    names = (*discovery.names(), *discovery.COMMON)
    members = ((name.split(".")[-1], f) for name in names for f in discovery.members(importlib.import_module(f"posref.{name}")))
    return {f"{system}.{f.__name__}": f for system, f in members if inspect.isfunction(f)}


def implementations(op, chosen):
    """posref's functions that compute the op: the op's own, and the public one of its name where it takes these arguments."""
    public, made = functions().get(op.name), op.make(**chosen)
    return [op.spec, _with_columns(public)] if public and _takes(public, op, made) else [op.spec]


def _takes(public, op, a):
    """Whether a function takes every array and setting that the op's own takes here, and needs none that is not given."""
    taken, given = inspect.signature(public).parameters, {name for name in a if a[name] is not None}
    asked = {*op.given, *(given & inspect.signature(op.spec).parameters.keys())}
    return {name for name, p in taken.items() if p.default is p.empty} <= given and asked <= taken.keys()


def _with_columns(public):
    """The function with one sink per head, of which posref's attention wants a column, as its error says."""
    signature = inspect.signature(public)

    @functools.wraps(public)
    def function(*given, **named):
        a = signature.bind(*given, **named).arguments
        return public(**a | {name: a[name][:, None] for name in a.keys() & {"sinks"} if np.ndim(a[name])})

    return function if "sinks" in signature.parameters else public


def listening(f, op, chosen, tensor=np.asarray):
    """The function in another language, by what makes tensors of its results, which counts positions where it receives none;
    and what arrived as something else than booleans where the op gives booleans."""
    made, way = op.make(**chosen), chosen.get("positions")
    booleans = [name for name, value in made.items() if isinstance(value, np.ndarray) and value.dtype == bool]
    counted = _lengths(op, chosen, made) if way in ("range", "offset") else {}
    signature, wrong = inspect.signature(f), []

    @functools.wraps(f)
    def heard(*given, **named):
        bound = signature.bind_partial(*given, **named)
        told = bound.arguments.copy()  # an offset, nothing, or lengths where no other array has one
        lengths = not all(counted.values())
        sizes = {
            name: told.pop(name) if lengths else np.shape(told[others[0][0]])[others[0][1]] for name, others in counted.items()
        }
        for name, size in sizes.items():
            before = sizes["key_positions"] - size if name == "query_positions" else 0
            bound.arguments[name] = np.arange(size) + told.get(name, before)
        for name, value in bound.arguments.items():
            if name in booleans and value is not None and dtype_name(value) != "bool":
                wrong.append(f"{name} arrives as {dtype_name(value)}")
        y = f(*map(arrays, bound.args), **{name: arrays(value) for name, value in bound.kwargs.items()})
        return type(y)(map(tensor, y)) if type(y) is tuple else tensor(y) if isinstance(y, np.ndarray) else y

    def arrays(value):
        return np.asarray(value) if hasattr(value, "dtype") and np.ndim(value) else value

    return heard, wrong


def settings(op):
    """The settings that the op accepts: every combination of choices and flags, with the first numbers that it accepts there;
    then the numbers of every golden case and preset; then other extents, each alone."""
    choices, known = _choices(op), _known(op)
    plain = {name: values[0] for name, values in choices.items()}
    found = []
    for chosen in itertools.product(*choices.values()):
        combined = (numbers | dict(zip(choices, chosen, strict=True)) for numbers in known)
        found += itertools.islice((each for each in combined if runs(op, each)), 1)
    found += [each for numbers in known if runs(op, each := plain | numbers)]
    extents = _parameters(op).keys() & EXTENTS.keys()
    found += [each for shape in SHAPES if shape.keys() <= extents and runs(op, each := found[0] | shape)]
    return [*{str(each): each for each in (_moving(op, each) for each in found)}.values()]


def first(op):
    """The first of them, without the search for the others."""
    choices = {name: values[-1] for name, values in _choices(op).items()} | {"positions": "batch"}
    chosen = {name: value for name, value in choices.items() if name in _parameters(op)}
    return next(_moving(op, numbers | chosen) for numbers in _known(op) if runs(op, numbers | chosen))


def runs(op, chosen):
    """Whether the specification accepts the settings, and `check` the way in which positions are passed."""
    try:
        with np.errstate(all="ignore"):
            made = op.make(**chosen)
            op.spec(**made)
            _laid_out(op, chosen, made, "bhnd")
    except (TypeError, ValueError, MemoryError):  # a golden case may have an image of 2^20 places on each side
        return False
    return True


def _choices(op):
    """All values of each choice, both of each flag."""
    found = {}
    for name, parameter in _parameters(op).items():
        if name == "positions":
            found[name] = POSITIONS if any("positions" in each for each in op.given) else ()
        elif _flag(parameter):
            found[name] = (False, True)
        else:
            said = [numbers[name] for numbers in _known(op) if isinstance(numbers.get(name), str)]
            found[name] = tuple(dict.fromkeys([*_literal(op.name, name), *said]))
    return {name: values for name, values in found.items() if values}


def _known(op):
    """The numbers of the golden cases and of the presets of the op, and none."""
    return [*_cases().get(op.name, ()), *(chosen for name, chosen in ops.presets().values() if name == op.name), {}]


@cache
def _cases():
    """The settings of the golden cases of each op; 0 stands for None in a file where None is the default."""
    found = {}
    for case in golden.cases():
        op, _ = ops.of_case(case)
        wanted = {name: p for name, p in _parameters(op).items() if name != "positions"}
        said = {name: value for name, value in {**case.tensors, **case.params}.items() if name in wanted}
        none = [name for name, value in said.items() if type(value) is int and not value and wanted[name].default is None]
        said = {name: bool(np.any(value)) if _flag(wanted[name]) else value for name, value in said.items() if name not in none}
        if str(said) not in map(str, found.setdefault(op.name, [])):
            found[op.name].append(said)
    return found


def _parameters(op):
    return inspect.signature(op.make).parameters


def _flag(parameter):
    return parameter.annotation is bool or isinstance(parameter.default, bool)


def _moving(op, chosen):
    """The settings without positions and extents that change nothing."""
    made, own = op.make(**chosen), inspect.signature(op.spec).parameters
    idle = [name for name in chosen if name not in own and _same(op, chosen, made, name)]
    return {name: value for name, value in chosen.items() if name not in idle}


@cache
def _literal(op, name):
    """The values of a choice by the contract of the public function of the op's name, or of any of its system, or of all."""
    system = op.partition(".")[0]
    near = [f for each, f in functions().items() if each == op]
    near += [f for each, f in functions().items() if each.startswith(f"{system}.")]
    rules = (_signature(f).parameters.get(name) for f in (*near, *functions().values()))
    return next((found for rule in rules if rule and (found := _values(rule.annotation))), [])


_signature = cache(inspect.signature)


def _values(annotation):
    if typing.get_origin(annotation) is typing.Literal:
        return [*typing.get_args(annotation)]
    return [value for part in typing.get_args(annotation) for value in _values(part)]
