"""Claims: what a theorem may assert, each decided or refused.

Every claim counts its obligations, so that a theorem that asserts nothing is seen. `Refuted` carries a witness: a point
that satisfies the hypotheses and at which, with 50 digits, the two sides differ.
"""

import functools
import itertools
import traceback
import zlib
from contextlib import contextmanager

import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef

from proofs.kit import cases, marks, numbers, paths
from proofs.kit.cases import at_case, settled, special
from proofs.kit.normal_form import coefficients, is_zero, never_zero
from proofs.kit.paths import compared
from proofs.kit.record import RECORD
from proofs.kit.symbols import expression
from proofs.kit.verdicts import NotProved, Refuted, Undecided

DIGITS = 50
KNOWN = 32  # bits of a difference that sympy vouches for; of a difference that is 0 it vouches for none
ATTEMPTS = 600  # points tried for a witness
ASSUMPTIONS = ("zero", "positive", "negative", "integer", "even", "odd", "prime")
DISTINCTIONS = (sp.Piecewise, sp.KroneckerDelta, sp.Heaviside, sp.floor, sp.ceiling, sp.Mod, sp.sign, sp.Abs, sp.Max, sp.Min)
witnesses = True  # whether a claim that fails shows numbers: not where the question is only whether it fails
heard = None  # of a body on changed results: whether each fact is so, by the lines that claim it; None where facts are decided
deciding = True  # whether equalities are decided: not in a body that is watched, which is proved


def _final(claim):
    """A claim that fails ends the theorem, also one that catches exceptions."""

    @functools.wraps(claim)
    def claimed(*args, **kwargs):
        try:
            return claim(*args, **kwargs)
        except (NotProved, Undecided) as failure:
            cases.refusal(str(failure))
            failure.of_a_claim = True
            raise

    return claimed


@_final
def prove_equal(left, right, mention=()):
    """Every entry of `left` equals the entry of `right`, identically; `mention` must occur in `left`, where it may cancel.

    Arrays of Scalars, lists of expressions, single ones. Raises Refuted with a witness, NotProved (other shapes, nothing
    to compare, a symbol that does not occur) or Undecided.
    """
    if paths.in_numbers_now():
        return  # the calls of the body are noted; it is proved elsewhere
    if not deciding:
        return RECORD.facts.append("an equality that is decided elsewhere")
    left, right = _cells(left), _cells(right)
    if left.shape != right.shape:
        raise NotProved(f"shapes {left.shape} and {right.shape}")
    if left.size == 0:
        raise NotProved("nothing to compare")
    if marks.claims is not None:
        return marks.claims.look(left, right)
    for place, a in np.ndenumerate(left):
        b = right[place]
        if a.is_Integer and a == b:
            continue
        if not witnesses and (numbers.differs_from_zero(a - b) or not is_zero(a - b)):
            raise NotProved(f"{_short(a)} != {_short(b)}")
        if not is_zero(a - b):
            _refute(a, b, f"entry {', '.join(map(str, place))}" if left.size > 1 else "")
        if a != b:
            _note_denominators(a, b)
    mentioned = {settled(expression(m)) for m in np.ravel(np.array(list(mention), dtype=object))}
    missing = mentioned and {m for m in mentioned if not m.is_number} - set().union(*map(cases.free_symbols, left.ravel()))
    if missing and not special():
        raise NotProved(f"vacuous: {sorted(map(str, missing))} do not occur")
    RECORD.equalities += zip(left.ravel(), right.ravel(), strict=True)
    if not (RECORD.bare or cases._case):
        _note_bare([*left.ravel(), *right.ravel()])


@_final
def prove_that(fact, claim="", *, counterexample=""):
    """A fact decided exactly outside the normal form (integers, sets, sympy's assumptions); `claim` says it in words.

    A control passes a `counterexample`: the sentence with the numbers at which the fact is false.
    """
    if not claim and not counterexample:
        raise TypeError("prove_that needs a claim in words, or in a control a counterexample")
    if not isinstance(fact, (bool, np.bool_)) and fact not in (sp.true, sp.false):
        raise Undecided(f"neither true nor false: {claim or counterexample} (got {fact!r})")
    if heard is not None:
        lines = _lines()
        heard[lines] = heard.get(lines, True) and bool(fact)
    elif not fact and marks.claims is None:
        raise Refuted(counterexample or f"not so: {claim}")
    elif not fact:
        marks.claims.failed = True  # the claims that follow are seen, too
    RECORD.facts.append(claim or f"not: {counterexample}")


