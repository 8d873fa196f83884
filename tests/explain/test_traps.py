"""Each trap once with a file that holds it and once with one that does not; what transformers drops is dropped here."""

import numpy as np
import pytest

from posref.explain import explain, explanation
from posref.explain.command import chosen
from posref.explain.words import describe
from posref.rotary import rope, scaling

SIZES = {"hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 8, "num_hidden_layers": 8}
YARN = {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096}
PHI3 = {"short_factor": [1.0] * 32, "long_factor": [2.0] * 32}


def said(word, **config):
    return any(word in sentence for sentence in explain(SIZES | {"rope_theta": 1e4} | config)["traps"])


def full(**config):
    groups = explain(SIZES | config)["layers"]
    return next(group for group in groups if group["kind"] == "full_attention" and group["frequencies"])


def test_truncate_is_not_found_in_nested_parameters():
    nested = {"full_attention": YARN | {"truncate": False}, "sliding_attention": {"rope_type": "default"}}
    group = full(model_type="olmo3", rope_parameters=nested)
    plain = rope.frequencies(64, 500000.0)
    for truncate in (True, False):
        expected = scaling.yarn(plain, factor=32.0, original_length=4096, base=500000.0, truncate=truncate)
        assert np.array_equal(group["frequencies"], expected) == truncate
    assert said("truncate", model_type="olmo3", rope_parameters=nested)
    assert (
        full(model_type="gpt_oss", rope_theta=150000.0, rope_scaling=YARN | {"truncate": False})["scaling"]["truncate"] is False
    )
    assert not said("truncate", model_type="gpt_oss", rope_scaling=YARN | {"truncate": False})


def test_a_share_that_a_schedule_reads_and_the_code_does_not():
    """Frequencies of the share of the head, from the schedule alone, and a forward pass that turns all features and stops."""
    for model_type, words in (("llama", "stops at the first call"), ("olmo3", "for sliding_attention: the whole head rotates")):
        config = {"model_type": model_type, "partial_rotary_factor": 0.5, "rope_scaling": YARN, "rope_theta": 1e4}
        yarn = scaling.yarn(rope.frequencies(32, 1e4), factor=32.0, original_length=4096, base=1e4, truncate=True)
        assert np.array_equal(full(**config)["frequencies"], yarn)
        assert said(words, **config)
        assert said("yarn gives it 16 frequencies by partial_rotary_factor, and the code of this type rotates all 64", **config)
    assert not said("stops at the first call", model_type="phi", partial_rotary_factor=0.5, rope_scaling=YARN)
    assert not said("stops at the first call", model_type="llama", partial_rotary_factor=0.5)


def test_a_base_without_a_key_is_told_from_one_that_a_key_may_change():
    """Of GPT-J the rule of its parameters says it; of Moonvit and of Phi-1.5's own code, that no file may have the key."""
    for model_type in ("gptj", "moonvit", "mixformer-sequential"):
        assert any("no key changes it" in trap for trap in explain({"model_type": model_type})["traps"]), model_type
    assert any("no rope_theta is given" in trap for trap in explain({"model_type": "llama"})["traps"])


def test_features_that_rotate_are_named():
    """A proportional schedule leaves the last pairs alone; pairs of halves, (t, t + 32), then rotate at two places."""
    share = {"rope_type": "proportional", "rope_theta": 1e4, "partial_rotary_factor": 0.25}
    for model_type, words in (("llama", "16 of 64 features of queries and keys: 0-7 and 32-39"), ("cohere", "keys: 0-15\n")):
        config = SIZES | {"model_type": model_type, "rope_parameters": share}
        assert words in describe(explanation(config), "file")
        assert not said("stops at the first call", model_type=model_type, rope_parameters=share)
    latent = {"qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "rope_parameters": YARN | {"partial_rotary_factor": 0.5}}
    assert said("gives it 16 frequencies", model_type="deepseek_v3", **latent)
    assert said("rotates all 64 features", model_type="deepseek_v3", **latent)


def test_flat_parameters_of_a_class_that_wants_them_by_layer():
    config = {"model_type": "olmo3", "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
    assert full(**config)["base"] == 500000.0
    assert said("is flat", **config)
    nested = {kind: {"rope_type": "default", "rope_theta": 7.0} for kind in ("full_attention", "sliding_attention")}
    assert full(model_type="olmo3", rope_parameters=nested)["base"] == 7.0
    assert not said("is flat", model_type="olmo3", rope_parameters=nested)


def test_a_missing_base_is_that_of_the_class():
    for model_type, base in (("llama", 10000.0), ("qwen2", 10000.0), ("cohere", 500000.0), ("minimax_m2", 5000000.0)):
        config = SIZES | {"model_type": model_type, "head_dim": 64}
        explained = explain(config)
        assert explained["layers"][0]["base"] == base
        assert any("no rope_theta" in sentence for sentence in explained["traps"])
        assert not any("no rope_theta" in sentence for sentence in explain(config | {"rope_theta": 1e6})["traps"])


def test_type_for_rope_type():
    linear = {"type": "linear", "factor": 8.0}
    assert full(model_type="llama", rope_theta=1e4, rope_scaling=linear)["scaling"]["type"] == "linear"
    assert full(model_type="gemma3_text", rope_scaling=linear)["scaling"] is None
    assert full(model_type="gemma3_text", rope_scaling={"rope_type": "linear", "factor": 8.0})["scaling"]["type"] == "linear"
    assert said("drops the scaling", model_type="gemma3_text", rope_scaling=linear)
    assert not said("drops the scaling", model_type="llama", rope_scaling=linear)


def test_linear_of_gemma3_leaves_sliding_layers_alone():
    groups = explain(SIZES | {"model_type": "gemma3_text", "rope_scaling": {"rope_type": "linear", "factor": 8.0}})["layers"]
    assert {group["kind"]: group["scaling"] and group["scaling"]["factor"] for group in groups} == {
        "sliding_attention": None,
        "full_attention": 8.0,
    }


def test_the_outer_original_length_wins():
    config = {"model_type": "llama", "rope_scaling": YARN, "original_max_position_embeddings": 8192}
    assert full(**config, rope_theta=1e4)["scaling"]["original_length"] == 8192
    assert said("outer one", **config)
    assert not said("outer one", **config | {"original_max_position_embeddings": 4096})


def test_one_means_that_a_layer_rotates():
    groups = explain(SIZES | {"model_type": "smollm3", "rope_theta": 1e4, "no_rope_layers": [1, 0, 1, 1, 0, 1, 1, 1]})["layers"]
    assert next(group["indices"] for group in groups if group["encoding"] == "none") == [1, 4]
    assert said("that layer i rotates", model_type="smollm3")


def test_odd_widths():
    group = full(model_type="glm4_moe", head_dim=42, partial_rotary_factor=0.5, rope_theta=1e4)
    assert group["rotary_dim"] == 21
    np.testing.assert_allclose(group["frequencies"], [1e4 ** (-2 * t / 21) for t in range(11)], rtol=1e-15)
    assert said("is odd", model_type="glm4_moe", head_dim=42, partial_rotary_factor=0.5)
    assert said("transformers and posref.rotary.rope refuse it", model_type="llama", head_dim=127)
    assert not said("is odd", model_type="glm4_moe", head_dim=64, partial_rotary_factor=0.5)


def test_a_share_that_is_not_read():
    """DiffusionGemma reads it beside its parameters, Gemma 4 and Llama do not."""
    assert said("partial_rotary_factor is 0.5, and transformers", model_type="llama", partial_rotary_factor=0.5)
    for model_type, turned in (("diffusion_gemma_text", 128), ("gemma4_text", 256)):
        sliding = explain({"model_type": model_type, "partial_rotary_factor": 0.5})["layers"][0]
        assert (sliding["kind"], sliding["head_dim"], sliding["rotary_dim"]) == ("sliding_attention", 256, turned)
    for share in (None, 1.0):
        assert not said("partial_rotary_factor is", model_type="llama", partial_rotary_factor=share)
    assert not said("partial_rotary_factor is", model_type="phi", partial_rotary_factor=0.5)


def test_a_share_is_that_of_its_kind_of_layer():
    """Gemma 4: the proportional schedule of the full layers reads it, the default one of the sliding layers does not."""
    kinds = {"full_attention": {"rope_type": "proportional"}, "sliding_attention": {"rope_type": "default"}}
    for kind, ignored in (("full_attention", False), ("sliding_attention", True)):
        given = {name: values | {"rope_theta": 1e4} | ({"partial_rotary_factor": 0.25} if name == kind else {})
                 for name, values in kinds.items()}  # fmt: skip
        text = {"rope_parameters": given, "num_hidden_layers": 6, "layer_types": ["sliding_attention"] * 5 + ["full_attention"]}
        assert bool(said("the whole head rotates", model_type="gemma4_text", **text)) == ignored


def test_a_part_that_is_not_there_is_answered_with_those_that_are():
    explained = explanation(SIZES | {"model_type": "llama"})
    with pytest.raises(ValueError, match=r"there is no layer 99; the layers are 0-\d+(;|$)"):
        chosen(explained, 99)
    with pytest.raises(ValueError, match="there is no part 'text'; the layers are"):
        chosen(explained, None, "text")


def test_heads_that_share_one_key():
    """What their attention has: Falcon's 40B and files without multi_query too."""
    falcon = {"model_type": "falcon", "hidden_size": 512, "num_attention_heads": 8}
    assert explain(falcon)["layers"][0]["kv_heads"] == 1
    assert explain(falcon | {"multi_query": False})["layers"][0]["kv_heads"] == 8
    assert explain(falcon | {"new_decoder_architecture": True, "num_kv_heads": 4})["layers"][0]["kv_heads"] == 4
    assert explain(falcon | {"num_key_value_heads": 2, "posref_file": "GGUF"})["layers"][0]["kv_heads"] == 2
    bigcode = {"model_type": "gpt_bigcode", "n_embd": 512, "n_head": 8}
    assert [explain(bigcode | {"multi_query": one})["layers"][0]["kv_heads"] for one in (True, False)] == [1, 8]
    with pytest.raises(ValueError, match="num_key_value_heads is 3, expected a divisor of the 8 heads"):
        explain(SIZES | {"model_type": "llama", "num_attention_heads": 8, "num_key_value_heads": 3})


def test_biases_and_tables_of_several_types():
    (falcon,) = explain({"model_type": "falcon", "alibi": True})["layers"]
    (mpt,) = explain({"model_type": "mpt"})["layers"]
    assert [group["bias"]["form"] for group in (falcon, mpt)] == ["key", "key"]
    assert said("times 0.125", model_type="falcon", alibi=True, hidden_size=512, num_attention_heads=8)
    decoder = explain({"model_type": "whisper"})["layers"][1]
    assert (decoder["part"], decoder["table"]) == ("decoder", 448)
    assert explain({"model_type": "esm", "position_embedding_type": "absolute"})["layers"][0]["table"] == 1026
    tables = [explain({"model_type": "deberta-v2", "position_biased_input": own})["layers"][0]["bias"] for own in (True, False)]
    assert [bias["input_table"] for bias in tables] == [512, None]


def test_a_base_that_the_code_holds():
    config = {"model_type": "gptj", "n_embd": 512, "n_head": 8, "n_layer": 8, "rotary_dim": 32, "rope_theta": 7.0}
    (group,) = explain(config)["layers"]
    assert (group["base"], group["rotary_dim"], group["layout"]) == (10000.0, 32, "interleaved")
    dbrx = explain({"model_type": "dbrx", "d_model": 512, "n_heads": 8, "attn_config": {"rope_theta": 500000}})
    assert dbrx["layers"][0]["base"] == 10000.0
    assert any("attn_config.rope_theta is 500000" in sentence for sentence in dbrx["traps"])


def test_families_whose_members_differ():
    layouts = {name: full(model_type=name, rope_theta=1e4)["layout"] for name in ("glm4", "glm4_moe", "glm4_moe_lite")}
    assert layouts == {"glm4": "interleaved", "glm4_moe": "half", "glm4_moe_lite": "interleaved_to_half"}
    heads = {"qk_rope_head_dim": 64, "qk_nope_head_dim": 128}
    latent = {
        name: explain(SIZES | heads | {"model_type": name})["layers"][0]
        for name in ("deepseek_v2", "deepseek_v3", "deepseek_v32")
    }
    assert [group["layout"] for group in latent.values()] == ["interleaved", "interleaved_to_half", "interleaved_to_half"]
    assert latent["deepseek_v32"]["indexer"]["layout"] == "half"
    assert all(group["rotated"] == "last" for group in latent.values())


def test_a_window_that_is_switched_off():
    config = {"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False}
    assert full(**config, rope_theta=1e4)["window"] is None
    assert said("no layer has a window", **config)
    assert not said("no layer has a window", **config | {"use_sliding_window": True})


def test_a_window_that_does_not_count_the_token():
    groups = explain(SIZES | {"model_type": "mimo_v2_flash", "head_dim": 64, "sliding_window_size": 128})["layers"]
    assert {group["kind"]: group["window"] for group in groups} == {"full_attention": None, "sliding_attention": 129}


def test_magnitude_of_longrope_hangs_on_the_length():
    config = SIZES | {"model_type": "phi3", "rope_theta": 1e4, "rope_scaling": {"type": "longrope", **PHI3}}
    lengths = {"original_max_position_embeddings": 4096}
    (long,) = explain(config | lengths | {"max_position_embeddings": 131072})["layers"]
    (cut,) = explain(config | lengths | {"max_position_embeddings": 4096})["layers"]
    assert long["magnitude"] == pytest.approx(1.19023807142, abs=5e-12)
    assert cut["magnitude"] == 1.0
    np.testing.assert_array_equal(np.array(long["frequencies_long"]) * 2, long["frequencies"])
    assert said("depends on max_position_embeddings", **config | lengths)


def test_latent_scale_holds_the_squared_magnitude():
    scaled = YARN | {"factor": 40.0, "mscale": 1.0, "mscale_all_dim": 1.0}
    config = SIZES | {"model_type": "deepseek_v3", "rope_theta": 1e4, "rope_scaling": scaled}
    (group,) = explain(config | {"qk_rope_head_dim": 64, "qk_nope_head_dim": 128})["layers"]
    assert group["softmax_scale"] == pytest.approx(0.135233778861, abs=5e-13)
    assert group["magnitude"] == 1.0
    assert said("squared magnitude", **config)


def test_frequencies_that_the_weights_mix():
    """Keys and values of Intern-S1-Pro: head_dim 128, base 5000000, length 262144."""
    config = {"model_type": "interns1_pro_text", "head_dim": 128, "rope_theta": 5e6, "max_position_embeddings": 262144}
    scaling = {"rope_type": "default", "fope_init_factor": 0.5, "fope_sep_head": True, "num_inv_freq": None}
    assert said("of the 64 frequencies given here the first 45 are mixed", **config, rope_scaling=scaling)
    assert said("the first 20 are mixed", **config, rope_scaling=scaling | {"num_inv_freq": 20})
    assert explain(SIZES | config | {"rope_scaling": scaling})["unread"] == []
    assert not said("FoPE", **config, rope_scaling={"rope_type": "default"})


def heads(**config):
    return {group["kind"]: (group["heads"], group["kv_heads"]) for group in explain(SIZES | config)["layers"]}


def test_keys_that_classes_read_beside_their_fields():
    """configuration_bloom.py:77 and its like in transformers 5.23.0."""
    layer = explain({"model_type": "bloom", "n_embed": 4096, "n_layer": 30, "num_attention_heads": 32})["layers"][0]
    assert (layer["head_dim"], layer["softmax_scale"]) == (128, 128**-0.5)
    falcon = explain({"model_type": "falcon", "n_embed": 4544, "num_attention_heads": 71, "num_hidden_layers": 32})["layers"][0]
    assert (falcon["head_dim"], falcon["rotary_dim"]) == (64, 64)
    with pytest.raises(ValueError, match="n_embed is 4096, and hidden_size, another name of it, is 512"):
        explain(SIZES | {"model_type": "bloom", "n_embed": 4096})


def test_layers_with_other_numbers_of_heads():
    gemma = {"model_type": "gemma4_text", "num_global_key_value_heads": 2}
    assert heads(**gemma) == {"sliding_attention": (8, 8), "full_attention": (8, 8)}
    assert heads(**gemma, attention_k_eq_v=True) == {"sliding_attention": (8, 8), "full_attention": (8, 2)}
    assert heads(model_type="embedding_gemma2_text")["full_attention"] == (8, 1)
    kinds = {"model_type": "step3p5", "layer_types": ["full_attention", "sliding_attention"] * 4}
    for other in ({"num_sliding_attention_heads": 16}, {"attention_other_setting": {"num_attention_heads": 16}}):
        assert heads(**kinds, **other) == {"full_attention": (8, 8), "sliding_attention": (16, 8)}
    assert set(heads(model_type="deepseek_v4", head_dim=64).values()) == {(8, 1)}
    dbrx = {"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 2, "attn_config": {"kv_n_heads": 8}}
    assert [(group["heads"], group["kv_heads"]) for group in explain(dbrx)["layers"]] == [(48, 8)]


def norms(**config):
    layers = explain(SIZES | config)["layers"]
    return [next(group["norm"] for group in layers if i in group["indices"]) for i in range(4)]


def test_norms_of_queries_and_keys_and_the_keys_that_switch_them():
    """modeling_TYPE.py of transformers 5.23.0; Llama 4 makes `qk_norm` in layers that turn, and its fourth does not."""
    assert norms(model_type="llama4_text") == ["after", "after", "after", None]
    assert norms(model_type="llama4_text", use_qk_norm=False) == [None] * 4
    assert norms(model_type="chameleon") == ["before"] * 4
    assert norms(model_type="zaya") == ["before"] * 4
    assert norms(model_type="exaone4", sliding_window=8, sliding_window_pattern=4) == ["before"] * 3 + ["alone"]
    for model_type in ("cohere", "glm4_moe"):
        assert norms(model_type=model_type) == norms(model_type=model_type, use_qk_norm=False) == [None] * 4
        assert norms(model_type=model_type, use_qk_norm=True) == ["before"] * 4
    for model_type, usual in (("phi", None), ("stablelm", None), ("persimmon", "before")):
        assert norms(model_type=model_type) == [usual] * 4
        assert norms(model_type=model_type, qk_layernorm=True) == ["before"] * 4
        assert norms(model_type=model_type, qk_layernorm=False) == [None] * 4


def test_a_norm_that_a_class_does_not_have_is_not_understood():
    assert explain(SIZES | {"model_type": "llama", "use_qk_norm": True})["unread"] == ["use_qk_norm"]
    assert explain(SIZES | {"model_type": "llama", "use_qk_norm": False})["unread"] == []
    assert explain(SIZES | {"model_type": "cohere", "use_qk_norm": True})["unread"] == []
    assert explain(SIZES | {"model_type": "llama", "kv_lora_rank": 512})["unread"] == ["kv_lora_rank"]


def test_keys_that_are_not_understood():
    config = SIZES | {"model_type": "qwen2", "rope_theta": 1e4, "dual_chunk_attention_config": {"chunk_size": 8192}}
    assert explain(config)["unread"] == ["dual_chunk_attention_config"]
    inner = {"rope_type": "linear", "factor": 2.0, "wobble": 3}
    assert explain(SIZES | {"model_type": "llama", "rope_theta": 1e4, "rope_scaling": inner})["unread"] == [
        "rope_scaling.wobble"
    ]
    for silent in ({"vocab_size": 32000}, {"temperature": 0.7}, {"hc_sinkhorn_iters": 20}):
        assert explain(SIZES | {"model_type": "llama", "rope_theta": 1e4} | silent)["unread"] == []


def test_keys_that_contradict_each_other():
    linear, plain = {"rope_type": "linear", "factor": 2.0}, {"rope_theta": 1e6, "rope_type": "default"}
    for word, config in (
        ("beside it; the base used here is", {"rope_theta": 5e5, "rope_parameters": plain}),
        ("transformers reads rope_type", {"rope_scaling": linear | {"type": "dynamic"}}),
        ("a factor and no rope_type", {"rope_scaling": {"factor": 4.0}}),
        ("rope_scaling win", {"rope_scaling": linear, "rope_parameters": {"rope_type": "default"}}),
        ("the base stands in rope_parameters alone", {"rope_theta": None, "rope_parameters": plain}),
    ):
        assert said(word, model_type="llama", **config), word
        assert not said(word, model_type="llama", rope_scaling=linear)


def test_two_shares_that_differ_are_a_trap():
    config = {"model_type": "glm4_moe", "partial_rotary_factor": 0.25, "rope_parameters": {"partial_rotary_factor": 0.5}}
    explained = explain(config)
    assert explained["layers"][0]["rotary_dim"] * 2 == explained["layers"][0]["head_dim"]
    assert any("partial_rotary_factor is 0.5 in rope_parameters and 0.25 beside it" in words for words in explained["traps"])


@pytest.mark.parametrize(("model_type", "refused", "key"), [("phi3", True, "type"), ("phi3_v", False, "rope_type")])
def test_su_is_the_first_name_of_longrope(model_type, refused, key):
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "max_position_embeddings": 8192}
    scaling = {key: "su", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8}
    base = {"model_type": model_type, "rope_theta": 1e4, "original_max_position_embeddings": 4096}
    explained = explain(base | sizes | {"rope_scaling": scaling})
    (words,) = [words for words in explained["traps"] if '"su"' in words]
    assert ("transformers 5.23.0 refuses it" in words) == refused
    assert explained["layers"][0]["scaling"]["type"] == "longrope"


def test_su_of_another_type_is_refused_and_named():
    with pytest.raises(ValueError, match="'su', the first name of longrope") as error:
        explain({"model_type": "llama", "rope_scaling": {"type": "su", "factor": 2.0}})
    assert "ntk_alpha" not in str(error.value)
    assert "factors" not in str(error.value)


@pytest.mark.parametrize(("model_type", "plus"), [("modernbert", 1), ("modernbert-decoder", 0)])
def test_windows_of_modernbert(model_type, plus):
    for keys, half in (({}, 64), ({"local_attention": 32}, 16), ({"sliding_window": 7}, 7)):
        windows = {group["window"] for group in explain({"model_type": model_type, **keys})["layers"]}
        assert windows == {None, half + plus}
    assert explain({"model_type": model_type, "sliding_window": -1})["layers"][1]["window"] is None


def test_mllama_attends_to_pictures_in_eight_layers_where_no_key_says_which():
    groups = explain({"model_type": "mllama_text_model"})["layers"]
    assert [g["indices"] for g in groups if g["kind"] != "full_attention"] == [[3, 8, 13, 18, 23, 28, 33, 38]]


SPARSE = {"layer_types": ["minimax_m3_sparse"] * 8, "head_dim": 128}


@pytest.mark.parametrize(
    ("word", "model_type", "held", "other"),
    [
        ("pass all of these layers 3 times", "perceiver", {"num_blocks": 3}, {"num_blocks": 1}),
        ("in training alone", "rt_detr", {"eval_size": 640}, {"eval_size": None}),
        ("is no rotation", "minimax_m3_vl_text", SPARSE | {"index_head_dim": 64}, SPARSE | {"index_head_dim": 128}),
    ],
)
def test_values_of_a_key_that_change_what_layers_do(word, model_type, held, other):
    assert said(word, model_type=model_type, **held)
    assert not said(word, model_type=model_type, **other)


def test_is_causal_is_not_understood_where_a_module_makes_its_own_mask():
    for model_type, unread in (("gpt_neo", ["is_causal"]), ("gpt2", [])):
        found = explain({"model_type": model_type, "is_causal": False})
        assert (found["unread"], found["layers"][0]["causal"]) == (unread, bool(unread))
