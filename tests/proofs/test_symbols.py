"""Scalars inside numpy, the paths through comparisons, and what counts as known."""

import itertools

import numpy as np
import pytest
import sympy as sp

from proofs.kit import Refuted, Scalar, Undecided, all_paths, array, assuming, index, prove_equal, size, symbol, symbols
from proofs.kit.cases import nonnegative
from proofs.kit.paths import decide

N, M = size("n"), size("m")


# scalars


def test_elementary_functions_act_on_every_entry():
    x = symbols("x", 2)
    for f in ("cos", "sin", "exp", "sqrt", "log", "cosh", "sinh", "tanh"):
        assert [e.e for e in getattr(np, f)(x)] == [getattr(sp, f)(e.e) for e in x]


def test_arithmetic_with_numbers_and_arrays_on_both_sides():
    x = symbol("x")
    assert ((2 - x) / 3 + x**2 - (-x)).e == (2 - x.e) / 3 + x.e**2 + x.e
    assert (7 // x).e == sp.floor(7 / x.e)
    assert (x % 3).e == sp.Mod(x.e, 3)
    assert (2**x).e == 2**x.e
    assert [e.e for e in x - np.arange(2)] == [x.e, x.e - 1]
    assert [e.e for e in np.arange(2) - x] == [-x.e, 1 - x.e]
    assert x.e * x == x.e**2  # an expression on the left answers in expressions


def test_products_of_matrices_are_the_sums_they_mean():
    a, b = symbols("a", 2, 3), symbols("b", 3, 2)
    expected = [[sum(a[i, k].e * b[k, j].e for k in range(3)) for j in range(2)] for i in range(2)]
    for product in (a @ b, np.einsum("ik,kj->ij", a, b), np.tensordot(a, b, axes=1), (a[:, :, None] * b[None]).sum(axis=1)):
        prove_equal(product, expected)
    with pytest.raises(Refuted):
        prove_equal(a @ b, np.transpose(expected).tolist())


def test_a_symbol_is_neither_true_nor_a_number():
    x = symbol("x")
    for strip in (bool, float, int, complex, lambda v: np.array([v]).astype(float), lambda v: np.zeros(2)[v], range):
        with pytest.raises((TypeError, IndexError)):
            strip(x)
    with pytest.raises(Undecided, match="outside all_paths"):
        _ = x < 1


def test_names_of_the_kit_are_reserved():
    for name in ("log_x", "_b0"):
        with pytest.raises(ValueError, match="a name of the kit's own"):
            symbol(name)
    assert symbol(f"i{0}", integer=True, nonnegative=True).e != index(N)


def test_floats_are_taken_exactly():
    assert Scalar(0.1).e == sp.Rational(3602879701896397, 2**55)
    assert (symbol("x") * 0.1 * 10 - symbol("x")).e != 0
    assert Scalar(0.5 + 0.25j).e == sp.Rational(1, 2) + sp.I / 4
    assert Scalar(np.bool_(True)).e == 1
    assert [e.e for e in array([0.5, 2])] == [sp.Rational(1, 2), 2]


# paths


def test_the_maximum_of_three_has_one_path_for_each_order_that_can_be():
    x = symbols("x", 3)
    found = {}
    for conditions, value in all_paths(lambda: x.max()):
        found.setdefault(value.e, []).append(conditions)
    assert set(found) == {e.e for e in x}
    assert sum(map(len, found.values())) == 4  # two comparisons, each both ways
    for point in itertools.product(range(3), repeat=3):
        at = dict(zip((e.e for e in x), point, strict=True))
        taken = [e for e, paths in found.items() for path in paths if all(bool(r.subs(at)) == a for r, a in path)]
        assert len(taken) == 1
        assert taken[0].subs(at) == max(point)


def test_clip_has_three_cases_and_no_other():
    i, j = symbol("i", integer=True), symbol("j", integer=True)
    k = symbol("K", integer=True, positive=True)
    cases = list(all_paths(lambda: np.minimum(np.maximum(np.array([j - i]), -k), k)[0]))
    assert {value.e for _, value in cases} == {j.e - i.e, -k.e, k.e}
    for offset, width in itertools.product(range(-4, 5), (1, 2, 3)):
        at = {i.e: 7, j.e: 7 + offset, k.e: width}
        taken = [value.e.subs(at) for path, value in cases if all(bool(r.subs(at)) == a for r, a in path)]
        assert taken == [max(-width, min(width, offset))]


def test_a_path_that_contradicts_itself_is_not_run():
    n = symbol("n", integer=True)
    seen = [path for path, _ in all_paths(lambda: (n > 3, n >= 4, n < 4, n <= 3, n > 2))]
    assert [[answer for _, answer in path] for path in seen] == [[True], [False, True], [False, False]]


def test_a_path_that_can_be_is_run():
    """Every answer for real a, b, c that some numbers give is among the paths, strict and not, in every order."""
    a, b, c = (symbol(name) for name in "abc")
    questions = [lambda: a < b, lambda: a <= b, lambda: b < c, lambda: c <= a, lambda: a == b, lambda: a != c, lambda: b >= a]
    for order in itertools.permutations(range(len(questions)), 3):
        asked = [questions[q] for q in order]
        results = {tuple(r) for _, r in all_paths(lambda asked=asked: [bool(ask()) for ask in asked])}
        for x, y, z in itertools.product(range(3), repeat=3):
            answers = [x < y, x <= y, y < z, z <= x, x == y, x != z, y >= x]
            assert tuple(answers[q] for q in order) in results, (order, x, y, z)


def test_integer_paths_that_can_be_are_run():
    a, b = symbol("a", integer=True), symbol("b", integer=True)
    asked = all_paths(lambda: (a < b, a + 1 < b, a >= b - 1, 2 * a > b, a == b))
    results = {tuple(map(bool, r)) for _, r in asked}
    for x, y in itertools.product(range(-4, 5), repeat=2):
        assert (x < y, x + 1 < y, x >= y - 1, 2 * x > y, x == y) in results, (x, y)


def test_answers_do_not_leak_from_path_to_path():
    x = symbol("x")
    answers = [bool(result) for _, result in all_paths(lambda: x > 0)]
    assert answers == [True, False]
    with pytest.raises(Undecided):
        decide(sp.Gt(x.e, 0))


def test_a_failing_run_leaves_nothing_behind():
    x = symbol("x")
    with pytest.raises(ZeroDivisionError):
        list(all_paths(lambda: (x > 0) / 0))
    with pytest.raises(Undecided):
        decide(sp.Gt(x.e, 0))


def test_too_many_paths_are_refused():
    x = symbols("x", 12)
    with pytest.raises(Undecided, match="more than 20 paths"):
        list(all_paths(lambda: [bool(e > 0) for e in x], limit=20))


# facts


def test_a_strict_inequality_of_reals_is_not_a_weak_one():
    x, y = symbol("x").e, symbol("y").e
    with assuming(sp.Ge(x, y)):
        assert decide(sp.Ge(x, y))
        assert not decide(sp.Lt(x, y))
        with pytest.raises(Undecided):
            decide(sp.Gt(x, y))
    with assuming(sp.Gt(x, y)), pytest.raises(Undecided):
        decide(sp.Ge(x, y + 1))
    with pytest.raises(Undecided):
        decide(sp.Ge(x, y))


def test_a_strict_inequality_of_integers_is_one_more():
    a, b = symbol("a", integer=True).e, symbol("b", integer=True).e
    with assuming(sp.Gt(a, b)):
        assert decide(sp.Ge(a, b + 1))
        assert not decide(sp.Le(a, b))
        with pytest.raises(Undecided):
            decide(sp.Ge(a, b + 2))
    with assuming(sp.Eq(a, b)):
        assert decide(sp.Le(a, b))
        assert decide(sp.Ge(a, b))


def test_hypotheses_end_with_their_block():
    a = symbol("a", integer=True).e
    with assuming(sp.Ge(a, 5)):
        with assuming(sp.Le(a, 7)):
            assert decide(sp.Le(a, 7))
        with pytest.raises(Undecided):
            decide(sp.Le(a, 7))
        assert decide(sp.Ge(a, 4))
    with pytest.raises(Undecided):
        decide(sp.Ge(a, 4))


def test_nonnegative_is_true_of_all_values_or_false():
    """Against all values up to 4: whenever it says yes, it is so."""
    (N, M), (i, j) = (size(name).e for name in "nm"), (index(size("n")), index(2 * size("m")))
    candidates = [N - 1, N - 2, N - i, N - i - 1, N - i - 2, 2 * M - j - 1, 2 * M - j - 2, M - j, 2 * M - 1, i - 1, N * M - N]
    candidates += [
        N - i - 1 + j,
        N * (M + N - 1),
        N * M - N - 1,
        i * M - i,
        N - i - 1 - j,
        4 * M - 2 * j - 2,
        N**2 - N,
        i * N + j,
    ]
    verdicts = {e: nonnegative(e) for e in candidates}
    for n, m in itertools.product(range(1, 5), repeat=2):
        for a, b in itertools.product(range(n), range(2 * m)):
            for e, verdict in verdicts.items():
                assert not verdict or e.subs({N: n, M: m, i: a, j: b}) >= 0, e
    assert [e for e, verdict in verdicts.items() if verdict][:3] == [N - 1, N - i, N - i - 1]


def test_an_index_is_below_its_length_whatever_that_is():
    n, memory = size("n").e, sp.Symbol("memory", integer=True, nonnegative=True)
    i = index(n)
    j = index(memory + 1 + i)  # the keys that query i may see
    assert nonnegative(memory + i - j)
    assert nonnegative(memory + n - 1 - j)
    assert not nonnegative(memory + i - 1 - j)
    assert not nonnegative(memory + n - 2 - j)
