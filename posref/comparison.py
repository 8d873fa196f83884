"""Comparison: all systems in one table. Each cell is measured on one head of attention with this system (`posref.ops.layers`).

Measured with 8 features, 16 trained positions and arbitrary numbers in place of trained ones:

    enters      where position enters: the input, q and k, the scores, or a recurrent state; "+ v": the values change too
    relative    scores and output stay the same when all tokens move by 16 positions (in an image: by two rows)
    direction   among equal words, a key on the left has another score than a key as far away on the right
    unique      among equal words, the keys at all 16 positions have different scores
    beyond      scores past the trained positions: error; clips, all equal; continues, all new; repeats, some occurred before
    cache       a later token changes nothing for the tokens before it, so their keys and values can be cached
    linear      the scores of 96 tokens have a rank below 48: they are products of short vectors, one per token
    stream      relative, with a cache, and no error past the trained positions: old tokens can be dropped forever
    parameters  trained numbers that this head has for positions
    multiplies  extra multiplications per pair of tokens, compared with attention without positions
    memory      extra numbers in memory at the same time, per token, compared with attention without positions
    models      released models that use it, by their names in `posref explain`, and presets of `posref check --preset`
"""

import functools
import operator
from typing import Any, NamedTuple

import numpy as np

from posref import attention, discovery
from posref.ops import layers

DIM, TRAINED = 8, 16
NEAR = 1e-9
Array = Any


class Row(NamedTuple):
    """The row of one system; a cell is "yes", "no", a word or a number, and "?" if the system has no attention head."""

    system: str
    enters: str
    relative: str
    direction: str
    unique: str
    beyond: str
    cache: str
    linear: str
    stream: str
    parameters: str
    multiplies: str
    memory: str
    models: str


def table() -> list[Row]:
    """The rows of all systems."""
    return [row(system.name) for system in discovery.systems()]


@functools.cache
def row(name: str) -> Row:
    """The row of one system.

    >>> row("relative.alibi")[1:9]
    ('scores', 'yes', 'yes', 'yes', 'continues', 'yes', 'yes', 'yes')
    """
    head = layers.layer(name)
    models = ", ".join(discovery.system(name).presets) or "-"
    if head is None:
        return Row._make((name, *["?"] * (len(Row._fields) - 2), models))
    relative, beyond, cache = _relative(head), _beyond(head), _cache(head)
    stream = relative and cache and beyond != "error"
    answers = (relative, _direction(head), _unique(head), beyond, cache, _linear(head), stream)
    cells = [cell if isinstance(cell, str) else "yes" if cell else "no" for cell in answers]
    return Row._make((name, _enters(name, head), *cells, str(_parameters(head)), *_cost(head), models))


def _words(n: int) -> Array:
    return np.sin(7.233 * np.arange(1, n * DIM + 1) ** 2).reshape(n, DIM)


def _weights() -> tuple[Array, Array, Array]:
    q, k, v = np.sin(3.917 * np.arange(1, 3 * DIM * DIM + 1) ** 2).reshape(3, DIM, DIM)
    return q, k, v


def _run(head: Any, x: Array, start: int = 0, trained: int = 128) -> Any:
    return head(layers.Text(x, _weights(), start, trained, []))


def _equal_words(n: int) -> Array:
    return np.broadcast_to(_words(1), (n, DIM)).copy()


def _enters(name: str, head: Any) -> str:
    family = discovery.FAMILIES[name.partition(".")[0]]
    scores, output = _run(head, _words(TRAINED))
    plain = attention.softmax(scores) @ (_words(TRAINED) @ _weights()[2])
    return family if family in ("input", "state") or np.allclose(output, plain) else f"{family} + v"


def _relative(head: Any) -> bool:
    here, there = (_run(head, _words(TRAINED), start) for start in (0, 16))
    return all(np.abs(a - b).max() < NEAR for a, b in zip(here, there, strict=True))


def _direction(head: Any) -> bool:
    scores, _ = _run(head, _equal_words(2 * TRAINED + 1))
    left, right = scores[TRAINED, :TRAINED][::-1], scores[TRAINED, TRAINED + 1 :]
    return bool(np.abs(left - right).max() > NEAR)


