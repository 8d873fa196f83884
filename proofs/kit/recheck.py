"""Check obligations.json with nothing of posref and nothing of its proof kit: `python check.py [obligations.json]`.

An obligation is a pair of expressions that should be equal for all values of their symbols. It is decided where both have the
same normal form (`expand`). Otherwise both are evaluated at random points: exactly while the values are rational, with 60
digits (mpmath) from the first exp or cos on. Sums are written out; at every second point, integers and sizes reach 50 and twice
the largest constant if that is cheap. Agreement is no proof, but a false identity fails. The exit code is 0 if all agree.
"""

import contextlib
import functools
import json
import math
import random
import sys
from fractions import Fraction
from pathlib import Path

import mpmath

DIGITS, POINTS, ATTEMPTS, TERMS = 60, 12, 60, 20_000
TOLERANCE = mpmath.mpf(10) ** -35  # relative to the larger side; rounding is near 1e-58
INTEGERS = "size", "natural", "integer"
ONE, UNIT = {(): Fraction(1)}, {(("i", Fraction(1)),): Fraction(1)}


class NoNormalForm(Exception):
    """Outside of what `expand` knows, or of too many terms."""


def expand(e):
    """The normal form {monomial: coefficient}; a monomial is a sorted tuple of (atom, power), a power is a fraction but 0.

    They are Laurent polynomials over the rationals. Atoms are i, symbols, entries of arrays, values of functions, e^m for a
    monomial m, which may hold i, x^m, the inverse of a sum, and the sum over an index of what depends on it. So the cosine of
    a sum or of half an angle is a polynomial in e^(im), and expressions of one form are equal for all values.
    """
    if isinstance(e, str):
        return {(): Fraction(e)} if Fraction(e) else {}
    head, *args = e
    if head == "i":
        return UNIT
    if head == "add":
        return _sum(map(expand, args))
    if head == "mul":
        return functools.reduce(_times, map(expand, args))
    if head == "pow":
        return _power_of(expand(args[0]), expand(args[1]))
    if head == "sum":
        return _over_index(*args)
    if head in ("exp", "cos", "sin", "cosh", "sinh"):
        return _exponentials(head, expand(args[0]))
    named = args[:1] if head in ("x", "at", "call") else []
    return _atom(head, *named, *map(expand, args[len(named) :]))


def _atom(*parts):
    return {((_name(*parts), Fraction(1)),): Fraction(1)}


def _name(*parts):
    """An atom is known by its parts: words, monomials, and forms, whose order does not matter."""
    return f"[{' '.join(map(_text, parts))}]"


def _text(part):
    if isinstance(part, tuple):
        return "(" + " ".join(f"{atom}^{n}" for atom, n in part) + ")"
    return part if isinstance(part, str) else "{" + " + ".join(f"{c} {_text(m)}" for m, c in sorted(part.items())) + "}"


def _sum(forms):
    total = {}
    for form in forms:
        for monomial, c in form.items():
            total[monomial] = total.get(monomial, 0) + c
    return {m: c for m, c in total.items() if c}


def _times(p, q):
    if len(p) * len(q) > TERMS:
        raise NoNormalForm
    return _sum(_product(left, right, c * d) for left, c in p.items() for right, d in q.items())


def _product(left, right, c):
    """Powers of one atom add up, and i^2 = -1."""
    powers = dict(left)
    for atom, n in right:
        powers[atom] = powers.get(atom, 0) + n
    turns = powers.pop("i", Fraction(0)) % 4
    if turns.denominator != 1:
        raise NoNormalForm
    if turns % 2:
        powers["i"] = Fraction(1)
    return {tuple(sorted((atom, n) for atom, n in powers.items() if n)): -c if turns >= 2 else c}


def _power_of(base, exponent):
    number = exponent.get((), Fraction(0)) if set(exponent) <= {()} else None
    whole = number is not None and number.denominator == 1
    if whole and number >= 0:
        return functools.reduce(_times, [base] * int(number), ONE)
    if whole and base:
        return _inverse_power(base, number)
    if len(base) == 1:
        ((monomial, c),) = base.items()
        if c == 1 and len(monomial) == 1 and monomial[0][1] == 1 and monomial[0][0] != "i":
            return _by_exponent(monomial[0][0], exponent)
    raise NoNormalForm


