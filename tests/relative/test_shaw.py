"""Shaw's attention against loops over the paper's Eqs. (3) and (4), in whole numbers, so scores are compared exactly."""

from fractions import Fraction

import mpmath
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


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("table_heads", [(), (HEADS,)])
@pytest.mark.parametrize("form", [shaw.scores, shaw.scores_naive])
def test_scores_are_equation_4(case, form, table_heads, variant):
    q, k, *_ = case
    table = whole(9, *table_heads, 2 * K + 1, DIM)
    queries, keys = np.array([9, 0, 48040, 3]), np.array([48041, 3, 2, 0, 4, 4])
    got = form(q, k, table, offsets.offsets(queries, keys), scale=1, variant=variant)
    assert (got == eq4(q, k, table, queries, keys, variant)).all()


def test_huang_method_4_factored(case):
    """(q + a) . (k + a) - a . a, the other way to write method 4."""
    q, k, _, table, _ = case
    steps = offsets.offsets(np.arange(N_QUERY), np.arange(N_KEY))
    a = np.array([[row(table, 0, i, j) for j in range(N_KEY)] for i in range(N_QUERY)])
    factored = ((q[..., :, None, :] + a) * (k[..., None, :, :] + a)).sum(-1) - (a * a).sum(-1)
    assert (shaw.scores(q, k, table, steps, scale=1, variant="relative_key_query") == factored).all()


@pytest.mark.parametrize("table_heads", [(), (HEADS,)])
@pytest.mark.parametrize(("n_query", "n_key"), [(4, 6), (6, 6), (1, 6), (6, 4), (1, 1)])
def test_skewed_equals_gathered_with_queries_at_the_end(n_query, n_key, table_heads):
    q, k, table = whole(5, BATCH, HEADS, n_query, DIM), whole(6, BATCH, HEADS, n_key, DIM), whole(7, *table_heads, 5, DIM)
    steps = offsets.offsets(np.arange(n_query) + n_key - n_query, np.arange(n_key))
    assert (shaw.scores_skewed(q, k, table, scale=2) == shaw.scores(q, k, table, steps, scale=2)).all()


def test_scale_covers_both_terms(case):
    q, k, _, table, _ = case
    steps = offsets.offsets(np.arange(N_QUERY), np.arange(N_KEY))
    assert (shaw.scores(q, k, table, steps, scale=0.25) == 0.25 * shaw.scores(q, k, table, steps, scale=1)).all()


def test_sign_of_the_offset():
    """A key to the right reads a row above the middle; turning the table round is the convention i - j."""
    q, k = np.ones((1, 2, 1)), np.zeros((1, 2, 1))
    table, steps = np.array([[-1.0], [0.0], [1.0]]), np.array([[0, 1], [-1, 0]])
    assert shaw.scores(q, k, table, steps, scale=1).tolist() == [[[0, 1], [-1, 0]]]
    assert shaw.scores(q, k, table[::-1], steps, scale=1).tolist() == [[[0, -1], [1, 0]]]


def test_decoding_step_is_the_last_row(case):
    q, k, _, table, _ = case
    full = shaw.scores(q, k, table, offsets.offsets(np.arange(2, 6), np.arange(6)), scale=1)
    step = shaw.scores(q[..., -1:, :], k, table, offsets.offsets(np.array([5]), np.arange(6)), scale=1)
    assert (step == full[..., -1:, :]).all()


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