def _lines():
    """The lines of a proof file that are running now, the innermost first: (name of a function, number) of each."""
    of_kit = lambda frame: frame.f_code.co_filename.startswith(cases.KIT)
    frames = itertools.dropwhile(of_kit, (frame for frame, _ in traceback.walk_stack(None)))
    return tuple({(f.f_code.co_name, f.f_lineno): None for f in itertools.takewhile(lambda f: not of_kit(f), frames)})


@_final
def premise(fact, words):
    """A fact that depends on no result of a shipped function, such as a fact of mathematics or about a definition. The kit
    decides the fact and prints it as a premise, but does not count it as an obligation."""
    if not isinstance(fact, (bool, np.bool_)) and fact not in (sp.true, sp.false):
        raise Undecided(f"neither true nor false: {words} (got {fact!r})")
    if heard is not None:
        heard[words] = heard.get(words, True) and bool(fact)
    elif not fact:
        raise Refuted(f"not so: {words}")
    RECORD.premises[words] = None


@_final
def prove_induction(term, closed, n):
    """sum_{r < n} term(r) = closed(n) for every n >= 0: closed(0) = 0 and closed(n + 1) - closed(n) = term(n).

    `term` and `closed` are expressions in the symbol `n`, which the kit replaces by its own, of which nothing is known but that
    it is an integer >= 0. So one obligation is the base and one is every step, from 0 to 1 on. The first steps are checked once
    more as numbers, in which no assumption about a symbol can hide.
    """
    n, k = expression(n), sp.Dummy("k", integer=True, nonnegative=True)
    if not n.is_Symbol:
        raise Undecided(f"induction over {n}, which is no symbol")
    if callable(term) or callable(closed):
        raise Undecided("induction over functions, which could ask about n; pass expressions in n")
    term, closed = (expression(e).xreplace({n: k}) for e in (term, closed))
    if any(e.has(*DISTINCTIONS) or any(p.base.is_zero for p in e.atoms(sp.Pow)) for e in (term, closed)):
        raise Undecided(f"a case distinction in {_short(closed)} or {_short(term)}")
    prove_equal([closed.xreplace({k: sp.Integer(0)})], [0])
    prove_equal([closed.xreplace({k: k + 1}) - closed], [term])
    for step in range(3):
        at = [{k: sp.Integer(step + more)} for more in (0, 1)]
        prove_equal([closed.xreplace(at[1]) - closed.xreplace(at[0])], [term.xreplace(at[0])])


@_final
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


def _note_bare(sides):
    """The first claim in which no size occurs; of numbers on a path other paths may have one."""
    numbers_of_a_path = cases.taken() and all(e.is_number for e in sides)
    if not (numbers_of_a_path or any(map(cases.has_size, sides))):
        RECORD.bare.append(f"{_short(sides[0])} = {_short(sides[len(sides) // 2])}")


def _cells(value):
    out = np.array(value, dtype=object)
    cells = np.empty(out.shape, dtype=object)
    for ix in np.ndindex(*out.shape):
        e = expression(out[ix])
        cells[ix] = e if e.is_Integer else _cell(settled(at_case(e)))
    return cells


def _cell(e):
    if not e.has(sp.Sum, sp.Float):
        return e
    if e.has(sp.Float):
        raise Undecided(f"a number that sympy has rounded: {_short(e)}; write it as a fraction")
    if compared(e):
        raise Undecided(f"a sum over an index that was compared once for all summands: {_short(e)}")
    return written_out(e) if special() else e


def written_out(e):
    """Finite sums whose number of terms is known are written out, the outermost first."""
    if isinstance(e, sp.Sum):
        j, low, high = e.limits[-1]
        if not (low.is_Integer and high.is_Integer):
            return e
        inner = sp.Sum(e.function, *e.limits[:-1]) if len(e.limits) > 1 else e.function
        return sp.Add(*[written_out(inner.subs(j, sp.Integer(v))) for v in range(int(low), int(high) + 1)])
    return e.func(*map(written_out, e.args)) if e.has(sp.Sum) else e


