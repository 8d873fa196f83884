"""Attention against scalar loops; masks, empty rows, alignment, grouped heads; every refusal."""

import itertools
import math

import numpy as np
import pytest

from posref import attention, shards

EPS = np.finfo(float).eps
RNG = np.random.default_rng(0)


def looped_row(q, keys, values, scale, bias, allowed):
    """One query by the definition, without the shift by the maximum; zeros if nothing is allowed."""
    seen = [j for j in range(len(keys)) if allowed[j]]
    weights = [math.exp(scale * math.fsum(a * b for a, b in zip(q, keys[j], strict=True)) + bias[j]) for j in seen]
    total = math.fsum(weights)
    width = len(values[0])
    return [
        math.fsum(w * values[j][t] for w, j in zip(weights, seen, strict=True)) / total if seen else 0 for t in range(width)
    ]


def bound(width, n, scores, values):
    """Scores of size s err by (width + 2) s eps and the shift by s eps; exp turns that into a relative error of weights, which
    enters numerator and denominator; n terms, exp, product and quotient round besides."""
    return (2 * (width + 4) * scores + 3 * n + 8) * EPS * values


def test_softmax_is_exp_over_sum():
    s = RNG.normal(size=(2, 3, 5))
    a = attention.softmax(s)
    for b, i in np.ndindex(2, 3):
        weights = [math.exp(value) for value in s[b, i].tolist()]
        expected = [w / math.fsum(weights) for w in weights]
        assert np.abs(a[b, i] - expected).max() <= bound(1, 5, np.abs(s).max(), 1)


def test_softmax_does_not_overflow_and_is_blind_to_a_shift():
    s = np.array([[0.0, 1.0, 2.0]])
    assert np.array_equal(attention.softmax(s + 2.0**20), attention.softmax(s))
    assert attention.softmax(np.array([[1e300, 1e300, 0.0]])).tolist() == [[0.5, 0.5, 0.0]]


def test_rows_with_nothing_are_zeros():
    s = np.array([[1.0, 2.0], [3.0, 4.0]])
    a = attention.softmax(s, np.array([[False, False], [False, True]]))
    assert a.tolist() == [[0, 0], [0, 1]]
    mask = np.zeros((2, 3), dtype=bool)
    o = attention.attend(np.ones((2, 4)), np.ones((3, 4)), np.ones((3, 5)), scale=1.0, mask=mask)
    assert np.array_equal(o, np.zeros((2, 5)))


@pytest.mark.parametrize("huge", [1e308, -1e308, 1e18, -1e18])
def test_masked_scores_do_not_poison(huge):
    s = np.array([[0.0, huge, 0.0], [-huge / 2, huge, -huge / 2]])
    mask = np.array([True, False, True])
    assert attention.softmax(s, mask).tolist() == [[0.5, 0, 0.5], [0.5, 0, 0.5]]


def test_masked_scores_do_not_poison_half_precision():
    s = np.array([[40.0, -65504.0, 40.0]], dtype=np.float16)
    assert attention.softmax(s, np.array([True, False, True])).tolist() == [[0.5, 0, 0.5]]


def test_mask_of_one_column_broadcasts():
    a = attention.softmax(np.zeros((2, 4)), np.array([[True], [False]]))
    assert a.tolist() == [[0.25] * 4, [0] * 4]


def test_no_keys():
    assert attention.softmax(np.zeros((2, 0))).shape == (2, 0)
    o = attention.attend(np.ones((2, 3)), np.ones((0, 3)), np.ones((0, 4)), scale=1.0)
    assert np.array_equal(o, np.zeros((2, 4)))
    o = attention.attend_by_offset(np.ones((1, 2, 3)), np.ones((1, 0, 3)), np.ones((1, 0, 4)), scale=1.0, causal=True)
    assert np.array_equal(o, np.zeros((1, 2, 4)))


def test_no_queries():
    assert attention.attend(np.ones((0, 3)), np.ones((2, 3)), np.ones((2, 4)), scale=1.0).shape == (0, 4)


