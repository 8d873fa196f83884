"""Compiled scores of DeBERTa at the ends of integers, against Eqs. (3), (4) case by case."""

import importlib

import numpy as np
import pytest

from posref.relative import deberta
from tests.fast.bits import random, same_bits

pytest.importorskip("numba", reason="needs posref[fast]")
fast = importlib.import_module("posref.fast.deberta")


def delta(i, j, span):
    """Eq. (3), case by case."""
    return 0 if i - j <= -span else 2 * span - 1 if i - j >= span else i - j + span


@pytest.mark.parametrize("convention", deberta.CONVENTIONS)
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_extreme_offsets(dtype, convention):
    ends = np.iinfo(dtype)
    at = np.array([[ends.min, -1, 0, 1, ends.max]] * 2, dtype)
    q, k = random(1, 2, 3), random(1, 5, 3)
    for span in (1, 2, 100, 200):
        q_r, k_r = random(1, 2 * span, 3), random(1, 2 * span, 3, seed=1)
        made = fast.scores(q, k, q_r, k_r, at, scale=0.5, convention=convention)
        by_query, by_key = (q @ np.swapaxes(k_r, -1, -2))[0], (k @ np.swapaxes(q_r, -1, -2))[0]
        for i, j in np.ndindex(2, 5):
            first = delta(0, int(at[i, j]), span)
            second = delta(int(at[i, j]), 0, span) if convention == "paper" else first
            content = (q @ np.swapaxes(k, -1, -2))[0, i, j]
            assert made[0, i, j] == 0.5 * (content + by_query[i, first] + by_key[j, second])
        assert same_bits(made, deberta.scores(q, k, q_r, k_r, at, scale=0.5, convention=convention))


@pytest.mark.parametrize("convention", deberta.CONVENTIONS)
def test_queries_in_any_order(convention):
    """Offsets ascend along the keys and nowhere, or not everywhere, descend by one along the queries."""
    q, k, rows = random(2, 5, 3), random(2, 70, 3), random(2, 1, 20, 3, seed=1)
    for queries in ([5, 0, 9, 9, 2], [3, 4, 6, 7, 8], [0, 2, 4, 6, 8], [5] * 5, [8, 7, 6, 5, 4], [60, 61, 62, 63, 64]):
        at = np.arange(70) - np.array(queries)[:, None]
        words = {"scale": 0.5, "convention": convention}
        assert same_bits(fast.scores(q, k, *rows, at, **words), deberta.scores(q, k, *rows, at, **words))


@pytest.mark.parametrize("whole", ["q", "k"])
def test_each_product_is_of_a_dtype_that_kernels_have(whole):
    """Content beside floating point, but not beside its rows."""
    one = np.ones((1, 1, 1))
    q, k = (one.astype(np.int16 if whole == name else np.float32) for name in "qk")
    k_r, q_r = (np.ones((1, 2, 1), np.int16) if whole == name else None for name in "qk")
    with pytest.raises(TypeError, match=r"a term would have dtype int"):
        fast.scores(q, k, q_r, k_r, np.zeros((1, 1), int), scale=0.5, convention="paper")


def test_one_cell():
    q, k, rows, at = random(1, 1, 3), random(1, 1, 3), random(2, 1, 4, 3), np.array([[1]])
    words = {"scale": 0.5, "convention": "paper"}
    assert same_bits(fast.scores(q, k, *rows, at, **words), deberta.scores(q, k, *rows, at, **words))
