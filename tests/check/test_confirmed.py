"""A name that a few entries fit by chance is asked at a longer text without gaps: it stays, is replaced, or is left out."""

import numpy as np
import pytest

from posref.check import check
from posref.ops import NotHere
from posref.ops.common import rounded
from posref.rotary import rope

UNSAID = "would explain this output, but not the output of n_query=33, n_key=33 without gaps."


def back(query_positions, key_positions):
    return query_positions[..., :, None] - key_positions[..., None, :]


def seen(low, high):
    return lambda query_positions, key_positions: (
        (back(query_positions, key_positions) >= low) & (back(query_positions, key_positions) <= high)
    )


def from_a_block(query_positions, key_positions):
    """A causal window of 8 keys whose start is rounded down to a multiple of 4."""
    first = (query_positions[..., :, None] - 7) // 4 * 4
    return (back(query_positions, key_positions) >= 0) & (key_positions[..., None, :] >= first)


def gated_by_the_row(query_positions, key_positions):
    """Attention sinks that rows before them see too, but row 0."""
    distance, rows = back(query_positions, key_positions), query_positions[..., :, None] > 0
    return (((distance >= 0) & (distance < 8)) | ((key_positions[..., None, :] < 4) & (rows | (distance >= 0)))) * 1


@pytest.mark.parametrize(
    ("high", "low", "settings", "words"),
    [
        (15, -8, {"width": 9}, "offsets j - i from -15 to 8 are seen"),
        (9, -9, {"width": 9}, "window_one_more"),
    ],
)
def test_windows_are_named_by_both_ends(high, low, settings, words):
    report = check(seen(low, high), "attention.window_mask", **settings)
    assert len(report.diagnosis) == 1
    assert words in str(report)
    assert "would explain" not in str(report)


def test_a_start_that_is_rounded_is_no_other_window():
    report = check(from_a_block, "attention.window_mask", width=8, causal=True)
    assert not report.ok
    assert not report.diagnosis
    assert UNSAID in str(report)


def fading(more):
    """A state that fades by half for each token of padding, to a multiple of 4."""

    def remember(k, v, log_gates, state):
        for t in range(k.shape[2]):
            state = np.exp(log_gates[:, :, t])[..., None] * state + k[:, :, t, :, None] * v[:, :, t, None]
        return state * more ** (-k.shape[2] % 4)

    return remember


def test_a_factor_that_follows_the_length_is_not_named():
    settings = {"features": None, "state_layout": "kv"}
    report = check(fading(0.5), "gated.remember", **settings)
    assert not report.diagnosis
    assert "every number is 0.5 times the right one" in str(report)
    assert UNSAID in str(report)
    half = check(lambda *arrays: fading(1)(*arrays) / 2, "gated.remember", **settings)
    assert [each.name for each in half.diagnosis] == ["result_halved"]


def test_a_factor_of_a_size_is_named_at_another_size():
    settings = {"features": None, "state_layout": "kv"}
    report = check(lambda k, v, g, s: fading(1)(k, v, g, s) / np.sqrt(v.shape[-1]), "gated.remember", **settings)
    assert len(report.diagnosis) == 1


def test_a_mask_is_asked_without_gaps():
    settings = {"window": 8, "sinks": 4}
    report = check(gated_by_the_row, "position_ids.lambda_mask", **settings)
    assert not report.ok
    assert not report.diagnosis
    assert "n_query=23, n_key=23 without gaps" in str(report)


def test_names_of_images_are_not_for_blocks_of_keys():
    def all_seen(query_positions, blocks):
        return np.ones((*query_positions.shape, blocks.shape[-1]), dtype=bool)

    assert [each.name for each in check(all_seen, "indexer.block_mask").diagnosis] == ["not_causal"]
    assert "blocks_causal" in str(check(lambda blocks: np.tri(len(blocks)) > 0, "attention.block_mask"))
    first = check(lambda b: (np.tri(len(b)) > 0) | ((b[:, None] == 0) & (b == 0)), "attention.block_mask")
    assert [each.name for each in first.diagnosis] == ["first_block_alone"]


SCALE = 8**-0.5


def weighted(scores, v):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True) @ v


def masked_as(number, add):
    def attend(q, k, v, mask):
        scores = SCALE * q @ k.swapaxes(-1, -2)
        return weighted(scores + np.where(mask, 0, number) if add else np.where(mask, scores, number), v)

    return attend


def with_a_maximum_of_at_least(least):
    def attend(q, k, v, mask):
        scores = np.where(mask, SCALE * q @ k.swapaxes(-1, -2), -np.inf)
        powers = np.exp((scores - np.maximum(scores.max(axis=-1, keepdims=True), least)).astype(np.float32))
        with np.errstate(all="ignore"):
            return np.nan_to_num(powers / powers.sum(axis=-1, keepdims=True)) @ v

    return attend


