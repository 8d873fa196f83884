"""Retention: one state per head replaces the KV cache; each head forgets at a fixed rate."""

import mpmath
import numpy as np

from proofs.state.retention import definition, left
from proofs.vectors import *
from proofs.vectors._states import attend_and_remember

SOURCES = ("Sun et al., Retentive Network, arXiv 2307.08621, Eq. (5) to (7)",)

CONVENTIONS = {
    "axes": "q, k (.., heads, n, d), v (.., heads, n, d_v), decays (heads,), state (.., heads, d, d_v): keys by values",
    "state": "what an earlier text left; zeros for a text from its start",
    "op attend": "scale sum_{j<=i} decay^(i-j) (q_i . k_j) v_j + scale decay^(i+1) q_i . state",
    "op remember": "the state after the last token: S_i = decay S_{i-1} + k_i v_i^T",
}
REJECTED = (
    ("retention/attend/h3-d2/painted", "values", {"v": lambda v: v[..., :-1, :]}, "shape", "A value for every key."),
    ("retention/remember/h3-d2/painted", "decays", {"decays": cut}, "shape", "A decay for every head."),
)

ANY = "no_decay own_token_decayed decays_of_the_first_head heads_in_reverse decay_of_the_rest"
STATE = "state_ignored state_decayed_once_less"
READ = "chunk_mask_without_decay future_seen scale_ignored scale_squared"


def vectors():
    yield from _pair("painted", (3, 9, 2, 2), f"{ANY} {STATE} state_transposed", READ)
    yield from _pair("narrow-values", (2, 4, 3, 1), ANY)
    yield from _pair("batch", (2, 2, 2, 2, 1), "decays_of_the_first_head", "keys_of_the_first_batch_row")
    yield from _pair("one-token", (3, 1, 2, 2), STATE)


def _pair(probe, extents, kills, of_reading=""):
    *lead, n, d, d_v = extents
    decays = np.array([0.98046875, 0.8515625, 0.7421875])[: lead[-1]]
    given = {"q": painted((*lead, n, d), 1), "k": painted((*lead, n, d), 2), "v": painted((*lead, n, d_v), 4)}
    given |= {"decays": decays, "state": painted((*lead, d, d_v), 6)}
    both = lambda given, f: _both(*(numbers(x if name == "decays" else f(x)) for name, x in given.items()))
    # a term: a product, two roundings at each later token, the sum over features, the scale
    return attend_and_remember(f"retention/{{}}/h{lead[-1]}-d{d}/{probe}", given, both, 3 * n + d + 4, kills, of_reading)


def _both(q, k, v, decays, state):
    """Output and state from the definitions, head by head."""
    out, after = np.zeros(v.shape, dtype=object), np.zeros(state.shape, dtype=object)
    for *at, i, c in np.ndindex(*v.shape):
        at = tuple(at)
        out[(*at, i, c)] = definition(q[at], k[at], v[at], decays[at[-1]], mpmath.mpf(0.5), state[at], i, c)
    for *at, a, c in np.ndindex(*state.shape):
        at = tuple(at)
        after[(*at, a, c)] = left(k[at], v[at], decays[at[-1]], state[at], a, c)
    return out, after
