"""Laws of every function: a batch gives the results of its rows, masked keys change nothing, results have the shape of the
contract, float32 stays float32, integers give the results of floats, and fractions stay exact."""

import inspect
import itertools
import re
from fractions import Fraction

import numpy as np

from posref._contract.axes import TOGETHER
from posref._contract.kinds import Arrays, Even
from proofs.kit.rank import batched, stated, wrong_extents
from tests.every import every
from tests.test_contract import FUNCTIONS, _call, _choices, _names, _satisfies

LEADS = ((2,), (3, 2))
VALUES = (  # numbers that differ from place to place, from general to special: some functions refuse the first ones
    lambda n: ((7 * n * n + 31 * n) % 251 - 125) / 64,
    lambda n: (5 * n * n + 3 * n) % 7 / 8 + 1 / 8,
    lambda n: (5 * n * n + 3 * n) % 4 + 4,
    lambda n: (5 * n * n + 3 * n) % 3 + 1,
    lambda n: n % 2,
    lambda n: 0 * n + 1,
    lambda n: -((5 * n * n + 3 * n) % 3 + 1),
)
MAPS = (
    lambda *given: given[-1] / 2 + 1,
    lambda *given: np.repeat(given[-1] / 2 + 1, 2, axis=-1),
)  # for arguments that are functions
UNMET = ("rotary.layouts.permute_projection", "rotary.scaling.yarn")  # no numbers of VALUES fit: their own tests ask them
OF_FEW_NUMBERS = ("position_ids.zigzag", "position_ids.dual_chunk", "position_ids.multimodal", "absolute.learned.position_ids")
REFUSED = (ValueError, TypeError, ArithmeticError, RuntimeWarning)


def arguments(function, values, names, lead, numbers, map_):
    """Arrays of these numbers, with leading axes for `names`; half of a real number; `map_` for a function."""
    made = {}
    for n, value in values.items():
        if isinstance(value, tuple):
            continue  # a record of arrays stays as it is
        shape = (*(lead if n in names else ()), *np.shape(value))
        painted = numbers(np.arange(int(np.prod(shape))).reshape(shape))
        if isinstance(value, np.ndarray):
            made[n] = painted % 2 >= 0.5 if value.dtype == bool else painted.astype(value.dtype)
        elif callable(value):
            made[n] = map_
        elif isinstance(value, float) and _satisfies(function.contract.arguments[n].rule, value / 2):
            made[n] = value / 2
        elif function.contract.arguments[n].rule is Even and all(n not in _names(axis) for axis in _axes(function)):
            made[n] = 2 * value
    return values | made


def _axes(function):
    return [axis for a in function.contract.arguments.values() if a.shape for axis in a.shape.axes]


def stacked(function, values, names, lead):
    """Every slice of the call with leading axes, and the call without them."""
    whole = _call(function, function, values)
    for place in np.ndindex(lead):
        one = _call(function, function, {n: v[place] if n in names else v for n, v in values.items()})
        for part, alone in zip(_parts(whole), _parts(one), strict=True):
            yield np.asarray(part)[place], np.asarray(alone)


def _parts(result):
    return result if isinstance(result, tuple) else (result,)


@every(list(itertools.product([name for name, function in FUNCTIONS.items() if batched(function)], LEADS)))
def test_a_batch_is_its_rows(name, lead):
    function, asked = FUNCTIONS[name], 0
    names = batched(function)
    for values in _choices(function.contract):
        for numbers, map_ in itertools.product(VALUES, MAPS):
            try:
                pairs = [*stacked(function, arguments(function, values, names, lead, numbers, map_), names, lead)]
            except REFUSED:
                continue
            for got, expected in pairs:  # sums of at most 4 products, which numpy may add in another order
                np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-13)
            asked += 1
            break
    assert asked, "no numbers fit: extend VALUES"


def examples(function, ways=VALUES):
    """For every choice of the arguments the first numbers that a function takes, with a leading axis where it may have one."""
    found = []
    for values in _choices(function.contract):
        kinds = itertools.product(ways, MAPS)
        given = (arguments(function, values, batched(function), (2,), numbers, map_) for numbers, map_ in kinds)
        found += itertools.islice((each for each in given if _runs(function, each)), 1)
    assert found, "no numbers fit: extend VALUES"
    return found


def sharing(function):
    """The arrays whose leading axes broadcast together."""
    return [n for n in batched(function) if function.contract.arguments[n].shape.lead in TOGETHER]


@every([name for name, function in FUNCTIONS.items() if len(sharing(function)) > 1])
def test_an_argument_without_a_batch_is_that_of_every_row(name):
    """Each of the arguments that broadcast together in turn has a leading axis, and the others are repeated along it."""
    function = FUNCTIONS[name]
    rules = {n: function.contract.arguments[n] for n in batched(function)}
    for own, given in itertools.product(sharing(function), examples(function)):
        given |= {n: None for n, a in rules.items() if a.optional and a.shape.lead == "(...)"}  # it has all axes or none
        others = {n: given[n][0] for n in rules if n != own and given[n] is not None}
        alone, spread = given | others, given | {n: np.stack([v, v]) for n, v in others.items()}
        for got, expected in zip(*(_parts(_call(function, function, each)) for each in (alone, spread)), strict=True):
            np.testing.assert_allclose(np.broadcast_to(got, np.shape(expected)), expected, rtol=1e-13, atol=1e-13)


def masked(function):
    """The axes of queries and keys of a function that takes a mask of pairs; none if it takes no such mask."""
    rule = getattr(function.contract.arguments.get("mask"), "rule", None)
    words = rule.axes.split() if isinstance(rule, Arrays) else []
    return [word.removeprefix("#") for word in words[1:]] if words[:1] == ["(...)"] else []


