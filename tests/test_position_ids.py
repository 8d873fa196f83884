"""Position ids: batches, released numbers, what the body refuses. The rules are compared in proofs/position_ids.py."""

import numpy as np
import pytest

from posref import position_ids

I = np.arange(12)  # noqa: E741, positions i


def test_rerope_and_lm_infinite_of_ten_tokens():
    """Sums over ten tokens and eleven, from the offsets of the released code."""
    i, causal = np.arange(10), np.tri(10, dtype=bool)
    distance = -position_ids.rerope(i, i, window=4) * causal
    assert (distance.sum(), distance[5].tolist()) == (130, [4, 4, 3, 2, 1, 0, 0, 0, 0, 0])
    leaky = -position_ids.rerope(i, i, window=4, leak=16) * causal
    assert (leaky.sum(), leaky[5, 0]) == (132.1875, 4.0625)
    seen = position_ids.lambda_mask(np.arange(11), np.arange(11), window=4, sinks=2)
    assert seen.sum(axis=-1).tolist() == [1, 2, 3, 4, 5, 6, 6, 6, 6, 6, 6]
    distance = -position_ids.rerope(np.arange(11), np.arange(11), window=4)
    assert np.where(seen, distance, -1).sum() == 34


def test_self_extend_with_the_released_numbers():
    """w = 1022 and g = 8: the first grouped offset is 894.25 larger in prefill and 895 in decoding than its groups say."""
    given = {"group": 8, "window": 1022}
    far, first = np.array([8192]), np.array([0])
    prefill, decode = (position_ids.self_extend(far, first, **given, phase=phase).item() for phase in ("prefill", "decode"))
    assert (prefill, decode) == (-1024 - 894.25, -1024 - 895)


def test_dual_chunk_of_chunkllama():
    """Chunks of 3072 with a local window of 256, as for a model of 4096: no offset beyond 3072 in 20000 tokens."""
    offsets = position_ids.dual_chunk(np.array([19999]), np.arange(20000), chunk_size=3072, local=256)
    assert offsets.min() == -3072
    assert offsets.max() == 0


def test_counts_of_narrow_integers_do_not_wrap():
    """Texts of 100 tokens as int8: the third starts at 200."""
    parts = [np.int8(100), np.int8(100), np.array([1, 4, 2], np.int8), np.uint8(1)]
    last = position_ids.multimodal(parts, merge=np.int8(2), convention="largest")[-4:]
    assert last.tolist() == [[199, 199, 199], [200, 200, 200], [200, 201, 200], [202, 202, 202]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: position_ids.packed(np.array([2, -1])),
            ValueError,
            r"lengths are \[2, -1\]; pass the differences of cu_seqlens",
        ),
        (lambda: position_ids.documents(np.array([-2])), ValueError, "position_ids.documents"),
        (lambda: position_ids.cached(3, 2), ValueError, "3 queries and 2 keys"),
        (lambda: position_ids.zigzag(10, ranks=2, rank=0), ValueError, "pad to a multiple of 4"),
        (lambda: position_ids.zigzag(8, ranks=2, rank=2), ValueError, "rank is 2 of 2, expected 0 to 1"),
        (lambda: position_ids.zigzag(8, ranks=2, rank=-1), ValueError, "rank is -1 of 2"),
        (lambda: position_ids.dual_chunk(I, I, chunk_size=4, local=4), ValueError, "local is 4 and chunk_size 4"),
        (
            lambda: position_ids.multimodal([3, (1, 1, 4)], merge=2, convention="largest"),
            ValueError,
            r"\(1, 1, 4\), .*merge = 2 patches",
        ),
        (lambda: position_ids.multimodal([0], merge=2, convention="largest"), ValueError, "parts hold 0"),
        (lambda: position_ids.multimodal([2.5], merge=2, convention="largest"), TypeError, "parts is 2.5, expected an integer"),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
