"""RoPE: the functions to check, and the mistakes that implementations make."""

# Over budget: the most frequent mistakes of all, and the mistakes that phases show without a list

import sys

import numpy as np

from posref import attention, pairing
from posref.ops import Mistake, inside, instead, missing, result, using
from posref.ops.attention import MISTAKES as ATTENTION
from posref.ops.common import IN_PLACE, OTHER_LAYOUT, in_16_bits, per_head, rounded
from posref.ops.probe import marks_at, painted
from posref.rotary import layouts, rope

HERE = sys.modules[__name__]
TURNED = {"rotate": "x", "gradient": "g", "tables": ""}
TAGS = {"rotate": "rotation", "inv_freq": "frequencies"}
EXTENTS = {"heads": 5, "n_key": 23, "max_position": 1_000_000}


def inv_freq(dim, *, base=10000.0):
    return _theta(dim, base)


def tables(positions, *, dim, base=10000.0, exponent_dim=None, frequencies=None, magnitude=1, sign=1):
    cos, sin = rope.tables(positions, _theta(dim, base, exponent_dim, frequencies))
    return np.concatenate([magnitude * cos, sign * magnitude * sin], axis=-1)


def rotate(x, positions, *, dim, base=10000.0, layout, exponent_dim=None, frequencies=None, magnitude=1, sign=1):
    # layout "a_to_b" reads pairs as a and writes them as b
    tables = _tables(x, positions, _theta(dim, base, exponent_dim, frequencies), magnitude, sign)
    return _turned(x, *tables, *_read_and_written(layout), dim)


