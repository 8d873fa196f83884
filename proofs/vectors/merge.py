"""Merging: how an absolute encoding enters the token embedding."""

import numpy as np

from proofs.absolute.merge import definition
from proofs.vectors import *

SOURCES = (
    "Su, kexue.fm/archives/8130: add, multiply, concatenate",
    "bert4keras 0.11.5, layers.py, PositionEmbedding: merge_mode",
)

CONVENTIONS = {
    "axes": "x is (batch, n, d), p (n, d) or, to be concatenated, (n, d_p)",
    "convention": "paper: x p; released: x (1 + p)",
    "op add": "x + p",
    "op multiply": "x p or x (1 + p), by convention",
    "op concatenate": "[x ; p]",
}
REJECTED = (
    ("merge/add/d4/tiny", "width", {"p": cut}, "shape", "Three features are added to four."),
    ("merge/paper/d4/tiny", "no-convention", {"convention": None}, "missing", "x p or x (1 + p)."),
)


def vectors():
    x, p = _short((2, 3, 4), 15), _short((3, 4), 11)
    ways = {name: definition(x, p, name) for name in ("add", "paper", "released")}
    yield _case("add", "add", {}, x, p, ways["add"], "multiplied scaled shared_row")
    for convention, other in (("paper", "one_plus"), ("released", "literal")):
        flags = f"{other} added shared_row"
        yield _case("multiply", convention, {"convention": convention}, x, p, ways[convention], flags)
    p = _short((3, 2), 11)
    beside = np.concatenate([x, np.broadcast_to(p, (2, 3, 2))], axis=-1)
    yield _case("concatenate", "concatenate", {}, x, p, beside, "position_first shared_row")


def _short(shape, modulus):
    """Quarters, none of them 0, so short that sums and products are exact in bfloat16."""
    n = np.arange(np.prod(shape, dtype=int))
    quarters = (7 * n + 4) % modulus - modulus // 2
    return np.where(quarters == 0, 2, quarters).reshape(shape) / 4


def _case(op, variant, params, x, p, expected, flags):
    tensors, note = {"x": x, "p": p}, "Exact in every format."
    return case(f"merge/{variant}/d4/tiny", op, params, tensors, numbers(expected), kills=flags, comment=note)
