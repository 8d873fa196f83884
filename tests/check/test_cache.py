"""Attention with a cache: honest ones pass, of wrong ones the report says which keys are wrong, and from which call on."""

from unittest.mock import patch

import numpy as np
import pytest

from posref.check import check_cache
from posref.check.cache import HISTORIES, METHODS
from tests.every import every

DIM = 8
ASKED = {"dim": DIM, "layout": "half"}


def turn(x, positions):
    angle = positions[:, None, :, None] * 10000.0 ** (-np.arange(DIM // 2) / (DIM // 2))
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], axis=-1)


class Cache:
    """Keys are stored turned, and positions (batch, 1, n, 1) beside them. What a bug changes is a method."""

    window = None

    def __init__(self):
        self.k, self.v, self.at = None, None, None

    def places(self, positions):
        return positions, positions

    def stored(self, k, places):
        return turn(k, places)

    def read(self):
        return self.k

    def append(self, **new):
        for name, value in new.items():
            old = getattr(self, name)
            setattr(self, name, value if old is None else np.concatenate([old, value], axis=2))

    def mask(self, positions):
        return self.seen(positions, self.at[:, 0, :, 0])

    def seen(self, positions, at):
        offsets = at[:, None, :] - positions[:, :, None]
        return offsets <= 0 if self.window is None else (offsets <= 0) & (offsets > -self.window)

    def __call__(self, q, k, v, positions):
        queries, keys = self.places(positions)
        self.append(k=self.stored(k, keys), v=v, at=positions[:, None, :, None])
        repeat = q.shape[1] // self.k.shape[1]
        k, v = np.repeat(self.read(), repeat, axis=1), np.repeat(self.v, repeat, axis=1)
        s = np.where(self.mask(positions)[:, None], turn(q, queries) @ k.swapaxes(-1, -2) * DIM**-0.5, -1e9)
        weights = np.exp(s - s.max(axis=-1, keepdims=True))
        return (weights / weights.sum(axis=-1, keepdims=True) @ v).astype(np.float32)


class StoresKeysAsTheyAre(Cache):
    def stored(self, k, places):
        return k

    def read(self):
        return turn(self.k, self.at[:, 0, :, 0])


class EvictsBeyondItsWindow(Cache):
    window = 3

    def append(self, **new):
        super().append(**new)
        keep = self.window + new["k"].shape[2] - 1
        self.k, self.v, self.at = (x[:, :, -keep:] for x in (self.k, self.v, self.at))


class InPlaces(Cache):
    """Another layout: (batch, n, heads, d)."""

    def __call__(self, q, k, v, positions):
        return super().__call__(*(x.swapaxes(1, 2) for x in (q, k, v)), positions).swapaxes(1, 2)


class Movable(Cache):
    """Beams change places in it, and tokens are dropped."""

    reordered, trimmed = ("k", "v", "at"), ("k", "v", "at")

    def order(self, x, rows):
        return x[rows]

    def reorder(self, rows):
        for name in self.reordered:
            setattr(self, name, self.order(getattr(self, name), rows))

    def trim(self, n):
        for name in self.trimmed:
            x = getattr(self, name)
            setattr(self, name, x[:, :, : x.shape[2] - n])


MovableAsTheyAre = type("MovableAsTheyAre", (Movable, StoresKeysAsTheyAre), {})
MovableWindow = type("MovableWindow", (Movable, EvictsBeyondItsWindow), {})


class Static(Movable):
    """Slots for all tokens; what is beyond the length is not seen. Each array has a length of its own."""

    def __init__(self):
        self.slots, self.n = {}, {"k": 0, "v": 0, "at": 0}

    def append(self, **new):
        for name, x in new.items():
            whole = self.slots.setdefault(name, np.zeros((*x.shape[:2], 40, x.shape[3])))
            whole[:, :, self.n[name] : self.n[name] + x.shape[2]] = x
            self.n[name] += x.shape[2]

    k, v, at = (property(lambda self, name=name: self.shown(name)) for name in ("k", "v", "at"))

    def shown(self, name):
        return self.slots[name][:, :, : min(self.n.values())] if name in self.slots else None

    def reorder(self, rows):
        self.slots = {name: self.order(x, rows) if name in self.reordered else x for name, x in self.slots.items()}

    def trim(self, n):
        for name in self.trimmed:
            self.n[name] -= n


