"""Merging: how an absolute encoding enters the token embedding."""

import mpmath
import numpy as np

from proofs.absolute.merge import definition
from proofs.vectors import case

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


def vectors():
    x, p = _short((2, 3, 4), 15), _short((3, 4), 11)
    ways = {name: definition(x, p, name) for name in ("add", "paper", "released")}
    row = definition(x, p[:1], "add")
    mistakes = {"multiplied": ways["paper"], "scaled": 2 * x + p, "shared_row": row}
    yield _case("add", "add", {}, x, p, ways["add"], mistakes)
    for convention, other in (("paper", "one_plus"), ("released", "literal")):
        wrong = {other: ways["released" if convention == "paper" else "paper"], "added": ways["add"]}
        wrong["shared_row"] = definition(x, p[:1], convention)
        yield _case("multiply", convention, {"convention": convention}, x, p, ways[convention], wrong)
    p = _short((3, 2), 11)
    wide = np.broadcast_to(p, (2, 3, 2))
    wrong = {"position_first": np.concatenate([wide, x], axis=-1)}
    wrong["shared_row"] = np.concatenate([x, np.broadcast_to(p[:1], wide.shape)], axis=-1)
    yield _case("concatenate", "concatenate", {}, x, p, np.concatenate([x, wide], axis=-1), wrong)


def _short(shape, modulus):
    """Quarters, none of them 0, so short that sums and products are exact in bfloat16."""
    n = np.arange(np.prod(shape, dtype=int))
    quarters = (7 * n + 4) % modulus - modulus // 2
    return np.where(quarters == 0, 2, quarters).reshape(shape) / 4


def _case(op, variant, params, x, p, expected, mistakes):
    exact = np.frompyfunc(mpmath.mpf, 1, 1)
    return case(
        f"merge/{variant}/d4/tiny",
        op=op,
        params=params,
        tensors={"x": x, "p": p},
        expected=exact(expected),
        mistakes={name: exact(wrong) for name, wrong in mistakes.items()},
        comment="Exact in every format.",
    )
