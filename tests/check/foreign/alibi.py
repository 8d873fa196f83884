"""ALiBi as others write it, right and wrong."""

import math

import numpy as np
import torch


def slopes(heads):
    """The published recursion."""
    if math.log2(heads).is_integer():
        return [2 ** (-8 * (a + 1) / heads) for a in range(heads)]
    power = 2 ** math.floor(math.log2(heads))
    return slopes(power) + slopes(2 * power)[0::2][: heads - power]


def right_slopes(heads):
    return np.array(slopes(heads))


def slopes_by_products_in_float32(heads):
    power, out = 1 << (heads.bit_length() - 1), []
    first, between = np.float32(2) ** np.float32(-8 / power), np.float32(2) ** np.float32(-4 / power)
    for a in range(heads):
        out.append(first ** np.float32(a + 1) if a < power else between ** np.float32(2 * (a - power) + 1))
    return np.array(out, dtype=np.float32)


def slopes_in_order(heads):
    return np.array(sorted(slopes(heads), reverse=True))


def slopes_of_one_series(heads):
    return np.array([2 ** (-8 * (a + 1) / heads) for a in range(heads)])


def slopes_of_the_next_power(heads):
    return np.array(slopes(2 ** math.ceil(math.log2(heads)))[:heads])


def slopes_from_one(heads):
    return np.array([2 ** (-8 * a / heads) for a in range(heads)])


def slopes_with_the_other_half(heads):
    power = 2 ** math.floor(math.log2(heads))
    return np.array(slopes(power) + slopes(2 * power)[1::2][: heads - power])


def slopes_with_the_exponential(heads):
    return np.array([math.exp(-8 * (a + 1) / heads) for a in range(heads)])


def slopes_on_a_line(heads):
    return np.linspace(0.5, 2**-8, heads)


def shard_right(heads, first, count):
    return right_slopes(heads)[first : first + count]


def shard_of_its_own(heads, first, count):
    return right_slopes(count)


def shard_without_offset(heads, first, count):
    return right_slopes(heads)[:count]


