"""Transformer-XL: content and position in four terms, the query's own position replaced by two vectors."""

# Over budget: tables, shift and four terms

import mpmath
import numpy as np

from proofs.absolute.sinusoidal import definition as sinusoid
from proofs.absolute.sinusoidal import frequency
from proofs.relative.transformer_xl import row
from proofs.vectors import *

SOURCES = (
    "Dai et al., Transformer-XL, arXiv 1901.02860, section 3.3, terms (a) to (d), and appendix B",
    "kimiyoung/transformer-xl, pytorch/mem_transformer.py, RelPartialLearnableMultiHeadAttn",
)

CONVENTIONS = {
    "axes": "q, k are (batch, heads, n, d), r (heads, rows, d), u and v (heads, d)",
    "distance": "query position - key position; the last query stands at the last key",
    "future": "causal entries of keys after the query are 0 here and have no meaning: they are ignored",
    "op attend": "softmax(scores) values, causal scores masked; r is given",
    "op distances": "the distance of every row of r, exactly; clamp_len 0 is none",
    "op embeddings": "R, sines first, of the distances",
    "op scores": "scale ((q + u) . k + (q + v) . r)",
    "op shift": "a matrix whose column c is the distance n_key - 1 - c, moved so that entry (i, j) is row i's value for key j",
}
REJECTED = (
    ("transformer_xl/causal/q1-k5-h3-d4/scores-decode", "distances", {"r": fewer}, "shape", "A row for every distance."),
)
REASONS = """
distances causal clamp_one_side | causal distances have one side
mutant scores: return np.where(defined, total, 0)* | scores after the query are ignored
"""


def vectors():
    for both, clamp in ((False, 0), (True, 0), (True, 2), (False, 2)):
        yield _distances(4, 6, both, clamp)
    yield _embeddings("near", range(5, -4, -1), 6, "interleaved cos_first absolute_distances negated_distances")
    yield _embeddings("far", [2049, 1025, 300, 257, -257, -300], 16, "interleaved absolute_distances bf16_distances")
    near, far = range(5, -4, -1), [65536, 32768, 4097, 4096, -4097, -32769]
    yield _embeddings("near", near, 6, "interleaved absolute_distances negated_distances wrong_base", 500000)
    yield _embeddings("far", far, 6, "interleaved absolute_distances bf16_distances", 500000, models=("f64", "f32"))
    far = [2**20 + 1, 2**20, -(2**20) - 3]
    yield _embeddings("beyond", far, 6, "interleaved absolute_distances negated_distances", 500000, models=("f64", "f32"))
    yield _embeddings("fractional", HALVES.tolist(), 6, "interleaved negated_distances", models=("f64", "f32"))
    yield _shift(3, 3, "shift_dropped_at_the_end not_shifted")
    yield _shift(2, 5, "shift_dropped_at_the_end not_shifted")
    wrong = "u_and_v_swapped no_u no_v content_scaled_alone not_shifted"
    yield _scores("square", 5, 5, False, wrong + " shift_dropped_at_the_end")
    yield _scores("memory", 2, 5, False, wrong + " shift_dropped_at_the_end memory_ignored reversed_distances")
    yield _scores("square", 5, 5, True, wrong + " causal_shift negated_distances")
    yield _scores("memory", 2, 5, True, wrong + " causal_shift negated_distances memory_ignored")
    yield _scores("decode", 1, 5, False, "u_and_v_swapped no_u no_v content_scaled_alone memory_ignored reversed_distances")
    yield _attend("memory", 2, 5, False, "u_and_v_swapped no_v not_shifted memory_ignored garbage_above_the_diagonal")
    slow = {"scale": 3 / 16, "models": MATH_IN_F32}
    yield _attend("square", 3, 3, True, "u_and_v_swapped no_u no_v negated_distances not_shifted", **slow)
    yield _attend("memory", 2, 5, True, "u_and_v_swapped no_u no_v negated_distances memory_ignored causal_shift", **slow)
    for both in (False, True):
        yield _attend("large", 1, 3, both, "no_u", scale=256, models=("f64", "f32"))
    yield _attend("square", 5, 5, False, "u_and_v_swapped not_shifted no_mask garbage_above_the_diagonal")


