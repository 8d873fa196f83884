"""Marked results: whether what is claimed depends on what the functions of a theorem return.

Where mutants are run, a body is run once more, and a mark is added to each entry of a result: an unknown of its own for each
function, its arguments and the entry. A claim sees a function if the difference of both sides still has a mark of the function.
So a result that is multiplied by 0, or subtracted from itself, is not seen. A result that cannot have a mark (a mask, a text, a
large table) ends the run where it is returned, and so does an error that a mark causes: what was called until then counts as
seen.
"""

from contextlib import contextmanager

import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef

from proofs.kit import numbers, paths
from proofs.kit.dtypes import kind_of
from proofs.kit.mutants import Tripwire
from proofs.kit.normal_form import is_zero
from proofs.kit.record import RECORD
from proofs.kit.sized import SizedArray, generic
from proofs.kit.symbols import Scalar, array, expression
from proofs.kit.verdicts import Undecided, Unseen

CELLS = 16  # of numbers in a result; more have no marks, since what is made of them takes long


class Seen(Exception):
    """All that a run had to see was seen."""


class Marks:
    """The marks of one run: what was called, and which marks the claims saw."""

    def __init__(self, functions, of_control=False, stops=True, slopes=False):
        self.slopes = slopes  # whether results are differentiated: then marks have slopes, too, which costs time
        self.functions, self.of_control, self.stops = {*map(full_name, functions)}, of_control, stops
        self.names = {}  # (function, part of its result, arguments) -> the name of the mark
        self.inside = {}  # name of a mark -> functions whose marks are in the arguments
        self.called, self.seen, self.ran = set(), set(), set()  # functions; those that ran at all, by others too
        self.sized, self.generic = {}, {}  # (function, part) -> axes of symbolic size; those seen at a symbolic index

    def added(self, function, arguments, result):
        """A result with its marks."""
        name = full_name(function)
        self.called.add(name)
        parts = result if isinstance(result, tuple) else (result,)
        marked = [self._part(name, str(place), arguments, part) for place, part in enumerate(parts)]
        return marked[0] if parts is not result else type(result)(*marked) if hasattr(result, "_fields") else tuple(marked)

    def _part(self, function, place, arguments, result):
        kind = kind_of(result) if isinstance(result, (SizedArray, Scalar, np.ndarray, np.number, int, float, sp.Expr)) else "b"
        if kind not in "if" or (isinstance(result, np.ndarray) and result.size > CELLS):
            raise Tripwire(function)
        key = function, place, str([_key(value) for value in arguments.values()])
        name = self.names.setdefault(key, f"mark {function} {place} {len(self.names)}")
        self.inside[name] = {word for word in self.called if f"mark {word} " in key[2]}
        at = numbers.unknowns(name, kind)
        if isinstance(result, SizedArray):
            self.sized[function, place] = {axis for axis, n in enumerate(result.extents) if n.free_symbols}
            return SizedArray(result.extents, lambda *ix: self._marked(result.at(*ix), at(*ix)), kind=kind)
        if np.ndim(result) == 0:
            return Scalar(self._marked(expression(result), at(0)))
        cells = [Scalar(self._marked(expression(value), at(*ix))) for ix, value in np.ndenumerate(np.asarray(result))]
        return array(np.array([*cells, None], dtype=object)[:-1].reshape(np.shape(result)))

    def _marked(self, e, mark):
        return e + mark * (1 + e) if self.slopes else e + mark

    def look(self, left, right):
        """A claim of equality: which marks its differences have."""
        self.shown = False
        for a, b in zip(left.ravel(), right.ravel(), strict=True):
            marks = _marks_in(a - b)
            if self.of_control:
                if not is_zero((a - b).xreplace(marks)):
                    raise (
                        Seen
                        if marks or _marks_in(a) or _marks_in(b)
                        else Unseen(f"claims {a} = {b}, which no result is part of")
                    )
            elif self._new(marks) and not is_zero(a - b):
                self._note(marks)

    def _new(self, marks):
        """Whether marks show more than is seen, or that a path is not silent."""
        known = lambda function, place, axes: function in self.seen and axes <= self.generic.get((function, place), set())
        return bool(marks) and (not self.shown or not all(known(*_read(atom)) for atom in marks))

    def _note(self, marks):
        self.shown = True
        RECORD.facts.append("a mark")  # so that a path which has none is silent
        for function, place, axes in map(_read, marks):
            self.seen.add(function)
            self.generic.setdefault((function, place), set()).update(axes)
        self.seen.update(*(self.inside[_name(atom)] for atom in marks))
        if self.stops and self.functions <= self.ran and self.called <= self.seen and not self.single():
            raise Seen

    def single(self):
        """Functions of which claims see single cells along an axis of symbolic size."""
        return sorted({key[0] for key, axes in self.generic.items() if self.sized.get(key, set()) - axes})


def full_name(function):
    return f"{function.__module__}.{function.__name__}"


def _name(atom):
    return str(atom.base.label) if isinstance(atom, sp.Indexed) else atom.func.__name__


def _marks_in(e):
    return {atom: sp.Integer(0) for atom in e.atoms(sp.Indexed, AppliedUndef) if _name(atom).startswith("mark ")}


def _read(atom):
    """The function of a mark, the part of its result, and the axes along which it stands at a symbolic index."""
    _, function, place, _ = _name(atom).split()
    indices = atom.indices if isinstance(atom, sp.Indexed) else atom.args
    return function, place, {axis for axis, ix in enumerate(indices) if ix.free_symbols}


def _key(value):
    """An argument as text: the same for the same entries."""
    if not isinstance(value, SizedArray):
        return str(value.tolist() if isinstance(value, np.ndarray) else value)
    try:
        axes = generic(value.extents)
        with paths.answered_by(_no_answer):
            cell = value.at(*axes)
    except Undecided:
        return str(id(value))
    free = {
        i: sp.Symbol(f"axis {k}.{n}") for k, axis in enumerate(axes) for n, i in enumerate(sorted(axis.free_symbols, key=str))
    }
    return str((value.extents, cell.xreplace(free)))


def _no_answer(relation):
    raise Undecided(str(relation))


marks = None  # of the run, or None


@contextmanager
def marking(functions, **how):
    """Results of these functions, Python functions, have marks where a body calls them."""
    global marks
    saved, marks = marks, Marks(functions, **how)
    try:
        with numbers.noting({f: f for f in functions}, marks.added) as marks.ran:
            yield marks
    finally:
        marks = saved
