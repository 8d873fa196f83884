import numpy as np
import pytest

from posref.rotary import layouts, rope

TO_HALF = {"source": "interleaved", "target": "half"}


def test_order_of_features_for_a_head_of_8():
    # half: first members 0, 2, 4, 6 of the adjacent pairs, then second members; the other way feature i + 4 follows feature i
    assert layouts.convert(np.arange(8), source="interleaved", target="half").tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert layouts.convert(np.arange(8), source="half", target="interleaved").tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


def test_third_layout_reads_interleaved_and_writes_half():
    x, tables = np.array([1.0, 2.0, 3.0, 4.0]), rope.tables(np.array(1), rope.frequencies(4))
    y = rope.rotate(layouts.convert(x, **TO_HALF), *tables, layout="half")
    np.testing.assert_allclose(y, [-1.142639664, 2.959850668, 1.922075597, 4.029799502], atol=5e-10)


def test_wrong_number_of_heads_is_seen_by_rotary_dim():
    weight = np.zeros((2 * 8, 3))  # k with 2 heads of 8
    message = r"layouts.permute_projection: rotary_dim is 8 and each of 4 heads has 4; .* k of grouped queries has fewer heads"
    with pytest.raises(ValueError, match=message):
        layouts.permute_projection(weight, heads=4, rotary_dim=8, **TO_HALF)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint16, np.int8])
def test_values_keep_their_bits_and_type(dtype):
    weight = np.arange(16).astype(dtype)[:, None]
    ours = layouts.permute_projection(weight, heads=2, rotary_dim=8, **TO_HALF)
    assert ours.dtype == dtype
    assert ours[:, 0].tolist() == [0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15]
    assert layouts.convert(weight[:, 0], **TO_HALF).dtype == dtype
