"""States that decay: posref against what transformers and onnx compute, on the CPU, in their own precision."""

import types

import numpy as np
import pytest

from posref import attention
from posref.state import convolution, delta, gated

torch = pytest.importorskip("torch", reason="compares with PyTorch; pip install posref[parity]")


def double(x):
    return x.detach().double().numpy()


def painted(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32).astype(float)


def near(theirs, ours, size, roundings):
    """Within so many roundings to float32 of the sum of the sizes of the terms."""
    return abs(theirs - ours) <= roundings * 2.0**-24 * size


def flat(x):
    """(batch, heads, n, d) to (batch, n, heads d), as onnx has it."""
    return np.swapaxes(x, 1, 2).reshape(x.shape[0], x.shape[2], -1).astype(np.float32)


def by_onnx(rule, q, k, v, state, **more):
    """onnx's reference of LinearAttention, (batch, heads, n, d) in and out."""
    op = pytest.importorskip("onnx.reference.ops.op_linear_attention", reason="onnx has no LinearAttention")
    told = {"q_num_heads": q.shape[1], "kv_num_heads": k.shape[1], "scale": 0.5, "update_rule": rule}
    run = op.LinearAttention._run
    out, after = run(None, *map(flat, (q, k, v)), state.astype(np.float32), **{n: flat(x) for n, x in more.items()}, **told)
    return np.swapaxes(out.reshape(q.shape[0], q.shape[2], q.shape[1], -1), 1, 2).astype(float), after.astype(float)


@pytest.mark.parametrize("features", [1, 4])
def test_gated_linear_attention_of_onnx(features):
    """Four heads of queries on two of keys and values: the state is repeated for reading."""
    q, k, v, s = painted(1, 2, 4, 6, 4), painted(2, 2, 2, 6, 4), painted(3, 2, 2, 6, 3), painted(4, 2, 2, 4, 3)
    g = -abs(painted(5, 2, 2, 6, features))
    theirs, state = by_onnx("gated", q, k, v, s, decay=g)
    given = [attention.repeat_heads(x, heads=4) for x in (k, v, g, s)]
    ours = gated.chunked(q, *given[:3], scale=0.5, state_layout="kv", chunk=4, state=given[3])
    sizes = [abs(x) for x in given]
    size = gated.recurrent(abs(q), *sizes[:2], given[2], scale=0.5, state_layout="kv", state=sizes[3])
    assert near(theirs, ours.output, size.output, 40).all()
    assert near(state, ours.state[:, ::2], size.state[:, ::2], 40).all()
    late = np.concatenate([0 * given[2][..., :1, :], given[2][..., :-1, :]], axis=-2)
    other = gated.recurrent(q, *given[:2], late, scale=0.5, state_layout="kv", state=given[3])
    assert not near(theirs, other.output, size.output, 40).all()


def delta_text(features, key_heads=2):
    """q, k, v, beta, gates and a state; queries and keys of length 1, two heads of them for four of values."""
    q, k = (delta.unit(painted(tag, 2, key_heads, 7, 4), eps=1e-6) for tag in (1, 2))
    beta, gates = 1 / (1 + np.exp(painted(4, 2, 4, 7))), -abs(painted(5, 2, 4, 7, features))
    return q, k, painted(3, 2, 4, 7, 3), beta, gates, painted(6, 2, 4, 4, 3)


def compared(theirs, state, q, k, v, beta, gates, s, scale=0.5):
    """Their output and state beside ours, and beside the error of the state before its gate."""
    told = {"scale": scale, "state_layout": "kv", "state": s}
    ours = delta.recurrent(q, k, v, beta, gates, **told)
    chunks = delta.chunked(q, k, v, beta, gates, chunk=3, **told)
    np.testing.assert_allclose(chunks.output, ours.output, rtol=0, atol=200 * 2**-53)
    # sizes of terms: nothing cancels if errors are added
    sizes = [abs(x) for x in (q, k, v)]
    size = delta.recurrent(sizes[0], sizes[1], sizes[2], -beta, gates, scale=scale, state_layout="kv", state=-abs(s))
    bound = 60 * 2.0**-24 * (abs(size.output).max() + 1), 60 * 2.0**-24 * (abs(size.state).max() + 1)
    assert abs(theirs - ours.output).max() <= bound[0]
    assert abs(state - ours.state).max() <= bound[1]
    late = np.concatenate([0 * gates[..., :1, :], gates[..., :-1, :]], axis=-2)
    assert abs(theirs - delta.recurrent(q, k, v, beta, late, **told).output).max() > 100 * bound[0]


