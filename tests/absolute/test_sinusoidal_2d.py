"""2-D sinusoids: values of the official code, counts with padding."""

import math

import numpy as np
import pytest

from posref.absolute import sinusoidal_2d


def test_an_image_of_padding_has_places_all_the_same():
    counts = sinusoidal_2d.counted(np.zeros((2, 3), bool))
    assert not counts.any()
    assert not sinusoidal_2d.normalized(counts).any()


@pytest.mark.parametrize(("dtype", "bound"), [(np.float16, 2.0**-8), (np.float32, 2.0**-21), (np.int8, 2.0**-49)])
def test_counts_of_few_bits(dtype, bound):
    """10^6 times a count is beyond float16; three roundings of a number below 2 pi."""
    counts = np.array([[[1, 1], [1, 2]], [[2, 1], [100, 2]]], dtype)
    parts = [[[(1, 2), (1, 2)], [(1, 100), (2, 2)]], [[(2, 2), (1, 2)], [(100, 100), (2, 2)]]]
    expected = [[[2 * math.pi * count / (last + 1e-6) for count, last in pair] for pair in row] for row in parts]
    assert np.abs(sinusoidal_2d.normalized(counts) - expected).max() <= bound
