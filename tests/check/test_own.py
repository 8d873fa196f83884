"""posref's own functions pass their own ops: every op once, and booleans arrive as booleans in all of them."""

import numpy as np
import pytest

from posref.check import check
from posref.check.call import Caller
from tests import own
from tests.every import every


@pytest.mark.slow
@every(own.OPS, name=lambda op: op.name)
def test_every_op_passes_with_its_own_function(op):
    first = next(own.settings(op))
    check(own.implementations(op, first)[-1], op.name, **first).require()


# every converter that makes numbers of booleans, as one for floats or for integers does
CONVERTERS = {
    "as they are": lambda x: x,
    "floats": lambda x: x.astype(np.float32),
    "integers": lambda x: x.astype(np.int64) if x.dtype.kind in "iub" else x,
}


@every(own.OPS, name=lambda op: op.name)
def test_booleans_arrive_as_booleans(op):
    a = op.make(**next(own.settings(op)))
    callers = [Caller(op.spec, op, to, None, "bhnd", "batch") for to in CONVERTERS.values()]
    for each in (*callers, *(caller.with_strides() for caller in callers)):
        given = each.tensors(a) | {name: each.setting(name, a[name]) for name in each.named & a.keys()}
        booleans = [name for name in given if isinstance(a[name], np.ndarray) and a[name].dtype == bool]
        assert all(given[name].dtype == bool for name in booleans)
    masks = [name for name in a if name == "mask" and a[name] is not None]
    assert all(a[name].dtype == bool for name in masks)