def test_scores_are_scaled_dot_products():
    q, k = RNG.integers(-9, 10, size=(2, 3, 4)), RNG.integers(-9, 10, size=(2, 5, 4))
    s = attention.scores(q, k, scale=0.5)
    for b, i, j in np.ndindex(2, 3, 5):
        assert s[b, i, j] == sum(x * y for x, y in zip(q[b, i].tolist(), k[b, j].tolist(), strict=True)) / 2


def test_attend_with_bias_and_mask():
    q, k, v = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 5, 4)), RNG.normal(size=(2, 5, 6))
    bias, mask = RNG.normal(size=(3, 5)), RNG.random((2, 3, 5)) < 0.6
    mask[1, 2] = False
    o = attention.attend(q, k, v, scale=0.7, bias=bias, mask=mask)
    assert o.shape == (2, 3, 6)
    for b, i in np.ndindex(2, 3):
        expected = looped_row(q[b, i], k[b], v[b], 0.7, bias[i], mask[b, i])
        assert np.abs(o[b, i] - expected).max() <= bound(4, 5, 12, np.abs(v).max())


def test_bias_is_added_after_scaling():
    one = np.ones((1, 1))
    k, v = np.array([[1.0], [1.0]]), np.array([[0.0], [1.0]])
    o = attention.attend(one, k, v, scale=0.25, bias=np.array([[0.0, math.log(3)]]))
    assert abs(o.item() - 0.75) <= 8 * EPS  # the weights are 1 : 3, and 1 : 3 ** 0.25 if the bias were scaled


def test_masks_by_comparison():
    queries, keys = np.array([[3, 0], [5, 9]]), np.array([[0, 3, 4, 9], [5, 6, 7, 1]])
    causal = attention.causal_mask(queries, keys)
    window = attention.window_mask(queries, keys, width=4)
    for b, i, j in np.ndindex(2, 2, 4):
        query, key = int(queries[b, i]), int(keys[b, j])
        assert causal[b, i, j] == (key <= query)
        assert window[b, i, j] == (abs(key - query) < 4)


def test_a_causal_window_holds_width_keys():
    positions = np.arange(6)
    mask = attention.causal_mask(positions, positions) & attention.window_mask(positions, positions, width=3)
    assert mask.sum(axis=-1).tolist() == [1, 2, 3, 3, 3, 3]


def test_four_terms_add_up():
    x, p = RNG.integers(-5, 6, size=(1, 2, 3, 4)), RNG.integers(-5, 6, size=(3, 4))
    w_q, w_k = RNG.integers(-5, 6, size=(4, 2)), RNG.integers(-5, 6, size=(4, 2))
    terms = attention.four_terms(x, p, w_q, w_k)
    assert np.array_equal(sum(terms), attention.scores((x + p) @ w_q, (x + p) @ w_k, scale=1))
    for b, i, j in np.ndindex(2, 3, 3):
        expected = {
            "content_content": x[0, b, i] @ w_q @ (x[0, b, j] @ w_k),
            "content_position": x[0, b, i] @ w_q @ (p[j] @ w_k),
            "position_content": p[i] @ w_q @ (x[0, b, j] @ w_k),
        }
        for name, value in expected.items():
            assert getattr(terms, name)[0, b, i, j] == value
        assert terms.position_position[i, j] == p[i] @ w_q @ (p[j] @ w_k)


@pytest.mark.parametrize(("n_query", "n_key"), [(4, 4), (2, 5), (1, 6), (5, 2)])
@pytest.mark.parametrize(("causal", "window"), [(False, None), (True, None), (False, 2), (True, 3)])
def test_attend_by_offset_is_the_loop(n_query, n_key, causal, window):
    heads, key_heads = 4, 2
    q = RNG.normal(size=(2, heads, n_query, 3))
    k, v = RNG.normal(size=(2, key_heads, n_key, 3)), RNG.normal(size=(2, key_heads, n_key, 5))
    by_offset = RNG.normal(size=(heads, n_query + n_key - 1))
    o = attention.attend_by_offset(q, k, v, scale=0.6, bias_by_offset=by_offset, causal=causal, window=window)
    assert o.shape == (2, heads, n_query, 5)
    for b, h, i in itertools.product(range(2), range(heads), range(n_query)):
        allowed, bias = [], []
        for j in range(n_key):
            position = i + n_key - n_query  # of the query: the last query stands at the last key
            allowed.append((not causal or j <= position) and (window is None or abs(j - position) < window))
            bias.append(by_offset[h, j - i + n_query - 1])
        group = h // (heads // key_heads)
        expected = looped_row(q[b, h, i], k[b, group], v[b, group], 0.6, bias, allowed)
        assert np.abs(o[b, h, i] - expected).max() <= bound(3, n_key, 12, np.abs(v).max())


