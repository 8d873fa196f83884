"""Shaw et al.: one vector an offset, added to keys and to values."""

# Over budget: keys, values and gradients

import mpmath
import numpy as np

from posref.relative import shaw
from proofs.offsets import clipped
from proofs.vectors import *
from proofs.vectors import softmax as weighted

SOURCES = (
    "Shaw et al., Self-Attention with Relative Position Representations, arXiv 1803.02155, Eqs. (3) and (4)",
    "Huang et al., Improve Transformer Models with Better Relative Position Embeddings, arXiv 2009.13658, section 3",
)

CONVENTIONS = {
    "axes": "q, k, v are (batch, heads, n, d); tables are (2k + 1, d) or (heads, 2k + 1, d), row r for the offset r - k",
    "mask": "causal: the key's position is at most the query's",
    "offset": "key position - query position, limited to -k .. k",
    "op attend": "softmax(scores) (v + value vector of the offset); without value_table softmax(scores) v",
    "op scores_gradient": "of q, k or key_table, as `of` says, from that of every score; a table that heads share has the sum",
    "op scores": "scale q . (k + key vector of the offset), and + scale k . (that vector) for relative_key_query",
}
REJECTED = (
    ("shaw/relative-key/h3-d4-k2/scores-decode", "even-table", {"key_table": fewer}, "shape", "-k to k are 2k + 1 rows."),
    ("shaw/relative-key/h3-d4-k2/scores-decode", "variant", {"variant": "key"}, "choice", "relative_key or .._key_query."),
)
REASONS = """
pair scores_gradient * gradient_unscaled scale_squared | multiplied by the scale, and divided
pair scores_gradient relative_key_query key_part_left_out other_variant | the other of the other
"""

PADDED = np.array([[0, 0, 1, 2, 3], [0, 1, 2, 3, 4]])  # the first row is padded on the left by a token


def vectors():
    every = "transposed clip_one_early clip_low_late wrapped no_position content_scaled_alone position_of_the_key other_variant"
    for variant in shaw.VARIANTS:
        both = " key_term_transposed" if variant == "relative_key_query" else ""
        yield _scores("chunk", [1, 4], range(5), variant, every + both + " positions_ignored")
        yield _scores("decode", [48043], [0, 48041, 48042, 48043, 48050], variant, "transposed positions_ignored" + both)
    yield _scores("heads", [1, 4], range(5), "relative_key", every + " table_of_the_first_head", heads=True)
    yield _scores("padded", PADDED[:, 2:], PADDED, "relative_key", "transposed positions_shared_across_batch")
    yield _scores("one-text", [1, 4], range(5), "relative_key_query", every, one_text=True)
    mistakes = "transposed no_position no_value_term value_transposed value_by_key_table"
    yield _attend("chunk", [1, 4], mistakes + " positions_ignored", causal=False)
    yield _attend("masked", [2, 4], mistakes + " no_mask", causal=True)
    yield _attend("decode", [4], "no_value_term value_by_key_table clip_low_late positions_ignored", causal=True)
    yield _attend("heads", [1, 4], mistakes + " table_of_the_first_head", causal=False, heads=True)
    yield _attend("keys-only", [1, 4], "transposed no_position", causal=False, values=False)
    yield _attend("far", FAR[3:], f"{mistakes} positions_ignored {NARROW} no_mask", causal=True, keys=FAR)
    for variant in shaw.VARIANTS:
        yield _scores("far", FAR[3:], FAR, variant, f"transposed positions_ignored {NARROW}")
    rows = f"{NARROW} int16_positions positions_shared_across_batch wrong_axis queries_and_keys_swapped heads_exchanged"
    for variant in shaw.VARIANTS:
        yield _scores("places", PLACES, PLACES, variant, rows, heads=True, small=True)
        yield _gradient(variant, "q" if variant == "relative_key" else "key_table", True)
        yield _scores("negative", BELOW[1:3], BELOW, variant, "transposed positions_ignored", one_text=True)
        yield _gradient(variant, "q", at=BELOW)
    yield _attend("negative", BELOW[None, 1:3], "transposed positions_ignored", True, keys=BELOW[None], small=True)
    yield _attend("large", [[2, 4]], "scale_ignored", True, keys=[range(5)], small=True, scale=256, models=("f64", "f32"))
    wrong = f"{rows} table_of_the_first_head no_mask mask_left_aligned"
    yield _attend("places", PLACES, wrong, True, heads=True, keys=PLACES, small=True)
    for variant, of in (("relative_key", "q"), ("relative_key", "key_table"), ("relative_key_query", "k")):
        yield _gradient(variant, of)
    yield _gradient("relative_key_query", "key_table")
    yield _gradient("relative_key_query", "key_table", one_text=True)


def _rows(queries, keys):
    """The row of the table for every pair: `(batch or 1, 1, n_query, n_key)`."""
    queries, keys = np.atleast_2d(queries), np.atleast_2d(keys)
    at = keys[:, None, None, :] - queries[:, None, :, None]
    return np.vectorize(lambda o: clipped(o, -2, 2) + 2)(at)


def _by_row(products, at):
    """Entry (i, row of (i, j)) of the products with all rows of a table."""
    spread = lambda x: np.take_along_axis(x, np.broadcast_to(at, (*x.shape[:2], *at.shape[2:])), axis=-1)
    return rearranged(spread, products)


