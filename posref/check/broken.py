"""Broken: three wrong implementations for the demonstration. Real code has made each of these mistakes.

They follow the contract of `posref.check.check_rope` with dim=64, base=10000 and layout="half", and return the dtype of x.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from posref.check.tensors import round_to
from posref.rotary import rope as specification

DIM = 64


class Example(NamedTuple):
    """A wrong implementation, and what a first test shows of it."""

    name: str
    story: str
    function: Callable[[np.ndarray, np.ndarray], np.ndarray]


def rope(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Adjacent pairs for weights that expect halves: the first token is right, then nothing is."""
    frequencies = 10000.0 ** (-np.arange(0, 64, 2) / 64)
    angle = positions[:, None, :, None] * frequencies
    cos, sin = np.cos(angle), np.sin(angle)
    a, b = x[..., 0::2], x[..., 1::2]
    return np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape).astype(x.dtype)


def _half(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    cos, sin = specification.tables(positions[:, None], specification.frequencies(DIM))
    return specification.rotate(x, cos, sin, layout="half").astype(x.dtype)


def bfloat16_positions(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Positions cast with the model: 257 becomes 256, and every test below 256 passes."""
    return _half(x, round_to(positions, "bfloat16"))


def one_ahead(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The length of the cache after the step, taken for the position of the new token."""
    length_after = positions + 1
    return _half(x, length_after)


EXAMPLES = (
    Example("other layout", "position 0 is right, everything after it is wrong", rope),
    Example("bfloat16 positions", "all tests with short sequences pass", bfloat16_positions),
    Example("one position ahead in decoding", "norms are right, and so are scores among the decoded", one_ahead),
)