def exact_attention(q, k, v, key_table, value_table, steps, scale, mask, variant):
    """Eqs. (3) and (4) in 40 digits."""
    with mpmath.workdps(40):
        out = np.zeros((*q.shape[:-1], v.shape[-1]))
        s = np.zeros((*q.shape[:-1], k.shape[-2]), dtype=int)
        for b, h, i in np.ndindex(q.shape[:-1]):
            for j in range(k.shape[-2]):
                a = row(key_table, h, 0, steps[i, j])
                s[b, h, i, j] = sum(int(q[b, h, i, t]) * (int(k[b, h, j, t]) + a[t]) for t in range(len(a)))
                if variant == "relative_key_query":
                    s[b, h, i, j] += sum(int(k[b, h, j, t]) * a[t] for t in range(len(a)))
            seen = [j for j in range(k.shape[-2]) if mask[i, j]]
            weights = {j: mpmath.exp(mpmath.mpf(int(s[b, h, i, j])) * scale) for j in seen}
            total = mpmath.fsum(weights.values())
            for t in range(v.shape[-1]):
                extra = {j: row(value_table, h, 0, steps[i, j])[t] if value_table is not None else 0 for j in seen}
                out[b, h, i, t] = mpmath.fsum(weights[j] * (int(v[b, h, j, t]) + extra[j]) for j in seen) / (total or 1)
    return out


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("table_heads", [(), (HEADS,)])
@pytest.mark.parametrize("values", [True, False])
def test_attend_is_equations_3_and_4(case, values, table_heads, variant):
    q, k, v, *_ = case
    key_table, value_table = whole(3, *table_heads, 5, DIM), whole(4, *table_heads, 5, DIM_V) if values else None
    steps = offsets.offsets(np.array([2, 3, 4, 5]), np.arange(6))
    mask = np.array([[True] * 3 + [False] * 3, [True] * 4 + [False] * 2, [True] * 6, [False] * 6])
    got = shaw.attend(q, k, v, key_table, value_table, steps, scale=1 / 64, mask=mask, variant=variant)
    want = exact_attention(q, k, v, key_table, value_table, steps, mpmath.mpf(1) / 64, mask, variant)
    # Scores are exact. A weight is off by (n + 4) units of 2^-52 (exp 2, sum n + 1, division 1), a sum over n keys by n more,
    # the sum of the two parts by 1; |v + a| <= 18.
    assert np.abs(got - want).max() <= (2 * N_KEY + 5) * 2.0**-52 * 18
    assert (got[..., 3, :] == 0).all()


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


STEPS = np.zeros((N_QUERY, N_KEY), dtype=int)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"key_table": whole(0, 4, DIM)},
            ValueError,
            r"key_table has shape \(4, 5\), .* its axis -2 is 4, expected 1, 3, 5, ..; an odd number",
        ),
        ({"key_table": whole(0, 1, 1, 1, 5, DIM)}, ValueError, "key_table has shape .* does not broadcast"),
        (
            {"key_table": whole(0, 5, DIM + 1)},
            ValueError,
            r"key_table has shape \(5, 6\), .* expected d = 5 in .*, since q has",
        ),
        (
            {"key_table": whole(0, HEADS + 1, 5, DIM)},
            ValueError,
            r"key_table has shape \(4, 5, 5\), .* does not broadcast to q of shape",
        ),
        ({"key_table": [[0] * DIM]}, TypeError, "key_table is a list"),
        ({"offsets": STEPS.astype(float)}, TypeError, "offsets has dtype float64"),
        ({"offsets": STEPS.astype(np.uint16)}, TypeError, "offsets has dtype uint16, expected signed integers"),
        ({"offsets": STEPS[:1]}, ValueError, r"offsets has shape \(1, 6\), .* expected n_query = 4 "),
        ({"offsets": np.zeros((HEADS, N_QUERY, N_KEY), int)}, ValueError, r"\(batch, 1, n_query, n_key\)"),
        ({"offsets": np.zeros((BATCH + 1, 1, N_QUERY, N_KEY), int)}, ValueError, "does not broadcast"),
        ({"k": whole(0, BATCH, HEADS, N_KEY, DIM + 1)}, ValueError, r"k has shape .* expected d = 5 .*, since q has"),
        ({"variant": "key"}, ValueError, "variant is 'key', expected one of 'relative_key', 'relative_key_query'"),
    ],
)
@pytest.mark.parametrize("form", [shaw.scores, shaw.scores_naive])
def test_scores_reject(case, form, change, error, message):
    arguments = {"q": case[0], "k": case[1], "key_table": case[3], "offsets": STEPS} | change
    with pytest.raises(error, match=message):
        form(**arguments, scale=1)


