"""Checks of values, which a contract cannot express, since it knows only kinds and axes. A body calls each check in one line.

Every error names the function, the argument, the numbers and the remedy. Arrays of symbols pass, because a proof assumes
hypotheses about their values. The last five checks are for single arguments of functions without a contract.
"""

import difflib

import numpy as np


def ordered(function, low_name, low, high_name, high):
    """Require that the two ends of a range are in order."""
    if low > high:
        raise ValueError(f"{function}: {low_name} is {low} and {high_name} is {high}; {low_name} cannot exceed {high_name}")


def rows(function, argument, index, n, target):
    """Require entries of `index` from 0 to n - 1; a negative index would silently count from the end."""
    if index.dtype.kind != "O" and index.size and not (index.min() >= 0 and index.max() < n):
        raise ValueError(
            f"{function}: {argument} runs from {index.min()} to {index.max()} and {target} has {n} rows, 0 .. {n - 1}; "
            "positions are neither wrapped nor clipped here"
        )


def within(function, argument, positions, length):
    """Require positions, integer or not, from 0 to length - 1."""
    if positions.dtype.kind != "O" and positions.size and not (positions.min() >= 0 and positions.max() <= length - 1):
        raise ValueError(
            f"{function}: {argument} run from {positions.min()} to {positions.max()} and length is {length}; "
            f"they must lie in 0 .. {length - 1}"
        )


def inside(function, argument, offsets, target, size, lowest):
    """Require that every offset has an entry in `target`, which holds `size` offsets from `lowest` on."""
    if offsets.size and (offsets.min() < lowest or offsets.max() >= lowest + size):
        raise ValueError(
            f"{function}: {argument} run from {offsets.min()} to {offsets.max()} and {target} holds {size} entries for "
            f"{lowest} to {lowest + size - 1}; clip the offsets or pass a larger table"
        )


def between(function, argument, values, low, high=None):
    """Require that every entry is at least `low`, and at most `high` if `high` is given."""
    if values.dtype.kind != "O" and not np.all((low <= values) & (high is None or values <= high)):
        end = "or more" if high is None else f".. {high}"
        raise ValueError(f"{function}: {argument} runs from {values.min()} to {values.max()}, expected {low} {end}")


def above_zero(function, argument, values, key):
    """Require positive entries; `key` is their name in a configuration, or the function that makes them."""
    if values.dtype.kind != "O" and not np.all(values > 0):
        raise ValueError(
            f"{function}: {argument} runs from {values.min()} to {values.max()}, expected positive numbers ({key})"
        )


def halved(function, s):
    """Require that |rows| of a matrix sum to at most 1, so that a short series is its exponential."""
    if s.dtype.kind != "O" and s.size and not (most := np.abs(s).sum(axis=-1).max()) <= 1:
        more = np.ceil(np.log2(most))
        raise ValueError(
            f"{function}: after the halvings rows of x S sum to {most:.3g}, expected 1 at most; take {more:g} more"
        )


def at_most(function, argument, number, target, size, remedy):
    """Require that a number is at most the number of entries of `target`."""
    if number > size:
        raise ValueError(f"{function}: {argument} is {number} and {target} has {size}; {remedy}")


def entries(function, argument, value, least):
    """Require a sequence `(..., n, d)` of at least `least` entries."""
    if value.shape[-2] < least:
        raise ValueError(f"{function}: {argument} has {value.shape[-2]} entries, expected at least {least}")


def same_tokens(function, q, k, remedy):
    """Require as many queries as keys, since they must be the same tokens."""
    if q.shape[-2] != k.shape[-2]:
        raise ValueError(f"{function}: q has {q.shape[-2]} positions and k has {k.shape[-2]}; {remedy}")


def differences(function, left_name, left, right_name, right):
    """Require that differences of integers, with either sign, fit into int64."""
    if not isinstance(left, np.ndarray) or not isinstance(right, np.ndarray):
        return  # arrays of symbols: that differences fit is a hypothesis
    if left.dtype.kind != "i" or right.dtype.kind != "i" or not (left.size and right.size):
        return
    low, high = int(left.min()) - int(right.max()), int(left.max()) - int(right.min())
    if max(-low, high) >= 2**63:
        raise ValueError(
            f"{function}: {left_name} run from {left.min()} to {left.max()} and {right_name} from {right.min()} to "
            f"{right.max()}; their differences do not fit into int64; shift the positions"
        )


