"""Values: the rule for one argument of a contract, and look-up of a value in a call by the name of an argument or its part."""

import collections.abc
import inspect
import types
import typing
from typing import Any, NamedTuple

from posref._contract.kinds import Arrays, Optional, Scalar


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
        """The annotation in words (axes and kind of an array, name of a number, or the choices), then the default."""
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


def fields(rule):
    """(".name" or "[place]", annotation) of every part of a record or a tuple."""
    if is_record(rule):
        return [(f".{field}", kind) for field, kind in rule.__annotations__.items()]
    if typing.get_origin(rule) is tuple:
        return [(f"[{place}]", kind) for place, kind in enumerate(typing.get_args(rule))]
    return []


def is_record(rule):
    return isinstance(rule, type) and issubclass(rule, tuple) and hasattr(rule, "_fields")


def unwrapped(annotation):
    """An annotation without `| None`, and whether it had `| None`."""
    if isinstance(annotation, Optional):
        return annotation.rule, True
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        rest = [each for each in typing.get_args(annotation) if each is not type(None)]
        if len(rest) == 1:
            return rest[0], True
    return annotation, False


def get(values, name):
    """The value of an argument, or of its part such as "state.maximum" or "tables[0]"."""
    first, dot, field = name.partition(".")
    first, bracket, place = first.partition("[")
    value = values.get(first)
    if value is None or not (dot or bracket):
        return value
    return getattr(value, field) if dot else value[int(place[:-1])]


def whole(argument):
    """The argument that a part such as "tables[0]" belongs to."""
    return argument.name.partition(".")[0].partition("[")[0]
