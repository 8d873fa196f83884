"""Types that transformers lacks: the code that ships with their checkpoints was run, and gave what is expected here.

modelling_RW.py, config.json: WasimAkramShaikh/falcon-7b-instruct-clone@eb410fb6ff, Decentralised-AI/falcon-40b@6e61c89591
modeling_baichuan.py: baichuan-inc/Baichuan-7B/models, pandong2011/Baichuan2/models, jrd77/Baichuan2-13B-Chat@d022d72644
modeling_bailing_moe.py: inclusionAI/Ling/models@5ccaeae073; modeling_bailing_moe_v2.py: inclusionAI/Ling-V2/models@af8837e677
modeling_intern_vit.py: OpenGVLab/InternVL/internvl_chat/internvl/model/internvl_chat@2410d1dbf2
"""

import math

import numpy as np
import pytest

from posref.explain import explain, explanation
from posref.explain.words import describe
from tests.every import every

FALCON_7B = {
    "architectures": ["RWForCausalLM"],
    "model_type": "RefinedWebModel",
    "hidden_size": 4544,
    "n_head": 71,
    "n_layer": 32,
}
FALCON_7B |= {"multi_query": True, "alibi": False}
FALCON_40B = {"architectures": ["RWForCausalLM"], "model_type": "RefinedWeb", "hidden_size": 8192, "n_head": 128, "n_layer": 60}
FALCON_40B |= {"n_head_kv": 8, "alibi": False}
BAICHUAN_13B = {
    "architectures": ["BaichuanForCausalLM"],
    "model_type": "baichuan",
    "hidden_size": 5120,
    "model_max_length": 4096,
}
BAICHUAN_13B |= {"num_attention_heads": 40, "num_hidden_layers": 40}
BAICHUAN_7B = BAICHUAN_13B | {"hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32}
LING_LITE = {"model_type": "bailing_moe", "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 4}
LING_LITE |= {"num_hidden_layers": 28, "max_position_embeddings": 16384, "rope_scaling": None, "rope_theta": 600000}


def one(config):
    explained = explain(config)
    assert explained["unread"] == explained["foreign"] == explained["unsupported"] == []
    (group,) = explained["layers"]
    assert group["source"].startswith("code that ships with the checkpoint: mod")
    assert "transformers" not in next(line for line in describe(explanation(config), "file").splitlines() if "(" in line)
    return group


ROTATIONS = [  # file, layers, rotated width, width of a head, base, query heads, key heads
    (FALCON_7B, 32, 64, 64, 1e4, 71, 1),
    (FALCON_7B | {"multi_query": False}, 32, 64, 64, 1e4, 71, 71),
    (FALCON_40B, 60, 64, 64, 1e4, 128, 8),
    (BAICHUAN_7B, 32, 128, 128, 1e4, 32, 32),
    (LING_LITE, 28, 128, 128, 6e5, 16, 4),
    ({"model_type": "bailing_moe_v2", "partial_rotary_factor": 0.5}, 20, 64, 128, 6e5, 16, 4),
]


@every(ROTATIONS, name=lambda case: case[0]["model_type"])
def test_rotations(config, layers, width, head, base, heads, key_heads):
    group = one(config)
    assert (group["indices"], group["layout"], group["causal"]) == (list(range(layers)), "half", True)
    assert (group["heads"], group["kv_heads"], group["softmax_scale"]) == (heads, key_heads, head**-0.5)
    assert (group["norm"] == "before") == (config["model_type"] == "bailing_moe_v2")
    np.testing.assert_allclose(group["frequencies"], [base ** (-2 * t / width) for t in range(width // 2)], rtol=1e-13)


def test_generate_gives_padding_the_position_1():
    """prepare_inputs_for_generation of Baichuan 7B and Ling; the module of the first Falcon takes no positions."""
    asked = {one(config)["positions"]["generate"] for config in (BAICHUAN_7B, LING_LITE, {"model_type": "bailing_moe_v2"})}
    assert asked == {"position_ids.padded(mask, filler=1)"}
    assert one(FALCON_7B)["positions"]["generate"] is one(BAICHUAN_13B)["positions"]["generate"] is None


def test_names_of_types():
    assert explanation("bailing_moe_v2").layers == explanation({"model_type": "bailing_moe_v2"}).layers
    assert any("Ling-V2 takes 600000 from its class" in trap for trap in explanation("bailing_moe_v2").traps)
    assert [trap.partition(";")[0] for trap in explanation("baichuan").traps] == [
        "a model type alone has no hidden_size, no num_hidden_layers"
    ]
    with pytest.raises(ValueError, match="baichuan 13B: No such file"):  # the name of a row, and no type
        explanation("baichuan 13B")


def test_alibi_of_falcon_counts_tokens_and_of_baichuan_places():
    """Falcon adds it before it scales the scores."""
    falcon, baichuan = one(FALCON_7B | {"alibi": True}), one(BAICHUAN_13B)
    assert falcon["positions"]["forward"] == "position_ids.padded(mask, filler=0)"
    assert (baichuan["positions"]["forward"], baichuan["positions"]["cached"]) == ("arange(n)", "arange(c, c + n)")
    for group, heads in ((falcon, 71), (baichuan, 40)):
        assert group["bias"] == {"call": "alibi.bias", "heads": heads, "form": "key", "maximum": 8}
    traps = explain(FALCON_7B | {"alibi": True})["traps"]
    assert all(words in str(traps) for words in ("before it scales", "computes the bias in bf16: positions beyond 256"))
    assert not any("before it scales" in trap for trap in explain(BAICHUAN_13B)["traps"])


def test_the_first_falcon_hides_no_padding():
    assert one(FALCON_7B)["positions"]["cached"] == "arange(n)"
    assert any("padding is visible" in trap for trap in explain(FALCON_40B)["traps"])


@every([{}, {"hidden_size": 5120}, {"hidden_size": 4096, "num_hidden_layers": 40}, {"hidden_size": 64, "rope_theta": 1e4}])
def test_no_key_says_which_baichuan_it_is(keys):
    explained = explain({"model_type": "baichuan", "num_hidden_layers": 32, "num_attention_heads": 32} | keys)
    (entry,) = explained["unsupported"]
    assert explained["layers"] == []
    assert "baichuan 7B has 4096, 32; baichuan 13B has 5120, 40" in entry["why"]


YARN = {"type": "yarn", "factor": 8.0, "original_max_position_embeddings": 32}


@every([(YARN, 0.1 * math.log(8) + 1), (YARN | {"mscale": 0.707}, 0.0707 * math.log(8) + 1)])
def test_yarn_of_ling(scaling, magnitude):
    """Without mscale_all_dim the magnitude is that of mscale alone; transformers would take 1 for mscale."""
    assert one(LING_LITE | {"rope_scaling": scaling})["magnitude"] == pytest.approx(magnitude, rel=1e-14)


def test_dynamic_ntk_of_ling_keeps_its_frequencies():
    traps = explain(LING_LITE | {"rope_scaling": {"type": "dynamic", "factor": 2.0}})["traps"]
    assert any("a text of more than 16384 tokens, later texts have" in trap for trap in traps)


def test_what_ling_does_not_read():
    with pytest.raises(ValueError, match="expected type linear, dynamic or yarn, and a factor"):
        explain(LING_LITE | {"rope_scaling": {"rope_type": "yarn", "factor": 8.0}})
    assert explain(LING_LITE | {"rope_parameters": {"rope_theta": 5e5}})["layers"] == []
    assert explain(LING_LITE | {"is_causal": False})["layers"][0]["causal"] is True
    assert explain(LING_LITE | {"rope_scaling": YARN | {"truncate": False}})["unread"] == ["rope_scaling.truncate"]


LING_2 = {"model_type": "bailing_moe", "architectures": ["BailingMoeV2ForCausalLM"], "partial_rotary_factor": 0.5}


def test_ling_2_has_the_type_of_ling_1():
    """tools/convert_dcp_to_safetensors.py of Ling-V2 writes model_type bailing_moe."""
    group = one(LING_2 | {"rotary_dim": 64})
    assert (group["rotary_dim"], group["norm"], group["layout"], len(group["indices"])) == (64, "before", "half", 20)
    assert "modeling_bailing_moe_v2.py of inclusionAI/Ling-V2" in group["source"]
    assert "models/modeling_bailing_moe.py of" in one(LING_LITE | {"architectures": ["BailingMoeForCausalLM"]})["source"]


@every([(32768, True), (131072, False)])
def test_yarn_of_ling_2_depends_on_the_version_of_transformers(length, differs):
    """_compute_yarn_parameters of 4.52.3 was run: with 32768 of 32768 tokens its frequencies are those without scaling."""
    scaling = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    explained = explain(LING_2 | {"max_position_embeddings": length, "rope_scaling": scaling})
    assert explained["layers"][0]["frequencies"][-1] == pytest.approx(6e5 ** (-62 / 64) / 4, rel=1e-13)
    assert any("in transformers 4.52.3 the factor of YaRN" in trap for trap in explained["traps"]) is differs


def test_vision_of_internvl():
    vision = {
        "model_type": "intern_vit_6b",
        "hidden_size": 1024,
        "image_size": 448,
        "num_attention_heads": 16,
        "patch_size": 14,
    }
    vision |= {"num_hidden_layers": 24, "qk_normalization": False, "norm_type": "layer_norm"}
    (small,) = explain({"model_type": "internvl_chat", "vision_config": vision})["layers"]
    large = one({"model_type": "intern_vit_6b"})
    assert (small["encoding"], small["head_dim"], small["norm"], small["causal"]) == ("learned", 64, None, False)
    assert (large["head_dim"], large["norm"], len(large["indices"]), large["softmax_scale"]) == (128, "alone", 48, 128**-0.5)


def test_a_class_of_other_code():
    explained = explain(BAICHUAN_7B | {"architectures": ["BaichuanM1ForCausalLM"]})
    assert explained["layers"] == []
    assert "is no class of modeling_baichuan.py of Baichuan-7B" in explained["unsupported"][0]["why"]
