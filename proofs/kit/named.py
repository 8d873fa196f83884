"""Numbers that `sizes=` names: each has been the length of an axis, or a value, of an argument or a result of some call."""

import re
import sys
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import sympy as sp

from proofs.kit import claims
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

    def look(values):
        left.difference_update(met(left, values))
        if not left:
            raise AllMet

    if left:
        with _watching([python_function(f).__code__ for f in theorem.of], look):
            first_failure(theorem.body)
    return sorted(left)


class AllMet(Exception):
    """Ends a run of which nothing more is asked."""


@contextmanager
def _watching(codes, look):
    """Arguments and results of these functions are looked at, also in kernels and pieces of loops; no claim is decided."""
    watched = {*map(id, (*codes, Loop._run.__code__))}  # identities, since a code is hashed with all that is in it

    def called(frame, *_):
        if id(frame.f_code) in watched:
            look(frame.f_locals)
            frame.f_trace_lines = False
            return returned

    def returned(frame, event, result):
        if event == "return":
            look(result)
        return returned

    saved, claims.deciding = sys.gettrace(), False
    sys.settrace(called)
    try:
        yield
    finally:
        sys.settrace(saved)
        claims.deciding = True


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
