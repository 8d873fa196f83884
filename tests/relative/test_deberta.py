"""DeBERTa: scores against loops written from the paper and from the released code, log buckets against exact integers."""

from fractions import Fraction

import numpy as np
import pytest

from posref.offsets import offsets
from posref.relative import deberta


def delta(i, j, span):
    """Eq. (3), case by case."""
    if i - j <= -span:
        return 0
    if i - j >= span:
        return 2 * span - 1
    return i - j + span


def loop_scores(q, k, q_r, k_r, queries, keys, scale, convention, terms=("c2p", "p2c")):
    """Eq. (4), entry by entry; for "released" the second index is the first one."""
    batch, heads, n_query, _ = q.shape
    span = k_r.shape[-2] // 2
    result = np.zeros((batch, heads, n_query, k.shape[-2]))
    for b, h, i, j in np.ndindex(*result.shape):
        first, second = delta(queries[i], keys[j], span), delta(keys[j], queries[i], span)
        total = q[b, h, i] @ k[b, h, j]
        if "c2p" in terms:
            total += q[b, h, i] @ k_r[h, first]
        if "p2c" in terms:
            total += k[b, h, j] @ q_r[h, second if convention == "paper" else first]
        result[b, h, i, j] = scale * total
    return result


def inputs(n_query, n_key, span, dim=5, heads=2, batch=3):
    """Small integers: every product and sum is exact, so results are compared bit by bit."""
    generator = np.random.default_rng(7)
    shapes = [(batch, heads, n_query, dim), (batch, heads, n_key, dim), (heads, 2 * span, dim), (heads, 2 * span, dim)]
    return [generator.integers(-9, 10, shape).astype(float) for shape in shapes]


def test_batched_positions():
    q, k, q_r, k_r = inputs(4, 4, span=3)
    positions = np.array([[0, 1, 2, 3], [0, 0, 1, 2], [5, 4, 3, 0]])  # the second row is padded on the left
    offset = offsets(positions, positions)[:, None]
    for convention in deberta.CONVENTIONS:
        result = deberta.scores(q, k, q_r, k_r, offset, scale=1, convention=convention)
        for b in range(3):
            one = (x[b : b + 1] for x in (q, k))
            expected = loop_scores(*one, q_r, k_r, positions[b].tolist(), positions[b].tolist(), 1, convention)
            assert np.array_equal(result[b : b + 1], expected)


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


def test_symbols_pass_through():
    # Fractions stand for any exact number: nothing on the way turns them into floats.
    q, k, q_r, k_r = (np.array([Fraction(int(v), 3) for v in x.flat]).reshape(x.shape) for x in inputs(3, 4, span=2))
    offset = offsets(np.arange(3), np.arange(4))
    result = deberta.scores(q, k, q_r, k_r, offset, scale=Fraction(1, 7), convention="paper")
    assert all(isinstance(entry, Fraction) for entry in result.flat)
    whole = deberta.scores(*inputs(3, 4, span=2), offset, scale=1, convention="paper")
    assert [entry * 63 for entry in result.flat] == whole.ravel().tolist()


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
