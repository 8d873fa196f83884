"""The decision procedure: a normal form for exponential-trigonometric rational functions.

Fragment. Real symbols, `x[i, 2*j]` and uninterpreted functions as atoms; Gaussian rationals (a float is the dyadic rational
it is); sums, products, integer powers and quotients; exp, cos, sin, cosh, sinh of elements of the fragment, towers allowed;
rho**x for a positive symbol rho; finite sums from 0.

Normal form. A polynomial is a dict {(monomial, exponent): coefficient} that stands for the sum of
coefficient * monomial * e^exponent. A monomial is a sorted tuple of (atom, power); an exponent is itself a polynomial, frozen,
without constant term; cos L becomes (e^{iL} + e^{-iL}) / 2. An expression is a pair numerator, denominator.

Complete on the fragment without sums: the numerator is empty if and only if the function is identically zero (height 1 is
elementary; towers: Henson and Rubel 1984, van den Dries 1984). With sums it is sound and not complete, since a re-indexed
sum may look different. Outside the fragment it refuses (`Undecided`) and never guesses: pi, roots of numbers, absolute values,
a constant inside exp.

One invariant keeps it complete: no two generators are algebraically related. So a positive symbol rho is always stored as
exp(log_rho), and symbols are made by the kit alone, so that one name means one atom.
"""

from fractions import Fraction

import sympy as sp

from proofs.kit import cases
from proofs.kit.verdicts import Undecided

ONE = (1, 0)  # whole numbers are of Python, whose arithmetic is faster than that of fractions
HALF = (Fraction(1, 2), 0)
I = (0, 1)  # noqa: E741, the imaginary unit
CONSTANT = ((), frozenset())
CACHED = 200_000  # expressions; more are forgotten, so that a long run of mutants stays small


def is_zero(expression):
    """True if and only if the expression is identically zero (on sums: True only if it is)."""
    return not normal_form(expression)[0]


def normal_form(expression):
    """(numerator, denominator), two polynomials; the denominator is assumed to be non-zero wherever it is used."""
    expression = sp.sympify(expression)
    if expression not in _cache:
        if len(_cache) > CACHED:
            _cache.clear()
        _cache[expression] = _quotient(expression)
    return _cache[expression]


def coefficients(expression):
    """The polynomial in front of each independent exponential: all must vanish if the expression is zero for all positions."""
    groups = {}
    for (monomial, exponent), (real, imaginary) in normal_form(expression)[0].items():
        value = sp.Rational(real.numerator, real.denominator) + sp.I * sp.Rational(imaginary.numerator, imaginary.denominator)
        for atom, power in monomial:
            value *= _atoms[atom] ** power
        groups[exponent] = groups.get(exponent, 0) + value
    return list(groups.values())


def numerator_and_denominator(expression):
    """The normal form as two expressions of sympy."""
    return tuple(_expression(p.items()) for p in normal_form(expression))


# polynomials


def constant(c):
    return {} if c == (0, 0) else {CONSTANT: c}


UNIT = constant(ONE)


def add(p, q):
    total = dict(p)
    for key, c in q.items():
        _accumulate(total, key, c)
    return total


def multiply(p, q):
    if p is UNIT or q is UNIT:
        return q if p is UNIT else p
    product = {}
    for (monomial_p, exponent_p), (a, b) in p.items():
        for (monomial_q, exponent_q), (c, d) in q.items():
            key = _times(monomial_p, monomial_q), _plus(exponent_p, exponent_q)
            _accumulate(product, key, (a * c - b * d, a * d + b * c) if b or d else (a * c, 0))
    return product


def power(p, n):
    result = UNIT
    for bit in bin(n)[2:]:
        result = multiply(result, result)
        if bit == "1":
            result = multiply(result, p)
    return result


def exponential(p):
    if CONSTANT in p:
        raise Undecided("a constant inside exp, which would need facts about e")
    return {((), frozenset(p.items())): ONE}


def _accumulate(total, key, c):
    old = total.get(key, (0, 0))
    new = (old[0] + c[0], old[1] + c[1])
    if new == (0, 0):
        total.pop(key, None)
    else:
        total[key] = new


def _times(left, right):
    if not left or not right:
        return left or right
    powers = dict(left)
    for atom, n in right:
        powers[atom] = powers.get(atom, 0) + n
    return tuple(sorted((atom, n) for atom, n in powers.items() if n))


def _plus(left, right):
    if not left or not right:
        return left or right
    return frozenset(add(dict(left), dict(right)).items())


# expressions

