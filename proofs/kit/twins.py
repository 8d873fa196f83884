"""Compiled twins in numbers: where a specification is called with arrays, its twins in `posref.fast` get the same arrays.

A twin is found by its contract, which is that of the specification. It has to return the same bits, unless `TWINS` in its proof
file says how far it may be off. No kernel is compiled for integers or float16: a twin may refuse them. Then both functions get
integers as float64.
"""

import functools
import importlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from proofs.kit.verdicts import Refuted

INSTALLED = find_spec("numba") is not None
REFUSAL = "the compiled kernels know float32 and float64"
compared = []  # the names of the twins, one for each result
_called = INSTALLED


class Twin(NamedTuple):
    """How a twin is called, and, unless its bits are those of the specification, how far off it may be.

    `near(given, dtype)` makes, for each part of the result, what it is in more digits and the bound of the error; None where
    the bits are the same after all.
    """

    call: Callable = lambda function, given: function(**given)
    near: Callable = lambda given, dtype: None


def begin(called):
    """Count results from 0; `called` says whether twins are called at all."""
    global _called
    _called = called
    compared.clear()


def agree(function, given, result):
    """Raises Refuted if a twin of a function returns something else for these arguments."""
    for module, name, twin in _twins(function.contract) if _called and hasattr(function, "contract") else ():
        rules = getattr(module, name).contract.arguments
        if all(given[n] is None for n in given.keys() - rules.keys()):
            _agrees(function, getattr(module, name), twin, {n: x for n, x in given.items() if n in rules}, result)


@functools.cache
def _twins(contract):
    """The module and the name of each twin of a contract, and what it promises."""
    file = contract.where.partition(".")[0]
    if not INSTALLED or not find_spec(f"posref.fast.{file}"):
        return []
    module, said = importlib.import_module(f"posref.fast.{file}"), importlib.import_module(f"proofs.fast.{file}")
    contracts = {name: getattr(getattr(module, name), "contract", None) for name in module.__all__}
    own = [name for name, each in contracts.items() if each is not None and each.specification is contract]
    return [(module, name, getattr(said, "TWINS", {}).get(name, Twin())) for name in own]


def _agrees(function, public, twin, given, result):
    expected, where = result if isinstance(result, tuple) else (result,), public.contract.where
    whole = [n for n, x in given.items() if _is_whole(x, public.contract.arguments[n].rule)]
    narrow = any(getattr(x, "dtype", None) == np.float16 for x in given.values())
    known = all(isinstance(part, np.ndarray) and part.dtype in (np.float32, np.float64) for part in expected)
    try:
        got = twin.call(public, given) if known else None
    except Exception as error:
        if not (whole or narrow) or REFUSAL not in str(error):
            words = f"fails where its specification returns a result: {type(error).__name__}: {error}"
            raise Refuted(f"{where} {words}") from error
        known = False
    if known:
        _compare(where, got if isinstance(got, tuple) else (got,), expected, twin.near(given, expected[0].dtype))
    elif whole:
        floats = given | {n: given[n].astype(float) for n in whole}
        _agrees(function, public, twin, floats, function(**floats))


def _is_whole(value, rule):
    return isinstance(value, np.ndarray) and value.dtype.kind in "iu" and "f" in rule.kind.dtypes


def _compare(where, got, expected, near):
    for part, right, bound in zip(got, expected, near or [None] * len(expected), strict=True):
        if (part.dtype, part.shape) != (right.dtype, right.shape):
            raise Refuted(f"{where} returns {part.dtype} {part.shape}, its specification {right.dtype} {right.shape}")
        wrong = _bits(part) != _bits(right) if bound is None else ~(np.abs(part - bound[0]) <= bound[1])
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            value, within = (right[at], "") if bound is None else (bound[0][at], f" within {bound[1][at]:.2g}")
            raise Refuted(f"{where} returns {part[at]} at {at} of {part.shape}, its specification {value}{within}")
    compared.append(where)


def _bits(x):
    """The bits of numbers; all NaN are one."""
    return np.where(np.isnan(x), np.nan, x).astype(x.dtype).view(f"u{x.itemsize}")
