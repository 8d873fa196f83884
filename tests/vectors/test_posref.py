"""posref itself against the golden vectors.

For every system `evaluate/<system>.py` has one function per op: it takes the case and returns what posref gives.
"""

import importlib.util
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from posref import vectors

CASES = vectors.cases()


@cache
def evaluators(system):
    path = Path(__file__).parent / "evaluate" / f"{system}.py"
    spec = importlib.util.spec_from_file_location(f"evaluate_{system}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def evaluate(case):
    return getattr(evaluators(case.id.split("/")[0]), case.op)(case)


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
