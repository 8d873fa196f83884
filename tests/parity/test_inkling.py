"""Attention of transformers' Inkling and Inkling 2, layers with a window and without: the modules, on the CPU, in float64."""

import importlib

import numpy as np
import pytest

from posref import attention
from posref.relative import inkling

torch = pytest.importorskip("torch", reason="compares with PyTorch; pip install posref[parity]")
N, D, HEADS, WINDOW, EXTENT, AMOUNT, FLOOR = 11, 8, 4, 5, 3, 0.1, 4
U = 2**-24  # transformers computes temperatures, lengths and softmax in float32


def double(x):
    return x.detach().double().numpy()


def layer(model, windowed):
    """A layer with random numbers, its input, and what it hands to the softmax besides products and bias: a sink per query."""
    name = f"transformers.models.{model.lower()}."
    modeling = pytest.importorskip(f"{name}modeling_{model.lower()}", reason=f"no {model}")
    config = getattr(importlib.import_module(f"{name}configuration_{model.lower()}"), f"{model}TextConfig")(
        hidden_size=16,
        num_hidden_layers=1,
        layer_types=["hybrid_sliding" if windowed else "hybrid"],
        sliding_window_size=WINDOW,
        rel_extent=EXTENT,
        d_rel=2,
        log_scaling_alpha=AMOUNT,
        log_scaling_n_floor=FLOOR,
        **{f"{kind}{key}": n for kind in ("", "swa_") for key, n in (("head_dim", D), ("num_attention_heads", HEADS))},
        num_key_value_heads=2,
        swa_num_key_value_heads=2,
    )
    config._attn_implementation = "eager"
    kinds = {"Inkling": "Attention", "Inkling2": "SlidingAttention" if windowed else "FullAttention"}
    torch.manual_seed(1)
    module = getattr(modeling, model + kinds[model])(config, 0).double().eval()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module, torch.randn(2, N, 16, dtype=torch.float64)


@pytest.mark.parametrize("windowed", [True, False])
@pytest.mark.parametrize("model", ["Inkling", "Inkling2"])
def test_weights(model, windowed):
    module, x = layer(model, windowed)
    second, at = model == "Inkling2", np.arange(N)
    mask = attention.window_mask(at, at, width=WINDOW, causal=True) if windowed else attention.causal_mask(at, at)
    keys = (x, x) if second and not windowed else ()
    added = torch.tensor(np.where(mask, 0, -np.inf))
    with torch.no_grad():
        got = double(module(x, *keys, attention_mask=added, position_ids=torch.arange(N)[None])[1])
        q, r = (part(x).view(2, N, HEADS, -1) for part in (module.q_proj, module.r_proj))
        k = module.k_sconv(module.k_proj(x), *keys[:1]).view(2, N, 2, D)
        q, k = (module.q_l2_clip(q), module.k_l2_clip(k)) if second else (module.q_norm(q), module.k_norm(k))
        q, k, r = (double(part.transpose(1, 2)) for part in (q, k, module.rel_l2_clip(r) if second else r))
    given = {"scale": D**-0.5 if second else 1 / D, "amount": 0 if windowed else AMOUNT, "floor": FLOOR}
    s = inkling.scores(q, k, r, double(module.rel_logits_proj.proj), at, at, **given)
    if second:  # a sink is one key more, of the query's own
        sinks = double(module.sink_proj(x)).transpose(0, 2, 1)[..., None]
        s, mask = np.concatenate([sinks, s], axis=-1), np.concatenate([mask[:, :1] | True, mask], axis=-1)
    right = attention.softmax(s, mask)[..., second:]
    # products, temperature and bias are rounded three times at most, and a weight moves by twice the error of the scores
    size = inkling.scores(*map(abs, (q, k, r)), abs(double(module.rel_logits_proj.proj)), at, at, **given).max()
    np.testing.assert_allclose(got, right, rtol=0, atol=(2 * 3 * size + N + 4) * U)
    assert abs(inkling.temperature(at, amount=AMOUNT, floor=FLOOR)[-1] - 1) > 0.05


@pytest.mark.parametrize("model", ["Inkling", "Inkling2"])
def test_bias(model):
    """The module takes positions, with gaps and without a query at the end of the keys."""
    module = layer(model, False)[0]
    r, queries, keys = torch.randn(2, 3, HEADS, 2, dtype=torch.float64), np.array([7, 2, 40]), np.array([1, 2, 7, 5, 38, 9, 4])
    got = double(module.rel_logits_proj(r, torch.tensor(queries), torch.tensor(keys)))
    right = inkling.bias(double(r.transpose(1, 2)), double(module.rel_logits_proj.proj), queries, keys)
    np.testing.assert_allclose(got, right, rtol=0, atol=1e-14)
