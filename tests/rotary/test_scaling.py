"""RoPE scaling: every schedule to twelve digits, the rules of length, what the body refuses."""

import numpy as np
import pytest

from posref import position_ids
from posref.rotary import rope, scaling

SHORT, LONG = 1 + 0.05 * np.arange(48), 1 + 1.25 * np.arange(48)


def llama3(dim, factor, high=4.0):
    w = rope.frequencies(dim, 500000.0)
    return scaling.llama3(w, factor=factor, low_freq_factor=1.0, high_freq_factor=high, original_length=8192)


def dynamic(base, length, original_length):
    return scaling.dynamic_ntk(rope.frequencies(128, base), factor=2.0, length=length, original_length=original_length)


def yarn(dim, base, factor, original_length, truncate=True):
    w = rope.frequencies(dim, base)
    return scaling.yarn(w, factor=factor, original_length=original_length, base=base, truncate=truncate)


# Frequencies at t = 1, n/4, n/2, 3n/4 and n - 1, and their sum: transformers 5.23.0's own functions run in float64, and for
# LongRoPE, whose exponents are float32 there, 40 digits
VALUES = {
    "linear, vicuna 16k": (
        lambda: scaling.linear(rope.frequencies(128), factor=4.0),
        "2.16491080840e-01 2.50000000000e-02 2.50000000000e-03 2.50000000000e-04 2.88695496172e-05 1.86498853340e+00",
    ),
    "linear, gemma 3 global": (
        lambda: scaling.linear(rope.frequencies(256, 1e6), factor=8.0),
        "1.12210891556e-01 3.95284707521e-03 1.25000000000e-04 3.95284707521e-06 1.39246732499e-07 1.22174148756e+00",
    ),
    "dynamic, 4096 of 2048": (
        lambda: dynamic(1e4, 4096, 2048),
        "8.50994291341e-01 7.56530337024e-02 5.72338150838e-03 4.32991174145e-04 3.84927328230e-05 6.71093243276e+00",
    ),
    "dynamic, 8192 of 2048": (
        lambda: dynamic(1e4, 8192, 2048),
        "8.39625742564e-01 6.10059123382e-02 3.72172134021e-03 2.27047005828e-04 1.64968854956e-05 6.23532831752e+00",
    ),
    "dynamic, internlm 2": (
        lambda: dynamic(1e6, 65536, 32768),
        "7.91911494513e-01 2.39235898401e-02 5.72338150838e-04 1.36923831705e-05 4.13645920251e-07 4.80564589615e+00",
    ),
    "llama 3.1": (
        lambda: llama3(128, 8.0),
        "8.14617233857e-01 3.76060309309e-02 5.24846160993e-04 6.64786987118e-06 3.06892598891e-07 5.38605820073e+00",
    ),
    "llama 3.2 1b": (
        lambda: llama3(64, 32.0),
        "6.63601237696e-01 3.76060309309e-02 4.29556796559e-04 1.66196746780e-06 9.41830672543e-08 2.96820229784e+00",
    ),
    "llama 4 scout": (
        lambda: llama3(128, 16.0, high=1.0),
        "8.14617233857e-01 3.76060309309e-02 1.41421356237e-03 3.32393493559e-06 1.53446299446e-07 5.39037786447e+00",
    ),
    "yarn, qwen": (
        lambda: yarn(128, 1e6, 4.0, 32768),
        "8.05842187761e-01 3.16227766017e-02 6.02941176471e-04 7.90569415042e-06 3.10234440188e-07 5.14403472174e+00",
    ),
    "yarn, llama 2 64k": (
        lambda: yarn(128, 1e4, 16.0, 4096),
        "8.65964323360e-01 1.00000000000e-01 5.67307692308e-03 6.25000000000e-05 7.21738740431e-06 7.36523470081e+00",
    ),
    "yarn, deepseek v3": (
        lambda: yarn(64, 1e4, 40.0, 4096),
        "7.49894209332e-01 1.00000000000e-01 5.50000000000e-03 2.50000000000e-05 3.33380358041e-06 3.94893627408e+00",
    ),
    "yarn, gpt-oss": (
        lambda: yarn(64, 150000.0, 32.0, 4096, truncate=False),
        "6.89044305888e-01 5.08132748155e-02 4.56483919223e-04 4.09997848180e-06 3.02351142812e-07 3.18043827693e+00",
    ),
    "yarn, gpt-oss if it were truncated": (
        lambda: yarn(64, 150000.0, 32.0, 4096),
        "6.89044305888e-01 5.08132748155e-02 5.80947501931e-04 4.09997848180e-06 3.02351142812e-07 3.18165949220e+00",
    ),
    "yarn, olmo 3": (
        lambda: yarn(128, 5e5, 8.0, 8192),
        "8.14617233857e-01 3.76060309309e-02 3.95147907134e-04 6.64786987118e-06 3.06892598891e-07 5.36472945548e+00",
    ),
    "yarn, ministral 3": (
        lambda: yarn(128, 1e6, 16.0, 16384),
        "8.05842187761e-01 3.16227766017e-02 3.38235294118e-04 1.97642353761e-06 7.75586100470e-08 5.13512937912e+00",
    ),
    "proportional, gemma 4 global": (
        lambda: scaling.proportional(rope.frequencies(512, 1e6), fraction=0.25),
        "9.47463525655e-01 0.00000000000e+00 0.00000000000e+00 0.00000000000e+00 0.00000000000e+00 1.84324744947e+01",
    ),
    "longrope, short list": (
        lambda: scaling.longrope(rope.frequencies(96), factors=SHORT),
        "7.86099224065e-01 6.25000000000e-02 4.54545454545e-03 3.57142857143e-04 3.61650047352e-05 4.79379329180e+00",
    ),
    "longrope, long list": (
        lambda: scaling.longrope(rope.frequencies(96), factors=LONG),
        "3.66846304564e-01 6.25000000000e-03 3.22580645161e-04 2.17391304348e-05 2.02766135335e-06 1.95513808559e+00",
    ),
}


