"""RoPE: is somebody else's implementation the one that was asked for, and if not, which one is it?"""

from collections.abc import Callable
from typing import Any

import numpy as np

from posref import _require, pairing
from posref.check import precision, probe, properties
from posref.check.call import Callee
from posref.check.first_level import allowed_models, called, finite
from posref.check.judge import judge
from posref.check.report import Report
from posref.check.rotation import Asked
from posref.check.run import Run


def check_rope(
    fn: Callable[..., Any],
    *,
    dim: int,
    layout: str,
    base: float = 10000.0,
    rotary_dim: int | None = None,
    to: Callable[[Any], Any] | None = None,
    to_positions: Callable[[Any], Any] | None = None,
    max_position: int = 1_000_000,
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
    got = called(report, call, x, at)
    if got is None:
        return report
    models = allowed_models(report, call.dtype, model)
    if models is None or not finite(report, got, at):
        return report
    run = Run(asked, x, at[:, None], got, models)
    if np.isfinite(got).all():
        properties.check(report, call, x, at, got, width=asked.rotary_dim, base=asked.base, model=models[-1])
    judge(report, run, call)
    _notes(report, call)
    return report


def _asked(dim: int, rotary_dim: int | None, base: float, layout: str) -> Asked:
    width = dim if rotary_dim is None else rotary_dim
    _require.even("check.check_rope", "rotary_dim" if rotary_dim is not None else "dim", width)
    _require.positive("check.check_rope", "base", base)
    _require.choice("check.check_rope", "layout", layout, pairing.LAYOUTS)
    if width > dim:
        raise ValueError(f"check.check_rope: rotary_dim is {width} and dim {dim}; rotary_dim cannot exceed dim")
    return Asked(int(dim), int(width), float(base), layout)


def _notes(report: Report, call: Callee) -> None:
    if call.shared:
        report.ambiguous.append("whether rows of a batch may have positions of their own: positions were shared.")
    if call.modified:
        report.advice.append("The input was modified: callers that need x afterwards must copy it.")
