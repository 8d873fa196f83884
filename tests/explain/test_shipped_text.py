"""Decoders like Llama, LLaDA and MoonViT, whose code ships with their checkpoints: it was run, and gave what is expected.

Modeling files, and configurations beside them or of tests/explain/configs.json:
internlm2: OpenGVLab/InternVL/internvl_chat/internvl/model/internlm2@2410d1dbf2, NanSang2000/S1mpleAgent@4275caa205
deepseek: yellowtree123/Deterministic-Differentiable-Pruning/deepseek-moe-16b-base@a373238bcc
internlm: InternLM/InternLM/tools/transformers@68d6abc64a, and its internlm_model@095ebfff9d
stablelm_epoch: Zumwaltboi68/stable-code-3b@7c4583da0a; codeshell: wwnaitang/CodeShell-7B-Chat-int4@a280a3acd9
mixformer-sequential: StarHawkMK1/myphi@92557d03bb
llada: radi-cho/reasoning-diffusion/LLaDA-8B-Instruct@ddc7b2abb4; mimo: jj8127/mimo_kor@1bdf82cea2
"""

import numpy as np
import pytest

from posref.explain import explain
from tests.every import every
from tests.explain.test_configs import BY_NAME

STABLE_CODE = {"architectures": ["StableLMEpochForCausalLM"], "model_type": "stablelm_epoch", "hidden_size": 2560}
STABLE_CODE |= {"num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "max_position_embeddings": 16384}
STABLE_CODE |= {"num_heads": 32, "rope_pct": 0.25, "rope_theta": 1000000, "rotary_scaling_factor": 1.0}
CODESHELL = {
    "architectures": ["CodeShell4bitForCausalLM"],
    "model_type": "codeshell",
    "n_embd": 4096,
    "n_head": 32,
    "n_layer": 42,
}
CODESHELL |= {"n_positions": 8192, "num_query_groups": 8, "group_query_attention": True, "position_embedding_type": "rope"}
CODESHELL |= {"rope_scaling": None, "max_sequence_length": None}
PHI_1_5 = {"architectures": ["MixFormerSequentialForCausalLM"], "model_type": "mixformer-sequential", "n_embd": 2048}
PHI_1_5 |= {"n_head": 32, "n_layer": 24, "n_positions": 2048, "rotary_dim": 32}
LLADA = {"architectures": ["LLaDAModelLM"], "model_type": "llada", "d_model": 4096, "n_heads": 32, "n_kv_heads": 32}
LLADA |= {"n_layers": 32, "max_sequence_length": 4096, "rope": True, "rope_theta": 500000.0, "alibi": False}
LLADA |= {"alibi_bias_max": 8.0, "attention_layer_norm": False, "multi_query_attention": None, "rope_full_precision": True}
MIMO = {"architectures": ["MiMoForCausalLM"], "model_type": "mimo", "hidden_size": 4096, "head_dim": 128}
MIMO |= {"num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8, "rope_theta": 640000, "use_mrope": False}
MIMO |= {"max_position_embeddings": 32768, "sliding_window": 32768, "use_sliding_window": False, "max_window_layers": 36}
INTERNLM2, DEEPSEEK = (BY_NAME[name]["config"] for name in ("mlc_internlm2_5_7b", "deepseek-moe-16b-base"))
DYNAMIC = {"type": "dynamic", "factor": 2.0}
INTERNLM = BY_NAME["mlc_internlm"]["config"]

ROTATIONS = [  # file, layers, rotated width, width of a head, base, query heads, key heads, filler of padding in generate()
    (INTERNLM2, 32, 128, 128, 1e6, 32, 8, 1),
    ({"model_type": "internlm2"}, 32, 128, 128, 1e4, 32, 32, 1),
    (DEEPSEEK, 28, 128, 128, 1e4, 16, 16, 1),
    (STABLE_CODE, 32, 20, 80, 1e6, 32, 32, 1),
    (CODESHELL, 42, 128, 128, 1e4, 32, 8, 1),
    (INTERNLM, 32, 128, 128, 1e4, 32, 32, None),
    (PHI_1_5, 24, 32, 64, 1e4, 32, 32, None),
    (LLADA, 32, 128, 128, 5e5, 32, 32, None),
    (MIMO, 36, 128, 128, 64e4, 32, 8, 0),
    ({"model_type": "deepseek"}, 30, 128, 128, 1e4, 32, 32, 1),
]


@every(ROTATIONS, name=lambda case: case[0]["model_type"])
def test_rotations(config, layers, width, head, base, heads, key_heads, filler):
    explained = explain(config)
    assert explained["unread"] == explained["foreign"] == explained["unsupported"] == []
    (group,) = explained["layers"]
    assert group["source"].startswith("code that ships with the checkpoint: ")
    assert (group["indices"], group["layout"], group["norm"]) == (list(range(layers)), "half", None)
    assert (group["heads"], group["kv_heads"], group["head_dim"]) == (heads, key_heads, head)
    assert (group["causal"], group["window"], group["softmax_scale"]) == (config != LLADA, None, head**-0.5)
    np.testing.assert_allclose(group["frequencies"], [base ** (-2 * t / width) for t in range(width // 2)], rtol=1e-13)
    generated = None if filler is None else f"position_ids.padded(mask, filler={filler})"
    assert group["positions"]["generate"] == generated
    assert group["positions"]["forward"] == (generated if config == CODESHELL else "arange(n)")


def test_scaling():
    """Their tables are made again for longer texts alone; another type, or a key beside type and factor, they refuse."""
    for config in (INTERNLM2, DEEPSEEK, CODESHELL):
        explained = explain(config | {"rope_scaling": DYNAMIC})
        assert explained["layers"][0]["scaling"]["type"] == "dynamic_ntk"
        assert any("later texts have the frequencies of this text" in trap for trap in explained["traps"])
        linear = explain(config | {"rope_scaling": {"type": "linear", "factor": 4.0}})["layers"][0]
        np.testing.assert_allclose(linear["frequencies"], np.array(explained["layers"][0]["frequencies"]) / 4, rtol=1e-13)
        for other in ({"type": "yarn", "factor": 4.0}, {"rope_type": "linear", "factor": 4.0}, DYNAMIC | {"beta_fast": 32}):
            with pytest.raises(ValueError, match="expected type linear or dynamic, and a factor"):
                explain(config | {"rope_scaling": other})


def test_internlm_has_two_codes():
    """The later one reads `rotary`: dynamic NTK with factor 1, if the file does not say otherwise."""
    plain, later = (explain(INTERNLM | keys) for keys in ({}, {"rotary": {"base": 5000, "type": "dynamic"}}))
    assert (plain["layers"][0]["scaling"], plain["layers"][0]["base"]) == (None, 10000)
    assert any("has no rotary" in trap for trap in plain["traps"])
    assert (later["layers"][0]["scaling"]["factor"], later["layers"][0]["base"]) == (1, 5000)
    assert later["unread"] == later["foreign"] == []
    assert not any("rotary" in trap or "the base" in trap for trap in later["traps"])
    with pytest.raises(ValueError, match="expected type origin or dynamic, and a base"):
        explain(INTERNLM | {"rotary": {"type": "yarn", "base": 1e4}})


@every(
    [
        (INTERNLM, {"rope_theta": 1e4}),
        (STABLE_CODE, {"rope_scaling": {"type": "linear", "factor": 2.0}}),
        (CODESHELL, {"position_embedding_type": "learned_absolute"}),
        (CODESHELL, {"group_query_attention": False}),
        (LLADA, {"rope": False}),
        (LLADA, {"multi_query_attention": True}),
    ]
)
def test_values_that_are_not_described(config, keys):
    explained = explain(config | keys)
    assert all(group["layout"] is None for group in explained["layers"])
    assert "which posref does not describe" in str([explained["unsupported"], explained["traps"]])


def test_llada_hides_nothing():
    (group,) = explain(LLADA | {"attention_layer_norm": True})["layers"]
    assert (group["causal"], group["norm"]) == (False, "before")
    assert "padding is visible" in group["further_keys"]


def test_moonvit_and_the_text_beside_it():
    """Neighbouring features rotate, by column and row in turn; the text has a mask of its own where causal_attn is false."""
    config = BY_NAME["LocateAnything"]["config"]
    text, vision = explain(config | {"text_config": config["text_config"] | {"causal_attn": False}})["layers"]
    place, angles = {"h": 5, "w": 3}, []
    for axis, i in zip(vision["axes"], vision["index"], strict=True):
        angles.append(place[axis] * vision["frequencies"][i])
    expected = [(3, 5)[p % 2] * 10000 ** (-4 * (p // 2) / 72) for p in range(36)]
    np.testing.assert_allclose(angles, expected, rtol=1e-13)
    assert (vision["layout"], vision["softmax_scale"], vision["causal"]) == ("interleaved", 72**-0.5, False)
    assert (vision["input"], vision["segment"]) == ("learned", "patches of one picture see each other")
    assert "causal_attn is false" in text["mask_unknown"]
