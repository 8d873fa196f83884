"""Biases of transformers' own code that no row of the corpus has; tests/parity/test_wild.py measures these rows."""

import numpy as np
import pytest

from posref.check import check
from posref.relative import deberta

torch = pytest.importorskip("torch", reason="needs torch: pip install posref[parity]")
pytest.importorskip("transformers", reason="needs transformers: pip install posref[parity]")


def test_the_bias_of_wavlm_passes_its_check():
    from transformers import WavLMConfig
    from transformers.models.wavlm.modeling_wavlm import WavLMAttention

    config = WavLMConfig()
    sizes = {"num_buckets": config.num_buckets, "max_distance": config.max_bucket_distance}
    theirs = WavLMAttention(12, 2, **sizes, has_relative_position_bias=True)

    def bias(query_positions, key_positions, table):
        rows = theirs._relative_positions_bucket(key_positions[:, None, :] - query_positions[:, :, None])
        return table[rows].permute(0, 3, 1, 2)

    assert check(bias, preset="wavlm", to=torch.from_numpy).ok
    assert "call" in str(check(bias, preset="mpnet_base", to=torch.from_numpy))


def transformers_bucket(offset, buckets, max_position):
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

    bucket = make_log_bucket_position(torch.from_numpy(offset), buckets, max_position).numpy().astype(np.int64)
    return np.clip(bucket, -buckets, buckets)  # it counts on, and the index clips that away


def test_deberta_log_buckets_where_float32_may_miss():
    """Over many configurations transformers is at most one bucket off, and only next to an exact end of a bucket."""
    for buckets in range(4, 66, 2):
        for max_position in (buckets // 2 + 2, 17, 37, 65, 100, 129, 257, 833, 2817):
            if max_position < buckets // 2 + 2:
                continue
            offset = np.arange(max_position + 1)
            ours = deberta.log_bucket(offset, buckets=buckets, max_position=max_position, source="transformers")
            theirs = transformers_bucket(offset, buckets, max_position)
            assert np.abs(ours - theirs).max() <= 1
            ends = deberta.bucket_ends(buckets, max_position)
            assert np.isin(offset[ours != theirs], [*ends, *(ends + 1)]).all()


def test_deberta_version_2_fails_for_unequal_lengths():
    from transformers import DebertaV2Config
    from transformers.models.deberta_v2.modeling_deberta_v2 import DisentangledSelfAttention

    config = DebertaV2Config(
        hidden_size=12,
        num_attention_heads=2,
        relative_attention=True,
        position_buckets=8,
        max_relative_positions=32,
        pos_att_type=["c2p", "p2c"],
    )
    attention = DisentangledSelfAttention(config).eval()
    with pytest.raises(RuntimeError, match="size"):
        attention.disentangled_attention_bias(torch.randn(2, 3, 6), torch.randn(2, 7, 6), None, torch.randn(16, 12), 3)