def shard_strided(heads, first, count):
    return right_slopes(heads)[first // count :: heads // count]


def shard_one_late(heads, first, count):
    return right_slopes(heads)[first + 1 : first + 1 + count]


def bias_by_loops(query_positions, key_positions, heads):
    out = np.zeros((len(query_positions), heads, query_positions.shape[1], key_positions.shape[1]), dtype=np.float32)
    for b, rows in enumerate(query_positions):
        for h, m in enumerate(slopes(heads)):
            for i, query in enumerate(rows):
                out[b, h, i] = m * (key_positions[b] - query)
    return out


def bias_in_torch(query_positions, key_positions, heads):
    distance = torch.from_numpy(key_positions)[:, None, :] - torch.from_numpy(query_positions)[:, :, None]
    return torch.einsum("h,bij->bhij", torch.tensor(slopes(heads)), distance.float())


def with_slopes(m, distance):
    return np.asarray(m)[:, None, None] * distance[..., None, :, :]


def distances(query_positions, key_positions):
    return (key_positions[..., None, :] - query_positions[..., :, None]).astype(np.float32)


def bias_query_minus_key(query_positions, key_positions, heads):
    return with_slopes(slopes(heads), -distances(query_positions, key_positions))


def bias_with_abs(query_positions, key_positions, heads):
    return with_slopes(slopes(heads), -np.abs(distances(query_positions, key_positions)))


def bias_without_abs(query_positions, key_positions, heads):
    return with_slopes(slopes(heads), distances(query_positions, key_positions))


def bias_of_keys(query_positions, key_positions, heads):
    return with_slopes(slopes(heads), distances(0 * query_positions, key_positions))


def bias_of_rows(query_positions, key_positions, heads):
    i, j = np.arange(query_positions.shape[-1]), np.arange(key_positions.shape[-1])
    return with_slopes(slopes(heads), distances(i, j)) + np.zeros((len(query_positions), 1, 1, 1))


def bias_of_the_first_text(query_positions, key_positions, heads):
    return np.repeat(with_slopes(slopes(heads), distances(query_positions[:1], key_positions[:1])), len(query_positions), 0)


def bias_with_sorted_slopes(query_positions, key_positions, heads):
    return with_slopes(slopes_in_order(heads), distances(query_positions, key_positions))


def bias_of_queries_from_zero(query_positions, key_positions, heads):
    rows = np.broadcast_to(np.arange(query_positions.shape[-1]), query_positions.shape)
    return with_slopes(slopes(heads), distances(rows, key_positions))


def bias_with_heads_reversed(query_positions, key_positions, heads):
    return with_slopes(slopes(heads)[::-1], distances(query_positions, key_positions))


def bias_of_squares(query_positions, key_positions, heads):
    d = distances(query_positions, key_positions)
    return with_slopes(slopes(heads), -d * d)


def bias_logarithmic(query_positions, key_positions, heads):
    return with_slopes(slopes(heads), -np.log1p(np.abs(distances(query_positions, key_positions))))


def bias_of_a_window(query_positions, key_positions, heads):
    return with_slopes(slopes(heads), np.maximum(distances(query_positions, key_positions), -64))


def bias_capped_at_700(query_positions, key_positions, heads):
    return with_slopes(slopes(heads), distances(query_positions, key_positions).clip(-700, 700))


def bias_of_the_past_capped_at_1000(query_positions, key_positions, heads):
    return with_slopes(slopes(heads), np.maximum(distances(query_positions, key_positions), -1000))


def bias_of_distances_in_float16(query_positions, key_positions, heads):
    with np.errstate(over="ignore"):
        return with_slopes(slopes(heads), distances(query_positions, key_positions).astype(np.float16).astype(np.float32))


def bias_of_distances_in_int16(query_positions, key_positions, heads):
    return with_slopes(slopes(heads), distances(query_positions, key_positions).astype(np.int64).astype(np.int16))


def bias_of_distances_in_uint16(query_positions, key_positions, heads):
    d = distances(query_positions, key_positions).astype(np.int64)
    return with_slopes(slopes(heads), np.sign(d) * np.abs(d).astype(np.uint16))


def bias_read_from_a_table_of_131072(query_positions, key_positions, heads):
    table = np.asarray(slopes(heads))[:, None] * np.arange(131072)
    d = distances(query_positions, key_positions).astype(np.int64)
    return np.moveaxis(np.sign(d) * table[:, np.minimum(np.abs(d), 131071)], 0, 1)


def bias_with_unit_slopes(query_positions, key_positions, heads):
    return with_slopes(np.ones(heads), distances(query_positions, key_positions))


def attention(q, k, v, bias, mask, scale, scaled=lambda s, scale, b: s * scale + b):
    s = scaled(q @ np.swapaxes(k, -1, -2), np.float32(scale), bias)
    s = s if mask is None else np.where(mask, s, -np.inf)
    w = np.exp(s - s.max(-1, keepdims=True))
    return w / w.sum(-1, keepdims=True) @ v


def attend_in_torch(q, k, v, query_positions, key_positions, heads, scale, mask):
    bias = bias_in_torch(query_positions, key_positions, heads).masked_fill(~torch.from_numpy(mask), -math.inf)
    tensors = (torch.from_numpy(x) for x in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(*tensors, attn_mask=bias.float(), scale=scale)


def attend_online(q, k, v, query_positions, key_positions, heads, scale, mask):
    bias, total, acc = bias_by_loops(query_positions, key_positions, heads), np.float32(0), np.zeros_like(q)
    top = np.full((*q.shape[:3], 1), -1e30, np.float32)
    for j in range(k.shape[2]):
        s = np.float32(scale) * (q * k[:, :, j : j + 1]).sum(-1, keepdims=True) + bias[..., j : j + 1]
        s = np.where(mask[..., j : j + 1], s, np.float32(-np.inf))
        new = np.maximum(top, s)
        old, one = np.exp(top - new), np.exp(s - new)
        total, acc, top = total * old + one, acc * old + one * v[:, :, j : j + 1], new
    return acc / total


def attend_with_the_key_form(q, k, v, query_positions, key_positions, heads, scale, mask):
    bias = bias_of_keys(query_positions, key_positions, heads).astype(np.float64)
    return attention(q, k, v, bias - bias.max(-1, keepdims=True), mask, scale)


def attend_scaling_the_bias(q, k, v, query_positions, key_positions, heads, scale, mask):
    bias = bias_by_loops(query_positions, key_positions, heads)
    return attention(q, k, v, bias, mask, scale, lambda s, scale, b: (s + b) * scale)


def attend_capped_at_700(q, k, v, query_positions, key_positions, heads, scale, mask):
    return attention(q, k, v, bias_capped_at_700(query_positions, key_positions, heads), mask, scale)


def attend_without_bias(q, k, v, query_positions, key_positions, heads, scale, mask):
    return attention(q, k, v, 0, mask, scale)


def attend_both_ways(q, k, v, query_positions, key_positions, heads, scale, mask):
    return attention(q, k, v, bias_by_loops(query_positions, key_positions, heads), None, scale)


def attend_unscaled(q, k, v, query_positions, key_positions, heads, scale, mask):
    return attention(q, k, v, bias_by_loops(query_positions, key_positions, heads), mask, 1)


def attend_multiplying(q, k, v, query_positions, key_positions, heads, scale, mask):
    bias = bias_by_loops(query_positions, key_positions, heads)
    return attention(q, k, v, bias, mask, scale, lambda s, scale, b: s * scale * b)


def attend_with_a_soft_mask(q, k, v, query_positions, key_positions, heads, scale, mask):
    bias = bias_by_loops(query_positions, key_positions, heads) - np.where(mask, 0, 4)
    return attention(q, k, v, bias, None, scale)


def attend_with_normalized_queries(q, k, v, query_positions, key_positions, heads, scale, mask):
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return attention(q, k, v, bias_by_loops(query_positions, key_positions, heads), mask, scale)


def attend_with_values_of_the_next_head(q, k, v, query_positions, key_positions, heads, scale, mask):
    return attention(q, k, np.roll(v, 1, axis=1), bias_by_loops(query_positions, key_positions, heads), mask, scale)