def _unique(head: Any) -> bool:
    return _different(_run(head, _equal_words(TRAINED))[0][1]) == TRAINED


def _different(scores: Array) -> int:
    """The number of different values among these numbers."""
    return 1 + int((np.diff(np.sort(scores)) > NEAR).sum())


def _beyond(head: Any) -> str:
    """The cell "beyond": scores of the second token at positions TRAINED to 4 TRAINED - 1, among equal words."""
    try:
        scores = _run(head, _equal_words(4 * TRAINED), trained=TRAINED)[0][1]
    except ValueError:
        return "error"
    new = scores[TRAINED:-TRAINED]
    if _different(new) == 1:
        return "clips"
    return "continues" if _different(scores[:-TRAINED]) == len(scores) - TRAINED else "repeats"


def _cache(head: Any) -> bool:
    before, after = _run(head, _words(TRAINED - 1))[0], _run(head, _words(TRAINED))[0]
    return bool(np.abs(after[:-1, :-1] - before).max() < NEAR)


def _linear(head: Any) -> bool:
    scores, _ = _run(head, _words(12 * DIM))
    return bool(np.linalg.matrix_rank(scores) < 6 * DIM)


def _parameters(head: Any) -> int:
    text = layers.Text(_words(TRAINED), _weights(), 0, TRAINED, [])
    head(text)
    return sum(text.learned)


class Counting:
    """A number that counts multiplications and divisions of its kind, and the most numbers alive at the same time."""

    multiplied = alive = most = 0

    def __init__(self, value: Any):
        self.value = value
        Counting.alive += 1
        Counting.most = max(Counting.most, Counting.alive)

    def __del__(self) -> None:
        Counting.alive -= 1

    @property
    def real(self) -> "Counting":
        return Counting(self.value.real)


def _of(function: Any, *, counted: int = 0) -> Any:
    """A function of numbers as a method of `Counting`, which counts `counted` multiplications per call."""

    def method(*numbers: Any) -> Any:
        Counting.multiplied += counted
        found = function(*(number.value if isinstance(number, Counting) else number for number in numbers))
        return found if isinstance(found, (bool, np.bool_)) else Counting(found)

    return method


def _exchanged(function: Any) -> Any:
    return lambda a, b: function(b, a)


for _name in ("add", "sub", "neg", "abs", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Counting, f"__{_name}__", _of(getattr(operator, _name)))
for _name in ("mul", "truediv", "pow"):
    setattr(Counting, f"__{_name}__", _of(getattr(operator, _name), counted=1))
for _name in ("add", "sub", "mul", "truediv"):
    _reflected = _of(_exchanged(getattr(operator, _name)), counted=int(_name in ("mul", "truediv")))
    setattr(Counting, f"__r{_name}__", _reflected)
for _name in ("cos", "sin", "exp", "log", "tanh", "sqrt", "conjugate"):
    setattr(Counting, _name, _of(getattr(np, _name)))


def _counts(head: Any) -> tuple[int, int]:
    """The multiplications of one run, and the most numbers alive at the same time."""
    x = layers.numbers(_words(TRAINED), Counting)
    weights = tuple(layers.numbers(w, Counting) for w in _weights())
    text = layers.Text(x, weights, 0, TRAINED, [], Counting)  # type: ignore[arg-type]
    Counting.multiplied, Counting.most, before = 0, Counting.alive, Counting.alive
    head(text)
    return Counting.multiplied, Counting.most - before


@functools.cache
def _plain() -> tuple[int, int]:
    return _counts(lambda t: t.attended(*t.projected(t.x)))


def _cost(head: Any) -> tuple[str, str]:
    """Extra multiplications per pair of tokens and extra numbers per token, compared with attention without positions."""
    try:
        ours, plain = _counts(head), _plain()
    except (TypeError, ValueError):
        return "?", "?"
    multiplies, memory = (round((a - b) / n, 1) for a, b, n in zip(ours, plain, (TRAINED**2, TRAINED), strict=True))
    return f"{multiplies:g}", f"{memory:g}"