def nonzero(function, argument, x):
    """The largest |entry| of each row; divided by it, a row has no square that overflows or vanishes. It is 1 for symbols.

    ValueError for a row of zeros, which has no direction.
    """
    if x.dtype.kind == "O":
        return 1
    largest = np.abs(x / 1).max(axis=-1, keepdims=True, initial=0)
    empty = np.flatnonzero(largest == 0).tolist()
    if empty:
        raise ValueError(f"{function}: rows {empty} of {argument} have norm 0 and no direction; leave them out")
    return largest


def denominators(function, denominator, remedy):
    """Require that no denominator is zero."""
    if denominator.dtype.kind == "f" and (denominator == 0).any():
        raise ValueError(
            f"{function}: {int((denominator == 0).sum())} of {denominator.size} queries have denominator zero; {remedy}"
        )


def like(function, argument, value, other_name, other):
    """Require that a result of the caller's function has the shape of its argument, and is finite."""
    if getattr(getattr(value, "dtype", None), "kind", "list") not in "iufO":
        raise TypeError(f"{function}: {argument} is {kind(value)}, expected an array of numbers")
    if value.shape != other.shape:
        raise ValueError(f"{function}: {argument} has shape {value.shape} and {other_name} {other.shape}; they must be equal")
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        raise ValueError(
            f"{function}: {argument} has {(~np.isfinite(value)).sum()} of {value.size} values that are NaN or infinite"
        )


def matrices(function, argument, value, other_name, other):
    """Require that the last two axes of an array equal those of another array."""
    if value.shape[-2:] != other.shape[-2:]:
        raise ValueError(f"{function}: {argument} ends in the axes {value.shape[-2:]} and {other_name} in {other.shape[-2:]}")


def choice(function, argument, value, allowed):
    """Require that `value` is one of the allowed words."""
    if value not in allowed:
        raise ValueError(f"{function}: {argument} is {value!r}, expected one of {', '.join(map(repr, allowed))}")


def near(name, known):
    """The end of a message about an unknown name: names that contain the name or are spelled like the name.

    >>> near("alibi", ["rope", "alibi key"]), near("rpoe", ["rope", "t5"]), near("x", ["rope"])
    ('; did you mean alibi key?', '; did you mean rope?', '')
    """
    wanted = name.lower().strip()
    found = [each for each in known if len(wanted) > 2 and wanted in each.lower()]
    found = (found or difflib.get_close_matches(wanted, known, n=3))[:3]
    return f"; did you mean {' or '.join(found)}?" if found else ""


def kind(value):
    """The type of a value with its article; "None" for None.

    >>> kind([]), kind(1), kind(None)
    ('a list', 'an int', 'None')
    """
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def integer(function, argument, number):
    """Require a single integer and return it as Python's int; a symbol that is an integer is returned unchanged."""
    symbolic = hasattr(number, "is_integer") and not isinstance(number, (float, np.floating))
    if isinstance(number, bool) or not (isinstance(number, (int, np.integer)) or symbolic):
        raise TypeError(f"{function}: {argument} is {number!r}, expected an integer")
    return int(number) if isinstance(number, np.integer) else number


def count(function, argument, number):
    """Require an integer of at least 1, and return it."""
    integer(function, argument, number)
    if number < 1:
        raise ValueError(f"{function}: {argument} is {number}, expected an integer of at least 1")


def even(function, argument, number):
    """Require an even and positive width, since it is split into pairs."""
    integer(function, argument, number)
    if number % 2 != 0 or number == 0 or (isinstance(number, (int, np.integer)) and number < 0):
        raise ValueError(f"{function}: {argument} is {number}, expected an even number of at least 2; features turn in pairs")


def positive(function, argument, number):
    """Require a single positive finite number."""
    if isinstance(number, str) or not (np.isscalar(number) or hasattr(number, "is_positive")):
        raise TypeError(f"{function}: {argument} is {number!r}, expected one number")
    if not number > 0 or number == float("inf"):
        raise ValueError(f"{function}: {argument} is {number}, expected a positive finite number")
