"""Tiles: masks that hide a whole tile of keys from a query, as sliding windows do; kernels may get exp(-inf - (-inf)) there."""

from contextlib import suppress
from typing import Any

import numpy as np

from posref.check import engine
from posref.check.call import Caller, Misbehaved
from posref.check.report import Report
from posref.check.stages.later_questions import later_question, models_after, reshaped
from posref.check.stages.shapes import extents_that_differ
from posref.ops import Arguments, Op, probe

# queries of a tile and one more for each stretch of 263 keys; then steps of decoding, one text for each stretch
TILED: tuple[dict[str, int], ...] = (
    {"batch": 1, "heads": 1, "n_query": 32 + 21, "n_key": 263},
    {"batch": 21, "heads": 1, "n_query": 1, "n_key": 263},
)
SKIP = (
    "Where no key of a tile is seen its maximum is -inf, and exp(-inf - (-inf)) is NaN: subtract 0 instead, or skip the tile."
)


def empty_tiles(report: Report, caller: Caller, op: Op, settings: dict[str, Any], first: engine.Question) -> None:
    """Hide the first, middle or last keys, 4 to 256 of them, if the function receives a mask of queries and keys."""
    if "mask" not in {*caller.received, *caller.named} or "padding" in op.tags:
        return
    shapes = [*extents_that_differ(op, settings, TILED)] or [{}]
    for shape in shapes:
        a = op.make(**settings | shape)
        if not isinstance(a.get("mask"), np.ndarray) or a.mask.ndim < 2:
            return
        hidden, rows = probe.stretches(a.mask.shape[-1]), int(np.prod(a.mask.shape[:-1]))
        for start in range(0, len(hidden), rows):
            if report.ok and (rows >= len(hidden) or shape is shapes[0]):
                _asked(report, caller, first, a, hidden[start : start + rows], bool(settings.get("causal")))


def _asked(
    report: Report, caller: Caller, first: engine.Question, a: Arguments, hidden: list[tuple[int, int]], causal: bool
) -> None:
    def hiding(mask: np.ndarray) -> Arguments:
        seen = mask & a.mask if causal else mask
        return Arguments(a | {"mask": np.where(seen.any(axis=-1, keepdims=True), seen, a.mask)})

    keys, rows = np.arange(a.mask.shape[-1]), np.arange(np.prod(a.mask.shape[:-1])).reshape(*a.mask.shape[:-1], 1)
    name = f"tiles without a visible key at n_query={a.mask.shape[-2]}, n_key={len(keys)}"
    try:
        fault = _fault(report, caller, first, hiding(probe.hiding(a.mask.shape, hidden)))
    except Misbehaved as error:
        report.skipped(name, str(error))
        return
    if not fault:
        report.passed(name)
        return
    places: dict[tuple[int, int], str] = {}
    for start, end in hidden:
        if all(end - start == length for length in map(np.ptp, places)):  # the shortest alone
            with suppress(Misbehaved):
                alone = _fault(report, caller, first, hiding((keys < start) | (keys >= end) | (rows % 2 == 1)))
                places |= {(start, end): alone} if alone else {}
    if places:
        said = " or ".join(_place(start, end, len(keys)) for start, end in places)
        words = f"rows whose {said} are hidden are {' or '.join({*places.values()})}: a tile without a visible key"
        report.found("tile_without_a_key", words, SKIP)
    report.failed(name, f"some rows are {fault}")


def _fault(report: Report, caller: Caller, first: engine.Question, a: Arguments) -> str:
    """What is wrong with some rows of the output: "NaN" or "wrong"; "" if all are right.

    A query that sees no key in the op's own window is left out: the right answer is 0, and NaN is another convention.
    """
    models = models_after(report, first)
    question = later_question(first.op._replace(mistakes={}), a, models).each_alone(models)
    got = reshaped(caller(a), question)
    if got.shape == question.right.shape:
        got = np.where(question.right.any(axis=-1, keepdims=True), got, question.right)
    return "" if question.ask(got).ok else "NaN" if np.isnan(got).any() else "wrong"


def _place(start: int, end: int, keys: int) -> str:
    if start == 0:
        return f"first {end} keys"
    return f"last {keys - start} keys" if end == keys else f"keys {start} to {end - 1}"
