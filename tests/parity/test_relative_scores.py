"""Content-dependent relative scores of XLNet; test_originals.py has what can no longer be installed."""

import numpy as np
import pytest

from posref.absolute import sinusoidal
from posref.relative import transformer_xl, xlnet

torch = pytest.importorskip("torch", reason="compares with PyTorch; pip install posref[parity]")

BATCH, HEADS, DIM = 2, 3, 4
MODEL = HEADS * DIM


def unit(dtype):
    """Half the distance of 1 to the next number."""
    return float(np.finfo(np.dtype(str(dtype).removeprefix("torch."))).eps) / 2


def normal(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def double(x):
    """A torch tensor as a float64 array, exactly."""
    return x.detach().double().numpy()


def heads_first(x):
    """(n, batch, h, d), as XLNet keeps it, to (batch, h, n, d)."""
    return double(x).transpose(1, 2, 0, 3)


def size_of_terms(*products):
    """Sum of |x| |y| over the products: what the rounding of a sum of dot products is measured in."""
    return sum(np.abs(x) @ np.swapaxes(np.abs(y), -1, -2) for x, y in products)


# Real libraries


@pytest.fixture
def xlnet_model():
    transformers = pytest.importorskip("transformers", reason="compares with transformers; pip install posref[parity]")

    def build(dtype, **settings):
        torch.manual_seed(0)
        config = transformers.XLNetConfig(
            vocab_size=11, d_model=MODEL, n_head=HEADS, n_layer=1, d_inner=8, initializer_range=1.0, **settings
        )
        return transformers.XLNetModel(config).to(dtype).eval()

    return build


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("attn_type", ["bi", "uni"])
@pytest.mark.parametrize("memory", [0, 3])
@pytest.mark.parametrize("bi_data", [False, True])
def test_xlnet_scores(xlnet_model, monkeypatch, bi_data, memory, attn_type, dtype):
    model = xlnet_model(dtype, attn_type=attn_type, bi_data=bi_data, clamp_len=4)
    layer, n_query = model.layer[0].rel_attn, 5
    n_key = n_query + memory
    hidden, memories = normal(1, n_query, BATCH, MODEL, dtype=dtype), normal(2, memory, BATCH, MODEL, dtype=dtype)
    r = model.relative_positional_encoding(n_query, n_key, bsz=BATCH).to(dtype)
    segments = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]])
    all_segments = torch.cat([torch.zeros(BATCH, memory, dtype=segments.dtype), segments], dim=1)
    differ = (segments.T[:, None] != all_segments.T[None, :]).long()
    one_hot = torch.nn.functional.one_hot(differ, 2).to(dtype)

    monkeypatch.setattr(torch.nn.functional, "softmax", lambda scores, dim: scores)  # so that the scores come out
    with torch.no_grad():
        *_, released = layer(hidden, None, None, None, r, one_hot, mems=memories, output_attentions=True)
        every = torch.cat([memories, hidden])
        project = lambda x, weight: torch.einsum("ibh,hnd->ibnd", x, weight)  # noqa: E731
        q, k, keys_r = (heads_first(project(x, w)) for x, w in ((hidden, layer.q), (every, layer.k), (r, layer.r)))

    u, v, s, e = (double(x) for x in (layer.r_w_bias, layer.r_r_bias, layer.r_s_bias, layer.seg_embed))
    same = (segments[:, None, :, None] == all_segments[:, None, None, :]).numpy()
    got = xlnet.scores(q, k, keys_r, e, u, v, s, same, scale=1 / np.sqrt(DIM))
    want = double(released).transpose(2, 3, 0, 1)
    size = size_of_terms((np.abs(q) + np.abs(u)[:, None], k))
    size = size + transformer_xl.scores(np.abs(q), 0 * k, np.abs(keys_r)[..., 1:, :], 0 * u, np.abs(v), scale=1)
    size = size + size_of_terms((np.abs(q) + np.abs(s)[:, None], np.swapaxes(np.abs(e), 0, 1))).sum(-1, keepdims=True)
    # One product is off by 2 units (sum with the bias, product), its sum over DIM by DIM more, then the sum of the
    # parts 2 and the scale 2; the specification computes in float64, so twice that covers both.
    bound = 2 * (DIM + 6) * unit(dtype) * size / np.sqrt(DIM)
    defined = np.ones((n_query, n_key), bool) if attn_type == "bi" else transformer_xl.visible(n_query, n_key)
    assert got.shape == want.shape == (BATCH, HEADS, n_query, n_key)
    assert (np.abs(got - want) <= bound)[..., defined].all()
    assert (got[..., ~defined] == 0).all()


@pytest.mark.parametrize(("attn_type", "clamp_len"), [("bi", None), ("uni", None), ("bi", 3)])
def test_xlnet_distances_and_sinusoid(xlnet_model, attn_type, clamp_len):
    model = xlnet_model(torch.float32, attn_type=attn_type, clamp_len=clamp_len or -1)
    released = double(model.relative_positional_encoding(4, 7))[:, 0]
    distances = xlnet.distances(4, 7, attn_type=attn_type, clamp_len=clamp_len)
    w = sinusoidal.frequencies(MODEL)
    angle = np.abs(distances[:, None] * w)
    # float32: the frequency is off by 4 units (exponent, power, quotient), the angle by 1 more, its sine by 1.
    bound = (np.concatenate([angle, angle], axis=-1) * 5 * max(1.0, np.log(1e4)) + 2) * unit(torch.float32)
    assert (np.abs(transformer_xl.embeddings(distances, w) - released) <= bound).all()
