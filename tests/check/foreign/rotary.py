"""Converted projections, rotated values and linear attention as others write them, right and wrong."""

import numpy as np
import torch


def angles(positions, dim):
    """(batch, 1, n, dim / 2) in float64."""
    return positions[:, None, :, None] * 10000.0 ** (-2 * np.arange(dim // 2) / dim)


def halves(x, a, dim):
    first, second = x[..., : dim // 2], x[..., dim // 2 : dim]
    y = first * np.cos(a) - second * np.sin(a), first * np.sin(a) + second * np.cos(a)
    return np.concatenate([*y, x[..., dim:]], -1).astype(np.float32)


def neighbors(x, a, dim):
    y = x.copy()
    y[..., 0:dim:2] = x[..., 0:dim:2] * np.cos(a) - x[..., 1:dim:2] * np.sin(a)
    y[..., 1:dim:2] = x[..., 0:dim:2] * np.sin(a) + x[..., 1:dim:2] * np.cos(a)
    return y


def moved(w, heads, dim=8, times=1):
    """Rows of each head: even ones first, then odd ones; those beyond dim stay."""
    w = w.reshape(heads, -1, *w.shape[1:])
    for _ in range(times):
        w = np.concatenate([w[:, 0:dim:2], w[:, 1:dim:2], w[:, dim:]], 1)
    return w.reshape(-1, *w.shape[2:])


def head(x, w, b, heads):
    return np.swapaxes((x @ w.T + b).reshape(*x.shape[:-1], heads, -1), 1, 2)


def projected(x, positions, w_q, w_k, b_q, b_k, turn=halves):
    a = angles(positions, 8)
    q, k = turn(head(x, w_q, b_q, 4), a, 8), turn(head(x, w_k, b_k, 2), a, 8)
    return np.float32(12**-0.5) * (q @ np.repeat(k, 2, axis=1).mT)


def projections_converted(x, positions, w_q, w_k, b_q, b_k):
    return projected(x, positions, moved(w_q, 4), moved(w_k, 2), moved(b_q, 4), moved(b_k, 2))


def projections_in_the_source_layout(x, positions, w_q, w_k, b_q, b_k):
    return projected(x, positions, w_q, w_k, b_q, b_k, neighbors)


def projections_not_converted(x, positions, w_q, w_k, b_q, b_k):
    return projected(x, positions, w_q, w_k, b_q, b_k)


def projections_without_biases_moved(x, positions, w_q, w_k, b_q, b_k):
    return projected(x, positions, moved(w_q, 4), moved(w_k, 2), b_q, b_k)


def projections_without_keys_moved(x, positions, w_q, w_k, b_q, b_k):
    return projected(x, positions, moved(w_q, 4), w_k, moved(b_q, 4), b_k)


def projections_with_the_switch_forgotten(x, positions, w_q, w_k, b_q, b_k):
    return projected(x, positions, moved(w_q, 4), moved(w_k, 2), moved(b_q, 4), moved(b_k, 2), neighbors)


def projections_without_queries_moved(x, positions, w_q, w_k, b_q, b_k):
    return projected(x, positions, w_q, moved(w_k, 2), b_q, moved(b_k, 2))


def projections_moved_twice(x, positions, w_q, w_k, b_q, b_k):
    """Three times moves nothing with 8 features, so twice is once backwards."""
    w_q, b_q, w_k, b_k = moved(w_q, 4, times=2), moved(b_q, 4, times=2), moved(w_k, 2, times=2), moved(b_k, 2, times=2)
    return projected(x, positions, w_q, w_k, b_q, b_k)


def projections_of_one_head(x, positions, w_q, w_k, b_q, b_k):
    return projected(x, positions, moved(w_q, 1, 48), moved(w_k, 1, 24), moved(b_q, 1, 48), moved(b_k, 1, 24))


def projections_without_biases(x, positions, w_q, w_k, b_q, b_k):
    return projected(x, positions, moved(w_q, 4), moved(w_k, 2), 0 * b_q, 0 * b_k)


def softmax(s):
    w = np.exp(s - s.max(-1, keepdims=True))
    return w / w.sum(-1, keepdims=True)


def value_attention(q, k, v, query_positions, key_positions, scale, mask, values=1, back=-1):
    i, j = angles(query_positions, 8), angles(key_positions, 8)
    s = np.float32(scale) * (halves(q, i, 8) @ halves(k, j, 8).mT)
    w = softmax(s if mask is None else np.where(mask, s, -1e30))
    return halves(w @ halves(v, values * j, 8), back * i, 8)


def values_right(q, k, v, query_positions, key_positions, scale, mask):
    return value_attention(q, k, v, query_positions, key_positions, scale, mask)


def values_turned_by_the_offset(q, k, v, query_positions, key_positions, scale, mask):
    out = np.zeros_like(q)
    for i in range(q.shape[2]):
        offset = angles(key_positions - query_positions[:, i : i + 1], 8)
        s = np.float32(scale) * (q[:, :, i : i + 1] * halves(k, offset, 8)).sum(-1)
        w = softmax(np.where(mask[:, :, i], s, -1e30))
        out[:, :, i] = (w[..., None] * halves(v, offset, 8)).sum(-2)
    return out


def values_not_turned_back(q, k, v, query_positions, key_positions, scale, mask):
    return value_attention(q, k, v, query_positions, key_positions, scale, mask, back=0)


def values_turned_on(q, k, v, query_positions, key_positions, scale, mask):
    return value_attention(q, k, v, query_positions, key_positions, scale, mask, back=1)


def values_turned_back_twice(q, k, v, query_positions, key_positions, scale, mask):
    return value_attention(q, k, v, query_positions, key_positions, scale, mask, back=-2)


def values_plain_but_turned_back(q, k, v, query_positions, key_positions, scale, mask):
    return value_attention(q, k, v, query_positions, key_positions, scale, mask, values=0)


def values_seeing_the_future(q, k, v, query_positions, key_positions, scale, mask):
    return value_attention(q, k, v, query_positions, key_positions, scale, None)


def values_turned_the_other_way(q, k, v, query_positions, key_positions, scale, mask):
    return value_attention(q, k, v, query_positions, key_positions, scale, mask, values=-1)


def values_plain(q, k, v, query_positions, key_positions, scale, mask):
    return value_attention(q, k, v, query_positions, key_positions, scale, mask, values=0, back=0)


def values_turned_half_way(q, k, v, query_positions, key_positions, scale, mask):
    return value_attention(q, k, v, query_positions, key_positions, scale, mask, values=0.5, back=-0.5)


def values_turned_back_by_the_key(q, k, v, query_positions, key_positions, scale, mask):
    last = np.broadcast_to(key_positions[:, -1:], query_positions.shape)
    out = value_attention(q, k, v, query_positions, key_positions, scale, mask, back=0)
    return halves(out, -angles(last, 8), 8)


def elu(x):
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def feature_in_torch(x):
    return torch.nn.functional.elu(torch.from_numpy(x)) + 1


def feature_elu(x):
    return elu(x)


def feature_relu(x):
    return np.maximum(x, 0) + 1


def feature_exponential(x):
    return np.exp(x)


def feature_softplus(x):
    return np.log1p(np.exp(x))


def feature_elu_of_two(x):
    return np.where(x > 0, x + 1, 2 * np.exp(np.minimum(x, 0)) - 1)


def weights(q, k, positions, turn=halves):
    a, pq, pk = angles(positions, 8), elu(q) + 1, elu(k) + 1
    return turn(pq, a, 8) @ turn(pk, a, 8).mT, pq @ pk.mT


def linear_right(q, k, v, positions):
    above, below = weights(q, k, positions)
    return np.tril(above) @ v / np.tril(below).sum(-1, keepdims=True)


def linear_recurrent(q, k, v, positions):
    a, pq, pk, out = angles(positions, 8), elu(q) + 1, elu(k) + 1, []
    rq, rk, state, z = halves(pq, a, 8), halves(pk, a, 8), 0, 0
    for i in range(q.shape[2]):
        state = state + rk[:, :, i, :, None] * v[:, :, i, None, :]
        z = z + pk[:, :, i]
        out.append((rq[:, :, i, None] @ state)[:, :, 0] / (pq[:, :, i] * z).sum(-1, keepdims=True))
    return np.stack(out, 2)


def linear_with_a_turned_denominator(q, k, v, positions):
    above, _ = weights(q, k, positions)
    return np.tril(above) @ v / np.tril(above).sum(-1, keepdims=True)


def linear_turned_before_the_map(q, k, v, positions):
    a = angles(positions, 8)
    q, k = elu(halves(q, a, 8)) + 1, elu(halves(k, a, 8)) + 1
    w = np.tril(q @ k.mT)
    return w @ v / w.sum(-1, keepdims=True)


def linear_without_rotation(q, k, v, positions):
    return linear_right(q, k, v, 0 * positions)


def linear_of_all_keys(q, k, v, positions):
    above, below = weights(q, k, positions)
    return above @ v / below.sum(-1, keepdims=True)


def linear_over_all_keys_below(q, k, v, positions):
    above, below = weights(q, k, positions)
    return np.tril(above) @ v / below.sum(-1, keepdims=True)


def linear_in_the_other_layout(q, k, v, positions):
    above, below = weights(q, k, positions, neighbors)
    return np.tril(above) @ v / np.tril(below).sum(-1, keepdims=True)


def linear_without_division(q, k, v, positions):
    return np.tril(weights(q, k, positions)[0]) @ v


def linear_by_the_mean(q, k, v, positions):
    return np.tril(weights(q, k, positions)[0]) @ v / np.arange(1, q.shape[2] + 1)[:, None]


def linear_with_absolute_weights(q, k, v, positions):
    above = np.abs(np.tril(weights(q, k, positions)[0]))
    return above @ v / above.sum(-1, keepdims=True)


def linear_with_values_turned(q, k, v, positions):
    return linear_right(q, k, halves(v, angles(positions, 8), 8), positions)


def linear_decayed(q, k, v, positions):
    above, below = weights(q, k, positions)
    n = np.arange(q.shape[2])
    decay = np.tril(0.9 ** np.abs(n[:, None] - n))
    return (decay * above) @ v / (decay * below).sum(-1, keepdims=True)


def xpos(x, positions, scale_base):
    d = x.shape[-1]
    t, m = np.arange(d // 2), positions[:, None, :, None]
    size = ((2 * t / d + 0.4) / 1.4) ** (m / scale_base)
    cos, sin = (size * wave(m * 10000.0 ** (-2 * t / d)) for wave in (np.cos, np.sin))
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def xpos_right(x, positions):
    return xpos(x, positions, 512)


def xpos_with_256(x, positions):
    return xpos(x, positions, 256)


def longrope_right(factors, dim):
    return 1.0 / (torch.from_numpy(factors) * 10000.0 ** (torch.arange(0, dim, 2).double() / dim))


def longrope_multiplied(factors, dim):
    return torch.from_numpy(factors) / 10000.0 ** (torch.arange(0, dim, 2).double() / dim)


def llama3(dim, factor):
    w = 500000.0 ** (-torch.arange(0, dim, 2).double() / dim)
    turns = 8192 * w / (2 * np.pi)
    kept = ((turns - 1) / (4 - 1)).clamp(0, 1)
    return (1 - kept) * w / factor + kept * w


def llama3_of_release_1(dim):
    return llama3(dim, 8)


def llama3_of_release_2(dim):
    return llama3(dim, 32)
