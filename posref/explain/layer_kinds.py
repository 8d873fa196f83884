"""The kind of each layer, a word of transformers' `layer_types`: from the file, or by the rule of its model type.

The rules are data of `posref.explain.families`: `{"every": 6}` makes layers 5, 11, .. full and the others sliding.
"""

from posref.explain import per_layer
from posref.explain.configuration import shown

FULL, SLIDING, CHUNKED, LINEAR = "full_attention", "sliding_attention", "chunked_attention", "linear_attention"
OLD_NAMES = {  # remap_legacy_layer_types of transformers
    "attention": FULL,
    "mamba": LINEAR,
    "deepseek_sparse_attention": "indexed_attention",
    "qwen_sparse_attention": "indexed_attention",
}
KNOWN = {  # ALLOWED_LAYER_TYPES of transformers 5.23.0, and the names of single models
    *(FULL, SLIDING, CHUNKED, LINEAR, "window_attention", "indexed_attention", "compressed_sparse_attention"),
    *("heavily_compressed_attention", "minimax_m3_sparse", "conv", "moe", "mlp", "hybrid", "hybrid_sliding"),
    *("reference_sliding_attention", "cross_attention", "sparse", "dense"),
}
NO_ATTENTION = "no_attention"
WITHOUT_SOFTMAX = (LINEAR, "conv", "moe", "mlp", "sparse", "dense", NO_ATTENTION)


def kinds(settings):
    """The kind of each layer; ValueError if the file has a list that is not valid."""
    found = _kinds(settings)
    return found and [NO_ATTENTION if per_layer.without_attention(settings, i) else kind for i, kind in enumerate(found)]


def _kinds(settings):
    rule = settings.family.get("kinds", {})
    count = settings.count(rule["layers"]) if "layers" in rule else None
    count = count or settings.count("num_hidden_layers")
    for key in rule.get("keys", ("layer_types",)):
        known = key in settings.facts.get("defaults", {key: None})  # a class without this field does not look at it
        given = settings[key] if known or settings.file.get("posref_file") else None
        if given is not None:
            return _given(settings, key, given, rule, count)
    if rule.get("rule") == "nemotron_h":
        count = len(_nemotron_h_pattern(settings))
    if count is None:
        return None
    numbers = settings.numbered("hybrid_override_pattern" if rule.get("rule") == "nemotron_h" else "num_hidden_layers", count)
    found = forced(rule, [_by_rule(rule, settings, i, count) for i in numbers])
    if settings.file.get("layer_types") == found:
        settings.read.add("layer_types")  # it says the same
    return found


def _given(settings, key, given, rule, count):
    if not isinstance(given, list) or not all(isinstance(kind, str) for kind in given):
        raise settings.error(f"{key} is {shown(given)}, expected a list of names")
    if count is not None and len(given) < count:
        raise settings.error(f"{key} names {len(given)} layers and num_hidden_layers is {count}")
    listed = [given[i] for i in settings.numbered(key, len(given) if count is None else count)]
    found = [{**OLD_NAMES, **rule.get("named", {})}.get(kind, kind) for kind in listed]
    unknown = sorted(set(found) - KNOWN)
    if unknown:
        raise settings.error(f"{key} has {shown(unknown[0])}, which is no kind of layer")
    _forget_a_rule_that_differs(settings, rule, found)
    return forced(rule, found)


def _forget_a_rule_that_differs(settings, rule, found):
    """Mark the keys of a rule as unread where the file's list of kinds differs from the rule."""
    before = set(settings.read)
    try:
        same = found == [_by_rule(rule, settings, i, len(found)) for i in range(len(found))]
    except (TypeError, KeyError, IndexError, ZeroDivisionError):
        same = False
    if not same:
        settings.read.intersection_update(before)


def forced(rule, found):
    return [*found[:-1], rule["last"]] if found and "last" in rule else found


