"""NEZHA: Shaw's attention with a fixed sinusoid for keys and values."""

import mpmath
import numpy as np

from posref.relative import nezha
from proofs.absolute.sinusoidal import definition as sinusoid
from proofs.absolute.sinusoidal import frequency
from proofs.offsets import clipped
from proofs.vectors import *
from proofs.vectors import softmax as weighted

SOURCES = (
    "Wei et al., NEZHA, arXiv 1909.00204, section 2.2",
    "huawei-noah/Pretrained-Language-Model, NEZHA-TensorFlow/modeling.py, _generate_relative_positions_embeddings",
)

CONVENTIONS = {
    "axes": "q, k, v are (batch, heads, n, dim); a vector has the features sin, cos, sin, cos, ..",
    "convention": "paper: the sinusoid at the clipped offset; released: at the clipped offset + max_distance",
    "offset": "key position - query position",
    "op attend": "softmax(scale q . (k + a)) (v + a) with frequencies of the head's width",
    "op encode": "a for every offset",
    "op table": "a for the offsets -max_distance .. max_distance",
}
REJECTED = (
    ("nezha/paper/d6-k3/table", "no-convention", {"convention": None}, "missing", "Paper and code count otherwise."),
    ("nezha/paper/d6-k3/table", "odd-dim", {"dim": 5}, "range", "Sines and cosines come in pairs."),
)

REACH = (-131071, -65, -64, -63, -1, 0, 1, 2, 63, 64, 4097)


def vectors():
    every = "other_convention transposed half_layout cos_first no_clip clip_one_early width_of_the_model"
    for convention in nezha.CONVENTIONS:
        yield _plain("table", convention, 3, 6, range(-3, 4), every.replace(" no_clip", ""), {})
        yield _plain("encode", convention, 64, 16, REACH, every, {"offsets": list(REACH)})
        yield _attend(convention, "chunk", [1, 4], "other_convention transposed no_value_term value_transposed")
        yield _attend(convention, "far", FAR[3:], NARROW + " positions_ignored", FAR)
        rows = "queries_and_keys_swapped positions_shared_across_batch wrong_axis keys_of_the_first_batch_row"
        yield _attend(convention, "places", PLACES, f"{NARROW} int16_positions {rows}", PLACES)
        yield _attend(convention, "negative", BELOW[None, 1:3], "positions_ignored transposed", BELOW[None])
        yield _attend(convention, "large", [[1, 4]], "scale_ignored", [range(5)], 256, models=("f64", "f32"))
        masked = "no_mask mask_inverted mask_left_aligned sees_one_ahead mask_strict mask_of_the_future"
        yield _attend(convention, "masked", PLACES[:2], masked, PLACES[:2], 0.1875, causal=True)
    yield _attend("paper", "decode", [4], "other_convention no_value_term no_position positions_ignored")


def _vectors(reach, k, dim, convention):
    """a and its sensitivities: `reach.shape + (dim,)`."""
    w = [frequency(t, dim, mpmath.mpf(10000), m=mpmath) for t in range(dim // 2)]
    at, first = np.array(reach), k * (convention == "released")
    angles = np.vectorize(lambda o: first + clipped(o, -k, k))(at)
    value = np.array([sinusoid(int(angle), w, "interleaved", mpmath) for angle in angles.ravel()])
    phase = [[abs(angle) * x * growth(x) for x in w for _ in (0, 1)] for angle in angles.ravel().tolist()]
    value, phase = value.reshape(*at.shape, dim), np.array(phase).reshape(*at.shape, dim)
    return stored(value, {"amp": terms(3, value), "phase": phase})


def _plain(op, convention, k, dim, reach, mistakes, tensors):
    params = {"dim": dim, "max_distance": k, "convention": convention}
    return case(f"nezha/{convention}/d{dim}-k{k}/{op}", op, params, tensors, *_vectors(reach, k, dim, convention), mistakes)


def _attend(convention, probe, queries, mistakes, keys=tuple(range(5)), scale=0.5, models=None, **rules):
    queries, keys, k, scale = np.array(queries), np.array(keys), 2, mpmath.mpf(scale)
    mask = (keys[:, None, None, :] <= queries[:, None, :, None]) if rules else None
    batch, heads = (len(queries), 2) if queries.ndim == 2 else (2, 3)
    q, key, v = (painted((batch, heads, at.shape[-1], 4), tag) for at, tag in ((queries, 1), (keys, 2), (keys, 6)))
    offset = keys[..., None, :] - queries[..., None]
    a = _vectors(offset[:, None] if queries.ndim == 2 else offset, k, 4, convention)  # (.., n_query, n_key, 4)
    per_query = rearranged(lambda x: x[..., None, :], exact(q))  # (batch, heads, n_query, 1, 4)
    position = rearranged(lambda x: x[..., 0, :], dot(per_query, a, scale))
    weights = weighted(total(dot(exact(q), exact(key), scale), position), mask, models=models or tuple(MODELS))
    term = average(rearranged(lambda x: x[..., None, :], weights), a)
    id = f"nezha/{convention}/h{heads}-d4-k{k}/attend-{probe}"
    params = {"scale": float(scale), "max_distance": k, "convention": convention} | rules
    tensors = {"q": q, "k": key, "v": v, "queries": queries, "keys": keys}
    answer = total(average(weights, exact(v)), rearranged(lambda x: x[..., 0, :], term))
    # 16 bits lose the effect of one key of many
    models = models or tuple(name for name in MODELS if probe not in ("far", "places") or not name.endswith("-all"))
    return case(id, "attend", params, tensors, *answer, mistakes, models=models)
