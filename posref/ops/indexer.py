"""Indexer: the functions to check, and the mistakes that implementations make."""

# Over budget: six ops, those of two released models: scores, selection, and compressed keys with their places

import numpy as np

from posref import _require, attention
from posref.ops import Mistake, changing, inside, instead, missing, result, using
from posref.ops.common import of_the_first, per_head
from posref.ops.probe import keys_at, padded_mask, painted
from posref.relative import indexer
from posref.rotary import rope


def scores(q, k, weights, query_positions, key_positions, *, rotary_dim=4, base=10000.0, layout, scale, rotated="first"):
    # rotated: which features of a head are rotated, the first as in DeepSeek V3.2 or the last as in V4
    def turned(x, positions):
        tables = rope.tables(per_head(positions, x), rope.frequencies(rotary_dim, base))
        return rope.rotate(_rotary_first(x, rotary_dim, rotated), *tables, layout=layout, rotary_dim=rotary_dim)

    return indexer.scores(turned(q, query_positions), turned(k, key_positions), weights, scale=scale)


def select(scores, mask, *, top=3):
    return indexer.select(scores, mask, top=top)


compress = indexer.compress
compress_overlapping = indexer.compress_overlapping


def block_positions(blocks, *, rate=4):
    return indexer.block_positions(blocks, rate=rate)


def block_mask(query_positions, blocks, *, rate=4):
    return indexer.block_mask(query_positions, blocks, rate=rate)


def unfinished_mask(query_positions, key_positions, *, rate=4):
    return indexer.unfinished_mask(query_positions, key_positions, rate=rate)


def _rotary_first(x, rotary_dim, rotated):
    """The rotated features first. Queries and keys with the same order of features have the same products."""
    _require.choice("ops.indexer", "rotated", rotated, ("first", "last"))
    return x if rotated == "first" else np.concatenate([x[..., -rotary_dim:], x[..., :-rotary_dim]], axis=-1)


def _without_ties(s):
    """Scores without two equal ones in a row: which of equal scores is selected first is a convention."""
    n = np.arange(s.batch * s.n_query * s.n_key)
    return ((40503 * n % 2**16 - 2**15) / 2**12).reshape(s.batch, s.n_query, s.n_key)


ARRAYS = {
    "k": lambda s: painted((s.batch, s.n_key, s.head_dim), 2),
    "weights": lambda s: painted((s.batch, s.n_query, s.heads), 4),
    "scores": _without_ties,
    "mask": lambda s: padded_mask(s)[:, 0],
    "x": lambda s: painted((s.batch, s.n_key, 3, s.head_dim), 1),
    "gates": lambda s: painted((s.batch, s.n_key, 3, s.head_dim), 2),
    "bias": lambda s: painted((3, s.head_dim), 6),
    "blocks": lambda s: keys_at(s) // s.rate,
}


def _linear(f, a):
    """max(s, 0) - max(-s, 0) is s: the same call with negative queries is subtracted."""
    return f(**a) - f(**a | {"q": -a.q})


def _block_0_has_one_before(f, a):
    """Before block 0 stand zeros with gate 0, which take a share of its softmax."""
    zeros = 0 * a.x[..., :1, :, :]
    longer = {name: np.concatenate([zeros, a[name]], axis=-3) for name in ("x", "gates")}
    longer["gates"] = np.concatenate([zeros - a.bias, a.gates], axis=-3)
    return f(**a | longer)[..., 1:, :]


def _column(a):
    return a.query_positions[..., :, None]


def _exchanged(x):
    return np.concatenate([x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]], axis=-1)