def test_cached_decoding_is_the_last_rows():
    q, k, v = (RNG.normal(size=(2, 6, 4)) for _ in range(3))
    by_offset = RNG.normal(size=(2, 11))
    whole = attention.attend_by_offset(q, k, v, scale=0.5, bias_by_offset=by_offset, causal=True, window=4)
    # Row i of the short call is row i + 4 of the long one: offset j - i - 4 stands at j - i - 4 + 5 there, j - i + 1 here.
    tail = attention.attend_by_offset(q[:, 4:], k, v, scale=0.5, bias_by_offset=by_offset[:, :7], causal=True, window=4)
    assert np.abs(tail - whole[:, 4:]).max() <= 2 * bound(4, 6, 12, np.abs(v).max())


def test_one_bias_for_all_heads():
    q, k, v = (RNG.normal(size=(2, 3, 4)) for _ in range(3))
    shared = np.array([0.0, -1.0, 2.0, 0.5, 1.0])
    o = attention.attend_by_offset(q, k, v, scale=0.5, bias_by_offset=shared)
    assert np.array_equal(o, attention.attend_by_offset(q, k, v, scale=0.5, bias_by_offset=np.stack([shared, shared])))


def test_group_of_all_heads():
    q, k, v = RNG.normal(size=(3, 2, 4)), RNG.normal(size=(1, 5, 4)), RNG.normal(size=(1, 5, 4))
    o = attention.attend_by_offset(q, k, v, scale=0.5)
    assert np.abs(o - attention.attend(q, k, v, scale=0.5)).max() <= 2 * bound(4, 5, 12, np.abs(v).max())


def test_dtypes_follow_promotion():
    q, k, v = (RNG.normal(size=(2, 3, 4)).astype(np.float32) for _ in range(3))
    assert attention.attend(q, k, v, scale=0.5, mask=np.ones((3, 3), dtype=bool)).dtype == np.float32
    assert attention.attend_by_offset(q, k, v, scale=0.5, causal=True).dtype == np.float32
    integers = np.array([[1, 2], [3, 1]])
    assert attention.attend(integers, integers, integers, scale=1).dtype == np.float64
    assert attention.softmax(np.array([[0, 0]]), np.array([[True, True]])).tolist() == [[0.5, 0.5]]


S = np.zeros((2, 3))


@pytest.mark.parametrize(
    ("scores", "mask", "error", "message"),
    [
        ([[1.0]], None, TypeError, "scores is a list, not an array"),
        (np.array(1.0), None, ValueError, r"scores has shape \(\), expected at least 1 axes"),
        (S.astype(bool), None, TypeError, "scores has dtype bool, expected signed numbers"),
        (S.astype(np.uint64), None, TypeError, "scores has dtype uint64, expected signed numbers"),
        (S.astype(np.int8), None, TypeError, "scores has dtype int8, whose sums and products wrap; use .astype"),
        (S[None, None], np.ones((1, 2, 3), dtype=bool), ValueError, r"mask .* \(1, 2, 3\), .* \(batch, 1, n_query, n_key\)"),
        (S + np.nan, None, ValueError, "scores has 6 of 6 values that are NaN or infinite"),
        (np.array([[0, -np.inf]]), None, ValueError, "1 of 2 values .* belongs in a boolean mask"),
        (S, [[True] * 3] * 2, TypeError, "mask is a list"),
        (S, np.ones((2, 3)), TypeError, "mask has dtype float64, expected booleans"),
        (S, np.ones((2, 3), dtype=int), TypeError, "mask has dtype int64, expected booleans"),
        (S, np.ones((3, 2), dtype=bool), ValueError, r"mask has shape \(3, 2\), .* scores of shape \(2, 3\)"),
        (S, np.ones((1, 2, 3), dtype=bool), ValueError, r"mask has shape \(1, 2, 3\), .* does not broadcast"),
    ],
)
def test_softmax_refuses(scores, mask, error, message):
    with pytest.raises(error, match=r"attention\.softmax: .*" + message):
        attention.softmax(scores, mask)