def _name(n_query, n_key, both):
    return f"transformer_xl/{'bidirectional' if both else 'causal'}/q{n_query}-k{n_key}"


def _distances(n, m, both, clamp):
    every = lambda low, high: [min(max(m - 1 - c, low), high) for c in range(m + both * (n - 1))]
    expected = every(-clamp, clamp) if clamp else every(-99, 99)
    id = f"{_name(n, m, both)}/distances" + f"-clamp{clamp}" * bool(clamp)
    params = {"n_query": n, "n_key": m, "bidirectional": both, "clamp_len": clamp}
    kills = "reversed_distances" + " clamp_ignored" * bool(clamp) + " clamp_one_side" * bool(clamp and both)
    return case(id, "distances", params, {}, expected, kills=kills)


def _embeddings(probe, reach, dim, kills, base=10000, **rest):
    w = [frequency(t, dim, mpmath.mpf(base), m=mpmath) for t in range(dim // 2)]
    expected = np.array([sinusoid(o, w, "half", mpmath) for o in reach])
    id = f"transformer_xl/sinusoid/d{dim}-{'b1e4' if base == 10000 else 'b5e5'}/{probe}"
    cond = {"amp": terms(3, expected), "phase": np.array([[abs(o) * x * growth(x) for x in w * 2] for o in reach])}
    return case(id, "embeddings", {"dim": dim, "base": float(base)}, {"distances": list(reach)}, expected, cond, kills, **rest)


def _moved(x):
    """x[i, row(i, j)], 0 where there is no such row."""
    n, m = x.shape
    return np.array([[x[i, row(i, j, n, m)] if row(i, j, n, m) < m else 0 for j in range(m)] for i in range(n)])


def _shift(n, m, kills):
    x = np.array([[[10 * i + 100 * b + m - 1 - c for c in range(m)] for i in range(n)] for b in (1, 2)])
    id, expected = f"{_name(n, m, False)}/shift", np.array([_moved(each) for each in x])
    comment = "Entries are 100 batch + 10 row + distance."
    return case(id, "shift", {}, {"x": x}, expected, kills=kills, ignore=~_seen(n, m), comment=comment)


def _seen(n, m):
    return np.arange(m) <= np.arange(n)[:, None] + m - n


def _operands(n, m, both):
    shapes = {"q": (2, 3, n, 4), "k": (2, 3, m, 4), "r": (3, n + m - 1 if both else m, 4), "u": (3, 4), "v": (3, 4)}
    return {name: painted(shape, tag) for (name, shape), tag in zip(shapes.items(), (1, 2, 4, 6, 8), strict=True)}


def _all_scores(q, k, r, u, v, both, scale):
    """Scores and their sensitivities: two products, the second moved."""
    n, m = q.shape[-2], k.shape[-2]
    content, position = (dot(total(exact(q), exact(x[:, None])), exact(y), scale) for x, y in ((u, k), (v, r)))
    at = np.minimum(row(np.arange(n)[:, None], np.arange(m), n, m), r.shape[-2] - 1)
    moved = rearranged(lambda x: np.take_along_axis(x, np.broadcast_to(at, (2, 3, n, m)), axis=-1), position)
    return rearranged(lambda x: np.where(both | _seen(n, m), x, 0), total(content, moved))


def _scores(probe, n, m, both, kills):
    tensors = _operands(n, m, both)
    id, answer = f"{_name(n, m, both)}-h3-d4/scores-{probe}", _all_scores(*tensors.values(), both, mpmath.mpf(1) / 2)
    return case(id, "scores", {"scale": 0.5, "bidirectional": both}, tensors, *answer, kills, ignore=not both and ~_seen(n, m))


def _attend(probe, n, m, both, kills, scale=0.5, **rest):
    tensors, values = _operands(n, m, both), painted((2, 3, m, 4), 9)
    scores = _all_scores(*tensors.values(), both, mpmath.mpf(scale))
    weights = softmax(scores, both | _seen(n, m), models=rest["models"] if probe == "large" else tuple(MODELS))
    id, params = f"{_name(n, m, both)}-h3-d4/attend-{probe}", {"scale": scale, "bidirectional": both}
    return case(id, "attend", params, {**tensors, "values": values}, *average(weights, exact(values)), kills, **rest)