def _inverse_power(base, number):
    """The least monomial of a sum is taken out, in an order that products keep; what is left is an atom."""
    atoms = sorted({atom for monomial in base for atom, _ in monomial})
    least = min(base, key=lambda monomial: [dict(monomial).get(atom, Fraction(0)) for atom in atoms])
    outside = _product(tuple((atom, n * number) for atom, n in least), (), base[least] ** number)
    inverse = tuple((atom, -n) for atom, n in least)
    rest = _times(base, _product(inverse, (), 1 / base[least]))
    return outside if rest == ONE else _times(outside, {((_name("sum", rest), number),): Fraction(1)})


def _by_exponent(name, exponent):
    """x^(c m + ..) as a product of (x^m)^c; x^c itself is a power of x."""
    result = ONE
    for monomial, c in exponent.items():
        result = _times(result, {((_name("power", name, monomial) if monomial else name, c),): Fraction(1)})
    return result


def _exponentials(head, argument):
    """e^x, and by Euler's formula the others."""
    if head == "exp":
        return _by_exponent("e", argument)
    turn = argument if head.endswith("h") else _times(UNIT, argument)
    there, back = (_by_exponent("e", _times({(): Fraction(sign)}, turn)) for sign in (1, -1))
    if head.startswith("cos"):
        return _times({(): Fraction(1, 2)}, _sum([there, back]))
    half = {(): Fraction(1, 2)} if head == "sinh" else _times({(): Fraction(-1, 2)}, UNIT)
    return _times(half, _sum([there, _times({(): Fraction(-1)}, back)]))


def _over_index(body, name, low, high):
    """A sum term by term: what does not depend on the index stands before it; its name is the depth of sums in the body."""
    bound = f"index {_depth(body)}"
    index, low, high = _name("x", bound), expand(low), expand(high)
    total = {}
    for monomial, c in expand(_renamed(body, name, bound)).items():
        inside = tuple((atom, n) for atom, n in monomial if index in atom)
        outside = tuple((atom, n) for atom, n in monomial if index not in atom)
        term = _atom("over", bound, inside, low, high) if inside else _count(low, high)
        total = _sum([total, _times(term, {outside: c})])
    return total


def _count(low, high):
    """How many terms a sum from 0 to n - 1 has, for a size n."""
    count = _sum([high, ONE])
    if low or len(count) != 1 or not all(c == 1 and len(m) == 1 and m[0][1] == 1 for m, c in count.items()):
        raise NoNormalForm  # the sum may be empty
    return count


def _depth(e):
    return 0 if isinstance(e, str) else max(map(_depth, e[1:]), default=0) + (e[0] == "sum")


def _renamed(e, name, new):
    if isinstance(e, str) or (e[0] == "sum" and e[2] == name):
        return e
    return ["x", new] if e == ["x", name] else [e[0], *(_renamed(part, name, new) for part in e[1:])]


def value(e, point, kinds):
    """The value of an expression at a point, a Fraction or a number of mpmath."""
    if isinstance(e, str):
        return Fraction(e)
    head, *args = e
    if head == "x":
        return point[args[0]]
    if head == "i":
        return mpmath.mpc(0, 1)
    if head == "sum":
        body, name, low, high = args
        low, high = int(value(low, point, kinds)), int(value(high, point, kinds))
        return sum((value(body, {**point, name: Fraction(j)}, kinds) for j in range(low, high + 1)), Fraction(0))
    if head in ("at", "call"):
        where = [mpmath.nstr(_number(value(a, point, kinds)), 30) for a in args[1:]]
        return _draw(kinds.get(args[0], "real") if head == "call" else "real", random.Random(f"{point['']} {args[0]} {where}"))
    values = [value(a, point, kinds) for a in args]
    fractions = all(isinstance(v, Fraction) for v in values)
    if head == "pow":
        exact = fractions and values[1].denominator == 1
        return values[0] ** int(values[1]) if exact else mpmath.power(*map(_number, values))
    if head in ("add", "mul"):
        values = values if fractions else [*map(_number, values)]
        return sum(values) if head == "add" else math.prod(values)
    return {"conjugate": mpmath.conj, "abs": mpmath.fabs}.get(head, getattr(mpmath, head, None))(_number(values[0]))


