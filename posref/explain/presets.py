"""Released models as calls of the specification: what `explain` says about each model that is shipped with posref."""

import json
from dataclasses import replace
from functools import cache

import numpy as np

from posref.explain import explanation
from posref.explain.configuration import family
from posref.explain.output import attending, by_length, chosen, frequencies, not_added_up
from posref.explain.sources import models

SYSTEMS = {  # of the words of `posref.explain`
    "rope": "rotary.rope",
    "alibi": "relative.alibi",
    "t5": "relative.t5",
    "boxes": "relative.t5",
    "disentangled": "relative.deberta",
    "xlnet": "relative.xlnet",
    "swin": "relative.swin",
    "swin_v2": "relative.swin",
    "swin_with_cls": "relative.swin",
    "relative": "relative.shaw",
    **dict.fromkeys(("learned", "learned_and_buckets", "learned_axial"), "absolute.learned"),
    "learned_2d": "absolute.learned",
    "sinusoidal": "absolute.sinusoidal",
    **{name: f"state.{name}" for name in ("delta", "gated", "retention", "convolution")},
}
BIASES = {  # the settings of its op that `explain` says of a bias
    "t5.bias": "heads buckets max_distance bidirectional",
    "alibi.bias": "heads form max_bias",
    "xlnet.scores": "heads attn_type scale",
    "swin.bias": "heads height width",
    "swin.bias_with_cls": "heads height width",
    "swin.continuous_bias": "heads height width",
}


@cache
def presets():
    """(system, model, call, layout) of every rotation of a shipped model, without repetition, in the order of the models."""
    found = [(_system(layer), model, _call(layer), layer.layout) for model in models() for layer in _rotations(model)]
    return list(dict.fromkeys(found))


def of(system):
    """Lines for the page of a system: a model, its call and layout, and the source of its configuration."""
    return [
        f"Model {model}: {call}, {layout or 'pairing not known'}; {models()[model]['source']}"
        for at, model, call, layout in presets()
        if at == system
    ]


@cache
def uses():
    """The released models that `posref.explain` knows by name, and the systems that their layers use.

    >>> uses()["gpt-oss-20b"]
    ('rotary.rope', 'rotary.scaling')
    """
    return {name: tuple(sorted(set(_of_layers(explanation(model["config"]).layers)))) for name, model in models().items()}


@cache
def known_values():
    """The layer descriptions of all shipped models, and their biases, as dictionaries."""
    groups = [group for model in models().values() for group in explanation(model["config"]).layers]
    return [*(vars(group) for group in groups), *(group.bias for group in groups if group.bias)]


def op_and_settings(source, layer=None, part=None, layout=None):
    """The name of the op and the settings with which `posref.check` checks a model. `source` is what `explain` takes.

    `layer` and `part` choose among layers that differ; the part "indexer" is the second rotation of sparse attention. `layout`
    says how features are paired, see `in_layout`.
    ValueError if the chosen layers differ in op or settings, or have nothing that can be checked.
    """
    groups = _indexers(explanation(source), layer) if part == "indexer" else chosen(explanation(source), layer, part).layers
    groups = [in_layout(group, layout) for group in groups]
    found = {json.dumps([question, by_length(group)]): group for group in groups if (question := _question(group))}
    if len(found) != 1:
        places = [f'layer={g.indices[0]}, part="{g.part}"' if g.part else f"layer={g.indices[0]}" for g in found.values()]
        raise ValueError(
            f"its layers ask for {len(found)} things; choose one: {'; '.join(places)}"
            if found
            else "no layer has what can be checked"
        )
    ((question, group),) = found.items()
    (op, settings), _ = json.loads(question)
    settings = {name: np.array(value) if isinstance(value, list) else value for name, value in settings.items()}
    return op, settings | ({"frequencies": frequencies(group)} if by_length(group) else {})


def in_layout(group, layout):
    """Layers with another layout: where no key says it, or "interleaved" where halves are written of the pairs (2t, 2t + 1).

    Both orders have the same scores: transformers writes halves, the code that DeepSeek released leaves pairs in place.
    """
    free = group.layout is None or (group.layout, layout) == ("interleaved_to_half", "interleaved")
    return replace(group, layout=layout) if group.encoding == "rope" and layout and free else group


def _indexers(found, layer):
    return [replace(group, **group.indexer) for group in chosen(found, layer).layers if group.indexer]


def _question(group):
    """The op of one set of layers and its settings; None if there is no such op."""
    if group.encoding == "rope":
        return rotation(group)
    bias = group.bias or {}
    if bias.get("call") not in BIASES:
        return None
    said = {**bias, "heads": group.heads, "max_bias": bias.get("maximum")}
    return bias["call"], {name: said[name] for name in BIASES[bias["call"]].split()}


def rotation(group):
    if group.layout is None:
        raise ValueError("which features form a pair is not known; no key says it: pass layout=")
    if (group.scaling or {}).get("type") == "dynamic_ntk_by_doubling":
        raise ValueError("the frequencies of these layers follow the length of the prompt; check asks for one list")
    if words := not_added_up(group):
        raise ValueError(words)
    pairs = len(group.frequencies if group.index is None else group.index)
    settings = {"dim": 2 * pairs, "layout": group.layout}
    if attending(group) > 2 * pairs:
        settings["head_dim"] = attending(group)
    if group.axes:
        return "axes.rotate", settings | _axes(group)
    unusual = {name: getattr(group, name) for name in ("magnitude", "sign") if getattr(group, name) != 1}
    return "rope.rotate", settings | {"frequencies": group.frequencies} | unusual


def _axes(group):
    """The frequency and the axis number of every pair; the axes that pairs read are numbered in the order t, h, w, l."""
    numbers = {axis: i for i, axis in enumerate(axis for axis in "thwl" if axis in group.axes)}
    return {
        "frequencies": [group.frequencies[i] for i in group.index],
        "axis": [numbers[axis] for axis in group.axes],
    }


def _rotations(model):
    return [layer for layer in explanation(model).layers if layer.encoding == "rope"]


def _system(layer):
    """The system of a rotation: `axes` if it has several axes, else `scaling` if it has a schedule, else plain `rope`."""
    return "rotary.axes" if layer.axes else "rotary.scaling" if layer.scaling else "rotary.rope"


def _call(layer):
    width = f", {layer.rotary_dim} of {layer.head_dim}" if layer.rotary_dim != layer.head_dim else ""
    order = f", axes {layer.order}" if layer.axes else ""
    return f"{layer.call}{width}{order}"


def _of_layers(layers):
    for layer in layers:
        yield from of_type(layer.model_type) - {"rotary.axes", "rotary.rope"} if layer.encoding == "rope" else ()
        if layer.encoding in SYSTEMS:
            yield "rotary.axes" if layer.axes else SYSTEMS[layer.encoding]
        if layer.scaling:
            yield "rotary.scaling"
        if (layer.state or {}).get("convolution"):
            yield "state.convolution"


@cache
def of_states(kind):
    """The systems of those layers of a model type that keep a state."""
    row = family(kind).get("state", {})
    found = {f"state.{row['call'].partition('.')[0]}"} if row else set()
    return found | {"state.convolution"} if row.get("convolution") else found


@cache
def of_type(kind):
    """The systems of a model type of transformers."""
    row = family(kind)
    found = {SYSTEMS[row["encoding"]]} if row["encoding"] in SYSTEMS else set()
    if row.get("parameters") in ("axial", "mrope") or "axes" in row:
        found = {"rotary.axes"}
    if row.get("rotated") == "last" and row.get("writes"):
        found.add("rotary.decoupled")
    return found
