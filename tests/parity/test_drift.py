"""What `posref.explain` says of a model type is what the installed transformers does; a new or changed type fails here.

The types below stand for the rows of the table; `python -m tests.programs.drift` compares all of them.
"""

import json

import numpy as np
import pytest

pytest.importorskip("transformers", reason="pip install posref[parity]")

from huggingface_hub.errors import StrictDataclassClassValidationError
from transformers.models.speecht5.modeling_speecht5 import SpeechT5SpeechEncoderPrenet

from posref.explain import configuration, explain, families
from tests.every import some
from tests.programs import drift, models, mutations, type_facts

TYPES = (
    "llama mistral qwen2 qwen3_moe gemma2 gemma3_text gemma4_text gpt_oss deepseek_v3 deepseek_v32 deepseek_v4 "
    "beam llama4_text cohere2 smollm3 flint doge glm4 glm4_moe phi3 gpt_neox gptj nanochat olmo3 modernbert exaone4 "
    "beam qwen2_vl_text ernie4_5_vl_moe_text qwen3_next granite chameleon zaya dbrx qwen2_vl_vision "
    "albert blip_2_qformer conditional_detr detr flava_multimodal_model gpt_neo mpnet parakeet_encoder sam_vision_model "
    "canine cpmant deformable_detr dia_decoder inkling2_text sam2_hiera_det_model sam3_vit_model timesfm vits "
    "bros gemma3n_audio gemma4_audio lilt minimax_m3_vl_vision neomme phi4_multimodal_audio vjepa2 "
    "beit glm4v_text qwen3_5_text qwen3_vl_text trocr umt5 vitdet wav2vec2 wavlm "
    "funnel mistral4 segformer qwen2_5_omni_dit seamless_m4t seamless_m4t_v2 "
    "bridgetower_vision_model clvp_encoder dab-detr hiera levit lxmert sam3_detr_decoder sam3_geometry_encoder "
    "xclip_vision_model "
    "pixtral dinov3_vit wav2vec2-bert bert bloom mpt t5 gpt2 bart t5gemma t5gemma2 ministral3 mllama_text_model"
)
# rotary types of which nothing is said: their position has not been read
UNREAD = "blt edgetam_video efficientloftr musicflamingo pe_audio_video_encoder pe_video_encoder sam2_video sam3_tracker_video"


WITH_STATES = [name for name in families.FAMILIES if "state" in configuration.family(name)]


@pytest.mark.parametrize("model_type", some(sorted({*TYPES.split(), *WITH_STATES}), 2))
def test_as_explained(model_type):
    verdict = drift.compare(model_type)
    assert verdict.drifted == []
    assert sum(verdict.compared.values()) > 0
    assert (verdict.compared["state"] > 0) == ("state" in configuration.family(model_type))


COUNTED = "llama glm4 deepseek_v3 bert roberta opt bart m2m_100 biogpt gpt2 xglm seamless_m4t seamless_m4t_v2"


@pytest.mark.parametrize("model_type", COUNTED.split())
def test_tokens_of_a_padded_row_are_counted_as_explained(model_type):
    assert list(drift.counting(model_type)) == []


@pytest.mark.parametrize("model_type", ["fun_asr_nano_encoder", "informer", "time_series_transformer"])
def test_frames_are_counted_as_explained(model_type):
    model = models.build(models.tiny(model_type))
    read = models.rows_read(model, models.inputs_of(model)).values()
    said = [layer["positions"]["forward"] for layer in explain(models.keys(model_type))["layers"] if layer["positions"]]
    for rows, forward in zip(read, said, strict=True):
        assert rows.tolist() == eval(forward, {"arange": np.arange, "n": len(rows)}).tolist()


