"""Indexers of transformers' DeepSeek V3.2 and V4, and V4's compressed keys: the modules, on the CPU, in float64."""

import types

import numpy as np
import pytest

from posref import ops
from posref.relative import indexer
from posref.rotary import rope

torch = pytest.importorskip("torch", reason="compares with PyTorch; pip install posref[parity]")
N, D, HEADS, ROTARY = 11, 12, 3, 4
W = rope.frequencies(ROTARY)
BOUND = 64 * 2**-24  # softmax, norm, angles and products in float32, none of more than 16 terms


def double(x):
    return x.detach().double().numpy()


def lengths(x):
    return np.linalg.norm(x, axis=-1, keepdims=True)


def scores_before_topk(module, *given):
    """What the module hands to `topk`, and what the module returns."""
    seen, topk = [], torch.Tensor.topk
    torch.Tensor.topk = lambda x, *rest, **named: (seen.append(x), topk(x, *rest, **named))[1]
    try:
        out = module(*given)
    finally:
        torch.Tensor.topk = topk
    return double(seen[0]), out


def test_v32():
    modeling = pytest.importorskip("transformers.models.deepseek_v32.modeling_deepseek_v32", reason="no DeepSeek V3.2")
    config = modeling.DeepseekV32Config(
        hidden_size=16, index_n_heads=HEADS, index_head_dim=D, qk_rope_head_dim=ROTARY, q_lora_rank=8, index_topk=4
    )
    torch.manual_seed(1)
    module = modeling.DeepseekV32Indexer(config, 0).double()
    x, latent = torch.randn(2, N, 16, dtype=torch.float64), torch.randn(2, N, 8, dtype=torch.float64)
    at, mask = np.arange(N) + 5, np.tri(N, dtype=bool)
    tables = [torch.tensor(np.concatenate([t, t], axis=-1))[None] for t in rope.tables(at, rope.frequencies(ROTARY))]
    got, chosen = scores_before_topk(module, x, latent, tables, torch.tensor(mask), None)
    q = double(module.wq_b(latent)).reshape(2, N, HEADS, D).swapaxes(1, 2)
    k, weights = double(module.k_norm(module.wk(x))), double(module.weights_proj(x))
    given = {"query_positions": at, "key_positions": at, "rotary_dim": ROTARY, "layout": "half", "scale": (D * HEADS) ** -0.5}
    right = ops.op("indexer.scores").spec(q, k, weights, **given)
    # the module rounds rotated vectors, products, weights and sums in float32: terms whose sum is below `size`
    size = indexer.scores(lengths(q), lengths(k), abs(weights), scale=given["scale"])
    assert (abs(got - right)[:, mask] <= ((D + HEADS + 8) * 2**-24 * size)[:, mask]).all()
    selected = indexer.select(np.where(mask, got, 0), mask, top=4)
    for b, i in np.ndindex(2, N):
        assert {*chosen[b, i, : min(i + 1, 4)].tolist()} == {*np.flatnonzero(selected[b, i]).tolist()}, (b, i)