@pytest.mark.parametrize("case", VALUES)
def test_values(case):
    make, expected = VALUES[case]
    w = make()
    n = len(w)
    got = [*w[[1, n // 4, n // 2, 3 * n // 4, n - 1]], w.sum()]
    assert " ".join(f"{value:.11e}" for value in got) == expected


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (lambda: scaling.yarn_magnitude(4.0), "1.13862943611"),
        (lambda: scaling.yarn_magnitude(16.0), "1.27725887222"),
        (lambda: scaling.yarn_magnitude(32.0), "1.34657359028"),
        (lambda: scaling.yarn_magnitude(8.0), "1.20794415417"),
        (lambda: scaling.longrope_magnitude(32.0, original_length=4096), "1.19023807142"),
        (lambda: 192**-0.5 * scaling.yarn_magnitude(40.0) ** 2, "0.135233778861"),  # DeepSeek-V3's softmax scale
        (lambda: 192**-0.5 * scaling.yarn_magnitude(40.0, mscale=0.707) ** 2, "0.114721386793"),  # and V2-Lite's
    ],
)
def test_magnitudes(got, expected):
    assert f"{got():.12g}" == expected


@pytest.mark.parametrize(
    ("dim", "base", "original_length", "expected"),
    [
        (64, 10000.0, 4096, "10.472241 22.513441"),  # DeepSeek-V3
        (128, 1000000.0, 32768, "23.595948 39.650881"),  # Qwen
        (128, 10000.0, 4096, "20.944482 45.026881"),  # Llama 2, 64k
        (128, 500000.0, 8192, "18.081135 34.984119"),  # OLMo 3
        (128, 1000000.0, 16384, "20.384961 36.439894"),  # Ministral 3
        (64, 150000.0, 4096, "8.092779 17.398025"),  # gpt-oss
    ],
)
def test_range(dim, base, original_length, expected):
    low, high = scaling.yarn_range(dim, base, original_length=original_length, truncate=False)
    assert f"{low:.6f} {high:.6f}" == expected
    truncated = scaling.yarn_range(dim, base, original_length=original_length, truncate=True)
    assert truncated == (np.floor(low), np.ceil(high))


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


# models


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


# what is refused

W = rope.frequencies(8)
YARN = {"factor": 4.0, "original_length": 4096, "base": 10000.0, "truncate": True}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_length": 8192}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: scaling.ntk(W[:1], factor=2.0), ValueError, "frequencies has 1 entry, .* at least 4"),
        (lambda: scaling.yarn(W, **YARN, beta_fast=1.0, beta_slow=32.0), ValueError, "low must be below high"),
        (lambda: scaling.yarn(W, **YARN | {"original_length": 4}), ValueError, "put the ramp from 0"),
        (
            lambda: scaling.llama3(W, **LLAMA3 | {"high_freq_factor": 0.5}),
            ValueError,
            "low_freq_factor is 1.0 and high_freq_factor 0.5; the low edge may not be above the high one",
        ),
        (
            lambda: scaling.longrope(W, factors=np.array([1.0, 0.0, 1.0, 2.0])),
            ValueError,
            "factors runs from 0.0 .*short_factor",
        ),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "key"),
    [
        (lambda: scaling.llama3(W, **LLAMA3 | {"low_freq_factor": 9.0}), "low_freq_factor is 9.0 and high_freq_factor 4.0"),
        (lambda: position_ids.multimodal([(1, 1, 4)], merge=2, convention="largest"), "spatial_merge_size"),
    ],
)
def test_errors_name_the_key_of_the_configuration(call, key):
    with pytest.raises((TypeError, ValueError), match=key):
        call()