def _number(v):
    return mpmath.mpf(v.numerator) / v.denominator if isinstance(v, Fraction) else v


def _draw(kind, source, reach=9):
    """A number; one of `reach` is a root of a polynomial of a quarter of this degree with a chance of at most 1/4."""
    if kind in INTEGERS:
        return Fraction(source.randint({"size": 1, "natural": 0}.get(kind, -reach), reach))
    return Fraction(source.randint(1, reach), source.randint(2, 7)) * (1 if kind == "positive" else source.choice((1, -1)))


def _degree(e):
    """The greatest degree of a polynomial in an expression."""
    if isinstance(e, str):
        return 0
    head, *args = e
    degrees = [_degree(a) for a in args]
    if head == "pow" and isinstance(args[1], str):
        return degrees[0] * math.ceil(abs(Fraction(args[1])))
    return 1 if head == "x" else sum(degrees) if head in ("mul", "pow", "sum") else max(degrees, default=0)


def _largest(e):
    """The largest number in an expression, and what a large integer costs: depths of sums, twice if it is in an exponent."""
    if isinstance(e, str):
        return max(map(int, e.lstrip("-").split("/"))) if e.lstrip("-")[:1].isdigit() else 0, 0
    numbers, costs = zip(*map(_largest, e[1:]), strict=True) if e[1:] else ((0,), (0,))
    return max(numbers), max(costs) + (e[0] == "sum") + 2 * (e[0] == "pow" and not isinstance(e[2], str))


def failure(left, right, symbols, functions, seed):
    """None if both sides agree, else where they differ; the second value says whether that was decided."""
    with contextlib.suppress(NoNormalForm):
        if expand(left) == expand(right):
            return None, True
    agreed, reach = 0, max(12, 4 * _degree(left), 4 * _degree(right))
    largest, cost = map(max, zip(_largest(left), _largest(right), strict=True))
    far = max(reach, min(max(50, 2 * largest), int(3000 ** (1 / cost)) if cost else sys.maxsize))
    digits = DIGITS + int(reach / 4 * math.log10(far))  # as many more as an angle may have before its point
    for attempt in range(ATTEMPTS):
        source = random.Random(f"{seed} {attempt}")
        point = {n: _draw(kind, source, far if attempt % 2 and kind in INTEGERS else reach) for n, kind in symbols.items()}
        point[""] = f"{seed} {attempt}"
        try:
            for more in (digits, 2000 + 4 * digits):  # where large terms cancel
                mpmath.mp.dps = more
                a, b = (_number(value(side, point, functions)) for side in (left, right))
                if agree := abs(a - b) <= TOLERANCE * max(1, abs(a), abs(b)):
                    break
        except ZeroDivisionError:
            continue  # a denominator vanishes at this point
        if not agree:
            return f"{mpmath.nstr(a, 15)} and {mpmath.nstr(b, 15)} at { ({k: str(v) for k, v in point.items() if k}) }", False
        if (agreed := agreed + 1) == POINTS:
            return None, False
    return "no point at which both sides have values", False


def main(path):
    wrong = 0
    for t in json.loads(Path(path).read_text(encoding="utf-8"))["theorems"]:
        decided = 0
        for number, (left, right) in enumerate(t["obligations"], 1):
            why, exact = failure(left, right, t["symbols"], t["functions"], f"{t['name']} {number}")
            decided, wrong = decided + exact, wrong + bool(why)
            if why:
                print(f"WRONG {t['name']}, obligation {number}: {why}")
        sampled, left_out, facts = len(t["obligations"]) - decided, len(t["left_out"]), len(t["evaluated"])
        said = f"{decided} decided by normal form, {sampled} at {POINTS} random points, {left_out} left out"
        print(f"{t['name']}: {said}" + f", {facts} facts not checked" * bool(facts))
    print("every obligation holds" if not wrong else f"{wrong} obligations fail")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("obligations.json")))
