"""Attention of transformers with a sink, with a cap, and with decoupled RoPE."""

from types import SimpleNamespace

import numpy as np
import pytest

from posref import attention
from posref.rotary import decoupled, rope

torch = pytest.importorskip("torch", reason="pip install posref[parity]")
pytest.importorskip("transformers", reason="pip install posref[parity]")

rng = np.random.default_rng(0)
Q, K, V = rng.normal(size=(2, 4, 5, 8)), rng.normal(size=(2, 2, 5, 8)), rng.normal(size=(2, 2, 5, 8))
CAUSAL = attention.causal_mask(np.arange(5), np.arange(5))
MASK = torch.tensor(np.where(CAUSAL, 0.0, -1e30))[None, None]


def eager(model, **module):
    """The eager attention of a model in float64, for 4 query heads and 2 key heads: (batch, heads, n, d)."""
    from importlib import import_module

    function = import_module(f"transformers.models.{model}.modeling_{model}").eager_attention_forward
    named = {name: module.pop(name) for name in ("softcap",) if name in module}
    given = SimpleNamespace(num_key_value_groups=2, training=False, head_dim=8, **module)
    q, k, v = (torch.tensor(x) for x in (Q, K, V))
    return function(given, q, k, v, MASK, scaling=0.5, dropout=0.0, **named)[0].numpy().swapaxes(1, 2)


def ours(**more):
    k, v = (attention.repeat_heads(x, heads=4) for x in (K, V))
    return attention.attend(Q, k, v, scale=0.5, mask=CAUSAL, **more)


def test_gpt_oss_sinks():
    sinks = np.array([-1.0, 0.0, 0.5, 3.0])
    got = eager("gpt_oss", sinks=torch.tensor(sinks))
    np.testing.assert_allclose(got, ours(sinks=sinks[:, None]), rtol=1e-12, atol=1e-12)


def test_gemma_2_softcap():
    """Its softmax is made in float32 whatever comes in."""
    np.testing.assert_allclose(eager("gemma2", softcap=0.75), ours(softcap=0.75), rtol=4e-6, atol=4e-6)


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
