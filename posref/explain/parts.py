"""The parts of a model: one configuration holds the configurations of its text, vision and sound, flat or nested."""

from posref.explain.configuration import ELSEWHERE, ROTARY, UNKNOWN_TYPE, Settings, facts, shown
from posref.explain.families import FAMILIES
from posref.explain.inventory import REASONS, counts_layers, stacks
from posref.explain.unrotated_layers import only_stack

# {type whose class still reads the keys of its text part at the top of a file: that part}; other classes ignore them there
FLAT = dict.fromkeys(("dots3_note", "fuyu", "glm5_next", "hunyuan_vl", "paddleocr_vl", "qwen2_5_vl", "qwen2_vl"), "text_config")

# {type: (older name of a part in released files, its name now, keys beside the part that the class moves into it, the part
# that says which of its layers are read)}
MOVED = {
    "molmo2": ("vit_config", "vision_config", (), "adapter_config"),
    "unlimited_ocr": ("language_config", "text_config", ("sliding_window",), ""),
}

BUILT_IF = {"idefics.perceiver_config": "use_resampler"}  # a key of the model, without which its class does not build a part

MOST_PARTS = 64  # of one configuration; released ones have at most 14
SPELLED_TWICE = ("altclip", "chinese_clip", "clip", "clipseg", "flava", "groupvit", "metaclip_2", "x_clip")


def parts(config, model_type, path="", outer=None, usual=None):
    """All parts as `Settings`, depth first, with the defaults of their classes. A part with layers of its own is `layered`.

    `usual` holds the values that the class of the model gives this part where the file has none.
    """
    row = facts().get(model_type, {})
    filled = {} if row else {name: value for name, value in (usual or {}).items() if name not in config}
    config = {**filled, **config}
    for key, names in FAMILIES.get(model_type, {}).get("inside", {}).items():
        given = _part(config, key, path) or {} if names else {}
        config = {**config, key: None} | {name: given[old] for old, name in names.items() if old in given}
    old, new, beside, reader = MOVED.get(model_type, ("", "", (), ""))
    if config.get(old) is not None and (config.get(new) is None or reader):
        moved = _part(config, old if config.get(new) is None else new, path)
        moved = {**moved, **{name: config[name] for name in beside if name in config}}
        moved |= _layers_read(moved, _part(config, reader, path) or {}) if reader else {}
        config = {name: value for name, value in config.items() if name not in (old, *beside)} | {new: moved}
    below = row.get("parts", {})
    copies = {f"{key}_dict" for key in below}  # a second spelling of CLIP and its kin, which wins there
    below = {**below, **{key: name for key, name in _named_parts(config).items() if key not in copies}}
    below |= row.get("parts", {})
    own = Settings(config, model_type, path, outer, usual)
    turned = "rope_parameters" in row.get("defaults", {}) and not below
    layered = own.family["encoding"] is not None or turned or model_type in REASONS or stacks(own)
    own.read.update(filled)  # the file does not have them
    own.layered, own.parts = bool(layered or not below), below
    found = [own]
    for key, default in below.items():
        copied = row.get("module") in SPELLED_TWICE and config.get(f"{key}_dict") is not None
        part = _part(config, f"{key}_dict" if copied else key, path)
        own_type = part.get("model_type") if isinstance(part, dict) else None
        read = (
            isinstance(own_type, str) and own_type not in ("", model_type) and (key not in row.get("fixed", ()) or not default)
        )
        if part is None and key == FLAT.get(model_type) and {"hidden_size", "num_hidden_layers"} & {*config}:
            part = {name: value for name, value in config.items() if name not in below and name != "model_type"}
        absent = part is None and key in row.get("optional", ())  # null is as no key
        name = f"{model_type}.{key}"
        absent |= name in BUILT_IF and not config.get(BUILT_IF[name])
        absent |= {key, only_stack(config)} == {"encoder", "decoder"}  # its class builds the other stack alone
        if not absent:
            usual_values = dict(row.get("absent" if part is None else "beside", {}).get(key, {}))
            default = _left_out(own, key, default, usual_values) if part is None else default
            chosen = own_type if read else default
            usual_values = usual_values if chosen == default else {}
            name = f"{path}.{key}".lstrip(".")
            inner = parts(part or {}, chosen or UNKNOWN_TYPE, name, {**config, "model_type": model_type}, usual_values)
            inner[0].foreign = bool(row) and key not in row.get("parts", {})
            found += inner
            if len(found) > MOST_PARTS:
                raise ValueError(f"the configuration has more than {MOST_PARTS} parts; name a configuration of fewer models")
    return found


def _left_out(model, key, default, usual):
    """The type that a class builds if the file leaves out a part; None if the class looks up the model that `backbone` names.

    A class whose default backbone is a model of timm builds this model only if the file does not set use_timm_backbone to false
    and has no backbone_kwargs (backbone_utils.py of transformers).
    """
    chosen = usual.pop("model_type", default)
    if chosen == "timm_backbone" and model.file.get("use_timm_backbone", True) and not model.file.get("backbone_kwargs"):
        return chosen
    if key == "backbone_config" and model.file.get("backbone") is not None:
        usual.clear()
        return None
    if chosen != "timm_backbone":
        return chosen
    usual |= {"image_size": model["image_size"]} if model["image_size"] else {}  # OmDet-Turbo gives its backbone its own
    return default


def _layers_read(vision, adapter):
    """Under the older name of the part, Molmo2 builds vision layers only up to the last that the adapter reads
    (configuration_molmo2.py)."""
    layers = adapter["vit_layers"] if "vit_layers" in adapter else adapter.get("vision_feature_layer")
    layers, count = [24, 18] if layers is None else layers, vision.get("num_hidden_layers", 25)
    if not (isinstance(layers, list) and layers and all(type(n) is int for n in (*layers, count)) and count > 0):
        raise ValueError(f"the adapter reads layers {shown(layers)} of {shown(count)}, expected integers of a positive integer")
    return {"num_hidden_layers": max(layer % count for layer in layers) + 1}


def _named_parts(config):
    """{key: type} of dictionaries that, at any depth, name another type than the model or count layers; no class names them."""
    inner = {key: part for key, part in config.items() if key not in (*ROTARY, *ELSEWHERE) and _holds_layers(part, config)}
    return {key: part["model_type"] if isinstance(part.get("model_type"), str) else None for key, part in inner.items()}


def _holds_layers(part, config):
    if not isinstance(part, dict):
        return False
    name = part.get("model_type")
    other = isinstance(name, str) and name not in ("", config.get("model_type"))
    return other or any(map(counts_layers, part)) or any(_holds_layers(inner, config) for inner in part.values())


def layer_counts(found):
    """{(part, key): number of layers} for every stack in all parts of a configuration."""
    return {(settings.path, key): count for settings in found if settings.layered for key, count in stacks(settings).items()}


def _part(config, key, path):
    part = config.get(key)
    if part is None or isinstance(part, dict):
        return part
    raise ValueError(f"{path or 'the configuration'}: {key} is {shown(part)}, expected a dictionary")
