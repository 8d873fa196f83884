"""Groups of layers: describes the layers of one part of a model and puts layers that treat position alike together."""

import copy
import functools
from dataclasses import replace
from typing import Any

from posref.explain import axis_maps, layer_kinds, masks, per_layer, state_layers, swin_layers, unrotated_layers
from posref.explain.configuration import Settings, key_heads, norm, query_heads, shown, source_file
from posref.explain.layer import Layer
from posref.explain.parameters import parameters
from posref.explain.positions import positions
from posref.explain.schedule import magnitude, phase_error, schedule, where
from posref.explain.slips import slips


def groups(settings):
    """A `Layer` for each set of layers of this part that treat position alike, except layers without softmax and state."""
    found = _own(settings)
    for name, row in settings.family.get("towers", {}).items():
        tower = copy.copy(settings)  # of the same file, whose keys have other names
        tower.path = ".".join(filter(None, (settings.path, name)))
        tower.family, tower.names = {**settings.family, "towers": {}, **row}, {**settings.names, **row["keys"]}
        found += groups(tower)
    return found


def _own(settings):
    describe = GROUPS.get(settings.family["encoding"], unrotated_layers.groups)
    masked = [masks.described(settings, group) for group in describe(settings)]
    counted = [replace(group, positions=positions(settings, group)) for group in masked]
    if settings.model_type == "t5_gemma_module" and settings.path.endswith("decoder"):
        indices = sorted(i for group in counted for i in group.indices)
        counted.append(replace(masks.cross_attention(counted[0]), indices=indices))
    windows = settings.family["encoding"] == "swin"  # of sound, beside a text encoder of the same module
    crossing = settings.facts.get("module") in masks.CROSSING and settings["add_cross_attention"]
    if not windows and (crossing or (describe is _rotary and settings.family.get("cross"))):
        counted += [_crossing(settings, group) for group in counted]
    return [replace(group, slips=slips(group)) for group in [*counted, *state_layers.groups(settings)]]


def _crossing(settings, group):
    """The attention of a layer to an encoder; the tokens of the encoder may have a table of their own."""
    sizes = {name: settings.count(key) for name, key in settings.family.get("crossing_sizes", {}).items()}
    found = replace(masks.cross_attention(group), encoding=settings.family.get("crossing", "none"), **sizes)
    if found.encoding == "none":
        return found
    words = "the row of the table for each of these tokens, counted from 0, is added before the decoder reads them"
    return replace(found, table=settings.count("max_position_embeddings"), further_keys=words)


def _rotary(settings):
    kinds = _kinds(settings)
    read = set(settings.family.get("read", kinds)) - set(layer_kinds.WITHOUT_SOFTMAX)
    attending = [kind for kind in kinds if kind in read]
    given = _parameters_if_turned(settings, kinds, attending)
    describe = functools.cache(lambda kind, turned, theta: _layer(settings, kind, turned, theta, given))
    found: dict[tuple[Any, ...], Layer] = {}
    for i, kind in enumerate(kinds):
        if kind in attending:
            turned = rotates(settings, kind, i) and given.get(kind) is not None
            layer = describe(kind, turned, _base_of(settings, i))
            heads, key_heads_of_layer = per_layer.heads(settings, i)
            chunks = unrotated_layers.chunks(settings, i)
            layer = replace(layer, heads=heads or layer.heads, kv_heads=key_heads_of_layer or layer.kv_heads, **chunks)
            if "long_window" in settings.family:
                width = per_layer.window(settings, kinds, i)
                layer = replace(layer, window=width and width + 1, window_sides=width and "both")
            if settings.family.get("shared_selection") and per_layer.shares_its_selection(settings, i):
                layer = replace(layer, indexer=None, selected_before=True)
            sizes = (layer.heads, layer.kv_heads, layer.window, layer.selected_before, *chunks.values())
            key = (kind, turned, _base_of(settings, i), *sizes)
            found.setdefault(key, replace(layer, indices=[])).indices.append(i)
    return list(found.values())


def _kinds(settings):
    found = layer_kinds.kinds(settings)
    if found is None:
        raise ValueError(f"{where(settings)}num_hidden_layers is missing, and its type has no number of layers of its own")
    return found


def _parameters_if_turned(settings, kinds, attending):
    if any(rotates(settings, kind, i) for i, kind in enumerate(kinds) if kind in attending):
        return parameters(settings, attending)
    settings.read.add("rope_theta")  # understood: no layer turns by it
    return dict.fromkeys(attending)


