"""Probes: inputs from closed formulas, exact in bfloat16, with all extents different and positions that are told apart."""

import numpy as np

BATCH, HEADS = 3, 5  # odd, so that neither is the width nor half of it by accident of a power of two

# 1 gives the frequencies; 255 .. 257 and 2047 .. 2049 are where integers of bfloat16 and float16 end; 65535 is the edge of
# float16; 131073 = 2^17 + 1 is in neither; a million makes the error of float32 angles visible.
LANDMARKS = (
    0,
    1,
    2,
    3,
    5,
    17,
    100,
    255,
    256,
    257,
    511,
    1000,
    2047,
    2049,
    4095,
    4097,
    15962,
    48040,
    65535,
    131073,
    999999,
    1000000,
)


def painted(shape: tuple[int, ...], tag: int) -> np.ndarray:
    """((7 n^2 + 31 n + 17 tag) mod 251 - 125) / 64, without its zeros: exact with 8 bits, |x| < 2.

    >>> painted((4,), 0)
    array([-1.953125, -1.359375, -0.546875,  0.484375])
    """
    n = np.arange(int(np.prod(shape)))
    numbers = (7 * n * n + 31 * n + 17 * tag) % 251 - 125
    return (np.where(numbers == 0, 125, numbers) / 64).reshape(shape)


def ladder(limit: int) -> np.ndarray:
    """0, 1, 2, 4, .. 2^k and 2^k + 1, up to `limit`: phases double from step to step."""
    powers = [2**k for k in range(limit.bit_length()) if 2**k <= limit]
    top = powers[-1] + 1 if powers and powers[-1] + 1 <= limit else limit
    return np.array([0, *powers, top])


def positions(limit: int, *, shared: bool = False) -> np.ndarray:
    """`(batch, n)`, n odd: the ladder from its sixth step on, the landmarks out of order, a run from an odd start.

    No row repeats another or starts at 0, and all positions are at most `limit`; `shared` puts the first row in all rows.
    """
    steps = ladder(limit)
    marks = np.array([*(p for p in LANDMARKS if p < limit), limit])
    length = max(len(steps), len(marks)) | 1
    rng = np.arange(length)
    first = np.roll(np.concatenate([steps, (rng[len(steps) :] * 37 + 3) % (limit + 1)]), -5)
    second = np.resize(marks, length)[(rng * 5 + 2) % length if length % 5 else (rng * 7 + 2) % length]
    third = (1237 + 3 * rng + rng % 2) % (limit + 1)
    return np.stack([first, first, first] if shared else [first, second, third]).astype(np.int64)
