"""Call: somebody else's function, called with copies, its result as float64, its failures as sentences."""

import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from posref.check.tensors import as_float64, dtype_name

NOT_THEIRS = (str(Path(__file__).parents[1]), "<frozen", "<__array_function__", "<contract of ")
LIBRARIES = ("site-packages", "dist-packages")


class Misbehaved(Exception):
    """The callable raised, or returned something that is no tensor of numbers."""


class Callee:
    """`fn(x, positions)` with x `(batch, heads, n, dim)` and integer positions `(batch, n)`, or `(n,)` if shared."""

    def __init__(
        self,
        fn: Callable[..., Any],
        to: Callable[[Any], Any] | None,
        to_positions: Callable[[Any], Any] | None,
        shared: bool,
        seen: tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]] | None = None,
    ):
        self.fn = fn
        self.seen = seen
        self.before, self.after = seen or (lambda x: x, lambda y: y)
        self.plain = to is None
        self.errors = np.geterr()
        self.to = to or (lambda a: a)
        self.to_positions = to_positions or self.to
        self.shared = shared
        self.modified = False
        self.rounding = np.zeros(())
        self.dtype = ""

    def __call__(self, x: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The output for `x` and `positions` `(batch, n)` or `(n,)`, as float64."""
        given, before = converted("check.check_rope", "to", self.to, np.array(self.before(x), dtype=np.float32))
        x = self.before(x)
        self.rounding = before - x if before.shape == x.shape else np.zeros(x.shape)
        positions = positions[0] if self.shared and positions.ndim == 2 else positions
        at = self._positions(positions)
        try:
            with np.errstate(**self.errors):  # theirs; the search that follows has infinities of its own
                result = self.fn(given, at)
        except (Exception, SystemExit) as error:
            raise Misbehaved(
                f"it raised {raised(error)}; called with x of shape {x.shape} "
                f"({dtype_name(given)}) and positions of shape {positions.shape} up to {positions.max()}"
            ) from error
        got = output(result)
        self.dtype = dtype_name(result)
        self.modified |= not np.array_equal(before, as_float64(given))
        return self.after(got) if got.shape == x.shape else got

    def with_tensors(self) -> "Iterator[tuple[str, Callee]]":
        """What to pass as `to` if nothing is converted yet, for each library that is imported, and the call with it."""
        for module, function in (("torch", "from_numpy"), ("jax.numpy", "asarray")):
            if self.plain and module in sys.modules:
                yield (
                    f"{module}.{function}",
                    Callee(self.fn, getattr(sys.modules[module], function), None, self.shared, self.seen),
                )

    def _positions(self, positions: np.ndarray) -> Any:
        name = "to" if self.to_positions is self.to else "to_positions"
        made, values = converted("check.check_rope", name, self.to_positions, positions.copy())
        if not np.array_equal(values, positions):
            raise ValueError(
                f"check.check_rope: {name}= turns positions up to {positions.max()} into {dtype_name(made)}, which does "
                "not hold them; pass to_positions=, for instance torch.from_numpy or jax.numpy.asarray"
            )
        return made


def output(result: Any) -> np.ndarray:
    if isinstance(result, (tuple, list)):
        raise Misbehaved(f"it returned a {type(result).__name__} of {len(result)}; wrap it so that it returns the result alone")
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
            f"it returned a {type(result).__name__}, which does not become a numpy array ({_short(error)}); "
            "wrap it so that it returns a numpy array or a float32 tensor"
        ) from error


def converted(function: str, name: str, converter: Callable[[Any], Any], array: np.ndarray) -> tuple[Any, np.ndarray]:
    """What the converter makes of the array, and its values."""
    try:
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
