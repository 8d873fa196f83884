"""GGUF: reads the metadata of a file, and translates them to a configuration of transformers.

A GGUF file does not say which features form a pair: llama.cpp knows it from the name of the architecture, and converters have
permuted the rows of some models to fit. `ARCHITECTURES` is that table, read in llama.cpp's `llama_model_rope_type`
(src/llama-model.cpp, commit a5410f04; architectures from gpt-oss on in a later copy of it). Llama 3 and LongRoPE divide their
frequencies by tensors of the file, `FACTORS`; `llama_model::get_rope_factors` prefers these tensors to all keys.
"""

import io
import math
import re
import struct

from posref.explain.configuration import MOST_LAYERS, Keys, facts, family, shown
from posref.explain.schedule import magnitude

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
LARGEST = 32 << 20  # bytes of metadata, of which a vocabulary of 262,144 tokens and its merges take half
DIMENSIONS, DEEPEST = 4, 8  # of a tensor (GGML_MAX_DIMS of ggml.h), and of arrays in arrays, which llama.cpp refuses
LONGEST = 2**16  # numbers of a table that divides the frequencies
# keys of an architecture that say nothing about position; every other key is read, printed as not understood, or refused
HARMLESS = re.compile(
    r"expert|feed_forward|vocab_size|epsilon|value_length|lora_rank|leading_dense|embedding_scale|pooling|norm(_\w+)?$"
    r"|clamp_kqv$|(?<!alibi_)bias$"
)
# {key of the rotation or the scores that only some architectures have: the value with which this key changes nothing}
SILENT = {
    "rope.scaling.factor": 1,
    "rope.scaling.attn_factor": 1,
    "rope.scaling.yarn_beta_fast": 32,
    "rope.scaling.yarn_beta_slow": 1,
    "rope.scaling.yarn_ext_factor": 1,
    "rope.scaling.yarn_log_multiplier": 0,
    "rope.scaling.finetuned": True,  # llama.cpp's Granite does not rotate where it is false
    "attention.sliding_window": 0,
    "attention.scale": 0,
    "attention.temperature_scale": 0,
    "attention.max_alibi_bias": 0,
}
POSITIVE = (  # numbers, where the file has them
    *("embedding_length", "attention.key_length", "rope.freq_base", "rope.freq_base_swa", "rope.scale_linear"),
    *(
        f"rope.scaling.{key}"
        for key in ("factor", "attn_factor", "original_context_length", "yarn_beta_fast", "yarn_beta_slow")
    ),
)
LATENT = ("attention.key_length", "rope.dimension_count")  # needed where a part of each head is rotated
SCHEDULES = ("linear", "longrope", "none", "yarn")  # gguf.constants.RopeScalingType
# {key of a configuration: key of the metadata}; some classes have other names
KEYS = {
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "is_causal": "attention.causal",
    "max_position_embeddings": "context_length",
    "sliding_window": "attention.sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "rope_theta": "rope.freq_base",
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
    """The metadata of an open GGUF file and the lists that divide its frequencies; ValueError if the file is broken."""
    try:
        return _read(file)
    except UnicodeDecodeError as error:
        words = f"the GGUF file is broken: the text {shown(error.object)} before byte {file.tell()} is not UTF-8"
    except (struct.error, OverflowError):
        words = f"the GGUF file is cut short: it ends at byte {file.seek(0, 2)}, before the end of its metadata"
        if file.tell() > LARGEST:
            words = f"the metadata of the GGUF file have more than the {LARGEST} bytes ({LARGEST >> 20} MB) that posref reads"
    except ValueError as error:
        words = str(error)
    raise ValueError(f"{file.name}: {words}")


def _read(whole):
    file = io.BytesIO(whole.read(LARGEST))
    magic, version = file.read(4), _number(file, "<I")
    if magic == b"GGUF" and version and version & 0xFFFF == 0:
        raise ValueError("this GGUF file is big-endian; posref reads little-endian GGUF files only")
    if magic != b"GGUF" or version not in (2, 3):
        raise ValueError(f"GGUF version {version} is not read here; known are 2 and 3")
    tensors, entries = _number(file, "<Q"), _number(file, "<Q")
    found = {}
    for _ in range(entries):
        key = _string(file)
        value = _value(file, _number(file, "<I"))
        if key in found and found[key] != value:
            raise ValueError(f"the GGUF file has the key {shown(key)} twice, with {shown(found[key])} and {shown(value)}")
        found[key] = value
    if "general.architecture" not in found:
        raise ValueError("the GGUF file has no key general.architecture, which names the kind of model")
    places = {name: place for name, *place in (_tensor(file) for _ in range(tensors)) if name in FACTORS}
    alignment = found.get("general.alignment", 32)
    if type(alignment) is not int or alignment < 1:
        raise ValueError(f"the GGUF file is broken: general.alignment is {shown(alignment)}, expected a positive integer")
    start = -(-file.tell() // alignment) * alignment
    return found | {name: _numbers(whole, start, name, *places[name]) if name in places else [] for name in FACTORS}


def _number(file, form):
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


def _string(file):
    size = _number(file, "<Q")
    text = file.read(size)
    if len(text) < size:
        raise struct.error(f"{len(text)} of {size} characters of a text are there")
    return text.decode("utf-8")


def _value(file, kind, level=1):
    if kind in NUMBERS:
        return _number(file, NUMBERS[kind])
    if kind == STRING:
        return _string(file)
    if kind == ARRAY and level > DEEPEST:
        raise ValueError(f"the GGUF file is broken: its arrays are nested more than {DEEPEST} levels deep")
    if kind == ARRAY:
        inner, size = _number(file, "<I"), _number(file, "<Q")
        if inner in NUMBERS:
            form = f"<{size}{NUMBERS[inner][1]}"
            return list(struct.unpack(form, file.read(struct.calcsize(form))))
        return [_value(file, inner, level + 1) for _ in range(size)]
    raise ValueError(f"the GGUF file is broken: a value is of kind {kind}")


def _tensor(file):
    """The name of a tensor, its number of elements, their kind, and its offset after the metadata."""
    name, dimensions = _string(file), _number(file, "<I")
    if dimensions > DIMENSIONS:
        raise ValueError(
            f"the GGUF file is broken: the tensor {shown(name)} has {dimensions} dimensions, expected at most {DIMENSIONS}"
        )
    extents = [_number(file, "<q") for _ in range(dimensions)]
    if any(extent < 0 for extent in extents):
        raise ValueError(f"the GGUF file is broken: the tensor {shown(name)} has the extents {extents}, expected none below 0")
    return name, math.prod(extents), _number(file, "<I"), _number(file, "<Q")


def _numbers(file, start, name, size, kind, offset):
    if kind != FLOAT32:
        raise ValueError(f"the GGUF file is broken: the tensor {name} is of kind {kind}, expected float32")
    if start + offset + 4 * size > file.seek(0, 2):
        raise ValueError(f"the tensor {name} lies beyond the end of the GGUF file; it is cut short")
    if size > LONGEST:
        raise ValueError(f"the GGUF file is broken: the tensor {name} has {size} numbers, expected at most {LONGEST}")
    file.seek(start + offset)
    return list(struct.unpack(f"<{size}f", file.read(4 * size)))


SCALING = {
    "rope_scaling": "rope.scaling.type",
    "rope_scaling.rope_type": "rope.scaling.type",
    "rope_scaling.factor": "rope.scaling.factor",
    "rope_scaling.attention_factor": "rope.scaling.attn_factor",
    "rope_scaling.original_max_position_embeddings": "rope.scaling.original_context_length",
    "rope_scaling.beta_fast": "rope.scaling.yarn_beta_fast",
    "rope_scaling.beta_slow": "rope.scaling.yarn_beta_slow",
    "rope_scaling.llama_4_scaling_beta": "attention.temperature_scale",
    "rope_scaling.mscale_all_dim": "rope.scaling.yarn_log_multiplier",
    "rope_scaling.mrope_section": "rope.dimension_sections",
    "qk_rope_head_dim": "rope.dimension_count",
    "head_dim": "attention.key_length",
    "attention_multiplier": "attention.scale",
    "rope_local_base_freq": "rope.freq_base_swa",
    "layer_types": "attention.sliding_window_pattern",
}
TABLES = {"factors": FACTORS[0], "short_factor": FACTORS[1], "long_factor": FACTORS[2]}


def recognised(config):
    return "general.architecture" in config


def without_vocabulary(metadata):
    """The metadata without those of the tokenizer, which say nothing about the layers."""
    return {key: value for key, value in metadata.items() if not str(key).startswith("tokenizer.")}


def translate(metadata):
    """The metadata as a configuration of transformers; its key `posref_layout` says how the converted weights form pairs."""
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

    latent = model_type in ("deepseek_v2", "minicpm3")
    needed = ("embedding_length", "block_count", "attention.head_count")
    missing = [key for key in (*needed, *LATENT * latent) if get(key) is None]
    if missing:
        raise ValueError(f"the GGUF metadata have no {name}.{missing[0]}; this is a part of a file")
    if isinstance(get("block_count"), (int, float)) and get("block_count") > MOST_LAYERS:
        raise ValueError(f"{name}.block_count is {shown(get('block_count'))}, expected at most {MOST_LAYERS} layers")
    for key in POSITIVE:
        value = _plain(dict.get(metadata, f"{name}.{key}"))  # so the key is not marked as read
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is not None and not (number and 0 < value < math.inf):
            raise ValueError(f"{name}.{key} is {shown(value)}, expected a positive number")
    kind = get("rope.scaling.type")
    if kind not in (None, *SCHEDULES):
        raise ValueError(f"{name}.rope.scaling.type is {shown(kind)}; known are {', '.join(SCHEDULES)}")
    queries, keys = (_by_layer(name, get, key) for key in ("attention.head_count", "attention.head_count_kv"))
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
        "rope_scaling": _scaling(name, get, metadata),
        "posref_listing": layout is not None and not any(factors in metadata for factors in FACTORS),
        "posref_file": "GGUF",
    }
    if model_type in ("gemma3_text", "modernbert"):
        config["rope_local_base_freq"] = get("rope.freq_base_swa")
    if "layer_types" in facts()[model_type]["defaults"]:
        config["layer_types"] = _windowed(name, get)
    if model_type.startswith("lfm2") and isinstance(keys, list):
        config["layer_types"] = ["full_attention" if n else "conv" for n in keys]
    width = get("attention.key_length")
    turned, head = config.pop("partial_rotary_factor"), width or config["hidden_size"] // heads
    whole = get("attention.key_length_mla") or width if latent else head
    if model_type in ("granite", "granitemoe"):
        config["attention_multiplier"] = get("attention.scale") or head**-0.5
    if layout and turned is not None and not (type(turned) is int and 2 <= turned <= whole):
        raise ValueError(f"{name}.rope.dimension_count is {shown(turned)}, expected an integer from 2 to {whole}")
    if latent:
        config |= {"qk_rope_head_dim": turned, "qk_nope_head_dim": whole - turned}
    else:
        config |= {"head_dim": head, "partial_rotary_factor": (turned or head) / head}
    if model_type in ("qwen3_moe", "smollm3"):
        config["use_sliding_window"] = config["sliding_window"] is not None
    if "axes" in family(model_type) and get("rope.dimension_sections"):
        config["rope_scaling"] = {**(config["rope_scaling"] or {}), "mrope_section": get("rope.dimension_sections")[:3]}
    config["posref_unread"] = [
        key for key in metadata if key.startswith(f"{name}.") and not HARMLESS.search(key) and key not in metadata.read
    ]
    config["posref_decisive"] = [(key, shown(metadata[key])) for key in list(metadata) if _decisive(name, key, get, layout)]
    own = OWN_NAMES.get(model_type, {})
    length = config.pop("max_position_embeddings")
    config = {own.get(key, key): value for key, value in config.items() if value is not None}
    spelled = {own.get(key, key): f"{name}.{theirs}" for key, theirs in (KEYS | SCALING).items()}
    return config | {
        "max_position_embeddings": length,  # None too: the file has none, whatever its class has
        "posref_spelled": [(key, path if path in metadata else None) for key, path in spelled.items()],
        "posref_names": list((spelled | TABLES).items()),
    }


def _decisive(name, key, get, layout):
    """Whether a key of the metadata can change the rotation or the scores, given its value."""
    about, _, key = key.removeprefix(f"{name}.").partition(".")
    key = f"{about}.{key}"
    same = {"rope.freq_base_swa": get("rope.freq_base"), "rope.dimension_count_swa": get("rope.dimension_count")}
    same |= {"attention.key_length_swa": get("attention.key_length"), **SILENT}
    if get("rope.scaling.type") == "none":
        same |= {factor: get(factor) for factor in ("rope.scaling.factor", "rope.scale_linear")}
    if HARMLESS.search(key) or (key in same and same[key] == get(key)):
        return False
    return about == "attention" or (about == "rope" and layout is not None)


def refuse(settings, unread):
    """ValueError for a key that decides the rotation or the scores, and that posref has not read."""
    for key, value in settings.file.get("posref_decisive", ()):
        if key in unread:
            raise ValueError(
                f"{key} is {value}: posref does not know the effect of this key for this architecture, so it describes nothing "
                "of the file; `posref explain` of the model's config.json may"
            )


def renamed(error, names, spelled):
    """The error with keys as the file spells them: `names` are the keys of a GGUF file, `spelled` those of other files."""
    words = str(error).removeprefix("the configuration: " if names else "")
    for key, theirs in names or spelled:
        words = re.sub(rf"(?<![\w.]){key.rpartition('.')[2]}(?=(\[\d+\])? (is|has|names|\[))", theirs, words)
    return ValueError(words)


def _windowed(name, get):
    """The kind of each layer: a list says which layers have a window; a number n says that one of n layers has none.

    llama_hparams::set_swa_pattern in src/llama-hparams.cpp; src/models/modern-bert.cpp calls it with dense_first.
    """
    pattern, layers = get("attention.sliding_window_pattern"), get("block_count")
    if type(pattern) is int and pattern > 0:
        full = 0 if name == "modern-bert" else pattern - 1
        pattern = [i % pattern != full for i in range(layers)]
    if pattern is None:
        return None
    if not isinstance(pattern, list) or len(pattern) != layers:
        raise ValueError(
            f"{name}.attention.sliding_window_pattern is {shown(pattern)}, expected a number or a list for {layers} layers"
        )
    return ["sliding_attention" if windowed else "full_attention" for windowed in pattern]


def _by_layer(name, get, key):
    """The number of heads, or a list with the number of each layer; a list of equal numbers becomes one number."""
    found = get(key)
    if found is None or (type(found) in (int, float) and found > 0):
        return found
    if not isinstance(found, list):
        raise ValueError(f"{name}.{key} is {shown(found)}, expected a positive number of heads")
    if len(found) != get("block_count") or not all(type(n) is int and n >= 0 for n in found) or not any(found):
        raise ValueError(f"{name}.{key} is {shown(found)}, expected a number of heads for each of {get('block_count')} layers")
    return found[0] if len(set(found)) == 1 else found


def _scaling(name, get, metadata):
    kind, original = get("rope.scaling.type"), get("rope.scaling.original_context_length")
    freqs, short, long = (metadata.get(table) for table in FACTORS)
    if freqs and kind not in (None, "none"):
        raise ValueError(
            f"the GGUF file has rope.scaling.type {kind} and the tensor {FACTORS[0]}; no model known here has both"
        )
    if freqs:
        return {"rope_type": "factors", "factors": freqs}
    if bool(short) != bool(long):
        there, missing = FACTORS[1:] if short else FACTORS[:0:-1]
        raise ValueError(f"the GGUF file has the tensor {there} and no {missing}; LongRoPE needs both")
    if short and kind not in (None, "none", "longrope"):
        raise ValueError(
            f"the GGUF file has rope.scaling.type {kind} and the tensor {FACTORS[1]}; no model known here has both"
        )
    if short:
        kind = "longrope"
    if kind == "none":
        return {"rope_type": "default"}  # a factor is then printed as not understood
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
    if kind == "longrope" and factor not in (None, 1):
        raise ValueError(f"the GGUF file has {name}.rope.scaling.factor and LongRoPE's lists; no model known here has both")
    if kind in ("linear", "yarn") and factor is None:
        raise ValueError(f"the GGUF file has {name}.rope.scaling.type {kind}, and {name}.rope.scaling.factor is missing")
    found = {"rope_type": kind, "factor": factor, "short_factor": short, "long_factor": long}
    found["original_max_position_embeddings"] = original
    if kind == "longrope":
        found["attention_factor"] = get("rope.scaling.attn_factor") or 1.0
    if kind == "yarn":
        found |= _yarn(name, get, factor)
    return {key: value for key, value in found.items() if value not in (None, [])}


def _yarn(name, get, factor):
    """The settings of YaRN for one architecture, except factor and length.

    Only Mistral 3 reads beta_fast and beta_slow; Mistral 3 and DeepSeek V2 read the multiplier (llama.cpp, src/models). For
    DeepSeek V2 the multiplier is a tenth of mscale_all_dim, and mscale equals mscale_all_dim; for Mistral 3 the multiplier is
    mscale_all_dim, and mscale is 1.
    """
    found = {}
    if name == "mistral3":
        found = {"beta_fast": get("rope.scaling.yarn_beta_fast"), "beta_slow": get("rope.scaling.yarn_beta_slow")}
        found["llama_4_scaling_beta"] = get("attention.temperature_scale") or None
    grown, multiplier = magnitude(factor, 1.0), name in ("mistral3", "deepseek2") and get("rope.scaling.yarn_log_multiplier")
    if multiplier and name == "deepseek2":
        grown, found["mscale_all_dim"] = 1.0, 10 * multiplier
    elif multiplier:
        grown /= magnitude(factor, multiplier)
    given = get("rope.scaling.attn_factor") or 1.0  # ggml multiplies the two: rope_yarn of ggml-cpu/ops.cpp
    return found | {"attention_factor": float(given * grown)}


def _plain(value):
    """The value; if it is text that spells a number or a boolean, as in a printed listing, that number or boolean."""
    if not isinstance(value, str):
        return value
    try:
        return int(value) if value.lstrip("-").isdigit() else float(value)
    except ValueError:
        return {"true": True, "false": False}.get(value, value)
