"""A key about position that nothing has read is printed, wherever it stands; a file of another class says so."""

from collections import Counter

import pytest

from posref.explain import explain, explanation
from posref.explain.configuration import classes, facts
from posref.explain.inventory import REASONS, UNKNOWN
from posref.explain.words import describe
from tests.every import every

LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "rope_theta": 500000.0}
DRAFT = LLAMA | {"model_type": "qwen3", "architectures": ["DFlashDraftModel"], "is_causal": False}
STRANGE_KEYS = {
    **{"compress_ratios": [1, 4], "num_attention_heads_per_layer": [4, 8], "scale_linear": 4.0},
    **{"rope_freq_scale": 0.5, "use_alibi": True, "local_attention_window": 128, "nope_layer_interval": 4},
    **{"use_dynamic_ntk": True, "attention_sinks": 4, "rotary_interleaved": True, "layer_rope_bases": [1.0, 2.0]},
    **{"max_relative_positions": 8, "attn_logit_softcapping": 30.0, "attention_layers": ["global", "local"]},
    **{"attention_context_left": 13, "max_window_layers": 2, "query_pre_attn_scalar": 5, "max_sequence_length": 77},
    **{"seq_length": 77, "seq_len_interpolation_factor": 2.0, "position_offset": 2, "learnable_pos": True},
    **{"pe_type": "sin", "num_local_blocks": 1, "num_sink_tokens": 4, "softmax_scale": 0.1},
    **{"mixer_types": ["minicpm4"], "mask_type": "prefix", "ROPE_THETA": 5.0, "ropeTheta": 5.0},
    **{"num_key_value_head": 2},
}


NAMES = set(STRANGE_KEYS)


def test_keys_that_were_not_read_are_printed():
    """At the top, in rotary parameters, in a dictionary, in a list of dictionaries, in a part and around a part."""
    part = {"model_type": "llava", "text_config": LLAMA | STRANGE_KEYS, "vision_config": {"model_type": "clip_vision_model"}}
    for config, places in (
        (LLAMA | STRANGE_KEYS, 1),
        (LLAMA | {"rope_scaling": {"rope_type": "linear", "factor": 2.0, **STRANGE_KEYS}}, 1),
        (LLAMA | {"a dictionary": STRANGE_KEYS, "dictionaries": [STRANGE_KEYS]}, 2),
        (part, 1),
        (part | {"text_config": LLAMA} | STRANGE_KEYS, 1),
    ):
        named = Counter(path.rpartition(".")[2] for path in explain(config)["unread"])
        assert {key: named[key] for key in NAMES} == dict.fromkeys(NAMES, places)
        words = describe(explanation(config), "file")
        assert [key for key in NAMES if words.count(key) < places] == []


@pytest.mark.parametrize(
    "file",
    [
        {"model_type": "lxmert", "visual_pos_dim": 4, "num_hidden_layers": {"cross_encoder": 5, "language": 9, "vision": 5}},
        {"model_type": "dots3_note_text", "swa_v_head_dim": 128, "swa_q_lora_rank": 1024, "swa_kv_lora_rank": 1024},
    ],
)
def test_keys_that_a_class_writes_are_known(file):
    assert explain(file)["unread"] == explain(file)["foreign"] == []


@pytest.mark.parametrize("key", ["lookback", "Frequency Base"])
def test_a_key_that_no_class_has_is_printed(key):
    """Whatever its name is: at the top, in a dictionary, in a part, in parameter files and GGUF metadata; null says nothing."""
    part = {"model_type": "llava", "text_config": LLAMA | {key: 3}, "vision_config": {"model_type": "clip_vision_model"}}
    gguf = {"general.architecture": "llama", "llama.embedding_length": 64, "llama.block_count": 2}
    gguf |= {"llama.attention.head_count": 4, "rope_freqs.weight": []}
    native = {"dim": 64, "n_layers": 2, "n_heads": 4}
    for config in (LLAMA | {key: 3}, LLAMA | {key: {"a": 3}}, part, native | {key: 3}, gguf | {f"llama.{key}": 3}):
        explained = explain(config)
        assert sum(key in path for path in [*explained["unread"], *explained["foreign"]]) == 1, config
        assert key in describe(explanation(config), "file")
    assert explain(LLAMA | {key: None})["foreign"] == explain(LLAMA)["foreign"] == []


def test_a_key_is_printed_as_the_file_spells_it():
    """Its class calls head_dim of Zamba 2 attention_head_dim; a key of GGUF metadata has the name that it has there."""
    assert "head_dim" in explain({"model_type": "zamba2", "head_dim": 8})["unread"]
    for model_type, record in facts().items():
        for other, name in record.get("names", {}).items():
            unread = explain({"model_type": model_type, other: record["defaults"].get(name)})["unread"]
            assert not any(path == name for path in unread), (model_type, other)


