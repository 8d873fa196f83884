"""Attention: softmax with empty rows and sinks, caps, grouped heads, windows, chunks and steps, gradients."""

import mpmath
import numpy as np

from proofs.attention import definition
from proofs.vectors import *

SOURCES = (
    "Vaswani et al., Attention Is All You Need, arXiv 1706.03762, Eq. (1)",
    "Gemma 2, arXiv 2408.00118, section 2 (softcap); gpt-oss, arXiv 2508.10925, section 2 (sinks)",
    "Dai et al., Transformer-XL, arXiv 1901.02860, section 3.3 (four terms)",
)

CONVENTIONS = {
    "axes": "q, k, v are (.., heads, n, d); bias and seen broadcast to the scores (.., heads, n_query, n_key)",
    "seen": "the mask as integers: 1 may attend, 0 may not; a query that may attend to nothing gets zeros",
    "sinks": "one per head: exp(sink) enters the sum of the exponentials and nothing else",
    "row_scale": "a factor for the scores of each query",
    "heads": "query head a uses key head floor(a key_heads / heads)",
    "op attend": "softmax(cap(scale row_scale q k^T) + bias) v with cap(s) = softcap tanh(s / softcap)",
    "op attend_by_offset": "entry j - i + n_query - 1 of bias_by_offset belongs to row i and column j; rows and columns are "
    "aligned at the end: causal means j <= i + n_key - n_query, a window |j - i - (n_key - n_query)| < window",
    "op attend_gradient": "the gradient of sum(output_gradient * output) by q, k, v or the scores (bias), as `of` says",
    "op causal_mask": "1 where the key is at or before the query",
    "op chunk_mask": "1 where the key is at or before the query, and floor(key / width) = floor(query / width)",
    "op prefix_mask": "1 where the key is at or before the query, or both are in the prefix of the text",
    "op block_mask": "1 where the key is at or before the query, or both are in one image; blocks has -1 for text; with width "
    "where query - key < width too",
    "op four_terms": "x x, x p, p x, p p of (x + p) W_Q W_K^T (x + p)^T, stacked",
    "op softmax": "exp(s) / (exp(sink) + sum exp(s)) over the keys that are seen",
    "op window_mask": "1 where |key - query| < width, with causal where 0 <= query - key < width, "
    "with ahead where -ahead < query - key < width",
}
REJECTED = (
    ("attention/attend/h2-d4/sinks", "keys", {"k": fewer}, "shape", "As many keys as values."),
    ("attention/attend/h2-d4/sinks", "heads", {"k": lambda k: k[[0, 1, 1]], "v": lambda v: v[[0, 1, 1]]}, "shape", "2 and 3."),
    ("attention/attend/h2-d4/sinks", "mask", {"seen": cut}, "shape", "A mask has a column for every key."),
    ("attention/by-offset/h4-d4/cached", "bias", {"bias_by_offset": cut}, "shape", "3 queries and 5 keys have 7 offsets."),
    ("attention/masks/w2/window", "width-0", {"width": 0}, "range", "A window holds its own token."),
)
REASONS = """
causal_mask masks linear_scaling | j <= i is j/4 <= i/4
prefix_mask masks causal_left_aligned | there are as many queries as keys
block_mask masks causal_left_aligned | there are as many queries as keys
block_mask masks window_left_aligned | queries and keys start at 0
pair attend attend no_row_maximum sink_beside_the_maximum | a sink is right beside a maximum of 0
pair attend_by_offset by-offset causal_ignored window_backward_alone | a window backward alone is causal
pair window_mask masks window_backward_alone window_forward_too | a window backward alone is causal
pair window_mask masks ahead_one_less ahead_one_more | one less and one more is the window
mutant _summed_over_sharing: heads, key_heads = * | heads that share nothing are summed alone: the same
mutant _summed_over_sharing: return gradient if () in * | heads that share nothing are summed alone: the same
mutant _summed_over_sharing: in_groups = *key_heads, -2,* | numpy infers the size that is negative, whichever it is
mutant row_maximum: if scores.shape* | one key is its own sum; and no case is without keys: C has no empty array
mutant row_maximum: return scores.sum(* | no case is without keys: C has no empty array
mutant with_heads_of: *0 in heads + key_heads* | one is broadcast; queries have as many heads as keys or more
"""

