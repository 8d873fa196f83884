"""RoPE: checks whether a function is the rotation that was asked for, and if not, says which rotation it is."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from posref import _require, ops, pairing
from posref.check import conventions
from posref.check.implementation import check
from posref.check.report import Report
from posref.check.rotary import schedules
from posref.check.tensors import as_float64
from posref.ops import Mistake
from posref.ops.scaling import ByLength
from posref.rotary import rope, scaling

LARGEST = 10**8  # every position up to it may be a limit or a modulus, and is tried
WIDEST = 2**16
LAST_ROW = 4095  # of tables that are given whole, where nobody says max_position
LAYOUTS = (*pairing.LAYOUTS, "interleaved_to_half")
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
    axes: str = "bhnd",
    model: str | None = None,
    seed: int | None = None,
    magnitude: float | None = None,
    sign: int = 1,
    schedule: str | None = None,
    **settings: Any,
) -> Report:
    """Check `fn(x, positions) -> rotated x` and say what it computes if that is not RoPE as asked: `check` of "rope.rotate".

    Functions `fn(q, k, cos, sin)`, `fn(x, cos, sin)`, `fn(x, freqs_cis)` and `fn(x, freqs)` (angles) are recognised by the
    names of their parameters. They receive tables of the frequencies asked for, in the form with which the function is right,
    if there is one. The report names that form, and says if only one half of the columns is read, which is wrong if the halves
    differ. If a function requires `position_ids` after the tables, the tables have all rows, up to 4095 by default.

    `fn` receives x `(batch, heads, n, dim)`, as float32 or as `to` converts it, and integer positions `(batch, n)`, not sorted
    and different in every row; it returns the rotated x in the same axes. With `positions="shared"` it receives positions
    `(n,)` for all rows; rows with their own positions are then not tested. `to` converts NumPy arrays to tensors,
    `to_positions` converts positions if `to` would round them. `max_position` is the largest position used; if it is not given
    and `fn` raises there, nearer positions are tried and the report says so. `model` demands one precision model
    (`posref.check.ranged`) instead of those that the dtype of the output allows. `axes` and `seed` are as in `check`.

    The first `rotary_dim` features are rotated, all `dim` by default. Frequencies are base^(-2t/exponent_dim) radians per
    position: `base` is 10000 and `exponent_dim` is `rotary_dim` by default; pass `exponent_dim=dim` if the exponent is divided
    by the width of the head. `schedule` scales them: it names a function of `posref.rotary.scaling`, whose keywords follow;
    "dynamic_ntk" without `length` follows the length of each text. Or pass `frequencies` `(rotary_dim/2,)`, with 0 for pairs
    that do not turn; the report says if they are a known schedule. `frequencies` may be a function of the length of a text,
    which is the largest position of the batch plus one.

    `magnitude` multiplies cos and sin (YaRN, LongRoPE), 1 by default; with schedule "yarn" and no `magnitude`, the magnitude of
    YaRN is right too, and the report says so. `sign=-1` rotates position m by -m;
    `layout="interleaved_to_half"` reads pairs (2t, 2t+1) and writes (t, t + dim/2), as DeepSeek does. `positions="range"`
    passes no positions, which then count from 0, and `"offset"` passes the first position only: fewer mistakes show. For
    several axes use `check(fn, "axes.rotate", ..)`, for xPos `check(fn, "xpos.rotate", ..)`, and for a model's configuration
    `posref check MODULE:FUNCTION --config FILE`.

    ValueError for arguments that make no sense; whatever `fn` does wrong is in the report, not raised.

    >>> import numpy as np
    >>> from posref.rotary import rope
    >>> def rotate(x, positions):
    ...     cos, sin = rope.tables(positions[:, None], rope.frequencies(8))
    ...     return rope.rotate(x, cos, sin, layout="interleaved")
    >>> check_rope(rotate, dim=8, layout="interleaved").ok
    True
    >>> check_rope(rotate, dim=8, layout="half").diagnosis[0].name
    'other_layout'
    >>> check_rope(rotate, dim=8, layout="interleaved", schedule="linear", factor=4.0).diagnosis[0].name
    'unscaled'
    """
    width = dim if rotary_dim is None else rotary_dim
    _require.even("check.check_rope", "dim" if rotary_dim is None else "rotary_dim", width)
    _require.choice("check.check_rope", "layout", layout, LAYOUTS)
    _require.choice("check.check_rope", "positions", positions, ("batch", "shared", "range", "offset"))
    _require.choice("check.check_rope", "sign", sign, (1, -1))
    if magnitude is not None:
        _require.positive("check.check_rope", "magnitude", magnitude)
    _at_most(WIDEST, "dim", dim)
    _at_most(LARGEST, "max_position", max_position)
    if width > dim:
        raise ValueError(f"check.check_rope: rotary_dim is {width} and dim {dim}; rotary_dim cannot exceed dim")
    asked: dict[str, Any] = {"dim": int(width), "layout": layout}
    asked |= {"head_dim": int(dim)} if width < dim else {}
    op = ops.op("rope.rotate")
    following = _following(schedule, width, base, settings) if frequencies is None and exponent_dim is None else None
    if following is not None and "length" not in settings:
        schedule, base, frequencies, settings = None, None, following, {}
    if schedule is not None:
        asked["frequencies"], wrong, more, known = _scheduled(schedule, width, base, exponent_dim, frequencies, settings)
        asked["base"] = known.settings["base"]
        op = op._replace(
            mistakes={name: m for name, m in op.mistakes.items() if name != "frequencies_ignored"} | wrong, further=more
        )
    elif settings:
        raise TypeError(f"check.check_rope: there is no {next(iter(settings))}=; settings of a schedule stand beside schedule=")
    elif frequencies is None:
        asked, known = asked | _law(width, base, exponent_dim), None
    else:
        asked |= _given(frequencies, width, base, exponent_dim)
        known = None if callable(frequencies) else schedules.named(asked["frequencies"])
    asked |= {name: value for name, value in {"magnitude": float(magnitude or 1), "sign": sign}.items() if value != 1}
    own = float(scaling.yarn_magnitude(float(settings["factor"]))) if schedule == "yarn" and magnitude is None else None
    asked |= {"positions": positions} if positions != "batch" else {}
    asked |= {"max_position": int(max_position)} if max_position != 1_000_000 else {}
    convention, told, by_keyword = conventions.recognised(fn), list[str](), list[str]()
    if convention is None:
        fn = conventions.of_keyword(fn, by_keyword)
        pair = None if positions == "range" else conventions.of_a_pair(fn)
        tables = conventions.of_tables(fn, asked, to, told) if axes == "bhnd" else lambda *given: fn(*given)
        words, parts = "".join(by_keyword), pair or [tables]
    else:
        if positions in ("range", "offset"):
            words = "leave out positions=, or wrap it as fn(x, positions)"
            raise ValueError(f"check.check_rope: {convention} receives tables, made for positions (batch, n): {words}")
        asked |= {"max_position": asked.get("max_position", LAST_ROW)} if convention.indices else {}
        form, parts, ways = conventions.with_tables(fn, convention, op, asked, axes, to)
        axes, form = ways["axes"], form + ", axes=bnhd" * (ways["axes"] != axes)
        asked |= {"positions": "shared"} if ways["positions"] == "shared" else {}
        words = f"; called as {convention} with tables {form}: frequencies and positions were given, not checked"
    for name, part in enumerate(parts):
        ways_of_asking: dict[str, Any] = {"to": to, "to_positions": to_positions, "axes": axes, "model": model, "seed": seed}
        ask = partial(check, part, op, **ways_of_asking)
        report = ask(**asked)
        if following is not None and "length" in settings and not report.ok:
            plain = {name: value for name, value in asked.items() if name != "base"} | {"frequencies": following}
            own_length = check(part, "rope.rotate", **ways_of_asking, **plain)
            report = _of_its_text(report, own_length, settings["length"])
            known = None if report is own_length else known
        again = ask(**asked, magnitude=own) if own and _of_magnitude(report) else report
        if again is not report and (again.ok or again.diagnosis) and not _of_magnitude(again):
            report = again
            report.ambiguous.append(
                f"the magnitude: cos and sin are multiplied by {own:.6g}, as YaRN's; pass magnitude= to demand a number."
            )
        report.subject += (f"; frequencies: {known}" if known else "") + words + "".join(told[:1])
        if not report.ok:
            report.subject += (
                f"; result {convention.rotated[name] if convention else ('q', 'k')[name]}" if len(parts) > 1 else ""
            )
            break
    return report


def _following(schedule: str | None, width: int, base: float | None, settings: dict[str, Any]) -> ByLength | None:
    """Frequencies of "dynamic_ntk" that follow the length of a text; None for other schedules, or without its numbers."""
    if schedule != "dynamic_ntk" or settings.keys() - {"length"} != {"factor", "original_length"}:
        return None
    unscaled = rope.frequencies(width, _law(width, base, None)["base"])
    following = ByLength(unscaled, settings["original_length"], factor=settings["factor"])
    following(1)  # which refuses a factor or a length that makes no sense
    return following


def _of_its_text(report: Report, following: Report, length: int) -> Report:
    """The second report if frequencies that follow each text's length are right, or kept from a longer text; else the first."""
    if following.ok:
        words = f"the length: your frequencies follow that of each text; pass frequencies= to demand those of {length} tokens."
        following.ambiguous.append(words)
    return following if following.ok or any(each.name == "longest_length_kept" for each in following.diagnosis) else report


