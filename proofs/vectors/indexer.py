"""Indexer: scores, the keys that they select, and blocks that are compressed to one key."""

# Over budget: six ops, those of two released models: scores, selection, and compressed keys with their places

import mpmath
import numpy as np

from proofs.relative.indexer import chosen, definition, mean
from proofs.rotary.rope import frequency
from proofs.vectors import *
from proofs.vectors.value import turned

SOURCES = (
    "DeepSeek-AI, DeepSeek-V3.2, arXiv 2512.02556, Eqs. (1) and (2)",
    "transformers 5.23.0, models/deepseek_v32 and models/deepseek_v4",
)

CONVENTIONS = {
    "q, k, weights": "q (batch, heads, n_query, d), k (batch, n_key, d), weights (batch, n_query, heads)",
    "seen": "the mask as integers: 1 may be selected, 0 may not",
    "x, gates, bias": "x and gates (batch, blocks, rate, d), bias (rate, d)",
    "op scores": "scale sum_a weights_a max(q_a . k, 0), with `rotary_dim` features of q and k rotated: the first, or the last",
    "op select": "1 for the `top` largest scores of each query among the keys that are seen; no two scores are equal",
    "op compress": "the mean of a block, weighted by the softmax of gates + bias over its tokens",
    "op compress_overlapping": "the same over the first halves of the block before and the second halves of its own",
    "op block_positions": "rate * block: the first token of a block",
    "op unfinished_mask": "1 for keys up to the query whose block is not complete at the query",
    "op block_mask": "1 where the last token of a block is not after the query",
}
REJECTED = (
    ("indexer/scores/half-first/square", "no-layout", {"layout": None}, "missing", "The layout is not that of the attention."),
    ("indexer/scores/half-first/square", "heads", {"weights": cut}, "shape", "A weight for each head."),
    ("indexer/select/top2/causal", "mask", {"seen": cut}, "shape", "A mask has a column for every key."),
    ("indexer/compress/r3/painted", "bias", {"bias": fewer}, "shape", "A row of the bias for each token of a block."),
)
REASONS = """
pair block_mask * one_token_late position_plus_one | one less and one more
mutant select: *other > here, other > here* | which of equal scores is selected no kernel promises: no case has such
"""
ANY = "relu_left_out relu_after_the_sum weights_left_out weights_in_front scale_ignored scale_squared"
ROTATED = "other_layout other_end_rotated keys_not_rotated"


