"""Relative encodings of x-transformers against the specification: its own modules, in float64."""

import numpy as np
import pytest

from posref.relative import cope, forgetting
from posref.rotary import pope, rope

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


def polar(module, x, positions, side, heads):
    """Their encoded queries or keys, in float32 inside."""
    freqs, phases = module(torch.tensor(positions))
    return numpy(theirs.apply_polar_pos_emb(x, freqs + phases if side == "key" else freqs.expand(heads, -1, -1)))


@pytest.mark.parametrize("side", ["query", "key"])
def test_pope(side):
    """Phases on both sides of where they are clamped. Angles below 10 in float32: a frequency has four roundings in its power,
    the product, the sum and the sine have one each; lengths below 3 have four."""
    module = theirs.PolarEmbedding(6, 3)
    torch.nn.init.uniform_(module.learned_bias, -12, 4)
    x, positions = torch.rand(2, 3, 7, 6) * 4 - 2, np.arange(1, 8)
    phases, w = numpy(module.learned_bias)[:, 0], pope.frequencies(6)
    assert (phases < -2 * np.pi).any()
    assert (phases > 0).any()
    tables = pope.tables(positions[None], w, pope.clamp(phases)) if side == "key" else rope.tables(positions[None, None], w)
    ours = pope.encode(numpy(x), *tables, layout="half")
    expected = polar(module, x, positions, side, 3)
    assert np.abs(ours - expected).max() <= 3 * (10 * (2 * np.log(1e4) + 7) + 4) * 2.0**-24
    other = pope.encode(numpy(x), *tables, layout="interleaved")
    assert np.abs(other - expected).max() > 0.1


def test_pope_adds_texts_to_heads():
    """Its phases (heads, 1, d) meet angles (texts, n, d): refused, or with as many texts as heads the phases of other heads."""
    module = theirs.PolarEmbedding(4, 3)
    with pytest.raises(RuntimeError, match="size of tensor"):
        polar(module, torch.rand(2, 3, 5, 4), np.arange(10).reshape(2, 5), "key", 3)
    torch.nn.init.uniform_(module.learned_bias, -6, 0)
    x, positions = torch.rand(3, 3, 5, 4), np.arange(15).reshape(3, 5)
    got, phases = polar(module, x, positions, "key", 3), numpy(module.learned_bias)[:, 0]
    ours = pope.encode(numpy(x), *pope.tables(positions, pope.frequencies(4), phases), layout="half")
    assert np.abs(got[[0, 1, 2], [0, 1, 2]] - ours[[0, 1, 2], [0, 1, 2]]).max() < 1e-5  # text h and head h
    assert np.abs(got[0, 1] - ours[0, 1]).max() > 0.1