def _of_magnitude(report: Report) -> bool:
    return any(each.name.startswith("magnitude") for each in report.diagnosis)


def _law(width: int, base: float | None, exponent_dim: int | None) -> dict[str, Any]:
    base = 10000.0 if base is None else base
    _require.positive("check.check_rope", "base", base)
    if exponent_dim is not None:
        _at_most(LARGEST, "exponent_dim", exponent_dim)
    if abs(math.log10(base)) * max(1, width / (exponent_dim or width)) > EXTREME:
        raise ValueError(
            f"check.check_rope: base is {base:g}; it or its powers base^(-2t/{exponent_dim or width}), t < {width // 2}, leave "
            f"1e-{EXTREME} .. 1e{EXTREME}, where float32 can compute angles"
        )
    return {"base": float(base)} | ({} if exponent_dim in (None, width) else {"exponent_dim": int(exponent_dim or 0)})


def _scheduled(
    schedule: str, width: int, base: float | None, exponent_dim: int | None, frequencies: Any, settings: dict[str, Any]
) -> tuple[np.ndarray, dict[str, Mistake], dict[str, Mistake], schedules.Known]:
    if frequencies is not None or exponent_dim is not None:
        raise ValueError("check.check_rope: a schedule is given; leave out frequencies and exponent_dim, which it makes")
    _require.choice("check.check_rope", "schedule", schedule, schedules.NAMES)
    base = _law(width, base, None)["base"]
    theta, wrong, more = schedules.asked(schedule, width, base, settings)
    return theta, wrong, more, schedules.Known(schedule, {"base": base, **settings}, theta)


