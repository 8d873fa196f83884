"""PaTH: a cache, and lengths that do not grow."""

import numpy as np

from posref.rotary import path


def given(n=7, d=4):
    rng = np.random.default_rng(0)
    q, k, w = rng.normal(size=(3, 2, n, d))
    return q, k, w / np.linalg.norm(w, axis=-1, keepdims=True), 2 * rng.random((2, n))


def test_a_cache_turns_its_keys_on():
    q, k, w, beta = given()
    cache, whole = k[:, :0], path.scores(q, k, w, beta, scale=1.0)
    for t in range(7):
        along = cache @ w[:, t, :, None]
        cache = np.concatenate([cache - beta[:, t, None, None] * along * w[:, None, t], k[:, t : t + 1]], axis=1)
        np.testing.assert_allclose((cache @ q[:, t, :, None])[..., 0], whole[:, t, : t + 1], rtol=0, atol=1e-13)


def test_lengths_do_not_grow():
    """Steps with 0 <= b <= 2 and w of length 1 shrink or keep the length of a key."""
    q, k, w, beta = given(n=50)
    got = np.abs(path.scores(q, k, w, beta, scale=1.0))
    assert (got <= np.linalg.norm(q, axis=-1)[..., None] * np.linalg.norm(k, axis=-1)[..., None, :] * (1 + 1e-12)).all()
