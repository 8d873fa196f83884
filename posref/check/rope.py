"""RoPE: is somebody else's implementation the one that was asked for, and if not, which one is it?"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from posref import _require, pairing
from posref.check import precision, probe, properties
from posref.check.call import Callee
from posref.check.first_level import allowed_models, called, finite
from posref.check.implementation import check
from posref.check.judge import judge
from posref.check.report import Report
from posref.check.rotation import Asked, correct
from posref.check.run import Run
from posref.check.search import mistakes
from posref.check.tensors import as_float64

WIDEST = 2**16
LARGEST = 10**8  # every position up to it may be a limit or a modulus, and is tried
EXTREME = 30  # decimal exponents: frequencies times positions stay within float32


def check_rope(
    fn: Callable[..., Any],
    *,
    dim: int,
    layout: str,
    base: float | None = None,
    rotary_dim: int | None = None,
    exponent_dim: int | None = None,
    frequencies: Any = None,
    to: Callable[[Any], Any] | None = None,
    to_positions: Callable[[Any], Any] | None = None,
    max_position: int = 1_000_000,
    positions: str = "batch",
    model: str | None = None,
    magnitude: float = 1.0,
    sign: int = 1,
) -> Report:
    """Check `fn(x, positions) -> rotated x` and say what it computes if that is not RoPE as asked.

    `fn` receives x `(batch, heads, n, dim)`, float32 or what `to(x)` makes of it, and integer positions `(batch, n)`, not
    sorted and different in every row; it returns the rotated x in the same axes. With `positions="shared"` it receives
    positions `(n,)` for all rows; whether rows with their own positions are served is then not tested. `to` converts numpy
    arrays to tensors, `to_positions` the positions if `to` would round them. `max_position` is the largest position used;
    lower it for an implementation with a shorter table. `model` demands one precision model (`posref.check.precision`)
    instead of those its output dtype allows.

    The first `rotary_dim` features turn, all `dim` by default. Frequencies are base^(-2t/exponent_dim), in radians per
    position: `base` is 10000 and `exponent_dim` is `rotary_dim` by default; pass `exponent_dim=dim` where the exponent runs
    over the head. Or pass `frequencies` `(rotary_dim/2,)`, for YaRN, Llama 3, linear scaling; 0 for pairs that do not turn.

    `magnitude` multiplies cos and sin (YaRN, LongRoPE); `sign=-1` is a turn by -m; `layout="interleaved_to_half"` reads pairs
    (2t, 2t+1) and writes (t, t + dim/2), as DeepSeek does. What the report names is then relative to what was asked for.
    `positions="range"` passes none, which count from 0, and `"offset"` the integer where they start: fewer mistakes show.

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
    _require.choice("check.check_rope", "positions", positions, ("batch", "shared", "range", "offset"))
    asked = _asked(dim, layout, base, rotary_dim, exponent_dim, frequencies)
    asked = asked._replace(**_shown(magnitude, sign, layout))
    if positions in ("range", "offset"):
        return _counted(fn, asked, to, to_positions, positions, model)
    _at_most(LARGEST, "max_position", max_position)
    if model is not None:
        _require.choice("check.check_rope", "model", model, _models(asked.given is not None))
    report = Report(str(asked))
    call = Callee(fn, to, to_positions, positions == "shared", _seen(asked))
    at = probe.positions(int(max_position), shared=call.shared)
    x = probe.painted((probe.BATCH, probe.HEADS, at.shape[1], asked.dim), 1)
    with np.errstate(all="ignore"):
        _run(report, call, asked, x, at, model)
    return report


def _shown(magnitude: float, sign: int, layout: str) -> dict[str, Any]:
    _require.positive("check.check_rope", "magnitude", magnitude)
    _require.choice("check.check_rope", "sign", sign, (1, -1))
    return {"magnitude": float(magnitude), "sign": sign, "written": "_to_half" if layout == "interleaved_to_half" else ""}


def _seen(asked: Asked) -> tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]] | None:
    """What to do to x before and to the output after a call, so that what was asked for is a plain rotation: R(-m) with the
    second member of every pair negated on both sides, a magnitude divided off, features written elsewhere put back."""
    if (asked.magnitude, asked.sign, asked.written) == (1.0, 1, ""):
        return None
    width = asked.rotary_dim
    second = pairing.indices(width, asked.layout)[1]

    def before(x: np.ndarray) -> np.ndarray:
        y = np.array(x, dtype=float)
        y[..., second] *= asked.sign
        return y

    def after(y: np.ndarray) -> np.ndarray:
        turned = y[..., :width] / asked.magnitude
        if asked.written:
            turned = pairing.join(*pairing.split(turned, "half"), asked.layout)
        return before(np.concatenate([turned, y[..., width:]], axis=-1))

    return before, after


