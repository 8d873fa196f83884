"""Matrix: for every op and variant, which generic mistakes its cases kill: `python -m proofs.vectors --matrix`.

A cell is (system, op, variant) x mistake, where `posref.ops` can make the mistake there: at a case, or where the op is asked
with the settings of one. It is *killed* if some case tells it from the right answer by more than two tolerances of f32, or of
f64 where the case is for float64 alone; *refused* if it is an error in some case, which nobody overlooks; *explained* by a
reason in `REASONS` of its generator; *open* otherwise, and then the vectors are not complete. *Absent* cells are none: the
mistake has no place. Two mistakes made one upon the other, in either order, *cancel* if each is killed and no case of the op
and variant kills both at once: all pairs are made, also of wraps and of mistakes of one kind.
"""

import inspect
import itertools
import re
import warnings
from collections import Counter
from functools import cache

import numpy as np

from posref import attention, ops, vectors
from posref.relative import cope, forgetting, stick_breaking
from posref.rotary import pope
from proofs.vectors._reasons import AT_MOST, idle, reason

MODULI = (2**7, 2**8, 2**10, 2**12, 2**15, 2**16)  # where narrow integers and tables end
KINDS = ("killed", "refused", "explained", "open")
REFUSALS = (IndexError, KeyError, TypeError, ValueError)
ASKED = [{}, {"positions": "shared"}, {"positions": "offset"}, {"causal": False}, {"heads": 3}, {"n_query": 7}, {"base": 5e5}]
POSITIONS = ("positions", "query_positions", "key_positions", "coordinates", "distances")
OVERFLOWING = {  # a step, and what it is where exp overflows
    "no_row_maximum": (attention, "row_maximum", lambda scores, mask: np.zeros((*scores.shape[:-1], 1))),
    **{
        f"log_sigmoid_of_{side}{place}": (module, "log_sigmoid", wrong)
        for place, module in (("", forgetting), ("_in_cope", cope), ("_in_stick_breaking", stick_breaking))
        for side, wrong in (("large", lambda x: x - np.log(1 + np.exp(x))), ("small", lambda x: -np.log(1 + np.exp(-x))))
    },
    "softplus_of_large": (pope, "softplus", lambda x: np.log(1 + np.exp(x))),
    "softplus_of_small": (pope, "softplus", lambda x: x + np.log(1 + np.exp(-x))),
}


def mistakes(op):
    """Those of the op, and what only a matrix asks: every modulus, fractions cut off, settings that are numbers in the code;
    positions without their sign or at most 2^20 - 1, masks that are or lie in a triangle, and exponentials that overflow."""
    here = [name for name in POSITIONS if name in inspect.signature(op.spec).parameters]
    found = {name: mistake.wrong for name, mistake in op.mistakes.items()}
    every = lambda change: ops.using(**{name: lambda a, name=name: change(a[name]) for name in here})
    if here:
        found |= {f"positions_modulo_{modulus}": every(lambda x, by=modulus: x % by) for modulus in MODULI}
        found["positions_truncated"] = every(lambda x: np.trunc(x) if np.any(x % 1) else ops.missing())
        found["positions_absolute"] = every(np.abs)
        found["positions_below_2^20"] = every(lambda x: np.minimum(x, 2**20 - 1))
    if "no_mask" in op.mistakes:
        found["mask_of_a_triangle"] = ops.using(mask=lambda a: np.broadcast_to(_triangle(a.mask), a.mask.shape))
        found["mask_within_a_triangle"] = ops.using(mask=lambda a: a.mask & _triangle(a.mask))
    instead = lambda wrong: lambda right: wrong
    found |= {name: ops.inside(module, step, instead(wrong)) for name, (module, step, wrong) in OVERFLOWING.items()}
    if "base" in inspect.signature(op.spec).parameters:
        found["base_of_10000"] = ops.using(base=lambda a: ops.missing() if a.base == 10000 else 10000.0)
    return found


def _triangle(mask):
    """The causal mask of as many queries and keys, aligned at the end."""
    n_query, n_key = mask.shape[-2:] if np.ndim(mask) > 1 else ops.missing()
    return np.tri(n_query, n_key, n_key - n_query, dtype=bool)


def _places(names):
    """{(system, op, variant): cases} of the systems named, or of all."""
    cases = sorted((case for case in vectors.cases() if not names or case.id.split("/")[0] in names), key=_variant)
    return {place: list(group) for place, group in itertools.groupby(cases, key=_variant)}


@cache
def cells(names=()):
    """{(system, op, variant): {mistake: status}} of the systems named, or of all."""
    return {place: dict(_row(place, cases)) for place, cases in _places(names).items()}


def _variant(case):
    """Its system, op and variant; sizes in the place of a variant, such as a0.4-n5-d2, are none."""
    system, variant = case.id.split("/")[:2]
    return system, case.op, re.sub(r"(^|-)[a-z]-?[0-9.]+(?=-|$)", "", variant) or "any"


