"""Scalars that numpy can compute with: symbols for concrete sizes, and every path through a comparison.

numpy's object loops call `element.cos()`, `element + other`, `element > other`. `Scalar` answers them with sympy
expressions, so shipped functions run on symbols unchanged. A comparison of symbols has no truth value of its own: inside
`all_paths` it is answered both ways, elsewhere it raises.
"""

import operator
from contextlib import contextmanager

import numpy as np
import sympy as sp

from proofs.kit.normal_form import Undecided


class Scalar:
    """A sympy expression as an element of a numpy array."""

    __slots__ = ("e",)
    is_positive = None  # read by checks of arguments; a comparison decides

    def __init__(self, value):
        self.e = expression(value)

    def __repr__(self):
        return repr(self.e)

    def __hash__(self):
        return hash(self.e)

    def __bool__(self):
        raise TypeError("a symbol has no truth value")

    def __float__(self):
        raise TypeError("a symbol has no float value")

    def __neg__(self):
        return Scalar(-self.e)

    def __pos__(self):
        return self

    def __abs__(self):
        return self if self >= 0 else -self

    def conjugate(self):
        return Scalar(sp.conjugate(self.e))


def expression(value):
    """The sympy expression behind a Scalar, a number, a boolean or an expression; a float is the dyadic number it is."""
    if isinstance(value, Scalar):
        return value.e
    if isinstance(value, (bool, np.bool_)):
        return sp.Integer(int(value))
    if isinstance(value, (float, np.floating)) and np.isfinite(value):
        return sp.Rational(*value.as_integer_ratio())
    if isinstance(value, (complex, np.complexfloating)):
        return expression(value.real) + sp.I * expression(value.imag)
    return sp.sympify(value)


def _is_array(value):
    return hasattr(value, "__array_ufunc__") and not np.isscalar(value)


def _arithmetic(op):
    def forward(self, other):
        return NotImplemented if _is_array(other) else Scalar(op(self.e, expression(other)))

    def backward(self, other):
        return Scalar(op(expression(other), self.e))

    return forward, backward


def _comparison(op):
    def compare(self, other):
        return NotImplemented if _is_array(other) else decide(op(self.e, expression(other)))

    return compare


def _function(f):
    return lambda self: Scalar(f(self.e))


for _name in ("add", "sub", "mul", "truediv", "pow", "floordiv", "mod"):
    _forward, _backward = _arithmetic(getattr(operator, _name))
    setattr(Scalar, f"__{_name}__", _forward)
    setattr(Scalar, f"__r{_name}__", _backward)
for _name, _op in {"lt": sp.Lt, "le": sp.Le, "gt": sp.Gt, "ge": sp.Ge, "eq": sp.Eq, "ne": sp.Ne}.items():
    setattr(Scalar, f"__{_name}__", _comparison(_op))
for _name in ("cos", "sin", "exp", "sqrt", "log", "cosh", "sinh", "tanh"):
    setattr(Scalar, _name, _function(getattr(sp, _name)))


def symbol(name, **assumptions):
    """One real symbol; assumptions as in sympy (integer=True, positive=True)."""
    if name.startswith(("log_", "_")):
        raise ValueError(f"symbol: {name!r} is a name of the kit's own; take another")
    return Scalar(sp.Symbol(name, **({"real": True} | assumptions)))


def symbols(name, *shape, **assumptions):
    """An object array of real symbols name_0_0, name_0_1, ..: what a float array is to numbers."""
    out = np.empty(shape, dtype=object)
    for ix in np.ndindex(*shape):
        out[ix] = symbol("_".join([name, *map(str, ix)]), **assumptions)
    return out


def array(entries):
    """An object array of Scalars from nested lists of Scalars, expressions and numbers."""
    out = np.array(entries, dtype=object)
    for ix in np.ndindex(*out.shape):
        out[ix] = Scalar(out[ix])
    return out


# branches

_oracle = None
_facts = []  # expressions known to be >= 0 on the path being run


def all_paths(run, limit=10_000):
    """Run `run()` once for every way its undecided comparisons can be answered; yields (conditions, result).

    Conditions are the comparisons with their answers. Every sequence of answers is tried, except those that contradict
    earlier answers by linear arithmetic; so a claim proved on every path is proved.
    """
    global _oracle, _facts
    todo, count = [()], 0
    while todo:
        path = _Path(todo.pop(), todo)
        saved = _oracle, _facts
        _oracle, _facts = path.answer, [*_facts]
        try:
            result = run()
        finally:
            _oracle, _facts = saved
        count += 1
        if count > limit:
            raise Undecided(f"more than {limit} paths")
        yield path.asked, result


