"""First level: does it run, and is the result an array of the right shape and dtype, with finite numbers?"""

import numpy as np

from posref.check import precision
from posref.check.call import Callee, Misbehaved
from posref.check.report import Report


def called(report: Report, call: Callee, x: np.ndarray, at: np.ndarray) -> np.ndarray | None:
    """The output if it has the shape of x; otherwise the report says what went wrong."""
    try:
        got = call(x, at)
    except Misbehaved as error:
        report.failed("call", str(error))
        report.advice += _what_works(call, x, at)
        return None
    report.passed("call", "the input was modified: it works in place" if call.modified else "")
    return got if same_shape(report, got.shape, x.shape) else None


def _what_works(call: Callee, x: np.ndarray, at: np.ndarray) -> list[str]:
    for name, tensors in call.with_tensors():
        if _runs(tensors, x, at % 16):
            return [f"It runs with tensors: pass to={name}."]
    for limit in (131071, 32767, 8191, 4095, 2047, 1023, 511, 127, 15):
        if limit < at.max() and _runs(call, x, at % (limit + 1)):
            return [f"It runs with positions up to {limit}: pass max_position={limit} or the length of its table."]
    if not call.shared:
        call.shared = True
        if _runs(call, x, at % 16):
            return ['It runs with one-dimensional positions: pass positions="shared".']
    return [
        "The contract is fn(x, positions): x (batch, heads, n, dim) and integer positions (batch, n); "
        "wrap the implementation, transpose inside, and return the rotated x."
    ]


def _runs(call: Callee, x: np.ndarray, at: np.ndarray) -> bool:
    try:
        return call(x, at).shape == x.shape
    except Misbehaved:
        return False


def same_shape(report: Report, got: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    """A transposed output is named: all extents differ."""
    if got == expected:
        report.passed("shape")
        return True
    names = ("batch", "heads", "n", "dim")
    detail = f"the output has shape {got}, expected {expected}"
    if sorted(got) == sorted(expected) and len(set(expected)) == len(expected) == len(names):
        detail += f": its axes are ({', '.join(names[expected.index(size)] for size in got)}), not ({', '.join(names)})"
        report.advice.append("Transpose the output back to the axes of x.")
    elif got[::-1][: len(expected)] == expected[::-1] or np.prod(got) == np.prod(expected):
        report.advice.append(f"Reshape the output to {expected}.")
    report.failed("shape", detail)
    return False


def allowed_models(report: Report, dtype: str, model: str | None, *, given: bool = False) -> tuple[str, ...]:
    """The precision models an output of this dtype may come from, strictest first."""
    allowed = precision.by_dtype(dtype, given=given)
    if not allowed:
        report.failed("dtype", f"the output has dtype {dtype}, expected one of {', '.join(precision.BY_DTYPE)}")
        return ()
    report.passed("dtype", dtype)
    return allowed if model is None else (model,)


def finite(report: Report, got: np.ndarray, at: np.ndarray | None = None) -> bool:
    """False if there is nothing left to look at. `at` are the positions `(batch, n)` of got `(batch, heads, n, d)`."""
    bad = ~np.isfinite(got)
    if not bad.any():
        report.passed("finite")
        return True
    if at is None:
        report.failed("finite", f"{bad.sum()} of {got.size} values are NaN or infinite")
        return False
    rows = np.broadcast_to(at[:, None], got.shape[:-1])[bad.any(axis=-1)]
    report.failed("finite", f"{bad.sum()} of {got.size} values are NaN or infinite, from position {rows.min()} on")
    return not bad.all()
