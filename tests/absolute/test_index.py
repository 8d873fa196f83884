"""Index encodings against division of exact fractions, and what the body refuses."""

from fractions import Fraction

import numpy as np
import pytest

from posref.absolute import index


@pytest.mark.parametrize(("denominator", "divisor"), [("length", 7), ("length - 1", 6)])
def test_encode_normalized_is_the_nearest_double_of_the_fraction(denominator, divisor):
    p = index.encode_normalized(np.arange(7), 7, denominator=denominator)
    assert p.shape == (7, 1)
    assert p[:, 0].tolist() == [float(Fraction(i, divisor)) for i in range(7)]


def test_a_single_token_and_none():
    assert index.encode_normalized(np.array([0]), 1, denominator="length").tolist() == [[0.0]]
    assert index.encode_normalized(np.array([], dtype=int), 4, denominator="length").shape == (0, 1)


@pytest.mark.parametrize(
    ("positions", "length", "denominator", "error", "message"),
    [
        (np.array([0, 5]), 5, "length", ValueError, r"run from 0 to 5 and length is 5; they must lie in 0 \.\. 4"),
        (np.array([-1, 0]), 5, "length", ValueError, "run from -1 to 0 and length is 5"),
        (np.array([0]), 1, "length - 1", ValueError, 'length is 1, .* is 0/0; use denominator="length"'),
    ],
)
def test_encode_normalized_refuses(positions, length, denominator, error, message):
    with pytest.raises(error, match=message):
        index.encode_normalized(positions, length, denominator=denominator)
