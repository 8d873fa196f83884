"""Offsets: the relative position of a key, and the matrices that depend on nothing else."""

import numpy as np

from proofs.offsets import clipped, definition
from proofs.vectors import *

SOURCES = ("Shaw et al., Self-Attention with Relative Position Representations, arXiv 1803.02155, sections 3.2 and 3.3",)

CONVENTIONS = {
    "axes": "offsets and matrices end in (n_query, n_key), rows are queries",
    "by_offset": "ascending in the offset; entry 0 is the offset `lowest`, or 1 - n_query",
    "offset": "key position - query position",
    "op clip": "min(max(o, low), high), exactly",
    "op gather": "by_offset[offset - lowest], unchanged",
    "op offsets": "the offset of every pair, exactly",
    "op skew": "by_offset[i, j - i + n_query - 1], unchanged",
    "op toeplitz": "by_offset[j - i + n_query - 1], unchanged",
}
REJECTED = (
    ("offsets/clip/l4-h4/shaw", "low-above-high", {"low": 5}, "range", "No number is at least 5 and at most 4."),
    ("offsets/contiguous/h3-q2-k5/toeplitz", "width", {"by_offset": cut}, "shape", "2 queries and 5 keys have 6 offsets."),
    ("offsets/gather/h3-w7/chunk", "outside", {"keys": [0, 1, 2, 3, 9]}, "range", "Nothing wraps to the other end."),
)
REASONS = """
pair clip clip clip_one_early clip_one_late | one more and one less
"""


def vectors():
    padded = [[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]]  # the first row is padded on the left by two tokens
    yield _offsets("chunk", [3, 4], range(5), "transposed positions_ignored")
    yield _offsets("decode", [131071], [0, 4097, 48040, 131071], "transposed positions_ignored")
    shared = "transposed positions_ignored positions_shared_across_batch"
    yield _offsets("fractional", HALVES[1:3], HALVES, "transposed positions_ignored")
    yield _offsets("negative", BELOW[1:3], BELOW, "transposed positions_ignored")
    yield _gather("negative", BELOW[:3], BELOW, -42, 48, "transposed positions_ignored lowest_ignored")
    yield _offsets("padded", [[1, 2, 9], [2, 3, 4]], padded, shared)
    ends = "no_clip clip_one_early clip_one_late clip_low_late wrapped transposed"
    yield _clip("shaw", -4, 4, ends)
    yield _clip("deberta", -4, 3, ends)
    yield _clip("wav2vec2-bert", -64, 8, ends)
    yield _toeplitz(2, 5)
    yield _toeplitz(5, 3)
    yield _skew(3, 5)
    yield _skew(5, 2)
    yield _gather("chunk", [2, 3, 4], range(5), -4, 7, "transposed positions_ignored lowest_ignored")
    yield _gather("decode", [6], [0, 3, 4, 6, 2], -6, 8, "positions_ignored lowest_ignored")
    yield _offsets("places", PLACES[:, 1:3], PLACES, f"{NARROW} {shared}")
    rows = "positions_clamped bf16_positions f16_positions f32_positions positions_shared_across_batch lowest_ignored"
    near = np.array([[3, 0, 1, 2], [32768, 32766, 32767, 32769], [65536, 65534, 65535, 65537], PLACES[2]])
    yield _gather("places", near[:, 1:3], near, -3, 9, rows)
    packed = [[0, 1, 0, 1, 2], [0, 1, 2, 3, 0]]
    yield _gather("packed", packed, packed, -4, 9, "transposed positions_ignored positions_shared_across_batch lowest_ignored")


def _pairs(queries, keys):
    queries, keys = np.array(queries), np.array(keys)
    return definition(queries[..., :, None], keys[..., None, :])


def _offsets(probe, queries, keys, mistakes):
    tensors = {"queries": np.array(queries), "keys": np.array(keys)}
    return case(f"offsets/any/m{np.shape(keys)[-1]}/{probe}", "offsets", {}, tensors, _pairs(queries, keys), kills=mistakes)


def _clip(probe, low, high, mistakes):
    reach = [*range(-7, 8), -131071, -65, -64, -63, 48040]
    id, expected = f"offsets/clip/l{-low}-h{high}/{probe}", [clipped(o, low, high) for o in reach]
    return case(id, "clip", {"low": low, "high": high}, {"offsets": reach}, expected, kills=mistakes)


def _toeplitz(n, m):
    b = painted((3, n + m - 1), 1)
    matrix = lambda row: [[[x[row(i, j)] for j in range(m)] for i in range(n)] for x in b]
    id, expected = f"offsets/contiguous/h3-q{n}-k{m}/toeplitz", matrix(lambda i, j: definition(i, j) + n - 1)
    return case(id, "toeplitz", {"n_query": n, "n_key": m}, {"by_offset": b}, expected, kills="transposed not_shifted")


def _skew(n, m):
    x = painted((2, 3, n, n + m - 1), 2)
    place = lambda at: [[[[x[b, h][at(i, j)] for j in range(m)] for i in range(n)] for h in range(3)] for b in range(2)]
    id, expected = f"offsets/contiguous/h3-q{n}-k{m}/skew", place(lambda i, j: (i, definition(i, j) + n - 1))
    return case(id, "skew", {}, {"by_offset": x}, expected, kills="not_shifted shift_dropped_at_the_end")


def _gather(probe, queries, keys, lowest, width, mistakes):
    b = painted((3, width), 4)

    rows = np.clip(_pairs(queries, keys) - lowest, 0, width - 1)
    id, tensors = f"offsets/gather/h3-w{width}/{probe}", {"by_offset": b, "queries": np.array(queries), "keys": np.array(keys)}
    expected = np.stack([table[rows] for table in b], axis=-3)
    return case(id, "gather", {"lowest": lowest}, tensors, expected, kills=mistakes, comment="Entries of the table, unchanged.")