def _own_block_alone(x, gates, bias):
    own = slice(x.shape[-1] // 2, None)
    return indexer.compress(x[..., own], gates[..., own], bias[..., own])


MISTAKES = {
    "relu_left_out": Mistake(
        _linear, seen_in=("ml-explore/mlx-lm#531", "huggingface/transformers#44360"), only="scores"
    ).words("""
        sum_a w_a q_a . k: negative products count as well
        A head that is against a key lowers its score, so other keys are selected.
        Take max(q . k, 0) per head, before the weights."""),
    "relu_after_the_sum": Mistake(lambda f, a: np.maximum(_linear(f, a), 0), only="scores").words("""
        max(sum_a w_a q_a . k, 0): the sum over the heads comes before the relu
        Heads cancel each other, and no score is negative.
        Take max(q . k, 0) per head, before the weights."""),
    "weights_left_out": Mistake(using(weights=lambda a: 0 * a.weights + 1), only="scores").words("""
        all heads weigh 1
        The token of the query has no say in which head selects.
        Multiply each head by its weight, which the query's token gives."""),
    "weights_in_front": Mistake(
        lambda f, a: f(**a | {"q": np.swapaxes(a.weights, -1, -2)[..., None] * a.q, "weights": 0 * a.weights + 1}),
        only="scores",
    ).words("""
        max(w q . k, 0): the weights are multiplied into the queries, in front of the relu
        Right for positive weights alone.
        Weigh after the relu; weights have either sign."""),
    "other_layout": Mistake("other_layout", seen_in=("sgl-project/sglang#13495", "vllm-project/vllm#28968")).words("""
        features are paired (2t, 2t+1) instead of (t, t + dim/2), or the reverse, as the attention beside the indexer does
        Short texts look right; long ones select the wrong keys.
        Use the layout of the indexer: half in DeepSeek V3.2, whose attention is interleaved; interleaved in V4."""),
    "other_end_rotated": Mistake(
        using(rotated=lambda a: "last" if a.rotated == "first" else "first"), kind="layout", only="scores"
    ).words("""
        the last features of a head are rotated instead of the first, or the reverse
        The wrong keys are selected, far ones above all.
        Rotate the first features in DeepSeek V3.2, the last ones in V4."""),
    "keys_not_rotated": Mistake(using(key_positions=lambda a: 0 * a.key_positions), kind="positions", only="scores").words("""
        only the queries are rotated
        Scores depend on the position of the query instead of the distance.
        Rotate the keys before they enter the cache of the indexer."""),
    "keys_of_the_first_batch_row": Mistake(of_the_first("k", -3), kind="heads", only="scores").words("""
        all batch rows read the keys of row 0
        Batch row 0 is right and nothing else.
        Step along the batch axis of the keys as along that of the queries."""),
    "no_mask": Mistake(using(mask=lambda a: a.mask | True), kind="mask", only="select").words("""
        no mask: keys in the future and padding are selected
        Loss is too good in training; the attention gets keys that it masks.
        Mask the scores before the selection."""),
    "mask_after_the_selection": Mistake(
        lambda f, a: f(**a | {"mask": a.mask | True}) & a.mask, kind="mask", only="select"
    ).words("""
        the mask is applied after the selection: masked keys take the places of allowed keys
        Early queries attend to fewer keys than `top`, some to none.
        Mask the scores before the selection."""),
    "smallest_selected": Mistake(using(scores=lambda a: -a.scores), only="select").words("""
        the keys with the smallest scores are selected
        The query misses the keys that matter.
        Sort in descending order, or take the largest."""),
    "one_key_more": Mistake(using(top=lambda a: a.top + 1), kind="top", only="select").words("""
        top + 1 keys are selected: every score that is at least the one after the last
        One key too many; right for short texts.
        Select exactly `top` keys."""),
    "bias_left_out": Mistake(using(bias=lambda a: 0 * a.bias), only="compress compress_overlapping").words("""
        B is not added to the gates: the place within the block has no weight of its own
        Every compressed key is wrong.
        Add row t of the bias to the gates of token t of each block."""),
    "plain_mean": Mistake(
        using(bias=lambda a: 0 * a.bias, gates=lambda a: 0 * a.gates), only="compress compress_overlapping"
    ).words("""
        the plain mean of the block, without gates and bias
        Every token of a block weighs the same.
        Weigh the tokens by the softmax of gates + bias."""),
    "halves_exchanged": Mistake(
        changing(_exchanged, "x", "gates", "bias"),
        only="compress_overlapping",
    ).words("""
        the first half of the features enters the token's own block, the second half the next block
        Every compressed key is wrong.
        The second half belongs to the token's own block."""),
    "no_overlap": Mistake(instead(_own_block_alone), only="compress_overlapping").words("""
        the block before is left out
        Block 0 is right and no other.
        Take the softmax over both blocks."""),
    "block_before_the_first": Mistake(_block_0_has_one_before, only="compress_overlapping").words("""
        in front of block 0 stands a block of zeros whose logits are 0
        The first compressed key is too small, the others are right.
        Give the missing block the logit -inf."""),
    "number_of_the_block": Mistake(using(rate=1), seen_in=("AMD-AGI/Primus#930",), only="block_positions block_mask").words("""
        m is used instead of m r: blocks count as tokens
        Compressed keys stand at the start of the text; blocks of the future are seen.
        Multiply the number of a block by the compression rate."""),
    "last_token_of_the_block": Mistake(result(lambda y, a: y + a.rate - 1), only="block_positions").words("""
        m r + r - 1: a block stands at its last token
        All distances to compressed keys are r - 1 too small.
        Rotate the key of a block at its first token, m r."""),
    "unfinished_block_seen": Mistake(
        using(query_positions=lambda a: a.query_positions + a.rate - 1), kind="mask", only="block_mask"
    ).words("""
        m r <= i: a block is visible from its first token on
        Tokens see the future within their block.
        A block is visible when its last token is not in the future: m r + r - 1 <= i."""),
    "complete_block_too": Mistake(
        lambda f, a: f(**a | {"query_positions": a.query_positions - 1}) | (a.key_positions[..., None, :] == _column(a)),
        kind="mask",
        only="unfinished_mask",
    ).words("""
        r floor(i / r) <= j <= i: the block that the query completes counts as unfinished
        The last token of each block sees its block, selected or not.
        A block whose last token is the query's is complete: floor((i + 1) / r)."""),
    "whole_window": Mistake(
        lambda f, a: (a.key_positions[..., None, :] <= _column(a)) & (a.key_positions[..., None, :] > _column(a) - a.rate),
        kind="mask",
        only="unfinished_mask",
    ).words("""
        i - r < j <= i: the last r tokens are read, not those of the unfinished block
        Early tokens of a block see the end of the block before, selected or not.
        Begin at the first token of the unfinished block."""),
    "one_token_late": Mistake("position_minus_one", kind="mask", only="block_mask").words("""
        m r + r <= i: the token that completes a block does not see it
        Right for all queries but the last token of each block.
        A block is visible when its last token is not in the future: m r + r - 1 <= i."""),
}


def _softmax_along(axis):
    def change(right):
        return lambda logits, mask=None: (
            np.moveaxis(right(np.moveaxis(logits, axis, -1)), -1, axis) if mask is None else missing()
        )

    return inside(attention, "softmax", change)


FURTHER = {
    f"softmax_over_{words}": Mistake(_softmax_along(axis), only="compress").words(f"""
        the softmax runs over the {words}, not over the tokens of a block
        The weights of a block do not sum to 1.
        Take the softmax along the axis of the tokens of a block.""")
    for words, axis in (("features", -2), ("blocks", -3))
}

# all heads read one key per token
REPLACED = {"keys_of_the_first_head"}

SCORES = "it selects keys for another attention; its scores are ReLUs of rotated products"


def _head(t):
    """The scores of one indexer head with weight 1, in place of the attention's own scores."""
    q, k, v = t.projected(t.x)
    cos, sin = rope.tables(t.positions, rope.frequencies(t.dim))
    q, k = (rope.rotate(y, cos, sin, layout="half") for y in (q, k))
    return t.scored(indexer.scores(q[None], k, np.ones((len(t.x), 1), dtype=int), scale=t.scale), v)
