"""T5, DeBERTa and ALiBi against transformers' own code: random weights, tiny configurations, eager attention."""

import numpy as np
import pytest

from posref.check import check
from posref.offsets import offsets
from posref.relative import alibi, deberta, t5

torch = pytest.importorskip("torch", reason="needs torch: pip install posref[parity]")
pytest.importorskip("transformers", reason="needs transformers: pip install posref[parity]")

UNIT = 2.0**-24  # unit roundoff of float32


def numpy(tensor):
    return tensor.detach().to(torch.float64).numpy()


# T5


@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (320, 800), (32, 1000)])
def test_t5_buckets_over_a_wide_range(buckets, max_distance):
    from transformers.models.t5.modeling_t5 import T5Attention

    offset = np.arange(-3 * max_distance, 3 * max_distance + 1)
    for bidirectional in (True, False):
        theirs = T5Attention._relative_position_bucket(
            torch.from_numpy(offset), bidirectional=bidirectional, num_buckets=buckets, max_distance=max_distance
        )
        ours = t5.bucket(offset, buckets=buckets, max_distance=max_distance, bidirectional=bidirectional)
        assert ours.tolist() == theirs.tolist()


def test_mpnet_asks_for_32_buckets():
    """Whatever the configuration says."""
    from transformers import MPNetConfig
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

    config = MPNetConfig(hidden_size=12, num_attention_heads=3, num_hidden_layers=1, relative_attention_num_buckets=16)
    with pytest.raises(IndexError):
        MPNetEncoder(config).compute_position_bias(torch.zeros(1, 150, 12))


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


# DeBERTa


def deberta_bound(q, k, q_r, k_r, scale):
    """Rounding of three float32 dot products of d terms, scaled and added: (d + 8) u times the sum of absolute products."""
    size = (
        np.abs(q).max(axis=-2).max() * np.abs(k).max()
        + np.abs(q).max() * np.abs(k_r).max()
        + np.abs(k).max() * np.abs(q_r).max()
    )
    return (q.shape[-1] + 8) * UNIT * q.shape[-1] * size * scale


@pytest.mark.parametrize("terms", [["c2p", "p2c"], ["c2p"], ["p2c"]])
@pytest.mark.parametrize("length", [5, 9, 20])
def test_deberta_version_1(length, terms):
    from transformers import DebertaConfig
    from transformers.models.deberta import modeling_deberta as theirs

    span, heads, dim, width = 8, 2, 6, 12
    config = DebertaConfig(
        hidden_size=width, num_attention_heads=heads, relative_attention=True, max_relative_positions=span, pos_att_type=terms
    )
    torch.manual_seed(length)
    attention = theirs.DisentangledSelfAttention(config).eval()
    q, k = torch.randn(2, 3, heads, length, dim)
    rows = torch.randn(2 * span, width)
    relative = theirs.build_relative_position(q, k)
    factor = 1 + len(terms)
    scale = (dim * factor) ** -0.5
    # disentangled_att_bias is given queries already scaled; keys and rows are not.
    bias = attention.disentangled_att_bias(q * scale, k, relative, rows, factor)
    content = (q * scale) @ k.transpose(-1, -2)

    def project(layer):
        return numpy(layer(rows)).reshape(2 * span, heads, dim).swapaxes(0, 1)

    k_r = project(attention.pos_proj) if "c2p" in terms else None
    q_r = project(attention.pos_q_proj) if "p2c" in terms else None
    check_deberta(numpy(q), numpy(k), q_r, k_r, offsets(np.arange(length), np.arange(length)), scale, numpy(content + bias))


@pytest.mark.parametrize("terms", [["c2p", "p2c"], ["c2p"], ["p2c"]])
@pytest.mark.parametrize("length", [5, 20, 40])
@pytest.mark.parametrize("buckets", [-1, 8])
@pytest.mark.parametrize("share", [False, True])
def test_deberta_version_2(share, buckets, length, terms):
    from transformers import DebertaV2Config
    from transformers.models.deberta_v2 import modeling_deberta_v2 as theirs

    heads, dim, width, max_position = 2, 6, 12, 32
    span = buckets if buckets > 0 else max_position
    config = DebertaV2Config(
        hidden_size=width,
        num_attention_heads=heads,
        relative_attention=True,
        position_buckets=buckets,
        max_relative_positions=max_position,
        pos_att_type=terms,
        share_att_key=share,
    )
    torch.manual_seed(length)
    attention = theirs.DisentangledSelfAttention(config).eval()
    batch = 3
    q, k = torch.randn(2, batch * heads, length, dim)
    rows = torch.randn(2 * span, width)
    factor = 1 + len(terms)
    scale = (dim * factor) ** -0.5
    bias = attention.disentangled_attention_bias(q, k, None, rows, factor)
    result = (q @ k.transpose(-1, -2) * scale + bias).view(batch, heads, length, length)

    def project(layer):
        return numpy(layer(rows)).reshape(2 * span, heads, dim).swapaxes(0, 1)

    k_r = project(attention.key_proj if share else attention.pos_key_proj) if "c2p" in terms else None
    q_r = project(attention.query_proj if share else attention.pos_query_proj) if "p2c" in terms else None
    offset = offsets(np.arange(length), np.arange(length))
    if buckets > 0:
        offset = deberta.log_bucket(offset, buckets=buckets, max_position=max_position, source="transformers")
    shape = (batch, heads, length, dim)
    check_deberta(numpy(q).reshape(shape), numpy(k).reshape(shape), q_r, k_r, offset, scale, numpy(result))