@pytest.mark.parametrize(
    ("pad", "rows"), [(1, [2, 3, 4, 5, 6, 7, 1, 1, 1]), (0, [0, 0, 0, 0, 0, 0, 1, 2, 3]), (3, [4, 5, 6, 7, 8, 9, 10, 11, 12])]
)
def test_sound_of_speecht5_is_counted_as_explained(pad, rows):
    """The sinusoids of six frames and three of padding; the row of padding_idx is 0."""
    prenet = SpeechT5SpeechEncoderPrenet(models.tiny("speecht5", pad_token_id=pad)).eval()
    added, mask = [], np.repeat([1.0, 0.0], [2200, 900])[None]
    prenet.pos_sinusoidal_embed.register_forward_hook(lambda _, __, y: added.append(y[0].numpy()))
    with models.torch.no_grad():
        _, kept = prenet(models.torch.randn(1, 3100), models.torch.tensor(mask).long())
    assert kept[0].tolist() == [True] * 6 + [False] * 3
    np.testing.assert_array_equal(added[0], prenet.pos_sinusoidal_embed.weights[rows].numpy())


@pytest.mark.parametrize("model_type", ["llama", "mistral", "opt", "gpt2", "roberta"])
def test_tokens_after_a_cache_are_counted_and_masked_as_explained(model_type):
    assert [*drift.decoding(model_type), *drift.enters(model_type)] == []


@pytest.mark.parametrize(("model_type", "row"), [("roberta", {"rows": "bert"}), ("biogpt", {"rows": "opt"})])
def test_a_wrong_row_of_a_table_is_noticed(model_type, row, monkeypatch):
    assert any("reads rows" in words for words in with_row(drift.counting, model_type, row, monkeypatch))


SHARES = {"rope_theta": 20000.0, "partial_rotary_factor": 0.5}
ORIGINAL = {"original_max_position_embeddings": 64}
RAMP = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
LISTS = {"short_factor": [1.5] * 8, "long_factor": [3.0] * 8}
VARIANTS = {
    "full layers without the others": ("kimi_linear", {"linear_attn_config": {"full_attn_layers": [2, 4]}}),
    "both sides": ("gemma3_text", {"use_bidirectional_attention": True}),
    "a base that is not read": ("gpt_neox", {"rope_theta": 7.0}),
    "no rotation": ("esm", {"position_embedding_type": "absolute"}),
    "half by a key": ("deepseek_v3", {"rope_interleave": False}),
    "windows by a key": ("qwen3_moe", {"use_sliding_window": True}),
    "dynamic": ("llama", {"rope_scaling": {"type": "dynamic", "factor": 4.0}}),
    "a share that is not read": ("llama", SHARES),
    "a share": ("glm4", {"partial_rotary_factor": 0.25}),
    "longrope": ("phi3", {"rope_scaling": {"type": "longrope", **LISTS}, "original_max_position_embeddings": 128}),
    "magnitudes of its own": (
        "phimoe",
        {"rope_scaling": {"type": "longrope", **LISTS, "short_mscale": 1.25, "long_mscale": 1.5, **ORIGINAL}},
    ),
    "layers beside those that rotate": (
        "idefics",
        {"rope_parameters": {"rope_type": "yarn", "rope_theta": 7.0, "factor": 4.0}},
    ),
    "yarn": ("llama", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}}),
    "llama3": ("llama", {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, **RAMP, **ORIGINAL}}),
    "linear": ("llama", {"rope_scaling": {"type": "linear", "factor": 4.0}}),
    "a list of layers": ("smollm3", {"no_rope_layers": [1, 0] * 6 + [1]}),
    "an interval": ("llama4_text", {"no_rope_layer_interval": 3, "attn_temperature_tuning": False}),
    "old names": ("modernbert", {"global_rope_theta": 9999.0, "local_rope_theta": 77.0}),
    "a pattern": ("cohere2", {"sliding_window_pattern": 3}),
    "ratios": ("deepseek_v4", {"compress_ratios": [0, 0, 4, 128] * 3 + [4]}),
    "no causal mask by a key": ("qwen3", {"is_causal": False}),
    "windows on both sides by a key": ("gemma2", {"is_causal": False}),
    "no norms by a key": ("llama4_text", {"use_qk_norm": False}),
    "norms by a key": ("cohere", {"use_qk_norm": True}),
    "norms of GLM": ("glm4_moe", {"use_qk_norm": True}),
    "norms of Phi": ("phi", {"qk_layernorm": True}),
    "norms of StableLM": ("stablelm", {"qk_layernorm": True}),
    "no norms of Persimmon": ("persimmon", {"qk_layernorm": False}),
    "norms of all features": ("molmo2_text", {"qk_norm_type": "olmo"}),
    "norms without a rotation": ("internvl_vision", {"use_qk_norm": True}),
    "heads of full layers": ("gemma4_text", {"num_global_key_value_heads": 1, "attention_k_eq_v": True}),
    "windows that hide every key": ("qwen2_moe", {"layer_types": ["sliding_attention"] + ["full_attention"] * 12}),
    "old names of layers": (
        "dots3_note_text",
        {"layer_types": ["full_attention", "sliding_attention"] * 6 + ["full_attention"]},
    ),
    "a base of windowed layers": ("dots3_note_text", {"rope_theta": 777.0, "swa_rope_theta": 77.0}),
    **{
        f"a base that is left out in a dictionary of {name}": (
            name,
            {"rope_theta": 777.0, "rope_parameters": {"full_attention": {"rope_type": "default"}, "sliding_attention": {}}},
        )
        for name in ("lfm3", "ultrabert")
    },
    "a base that is left out": ("dots3_note_text", {"rope_parameters": {"rope_type": "linear", "factor": 3.0}}),
    "one base in a dictionary": ("dots3_note_text", {"rope_parameters": {"rope_type": "default", "rope_theta": 777.0}}),
    "sizes in a dictionary": (
        "dots3_note_audio_encoder",
        {
            "whisper_config": {"d_model": 96, "encoder_layers": 3, "encoder_attention_heads": 6, "decoder_layers": 7},
            "adapter_input_size": 96,
        },
    ),
    "the sinusoid of DETR": ("detr", {"position_embedding_type": "sine"}),
    "causal by a key": ("xlm", {"causal": True}),
    "a sinusoid of another base": ("rt_detr", {"positional_encoding_temperature": 20000, "encoder_layers": 3}),
    "a share that its class ignores": ("mellum", {"partial_rotary_factor": 0.5}),
    "a base that its class ignores": ("moonshine_streaming", {"rope_theta": 777.0}),
    "kinds that its class does not read": ("olmo_hybrid", {"rope_parameters": {"full_attention": {"rope_theta": 777.0}}}),
    "a sinusoid in training alone": ("d_fine", {"eval_size": 128}),
    "buckets of the decoder alone": ("udop", {"relative_attention_num_buckets": 34}),
    "blocks of a long text": ("big_bird", {"attention_type": "block_sparse"}),
    "sums of blocks": ("longt5", {"encoder_attention_type": "transient-global", "global_block_size": 4}),
    "slopes of 6 heads": ("bloom", {"n_head": 6, "hidden_size": 48}),
    "a head of its own": ("recurrent_gemma", {"head_dim": 8}),
    "nested": ("olmo3", {"rope_parameters": {kind: {"rope_theta": 7.0} for kind in ("full_attention", "sliding_attention")}}),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_keys_of_a_file(name):
    model_type, changes = VARIANTS[name]
    verdict = drift.compare(model_type, **changes)
    assert verdict.drifted == []
    assert sum(verdict.compared.values()) > 0


