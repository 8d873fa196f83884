"""Masks: what a mask is beside the right one, or beside a known wrong one: which offsets, keys, queries and groups limit it.

A rule is an interval of a quantity that each pair of a query and a key has, such as key minus query. Its ends are solved from
the output, and every bit has to follow. Of several rules the one with the fewest ends is taken.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, combinations
from math import comb, log2
from typing import Any, NamedTuple

import numpy as np

from posref.check.engine import Named, Question
from posref.ops import Arguments, Mistake, NotHere

BITS = 8  # of evidence beyond what a rule is chosen from: noise is named once in 256 times
LEAST = 3  # pairs of a query and a key that are wrong
REMEDY = "Compare the conditions of your mask, and whether they are joined by and or by or."

Quantity = Callable[[Arguments, tuple[int, ...]], Any]


class Rule(NamedTuple):
    """Pairs whose quantities are all within their ends, or all pairs but these; `bits` is what the ends are chosen from."""

    ends: tuple[tuple[str, float, float], ...]
    inside: bool
    bits: float


def hypotheses(question: Question, got: np.ndarray) -> Iterator[Named]:
    """The right mask, or one of a known mistake, or none, that a rule limits or opens: the simplest that gives every bit."""
    if np.asarray(question.op.spec(**question.a)).dtype.kind != "b" or got.shape != question.right.shape or got.ndim < 2:
        return
    seen, right = got != 0, question.right != 0
    if np.count_nonzero((seen != right).reshape(-1, *right.shape[-2:]).any(axis=0)) < LEAST:
        return
    quantities = {words: np.broadcast_to(f(question.a, seen.shape), seen.shape) for words, f in _quantities(question).items()}
    bases = {"": right, "all": np.ones_like(right)}
    bases |= {name: y != 0 for name, y in question.wrong.items() if y.shape == right.shape and np.isin(y, (0, 1)).all()}
    found = [
        (rule.bits + np.log2(len(bases)) * bool(name), name, joined, rule)
        for name, base in bases.items()
        for joined, rule in _rules(base, seen, quantities)
        if _evidence(base != seen) - rule.bits >= BITS
    ]
    found = [each for each in found if _evidence(right != seen) - each[0] >= BITS]
    if found:
        _, name, joined, rule = min(found, key=lambda each: each[0])
        yield _mistake(question, name, joined, rule)


def _evidence(wrong: np.ndarray) -> float:
    """The bits that it takes to say which are wrong, of all."""
    return log2(comb(wrong.size, int(np.count_nonzero(wrong))))


def _quantities(question: Question) -> dict[str, Quantity]:
    """What a rule may be about, by its words."""
    a, shape = question.a, question.right.shape
    n_query, n_key = shape[-2:]
    found: dict[str, Quantity] = {
        "the row of the key less that of the query": lambda a, shape: np.arange(shape[-1]) - np.arange(shape[-2])[:, None],
        "the row of the key": lambda a, shape: np.arange(shape[-1]),
        "the row of the query": lambda a, shape: np.arange(shape[-2])[:, None],
    }
    if {"query_positions", "key_positions"} <= a.keys():
        found |= {
            "key - query": lambda a, shape: _lines(a, "key", shape) - _lines(a, "query", shape),
            "|key - query|": lambda a, shape: np.abs(_lines(a, "key", shape) - _lines(a, "query", shape)),
            "the position of the key": lambda a, shape: _lines(a, "key", shape),
            "the position of the query": lambda a, shape: _lines(a, "query", shape),
        }
        for name in [name for name, width in a.items() if type(width) is int and width > 1]:
            found[f"key // {name} - query // {name}"] = partial(_parts_apart, name=name)
    for name, x in a.items():
        if isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind in "iu":
            if n_query == n_key in (x.size, x.sum()):
                what = name if x.size == n_key else f"the number of the part in {name}"
                found[f"{what} of the key less that of the query"] = partial(_labels_apart, name=name)
                found[f"{what} of the key"] = partial(_labels, name=name)
                found[f"{what} of the query"] = partial(_labels_of_queries, name=name)
                found[f"the row of the key in its part of {name}"] = partial(_within, name=name)
            if len(shape) == 3 and x.size == shape[0] and x.max(initial=0) <= n_key:
                found[f"the row of the key less {name}"] = partial(_beyond, name=name, keys=True)
                found[f"the row of the query less {name}"] = partial(_beyond, name=name, keys=False)
    return found


def _lines(a: Arguments, of: str, shape: tuple[int, ...]) -> Any:
    p = a[f"{of}_positions"]
    p = p.reshape(len(p), *[1] * (len(shape) - p.ndim - 1), p.shape[-1]) if p.ndim > 1 else p
    return p[..., None, :] if of == "key" else p[..., :, None]


def _beyond(a: Arguments, shape: tuple[int, ...], name: str, keys: bool) -> Any:
    """How far each row is behind a number that each text has."""
    places = np.arange(shape[-1]) if keys else np.arange(shape[-2])[:, None]
    return places - a[name][:, None, None]


def _parts_apart(a: Arguments, shape: tuple[int, ...], name: str) -> Any:
    return _lines(a, "key", shape) // a[name] - _lines(a, "query", shape) // a[name]


def _labels(a: Arguments, shape: tuple[int, ...], name: str) -> Any:
    """The number of each key: as given, or which of several lengths it lies in."""
    x = a[name]
    return x if x.size == shape[-1] else np.repeat(np.arange(x.size), x)


def _labels_of_queries(a: Arguments, shape: tuple[int, ...], name: str) -> Any:
    return _labels(a, shape, name)[:, None]


def _labels_apart(a: Arguments, shape: tuple[int, ...], name: str) -> Any:
    return _labels(a, shape, name) - _labels_of_queries(a, shape, name)


def _within(a: Arguments, shape: tuple[int, ...], name: str) -> Any:
    """How many keys before this one, next to it, have its number."""
    labels = _labels(a, shape, name)
    starts = np.flatnonzero(np.diff(labels, prepend=labels[0] - 1))
    return np.arange(labels.size) - np.repeat(starts, np.diff([*starts, labels.size]))


def _rules(base: np.ndarray, seen: np.ndarray, quantities: Mapping[str, Any]) -> Iterator[tuple[str, Rule]]:
    """Rules that make a mask of another one: those of one quantity, then those of two."""
    hidden, opened = base & ~seen, seen & ~base
    if hidden.any() == opened.any():
        return
    sets = chain(((each,) for each in quantities), combinations(quantities, 2))
    number = np.log2(len(quantities))
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
                    bits = sum(each[3] for each in every) + number * len(names) + 2
                    yield joined, Rule(ends, inside, bits)


def _interval(x: np.ndarray, held: np.ndarray, among: np.ndarray) -> tuple[float, float, np.ndarray, float]:
    """The ends within which a quantity is where a rule holds, infinite where nothing lies beyond; and the bits of these."""
    least, most = (float(f(x[held])) if held.any() else 0.0 for f in (np.min, np.max))
    low = least if (x[among] < least).any() else -np.inf
    high = most if (x[among] > most).any() else np.inf
    bits = np.log2(len(np.unique(x[among])) + 1) * np.isfinite([low, high]).sum() if among.any() else 0.0
    return low, high, (low <= x) & (x <= high), float(bits)


def _mistake(question: Question, name: str, joined: str, rule: Rule) -> Named:
    quantities, other = _quantities(question), question.op.mistakes.get(name)

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
    """The words of one interval.

    >>> _said("key - query", -3, np.inf), _said("key - query", -3, 0), _said("the row of the key", 2, 2)
    ('key - query >= -3', '-3 <= key - query <= 0', 'the row of the key = 2')
    """
    if low == high:
        return f"{words} = {low:g}"
    if np.isfinite(low) and np.isfinite(high):
        return f"{low:g} <= {words} <= {high:g}"
    return f"{words} >= {low:g}" if np.isfinite(low) else f"{words} <= {high:g}"
