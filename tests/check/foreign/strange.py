"""What nobody would write: no list can have it, and it may not be called something that it is not."""

import numpy as np


def turned(x, angles, dim=8):
    first, second = x[..., : dim // 2], x[..., dim // 2 : dim]
    y = first * np.cos(angles) - second * np.sin(angles), first * np.sin(angles) + second * np.cos(angles)
    return np.concatenate([*y, x[..., dim:]], -1).astype(np.float32)


def frequencies(dim):
    return 10000.0 ** (-2 * np.arange(dim // 2) / dim)


def rotate_by_squares(x, positions):
    return turned(x, positions[:, None, :, None] ** 2 / 1000 * frequencies(8))


def rotate_by_logarithms(x, positions):
    return turned(x, 10 * np.log1p(positions[:, None, :, None]) * frequencies(8))


def rotate_by_waves(x, positions):
    return turned(x, 3 * np.sin(positions[:, None, :, None] * frequencies(8)))


def rotate_and_stretch(x, positions):
    angles = positions[:, None, :, None] * frequencies(8)
    return turned(x * (1 + 0.3 * np.tile(np.sin(angles), 2)), angles)


def rotate_by_digits(x, positions):
    digits = np.array([[sum(map(int, str(p))) for p in row] for row in positions])
    return turned(x, digits[:, None, :, None] * frequencies(8))


def frequencies_of_squares(dim):
    return 1 / (1 + np.arange(dim // 2)) ** 2.5


def frequencies_of_a_cosine(dim):
    return np.cos(np.arange(dim // 2) * 1.5 / dim) ** 3


def encode_with_tents(positions, dim):
    a = positions[..., None] * frequencies(dim)
    tents = [2 / np.pi * np.arcsin(np.sin(a + shift)) for shift in (0, np.pi / 2)]
    return np.stack(tents, -1).reshape(*positions.shape, dim)


def encode_with_sines_of_sines(positions, dim):
    a = positions[..., None] * frequencies(dim)
    return np.stack([np.sin(2 * np.sin(a)), np.cos(2 * np.sin(a))], -1).reshape(*positions.shape, dim)


def slopes(heads):
    return 2.0 ** (-8 * np.arange(1, heads + 1) / heads)[:, None, None]


def distances(query_positions, key_positions):
    return (key_positions[:, None, :] - query_positions[:, :, None])[:, None].astype(float)


def bias_of_power_3_2(query_positions, key_positions, heads):
    d = distances(query_positions, key_positions)
    return slopes(heads) * np.sign(d) * np.abs(d) ** 1.5


def bias_that_saturates(query_positions, key_positions, heads):
    d = distances(query_positions, key_positions)
    return slopes(heads) * d / (1 + np.abs(d) / 37)


def bias_of_waves(query_positions, key_positions, heads):
    return 5 * slopes(heads) * np.sin(distances(query_positions, key_positions) / 5)


def bucket_by_cube_roots(offsets, bidirectional):
    return (np.minimum(np.floor(3 * np.cbrt(np.abs(offsets))), 15) + 16 * (offsets > 0)).astype(int)


def bucket_by_digits(offsets, bidirectional):
    return (np.abs(offsets) % 10 + 16 * (offsets > 0)).astype(int)


def softmax(scores, mask=True, power=1.0):
    weights = np.where(mask, np.exp(scores - scores.max(-1, keepdims=True)), 0) ** power
    return weights / np.maximum(weights.sum(-1, keepdims=True), 1e-30)


def softmax_of_squares(scores, mask):
    return softmax(-scores * scores, mask)


def softmax_of_waves(scores, mask):
    return softmax(3 * np.sin(scores), mask)


def cross_with_square_roots(q, k, v):
    return softmax(np.sign(q @ k.mT) * np.abs(q @ k.mT) ** 0.5) @ v


def cross_by_distance(q, k, v):
    return softmax(-((q[..., :, None, :] - k[..., None, :, :]) ** 2).sum(-1) / 3) @ v


def shaw_with_magnitudes(q, k, key_table, query_positions, key_positions, scale):
    rows = np.clip(distances(query_positions, key_positions), -4, 4).astype(int) + 4
    return scale * (q @ k.mT + np.abs(np.einsum("...id,...ijd->...ij", q, key_table[rows])))


def shaw_with_rows_by_roots(q, k, key_table, query_positions, key_positions, scale):
    d = distances(query_positions, key_positions)
    rows = np.clip(np.rint(np.sign(d) * np.abs(d) ** 0.5), -4, 4).astype(int) + 4
    return scale * (q @ k.mT + np.einsum("...id,...ijd->...ij", q, key_table[rows]))


def deberta_index_by_roots(offsets, span):
    return np.clip(np.rint(span + np.sign(offsets) * np.abs(offsets) ** 0.5), 0, 2 * span - 1).astype(int)


def reset_to_means(t, theta_1, theta_2):
    y = t.copy()
    y[..., 0, :] = (t[..., 0, :] + theta_1[:, None]) / 2
    y[..., 1:, 0] = (t[..., 1:, 0] + theta_2[:, None]) / 2
    return y


def index_of_roots(positions):
    return np.sqrt(positions)[..., None]


def add_in_a_ring(x, p):
    return x + 0.5 * p + 0.5 * np.sin(x * p)


def extend_to_the_larger(table, alpha):
    u = (table - alpha * table[:1]) / (1 - alpha)
    return np.maximum(u[:, None], u[None]).reshape(-1, table.shape[-1])


def kerple_of_tangents(query_positions, key_positions, r_1, r_2):
    return -r_1[:, None, None] * np.tanh(r_2[:, None, None] * np.abs(distances(query_positions, key_positions)) / 9)


def clip_softly(offsets, low, high):
    return np.rint(np.where(offsets > 0, high * np.tanh(offsets / high), low * np.tanh(offsets / low))).astype(int)


def llama3_smoothed(dim):
    w = 500000.0 ** (-2 * np.arange(dim // 2) / dim)
    t = np.clip((8192 * w / (2 * np.pi) - 1) / 3, 0, 1)
    t = t * t * (3 - 2 * t)
    return (1 - t) * w / 8 + t * w


def linear_by_squares(q, k, v, positions):
    a = positions[:, None, :, None] * frequencies(8)
    weights = np.tril((turned(q, a) @ turned(k, a).mT) ** 2)
    return weights @ v / weights.sum(-1, keepdims=True)


def padded_by_halves(mask):
    return (np.cumsum(mask, axis=-1) * mask) // 2


def complex_with_amplitudes_in_the_phase(positions, amplitude, frequency, phase):
    z = amplitude * np.exp(1j * (frequency * positions[..., None] + phase * amplitude))
    return np.stack([z.real, z.imag], -1)


def encode_with_chirps(positions, dim):
    a = positions[..., None] * frequencies(dim) + positions[..., None] ** 2 / 50
    return np.stack([np.sin(a), np.cos(a)], -1).reshape(*positions.shape, dim)


def softmax_of_ranks(scores, mask):
    ranks = np.where(mask, 1.0 + np.argsort(np.argsort(np.where(mask, scores, -np.inf), -1), -1), 0)
    return ranks / np.maximum(ranks.sum(-1, keepdims=True), 1)


def shard_of_blends(heads, first, count):
    every = slopes(heads)[:, 0, 0]
    return 0.6 * every[first : first + count] + 0.4 * every[:count] ** 2


def learned_of_blends(positions, table):
    return 0.7 * table[positions] + 0.3 * table[(7 * positions + 3) % len(table)] ** 2
