"""Decoupled RoPE: scores of content beside a turned part that heads share, with keys made and absorbed."""

import mpmath
import numpy as np

from proofs.rotary.decoupled import definition
from proofs.vectors import *

SOURCES = ("DeepSeek-AI, DeepSeek-V2, arXiv 2405.04434, Eqs. (14) to (19)",)

CONVENTIONS = {
    "q, k": "(batch, heads, n, d): content, without position",
    "q_turned": "(batch, heads, n_query, d_rope): turned by the caller; k_turned (batch, 1, n_key, d_rope): one for all heads",
    "latents": "(batch, 1, n_key, d_latent); w_k (heads, d_latent, d): keys are latents @ w_k",
    "seen": "the mask as integers: 1 may attend, 0 may not",
    "op attend": "softmax(scores) v over the keys that are seen",
    "op scores": "scale (q . k + q_turned . k_turned)",
    "op absorbed_scores": "the same for keys latents @ w_k",
}
REJECTED = (("decoupled/scores/tiny/scores", "widths", {"k_turned": cut}, "shape", "The turned parts are equally wide."),)


ANY = "content_alone turned_alone scale_of_the_content features_reversed"


def vectors():
    yield _scores("tiny", (1, 2, 2, 3), 4, 2)
    yield _scores("batch", (2, 3, 4, 5), 6, 4)
    yield _scores("decode", (2, 2, 1, 6), 5, 4)
    yield _absorbed("tiny", (1, 2, 2, 3), 4, 2, 3)
    yield _absorbed("batch", (2, 3, 2, 4), 4, 4, 5)
    yield _attend("cached", (1, 2, 2, 4), 4, 2)
    seen = np.array([[1, 0, 0, 1], [0, 1, 0, 1]])
    yield _attend("holes", (1, 2, 2, 4), 4, 2, "mask_inverted", seen=seen)
    yield _attend("large", (1, 2, 2, 4), 4, 2, "scale_ignored", scale=512.0, models=("f64", "f32"))
    swapped = "queries_and_keys_swapped"
    yield _scores("square", (2, 2, 3, 3), 6, 2, swapped)
    yield _attend("square", (2, 2, 3, 3), 6, 2, f"{swapped} keys_of_the_first_batch_row heads_exchanged mask_inverted")


def _inputs(shape, d, d_rope):
    batch, heads, n_query, n_key = shape
    q, p = painted((batch, heads, n_query, d), 1) / 4, painted((batch, heads, n_query, d_rope), 2) / 4
    return q, p, painted((batch, 1, n_key, d_rope), 6) / 4


def _values(q, p, k, r, scale):
    """`definition` of every entry."""
    q, p, k, r = (numbers(x) for x in (q, p, k, r))
    product = lambda x, y: x @ np.swapaxes(y, -1, -2)
    return definition(product(q, k), product(p, r), scale)


def _joined(q, p, k, r, scale):
    """The sensitivities: those of one inner product of joined vectors."""
    r = np.broadcast_to(r, (*k.shape[:-1], r.shape[-1]))
    return dot(exact(np.concatenate([q, p], axis=-1)), exact(np.concatenate([k, r], axis=-1)), scale)[1]


def _scores(name, shape, d, d_rope, kills=""):
    scale = float(1 / mpmath.sqrt(d + d_rope))
    (q, p, r), k = _inputs(shape, d, d_rope), painted((*shape[:2], shape[3], d), 4) / 4
    id, tensors = f"decoupled/scores/{name}/scores", {"q": q, "q_turned": p, "k": k, "k_turned": r}
    expected = _values(q, p, k, r, scale)
    return case(id, "scores", {"scale": scale}, tensors, expected, _joined(q, p, k, r, scale), f"{ANY} {kills}")


def _absorbed(name, shape, d, d_rope, d_latent):
    scale = float(1 / mpmath.sqrt(d + d_rope))
    (q, p, r), heads = _inputs(shape, d, d_rope), shape[1]
    latents, w = painted((shape[0], 1, shape[3], d_latent), 8) / 4, painted((heads, d_latent, d), 9) / 4
    k, (_, made) = latents @ w, dot(exact(latents), exact(np.swapaxes(w, -1, -2)))
    content = dot(exact(q), (np.asarray(k, dtype=object), made), scale)[1]
    joined = _joined(q, p, k, r, scale)
    id, tensors = f"decoupled/absorbed/{name}/scores", {"q": q, "q_turned": p, "latents": latents, "k_turned": r, "w_k": w}
    expected, cond = _values(q, p, k, r, scale), {each: content[each] + joined[each] for each in joined}
    return case(id, "absorbed_scores", {"scale": scale}, tensors, expected, cond, f"{ANY} heads_share_a_matrix")


def _attend(name, shape, d, d_rope, kills="", *, scale=None, seen=None, models=MATH_IN_F32):
    scale, lead = scale or float(1 / mpmath.sqrt(d + d_rope)), shape[:2]
    (q, p, r), k, v = _inputs(shape, d, d_rope), painted((*lead, shape[3], d), 4), painted((*lead, shape[3], 3), 8)
    q, p, seen = 4 * q, 4 * p, np.tri(*shape[2:], shape[3] - shape[2], dtype=int) if seen is None else seen
    scores = _values(q, p, k, r, scale), _joined(q, p, k, r, scale)
    tensors = {"q": q, "q_turned": p, "k": k, "k_turned": r, "v": v, "seen": seen}
    kills = kills if name == "large" else f"{ANY} each_by_its_width turned_unscaled no_mask {kills}"
    answer = average(softmax(scores, seen != 0, models=models if name == "large" else tuple(MODELS)), exact(v))
    return case(f"decoupled/attend/{name}/attend", "attend", {"scale": scale}, tensors, *answer, kills, models=models)
