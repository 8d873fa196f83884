"""Conventions: functions that receive tables of cos and sin, or indices of one score, asked as functions of positions.

`apply_rotary_pos_emb(q, k, cos, sin)` of transformers and its kin are recognised by the names of their parameters. The
tables are the specification's, so frequencies and positions are not checked; what the function does with them is.
`score_mod(score, b, h, q_idx, kv_idx)` and `mask_mod(b, h, q_idx, kv_idx)` of FlexAttention are recognised by their last two
names, and asked for all scores at once.
"""

import sys
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from posref.check.call import Caller, Misbehaved, bound_names, output, signature
from posref.ops import Arguments, Op, op
from posref.pairing import join, split

COMPLEX = ("freqs_cis", "freqs_complex")
Form = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, ...]]


class Convention(NamedTuple):
    """The names of the rotated arrays and of the tables, in the order of the signature."""

    rotated: tuple[str, ...]
    tables: tuple[str, ...]
    unsqueezes: bool

    def __str__(self) -> str:
        return f"fn({', '.join(self.rotated + self.tables)})"


def recognised(fn: Callable[..., Any]) -> Convention | None:
    """The convention of a function, by the names of its parameters; None for `fn(x, positions)` and what says nothing."""
    try:
        parameters = signature(fn).parameters
    except (TypeError, ValueError):
        return None
    names = tuple(parameters)
    tables = tuple(name for name in names if name in ("cos", "sin", *COMPLEX))
    rotated = names[: names.index(tables[0])] if tables else ()
    required = {p.name for p in parameters.values() if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    complete = set(tables) == {"cos", "sin"} or (len(tables) == 1 and tables[0] in COMPLEX)
    own = any("pos" in name for name in rotated) or bound_names(fn) & set(tables)  # it counts, or brings its tables
    if not complete or own or len(rotated) not in (1, 2) or required - {*rotated, *tables}:
        return None
    return Convention(rotated, tables, "unsqueeze_dim" in names)


def forms(convention: Convention, layout: str, axes: str) -> Iterator[tuple[str, Form]]:
    """How a function may want its tables, the usual form first: words, and what makes it of cos and sin `(batch, n, pairs)`."""
    axis, words = (1, "(batch, 1, n, {})") if axes == "bhnd" else (2, "(batch, n, 1, {})")
    ranks: dict[str, Callable[[Any], Any]] = {"(batch, n, {})": lambda y: y}
    if not convention.unsqueezes:
        ranks = {words: lambda y: np.expand_dims(y, axis), **ranks}
    if convention.tables[0] in COMPLEX:
        ranks["(n, {})"] = lambda y: y[0]
    own = layout.partition("_to_")[2] or layout
    widths: dict[str, Any] = {"pairs": None}
    if convention.tables[0] not in COMPLEX:
        widths = {f"features, layout {each}": each for each in dict.fromkeys((own, "half"))} | widths
    for (rank, lay), (width, doubled) in product(ranks.items(), widths.items()):
        yield rank.format(width), _form(convention.tables, lay, doubled)


def _form(tables: tuple[str, ...], lay: Callable[[Any], Any], doubled: Any) -> Form:
    def made(cos: np.ndarray, sin: np.ndarray) -> tuple[np.ndarray, ...]:
        both: dict[str, Any] = {"cos": cos, "sin": sin}
        wide = {name: join(y, y, doubled) if doubled else y for name, y in both.items()}
        if tables[0] in COMPLEX:
            return (np.ascontiguousarray(lay(cos + 1j * sin), np.complex64),)
        return tuple(np.ascontiguousarray(lay(wide[name]), np.float32) for name in tables)

    return made


def of_positions(fn: Any, convention: Convention, part: int, made: Callable[[np.ndarray], Any], to: Any) -> Callable[..., Any]:
    """`fn(x, positions)`: the rotated array number `part`. The other array has other numbers, which the result may not read."""
    told = list[str]()

    def rotated(x: Any, other: Any, positions: Any) -> Any:
        tables = [to(y) if y.dtype.kind == "f" else _complex(to, y) for y in made(np.atleast_2d(output(positions)))]
        arrays = [x if i == part else other for i in range(len(convention.rotated))]
        result = fn(*arrays, **dict(zip(convention.tables, tables, strict=True)))
        return result[part] if isinstance(result, (tuple, list)) else result

    def asked(x: Any, positions: Any) -> Any:
        own, other = x + 0, x * x
        result = rotated(x, -x, positions)
        if len(convention.rotated) > 1 and not told:
            first, second = output(result), output(rotated(own, other, positions))
            reads = first.shape == second.shape and np.abs(first - second).max() > 0.1 * np.abs(first).max()
            this, one = convention.rotated[part], convention.rotated[1 - part]
            told.append(f"the result of {this} depends on {one}: with other numbers in {one} it is another" if reads else "")
        if told and told[0]:
            raise ValueError(told[0])
        return result

    return asked


def _complex(to: Any, y: np.ndarray) -> Any:
    """A complex array in the library of `to`, which may change the dtype of real ones."""
    library = type(to(np.zeros(1, np.float32))).__module__
    return sys.modules["torch"].from_numpy(y) if library == "torch" else y if library == "numpy" else to(y)


def with_tables(
    fn: Any, convention: Convention, asked: Op, settings: dict[str, Any], axes: str, to: Any
) -> tuple[str, list[Callable[..., Any]], dict[str, str]]:
    """`fn(x, positions)` for each array that `fn` rotates, words for the form of the tables, and its axes and positions.

    It is the form with which `fn` gives the right answer, else one with which it keeps lengths, else the first with which it
    runs; axes "bnhd", Meta's, where it runs with those alone, and shared positions where tables have no axis of the batch.
    """
    to = to or (lambda array: array)
    known = {name: settings[name] for name in ("dim", "base", "exponent_dim", "magnitude", "sign") if name in settings}

    def tables(positions: np.ndarray) -> list[np.ndarray]:
        theta = settings.get("frequencies")
        theta = theta(int(positions.max()) + 1) if callable(theta) else theta
        return np.split(op("rope.tables").spec(positions.astype(np.int64), **known, frequencies=theta), 2, axis=-1)

    found = list[Any]()
    others = ("bnhd",) if convention.tables[0] in COMPLEX and axes == "bhnd" else ()
    tried = ((way, *each) for way in (axes, *others) for each in forms(convention, settings["layout"], way))
    for order, words, form in tried:
        if order != axes and min(found)[0] < 3:
            break
        made = lambda positions, form=form: form(*tables(positions))  # noqa: E731
        parts = [of_positions(fn, convention, part, made, to) for part in range(len(convention.rotated))]
        ways = {"axes": order, "positions": "shared" if words.startswith("(n,") else settings.get("positions", "batch")}
        probe = asked.make(**settings | {"max_position": 50, "positions": ways["positions"]})
        expected = asked.spec(**probe)
        try:
            got = Caller(parts[0], asked, to, None, *ways.values())(probe)
        except Misbehaved:
            found.append((3, len(found), words, parts, ways))
            continue
        size = 0.1 * np.abs(expected).max()
        if got.shape != expected.shape:
            found.append((2, len(found), words, parts, ways))
        elif np.allclose(got, expected, atol=size):
            return words, parts, ways
        else:
            ours, theirs = (np.linalg.norm(y, axis=-1) for y in (got, expected))
            found.append((int(not np.allclose(ours, theirs, atol=size)), len(found), words, parts, ways))
    return min(found)[2:]


def of_a_pair(fn: Any) -> list[Callable[..., Any]] | None:
    """`fn(q, k, positions)`, which rotates both, as `fn(x, positions)` for each; None for any other function."""
    try:
        parameters = signature(fn).parameters.values()
    except (TypeError, ValueError):
        return None
    names = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    if len(names) != 3 or [name for name in names if "pos" in name] != names[2:]:
        return None
    return [lambda x, positions: fn(x, -x, positions)[0], lambda x, positions: fn(-x, x, positions)[1]]


def of_tables(fn: Any, settings: dict[str, Any], to: Any, told: list[str]) -> Callable[..., Any]:
    """`fn(x, positions)`; where it returns cos and sin, as a module of tables does, x is rotated with them here."""
    width, layout = settings["dim"], settings["layout"].partition("_to_")[0]

    def rotated(x: Any, *positions: Any) -> Any:
        result = fn(x, *positions)
        if not isinstance(result, (tuple, list)) or len(result) != 2 or np.ndim(result[0]) >= np.ndim(x):
            return result
        cos, sin = (output(each) for each in result)
        if cos.shape[-1] not in (width, width // 2) or cos.shape != sin.shape:
            return result
        whole = output(x)
        turning = whole[..., :width]
        cos, sin = (y[:, None] if y.ndim == 3 else y for y in (cos, sin))
        cos, sin = (join(y, y, layout) if y.shape[-1] < width else y for y in (cos, sin))
        first, second = split(turning, layout)
        told.append("; it returned cos and sin, with which x was rotated here")
        y = np.concatenate([turning * cos + join(-second, first, layout) * sin, whole[..., width:]], axis=-1)
        return (to or (lambda array: array))(y.astype(np.float32))

    return rotated


def of_indices(fn: Any, asked: Op, a: Arguments, to: Any, to_positions: Any) -> Callable[..., Any] | None:
    """A `score_mod` or `mask_mod` as a function of the positions of queries and keys; None for any other function or op."""
    try:
        names = tuple(signature(fn).parameters)
    except (TypeError, ValueError):
        return None
    if names[-2:] != ("q_idx", "kv_idx") or len(names) not in (4, 5) or asked.given != ("query_positions", "key_positions"):
        return None
    to = to or (lambda array: array)
    whole, heads = to_positions or to, np.arange(a.heads if "heads" in a else 1)

    def modified(queries: Any, keys: Any) -> Any:
        shape = (*np.shape(queries)[:-1], len(heads), np.shape(queries)[-1], np.shape(keys)[-1])
        rows = np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1)) if len(shape) == 4 else np.zeros((1, 1, 1), int)
        at = whole(rows), whole(heads[:, None, None]), queries[..., None, :, None], keys[..., None, None, :]
        if len(names) == 4:
            return fn(*at)
        change, more = (fn(to(np.full(shape, score, np.float32)), *at) for score in (0, 4))
        if not np.any(output(change) != output(more)):
            raise ValueError("it returns the same whatever the score is: return score + bias")
        return change

    return modified
