"""Index encodings against division of exact fractions, and every refusal."""

from fractions import Fraction

import numpy as np
import pytest

from posref.absolute import index


@pytest.mark.parametrize(("denominator", "divisor"), [("length", 7), ("length - 1", 6)])
def test_encode_normalized_is_the_nearest_double_of_the_fraction(denominator, divisor):
    p = index.encode_normalized(np.arange(7), 7, denominator=denominator)
    assert p.shape == (7, 1)
    assert p[:, 0].tolist() == [float(Fraction(i, divisor)) for i in range(7)]


def test_dtypes_follow_promotion():
    assert index.encode(np.arange(3, dtype=np.float32)).dtype == np.float32
    assert index.encode_normalized(np.arange(3, dtype=np.float32), 3, denominator="length").dtype == np.float32
    assert index.encode_normalized(np.arange(3, dtype=np.uint8), 3, denominator="length").dtype == np.float64


def test_a_single_token_and_none():
    assert index.encode_normalized(np.array([0]), 1, denominator="length").tolist() == [[0.0]]
    assert index.encode_normalized(np.array([], dtype=int), 4, denominator="length").shape == (0, 1)


@pytest.mark.parametrize(
    ("positions", "length", "denominator", "error", "message"),
    [
        ([0, 1], 2, "length", TypeError, "positions is a list, not an array"),
        (np.array(["a"]), 2, "length", TypeError, "positions has dtype <U1, expected numbers"),
        (np.array([0.0, np.nan]), 2, "length", ValueError, "1 of 2 values that are NaN or infinite"),
        (np.array([0, 5]), 5, "length", ValueError, r"run from 0 to 5 and length is 5; they must lie in 0 \.\. 4"),
        (np.array([-1, 0]), 5, "length", ValueError, "run from -1 to 0 and length is 5"),
        (np.array([0]), 0, "length", ValueError, "length is 0, expected an integer of at least 1"),
        (np.array([0]), 2.5, "length", TypeError, "length is 2.5, expected an integer"),
        (np.array([0]), 1, "length - 1", ValueError, 'length is 1, .* is 0/0; use denominator="length"'),
        (np.array([0]), 3, "n", ValueError, "denominator is 'n', expected one of 'length', 'length - 1'"),
    ],
)
def test_encode_normalized_refuses(positions, length, denominator, error, message):
    with pytest.raises(error, match=message):
        index.encode_normalized(positions, length, denominator=denominator)


def test_encode_refuses():
    with pytest.raises(TypeError, match=r"index\.encode: positions is a range, not an array"):
        index.encode(range(3))
    with pytest.raises(TypeError, match="denominator"):
        index.encode_normalized(np.array([0]), 3)
