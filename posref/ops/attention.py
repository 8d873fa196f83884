"""Attention: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref import attention
from posref.ops import Mistake, inside, instead, missing, result, using, with_words
from posref.ops.common import UNMASKED, count, entry
from posref.ops.probe import ending, padded_mask, painted


def softmax(scores, mask=None, sinks=None):
    return attention.softmax(scores, mask, _column(sinks))


def attend(q, k, v, bias=None, mask=None, sinks=None, row_scale=None, *, scale, softcap=None, key_heads=None):
    more = {"row_scale": row_scale, "softcap": softcap, "sinks": _column(sinks)}
    return attention.attend(q, k, v, scale=scale, bias=bias, mask=mask, **more)


def attend_by_offset(q, k, v, bias_by_offset=None, *, scale, causal: bool = True, window=None, key_heads=None):
    return attention.attend_by_offset(q, k, v, scale=scale, bias_by_offset=bias_by_offset, causal=causal, window=window)


def attend_gradient(output_gradient, q, k, v, bias=None, mask=None, *, scale, of, key_heads=None):
    return entry(attention.attend_gradient(output_gradient, q, k, v, scale=scale, bias=bias, mask=mask), of)


causal_mask = attention.causal_mask
window_mask = attention.window_mask


def chunk_mask(query_positions, key_positions, *, width):
    # Llama 4: keys of the query's own chunk, up to it
    return _one_chunk(query_positions, key_positions, width) & attention.causal_mask(query_positions, key_positions)


def prefix_mask(prefixes, n):
    # PaliGemma: of n tokens the first of each text, as many as `prefixes` says, see each other; what follows is causal
    places = np.arange(n)
    inside_it = places < prefixes[:, None]
    return attention.causal_mask(places, places) | (inside_it[:, :, None] & inside_it[:, None, :])


def block_mask(blocks):
    # Gemma 3: tokens of one image see each other, -1 is text, which is causal
    places = np.arange(len(blocks))
    same = (blocks[:, None] == blocks[None, :]) & (blocks >= 0)
    return attention.causal_mask(places, places) | same


def four_terms(x, p, w_q, w_k):
    return np.stack([*attention.four_terms(x, p, w_q, w_k)])


def _column(sinks):
    return None if sinks is None else sinks[:, None]


ARRAYS = {
    "scores": lambda s: ending(painted((s.batch, s.heads, s.n_query, s.n_key), 1), 996, 1004, 1000),
    "mask": padded_mask,
    "q": lambda s: ending(painted((s.batch, s.heads, s.n_query, s.head_dim), 1), 2048, -2048),
    "bias": lambda s: painted((s.heads, s.n_query, s.n_key), 6),
    "sinks": lambda s: painted((s.heads,), 6),
    "row_scale": lambda s: abs(painted((s.n_query,), 9)),
    "bias_by_offset": lambda s: painted((s.heads, s.n_query + s.n_key - 1), 6),
    "output_gradient": lambda s: painted((s.batch, s.heads, s.n_query, s.head_dim), 8),
    "prefixes": lambda s: np.array([3, 0, 6]),
    "n": lambda s: 8,
    "blocks": lambda s: np.array([-1, 0, 0, 0, -1, 1, 1, 2, 2, -1, -1]),
    "x": lambda s: painted((s.batch, s.n_key, s.head_dim), 1),
    "p": lambda s: painted((s.batch, s.n_key, s.head_dim), 2),
    "w_q": lambda s: painted((s.head_dim, 4), 4),
    "w_k": lambda s: painted((s.head_dim, 4), 6),
}
ASKED = ("bias", "sinks", "row_scale", "bias_by_offset")


def _scores(change):
    """Other scores: change(right, q, k, given) with the keywords given."""
    return inside(attention, "scores", lambda right: lambda q, k, **given: change(right, q, k, given))


def _biased(change):
    return _scores(lambda right, q, k, given: change(right, q, k, given) if given.get("bias") is not None else missing())


def _capped(change):
    return _scores(lambda right, q, k, given: change(right, q, k, given) if given.get("softcap") else missing())


def _other_cap(change):
    return inside(attention, "cap", lambda right: lambda s, *, softcap: change(s, softcap))


def _weights(change):
    """Other weights: change(right, scores, mask, sinks)."""
    return inside(attention, "softmax", lambda right: lambda s, mask=None, sinks=None: change(right, s, mask, sinks))


def _with_mask(change):
    return _weights(lambda right, s, mask, sinks: change(right, s, mask, sinks) if mask is not None else missing())


def _with_sinks(change):
    return _weights(lambda right, s, mask, sinks: change(right, s, mask, sinks) if sinks is not None else missing())


def _empty_rows(number):
    """A number for every weight of a row without keys; with a sink it would be the sink's."""

    def change(right, s, mask, sinks):
        empty = ~mask.any(axis=-1, keepdims=True) if sinks is None else missing()
        return np.where(empty & (s == s), number(s.shape[-1]), right(s, mask))

    return _with_mask(change)


