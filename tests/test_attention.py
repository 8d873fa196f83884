"""Attention: masks, empty rows, grouped heads, caps and sinks; errors of the bodies."""

import numpy as np
import pytest

from posref import attention


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


def test_scores_that_are_infinite_are_refused():
    with pytest.raises(ValueError, match="scores has 6 of 6 values that are NaN or infinite"):
        attention.attend(np.ones((2, 4)), np.full((3, 4), np.inf), np.ones((3, 5)), scale=0.5)


def test_a_batch_of_masks_is_not_read_as_heads():
    """With as many sequences as heads, (batch, n_query, n_key) would broadcast, over the wrong axis."""
    x = np.random.default_rng(0).normal(size=(2, 2, 3, 4))
    mask = np.array([np.tri(3), np.tri(3, k=1)], dtype=bool)
    o = attention.attend(x, x, x, scale=0.5, mask=mask[:, None])
    assert np.array_equal(o[1], attention.attend(x[1], x[1], x[1], scale=0.5, mask=mask[1]))


def test_heads_that_do_not_divide_are_refused():
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