@pytest.mark.parametrize(
    ("attend", "name"),
    [
        (masked_as(-1e4, add=False), "masked_scores_above_-20000"),
        (masked_as(-1e4, add=True), None),
        (with_a_maximum_of_at_least(-65504.0), "exp_underflows"),
    ],
)
def test_scores_far_from_0_show_what_stands_for_masked_ones(attend, name):
    report = check(attend, "attention.attend", scale=SCALE)
    assert [each.name for each in report.diagnosis] == ([name] if name else [])
    assert report.ok == (name is None), str(report)


def softmax_of(attend):
    """The weights alone: of keys and values that are the rows of the identity."""
    return lambda scores, mask: attend(scores / SCALE, np.eye(scores.shape[-1]), np.eye(scores.shape[-1]), mask)


def turned_first(attend):
    def rotated(q, k, v, query_positions, key_positions, mask=True):
        q, k = (
            rope.rotate(x, *rope.tables(p[:, None], rope.frequencies(8)), layout="half")
            for x, p in ((q, query_positions), (k, key_positions))
        )
        return attend(q, k, v, mask)

    return rotated


@pytest.mark.parametrize(("made", "op"), [(softmax_of, "attention.softmax"), (turned_first, "rope.attend")])
def test_scores_far_from_0_are_asked_where_scores_are_given_or_rotated(made, op):
    settings = {"scale": SCALE, "layout": "half", "dim": 8} if op == "rope.attend" else {}
    report = check(made(with_a_maximum_of_at_least(-1e5)), op, **settings)
    assert [each.name for each in report.diagnosis] == ["exp_underflows"], str(report)


def convolved(x, kernel, bias, state):
    rows = np.concatenate([state, x], axis=1)
    return sum(rows[:, t : t + x.shape[1]] * kernel[:, t] for t in range(kernel.shape[1])) + bias


def transformed(x, kernel, bias, state):
    rows = np.concatenate([state, x], axis=1)
    n, taps = rows.shape[1], kernel.shape[1]
    size = n + taps
    spectrum = np.fft.rfft(rows, size, axis=1) * np.fft.rfft(kernel[:, ::-1].T, size, axis=0)
    return (np.fft.irfft(spectrum, size, axis=1)[:, taps - 1 : n] + bias).astype(np.float32)


def silu(x):
    return x / (1 + np.exp(-x))


def test_a_convolution_by_fourier_transforms_passes_and_products_in_few_bits_do_not():
    assert check(transformed, "convolution.convolve", seed=5).ok
    low = lambda x: np.ldexp(np.rint(np.ldexp(np.frexp(x)[0], 11)), np.frexp(x)[1] - 11)  # noqa: E731
    products = lambda x, kernel, bias, state: convolved(low(x * 1.01), low(kernel / 1.01), bias, low(state * 1.01))  # noqa: E731
    assert not check(products, "convolution.convolve").ok


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda *a: silu(convolved(*a)), "result_silu"),
        (lambda x, *a: convolved(silu(x), *a), "x_silu"),
    ],
)
def test_an_activation_is_named(function, name):
    assert [each.name for each in check(function, "convolution.convolve").diagnosis] == [name]