def _cap_after_bias(right, q, k, given):
    return attention.cap(right(q, k, **given | {"softcap": None}), softcap=given["softcap"])


def _cap_before_scale(right, q, k, given):
    s = given["scale"] * right(q, k, **given | {"scale": 1, "bias": None})
    return s if given.get("bias") is None else s + given["bias"]


def _cap_after_mask(right, a):
    def softmax(s, mask=None, sinks=None):
        return right(np.where(mask, s, -a.softcap), None, sinks) if a.softcap and mask is not None else missing()

    return softmax


def _sink_beside_the_maximum(right, s, mask, sinks):
    """exp(s - max) / (sum exp(s - max) + exp(sink))."""
    powers = np.exp(s - attention.row_maximum(s, mask))
    powers = powers if mask is None else np.where(mask, powers, 0)
    return powers / (powers.sum(axis=-1, keepdims=True) + np.exp(sinks[..., None]))


def _sink_without_exp(right, s, mask, sinks):
    """exp(s - max) / (sum exp(s - max) + sink)."""
    powers = np.exp(s - attention.row_maximum(s, mask))
    powers = powers if mask is None else np.where(mask, powers, 0)
    return powers / (powers.sum(axis=-1, keepdims=True) + sinks[..., None])


def _over_queries(right, s, mask, sinks):
    """Every column sums to 1, also one that is masked whole, with -1e9; a sink belongs to rows."""
    masked = s if mask is None else np.where(mask, s, -1e9)
    return np.swapaxes(right(np.swapaxes(masked, -1, -2)), -1, -2) if sinks is None else missing()


def _with_row_scale(change):
    return using(row_scale=lambda a: change(a) if a.row_scale is not None else missing())


def _scaled_keys(a):
    before = a.k.shape[-2] - len(a.row_scale)
    return a.k * np.concatenate([np.ones(before), a.row_scale])[:, None] if before >= 0 else missing()


def _row_scale_after_bias(right, q, k, given):
    s, r = right(q, k, **given | {"row_scale": None}), given.get("row_scale")
    return r[..., None] * s if r is not None else missing()


