"""T5 bias: one trained number a head and a bucket of offsets."""

import mpmath
import numpy as np

from proofs.relative.t5 import DECODER, ENCODER, definition, gated, one_side
from proofs.vectors import BEYOND, NARROW, attend, case, exact, painted, terms
from proofs.vectors._slopes import slopes

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
    "op gate": "WavLM's u (r c - 1) + 2, one number a head and row; x is the layer's input in heads",
    "op starts": "the first distance of each of `buckets` buckets of one side, exactly",
}

NEAR = [*range(-130, 131), -100000, 100000]
WAVLM = [*range(-811, 812, 7), *(sign * n for sign in (-1, 1) for n in (1, 79, 80, 81, 82, 160, 799, 800, 801, 10**6))]


def vectors():
    for buckets, max_distance in (ENCODER, DECODER, (9, 128), (128, 100), (160, 800)):
        yield _starts(buckets, max_distance)
    every = "direction other_direction no_minimum linear rounded_up bf16_logarithm"
    yield _buckets("t5", NEAR, 32, 128, True, every + " factor_first")
    yield _buckets("t5", NEAR, 32, 128, False, every)
    yield _buckets("ties", NEAR, 18, 128, True, "direction f64_logarithm rounded_up")
    yield _buckets("wavlm", WAVLM, 320, 800, True, every + " max_distance_ignored")
    mistakes = "direction other_direction positions_ignored heads_of_the_transposed_table"
    yield _bias("chunk", [3, 4], range(5), True, mistakes)
    yield _bias("decode", [40], range(36, 41), False, "direction positions_ignored heads_of_the_transposed_table")
    yield _bias("far", [130, 48040], [0, 3, 20, 48039], True, mistakes + " no_minimum")
    padded = np.array([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])  # the first row is padded on the left by two tokens
    yield _bias("padded", padded[:, 1:], padded, True, mistakes + " positions_shared_across_batch")
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
        yield _gradient(bidirectional, padded[:, 2:], padded)


def _starts(buckets, max_distance):
    reach = range(max_distance + 1)
    return case(
        f"t5/side/b{buckets}-d{max_distance}/starts",
        op="starts",
        params={"buckets": buckets, "max_distance": max_distance},
        tensors={},
        expected=[next(n for n in reach if one_side(n, buckets, max_distance) >= b) for b in range(buckets)],
        kills="half_the_buckets",
    )


def _buckets(probe, reach, buckets, max_distance, bidirectional, mistakes):
    return case(
        f"t5/{'bidirectional' if bidirectional else 'causal'}/b{buckets}-d{max_distance}/{probe}",
        op="bucket",
        params={"buckets": buckets, "max_distance": max_distance, "bidirectional": bidirectional},
        tensors={"offsets": reach},
        expected=[definition(offset, buckets, max_distance, bidirectional) for offset in reach],
        kills=mistakes,
    )


def _biases(table, queries, keys, bidirectional, max_distance=128):
    """B[bucket(j - i), h] for positions with or without a batch."""
    queries, keys, (buckets, heads) = np.array(queries), np.array(keys), table.shape
    offset = keys[..., None, None, :] - queries[..., None, :, None] + np.zeros((heads, 1, 1), dtype=int)
    result = np.empty(offset.shape, dtype=object)
    for at in np.ndindex(offset.shape):
        result[at] = table[definition(int(offset[at]), buckets, max_distance, bidirectional), at[-3]].item()
    return result


def _bias(probe, queries, keys, bidirectional, mistakes, max_distance=128):
    table, heads = painted((32, 3), 1), 3
    return case(
        f"t5/{'bidirectional' if bidirectional else 'causal'}/h{heads}-b32-d{max_distance}/{probe}",
        op="bias",
        params={"heads": heads, "max_distance": max_distance, "bidirectional": bidirectional},
        tensors={"queries": np.array(queries), "keys": np.array(keys), "table": table},
        expected=_biases(table, queries, keys, bidirectional, max_distance),
        kills=mistakes,
        comment="Entries of the table, unchanged.",
    )


