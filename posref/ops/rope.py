"""RoPE: what an implementation can be asked for, and how it goes wrong."""

# Over budget: the mistakes that the world makes most, and the readers of phases for those that no list has

import sys

import numpy as np

from posref import attention, pairing
from posref.ops import Mistake, inside, instead, missing, result, using, with_words
from posref.ops.attention import MISTAKES as ATTENTION
from posref.ops.common import OTHER_LAYOUT, in_16_bits, per_head, rounded
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


def scores(q, k, query_positions, key_positions, *, dim, base=10000.0, layout, scale, heads, key_heads):
    q = rope.rotate(q, *_tables(q, query_positions, _theta(dim, base)), layout=layout)
    k = rope.rotate(k, *_tables(k, key_positions, _theta(dim, base)), layout=layout)
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
):
    # with weights queries and keys are normalized first, in each head, as in Qwen3 and Gemma 3
    q = _normed_and_turned(q, q_weight, eps, _tables(q, query_positions, _theta(dim, base)), layout, dim)
    k = _normed_and_turned(k, k_weight, eps, _tables(k, key_positions, _theta(dim, base)), layout, dim)
    if window is not None:
        near = attention.window_mask(per_head(query_positions, q), per_head(key_positions, k), width=window)
        mask = near if mask is None else mask & near
    return attention.attend(q, k, v, scale=scale, mask=mask, softcap=softcap, sinks=None if sinks is None else sinks[:, None])


def gradient(g, positions, *, dim, base=10000.0, layout, exponent_dim=None, frequencies=None, magnitude=1, sign=1):
    tables = _tables(g, positions, _theta(dim, base, exponent_dim, frequencies), magnitude, -sign)
    return _turned(g, *tables, *_read_and_written(layout)[::-1], dim)


def gradient_tables(g, cos, sin, *, layout):
    # posref has one column per pair; this op exists for kernels with full-width tables
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
    """base^-law(t, divisor) for the pair t; where frequencies are given there is no law."""

    def change(theta, a):
        divisor = a.get("exponent_dim") or a.dim
        return a.base ** -law(np.arange(len(theta)), divisor) if a.get("frequencies") is None else missing()

    return _frequencies(change)


def _over(width):
    """The exponent over another width."""
    return _law(lambda t, divisor: 2 * t / width if width != divisor else missing())


def _over_the_head(f, a):
    return _over(a.x.shape[-1])(f, a) if _has_tail(a) else missing()


def _inverted(theta, a):
    # one over less: float32 angles are off by turns from position 1 on, and anything fits
    return 1 / theta if (theta > 1e-8).all() else missing()


