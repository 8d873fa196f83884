"""DeBERTa: disentangled attention, content and relative position in two terms of their own."""

# Over budget: both conventions, buckets, the decoder, and gradients

import mpmath
import numpy as np

from proofs.relative.deberta import delta, log_bucket
from proofs.vectors import *

SOURCES = (
    "He et al., DeBERTa, arXiv 2006.03654, Eqs. (3), (4), section 3.2 and appendix A.8",
    "microsoft/DeBERTa 4d7fe0b, deberta/disentangled_attention.py, deberta/da_utils.py",
)

CONVENTIONS = {
    "axes": "q, k are (batch, heads, n, d); q_r, k_r are (heads, 2K, d); scores are (batch, heads, n_query, n_key)",
    "convention": "position-to-content reads row delta(j, i) of q_r in the paper, delta(i, j) as released",
    "delta": "clip(i - j + K, 0, 2K - 1) for query position i and key position j; K is half the number of rows",
    "offset": "key position - query position",
    "scale": "1/sqrt(d (1 + terms)), terms: content-to-position (c2p), position-to-content (p2c), one or both",
    "op decoder": "enhanced mask decoder with layer(query, h) = query + softmax(query h^T) h, used `steps` times; h is hidden, "
    "the first query positions (paper) or hidden + positions (released)",
    "op ends": "the last distance of each log bucket 0 .. buckets - 1, exactly",
    "op index": "delta of every offset, exactly",
    "op log_bucket": "the log bucket of every offset, exactly; a distance of max_position or more counts as max_position - 1 "
    "(microsoft) or has bucket `buckets` (transformers)",
    "op log_scores": "as scores, with the log buckets of the offsets in the place of j - i",
    "op scores_gradient": "of q, k, q_r or k_r, as `of` says, from that of every score",
    "op scores": "scaled scores, from positions",
}
REJECTED = (
    ("deberta/released/h3-d4-k3/c2p", "no-convention", {"convention": None}, "missing", "delta(i, j) or delta(j, i)."),
    ("deberta/transformers/b256-p512/log-buckets", "odd-buckets", {"buckets": 255}, "range", "Half for each side."),
)
REASONS = """
decoder * int16_positions | `positions` of this op are vectors: no integer, nothing near 2^15
decoder * positions_below_2^20 | `positions` of this op are vectors: nothing near 2^20
decoder * positions_clamped | `positions` of this op are vectors: nothing near 4096
decoder * position_minus_one_floored | `positions` of this op are vectors: their index is the caller's
"""

FAR = [-10000, -1000, -513, -512, -511, -300, -200, -129, -128, -127, -1, 0]
FAR = FAR + [-offset for offset in FAR[-2::-1]] + [400, 510, 290, 150, 170]


