"""Delta rule: the value that a key recalls from the state is replaced, not added to."""

# Over budget: two layouts of the state, shared keys, the WY form, and lengths

import mpmath
import numpy as np

from proofs.vectors import *
from proofs.vectors._states import attend_and_remember, gates, growth, packed

SOURCES = ("Yang et al., arXiv 2406.06484, section 3", "Yang et al., arXiv 2412.06464, Eq. (10)", "Kimi Team, arXiv 2510.26692")

CONVENTIONS = {
    "axes": "q, k (.., n, d), v (.., n, d_v), beta (.., n), log_gates (.., n, d) or (.., n, 1), state (.., d, d_v)",
    "heads": "head a of the values uses head a // (h_v / h_k) of queries and keys",
    "state_layout": "kv: state is keys by values, (.., d, d_v); vk: values by keys",
    "op attend": "S' = diag(f) S, S = S' + beta k (v - k . S')^T, then scale q . S, token by token",
    "op remember": "the state after the last token",
    "op packed": "as attend, in each text from an empty state; text m is in rows boundaries[m] .. boundaries[m + 1] - 1",
    "op wy": "w and u side by side: beta (exp(c_i) k_i - sum_{j<i} A_ij w_j) and beta (v_i - sum_{j<i} A_ij u_j), c sums",
    "op unit": "x / sqrt(sum x^2 + eps)",
}
REJECTED = (
    ("delta/attend-kv/features/painted", "beta", {"beta": cut}, "shape", "A strength for every token."),
    ("delta/remember-kv/features/painted", "gates", {"log_gates": cut}, "shape", "A gate for every feature, or one."),
    (
        "delta/attend-kv/features/painted",
        "no-layout",
        {"state_layout": None},
        "missing",
        "Both layouts of the state are in use.",
    ),
    ("delta/unit/any/short", "no-eps", {"eps": None}, "missing", "Programs take different ones."),
)

GATES = "no_gates gates_to_base_2 gate_one_token_late gates_of_the_first_head decay_after_error gated_after_writing"
RULE = "value_added error_added beta_on_the_value_alone beta_twice beta_left_out half_beta state_ignored"
READ = "scale_ignored scale_squared"
SQUARE = "other_state_layout"


def vectors():
    every = f"{GATES} {RULE}"
    every_feature = f"{every} {SQUARE} gate_of_the_first_feature"
    yield from _pair("features/painted", (2, 4, 3, 3), 3, "kv", every_feature, READ)
    batch = "keys_of_the_first_batch_row"
    yield from _pair("features/batch", (2, 2, 3, 2, 2), 2, "vk", every_feature, f"{READ} {batch}")
    yield from _pair("heads/shared-keys", (2, 4, 3, 2, 1), 1, "kv", every, f"{READ} {batch} tiled_heads", keys=2)
    for layout in ("kv", "vk"):
        yield from _pair("heads/long-past", (2, 4, 2, 2), 1, layout, "gates_cumulated_in_bf16", first=-300)
    yield _packed("features/two", (4, 5, 2, 1), 2, (0, 2, 5), keys=2)
    yield _packed("heads/three", (2, 2, 7, 2, 2), 1, (0, 1, 2, 7))
    yield _wy("features", (2, 4, 3, 2), 3)
    yield _wy("batch", (2, 2, 3, 2, 1), 2)
    x = np.stack([painted((3,), 1), painted((3,), 2) / 2**12])
    yield _unit("short", x)


def _arrays(extents, features, first, keys):
    *lead, heads, n, d, d_v = extents
    return {
        "q": painted((*lead, keys or heads, n, d), 1) / 2,
        "k": painted((*lead, keys or heads, n, d), 2) / 2,
        "v": painted((*lead, heads, n, d_v), 4),
        "beta": abs(painted((*lead, heads, n), 6)),
        "log_gates": gates((*lead, heads, n, features), first),
        "state": painted((*lead, heads, d, d_v), 9),
    }


