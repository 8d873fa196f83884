"""Gated linear attention: the text decides how fast the state fades."""

# Over budget: two layouts of the state, packed texts, and the gates themselves

import itertools

import mpmath
import numpy as np

from proofs.state.gated import bounded, definition, gate, left
from proofs.vectors import case, painted, terms
from proofs.vectors._rejected import cut

SOURCES = ("Yang et al., arXiv 2312.06635, section 4", "Dao and Gu, arXiv 2405.21060, sections 6 and 7")

CONVENTIONS = {
    "axes": "q, k (.., n, d), v (.., n, d_v), log_gates (.., n, d) or (.., n, 1), state (.., d, d_v) or (.., d_v, d)",
    "state_layout": "kv: state is keys by values, (.., d, d_v); vk: values by keys",
    "log_gates": "ln f, not above 0; the gate of a token acts on what was before it",
    "op attend": "scale sum_{j<=i} sum_a q_ia k_ja exp(c_ia - c_ja) v_j + scale sum_a q_ia exp(c_ia) state_a, c running sums",
    "op remember": "the state after the last token: S_i = diag(f_i) S_{i-1} + k_i v_i^T",
    "op packed": "as attend, in each text from an empty state; text m is in rows boundaries[m] .. boundaries[m + 1] - 1",
    "op bounded_log_gates": "lower_bound / (1 + exp(-exp(a_log) (x + bias)))",
    "op log_gates": "-exp(a_log) ln(1 + exp(x + bias))",
}
REJECTED = (
    ("gated/attend-kv/features/painted", "values", {"v": lambda v: v[..., :-1, :]}, "shape", "A value for every key."),
    ("gated/remember-kv/features/painted", "gates", {"log_gates": cut}, "shape", "A gate for every feature, or one."),
    (
        "gated/attend-kv/features/painted",
        "no-layout",
        {"state_layout": None},
        "missing",
        "Both layouts of the state are in use.",
    ),
)

ANY = "no_gates gate_of_the_negative gates_to_base_2 own_token_gated gate_one_token_late gates_of_the_first_head"
READ = "chunk_mask_without_decay own_token_left_out scale_ignored scale_squared"
BATCH = "keys_of_the_first_batch_row"
FEATURES = "gate_of_the_first_feature gates_on_the_values"


def vectors():
    x = np.concatenate([4 * painted((2, 3), 1), [[-96.0, 0.5, 96.0]]])
    yield _gates("any", x, painted((3,), 9), painted((3,), 10))
    yield _bounded("any", 2 * painted((3, 3), 1), painted((3,), 9), painted((3,), 10))
    yield from _pair("features/painted", (2, 5, 3, 3), 3, "kv", f"{ANY} {FEATURES} state_ignored other_state_layout", READ)
    yield from _pair(
        "features/batch", (2, 2, 3, 2, 2), 2, "vk", f"{ANY} {FEATURES} state_ignored other_state_layout", f"{READ} {BATCH}"
    )
    yield from _pair("heads/narrow-values", (2, 2, 4, 3, 1), 1, "kv", f"{ANY} state_ignored", f"{READ} {BATCH}")
    for layout in ("kv", "vk"):
        yield from _pair("heads/long-past", (2, 5, 2, 2), 1, layout, "gates_cumulated_in_bf16", first=-300)
    yield from _pair("features/one-token", (2, 1, 2, 3), 2, "vk", "state_ignored")
    yield _packed("features/two", (2, 2, 5, 2, 1), 2, BATCH)
    yield _packed("features/three", (2, 7, 2, 2), 2, ends=(0, 1, 2, 7))


def _gates(probe, x, a_log, bias):
    every = lambda values: np.vectorize(mpmath.mpf, otypes=[object])(values)
    gates = np.vectorize(lambda *each: gate(*each, mpmath), otypes=[object])(*map(every, (x, a_log, bias)))
    inner = np.vectorize(lambda y: mpmath.mpf(abs(y)) + 1, otypes=[object])(x + bias)
    factor = np.vectorize(mpmath.exp, otypes=[object])(every(a_log))
    return case(
        f"gated/log-gates/h3/{probe}",
        op="log_gates",
        tensors={"x": x, "a_log": a_log, "bias": bias},
        expected=gates,
        # x + b, exp, 1 + exp, the logarithm, the sum, exp(A), the product
        cond={"amp": terms(8, gates) + terms(8, factor * inner)},
        kills="softplus_left_out sigmoid_for_softplus a_not_exponentiated bias_left_out bounded_gate",
        models=("f64", "f32"),
    )


