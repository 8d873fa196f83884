"""Wrong positions: ignored, shifted, shared, clamped, wrapped, scaled, taken along another axis."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from posref.check.rotation import Positions
from posref.check.run import Change, Hypothesis

LENGTHS = tuple(2**k for k in range(4, 20))
FACTORS = (2.0, 4.0, 8.0, 16.0, 32.0, 0.5, 0.25, 0.125)
OFFSETS = (1, -1, 2, -2)


def positions_change(mapped: Positions) -> Change:
    """Apply a map to the positions after those already there."""
    return lambda asked, r: replace(r, positions=(*r.positions, mapped))


def clamped(limit: int) -> Hypothesis:
    """Positions beyond a table use its last row."""
    return Hypothesis(
        f"positions clamped at {limit}",
        "positions",
        f"with positions clamped at {limit}",
        f"Make the table longer than {limit + 1} rows, or raise for positions beyond it.",
        positions_change(lambda p, shape: np.minimum(p, limit)),
    )


def modulo(length: int) -> Hypothesis:
    """Positions wrap around."""
    return Hypothesis(
        f"positions modulo {length}",
        "positions",
        f"with positions modulo {length}",
        f"Do not wrap positions; make the table longer than {length} rows.",
        positions_change(lambda p, shape: p % length),
    )


def offset(number: float) -> Hypothesis:
    """Positions shifted by a constant."""
    remedies = {1: "Count positions from 0", -1: "Count positions from 0, and advance the cache length after the step"}
    return Hypothesis(
        f"positions {number:+g}",
        "positions",
        f"with every position {'too large' if number > 0 else 'too small'} by {abs(number):g}",
        f"{remedies.get(int(number), 'Use the positions as they are given')}. Scores hide it if q and k share it.",
        positions_change(lambda p, shape: p + number),
    )


def scaled(factor: float) -> Hypothesis:
    """Positions, or frequencies, times a factor."""
    twice = ("the rotation applied twice",) if factor == 2 else ()
    return Hypothesis(
        f"positions times {factor:g}",
        "positions",
        f"with positions times {factor:g}",
        f"Remove the linear scaling (factor {1 / factor:g}), or ask for it."
        if factor != 2
        else "Rotate once, at the positions as they are.",
        positions_change(lambda p, shape: p * factor),
        (f"frequencies times {factor:g}", *twice),
    )


def wrong_positions() -> Iterator[Hypothesis]:
    """Every vector turns rightly, at a position that is not its own."""

    def at(name: str, sentence: str, remedy: str, mapped: Positions, *same_as: str, axis: int | None = None) -> Hypothesis:
        return Hypothesis(name, "positions", sentence, remedy, positions_change(mapped), same_as, axis)

    yield at(
        "no rotation",
        "at position 0 everywhere: nothing turns",
        "Pass the positions on, and check that the rotation is applied.",
        lambda p, shape: np.zeros_like(p),
        "the rotation left out",
        "all positions zero",
    )
    yield at(
        "positions ignored",
        "at positions 0, 1, 2, .. along the sequence: the given positions are ignored",
        "Index the tables with the positions instead of counting rows.",
        lambda p, shape: np.arange(shape[-2])[None, None],
    )
    yield at(
        "only the first position used",
        "at positions that count on from the first one of each row",
        "Use every position; kernels that take one offset cannot serve gaps, packing or eviction.",
        lambda p, shape: p[..., :1] + np.arange(shape[-2]),
        axis=-2,
    )
    yield at(
        "only the first position of the batch used",
        "at positions that count on from the first position of the first row, in all rows",
        "Use every position of every row.",
        lambda p, shape: p[:1, :, :1] + np.arange(shape[-2]),
        axis=0,
    )
    yield at(
        "positions shared across the batch",
        "with the positions of the first row of the batch in all rows",
        "Give the tables a batch axis: (batch, 1, n, ..) for x of shape (batch, heads, n, dim).",
        lambda p, shape: p[:1],
        axis=0,
    )
    yield at(
        "only the first row of the batch rotated",
        "in the first row of the batch only: the other rows pass as they are",
        "Launch the kernel for every row of the batch.",
        lambda p, shape: p * (np.arange(shape[0]) == 0)[:, None, None],
        axis=0,
    )
    yield at(
        "positions reversed",
        "with the positions of the sequence in reversed order",
        "Do not flip the sequence axis of the positions.",
        lambda p, shape: p[..., ::-1],
        axis=-2,
    )
    yield at(
        "positions along the heads",
        "with the positions running along the heads instead of the sequence",
        "Axis -2 of x is the sequence: transpose (batch, n, heads, dim) first, or insert the missing axis.",
        lambda p, shape: np.swapaxes(p[..., np.arange(shape[-3]) % p.shape[-1]], -1, -2),
        axis=-3,
    )
    yield at(
        "head number as position",
        "with the number of the head as the position",
        "Axis -2 of x is the sequence; shape[1] is the number of heads here.",
        lambda p, shape: np.arange(shape[-3])[None, :, None],
        axis=-3,
    )
    yield at(
        "positions repeated for flattened heads",
        "with positions tiled where rows and heads are flattened to one axis",
        "Use repeat_interleave (or an axis for the heads): row i of n heads rows has position i // heads.",
        _tiled_over_heads,
        axis=-3,
    )
    yield at(
        "batch number as position",
        "with the number of the batch row as the position",
        "Axis -2 of x is the sequence.",
        lambda p, shape: np.arange(shape[0])[:, None, None],
        axis=0,
    )
    yield at(
        "positions -1, not below 0",
        "with every position too small by 1, and 0 kept",
        "Count positions from 0, and advance the cache length after the step.",
        lambda p, shape: np.maximum(p - 1, 0),
    )
    yield at(
        "positions in int16",
        "with positions that wrap around as 16-bit integers",
        "Hold positions in int32 or int64.",
        lambda p, shape: (p + 2**15) % 2**16 - 2**15,
    )
    yield from (offset(number) for number in OFFSETS)
    yield from (clamped(length - 1) for length in LENGTHS)
    yield from (modulo(length) for length in LENGTHS)
    yield from (scaled(factor) for factor in FACTORS)


def _tiled_over_heads(p: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Row n of head h is entry n heads + h of the flattened axis, and reads the positions modulo their number."""
    heads, rows = shape[-3], shape[-2]
    return np.broadcast_to(p, (*p.shape[:-2], 1, rows))[..., 0, (np.arange(rows) * heads + np.arange(heads)[:, None]) % rows]
