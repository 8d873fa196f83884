"""What the tests of compiled twins share: random arrays, and whether two arrays have the same bits."""

import numpy as np


def random(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
