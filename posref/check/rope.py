"""RoPE: is somebody else's implementation the one that was asked for, and if not, which one is it?"""

from collections.abc import Callable
from typing import Any

import numpy as np

from posref import _require, pairing, vectors
from posref.check import hypotheses, precision, probe, properties, reading, search, tensors
from posref.check.call import Callee, Misbehaved
from posref.check.report import Precision, Report
from posref.check.rotation import Asked, correct, ratios, residual, turn
from posref.check.search import Run
from posref.rotary import rope

MAX_POSITION = 1_000_000
f32 = np.float32


def check_rope(
    fn: Callable[..., Any],
    *,
    dim: int,
    layout: str,
    base: float = 10000.0,
    rotary_dim: int | None = None,
    to: Callable[[Any], Any] | None = None,
    to_positions: Callable[[Any], Any] | None = None,
    max_position: int = MAX_POSITION,
    positions: str = "batch",
    model: str | None = None,
) -> Report:
    """Check `fn(x, positions) -> rotated x` and say what it computes if that is not RoPE as asked.

    `fn` receives x `(batch, heads, n, dim)`, float32 or what `to(x)` makes of it, and integer positions `(batch, n)`, not
    sorted and different in every row; it returns the rotated x in the same axes. With `positions="shared"` it receives
    positions `(n,)` for all rows; whether rows with their own positions are served is then not tested. `to` converts numpy
    arrays to tensors, `to_positions` the positions if `to` would round them. `max_position` is the largest position used;
    lower it for an implementation with a shorter table. `model` demands one precision model (`posref.check.precision`)
    instead of those its output dtype allows.

    ValueError for arguments that make no sense; whatever `fn` does wrong is in the report, not raised.

    >>> import numpy as np
    >>> from posref.rotary import rope
    >>> def rotate(x, positions):
    ...     cos, sin = rope.tables(positions[:, None], rope.frequencies(8))
    ...     return rope.rotate(x, cos, sin, layout="interleaved")
    >>> check_rope(rotate, dim=8, layout="interleaved").ok
    True
    >>> check_rope(rotate, dim=8, layout="half").diagnosis[0].name
    'layout interleaved'
    """
    asked = _asked(dim, rotary_dim, base, layout)
    _require.choice("check.check_rope", "positions", positions, ("batch", "shared"))
    _require.positive("check.check_rope", "max_position", max_position)
    if model is not None:
        _require.choice("check.check_rope", "model", model, tuple(precision.MODELS))
    report = Report(str(asked))
    call = Callee(fn, to, to_positions, positions == "shared")
    at = probe.positions(int(max_position), shared=call.shared)
    x = probe.painted((probe.BATCH, probe.HEADS, at.shape[1], asked.dim), 1)
    got = _called(report, call, x, at)
    if got is None:
        return report
    models = _models(report, call.dtype, model)
    if models is None or not _finite(report, got, at):
        return report
    run = Run(asked, x, at[:, None], got, models)
    if np.isfinite(got).all():
        properties.check(report, call, x, at, got, width=asked.rotary_dim, base=asked.base, model=models[-1])
    _judge(report, run, call)
    _notes(report, call)
    return report


def diagnose(case: Any, output: Any, *, dtype: str | None = None, model: str | None = None) -> Report:
    """Compare an output with a golden case and say what it equals.

    `case` is one of `posref.vectors` or its id; `output` is an array or tensor of the shape of the expected one, `dtype` its
    dtype where the array does not say (bf16 that was widened to float32). Rotations are diagnosed; of other operations the
    worst element is reported.

    >>> from posref import vectors
    >>> got = vectors.case("rope/interleaved/d8-b1e4/tiny").expected
    >>> diagnose("rope/half/d8-b1e4/tiny", got).diagnosis[0].name
    'layout interleaved'
    """
    if isinstance(case, str):
        case = vectors.case(case)
    report = Report(case.id)
    kind = tensors.dtype_name(output) if dtype is None else tensors.DTYPES.get(dtype, dtype)
    got = tensors.as_float64(output)
    if not _same_shape(report, got.shape, case.expected.shape):
        return report
    allowed = _models(report, kind, model)
    if allowed is None:
        return report
    if case.cond is not None:
        allowed = tuple(name for name in allowed if name.removesuffix("-iterative") in case.models)
    if not allowed:
        report.failed("dtype", f"{kind} cannot hold this case; it is meant for {', '.join(case.models)}")
        return report
    if case.op != "rotate":
        _compare(report, case, got, allowed)
        return report
    run = _case_run(case, got, allowed)
    if _finite(report, run.got, run.positions[:, 0]):
        _judge(report, run, None)
    return report


