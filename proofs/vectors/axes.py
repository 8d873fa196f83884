"""RoPE over several axes: which pair reads which axis, and rotated vectors of released models."""

import mpmath
import numpy as np

from proofs.rotary.axes import definition
from proofs.rotary.rope import definition as turn
from proofs.rotary.rope import frequency
from proofs.vectors import *

SOURCES = (
    "Wang et al., Qwen2-VL, arXiv 2409.12191, section 2.1",
    "transformers 5.23.0: modeling_qwen2_vl.py, modeling_qwen3_vl.py, modeling_ernie4_5_vl_moe.py, modeling_pixtral.py",
)

CONVENTIONS = {
    "coordinates": "(n, axes): the position of every token on every axis; time, row, column or row, column",
    "axis": "the axis that pair t reads; order: which of the frequencies base^(-2t/dim) it has",
    "layout": "interleaved pairs features (2t, 2t+1), half pairs (t, t + dim/2)",
    "op sections": "axis a has the pairs after those of the axes before it",
    "op interleaved_sections": "pair t reads axis t mod k while it has pairs left, else axis 0 (transformers) or k (ggml)",
    "op grid": "row and column of every patch, row by row; the patches of a square of merge x merge follow each other",
    "op rotate": "the first dim features turned, pair t by coordinate times frequency",
}
REJECTED = (
    ("axes/sections/16-24-24/axis", "empty", {"sizes": [16, 0, 24]}, "range", "Every axis has a pair."),
    ("axes/rotate/pixtral/tokens", "third-axis", {"axis": lambda a: a + 1}, "range", "A picture has two axes."),
)

THREE = [[2, 7, 5], [4099, 77, 200]]
PATCHES = [[0, 2], [1, 0], [13, 40]]
MODELS = {
    "qwen2-vl": (128, 1000000.0, (0,) * 16 + (1,) * 24 + (2,) * 24, range(64), "half", THREE),
    "qwen3-vl": (128, 5000000.0, (0, 1, 2) * 20 + (0,) * 4, range(64), "half", THREE),
    "ernie4.5-vl": (128, 500000.0, (1, 2) * 22 + (0,) * 20, range(64), "interleaved", THREE),
    "qwen2-vl-vision": (80, 10000.0, (0,) * 20 + (1,) * 20, [*range(0, 40, 2)] * 2, "half", PATCHES),
    "pixtral": (64, 10000.0, (0,) * 16 + (1,) * 16, [*range(0, 32, 2), *range(1, 32, 2)], "half", PATCHES),
}
PLACES = [[65536, 3], [5, 32768], [2.5, 7.25]]
SMALL = "d8", 8, 500000.0, (0, 1, 0, 1), range(4), "half", PLACES


def vectors():
    for sizes in ([16, 24, 24], [8, 12, 12], [2, 1], [5]):
        apart, dealt = _sections(sizes), _dealt(sizes, 0)
        yield _axes_of("sections", sizes, {}, apart, "dealt_out" * (dealt != apart))
    for sizes in ([24, 20, 20], [11, 11, 10], [4, 1, 2], [1, 3]):
        for leftover, other in (("transformers", 0), ("ggml", len(sizes))):
            right = _dealt(sizes, other)
            told = "in_sections" * (_sections(sizes) != right) + " other_leftover" * (len(sizes) in _dealt(sizes, len(sizes)))
            yield _axes_of("interleaved_sections", sizes, {"leftover": leftover}, right, told)
    for height, width, merge in ((2, 3, 1), (4, 6, 2)):
        squares = [(r, c) for r in range(0, height, merge) for c in range(0, width, merge)]
        patches = [[r + dr, c + dc] for r, c in squares for dr in range(merge) for dc in range(merge)]
        sizes = {"height": height, "width": width, "merge": merge}
        yield case(f"axes/grid/{height}x{width}/merge-{merge}", "grid", sizes, {}, patches, None, "")
    for name, settings in MODELS.items():
        yield _rotate(name, *settings)
    yield _rotate(*SMALL)
    yield _rotate("d8-beyond", *SMALL[1:-1], [[2**20 + 1, -3], [-40, 2**21 + 3]], models=("f64",))


def _sections(sizes):
    return [a for a, size in enumerate(sizes) for _ in range(size)]


def _dealt(sizes, leftover):
    k = len(sizes)
    return [t % k if t < k * sizes[t % k] else leftover for t in range(sum(sizes))]


def _axes_of(op, sizes, params, expected, kills):
    name = "-".join(map(str, sizes))
    return case(f"axes/{op}/{'-'.join([name, *params.values()])}/axis", op, params, {"sizes": sizes}, expected, None, kills)


def _turned(x, coordinates, axis, w, layout):
    """Rows of x turned, with their sensitivities."""
    pairs, y = len(w), np.zeros(x.shape, dtype=object)
    phase, amp = np.zeros(x.shape, dtype=object), np.zeros(x.shape, dtype=object)
    for i, t in np.ndindex(x.shape[0], pairs):
        first, second = (t, t + pairs) if layout == "half" else (2 * t, 2 * t + 1)
        a, b, angle = mpmath.mpf(x[i, first]), mpmath.mpf(x[i, second]), definition(coordinates[i][axis[t]], w[t])
        y[i, first], y[i, second] = turn(a, b, coordinates[i][axis[t]], w[t], mpmath)
        cos, sin = abs(mpmath.cos(angle)), abs(mpmath.sin(angle))
        amp[i, first], amp[i, second] = abs(a) * cos + abs(b) * sin, abs(a) * sin + abs(b) * cos
        phase[i, first] = phase[i, second] = mpmath.hypot(a, b) * abs(angle) * growth(w[t])
    return y, {"phase": phase, "amp": terms(3, amp)}


def _rotate(name, dim, base, axis, order, layout, coordinates, **rest):
    all_of = [frequency(t, dim, mpmath.mpf(base)) for t in range(dim // 2)]
    x, w = painted((len(coordinates), dim), 1), [all_of[t] for t in order]
    kills = "rows_and_columns_exchanged first_axis_alone other_layout"
    params = {"dim": dim, "base": base, "layout": layout}
    tensors = {"x": x, "coordinates": coordinates, "axis": list(axis), "order": list(order)}
    kills, answer = kills + " order_ignored" * (w != all_of), _turned(x, coordinates, axis, w, layout)
    return case(f"axes/rotate/{name}/tokens", "rotate", params, tensors, *answer, kills, **rest)
