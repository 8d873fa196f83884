"""Expressions as texts of Coq."""

import functools
import json
from fractions import Fraction

NAMED = {"cos": "cos", "sin": "sin", "exp": "exp", "cosh": "cosh", "sinh": "sinh", "tanh": "tanh", "log": "ln", "abs": "Rabs"}
NATURAL = ("size", "natural")


class Open(Exception):
    """An obligation without a proof here; the text says why."""


def named(symbol):
    """No word of Coq's begins like this."""
    return "v_" + symbol.replace("#", "_").replace("'", "_")


def parts(e):
    """An expression and all that it is made of, but for numbers."""
    if isinstance(e, list):
        yield e
        for part in e[1:]:
            yield from parts(part)


def symbols(e, kinds, bound=frozenset()):
    if isinstance(e, str):
        return set()
    if e[0] == "x":
        return {e[1]} - bound
    inner = bound | {e[2]} if e[0] == "sum" else bound
    return set().union(*(symbols(part, kinds, inner) for part in e if isinstance(part, list)))


def divisors(e):
    return {json.dumps(p[1]): p[1] for p in parts(e) if p[0] == "pow" and isinstance(p[2], str) and Fraction(p[2]) < 0}.values()


def _number(text):
    value = Fraction(text)
    whole = str(abs(value.numerator)) if value.denominator == 1 else f"({abs(value.numerator)} / {value.denominator})"
    return f"(- {whole})" if value < 0 else whole


def defined(e, kinds):
    """An expression with x^y as exp(y log x) where x is positive and y is no whole number."""
    if isinstance(e, str):
        return e
    head, *args = e[0], *(defined(part, kinds) for part in e[1:])
    if head == "pow" and not _is_whole(args[1]) and _is_positive(args[0], kinds):
        return ["exp", ["mul", args[1], ["log", args[0]]]]
    return [head, *args]


def _is_whole(e):
    return isinstance(e, str) and Fraction(e).denominator == 1


def _is_positive(e, kinds):
    return Fraction(e) > 0 if isinstance(e, str) else e[0] == "x" and kinds[e[1]] in ("positive", "size")


def real(e, kinds):
    if isinstance(e, str):
        return _number(e)
    head, *args = e
    if head == "x":
        return f"INR {named(args[0])}" if kinds[args[0]] in NATURAL else named(args[0])
    if head in ("at", "call"):
        return " ".join([named(args[0]), *(f"({real(a, kinds)})" for a in args[1:])])
    if head == "sum":
        body, index, low, high = args
        return f"sum (fun {named(index)} : nat => {real(body, kinds)}) {count(low, high, kinds)}"
    if head == "pow":
        return _power(*args, kinds)
    if head in NAMED:
        return f"{NAMED[head]} ({real(args[0], kinds)})"
    if head not in ("add", "mul"):
        raise Open(f"{head} has no name in Coq")
    return "(" + {"add": " + ", "mul": " * "}[head].join(f"{real(a, kinds)}" for a in args) + ")"


def _power(base, exponent, kinds):
    if not _is_whole(exponent):
        raise Open("a power whose exponent is no whole number")
    n, text = int(exponent), f"({real(base, kinds)})"
    power = text if abs(n) == 1 else f"{text} ^ {abs(n)}"
    return f"(/ ({power}))" if n < 0 else f"({power})"


def count(low, high, kinds):
    """How many terms a sum from 0 has: one more than its last index, a natural number."""
    if low == "0" and high[0] == "add" and "-1" in high[1:]:
        rest = [part for part in high[1:] if part != "-1"]
        if len(rest) == 1 and rest[0][0] == "x" and kinds[rest[0][1]] in NATURAL:
            return named(rest[0][1])
    raise Open("a sum that does not run from 0 to n - 1")


def complex_(e, kinds):
    if ["i"] not in list(parts(e)):
        return f"(real ({real(e, kinds)}))"
    head, *args = e
    if head == "i":
        return "unit"
    if head in ("add", "mul"):
        word = {"add": "plus", "mul": "times"}[head]
        return functools.reduce(lambda left, right: f"({word} {left} {right})", (complex_(a, kinds) for a in args))
    if head == "exp":
        return f"(exponential {complex_(args[0], kinds)})"
    raise Open(f"{head} of a complex number")
