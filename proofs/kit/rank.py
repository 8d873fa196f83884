"""Leading axes: a call made again on a batch, whose rows are the call and the same call with its entries moved on.

A theorem runs a function at one rank. Its contract says which arguments may have leading axes; every row of the result has to
be what the function returns for that row alone.
"""

import re

import numpy as np

from posref._contract.axes import shape_of
from posref._contract.kinds import Arrays
from proofs.kit.verdicts import Refuted

LEADS = ((2,), (2, 2))
CLOSE = 1e-9  # sums of a few float64 in another order; another row is off by far more
REFUSED = (ValueError, TypeError, ArithmeticError, AttributeError, IndexError)


def axes(annotation):
    """The first word of a shape, in a list."""
    return annotation.axes.split()[:1] if isinstance(annotation, Arrays) else []


def batched(function):
    """The arrays that may have leading axes; none where the result has no leading axes."""
    result = function.__wrapped__.__annotations__.get("return")
    rules = {n: a.rule for n, a in function.contract.arguments.items() if "." not in n}
    own = [n for n, rule in rules.items() if axes(rule) in (["..."], ["(...)"])]
    alike = [n for n, rule in rules.items() if axes(rule) and axes(rule)[0].removeprefix("=") in own]
    return [] if isinstance(result, Arrays) and axes(result) != ["..."] else own + alike


def stated(function):
    """What is written behind the arrow; None for records, and for products of extents, which no argument has."""
    rule = function.__wrapped__.__annotations__.get("return") if hasattr(function, "contract") else None
    return shape_of(rule.axes) if axes(rule) and not re.search(r"[a-z]\*[a-z]", rule.axes) else None


def wrong_extents(function, given, got):
    """Axes of a result that are not as long as those of the same name in the arguments, in words; with # 1 is right too."""
    shape, found = stated(function), []
    sizes = _extents(function, given) if shape else {}
    for place, axis in enumerate(shape.axes if shape else ()):
        name = axis.terms[0].text
        if name in sizes and len(axis.terms) == 1 and axis.mark in ("", "#"):
            extent = np.shape(got)[shape.at(place)]
            if extent != sizes[name] and not (axis.mark == "#" and extent == 1):
                found.append(f"{name} is {sizes[name]} in the arguments of {function.__name__} and {extent} in its result")
    return found


def _extents(function, given):
    """The extents that the axes of the arguments have, by name, where an axis is one name."""
    found = {n: v for n, v in given.items() if type(v) is int}
    for n, argument in function.contract.arguments.items():
        value = given.get(n)
        has = argument.shape and hasattr(value, "shape") and "." not in n
        for place, axis in enumerate(argument.shape.axes if has else ()):
            if len(axis.terms) == 1 and axis.terms[0].text.isidentifier() and not axis.mark:
                found[axis.terms[0].text] = value.shape[argument.shape.at(place)]
    return found


def agrees(function, given):
    """Raises Refuted if a row of a batch is not what its arguments give alone; returns how many batches were compared.

    What the contract refuses is not.
    """
    compared = 0
    names = [n for n in batched(function) if isinstance(given.get(n), np.ndarray)] if hasattr(function, "contract") else []
    for lead in LEADS if names else ():
        rows = [given | {n: np.roll(given[n], k, axis=-1) if given[n].ndim else given[n] for n in names} for k in (0, 1, 2, 3)]
        rows = rows[: int(np.prod(lead))]
        try:
            whole = _parts(function(**_spread(function, names, rows, lead)))
            alone = [_parts(function(**row)) for row in rows]
        except REFUSED:
            continue
        for number, place in enumerate(np.ndindex(lead)):
            for part, expected in zip(whole, alone[number], strict=True):
                got = np.asarray(part)[place]
                if np.shape(got) != np.shape(expected) or not np.allclose(
                    got, expected, rtol=CLOSE, atol=CLOSE, equal_nan=True
                ):
                    raise Refuted(f"{function.__name__} of a batch {lead}: row {place} is {got}, alone it is {expected}")
        compared += 1
    return compared


def _spread(function, names, rows, lead):
    """The arguments of all rows as one batch; what has fewer leading axes than others gets axes of length 1 for them."""
    own = {n: rows[0][n].ndim - len(function.contract.arguments[n].shape.axes) for n in names}
    most = max(own.values())
    ones = {n: (1,) * (most - own[n]) for n in names}
    stacked = {n: np.stack([row[n] for row in rows]) for n in names}
    return rows[0] | {n: x.reshape(*lead, *ones[n], *x.shape[1:]) for n, x in stacked.items()}


def _parts(result):
    return result if isinstance(result, tuple) else (result,)
