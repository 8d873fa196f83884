"""ALiBi: attention with linear biases, a fixed slope times the distance."""

# Over budget: three forms, times scale, causal, far and of many heads

import mpmath
import numpy as np

from proofs.relative.alibi import definition, slope, steps
from proofs.vectors import *

SOURCES = (
    "Press et al., Train Short, Test Long, arXiv 2108.12409, section 3 and footnote 10",
    "github.com/ofirpress/attention_with_linear_biases, fairseq/models/transformer.py, get_slopes",
)

CONVENTIONS = {
    "axes": "a bias is (heads, n_query, n_key) or (batch, heads, n_query, n_key); q, k, v are (batch, heads, n, d)",
    "form": "signed: m (j - i); absolute: -m |j - i|; key: m j, with one row for all queries",
    "gauge": "row_constant: a constant may be added to every row, so that the key form passes where signed is expected",
    "heads": "slopes in the published order, not sorted",
    "op attend": "softmax(scale q k^T + bias) v, causal: keys with j <= i only, if params say so",
    "op bias": "from positions, with the slopes of `heads` heads",
    "op shard": "`count` of the slopes of `heads` heads, from number `first` on, as a rank of tensor parallelism has them",
    "op slopes": "m, one number per head",
}
REJECTED = (
    ("alibi/signed/h6/decode", "no-form", {"form": None}, "missing", "-m (i - j), m j and -m |i - j| are all in use."),
    ("alibi/signed/h6/decode", "form", {"form": "relative"}, "choice", "signed, absolute or key."),
    ("alibi/slopes/h1-b8/slopes", "no-heads", {"heads": 0}, "range", "At least one head."),
)
REASONS = """
attend signed key_form | m j and m (j - i) differ by a constant of each row, which the softmax does not see
attend signed queries_left_aligned | the same constant: the mask is made of the right positions, and the bias alone moves
bias key queries_left_aligned | m j has no query in it
"""


def vectors():
    order = "sorted_slopes plain_geometric next_power"
    for heads, max_bias, mistakes in (
        (1, 8, "heads_from_zero"),
        (3, 8, order),
        (6, 8, order),
        (8, 8, "heads_from_zero"),
        (12, 8, order),
        (12, 16, f"{order} max_bias_ignored"),
        (112, 8, order),
    ):
        id, params = f"alibi/slopes/h{heads}-b{max_bias}/slopes", {"heads": heads, "max_bias": max_bias}
        yield case(id, "slopes", params, {}, _slopes(heads, max_bias), {"phase": _reach(heads, max_bias)}, mistakes)
    yield _shard(6, 3, 3)
    yield _shard(12, 4, 4, 16, " max_bias_ignored")
    yield _bias_case("square", 3, range(4), range(4), "signed", "sign absolute key_form sorted_slopes plain_geometric")
    yield _bias_case("square", 3, range(4), range(4), "absolute", "signed key_form sorted_slopes plain_geometric")
    yield _bias_case("square", 3, range(4), range(4), "key", "sign sorted_slopes plain_geometric")
    yield _bias_case("after-softmax", 3, range(4), range(5), "signed", "sign absolute sorted_slopes", gauge="row_constant")
    aligned = "sign sorted_slopes queries_left_aligned positions_ignored"
    yield _bias_case("decode", 6, [4], range(5), "signed", "sign sorted_slopes queries_left_aligned plain_geometric")
    yield _bias_case("chunk", 6, [3, 4], range(5), "absolute", aligned + " signed")
    yield _bias_case("far", 3, [4097, 48040], [0, 4090, 48039], "signed", "sign positions_ignored absolute key_form")
    both = "positions_ignored positions_shared_across_batch sorted_slopes"
    yield _bias_case("padded", 3, PADDED[:, 1:], PADDED, "absolute", both + " signed")
    yield _collision()
    yield _attend("causal", [9, 12], "signed", "sign bias_before_scale no_bias no_mask sorted_slopes plain_geometric", True)
    yield _attend("both-directions", [7, 9], "absolute", "signed bias_before_scale no_bias sorted_slopes", False)
    apart = f"{NARROW} bias_before_scale no_bias max_bias_ignored positions_shared_across_batch positions_ignored"
    queries, keys = np.array([[4096, 4100], FAR[3:]]), np.array([[4080, 4087, 4093, 4097, 4099], FAR])
    yield _attend("far", queries, "signed", apart + " sees_one_ahead no_mask", True, keys, 16, 0.375)
    yield _attend("far", queries, "absolute", apart + " signed", False, keys, 16, 0.375)
    yield _bias_case("beyond", 3, FAR[3:], FAR, "signed", NARROW + " max_bias_ignored", max_bias=16)
    rows = f"{NARROW} int16_positions max_bias_ignored positions_ignored positions_shared_across_batch wrong_axis"
    for form, wrong in (("signed", " sign"), ("absolute", " signed"), ("key", " sign f16_key_form")):
        more = {"max_bias": 16, "models": ("f64", "f32")[: 1 + (form != "key")]}
        yield _bias_case("places", 2, PLACES[:, 1:3], PLACES, form, rows + wrong, **more)
        told = f"positions_ignored {wrong.replace(' f16_key_form', '')}"
        yield _bias_case("fractional", 2, HALVES[1:3], HALVES, form, told)
        yield _bias_case("negative", 2, BELOW[1:3], BELOW, form, told)
    for form in ("signed", "absolute"):
        wrong = "bias_before_scale bias_twice no_bias positions_ignored"
        yield _attend("fractional", HALVES[None, 2:], form, wrong, form == "signed", HALVES[None], scale=0.1875)
        yield _attend("negative", BELOW[None, 1:3], form, wrong, form == "signed", BELOW[None], scale=0.1875)
        wrong = "scale_ignored heads_exchanged keys_of_the_first_head"
        yield _attend("large", HALVES[None, 2:], form, wrong, form == "signed", HALVES[None], scale=256.0)
    rows = f"{WRAPPED} bias_before_scale bias_twice no_bias heads_exchanged positions_shared_across_batch"
    for form, causal, wrong in (("signed", True, ""), ("absolute", True, ""), ("signed", False, "absolute sign")):
        masked = " no_mask mask_left_aligned sees_one_ahead" * causal
        probe, at = ("places", PLACES) if causal else ("places-both-directions", PLACES[:2])
        yield _attend(probe, at, form, f"{rows} {wrong}{masked}", causal, at, 16, 0.1875)