def test_a_share_and_axes_that_are_not_read_are_said():
    shared = LLAMA | {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5, "partial_rotary_factor": 0.5}}
    assert any("rope_parameters.partial_rotary_factor is 0.5" in trap for trap in explain(shared)["traps"])
    assert "partial_rotary_factor" in explain({"model_type": "mimo_v2_flash", "partial_rotary_factor": 0.5})["unread"]
    axes = {"rope_type": "default", "rope_theta": 5e5, "mrope_section": [24, 20, 20], "mrope_interleaved": False}
    said = explain({"model_type": "qwen3_vl_text", "rope_parameters": axes})["traps"]
    assert any("mrope_interleaved is false" in trap for trap in said)


def test_a_key_of_many_layers_is_printed_once():
    blocks = [{"attention": {"n_heads_in_group": 1, "window_length": 64}, "ffn": {"no_op": True, "ffn_mult": 2.0}}] * 2
    assert explain(LLAMA | {"block_configs": blocks})["unread"] == ["block_configs[i].attention.window_length"]


def test_what_a_schedule_does_not_use_is_printed():
    linear = {"rope_type": "linear", "factor": 2.0}
    assert explain(LLAMA | {"rope_scaling": linear})["unread"] == []
    assert explain(LLAMA | {"rope_scaling": linear | {"beta_fast": 32}})["unread"] == ["rope_scaling.beta_fast"]
    assert explain(LLAMA | {"original_max_position_embeddings": 16})["unread"] == ["original_max_position_embeddings"]
    assert "rope_scaling.factor" in explain(LLAMA | {"rope_scaling": {"factor": 4.0}})["unread"]


def test_a_class_of_another_model_is_said_and_nothing_else_is_believed():
    explained = explain(DRAFT)
    (group,) = explained["layers"]
    assert (group["layout"], group["causal"], group["softmax_scale"]) == (None, None, None)
    assert any("'DFlashDraftModel', which is no class of qwen3" in sentence for sentence in explained["traps"])
    own = explain(DRAFT | {"architectures": ["Qwen3ForCausalLM"]})
    assert own["layers"][0]["layout"] == "half"
    chronos = {"model_type": "t5", "architectures": ["Chronos2Model"], "num_layers": 6, "d_model": 64, "rope_theta": 1e4}
    assert explain(chronos)["layers"] == []
    assert "Chronos2Model" in explain(chronos)["unsupported"][0]["why"]


def test_a_stack_of_the_same_size_is_said():
    file = {"model_type": "seamless_m4t", "position_embeddings_type": "rotary"}
    found = {entry["counted_by"]: len(entry["indices"]) for entry in explain(file)["unsupported"]}
    of_text, of_units = (dict.fromkeys((f"{of}decoder_layers", f"{of}encoder_layers"), n) for of, n in (("", 24), ("t2u_", 6)))
    assert found == {**of_text, **of_units, "speech_encoder_layers": 24}
    assert set(REASONS) <= set(facts())


def test_no_type_is_silent():
    """Every type has layers, or says for each part why it is not described; it builds its own parts, and its class is known."""
    for model_type, record in facts().items():
        explained = explain({"model_type": model_type, "architectures": classes().get(record["module"], "").split()[:1]})
        assert not any("does not build this part" in trap or "no class of" in trap for trap in explained["traps"]), model_type
        assert explained["layers"] or explained["unsupported"], model_type
        assert [entry for entry in explained["unsupported"] if entry["why"] == UNKNOWN] == [], model_type
        assert explained["unread"] == explained["foreign"] == [], model_type  # a file without keys has none


def test_every_named_class_is_read():
    """A second class, a name that is no list, and the own code of a repository."""
    own = {"auto_map": {"AutoConfig": "x.AnyConfig", "AutoModelForCausalLM": "modeling_x.XForCausalLM"}}
    for named in ({"architectures": ["LlamaModel", "XForCausalLM"]}, {"architectures": "XForCausalLM"}, own):
        assert any("'XForCausalLM', which is no class of llama" in trap for trap in explain(LLAMA | named)["traps"])
    copied = {"AutoModel": "someone/repository--modeling_x.LlamaModel", "AutoModelForX": "modeling_x.LlamaForX"}
    copied = {"auto_map": copied}
    assert explain(LLAMA | copied)["layers"][0]["layout"] == "half"


def test_a_class_without_grouped_heads_has_none():
    """BERT does not read num_key_value_heads."""
    explained = explain({"model_type": "bert", "num_key_value_heads": 2})
    assert explained["layers"][0]["kv_heads"] == explained["layers"][0]["heads"]
    assert explained["unread"] == ["num_key_value_heads"]


