"""Call: somebody else's function, called with copies, its result as float64, its failures as sentences."""

from collections.abc import Callable
from typing import Any

import numpy as np

from posref.check.tensors import as_float64, dtype_name


class Misbehaved(Exception):
    """The callable raised, or returned something that is no tensor of numbers."""


class Callee:
    """`fn(x, positions)` with x `(batch, heads, n, dim)` and integer positions `(batch, n)`, or `(n,)` if shared."""

    def __init__(
        self, fn: Callable[..., Any], to: Callable[[Any], Any] | None, to_positions: Callable[[Any], Any] | None, shared: bool
    ):
        self.fn = fn
        self.to = to or (lambda a: a)
        self.to_positions = to_positions or self.to
        self.shared = shared
        self.modified = False
        self.rounding = np.zeros(())
        self.dtype = ""

    def __call__(self, x: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The output for `x` and `positions` `(batch, n)` or `(n,)`, as float64."""
        given = self.to(np.array(x, dtype=np.float32))
        before = as_float64(given).copy()
        self.rounding = before - x if before.shape == x.shape else np.zeros(x.shape)
        positions = positions[0] if self.shared and positions.ndim == 2 else positions
        converted = self._positions(positions)
        try:
            result = self.fn(given, converted)
        except Exception as error:
            raise Misbehaved(
                f"it raised {type(error).__name__}: {_short(error)}; called with x of shape {x.shape} "
                f"({dtype_name(given)}) and positions of shape {positions.shape} up to {positions.max()}"
            ) from error
        output = _output(result)
        self.dtype = dtype_name(result)
        self.modified |= not np.array_equal(before, as_float64(given))
        return output

    def _positions(self, positions: np.ndarray) -> Any:
        converted = self.to_positions(positions.copy())
        if not np.array_equal(as_float64(converted), positions):
            raise ValueError(
                f"check.check_rope: to= turns positions up to {positions.max()} into {dtype_name(converted)}, which does not "
                "hold them; pass to_positions=, for instance torch.from_numpy or jnp.asarray"
            )
        return converted


def _output(result: Any) -> np.ndarray:
    if isinstance(result, (tuple, list)):
        raise Misbehaved(
            f"it returned a {type(result).__name__} of {len(result)}; wrap it so that it returns the rotated x alone"
        )
    if result is None:
        raise Misbehaved("it returned None; if it works in place, wrap it so that it returns x")
    try:
        if dtype_name(result).startswith("complex"):
            raise Misbehaved("it returned complex numbers; wrap it so that it returns the pairs as real features")
        return as_float64(result).copy()
    except (TypeError, ValueError) as error:
        raise Misbehaved(
            f"it returned a {type(result).__name__}, which does not become a numpy array ({_short(error)}); "
            "wrap it so that it returns a numpy array or a float32 tensor"
        ) from error


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:197] + "..."