def _note_denominators(*sides):
    """Whatever is divided by and might be 0 is a hypothesis."""
    for base in (base for e in sides for base in _divisors(e)):
        if not never_zero(base):
            RECORD.denominators[_short(base)] = None


@functools.lru_cache(2**12)
def _divisors(e):
    """The bases of all powers in an expression but those with an exponent from 0 on."""
    return tuple(p.base for p in e.atoms(sp.Pow) if not (p.exp.is_Rational and p.exp >= 0))


@contextmanager
def hearing():
    """Facts are collected, {lines: whether all facts of these lines are true}, and equalities are not decided."""
    global heard, deciding
    heard, deciding = {}, False
    try:
        yield heard
    finally:
        heard, deciding = None, True


# witnesses


@contextmanager
def without_witnesses():
    """Claims that fail do so without numbers, which take time to find."""
    global witnesses
    saved, witnesses = witnesses, False
    try:
        yield
    finally:
        witnesses = saved


def _refute(a, b, entry):
    if any(f.func.__name__.startswith("extremum_") for f in (a - b).atoms(AppliedUndef)):
        raise NotProved(f"{_short(a)} != {_short(b)} as far as maxima can be compared")
    point = witness(a - b)
    if point is None:
        raise Undecided(f"no witness found for {_short(a)} != {_short(b)}")
    where = [f"{k} = {v}" for k, v in sorted(point.items(), key=lambda item: str(item[0]))]
    values = [_value(_with_functions(side), point) for side in (a, b)]
    others = {s: sp.Integer(1) for value in values for s in value.free_symbols}  # they cancel in the difference
    values, where = [value.xreplace(others) for value in values], [*where, *["all else = 1"] * bool(others)]
    shown = [[_digits(value, digits) for value in values] for digits in (6, 20, DIGITS)]
    left, right = next((pair for pair in shown if pair[0] != pair[1]), shown[-1])
    if left == right:
        raise Undecided(f"no witness found for {_short(a)} != {_short(b)}: both are {left}")
    sides = f"{_short(a)} != {_short(b)}; " if where else ""
    at = f"at {', '.join(filter(None, [*where, entry]))}: " if where or entry else "the value is "
    raise Refuted(f"{sides}{at}{left}, expected {right}")


def _digits(value, digits):
    """A number as text: an integer as it is, no zeros at its end, no imaginary part that is a rounding."""
    if value.is_Integer:
        return str(value)
    real, imaginary = sp.N(value, DIGITS).as_real_imag()
    if abs(imaginary) > sp.Float(10) ** (10 - DIGITS) * (1 + abs(real)):
        return str(sp.N(value, digits))
    text = str(sp.N(real, digits))
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def witness(difference):
    """Numbers for all symbols at which the hypotheses hold and the difference is not zero to 50 digits, or None."""
    difference = _with_functions(difference)
    hypotheses = [_with_functions(settled(fact)) for fact in cases.known_facts()]
    apart = [at_case(e) for e in cases._apart]
    path = {_with_functions(settled(e)): signs for e, signs in cases.taken().items()}
    for attempt in range(ATTEMPTS):
        point = _point([difference, *hypotheses, *apart, *path], attempt)
        try:
            if point is not None and _takes(path, point) and _differs(difference, hypotheses, apart, point):
                return {s: point[s] for s in point if s in difference.free_symbols} | _read(difference, point)
        except (TypeError, NotImplementedError, OverflowError, AttributeError):
            continue  # a number beyond what sympy evaluates, or an error in its own error message
    return None


def point_of(facts):
    """Numbers at which all these expressions are >= 0, or None."""
    facts = [_with_functions(fact) for fact in facts]
    for attempt in range(ATTEMPTS):
        point = _point(facts, attempt)
        if point is None:
            continue
        point |= {s: value * 100 ** (attempt % 3) for s, value in point.items() if s not in cases._bounds}
        if all(_value(fact, point) >= 0 for fact in facts):
            return point
    return None