def vectors():
    two, far = {"models": ("f64", "f32")}, {"models": ("f64",)}
    rows = f"{WRAPPED} positions_shared_across_batch wrong_axis wrong_base keys_of_the_first_batch_row heads_exchanged"
    for way in (("half", "first"), ("interleaved", "last")):
        yield _scores("square", np.array([0, 5, 9]), *way, f"{ANY} {ROTATED} positions_ignored sign positions_zero")
        yield _scores("places", PLACES[:2], *way, rows, base=500000, **two)
        cached = "queries_left_aligned row_for_position positions_ignored"
        yield _scores("places-cached", PLACES[:2], *way, cached, start=2, base=500000, **two)
        yield _scores("beyond-f32", PLACES[2], *way, "f32_positions", **far)
    yield _scores("fractional", HALVES, *way, "positions_ignored", **two)
    yield _scores("negative", BELOW, *way, "positions_ignored", **two)
    wrong = "no_mask mask_inverted smallest_selected one_key_more mask_after_the_selection"
    yield _select("causal", np.tri(3, 5, 2, dtype=int), 2, wrong.replace(" mask_inverted", ""))
    yield _select("holes", np.array([[1, 0, 1, 1, 1], [0, 1, 0, 1, 0], [1, 1, 1, 0, 1]]), 2, wrong)
    wrong = "bias_left_out plain_mean"
    for probe, size, rest in (("painted", 1, {}), ("large", 1024, {"models": ("f64", "f32"), "one_text": True})):
        yield _compress(probe, 3, size, wrong if size == 1 else "plain_mean", **rest)
        overlap = "halves_exchanged no_overlap"
        yield _overlapping(probe, 2, size, f"{wrong} {overlap} block_before_the_first" if size == 1 else overlap, **rest)
    blocks = np.array([[0, 1, 2, 5], [3, 0, 70, 7]])
    kills = "number_of_the_block last_token_of_the_block"
    yield case("indexer/positions/r4/blocks", "block_positions", {"rate": 4}, {"blocks": blocks}, 4 * blocks, kills=kills)
    ways = "unfinished_block_seen one_token_late number_of_the_block position_plus_one"
    yield _mask("near", np.array([[0, 3, 4, 6], [7, 8, 2, 11]]), np.array([[0, 1], [1, 2]]), ways)
    yield _mask("negative", np.array([2, -1, -1.5, 0, -5]), np.array([-2, -1, 0]), "unfinished_block_seen")
    row = PLACES[:2] + 3  # the last tokens of blocks are among them
    yield _mask("places", row, (row + np.array([-2, -1, 0, 1])) // 4, WRAPPED)
    yield _mask("beyond-f32", PLACES[2], PLACES[2] // 2, "f32_positions", rate=2)
    near = np.array([[0, 3, 4, 6], [7, 8, 2, 11]]), np.array([[0, 1, 4, 6], [7, 4, 8, 9]])
    yield _unfinished("near", *near, "complete_block_too whole_window")
    yield _unfinished("negative", np.array([2, -1, 0, -5]), np.array([-2, -1, 0, -6, -8]), "")
    wraps = np.array([[65537, 32769], [5, 131075]]), np.array([[1, 65537, 32768], [65541, 131073, 4]])
    yield _unfinished("places", *wraps, WRAPPED)
    yield _unfinished("fractional", np.array([6.25, 8.5]), np.array([6.5, 4, 8.25]), "")
    yield _unfinished("beyond-f32", PLACES[2], PLACES[2], "", rate=2)


def _scores(probe, at, layout, rotated, kills, *, start=0, heads=2, dim=4, base=10000, scale=0.375, **rest):
    batch = len(at) if at.ndim > 1 else 1
    n, width = at.shape[-1], dim + 2
    q, k = painted((batch, heads, n, width), 1) / 2, painted((batch, n, width), 2) / 2
    weights = painted((batch, n, heads), 4)
    place = at if at.ndim > 1 else at[None]
    turned_q, turned_k = (_rotated(x, p, dim, base, layout, rotated) for x, p in ((q, place[:, None]), (k, place)))
    values = np.zeros((batch, n, n), dtype=object)
    for b, i, j in np.ndindex(*values.shape):
        values[b, i, j] = definition(turned_q[0][b, :, i], turned_k[0][b, j], [*numbers(weights[b, i])], mpmath.mpf(scale))
    products, sensitivity = dot(turned_q, rearranged(lambda x: x[:, None], turned_k), scale)
    products = np.maximum(products, 0), sensitivity
    of_head = lambda a: rearranged(lambda x: x[:, a], products)
    cond = total(*(product(of_head(a), exact(weights[:, :, a, None])) for a in range(heads)))[1]
    whole = lambda y: y if at.ndim > 1 else y[0]  # positions of one text: no batch
    params = {"rotary_dim": dim, "base": float(base), "layout": layout, "scale": scale, "rotated": rotated}
    id = f"indexer/scores/{layout}-{rotated}/{probe}"
    tensors = {"q": whole(q[:, :, start:]), "k": whole(k), "weights": whole(weights[:, start:])}
    tensors |= {"q_positions": at[..., start:], "k_positions": at}
    return case(id, "scores", params, tensors, *rearranged(lambda x: whole(x[:, start:]), (values, cond)), kills, **rest)


def _rotated(x, at, dim, base, layout, rotated):
    """Values and sensitivities of vectors of which the first or the last `dim` features are rotated."""
    first, last = (x[..., :dim], x[..., dim:]) if rotated == "first" else (x[..., -dim:], x[..., :-dim])
    parts = turned(exact(first), at, [frequency(t, dim, mpmath.mpf(base)) for t in range(dim // 2)], layout), exact(last)
    (values, cond), (passed, none) = parts  # the order of the features is nothing to their products
    return np.concatenate([values, passed], axis=-1), {c: np.concatenate([cond[c], none[c]], axis=-1) for c in cond}


def _select(probe, seen, top, kills):
    n = np.arange(2 * seen.size).reshape(2, *seen.shape)
    scores = (37 * n % 64 - 31) / 8
    expected = [[chosen(row, here, top) for row, here in zip(each, seen, strict=True)] for each in scores]
    id = f"indexer/select/top{top}/{probe}"
    return case(id, "select", {"top": top}, {"scores": scores, "seen": seen}, np.array(expected, dtype=int), kills=kills)


def _compress(probe, rate, size, kills, **rest):
    x, gates, bias = painted((2, 3, rate, 2), 1), size * painted((2, 3, rate, 2), 2), painted((rate, 2), 6)
    logits = total(exact(gates), exact(bias + 0 * gates))
    tensors = {"x": x, "gates": gates, "bias": bias}
    return _means("compress", f"r{rate}/{probe}", tensors, exact(x), logits, np.ones(x.shape, dtype=bool), kills, **rest)


def _overlapping(probe, rate, size, kills, **rest):
    x, gates, bias = painted((2, 3, rate, 4), 1), size * painted((2, 3, rate, 4), 2), painted((rate, 4), 6)
    logits = rearranged(_joined, total(exact(gates), exact(bias + 0 * gates)))
    seen = _joined(np.ones(x.shape)) != 0
    tensors = {"x": x, "gates": gates, "bias": bias}
    return _means("compress_overlapping", f"r{rate}/{probe}", tensors, exact(_joined(x)), logits, seen, kills, **rest)


def _joined(x):
    """First halves of the block before, none for block 0, above the second halves."""
    first, second = x[..., :2], x[..., 2:]
    return np.concatenate([np.concatenate([0 * first[:, :1], first[:, :-1]], axis=1), second], axis=2)


def _means(op, name, tensors, x, logits, seen, kills, one_text=False, **rest):
    rows = lambda y: np.swapaxes(y, -1, -2)[..., None, :]
    columns = lambda y: np.swapaxes(y, -1, -2)[..., :, None]
    cond = average(softmax(rearranged(rows, logits), rows(seen), **rest), rearranged(columns, x))[1]
    expected = np.zeros(np.delete(x[0].shape, -2), dtype=object)
    for *lead, c in np.ndindex(*expected.shape):
        at = (*lead, seen[(*lead, slice(None), c)], c)
        expected[(*lead, c)] = mean(x[0][at], logits[0][at], mpmath)
    answer = expected, {c: each[..., 0, 0] for c, each in cond.items()}
    if one_text:
        tensors |= {name: tensors[name][0] for name in ("x", "gates")}
        answer = rearranged(lambda x: x[0], answer)
    return case(f"indexer/{op.replace('_', '-')}/{name}", op, {}, tensors, *answer, kills, **rest)


def _mask(probe, queries, blocks, kills, rate=4):
    visible = np.all(rate * blocks[..., None, :, None] + np.arange(rate) <= queries[..., :, None, None], axis=-1)
    tensors = {"q_positions": queries, "blocks": blocks}
    return case(f"indexer/mask/r{rate}/{probe}", "block_mask", {"rate": rate}, tensors, visible.astype(int), kills=kills)


def _unfinished(probe, queries, keys, kills, rate=4):
    i, j = queries[..., :, None], keys[..., None, :]
    complete = np.all((j - j % rate)[..., None] + np.arange(rate) <= i[..., None], axis=-1)
    id, tensors = f"indexer/unfinished/r{rate}/{probe}", {"q_positions": queries, "k_positions": keys}
    return case(id, "unfinished_mask", {"rate": rate}, tensors, ((j <= i) & ~complete).astype(int), kills=kills)
