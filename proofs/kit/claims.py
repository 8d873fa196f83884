"""Claims: what a theorem may assert, each decided or refused.

Every claim records its obligations, so that a theorem that asserts nothing is seen. `Refuted` carries a witness: a point,
with 50 digits, at which the two sides differ.
"""

import numpy as np
import sympy as sp

from proofs.kit.normal_form import Undecided, coefficients, is_zero
from proofs.kit.record import RECORD
from proofs.kit.symbols import compared, expression

DIGITS = 50


class NotProved(AssertionError):
    """The claim could not be proved."""


class Refuted(NotProved):
    """The claim is false; the message holds a point where it fails."""


def prove_equal(left, right, mention=()):
    """Every entry of `left` equals the entry of `right`, identically; `mention` must occur in `left`.

    Arrays of Scalars, lists of expressions, single ones. Raises Refuted with a witness, NotProved (other shapes, nothing
    to compare, a symbol that does not occur) or Undecided.
    """
    left, right = _cells(left), _cells(right)
    if left.shape != right.shape:
        raise NotProved(f"shapes {left.shape} and {right.shape}")
    if left.size == 0:
        raise NotProved("nothing to compare")
    for a, b in zip(left.ravel(), right.ravel(), strict=True):
        if not is_zero(a - b):
            _refute(a, b)
    occurring = set().union(*(a.free_symbols for a in left.ravel()))
    missing = {expression(m) for m in np.ravel(np.array(list(mention), dtype=object))} - occurring
    if missing:
        raise NotProved(f"vacuous: {sorted(map(str, missing))} do not occur")
    RECORD.equalities += zip(left.ravel(), right.ravel(), strict=True)


def prove_that(fact, claim):
    """A fact decided exactly outside the normal form (integers, sets, sympy's assumptions); `claim` says it in words."""
    if not isinstance(fact, (bool, np.bool_)) and fact not in (sp.true, sp.false):
        raise Undecided(f"neither true nor false: {claim} (got {fact!r})")
    if not fact:
        raise Refuted(f"not so: {claim}")
    RECORD.facts.append(claim)


def prove_induction(term, closed, n):
    """sum_{r < n} term(r) = closed(n) for every n >= 0: closed(0) = 0 and closed(n + 1) - closed(n) = term(n)."""
    prove_equal([expression(closed(sp.Integer(0)))], [0])
    prove_equal([expression(closed(n + 1)) - expression(closed(n))], [expression(term(n))])


def solve_forall(expressions, unknowns):
    """All values of the unknowns for which every expression vanishes for all values of the other symbols.

    Expressions are linear in the unknowns. Returns {unknown: expression in the free unknowns}; exact, hence an
    "if and only if". The positions must occur in exponentials alone.
    """
    unknowns = [expression(u) for u in np.ravel(np.array(unknowns, dtype=object))]
    expressions = [expression(e) for e in np.ravel(np.array(expressions, dtype=object))]
    if any(e.diff(u).free_symbols & set(unknowns) for e in expressions for u in unknowns):
        raise Undecided("not linear in the unknowns")
    equations = [c for e in expressions for c in coefficients(e)]
    solutions = list(sp.linsolve(equations, unknowns)) if equations else [tuple(unknowns)]
    if len(solutions) != 1:
        raise NotProved(f"{len(solutions)} solution sets")
    if not set().union(*(s.free_symbols for s in solutions[0])) <= set(unknowns):
        raise Undecided(f"no solution for all values of the other symbols: {solutions[0]}")
    return dict(zip(unknowns, solutions[0], strict=True))


def _cells(value):
    out = np.array(value, dtype=object)
    cells = np.empty(out.shape, dtype=object)
    for ix in np.ndindex(*out.shape):
        cells[ix] = expression(out[ix])
        cells[ix] = cells[ix].xreplace({x: sp.Rational(x) for x in cells[ix].atoms(sp.Float)})  # 0.1 x - x / 10 would be 0
        if compared(cells[ix]):
            raise Undecided(f"a sum over an index that was compared once for all summands: {_short(cells[ix])}")
    return cells


def _refute(a, b):
    if (a - b).has(sp.Sum) or any(f.name.startswith("extremum_") for f in (a - b).atoms(sp.core.function.AppliedUndef)):
        raise NotProved(f"{_short(a)} != {_short(b)} as far as sums and maxima can be compared")
    point = _witness(a - b)
    if point is None:
        raise Undecided(f"no witness found for {_short(a)} != {_short(b)}")
    where = ", ".join(f"{k} = {v}" for k, v in sorted(point.items(), key=lambda item: str(item[0])))
    values = [sp.N(side.subs(point), 6) for side in (a, b)]
    raise Refuted(f"{_short(a)} != {_short(b)}; at {where}: {values[0]} and {values[1]}")


def _witness(difference):
    """A rational point at which the difference is non-zero to 50 digits, or None."""
    inner = {atom for e in difference.atoms(sp.Indexed) for atom in e.free_symbols}
    free = difference.atoms(sp.Indexed, sp.core.function.AppliedUndef) | (difference.free_symbols - inner)
    free = sorted((f for f in free if not isinstance(f, sp.IndexedBase)), key=str)
    for attempt in range(4):
        point = {}
        for number, f in enumerate(free):
            integer = f.is_integer
            point[f] = sp.Integer(number + 1 + attempt) if integer else sp.Rational(2 * number + 3 + attempt, 7 + attempt)
        if abs(sp.N(difference.subs(point), DIGITS)) > sp.Float(10) ** (10 - DIGITS):
            return point
    return None


def _short(e):
    text = str(e)
    return text if len(text) <= 160 else text[:160] + ".."
