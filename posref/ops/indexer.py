"""Indexer: what an implementation can be asked for, and how it goes wrong."""

# Over budget: six ops, those of two released models: scores, selection, and compressed keys with their places

import numpy as np

from posref import _require, attention
from posref.ops import Mistake, inside, instead, missing, result, using, with_words
from posref.ops.common import per_head
from posref.ops.probe import keys_at, padded_mask, painted
from posref.relative import indexer
from posref.rotary import rope


def scores(q, k, weights, query_positions, key_positions, *, rotary_dim=4, base=10000.0, layout, scale, rotated="first"):
    # rotated: which features of a head turn, the first as in DeepSeek V3.2 or the last as in V4
    q, k = (
        rope.rotate(
            _rotary_first(x, rotary_dim, rotated),
            *rope.tables(per_head(positions, x), rope.frequencies(rotary_dim, base)),
            layout=layout,
            rotary_dim=rotary_dim,
        )
        for x, positions in ((q, query_positions), (k, key_positions))
    )
    return indexer.scores(q, k, weights, scale=scale)


def select(scores, mask, *, top=3):
    return indexer.select(scores, mask, top=top)


def compress(x, gates, bias):
    return indexer.compress(x, gates, bias)


def compress_overlapping(x, gates, bias):
    return indexer.compress_overlapping(x, gates, bias)


def block_positions(blocks, *, rate=4):
    return indexer.block_positions(blocks, rate=rate)


def block_mask(query_positions, blocks, *, rate=4):
    return indexer.block_mask(query_positions, blocks, rate=rate)


def unfinished_mask(query_positions, key_positions, *, rate=4):
    return indexer.unfinished_mask(query_positions, key_positions, rate=rate)


def _rotary_first(x, rotary_dim, rotated):
    """Queries and keys with the same order of features have the same products."""
    _require.choice("ops.indexer", "rotated", rotated, ("first", "last"))
    return x if rotated == "first" else np.concatenate([x[..., -rotary_dim:], x[..., :-rotary_dim]], axis=-1)


def _without_ties(s):
    """Scores of which no two in a row are equal: which of equal scores is selected first is a convention."""
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
    """Zeros with the gate 0 stand in front of block 0, and take their share of its softmax."""
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


MISTAKES = with_words(
    __name__,
    relu_left_out=_linear,
    relu_after_the_sum=lambda f, a: np.maximum(_linear(f, a), 0),
    weights_left_out=using(weights=lambda a: 0 * a.weights + 1),
    weights_in_front=lambda f, a: f(**a | {"q": np.swapaxes(a.weights, -1, -2)[..., None] * a.q, "weights": 0 * a.weights + 1}),
    other_layout="other_layout",
    other_end_rotated=using(rotated=lambda a: "last" if a.rotated == "first" else "first"),
    keys_not_rotated=using(key_positions=lambda a: 0 * a.key_positions),
    keys_of_the_first_batch_row=using(
        k=lambda a: np.broadcast_to(a.k[:1], a.k.shape) if a.k.ndim > 2 and len(a.k) > 1 else missing()
    ),
    no_mask=using(mask=lambda a: a.mask | True),
    mask_after_the_selection=lambda f, a: f(**a | {"mask": a.mask | True}) & a.mask,
    smallest_selected=using(scores=lambda a: -a.scores),
    one_key_more=using(top=lambda a: a.top + 1),
    bias_left_out=using(bias=lambda a: 0 * a.bias),
    plain_mean=using(bias=lambda a: 0 * a.bias, gates=lambda a: 0 * a.gates),
    halves_exchanged=using(**{name: lambda a, name=name: _exchanged(a[name]) for name in ("x", "gates", "bias")}),
    no_overlap=instead(_own_block_alone),
    block_before_the_first=_block_0_has_one_before,
    number_of_the_block=using(rate=1),
    last_token_of_the_block=result(lambda y, a: y + a.rate - 1),
    unfinished_block_seen=using(query_positions=lambda a: a.query_positions + a.rate - 1),
    complete_block_too=lambda f, a: (
        f(**a | {"query_positions": a.query_positions - 1}) | (a.key_positions[..., None, :] == _column(a))
    ),
    whole_window=lambda f, a: (
        (a.key_positions[..., None, :] <= _column(a)) & (a.key_positions[..., None, :] > _column(a) - a.rate)
    ),
    one_token_late="position_minus_one",
)


def _softmax_along(axis):
    def change(right):
        return lambda logits, mask=None: (
            np.moveaxis(right(np.moveaxis(logits, axis, -1)), -1, axis) if mask is None else missing()
        )

    return inside(attention, "softmax", change)


FURTHER = (
    with_words(
        __name__,
        one_key_less=using(top=lambda a: a.top - 1 if a.top > 1 else missing()),
    )
    | {
        f"softmax_over_{words}": Mistake(
            _softmax_along(axis),
            f"the softmax runs over the {words}, not over the tokens of a block",
            "The weights of a block do not sum to 1.",
            "Take the softmax along the axis of the tokens of a block.",
            only="compress",
        )
        for words, axis in (("features", -2), ("blocks", -3))
    }
    | with_words(
        __name__,
        weights_softmaxed=using(weights=lambda a: attention.softmax(a.weights)),
    )
)

# all heads read one key per token
REPLACED = {"keys_of_the_first_head"}

SCORES = "a selection of the keys of another attention; its scores are relus of rotated products"


def _head(t):
    """The scores of one indexer head with the weight 1, where the attention's own scores would stand."""
    q, k, v = t.projected(t.x)
    cos, sin = rope.tables(t.positions, rope.frequencies(t.dim))
    q, k = (rope.rotate(y, cos, sin, layout="half") for y in (q, k))
    return t.scored(indexer.scores(q[None], k, np.ones((len(t.x), 1), dtype=int), scale=t.scale), v)
