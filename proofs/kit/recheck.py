"""Check obligations.json with nothing of posref and nothing of its proof kit: `python check.py [obligations.json]`.

An obligation is a pair of expressions that should be equal for all values of their symbols. Where both are polynomials they are
expanded and compared exactly. Otherwise both are evaluated at random points: exactly while the values are rational, with 60
digits (mpmath) from the first exp or cos on; sums are written out, sizes are small, unknown functions and arrays take random
values. Agreement at random points is no proof, but an identity that is false fails it. The exit code is 0 if everything agrees.
"""

import json
import random
import sys
from fractions import Fraction
from pathlib import Path

import mpmath

mpmath.mp.dps = 60
POINTS, ATTEMPTS, TERMS = 3, 40, 20_000
TOLERANCE = mpmath.mpf(10) ** -35  # relative to the larger side; rounding is near 1e-58


class NoPolynomial(Exception):
    """Not a polynomial, or one of too many terms."""


def expand(e):
    """A polynomial as {monomial: coefficient}; a monomial is a sorted tuple of (atom, power)."""
    if isinstance(e, str):
        return {(): Fraction(e)} if Fraction(e) else {}
    if e[0] in ("x", "at", "call"):
        return {((json.dumps(e), 1),): Fraction(1)}
    if e[0] == "add":
        total = {}
        for term in e[1:]:
            for monomial, c in expand(term).items():
                total[monomial] = total.get(monomial, 0) + c
        return {m: c for m, c in total.items() if c}
    if e[0] == "pow" and isinstance(e[2], str) and e[2].isdigit():
        return expand(["mul", *[e[1]] * int(e[2])])
    if e[0] != "mul":
        raise NoPolynomial
    product = {(): Fraction(1)}
    for factor in map(expand, e[1:]):
        product = _times(product, factor)
    return product


def _times(p, q):
    if len(p) * len(q) > TERMS:
        raise NoPolynomial
    product = {}
    for left, c in p.items():
        for right, d in q.items():
            powers = dict(left)
            for atom, n in right:
                powers[atom] = powers.get(atom, 0) + n
            key = tuple(sorted(powers.items()))
            product[key] = product.get(key, 0) + c * d
    return {m: c for m, c in product.items() if c}


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
    if head == "pow":
        return _power(*values)
    if head in ("add", "mul"):
        result = values[0]
        for v in values[1:]:
            if not (isinstance(result, Fraction) and isinstance(v, Fraction)):
                result, v = _number(result), _number(v)
            result = result + v if head == "add" else result * v
        return result
    return {"conjugate": mpmath.conj, "abs": mpmath.fabs}.get(head, getattr(mpmath, head, None))(_number(values[0]))


def _power(base, exponent):
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        return base ** int(exponent)
    return mpmath.power(_number(base), _number(exponent))


def _number(v):
    return mpmath.mpf(v.numerator) / v.denominator if isinstance(v, Fraction) else v


def _draw(kind, source):
    if kind in ("size", "natural", "integer"):
        low, high = {"size": (3, 5), "natural": (0, 2), "integer": (-3, 3)}[kind]
        return Fraction(source.randint(low, high))
    return Fraction(source.randint(1, 9), source.randint(2, 7)) * (1 if kind == "positive" else source.choice((1, -1)))


def failure(left, right, symbols, functions, seed):
    """None if both sides agree, else where they differ; the second value says whether they were expanded."""
    try:
        return (None if expand(left) == expand(right) else "other coefficients"), True
    except NoPolynomial:
        agreed = 0
    for attempt in range(ATTEMPTS):
        source = random.Random(f"{seed} {attempt}")
        point = {name: _draw(kind, source) for name, kind in symbols.items()} | {"": f"{seed} {attempt}"}
        try:
            a, b = (_number(value(side, point, functions)) for side in (left, right))
        except ZeroDivisionError:
            continue  # a denominator vanishes at this point
        if abs(a - b) > TOLERANCE * max(1, abs(a), abs(b)):
            return f"{mpmath.nstr(a, 15)} and {mpmath.nstr(b, 15)} at { ({k: str(v) for k, v in point.items() if k}) }", False
        if (agreed := agreed + 1) == POINTS:
            return None, False
    return "no point at which both sides have values", False


def main(path):
    wrong = 0
    for t in json.loads(Path(path).read_text(encoding="utf-8"))["theorems"]:
        expanded = 0
        for number, (left, right) in enumerate(t["obligations"], 1):
            why, exact = failure(left, right, t["symbols"], t["functions"], f"{t['name']} {number}")
            expanded, wrong = expanded + exact, wrong + bool(why)
            if why:
                print(f"WRONG {t['name']}, obligation {number}: {why}")
        print(f"{t['name']}: {len(t['obligations'])} obligations, {expanded} expanded exactly, {len(t['left_out'])} left out")
    print("every obligation holds" if not wrong else f"{wrong} obligations fail")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("obligations.json")))
