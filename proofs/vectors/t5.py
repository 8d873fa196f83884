"""T5 bias: one trained number per head and bucket of offsets."""

# Over budget: buckets of every size and side, and gradients

import mpmath
import numpy as np

from proofs.relative.t5 import DECODER, ENCODER, definition, gated, one_side
from proofs.vectors import *

SOURCES = (
    "Raffel et al., Exploring the Limits of Transfer Learning, arXiv 1910.10683, section 2.1",
    "mesh_tensorflow/transformer/transformer_layers.py, _relative_position_bucket",
)

CONVENTIONS = {
    "axes": "a bias is (heads, n_query, n_key) or (batch, heads, n_query, n_key); table is (buckets, heads); q, k, v are "
    "(batch, heads, n, d)",
    "buckets": "all of them; bidirectional: half for keys at or before the query, half for keys after it",
    "offset": "key position - query position",
    "op attend": "softmax(q k^T + bias) v, not scaled",
    "op bias": "B[bucket(j - i), head] for the given positions",
    "op bias_gradient": "of the table, from that of every score: each is added to its bucket; (buckets, heads)",
    "op bucket": "the bucket of every offset, exactly",
    "op cross_attend": "attention of the decoder to the encoder: softmax(q k^T) v, without a bias",
    "op gate": "WavLM's u (r c - 1) + 2, one number per head and row; x is the layer's input in heads",
    "op starts": "the first distance of each of `buckets` buckets of one side, exactly",
}
REJECTED = (
    ("t5/bidirectional/h3-b32-d128/chunk", "odd-buckets", {"table": fewer}, "range", "31 buckets have no half for each side."),
    ("t5/bidirectional/h3-b32-d128/chunk", "no-direction", {"bidirectional": None}, "missing", "Encoder or decoder."),
    ("t5/side/b16-d128/starts", "max-distance", {"max_distance": 8}, "range", "8 distances are exact already."),
    ("t5/side/b16-d128/starts", "one-bucket", {"buckets": 1}, "range", "No room for a logarithm."),
)
REASONS = """
attend * bias_before_scale | T5 does not scale: the scale is 1
* causal no_minimum | a gather beyond the table reads its last row, which is right in causal attention
"""

NEAR = [*range(-130, 131), -100000, 100000]
WAVLM = [*range(-811, 812, 7), *(sign * n for sign in (-1, 1) for n in (1, 79, 80, 81, 82, 160, 799, 800, 801, 10**6))]


TIES = [0, 136, 137, 168, 184, 192, 208, 264]  # of one query at 200: distances at which a bucket begins, and one beside them


