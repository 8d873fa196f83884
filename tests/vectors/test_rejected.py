"""Cases that must be refused: posref does, for the reason that they give, and no comparator takes a number for them."""

import re

import numpy as np
import pytest

from posref import ops, vectors
from proofs.vectors import _rejected
from proofs.vectors._documents import systems
from tests.every import every

CASES = vectors.cases(status="reject")
ROWS = [row for generator in systems().values() for row in generator.REJECTED]
BASES = {_rejected.identity(base, vectors.case(base).op, name): base for base, name, *_ in ROWS}
OURS = {"missing": TypeError, "type": TypeError}  # others are a ValueError


@every(CASES, name=lambda case: case.id)
def test_posref_refuses(case):
    """With an error of its own, which names function and argument: not one that NumPy happens to raise on the way."""
    kind = case.comment.partition(": ")[0]
    said = r"missing 1 required keyword-only argument: '\w+'$" if kind == "missing" else r"^\w+\.\w+: \w+"
    op, arguments = ops.of_case(case)
    with pytest.raises(OURS.get(kind, ValueError), match=said):
        op.spec(**arguments)


@every(CASES, name=lambda case: case.id)
def test_one_thing_is_wrong(case):
    """The case that it comes from has other arguments in one or two places, and posref answers it."""
    right = vectors.case(BASES[case.id])
    given, asked = {**case.tensors, **case.params}, {**right.tensors, **right.params}
    changed = [name for name in given.keys() | asked.keys() if not np.array_equal(given.get(name), asked.get(name))]
    assert 1 <= len(changed) <= 2
    op, arguments = ops.of_case(right)
    assert vectors.error(right, op.spec(**arguments), "f64") <= 1


@pytest.mark.parametrize("model", vectors.MODELS)
def test_no_number_passes(model):
    for case in CASES:
        assert vectors.error(case, [], model) == 0
        assert vectors.error(case, [0.0], model) == np.inf


def test_every_system_and_kind_has_one():
    assert {case.id.split("/")[0] for case in CASES} == set(vectors.names())
    assert {case.comment.partition(": ")[0] for case in CASES} == _rejected.KINDS.keys()


def test_the_readme_names_every_kind():
    readme = (vectors.DIRECTORY / "README.md").read_text()
    words = re.sub(r"\s+", " ", readme)
    assert [kind for kind, meaning in _rejected.KINDS.items() if f"`{kind}`, {meaning}" not in words] == []
