"""Resizing: a trained table of patches at other places, in six conventions."""

import mpmath
import numpy as np

from proofs.absolute.resizing import stated
from proofs.vectors import *

SOURCES = (
    "torch 2.13.0, upsample_bicubic2d and its antialiased kind, upsample_bilinear2d",
    "timm 1.0.31, timm/layers/pos_embed.py, resample_abs_pos_embed",
    "dino and DINOv2, vision_transformer.py, interpolate_pos_encoding with an offset of 0.1",
    "vision_transformer 16fc24d273, vit_jax/checkpoint.py, interpolate_posembed",
)

CONVENTIONS = {
    "axes": "table (rows, columns, d), the result (height, width, d); weights (new, length)",
    "convention": "transformers: bicubic -3/4; timm: antialiased, -1/2; dino: a scale of (n + 0.1) / m; vilt: linear, corners "
    "on corners; beit: linear, centres on centres; siglip2: linear, antialiased",
    "op resize": "the table at height x width places",
    "op weights": "of one axis: how much of each of `length` rows is read at `new` places",
}
REJECTED = (("resizing/timm/3x5-to-4x2/table", "no-convention", {"convention": None}, "missing", "Six are in use."),)
REASONS = """
mutant cubic: * ->  return np.where(x < 1, * | both cubics are 0 at 1
mutant cubic: * ->  *np.where(x <= 2, * | the cubic and what is beyond it are 0 at 2
"""
NAMES = ("transformers", "timm", "dino", "vilt", "beit", "siglip2")
ALIKE = {"siglip2": "beit"}  # where places are no fewer
FINE = ("f64", "f32")  # conventions are close, and 256 roundings bound a weight (proofs/absolute/resizing.py)


def vectors():
    for name in NAMES:
        kernel = "" if name in ("vilt", "beit", "siglip2") else " other_kernel"
        others = " ".join(f"as_{other}" for other in NAMES if other != name)
        grown = " ".join(f"as_{other}" for other in NAMES if ALIKE.get(other, other) != ALIKE.get(name, name))
        yield _weights(4, 6, name, grown + kernel)
        yield _weights(5, 3, name, others + kernel)
        if name == "vilt":
            yield _weights(3, 1, name, others)
        yield _resize((3, 5), (4, 2), name, others + kernel + " sides_exchanged nearest all_in_a_row")


def _numbers(fractions):
    return np.vectorize(lambda x: mpmath.mpf(x.numerator) / x.denominator, otypes=[object])(fractions)


def _weights(length, new, name, mistakes):
    values = _numbers(stated(length, new, name))
    id, params = f"resizing/{name}/{length}-to-{new}/weights", {"length": length, "new": new, "convention": name}
    return case(id, "weights", params, {}, values, terms(100, np.full(values.shape, 3)), mistakes, models=FINE)


def _resize(old, new, name, mistakes):
    table = painted((*old, 2), 6)
    rows, columns = (_numbers(stated(m, n, name)) for m, n in zip(old, new, strict=True))
    cells = np.ndindex(*new)
    values = [sum(rows[y, a] * columns[x, b] * table[a, b] for a, b in np.ndindex(*old)) for y, x in cells]
    largest = np.broadcast_to(abs(table).sum(axis=(0, 1)), (*new, 2))
    id, params = f"resizing/{name}/3x5-to-{new[0]}x{new[1]}/table", {"height": new[0], "width": new[1], "convention": name}
    expected = np.reshape(values, (*new, 2))
    return case(id, "resize", params, {"table": table}, expected, terms(100, 9 * largest), mistakes, models=FINE)