def _by_rule(rule, settings, i, count):
    if "rule" in rule:
        return RULES[rule["rule"]](settings, i, count)
    if "every" not in rule:
        return rule.get("all", FULL)
    period = (settings[rule["key"]] if "key" in rule else None) or rule["every"]
    place = count - 1 - i if rule.get("from_end") else i
    hit = place % period == rule.get("at", -1) % period or {i, i - count} & {*rule.get("also", ())}
    return rule.get("then", FULL) if hit else rule.get("else", SLIDING)


def _qwen2(settings, i, count):
    windowed, first = settings["use_sliding_window"] and settings["sliding_window"] is not None, settings["max_window_layers"]
    return SLIDING if windowed and i >= (first or 0) else FULL


def _dots1(settings, i, count):
    return SLIDING if settings["sliding_window"] is not None and i >= (settings["max_window_layers"] or 0) else FULL


def _qwen2_moe(settings, i, count):
    return SLIDING if settings["use_sliding_window"] and (i + 1) % 2 and i < settings["max_window_layers"] else FULL


def _exaone4(settings, i, count):
    period = settings["sliding_window_pattern"] if settings["sliding_window"] is not None else 0
    if isinstance(period, str):  # "LLLG", the spelling of the release
        return FULL if period[i % len(period)] == "G" or i == count - 1 else SLIDING
    return SLIDING if period and (i + 1) % period else FULL


def _llama4(settings, i, count):
    return CHUNKED if rotates_by_list(settings, i) else FULL


def _smollm3(settings, i, count):
    windowed = settings["use_sliding_window"] and settings["sliding_window"] is not None
    return SLIDING if windowed and not rotates_by_list(settings, i) else FULL


def _ministral(settings, i, count):
    return SLIDING if settings["sliding_window"] is not None else FULL


def _lfm2(settings, i, count):
    chosen = settings["full_attn_idxs"]
    return FULL if chosen is None or i in chosen else "conv"


def _jamba(settings, i, count):
    return FULL if i % settings["attn_layer_period"] == settings["attn_layer_offset"] else LINEAR


def _bamba(settings, i, count):
    return FULL if i in (settings["attn_layer_indices"] or ()) else LINEAR


def _bailing(settings, i, count):
    return FULL if (i + 1) % settings["layer_group_size"] == 0 else LINEAR


def _recurrent_gemma(settings, i, count):
    pattern = settings["block_types"]
    return LINEAR if pattern[i % len(pattern)] == "recurrent" else SLIDING


def _zamba(settings, i, count):
    if i < 3:
        return (LINEAR, LINEAR, "hybrid")[i]
    return "hybrid" if (i - 3) % settings["attn_layer_period"] == settings["attn_layer_offset"] else LINEAR


def _zamba2(settings, i, count):
    pattern = [0] + [0, 0, 0, 0, 0, 1] * 7 + [0] * 4 + [1] + [0] * 3 + [1] + [0] * 2
    return "hybrid" if pattern[i % len(pattern)] else LINEAR


def _nemotron_h(settings, i, count):
    letters = {"M": LINEAR, "*": FULL, "-": "mlp", "E": "moe"}
    return letters.get(_nemotron_h_pattern(settings)[i], "mlp")


def _nemotron_h_pattern(settings):
    return settings["hybrid_override_pattern"] or "ME*-"  # of its class, which ignores num_hidden_layers


def _inkling(settings, i, count):
    local = settings["local_layer_ids"]
    return "hybrid_sliding" if ((i + 1) % 6 if local is None else i in local) else "hybrid"


def _kimi_linear(settings, i, count):
    chosen = settings["linear_attn_config"] or {}
    if "full_attn_layers" in chosen and "kda_layers" in chosen:
        return FULL if i + 1 in chosen["full_attn_layers"] else LINEAR
    return FULL if i and i % 4 == 0 else LINEAR


def _flint(settings, i, count):
    return FULL if i < 2 or i % 4 == 1 or i == count - 1 else SLIDING


