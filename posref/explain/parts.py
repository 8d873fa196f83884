"""The parts of a model: one configuration holds those of its text, vision and sound, flat or nested."""

from posref.explain.settings import Settings, facts, shown

# the types whose class still takes the keys of its text from the top of a file; the others ignore them there
FLAT = dict.fromkeys(("qwen2_vl", "qwen2_5_vl", "paddleocr_vl", "hunyuan_vl", "fuyu"), "text_config")


def parts(config, model_type, path=""):
    """Every part with layers of its own, depth first, as `Settings`; sparse parts are filled by their class."""
    row = facts().get(model_type, {})
    below = row.get("parts", {})
    own = Settings(config, model_type, path)
    found = [own] if own.family["encoding"] is not None or not below else []
    for key, default in below.items():
        part = _part(config, key, path)
        if key in config and part is None:
            continue
        chosen = part.get("model_type") if isinstance(part, dict) else None
        chosen = chosen if chosen in facts() and chosen != model_type else default
        if part is None and key == FLAT.get(model_type) and "hidden_size" in config:
            part = {name: value for name, value in config.items() if name not in below and name != "model_type"}
        if chosen is not None:
            found += parts(part or {}, chosen, f"{path}.{key}".lstrip("."))
    return found


def _part(config, key, path):
    part = config.get(key)
    if part is None or isinstance(part, dict):
        return part
    raise ValueError(f"{path or 'the configuration'}: {key} is {shown(part)}, expected a dictionary")