Q, K, V = np.ones((2, 4)), np.ones((3, 4)), np.ones((3, 5))


@pytest.mark.parametrize(
    ("q", "k", "v", "options", "error", "message"),
    [
        (Q.tolist(), K, V, {}, TypeError, "q is a list"),
        (Q[0], K, V, {}, ValueError, r"q has shape \(4,\), expected at least 2 axes"),
        (Q, K.tolist(), V, {}, TypeError, r"attention\.attend: k is a list"),
        (Q, K, V.tolist(), {}, TypeError, "v is a list"),
        (Q, K * np.inf, V, {}, ValueError, "scores has 6 of 6 values that are NaN or infinite"),
        (Q, np.ones((3, 5)), V, {}, ValueError, r"k has shape \(3, 5\), .* expected d = 4 .*, since q has shape \(2, 4\)"),
        (np.ones((4, 2, 4)), np.ones((3, 3, 4)), V, {}, ValueError, r"q has shape \(4, 2, 4\) and k \(3, 3, 4\)"),
        (np.ones((4, 2, 4)), K, np.ones((3, 3, 5)), {}, ValueError, r"q has shape \(4, 2, 4\) and v \(3, 3, 5\)"),
        (Q, K, np.ones((2, 5)), {}, ValueError, r"v has shape \(2, 5\), .* expected n_key = 3 .*, since k has"),
        (Q, K, V, {"bias": [[0.0]]}, TypeError, "bias is a list"),
        (
            Q,
            K,
            V,
            {"bias": np.ones((3, 3))},
            ValueError,
            r"bias has shape \(3, 3\), .* does not broadcast to q of shape \(2, 4\) and k of shape \(3, 4\)",
        ),
        (Q, K, V, {"bias": np.full((2, 3), -np.inf)}, ValueError, "bias has 6 of 6 values .* boolean mask"),
        (Q, K, V, {"mask": np.ones((3, 3), dtype=bool)}, ValueError, r"mask has shape \(3, 3\)"),
        (Q, K, V, {"mask": np.ones((2, 3))}, TypeError, "mask has dtype float64, expected booleans"),
    ],
)
def test_attend_refuses(q, k, v, options, error, message):
    with pytest.raises(error, match=message):
        attention.attend(q, k, v, scale=0.5, **options)


def test_scores_refuse():
    with pytest.raises(TypeError, match=r"attention\.scores: q is a list"):
        attention.scores(Q.tolist(), K, scale=1.0)
    with pytest.raises(ValueError, match=r"attention\.scores: k has shape \(4,\), expected at least 2 axes"):
        attention.scores(Q, K[0], scale=1.0)
    for scale in (None, "0.5", np.ones(3)):
        with pytest.raises(TypeError, match=r"attention\.scores: scale is .*, expected one number"):
            attention.scores(Q, K, scale=scale)
    with pytest.raises(ValueError, match=r"attention\.scores: scale is nan, expected a finite number"):
        attention.scores(Q, K, scale=np.nan)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_products_of_narrow_integers_are_refused(dtype):
    q = np.full((1, 4), 100)  # 4 * 100 * 100 fits into none of them
    assert attention.scores(q, q, scale=1).item() == 40000
    assert attention.scores(q.astype(np.int32), q.astype(np.int32), scale=1).item() == 40000
    with pytest.raises(TypeError, match=rf"attention\.scores: q has dtype {np.dtype(dtype)}, whose sums and products wrap"):
        attention.scores(q.astype(dtype), q, scale=1)
    one = np.ones((1, 1))
    with pytest.raises(TypeError, match=r"attention\.four_terms: p has dtype .*, whose sums and products wrap"):
        attention.four_terms(one, one.astype(dtype), one, one)