def _cohere2_moe(settings, i, count):
    dense = settings["first_k_dense_replace"] or 0
    if i < dense:
        return SLIDING if (i + 1) % settings["prefix_dense_sliding_window_pattern"] else FULL
    return SLIDING if (i - dense + 1) % settings["sliding_window_pattern"] else FULL


def _deepseek_v4(settings, i, count):
    names = {0: SLIDING, 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}
    ratios = settings["compress_ratios"]
    if ratios is not None:
        return names[ratios[i]]
    return names[128] if i < 2 or i % 2 == 0 else names[4]


def _lfm3(settings, i, count):
    return FULL if i % 4 == 2 else SLIDING if i % 4 == 0 and i else "conv"


def _molmo2(settings, i, count):
    listed = settings["rope_scaling_layers"]
    return FULL if listed is None or i in listed else "unscaled_attention"


def _lfm3_vl_vision(settings, i, count):
    return "conv" if i < 2 or i % 2 else FULL


def _ultrabert(settings, i, count):
    windows = settings["attention_windows"]
    if windows is not None:
        return SLIDING if windows[i] else FULL
    return SLIDING if (i + 1) % 3 else FULL


def _mllama(settings, i, count):
    listed = settings["cross_attention_layers"]
    return "cross_attention" if i in (range(3, 40, 5) if listed is None else listed) else FULL  # configuration_mllama.py


def _minimax_m3(settings, i, count):
    sparse = (settings["sparse_attention_config"] or {}).get("sparse_attention_freq")
    return "minimax_m3_sparse" if sparse and sparse[i] else FULL


def _full_by_list(settings, i, count):
    return FULL if i in (settings["fullatt_block_indexes"] or ()) else "window_attention"


def _global_by_list(settings, i, count):
    listed = settings["global_attn_indexes"]
    whole = (7, 15, 23, 31) if listed is None else listed  # SAM 3's, whose class has None; an empty list names no layer
    return FULL if i in whole or settings["window_size"] == 0 else "window_attention"


def _gpt_neo(settings, i, count):
    listed = settings["attention_types"] or [[["global", "local"], count]]
    settings.numbered("attention_types", sum(len(names) * times for names, times in listed))
    pattern = [kind for names, times in listed for kind in names * times]
    if settings.file.get("attention_layers") == pattern:
        settings.read.add("attention_layers")  # it says the same
    return FULL if pattern[i] == "global" else SLIDING


def rotates_by_list(settings, i):
    """Whether `no_rope_layers[i]` is 1, which means that layer i rotates; without a list, all but every fourth layer rotate."""
    chosen = settings["no_rope_layers"]
    if chosen:
        return bool(chosen[i])
    return bool((i + 1) % (settings["no_rope_layer_interval"] or 4))


RULES = {
    "qwen2": _qwen2,
    "dots1": _dots1,
    "qwen2_moe": _qwen2_moe,
    "exaone4": _exaone4,
    "llama4": _llama4,
    "smollm3": _smollm3,
    "ministral": _ministral,
    "lfm2": _lfm2,
    "jamba": _jamba,
    "bamba": _bamba,
    "bailing": _bailing,
    "recurrent_gemma": _recurrent_gemma,
    "zamba": _zamba,
    "zamba2": _zamba2,
    "nemotron_h": _nemotron_h,
    "inkling": _inkling,
    "kimi_linear": _kimi_linear,
    "flint": _flint,
    "cohere2_moe": _cohere2_moe,
    "deepseek_v4": _deepseek_v4,
    "lfm3": _lfm3,
    "molmo2": _molmo2,
    "lfm3_vl_vision": _lfm3_vl_vision,
    "ultrabert": _ultrabert,
    "mllama": _mllama,
    "minimax_m3": _minimax_m3,
    "full_by_list": _full_by_list,
    "global_by_list": _global_by_list,
    "gpt_neo": _gpt_neo,
}
