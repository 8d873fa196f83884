"""Seeded: the same question at sizes, positions and numbers drawn from a seed, so that no function can know them beforehand."""

import inspect
from typing import Any

import numpy as np

from posref.check import engine
from posref.check.call import Caller
from posref.check.report import Report
from posref.check.stages.inputs import is_linear
from posref.check.stages.later_questions import features
from posref.check.stages.shapes import other_shapes
from posref.ops import Arguments, Op, probe

DRAWS = 32
SIZES = {"batch": 6, "heads": 12, "n_query": 90, "n_key": 180}  # at most; small ones are as likely as large ones
LONG = 6  # times as much, along one axis after the other
LARGE = {"float16": 4}  # factors of what the result is linear in are powers of two, up to 2^4, and up to 2^12 for others
LAST = 20  # positions end at 2^20 at most, where float32 angles are still told from wrong ones


def seeded(report: Report, caller: Caller, settings: dict[str, Any], first: engine.Question, seed: int) -> None:
    """Add the verdict on calls with drawn data to the report."""
    rng = np.random.default_rng(seed)
    names = probe.placed(caller.op, first.a) if caller.positions != "range" else []
    limit = min(2**LAST, first.a.get("max_position", np.inf), settings.get("max_position", np.inf))

    scaled = [name for name in features(caller.op, first.a) if is_linear(first, name)]

    def changed(a: Arguments) -> Arguments:
        factors = {name: 2.0 ** int(rng.integers(LARGE.get(caller.dtype, 12) + 1)) for name in scaled}
        return _drawn(caller.op, a, names, limit, factors, rng)

    sizes = [_sizes(caller.op, settings, rng) for _ in range(DRAWS)]
    sizes += [_sizes(caller.op, settings, rng, axis) for axis in sizes[0]]
    tried = other_shapes(report, caller, caller.op, settings, first, sizes, f"seed {seed}", changed)
    if not tried and report.ok:
        report.skipped(f"seed {seed}", f"{caller.op.name} has no sizes but those of its settings: nothing was drawn")


def _sizes(op: Op, settings: dict[str, Any], rng: np.random.Generator, longest: str | None = None) -> dict[str, int]:
    """Drawn sizes for the extents that were not chosen; no fewer keys than queries. `longest` is large, the others then
    small."""
    free = inspect.signature(op.make).parameters.keys() - {*settings, *inspect.signature(op.spec).parameters}
    free -= {"heads"} if settings.get("key_heads") else set()
    drawn = {name: int((SIZES[name] + 1) ** rng.uniform()) for name in SIZES if name in free}
    if longest:
        drawn = {name: min(size, 3) for name, size in drawn.items()} | {
            longest: int(rng.integers(1, LONG) * SIZES[longest] + 1)
        }
    if "n_query" in drawn and "n_key" in drawn:
        drawn["n_key"] += drawn["n_query"]
    return drawn


def _drawn(
    op: Op, a: Arguments, names: list[str], limit: float, factors: dict[str, float], rng: np.random.Generator
) -> Arguments:
    """The arguments with the numbers of each array shuffled and times a factor, and with positions moved.

    The arguments are unchanged if the op refuses that.
    """
    arrays = {name: a[name] for name in op.given if isinstance(a.get(name), np.ndarray) and a[name].dtype.kind == "f"}
    numbers = {name: rng.permuted(x.ravel()).reshape(x.shape) for name, x in arrays.items()}
    made = Arguments(a | numbers | {name: factor * numbers[name] for name, factor in factors.items()})
    try:
        if names:
            last = max(a[name].max() for name in names)
            shift = int(2 ** rng.uniform(0, np.log2(max(limit - last, 1))))
            made = probe.with_positions(made, {name: a[name] + shift for name in names})
        with np.errstate(all="ignore"):
            op.spec(**made)
    except (TypeError, ValueError):
        return a
    return made
