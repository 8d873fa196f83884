"""Resizing: tables of one row, conventions that differ, correct float32."""

import numpy as np
import pytest

from posref.absolute import resizing
from posref.check import check
from tests.painted import painted


@pytest.mark.parametrize("convention", resizing.CONVENTIONS)
def test_one_row_is_repeated_and_one_place_is_read(convention):
    table = painted((1, 1, 3), 6)
    assert np.abs(resizing.resize(table, 3, 2, convention=convention) - table).max() <= 2.0**-45
    assert resizing.weights(5, 1, convention=convention).shape == (1, 5)


# Another program's float32


def single(length, new, convention):
    """The weights in float32 throughout, the cubic by Horner's rule."""
    f = np.float32
    a = f(-0.5 if convention == "timm" else -0.75)
    place = (2 * np.arange(new)[:, None] + 1).astype(f) * f(length) / f(2 * new) - f(0.5)

    def cubic(x):
        near, far = ((a + 2) * x - (a + 3)) * x * x + 1, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, f(0)))

    if convention == "timm":
        kernel = cubic(np.abs((place - np.arange(length, dtype=f)) / f(max(length / new, 1))))
        return kernel / kernel.sum(axis=-1, keepdims=True)
    beyond = np.arange(-2, length + 2)
    rows = np.clip(beyond, 0, length - 1)[:, None] == np.arange(length)
    return cubic(np.abs(place - beyond.astype(f))) @ rows.astype(f)


@pytest.mark.parametrize("convention", ["timm", "transformers"])
@pytest.mark.parametrize(("length", "new"), [(5, 3), (4, 6), (14, 16), (24, 7)])
def test_correct_float32_is_not_accused(convention, length, new):
    asked = {"length": length, "new": new, "convention": convention}
    check(lambda length, new: single(length, new, convention), "resizing.weights", **asked).require()
    shifted = check(lambda length, new: np.roll(single(length, new, convention), 1, -1), "resizing.weights", **asked)
    assert not shifted.ok
