"""Complex Order, FLOATER and recurrent encodings as others write them, right and wrong."""

import cmath
from itertools import pairwise

import numpy as np
import torch


def parts(z):
    return np.stack([z.real, z.imag], -1)


def wave(positions, amplitude, frequency, phase):
    return amplitude * np.exp(1j * (frequency * positions[..., None] + phase).astype(np.float64))


def wave_in_torch(positions, amplitude, frequency, phase):
    angle = torch.from_numpy(frequency).double() * torch.from_numpy(positions)[..., None] + torch.from_numpy(phase)
    return (
        torch.view_as_real(torch.polar(torch.from_numpy(abs(amplitude)).double(), angle))
        * torch.from_numpy(np.sign(amplitude))[..., None]
    )


def wave_by_loops(positions, amplitude, frequency, phase):
    out = np.zeros((*amplitude.shape, 2))
    for place in np.ndindex(amplitude.shape):
        z = cmath.rect(float(amplitude[place]), float(frequency[place]) * int(positions[place[:2]]) + float(phase[place]))
        out[place] = z.real, z.imag
    return out


def wave_without_phase(positions, amplitude, frequency, phase):
    return parts(wave(positions, amplitude, frequency, 0 * phase))


def wave_with_phase_subtracted(positions, amplitude, frequency, phase):
    return parts(wave(positions, amplitude, frequency, -phase))


def wave_conjugated(positions, amplitude, frequency, phase):
    return parts(wave(positions, amplitude, frequency, phase).conj())


def wave_from_one(positions, amplitude, frequency, phase):
    return parts(wave(positions + 1, amplitude, frequency, phase))


def wave_with_one_frequency(positions, amplitude, frequency, phase):
    return parts(wave(positions, amplitude, frequency[:, :1], phase))


def wave_in_turns(positions, amplitude, frequency, phase):
    return parts(wave(positions, amplitude, 2 * np.pi * frequency, phase))


def wave_with_unit_amplitude(positions, amplitude, frequency, phase):
    return parts(wave(positions, 1, frequency, phase))


def wave_with_phase_inside(positions, amplitude, frequency, phase):
    return parts(amplitude * np.exp(1j * frequency.astype(np.float64) * (positions[..., None] + phase)))


def wave_with_sine_first(positions, amplitude, frequency, phase):
    return parts(wave(positions, amplitude, frequency, phase))[..., ::-1]


def wave_of_absolute_amplitude(positions, amplitude, frequency, phase):
    return parts(wave(positions, abs(amplitude), frequency, phase))


def products(i, a, b, c, j, d, e, f):
    return wave(i, a, b, c) @ wave(j, d, e, f).conj().mT


def scores_real(i, a, b, c, j, d, e, f):
    return products(i, a, b, c, j, d, e, f).real


def scores_by_parts(i, a, b, c, j, d, e, f):
    q, k = wave(i, a, b, c), wave(j, d, e, f)
    return np.concatenate([q.real, q.imag], -1) @ np.concatenate([k.real, k.imag], -1).mT


def scores_unconjugated(i, a, b, c, j, d, e, f):
    return (wave(i, a, b, c) @ wave(j, d, e, f).mT).real


def scores_imaginary(i, a, b, c, j, d, e, f):
    return products(i, a, b, c, j, d, e, f).imag


def scores_modulus(i, a, b, c, j, d, e, f):
    return abs(products(i, a, b, c, j, d, e, f))


def scores_of_the_sum(i, a, b, c, j, d, e, f):
    z = products(i, a, b, c, j, d, e, f)
    return z.real + z.imag


def scores_of_reals_alone(i, a, b, c, j, d, e, f):
    return wave(i, a, b, c).real @ wave(j, d, e, f).real.mT


def words_right(words, dim):
    return words[:, None] / 10000.0 ** (2 * np.arange(dim) / dim)


def words_of_half_the_schedule(words, dim):
    return words[:, None] / 10000.0 ** (np.arange(dim) / dim)


