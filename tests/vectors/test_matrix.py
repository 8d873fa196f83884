"""The matrix of mistakes and cases: what it says can be wrong, and it may not get worse."""

import numpy as np
import pytest

from posref import ops, vectors
from proofs.vectors import _matrix


@pytest.mark.slow
def test_no_more_is_open_than_before():
    """Every case is worth its place: what some case killed stays killed."""
    text, still_open = _matrix.report()
    assert still_open <= _matrix.OPEN, text


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ([None, None], "absent"),
        ([None, 1.5, 0.0], "open"),
        ([0.0, 2.5], "killed"),
        ([float("nan"), None], "refused"),
        ([float("nan"), 1.0], "open"),
        ([float("inf")], "killed"),
    ],
)
def test_status(found, status):
    assert _matrix.status(found) == status


def test_distances():
    case = vectors.case("alibi/signed/h3/square")
    op, arguments = ops.of_case(case)
    found = {name: _matrix.distance(case, m.wrong, op.spec, arguments) for name, m in op.mistakes.items()}
    assert found["sign"] > 1000
    assert found["max_bias_ignored"] == 0
    assert _matrix.distance(case, lambda f, a: ops.missing(), op.spec, arguments) is None
    assert _matrix.distance(case, lambda f, a: np.zeros(7), op.spec, arguments) == np.inf


def test_mistakes_that_cancel_are_found(monkeypatch):
    """Two halves of the right answer, each wrong alone."""
    alibi = ops.op("alibi.slopes")
    twice = ops.Mistake(ops.result(lambda y: 2 * y), "twice", "Twice.", "Twice.")
    half = ops.Mistake(ops.result(lambda y: y / 2), "half", "Half.", "Half.")
    monkeypatch.setitem(alibi.mistakes, "twice", twice)
    monkeypatch.setitem(alibi.mistakes, "half", half)
    found = list(_matrix.cancelling(["alibi"]))
    assert ("alibi", "slopes", "twice", "half") in found
