"""TUPE in whole numbers: reset with one theta, more keys than queries, [CLS] alone."""

import numpy as np
import pytest

from posref.relative import tupe

BATCH, HEADS, N, DIM_HEAD = 2, 3, 4, 5


def whole(seed, *shape):
    return np.random.default_rng(seed).integers(-9, 10, shape)


@pytest.fixture
def case():
    q, k = whole(0, BATCH, HEADS, N, DIM_HEAD), whole(1, BATCH, HEADS, N, DIM_HEAD)
    return q, k, whole(2, HEADS, N, N), whole(3, HEADS), whole(4, HEADS), whole(5, HEADS, N, N)


def test_reset_with_one_theta_for_all_heads(case):
    out = tupe.reset(case[2], np.array(7), np.array(8))
    assert (out[:, 0] == 7).all()
    assert (out[:, 1:, 0] == 8).all()
    assert (out[:, 1:, 1:] == case[2][:, 1:, 1:]).all()


def test_more_keys_than_queries(case):
    """The first rows of the scores: reset writes the first row and column whatever the number of keys."""
    q, k, t, theta_1, theta_2, b = case
    for convention in tupe.CONVENTIONS:
        full = tupe.scores(q, k, t, theta_1, theta_2, scale=1, convention=convention, relative_bias=b)
        cut = (q[..., :2, :], k, t[..., :2, :], theta_1, theta_2)
        got = tupe.scores(*cut, scale=1, convention=convention, relative_bias=b[..., :2, :])
        assert (got == full[..., :2, :]).all()


def test_a_sentence_of_cls_alone():
    parts = tupe.untie(np.array([[[1.0, 2.0], [3.0, 4.0]]]))
    assert tupe.reset(*parts).tolist() == [[[1.0]]]