def vectors():
    expected, kills = [delta(0, offset, 4) for offset in range(-7, 8)], "direction symmetric_clip clip_one_late"
    yield case("deberta/index/k4/offsets", "index", {"span": 4}, {"offsets": list(range(-7, 8))}, expected, kills=kills)
    for buckets, max_position in ((8, 109), (18, 17), (256, 512)):
        yield _ends(buckets, max_position)
    for source, beyond in (("microsoft", 10**4), ("transformers", 0)):  # transformers goes on counting, which a clip ends
        reach = [offset for offset in FAR if abs(offset) <= 512 + beyond]
        yield _log_buckets(source, 256, 512, reach, "other_source rounded_down logarithm_to_max_position sequence_length")
        yield _log_buckets(source, 18, 17, range(-17, 18), "other_source rounded_down f32_logarithm")
    yield _log_buckets("microsoft", 18, 12, range(-12, 13), "other_source")
    wrong = "direction symmetric_clip rows_exchanged position_to_position scale_of_one_term content_alone_scaled"
    for convention, other in (("paper", "released_index"), ("released", "paper_index")):
        yield _scores("square", convention, range(6), range(6), 4, ("c2p", "p2c"), f"{other} {wrong}")
        yield _scores("last", convention, [6], range(7), 3, ("c2p", "p2c"), f"{other} direction positions_ignored")
    wrong = "paper_index positions_ignored positions_shared_across_batch"
    yield _scores("padded", "released", PADDED[:, -1:], PADDED, 4, ("c2p", "p2c"), wrong)
    yield _scores("c2p", "released", [4], range(5), 3, ("c2p",), "direction scale_of_one_term positions_ignored")
    yield _scores("p2c", "released", [4], range(5), 3, ("p2c",), "direction paper_index positions_ignored")
    yield _scores("far", "released", [40, 0], [0, 1, 44, 39, 200], 6, ("c2p", "p2c"), "paper_index no_log_buckets", log=(6, 60))
    yield _scores("one-text", "released", range(3), range(5), 3, ("c2p", "p2c"), "direction", one_text=True)
    rows = f"{NARROW} int16_positions positions_shared_across_batch positions_ignored wrong_axis queries_and_keys_swapped"
    for convention in ("paper", "released"):
        yield _scores("places", convention, PLACES, PLACES, 3, ("c2p", "p2c"), f"direction {rows}", heads=2)
        yield _scores("negative", convention, BELOW[None, :2], BELOW[None], 3, ("c2p", "p2c"), "direction", heads=1)
    yield _scores("places-log", "released", PLACES, PLACES, 4, ("c2p", "p2c"), rows, log=(18, 17), heads=2)
    yield _scores("negative-log", "released", BELOW[None, :2], BELOW[None], 4, ("c2p",), "direction", log=(18, 17), heads=1)
    ends = "f32_logarithm logarithm_to_max_position sequence_length"
    yield _scores("ties", "released", [20], [8, 35, 33, 20], 15, ("c2p", "p2c"), ends, log=(18, 17), heads=1)
    for convention, of in (("paper", "q"), ("released", "q_r")):
        yield _gradient(convention, of, True)
    for convention, of in (("paper", "q"), ("paper", "q_r"), ("paper", "k_r"), ("released", "k"), ("released", "q_r")):
        yield _gradient(convention, of)
    for of in ("q_r", "k_r"):
        yield _gradient("paper", of, one_text=True)
    for convention in ("paper", "released"):
        yield _gradient(convention, "q", at=BELOW)
    for convention in ("paper", "released"):
        yield _decoder(convention, 2)
        yield _decoder(convention, 1, 128, models=("f64", "f32"))


def _ends(buckets, max_position):
    found = [log_bucket(distance, buckets, max_position) for distance in range(max_position)]
    params = {"buckets": buckets, "max_position": max_position}
    expected = [max(n for n, each in enumerate(found) if each <= bucket) for bucket in range(buckets)]
    return case(f"deberta/log/b{buckets}-p{max_position}/ends", "ends", params, {}, expected)


def _log_bucket(offset, buckets, max_position, source):
    """`log_bucket`, cut off as `source` does."""
    bucket = log_bucket(min(abs(offset), max_position - (source == "microsoft")), buckets, max_position)
    return bucket if offset > 0 else -bucket


def _log_buckets(source, buckets, max_position, reach, kills):
    id = f"deberta/{source}/b{buckets}-p{max_position}/log-buckets"
    params = {"buckets": buckets, "max_position": max_position, "source": source}
    expected = [_log_bucket(offset, buckets, max_position, source) for offset in reach]
    return case(id, "log_bucket", params, {"offsets": list(reach)}, expected, kills=kills)


def _term(left, right, scale):
    """scale left @ right^T; the scale is a quotient and a root that are rounded."""
    value, cond = dot(exact(left), exact(right), scale)
    return value, cond | {"amp": cond["amp"] + terms(2, scale * (abs(left) @ np.swapaxes(abs(right), -1, -2)))}


def _gather(pair, index):
    return rearranged(lambda x: np.take_along_axis(x, np.broadcast_to(index, (*x.shape[:-1], index.shape[-1])), axis=-1), pair)


def _scored(vectors, offset, convention, wanted):
    """Scores and sensitivities."""
    q, k, q_r, k_r = vectors
    span, scale = q_r.shape[-2] // 2, 1 / mpmath.sqrt(q.shape[-1] * (1 + len(wanted)))
    first, mirrored = (np.clip(span - o, 0, 2 * span - 1) for o in (offset, -offset))
    second = mirrored if convention == "paper" else first
    parts = [_term(q, k, scale)]
    if "c2p" in wanted:
        parts.append(_gather(_term(q, k_r, scale), first))
    if "p2c" in wanted:
        turned = lambda x: np.swapaxes(x, -1, -2)
        parts.append(rearranged(turned, _gather(_term(k, q_r, scale), turned(second))))
    return total(*parts)


