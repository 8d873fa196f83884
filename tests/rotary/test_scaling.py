"""RoPE scaling: ranges, edges, the rules of length, what the body refuses."""

import numpy as np
import pytest

from posref.rotary import rope, scaling
from tests.refused import refused


def test_range_is_cut_to_the_width():
    assert scaling.yarn_range(8, 10000.0, original_length=16, truncate=True) == (0, 1)
    assert scaling.yarn_range(8, 2.0, original_length=64, truncate=True) == (0, 7)


def test_equal_betas_make_a_step_if_truncated():
    """Kimi K2 has beta_fast = beta_slow = 1."""
    w = rope.frequencies(64, 50000.0)
    settings = {"factor": 32.0, "original_length": 4096, "base": 50000.0, "beta_fast": 1.0, "beta_slow": 1.0}
    assert scaling.yarn_range(64, 50000.0, original_length=4096, beta_fast=1.0, beta_slow=1.0, truncate=True) == (19, 20)
    np.testing.assert_array_equal(scaling.yarn(w, **settings, truncate=True), np.where(np.arange(32) <= 19, w, w / 32))
    with pytest.raises(ValueError, match=r"beta_fast 1\.0 and beta_slow 1\.0 put the ramp from 19\.1"):
        scaling.yarn(w, **settings, truncate=False)


def test_ramp_over_turns():
    """Pairs of 32 turns and more are kept, of one turn and less divided, and half-way between halved between."""
    w = np.array([64.0, 32.0, 16.5, 1.0, 0.5]) * 2 * np.pi / 4096
    got = scaling.yarn(w, factor=4.0, original_length=4096, base=10000.0, ramp="turns", truncate=False)
    np.testing.assert_allclose(got / w, [1, 1, (1 + 1 / 4) / 2, 1 / 4, 1 / 4], rtol=1e-15)


def test_the_edge_of_llama3():
    """A pair exactly on the edges: divided at the low one, kept at the high one; kept if they are equal."""
    w = np.array([0.5, 1.0, 4.0, 8.0]) * 2 * np.pi / 4096
    blended = scaling.llama3(w, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_length=4096)
    np.testing.assert_allclose(blended / w, [1 / 8, 1 / 8, 1, 1], rtol=1e-15)
    step = scaling.llama3(w, factor=8.0, low_freq_factor=1.0, high_freq_factor=1.0, original_length=4096)
    np.testing.assert_allclose(step / w, [1 / 8, 1, 1, 1], rtol=1e-15)


@pytest.mark.parametrize("fraction", [0, 0.25, 0.334, 0.5, 0.99, 1])
def test_proportional_rounds_down(fraction):
    w = scaling.proportional(rope.frequencies(192), fraction=fraction)
    assert np.count_nonzero(w) == int(fraction * 192 // 2)  # as transformers counts them


# which list, which length


@pytest.mark.parametrize(("length", "expected"), [(1, "short"), (4096, "short"), (4097, "long")])
def test_the_list_of_transformers_follows_the_batch(length, expected):
    assert scaling.longrope_list("transformers", length=length, original_length=4096, model_length=131072) == expected


@pytest.mark.parametrize("rule", ["vllm", "llama.cpp"])
@pytest.mark.parametrize(("model_length", "expected"), [(4096, "short"), (4097, "long")])
def test_the_list_of_servers_follows_their_length(rule, model_length, expected):
    assert scaling.longrope_list(rule, length=100, original_length=4096, model_length=model_length) == expected


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([100], 2048),
        ([2048], 2048),
        ([5000], 5000),
        ([5000, 3000], 5000),  # remembered
        ([5000, 2048], 5000),  # not yet short
        ([5000, 2047], 2048),  # reset
        ([5000, 100, 3000], 3000),
    ],
)
def test_the_memory_of_transformers(lengths, expected):
    assert scaling.dynamic_length("transformers", lengths=np.array(lengths), original_length=2048, factor=2.0) == expected


def test_vllm_stretches_short_texts_too():
    length = scaling.dynamic_length("vllm", lengths=np.array([10]), original_length=2048, factor=3.0)
    w = rope.frequencies(8)
    stretched = scaling.dynamic_ntk(w, factor=3.0, length=length, original_length=2048)
    np.testing.assert_array_equal(stretched, scaling.ntk(w, factor=7.0))  # s^2 - s + 1


W = rope.frequencies(8)
YARN = {"factor": 4.0, "original_length": 4096, "base": 10000.0, "truncate": True}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_length": 8192}
test_refused = refused(
    vars(scaling) | {"W": W, "YARN": YARN, "LLAMA3": LLAMA3},
    r"""
    ntk(W[:1], factor=2.0) | frequencies has 1 entry, .* at least 4
    yarn(W, **YARN, beta_fast=1.0, beta_slow=32.0) | low must be below high
    yarn(W, **YARN | {"original_length": 4}) | put the ramp from 0
    llama3(W, **LLAMA3 | {"high_freq_factor": 0.5}) | low_freq_factor is 1.0 and high_freq_factor 0.5; the low edge may not
    llama3(W, **LLAMA3 | {"low_freq_factor": 9.0}) | low_freq_factor is 9.0 and high_freq_factor 4.0
    longrope(W, factors=a(1.0, 0.0, 1.0, 2.0)) | factors runs from 0.0 .*short_factor
    """,
)
