"""Extents: the lengths that axes had in the calls of a theorem, compared with its `sizes=`, where that says all of some size.

* The axes that a contract names by a letter of `sizes=` have had a symbol: n_query is an n, dim a d, and n_key an n or an m.
  Where no contract has such an axis, a symbol of another letter does not stand for it, and h does not if it only runs as 2h.
* So have the axes that a word says, such as heads or keys, in the sentence too; leading axes are batches, the last one heads.
* Lengths that were numbers are named: each above 1, and 1 in an axis of such a letter.
* A call with numbers alone has one that is named, also where the sentence alone says all or every.
"""

import re

import numpy as np
import sympy as sp

from proofs.kit import honest
from proofs.kit.named import met, numbers_in
from proofs.kit.sized import SizedArray
from proofs.kit.symbols import Scalar, expression

AXES = {"n": r"n|n_\w+|length", "m": r"m|n_key|n_shard", "d": r"d|dim|d_\w+"}  # names of axes that a letter says
NUMBERS = (bool, int, float, np.generic, Scalar, sp.Expr, SizedArray, np.ndarray, list, tuple)  # and what is made of them
AXES |= {
    "heads": r"h|h_\w+|.*heads",
    "keys": AXES["m"],
    "queries": r"n|n_query",
    "batches": "batches.*",
    "columns": "columns|n_key|rows_w",
}
AXES |= dict.fromkeys(("tokens", "lengths"), AXES["n"]) | {"features": r"d|dim|d_\w+|c|c_\w+", "rows": r"rows\w*|n|n_query"}
LETTERS = {*"nmdhkK"}  # none of which stands for another one
WORDS = {"one": 1, "single": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}


def problem(t, calls, symbols, plain):
    """What a theorem says of its sizes and did not run, in words; `symbols` are those of arguments, `plain` not doubled."""
    said = honest.sizes_said(t.sizes)
    if t.is_example or not said:
        return ""
    ran = [axis for call in calls if not call.case.sizes for axis in _axes(call)]
    lengths = _not_named(t, said, ran) if any(n.free_symbols for *_, n in ran) else ""
    return _as_an_entry(said, calls) or _no_symbol(t, ran) or _other_letter(said, ran, symbols, plain) or lengths


def _as_an_entry(said, calls):
    """A letter of a size that was only an entry of arrays, and neither the length of an axis nor an argument, in words."""
    values = [value for call in calls for value in call.arguments.values()]
    lengths = [e for value in values if isinstance(value, SizedArray) for e in value.extents]
    lengths += [expression(value) for value in values if isinstance(value, (Scalar, sp.Expr))]
    entries = [
        expression(cell) for value in values if isinstance(value, np.ndarray) for cell in np.ravel(value.view(np.ndarray))
    ]
    names, own = (
        {s.name for e in several if hasattr(e, "free_symbols") for s in e.free_symbols} for several in (entries, lengths)
    )
    left = sorted(said & {*"nmdh"} & (names - own))
    return f"says all {left[0]}, and {left[0]} is an entry of an argument; make it a size" if left else ""


def _no_symbol(t, ran):
    """A word for axes of which the sentence or `sizes=` says all, and of which each has had numbers alone."""
    quantified = honest.sizes_said(t.sizes) | honest.sizes_said(re.sub(r"[.:,]? (?=for )|[.:] |[.]$", ";", t.statement))
    for word in sorted(AXES.keys() & {w if w.endswith("s") else f"{w}s" for w in quantified}):
        own = [(where, n) for where, name, n in ran if re.fullmatch(AXES[word], name)]
        if own and not any(n.free_symbols for _, n in own):
            return f"says all {word}, and {own[0][0]} gets {', '.join(sorted({str(n) for _, n in own}))} alone"
    return ""


