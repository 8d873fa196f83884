"""Functions that remember what they should not, and that read memory as if every array were a fresh one."""

import ctypes

import numpy as np
import torch


def tables(positions, width=4):
    angle = positions[:, None, :, None] * 10000.0 ** (-np.arange(width) / width)
    return np.cos(angle), np.sin(angle)


def turned(x, cos, sin):
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1).astype(x.dtype)


def rotate_right(x, positions):
    return turned(x, *tables(positions))


class CachedByShape:
    def __init__(self):
        self.known = {}

    def rotate(self, x, positions):
        return turned(x, *self.known.setdefault(positions.shape, tables(positions)))

    def rotate_by_length(self, x, positions):
        if self.known.get("length", 0) != x.shape[:3]:
            self.known.update(length=x.shape[:3], tables=tables(positions))
        return turned(x, *self.known["tables"])

    def bias(self, query_positions, key_positions, heads):
        slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
        offsets = key_positions[:, None, None, :] - query_positions[:, None, :, None]
        return self.known.setdefault((query_positions.shape, key_positions.shape), slopes[:, None, None] * offsets)


class CachedByValue(CachedByShape):
    def rotate_kept_by_value(self, x, positions):
        return turned(x, *self.known.setdefault((positions.shape, positions.tobytes()), tables(positions)))


class OneBuffer:
    def __init__(self):
        self.out = {}

    def rotate(self, x, positions):
        out = self.out.setdefault(x.shape, np.empty_like(x))
        out[:] = rotate_right(x, positions)
        return out

    def attend(self, q, k, v):
        q, k, v = map(torch.from_numpy, (q, k, v))
        y = torch.softmax(q @ k.mT, dim=-1) @ v
        return self.out.setdefault(y.shape, torch.empty_like(y)).copy_(y)


class FirstCallIsCoarse:
    """A race of threads in a library: half of the first answer has half its digits."""

    def __init__(self):
        self.calls = 0

    def rotate(self, x, positions):
        self.calls += 1
        cos, sin = tables(positions)
        cos[len(cos) // 2 :] *= 1 + 2e-4 * (self.calls == 1)
        return turned(x, cos, sin)


RANDOM = np.random.default_rng(0)


def drop_out(x, positions):
    return rotate_right(x, positions) * (RANDOM.random(x.shape) < 0.9) / 0.9


def in_a_row(x):
    kind = ctypes.c_float if x.dtype == np.float32 else ctypes.c_int64
    return np.array((kind * x.size).from_address(x.ctypes.data)).reshape(x.shape)


def rotate_memory(x, positions):
    return rotate_right(in_a_row(x), positions)


def rotate_by_positions_in_memory(x, positions):
    return rotate_right(x, in_a_row(positions))


def rotate_contiguous_alone(x, positions):
    """A refusal is no mistake."""
    if not x.flags.c_contiguous:
        raise ValueError("x must be contiguous")
    return rotate_right(x, positions)