def rotates(settings, kind, i):
    """Whether layer i rotates its queries and keys."""
    rule = settings.family.get("nope")
    if settings.family["encoding"] == "none":
        return False
    if rule is None:
        return True
    if isinstance(rule, list):
        return kind not in rule
    return NOPE[rule](settings, kind, i)


def _cohere2_moe(settings, kind, i):
    dense = i < (settings["first_k_dense_replace"] or 0)
    return kind == "sliding_attention" or (dense and settings["prefix_dense_sliding_window_pattern"] == 1)


def _muse(settings, kind, i):
    listed = settings["layer_rope_theta"]
    return bool(listed[i]) if listed else (settings.count("num_hidden_layers") - 1 - i) % 4 > 0


def _base_is_null(settings):
    """Whether nothing rotates, because `rope_theta` is null or stands per kind of layer; without the key, the class decides."""
    inside = settings["rope_parameters"] or {}
    if any(isinstance(value, dict) for value in inside.values()):
        return True
    return inside.get("rope_theta", 0) is None or ("rope_theta" in settings.raw and settings.raw["rope_theta"] is None)


NOPE = {
    "no_rope_layers": lambda settings, kind, i: layer_kinds.rotates_by_list(settings, i),
    "unless_windowed": lambda settings, kind, i: settings["sliding_window"] is None or kind == "sliding_attention",
    "cohere2_moe": _cohere2_moe,
    "muse": _muse,
    "position_embedding_type": lambda settings, kind, i: settings["position_embedding_type"] == "rope",
    "use_mem_rope": lambda settings, kind, i: bool(settings["use_mem_rope"]),
    "no_base": lambda settings, kind, i: not _base_is_null(settings),
    "alibi": lambda settings, kind, i: not settings["alibi"],
    "esm": lambda settings, kind, i: settings["position_embedding_type"] == "rotary",
}


def _base_of(settings, i):
    """The base of layer i, if the file has a list of bases; else None."""
    listed = settings["layer_rope_theta"] if settings.family.get("parameters") == "by_layer" else None
    return listed[i] if listed else None


def _of_kind(settings, kind):
    """The settings of one kind of layers: `keys_of` names the keys from which this kind takes its sizes."""
    keys = settings.family.get("keys_of", {}).get(kind, {})
    found = copy.copy(settings)
    found.names = {**settings.names, **{key: name for key, (name, _) in keys.items()}}
    found.facts = {**settings.facts, "defaults": {**settings.facts.get("defaults", {}), **dict(keys.values())}}
    found.read.update(name for name, _ in keys.values())
    return found if keys else settings


def _layer(settings, kind, turned, theta, given):
    settings, family = _of_kind(settings, kind), settings.family
    head_dim, heads = head_width(settings, kind), query_heads(settings, kind)
    sides = "both" if both_sides(settings) else family.get("window", {}).get("sides", "past")
    layer = Layer(
        part=settings.path,
        model_type=settings.model_type,
        kind=kind,
        encoding="rope" if turned else family.get("instead", "none"),
        head_dim=attended_width(settings, kind),
        heads=heads,
        kv_heads=key_heads(settings, heads, kind),
        softmax_scale=softmax_scale(settings, kind, given.get(kind)),
        query_scale=scale_before(settings, "before", head_dim),
        key_scale=scale_before(settings, "keys_before", head_dim),
        causal=False if both_sides(settings) else family.get("causal"),
        window=window(settings, kind),
        window_sides=sides if window(settings, kind) is not None else None,
        chunk=settings.count(family["chunk"]) if "chunk" in family and kind == "chunked_attention" else None,
        sinks=kind in family["sinks"] if isinstance(family.get("sinks"), list) else bool(family.get("sinks")),
        softcap=settings.number(family["softcap"]) if "softcap" in family else None,
        norm=norm(settings, kind, turned),
        temperature=temperature(settings, kind, turned, given.get(kind)),
        source=source(settings),
        tiled="tiled" in family or None,
    )
    if family.get("indexer") and kind == "indexed_attention":
        width = settings.count("index_head_dim")
        layer = replace(layer, indexer={"layout": family["indexer"], "rotated": "first", "head_dim": width})
    if not turned:
        return replace(layer, **unrotated_layers.added(settings, layer))
    values = given[kind] | {"rope_theta": theta} if theta else given[kind]
    return _turned(settings, values, turned_width(settings, kind), layer)


