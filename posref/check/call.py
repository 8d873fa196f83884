"""Call: how a check calls somebody else's function: it converts arguments and results, and puts failures into words."""

import inspect
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from functools import partial, partialmethod
from pathlib import Path
from typing import Any

import numpy as np

from posref import _require
from posref.check.axes import RESULT, with_tokens_behind_heads
from posref.check.tensors import as_float64, dtype_name
from posref.ops import Arguments, Op
from posref.ops.probe import PLACED, with_positions
from posref.vectors.models import on_host

NOT_THEIRS = (str(Path(__file__).parents[1]), "<frozen", "<__array_function__", "<contract of ")
LIBRARIES = ("site-packages", "dist-packages")
PARTIAL = (partial, partialmethod)
PARTIALMETHOD = ("_partialmethod", "__partialmethod__")  # where a method holds it, before Python 3.13 and since
TOKENWISE = ("positions", "coordinates")  # how arrays end that have a row for each token
REAL = {"complex64": "float32", "complex128": "float64"}  # the dtype of the parts of complex numbers


class Misbehaved(Exception):
    """The callable raised, or returned something that is not a tensor of numbers."""


class Caller:
    """Calls `fn` with copies in its own tensors and axes; the result is float64. Arguments that `fn` has bound are not
    passed."""

    def __init__(self, fn: Any, op: Op, to: Any, to_positions: Any, axes: str, positions: str):
        self.fn, self.op, self.axes = fn, op, axes
        self.lengths = positions == "lengths"  # how many there are, in the place of each array of positions
        self.positions = "range" if self.lengths else positions
        self.to = to or (lambda a: a)
        self.to_positions = to_positions or self.to
        self.plain = to is None
        self.errors = np.geterr()
        self.moved: set[str] | None = None if axes != "bhnd" else set()
        self.modified = ""
        self.dtype = self.given = ""
        self.result: Any = None
        self.strided, self.slices = False, list[str]()
        kinds = {p.name: p.kind for p in parameters_of(fn) if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
        bound = bound_names(fn)
        self.received = [name for name in op.given if name not in bound]
        self.own, self.by_name = kinds.keys(), {name for name in op.given if kinds.get(name) is inspect.Parameter.KEYWORD_ONLY}
        self.named = kinds.keys() - bound - set(op.given)

    def others(self) -> Iterator[tuple[str, "Caller"]]:
        """Other ways to call that may work where this one fails, each after the advice for the user."""
        more = self.axes, "lengths" if self.lengths else self.positions
        for module, function in (("torch", "from_numpy"), ("jax.numpy", "asarray")):
            if self.plain and module in sys.modules:
                to = getattr(sys.modules[module], function)
                fn = getattr(self.fn, "with_tensors", lambda _: self.fn)(to)
                tensors = Caller(fn, self.op, to, to, *more)
                tensors.received = self.received
                yield f"It runs with tensors: pass to={module}.{function}.", tensors
        if self.op.given == ("x", "positions"):
            words = "It runs as fn(q, k, positions), and a check calls fn(x, positions): wrap it, and check k with [1] as well"
            wrapped = Caller(lambda x, positions: self.fn(x, x, positions)[0], self.op, self.to, self.to_positions, *more)
            yield f"{words}: lambda x, positions: fn(x, x, positions)[0].", wrapped

    def with_strides(self) -> "Caller":
        """A copy that passes slices of larger arrays, and keeps the names of those that are not contiguous."""
        other = copy(self)
        other.strided, other.slices = True, []
        return other

    def __call__(self, a: Arguments) -> np.ndarray:
        """The output in the axes of the specification. Misbehaved if `fn` raised or returned no array."""
        given = self.tensors(a)
        before = {name: output(value) for name, value in given.items()}
        self.result = self.run(given, a)
        got = self.values(self.result, a)
        first = self.result[0] if isinstance(self.result, (tuple, list)) else self.result
        self.dtype = REAL.get(dtype_name(first), dtype_name(first))
        for name, value in given.items():
            if not np.array_equal(before[name], output(value)):
                self.modified = name
        return self.restored(got, a)

    def values(self, result: Any, a: Arguments) -> np.ndarray:
        """The values of a result as one array; a tuple is joined as the specification returns it."""
        return output(result, lambda: np.shape(self.op.spec(**a)))

    def tensors(self, a: Arguments) -> dict[str, Any]:
        """The arguments of `fn` by name, as its tensors, without those that `fn` makes itself."""
        given = {name: self.tensor(name, a) for name in self.received if name in a}
        return {name: value for name, value in given.items() if value is not None}

    def refilled(self, a: Arguments, then: Arguments) -> np.ndarray:
        """The output of a second call with the arrays of the first, filled with other numbers. Misbehaved if the arrays cannot
        be written, as in jax."""
        buffers = self.tensors(a)
        self.run(buffers, a)
        for name, new in self.tensors(then).items():
            if len(np.shape(new)) == 0:
                buffers[name] = new
                continue
            try:
                buffers[name][...] = new
            except Exception as error:
                raise Misbehaved(f"{type(new).__name__} cannot be written in place") from error
        return self.restored(self.values(self.run(buffers, then), then), then)

    def run(self, given: dict[str, Any], a: Arguments) -> Any:
        """The result of `fn`, not converted. Misbehaved if `fn` raised."""
        if a.by_length is not None and any(np.max(a[name]) > 3 for name in PLACED if name in a):
            short = with_positions(a, {name: np.minimum(a[name], 3) for name in PLACED if name in a})
            self.run(self.tensors(short), short)  # some programs keep the longest length until a text is short
        omitted = next((i for i, name in enumerate(self.received) if name not in given), len(self.received))
        after = set(self.received[omitted:]) & given.keys()  # the next array would take the place of one that is omitted
        after = after if after <= self.own else set()
        named = {name: given[name] for name in given if name in self.by_name | after}
        placed = [value for name, value in given.items() if name not in named]
        named |= {name: self.setting(name, a[name]) for name in self.named & a.keys()}
        try:
            with np.errstate(**self.errors):  # theirs; the search that follows has infinities of its own
                return _entry(self.fn(*placed, **named), a.get("of"))
        except Misbehaved:
            raise
        except (Exception, SystemExit) as error:
            shapes = ", ".join(
                f"{name} {value if isinstance(value, int) else tuple(np.shape(value))}" for name, value in given.items()
            )
            raise Misbehaved(f"it raised {raised(error)}; called with {shapes}") from error

    def tensor(self, name: str, a: Arguments) -> Any:
        """One argument as `fn` wants it; None if `fn` does not receive it."""
        value = a[name]
        if self.lengths and name in PLACED:
            return int(value.shape[-1])
        if "positions" in name and self.positions in ("range", "offset"):
            return None if self.positions == "range" else int(np.min(value))
        if not isinstance(value, np.ndarray):
            return value
        array = self.laid_out(name, value, a)
        spread = self.strided and array.ndim > 1
        array = np.ascontiguousarray(between(array)) if spread else array
        if array.dtype.kind in "iub":
            made = self.whole(array)
        else:
            made, _ = converted("check.check", "to", self.to, array.astype(np.float32))
            self.given = dtype_name(made)
        return self.slice(name, made) if spread else made

    def whole(self, array: np.ndarray) -> Any:
        """Integers and booleans as `fn` wants them; booleans stay booleans. ValueError if the converter rounds the integers."""
        name = "to" if self.to_positions is self.to else "to_positions"
        made, values = converted("check.check", name, self.to_positions, array)
        if not np.array_equal(values, array):
            raise ValueError(
                f"check.check: {name}= turns integers up to {array.max()} into {dtype_name(made)}, which does not hold "
                "them; pass to_positions=, for instance torch.from_numpy or jax.numpy.asarray"
            )
        return made != 0 if array.dtype.kind == "b" and "bool" not in dtype_name(made) else made

    def slice(self, name: str, made: Any) -> Any:
        try:
            view = strided(made)
        except Exception as error:
            raise Misbehaved(f"{type(made).__name__} has no slices ({_short(error)})") from error
        if not _contiguous(view):
            self.slices.append(name)
        return view

    def setting(self, name: str, value: Any) -> Any:
        """A setting as `fn` wants it; an array is converted by `to` if `to_positions` would round it."""
        if not isinstance(value, np.ndarray):
            return value
        if value.dtype.kind in "iub":
            return self.whole(value.copy())
        made, values = converted("check.check", "to_positions", self.to_positions, value.copy())
        return made if np.array_equal(values, value) else converted("check.check", "to", self.to, value.astype(np.float32))[0]

    def exchanged(self, name: str, a: Arguments) -> bool:
        """Whether `fn` wants (or returns) this array with its tokens before its heads."""
        if self.moved is None:
            self.moved = with_tokens_behind_heads(self.op, a)
        return name in self.moved

    def laid_out(self, name: str, x: np.ndarray, a: Arguments) -> np.ndarray:
        """An array in the axes of `fn`; for "thd" positions and coordinates are put on one axis as well. Others are
        unchanged."""
        if self.exchanged(name, a):
            x = np.ascontiguousarray(np.swapaxes(x, 1, 2))
            return x if self.axes == "bnhd" else x.reshape(-1, *x.shape[2:])
        if self.axes != "thd" or not name.endswith(TOKENWISE):
            return x.copy()
        batch, _, n, *_ = next(a[one].shape for one in self.op.given if self.exchanged(one, a))
        rows = x if x.shape[:2] == (batch, n) else np.broadcast_to(x, (batch, *x.shape))
        return rows.reshape(-1, *rows.shape[2:]).copy()

    def restored(self, got: np.ndarray, a: Arguments, of: str = RESULT) -> np.ndarray:
        """The result of `fn`, or a gradient, in the axes of the specification. Misbehaved if its shape is not that of `fn`'s
        axes."""
        if not self.exchanged(of, a):
            return got
        batch, heads, n, *features = np.shape(self.op.spec(**a) if of == RESULT else a[of])
        expected = (batch, n, heads, *features) if self.axes == "bnhd" else (batch * n, heads, *features)
        if got.shape != expected:
            raise Misbehaved(f"it returned shape {got.shape}, expected {expected} with axes={self.axes}")
        return np.swapaxes(got.reshape(batch, n, heads, *features), 1, 2)


def between(array: Any) -> Any:
    """The array between zeros `(.., 3, d)`, like one of q, k, v that were projected together; of four axes the middle two are
    exchanged."""
    array = np.swapaxes(array, 1, 2) if array.ndim == 4 else array
    return np.stack([np.zeros_like(array), array, np.zeros_like(array)], axis=-2)


def strided(made: Any) -> Any:
    """The array in the middle of what `between` made, in its own axes: the same numbers with other strides and an offset.

    >>> view = strided(between(np.arange(12.0).reshape(1, 2, 3, 2)))
    >>> view.shape, view.flags.c_contiguous, view[0, 1, 2]
    ((1, 2, 3, 2), False, array([10., 11.]))
    """
    view = made[..., 1, :]
    return view.swapaxes(1, 2) if view.ndim == 4 else view


def _contiguous(tensor: Any) -> bool:
    """Whether its elements are contiguous in memory; True if the tensor does not say."""
    if hasattr(tensor, "is_contiguous"):
        return bool(tensor.is_contiguous())
    return bool(getattr(getattr(tensor, "flags", None), "c_contiguous", True))


def _entry(result: Any, of: Any) -> Any:
    """The gradient named `of`, if the result is a named tuple with such a field; else the result itself."""
    return getattr(result, of) if of in getattr(result, "_fields", ()) else result


def parameters_of(fn: Any) -> list[inspect.Parameter]:
    """The parameters of a function, or of the forward of a torch module; empty if Python knows no signature."""
    try:
        return [*inspect.signature(fn.forward if callable(getattr(fn, "forward", None)) else fn).parameters.values()]
    except (TypeError, ValueError):
        return []


def bound_names(fn: Any) -> set[str]:
    """The keywords that `functools.partial` has bound in the function, its method, and in all that these wrap or call."""
    names: set[str] = set()
    waiting, seen = [fn], list[Any]()
    while waiting:
        one = waiting.pop()
        if one is None or any(one is each for each in seen):
            continue
        seen.append(one)
        names |= one.keywords.keys() if isinstance(one, PARTIAL) else set()
        waiting.append(
            one.func if isinstance(one, PARTIAL) else getattr(one, "__func__" if inspect.ismethod(one) else "__wrapped__", None)
        )
        waiting += [getattr(one, "__dict__", {}).get(name) for name in PARTIALMETHOD] + [vars(type(one)).get("__call__")]
    return names


def output(result: Any, expected: Callable[[], tuple[int, ...]] = tuple) -> np.ndarray:
    """The values of a result. A tuple is stacked, or joined side by side, if that has the expected shape; complex numbers
    become real and imaginary parts on a last axis if that has it. Misbehaved for all else."""
    if isinstance(result, (tuple, list)):
        return _together(result, expected())
    if result is None:
        raise Misbehaved("it returned None; if it works in place, wrap it so that it returns x")
    try:
        if dtype_name(result) in REAL:
            values = on_host(result)
            parts = np.stack([values.real, values.imag], axis=-1).astype(np.float64)
            if parts.shape == expected():
                return parts
            raise Misbehaved("it returned complex numbers; wrap it so that it returns the pairs as real features")
        return as_float64(result).copy()
    except Misbehaved:
        raise
    except Exception as error:  # numpy says TypeError or ValueError, a tensor on a device what it likes
        raise Misbehaved(
            f"it returned {_require.kind(result)}, which does not become a numpy array ({_short(error)}); "
            "wrap it so that it returns a numpy array or a float32 tensor"
        ) from error


def _together(results: Any, expected: tuple[int, ...]) -> np.ndarray:
    """Several results joined to the expected shape: stacked along a new first axis, or side by side, as cos and sin."""
    for join in (np.stack, partial(np.concatenate, axis=-1)):
        with suppress(ValueError, Misbehaved):
            if expected and (made := join([output(each) for each in results])).shape == expected:
                return made
    raise Misbehaved(f"it returned {_require.kind(results)} of {len(results)}; wrap it so that it returns the result alone")


def converted(function: str, name: str, converter: Callable[[Any], Any], array: np.ndarray) -> tuple[Any, np.ndarray]:
    """What the converter returns for the array, and its values as float64. ValueError if the converter raises."""
    try:
        with np.errstate(over="ignore"):  # infinities are refused with the remedy
            made = converter(array)
        return made, as_float64(made).copy()
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"{function}: {name}= raised {raised(error)}; it must take a numpy array of {array.dtype} and return a tensor"
        ) from error


def raised(error: BaseException) -> str:
    """The error in one line, with the last line of the user's own code that led to it.

    >>> raised(ValueError("no such kernel"))
    'ValueError: no such kernel'
    """
    where = line_of(error)
    return f"{type(error).__name__}{': ' if str(error) else ''}{_short(error)}{f' ({where})' if where else ''}"


def line_of(error: BaseException) -> str:
    """FILE:LINE of the last line of the user's own code that led to the error; "" if the call itself failed."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(NOT_THEIRS)]
    own = [frame for frame in frames if not _of_a_library(frame.filename)] or frames
    return f"{own[-1].filename}:{own[-1].lineno}" if own else ""


def _of_a_library(filename: str) -> bool:
    return filename.startswith(sysconfig.get_path("stdlib")) or not set(LIBRARIES).isdisjoint(Path(filename).parts)


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:197] + "..."
