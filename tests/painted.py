"""Numbers for tests."""

import numpy as np


def painted(shape, tag):
    """Multiples of 1/64 below 2 that differ from place to place and from tag to tag."""
    n = np.arange(np.prod(shape))
    return (((7 * n * n + 31 * n + 17 * tag) % 251 - 125) / 64).reshape(shape)
