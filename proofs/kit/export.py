"""Obligations as JSON, for a checker that has neither the kit nor posref.

An expression is a list with its operation first: ["add", ..], ["mul", ..], ["pow", base, exponent], ["exp", x] and other
functions by their names, ["sum", body, index, low, high], ["at", array, i, j], ["call", function, x]; a symbol is ["x", name],
a number the text "p/q", the imaginary unit ["i"]. `symbols` and `functions` say which values they take: real, positive,
integer, natural, size.
"""

import json
import shutil
from pathlib import Path

import sympy as sp

from proofs.kit import recheck
from proofs.kit.record import RECORD

FUNCTIONS = (sp.exp, sp.cos, sp.sin, sp.cosh, sp.sinh, sp.tanh, sp.log, sp.conjugate, sp.Abs, sp.floor)
OPERATIONS = {sp.Add: "add", sp.Mul: "mul", sp.Pow: "pow"} | {f: f.__name__.lower() for f in FUNCTIONS}


def write(chosen, folder):
    """Prove the theorems and write obligations.json and check.py into a folder; returns a line that says so."""
    folder.mkdir(parents=True, exist_ok=True)
    records = [theorem(t) for t in chosen]
    (folder / "obligations.json").write_text(json.dumps({"theorems": records}, separators=(",", ":")) + "\n", encoding="utf-8")
    shutil.copy(Path(recheck.__file__), folder / "check.py")
    count, left_out = (sum(len(r[key]) for r in records) for key in ("obligations", "left_out"))
    return (
        f"{count} obligations of {len(records)} theorems in {folder}, {left_out} left out; check them: python {folder}/check.py"
    )


def theorem(t):
    """The obligations of one theorem that are not 0 = 0 as written, or those that are where there are no others.

    What cannot be written is named with the reason.
    """
    t.prove()
    names, functions, obligations, left_out = _Names(), {}, [], []
    pairs = dict.fromkeys(RECORD.equalities)
    for left, right in [pair for pair in pairs if pair[0] - pair[1] != 0] or pairs:
        try:
            obligations.append([_tree(side, names, functions) for side in (left, right)])
        except NotImplementedError as error:
            left_out.append(str(error))
    return {
        "name": t.name,
        "statement": t.statement,
        "symbols": names.kinds,
        "functions": functions,
        "obligations": obligations,
        "zero_as_written": RECORD.trivial,
        "evaluated": list(dict.fromkeys(RECORD.facts)),
        "left_out": left_out,
    }


class _Names:
    """One name for each symbol: two of one name but of other assumptions are two."""

    def __init__(self):
        self.own, self.kinds = {}, {}

    def __call__(self, symbol):
        if symbol not in self.own:
            name = symbol.name
            while name in self.kinds:
                name += "'"
            self.own[symbol], self.kinds[name] = name, _kind(symbol)
        return self.own[symbol]


def _kind(symbol):
    if symbol.is_integer:
        return "size" if symbol.is_positive else "natural" if symbol.is_nonnegative else "integer"
    return "positive" if symbol.is_positive else "real"


def _tree(e, names, functions):
    tree = lambda part: _tree(part, names, functions)
    if e.is_Rational:
        return str(e)
    if e is sp.I:
        return ["i"]
    if e is sp.E:
        return ["exp", "1"]
    if isinstance(e, sp.Symbol):
        return ["x", names(e)]
    if isinstance(e, sp.Indexed):
        return ["at", e.base.name, *map(tree, e.indices)]
    if isinstance(e, sp.core.function.AppliedUndef):
        functions[e.func.__name__] = "integer" if e.is_integer else "real"
        return ["call", e.func.__name__, *map(tree, e.args)]
    if isinstance(e, sp.Sum):
        body = tree(e.function)
        for index, low, high in e.limits:
            body = ["sum", body, names(index), tree(low), tree(high)]
        return body
    if e.func in OPERATIONS:
        return [OPERATIONS[e.func], *map(tree, e.args)]
    raise NotImplementedError(f"{e.func.__name__} has no name in the format")
