"""Released models in the words of the specification: what `explain` makes of the one table of them."""

from functools import cache

from posref.explain import explain
from posref.explain.reading import models


@cache
def presets():
    """(system, model, call, layout) of every rotation of a shipped model, in the order of the table, each once."""
    found = [(_system(layer), model, _call(layer), layer["layout"]) for model in models() for layer in _rotations(model)]
    return list(dict.fromkeys(found))


def of(system):
    """Lines for the page of a system: a model, its call and layout, and where its configuration was read."""
    return [
        f"Model {model}: {call}, {layout or 'pairing not known'}; {models()[model]['source']}"
        for at, model, call, layout in presets()
        if at == system
    ]


def _rotations(model):
    return [layer for layer in explain(model)["layers"] if layer["encoding"] == "rope"]


def _system(layer):
    """Where a reader looks for it: axes before schedules before plain RoPE."""
    return "rotary.axes" if layer.get("axes") else "rotary.scaling" if layer["scaling"] else "rotary.rope"


def _call(layer):
    width = f", {layer['rotary_dim']} of {layer['head_dim']}" if layer["rotary_dim"] != layer["head_dim"] else ""
    order = f", axes {layer['order']}" if layer.get("axes") else ""
    return f"{layer['call']}{width}{order}"
