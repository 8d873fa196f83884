"""posref itself against the golden vectors: every op of `posref.ops` at every case."""

import contextlib

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


GROWS = {"floater/field"}  # the solution of an equation, exponential in time


@pytest.mark.parametrize("name", vectors.names())
def test_large_numbers_overflow_nothing(name):
    """Every result is finite when one of the floating-point arguments is a million times as large, or is refused."""
    for case in (case for case in CASES if case.id.startswith(f"{name}/") and not case.id.startswith(tuple(GROWS))):
        op, arguments = ops.of_case(case)
        for key, given in arguments.items():
            for factor in (1e6, -1e6) if isinstance(given, np.ndarray) and given.dtype.kind == "f" else ():
                with np.errstate(over="raise", invalid="raise"), contextlib.suppress(ValueError):
                    result = op.spec(**{**arguments, key: factor * given})
                    parts = result if isinstance(result, tuple) else (result,)
                    assert all(np.isfinite(part).all() for part in parts), f"{case.id}: {key} times {factor}"
