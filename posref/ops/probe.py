"""Probe: arguments at which mistakes differ. Extents differ, inputs are painted and exact in bf16, positions have gaps."""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from posref import attention
from posref.ops import Arguments

# what an array is made of where the op has no such setting; each can be given like a setting
EXTENTS = {"batch": 3, "heads": 2, "n_query": 5, "n_key": 7, "head_dim": 8, "positions": "batch"}


def painted(shape: tuple[int, ...], tag: int) -> np.ndarray:
    """((7 n^2 + 31 n + 17 tag) mod 251 - 125) / 64, without its zeros: exact with 8 bits, |x| < 2.

    >>> painted((4,), 0)
    array([-1.953125, -1.359375, -0.546875,  0.484375])
    """
    n = np.arange(int(np.prod(shape)))
    numbers = (7 * n * n + 31 * n + 17 * tag) % 251 - 125
    return (np.where(numbers == 0, 125, numbers) / 64).reshape(shape)


def keys_at(s: Any) -> np.ndarray:
    """Positions of the keys. "batch": every row has its own, one with gaps, one padded on the left, one across 4096;
    "shared": one row with gaps; "range": 0, 1, 2, ..; "offset": counted from 3.

    >>> keys_at(Arguments(EXTENTS))
    array([[   0,    1,    2,    3,    9,   40,  136],
           [   0,    0,    0,    1,    2,    3,    4],
           [4093, 4094, 4095, 4096, 4102, 4133, 4229]])
    """
    n = np.arange(s.n_key)
    gaps = n + 5 * (n > 3) + 30 * (n > 4) + 95 * (n > 5)
    if s.positions in ("range", "offset"):
        return n + 3 * (s.positions == "offset")
    if s.positions == "shared":
        return gaps
    rows = [gaps, np.maximum(n - 2, 0), gaps + 4093]
    return np.stack(rows[: s.batch] + [gaps + 7 * row for row in range(3, s.batch)])


def queries_at(s: Any) -> np.ndarray:
    """The last queries of the sequence: with fewer queries than keys the cache is not empty."""
    return keys_at(s)[..., max(s.n_key - s.n_query, 0) :]


def padded_mask(s: Any) -> np.ndarray:
    """Causal, the last query at the last key; texts are padded on the left: no row sees all, or nothing."""
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
    f: Callable[..., Any], given: tuple[str, ...], arrays: Mapping[str, Callable[[Any], Any]], asked: Collection[str] = ()
) -> Callable[..., Arguments]:
    """`make(**settings)` of an op: its keyword arguments and the extents, and every array made from them.

    Its signature lists the settings; one without a default must be given. Arrays in `asked` are made if their setting is true.
    """
    known = ARRAYS | dict(arrays)
    keyword = inspect.Parameter.KEYWORD_ONLY
    settings = {name: p for name, p in inspect.signature(f).parameters.items() if name not in known and name != "mask"}
    if "mask" in inspect.signature(f).parameters and "mask" not in known:
        settings["causal"] = inspect.Parameter("causal", keyword, default=True, annotation=bool)
    settings |= {name: inspect.Parameter(name, keyword, default=False, annotation=bool) for name in given if name in asked}
    for name in {"n_query", "n_key"} & settings.keys():
        settings[name] = settings[name].replace(default=EXTENTS[name])
    extents = {name: inspect.Parameter(name, keyword, default=value) for name, value in EXTENTS.items() if name not in settings}
    parameters = {name: p.replace(kind=keyword) for name, p in (settings | extents).items()}

    def make(**chosen: Any) -> Arguments:
        for name in chosen:
            if name not in parameters:
                raise ValueError(f"ops: {f.__name__} has no setting {name!r}; it has {', '.join(parameters)}")
        for name, p in parameters.items():
            if name not in chosen and p.default is p.empty:
                raise ValueError(f"ops: {f.__name__} needs {name}=; its settings are {', '.join(parameters)}")
        s = Arguments({name: p.default for name, p in parameters.items()} | chosen)
        if "dim" in s and "head_dim" not in chosen:
            s["head_dim"] = s.dim
        made = {name: known[name](s) if s.get(name, True) else None for name in given if name in known}
        return completed(f, s | made)

    make.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    return make


def completed(f: Callable[..., Any], named: Mapping[str, Any]) -> Arguments:
    """The arguments of f alone; where it takes a mask, the causal one if `causal` is true.

    The mask is made of the positions as given: a wrong position is another mistake than a wrong mask.
    """
    a = Arguments({name: named[name] for name in inspect.signature(f).parameters if name in named})
    if "mask" in inspect.signature(f).parameters and "mask" not in a and "causal" in named:
        a["mask"] = _causal(a.query_positions, a.key_positions, a.q.ndim) if named["causal"] else None
    return a


def _causal(queries: np.ndarray, keys: np.ndarray, axes: int) -> np.ndarray:
    mask = attention.causal_mask(queries, keys)
    return mask[:, None] if mask.ndim == 3 and axes == 4 else mask
