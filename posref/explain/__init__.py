"""What the positions of a model do, layer by layer, from its configuration: `explain`."""

from posref.explain import layers
from posref.explain.parts import parts

__all__ = ["explain"]


def explain(config):
    """What each layer does with position: a dictionary with `model_type`, `layers`, `unsupported`, `traps` and `unread`.

    `config` is a configuration as a dictionary. ValueError, in one line, where a key has no possible meaning.
    """
    if not isinstance(config, dict):
        raise TypeError(f"explain: config is a {type(config).__name__}, expected a dictionary; read a file with explain.read")
    model_type = config.get("model_type")
    found, unsupported = [], []
    for settings in parts(config, model_type):
        if settings.family["encoding"] is None:
            unsupported.append({"part": settings.path, "model_type": settings.model_type})
        else:
            found += layers.groups(settings)
    return {"model_type": model_type, "layers": found, "unsupported": unsupported, "traps": [], "unread": []}
