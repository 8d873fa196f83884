"""The table of all systems: cells that follow from a formula equal the measured cells."""

import functools

import numpy as np
import pytest

from posref import attention, cli, comparison, discovery
from posref.ops import layers
from tests.every import every

row = functools.cache(comparison.row)


@every(discovery.names())
def test_every_cell_is_measured(name):
    assert "?" not in row(name), (
        f"posref/ops/{name.rpartition('.')[2]}.py needs a _head(t): the system in one head of attention"
    )


@pytest.mark.parametrize(
    ("name", "cells"),
    {
        "rotary.rope": {"relative": "yes", "beyond": "continues", "linear": "yes", "parameters": "0", "multiplies": "2"},
        "rotary.value": {"enters": "q, k + v", "relative": "yes"},
        "absolute.learned": {"enters": "input", "beyond": "error", "parameters": str(16 * 8), "stream": "no"},
        "absolute.index": {"relative": "no", "multiplies": "0"},
        "absolute.zero_padding": {"cache": "no", "unique": "no", "parameters": str(3 * 8 * 8)},
        "relative.shaw": {
            "enters": "scores + v",
            "beyond": "clips",
            "unique": "no",
            "linear": "no",
            "parameters": str(2 * 9 * 8),
        },
        "relative.t5": {"relative": "yes", "direction": "yes", "beyond": "clips", "parameters": "8"},
        "relative.alibi": {"relative": "yes", "beyond": "continues", "unique": "yes", "parameters": "0"},
        "relative.tupe": {"relative": "no", "beyond": "error"},
    }.items(),
)
def test_cells_that_a_formula_says(name, cells):
    assert {column: getattr(row(name), column) for column in cells} == cells


def no_positions(t):
    return t.attended(*t.projected(t.x))


def test_attention_without_positions_has_none():
    assert comparison._relative(no_positions)
    assert not comparison._direction(no_positions)
    assert not comparison._unique(no_positions)
    assert comparison._cost(no_positions) == ("0", "0")


def test_a_position_is_repeated():
    assert comparison._beyond(lambda t: t.added(np.sin(2 * np.pi * t.positions / 16 + 0.1)[:, None])) == "repeats"


def test_multiplications_are_counted():
    """n = 16 words of d = 8: three projections, n^2 d products and n^2 scales, softmax and n^2 d products."""
    multiplied, _ = comparison._counts(lambda t: (t.projected(t.x), None))
    assert multiplied == 3 * 16 * 8 * 8
    multiplied, _ = comparison._counts(lambda t: attention.scores(t.x, t.x, scale=t.scale))
    assert multiplied in (16 * 16 * 8 + 16 * 16, 16 * 16 * 8 + 16 * 8)


def test_numbers_that_count_change_nothing():
    x = layers.numbers(comparison._words(4), comparison.Counting)
    counted = attention.softmax(x @ x.T)
    values = [[number.value for number in row] for row in counted]
    np.testing.assert_allclose(values, attention.softmax(comparison._words(4) @ comparison._words(4).T))


def test_the_command_prints_it(capsys, monkeypatch):
    monkeypatch.setattr(comparison, "row", row)
    for columns in ("80", "128"):
        monkeypatch.setenv("COLUMNS", columns)
        assert cli.main(["table"]) == 0
        table = capsys.readouterr().out.partition("models  ")[2].partition("\n\n")[2]
        assert max(map(len, table.splitlines())) <= int(columns)
        assert all(name.rpartition(".")[2] in table for name in discovery.names())
