"""Attention: the functions to check, and the mistakes that implementations make."""

from functools import partial

import numpy as np

from posref import attention
from posref.ops import Mistake, inside, missing, result, using
from posref.ops.common import UNMASKED, count, entry, of_the_first
from posref.ops.probe import ending, padded_mask, painted


def softmax(scores, mask=None, sinks=None):
    return attention.softmax(scores, mask, _column(sinks))


def attend(q, k, v, bias=None, mask=None, sinks=None, row_scale=None, *, scale, softcap=None, key_heads=None):
    more = {"row_scale": row_scale, "softcap": softcap, "sinks": _column(sinks)}
    return attention.attend(q, k, v, scale=scale, bias=bias, mask=mask, **more)


def attend_by_offset(q, k, v, bias_by_offset=None, *, scale, causal: bool = True, window=None, key_heads=None):
    return attention.attend_by_offset(q, k, v, scale=scale, bias_by_offset=bias_by_offset, causal=causal, window=window)


def attend_gradient(output_gradient, q, k, v, bias=None, mask=None, *, scale, of, key_heads=None, causal: bool = False):
    # causal: no mask is passed, and the last query is at the last key
    keys = np.arange(k.shape[-2])
    mask = attention.causal_mask(keys[-q.shape[-2] :], keys) if causal else mask
    return entry(attention.attend_gradient(output_gradient, q, k, v, scale=scale, bias=bias, mask=mask), of)


causal_mask = attention.causal_mask
window_mask = attention.window_mask


def chunk_mask(query_positions, key_positions, *, width):
    # Llama 4: a query sees the keys of its own chunk, up to itself
    return _one_chunk(query_positions, key_positions, width) & attention.causal_mask(query_positions, key_positions)


def prefix_mask(prefixes, n, padding_mask=None):
    # PaliGemma: the first `prefixes` tokens of each text see each other; later tokens are causal.
    # No token sees padding, where `padding_mask` is False; a text begins at its first token that is no padding
    places = np.arange(n)
    seen = attention.causal_mask(places, places) | _both(_in_prefix(prefixes, n, padding_mask))
    return seen if padding_mask is None else seen & padding_mask[:, None, :]


def _in_prefix(prefixes, n, padding_mask):
    first = 0 if padding_mask is None else np.argmax(padding_mask, axis=-1)[:, None]
    return (np.arange(n) >= first) & (np.arange(n) < first + prefixes[:, None])


def block_mask(blocks, *, width=None):
    # Gemma 3: tokens of one image see each other; text, -1, is causal; a window limits both, only backward
    places = np.arange(len(blocks))
    seen = attention.causal_mask(places, places) | _one_image(blocks)
    if width is None:
        return seen
    return seen & (attention.window_mask(places, places, width=width, causal=True) | (places > places[:, None]))


def _one_image(blocks):
    return (blocks[:, None] == blocks) & (blocks >= 0)


def four_terms(x, p, w_q, w_k):
    return np.stack([*attention.four_terms(x, p, w_q, w_k)])


def _column(sinks):
    return None if sinks is None else sinks[:, None]


ARRAYS = {
    "scores": lambda s: ending(painted((s.batch, s.heads, s.n_query, s.n_key), 1), 996, 1004, 1000),
    "mask": lambda s: None if s.get("causal") else padded_mask(s),
    "q": lambda s: ending(painted((s.batch, s.heads, s.n_query, s.head_dim), 1), 2048, -2048),
    "bias": lambda s: painted((s.heads, s.n_query, s.n_key), 6),
    "sinks": lambda s: painted((s.heads,), 6),
    "row_scale": lambda s: abs(painted((s.n_query,), 9)),
    "bias_by_offset": lambda s: painted((s.heads, s.n_query + s.n_key - 1), 6),
    "output_gradient": lambda s: painted((s.batch, s.heads, s.n_query, s.head_dim), 8),
    "prefixes": lambda s: np.array([3, 6, 0, 2]),  # the first, the last, the largest and the smallest differ
    "n": lambda s: 8,
    "padding_mask": lambda s: (np.arange(8) >= [[2], [0], [1], [1]]) & (np.arange(8) < [[8], [7], [8], [7]]),
    "blocks": lambda s: np.repeat([-1, 0, -1, 1, 2, -1], [1, 3 + (s.get("width") or 0), 1, 2, 2, 2]),
    "x": lambda s: painted((s.batch, s.n_key, s.head_dim), 1),
    "p": lambda s: painted((s.batch, s.n_key, s.head_dim), 2),
    "w_q": lambda s: painted((s.head_dim, 4), 4),
    "w_k": lambda s: painted((s.head_dim, 4), 6),
}
TAGS = {"softmax": "attention"}  # errors of all weights are judged together too: 1e-6 in the sum is in each of a row
ASKED = ("bias", "sinks", "row_scale", "bias_by_offset", "padding_mask")
MEANT = {"prefix_mask": lambda a: True if a.padding_mask is None else a.padding_mask[:, :, None]}


