"""Conventions: functions that receive tables, lengths or indices of one score, called as functions of positions.

`apply_rotary_pos_emb(q, k, cos, sin)` of transformers and similar functions are recognised by the names of their parameters. So
are functions of one table of complex numbers or angles, as `apply_rotary_pos_emb(t, freqs)` of x-transformers. The tables are
made by the specification: frequencies and positions are not checked, but what the function does with the tables is. A function
that requires `position_ids` after the tables receives tables with all rows. The report says if only half of the columns of a
table are read. `score_mod(score, b, h, q_idx, kv_idx)` and `mask_mod(b, h, q_idx, kv_idx)` of FlexAttention are recognised by
their last two names, and called for all scores at once. A function of lengths, as `compute_bias(query_length, key_length)` of
T5, is recognised by its first name. It is called for texts that begin at 0, with the queries at their end.
"""

import re
import sys
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from posref.check.call import Caller, Misbehaved, bound_names, output, parameters_of
from posref.ops import Arguments, Op, op
from posref.pairing import join, split

COMPLEX = ("freqs_cis", "freqs_complex")
ANGLES = ("freqs", "angles")  # or complex numbers, in Wan
BEHIND = 64  # rows of tables behind the last position: who reads a later row is told which
Form = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[Any, ...]]


class Convention(NamedTuple):
    """The names of the parameters that are passed, in order: all of them, the rotated arrays, the tables, and the row
    indices."""

    names: tuple[str, ...]
    rotated: tuple[str, ...]
    tables: tuple[str, ...]
    indices: tuple[str, ...]
    unsqueezes: bool

    def __str__(self) -> str:
        return f"fn({', '.join(self.names)})"


