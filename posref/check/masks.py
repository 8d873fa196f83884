"""Masks: the rule by which a mask differs from the right one, or from a known wrong one, in offsets, keys, queries or groups.

A rule is an interval of a quantity that each pair of a query and a key has, such as key minus query. Its ends are solved from
the output, and every element has to agree. Of several rules the simplest is taken.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import chain, combinations, product
from math import comb, log2
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from posref.check.engine import Named, Question
from posref.check.parts import as_given
from posref.ops import Arguments, Mistake, NotHere
from posref.ops.common import count

BITS = 8  # of evidence beyond what a rule is chosen from: noise is named once in 256 times
LEAST = 3  # pairs of a query and a key that are wrong
COMPARED = {np.less: "<", np.less_equal: "<=", np.greater: ">", np.greater_equal: ">=", np.equal: "=="}
COMPUTED = {np.add: "+", np.subtract: "-", np.multiply: "*", np.floor_divide: "//", np.remainder: "%"}
POSITIONS = "query_positions", "key_positions"
SIZES = tuple(2**k for k in range(1, 8))  # of chunks in which a text may be read, in tokens
REMEDY = "Compare the conditions of your mask, and whether they are joined by and or by or."
IN_ALL = "Read positions in every comparison of the mask; rows are positions only where a text begins at row 0 and has no gaps."

Quantity = Callable[[Arguments, tuple[int, ...]], Any]


class _Traced(np.ndarray):
    """Positions that record, in words, every comparison made with them; `answers` replaces the results of some comparisons."""

    words: str
    kept: list[tuple[str, Any]]
    answers: Mapping[int, Any]

    def __array_finalize__(self, other: Any) -> None:
        self.words, self.kept = getattr(other, "words", ""), getattr(other, "kept", [])
        self.answers = getattr(other, "answers", {})

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **more: Any) -> Any:
        result = getattr(ufunc, method)(*(np.asarray(x) for x in given), **more)
        words = [getattr(x, "words", str(x)) for x in given]
        if ufunc in COMPARED and np.ndim(result) > 1:
            self.kept.append((f" {COMPARED[ufunc]} ".join(words), result))
            return self.answers.get(len(self.kept) - 1, result)
        if np.ndim(result) == 0 or result.dtype == bool:
            return result
        words = [f"({each})" if " " in each and ufunc in COMPUTED else each for each in words]
        result = result.view(_Traced)
        result.kept, result.answers = self.kept, self.answers
        result.words = f" {COMPUTED[ufunc]} ".join(words) if ufunc in COMPUTED else f"{ufunc.__name__}({', '.join(words)})"
        return result


class Rule(NamedTuple):
    """The pairs whose quantities are all within their ends, or all other pairs; `bits` is the information in these ends."""

    ends: tuple[tuple[str, float, float], ...]
    inside: bool
    bits: float


def hypotheses(question: Question, got: np.ndarray) -> Iterator[Named]:
    """Row numbers read as positions in some comparisons; else the simplest rule that gives every element: a limit or an
    extension of the right mask, of the mask of a known mistake, or of no mask."""
    if question.kind != "b" or got.shape != question.right.shape or got.ndim < 2 or not np.isin(got, (0, 1)).all():
        return
    found = _rows_for_positions(question, got) or _groups_joined(question, got)
    yield from found or ranked(question, got)[:1]


def _groups_joined(question: Question, got: np.ndarray) -> list[Named]:
    """Groups that see themselves alone in the right mask, of which some see each other, as where they have one number."""
    right, seen = question.right != 0, got != 0
    if right.ndim != 2 or len(right) != right.shape[1] or not right.diagonal().all() or (right & ~seen).any():
        return []
    ours, theirs = right.argmax(axis=1), seen.argmax(axis=1)  # the first row of each group
    if any((y != (first[:, None] == first)).any() for y, first in ((right, ours), (seen, theirs))):
        return []
    groups = {int(first): np.unique(ours[theirs == first]) for first in np.unique(theirs)}
    sizes = len(np.unique(ours))
    if _evidence(right != seen) - sizes * log2(sizes) < BITS:
        return []
    joined = "; ".join(" and ".join(map(str, each)) for each in groups.values() if len(each) > 1)
    bug = f"the groups that begin at rows {joined} see each other, as where two groups have one number"
    return [("groups_joined", Mistake(as_given(got), bug, remedy="Give each group a number of its own.", kind="mask rule"))]


def ranked(question: Question, got: np.ndarray) -> list[Named]:
    """All rules that give every element, the simplest first."""
    seen, right = got != 0, question.right != 0
    if np.count_nonzero((seen != right).reshape(-1, *right.shape[-2:]).any(axis=0)) < LEAST:
        return []
    usual, others = _quantities(question), _of_chunks(question)
    quantities = {words: np.broadcast_to(f(question.a, seen.shape), seen.shape) for words, f in (usual | others).items()}
    number = dict.fromkeys(usual, log2(len(usual)) + 0.5) | dict.fromkeys(others, log2(len(others) + 1) + 2)  # bits of a choice
    bases = {"": right, "all": np.ones_like(right)}
    bases |= {name: y != 0 for name, y in question.wrong.items() if y.shape == right.shape and np.isin(y, (0, 1)).all()}
    found = [
        (rule.bits + np.log2(len(bases)) * bool(name), name, joined, rule)
        for name, base in bases.items()
        for joined, rule in _rules(base, seen, quantities, number)
        if _evidence(base != seen) - rule.bits >= BITS
    ]
    found = _of_one_size([each for each in found if _evidence(right != seen) - each[0] >= BITS], others)
    return [_mistake(question, name, joined, rule) for _, name, joined, rule in sorted(found, key=lambda each: each[0])]


def _rows_for_positions(question: Question, got: np.ndarray) -> list[Named]:
    """Sets of comparisons of the specification, not all, that give the output if they read row numbers."""
    a, wrong = question.a, got != question.right
    if not set(POSITIONS) <= a.keys() or np.count_nonzero(wrong) < LEAST:
        return []
    compared = [words for words, _ in _compared(question.op.spec, a)[1]]
    some = [each for n in range(1, len(compared)) for each in combinations(range(len(compared)), n)]
    if not some or _evidence(wrong) < log2(len(some) * len(ROWS)) + BITS:
        return []
    found = []
    for (who, rows), places in product(ROWS.items(), some):
        said = " and in ".join(compared[place] for place in places)
        bug = f"the row numbers of {who} stand in the place of their positions in {said}, and not elsewhere"
        name = f"rows_of_{who.replace(' ', '_')}_in_comparison_{'_'.join(str(place + 1) for place in places)}"
        mistake = Mistake(partial(_of_rows, rows=rows, places=places), bug, remedy=IN_ALL, kind="mask rule")
        answer = question.answer(name, mistake.wrong)
        if answer is not None and np.array_equal(answer, got):
            found.append((name, mistake))
    return found


def _of_rows(f: Any, a: Arguments, *, rows: Any, places: tuple[int, ...]) -> Any:
    of_rows = [result for _, result in _compared(f, a | rows(a))[1]]
    return _compared(f, a, {place: of_rows[place] for place in places})[0]


def _compared(f: Any, a: Arguments, answers: Mapping[int, Any] = MappingProxyType({})) -> tuple[Any, list[tuple[str, Any]]]:
    """A mask, and the comparisons that it is made of; `answers` replaces the results of some."""
    traced, kept = {}, list[tuple[str, Any]]()
    for name in POSITIONS:
        traced[name] = np.asarray(a[name]).view(_Traced)
        traced[name].words, traced[name].kept, traced[name].answers = name.partition("_")[0], kept, answers
    return f(**a | traced), kept


def _slots(a: Arguments) -> Any:
    """The row of each query among the keys, if the last query is at the last key."""
    return count(a.query_positions) + a.key_positions.shape[-1] - a.query_positions.shape[-1]


ROWS: dict[str, Callable[[Arguments], dict[str, Any]]] = {
    "queries": lambda a: {"query_positions": count(a.query_positions)},
    "queries among the keys": lambda a: {"query_positions": _slots(a)},
    "keys": lambda a: {"key_positions": count(a.key_positions)},
    "queries and keys": lambda a: {name: count(a[name]) for name in POSITIONS},
    "queries among the keys and of keys": lambda a: {"query_positions": _slots(a), "key_positions": count(a.key_positions)},
}


def _of_one_size(found: list[Any], others: Collection[str]) -> list[Any]:
    """The rules, without those about chunks if two chunk sizes fit equally well, since the size is then unknown."""
    least = min((bits for bits, *_ in found), default=0.0)
    near = {words for bits, *_, rule in found if bits < least + 1 for words, *_ in rule.ends}
    chunks = {words for words in near if "//" in words and words in others}
    return [each for each in found if len(chunks) < 2 or not chunks & {words for words, *_ in each[-1].ends}]


def _evidence(wrong: np.ndarray) -> float:
    """The number of bits that it takes to say which elements are wrong."""
    return log2(comb(wrong.size, int(np.count_nonzero(wrong))))


def _quantities(question: Question) -> dict[str, Quantity]:
    """The quantities that a rule may limit, by their words."""
    a, shape = question.a, question.right.shape
    n_query, n_key = shape[-2:]
    sides = "{} of the key less that of the query", "{} of the key", "{} of the query"
    found = dict(zip([side.format("the row") for side in sides], _sides(_rows), strict=True))
    if {"query_positions", "key_positions"} <= a.keys():
        apart, key, query = _sides(_lines)
        found |= {"key - query": apart, "|key - query|": lambda a, shape: np.abs(apart(a, shape))}
        found |= {"the position of the key": key, "the position of the query": query}
        for name in [name for name, width in a.items() if type(width) is int and width > 1]:
            found[f"key // {name} - query // {name}"] = partial(_parts_apart, _lines, name)
    for name, x in a.items():
        if isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind in "iu":
            if n_query == n_key in (x.size, x.sum()):
                what = name if x.size == n_key else f"the number of the part in {name}"
                found |= zip([side.format(what) for side in sides], _sides(partial(_labels, name)), strict=True)
                found[f"the row of the key in its part of {name}"] = partial(_within, name)
            if len(shape) == 3 and x.size == shape[0] and x.max(initial=0) <= n_key:
                for side, of in enumerate(("key", "query")):
                    found[f"the row of the {of} less {name}"] = partial(_beyond, name, side)
    return found


def _of_chunks(question: Question) -> dict[str, Quantity]:
    """Quantities of a text that is read in chunks: how many chunks lie between, and offsets from the ends of this step."""
    a, n = question.a, max(question.right.shape[-2:])
    widths = {name: width for name, width in a.items() if type(width) is int and 1 < width < n}
    sizes = (*widths, *(size for size in SIZES if size < n and size not in widths.values()))
    found: dict[str, Quantity] = {
        f"the row of the key // {size} less that of the query // {size}": partial(_parts_apart, _rows, size) for size in sizes
    }
    if {"query_positions", "key_positions"} <= a.keys():
        found |= {f"key // {size} - query // {size}": partial(_parts_apart, _lines, size) for size in sizes if size in SIZES}
        found |= {f"key - {each} query": partial(_from_one_query, at) for each, at in (("first", 0), ("last", -1))}
    return found


def _sides(of: Callable[[Arguments, tuple[int, ...]], tuple[Any, Any]]) -> tuple[Quantity, Quantity, Quantity]:
    """Three quantities: key minus query, key, and query."""
    return lambda *x: np.subtract(*of(*x)), lambda *x: of(*x)[0], lambda *x: of(*x)[1]


def _rows(a: Arguments, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Row numbers of keys and of queries."""
    return np.arange(shape[-1]), np.arange(shape[-2])[:, None]


