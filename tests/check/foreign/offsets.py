"""Offsets, windows and gathers as others write them, right and wrong."""

import numpy as np
import torch


def offsets_by_loops(query_positions, key_positions):
    return np.array([[[j - i for j in keys] for i in rows] for rows, keys in zip(query_positions, key_positions, strict=True)])


def offsets_reversed(query_positions, key_positions):
    return query_positions[..., :, None] - key_positions[..., None, :]


def offsets_of_rows(query_positions, key_positions):
    n_query, n_key = query_positions.shape[-1], key_positions.shape[-1]
    return np.broadcast_to(np.arange(n_key) - np.arange(n_query)[:, None], (len(query_positions), n_query, n_key))


def offsets_of_the_first_text(query_positions, key_positions):
    return np.broadcast_to(offsets_by_loops(query_positions[:1], key_positions[:1]), (len(key_positions), 5, 7))


def offsets_absolute(query_positions, key_positions):
    return np.abs(offsets_by_loops(query_positions, key_positions))


def offsets_one_too_large(query_positions, key_positions):
    return offsets_by_loops(query_positions, key_positions) + 1


def offsets_in_bytes(query_positions, key_positions):
    return offsets_by_loops(query_positions, key_positions).astype(np.int8).astype(np.int64)


def clip_right(offsets, low, high):
    return np.array([min(max(int(o), low), high) for o in offsets])


def clip_short(offsets, low, high):
    return torch.from_numpy(offsets).clamp(low, high - 1)


def clip_long(offsets, low, high):
    return torch.from_numpy(offsets).clamp(low, high + 1)


def clip_not(offsets, low, high):
    return offsets


def clip_above_alone(offsets, low, high):
    return np.minimum(offsets, high)


def clip_to_zero(offsets, low, high):
    return np.where((offsets < low) | (offsets > high), 0, offsets)


def clip_reflected(offsets, low, high):
    return np.where(offsets > high, 2 * high - offsets, np.where(offsets < low, 2 * low - offsets, offsets))


def toeplitz_right(by_offset, n_query, n_key):
    rows = [by_offset[..., n_query - 1 - i : n_query - 1 - i + n_key] for i in range(n_query)]
    return np.stack(rows, -2)


def toeplitz_reversed(by_offset, n_query, n_key):
    return toeplitz_right(by_offset[..., ::-1], n_query, n_key)


def toeplitz_flat(by_offset, n_query, n_key):
    return np.repeat(by_offset[..., None, :n_key], n_query, -2)


def toeplitz_hankel(by_offset, n_query, n_key):
    return np.stack([by_offset[..., i : i + n_key] for i in range(n_query)], -2)


def toeplitz_circulant(by_offset, n_query, n_key):
    return np.stack([np.roll(by_offset[..., :n_key], i, -1) for i in range(n_query)], -2)


def skew_right(by_offset):
    n, width = by_offset.shape[-2:]
    return np.stack([by_offset[..., i, n - 1 - i : width - i] for i in range(n)], -2)


def skew_in_torch(by_offset):
    x = torch.from_numpy(by_offset)
    n, width = x.shape[-2:]
    index = torch.arange(width - n + 1) + n - 1 - torch.arange(n)[:, None]
    return x.gather(-1, index.expand(*x.shape[:-1], -1))


def skew_not(by_offset):
    n, width = by_offset.shape[-2:]
    return by_offset[..., : width - n + 1]


def skew_dropping_the_end(by_offset):
    n, width = by_offset.shape[-2:]
    flat = np.pad(by_offset, [(0, 0)] * (by_offset.ndim - 1) + [(0, 1)]).reshape(*by_offset.shape[:-2], -1)
    return flat[..., :-n].reshape(by_offset.shape)[..., : width - n + 1]


def skew_the_other_way(by_offset):
    n, width = by_offset.shape[-2:]
    return np.stack([by_offset[..., i, i : width - n + 1 + i] for i in range(n)], -2)


def skew_one_late(by_offset):
    return np.roll(skew_right(by_offset), 1, -1)


def gather_right(by_offset, query_positions, key_positions, lowest):
    index = key_positions[:, None, :] - query_positions[:, :, None] - lowest
    return np.moveaxis(by_offset[:, index], 0, 1)


def gather_without_lowest(by_offset, query_positions, key_positions, lowest):
    return np.moveaxis(by_offset[:, key_positions[:, None, :] - query_positions[:, :, None]], 0, 1)


def gather_reversed(by_offset, query_positions, key_positions, lowest):
    return np.moveaxis(by_offset[:, query_positions[:, :, None] - key_positions[:, None, :] - lowest], 0, 1)


def gather_one_late(by_offset, query_positions, key_positions, lowest):
    return np.moveaxis(by_offset[:, key_positions[:, None, :] - query_positions[:, :, None] - lowest + 1], 0, 1)


def gather_with_heads_reversed(by_offset, query_positions, key_positions, lowest):
    return gather_right(by_offset, query_positions, key_positions, lowest)[:, ::-1]
