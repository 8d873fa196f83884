"""Attention of transformers with decoupled RoPE."""

import numpy as np
import pytest

from posref.rotary import decoupled, rope

torch = pytest.importorskip("torch", reason="pip install posref[parity]")
pytest.importorskip("transformers", reason="pip install posref[parity]")


def test_deepseek_v3():
    """What its module passes to attention gives the scores of both parts, keys absorbed; its norm of latents is in float32."""
    from transformers import DeepseekV3Config
    from transformers.models.deepseek_v3 import modeling_deepseek_v3 as modeling

    config = DeepseekV3Config(
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=4,
        q_lora_rank=None,
        kv_lora_rank=12,
        qk_nope_head_dim=16,
        qk_rope_head_dim=8,
        v_head_dim=6,
        num_hidden_layers=1,
    )
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    module, caught = modeling.DeepseekV3Attention(config, 0).double().eval(), {}

    def catch(module, q, k, v, mask, scaling, **rest):
        caught.update(q=q.detach().numpy(), k=k.detach().numpy(), scale=scaling)
        return v.transpose(1, 2), None

    saved, modeling.eager_attention_forward = modeling.eager_attention_forward, catch
    try:
        x, positions = torch.randn(1, 5, 32, dtype=torch.float64), np.arange(5)
        cos, sin = rope.tables(positions, rope.frequencies(8))
        doubled = [torch.tensor(np.concatenate([table, table], axis=-1))[None] for table in (cos, sin)]
        module(x, tuple(doubled), None)
        queries = module.q_proj(x).detach().numpy().reshape(1, 5, 4, 24).swapaxes(1, 2)
        latent, shared = np.split(module.kv_a_proj_with_mqa(x).detach().numpy(), [12], axis=-1)
        latent = module.kv_a_layernorm(torch.tensor(latent)).detach().numpy()
    finally:
        modeling.eager_attention_forward = saved
    w = module.kv_b_proj.weight.detach().numpy().reshape(4, 22, 12)[:, :16].swapaxes(-1, -2)
    q, p = queries[..., :16], rope.rotate(queries[..., 16:], cos, sin, layout="interleaved")
    r = rope.rotate(shared[:, None], cos, sin, layout="interleaved")
    expected = caught["scale"] * (caught["q"] @ caught["k"].swapaxes(-1, -2))
    assert caught["scale"] == pytest.approx(24**-0.5, rel=1e-15)
    np.testing.assert_allclose(
        decoupled.absorbed_scores(q, p, latent[:, None], r, w, scale=24**-0.5), expected, rtol=1e-6, atol=1e-6
    )