def words_in_pairs(words, dim):
    return words[:, None] / 10000.0 ** (2 * (np.arange(dim) // 2) / dim)


def words_ignored(words, dim):
    return np.ones_like(words)[:, None] / 10000.0 ** (2 * np.arange(dim) / dim)


def speed(t, p):
    return np.stack([p[..., 1] - t * p[..., 0], t - p[..., 0] * p[..., 1]], axis=-1)


def solved(rule, start, times, substeps):
    p, rows = start.astype(np.float64), [start]
    for begin, end in pairwise(times):
        h = (end - begin) / substeps
        for n in range(substeps):
            p = rule(begin + n * h, p, h)
        rows.append(p)
    return np.stack(rows, -2)


def three_eighths(t, p, h, f=speed):
    a = f(t, p)
    b = f(t + h / 3, p + h * a / 3)
    c = f(t + 2 * h / 3, p + h * (b - a / 3))
    return p + h / 8 * (a + 3 * b + 3 * c + f(t + h, p + h * (a - b + c)))


def field_right(start, times, substeps):
    return solved(three_eighths, start, times.astype(np.float64), substeps)


def field_classical(start, times, substeps):
    def rule(t, p, h):
        a = speed(t, p)
        b = speed(t + h / 2, p + h / 2 * a)
        c = speed(t + h / 2, p + h / 2 * b)
        return p + h / 6 * (a + 2 * b + 2 * c + speed(t + h, p + h * c))

    return solved(rule, start, times.astype(np.float64), substeps)


def field_euler(start, times, substeps):
    return solved(lambda t, p, h: p + h * speed(t, p), start, times.astype(np.float64), substeps)


def field_midpoint(start, times, substeps):
    return solved(lambda t, p, h: p + h * speed(t + h / 2, p + h / 2 * speed(t, p)), start, times.astype(np.float64), substeps)


def field_in_one_step(start, times, substeps):
    return solved(three_eighths, start, times.astype(np.float64), 1)


def field_of_frozen_time(start, times, substeps):
    def rule(t, p, h):
        return three_eighths(t, p, h, lambda _, x: speed(t, x))

    return solved(rule, start, times.astype(np.float64), substeps)


def field_with_equal_weights(start, times, substeps):
    def rule(t, p, h):
        a, b = speed(t, p), speed(t + h, p + h * speed(t, p))
        return p + h / 2 * (a + b)

    return solved(rule, start, times.astype(np.float64), substeps)


def field_without_time(start, times, substeps):
    def rule(t, p, h):
        return three_eighths(t, p, h, lambda _, x: speed(0, x))

    return solved(rule, start, times.astype(np.float64), substeps)


def sinusoid(dim, length, step, turn=1.0):
    """Numbers of the rule for a rotation: its matrix is a polynomial of the generator."""
    w = turn * 10000.0 ** (-2 * np.arange(dim // 2) / dim)
    p, rows = np.ones(dim // 2, dtype=complex), []
    z = 1j * w * step / 5
    for _ in range(length):
        rows.append(np.concatenate([p.imag, p.real]))
        p = p * (1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24) ** 5
    return np.array(rows)


def sinusoid_right(dim, length, step):
    return sinusoid(dim, length, step)


def sinusoid_backwards(dim, length, step):
    return sinusoid(dim, length, step, -1.0)


def sinusoid_of_whole_times(dim, length, step):
    return sinusoid(dim, length, 1.0)


def sinusoid_interleaved(dim, length, step):
    return sinusoid(dim, length, step).reshape(length, 2, -1).swapaxes(1, 2).reshape(length, -1)


def sinusoid_itself(dim, length, step):
    a = step * np.arange(length)[:, None] * 10000.0 ** (-2 * np.arange(dim // 2) / dim)
    return np.concatenate([np.sin(a), np.cos(a)], -1)


def sinusoid_of_two_turns(dim, length, step):
    return sinusoid(dim, length, step, 2.0)


def sinusoid_shrinking(dim, length, step):
    return sinusoid(dim, length, step) * 0.99 ** np.arange(length)[:, None]


def linear(matrix, start, length=7):
    return np.stack([start @ np.linalg.matrix_power(matrix.astype(np.float64), i).T for i in range(length)], -2)


def linear_right(matrix, start):
    return linear(matrix, start)


def linear_by_steps(matrix, start):
    p, rows = torch.from_numpy(start), []
    for _ in range(7):
        rows.append(p)
        p = p @ torch.from_numpy(matrix).T
    return torch.stack(rows, -2)


def linear_transposed(matrix, start):
    return linear(matrix.T, start)


def linear_from_the_first_step(matrix, start):
    return linear(matrix, start, 8)[:, 1:]


def linear_of_one_step(matrix, start):
    return linear(matrix, start)[:, [0, 1, 1, 1, 1, 1, 1]]


def linear_from_zeros(matrix, start):
    return linear(matrix, 0 * start)


def linear_added(matrix, start):
    return np.cumsum(linear(matrix, start), axis=-2)


def linear_doubling(matrix, start):
    return linear(matrix @ matrix, start)


def linear_of_the_first_text(matrix, start):
    return linear(matrix, np.broadcast_to(start[:1], start.shape))


def linear_normalized(matrix, start):
    y = linear(matrix, start)
    return y / np.linalg.norm(y, axis=-1, keepdims=True)