def test_a_batch_of_masks_is_not_read_as_heads():
    """With as many sequences as heads, (batch, n_query, n_key) would broadcast, over the wrong axis."""
    x = RNG.normal(size=(2, 2, 3, 4))
    mask = np.array([np.tri(3), np.tri(3, k=1)], dtype=bool)
    with pytest.raises(ValueError, match=r"attention\.attend: mask has shape \(2, 3, 3\), .* \(batch, 1, n_query, n_key\)"):
        attention.attend(x, x, x, scale=0.5, mask=mask)
    o = attention.attend(x, x, x, scale=0.5, mask=mask[:, None])
    assert np.array_equal(o[1], attention.attend(x[1], x[1], x[1], scale=0.5, mask=mask[1]))


def test_scale_has_no_default():
    with pytest.raises(TypeError, match="scale"):
        attention.attend(Q, K, V)


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (
            ((4, 2, 3), (3, 2, 3), (3, 2, 3)),
            {},
            r"q has shape \(4, 2, 3\), .* a multiple of h_key = 3, since k has shape \(3, 2, 3\)",
        ),
        (
            ((4, 2, 3), (2, 2, 3), (4, 2, 3)),
            {},
            r"v has shape \(4, 2, 3\), .* expected h_key = 2 .*, since k has shape \(2, 2, 3\)",
        ),
        (((4, 2, 3), (0, 2, 3), (0, 2, 3)), {}, r"q has shape \(4, 2, 3\), .* a multiple of h_key = 0"),
        (((2, 3), (1, 2, 3), (1, 2, 3)), {}, r"q has shape \(2, 3\), expected at least 3 axes"),
        (
            ((1, 2, 3), (1, 4, 3), (1, 4, 3)),
            {"bias_by_offset": np.ones((1, 6))},
            r"shape \(1, 6\), .* n_query\+n_key-1 = 5 .*, since q has shape \(1, 2, 3\) and k",
        ),
        (
            ((2, 2, 3), (2, 4, 3), (2, 4, 3)),
            {"bias_by_offset": np.ones((3, 5))},
            r"bias_by_offset has shape \(3, 5\), .* does not broadcast to q of shape \(2, 2, 3\)",
        ),
        (((1, 2, 3), (1, 4, 3), (1, 4, 3)), {"window": 0}, "window is 0, expected an integer of at least 1"),
        (((1, 2, 3), (1, 4, 3), (1, 5, 3)), {}, r"v has shape \(1, 5, 3\), .* expected n_key = 4 .*, since k has"),
    ],
)
def test_attend_by_offset_refuses(shapes, options, message):
    with pytest.raises(ValueError, match=message):
        attention.attend_by_offset(*(np.ones(shape) for shape in shapes), scale=1.0, **options)


def test_attend_by_offset_refuses_lists():
    one = np.ones((1, 1, 1))
    with pytest.raises(ValueError, match="causal is 'no', expected one of True, False"):
        attention.attend_by_offset(one, one, one, scale=1.0, causal="no")
    with pytest.raises(TypeError, match="k is a list"):
        attention.attend_by_offset(one, one.tolist(), one, scale=1.0)
    with pytest.raises(TypeError, match="bias_by_offset is a list"):
        attention.attend_by_offset(one, one, one, scale=1.0, bias_by_offset=[[0.0]])


def test_masks_refuse():
    for mask in (attention.causal_mask, lambda i, j: attention.window_mask(i, j, width=2)):
        with pytest.raises(TypeError, match="query_positions is a list"):
            mask([0], np.arange(2))
        with pytest.raises(ValueError, match=r"key_positions has shape \(\), expected at least 1 axes"):
            mask(np.arange(2), np.array(0))
        with pytest.raises(ValueError, match=r"query_positions has shape \(2, 3\) and key_positions \(3, 4\)"):
            mask(np.zeros((2, 3), int), np.zeros((3, 4), int))
    with pytest.raises(TypeError, match="key_positions has dtype int8, whose sums and products wrap"):
        attention.window_mask(np.array([-128]), np.array([127], dtype=np.int8), width=2)
    with pytest.raises(TypeError, match="query_positions has dtype uint64, expected signed numbers"):
        attention.window_mask(np.arange(2, dtype=np.uint64), np.arange(2), width=1)
    for width, error in ((0, ValueError), (-1, ValueError), (2.5, TypeError), (2.0, TypeError), ([1], TypeError)):
        with pytest.raises(error, match="width is"):
            attention.window_mask(np.arange(2), np.arange(2), width=width)


