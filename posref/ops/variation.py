"""Variation: a copy of a function that calls another function in place of one of those it calls, at any depth.

The original stays unchanged for all other callers. Functions of posref are copied that are reached through globals, modules and
closures, and through dictionaries, tuples and partial calls in these; attributes of other objects are not followed.
"""

import builtins
import inspect
from collections.abc import Callable
from functools import cache, partial
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

Function = Callable[..., Any]
HOLDERS: dict[type, Callable[[Any], Any]] = {
    dict: dict.values,
    tuple: iter,
    partial: lambda held: (held.func, *held.args, *held.keywords.values()),
}
MACHINERY = "posref.ops"  # its functions make mistakes and are none: what their closures hold is copied, and nothing else


def varied(f: Function, step: Function, new: Function) -> Function:
    """A copy of f that calls `new` wherever f, or a function that f calls, calls `step`.

    >>> from posref.ops.alibi import alibi, shard
    >>> varied(shard, alibi.slopes, lambda heads, *, max_bias: [max_bias] * heads)(8, 2, 3)
    [8, 8, 8]
    >>> shard(8, 2, 3).tolist()
    [0.125, 0.0625, 0.03125]
    """
    copy: Function = _Copies(step, new).of(f)
    return copy


@cache
def steps(f: Function) -> tuple[Function, ...]:
    """The functions of posref that f may call, at any depth.

    >>> from posref.ops.alibi import alibi, shard
    >>> alibi.slopes in steps(shard)
    True
    """
    found: dict[Function, None] = {}
    waiting = [f]
    while waiting:
        one = waiting.pop()
        if type(one) in HOLDERS:
            waiting += HOLDERS[type(one)](one)
        elif isinstance(one, FunctionType) and one.__module__.startswith("posref.") and one not in found:
            found[one] = None
            waiting += _called(one)
    return tuple(found)[1:]


def _called(f: FunctionType) -> list[Any]:
    """The objects that a function names or holds: in its globals, in modules among these, and in its closure."""
    names = sorted(_names(f.__code__))
    own = [f.__globals__[name] for name in names if name in f.__globals__]
    modules = [each for each in own if isinstance(each, ModuleType) and each.__name__.startswith("posref.")]
    return (
        own
        + [vars(each)[name] for each in modules for name in names if name in vars(each)]
        + [cell.cell_contents for cell in f.__closure__ or ()]
    )


class _Copies:
    """The copies of one variation, each function once: a function keeps one copy wherever it is reached."""

    def __init__(self, step: Function, new: Function):
        self.step = _original(step)
        self.made: dict[Function, Any] = {self.step: new, new: new}

    def of(self, value: Any) -> Any:
        if isinstance(value, ModuleType | _View):
            return _View(value, self.of) if value.__name__.startswith("posref.") else value
        if type(value) is dict:
            return {name: self.of(each) for name, each in value.items()}
        if type(value) is tuple:
            return tuple(map(self.of, value))
        if type(value) is partial:
            return partial(self.of(value.func), *self.of(value.args), **self.of(value.keywords))
        if not isinstance(value, FunctionType) or not value.__module__.startswith("posref"):
            return value
        if _original(value) not in self.made and self._may_call(value):
            self._copy(value)
        return self.made.get(_original(value), value)

    def _may_call(self, f: FunctionType) -> bool:
        """Whether a function may reach the step. Closures and copies are made anew each time, and always copied."""
        return f.__closure__ is not None or _original(f) is not f or self.step in steps(f)

    def _copy(self, f: FunctionType) -> None:
        cells = tuple(CellType() for _ in f.__closure__ or ())
        own = {"__name__": f.__module__, "__builtins__": builtins}
        space = f.__globals__ if f.__module__ == MACHINERY else own
        copy = FunctionType(f.__code__, space, f.__name__, f.__defaults__, cells or None)
        copy.__kwdefaults__, copy.__module__ = f.__kwdefaults__, f.__module__
        copy.__dict__.update(f.__dict__ | {"copied_from": _original(f)})
        self.made[_original(f)] = copy  # before what it calls, which may call it
        if f.__module__ != MACHINERY:
            space |= {name: self.of(f.__globals__[name]) for name in _names(f.__code__) if name in f.__globals__}
        for cell, old in zip(cells, f.__closure__ or (), strict=True):
            cell.cell_contents = self.of(old.cell_contents)


def _original(f: Any) -> Function:
    """The function of which f is a copy, or f itself."""
    original: Function = getattr(f, "copied_from", f)
    return original


class _View:
    """A module whose functions are replaced by copies."""

    def __init__(self, module: Any, copied: Callable[[Any], Any]):
        self.__name__, self._module, self._copied = module.__name__, module, copied

    def __getattr__(self, name: str) -> Any:  # asked once: from then on it is an attribute
        self.__dict__[name] = value = self._copied(getattr(self._module, name))
        return value


@cache
def _names(code: CodeType) -> set[str]:
    """The globals that a function names, also in functions defined inside it."""
    return {*code.co_names}.union(*(_names(each) for each in code.co_consts if inspect.iscode(each)))