def test_skewed_rejects(case):
    q, k, *_ = case
    with pytest.raises(ValueError, match=r"shaw\.scores_skewed: key_table has shape \(5, 6\), .* expected d = 5"):
        shaw.scores_skewed(q, k, whole(0, 5, DIM + 1), scale=1)
    with pytest.raises(ValueError, match=r"shaw\.scores_skewed: key_table has shape \(4, 5\)"):
        shaw.scores_skewed(q, k, whole(0, 4, DIM), scale=1)


def test_attend_rejects(case):
    q, k, v, key_table, value_table = case
    with pytest.raises(ValueError, match=r"value_table has shape \(.*5\), .* expected d_v = 7 "):
        shaw.attend(q, k, v, key_table, key_table, STEPS, scale=1)
    with pytest.raises(ValueError, match=r"v has shape .* expected n_key = 6 "):
        shaw.attend(q, k, v[..., 1:, :], key_table, value_table, STEPS, scale=1)
    with pytest.raises(ValueError, match=r"value_table has shape \(4, 7\)"):
        shaw.attend(q, k, v, key_table, value_table[1:], STEPS, scale=1)
    with pytest.raises(TypeError, match="v is a list"):
        shaw.attend(q, k, v.tolist(), key_table, value_table, STEPS, scale=1)
    with pytest.raises(TypeError, match="mask has dtype int"):
        shaw.attend(q, k, v, key_table, value_table, STEPS, scale=1, mask=STEPS)


def test_embed_rejects():
    with pytest.raises(TypeError, match=r"shaw\.embed: offsets has dtype float64"):
        shaw.embed(np.zeros((3, 1)), np.zeros((1, 1)))


def test_narrow_offsets_do_not_wrap():
    """100 + 100 in eight bits is -56: a row counted from the end of the table."""
    table, offset = np.arange(201)[:, None], np.array([[-128, -100, 0, 100, 127]], dtype=np.int8)
    assert shaw.embed(table, offset)[0, :, 0].tolist() == [0, 0, 100, 200, 200]
    q, k = np.ones((1, 1, 1), dtype=int), np.zeros((1, 5, 1), dtype=int)
    assert shaw.scores(q, k, table, offset, scale=1).tolist() == [[[0, 0, 100, 200, 200]]]


@pytest.mark.parametrize("shared", [True, False])
def test_scores_gradient_by_differences(shared):
    """Scores are a polynomial of degree 2: central differences are exact but for rounding, about 2^-52 / step."""
    rng = np.random.default_rng(0)
    q, k, g = rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(2, 3, 6, 5)), rng.normal(size=(2, 3, 4, 6))
    table, at = rng.normal(size=(7, 5) if shared else (3, 7, 5)), np.arange(6)[None, :] - np.arange(4)[:, None]
    got = shaw.scores_gradient(g, q, k, table, at, scale=0.3, variant="relative_key_query")
    inputs = {"q": q, "k": k, "key_table": table}
    for name, value in inputs.items():
        direction, losses = rng.normal(size=value.shape), []
        for step in (1.0, -1.0):
            x = inputs | {name: value + step * direction}
            s = shaw.scores(x["q"], x["k"], x["key_table"], at, scale=0.3, variant="relative_key_query")
            losses.append((g * s).sum())
        gradient = getattr(got, name)
        gradient = gradient.sum(axis=(0, 1)) if shared and name == "key_table" else gradient
        if not shared and name == "key_table":
            gradient = gradient.sum(axis=0)
        assert abs((losses[0] - losses[1]) / 2 - (gradient * direction).sum()) < 1e-11
