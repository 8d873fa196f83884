"""Attention against scalar loops; masks, empty rows, alignment, grouped heads; every refusal."""

import numpy as np
import pytest

from posref import attention, shards

EPS = np.finfo(float).eps
RNG = np.random.default_rng(0)


def bound(width, n, scores, values):
    """Scores of size s err by (width + 2) s eps and the shift by s eps; exp turns that into a relative error of weights, which
    enters numerator and denominator; n terms, exp, product and quotient round besides."""
    return (2 * (width + 4) * scores + 3 * n + 8) * EPS * values


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


def test_a_causal_window_holds_width_keys():
    positions = np.arange(6)
    mask = attention.causal_mask(positions, positions) & attention.window_mask(positions, positions, width=3)
    assert mask.sum(axis=-1).tolist() == [1, 2, 3, 3, 3, 3]


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


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32])
def test_products_of_narrow_integers_do_not_wrap(dtype):
    q = np.full((1, 4), 100, dtype)  # 4 * 100 * 100 fits into none of them but int32
    assert attention.scores(q, q, scale=1).item() == 40000
    one = np.full((1, 1), 100, dtype)
    assert sum(attention.four_terms(one, one, one, one)).item() == 4 * 100**4


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
    assert not attention.window_mask(np.array([-128], np.int8), np.array([127], np.int8), width=2).any()
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


@pytest.mark.parametrize("shape", [(3, 5, 4), (0, 5, 4), (16, 5, 4), (3, 2, 5, 4)])
def test_shared_heads_divide_those_of_the_queries(shape):
    q, k = np.ones((2, 8, 3, 4)), np.ones(shape)
    for call in (lambda: attention.scores(q, k, scale=1.0), lambda: attention.attend(q, k, k, scale=1.0)):
        with pytest.raises(ValueError, match=r"q has shape .* must be equal or 1, or their last a divisor"):
            call()
    with pytest.raises(ValueError, match=r"v \(3, 5, 4\); the axes before .* a divisor"):
        attention.attend(q, np.ones((2, 5, 4)), np.ones((3, 5, 4)), scale=1.0)


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


@pytest.mark.parametrize("name", ["q", "k"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_a_streamed_exp_would_hide_is_refused(name, bad):
    """The kernel of `posref.fast.attention` takes a score that is NaN for a weight of 0, so its contract searches q and k."""
    arrays = {"q": np.ones((1, 2, 3)), "k": np.ones((1, 4, 3)), "v": np.ones((1, 4, 1))}
    arrays[name][0, 1, 2] = bad
    with pytest.raises(ValueError, match=rf"attend_by_offset: {name} has 1 of \d+ values that are NaN or infinite"):
        attention.attend_by_offset(**arrays, scale=1.0)
