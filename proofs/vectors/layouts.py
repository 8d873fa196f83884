"""Pair layouts: converting features and weights between the two pairings.

Scores of a converted checkpoint; permutations alone are in rope.json.
"""

import mpmath
import numpy as np

from proofs.rotary.layouts import BOTH
from proofs.vectors import *
from proofs.vectors.value import turned

SOURCES = (
    "Su et al., RoFormer, arXiv 2104.09864, Eqs. (14) and (34)",
    "transformers, models/llama/convert_llama_weights_to_hf.py, permute",
)

CONVENTIONS = {
    "axes": "x is (batch, n, width), weights are (heads * head_dim, width), biases (heads * head_dim,): a row for each output",
    "frequencies": "theta_t = base^(-2t/dim); the first dim features of every head turn by position * theta, the rest pass",
    "layout": "interleaved pairs features (2t, 2t+1), half pairs (t, t + dim/2)",
    "op scores": "weights and biases were trained for layout source; convert them to target and rotate in layout target: "
    "scale * <R(i) (W_q x_i + b_q), R(j) (W_k x_j + b_k)>, as they were in layout source; query head a uses key head "
    "floor(a * key_heads / heads)",
}
REJECTED = (("layouts/interleaved-to-half/h6-k3-d8-r4-b1e4/scores", "odd-dim", {"dim": 3}, "range", "Features turn in pairs."),)
REASONS = """
scores * position_*_one | scores depend on the offset alone
pair scores * not_converted switch_forgotten | weights as they were, turned as they were
"""


def vectors():
    for source, target in BOTH:
        yield _scores(source, target, 8, 4, "keys_permuted_with_query_heads tail_permuted")
        yield _scores(source, target, 8, 8, "permuted_back")
        more = {"heads": 2, "key_heads": 1, "width": 3, "base": 500000, "scale": 0.1875, "models": ("f64",)}
        own = f"wrong_base {NARROW} int16_positions positions_shared_across_batch"
        yield _scores(source, target, 4, 4, own, at=PLACES[:, None], **more)
        more |= {"base": 100, "models": ("f64", "f32")}
        yield _scores(source, target, 4, 4, "positions_ignored", at=HALVES[None, None], **more)
        more |= {"base": 64, "width": 2}
        yield _scores(source, target, 4, 4, "positions_ignored", at=BELOW[None, None], **more)


BASES = {64: "b64", 100: "b1e2", 10000: "b1e4", 500000: "b5e5"}
NEAR = np.array([[[0, 3, 4, 48040]], [[7, 2, 4097, 11]]])


def _scores(source, target, head_dim, dim, kills, heads=6, key_heads=3, width=5, scale=2.0**-4, base=10000, at=NEAR, **rest):
    x, positions = painted((len(at), 4, width), 1), at
    theta = [mpmath.power(base, -mpmath.mpf(2 * t) / dim) for t in range(dim // 2)]
    rows = {"q": heads * head_dim, "k": key_heads * head_dim}
    weights = {"w_q": painted((rows["q"], width), 2), "w_k": painted((rows["k"], width), 4)}
    biases = {"b_q": painted((rows["q"],), 6), "b_k": painted((rows["k"],), 8)}

    def projected(weight, bias, number):
        heads_first = lambda y: np.swapaxes(y.reshape(*x.shape[:-1], number, head_dim), 1, 2)
        value, cond = rearranged(heads_first, total(dot(exact(x), exact(weight)), exact(bias)))
        part, part_cond = turned(rearranged(lambda y: y[..., :dim], (value, cond)), positions, theta, source)
        together = lambda first, all_features: np.concatenate([first, all_features[..., dim:]], axis=-1)
        return together(part, value), {name: together(part_cond[name], cond[name]) for name in cond}

    q, k = projected(weights["w_q"], biases["b_q"], heads), projected(weights["w_k"], biases["b_k"], key_heads)
    answer = dot(q, rearranged(lambda y: np.repeat(y, heads // key_heads, axis=1), k), scale)
    id = f"layouts/{source}-to-{target}/h{heads}-k{key_heads}-d{head_dim}-r{dim}-{BASES[base]}/scores"
    params = {"dim": dim, "head_dim": head_dim, "heads": heads, "key_heads": key_heads, "base": float(base), "scale": scale}
    params |= {"source": source, "target": target}
    kills = f"not_converted switch_forgotten biases_forgotten keys_forgotten {kills}"
    return case(id, "scores", params, {"x": x, "positions": positions, **weights, **biases}, *answer, kills, **rest)