@pytest.mark.parametrize("form", ["torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule"])
def test_gated_delta_rule_of_qwen3_next(form):
    """Both implementations of transformers, from a state, with fewer heads of keys than of values."""
    qwen = pytest.importorskip("transformers.models.qwen3_next.modeling_qwen3_next", reason="transformers has no Qwen3-Next")
    q, k, v, beta, gates, s = delta_text(1)
    tensors = [torch.tensor(np.swapaxes(x, 1, 2), dtype=torch.float32) for x in (q, k, v, gates[..., 0], beta)]
    told = {"initial_state": torch.tensor(s, dtype=torch.float32), "output_final_state": True}
    theirs, state = getattr(qwen, form)(*tensors, **told, **({"chunk_size": 4} if "chunk" in form else {}))
    q, k = (attention.repeat_heads(x, heads=4) for x in (q, k))
    compared(double(theirs.transpose(1, 2)), double(state), q, k, v, beta, gates, s)
    tiled = np.concatenate([q[:, ::2]] * 2, axis=1)
    other = delta.recurrent(tiled, k, v, beta, gates, scale=0.5, state_layout="kv", state=s).output
    assert abs(double(theirs.transpose(1, 2)) - other).max() > 0.1


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


@pytest.mark.parametrize("features", [1, 4])
def test_delta_rule_of_onnx(features):
    q, k, v, beta, gates, s = delta_text(features, key_heads=4)
    theirs, state = by_onnx("gated_delta", q, k, v, s, decay=gates, beta=beta[..., None])
    compared(theirs, state, q, k, v, beta, gates, s)


def test_short_convolution_of_onnx_and_transformers():
    """Rows of an earlier text in front; onnx keeps width - 1 rows, transformers as many as it is given."""
    op = pytest.importorskip("onnx.reference.ops.op_causal_conv_with_state", reason="onnx has no CausalConvWithState")
    qwen = pytest.importorskip("transformers.models.qwen3_next.modeling_qwen3_next", reason="transformers has no Qwen3-Next")
    x, kernel, bias, before = painted(1, 2, 6, 3), painted(2, 3, 4), painted(3, 3), painted(4, 2, 3, 3)
    turned = [np.swapaxes(y, 1, 2).astype(np.float32) for y in (x, before)]
    weight = kernel[:, None].astype(np.float32)
    theirs, kept = op.CausalConvWithState._run(None, turned[0], weight, bias.astype(np.float32), turned[1])
    ours, rows = convolution.causal(x, kernel, bias, state=before)
    size = convolution.causal(abs(x), abs(kernel), abs(bias), state=abs(before)).output
    assert near(np.swapaxes(theirs, 1, 2), ours, size, 8).all()
    np.testing.assert_array_equal(np.swapaxes(kept, 1, 2), rows)
    tensors = [torch.tensor(y, dtype=torch.float32) for y in (turned[0], turned[1], kernel, bias)]
    step = double(qwen.causal_conv1d_update(*tensors)).swapaxes(1, 2)
    assert near(step, ours, size, 8).all()
    np.testing.assert_array_equal(double(tensors[1]).swapaxes(1, 2), rows)
    fresh = double(qwen.causal_conv1d_fn(tensors[0], tensors[2], tensors[3])).swapaxes(1, 2)
    assert near(fresh, convolution.causal(x, kernel, bias).output, size, 8).all()
    assert not near(fresh, ours, size, 8).all()
