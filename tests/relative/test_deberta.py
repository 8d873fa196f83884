"""DeBERTa: published buckets, presets, offsets at the ends of their types, what the body refuses."""

import numpy as np
import pytest

from posref.relative import deberta


def test_published_buckets():
    offset = -np.array([127, 128, 200, 300, 400, 510, 511])
    bucket = deberta.log_bucket(offset, buckets=256, max_position=512, source="microsoft")
    assert bucket.tolist() == [-127, -128, -169, -207, -233, -255, -255]
    wide = deberta.log_bucket(offset, buckets=np.int64(256), max_position=np.int64(512), source="microsoft")
    assert wide.tolist() == bucket.tolist()  # 511^126 in 64 bits wraps


def test_buckets_that_do_not_divide_are_refused():
    for buckets, max_position in ((7, 16), (2, 16), (8, 5)):
        with pytest.raises(ValueError, match=rf"buckets is {buckets} and max_position {max_position}; expected an even"):
            deberta.bucket_ends(buckets, max_position)


@pytest.mark.parametrize("name", deberta.PRESETS)
def test_presets_fit_their_rows(name):
    preset = deberta.PRESETS[name]
    offset = np.arange(-600, 601)
    if "buckets" in preset:
        offset = deberta.log_bucket(
            offset, buckets=preset["buckets"], max_position=preset["max_position"], source="transformers"
        )
    index = deberta.position_index(offset, span=preset["rows"] // 2)
    assert (index.min(), index.max()) == (0, preset["rows"] - 1)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_narrow_and_extreme_offsets_do_not_wrap(dtype):
    """Against Python's integers: 200 - o in eight bits would wrap, as would the absolute value of -128."""
    offset = np.array([[np.iinfo(dtype).min, -1, 0, 1, np.iinfo(dtype).max]], dtype)
    for span in (2, 100, 200):
        expected = [min(max(span - int(o), 0), 2 * span - 1) for o in offset[0]]
        assert deberta.position_index(offset, span=span).tolist() == [expected]
        rows = np.arange(2.0 * span)[None, :, None]
        ones = np.ones((1, 5, 1))
        for convention, sign in (("paper", 1), ("released", -1)):
            index = [min(max(span + sign * int(o), 0), 2 * span - 1) for o in offset[0]]
            assert deberta.position_to_content(ones, rows, offset, convention=convention).tolist() == [[index]]
    for source in deberta.SOURCES:
        arguments = {"buckets": 8, "max_position": 109, "source": source}
        wide = [max(-(10**6), min(10**6, int(o))) for o in offset[0]]
        expected = deberta.log_bucket(np.array(wide), **arguments).tolist()
        assert deberta.log_bucket(offset[0], **arguments).tolist() == expected
        assert expected[:4] == [-7 - (source == "transformers"), -1, 0, 1]
