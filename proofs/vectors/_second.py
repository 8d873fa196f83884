"""Second generation: every value once more by other code, `python -m proofs.vectors --second`.

The generators state the papers' formulas one scalar at a time; here the vectorized specification of `posref` runs on the same
inputs, held with 260 bits, and each result is rounded once. An error of ours would have to be made twice, in two forms. Equal
means the same float64 in every entry. A specification that makes a float of its own on the way (the square root of a width, a
share of two sizes) is held to the tolerance of f64; `FLOATS` names these ops.
"""

import warnings
from contextlib import contextmanager

import mpmath
import numpy as np

from posref import ops, vectors

BITS = 260
# their specifications make a float64 on the way, complex numbers or whole quotients
FLOATS = (
    "attention.chunk_mask complex_order.encode complex_order.scores deberta.log_scores deberta.scores deberta.scores_gradient "
    "index.steps indexer.unfinished_mask nezha.attend pope.encode pope.scores position_ids.temperature resizing.resize "
    "resizing.weights scaling.dynamic_ntk scaling.llama3 scaling.ntk scaling.yarn scaling.yarn_tables sinusoidal_2d.normalized "
    "swin.continuous_bias swin.logarithmic_bias"
)
METHODS = ("cos", "exp", "expm1", "log", "log1p", "sin", "sqrt", "tanh")  # numpy asks its objects for them by name


class Width(int):
    """A width whose quotients are exact numbers: a frequency has 2t / dim in its exponent."""

    __array_ufunc__ = None

    def __truediv__(self, other):
        return _lifted(int(self)) / _lifted(other)

    def __rtruediv__(self, other):
        return _lifted(other) / _lifted(int(self))

    def __sub__(self, other):
        return Width(int(self) - other) if isinstance(other, int) else int(self) - other

    def __mul__(self, other):
        return other * int(self)

    __rmul__ = __mul__


def _lifted(x):
    """The same numbers with all bits: arrays, floats and integers."""
    if isinstance(x, np.ndarray):
        return np.frompyfunc(_lifted, 1, 1)(x)
    if isinstance(x, (int, np.integer)):
        return mpmath.mpf(int(x))
    return mpmath.mpf(x) if isinstance(x, float) else x


def _argument(name, x):
    if name == "dim":
        return Width(x)
    return _lifted(x) if isinstance(x, float) or (isinstance(x, np.ndarray) and x.dtype.kind == "f") else x


@contextmanager
def _asked_by_name():
    """Numbers of mpmath answer numpy's functions; what they had under these names comes back."""
    kinds = mpmath.mpf, mpmath.mpc
    before = [(kind, name, vars(kind).get(name)) for kind in kinds for name in METHODS]
    for kind in kinds:
        for name in METHODS:
            setattr(kind, name, _method(name))
    try:
        yield
    finally:
        for kind, name, old in before:
            delattr(kind, name) if old is None else setattr(kind, name, old)


def _method(name):
    return lambda self: getattr(mpmath, name)(self)


def again(case):
    """The values of a case by the specification with 260 bits, rounded once; None where it does not run on such numbers."""
    op, arguments = ops.of_case(case)
    try:
        with mpmath.workprec(BITS), _asked_by_name(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = op.spec(**{name: _argument(name, x) for name, x in arguments.items()})
            return np.vectorize(float, otypes=[float])(np.asarray(found, dtype=object))
    except (AttributeError, TypeError, ValueError):
        return None


def compared(case):
    """ "equal", "near" for an op of `FLOATS`, or a sentence that says how far the two generations are apart."""
    found = again(case)
    if found is not None and vectors.error(case, found, "f64") == 0:
        return "equal"
    op, arguments = ops.of_case(case)
    distance = vectors.error(case, np.asarray(op.spec(**arguments)).astype(float), "f64")
    if distance <= 1 and op.name in FLOATS.split():
        return "near"
    return f"{case.id}: the second generation is another float64, and float64 alone is {distance:.3g} of its tolerances away"


def report():
    """What the second generation says, as a line, and what it finds wrong, as sentences."""
    found = [compared(case) for case in vectors.cases()]
    line = f"{found.count('equal')} cases are equal in every entry, {found.count('near')} as near as float64 computes: {FLOATS}"
    return line, [said for said in found if said not in ("equal", "near")]