def _turned(settings, values, width, layer):
    family, found = settings.family, schedule(values, width, settings)
    pairs = layout(settings)
    halves = pairs == "half" and 2 * len(found.frequencies) > found.rotary_dim  # pairs with frequency 0 stand between them
    layer = replace(
        layer,
        layout=pairs,
        sign=family.get("sign", 1),
        rotated=family.get("rotated", "first of each half" if halves else "first"),
        rotated_heads=family.get("rotated_heads"),
        undo=family.get("undo", False),
        rotary_dim=found.rotary_dim,
        base=found.base,
        scaling=found.scaling,
        frequencies=found.frequencies.tolist(),
        frequencies_long=None if found.long is None else found.long.tolist(),
        magnitude=found.magnitude,
        call=found.call,
        input=family.get("input"),
    )
    length = settings.count("max_position_embeddings", most=10**12)
    if length and not family.get("axes", "text").startswith(("h", "w", "b", "llama4")):
        layer = replace(layer, max_position_embeddings=length, phase_error=phase_error(found.frequencies, length))
    return _with_axes(settings, values, layer) if family.get("axes") else layer


def _with_axes(settings, values, layer):
    family, pairs = settings.family, len(layer.frequencies)
    sections = values.get("mrope_section") or family.get("sections", axis_maps.DEFAULT_SECTIONS)
    _added_up(settings, values.get("mrope_section"), pairs)
    if family["axes"] == "interleaved":
        values.get("mrope_interleaved")  # understood; where it is false, a trap says that it is not read
    axis, index = map(list, zip(*axis_maps.pairs(family["axes"], pairs, sections), strict=True))
    return replace(layer, axes=axis, index=index, order=family["axes"], learned_first=family.get("learned_first", False))


def _added_up(settings, given, pairs):
    """ValueError if the consecutive sections of a file do not add up to the number of pairs."""
    if given and settings.family["axes"] == "sections" and sum(given) != pairs:
        raise ValueError(
            f"{where(settings)}mrope_section {shown(given)} adds up to {sum(given)}, expected {pairs}: half the rotated width"
        )


def layout(settings):
    """The layout: half, interleaved, or interleaved_to_half (read interleaved, written as halves); None if no key says it."""
    family = settings.family
    if settings["posref_layout"]:  # weights of another program, see native and gguf
        return settings["posref_layout"]
    if "key" in family and settings[family["key"]] is False:
        return "half"
    if family["layout"] is None:
        return None
    writes = family.get("writes", family["layout"])
    return family["layout"] if writes == family["layout"] else f"{family['layout']}_to_{writes}"


def head_width(settings, kind):
    """The width of a head, of which the rotated width is a share."""
    family = settings.family
    if kind in family.get("head_of", {}):
        key, without = family["head_of"][kind]
        return settings.count(key) or without
    rule = family["head"]
    if rule == "latent":
        return settings.count("qk_nope_head_dim") + settings.count("qk_rope_head_dim")
    if rule == "zamba" and settings["attention_head_dim"]:
        return settings.count("attention_head_dim")
    if rule in ("zamba", "zamba2"):
        return 2 * settings.count("hidden_size") // settings.count("num_attention_heads")
    if rule not in ("head_dim", "hidden", "embed"):
        return _counted(settings, rule)
    given = settings.count("head_dim") if rule == "head_dim" else None
    whole = "embed_dim" if rule == "embed" else "hidden_size"
    return given or _counted(settings, whole) // _counted(settings, "num_attention_heads")


def _counted(settings, key):
    found = settings.count(key)
    if found is None:
        raise ValueError(f"{where(settings)}{key} is missing, and {settings.model_type} has no value of its own for it")
    return found


