"""Offsets, the Toeplitz view and the gather: nothing wraps, the view is no copy and is read-only."""

import numpy as np
import pytest

from posref import offsets


def test_offsets_of_fractional_positions():
    assert offsets.offsets(np.array([0.5]), np.array([0.0, 2.0])).tolist() == [[-0.5, 1.5]]


def test_a_difference_beyond_int64_is_refused():
    for keys, queries in (([0, 2**62], [-(2**62)]), ([-(2**63)], [0, 1]), ([-(2**63)], [0])):
        with pytest.raises(ValueError, match=r"offsets\.offsets: key_positions run from -?\d+ .* do not fit into int64"):
            offsets.offsets(np.array(queries), np.array(keys))
    assert offsets.offsets(np.array([-(2**62)]), np.array([2**62 - 1])).tolist() == [[2**63 - 1]]


def test_clip_rejects():
    with pytest.raises(ValueError, match="low is 3 and high is 2"):
        offsets.clip(np.array([0]), 3, 2)


def test_toeplitz_is_a_read_only_view():
    by_offset = np.arange(40.0).reshape(2, 20)
    view = offsets.toeplitz(by_offset, 8, 13)
    assert np.shares_memory(view, by_offset)
    assert view.strides == (160, -8, 8)
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0, 0] = 1.0
    by_offset[1, 7] = -1.0
    assert view[1, 0, 0] == -1.0


@pytest.mark.parametrize("beyond", [-3, 2])
def test_gather_never_wraps(beyond):
    steps = np.array([[0, beyond]])
    with pytest.raises(ValueError, match=f"offsets run from {min(0, beyond)} to {max(0, beyond)}.*4 entries for -2 to 1"):
        offsets.gather(np.arange(4), steps, -2)


def test_a_batch_of_offsets_has_an_axis_for_heads():
    batched = np.zeros((2, 4, 4), int)  # without a head axis: 2 sequences met 3 heads
    assert offsets.gather(np.zeros((3, 5)), batched[:, None], -2).shape == (2, 3, 4, 4)
