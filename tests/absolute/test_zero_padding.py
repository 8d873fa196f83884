"""Convolution against a scalar loop, and what the body refuses."""

import numpy as np
import pytest

from posref.absolute import zero_padding
from tests.refused import refused

RNG = np.random.default_rng(0)


def looped(x, kernel, padding):
    """Entry by entry from the definition, in Python integers."""
    n, width, c_in, c_out = len(x), len(kernel), len(kernel[0]), len(kernel[0][0])
    c = 0 if padding == "valid" else (width - 1) // 2
    y = []
    for i in range(n - width + 1 if padding == "valid" else n):
        row = [0] * c_out
        for k in range(width):
            j = i + k - c
            if padding == "circular":
                j %= n
            if 0 <= j < n:
                row = [row[b] + sum(x[j][a] * kernel[k][a][b] for a in range(c_in)) for b in range(c_out)]
        y.append(row)
    return y


@pytest.mark.parametrize("width", [4, 7, 9])
def test_kernels_wider_than_the_sequence(width):
    x, kernel = RNG.integers(-9, 10, size=(3, 2)), RNG.integers(-9, 10, size=(width, 2, 1))
    for padding in ("zero", "circular"):
        assert zero_padding.convolve(x, kernel, padding=padding).tolist() == looped(x.tolist(), kernel.tolist(), padding)


test_refused = refused(
    vars(zero_padding),
    r"""
    convolve(np.ones((3, 2)), np.ones((4, 2, 1)), padding="valid") | convolve: x has 3 entries, expected at least 4
    convolve(np.ones((0, 2)), np.ones((3, 2, 1)), padding="circular") | convolve: x has 0 entries, expected at least 1
    """,
)
