"""The exp of the streaming kernel on float32: every number of its range, against exp in float64."""

import numba
import numpy as np
import pytest

from posref.fast import attention as fast

FIRST, LAST = 0x80000000, 0xC2AE0000  # the bits of -0.0 and of -87.0; between them the numbers descend
CHUNK = 1 << 20
U = 2.0**-24


@numba.njit(nogil=True)
def applied(x, out):
    for i in range(len(x)):
        out[i] = fast._exp(x[i])


def worst(stride):
    """How many numbers, and the largest relative error, in u."""
    count, found, out = 0, 0.0, np.empty(CHUNK, np.float32)
    for first in range(FIRST, LAST + 1, CHUNK * stride):
        x = np.arange(first, min(LAST + 1, first + CHUNK * stride), stride, dtype=np.uint32).view(np.float32)
        y, exact = out[: len(x)], np.exp(x.astype(np.float64))
        applied(x, y)
        count, found = count + len(x), max(found, float((abs(y - exact) / exact).max()) / U)
    return count, found


def test_some_numbers():
    assert 1 < worst(4099)[1] < 2


@pytest.mark.slow
def test_every_number():
    count, found = worst(1)
    assert count == 1118699521
    assert found < 2


def test_ends():
    x, y = (
        np.array([-0.0, 0.0, -87.0, np.nextafter(np.float32(-87), np.float32(-100)), -np.inf], np.float32),
        np.empty(5, np.float32),
    )
    applied(x, y)
    assert y.tolist() == [1.0, 1.0, y[2], 0.0, 0.0]
    assert y[2] > 0
