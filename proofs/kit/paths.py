"""Comparisons of symbols: answered by arithmetic, by facts, or both ways.

A comparison of values has no truth value of its own: inside `all_paths` it is answered both ways, elsewhere it raises. One of
sizes alone makes cases of the theorem instead (`proofs.kit.cases`).
"""

from contextlib import contextmanager

import sympy as sp
from sympy.logic.boolalg import BooleanAtom

from proofs.kit import cases
from proofs.kit.cases import consequences, equals_zero, nonnegative, settled
from proofs.kit.record import RECORD
from proofs.kit.verdicts import Undecided, Unseen

SIGNS = {sp.Lt: {-1}, sp.Le: {-1, 0}, sp.Gt: {1}, sp.Ge: {0, 1}, sp.Eq: {0}, sp.Ne: {-1, 1}}  # of left - right
ANSWERS = (bool, BooleanAtom)
_oracle, _at_once = None, False
_teller = None  # answers comparisons in numbers; then one path is run, and sizes are compared, too
told = []  # (relation, answer) of the path that runs in numbers
_assumed = []  # expressions that are >= 0 by the hypotheses that hold now


def all_paths(run, limit=10_000):
    """Run `run()` once for every way its undecided comparisons can be answered; yields (conditions, result).

    Conditions are the comparisons with their answers. Every sequence of answers is tried, except those that contradict
    earlier answers by linear arithmetic; so a claim proved on every path is proved. If something is claimed before
    the next path is run, then on every path.
    """
    if _teller is not None:
        yield in_numbers(run, _teller)
        return
    todo, count, silent, around = [()], 0, 0, cases.taken()
    done = cases.open_paths("paths that were not all run: a loop over all_paths has to finish")
    while todo:
        path = _Path(todo.pop(), todo)
        before = RECORD.obligations
        with cases.facts(cases.known_facts()), answered_by(path.answer):
            result = run()
        count += 1
        if count > limit:
            raise Undecided(f"more than {limit} paths")
        cases.take({**around, **path.signs})
        yield path.asked, result
        cases.take(around)
        silent += RECORD.obligations == before
    if silent == count > 1:
        RECORD.silent.append(count)
    if 0 < silent < count:
        raise Unseen(f"{silent} of {count} paths claim nothing; compare on every path, or assume what rules the others out")
    done()


def in_numbers(run, teller):
    """The path that the numbers take."""
    told.clear()

    def answer(relation):
        for known, before in told:
            if relation in (known, known.negated):
                return before == (relation == known)
        told.append((relation, teller(relation)))
        cases.known_facts().extend(consequences(relation if told[-1][1] else relation.negated))
        return told[-1][1]

    with cases.facts(cases.known_facts()), answered_by(answer, True):
        result = run()
    return [*told], result


@contextmanager
def told_by(teller):
    """Comparisons of values have the answer of numbers: `all_paths` runs the one path that they take."""
    global _teller
    saved, _teller = _teller, teller
    told.clear()
    try:
        yield
    finally:
        _teller = saved
        told.clear()


def in_numbers_now():
    """Whether comparisons have the answers of numbers."""
    return _teller is not None


@contextmanager
def answered_by(oracle, at_once=False):
    """Undecided comparisons of values go to `oracle(relation)`; `at_once` those that facts would decide, too, which is slow."""
    global _oracle, _at_once
    saved, _oracle, _at_once = (_oracle, _at_once), oracle, at_once
    try:
        yield
    finally:
        _oracle, _at_once = saved


def answering():
    """Whether comparisons of values are answered now: then what an array holds depends on the answers."""
    return _oracle is not None


