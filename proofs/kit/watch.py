"""A body that is watched: what its source says and what ran.

Where mutants are run, the body of a theorem is run once more under `sys.settrace`. Its own frames, and those of helpers in its
file, are followed instruction by instruction; of all other frames only the call is seen.

* Each claim of the source runs, and so does each call of a helper that claims, and each loop of the body.
* What asks sympy for the value of an expression at a number has a reason in `values=`.
* Two names of which the sentence speaks stand for two symbols, and two sizes of a file have two names.
"""

import dis
import re
import sys

import numpy as np
import sympy as sp

from proofs.kit import cases, claims, honest, numbers
from proofs.kit.cases import every_case
from proofs.kit.sized import SizedArray
from proofs.kit.symbols import Scalar, Size, SymbolArray, expression

SYMPY = sp.__path__[0]
VALUES = {"subs", "xreplace", "replace", "limit", "lambdify", "evalf", "series", "eval"}
VALUES |= {"doit", "__call__", "integrate", "rem", "resultant", "coeff"}  # by a bound symbol, or as polynomials


def problem(t):
    """What a theorem says and did not run, in words; "" if there is nothing. It has just been proved."""
    if not (t.statement and t.sizes):
        return "has no sentence, or no sizes="
    if hasattr(t.body, "__wrapped__") or t.body.__code__.co_name != t.body.__name__ or t.body.__closure__:
        return "is not the function of its source; take off what decorates it"
    every = [code for helper in honest.helpers(t.body) for code in _codes(helper.__code__)]
    names = _claiming(every)
    needed = {(id(code), start): (what, _line(code, start)) for code in every for start, what in _loads(code, names)}
    needed |= {(id(code), start): ("a loop", _line(code, start)) for code in _codes(t.body.__code__) for start in _turns(code)}
    watch = Watch(t.body, {code for code, _ in needed})
    while watch.runs() and not needed.keys() <= watch.ran:
        pass
    if left := [words for at, words in needed.items() if at not in watch.ran]:
        return "never runs {} in line {} of its file".format(*left[0])
    if watch.values and not t.values:
        return f"puts values in the place of symbols by {min(watch.values)}, and does not say why; pass values="
    return _one_for_two(t, watch.names)


class Watch:
    """A body that runs in one case after the other, without deciding its claims.

    Which instructions ran, as (identity of the code, offset); which functions of sympy were called; local names of the body.
    """

    def __init__(self, body, followed):
        self.body, self.followed, self.ran, self.values, self.names = body, {*followed, id(body.__code__)}, set(), set(), {}
        self.cases = every_case(body)

    def runs(self):
        """Run the body in the next case; False if there is none."""
        saved = sys.gettrace()
        claims.deciding = False
        sys._getframe().f_trace_opcodes = True  # without it Python 3.12 follows no instructions of the first run
        sys.settrace(self._follows())
        try:
            return next(self.cases, None) is not None
        finally:
            sys.settrace(saved)
            claims.deciding = True

    def _follows(self):
        """The function that sees every call."""
        followed, inside, known = self.followed, self._inside, (SYMPY, cases.KIT)

        def called(frame, event, arg):
            code = frame.f_code
            if id(code) in followed:
                frame.f_trace_opcodes, frame.f_trace_lines = True, False
                return inside
            if code.co_name in VALUES and code.co_filename.startswith(SYMPY):
                self.values.update([code.co_name] * (not frame.f_back.f_code.co_filename.startswith(known)))
            return None

        return called

    def _inside(self, frame, event, arg):
        if event == "opcode":
            self.ran.add((id(frame.f_code), frame.f_lasti))
        elif event == "return" and frame.f_code is self.body.__code__:
            self.names.update(frame.f_locals)
        return self._inside


def _codes(code):
    """A code and those of the functions and comprehensions in it."""
    return [code, *(inner for each in code.co_consts if hasattr(each, "co_code") for inner in _codes(each))]


def _claiming(every):
    """The names of claims, and of those functions that claim."""
    names, count = {*honest.CLAIMS}, 0
    while count < len(names):
        count = len(names)
        names |= {code.co_name for code in every if code.co_name[0] != "<" and any(_loads(code, names))}
    return names


def _loads(code, names):
    """Where a code begins to load one of these names, as (offset, name)."""
    return ((start, i.argval) for start, i, _ in _instructions(code) if i.opname.startswith("LOAD_") and i.argval in names)


def _turns(code):
    """The offset of the first instruction in each loop."""
    return (start for start, _, before in _instructions(code) if before == "FOR_ITER")


def _instructions(code):
    """The instructions of a code, each with where it starts, its prefixes included, and the name of the one before."""
    start, before = None, ""
    for i in dis.get_instructions(code):
        start = i.offset if start is None else start
        if i.opname != "EXTENDED_ARG":
            yield start, i, before
            start, before = None, i.opname


def _line(code, offset):
    return next(line for first, end, line in code.co_lines() if first <= offset < end)


def _one_for_two(t, names):
    """Two names of the sentence that stand for one symbol or array, or two sizes of the file that are one."""
    sizes = {name: value for name, value in t.body.__globals__.items() if isinstance(value, Size)}
    said = {name: value for name, value in names.items() if re.search(rf"\b{name}\b", t.statement)}
    for group in (sizes, said):
        known = {}
        for name, symbol in ((name, symbol) for name, value in group.items() if (symbol := _symbol(value))):
            other = known.setdefault(symbol, name)
            if other != name and not re.search(rf"\b({other} = {name}|{name} = {other})\b", f"{t.sizes} {t.statement}"):
                return f"has one {symbol} for {other} and {name}; rename one"
    return ""


def _symbol(value):
    """The symbol, or the array of symbols, that a name stands for, as text."""
    if isinstance(value, SizedArray):
        return numbers._letters(value)
    cells = [expression(cell) for cell in np.ravel(value)] if isinstance(value, (Scalar, SymbolArray)) else [None]
    return str(value) if all(isinstance(cell, sp.Symbol) for cell in cells) else None
