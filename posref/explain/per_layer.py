"""Settings of single layers: numbers of heads, windows, shared selections, and layers without attention.

The lists of GGUF are `posref_heads` and `posref_key_heads`; Laguna has `num_attention_heads_per_layer`; Nemotron-NAS has
`block_configs`, whose `attention` has `no_op`, `replace_with_linear` and `n_heads_in_group`.
"""

from posref.explain.configuration import shown


def without_attention(settings, i):
    """Whether the file says that layer i has no attention."""
    keys, attention = _listed(settings, "posref_key_heads", i), _block(settings, i)
    return keys == 0 or bool(attention.get("no_op") or attention.get("replace_with_linear"))


def heads(settings, i):
    """(query heads, key heads) of layer i; None for a number that the file does not say layer by layer."""
    key = settings.family.get("heads_by_layer", "posref_heads")
    queries, group = _listed(settings, key, i), _block(settings, i).get("n_heads_in_group")
    whole = settings.count("num_attention_heads")
    return queries, whole // group if type(group) is int and group > 0 and whole else _listed(settings, "posref_key_heads", i)


def window(settings, kinds, i):
    """The number of keys that a query of layer i sees on each side; None means all keys.

    Unless the file has per_layer_config, every second layer with a window has NeoMME's long window.
    """
    given, usual = settings["per_layer_config"], settings.count("sliding_window")
    if given is not None:
        return (given.get(str(i)) or {}).get("sliding_window", usual)
    if kinds[i] != "sliding_attention":
        return None
    return settings.family["long_window"] if kinds[:i].count("sliding_attention") % 2 else usual


def shares_its_selection(settings, i):
    """Whether layer i has no indexer and uses the keys that the last indexer selected (configuration_glm_moe_dsa.py)."""
    listed, pattern = settings["indexer_types"], settings["index_topk_pattern"]
    if listed or pattern:
        return (listed or pattern)[i] in ("shared", "S")
    offset = settings["index_skip_topk_offset"]
    return max(i - (2 if offset is None else offset) + 1, 0) % max(settings["index_topk_freq"] or 1, 1) > 0


def _listed(settings, key, i):
    given = settings[key]
    if given is None:
        return None
    if not isinstance(given, list) or i >= len(given) or type(given[i]) is not int or given[i] < 0:
        raise settings.error(f"{key} is {shown(given)}, expected a number for layer {i}")
    return given[i]


def _block(settings, i):
    blocks = settings["block_configs"]
    block = blocks[i] if isinstance(blocks, list) and i < len(blocks) else None
    attention = block.get("attention") if isinstance(block, dict) else None
    return attention if isinstance(attention, dict) else {}
