"""Gated linear attention: the text decides how fast the state fades."""

import mpmath
import numpy as np

from proofs.state.gated import bounded, definition, gate, left
from proofs.vectors import *
from proofs.vectors._states import attend_and_remember, gates, growth, packed

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
    every = f"{ANY} {FEATURES} state_ignored other_state_layout"
    yield from _pair("features/painted", (2, 5, 3, 3), 3, "kv", every, READ)
    yield from _pair("features/batch", (2, 2, 3, 2, 2), 2, "vk", every, f"{READ} {BATCH}")
    yield from _pair("heads/narrow-values", (2, 2, 4, 3, 1), 1, "kv", f"{ANY} state_ignored", f"{READ} {BATCH}")
    for layout in ("kv", "vk"):
        yield from _pair("heads/long-past", (2, 5, 2, 2), 1, layout, "gates_cumulated_in_bf16", first=-300)
    yield from _pair("features/one-token", (2, 1, 2, 3), 2, "vk", "state_ignored")
    yield _packed("features/two", (2, 2, 5, 2, 1), 2, BATCH)
    yield _packed("features/three", (2, 7, 2, 2), 2, ends=(0, 1, 2, 7))


def _gates(probe, x, a_log, bias):
    gates = np.vectorize(lambda *each: gate(*each, mpmath), otypes=[object])(*map(numbers, (x, a_log, bias)))
    inner, factor = abs(numbers(x + bias)) + 1, np.vectorize(mpmath.exp, otypes=[object])(numbers(a_log))
    tensors = {"x": x, "a_log": a_log, "bias": bias}
    # roundings: x + b, exp, 1 + exp, the logarithm, the sum, exp(A), the product
    cond = terms(8, gates) + terms(8, factor * inner)
    kills = "softplus_left_out sigmoid_for_softplus a_not_exponentiated bias_left_out bounded_gate"
    return case(f"gated/log-gates/h3/{probe}", "log_gates", {}, tensors, gates, cond, kills, models=("f64", "f32"))


def _bounded(probe, x, a_log, bias, lower=-5.0):
    gates = np.vectorize(lambda *each: bounded(*each, lower, mpmath), otypes=[object])(*map(numbers, (x, a_log, bias)))
    inner = np.vectorize(mpmath.exp, otypes=[object])(numbers(a_log)) * abs(numbers(x + bias))
    id, tensors = f"gated/bounded-log-gates/h3/{probe}", {"x": x, "a_log": a_log, "bias": bias}
    # roundings: x + b, exp(A), their product, two exponentials, 1 + exp, a logarithm, a sum, the product
    cond, kills = terms(9, gates) + terms(4, gates * inner), "bias_left_out softplus_gate softplus_gate_cut_off"
    return case(id, "bounded_log_gates", {"lower_bound": lower}, tensors, gates, cond, kills, models=("f64", "f32"))


def _arrays(extents, features, first=0):
    *lead, n, d, d_v = extents
    return {
        "q": painted((*lead, n, d), 1),
        "k": painted((*lead, n, d), 2),
        "v": painted((*lead, n, d_v), 4),
        "log_gates": gates((*lead, n, features), first),
        "state": painted((*lead, d, d_v), 6),
    }


def _pair(probe, extents, features, layout, kills, of_reading="", first=0):
    given, (n, d) = _arrays(extents, features, first), extents[-3:-1]
    # a term: an exponential of a sum of gates, a product at each token, the sum over features, the scale
    roundings = 2 * n * growth(given) + 4 * n + d + 4
    return attend_and_remember(f"gated/{{}}-{layout}/{probe}", given, _both, roundings, kills, of_reading, layout)


def _packed(probe, extents, features, kills="", ends=(0, 2, 5)):
    flags = f"state_not_reset no_gates gate_one_token_late {kills}"
    # as above: 5 tokens of 2 features, running sums below 7
    return packed(f"gated/packed/{probe}", _arrays(extents, features), _both, ends, 100, flags)


def _both(given, f):
    """Output and state from the definitions, head by head; with f = abs the sizes of their terms."""
    exact = {name: numbers(x) for name, x in given.items()}
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
