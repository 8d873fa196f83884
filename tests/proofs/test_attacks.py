"""Attacks on the proof kit: each body claims something false; the kit must refuse it, refute it, or record a hypothesis.

Somebody will write code like this, or a theorem like this. An attack that is accepted is the worst bug the project can have.
"""

import _thread
import contextlib
import functools
import inspect
import itertools
import operator
import os
import random
import sys
import time
import types
from typing import NamedTuple

import numpy as np
import pytest
import sympy as sp

from posref import _require, attention, pairing
from posref._contract import Array, Numbers, SignedIntegers, contract
from posref.rotary import rope
from proofs.kit import *
from proofs.kit import honest, numbers, watch
from proofs.kit.loops import Cells, Loop, covers
from proofs.kit.record import RECORD

N, M, H = size("n"), size("m"), size("h")


def same(f, *shape, make=sized):
    prove_equal(*entries(None, f(make("x", *shape)), make("x", *shape)))


def concrete(f):
    x = symbols("x", 2)
    prove_equal(f(x), x)


def attack(f):
    ATTACKS[f.__name__] = f
    return f


def true(f):
    TRUE[f.__name__] = f
    return f


def proved(body):
    """The attack as a theorem, so that cases of sizes can run; raises what made it fail."""
    t = theorem(of=[], sizes="all n")(body)
    t.prove()


# what is claimed to return its argument, and the shape of the argument
IDENTITIES = {
    "size_equals_number": (lambda x: x + 1 if x.shape[-1] == 512 else x, N),
    "size_differs_from_number": (lambda x: x if x.shape[-1] != 96 else 3 * x, N),
    "double_size_equals_number": (lambda x: x + 1 if x.shape[-1] == 64 else x, 2 * H),
    "odd_size": (lambda x: -x if x.shape[-1] % 2 else x, N),
    "multiple_of_three": (lambda x: -x if x.shape[-1] // 3 * 3 == x.shape[-1] else x, N),
    "membership": (lambda x: -x if x.shape[-1] in (48, 80) else x, N),
    "membership_in_set": (lambda x: -x if x.shape[-1] in {48, 80} else x, N),
    "dictionary": (lambda x: {80: -x}.get(x.shape[-1], x), N),
    "whole_shape": (lambda x: -x if x.shape == (7, 7) else x, N, M),
    "less_than": (lambda x: -x if x.shape[-1] < 17 else x, N),
    "greater_than": (lambda x: -x if x.shape[-1] > 4095 else x, N),
    "one_row": (lambda x: 0 * x if x.shape[0] == 1 else x, N),
    "number_of_cells": (lambda x: -x if x.size == 64 else x, N),
    "minimum_of_sizes": (lambda x: x * (1 if max(x.shape[-1], 32) == x.shape[-1] else 2), N),
    "branch_on_float32": (lambda x: -x if x.dtype == np.float32 else x, N),
    "branch_on_itemsize": (lambda x: -x if x.dtype.itemsize == 4 else x, N),
    "branch_on_kind": (lambda x: -x if x.dtype.kind == "f" else x, N),
    "branch_on_name": (lambda x: -x if str(x.dtype) == "float64" or x.dtype.name == "float64" else x, N),
    "cast_to_half": (lambda x: x.astype(np.float16), N),
    "cast_to_integer": (lambda x: x.astype(np.int64), N),
    "every_size_but_one_by_a_product": (lambda x: -x if x.shape[0] * x.shape[1] == 35 else x, N, M),
    "size_as_a_truth": (lambda x: x if x.shape[0] - 5 else -x, N),
    "power_of_two": (lambda x: -x if x.shape[0] & (x.shape[0] - 1) == 0 else x, N),
    "size_as_text": (lambda x: -x if str(x.shape[0]) == "128" else x, N),
    "size_as_text_of_a_shape": (lambda x: -x if f"{x.shape}" == "(128,)" else x, N),
    "size_as_an_index_of_a_table": (lambda x: x * [1, 1, 1, 2][min(x.shape[0], 3)], N),
    "size_as_a_number": (lambda x: -x if int(x.shape[0]) == 3 else x, N),
    "size_as_a_float": (lambda x: -x if float(x.shape[0]) == 3.0 else x, N),
    "a_length": (lambda x: -x if len(x) == 3 else x, N),
    "a_loop_over_rows": (lambda x: x + sum(1 for _ in range(x.shape[0])) - sum(1 for _ in x), N),
    "divisibility_by_a_divmod": (lambda x: -x if divmod(x.shape[0], 3)[1] == 1 else x, N),
    "round_of_a_size": (lambda x: -x if round(x.shape[0] / 2) * 2 == x.shape[0] else x, N),
    "type_of_the_array": (lambda x: -x if isinstance(x, np.ndarray) else x, N),
}
TRUE_IDENTITIES = {
    "equal_shapes": (lambda x: x if x.shape == (x + 0).shape else -x, N, M),
    "even_width": (lambda x: x if x.shape[-1] % 2 == 0 else -x, 2 * H),
}
# what is claimed of two concrete symbols to be them
CONCRETE = {
    "dtype_of_concrete_symbols": lambda x: -x if x.dtype == np.float32 else x,
    "kind_of_concrete_symbols": lambda x: -x if x.dtype.kind == "f" else x,
    "cast_of_concrete_symbols": lambda x: x.astype(np.float16),
    "write_with_out": lambda x: np.add(x, x, out=x),
}
# what is claimed to be the same in every cell
CELLS = {
    "two_sizes_equal": lambda q, k: (2 * q if q.shape[0] == k.shape[0] else q, q),
    "two_sizes_equal_plus_one": lambda q, k: (0 * q if q.shape[0] + 1 == k.shape[0] + 1 else q, q),
    "difference_of_sizes": lambda q, k: (-q if k.shape[0] - q.shape[0] == 7 else q, q),
    "size_as_argument": lambda q, k: ((lambda x, n: -x if n == 77 else x)(q, N), q),
    "ones_of_bool": lambda q, k: (np.ones_like(q, dtype=bool) + np.ones_like(q, dtype=bool), filled((N,), 2)),
    "sum_of_booleans": lambda q, k: ((q < 2 * q) + (q < 2 * q), 2 * (q < 2 * q)),
    "integers_to_a_negative_power": lambda q, k: ((2 + 0 * (p := integers("p", N))) ** (-p) * 2**p, 1 + 0 * p),
}
# two expressions that are claimed to be equal
EXPRESSIONS = {
    "all_but_the_last_are_all": lambda: ((x := sized("x", N))[:-1].at(i := index(N)), x.at(i)),
    "key_of_a_value": lambda: ({3: -(m := symbol("m", integer=True))}.get(m, m), m),
    "float_of_sympy": lambda: ((x := symbol("x").e) * 0.1 * 10, x),
    "sum_of_less_than_no_terms": lambda: (sp.Sum(1, (K, 0, N.e - 7)), N.e - 6),
    "text_as_a_number": lambda: (Scalar(size("n").e) * "n", size("n").e ** 2),
}
# a term, what is claimed to be its sum up to n, and n
K, POSITIVE, NONNEGATIVE = symbol("k", integer=True).e, size("k").e, sp.Symbol("k", integer=True, nonnegative=True)
INDUCTIONS = {
    "induction_by_functions": (lambda r: 1, lambda k: 0 if k == 0 else k + 4, K),
    "induction_over_a_number": (sp.Integer(1), K + 5 * K * (K - 4) * (K - 5), sp.Integer(4)),
    "induction_over_a_positive_size": (sp.Integer(1), POSITIVE + 3 - 3 * sp.Integer(0) ** POSITIVE, POSITIVE),
    "induction_with_a_power_of_zero": (sp.Integer(1), NONNEGATIVE + 3 - 3 * sp.Integer(0) ** NONNEGATIVE, NONNEGATIVE),
    "induction_without_a_base": (sp.Integer(1), K + 1, K),
    "induction_over_cases": (sp.Piecewise((50, sp.Eq(K, 0)), (1, True)), K, K),
    "induction_that_floors": (sp.Integer(0), K - 2 * sp.floor(K / 2), K),
}
ATTACKS = {name: lambda row=row: same(*row) for name, row in IDENTITIES.items()}
ATTACKS |= {name: lambda f=f: concrete(f) for name, f in CONCRETE.items()}
ATTACKS |= {name: lambda f=f: prove_equal(*entries(None, *f(sized("q", N), sized("k", M)))) for name, f in CELLS.items()}
ATTACKS |= {name: lambda f=f: prove_equal(*([each] for each in f())) for name, f in EXPRESSIONS.items()}
ATTACKS |= {name: lambda row=row: prove_induction(*row) for name, row in INDUCTIONS.items()}
TRUE = {name: lambda row=row: same(*row) for name, row in TRUE_IDENTITIES.items()}


# sizes


# dtypes


@attack
def store_into_integers():
    def half(p):
        out = np.empty_like(p)
        out[:] = p / 2
        return out

    prove_equal(*entries(None, half(integers("p", N)), integers("p", N) / 2))


@attack
def keyword_swallowed():
    def f(x):
        out = np.zeros_like(x, dtype=np.int32)
        out[:] = x
        return out

    same(f, N)


# writes


@attack
def write_to_symbols():
    def f(x):
        x *= 2
        return x

    x = symbols("x", 3)
    prove_equal(f(x), x)


@attack
def write_to_cells():
    def f(x):
        x[0] = 0 * x[0]
        return x

    x = symbols("x", 3)
    prove_equal(f(x), x)


@attack
def write_to_sized():
    def f(x):
        x[:] = 2 * x
        return x

    x = sized("x", N)
    prove_equal(*entries(None, f(x), x))


# kernels


def two_outputs(x, other, out):
    for i in range(x.shape[0]):
        out[i] = x[i]
        other[0] = x[i]


@attack
def unchecked_output():
    x, out = sized("x", N), Output((N,))
    prove_kernel(two_outputs, [x, Output((N,)), out], (out, x))


def squares(x, y, out):
    for i in range(x.shape[0]):
        out[i] = x[i] * x[i]


@attack
def one_array_for_two_of_a_kernel():
    x, out = sized("x", N), Output((N,))
    prove_kernel(squares, [x, x, out], (out, x * x))


def lays_out(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i]


SUM = [0]


def helper(x, i):
    SUM[0] = SUM[0] + x[i]
    return SUM[0]


def with_state(x, out):
    for i in range(x.shape[0]):
        out[i] = helper(x, i)


@attack
def helper_with_state():
    SUM[0] = 0
    x, out = sized("x", N), Output((N,))
    prove_kernel(with_state, [x, out], (out, x))


@attack
def kernel_of_its_own_writes():
    x, out = sized("x", N), Output((N,))
    prove_kernel(lays_out, [x, out], (out, SizedArray((N,), lambda *_: out.writes[-1][1])))


# refutations of what is true


f, x, y = sp.Function("f", real=True), symbol("x").e, symbol("y").e
HUGE = sp.exp(200 * x)
EQUAL = {
    "polynomial": (f((x + 1) ** 2), f(x**2 + 2 * x + 1)),
    "circle": (f(sp.cos(x) ** 2 + sp.sin(x) ** 2), f(sp.Integer(1))),
    "where_a_denominator_is_0": (f((x**2 - 1) / (x - 1)), f(x + 1)),
    "a_symbol_that_is_0": (3 * sp.Symbol("z", zero=True), sp.Integer(0)),
    "a_function_that_is_0": (3 * sp.Function("g", zero=True)(x), sp.Integer(0)),
    "large_numbers": (
        HUGE * sp.tanh(x + y) * (1 + sp.tanh(x) * sp.tanh(y)),
        HUGE * (sp.tanh(x) + sp.tanh(y)),
    ),
}


SLOW = "large_numbers"  # six seconds


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name == SLOW)) for name in EQUAL])
def test_what_is_true_is_not_refuted(name):
    left, right = EQUAL[name]
    with contextlib.suppress(Undecided):
        prove_equal([left], [right])


# hypotheses


@attack
def contradictory_hypotheses():
    p, i = integers("p", N), index(N)
    with assuming(sp.Ge(p.at(i), 2), sp.Le(p.at(i), 1)):
        got = np.maximum(p, 9).at(i)
    prove_equal([got], [p.at(i)])


