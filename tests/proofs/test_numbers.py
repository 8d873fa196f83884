"""The model of the kit against numpy: right code agrees at every size and dtype, code that only numbers can tell does not."""

import contextlib
import itertools

import numpy as np
import pytest
import sympy as sp

from proofs import attention as about_attention
from proofs.kit import NotProved, Refuted, all_paths, cases, entries, numbers, prove_equal, size, sized, symbols, theorem
from proofs.rotary import rope as about_rope

N = size("n")


@pytest.mark.parametrize("t", [about_rope.pinned, about_attention.pinned_scores, about_attention.blind_to_a_row_shift])
def test_shipped_functions_are_what_the_model_says(t):
    assert numbers.check(t) > 0


def plain(x):
    return x * 3


def summed(x):
    return (x * x).sum(axis=-1)


WRONG = {
    "a cast": lambda x: (x * 3).astype(np.float16),
    "a write": lambda x: np.add(x, 2 * x, out=x),
    "a cut": lambda x: np.trunc(x * 3),
    "a narrow integer": lambda x: (x * 100).astype(np.int8) * 0.03,
    "a size": lambda x: x if x.shape == (80,) else x * 3,
    "a sum in half of the digits": lambda x: x * np.float32(3.0000002),
}


@pytest.mark.parametrize("name", WRONG)
def test_numbers_alone_tell(name):
    """The model is right, the code that runs is not: as if the kit did not see it."""
    with pytest.raises(Refuted):
        every_size(WRONG[name], 3 * sized("x", N))


def every_size(function, model):
    call = numbers.Call(function, {"x": sized("x", N)}, model, None, [], cases.Case())
    for extents, dtype in itertools.product(numbers.MORE_SIZES, numbers.DTYPES):
        numbers._agree(call, extents, dtype)


def test_shipped_code_is_run_at_every_size():
    @theorem(of=[plain], sizes="all n")
    def holds():
        prove_equal(*entries(None, plain(sized("x", N)), 3 * sized("x", N)))

    assert numbers.check(holds) == 15  # five assignments of sizes in three dtypes
    assert numbers.check(holds, numbers.MORE_SIZES) == 39  # ten, and the three small ones in three more


@pytest.mark.parametrize(
    ("sizes", "assumptions", "refused"),
    [("all x", {"positive": True}, True), ("all positive x", {"positive": True}, False), ("all x", {}, False)],
)
def test_any_number_is_of_any_sign(sizes, assumptions, refused):
    @theorem(of=[plain], sizes=sizes)
    def holds():
        x = symbols("x", 2, **assumptions)
        prove_equal(plain(x), [3 * x[0], 3 * x[1]])

    with pytest.raises(NotProved, match="one sign") if refused else contextlib.nullcontext():
        numbers.check(holds)


def test_the_tolerance_of_a_sum_is_that_of_its_terms():
    """n terms of size s in any order: n - 1 roundings of at most s u each, beside one for every product."""
    x = sized("x", N)
    number = numbers.Meter((64, 64)).number(summed(x).at(), {})
    terms = numbers.numeric(x, (64, 64), np.float64) ** 2
    assert number.magnitude == pytest.approx(terms.sum())
    assert number.error == pytest.approx(terms.sum() + 63 * terms.sum())


@pytest.mark.parametrize("value", [0.5, 3.0, -2.25])
def test_errors_of_elementary_functions_are_their_slopes(value):
    """One rounding of the argument moves e^x by e^x |x|, cos x by at most |x|, log x by 1, and each is off by four ulps."""
    x, y = sp.Symbol("x", real=True), sp.Rational(value)
    rounded = numbers.multiplied(numbers.known(value), numbers.known(1.0))
    exp = numbers.OPERATIONS[sp.exp](rounded)
    cos = numbers.OPERATIONS[sp.cos](rounded)
    assert exp.error == pytest.approx(np.exp(value) * (abs(value) + 8))
    assert cos.error == pytest.approx(abs(value) + 8 * abs(np.cos(value)))
    assert numbers.Meter((1, 1)).value(sp.exp(x).subs(x, y), {}) == np.exp(value)


def test_a_path_is_the_one_that_the_numbers_take():
    @theorem(of=[absolute], sizes="n = 2")
    def holds():
        for _, y in all_paths(lambda: absolute(symbols("x", 2))):
            prove_equal(y * y, symbols("x", 2) ** 2)

    assert numbers.check(holds) > 0


def test_all_sizes_are_those_of_the_calls():
    """The size that runs is not in the call."""

    @theorem(of=[plain], sizes="all n")
    def holds():
        n = N.e
        prove_equal([(n + 1) ** 2], [n**2 + 2 * n + 1])
        prove_equal(plain(symbols("x", 2)), 3 * symbols("x", 2))

    with pytest.raises(NotProved, match="says 'all n', and calls its functions with sizes that are numbers alone"):
        numbers.check(holds)


def absolute(x):
    return np.maximum(x, 0 - 1.0 * x)


def negated_and_doubled(x):
    return -x - x


def test_unsigned_integers_wrap():
    @theorem(of=[negated_and_doubled], sizes="all n")
    def holds():
        prove_equal(*entries(None, negated_and_doubled(sized("x", N)), -2 * sized("x", N)))

    with pytest.raises(Refuted, match=r"negated_and_doubled at size .* in uint8 returns 254, the model says -2"):
        numbers.check(holds, numbers.MORE_SIZES)


def test_who_compares_nothing_says_why():
    @theorem(of=[plain], sizes="no size")
    def without_a_call():
        prove_equal([1], [1])

    assert numbers.check(without_a_call) == 0
    assert numbers.silence(without_a_call) == ""
    without_a_call.silent = "it calls nothing"
    assert numbers.silence(without_a_call) == "it calls nothing"
