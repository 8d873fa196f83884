"""The parts of a model: one configuration holds those of its text, vision and sound, flat or nested."""

from posref.explain.settings import Settings, facts, shown

# the types whose class still takes the keys of its text from the top of a file; the others ignore them there
FLAT = dict.fromkeys(("qwen2_vl", "qwen2_5_vl", "paddleocr_vl", "hunyuan_vl", "fuyu"), "text_config")


def parts(config, model_type, path="", outer=None):
    """Every part with layers of its own, depth first, as `Settings`; sparse parts are filled by their class."""
    row = facts().get(model_type, {})
    below = row.get("parts", {}) if row else _named_parts(config)
    own = Settings(config, model_type, path, outer)
    layered = own.family["encoding"] is not None or {"num_hidden_layers", "rope_parameters"} & set(row.get("defaults", {}))
    found = [own] if layered or not below else []
    for key, default in below.items():
        part = _part(config, key, path)
        own_type = part.get("model_type") if isinstance(part, dict) else None
        chosen = own_type if isinstance(own_type, str) and own_type not in ("", model_type) else default
        if part is None and key == FLAT.get(model_type) and "hidden_size" in config:
            part = {name: value for name, value in config.items() if name not in below and name != "model_type"}
        absent = part is None and (key in config or key in row.get("optional", ()))
        if chosen is not None and not absent:
            found += parts(part or {}, chosen, f"{path}.{key}".lstrip("."), config)
    return found


def _named_parts(config):
    """The parts of a model that is not known, as far as they name a type."""
    parts = {key: part.get("model_type") for key, part in config.items() if key.endswith("_config") and isinstance(part, dict)}
    return {key: name for key, name in parts.items() if isinstance(name, str)}


def _part(config, key, path):
    part = config.get(key)
    if part is None or isinstance(part, dict):
        return part
    raise ValueError(f"{path or 'the configuration'}: {key} is {shown(part)}, expected a dictionary")
