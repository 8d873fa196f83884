"""Relative encodings of x-transformers against the specification: its own modules, in float64."""

import numpy as np
import pytest

from posref.relative import cope, forgetting

torch = pytest.importorskip("torch", reason="needs torch: pip install posref[parity]")
theirs = pytest.importorskip("x_transformers.x_transformers", reason="needs x-transformers: pip install posref[parity]")

TOLERANCE = {"rtol": 1e-12, "atol": 1e-12}  # float64 on both sides, sums of at most ten numbers below 100


@pytest.fixture(autouse=True)
def in_float64():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def numpy(tensor):
    return tensor.detach().numpy()


@pytest.mark.parametrize("causal", [True, False])
def test_forgetting(causal):
    module = theirs.DataDependentAlibi(6, 3, causal=causal)
    x = torch.randn(2, 10, 6)
    gates = forgetting.log_sigmoid(np.swapaxes(numpy(module.to_forget_gates[0](x)), -1, -2))
    bias = [forgetting.bias(each, form="difference") for each in np.split(gates, gates.shape[1] // 3, axis=1)]
    expected = bias[0] if causal else np.tril(bias[0]) - np.triu(bias[1])
    np.testing.assert_allclose(numpy(module(x)), expected, **TOLERANCE)


def test_cope():
    module = theirs.CoPE(4, 3, 5)
    torch.nn.init.normal_(module.pos_emb)
    q, k, mask = torch.randn(2, 3, 7, 4), torch.randn(2, 3, 7, 4), np.tri(7, dtype=bool)
    logits = (q @ k.transpose(-1, -2) / 2).masked_fill(~torch.from_numpy(mask), -torch.finfo(q.dtype).max)
    expected = numpy(logits + module(q, logits))
    ours = cope.scores(numpy(q), numpy(k), numpy(module.pos_emb), mask, scale=0.5, convention="nodiv")
    np.testing.assert_allclose(ours[..., mask], expected[..., mask], **TOLERANCE)
