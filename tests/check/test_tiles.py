"""Tiles without a visible key: every op that takes a mask is asked with masks that hide the keys of whole tiles."""

import inspect
from functools import partial

import numpy as np
import pytest

from posref import attention, ops
from posref.check import check
from posref.check.call import Caller
from posref.check.engine import Question
from posref.check.ranged import models
from posref.check.report import Report
from posref.check.stages.tiles import empty_tiles
from tests.check.test_probed import settings as needed
from tests.every import every

SCALE = 8**-0.5
TILES = 4, 16, 64, 128


def masked(op):
    """The settings with which an op takes a mask of queries and keys; nothing where it takes none."""
    causal = {"causal": True} if "causal" in inspect.signature(op.make).parameters else {}
    for settings in (needed(op), needed(op) | causal):
        if "padding" not in op.tags and isinstance(op.make(**settings).get("mask"), np.ndarray):
            return settings
    return None


OPS = [(op, settings) for name in ops.names() for op in ops.system(name).values() if (settings := masked(op)) is not None]


def empty(mask, tile, place):
    """Queries that see a key, and none of the first tile, of the last tile, or of another tile."""
    seen = [mask[..., start : start + tile].any(axis=-1) for start in range(0, mask.shape[-1], tile)]
    unseen = {"first": seen[:1], "middle": seen[1:-1], "last": seen[-1:]}[place]
    return mask.any(axis=-1) & (~np.array(unseen, dtype=bool)).any(axis=0)


def losing(op, tile, place):
    """The specification, whose rows are NaN where a tile is empty, and all numbers of a gradient, which sums over rows."""
    signature = inspect.signature(op.spec)

    def function(*given, **named):
        bound = signature.bind(*given, **named)
        right = np.asarray(op.spec(*bound.args, **bound.kwargs), dtype=float)
        mask = bound.arguments["mask"]
        lost = empty(mask, tile, place)
        if "gradient" in op.tags:
            return np.full_like(right, np.nan) if lost.any() else right
        return np.where(lost if right.ndim < mask.ndim else lost[..., None], np.nan, right)

    function.__signature__ = signature
    return function


def asked(op, settings, function):
    a, report = op.make(**settings), Report("")
    first = Question(op, a, models("float32", a))
    empty_tiles(report, Caller(function, op, None, None, "bhnd", "batch"), op, settings, first)
    return report


PLACES = "first", "middle", "last"


@every(OPS, name=lambda each: each[0].name, parts=4)
def test_an_empty_tile_is_asked_of_every_op_with_a_mask(op, settings):
    keys = op.make(**settings | ({"n_key": 263} if "n_key" in inspect.signature(op.make).parameters else {})).mask.shape[-1]
    places = PLACES[: 2 if settings.get("causal") else 3]  # causal masks hide last tiles anyway
    for tile, place in zip(TILES, places * 2, strict=False):
        if 3 * tile <= keys or (tile, place) == (4, "first"):
            report = asked(op, settings, losing(op, tile, place))
            assert [each.name for each in report.diagnosis] == ["tile_without_a_key"], (tile, place)
            assert place != "first" or f"rows whose first {tile} keys are hidden are NaN" in str(report), (tile, str(report))
    assert asked(op, settings, op.spec).ok


def tiled(q, k, v, mask, tile=16, safe=True, store=np.float32, rescaled=("sum", "accumulator")):
    """Attention by tiles of keys, with a running maximum of each row."""
    scores = np.where(mask, SCALE * q.astype(np.float32) @ k.astype(np.float32).swapaxes(-1, -2), -np.inf)
    top, total, out = np.full((*scores.shape[:-1], 1), -np.inf), 0.0, 0.0
    for start in range(0, k.shape[-2], tile):
        part = scores[..., start : start + tile]
        before, top = top, np.maximum(top, part.max(axis=-1, keepdims=True))
        less = np.where(np.isfinite(top), top, 0) if safe else top
        with np.errstate(invalid="ignore"):
            powers, kept = np.exp(part - less), np.exp(before - less)
        total = np.where("sum" in rescaled, kept, 1) * total + powers.sum(axis=-1, keepdims=True)
        out = np.where("accumulator" in rescaled, kept, 1) * out + powers @ v[..., start : start + tile, :].astype(np.float32)
    return store(out / np.where(total == 0, 1, total))


def test_the_first_tile_that_is_lost_is_said():
    report = check(partial(tiled, safe=False), "attention.attend", scale=SCALE)
    assert "rows whose first 16 keys are hidden are NaN: a tile without a visible key" in str(report)


def split(q, k, v, mask, size, local=False):
    """The mean of attention to each part of the keys; or attention to all, by the columns of the mask of the first part."""
    keys = np.arange(k.shape[2])
    parts = [(keys >= first) & (keys < first + size) for first in keys[::size]]
    if local:
        return attention.attend(q, k, v, scale=SCALE, mask=mask[..., keys % size])
    return np.mean([attention.attend(q, k[:, :, each], v[:, :, each], scale=SCALE, mask=mask[..., each]) for each in parts], 0)


@every(
    [
        (partial(tiled, rescaled=["sum"]), "accumulator_not_rescaled_in_tiles_of_16"),
        (partial(tiled, rescaled=["accumulator"], tile=4), "sum_not_rescaled_in_2_parts"),
        (partial(tiled, rescaled=[], tile=32), "accumulator_and_sum_not_rescaled_in_tiles_of_32"),
        (partial(split, size=3), "equal_shares_in_3_parts"),
        (partial(split, size=4, local=True), "mask_of_the_first_in_2_parts"),
    ],
    name=lambda case: case[1],
)
def test_parts_that_are_merged_wrongly_are_named(function, name):
    report = check(function, "attention.attend", scale=SCALE)
    assert [each.name for each in report.diagnosis] == [name], str(report)


@pytest.mark.parametrize("dtype", ["float16", pytest.param("bfloat16", marks=pytest.mark.slow)])
def test_right_attention_passes_in_few_bits(dtype):
    torch = pytest.importorskip("torch")
    to = lambda x: torch.from_numpy(x).to(getattr(torch, dtype))  # noqa: E731

    def by_tiles(*arrays):
        return to(tiled(*(x.float().numpy() if x.is_floating_point() else x.numpy() for x in arrays)))

    def naive(q, k, v, mask):
        return (SCALE * q @ k.mT).masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num() @ v

    for function in (by_tiles, naive):
        report = check(function, "attention.attend", scale=SCALE, to=to, to_positions=torch.from_numpy)
        assert report.ok, (function, str(report))
        assert "tiles without a visible key at n_query=1, n_key=263" in str(report)