# more of the same kinds


@attack
def an_exception_as_a_branch():
    def f(x):
        try:
            return -x if x.shape[0] == 9 else x
        except Exception:
            return x

    same(f, N)


@attack
def an_exception_as_a_branch_on_a_dtype():
    def f(x):
        try:
            return -x if x.dtype == np.float32 else x
        except Exception:
            return x

    same(f, N)


@attack
def store_into_concrete_integers():
    p = symbols("p", 2, integer=True)
    out = np.empty_like(p)
    out[:] = p / 2
    prove_equal(out, [e / 2 for e in p])


@attack
def store_into_a_view_of_integers():
    p = symbols("p", 2, integer=True)
    out = np.zeros_like(p)
    out[:1][:] = p[:1] / 2
    prove_equal([out[0]], [p[0] / 2])


@attack
def write_through_a_view():
    x = symbols("x", 2)
    x[:1][...] = 0
    prove_equal(x, x)


@attack
def write_to_an_array_of_expressions():
    x = array([symbol("x"), 1])
    x += 1
    prove_equal(x, x)


@attack
def write_through_a_view_of_sized():
    x = sized("x", N, M)
    x[..., :1][...] = 0
    prove_equal(*entries(None, x, x))


@attack
def path_left_early():
    x = symbol("x")
    for _, value in all_paths(lambda: x if x > 0 else -x):
        prove_equal([value], [x])
        break


@attack
def path_that_claims_nothing():
    x = symbol("x")
    for asked, value in all_paths(lambda: abs(x)):
        if asked[0][1]:
            prove_equal([value], [x])


@attack
def name_of_the_kit():
    i = index(N)
    prove_equal([symbol(i.name, integer=True, nonnegative=True).e], [i])


@attack
def hypothesis_that_is_false():
    x = symbol("x")
    with assuming(sp.false):
        prove_equal([x], [x + 0])


@attack
def hypotheses_that_contradict():
    a = symbol("a", integer=True).e
    with assuming(sp.Gt(a, 3), sp.Lt(a, 2)):
        prove_equal([a], [a])


@attack
def nothing_asserted():
    pass


@attack
def refutation_caught():
    x = symbol("x")
    for _, value in all_paths(lambda: x if x > 0 else -x):
        with contextlib.suppress(Refuted):
            prove_equal([value], [x])


@attack
def fact_caught():
    with contextlib.suppress(AssertionError):
        prove_that(len(symbols("x", 2)) == 3, "two are three")
    prove_equal([symbol("x")], [symbol("x")])


@attack
def undecided_claim_caught():
    with contextlib.suppress(Undecided):
        prove_equal([sp.Abs(symbol("x").e)], [symbol("x")])
    prove_equal([symbol("x")], [symbol("x")])


@attack
def question_caught():
    with contextlib.suppress(BaseException):
        pairing.split(sized("x", N), "half")
    prove_equal([symbol("x")], [symbol("x")])


@attack
def symbol_that_is_odd():
    prove_equal([(-1) ** symbol("k", odd=True).e], [-1])


@attack
def entry_of_two_arrays():
    prove_equal(symbols("x", 2, 2)[1], symbols("x_1", 2))


# functions that can tell symbols from numbers, the kit from a user, or one call from the next

CALLS, SERIAL, CACHE = {"n": 0}, itertools.count(), []


@functools.lru_cache
def remembered(n):
    return 1


def counting_helper(x):
    return x


counting_helper.count = []


class Keeper(NamedTuple):
    count: int = 0
    seen = CACHE


def changes_sign(v):
    CACHE.append(v)
    return v if len(CACHE) < 1000 else -v


BY_PYTHON = np.frompyfunc(changes_sign, 1, 1)


def counts_in_an_attribute(x):
    counts_in_an_attribute.calls = getattr(counts_in_an_attribute, "calls", 0) + 1
    return x if counts_in_an_attribute.calls < 100 else -x


def reads_its_code(x):
    return x if reads_its_code.__code__.co_filename.endswith(".py") else -x


def asks_for_the_name_of_the_type(x):
    return x if type(x).__name__ == "SizedArray" else -x


def decorated(f):
    @functools.wraps(f)
    def counting(x):
        CACHE.append(x)
        return f(x) if len(CACHE) < 100 else -x

    return counting


@decorated
def innocent(x):
    return x


def pretending(f):
    counting = decorated(f)
    counting.contract = pairing.split.contract
    return counting


@pretending
def pretends_to_have_a_contract(x):
    return x


class Counting(tuple):
    def __len__(self):
        CACHE.append(1)
        return len(CACHE) // 100


class Adding(NamedTuple):
    start: int = 0

    def __add__(self, other):
        CACHE.append(other)
        return len(CACHE) // 100


class Keeping(NamedTuple):
    seen: list = CACHE


class Layout(NamedTuple):
    itemsize: int = 8