def _scores(change):
    """Other scores: change(right, q, k, given), with the keywords in `given`."""
    return inside(attention, "scores", lambda right: lambda q, k, **given: change(right, q, k, given))


def _biased(change):
    return Mistake(
        _scores(lambda right, q, k, given: change(right, q, k, given) if given.get("bias") is not None else missing()),
        kind="bias",
    )


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
    return Mistake(
        _weights(lambda right, s, mask, sinks: change(right, s, mask, sinks) if sinks is not None else missing()), kind="sink"
    )


def _empty_rows(number):
    """One number for every weight of a row without visible keys; NotHere with sinks, which have that weight."""

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
    """Softmax over queries: every column sums to 1, even a fully masked one, by -1e9. NotHere with sinks, which belong to
    rows."""
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
    """The mask without the keys after the last whole tile of 64."""
    n = a.k.shape[-2]
    if n < 64 or n % 64 == 0:
        missing()
    whole = np.arange(n)[None] < n // 64 * 64
    return whole if a.mask is None else a.mask & whole


def _causal(shift):
    """A causal mask whose rows are moved by shift(query_positions, key_positions)."""
    return Mistake(inside(attention, "causal_mask", lambda right: lambda i, j: right(i + shift(i, j), j)), kind="mask")


def _window(change):
    """Other windows, in a mask or in attention: change(right, query_positions, key_positions, width)."""

    def other(right):
        def windowed(i, j, *, width, ahead=None, causal=False):
            near = change(partial(right, ahead=ahead), i, j, width)
            return near & attention.causal_mask(i, j) if causal else near

        return windowed

    return Mistake(inside(attention, "window_mask", other), kind="window")


def _ahead(change):
    """Another width ahead of the query, if the window has its own width there."""
    return lambda a: missing() if a.get("ahead") is None or a.causal else change(a)


def _one_chunk(i, j, width):
    return j[..., None, :] // width == i[..., :, None] // width


def _backward(right, i, j, width):
    return right(i, j, width=width, causal=True)


def _without_the_row_sum(f, a, diagonal=False):
    """ds = a da, or a (1 - a) da: the sum over the other keys of a row is left out."""
    if a.get("of") not in ("q", "k", "bias") or (a.of == "k" and a.k.shape[:-2] != a.q.shape[:-2]):
        missing()
    k, v = (attention.with_heads_of(a.q, x) for x in (a.k, a.v))
    weights = attention.softmax(attention.scores(a.q, k, scale=a.scale, bias=a.get("bias")), a.get("mask"))
    by_score = weights * (a.output_gradient @ np.swapaxes(v, -1, -2)) * (1 - weights if diagonal else 1)
    columns = np.swapaxes(by_score, -1, -2)
    return {"q": lambda: a.scale * (by_score @ k), "k": lambda: a.scale * (columns @ a.q), "bias": lambda: by_score}[a.of]()