def _bounded(probe, x, a_log, bias, lower=-5.0):
    every = lambda values: np.vectorize(mpmath.mpf, otypes=[object])(values)
    gates = np.vectorize(lambda *each: bounded(*each, lower, mpmath), otypes=[object])(*map(every, (x, a_log, bias)))
    inner = np.vectorize(mpmath.exp, otypes=[object])(every(a_log)) * abs(every(x + bias))
    return case(
        f"gated/bounded-log-gates/h3/{probe}",
        op="bounded_log_gates",
        params={"lower_bound": lower},
        tensors={"x": x, "a_log": a_log, "bias": bias},
        expected=gates,
        # x + b, exp(A), their product, two exponentials, 1 + exp, a logarithm, a sum, the product
        cond={"amp": terms(9, gates) + terms(4, gates * inner)},
        kills="bias_left_out softplus_gate softplus_gate_cut_off",
        models=("f64", "f32"),
    )


def _arrays(extents, features, first=0):
    *lead, n, d, d_v = extents
    gates = -abs(painted((*lead, n, features), 8))
    gates[..., 0, :] = first or gates[..., 0, :]
    return {
        "q": painted((*lead, n, d), 1),
        "k": painted((*lead, n, d), 2),
        "v": painted((*lead, n, d_v), 4),
        "log_gates": gates,
        "state": painted((*lead, d, d_v), 6),
    }


def _pair(probe, extents, features, layout, kills, of_reading="", first=0):
    given = _arrays(extents, features, first)
    right, size = _both(given, lambda x: x), _both(given, abs)
    told = {name: np.swapaxes(x, -1, -2) if (name, layout) == ("state", "vk") else x for name, x in given.items()}
    n, d = extents[-3:-1]
    largest = float(np.abs(np.cumsum(given["log_gates"], axis=-2)).max())
    for op, kind in (("attend", 0), ("remember", 1)):
        turned = (lambda x: np.swapaxes(x, -1, -2)) if (op, layout) == ("remember", "vk") else lambda x: x
        yield case(
            f"gated/{op}-{layout}/{probe}",
            op=op,
            params={"state_layout": layout} | ({"scale": 0.5} if op == "attend" else {}),
            tensors={name: x for name, x in told.items() if name != "q" or op == "attend"},
            expected=turned(right[kind]),
            # a term: an exponential of a sum of gates, a product at each token, the sum over features, the scale
            cond={"amp": terms(2 * n * largest + 4 * n + d + 4, turned(size[kind]), bits=24)},
            kills=f"{kills} {of_reading}" if op == "attend" else kills,
            models=("f64", "f32"),  # states are kept in float32
        )


def _packed(probe, extents, features, kills="", ends=(0, 2, 5)):
    given, both = _arrays(extents, features), []
    for f in (lambda x: x, abs):
        parts = [{x: y[..., a:b, :] if x != "state" else 0 * y for x, y in given.items()} for a, b in itertools.pairwise(ends)]
        both.append(np.concatenate([_both(part, f)[0] for part in parts], axis=-2))
    tensors = {name: x for name, x in given.items() if name != "state"} | {"boundaries": np.array(ends)}
    return case(
        f"gated/packed/{probe}",
        op="packed",
        params={"scale": 0.5},
        tensors=tensors,
        expected=both[0],
        cond={"amp": terms(100, both[1], bits=24)},  # as above: 5 tokens of 2 features, running sums below 7
        kills=f"state_not_reset no_gates gate_one_token_late {kills}",
        models=("f64", "f32"),
    )


def _both(given, f):
    """Output and state from the definitions, head by head; with f = abs the sizes of their terms."""
    exact = {name: np.vectorize(lambda x: mpmath.mpf(float(x)), otypes=[object])(x) for name, x in given.items()}
    q, k, v, state = (f(exact[name]) for name in ("q", "k", "v", "state"))
    gates = np.broadcast_to(exact["log_gates"], k.shape)
    out, after = np.zeros(v.shape, dtype=object), np.zeros(state.shape, dtype=object)
    for *at, i, c in np.ndindex(*v.shape):
        at = tuple(at)
        out[(*at, i, c)] = definition(q[at], k[at], v[at], gates[at], mpmath.mpf(0.5), state[at], i, c, mpmath)
    for *at, a, c in np.ndindex(*state.shape):
        at = tuple(at)
        after[(*at, a, c)] = left(k[at], v[at], gates[at], state[at], a, c, mpmath)
    return out, after
