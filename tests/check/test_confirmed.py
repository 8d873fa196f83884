"""A name that a few entries fit by chance is asked at a longer text without gaps: it stays, is replaced, or is left out."""

import numpy as np
import pytest

from posref.check import check
from posref.ops import NotHere
from posref.ops.common import rounded
from posref.rotary import rope
from tests.every import every

UNSAID = "would explain this output, but not the output of n_query=33, n_key=33 without gaps."
SCALE, STATE = {"scale": 8**-0.5}, {"features": None, "state_layout": "kv"}
WINDOW, SINKS, TURNED = {"width": 8, "causal": True}, {"window": 8, "sinks": 4}, {"layout": "half", "dim": 8}


def back(query_positions, key_positions):
    return query_positions[..., :, None] - key_positions[..., None, :]


def seen(low, high):
    return lambda i, j: (back(i, j) >= low) & (back(i, j) <= high)


def from_a_block(i, j):
    """A causal window of 8 keys whose start is rounded down to a multiple of 4."""
    return (back(i, j) >= 0) & (j[..., None, :] >= (i[..., :, None] - 7) // 4 * 4)


def gated_by_the_row(i, j):
    """Attention sinks that rows before them see too, but row 0."""
    distance, rows = back(i, j), i[..., :, None] > 0
    return (((distance >= 0) & (distance < 8)) | ((j[..., None, :] < 4) & (rows | (distance >= 0)))) * 1


def sinks_added_to_the_window(i, j):
    return ((back(i, j) >= 0) & ((back(i, j) < 8 + 4) | (j[..., None, :] < 4))) * 1


def of_one_text(i, j):
    return ((back(i, j) >= 0) & (back(i, j) < 8 + 3 * (i[..., None] % 2))) * 1


def fading(more):
    """A state that fades by half for each token of padding, to a multiple of 4."""

    def remember(k, v, log_gates, state):
        for t in range(k.shape[2]):
            state = np.exp(log_gates[:, :, t])[..., None] * state + k[:, :, t, :, None] * v[:, :, t, None]
        return state * more ** (-k.shape[2] % 4)

    return remember


def attending(scores_of, weigh, last=lambda y: y):
    """Attention by the scores of (q k^T / sqrt(8), mask), and what makes a result of scores and values."""
    return lambda q, k, v, mask: last(weigh(scores_of(SCALE["scale"] * q @ k.swapaxes(-1, -2), mask), v))


def weighted(scores, v):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True) @ v


def masked(number):
    return lambda scores, mask: np.where(mask, scores, number)


def with_a_bias(of):
    return attending(lambda scores, mask: np.where(mask, scores + of(np.arange(scores.shape[-1])), -1e30), weighted)


def with_a_maximum_of_at_least(least):
    def weigh(scores, v):
        powers = np.exp((scores - np.maximum(scores.max(axis=-1, keepdims=True), least)).astype(np.float32))
        with np.errstate(all="ignore"):
            return np.nan_to_num(powers / powers.sum(axis=-1, keepdims=True)) @ v

    return attending(masked(-np.inf), weigh)


def less_a_constant(lost):
    """Scores in float32 less 10, not the largest of their row; what is not finite becomes `lost`."""

    def weigh(scores, v):
        with np.errstate(all="ignore"):
            powers = np.exp((scores - 10).astype(np.float32))
            return np.nan_to_num(powers @ v / powers.sum(axis=-1, keepdims=True), nan=lost)

    return attending(masked(-np.inf), weigh)


def without_the_last_row(y):
    """It is the row with large scores as well."""
    y[-1, -1, -1] = 0
    return y


def of_rows(y):
    return y * (1 + np.arange(y[..., :1].size).reshape(y[..., :1].shape) % 7)


def softmax_of(attend):
    """The weights alone: of keys and values that are the rows of the identity."""
    return lambda scores, mask: attend(scores / SCALE["scale"], np.eye(scores.shape[-1]), np.eye(scores.shape[-1]), mask)


def turned_first(attend):
    def turned(x, positions):
        return rope.rotate(x, *rope.tables(positions[:, None], rope.frequencies(8)), layout="half")

    return lambda q, k, v, i, j, mask=True: attend(turned(q, i), turned(k, j), v, mask)