def scores(q, k, query_positions, key_positions, *, dim, base=10000.0, layout, scale, heads, key_heads, frequencies=None):
    theta = dim, base, None, frequencies
    q = rope.rotate(q, *_tables(q, query_positions, _theta(*theta)), layout=layout, rotary_dim=dim)
    k = rope.rotate(k, *_tables(k, key_positions, _theta(*theta)), layout=layout, rotary_dim=dim)
    return attention.scores(q, np.repeat(k, heads // key_heads, axis=-3), scale=scale)


def attend(
    q,
    k,
    v,
    query_positions,
    key_positions,
    mask=None,
    sinks=None,
    q_weight=None,
    k_weight=None,
    *,
    dim,
    base=10000.0,
    layout,
    scale,
    window=None,
    softcap=None,
    key_heads=None,
    eps=1e-6,
    frequencies=None,
):
    # with weights, queries and keys are first normalized per head, as in Qwen3 and Gemma 3
    theta = dim, base, None, frequencies
    q = _normed_and_turned(q, q_weight, eps, _tables(q, query_positions, _theta(*theta)), layout, dim)
    k = _normed_and_turned(k, k_weight, eps, _tables(k, key_positions, _theta(*theta)), layout, dim)
    if window is not None:
        near = attention.window_mask(per_head(query_positions, q), per_head(key_positions, k), width=window)
        mask = near if mask is None else mask & near
    return attention.attend(q, k, v, scale=scale, mask=mask, softcap=softcap, sinks=None if sinks is None else sinks[:, None])


def gradient(g, positions, *, dim, base=10000.0, layout, exponent_dim=None, frequencies=None, magnitude=1, sign=1):
    tables = _tables(g, positions, _theta(dim, base, exponent_dim, frequencies), magnitude, -sign)
    return _turned(g, *tables, *_read_and_written(layout)[::-1], dim)


def gradient_tables(g, cos, sin, *, layout):
    # tables of posref have one column per pair; this op is for kernels with full-width tables
    a, b = pairing.split(g * sin, layout)
    return g * cos + pairing.join(b, -a, layout)


def permute(weight, *, heads, dim, source, target):
    return layouts.permute_projection(weight, heads=heads, rotary_dim=dim, source=source, target=target)


def _theta(dim, base, exponent_dim=None, frequencies=None):
    if frequencies is not None:
        return frequencies
    return rope.frequencies(dim, base) if exponent_dim is None else base ** (-2 * np.arange(dim // 2) / exponent_dim)


def _tables(x, positions, theta, magnitude=1, sign=1):
    cos, sin = rope.tables(per_head(positions, x), theta)
    return magnitude * cos, sign * magnitude * sin


def _normed(x, weight, eps):
    return x if weight is None else x / ((x * x).sum(axis=-1, keepdims=True) / x.shape[-1] + eps) ** 0.5 * weight


def _normed_and_turned(x, weight, eps, tables, layout, dim):
    return rope.rotate(_normed(x, weight, eps), *tables, layout=layout, rotary_dim=dim)


def _read_and_written(layout):
    read, _, written = layout.partition("_to_")
    return read, written or read


def _turned(x, cos, sin, read, written, dim):
    y = rope.rotate(x, cos, sin, layout=read, rotary_dim=dim)
    return y if read == written else layouts.convert(y, source=read, target=written, rotary_dim=dim)


def _tables_of(a):
    theta = _theta(a.dim, a.base, a.exponent_dim, a.frequencies)
    return _tables(a.x, a.positions, theta, a.magnitude, a.sign)


def _frequencies(change):
    """Other frequencies: change(right) or change(right, arguments of the op)."""
    return inside(HERE, "_theta", lambda right, a: lambda *x: change(right(*x), a))


def _law(law):
    """Frequencies base^-law(t, divisor) for pair t; NotHere if frequencies are given."""

    def change(theta, a):
        divisor = a.get("exponent_dim") or a.dim
        return a.base ** -law(np.arange(len(theta)), divisor) if a.get("frequencies") is None else missing()

    return _frequencies(change)


def _over(width):
    """The exponent divided by another width."""
    return _law(lambda t, divisor: 2 * t / width if width != divisor else missing())


def _over_the_head(f, a):
    return _over(a.x.shape[-1])(f, a) if _has_tail(a) else missing()


def _inverted(theta, a):
    # below 1e-8 the inverse is so large that float32 angles are off by whole turns, and anything would fit
    return 1 / theta if (theta > 1e-8).all() else missing()


def _not_as_given(theta, a):
    return (theta != 0) * a.base ** (-2 * np.arange(a.dim // 2) / a.dim) if a.frequencies is not None else missing()


def _all_turning(a):
    return a.frequencies if a.frequencies is not None and (a.frequencies > 0).all() else missing()


def _continued(theta, a):
    """Frequencies of 0, replaced by continuing the ratio of the first two."""
    if len(theta) < 2 or (theta != 0).all():
        missing()
    return theta[0] * (theta[1] / theta[0]) ** np.arange(len(theta))


def _cos_sin(change):
    """Other tables: change(cos, sin)."""
    return inside(rope, "tables", lambda right: lambda positions, w: change(*right(positions, w)))


def _low_tables(bits):
    return _cos_sin(lambda cos, sin: (rounded(cos, bits), rounded(sin, bits)))


def _short(positions, bits):
    """Positions rounded to this many bits; with 11, as in float16, positions above 65504 become infinite."""
    short = missing() if np.asarray(positions).dtype == object else rounded(positions, bits)
    return np.where(np.abs(short) > 65504, np.copysign(np.inf, short), short) if bits == 11 else short


def _low_chain(bits, table_bits=53):
    """Positions, frequencies and angles in few bits, and also the tables with `table_bits`."""

    def tables(positions, w):
        angle = rounded(_short(positions, bits)[..., None] * rounded(w, bits), bits)
        return rounded(np.cos(angle), table_bits), rounded(np.sin(angle), table_bits)

    return inside(rope, "tables", lambda right: tables)


def _has_tail(a):
    return "x" in a and a.x.shape[-1] > a.dim


def _layout(of):
    """Another layout; NotHere if it is the layout asked for."""
    return using(layout=lambda a: new if (new := of(*_read_and_written(a.layout))) != a.layout else missing())


def _whole_head(change):
    """All features are rotated, with other settings: change(arguments, width of the head)."""
    return lambda f, a: f(**a | {"dim": a.x.shape[-1]} | change(a, a.x.shape[-1])) if _has_tail(a) else missing()


def _proportional(f, a):
    """Pairs across the whole head, of which the first dim/2 are rotated."""
    some = _frequencies(lambda theta, whole: theta * (np.arange(len(theta)) < a.dim // 2))
    return _whole_head(lambda a, head: {"layout": "half", "exponent_dim": head})(lambda **b: some(f, a.__class__(b)), a)


def _quarter_turn(x, layout):
    first, second = pairing.split(x, layout)
    return pairing.join(-second, first, layout)


def _tiled(pairs, tiles):
    """Pairs of one layout with full-width tables of another; both layouts are functions of the one asked for."""

    def wrong(f, a):
        cos, sin = (pairing.join(t, t, tiles(a.layout)) for t in _tables_of(a))
        x = a.x[..., : a.dim]
        return np.concatenate([x * cos + _quarter_turn(x, pairs(a.layout)) * sin, a.x[..., a.dim :]], axis=-1)

    return Mistake(wrong, kind="layout", only="rotate")


def _tail_rotated(f, a):
    if not _has_tail(a):
        missing()
    return np.concatenate([a.x[..., : -a.dim], f(**a | {"x": a.x[..., -a.dim :]})], axis=-1)


def _tail_zeroed(f, a):
    return f(**a) * (np.arange(a.x.shape[-1]) < a.dim) if _has_tail(a) else missing()


def _across_head(f, a):
    if not _has_tail(a) or a.layout != "half" or a.exponent_dim == a.x.shape[-1]:  # the last would be proportional
        missing()
    cos, sin = _tables_of(a)
    still = np.zeros((*cos.shape[:-1], (a.x.shape[-1] - a.dim) // 2), int)
    tables = np.concatenate([cos, still + 1], axis=-1), np.concatenate([sin, still], axis=-1)
    return rope.rotate(a.x, *tables, layout=a.layout)


def _dim_rounded(f, a):
    return f(**a | {"dim": a.dim + 2}) if _has_tail(a) else missing()


def _places(of):
    """Positions `(batch, heads, n)` as a function of the given ones and of the indices of batch, head and row."""

    def wrong(f, a):
        p = per_head(a.positions, a.x)
        if a.x.ndim != 4 or p.ndim != 3 or p.shape[1] != 1:
            missing()
        return f(**a | {"positions": of(p, *np.indices(a.x.shape[:-1]))})

    return Mistake(wrong, kind="positions", only="rotate")


def _wrong_axis(f, a):
    p = per_head(a.positions, a.x)
    if p.ndim < 2 or 1 not in p.shape[1:]:
        missing()
    return f(**a | {"positions": np.indices(a.x.shape[:-1])[p.shape.index(1, 1)]})


def _tiled_over_heads(p, batch, head, row):
    """Row n of head h is entry n heads + h of the flattened axis, and uses the position at that entry modulo n."""
    return p[batch, 0, (row * head.shape[1] + head) % row.shape[2]]


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


def _members(change):
    """The rotated members of each pair as change(a, b, cos, sin)."""

    def wrong(f, a):
        x, (cos, sin) = a.x[..., : a.dim], _tables_of(a)
        turned = change(*pairing.split(x, a.layout), cos, sin)
        return np.concatenate([pairing.join(*turned, a.layout), a.x[..., a.dim :]], axis=-1)

    return Mistake(wrong, kind="sign", only="rotate")


def _magnitude(f, a):
    if a.magnitude != 1:
        missing()
    return np.concatenate([f(**a)[..., : a.dim] * 1.138629436111989, f(**a)[..., a.dim :]], axis=-1)


def _forward(f, a):
    if "positions" in a:
        return f(**a | {"positions": -a.positions})
    return a.g * a.cos + _quarter_turn(a.g, a.layout) * a.sin


def _turned_first(g, cos, sin, layout):
    return g * cos - _quarter_turn(g, layout) * sin


def _modulo_heads(f, a):
    return f(**a | {"k": a.k[:, np.arange(a.heads) % a.key_heads], "key_heads": a.heads})


ARRAYS = {
    "positions": marks_at,
    "x": lambda s: painted((s.batch, s.heads, s.n_key, s.head_dim), 1),
    "g": lambda s: painted((s.batch, s.heads, s.n_key, s.head_dim), 1),
    "cos": lambda s: painted((s.n_key, s.head_dim), 2),
    "sin": lambda s: painted((s.n_key, s.head_dim), 4),
    "weight": lambda s: painted((s.heads * s.head_dim, 5), 2),
    "sinks": lambda s: painted((s.heads,), 8),
    "q_weight": lambda s: painted((s.head_dim,), 10),
    "k_weight": lambda s: painted((s.head_dim,), 12),
}
ASKED = ("sinks", "q_weight", "k_weight")
OF_ATTENTION = (
    "heads_tiled values_of_the_first_head cap_left_out cap_without_division cap_without_factor cap_clipped sink_left_out "
    "sink_of_zero sink_of_the_first_head window_ignored window_one_more window_one_less mask_after_softmax no_mask "
    "last_keys_left_out empty_row_uniform"
)

MISTAKES = {
    "other_layout": Mistake("other_layout", seen_in=("huggingface/transformers#25199", "NeuraLegion/shainet#111")).words("""
        features are paired (t, t + dim/2) instead of (2t, 2t+1), or the reverse
        A valid rotation of the wrong features: text begins well and turns into garbage."""),
    "third_layout": Mistake(
        _layout(lambda read, written: "interleaved_to_half"), seen_in=("modular/modular#5647",), kind="layout", only="rotate"
    ).words("""
        pairs are read as (2t, 2t+1) and written to (t, t + dim/2)
        Scores are those of pairs (2t, 2t+1) where q and k agree; rotated vectors are permuted.
        Read and write the pairs of the layout that is asked for."""),
    "fourth_layout": Mistake(_layout(lambda read, written: "half_to_interleaved"), kind="layout", only="rotate").words("""
        pairs are read as (t, t + dim/2) and written to (2t, 2t+1)
        Scores are those of pairs (t, t + dim/2) where q and k agree; rotated vectors are permuted.
        Read and write the pairs of the layout that is asked for."""),
    "written_as_read": Mistake(_layout(lambda read, written: read), kind="layout", only="rotate gradient").words("""
        pairs are written where they were read, though another layout is to be written
        Scores are right if q and k agree; rotated vectors are permuted.
        Write the pairs in the layout that is asked for."""),
    "read_as_written": Mistake(_layout(lambda read, written: written), kind="layout", only="rotate gradient").words("""
        pairs are read where they are to be written: the input is taken for permuted already
        A valid rotation of the wrong features.
        Read the pairs in the layout of the weights."""),
    "tables_alone_right": _tiled(OTHER_LAYOUT.get, lambda layout: layout).words("""
        features are paired in the other layout but the tables are laid out for this one: a pair turns by two angles
        Not a rotation: norms change.
        The tables are right; exchange the members of the pairs in their layout."""),
    "tiled_tables": _tiled(lambda layout: layout, OTHER_LAYOUT.get)
    ._replace(seen_in=("facebookresearch/vjepa2#15", "facebookresearch/xformers#779"))
    .words("""
        full-width tables are concatenated where they should be repeated, or the reverse: a pair turns by two angles
        Not a rotation: norms change.
        Lay the tables out as the pairs: concatenate([cos, cos]) for half, repeat(cos, 2) for interleaved. V-JEPA 2 was trained
            with tables of the other layout: a port keeps them (axes.rotate_vjepa2)."""),
    "sign": Mistake("sign").words("""
        angle -m theta: the sine has the wrong sign
        Clockwise; scores see the negative offset.
        Turn by +m theta: (a cos - b sin, a sin + b cos)."""),
    "cos_sin_swapped": Mistake(_cos_sin(lambda cos, sin: (sin, cos)), kind="sign").words("""
        cos and sin are exchanged
        Position 0 is not the identity.
        Check the order in which the tables are returned and unpacked."""),
    "second_member_minus": _members(lambda a, b, cos, sin: (a * cos - b * sin, b * cos - a * sin)).words("""
        (a cos - b sin, b cos - a sin): both halves of the rotated vector have a minus
        Not a rotation: norms change.
        The second member is a sin + b cos."""),
    "first_member_plus": _members(lambda a, b, cos, sin: (a * cos + b * sin, a * sin + b * cos)).words("""
        (a cos + b sin, a sin + b cos): no half of the rotated vector has a minus
        Not a rotation: norms change.
        The first member is a cos - b sin."""),
    "position_plus_one": Mistake("position_plus_one").words("""
        positions are counted from 1
        Cached and fresh keys disagree."""),
    "position_minus_one": Mistake("position_minus_one").words("""
        positions are counted from -1
        Cached and fresh keys disagree."""),
    "positions_along_heads": _places(lambda p, batch, head, row: p[batch, 0, head % row.shape[2]]).words("""
        head h turns by the position of row h: x is taken for (batch, n, heads, dim)
        Heads differ, tokens do not.
        Axis -2 of x is the sequence: transpose first, or insert the missing axis in the tables."""),
    "positions_tiled_over_heads": _places(_tiled_over_heads).words("""
        with rows and heads flattened, row i of n heads rows reads position i mod n: positions are tiled instead of repeated
        Right with one head.
        Use repeat_interleave, or an axis for the heads: row i of n heads rows has position i // heads."""),
    "batch_number": _places(lambda p, batch, head, row: batch).words("""
        the index of the batch row is used as position
        Texts differ, tokens do not.
        Axis -2 of x is the sequence."""),
    "positions_ignored": Mistake(
        "positions_ignored", seen_in=("huggingface/transformers#22161", "lucidrains/rotary-embedding-torch#11")
    ).words("""
        the positions given are replaced by 0, 1, 2, ..
        Padding, packing, caches and decoding go wrong."""),
    "positions_zero": Mistake("positions_zero").words("""
        all positions, or all frequencies, are 0: nothing is rotated
        The model sees no order."""),
    "batch_row_0_only": Mistake(_first_batch_row, seen_in=("ml-explore/mlx#3494",), only="rotate").words("""
        only batch row 0 is rotated
        Batched decoding goes wrong.
        Let the loop, or the grid of the kernel, cover every batch row."""),
    "queries_left_aligned": Mistake(
        using(query_positions=lambda a: a.query_positions - (a.k.shape[-2] - a.q.shape[-2])),
        seen_in=("lucidrains/rotary-embedding-torch#2",),
    ).words("""
        the queries start at 0 though there are fewer queries than keys
        Decoding with a cache sees wrong offsets.
        Add n_key - n_query to the query positions: the last query stands at the last key."""),
    "queries_from_zero": Mistake("queries_left_aligned").words("""
        queries use their index among the queries as position, keys their own positions
        Decoding with a cache is wrong, prefill is right."""),
    "wrong_axis": Mistake(
        _wrong_axis, seen_in=("facebookresearch/xformers#841", "mlfoundations/open_lm#4"), only="rotate"
    ).words("""
        the index of the head is used as position: angles follow the axis of the heads
        Heads differ, tokens do not.
        Axis -2 of x is the sequence: transpose first, or insert the missing axis in the tables."""),
    "wrong_base": Mistake("wrong_base", seen_in=("deepspeedai/DeepSpeed#8345", "Open-Athena/MarinFold#184")).words("""
        base 10000 is used where another is configured, or 500000 instead of 10000
        The text stays fluent and gets slightly worse, the more the longer it is."""),
    "exponent_head_dim": Mistake(_over_the_head, seen_in=("pie-project/pie#602",), kind="base", only="rotate").words("""
        theta_t = base^(-2t/head_dim) although only dim features turn
        Tables look plausible, every rotated pair but the first is wrong.
        The exponent is -2t/dim with dim the rotated width."""),
    "exponent_rotary_dim": Mistake(lambda f, a: _over(a.dim)(f, a), kind="base", only="rotate").words("""
        theta_t = base^(-2t/dim) although the exponent runs over another width
        Tables look plausible, every rotated pair but the first is wrong.
        Divide the exponent by the width that was asked for."""),
    "exponent_doubled": Mistake(_law(lambda t, dim: 4 * t / dim), kind="base").words("""
        exponent 4t/dim: it counts features, not pairs
        From pair to pair frequencies fall twice as fast as they should.
        theta_t = base^(-2t/dim), t = 0 .. dim/2 - 1."""),
    "exponent_halved": Mistake(_law(lambda t, dim: t / dim), kind="base").words("""
        exponent t/dim: it divides by 2 dim
        From pair to pair frequencies fall half as fast as they should.
        theta_t = base^(-2t/dim), t = 0 .. dim/2 - 1."""),
    "exponent_shifted": Mistake(_law(lambda t, dim: 2 * (t + 1) / dim), kind="base").words("""
        exponent 2(t+1)/dim: pairs are counted from 1
        No pair turns by one radian a position.
        theta_t = base^(-2t/dim), t = 0 .. dim/2 - 1."""),
    "exponent_to_end": Mistake(_law(lambda t, dim: 2 * t / (dim - 2) if dim > 2 else missing()), kind="base").words("""
        exponent 2t/(dim - 2): the last frequency is exactly 1/base
        All but the first are off.
        theta_t = base^(-2t/dim), t = 0 .. dim/2 - 1; tensor2tensor's sinusoids have the other."""),
    "frequencies_inverted": Mistake(_frequencies(_inverted), kind="base").words("""
        the frequencies are inverted: the exponent is positive, or a wavelength is taken for a frequency
        All but the first pair turn too fast.
        theta is in radians per position; a timescale is its inverse."""),
    "frequencies_ascending": Mistake(
        _frequencies(lambda theta, a: theta[::-1] if len(theta) > 1 else missing()), kind="base"
    ).words("""
        the frequencies are in reverse order, the lowest first
        Pairs exchange speeds.
        The fastest pair comes first."""),
    "frequencies_ignored": Mistake(_frequencies(_not_as_given), kind="base", only="rotate").words("""
        frequencies base^(-2t/dim) instead of those given: the configured scaling is not read
        Right for short texts, worse with length.
        Use the given frequencies."""),
    "still_pairs_turn": Mistake(_frequencies(_continued), kind="base", only="rotate").words("""
        all pairs turn: frequencies of 0 are replaced by the formula of the others
        Features turn that should pass.
        Keep the frequencies of 0: pairs that pass."""),
    "magnitude": Mistake(_magnitude, kind="magnitude", only="rotate tables").words("""
        cos and sin are multiplied by 1.138629, YaRN's magnitude for factor 4, where none is configured
        Scores grow by 1.2965.
        Plain RoPE keeps norms; an attention factor belongs to YaRN and LongRoPE: remove it or ask for it with magnitude=."""),
    "proportional": Mistake(_proportional, kind="layout", only="rotate").words("""
        p-RoPE: the first dim/2 pairs (t, t + head_dim/2) turn, with frequencies base^(-2t/head_dim)
        Another encoding (p-RoPE, Gemma 4): right for weights trained with it, garbage for others.
        Pair within the rotated features; for p-RoPE ask for the whole head and frequencies= that end in zeros."""),
    "pairs_across_head": Mistake(_across_head, seen_in=("apple/coreai-models#66",), kind="layout", only="rotate").words("""
        pairs (t, t + head_dim/2): with partial rotation, pairs span the head instead of the rotated width
        Rotates features that should pass.
        Pair within the rotated features."""),
    "tail_zeroed": Mistake(_tail_zeroed, kind="layout", only="rotate").words("""
        with partial rotation, the features that do not rotate are set to 0
        Content is lost: scores see the rotated features alone.
        Copy the features that pass beside those that turn."""),
    "tail_rotated": Mistake(_tail_rotated, kind="layout", only="rotate").words("""
        with partial rotation, the last features rotate instead of the first
        Rotates features that should pass.
        The first features turn, the last pass."""),
    "all_rotated": Mistake(_whole_head(lambda a, head: {}), kind="layout", only="rotate").words("""
        the whole head rotates: head_dim is used instead of dim
        Rotates features that should pass.
        Rotate the first features and pass the others."""),
    "all_rotated_same_exponent": Mistake(
        _whole_head(lambda a, head: {"exponent_dim": a.exponent_dim or a.dim}), kind="layout", only="rotate"
    ).words("""
        the whole head rotates, with the exponent of the rotated features: the frequencies go on beyond them
        Rotates features that should pass.
        Rotate the first features and pass the others."""),
    "rotary_dim_rounded": Mistake(_dim_rounded, kind="layout", only="rotate").words("""
        rotary_dim is rounded: int(100 * 0.29) is 28 in float64 (28.999999999999996), rounding gives 29, made even 30
        Two features too many turn, and all frequencies change.
        Round the rotated width down to an even number."""),
    "bf16_inv_freq": Mistake(
        _frequencies(lambda theta, a: rounded(theta, 8)), seen_in=("huggingface/transformers#29496",), kind="precision"
    ).words("""
        the frequencies are held in bfloat16 (8 bits), for instance after casting the module
        Phase errors of radians beyond a thousand positions.
        Keep inv_freq in float32 when the model is cast; .to(dtype) and .half() of a module reach its buffers."""),
    "bf16_positions": Mistake("bf16_positions", seen_in=("EleutherAI/gpt-neox#1016",)).words("""
        positions are held in bfloat16, so those beyond 256 collide
        Neighbors get one position."""),
    "f16_positions": Mistake(using(positions=lambda a: _short(a.positions, 11)), kind="positions").words("""
        positions are held in float16, so those beyond 2048 collide
        Neighbors get one position.
        Keep positions as integers, or in float32, until the angle is made."""),
    "f32_positions": Mistake("f32_positions").words("""
        positions are held in float32, so those beyond 16777216 collide
        Neighbors get one position."""),
    "bf16_tables": Mistake(_low_tables(8), seen_in=("EleutherAI/gpt-neox#1003",), kind="precision").words("""
        the tables cos and sin are held in bfloat16 (8 bits), while the arithmetic is finer
        Errors of up to 0.4 % of every product.
        Keep the tables in float32 and round the result once."""),
    "gradient_forward": Mistake(_forward, only="gradient gradient_tables").words("""
        the backward pass rotates by R(m) instead of R(-m)
        Training fails quietly.
        Turn the gradient by R(-m), the transpose of R(m)."""),
    "gradient_turned_first": Mistake(
        instead(_turned_first), seen_in=("PaddlePaddle/Paddle#74716",), only="gradient_tables"
    ).words("""
        g cos - turned(g) sin: the sine multiplies after the exchange of the pair instead of before
        Right as long as both members of a pair share their table entries.
        Multiply by the sine first: g cos - turned(g sin)."""),
    "interleaved_tables": Mistake(
        result(lambda y: pairing.join(*pairing.split(y, "half"), "interleaved")), kind="layout", only="tables"
    ).words("""
        the columns are cos, sin, cos, sin, .. instead of all cosines, then all sines
        Every table but that of one pair is permuted.
        All cosines come first, (n, dim/2), then all sines."""),
    "permuted_back": Mistake(using(source=lambda a: a.target, target=lambda a: a.source)).words("""
        the inverse permutation: rows move from target to source
        Right for heads of 4, wrong beyond.
        Exchange source and target: source is the layout that the weights have."""),
    "not_permuted": Mistake(instead(lambda weight: weight), only="permute").words("""
        the rows are not permuted: weights or biases keep the other layout
        Position 0 right, the rest garbage.
        Permute the rows of q and k, and their biases (posref.rotary.layouts)."""),
    "permuted_across_heads": Mistake(
        using(heads=1, dim=lambda a: a.weight.shape[0]), seen_in=("ggml-org/llama.cpp#3364",), only="permute"
    ).words("""
        rows are permuted for another number of heads, here 1; for k often the number of q
        Heads are mixed.
        Permute each projection with its own number of heads; k of grouped queries has fewer than q."""),
    "tail_permuted": Mistake(using(dim=lambda a: a.weight.shape[0] // a.heads), only="permute").words("""
        all head_dim features are permuted, those that do not rotate too
        Heads are garbled.
        Permute the first rotary_dim rows of a head and leave the others in place."""),
    "heads_modulo": Mistake(_modulo_heads, only="scores").words("""
        query head a uses key head a mod key_heads: grouped queries are tiled instead of repeated
        Most heads read the wrong keys.
        Query head a uses key head a // (heads // key_heads): repeat each key head."""),
    "q_not_rotated": Mistake(using(query_positions=lambda a: 0 * a.query_positions), only="scores attend").words("""
        only k is rotated
        Scores depend on the absolute position of the key.
        Turn the queries too, by their own positions."""),
    "magnitude_on_queries": Mistake(result(lambda y: y * 1.138629436111989), only="scores").words("""
        only the queries are multiplied by 1.13863, YaRN's attention factor
        Attention is too sharp by 1.14 instead of 1.30, or where none is meant.
        Multiply queries and keys alike by the attention factor, and neither where no YaRN is configured."""),
    "magnitude_squared": Mistake(result(lambda y: y * 1.138629436111989**2), only="scores").words("""
        queries and keys are multiplied by 1.13863, YaRN's attention factor, where none is configured
        Attention is too sharp by 1.30.
        Leave the attention factor out where no YaRN or LongRoPE is configured."""),
    **{name: ATTENTION[name]._replace(only="attend") for name in OF_ATTENTION.split()},
    "values_turned": Mistake(
        using(
            v=lambda a: rope.rotate(
                a.v, *_tables(a.v, a.key_positions, _theta(a.dim, a.base)), layout=a.layout, rotary_dim=a.dim
            )
        ),
        only="attend",
    ).words("""
        the values are rotated too
        Outputs depend on the positions themselves.
        Turn queries and keys alone; a model that turns values turns the outputs back (rotary.value)."""),
    "in_place": IN_PLACE["in_place"]._replace(only="rotate"),
    "first_head_alone": Mistake(_first_head, only="rotate").words("""
        only head 0 is rotated
        Head 0 is right and no other.
        Let the loop, or the grid of the kernel, cover every head."""),
    "last_row_left": Mistake(_last_row_left, only="rotate").words("""
        the last row is not rotated: the loop over rows ends one too early
        All rows are right but the last.
        Let the loop reach row n - 1."""),
    "bf16_chain": Mistake(_low_chain(8), kind="precision", only="rotate tables gradient").words("""
        positions, frequencies and angles are in bfloat16: the buffers were cast with the model, x was not
        Good for the first positions, then the phase is noise; far worse than rounded tables.
        Keep inv_freq and positions in float32 when the model is cast: make the angles in float32."""),
    "bf16_chain_and_tables": Mistake(_low_chain(8, 8), kind="precision", only="rotate tables gradient").words("""
        positions, frequencies, angles and tables are in bfloat16: the buffers were cast with the model, x was not
        Good for the first positions, then the phase is noise; far worse than rounded tables.
        Keep inv_freq and positions in float32 when the model is cast: make the angles in float32."""),
}
MISTAKES |= in_16_bits(
    MISTAKES,
    bf16_inv_freq=_frequencies(lambda theta, a: rounded(theta, 11)),
    bf16_tables=_low_tables(11),
    bf16_chain=_low_chain(11),
    bf16_chain_and_tables=_low_chain(11, 11),
)

GRADIENTS = {"rotate": ("gradient", "x", "g")}  # op -> its gradient op, with respect to what, and how the flow is called there

SCORES = {"rope": ("offset", "offset", "offset", "offset")}


def _head(t):
    return t.turned(rope.frequencies(t.dim))


def _as_if(heads):
    """The permutation for another number of heads, with the width that this gives each head."""
    whole = lambda a: a.weight.shape[0] // heads if heads != a.heads and a.weight.shape[0] % (2 * heads) == 0 else missing()  # noqa: E731
    return using(heads=heads, dim=whole)


def _viewed(order, back):
    """Rows that are viewed with their axes (heads, pairs, members) in another order, which is then transposed by `back`."""

    def wrong(f, a):
        if a.weight.shape[0] != a.heads * a.dim:
            missing()
        sizes = np.array([a.heads, a.dim // 2, 2])[[*order]]
        return a.weight[np.arange(a.weight.shape[0]).reshape(sizes).transpose(back).reshape(-1)]

    words = ", ".join(("heads", "dim/2", "2")[i] for i in order)
    return Mistake(wrong, f"rows are viewed as ({words}) and their axes moved to {back}", "Heads are mixed.", VIEW)


def _turned_first_then_normed(right):
    return lambda x, weight, eps, *rest: _normed(right(x, None, eps, *rest), weight, eps)


def _mean(x):
    return x.sum(axis=-1, keepdims=True) / x.shape[-1]


def _otherwise_normed(divisor, center=False):
    """Another norm: x, or x - mean if `center`, divided by divisor(x, eps), times weight."""

    def normed(x, weight, eps):
        x = x - _mean(x) if center else x
        return x / divisor(x, eps) * (weight if weight is not None else missing())

    return inside(HERE, "_normed", lambda right: normed)


def _rms(x, eps):
    return (_mean(x * x) + eps) ** 0.5


def _magnitude_on(change):
    """Tables, one of them without the magnitude: change(cos, sin, magnitude)."""
    divided = lambda right, a: lambda *x: change(*right(*x), a.magnitude if a.magnitude != 1 else missing())  # noqa: E731
    return inside(rope, "tables", divided)


def _in_tf32(short):
    """Angles of positions and frequencies that `short` reduces to 11 bits."""

    def tables(positions, w):
        angle = short(positions)[..., None] * short(w)
        return np.cos(angle), np.sin(angle)

    return inside(rope, "tables", lambda right: tables)


def _reduced(turn, whole):
    """Angles reduced by multiples of a number other than 2 pi. (2 pi in float32 stays within the error of float32 angles.)"""

    def tables(positions, w):
        angle = positions[..., None] * w
        angle = angle - turn * whole(angle / turn)
        return np.cos(angle), np.sin(angle)

    return inside(rope, "tables", lambda right: tables)


def _truncated(x):
    """The leading 11 bits: the last 42 bits of float64 are set to 0."""
    return (np.asarray(x, dtype=float).view(np.int64) >> 42 << 42).view(float)


def _divided(change):
    """Positions divided by the integer factor of linear scaling, as change(positions, factor), with unscaled frequencies."""

    def places(a):
        factor = 1 / a.frequencies[0] if a.frequencies is not None and a.frequencies[0] else 1
        whole = np.rint(factor)
        return whole * change(a.positions, int(whole)) if whole > 1 and abs(factor / whole - 1) < 2.0**-20 else missing()

    return Mistake(using(positions=places), kind="positions", only="rotate")


def _with_tail(a, factor):
    return np.concatenate([a.x[..., : a.dim], factor * a.x[..., a.dim :]], axis=-1)


VIEW = (
    "View the rows of interleaved weights as (heads, dim/2, 2), those of half as (heads, 2, dim/2), and exchange the last two."
)
ORDERS = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]

FURTHER = {
    "positions_counted_along_heads": _places(lambda p, batch, head, row: p[batch, 0, 0] + head).words("""
        head h turns by the first position + h: positions are counted along the axis of the heads
        Heads differ, tokens do not.
        Transpose first: the rotation counts along axis -2, and of what is (batch, n, heads, dim) that is heads."""),
    "passed_in_front": Mistake(
        lambda f, a: np.concatenate([f(**a)[..., a.dim :], f(**a)[..., : a.dim]], axis=-1) if _has_tail(a) else missing(),
        only="rotate",
    ).words("""
        the features that pass are put in front of those that turn
        Scores are right where queries and keys agree; rotated vectors are permuted.
        Put the features that turn first: cat((rotated, passed))."""),
    "magnitude_on_what_passes": Mistake(
        using(x=lambda a: _with_tail(a, a.magnitude) if _has_tail(a) and a.magnitude != 1 else missing()), only="rotate"
    ).words("""
        the magnitude multiplies the features that pass, too: whole vectors are multiplied, before or after they turn
        Their part of the scores is too large.
        Multiply the tables, or the features that turn."""),
    "exponent_floored": Mistake(_law(lambda t, divisor: -(-2 * t // divisor)), kind="base").words("""
        base^(-2t // dim): the exponent is rounded down, to -1 for all pairs but the first
        Near tokens are blurred.
        Divide in floating point."""),
    "scaling_inverted": Mistake(
        using(frequencies=lambda a: _theta(a.dim, a.base) ** 2 / _all_turning(a)), only="rotate"
    ).words("""
        frequencies are multiplied by the factors by which they are to be divided
        Garbage at any length.
        Divide each frequency by its factor."""),
    **{
        f"magnitude_on_{this}_alone": Mistake(_magnitude_on(change), only="rotate tables gradient").words(f"""
            the magnitude multiplies {this}, not {other}
            Not a rotation: norms change.
            Multiply both tables by the magnitude.""")
        for this, other, change in (
            ("cos", "sin", lambda cos, sin, magnitude: (cos, sin / magnitude)),
            ("sin", "cos", lambda cos, sin, magnitude: (cos / magnitude, sin)),
        )
    },
    **{
        f"tf32_angles{name}": Mistake(_in_tf32(short), kind="precision", only="rotate tables gradient").words(f"""
            angles are products of positions and frequencies of 11 bits{words}
            Good for the first positions, then the phase is noise.
            Multiply positions and frequencies elementwise in float32, or turn TF32 off for this product.""")
        for name, words, short in (
            ("", ": a matrix product in TF32, or of float16", lambda x: rounded(x, 11)),
            # 1 + 2^-40 moves a tie beyond the middle, and changes the rounding of no other float32 number
            ("_ties_away", ", ties rounded away from 0: a matrix product in TF32", lambda x: rounded(x * (1 + 2.0**-40), 11)),
            ("_truncated", ", the other bits cut off: a matrix product in TF32", _truncated),
        )
    },
    **{
        f"angles_reduced_by_{turn}{last}": Mistake(
            _reduced(turn, whole), kind="precision", only="rotate tables gradient"
        ).words(f"""
            angles are reduced by multiples of {turn}, {which}, where the period is 2 pi
            Good for the first positions, then phases drift by {abs(2 * np.pi - turn):.2g} per turn.
            Reduce by 2 pi in two or three parts (Cody and Waite), or call the sine of the library.""")
        for turn in (6.28, 6.28125, 6.283, 6.2832, 6.28318)
        for last, which, whole in (("", "the nearest", np.rint), ("_floored", "the one below", np.floor))
    },
    "positions_divided_in_integers": _divided(lambda p, factor: p // factor).words("""
        positions are divided by the factor of linear scaling in integers, and rounded down
        Neighbors share a position.
        Divide in floating point, or divide the frequencies."""),
    "f16_positions_divided": _divided(lambda p, factor: _short(p / factor, 11)).words("""
        positions are held in float16 after they are divided by the factor of linear scaling
        Good for the first thousands, then neighbors share positions.
        Divide in float32, or divide the frequencies."""),
    "norm_after_the_rotation": Mistake(inside(HERE, "_normed_and_turned", _turned_first_then_normed)).words("""
        queries and keys are normalized after the rotation
        Scores are off from the first token on, where the weights of a pair differ.
        Normalize each head of queries and keys, multiply by its weight, then rotate."""),
    **{
        f"norm_{name}": Mistake(
            _otherwise_normed(*change), bug, "", "Use the norm of the model and its eps: most have RMSNorm."
        )
        for name, bug, *change in (
            ("with_mean", "the mean is subtracted before the norm, as in LayerNorm", _rms, True),
            (
                "of_sums",
                "the sum of squares stands for their mean: an L2 norm",
                lambda x, eps: ((x * x).sum(-1, keepdims=True) + eps) ** 0.5,
            ),
            (
                "of_all_heads",
                "the norm is that of all heads together",
                lambda x, eps: (_mean(x * x).sum(-3, keepdims=True) / x.shape[-3] + eps) ** 0.5,
            ),
            ("eps_beside_the_root", "eps is added to the root, not under it", lambda x, eps: _mean(x * x) ** 0.5 + eps),
        )
    },
    "norm_without_eps": Mistake(using(eps=0), "eps of the norm is left out, or far too small", "", "Add eps to the mean."),
    **{
        f"permuted_for_{heads}_heads": Mistake(_as_if(heads), only="permute").words(f"""
            rows are permuted for {heads} heads
            Heads are mixed.
            Permute each projection with its own number of heads; k of grouped queries has fewer than q.""")
        for heads in (1, 2, 4, 8, 16, 32)
    },
    **{
        f"viewed_{''.join(map(str, order))}_{''.join(map(str, back))}": _viewed(order, back)._replace(only="permute")
        for order in ORDERS
        for back in ORDERS[1:]
    },
}
