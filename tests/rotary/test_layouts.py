import numpy as np
import pytest

from posref.rotary import layouts

TO_HALF = {"source": "interleaved", "target": "half"}


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