def _lines(a: Arguments, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Positions of keys and of queries."""
    key, query = (
        p.reshape(len(p), *[1] * (len(shape) - p.ndim - 1), p.shape[-1]) if p.ndim > 1 else p
        for p in (a.key_positions, a.query_positions)
    )
    return key[..., None, :], query[..., :, None]


def _labels(name: str, a: Arguments, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The number of each key and of each query: the given number, or the number of the part that holds the key or query."""
    x = a[name] if a[name].size == shape[-1] else np.repeat(np.arange(a[name].size), a[name])
    return x, x[:, None]


def _beyond(name: str, side: int, a: Arguments, shape: tuple[int, ...]) -> Any:
    """How far each row, of keys or of queries, is beyond the number in `name` of its text."""
    return _rows(a, shape)[side] - a[name][:, None, None]


def _parts_apart(of: Any, size: Any, a: Arguments, shape: tuple[int, ...]) -> Any:
    """How many parts lie between query and key; `size` is the size of a part, or the setting with this size."""
    key, query = of(a, shape)
    return key // a.get(size, size) - query // a.get(size, size)


def _from_one_query(at: int, a: Arguments, shape: tuple[int, ...]) -> Any:
    """How far each key is from the first or last query of its text in this step."""
    key, query = _lines(a, shape)
    return key - query[..., at, None, :]


def _within(name: str, a: Arguments, shape: tuple[int, ...]) -> Any:
    """How many keys directly before this one have the same number."""
    labels, _ = _labels(name, a, shape)
    starts = np.flatnonzero(np.diff(labels, prepend=labels[0] - 1))
    return np.arange(labels.size) - np.repeat(starts, np.diff([*starts, labels.size]))


def _rules(
    base: np.ndarray, seen: np.ndarray, quantities: Mapping[str, Any], number: Mapping[str, float]
) -> Iterator[tuple[str, Rule]]:
    """Rules that turn the mask `base` into `seen`: with one quantity, then with two."""
    hidden, opened = base & ~seen, seen & ~base
    if hidden.any() == opened.any():
        return
    sets = chain(((each,) for each in quantities), combinations(quantities, 2))
    intervals = {}  # for the pairs that a rule has to hold, within what it chooses from
    ways = (("or", opened, ~base, True),) if opened.any() else (("and", seen, base, True), ("and", hidden, base, False))
    for way in ways:
        _, held, among, _ = way
        intervals[way[0], way[3]] = {words: _interval(x, held, among) for words, x in quantities.items()}
    for names in sets:
        for joined, held, among, inside in ways:
            every = [intervals[joined, inside][name] for name in names]
            if all(np.isfinite(each[:2]).any() for each in every):
                region = np.logical_and.reduce([each[2] for each in every])
                if not (region & among & ~held).any():
                    ends = tuple((name, low, high) for name, (low, high, *_) in zip(names, every, strict=True))
                    bits = sum(each[3] + number[name] for name, each in zip(names, every, strict=True)) + 2
                    yield joined, Rule(ends, inside, bits)


def _interval(x: np.ndarray, held: np.ndarray, among: np.ndarray) -> tuple[float, float, np.ndarray, float]:
    """The interval of a quantity in which a rule holds, infinite if nothing lies beyond; its region, and the bits of its
    ends."""
    least, most = (float(f(x[held])) if held.any() else 0.0 for f in (np.min, np.max))
    low = least if (x[among] < least).any() else -np.inf
    high = most if (x[among] > most).any() else np.inf
    bits = np.log2(len(np.unique(x[among])) + 1) * np.isfinite([low, high]).sum() if among.any() else 0.0
    return low, high, (low <= x) & (x <= high), float(bits)


def _mistake(question: Question, name: str, joined: str, rule: Rule) -> Named:
    quantities, other = _quantities(question) | _of_chunks(question), question.op.mistakes.get(name)

    def wrong(f: Any, a: Arguments) -> Any:
        right = f(**a)
        base = np.ones_like(right) if name == "all" else right if other is None else np.asarray(other.wrong(f, a))
        if not {each[0] for each in rule.ends} <= quantities.keys():
            raise NotHere
        region = np.ones(base.shape, dtype=bool)
        for words, low, high in rule.ends:
            x = quantities[words](a, base.shape)
            region = region & (low <= x) & (x <= high)
        region = region if rule.inside else ~region
        return base & region if joined == "and" else base | region

    said = " and ".join(_said(*each) for each in rule.ends)
    base = "the right mask" if not name else f"the mask of {name} ({other.bug})" if other else ""
    whole = f"{base}, {joined} {said}" if base else said
    if not rule.inside:
        whole = f"{base or 'all'}, but not {said}"
    called = f"{name}_and_" * bool(other) + ("opened" if joined == "or" else "limited")
    return f"mask_{called}_by_another_rule", Mistake(wrong, f"a key is seen where: {whole}", remedy=REMEDY, kind="mask rule")


def _said(words: str, low: float, high: float) -> str:
    """The words for one interval.

    >>> _said("key - query", -3, np.inf), _said("key - query", -3, 0), _said("the row of the key", 2, 2)
    ('key - query >= -3', '-3 <= key - query <= 0', 'the row of the key = 2')
    """
    if low == high:
        return f"{words} = {low:g}"
    if np.isfinite(low) and np.isfinite(high):
        return f"{low:g} <= {words} <= {high:g}"
    return f"{words} >= {low:g}" if np.isfinite(low) else f"{words} <= {high:g}"
