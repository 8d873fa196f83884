"""Kinds: the types of annotations, for arrays (`Numbers`, `Integers`, ..) and for single numbers (`Count`, `Even`, ..)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

LARGE = 2**63  # NumPy's signed integers end before it
kept, finite = "dtype kept", "finite"


@dataclass(frozen=True)
class Kind:
    """A kind of array: its mark in signatures, its name in errors, and the codes of its dtypes; O (object) holds symbols."""

    mark: str
    name: str
    dtypes: str

    def __getitem__(self, item):
        _, axes, *marks = item
        return Arrays(self, axes, tuple(marks))


class Arrays(NamedTuple):
    """The annotation of an array."""

    kind: Kind
    axes: str
    marks: tuple

    def __or__(self, other):
        return Optional(self)

    def __str__(self):
        return f"{self.kind.name} {self.axes}"

    def __repr__(self):
        """What `help` and `inspect.signature` print."""
        return f'{self.kind.mark}[Array, "{self.axes}"' + "".join(f", {mark.split()[-1]}" for mark in self.marks) + "]"

    def __call__(self):
        """Python 3.10 accepts only a callable as the type of a field, so an annotation must have this method."""
        raise TypeError(f"{self} is an annotation")


class Scalar(NamedTuple):
    """The annotation of a single number: its mark, its name in errors, whether it can be an extent, and what it satisfies."""

    mark: str
    name: str
    integer: bool
    condition: str

    def __or__(self, other):
        return Optional(self)

    def __repr__(self):
        return self.mark


class Optional(NamedTuple):
    """An annotation or None."""

    rule: Any

    def __repr__(self):
        return f"{self.rule!r} | None"


if TYPE_CHECKING:
    from typing import Annotated as Anything
    from typing import Annotated as Booleans
    from typing import Annotated as Complex
    from typing import Annotated as Integers
    from typing import Annotated as Numbers
    from typing import Annotated as Signed
    from typing import Annotated as SignedIntegers
    from typing import TypeAlias

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
    Integer: TypeAlias = int
    Count: TypeAlias = int
    Even: TypeAlias = int
    Number: TypeAlias = float
    Positive: TypeAlias = float
    AboveOne: TypeAlias = float
    Factor: TypeAlias = float
    Fraction: TypeAlias = float
else:
    Array = np.ndarray
    Numbers, Complex = Kind("Numbers", "numbers", "iufO"), Kind("Complex", "numbers", "iufcO")
    Signed, Integers = Kind("Signed", "signed numbers", "ifO"), Kind("Integers", "integers", "iuO")
    SignedIntegers = Kind("SignedIntegers", "signed integers", "iO")
    Booleans = Kind("Booleans", "booleans", "bO")
    Anything = Kind("Anything", "values", "")
    Integer = Scalar("Integer", "an integer; 64 bits hold it", True, f"type({{0}}) is not int or {-LARGE} <= {{0}} < {LARGE}")
    Count = Scalar("Count", "an integer of at least 1", True, "{0} >= 1")
    Even = Scalar("Even", "an even number of at least 2; features turn in pairs", True, "{0} % 2 == 0 and {0} > 0")
    Number = Scalar("Number", "a finite number", False, "True")
    Positive = Scalar("Positive", "a positive finite number", False, "{0} > 0")
    AboveOne = Scalar("AboveOne", "a finite number above 1", False, "{0} > 1")
    Factor = Scalar("Factor", "a finite number of at least 1", False, "{0} >= 1")
    Fraction = Scalar("Fraction", "a number from 0 to 1", False, "{0} >= 0 and {0} <= 1")