def hidden(function, values, size):
    """The same arguments with the second key far off: its features, and the entries of every pair of it."""
    key, made = masked(function)[-1], {}
    for n, value in values.items():
        rule = function.contract.arguments[n].rule
        names = [word.strip("#?") for word in rule.axes.split()[1:]] if isinstance(rule, Arrays) and n != "mask" else []
        if key in names and value.dtype == float and "positions" not in n:
            made[n] = value.copy()
            np.moveaxis(made[n], names.index(key) - len(names), 0)[1] = size
    return values | made


@every(list(itertools.product([name for name, function in FUNCTIONS.items() if masked(function)], [900.0, -900.0])))
def test_a_masked_key_changes_nothing(name, size):
    """The results are finite and the same bits, but for what is said of the masked key itself."""
    function = FUNCTIONS[name]
    key = masked(function)[-1]
    result = function.__wrapped__.__annotations__.get("return")
    for values in _choices(function.contract):
        given = arguments(function, values, [], (), VALUES[0], MAPS[0])
        given = next(g for g in (given, arguments(function, values, [], (), VALUES[2], MAPS[0])) if _runs(function, g))
        given["mask"] = np.ones_like(values["mask"])
        given["mask"][..., 1] = False
        for got, expected in zip(
            *(_parts(_call(function, function, g)) for g in (hidden(function, given, size), given)), strict=True
        ):
            of_key = isinstance(result, Arrays) and result.axes.split()[-1] == key
            seen = np.broadcast_to(given["mask"], expected.shape) if of_key else True
            assert np.isfinite(expected).all()
            np.testing.assert_array_equal(np.where(seen, got, 0), np.where(seen, expected, 0))


def _runs(function, values):
    try:
        _call(function, function, values)
    except REFUSED:
        return False
    return True


@every(list(itertools.product([name for name, function in FUNCTIONS.items() if any(stated(function))], [(), *LEADS])))
def test_a_result_has_the_shape_of_its_contract(name, lead):
    """Every extent that an argument has; with # it may be 1 instead."""
    function = FUNCTIONS[name]
    for values in _choices(function.contract):
        ways = itertools.product(VALUES, MAPS)
        given = (arguments(function, values, batched(function), lead, numbers, map_) for numbers, map_ in ways)
        given = next((each for each in given if _runs(function, each)), None)
        if given is None and name in (*UNMET, *OF_FEW_NUMBERS):
            continue
        assert wrong_extents(function, given, _call(function, function, given)) == []


# Kinds of numbers

IN_DOUBLE = (
    "Computed in float64."  # in a docstring: a factor in the formula is an array that is made in float64, or of integers
)
IRRATIONAL = re.compile(r"\*\* ?(?!\d)|np\.pi|Computed in float64")  # a power, a circle


def converted(given, convert):
    """The same arguments with every array of floats converted."""

    def of(value):
        if isinstance(value, tuple):
            return type(value)(*map(of, value))
        return convert(value) if getattr(value, "dtype", None) == np.float64 else value

    return {name: of(value) for name, value in given.items()}


TAKES_FLOATS = [
    name
    for name, function in FUNCTIONS.items()
    if name not in UNMET and any(a.shape and "f" in a.rule.kind.dtypes for a in function.contract.arguments.values())
]


@every(TAKES_FLOATS)
def test_precision_is_that_of_the_arguments(name):
    """float64 gives float64, float32 stays float32, and integers among the results are int64."""
    function = FUNCTIONS[name]
    single = (np.float64, np.complex64) if IN_DOUBLE in function.__doc__ else (np.float32, np.complex64)
    for given in examples(function):
        for kind, floats in ((np.float64, (np.float64, np.complex128)), (np.float32, single)):
            got = _call(function, function, converted(given, kind))
            assert [d for part in _parts(got) if (d := np.asarray(part).dtype) not in (*floats, np.int64, bool)] == []


@every(TAKES_FLOATS)
def test_whole_numbers_count_as_floats(name):
    """Nothing is truncated and nothing wraps: integers of any width give what the same floats give, or a width is refused."""
    function = FUNCTIONS[name]
    for given, kind in itertools.product(examples(function, VALUES[2:]), (np.int64, np.int32, np.uint8)):
        whole = converted(given, kind)
        if kind is not np.int64 and not _runs(function, whole):
            continue
        results = (_call(function, function, each) for each in (given, whole))
        for expected, got in zip(*map(_parts, results), strict=True):
            assert np.asarray(got).dtype in (np.asarray(expected).dtype, kind, np.int64)
            np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-13, err_msg=kind.__name__)


def test_fractions_stay_exact():
    """Where a rational function runs on fractions, no result has become a float; sympy's symbols pass in the same way."""
    exact = set()
    for name in TAKES_FLOATS:
        for given in examples(FUNCTIONS[name]):
            fractions = converted(given, np.vectorize(lambda x: Fraction(float(x)), otypes=[object]))
            fractions |= {n: Fraction(v) for n, v in given.items() if isinstance(v, float)}
            try:
                got = _call(FUNCTIONS[name], FUNCTIONS[name], fractions)
            except (TypeError, AttributeError):  # exponentials, sines and roots are not rational
                continue
            exact.add(name)
            for part, close in zip(_parts(got), _parts(_call(FUNCTIONS[name], FUNCTIONS[name], given)), strict=True):
                floats = {type(x) for x in np.ravel(part)} & {float, np.float64}
                assert not floats or IRRATIONAL.search(inspect.getsource(FUNCTIONS[name].__wrapped__)), name
                np.testing.assert_allclose(np.asarray(part, dtype=float), close, rtol=1e-13, atol=1e-13, err_msg=name)
    assert len(exact) >= 75
