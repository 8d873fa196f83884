"""TUPE against Eqs. (7) to (11) in whole numbers, and the released order of writing row, column and bias."""

from fractions import Fraction

import numpy as np
import pytest

from posref.relative import tupe

BATCH, HEADS, N, DIM, DIM_HEAD = 2, 3, 4, 6, 5


def whole(seed, *shape):
    return np.random.default_rng(seed).integers(-9, 10, shape)


@pytest.fixture
def case():
    q, k = whole(0, BATCH, HEADS, N, DIM_HEAD), whole(1, BATCH, HEADS, N, DIM_HEAD)
    return q, k, whole(2, HEADS, N, N), whole(3, HEADS), whole(4, HEADS), whole(5, HEADS, N, N)


def equation_9(value, theta_1, theta_2, i, j):
    if i == 0:
        return theta_1
    return theta_2 if j == 0 else value


def dot(x, y):
    return sum(int(a) * int(b) for a, b in zip(x, y, strict=True))


def test_positional_scores_are_the_second_term_of_equation_7():
    p, u_q, u_k = whole(6, N, DIM), whole(7, HEADS, DIM, DIM_HEAD), whole(8, HEADS, DIM, DIM_HEAD)
    got = tupe.positional_scores(p, u_q, u_k, scale=0.5)
    assert got.shape == (HEADS, N, N)
    for h, i, j in np.ndindex(got.shape):
        left = [dot(p[i], u_q[h, :, t]) for t in range(DIM_HEAD)]
        right = [dot(p[j], u_k[h, :, t]) for t in range(DIM_HEAD)]
        assert got[h, i, j] == dot(left, right) / 2


def test_positions_of_their_own_in_each_row_of_the_batch():
    p, u_q, u_k = whole(6, BATCH, N, DIM), whole(7, HEADS, DIM, DIM_HEAD), whole(8, HEADS, DIM, DIM_HEAD)
    got = tupe.positional_scores(p, u_q, u_k, scale=1)
    for b in range(BATCH):
        assert (got[b] == tupe.positional_scores(p[b], u_q, u_k, scale=1)).all()


def test_positional_scores_are_absolute():
    """They are no function of j - i: a diagonal is not constant."""
    t = tupe.positional_scores(np.array([[1.0], [2.0], [4.0]]), np.ones((1, 1, 1)), np.ones((1, 1, 1)), scale=1)
    assert np.diagonal(t[0]).tolist() == [1.0, 4.0, 16.0]


def test_bias_of_the_projection_is_a_feature_that_is_one():
    p, u_q, u_k = whole(6, N, DIM), whole(7, HEADS, DIM, DIM_HEAD), whole(8, HEADS, DIM, DIM_HEAD)
    b_q, b_k = whole(9, HEADS, 1, DIM_HEAD), whole(10, HEADS, 1, DIM_HEAD)
    ones = np.concatenate([p, np.ones((N, 1), int)], axis=-1)
    got = tupe.positional_scores(ones, np.concatenate([u_q, b_q], axis=-2), np.concatenate([u_k, b_k], axis=-2), scale=1)
    assert (got == (p @ u_q + b_q) @ np.swapaxes(p @ u_k + b_k, -1, -2)).all()


def test_reset_is_equation_9(case):
    _, _, t, theta_1, theta_2, _ = case
    out = tupe.reset(t, theta_1, theta_2)
    for h, i, j in np.ndindex(out.shape):
        assert out[h, i, j] == equation_9(t[h, i, j], theta_1[h], theta_2[h], i, j)
    assert (tupe.reset(out, theta_1, theta_2) == out).all()


def test_cls_to_itself_is_theta_1():
    out = tupe.reset(np.zeros((1, 2, 2)), np.array([1.0]), np.array([2.0]))
    assert out.tolist() == [[[1.0, 1.0], [2.0, 0.0]]]


