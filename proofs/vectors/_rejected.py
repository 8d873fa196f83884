"""What an implementation must refuse: small cases with one thing wrong each; the same id and op as others, and no result.

A row of `REJECTED` of a generator is the id of the case that it comes from, which is right; a name; what is other than there,
`None` for a setting that is not given; the kind of the error; and why. `expected` is empty: an implementation that refuses has
no numbers, so a comparator takes [] and nothing else.
"""

import numpy as np

from posref.vectors import _case as read_case
from proofs.vectors import case

KINDS = {
    "shape": "axes do not fit together",
    "range": "a number has no meaning there",
    "choice": "an unknown word",
    "missing": "a setting on which implementations disagree is not given",
    "type": "fractions where integers are meant",
}


def of(rows, records):
    """The records of a generator's rows, from the cases that they come from."""
    known = {record["id"]: record for record in records}
    for base, name, change, kind, why in rows:
        yield _record(known[base], identity(base, known[base]["op"], name), change, f"{kind}: {why}")


def identity(base, op, name):
    """The id of a row's record."""
    return f"{base.partition('/')[0]}/reject/{op}-{name}"


def _record(record, id, change, comment):
    right = read_case(record)
    tensors = {key: np.array(_changed(value, change.get(key, value))) for key, value in right.tensors.items()}
    params = right.params | {key: value for key, value in change.items() if key not in tensors}
    given = {key: value for key, value in params.items() if value is not None}
    return case(id, right.op, given, tensors, np.zeros(0, int), comment=comment) | {"status": "reject"}


def _changed(value, change):
    return change(value) if callable(change) else change