def _tiled(right):
    def repeat_heads(x, *, heads):
        return np.concatenate([x] * (heads // x.shape[-3]), axis=-3) if heads > x.shape[-3] else missing()

    return repeat_heads


def _whole_tiles(a):
    """The mask without the keys beyond the last whole tile of 64."""
    n = a.k.shape[-2]
    if n < 64 or n % 64 == 0:
        missing()
    whole = np.arange(n)[None] < n // 64 * 64
    return whole if a.mask is None else a.mask & whole


def _causal(shift):
    """The rows of a causal mask moved by shift(query_positions, key_positions)."""
    return inside(attention, "causal_mask", lambda right: lambda i, j: right(i + shift(i, j), j))


def _window(change):
    """Other windows, in a mask or in attention: change(right, query_positions, key_positions, width)."""

    def other(right):
        def windowed(i, j, *, width, causal=False):
            near = change(right, i, j, width)
            return near & attention.causal_mask(i, j) if causal else near

        return windowed

    return inside(attention, "window_mask", other)


def _one_chunk(i, j, width):
    return j[..., None, :] // width == i[..., :, None] // width


def _backward(right, i, j, width):
    return right(i, j, width=width, causal=True)


def _without_the_row_sum(f, a):
    """ds = a da: what is left out is put back, sum_j a da for each row."""
    if a.get("of") not in ("q", "k", "bias") or (a.of == "k" and a.k.shape[:-2] != a.q.shape[:-2]):
        missing()
    k, v = (attention.with_heads_of(a.q, x) for x in (a.k, a.v))
    weights = attention.softmax(attention.scores(a.q, k, scale=a.scale, bias=a.get("bias")), a.get("mask"))
    by_score = weights * (a.output_gradient @ np.swapaxes(v, -1, -2))
    columns = np.swapaxes(by_score, -1, -2)
    return {"q": lambda: a.scale * (by_score @ k), "k": lambda: a.scale * (columns @ a.q), "bias": lambda: by_score}[a.of]()


def _of_one_head(f, a):
    """Of the heads that share a key only the first has a gradient."""
    if a.get("of") not in ("k", "v") or a.k.ndim < 3 or a.q.shape[-3] == a.k.shape[-3]:
        missing()
    first = np.arange(a.q.shape[-3]) % (a.q.shape[-3] // a.k.shape[-3]) == 0
    return f(**a | {"output_gradient": a.output_gradient * first[:, None, None]})


def _gradient_unscaled(f, a):
    return f(**a) / a.scale if a.get("of") in ("q", "k") else missing()


MISTAKES = with_words(
    __name__,
    bias_before_scale="bias_before_scale",
    bias_twice=_biased(lambda right, q, k, given: right(q, k, **given | {"bias": 2 * given["bias"]})),
    bias_subtracted=_biased(lambda right, q, k, given: right(q, k, **given | {"bias": -given["bias"]})),
    bias_of_the_first_head=_biased(lambda right, q, k, given: right(q, k, **given | {"bias": given["bias"][..., :1, :, :]})),
    no_mask=UNMASKED,
    mask_left_aligned="mask_left_aligned",
    mask_after_softmax=_with_mask(lambda right, s, mask, sinks: np.where(mask, right(s, None, sinks), 0)),
    mask_multiplied=_with_mask(lambda right, s, mask, sinks: right(np.where(mask, s, 0), None, sinks)),
    softmax_over_queries=_weights(_over_queries),
    last_keys_left_out=using(mask=_whole_tiles),
    empty_row_uniform=_empty_rows(lambda n: 1 / n),
    empty_row_nan=_empty_rows(lambda n: np.nan),
    base_two=_weights(lambda right, s, mask, sinks: right(s * np.log(2), mask, sinks if sinks is None else sinks * np.log(2))),
    cap_left_out=using(softcap=lambda a: None if a.softcap else missing()),
    cap_without_division=_other_cap(lambda s, c: c * np.tanh(s)),
    cap_without_factor=_other_cap(lambda s, c: np.tanh(s / c)),
    cap_clipped=_other_cap(lambda s, c: np.clip(s, -c, c)),
    cap_before_scale=_capped(_cap_before_scale),
    cap_after_bias=_capped(_cap_after_bias),
    cap_after_mask=inside(attention, "softmax", _cap_after_mask),
    sink_left_out=_with_sinks(lambda right, s, mask, sinks: right(s, mask)),
    sink_of_zero=_with_sinks(lambda right, s, mask, sinks: right(s, mask, 0 * sinks)),
    sink_of_the_first_head=_with_sinks(lambda right, s, mask, sinks: right(s, mask, sinks[..., :1, :])),
    sink_beside_the_maximum=_with_sinks(_sink_beside_the_maximum),
    sink_without_exp=_with_sinks(_sink_without_exp),
    sink_scaled=using(sinks=lambda a: a.scale * a.sinks if a.get("sinks") is not None else missing()),
    row_scale_left_out=_with_row_scale(lambda a: None),
    row_scale_after_bias=_scores(_row_scale_after_bias),
    heads_tiled=inside(attention, "repeat_heads", _tiled),
    values_of_the_first_head=using(
        v=lambda a: np.broadcast_to(a.v[..., :1, :, :], a.v.shape) if a.v.ndim > 2 and a.v.shape[-3] > 1 else missing()
    ),
    causal_ignored=using(causal=lambda a: False if a.causal else missing()),
    causal_left_aligned=_causal(lambda i, j: -i[..., :1]),
    causal_strict=_causal(lambda i, j: -1),
    sees_one_ahead=_causal(lambda i, j: 1),
    window_ignored=_window(lambda right, i, j, width: right(i, j, width=2**62)),
    window_one_more=_window(lambda right, i, j, width: right(i, j, width=width + 1)),
    window_one_less=_window(lambda right, i, j, width: right(i, j, width=width - 1) if width > 1 else missing()),
    window_left_aligned=_window(lambda right, i, j, width: right(i - i[..., :1], j, width=width)),
    window_forward_too=using(causal=lambda a: False if a.causal else missing()),
    window_backward_alone=lambda f, a: missing() if a.get("causal") else _window(_backward)(f, a),
    bias_reversed=using(bias_by_offset=lambda a: a.bias_by_offset[..., ::-1] if a.bias_by_offset is not None else missing()),
    bias_one_off=using(
        bias_by_offset=lambda a: np.roll(a.bias_by_offset, 1, -1) if a.bias_by_offset is not None else missing()
    ),
    sign="sign",
    row_sum_left_out=_without_the_row_sum,
    sharing_not_summed=_of_one_head,
    gradient_unscaled=_gradient_unscaled,
    gradient_unweighted=lambda f, a: f(**a | {"q": 0 * a.q, "bias": None}) if a.get("of") == "v" else missing(),
    cross_terms_exchanged=result(lambda y: y[[0, 2, 1, 3]]),
    matrices_exchanged=using(w_q=lambda a: a.w_k, w_k=lambda a: a.w_q),
    terms_transposed=result(lambda y: np.swapaxes(y, -1, -2)),
)


def _scaled(number):
    """Another scale; not where it is 1, or half or double the right one: these have plainer words."""

    def scale(a):
        made = number(a.q.shape[-1], a.q.shape[-3] if a.q.ndim > 2 else missing(), a.scale)
        return missing() if np.isclose(made, (1, a.scale / 2, 2 * a.scale)).any() else made

    return using(scale=scale)


def _positioned(**change):
    return using(**{f"{name}_positions": new for name, new in change.items()})


def _causal_window(query_positions, key_positions, width):
    return attention.window_mask(query_positions, key_positions, width=width, causal=True)


FURTHER = with_words(
    __name__,
    all_seen_from_the_prefix=lambda f, a: f(**a) | (np.arange(a.n) < a.prefixes[:, None])[..., None],
    not_causal=inside(attention, "causal_mask", lambda right: lambda i, j: (j >= j)[..., None, :] & (i >= i)[..., None]),
    chunks_ignored=using(width=2**62),
    window_for_chunk=instead(_causal_window),
    prefix_causal=using(prefixes=lambda a: 0 * a.prefixes),
    prefix_seen_by_all=using(prefixes=lambda a: 0 * a.prefixes + a.n),
    prefix_of_the_first_text=using(prefixes=lambda a: np.broadcast_to(a.prefixes[:1], a.prefixes.shape)),
    blocks_causal=instead(lambda blocks: np.tri(len(blocks)) > 0),
    blocks_joined=using(blocks=lambda a: np.where(a.blocks >= 0, 0, -1)),
    text_is_a_block=using(blocks=lambda a: np.where(a.blocks < 0, a.blocks.max() + 1, a.blocks)),
    queries_at_the_last_key=_positioned(query=lambda a: np.broadcast_to(a.key_positions[..., -1:], a.query_positions.shape)),
    queries_at_the_first_query=_positioned(
        query=lambda a: np.broadcast_to(a.query_positions[..., :1], a.query_positions.shape)
    ),
    queries_at_slots=_positioned(
        query=lambda a: count(a.query_positions) + a.key_positions.shape[-1] - a.query_positions.shape[-1]
    ),
    keys_at_slots=_positioned(key=lambda a: count(a.key_positions)),
    keys_at_the_last_key=_positioned(key=lambda a: np.broadcast_to(a.key_positions[..., -1:], a.key_positions.shape)),
    **{
        f"scale_{words}": Mistake(
            _scaled(number),
            f"the scale is {formula}",
            "Attention is too sharp or too flat.",
            "Use the scale of the configuration, often 1 / sqrt(head_dim).",
            kind="setting",
        )
        for words, formula, number in (
            ("of_heads", "1 / sqrt(heads)", lambda d, h, s: h**-0.5),
            ("of_all_heads", "1 / sqrt(heads head_dim)", lambda d, h, s: (h * d) ** -0.5),
            ("without_root", "1 / head_dim", lambda d, h, s: 1 / d),
            ("inverted", "sqrt(head_dim): multiplied instead of divided", lambda d, h, s: d**0.5),
            ("of_half", "1 / sqrt(head_dim / 2)", lambda d, h, s: (d / 2) ** -0.5),
        )
    },
    **{
        f"scale_times_{words}": Mistake(
            using(scale=lambda a, m=m: m * a.scale),
            f"the scale is multiplied by {words.replace('_', ' ')}, {m:.6g}, which was not asked for",
            "Attention is too sharp.",
            "Apply YaRN's magnitude once: in cos and sin, or its square in the scale.",
            kind="setting",
        )
        for s in (2, 4, 8, 16, 32, 40, 64)
        for power, m in ((1, 0.1 * np.log(s) + 1), (2, (0.1 * np.log(s) + 1) ** 2))
        for words in (f"the_magnitude_of_factor_{s}{'_squared' * (power == 2)}",)
    },
    **{
        f"row_scale_{name}": Mistake(
            wrong,
            bug,
            "Far queries are too sharp or too flat.",
            "Multiply the scores of each query by its own row_scale, before the softmax.",
            kind="rows",
        )
        for name, bug, wrong in (
            ("inverted", "scores are divided by row_scale", using(row_scale=lambda a: 1 / a.row_scale)),
            ("of_the_last", "all queries have that of the last", using(row_scale=lambda a: a.row_scale[[-1] * a.q.shape[-2]])),
            ("on_keys", "row_scale multiplies the last keys instead of the queries", using(row_scale=None, k=_scaled_keys)),
            (
                "on_the_output",
                "row_scale multiplies the output",
                lambda f, a: f(**a | {"row_scale": None}) * a.row_scale[:, None],
            ),
        )
    },
    mask_added_as_numbers=_with_mask(lambda right, s, mask, sinks: right(s + mask, None, sinks)),
    cap_multiplied=_other_cap(lambda s, c: s * np.tanh(s / c)),
    chunks_for_windows=_window(lambda right, i, j, width: _one_chunk(i, j, width)),
    last_keys_of_the_cache=_window(
        lambda right, i, j, width: (np.arange(j.shape[-1]) >= j.shape[-1] - width) & (i == i)[..., None]
    ),
    **{
        f"sinks_times_{m:.4g}": Mistake(
            using(sinks=lambda a, m=m: m * a.sinks if a.sinks is not None else missing()),
            f"the sinks are multiplied by {m:.4g}, 1 / sqrt({d}): by the scale of the scores",
            "Sinks are too near 0.",
            "Scale the scores alone; the sink enters the softmax as it is.",
            only="softmax",
        )
        for d in (16, 32, 64, 80, 96, 128, 192, 256, 512)
        for m in (d**-0.5,)
    },
    mask_adds_minus_10=_with_mask(lambda right, s, mask, sinks: right(np.where(mask, s, s - 10), None, sinks)),
)
