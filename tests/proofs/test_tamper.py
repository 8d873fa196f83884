"""Edits that are drawn: of many classes, none of them a mutant, each shown where it is and with who notices it."""

import ast
import itertools
import random
from pathlib import Path

import numpy as np
import pytest

from posref import attention
from posref.relative import t5
from posref.rotary import rope
from proofs.kit import entries, prove_equal, size, sized, theorem
from proofs.kit.mutants import code_of, mutants, original, tree_of
from proofs.kit.report import _verdict
from proofs.kit.tamper import Edit, drawn


def first_edits(seed, functions=(rope.rotate, rope.tables)):
    return [*itertools.islice(drawn(functions, random.Random(seed)), 3)]


def test_edits_are_drawn_from_many_classes():
    drawn_classes = [{edit.kind for edit in first_edits(seed)} for seed in range(8)]
    assert {len(classes) for classes in drawn_classes} == {3}
    assert len(set(map(frozenset, drawn_classes))) > 5
    assert len(set().union(*drawn_classes)) > 8


@pytest.mark.parametrize("function", [rope.rotate, t5.bucket, attention.softmax])
def test_no_edit_is_a_mutant_or_the_function_itself(function):
    tried = {ast.unparse(tree_of(code)) for _, code in mutants(function)} | {ast.unparse(original(function.__wrapped__))}
    texts = [ast.unparse(tree_of(edit.code)) for edit in drawn([function], random.Random(0))]
    assert len(texts) == len(set(texts)) > 60
    assert not tried & set(texts)


def test_an_edit_is_shown_where_it_is():
    for edit in itertools.islice(drawn([t5.bucket], random.Random(1)), 30):
        file, line = edit.where.split(":")
        first = Path(file).read_text().splitlines()[int(line) - 1].strip()
        assert edit.before[:6].replace("'", '"') == first[:6].replace("'", '"')
        assert edit.before != edit.after


def plain(x):
    y = x * 3
    y = np.minimum(y, y)
    return y[..., ::1]


@theorem(of=[plain], sizes="all n")
def is_three_times():
    """plain(x) is 3 x for all n and x."""
    x = sized("x", size("n"))
    prove_equal(*entries(None, plain(x), 3 * x))


@pytest.mark.parametrize(
    ("before", "after", "answer"),
    [
        ("x * 3", "x + 3", "is_three_times: Refuted: "),
        ("y[..., ::1]", "y[..., ::-1]", "is_three_times: Refuted: "),
        ("np.minimum(y, y)", "y", "nobody notices: the edit changes no result, or a theorem is missing; 1 are about plain"),
    ],
)
def test_who_notices_an_edit(before, after, answer):
    is_three_times.prove()
    text = ast.unparse(original(plain))
    assert before in text
    edit = Edit(plain, "any", "here:1", before, after, code_of(plain, ast.parse(text.replace(before, after))))
    said = _verdict(edit, [is_three_times])
    assert answer in said
    assert ("1 of 1 theorems about plain fail" in said) != answer.startswith("nobody")
    assert plain(np.ones(2)).tolist() == [3, 3]
