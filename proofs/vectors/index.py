"""Index: the position itself, as a number; and what is asked of an encoding, decided for each of them."""

import itertools

import mpmath
import numpy as np

from proofs.absolute.index import definition
from proofs.vectors import *

SOURCES = ("the position itself: the first trials that motivate the sinusoid in most introductions",)

CONVENTIONS = {
    "axes": "the encoding has the axes of positions and one more, of length 1",
    "op encode": "i",
    "op encode_normalized": "i / length, or i / (length - 1), by denominator",
    "op steps": "p_{i+1} - p_i of encode_normalized, for all i; it changes with the length",
}
REJECTED = (("index/length/n16/encode", "length-0", {"length": 0}, "range", "Division by the length."),)
REASONS = """
encode_normalized * positions_absolute | positions count from 0 to the length
"""

POSITIONS = np.array([[0, 1, 5, 6], [9, 2, 2, 0]])


def vectors():
    for probe, positions in (("encode", POSITIONS), ("far", FAR), ("fractional", HALVES), ("negative", BELOW)):
        far = {"models": ("f64",), "comment": "Float32 has no place for the odd ones."} if probe == "far" else {}
        kills = f"starts_at_one positions_ignored {NARROW if far else ''}"
        yield case(f"index/plain/any/{probe}", "encode", {}, {"positions": positions}, positions[..., None], kills=kills, **far)
    for denominator, length in (("length", 16), ("length - 1", 17)):
        yield _normalized(denominator, length)
    yield _normalized("length", 64, HALVES)
    for denominator in ("length", "length - 1"):
        yield _normalized(denominator, BEYOND + 8, FAR, NARROW)
    for denominator in ("length", "length - 1"):
        yield _normalized(denominator, 70001, PLACES[:2], WRAPPED.removeprefix("int16_positions "))
    for denominator, length in (("length", 10), ("length - 1", 13)):
        yield _steps(denominator, length)


def _normalized(denominator, length, positions=POSITIONS, narrow=""):
    id, params = f"index/{denominator.replace(' - ', '-')}/n{length}/encode", {"length": length, "denominator": denominator}
    expected = definition(numbers(positions)[..., None], mpmath.mpf(length), denominator)
    kills = f"starts_at_one positions_ignored other_denominator centered unnormalized {narrow}"
    models = ("f64",) if narrow else tuple(MODELS)
    return case(id, "encode_normalized", params, {"positions": positions}, expected, kills=kills, models=models)


def _steps(denominator, length):
    values = [definition(mpmath.mpf(i), length, denominator) for i in range(length)]
    id, params = f"index/{denominator.replace(' - ', '-')}/n{length}/steps", {"length": length, "denominator": denominator}
    expected = [[b - a] for a, b in itertools.pairwise(values)]
    # roundings: reciprocal, product, difference
    cond = terms(3, [[b] for b in values[1:]], [[a] for a in values[:-1]])
    return case(id, "steps", params, {}, expected, cond, "unnormalized centered", models=("f64", "f32"))
