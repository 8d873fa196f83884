"""Parameter files in the form of Meta, Mistral, DeepSeek and ChatGLM, translated to a configuration of transformers.

The weights beside such a file fit the authors' code: pairs are adjacent features, unless the file says that it rotates as
transformers does. Constants that the file leaves to the code stand here with their source.
"""

from posref.explain.configuration import Keys, shown

NAMES = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "rope_freq_base": "rope_theta",
    "partial_rotary_factor": "partial_rotary_factor",
    "max_seq_len": "max_position_embeddings",
    "no_rope_layer_interval": "no_rope_layer_interval",
}
# ChatGLM2 to GLM-4, read as glm of transformers: modeling_chatglm.py rotates half of every head, in adjacent pairs
GLM = {
    "hidden_size": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_attention_heads": "num_attention_heads",
    "multi_query_group_num": "num_key_value_heads",
    "kv_channels": "head_dim",
    "seq_length": "max_position_embeddings",
}
LATENT = ("qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "kv_lora_rank")
# constants for every model: llama-models, models/llama3/model.py, apply_scaling
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8,
    "low_freq_factor": 1,
    "high_freq_factor": 4,
    "original_max_position_embeddings": 8192,
}
# DeepSeek-V3, inference/model.py, ModelArgs
DEEPSEEK = {"rope_type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": 4096}


def recognised(config):
    """Whether a dictionary is a parameter file and no configuration of transformers, which names its type or its class."""
    named = config.get("model_type") is not None or config.get("architectures")
    return _of_glm(config) or (not named and {"dim", "n_layers", "n_heads"} <= set(config))


def _of_glm(config):
    shaped = {"num_layers", "kv_channels", "multi_query_attention"} <= set(config)
    return shaped and config.get("model_type") in (None, "chatglm")


def translate(config):
    """The file as a configuration; its key `posref_layout` says how the weights form pairs. Keys that were not read stay."""
    keys = Keys(config)
    found = _glm(keys) if _of_glm(keys) else _native(keys)
    keys.read.update(("architectures", "model_type", "auto_map"))  # it is read as another type
    return {**_unread(config, keys.read), **found}


def _unread(config, read):
    """The keys that were not read here; they are read, or printed as not understood, like those of other files."""
    found = {key: value for key, value in config.items() if key not in read}
    for key, inner in config.items():
        if key in read and isinstance(inner, dict):
            found |= {f"{key}.{name}": value for name, value in inner.items() if f"{key}.{name}" not in read}
    return found


def _native(config):
    found = {name: config[key] for key, name in NAMES.items() if config.get(key) is not None}
    found["rope_theta"] = config.get("rope_theta", config.get("rope_freq_base", 10000.0))
    found["posref_layout"] = "half" if config.get("use_hf_rope") else "interleaved"
    found["model_type"] = _model_type(config)
    found |= {
        key: config[key] for key in ("sliding_window", "attention_multiplier", "layer_types") if config.get(key) is not None
    }
    if "qk_rope_head_dim" in config:
        return found | _deepseek(config)
    if config.get("use_scaled_rope"):
        found["rope_scaling"] = {**LLAMA3, "factor": config.get("rope_scaling_factor") or LLAMA3["factor"]}
    if config.get("yarn"):
        found["rope_scaling"] = _mistral(config["yarn"])
    return found


def _glm(config):
    ratio = config.get("rope_ratio", 1)
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)):
        raise ValueError(f"rope_ratio is {shown(ratio)}, expected a number")
    found = {name: config[key] for key, name in GLM.items() if key in config}
    return {**found, "model_type": "glm", "rope_theta": 10000.0 * ratio, "posref_given_type": config.get("model_type")}


def _model_type(config):
    if "qk_rope_head_dim" in config:
        return "deepseek_v2"
    if config.get("attention_multiplier"):
        return "granite"
    if config.get("no_rope_layer_interval"):
        return "smollm3"
    if "linear_attention" in (config.get("layer_types") or ()):
        return "qwen3_next"
    if "conv" in (config.get("layer_types") or ()):
        return "lfm2"
    return "mistral" if config.get("sliding_window") or config.get("yarn") else "llama"


def _deepseek(config):
    scale = config.get("mscale", 1.0)
    names = {"rope_factor": "factor", "original_seq_len": "original_max_position_embeddings", "beta_fast": "beta_fast"}
    given = {name: config[key] for key, name in names.items() if key in config}
    return {
        **{key: config[key] for key in LATENT if key in config},
        "max_position_embeddings": config.get("max_seq_len", 16384),
        "rope_scaling": {**DEEPSEEK, **given, "mscale": scale, "mscale_all_dim": scale},
    }


def _mistral(yarn):
    """YaRN under mistral-common's names: beta is beta_fast, alpha is beta_slow; `apply_scale` false means no magnitude."""
    if not isinstance(yarn, dict):
        raise ValueError(f"yarn is {shown(yarn)}, expected a dictionary")
    found = {"rope_type": "yarn", "factor": yarn.get("factor"), "beta_fast": yarn.get("beta"), "beta_slow": yarn.get("alpha")}
    found["original_max_position_embeddings"] = yarn.get("original_max_position_embeddings")
    return found if yarn.get("apply_scale", True) else {**found, "attention_factor": 1.0}
