"""Own: every op of posref in every setting that it offers, and posref's own functions for it, all found in the code."""

import importlib
import inspect
import itertools
import typing
from functools import cache

import numpy as np

from posref import discovery, ops, vectors
from posref.check.implementation import _same
from posref.ops.probe import POSITIONS

OPS = [op for system in ops.names() for op in ops.system(system).values()]


@cache
def _modules():
    """The module of each system by its short name."""
    return {name.split(".")[-1]: importlib.import_module(f"posref.{name}") for name in (*discovery.names(), *discovery.COMMON)}


@cache
def _cases():
    """The settings of the golden cases of each op, without flags; 0 stands for None in a file where None is the default."""
    found = {}
    for case in vectors.cases():
        op, _ = ops.of_case(case)
        wanted = {name: p for name, p in _parameters(op).items() if name != "positions" and not _flag(p)}
        said = {name: value for name, value in {**case.tensors, **case.params}.items() if name in wanted}
        said = {
            name: value for name, value in said.items() if type(value) is not int or value or wanted[name].default is not None
        }
        if str(said) not in map(str, found.setdefault(op.name, [])):
            found[op.name].append(said)
    return found


def _parameters(op):
    return inspect.signature(op.make).parameters


def _flag(parameter):
    return parameter.annotation is bool or isinstance(parameter.default, bool)


def implementations(op, chosen):
    """posref's functions that compute the op: the op's own, and the public one of its name where it takes these arguments."""
    system, last = op.name.split(".")
    public = getattr(_modules()[system], last, None)
    return [op.spec, public] if inspect.isfunction(public) and _takes(public, op, op.make(**chosen)) else [op.spec]


def _takes(public, op, a):
    """Whether a function takes what `check` passes, the arrays in order and all settings by name, and returns real numbers."""
    taken = inspect.signature(public).parameters
    of_op = {name for name in a if a[name] is not None}
    if tuple(taken)[: len(op.given)] != op.given or not of_op <= taken.keys():
        return False
    try:
        return not np.iscomplexobj(public(**{name: a[name] for name in of_op}))
    except (TypeError, ValueError):  # coded otherwise: sinks as a column, parts as tuples
        return False


def settings(op):
    """The settings that the op accepts: all choices and flags with the numbers of a golden case, then those of each case."""
    varied = {name: values for name in _parameters(op) if len(values := _choices(op, name)) > 1}
    plain = {name: values[-1] if name != "positions" else "batch" for name, values in varied.items()}
    bases = [{}, *_cases()[op.name]]
    whole = [plain | case for case in bases]
    first = next(chosen for chosen in whole[1:] + whole[:1] if runs(op, chosen))
    yield _moving(op, first)
    grid = (first | dict(zip(varied, chosen, strict=True)) for chosen in itertools.product(*varied.values()))
    yield from (_moving(op, chosen) for chosen in itertools.chain(grid, whole) if runs(op, chosen))


def _moving(op, chosen):
    """The settings without positions where they change nothing."""
    idle = "positions" in chosen and _same(op, chosen, op.make(**chosen), "positions")
    return {name: value for name, value in chosen.items() if name != "positions" or not idle}


def runs(op, chosen):
    """Whether the specification accepts the settings."""
    try:
        op.spec(**op.make(**chosen))
    except (TypeError, ValueError):
        return False
    return True


def _choices(op, name):
    """All values of a choice, both of a flag; of a number none."""
    parameter = _parameters(op)[name]
    if name == "positions":
        return POSITIONS if any("positions" in each for each in op.given) else ()
    if _flag(parameter):
        return [False, True]
    said = [case[name] for case in _cases()[op.name] if isinstance(case.get(name), str)]
    return [*dict.fromkeys([*_literal(op, name), *said])]


def _literal(op, name):
    """The values of a choice by the contract of the public function of the op's name, or of any of its system, or of all."""
    system, last = op.name.split(".")
    functions = [
        getattr(_modules()[system], last, None),
        *_members(system),
        *(f for each in _modules() for f in _members(each)),
    ]
    rules = (inspect.signature(f).parameters.get(name) for f in functions if inspect.isfunction(f))
    return next((found for rule in rules if rule and (found := _values(rule.annotation))), [])


def _members(system):
    return discovery.members(_modules()[system])


def _values(annotation):
    if typing.get_origin(annotation) is typing.Literal:
        return [*typing.get_args(annotation)]
    return [value for part in typing.get_args(annotation) for value in _values(part)]
