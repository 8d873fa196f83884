"""Content-dependent relative scores against real libraries and against the released algorithms, written out here.

XLNet and Wav2Vec2-BERT run in transformers. Transformer-XL, tensor2tensor's Shaw, NEZHA and TUPE cannot be installed
any more: their released order of operations (reshapes, one-hot products, rows overwritten in place) is repeated in torch.
"""

import types

import numpy as np
import pytest

from posref import attention, offsets
from posref.absolute import sinusoidal
from posref.relative import nezha, shaw, transformer_xl, tupe, xlnet

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


@pytest.mark.parametrize(("n_query", "n_key"), [(6, 6), (4, 7)])
def test_wav2vec2_bert_relative_key(n_query, n_key):
    module = pytest.importorskip(
        "transformers.models.wav2vec2_bert.modeling_wav2vec2_bert", reason="compares with transformers"
    )
    left, right = 3, 1
    table = torch.nn.Embedding.from_pretrained(normal(3, left + right + 1, DIM))
    layer = types.SimpleNamespace(
        left_max_position_embeddings=left, right_max_position_embeddings=right, distance_embedding=table, scaling=0.5
    )
    q, k = normal(4, BATCH, HEADS, n_query, DIM), normal(5, BATCH, HEADS, n_key, DIM)
    _, position = module._apply_relative_key_position_encoding(layer, q, k)
    rows = double(table.weight)
    odd = np.concatenate([rows, np.repeat(rows[-1:], left - right, axis=0)])
    steps = offsets.offsets(np.arange(n_query), np.arange(n_key))
    got = shaw.scores(double(q), double(k), odd, steps, scale=0.5)
    content = double(0.5 * q @ k.mT)
    size = 0.5 * (size_of_terms((double(q), double(k))) + np.abs(double(q)).sum(-1, keepdims=True) * np.abs(rows).max())
    assert (np.abs(got - (content + double(position))) <= 2 * (DIM + 4) * unit(q.dtype) * size).all()


# Released algorithms, repeated step by step


@pytest.mark.parametrize(("n_query", "memory"), [(4, 0), (3, 5), (1, 6)])
def test_transformer_xl_released_order(n_query, memory):
    """Sequence first, (q, k, batch, h); pad a column in front, exchange the axes by a reshape, drop a row, mask, scale."""
    n_key, width = n_query + memory, MODEL
    hidden, memories = normal(6, n_query, BATCH, width), normal(7, memory, BATCH, width)
    every = torch.cat([memories, hidden])
    to_q, to_k, to_r = (normal(seed, width, HEADS, DIM) for seed in (8, 9, 10))
    u, v = normal(11, HEADS, DIM), normal(12, HEADS, DIM)
    inverse = 1 / 10000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.outer(torch.arange(n_key - 1, -1, -1, dtype=torch.float64), inverse)
    r = torch.einsum("mw,whd->mhd", torch.cat([angle.sin(), angle.cos()], dim=-1), to_r)
    q, k = torch.einsum("ibw,whd->ibhd", hidden, to_q), torch.einsum("jbw,whd->jbhd", every, to_k)
    content = torch.einsum("ibhd,jbhd->ijbh", q + u, k)
    position = torch.einsum("ibhd,jhd->ijbh", q + v, r)
    padded = torch.cat([torch.zeros(n_query, 1, BATCH, HEADS, dtype=q.dtype), position], dim=1)
    shifted = padded.reshape(n_key + 1, n_query, BATCH, HEADS)[1:].reshape(n_query, n_key, BATCH, HEADS)
    future = torch.triu(torch.ones(n_query, n_key), diagonal=1 + memory).bool()[:, :, None, None]
    scaled = ((content + shifted) / DIM**0.5).masked_fill(future, -float("inf"))
    weights = double(torch.softmax(scaled, dim=1)).transpose(2, 3, 0, 1)

    distances = transformer_xl.distances(n_query, n_key, bidirectional=False)
    embedded = transformer_xl.embeddings(distances, sinusoidal.frequencies(width)) @ double(to_r).transpose(1, 0, 2)
    got = transformer_xl.scores(heads_first(q), heads_first(k), embedded, double(u), double(v), scale=1 / np.sqrt(DIM))
    visible = transformer_xl.visible(n_query, n_key)
    want = double(scaled).transpose(2, 3, 0, 1)
    # r: angles of at most 8 off by 4 units, a product of width 12; then products of DIM, 2 sums, the scale. All terms
    # below are at most `size`.
    rows = np.abs(double(to_r)).sum(0).max()
    size = size_of_terms((np.abs(heads_first(q)) + np.abs(double(u))[:, None], heads_first(k)))
    size = size + (np.abs(heads_first(q)) + np.abs(double(v))[:, None]).sum(-1, keepdims=True) * rows
    bound = (2 * (DIM + 6) + 2 * (8 * 4 + width)) * unit(q.dtype) * size
    assert (np.abs(got - np.where(visible, want, 0)) <= bound).all()
    # The logarithm of a weight is off by at most the largest error of its row, twice (numerator and sum), plus the softmax.
    error = 2 * bound.max(-1, keepdims=True) + (n_key + 8) * unit(q.dtype)
    assert (np.abs(attention.softmax(got, visible) - weights) <= error).all()


