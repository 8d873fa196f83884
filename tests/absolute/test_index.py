"""Index encodings against division of exact fractions, and what the body refuses."""

from fractions import Fraction

import numpy as np
import pytest

from posref.absolute import index
from tests.refused import refused


@pytest.mark.parametrize(("denominator", "divisor"), [("length", 7), ("length - 1", 6)])
def test_encode_normalized_is_the_nearest_double_of_the_fraction(denominator, divisor):
    p = index.encode_normalized(np.arange(7), 7, denominator=denominator)
    assert p.shape == (7, 1)
    assert p[:, 0].tolist() == [float(Fraction(i, divisor)) for i in range(7)]


def test_a_single_token_and_none():
    assert index.encode_normalized(np.array([0]), 1, denominator="length").tolist() == [[0.0]]
    assert index.encode_normalized(np.array([], dtype=int), 4, denominator="length").shape == (0, 1)


test_refused = refused(
    vars(index),
    r"""
    encode_normalized(a(0, 5), 5, denominator="length") | run from 0 to 5 and length is 5; they must lie in 0 \.\. 4
    encode_normalized(a(-1, 0), 5, denominator="length") | run from -1 to 0 and length is 5
    encode_normalized(a(0), 1, denominator="length - 1") | length is 1, .* is 0/0; use denominator="length"
    """,
)