def _attend(probe, queries, keys, bidirectional, mistakes, max_distance=128):
    heads, table = 3, 2 * painted((32, 3), 6)
    q, k, v = painted((2, heads, np.shape(queries)[-1], 4), 1), painted((2, heads, 5, 4), 2), painted((2, heads, 5, 4), 4)

    expected, cond = attend(exact(q), exact(k), exact(v), 1, exact(_biases(table, queries, keys, bidirectional, max_distance)))
    return case(
        f"t5/{'bidirectional' if bidirectional else 'causal'}/h{heads}-d4/{probe}",
        op="attend",
        params={"heads": heads, "max_distance": max_distance, "bidirectional": bidirectional},
        tensors={"q": q, "k": k, "v": v, "queries": queries, "keys": keys, "table": table},
        expected=expected,
        cond=cond,
        kills=mistakes,
    )


def _cross():
    heads, table = 3, 2 * painted((32, 3), 6)
    q, k, v = painted((2, heads, 2, 4), 1), painted((2, heads, 5, 4), 2), painted((2, heads, 5, 4), 4)
    expected, cond = attend(exact(q), exact(k), exact(v))
    bias = exact(_biases(table, [0, 1], range(5), True))
    return case(
        f"t5/cross/h{heads}-d4/attend",
        op="cross_attend",
        params={"heads": heads},
        tensors={"q": q, "k": k, "v": v},
        expected=expected,
        cond=cond,
        kills="scaled",
        mistakes={"bias_in_cross_attention": attend(exact(q), exact(k), exact(v), 1, bias)[0]},  # the op has no table
    )


def _gate():
    x, weight, offset, c = painted((1, 3, 2, 4), 1), painted((8, 4), 2) / 4, painted((8,), 4) / 4, painted((3,), 6)
    exactly = np.frompyfunc(mpmath.mpf, 1, 1)
    values = [
        [[gated(row, exactly(weight), exactly(offset), k, mpmath) for row in h] for h, k in zip(t, c, strict=True)] for t in x
    ]
    inner = np.abs(x) @ np.abs(weight).T + np.abs(offset)
    size = 1 + np.abs(c)[:, None] + 0 * inner.sum(axis=-1)
    return case(
        "t5/wavlm/h3-d4/gate",
        op="gate",
        params={"heads": 3},
        tensors={"x": x, "weight": weight, "offset": offset, "constant": c},
        expected=values,
        cond={"amp": terms(14, inner.sum(axis=-1) * size) + terms(8, 2 * size)},  # sums of 20 terms; sigmoid has a slope of 1/4
        kills="gates_exchanged no_constant halves_interleaved",
        models=("f64", "f32", "f16-f32math", "bf16-f32math"),
    )


def _gradient(bidirectional, queries, keys):
    flow, table = painted((2, 2, queries.shape[-1], keys.shape[-1]), 9), np.zeros((8, 2))
    buckets = np.vectorize(lambda offset: definition(int(offset), 8, 16, bidirectional))(keys[:, None] - queries[..., None])

    def loss(flow, table):
        return sum(flow[b, h, i, j] * table[buckets[b, i, j], h] for b, h, i, j in np.ndindex(flow.shape))

    expected, cond = slopes(loss, {"flow": flow, "table": table}, "table", 2 * buckets[0].size)
    return case(
        f"t5/{'bidirectional' if bidirectional else 'causal'}/h2-b8-d16/gradient",
        op="bias_gradient",
        params={"buckets": 8, "max_distance": 16, "bidirectional": bidirectional},
        tensors={"score_gradient": flow, "queries": queries, "keys": keys},
        expected=expected,
        cond=cond,
        kills="rows_overwritten first_batch_row averaged direction other_direction positions_shared_across_batch",
        comment="Buckets that occur often, once and never; a batch of two, the first text padded on the left.",
    )
