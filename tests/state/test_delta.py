"""Delta rule: what gates and lengths do over a long text."""

import numpy as np

from posref.state import delta

TOLD = {"scale": 1.0, "state_layout": "kv"}


def given(n, d=4):
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, n, d))
    return q, delta.unit(k, eps=1e-6), v, rng.random(n)


def test_keys_of_length_1_keep_the_state_bounded():
    """1 - b k k^T with 0 <= b <= 2 lengthens nothing: the state grows by b |v| a token at most; longer keys let it explode."""
    q, k, v, beta = given(400)
    gates = np.full((400, 1), -0.1)
    state = delta.recurrent(q, k, v, 2 * beta, gates, **TOLD).state
    assert np.linalg.norm(state, 2) <= 2 * np.linalg.norm(v, axis=-1).max() / (1 - np.exp(-0.1))
    assert np.linalg.norm(delta.recurrent(q, 2 * k, v, 2 * beta, 0 * gates, **TOLD).state, 2) > 1e6


def test_a_long_past_overflows_nothing():
    q, k, v, beta = given(60)
    with np.errstate(all="raise", under="ignore"):
        whole = delta.quadratic(q, k, v, beta, np.full((60, 1), -1000.0), **TOLD).output
    alone = (q * k).sum(axis=-1, keepdims=True) * beta[:, None] * v
    np.testing.assert_allclose(whole, alone, rtol=0, atol=20 * 2**-53 * np.abs(q).sum(axis=-1).max() * np.abs(v).max())