def gradient_of_q(output_gradient, q, k, v, forward=None, backward=None):
    """By the scores of a causal mask whose last query stands at the last key, or at other places."""
    n, m = q.shape[2], k.shape[2]
    triangles = [np.tri(n, m, m - n if place is None else place) > 0 for place in (forward, backward)]
    scores = np.where(triangles[0], SCALE * q @ k.swapaxes(-1, -2), -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = np.where(triangles[1], weights / weights.sum(axis=-1, keepdims=True), 0)
    by_weight = output_gradient @ v.swapaxes(-1, -2)
    return SCALE * (weights * (by_weight - (weights * by_weight).sum(axis=-1, keepdims=True))) @ k


@pytest.mark.parametrize(
    ("places", "name"),
    [({"backward": 0}, "backward_left_aligned"), ({"forward": 0, "backward": 0}, "causal_left_aligned")],
)
def test_a_causal_gradient_is_asked_of_kernels_without_a_mask(places, name):
    def gradient(output_gradient, q, k, v):
        return gradient_of_q(output_gradient, q, k, v, **places)

    report = check(gradient, "attention.attend_gradient", of="q", scale=SCALE, causal=True)
    assert [each.name for each in report.diagnosis] == [name]


def test_a_window_to_which_the_sinks_are_added():
    def mask(query_positions, key_positions):
        distance = back(query_positions, key_positions)
        return ((distance >= 0) & ((distance < 8 + 4) | (key_positions[..., None, :] < 4))) * 1

    (finding,) = check(mask, "position_ids.lambda_mask", window=8, sinks=4).diagnosis
    assert finding.name == "window 12"


def documents(boundaries):
    def mask(lengths):
        ends = np.cumsum(lengths)
        of = np.searchsorted(ends[boundaries(ends)], np.arange(ends[-1]), side="right")
        return of[:, None] == of

    return mask


@pytest.mark.parametrize(
    ("boundaries", "name"),
    [
        (lambda ends: slice(0, 1), "lengths_joined_after_the_first"),
        (lambda ends: slice(len(ends) - 2, None), "lengths_joined_before_the_last"),
        (lambda ends: slice(None), None),
        (lambda ends: slice(0, 2), "mask_opened_by_another_rule"),
    ],
)
def test_boundaries_that_are_not_read_are_named(boundaries, name):
    report = check(documents(boundaries), "position_ids.document_mask", causal=False)
    assert [each.name for each in report.diagnosis] == ([name] if name else [])


def in_two_parts(share):
    """Attention over the keys before and from 3 on, merged by share(logsumexp)."""

    def attend(q, k, v, mask):
        scores, merged, total = np.where(mask, SCALE * q @ k.swapaxes(-1, -2), -1e30), 0.0, 0.0
        top = scores.max(axis=-1, keepdims=True)
        for part in (slice(3), slice(3, None)):
            powers = np.where(mask, np.exp(scores - top), 0)[..., part]
            size = powers.sum(axis=-1, keepdims=True)
            with np.errstate(all="ignore"):
                weight = np.where(size > 0, share(np.log(size)), 0)
                merged, total = merged + weight * np.nan_to_num(powers / size) @ v[:, :, part], total + weight
        return merged / total

    return attend


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (
            lambda lse: np.exp(lse / np.log(2)),
            "keys 0 to 2 and keys 3 to 6, each part right in itself, have wrong shares: the logsumexp",
        ),
        (lambda lse: 0 * lse + 1, "have equal shares: their logsumexps are not used"),
        (lambda lse: np.exp(lse + lse**2), ""),
    ],
)
def test_parts_that_are_merged_wrongly_are_found(share, words):
    report = check(in_two_parts(share), "attention.attend", scale=SCALE)
    assert [each.name for each in report.diagnosis] == (["parts_merged"] if words else [])
    assert (words or "weights: keys 0 to 2 and keys 3 to 6, each part right in itself") in str(report)


def test_a_bias_from_a_key_on_is_no_merge():
    def attend(q, k, v, mask):
        scores = SCALE * q @ k.swapaxes(-1, -2) + (np.arange(k.shape[2]) > 2)
        return weighted(np.where(mask, scores, -1e30), v)

    assert [each.name for each in check(attend, "attention.attend", scale=SCALE).diagnosis] == ["bias_added"]


def less_a_constant(number, lost):
    """Scores in float32 less a number, not the largest of their row; what is not finite becomes `lost`."""

    def attend(q, k, v, mask):
        with np.errstate(all="ignore"):
            powers = np.where(mask, np.exp((SCALE * q @ k.swapaxes(-1, -2) - number).astype(np.float32)), 0)
            return np.nan_to_num(powers @ v / powers.sum(axis=-1, keepdims=True), nan=lost)

    return attend


@pytest.mark.parametrize("lost", [0.0, np.nan])
def test_rows_that_are_lost_are_those_with_large_scores(lost):
    report = check(less_a_constant(10, lost), "attention.attend", scale=SCALE)
    assert "the rows with a score beyond 1.26e+03 are lost, and right with smaller queries: exp overflows" in str(report)
    assert "Find out" not in str(report)


def test_the_last_row_left_out_is_no_overflow():
    """It is the row with large scores as well."""

    def attend(q, k, v, mask):
        result = weighted(np.where(mask, SCALE * q @ k.swapaxes(-1, -2), -1e30), v)
        result[-1, -1, -1] = 0
        return result

    assert [each.name for each in check(attend, "attention.attend", scale=SCALE).diagnosis] == ["part_zero"]


def test_a_name_of_one_text_alone_is_asked_again():
    def mask(query_positions, key_positions):
        distance = back(query_positions, key_positions)
        return ((distance >= 0) & (distance < 8 + 3 * (query_positions[..., None] % 2))) * 1

    report = check(mask, "attention.window_mask", width=8, causal=True)
    assert not report.diagnosis
    assert "would explain this output, but not" in str(report)


def test_complex_steps_are_not_rounded():
    """What is cast to a real number loses more than bits."""
    with pytest.raises(NotHere):
        rounded(np.array([1j]), 8)
