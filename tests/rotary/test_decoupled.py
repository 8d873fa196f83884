"""Decoupled RoPE: sizes as in DeepSeek-V3's heads, and refused input. Equality with transformers is in tests/parity."""

import numpy as np
import pytest

from posref.rotary import decoupled

rng = np.random.default_rng(0)
Q, P, W = rng.normal(size=(2, 4, 3, 16)), rng.normal(size=(2, 4, 3, 8)), rng.normal(size=(4, 12, 16))
C, R, V = rng.normal(size=(2, 1, 5, 12)), rng.normal(size=(2, 1, 5, 8)), rng.normal(size=(2, 4, 5, 6))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: decoupled.scores(Q, P, C @ W, R[..., :4], scale=1.0), "k_turned has shape .*d_rope = 8"),
        (lambda: decoupled.scores(Q, P[..., :2, :], C @ W, R, scale=1.0), "q_turned has shape .*n_query = 3"),
        (lambda: decoupled.scores(Q, P, C, R, scale=1.0), "k has shape .*d = 16"),
        (lambda: decoupled.absorbed_scores(Q, P, C, R, W[:2], scale=1.0), "w_k has shape .*h = 4"),
        (lambda: decoupled.absorbed_scores(Q, P, C @ W, R, W, scale=1.0), "latents has shape .*expected 1"),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