def _slopes(heads, max_bias=8):
    return [slope(step, max_bias, mpmath) for step in steps(heads)]


def _reach(heads, max_bias=8):
    """`phase` of the slopes: an exponential as in `growth`, or a rounded base to the power of up to 2h."""
    return [m * (growth(m) + 2 * heads) for m in _slopes(heads, max_bias)]


def _shard(heads, first, count, max_bias=8, more=""):
    id = f"alibi/slopes/h{heads}-b{max_bias}/rank-1-of-{heads // count}"
    params = {"heads": heads, "max_bias": max_bias, "first": first, "count": count}
    expected, cond = _slopes(heads, max_bias)[first : first + count], {"phase": _reach(heads, max_bias)[first : first + count]}
    return case(id, "shard", params, {}, expected, cond, "slopes_of_the_shard first_slopes" + more)


def _biases(slopes, queries, keys, form):
    """`definition` of every head and pair of positions; "key" has one row."""
    queries, keys = np.array(queries, dtype=object), np.array(keys, dtype=object)
    i = queries[..., None, :1, None] if form == "key" else queries[..., None, :, None]
    return definition(i, keys[..., None, None, :], np.array(slopes, dtype=object)[:, None, None], form)


def _sensitivity(heads, queries, keys, form, max_bias=8):
    """A product of the slope and a distance or position that is exact."""
    size = abs(_biases(_slopes(heads, max_bias), queries, keys, form))
    error = abs(_biases(_reach(heads, max_bias), queries, keys, form))
    return {"amp": terms(2, size), "phase": error}


def _bias_case(probe, heads, queries, keys, form, mistakes, gauge="none", max_bias=8, **rest):
    queries, keys = np.array(queries), np.array(keys)
    cond = _sensitivity(heads, queries, keys, form, max_bias)
    if gauge == "row_constant":  # for either form
        key = _sensitivity(heads, queries, keys, "key")
        cond = {name: each + key[name] for name, each in cond.items()}
        cond["out"] = cond["amp"]
    id, params = f"alibi/{form}/h{heads}/{probe}", {"heads": heads, "max_bias": max_bias, "form": form}
    tensors, expected = {"queries": queries, "keys": keys}, _biases(_slopes(heads, max_bias), queries, keys, form)
    stages = {"slopes": _slopes(heads, max_bias)}
    return case(id, "bias", params, tensors, expected, cond, mistakes, stages=stages, gauge=gauge, **rest)


def _collision():
    heads, queries, keys = 8, [4099], [4095, 4096, 4097, 4098, 4099]
    id, params = "alibi/signed/h8/collision", {"heads": heads, "max_bias": 8, "form": "signed"}
    tensors, expected = {"queries": queries, "keys": keys}, _biases(_slopes(heads), queries, keys, "signed")
    cond = _sensitivity(heads, queries, keys, "signed")
    comment = "In float16 the key form rounds positions 4095 .. 4099 to multiples of 4."
    return case(id, "bias", params, tensors, expected, cond, "f16_key_form", gauge="row_constant", comment=comment)


def _attend(probe, queries, form, mistakes, causal, keys=(0, 3, 7, 9, 12), max_bias=8, scale=0.5):
    queries, keys = np.array(queries), np.array(keys)
    placed = keys.ndim == 2 and probe != "far"
    batch, heads, n, m = len(queries) if placed else 2, 2 if placed else 3, queries.shape[-1], keys.shape[-1]
    q, k, v = painted((batch, heads, n, 4), 1), painted((batch, heads, m, 4), 2), painted((batch, heads, m, 4), 4)
    mask = (keys[..., None, None, :] <= queries[..., None, :, None]) | (not causal)

    sensitivity = _sensitivity(heads, queries, keys, form, max_bias)
    bias = stored(_biases(_slopes(heads, max_bias), queries, keys, form), sensitivity)
    models = ("f64", "f32") if probe == "far" or placed else tuple(MODELS)  # 16 bits lose the effect of one key of five
    id = f"alibi/{form}/h{heads}-d4/{probe}"
    params = {"heads": heads, "max_bias": max_bias, "form": form, "scale": scale, "causal": causal}
    tensors, stages = {"q": q, "k": k, "v": v, "queries": queries, "keys": keys}, {"slopes": _slopes(heads, max_bias)}
    answer = attend(exact(q), exact(k), exact(v), scale, bias, mask, models if placed else tuple(MODELS))
    return case(id, "attend", params, tensors, *answer, mistakes, stages=stages, models=models, comment="Positions have gaps.")
