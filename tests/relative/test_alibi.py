"""ALiBi: slopes against exact powers, slices of heads, half precision, a slope that is NaN."""

import numpy as np

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


def test_half_precision_merges_neighbors_in_the_key_form_alone():
    for slope in (0.5, 2.0**-8):
        key = (np.arange(2100) * slope).astype(np.float16)
        assert np.flatnonzero(np.diff(key) == 0)[0] == 2048
        signed = ((np.arange(2100) - 2099) * slope).astype(np.float16)
        assert np.all(np.diff(signed[-2000:]) != 0)


def test_a_slope_that_is_no_number_shows_in_every_entry():
    positions = np.arange(3)
    for form in alibi.FORMS:
        first, second = alibi.bias(positions, positions, np.array([np.nan, 1.0]), form=form)
        assert np.isnan(first).all()
        assert np.isfinite(second).all()