def _of_one_head(f, a):
    """Of the heads that share a key, only the first gives a gradient."""
    if a.get("of") not in ("k", "v") or a.k.ndim < 3 or a.q.shape[-3] == a.k.shape[-3]:
        missing()
    first = np.arange(a.q.shape[-3]) % (a.q.shape[-3] // a.k.shape[-3]) == 0
    return f(**a | {"output_gradient": a.output_gradient * first[:, None, None]})


def _gradient_unscaled(f, a):
    return f(**a) / a.scale if a.get("of") in ("q", "k") else missing()


MISTAKES = {
    "bias_before_scale": Mistake("bias_before_scale").words("""
        scale (q k^T + bias): the bias is scaled with the scores, as in Falcon
        Biases are sqrt(d) times too small."""),
    "bias_twice": _biased(lambda right, q, k, given: right(q, k, **given | {"bias": 2 * given["bias"]})).words("""
        the bias is part of the mask and is added once more
        Position weighs twice as much.
        Add the bias in one place."""),
    "bias_subtracted": _biased(lambda right, q, k, given: right(q, k, **given | {"bias": -given["bias"]})).words("""
        the bias is subtracted
        What should be near is far.
        Add the bias; it carries its own sign."""),
    "bias_of_the_first_head": _biased(
        lambda right, q, k, given: right(q, k, **given | {"bias": given["bias"][..., :1, :, :]})
    ).words("""
        all heads add the bias of head 0
        Head 0 is right and no other.
        Step along the head axis of the bias."""),
    "no_mask": Mistake(UNMASKED, kind="mask").words("""
        the mask is left out: masked keys are seen
        Loss is too good in training, text is bad in generation.
        Pass the mask."""),
    "mask_left_aligned": Mistake("mask_left_aligned", seen_in=("pytorch/pytorch#108108",)).words("""
        the mask is replaced by a triangle that starts at key 0, with fewer queries than keys as well
        Prefill is right, decoding with a cache sees one key."""),
    "mask_after_softmax": Mistake(
        _with_mask(lambda right, s, mask, sinks: np.where(mask, right(s, None, sinks), 0)), kind="mask"
    ).words("""
        the softmax runs over all keys, and masked weights are set to zero after it
        Weights sum to less than 1; early rows are too small.
        Mask the scores, or divide by the sum again."""),
    "mask_multiplied": Mistake(
        _with_mask(lambda right, s, mask, sinks: right(np.where(mask, s, 0), None, sinks)), kind="mask"
    ).words("""
        the scores are multiplied by the mask: a masked key has score 0 and weight exp(0)
        Masked keys are seen, more than those with negative scores.
        Select before the softmax: np.where(mask, scores, -inf)."""),
    "softmax_over_queries": Mistake(_weights(_over_queries), kind="softmax").words("""
        the softmax runs over the queries instead of the keys
        Columns sum to 1 and rows do not.
        Take the softmax along the last axis, that of the keys."""),
    "last_keys_left_out": Mistake(using(mask=_whole_tiles), kind="mask", only="attend").words("""
        the loop over tiles of 64 keys leaves out the last tile if it is not full
        Right where the number of keys is a multiple of the tile.
        Let the loop reach the last tile, and mask what is beyond its keys."""),
    "empty_row_uniform": Mistake(_empty_rows(lambda n: 1 / n), seen_in=("microsoft/onnxruntime#28904",), kind="empty").words("""
        a row without keys has the weights 1/n, because masked scores are one large negative number
        Rows of padding carry the mean of the values.
        Set rows in which nothing may be attended to to zero."""),
    "empty_row_nan": Mistake(_empty_rows(lambda n: np.nan), seen_in=("robertknight/rten#1321",), kind="empty").words("""
        a row without keys is NaN, because masked scores are -inf and exp(-inf - (-inf)) is NaN
        NaN in rows of padding, in the next layer everywhere.
        Set rows in which nothing may be attended to to zero."""),
    "base_two": Mistake(
        _weights(lambda right, s, mask, sinks: right(s * np.log(2), mask, sinks if sinks is None else sinks * np.log(2))),
        kind="scale",
    ).words("""
        2^s for e^s: exp2 is used and the scores are not multiplied by log2(e)
        Attention is too flat.
        Multiply scores by log2(e) where exp2 takes the place of exp."""),
    "cap_left_out": Mistake(
        using(softcap=lambda a: None if a.softcap else missing()),
        seen_in=("vllm-project/vllm-metal#665", "sgl-project/sgl-kernel-xpu#491"),
        kind="cap",
    ).words("""
        the scores are not capped by softcap
        Right where scores are small, wrong where they are large.
        Pass attn_logit_softcapping."""),
    "cap_without_division": Mistake(_other_cap(lambda s, c: c * np.tanh(s)), kind="cap").words("""
        c tanh(s): the scores are not divided by the cap before tanh
        Nearly all scores are c or -c.
        Divide by the cap before tanh: c tanh(s / c)."""),
    "cap_without_factor": Mistake(_other_cap(lambda s, c: np.tanh(s / c)), kind="cap").words("""
        tanh(s / c): the result is not multiplied by the cap
        Attention is flat.
        Multiply by the cap after tanh: c tanh(s / c)."""),
    "cap_clipped": Mistake(_other_cap(lambda s, c: np.clip(s, -c, c)), kind="cap").words("""
        min(max(s, -c), c): the scores are clipped instead of bent by tanh
        Right where scores are small.
        Bend the scores: c tanh(s / c)."""),
    "cap_before_scale": Mistake(_capped(_cap_before_scale), kind="cap").words("""
        scale cap(q k^T): the cap is applied before the scale
        Large scores are capped at scale c.
        Scale first, then cap: cap(scale q k^T)."""),
    "cap_after_bias": Mistake(_capped(_cap_after_bias), kind="cap").words("""
        cap(scores + bias): the bias is capped too, as in flashinfer
        Distance counts less.
        Cap the scores first, then add the bias."""),
    "cap_after_mask": Mistake(
        inside(attention, "softmax", _cap_after_mask), seen_in=("Dao-AILab/flash-attention#1025",), kind="cap"
    ).words("""
        cap(masked scores): the large negative number of the mask is capped to -c
        A little of the future is seen, much where the cap is small.
        Mask after the cap."""),
    "sink_left_out": _with_sinks(lambda right, s, mask, sinks: right(s, mask))
    ._replace(seen_in=("vllm-project/vllm#52156", "NVIDIA/TransformerEngine#2541"))
    .words("""
        the sink is left out of the sum of the softmax, or is added to every score of a row, which cancels
        Weights sum to 1; the model repeats itself or ends.
        Add exp(sink) to the sum of the exponentials, with the same maximum subtracted."""),
    "sink_of_zero": _with_sinks(lambda right, s, mask, sinks: right(s, mask, 0 * sinks)).words("""
        1 + sum exp(s): every head has the sink 0
        The learned sinks are not loaded.
        Load the sinks; every head adds the exponential of its own below the fraction."""),
    "sink_of_the_first_head": _with_sinks(lambda right, s, mask, sinks: right(s, mask, sinks[..., :1, :])).words("""
        all heads have the sink of head 0
        Head 0 is right and no other.
        Give every head its own sink, as a column (h, 1)."""),
    "sink_beside_the_maximum": _with_sinks(_sink_beside_the_maximum).words("""
        exp(sink) beside exp(s - max): the maximum is subtracted from the scores and not from the sink
        The share of the sink moves with the largest score.
        Subtract the maximum from the sink too: exp(sink - max)."""),
    "sink_without_exp": _with_sinks(_sink_without_exp).words("""
        sum exp(s - max) + sink: the sink is a logit and is added as if it were its exponential
        Negative sinks raise the weights of all keys.
        Add exp(sink - max) to the sum of the exponentials."""),
    "sink_scaled": Mistake(
        using(sinks=lambda a: a.scale * a.sinks if a.get("sinks") is not None else missing()), kind="sink", only="attend"
    ).words("""
        the sink is multiplied by the scale, like a score
        Sinks are sqrt(d) times too small.
        Scale the scores alone; the sink enters the softmax as it is."""),
    "row_scale_left_out": Mistake(_with_row_scale(lambda a: None), kind="rows", only="attend").words("""
        the temperature row_scale of the queries is left out
        Right for the first positions alone.
        Multiply the scores of each query by its row_scale, before cap and bias."""),
    "row_scale_after_bias": Mistake(_scores(_row_scale_after_bias), kind="rows").words("""
        row_scale (scores + bias): the bias is multiplied too
        Biases grow with the position.
        Multiply by row_scale first, then add the bias."""),
    "heads_tiled": Mistake(
        inside(attention, "repeat_heads", _tiled),
        seen_in=("onnx/onnx#7274", "ekzhang/jax-js#180", "apple/axlearn#842"),
        kind="heads",
    ).words("""
        query head a uses key head a mod h_key: grouped keys and values are tiled (0, 1, 0, 1), not repeated (0, 0, 1, 1)
        Wrong with more than one key head and grouped queries.
        repeat_interleave, or numpy's repeat, along the heads."""),
    "values_of_the_first_head": Mistake(of_the_first("v", -3), kind="heads").words("""
        all heads read the values of head 0
        Head 0 is right and no other.
        Step along the head axis of the values; head 0 serves all only where the model has one key head."""),
    "causal_ignored": Mistake(
        using(causal=lambda a: False if a.causal else missing()), kind="mask", only="attend_by_offset"
    ).words("""
        the causal mask is left out
        Queries see the future.
        Mask the keys after the query wherever causal is asked for."""),
    "causal_left_aligned": _causal(lambda i, j: -i[..., :1])
    ._replace(seen_in=("pytorch/pytorch#108108", "onnx/onnx#8068", "pytorch/executorch#21749"))
    .words("""
        the queries start at position 0, though there are fewer queries than keys
        Prefill is right, decoding with a cache sees one key.
        Align the triangle at the last query and the last key."""),
    "causal_strict": _causal(lambda i, j: -1).words("""
        j < i: a token does not see itself
        The first row has nothing to attend to.
        Compare with <=: j <= i."""),
    "sees_one_ahead": _causal(lambda i, j: 1).words("""
        j <= i + 1: the triangle begins one key too late
        Every token sees the next.
        Let the triangle end at the diagonal: j <= i."""),
    "window_ignored": _window(lambda right, i, j, width: right(i, j, width=2**62)).words("""
        the window is ignored: all keys are inside
        Right for short texts.
        Mask the keys with |j - i| >= width."""),
    "window_one_more": _window(lambda right, i, j, width: right(i, j, width=width + 1))
    ._replace(seen_in=("huggingface/transformers#39408", "NVIDIA-NeMo/Megatron-Bridge#2656"))
    .words("""
        |j - i| <= width: the distance `width` is inside the window
        One key too many, beyond the first `width` tokens.
        A causal window of w keys is window_size = (w - 1, 0) where ends are inclusive."""),
    "window_one_less": _window(lambda right, i, j, width: right(i, j, width=width - 1) if width > 1 else missing()).words("""
        |j - i| < width - 1: the query's own position is not counted in the width
        One key is missing, beyond the first `width` tokens.
        Compare |j - i| < width: a causal window holds width keys, the query's own among them."""),
    "window_left_aligned": _window(lambda right, i, j, width: right(i - i[..., :1], j, width=width)).words("""
        the window lies around row numbers, so fewer queries than keys are aligned at the first key
        Decoding with a cache sees the oldest keys.
        Give the queries their own positions; the last query stands at the last key."""),
    "window_forward_too": Mistake(
        using(causal=lambda a: False if a.causal else missing()), kind="window", only="window_mask"
    ).words("""
        |j - i| < width: a causal window looks ahead as well
        Every token sees the next width - 1 tokens.
        And the window with the causal mask: 0 <= i - j < width."""),
    "window_backward_alone": Mistake(
        lambda f, a: missing() if a.get("causal", "blocks" in a) else _window(_backward).wrong(f, a), kind="window"
    ).words("""
        0 <= i - j < width: a window of both directions only looks back
        An encoder cannot see what follows.
        Compare |j - i| < width; causal attention alone adds j <= i."""),
    "ahead_ignored": Mistake(using(ahead=_ahead(lambda a: None)), kind="window", only="window_mask").words("""
        |j - i| < width on both sides: the width ahead is ignored
        A streaming encoder waits for as many tokens as it looks back.
        Compare -ahead < i - j < width."""),
    "ahead_one_less": Mistake(
        using(ahead=_ahead(lambda a: a.ahead - 1 or missing())), kind="window", only="window_mask"
    ).words("""
        -ahead + 1 < i - j: one key is missing ahead
        Right behind the query, and wrong ahead of it.
        Compare -ahead < i - j < width, or window_size = (width - 1, ahead - 1) with its ends."""),
    "ahead_one_more": Mistake(using(ahead=_ahead(lambda a: a.ahead + 1)), kind="window", only="window_mask").words("""
        -ahead <= i - j: one key too many is seen ahead
        Right behind the query, and wrong ahead of it.
        Compare -ahead < i - j < width, or window_size = (width - 1, ahead - 1) with its ends."""),
    "sides_of_the_window_exchanged": Mistake(
        using(width=_ahead(lambda a: a.ahead), ahead=_ahead(lambda a: a.width)), kind="window", only="window_mask"
    ).words("""
        -width < i - j < ahead: the sides of the window are exchanged
        The longer side looks into the future.
        Compare -ahead < i - j < width with i the position of the query."""),
    "bias_reversed": Mistake(
        using(bias_by_offset=lambda a: a.bias_by_offset[..., ::-1] if a.bias_by_offset is not None else missing()),
        kind="bias",
        only="attend_by_offset",
    ).words("""
        the bias is read at i - j instead of j - i
        Past and future change places.
        Look up the offset j - i, key minus query."""),
    "bias_one_off": Mistake(
        using(bias_by_offset=lambda a: np.roll(a.bias_by_offset, 1, -1) if a.bias_by_offset is not None else missing()),
        kind="bias",
        only="attend_by_offset",
    ).words("""
        the bias is read at j - i - 1: the index of offset 0 is one off
        Every bias is that of the neighbor.
        Entry j - i + n_query - 1 belongs to row i and column j."""),
    "sign": Mistake("sign", only="causal_mask").words("""
        |i - j| and j >= i: the offset has the wrong sign
        Every token sees itself and the future."""),
    "row_sum_left_out": Mistake(_without_the_row_sum, kind="gradient", only="attend_gradient").words("""
        ds = a da: the row sum sum_j a da is not subtracted
        The gradients by the scores of a row do not add up to 0.
        Subtract the sum of each row: ds = a (da - sum_j a da)."""),
    "sharing_not_summed": Mistake(_of_one_head, kind="gradient", only="attend_gradient").words("""
        keys and values shared by a group of heads get the gradient of the first head instead of the sum
        They learn from a part of the queries.
        Sum over the heads that share a key."""),
    "gradient_unscaled": Mistake(_gradient_unscaled, kind="gradient", only="attend_gradient").words("""
        dq = ds k, dk = ds^T q: the gradients of queries and keys are not scaled
        They are sqrt(d) times too large.
        Multiply both by the scale: dq = scale ds k, dk = scale ds^T q."""),
    "gradient_unweighted": Mistake(
        lambda f, a: f(**a | {"q": 0 * a.q, "bias": None}) if a.get("of") == "v" else missing(),
        kind="gradient",
        only="attend_gradient",
    ).words("""
        the gradient of the values uses uniform weights instead of the weights of the forward pass
        The gradient by the values is an average.
        Keep the weights of the forward pass, or make them again from the same scores: dv = a^T do."""),
    "cross_terms_exchanged": Mistake(result(lambda y: y[[0, 2, 1, 3]]), only="four_terms").words("""
        the terms come as (a), (c), (b), (d): content-to-position and position-to-content change places
        Transformer-XL's two vectors meet the wrong terms.
        Content with position comes before position with content: (b) is x_i W_Q W_K^T p_j, (c) is p_i W_Q W_K^T x_j."""),
    "matrices_exchanged": Mistake(using(w_q=lambda a: a.w_k, w_k=lambda a: a.w_q), only="four_terms").words("""
        W_K W_Q^T: the projections of queries and keys are exchanged
        Every term is another.
        Multiply queries by W_Q and keys by W_K: W_Q W_K^T."""),
    "terms_transposed": Mistake(result(lambda y: np.swapaxes(y, -1, -2)), only="four_terms").words("""
        rows are keys and columns are queries
        Attention looks the wrong way.
        Rows are queries, columns are keys; transpose the terms."""),
}


def _scaled(number):
    """Another scale; NotHere if it is 1, or half or twice the right scale, which are mistakes of their own."""

    def scale(a):
        made = number(a.q.shape[-1], a.q.shape[-3] if a.q.ndim > 2 else missing(), a.scale)
        return missing() if np.isclose(made, (1, a.scale / 2, 2 * a.scale)).any() else made

    return using(scale=scale)


def _positioned(**change):
    return using(**{f"{name}_positions": new for name, new in change.items()})


def _forgotten_keys(right, a):
    """The weights of the forward pass without the keys beyond a causal triangle that starts at key 0."""
    if not a.get("causal"):
        missing()
    return lambda s, mask=None, *rest: np.where(np.tri(*s.shape[-2:]) > 0, right(s, mask, *rest), 0)


def _and_causal(right, a):
    def softmax(s, mask=None, *rest):
        i, j = (np.arange(s.shape[-2]) + s.shape[-1] - s.shape[-2], np.arange(s.shape[-1]))
        if "query_positions" in a:
            i, j = (
                a[name][:, None] if a[name].ndim > 1 and s.ndim > 3 else a[name]
                for name in ("query_positions", "key_positions")
            )
        causal = j[..., None, :] <= i[..., None]
        return right(s, causal if mask is None else causal & mask, *rest)

    return softmax


def _tokens(a):
    return np.ones((len(a.prefixes), a.n), dtype=bool) if a.padding_mask is None else a.padding_mask


def _both(flags):
    return flags[:, :, None] & flags[:, None, :]


def _padded(change):
    """Another prefix mask of padded texts: change(causal, prefix, prefix counted from column 0, tokens, tokens as keys)."""

    def wrong(f, a):
        tokens = a.padding_mask if a.padding_mask is not None else missing()
        prefix, early = (_in_prefix(a.prefixes, a.n, padding) for padding in (tokens, None))
        return change(np.tri(a.n) > 0, prefix, early, tokens, tokens[:, None, :])

    return Mistake(wrong, kind="padded", only="prefix_mask")


def _in_int16(p):
    return (p + 2**15) % 2**16 - 2**15


def _int16_sums(sums):
    """A window of positions in int16, whose limits sums(query, key, width, ahead) wrap too."""

    def wrong(f, a):
        i, j = a.query_positions[..., :, None], a.key_positions[..., None, :]
        (low, high), (least, most) = sums(i, j, a.width, a.width if a.ahead is None else a.ahead)
        below, above = _in_int16(low) < _in_int16(high), _in_int16(least) < _in_int16(most)
        return below & (_in_int16(j) <= _in_int16(i) if a.causal else above)

    return wrong


FURTHER = {
    **{
        f"int16_{where}": Mistake(_int16_sums(sums), kind="positions", only="attention.window_mask").words(f"""
            positions and {formula} are held as 16-bit integers, which wrap at 32768
            Right until 32767 - width, then keys are lost or seen that are far away.
            Hold positions, and sums with them, in int32 or int64.""")
        for where, formula, sums in (
            ("key_plus_width", "key + width", lambda i, j, w, ahead: ((i, j + w), (j - ahead, i))),
            ("query_minus_width", "query - width", lambda i, j, w, ahead: ((i - w, j), (j, i + ahead))),
        )
    },
    "padding_ignored": _padded(lambda causal, prefix, early, tokens, keys: causal | _both(early)).words("""
        the padding mask is ignored: padding is seen, and prefixes are counted from column 0
        Right for texts without padding.
        And the mask with padding_mask[:, None, :], and count the prefix from the first token."""),
    "padding_seen": _padded(lambda causal, prefix, early, tokens, keys: causal | _both(prefix)).words("""
        padding is seen, though prefixes begin at the first token
        Right for texts without padding.
        And the mask with padding_mask[:, None, :]."""),
    "prefix_from_column_0": _padded(lambda causal, prefix, early, tokens, keys: (causal | _both(early)) & keys).words("""
        prefixes are counted from column 0, padding among them, instead of from the first token
        Right with padding on the right; with padding on the left, the end of a prefix is causal.
        Count the prefix from the first token, or mark its tokens before the text is padded."""),
    "padding_seen_in_the_prefix": _padded(lambda causal, prefix, early, tokens, keys: (causal & keys) | _both(early)).words("""
        the prefix, counted from column 0, is put over the mask of padding: padding within it is seen
        Right with padding on the right.
        Put the prefix in, then and the mask with padding_mask[:, None, :]."""),
    "padding_is_prefix": _padded(
        lambda causal, prefix, early, tokens, keys: (causal & keys) | _both(prefix | ~tokens)
    ).words("""
        padding counts as prefix, as where its token type is 0 too: tokens of the prefix see padding
        Right for texts without padding.
        Put the prefix in, then and the mask with padding_mask[:, None, :]."""),
    "padding_mask_inverted": _padded(lambda causal, prefix, early, tokens, keys: (causal | _both(prefix)) & ~keys).words("""
        the padding mask is inverted: padding alone is seen
        No token sees another.
        True means a token; invert a mask of the other convention once."""),
    "diagonal_of_the_softmax": Mistake(
        lambda f, a: _without_the_row_sum(f, a, diagonal=True), kind="gradient", only="attend_gradient"
    ).words("""
        ds = a (1 - a) da: the gradient of the softmax has the diagonal of its Jacobian alone
        A score learns from its own weight; the gradients of a row do not add up to 0.
        Subtract the sum of each row: ds = a (da - sum_j a da)."""),
    "backward_left_aligned": Mistake(
        inside(attention, "softmax", _forgotten_keys), kind="mask", only="attention.attend_gradient"
    ).words("""
        the backward pass has its triangle at key 0, the forward pass at the last key
        Right for as many queries as keys; with more keys most gradients are 0.
        Align both triangles at the last query and the last key."""),
    "all_seen_from_the_prefix": Mistake(
        lambda f, a: f(**a) | _tokens(a)[:, None, :] & _in_prefix(a.prefixes, a.n, a.padding_mask)[..., None],
        only="prefix_mask",
    ).words("""
        queries of the prefix see all keys: that the key is in the prefix too is not asked
        The prefix sees the answer.
        Both the query and the key have to be in the prefix."""),
    "not_causal": Mistake(
        inside(attention, "causal_mask", lambda right: lambda i, j: (j >= j)[..., None, :] & (i >= i)[..., None]),
        kind="mask",
        only="chunk_mask prefix_mask block_mask",
    ).words("""
        keys after the query are seen too: the causal mask is left out
        Every token sees the future.
        And it with the causal mask."""),
    "blocks_causal": Mistake(using(blocks=lambda a: 0 * a.blocks - 1), only="attention.block_mask").words("""
        images are causal too: a patch does not see those after it
        Images are described worse.
        Let tokens of one image see each other."""),
    "first_block_alone": Mistake(using(blocks=lambda a: np.where(a.blocks == 0, 0, -1)), only="attention.block_mask").words("""
        only the patches of the first image see each other: later images are causal
        Right with one image.
        Find the patches of every image."""),
    "blocks_joined": Mistake(using(blocks=lambda a: np.where(a.blocks >= 0, 0, -1)), only="attention.block_mask").words("""
        patches of one image see those of later images
        Right with one image.
        Number the images: tokens of one image alone see each other."""),
    "blocks_beyond_the_window": Mistake(
        lambda f, a: f(**a) | _one_image(a.blocks) if a.get("width") else missing(), only="block_mask"
    ).words("""
        patches see all of their image, also keys further back than the window
        Right for images that are shorter than the window.
        And the window with all of the mask: (causal or same image) and i - j < width."""),
    "text_is_a_block": Mistake(
        using(blocks=lambda a: np.where(a.blocks < 0, a.blocks.max() + 1, a.blocks)), only="attention.block_mask"
    ).words("""
        text counts as an image: text tokens see those after them
        Loss is too good in training.
        Leave text causal."""),
    "queries_at_slots": Mistake(
        _positioned(query=lambda a: count(a.query_positions) + a.key_positions.shape[-1] - a.query_positions.shape[-1])
    ).words("""
        queries have their slot in the cache as position, keys their own
        Right where slots and positions are equal; wrong with left padding and after eviction.
        Turn queries and keys by positions, or both by slots."""),
    "keys_at_slots": Mistake(_positioned(key=lambda a: count(a.key_positions))).words("""
        keys have their slot in the cache as position, queries their own
        Right where slots and positions are equal; wrong with left padding and after eviction.
        Turn queries and keys by positions, or both by slots."""),
    **{
        f"scale_{words}": Mistake(_scaled(number), kind="setting").words(f"""
            the scale is {formula}
            Attention is too sharp or too flat.
            Use the scale of the configuration, often 1 / sqrt(head_dim).""")
        for words, formula, number in (
            ("of_heads", "1 / sqrt(heads)", lambda d, h, s: h**-0.5),
            ("of_all_heads", "1 / sqrt(heads head_dim)", lambda d, h, s: (h * d) ** -0.5),
            ("without_root", "1 / head_dim", lambda d, h, s: 1 / d),
            ("inverted", "sqrt(head_dim): multiplied instead of divided", lambda d, h, s: d**0.5),
            ("of_half", "1 / sqrt(head_dim / 2)", lambda d, h, s: (d / 2) ** -0.5),
        )
    },
    **{
        f"row_scale_{name}": Mistake(wrong, kind="rows").words(f"""
            row_scale multiplies {bug}
            Far queries are too sharp or too flat.
            Multiply the scores of each query by its own row_scale, before the softmax.""")
        for name, bug, wrong in (
            ("on_keys", "the last keys instead of the queries", using(row_scale=None, k=_scaled_keys)),
            ("on_the_output", "the output", lambda f, a: f(**a | {"row_scale": None}) * a.row_scale[:, None]),
        )
    },
    "mask_added_as_numbers": Mistake(_with_mask(lambda right, s, mask, sinks: right(s + mask, None, sinks))).words("""
        the booleans of the mask are added to the scores as 0 and 1
        Keys that may be seen have e times the weight of the others.
        Add 0 and -infinity, or choose with where."""),
    "cap_multiplied": Mistake(_other_cap(lambda s, c: s * np.tanh(s / c))).words("""
        s tanh(s / c): the scores are multiplied by the tangent instead of the cap
        Negative scores become positive.
        Write c tanh(s / c)."""),
    "chunks_for_windows": _window(lambda right, i, j, width: _one_chunk(i, j, width)).words("""
        a query sees the keys of its own chunk, floor(i / width) = floor(j / width), instead of the last `width` keys
        The first query of each chunk sees itself alone.
        Compare j - i with the width; chunks are another mask (Llama 4)."""),
    "last_keys_of_the_cache": _window(
        lambda right, i, j, width: (np.arange(j.shape[-1]) >= j.shape[-1] - width) & (i == i)[..., None]
    ).words("""
        every query sees the last `width` keys of the cache, wherever the query is
        Right for steps of one token; in prefill the first queries see nothing.
        Compare the position of each query with that of each key."""),
    **{
        f"mask_adds_minus_{n}": Mistake(
            _with_mask(lambda right, s, mask, sinks, n=n: right(np.where(mask, s, s - n), None, sinks))
        ).words(f"""
            masked scores are lowered by {n}{" or more" * (n == 20)} instead of set to minus infinity
            Masked keys keep a weight, all of it where a query sees no key.
            Add minus infinity, or the least number of the dtype.""")
        for n in (1, 2, 3, 4, 5, 8, 10, 20)
    },
    "weights_uniform": Mistake(_weights(lambda right, s, mask, sinks: right(0 * s, mask, sinks))).words("""
        all keys that are seen weigh the same: the scores are not used
        The output is the mean of the values.
        Take the softmax of the scores."""),
    "causal_too": Mistake(inside(attention, "softmax", _and_causal), kind="mask").words("""
        keys after the query are hidden, though no causal mask is asked for
        An encoder does not see what follows.
        Pass the mask of the contract alone, or none."""),
}
