"""Marked results: whether what is claimed depends on what the functions of a theorem return.

Where mutants are run, a body is run once more, and a mark is added to each entry of a result: an unknown of its own for each
function, its arguments and the entry. A claim sees a function if the difference of both sides still has a mark of the function.
So a result that is multiplied by 0, or subtracted from itself, is not seen; and a mark in the right side of a claim says that a
function computes what is expected of it. A claim whose side has more than one mark, or one not to the first power, compares
sums, products or functions of results, which wrong ones may share; then the subject of the sentence has to say so (`SAID`).
A mask, a text and a large table have no marks: see `proofs.kit.changes`.
"""

import itertools
import re
from contextlib import contextmanager

import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef

from proofs.kit import cases, numbers, paths
from proofs.kit.dtypes import kind_of
from proofs.kit.indices import runs_of
from proofs.kit.normal_form import is_zero
from proofs.kit.record import RECORD
from proofs.kit.sized import SizedArray, generic
from proofs.kit.symbols import Scalar, array, expression
from proofs.kit.verdicts import Undecided

CELLS = 16  # of numbers in a result; more have no marks, since what is made of them takes long
SAID = {  # what a claim makes of results, of which others have the same -> how the subject of a sentence says it
    "sums": r"\b(sum|score|add|minus|less|difference|linear|affine|product|mean|softmax|distance)"
    r"|<.*,.*>| \. |\b[A-Z]\([^()]*\) \w|(\b\w+?)(_\w+|_\{[^}]*\}|\([^()]*\)) [+-] \2[_({]",
    "products": r"\b(product|times|score|length|modulus|distance|square|determinant|variance|linear|matrix|softmax)"
    r"|\^2|\^T|<.*,.*>| \. |\b[A-Z]\([^()]*\) \w",
    "functions": r"\b(softmax|exp|log|logarithm|ratio|weights)\b|\be\^",
    "signs": r"\b(sign|positive|negative|larger?|smaller?|largest|order|absolute)\b|\|.+\|",
}
EXPECTED = r" = -?\d+\b| (=|is|are) .*?(?=[;:] |\. |, (and|so)\b|$)"  # what a subject is
KNOWN = (SizedArray, Scalar, np.ndarray, np.generic, bool, int, float, sp.Expr)  # that has entries


class Results:
    """Marked results. With `slopes`, which cost time, marks have derivatives too."""

    def __init__(self, slopes):
        self.slopes = slopes
        self.names = {}  # (function, part of its result, arguments) -> the name of the mark
        self.run, self.ended = set(), set()  # names of marks of this run, and of those that came to their end
        self.inside = {}  # name of a mark -> functions whose marks are in the arguments
        self.below = {}  # name of a mark -> names of marks in its result
        self.called = set()  # functions that returned marks
        self.sized = {}  # (function, part, axis) -> its symbolic sizes, in all cases
        self.cells = {}  # name of a mark of an array of numbers -> its cells

    def followed(self, body):
        """A body; the marks of a run that ends with a question about sizes, and begins again, are not kept."""

        def run():
            self.run.clear()
            body()
            self.ended |= self.run

        return run

    def marked(self, function, arguments, result):
        parts = result if isinstance(result, (tuple, list)) else (result,)
        if not all(map(_takes_marks, parts)):
            return result
        name = full_name(function)
        self.called.add(name)
        made = [self._part(name, str(place), arguments, part) for place, part in enumerate(parts)]
        return made[0] if parts is not result else type(result)(*made) if hasattr(result, "_fields") else type(result)(made)

    def _part(self, function, place, arguments, result):
        key = function, place, str([as_text(value) for value in arguments.values()])
        name = self.names.setdefault(key, f"mark {function} {place} {len(self.names)}")
        self.run.add(name)
        self.inside[name] = {word for word in self.called if f"mark {word} " in key[2]}
        at = numbers.unknowns(name, kind_of(result))
        if isinstance(result, SizedArray):
            for axis, n in enumerate(result.extents):
                if n.free_symbols:
                    self.sized.setdefault((function, place, axis), set()).add(n)
            return SizedArray(result.extents, lambda *ix: self._marked(name, result.at(*ix), at(*ix)), kind=kind_of(result))
        if np.ndim(result) == 0:
            return Scalar(self._marked(name, expression(result), at(0)))
        self.cells[name] = {*np.ndindex(np.shape(result))}
        cells = [Scalar(self._marked(name, expression(value), at(*ix))) for ix, value in np.ndenumerate(np.asarray(result))]
        return array(np.array([*cells, None], dtype=object)[:-1].reshape(np.shape(result)))

    def _marked(self, name, e, mark):
        self.below.setdefault(name, set()).update(map(_name, _marks_in(e)))
        return e + mark * (1 + e) if self.slopes else e + mark