def _not_as_given(theta, a):
    return (theta != 0) * a.base ** (-2 * np.arange(a.dim // 2) / a.dim) if a.frequencies is not None else missing()


def _all_turning(a):
    return a.frequencies if a.frequencies is not None and (a.frequencies > 0).all() else missing()


def _continued(theta, a):
    """Frequencies of 0 replaced by the law of the first two."""
    if len(theta) < 2 or (theta != 0).all():
        missing()
    return theta[0] * (theta[1] / theta[0]) ** np.arange(len(theta))


def _cos_sin(change):
    """Other tables: change(cos, sin)."""
    return inside(rope, "tables", lambda right: lambda positions, w: change(*right(positions, w)))


def _low_tables(bits):
    return _cos_sin(lambda cos, sin: (rounded(cos, bits), rounded(sin, bits)))


def _short(positions, bits):
    """Positions in so many bits; with 11, those of float16, they end at 65504."""
    short = missing() if np.asarray(positions).dtype == object else rounded(positions, bits)
    return np.where(np.abs(short) > 65504, np.copysign(np.inf, short), short) if bits == 11 else short


def _low_chain(bits, table_bits=53):
    """Positions, frequencies and angles in few bits; the tables as well if so said."""

    def tables(positions, w):
        angle = rounded(_short(positions, bits)[..., None] * rounded(w, bits), bits)
        return rounded(np.cos(angle), table_bits), rounded(np.sin(angle), table_bits)

    return inside(rope, "tables", lambda right: tables)


def _has_tail(a):
    return "x" in a and a.x.shape[-1] > a.dim


def _layout(of):
    """Another layout; it has no place where it is the one that was asked for."""
    return using(layout=lambda a: new if (new := of(*_read_and_written(a.layout))) != a.layout else missing())


def _whole_head(change):
    """All features turn, with other settings: change(arguments, width of the head)."""
    return lambda f, a: f(**a | {"dim": a.x.shape[-1]} | change(a, a.x.shape[-1])) if _has_tail(a) else missing()


def _proportional(f, a):
    """Pairs across the head, of which the first dim/2 turn."""
    some = _frequencies(lambda theta, whole: theta * (np.arange(len(theta)) < a.dim // 2))
    return _whole_head(lambda a, head: {"layout": "half", "exponent_dim": head})(lambda **b: some(f, a.__class__(b)), a)


def _quarter_turn(x, layout):
    first, second = pairing.split(x, layout)
    return pairing.join(-second, first, layout)


def _tiled(pairs, tiles):
    """Pairs of one layout with full-width tables of another, each by the layout asked for."""

    def wrong(f, a):
        cos, sin = (pairing.join(t, t, tiles(a.layout)) for t in _tables_of(a))
        x = a.x[..., : a.dim]
        return np.concatenate([x * cos + _quarter_turn(x, pairs(a.layout)) * sin, a.x[..., a.dim :]], axis=-1)

    return wrong


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
    """Positions `(batch, heads, n)` from those given and the indices of batch, head and row."""

    def wrong(f, a):
        p = per_head(a.positions, a.x)
        if a.x.ndim != 4 or p.ndim != 3 or p.shape[1] != 1:
            missing()
        return f(**a | {"positions": of(p, *np.indices(a.x.shape[:-1]))})

    return wrong


def _wrong_axis(f, a):
    p = per_head(a.positions, a.x)
    if p.ndim < 2 or 1 not in p.shape[1:]:
        missing()
    return f(**a | {"positions": np.indices(a.x.shape[:-1])[p.shape.index(1, 1)]})


def _tiled_over_heads(p, batch, head, row):
    """Row n of head h is entry n heads + h of the flattened axis, and reads the positions modulo their number."""
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
    """The members of a pair as change(a, b, cos, sin)."""

    def wrong(f, a):
        x, (cos, sin) = a.x[..., : a.dim], _tables_of(a)
        turned = change(*pairing.split(x, a.layout), cos, sin)
        return np.concatenate([pairing.join(*turned, a.layout), a.x[..., a.dim :]], axis=-1)

    return wrong


def _in_place(a, b, cos, sin):
    """The second member of a pair reads the first after it was overwritten."""
    first = a * cos - b * sin
    return first, first * sin + b * cos


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

MISTAKES = with_words(
    __name__,
    other_layout="other_layout",
    third_layout=_layout(lambda read, written: "interleaved_to_half"),
    fourth_layout=_layout(lambda read, written: "half_to_interleaved"),
    written_as_read=_layout(lambda read, written: read),
    read_as_written=_layout(lambda read, written: written),
    tables_alone_right=_tiled(OTHER_LAYOUT.get, lambda layout: layout),
    tiled_tables=_tiled(lambda layout: layout, OTHER_LAYOUT.get),
    sign="sign",
    cos_sin_swapped=_cos_sin(lambda cos, sin: (sin, cos)),
    second_member_minus=_members(lambda a, b, cos, sin: (a * cos - b * sin, b * cos - a * sin)),
    first_member_plus=_members(lambda a, b, cos, sin: (a * cos + b * sin, a * sin + b * cos)),
    position_plus_one="position_plus_one",
    position_minus_one="position_minus_one",
    positions_along_heads=_places(lambda p, batch, head, row: p[batch, 0, head % row.shape[2]]),
    positions_tiled_over_heads=_places(_tiled_over_heads),
    batch_number=_places(lambda p, batch, head, row: batch),
    positions_ignored="positions_ignored",
    positions_zero="positions_zero",
    batch_row_0_only=_first_batch_row,
    queries_left_aligned=using(query_positions=lambda a: a.query_positions - (a.k.shape[-2] - a.q.shape[-2])),
    queries_from_zero="queries_left_aligned",
    wrong_axis=_wrong_axis,
    wrong_base="wrong_base",
    exponent_head_dim=_over_the_head,
    exponent_rotary_dim=lambda f, a: _over(a.dim)(f, a),
    exponent_doubled=_law(lambda t, dim: 4 * t / dim),
    exponent_halved=_law(lambda t, dim: t / dim),
    exponent_shifted=_law(lambda t, dim: 2 * (t + 1) / dim),
    exponent_to_end=_law(lambda t, dim: 2 * t / (dim - 2) if dim > 2 else missing()),
    frequencies_inverted=_frequencies(_inverted),
    frequencies_ascending=_frequencies(lambda theta, a: theta[::-1] if len(theta) > 1 else missing()),
    frequencies_ignored=_frequencies(_not_as_given),
    still_pairs_turn=_frequencies(_continued),
    magnitude=_magnitude,
    proportional=_proportional,
    pairs_across_head=_across_head,
    tail_zeroed=_tail_zeroed,
    tail_rotated=_tail_rotated,
    all_rotated=_whole_head(lambda a, head: {}),
    all_rotated_same_exponent=_whole_head(lambda a, head: {"exponent_dim": a.exponent_dim or a.dim}),
    rotary_dim_rounded=_dim_rounded,
    bf16_inv_freq=_frequencies(lambda theta, a: rounded(theta, 8)),
    bf16_positions="bf16_positions",
    f16_positions=using(positions=lambda a: _short(a.positions, 11)),
    f32_positions="f32_positions",
    bf16_tables=_low_tables(8),
    gradient_forward=_forward,
    gradient_turned_first=instead(_turned_first),
    interleaved_tables=result(lambda y: pairing.join(*pairing.split(y, "half"), "interleaved")),
    permuted_back=using(source=lambda a: a.target, target=lambda a: a.source),
    not_permuted=instead(lambda weight: weight),
    permuted_across_heads=using(heads=1, dim=lambda a: a.weight.shape[0]),
    tail_permuted=using(dim=lambda a: a.weight.shape[0] // a.heads),
    heads_modulo=_modulo_heads,
    q_not_rotated=using(query_positions=lambda a: 0 * a.query_positions),
    magnitude_on_queries=result(lambda y: y * 1.138629436111989),
    magnitude_squared=result(lambda y: y * 1.138629436111989**2),
    **{name: ATTENTION[name]._replace(only="attend") for name in OF_ATTENTION.split()},
    values_turned=using(
        v=lambda a: rope.rotate(a.v, *_tables(a.v, a.key_positions, _theta(a.dim, a.base)), layout=a.layout, rotary_dim=a.dim)
    ),
    in_place=_members(_in_place),
    first_head_alone=_first_head,
    last_row_left=_last_row_left,
    bf16_chain=_low_chain(8),
    bf16_chain_and_tables=_low_chain(8, 8),
)
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
    """The permutation for another number of heads, each as wide as that makes it."""
    whole = lambda a: a.weight.shape[0] // heads if heads != a.heads and a.weight.shape[0] % (2 * heads) == 0 else missing()  # noqa: E731
    return using(heads=heads, dim=whole)


def _viewed(order, back):
    """Rows that are viewed with their axes (heads, pairs, members) in another order, and moved."""

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


def _otherwise_normed(divisor, center=False, weighted=lambda weight: weight):
    """Another norm: (x, or x - mean) / divisor(x, eps) * weighted(weight)."""

    def normed(x, weight, eps):
        x = x - _mean(x) if center else x
        return x / divisor(x, eps) * weighted(weight if weight is not None else missing())

    return inside(HERE, "_normed", lambda right: normed)


def _rms(x, eps):
    return (_mean(x * x) + eps) ** 0.5


def _magnitude_on(change):
    """Tables of which one has no magnitude: change(cos, sin, magnitude)."""
    divided = lambda right, a: lambda *x: change(*right(*x), a.magnitude if a.magnitude != 1 else missing())  # noqa: E731
    return inside(rope, "tables", divided)


def _in_tf32(positions, w):
    angle = rounded(positions, 11)[..., None] * rounded(w, 11)
    return np.cos(angle), np.sin(angle)


def _divided(change):
    """Positions by the whole factor of linear scaling: change(positions, factor), with the frequencies of no scaling."""

    def places(a):
        factor = 1 / a.frequencies[0] if a.frequencies is not None and a.frequencies[0] else 1
        whole = np.rint(factor)
        return whole * change(a.positions, int(whole)) if whole > 1 and abs(factor / whole - 1) < 2.0**-20 else missing()

    return using(positions=places)


VIEW = (
    "View the rows of interleaved weights as (heads, dim/2, 2), those of half as (heads, 2, dim/2), and exchange the last two."
)
ORDERS = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]

FURTHER = with_words(
    __name__,
    positions_counted_along_heads=_places(lambda p, batch, head, row: p[batch, 0, 0] + head),
    passed_in_front=lambda f, a: (
        np.concatenate([f(**a)[..., a.dim :], f(**a)[..., : a.dim]], axis=-1) if _has_tail(a) else missing()
    ),
    scaling_inverted=using(frequencies=lambda a: _theta(a.dim, a.base) ** 2 / _all_turning(a)),
    **{
        f"magnitude_on_{this}_alone": Mistake(
            _magnitude_on(change),
            f"the magnitude multiplies {this}, not {other}",
            "Not a rotation: norms change.",
            "Multiply both tables by the magnitude.",
            only="rotate tables gradient",
        )
        for this, other, change in (
            ("cos", "sin", lambda cos, sin, magnitude: (cos, sin / magnitude)),
            ("sin", "cos", lambda cos, sin, magnitude: (cos / magnitude, sin)),
        )
    },
    tf32_angles=inside(rope, "tables", lambda right: _in_tf32),
    positions_divided_in_integers=_divided(lambda p, factor: p // factor),
    f16_positions_divided=_divided(lambda p, factor: _short(p / factor, 11)),
    norm_after_the_rotation=inside(HERE, "_normed_and_turned", _turned_first_then_normed),
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
            ("weights_plus_one", "the norm multiplies by 1 + weight", _rms, False, lambda weight: 1 + weight),
            ("weights_left_out", "the norm has no weights", _rms, False, lambda weight: 1),
        )
    },
    norm_of_queries_alone=using(k_weight=None),
    norm_of_keys_alone=using(q_weight=None),
    norm_without_eps=using(eps=0),
    norm_left_out=using(q_weight=None, k_weight=None),
    **{
        f"permuted_for_{heads}_heads": Mistake(
            _as_if(heads),
            f"rows are permuted for {heads} heads",
            "Heads are mixed.",
            "Permute each projection with its own number of heads; k of grouped queries has fewer than q.",
            only="permute",
        )
        for heads in (1, 2, 4, 8, 16, 32)
    },
    **{
        f"viewed_{''.join(map(str, order))}_{''.join(map(str, back))}": _viewed(order, back)._replace(only="permute")
        for order in ORDERS
        for back in ORDERS[1:]
    },
)