def _takes(path, point):
    """Whether the numbers take the path: each expression that it compares has one of its signs.

    Where the sign is 0, a number that the expression is linear in is changed until it is.
    """
    for e in (e for e, signs in path.items() if signs == {0}):
        for s in sorted((s for s in e.free_symbols if not s.is_integer), key=str):
            slope, rest = _value(e.coeff(s), point), _value(e.coeff(s, 0), point)
            if slope != 0 and e.diff(s, 2) == 0 and not (s.is_positive and -rest / slope <= 0):
                point[s] = -rest / slope
                break
    return all(sp.sign(sp.N(_value(e, point), DIGITS)) in signs for e, signs in path.items())


def _differs(difference, hypotheses, apart, point):
    if any(_value(fact, point) < 0 for fact in hypotheses) or any(_value(e, point) == 0 for e in apart):
        return False
    value = sp.N(_value(difference, point), DIGITS)
    if not value.is_number or value.is_finite is False:
        return False
    known = [part for part in value.as_real_imag() if part.is_Float and part._prec >= KNOWN]  # what large terms leave is not
    return any(abs(part) > sp.Float(10) ** (10 - DIGITS) for part in known)


def _point(expressions, attempt):
    """A number for every symbol; an index is below its length."""
    symbols = set().union(*(e.free_symbols for e in expressions))
    while True:
        lengths = {i: at_case(cases._bounds[i]) for i in symbols if i in cases._bounds}
        more = set().union(*(length.free_symbols for length in lengths.values())) - symbols
        if not more:
            break
        symbols |= more
    point = {s: _number(s, attempt) for s in sorted(symbols - lengths.keys(), key=str)}
    if not all(itertools.starmap(_is_such, point.items())):
        return None
    for i in sorted(lengths, key=lambda i: int(i.name.split("#")[1])):
        length = lengths[i].xreplace(point)
        if not length.is_Integer or length < 1:
            return None
        point[i] = sp.Integer(_chance(str(i), attempt) % int(length))
    return point


def _number(s, attempt):
    """Small for integers; coarse on every other attempt, so that equal values are met, too."""
    chance = _chance(f"{s}{getattr(s, 'dummy_index', '')}", attempt)
    if s.is_integer:
        return sp.Integer(chance % 4 + 1 if s.is_positive else chance % 4 if s.is_nonnegative else chance % 9 - 4)
    value = sp.Rational(chance % 4 + 1) if attempt % 2 else sp.Rational(2 * (chance % 97) + 3, 14)
    return value if s.is_positive or s.is_nonnegative or chance % 5 else -value


def _is_such(s, number):
    """Whether a number is what a symbol, or a function, was made to be."""
    return all(getattr(s, f"is_{what}") in (None, getattr(number, f"is_{what}")) for what in ASSUMPTIONS)


def _chance(text, attempt):
    return zlib.crc32(f"{text}|{attempt}".encode()) >> 4


def _value(e, point):
    """The expression at a point; entries of arrays and unknown functions are functions of their evaluated arguments."""
    e = written_out(e.subs(point)) if e.has(sp.Sum) else e.xreplace(point)
    while unknown := e.atoms(AppliedUndef):
        innermost = {f for f in unknown if not any(a.has(AppliedUndef) for a in f.args)}
        e = e.xreplace({f: _function_value(f) for f in innermost})
    return e


def _with_functions(e):
    """Entries of arrays as values of functions, so that the name of an array is no symbol."""
    return e.replace(lambda x: isinstance(x, sp.Indexed), lambda x: sp.Function(str(x.base.label), real=True)(*x.indices))


def _function_value(f):
    if any(a.has(sp.nan, sp.zoo) for a in f.args):
        raise TypeError(f"{f} at no number")
    arguments = [str(a) if a.is_Rational else str(sp.N(a, 30)) for a in f.args]
    chance = _chance(f"{f.func.__name__}{arguments}", 0)
    number = sp.Integer(chance % 7) if f.is_integer else sp.Rational(chance % 193 - 96, 32)
    if not _is_such(f, number):
        raise TypeError(f"{f} is not {number}")
    return number


def _read(e, point):
    """The entries of arrays and the values of unknown functions that matter at the point, for the message."""
    atoms = {a.xreplace(point) for a in e.atoms(AppliedUndef)}
    return {a: _function_value(a) for a in atoms if not a.free_symbols}


@functools.lru_cache(2**12, typed=True)
def _short(e):
    text = str(e)
    return text if len(text) <= 160 else text[:160] + ".."