class _Path:
    """One sequence of answers: the planned ones, then yes; for every yes of its own the no is left to do."""

    def __init__(self, planned, todo):
        self.planned, self.todo, self.asked = planned, todo, []

    def answer(self, relation):
        for known, answer in self.asked:
            if relation in (known, known.negated):
                return answer == (relation == known)
        if len(self.asked) < len(self.planned):
            answer = self.planned[len(self.asked)]
        else:
            answer = True
            self.todo.append((*(a for _, a in self.asked), False))
        self.asked.append((relation, answer))
        _facts.extend(_known(relation if answer else relation.negated))
        return answer


@contextmanager
def assuming(*relations):
    """Hypotheses of a theorem, as relations that comparisons and index arithmetic may use."""
    global _facts
    saved = _facts
    _facts = [*saved, *(fact for relation in relations for fact in _known(relation))]
    try:
        yield
    finally:
        _facts = saved


def _known(relation):
    """Expressions that are >= 0 when the relation holds."""
    if isinstance(relation, sp.Eq):
        return [relation.lhs - relation.rhs, relation.rhs - relation.lhs]
    if not isinstance(relation, (sp.Lt, sp.Le, sp.Gt, sp.Ge)):
        return []
    more = relation.gts - relation.lts
    strict = isinstance(relation, (sp.Lt, sp.Gt)) and more.is_integer
    return [more - 1 if strict else more]


def decide(relation):
    """The truth of a comparison: by arithmetic, by the facts of the path, or by the oracle of `all_paths`."""
    if relation in (sp.true, sp.false):
        return bool(relation)
    if isinstance(relation, (sp.Lt, sp.Le, sp.Gt, sp.Ge)):
        if all(nonnegative(fact) for fact in _known(relation)) and (
            not isinstance(relation, (sp.Lt, sp.Gt)) or (relation.gts - relation.lts).is_integer
        ):
            return True
        opposite = relation.negated
        if all(nonnegative(fact) for fact in _known(opposite)) and (
            not isinstance(opposite, (sp.Lt, sp.Gt)) or (opposite.gts - opposite.lts).is_integer
        ):
            return False
    if _oracle is None:
        raise Undecided(f"a comparison of symbols outside all_paths: {relation}")
    _compared.update(relation.free_symbols & _bounds.keys())
    return _oracle(relation)


def compared(e):
    """Indices that a sum in `e` runs over although a path answered a comparison of them, once for all summands."""
    return {limit[0] for s in e.atoms(sp.Sum) for limit in s.limits} & _compared


# sizes and indices

_bounds = {}  # index symbol -> length, 0 <= index < length
_compared = set()  # index symbols in comparisons that a path answered


def size(name):
    """A symbolic size: a positive integer."""
    return sp.Symbol(name, integer=True, positive=True)


def index(length, name="i"):
    """A fresh index with 0 <= index < length."""
    i = sp.Symbol(f"{name}#{len(_bounds)}", integer=True, nonnegative=True)  # no other symbol is called so
    _bounds[i] = sp.sympify(length)
    return i


def nonnegative(e):
    """True only if e >= 0 for all admissible values: 0 <= i < c L is used as L = (i + 1 + slack) / c, and as a fact."""
    e = sp.expand(e)
    own = (_bounds[i] - 1 - i for i in e.free_symbols & _bounds.keys())
    return _clearly_nonnegative(e) or any(_clearly_nonnegative(sp.expand(e - fact)) for fact in (*_facts, *own))


def _clearly_nonnegative(e):
    if e.is_nonnegative:
        return True
    for i in e.free_symbols & _bounds.keys():
        factor, length = _bounds[i].as_coeff_Mul()
        if length.is_Symbol and length in e.free_symbols and factor.is_positive:
            slack = sp.Dummy("slack", integer=True, nonnegative=True)
            if sp.expand(e.subs(length, (i + 1 + slack) / factor)).is_nonnegative:
                return True
    sizes = [s for s in e.free_symbols if s.is_Symbol and s.is_integer and s.is_positive]
    return bool(sp.expand(e.xreplace({s: 1 + sp.Dummy(integer=True, nonnegative=True) for s in sizes})).is_nonnegative)