class Ring(Movable):
    """A ring of `window` rows: token t stands in row t modulo `window`. Rows are masked by their positions."""

    window, dropped, by_place = 5, 0, False

    def __init__(self):
        self.n, self.k = 0, None

    def mask(self, positions):
        if self.by_place and self.n > self.window:
            places = np.arange(self.at.shape[2])[None]
            return np.repeat(self.seen(places[:, -positions.shape[1] :], places), len(positions), axis=0)
        return super().mask(positions)

    def append(self, **new):
        first, self.n = self.n, self.n + new["k"].shape[2]
        if first == 0:
            self.rows = {name: np.zeros((*x.shape[:2], self.window, x.shape[3])) for name, x in new.items()}
        drop = self.dropped if first > self.window and new["k"].shape[2] > 1 else 0
        for name, x in new.items():
            old = self.rows[name][:, :, drop : min(first, self.window)]
            setattr(self, name, np.concatenate([old, x], axis=2))
            for i in range(x.shape[2]):
                self.rows[name][:, :, (first + i) % self.window] = x[:, :, i]

    def reorder(self, rows):
        self.rows = {name: x[rows] for name, x in self.rows.items()}

    def trim(self, n):
        self.n -= n


RIGHT = [(InPlaces, {"axes": "bnhd"}), (Cache, {"heads": 4, "key_heads": 2})]
MOVABLE = [(each, {}) for each in (Movable, MovableAsTheyAre, Static)]
MOVABLE += [(MovableWindow, {"window": 3}), (Ring, {"window": 5}), (type("WideRing", (Ring,), {"window": 16}), {"window": 16})]


def without(new):
    """The same cache as a function, which has no methods."""

    def made():
        cache = new()
        return lambda *x: cache(*x)

    return made


@every(RIGHT, name=lambda case: f"{case[0].__name__} {case[1]}")
def test_an_honest_cache_passes(new, more):
    report = check_cache(new, **ASKED, **more)
    assert report.ok, str(report)
    assert [each.name for each in report.checks[len(HISTORIES) :]] == ["reorder(rows) and trim(n)"]


@every(MOVABLE, name=lambda case: case[0].__name__, parts=2)
def test_a_cache_is_reordered_and_trimmed_where_it_can_be(new, more):
    report, narrow = check_cache(new, **ASKED, **more), more.get("window", 16) < 16
    assert report.ok, str(report)
    status = {check.name: check.status for check in report.checks}
    asked = dict.fromkeys(METHODS["reorder(rows)"], "passed")
    asked |= dict.fromkeys(METHODS["trim(n)"], "skipped" if narrow else "passed")
    assert asked.items() <= status.items(), status
    plain = check_cache(without(new), **ASKED, **more)
    assert plain.ok, str(plain)
    assert status.keys() - asked.keys() == {check.name for check in plain.checks} - {"reorder(rows) and trim(n)"}


def counted(self, positions):
    return np.broadcast_to(np.arange(positions.shape[1]), positions.shape)


def past(self):
    return 0 if self.k is None else self.k.shape[2]


class CountsKeptKeys(EvictsBeyondItsWindow):
    window = 12

    def places(self, positions):
        own = counted(self, positions) + past(self) if (positions[:, 0] == positions[0, 0]).all() else positions
        return own, own


def test_calls_go_on_beyond_the_window():
    """A cache that counts from what it has kept, once keys have left it."""
    report = check_cache(CountsKeptKeys, **ASKED, window=12)
    assert [each.name for each in report.checks if each.status == "failed"] == ["steps beyond the window, call 3 with 1 token"]
    many = check_cache(type("Many", (CountsKeptKeys,), {"window": 70}), **ASKED, window=70)
    assert "of more than 64 keys no mistake is sought" in str(many)
    assert not many.diagnosis


