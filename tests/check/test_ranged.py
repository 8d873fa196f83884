"""Numbers that carry their error: every specification runs on them, and honest results stay within what they allow."""

import numpy as np
import pytest

from posref import ops, vectors
from posref.check.engine import distance, lifted
from posref.check.ranged import Ranged, allowed, units
from tests import golden
from tests.every import every

WITH_TOLERANCE = [case for case in golden.cases() if case.cond]


@every(WITH_TOLERANCE, name=lambda case: case.id)
def test_specifications_run_on_numbers_with_error(case):
    """Values are unchanged; the specification on float32 inputs, rounded to float32, is within the allowed error."""
    op, arguments = ops.of_case(case)
    u = units("f64", "f32")
    values, bounds = allowed(op.spec(**lifted(arguments, u)), u)
    assert vectors.error(case, np.broadcast_to(np.real(values), case.expected.shape), "f64") <= 1
    assert np.nanmax(bounds["f64"], initial=0) <= 1e-7 * np.abs(case.expected).max(
        initial=0
    )  # a bound that holds anything is none
    if "f32" in case.models:
        narrow = {k: v.astype(np.float32) if getattr(v, "dtype", None) == np.float64 else v for k, v in arguments.items()}
        with np.errstate(all="ignore"):
            got = np.asarray(op.spec(**narrow)).astype(np.float32).astype(float)
        bound = bounds["f32"] + vectors.MODELS["f32"].c_amp * op.inside(arguments)
        assert distance(got, case.expected, np.broadcast_to(bound, case.expected.shape), case.gauge) <= 1


@pytest.mark.parametrize("step", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_mistakes_run_on_numbers_with_error(step):
    """The bound of a wrong answer comes from the mistake itself."""
    cannot = set()
    for case in golden.cases()[::step]:
        op, arguments = ops.of_case(case)
        u = units("f32")
        for flag in case.flags:
            try:
                with np.errstate(all="ignore"):
                    allowed(op.mistakes[flag].wrong(op.spec, lifted(arguments, u)), u)
            except ops.NotHere:
                pass
            except Exception:
                cannot.add((op.name, flag))
    assert cannot == set()


def test_sums_are_charged_once_and_in_any_order():
    """(n - 1) roundings of the total size, for a sum of sums as for one sum."""
    u = units("f32")
    x = Ranged(np.ones(8), u)
    one = allowed(x.sum(), u)[1]["f32"]
    two = allowed(x[:4].sum() + x[4:].sum(), u)[1]["f32"]
    assert one == two
    assert one > 7 * 8 * 2.0**-24


@every(range(20))
def test_honest_sums_and_products_are_inside(seed):
    """float32 arithmetic in several orders, against float64."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, 40)).astype(np.float32)
    u = units("f32")
    bound = allowed((Ranged(a.astype(float), u) * Ranged(b.astype(float), u)).sum(), u)[1]["f32"]
    exact = float(a.astype(float) @ b.astype(float))
    products = a * b
    for order in (products, products[::-1], np.sort(products)):
        total = np.float32(0)
        for term in order:
            total = np.float32(total + term)
        assert abs(float(total) - exact) <= bound


def test_a_bound_can_be_missed():
    """Twice the allowed error is outside."""
    u = units("f32")
    x = Ranged(np.array([1.5, -2.25]), u)
    values, bounds = allowed(np.exp(x) * x, u)
    assert distance(values + 2 * bounds["f32"], values, bounds["f32"]) > 1


def test_a_copy_is_written_to_alone():
    """Else one hypothesis would change the arguments of the next, and of a call that is repeated."""
    given = np.arange(4.0)
    x = Ranged(given, units("f32"))
    y = x.copy()
    y[:2] = Ranged(np.full(2, 9.0), units("f32"), np.ones((len(x.e), 2)))
    assert [x.v.tolist(), y.v.tolist(), given.tolist()] == [[0, 1, 2, 3], [9, 9, 2, 3], [0, 1, 2, 3]]
    assert not x.e.any()
    assert (y.e == [1, 1, 0, 0]).all()
