"""Right formulas with a wrong number, as others write them."""

import math

import numpy as np
import torch


def offset(query_positions, key_positions):
    return torch.from_numpy(key_positions[..., None, :] - query_positions[..., :, None])


def bucket(o, buckets, max_distance):
    """T5's, for both directions."""
    half = buckets // 2
    exact, n = half // 2, o.abs()
    far = exact + (torch.log(n.clamp(min=1).double() / exact) / math.log(max_distance / exact) * (half - exact)).long()
    return half * (o > 0) + torch.where(n < exact, n, far.clamp(max=half - 1))


def t5_of_64(query_positions, key_positions, table):
    return torch.from_numpy(table)[bucket(offset(query_positions, key_positions), 32, 64)].permute(0, 3, 1, 2)


def t5_of_wavlm(query_positions, key_positions, table):
    return torch.from_numpy(table)[bucket(offset(query_positions, key_positions), 32, 800)].permute(0, 3, 1, 2)


def t5_of_64_in_bfloat16(query_positions, key_positions, table):
    return t5_of_64(query_positions, key_positions, table).to(torch.bfloat16)


def t5_of_16_buckets(query_positions, key_positions, table):
    return torch.from_numpy(table)[bucket(offset(query_positions, key_positions), 16, 128)].permute(0, 3, 1, 2)


def bucket_of_16(offsets, bidirectional):
    return bucket(torch.from_numpy(offsets), 16, 128)


def bucket_of_300(offsets, bidirectional):
    return bucket(torch.from_numpy(offsets), 32, 300)


def attend_with_t5_of_64(q, k, v, query_positions, key_positions, table):
    q, k, v, bias = map(torch.as_tensor, (q, k, v, t5_of_64(query_positions, key_positions, table)))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=1.0)


def log_bucket(o, buckets, max_position):
    """DeBERTa's, as in transformers."""
    o, mid = torch.as_tensor(o), buckets // 2
    inside = (o < mid) & (o > -mid)
    size = torch.where(inside, torch.tensor(mid - 1), o.abs())
    far = torch.ceil(torch.log(size / mid) / math.log((max_position - 1) / mid) * (mid - 1)) + mid
    return torch.where(size <= mid, o.double(), far * torch.sign(o)).long()


def log_bucket_of_120(offsets):
    return log_bucket(offsets, 16, 120)


def log_scores_right(q, k, q_r, k_r, query_positions, key_positions):
    return log_scores(q, k, q_r, k_r, log_bucket(offset(query_positions, key_positions), 16, 60))


def log_scores_of_other_positions(q, k, q_r, k_r, query_positions, key_positions):
    return log_scores(q, k, q_r, k_r, log_bucket(offset(query_positions, key_positions), 16, 120))


def log_scores_of_eight_buckets(q, k, q_r, k_r, query_positions, key_positions):
    return log_scores(q, k, q_r[:, :16], k_r[:, :16], log_bucket(offset(query_positions, key_positions), 8, 60))


def log_scores(q, k, q_r, k_r, o):
    """Both terms, as in transformers."""
    q, k, q_r, k_r = map(torch.from_numpy, (q, k, q_r, k_r))
    span, o = k_r.shape[-2] // 2, -o[:, None]
    index = (o + span).clamp(0, 2 * span - 1).expand(-1, q.shape[1], -1, -1)
    c2p = torch.gather(q @ k_r.mT, -1, index)
    p2c = torch.gather(k @ q_r.mT, -1, index.mT).mT
    return (q @ k.mT + c2p + p2c) / math.sqrt(3 * q.shape[-1])


def slopes(heads):
    return torch.tensor([2.0 ** (-8 * (h + 1) / heads) for h in range(heads)])


def alibi_of_64_heads(query_positions, key_positions):
    return slopes(64)[:16, None, None] * offset(query_positions, key_positions)[:, None]


def alibi_of_half_the_heads(query_positions, key_positions):
    return torch.cat([slopes(8), slopes(8)])[:, None, None] * offset(query_positions, key_positions)[:, None]


def alibi_to_16(query_positions, key_positions):
    return slopes(16)[:, None, None] ** 2 * offset(query_positions, key_positions)[:, None]


def kerple(query_positions, key_positions, p, a):
    distance = offset(query_positions, key_positions)[:, None].abs()
    return -torch.from_numpy(p)[:, None, None] * torch.log1p(torch.from_numpy(a)[:, None, None] * distance)


def kerple_of_twice_a(query_positions, key_positions, p, a):
    return kerple(query_positions, key_positions, p, 2 * a)


def kerple_of_squares(query_positions, key_positions, p, a):
    return kerple(query_positions, key_positions, p**2, a)


def kerple_in_base_two(query_positions, key_positions, p, a):
    return kerple(query_positions, key_positions, p, a) / math.log(2)


def fire(i, j, layers, c=0.125, threshold=4.0):
    w_1, b_1, w_2, b_2 = (torch.from_numpy(x).double() for x in layers)
    distance, i = offset(i, j).abs(), torch.from_numpy(i)[..., None].double()
    x = torch.log1p(c * distance) / (torch.log1p(c * i.clamp(min=threshold)) + 2.0**-20)
    return (torch.relu(x[..., None] * w_1 + b_1) @ w_2 + b_2).movedim(-1, -3)