def _other_letter(said, ran, symbols, plain):
    """A letter for which no axis of its name, or a symbol of another letter, has run."""
    names = {s.name.rstrip("'") for s in symbols if s.is_integer and "#" not in s.name}
    others = names - said - (LETTERS - ({"h"} if "d" in said else set()))
    for letter in sorted(word for word in said if len(word) == 1 and names):
        others_own = [word for word in said - {letter, "n"} if letter == "n"]  # of "all n, m" n_key is the m
        own = [(where, n) for where, name, n in ran if _is(letter, name) and not any(_is(o, name) for o in others_own)]
        if own and not any(n.free_symbols for _, n in own):
            return f"says all {letter}, and {own[0][0]} gets {', '.join(sorted({str(n) for _, n in own}))} alone"
        if not own and letter in LETTERS - {s.name.rstrip("'") for s in plain} and not others:
            return f"says all {letter}, and calls its functions with {', '.join(sorted(names))} alone"
    return ""


def _not_named(t, said, ran):
    """A length that was a number and that `sizes=` does not name."""
    numbers = numbers_named(t.sizes)
    for where, name, n in ran:
        least = 1 if any(_is(word, name) for word in said) else 2
        if n.is_Integer and n >= least and not numbers & {float(n), float(n * _divisor(name))}:
            return f"says {t.sizes!r}, and {where} gets the length {n}; say for which numbers, as in 'all n; d = 2'"
    return ""


def numbers_alone(t, calls):
    """A call with numbers alone, of which `sizes=` names none, although the theorem says all of something, in words."""
    if t.is_example or t.argument or not re.search(honest.QUANTIFIER, f"{t.sizes} {t.statement}"):
        return ""
    named = numbers_named(t.sizes)
    for call in (call for call in calls if not call.case.sizes):
        given = {name: value for name, value in call.arguments.items() if isinstance(value, NUMBERS)}
        if given and not any(map(has_symbols, given.values())) and not met(named, [*given.values()]):
            name, value = next(iter(given.items()))
            said = re.search(honest.QUANTIFIER + r"\S*", f"{t.sizes}; {t.statement}").group()
            where, got = f"{call.function.__name__}({name}=..)", " ".join(str(value).split())
            return f"says {said!r}, and {where} gets {got}; say for which numbers"
    return ""


def has_symbols(value):
    """Whether an argument has a symbol, or a size that is one."""
    if isinstance(value, (list, tuple)):
        return any(map(has_symbols, value))
    cells = np.ravel(value.view(np.ndarray)) if isinstance(value, np.ndarray) else [value]
    return isinstance(value, SizedArray) or any(expression(e).free_symbols for e in cells if isinstance(e, (Scalar, sp.Expr)))


def numbers_named(said):
    """The numbers of a text, as words too."""
    return {*numbers_in(said), *(float(n) for word, n in WORDS.items() if re.search(rf"\b{word}\b", said))}


def _axes(call):
    """(argument, axis in the contract, length) of the arrays of a call; leading axes are of "batches", then of "heads"."""
    rules = call.function.contract.arguments if hasattr(call.function, "contract") else {}
    for name, value in call.arguments.items():
        shape = getattr(rules.get(name), "shape", None)
        shape = rules[shape.like].shape if shape and shape.like in rules else shape
        if not isinstance(value, (SizedArray, np.ndarray)):
            continue
        extents = value.extents if isinstance(value, SizedArray) else np.ndarray.__getattribute__(value, "shape")
        places = {shape.at(k) % len(extents): axis for k, axis in enumerate(shape.axes) if len(extents)} if shape else {}
        leading = [k for k in range(len(extents)) if k not in places]
        for k, n in enumerate(extents):
            words = ["batches"] * (k in leading[:1]) + ["heads"] * (k in leading[-1:])
            text = places[k].terms[0].text if k in places else "_".join(words)
            if not text.isdigit() and len(re.findall("[a-z_]+", text)) < 2:
                yield f"{call.function.__name__}({name}=..)", text, sp.sympify(n)


def _is(word, axis):
    """Whether an axis, or a multiple or part of it, is what a word for a size says."""
    return bool(re.fullmatch(rf"(\d\*)?({AXES.get(word, rf'{word}|{word}_[a-z]+')})(/\d)?", axis))


def _divisor(axis):
    """What the length of an axis such as dim/2 is multiplied by to be that of dim."""
    factor, times, _ = axis.rpartition("*")
    _, slash, divisor = axis.partition("/")
    return 2 if axis == "pairs" else sp.Integer(divisor) if slash else 1 / sp.Integer(factor) if times else 1
