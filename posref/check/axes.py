"""Axes: what each axis of the arrays of an op counts, found by changing one extent and seeing which axes grow."""

import inspect
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from posref.ops import Arguments, Op
from posref.ops.probe import PLACED

RESULT = "the result"
COUNTED = {"batch": "batch", "heads": "heads", "key_heads": "heads", "head_dim": "features", "dim": "features"}
COUNTED |= {"n_query": "tokens", "n_key": "tokens"}  # others count rows of a table, pixels, buckets

NAMES = {"batch": "batch rows", "heads": "heads", "tokens": "rows", "rows": "rows", "features": "features"}


def axes(op: Op, a: Arguments) -> dict[str, tuple[str, ...]]:
    """What each axis of every array and of the result counts: "batch", "heads", "tokens", "features", other "rows", or "".

    >>> from posref import ops
    >>> axes(ops.op("forgetting.bias"), Arguments(log_gates=np.zeros((3, 2, 7)), form="difference"))["log_gates"]
    ('batch', 'heads', 'tokens')
    """
    parameters = inspect.signature(op.make).parameters
    settings = {name: a[name] is not None if name in op.given else a[name] for name in parameters if name in a}
    if "positions" in parameters:
        settings["positions"] = "shared" if any(np.ndim(a[name]) == 1 for name in PLACED if name in a) else "batch"
    if settings.get("key_heads") and "heads" not in settings:
        settings["heads"] = 2 * settings["key_heads"]
    usual = _shapes(op, settings)
    found = {name: [set[str]() for _ in shape] for name, shape in usual.items()}
    for extent, value in ({name: p.default for name, p in parameters.items()} | settings if usual else {}).items():
        others = (value + 1, value + 2, 2 * value) if type(value) is int else ()
        for name, new in next(filter(None, (_shapes(op, settings | {extent: other}) for other in others)), {}).items():
            for i, size in enumerate(new):
                if len(new) == len(usual[name]) and size != usual[name][i]:
                    found[name][i].add(COUNTED.get(extent, "rows"))
    return {name: tuple(map(_called, each)) for name, each in found.items()}


def _called(counted: set[str]) -> str:
    """The name of an axis that grows with several extents. Tokens come first; features may grow with another setting too."""
    if "tokens" in counted or counted == {"features", "rows"}:
        return "tokens" if "tokens" in counted else "features"
    return "rows" if len(counted) > 1 else "".join(counted)


def _shapes(op: Op, settings: dict[str, object]) -> dict[str, tuple[int, ...]]:
    """The shapes of every array and of the result; empty if the settings are refused or need too much memory."""
    with suppress(TypeError, ValueError, MemoryError), np.errstate(all="ignore"):
        a = op.make(**settings)
        return {name: np.shape(a[name]) for name in op.given if name in a} | {RESULT: np.shape(op.spec(**a))}
    return {}


def with_tokens_behind_heads(op: Op, a: Arguments) -> set[str]:
    """The names of the arrays `(batch, heads, tokens, ..)`, which a function may want as `(batch, tokens, heads, ..)`.

    A state has no tokens, and scores have tokens on two axes: both have one order only.
    """
    return {
        name
        for name, (batch, heads, tokens, *rest) in ((name, each) for name, each in axes(op, a).items() if len(each) > 2)
        if batch == "batch" and heads in ("heads", "") and tokens in ("tokens", "rows", "") and "tokens" not in rest
    }


@lru_cache(8)  # of the last questions
def names(question: Any) -> tuple[str, ...]:
    """The names of the axes of the result: what each axis counts, or "axis-i slices" if that is unknown or not unique.

    The last axis of a mask or of scores counts keys.
    """
    size = question.right.ndim
    counted = ("",) * size + axes(question.op, question.a).get(RESULT, ())  # golden cases may have no batch, or no heads
    called = [NAMES.get(each, "") for each in counted[len(counted) - size :]]
    if "rows" not in called[:-1] and called[:-1].count("") == 1:
        called[called.index("")] = "rows"
    if "rows" in called[:-1] and called[-1] == "rows":
        called[-1] = "keys"
    return tuple(name if name and called[:-1].count(name) < 2 else f"axis-{i} slices" for i, name in enumerate(called))
