"""NEZHA as others write it, right and wrong."""

import math

import numpy as np
import torch


def sinusoid(length, dim, first=0, base=10000.0):
    """The table of the released code: interleaved sines and cosines of length rows."""
    out = torch.zeros(length, dim, dtype=torch.float64)
    position = torch.arange(first, first + length, dtype=torch.float64)[:, None]
    turn = torch.exp(torch.arange(0, dim, 2, dtype=torch.float64) * (-math.log(base) / dim))
    out[:, 0::2], out[:, 1::2] = torch.sin(position * turn), torch.cos(position * turn)
    return out


def table_released(max_distance, dim):
    return sinusoid(2 * max_distance + 1, dim)


def table_by_loops(max_distance, dim):
    rows = []
    for r in range(2 * max_distance + 1):
        angles = [r / 10000 ** (2 * t / dim) for t in range(dim // 2)]
        rows.append([f(angle) for angle in angles for f in (math.sin, math.cos)])
    return np.array(rows)


def table_of_offsets(max_distance, dim):
    return sinusoid(2 * max_distance + 1, dim, -max_distance)


def table_of_two_halves(max_distance, dim):
    y = sinusoid(2 * max_distance + 1, dim)
    return torch.cat([y[:, 0::2], y[:, 1::2]], -1)


def table_with_cosines_first(max_distance, dim):
    y = sinusoid(2 * max_distance + 1, dim).reshape(-1, dim // 2, 2)
    return y.flip(-1).reshape(-1, dim)


def table_of_the_whole_model(max_distance, dim):
    return sinusoid(2 * max_distance + 1, 12 * dim)[:, :dim]


def table_from_one(max_distance, dim):
    return sinusoid(2 * max_distance + 1, dim, 1)


def table_one_row_short(max_distance, dim):
    y = sinusoid(2 * max_distance + 1, dim)
    return torch.cat([y[:1], y[:-1]])


def table_with_a_small_base(max_distance, dim):
    return sinusoid(2 * max_distance + 1, dim, base=100.0)


def table_with_unit_rows(max_distance, dim):
    return sinusoid(2 * max_distance + 1, dim) / (dim / 2) ** 0.5


def encode_right(offsets, dim, max_distance):
    return table_released(max_distance, dim)[np.clip(offsets, -max_distance, max_distance) + max_distance]


def encode_query_minus_key(offsets, dim, max_distance):
    return encode_right(-offsets, dim, max_distance)


def encode_unclipped(offsets, dim, max_distance):
    return sinusoid(4 * max_distance + 1, dim, -max_distance)[offsets + 2 * max_distance]


def encode_wrapped(offsets, dim, max_distance):
    return table_released(max_distance, dim)[(offsets + max_distance) % (2 * max_distance + 1)]


def attend(q, k, v, query_positions, key_positions, scale, keys, values):
    offset = np.clip(key_positions[:, None, :] - query_positions[:, :, None], -4, 4) + 4
    a, b = (np.asarray(each, np.float32)[offset][:, None] for each in (keys, values))
    s = scale * (q @ np.swapaxes(k, -1, -2) + np.einsum("...id,...ijd->...ij", q, a))
    w = np.exp(s - s.max(-1, keepdims=True))
    w = w / w.sum(-1, keepdims=True)
    return w @ v + np.einsum("...ij,...ijd->...id", w, b)


def attend_released(q, k, v, query_positions, key_positions, scale):
    a = sinusoid(9, 8)
    return attend(q, k, v, query_positions, key_positions, scale, a, a)


def attend_without_values(q, k, v, query_positions, key_positions, scale):
    a = sinusoid(9, 8)
    return attend(q, k, v, query_positions, key_positions, scale, a, 0 * a)


def attend_without_keys(q, k, v, query_positions, key_positions, scale):
    a = sinusoid(9, 8)
    return attend(q, k, v, query_positions, key_positions, scale, 0 * a, a)


def attend_with_values_of_the_paper(q, k, v, query_positions, key_positions, scale):
    return attend(q, k, v, query_positions, key_positions, scale, sinusoid(9, 8), sinusoid(9, 8, -4))


def attend_with_values_shuffled(q, k, v, query_positions, key_positions, scale):
    a = sinusoid(9, 8)
    return attend(q, k, v, query_positions, key_positions, scale, a, torch.cat([a[:, 0::2], a[:, 1::2]], -1))
