"""What the configuration classes of the installed transformers say: one record per model type in `posref/explain/types.json`,
in `posref/explain/classes.json` the model classes of each module, which a file may name in `architectures`, and in
`posref/explain/fields.json` the names of all keys that some class takes.

python -m tests.programs.type_facts           writes it anew
python -m tests.programs.type_facts --check   says what has changed
"""

import ast
import contextlib
import inspect
import json
import re
import sys
from pathlib import Path

from transformers.models.auto import modeling_auto

from posref.explain import inventory, state_layers
from posref.explain.configuration import family
from tests.programs import models

FILE = Path(__file__).resolve().parents[2] / "posref" / "explain" / "types.json"
CLASSES, FIELDS = FILE.with_name("classes.json"), FILE.with_name("fields.json")
KEYS = (
    "alibi attention_chunk_size attention_context_left attention_context_right attention_head_dim attention_head_size "
    "attention_k_eq_v attention_logit_cap attention_multiplier attention_type attention_types attention_window "
    "attention_windows attn_config attn_layer_indices attn_layer_offset attn_layer_period attn_logit_softcapping attn_scale "
    "attn_temperature_tuning attn_type axial_pos_embds axial_pos_shape bbox_scale bi_data bias_max_distance bias_symmetric "
    "block_repeats block_size block_types blocks_per_stage causal channel_attention channel_shrink_ratio chunk_size clamp_len "
    "compress_rates compress_ratios compress_rope_theta conf_attention_chunk_size conf_attention_context_left "
    "conf_attention_context_right conf_attention_logit_cap conf_num_attention_heads conf_num_hidden_layers context_length "
    "context_size conv_pos_kernel_size crop_size cross_attention_frequency cross_attention_layers cross_head_dim "
    "cross_num_attention_heads cross_num_key_value_heads d_head d_kv d_latents d_rel decoder_attention_heads "
    "decoder_hidden_size decoder_layers decoder_num_attention_heads depths dim_bbox dim_head embed_dim embed_dim_multiplier "
    "embed_dim_per_stage embedding_size encode_proj_layers encoder_attention_heads encoder_attention_type encoder_hidden_dim "
    "encoder_layers encoder_max_relative_position encoder_num_attention_heads eval_size first_k_dense_replace floor_scale "
    "full_attention_interval full_attn_idxs fullatt_block_indexes global_attn_every_n_layers global_attn_indexes "
    "global_block_size global_head_dim has_relative_attention_bias has_spatial_attention_bias head_dim head_ratio hidden_size "
    "hidden_sizes hybrid_override_pattern image_size index_block_size index_head_dim index_local_blocks index_topk "
    "index_topk_blocks indexer_types inner_group_num intra_bottleneck_size is_decoder is_hybrid keep_query_pos "
    "keep_window_size key_dim key_multiplier kv_channels layer_group_size layer_rope_theta layer_types layers_block_type "
    "left_max_position_embeddings linear_attn_config local_attention local_layer_ids local_radius log_scaling_alpha "
    "log_scaling_n_floor look_ahead_layers look_backward_layers masked_unit_attention max_2d_position_embeddings "
    "max_bucket_distance max_decoder_position_embeddings max_distance max_encoder_position_embeddings max_num_patches "
    "max_pos_emb max_position_embeddings max_rel_2d_pos max_rel_pos max_relative_positions max_source_positions "
    "max_target_positions max_window_layers mem_len mit_hidden_size mit_num_attention_heads multi_query n_latents "
    "new_decoder_architecture ngram no_rope_layer_interval no_rope_layers num_attention_heads num_attention_heads_per_stage "
    "num_blocks num_buckets num_conv_pos_embedding_groups num_conv_pos_embeddings num_decoder_attention_heads "
    "num_decoder_layers num_frames num_global_layers num_hash_buckets num_heads num_hidden_layers num_key_value_heads "
    "num_kv_heads num_queries num_random_blocks num_self_attends_per_block num_self_attention_heads "
    "num_sliding_attention_heads num_windows original_max_position_embeddings pad_token_id partial_rotary_factor "
    "patch_embeds_hidden_size patch_size patch_stride pool_q_only pos_att_type pos_emb_height position_bias_max_distance "
    "position_bias_num_buckets position_biased_input position_buckets position_embedding_type position_embeddings_type "
    "positional_encoding_temperature positional_encoding_type pred_hidden_size pred_num_attention_heads prediction_length "
    "prefix_dense_sliding_window_pattern pretrained_window_sizes projection_dim prompt_length qk_channels "
    "qk_layer_norms_perceiver qk_layernorm qk_nope_head_dim qk_norm_type qk_rope_head_dim qk_scale_factor "
    "query_pre_attn_scalar rel_2d_pos_bins rel_extent rel_pos_bins relative_attention relative_attention_max_distance "
    "relative_attention_num_buckets relative_bias_args relative_max_distance remove_last_layer resampler_depth "
    "resampler_head_dim resampler_n_heads resampler_n_latents residual_block_indices right_max_position_embeddings "
    "rope_interleave rope_parameters rope_scaling_layers rope_theta rotary_dim rotary_value same_length "
    "scale_attn_by_inverse_layer_idx scale_attn_weights segment_types separate_cls seq_len sine_position_embedding_scale "
    "sinusoidal_embeddings sliding_window sliding_window_pattern sliding_window_size spatial_merge_size spec_size "
    "speech_encoder_attention_heads speech_encoder_chunk_size speech_encoder_left_chunk_num squeeze_factor swa_head_dim "
    "swa_num_attention_heads swa_num_key_value_heads t2u_decoder_attention_heads t2u_encoder_attention_heads "
    "t2u_max_position_embeddings t2u_pad_token_id temperature_height temperature_width text_embed truncate_seq two_stage "
    "use_abs_pos use_absolute_embeddings use_absolute_position_embeddings use_bidirectional_attention use_bottleneck "
    "use_learned_position_embeddings use_mem_rope use_positional_embedding use_qformer_text_input use_qk_norm use_rel_pos "
    "use_relative_position_bias use_relative_position_embeddings use_repmixer_blocks use_resampler use_rotary_embedding "
    "use_shared_relative_position_bias use_sliding_window v_head_dim window_block_indices "
    "window_positional_embedding_background_size window_size"
)