def _judge(report: Report, run: Run, call: Callee | None) -> None:
    if _values(report, run):
        _blind_spots(report, run)
    else:
        search.explain(report, run, None if call is None else _impulse(report, call, run))


def _asked(dim: int, rotary_dim: int | None, base: float, layout: str) -> Asked:
    width = dim if rotary_dim is None else rotary_dim
    _require.even("check.check_rope", "rotary_dim" if rotary_dim is not None else "dim", width)
    _require.positive("check.check_rope", "base", base)
    _require.choice("check.check_rope", "layout", layout, pairing.LAYOUTS)
    if width > dim:
        raise ValueError(f"check.check_rope: rotary_dim is {width} and dim {dim}; rotary_dim cannot exceed dim")
    return Asked(int(dim), int(width), float(base), layout)


# first level: does it run, and is the result an array of the right kind --------------------------------------------------


def _called(report: Report, call: Callee, x: np.ndarray, at: np.ndarray) -> np.ndarray | None:
    try:
        got = call(x, at)
    except Misbehaved as error:
        report.failed("call", str(error))
        report.advice += _what_works(call, x, at)
        return None
    report.passed("call", "the input was modified: it works in place" if call.modified else "")
    return got if _same_shape(report, got.shape, x.shape) else None


def _what_works(call: Callee, x: np.ndarray, at: np.ndarray) -> list[str]:
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


def _same_shape(report: Report, got: tuple[int, ...], expected: tuple[int, ...]) -> bool:
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


def _models(report: Report, dtype: str, model: str | None) -> tuple[str, ...] | None:
    allowed = precision.BY_DTYPE.get(dtype)
    if allowed is None:
        report.failed("dtype", f"the output has dtype {dtype}, expected one of {', '.join(precision.BY_DTYPE)}")
        return None
    report.passed("dtype", dtype)
    return allowed if model is None else (model,)


def _finite(report: Report, got: np.ndarray, at: np.ndarray) -> bool:
    """False if there is nothing left to look at."""
    bad = ~np.isfinite(got)
    if not bad.any():
        report.passed("finite")
        return True
    rows = np.broadcast_to(at[:, None], got.shape[:-1])[bad.any(axis=-1)]
    report.failed("finite", f"{bad.sum()} of {got.size} values are NaN or infinite, from position {rows.min()} on")
    return not bad.all()


# values --------------------------------------------------------------------------------------------------------------


def _values(report: Report, run: Run) -> bool:
    turned = turn(correct(run.asked), run.x, run.positions)
    for model in run.models:
        worst = residual(run.got, turned, model)
        if worst <= 1:
            report.passed("values", f"within the bound, at most {worst:.2g} of it")
            report.precision = Precision(model, worst, precision.MEANING[model], _recipes(run, model))
            return True
    ratio = ratios(run.got, turned, run.models[-1])
    b, h, n, feature = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    at = np.broadcast_to(run.positions, ratio.shape[:-1])
    report.failed(
        "values",
        f"worst error {ratio.max():.3g} times the bound of {run.models[-1]}, at batch {b}, head {h}, row {n}, "
        f"feature {feature} (position {at[b, h, n]}); wrong from position {at[(ratio > 1).any(axis=-1)].min()} on, "
        f"{(ratio > 1).mean():.0%} of the values",
    )
    return False


def _impulse(report: Report, call: Callee, run: Run) -> Any:
    try:
        found = reading.impulse(call, run.asked, int(run.positions.max()))
    except Misbehaved as error:
        report.skipped("impulse response", str(error))
        return None
    asked = correct(run.asked).pairs
    if found.pairs is not None and reading.same_pairs(found.pairs, asked):
        report.passed("impulse response", found.sentence)
    else:
        report.failed("impulse response", found.sentence)
    return found.pairs


