"""Leading axes: a call made again on a batch, whose rows are the call and the same call with its entries moved on.

A theorem runs a function at one rank. Its contract says which arguments may have leading axes; every row of the result has to
be what the function returns for that row alone.
"""

import functools
import math
import re
import traceback
from pathlib import Path
from typing import get_args, get_origin

import numpy as np

from posref._contract.axes import shape_of
from posref._contract.kinds import Arrays
from proofs.kit import cases, twins
from proofs.kit.verdicts import Refuted

LEADS = ((2,), (2, 2))
TIMES = "\u00b7"  # in the name of a product of extents, which for `shape_of` is one name
PRODUCT = re.compile(r"[a-zA-Z_]\w*(\*[a-zA-Z_]\w*)+")
CLOSE = 1e-9  # sums of a few float64 in another order; another row is off by far more


def axes(annotation):
    """The first word of a shape, in a list."""
    return annotation.axes.split()[:1] if isinstance(annotation, Arrays) else []


def batched(function):
    """The arrays that may have leading axes; none where the result is summed over the leading axes."""
    return [] if is_sum(function) else _leads(function)


@functools.cache
def is_sum(function):
    """Whether only arguments have leading axes: then the result of a batch is the sum of those of its rows."""
    result, own = function.__wrapped__.__annotations__.get("return"), _leads(function)
    return isinstance(result, Arrays) and bool(own) and not {"...", *(f"={n}" for n in own)} & {*axes(result)}


@functools.cache
def _leads(function):
    rules = {n: a.rule for n, a in function.contract.arguments.items() if "." not in n}
    own = [n for n, rule in rules.items() if axes(rule) in (["..."], ["(...)"])]
    alike = [n for n, rule in rules.items() if axes(rule) and axes(rule)[0].removeprefix("=") in own]
    return own + alike


@functools.cache
def stated(function):
    """The shapes that are written behind the arrow, one for each part; of records and of others that have none, nothing."""
    rule = function.__wrapped__.__annotations__.get("return") if hasattr(function, "contract") else None
    rules = get_args(rule) if get_origin(rule) is tuple else [rule]
    return [shape_of(PRODUCT.sub(lambda m: m[0].replace("*", TIMES), r.axes)) if axes(r) else None for r in rules]


def wrong_extents(function, given, got):
    """Axes of a result that are not as long as its contract says for these arguments, in words; with # 1 is right too."""
    shapes = stated(function)
    sizes = _extents(function, given) | {"": 1} if any(shapes) else {}
    return [
        words for shape, part in zip(shapes, parts(got), strict=False) for words in _wrong(function, given, sizes, shape, part)
    ]


def _wrong(function, given, sizes, shape, got):
    if shape and shape.like and np.shape(got) != np.shape(given[shape.like]):
        yield f"{shape.like} has shape {np.shape(given[shape.like])} and the result of {function.__name__} {np.shape(got)}"
    for place, axis in enumerate(shape.axes if shape else ()):
        names = {n for term in axis.terms for name in term.coefficients for n in name.split(TIMES)}
        if names <= sizes.keys() and axis.mark in ("", "#"):
            said, extent = [_length(term, sizes) for term in axis.terms], np.shape(got)[shape.at(place)]
            if extent not in said and not (axis.mark == "#" and extent == 1):
                words = "|".join(term.text for term in axis.terms).replace(TIMES, "*")
                yield f"{words} is {said[0]:g} in the arguments of {function.__name__} and {extent} in its result"


def _length(term, sizes):
    return sum(c * math.prod(sizes[n] for n in name.split(TIMES)) for name, c in term.coefficients.items()) / term.divisor


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


def agrees(function, given, crossed=True):
    """Raises Refuted if a row of a batch is not what its arguments give alone; returns how many batches were compared.

    All arguments get leading axes, or one of them does, or, `crossed`, one gets (2, 1) and the others (1, 2), which a body that
    lays out its rows in a line takes for others. Rows are moved on and made smaller, so that they share no maximum, and only
    moved on where the contract refuses that. What it refuses is not compared. A result without them is a sum of rows.
    """
    if not hasattr(function, "contract") or any(map(callable, given.values())):  # a function of one rank
        return 0
    names = [n for n in _leads(function) if isinstance(given.get(n), np.ndarray)]
    asked = [dict.fromkeys(names, lead) for lead in LEADS] if names else []
    if len(names) > 1:
        asked += [{n: LEADS[0]} for n in names if any(stated(function))]  # of a record, parts depend on some
        asked += [dict.fromkeys(names, (1, 2)) | {n: (2, 1)} for n in names[len(names) == 2 :] if crossed]
    others = [n for n, a in function.contract.arguments.items() if a.shape and a.shape.lead and n not in names]
    unasked = is_sum(function) or any(isinstance(given.get(n), np.ndarray) for n in others)
    alone, known = 0 if unasked else _first_alone(function, given, names), {}
    tried = (any(_batch_agrees(function, given, leads, change, known) for change in (_smaller, _moved)) for leads in asked)
    return alone + sum(tried)


