"""Schedules of transformers: how a dictionary is read, what a module remembers; test_spot_values.py has the formulas."""

import numpy as np
import pytest

from posref.rotary import rope, scaling

torch = pytest.importorskip("torch", reason="pip install posref[parity]")
rope_utils = pytest.importorskip("transformers.modeling_rope_utils", reason="pip install posref[parity]")
from transformers import LlamaConfig  # noqa: E402


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
