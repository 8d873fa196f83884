"""What a mask hides may be anything: a call made again with scores of 900 and -900 there.

exp(900) is infinite in float64, and 0 times infinity is no number. Which arguments a mask hides is found by calls: the result
is the same with other small numbers there. Then it has to be the same with large ones.
"""

import numpy as np

from proofs.kit import rank
from proofs.kit.verdicts import Refuted

FAR = (900.0, -900.0)


def agrees(function, given):
    """Raises Refuted if large numbers that a mask hides change the result; returns how many calls were compared."""
    masks = [value for value in given.values() if isinstance(value, np.ndarray) and value.dtype == bool and not value.all()]
    hidden = [(n, mask) for n, x in given.items() if _real(x) for mask in masks if x.shape[x.ndim - mask.ndim :] == mask.shape]
    return sum(_unchanged(function, given, n, mask) for n, mask in hidden)


def _real(x):
    return isinstance(x, np.ndarray) and x.dtype == np.float64


def _unchanged(function, given, n, mask):
    def result(number):
        with np.errstate(all="ignore"):
            parts = rank.parts(function(**given | {n: np.where(mask, given[n], number)}))
        return np.concatenate([*map(np.ravel, parts)])

    try:
        expected, near = result(0.0), result(1.0)
        found = [result(far) for far in FAR] if np.array_equal(expected, near) else []
    except Exception as error:
        if rank.refused(error):
            return 0
        raise
    for far, got in zip(FAR, found, strict=False):
        if not np.allclose(got, expected, rtol=rank.CLOSE, atol=rank.CLOSE):
            raise Refuted(f"{function.__name__} with {n} = {far} where the mask is False: {got}, with 0 there {expected}")
    return len(found)
