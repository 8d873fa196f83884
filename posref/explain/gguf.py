"""GGUF: the metadata of a file, and what they mean as a configuration.

A GGUF file does not say which features form a pair: the program knows it by the name of the architecture, and converters have
permuted the rows of some models for it. `ARCHITECTURES` is that table, read in llama.cpp's `llama_model_rope_type`
(src/llama-model.cpp, commit a5410f04; architectures from gpt-oss on in a later copy of it). Llama 3 and LongRoPE keep what
divides their frequencies in tensors of the file, `FACTORS`, which `llama_model::get_rope_factors` prefers to everything else.
"""

import math
import re
import struct

from posref.explain.configuration import Keys, shown
from posref.rotary import scaling

NORMAL, NEOX, NONE = "interleaved", "half", None
ARCHITECTURES = {
    "llama": ("llama", NORMAL),
    "llama4": ("llama4_text", NORMAL),
    "command-r": ("cohere", NORMAL),
    "cohere2": ("cohere2", NORMAL),
    "olmo": ("olmo", NORMAL),
    "deepseek2": ("deepseek_v2", NORMAL),
    "glm4": ("glm4", NORMAL),
    "granite": ("granite", NORMAL),
    "granitemoe": ("granitemoe", NORMAL),
    "smollm3": ("smollm3", NORMAL),
    "arcee": ("arcee", NORMAL),
    "ernie4_5": ("ernie4_5", NORMAL),
    "mistral3": ("ministral3", NORMAL),
    "falcon": ("falcon", NEOX),
    "nomic-bert": ("nomic_bert", NEOX),
    "modern-bert": ("modernbert", NEOX),
    "eurobert": ("eurobert", NEOX),
    "stablelm": ("stablelm", NEOX),
    "bitnet": ("bitnet", NEOX),
    "qwen2": ("qwen2", NEOX),
    "qwen2moe": ("qwen2_moe", NEOX),
    "qwen2vl": ("qwen2_vl_text", NEOX),
    "qwen3": ("qwen3", NEOX),
    "qwen3moe": ("qwen3_moe", NEOX),
    "qwen3vl": ("qwen3_vl_text", NEOX),
    "qwen3vlmoe": ("qwen3_vl_moe_text", NEOX),
    "qwen3next": ("qwen3_next", NEOX),
    "qwen35": ("qwen3_5_text", NEOX),
    "qwen35moe": ("qwen3_5_moe_text", NEOX),
    "olmo2": ("olmo2", NEOX),
    "olmoe": ("olmoe", NEOX),
    "phi2": ("phi", NEOX),
    "phi3": ("phi3", NEOX),
    "phimoe": ("phimoe", NEOX),
    "gemma": ("gemma", NEOX),
    "gemma2": ("gemma2", NEOX),
    "gemma3": ("gemma3_text", NEOX),
    "gemma4": ("gemma4_text", NEOX),
    "starcoder2": ("starcoder2", NEOX),
    "gptneox": ("gpt_neox", NEOX),
    "nemotron": ("nemotron", NEOX),
    "exaone4": ("exaone4", NEOX),
    "minicpm3": ("minicpm3", NEOX),
    "dots1": ("dots1", NEOX),
    "gpt-oss": ("gpt_oss", NEOX),
    "seed_oss": ("seed_oss", NEOX),
    "apertus": ("apertus", NEOX),
    "minimax-m2": ("minimax_m2", NEOX),
    "glm4moe": ("glm4_moe", NEOX),
    "hunyuan-dense": ("hunyuan_v1_dense", NEOX),
    "lfm2": ("lfm2", NEOX),
    "bert": ("bert", NONE),
    "gpt2": ("gpt2", NONE),
    "bloom": ("bloom", NONE),
    "t5": ("t5", NONE),
}
NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9  # kinds of metadata
FLOAT32 = 0  # a kind of tensor
LONGEST = 2**27  # no text or list of metadata is longer
# keys of an architecture that do not bear on position: all others are read, or printed as not understood
HARMLESS = re.compile(
    r"expert|feed_forward|vocab_size|epsilon|value_length|lora_rank|leading_dense|embedding_scale|pooling|norm(_\w+)?$|bias$"
)
# keys of a configuration -> keys of the metadata; some classes have names of their own
KEYS = {
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "max_position_embeddings": "context_length",
    "sliding_window": "attention.sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "rope_theta": "rope.freq_base",
    "rope_local_base_freq": "rope.freq_base_swa",
    "num_decoder_layers": "decoder_block_count",
    "relative_attention_num_buckets": "attention.relative_buckets_count",
    "partial_rotary_factor": "rope.dimension_count",
}
OWN_NAMES = {
    "gpt_neox": {"rope_theta": "rotary_emb_base", "partial_rotary_factor": "rotary_pct"},
    "modernbert": {
        "rope_theta": "global_rope_theta",
        "rope_local_base_freq": "local_rope_theta",
        "sliding_window": "local_attention",  # convert_hf_to_gguf.py writes it; half of it stands on each side
    },
}
FACTORS = ("rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight")