def _given(frequencies: Any, width: int, base: float | None, exponent_dim: int | None) -> dict[str, Any]:
    if base is not None or exponent_dim is not None:
        raise ValueError("check.check_rope: frequencies are given; leave out base and exponent_dim, which would make them")
    try:
        given = as_float64(frequencies(1) if callable(frequencies) else frequencies)
    except (TypeError, ValueError) as error:
        raise ValueError(f"check.check_rope: frequencies is no array of real numbers: {error}") from None
    if given.shape != (width // 2,):
        raise ValueError(
            f"check.check_rope: frequencies has shape {given.shape}, {width} rotated features need ({width // 2},); "
            "give one per pair, not one per feature"
        )
    if not ((given >= 0).all() and given.any() and (given < 10**EXTREME).all()):
        raise ValueError(
            f"check.check_rope: frequencies run from {given.min():g} to {given.max():g}, expected finite "
            f"numbers of at least 0 and below 1e{EXTREME}, not all 0, in radians per position"
        )
    return {"frequencies": frequencies if callable(frequencies) else given}


def _at_most(limit: int, argument: str, number: int) -> None:
    _require.count("check.check_rope", argument, number)
    if number > limit:
        raise ValueError(f"check.check_rope: {argument} is {number}, expected at most {limit}")
