"""Offsets, the Toeplitz view, the skew and the gather against index loops; what may not wrap, copy or be written."""

from fractions import Fraction

import numpy as np
import pytest

from posref import offsets


def test_offsets_batch_of_positions():
    queries, keys = np.array([[3, 4], [0, 9]]), np.array([[0, 1, 2], [5, 5, 6]])
    batched = offsets.offsets(queries[:, None], keys[:, None])
    assert batched.shape == (2, 1, 2, 3)
    for b in range(2):
        assert (batched[b, 0] == offsets.offsets(queries[b], keys[b])).all()


def test_offsets_of_fractional_positions():
    assert offsets.offsets(np.array([0.5]), np.array([0.0, 2.0])).tolist() == [[-0.5, 1.5]]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_narrow_integers_do_not_wrap(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    ends = np.array([low, high], dtype)
    reach = int(high) - int(low)
    assert offsets.offsets(ends, ends).tolist() == [[0, reach], [-reach, 0]]
    assert offsets.clip(ends, -reach, reach).tolist() == [low, high]
    shown = offsets.gather(np.arange(256), np.array([[-128, 127]], dtype), -128)
    assert shown.tolist() == [[0, 255]]
    with pytest.raises(ValueError, match="offsets run from -128 to -128 and by_offset holds 3 entries for 127 to 129"):
        offsets.gather(np.arange(3), np.array([[-128]], dtype), 127)  # -128 - 127 in eight bits is 1


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


def test_toeplitz_and_skew_move_any_object():
    by_offset = np.array([Fraction(n, 7) for n in range(4)], dtype=object)
    assert offsets.toeplitz(by_offset, 3, 2).tolist() == [[Fraction(n + m, 7) for m in (0, 1)] for n in (2, 1, 0)]
    rows = np.array([[Fraction(10 * i + n, 7) for n in range(4)] for i in range(3)], dtype=object)
    assert offsets.skew(rows).tolist() == [[Fraction(10 * i + 2 - i + j, 7) for j in (0, 1)] for i in range(3)]


@pytest.mark.parametrize("beyond", [-3, 2])
def test_gather_never_wraps(beyond):
    steps = np.array([[0, beyond]])
    with pytest.raises(ValueError, match=f"offsets run from {min(0, beyond)} to {max(0, beyond)}.*4 entries for -2 to 1"):
        offsets.gather(np.arange(4), steps, -2)


def test_gather_of_no_keys():
    assert offsets.gather(np.arange(4), np.zeros((2, 0), dtype=int), -2).shape == (2, 0)


def test_dtype_is_kept():
    assert offsets.toeplitz(np.zeros(4, dtype=np.float32), 2, 3).dtype == np.float32
    assert offsets.skew(np.zeros((2, 4), dtype=np.float32)).dtype == np.float32
    assert offsets.gather(np.zeros(4, dtype=np.float32), np.array([[0]]), 0).dtype == np.float32


def test_a_batch_of_offsets_has_an_axis_for_heads():
    batched = np.zeros((2, 4, 4), int)  # without a head axis: 2 sequences met 3 heads
    assert offsets.gather(np.zeros((3, 5)), batched[:, None], -2).shape == (2, 3, 4, 4)