def turned_width(settings, kind):
    if settings.family["parameters"] == "gptj":
        return settings.count("rotary_dim") or settings.count("hidden_size")
    if settings.family["parameters"] == "clvp":  # a head of half the width of the projection (modeling_clvp.py)
        width, head = (
            max(settings.count("projection_dim") // (2 * settings.count("num_attention_heads")), 32),
            head_width(settings, kind),
        )
        if width > head:
            raise settings.error(f"projection_dim makes {width} features of a head rotate; a head has {head}")
        return width
    return head_width(settings, kind)


def attended_width(settings, kind):
    """The width of a query in its product with a key."""
    if settings.family["scale"] in ("yarn", "latent"):
        width = settings.count("qk_nope_head_dim") + settings.count("qk_rope_head_dim")
        if settings.file.get("qk_head_dim") == width:
            settings.read.add("qk_head_dim")  # it says the same
        return width
    return head_width(settings, kind)


def softmax_scale(settings, kind, values):
    """The factor of the product of queries and keys, without the magnitude of the tables; None if it is not known."""
    rule = settings.family["scale"]
    if not isinstance(rule, str):
        return None if rule is None else float(rule)
    width = attended_width(settings, kind)
    if rule == "head" or rule == "latent":
        return width**-0.5
    if rule == "zamba2":
        return (width / 2) ** -0.5
    if rule == "inverse":
        return 1 / width
    if rule == "yarn":
        all_dim = (values or {}).get("mscale_all_dim")
        scaled = values and values.get("rope_type") != "default" and all_dim
        return width**-0.5 * (float(magnitude(values["factor"], all_dim)) ** 2 if scaled else 1.0)
    value = settings.number(rule.removeprefix("-"))
    if value is None:
        return width**-0.5
    if value <= 0:
        raise ValueError(f"{where(settings)}{rule.removeprefix('-')} is {shown(value)}, expected a positive number")
    return float(value) ** -0.5 if rule.startswith("-") else float(value)


def scale_before(settings, name, width):
    """The factor of queries, or of keys, before their product, in addition to the softmax scale."""
    rule = settings.family.get(name, 0.0)
    return float(settings.number(rule)) if isinstance(rule, str) else float(width**rule)


def both_sides(settings):
    """Whether a key of the file makes the decoder an encoder, whose windows are halved and reach to both sides."""
    key = settings.family.get("both_if")
    return bool(key) and settings[key] in (True, "all")


def window(settings, kind):
    """The largest number of keys that a query sees on one side, its own included; None if there is no window."""
    rule = settings.family.get("window")
    if rule is not None:
        settings.read.add(rule["key"])  # understood, whether this kind has a window or not
    if rule is None or ("kinds" in rule and kind not in rule["kinds"]):
        return None
    if "if" in rule and not settings[rule["if"]]:
        return None
    if "instead" in rule and settings.given(rule["instead"]):
        width = settings.number(rule["instead"], int)
        return width + rule["instead_plus"] if width > 0 else None
    width = settings.number(rule["key"], int)
    width = rule.get("usual") if width is None else width
    if width is None or width <= 0:
        return None
    if both_sides(settings):
        return width // 2 + 1
    return (width // 2 if rule.get("halved") else width) + rule.get("plus", 0)


def temperature(settings, kind, turned, values):
    """The rule by which queries, or scores with their bias, grow with the position, and its numbers; None if there is none."""
    rule = settings.family.get("temperature")
    if rule == "llama4" and settings["attn_temperature_tuning"] and not turned:
        return {
            "rule": "1 + a ln(1 + floor((p + 1) / f))",
            "a": _needed(settings, "attn_scale"),
            "f": _needed(settings, "floor_scale"),
        }
    if rule == "beam" and not turned:
        return {"rule": "(1 + (p + 1) / f)^a", "a": 0.1, "f": 2048}  # fixed in its code
    if rule == "inkling" and kind == "hybrid" and settings["log_scaling_n_floor"] is not None:
        amount, floor = (_needed(settings, f"log_scaling_{name}") for name in ("alpha", "n_floor"))
        return {"rule": "1 + a ln(max((p + 1) / f, 1))", "a": amount, "f": floor}
    if rule == "qwen" and settings["use_logn_attn"]:
        return {"rule": "max(1, ln(p + 1) / ln(f))", "f": settings.count("seq_length", least=2)}
    if rule == "ministral3" and values and values.get("llama_4_scaling_beta"):
        length = values.get("original_max_position_embeddings")
        return {"rule": "1 + a ln(1 + floor(p / f))", "a": values["llama_4_scaling_beta"], "f": length}
    return None


def _needed(settings, key):
    """A number of the file or the default of its class; ValueError for null."""
    value = settings.number(key)
    if value is None:
        raise settings.error(f"{key} is None, expected a number")
    return value


def source(settings):
    """The file from which the row of this type was made; without a row, a note that only the keys were read."""
    if settings.file.get("posref_file"):
        return f"keys of a {settings.file['posref_file']} file, read as {settings.model_type} of transformers 5.23.0"
    if not settings.facts or settings.doubt:
        return f"its keys alone: {settings.doubt or 'this model type is not known here'}"
    return source_file(settings)


GROUPS = {**dict.fromkeys(("rope", "none"), _rotary), **dict.fromkeys(("swin", "swin_v2"), swin_layers.groups)}

__all__ = ["Settings", "groups", "shown"]
