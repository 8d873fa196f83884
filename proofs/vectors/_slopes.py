"""Gradients of losses that are affine in every entry of their inputs: scores and biases are."""

import mpmath
import numpy as np

from proofs.vectors import exact, terms


def slopes(loss, given, of, roundings):
    """(gradient by `given[of]`, cond) of loss(**given), L(x + 1) - L(x) for each entry x; a term meets so many roundings."""
    arrays = {name: exact(x)[0] for name, x in given.items()}
    sizes = _slopes(loss, {name: abs(x) for name, x in arrays.items()}, of)
    return _slopes(loss, arrays, of), {"amp": terms(roundings, sizes)}


def _slopes(loss, given, of):
    start, found = loss(**given), np.empty(given[of].shape, dtype=object)
    for place in np.ndindex(found.shape):
        moved = given[of].copy()
        moved[place] += mpmath.mpf(1)
        found[place] = loss(**given | {of: moved}) - start
    return found
