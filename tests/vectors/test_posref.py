"""posref itself against the golden vectors: every op of `posref.ops` at every case."""

import numpy as np
import pytest

from posref import ops, vectors

CASES = vectors.cases()


def evaluate(case):
    op, arguments = ops.of_case(case)
    return op.spec(**arguments)


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_posref_passes(case):
    before = {name: tensor.copy() for name, tensor in case.tensors.items()}
    assert vectors.error(case, evaluate(case), "f64") <= 1
    assert all(np.array_equal(case.tensors[name], tensor) for name, tensor in before.items())


@pytest.mark.parametrize("name", vectors.names())
def test_some_case_comes_near_the_bound(name):
    """A bound that nothing ever approaches would hide mistakes."""
    errors = [vectors.error(case, evaluate(case), "f64") for case in CASES if case.id.startswith(f"{name}/") and case.cond]
    assert not errors or max(errors) > 1 / 50