def vectors():
    for buckets, max_distance in (ENCODER, DECODER, (9, 128), (128, 100), (160, 800)):
        yield _starts(buckets, max_distance)
    every = "direction other_direction no_minimum linear rounded_up rounded_to_nearest bf16_logarithm"
    yield _buckets("t5", NEAR, 32, 128, True, every + " factor_first zero_in_the_future")
    yield _buckets("t5", NEAR, 32, 128, False, every)
    yield _buckets("ties", NEAR, 18, 128, True, "direction f64_logarithm rounded_up")
    ties = "f64_logarithm factor_first bf16_logarithm no_minimum linear rounded_up"
    yield _buckets("ties", NEAR, 9, 128, False, f"direction {ties}")
    yield _buckets("nearer", NEAR, 32, 100, False, "direction max_distance_ignored")
    yield _buckets("nearest", NEAR, 32, 20, True, "direction max_distance_ignored")  # nearer than there are buckets
    rows = f"{NARROW} int16_positions positions_shared_across_batch"
    for both in (True, False):
        buckets, more = (18, "other_direction") if both else (9, "direction")
        seen = ties if both else ties.replace(" no_minimum", "")  # a gather beyond the table reads its last row, which is right
        yield _bias("ties", [200], TIES, both, f"{seen} {more}", table=painted((buckets, 3), 4))
        yield _attend("ties", [200], TIES, both, seen, heads=2, table=painted((buckets, 2), 4))
        yield _bias("places", PLACES[:, [0, 1, 3]], PLACES, both, rows, table=painted((32, 2), 4))
        swapped = f"{WRAPPED} queries_and_keys_swapped keys_of_the_first_batch_row heads_exchanged no_bias"
        yield _attend("places", PLACES[:2], PLACES[:2], both, swapped, heads=2, table=painted((8, 2), 4))
        masked = "no_mask mask_inverted mask_left_aligned sees_one_ahead mask_strict mask_of_the_future bias_twice"
        yield _attend("masked", PLACES[:2], PLACES[:2], both, masked, heads=2, table=painted((8, 2), 4), causal=True)
        more = {"heads": 2, "table": painted((8, 2), 4)}
        yield _bias("negative", BELOW[1:3], BELOW, both, "direction positions_ignored", table=painted((8, 2), 4))
        yield _attend("negative", BELOW[None, 1:3], BELOW[None], both, "direction positions_ignored", **more)
        yield _attend("large", BELOW[None, 1:3], BELOW[None], both, "heads_exchanged", size=16, **more)
        yield _gradient(both, BELOW[None, 1:3], BELOW[None], "negative", 8, 16, "direction")
        yield _gradient(both, np.array([[200]]), np.array([TIES]), "ties", buckets, 128, ties)
        yield _gradient(both, PLACES[:, ::3], PLACES, "places", 8, 16, f"{rows} max_distance_ignored")
    yield _cross(4)
    yield _cross(3, 16, models=("f64", "f32"))
    yield _buckets("wavlm", WAVLM, 320, 800, True, every + " max_distance_ignored")
    mistakes = "direction other_direction positions_ignored heads_of_the_transposed_table"
    yield _bias("chunk", [3, 4], range(5), True, f"{mistakes} zero_in_the_future")
    yield _bias("decode", [40], range(36, 41), False, "direction positions_ignored heads_of_the_transposed_table")
    yield _bias("far", [130, 48040], [0, 3, 20, 48039], True, mistakes + " no_minimum")
    yield _bias("padded", PADDED[:, 1:], PADDED, True, mistakes + " positions_shared_across_batch")
    yield _attend("encoder", [3, 9], [0, 3, 7, 9, 40], True, "scaled bias_scaled no_bias direction")
    yield _attend("decode", [40], [0, 3, 7, 9, 40], False, "scaled bias_scaled no_bias direction positions_ignored")
    queries, keys = np.array([[4100, 4160], BEYOND + np.array([1, 75])]), np.array([[4040, 4070, 4085, 4093, 4099]] * 2)
    keys[1] += BEYOND - 4099
    for both in (True, False):
        every = f"{mistakes} {NARROW} positions_shared_across_batch max_distance_ignored"
        yield _bias("beyond", queries, keys, both, every, 100)
        yield _attend("beyond", queries, keys, both, f"scaled bias_scaled no_bias direction {NARROW} max_distance_ignored", 100)
    yield _cross()
    yield _gate()
    for bidirectional in (True, False):
        yield _gradient(bidirectional, PADDED[:, 2:], PADDED)


def _starts(buckets, max_distance):
    reach = range(max_distance + 1)
    params = {"buckets": buckets, "max_distance": max_distance}
    expected = [next(n for n in reach if one_side(n, buckets, max_distance) >= b) for b in range(buckets)]
    return case(f"t5/side/b{buckets}-d{max_distance}/starts", "starts", params, {}, expected, kills="half_the_buckets")


def _buckets(probe, reach, buckets, max_distance, bidirectional, mistakes):
    id = f"t5/{'bidirectional' if bidirectional else 'causal'}/b{buckets}-d{max_distance}/{probe}"
    params = {"buckets": buckets, "max_distance": max_distance, "bidirectional": bidirectional}
    expected = [definition(offset, buckets, max_distance, bidirectional) for offset in reach]
    return case(id, "bucket", params, {"offsets": reach}, expected, kills=mistakes)


def _biases(table, queries, keys, bidirectional, max_distance=128):
    """B[bucket(j - i), h] for positions with or without a batch."""
    queries, keys, (buckets, heads) = np.array(queries), np.array(keys), table.shape
    offset = keys[..., None, None, :] - queries[..., None, :, None] + np.zeros((heads, 1, 1), dtype=int)
    result = np.empty(offset.shape, dtype=object)
    for at in np.ndindex(offset.shape):
        result[at] = table[definition(int(offset[at]), buckets, max_distance, bidirectional), at[-3]].item()
    return result


def _bias(probe, queries, keys, bidirectional, mistakes, max_distance=128, *, table=None):
    table = painted((32, 3), 1) if table is None else table
    buckets, heads = table.shape
    id = f"t5/{'bidirectional' if bidirectional else 'causal'}/h{heads}-b{buckets}-d{max_distance}/{probe}"
    params = {"heads": heads, "max_distance": max_distance, "bidirectional": bidirectional}
    tensors = {"queries": np.array(queries), "keys": np.array(keys), "table": table}
    expected = _biases(table, queries, keys, bidirectional, max_distance)
    return case(id, "bias", params, tensors, expected, kills=mistakes, comment="Entries of the table, unchanged.")


