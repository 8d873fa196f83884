"""Readable: an expression of the kit as a person writes it, in plain text or in LaTeX."""

import sympy as sp
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

from proofs.kit.normal_form import numerator_and_denominator

LETTERS = "jtrslpuvabc"
LONG = 300  # operations; a longer normal form is written as it is, since sympy would sort it for minutes


class _Text(StrPrinter):
    def _print_Sum(self, sum_):
        index, low, high = sum_.limits[0]
        return f"sum[{index} = {self._print(low)} .. {self._print(high)}] ({self._print(sum_.function)})"

    def _print_ExpBase(self, power):
        return f"e^({self._print(power.args[0])})"

    _print_exp = _print_ExpBase

    def _print_ImaginaryUnit(self, _):
        return "i"


def text(expression, latex=False):
    """The expression with plain names of bound indices, as text or LaTeX."""
    named = _renamed(sp.sympify(expression))
    return LatexPrinter({"imaginary_unit": "i"}).doprint(named) if latex else _Text().doprint(named)


def normal_form_text(expression, latex=False):
    """The normal form, its sums over one range as one, ordered by their exponentials."""
    numerator, denominator = map(_collected, numerator_and_denominator(expression))
    if denominator == 1:
        return text(numerator, latex)
    written = text(numerator, latex), text(denominator, latex)
    return r"\frac{{{}}}{{{}}}".format(*written) if latex else "({}) / ({})".format(*written)


def _renamed(expression):
    """Bound indices, which the kit numbers, by letters that nothing else has."""
    made = sorted((s for s in expression.atoms(sp.Symbol) if "#" in s.name or s.name.startswith("_")), key=str)
    taken = {str(s) for s in expression.atoms(sp.Symbol, sp.IndexedBase)}
    free = (letter for letter in LETTERS if letter not in taken)
    logs = {d: sp.log(sp.Symbol(d.name.removeprefix("log_"))) for d in expression.atoms(sp.Dummy) if d.name.startswith("log_")}
    indices = {old: sp.Symbol(letter, integer=True) for old, letter in zip(made, free, strict=False)}
    return expression.xreplace(indices | logs)


def _collected(expression):
    """Sums over one range as one sum."""
    if expression.count_ops() > LONG:
        return expression
    by_range = {}
    for term in sp.Add.make_args(sp.sympify(expression)):
        factor, sums = term.as_independent(sp.Sum)
        one = isinstance(sums, sp.Sum) and not factor.has(sp.Indexed)
        limits, body = (sums.limits, factor * sums.function) if one else ((), term)
        by_range[limits] = by_range.get(limits, 0) + body
    bodies = {limits: _by_exponential(body) for limits, body in by_range.items()}
    return sp.Add(*(sp.Sum(body, *limits) if limits else body for limits, body in bodies.items()))


def _by_exponential(expression):
    """What stands before each e^(..), which is written once."""
    expanded = sp.expand(expression, power_exp=False)
    collected = sp.collect(expanded, sorted(expanded.atoms(sp.exp), key=str))
    return collected.replace(lambda e: isinstance(e, sp.exp), lambda e: sp.exp(sp.factor_terms(sp.factor(e.args[0]))))
