"""Grids: formats of fewer than 16 bits, such as fp8 and int8, that hold all numbers of an output but not the right ones."""

from collections.abc import Iterator

import numpy as np

from posref.check.ranged import rounded_to

FLOATS = {
    "fp4 (e2m1)": (2, 1.5),
    "fp8 (e5m2)": (3, 1.75),
    "fp8 (e4m3)": (4, 1.75),
}  # bits; the largest number over a power of 2
STEPS = {"int4": 7, "int8": 127}  # between 0 and the largest number
SCALES = {None: "one scale", -1: "a scale per row", -2: "a scale per column"}
HELD = 2.0**-20  # of a number: float32 rounds the scale and the product with it
LEAST = 2.0**-9  # the smallest number of e4m3
FEW = 8  # distinct numbers are too few to show a format


def found(got: np.ndarray, right: np.ndarray, bound: np.ndarray) -> tuple[str, bool]:
    """The format that holds the output but not the right numbers, and whether the output is these, rounded once; or ""."""
    if len(np.unique(np.abs(got))) >= FEW and np.isfinite(got).all():
        for (name, held, half), (_, other, _) in zip(_formats(got), _formats(right), strict=True):
            if held and not other:
                return name, bool((np.abs(got - right) <= half + bound).all())
    return "", False


def _formats(y: np.ndarray) -> Iterator[tuple[str, bool, np.ndarray]]:
    """Each format, whether it holds all these numbers, and half of the distance between its numbers there."""
    for name, (bits, _) in FLOATS.items():
        yield name, bool((rounded_to(y, bits) == y).all()), np.maximum(2.0**-bits * np.abs(y), LEAST / 2)
    for axis, words in SCALES.items() if y.ndim > 1 else ():
        peak = np.abs(y).max(axis=axis, keepdims=True)
        part = y / np.where(peak > 0, peak, 1)
        for name, steps in STEPS.items():
            held = np.abs(np.rint(steps * part) - steps * part) <= steps * HELD
            yield f"{name} with {words}", bool(held.all()), peak / steps / 2
        for name, (bits, top) in FLOATS.items():
            held = np.abs(rounded_to(top * part, bits) - top * part) <= HELD * np.abs(part)
            yield f"{name} with {words}", bool(held.all()), np.maximum(2.0**-bits * np.abs(y), 2.0**-18 * peak)
