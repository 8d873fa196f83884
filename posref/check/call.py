"""Call: somebody else's function, called with copies in its own tensors and axes, its result as float64, its failures as
sentences."""

import inspect
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from posref import _require
from posref.check.tensors import as_float64, dtype_name
from posref.ops import Arguments, Op

NOT_THEIRS = (str(Path(__file__).parents[1]), "<frozen", "<__array_function__", "<contract of ")
LIBRARIES = ("site-packages", "dist-packages")


class Misbehaved(Exception):
    """The callable raised, or returned something that is no tensor of numbers."""


class Caller:
    """`fn`, called with copies in its own tensors and axes, its result as float64."""

    def __init__(self, fn: Any, op: Op, to: Any, to_positions: Any, axes: str, positions: str):
        self.fn, self.op, self.axes, self.positions = fn, op, axes, positions
        self.to = to or (lambda a: a)
        self.to_positions = to_positions or self.to
        self.plain = to is None
        self.errors = np.geterr()
        self.modified = ""
        self.dtype = self.given = ""
        self.result: Any = None
        self.strided, self.slices = False, list[str]()
        self.named = _names(fn) - set(op.given)

    def others(self) -> Iterator[tuple[str, "Caller"]]:
        """Calls that may work where this one does not, and what to pass for them."""
        given = self.fn, self.op
        for module, function in (("torch", "from_numpy"), ("jax.numpy", "asarray")):
            if self.plain and module in sys.modules:
                to = getattr(sys.modules[module], function)
                yield f"It runs with tensors: pass to={module}.{function}.", Caller(*given, to, to, self.axes, self.positions)

    def with_strides(self) -> "Caller":
        """The same calls with slices, whose names it keeps."""
        other = copy(self)
        other.strided, other.slices = True, []
        return other

    def __call__(self, a: Arguments) -> np.ndarray:
        """The output in the axes of the specification. Misbehaved if it raised or returned no array."""
        given = [(name, self.tensor(name, a)) for name in self.op.given if name in a]
        given = [(name, value) for name, value in given if value is not None]
        before = [output(value) for _, value in given]
        self.result = self.run([value for _, value in given], a)
        got = output(self.result)
        self.dtype = dtype_name(self.result)
        for (name, value), old in zip(given, before, strict=True):
            if not np.array_equal(old, output(value)):
                self.modified = name
        return self.restored(got, a)

    def run(self, given: list[Any], a: Arguments) -> Any:
        """The result of `fn` as it is."""
        try:
            with np.errstate(**self.errors):  # theirs; the search that follows has infinities of its own
                return self.fn(*given, **{name: self.setting(a[name]) for name in self.named & a.keys()})
        except (Exception, SystemExit) as error:
            shapes = ", ".join(f"{name} {np.shape(a[name])}" for name in self.op.given if name in a)
            raise Misbehaved(f"it raised {raised(error)}; called with {shapes}") from error

    def tensor(self, name: str, a: Arguments) -> Any:
        """An argument as `fn` wants it; None for what it does not receive."""
        value = a[name]
        if "positions" in name and self.positions in ("range", "offset"):
            return None if self.positions == "range" else int(np.min(value))
        if not isinstance(value, np.ndarray):
            return value
        whole = value.dtype.kind in "iub"
        array = value.copy() if whole else self.laid_out(value).astype(np.float32)
        array = array.reshape(-1) if self.axes == "thd" and "positions" in name else array
        converter = "to_positions" if whole and self.to_positions is not self.to else "to"
        spread = self.strided and array.ndim > 1
        array = np.ascontiguousarray(between(array)) if spread else array
        made, values = converted("check.check", converter, getattr(self, converter), array)
        if whole and not np.array_equal(values, array):
            raise ValueError(
                f"check.check: {converter}= turns integers up to {array.max()} into {dtype_name(made)}, which does not hold "
                "them; pass to_positions=, for instance torch.from_numpy or jax.numpy.asarray"
            )
        self.given = self.given if whole else dtype_name(made)
        return self.slice(name, made) if spread else made

    def slice(self, name: str, made: Any) -> Any:
        try:
            view = strided(made)
        except Exception as error:
            raise Misbehaved(f"{type(made).__name__} has no slices ({_short(error)})") from error
        if not _contiguous(view):
            self.slices.append(name)
        return view

    def setting(self, value: Any) -> Any:
        return self.to_positions(value.copy()) if isinstance(value, np.ndarray) else value

    def laid_out(self, x: np.ndarray) -> np.ndarray:
        """`(batch, heads, n, d)` in the axes of `fn`."""
        if x.ndim != 4 or self.axes == "bhnd":
            return x.copy()
        x = np.ascontiguousarray(np.swapaxes(x, 1, 2))
        return x if self.axes == "bnhd" else x.reshape(-1, *x.shape[2:])

    def restored(self, got: np.ndarray, a: Arguments) -> np.ndarray:
        """The result of `fn` in the axes of the specification, where it has those of `fn`."""
        if self.axes == "bhnd" or not any(isinstance(a[name], np.ndarray) and a[name].ndim == 4 for name in self.op.given):
            return got
        first = next(a[name] for name in self.op.given if isinstance(a[name], np.ndarray) and a[name].ndim == 4)
        if self.axes == "thd" and got.ndim == 3:
            got = got.reshape(len(first), -1, *got.shape[1:])
        heads_last = got.ndim == 4 and got.shape[2] == first.shape[1] and got.shape[1] == first.shape[2]
        return np.swapaxes(got, 1, 2) if heads_last else got


