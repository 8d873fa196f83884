"""Short convolution: each feature is a weighted sum of its last few tokens."""

import itertools

import numpy as np

from proofs.state.convolution import definition
from proofs.vectors import *

SOURCES = ("Fu et al., arXiv 2212.14052, section 3", "Yang et al., arXiv 2406.06484, section 3.4")

CONVENTIONS = {
    "axes": "x (.., n, c), kernel (c, width), bias (c,), state (.., width - 1, c), the oldest row first",
    "op convolve": "bias_c + sum_t kernel_ct x_{i - (width - 1) + t, c}, with the rows of state before x",
    "op packed": "as convolve, with zeros before each text; text m is in rows boundaries[m] .. boundaries[m + 1] - 1",
    "op keep": "the last width - 1 rows of state and x",
}
REJECTED = (
    ("convolution/convolve/w4/painted", "state", {"state": fewer}, "shape", "One row for each tap but the last."),
    ("convolution/convolve/w4/painted", "bias", {"bias": cut}, "shape", "A bias for every feature."),
)
STATE = "state_ignored state_one_row_behind state_in_reverse one_token_late"


def vectors():
    for probe, shape, width in (("painted", (2, 5, 3), 4), ("short-text", (2, 1, 2), 4), ("no-batch", (4, 2), 3)):
        x, kernel, bias = painted(shape, 1), painted((shape[-1], width), 2), painted(shape[-1:], 4)
        state = painted((*shape[:-2], width - 1, shape[-1]), 6)
        rows = np.concatenate([state, x], axis=-2)
        n = shape[-2]
        id, tensors = f"convolution/convolve/w{width}/{probe}", {"x": x, "kernel": kernel, "bias": bias, "state": state}
        kills = f"{STATE} state_one_row_ahead kernel_turned_around bias_left_out one_kernel_for_all"
        # all sums of these products are exact, in any order
        yield case(id, "convolve", {}, tensors, _convolved(rows, kernel, bias), kills=kills, models=("f64", "f32"))
        id, tensors = f"convolution/keep/w{width}/{probe}", {"x": x, "kernel": kernel, "state": state}
        yield case(id, "keep", {}, tensors, rows[..., n:, :], kills=STATE if n < width - 1 else "one_token_late")
    x, kernel, bias, ends = painted((2, 7, 3), 1), painted((3, 4), 2), painted((3,), 4), (0, 1, 3, 7)
    texts = [np.pad(x[:, a:b], ((0, 0), (3, 0), (0, 0))) for a, b in itertools.pairwise(ends)]
    id, tensors = "convolution/packed/w4/three", {"x": x, "kernel": kernel, "bias": bias, "boundaries": np.array(ends)}
    expected = np.concatenate([_convolved(rows, kernel, bias) for rows in texts], axis=-2)
    yield case(id, "packed", {}, tensors, expected, kills="state_not_reset bias_left_out", models=("f64", "f32"))


def _convolved(rows, kernel, bias):
    rows, kernel, bias = map(numbers, (rows, kernel, bias))
    width = kernel.shape[-1]
    out = np.zeros((*rows.shape[:-2], rows.shape[-2] - width + 1, rows.shape[-1]), dtype=object)
    for *at, i, c in np.ndindex(*out.shape):
        out[(*at, i, c)] = definition(rows[tuple(at)], kernel, i + width - 1, c) + bias[c]
    return out