class Telling:
    """Functions without a self: the class is their list."""

    def counts_in_a_dictionary(x):
        CALLS["n"] += 1
        return x if CALLS["n"] < 100 else -x

    def counts_in_an_iterator(x):
        return x if next(SERIAL) < 100 else -x

    def counts_in_a_default(x, seen=[]):  # noqa: B006
        seen.append(1)
        return x if len(seen) < 100 else -x

    def counts_in_a_global(x):
        global TURN
        TURN = x
        return TURN

    def returns_the_first(x):
        CACHE.append(x)
        return CACHE[0]

    def remembers(x):
        return x * remembered(3)

    def reads_the_environment(x):
        return -x if os.environ.get("POSREF") else x

    def calls_the_system(x):
        return -x if os.getenv("POSREF") else x

    def throws_dice(x):
        return -x if random.random() < 1e-9 else x

    def throws_dice_of_numpy(x):
        return -x if np.random.default_rng().random() < 1e-9 else x

    def reads_the_clock(x):
        return -x if time.time() > 4e9 else x

    def reads_the_frame(x):
        return x if "kit" in sys._getframe(2).f_code.co_filename else -x

    def reads_the_modules(x):
        return x if "sympy" in sys.modules else -x

    def asks_whether_it_is_an_array(x):
        return -x if isinstance(x, np.ndarray) else x

    def asks_for_an_attribute_of_the_kit(x):
        return x if hasattr(x, "extents") else -x

    def asks_for_the_order_in_memory(x):
        return -x if getattr(x, "flags", None) is not None and x.flags.c_contiguous else x

    def asks_whether_two_are_one(x):
        return -x if x.shape[0] is x.shape[-1] else x

    def asks_for_the_dtype_by_is(x):
        return -x if x.dtype is np.float32 else x

    def asks_for_the_dtype_of_its_entries(x):
        return -x if np.array([x[0], x[1]]).dtype == object else x

    def reads_memory_that_nobody_wrote(x):
        return x + 0 * np.empty(x.shape)

    def binds_a_word_in_a_scope_of_its_own(x):
        [getattr for getattr in ()]
        return -x if getattr(x, "flags", None) is not None else x

    def binds_a_list_in_a_scope_of_its_own(x):
        return -x if len([CACHE for CACHE in CACHE]) > 100 else x

    def counts_in_an_attribute_of_a_helper(x):
        counting_helper.count.append(1)
        return x if len(counting_helper.count) < 100 else -x

    def counts_in_a_class(x):
        Keeper.seen.append(1)
        return x if len(Keeper.seen) < 100 else -x

    def counts_in_a_default_of_a_record(x):
        Keeping().seen.append(1)
        return x if len(Keeping().seen) < 1000 else -x

    def counts_in_a_ufunc_of_its_own(x):
        return BY_PYTHON(x)

    def counts_in_a_check(x):
        return x * _require.integer("attacks", "x", CACHE.append(1) or 1 + len(CACHE) // 1000)

    def asks_in_a_check(x):
        _require.ordered("f", "a", 0, "b", len((y := -x if type(x).__name__ == "ndarray" else x,)))
        return y

    def appends_to_an_argument(x, seen=()):
        seen.append(x)
        return x

    def calls_what_pretends(x):
        return pretends_to_have_a_contract(x)

    def calls_a_check_of_its_own(x):
        _require = x
        _require.partition(0)
        return x

    def writes_it_as_a_text(x):
        return x if "%s" % (x,) else -x  # noqa: UP031

    def has_an_else_after_a_loop(x):
        for _ in range(3):
            x = x + 0
        else:
            x = -x
        return x

    def asks_for_the_dtype_by_numpy(x):
        return -x if np.issubdtype(x.dtype, np.floating) else x

    def asks_what_can_be_cast(x):
        return -x if np.can_cast(x.dtype, np.float32) else x

    def asks_for_the_identity(x):
        return -x if id(x.shape[0]) == id(77) else x

    def asks_for_the_text(x):
        return -x if str(x[0]) == "3" else x

    def asks_for_the_text_by_a_literal(x):
        return -x if f"{x}".startswith("[") else x

    def asks_for_the_hash(x):
        return -x if hash(x.shape[0]) == 77 else x

    def tries_a_length(x):
        try:
            return -x if len(x) == 3 else x
        except TypeError:
            return x

    def tries_bits(x):
        try:
            return -x if x.shape[0].bit_length() > 3 else x
        except AttributeError:
            return x

    def tries_a_function_that_the_kit_has_not(x):
        try:
            return 1 + np.rint(x)
        except Exception:
            return x

    def suppresses(x):
        with contextlib.suppress(BaseException):
            return -x if x.shape[0] == 7 else x
        return x

    def matches(x):
        match x.shape[0]:
            case int():
                return -x
            case _:
                return x

    def vectorizes(x):
        return np.vectorize(lambda v: v, otypes=[object])(x)

    def thaws(x):
        x.frozen = False
        x[...] = 2 * x
        return x

    def multiplies_a_text(x):
        return -x if x.shape[0] * "a" == "aaaaaaa" else x

    def calls_what_is_decorated(x):
        return innocent(x)

    def counts_in_a_length(x):
        return -x if len(Counting()) else x

    def counts_in_a_method_of_a_record(x):
        return x + (Adding() + 1)

    def asks_for_memory_by_the_name_of_a_field(x):
        return x if x.itemsize == Layout().itemsize else -x

    def asks_in_a_helper(x):
        return asks_for_the_name_of_the_type(x)

    def takes_a_module_as_a_value(x):
        return x if vars(np)["pi"] > 3 else -x

    def imports(x):
        import posref

        return x if posref else -x


NAMED_BY_OTHERS = (counts_in_an_attribute, reads_its_code, asks_for_the_name_of_the_type, pretends_to_have_a_contract)
TELLING = {f.__name__: f for f in (*NAMED_BY_OTHERS, *vars(Telling).values()) if inspect.isfunction(f)}


@pytest.mark.parametrize("name", TELLING)
def test_functions_that_can_tell_are_refused(name):
    t = theorem(of=[TELLING[name]], sizes="all n")(lambda: same(TELLING[name], N))
    with pytest.raises(Undecided, match="are formulas"):
        t.prove()


def with_a_number(x, seen=0):
    return x + 0 * len((seen,))


def test_what_passed_is_a_function_and_not_its_code():
    """Two functions of one code differ by what they keep."""
    keeping = types.FunctionType(with_a_number.__code__, globals(), "keeping", ([],))
    theorem(of=[with_a_number], sizes="all n")(lambda: same(with_a_number, N)).prove()
    with pytest.raises(Undecided, match="the default"):
        theorem(of=[keeping], sizes="all n")(lambda: same(keeping, N)).prove()


def with_a_default(x, out, seen=[0]):  # noqa: B006
    for i in range(x.shape[0]):
        seen[0] = seen[0] + x[i]
        out[i] = seen[0]


def sums(x, i, seen=[0]):  # noqa: B006
    seen[0] = seen[0] + x[i]
    return seen[0]


def with_a_default_of_a_helper(x, out):
    for i in range(x.shape[0]):
        out[i] = sums(x, i)


def with_an_iterator(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i] * next(SERIAL)


def with_the_type_of_an_index(x, out):
    for i in range(x.shape[0]):
        out[i] = -x[i] if isinstance(i, int) else x[i]


@pytest.mark.parametrize("kernel", [with_a_default, with_a_default_of_a_helper, with_an_iterator, with_the_type_of_an_index])
def test_kernels_that_can_tell_are_refused(kernel):
    x, out = sized("x", N), Output((N,))
    with pytest.raises(Undecided):
        prove_kernel(kernel, [x, out], (out, x))


# what a theorem says and does not show


def double(x):
    return x + x


def absolute(x):
    return np.where(x >= 0, x, -x)


def summed(x, n):
    total = 0 * x
    for _ in range(1, n):
        total = total + x
    return total


def last_path():
    """|x| = -x"""
    x = symbols("x", 1)
    for _, y in all_paths(lambda: absolute(x)):
        last = y
    prove_equal([last[0] * (1 + last[0])], [-x[0] + x[0] ** 2])


def one_of_the_paths():
    """|x| = x"""
    x = symbols("x", 1)
    first = next(y for _, y in [*all_paths(lambda: absolute(x))][:1])
    prove_equal([first[0] * (1 + first[0])], [x[0] + x[0] ** 2])


def paths_by_another_name():
    """|x| = x"""
    x, paths = symbols("x", 1), all_paths
    (_, first), *_ = paths(lambda: absolute(x))
    prove_equal([first[0] * (1 + first[0])], [x[0] + x[0] ** 2])


def one_cell():
    """double(x) = 2 x"""
    prove_equal(double(symbols("x", 1)), 2 * symbols("x", 1))


def zero():
    """double(x) = 3 x"""
    prove_equal(double(np.array([0])), [3 * 0])


def pinned_by_its_own_value():
    """It is 3 x."""
    prove_equal(y := double(symbols("x", 2)), y)


def itself_beside_another_claim():
    """double(x) = 3 x"""
    x = symbols("x", 2)
    prove_equal(double(x), double(x))
    prove_equal([(x[0] + 1) ** 2], [x[0] ** 2 + 2 * x[0] + 1])


def a_result_left_lying():
    """double(x) = 3 x"""
    x = symbols("x", 2)
    double(x)
    prove_equal([(x[0] + 1) ** 2], [x[0] ** 2 + 2 * x[0] + 1])


def pinned_by_a_default(function=double):
    """It is 3 x."""
    prove_equal(double(symbols("x", 2)), function(symbols("x", 2)))


def turns_of_which_nobody_knows_how_many():
    """summed(x, n) = n x"""
    x, loop = symbol("x"), Loop(summed, 0)
    names = loop.before({"x": x, "n": symbol("n", integer=True)})
    loop.turns(names)
    after = loop.turn({**names, "total": symbol("t")}, _=symbol("k", integer=True))
    prove_equal([names["total"], after["total"]], [0, symbol("t") + x])
    prove_equal([loop.after({**names, "total": symbol("s")})["returned"]], [symbol("s")])
    covers(summed)


def product(q, k):
    return q * q


def chosen(x, mask):
    return np.where(mask, x, x)


def of_arguments(function, *arguments):
    """A body that calls a function with these arguments, which are made in the body."""

    def body():
        """double(x) is 2 x, product(q, k) is q^2, and chosen is x."""
        given = [make() for make in arguments]
        expected = {double: lambda x: 2 * x, product: lambda q, k: q * q, chosen: lambda x, mask: x}[function](*given)
        prove_equal(
            *(entries(None, function(*given), expected) if isinstance(expected, SizedArray) else (function(*given), expected))
        )

    return body


def at_pi():
    """double(x) y is 2 x y, for every x."""
    y = symbol("y")
    prove_equal(y * double(array([sp.pi])), [2 * sp.pi * y.e])


def one_entry():
    return symbols("x", 1)


def for_all_sizes():
    """double(x) is x + x, for all n and all d."""
    one_cell()


def from_nothing_on():
    """double(x) = 2 x, for n >= 0"""
    prove_equal(*entries(None, double(sized("x", N)), 2 * sized("x", N)))


def entry_of_an_array():
    """double(x) + y = 3 x"""
    x, y = symbols("x", 1), symbol("x_0")
    prove_equal([double(x)[0] + y], [3 * x[0]])


def at_one_size_too():
    """double(x) = 2 x, whose entries add up to 2 x_0."""
    prove_equal(*entries(None, double(sized("x", N)), 2 * sized("x", N)))
    x = symbols("x", 1)
    prove_equal([double(x).sum()], [2 * x[0]])


def at_one_length_too():
    """A score is q_0 k_0 + q_1 k_1, and linear in q."""
    q, k, i, j, c = sized("q", N, 2), sized("k", M, 2), index(N), index(M), symbol("c")
    prove_equal([attention.scores(q, k, scale=1).at(i, j)], [q.at(i, 0) * k.at(j, 0) + q.at(i, 1) * k.at(j, 1)])
    q, k = sized("q", N, size("d")), sized("k", M, size("d"))
    prove_equal(*entries(None, attention.scores(c * q, k, scale=1), c * attention.scores(q, k, scale=1)))


def softmax_of(*shape):
    """A body about scores of this shape."""

    def body():
        """More in all scores changes no weight."""
        s = sized("s", *shape)
        prove_equal(*entries(None, attention.softmax(s + symbol("c").e), attention.softmax(s)))

    return body


def for_what_is_above_zero():
    """|x| is x."""
    x = symbol("x")
    with assuming(sp.Ge(x.e, 0)):
        for _, y in all_paths(lambda: absolute(array([x]))):
            prove_equal(y, [x])


def for_whole_numbers_above_four():
    """max(x, 5) is x, for x >= 0."""
    x = symbol("x", integer=True, nonnegative=True)
    with assuming(sp.Ge(x.e, 5)):
        for _, y in all_paths(lambda: at_least(array([x]), 5)):
            prove_equal(y, [x])


def for_the_larger_of_two():
    """max(x, low) is x."""
    x, low = symbol("x", integer=True), symbol("low", integer=True)
    with assuming(sp.Ge(x.e, low.e)):
        for _, y in all_paths(lambda: at_least(array([x]), low)):
            prove_equal(y, [x])


def for_entries_above_four():
    """max(x, 2) is x, entry by entry."""
    x, i = integers("x", N), index(N)
    with assuming(sp.Ge(x.at(i), 2)):
        for _, y in all_paths(lambda: at_least(x, 2).at(i)):
            prove_equal([y], [x.at(i)])


def for_long_arrays():
    """double of x without its first four is 2 x without them, for all n."""
    x = sized("x", N)
    with assuming(sp.Ge(N.e, 5)):
        prove_equal(*entries(None, double(x[4:]), 2 * x[4:]))


def at_least(x, low):
    return np.maximum(x, low)


def a_premise_of_nothing():
    """double(x) = 2 x"""
    one_cell()
    premise(True, "3 + 4 = 7")


def a_premise_about_a_function():
    """double(x) = 2 x; double(3) is 7."""
    one_cell()
    premise(sp.Integer(3) + 4 == 7, "double(3) is 7")


def as_far_as_the_first():
    """double(x) = 2 x; double(n) = n^2 for n < 9."""
    one_cell()
    for n in range(2, 9):
        prove_that(double(n) == n * n, "n^2")
        break


def nearly():
    """double(x) = 2 x; double(10^9) is 2 10^9 + 1."""
    one_cell()
    prove_that(np.allclose(double(1e9), 2e9 + 1), "2 10^9 + 1")


def with_the_kit_in_hand():
    """double(x) = 3 x"""
    from proofs.kit import claims

    one_cell()
    claims.KNOWN = claims.KNOWN


def with_a_module_of_the_kit():
    """double(x) = 3 x"""
    one_cell()
    numbers.SIZES = numbers.SIZES


ONE_FOR_TWO = symbols("c", 1)
OF_ONE = (lambda: symbols("q", 2)), (lambda: 2 * symbols("q", 2) + 1)  # the second is made of the first
CODE = {"as_written": "formula"}
SAID = [
    (last_path, absolute, "one", {}, "claims nothing on the paths of"),
    (one_of_the_paths, absolute, "one", {}, "takes some of the paths"),
    (paths_by_another_name, absolute, "one", {}, "writes all_paths for all_paths; call all_paths by its name"),
    (a_premise_of_nothing, double, "one", CODE, "has the premise True, of which nothing is computed"),
    (a_premise_about_a_function, double, "one", CODE, "has a premise about what it proves"),
    (as_far_as_the_first, double, "one", {}, "leaves a loop in line 6 of as_far_as_the_first early"),
    (nearly, double, "one", {}, "calls np.allclose, which accepts nearby numbers"),
    (with_the_kit_in_hand, double, "one", CODE, "reaches into what judges it, by from proofs.kit import claims"),
    (with_a_module_of_the_kit, double, "one", CODE, "reaches into what judges it, by numbers.SIZES"),
    (of_arguments(double, lambda: array([N])), double, "all n", CODE, "says all n, and n is an entry of an argument"),
    (of_arguments(product, *OF_ONE), product, "one", CODE, "gives product k made of q in all calls, and speaks of both"),
    (one_cell, double, "all text lengths", CODE, "says 'all text lengths', and runs x_0"),
    (at_pi, double, "one", CODE, "says any x, and double.* gets entries that are equal"),
    (of_arguments(double, lambda: array([symbol("a"), 0])), double, "all x", CODE, "gets entries that are equal, or numbers"),
    (of_arguments(double, lambda: array([symbol("a")] * 4)), double, "all x", CODE, "gets entries that are equal, or numbers"),
    (of_arguments(double, lambda: filled((N,), symbol("a"))), double, "all x", CODE, "gets entries that are equal, or numbers"),
    (of_arguments(chosen, one_entry, lambda: np.array([True])), chosen, "all masks", CODE, "gets one mask alone"),
    (of_arguments(product, *[lambda: ONE_FOR_TWO] * 2), product, "one", CODE, "gives product one array for q and k"),
    (for_all_sizes, double, "one", CODE, "says 'for all n and all d', and runs x_0"),
    (one_cell, double, "each n", CODE, "says 'each n', and runs x_0"),
    (one_cell, double, "all numbers of tokens", CODE, "says 'all numbers of tokens', and runs x_0"),
    (one_cell, double, "one, hence all n", CODE, "says 'hence all n' and does not say why; pass argument="),
    (from_nothing_on, double, "all n", CODE, "says n >= 0, and runs n >= 1"),
    (entry_of_an_array, double, "one", CODE, "two arrays 'x_0' and 'x' with one entry x_0"),
    (one_cell, double, "any length", CODE, "says 'any length', and runs x_0"),
    (zero, double, "one", CODE, "calls its functions with numbers alone; make it an @example"),
    (zero, double, "every x, for example 0", CODE, "says 'every x, for example 0', and runs numbers alone"),
    (pinned_by_its_own_value, double, "one", {}, "expects y, which double computes"),
    (itself_beside_another_claim, double, "one", {}, r"compares double\(x\) with itself"),
    (a_result_left_lying, double, "one", {}, r"ignores what double\(x\) returns; compare it"),
    (pinned_by_a_default, double, "one", {}, "takes arguments; a theorem is run without any"),
    (at_one_size_too, double, "all n", CODE, r"says 'all n', and its claim 2\*x_0 = 2\*x_0 has no size; say for which numbers"),
    (at_one_length_too, attention.scores, "all n, m, d", {}, "says 'all n, m, d', and scores.* gets the length 2; say for"),
    (softmax_of(H, 1, M), attention.softmax, "all n, m", {}, "says all n, and softmax.* gets 1 alone"),
    (of_arguments(double, lambda: sized("x", size("d"))), double, "all n", CODE, "says all n, and calls .* with d alone"),
    (of_arguments(double, lambda: sized("x", 2 * H)), double, "all h", CODE, "says all h, and calls .* with h alone"),
    (for_what_is_above_zero, absolute, "one", CODE, "assumes x >= 0, which its sentence does not say"),
    (for_whole_numbers_above_four, at_least, "one", CODE, "assumes x >= 5, which its sentence does not say"),
    (for_the_larger_of_two, at_least, "one", CODE, "assumes x >= low, which its sentence does not say"),
    (for_entries_above_four, at_least, "all n", CODE, r"assumes x\(.*\) >= 2, which its sentence does not say"),
    (for_long_arrays, double, "all n", CODE, "assumes n >= 5, which its sentence does not say"),
    (of_arguments(chosen, one_entry, lambda: np.array([True])), chosen, "one", CODE, "pins chosen with one mask; run another"),
    (turns_of_which_nobody_knows_how_many, summed, "every n", {}, r"leaves how often a loop runs, with [1n]; compare it"),
]


def at_numbers_too(is_so):
    """A body with a claim about every x, and a fact about numbers."""

    def body():
        """double(x) is 2 x, an even number."""
        prove_equal(*entries(None, double(sized("x", N)), 2 * sized("x", N)))
        prove_that(bool(is_so()), "as expected")

    return body


AT_NUMBERS = {
    "a number": lambda: double(3) % 2 == 0,
    "a number of numpy": lambda: double(np.int64(3)) % 2 == 0,
    "a number of sympy": lambda: double(Scalar(sp.Integer(3))) % 2 == 0,
    "one entry": lambda: double(np.array([3])) % 2 == 0,
    "a list": lambda: double([3]) == [3, 3],
    "many": lambda: all(double(k) % 2 == 0 for k in range(3, 9)),
    "by a helper": lambda: evens(7),
}
SAID += [
    (at_numbers_too(is_so), double, sizes, {}, "says '(all|every) [nx].*', and double.* gets .*[37].*; say for which numbers")
    for is_so in AT_NUMBERS.values()
    for sizes in ("all n", "every x, all n", "all n; d = 2")
]


def scores_of(said, *lengths):
    """A body about scores of queries and keys of these lengths: batches, heads, queries, keys, features."""

    def body():
        batches, heads, n, m, d = lengths
        q, k, c = sized("q", batches, heads, n, d), sized("k", batches, heads, m, d), symbol("c")
        prove_equal(*entries(None, attention.scores(c * q, k, scale=1), c * attention.scores(q, k, scale=1)))

    body.__doc__ = f"Scores are linear in q {said}."
    return body


E, D = size("e"), size("d")
AXES = [
    ("", (2, H, N, M, D), "all batches, n, m, d; 2", "batches"),
    ("", (2, 2, N, M, D), "all heads; n, m, d; 2", "heads"),
    ("", (E, 3, N, 3, D), "all keys; 3 heads; all n, d", "keys"),
    ("for any number of queries", (E, H, 4, M, D), "all m, d; 4", "queries"),
    ("for all tokens", (E, H, 4, 4, D), "all d; 4 of them", "tokens"),
    ("", (E, H, N, M, 5), "all features; n, m; 5 and 1", "features"),
    ("with every number of features", (E, H, N, M, 5), "all n, m; 5", "features"),
    ("in all rows", (E, H, 7, M, D), "all m, d; 7", "rows"),
]
SAID += [
    (scores_of(said, *lengths), attention.scores, sizes, {}, f"says all {word}, and scores.* gets [0-9] alone")
    for said, lengths, sizes, word in AXES
]


CONSTANT = {  # arguments that are one array, however it is made
    "zeros_like": lambda: np.zeros_like(sized("y", N)),
    "ones_like": lambda: np.ones_like(sized("y", N)),
    "times 0": lambda: 0 * sized("y", N),
    "less itself": lambda: sized("y", N) - sized("y", N),
    "to the power of 0": lambda: sized("y", N) ** 0,
    "filled": lambda: filled((N,), 0),
    "one symbol": lambda: filled((N,), symbol("y")),
    "zeros of symbols": lambda: 0 * symbols("y", 4) + 1,
    "eye": lambda: np.eye(3, dtype=int) * symbol("y").e,
    "broadcast": lambda: np.broadcast_to(np.array([symbol("y")]), (5,)),
}


def at_a_constant(make, said):
    """A body about one array."""

    def body():
        x = make()
        prove_equal(*entries(None, double(x), 2 * x) if isinstance(x, SizedArray) else (double(x), 2 * x))

    body.__doc__ = said
    return body


SAID += [
    (at_a_constant(make, said), double, "one", CODE, f"says {words}, and double.* gets (entries that are equal|numbers)")
    for make in CONSTANT.values()
    for said, words in (
        ("double(y) is 2 y for every y.", "any y"),
        ("double is twice its argument: all vectors.", "'all vectors'"),
    )
]


def evens(n):
    return not double(n) % 2


def examined(t):
    t.prove()
    t.check_honesty()
    numbers.check(t)


@pytest.mark.parametrize(("body", "function", "sizes", "said", "problem"), SAID)
def test_what_is_said_and_not_shown_is_refused(body, function, sizes, said, problem):
    t = theorem(of=[function], sizes=sizes, **said)(body)
    with pytest.raises((NotProved, Undecided, Unsound), match=problem):
        examined(t)


def in_one_layout():
    """Both layouts split in halves."""
    x = symbols("x", 1, 4)
    prove_equal(pairing.split(x, "half")[0], x[:, :2])


@pytest.mark.parametrize("said", ["both layouts", "whichever the layout"])
def test_who_speaks_of_all_words_runs_them(said):
    t = theorem(of=[pairing.split], sizes=f"d = 4, {said}", as_written="formula")(in_one_layout)
    with pytest.raises(NotProved, match="says every layout, and calls split without layout='interleaved'"):
        numbers.check(t)


def with_sinks_or_without():
    """More in all scores changes no weight, with sinks or without."""
    s, c = sized("s", H, N, M), symbol("c")
    prove_equal(*entries(None, attention.softmax(s + c.e), attention.softmax(s)))


def under_every_mask():
    """Under every mask more in all scores changes no weight."""
    with_sinks_or_without()


def speaks_of_another():
    """softmax has the maximum of row_maximum."""
    with_sinks_or_without()


def differs_everywhere():
    """The two scores differ."""
    s, other = symbols("s", 1, 1), symbols("t", 1, 1)
    with_sinks_or_without()
    prove_that(not is_zero(s[0, 0].e - other[0, 0].e), "they differ")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (with_sinks_or_without, "speaks of sinks, and no call passes it"),
        (under_every_mask, "speaks of mask, and no call passes it"),
        (speaks_of_another, "speaks of row_maximum, which `of` does not name"),
        (differs_everywhere, "is so where it is not 0 everywhere; say 'in general', or give numbers"),
    ],
)
def test_who_speaks_of_an_option_or_of_a_function_runs_it(body, problem):
    t = theorem(of=[attention.softmax], sizes="all h, n, m")(body)
    with pytest.raises((NotProved, Unsound), match=problem):
        examined(t)


