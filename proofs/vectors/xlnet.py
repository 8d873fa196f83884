"""XLNet: Transformer-XL's score in both directions, and a term for the segment."""

import mpmath
import numpy as np

from proofs.relative.xlnet import pattern, row
from proofs.vectors import average, case, dot, exact, painted, softmax, total
from proofs.vectors.shaw import rearranged

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


def vectors():
    for kind, clamp in (("bi", 0), ("uni", 0), ("bi", 2), ("uni", 2)):
        yield _distances(4, 6, kind, clamp)
    every = "first_row_kept not_shifted segments_exchanged no_segments no_s segment_not_scaled vectors_rotated"
    yield _scores("square", 5, 5, "bi", every)
    yield _scores("memory", 2, 5, "bi", every + " memory_ignored", batched=True)
    yield _scores("memory", 2, 5, "uni", every + " memory_ignored", batched=True)
    yield _scores("decode", 1, 5, "bi", "first_row_kept segments_exchanged no_segments no_s segment_not_scaled vectors_rotated")
    yield _scores("square", 3, 3, "uni", every.replace("first_row_kept ", ""), kills="queries_and_keys_swapped")
    slow = {"scale": 3 / 16, "models": ("f64", "f32", "f16-f32math", "bf16-f32math")}
    masked = "segments_exchanged no_segments no_s not_shifted memory_ignored"
    yield _attend("memory", 2, 5, "uni", masked + " no_mask", batched=True, **slow)
    yield _attend("memory", 2, 5, "bi", masked, batched=True, **slow)
    yield _attend("square", 3, 3, "bi", "segments_exchanged no_segments not_shifted", kills="queries_and_keys_swapped")
    yield _attend("square", 5, 5, "uni", "segments_exchanged no_segments no_mask not_shifted")


def _distances(n, m, kind, clamp):
    every = lambda first, low, high: [min(max(o, low), high) for o in range(first, -n if kind == "bi" else -1, -1)]
    limits = (-clamp, clamp) if clamp else (-99, 99)
    wrong = {"one_row_less": every(m - 1, *limits)}
    if clamp:
        wrong["clamp_ignored"] = every(m, -99, 99)
    if clamp and kind == "bi":
        wrong["clamp_one_side"] = every(m, -99, clamp)
    return case(
        f"xlnet/{kind}/q{n}-k{m}/distances" + f"-clamp{clamp}" * bool(clamp),
        op="distances",
        params={"n_query": n, "n_key": m, "attn_type": kind, "clamp_len": clamp},
        tensors={},
        expected=every(m, *limits),
        mistakes=wrong,
    )


def _operands(n, m, kind, batched):
    rows = n + m if kind == "bi" else m + 1
    shapes = {"q": (2, 3, n, 4), "k": (2, 3, m, 4), "r": (3, rows, 4), "e": (2, 3, 4), "u": (3, 4), "v": (3, 4), "s": (3, 4)}
    tensors = {name: painted(shape, tag) for (name, shape), tag in zip(shapes.items(), (1, 2, 4, 6, 8, 9, 10), strict=True)}
    return tensors | {"same": (pattern(n, m) if batched else pattern(n, m)[0, 0]).astype(int)}


def _all_scores(q, k, r, e, u, v, s, same, scale, mistake):
    """Scores and their sensitivities: three products, the second moved, the third chosen."""
    n, m = q.shape[-2], k.shape[-2]
    if mistake == "vectors_rotated":
        u, v, s = v, s, u
    if mistake == "segment_of_the_first_batch":
        same = np.broadcast_to(same[:1], same.shape)
    if mistake == "segments_exchanged":
        same = 1 - same
    content = dot(total(exact(q), exact(u[:, None])), exact(k), scale)
    position = dot(total(exact(q), exact(v[:, None])), exact(r), scale)
    own = 1 if mistake == "segment_not_scaled" else scale
    segment = dot(total(exact(q), exact(s[:, None] * (mistake != "no_s"))), exact(np.swapaxes(e, 0, 1)), own)
    j, i = np.arange(m), np.arange(n)[:, None]
    at = row(i, j, n, m) - (mistake == "first_row_kept")
    if mistake == "not_shifted":
        at = row(0 * i, j, n, m)
    if mistake == "memory_ignored":
        at = at + m - n
    at = np.minimum(at, r.shape[-2] - 1)
    moved = rearranged(lambda x: np.take_along_axis(x, np.broadcast_to(at, (2, 3, n, m)), axis=-1), position)
    chosen = rearranged(lambda x: np.where(same, x[..., :1], x[..., 1:]), segment)
    parts = (content, moved) if mistake == "no_segments" else (content, moved, chosen)
    seen = (r.shape[-2] == n + m) | (j <= i + m - n)
    return rearranged(lambda x: np.where(seen, x, 0), total(*parts))


def _case(op, probe, n, m, kind, tensors, result, mistakes, scale=0.5, **rest):
    expected, cond = result()
    return case(
        f"xlnet/{kind}/q{n}-k{m}-h3-d4/{op}-{probe}",
        op=op,
        params={"scale": float(scale), "attn_type": kind},
        tensors=tensors,
        expected=expected,
        cond=cond,
        **rest,
        ignore=kind == "uni" and op == "scores" and ~_seen(n, m),
        mistakes={mistake: result(mistake)[0] for mistake in mistakes.split()},
    )


def _seen(n, m):
    return np.arange(m) <= np.arange(n)[:, None] + m - n


def _scores(probe, n, m, kind, mistakes, batched=False, **rest):
    tensors, scale = _operands(n, m, kind, batched), mpmath.mpf(1) / 2
    mistakes += " segment_of_the_first_batch" * batched
    result = lambda mistake=None: _all_scores(*tensors.values(), scale, mistake)
    return _case("scores", probe, n, m, kind, tensors, result, mistakes, **rest)


def _attend(probe, n, m, kind, mistakes, batched=False, scale=0.5, **rest):
    tensors, scale = _operands(n, m, kind, batched), mpmath.mpf(scale)
    tensors |= {name: tensors[name] / 2 for name in "qkre"}  # scores of moderate size
    values, seen = painted((2, 3, m, 4), 13), _seen(n, m) | (kind == "bi")
    mistakes += " segment_of_the_first_batch" * batched

    def result(mistake=None):
        scores = _all_scores(*tensors.values(), scale, mistake)
        return average(softmax(scores, None if mistake == "no_mask" else seen), exact(values))

    return _case("attend", probe, n, m, kind, {**tensors, "values": values}, result, mistakes, scale, **rest)