class LeavesOutTheLastText(Cache):
    def append(self, **new):
        if self.k is not None:  # as where texts are written in pairs
            new["k"][2], new["v"][2] = self.k[2, :, -1:], self.v[2, :, -1:]
        super().append(**new)


def test_tokens_that_are_not_read_are_said():
    report = check_cache(LeavesOutTheLastText, **ASKED, heads=1)
    words = "batch row 2 of your output changes with v[:, :, 0:4]; the right one changes with v"
    assert words in str(report), report


def test_in_torch():
    torch = pytest.importorskip("torch")

    def new():
        cache = Cache()
        return lambda *x: torch.from_numpy(cache(*(each.numpy() for each in x)))

    assert check_cache(new, **ASKED, to=torch.from_numpy).ok


class TurnsKeysAgain(Cache):
    def __call__(self, q, k, v, positions):
        if self.k is not None:
            self.k = turn(self.k, self.at[:, 0, :, 0])
        return super().__call__(q, k, v, positions)


class WritesAfterReading(Cache):
    """The key of a step is written to its slot after attention has read."""

    def mask(self, positions):
        seen = super().mask(positions)
        return seen & (np.arange(seen.shape[-1]) < seen.shape[-1] - 1) if positions.shape[1] == 1 else seen


class LosesRows(Cache):
    """After each call some rows leave the cache; a cache that counts its rows gives the next tokens their number."""

    counts, kept = False, slice(0, -1)

    def places(self, positions):
        return (counted(self, positions) + past(self),) * 2 if self.counts else (positions, positions)

    def __call__(self, q, k, v, positions):
        y = super().__call__(q, k, v, positions)
        self.k, self.v, self.at = (x[:, :, self.kept] for x in (self.k, self.v, self.at))
        return y


class KeepsTheLastTwiceAndCounts(LosesRows):
    counts, kept = True, np.array([0, 1, 2, 3, 3])

    def __call__(self, q, k, v, positions):
        y = super().__call__(q, k, v, positions)
        self.k[:, :, -1:] = turn(k[:, :, -1:], positions[:, -1:] + 1)
        return y


class Shared(Cache):
    """The cache belongs to the class, so that a new one is not empty."""

    k = v = at = None

    def __init__(self):
        pass

    def __setattr__(self, name, value):
        setattr(Shared, name, value)


class WritesBeforeItReads(Ring):
    """All but the first call write to the ring, then read it."""

    def append(self, **new):
        first = self.n
        super().append(**new)
        if first:
            self.k, self.v, self.at = (self.rows[name][:, :, : self.n] for name in ("k", "v", "at"))


class Counts(Movable):
    """Numbers of tokens are kept beside the arrays, and positions follow from them after a beam step or a trim."""

    of_texts, later = None, 0

    def __call__(self, q, k, v, positions):
        if self.of_texts is not None:
            positions, self.of_texts = self.of_texts + np.arange(positions.shape[1]), None
        self.after = positions[:, -1:] + 1
        return super().__call__(q, k, v, positions + self.later)


def counts_stay(self, rows):
    self.of_texts = self.after
    Movable.reorder(self, rows)


def nothing_but_counts(self, n):
    self.later += n


def counts_go_on(self, n):
    nothing_but_counts(self, n)
    Movable.trim(self, n)


def but(base, said, **other):
    """A cache with one mistake."""
    return type(said, (base,), other)


def scattered(self, x, rows):
    y = x.copy()
    y[rows] = x
    return y


def in_place(self, x, rows):
    x = x.copy()
    for i, row in enumerate(rows):
        x[i] = x[row]
    return x


def by_rows(self, positions):
    n, total = positions.shape[1], self.at.shape[2]
    return np.broadcast_to(np.tri(n, total, total - n) > 0, (len(positions), n, total))


def too_many(base, more):
    return lambda self, n: base.trim(self, n + more)


