"""The sinusoid as others write it, right and wrong."""

import math

import numpy as np
import torch


def frequencies_by_exp(dim):
    return np.exp(np.arange(0, dim, 2) * -(math.log(10000.0) / dim))


def frequencies_in_torch(dim):
    return 1.0 / 10000 ** (torch.arange(0, dim, 2).double() / dim)


def frequencies_of_tensor2tensor(dim):
    return np.exp(np.arange(dim // 2) * -(math.log(10000.0) / (dim // 2 - 1)))


def frequencies_of_every_feature(dim):
    return 10000.0 ** (-np.arange(dim // 2) / dim)


def frequencies_inverted(dim):
    return 10000.0 ** (2 * np.arange(dim // 2) / dim)


def frequencies_counted_from_one(dim):
    return 10000.0 ** (-2 * np.arange(1, dim // 2 + 1) / dim)


def frequencies_with_a_square(dim):
    return 10000.0 ** (-4 * np.arange(dim // 2) / dim)


def angles(positions, dim, base=10000.0, width=None):
    width = width or dim
    w = np.array([base ** (-2 * t / width) for t in range(dim // 2)])
    return positions[..., None] * w


def interleaved(sine, cosine):
    return np.stack([sine, cosine], -1).reshape(*sine.shape[:-1], -1)


def encode_published(positions, dim):
    a = angles(positions, dim)
    out = np.zeros((*positions.shape, dim), dtype=np.float32)
    out[..., 0::2], out[..., 1::2] = np.sin(a), np.cos(a)
    return out


def encode_in_torch_float32(positions, dim):
    div = torch.exp(torch.arange(0, dim, 2).float() * (-math.log(10000.0) / dim))
    a = torch.from_numpy(positions).float()[..., None] * div
    return torch.stack([a.sin(), a.cos()], -1).flatten(-2)


def encode_by_phase(positions, dim):
    a = np.repeat(angles(positions, dim), 2, axis=-1)
    return np.sin(a + np.tile([0, math.pi / 2], dim // 2))


def encode_by_loops(positions, dim):
    out = np.zeros((*positions.shape, dim))
    for place in np.ndindex(positions.shape):
        for i in range(dim):
            angle = positions[place] / 10000 ** (2 * (i // 2) / dim)
            out[(*place, i)] = math.cos(angle) if i % 2 else math.sin(angle)
    return out


def encode_concatenated(positions, dim):
    return np.concatenate([np.sin(angles(positions, dim)), np.cos(angles(positions, dim))], -1)


def encode_cosines_first(positions, dim):
    return interleaved(np.cos(angles(positions, dim)), np.sin(angles(positions, dim)))


def encode_from_one(positions, dim):
    return encode_published(positions + 1, dim)


def encode_rows(positions, dim):
    return encode_published(np.broadcast_to(np.arange(positions.shape[-1]), positions.shape), dim)


def encode_the_first_text(positions, dim):
    return np.broadcast_to(encode_published(positions[0], dim), (*positions.shape, dim))


def encode_to_the_last_frequency(positions, dim):
    a = angles(positions, dim, width=dim - 2)
    return interleaved(np.sin(a), np.cos(a))


def encode_with_base_1000(positions, dim):
    a = angles(positions, dim, base=1000.0)
    return interleaved(np.sin(a), np.cos(a))


def encode_degrees(positions, dim):
    a = np.deg2rad(angles(positions, dim))
    return interleaved(np.sin(a), np.cos(a))


def encode_sines_alone(positions, dim):
    return np.sin(np.repeat(angles(positions, dim), 2, axis=-1))


def encode_with_an_angle_a_feature(positions, dim):
    """i in the place of i // 2: sine and cosine of a pair have different angles."""
    a = positions[..., None] / 10000 ** (2 * np.arange(dim) / dim)
    return np.where(np.arange(dim) % 2 == 0, np.sin(a), np.cos(a))


def encode_in_a_loop_over_even_features(positions, dim):
    out = np.zeros((*positions.shape, dim))
    for i in range(0, dim, 2):
        out[..., i] = np.sin(positions / 10000 ** (2 * i / dim))
        out[..., i + 1] = np.cos(positions / 10000 ** (2 * (i + 1) / dim))
    return out


def encode_with_the_parity_of_the_position(positions, dim):
    a = np.repeat(angles(positions, dim), 2, axis=-1)
    return np.where(positions[..., None] % 2 == 0, np.sin(a), np.cos(a))


def encode_negative_sines(positions, dim):
    return interleaved(-np.sin(angles(positions, dim)), np.cos(angles(positions, dim)) * 0.5)


def encode_scaled(positions, dim):
    return encode_published(positions, dim) * dim**-0.5


def encode_turned_by_one_pair(positions, dim):
    return np.roll(encode_published(positions, dim), 2, axis=-1)


def encode_normalized_positions(positions, dim):
    return encode_published(positions / positions.max(), dim)