def convolved(x, kernel, bias, state):
    rows = np.concatenate([state, x], axis=1)
    return sum(rows[:, t : t + x.shape[1]] * kernel[:, t] for t in range(kernel.shape[1])) + bias


def transformed(x, kernel, bias, state):
    rows = np.concatenate([state, x], axis=1)
    n, taps = rows.shape[1], kernel.shape[1]
    spectrum = np.fft.rfft(rows, n + taps, axis=1) * np.fft.rfft(kernel[:, ::-1].T, n + taps, axis=0)
    return (np.fft.irfft(spectrum, n + taps, axis=1)[:, taps - 1 : n] + bias).astype(np.float32)


def silu(x):
    return x / (1 + np.exp(-x))


def in_few_bits(x, kernel, bias, state):
    low = lambda x: np.ldexp(np.rint(np.ldexp(np.frexp(x)[0], 11)), np.frexp(x)[1] - 11)  # noqa: E731
    return convolved(low(x * 1.01), low(kernel / 1.01), bias, low(state * 1.01))


def gradient_of_q(backward, forward=None):
    """By the scores of a causal mask whose last query stands at the last key, or at other places."""

    def gradient(output_gradient, q, k, v):
        n, m = q.shape[2], k.shape[2]
        triangles = [np.tri(n, m, m - n if place is None else place) > 0 for place in (forward, backward)]
        scores = np.where(triangles[0], SCALE["scale"] * q @ k.swapaxes(-1, -2), -np.inf)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = np.where(triangles[1], weights / weights.sum(axis=-1, keepdims=True), 0)
        by_weight = output_gradient @ v.swapaxes(-1, -2)
        return SCALE["scale"] * (weights * (by_weight - (weights * by_weight).sum(axis=-1, keepdims=True))) @ k

    return gradient


def documents(boundaries):
    def mask(lengths):
        ends = np.cumsum(lengths)
        of = np.searchsorted(ends[boundaries], np.arange(ends[-1]), side="right")
        return of[:, None] == of

    return mask


def in_two_parts(share):
    """Attention over the keys before and from 3 on, merged by share(logsumexp)."""

    def attend(q, k, v, mask):
        scores, merged, total = np.where(mask, SCALE["scale"] * q @ k.swapaxes(-1, -2), -1e30), 0.0, 0.0
        top = scores.max(axis=-1, keepdims=True)
        for part in (slice(3), slice(3, None)):
            powers = np.where(mask, np.exp(scores - top), 0)[..., part]
            size = powers.sum(axis=-1, keepdims=True)
            with np.errstate(all="ignore"):
                weight = np.where(size > 0, share(np.log(size)), 0)
                merged, total = merged + weight * np.nan_to_num(powers / size) @ v[:, :, part], total + weight
        return merged / total

    return attend


