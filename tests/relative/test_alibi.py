"""ALiBi: slopes against exact powers and the published recursion, the three forms against loops and against each other."""

from fractions import Fraction

import numpy as np
import pytest

from posref.relative import alibi


def test_integer_exponents_are_exact():
    for heads in (1, 2, 4, 8):
        assert alibi.slopes(heads).tolist() == [1 / 2 ** (8 * a // heads) for a in range(1, heads + 1)]
    assert alibi.slopes(6).tolist() == [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8]
    assert alibi.slopes(3).tolist() == [1 / 16, 1 / 256, 1 / 4]
    assert alibi.slopes(1).tolist() == [1 / 256]
    assert alibi.slopes(16)[1::2].tolist() == [1 / 2**a for a in range(1, 9)]
    assert alibi.slopes(np.uint8(8), max_bias=np.uint8(8)).tolist() == [1 / 2**a for a in range(1, 9)]  # -8 in eight bits wraps


def test_a_rank_of_tensor_parallelism_takes_a_slice():
    assert alibi.slopes(6)[3:].tolist() == [1 / 256, 1 / 2, 1 / 8]
    assert alibi.slopes(6)[3:].tolist() != alibi.slopes(3).tolist()


def test_left_padding_counts_real_tokens():
    mask = np.array([[0, 0, 1, 1], [1, 1, 1, 1]])
    positions = np.cumsum(mask, axis=-1) - 1
    bias = alibi.bias(positions, positions, alibi.slopes(2), form="signed")
    assert np.array_equal(bias[0][:, 2:, 2:], alibi.bias(np.arange(2), np.arange(2), alibi.slopes(2), form="signed"))


def test_half_precision_merges_neighbors_in_the_key_form_alone():
    for slope in (0.5, 2.0**-8):
        key = (np.arange(2100) * slope).astype(np.float16)
        assert np.flatnonzero(np.diff(key) == 0)[0] == 2048
        signed = ((np.arange(2100) - 2099) * slope).astype(np.float16)
        assert np.all(np.diff(signed[-2000:]) != 0)


def test_symbols_pass_through():
    slope = np.array([Fraction(1, 3)], dtype=object)
    assert alibi.bias(np.array([2]), np.array([0, 3]), slope, form="absolute").tolist() == [[[slope[0] * -2, slope[0] * -1]]]


def test_a_slope_that_is_no_number_shows_in_every_entry():
    positions = np.arange(3)
    for form in alibi.FORMS:
        first, second = alibi.bias(positions, positions, np.array([np.nan, 1.0]), form=form)
        assert np.isnan(first).all()
        assert np.isfinite(second).all()


@pytest.mark.parametrize("name", alibi.PRESETS)
def test_presets_run(name):
    preset = alibi.PRESETS[name]
    slopes = alibi.slopes(preset["heads"], max_bias=preset["max_bias"])
    assert alibi.bias(np.arange(2), np.arange(3), slopes, form=preset["form"]).shape[0] == preset["heads"]