FURTHER = {"dots3_note_vision_encoder": {"embed_dim": "hidden_size"}}  # its class refuses it alone


def facts():
    """model type -> module, defaults, names, base, kind of schedule and parts, as far as they say something."""
    return {model_type: _record(models.CONFIG_MAPPING[model_type]) for model_type in models.types()}


def _record(kind):
    names = dict(getattr(kind, "attribute_map", {}))
    types = filter(None, [kind.model_type, *_parts(kind).values()])
    asked = set(KEYS.split()).union(*(state_layers.keys(family(name).get("state")) for name in types))
    wanted = {*asked, *(names.get(key, key) for key in asked)}
    defaults = {key: _plain(value) for key, value in _defaults(kind).items() if key in wanted or inventory.counts_layers(key)}
    record = {
        "module": kind.__module__.split(".")[-2],
        "class": kind.__name__.removesuffix("Config"),
        "defaults": dict(sorted(defaults.items())),
        "names": dict(sorted({**{key: name for key, name in names.items() if name in wanted}, **_also(kind, wanted)}.items())),
        "theta": getattr(kind, "default_theta", 10000.0),
        "rope_type": getattr(kind, "default_rope_type", "default"),
        "parts": _parts(kind),
        "optional": _optional(kind),
        "fixed": _fixed(kind),
        **{name: _values(kind, wanted, of) for name, of in (("absent", None), ("beside", {}))},
    }
    usual = {"names": {}, "parts": {}, "optional": [], "fixed": [], "absent": {}, "beside": {}}
    silent = usual | {"theta": 10000.0, "rope_type": "default"}
    return {key: value for key, value in record.items() if key not in silent or value != silent[key]}


def _also(kind, wanted):
    """Names of keys that no attribute_map has: those that the class takes out of its arguments to fill a field with."""
    found = dict(FURTHER.get(kind.model_type, {}))
    for key in taken(kind):
        for value in (96, 4):
            with contextlib.suppress(Exception), models.quiet():
                usual, changed = vars(kind()), vars(kind(**{key: value}))
                same = [name for name in sorted(wanted - {key}) if changed.get(name) == value != usual.get(name)]
                found.update(zip([key], same, strict=False))
    return found


def taken(kind):
    """Keys beside its fields that the source of a class names: kwargs.pop("n_embed"), "n_embed" in kwargs."""
    own = [base for base in kind.__mro__ if base.__module__.startswith("transformers.models")]
    source = "".join(map(inspect.getsource, own))
    named = re.findall(r"""kwargs(?:\.(?:pop|get)\(|\[)\s*["'](\w+)|["'](\w+)["'] (?:not )?in kwargs""", source)
    known = {*getattr(kind, "__dataclass_fields__", {}), *getattr(kind, "attribute_map", {})}
    return sorted({key for pair in named for key in pair if key} - known)


def _defaults(kind):
    return {name: getattr(kind, name, None) for name in getattr(kind, "__dataclass_fields__", {})}


def _plain(value):
    return (
        value
        if isinstance(value, (int, float, str, bool, list, dict, type(None)))
        else None
        if callable(value)
        else list(value)
    )


def _subs(kind):
    """key -> the class of a part, or what says its model type; a class without a type that counts no layers is no part."""
    given = getattr(kind, "sub_configs", None) or {}
    layered = {key: part for key, part in given.items() if _known(part) or any(map(inventory.counts_layers, _defaults(part)))}
    return {**layered, **getattr(kind, "sub_configs_defaults", {})}


def _known(part):
    chosen = getattr(part, "model_type", None) or getattr(getattr(part, "config_class", None), "model_type", None)
    return chosen if chosen in models.CONFIG_MAPPING_NAMES else None


def _parts(kind):
    """key -> model type that the class takes without one in the file."""
    return {key: _known(part) for key, part in _subs(kind).items()}