PARTS = "keys 0 to 2 and keys 3 to 6, each part right in itself"
LOST = "the rows with a score beyond 1.26e+03 are lost, and right with smaller queries: exp overflows"
GRADIENT = SCALE | {"of": "q", "causal": True}
ATTEND, SOFTMAX = "attention.attend", "attention.softmax"
MASK, DOCUMENTS = "attention.window_mask", ("position_ids.document_mask", {"causal": False})
FOUND = [  # op, settings, function, the name that it has and no other, and words of the report
    (MASK, {"width": 9}, seen(-8, 15), "other_offsets", "offsets j - i from -15 to 8 are seen"),
    (MASK, {"width": 9}, seen(-9, 9), "window_one_more", ""),
    (MASK, WINDOW, from_a_block, None, UNSAID),
    (MASK, WINDOW, of_one_text, None, "would explain this output, but not"),
    ("position_ids.lambda_mask", SINKS, gated_by_the_row, None, "n_query=23, n_key=23 without gaps"),
    ("position_ids.lambda_mask", SINKS, sinks_added_to_the_window, "window 12", ""),
    ("gated.remember", STATE, fading(0.5), None, "every number is 0.5 times the right one"),
    ("gated.remember", STATE, lambda *x: fading(1)(*x) / 2, "result_halved", ""),
    ("gated.remember", STATE, lambda *x: fading(1)(*x) / x[1].shape[-1] ** 0.5, "result_times_0.353553", ""),
    ("indexer.block_mask", {}, lambda i, blocks: np.ones((*i.shape, blocks.shape[-1]), dtype=bool), "not_causal", ""),
    ("attention.block_mask", {}, lambda b: np.tri(len(b)) > 0, "blocks_causal", ""),
    ("attention.block_mask", {}, lambda b: (np.tri(len(b)) > 0) | ((b[:, None] == 0) & (b == 0)), "first_block_alone", ""),
    (ATTEND, SCALE, attending(masked(-1e4), weighted), "masked_scores_above_-20000", ""),
    (ATTEND, SCALE, attending(masked(-2e4), weighted), "masked_scores_-20000", ""),
    (ATTEND, SCALE, with_a_maximum_of_at_least(-65504.0), "exp_underflows", ""),
    (SOFTMAX, {}, softmax_of(with_a_maximum_of_at_least(-1e5)), "exp_underflows", ""),
    ("rope.attend", SCALE | TURNED, turned_first(with_a_maximum_of_at_least(-1e5)), "exp_underflows", ""),
    ("rope.attend", SCALE | TURNED, turned_first(attending(masked(-1e30), weighted, of_rows)), "weights_not_normalized", ""),
    (ATTEND, SCALE, less_a_constant(0.0), "exp_out_of_range", LOST),
    (ATTEND, SCALE, less_a_constant(np.nan), "exp_overflows", LOST),
    (ATTEND, SCALE, attending(masked(-1e30), weighted, without_the_last_row), "part_zero", ""),
    (
        ATTEND,
        SCALE,
        in_two_parts(lambda x: np.exp(x / np.log(2))),
        "parts_merged",
        f"{PARTS}, have wrong shares: the logsumexp",
    ),
    (ATTEND, SCALE, in_two_parts(np.ones_like), "parts_merged", "have equal shares: their logsumexps are not used"),
    (ATTEND, SCALE, in_two_parts(lambda x: np.exp(x + x**2)), None, f"weights: {PARTS}"),
    (ATTEND, SCALE, with_a_bias(lambda key: key > 2), "bias_added", "differs by up to 1; it depends on the key alone"),
    (ATTEND, SCALE, with_a_bias(lambda key: key == 1), None, ""),  # one text alone sees this key
    ("convolution.convolve", {}, lambda *a: silu(convolved(*a)), "result_silu", ""),
    ("convolution.convolve", {}, lambda x, *a: convolved(silu(x), *a), "x_silu", ""),
    ("convolution.convolve", {}, in_few_bits, None, ""),
    ("attention.attend_gradient", GRADIENT, gradient_of_q(0), "backward_left_aligned", ""),
    ("attention.attend_gradient", GRADIENT, gradient_of_q(0, 0), "causal_left_aligned", ""),
    (*DOCUMENTS, documents(slice(0, 1)), "lengths_joined_after_the_first", ""),
    (*DOCUMENTS, documents(slice(-2, None)), "lengths_joined_before_the_last", ""),
    (*DOCUMENTS, documents(slice(0, 2)), "last_boundary_left_out", ""),
]


@every(FOUND, name=lambda case: f"{case[0]} {case[3]} {case[4]}")
def test_a_name_stays_or_is_left_out(op, settings, fn, name, words):
    report = check(fn, op, **settings)
    assert not report.ok
    assert [each.name for each in report.diagnosis] == ([name] if name else []), str(report)
    assert words in str(report), str(report)
    assert not name or "would explain" not in str(report), str(report)
    assert words != LOST or "Find out" not in str(report), str(report)


def test_what_is_added_to_masked_scores_and_a_convolution_by_fourier_transforms_are_right():
    added = attending(lambda scores, mask: scores + np.where(mask, 0, -1e4), weighted)
    assert check(added, ATTEND, **SCALE).ok
    assert check(transformed, "convolution.convolve", seed=5).ok


def test_complex_steps_are_not_rounded():
    """What is cast to a real number loses more than bits."""
    with pytest.raises(NotHere):
        rounded(np.array([1j]), 8)