def _pair(probe, extents, features, layout, kills, of_reading="", first=0, keys=None):
    given, (n, d) = _arrays(extents, features, first, keys), extents[-3:-1]
    # at each token an exponential, its product, d products and their sum, an error, three products and a sum
    roundings = 2 * n * growth(given) + n * (d + 8) + d + 4
    return attend_and_remember(f"delta/{{}}-{layout}/{probe}", given, _both, roundings, kills, of_reading, layout)


def _both(given, f):
    """Output and state token by token; with f = abs the sizes of all terms, none of which cancel."""
    more = f(mpmath.mpf(-1))
    exact = {name: numbers(x) for name, x in given.items()}
    q, k, v, beta, state = (f(exact[name]) for name in ("q", "k", "v", "beta", "state"))
    gates = np.broadcast_to(exact["log_gates"], (*v.shape[:-1], k.shape[-1]))
    group, out, after = v.shape[-3] // k.shape[-3], np.zeros(v.shape, dtype=object), np.zeros(state.shape, dtype=object)
    for at in np.ndindex(*v.shape[:-2]):
        shared, s = (*at[:-1], at[-1] // group), state[at]
        for i in range(v.shape[-2]):
            key, value = k[shared][i], v[at][i]
            s = np.vectorize(mpmath.exp, otypes=[object])(gates[at][i])[:, None] * s
            s = s + beta[at][i] * key[:, None] * (value + more * (key @ s))[None]
            out[at][i] = mpmath.mpf(0.5) * (q[shared][i] @ s)
        after[at] = s
    return out, after


def _packed(probe, extents, features, ends, keys=None):
    flags = "state_not_reset no_gates gate_one_token_late beta_left_out half_beta"
    # as above: 5 tokens of 2 features, running sums below 7
    return packed(f"delta/packed/{probe}", _arrays(extents, features, 0, keys), _both, ends, 130, flags)


def _rows(given, f):
    """w beside u, row by row."""
    exact = {name: numbers(x) for name, x in given.items()}
    k, v, beta = (f(exact[name]) for name in ("k", "v", "beta"))
    c = np.cumsum(np.broadcast_to(exact["log_gates"], k.shape), axis=-2)
    exp, more = np.vectorize(mpmath.exp, otypes=[object]), f(mpmath.mpf(-1))
    out = np.concatenate([exp(c) * k, v], axis=-1)
    for *at, i in np.ndindex(*v.shape[:-1]):
        at = tuple(at)
        for j in range(i):
            out[(*at, i)] += more * sum(k[at][i] * exp(c[at][i] - c[at][j]) * k[at][j]) * out[(*at, j)]
        out[(*at, i)] *= beta[at][i]
    return out


def _wy(probe, extents, features):
    given = {name: x for name, x in _arrays(extents, features, 0, None).items() if name not in ("q", "state")}
    n, d = extents[-3:-1]
    flags = "w_without_gates u_without_gates first_order no_gates gates_to_base_2 beta_left_out half_beta gate_one_token_late"
    cond = terms(2 * n * growth(given) + n * (d + 8), _rows(given, abs), bits=24)
    kills = f"{flags} gates_of_the_first_head gate_of_the_first_feature"
    return case(f"delta/wy/{probe}/painted", "wy", {}, given, _rows(given, lambda x: x), cond, kills, models=("f64", "f32"))


def _unit(probe, x):
    eps = 1e-6
    expected = np.array([row / mpmath.sqrt(sum(z * z for z in row) + mpmath.mpf(eps)) for row in numbers(x)])
    id, kills = f"delta/unit/any/{probe}", "eps_beside_the_length eps_as_a_floor mean_of_squares"
    # roundings: squares, their sum, eps, the root, the quotient
    return case(id, "unit", {"eps": eps}, {"x": x}, expected, terms(8, expected), kills, models=("f64", "f32"))