def test_a_type_or_a_class_vetoes_the_form_of_parameter_files():
    native = {"dim": 64, "n_layers": 2, "n_heads": 4}
    assert explain(native)["layers"]
    for named in ({"model_type": "falcon_perception"}, {"architectures": ["FalconPerception"], "model_type": "x"}):
        explained = explain(native | named)
        assert explained["layers"] == []
        assert explained["model_type"] == named["model_type"]
        assert len(explained["unsupported"][0]["indices"]) == 2


def test_another_embedding_than_the_table_of_a_class():
    bert = {"model_type": "bert", "position_embedding_type": "alibi"}
    assert explain(bert)["layers"] == []
    assert "alibi" in explain(bert)["traps"][0]
    assert explain(bert | {"position_embedding_type": "absolute"})["layers"]
    rotary = {"rope_theta": 100, "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
    assert explain(rotary | {"model_type": "vit", "position_embedding_type": "sincos"})["layers"] == []


@every(["unknown here", *[*facts()][::4]])
def test_no_dictionary_with_layers_is_silent(model_type):
    """Of a quarter of the types: a dictionary that counts layers is a part, at any depth, whatever its key is."""
    config = {"model_type": model_type, "strange": {"num_hidden_layers": 3}, "deep": {"er": {"n_layer": 5, "rope_theta": 7.0}}}
    explained = explain(config)
    named = {entry["part"]: len(entry["indices"]) for entry in explained["unsupported"]}
    assert (named["strange"], named["deep.er"]) == (3, 5)
    assert "deep.er.rope_theta" in explained["unread"]


def test_a_decoder_is_as_long_as_its_encoder_where_no_key_counts_it():
    for model_type, record in facts().items():
        if record["defaults"].get("num_decoder_layers", 0) is None:
            explained = explain({"model_type": model_type, "num_layers": 7, "num_decoder_layers": None})
            said = [*explained["layers"], *explained["unsupported"]]
            assert sum(len(entry["indices"]) for entry in said if entry["kind"] != "cross_attention") == 14, model_type


def test_keys_of_a_parameter_file_that_were_not_read_are_printed():
    yarn = {"factor": 2.0, "original_max_position_embeddings": 64}
    native = {"dim": 64, "n_layers": 2, "n_heads": 4, "vision": STRANGE_KEYS, "yarn": yarn | STRANGE_KEYS}
    unread = explain(native | STRANGE_KEYS)["unread"]
    assert sorted(unread) == sorted(place + key for place in ("", "vision.", "yarn.") for key in NAMES)


def test_layers_of_a_parameter_file_beside_its_text_are_named():
    explained = explain({"dim": 64, "n_layers": 2, "n_heads": 4, "vision_encoder": {"num_hidden_layers": 24}})
    assert [(entry["part"], len(entry["indices"])) for entry in explained["unsupported"]] == [("vision_encoder", 24)]


def test_a_mask_is_causal_unless_the_key_is_false():
    """transformers asks `not is_causal`: null and 0 build no causal mask either."""
    for value, causal in ((True, True), (1, True), (False, False), (0, False), (None, False)):
        assert explain(LLAMA | {"is_causal": value})["layers"][0]["causal"] is causal


def test_two_names_of_one_key_are_both_named():
    with pytest.raises(ValueError, match="n_layer is 2, and num_hidden_layers, another name of it, is 4"):
        explain({"model_type": "gpt2", "num_hidden_layers": 4, "n_layer": 2})
    with pytest.raises(ValueError, match=r"sliding_window is 4.5, expected an integer"):
        explain({"model_type": "mistral", "sliding_window": 4.5})


def test_a_part_that_a_class_does_not_build_says_so():
    explained = explain(LLAMA | {"text_config": LLAMA})
    assert any(trap.startswith("text_config: the class of llama") for trap in explained["traps"])


def test_an_enormous_text_of_a_file_is_cut():
    assert len(describe(explanation(LLAMA | {"model_type": "x" * 10**6, "rope_" + "k" * 250: 1}), "file")) < 10**4


def test_a_list_of_more_layers_than_there_are_is_a_trap():
    config = LLAMA | {"model_type": "qwen2", "layer_types": ["full_attention"] * 3}
    assert any("layer_types names 3 layers and num_hidden_layers is 2" in trap for trap in explain(config)["traps"])


def test_a_multiplier_of_the_projections_input_is_not_about_position():
    assert explain({"model_type": "falcon_h1", "attention_in_multiplier": 3.0})["unread"] == []


def test_proportional_pairs_of_halves_turn_the_first_features_of_each_half():
    """64 pairs of 256 turn: features 0-63 and 256-319 of 512."""
    turned = {group["kind"]: group["rotated"] for group in explain({"model_type": "gemma4_text"})["layers"]}
    assert turned == {"sliding_attention": "first", "full_attention": "first of each half"}