SCORES = "scale_ignored scale_squared no_bias bias_before_scale bias_twice bias_subtracted bias_of_the_first_head"
MASKED = "no_mask mask_inverted mask_after_softmax mask_multiplied softmax_over_queries"
CAPPED = ["left_out", "without_division", "without_factor", "clipped", "before_scale", "after_bias", "after_mask"]
SUNK = "sink_left_out sink_of_zero sink_of_the_first_head sink_beside_the_maximum sink_without_exp"
WINDOW = "window_ignored window_one_more window_one_less"


def vectors():
    yield from _softmax()
    yield from _attend()
    yield from _by_offset()
    yield _batch_by_offset()
    yield from _sequence()
    yield from _gradients()
    yield from _extreme_gradients()
    yield from _grouped_gradients()
    yield from _batched_gradients()
    yield from _masks()
    yield from _structured_masks()
    yield _terms("terms")
    yield _terms("batch", 2)


def _grouped(x, heads):
    return np.repeat(x, heads // x.shape[-3], axis=-3)


def _output(q, k, v, *, scale, bias=None, seen=None, sinks=None, rows=None, softcap=None, models=tuple(MODELS)):
    """(output, cond)."""
    s = dot(exact(q), exact(_grouped(k, q.shape[-3])), scale)
    s = s if rows is None else product(s, exact(rows[:, None]))
    s = s if softcap is None else cap(s, softcap)
    s = s if bias is None else total(s, exact(np.broadcast_to(bias, s[0].shape)))
    weights = softmax(s, None if seen is None else np.array(seen) != 0, sinks, models)
    return average(weights, exact(_grouped(v, q.shape[-3])))


def _softmax():
    seen = [[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [0, 1, 1, 1, 1]]
    yield _softmax_case("empty-row", seen, None, MASKED + " empty_row_uniform base_two")
    yield _softmax_case("sinks", seen, [1.5, -0.75], SUNK + " no_mask", comment="The second row sees the sink alone.")
    large = np.where(painted((2, 3, 5), 1) > 0, 1000.0, 1004.0)
    yield _softmax_case("large", None, None, "base_two", large, comment="exp(s) overflows where no maximum is taken.")
    far = np.where(painted((2, 3, 5), 1) > 0, 1000.0, -1000.0)
    far[..., 0] = 1004
    yield _softmax_case("far", None, [1.5, -0.75], "base_two sink_beside_the_maximum", far, comment="A row spans 2004.")
    far[:] = [1000, -1000, -1004, 1004, -1000]
    yield _softmax_case("far-masked", [[0, 1, 1, 0, 1]] * 3, None, "no_mask base_two", far, comment="The largest are masked.")


def _softmax_case(probe, seen, sinks, kills, scores=None, **rest):
    scores = painted((2, 3, 5), 1) if scores is None else scores
    sink = None if sinks is None else np.array(sinks)[:, None]
    mask = None if seen is None else np.array(seen) != 0
    weights = np.empty(scores.shape, dtype=object)
    for row in np.ndindex(weights.shape[:-1]):
        s = [mpmath.mpf(x) for x in scores[row]]
        seen_here = [True] * len(s) if mask is None else mask[row[-1]].tolist()
        first = [] if sink is None else [mpmath.mpf(sink[row[0], 0])]
        weights[row] = definition([*first, *s], [*(True for _ in first), *seen_here], mpmath)[len(first) :]
    tensors, cond = _tensors(scores=scores, seen=seen, sinks=sinks), softmax(exact(scores), mask, sink)[1]
    return case(f"attention/softmax/h2/{probe}", "softmax", {"heads": 2}, tensors, weights, cond, kills, **rest)


def _tensors(**given):
    return {name: value for name, value in given.items() if value is not None}


def _attend():
    causal = np.tri(3, 5, 2, dtype=int)
    bias = painted((2, 3, 5), 6)
    padded = np.array([np.tri(3, 5, 2, dtype=int), np.tri(3, 5, 2, dtype=int) * [0, 0, 0, 1, 1]])[:, None]
    sinks, rows = np.array([3.0, -1.5]), np.array([0.25, 1.5, 3.0])
    yield _attend_case("bias", SCORES + f" {MASKED} mask_left_aligned", bias=bias, seen=causal)
    empty = MASKED + " empty_row_uniform values_of_the_first_head"
    yield _attend_case("left-padding", empty, seen=padded, comment="The first query of the second text sees nothing.")
    capped = " ".join(f"cap_{name}" for name in CAPPED)
    yield _attend_case("softcap", capped, bias=bias, seen=causal, softcap=2.5, models=MATH_IN_F32)
    yield _attend_case("sinks", SUNK + " sink_scaled", seen=causal, sinks=sinks)
    square = "queries_and_keys_swapped keys_of_the_first_batch_row heads_exchanged mask_inverted no_bias bias_before_scale"
    both = np.array([[[np.tri(3, dtype=int)]], [[[[1, 0, 1], [1, 1, 0], [0, 1, 1]]]]])[:, 0]
    yield _attend_case("square", square, bias=bias[:, :, :3], seen=both, scale=0.1875, n_key=3, models=MATH_IN_F32)
    yield _attend_case("row-scale", "row_scale_left_out row_scale_after_bias", bias=bias, row_scale=rows)
    all_three = {"bias": bias, "softcap": 2.5, "row_scale": rows, "models": MATH_IN_F32}
    yield _attend_case("bias-cap-rows", "cap_after_bias row_scale_after_bias", **all_three)
    yield _attend_case("grouped", "heads_tiled values_of_the_first_head no_mask", heads=4, key_heads=2, seen=causal)
    large = {"scale": 256.0, "models": ("f64", "f32")}
    yield _attend_case("large", "no_mask mask_inverted scale_ignored", seen=causal, **large)
    together = "heads_tiled cap_left_out cap_after_mask sink_left_out row_scale_left_out no_mask scale_ignored"
    more = {"sinks": np.array([1.5, -0.75, 0.25, 2.0]), "row_scale": rows, "softcap": 1.5, "models": MATH_IN_F32}
    yield _attend_case("together", together, heads=4, key_heads=2, seen=causal, **more)


def _attend_case(probe, kills, *, heads=2, key_heads=None, seen=None, bias=None, sinks=None, row_scale=None, **more):
    softcap, scale, n_key = (more.pop(name, usual) for name, usual in (("softcap", None), ("scale", 0.5), ("n_key", 5)))
    batch = np.shape(seen)[:1] if np.ndim(seen) == 4 else ()
    sizes = (3, 4), (n_key, 4), (n_key, 3)
    counts = (heads, key_heads or heads, key_heads or heads)
    q, k, v = (painted((*batch, count, *size), tag) for count, size, tag in zip(counts, sizes, (1, 2, 4), strict=True))
    column = None if sinks is None else sinks[:, None]
    given = {"models": more["models"]} if probe == "large" else {}
    given |= {"scale": scale, "bias": bias, "seen": seen, "sinks": column, "rows": row_scale, "softcap": softcap}
    params = {"heads": heads, "scale": scale} | _tensors(key_heads=key_heads, softcap=softcap)
    tensors = _tensors(q=q, k=k, v=v, bias=bias, seen=seen, sinks=sinks, row_scale=row_scale)
    return case(f"attention/attend/h{heads}-d4/{probe}", "attend", params, tensors, *_output(q, k, v, **given), kills, **more)


def _rule(n_query, n_key, causal, window):
    """Which keys are seen; rows and columns are aligned at the end."""
    offset = np.arange(n_key) - np.arange(n_query)[:, None] - (n_key - n_query)
    return (((not causal) | (offset <= 0)) & (window is None or abs(offset) < window)).astype(int)


def _by_offset():
    aligned = "causal_ignored causal_left_aligned causal_strict sees_one_ahead no_bias bias_reversed bias_one_off"
    yield _offset_case("cached", 3, 5, aligned + " heads_tiled scale_ignored bias_before_scale no_mask", True, None)
    yield _offset_case("window", 4, 6, f"{WINDOW} window_left_aligned causal_ignored causal_left_aligned", True, 2)
    yield _offset_case("both-directions", 4, 5, f"{WINDOW} window_left_aligned window_backward_alone", False, 2)
    large = {"scale": 256.0, "models": ("f64", "f32")}
    yield _offset_case("large", 3, 4, "causal_ignored heads_tiled", True, None, **large)
    yield _offset_case("both-directions-w3", 4, 6, WINDOW, False, 3)
    empty = "empty_row_uniform causal_left_aligned"
    yield _offset_case("more-queries", 5, 3, empty, True, None, comment="The first two queries stand before every key.")


def _offset_case(probe, n_query, n_key, kills, causal, window, **rest):
    heads, key_heads, scale = 4, 2, rest.pop("scale", 0.5)
    q, k, v = painted((heads, n_query, 4), 1), painted((key_heads, n_key, 4), 2), painted((key_heads, n_key, 3), 4)
    by_offset = painted((heads, n_query + n_key - 1), 6)
    index = np.arange(n_key) - np.arange(n_query)[:, None] + n_query - 1
    given = {"models": rest["models"]} if probe == "large" else {}
    given |= {"scale": scale, "bias": by_offset[:, index], "seen": _rule(n_query, n_key, causal, window)}
    id = f"attention/by-offset/h{heads}-d4/{probe}"
    params = {"heads": heads, "key_heads": key_heads, "scale": scale, "causal": causal} | _tensors(window=window)
    tensors = {"q": q, "k": k, "v": v, "bias_by_offset": by_offset}
    return case(id, "attend_by_offset", params, tensors, *_output(q, k, v, **given), kills, **rest)


def _batch_by_offset():
    """Two texts share a bias; each is a text of its own."""
    q, k, v = painted((2, 2, 3, 4), 1), painted((2, 2, 3, 4), 2), painted((2, 2, 3, 4), 4)
    by_offset, scale = painted((2, 5), 6), 0.1875
    index = np.arange(3) - np.arange(3)[:, None] + 2
    params, tensors = {"heads": 2, "scale": scale, "causal": True}, {"q": q, "k": k, "v": v, "bias_by_offset": by_offset}
    kills = "keys_of_the_first_batch_row queries_and_keys_swapped no_bias bias_before_scale causal_ignored"
    answer = _output(q, k, v, scale=scale, bias=by_offset[:, index], seen=_rule(3, 3, True, None))
    return case("attention/by-offset/h2-d4/batch", "attend_by_offset", params, tensors, *answer, kills, models=MATH_IN_F32)


def _sequence():
    """One text, computed at once, in a chunk and in a step: rows of one output."""
    n, window, scale = 70, 64, 0.5
    q, k, v = painted((1, n, 2), 1), painted((1, n, 2), 2), painted((1, n, 1), 4)
    whole = _output(q, k, v, scale=scale, seen=_rule(n, n, True, window))
    for probe, first, last, kills in (
        ("prefill", 0, n, "window_one_more"),
        ("chunk", 60, n, WINDOW + " window_left_aligned causal_ignored causal_left_aligned"),
        ("step", 69, n, WINDOW + " causal_left_aligned"),
        ("full-window", 63, 64, "window_one_less causal_left_aligned"),
    ):
        rows = slice(first, last)
        id, params = f"attention/by-offset/h1-d2-w64/{probe}", {"heads": 1, "scale": scale, "causal": True, "window": window}
        tensors = {"q": q[:, rows], "k": k[:, :last], "v": v[:, :last]}
        answer = rearranged(lambda x, rows=rows: x[:, rows], whole)
        comment = f"Rows {first} to {last - 1} of one text of {n} tokens."
        # 16 bits lose the effect of one key of 64
        yield case(id, "attend_by_offset", params, tensors, *answer, kills, models=("f64", "f32"), comment=comment)


def _gradients():
    q, k, v, flow = painted((2, 3, 2), 1), painted((2, 4, 2), 2), painted((2, 4, 3), 4), painted((2, 3, 3), 8)
    bias, seen, scale = painted((2, 3, 4), 6), np.array([[1, 1, 0, 0], [0, 0, 0, 0], [1, 0, 1, 1]]), 0.5
    given = {"scale": scale, "seen": seen, "bias": bias}
    conds = _gradient_sensitivities(flow, q, k, v, **given)
    for of in ("q", "k", "v", "bias"):
        kills = "no_bias no_mask scale_ignored"
        kills += {"v": " gradient_unweighted", "bias": " row_sum_left_out"}.get(of, " row_sum_left_out gradient_unscaled")
        id, params = f"attention/gradient/h2-d2/{of}", {"heads": 2, "scale": scale, "of": of}
        tensors = {"output_gradient": flow, "q": q, "k": k, "v": v, "bias": bias, "seen": seen}
        expected, comment = _derivative(of, flow, q, k, v, **given), "The second query sees nothing: its gradient is zero."
        yield case(id, "attend_gradient", params, tensors, expected, conds[of], kills, models=MATH_IN_F32, comment=comment)


def _extreme_gradients():
    """A mask that no triangle holds, and scores whose exponentials overflow: the gradient by v, a sum of weights."""
    q, k, v, flow = (painted((1, n, d), tag) for n, d, tag in ((3, 2, 1), (4, 2, 2), (4, 3, 4), (3, 3, 8)))
    seen, bias, models = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]]), np.zeros((1, 3, 4)), MATH_IN_F32[:2]
    for probe, scale in (("holes", 0.375), ("large", 256.0)):
        scores = scale * (numbers(q)[0] @ numbers(k)[0].T)
        weights = np.array([definition(list(row), list(at != 0), mpmath) for row, at in zip(scores, seen, strict=True)])
        id, params = f"attention/gradient/h1-d2/v-{probe}", {"heads": 1, "scale": scale, "of": "v"}
        tensors = {"output_gradient": flow, "q": q, "k": k, "v": v, "seen": seen}
        expected = (weights.T @ numbers(flow)[0])[None]
        cond = _gradient_sensitivities(flow, q, k, v, scale=scale, seen=seen, bias=bias, models=models)["v"]
        yield case(id, "attend_gradient", params, tensors, expected, cond, "no_mask mask_inverted scale_ignored", models=models)