def between(array: Any) -> Any:
    """The array between zeros `(.., 3, d)`, of four axes with the middle ones exchanged: as one of q, k, v that were projected
    together."""
    array = np.swapaxes(array, 1, 2) if array.ndim == 4 else array
    return np.stack([0 * array, array, 0 * array], axis=-2)


def strided(made: Any) -> Any:
    """The array that is between zeros, seen in its axes: the same numbers with other strides, after a start.

    >>> view = strided(between(np.arange(12.0).reshape(1, 2, 3, 2)))
    >>> view.shape, view.flags.c_contiguous, view[0, 1, 2]
    ((1, 2, 3, 2), False, array([10., 11.]))
    """
    view = made[..., 1, :]
    return view.swapaxes(1, 2) if view.ndim == 4 else view


def _contiguous(tensor: Any) -> bool:
    """Whether its elements stand in a row; True where a tensor knows no strides."""
    if hasattr(tensor, "is_contiguous"):
        return bool(tensor.is_contiguous())
    return bool(getattr(getattr(tensor, "flags", None), "c_contiguous", True))


def _names(fn: Any) -> set[str]:
    """The arguments that a function takes by name; none of one that does not say."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return set()
    return {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}


def output(result: Any) -> np.ndarray:
    if isinstance(result, (tuple, list)):
        raise Misbehaved(f"it returned {_require.kind(result)} of {len(result)}; wrap it so that it returns the result alone")
    if result is None:
        raise Misbehaved("it returned None; if it works in place, wrap it so that it returns x")
    try:
        if dtype_name(result).startswith("complex"):
            raise Misbehaved("it returned complex numbers; wrap it so that it returns the pairs as real features")
        return as_float64(result).copy()
    except Misbehaved:
        raise
    except Exception as error:  # numpy says TypeError or ValueError, a tensor on a device what it likes
        raise Misbehaved(
            f"it returned {_require.kind(result)}, which does not become a numpy array ({_short(error)}); "
            "wrap it so that it returns a numpy array or a float32 tensor"
        ) from error


def converted(function: str, name: str, converter: Callable[[Any], Any], array: np.ndarray) -> tuple[Any, np.ndarray]:
    """What the converter makes of the array, and its values."""
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
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(NOT_THEIRS)]
    own = [frame for frame in frames if not _of_a_library(frame.filename)] or frames
    where = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}{': ' if str(error) else ''}{_short(error)}{where}"


def _of_a_library(filename: str) -> bool:
    return filename.startswith(sysconfig.get_path("stdlib")) or not set(LIBRARIES).isdisjoint(Path(filename).parts)


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:197] + "..."