def released_shaw(q, k, v, key_rows, value_rows, scale):
    """Length first: one matrix product a query position with its (n_key, d) block, as tensor2tensor and NEZHA order it."""
    batch, heads, n_query, _dim = q.shape

    def with_positions(x, blocks):
        flat = x.permute(2, 0, 1, 3).reshape(n_query, batch * heads, -1)
        return (flat @ blocks).reshape(n_query, batch, heads, -1).permute(1, 2, 0, 3)

    weights = torch.softmax((q @ k.mT + with_positions(q, key_rows.mT)) * scale, dim=-1)
    return weights @ v + with_positions(weights, value_rows)


def softmax_bound(q, k, rows, v, value_rows, scale):
    """Half of it: error of the logarithm of a weight, twice, the sums over the keys; times the largest |v + a|."""
    size = scale * (size_of_terms((q, k)) + np.abs(q).sum(-1, keepdims=True) * np.abs(rows).max())
    n_key = k.shape[-2]
    return (2 * (DIM + 4) * size.max() + 2 * n_key + 5) * 2.0**-52 * (np.abs(v).max() + np.abs(value_rows).max())


@pytest.mark.parametrize(("n_query", "n_key"), [(6, 6), (3, 7), (1, 5)])
def test_tensor2tensor_shaw(n_query, n_key):
    """Queries at the end of the keys, clipped, shifted to 0 .. 2k, looked up; the caller scales q."""
    k_max, scale = 2, DIM**-0.5
    q, k, v = normal(13, BATCH, HEADS, n_query, DIM), normal(14, BATCH, HEADS, n_key, DIM), normal(15, BATCH, HEADS, n_key, DIM)
    key_table, value_table = normal(16, 2 * k_max + 1, DIM), normal(17, 2 * k_max + 1, DIM)
    positions = torch.arange(n_key)
    index = (positions[None, :] - positions[-n_query:, None]).clamp(-k_max, k_max) + k_max
    want = released_shaw(q * scale, k, v, key_table[index], value_table[index], 1)
    steps = offsets.offsets(np.arange(n_key - n_query, n_key), np.arange(n_key))
    arrays = [double(x) for x in (q, k, v, key_table, value_table)]
    got = shaw.attend(*arrays, steps, scale=scale)
    bound = 2 * softmax_bound(arrays[0], arrays[1], arrays[3], arrays[2], arrays[4], scale)
    assert np.abs(got - double(want)).max() <= bound