def test_reset_with_one_theta_for_all_heads(case):
    out = tupe.reset(case[2], np.array(7), np.array(8))
    assert (out[:, 0] == 7).all()
    assert (out[:, 1:, 0] == 8).all()
    assert (out[:, 1:, 1:] == case[2][:, 1:, 1:]).all()


def test_untie_reads_the_two_extra_rows():
    extended = whole(11, BATCH, HEADS, N + 1, N + 1)
    parts = tupe.untie(extended)
    assert (parts.position_scores == extended[..., 1:, 1:]).all()
    assert (parts.cls_to_other == extended[..., 0, 0]).all()
    assert (parts.other_to_cls == extended[..., 1, 1]).all()


@pytest.mark.parametrize("convention", tupe.CONVENTIONS)
@pytest.mark.parametrize("relative", [False, True])
def test_scores_are_equations_10_and_11(case, relative, convention):
    q, k, t, theta_1, theta_2, b = case
    got = tupe.scores(q, k, t, theta_1, theta_2, scale=0.25, convention=convention, relative_bias=b if relative else None)
    for n, h, i, j in np.ndindex(got.shape):
        bias = int(b[h, i, j]) if relative else 0
        if convention == "paper":
            position = equation_9(int(t[h, i, j]) + bias, theta_1[h], theta_2[h], i, j)
        else:
            position = equation_9(int(t[h, i, j]), theta_1[h], theta_2[h], i, j) + bias
        assert got[n, h, i, j] == dot(q[n, h, i], k[n, h, j]) / 4 + position


def test_conventions_differ_on_the_cls_row_and_column_alone(case):
    q, k, t, theta_1, theta_2, b = case
    paper, released = (tupe.scores(q, k, t, theta_1, theta_2, scale=1, convention=c, relative_bias=b) for c in tupe.CONVENTIONS)
    assert (paper[..., 1:, 1:] == released[..., 1:, 1:]).all()
    assert (released - paper == np.where((np.arange(N) == 0) | (np.arange(N) == 0)[:, None], b, 0)).all()


def test_released_with_its_own_cls_buckets_is_the_paper_with_other_thetas(case):
    q, k, t, theta_1, theta_2, b = case
    own_1, own_2 = whole(12, HEADS), whole(13, HEADS)
    released = tupe.scores(q, k, t, theta_1, theta_2, scale=1, convention="released", relative_bias=tupe.reset(b, own_1, own_2))
    paper = tupe.scores(q, k, t, theta_1 + own_1, theta_2 + own_2, scale=1, convention="paper", relative_bias=b)
    assert (released == paper).all()


def test_more_keys_than_queries(case):
    """The first rows of the scores: reset writes the first row and column whatever the number of keys."""
    q, k, t, theta_1, theta_2, b = case
    for convention in tupe.CONVENTIONS:
        full = tupe.scores(q, k, t, theta_1, theta_2, scale=1, convention=convention, relative_bias=b)
        cut = (q[..., :2, :], k, t[..., :2, :], theta_1, theta_2)
        got = tupe.scores(*cut, scale=1, convention=convention, relative_bias=b[..., :2, :])
        assert (got == full[..., :2, :]).all()


@pytest.mark.parametrize("convention", tupe.CONVENTIONS)
def test_heads_without_a_batch_and_neither(case, convention):
    q, k, t, theta_1, theta_2, b = case
    full = tupe.scores(q, k, t, theta_1, theta_2, scale=1, convention=convention, relative_bias=b)
    heads = tupe.scores(q[0], k[0], t, theta_1, theta_2, scale=1, convention=convention, relative_bias=b)
    one = (q[0, 0], k[0, 0], t[0], theta_1[0], theta_2[0])
    assert (heads == full[0]).all()
    assert (tupe.scores(*one, scale=1, convention=convention, relative_bias=b[0]) == full[0, 0]).all()


def test_a_sentence_of_cls_alone():
    parts = tupe.untie(np.array([[[1.0, 2.0], [3.0, 4.0]]]))
    assert tupe.reset(*parts).tolist() == [[[1.0]]]


