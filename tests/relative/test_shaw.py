"""Shaw: the factored form of method 4, a mask of True, rows of a table without heads."""

import numpy as np
import pytest

from posref import offsets
from posref.relative import shaw

BATCH, HEADS, N_QUERY, N_KEY, DIM, DIM_V, K = 2, 3, 4, 6, 5, 7, 2


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


def test_huang_method_4_factored(case):
    """(q + a) . (k + a) - a . a, the other way to write method 4."""
    q, k, _, table, _ = case
    steps = offsets.offsets(np.arange(N_QUERY), np.arange(N_KEY))
    a = np.array([[row(table, 0, i, j) for j in range(N_KEY)] for i in range(N_QUERY)])
    factored = ((q[..., :, None, :] + a) * (k[..., None, :, :] + a)).sum(-1) - (a * a).sum(-1)
    assert (shaw.scores(q, k, table, steps, scale=1, variant="relative_key_query") == factored).all()


def test_mask_of_true_is_no_mask(case):
    q, k, v, key_table, value_table = case
    steps = offsets.offsets(np.arange(N_QUERY), np.arange(N_KEY))
    masked = shaw.attend(q, k, v, key_table, value_table, steps, scale=0.125, mask=np.ones((1, N_KEY), dtype=bool))
    assert (masked == shaw.attend(q, k, v, key_table, value_table, steps, scale=0.125)).all()


def test_embed_without_heads(case):
    table = case[3]
    steps = np.array([[-7, 0], [1, 7]])
    got = shaw.embed(table, steps)
    assert [[r.tolist() for r in line] for line in got] == [[row(table, 0, 0, o) for o in line] for line in steps]
