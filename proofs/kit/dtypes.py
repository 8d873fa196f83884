"""dtypes of symbolic arrays: booleans < integers < floats, of no fixed width.

Kinds are the contract's business: it sees `kind` "O", which is accepted everywhere, and what it demands of values is a
hypothesis of the theorem. The body of a specification may hand a dtype on; it may not ask about it. A cast or a store that
would truncate, round or wrap is refused.
"""

import sys

import numpy as np
import sympy as sp

from proofs.kit import cases
from proofs.kit.verdicts import Undecided

ORDER = "bif"
ALLOWED = {"copy": (True, False), "order": ("K",), "subok": (True,), "device": (None,)}  # nothing changes


class Dtype:
    """A kind without a width."""

    __slots__ = ("_kind",)
    dtype = np.dtype(object)  # what numpy makes of it: room for symbols
    __hash__ = None

    def __init__(self, kind):
        """`kind` is a letter, or an array whose entries say it, which takes time."""
        self._kind = kind

    @property
    def true_kind(self):
        return self._kind if isinstance(self._kind, str) else kind_of_entries(self._kind)

    def __repr__(self):
        return _refuse("the dtype as text")

    @property
    def kind(self):
        by_numpy = "/numpy/" in sys._getframe(1).f_code.co_filename  # which computes with objects
        return "O" if by_numpy or cases.may_ask(cases.asker()) else _refuse("dtype.kind")

    def __eq__(self, other):
        return _refuse(f"dtype == {other!r}")

    def __getattr__(self, name):
        return _refuse(f"dtype.{name}") if not name.startswith("__") else super().__getattribute__(name)


def _refuse(what):
    raise cases.refusal(f"{what}: the body of a specification may not ask about a dtype; widths are fixed in no theorem")


def kind_of(value):
    """The kind of an array or a number."""
    if isinstance(kind := getattr(value, "kind", None), str):
        return kind
    if isinstance(value, np.ndarray):
        kind = np.ndarray.dtype.__get__(value).kind
        return kind if kind in ORDER else kind_of_entries(value)
    return _kind_of_number(value)


def kind_of_entries(array):
    """The smallest kind that holds all entries."""
    entries = np.ndarray.ravel(array.view(np.ndarray))
    kinds = set()
    for entry in entries:
        kinds.add(_kind_of_number(entry))
        if "f" in kinds:  # it holds all others
            break
    return max(kinds, key=ORDER.index, default="f")


def _kind_of_number(value):
    value = getattr(value, "e", value)
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, sp.Basic) and value.is_Boolean):
        return "b"
    if isinstance(value, (int, np.integer)):
        return "i"
    return "i" if isinstance(value, sp.Basic) and value.is_integer else "f"


def cast(kind, dtype, keywords=(), widen=False):
    """The kind of the result of a cast; what could change a value is refused, and so is every other keyword."""
    rest = {name: value for name, value in dict(keywords).items() if name != "shape" and value not in ALLOWED.get(name, ())}
    if rest:
        raise Undecided(f"keywords {rest}")
    if dtype is None:
        return kind
    if isinstance(dtype, Dtype):
        target = dtype.true_kind
    else:
        target, width = np.dtype(dtype).kind, np.dtype(dtype).itemsize
        if target == "O":
            return kind
        if target not in ORDER or (target in "if" and width < 8):
            raise Undecided(f"a cast to {np.dtype(dtype)}, which rounds or wraps")
    if not widen:
        store(target, kind)
    return target


def store(kind, other):
    """Refuse values of kind `other` where `kind` is; numpy would truncate them silently."""
    if ORDER.index(other) > ORDER.index(kind):
        raise Undecided(f"values of kind {other!r} stored in an array of kind {kind!r}, which truncates them")
