"""Changed results: what a theorem claims of a function has to fail if the function returns something else.

Numbers get a number added to each entry, which depends on the arguments, so that two calls do not change alike; a mask becomes
its complement; arrays have each row twice. Kernels store other numbers. Facts that say what a function is also have to notice
results that have much in common with the right ones (`KIN`).
"""

import functools
import re
import zlib

import numpy as np
import sympy as sp

from proofs.kit import mutants, numbers
from proofs.kit.dtypes import kind_of
from proofs.kit.marks import KNOWN, as_text
from proofs.kit.sized import SizedArray

NEAR, FAR = 9, 10**6  # what is added to an entry is less; near ones may still be indices


def other(value, source, most):
    """Other entries: of numbers larger ones, of masks their complement."""
    if isinstance(value, str):
        return f"{value} changed"
    if not isinstance(value, KNOWN):
        return value
    if kind_of(value) == "b":
        return complement(value)
    single = isinstance(value, SizedArray) or np.ndim(value) == 0
    return value + (int(source.integers(1, most)) if single else source.integers(1, most, np.shape(value)))


def complement(mask):
    if not isinstance(mask, SizedArray):
        return np.logical_not(mask)
    return SizedArray(mask.extents, lambda *ix: sp.Not(mask.at(*ix)), kind="b")


def longer(value, *_, axis=0):
    """Each row twice; a row of zeros if there is none."""
    if not isinstance(value, (np.ndarray, SizedArray)) or not value.ndim:
        return value
    empty = isinstance(value, np.ndarray) and not value.size
    return np.zeros((1, *value.shape[1:])) if empty else np.concatenate([value, value], axis)


RETURNED = (other, NEAR), (other, FAR), (longer,)


def numbers_by(change):
    """The change that makes other numbers of numbers, and leaves masks."""
    return lambda value, *_: change(value) if isinstance(value, KNOWN) and kind_of(value) != "b" else value


def negative(value, *_):
    """The negative of numbers, the complement of a mask."""
    known = isinstance(value, KNOWN) and not isinstance(value, str)
    return value if not known else complement(value) if kind_of(value) == "b" else -value


def backwards(axis):
    """The change that turns arrays round along an axis."""
    return lambda value, *_: np.flip(value, axis) if isinstance(value, np.ndarray) and np.ndim(value) else value


def last_moved(value, *_):
    """The last entry larger by 12, a multiple of small numbers; of a mask the other answer."""
    if not isinstance(value, np.ndarray) or not value.size:
        return value
    place = np.arange(value.size).reshape(np.shape(value)) == value.size - 1
    return value ^ place if kind_of(value) == "b" else np.where(place, value + 12, value)


def by_one_place(value, *_):
    """The next larger floating-point numbers."""
    known = isinstance(value, (float, np.floating, np.ndarray)) and np.asarray(value).dtype.kind == "f"
    return np.nextafter(value, np.asarray(value).dtype.type(np.inf)) if known else value


KIN = {
    "negative": negative,
    "rows backwards": backwards(0),
    "last axis backwards": backwards(-1),
    "last entry moved": last_moved,
    "entries one unit in the last place larger": by_one_place,
    "entries one larger": numbers_by(lambda value: value + 1),
    "double": numbers_by(lambda value: 2 * value),
}


def _in_parts(change, value, *how):
    if not isinstance(value, (tuple, list)):
        return change(value, *how)
    parts = [_in_parts(change, part, *how) for part in value]
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


def returning(functions, change, most=NEAR):
    """Calls from outside of Python functions return changed results."""
    return numbers.noting({f: f for f in functions}, lambda _, arguments, result: changed(change, arguments, result, most))


def changed(change, arguments, result, most=NEAR):
    return _in_parts(change, result, np.random.default_rng(zlib.crc32(texts(arguments).encode())), most)


def texts(arguments):
    return re.sub(r"#\d+", "", str([as_text(value) for value in arguments.values()]))


def returning_kin(function, functions, change, part, made):
    """A body that calls `function` directly, not through others of `functions`, gets a result of which one part is changed;
    `made` gets whether this result differs from the right one."""

    def note(f, arguments, result):
        if f is not function:
            return result
        kin = _in_parts(change, result) if _count(result) == 1 else _with_part(result, part, change)
        if not any(made):
            made.append(texts({"": kin}) != texts({"": result}))
        return kin

    return numbers.noting({f: f for f in functions}, note)


def _count(result):
    return len(result) if isinstance(result, (tuple, list)) else 1


def _with_part(result, part, change):
    parts = [_in_parts(change, each) if place == part else each for place, each in enumerate(result)]
    return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)


def called(functions, run):
    """The functions that a body calls directly, not through another of these functions, each with the number of parts of its
    results; all functions if the run fails."""
    seen = {}

    def note(f, _, result):
        seen[f] = max(seen.get(f, 1), _count(result))
        return result

    failure = run(lambda: numbers.noting({f: f for f in functions}, note))
    return dict.fromkeys(functions, 1) | seen if failure else seen


def kept(function, functions, run):
    """Whether a body calls a function, and no other one gets other arguments where the result is changed."""
    calls, heard = [], {True: [], False: []}
    for once in heard:

        def note(f, arguments, result, once=once):
            if f is not function:
                heard[once].append(texts(arguments))
                return result
            calls.append(f)
            return changed(other, arguments, result) if once else result

        run(lambda note=note: numbers.noting({f: f for f in functions}, note))
    return bool(calls) and heard[True] == heard[False]


def storing(function):
    """A function that stores, and returns, other numbers: as code, so that its pieces do, too."""
    return mutants.swapped(function, mutants.with_other_numbers(function))


def zeros(*functions):
    """Functions that return zeros: for controls, since a fact about symbols alone would notice it."""
    return returning(functions, numbers_by(lambda value: 0 * value))  # of which a matrix has another rank


def refused(*_):
    raise ValueError("the result is refused")


def of_facts(functions):
    """The changes of the results of these functions, each as a context; at least one change has to make a fact false."""
    ways = [*RETURNED, (functools.partial(longer, axis=-1),), (refused,), *((change,) for change in KIN.values())]
    return [*(lambda how=how: returning(functions, *how) for how in ways), lambda: zeros(*functions)]


def ways(function):
    """The changes of a function that are tried, each as a context."""
    if not numbers.can_be_noted(function):
        return [lambda: storing(function)]
    returned = [lambda how=how: returning([function], *how) for how in RETURNED]
    return [*returned, lambda: storing(function)]
