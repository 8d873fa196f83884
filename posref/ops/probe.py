"""Probe: arguments at which mistakes differ. Extents differ, inputs are exact in bfloat16, and positions have gaps."""

import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from posref import _require, attention
from posref.ops import Arguments, NotHere, Op

POSITIONS = ("batch", "shared", "range", "offset")
# sizes of arrays, for ops without such a setting; each can be given like a setting
EXTENTS = {"batch": 3, "heads": 2, "n_query": 5, "n_key": 7, "head_dim": 8, "positions": "batch"}


def painted(shape: tuple[int, ...], tag: int) -> np.ndarray:
    """((7 n^2 + 31 n + 17 tag) mod 251 - 125) / 64, without its zeros: exact with 8 bits, |x| < 2.

    >>> painted((4,), 0)
    array([-1.953125, -1.359375, -0.546875,  0.484375])
    """
    n = np.arange(251)  # the period
    numbers = (7 * n * n + 31 * n + 17 * tag) % 251 - 125
    return np.resize(np.where(numbers == 0, 125, numbers) / 64, shape)


def ending(x: np.ndarray, *numbers: float) -> np.ndarray:
    """The array with these numbers at its end, which are so large that exp overflows unless the code prevents it.

    >>> ending(np.zeros(4), -100, 100)
    array([   0.,    0., -100.,  100.])
    """
    x = x.copy()
    x.flat[-len(numbers) :] = numbers[-x.size :]
    return x


def keys_at(s: Any) -> np.ndarray:
    """Positions of the keys, none larger than `max_position`. "batch": each row has its own, one row with gaps, one padded on
    the left, one across 4096; "shared": one row with gaps; "range": 0, 1, 2, ..; "offset": counted from 3.

    >>> keys_at(Arguments(EXTENTS))
    array([[   0,    1,    2,    3,    9,   40,  136],
           [   0,    0,    0,    1,    2,    3,    4],
           [4093, 4094, 4095, 4096, 4102, 4133, 4229]])
    """
    n = np.arange(s.n_key)
    gaps = n + 5 * (n > 3) + 30 * (n > 4) + 95 * (n > 5)
    if s.positions in ("range", "offset"):
        return n + 3 * (s.positions == "offset")
    limit = s.get("max_position") or np.inf
    if s.positions == "shared":
        return np.minimum(gaps, limit).astype(int)
    rows = [gaps, np.maximum(n - 2, 0), gaps + min(4093, max(limit - gaps[-1], 0))]
    return np.minimum(np.stack(rows[: s.batch] + [gaps * (1 + row % 5) + 7 * row for row in range(3, s.batch)]), limit).astype(
        int
    )


LANDMARKS = (*(0, 1, 2, 3, 5, 17, 100, 255, 256, 257, 511, 1000, 2047, 2049, 4095, 4097), 15962, 48040, 65535, 131073, 999999)


def marks_at(s: Any) -> np.ndarray:
    """Positions up to `max_position`, which is one of them: 0, 1, 2, 4, .. 2^k and 2^k + 1, for reading phases; positions where
    16-bit numbers end, out of order; a run from an odd start. No row of a batch repeats another one or starts at 0.

    >>> marks_at(Arguments(EXTENTS) | {"n_key": 7, "max_position": 20})
    array([[16, 17, 20,  0,  1,  2,  4],
           [ 2,  0, 17,  3,  1, 20,  5],
           [19,  2,  4,  8, 10, 14, 16]])
    """
    if s["positions"] in ("range", "offset"):
        return keys_at(s)
    limit, n = s["max_position"], np.arange(s["n_key"])
    powers = [2**k for k in range(limit.bit_length())]
    steps = np.roll(np.unique([0, *powers, min(powers[-1] + 1, limit), limit]), -5)
    marks = np.array([*(p for p in LANDMARKS if p < limit), limit])
    apart = next(step for step in (5, 7, 11) if len(marks) % step)
    run = (1237 + 3 * n + n % 2) % (limit + 1)
    rows = [np.resize(steps, len(n)), np.resize(marks[(np.arange(len(marks)) * apart + 2) % len(marks)], len(n)), run]
    return (
        rows[0]
        if s["positions"] == "shared"
        else np.stack([rows[i % 3] if i < 3 else (run + i) % (limit + 1) for i in range(s["batch"])])
    )


ENDS = (2**14, 2**15, 2**16)  # of integers of 15 and 16 bits
EXACT = 2**24  # so far float32 holds every integer
FAR = (*(2**k for k in range(18, 31, 2)), 2**31 - 2**8)  # the last one is near the end of int32
PLACED = ("key_positions", "positions", "query_positions")