def test_causal_mask_of_unsigned_positions():
    positions = np.arange(3, dtype=np.uint8)
    assert attention.causal_mask(positions, positions).tolist() == np.tri(3, dtype=bool).tolist()


@pytest.mark.parametrize(
    ("x", "p", "w_q", "w_k", "error", "message"),
    [
        ([[1.0]], np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1)), TypeError, "x is a list"),
        (
            np.ones((1, 2)),
            np.ones((1, 3)),
            np.ones((2, 1)),
            np.ones((2, 1)),
            ValueError,
            r"p has shape \(1, 3\), .* expected d = 2 .*, since x has",
        ),
        (
            np.ones((3, 2)),
            np.ones((4, 2)),
            np.ones((2, 1)),
            np.ones((2, 1)),
            ValueError,
            r"p has shape \(4, 2\), .* expected n = 3 .*, since x has",
        ),
        (np.ones((1, 2)), np.ones((1, 2)), np.ones(2), np.ones((2, 1)), ValueError, r"w_q has shape \(2,\)"),
        (
            np.ones((1, 2)),
            np.ones((1, 2)),
            np.ones((2, 3)),
            np.ones((2, 4)),
            ValueError,
            r"w_k has shape \(2, 4\), .* d_head = 3 .*, since w_q has",
        ),
        (
            np.ones((1, 2)),
            np.ones((1, 2)),
            np.ones((2, 3)),
            np.ones((5, 3)),
            ValueError,
            r"w_k has shape \(5, 3\), .* expected d = 2 .*, since x has",
        ),
    ],
)
def test_four_terms_refuse(x, p, w_q, w_k, error, message):
    with pytest.raises(error, match=message):
        attention.four_terms(x, p, w_q, w_k)


def test_a_tensor_of_another_library_is_no_array():
    tensor = type("Tensor", (), {"shape": (2,), "dtype": "torch.float32"})()
    with pytest.raises(TypeError, match=r"attention\.softmax: scores is a Tensor, not an array; pass np\.array\(scores\)"):
        attention.softmax(tensor)


def test_grouped_queries_share_keys_and_values():
    q, k = np.random.default_rng(0).normal(size=(2, 8, 3, 4)), np.random.default_rng(1).normal(size=(2, 2, 5, 4))
    repeated = attention.repeat_heads(k, heads=8)
    np.testing.assert_array_equal(repeated, np.repeat(k, 4, axis=1))
    for shared in (k, k[0], k[:, :1]):
        alike = np.broadcast_to(shared, k.shape) if shared.shape[-3] == 1 else shared
        alike = np.repeat(alike, 4, axis=-3)
        np.testing.assert_array_equal(attention.scores(q, shared, scale=0.3), attention.scores(q, alike, scale=0.3))
        np.testing.assert_array_equal(
            attention.attend(q, shared, shared, scale=0.3, bias=np.ones((8, 3, 5)), sinks=np.ones((8, 1))),
            attention.attend(q, alike, alike, scale=0.3, bias=np.ones((8, 3, 5)), sinks=np.ones((8, 1))),
        )
    np.testing.assert_array_equal(attention.attend(q, k, k, scale=1.0), attention.attend_by_offset(q, k, k, scale=1.0))


@pytest.mark.parametrize("shape", [(3, 5, 4), (0, 5, 4), (16, 5, 4), (3, 2, 5, 4)])
def test_shared_heads_divide_those_of_the_queries(shape):
    q, k = np.ones((2, 8, 3, 4)), np.ones(shape)
    for call in (lambda: attention.scores(q, k, scale=1.0), lambda: attention.attend(q, k, k, scale=1.0)):
        with pytest.raises(ValueError, match=r"q has shape .* must be equal or 1, or their last a divisor"):
            call()
    with pytest.raises(ValueError, match=r"v \(3, 5, 4\); the axes before .* a divisor"):
        attention.attend(q, np.ones((2, 5, 4)), np.ones((3, 5, 4)), scale=1.0)


