"""RoPE over several axes: the rotary classes of transformers turn each pair as `explain` says of the models."""

import importlib
import math

import numpy as np
import pytest

from posref.explain import presets
from posref.rotary import axes, rope, scaling

torch = pytest.importorskip("torch", reason="pip install posref[parity]")
pytest.importorskip("transformers", reason="pip install posref[parity]")

F32 = 2.0**-24


def transformers(model, name):
    return getattr(importlib.import_module(f"transformers.models.{model}.modeling_{model}"), name)


def configuration(model, name, **given):
    return getattr(importlib.import_module(f"transformers.models.{model}.configuration_{model}"), name)(**given)


def llama_4_vision():
    config = configuration("llama4", "Llama4VisionConfig", hidden_size=176, num_attention_heads=2, image_size=40, patch_size=10)
    turn = transformers("llama4", "Llama4VisionRotaryEmbedding")(config)(torch.zeros(1))[:-1, 0]  # the last is the class token
    return axes.grid(4, 4) + 1, (turn.real, turn.imag)


def single(table, pairs, layout):
    """One column per pair of a doubled table (rows, 2 pairs), or a table as it is."""
    table = table.detach().double().numpy().reshape(-1, table.shape[-1])
    if table.shape[-1] == pairs:
        return table
    first, second = (table[:, :pairs], table[:, pairs:]) if layout == "half" else (table[:, 0::2], table[:, 1::2])
    np.testing.assert_array_equal(first, second)
    return first


def of_llama_4():
    """Frequencies and axes of the pairs of a shipped model, and their layout."""
    op, model = presets.op_and_settings("Llama-4-Scout-17B-16E-Instruct", part="vision_config")
    assert op == "axes.rotate"
    return model["frequencies"], model["axis"], model["layout"]


def test_llama_4_vision():
    """The drift test asks text models and pictures that are no squares."""
    positions, (cos, sin) = llama_4_vision()
    w, axis, layout = of_llama_4()
    angle = axes.angles(positions, w, axis)
    allowed = (np.abs(angle) * (6 - math.log(w.min())) + 3) * F32
    assert (np.abs(single(cos, len(w), layout) - np.cos(angle)) <= allowed).all()
    assert (np.abs(single(sin, len(w), layout) - np.sin(angle)) <= allowed).all()


def test_vjepa2():
    x = np.random.default_rng(0).normal(size=(1, 1, 4, 20)).astype(np.float32)
    positions = np.array([0, 1, 5, 9])
    got = transformers("vjepa2", "rotate_queries_or_keys")(torch.tensor(x), torch.tensor(positions)[None, None].float()).numpy()
    tables = rope.tables(positions, rope.frequencies(20))
    np.testing.assert_allclose(got, axes.rotate_vjepa2(x, *tables, convention="released"), atol=1e-5)
    assert np.abs(got - axes.rotate_vjepa2(x, *tables, convention="paper")).max() > 1


def test_hunyuan_vl_gives_the_members_of_a_pair_two_axes():
    """Sections of 16 pairs are 32 features of doubled tables, so pairs 0 to 31 read axes 0 and 2: lengths change."""
    parameters = {"rope_theta": 1e4, "rope_type": "dynamic", "alpha": 1000.0, "factor": 1.0, "mrope_section": [16] * 4}
    config = configuration("hunyuan_vl", "HunYuanVLTextConfig", head_dim=128, rope_parameters=parameters)
    positions = np.array([[5, 7, 11, 13]])
    tables = transformers("hunyuan_vl", "HunYuanVLRotaryEmbedding")(config)(
        torch.zeros(1, 1, 8), torch.tensor(positions.T[:, None])
    )
    x = torch.eye(128)[None, None]
    got = transformers("hunyuan_vl", "apply_rotary_pos_emb")(x, x, *(t.expand(1, 128, 128) for t in tables))[0][0, 0].numpy()
    w = scaling.ntk(rope.frequencies(128), factor=1000.0)
    angle = axes.angles(positions, np.tile(w, 2), axes.sections(np.array([32] * 4)))
    np.testing.assert_allclose(got, axes.rotate_features(np.eye(128), np.cos(angle), np.sin(angle), layout="half"), atol=1e-5)
    assert np.abs(got.T @ got - np.eye(128)).max() > 0.9
