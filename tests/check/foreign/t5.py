"""T5's bias as others write it, right and wrong."""

import math

import numpy as np
import torch


def published(offset, bidirectional=True, buckets=32, max_distance=128):
    """The bucket of the released code, for a tensor of offsets."""
    found, n = torch.zeros_like(offset), -offset
    if bidirectional:
        buckets //= 2
        found, n = found + (n < 0).long() * buckets, n.abs()
    else:
        n = n.clamp(min=0)
    exact = buckets // 2
    far = torch.log(n.float().clamp(min=1) / exact) / math.log(max_distance / exact) * (buckets - exact)
    return found + torch.where(n < exact, n, (exact + far.long()).clamp(max=buckets - 1))


def bucket_published(offsets, bidirectional):
    return published(torch.from_numpy(offsets), bidirectional).numpy()


def bucket_by_integers(offsets, bidirectional):
    starts = [*range(8), 8, 12, 16, 23, 32, 46, 64, 91]
    out = [sum(abs(int(o)) >= start for start in starts) - 1 + 16 * (o > 0) for o in offsets]
    return np.array(out)


def bucket_of_query_minus_key(offsets, bidirectional):
    return published(torch.from_numpy(-offsets), bidirectional).numpy()


def bucket_causal(offsets, bidirectional):
    return published(torch.from_numpy(offsets), False).numpy()


def bucket_linear(offsets, bidirectional):
    return np.minimum(np.abs(offsets), 15) + 16 * (offsets > 0)


def bucket_rounded_up(offsets, bidirectional):
    n = np.abs(offsets)
    far = 8 + np.ceil(np.round(np.log(np.maximum(n, 8) / 8) / np.log(16) * 8, 9))
    return (np.where(n < 8, n, np.minimum(far, 15)) + 16 * (offsets > 0)).astype(int)


def bucket_without_minimum(offsets, bidirectional):
    n = np.abs(offsets)
    far = 8 + np.floor(np.round(np.log(np.maximum(n, 8) / 8) / np.log(16) * 8, 9))
    return (np.where(n < 8, n, far) + 16 * (offsets > 0)).astype(int)


def bucket_of_the_future_first(offsets, bidirectional):
    return (published(torch.from_numpy(offsets)).numpy() + 16) % 32


def bucket_with_zero_in_the_future(offsets, bidirectional):
    return published(torch.from_numpy(offsets)).numpy() + 16 * (offsets == 0)


def bucket_to_the_nearest(offsets, bidirectional):
    n = np.abs(offsets)
    far = np.minimum(8 + np.rint(np.log(np.maximum(n, 8) / 8) / np.log(16) * 8), 15)
    return (np.where(n < 8, n, far) + 16 * (offsets > 0)).astype(int)


def bucket_with_base_two(offsets, bidirectional):
    n = np.abs(offsets)
    far = np.minimum(8 + np.floor(np.log2(np.maximum(n, 8) / 8)), 15)
    return (np.where(n < 8, n, far) + 16 * (offsets > 0)).astype(int)


def offset(query_positions, key_positions):
    return torch.from_numpy(key_positions[..., None, :] - query_positions[..., :, None])


def bias_published(query_positions, key_positions, table):
    return torch.from_numpy(table)[published(offset(query_positions, key_positions))].permute(0, 3, 1, 2)


def bias_of_long_texts(query_positions, key_positions, table, change=lambda offset: offset):
    index = published(change(offset(query_positions, key_positions)), False, max_distance=2000)
    return torch.from_numpy(table)[index].permute(0, 3, 1, 2)


def bias_of_offsets_clipped_at_300(query_positions, key_positions, table):
    return bias_of_long_texts(query_positions, key_positions, table, lambda offset: offset.clamp(-300, 300))


def bias_of_offsets_in_int16(query_positions, key_positions, table):
    return bias_of_long_texts(query_positions, key_positions, table, lambda offset: offset.short().long())


def bias_by_one_hot(query_positions, key_positions, table):
    index = published(offset(query_positions, key_positions))
    return torch.einsum("bijr,rh->bhij", torch.nn.functional.one_hot(index, 32).float(), torch.from_numpy(table))


