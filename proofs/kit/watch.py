"""A body that is watched: what its source says and what ran.

Where mutants are run, the body of a theorem is run once more under `sys.settrace`. Its own frames, and those of helpers in its
file, are followed instruction by instruction; of all other frames only the call is seen.

* Each claim of the source runs, and so does each call of a helper that claims, and each loop of the body.
* A call of sympy that is not known to leave each symbol in its place has a reason in `values=`. Known are operators, what makes
  an expression of others (`MAKES`), what tells something about one (`TELLS`), and what writes one in another way (`KEEPS`):
  such a result is compared with what it was made of. Who reads the parts of an expression may leave some out: that has a
  reason too. Nothing is remembered from the proof, and what sympy calls because a body passed it is looked at as well.
* Two names of which the sentence speaks stand for two symbols, and two sizes of a file have two names.
"""

import dis
import inspect
import re
import sys

import numpy as np
import sympy as sp

from proofs.kit import cases, claims, honest, numbers
from proofs.kit.cases import every_case
from proofs.kit.normal_form import is_zero
from proofs.kit.sized import SizedArray
from proofs.kit.symbols import Scalar, Size, SymbolArray, expression
from proofs.kit.verdicts import Undecided

SYMPY = sp.__path__[0]
DECORATORS = "core/cache.py", "core/decorators.py"  # files whose functions call others
OPERATORS = re.compile(
    r"\w+\.__([ri]?(add|sub|mul|truediv|pow|matmul|mod|floordiv)|eq|ne|[lg][te]|neg|pos|abs|floor|ceil|hash|bool|int|float"
    r"|len|[gs]etitem|str|repr|format)__"
)
MAKES = {f"{kind}.__new__" for kind in ("DefinedFunction", "Function", "AppliedUndef", "Symbol", "Integer", "Rational", "Pow")}
MAKES |= {
    "AssocOp.__new__",
    "_Inequality.__new__",
    "Equality.__new__",
    "Unequality.__new__",
    "Sum.__new__",
    "MutableRepMatrix.__new__",
    "MatrixBase.vstack",
    "eye",
    "zeros",
    "diag",
    "sqrt",
}
TELLS = {"Basic.free_symbols", "MatrixBase.free_symbols", "Basic.has", "Application.func", "Indexed.base", "Relational.negated"}
TELLS |= {"MatrixBase.T", "MatrixBase.tolist", "MatrixBase.det", "make_property.<locals>.getit"}
DERIVES = {"diff", "Expr.diff"}  # the derivatives of marks are seen: `proofs.kit.marks`
KEEPS = {"expand", "simplify", "Basic.simplify", "Basic.rewrite", "sympify"}
CALLS_BACK = {"Application.__new__", "sympify"}  # they call what a class, or an object, of a body names `eval` or `_sympy_`
READS = {"coefficients", "normal_form"}  # of the kit: parts of an expression, in which a body may leave some out
PARTS = "_args"  # an attribute of each expression: no function is called to read it


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
    watch.values |= {PARTS for code in every if _says(code, PARTS)}
    sp.core.cache.clear_cache()  # what the proof made is made again, where it is seen
    for value in t.body.__globals__.values():
        getattr(value, "cache_clear", bool)()
    while watch.runs() and not needed.keys() <= watch.ran:
        pass
    if left := [words for at, words in needed.items() if at not in watch.ran]:
        return "never runs {} in line {} of its file".format(*left[0])
    if watch.values and not t.values:
        return f"may put values in the place of symbols by {min(watch.values)}, and does not say why; pass values="
    return _one_for_two(t, watch.names)


class Watch:
    """A body that runs in one case after the other, without deciding its claims.

    Which instructions ran, as (identity of the code, offset); which functions of sympy were called; local names of the body.
    """

    def __init__(self, body, followed):
        self.body, self.followed, self.ran, self.values, self.names = body, {*followed, id(body.__code__)}, set(), set(), {}
        self.cases, self.read = every_case(body), {}

    def runs(self):
        """Run the body in the next case; False if there is none."""
        saved, follows = sys.gettrace(), self._follows()
        claims.deciding = False
        sys._getframe().f_trace_opcodes = True  # without it Python 3.12 follows no instructions of the first run
        sys.settrace(follows)
        try:
            return next(self.cases, None) is not None
        finally:
            self.values.update(["what nobody watches"] * (sys.gettrace() is not follows))  # an error in it ends the watching
            sys.settrace(saved)
            claims.deciding = True

    def _follows(self):
        """The function that sees every call."""
        followed, inside = self.followed, self._inside

        def called(frame, event, arg):
            code = frame.f_code
            if id(code) in followed:
                frame.f_trace_opcodes, frame.f_trace_lines = True, False
                return inside
            caller = frame.f_back.f_code
            if id(code) not in self.read and not code.co_filename.startswith((SYMPY, cases.KIT)):
                self.read[id(code)] = code  # kept, so that no other code gets its identity
                self.values.update([PARTS] * _says(code, PARTS))
            if code.co_name in READS and code.co_filename.startswith(cases.KIT) > caller.co_filename.startswith(cases.KIT):
                self.values.add(code.co_name)
            if not (code.co_filename.startswith(SYMPY) and hasattr(code, "co_qualname")):  # from Python 3.11 on
                return None
            own = caller.co_filename.startswith(SYMPY) and caller.co_qualname not in CALLS_BACK
            return None if own else self._of_sympy(frame)

        return called

    def _of_sympy(self, frame):
        """Notes a call of sympy that may put a value somewhere; follows one whose result has to be the same expression."""
        name, caller = _name(frame), frame.f_back.f_code
        own = caller.co_filename.startswith((SYMPY, cases.KIT)) and _calls(caller, name.rpartition(".")[2])
        if name in KEEPS and not own:
            given, frame.f_trace_lines = frame.f_locals[frame.f_code.co_varnames[0]], False
            return lambda _, event, result: self.values.update([name] * (event == "return" and not _kept(given, result)))
        known = own or name in MAKES | TELLS | DERIVES | KEEPS or OPERATORS.fullmatch(name)
        self.values.update([name] * (not known))
        return None

    def _inside(self, frame, event, arg):
        if event == "opcode":
            self.ran.add((id(frame.f_code), frame.f_lasti))
        elif event == "return" and frame.f_code is self.body.__code__:
            self.names.update(frame.f_locals)
        return self._inside


def _name(frame):
    """The name of a function of sympy, of a decorated one its own."""
    code, known = frame.f_code, frame.f_locals if frame.f_code.co_filename.endswith(DECORATORS) else {}
    inner = known.get("cfunc") or known.get("func")
    return inspect.unwrap(inner).__qualname__ if inner else code.co_qualname


def _kept(given, result):
    """Whether a result is the expression that it was made of; a text may be any."""
    if not (isinstance(given, sp.Expr) and isinstance(result, sp.Expr)):
        return given == result and not isinstance(given, str)
    gap = given - result
    return not numbers.differs_from_zero(gap) and (_vanishes(gap) or _vanishes(gap.rewrite(sp.exp)) or sp.simplify(gap) == 0)


def _vanishes(e):
    try:
        return is_zero(e)
    except Undecided:
        return False


def _calls(code, word):
    """Whether a code of the kit or of sympy calls a function of this name by itself; if not, a body has passed the function."""
    return word != "__call__" and (word in code.co_names or word.startswith(("__", "<", "sympify_")))


def _says(code, word):
    """Whether a code has a word as a name, as a text, or in a pattern."""
    return word in code.co_names or any(word == each or (type(each) is tuple and word in each) for each in code.co_consts)


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
