"""The steps of a proof: they are found here, and Coq's kernel judges them."""

import functools
import itertools
import json
import math
from fractions import Fraction

from proofs.kit.coq.terms import Open, complex_, count, parts, real

TURNED = ("cos", "sin", "exp")
TERMS, PARTS, INDEX = 2000, 24, "v_index"


def _polynomial(e):
    """{monomial: coefficient} of an expression; a monomial is a sorted tuple of the JSON of its factors."""
    if isinstance(e, str):
        return {(): Fraction(e)} if Fraction(e) else {}
    if e[0] == "add":
        return _collected((m, c) for part in e[1:] for m, c in _polynomial(part).items())
    if e[0] == "mul":
        return functools.reduce(_multiplied, map(_polynomial, e[1:]))
    if e[0] == "pow" and isinstance(e[2], str) and e[2].isdigit():
        return functools.reduce(_multiplied, [_polynomial(e[1])] * int(e[2]))
    return {(json.dumps(e),): Fraction(1)}


def _multiplied(p, q):
    if len(p) * len(q) > TERMS:
        raise Open("a polynomial of many terms")
    return _collected((tuple(sorted(a + b)), c * d) for (a, c), (b, d) in itertools.product(p.items(), q.items()))


def _collected(terms):
    total = {}
    for monomial, c in terms:
        total[monomial] = total.get(monomial, 0) + c
    return {m: c for m, c in total.items() if c}


def _expression(monomial):
    return ["mul", "1", *map(json.loads, monomial)]


def _of_terms(e, kinds):
    """No sums: every angle and exponent as a sum of whole multiples of monomials, exp(ln x) as x, then rings and fields."""
    turned = {json.dumps(p): p for p in parts(e) if p[0] in TURNED and ["i"] not in list(parts(p))}
    arguments = {key: _polynomial(p[1]) for key, p in turned.items()}
    common = {}  # monomial -> the least common denominator of its coefficients
    for monomial, c in ((m, c) for p in arguments.values() for m, c in p.items()):
        common[monomial] = math.lcm(common.get(monomial, 1), c.denominator)
    base = {m: f"(1 / {d} * {real(_expression(m), kinds)})" for m, d in common.items()}
    logarithms = {m: json.loads(m[0])[1] for m, d in common.items() if d == 1 and len(m) == 1 and m[0].startswith('["log"')}
    base |= {m: f"ln ({real(x, kinds)})" for m, x in logarithms.items()}
    steps = []
    for key, polynomial in arguments.items():
        if sum(abs(c * common[m]) for m, c in polynomial.items()) > PARTS:
            raise Open("an angle of many parts")
        words = [("" if c > 0 else "- ") + base[m] for m, c in polynomial.items() for _ in range(abs(int(c * common[m])))]
        head, argument = turned[key]
        wanted = " + ".join(words) or "0"
        steps.append(
            f"replace ({head} ({real(argument, kinds)})) with ({head} ({wanted})) by (apply f_equal; field; denominators)."
        )
    angles = sorted({base[m] for key, p in arguments.items() if turned[key][0] != "exp" for m in p})
    steps += ["expanded."] + [f"try rewrite (exp_ln ({real(x, kinds)})) by positive." for x in logarithms.values()]
    steps += [f"pose proof (squares {angle}) as square_{n}." for n, angle in enumerate(angles)]
    known = f" [{' '.join(f'square_{n}' for n in range(len(angles)))}]" if angles else ""
    close = f"first [ ring{known} | field{known}; denominators | field_simplify; [ ring{known} | denominators ] ]."
    return [*steps, close]


def of_sums(left, right, kinds):
    """left - right as p + c_1 sum f_1 + c_2 sum f_2 + .., whose sums have one bound: then p + the sum of all terms."""
    if not any(p[0] == "sum" for p in parts(["equal", left, right])):
        return _of_terms(["equal", left, right], kinds)
    left, right = (_one_index(side) for side in (left, right))
    difference = _collected([*_polynomial(left).items(), *((m, -c) for m, c in _polynomial(right).items())])
    sums = {f for monomial in [*_polynomial(left), *_polynomial(right)] for f in monomial if json.loads(f)[0] == "sum"}
    rest, factors = ["add", "0"], {f: ["add", "0"] for f in sorted(sums)}
    for monomial, c in difference.items():
        within = [f for f in monomial if f in sums]
        others = ["mul", str(c), *(json.loads(f) for f in monomial if f not in sums)]
        if len(within) > 1:
            raise Open("a product of sums")
        (factors[within[0]] if within else rest).append(others)
    if any(p[0] == "sum" for f in sums for p in parts(json.loads(f)[1])) or not sums:
        raise Open("a sum in a sum, or in an argument")
    counts = {count(*json.loads(f)[3:], kinds) for f in sums}
    if len(counts) > 1:
        raise Open("sums of several lengths")
    (length,) = counts
    steps, terms, bodies = ["apply Rminus_diag_uniq."], [], []
    for place, (f, factor) in enumerate(factors.items()):
        body = json.loads(f)[1]
        steps.append(f"set (f_{place} := fun {INDEX} : nat => {real(body, kinds)}).")
        terms.append(f"{real(factor, kinds)} * f_{place} {INDEX}")
        bodies.append(["mul", factor, body])
    inside = " + ".join(f"({term})" for term in terms)
    plus = ", ".join(["sum_plus"] * (len(terms) - 1) + ["sum_scal"] * len(terms))
    steps += [
        f"transitivity ({real(rest, kinds)} + sum (fun {INDEX} : nat => {inside}) {length}).",
        f"{{ rewrite {plus}; first [ ring | field; denominators ]. }}",
        f"apply sum_cancels; [ denominators | intro {INDEX} ].",
        "unfold " + ", ".join(f"f_{place}" for place in range(len(terms))) + ".",
    ]
    return steps + _of_terms(["add", *bodies, rest], kinds)


def _one_index(e, old=None):
    """An expression whose sums, none of which stands in another, run over one index, so that equal sums are equal texts."""
    if isinstance(e, str):
        return e
    if e[0] == "sum":
        _, body, index, low, high = e
        return ["sum", _one_index(body, index), "index", low, high]
    return ["x", "index"] if e == ["x", old] else [e[0], *(_one_index(part, old) for part in e[1:])]


def of_parts(left, right, kinds):
    """Euler's formula for each exponential, then real and imaginary parts."""
    steps, angles = [], []
    for p in {json.dumps(p): p for p in parts(["equal", left, right]) if p[0] == "exp" and ["i"] in list(parts(p))}.values():
        turned = [(list(map(json.loads, m)), c) for m, c in _polynomial(p[1]).items()]
        if any(m.count(["i"]) != 1 for m, _ in turned):
            raise Open("an exponent that is not imaginary")
        angle = ["add", "0", *(["mul", str(c), *(f for f in m if f != ["i"])] for m, c in turned)]
        same = "apply same_parts; simpl; ring"
        steps.append(f"rewrite (euler {complex_(p[1], kinds)} {real(angle, kinds)}) by ({same}).")
        angles += [["cos", angle], ["sin", angle]]
    others = [p for p in parts(["equal", left, right]) if p[0] in TURNED and ["i"] not in list(parts(p))]
    part = f"{{ {' '.join(_of_terms(['parts', *angles, *others], kinds))} }}"
    return [*steps, "apply same_parts; simpl.", part, part]