def test_gradients_of_shared_keys_are_summed():
    """A batch of texts: those of keys repeated for every head, summed over the heads that share one; 8 terms of size 1."""
    rng = np.random.default_rng(3)
    g, q, k = rng.normal(size=(5, 8, 3, 4)), rng.normal(size=(5, 8, 3, 4)), rng.normal(size=(5, 2, 3, 4))
    got = attention.attend_gradient(g, q, k, -k, scale=0.5)
    each = attention.attend_gradient(g, q, *(attention.repeat_heads(x, heads=8) for x in (k, -k)), scale=0.5)
    for name in ("k", "v"):
        summed = getattr(each, name).reshape(5, 2, 4, 3, 4).sum(axis=2)
        np.testing.assert_allclose(getattr(got, name), summed, rtol=0, atol=64 * 2.0**-52)
    np.testing.assert_array_equal(got.q, each.q)


def test_heads_that_do_not_divide_are_refused():
    for call in (attention.attend_gradient, lambda g, *x, scale: shards.attend(*x, scale=scale)):
        with pytest.raises(ValueError, match="must be equal or 1, or their last a divisor"):
            call(np.ones((8, 3, 4)), np.ones((8, 3, 4)), np.ones((3, 3, 4)), np.ones((3, 3, 4)), scale=1.0)
    with pytest.raises(ValueError, match="x has 3 heads, expected a divisor of heads = 8"):
        attention.repeat_heads(np.ones((2, 3, 3, 4)), heads=8)
    with pytest.raises(ValueError, match="x has 3 heads, expected a divisor of heads = 8"):
        attention.repeat_heads(np.ones((2, 3, 3, 4)), heads=8)


# caps, sinks, scales a row

HQ, HK, HV = (np.random.default_rng(seed).normal(size=(2, 3, 5, 4)) for seed in range(3))
SINKS = np.array([[-30.0], [0.0], [30.0]])


def test_a_sink_is_a_key_of_value_zero():
    """An extra key with that logit for every query and the value 0; one of -30 changes nothing visible, one of 30 takes all."""
    mask = attention.causal_mask(np.arange(5), np.arange(5))
    got = attention.attend(HQ, HK, HV, scale=0.5, mask=mask, sinks=SINKS)
    s = np.concatenate([np.broadcast_to(SINKS[:, None], (2, 3, 5, 1)), attention.scores(HQ, HK, scale=0.5)], axis=-1)
    weights = attention.softmax(s, np.concatenate([np.ones((5, 1), dtype=bool), mask], axis=-1))
    np.testing.assert_allclose(got, weights[..., 1:] @ HV, rtol=1e-13)
    np.testing.assert_allclose(got[:, 0], attention.attend(HQ, HK, HV, scale=0.5, mask=mask)[:, 0], rtol=1e-10)
    assert np.abs(got[:, 2]).max() < 1e-10


def test_a_sink_is_a_gate():
    """out = softmax(s) v sigmoid(lse - sink)."""
    s = attention.scores(HQ, HK, scale=0.5)
    gate = 1 / (1 + np.exp(SINKS[:, None] - np.log(np.exp(s).sum(axis=-1, keepdims=True))))
    np.testing.assert_allclose(
        attention.attend(HQ, HK, HV, scale=0.5, sinks=SINKS),
        attention.attend(HQ, HK, HV, scale=0.5) * gate,
        rtol=1e-12,
        atol=1e-300,
    )


def test_a_row_with_a_sink_and_no_key_is_zeros():
    nothing = np.zeros((5, 5), dtype=bool)
    for sinks in (SINKS, SINKS - 1e6):
        assert not attention.attend(HQ, HK, HV, scale=1.0, mask=nothing, sinks=sinks).any()


def test_huge_sinks_and_scores_do_not_overflow():
    got = attention.softmax(np.array([[[1e4, 0.0]]]), sinks=np.array([[1e4]]))
    np.testing.assert_array_equal(got, [[[0.5, 0.0]]])


def test_softcap_before_the_bias_and_the_mask():
    bias, mask = np.random.default_rng(3).normal(size=(3, 5, 5)) * 100, attention.causal_mask(np.arange(5), np.arange(5))
    s = 2.0 * np.tanh(attention.scores(HQ, HK, scale=3.0) / 2.0) + bias
    got = attention.attend(HQ, HK, HV, scale=3.0, bias=bias, mask=mask, softcap=2.0)
    np.testing.assert_allclose(got, attention.softmax(s, mask) @ HV, rtol=1e-13)


