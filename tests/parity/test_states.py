"""States that decay: posref against what transformers and onnx compute, on the CPU, in their own precision."""

import numpy as np
import pytest

from posref.state import retention

torch = pytest.importorskip("torch", reason="compares with PyTorch; pip install posref[parity]")


def unit(dtype):
    return float(np.finfo(np.dtype(str(dtype).removeprefix("torch."))).eps) / 2


def double(x):
    return x.detach().double().numpy()


@pytest.mark.parametrize("n", [1, 4, 11])
def test_lightning_attention_of_minimax(n):
    """Blocks of 4, in float64: what enters the norm, and the state, from the layer's own projections."""
    minimax = pytest.importorskip("transformers.models.minimax.modeling_minimax", reason="transformers has no MiniMax")
    heads, d = 3, 4
    config = minimax.MiniMaxConfig(
        hidden_size=heads * d,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=d,
        num_hidden_layers=2,
        block_size=4,
        layer_types=["linear_attention"] * 2,
    )
    torch.manual_seed(1)
    layer, seen = minimax.MiniMaxLightningAttention(config, 0).double(), []
    layer.norm.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    x = torch.randn(2, n, heads * d, dtype=torch.float64)
    _, state = layer(x, None, None)
    parts = torch.split(layer.act_fn(layer.qkv_proj(x)).reshape(2, n, heads, 3 * d), d, dim=3)
    q, k, v = (double(part.transpose(1, 2)) for part in parts)
    decays = np.exp(-double(layer.slope_rate).ravel())
    ours = retention.recurrent(q, k, v, decays, scale=1)
    size = retention.recurrent(*map(abs, (q, k, v)), decays, scale=1)
    theirs = double(seen[0]).reshape(2, n, heads, d).transpose(0, 2, 1, 3)
    # factors are float32 powers of e, of exponents that were rounded too; the rest is float64
    bound = (4 + n) * unit(torch.float32)
    assert (abs(theirs - ours.output) <= bound * size.output).all()
    assert (abs(double(state) - ours.state) <= bound * size.state).all()
    other = retention.recurrent(q, decays[:, None, None] * k, v, decays, scale=1)
    assert n == 1 or (abs(theirs - other.output) > bound * size.output).any()