def _scores(probe, convention, queries, keys, span, wanted, kills, log=None, *, heads=3, one_text=False):
    queries, keys = np.array(queries), np.array(keys)
    batch = 1 if probe == "square" else len(queries) if queries.ndim == 2 else 2
    sizes = ((batch, heads, queries.shape[-1]), (batch, heads, keys.shape[-1]), (heads, 2 * span), (heads, 2 * span))
    shapes = [(*size, 4) for size in sizes]
    vectors = [painted(shape, tag) for shape, tag in zip(shapes, (1, 2, 4, 6), strict=True)]

    offset = keys[..., None, :] - queries[..., :, None]
    if log is not None:
        offset = np.vectorize(lambda o: _log_bucket(int(o), *log, "microsoft"), otypes=[int])(offset)
    answer = _scored(vectors, offset[:, None] if offset.ndim == 3 else offset, convention, wanted)
    if one_text:
        vectors[:2], answer = [x[0] for x in vectors[:2]], rearranged(lambda x: x[0], answer)
    params = {"convention": convention, "terms": "+".join(wanted)}
    if log is not None:
        params |= {"buckets": log[0], "max_position": log[1], "source": "microsoft"}
    id = f"deberta/{convention}/h{heads}-d4-k{span}/{probe}"
    tensors = dict(zip(("q", "k", "q_r", "k_r"), vectors, strict=True)) | {"queries": queries, "keys": keys}
    return case(id, "scores" if log is None else "log_scores", params, tensors, *answer, kills)


def _gradient(convention, of, places=False, one_text=False, at=None):
    queries, keys = (PLACES, PLACES) if places else (np.array([[0, 2, 9]]), np.array([[0, 1, 2, 8, 9]]))
    queries, keys = (queries, keys) if at is None else (at[None, 1:3], at[None])
    (batch, n), m = queries.shape, keys.shape[-1]
    q, k, flow = painted((batch, 2, n, 4), 1), painted((batch, 2, m, 4), 2), painted((batch, 2, n, m), 9)
    span, scale = 3 if one_text else 2, 1 / mpmath.sqrt(12)
    q_r, k_r = painted((2, 2 * span, 4), 6), painted((2, 2 * span, 4), 8)

    def loss(flow, q, k, q_r, k_r):
        found = mpmath.mpf(0)
        for b, h, i, j in np.ndindex(flow.shape):
            here, there = delta(queries[b, i], keys[b, j], span), delta(keys[b, j], queries[b, i], span)
            content = q[b, h, i] @ (k[b, h, j] + k_r[h, here])
            found += flow[b, h, i, j] * scale * (content + k[b, h, j] @ q_r[h, there if convention == "paper" else here])
        return found

    roundings = batch * n * m + 1 if places else 16
    answer = slopes(loss, {"flow": flow, "q": q, "k": k, "q_r": q_r, "k_r": k_r}, of, roundings)
    if one_text:  # the gradients of tables have no axis of texts
        q, k, flow = q[0], k[0], flow[0]
    wrong = "content_gradient_alone" if of in ("q", "k") else "direction"
    probe = f"{of.replace('_', '-')}{'-places' * places}{'-one-text' * one_text}{'-negative' * (at is not None)}"
    id = f"deberta/{convention}/h2-d4-k{span}/gradient-{probe}"
    params = {"convention": convention, "of": of}
    tensors = {"score_gradient": flow, "q": q, "k": k, "q_r": q_r, "k_r": k_r}
    tensors |= {"queries": queries, "keys": keys} if places else {"queries": queries[0], "keys": keys[0]}
    kills = f"rows_overwritten gradient_unscaled positions_ignored {wrong}" + f" {NARROW} int16_positions" * places
    comment, models = "Far keys share the rows at both ends.", MATH_IN_F32 if places else tuple(MODELS)
    return case(id, "scores_gradient", params, tensors, *answer, kills, models=models, comment=comment)


def _decoder(convention, steps, size=1, models=tuple(MODELS)):
    hidden, positions = painted((2, 3, 4), 1) * size / 4, painted((3, 4), 2) * size / 4
    start, keys = exact(np.broadcast_to(positions, hidden.shape)), exact(hidden)
    query = total(keys, start) if convention == "released" else start
    for _ in range(steps):
        query = total(query, attend(query, keys, keys, models=models))
    id, params = f"deberta/{convention}/n3-d4/decoder{'-large' * (size > 1)}", {"convention": convention, "steps": steps}
    kills = "other_start" + " one_step keys_follow" * (steps > 1)
    return case(id, "decoder", params, {"hidden": hidden, "positions": positions}, *query, kills, models=models)