def test_a_control_is_another_sentence():
    def by_a_slip():
        x = symbols("x", 2)
        prove_equal(double(x), 3 * x)

    by_a_slip.__doc__ = one_cell.__doc__
    t = theorem(of=[double], sizes="one")(one_cell)
    t.control(by_a_slip)
    with pytest.raises(Unsound, match="has the control by_a_slip, whose sentence is its own"):
        t.check_controls()


def raised():
    """double(x) = x"""
    double(symbols("x", 2))
    raise Refuted("x = 1: double(x) is 17, expected 1")


def test_a_control_is_refuted_by_a_claim():
    t = theorem(of=[double], sizes="one", **CODE)(one_cell)
    t.control(raised)
    with pytest.raises(Unsound, match=r"the control raised of .* raises an error of its own; compare a result"):
        t.check_controls()


# what the text of a body says and does not run


def two_that_are_one():
    """double(m n) = 2 m^2"""
    m, n = symbol("m"), symbol("m")
    prove_equal([double(m * n)], [2 * m * m])


def chained():
    """double(m n) = 2 m^2"""
    m = n = symbol("m")
    prove_equal([double(m * n)], [2 * m * m])


def one_array_of_two_names():
    """double(q) = 2 k"""
    k = q = symbols("q", 1)
    prove_equal(double(q), 2 * k)


def in_no_turn():
    """double(x) = 2 x, and 3 x"""
    one_cell()
    for n in range(2, 8, -2):
        prove_equal(double(symbols("x", n)), 3 * symbols("x", n))


def in_a_function_that_is_not_called():
    """double(x) = 2 x, and 3 x"""
    one_cell()

    def thrice():
        prove_equal(double(symbols("x", 1)), 3 * symbols("x", 1))

    prove_that(callable(thrice), "it can be called")


def behind_a_branch():
    """double(x) = 2 x, and 3 x"""
    for layout in pairing.LAYOUTS:
        one_cell()
        if layout:
            continue
        in_no_turn()


def of_none():
    """double(x) = 2 x, and 3 x"""
    one_cell()
    prove_that(all(double(n) == 3 * n for n in range(2, 2)), "3 x")


def a_verdict_left_lying():
    """double(x) = 2 x, and 3 x"""
    one_cell()
    all(is_zero(e) for e in double(symbols("x", 1)) - 3 * symbols("x", 1))


def as_long_as_the_shorter():
    """double(x) = 2 x"""
    x = symbols("x", 2)
    for got, expected in zip(double(x), [2 * x[0]]):  # noqa: B905
        prove_equal([got], [expected])


def by_eval():
    """double(x) = 0"""
    x = symbol("x")
    prove_equal([eval("e.subs(x, 0)", {"e": double(x).e, "x": x.e})], [0])


@functools.wraps(one_cell)
def whatever_happens():
    one_cell()
    with contextlib.suppress(IndexError):
        prove_equal(double(symbols("x", 1)), symbols("x", 1)[1])


def a_premise_that_never_runs():
    """double(x) = 2 x"""
    one_cell()
    for n in range(2):
        if n > 5:
            premise(n < 0, "n < 0")


class At:
    zero = staticmethod(lambda e, x: e.e.subs(x.e, 0))


class AtZero(sp.Function):
    """sympy calls `eval`, and remembers what it returned."""


AtZero.eval = sp.limit


@functools.cache
def remembered_at_zero(e, x):
    return e.subs(x, 0)


def part_by_a_pattern(e):
    match e:
        case sp.Add(_args=parts):
            return parts[0]


PUT, KEPT_AT_ZERO = {}, {}


def remembers_at_zero():
    """double(x) = 0"""
    x = symbol("x")
    if not KEPT_AT_ZERO:
        KEPT_AT_ZERO.update(known=double(x).e.subs(x.e, 0))
    prove_equal([KEPT_AT_ZERO["known"]], [0])


def in_a_thread():
    """double(x) = 0"""
    x, found = symbol("x"), []
    e = double(x).e
    started = _thread.start_new_thread(lambda: found.append(e.subs(x.e, 0)), ())
    while started and not found:
        started = time.sleep(0) is None
    prove_equal(found, [0])


def after_an_error():
    """double(x) = 2 x, and 0"""
    x = symbol("x")
    for zero in (False, True):
        e = double(x).e
        with contextlib.suppress(Exception):
            e = sp.expand(e, modulus="a") if zero else e - 2 * x.e
        prove_equal([e.subs(x.e, 0) if zero else e], [0])


class Breaks(sp.Expr):
    """What is compared with this ends the watching."""

    def __sub__(self, other):
        raise ArithmeticError


BREAKS = Breaks()


def after_an_error_of_the_watch():
    """double(x) = 2 x, and 0"""
    x = symbol("x")
    for zero in (False, True):
        e = double(x).e - 2 * x.e
        with contextlib.suppress(ArithmeticError):
            e = sp.sympify(BREAKS) if zero else e
        prove_equal([double(x).e.subs(x.e, 0) if zero else e], [0])


def sum_of_coefficients():
    """double(exp(x)) = 2"""
    prove_equal([sp.Add(*coefficients(double(array([sp.exp(symbol("x").e)]))[0]))], [2])


def at_zero():
    """double(x) = 0"""
    x = symbol("x")
    prove_equal([PUT["zero"](double(x), x)], [0])