def fire_of_a_quarter(query_positions, key_positions, w_1, b_1, w_2, b_2):
    return fire(query_positions, key_positions, (w_1, b_1, w_2, b_2), c=0.25)


def fire_from_eight(query_positions, key_positions, w_1, b_1, w_2, b_2):
    return fire(query_positions, key_positions, (w_1, b_1, w_2, b_2), threshold=8.0).float()


def fire_of_the_square(query_positions, key_positions, w_1, b_1, w_2, b_2):
    w_1, b_1, w_2, b_2 = (torch.from_numpy(x).double() for x in (w_1, b_1, w_2, b_2))
    i = torch.from_numpy(query_positions)[..., None].double()
    x = torch.log1p(0.125 * offset(query_positions, key_positions).abs()) / (torch.log1p(0.125 * i.clamp(min=4.0)) + 2.0**-20)
    return (torch.relu(x[..., None] ** 2 * w_1 + b_1) @ w_2 + b_2).movedim(-1, -3)


def sandwich(o, heads, dim, base):
    w = base ** (-2 * torch.arange(1, dim // 2 + 1, dtype=torch.float64) / dim)
    return (torch.cos(o[:, None, ..., None] * w) - 1).sum(-1) * heads / (8 * torch.arange(1, heads + 1)[:, None, None])


def sandwich_of_64(query_positions, key_positions):
    return sandwich(offset(query_positions, key_positions), 4, 64, 10000.0)


def sandwich_of_a_hundred(query_positions, key_positions):
    return sandwich(offset(query_positions, key_positions), 4, 128, 100.0)


def sandwich_of_eight_heads(query_positions, key_positions):
    return sandwich(offset(query_positions, key_positions), 8, 128, 10000.0)[:, :4]


def turned(x, positions, base):
    half = x.shape[-1] // 2
    x = torch.from_numpy(x).double()
    w = base ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.from_numpy(positions)[:, None, :, None] * w
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def rope_scores_of_a_million(q, k, query_positions, key_positions):
    return turned(q, query_positions, 1e6) @ turned(k, key_positions, 1e6).mT / 4


def rope_attend(q, k, v, query_positions, key_positions, mask, window=16, softcap=50.0):
    s = turned(q, query_positions, 1e4) @ turned(k, key_positions, 1e4).mT / 4
    s = softcap * torch.tanh(s / softcap)
    seen = torch.from_numpy(mask) & (offset(query_positions, key_positions)[:, None].abs() < window)
    return torch.softmax(s.masked_fill(~seen, -math.inf), -1) @ torch.from_numpy(v).double()


def rope_attend_right(q, k, v, query_positions, key_positions, mask):
    return rope_attend(q, k, v, query_positions, key_positions, mask)


def rope_attend_to_32(q, k, v, query_positions, key_positions, mask):
    return rope_attend(q, k, v, query_positions, key_positions, mask, window=32)


def rope_attend_capped_at_25(q, k, v, query_positions, key_positions, mask):
    return rope_attend(q, k, v, query_positions, key_positions, mask, softcap=25.0)


def attend(q, k, v, mask, scale):
    q, k, v, mask = map(torch.from_numpy, (q, k, v, mask))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, scale=scale)


def attend_over_root_two(q, k, v, mask):
    return attend(q, k, v, mask, 0.25 / math.sqrt(2))


def attend_over_three(q, k, v, mask):
    return attend(q, k, v, mask, 0.25 / 3)


def shaw_to_two(q, k, key_table, query_positions, key_positions):
    """The middle rows of a table for offsets up to 4."""
    q, k, key_table = map(torch.from_numpy, (q, k, key_table))
    rows = key_table[offset(query_positions, key_positions).clamp(-2, 2) + 4]
    return (q @ k.mT + torch.einsum("bhid,bijd->bhij", q, rows)) / 4


def llama3(factor, low, high, original):
    w = 500000.0 ** (-torch.arange(32, dtype=torch.float64) / 32)
    smooth = (original * w / (2 * math.pi) - low) / (high - low)
    return (w / factor * (1 - smooth.clamp(0, 1)) + w * smooth.clamp(0, 1)).numpy()


def llama3_right(dim):
    return llama3(8, 1, 4, 8192)


def llama3_by_16(dim):
    return llama3(16, 1, 4, 8192)


def llama3_of_4096(dim):
    return llama3(8, 1, 4, 4096)


def llama3_with_fast_pairs_doubled(dim):
    """Twice what is kept as it is."""
    w = llama3(8, 1, 4, 8192)
    return np.where(np.arange(32) < 8, 2 * w, w)


def self_extend_of_eight(query_positions, key_positions):
    i, j = query_positions[:, None], key_positions
    near = j - i
    far = j // 8 - (i // 8 + 8 - 8 // 8)
    return np.where(near > 0, 0.0, np.where(near > -8, near, far))