class Claims:
    """What the claims of a theorem have of the marks: functions that they see, and those that compute right sides."""

    def __init__(self, results, said, pinned, ends):
        self.results, self.ends = results, ends  # ends: whether a first or last cell may stand for itself
        self.pinned = pinned  # functions that claims have to see in all cells
        self.seen, self.expected = set(), set()
        self.names = set()  # of marks that claims see
        self.read = {}  # (function, part, axis) -> indices at which claims see it
        self.met = {}  # name of a mark -> cells that claims see
        self.apart = set()  # functions of which a claim compares results with something else than their results
        self.plain = set()  # functions of which a claim compares an entry itself, no square or sum of entries
        self.outer = set()  # functions whose results a claim compares as they are or in a sum, not by another function
        self.subjects = re.sub(EXPECTED, " ", said)
        self.failed = False  # whether a fact is false of marked results
        self.partial = {}  # function -> what claims make of its results and the sentence does not say

    def look(self, left, right):
        """A claim of equality: which marks its differences have."""
        shown = False
        for a, b in zip(left.ravel(), right.ravel(), strict=True):
            self.expected |= self._functions(_marks_in(b))
            self._note_apart(a, b)
            self._note_apart(b, a)
            marks = _marks_in(a - b)
            if marks and not (shown and all(map(self._known, marks))) and self._differ(a, b):
                shown, said = self._is_said(a, b)
                if shown:
                    self._note(marks, not (said and self.pinned & {_read(mark)[0] for mark in marks}))

    def _note_apart(self, side, other):
        """Functions of which results are on one side alone; two results and 0 are two sides of a claim about both."""
        marks = _marks_in(side)
        if other != 0 or len(set(map(_name, marks))) == 1:
            self.apart |= self._functions(marks) - self._functions(_marks_in(other))

    def _differ(self, a, b):
        try:
            return not is_zero(a - b)
        except Undecided:
            self._is_said(a, b)
            raise

    def _is_said(self, a, b):
        """Whether a claim compares results, or what the sentence says is made of results; and its kind, such as "sums"."""
        outer = [self._outer(_marks_in(side)) for side in (a, b)]
        left, right = ({_read(mark)[0] for mark in marks} for marks in outer)
        made, also = map(_made, (a, b), outer)
        expected = not left & right and ((left and not made) or (right and not also))  # one side is what the other has to be
        self.outer |= left | right
        self.plain |= left | right if expected else set()
        word = "" if expected else made or also
        if not word or re.search(SAID[word], self.subjects, re.I):
            return True, word
        RECORD.facts.append("a mark")
        self.partial |= dict.fromkeys(left | right, word)
        return False, word

    def _outer(self, marks):
        """The marks of results as a claim has them, not of those from which another function has made them."""
        below = set().union(*(self.results.below[_name(mark)] for mark in marks))
        return {mark for mark in marks if _name(mark) not in below}

    def _known(self, mark):
        function, place, indices = _read(mark)
        known = lambda axis, ix: ix in self.read.get((function, place, axis), ())
        met = function not in self.pinned or _cell(mark) in self.met.get(_name(mark), ())
        return _name(mark) in self.names and met and all(itertools.starmap(known, indices.items()))

    def _note(self, marks, whole):
        """Notes the marks that a claim sees; with `whole` also their cells."""
        RECORD.facts.append("a mark")  # so that a path which has none is silent
        for mark in marks:
            function, place, indices = _read(mark)
            self.names.add(_name(mark))
            if not whole:
                continue
            self.met.setdefault(_name(mark), set()).add(_cell(mark))
            for axis, ix in indices.items():
                self.read.setdefault((function, place, axis), set()).add(ix)
        self.seen |= self._functions(marks)

    def _functions(self, marks):
        return {_read(mark)[0] for mark in marks}.union(*(self.results.inside[_name(mark)] for mark in marks))

    def single(self):
        """Functions of which claims see single cells along an axis of symbolic size, or of a pinned one not all of any call."""
        free = lambda ix: ix.free_symbols if self.ends else ix.free_symbols - cases._sizes
        whole = lambda f, read, extents: _covered(read, extents) if f in self.pinned else any(map(free, read))
        seen = [key for key in self.results.sized if key[0] in self.seen]
        left = {key[0] for key in seen if not whole(key[0], self.read.get(key, set()), self.results.sized[key])}
        return sorted(left | self._partly() & self.pinned)

    def left_lying(self):
        """Functions of which a call returned cells that no claim sees, and that are in no argument of another call."""
        calls, given = {}, " ".join(arguments for _, _, arguments in self.results.names)
        for (function, _, arguments), name in self.results.names.items():
            if name not in self.results.ended:
                continue
            seen = name in self.names or f"{name}(" in given or f"{name}[" in given or self.results.cells.get(name) == set()
            calls.setdefault((function, arguments), []).append(seen)
        return sorted({function for (function, _), seen in calls.items() if not any(seen)})

    def _partly(self):
        """Functions of which claims see some result, and of no call all cells."""
        parts = {}
        for name, cells in self.results.cells.items():
            _, function, place, _ = name.split()
            parts.setdefault((function, place), []).append(cells <= self.met.get(name, set()))
        return {function for (function, _), whole in parts.items() if function in self.seen and not any(whole)}