def not_reordered(self, **new):
    """Beams change places, their rows in the cache do not."""
    if self.k is not None and new["k"].shape[2] == 1:
        self.k, self.v = self.k[[2, 0, 1]], self.v[[2, 0, 1]]
    Cache.append(self, **new)


def of_other_texts(self, **new):
    Cache.append(self, **new | {"k": new["k"][[1, 0, 2]] if self.k is not None else new["k"]})


def of_the_first_text(self, positions):
    return positions, np.broadcast_to(positions[:1], positions.shape)


def future(self, positions):
    return np.ones((len(positions), positions.shape[1], self.at.shape[2]), dtype=bool)


def aligned_left(self, positions):
    return np.tri(positions.shape[1], self.at.shape[2]) > future(self, positions) - 1


def moved_from_four_on(self, positions):
    return (positions + 12 * (positions > 3),) * 2


WRONG = [
    (but(Cache, "CountsFromZero", places=lambda self, p: (counted(self, p),) * 2), "steps, call 2", "each_call_from_zero"),
    (but(Cache, "QueriesFromZero", places=lambda self, p: (counted(self, p), p)), "steps, call 2", "queries_from_zero"),
    (but(Cache, "CacheTwice", places=lambda self, p: (p + past(self), p)), "steps, call 2", "query_positions_plus_"),
    (
        but(Cache, "KeysOneLate", places=lambda self, p: (p, p + (self.k is not None))),
        "steps, call 2",
        "keys_of_call_2_later_by_1",
    ),
    (
        but(Cache, "OfTheFirstText", places=of_the_first_text),
        "texts at positions of their own, call 1",
        "keys_of_call_1_of_the_first_text",
    ),
    (TurnsKeysAgain, "steps, call 2", "turned_again"),
    (but(Cache, "Forgets", append=lambda self, **new: vars(self).update(new)), "steps, call 2", "cache_not_read"),
    (WritesAfterReading, "steps, call 2", "keys_of_call_2_lost"),
    (but(Cache, "SeesTheFuture", mask=future), "one call", "future_seen"),
    (but(Cache, "AlignsTheMaskLeft", mask=aligned_left), "steps, call 2", "mask_left_aligned"),
    (
        but(Cache, "Unturned", stored=lambda self, k, places: turn(k, places) if self.k is None else k),
        "steps, call 2",
        "keys_of_call_2_unturned",
    ),
    (but(Cache, "BeginsATileAtFour", places=moved_from_four_on), "one call", "positions_of_new_queries_and_keys"),
    (but(Cache, "ExchangesTexts", append=of_other_texts), "steps, call 2", "new_k_of_other_texts"),
    (but(LosesRows, "LosesTwo", kept=slice(0, -2)), "steps, call 2", "last_2_lost"),
    (but(LosesRows, "LosesOneAndCounts", counts=True), "steps, call 2", "last_1_lost_and_closed"),
    (but(LosesRows, "LosesTheSecond", counts=True, kept=np.array([0, 2, 3])), "steps, call 2", "key_1_lost_and_counted"),
    (KeepsTheLastTwiceAndCounts, "steps, call 2", "key_3_twice_and_moved"),
    (but(Cache, "IsNotReordered", append=not_reordered), "steps, call 2", "cached_k_and_v_of_other_texts"),
    (Shared, "steps, call 1", None),
    (but(Movable, "NothingReordered", reordered=()), "beams, call 3", "k_and_v_not_reordered"),
    (but(Movable, "KeysNotReordered", reordered=("v", "at")), "beams, call 3", "k_not_reordered"),
    (but(Movable, "MaskNotReordered", reordered=("k", "v")), "beams at positions of their own, call 3", "mask_not_reordered"),
    (
        but(MovableAsTheyAre, "PositionsNotReordered", reordered=("k", "v")),
        "beams at positions of their own, call 3",
        "positions_not_reordered",
    ),
    (but(Counts, "CountsNotReordered", reorder=counts_stay), "beams at positions of", "counts_not_reordered"),
    (but(Movable, "Twice", order=lambda self, x, rows: x[rows][rows]), "beams, call 3", "k_and_v_reordered_twice"),
    (
        but(Static, "Inverse", order=lambda self, x, rows: x[np.argsort(rows)]),
        "beams, call 3",
        "k_and_v_reordered_by_the_inverse",
    ),
    (but(Movable, "Scattered", order=scattered), "beams, call 3", "k_and_v_scattered"),
    (but(Movable, "InPlace", order=in_place), "beams, call 3", "k_and_v_reordered_in_place"),
    (
        but(Movable, "AlongTheTokens", order=lambda self, x, rows: x.take(rows, axis=2)),
        "beams, call 3",
        "reordered_along_the_tokens",
    ),
    (but(Static, "TwoTooMany", trim=too_many(Static, 2)), "rejected tokens, call 3", "trimmed_by_2_too_many"),
    (but(Movable, "OneTooFew", trim=too_many(Movable, -1)), "rejected tokens, call 3", "trimmed_by_1_too_few"),
    (
        but(Movable, "NothingTrimmedOfRows", trim=lambda self, n: None, mask=by_rows),
        "rejected tokens, call 3",
        "not_trimmed_and_masked_by_rows",
    ),
    (but(Counts, "NothingIsCountedBack", trim=nothing_but_counts), "rejected tokens, call 3", "not_trimmed_and_counted"),
    (but(Counts, "CountsGoOn", trim=counts_go_on), "rejected tokens, call 3", "counts_not_trimmed"),
    (but(Static, "ValuesNotReordered", reordered=("k", "at")), "beams, call 3", "v_not_reordered"),
    (but(Movable, "OneTooMany", trim=too_many(Movable, 1)), "rejected tokens, call 3", "trimmed_by_1_too_many"),
    (but(Static, "TwoTooFew", trim=too_many(Static, -2)), "rejected tokens, call 3", "trimmed_by_2_too_few"),
    (but(Static, "KeysNotTrimmed", trimmed=("v", "at")), "rejected tokens, call 3", "k_not_trimmed"),
    (but(Static, "MaskNotTrimmed", trimmed=("k", "v")), "rejected tokens, call 3", "mask_not_trimmed"),
    (but(Movable, "NoRows", reorder=lambda self: None), "beams, call 3", None),
    (WritesBeforeItReads, "chunks, call 2", "ring_overwritten_before_it_is_read", 5),
    (but(Ring, "DroppedByPlace", dropped=1), "chunks, call 3", "ring_dropped_by_place", 5),
    (but(Ring, "MaskedByPlace", by_place=True), "steps, call 4", "ring_masked_by_place", 5),
    (but(Ring, "CutByPlace", dropped=2), "chunks, call 3", "ring_cut_to_the_window_by_place", 5),
]


@every(WRONG, name=lambda case: case[0].__name__, parts=3)
def test_a_wrong_cache_fails_where_it_goes_wrong(new, where, name, *window):
    moved = where.startswith(tuple(each for own in METHODS.values() for each in own))  # other histories are asked above
    with patch.dict(HISTORIES, clear=moved):
        report = check_cache(new, **ASKED, window=next(iter(window), None))
    failed = [check.name for check in report.checks if check.status == "failed" and check.name != "reads"]
    assert len(failed) == 1
    assert failed[0].startswith(where), str(report)
    named = [finding.name for finding in report.diagnosis]
    assert any(name in each for each in named) if name else not named, str(report)
    assert len(named) < 3, str(report)


def test_what_cannot_be_asked():
    with pytest.raises(ValueError, match=r"new\(\) raised TypeError: .*it takes nothing and returns a function"):
        check_cache(lambda x: x, **ASKED)
    with pytest.raises(ValueError, match="check_cache: axes is 'thd'"):
        check_cache(Cache, **ASKED, axes="thd")
    report = check_cache(lambda: lambda q, k, v, positions: q[:, :1], **ASKED)
    assert "the output has shape" in str(report)
    assert not check_cache(lambda: lambda q, k, v, positions: None, **ASKED).ok
