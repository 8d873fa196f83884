"""Learned tables: published ids, cosine similarity, and what the body refuses."""

import numpy as np
import pytest

from posref.absolute import learned
from tests.refused import refused


def test_published_examples():
    left = np.array([False, False, True, True, True])
    assert learned.position_ids(left, convention="opt").tolist() == [1, 1, 2, 3, 4]
    tokens = np.array([5, 6, 7, 1, 1])
    assert learned.position_ids(tokens != 1, convention="roberta").tolist() == [2, 3, 4, 1, 1]
    no_tokens_given = np.ones(5, dtype=bool)
    assert learned.position_ids(no_tokens_given, convention="roberta").tolist() == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("name", learned.PRESETS)
def test_presets_hold_exactly_their_longest_sequence(name):
    preset = learned.PRESETS[name]
    longest = {"bert": 0, "opt": 2, "roberta": 1 + preset.get("padding_idx", 0)}[preset["convention"]]
    mask = np.ones(preset["rows"] - longest, dtype=bool)
    table = np.zeros((preset["rows"], 1))
    ids = learned.position_ids(mask, convention=preset["convention"])
    assert learned.encode(ids, table).shape == (len(mask), 1)
    one_more = learned.position_ids(np.append(mask, True), convention=preset["convention"])
    with pytest.raises(ValueError, match=f"to {preset['rows']} and table has {preset['rows']} rows"):
        learned.encode(one_more, table)


@pytest.mark.parametrize(
    ("dtype", "size"), [("f2", 300), ("f2", 6e-8), ("f4", 1e20), ("f4", 1e-40), ("f8", 1e200), ("f8", 1e-200), ("i8", 2**62)]
)
def test_similarity_of_rows_whose_squares_overflow_or_vanish(dtype, size):
    table = np.array([[1, 0], [1, 1]]) * np.array(size, dtype)
    expected = [[1, 0.5**0.5], [0.5**0.5, 1]]
    assert np.abs(learned.similarity(table) - expected).max() <= 4 * np.finfo(learned.similarity(table).dtype).eps


test_refused = refused(
    vars(learned),
    r"""
    encode(a(0, 2), np.ones((2, 2))) | runs from 0 to 2 and table has 2 rows, 0 \.\. 1
    encode(a(-1), np.ones((2, 2))) | runs from -1 to -1 and table has 2 rows
    encode(a(0), np.ones((0, 2))) | table has 0 rows
    position_ids(a(True), convention="bert", padding_idx=1) | padding_idx is 1 and convention 'bert' has none
    position_ids(a(True), convention="opt", padding_idx=0) | padding_idx is 0 and convention 'opt' has none
    position_ids(a(True), convention="roberta", padding_idx=-1) | padding_idx is -1, expected the row of padding
    similarity(np.array([[3.0, 0], [0, 0], [0, 2], [0, 0]])) | rows \[1, 3\] of table have norm 0
    """,
)