ZEROS = {
    "subs": lambda e, x: e.e.subs(x.e, 0),
    "limit": lambda e, x: sp.limit(e.e, x.e, 0),
    "a class": At.zero,
    "a methodcaller": lambda e, x: operator.methodcaller("subs", x.e, 0)(e.e),
    "lambdify": lambda e, x: sp.lambdify(x.e, e.e, "sympy")(0),
    "replace": lambda e, x: e.e.replace(x.e, sp.Integer(0)),
    "Subs": lambda e, x: sp.Subs(e.e, x.e, 0).doit(),
    "a lambda of sympy": lambda e, x: sp.Lambda(x.e, e.e)(0),
    "a polynomial": lambda e, x: sp.Poly(e.e, x.e).eval(0),
    "a call of a polynomial": lambda e, x: sp.Poly(e.e, x.e)(0),
    "a remainder": lambda e, x: sp.rem(e.e, x.e, x.e),
    "a sum of one term": lambda e, x: sp.Sum(e.e, (x.e, 0, 0)).doit(),
    "a product of one factor": lambda e, x: sp.Product(e.e, (x.e, 0, 0)).doit(),
    "an integral": lambda e, x: sp.integrate(e.e, (x.e, -1, 1)),
    "a coefficient": lambda e, x: e.e.coeff(x.e, 0),
    "a resultant": lambda e, x: sp.resultant(e.e, x.e, x.e),
    "a residue": lambda e, x: sp.residue(e.e / x.e, x.e, 0),
    "the begin of a series": lambda e, x: e.e.nseries(x.e, 0, 1).removeO(),
    "a leading term": lambda e, x: (e.e + 1).as_leading_term(x.e) - 1,
    "what does not depend on it": lambda e, x: e.e.as_independent(x.e, as_Add=True)[0],
    "a part": lambda e, x: (e.e + x.e**2 + 7).args[0] - 7,
    "a part that is no call": lambda e, x: (e.e + x.e**2 + 7)._args[0] - 7,
    "a part of a copy": lambda e, x: (e.e + x.e**2 + 7).__getnewargs__()[0] - 7,
    "parts by their powers": lambda e, x: sp.collect(e.e, x.e, evaluate=False).get(sp.S.One, 0),
    "a match": lambda e, x: e.e.match(sp.Wild("a") * x.e + sp.Wild("b"))[sp.Wild("b")],
    "numbers of a field": lambda e, x: sp.expand(e.e, modulus=2),
    "a text": lambda e, x: sp.sympify(str(e.e).replace("x", "0")),
    "a polynomial of another kind": lambda e, x: sp.ring([x.e], sp.QQ)[0].from_expr(e.e).evaluate(0, 0),
    "a polynomial without its unknown": lambda e, x: (sp.Poly(e.e, x.e) % sp.Poly(x.e, x.e)).as_expr(),
    "a root": lambda e, x: sp.solve(e.e, x.e)[0],
    "the smallest square": lambda e, x: sp.minimum(e.e**2, x.e),
    "a matrix": lambda e, x: sp.Matrix([e.e]).limit(x.e, 0)[0],
    "a part by its name": lambda e, x: getattr(e.e + x.e**2 + 7, "_args")[0] - 7,  # noqa: B009
    "a part by a pattern": lambda e, x: part_by_a_pattern(e.e + x.e**2 + 7) - 7,
    "a class of its own": lambda e, x: AtZero(e.e, x.e, 0),
    "an object of its own": lambda e, x: sp.Add(types.SimpleNamespace(_sympy_=functools.partial(e.e.subs, x.e, 0)), 0),
    "what is remembered": lambda e, x: remembered_at_zero(e.e, x.e),
    "numbers of a field for what has no number": lambda e, x: sp.expand((e.e + x.e) * UNKNOWN, modulus=2) - x.e * UNKNOWN,
    "an inverse that is none": lambda e, x: sp.simplify(sp.asin(sp.sin(e.e)), inverse=True) - e.e,
    "an expansion that the kit calls": lambda e, x: SizedArray((N,), functools.partial(sp.expand, e.e, modulus=2)).at(0),
    "a function that the kit calls": lambda e, x: SizedArray((N,), functools.partial(sp.limit, e.e, x.e)).at(sp.Integer(0)),
}
# a call of each function of sympy that needs no reason, with the symbols that stay
X, Y = sp.symbols("x y")
UNKNOWN = sp.Function("f", real=True)(sp.Symbol("y", real=True))
NO_REASON = {
    "AssocOp.__new__": lambda: sp.Add(X, Y),
    "Pow.__new__": lambda: sp.Pow(X, Y),
    "DefinedFunction.__new__": lambda: sp.cos(X * Y),
    "Function.__new__": lambda: sp.Function("f")(X, Y),
    "AppliedUndef.__new__": lambda: sp.Function("f")(X, Y),
    "_Inequality.__new__": lambda: sp.Lt(X, Y),
    "Equality.__new__": lambda: sp.Eq(X, Y),
    "Unequality.__new__": lambda: sp.Ne(X, Y),
    "Symbol.__new__": lambda: sp.Symbol("x") + Y,
    "Integer.__new__": lambda: sp.Integer(2) * X * Y,
    "Rational.__new__": lambda: sp.Rational(1, 2) * X * Y,
    "Sum.__new__": lambda: sp.Sum(X * sp.Symbol("k"), (sp.Symbol("k"), 0, Y)),
    "MutableRepMatrix.__new__": lambda: sp.Matrix([X, Y]),
    "MatrixBase.vstack": lambda: sp.Matrix.vstack(sp.Matrix([X]), sp.Matrix([Y])),
    "MatrixBase.T": lambda: sp.Matrix([X, Y]).T,
    "MatrixBase.tolist": lambda: sp.Matrix(sp.Matrix([X, Y]).tolist()),
    "MatrixBase.det": lambda: sp.Matrix([[X, 1], [2, Y]]).det(),
    "MatrixBase.free_symbols": lambda: sp.Tuple(*sp.Matrix([X, Y]).free_symbols),
    "eye": lambda: X * Y * sp.eye(2),
    "zeros": lambda: sp.zeros(2, 1) + sp.Matrix([X, Y]),
    "diag": lambda: sp.diag(X, Y),
    "sqrt": lambda: sp.sqrt(X * Y),
    "Basic.free_symbols": lambda: sp.Tuple(*(X + Y).free_symbols),
    "Basic.has": lambda: X * Y * int((X + Y).has(X)),
    "Application.func": lambda: sp.cos(X).func(X * Y),
    "Indexed.base": lambda: X * Y * sp.IndexedBase("a")[X].base[Y],
    "Relational.negated": lambda: sp.Lt(X, Y).negated,
    "make_property.<locals>.getit": lambda: X * Y * int(sp.Symbol("p", positive=True).is_positive),
    "diff": lambda: sp.diff(X**2 * Y**2, X),
    "Expr.diff": lambda: (X**2 * Y**2).diff(X),
    "expand": lambda: sp.expand((X + Y) ** 2),
    "simplify": lambda: sp.simplify(X * (X + Y) / X),
    "Basic.simplify": lambda: (X * (X + Y) / X).simplify(),
    "Basic.rewrite": lambda: sp.tanh(X * Y).rewrite(sp.exp),
    "sympify": lambda: sp.sympify(X + Y),
}
NOT_RUN = [
    (two_that_are_one, "has one m for m and n; rename one"),
    (chained, "has one m for m and n; rename one"),
    (one_array_of_two_names, r"has one \[q_0\] for k and q; rename one"),
    (in_no_turn, "never runs prove_equal in line"),
    (in_a_function_that_is_not_called, "never runs prove_equal in line"),
    (behind_a_branch, "never runs in_no_turn in line"),
    (of_none, "never runs a loop in line"),
    (a_verdict_left_lying, r"ignores what all\(.* returns; compare it"),
    (as_long_as_the_shorter, "calls zip without strict=True"),
    (by_eval, "calls eval; write it so that its text says what runs"),
    (a_premise_that_never_runs, "never runs premise in line"),
    (remembers_at_zero, "reaches into what judges it, by KEPT_AT_ZERO.update"),
    (in_a_thread, "reaches into what judges it, by _thread"),
    (after_an_error, "may put values in the place of symbols by Basic.subs"),
    (after_an_error_of_the_watch, "may put values in the place of symbols by what nobody watches"),
    (sum_of_coefficients, "may put values in the place of symbols by coefficients"),
    (whatever_happens, "is not the function of its source"),
]


def watched(body):
    t = theorem(of=[double], sizes="one")(body)
    t.prove()
    t.as_written = "formula" if honest.only_trivial() else ""
    t.check_honesty()
    t.check_watched()


@pytest.mark.parametrize(("body", "problem"), NOT_RUN)
def test_what_is_written_runs(body, problem):
    with pytest.raises(Unsound, match=problem):
        watched(body)


@pytest.mark.parametrize("name", ZEROS)
def test_values_in_the_place_of_symbols_have_a_reason(name, monkeypatch):
    monkeypatch.setitem(PUT, "zero", ZEROS[name])
    with pytest.raises(Unsound, match="may put values in the place of symbols by"):
        watched(at_zero)


def test_what_needs_no_reason_has_an_example():
    assert NO_REASON.keys() == watch.MAKES | watch.TELLS | watch.DERIVES | watch.KEEPS


@pytest.mark.parametrize("name", NO_REASON)
def test_what_needs_no_reason_keeps_each_symbol(name):
    """Among the calls of the example is one of this name, and x and y are in its result."""
    seen = set()

    def called(frame, event, arg):
        if frame.f_code.co_filename.startswith(watch.SYMPY) and frame.f_back.f_code.co_filename == __file__:
            seen.add(watch._name(frame))

    saved = sys.gettrace()
    sys.settrace(called)
    try:
        made = NO_REASON[name]()
    finally:
        sys.settrace(saved)
    assert name in seen
    assert {X, Y} <= made.free_symbols


# a result that enters and cancels


def times_zero():
    """0 double(x) = 0"""
    x = symbols("x", 2)
    prove_equal(0 * double(x) + (x + 1) ** 2, x**2 + 2 * x + 1)


def minus_itself():
    """double(x) - double(x) = 0"""
    x = symbols("x", 2)
    prove_equal(double(x) - double(x) + x, x)


def by_a_formula():
    """(2x + 1)^2 = (2x)^2 + 2 (2x) + 1"""
    y = double(sized("x", N)).at(index(N))
    prove_equal([(y + 1) ** 2], [y**2 + 2 * y + 1])


def through_a_list():
    """double(x) is double(x)"""
    x, expected = symbols("x", 2), []
    for f in (double,):
        expected.append(f(x))
    prove_equal(double(x), expected[0])


def first_cell():
    """double(x) = 2 x, every entry"""
    x = sized("x", N)
    prove_equal([double(x).at(0)], [2 * x.at(0)])


def nothing_on_one_path():
    """|x| = x"""
    x = symbols("x", 1)
    for asked, y in all_paths(lambda: absolute(x)):
        prove_equal(*((y, x) if asked[0][1] else ((x + 1) ** 2, x**2 + 2 * x + 1)))


def first_members_pinned():
    """double(x) = 2 x, every entry"""
    x, t = sized("x", 2 * H), index(H)
    prove_equal([double(x).at(t)], [2 * x.at(t)])


def without_the_first_pinned():
    """double(x) = 2 x, every entry"""
    x, i = sized("x", 1 + N), index(N)
    prove_equal([double(x).at(1 + i)], [2 * x.at(1 + i)])


def one_entry_pinned():
    """double(x) = 2 x, every entry"""
    x = symbols("x", 2)
    prove_equal(double(x)[:1], 2 * x[:1])


def on_the_diagonal_pinned():
    """outer(x, y) = x_i y_i, every entry"""
    x, y, i = sized("x", N), sized("y", N), index(N)
    prove_equal([outer(x, y).at(i, i)], [x.at(i) * y.at(i)])


def outer(x, y):
    return x[:, None] * y[None, :]


def many_entries():
    """double(x) = x"""
    x = symbols("x", 5, 4)
    prove_equal(0 * double(x) + x, x)


def positive(x):
    return x > 0


def a_mask_times_zero():
    """Every x is positive."""
    x = symbols("x", 1)
    for _, mask in all_paths(lambda: positive(x)):
        prove_equal([0 * x[0] * mask[0] + x[0]], [x[0]])


def a_mark_that_ends_the_run():
    """double(x) = x"""
    x = symbols("x", 2)
    prove_that(len(double(x)[0].e.free_symbols) == 1, "an entry is made of one entry")
    prove_equal(0 * double(x) + (x + 1) ** 2, x**2 + 2 * x + 1)


def of_numbers(x):
    return x.shape[0] + len(x)


