"""The index, merging, hierarchical positions and borders of convolutions as others write them, right and wrong."""

import numpy as np
import torch


def index_right(positions):
    return torch.from_numpy(positions).unsqueeze(-1).float()


def index_from_one(positions):
    return positions[..., None] + 1


def index_of_rows(positions):
    return np.broadcast_to(np.arange(positions.shape[-1]), positions.shape)[..., None]


def index_of_the_flat_batch(positions):
    return np.arange(positions.size).reshape(*positions.shape, 1)


def index_backwards(positions):
    return (positions.max() - positions)[..., None]


def normalized_right(positions, length):
    return (positions / np.float32(length - 1))[..., None].astype(np.float32)


def normalized_by_length(positions, length):
    return (positions / length)[..., None]


def normalized_from_one(positions, length):
    return ((positions + 1) / (length - 1))[..., None]


def not_normalized(positions, length):
    return positions[..., None].astype(np.float32)


def normalized_centers(positions, length):
    return 2 * ((positions + 0.5) / length)[..., None] - 1


def normalized_by_the_longest(positions, length):
    return (positions / positions.max())[..., None]


def normalized_to_both_sides(positions, length):
    return (2 * positions / (length - 1) - 1)[..., None]


def normalized_by_one_more(positions, length):
    return (positions / (length + 1))[..., None]


def steps_right(length):
    return np.full((length - 1, 1), 1 / (length - 1))


def steps_of_one(length):
    return np.ones((length - 1, 1))


def steps_backwards(length):
    return np.full((length - 1, 1), -1 / (length - 1))


def add_right(x, p):
    return torch.from_numpy(x) + torch.from_numpy(p)[None]


def add_scaled(x, p):
    return x * np.float32(x.shape[-1] ** 0.5) + p


def add_product(x, p):
    return x * p


def add_one_row(x, p):
    return x + p[0]


def add_scaled_position(x, p):
    return x + p * np.float32(x.shape[-1] ** 0.5)


def add_reversed(x, p):
    return x + p[::-1]


def add_after_norm(x, p):
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True) + p


def multiply_right(x, p):
    return x + x * p


def multiply_literal(x, p):
    return x * p


def multiply_sum(x, p):
    return x + p


def multiply_one_minus(x, p):
    return x * (1 - p)


def multiply_by_sigmoid(x, p):
    return x * (1 / (1 + np.exp(-p)))


def concatenate_right(x, p):
    return torch.cat([torch.from_numpy(x), torch.from_numpy(p).expand(len(x), -1, -1)], -1)


def concatenate_position_first(x, p):
    return np.concatenate([np.repeat(p[None], len(x), 0), x], -1)


def concatenate_interleaved(x, p):
    return np.stack([x, np.repeat(p[None], len(x), 0)], -1).reshape(*x.shape[:-1], -1)


def concatenate_reversed_rows(x, p):
    return np.concatenate([x, np.repeat(p[None, ::-1], len(x), 0)], -1)


def extend_right(table, alpha):
    u = (table - alpha * table[0]) / (1 - alpha)
    return np.array([alpha * u[i] + (1 - alpha) * u[j] for i in range(len(u)) for j in range(len(u))])


def extend_in_torch(table, alpha):
    table = torch.from_numpy(table)
    u = (table - alpha * table[:1]) / (1 - alpha)
    return torch.lerp(u[None, :], u[:, None], alpha).flatten(0, 1)


def extend_without_base(table, alpha):
    return np.array([alpha * a + (1 - alpha) * b for a in table for b in table])


def extend_swapped_alpha(table, alpha):
    u = (table - (1 - alpha) * table[0]) / alpha
    return np.array([(1 - alpha) * a + alpha * b for a in u for b in u])


def extend_swapped_digits(table, alpha):
    u = (table - alpha * table[0]) / (1 - alpha)
    return np.array([alpha * b + (1 - alpha) * a for a in u for b in u])


def extend_by_half(table, alpha):
    return extend_right(table, 0.5)


def extend_by_repeating(table, alpha):
    return np.tile(table, (len(table), 1))


def extend_without_division(table, alpha):
    u = table - alpha * table[0]
    return np.array([alpha * a + (1 - alpha) * b for a in u for b in u])


def extend_from_the_last_row(table, alpha):
    u = (table - alpha * table[-1]) / (1 - alpha)
    return np.array([alpha * a + (1 - alpha) * b for a in u for b in u])


def extend_by_interpolation(table, alpha):
    n = len(table)
    places = np.linspace(0, n - 1, n * n)
    return np.stack([np.interp(places, np.arange(n), column) for column in table.T], -1)


def hierarchical_right(positions, table, alpha):
    return extend_right(table, alpha)[positions]


def hierarchical_wrapped(positions, table, alpha):
    return table[positions % len(table)]


def hierarchical_clamped(positions, table, alpha):
    return table[np.minimum(positions, len(table) - 1)]


def padded(x, kernel, left, right, mode="constant"):
    x = np.pad(x, ((0, 0), (left, right), (0, 0)), mode=mode)
    n = x.shape[1] - len(kernel) + 1
    return np.stack([sum(x[:, i + k] @ kernel[k] for k in range(len(kernel))) for i in range(n)], 1)


def convolve_right(x, kernel):
    return padded(x, kernel, 1, 2)


def convolve_in_torch(x, kernel):
    x = torch.nn.functional.pad(torch.from_numpy(x).mT, (1, 2))
    return torch.nn.functional.conv1d(x, torch.from_numpy(kernel).permute(2, 1, 0)).mT


def convolve_flipped(x, kernel):
    return padded(x, kernel[::-1], 1, 2)


def convolve_circular(x, kernel):
    return padded(x, kernel, 1, 2, "wrap")


def convolve_left_heavy(x, kernel):
    return padded(x, kernel, 2, 1)


def convolve_causal(x, kernel):
    return padded(x, kernel, 3, 0)


def convolve_reflected(x, kernel):
    return padded(x, kernel, 1, 2, "reflect")


def convolve_edges(x, kernel):
    return padded(x, kernel, 1, 2, "edge")


def convolve_to_the_future(x, kernel):
    return padded(x, kernel, 0, 3)


def convolve_with_the_first_texts_border(x, kernel):
    flat = np.concatenate([*x])[None]
    return padded(flat, kernel, 1, 2).reshape(*x.shape[:-1], -1)
