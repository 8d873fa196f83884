"""Errors for arguments that do not fit a contract: each names the function, the argument, the numbers and the remedy."""

import itertools
import sys
import typing

import numpy as np

from posref import _require
from posref._contract.axes import TOGETHER, joined, shared, value_of, words_of
from posref._contract.kinds import LARGE
from posref._contract.values import get


class Errors:
    """The errors for values that do not fit `arguments`; the code of a contract calls these methods."""

    where: str
    arguments: dict

    def _error(self, kind, name, text, remedy=""):
        """An error that ends with the remedy of the argument, or with `remedy` if the argument has none."""
        remedy = self.arguments[name].remedy or remedy
        return kind(f"{self.where}: {name} {text}" + (f"; {remedy}" if remedy else ""))

    def _axis(self, name, place, values):
        """The axis at a place of an argument, and the words with which every error about this axis begins."""
        shape, got = self.arguments[name].shape, get(values, name).shape
        at = shape.at(place)
        return shape.axes[place], f"has shape {got}, whose axis {at} is {got[at]}, expected"

    def not_arrays(self, values):
        for name, value in values.items():
            if self.arguments[name].optional and value is None:
                continue
            # a dtype of torch has no `kind`
            if not hasattr(value, "shape") or not hasattr(getattr(value, "dtype", None), "kind"):
                return TypeError(f"{self.where}: {name} is {_require.kind(value)}, not an array; pass np.array({name})")
        return None

    def matrix(self, name):
        return TypeError(f"{self.where}: {name} is an np.matrix, whose axes stay two and whose * is @; pass np.asarray({name})")

    def kind(self, name, value):
        wanted = self.arguments[name].rule.kind.name
        if wanted != "booleans":
            remedy = "convert it with .astype"
        elif value.dtype.kind in "iu":
            remedy = "True = may attend; convert zeros and ones with .astype(bool)"
        else:
            remedy = (
                f"a boolean mask, True = may attend; for an additive mask pass {name} > -1 (or {name} == 0), for torch's "
                f"key_padding_mask ~{name}"
            )
        return TypeError(f"{self.where}: {name} has dtype {value.dtype}, expected {wanted}; {remedy}")

    def widened(self, name, value):
        """Integers of any width as int64; ValueError for values that int64 cannot hold."""
        if value.dtype.kind == "u" and value.size and int(value.max()) >= LARGE:
            raise ValueError(f"{self.where}: {name} runs up to {value.max()}, beyond int64; convert it with .astype(float)")
        return value.astype(np.int64)

    def not_finite(self, name, value):
        count = value.size - int(np.isfinite(value).sum())
        return ValueError(
            f"{self.where}: {name} has {count} of {value.size} values that are NaN or infinite; "
            "remove them (a position to be ignored belongs in a boolean mask)"
        )

    def rank(self, name, value):
        shape = self.arguments[name].shape
        few = len(value.shape) < shape.least
        some = shape.lead or shape.open or few
        wanted = f"at least {shape.least} axes {shape}" if some else f"{shape}, with {len(shape.axes)} axes"
        remedy = "add them with [None]" if few else "pass them one by one"
        return self._error(ValueError, name, f"has shape {value.shape}, expected {wanted}", remedy)

    def extent(self, name, place, values):
        """An axis does not have the extent that the other arguments require."""
        axis, begin = self._axis(name, place, values)
        said = " or ".join(f"{each.text} = {value_of(each, values)}" if each.names else each.text for each in axis.terms)
        origin = self._origin([extent for each in axis.terms for extent in each.names], name, values)
        least = "at least " * (axis.mark == "+")
        return self._error(ValueError, name, f"{begin} {least}{said} in {self.arguments[name].shape}{origin}")

    def multiple(self, name, place, values):
        shape, got = self.arguments[name].shape, get(values, name).shape
        term, at = shape.axes[place].terms[0], shape.at(place)
        step = max(abs(term.coefficients[each]) for each in term.names)
        first = term.coefficients.get("", 0) or step
        what = f"{first}, {first + step}, {first + 2 * step}, .." if step > 1 else f"at least {first}"
        what = "an even number of at least 2" if (first, step) == (2, 2) else what
        return self._error(ValueError, name, f"has shape {got}, expected {shape}; its axis {at} is {got[at]}, expected {what}")

    def related(self, name, place, relation, other, values):
        """An axis is not a multiple of another extent, or is smaller than that extent."""
        _, begin = self._axis(name, place, values)
        origin = self._origin([other], name, values) if other not in self.arguments else ""
        return self._error(ValueError, name, f"{begin} {relation} {other} = {values[f'_{other}']}{origin}")

    def size(self, name, size, values):
        """An extent does not satisfy the condition on the integer argument of the same name."""
        origin = self._origin([name], name, values, ", as ")
        return ValueError(f"{self.where}: {name} is {size}{origin}, expected {self.arguments[name].rule.name}")

    def scalar(self, name, value):
        return self._error(ValueError, name, f"is {value}, expected {self.arguments[name].rule.name}")

    def integer(self, name, value):
        return _require.integer(self.where, name, value)

    def number(self, name, value):
        """One finite number. An integer becomes Python's int, or a float where 64 bits cannot hold it."""
        no_number = (str, bytes, bool, np.bool_, complex, np.complexfloating)
        if isinstance(value, no_number) or not (np.isscalar(value) or hasattr(value, "is_positive")):
            raise self._error(TypeError, name, f"is {value!r}, expected one number")
        too_large = isinstance(value, int) and abs(value) > sys.float_info.max
        if too_large or (isinstance(value, (float, np.floating)) and not np.isfinite(value)):
            raise self.scalar(name, value)
        if isinstance(value, (int, np.integer)):
            return int(value) if abs(int(value)) < LARGE else float(value)
        return value

    def choice(self, name, value):
        allowed = typing.get_args(self.arguments[name].rule)
        if isinstance(value, np.ndarray) or value not in allowed:
            raise ValueError(f"{self.where}: {name} is {value!r}, expected one of {', '.join(map(repr, allowed))}")

    def function_of(self, name, value):
        return TypeError(f"{self.where}: {name} is {value!r}, expected a function of arrays")

    def several(self, name, value):
        held = f"is {_require.kind(value)}" + (f" of {len(value)}" if isinstance(value, (tuple, list)) else "")
        wanted = len(typing.get_args(self.arguments[name].rule))
        return self._error(TypeError, name, f"{held}, expected a tuple of {wanted} arrays")

    def record(self, name, value):
        wanted = self.arguments[name].rule.__name__
        return TypeError(f"{self.where}: {name} is {_require.kind(value)}, expected a {wanted}")

    def together(self, names, values):
        """The leading axes of two arguments do not broadcast together."""
        given = [(name, get(values, name).shape) for name in names if get(values, name) is not None]
        leads = [(name, shape, words_of(self.arguments[name].shape)) for name, shape in given]
        (left, shape, words), (right, other, others) = next(
            (a, b)
            for a, b in itertools.combinations(leads, 2)
            if (shared if self._shares(b[0]) else joined)(_before(a), _before(b)) is None
        )
        rest = " and ".join(dict.fromkeys(f"({', '.join(each)})" for each in (words, others)))
        return ValueError(
            f"{self.where}: {left} has shape {shape} and {right} {other}; the axes before {rest} must be equal or 1"
            + (", or their last a divisor" if self._shares(right) else _grouped(shape, other) if right == "k" else "")
        )

    def _shares(self, name):
        return self.arguments[name].shape.lead == "%..."

    def lead(self, name, values):
        """The leading axes of an argument do not broadcast to those of the other arguments."""
        shape = self.arguments[name].shape
        others = " and ".join(
            f"{other} of shape {get(values, other).shape}"
            for other, each in self.arguments.items()
            if each.shape and each.shape.lead in TOGETHER and get(values, other) is not None
        )
        remedy = "align trailing axes and insert missing ones with [None]"
        if shape.lead in ("(...)", "[...]"):
            remedy = f"if batched it has all of their axes, for instance (batch, 1, {', '.join(words_of(shape))})"
        got = get(values, name).shape
        return self._error(ValueError, name, f"has shape {got}, expected {shape}, which does not broadcast to {others}", remedy)

    def like(self, name, values):
        other = self.arguments[name].shape.like
        left, right = get(values, name).shape, get(values, other).shape
        return self._error(ValueError, name, f"has shape {left} and {other} {right}; they must be equal")

    def _origin(self, names, but, values, word=", since "):
        """Which other arguments set these extents: the integer argument of that name, or else the first array."""
        said = []
        for extent in dict.fromkeys(names):
            if extent != but and values.get(extent) is not None and extent in self.arguments:
                said.append(f"{extent} is {values[extent]}")
                continue
            for other, argument in self.arguments.items():
                value = get(values, other)
                mentioned = argument.shape and any(extent in t.names for axis in argument.shape.axes for t in axis.terms)
                if mentioned and value is not None and other != but:
                    said.append(f"{other} has shape {value.shape}")
                    break
        return word + " and ".join(dict.fromkeys(said)) if said else ""


def _grouped(q, k):
    """The remedy where keys have fewer heads than queries; "" where the number of query heads is not a multiple."""
    heads, key_heads = (q[-3:-2] or (1,))[0], (k[-3:-2] or (1,))[0]
    if key_heads == 0 or heads % key_heads != 0:
        return ""
    return f"; for grouped queries pass attention.repeat_heads(k, heads={heads}) and v alike"


def _before(argument):
    """The leading axes of a (name, shape, words of the rest)."""
    _, shape, words = argument
    return shape[: len(shape) - len(words)]