@pytest.mark.parametrize("overlapping", [False, True])
def test_v4(overlapping):
    modeling = pytest.importorskip("transformers.models.deepseek_v4.modeling_deepseek_v4", reason="no DeepSeek V4")
    config = modeling.DeepseekV4Config(
        hidden_size=16,
        num_hidden_layers=2,
        head_dim=D,
        index_head_dim=D,
        index_n_heads=HEADS,
        index_topk=2,
        q_lora_rank=8,
        partial_rotary_factor=ROTARY / D,
        compress_rates={"compressed_sparse_attention": 3, "heavily_compressed_attention": 3},
        layer_types=["compressed_sparse_attention", "heavily_compressed_attention"],
        rope_parameters={
            name: {"rope_type": "default", "rope_theta": 160000.0, "partial_rotary_factor": ROTARY / D}
            for name in ("main", "compress")
        },
    )
    torch.manual_seed(1)
    module = (modeling.DeepseekV4Indexer if overlapping else modeling.DeepseekV4HCACompressor)(config).double()
    torch.nn.init.normal_(module.position_bias)
    x, latent, at = torch.randn(2, N, 16, dtype=torch.float64), torch.randn(2, N, 8, dtype=torch.float64), np.arange(N)
    kv, gates = (double(part(x))[:, :9].reshape(2, 3, 3, -1) for part in (module.kv_proj, module.gate_proj))
    compress = indexer.compress_overlapping if overlapping else indexer.compress
    mean = double(module.kv_norm(torch.tensor(compress(kv, gates, double(module.position_bias)))))
    blocks = np.arange(3)
    visible = indexer.block_mask(at, blocks, rate=3)
    tables = rope.tables(indexer.block_positions(blocks, rate=3), rope.frequencies(ROTARY, 160000.0))
    turned = rope.rotate(mean[..., -ROTARY:], *tables, layout="interleaved")
    if not overlapping:
        keys, bias = module(x, latent, torch.arange(N)[None].expand(2, -1), None, 0)
        stated = np.concatenate([mean[..., :-ROTARY], turned], axis=-1)
        np.testing.assert_allclose(double(keys)[:, 0], stated, rtol=0, atol=BOUND * lengths(mean).max())
        assert ((double(bias)[:, 0] == 0) == visible).all()
        return
    got, chosen = scores_before_topk(module, x, latent, torch.arange(N)[None].expand(2, -1), None, 0)
    q = double(module.q_b_proj(latent)).reshape(2, N, HEADS, D).swapaxes(1, 2)
    given = {"query_positions": at, "key_positions": indexer.block_positions(blocks, rate=3), "base": 160000.0}
    given |= {"rotary_dim": ROTARY, "layout": "interleaved", "rotated": "last", "scale": (D * HEADS) ** -0.5}
    weights = double(module.scorer.weights_proj(x))
    right = ops.op("indexer.scores").spec(q, mean, weights, **given)
    size = indexer.scores(lengths(q), lengths(mean), abs(weights), scale=given["scale"]).max()
    np.testing.assert_allclose(np.where(visible, got, 0), np.where(visible, right, 0), rtol=0, atol=BOUND * size)
    selected = indexer.select(np.where(visible, got, 0), np.broadcast_to(visible, got.shape), top=2)
    for b, i in np.ndindex(2, N):
        assert {*chosen[b, i].tolist()} - {-1} == {*np.flatnonzero(selected[b, i]).tolist()}, (b, i)


def test_qsa_of_qwen_4():
    """Means of blocks, normalized and rotated at their first tokens, are scored with weights of 1. A query reads the
    selected blocks and its unfinished block."""
    modeling = pytest.importorskip("transformers.models.qwen4_exp.modeling_qwen4_exp", reason="no Qwen4-Exp")
    given = {"hidden_size": 16, "rms_norm_eps": 1e-6, "indexer_n_heads": HEADS, "indexer_kv_heads": 1, "indexer_head_dim": D}
    config = types.SimpleNamespace(**given, indexer_budget=6, indexer_compress_ratio=3)
    torch.manual_seed(1)
    module = modeling.Qwen4ExpTextQSAIndexer(config, 0).double()
    x, at, mask = torch.randn(2, N, 16, dtype=torch.float64), np.arange(N), np.tri(N, dtype=bool)
    tables = [torch.tensor(np.concatenate([t, t], axis=-1))[None].expand(2, -1, -1) for t in rope.tables(at, W)]
    got = module(x, tables, torch.tensor(mask)[None, None].expand(2, -1, -1, -1), None).numpy()[:, 0]
    heads = [double(part) for part in module.index_qk_proj(x).reshape(2, N, HEADS + 1, D).split([HEADS, 1], dim=2)]
    blocks, normed = np.arange(N // 3), lambda y: y / np.sqrt((y * y).mean(axis=-1, keepdims=True) + 1e-6)
    means = indexer.compress(heads[1][:, : 3 * len(blocks), 0].reshape(2, -1, 3, D), np.zeros((2, 3, 3, D)), np.zeros((3, D)))
    places = at, indexer.block_positions(blocks, rate=3)
    turned = [
        rope.rotate(normed(y), *rope.tables(p, W), layout="half", rotary_dim=ROTARY)
        for y, p in zip((heads[0].swapaxes(1, 2), means), places, strict=True)
    ]
    scores = indexer.scores(*turned, np.ones((2, N, HEADS)), scale=D**-0.5)
    chosen = indexer.select(scores, indexer.block_mask(at, blocks, rate=3), top=2)
    ours = indexer.unfinished_mask(at, at, rate=3) | np.pad(
        chosen.repeat(3, axis=-1), ((0, 0), (0, 0), (0, N - 3 * len(blocks)))
    )
    np.testing.assert_array_equal(got, ours)
    assert not np.array_equal(got, np.broadcast_to(mask, got.shape))
