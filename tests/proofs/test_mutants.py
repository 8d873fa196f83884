"""Mutants of small functions counted by hand, and what swapping code may and may not do."""

import ast
import functools

import numba
import numpy as np
import pytest

from posref.fast import rope as fast
from posref.rotary import rope
from proofs.kit import language
from proofs.kit.mutants import Tripwire, mutants, python_function, swapped, tree, tripwire


def sample(x, cos, sin, axis=-1):
    """Not mutated: 1 + 1."""
    if x is None:
        raise ValueError(f"sample: {1 + 1}")
    _require(x, 1 + 1)
    for value in (cos, sin):
        _require(value, 3)
    first = x[0] * np.cos(cos)
    if first > 0:
        first = -first
    return first.sum(axis=-1) / 2


def _require(*arguments):
    """Stands for a check of arguments."""


def annotated(x: int = 1 + 1, *, scale: float = 2) -> int:
    half: int = x // 2

    def inner(y):
        return y - half

    turned = lambda y: y * scale  # noqa: E731, an inner lambda is what is tested
    return inner(x) + turned(x)


def words(x, mask=None):
    mask = not x if mask is None else mask
    mask &= x % 7 > 0 or x**3 > 9
    return sorted([x], reverse=True) if mask else x


def twice(x):
    if x > 1:
        return x + 1
    return x + 1


def closure(offset):
    def shifted(x):
        return x + offset

    return shifted


def wrap(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)

    return wrapper


@wrap
def decorated(x):
    return x + 1


@numba.njit
def compiled(x):
    return x + 1


def labels(function):
    return [label for label, _ in mutants(function)]


def test_every_mutant_of_the_sample():
    assert sorted(labels(sample)) == sorted(
        f"sample: {before}  ->  {after}"
        for before, after in [
            ("first = x[0] * np.cos(cos)", "first = x[1] * np.cos(cos)"),
            ("first = x[0] * np.cos(cos)", "first = x[-1] * np.cos(cos)"),
            ("first = x[0] * np.cos(cos)", "first = x[0] + np.cos(cos)"),
            ("first = x[0] * np.cos(cos)", "first = x[0] * np.sin(cos)"),
            ("first = x[0] * np.cos(cos)", "first = x[0] * np.cos(sin)"),
            ("if first > 0:", "if first >= 0:"),
            ("if first > 0:", "if first > 1:"),
            ("if first > 0:", "if first > -1:"),
            ("first = -first", "first = first"),
            ("return first.sum(axis=-1) / 2", "return first.sum(axis=-2) / 2"),
            ("return first.sum(axis=-1) / 2", "return first.sum(axis=-1) * 2"),
            ("return first.sum(axis=-1) / 2", "return first.sum(axis=-1) / 3"),
            ("return first.sum(axis=-1) / 2", "return first.sum(axis=-1) / 1"),
        ]
    )


@pytest.mark.parametrize(
    "changed",
    [
        "mask = x if mask is None else mask",
        "mask = not x if mask is not None else mask",
        "mask = mask if mask is None else not x",
        "mask |= x % 7 > 0 or x ** 3 > 9",
        "mask &= x + 7 > 0 or x ** 3 > 9",
        "mask &= x % 7 > 0 and x ** 3 > 9",
        "mask &= x % 7 > 0 or x * 3 > 9",
        "return sorted([x], reverse=False) if mask else x",
        "return x if mask else sorted([x], reverse=True)",
    ],
)
def test_words_and_branches_are_mutated(changed):
    assert changed in {label.split("  ->  ")[1] for label, _ in mutants(words)}


def test_inner_functions_and_lambdas_are_mutated():
    found = labels(annotated)
    assert "annotated: return y - half  ->  return y + half" in found
    assert "annotated: turned = lambda y: y * scale  ->  turned = lambda y: y + scale" in found
    assert "annotated: half: int = x // 2  ->  half: int = x * 2" in found


def test_defaults_and_keywords_stay_as_they_are():
    codes = dict(mutants(annotated))
    with swapped(annotated, codes["annotated: return y - half  ->  return y + half"]):
        assert annotated() == (2 + 1) + 2 * 2
        assert annotated(4, scale=3) == (4 + 2) + 4 * 3
    assert annotated() == (2 - 1) + 2 * 2


def test_labels_are_unique_and_say_what_changed():
    for function in (sample, annotated, twice, rope.rotate, rope.frequencies, fast._half):
        found = labels(function)
        assert len(set(found)) == len(found)
        for label in found:
            before, after = label.removesuffix(" (again)").split(": ", 1)[1].split("  ->  ")
            assert before != after
            assert "\n" not in label
    assert [label for label in labels(twice) if label.endswith("(again)")]


def test_every_label_is_what_its_code_does():
    values = {label: [_outcome(twice, code, x) for x in (0, 1, 2)] for label, code in mutants(twice)}
    assert twice(1) == 2
    assert values["twice: if x > 1:  ->  if x > 0:"] == [1, 2, 3]
    assert values["twice: return x + 1  ->  return x - 1"] == [1, 2, 1]
    assert values["twice: return x + 1  ->  return x - 1 (again)"] == [-1, 0, 3]
    assert values["twice: return x + 1  ->  return x + 2 (again)"] == [2, 3, 3]
    assert sorted(_outcome(compiled, code, 5) for _, code in mutants(compiled)) == [4, 5, 7]


def _outcome(function, code, x):
    with swapped(function, code):
        return python_function(function)(x)


def test_code_is_restored_also_after_an_exception():
    own = sample.__code__

    def fail():
        with swapped(sample, twice.__code__):
            assert sample.__code__ is twice.__code__
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert sample.__code__ is own


def test_every_caller_sees_the_mutant():
    alias = twice
    with swapped(twice, tripwire(twice)), pytest.raises(Tripwire, match="twice"):
        alias(1)
    code = dict(mutants(twice))["twice: if x > 1:  ->  if x >= 1:"]
    with swapped(twice, code):
        assert "x >= 1" in ast.unparse(tree(alias))
    assert "x > 1" in ast.unparse(tree(alias))
    assert "Not mutated" not in ast.unparse(tree(sample))


def test_dispatchers_of_numba_are_mutated_in_their_source():
    assert python_function(compiled) is compiled.py_func
    assert compiled(1) == 2
    with swapped(compiled, tripwire(compiled)), pytest.raises(Tripwire):
        compiled.py_func(1)
    assert compiled.py_func(1) == 2
    assert labels(fast._half)


@pytest.mark.parametrize("function", [closure(1), decorated])
def test_functions_whose_code_cannot_be_swapped_are_refused(function):
    """A swap that fails would count as a mutant that is killed."""
    with pytest.raises(TypeError, match="closure or wrapped"):
        tripwire(function)
    with pytest.raises(TypeError, match="closure or wrapped"):
        labels(function)


def test_the_language_is_read_in_the_code_that_runs():
    """A mutant whose text could not be read would count as noticed by whoever looks at it first."""
    language._passed.clear()
    for _, code in mutants(fast._tables):
        with swapped(fast._tables, code):
            language.check(fast._tables)