def _grouped_gradients():
    """Four heads of queries share two of keys, in one text or in each of two."""
    for of, *texts in (("k",), ("v",), ("k", 2)):
        heads, split = 4 * sum(texts or [1]), lambda x, texts=tuple(texts): x.reshape(*texts, -1, *x.shape[1:])
        q, k, v = painted((heads, 2, 2), 1), painted((heads // 2, 3, 2), 2), painted((heads // 2, 3, 2), 4)
        flow, given = painted((heads, 2, 2), 8), {"scale": 0.375, "seen": np.tri(2, 3, 1, dtype=int)}
        given["bias"] = np.zeros((heads, 2, 3))
        whole = _gradient_sensitivities(flow, q, _grouped(k, heads), _grouped(v, heads), **given)
        parts = {name: x.reshape(-1, 2, 3, 2) for name, x in whole[of].items()}
        cond = {name: x.sum(axis=1) for name, x in parts.items()}
        cond["amp"] = cond["amp"] + terms(1, parts["out"][:, 0], parts["out"][:, 1])
        id = f"attention/gradient/h4-d2/{of}-shared{'-batch' * len(texts)}"
        params = {"heads": 4, "key_heads": 2, "scale": 0.375, "of": of}
        tensors = {"output_gradient": split(flow), "q": split(q), "k": split(k), "v": split(v), "seen": given["seen"]}
        answer = rearranged(split, (_derivative(of, flow, q, k, v, **given), cond))
        kills = "sharing_not_summed heads_tiled no_mask scale_ignored"
        comment = "Heads 0 and 1 share the first key head, 2 and 3 the second: their gradients add up."
        yield case(id, "attend_gradient", params, tensors, *answer, kills, models=MATH_IN_F32, comment=comment)


def _batched_gradients():
    """Two texts of two heads: the gradients of four heads."""
    q, k, v, flow = painted((4, 3, 2), 1), painted((4, 3, 2), 2), painted((4, 3, 2), 4), painted((4, 3, 2), 8)
    given = {"scale": 0.1875, "seen": np.tri(3, dtype=int), "bias": painted((4, 3, 3), 6)}
    conds, split = _gradient_sensitivities(flow, q, k, v, **given), lambda x: x.reshape(2, 2, *x.shape[1:])
    id, params = "attention/gradient/h2-d2/k-batch", {"heads": 2, "scale": given["scale"], "of": "k"}
    tensors = {"output_gradient": split(flow), "q": split(q), "k": split(k), "v": split(v)}
    tensors |= {"bias": split(given["bias"]), "seen": given["seen"]}
    answer = rearranged(split, (_derivative("k", flow, q, k, v, **given), conds["k"]))
    kills = "keys_of_the_first_batch_row queries_and_keys_swapped no_mask scale_ignored no_bias"
    yield case(id, "attend_gradient", params, tensors, *answer, kills, models=MATH_IN_F32)


def _derivative(of, flow, q, k, v, *, scale, seen, bias):
    """The definition differentiated: (L(x + h) - L(x - h)) / 2h with h = 2^-60, for each entry x, off by about h^2."""
    at, h = {name: numbers(x) for name, x in (("q", q), ("k", k), ("v", v), ("bias", bias))}, mpmath.mpf(2) ** -60

    def loss(**x):
        found = mpmath.mpf(0)
        for a, i in np.ndindex(q.shape[:2]):
            shared = a * len(k) // len(q)
            row = [scale * (x["q"][a, i] @ x["k"][shared, j]) + x["bias"][a, i, j] for j in range(k.shape[1])]
            weights = np.array(definition(row, [True] * len(row) if seen is None else seen[i].astype(bool), mpmath))
            found += flow[a, i] @ (weights @ x["v"][shared])
        return found

    def moved(place, by):
        x = at[of].copy()
        x[place] += by
        return loss(**at | {of: x})

    slope = np.empty(at[of].shape, dtype=object)
    for place in np.ndindex(slope.shape):
        slope[place] = (moved(place, h) - moved(place, -h)) / (2 * h)
    slope[abs(slope) < mpmath.mpf(2) ** -100] = mpmath.mpf(0)  # entries that are 0 up to the error of the difference
    return slope


def _gradient_sensitivities(flow, q, k, v, *, scale, seen, bias, models=tuple(MODELS)):
    """dv = a^T do; ds = a (da - sum a da) with da = do v^T; dq = scale ds k, dk = scale ds^T q."""
    flow, q, k, v = (exact(x) for x in (flow, q, k, v))
    turned = lambda pair: rearranged(lambda x: np.swapaxes(x, -1, -2), pair)
    weights, by_weight = softmax(total(dot(q, k, scale), exact(bias)), seen != 0, models=models), dot(flow, v)
    each, keys = product(weights, by_weight), k[0].shape[-2]
    row = rearranged(lambda x: x.sum(axis=-1, keepdims=True), each)
    row[1]["amp"] = row[1]["amp"] + terms(keys - 1, abs(each[0]).sum(axis=-1, keepdims=True))
    by_score = product(weights, total(by_weight, (-row[0], row[1])))
    of_q, of_k = dot(by_score, turned(k), scale), dot(turned(by_score), turned(q), scale)
    return {"q": of_q[1], "k": of_k[1], "v": dot(turned(weights), turned(flow))[1], "bias": by_score[1]}


def _masks():
    padded = np.array([[3, 4], [1, 2]]), np.array([[0, 1, 2, 3, 4], [0, 0, 0, 1, 2]])
    triangle = "causal_strict sees_one_ahead causal_left_aligned"
    left, either = f"positions_ignored {WINDOW} window_left_aligned", "The second text is padded on the left."
    yield _mask("causal", padded, f"sign positions_ignored {triangle}", comment=either)
    yield _mask("window", padded, f"{left} window_backward_alone", width=2, comment=either)
    yield _mask("window-causal", padded, f"{left} window_forward_too", width=2, causal=True, comment=either)
    sides = f"{left} ahead_ignored ahead_one_less ahead_one_more sides_of_the_window_exchanged window_backward_alone"
    longer = np.array([[3, 4], [1, 2]]), np.array([[0, 1, 2, 3, 4, 5, 6], [0, 0, 0, 1, 2, 3, 4]])
    yield _mask("window-ahead", longer, sides, width=3, ahead=2, comment=either)
    below = BELOW[1:3], BELOW
    fractional = np.array([2.5, 0.25]), np.array([0.5, 2.25, 2.75, 4.25, 4.75, 0.0])
    for op, width in (("causal", None), ("window", 2)):
        yield _mask(f"{op}-negative", below, "positions_ignored", width=width)
        yield _mask(f"{op}-fractional", fractional, "positions_ignored", width=width)
    places, ends = (PLACES[:, 1:3], PLACES), "Where numbers of 16 and 24 bits end, in no order."
    narrow = f"{NARROW} int16_positions positions_ignored positions_shared_across_batch"
    yield _mask("causal-places", places, f"{narrow} sign {triangle}", comment=ends)
    yield _mask("window-places", places, f"{narrow} window_one_more window_one_less", width=4, comment=ends)


def _mask(probe, positions, kills, width=None, ahead=None, causal=None, **rest):
    queries, keys = positions
    offset = keys[..., None, :] - queries[..., :, None]
    seen = (offset <= 0 if causal or not width else offset < (ahead or width)) & (offset > -width if width else True)
    id, params = f"attention/masks/{f'w{width}' if width else 'any'}/{probe}", _tensors(width=width, ahead=ahead, causal=causal)
    tensors = {"queries": queries, "keys": keys}
    return case(id, f"{probe.split('-')[0]}_mask", params, tensors, seen.astype(int), kills=kills, **rest)


def _structured_masks():
    """Chunks, prefixes and images, entry by entry from what they say."""
    queries, keys = np.array([[3, 4, 9], [0, 1, 2]]), np.array([[0, 1, 2, 3, 4, 7, 8, 9], [0, 0, 0, 1, 2, 3, 4, 5]])
    for probe, (here, there), kills in (
        ("padded", (queries, keys), "positions_ignored causal_strict sees_one_ahead causal_left_aligned"),
        ("places", (PLACES[:, 1:3], PLACES), f"{NARROW} int16_positions positions_ignored positions_shared_across_batch"),
        ("below", (np.array([[-2.75, 0.5, 2.25]]), np.array([[-5.5, -2.5, -2.875, 0.25, 0.75, 2.0]])), "positions_ignored"),
    ):
        seen = [[[int(j <= i and j // 3 == i // 3) for j in js] for i in qs] for qs, js in zip(here, there, strict=True)]
        id = f"attention/masks/c3/chunk-{probe}"
        yield case(id, "chunk_mask", {"width": 3}, {"queries": here, "keys": there}, seen, kills=kills)
    prefixes = [3, 0, 6]
    id = "attention/masks/n8/prefix"
    expected = [[[int(j <= i or max(i, j) < prefix) for j in range(8)] for i in range(8)] for prefix in prefixes]
    yield case(id, "prefix_mask", {"n": 8}, {"prefixes": prefixes}, expected, kills="causal_strict sees_one_ahead")
    blocks = [-1, 0, 0, 0, -1, 1, 1, 2, 2, -1, -1]
    for probe, width, kills in (("", None, ""), ("-in-windows", 2, WINDOW)):
        near = lambda i, j, width=width: width is None or i - j < width
        seen = [[int((j <= i or blocks[i] == blocks[j] >= 0) and near(i, j)) for j in range(11)] for i in range(11)]
        id, params = f"attention/masks/n11/blocks{probe}", {} if width is None else {"width": width}
        yield case(id, "block_mask", params, {"blocks": blocks}, seen, kills=f"causal_strict sees_one_ahead {kills}")


def _terms(probe, *batch):
    x, p, w_q, w_k = painted((*batch, 3, 2), 1), painted((*batch, 3, 2), 2), painted((2, 4), 4), painted((2, 4), 6)
    through = lambda y, w: dot(exact(y), exact(w.T))
    parts = [dot(through(left, w_q), through(right, w_k)) for left in (x, p) for right in (x, p)]
    tensors, expected = {"x": x, "p": p, "w_q": w_q, "w_k": w_k}, np.stack([value for value, _ in parts])
    amp = {name: np.stack([stored(value, cond)[1][name] for value, cond in parts]) for name in ("amp", "phase", "out")}
    kills = "cross_terms_exchanged matrices_exchanged terms_transposed"
    return case(f"attention/four-terms/d2/{probe}", "four_terms", {}, tensors, expected, amp, kills)