def bias_of_query_minus_key(query_positions, key_positions, table):
    return torch.from_numpy(table)[published(-offset(query_positions, key_positions))].permute(0, 3, 1, 2)


def bias_with_a_causal_flag(query_positions, key_positions, table):
    return torch.from_numpy(table)[published(offset(query_positions, key_positions), False)].permute(0, 3, 1, 2)


def bias_reading_the_table_as_heads_first(query_positions, key_positions, table):
    index = published(offset(query_positions, key_positions))
    return torch.from_numpy(table).reshape(table.shape[1], -1)[:, index].permute(1, 0, 2, 3)


def bias_of_the_cache_ignored(query_positions, key_positions, table):
    rows = np.broadcast_to(np.arange(query_positions.shape[-1]), query_positions.shape)
    keys = np.broadcast_to(np.arange(key_positions.shape[-1]), key_positions.shape)
    return bias_published(rows, keys, table)


def bias_to_another_distance(query_positions, key_positions, table):
    index = published(offset(query_positions, key_positions), max_distance=256)
    return torch.from_numpy(table)[index].permute(0, 3, 1, 2)


def bias_with_half_the_buckets(query_positions, key_positions, table):
    index = published(offset(query_positions, key_positions), buckets=16)
    return torch.from_numpy(table)[index].permute(0, 3, 1, 2)


def bias_of_the_wrong_half(query_positions, key_positions, table):
    index = (published(offset(query_positions, key_positions)) + 16) % 32
    return torch.from_numpy(table)[index].permute(0, 3, 1, 2)


def bias_with_heads_reversed(query_positions, key_positions, table):
    return bias_published(query_positions, key_positions, np.ascontiguousarray(table[:, ::-1]))


def bias_by_clipped_offsets(query_positions, key_positions, table):
    return torch.from_numpy(table)[(offset(query_positions, key_positions) + 16).clamp(0, 31)].permute(0, 3, 1, 2)


def attend(q, k, v, bias, scale=1.0):
    s = torch.from_numpy(q) @ torch.from_numpy(k).transpose(-1, -2) * scale + bias
    return torch.softmax(s, -1) @ torch.from_numpy(v)


def attend_published(q, k, v, query_positions, key_positions, table):
    return attend(q, k, v, bias_published(query_positions, key_positions, table))


def attend_fused(q, k, v, query_positions, key_positions, table):
    bias = bias_published(query_positions, key_positions, table)
    return torch.nn.functional.scaled_dot_product_attention(*map(torch.from_numpy, (q, k, v)), attn_mask=bias, scale=1.0)


def attend_with_the_default_scale(q, k, v, query_positions, key_positions, table):
    bias = bias_published(query_positions, key_positions, table)
    return torch.nn.functional.scaled_dot_product_attention(*map(torch.from_numpy, (q, k, v)), attn_mask=bias)


def attend_scaling_all(q, k, v, query_positions, key_positions, table):
    bias = bias_published(query_positions, key_positions, table)
    return attend(q, k, v, bias / q.shape[-1] ** 0.5, q.shape[-1] ** -0.5)


def attend_without_bias(q, k, v, query_positions, key_positions, table):
    return attend(q, k, v, 0.0)


def attend_causally(q, k, v, query_positions, key_positions, table):
    bias = bias_published(query_positions, key_positions, table)
    return attend(q, k, v, bias.masked_fill((offset(query_positions, key_positions) > 0)[:, None], -math.inf))


def attend_subtracting(q, k, v, query_positions, key_positions, table):
    return attend(q, k, v, -bias_published(query_positions, key_positions, table))


def attend_with_bias_twice(q, k, v, query_positions, key_positions, table):
    return attend(q, k, v, 2 * bias_published(query_positions, key_positions, table))


def cross_right(q, k, v):
    return attend(q, k, v, 0.0)


def cross_scaled(q, k, v):
    return attend(q, k, v, 0.0, q.shape[-1] ** -0.5)


def cross_with_the_mean(q, k, v):
    return torch.from_numpy(v).mean(-2, keepdim=True).expand(*q.shape)
