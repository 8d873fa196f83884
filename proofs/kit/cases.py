"""Sizes, indices, and the cases of a theorem.

A theorem says "for all n". Shipped code may still ask about a size, and the answer may differ. So an undecided question ends
the run, and the whole theorem is run again for each answer, with the answer substituted from the beginning: n = 512, n = m,
n = 3k - 1, n > c. In each case sizes that are known are numbers.

Only those may ask who must: contracts of functions (their code is called `<contract of ..>`), kernels, and the branches that
are listed here, each with a theorem for both answers. The body of any other function that asks is refused, because it is no
formula.
"""

import sys
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import sympy as sp
from sympy.core.function import AppliedUndef

from proofs.kit.record import RECORD
from proofs.kit.verdicts import Refuted, Undecided

KIT = str(Path(__file__).parent)
CONTRACT = "<contract of"
CHECKS = ("/posref/_require.py", "/posref/_contract/")
BRANCHES = {  # "module.function" of a body that branches on a size or a dtype -> the theorem that takes both branches
    "absolute.index.encode_normalized": "absolute.index.unique",
}

_bounds = {}  # index symbol -> length, 0 <= index < length
_sizes = set()  # symbols made by size()
_facts = []  # expressions known to be >= 0 in the case and on the path being run
_case = {}  # size -> expression, in the case that runs
_apart = []  # expressions that are not zero in the case that runs
_splitting = False  # a theorem runs, which can be run again for each case
_used = set()  # sizes that occur in the theorem that runs
_kernel = False  # a kernel runs, which may ask
_run_number = 0  # of the case that runs, so that nothing read in another one is taken for its own
_taken = {}  # expression -> its signs on the path whose result a theorem compares
_made = {}  # kind of a symbol -> the symbols that runs of a theorem have made, in their order
_places = {}  # kind of a symbol -> how many of these symbols this run has taken
_compared = set()  # indices in comparisons that a path of this run answered
_unsettled = []  # refusals and open paths of this run: code that catches exceptions does not get around them


class Question(BaseException):
    """A question about sizes that facts do not decide; no Exception, so that nothing between asker and driver catches it."""

    def __init__(self, relation):
        super().__init__(str(relation))
        self.relation = relation


class Empty(BaseException):
    """The hypotheses hold for nothing in the case that runs, so that it has nothing to show."""


class Remainder:
    """What is left of `n` divided by the number `d`?"""

    def __init__(self, n, d):
        self.n, self.d = n, d

    def __str__(self):
        return f"{self.n} mod {self.d}"


# who asks


