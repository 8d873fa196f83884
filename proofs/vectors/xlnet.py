"""XLNet: Transformer-XL's score in both directions, and a term for the segment."""

# Over budget: two kinds of attention, with segments and memory

import mpmath
import numpy as np

from proofs.relative.xlnet import pattern, row
from proofs.vectors import *

SOURCES = (
    "Yang et al., XLNet, arXiv 1906.08237, sections 2.4 and 2.5",
    "zihangdai/xlnet, modeling.py, relative_positional_encoding, rel_shift, rel_attn_core",
)

CONVENTIONS = {
    "axes": "q, k are (batch, heads, n, d), r (heads, rows, d), u, v, s (heads, d), e (2, heads, d), same segment first",
    "distance": "query position - key position; the last query stands at the last key; rows of r begin at n_key",
    "future": "scores of uni for keys after the query are 0 here and have no meaning: they are ignored",
    "op attend": "softmax(scores) values, masked if uni",
    "op distances": "the distance of every row of r, exactly; clamp_len 0 is none",
    "op scores": "scale ((q + u) . k + (q + v) . r + (q + s) . e)",
    "same": "1 where query and key are in one segment, (n_query, n_key) or (batch, 1, n_query, n_key)",
}
REJECTED = (("xlnet/bi/q1-k5-h3-d4/scores-decode", "distances", {"r": fewer}, "shape", "A row for every distance."),)
REASONS = """
distances uni clamp_one_side | causal distances have one side
mutant scores: return np.where(defined, * | scores after the query are ignored
"""


def vectors():
    for kind, clamp in (("bi", 0), ("uni", 0), ("bi", 2), ("uni", 2)):
        yield _distances(4, 6, kind, clamp)
    every = "first_row_kept not_shifted segments_exchanged no_segments no_s segment_not_scaled vectors_rotated"
    yield _scores("square", 5, 5, "bi", every)
    yield _scores("memory", 2, 5, "bi", every + " memory_ignored", batched=True)
    yield _scores("memory", 2, 5, "uni", every + " memory_ignored", batched=True)
    yield _scores("decode", 1, 5, "bi", "first_row_kept segments_exchanged no_segments no_s segment_not_scaled vectors_rotated")
    yield _scores("square", 3, 3, "uni", every.replace("first_row_kept", "queries_and_keys_swapped"))
    for kind in ("bi", "uni"):
        yield _scores("other-scale", 2, 5, kind, "no_segments segment_not_scaled no_s", scale=3 / 16)
    slow = {"scale": 3 / 16, "models": MATH_IN_F32}
    masked = "segments_exchanged no_segments no_s not_shifted memory_ignored"
    yield _attend("memory", 2, 5, "uni", masked + " no_mask", batched=True, **slow)
    yield _attend("memory", 2, 5, "bi", masked, batched=True, **slow)
    for kind in ("bi", "uni"):
        yield _attend("large", 1, 3, kind, "scale_ignored heads_exchanged", scale=1024, models=("f64", "f32"))
    yield _attend("square", 3, 3, "bi", "segments_exchanged no_segments not_shifted queries_and_keys_swapped")
    yield _attend("square", 5, 5, "uni", "segments_exchanged no_segments no_mask not_shifted")


def _distances(n, m, kind, clamp):
    reach = range(m, -n if kind == "bi" else -1, -1)
    id = f"xlnet/{kind}/q{n}-k{m}/distances" + f"-clamp{clamp}" * bool(clamp)
    params = {"n_query": n, "n_key": m, "attn_type": kind, "clamp_len": clamp}
    kills = "one_row_less" + " clamp_ignored" * bool(clamp) + " clamp_one_side" * (clamp > 0 and kind == "bi")
    return case(id, "distances", params, {}, [min(max(o, -clamp), clamp) if clamp else o for o in reach], kills=kills)


def _operands(n, m, kind, batched):
    rows = n + m if kind == "bi" else m + 1
    shapes = {"q": (2, 3, n, 4), "k": (2, 3, m, 4), "r": (3, rows, 4), "e": (2, 3, 4), "u": (3, 4), "v": (3, 4), "s": (3, 4)}
    tensors = {name: painted(shape, tag) for (name, shape), tag in zip(shapes.items(), (1, 2, 4, 6, 8, 9, 10), strict=True)}
    return tensors | {"same": (pattern(n, m) if batched else pattern(n, m)[0, 0]).astype(int)}


def _all_scores(q, k, r, e, u, v, s, same, scale):
    """Scores and their sensitivities: three products, the second moved, the third chosen."""
    n, m = q.shape[-2], k.shape[-2]
    by = lambda x, y: dot(total(exact(q), exact(x[:, None])), exact(y), scale)
    content, position, segment = by(u, k), by(v, r), by(s, np.swapaxes(e, 0, 1))
    at = np.minimum(row(np.arange(n)[:, None], np.arange(m), n, m), r.shape[-2] - 1)
    moved = rearranged(lambda x: np.take_along_axis(x, np.broadcast_to(at, (2, 3, n, m)), axis=-1), position)
    chosen = rearranged(lambda x: np.where(same, x[..., :1], x[..., 1:]), segment)
    seen = (r.shape[-2] == n + m) | _seen(n, m)
    return rearranged(lambda x: np.where(seen, x, 0), total(content, moved, chosen))


def _case(op, probe, n, m, kind, tensors, answer, scale=0.5, **rest):
    id, ignore = f"xlnet/{kind}/q{n}-k{m}-h3-d4/{op}-{probe}", kind == "uni" and op == "scores" and ~_seen(n, m)
    return case(id, op, {"scale": scale, "attn_type": kind}, tensors, *answer, ignore=ignore, **rest)


def _seen(n, m):
    return np.arange(m) <= np.arange(n)[:, None] + m - n


def _scores(probe, n, m, kind, kills, batched=False, scale=0.5):
    tensors = _operands(n, m, kind, batched)
    kills += " segment_of_the_first_batch" * batched
    return _case("scores", probe, n, m, kind, tensors, _all_scores(*tensors.values(), mpmath.mpf(scale)), scale, kills=kills)


def _attend(probe, n, m, kind, kills, batched=False, scale=0.5, **rest):
    tensors = _operands(n, m, kind, batched)
    tensors |= {name: tensors[name] / 2 for name in "qkre"}  # scores of moderate size
    values, seen = painted((2, 3, m, 4), 13), _seen(n, m) | (kind == "bi")
    kills += " segment_of_the_first_batch" * batched
    scores, models = _all_scores(*tensors.values(), mpmath.mpf(scale)), rest["models"] if probe == "large" else tuple(MODELS)
    answer = average(softmax(scores, seen, models=models), exact(values))
    return _case("attend", probe, n, m, kind, {**tensors, "values": values}, answer, scale, kills=kills, **rest)
