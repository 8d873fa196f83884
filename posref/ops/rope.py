"""RoPE: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref import attention, pairing
from posref.ops import Mistake, inside, instead, missing, result, using
from posref.ops.attention import MISTAKES as ATTENTION
from posref.ops.common import OTHER_LAYOUT, per_head, rounded
from posref.ops.probe import painted
from posref.rotary import layouts, rope


def inv_freq(dim, *, base=10000.0):
    return rope.frequencies(dim, base)


def tables(positions, *, dim, base=10000.0):
    return np.concatenate(rope.tables(positions, rope.frequencies(dim, base)), axis=-1)


def rotate(x, positions, *, dim, base=10000.0, layout):
    return rope.rotate(x, *_tables(x, positions, dim, base), layout=layout, rotary_dim=dim)


def scores(q, k, query_positions, key_positions, *, dim, base=10000.0, layout, scale, heads, key_heads):
    q = rope.rotate(q, *_tables(q, query_positions, dim, base), layout=layout)
    k = rope.rotate(k, *_tables(k, key_positions, dim, base), layout=layout)
    return attention.scores(q, np.repeat(k, heads // key_heads, axis=-3), scale=scale)


def attend(
    q,
    k,
    v,
    query_positions,
    key_positions,
    mask=None,
    sinks=None,
    *,
    dim,
    base=10000.0,
    layout,
    scale,
    window=None,
    softcap=None,
    key_heads=None,
):
    q = rope.rotate(q, *_tables(q, query_positions, dim, base), layout=layout, rotary_dim=dim)
    k = rope.rotate(k, *_tables(k, key_positions, dim, base), layout=layout, rotary_dim=dim)
    if window is not None:
        near = attention.window_mask(per_head(query_positions, q), per_head(key_positions, k), width=window)
        mask = near if mask is None else mask & near
    return attention.attend(q, k, v, scale=scale, mask=mask, softcap=softcap, sinks=None if sinks is None else sinks[:, None])


def gradient(g, positions, *, dim, base=10000.0, layout):
    return rope.gradient(g, *_tables(g, positions, dim, base), layout=layout)


def gradient_tables(g, cos, sin, *, layout):
    # posref has one column a pair; this op exists for kernels with full-width tables
    a, b = pairing.split(g * sin, layout)
    return g * cos + pairing.join(b, -a, layout)


def permute(weight, *, heads, dim, source, target):
    return layouts.permute_projection(weight, heads=heads, rotary_dim=dim, source=source, target=target)


def _tables(x, positions, dim, base):
    return rope.tables(per_head(positions, x), rope.frequencies(dim, base))


def _frequencies(change):
    """Other frequencies: change(right, dim, base, arguments of the op)."""
    return inside(rope, "frequencies", lambda right, a: lambda dim, base: change(right, dim, base, a))


def _exponent(of):
    """base^(-2 of(t, dim) / dim) for the pair t."""
    return _frequencies(lambda right, dim, base, a: base ** (-2 * of(np.arange(dim // 2), dim) / dim))


def _to_the_end(t, dim):
    return t * dim / (dim - 2) if dim > 2 else missing()


def _over_the_head(right, dim, base, a):
    return right(a.x.shape[-1], base)[: dim // 2] if "x" in a and a.x.shape[-1] > dim else missing()


def _cos_sin(change):
    """Other tables: change(cos, sin)."""
    return inside(rope, "tables", lambda right: lambda positions, w: change(*right(positions, w)))


def _angles(of):
    """Other angles: of(positions, frequencies)."""

    def tables(positions, w):
        angle = of(positions, w)
        return np.cos(angle), np.sin(angle)

    return inside(rope, "tables", lambda right: tables)


def _bf16_chain(positions, w):
    return rounded(rounded(positions, 8)[..., None] * rounded(w, 8), 8)


def _has_tail(a):
    return "x" in a and a.x.shape[-1] > a.dim


def _third_layout(f, a):
    y, dim = using(layout="interleaved")(f, a), a.dim
    return y[..., [*range(0, dim, 2), *range(1, dim, 2), *range(dim, y.shape[-1])]]


def _quarter_turn(x, layout):
    first, second = pairing.split(x, layout)
    return pairing.join(-second, first, layout)


def _tiled(f, a):
    cos, sin = (pairing.join(t, t, OTHER_LAYOUT[a.layout]) for t in _tables(a.x, a.positions, a.dim, a.base))
    x = a.x[..., : a.dim]
    return np.concatenate([x * cos + _quarter_turn(x, a.layout) * sin, a.x[..., a.dim :]], axis=-1)


def _tail_rotated(f, a):
    if not _has_tail(a):
        missing()
    return np.concatenate([a.x[..., : -a.dim], f(**a | {"x": a.x[..., -a.dim :]})], axis=-1)


def _across_head(f, a):
    if not _has_tail(a) or a.layout != "half":
        missing()
    cos, sin = _tables(a.x, a.positions, a.dim, a.base)
    still = np.zeros((*cos.shape[:-1], (a.x.shape[-1] - a.dim) // 2), int)
    tables = np.concatenate([cos, still + 1], axis=-1), np.concatenate([sin, still], axis=-1)
    return rope.rotate(a.x, *tables, layout=a.layout)


def _all_rotated(f, a):
    return f(**a | {"dim": a.x.shape[-1]}) if _has_tail(a) else missing()


def _dim_rounded(f, a):
    return f(**a | {"dim": a.dim + 2}) if _has_tail(a) else missing()


def _wrong_axis(f, a):
    p = per_head(a.positions, a.x)
    if p.ndim < 2 or 1 not in p.shape[1:]:
        missing()
    return f(**a | {"positions": np.indices(a.x.shape[:-1])[p.shape.index(1, 1)]})


def _first_batch_row(f, a):
    return np.concatenate([f(**a)[:1], a.x[1:]]) if a.x.ndim > 2 else missing()


def _first_head(f, a):
    if a.x.ndim < 4 or a.x.shape[1] == 1:
        missing()
    return np.concatenate([f(**a)[:, :1], a.x[:, 1:]], axis=1)


def _last_row_left(f, a):
    if a.x.shape[-2] == 1:
        missing()
    return np.concatenate([f(**a)[..., :-1, :], a.x[..., -1:, :]], axis=-2)


def _in_place(f, a):
    """The second member of a pair reads the first after it was overwritten."""
    x, (cos, sin) = a.x[..., : a.dim], _tables(a.x, a.positions, a.dim, a.base)
    first, second = pairing.split(x, a.layout)
    turned = first * cos - second * sin
    return np.concatenate([pairing.join(turned, turned * sin + second * cos, a.layout), a.x[..., a.dim :]], axis=-1)


def _magnitude(f, a):
    return np.concatenate([f(**a)[..., : a.dim] * 1.138629436111989, f(**a)[..., a.dim :]], axis=-1)


def _forward(f, a):
    if "positions" in a:
        return rope.rotate(a.g, *_tables(a.g, a.positions, a.dim, a.base), layout=a.layout)
    return a.g * a.cos + _quarter_turn(a.g, a.layout) * a.sin


def _turned_first(g, cos, sin, layout):
    return g * cos - _quarter_turn(g, layout) * sin


def _modulo_heads(f, a):
    return f(**a | {"k": a.k[:, np.arange(a.heads) % a.key_heads], "key_heads": a.heads})


ARRAYS = {
    "x": lambda s: painted((s.batch, s.heads, s.n_key, s.head_dim), 1),
    "g": lambda s: painted((s.batch, s.heads, s.n_key, s.head_dim), 1),
    "cos": lambda s: painted((s.n_key, s.head_dim), 2),
    "sin": lambda s: painted((s.n_key, s.head_dim), 4),
    "weight": lambda s: painted((s.heads * s.head_dim, 5), 2),
    "sinks": lambda s: painted((s.heads,), 8),
}
ASKED = ("sinks",)
OF_ATTENTION = (
    "heads_tiled values_of_the_first_head cap_left_out cap_without_division cap_without_factor cap_clipped sink_left_out "
    "sink_of_zero sink_of_the_first_head window_ignored window_one_more window_one_less mask_after_softmax no_mask"
)

MISTAKES = {
    "other_layout": Mistake(
        "other_layout",
        "pairs of the other layout",
        "Features are paired (t, t + dim/2) instead of (2t, 2t+1), or the reverse.",
        "A valid rotation of the wrong features: text begins well and turns into garbage.",
        (
            "huggingface/transformers#25199",
            "NeuraLegion/shainet#111",
        ),
    ),
    "third_layout": Mistake(
        _third_layout,
        "reads interleaved, writes half",
        "Pairs are read as (2t, 2t+1) and written to (t, t + dim/2).",
        "Scores are right if q and k agree; rotated vectors are permuted.",
        ("modular/modular#5647",),
        only="rotate",
    ),
    "tiled_tables": Mistake(
        _tiled,
        "tables laid out for the other layout",
        "Full-width tables are concatenated where they should be repeated, or the reverse: pairs turn by two angles.",
        "Not a rotation: norms change.",
        (
            "facebookresearch/vjepa2#15",
            "facebookresearch/xformers#779",
        ),
        only="rotate",
    ),
    "sign": Mistake(
        "sign",
        "angle -m theta",
        "The sine has the wrong sign.",
        "Clockwise; scores see the negative offset.",
    ),
    "cos_sin_swapped": Mistake(
        _cos_sin(lambda cos, sin: (sin, cos)),
        "cos and sin exchanged",
        "The sine table is used as cosine.",
        "Position 0 is not the identity.",
    ),
    "position_plus_one": Mistake(
        "position_plus_one",
        "counts from 1",
        "Positions are one too large.",
        "Cached and fresh keys disagree.",
    ),
    "position_minus_one": Mistake(
        "position_minus_one",
        "counts from -1",
        "Positions are one too small.",
        "Cached and fresh keys disagree.",
    ),
    "positions_ignored": Mistake(
        "positions_ignored",
        "0, 1, 2, .. instead of the positions given",
        "Positions are taken from the place in the sequence.",
        "Padding, packing, caches and decoding go wrong.",
        (
            "huggingface/transformers#22161",
            "lucidrains/rotary-embedding-torch#11",
        ),
    ),
    "positions_zero": Mistake(
        "positions_zero",
        "no rotation",
        "All positions are 0.",
        "The model sees no order.",
    ),
    "positions_shared_across_batch": Mistake(
        "positions_shared_across_batch",
        "positions of the first batch row",
        "Every row uses the positions of row 0.",
        "Right for one sequence, wrong for batches of different lengths.",
    ),
    "batch_row_0_only": Mistake(
        _first_batch_row,
        "only batch row 0 is rotated",
        "Later rows pass unchanged.",
        "Batched decoding goes wrong.",
        ("ml-explore/mlx#3494",),
        only="rotate",
    ),
    "positions_reversed": Mistake(
        "positions_reversed",
        "last position first",
        "The positions run backwards.",
        "Order is mirrored.",
    ),
    "positions_clamped": Mistake(
        "positions_clamped",
        "positions end at 4095",
        "Positions stop at the length of a table.",
        "Long texts lose order.",
    ),
    "positions_modulo": Mistake(
        "positions_modulo",
        "positions modulo 4096",
        "Positions wrap round.",
        "Far tokens look near.",
    ),
    "queries_left_aligned": Mistake(
        using(query_positions=lambda a: a.query_positions - (a.k.shape[-2] - a.q.shape[-2])),
        "queries start at 0",
        "Fewer queries than keys are aligned at the start instead of the end.",
        "Decoding with a cache sees wrong offsets.",
        ("lucidrains/rotary-embedding-torch#2",),
    ),
    "queries_from_zero": Mistake(
        "queries_left_aligned",
        "queries at 0, 1, 2, ..",
        "Queries take their place among the queries as position, keys are where they are.",
        "Decoding with a cache is wrong, prefill is right.",
    ),
    "wrong_axis": Mistake(
        _wrong_axis,
        "angles follow the heads axis",
        "The index of the head is used as position.",
        "Heads differ, tokens do not.",
        (
            "facebookresearch/xformers#841",
            "mlfoundations/open_lm#4",
        ),
        only="rotate",
    ),
    "wrong_base": Mistake(
        "wrong_base",
        "another base",
        "10000 instead of the configured base, or 500000 instead of 10000.",
        "Fluent and slightly worse, more so with length.",
        (
            "deepspeedai/DeepSpeed#8345",
            "Open-Athena/MarinFold#184",
        ),
    ),
    "exponent_head_dim": Mistake(
        _frequencies(_over_the_head),
        "exponent over the head",
        "theta_t = base^(-2t/head_dim) although only dim features turn.",
        "Tables look plausible, every rotated pair but the first is wrong.",
        ("pie-project/pie#602",),
        only="rotate",
    ),
    "exponent_doubled": Mistake(
        _exponent(lambda t, dim: 2 * t),
        "exponent 4t/dim",
        "The exponent counts features, not pairs.",
        "Frequencies fall twice too fast.",
    ),
    "exponent_halved": Mistake(
        _exponent(lambda t, dim: t / 2),
        "exponent t/dim",
        "The exponent divides by 2 dim.",
        "Frequencies fall half as fast.",
    ),
    "exponent_shifted": Mistake(
        _exponent(lambda t, dim: t + 1),
        "exponent 2(t+1)/dim",
        "Pairs are counted from 1.",
        "No pair turns by one radian a position.",
    ),
    "exponent_to_end": Mistake(
        _exponent(_to_the_end),
        "exponent 2t/(dim - 2)",
        "The last frequency is 1/base exactly.",
        "All but the first are off.",
    ),
    "frequencies_ascending": Mistake(
        _frequencies(lambda right, dim, base, a: right(dim, base)[::-1]),
        "lowest frequency first",
        "The frequencies are in reverse order.",
        "Pairs exchange speeds.",
    ),
    "linear_scaling": Mistake(
        "linear_scaling",
        "positions / 4",
        "Position interpolation is applied where none is configured.",
        "Order is blurred.",
    ),
    "magnitude": Mistake(
        _magnitude,
        "tables times 1.138629",
        "YaRN's magnitude for factor 4 where none is configured.",
        "Scores grow by 1.2965.",
        only="rotate",
    ),
    "pairs_across_head": Mistake(
        _across_head,
        "pairs (t, t + head_dim/2)",
        "With partial rotation, pairs span the head instead of the rotated width.",
        "Rotates features that should pass.",
        ("apple/coreai-models#66",),
        only="rotate",
    ),
    "tail_rotated": Mistake(
        _tail_rotated,
        "the last features turn",
        "Partial rotation of the wrong end.",
        "Rotates features that should pass.",
        only="rotate",
    ),
    "all_rotated": Mistake(
        _all_rotated,
        "the whole head turns",
        "head_dim is used instead of dim.",
        "Rotates features that should pass.",
        only="rotate",
    ),
    "rotary_dim_rounded": Mistake(
        _dim_rounded,
        "rotary_dim rounded",
        "int(100 * 0.29) is 28 in float64, where the product is 28.999999999999996; rounding gives 29, made even 30.",
        "Two features too many turn, and all frequencies change.",
        only="rotate",
    ),
    "bf16_inv_freq": Mistake(
        _frequencies(lambda right, dim, base, a: rounded(right(dim, base), 8)),
        "frequencies in bfloat16",
        "theta is rounded to 8 bits, for instance by casting the module.",
        "Phase errors of radians beyond a thousand positions.",
        ("huggingface/transformers#29496",),
    ),
    "bf16_positions": Mistake(
        "bf16_positions",
        "positions in bfloat16",
        "Positions beyond 256 collide.",
        "Neighbors get one position.",
        ("EleutherAI/gpt-neox#1016",),
    ),
    "f16_positions": Mistake(
        "f16_positions",
        "positions in float16",
        "Positions beyond 2048 collide.",
        "Neighbors get one position.",
    ),
    "f32_positions": Mistake(
        "f32_positions",
        "positions in float32",
        "Positions beyond 16777216 collide.",
        "Neighbors get one position.",
    ),
    "bf16_tables": Mistake(
        _cos_sin(lambda cos, sin: (rounded(cos, 8), rounded(sin, 8))),
        "tables in bfloat16",
        "cos and sin are rounded to 8 bits although the arithmetic is finer.",
        "Errors of up to 0.4 % of every product.",
        ("EleutherAI/gpt-neox#1003",),
    ),
    "gradient_forward": Mistake(
        _forward,
        "turns the gradient forward",
        "The backward pass uses R(m), not R(-m).",
        "Training fails quietly.",
        only="gradient gradient_tables",
    ),
    "gradient_turned_first": Mistake(
        instead(_turned_first),
        "g cos - turned(g) sin",
        "The sine multiplies after the exchange of the pair instead of before.",
        "Right as long as both members of a pair share their table entries.",
        ("PaddlePaddle/Paddle#74716",),
        only="gradient_tables",
    ),
    "permuted_back": Mistake(
        using(source=lambda a: a.target, target=lambda a: a.source),
        "inverse permutation",
        "Rows move from target to source.",
        "Right for heads of 4, wrong beyond.",
    ),
    "not_permuted": Mistake(
        instead(lambda weight: weight),
        "rows as they were",
        "Weights or biases keep the other layout.",
        "Position 0 right, the rest garbage.",
        only="permute",
    ),
    "permuted_across_heads": Mistake(
        using(heads=1, dim=lambda a: a.weight.shape[0]),
        "another head count",
        "Rows are permuted as if the projection had another number of heads, here 1; for k the count of q is the usual slip.",
        "Heads are mixed.",
        ("ggml-org/llama.cpp#3364",),
        only="permute",
    ),
    "tail_permuted": Mistake(
        using(dim=lambda a: a.weight.shape[0] // a.heads),
        "head_dim permuted",
        "With partial rotation, features that pass are moved as well.",
        "Heads are garbled.",
        only="permute",
    ),
    "heads_modulo": Mistake(
        _modulo_heads,
        "query head a uses key head a mod key_heads",
        "Grouped queries are tiled instead of repeated.",
        "Most heads read the wrong keys.",
        only="scores",
    ),
    "q_not_rotated": Mistake(
        using(query_positions=lambda a: 0 * a.query_positions),
        "only k turns",
        "Queries keep their features.",
        "Scores depend on the absolute position of the key.",
        only="scores attend",
    ),
    "magnitude_on_queries": Mistake(
        result(lambda y: y * 1.138629436111989),
        "queries times 1.13863, keys as they were",
        "The attention factor of YaRN is on one of the two.",
        "Attention is too sharp by 1.14 instead of 1.30, or where none is meant.",
        only="scores",
    ),
    "magnitude_squared": Mistake(
        result(lambda y: y * 1.138629436111989**2),
        "queries and keys times 1.13863",
        "The attention factor of YaRN is on both where none is asked for.",
        "Attention is too sharp by 1.30.",
        only="scores",
    ),
    **{name: ATTENTION[name]._replace(only="attend") for name in OF_ATTENTION.split()},
    **{name: ATTENTION[name] for name in ("scale_ignored", "mask_inverted")},
    "values_turned": Mistake(
        using(v=lambda a: rope.rotate(a.v, *_tables(a.v, a.key_positions, a.dim, a.base), layout=a.layout, rotary_dim=a.dim)),
        "values turned too",
        "Values are rotated with the keys.",
        "Outputs depend on the positions themselves.",
        only="attend",
        remedy="Turn queries and keys alone; a model that turns values turns the outputs back (rotary.value).",
    ),
    "in_place": Mistake(
        _in_place,
        "the first member of a pair overwritten before the second is made",
        "b' = a' sin + b cos with the new a': input and output share memory.",
        "Position 0 is right; every first member of a pair is right and no second.",
        only="rotate",
        remedy="Read both members of a pair before writing either.",
    ),
    "first_head_alone": Mistake(
        _first_head,
        "head 0 turned, the others as they were",
        "The kernel does not reach the other heads.",
        "Head 0 is right and no other.",
        only="rotate",
    ),
    "last_row_left": Mistake(
        _last_row_left,
        "the last row as it was",
        "The loop over rows ends one short.",
        "All rows are right but the last.",
        only="rotate",
    ),
    "bf16_chain": Mistake(
        _angles(_bf16_chain),
        "positions, frequencies and angles in bfloat16, the rest in float32",
        "The buffers were cast with the model, x was not.",
        "Good for the first positions, then the phase is noise; far worse than rounded tables.",
        only="rotate tables gradient",
        remedy="Keep inv_freq and positions in float32 when the model is cast: make the angles in float32.",
    ),
}

GRADIENTS = {"rotate": ("gradient", "x", "g")}  # op -> its gradient op, with respect to what, and how the flow is called there
PRESETS = {name: ("rotate", {"head_dim": values["dim"], **values}) for name, values in rope.PRESETS.items()}


def _head(t):
    return t.turned(rope.frequencies(t.dim))
