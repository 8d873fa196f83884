"""Cache: checks attention with a KV cache. Which cached key has the wrong position, and from which call on?

Each history starts with an empty cache: one call, steps of one token, chunks, texts that start at different positions, a text
with a gap, and a new cache after another one was used. Between calls the cache is reordered or trimmed, if it has methods for
that. Each call is checked on its own, over all keys so far. The mistakes are those of "rope.attend", those with one key or with
the keys of one call, and those of a cache that is reordered, trimmed or a ring.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from posref import _require, attention, ops
from posref.check import engine, indices
from posref.check.call import Caller, Misbehaved, raised
from posref.check.engine import Named
from posref.check.ranged import models
from posref.check.report import Report
from posref.check.stages.later_questions import failed
from posref.check.stages.reads import BEYOND, SMALL, say
from posref.check.verdict import judged
from posref.check.wrong_elements import worst_element
from posref.ops import Arguments, Mistake, Op, using
from posref.ops.probe import painted

BATCH = 3


class History(NamedTuple):
    """The tokens of each call, the first position of each text, how many positions the second text skips, and what happens
    `between` calls: before the call of this number, `reorder` with these rows or `trim` by this many tokens."""

    calls: tuple[int, ...]
    starts: tuple[int, ...] = (0,) * BATCH
    gap: int = 0
    between: Mapping[int, tuple[int, ...] | int] = MappingProxyType({})


HISTORIES = {
    "one call": History((6,)),
    "steps": History((4, 1, 1, 1)),
    "chunks": History((4, 3, 2)),
    "texts at positions of their own": History((3, 2, 1, 1), (0, 40, 3)),
    "a text with a gap": History((3, 1, 2), gap=7),
    "a new cache": History((5, 1)),
}
METHODS = {  # each wrong order of these rows is another one; more tokens follow a trim than it drops
    "reorder(rows)": {
        "beams": History((4, 1, 1, 2), between={3: (2, 0, 0), 4: (1, 1, 0)}),
        "beams at positions of their own": History((4, 1, 1), (0, 3, 2), between={3: (2, 0, 0)}),
    },
    "trim(n)": {
        "rejected tokens": History((4, 6, 4, 1), (0, 40, 3), between={3: 3, 4: 1}),
        "a prefix is used again": History((6, 2, 3, 1), (0, 40, 3), between={3: 5}),
    },
}
NEAR = 6  # by how much the positions of the keys of one call may be off
NAMED = 64  # keys up to which mistakes of single keys are told from each other
LONGEST = 512  # keys of a window that is filled, so that the first ones leave it
FARTHEST = 64  # by how much the position of a new token may be off
ROLES = ("queries and keys", "queries", "keys")
POSITIONS = "Give each call the positions of its tokens, and follow them from the call to the rotation."
GIVEN = ("q", "k", "v", "positions")
SLOTS = 65  # one more than the unwritten slots that are tried: a key and a value of zeros are a sink of 0
SUM = "the sum of the exponentials is {} too large, as where {} unwritten slots of zeros are seen"
REORDERED = "Where texts change places, as beams do, reorder keys, values and positions of the cache with them."
ONE_ORDER = "Reorder each array of the cache once: x = x[rows] along the axis of texts, so that row i goes on from row rows[i]."
CUT = "Cut keys, values, positions and the number of tokens of the cache back by the same n."
IN_ORDER = "Put the rows of the ring in the order of their positions before you drop or mask by place, or mask by positions."
CACHED = {
    "k": "keys",
    "v": "values",
    "mask": "positions that the mask compares",
    "unturned_k": "keys, which are turned when they are read,",
    "positions": "positions of keys",
    "counts": "numbers of tokens",
}
WHOLE = ("k", "v", "mask")
OF_UNTURNED = [("unturned_k",), ("positions",), ("unturned_k", "v"), ("positions", "v")]
GROUPS = [group for n in (1, 2, 3) for group in itertools.combinations(WHOLE, n)] + OF_UNTURNED
ORDERED = [*GROUPS, ("counts",), (*WHOLE, "counts")]
AT_EQUAL_POSITIONS = [("k",), ("v",), ("k", "v")]
CALL = "one call of the attention: its own tokens alone"


class Parts(NamedTuple):
    """Where the keys of each call end (`ends`), what was done to the cache before the last call, and the cache `before`
    that."""

    ends: tuple[int, ...]
    done: tuple[int, ...] | int | None
    before: dict[str, np.ndarray]


def check_cache(
    new: Callable[[], Callable[..., Any]],
    *,
    dim: int,
    layout: str,
    base: float = 10000.0,
    scale: float | None = None,
    heads: int = 2,
    key_heads: int | None = None,
    window: int | None = None,
    to: Callable[[Any], Any] | None = None,
    to_positions: Callable[[Any], Any] | None = None,
    axes: str = "bhnd",
) -> Report:
    """Check attention with a cache: `new()` makes an empty one and returns `attend(q, k, v, positions) -> output`.

    q, k, v `(batch, heads, n, dim)` and positions `(batch, n)` are those of the new tokens: first a prompt, then steps or
    chunks. The output is causal attention of the new queries over all keys so far, with RoPE on queries and keys. `scale` None
    means 1 / sqrt(dim); `window` is how many keys a query sees; `axes` is "bhnd" or "bnhd". The report says which call is
    wrong, and which keys have which positions there. ValueError for settings that make no sense.

    What `new()` returns may have two methods, which change the cache and return nothing. posref calls them between calls;
    where one is missing, the report says so. `reorder(rows)` follows a step of beam search: row i of the cache becomes row
    rows[i], for instance rows = [1, 1, 0]. `trim(n)` follows a rejected draft, or precedes another text with the same prefix:
    the last n tokens of each row are dropped (not called if the tokens of that history do not all fit into the window). For a
    cache with arrays k and v of shape (batch, heads, n, dim):

        def reorder(self, rows):
            self.k, self.v = self.k[rows], self.v[rows]

        def trim(self, n):
            self.k, self.v = self.k[:, :, :-n], self.v[:, :, :-n]

    >>> from posref.ops import op
    >>> def new():
    ...     keys = []
    ...     def attend(q, k, v, positions):
    ...         start = sum(k.shape[2] for k, v, p in keys)
    ...         keys.append((k, v, np.broadcast_to(np.arange(k.shape[2]), positions.shape)))  # each call counts from 0
    ...         k, v, p = (np.concatenate(x, axis=i) for x, i in zip(zip(*keys), (2, 2, 1)))
    ...         mask = np.tri(q.shape[2], k.shape[2], start) > 0
    ...         return op("rope.attend").spec(q, k, v, positions, p, mask, dim=8, layout="half", scale=8**-0.5)
    ...     return attend
    >>> print(str(check_cache(new, dim=8, layout="half")).splitlines()[1][:108])
      Diagnosis: your output equals rope.attend with the mistake keys_of_call_2_from_zero: the keys of call 2, 4
    """
    _require.choice("check.check_cache", "axes", axes, ("bhnd", "bnhd"))
    fixed = {"dim": dim, "layout": layout, "base": base, "scale": dim**-0.5 if scale is None else scale, "window": window}
    key_heads = heads if key_heads is None else key_heads
    report = Report(f"cache dim={dim} layout={layout} base={base:g}" + ("" if window is None else f" window={window}"))
    ways, made = (new, (to, to_positions, axes)), _made(new)
    missing = [each for each in METHODS if not callable(getattr(made, each.split("(")[0], None))]
    every = HISTORIES | {name: each for method, own in METHODS.items() if method not in missing for name, each in own.items()}
    asked_for = {name: each for name, each in every.items() if window is None or not each.gap}
    trims = METHODS["trim(n)"].keys() & every.keys()
    brought_back = [name for name in sorted(trims) if window is not None and sum(every[name].calls) > window]
    for name in brought_back:
        del asked_for[name]
    if window is not None and window <= LONGEST:
        asked_for["steps beyond the window"] = History((window, 1, 1, 1, 2))
        asked_for["a chunk longer than the window"] = History((2, window + 2, 1))
    histories = {
        name: partial(_history, fixed, (heads, key_heads), each, number)
        for number, (name, each) in enumerate(asked_for.items())
    }
    for name, history in histories.items():
        if not _right(report, name, history, *ways):
            _decided_by_others(report, (partial(_right, name=each, history=histories[each]) for each in histories), ways)
            return report
        report.passed(name, " + ".join(map(str, asked_for[name].calls)))
    if missing:
        report.skipped(" and ".join(missing), "not asked: what new() returns has no such method")
    if window is not None:
        report.skipped("a text with a gap", "whether a window counts keys or positions there is not settled")
        if window > LONGEST:
            report.skipped("steps beyond the window", f"a window of more than {LONGEST} keys is not filled")
        for name in brought_back:
            report.skipped(name, f"a window of {window} may have dropped keys that a trim brings back")
    return report


def _decided_by_others(report: Report, others: Iterator[Callable[..., bool]], ways: tuple[Any, Any]) -> None:
    """Of several diagnoses keep those that other histories confirm: one wrong query often fits several.

    Names are compared without their numbers, which count the calls or keys of one history.
    """
    general = partial(re.sub, r"\d+", "")
    for right in others:
        if len(report.diagnosis) < 2:
            return
        other = Report(report.subject)
        right(other, new=ways[0], ways=ways[1])
        names = {general(finding.name) for finding in other.diagnosis}
        kept = [finding for finding in report.diagnosis if general(finding.name) in names]
        if 0 < len(kept) < len(report.diagnosis):
            report.diagnosis = kept
            report.advice = kept[0].remedy.split("\n") if len(kept) == 1 else []


def _history(
    fixed: dict[str, Any], heads: tuple[int, int], history: History, number: int
) -> Iterator[tuple[Arguments, Arguments, Parts]]:
    """For each call: the arguments that it receives, those of the right answer, and what was done to the cache."""
    total, dim = sum(history.calls), fixed["dim"]
    shapes = {"q": (BATCH, heads[0], total, dim), "k": (BATCH, heads[1], total, dim), "v": (BATCH, heads[1], total, dim)}
    arrays = {name: painted(shape, 3 * number + i) for i, (name, shape) in enumerate(shapes.items())}
    cache = _at({"k": arrays["k"], "v": arrays["v"], "key_positions": np.zeros((BATCH, total), dtype=int)}, np.arange(0))
    ends = [0]
    for i, end in enumerate(np.cumsum(history.calls)):
        before, done = cache, history.between.get(i + 1)
        if isinstance(done, int):
            ends = [min(each, ends[-1] - done) for each in ends]
            cache = _at(before, np.arange(ends[-1]))
        elif done is not None:
            cache = {name: x[list(done)] for name, x in before.items()}
        received = Arguments({name: x[:, :, end - history.calls[i] : end] for name, x in arrays.items()})
        first = cache["key_positions"][:, -1:] + 1 if i else np.array(history.starts)[:, None]
        received["positions"] = query = first + np.arange(history.calls[i])
        query[1] += history.gap * (i == 1)
        cache = _with(cache, received.k, received.v, query)
        ends = [*ends, cache["k"].shape[2]]
        mask = attention.causal_mask(query[:, None], cache["key_positions"][:, None])
        given = {"q": received.q, "query_positions": query, "softcap": None, "sinks": None, "key_heads": heads[1], "mask": mask}
        yield received, Arguments(fixed | given | cache), Parts(tuple(ends), done, before)


def _with(cache: dict[str, np.ndarray], *new: np.ndarray) -> dict[str, np.ndarray]:
    """Keys, values and positions of a cache, with new ones appended."""
    return {
        name: np.concatenate([x, more], axis=1 if x.ndim == 2 else 2)
        for (name, x), more in zip(cache.items(), new, strict=True)
    }


def _at(cache: dict[str, np.ndarray], tokens: np.ndarray) -> dict[str, np.ndarray]:
    """Keys, values and positions of a cache, at these tokens alone."""
    return {name: x.take(tokens, axis=1 if x.ndim == 2 else 2) for name, x in cache.items()}


def _made(new: Any) -> Any:
    try:
        return new()
    except Exception as error:
        raise ValueError(
            f"check.check_cache: new() raised {type(error).__name__}: {error}; it takes nothing and returns a function"
        ) from error


def _called(caller: Caller, received: Arguments, parts: Parts) -> np.ndarray:
    """The output of a call, after the cache was reordered or trimmed as the history says."""
    if parts.done is not None:
        trim = isinstance(parts.done, int)
        given = parts.done if trim else caller.whole(np.array(parts.done))
        try:
            getattr(caller.fn, "trim" if trim else "reorder")(given)
        except (Exception, SystemExit) as error:
            raise Misbehaved(f"{_said(parts.done)} raised {raised(error)}") from error
    return caller(received)


def _said(done: tuple[int, ...] | int) -> str:
    return f"trim({done})" if isinstance(done, int) else f"reorder({[*done]})"


def _right(report: Report, name: str, history: Callable[[], Iterator[Any]], new: Any, ways: tuple[Any, Any, str]) -> bool:
    """Whether every call of a history is right; if not, the report describes the first wrong call."""
    to, to_positions, axes = ways
    call = Op(CALL, lambda **a: np.zeros_like(a["q"]), GIVEN, partial(ops.op("attention.attend").make, scale=1), {})
    caller = Caller(_made(new), call, to, to_positions, axes, "batch")
    for number, (received, a, parts) in enumerate(history(), start=1):
        new_tokens = received["q"].shape[2]
        where = f"{name}, call {number} with {new_tokens} token{'s' * (new_tokens > 1)}"
        where += "" if parts.done is None else f" after {_said(parts.done)}"
        try:
            got = _called(caller, received, parts)
        except Misbehaved as error:
            report.failed(where, str(error))
            return False
        asked = ops.op("rope.attend")
        asked = asked._replace(given=tuple(each for each in asked.given if each != "mask"))  # which nobody passes
        if parts.ends[-1] > NAMED:
            question = engine.Question(asked._replace(mistakes={}), a, models(caller.dtype, a))
            if (found := question.ask(got)).ok:
                continue
            words = f"of more than {NAMED} keys no mistake is sought; ask with a smaller window for its name"
            report.failed(where, f"{worst_element(question, got, found.model)}; {words}")
            return False
        op = asked._replace(mistakes=dict(_of_calls(a, parts)) | asked.mistakes)
        part = Report(report.subject)
        if not judged(part, engine.Question(op, a, models(caller.dtype, a)), got, _of_keys, pairs=False):
            if not part.diagnosis and np.isfinite(got).all():
                effects = _effects(history, number, lambda: Caller(new(), call, to, to_positions, axes, "batch"))
                say(part, ["batch rows", "heads", "rows", "features"], {("v", 2): effects} if effects else {})
            failed(report, where, part)
            report.ruled_out, report.stopped = part.ruled_out, part.stopped
            return False
    return True


def _effects(history: Callable[[], Iterator[Any]], last: int, made: Callable[[], Caller]) -> list[np.ndarray]:
    """Which numbers of a call's output change with the value of each token so far, and which of the right answer: for
    `reads.say`."""

    def answers(token: int) -> tuple[np.ndarray, np.ndarray]:
        caller = made()
        for number, (received, a, parts) in enumerate(history(), start=1):
            for first, values in ((parts.ends[-2], received), (0, a)):
                here = np.arange(values["v"].shape[2]) == token - first
                values["v"] = values["v"] + here[:, None]
            got = _called(caller, received, parts)
            if number == last:
                break
        return got, np.asarray(ops.op("rope.attend").spec(**a))

    tokens = next(parts.ends[-1] for number, (_, _, parts) in enumerate(history(), start=1) if number == last)
    try:
        before, *after = [answers(token) for token in (-1, *range(tokens))]
    except Misbehaved:
        return []
    return [
        np.stack([BEYOND * (np.abs(y[i] - before[i]) > SMALL * np.abs(before[i]).max()) for y in after]).astype(np.int8)
        for i in (0, 1)
    ]


def _of_calls(a: Arguments, parts: Parts) -> Iterator[Named]:
    """Mistakes with the queries, with all keys, and with the keys of one call."""
    keys, query, last = a.key_positions, a.query_positions, len(parts.ends) - 1
    remedy = "Store keys that were turned by their own positions, and give each call the positions of its tokens."
    trimmed = isinstance(parts.done, int)
    if parts.done is not None:
        yield from (_of_trims if trimmed else _of_orders)(a, parts)
    yield from _of_rings(a, parts.ends[-2])
    everything = np.ones_like(a.mask)
    yield _named("future_seen", "queries see keys after them", "Mask keys after each query.", mask=everything)
    aligned = np.broadcast_to(np.tri(*a.mask.shape[-2:]) > 0, a.mask.shape)
    yield _named(
        "mask_left_aligned",
        "the causal mask begins at the first key, as without a cache",
        "Align the mask at the last key.",
        mask=aligned,
    )
    own = a.mask & (np.arange(keys.shape[1]) >= parts.ends[-2])
    yield _named(
        "cache_not_read", "the keys of earlier calls are not seen", "Append new keys to those of earlier calls.", mask=own
    )
    counted = keys - np.repeat(keys[:, list(parts.ends[:-1])], np.diff(parts.ends), axis=1)
    if last:
        past = parts.ends[-2]
        words = f"query_positions are too large by {past}, the length of the cache, against the others"
        yield _named(f"query_positions_plus_{past}", words, remedy, query_positions=query + past)
        yield _named(
            "each_call_from_zero",
            "queries and keys of each call are counted from 0",
            remedy,
            key_positions=counted,
            query_positions=query - query[:, :1],
        )
        for whose, moved in (("longest", query.max(axis=0)), ("first", query[0])):
            placed = np.broadcast_to(moved, query.shape)
            yield _named(
                f"new_tokens_at_the_{whose}_text",
                f"the new tokens of all texts have the positions of the {whose} text: one offset serves all",
                "Give each text the length of its own cache.",
                key_positions=np.concatenate([keys[:, :past], placed], axis=1),
                query_positions=placed,
            )
    if last > 2 and not trimmed:  # after two calls these are the keys of the first, the other way
        new = np.arange(keys.shape[1]) >= parts.ends[-2]
        near = _near(query, keys, a.window)  # whatever turns them
        for step in (step for step in range(-NEAR, NEAR + 1) if step):
            size = "large" if step > 0 else "small"
            yield _named(
                f"new_tokens_{'later' if step > 0 else 'earlier'}_by_{abs(step)}",
                f"the positions of the new tokens of call {last}, queries and keys, are {abs(step)} too {size}",
                remedy,
                query_positions=query + step,
                key_positions=keys + step * new,
                mask=near,
                window=None,
            )
    for lost in range(1, min(NEAR, parts.ends[-2] - 1) + 1) if last and not trimmed else ():
        first, end = parts.ends[-2] - lost, parts.ends[-2]
        words = f"the last {lost} of the cached keys are lost" if lost > 1 else "the last of the cached keys is lost"
        trim = "Cut the cache back to the number of tokens that were accepted, and follow the positions of the caller."
        closed = f"{words}, and the new tokens have positions {lost} too small"
        yield _named(f"last_{lost}_lost_and_closed", closed, trim, **_lost(a, first, end, end))
        if lost > 1 and first not in parts.ends:
            yield _named(f"last_{lost}_lost", words, trim, **_lost(a, first, end))
    if last > 1:
        again = keys * np.repeat(np.arange(last, 0, -1), np.diff(parts.ends))
        yield _named(
            "turned_again",
            "cached keys are turned again in each call",
            "Store keys after their rotation, or turn all of them once, when read.",
            key_positions=again,
        )
    for number, (first, end) in enumerate(zip(parts.ends, parts.ends[1:], strict=False), start=1):
        if first == end:  # all were trimmed
            continue
        own, words = keys[:, first:end], f"the keys of call {number}"
        changes = {
            "from_zero": (own - own[:, :1], "are counted from 0"),
            "unturned": (0 * own, "are not turned: their positions are 0"),
        }
        changes |= {"of_the_first_text": (np.broadcast_to(own[:1], own.shape), "have the positions of the first text")}
        changes |= {"at_the_queries": (np.broadcast_to(query[:, -1:], own.shape), "have the position of the last query")}
        for step in dict.fromkeys(
            (*(range(-NEAR, NEAR + 1) if last > 1 else (-1, 1)), -parts.ends[-2], parts.ends[-2], -first, first)
        ):
            if step:
                changes[f"{'later' if step > 0 else 'earlier'}_by_{abs(step)}"] = (
                    own + step,
                    f"are {abs(step)} too {'large' if step > 0 else 'small'}"
                    + (number == 1 < last) * f", or all after them {abs(step)} too {'small' if step > 0 else 'large'}",
                )
        for name, (moved, said) in changes.items():
            whole = np.concatenate([keys[:, :first], moved, keys[:, end:]], axis=1)
            span = (
                f", {own[0, 0]} to {own[0, -1]} in the first text," if end - first > 1 else f", {own[0, 0]} in the first text,"
            )
            yield _named(f"keys_of_call_{number}_{name}", f"{words}{span} {said}", remedy, key_positions=whole)
        left = a.mask & ~((np.arange(keys.shape[1]) >= first) & (np.arange(keys.shape[1]) < end))
        yield _named(
            f"keys_of_call_{number}_lost",
            f"{words} are not seen",
            "Keep them, or write them before attention reads.",
            mask=left,
        )


def _near(query: np.ndarray, keys: np.ndarray, window: int | None) -> np.ndarray:
    """Where a key is neither after the query nor outside the window, by positions."""
    offsets = keys[:, None, None] - query[:, None, :, None]
    return (offsets <= 0) & (offsets > -(window or np.inf))


def _of_orders(a: Arguments, parts: Parts) -> Iterator[Named]:
    """Mistakes when texts change places: some arrays of the cache are left as they are, or reordered wrongly."""
    rows, here = np.array(parts.done), np.arange(len(a.k))
    scattered, in_place = here.copy(), here.copy()
    scattered[rows] = here
    for i in here:
        in_place[i] = in_place[rows[i]]
    orders = {
        "not_reordered": (here, "not reordered"),
        "reordered_twice": (rows[rows], "reordered twice"),
        "reordered_by_the_inverse": (np.argsort(rows, kind="stable"), "reordered by the inverse, argsort(rows)"),
        "scattered": (scattered, "written to row rows[i] instead of read from it"),
        "reordered_in_place": (in_place, "reordered in place: rows are read that are written already"),
    }
    equal = (parts.before["key_positions"] == parts.before["key_positions"][:1]).all()
    for (name, (order, said)), group in itertools.product(orders.items(), AT_EQUAL_POSITIONS if equal else ORDERED):
        cache = {each: x[order] for each, x in parts.before.items()}
        query = cache["key_positions"][:, -1:] + 1 + np.arange(a.q.shape[2]) if "counts" in group else a.query_positions
        arrays = " and ".join(CACHED[each] for each in group)
        change = _changed(a, query, _with(cache, *_new(a), query), group)
        yield _named(f"{'_and_'.join(group)}_{name}", f"the cached {arrays} are {said}", ONE_ORDER, **change)
    along = _with(_at(parts.before, rows), *_new(a), a.query_positions)
    bug = f"the cache is reordered along its tokens, not along its texts: keys {', '.join(map(str, rows))} are left"
    yield _named("reordered_along_the_tokens", bug, ONE_ORDER, **_changed(a, a.query_positions, along, WHOLE))


def _of_trims(a: Arguments, parts: Parts) -> Iterator[Named]:
    """Mistakes when the last tokens are dropped: too many or too few, from the whole cache or from some arrays."""
    kept, total = parts.ends[-2:]
    dropped = parts.before["k"].shape[2] - kept
    for more in (more for more in dict.fromkeys((dropped, 1, 2, -1, -2)) if -kept < more <= dropped):
        name = "not_trimmed" if more == dropped else f"trimmed_by_{abs(more)}_too_{'few' if more > 0 else 'many'}"
        said, later, cut = name.replace("_", " "), a.query_positions + more, _at(parts.before, np.arange(kept + more))
        whole = _changed(a, a.query_positions, _with(cut, *_new(a), a.query_positions), WHOLE)
        yield _named(name, f"the cache is {said}", CUT, **whole)
        counted = _changed(a, later, _with(cut, *_new(a), later), WHOLE)
        yield _named(f"{name}_and_counted", f"the cache is {said}, and new tokens are counted from there", CUT, **counted)
        bug = f"new tokens have positions {abs(more)} too {'large' if more > 0 else 'small'}: the number of tokens is {said}"
        yield _named(f"counts_{name}", bug, CUT, **_changed(a, later, {}, ("counts",)))
        if more < 0:
            continue
        if more > 1:  # one more is seen by all new tokens, by rows and by positions
            rows = np.arange(total + more)[None]
            whole["mask"] = np.broadcast_to(_near(rows[:, kept + more :], rows, a.window), whole["mask"].shape)
            yield _named(f"{name}_and_masked_by_rows", f"the cache is {said}, and is masked by rows", CUT, **whole)
        slots = np.arange(total)  # new tokens are written further on, and as many slots are read as is right
        written = np.where(slots < kept + more, slots, dropped - more + slots)
        cache = _at(_with(parts.before, *_new(a), a.query_positions), written)
        for group in GROUPS:
            arrays = " and ".join(CACHED[each] for each in group)
            change = _changed(a, a.query_positions, cache, group)
            yield _named(f"{'_and_'.join(group)}_{name}", f"the cached {arrays} are {said}", CUT, **change)


def _of_rings(a: Arguments, past: int) -> Iterator[Named]:
    """Mistakes of a window whose keys are kept in a ring, the key of position p in row p % window."""
    total, window = a.key_positions.shape[1], a.window
    if window is None or total <= window:
        return
    near, new = _near(a.query_positions, a.key_positions, window), np.arange(past, total)
    left = near & (np.arange(total) >= total - window)
    words = "new keys are written to the ring before all queries have read: they overwrite keys that the first of them see"
    yield _named(
        "ring_overwritten_before_it_is_read", words, "Read the ring and the new keys, then write.", mask=left, window=None
    )
    if past < window or past % window == 0:  # rows in the order of their positions
        return
    old = np.arange(past - window, past)
    ring = old[np.argsort(old % window)]
    ways = {"dropped": 1, "masked": 0} | ({"cut_to_the_window": len(new), "cut_and_masked": len(new)} if len(new) > 1 else {})
    for by, first in ways.items():
        order = np.concatenate([ring[first:], new])
        rows = np.arange(len(order))[None]
        seen = _near(rows[:, -len(new) :], rows, window) if "masked" in by else near[..., order]
        said = by.replace("_", " ")
        bug = f"the keys of the ring are {said} by their place in it, though it has wrapped: newer ones go first"
        change = _at({"k": a.k, "v": a.v, "key_positions": a.key_positions}, order)
        mask = np.broadcast_to(seen, (*near.shape[:-1], len(order)))
        yield _named(f"ring_{by}_by_place", bug, IN_ORDER, **change, mask=mask, window=None)


def _changed(a: Arguments, query: np.ndarray, wrong: dict[str, np.ndarray], group: tuple[str, ...]) -> dict[str, Any]:
    """Arguments with other positions of the new tokens, and with a group of arrays taken from another cache."""
    past = a.key_positions[:, : -query.shape[1]]
    right = {"k": a.k, "v": a.v, "key_positions": np.concatenate([past, query], axis=1)}

    def array(name: str, *members: str) -> np.ndarray:
        return (right if set(members).isdisjoint(group) else wrong)[name]

    masked = array("key_positions", "mask", "positions")
    change = {"k": array("k", "k", "unturned_k"), "v": array("v", "v"), "query_positions": query, "window": None}
    return change | {"key_positions": array("key_positions", "k", "positions"), "mask": _near(query, masked, a.window)}


def _new(a: Arguments) -> tuple[np.ndarray, np.ndarray]:
    return a.k[:, :, -a.q.shape[2] :], a.v[:, :, -a.q.shape[2] :]


def _lost(a: Arguments, first: int, end: int, closed: int | None = None) -> dict[str, Any]:
    """Arguments without the cached keys first .. end - 1; positions from key `closed` on are lowered by their number."""
    rows = np.arange(a.key_positions.shape[1])
    near = _near(a.query_positions, a.key_positions, a.window)
    change = {"mask": near & ~((rows >= first) & (rows < end)), "window": None}
    if closed is None:
        return change
    keys = a.key_positions - (end - first) * (rows >= closed)
    return change | {"query_positions": a.query_positions - (end - first), "key_positions": keys}


def _twice(a: Arguments, j: int, more: int) -> dict[str, Any]:
    """Arguments in which cached key j is stored twice, and all later positions are `more` larger."""
    rows = np.arange(a.key_positions.shape[1])
    order = np.insert(rows, j, j)
    moved = a.key_positions + more * (rows > j)
    return {
        "k": a.k[:, :, order],
        "v": a.v[:, :, order],
        "key_positions": np.concatenate([moved[:, : j + 1], moved[:, [j]] + more, moved[:, j + 1 :]], axis=1),
        "query_positions": a.query_positions + more,
        "mask": a.mask[..., order],
    }


def _of_keys(question: engine.Question, got: np.ndarray) -> Iterator[list[Named]]:
    """Mistakes with one key (lost, stored twice, at another position), with unwritten slots, and with keys of other texts."""
    a, found = question.a, []
    past = a.key_positions.shape[1] - a.q.shape[2]
    keep = "Keep it, and take positions from the caller, not from the number of rows."
    for j in range(past):
        for name, closed, those in (("closed", j + 1, "what follows"), ("counted", past, "the new tokens")):
            words = f"key {j} is lost, and the positions of {those} are 1 too small"
            if closed > 1 and j < past - 1:  # without the first key the others are as far from each other; the last is a call's
                found.append(_named(f"key_{j}_lost_and_{name}", words, keep, **_lost(a, j, j + 1, closed)))
        for more, said in ((0, ""), (1, ", and the positions of what follows are 1 too large")):
            words = f"key {j} stands in the cache twice{said}"
            found.append(_named(f"key_{j}_twice{'_and_moved' * more}", words, "Write each token once.", **_twice(a, j, more)))
    for j in range(a.key_positions.shape[1]):
        alone = np.arange(a.key_positions.shape[1]) == j
        found.append(_named(f"key_{j}_lost", f"key {j} is not seen", "Keep it.", mask=a.mask & ~alone))
        for place in range(a.key_positions.shape[1] + 1):
            moved = np.where(alone, place, a.key_positions)
            found.append(
                _named(f"key_{j}_at_{place}", f"key {j} has position {place}", "Store its own position.", key_positions=moved)
            )
    yield found
    moved = np.where(np.arange(a.key_positions.shape[1]) < a.key_positions.shape[1] - a.q.shape[2], -1, 0) + a.key_positions
    zero = {n: np.full(a.q.shape[1], np.log(n)) for n in range(1, SLOTS)}
    remedy = "Mask what was not written yet, and write each token to the slot after the last."
    yield [_named(f"{n}_unwritten_slots", SUM.format(n, n), remedy, sinks=s) for n, s in zero.items()]
    bug = f"new tokens are turned as one place late, and {SUM.format(1, 1)}"
    yield [_named("written_one_late", bug, remedy, sinks=zero[1], key_positions=moved)]

    yield [each for role in ROLES for each in _of_tokens(question, got, role)]
    for which, given in itertools.product(("new", "cached"), (("k",), ("v",), ("k", "v"))):
        every = [{x: _of_text(a[x], text, past, which) for x in _with_positions(given, which)} for text in range(len(a.k))]
        words = f"text {{}} of the {which} {' and '.join(given)}"
        named = indices.read(question, got, f"{which}_{'_and_'.join(given)}_of_other_texts", words, every)
        yield [(name, m._replace(remedy=REORDERED if which == "cached" else m.remedy)) for name, m in named]


def _with_positions(given: tuple[str, ...], which: str) -> tuple[str, ...]:
    """The arrays that are read together: cached keys are already rotated, so their positions go with them."""
    return (*given, "key_positions") if which == "cached" and "k" in given else given


def _of_text(x: np.ndarray, text: int, past: int, which: str) -> np.ndarray:
    """Keys, values or positions in which all texts have the "new" or the "cached" ones of a single text."""
    axis = 2 if x.ndim == 4 else 1
    here = np.arange(x.shape[axis]) >= past
    here = (here if which == "new" else ~here).reshape((-1,) + (1,) * (x.ndim - axis - 1))
    return np.where(here, x[[text]], x)


def _of_tokens(question: engine.Question, got: np.ndarray, role: str) -> Iterator[Named]:
    """The positions by which the new tokens were rotated, found token by token, since a row depends on no later token.

    If several positions fit, the one nearest to the right one is taken.
    """
    a, past = question.a, question.a.key_positions.shape[1] - question.a.q.shape[2]
    query, keys = a.query_positions.copy(), a.key_positions.copy()
    near = _near(a.query_positions, a.key_positions, a.window)
    bound = question.tolerance[question.models[-1]]
    changed = {"query_positions": query, "key_positions": keys, "mask": near, "window": None}
    for i, here in enumerate(a.query_positions.T):
        row, found = {"q": a.q[:, :, [i]], "mask": near[:, :, [i]]}, np.zeros(len(here), dtype=bool)
        for moved in (here + step for step in sorted(range(-FARTHEST, FARTHEST + 1), key=abs)):
            at = {"query_positions": query[:, [i]], "key_positions": keys.copy()}
            if "queries" in role:
                at["query_positions"] = moved[:, None]
            if "keys" in role:
                at["key_positions"][:, past + i] = moved
            y = np.asarray(question.op.spec(**a | changed | row | at))[:, :, 0]
            fits = (engine.ratios(got[:, :, i], y, bound[:, :, i]) <= 1).all(axis=(1, 2)) & ~found & (moved >= 0)
            query[fits, i], keys[fits, past + i] = at["query_positions"][fits, 0], at["key_positions"][fits, past + i]
            found |= fits
            if found.all():
                break
        if not found.all():
            return
    used = query if "queries" in role else keys[:, past:]
    texts = np.flatnonzero((used != a.query_positions).any(axis=1))
    if len(texts):
        numbers = [", ".join(map(str, x[texts[0]])) for x in (used, a.query_positions)]
        bug = f"the new {role} of text {texts[0]} are turned by {numbers[0]} instead of {numbers[1]}"
        bug += f"; {len(texts)} of {len(used)} texts are turned by other positions" if len(texts) > 1 else ""
        yield _named(f"positions_of_new_{role.replace(' ', '_')}", bug, POSITIONS, **changed)


def _named(name: str, bug: str, remedy: str, **change: Any) -> Named:
    return name, Mistake(using(**change), bug, remedy=remedy, kind="cache")