def _row(place, cases):
    asked = [ops.of_case(case) for case in cases]
    for name, wrong in mistakes(asked[0][0]).items():
        found = status([distance(case, wrong, op.spec, a) for case, (op, a) in zip(cases, asked, strict=True)])
        if found == "open" or (found == "absent" and _possible(cases[0], asked[0][0], wrong)):
            found = "explained" if reason(*place, name) else "open"
        yield name, found


def _possible(case, op, wrong):
    """Whether the op can be asked for it with the settings of the case."""
    known = inspect.signature(op.make).parameters
    settings = {name: value for name, value in case.params.items() if name in known}
    for other in ASKED:
        try:
            made = op.make(**settings | {name: value for name, value in other.items() if name in known})
        except ValueError:  # a setting that is an array is a tensor of the case
            continue
        halves = {name: made[name] + 0.5 * (np.arange(made[name].shape[-1]) % 2) for name in POSITIONS if name in made}
        for arguments in (made, ops.Arguments(made | halves)):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    op.spec(**arguments)
                    wrong(op.spec, arguments)
                return True
            except (ops.NotHere, *REFUSALS):
                continue
    return False


def distance(case, wrong, spec, arguments):
    """In tolerances; None where it has no place, NaN where it is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = np.asarray(wrong(spec, arguments)).astype(float)
    except ops.NotHere:
        return None
    except REFUSALS:
        return np.nan
    if got.ndim <= case.expected.ndim and got.size < case.expected.size:
        try:
            got = np.broadcast_to(got, case.expected.shape)
        except ValueError:
            return np.inf
    return vectors.error(case, got, "f32" if "f32" in case.models else case.models[0])


def status(found):
    """Of one mistake, from its distance in every case of the cell."""
    placed = [x for x in found if x is not None]
    if not placed:
        return "absent"
    if max((x for x in placed if not np.isnan(x)), default=0) > 2:
        return "killed"
    return "refused" if np.isnan(placed).any() else "open"


@cache
def pairs(names=()):
    """{(system, op, variant): (pairs of mistakes that were made, those that cancel)}."""
    return {place: _made(cases) for place, cases in _places(names).items()}


def _made(cases):
    asked = [(case, *ops.of_case(case)) for case in cases]
    wrongs = mistakes(asked[0][1])
    told = [{name for name, wrong in wrongs.items() if _told(distance(case, wrong, op.spec, a))} for case, op, a in asked]
    made = dict.fromkeys(itertools.permutations([name for name in wrongs if any(name in here for here in told)], 2))
    for (case, op, a), here in zip(asked, told, strict=True):
        for pair in [pair for pair, killed in made.items() if not killed and here & {*pair}]:
            found = distance(case, ops.both(*(wrongs[name] for name in pair)), op.spec, a)
            made[pair] = made[pair] if found is None else not found <= 2
    return sum(killed is not None for killed in made.values()), [pair for pair, killed in made.items() if killed is False]


def _told(found):
    return found is not None and found > 2


def cancelling(names=()):
    """Rows (system, op, variant, mistake, mistake) that cancel in one order or in both."""
    return sorted({(*place, *sorted(pair)) for place, (_, cancel) in pairs(names).items() for pair in cancel})


def report(names=()):
    """The matrix as text, a line per op and variant."""
    table, total = cells(tuple(names)), Counter()
    lines = [f"{'system, op, variant':52} killed refused explained open"]
    for place, row in sorted(table.items()):
        lines.append(_line(" ".join(place), Counter(row.values())))
        total.update(row.values())
    made, cancel = sum(count for count, _ in pairs(tuple(names)).values()), cancelling(tuple(names))
    said = sum(reason(*row, kind="pair") is not None for row in cancel)
    together = f"{made} pairs of mistakes in both orders: {len(cancel)} cancel, {said} at every input and "
    together += f"{len(cancel) - said} open"
    return "\n".join([*lines, _line("all", total), together])


def missing(names=()):
    """What keeps the vectors of the systems named, or of all, from being complete: sentences."""
    table = cells(tuple(names))
    every = [((*place, name), kind) for place, row in table.items() for name, kind in row.items()]
    found = {kind: [cell for cell, each in every if each == kind] for kind in KINDS}
    said = [f"open: no case kills {' '.join(cell)}; add one, or a reason to REASONS of its generator" for cell in found["open"]]
    cancel = cancelling(tuple(names))
    said += [f"made together they cancel: {' '.join(row)}" for row in cancel if not reason(*row, kind="pair")]
    count = sum(map(len, found.values()))
    if not names:
        said += [f"a reason explains nothing: {pattern}" for pattern in idle(found["explained"]) + idle(cancel, "pair")]
    if not names and len(found["explained"]) > AT_MOST * count:
        share = f"{len(found['explained'])} of {count} cells"
        said.append(f"{share} have a reason in the place of a case; at most {AT_MOST:.0%} may")
    return said


def _line(name, counts):
    return f"{name:52} {counts['killed']:6} {counts['refused']:7} {counts['explained']:9} {counts['open']:4}"