def test_a_scale_per_row_is_a_scaled_query():
    rows = np.linspace(1, 2, 5)
    got = attention.attend(HQ, HK, HV, scale=0.5, row_scale=rows, softcap=3.0)
    np.testing.assert_allclose(got, attention.attend(HQ * rows[:, None], HK, HV, scale=0.5, softcap=3.0), rtol=1e-13)


def test_alibi_forms_and_sinks():
    """BLOOM's form, slope times the key, is ALiBi after a plain softmax and not with a sink or a cap over the sum."""
    distance = np.arange(6)[None, :] - np.arange(6)[:, None]
    signed, key = 0.5 * distance, 0.5 * np.arange(6) * np.ones((6, 1))
    x, mask = np.random.default_rng(0).normal(size=(1, 6, 4)), distance <= 0
    differ = lambda **more: np.abs(  # noqa: E731
        attention.attend(x, x, x, scale=0.5, bias=signed, mask=mask, **more)
        - attention.attend(x, x, x, scale=0.5, bias=key, mask=mask, **more)
    ).max()
    assert differ() < 1e-14
    assert differ(softcap=2.0) < 1e-14  # before the bias
    assert differ(sinks=np.zeros((1, 1))) > 0.05
    capped = [attention.cap(attention.scores(x, x, scale=0.5, bias=bias), softcap=2.0) for bias in (signed, key)]
    assert np.abs(attention.softmax(capped[0], mask) @ x - attention.softmax(capped[1], mask) @ x).max() > 0.05


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"sinks": np.zeros(3)}, r"sinks has shape \(3,\).*sinks\[:, None\]"),
        ({"sinks": np.zeros((2, 1))}, r"sinks has shape \(2, 1\)"),
        ({"sinks": np.array([[np.nan], [0], [0]])}, "sinks has 1 of 3 values that are NaN"),
        ({"softcap": 0.0}, "softcap is 0.0, expected a positive"),
        ({"row_scale": np.ones(4)}, r"row_scale has shape \(4,\)"),
        ({"row_scale": np.ones((2, 5))}, r"row_scale has shape \(2, 5\)"),
    ],
)
def test_caps_sinks_and_scales_refuse(more, message):
    with pytest.raises(ValueError, match=message):
        attention.attend(HQ, HK, HV, scale=1.0, **more)


def test_attend_gradient_by_differences():
    """Central differences of <g, attend>, h = 2^-17: the error is h^2 times third derivatives, of order 1 here."""
    rng, step = np.random.default_rng(5), 2.0**-17
    q, k, v, g = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 2)), rng.normal(size=(2, 3, 2))
    bias, mask = rng.normal(size=(2, 3, 5)), rng.random(size=(3, 5)) < 0.7
    inputs = {"q": q, "k": k, "v": v, "bias": bias}
    loss = lambda x: (attention.attend(x["q"], x["k"], x["v"], scale=0.7, bias=x["bias"], mask=mask) * g).sum()  # noqa: E731
    got = attention.attend_gradient(g, q, k, v, scale=0.7, bias=bias, mask=mask)
    for name in inputs:
        direction = rng.normal(size=inputs[name].shape)
        higher, lower = (loss(inputs | {name: inputs[name] + sign * step * direction}) for sign in (1, -1))
        assert abs((higher - lower) / (2 * step) - (getattr(got, name) * direction).sum()) < 1e-7


@pytest.mark.parametrize("name", ["q", "k"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_a_streamed_exp_would_hide_is_refused(name, bad):
    """The kernel of `posref.fast.attention` takes a score that is NaN for a weight of 0, so its contract searches q and k."""
    arrays = {"q": np.ones((1, 2, 3)), "k": np.ones((1, 4, 3)), "v": np.ones((1, 4, 1))}
    arrays[name][0, 1, 2] = bad
    with pytest.raises(ValueError, match=rf"attend_by_offset: {name} has 1 of \d+ values that are NaN or infinite"):
        attention.attend_by_offset(**arrays, scale=1.0)