def an_error_by_a_mark():
    """of_numbers(x) = 17"""
    [0, 1, 2, 3, 4][of_numbers(np.zeros(2))]
    prove_equal([(symbol("x") + 1) ** 2], [symbol("x") ** 2 + 2 * symbol("x") + 1])


def total(*parts):
    return parts[0] + parts[-1]


def of_any_number():
    """total(x, y, z) = x + y + z"""
    x, y, z = symbols("x", 2), symbols("y", 2), symbols("z", 2)
    prove_equal(0 * total(x, y, z) + x + y + z, x + y + z)


DOUBLED = functools.partial(double)


def the_square_of_a_total():
    """total(x, y) is -x - y."""
    x, y = symbols("x", 2), symbols("y", 2)
    prove_equal(total(x, y) ** 2, (x + y) ** 2)


def in_a_list(x):
    return [x + x, x]


def with_a_mask(x):
    return x + x, x == x


def a_square_beside_an_entry():
    """in_a_list(x) is -2 x and x."""
    x = symbols("x", 2)
    prove_equal(in_a_list(x)[0] ** 2, 4 * x**2)
    prove_equal(in_a_list(x)[1], x)


def a_square_beside_a_mask():
    """with_a_mask(x) is -2 x and True."""
    numbers_, mask = with_a_mask(np.arange(3))
    prove_that((numbers_**2).tolist() == [0, 4, 16] and mask.all(), "as expected")


def a_premise_of_a_result():
    """double(x) = 2 x"""
    one_cell()
    premise(double(3) % 2 == 0, "an even number")


def by_a_second_name_pinned():
    """It is 3 x."""
    x = symbols("x", 2)
    prove_equal(double(x), DOUBLED(2 * x) / 2)


def by_getattr_pinned():
    """It is 3 x."""
    x, twice = symbols("x", 2), getattr(sys.modules[__name__], "double")  # noqa: B009
    prove_equal(double(x), [twice(e + 1) - 2 for e in x])


def after_the_loop():
    """double(x) = 2 x at both lengths"""
    for length in (2, 3):
        x = symbols("x", length)
        y = double(x)
    prove_equal(y, 2 * x)


def the_last_row():
    """double(x) = 2 x"""
    x = sized("x", N + 1)
    prove_equal([double(x).at(N.e)], [2 * x.at(N.e)])


def one_entry_of_every():
    """double(x) + 1 = 2 x + 1 in every entry."""
    x = symbols("x", 2)
    prove_equal(double(x)[:1] + 1, 2 * x[:1] + 1)


def a_fact_of_numbers():
    """double(x) = 2 x; double(3) is 7."""
    one_cell()
    prove_that(3 + 4 == 7, "double(3) is 7")


def a_fact_of_zero_times_a_result():
    """double(x) = 2 x; double(3) is 7."""
    x = symbols("x", 1)
    y = double(x)
    prove_equal(y, 2 * x)
    prove_that(7 + 0 * y[0] == 7, "double(3) is 7")


def a_fact_of_a_helper():
    """double(x) = 2 x; double(3) is 7."""
    one_cell()
    equals(double(3), 6, "double(3) is 6")
    equals(7, 7, "double(3) is 7")


def equals(value, expected, words):
    prove_that(value == expected, words)


def a_sum_with_factors():
    """The sum double(x) is 4 x_0 and 2 x_1 - x_0."""
    x = symbols("x", 2)
    prove_equal([double(x)[0] + 2 * double(x)[1]], [2 * x[0] + 4 * x[1]])


def an_entry_and_a_sum_pinned():
    """It is 2 x, but for the last two: a sum."""
    x = symbols("x", 3)
    prove_equal(double(x)[:1], 2 * x[:1])
    prove_equal([double(x)[1] + 2 * double(x)[2]], [2 * x[1] + 4 * x[2]])


def linear():
    x = symbols("x", 2)
    prove_equal(double(2 * x), 2 * double(x))
    prove_equal(double(x + 1), double(x) + 2)
    prove_equal(double(x)[:1], double(x[:1]))


def the_same_as_itself():
    """double(x) is 3 x, the same as double says."""
    linear()


def itself_before_an_error():
    """double(x) is 3 x."""
    linear()
    prove_that([0, 1, 2][double(np.array([1, 2]))[0]] == 2, "an index")


def itself_behind_an_error():
    """double(x) is 3 x."""
    for place in (1, 2):
        prove_that([0, 1, 2, 3, 4][double(np.array([place, 2]))[0]] == 2 * place, "an index")
        linear()


def but_for_the_first(x):
    return np.concatenate([x[:1], 2 * x[1:]])


def behind_the_first():
    """but_for_the_first(x) is 2 x for all n and every x."""
    x, i = sized("x", N + 1), index(N)
    prove_equal([but_for_the_first(x).at(1 + i)], [2 * x.at(1 + i)])


def but_for_the_last(x):
    return np.concatenate([2 * x[:-1], x[-1:]])


def before_the_last():
    """but_for_the_last(x) = 2 x for all n."""
    x, i = sized("x", N + 1), index(N)
    prove_equal([but_for_the_last(x).at(i)], [2 * x.at(i)])


def but_for_the_odd(x):
    return np.stack([2 * x[..., 0::2], x[..., 1::2]], axis=-1).reshape(*x.shape)


def at_the_even_ones():
    """but_for_the_odd returns 2 x."""
    x, i = sized("x", 2 * H), index(H)
    prove_equal([but_for_the_odd(x).at(2 * i)], [2 * x.at(2 * i)])


NOTHING = "claims nothing that depends on what {} returns"
ITSELF_ALONE = "compares double with itself alone, and says what it returns"
RESULTS = [
    *(
        (body, double, "claims a fact that depends on no result, in line")
        for body in (a_fact_of_numbers, a_fact_of_zero_times_a_result)
    ),
    (a_fact_of_a_helper, double, "claims a fact that depends on no result, in line"),
    (a_sum_with_factors, double, "compares no entry that double returns, and says what it is"),
    (an_entry_and_a_sum_pinned, double, "compares single cells of what double returns"),
    *((body, double, ITSELF_ALONE) for body in (the_same_as_itself, itself_before_an_error, itself_behind_an_error)),
    *(
        (body, function, f"compares single cells of what {function.__name__} returns")
        for body, function in (
            (behind_the_first, but_for_the_first),
            (before_the_last, but_for_the_last),
            (at_the_even_ones, but_for_the_odd),
        )
    ),
    (after_the_loop, double, "calls double and claims nothing of that result; compare each"),
    (the_last_row, double, "compares single cells of what double returns"),
    *((body, double, NOTHING.format("double")) for body in (times_zero, minus_itself, by_a_formula, through_a_list)),
    *((body, double, NOTHING.format("double")) for body in (many_entries, a_mark_that_ends_the_run)),
    *(
        (body, double, "compares single cells of what double returns")
        for body in (one_entry_of_every, first_cell, first_members_pinned, without_the_first_pinned, one_entry_pinned)
    ),
    (on_the_diagonal_pinned, outer, "compares single cells of what outer returns"),
    (nothing_on_one_path, absolute, "1 of 2 paths claim nothing"),
    (a_mask_times_zero, positive, NOTHING.format("positive")),
    (of_any_number, total, NOTHING.format("total")),
    (the_square_of_a_total, total, "compares products of what total returns"),
    (a_square_beside_an_entry, in_a_list, "compares products of what in_a_list returns"),
    (a_square_beside_a_mask, with_a_mask, "claims the same of with_a_mask with its negative"),
    (a_premise_of_a_result, double, "has a premise made of a result: an even number; claim it by prove_that"),
    (by_a_second_name_pinned, double, "expects what .*double computes, and its sentence does not name it"),
    (by_getattr_pinned, double, "expects what .*double computes, and its sentence does not name it"),
]


@pytest.mark.parametrize(("body", "function", "problem"), RESULTS)
def test_a_claim_depends_on_a_result(body, function, problem):
    t = theorem(of=[function], sizes="one")(body)
    t.prove()
    with pytest.raises(Unsound, match=problem):
        t.check_results()


def a_loop_that_begins_with_anything(expected):
    """A body that compares what is before a loop with what `expected` makes of it, or not at all."""

    def body():
        """summed(x, n) = n x"""
        x, loop = symbol("x"), Loop(summed, 0)
        given = {"x": x, "n": symbol("n", integer=True)}
        names = loop.before(given)
        prove_that(loop.turns(names) == [1, symbol("n", integer=True).e], "turns 1 .. n - 1")
        after = loop.turn({**names, "total": symbol("t")}, _=symbol("k", integer=True))
        prove_equal([*expected(names, given), after["total"]], [*expected(names, given)[::-1], symbol("t") + x])
        prove_equal([loop.after({**names, "total": symbol("s")})["returned"]], [symbol("s")])
        covers(summed)

    return body


BEGUN = {
    "by its name": lambda names, _: [names["total"]],
    "from a copy": lambda names, _: [dict(names).get("total")],
    "from the same lines again": lambda _, given: [Loop(summed, 0).before(given)["total"]],
    "not at all, beside another 0": lambda _, given: [0 * given["x"]],
    "from the function after no iteration": lambda names, given: [names["total"], summed(given["x"], 1)],
    "from the function by another name": lambda names, given: [names["total"], functools.partial(summed, n=1)(given["x"])],
    "from the function after one iteration": lambda names, given: [names["total"], summed(given["x"], 2) - given["x"]],
}


@pytest.mark.parametrize("name", BEGUN)
def test_what_a_loop_begins_with_is_compared_with_something_else(name):
    t = theorem(of=[summed], sizes="every n", argument=".")(a_loop_that_begins_with_anything(BEGUN[name]))
    t.prove()
    with pytest.raises(Unsound, match="claims the same if total begins with something else; compare it with what it is"):
        t.check_results()


ITSELF = {  # what is so of double and of others that the sentence may speak of
    "at twice the argument": lambda x: (double(2 * x), 2 * double(x)),
    "one further": lambda x: (double(x + 1), double(x) + 2),
    "their difference": lambda x: (double(x + 1) - double(x) - 2, 0 * x),
    "each entry alone": lambda x: (double(x)[:1], double(x[:1])),
    "of the negative": lambda x: (-double(x), double(-x)),
}


@pytest.mark.parametrize("said", ["The sum double(x) is x + x + 7.", "It is 3 x: a difference."])
@pytest.mark.parametrize("name", ITSELF)
def test_what_a_function_is_is_not_shown_by_itself(name, said):
    def body():
        prove_equal(*ITSELF[name](symbols("x", 2)))

    body.__doc__ = said
    t = theorem(of=[double], sizes="one")(body)
    t.prove()
    with pytest.raises(Unsound, match="compares double with itself alone, and says what it returns; compare it with that"):
        t.check_results()


def its_derivative():
    """It is x + x + 7."""
    x = symbols("x", 2)
    prove_equal([y.e.diff(s.e) for y, s in zip(double(x), x, strict=True)], [2, 2])


def slopes_of_its_square():
    """double(x) is -2 x; its square is as steep as 4 x^2."""
    x = symbols("x", 2)
    prove_equal([(y**2).e.diff(s.e) for y, s in zip(double(x), x, strict=True)], 8 * x)


def a_ratio_of_its_entries():
    """It is 3 x: a ratio."""
    x = symbols("x", 2)
    prove_equal([double(x)[0] / double(x)[1]], [x[0] / x[1]])


def shares_of_its_sum():
    """It is 3 x: a sum or a ratio."""
    x = symbols("x", 2)
    prove_equal(double(x) / double(x).sum(), x / x.sum())


def one_times_the_other():
    """It is 3 x: a sum."""
    x = symbols("x", 2)
    prove_equal([double(x)[0] * x[1] - double(x)[1] * x[0]], [0])


def its_sum():
    """The sum double(x) is 2 x backwards."""
    x = symbols("x", 2)
    prove_equal([double(x).sum()], [2 * x.sum()])


def its_square():
    """It is -2 x: as for the product."""
    x = symbols("x", 2)
    prove_equal(double(x) ** 2, 4 * x**2)


SHARED = [
    its_derivative,
    slopes_of_its_square,
    a_ratio_of_its_entries,
    shares_of_its_sum,
    one_times_the_other,
    its_sum,
    its_square,
]


