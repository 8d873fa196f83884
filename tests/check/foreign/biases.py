"""Biases of gates, of networks and of windows as others write them, right and wrong."""

import numpy as np
import torch


def gates_after_the_key(log_gates):
    f = torch.from_numpy(log_gates)
    out = torch.zeros(*f.shape, f.shape[-1], dtype=f.dtype)
    for i, j in np.ndindex(out.shape[-2:]):
        first, last = min(i, j) + 1, max(i, j)
        total = f[..., first : last + 1].sum(-1)
        out[..., i, j] = total if j <= i else -total
    return out


def gates_with_the_key(log_gates):
    c = torch.from_numpy(log_gates).cumsum(-1)
    before = torch.nn.functional.pad(c, (1, 0))[..., :-1]
    return c[..., :, None] - before[..., None, :]


def fire(i, j, w_1, b_1, w_2, b_2, first=0, f=torch.relu):
    i, j, w_1, b_1, w_2, b_2 = (torch.from_numpy(np.asarray(x)).double() for x in (i, j, w_1, b_1, w_2, b_2))
    i, j = i[..., :, None] + first, j[..., None, :] + first
    x = torch.log1p(0.125 * (i - j).abs()) / (torch.log1p(0.125 * i.clamp(min=4.0)) + 2.0**-20)
    return (f(x[..., None] * w_1 + b_1) @ w_2 + b_2).movedim(-1, -3)


def fire_right(query_positions, key_positions, w_1, b_1, w_2, b_2):
    return fire(query_positions, key_positions, w_1, b_1, w_2, b_2)


def fire_from_one(query_positions, key_positions, w_1, b_1, w_2, b_2):
    return fire(query_positions, key_positions, w_1, b_1, w_2, b_2, first=1)


def fire_with_gelu(query_positions, key_positions, w_1, b_1, w_2, b_2):
    return fire(query_positions, key_positions, w_1, b_1, w_2, b_2, f=torch.nn.GELU())


def fire_with_gelu_in_float32(query_positions, key_positions, w_1, b_1, w_2, b_2):
    layers = (torch.from_numpy(x).float() for x in (w_1, b_1, w_2, b_2))
    i, j = (torch.from_numpy(x).float() for x in (query_positions, key_positions))
    x = torch.log(0.125 * (i[..., :, None] - j[..., None, :]).abs() + 1)
    x = x / (torch.log(0.125 * i.clamp(min=4.0) + 1)[..., None] + 2.0**-20)
    w_1, b_1, w_2, b_2 = layers
    return (torch.nn.functional.gelu(x[..., None] * w_1 + b_1) @ w_2 + b_2).permute(0, 3, 1, 2)


def fire_with_the_gelu_of_jax(query_positions, key_positions, w_1, b_1, w_2, b_2):
    return fire(query_positions, key_positions, w_1, b_1, w_2, b_2, f=torch.nn.GELU(approximate="tanh"))


def fire_with_silu(query_positions, key_positions, w_1, b_1, w_2, b_2):
    return fire(query_positions, key_positions, w_1, b_1, w_2, b_2, f=torch.nn.functional.silu)


def kerple_right(query_positions, key_positions, p, a, change=lambda distance: distance):
    i, j, p, a = (torch.from_numpy(x) for x in (query_positions, key_positions, p, a))
    distance = change((i[:, None, :, None] - j[:, None, None, :]).abs())
    return -p[:, None, None] * torch.log1p(a[:, None, None] * distance)


def kerple_capped_at_700(query_positions, key_positions, p, a):
    return kerple_right(query_positions, key_positions, p, a, lambda distance: distance.clamp(max=700))


def kerple_of_float16_distances(query_positions, key_positions, p, a):
    return kerple_right(query_positions, key_positions, p, a, lambda distance: distance.half().float())


def windows(coordinates, table, height, width, stride):
    delta = torch.from_numpy(coordinates[:, None] - coordinates[None]) + torch.tensor([height - 1, width - 1])
    return torch.from_numpy(table)[delta[..., 0] * stride + delta[..., 1]].movedim(-1, 0)


def windows_right(coordinates, table, height, width):
    return windows(coordinates, table, height, width, 2 * width - 1)


def windows_without_a_stride(coordinates, table, height, width):
    return windows(coordinates, table, height, width, 1)


def ids(mask, filler):
    mask = torch.from_numpy(np.asarray(mask)).long()
    return (mask.cumsum(-1) - 1).masked_fill(mask == 0, filler)


def ids_right(mask):
    return ids(mask, 0)


def ids_of_older_transformers(mask):
    return ids(mask, 1)