def recognised(fn: Callable[..., Any]) -> Convention | None:
    """The convention of a function, by the names of its parameters; None for `fn(x, positions)` and for names that say
    nothing."""
    parameters = parameters_of(fn)
    names = tuple(p.name for p in parameters)
    tables = tuple(name for name in names if name in ("cos", "sin", *COMPLEX, *ANGLES))
    required = {p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    behind = [name for name in names if name in required and name not in tables]
    rotated = (names[: names.index(tables[0])] or tuple(behind[:1])) if tables else ()
    single = len(tables) == 1 and tables[0] in (*COMPLEX, *ANGLES) and tables[0] in required
    complete = set(tables) == {"cos", "sin"} or single
    own = any("pos" in name for name in rotated) or bound_names(fn) & set(tables)  # it counts, or brings its tables
    indices = tuple(name for name in names if name in required and "pos" in name)
    if not complete or own or len(rotated) not in (1, 2) or required - {*rotated, *tables, *indices} or len(indices) > 1:
        return None
    passed = {*rotated, *tables, *indices}
    return Convention(tuple(name for name in names if name in passed), rotated, tables, indices, "unsqueeze_dim" in names)


def forms(convention: Convention, layout: str, axes: str) -> Iterator[tuple[str, Form]]:
    """The forms in which a function may want its tables, the usual one first: its words, and what makes it of cos, sin and
    angles.

    Cos, sin and angles have shape `(batch, n, pairs)`.
    """
    axis, words = (1, "(batch, 1, n, {})") if axes == "bhnd" else (2, "(batch, n, 1, {})")
    ranks: dict[str, Callable[[Any], Any]] = {"(batch, n, {})": lambda y: y}
    if not convention.unsqueezes:
        ranks = {words: lambda y: np.expand_dims(y, axis), **ranks}
    if axes == "thd":
        ranks = {"(tokens, 1, {})": lambda y: y[0][:, None], "(tokens, {})": lambda y: y[0]}
    elif convention.indices:
        ranks = {"(1, 1, rows, {})": lambda y: y[None], "(rows, {})": lambda y: y[0]}
    elif convention.tables[0] in (*COMPLEX, *ANGLES):
        ranks["(n, {})"] = lambda y: y[0]
    own = layout.partition("_to_")[2] or layout
    widths: dict[str, Any] = {f"features, layout {each}": each for each in dict.fromkeys((own, "half"))} | {"pairs": None}
    name = convention.tables[0]
    for rank, lay in ranks.items() if name in COMPLEX else ():
        yield rank.format("pairs"), _complex(lay)
    for (rank, lay), (width, doubled) in product(ranks.items(), widths.items()):
        form = _form(("sin", "cos") if name == "sin" else ("cos", "sin"), lay, doubled)
        if name in COMPLEX:  # Flux has real tables behind the name
            yield f"(cos, sin), real {rank.format(width)}", lambda *made, form=form: (form(*made),)
        elif name in ANGLES:
            yield f"of angles {rank.format(width)}", _form(("angles",), lay, doubled)
        else:
            yield rank.format(width), form
    for rank, lay in ranks.items() if name in ANGLES else ():
        yield f"complex {rank.format('pairs')}", _complex(lay)


def _form(tables: tuple[str, ...], lay: Callable[[Any], Any], doubled: Any) -> Form:
    def made(cos: np.ndarray, sin: np.ndarray, angles: np.ndarray) -> tuple[Any, ...]:
        wide = {name: join(y, y, doubled) if doubled else y for name, y in (("cos", cos), ("sin", sin), ("angles", angles))}
        return tuple(np.ascontiguousarray(lay(wide[name]), np.float32) for name in tables)

    return made


def _complex(lay: Callable[[Any], Any]) -> Form:
    return lambda cos, sin, _: (np.ascontiguousarray(lay(cos + 1j * sin), np.complex64),)


def of_positions(fn: Any, convention: Convention, part: int, made: Callable[[np.ndarray], Any], to: Any) -> Callable[..., Any]:
    """`fn(x, positions)` that returns rotated array number `part`. It raises Misbehaved if that depends on the other array."""
    told = list[str]()

    def rotated(x: Any, other: Any, positions: Any) -> Any:
        tables = [_converted(to, y) for y in made(np.atleast_2d(output(positions)))]
        arrays = {name: x if i == part else other for i, name in enumerate(convention.rotated)}
        rows = dict.fromkeys(convention.indices, positions)
        result = fn(**arrays, **dict(zip(convention.tables, tables, strict=True)), **rows)
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
            raise Misbehaved(told[0])
        return result

    return asked


def _converted(to: Any, y: Any) -> Any:
    """Tables in the library of `to`. Real tables may get another dtype; complex tables of torch and NumPy keep theirs."""
    if isinstance(y, tuple):
        return tuple(to(each) for each in y)
    if y.dtype.kind == "f":
        return to(y)
    library = type(to(np.zeros(1, np.float32))).__module__
    return sys.modules["torch"].from_numpy(y) if library == "torch" else y if library == "numpy" else to(y)


def with_tables(
    fn: Any, convention: Convention, asked: Op, settings: dict[str, Any], axes: str, to: Any
) -> tuple[str, list[Callable[..., Any]], dict[str, str]]:
    """`fn(x, positions)` for each array that `fn` rotates, words for the form of its tables, and its axes and positions.

    The form is the first with which `fn` gives the right answer; else one with which it keeps lengths; else one with which it
    runs. Axes are "bnhd" if it runs with these only; positions are shared if the tables have no batch axis.
    """
    to = to or (lambda array: array)
    known = {name: settings[name] for name in ("dim", "base", "exponent_dim", "magnitude", "sign") if name in settings}

    def tables(positions: np.ndarray) -> list[np.ndarray]:
        theta = settings.get("frequencies")
        theta = theta(int(positions.max()) + 1) if callable(theta) else theta
        rows = (np.arange(positions.max() + 1 + BEHIND)[None] if convention.indices else positions).astype(np.int64)
        make = op("rope.tables").spec
        cos, sin = np.split(make(rows, **known, frequencies=theta), 2, axis=-1)
        one = np.split(make(np.array([1]), **known), 2, axis=-1) if theta is None else None  # its angles, at most 1
        theta = np.arctan2(one[1], one[0])[0] if one else known.get("sign", 1) * theta
        return [cos, sin, rows[..., None] * theta]

    found = list[Any]()
    others = ("bnhd",) if axes == "bhnd" else ()
    tried = ((way, *each) for way in (axes, *others) for each in forms(convention, settings["layout"], way))
    for order, words, form in tried:
        if order != axes and any(each[0] < 2 and each[-1]["axes"] == axes for each in found):
            break
        made = lambda positions, form=form: form(*tables(positions))  # noqa: E731
        parts = [of_positions(fn, convention, part, made, to) for part in range(len(convention.rotated))]
        ways = {"axes": order, "positions": "shared" if "(n," in words else settings.get("positions", "batch")}
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
            if "features" not in words or set(convention.tables) != {"cos", "sin"}:
                return words, parts, ways
            uneven = lambda positions, made=made: [y * _uneven(settings["dim"]) for y in made(positions)]  # noqa: E731
            caller = Caller(of_positions(fn, convention, 0, uneven, to), asked, to, None, *ways.values())
            return words + _read_alone(caller, probe, expected, words, settings), parts, ways
        else:
            ours, theirs = (np.linalg.norm(y, axis=-1) for y in (got, expected))
            found.append((int(not np.allclose(ours, theirs, atol=size)), len(found), words, parts, ways))
    return min(found)[2:]


def _uneven(width: int) -> np.ndarray:
    """A factor for each column of tables of cos and sin: the result shows which columns were read."""
    return np.linspace(1, 2, width, dtype=np.float32)


def _read_alone(caller: Caller, probe: Arguments, right: np.ndarray, words: str, settings: dict[str, Any]) -> str:
    """Words if one column of each pair is read for both features, shown by tables whose columns differ; else ""."""
    width, own = settings["dim"], settings["layout"]
    laid: Any = words.rpartition("layout ")[2].rstrip(")")
    try:
        got = caller(probe)[..., :width]
    except Misbehaved:
        return ""
    pairs = split(_uneven(width), laid) if "_to_" not in own else ()
    for column, name in zip(pairs, ("first", "second"), strict=False):
        if np.allclose(got, right[..., :width] * join(column, column, own), atol=1e-3 * np.abs(right).max()):
            return f", where the {name} {'half' if laid == 'half' else 'of each pair of columns'} alone is read"
    return ""


def of_a_pair(fn: Any) -> list[Callable[..., Any]] | None:
    """`fn(q, k, positions)`, which rotates both, as two functions `fn(x, positions)`; None for any other function."""
    names = [p.name for p in parameters_of(fn) if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    if len(names) != 3 or [name for name in names if "pos" in name] != names[2:]:
        return None
    return [lambda x, positions: fn(x, -x, positions)[0], lambda x, positions: fn(-x, x, positions)[1]]


def of_rows(fn: Any, settings: dict[str, Any], to: Any, to_positions: Any) -> list[Callable[..., Any]]:
    """`fn(x, position_ids)` or `fn(q, k, position_ids)` as functions `fn(x, coordinates)`, for position_ids (axes, batch, n).

    Empty for functions that receive tables, and for those whose last parameter is no position.
    """
    names = [p.name for p in parameters_of(fn) if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    if recognised(fn) or len(names) < 2 or "pos" not in names[-1]:
        return []

    def of_part(part: Callable[..., Any]) -> Callable[..., Any]:
        def turned(x: Any, coordinates: Any) -> Any:
            columns = output(coordinates).T.astype(np.int64)
            rows = np.repeat(columns[:, None], len(x), axis=1)
            return part(x, (to_positions or to or np.asarray)(rows))

        return turned

    return [of_part(part) for part in of_a_pair(fn) or [of_tables(fn, settings, to, [])]]


def of_keyword(fn: Any, told: list[str]) -> Any:
    """`fn(x, *, input_pos)`, which takes positions by keyword only, as `fn(x, positions)`; any other function unchanged."""
    parameters = parameters_of(fn)
    names = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and "pos" in p.name]
    if len(names) != 1 or sum(p.kind is not p.KEYWORD_ONLY for p in parameters) != 1 or names[0] in bound_names(fn):
        return fn
    told.append(f"; positions were passed as {names[0]}=")
    return lambda x, *positions: fn(x, **dict(zip(names, positions, strict=False)))


def of_tables(fn: Any, settings: dict[str, Any], to: Any, told: list[str]) -> Callable[..., Any]:
    """`fn(x, positions)`; if it returns cos and sin, as a module of tables does, x is rotated with them here."""
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


_LENGTH = re.compile(r"len|^n(_?(q|k|kv|query|key|queries|keys|tokens|ctx))?$|^(seq|q|k|kv)_?size$")
_PAST = re.compile(r"past|offset|start|cache|prev")


def of_lengths(fn: Any, asked: Op, said: bool) -> Callable[..., Any] | None:
    """`fn(n_query, n_key)`, `fn(n_query, past)` or `fn(n)` as a function that receives, for each array of positions, only its
    length. None for any other function. `said`: the caller said that it receives no positions."""
    settings = {p.name for p in parameters_of(asked.spec)} - set(asked.given)
    placed = [p for p in parameters_of(fn) if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name not in settings]
    first, second, *_ = [*(p.name for p in placed), "", ""]
    if not parameters_of(fn) or not (said or _LENGTH.search(first)):
        return None
    if asked.given[0] == "positions":
        return fn  # type: ignore[no-any-return]
    if asked.given[:2] != ("query_positions", "key_positions"):
        return None
    both = _LENGTH.search(second) or sum(p.default is p.empty for p in placed) >= len(asked.given)
    if _PAST.search(second):
        made = lambda n_query, n_key, *rest, **named: fn(n_query, n_key - n_query, *rest, **named)  # noqa: E731
    elif both:
        return fn  # type: ignore[no-any-return]
    else:
        made = lambda n_query, n_key, *rest, **named: fn(n_key, *rest, **named)[..., n_key - n_query :, :]  # noqa: E731
    made.__wrapped__ = fn  # type: ignore[attr-defined]
    return made


def of_two_tables(fn: Any, asked: Op, a: Arguments, to: Any, told: list[str]) -> Callable[..., Any]:
    """For rope.tables: `fn(positions)`, or `forward(x, position_ids)` of a module, that returns cos and sin per feature, as a
    function that returns them per pair. Any other function unchanged."""
    if asked.name != "rope.tables":
        return fn
    names = [p.name for p in parameters_of(fn) if p.default is p.empty]
    x = [(to or (lambda array: array))(np.zeros((1, 1), np.float32))] if len(names) == 2 and "pos" in names[1] else []

    def of_pairs(*given: Any, **named: Any) -> Any:
        result = fn(*x, *given, **named)
        wide = isinstance(result, (tuple, list)) and len(result) == 2 and {np.shape(y)[-1:] for y in result} == {(a.dim,)}
        pairs = (slice(a.dim // 2), slice(a.dim // 2, None)), (slice(0, None, 2), slice(1, None, 2))
        for first, second in pairs if wide else ():
            if all(np.array_equal(y[..., first], y[..., second]) for y in map(output, result)):
                told.append("; it returned cos and sin of every feature: one of each pair was compared")
                return tuple(y[..., first] for y in result)
        return result

    of_pairs.__wrapped__ = fn  # type: ignore[attr-defined]
    of_pairs.with_tensors = lambda to: of_two_tables(fn, asked, a, to, told)  # type: ignore[attr-defined]
    return of_pairs


def makes_its_mask(fn: Any, given: list[str], settings: set[str]) -> bool:
    """Whether a function has no parameter for `mask`: none with that name, and no place left after the other arrays."""
    parameters = parameters_of(fn)
    room = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    room = [name for name in room if name in given or name not in settings]
    said = any("mask" in p.name or p.kind is p.VAR_POSITIONAL for p in parameters)
    return bool(parameters) and "mask" in given and not said and len(room) < len(given)


def of_indices(fn: Any, asked: Op, a: Arguments, to: Any, to_positions: Any) -> Callable[..., Any] | None:
    """A `score_mod` or `mask_mod` as a function of query and key positions; None for any other function or op."""
    names = tuple(p.name for p in parameters_of(fn))
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

    modified.with_tensors = lambda to: of_indices(fn, asked, a, to, to_positions)  # type: ignore[attr-defined]
    return modified
