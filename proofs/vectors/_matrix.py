"""Matrix: for every op and variant, which generic mistakes its cases kill: `python -m proofs.vectors --matrix`.

A cell is (system, op, variant) x mistake, where `posref.ops` can make the mistake there. It is *killed* if some case tells it
from the right answer by more than two tolerances in the strictest of f32 and f64 that the case is for; *refused* if the mistake
is an error in every case, which nobody overlooks; *open* if every case passes it; *absent* if no case has what the mistake
needs, while the op can be asked for it. Two mistakes made together *cancel* if each is killed and no case kills both at once.
"""

import itertools
import warnings
from collections import Counter, defaultdict

import numpy as np

from posref import ops, vectors

OPEN = 245  # no change may add to what is open; lower it when cases close some

UNDONE = """
complex_order encode starts_at_one position_minus_one
index encode starts_at_one position_minus_one
index encode_normalized starts_at_one position_minus_one
layouts scores not_converted switch_forgotten
offsets clip clip_one_early clip_one_late
rope attend sign cos_sin_swapped
rope scores sign cos_sin_swapped
scaling yarn_tables no_magnitude magnitude_squared
value attend not_undone undone_twice
xlnet scores no_segments segment_not_scaled
xpos rotate other_side both_multiplied
"""  # each of the two undoes the other: together they are the right answer at every input


def cells():
    """{(system, op, variant): {mistake: status}}."""
    distances = defaultdict(lambda: defaultdict(list))
    for case in vectors.cases():
        system, variant = case.id.split("/")[:2]
        op, arguments = ops.of_case(case)
        for name, mistake in op.mistakes.items():
            distances[system, case.op, variant][name].append(distance(case, mistake.wrong, op.spec, arguments))
    return {place: {name: status(found) for name, found in row.items()} for place, row in distances.items()}


def distance(case, wrong, spec, arguments):
    """In tolerances; None where it has no place, NaN where it is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = np.asarray(wrong(spec, arguments)).astype(float)
    except ops.NotHere:
        return None
    except (IndexError, KeyError, TypeError, ValueError):
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
    if np.isnan(placed).all():
        return "refused"
    return "killed" if np.nanmax(placed) > 2 else "open"


def cancelling(names=()):
    """Rows (system, op, mistake, mistake): both are killed by a case, and no case kills both at once."""
    cases = [case for case in vectors.cases() if not names or case.id.split("/")[0] in names]
    for key, group in itertools.groupby(sorted(cases, key=_place), key=_place):
        killed, survives = defaultdict(bool), defaultdict(list)
        for case in group:
            op, arguments = ops.of_case(case)
            alone = {name: distance(case, m.wrong, op.spec, arguments) for name, m in op.mistakes.items()}
            here = [name for name, found in alone.items() if found is not None and found > 2]
            for pair in itertools.combinations(here, 2):
                if op.mistakes[pair[0]].kind and op.mistakes[pair[0]].kind == op.mistakes[pair[1]].kind:
                    continue
                together = ops.both(*(op.mistakes[name].wrong for name in pair))
                found = distance(case, together, op.spec, arguments)
                killed[pair] |= found is None or not found <= 2
                survives[pair].append(case.id)
        yield from ((*key, *pair) for pair in survives if not killed[pair] and " ".join((*key, *pair)) not in UNDONE)


def _place(case):
    return case.id.split("/")[0], case.op


def report():
    """The matrix as text, a line an op and variant, and the number of open cells."""
    table, total = cells(), Counter()
    lines = [f"{'system, op, variant':52} killed refused open absent"]
    for place, row in sorted(table.items()):
        counts = Counter(row.values())
        total += counts
        lines.append(f"{' '.join(place):52} {counts['killed']:6} {counts['refused']:7} {counts['open']:4} {counts['absent']:6}")
        left = sorted(name for name, found in row.items() if found == "open")
        lines += [f"    open: {', '.join(left)}"] * bool(left)
    lines.append(f"{'all':52} {total['killed']:6} {total['refused']:7} {total['open']:4} {total['absent']:6}")
    return "\n".join(lines), total["open"]
