"""Layers: every system in one attention head, on the same words and weights, so that systems can be compared.

`_head(t)` in a system's ops file takes a `Text` and returns the scores `(n, n)` before the softmax, and the output `(n, d)`.
Trained parameters come from the text, which counts them. A file whose weights are not a softmax of scores also has
`_weights(t)`, and a file whose system is defined for causal attention only has `CAUSAL = True`.
"""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from posref import attention, offsets, pairing
from posref.rotary import rope

Array = Any
Scored = tuple[Array, Array]
LAYOUT: pairing.Layout = "interleaved"


class Text(NamedTuple):
    """Words `x (n, d)` at positions from `start` on, the three projections, and the number of trained positions."""

    x: Array
    weights: tuple[Array, Array, Array]
    start: int
    trained: int
    learned: list[int]  # the sizes of what was asked for
    number: Any = float  # what trained numbers are made of

    @property
    def positions(self) -> Array:
        return self.start + np.arange(len(self.x))

    @property
    def offsets(self) -> Array:
        return offsets.offsets(self.positions, self.positions)

    @property
    def dim(self) -> int:
        return self.x.shape[-1]

    @property
    def scale(self) -> float:
        return self.dim**-0.5

    def parameter(self, *shape: int) -> Array:
        """Trained numbers of this shape: between -1 and 1, in no order, the same in every text."""
        first, count = sum(self.learned) + 1, int(np.prod(shape))
        self.learned.append(count)
        values = np.sin(12.9898 * np.arange(first, first + count) ** 2)
        return numbers(values.reshape(shape), self.number)

    def projected(self, x: Array) -> Any:
        """The queries, keys and values of x."""
        return tuple(x @ w for w in self.weights)

    def added(self, p: Array) -> Scored:
        """Attention on words to which p is added."""
        return self.attended(*self.projected(self.x + p))

    def turned(self, frequencies: Array) -> Scored:
        """Attention with rotated queries and keys."""
        q, k, v = self.projected(self.x)
        cos, sin = rope.tables(self.positions, frequencies)
        q, k = (rope.rotate(y, cos, sin, layout=LAYOUT) for y in (q, k))
        return self.attended(q, k, v)

    def attended(self, q: Array, k: Array, v: Array, bias: Array = None) -> Scored:
        """Attention with the scale 1/sqrt(d)."""
        return self.scored(attention.scores(q, k, scale=self.scale, bias=bias), v)

    def scored(self, scores: Array, v: Array) -> Scored:
        """Attention with these scores."""
        return scores, attention.softmax(scores) @ v


def numbers(values: Array, kind: Any) -> Array:
    """The same array, with its numbers of this kind."""
    if kind is float:
        return values
    made = np.empty(values.shape, dtype=object)
    made.ravel()[:] = [kind(value) for value in values.ravel()]
    return made


def layer(name: str) -> Callable[[Text], Scored] | None:
    """The attention head of a system such as "rotary.rope"; None if its ops file has none.

    >>> scores, output = layer("rotary.rope")(Text(np.ones((2, 4)), 3 * (np.eye(4),), 0, 2, []))
    >>> scores.round(3)
    array([[2.  , 1.54],
           [1.54, 2.  ]])
    """
    return getattr(_module(name), "_head", None)


def weights(name: str, text: Text) -> Array:
    """The weights `(n, n)` of a system's attention head.

    >>> weights("relative.alibi", Text(np.ones((2, 4)), 3 * (np.eye(4),), 0, 2, [])).round(3)
    array([[1.   , 0.   ],
           [0.378, 0.622]])
    """
    module = _module(name)
    if hasattr(module, "_weights"):
        return module._weights(text)
    mask = np.tri(len(text.x), dtype=bool) if getattr(module, "CAUSAL", False) else None
    return attention.softmax(module._head(text)[0], mask)


def _module(name: str) -> Any:
    return importlib.import_module(f"posref.ops.{name.rpartition('.')[2]}")