def _all_scores(q, k, table, at, scale, variant):
    q, k, table = exact(q), exact(k), exact(table)
    swap = lambda x: np.swapaxes(x, -1, -2)
    parts = [dot(q, k, scale), _by_row(dot(q, table, scale), at)]
    if variant == "relative_key_query":
        parts.append(rearranged(swap, _by_row(dot(k, table, scale), swap(at))))
    return total(*parts)


def _case(op, probe, queries, keys, params, tensors, result, mistakes, **rest):
    q = tensors["q"]
    id = f"shaw/{params['variant'].replace('_', '-')}/h{q.shape[-3]}-d{q.shape[-1]}-k2/{op}-{probe}"
    return case(id, op, params, {**tensors, "queries": np.array(queries), "keys": np.array(keys)}, *result, mistakes, **rest)


def _sizes(queries, keys, small):
    """(batch, heads, n, d) of queries and of keys: two heads for a batch of positions, three for one row."""
    lead = (len(queries), 2) if small else (2, 3)
    return (*lead, np.shape(queries)[-1], 4), (*lead, np.shape(keys)[-1], 4)


def _scores(probe, queries, keys, variant, mistakes, heads=False, small=False, one_text=False):
    of_q, of_k = _sizes(queries, keys, small)
    scale, table = mpmath.mpf(3) / 16 if small else mpmath.mpf(1) / 2, painted((of_q[1], 5, 4) if heads else (5, 4), 4)
    q, k = painted(of_q, 1), painted(of_k, 2)

    result = _all_scores(q, k, table, _rows(queries, keys), scale, variant)
    if one_text:
        q, k, result = q[0], k[0], rearranged(lambda x: x[0], result)
    params = {"variant": variant, "scale": float(scale)}
    return _case("scores", probe, queries, keys, params, {"q": q, "k": k, "key_table": table}, result, mistakes)


def _attend(probe, queries, mistakes, causal, heads=False, values=True, keys=tuple(range(5)), small=False, **given):
    queries, keys, (of_q, of_k) = np.array(queries), np.array(keys), _sizes(queries, keys, small)
    models = given.get("models", tuple(MODELS))
    scale, lead = mpmath.mpf(given.get("scale", 3 / 16 if small else 1 / 2)), of_q[1:2] if heads else ()
    q, k, v = painted(of_q, 1), painted(of_k, 2), painted(of_k, 6)
    table, value_table = painted((*lead, 5, 4), 4), painted((*lead, 5, 4), 8)
    at = _rows(queries, keys)
    mask = (keys[..., None, :] <= queries[..., None]).reshape(-1, 1, *at.shape[2:]) | (not causal)
    weights = weighted(_all_scores(q, k, table, at, scale, "relative_key"), mask, models=models)
    result = average(weights, exact(v))
    if values:
        a = np.stack([value_table[:, rows[0]] for rows in at]) if heads else value_table[at[:, 0]][:, None]
        term = average(rearranged(lambda x: x[..., None, :], weights), exact(a))
        result = total(result, rearranged(lambda x: x[..., 0, :], term))
    tensors = {"q": q, "k": k, "v": v, "key_table": table} | ({"value_table": value_table} if values else {})
    params = {"variant": "relative_key", "scale": float(scale), "causal": causal}
    return _case("attend", probe, queries, keys, params, tensors, result, mistakes, models=models)


def _gradient(variant, of, places=False, one_text=False, at=None):
    queries, keys = (PLACES, PLACES) if places else (np.array([[0, 2, 9]]), np.array([[0, 1, 2, 8, 9]]))
    queries, keys = (queries, keys) if at is None else (at[None, 1:3], at[None])
    (batch, n), m, table, scale = queries.shape, keys.shape[-1], painted((5, 4), 6), 0.1875 if places else 0.375
    q, k, flow = painted((batch, 2, n, 4), 1), painted((batch, 2, m, 4), 2), painted((batch, 2, n, m), 9)
    at, suffix = _rows(queries, keys)[:, 0], "" if at is None else "-negative"

    def loss(flow, q, k, key_table):
        found = mpmath.mpf(0)
        for b, h, i, j in np.ndindex(flow.shape):
            vector = key_table[at[b, i, j]]
            score = q[b, h, i] @ (k[b, h, j] + vector) + (k[b, h, j] @ vector if variant == "relative_key_query" else 0)
            found += flow[b, h, i, j] * scale * score
        return found

    answer = slopes(loss, {"flow": flow, "q": q, "k": k, "key_table": table}, of, 2 * batch * n * m + 2 if places else 14)
    if one_text:  # the gradient of a table has no axis of texts
        q, k, flow = q[0], k[0], flow[0]
    wrong = {"q": "content_gradient_alone", "k": "key_part_left_out other_variant"}.get(of, "")
    wrong += " key_part_left_out" if of == "key_table" and variant == "relative_key_query" else ""
    id = f"shaw/{variant}/h2-d4-k2/gradient-{of.replace('_', '-')}{'-places' * places}{'-one-text' * one_text}{suffix}"
    params = {"scale": scale, "variant": variant, "of": of}
    tensors = {"score_gradient": flow, "q": q, "k": k, "key_table": table}
    tensors |= {"queries": queries, "keys": keys} if places else {"queries": queries[0], "keys": keys[0]}
    kills = f"rows_overwritten gradient_unscaled transposed positions_ignored {wrong}" + f" {NARROW} int16_positions" * places
    comment, models = "Far keys share the rows at both ends of the table.", MATH_IN_F32 if places else tuple(MODELS)
    return case(id, "scores_gradient", params, tensors, *answer, kills, models=models, comment=comment)
