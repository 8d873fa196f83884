"""Index arithmetic of arrays of symbolic size: slices, cells, quotients and remainders, decided by bounds or refused."""

import numpy as np
import sympy as sp

from proofs.kit.cases import at_case, nonnegative
from proofs.kit.record import RECORD
from proofs.kit.symbols import expression
from proofs.kit.verdicts import Undecided


def slice_of(k, length):
    """(start, step, length) of a slice with positive step, or of a whole axis in reverse; numpy would clip what is refused."""
    if k.start is None and k.stop is None and k.step == -1:
        return length - 1, sp.Integer(-1), length
    step, start = expression(1 if k.step is None else k.step), expression(0 if k.start is None else k.start)
    stop = length if k.stop is None else expression(k.stop)
    start, stop = (sp.expand(length + end) if end.is_negative else end for end in (start, stop))
    if not step.is_positive:
        raise Undecided(f"a slice with step {step}")
    if not (nonnegative(start) and nonnegative(stop - start) and nonnegative(length - stop)):
        raise Undecided(f"a slice {k} of an axis of length {length}")
    quotient, remainder = divided(sp.expand(stop - start), step)
    return start, step, quotient if remainder == 0 else quotient + 1


def axis_of(axis, ndim):
    """The number of an axis, counted from the front."""
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim


def cell_of(i, length):
    """An index as numpy means it; one that may lie outside is refused."""
    RECORD.cells.add((i, length))
    if nonnegative(i) and nonnegative(length - 1 - i):
        return i
    if nonnegative(-1 - i) and nonnegative(i + length):
        return sp.expand(i + length)
    raise Undecided(f"index {i} into an axis of length {length}")


def divided(i, n):
    """Quotient and remainder of an index: by a number from integer coefficients, by a symbolic size from bounds on the rest."""
    i, n = at_case(sp.expand(expression(i))), at_case(expression(n))
    if not n.is_Integer:
        # a quotient q is about the coefficient of some size; 0 <= i - q n < n decides, since only one q obeys it
        for s in sorted(n.free_symbols, key=str):
            number, terms = sp.expand(i.coeff(s) / n.coeff(s)).as_coeff_Add()
            for q in (terms + sp.floor(number), terms + sp.floor(number) - 1):
                rest = sp.expand(i - q * n)
                if q.is_integer and nonnegative(rest) and nonnegative(n - 1 - rest):
                    return q, rest
        raise Undecided(f"{i} divided by {n}")
    number, rest = i.as_coeff_Add()
    quotient = sp.expand(rest / n)
    if not (number.is_Integer and quotient.is_integer):
        raise Undecided(f"{i} divided by {n}")
    return quotient + number // n, number % n


def inside(ix, selection):
    """The indices within a written selection, or None if the cell lies outside it."""
    inner = []
    for i, (start, step, length) in zip(ix, selection, strict=True):
        quotient, remainder = divided(i - start, step)
        if remainder != 0 or nonnegative(-1 - quotient) or nonnegative(quotient - length):
            return None
        if not (nonnegative(quotient) and nonnegative(length - 1 - quotient)):
            raise Undecided(f"is {quotient} inside a write of length {length}?")
        inner.append(quotient)
    return inner


def runs_of(i, length, start):
    """Cells from `start` on that an index stands for, and how many they are: {i, i + length}, {2i, 2i + 1} or {i}."""
    for cells, count in (((i, i + length), 2 * length), ((2 * i, 2 * i + 1), 2 * length), ((i,), length)):
        yield i, {sp.expand(start + cell) for cell in cells}, count