_cache = {}
_atoms = []  # atom number -> expression
_numbers = {}  # expression -> atom number
_logarithms = {}  # positive symbol -> its logarithm; two symbols of one name have two


def _atom(expression):
    if expression not in _numbers:
        _numbers[expression] = len(_atoms)
        _atoms.append(expression)
    return {(((_numbers[expression], 1),), frozenset()): ONE}


def _logarithm(symbol):
    return _logarithms.setdefault(symbol, sp.Dummy("log_" + symbol.name, real=True))


def _polynomial(expression):
    numerator, denominator = normal_form(expression)
    if denominator == UNIT:
        return numerator
    if set(denominator) == {CONSTANT}:
        real, imaginary = map(Fraction, denominator[CONSTANT])
        norm = real**2 + imaginary**2
        return multiply(numerator, constant((real / norm, -imaginary / norm)))
    raise Undecided(f"a quotient inside exp, cos or sin: {expression}")


def _quotient(e):
    if not e.is_commutative:
        raise Undecided(f"a product whose factors do not commute: {e}")
    if e.is_Rational or e.is_Float:
        number = sp.Rational(e)
        return constant((int(number.p) if number.q == 1 else Fraction(int(number.p), int(number.q)), 0)), UNIT
    if e is sp.I:
        return constant(I), UNIT
    if e.is_Add:
        return _sum_of_terms(e.args)
    if e.is_Mul:
        return _product_of_factors(e.args)
    if isinstance(e, sp.exp):
        return exponential(_polynomial(e.args[0])), UNIT
    if e.is_Pow:
        return _power_of(*e.args)
    if isinstance(e, (sp.cos, sp.sin, sp.cosh, sp.sinh)):
        return _circular(e), UNIT
    if e.is_Symbol and e.is_positive:
        return exponential(_atom(_logarithm(e))), UNIT
    if isinstance(e, sp.core.function.AppliedUndef):
        return _atom(canonical(e)), UNIT
    if isinstance(e, sp.log) and e.args[0].is_Symbol and e.args[0].is_positive:
        return _atom(_logarithm(e.args[0])), UNIT
    if isinstance(e, OPAQUE):  # one more function of which nothing is known; a refutation evaluates it
        return _atom(e.func(*map(_argument, e.args))), UNIT
    if e.is_Symbol or isinstance(e, sp.Indexed):
        return _atom(e), UNIT
    if isinstance(e, sp.Sum):
        return _finite_sum(e.function, e.limits)
    raise Undecided(f"outside the fragment: {str(e)[:120]}")


def _sum_of_terms(terms):
    numerator, denominator = {}, UNIT
    for term in terms:
        n, d = normal_form(term)
        if d == denominator:
            for key, c in n.items():
                _accumulate(numerator, key, c)
        else:
            numerator, denominator = add(multiply(numerator, d), multiply(n, denominator)), multiply(denominator, d)
    return numerator, denominator


def _product_of_factors(factors):
    numerator, denominator = UNIT, UNIT
    for factor in factors:
        n, d = normal_form(factor)
        numerator, denominator = multiply(numerator, n), multiply(denominator, d)
    return numerator, denominator


def _power_of(base, exponent):
    if exponent.is_Integer:
        numerator, denominator = normal_form(base)
        if exponent < 0:
            numerator, denominator = denominator, numerator
        if not denominator:
            raise ZeroDivisionError(f"{base} is zero and is divided by")
        return power(numerator, abs(int(exponent))), power(denominator, abs(int(exponent)))
    if base.is_Symbol and base.is_positive:
        return exponential(_polynomial(exponent * _logarithm(base))), UNIT
    raise Undecided(f"outside the fragment: {base}**({exponent})")


def _circular(e):
    hyperbolic, even = isinstance(e, (sp.cosh, sp.sinh)), isinstance(e, (sp.cos, sp.cosh))
    argument = _polynomial(e.args[0])
    if not hyperbolic:
        argument = multiply(constant(I), argument)
    factor = HALF if even or hyperbolic else (0, Fraction(-1, 2))
    second = factor if even else (-factor[0], -factor[1])
    minus = constant((-1, 0))
    return add(
        multiply(constant(factor), exponential(argument)), multiply(constant(second), exponential(multiply(minus, argument)))
    )


# functions of which nothing is known, or nothing is used


OPAQUE = (sp.log, sp.tanh, sp.asin, sp.acos, sp.atan, sp.erf)


