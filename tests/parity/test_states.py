"""States that decay, in transformers, in its own precision: what no row of the corpus has (tests/parity/test_wild.py)."""

import types

import numpy as np
import pytest

from posref.state import convolution, gated

torch = pytest.importorskip("torch", reason="compares with PyTorch; pip install posref[parity]")


def double(x):
    return x.detach().double().numpy()


def painted(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32).astype(float)


def near(theirs, ours, size, roundings):
    """Within so many roundings to float32 of the sum of the sizes of the terms."""
    return abs(theirs - ours) <= roundings * 2.0**-24 * size


def test_bounded_gates_of_glm_5_next():
    """Its forget gate, with projections that are the identity and one rate per head."""
    glm = pytest.importorskip("transformers.models.glm5_next.modeling_glm5_next", reason="transformers has no GLM-5 Next")
    config = types.SimpleNamespace(linear_head_dim=6, linear_num_heads=2, hidden_size=6, linear_lower_bound=-5.0)
    gate, x, a_log, bias = glm.Glm5NextTextForgetGate(config), 4 * painted(1, 2, 7, 6), painted(2, 2), painted(3, 12)
    weights = {"f_a_proj.weight": np.eye(6), "f_b_proj.weight": np.tile(np.eye(6), (2, 1)), "dt_bias": bias, "A_log": a_log}
    gate.load_state_dict({name: torch.tensor(w, dtype=torch.float32) for name, w in weights.items()})
    theirs = double(gate(torch.tensor(x, dtype=torch.float32)))
    given = np.stack([x, x], axis=2), a_log[:, None], bias.reshape(2, 6)
    assert near(theirs, gated.bounded_log_gates(*given, lower_bound=-5.0), 5, 40).all()
    assert not near(theirs, gated.log_gates(*given), 5, 40).all()


def test_short_convolution_of_transformers():
    """Rows of an earlier text in front, in a cache that is written; a text without a past."""
    qwen = pytest.importorskip("transformers.models.qwen3_next.modeling_qwen3_next", reason="transformers has no Qwen3-Next")
    x, kernel, bias, before = painted(1, 2, 6, 3), painted(2, 3, 4), painted(3, 3), painted(4, 2, 3, 3)
    ours, rows = convolution.causal(x, kernel, bias, state=before)
    size = convolution.causal(abs(x), abs(kernel), abs(bias), state=abs(before)).output
    given = (x.swapaxes(1, 2), before.swapaxes(1, 2), kernel, bias)
    tensors = [torch.tensor(y, dtype=torch.float32) for y in given]
    step = double(qwen.causal_conv1d_update(*tensors)).swapaxes(1, 2)
    assert near(step, ours, size, 8).all()
    np.testing.assert_array_equal(double(tensors[1]).swapaxes(1, 2), rows)
    fresh = double(qwen.causal_conv1d_fn(tensors[0], tensors[2], tensors[3])).swapaxes(1, 2)
    assert near(fresh, convolution.causal(x, kernel, bias).output, size, 8).all()
    assert not near(fresh, ours, size, 8).all()