def _recipes(run: Run, model: str) -> tuple[str, ...]:
    """The ways to compute float32 angles that explain most pairs, three quarters of them or more, but for later rounding.

    Libraries differ in the last bit of powers and exponentials, so the right recipe may miss a few pairs.
    """
    first, second = pairing.indices(run.asked.rotary_dim, run.asked.layout)
    turned = turn(correct(run.asked), run.x, run.positions)
    exact = precision.tolerance(turned.amp, turned.phase, turned.y, "f64")
    explained = {}
    for name, angles in angle_recipes(run.asked, run.positions).items():
        y = rope.rotate(run.x, np.cos(angles), np.sin(angles), layout=run.asked.layout, rotary_dim=run.asked.rotary_dim)
        inside = np.abs(run.got - y) <= precision.tolerance(turned.amp, 0 * turned.phase, y, model) + exact
        explained[name] = (inside[..., first] & inside[..., second]).all(axis=(0, 1, 2)).mean()
    best = max(explained.values())
    return tuple(name for name, share in explained.items() if share == best >= 0.75)


def angle_recipes(asked: Asked, positions: np.ndarray) -> dict[str, np.ndarray]:
    """Angles `positions.shape + (pairs,)` as float64, computed exactly and in four float32 ways, functions well rounded."""
    width, base = asked.rotary_dim, asked.base
    even, exact = np.arange(0, width, 2).astype(f32), rope.frequencies(width, base)
    power = np.power(base, (even / f32(width)).astype(np.float64)).astype(f32)
    frequencies = {
        "exact frequencies cast to float32": exact.astype(f32),
        "float32 1 / base**(2t/dim) (transformers)": f32(1) / power,
        "float32 exp(-2t ln(base)/dim)": np.exp((even * f32(-np.log(base) / width)).astype(np.float64)).astype(f32),
    }
    recipes = {"exact angles": positions[..., None] * exact}
    m = positions.astype(f32)
    recipes |= {name: (m[..., None] * theta).astype(np.float64) for name, theta in frequencies.items()}
    angle, steps, ratio = m, [], np.power(base, np.float64(f32(-2 / width))).astype(f32)
    for _ in range(width // 2):
        steps.append(angle)
        angle = angle * ratio
    recipes["float32 repeated multiplication (ggml)"] = np.stack(steps, axis=-1).astype(np.float64)
    return recipes


def _blind_spots(report: Report, run: Run) -> None:
    """Mistakes that would have given the same output on this data."""
    seen = run._replace(got=turn(correct(run.asked), run.x, run.positions).y, models=run.models[:1])
    limit, blind = int(run.positions.max()), []
    for h in hypotheses.all_hypotheses(run.asked):
        changed = h.change(run.asked, correct(run.asked))
        if changed is None or changed.table or changed.model:
            continue
        if search.fitness(seen, changed) <= 1:
            blind.append(h.name)
    rest = [name for name in blind if not name.startswith(("positions clamped", "positions modulo"))]
    if rest:
        more = f"; and {len(rest) - 12} more" if len(rest) > 12 else ""
        report.ambiguous.append(f"this data cannot tell RoPE as asked from: {'; '.join(rest[:12])}{more}.")
    if limit < MAX_POSITION:
        report.ambiguous.append(f"positions beyond {limit} were not tested.")


def _notes(report: Report, call: Callee) -> None:
    if call.shared:
        report.ambiguous.append("whether rows of a batch may have positions of their own: positions were shared.")
    if call.modified:
        report.advice.append("The input was modified: callers that need x afterwards must copy it.")


# golden cases --------------------------------------------------------------------------------------------------------


def _case_run(case: Any, got: np.ndarray, models: tuple[str, ...]) -> Run:
    """The case with axes (batch, heads, n, dim) and positions (batch, 1, n)."""
    x, at = case.tensors["x"], case.tensors["positions"]
    asked = _asked(x.shape[-1], case.params["dim"], case.params["base"], case.params["layout"])
    if at.shape[-1] != x.shape[-2]:
        x, got, at = np.swapaxes(x, 1, 2), np.swapaxes(got, 1, 2), np.swapaxes(at, 1, 2)
    lead = (1,) * (4 - x.ndim)
    at = at.reshape((1,) * (3 - at.ndim) + at.shape)
    return Run(asked, x.reshape(lead + x.shape).astype(np.float64), at, got.reshape(lead + got.shape), models)


def _compare(report: Report, case: Any, got: np.ndarray, models: tuple[str, ...]) -> None:
    for model in models:
        golden = model.removesuffix("-iterative")
        worst = vectors.error(case, got, golden)
        if worst <= 1:
            report.passed("values", f"within the bound, at most {worst:.2g} of it")
            report.precision = Precision(golden, worst, precision.MEANING[golden])
            return
    error = np.abs(got - case.expected)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
    place = ", ".join(map(str, index))
    report.failed("values", f"the element at ({place}) is {got[index]:.9g}, expected {case.expected[index]:.9g}")
