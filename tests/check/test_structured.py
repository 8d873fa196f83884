"""Masks, trees, timesteps and axes, as other hands write them; a mistake that no list of vectors holds has its own name."""

import inspect
from functools import partial

import numpy as np
import pytest

from posref.check import check, masks
from posref.check.engine import Question
from posref.check.tensors import round_to
from posref.ops import further, op
from tests.check.test_check_attention import is_mistake
from tests.every import every

TRIANGLE = np.tri(8) > 0


def tree_mask(parents):
    seen = np.eye(len(parents), dtype=bool)
    for i, parent in enumerate(parents):
        seen[i] |= seen[parent]
    return seen


def documents(lengths):
    of = np.repeat(np.arange(len(lengths)), lengths)
    return of[:, None] == of


def within(prefixes, n):
    return pairs(np.arange(n) < prefixes[:, None])


def pairs(flags):
    return flags[:, :, None] & flags[:, None, :]


def padded_prefix(prefixes, n, mask, from_0=False, over=False, seen=False):
    """Entry by entry: padding is seen nowhere, in a prefix put over it, or everywhere."""

    def sees(text, i, j):
        first = 0 if from_0 else min(np.flatnonzero(mask[text]))
        both = first <= min(i, j) and max(i, j) < first + prefixes[text]
        return (j <= i or both) and (mask[text, j] or seen or (over and both))

    return np.array([[[sees(text, i, j) for j in range(n)] for i in range(n)] for text in range(len(mask))])


def convolved(x, kernel, bias, state):
    windows = np.lib.stride_tricks.sliding_window_view(np.concatenate([state, x], axis=1), kernel.shape[1], axis=1)
    return (windows * kernel).sum(axis=-1) + bias


def timestep(t, columns=1):
    angle = np.float64(1000) * t[..., None] * 10000.0 ** (-np.arange(4) / 4)
    return np.concatenate([np.cos(angle), np.sin(angle), np.zeros((*t.shape, columns))], axis=-1).astype(np.float32)


def grid(height, width):
    return np.array([(row, column) for row in range(height) for column in range(width)])