def _counted(fn: Any, asked: Asked, to: Any, to_positions: Any, positions: str, model: str | None) -> Report:
    """For functions that count positions themselves: the engine of `check`, with the mistakes of `posref mistakes rope`."""
    plain = (asked.given, asked.exponent_dim, asked.magnitude, asked.sign, asked.written) == (None, None, 1.0, 1, "")
    if not plain:
        raise ValueError(f'check.check_rope: positions="{positions}" is for a base and a layout alone; pass positions instead')
    names = {"dim": asked.rotary_dim, "head_dim": asked.dim, "base": asked.base, "layout": asked.layout, "positions": positions}
    return check(fn, "rope.rotate", to=to, to_positions=to_positions, model=model, **names)


def _run(report: Report, call: Callee, asked: Asked, x: np.ndarray, at: np.ndarray, model: str | None) -> None:
    got = called(report, call, x, at)
    if got is None:
        return
    models = allowed_models(report, call.dtype, model, given=asked.given is not None)
    if not models or not finite(report, got, at):
        return
    run = Run(asked, x, at[:, None], got, models, correct(asked), mistakes(asked, x.shape))
    if np.isfinite(got).all():
        properties.check(report, call, x, at, got, asked.frequencies, models[-1])
    judge(report, run, call)
    _notes(report, call)


def _models(given: bool) -> tuple[str, ...]:
    other = "-iterative" if given else "-given"
    return tuple(name for name in precision.MODELS if not name.endswith(other))


def _asked(
    dim: int, layout: str, base: float | None, rotary_dim: int | None, exponent_dim: int | None, frequencies: Any
) -> Asked:
    width = dim if rotary_dim is None else rotary_dim
    _require.even("check.check_rope", "rotary_dim" if rotary_dim is not None else "dim", width)
    _require.choice("check.check_rope", "layout", layout, (*pairing.LAYOUTS, "interleaved_to_half"))
    layout = layout.removesuffix("_to_half")
    _at_most(WIDEST, "dim", dim)
    if width > dim:
        raise ValueError(f"check.check_rope: rotary_dim is {width} and dim {dim}; rotary_dim cannot exceed dim")
    if frequencies is not None:
        if base is not None or exponent_dim is not None:
            raise ValueError("check.check_rope: frequencies are given; leave out base and exponent_dim, which would make them")
        given = _given(frequencies, width)
        return Asked(int(dim), int(width), _unscaled_base(given), layout, given=given)
    base = 10000.0 if base is None else base
    _require.positive("check.check_rope", "base", base)
    if exponent_dim is not None:
        _at_most(LARGEST, "exponent_dim", exponent_dim)
    if abs(math.log10(base)) * max(1, width / (exponent_dim or width)) > EXTREME:
        raise ValueError(
            f"check.check_rope: base is {base:g}; it or its powers base^(-2t/{exponent_dim or width}), t < {width // 2}, leave "
            f"1e-{EXTREME} .. 1e{EXTREME}, where float32 can compute angles"
        )
    return Asked(int(dim), int(width), float(base), layout, exponent_dim)


def _at_most(limit: int, argument: str, number: int) -> None:
    _require.count("check.check_rope", argument, number)
    if number > limit:
        raise ValueError(f"check.check_rope: {argument} is {number}, expected at most {limit}")


def _given(frequencies: Any, width: int) -> np.ndarray:
    try:
        given = as_float64(frequencies)
    except (TypeError, ValueError) as error:
        raise ValueError(f"check.check_rope: frequencies is no array of real numbers: {error}") from None
    if given.shape != (width // 2,):
        raise ValueError(
            f"check.check_rope: frequencies has shape {given.shape}, {width} rotated features need ({width // 2},); "
            "give one a pair, not one a feature"
        )
    if not ((given >= 0).all() and given.any() and (given < 10**EXTREME).all()):
        raise ValueError(
            f"check.check_rope: frequencies run from {given.min():g} to {given.max():g}, expected finite "
            f"numbers of at least 0 and below 1e{EXTREME}, not all 0, in radians per position"
        )
    return given


def _unscaled_base(given: np.ndarray) -> float:
    """The base whose law the first two frequencies follow: scalings for long context leave them or divide both alike."""
    if len(given) < 2 or min(given[0], given[1]) == 0:
        return 10000.0
    return float(f"{np.exp(min(len(given) * np.log(given[0] / given[1]), 230)):.4g}")


def _notes(report: Report, call: Callee) -> None:
    if call.shared:
        report.ambiguous.append("whether rows of a batch may have positions of their own: positions were shared.")
    if call.modified:
        report.advice.append("The input was modified: callers that need x afterwards must copy it.")
