"""Position ids: batches, released numbers, errors of the bodies. proofs/position_ids.py proves the rules."""

import numpy as np

from posref import position_ids
from tests.refused import refused


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


test_refused = refused(
    vars(position_ids),
    r"""
    packed(a(2, -1)) | lengths are \[2, -1\]; pass the differences of cu_seqlens
    documents(a(-2)) | position_ids.documents
    cached(3, 2) | 3 queries and 2 keys
    zigzag(10, ranks=2, rank=0) | pad to a multiple of 4
    zigzag(8, ranks=2, rank=2) | rank is 2 of 2, expected 0 to 1
    zigzag(8, ranks=2, rank=-1) | rank is -1 of 2
    dual_chunk(a(1), a(1), chunk_size=4, local=4) | local is 4 and chunk_size 4
    multimodal([3, (1, 1, 4)], merge=2, convention="largest") | \(1, 1, 4\), .*merge = 2 patches .*spatial_merge_size
    multimodal([0], merge=2, convention="largest") | parts hold 0
    multimodal([2.5], merge=2, convention="largest") | TypeError: parts is 2.5, expected an integer
    """,
)