def _first_alone(function, given, names):
    """The first rows of arguments with leading axes, without them; 1 if they could be compared."""
    own = _leading(function, given)
    most = max((own[n] for n in names), default=0)
    first = given | {n: given[n][(0,) * own[n]] for n in names}
    return int(most > 0 and _compared(function, given, [("first", first)], [(0,) * most], {}))


def _leading(function, given):
    """How many leading axes each array has that may have some."""
    arguments = function.contract.arguments
    shapes = {n: arguments[arguments[n].shape.like or n].shape for n in _leads(function)}
    arrays = {n: shape for n, shape in shapes.items() if isinstance(given.get(n), (np.ndarray, np.generic))}
    return {n: max(np.ndim(given[n]) - len(shape.axes), 0) for n, shape in arrays.items()}


def _batch_agrees(function, given, leads, change, known):
    """Whether a batch agrees whose arguments have these leading axes; with fewer axes than others one gets axes of length 1.

    `known` has the rows of earlier batches, and what the function returns for them.
    """
    for n, k in ((n, k) for n, lead in leads.items() for k in range(math.prod(lead)) if (change, n, k) not in known):
        known[change, n, k] = change(given[n], k)
    own = _leading(function, given)
    most = max(own.values(), default=0)
    each = {n: [known[change, n, k] for k in range(math.prod(lead))] for n, lead in leads.items()}
    batch = {n: np.stack(x).reshape(*leads[n], *(1,) * (most - own[n]), *x[0].shape) for n, x in each.items()}
    places = [*np.ndindex(np.broadcast_shapes(*leads.values()))]
    chosen = [{n: int(np.ravel_multi_index(_held(place, lead), lead)) for n, lead in leads.items()} for place in places]
    rows = [((change, *row.items()), given | {n: each[n][k] for n, k in row.items()}) for row in chosen]
    return _compared(function, given | batch, rows, places, known)


def _held(place, extents):
    """A place in a batch, in what has length 1 along some of its axes."""
    return tuple(min(i, n - 1) for i, n in zip(place, extents, strict=False))


def _moved(x, k):
    return np.roll(x, k)


def _smaller(x, k):
    x = np.roll(x, k)
    return x & (k % 2 == 0) if x.dtype == bool else x // (k + 1) if x.dtype.kind in "iu" else x / (k + 1)


def _compared(function, batch, rows, places, known):
    """Whether a batch, and its rows alone, were taken and agree."""
    try:
        whole = parts(function(**batch))
        known |= {key: parts(function(**row)) for key, row in rows if key not in known}
    except Exception as error:
        if refused(error):
            return False
        raise
    twins.agree(function, batch, tuple(whole))
    alone = [known[key] for key, _ in rows]
    if is_sum(function):
        places, alone = [()], [list(map(sum, zip(*alone, strict=True)))]
    for place, row in zip(places, alone, strict=True):
        for part, expected in zip(whole, row, strict=True):
            part = np.asarray(part)  # which may not depend on these arguments
            got = part if part.ndim == np.ndim(expected) else part[_held(place, part.shape)]
            if not np.array_equal(got, expected) and not _close(got, expected):
                own, other = ("the result", "the sum of its rows") if is_sum(function) else (f"row {place}", "alone it")
                raise Refuted(f"{function.__name__} of a batch: {own} is {got}, {other} is {expected}")
    return True


def _close(got, expected):
    return np.shape(got) == np.shape(expected) and np.allclose(got, expected, rtol=CLOSE, atol=CLOSE, equal_nan=True)


def refused(error):
    """Whether an error is a contract's, which names module and function, or that of a function which a theorem passes."""
    *_, (last, _) = traceback.walk_tb(error.__traceback__)
    return bool(re.match(r"\w+\.\w+: ", str(error))) or last.f_code.co_filename.startswith(str(Path(cases.KIT).parent))


def parts(result):
    return result if isinstance(result, tuple) else (result,)