def test_dtypes_and_objects(case):
    third = np.vectorize(lambda n: Fraction(int(n), 3), otypes=[object])
    *arrays, bias = case
    exact = [third(x) for x in arrays]
    for convention in tupe.CONVENTIONS:
        floats = [x.astype(np.float32) for x in arrays]
        got = tupe.scores(*floats, scale=0.5, convention=convention, relative_bias=bias.astype(np.float32))
        assert got.dtype == np.float32
        want = tupe.scores(*arrays, scale=Fraction(1, 3), convention=convention, relative_bias=bias)
        assert (tupe.scores(*exact, scale=1, convention=convention, relative_bias=third(bias)) * 3 == want).all()
    assert tupe.positional_scores(third(whole(6, N, DIM)), *third(whole(7, 2, HEADS, DIM, 5)), scale=1).shape == (3, 4, 4)


VALID = {
    "q": whole(0, BATCH, HEADS, N, DIM_HEAD),
    "k": whole(1, BATCH, HEADS, N, DIM_HEAD),
    "position_scores": whole(2, HEADS, N, N),
    "cls_to_other": whole(3, HEADS),
    "other_to_cls": whole(4, HEADS),
    "convention": "paper",
}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"convention": "code"}, ValueError, "convention is 'code', expected one of 'paper', 'released'"),
        (
            {"position_scores": whole(0, HEADS, N + 1, N + 1)},
            ValueError,
            r"position_scores has shape \(3, 5, 5\), .* expected n_query = 4",
        ),
        ({"position_scores": whole(0, HEADS + 1, N, N)}, ValueError, r"tupe\.scores: position_scores .*not broadcast"),
        ({"relative_bias": whole(0, HEADS, N, 1)}, ValueError, r"relative_bias has shape \(3, 4, 1\)"),
        ({"relative_bias": [1]}, TypeError, "relative_bias is a list"),
        ({"cls_to_other": whole(0, HEADS + 1)}, ValueError, r"cls_to_other has shape \(4,\)"),
        ({"other_to_cls": 1.0}, TypeError, "other_to_cls is a float"),
        ({"k": whole(0, BATCH, HEADS, N, 4)}, ValueError, r"k has shape .* expected d_head = 5 .*, since q has shape"),
    ],
)
def test_scores_reject(change, error, message):
    with pytest.raises(error, match=message):
        tupe.scores(**(VALID | change), scale=1)


def test_the_rest_rejects():
    with pytest.raises(TypeError, match=r"tupe\.positional_scores: p is a list"):
        tupe.positional_scores([[1]], whole(0, 3, 1, 5), whole(0, 3, 1, 5), scale=1)
    with pytest.raises(TypeError, match=r"tupe\.untie: position_scores is a list"):
        tupe.untie([[1, 2], [3, 4]])
    with pytest.raises(
        ValueError, match=r"u_q has shape \(3, 5, 5\), .* expected d = 6 in \(h, d, d_head\), since p has shape"
    ):
        tupe.positional_scores(whole(0, N, 6), whole(0, 3, 5, 5), whole(0, 3, 6, 5), scale=1)
    with pytest.raises(ValueError, match=r"u_k has shape .*at least 3 axes"):
        tupe.positional_scores(whole(0, N, 6), whole(0, 3, 6, 5), whole(0, 6, 5), scale=1)
    with pytest.raises(ValueError, match=r"position_scores has shape \(3, 5, 4\), .* expected n\+2 = 5"):
        tupe.untie(whole(0, 3, 5, 4))
    with pytest.raises(ValueError, match=r"position_scores has shape \(3, 1, 1\), .* expected at least 2; pass the scores of"):
        tupe.untie(whole(0, 3, 1, 1))
    with pytest.raises(ValueError, match=r"position_scores has shape .*at least 2 axes"):
        tupe.reset(whole(0, 3), np.array(1), np.array(1))
