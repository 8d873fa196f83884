"""Index: the position itself, as a number; and what is asked of an encoding, decided for each of them."""

import itertools

import mpmath
import numpy as np

from proofs.absolute.index import definition
from proofs.vectors import case, terms

SOURCES = ("the position itself: the first trials that motivate the sinusoid in most introductions",)

CONVENTIONS = {
    "axes": "the encoding has the axes of positions and one more, of length 1",
    "op encode": "i",
    "op encode_normalized": "i / length, or i / (length - 1), by denominator",
    "op steps": "p_{i+1} - p_i of encode_normalized, for all i; it changes with the length",
}

POSITIONS = np.array([[0, 1, 5, 6], [9, 2, 2, 0]])


def vectors():
    ignored = np.broadcast_to(np.arange(4), POSITIONS.shape)
    yield case(
        "index/plain/any/encode",
        op="encode",
        params={},
        tensors={"positions": POSITIONS},
        expected=POSITIONS[..., None],
        mistakes={"starts_at_one": POSITIONS[..., None] + 1, "positions_ignored": ignored[..., None]},
    )
    for denominator, length in (("length", 16), ("length - 1", 17)):
        yield _normalized(denominator, length, ignored)
    for denominator, length in (("length", 10), ("length - 1", 13)):
        yield _steps(denominator, length)


def _normalized(denominator, length, ignored):
    n, exact = mpmath.mpf(length), np.frompyfunc(mpmath.mpf, 1, 1)
    values = lambda positions, by=denominator: definition(exact(positions)[..., None], n, by)
    return case(
        f"index/{denominator.replace(' - ', '-')}/n{length}/encode",
        op="encode_normalized",
        params={"length": length, "denominator": denominator},
        tensors={"positions": POSITIONS},
        expected=values(POSITIONS),
        mistakes={
            "starts_at_one": values(POSITIONS + 1),
            "positions_ignored": values(ignored),
            "other_denominator": values(POSITIONS, "length" if denominator != "length" else "length - 1"),
            "centered": 2 * (exact(POSITIONS) + mpmath.mpf(1) / 2)[..., None] / n - 1,
            "unnormalized": exact(POSITIONS)[..., None],
        },
    )


def _steps(denominator, length):
    rows = lambda by: [definition(mpmath.mpf(i), length, by) for i in range(length)]
    values = rows(denominator)
    difference = lambda p: [[b - a] for a, b in itertools.pairwise(p)]
    return case(
        f"index/{denominator.replace(' - ', '-')}/n{length}/steps",
        op="steps",
        params={"length": length, "denominator": denominator},
        tensors={},
        expected=difference(values),
        cond={"amp": terms(3, [[b] for b in values[1:]], [[a] for a in values[:-1]])},  # reciprocal, product, difference
        mistakes={"unnormalized": difference(range(length)), "centered": difference([2 * p for p in rows("length")])},
        models=("f64", "f32"),
    )
