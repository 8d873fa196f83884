"""Short convolution: a text that comes token by token, and caches of one row more."""

import numpy as np

from posref.state import convolution


def test_a_cache_of_width_rows():
    """A cache of `width` rows, as transformers keeps it, is read from its second row on."""
    rng = np.random.default_rng(0)
    x, kernel = rng.normal(size=(9, 3)), rng.normal(size=(3, 4))
    whole, cache = convolution.causal(x, kernel).output, np.zeros((4, 3))
    for i in range(9):
        got = convolution.causal(x[i : i + 1], kernel, state=cache[1:])
        np.testing.assert_allclose(
            got.output[0], whole[i], rtol=0, atol=8 * 2**-53 * 4 * np.abs(x).max() * np.abs(kernel).max()
        )
        cache = np.concatenate([cache, x[i : i + 1]])[1:]
