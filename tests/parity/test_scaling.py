"""Schedules of transformers: its own functions in float64 agree to rounding, and as shipped to float32."""

import math

import numpy as np
import pytest

from posref.rotary import rope, scaling

torch = pytest.importorskip("torch", reason="pip install posref[parity]")
rope_utils = pytest.importorskip("transformers.modeling_rope_utils", reason="pip install posref[parity]")
from transformers import LlamaConfig  # noqa: E402

F32, F64 = 2.0**-24, 2.0**-53


class Double:
    """torch with float64 wherever the code says float32."""

    def __getattr__(self, name):
        return torch.float64 if name in ("float", "float32") else getattr(torch, name)


def released(rope_type, dim, base, longest, *, length=None, double=True, **parameters):
    """(frequencies, attention factor) of transformers' function for a rope_type."""
    config = LlamaConfig(
        hidden_size=2 * dim,
        num_attention_heads=2,
        head_dim=dim,
        max_position_embeddings=longest,
        rope_parameters={"rope_type": rope_type, "rope_theta": base, **parameters},
    )
    given = {} if length is None else {"seq_len": length}
    saved, rope_utils.torch = rope_utils.torch, Double() if double else torch
    try:
        w, magnitude = rope_utils.ROPE_INIT_FUNCTIONS[rope_type](config, None, **given)
    finally:
        rope_utils.torch = saved
    return w.double().numpy(), magnitude


def linear(dim, base, longest, *, factor):
    return scaling.linear(rope.frequencies(dim, base), factor=factor), 1.0


def dynamic(dim, base, longest, *, factor, length=None):
    w = rope.frequencies(dim, base)
    return scaling.dynamic_ntk(w, factor=factor, length=length or longest, original_length=longest), 1.0


def llama3(dim, base, longest, *, original_max_position_embeddings, **given):
    return scaling.llama3(rope.frequencies(dim, base), original_length=original_max_position_embeddings, **given), 1.0


def yarn(
    dim, base, longest, *, factor, original_max_position_embeddings, truncate=True, mscale=None, mscale_all_dim=None, **betas
):
    w = rope.frequencies(dim, base)
    given = {"factor": factor, "original_length": original_max_position_embeddings, "base": base, "truncate": truncate}
    if mscale and mscale_all_dim:
        over = scaling.yarn_magnitude(factor, mscale=mscale_all_dim)
        return scaling.yarn(w, **given, **betas), scaling.yarn_magnitude(factor, mscale=mscale) / over
    return scaling.yarn(w, **given, **betas), scaling.yarn_magnitude(factor)


def proportional(dim, base, longest, *, partial_rotary_factor, factor=1.0):
    return scaling.proportional(rope.frequencies(dim, base), fraction=partial_rotary_factor, factor=factor), 1.0


def longrope(dim, base, longest, *, short_factor, long_factor, original_max_position_embeddings, length):
    rule = {"original_length": original_max_position_embeddings, "model_length": longest}
    factors = {"short": short_factor, "long": long_factor}[scaling.longrope_list("transformers", length=length, **rule)]
    w = scaling.longrope(rope.frequencies(dim, base), factors=np.array(factors))
    factor = longest / original_max_position_embeddings
    return w, scaling.longrope_magnitude(factor, original_length=original_max_position_embeddings)


LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
SHORT = [1 + t / 16 for t in range(48)]  # exact in float32
LONG = [1 + 5 * t / 4 for t in range(48)]
LISTS = {"short_factor": SHORT, "long_factor": LONG, "original_max_position_embeddings": 4096}
OF_4096 = {"original_max_position_embeddings": 4096}
CASES = {
    "vicuna 16k": (linear, 128, 1e4, 16384, {"factor": 4.0}),
    "gemma 3": (linear, 256, 1e6, 131072, {"factor": 8.0}),
    "dynamic, at its length": (dynamic, 128, 1e4, 2048, {"factor": 2.0}),
    "dynamic, shorter": (dynamic, 128, 1e4, 2048, {"factor": 2.0, "length": 100}),
    "dynamic, longer": (dynamic, 128, 1e4, 2048, {"factor": 2.0, "length": 8191}),
    "internlm 2": (dynamic, 128, 1e6, 32768, {"factor": 2.0, "length": 65536}),
    "llama 3.1": (llama3, 128, 5e5, 131072, LLAMA3 | {"factor": 8.0}),
    "llama 3.2 1b": (llama3, 64, 5e5, 131072, LLAMA3 | {"factor": 32.0}),
    "llama 4 scout": (llama3, 128, 5e5, 10485760, LLAMA3 | {"factor": 16.0, "high_freq_factor": 1.0}),
    "qwen": (yarn, 128, 1e6, 131072, {"factor": 4.0, "original_max_position_embeddings": 32768}),
    "deepseek v3": (yarn, 64, 1e4, 163840, OF_4096 | {"factor": 40.0, "mscale": 1.0, "mscale_all_dim": 1.0}),
    "another mscale": (yarn, 64, 1e4, 163840, OF_4096 | {"factor": 40.0, "mscale": 0.5, "mscale_all_dim": 0.707}),
    "gpt-oss": (yarn, 64, 150000.0, 131072, OF_4096 | {"factor": 32.0, "truncate": False}),
    "kimi k2": (yarn, 64, 50000.0, 131072, OF_4096 | {"factor": 32.0, "beta_fast": 1.0, "beta_slow": 1.0}),
    "a short one": (yarn, 8, 1e4, 64, {"factor": 4.0, "original_max_position_embeddings": 16}),
    "gemma 4": (proportional, 512, 1e6, 131072, {"partial_rotary_factor": 0.25}),
    "a third": (proportional, 192, 1e6, 131072, {"partial_rotary_factor": 0.334, "factor": 2.0}),
    "longrope, short": (longrope, 96, 1e4, 131072, LISTS | {"length": 4096}),
    "longrope, long": (longrope, 96, 1e4, 131072, LISTS | {"length": 4097}),
}
TYPE = {
    function: name
    for name, function in (("dynamic", dynamic), *((f.__name__, f) for f in (linear, llama3, yarn, longrope, proportional)))
}


@pytest.mark.parametrize("double", [True, False], ids=["float64", "as shipped"])
@pytest.mark.parametrize("case", CASES)
def test_schedules(case, double):
    """A frequency is a power, whose exponent is rounded: ln(base) + 4 roundings, a few more of the blend, and the list's."""
    schedule, dim, base, longest, given = CASES[case]
    w, magnitude = schedule(dim, base, longest, **given)
    got, factor = released(TYPE[schedule], dim, base, longest, double=double, **given)
    u = F64 if double and schedule is not longrope else F32  # its exponents are made by .float(), which no torch replaces
    roundings = 2 * math.log(base * given.get("factor", 1)) + 16
    assert np.abs(got - w).max(initial=0, where=w == 0) == 0
    assert (np.abs(got - w) <= roundings * u * w).all()
    assert abs(factor - magnitude) <= 8 * F64 * magnitude


def test_transformers_truncates_where_parameters_are_given_by_layer_type():
    """`truncate` is read from the outer dictionary: gpt-oss's numbers in OLMo 3's form are truncated, whatever they say."""
    from transformers import Olmo3Config

    given = {
        "rope_type": "yarn",
        "rope_theta": 150000.0,
        "factor": 32.0,
        "original_max_position_embeddings": 4096,
        "truncate": False,
    }
    nested = {"full_attention": given, "sliding_attention": {"rope_type": "default", "rope_theta": 150000.0}}
    config = Olmo3Config(hidden_size=128, num_attention_heads=2, num_hidden_layers=4, rope_parameters=nested)
    got, _ = rope_utils.ROPE_INIT_FUNCTIONS["yarn"](config, None, layer_type="full_attention")
    settings = {"factor": 32.0, "original_length": 4096, "base": 150000.0}
    truncated, exact = (scaling.yarn(rope.frequencies(64, 150000.0), **settings, truncate=t) for t in (True, False))
    np.testing.assert_allclose(got.numpy(), truncated, rtol=1e-6)
    assert f"{truncated[17] / exact[17]:.3f}" == "1.763"


def test_dynamic_remembers():
    """LlamaRotaryEmbedding after several calls has the frequencies of the length that `dynamic_length` names."""
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    parameters = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    config = LlamaConfig(hidden_size=128, num_attention_heads=2, max_position_embeddings=64, rope_parameters=parameters)
    module, lengths = LlamaRotaryEmbedding(config), []
    for length in (10, 100, 70, 64, 300, 80, 63, 65, 20, 64):
        lengths.append(length)
        module(torch.zeros(1), torch.arange(length)[None])
        used = scaling.dynamic_length("transformers", lengths=np.array(lengths), original_length=64, factor=2.0)
        w = scaling.dynamic_ntk(rope.frequencies(64), factor=2.0, length=used, original_length=64)
        np.testing.assert_allclose(module.inv_freq.numpy(), w, rtol=2e-6)