def test_nezha_released_table_and_attention():
    """The table filled number by number over 0 .. 2k, looked up by a product with one-hot rows."""
    k_max, n = 3, 9
    table = torch.zeros(2 * k_max + 1, DIM, dtype=torch.float64)
    for index in range(2 * k_max + 1):
        for pair in range(DIM // 2):
            angle = index / np.power(10000, 2 * pair / DIM)
            table[index, 2 * pair], table[index, 2 * pair + 1] = float(np.sin(angle)), float(np.cos(angle))
    rows = nezha.table(k_max, DIM, convention="released")
    # Two ways to the same angle of at most 6, either off by 3 units, and a sine each.
    assert np.abs(rows - double(table)).max() <= (6 * 6 + 2) * unit(table.dtype)
    assert np.abs(nezha.table(k_max, DIM, convention="paper") - double(table)).max() > 1

    distance = torch.arange(n)[None, :].repeat(n, 1)
    index = (distance - distance.T).clamp(-k_max, k_max) + k_max
    blocks = (torch.nn.functional.one_hot(index.reshape(-1), 2 * k_max + 1).double() @ table).reshape(n, n, DIM)
    q, k, v = (normal(seed, BATCH, HEADS, n, DIM) for seed in (18, 19, 20))
    want = double(released_shaw(q, k, v, blocks, blocks, DIM**-0.5))
    steps = offsets.offsets(np.arange(n), np.arange(n))
    arrays = [double(x) for x in (q, k, v)]
    got = nezha.attend(*arrays, rows, steps, scale=DIM**-0.5)
    table_error = (6 * 6 + 2) * unit(table.dtype) * (2 * DIM**0.5 * np.abs(arrays[0]).max() * np.abs(arrays[2]).max() * 2 + 1)
    bound = 2 * softmax_bound(arrays[0], arrays[1], rows, arrays[2], rows, DIM**-0.5) + table_error
    assert np.abs(got - want).max() <= bound
    wrong = nezha.attend(*arrays, nezha.table(k_max, DIM, convention="paper"), steps, scale=DIM**-0.5)
    assert np.abs(wrong - want).max() > 1e6 * bound


@pytest.mark.parametrize("with_bias", [False, True])
def test_tupe_released_order(with_bias):
    """Normalized table with an extra row, projections with biases, column then row overwritten, bias added, content added."""
    n, bins = 5, 8
    scale = float(2 * DIM) ** -0.5
    table = torch.nn.functional.layer_norm(normal(21, n + 1, MODEL), (MODEL,), normal(22, MODEL), normal(23, MODEL))
    w_q, w_k, b_q, b_k = normal(24, MODEL, MODEL), normal(25, MODEL, MODEL), normal(26, MODEL), normal(27, MODEL)
    split = lambda x: x.reshape(-1, HEADS, DIM).transpose(0, 1)  # noqa: E731
    pos_q = split(torch.nn.functional.linear(table, w_q, b_q)) * scale
    pos_k = split(torch.nn.functional.linear(table, w_k, b_k))
    bias = torch.bmm(pos_q, pos_k.mT)
    first, second = bias[:, 0, 0].clone(), bias[:, 1, 1].clone()
    bias = bias[:, 1:, 1:].clone()
    bias[:, :, 0] = second[:, None]
    bias[:, 0, :] = first[:, None]
    by_bucket = normal(28, bins + 1, HEADS)
    buckets = (torch.arange(n)[None, :] - torch.arange(n)[:, None]).clamp(-2, 2) + 5  # any buckets; never bins // 2 = 4 or 8
    buckets[buckets == 4] = 2
    inner = buckets.clone()
    buckets[:, 0] = bins
    buckets[0, :] = bins // 2
    if with_bias:
        bias = bias + by_bucket[buckets].permute(2, 0, 1)
    q, k = normal(29, BATCH, HEADS, n, DIM), normal(30, BATCH, HEADS, n, DIM)
    want = double((q * scale) @ k.mT + bias)

    p = np.concatenate([double(table), np.ones((n + 1, 1))], axis=-1)
    per_head = lambda w, b: np.concatenate([double(w).T, double(b)[None]]).reshape(MODEL + 1, HEADS, DIM).transpose(1, 0, 2)  # noqa: E731
    u_q, u_k = per_head(w_q, b_q), per_head(w_k, b_k)
    parts = tupe.untie(tupe.positional_scores(p, u_q, u_k, scale=scale))
    relative = double(by_bucket[inner]).transpose(2, 0, 1)
    own = tupe.reset(relative, double(by_bucket[bins // 2]), double(by_bucket[bins]))
    chosen = {"relative_bias": own} if with_bias else {}
    got = tupe.scores(double(q), double(k), *parts, scale=scale, convention="released", **chosen)
    size = scale * (np.abs(p) @ np.abs(u_q)).max() * (np.abs(p) @ np.abs(u_k)).max() * DIM
    size = size + scale * size_of_terms((double(q), double(k))).max() + np.abs(double(by_bucket)).max()
    # Projections over MODEL + 1 features on both sides, products of DIM, scale, sums of 3 parts; two computations.
    assert np.abs(got - want).max() <= 2 * (2 * (MODEL + 1) + DIM + 6) * unit(q.dtype) * size
    if with_bias:
        theta = (parts.cls_to_other + double(by_bucket[bins // 2]), parts.other_to_cls + double(by_bucket[bins]))
        paper = tupe.scores(
            double(q), double(k), parts.position_scores, *theta, scale=scale, convention="paper", relative_bias=relative
        )
        assert np.abs(paper - want).max() <= 2 * (2 * (MODEL + 1) + DIM + 6) * unit(q.dtype) * size