def test_every_rotary_type_is_explained_or_listed():
    rotary = {name for name, row in configuration.facts().items() if "rope_parameters" in row["defaults"]}
    assert rotary - set(families.FAMILIES) == set(UNREAD.split())


POSITIONAL = {*type_facts.KEYS.split(), "_per_layer_config"} - {"patch_size", "image_size"}


def effects(model_type, key, value):
    """Fields about position that a key moves in the class, and whether explain has read it; None where the class refuses it."""
    file = models.keys(model_type)
    try:
        usual, changed = (vars(models.configuration({**file, **more})) for more in ({}, {key: value}))
    except Exception:
        return None
    moved = {name for name in usual if name in POSITIONAL and changed.get(name) != usual[name]}
    try:
        return moved, explain(file)["layers"] != explain({**file, key: value})["layers"]
    except ValueError:  # it contradicts the file, or the class would not divide by it
        return moved, True


READ = [name for name in families.FAMILIES if name in models.CONFIG_MAPPING_NAMES and "read" not in families.FAMILIES[name]]


@pytest.mark.parametrize("model_type", some(READ, 4))
def test_keys_that_a_class_reads_beside_its_fields_are_read(model_type):
    """kwargs.pop("n_embed") and the like: what moves a field about position moves what is explained."""
    for key in type_facts.taken(models.CONFIG_MAPPING[model_type]):
        found = [each for value in (32, 0.5, 3) if (each := effects(model_type, key, value))]
        moved = set().union(*(fields for fields, _ in found))
        assert not moved or any(differs for _, differs in found), (key, moved)