def _attend(probe, queries, keys, bidirectional, mistakes, max_distance=128, *, heads=3, table=None, size=1, **rules):
    models = tuple(MODELS) if table is None else ("f64", "f32")  # 16 bits lose the effect of one key of many
    table = 2 * painted((32, 3), 6) if table is None else table
    shape = lambda at: (len(at) if np.ndim(at) == 2 else 2, heads, np.shape(at)[-1], 4)
    q, k, v = size * painted(shape(queries), 1), size * painted(shape(keys), 2), painted(shape(keys), 4)

    mask = (keys[:, None, None, :] <= queries[:, None, :, None]) if rules else None
    bias = exact(_biases(table, queries, keys, bidirectional, max_distance))
    id = f"t5/{'bidirectional' if bidirectional else 'causal'}/h{heads}-d4/{probe}"
    params = {"heads": heads, "max_distance": max_distance, "bidirectional": bidirectional} | rules
    tensors = {"q": q, "k": k, "v": v, "queries": queries, "keys": keys, "table": table}
    answer = attend(exact(q), exact(k), exact(v), 1, bias, mask, models)
    return case(id, "attend", params, tensors, *answer, mistakes, models=models)


def _cross(square=None, size=1, models=tuple(MODELS)):
    heads, n, m = (2, square, square) if square else (3, 2, 5)
    q, k, v = size * painted((2, heads, n, 4), 1), size * painted((2, heads, m, 4), 2), painted((2, heads, m, 4), 4)
    id = f"t5/cross/h{heads}-d4/attend{('-large' if size > 1 else '-square') * bool(square)}"
    kills = "heads_exchanged" if size > 1 else "scaled bias_in_cross_attention"
    kills += " queries_and_keys_swapped" * bool(square)
    answer = attend(exact(q), exact(k), exact(v), models=models)
    return case(id, "cross_attend", {"heads": heads}, {"q": q, "k": k, "v": v}, *answer, kills, models=models)


def _gate():
    x, weight, offset, c = painted((1, 3, 2, 4), 1), painted((8, 4), 2) / 4, painted((8,), 4) / 4, painted((3,), 6)
    w, b = numbers(weight), numbers(offset)
    values = [[[gated(row, w, b, k, mpmath) for row in h] for h, k in zip(t, c, strict=True)] for t in x]
    inner = np.abs(x) @ np.abs(weight).T + np.abs(offset)
    size = 1 + np.abs(c)[:, None] + 0 * inner.sum(axis=-1)
    tensors = {"x": x, "weight": weight, "offset": offset, "constant": c}
    # sums of 20 terms; sigmoid has a slope of 1/4
    cond, kills = terms(14, inner.sum(axis=-1) * size) + terms(8, 2 * size), "gates_exchanged no_constant halves_interleaved"
    return case("t5/wavlm/h3-d4/gate", "gate", {"heads": 3}, tensors, values, cond, kills, models=MATH_IN_F32)


OFTEN = "rows_overwritten first_batch_row averaged direction other_direction positions_shared_across_batch"


def _gradient(bidirectional, queries, keys, probe="", count=8, reach=16, mistakes=OFTEN):
    flow, table = painted((len(keys), 2, queries.shape[-1], keys.shape[-1]), 9), np.zeros((count, 2))
    buckets = np.vectorize(lambda o: definition(int(o), count, reach, bidirectional))(keys[:, None] - queries[..., None])

    def loss(flow, table):
        return sum(flow[b, h, i, j] * table[buckets[b, i, j], h] for b, h, i, j in np.ndindex(flow.shape))

    id = f"t5/{'bidirectional' if bidirectional else 'causal'}/h2-b{count}-d{reach}/gradient{f'-{probe}' * bool(probe)}"
    params = {"buckets": count, "max_distance": reach, "bidirectional": bidirectional}
    tensors = {"score_gradient": flow, "queries": queries, "keys": keys}
    comment = "" if probe else "Buckets that occur often, once and never; a batch of two, the first text padded on the left."
    answer = slopes(loss, {"flow": flow, "table": table}, "table", len(keys) * buckets[0].size)
    # sums in 8 bits lose the effect of one bucket
    models = MATH_IN_F32 if probe else tuple(MODELS)
    return case(id, "bias_gradient", params, tensors, *answer, mistakes, models=models, comment=comment)
