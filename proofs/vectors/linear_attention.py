"""RoPE in linear attention: rotated feature maps above the fraction, unrotated below."""

import itertools

import mpmath
import numpy as np

from proofs.rotary.linear_attention import definition
from proofs.vectors import *
from proofs.vectors.value import turned

SOURCES = (
    "Su et al., RoFormer, arXiv 2104.09864, section 3.3, Eq. (19)",
    "Feature map: Katharopoulos et al., Transformers are RNNs, arXiv 2006.16236",
)

CONVENTIONS = {
    "axes": "q and k are (batch, heads, n, dim), v is (batch, heads, n, d_v); positions broadcast to all axes but the last",
    "causal": "if true, row i sees the rows j <= i, whatever the positions",
    "feature map": "phi(x) = elu(x) + 1, before the rotation; no scale",
    "frequencies": "theta_t = base^(-2t/dim); all features turn, counter-clockwise by position * theta",
    "layout": "interleaved pairs features (2t, 2t+1), half pairs (t, t + dim/2)",
    "op attend": "sum_j <R(i) phi(q_i), R(j) phi(k_j)> v_j / sum_j <phi(q_i), phi(k_j)>",
    "op feature_map": "phi(x)",
}
REJECTED = (("linear_attention/half-causal/d4-b1e4/far", "no-layout", {"layout": None}, "missing", "Both layouts are in use."),)
REASONS = """
attend * position_*_one | scores depend on the offset alone
"""

ANY = "denominator_rotated rotated_before_phi not_rotated other_layout sign positions_ignored"
CAUSAL = {True: "causal_ignored sees_one_ahead denominator_of_all_keys", False: ""}


def vectors():
    x = [-2.0, -1.0, -0.25, 0.0, 0.5, 2.0]
    id = "linear_attention/elu-plus-one/x/feature_map"
    yield case(id, "feature_map", {}, {"x": x}, elu_plus_one(x), _feature_map(np.array(x))[1], "elu relu_plus_one")
    batch = [[[0, 3, 5, 7, 9]], [[2, 11, 4, 40, 17]]]
    for layout, causal in itertools.product(OTHER, (True, False)):
        if (layout == "half") == causal:
            yield _attend("batch", (2, 3, 5, 6, 4), batch, layout, causal, ANY + " positions_shared_across_batch")
        yield _attend("far", (3, 5, 4, 6), [48040, 48043, 48050, 48053, 48056], layout, causal, ANY)
        rows = f"{ANY} {WRAPPED} positions_shared_across_batch keys_of_the_first_batch_row wrong_axis wrong_base"
        more = {"models": ("f64", "f32"), "base": 500000}
        yield _attend("places", (2, 2, 4, 4, 1), PLACES[:2, None], layout, causal, rows, **more)
        for probe, at in (("fractional", HALVES), ("negative", BELOW)):
            yield _attend(probe, (1, 4, 4, 1), at, layout, causal, "not_rotated positions_ignored sign", **more)
        yield _attend("beyond-f32", (1, 4, 4, 1), PLACES[2], layout, causal, "f32_positions", models=("f64",))


def _feature_map(x):
    """phi(x), stored; computed as e^x and x + 1, or as elu(x), stored, plus 1."""
    phi = np.array([elu_plus_one(row) for row in x.reshape(-1, 1).tolist()], dtype=object).reshape(x.shape)
    return stored(phi, {"amp": terms(2, phi - 1) + terms(1, phi), "out": abs(phi - 1)})


def _summed(q, k, v, seen):
    """sum_j <q_i, k_j> v_j over the keys seen, in any order of the two sums; the sum over j or the weights may be stored."""
    (q, q_cond), (k, k_cond) = q, k
    over_keys = lambda q, k, v: np.where(seen, q @ np.swapaxes(k, -1, -2), 0) @ v
    cond = {name: over_keys(q_cond[name], abs(k), abs(v)) + over_keys(abs(q), k_cond[name], abs(v)) for name in q_cond}
    size = over_keys(abs(q), abs(k), abs(v))
    return stored(over_keys(q, k, v), cond | {"amp": cond["amp"] + terms(sum(k.shape[-2:]), size), "out": cond["out"] + size})


def _quotient(above, below):
    """above / below, where below is positive: |d(a/b)| <= (|da| + |a/b| |db|) / b / (1 - |db| / b)."""
    (a, a_cond), (b, b_cond) = above, below
    worst = np.max([(c.c_amp * b_cond["amp"] + c.c_out * b_cond["out"]) / b for c in MODELS.values()], axis=0)  # no phase below
    cond = {name: (a_cond[name] + abs(a / b) * b_cond[name]) / b / (1 - worst) for name in a_cond}
    return stored(a / b, cond | {"amp": cond["amp"] + terms(1, a / b)})


def _attend(probe, extents, positions, layout, causal, flags, *, base=10000, **rest):
    *lead, n, dim, d_v = extents
    q, k, v = painted((*lead, n, dim), 1), painted((*lead, n, dim), 2), painted((*lead, n, d_v), 4)
    at = np.broadcast_to(positions, q.shape[:-1])
    theta = [mpmath.power(base, -mpmath.mpf(2 * t) / dim) for t in range(dim // 2)]
    seen = np.tri(n, dtype=bool) | (not causal)

    out, options = np.empty(v.shape, dtype=object), {"layout": layout, "causal": causal, "phi": elu_plus_one, "m": mpmath}
    for head in np.ndindex(*lead):
        out[head] = definition(*(x[head].tolist() for x in (q, k, v, at)), theta, **options)
    phi_q, phi_k = _feature_map(q), _feature_map(k)
    turned_q, turned_k = (turned(phi, at, theta, layout) for phi in (phi_q, phi_k))
    above, below = _summed(turned_q, turned_k, v, seen), _summed(phi_q, phi_k, np.ones((n, 1)), seen)
    id = f"linear_attention/{layout}-{'causal' if causal else 'all-keys'}/d{dim}-{'b1e4' if base == 10000 else 'b5e5'}/{probe}"
    params = {"dim": dim, "base": float(base), "layout": layout, "causal": causal}
    tensors = {"q": q, "k": k, "v": v, "positions": np.array(positions)}
    return case(id, "attend", params, tensors, out, _quotient(above, below)[1], f"{flags} {CAUSAL[causal]}", **rest)


def elu_plus_one(x, m=mpmath):
    """elu(x) + 1 of a list of numbers: x + 1 above 0, e^x below. Katharopoulos et al., arXiv 2006.16236."""
    return [y + 1 if y > 0 else m.exp(y) for y in x]
