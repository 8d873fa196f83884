"""Own: every op of posref in every setting that it offers, and posref's own functions for it, all found in the code."""

import importlib
import inspect
import itertools
import typing
from functools import cache

from posref import discovery, ops, vectors
from posref.check.implementation import AXES
from posref.ops.probe import EXTENTS, POSITIONS

OPS = [op for system in ops.names() for op in ops.system(system).values()]


@cache
def _modules():
    """The module of each system by its short name."""
    return {name.split(".")[-1]: importlib.import_module(f"posref.{name}") for name in (*discovery.names(), *discovery.COMMON)}


@cache
def _cases():
    """The settings of all golden cases of each op."""
    found = {}
    for case in vectors.cases():
        op, _ = ops.of_case(case)
        said = {**case.tensors, **case.params}
        found.setdefault(op.name, []).append({name: said[name] for name in parameters(op) if name in said})
    return found


def parameters(op):
    return inspect.signature(op.make).parameters


def implementations(op):
    """posref's functions that compute the op: the op's own, and the public one of its name that takes the same arguments."""
    system, last = op.name.split(".")
    public = getattr(_modules()[system], last, None)
    return [op.spec, public] if inspect.isfunction(public) and _takes(public, op) else [op.spec]


def _takes(public, op):
    """Whether a function takes what `check` passes: the arrays in order, settings by name."""
    taken = [*inspect.signature(public).parameters.values()]
    placed = tuple(p.name for p in taken[: len(op.given)] if p.kind is not p.KEYWORD_ONLY)
    needed = {p.name for p in taken[len(op.given) :] if p.default is p.empty}
    return placed == op.given and needed <= inspect.signature(op.spec).parameters.keys()


def settings(op):
    """Every setting of an op: what its golden cases have, and with the first of them all choices and flags together."""
    cases = _cases()[op.name]
    first = _reduced(cases[0], op)
    varied = {name: _choices(op, name) for name in parameters(op)}
    varied = {name: values for name, values in varied.items() if len(values) > 1}
    yield from cases
    for chosen in itertools.product(*varied.values()):
        yield first | dict(zip(varied, chosen, strict=True))


def _reduced(case, op):
    return case


def _choices(op, name):
    """All values of a choice, both of a flag; of a number none."""
    parameter = parameters(op)[name]
    if name == "positions":
        return POSITIONS
    if parameter.annotation is bool or isinstance(parameter.default, bool):
        return [False, True]
    said = [case[name] for case in _cases()[op.name] if isinstance(case.get(name), str)]
    return [*dict.fromkeys([*_literal(op, name), *said])]


def _literal(op, name):
    """The values of a choice by the contract of the public function of the op's name, or of any of its system, or of all."""
    system, last = op.name.split(".")
    functions = [getattr(_modules()[system], last, None), *_members(system), *(f for each in _modules() for f in _members(each))]
    rules = (inspect.signature(f).parameters.get(name) for f in functions if inspect.isfunction(f))
    return next((found for rule in rules if rule and (found := _values(rule.annotation))), [])


def _members(system):
    return discovery.members(_modules()[system])


def _values(annotation):
    if typing.get_origin(annotation) is typing.Literal:
        return [*typing.get_args(annotation)]
    return [value for part in typing.get_args(annotation) for value in _values(part)]
