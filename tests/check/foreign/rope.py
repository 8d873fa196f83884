"""RoPE as others write it, right and wrong."""

import math

import numpy as np
import torch


def frequencies_released(dim):
    return 1.0 / 10000 ** (torch.arange(0, dim, 2, dtype=torch.int64).double() / dim)


def frequencies_to_the_end(dim):
    return 10000.0 ** -np.linspace(0, 1, dim // 2)


def frequencies_without_the_two(dim):
    return 10000.0 ** (-np.arange(dim // 2) / dim)


def frequencies_backwards(dim):
    return 10000.0 ** (-2 * np.arange(dim // 2)[::-1] / dim)


def frequencies_of_another_base(dim):
    return 500000.0 ** (-2 * np.arange(dim // 2) / dim)


def frequencies_on_a_line(dim):
    return 1 - np.arange(dim // 2) / (dim // 2)


def frequencies_in_turns(dim):
    return 2 * math.pi * 10000.0 ** (-2 * np.arange(dim // 2) / dim)


def frequencies_of_ntk(dim):
    base = 10000.0 * 4 ** (dim / (dim - 2))
    return base ** (-2 * np.arange(dim // 2) / dim)


def angles(positions, dim, base=10000.0):
    """(batch, 1, n, dim / 2) in float64."""
    return positions[:, None, :, None] * base ** (-2 * np.arange(dim // 2) / dim)


def tables_right(positions, dim):
    a = angles(positions, dim)[:, 0]
    return np.concatenate([np.cos(a), np.sin(a)], -1)


def tables_of_sine_first(positions, dim):
    a = angles(positions, dim)[:, 0]
    return np.concatenate([np.sin(a), np.cos(a)], -1)


def tables_interleaved(positions, dim):
    a = angles(positions, dim)[:, 0]
    return np.stack([np.cos(a), np.sin(a)], -1).reshape(*positions.shape, dim)


def tables_of_halved_angles(positions, dim):
    a = angles(positions, dim)[:, 0] / 2
    return np.concatenate([np.cos(a), np.sin(a)], -1)


def turned(x, a, dim):
    """Pairs (t, t + dim / 2) of the first dim features turned by a; the rest as it is."""
    cos, sin = np.cos(a).astype(np.float32), np.sin(a).astype(np.float32)
    first, second, rest = x[..., : dim // 2], x[..., dim // 2 : dim], x[..., dim:]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin, rest], -1)


def rotate_half(x):
    return np.concatenate([-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]], -1)


def rotate_released(x, positions, dim):
    a = angles(positions, dim)
    cos, sin = (np.concatenate([f(a)] * 2, -1).astype(np.float32) for f in (np.cos, np.sin))
    head = x[..., :dim]
    return np.concatenate([head * cos + rotate_half(head) * sin, x[..., dim:]], -1)


def rotate_by_complex_numbers(x, positions, dim):
    z = x[..., : dim // 2] + 1j * x[..., dim // 2 : dim]
    z = z * np.exp(1j * angles(positions, dim)).astype(np.complex64)
    return np.concatenate([z.real, z.imag, x[..., dim:]], -1)


def rotate_by_matrices(x, positions, dim):
    out = x.copy()
    for b, h, n in np.ndindex(x.shape[:3]):
        for t in range(dim // 2):
            a = positions[b, n] * 10000.0 ** (-2 * t / dim)
            turn = np.array([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]], np.float32)
            out[b, h, n, [t, t + dim // 2]] = turn @ x[b, h, n, [t, t + dim // 2]]
    return out


def rotate_in_float32(x, positions, dim):
    x, w = torch.from_numpy(x), 1.0 / 10000 ** (torch.arange(0, dim, 2).float() / dim)
    a = torch.outer(torch.from_numpy(positions).flatten().float(), w).unflatten(0, positions.shape)[:, None]
    first, second = x[..., : dim // 2], x[..., dim // 2 : dim]
    turn = (first * a.cos() - second * a.sin(), first * a.sin() + second * a.cos())
    return torch.cat([*turn, x[..., dim:]], -1)


def rotate_from_a_cache(x, positions, dim):
    table = np.arange(8192)[:, None] * 10000.0 ** (-2 * np.arange(dim // 2) / dim)
    return turned(x, table[positions][:, None], dim)


def rotate_by_tangents(x, positions, dim):
    """Three shears, as in lifting schemes."""
    a = np.remainder(angles(positions, dim) + math.pi / 2, math.pi) - math.pi / 2
    flip = np.cos(angles(positions, dim) - a)
    first, second, half = x[..., : dim // 2], x[..., dim // 2 : dim], np.tan(a / 2)
    first = first - half * second
    second = second + np.sin(a) * first
    first = first - half * second
    return np.concatenate([first * flip, second * flip, x[..., dim:]], -1).astype(np.float32)


def rotate_neighbors(x, positions, dim):
    y, a = x.copy(), angles(positions, dim)
    y[..., 0:dim:2] = x[..., 0:dim:2] * np.cos(a) - x[..., 1:dim:2] * np.sin(a)
    y[..., 1:dim:2] = x[..., 1:dim:2] * np.cos(a) + x[..., 0:dim:2] * np.sin(a)
    return y


def rotate_neighbors_to_halves(x, positions, dim):
    y = rotate_neighbors(x, positions, dim)
    return np.concatenate([y[..., 0:dim:2], y[..., 1:dim:2], y[..., dim:]], -1)


def rotate_backwards(x, positions, dim):
    return turned(x, -angles(positions, dim), dim)


def rotate_with_tables_exchanged(x, positions, dim):
    return turned(x, math.pi / 2 - angles(positions, dim), dim)


def rotate_with_repeated_tables(x, positions, dim):
    a, head = np.repeat(angles(positions, dim), 2, -1), x[..., :dim]
    return np.concatenate([head * np.cos(a) + rotate_half(head) * np.sin(a), x[..., dim:]], -1).astype(np.float32)


def rotate_rows(x, positions, dim):
    return turned(x, angles(np.arange(x.shape[-2])[None], dim), dim)


def rotate_as_the_first_text(x, positions, dim):
    return turned(x, angles(positions[:1], dim), dim)


def rotate_heads_in_the_place_of_tokens(x, positions, dim):
    a = np.arange(x.shape[1])[:, None, None] * 10000.0 ** (-2 * np.arange(dim // 2) / dim)
    return turned(x, a, dim)


def rotate_with_the_exponent_over_the_head(x, positions, dim):
    a = positions[:, None, :, None] * 10000.0 ** (-2 * np.arange(dim // 2) / x.shape[-1])
    return turned(x, a, dim)


def rotate_all(x, positions, dim):
    return turned(x, angles(positions, x.shape[-1]), x.shape[-1])


def rotate_the_end(x, positions, dim):
    return np.concatenate([x[..., :-dim], turned(x[..., -dim:], angles(positions, dim), dim)], -1)


def rotate_into_itself(x, positions, dim):
    y, a = x.copy(), angles(positions, dim).astype(np.float32)
    y[..., : dim // 2] = y[..., : dim // 2] * np.cos(a) - y[..., dim // 2 : dim] * np.sin(a)
    y[..., dim // 2 : dim] = y[..., dim // 2 : dim] * np.cos(a) + y[..., : dim // 2] * np.sin(a)
    return y


def rotate_with_bf16_angles(x, positions, dim):
    w = (1.0 / 10000 ** (torch.arange(0, dim, 2).float() / dim)).bfloat16()
    a = (torch.from_numpy(positions).bfloat16()[:, None, :, None] * w).float().numpy()
    return turned(x, a, dim)


def rotate_with_bf16_tables(x, positions, dim):
    a = torch.from_numpy(angles(positions, dim))
    cos, sin = a.cos().bfloat16().float().numpy(), a.sin().bfloat16().float().numpy()
    first, second = x[..., : dim // 2], x[..., dim // 2 : dim]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin, x[..., dim:]], -1)


def rotate_with_the_sign_in_the_second(x, positions, dim):
    cos, sin = np.cos(angles(positions, dim)), np.sin(angles(positions, dim))
    first, second = x[..., : dim // 2], x[..., dim // 2 : dim]
    return np.concatenate([first * cos + second * sin, second * cos + first * sin, x[..., dim:]], -1).astype(np.float32)


def rotate_without_the_second_term(x, positions, dim):
    return np.concatenate([x[..., :dim] * np.cos(np.tile(angles(positions, dim), 2)), x[..., dim:]], -1).astype(np.float32)


def rotate_turning_the_half_the_other_way(x, positions, dim):
    a, head = np.tile(angles(positions, dim), 2), x[..., :dim]
    swapped = np.concatenate([head[..., dim // 2 :], head[..., : dim // 2]], -1)
    return np.concatenate([head * np.cos(a) + swapped * np.sin(a), x[..., dim:]], -1).astype(np.float32)


def rotate_one_more_each_head(x, positions, dim):
    heads = np.arange(x.shape[1])[:, None, None]
    return turned(x, angles(positions, dim) + heads, dim)


def rotate_mirrored_pairs(x, positions, dim):
    """Pairs (t, dim - 1 - t)."""
    a = angles(positions, dim)
    first, second = x[..., : dim // 2], x[..., dim // 2 : dim][..., ::-1]
    y = first * np.cos(a) - second * np.sin(a), (second * np.cos(a) + first * np.sin(a))[..., ::-1]
    return np.concatenate([*y, x[..., dim:]], -1).astype(np.float32)


def rotate_twice(x, positions, dim):
    return turned(turned(x, angles(positions, dim), dim), angles(positions, dim), dim)


def rotate_with_the_tail_dropped(x, positions, dim):
    return np.concatenate([turned(x[..., :dim], angles(positions, dim), dim), 0 * x[..., dim:]], -1)


def rotate_with_integer_angles(x, positions, dim):
    return turned(x, np.floor(angles(positions, dim)), dim)


def rotate_fast_pairs_alone(x, positions, dim):
    a = angles(positions, dim)
    return turned(x, np.where(np.arange(dim // 2) < dim // 4, a, 0), dim)


def rotate_and_normalize(x, positions, dim):
    y = turned(x, angles(positions, dim), dim)
    return y / np.sqrt((y * y).mean(-1, keepdims=True))


def rotate_with_one_angle(x, positions, dim):
    return turned(x, 0 * angles(positions, dim) + positions[:, None, :, None], dim)


def rotate_with_an_overflowing_position(x, positions, dim):
    return turned(x, angles(positions.astype(np.int8), dim), dim)


def scores_right(q, k, query_positions, key_positions, scale):
    q, k = turned(q, angles(query_positions, 8), 8), turned(k, angles(key_positions, 8), 8)
    return scale * np.einsum("bhid,bhjd->bhij", q, np.repeat(k, 2, axis=1))


def scores_relative(q, k, query_positions, key_positions, scale):
    """One rotation by j - i for each pair of tokens."""
    k, out = np.repeat(k, 2, axis=1), np.zeros((*q.shape[:3], k.shape[2]), np.float32)
    for i in range(q.shape[2]):
        there = turned(k, angles(key_positions - query_positions[:, i : i + 1], 8), 8)
        out[:, :, i] = scale * (q[:, :, i : i + 1] * there).sum(-1)
    return out


def scores_with_keys_alone(q, k, query_positions, key_positions, scale):
    k = turned(k, angles(key_positions, 8), 8)
    return scale * (q @ np.repeat(k, 2, axis=1).mT)


def scores_with_tiled_heads(q, k, query_positions, key_positions, scale):
    q, k = turned(q, angles(query_positions, 8), 8), turned(k, angles(key_positions, 8), 8)
    return scale * (q @ np.tile(k, (1, 2, 1, 1)).mT)


def scores_unscaled(q, k, query_positions, key_positions, scale):
    return scores_right(q, k, query_positions, key_positions, 1)


def scores_with_queries_from_zero(q, k, query_positions, key_positions, scale):
    rows = np.broadcast_to(np.arange(q.shape[2]), query_positions.shape)
    return scores_right(q, k, rows, key_positions, scale)


def scores_with_queries_alone(q, k, query_positions, key_positions, scale):
    q = turned(q, angles(query_positions, 8), 8)
    return scale * (q @ np.repeat(k, 2, axis=1).mT)


def scores_with_keys_turned_back(q, k, query_positions, key_positions, scale):
    return scores_right(q, k, query_positions, -key_positions, scale)


def scores_with_two_layouts(q, k, query_positions, key_positions, scale):
    q, k = turned(q, angles(query_positions, 8), 8), rotate_neighbors(k, key_positions, 8)
    return scale * (q @ np.repeat(k, 2, axis=1).mT)


def gradient_right(g, positions, dim):
    return turned(g, -angles(positions, dim), dim)


def gradient_by_autograd(g, positions, dim):
    x = torch.zeros(g.shape, requires_grad=True)
    a = torch.from_numpy(angles(positions, dim)).float()
    first, second = x.chunk(2, -1)
    torch.cat([first * a.cos() - second * a.sin(), second * a.cos() + first * a.sin()], -1).backward(torch.from_numpy(g))
    return x.grad


def gradient_forward(g, positions, dim):
    return turned(g, angles(positions, dim), dim)


def gradient_unturned(g, positions, dim):
    return g * np.cos(np.tile(angles(positions, dim), 2)).astype(np.float32)


def gradient_of_full_tables(g, cos, sin):
    y = g * sin
    return g * cos + np.concatenate([y[..., 4:], -y[..., :4]], -1)


def gradient_of_full_tables_turned_first(g, cos, sin):
    return g * cos - rotate_half(g) * sin


def gradient_of_full_tables_forward(g, cos, sin):
    return g * cos + rotate_half(g) * sin


def gradient_of_full_tables_without_sines(g, cos, sin):
    return g * cos


def permute_right(weight, heads, dim):
    w = weight.reshape(heads, dim // 2, 2, -1)
    return w.transpose(0, 2, 1, 3).reshape(weight.shape)


def permute_back(weight, heads, dim):
    w = weight.reshape(heads, 2, dim // 2, -1)
    return w.transpose(0, 2, 1, 3).reshape(weight.shape)


def permute_not(weight, heads, dim):
    return weight


def permute_without_heads(weight, heads, dim):
    return np.concatenate([weight[0::2], weight[1::2]])


def permute_columns(weight, heads, dim):
    return np.concatenate([weight[:, 0::2], weight[:, 1::2]], -1)


def permute_the_first_head(weight, heads, dim):
    return np.concatenate([permute_right(weight, heads, dim)[:dim], weight[dim:]])
