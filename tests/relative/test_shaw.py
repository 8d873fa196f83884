"""Shaw's attention against loops over the paper's Eqs. (3) and (4), in whole numbers, so scores are compared exactly."""

from fractions import Fraction

import numpy as np
import pytest

from posref import offsets
from posref.relative import shaw

BATCH, HEADS, N_QUERY, N_KEY, DIM, DIM_V, K = 2, 3, 4, 6, 5, 7, 2
VARIANTS = ("relative_key", "relative_key_query")


def whole(seed, *shape):
    return np.random.default_rng(seed).integers(-9, 10, shape)


@pytest.fixture
def case():
    q, k, v = whole(0, BATCH, HEADS, N_QUERY, DIM), whole(1, BATCH, HEADS, N_KEY, DIM), whole(2, BATCH, HEADS, N_KEY, DIM_V)
    return q, k, v, whole(3, 2 * K + 1, DIM), whole(4, 2 * K + 1, DIM_V)


def row(table, head, query_position, key_position):
    """w_{clip(j - i, -k, k)}, as in section 3.2."""
    k = (table.shape[-2] - 1) // 2
    r = min(max(int(key_position) - int(query_position), -k), k)
    return [int(x) for x in (table if table.ndim == 2 else table[head])[r + k]]


def eq4(q, k, table, query_positions, key_positions, variant):
    out = np.zeros((*q.shape[:-1], k.shape[-2]), dtype=int)
    for b, h, i, j in np.ndindex(out.shape):
        a = row(table, h, query_positions[i], key_positions[j])
        x, y = [int(n) for n in q[b, h, i]], [int(n) for n in k[b, h, j]]
        out[b, h, i, j] = sum(x[t] * (y[t] + a[t]) for t in range(len(a)))
        if variant == "relative_key_query":
            out[b, h, i, j] += sum(y[t] * a[t] for t in range(len(a)))
    return out


def test_huang_method_4_factored(case):
    """(q + a) . (k + a) - a . a, the other way to write method 4."""
    q, k, _, table, _ = case
    steps = offsets.offsets(np.arange(N_QUERY), np.arange(N_KEY))
    a = np.array([[row(table, 0, i, j) for j in range(N_KEY)] for i in range(N_QUERY)])
    factored = ((q[..., :, None, :] + a) * (k[..., None, :, :] + a)).sum(-1) - (a * a).sum(-1)
    assert (shaw.scores(q, k, table, steps, scale=1, variant="relative_key_query") == factored).all()


def test_left_padding_moves_nothing(case):
    """Positions that start at another number in each row of the batch give the scores of each row alone."""
    q, k, _, table, _ = case
    starts = np.array([0, 7])
    queries, keys = starts[:, None] + np.arange(2, 6), starts[:, None] + np.arange(6)
    steps = offsets.offsets(queries[:, None], keys[:, None])
    assert steps.shape == (BATCH, 1, N_QUERY, N_KEY)
    assert (shaw.scores(q, k, table, steps, scale=1) == shaw.scores(q, k, table, steps[0, 0], scale=1)).all()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("form", [shaw.scores, shaw.scores_naive])
def test_positions_of_their_own_in_each_row_of_the_batch(case, form, variant):
    q, k, _, table, _ = case
    queries, keys = np.array([[5, 0, 2, 9], [1, 1, 7, 4]]), np.array([[0, 1, 2, 3, 4, 5], [9, 8, 3, 3, 1, 0]])
    got = form(q, k, table, offsets.offsets(queries[:, None], keys[:, None]), scale=1, variant=variant)
    for b in range(BATCH):
        alone = eq4(q[b : b + 1], k[b : b + 1], table, queries[b], keys[b], variant)
        assert (got[b] == alone[0]).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_heads_without_a_batch_and_neither(case, variant):
    q, k, _, table, _ = case
    steps = offsets.offsets(np.arange(2, 6), np.arange(6))
    full = shaw.scores(q, k, table, steps, scale=1, variant=variant)
    for one in ((0,), (0, 0)):
        assert (shaw.scores(q[one], k[one], table, steps, scale=1, variant=variant) == full[one]).all()
        assert (shaw.scores_naive(q[one], k[one], table, steps, scale=1, variant=variant) == full[one]).all()
        if variant == "relative_key":
            assert (shaw.scores_skewed(q[one], k[one], table, scale=1) == full[one]).all()


def test_mask_of_true_is_no_mask(case):
    q, k, v, key_table, value_table = case
    steps = offsets.offsets(np.arange(N_QUERY), np.arange(N_KEY))
    masked = shaw.attend(q, k, v, key_table, value_table, steps, scale=0.125, mask=np.ones((1, N_KEY), dtype=bool))
    assert (masked == shaw.attend(q, k, v, key_table, value_table, steps, scale=0.125)).all()


def test_float32_stays_float32(case):
    q, k, v, key_table, value_table = (x.astype(np.float32) for x in case)
    steps = offsets.offsets(np.arange(N_QUERY), np.arange(N_KEY))
    for variant in VARIANTS:
        assert shaw.scores(q, k, key_table, steps, scale=0.5, variant=variant).dtype == np.float32
    assert shaw.scores_naive(q, k, key_table, steps, scale=0.5).dtype == np.float32
    assert shaw.scores_skewed(q, k, key_table, scale=0.5).dtype == np.float32
    assert shaw.attend(q, k, v, key_table, value_table, steps, scale=0.5).dtype == np.float32


def test_whole_numbers_promote(case):
    q, k, _, table, _ = case
    steps = offsets.offsets(np.arange(N_QUERY), np.arange(N_KEY))
    assert shaw.scores(q, k, table, steps, scale=1 / 3).dtype == np.float64


def test_runs_on_objects(case):
    q, k, _, table, _ = case
    exact = [np.vectorize(lambda n: Fraction(int(n), 3), otypes=[object])(x) for x in (q, k, table)]
    steps = offsets.offsets(np.arange(2, 6), np.arange(N_KEY))
    want = shaw.scores(q, k, table, steps, scale=1)
    for got in (
        shaw.scores(*exact, steps, scale=Fraction(9)),
        shaw.scores_naive(*exact, steps, scale=Fraction(9)),
        shaw.scores_skewed(*exact, scale=Fraction(9)),
    ):
        assert (got == want).all()


def test_embed_without_heads(case):
    table = case[3]
    steps = np.array([[-7, 0], [1, 7]])
    got = shaw.embed(table, steps)
    assert [[r.tolist() for r in line] for line in got] == [[row(table, 0, 0, o) for o in line] for line in steps]


def test_narrow_offsets_do_not_wrap():
    """100 + 100 in eight bits is -56: a row counted from the end of the table."""
    table, offset = np.arange(201)[:, None], np.array([[-128, -100, 0, 100, 127]], dtype=np.int8)
    assert shaw.embed(table, offset)[0, :, 0].tolist() == [0, 0, 100, 200, 200]
    q, k = np.ones((1, 1, 1), dtype=int), np.zeros((1, 5, 1), dtype=int)
    assert shaw.scores(q, k, table, offset, scale=1).tolist() == [[[0, 0, 100, 200, 200]]]