def asker():
    """The frame of the shipped code, contract or theorem that asks: the first outside the kit and numpy."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(KIT) or "/numpy/" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame


def is_contract(frame):
    file = frame.f_code.co_filename
    return file.startswith(CONTRACT) or any(each in file for each in CHECKS)


def may_ask(frame):
    """Whether a question about a size or a dtype may be asked there."""
    name = f"{frame.f_globals.get('__name__', '')}.{frame.f_code.co_name}"
    return _kernel or is_contract(frame) or name.removeprefix("posref.") in BRANCHES


@contextmanager
def kernel():
    """A kernel runs: it must branch, so its questions make cases."""
    global _kernel
    saved, _kernel = _kernel, True
    try:
        yield
    finally:
        _kernel = saved


def ask(relation):
    """A question that facts do not decide; the theorem is run again for each answer."""
    if not _splitting:
        raise Undecided(f"a question about sizes outside a theorem: {relation}")
    frame = asker()
    if not may_ask(frame):
        raise refusal(
            f"{frame.f_code.co_name} asks whether {relation}: the body of a specification may not compare a size; move the "
            "check into the contract, write a formula that needs no case, or list the branch in proofs/kit/cases.py"
        )
    _unsettled.append(f"the question whether {relation}, which the theorem caught")
    raise Question(relation)


def refusal(words):
    """An exception that ends the run even if somebody catches it."""
    _unsettled.append(words)
    return Undecided(words)


def open_paths(words):
    """Note that paths are being run; returns a function to call when all have been."""
    _unsettled.append(words)
    return lambda: _unsettled.remove(words)


def taken():
    return _taken


def take(signs):
    """A theorem compares the result of a path on which these expressions have these signs."""
    global _taken
    _taken = signs


def spelled(e):
    """A size as text, for contracts, whose errors show it, and for the kit."""
    caller = sys._getframe(2).f_code.co_filename
    if _splitting and not caller.startswith(KIT) and not may_ask(asker()):
        raise refusal(f"the size {e} as text: the body of a specification may not ask about a size")
    return str(e)


# sizes and indices


def index(length, name="i"):
    """An index with 0 <= index < length that is new in this run."""
    length = at_case(sp.sympify(length))
    use(length)
    return again((name, length), lambda: _new_index(length, name))


def again(kind, make):
    """The symbol that an earlier run made at this place, else a new symbol; so normal forms of that run are found again."""
    if not _splitting:
        return make()
    made, place = _made.setdefault(kind, []), _places.get(kind, 0)
    _places[kind] = place + 1
    if place == len(made):
        made.append(make())
    return made[place]


def forget():
    """Later runs make new indices. Each proof begins with this call: no index of a proof is left from an earlier proof."""
    _made.clear()


def _begin():
    _places.clear()
    _compared.clear()


def _new_index(length, name):
    i = sp.Symbol(f"{name}#{len(_bounds)}", integer=True, nonnegative=True)  # no other symbol is called so
    _bounds[i] = length
    return i


def new_size(name, least=1):
    s = sp.Symbol(name, integer=True, **({"positive": True} if least else {"nonnegative": True}))
    _sizes.add(s)
    return s


def use(e):
    """Note the sizes of an expression: the theorem is run with them at their least, too."""
    _used.update(e.free_symbols & _sizes)


@lru_cache(2**14)
def free_symbols(e):
    """The free symbols of an expression; sympy looks for those of a sum each time."""
    return frozenset(e.free_symbols)


def at_case(e):
    """An expression in the case that runs."""
    return e.xreplace(_case) if _case else e


def has_size(e):
    """Whether a size occurs in an expression, or an index that is below a size."""
    free = free_symbols(e)
    return not _sizes.isdisjoint(free) or any(_bounds[i].free_symbols for i in free & _bounds.keys())


def settled(e):
    """An expression in the case that runs, with 0 for an index or a number that can only be 0."""
    if not _case:
        return e
    e = at_case(e)
    zero = {i: sp.Integer(0) for i in e.free_symbols & _bounds.keys() if at_case(_bounds[i]) == 1}
    if _facts:
        facts = {sp.expand(at_case(fact)) for fact in _facts}
        zero |= {s: sp.Integer(0) for s in e.free_symbols if s.is_nonnegative and -s in facts}
    return e.xreplace(zero) if zero else e


def special():
    """Whether some size is a number in the case that runs."""
    return any(e.is_Integer for e in _case.values())


# what is known


def nonnegative(e):
    """True only if e >= 0 for all admissible values: 0 <= i < c L is used as L = (i + 1 + slack) / c, and as a fact."""
    return _nonnegative(sp.sympify(e), tuple(_case.items()), tuple(_facts))


@lru_cache(100_000)
def _nonnegative(e, *_):
    """By the expression, the case and the facts, which are all that it depends on."""
    e = settled(sp.expand(e))
    if _clearly_nonnegative(e):
        return True
    own = (at_case(_bounds[i]) - 1 - i for i in e.free_symbols & _bounds.keys())
    return any(_exceeds(e, fact) for fact in (*map(settled, _facts), *own))


@lru_cache(100_000)
def _exceeds(e, fact):
    return _clearly_nonnegative(sp.expand(e - fact))


@lru_cache(100_000)
def _clearly_nonnegative(e):
    """By the length of an index, and by the form of the expression: nothing that a case or a path changes."""
    if _negative_somewhere(e):
        return False
    if _never_negative(e):
        return True
    for i in e.free_symbols & _bounds.keys():
        factor, length = _bounds[i].as_coeff_Mul()
        if length.is_Symbol and length in e.free_symbols and factor.is_positive:
            slack = sp.Dummy("slack", integer=True, nonnegative=True)
            if _never_negative(sp.expand(e.xreplace({length: (i + 1 + slack) / factor}))):
                return True
    sizes = [s for s in e.free_symbols if s.is_Symbol and s.is_integer and s.is_positive]
    return _never_negative(sp.expand(e.xreplace({s: 1 + sp.Dummy(integer=True, nonnegative=True) for s in sizes})))


def _multiples(e):
    """The constant of an expression and the multiples that it is the sum of, as (factor, rest)."""
    constant, terms = e.as_coeff_add()
    return constant, [term.as_coeff_Mul() for term in terms]


def _never_negative(e):
    """As sympy says; of a sum of multiples of symbols and entries their factors say it, much faster."""
    constant, multiples = _multiples(e)
    if all(s.is_Symbol or isinstance(s, AppliedUndef) for _, s in multiples):
        return bool(constant >= 0) and all(c > 0 and s.is_nonnegative is True for c, s in multiples)
    return bool(e.is_nonnegative)


def _negative_somewhere(e):
    """Whether e < 0 where all indices are 0 and all sizes are 1, or 5: then nothing has to be tried."""
    constant, multiples = _multiples(e)
    if all(s.is_Symbol for _, s in multiples):
        sizes = sum(c for c, s in multiples if s.is_positive)
        return any((constant + n * sizes).is_negative for n in (1, 5))
    return any(e.xreplace({s: sp.Integer(n if s.is_positive else 0) for s in e.free_symbols}).is_negative for n in (1, 5))


def equals_zero(e):
    """True, False or None: not known."""
    d = sp.expand(e)
    if d.is_zero is not None:
        return d.is_zero
    if any(sp.expand(d - a) == 0 or sp.expand(d + a) == 0 for a in map(at_case, _apart)):
        return False
    if d.is_integer and (nonnegative(d - 1) or nonnegative(-d - 1)):
        return False
    return True if nonnegative(d) and nonnegative(-d) else None


def consequences(relation):
    """Expressions that are >= 0 when the relation holds."""
    if isinstance(relation, sp.Eq):
        return [relation.lhs - relation.rhs, relation.rhs - relation.lhs]
    if not isinstance(relation, (sp.Lt, sp.Le, sp.Gt, sp.Ge)):
        return []
    more = relation.gts - relation.lts
    strict = isinstance(relation, (sp.Lt, sp.Gt)) and more.is_integer
    return [more - 1 if strict else more]


@contextmanager
def facts(known):
    """Run with these facts, and with those that are added meanwhile; then with the old ones."""
    global _facts
    saved, _facts = _facts, [*known]
    try:
        yield
    finally:
        _facts = saved


def known_facts():
    return _facts


def ground():
    """All that the value of a cell may depend on, apart from its indices and the answers of a path."""
    return _run_number, _splitting, tuple(_facts)


# cases


class Case:
    """Sizes substituted, facts (>= 0) and expressions that are not zero."""

    def __init__(self, sizes=(), facts=(), apart=(), words=()):
        self.sizes, self.facts, self.apart, self.words = dict(sizes), list(facts), list(apart), list(words)

    def __str__(self):
        return ", ".join(self.words) or "generic"

    def where(self, word, sizes=(), facts=(), apart=()):
        """This case with more known."""
        sizes = dict(sizes)
        swap = lambda es: [sp.expand(e.xreplace(sizes)) for e in es]
        old = dict(zip(self.sizes, swap(self.sizes.values()), strict=True))
        return Case(old | sizes, swap(self.facts) + list(facts), swap(self.apart) + list(apart), [*self.words, word])

    @contextmanager
    def running(self):
        global _case, _apart, _facts, _splitting, _run_number
        saved = _case, _apart, _facts, _splitting
        _case, _apart, _facts, _splitting = self.sizes, self.apart, [*_facts, *self.facts], True
        _run_number += 1
        try:
            yield
        finally:
            _case, _apart, _facts, _splitting = saved

    def split(self, question):
        """The cases that answer the question, together all."""
        if isinstance(question, Remainder):
            return self._remainders(question.n, question.d)
        if isinstance(question, (sp.Eq, sp.Ne)):
            return self._equal(sp.expand(question.lhs - question.rhs), sp.Eq(question.lhs, question.rhs))
        yes, no = consequences(question)[0], consequences(question.negated)[0]
        return self._at_least(yes, str(question)) + self._at_least(no, str(question.negated))

    def _remainders(self, n, d):
        if d > 16:
            raise Undecided(f"a remainder modulo {d}")
        s = next(s for s in sorted(n.free_symbols, key=str) if not sp.expand(n.coeff(s) / d).is_integer)
        k = _fresh(s)
        return [self.where(f"{s} = {d}k - {r}", {s: d * k - r}) for r in range(d)]

    def _equal(self, d, question):
        apart = [self.where(f"{question.lhs} != {question.rhs}", apart=[d])]
        if nonnegative(d):
            apart = self._at_least(d - 1, f"{question.lhs} != {question.rhs}")
        elif nonnegative(-d):
            apart = self._at_least(-d - 1, f"{question.lhs} != {question.rhs}")
        for s in sorted(d.free_symbols, key=str, reverse=True):
            c = d.coeff(s)
            if not (c.is_Integer and s not in sp.expand(d - c * s).free_symbols):
                continue
            value = sp.expand(-(d - c * s) / c)
            if value.is_Rational:
                possible = value.is_Integer and value >= (1 if s.is_positive else 0)
                return [*apart, self.where(f"{s} = {value}", {s: value})] if possible else apart
            if abs(c) == 1:
                least = value - (1 if s.is_positive else 0)
                return [*apart, self.where(f"{s} = {value}", {s: value}, facts=[] if nonnegative(least) else [least])]
        raise Undecided(f"a question about sizes that cannot be solved for one of them: {question}")

    def _at_least(self, e, word):
        """The cases of e >= 0."""
        e = sp.expand(e)
        if nonnegative(-1 - e):
            return []
        if nonnegative(e):
            return [self]
        for s in sorted(e.free_symbols, key=str, reverse=True):
            c, rest = e.coeff(s), sp.expand(e - e.coeff(s) * s)
            if c == 1 and s not in rest.free_symbols:
                low = -rest  # s >= low
                if low.is_Integer:
                    return [self.where(word, {s: _fresh(s) + low - 1})]
                return [self.where(f"{s} = {low}", {s: low}), self.where(f"{s} > {low}", {s: low + _fresh(s)})]
        for s in e.free_symbols:
            c, rest = e.coeff(s), sp.expand(e - e.coeff(s) * s)
            if c.is_Integer and c < 0 and rest.is_Integer and rest // -c <= 8:
                least = 1 if s.is_positive else 0
                return [self.where(f"{s} = {v}", {s: sp.Integer(v)}) for v in range(least, int(rest // -c) + 1)]
        return [self.where(word, facts=[e])]


def _fresh(s):
    return new_size(f"{s.name}'")


def every_case(body, start=None, limit=64):
    """Run `body` in every case that its questions about sizes make; yields the cases, the failures as (case, error)."""
    if start is None:
        _begin()
    todo, count = [start or Case()], 0
    while todo:
        case, error = todo.pop(0), None
        _unsettled.clear()
        take({})
        try:
            with case.running():
                body()
            if _unsettled:
                error = Undecided(_unsettled[0])
        except Question as question:
            with case.running():
                todo = case.split(question.relation) + todo
            continue
        except Empty:
            case = case.where("where the hypotheses hold for nothing")
        except Exception as failure:
            error = failure
        count += 1
        if count > limit:
            raise Undecided(f"more than {limit} cases of sizes")
        yield case, error


def run_cases(body):
    """Run `body` for all sizes: in every case that its questions make, and with all its sizes at their least.

    A refutation in one case refutes; another failure is raised only if no case refutes.
    """
    _used.clear()
    _begin()
    _run(body, Case())
    if _used:
        RECORD.sizes += sorted({s for s in _used if "'" not in s.name}, key=str)
        counted = len(RECORD.equalities), len(RECORD.facts)
        least = {s: sp.Integer(1 if s.is_positive else 0) for s in sorted(_used, key=str) if "'" not in s.name}
        _run(body, Case().where("every size at its least", least))
        del RECORD.equalities[counted[0] :], RECORD.facts[counted[1] :]  # what holds for all sizes is counted once


def first_failure(body):
    """The first failure in any case that the questions of `body` make, the generic case first; None if there is none."""
    return next((error for _, error in every_case(body) if error is not None), None)


def _run(body, start):
    failure = None
    for case, error in every_case(body, start):
        RECORD.cases.append(str(case))
        if error is not None and case.words:
            error.args = (f"[{case}] {error}", *error.args[1:])
        if isinstance(error, Refuted):
            raise error
        failure = failure or error
    if failure is not None:
        raise failure