def chunk(q, k):
    return (k[:, None, :] <= q[:, :, None]) & (k[:, None, :] // 4 == q[:, :, None] // 4)


def rolled(*shifts):
    def seen(coordinates):
        came_round = coordinates >= np.array([4, 6, 12]) - shifts
        return (came_round[:, None] == came_round).all(axis=-1)

    return seen


def table_of_a_volume(planes, rows=7, sides=(2, 3, 4)):
    def bias(coordinates, table):
        index = (coordinates[:, None] - coordinates + np.array(sides) - 1) @ [planes, rows, 1]
        return np.moveaxis(table[np.minimum(index, len(table) - 1)], -1, 0)

    return bias


TIMES = {"dim": 8, "layout": "half", "order": "cos_sin", "factor": 1000, "zeros": 1}
CASES = {  # op, settings, what is right, and what is wrong by its name
    "position_ids.document_mask": (
        {},
        lambda lengths: documents(lengths) & (np.tri(sum(lengths)) > 0),
        {"not_causal": documents, "boundaries_ignored": lambda lengths: np.tri(sum(lengths)) > 0},
    ),
    "position_ids.tree_mask": ({}, tree_mask, {"branches_ignored": lambda parents: np.tri(len(parents)) > 0}),
    "position_ids.tree": (
        {},
        lambda parents: tree_mask(parents).sum(axis=1) - 1,
        {"places_for_depths": lambda parents: np.arange(len(parents))},
    ),
    "attention.chunk_mask": ({"width": 4}, chunk, {"other_offsets": lambda q, k: k[:, None, :] <= q[:, :, None]}),
    "attention.prefix_mask": (
        {},
        lambda prefixes, n: within(prefixes, n) | TRIANGLE,
        {"prefixes_zero": lambda prefixes, n: np.broadcast_to(TRIANGLE, (len(prefixes), n, n))},
    ),
    "attention.prefix_mask, padded": (
        {"padding_mask": True},
        lambda *asked: padded_prefix(*asked) & asked[2][:, :, None],  # nothing is asked of rows of padding
        {
            "padding_ignored": partial(padded_prefix, from_0=True, seen=True),
            "padding_seen": partial(padded_prefix, seen=True),
            "prefix_from_column_0": partial(padded_prefix, from_0=True),
            "padding_seen_in_the_prefix": partial(padded_prefix, from_0=True, over=True),
            "padding_is_prefix": lambda prefixes, n, mask: (
                padded_prefix(prefixes, n, mask) | pairs(~mask | (np.cumsum(mask, axis=1) <= prefixes[:, None]))
            ),
        },
    ),
    "convolution.convolve, padded": (
        {"padding_mask": True},
        lambda x, *given: convolved(given[-1][..., None] * x, *given[:-1]),
        {
            "padding_ignored": lambda x, *given: convolved(x, *given[:-1]),
            "masked_after_instead": lambda x, *given: given[-1][..., None] * convolved(x, *given[:-1]),
            "masked_after_too": lambda x, *given: given[-1][..., None] * convolved(given[-1][..., None] * x, *given[:-1]),
            "padding_mask_inverted": lambda x, *given: convolved(~given[-1][..., None] * x, *given[:-1]),
        },
    ),
    "sinusoidal.encode": (
        TIMES,
        timestep,
        {"first_column_zero": lambda t: np.roll(timestep(t), 1, axis=-1), "factor 1": lambda t: timestep(t / 1000)},
    ),
    "axes.grid": ({}, grid, {"columns_before_rows": lambda height, width: grid(height, width)[:, ::-1]}),
    "swin.bias": (
        {"depth": 2, "height": 3, "width": 4},
        table_of_a_volume(5 * 7),
        {
            "planes_apart_as_in_nnformer": table_of_a_volume(3 * 3 - 1),
            "strides_as_in_nnformer": table_of_a_volume(3 * 3 - 1, 5),
        },
    ),
    "swin.shift_mask": (
        {"depth": 4, "height": 6, "width": 12, "shift": (1, 2, 3)},
        rolled(1, 2, 3),
        {
            "shift_of_rows_for_all": rolled(2, 2, 2),
            "shift_of_columns_for_all": rolled(3, 3, 3),
            "shifts_exchanged": rolled(1, 3, 2),
            "shifts_in_reverse": rolled(3, 2, 1),
            "planes_and_rows_alone": rolled(1, 2, 0),
        },
    ),
    "position_ids.cached": (
        {},
        lambda n_query, n_key: np.arange(n_key - n_query, n_key),
        {
            "constant_output": lambda n_query, n_key: np.full(n_query, n_key - n_query),
            "result_in_float16": lambda n_query, n_key: np.arange(n_key - n_query, n_key).astype(np.float16),
        },
    ),
}


@every(CASES)
def test_right_passes_and_wrong_is_named(name):
    settings, right, wrong = CASES[name]
    name = name.split(",")[0]
    assert check(right, name, **settings).ok, check(right, name, **settings)
    for mistake, fn in wrong.items():
        listed = mistake in further(op(name)) and is_mistake(name, settings, fn, mistake)
        assert listed or mistake in [finding.name for finding in check(fn, name, **settings).diagnosis], mistake


def test_a_gradient_that_is_not_scaled_is_named():
    torch = pytest.importorskip("torch", reason="gradients are those of torch")

    class Attend(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v, mask):
            ctx.save_for_backward(q, k, v, mask)
            return (q @ k.transpose(-1, -2) / 4).masked_fill(~mask, -1e30).softmax(-1) @ v

        @staticmethod
        def backward(ctx, g):
            q, k, v, mask = ctx.saved_tensors
            p = (q @ k.transpose(-1, -2) / 4).masked_fill(~mask, -1e30).softmax(-1)
            by_weight = g @ v.transpose(-1, -2)
            by_score = p * (by_weight - (by_weight * p).sum(-1, keepdim=True))
            return by_score @ k, by_score.transpose(-1, -2) @ q / 4, p.transpose(-1, -2) @ g, None

    attend = lambda q, k, v, mask: Attend.apply(q, k, v, mask)  # noqa: E731
    report = check(attend, "attention.attend", scale=0.25, to=torch.from_numpy)
    assert [finding.name for finding in report.diagnosis] == ["gradient_not_scaled"], report


def rows(n):
    return np.arange(n) - np.arange(n)[:, None]


def strictly_after_the_first(lengths):
    of, start = np.repeat(np.arange(len(lengths)), lengths), np.repeat(np.cumsum(lengths) - lengths, lengths)
    return (of[:, None] == of) & (rows(len(of)) <= 0) & (np.arange(len(of)) > start)


def read_in_chunks(size):
    """Keys of the prefix up to the end of the chunk in which the query is read."""

    def mask(prefixes, n):
        i = np.arange(n)
        end = np.minimum((i // size + 1) * size, prefixes[:, None])
        return i < np.maximum(i + 1, np.where(i < prefixes[:, None], end, 0))[..., None]

    return mask


def one_window_for_the_cache(query_positions, key_positions):
    """Keys that were there before this step are seen by all its queries, or by none, as the first query sees them."""
    q, k = query_positions[..., :, None], key_positions[..., None, :]
    first = q[..., :1, :]
    return np.where(k < first, first - k < 8, (k <= q) & (q - k < 8))


def with_rows(condition, rows):
    """A causal mask of positions, and a condition on rows in the place of positions."""

    def mask(query_positions, key_positions):
        given = {"queries": query_positions, "keys": key_positions}
        q, k = (np.arange(p.shape[-1]) if rows in (name, "both") else p for name, p in given.items())
        causal = key_positions[..., None, :] <= query_positions[..., :, None]
        return causal & condition(q[..., :, None], k[..., None, :])

    return mask


def placed(condition):
    """A mask of offsets, and of positions of queries and keys."""

    def mask(query_positions, key_positions):
        q, k = query_positions[..., :, None], key_positions[..., None, :]
        return condition(k - q, q, k)

    return mask


def in_a_window(blocks):
    image = (blocks[:, None] == blocks) & (blocks >= 0)
    return ((rows(len(blocks)) <= 0) | image) & (rows(len(blocks)) > -3)


CAUSAL, CHUNK, WINDOW, PREFIX = (f"attention.{name}_mask" for name in ("causal", "chunk", "window", "prefix"))
PLACES = "stand in the place of their positions in"
RULES = [  # op, settings, a mask of two conditions, and the words of the second one
    (CAUSAL, {}, placed(lambda o, q, k: (o <= 0) | (k < 3)), "or the position of the key <= 2"),
    (
        WINDOW,
        {"width": 4, "causal": True},
        placed(lambda o, q, k: (o <= 0) & (o > -4) & (k < 5)),
        "and the position of the key <= 4",
    ),
    (CHUNK, {"width": 4}, placed(lambda o, q, k: (o <= 0) | (q // 4 == k // 4)), "key // width - query // width"),
    ("attention.block_mask", {}, in_a_window, "and the row of the key less that of the query >= -2"),
    (PREFIX, {}, read_in_chunks(2), "and the row of the key // 2 less that of the query // 2 <= 0"),
    (WINDOW, {"width": 8, "causal": True}, one_window_for_the_cache, "or -7 <= key - first query <= -1"),
    (
        CHUNK,
        {"width": 3},
        with_rows(lambda q, k: q // 3 == k // 3, "queries"),
        f"the row numbers of queries {PLACES} key // 3 == query // 3, and not",
    ),
    (
        WINDOW,
        {"width": 2, "causal": True},
        with_rows(lambda q, k: abs(q - k) < 2, "both"),
        f"the row numbers of queries and keys {PLACES} absolute(key - query) < 2, and not",
    ),
    ("position_ids.document_mask", {}, strictly_after_the_first, "the row of the key in its part of lengths >= 1"),
    (WINDOW, {"width": 5, "causal": True}, placed(lambda o, q, k: o > -4), "the keys of the offsets j - i from -3 are seen"),
    (
        WINDOW,
        {"width": 5, "causal": True},
        placed(lambda o, q, k: (o < 0) & (o > -4)),
        "the offsets j - i from -3 to -1 are seen",
    ),
]


@every(RULES, name=lambda case: case[3])
def test_a_mask_of_two_conditions_is_said_in_words(name, settings, mask, words):
    report = check(mask, name, **settings)
    assert len(report.diagnosis) == 1, report
    assert words in str(report), report


def test_masks_of_positions_and_of_long_chunks_are_right():
    assert check(with_rows(lambda q, k: q // 4 == k // 4, "none"), CHUNK, width=4).ok
    assert check(read_in_chunks(8), PREFIX).ok


@every(RULES[:9], name=lambda case: case[0])
def test_a_few_wrong_pairs_have_no_rule(name, settings, *_):
    question = Question(op(name), op(name).make(**settings), ("f32",))
    for seed in range(6):
        flipped = np.random.default_rng(seed).permutation(question.right.size) <= seed
        assert not masks.ranked(question, (question.right != flipped.reshape(question.right.shape)).astype(float)), seed


def shares(x, axis=-1):
    return x / x.sum(axis=axis, keepdims=True)


def powers(s, axis=-1):
    return np.exp(s - s.max(axis=axis, keepdims=True))


def in_16_bits(s):
    few = partial(round_to, dtype="bfloat16")
    return few(shares(few(np.exp(few(few(s) - few(s).max(axis=-1, keepdims=True))))))


def attended(weights=lambda s: shares(powers(s)), change=lambda *x: x):
    """Causal attention without a bias, with other weights of scores, or an argument that is changed; masked scores are -inf."""

    def attend(q, k, v, mask):
        q, k, mask = change(q, k, mask)
        with np.errstate(all="ignore"):
            scores = np.where(mask, q @ k.swapaxes(2, 3) / 8, -np.inf)
            return (weights(scores).astype(np.float32) @ v).astype(np.float32)

    return attend


def scaled(name, factor):
    def wrong(*given, **named):
        return op(name).spec(*given, **named | {"scale": factor / 8}).astype(np.float32)

    wrong.__signature__ = inspect.signature(op(name).spec)
    return name, {"scale": 1 / 8, "head_dim": 64}, wrong


def biased(of_distance):
    slopes = 2.0 ** -np.arange(1, 9)[:, None, None]
    return lambda q, k: (slopes * of_distance((k[:, None, :] - q[:, :, None]).astype(float))[:, None]).astype(np.float32)


def turned_backwards(x, positions):
    return op("rope.rotate").spec(x, positions.max() - positions, dim=64, layout="half").astype(np.float32)


def by_axes(axis):
    return lambda x, coordinates: op("axes.rotate").spec(x, coordinates, axis=axis, layout="half", dim=2 * len(axis))


def by_loops(parts, place=None, interval=1, second=2):
    """The same patch by patch; from image number `second` on `place` gives (time, row, column), and what is the next start."""
    found, at, images = [], 0, 0
    for t, h, w in parts.tolist():
        images, h, w = images + (h > 0), h // 2, w // 2
        places = [(f, r, c) for f in range(t) for r in range(max(h, 1)) for c in range(max(w, 1))]
        ids = [(at + f * interval, at + r, at + c) if h else (at + f,) * 3 for f, r, c in places]
        after = at + (max((t - 1) * interval + 1, h, w) if h else t)
        if h and images >= second and place:
            ids, after = place(at, ids, after)
        found, at = found + ids, after
    return np.array(found)


def each(change, **more):
    """In every image: what becomes of (time, row, column) in one that begins at `at`."""
    return partial(by_loops, second=1, place=lambda at, ids, after: ([change(at, *x) for x in ids], after), **more)


def flat(at, ids, after):
    return [(at + i,) * 3 for i in range(len(ids))], at + len(ids)


def six_patches_then_text(at, ids, after):
    grid = [(at, at + i // 3, at + i % 3) for i in range(6)]  # the first image of the probe has 2 rows and 3 columns
    return grid + [(at + 3 + i,) * 3 for i in range(len(ids) - 6)], at + 3 + len(ids) - 6


def from_one_later(lengths):
    return np.concatenate([np.arange(n) + (i > 0) for i, n in enumerate(lengths)])


LATER = "_from_the_second_on"
IMAGES = "position_ids.multimodal", {"merge": 2, "convention": "largest"}
SPACED = IMAGES[0], IMAGES[1] | {"interval": 3}
ATTEND, BIAS = ("attention.attend", {"scale": 1 / 8}), ("alibi.bias", {"heads": 8, "form": "signed"})
SECTIONS, OF_32 = ("axes.rotate", {"dim": 16, "axis": (0, 0, 1, 1, 1, 2, 2, 2), "layout": "half"}), [0] * 4 + [1] * 6 + [2] * 6
ALONE = {  # the only name of a function, what is asked, and the function
    "softmax_along_heads": (*ATTEND, attended(lambda s: np.nan_to_num(shares(powers(s, 1), 1)))),
    "softmax_along_queries_and_keys": (*ATTEND, attended(lambda s: shares(powers(s, (2, 3)), (2, 3)))),
    "sigmoid_for_softmax": (*ATTEND, attended(lambda s: 1 / (1 + np.exp(-s)))),
    "softmax_not_normalized": (*ATTEND, attended(np.exp)),
    "softmax_with_one_in_the_sum": (*ATTEND, attended(lambda s: np.exp(s) / (1 + np.exp(s).sum(axis=-1, keepdims=True)))),
    "relu_for_softmax": (*ATTEND, attended(lambda s: np.maximum(s, 0))),
    "softmax_of_the_3_largest": (*ATTEND, attended(lambda s: shares(np.where(s >= np.sort(s)[..., -3, None], powers(s), 0)))),
    "weights_squared": (*ATTEND, attended(lambda s: shares(powers(s)) ** 2)),
    "softmax_scores_and_exponentials_and_weights_in_bfloat16": (*ATTEND, attended(in_16_bits)),
    "q_of_length_1": (*ATTEND, attended(change=lambda q, *x: (q / np.linalg.norm(q, axis=-1, keepdims=True), *x))),
    "mask_by_columns": (*ATTEND, attended(change=lambda q, k, mask: (q, k, mask.swapaxes(2, 3).reshape(mask.shape)))),
    "scale_of_half": scaled("attention.attend", 2**0.5),
    "scale_inverted": scaled("retention.attend", 64),
    "scale_times_1.13863": scaled("attention.attend", 0.1 * np.log(4) + 1),
    "scale 0.25": scaled("retention.attend", 2),  # YaRN's magnitude of the factor 64 has the square 2.0047
    "distances_logarithms_of_1_more_without_sign": (*BIAS, biased(lambda o: -np.log1p(np.abs(o)))),
    "distances_at_most_128_of_past_keys": (*BIAS, biased(lambda o: np.clip(o, -128, 0))),
    "other_far_positions": ("rope", {"dim": 64, "layout": "half"}, turned_backwards),
    "sums_of_the_mask": ("position_ids.padded", {}, lambda mask: np.cumsum(mask, axis=-1)),
    "turns_for_sections": (*SECTIONS, by_axes((0, 1, 2, 0, 1, 2, 0, 1))),
    "turns_to_the_end": ("axes.rotate", SECTIONS[1] | {"axis": (0, 1, 0, 1, 0, 0, 0, 0)}, by_axes((0, 1) * 4)),
    "sections_120": (*SECTIONS, by_axes((1, 1, 1, 2, 2, 2, 0, 0))),
    "other_axes": ("axes.rotate", {"dim": 32, "axis": OF_32, "layout": "half"}, by_axes([0] * 6 + [1] * 5 + [2] * 5)),
    "rows_and_columns_exchanged": (
        "axes.rotate",
        {"dim": 32, "axis": OF_32, "layout": "half"},
        by_axes([0] * 4 + [2] * 6 + [1] * 6),
    ),
    "places_for_patches" + LATER: (*IMAGES, partial(by_loops, place=flat)),
    "grid_of_the_first": (*IMAGES, partial(by_loops, place=six_patches_then_text)),
    "start_times_interval": (*SPACED, each(lambda at, t, r, c: (t + 2 * at, r, c), interval=3)),
    "packed_from_one" + LATER: ("position_ids.packed", {}, from_one_later),
    "part_of_result_zero": (*IMAGES, each(lambda at, t, r, c: (t, 0, c))),
    "part_of_result_times_2": (*IMAGES, each(lambda at, t, r, c: (2 * t, r, c))),
    "part_of_result_shifted_by_run": (*IMAGES, each(lambda at, t, r, c: (t + 3 * at, r, c))),
}


@every(ALONE)
def test_what_no_list_of_vectors_holds_is_named(name):
    asked, settings, wrong = ALONE[name]
    report = check(wrong, asked, **settings)
    assert [finding.name for finding in report.diagnosis] == [name], report
    assert name != "other_axes" or "0 x 6, 1 x 5, 2 x 5" in str(report)


@every(["multimodal", "packed"])
def test_every_mistake_of_parts_may_begin_with_the_second(name):
    asked = op(f"position_ids.{name}")
    assert {mistake + LATER for mistake in asked.mistakes} <= further(asked).keys()


def test_scattered_wrong_numbers_have_no_law():
    scattered = np.where(np.arange(90)[:, None] % 31 == 5, [7, 1, 4], 0)
    report = check(lambda parts: by_loops(parts) + scattered, IMAGES[0], **IMAGES[1])
    assert not report.diagnosis, report


def test_one_number_that_is_not_finite_has_no_name():
    """A row that has other numbers too is no row without a key."""

    def attend(q, k, v, mask):
        y = op("attention.attend").spec(q.astype(float), 2 * k, v, mask=mask, scale=1 / 8).astype(np.float32)
        y[0, 0, 0, 0] = np.nan
        return y

    report = check(attend, "attention.attend", scale=1 / 8)
    assert not report.ok
    assert "Rows of NaN" not in str(report)


@every([0.0, np.nan])
def test_a_query_without_any_key_is_said_and_no_mistake(number):
    def attend(q, k, v, mask):
        y = op("attention.attend").spec(q.astype(float), k, v, mask=mask, scale=1 / 8)
        return np.where(mask.any(axis=-1, keepdims=True), y, number).astype(np.float32)

    report = check(attend, "attention.attend", scale=1 / 8)
    assert report.ok
    assert ("a query that sees no key: your output has" in str(report)) == (number != 0)


def test_a_mask_that_is_added_is_read_as_booleans():
    added = placed(lambda o, q, k: np.where(o <= 1, 0, -1e9).astype(np.float32))
    assert [finding.name for finding in check(added, CAUSAL).diagnosis] == ["sees_one_ahead"]
