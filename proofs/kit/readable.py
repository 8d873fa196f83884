"""Readable: an expression of the kit as a person writes it, in plain text or in LaTeX."""

import sympy as sp
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

from proofs.kit.normal_form import height, numerator_and_denominator

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


def text(expression, latex=False, beside=()):
    """The expression with plain names of indices, as text or LaTeX; an index that the sides share has one name in all."""
    named = _renamed(*map(sp.sympify, (expression, *beside)))
    return LatexPrinter({"imaginary_unit": "i"}).doprint(named) if latex else _Text().doprint(named)


def normal_form_text(expression, latex=False, beside=()):
    """The normal form, its sums over one range as one, ordered by their exponentials."""
    numerator, denominator = map(_collected, numerator_and_denominator(expression))
    if denominator == 1:
        return text(numerator, latex, beside)
    written = text(numerator, latex, beside), text(denominator, latex, beside)
    return r"\frac{{{}}}{{{}}}".format(*written) if latex else "({}) / ({})".format(*written)


def _renamed(expression, *beside):
    """Indices, which the kit numbers, by letters: free ones by one letter on all sides, those of sums by their depth."""
    everything = sp.Tuple(expression, *beside)
    taken = {str(s) for s in everything.atoms(sp.Symbol, sp.IndexedBase)}
    letters = [letter for letter in LETTERS if letter not in taken]
    free = sorted((s for s in everything.free_symbols if s.is_Symbol and "#" in s.name), key=str)
    logs = {d: sp.log(sp.Symbol(d.name.removeprefix("log_"))) for d in expression.atoms(sp.Dummy) if d.name.startswith("log_")}
    indices = {old: sp.Symbol(letter, integer=True) for old, letter in zip(free, letters, strict=False)}
    of_sums = letters[len(free) :]
    return expression.xreplace(indices | logs).replace(sp.Sum, lambda *sum_: _over(of_sums, *sum_))


def _over(letters, body, *limits):
    names = {limit[0]: sp.Symbol(letters[height(body) + place], integer=True) for place, limit in enumerate(limits)}
    return sp.Sum(body.xreplace(names), *(limit.xreplace(names) for limit in limits))


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