@pytest.mark.parametrize("body", SHARED)
def test_what_others_share_with_a_function_does_not_show_it(body):
    t = theorem(of=[double], sizes="one")(body)
    t.prove()
    with pytest.raises(
        Unsound, match=r"claims the same of double with its .*; compare what it|compares no entry that double returns"
    ):
        t.check_results()


MADE = {  # what a claim compares in the place of a result, which a wrong result may share with it
    "squares": lambda y: y**2,
    "the square of its length": lambda y: y @ y,
    "a sum": lambda y: y.sum(),
    "differences from the first": lambda y: y[1:] - y[0],
    "a product with itself in another place": lambda y: y * y[::-1],
    "whole parts": lambda y: y // 1,
    "cosines": np.cos,
    "reciprocals": lambda y: 1 / y,
    "what is above 0": lambda y: np.where(y > 0, y, 0),
    "its absolute value": absolute,
    "which is larger": lambda y: np.maximum(y[0], y[1]),
    "a determinant": lambda y: y[0] * (y[1] + 1) - y[1] * (y[0] + 1) + y[0] * y[1],
}


def made_of(make, said):
    """A body that compares what is made of double(x) with what is made of 2 x."""

    def body():
        x = symbols("x", 2)
        for _, (left, right) in all_paths(lambda: (make(double(x)), make(2 * x))):
            prove_equal(left, right)

    body.__doc__ = said
    return body


def behind_what_is_linear():
    """double(x) is 2 x, and double of anything else."""
    x, y = symbols("x", 2), symbols("y", 2)
    prove_equal(double(x), double(x + 1) - 2)
    prove_equal(double(y) ** 2, (2 * y) ** 2)


def behind_a_fact_that_a_mark_ends():
    """double(x) is 2 x."""
    x = symbols("x", 2)
    prove_that(len(double(x)[0].e.free_symbols) == 1, "an entry is made of one entry")
    prove_equal(double(x) ** 2, (2 * x) ** 2)


PARTLY = [made_of(make, "double(x) is 2 x, the sum, product and absolute order of its length.") for make in MADE.values()]
PARTLY += [behind_what_is_linear, behind_a_fact_that_a_mark_ends]


@pytest.mark.parametrize("body", PARTLY, ids=[*MADE, "behind what is linear", "behind a fact"])
def test_what_is_made_of_a_result_is_not_the_result(body):
    t = theorem(of=[double], sizes="one")(body)
    t.prove()
    with pytest.raises(Unsound, match=r"compares (sums|products|functions|signs) of what double returns; compare that, or say"):
        t.check_results()


def above_two(x):
    return x > 2


def halved(x):
    return x / 2


def second(x):
    return x[1] / 2


FACTS = {  # of numbers, which a wrong result may share
    "sorted numbers": (double, lambda y: sorted(y.tolist()) == [2, 4, 6]),
    "a set": (double, lambda y: {*y.tolist()} == {6, 4, 2}),
    "squares": (double, lambda y: (y**2).tolist() == [4, 16, 36]),
    "distances": (double, lambda y: np.abs(np.diff(y)).tolist() == [2, 2]),
    "the least and the largest": (double, lambda y: y.min() == 2 and y.max() == 6),
    "a sum": (double, lambda y: y.sum() == 12 and len(y) == 3),
    "remainders": (double, lambda y: (y % 2).tolist() == [0, 0, 0] and y[0] == 2),
    "rounded numbers": (halved, lambda y: y.round(2).tolist() == [0.5, 1.0, 1.5]),
    "twice whole parts": (halved, lambda y: (2 * y // 1).tolist() == [1, 2, 3]),
    "near numbers": (halved, lambda y: np.allclose(y, [0.5, 1, 1.5], rtol=1e-4)),
    "very near numbers": (halved, lambda y: np.allclose(y, [0.5, 1, 1.5], rtol=1e-12, atol=0)),
    "numbers within 2^-48": (halved, lambda y: (np.abs(y - [0.5, 1, 1.5]) < 2.0**-48).all()),
    "a near number": (second, lambda y: abs(y - 1) < 1e-9),
    "digits": (second, lambda y: f"{y:.15g}" == "1"),
    "texts": (halved, lambda y: [f"{e:.4g}" for e in y] == ["0.5", "1", "1.5"]),
    "how many are True": (above_two, lambda mask: mask.sum() == 1),
}


@pytest.mark.parametrize(
    "said", ["It is what is expected.", "double(x) is 2 x; halved(x) is x / 2; second(x) is 1; above_two(x) = (x > 2)."]
)
@pytest.mark.parametrize("name", FACTS)
def test_a_fact_of_a_result_is_not_the_result(name, said):
    function, is_so = FACTS[name]

    def body():
        prove_that(bool(is_so(function(np.array([1, 2, 3])))), "as expected")

    body.__doc__ = said
    t = example(of=[function], sizes="x = 1, 2, 3")(body)
    t.prove()
    with pytest.raises(
        Unsound,
        match=r"claims the same of .* with its (negative|rows backwards|last entry moved|entries .* larger|double); compare",
    ):
        t.check_results()


def test_of_a_large_table_a_sign_is_seen():
    def body():
        """double(x) is 2 x."""
        prove_equal(double(symbols("x", 20)) ** 2, 4 * symbols("x", 20) ** 2)

    t = theorem(of=[double], sizes="one")(body)
    t.prove()
    with pytest.raises(Unsound, match="claims the same of double with its negative"):
        t.check_results()


@pytest.mark.parametrize(("made", "subject"), [("squares", "double(x)^2"), ("a sum", "The sum"), ("its absolute value", "|x|")])
def test_who_speaks_of_what_is_made_may_compare_it(made, subject):
    t = theorem(of=[double], sizes="one")(made_of(MADE[made], f"{subject} is that of 2 x."))
    t.prove()
    assert t.check_results() == {}


def test_a_run_that_begins_again_leaves_no_result():
    """A question about a size ends the first run after its call; the runs for each answer compare all."""

    def in_cases():
        """double(x) = 2 x"""
        x, i, j = sized("x", N, 2 * H), index(N), index(2 * H)
        y = double(x)
        rope.rotate(x, *rope.tables(filled((1,), symbol("s")), sized("w", H)), layout="half")  # asks whether n is 1
        prove_equal([y.at(i, j)], [2 * x.at(i, j)])

    t = theorem(of=[double], sizes="one")(in_cases)
    t.prove()
    assert t.check_results() == {}


def test_what_only_an_error_tells_is_counted():
    t = theorem(of=[of_numbers], sizes="one")(an_error_by_a_mark)
    t.prove()
    assert list(t.check_results().values()) == ["error"]


def after_the_paths():
    """|x| = x"""
    x = symbols("x", 1)
    found = [y for _, y in all_paths(lambda: absolute(x))]
    prove_equal([found[0][0] * (1 + found[0][0])], [x[0] + x[0] ** 2])


def test_what_is_claimed_after_the_paths_is_claimed_of_one():
    t = theorem(of=[absolute], sizes="one")(after_the_paths)
    t.prove()
    with pytest.raises(Unsound, match="claims nothing on 2 paths; compare on each of them"):
        t.check_honesty()


def test_a_theorem_of_no_function_runs_none_of_posref():
    t = theorem(of=[], sizes="d = 2")(in_one_layout)
    with pytest.raises(Unsound, match="runs split, which `of` does not name"):
        t.check_results()


def about_no_result():
    """(x + 1)^2 = x^2"""
    x = symbols("x", 2)
    prove_equal((x + 1) ** 2, x**2)
    prove_equal(double(x), 2 * x)


def of_a_length():
    """double(x) = 3 x"""
    y = double(symbols("x", 2))
    prove_that(y.dtype is None, counterexample=f"x = {1}: double(x) is 2, expected 3")


@pytest.mark.parametrize("control", [about_no_result, of_a_length])
def test_a_control_is_refuted_by_a_result(control):
    t = theorem(of=[double], sizes="one", **CODE)(one_cell)
    t.control(control)
    t.prove()
    with pytest.raises(Unsound, match="is refuted by what no result is part of"):
        t.check_results()


def in_fixed_words():
    """double(x) = x"""
    prove_that(double(2) == 2, counterexample="x = 2: double(x) is 17, expected 2")


def test_a_counterexample_is_made_of_results():
    t = theorem(of=[double], sizes="one", **CODE)(one_cell)
    t.control(in_fixed_words)
    with pytest.raises(Unsound, match=r"has the counterexample 'x = 2: .*'; make it of results"):
        t.check_controls()


@pytest.mark.parametrize("sizes", ["d = 1, 2", "d = 1 .. 3", "d = 1 and n = 2^3"])
def test_numbers_that_a_theorem_names_have_run(sizes):
    t = theorem(of=[double], sizes=sizes, **CODE)(one_cell)
    t.prove()
    with pytest.raises(NotProved, match=r"no call of its functions has [28]"):
        numbers.check(t, with_named=True)


def test_a_kernel_is_not_expected_to_write_what_it_wrote():
    x, out = sized("x", N), Output((N,))
    with pytest.raises(IndexError):
        prove_kernel(with_its_double, [x, out], (out, SizedArray((N,), lambda i: out.writes[-1][1])))


def with_its_double(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i] + x[i]


def test_a_copy_is_not_the_function():
    copy = types.FunctionType(double.__code__, globals(), "split")
    copy.__module__ = "posref.pairing"
    with pytest.raises(Unsound, match=r"is about a copy of posref\.pairing\.split"):
        theorem(of=[copy], sizes="one")(one_cell).check_honesty()


AN_EXAMPLE = [(zero, "all n", "all n"), (for_all_sizes, "one", "for all n and all d"), (zero, "d = 1; all n", "all n")]


@pytest.mark.parametrize(("body", "sizes", "said"), AN_EXAMPLE)
def test_an_example_says_where_it_ends(body, sizes, said):
    t = example(of=[double], sizes=sizes)(body)
    t.prove()
    with pytest.raises(Unsound, match=f"is an example and says '{said}'; name the numbers that ran"):
        t.check_honesty()


# what is true under a hypothesis that the kit has to name


def quotient_of_itself():
    x = symbol("x")
    prove_equal([x / x], [1])


def quotient_of_arrays():
    x = sized("x", N)
    prove_equal(*entries(None, x / x, filled((N,), 1)))


def quotient_in_an_expression():
    x, y = symbol("x").e, symbol("y").e
    prove_equal([(x * y + x) / y], [x + x / y])


@pytest.mark.parametrize("body", [quotient_of_itself, quotient_of_arrays, quotient_in_an_expression])
def test_what_is_divided_by_is_recorded(body):
    proved(body)
    assert RECORD.denominators


def test_hypotheses_are_recorded():
    a = symbol("a", integer=True).e

    def body():
        with assuming(sp.Ge(a, 5)):
            prove_equal([a], [a])

    proved(body)
    assert list(RECORD.hypotheses) == ["a >= 5"]


# what arrays of numbers see


class InArrays:
    """Functions that symbols take for the formula in their contract's shape: other batches, large integers, longer results."""

    @contract
    def of_flat_batches(q: Numbers[Array, "... n d"], k: Numbers[Array, "... m d"]) -> Numbers[Array, "... n m"]:
        """Scores of two batches of one shape; batches (2, 1) and (1, 2) fail."""
        lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2])
        q, k = q.reshape(-1, *q.shape[-2:]), k.reshape(-1, *k.shape[-2:])
        return (q @ np.swapaxes(k, -1, -2)).reshape(*lead, q.shape[-2], k.shape[-2])

    @contract
    def of_sums_over_batches(q: Numbers[Array, "... d"], k: Numbers[Array, "... d"]) -> Numbers[Array, "d"]:
        """Of two batches of one shape; of (2, 1) and (1, 2) two of four products are missing."""
        return (q.reshape(-1, q.shape[-1]) * k.reshape(-1, k.shape[-1])).sum(axis=-2)

    @contract
    def of_a_third_batch(
        q: Numbers[Array, "... d"], k: Numbers[Array, "... d"], v: Numbers[Array, "... d"]
    ) -> Numbers[Array, "... d"]:
        """The first two have any batch, the third one that of both or none."""
        y = q * k
        lead = np.broadcast_shapes(y.shape, v.shape)
        return (y.reshape(-1, y.shape[-1]) * v.reshape(-1, v.shape[-1])).reshape(lead)

    @contract
    def of_a_product_and_its_quotient(q: SignedIntegers[Array, "n"]) -> SignedIntegers[Array, "n"]:
        """0 at 2^24: 64 bits hold no 2^64."""
        return q * 2**40 // 2**40

    @contract
    def of_a_part_of_a_trillion(q: SignedIntegers[Array, "n"]) -> SignedIntegers[Array, "n"]:
        """The part is rounded away, and 64 bits hold no 2^31 trillions."""
        return (q * 10**12 + 1) // 10**12

    @contract
    def of_eight_squares(q: SignedIntegers[Array, "n"]) -> SignedIntegers[Array, "n"]:
        """64 bits hold the square of 2^31, and not eight of them."""
        return q * q * 8 // 8

    @contract
    def of_a_negative_power(q: Numbers[Array, "n"]) -> Numbers[Array, "n"]:
        """numpy takes no integers to negative powers; the contract takes integers."""
        return (1 + q * q) ** -1

    @contract
    def of_a_power_of_a_number(q: Numbers[Array, "n"]) -> Numbers[Array, "n"]:
        """numpy takes no integers to negative powers; the contract takes integers."""
        return q * np.full_like(q, 2) ** -1

    @contract
    def of_all_products_twice(q: Numbers[Array, "n"], k: Numbers[Array, "d"]) -> Numbers[Array, "n*d"]:
        """All products, and all again."""
        y = (q[..., None] * k[..., None, :]).reshape(-1)
        return np.concatenate([y, y])

    @contract
    def of_a_product_less(q: Numbers[Array, "n"], k: Numbers[Array, "d"]) -> Numbers[Array, "n 2*n*d+1"]:
        """One column is missing."""
        return np.repeat(q[..., None], 2 * len(q) * len(k), axis=-1)

    @contract
    def of_its_own_length(q: Numbers[Array, "n"]) -> Numbers[Array, "=q"]:
        """All entries, and all again."""
        return np.concatenate([q, q])

    @contract
    def of_two_parts(q: Numbers[Array, "n"]) -> tuple[Numbers[Array, "n"], Numbers[Array, "n"]]:
        """All entries, and all again."""
        return 1 * q, np.concatenate([q, q])


