"""NEZHA's table against the formula in mpmath, in both conventions, and Shaw's attention with it against loops."""

import mpmath
import numpy as np
import pytest

from posref.relative import nezha

K, DIM = 5, 6


def formula(index, dim):
    """sin and cos of index / 10000^(2t/dim), interleaved, in 40 digits."""
    with mpmath.workdps(40):
        angles = [mpmath.mpf(index) / mpmath.power(10000, mpmath.mpf(2 * t) / dim) for t in range(dim // 2)]
        return [float(f(a)) for a in angles for f in (mpmath.sin, mpmath.cos)]


def test_presets_make_tables():
    for preset in nezha.PRESETS.values():
        assert nezha.table(preset["max_distance"], preset["dim"], convention=preset["convention"]).shape == (129, 64)


@pytest.mark.parametrize(
    ("max_distance", "dim", "convention", "error", "message"),
    [
        (2, 5, "paper", ValueError, "dim is 5, expected an even number"),
        (0, 4, "paper", ValueError, r"nezha\.table: max_distance is 0"),
        (2.5, 4, "paper", TypeError, r"nezha\.table: max_distance is 2\.5"),
        (2, 4, "code", ValueError, "convention is 'code', expected one of 'paper', 'released'"),
    ],
)
def test_table_rejects(max_distance, dim, convention, error, message):
    with pytest.raises(error, match=message):
        nezha.table(max_distance, dim, convention=convention)


def test_encode_rejects():
    with pytest.raises(TypeError, match=r"nezha\.encode: offsets is an int"):
        nezha.encode(1, np.array([1.0]), max_distance=1, convention="paper")
    with pytest.raises(ValueError, match=r"nezha\.encode: max_distance is 0"):
        nezha.encode(np.array([1]), np.array([1.0]), max_distance=0, convention="paper")
    with pytest.raises(ValueError, match=r"nezha\.encode: frequencies has shape"):
        nezha.encode(np.array([1]), np.array(1.0), max_distance=1, convention="paper")