def _fixed(kind):
    """Parts of which the class does not read the model type: it makes a class of its own of them (SubConfigSpec)."""
    specs = getattr(kind, "sub_configs_defaults", {}).items()
    return [
        key
        for key, spec in specs
        if key != "backbone_config" and issubclass(spec.config_class, models.transformers.PreTrainedConfig)
    ]


def _optional(kind):
    """Parts that a model of this class does not have unless its file has them."""
    keys = _subs(kind)
    try:
        with models.quiet():
            whole = kind()
    except Exception:
        return []
    return [key for key in keys if getattr(whole, key, None) is None]


def _values(kind, wanted, given):
    """part -> what a model of this class gives a part beside the defaults of the part's own type.

    `given` is None for a part that its file leaves out, {} for one that the file has without these keys. For a part
    that the file leaves out, the values include model_type if the class then builds another type than for a part without one.
    """
    found = {}
    for key, default in _parts(kind).items():
        model_type = default
        if given is not None and not model_type:
            continue
        try:
            with models.quiet():
                part = getattr(kind(**({} if given is None else {key: {"model_type": model_type}})), key, None)
                if given is None and part is not None:
                    part = models.CONFIG_MAPPING[part["model_type"]](**part) if isinstance(part, dict) else part
                    model_type = _known(part) or model_type
                usual = _fields(models.CONFIG_MAPPING[model_type]()) if model_type else {}
        except Exception:
            continue
        if part is None or isinstance(part, dict):
            continue
        own = {name: _plain(value) for name, value in _fields(part).items() if name in wanted or inventory.counts_layers(name)}
        # what the class of the part itself makes of its other values is no value of the model
        known = {**usual, **(_defaults(models.CONFIG_MAPPING[model_type]) if given is None and model_type else {})}
        found[key] = {name: value for name, value in own.items() if _plain(known.get(name)) != value}
        merged = getattr(_subs(kind)[key], "init_kwargs", {}) if given is not None and found[key] else {}
        found[key] |= {name: value for name, value in merged.items() if name in own and own[name] == value}
        found[key] |= {"model_type": model_type} if model_type != default else {}
    return {key: dict(sorted(values.items())) for key, values in found.items() if values}


def _fields(part):
    return {name: vars(part).get(name) for name in getattr(type(part), "__dataclass_fields__", {})}


def classes(table):
    """module -> names of its model classes: those that its files export, and those of the automatic mappings."""
    found = {}
    for model_type, record in table.items():
        names = found.setdefault(record["module"], set())
        names.update(name for mapping in _mappings() for name in _several(mapping.get(model_type, ())))
        folder = Path(models.transformers.__file__).parent / "models" / record["module"]
        for file in sorted(folder.glob("modeling_*.py")):
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                    names.update(ast.literal_eval(node.value))
    models_of = {module: sorted(name for name in names if not name.endswith("Config")) for module, names in found.items()}
    return {module: " ".join(names) for module, names in sorted(models_of.items())}


def fields():
    """The names of the keys that the classes take or set, and of those that modeling files read, with spaces between."""
    found = set()
    for kind in map(models.CONFIG_MAPPING.__getitem__, models.types()):
        found.update(getattr(kind, "__dataclass_fields__", {}), *getattr(kind, "attribute_map", {}).items(), taken(kind))
        with contextlib.suppress(Exception), models.quiet():
            found.update(vars(kind()), *(vars(part()) for part in kind.sub_configs.values()))
    for file in (Path(models.transformers.__file__).parent / "models").glob("*/modeling_*.py"):
        found.update(re.findall(r"\bconfig\.(\w+)", file.read_text(encoding="utf-8")))
    methods = vars(models.transformers.PreTrainedConfig)
    return " ".join(sorted(name for name in found if name[0] != "_" and not callable(methods.get(name))))


def _mappings():
    return [value for name, value in vars(modeling_auto).items() if name.endswith("_MAPPING_NAMES")]


def _several(names):
    return (names,) if isinstance(names, str) else names


def text(table):
    """One line a type."""
    rows = (f"{json.dumps(model_type)}: {json.dumps(record)}" for model_type, record in table.items())
    return "{\n" + ",\n".join(rows) + "\n}\n"


def changed(table):
    """Model types whose record is not the one of the file."""
    written = json.loads(FILE.read_text(encoding="utf-8"))
    return sorted(model_type for model_type in {*table, *written} if table.get(model_type) != written.get(model_type))


if __name__ == "__main__":
    found = json.loads(text(facts()))
    if "--check" in sys.argv:
        others = json.loads(CLASSES.read_text(encoding="utf-8")) != classes(found)
        others += json.loads(FIELDS.read_text(encoding="utf-8")) != fields()
        print("\n".join([*changed(found), *["classes.json or fields.json"] * bool(others)]) or "as installed")
    else:
        FILE.write_text(text(found), encoding="utf-8")
        CLASSES.write_text(text(classes(found)), encoding="utf-8")
        FIELDS.write_text(json.dumps(fields()) + "\n", encoding="utf-8")
        print(f"{len(found)} types, {FILE.stat().st_size} bytes")