class _Path:
    """One sequence of answers: the planned ones, then yes, or no where yes means a tie; the others are left to do."""

    def __init__(self, planned, todo):
        self.planned, self.todo, self.asked = planned, todo, []
        self.signs = {}  # expression -> the signs that the answers so far leave it

    def answer(self, relation):
        expression, signs = _signs(relation)
        left = self.signs.get(expression, {-1, 0, 1})
        if left <= signs or not left & signs:
            return left <= signs
        if len(self.asked) < len(self.planned):
            answer = self.planned[len(self.asked)]
        else:
            answer = left & signs != {0}  # ties come last
            self.todo.append((*(a for _, a in self.asked), not answer))
        self.asked.append((relation, answer))
        self.signs[expression] = left & signs if answer else left - signs
        cases.known_facts().extend(consequences(relation if answer else relation.negated))
        return answer


def _signs(relation):
    """A comparison as an expression and its signs: the same expression for a > b, 2b < 2a and not b >= a."""
    _, difference = sp.expand(relation.lhs - relation.rhs).primitive()
    turn = -1 if difference.could_extract_minus_sign() else 1
    return turn * difference, {turn * sign for sign in SIGNS[relation.func]}


@contextmanager
def assuming(*relations):
    """Hypotheses of a theorem, as relations that comparisons and index arithmetic may use; they are recorded with it."""
    for relation in relations:
        if relation not in (True, sp.true):
            RECORD.hypotheses[str(relation)] = relation
            facts = {sp.expand(cases.at_case(fact)) for fact in consequences(relation)}
            RECORD.in_cases.setdefault(str(relation), []).append(facts)
    known = [fact for relation in relations if relation not in (True, sp.true) for fact in consequences(relation)]
    if sp.false in relations or _contradict([*cases.known_facts(), *known]):
        if cases.special():
            raise cases.Empty
        raise Undecided(f"hypotheses that cannot all hold, from which everything follows: {', '.join(map(str, relations))}")
    _assumed.extend(known)
    if not cases._unsettled:  # inside of a loop over paths there are paths that nothing takes
        RECORD.together.append([*_assumed])
    try:
        with cases.facts([*cases.known_facts(), *known]):
            yield
    finally:
        del _assumed[len(_assumed) - len(known) :]


def _contradict(facts):
    """Whether two facts, or one, cannot hold together: f >= 0 and -f - c >= 0 with c > 0."""
    facts = [settled(sp.expand(fact)) for fact in facts]
    sums = [sp.expand(a + b) for n, a in enumerate(facts) for b in facts[n:]]
    return any(total.is_negative for total in sums)


def decide(relation):
    """The truth of a comparison: by arithmetic, by the facts of the path, by cases of sizes, or by `all_paths`."""
    if isinstance(relation, ANSWERS) or isinstance(relation := settled(relation), ANSWERS):
        return bool(relation)
    free = relation.free_symbols
    RECORD.asked.update(free)
    of_sizes = free <= cases._sizes
    known = None if _at_once and not of_sizes and not free & cases._bounds.keys() else _known(relation)
    if known is not None:
        return known
    if free and of_sizes:
        cases.ask(relation)
    if _oracle is None:
        raise Undecided(f"a comparison of symbols outside all_paths: {relation}")
    cases._compared.update(free & cases._bounds.keys())
    return _oracle(relation)


def _known(relation):
    """The truth of a comparison as far as arithmetic and facts decide it, or None."""
    if isinstance(relation, (sp.Eq, sp.Ne)):
        equal = equals_zero(relation.lhs - relation.rhs)
        return None if equal is None else equal == isinstance(relation, sp.Eq)
    if isinstance(relation, (sp.Lt, sp.Le, sp.Gt, sp.Ge)):
        if _follows(relation):
            return True
        if _follows(relation.negated):
            return False
    return None


def _follows(relation):
    strict = isinstance(relation, (sp.Lt, sp.Gt))
    return all(map(nonnegative, consequences(relation))) and (not strict or bool((relation.gts - relation.lts).is_integer))


def compared(e):
    """Indices that a sum in `e` runs over although a path answered a comparison of them, once for all summands."""
    return {limit[0] for s in e.atoms(sp.Sum) for limit in s.limits} & cases._compared