def read(file):
    """The metadata of an open GGUF file and, as lists, its small tables of rotation; ValueError where the file is cut short."""
    try:
        return _read(file)
    except (struct.error, UnicodeDecodeError, MemoryError, OverflowError, RecursionError, OSError) as error:
        words = error if isinstance(error, OSError) else "it ends too early, or a text in it is no UTF-8"
        raise ValueError(f"the GGUF file is cut short or broken: {words}") from None


def _read(file):
    magic, version = file.read(4), _number(file, "<I")
    if magic != b"GGUF" or version not in (2, 3):
        raise ValueError(f"GGUF version {version} is not read here; known are 2 and 3")
    tensors, entries = _number(file, "<Q"), _number(file, "<Q")
    found = {}
    for _ in range(_bounded(entries)):
        key = _string(file)
        value = _value(file, _number(file, "<I"))
        if key in found:  # llama.cpp refuses it too: ggml/src/gguf.cpp, commit 067d44f6
            raise ValueError(f"the GGUF file has the key {shown(key)} twice, with {shown(found[key])} and {shown(value)}")
        found[key] = value
    places = dict(_tensor(file) for _ in range(_bounded(tensors)))
    alignment = found.get("general.alignment", 32)
    if type(alignment) is not int or alignment < 1:
        raise ValueError(f"the GGUF file is broken: general.alignment is {shown(alignment)}, expected a positive integer")
    start = -(-file.tell() // alignment) * alignment
    return found | {name: _numbers(file, start, *places[name]) if name in places else [] for name in FACTORS}


def _number(file, form):
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


def _bounded(count):
    if count > LONGEST:
        raise ValueError(f"the GGUF file is broken: it claims {count} entries")
    return count


def _string(file):
    size = _bounded(_number(file, "<Q"))
    text = file.read(size)
    if len(text) < size:
        raise struct.error(f"{len(text)} of {size} characters of a text are there")
    return text.decode("utf-8")


def _value(file, kind):
    if kind in NUMBERS:
        return _number(file, NUMBERS[kind])
    if kind == STRING:
        return _string(file)
    if kind == ARRAY:
        inner, size = _number(file, "<I"), _bounded(_number(file, "<Q"))
        return [_value(file, inner) for _ in range(size)]
    raise ValueError(f"the GGUF file is broken: a value is of kind {kind}")


def _tensor(file):
    """Its name, and how many numbers of which kind stand where behind the metadata."""
    name = _string(file)
    extents = [_number(file, "<Q") for _ in range(_bounded(_number(file, "<I")))]
    kind, offset = _number(file, "<I"), _number(file, "<Q")
    return name, (math.prod(extents), kind, offset)


def _numbers(file, start, size, kind, offset):
    if kind != FLOAT32:
        raise ValueError(f"the GGUF file is broken: factors of the rotation are of kind {kind}, expected float32")
    file.seek(start + offset)
    return list(struct.unpack(f"<{_bounded(size)}f", file.read(4 * size)))


SCALING = {
    "rope_scaling": "rope.scaling.type",
    "rope_scaling.rope_type": "rope.scaling.type",
    "rope_scaling.factor": "rope.scaling.factor",
    "rope_scaling.attention_factor": "rope.scaling.attn_factor",
    "rope_scaling.original_max_position_embeddings": "rope.scaling.original_context_length",
    **dict.fromkeys(("rope_scaling.mscale", "rope_scaling.mscale_all_dim"), "rope.scaling.yarn_log_multiplier"),
    "rope_scaling.mrope_section": "rope.dimension_sections",
}


def recognised(config):
    return "general.architecture" in config


def translate(metadata):
    """Metadata as a configuration of transformers, with `posref_layout` for the order of the converted weights."""
    try:
        return _translate(metadata)
    except (TypeError, KeyError, IndexError, AttributeError, ArithmeticError) as error:
        raise ValueError(
            f"a key of the GGUF metadata ({shown(metadata['general.architecture'])}) has a value of a wrong kind"
        ) from error


def _translate(metadata):
    metadata = Keys(metadata)
    name = metadata["general.architecture"]
    if not isinstance(name, str) or name not in ARCHITECTURES:
        raise ValueError(f"the GGUF architecture {shown(name)} is not known here; known are {', '.join(sorted(ARCHITECTURES))}")
    model_type, layout = ARCHITECTURES[name]

    def get(key):
        return _plain(metadata.get(f"{name}.{key}"))

    missing = [key for key in ("embedding_length", "block_count", "attention.head_count") if get(key) is None]
    if missing:
        raise ValueError(f"the GGUF metadata have no {name}.{missing[0]}; this is a part of a file")
    queries, keys = (_by_layer(get, key) for key in ("attention.head_count", "attention.head_count_kv"))
    heads = max(queries) if isinstance(queries, list) else queries
    config = {
        "model_type": model_type,
        "posref_layout": layout,
        **{key: get(theirs) for key, theirs in KEYS.items()},
        "num_attention_heads": heads,
        "num_key_value_heads": max(keys) if isinstance(keys, list) else keys or heads,
        "posref_heads": queries if isinstance(queries, list) else None,
        "posref_key_heads": keys if isinstance(keys, list) else None,
        "sliding_window": get("attention.sliding_window") or None,
        "rope_theta": get("rope.freq_base") or 10000.0,
        "original_max_position_embeddings": None,
        "rope_scaling": _scaling(get, metadata),
        "posref_listing": layout is not None and not any(factors in metadata for factors in FACTORS),
        "posref_file": "GGUF",
    }
    if model_type.startswith("lfm2") and isinstance(keys, list):
        config["layer_types"] = ["full_attention" if n else "conv" for n in keys]
    width = get("attention.key_length")
    turned, head = config.pop("partial_rotary_factor"), width or (heads and config["hidden_size"] // heads)
    if model_type in ("deepseek_v2", "minicpm3"):
        whole = get("attention.key_length_mla") or width
        config |= {"qk_rope_head_dim": turned, "qk_nope_head_dim": whole and turned and whole - turned}
    elif head:
        config |= {"head_dim": head, "partial_rotary_factor": (turned or head) / head}
    if model_type in ("qwen3_moe", "smollm3"):
        config["use_sliding_window"] = config["sliding_window"] is not None
    if get("rope.dimension_sections"):
        config["rope_scaling"] = {**(config["rope_scaling"] or {}), "mrope_section": get("rope.dimension_sections")[:3]}
    config["posref_unread"] = [
        key for key in metadata if key.startswith(f"{name}.") and not HARMLESS.search(key) and key not in metadata.read
    ]
    own = OWN_NAMES.get(model_type, {})
    config = {own.get(key, key): value for key, value in config.items() if value is not None}
    spelled = {own.get(key, key): f"{name}.{theirs}" for key, theirs in (KEYS | SCALING).items()}
    return config | {"posref_spelled": [(key, path if path in metadata else None) for key, path in spelled.items()]}


def _by_layer(get, key):
    """A number of heads, or a list of it for each layer; a list of one number is that number."""
    found = get(key)
    if not isinstance(found, list):
        return found
    if len(found) != get("block_count") or not all(type(n) is int and n >= 0 for n in found) or not any(found):
        raise ValueError(
            f"the GGUF key {key} is {shown(found)}, expected a number of heads for each of {get('block_count')} layers"
        )
    return found[0] if len(set(found)) == 1 else found


def _scaling(get, metadata):
    kind = get("rope.scaling.type")
    freqs, short, long = (metadata.get(name) for name in FACTORS)
    if freqs and kind not in (None, "none"):
        raise ValueError(f"the GGUF file scales by {kind} and by {FACTORS[0]}; no model that is known here does both")
    if freqs:
        return {"rope_type": "factors", "factors": freqs}
    if kind == "none":
        return {"rope_type": "default"}  # a factor is then printed as not understood
    if short and long:
        kind = "longrope"
    factor, old = get("rope.scaling.factor"), get("rope.scale_linear")
    if old and factor and old != factor:
        raise ValueError(
            f"the GGUF file has rope.scaling.factor {shown(factor)} and rope.scale_linear {shown(old)}; remove the wrong one"
        )
    factor = factor or old
    if kind is None and factor:
        kind = "linear"  # as llama.cpp: `std::string rope_scaling("linear")` before the key is read, src/llama-model.cpp
    if kind is None:
        return {"rope_type": "default"}  # not what a class of transformers has
    found = {"rope_type": kind, "factor": factor, "short_factor": short, "long_factor": long}
    found["original_max_position_embeddings"] = get("rope.scaling.original_context_length")
    given = get("rope.scaling.attn_factor")
    if given and kind == "yarn":
        given *= float(scaling.yarn_magnitude(factor, mscale=1.0))  # ggml multiplies the two: rope_yarn of ggml-cpu/ops.cpp
    found["attention_factor"] = given or (1.0 if kind == "longrope" else None)
    multiplier = get("rope.scaling.yarn_log_multiplier")
    if multiplier:
        found |= {"mscale": 10 * multiplier, "mscale_all_dim": 10 * multiplier}
    return {key: value for key, value in found.items() if value not in (None, [])}


def _plain(value):
    """Numbers that a listing in text writes as text."""
    if not isinstance(value, str):
        return value
    try:
        return int(value) if value.lstrip("-").isdigit() else float(value)
    except ValueError:
        return {"true": True, "false": False}.get(value, value)