def canonical(e):
    """The expression with the arguments of its unknown functions in normal form, so that equal arguments are one."""
    unknown = lambda f: isinstance(f, sp.core.function.AppliedUndef)
    return e.replace(unknown, lambda f: f.func(*map(_argument, f.args))) if e.atoms(sp.core.function.AppliedUndef) else e


def _argument(e):
    """One expression for all equal arguments; a quotient has no unique form and stays as it is."""
    if e.is_Symbol or e.is_Integer:
        return e
    expanded = sp.expand(e)
    if expanded.is_polynomial():
        return expanded
    try:
        numerator, denominator = normal_form(e)
    except Undecided:
        return e
    if not numerator:
        return sp.Integer(0)
    if denominator != UNIT:
        return e
    back = {log: sp.log(symbol) for symbol, log in _logarithms.items()}
    return _expression(frozenset(numerator.items())).xreplace(back | {sp.exp(0, evaluate=False): sp.Integer(1)})


def never_zero(e):
    """True only if e is not 0 for any values of its symbols; read off its form."""
    if e not in _never_zero:
        _never_zero[e] = _positive(e) or (e.is_Mul and all(map(never_zero, e.args))) or (e.is_Pow and never_zero(e.base))
        if e.is_number:
            _never_zero[e] = e.is_zero is False
    return _never_zero[e]


_never_zero = {}


def _positive(e):
    if isinstance(e, sp.exp) or (e.is_number and e.is_positive) or (e.is_Symbol and e.is_positive):
        return True
    if isinstance(e, sp.Sum):
        return _positive(e.function)
    if e.is_Pow:
        return _positive(e.base)
    return (e.is_Add or e.is_Mul) and all(map(_positive, e.args))


# finite sums: the summand in normal form, factors free of the index pulled out, the bound index renamed by nesting height


def _finite_sum(function, limits):
    j, low, high = limits[-1]
    if low != 0:
        raise Undecided(f"a sum from {low}; write it from 0")
    bound = sp.Symbol(f"_bound{height(function) + len(limits)}", integer=True, nonnegative=True)
    function = function.xreplace({j: bound})
    inner_limits = [tuple(part.xreplace({j: bound}) for part in limit) for limit in limits[:-1]]
    numerator, denominator = _finite_sum(function, inner_limits) if inner_limits else normal_form(function)
    if any(_depends(key, bound) for key in denominator):
        raise Undecided("a denominator that depends on the index of summation")
    groups = {}
    for (monomial, exponent), c in numerator.items():
        inner = tuple(t for t in monomial if bound in _atoms[t[0]].free_symbols)
        inner_exponent = frozenset(t for t in exponent if _depends(t[0], bound))
        outer = tuple(t for t in monomial if t not in inner), exponent - inner_exponent
        group = groups.setdefault((inner, inner_exponent), {})
        _accumulate(group, outer, c)
    total = {}
    for (inner, inner_exponent), factor in groups.items():
        summed = _sum_atom(inner, inner_exponent, bound, high) if inner or inner_exponent else _polynomial(_terms(high))
        total = add(total, multiply(factor, summed))
    return total, denominator


def _terms(high):
    """How many whole numbers stand in 0 .. high; a sum to -5 has no term, and not -4."""
    if not (high.is_integer and cases._clearly_nonnegative(high + 1)):
        raise Undecided(f"a sum from 0 to {high}, which may have less than no terms")
    return high + 1


def _sum_atom(monomial, exponent, bound, high):
    summand = sp.Mul(*[_atoms[atom] ** n for atom, n in monomial], sp.exp(_expression(exponent), evaluate=False))
    name = sp.Symbol(f"_b{height(summand)}", integer=True, nonnegative=True)
    return _atom(sp.Sum(summand.xreplace({bound: name}), (name, 0, high)))


def _expression(polynomial):
    """Back to sympy, only to name a summand: equal polynomials give equal expressions."""
    terms = []
    for (monomial, exponent), (real, imaginary) in polynomial:
        number = sp.Rational(real.numerator, real.denominator) + sp.I * sp.Rational(imaginary.numerator, imaginary.denominator)
        terms.append(
            sp.Mul(number, *[_atoms[atom] ** n for atom, n in monomial], sp.exp(_expression(exponent), evaluate=False))
        )
    return sp.Add(*terms)


def height(e):
    return max((len(s.limits) + height(s.function) for s in e.atoms(sp.Sum)), default=0)


def _depends(key, bound):
    monomial, exponent = key
    return any(bound in _atoms[atom].free_symbols for atom, _ in monomial) or any(_depends(k, bound) for k, _ in exponent)