def full_name(function):
    return f"{function.__module__}.{function.__name__}"


def as_text(value):
    """An argument as text: the same for the same entries."""
    if isinstance(value, tuple):
        return str([*map(as_text, value)])
    if not isinstance(value, SizedArray):
        return str(value.tolist() if isinstance(value, np.ndarray) else value)
    try:
        axes = generic(value.extents)
        with paths.answered_by(None):
            cell = value.at(*axes)
    except Undecided:
        return str(id(value))
    free = {
        i: sp.Symbol(f"axis {k}.{n}") for k, axis in enumerate(axes) for n, i in enumerate(sorted(axis.free_symbols, key=str))
    }
    return str((value.extents, cell.xreplace(free)))


def _takes_marks(result):
    if not isinstance(result, KNOWN) or (isinstance(result, np.ndarray) and result.size > CELLS):
        return False
    return kind_of(result) in ("i", "f")


def _name(atom):
    return str(atom.base.label) if isinstance(atom, sp.Indexed) else atom.func.__name__


def _marks_in(e):
    return {atom for atom in e.atoms(sp.Indexed, AppliedUndef) if _name(atom).startswith("mark ")}


def _made(e, marks):
    """What an expression makes of results, in a word; "" if it has one entry, at most times what it is not made of."""
    if {*map(_name, marks)} & {_name(mark) for asked in cases.taken() for mark in _marks_in(asked)}:
        return "signs"
    degree = _degree(e, marks)
    if len(marks) == 1 and degree == sp.oo and e.diff(*marks).is_nonzero:  # as e^y, which tells y
        return ""
    return "functions" if degree == sp.oo else "products" if degree > 1 else "sums" if len(marks) > 1 else ""


def _degree(e, marks):
    """The degree of an expression in marks: infinite of what is no polynomial; a sum over an index has twice that of a term."""
    if not _marks_in(e) & marks:
        return 0
    if e.is_Add:
        return max(_degree(part, marks) for part in e.args)
    if e.is_Mul:
        return sum(_degree(part, marks) for part in e.args)
    if isinstance(e, sp.Sum):
        return 2 * _degree(e.function, marks)
    power = e.is_Pow and e.exp.is_Integer and e.exp > 0
    return 1 if e in marks else e.exp * _degree(e.base, marks) if power else sp.oo


def _cell(mark):
    return tuple(mark.indices if isinstance(mark, sp.Indexed) else mark.args)


def _read(atom):
    """The function of a mark, the part of its result, and its index along each axis, but for a diagonal."""
    _, function, place, _ = _name(atom).split()
    indices = _cell(atom)
    free = [ix.free_symbols - cases._sizes for ix in indices]
    diagonal = len(set().union(*free)) < sum(map(bool, free))
    shared = lambda axis: diagonal and free[axis] & set().union(*free[:axis], *free[axis + 1 :])
    return function, place, {axis: ix for axis, ix in enumerate(indices) if not shared(axis)}


def _covered(indices, extents):
    """Whether indices stand for a whole axis, in runs of {i}, {2i, 2i + 1} or {i, i + length}, or one is an expression."""
    lengths = {i: cases.at_case(cases._bounds[i]) for ix in indices for i in ix.free_symbols & cases._bounds.keys()}
    if len(extents) > 1 or not all(_is_plain(ix, ix.free_symbols & lengths.keys()) for ix in indices):
        return any(ix.free_symbols for ix in indices)
    start, (extent,) = sp.Integer(0), extents
    while sp.expand(extent - start) != 0:
        runs = [(cells, count) for i, length in lengths.items() for _, cells, count in runs_of(i, length, start)]
        count = next((count for cells, count in [*runs, ({start}, 1)] if cells <= indices), None)
        if count is None:
            return False
        start = sp.expand(start + count)
    return True


def _is_plain(ix, own):
    """Whether an index is a number, a size, or an index of its own, doubled or not, and one of them."""
    return len(own) <= 1 and ix.free_symbols - own <= cases._sizes and all(ix.coeff(i) in (1, 2) for i in own)


claims = None  # of the run on marked results, or None


@contextmanager
def marking(functions, said, pinned, ends, slopes):
    """Results of these functions, Python functions, have marks where a body calls them."""
    global claims
    saved, results = claims, Results(slopes)
    try:
        with numbers.noting({f: f for f in functions}, results.marked):
            claims = Claims(results, said, pinned, ends)
            yield claims
    finally:
        claims = saved
