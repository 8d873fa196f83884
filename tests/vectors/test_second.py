"""The second generation: it finds a value that is off by one unit in the last place, and leaves mpmath as it was."""

import mpmath
import numpy as np
import pytest

from posref import vectors
from proofs.vectors import _second
from tests import golden

ONE = ("rope/half/d92-b1e6/far", "value/half-undone/d6-b1e4/batch", "alibi/slopes/h112-b8/slopes", "learned/any/r10-d3/encode")


@pytest.mark.slow
def test_every_value_comes_out_again():
    line, wrong = _second.report()
    assert not wrong, "\n".join([line, *wrong])


def test_every_op_that_makes_floats_is_one():
    cases = {}
    for case in golden.cases():
        cases.setdefault(f"{case.id.split('/')[0]}.{case.op}", []).append(case)
    for name in ("index.steps", "scaling.ntk", "complex_order.encode"):
        assert name in _second.FLOATS.split()
        assert "near" in map(_second.compared, cases[name])


@pytest.mark.parametrize("case", [vectors.cases(id)[0] for id in ONE if vectors.cases(id)], ids=lambda case: case.id)
def test_one_unit_in_the_last_place_is_found(case):
    assert _second.compared(case) == "equal"
    expected = case.expected.astype(float)
    expected.flat[-1] = np.nextafter(expected.flat[-1], np.inf)
    assert _second.compared(case._replace(expected=expected)).startswith(f"{case.id}: the second generation is another float64")


def test_numbers_of_mpmath_are_left_as_they_were():
    before = vars(mpmath.mpf).get("exp"), hasattr(mpmath.mpf, "cos")
    _second.again(vectors.case("alibi/signed/h3-d4/causal"))
    assert (vars(mpmath.mpf).get("exp"), hasattr(mpmath.mpf, "cos")) == before
    assert mpmath.mpf(3).exp == 0
