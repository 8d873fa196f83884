"""Properties: what every rotation satisfies, checked without a reference and whatever the layout or the base.

With rounding per entry at most e = (u_table + 2 u_arithmetic) sqrt(2) + u_output of the length of its pair, and an angle
error of at most p max_t(theta_t k_t) u_angle at position p, over a vector:

    norm          | |y|^2 - |x|^2 |            <=  (2e + e^2) |x|^2
    linear        |f(x) + f(z) - f(x + z)|     <=  2e (|x| + |z|)         the angle error is the same in all three
    composition   |f(f(x, m), n) - f(x, m+n)|  <=  (3e + angle errors at m, n, m + n + 2^-24) |x| + what to= rounds off f(x, m)
    shift         |<f(q,m), f(k,n)> - <f(q,m+s), f(k,n+s)>|  <=  (4e + angle errors) |q| |k|
"""

import numpy as np

from posref.check import precision, probe
from posref.check.call import Callee, Misbehaved
from posref.check.report import Report

SHIFT = 1000


def entry_error(model: str) -> float:
    """e, with second-order terms."""
    m = precision.MODELS[model]
    return precision.SECOND_ORDER * (np.sqrt(2) * m.c_amp + m.c_out)


def angle_error(positions: np.ndarray, frequencies: np.ndarray, model: str) -> np.ndarray:
    """The largest phase error of any pair at each position, in radians."""
    m = precision.MODELS[model]
    growth = frequencies * precision.phase_growth(frequencies, m.way)
    return precision.SECOND_ORDER * m.c_phase * np.abs(positions) * growth.max()


def check(
    report: Report, call: Callee, x: np.ndarray, positions: np.ndarray, y: np.ndarray, frequencies: np.ndarray, model: str
) -> None:
    """Add the five checks; `y` is the output at `x` `(b, h, n, d)` and `positions` `(b, n)`, `model` the loosest allowed."""
    e, floor = entry_error(model), precision.MODELS[model].floor * x.shape[-1]
    _identity(report, x, positions, y, e, floor)
    _norm(report, x, positions, y, e, floor)
    try:
        z = probe.painted(x.shape, 3)
        _linear(report, x, z, y, call(z, positions), call(x + z, positions), e, floor)
        limit = int(positions.max())
        if limit < 2:
            report.skipped("shift invariance", f"needs positions beyond {limit}")
            report.skipped("composition", f"needs positions beyond {limit}")
            return
        near = positions % min(97, limit // 2 + 1)
        moved = near + min(SHIFT, limit // 2)
        error = angle_error(moved, frequencies, model).max()
        _shift(report, [call(v, p) for p in (near, moved) for v in (x, z)], x, z, e, error, floor)
        twice = call(call(x, near), moved - near)
        taken = (_length(call.rounding) / _length(x)).max()  # of an output wider than the inputs
        _composition(report, twice, call(x, moved), x, e, 3 * error + (1 + e) * taken, floor)
    except Misbehaved as error:
        report.failed("repeated calls", str(error))


def _length(v: np.ndarray) -> np.ndarray:
    return np.sqrt((v * v).sum(axis=-1))


def _identity(report: Report, x: np.ndarray, positions: np.ndarray, y: np.ndarray, e: float, floor: float) -> None:
    at = np.broadcast_to((positions == 0)[:, None, :], x.shape[:-1])
    error = np.abs(y - x)[at].max(initial=0.0)
    if error <= e * np.abs(x).max() + floor:
        report.passed("identity at position 0")
    else:
        report.failed("identity at position 0", f"x changes by up to {error:.3g} at position 0")


def _norm(report: Report, x: np.ndarray, positions: np.ndarray, y: np.ndarray, e: float, floor: float) -> None:
    ratio = _length(y) / _length(x)
    if (np.abs(ratio**2 - 1) <= 2 * e + e * e + floor).all():
        report.passed("norm kept")
        return
    low, high = float(ratio.min()), float(ratio.max())
    report.failed("norm kept", f"lengths of vectors are multiplied by {low:.6g} to {high:.6g}")


def _linear(
    report: Report, x: np.ndarray, z: np.ndarray, y: np.ndarray, yz: np.ndarray, both: np.ndarray, e: float, floor: float
) -> None:
    if np.array_equal(y, yz):
        report.failed("linear in x", "the output does not depend on x")
        return
    error = _length(y + yz - both) / (_length(x) + _length(z))
    _verdict(report, "linear in x", error, 2 * e + floor, "f(x) + f(z) and f(x + z) differ by {:.3g} of |x| + |z|")


def _shift(
    report: Report, outputs: list[np.ndarray], x: np.ndarray, z: np.ndarray, e: float, angle: float, floor: float
) -> None:
    near, moved = outputs[0] @ np.swapaxes(outputs[1], -1, -2), outputs[2] @ np.swapaxes(outputs[3], -1, -2)
    error = np.abs(near - moved) / (_length(x)[..., :, None] * _length(z)[..., None, :])
    _verdict(report, "shift invariance", error, 4 * e + 4 * angle + floor, "scores change by {:.3g} of |q| |k| when both move")


def _composition(
    report: Report, twice: np.ndarray, once: np.ndarray, x: np.ndarray, e: float, angle: float, floor: float
) -> None:
    error = _length(twice - once) / _length(x)
    _verdict(
        report,
        "composition",
        error,
        3 * e + e * e + angle + floor + precision.F32,
        "R(m) R(n) x and R(m + n) x differ by {:.3g} of |x|",
    )


def _verdict(report: Report, name: str, error: np.ndarray, limit: float, sentence: str) -> None:
    worst = float(error.max())
    if worst <= limit:
        report.passed(name)
    else:
        report.failed(name, sentence.format(worst))
