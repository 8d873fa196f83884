"""Shaw's relative attention as others write it, right and wrong."""

import numpy as np
import torch


def rows(query_positions, key_positions, table, sign=1):
    """The row of each pair of tokens, with an axis for heads."""
    reach = table.shape[-2] // 2
    offset = sign * (key_positions[..., None, :] - query_positions[..., :, None])
    return (np.clip(offset, -reach, reach) + reach)[:, None]


def product(q, k, a, scale):
    return scale * (q @ np.swapaxes(k, -1, -2) + np.einsum("...id,...ijd->...ij", q, a))


def scores_with_vectors(q, k, key_table, query_positions, key_positions, scale):
    return product(q, k, key_table[rows(query_positions, key_positions, key_table)], np.float32(scale))


def scores_added_to_keys(q, k, key_table, query_positions, key_positions, scale):
    keys = k[..., None, :, :] + key_table[rows(query_positions, key_positions, key_table)]
    return np.einsum("...id,...ijd->...ij", q * np.float32(scale), keys)


def scores_by_loops(q, k, key_table, query_positions, key_positions, scale):
    out = np.zeros((*q.shape[:-1], k.shape[-2]), np.float32)
    for b, h, i, j in np.ndindex(out.shape):
        r = min(max(key_positions[b, j] - query_positions[b, i], -4), 4) + 4
        out[b, h, i, j] = np.float32(scale) * q[b, h, i] @ (k[b, h, j] + key_table[r])
    return out


def scores_of_query_minus_key(q, k, key_table, query_positions, key_positions, scale):
    return product(q, k, key_table[rows(query_positions, key_positions, key_table, -1)], scale)


def scores_with_position_unscaled(q, k, key_table, query_positions, key_positions, scale):
    a = key_table[rows(query_positions, key_positions, key_table)]
    return scale * (q @ np.swapaxes(k, -1, -2)) + np.einsum("...id,...ijd->...ij", q, a)


def scores_without_position(q, k, key_table, query_positions, key_positions, scale):
    return scale * (q @ np.swapaxes(k, -1, -2))


def scores_with_the_key(q, k, key_table, query_positions, key_positions, scale):
    a = key_table[rows(query_positions, key_positions, key_table)]
    return scale * (q @ np.swapaxes(k, -1, -2) + np.einsum("...jd,...ijd->...ij", k, a))


def scores_with_both(q, k, key_table, query_positions, key_positions, scale):
    a = key_table[rows(query_positions, key_positions, key_table)]
    return product(q, k, a, scale) + scale * np.einsum("...jd,...ijd->...ij", k, a)


def scores_clipped_short(q, k, key_table, query_positions, key_positions, scale):
    index = np.minimum(rows(query_positions, key_positions, key_table), 7)
    return product(q, k, key_table[index], scale)


def scores_of_the_wrapped_index(q, k, key_table, query_positions, key_positions, scale):
    index = (key_positions[:, None, :] - query_positions[:, :, None])[:, None] % 9
    return product(q, k, key_table[index], scale)


def scores_of_the_distance(q, k, key_table, query_positions, key_positions, scale):
    index = np.minimum(np.abs(key_positions[:, None, :] - query_positions[:, :, None]), 8)[:, None]
    return product(q, k, key_table[index], scale)


def scores_with_table_from_zero(q, k, key_table, query_positions, key_positions, scale):
    index = rows(query_positions, key_positions, key_table) - 4
    return product(q, k, key_table[index], scale)


def scores_with_a_sum_of_the_table(q, k, key_table, query_positions, key_positions, scale):
    a = key_table[rows(query_positions, key_positions, key_table)]
    return scale * (q @ np.swapaxes(k, -1, -2) + a.sum(-1))


def scores_with_queries_transposed(q, k, key_table, query_positions, key_positions, scale):
    a = key_table[rows(query_positions, key_positions, key_table)]
    return scale * (q @ np.swapaxes(k, -1, -2) + np.einsum("...id,...ijd->...ij", q[:, ::-1], a))


def softmax(s, mask):
    s = np.where(mask, s, -1e30)
    w = np.exp(s - s.max(-1, keepdims=True))
    return w / w.sum(-1, keepdims=True)


def attend_with_vectors(q, k, v, key_table, query_positions, key_positions, value_table, scale, mask):
    w = softmax(scores_with_vectors(q, k, key_table, query_positions, key_positions, scale), mask)
    a = value_table[rows(query_positions, key_positions, value_table)]
    return w @ v + np.einsum("...ij,...ijd->...id", w, a)


def attend_in_torch(q, k, v, key_table, query_positions, key_positions, value_table, scale, mask):
    index = torch.from_numpy(rows(query_positions, key_positions, key_table))
    q, k, v, key_table, value_table = map(torch.from_numpy, (q, k, v, key_table, value_table))
    by_row = torch.einsum("bhid,rd->bhir", q, key_table).gather(-1, index.expand(-1, q.shape[1], -1, -1))
    s = ((q @ k.mT + by_row) * scale).masked_fill(~torch.from_numpy(mask), -1e30)
    w = s.softmax(-1)
    return (w[..., None] * (v[:, :, None] + value_table[index])).sum(-2)


def attend_without_value_vectors(q, k, v, key_table, query_positions, key_positions, value_table, scale, mask):
    return softmax(scores_with_vectors(q, k, key_table, query_positions, key_positions, scale), mask) @ v


def attend_with_one_table(q, k, v, key_table, query_positions, key_positions, value_table, scale, mask):
    return attend_with_vectors(q, k, v, key_table, query_positions, key_positions, key_table, scale, mask)


def attend_with_values_reversed(q, k, v, key_table, query_positions, key_positions, value_table, scale, mask):
    return attend_with_vectors(q, k, v, key_table, query_positions, key_positions, value_table[::-1], scale, mask)


def attend_to_the_future(q, k, v, key_table, query_positions, key_positions, value_table, scale, mask):
    everything = np.ones_like(mask)
    return attend_with_vectors(q, k, v, key_table, query_positions, key_positions, value_table, scale, everything)


def attend_with_tables_exchanged(q, k, v, key_table, query_positions, key_positions, value_table, scale, mask):
    return attend_with_vectors(q, k, v, value_table, query_positions, key_positions, key_table, scale, mask)


def attend_scaling_values(q, k, v, key_table, query_positions, key_positions, value_table, scale, mask):
    return attend_with_vectors(q, k, v, key_table, query_positions, key_positions, scale * value_table, scale, mask)


def attend_summing_value_vectors(q, k, v, key_table, query_positions, key_positions, value_table, scale, mask):
    w = softmax(scores_with_vectors(q, k, key_table, query_positions, key_positions, scale), mask)
    return w @ v + value_table[rows(query_positions, key_positions, value_table)].mean(-2)