def of_its_arguments(function, *lengths):
    """A body that claims of each result that it has the entries that it has: what symbols can tell is true."""

    def body():
        whole = "integers" in str(function.contract.arguments["q"].rule)
        given = [symbols(name, *lengths, integer=True if whole else None) for name in function.contract.arguments]
        result = function(*given)
        for part in result if isinstance(result, tuple) else (result,):
            prove_equal(part, part + 0)

    body.__doc__ = "It is what is in its contract, for all q."
    return body


ROWS = {"of_flat_batches": (2, 3)}


@pytest.mark.parametrize("function", [f for name, f in vars(InArrays).items() if name.startswith("of_")])
def test_arrays_of_numbers_tell(function):
    t = theorem(of=[function], sizes="one")(of_its_arguments(function, *ROWS.get(function.__name__, (2,))))
    t.prove()
    with pytest.raises((Refuted, ValueError)):
        numbers.check(t)


def same_name():
    """q k"""
    prove_equal(*entries(None, product(sized("q", N), sized("q", N)), sized("q", N) * sized("q", N)))


def test_two_arrays_of_one_name_are_one():
    t = theorem(of=[product], sizes="one", as_written="formula")(same_name)
    t.prove()
    with pytest.raises(NotProved, match="gives product one array for q and k"):
        numbers.check(t)


# what must stay provable


@true
def induction_of_integers():
    prove_induction(K, K * (K - 1) / 2, K)


@true
def log_is_a_function():
    x = symbol("x", positive=True)
    prove_equal([np.log(np.array([x], dtype=object))[0]], [sp.log(x.e)])


QUESTIONS = [  # pairs of comparisons with the same answer for all numbers
    (lambda a, b: a > b, lambda a, b: b < a),
    (lambda a, b: a > b, lambda a, b: 2 * a - 2 * b > 0),
    (lambda a, b: a > b, lambda a, b: -a < -b),
    (lambda a, b: a**2 > b**2, lambda a, b: (b - a) * (a + b) < 0),
    (lambda a, b: a - b >= 0, lambda a, b: -b >= -a),
]


@pytest.mark.parametrize(("first", "second"), QUESTIONS)
def test_one_question_in_two_words_has_one_answer(first, second):
    a, b, i = sized("a", N), sized("b", N), index(N)
    paths = list(all_paths(lambda: [np.where(asked(a, b), a, b).at(i) for asked in (first, second)]))
    assert len(paths) == 2
    assert all(left == right for _, (left, right) in paths)


def test_of_three_signs_there_are_three_paths():
    x = symbol("x")
    found = {path for _, path in all_paths(lambda: (x >= 0, x > 0, x <= 0))}
    assert found == {(True, True, False), (False, False, True), (True, False, True)}


def test_a_witness_takes_the_path():
    """max(x, y) + min(x, y) = x + y on each path, also on that where x = y."""
    x, y = symbol("x"), symbol("y")

    def body():
        for _, (most, least) in all_paths(lambda: (x if x >= y else y, x if x <= y else y)):
            prove_equal([most + least], [x + y])

    with pytest.raises(Undecided, match="no witness"):
        body()


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_not_accepted(name):
    with pytest.raises(Exception):  # noqa: B017, PT011, whatever stops it
        proved(ATTACKS[name])


@pytest.mark.parametrize("name", TRUE)
def test_what_is_true_stays_provable(name):
    proved(TRUE[name])


def test_a_question_of_a_body_is_answered_with_a_remedy():
    with pytest.raises(Undecided, match="may not compare a size; move the check into the contract"):
        proved(ATTACKS["size_equals_number"])


# loops run turn by turn: what a turn stores, and lists of which nobody knows the length


def running(x, out, n):
    total = 0
    for k in range(n):
        total = total + x[k]
        out[k] = total
        out[2 * n - 1] = total


def summed_beside(x, n, beside):
    total = 0
    for _ in range(n):
        total = total + x
        beside[0] = beside[0] + total
    return total + beside[0]


def restarting(step, start, length):
    states = [start]
    for _ in range(1, length):
        states.append(step(states[-1]))
    return np.stack((states[:64] + states[:64] * length)[: len(states)])


def restarting_at_a_turn(step, start, length):
    states = [start]
    for _ in range(1, length):
        states.append(step(states[len(states) % 64 - 1]))
    return np.stack(states)


def forgetting(step, start, length):
    states = [start]
    for _ in range(1, length):
        states.append(step(states[-1]))
    rows = np.stack(states)
    return np.concatenate([rows[:64], 0 * rows[64:]])


class Remembering:
    """Cells that are written, and of which only those that a theorem reads are seen."""

    def __init__(self):
        self.known = {}

    def __setitem__(self, k, value):
        self.known[str(expression(k))] = value

    def __getitem__(self, k):
        return self.known[str(expression(k))]


def turned(function, out):
    """Names and the index of one turn of running sums of x, with `out` as the array that is written."""
    k, n = symbol("k", integer=True, nonnegative=True), symbol("n", integer=True)
    x, loop = Cells(sp.Function("x", real=True)), Loop(function, 0)
    names = loop.before({"x": x, "out": out, "n": n})
    prove_equal([names["total"]], [0])
    prove_that(loop.turns(names) == [n.e], "turns 0 .. n - 1")
    after = loop.turn({**names, "total": symbol("t")}, k=k)
    prove_equal([after["total"], after["out"][k]], 2 * [symbol("t") + x[k]])
    loop.after({**names, "total": symbol("s")})
    covers(function)


def stores_in_an_own_class():
    """running(x, out, n) writes the sum of x_0 .. x_k into each out_k, k < n."""
    turned(running, Remembering())


def stores_in_an_array():
    """summed_beside(x, n) = n x"""
    x, n, loop = symbol("x"), symbol("n", integer=True), Loop(summed_beside, 0)
    names = loop.before({"x": x, "n": n, "beside": np.array([0, 0], dtype=object)})
    prove_equal([names["total"]], [0])
    prove_that(loop.turns(names) == [n.e], "turns 0 .. n - 1")
    after = loop.turn({**names, "total": symbol("t")}, _=symbol("k", integer=True))
    prove_equal([after["total"]], [symbol("t") + x])
    returned = loop.after({**names, "total": symbol("s"), "beside": np.array([0, 0], dtype=object)})["returned"]
    prove_equal([returned], [symbol("s")])
    covers(summed_beside)


def state_at(k):
    return array([sp.Function("p", real=True)(expression(k))])


def next_state(p):
    return array([sp.Function("p", real=True)(expression(x).args[0] + 1) for x in p])


def stepped_in(function, earlier, kept):
    """What every_length of proofs/absolute/recurrent.py claimed, of lists of so many states."""
    k, length, loop = symbol("k", integer=True, positive=True), symbol("length", integer=True), Loop(function, 0)
    names = loop.before({"step": next_state, "start": state_at(0), "length": length})
    prove_that(loop.turns(names) == [1, length.e], "turns 1 .. length - 1")
    prove_equal(names["states"], [state_at(0)])
    states = [state_at(k - n) for n in range(earlier, 0, -1)]
    prove_equal(loop.turn({**names, "states": states}, _=k)["states"][-1], state_at(k))
    rows = [state_at(n) for n in range(kept)]
    prove_equal(loop.after({**names, "states": [*rows], "length": kept})["returned"], np.stack(rows))
    covers(function)


def a_list_that_starts_over():
    """restarting(f, start, length) is all states of f from the start on."""
    stepped_in(restarting, 2, 3)


def a_turn_that_starts_over():
    """restarting_at_a_turn(f, start, length) is all states of f from the start on."""
    stepped_in(restarting_at_a_turn, 2, 3)


def a_stack_that_forgets():
    """forgetting(f, start, length) is all states of f from the start on."""
    stepped_in(forgetting, 2, 3)


LOOPS = [
    (stores_in_an_own_class, running, "out stands for an object of the class Remembering, which keeps no record"),
    (stores_in_an_array, summed_beside, "beside is carried from turn to turn and has the value of the first"),
    (a_list_that_starts_over, restarting, "states is a list of 2 entries; pass Listed"),
    (a_turn_that_starts_over, restarting_at_a_turn, "states is a list of 2 entries; pass Listed"),
    (a_stack_that_forgets, forgetting, "states is a list of 2 entries; pass Listed"),
]


@pytest.mark.parametrize(("body", "function", "problem"), LOOPS)
def test_what_pieces_of_a_loop_write_and_read_is_seen(body, function, problem):
    t = theorem(of=[function], sizes="every n", argument=".", silent=".")(body)
    with pytest.raises((NotProved, Unsound), match=problem):
        t.prove()


# every mask


def masked_mean(x, mask):
    """The mean of the entries where the mask is True; without any it is 0/0."""
    return np.where(mask, x, 0).sum(axis=-1) / mask.sum(axis=-1)


def of_masks(said, *masks, function=masked_mean):
    """A body about the mean of two entries under these masks."""

    def body():
        x = symbols("x", 2)
        for mask in map(np.array, masks):
            prove_equal([function(x, mask)], [sum(x[mask]) / int(mask.sum())])

    body.__doc__ = f"masked_mean(x, mask) is the sum of the kept entries of x over their number {said}."
    return body


KEPT = [True, False], [True, True], [False, True]


@pytest.mark.parametrize("said", ["for every mask", "for all masks", "for any boolean mask", "whatever is masked"])
def test_every_mask_has_a_row_without_a_key(said):
    t = theorem(of=[masked_mean], sizes="two entries", as_written="formula")(of_masks(said, *KEPT))
    t.prove()
    t.check_honesty()
    with pytest.raises(NotProved, match=r"gets no row without a key; run one, or say 'with a key'"):
        numbers.check(t)


def test_a_mask_with_a_key_may_be_meant():
    t = theorem(of=[masked_mean], sizes="two entries", as_written="formula")(of_masks("for every mask with a key", *KEPT))
    t.prove()
    numbers.check(t)