def with_positions(a: Arguments, changed: Mapping[str, Any]) -> Arguments:
    """The arguments at other positions, with the causal mask and the frequencies that follow from them.

    >>> a = Arguments(query_positions=np.array([1]), key_positions=np.arange(3), q=np.ones((1, 2)), k=np.ones((3, 2)))
    >>> with_positions(Arguments(a, mask=_causal(a)), {"query_positions": np.array([0])}).mask
    array([[ True, False, False]])
    """
    new = a | changed
    if isinstance(a.get("mask"), np.ndarray) and "q" in a and "query_positions" in changed:
        new["mask"] = _causal(new) if np.array_equal(a["mask"], _causal(a)) else a["mask"]
    return following(new, a.by_length)


def following(a: Arguments, by_length: Callable[[int], Any] | None) -> Arguments:
    """The arguments with frequencies for their length, which is the largest position plus one."""
    if by_length is not None:
        a["frequencies"] = by_length(int(max(np.max(a[name]) for name in PLACED if name in a)) + 1)
        a.by_length = by_length
    return a


def placed(op: Op, a: Arguments) -> list[str]:
    """The names of the arguments that are positions: integers, not only 0 and 1, that can all grow by 1 without a change of
    shape. Integers below 0 are marks, such as -1 for text among the numbers of images.

    Offsets have two ends and are moved by `parted`; lengths and sizes change the shape.

    >>> from posref import ops
    >>> [placed(ops.op(name), ops.op(name).make()) for name in ("offsets.offsets", "learned.encode", "position_ids.packed")]
    [['query_positions', 'key_positions'], ['positions'], []]
    """
    arrays = {name: a[name] for name in op.given if isinstance(a.get(name), np.ndarray) and a[name].dtype.kind in "iu"}
    names = [name for name, x in arrays.items() if name != "offsets" and x.min(initial=0) >= 0 and not np.isin(x, (0, 1)).all()]
    try:
        with np.errstate(all="ignore"):
            grown = np.shape(op.spec(**a | {name: a[name] + 1 for name in names}))
    except (TypeError, ValueError):
        return []
    return names if grown == np.shape(op.spec(**a)) else []


def counted(op: Op, a: Arguments) -> Arguments:
    """The arguments with counts 1024 times as large, since float16 holds no odd number beyond 2^11. NotHere if the op counts
    nothing, or has positions to move; tables of buckets have the length asked for. A grid grows in its height only, since
    otherwise it would have a million times as many places.

    >>> from posref import ops
    >>> counted(ops.op("position_ids.packed"), Arguments(lengths=np.array([1, 3]))).lengths[:4]
    array([1024, 3072,    1,    3])
    """
    given = {name: np.asarray(a[name]) for name in op.given if name in a}
    counts = given and "buckets" not in given and all(x.dtype.kind in "iub" for x in given.values())
    if not counts or np.asarray(op.spec(**a)).dtype.kind not in "iu" or placed(op, a) or "offsets" in given:
        raise NotHere("counts")
    numbers = [name for name, x in given.items() if x.ndim == 0]
    grid = np.shape(op.spec(**a))[:1] == (np.prod([given[name] for name in numbers]),)
    more = a | {name: _more(x) for name, x in given.items() if not grid or name not in numbers[1:]}
    try:
        op.spec(**more)
    except ValueError as error:  # parents are no counts
        raise NotHere("counts") from error
    return more


def _more(x: np.ndarray) -> Any:
    """1024 times a number; a mask repeated 1024 times; both for lengths; of rows of sizes, 1024 times the first size."""
    if x.dtype.kind == "b":
        return np.tile(x, 1024)
    if x.ndim == 1:
        return np.concatenate([1024 * x, np.tile(x, 1024)])
    return 1024 * int(x) if x.ndim == 0 else np.concatenate([1024 * x[:, :1], x[:, 1:]], axis=1)


