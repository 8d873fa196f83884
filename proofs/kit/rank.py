"""Leading axes: a call made again on a batch, whose rows are the call and the same call with its entries moved on.

A theorem runs a function at one rank. Its contract says which arguments may have leading axes; every row of the result has to
be what the function returns for that row alone.
"""

import re
import traceback
from pathlib import Path

import numpy as np

from posref._contract.axes import shape_of
from posref._contract.kinds import Arrays
from proofs.kit import cases
from proofs.kit.verdicts import Refuted

LEADS = ((2,), (2, 2))
CLOSE = 1e-9  # sums of a few float64 in another order; another row is off by far more


def axes(annotation):
    """The first word of a shape, in a list."""
    return annotation.axes.split()[:1] if isinstance(annotation, Arrays) else []


def batched(function):
    """The arrays that may have leading axes; none where the result is summed over the leading axes."""
    return [] if is_sum(function) else _leads(function)


def is_sum(function):
    """Whether only arguments have leading axes: then the result of a batch is the sum of those of its rows."""
    result, own = function.__wrapped__.__annotations__.get("return"), _leads(function)
    return isinstance(result, Arrays) and bool(own) and not {"...", *(f"={n}" for n in own)} & {*axes(result)}


def _leads(function):
    rules = {n: a.rule for n, a in function.contract.arguments.items() if "." not in n}
    own = [n for n, rule in rules.items() if axes(rule) in (["..."], ["(...)"])]
    alike = [n for n, rule in rules.items() if axes(rule) and axes(rule)[0].removeprefix("=") in own]
    return own + alike


def stated(function):
    """What is written behind the arrow; None for records, and for products of extents, which no argument has."""
    rule = function.__wrapped__.__annotations__.get("return") if hasattr(function, "contract") else None
    return shape_of(rule.axes) if axes(rule) and not re.search(r"[a-z]\*[a-z]", rule.axes) else None


def wrong_extents(function, given, got):
    """Axes of a result that are not as long as its contract says for these arguments, in words; with # 1 is right too."""
    shape, found = stated(function), []
    sizes = _extents(function, given) | {"": 1} if shape else {}
    for place, axis in enumerate(shape.axes if shape else ()):
        if all(name in sizes for term in axis.terms for name in term.coefficients) and axis.mark in ("", "#"):
            said = [sum(c * sizes[name] for name, c in term.coefficients.items()) / term.divisor for term in axis.terms]
            extent = np.shape(got)[shape.at(place)]
            if extent not in said and not (axis.mark == "#" and extent == 1):
                words = "|".join(term.text for term in axis.terms)
                found.append(f"{words} is {said[0]:g} in the arguments of {function.__name__} and {extent} in its result")
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

    All arguments get leading axes, or one of them does; rows are moved on and made smaller, so that they share no maximum, and
    only moved on where the contract refuses that. What it refuses is not compared. A result without them is a sum of rows.
    """
    if not hasattr(function, "contract") or any(map(callable, given.values())):  # a function of one rank
        return 0
    names = [n for n in _leads(function) if isinstance(given.get(n), np.ndarray)]
    single = [([n], LEADS[0]) for n in names if len(names) > 1 and stated(function)]  # of a record, parts depend on some
    asked = [(names, lead) for lead in LEADS] + single if names else []
    others = [n for n, a in function.contract.arguments.items() if a.shape and a.shape.lead and n not in names]
    unasked = is_sum(function) or any(isinstance(given.get(n), np.ndarray) for n in others)
    alone = 0 if unasked else _first_alone(function, given, names)
    return alone + sum(any(_batch_agrees(function, given, *which, change) for change in (_smaller, _moved)) for which in asked)


def _first_alone(function, given, names):
    """The first rows of arguments with leading axes, without them; 1 if they could be compared."""
    own = _leading(function, given)
    most = max((own[n] for n in names), default=0)
    first = given | {n: given[n][(0,) * own[n]] for n in names}
    return int(most > 0 and _compared(function, given, [first], [(0,) * most]))


def _leading(function, given):
    """How many leading axes each array has that may have some."""
    arguments = function.contract.arguments
    shapes = {n: arguments[arguments[n].shape.like or n].shape for n in _leads(function)}
    arrays = {n: shape for n, shape in shapes.items() if isinstance(given.get(n), (np.ndarray, np.generic))}
    return {n: max(np.ndim(given[n]) - len(shape.axes), 0) for n, shape in arrays.items()}


def _batch_agrees(function, given, names, lead, change):
    rows = [given | {n: change(given[n], k) for n in names} for k in range(int(np.prod(lead)))]
    return _compared(function, _spread(function, names, rows, lead), rows, [*np.ndindex(lead)])


def _moved(x, k):
    return np.roll(x, k)


def _smaller(x, k):
    x = np.roll(x, k)
    return x & (k % 2 == 0) if x.dtype == bool else x // (k + 1) if x.dtype.kind in "iu" else x / (k + 1)


def _compared(function, batch, rows, places):
    """Whether a batch, and its rows alone, were taken and agree."""
    try:
        alone = [parts(function(**row)) for row in rows]
        whole = parts(function(**batch))
    except Exception as error:
        if refused(error):
            return False
        raise
    if is_sum(function):
        places, alone = [()], [list(map(sum, zip(*alone, strict=True)))]
    for place, row in zip(places, alone, strict=True):
        for part, expected in zip(whole, row, strict=True):
            got = part if np.ndim(part) == np.ndim(expected) else np.asarray(part)[place]  # it may not depend on this argument
            if np.shape(got) != np.shape(expected) or not np.allclose(got, expected, rtol=CLOSE, atol=CLOSE, equal_nan=True):
                own, other = ("the result", "the sum of its rows") if is_sum(function) else (f"row {place}", "alone it")
                raise Refuted(f"{function.__name__} of a batch: {own} is {got}, {other} is {expected}")
    return True


def refused(error):
    """Whether an error is a contract's, which names module and function, or that of a function which a theorem passes."""
    *_, (last, _) = traceback.walk_tb(error.__traceback__)
    return bool(re.match(r"\w+\.\w+: ", str(error))) or last.f_code.co_filename.startswith(str(Path(cases.KIT).parent))


def _spread(function, names, rows, lead):
    """The arguments of all rows as one batch; what has fewer leading axes than others gets axes of length 1 for them."""
    own = _leading(function, rows[0])
    most = max(own.values(), default=0)
    stacked = {n: np.stack([row[n] for row in rows]) for n in names}
    return rows[0] | {n: x.reshape(*lead, *(1,) * (most - own[n]), *x.shape[1:]) for n, x in stacked.items()}


def parts(result):
    return result if isinstance(result, tuple) else (result,)
