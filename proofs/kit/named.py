"""Numbers that `sizes=` names: each has been the length of an axis, or a value, of an argument or a result of some call."""

import re
import sys
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import sympy as sp

from proofs.kit.cases import first_failure
from proofs.kit.loops import Cells, Loop
from proofs.kit.mutants import python_function
from proofs.kit.sized import SizedArray
from proofs.kit.symbols import Scalar

NUMBER = r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?(?:\^\d+)?(?:/\d+)?(?! pi)"
CONDITION = rf"(?:!=|[<>]=?) {NUMBER}"  # says of a symbol what it is


def numbers_in(said):
    """The numbers that a text names, and all whole ones of a range a .. b."""
    said = re.sub(CONDITION, "", said)
    found = {_number(word) for word in re.findall(NUMBER, said)}
    for first, last in re.findall(rf"({NUMBER}) (?:\.\.|to) ({NUMBER})", said):
        found |= {*map(float, range(int(_number(first)), int(_number(last)) + 1))}
    return found


def _number(word):
    base, _, power = word.partition("^")
    return float(Fraction(base) ** int(power or 1))


def never_ran(theorem, calls):
    """Numbers that `sizes=` names and that occur in none of these calls, nor in one that the body makes in its proof."""
    left = numbers_in(theorem.sizes) if theorem.of else set()
    for call in calls:
        left -= left and met(left, [call.arguments, call.result])
    if left:
        with _watching(
            [python_function(f).__code__ for f in theorem.of], lambda values: left.difference_update(met(left, values))
        ):
            first_failure(theorem.body)
    return sorted(left)


@contextmanager
def _watching(codes, tell):
    """Arguments and results of these functions are told, also where a kernel or a piece of a loop runs."""
    codes = {*codes, Loop._run.__code__}

    def profile(frame, event, result):
        if frame.f_code in codes and event in ("call", "return"):
            tell(result if event == "return" else frame.f_locals)

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


def met(wanted, values):
    """Those of the numbers that are the length of an axis, or a value."""
    if isinstance(values, (str, bytes, bool, np.bool_, type(None))):
        return set()
    if isinstance(values, (int, float, np.number)):
        return wanted & {float(values)} if np.isreal(values) else set()
    if isinstance(values, (Scalar, sp.Expr)):
        e = sp.sympify(values)
        return wanted & {float(e)} if e.is_Rational else set()
    if isinstance(values, (SizedArray, Cells)):
        return met(wanted, getattr(values, "extents", values.shape))
    if isinstance(values, np.ndarray):
        shape, plain = {*map(float, np.ndarray.__getattribute__(values, "shape"))}, values.view(np.ndarray)
        inside = met(wanted, plain.ravel().tolist()) if plain.dtype == object else {n for n in wanted if (plain == n).any()}
        return (wanted & shape) | inside
    parts = values.values() if isinstance(values, dict) else values if isinstance(values, (list, tuple)) else ()
    return set().union(*(met(wanted, part) for part in parts))