IMPOSSIBLE = {
    "key heads": ("qwen3_next", {"linear_num_key_heads": 3}),
    "groups": ("mamba2", {"n_groups": 3}),
    "heads": ("falcon_h1", {"mamba_n_heads": 6, "mamba_d_head": None, "mamba_d_ssm": 512}),
    "width of heads": ("bamba", {"mamba_d_head": 5}),
    "heads without a check": ("zamba2", {"n_mamba_heads": 5}),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_sizes_of_a_state(name):
    model_type, changes = IMPOSSIBLE[name]
    with pytest.raises(ValueError, match=r"heads"):
        explain(models.keys(model_type) | changes)
    with pytest.raises((ValueError, RuntimeError, StrictDataclassClassValidationError), match=r"match|divisible|size|shape"):
        models.run(models.build(models.tiny(model_type, **changes)))


@pytest.mark.parametrize("model_type", ["falcon_h1", "nemotron_h", "zamba2", "granitemoehybrid"])
def test_a_step_of_one_token_is_not_clipped(model_type):
    """The last token, in one pass and after a cache: where the clip acts, their outputs differ by more than rounding."""
    off = []
    for low in (0.0, 50.0):
        file = models.keys(model_type) | {"time_step_limit": [low, float("inf")], "time_step_min": low or 1e-6}
        model = models.build(models.configuration(file))
        whole, last = (
            model(**inputs).last_hidden_state[:, -1].detach()
            for inputs in (models.inputs_of(model), models.step(model, models.TOKENS - 1))
        )
        off.append(abs(whole - last).max())
    assert off[1] > 20 * off[0]
    assert "single token" in str(explain(file)["traps"])
    assert "single token" not in str(explain(file | {"time_step_limit": [0.0, float("inf")], "time_step_min": 0.0})["traps"])


@pytest.mark.parametrize("model_type", [*WITH_STATES, "phi4_multimodal", "t5", "dinov2", "dbrx", "mpt", "chameleon"])
def test_every_key_that_a_class_writes_is_a_key_of_a_class(model_type):
    assert explain(json.loads(models.tiny(model_type).to_json_string(use_diff=False)))["foreign"] == []


def test_facts_are_those_of_the_installed_classes():
    assert type_facts.changed(type_facts.facts()) == [], "run `python -m tests.programs.type_facts`"


PARTIAL_YARN = {"rope_type": "yarn", "factor": 4.0, **ORIGINAL, **SHARES}
PARTIAL_SCHEDULES = (PARTIAL_YARN, {"rope_type": "proportional", **SHARES})
OF_KINDS = [dict.fromkeys(("full_attention", "sliding_attention"), values) for values in PARTIAL_SCHEDULES]


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_models_said_to_stop_do_stop(step):
    """Every rotary type with a share of its head under each schedule, flat and by kinds of layers."""
    stopped, ran = set(), []
    for model_type in sorted({*families.FAMILIES} & {*models.CONFIG_MAPPING_NAMES})[::step]:
        family = configuration.family(model_type)
        schedules = (None, *PARTIAL_SCHEDULES, *(OF_KINDS if family.get("parameters") != "flat" else ()))
        for values in schedules if family["encoding"] == "rope" else ():
            file = models.keys(model_type) | ({"rope_parameters": values, "partial_rotary_factor": 0.5} if values else {})
            try:
                stops = "stops at the first call" in str(explain(file)["traps"])
            except ValueError:  # it refuses the file
                continue
            if stops:
                try:
                    models.run(models.build(models.configuration(file)))
                    ran.append((model_type, values))
                except Exception as error:
                    stopped |= {model_type} if "must match the size" in str(error) else set()
    assert ran == []
    assert len(stopped) > 100 / step


ONE_SIDE = {"key": "local_attention", "halved": True, "plus": 1, "kinds": ["sliding_attention"]}
CONVOLUTION, SHORT, ADDED = (families.FAMILIES[name]["state"]["convolution"] for name in ("qwen3_next", "lfm2", "inkling_text"))
RG_LRU = families.FAMILIES["recurrent_gemma"]["state"]
WRONG_STATES = {
    "heads": ("qwen3_next", {"key_head": "h % {key_heads}"}, "other numbers"),
    "no norm": ("qwen3_next", {"unit": 1.0}, "other numbers"),
    "scale": ("qwen3_next", {"scale": 1.0}, "other numbers"),
    "decay": ("qwen3_next", {"log_decay": "-A_log * softplus(a + dt_bias)"}, "another decay"),
    "strength": ("qwen3_next", {"strength": "2 * sigmoid(b)"}, "another strength"),
    "what is convolved": ("qwen3_next", {"convolution": {**CONVOLUTION, "of": ["queries", "keys"]}}, "explained as"),
    "width": ("qwen3_next", {"convolution": {**CONVOLUTION, "width": 3}}, "explained as"),
    "activation": ("qwen3_next", {"convolution": {**CONVOLUTION, "activation": None}}, "other numbers"),
    "no convolution": ("qwen3_next", {"convolution": None}, "explained as"),
    "values": ("mamba2", {"values": "x"}, "other numbers"),
    "no limits": ("mamba2", {"limits": "n_groups"}, "other numbers"),
    "step": ("mamba", {"step": "softplus(dt)"}, "other numbers"),
    "slopes": ("minimax", {"log_decay": "-(2.0 ** (-5 - h))"}, "other numbers"),
    "gate": ("lfm2", {"convolution": {**SHORT, "gated": "B"}}, "not multiplied by"),
    "root of a value": ("recurrent_gemma", {"values": "sqrt(1 - decay) * sigmoid(g) * x"}, "other numbers"),
    "decay of a value": ("recurrent_gemma", {"log_decay": RG_LRU["log_decay"].replace("8", "7")}, "other numbers"),
    "texts that share a state": (
        "recurrent_gemma",
        {
            "log_decay": "-8 * sigmoid(r) * softplus(recurrent_param)",
            "values": "sqrt(1 - (p > 0) * decay ** 2) * sigmoid(g) * x",
        },
        "other numbers",
    ),
    "not added": ("inkling_text", {"convolution": {**ADDED, "added": False}}, "added to"),
    "system": ("mamba2", {"call": "retention.recurrent"}, "other numbers"),
    "multipliers": ("falcon_h1", {"multipliers": {}}, "multiplied by others"),
    "layers": ("zamba2", {"kinds": ["linear_attention"]}, "not explained"),
}
SEAMLESS = {name: families.FAMILIES[name]["towers"] for name in ("seamless_m4t", "seamless_m4t_v2")}


def of_sound(name, **row):
    """The stacks of Seamless M4T, with another row for its sound."""
    return {"towers": {**SEAMLESS[name], "speech_encoder": {**SEAMLESS[name]["speech_encoder"], **row}}}


WRONG = {
    "two heads that rotate": ("qwen2_5_omni_dit", {"rotated_heads": 2}, "first 2 heads"),
    "chunks after": ("qwen2_5_omni_dit", {"chunks": {"before": "look_ahead_layers", "after": "look_backward_layers"}}, "mask"),
    "chunks before": ("seamless_m4t_v2", of_sound("seamless_m4t_v2", chunks={}), "mask"),
    "scale of pooled tokens": ("funnel", {"scale": 1.0}, "its scores"),
    "no distances of pooled tokens": ("funnel", {"encoding": "learned"}, "its scores"),
    "scale of patches": ("segformer", {"scale": 1.0}, "scores are scaled"),
    "no temperature of latents": ("mistral4", {"temperature": None}, "turned ones"),
    "no vectors of sound": ("seamless_m4t_v2", of_sound("seamless_m4t_v2", encoding="learned"), "its output"),
    "no distances of sound": ("seamless_m4t", of_sound("seamless_m4t", encoding="learned"), "its output"),
    "layout": ("llama", {"layout": "interleaved"}, "other features"),
    "what is written": ("deepseek_v3", {"writes": "interleaved"}, "other features"),
    "sign": ("nanochat", {"sign": 1}, "other features"),
    "part of the head": ("deepseek_v3", {"rotated": "first"}, "are not the turned ones"),
    "share": ("glm4", {"partial": 1.0}, "table"),
    "scale": ("granite", {"scale": "head"}, "scores are scaled"),
    "window": ("mistral", {"window": {"key": "sliding_window", "plus": 1}}, "window"),
    "no window": ("gemma2", {"window": {"key": "sliding_window", "kinds": []}}, "window"),
    "layers that rotate": ("cohere2", {"nope": ["sliding_attention"]}, "rotates"),
    "kinds": ("gemma3_text", {"kinds": {"every": 5}}, "window"),
    "sinks": ("gpt_oss", {"sinks": False}, "sinks"),
    "heads": ("dbrx", {"key_heads": None}, "heads, explained as"),
    "keys": ("falcon_h1", {"keys_before": "ssm_in_multiplier"}, "keys are scaled by 0.5"),
    "norm": ("qwen3_moe", {"norm": "after"}, "normed before"),
    "no curves": ("inkling_text", {"instead": "none"}, "its output"),
    "no temperature": ("inkling_text", {"temperature": None}, "its output"),
    "scale of normed heads": ("inkling_text", {"scale": "head"}, "scores are scaled"),
    "layers with a window": ("inkling_text", {"kinds": {"every": 5, "then": "hybrid", "else": "hybrid_sliding"}}, "window"),
    "no norm": ("qwen3_moe", {"norm": None}, "normed before"),
    "norms of layers that do not turn": ("llama4_text", {"norm_of": ["chunked_attention", "full_attention"]}, "normed None"),
    "a switch": ("persimmon", {"norm_if": "use_qk_norm"}, "normed before"),
    "axes": ("pixtral", {"axes": "hw"}, ""),
    "scale outside the interface": ("flaubert", {"scale": 1.0}, "its scores"),
    "no terms of rows and columns": ("sam_vision_model", {"instead": "none"}, "its scores"),
    "no gate": ("wavlm", {"gated": False}, "its scores"),
    "no bias of offsets": ("data2vec-vision", {"encoding_if": {}}, "its scores"),
    "bias of offsets of all layers": ("beit", {"encoding_if": {"use_relative_position_bias": "learned"}}, "its mask"),
    "a window of both sides": (
        "longformer",
        {"window": {**families.FAMILIES["longformer"]["window"], "plus": 2}},
        "its scores",
    ),
    "a window of blocks": ("longt5", {"window": {**families.FAMILIES["longt5"]["window"], "plus": 0}}, "mask"),
    "buckets of boxes": ("layoutlmv3", {"box_buckets": ("rel_pos_bins", "max_rel_pos")}, "its scores"),
    "buckets of places": ("udop", {"of_places": {"buckets": 30}}, "its output"),
    "distances of boxes": ("udop", {"box_buckets": (32, 128)}, "its output"),
    "no boxes": ("udop", {"encoder": "t5"}, "its output"),
    "other offsets": ("granite_speech_encoder", {"vectors": ("max_pos_emb", "max_pos_emb", "j - i")}, "its scores"),
    "no vectors of offsets": ("wav2vec2-bert", {"encoding": "learned"}, "its output"),
    "vectors as a mask": (
        "granite_speech5_encoder",
        {"vectors": ("max_position_embeddings", "max_position_embeddings", "j - i")},
        "its mask",
    ),
    "no rows of the token": ("prophetnet", {"decoder": "learned"}, "its scores"),
    "buckets of the token's rows": ("prophetnet", {"reach": "num_encoder_layers"}, "its scores"),
    "no bias of buckets": ("mpnet", {"also": None}, "its scores"),
    "no distances": ("wav2vec2-conformer", {"encoding": "learned"}, "its output"),
    "a normalized sinusoid": ("rt_detr", {"encoding": "sinusoidal_2d"}, "adds"),
    "a sinusoid of another base": ("rt_detr", {"base": 9000.0}, "adds"),
    "no sinusoid": ("rt_detr", {"encoding": "none"}, "adds"),
    "no trained objects": ("detr", {"decoder": "sinusoidal_2d"}, "adds"),
    "layers that see a window": ("gpt_neo", {"kinds": {"every": 3, "keys": ()}}, "mask"),
    "a window of one key more": (
        "gemma4_audio",
        {"window": {**families.FAMILIES["gemma4_audio"]["window"], "plus": 0}},
        "mask",
    ),
    "scale of trained numbers": ("gemma3n_audio", {"scale": "head"}, "its scores"),
    "no sinusoids of the distance": ("gemma4_audio", {"encoding": "learned"}, "its scores"),
    "no bias of sound": ("phi4_multimodal_audio", {"encoding": "learned"}, "its mask adds"),
    "queries without a factor": ("clvp_encoder", {"before": 0.0}, "its scores"),
    "one head": ("bridgetower_vision_model", {"per_head": 192}, "its scores"),
    "no distances of rows and columns": ("levit", {"encoding": "learned"}, "its scores"),
    "scale of units": ("hiera", {"scale": 1.0}, "its scores"),
    "scale of objects": ("lxmert", {"scale": 1.0}, "its scores"),
    "heads as wide as before": ("conditional_detr", {"crossing_wider": 1}, "wide"),
    "a sinusoid that is scaled": ("dab-detr", {"base": 9000.0}, "adds"),
    "scale of boxes": ("sam3_detr_decoder", {"scale": 1.0}, "its output"),
    "one stream": ("lilt", {"also": None}, "its scores"),
    "no differences of boxes": ("bros", {"also": None}, "its scores"),
    "a long window": ("neomme", {"long_window": 300}, "its window"),
    "axes in turn": ("neomme", {"axes": "hw_split"}, "other features"),
    "thirds": ("minimax_m3_vl_vision", {"axes": "wh"}, ""),
    "angles of thirds": ("vjepa2", {"base": 9000.0}, "rotate_vjepa2"),
    "a sinusoid that is given": ("sam3_detr_encoder", {"base": 9000.0}, "adds"),
    "heads of windowed layers": ("dots3_note_text", {"keys_of": {}}, "heads"),
    "one text without a prompt": ("cpmant", {"segments": ()}, "its scores"),
    "heads that read the encoder": ("dia_decoder", {"crossing_sizes": {}}, "heads"),
    "one offset more to the left": ("speecht5", {"fewer": 0}, "its scores"),
    "causal": ("modernbert", {"causal": True, "window": ONE_SIDE}, "mask"),
}


WRONG |= {
    f"state: {name}": (model_type, {"state": {**configuration.family(model_type)["state"], **row}}, word)
    for name, (model_type, row, word) in WRONG_STATES.items()
}


@pytest.mark.parametrize("name", some(WRONG, 3))
def test_a_wrong_row_is_noticed(name, monkeypatch):
    model_type, row, word = WRONG[name]
    try:
        drifted = with_row(lambda model_type: drift.compare(model_type).drifted, model_type, row, monkeypatch)
    except ValueError:  # the wrong row cannot even be computed
        return
    assert any(word in words for words in drifted), drifted


def with_row(compared, model_type, row, monkeypatch):
    """What a comparison says where the row of a type is another one."""
    with monkeypatch.context() as change:
        change.setitem(families.FAMILIES, model_type, {**families.FAMILIES[model_type], **row})
        configuration.family.cache_clear()
        try:
            return list(compared(model_type))
        finally:
            configuration.family.cache_clear()


NAMES = [*mutations.MUTATIONS]
OF_STATES = [name for name in NAMES if name.startswith("state: ")]


@pytest.mark.parametrize("name", [*NAMES[12:19], NAMES[-2], *OF_STATES])
def test_a_wrong_transformers_is_noticed(name):
    """Eight rows of the table and those of states; the release tier runs all of them."""
    assert mutations.sentences(*mutations.MUTATIONS[name])


@pytest.mark.parametrize("model_type", ["bloom", "mpt", "deberta", "xlnet"])
def test_what_was_not_compared_is_not_verified(model_type):
    verdict = drift.compare(model_type)
    assert verdict.drifted == []
    assert verdict.verified == 0
    assert any(aspect == "scores" for aspect, _ in verdict.missed)


def test_the_builder_builds_what_it_says():
    model = models.build(models.tiny("llama"))
    record = models.run(model)
    assert len(record.attentions) == models.LAYERS
    assert len(record.turns) == 2 * models.LAYERS
    assert record.attentions[0].q.shape == (1, 4, models.TOKENS, 16)