def check_deberta(q, k, q_r, k_r, offset, scale, theirs):
    released, paper = (deberta.scores(q, k, q_r, k_r, offset, scale=scale, convention=name) for name in ("released", "paper"))
    none = np.zeros((1, 1, q.shape[-1]))
    bound = deberta_bound(q, k, none if q_r is None else q_r, none if k_r is None else k_r, scale)
    np.testing.assert_allclose(theirs, released, rtol=0, atol=bound)
    if q_r is not None:  # the shipped code is not the paper's formula
        assert np.abs(theirs - paper).max() > 1000 * bound


def transformers_bucket(offset, buckets, max_position):
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

    bucket = make_log_bucket_position(torch.from_numpy(offset), buckets, max_position).numpy().astype(np.int64)
    return np.clip(bucket, -buckets, buckets)  # it counts on, and the index clips that away


@pytest.mark.parametrize(("buckets", "max_position"), [(256, 512), (128, 512), (64, 512), (32, 128), (8, 109), (512, 2048)])
def test_deberta_log_buckets(buckets, max_position):
    offset = np.arange(-2 * max_position, 2 * max_position + 1)
    ours = deberta.log_bucket(offset, buckets=buckets, max_position=max_position, source="transformers")
    assert transformers_bucket(offset, buckets, max_position).tolist() == ours.tolist()


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


# ALiBi. transformers raises a rounded float32 base to powers up to 2^ceil(log2 h): the power multiplies the base's rounding.


def slope_bound(heads):
    return (2 * heads + 2) * UNIT


@pytest.mark.parametrize("max_bias", [8, 4, 16])
@pytest.mark.parametrize("heads", [1, 2, 3, 6, 8, 12, 32, 40, 71, 112])
def test_mpt(heads, max_bias):
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

    theirs = numpy(build_mpt_alibi_tensor(heads, 9, alibi_bias_max=max_bias))
    ours = alibi.bias(np.arange(9), np.arange(-8, 1), alibi.slopes(heads, max_bias=max_bias), form="key")
    # The exponent, up to max_bias, is rounded to float32 (exactly here), then one power, one division, one product.
    np.testing.assert_allclose(theirs, ours, rtol=8 * UNIT, atol=0)


@pytest.mark.parametrize("heads", [1, 2, 3, 6, 8, 12, 32, 40, 71, 112])
def test_falcon(heads):
    from transformers.models.falcon.modeling_falcon import build_alibi_tensor

    mask = np.array([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1]])
    theirs = numpy(build_alibi_tensor(torch.from_numpy(mask), heads, torch.float32)).reshape(2, heads, 1, 6)
    positions = np.maximum(np.cumsum(mask, axis=-1) - 1, 0)
    # Slopes are rounded to bfloat16, and so is their product with a position; no other rounding, so bit by bit.
    rounded = torch.from_numpy(alibi.slopes(heads)).float().bfloat16().double().numpy()
    product = torch.from_numpy(alibi.bias(positions, positions, rounded, form="key")).float().bfloat16().double().numpy()
    assert np.array_equal(theirs, product)
    exact = alibi.bias(positions, positions, alibi.slopes(heads), form="key")
    np.testing.assert_allclose(theirs, exact, rtol=(1 + 2**-8) ** 2 - 1, atol=0)  # 2^-8: unit roundoff of bfloat16
    if heads in (12, 32):  # slopes that are no power of two are rounded visibly, so this is not BLOOM's table
        assert np.abs(theirs - exact).max() > slope_bound(heads) * exact.max()


def test_falcon_adds_before_the_scale():
    from transformers import FalconConfig
    from transformers.models.falcon.modeling_falcon import FalconAttention, build_alibi_tensor

    heads, dim, length = 2, 16, 7
    config = FalconConfig(
        hidden_size=heads * dim,
        num_attention_heads=heads,
        alibi=True,
        multi_query=False,
        new_decoder_architecture=False,
        attn_implementation="eager",
    )
    torch.manual_seed(0)
    attention = FalconAttention(config, layer_idx=0).eval()
    x = torch.randn(1, length, heads * dim)
    bias = build_alibi_tensor(torch.ones(1, length, dtype=torch.int64), heads, torch.float32)
    theirs = numpy(attention(x, bias, torch.zeros(1, 1, length, length), output_attentions=True)[1])
    q, k = (numpy(y).swapaxes(1, 2) for y in attention._split_heads(attention.query_key_value(x))[:2])
    slopes = alibi.slopes(heads)  # 1/16 and 1/256: exact in bfloat16
    ours = alibi.bias(np.arange(length), np.arange(length), slopes, form="key")
    before = attend_scores(q, k, dim**-0.5) + ours * dim**-0.5
    after = attend_scores(q, k, dim**-0.5) + ours
    # Products of d terms, a sum and a scale: (d + 4) roundings of the largest absolute score; then exp, sum and division.
    size = (np.abs(q).max(axis=-2) * np.abs(k).max(axis=-2)).sum(axis=-1).max() * dim**-0.5
    np.testing.assert_allclose(theirs, softmax(before), rtol=(2 * (dim + 4) * size + 16) * UNIT, atol=0)
    assert np.abs(theirs - softmax(after)).max() > 0.01


def attend_scores(q, k, scale):
    return scale * q @ np.swapaxes(k, -1, -2)


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
