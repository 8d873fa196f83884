"""Offsets, windows and gathers: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref import offsets as relative
from posref.ops import Mistake, instead, missing, using
from posref.ops.common import count
from posref.ops.probe import painted

offsets = relative.offsets


def clip(offsets, *, low, high):
    return relative.clip(offsets, low, high)


def toeplitz(by_offset, *, n_query=5, n_key=7):
    return relative.toeplitz(by_offset, n_query, n_key)


skew = relative.skew


def gather(by_offset, query_positions, key_positions, *, lowest=-420):
    return _gather(by_offset, relative.offsets(query_positions, key_positions), lowest)


def _gather(by_offset, offsets, lowest):
    return relative.gather(by_offset, offsets if offsets.ndim == 2 else offsets[:, None], lowest)


ARRAYS = {
    "by_offset": lambda s: painted((s.heads, s.n_query + s.n_key - 1 if "lowest" not in s else 1 - 2 * s.lowest), 2),
    "offsets": lambda s: np.arange(2 * s.low, 2 * s.high + 1),
}


def _clipped(change):
    """A gather with other offsets, clipped to the table."""

    def wrong(f, a):
        low = a.lowest
        return _gather(a.by_offset, np.clip(change(a), low, low + a.by_offset.shape[-1] - 1), low)

    return wrong


def _counted(a):
    return relative.offsets(count(a.query_positions), count(a.key_positions))


def _transposed(f, a):
    if "lowest" in a:
        return _clipped(lambda a: -relative.offsets(a.query_positions, a.key_positions))(f, a)
    if "by_offset" in a:
        return f(**a | {"by_offset": a.by_offset[..., ::-1]})
    return f(**a | {name: -a[name] for name in ("query_positions", "key_positions", "offsets") if name in a})


def _positions_ignored(f, a):
    return _clipped(_counted)(f, a) if "lowest" in a else _counted(a) if "query_positions" in a else missing()


def _not_shifted(f, a):
    if "n_key" in a:
        return a.by_offset[..., None, : a.n_key] + np.zeros((a.n_query, 1), int)
    return a.by_offset[..., : a.by_offset.shape[-1] - a.by_offset.shape[-2] + 1]


def _dropped(by_offset):
    rows, width = by_offset.shape[-2:]
    flat = np.concatenate([by_offset, 0 * by_offset[..., :1]], axis=-1).reshape(*by_offset.shape[:-2], rows * (width + 1))
    return flat[..., :-rows].reshape(by_offset.shape)[..., : width - rows + 1]


def _lowest_ignored(by_offset, query_positions, key_positions, lowest):
    return _gather(by_offset, relative.offsets(query_positions, key_positions) % by_offset.shape[-1], 0)


REPLACED = {"sign"}  # shared mistakes that have a form of their own here

MISTAKES = {
    "transposed": Mistake(_transposed).words("""
        the offset is query - key
        Past and future change places.
        The offset is key - query."""),
    "positions_ignored": Mistake(_positions_ignored).words("""
        the positions given are replaced by 0, 1, 2, ..: the cache is not counted
        Decoding and packed sequences go wrong.
        Use the positions that are given, not an arange."""),
    "no_clip": Mistake(instead(lambda offsets: offsets), only="clip").words("""
        offsets are not clipped
        They read beyond the table, or wrap.
        Clip before the table is read: min(max(o, low), high)."""),
    "clip_one_early": Mistake(using(high=lambda a: a.high - 1)).words("""
        high - 1: the clip is one too short on the right
        The last row is never used.
        Clip to high itself: both ends are included."""),
    "clip_one_late": Mistake(using(high=lambda a: a.high + 1)).words("""
        high + 1: the clip is one too long on the right
        A read beyond DeBERTa's table.
        Clip to the offset of the last row: k - 1 for DeBERTa's 2k rows."""),
    "clip_low_late": Mistake(using(low=lambda a: a.low + 1)).words("""
        low + 1: the clip is one too short on the left
        The first row is never used.
        Clip to low itself: both ends are included."""),
    "wrapped": Mistake(instead(lambda offsets, low, high: (offsets - low) % (high - low + 1) + low)).words("""
        offsets are taken modulo the width, so far ones count from the other end
        The far past looks like the future.
        Clip to low and high; take no remainder."""),
    "not_shifted": Mistake(_not_shifted, only="toeplitz skew").words("""
        the first n_key columns are taken: rows are not shifted
        Every row has the offsets of the last one.
        Begin row i at entry n_query - 1 - i."""),
    "shift_dropped_at_the_end": Mistake(
        instead(_dropped), seen_in=("labmlai/annotated_deep_learning_paper_implementations#185",), only="skew"
    ).words("""
        [:-1] for [1:]: the pad and reshape drops the wrong end
        Rows begin n_query - 1 entries too early and end in those of their neighbours.
        With a spare column at the end, drop n_query - 1 entries in front and 1 behind."""),
    "lowest_ignored": Mistake(instead(_lowest_ignored)).words("""
        by_offset[offset]: negative offsets count from the end of the table
        Silently another row, no error.
        Subtract lowest: by_offset[offset - lowest]."""),
}
