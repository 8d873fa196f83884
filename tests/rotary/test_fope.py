"""FoPE: presets, grouped heads, what the body refuses."""

import numpy as np
import pytest

from posref import attention
from posref.rotary import fope, rope
from tests.painted import painted


def turned(x, positions, c, s, convention, length=64):
    dim = x.shape[-1]
    tables = fope.tables(positions, fope.frequencies(dim, length=length), c, s, dim=dim, convention=convention)
    return rope.rotate(x, *tables, layout="half")


def test_scores_see_the_place():
    c, s = (fope.step_eye(3, 3) + 0.075 * painted((2, 3, 3), tag) for tag in (1, 2))
    q, k = painted((2, 5, 16), 3), painted((2, 5, 16), 4)
    here, there = (
        attention.scores(*(turned(x, first + np.arange(5), c, s, "released") for x in (q, k)), scale=1) for first in (0, 40)
    )
    assert np.abs(here - there).max() > 1


@pytest.mark.parametrize("name", fope.PRESETS)
def test_presets(name):
    """The last frequency that is kept finishes a turn in the trained length, and the next one does not."""
    dim, base, length = (fope.PRESETS[name][each] for each in ("dim", "base", "length"))
    kept = fope.frequencies(dim, base, length=length)
    assert kept[-1] * length > 2 * np.pi > rope.frequencies(dim, base)[len(kept)] * length


def test_the_start_of_the_60m_model():
    """Its coefficients are min(kept, dim/4) wide, and less than every second one of the frequencies has a column."""
    kept = len(fope.frequencies(64, length=1024))
    eye = fope.step_eye(kept, min(kept, 16))
    assert eye.shape == (18, 16)
    assert np.argwhere(eye).tolist() == [[2 * u, u] for u in range(9)]


def test_queries_that_share_a_key_share_its_matrices():
    c, s = painted((2, 3, 2), 1), painted((2, 3, 2), 2)
    cos, sin = fope.tables(np.arange(5), fope.frequencies(16, length=64), c, s, dim=16, convention="released")
    q = painted((6, 5, 16), 3)
    whole = rope.rotate(q, *(attention.repeat_heads(x, heads=6) for x in (cos, sin)), layout="half")
    for head in range(6):
        of_key = head // 3
        assert np.array_equal(whole[head], rope.rotate(q[head], cos[of_key], sin[of_key], layout="half"))


def test_coefficients_wider_than_half_a_head_are_refused():
    c = np.ones((1, 2, 2))
    with pytest.raises(ValueError, match="width of the coefficients is 2 and half of a head has 1; pass the whole width"):
        fope.tables(np.arange(3), np.ones(2), c, c, dim=2, convention="released")