def moved(a: Arguments, end: int, names: Collection[str] = PLACED) -> Arguments:
    """The arguments with all positions shifted so that the middle one of the first row is at `end`. NotHere without positions.

    >>> moved(Arguments(positions=np.array([0, 1, 5])), 2**15).positions
    array([32767, 32768, 32772])
    """
    here = [name for name in names if isinstance(a.get(name), np.ndarray) and a[name].dtype.kind in "iu"]
    if not here:
        raise NotHere("positions")
    row = a[here[0]].reshape(-1, a[here[0]].shape[-1])[0]
    return with_positions(a, {name: a[name] + (end - row[len(row) // 2]) for name in here})


def stretched(a: Arguments, end: int, names: Collection[str]) -> Arguments:
    """The arguments with the largest position at `end` and the others below it, where float32 holds them: beyond 2^24 their
    distances grow by a power of two. NotHere without positions.

    >>> stretched(Arguments(positions=np.array([0, 1, 5])), 2**26, ["positions"]).positions
    array([67108844, 67108848, 67108864])
    """
    if not names:
        raise NotHere("positions")
    step, last = 1 << max((end - 1).bit_length() - 24, 0), max(a[name].max() for name in names)
    return with_positions(a, {name: end // step * step + step * (a[name] - last) for name in names})


def exchanged(a: Arguments, positions: str = "batch") -> Arguments:
    """The arguments with other positions, none larger: halved, or one less for positions that count from a start. Without
    positions, rows of a batch change places. NotHere if nothing can change.

    >>> exchanged(Arguments(positions=np.array([0, 1, 5]))).positions
    array([0, 0, 2])
    """
    arrays = {name: x for name, x in a.items() if isinstance(x, np.ndarray)}
    placed = {name: arrays[name] for name in (*PLACED, "offsets") if name in arrays and positions != "range"}
    other = {name: p - 1 if positions == "offset" else p // 2 for name, p in placed.items()}
    other = other or {name: np.roll(x, 1, axis=0) for name, x in arrays.items() if x.ndim > 2 and x.dtype.kind == "f"}
    if not any((x != a[name]).any() for name, x in other.items()):
        raise NotHere("positions")
    return with_positions(a, other)


def fine(x: np.ndarray) -> np.ndarray:
    """Numbers alternately 19/8192 larger and smaller: float32 holds them, and each 16-bit format rounds them differently.

    >>> fine(np.array([1.0, 1.0])) * 8192
    array([8211., 8173.])
    """
    turns = np.where(np.arange(x.size).reshape(x.shape) % 2, -1, 1)
    return (x * (1 + 19 * turns / 2**13)).astype(np.float32).astype(float)


def triangle(mask: np.ndarray) -> np.ndarray:
    """The causal mask of this shape, with the last query at the last key."""
    queries, keys = mask.shape[-2:]
    return np.tri(queries, keys, keys - queries) > 0


def scattered(mask: np.ndarray) -> np.ndarray:
    """A mask of this shape with holes and with keys after the query; every query sees its first or second key.

    >>> scattered(np.tri(3, 4, 1, dtype=bool)) * 1
    array([[1, 0, 1, 1],
           [0, 1, 1, 0],
           [1, 1, 0, 1]])
    """
    rows, keys = np.indices(mask.shape)[-2:]
    return (painted(mask.shape, 3) > 0) | (keys == rows % min(2, mask.shape[-1]))


TILES = (4, 8, 16, 32, 64, 128, 256)  # keys that a kernel loads at once


def stretches(keys: int) -> list[tuple[int, int]]:
    """Stretches of keys to hide so that a tile is empty, from short to long: the first keys, the last keys, keys in the middle
    that start at a multiple of the tile, and all keys between 4 sinks at the start and a window of 4 keys at the end.

    >>> stretches(12)
    [(0, 4), (4, 8), (8, 12), (0, 8), (4, 12)]
    """
    middle = 1 << max(keys.bit_length() - 2, 0)
    found = [(4, keys - 4), *((middle, middle + tile) for tile in TILES if tile <= middle)]
    found += [(start, start + tile) for tile in TILES if tile < keys for start in (0, keys - tile)]
    return sorted({(start, end) for start, end in found if start < end <= keys}, key=lambda each: (each[1] - each[0], each))


def hiding(shape: tuple[int, ...], hidden: Sequence[tuple[int, int]]) -> np.ndarray:
    """A mask whose last rows hide one stretch of keys each; earlier rows see 3 keys, a sliding window.

    >>> hiding((4, 5), [(0, 4), (3, 5)]) * 1
    array([[1, 1, 0, 0, 0],
           [1, 1, 1, 0, 0],
           [0, 0, 0, 0, 1],
           [1, 1, 1, 0, 0]])
    """
    (queries, keys), rows = shape[-2:], int(np.prod(shape[:-1]))
    back = np.maximum(np.arange(rows) % queries + keys - queries, 0)[:, None] - np.arange(keys)
    mask = (back >= 0) & (back < 3)
    for row, (start, end) in enumerate(hidden, rows - len(hidden)):
        mask[row] = (np.arange(keys) < start) | (np.arange(keys) >= end)
    return mask.reshape(shape)


APART = (2**16, 2**15, 2**11)  # where whole numbers of 16 bits end, and where float16 has no odd ones
FARTHEST = 2**24 - 2**10  # with what is about it within the whole numbers of float32
LIMITS = ("max_distance", "span", "window", "chunk_size", "width")


def parted(a: Arguments, gap: int, turn: int = 0) -> Arguments:
    """The arguments with queries and keys about `gap` apart, in turn from row to row: all keys behind; all keys ahead; keys at
    the gap, half of it, a quarter and so on. Offsets move away from 0. NotHere without offsets or queries and keys.

    >>> near = Arguments(query_positions=np.array([4, 5]), key_positions=np.array([3, 4, 5]))
    >>> [parted(near, 2048, turn).key_positions - parted(near, 2048, turn).query_positions[0] for turn in range(3)]
    [array([-2049, -2048, -2047]), array([2047, 2048, 2049]), array([-2048, -1024,  -512])]
    """
    given = [a.get(name) for name in ("offsets", "query_positions", "key_positions")]
    offsets, queries, keys = (x if isinstance(x, np.ndarray) and x.dtype.kind == "i" else None for x in given)
    if offsets is not None:
        return with_positions(a, {"offsets": offsets + np.where(offsets < 0, -gap, gap)})
    if queries is None or keys is None or queries.shape[:-1] != keys.shape[:-1]:
        raise NotHere("query_positions")
    ways = (_behind, _ahead, _thinning)
    rows = zip(*(p.reshape(-1, p.shape[-1]) for p in (queries, keys)), strict=True)
    moved = zip(*(ways[(row + turn) % 3](q, k, gap) for row, (q, k) in enumerate(rows)), strict=True)
    queries, keys = (np.stack(p).reshape(like.shape) for p, like in zip(moved, (queries, keys), strict=True))
    return with_positions(a, {"query_positions": queries, "key_positions": keys})


def _behind(q: np.ndarray, k: np.ndarray, gap: int) -> tuple[np.ndarray, np.ndarray]:
    return q + gap, k


def _ahead(q: np.ndarray, k: np.ndarray, gap: int) -> tuple[np.ndarray, np.ndarray]:
    return q, k + gap


def _thinning(q: np.ndarray, k: np.ndarray, gap: int) -> tuple[np.ndarray, np.ndarray]:
    return q - q[0] + gap, gap - (gap >> np.arange(len(k)))


def dense(a: Arguments) -> Arguments:
    """The arguments without gaps: the keys of each row count on from its first key, and its queries from the same number.

    >>> dense(Arguments(query_positions=np.array([40, 45]), key_positions=np.array([3, 9, 40]))).query_positions
    array([3, 4])
    """
    if not {"query_positions", "key_positions"} <= a.keys():
        return a
    first = a.key_positions[..., :1]
    return with_positions(a, {name: first + np.arange(a[name].shape[-1]) for name in ("query_positions", "key_positions")})


def distances(a: Arguments) -> np.ndarray:
    """All different distances between keys and queries, in order.

    >>> distances(Arguments(offsets=np.array([-3, 0, 3, 4])))
    array([0, 3, 4])
    """
    offsets = a["offsets"] if "offsets" in a else a.key_positions[..., None, :] - a.query_positions[..., :, None]
    return np.unique(np.abs(offsets))


def queries_at(s: Any) -> np.ndarray:
    """The last positions of the sequence; with fewer queries than keys, the cache is not empty."""
    return keys_at(s)[..., max(s.n_key - s.n_query, 0) :]


def padded_mask(s: Any) -> np.ndarray:
    """A causal mask, with the last query at the last key, of texts padded on the left; no row sees all keys, or none."""
    keys = np.arange(s.n_key)
    first = np.minimum(1 + np.arange(s.batch), max(s.n_key - s.n_query, 0))[:, None, None, None]
    return (keys >= first) & (keys <= (np.arange(s.n_query) + max(s.n_key - s.n_query, 0))[:, None])


# name of an argument -> its array, from the settings and extents
ARRAYS: dict[str, Callable[[Any], Any]] = {
    "query_positions": queries_at,
    "key_positions": keys_at,
    "positions": keys_at,
    "q": lambda s: painted((s.batch, s.heads, s.n_query, s.head_dim), 1),
    "k": lambda s: painted((s.batch, s.get("key_heads") or s.heads, s.n_key, s.head_dim), 2),
    "v": lambda s: painted((s.batch, s.get("key_heads") or s.heads, s.n_key, s.head_dim), 4),
    "x": lambda s: painted((s.batch, s.heads, s.n_key, s.head_dim), 1),
}


def maker(
    f: Callable[..., Any],
    given: tuple[str, ...],
    arrays: Mapping[str, Callable[[Any], Any]],
    asked: Collection[str] = (),
    own: Mapping[str, Any] | None = None,
) -> Callable[..., Arguments]:
    """`make(**settings)` of an op: its settings and every array made from them. `own` replaces extents.

    An array is made from the settings, the extents and `given`, the names of all arrays of the op.

    Its signature lists the settings; one without a default must be given. Arrays in `asked` are made if their setting is true.
    """
    known = ARRAYS | dict(arrays)
    keyword = inspect.Parameter.KEYWORD_ONLY
    settings = {name: p for name, p in inspect.signature(f).parameters.items() if name not in known and name != "mask"}
    if "mask" in inspect.signature(f).parameters and "mask" not in known:
        always = inspect.signature(f).parameters["mask"].default is inspect.Parameter.empty
        settings["causal"] = inspect.Parameter("causal", keyword, default=always, annotation=bool)
    settings |= {name: inspect.Parameter(name, keyword, default=False, annotation=bool) for name in given if name in asked}
    placed = any(known.get(name) in (keys_at, queries_at) for name in given)
    sizes: dict[str, Any] = EXTENTS | ({"max_position": None} if placed else {}) | dict(own or {})
    for name in {"n_query", "n_key"} & settings.keys():
        own_default = settings[name].default is None  # all tokens, where nothing else is asked
        settings[name] = settings[name] if own_default else settings[name].replace(default=sizes[name])
    extents = {name: inspect.Parameter(name, keyword, default=value) for name, value in sizes.items() if name not in settings}
    parameters = {name: p.replace(kind=keyword) for name, p in (settings | extents).items()}

    def make(**chosen: Any) -> Arguments:
        for name in chosen:
            if name not in parameters:
                raise ValueError(f"ops: {f.__name__} has no setting {name!r}; it has {', '.join(parameters)}")
        for name, p in parameters.items():
            if name not in chosen and p.default is p.empty:
                raise ValueError(f"ops: {f.__name__} needs {name}=; its settings are {', '.join(parameters)}")
        s = Arguments({name: p.default for name, p in parameters.items()} | chosen | {"given": given})
        if "dim" in s and "head_dim" not in chosen:
            _require.count("ops", "dim", s.dim)
            s["head_dim"] = s.dim
        for name in sizes.keys() & s.keys() - {"positions"}:
            if s[name] is not None:
                _require.count("ops", name, s[name])
        _require.choice("ops", "positions", s.get("positions", "batch"), POSITIONS)
        for name, p in parameters.items():
            if p.annotation is bool:
                _require.choice("ops", name, s[name], (True, False))
        with usable(f, chosen):
            made = {name: known[name](s) if s.get(name, True) else None for name in given if name in known}
            by_length = s.get("frequencies") if callable(s.get("frequencies")) else None
            return following(completed(f, s | made), by_length)

    make.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    return make


@contextmanager
def usable(f: Callable[..., Any], chosen: Mapping[str, Any]) -> Iterator[None]:
    """TypeError that names the settings that are not numbers, in place of Python's own error; words only if no others are
    odd."""
    try:
        yield
    except (AttributeError, TypeError, ValueError) as error:
        if re.match(r"[\w.]+: ", str(error)):
            raise
        others = {name: value for name, value in chosen.items() if not isinstance(value, (int, float, np.generic, np.ndarray))}
        odd = {name: value for name, value in others.items() if not isinstance(value, str)} or others or chosen
        words = ", ".join(f"{name}={value!r}" for name, value in odd.items())
        raise TypeError(f"ops: {f.__name__} cannot use {words}; its contract says what each may be") from None


def completed(f: Callable[..., Any], named: Mapping[str, Any]) -> Arguments:
    """The arguments of f, with its defaults; if f takes a mask and `causal` is true, with the causal mask.

    The mask is made from the given positions: wrong positions are another mistake than a wrong mask.
    """
    parameters = inspect.signature(f).parameters
    defaults = {name: p.default for name, p in parameters.items() if p.default is not p.empty and name != "mask"}
    a = Arguments(defaults | {name: named[name] for name in parameters if name in named})
    if "mask" in parameters and "mask" not in a and "causal" in named:
        a["mask"] = _causal(a) if named["causal"] else None
    return a


def _causal(a: Arguments) -> np.ndarray:
    """The causal mask by position, or by place in the sequence if the op has no positions."""
    queries, keys = a.get("query_positions", np.arange(a.q.shape[-2])), a.get("key_positions", np.arange(a.k.shape[-2]))
    mask = attention.causal_mask(queries, keys)
    return mask[:, None] if mask.ndim == 3 and a.q.ndim == 4 else mask
