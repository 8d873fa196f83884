"""ALiBi: slopes against exact powers and the published recursion, the three forms against loops and against each other."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from posref import attention
from posref.relative import alibi


def published_slopes(heads, max_bias=8):
    """The recipe as published, exponents as exact fractions of mpmath: a power of two, or the half list and every other one."""
    power = 1
    while 2 * power <= heads:
        power *= 2
    with mpmath.workdps(40):
        first = [mpmath.mpf(2) ** (-mpmath.mpf(max_bias) * a / power) for a in range(1, power + 1)]
        twice = [mpmath.mpf(2) ** (-mpmath.mpf(max_bias) * a / (2 * power)) for a in range(1, 2 * power + 1)]
        return [float(m) for m in (first + twice[0::2])[:heads]]


@pytest.mark.parametrize("max_bias", [8, 4, 16, 6.5])
def test_slopes_are_the_published_recipe(max_bias):
    for heads in range(1, 129):
        slopes = alibi.slopes(heads, max_bias=max_bias)
        assert slopes.shape == (heads,)
        # The exponent is exact for max_bias a multiple of 1/2, so one power separates both: 1 ulp = 2 u.
        np.testing.assert_allclose(slopes, published_slopes(heads, max_bias), rtol=2**-52, atol=0)


def test_integer_exponents_are_exact():
    for heads in (1, 2, 4, 8):
        assert alibi.slopes(heads).tolist() == [1 / 2 ** (8 * a // heads) for a in range(1, heads + 1)]
    assert alibi.slopes(6).tolist() == [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8]
    assert alibi.slopes(3).tolist() == [1 / 16, 1 / 256, 1 / 4]
    assert alibi.slopes(1).tolist() == [1 / 256]
    assert alibi.slopes(16)[1::2].tolist() == [1 / 2**a for a in range(1, 9)]


def test_twelve_heads_are_not_one_geometric_sequence():
    slopes = alibi.slopes(12)
    assert slopes[:8].tolist() == [1 / 2**a for a in range(1, 9)]
    assert slopes[8:].round(8).tolist() == [0.70710678, 0.35355339, 0.1767767, 0.08838835]
    plain = 2.0 ** (-8 * np.arange(1, 13) / 12)
    assert plain[0].round(7) == 0.6299605
    assert not np.any(np.isclose(slopes[0], plain[0]))


@pytest.mark.parametrize("heads", range(1, 65))
def test_sorted_only_for_powers_of_two(heads):
    slopes = alibi.slopes(heads)
    assert np.all(np.diff(slopes) < 0) == (heads & (heads - 1) == 0)
    assert len(set(slopes.tolist())) == heads


def test_a_rank_of_tensor_parallelism_takes_a_slice():
    assert alibi.slopes(6)[3:].tolist() == [1 / 256, 1 / 2, 1 / 8]
    assert alibi.slopes(6)[3:].tolist() != alibi.slopes(3).tolist()


@pytest.mark.parametrize("form", alibi.FORMS)
def test_bias_entry_by_entry(form):
    queries, keys, slopes = np.array([[4, 9], [0, 40]]), np.array([[0, 1, 30], [2, 0, 41]]), alibi.slopes(3)
    bias = alibi.bias(queries, keys, slopes, form=form)
    assert bias.shape == (2, 3, 1 if form == "key" else 2, 3)
    bias = np.broadcast_to(bias, (2, 3, 2, 3))
    for batch, head, i, j in np.ndindex(*bias.shape):
        query, key, slope = int(queries[batch, i]), int(keys[batch, j]), float(slopes[head])
        expected = {"signed": slope * (key - query), "absolute": -slope * abs(key - query), "key": slope * key}[form]
        assert bias[batch, head, i, j] == expected


def test_decoding_step():
    slopes = alibi.slopes(2)
    step = alibi.bias(np.array([4]), np.arange(5), slopes, form="signed")
    assert step.tolist() == [[[m * o for o in (-4, -3, -2, -1, 0)]] for m in (1 / 16, 1 / 256)]
    for form in ("signed", "absolute"):
        full = alibi.bias(np.arange(5), np.arange(5), slopes, form=form)
        assert np.array_equal(alibi.bias(np.array([4]), np.arange(5), slopes, form=form), full[:, -1:])
        assert np.array_equal(alibi.bias(np.array([3, 4]), np.arange(5), slopes, form=form), full[:, -2:])


def weights(form, mask, q, k, slopes):
    positions = np.arange(q.shape[-2])
    return attention.softmax(q @ np.swapaxes(k, -1, -2) / 4 + alibi.bias(positions, positions, slopes, form=form), mask)


def test_forms_after_softmax():
    q, k = np.random.default_rng(0).standard_normal((2, 6, 9, 16))
    slopes, causal = alibi.slopes(6), attention.causal_mask(np.arange(9), np.arange(9))
    # Scores are below 20 in size; a shift by m i <= 4 rounds each argument of exp by at most 24 u, twice, and the sum adds 9 u.
    tolerance = {"rtol": 64 * 2**-53, "atol": 0}
    for mask in (causal, None):
        np.testing.assert_allclose(weights("signed", mask, q, k, slopes), weights("key", mask, q, k, slopes), **tolerance)
    causal_weights = weights("signed", causal, q, k, slopes)
    assert np.array_equal(causal_weights, weights("absolute", causal, q, k, slopes))
    both = np.abs(weights("signed", None, q, k, slopes) - weights("absolute", None, q, k, slopes)).max(axis=(0, 2))
    assert np.all(both[:-1] > 0.01)  # every row but the last has a future
    assert both[-1] == 0


def test_forms_differ_by_a_constant_of_the_row():
    positions, slopes = np.arange(7), alibi.slopes(4)  # exact: small integers times powers of two
    difference = alibi.bias(positions, positions, slopes, form="key") - alibi.bias(positions, positions, slopes, form="signed")
    assert np.array_equal(difference, np.broadcast_to(slopes[:, None, None] * positions[:, None], (4, 7, 7)))


def test_left_padding_counts_real_tokens():
    mask = np.array([[0, 0, 1, 1], [1, 1, 1, 1]])
    positions = np.cumsum(mask, axis=-1) - 1
    bias = alibi.bias(positions, positions, alibi.slopes(2), form="signed")
    assert np.array_equal(bias[0][:, 2:, 2:], alibi.bias(np.arange(2), np.arange(2), alibi.slopes(2), form="signed"))


def test_half_precision_merges_neighbors_in_the_key_form_alone():
    for slope in (0.5, 2.0**-8):
        key = (np.arange(2100) * slope).astype(np.float16)
        assert np.flatnonzero(np.diff(key) == 0)[0] == 2048
        signed = ((np.arange(2100) - 2099) * slope).astype(np.float16)
        assert np.all(np.diff(signed[-2000:]) != 0)


def test_scale_before_or_after():
    # Falcon adds before the division by sqrt(d): the same numbers as a bias divided by sqrt(d), and other ones than ALiBi's.
    q, k = np.random.default_rng(1).standard_normal((2, 2, 5, 4))
    bias = alibi.bias(np.arange(5), np.arange(5), alibi.slopes(2), form="key")
    falcon = (q @ np.swapaxes(k, -1, -2) + bias) / 2
    np.testing.assert_allclose(attention.scores(q, k, scale=0.5) + bias / 2, falcon, rtol=0, atol=8 * 2**-52)
    assert np.abs(attention.scores(q, k, scale=0.5) + bias - falcon).max() > 0.1


def test_symbols_pass_through():
    slope = np.array([Fraction(1, 3)], dtype=object)
    assert alibi.bias(np.array([2]), np.array([0, 3]), slope, form="absolute").tolist() == [[[slope[0] * -2, slope[0] * -1]]]


def test_errors():
    positions, slopes = np.arange(3), alibi.slopes(2)
    with pytest.raises(ValueError, match=r"alibi\.slopes: heads is 0, expected an integer of at least 1"):
        alibi.slopes(0)
    with pytest.raises(TypeError, match=r"alibi\.slopes: heads is 8\.0, expected an integer"):
        alibi.slopes(8.0)
    with pytest.raises(ValueError, match=r"alibi\.slopes: max_bias is 0, expected a positive finite number"):
        alibi.slopes(8, max_bias=0)
    with pytest.raises(ValueError, match=r"alibi\.bias: form is 'press', expected one of 'signed', 'absolute', 'key'"):
        alibi.bias(positions, positions, slopes, form="press")
    with pytest.raises(ValueError, match=r"alibi\.bias: slopes has shape \(2, 1\), expected \(h,\)"):
        alibi.bias(positions, positions, slopes[:, None], form="key")
    with pytest.raises(TypeError, match=r"alibi\.bias: slopes is a list"):
        alibi.bias(positions, positions, [0.5], form="key")
    with pytest.raises(TypeError, match=r"query_positions has dtype uint32"):
        alibi.bias(positions.astype(np.uint32), positions, slopes, form="signed")


def test_a_slope_that_is_no_number_shows_in_every_entry():
    positions = np.arange(3)
    for form in alibi.FORMS:
        first, second = alibi.bias(positions, positions, np.array([np.nan, 1.0]), form=form)
        assert np.isnan(first).all()
        assert np.isfinite(second).all()


@pytest.mark.parametrize("name", alibi.PRESETS)
def test_presets_run(name):
    preset = alibi.PRESETS[name]
    slopes = alibi.slopes(preset["heads"], max_bias=preset["max_bias"])
    assert alibi.bias(np.arange(2), np.arange(3), slopes, form=preset["form"]).shape[0] == preset["heads"]
