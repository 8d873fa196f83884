"""`posref explain`: what it answers."""

import json
import os

import numpy as np

from posref.explain import explain, output, presets
from posref.explain.words import describe, runs


def answer(arguments):
    """The text that answers one call; ValueError for a file that cannot be explained."""
    explained = chosen(explain(arguments.file), arguments.layer, arguments.part)
    if arguments.frequencies:
        output.write_frequencies(explained, arguments.frequencies)
        return arguments.frequencies
    if arguments.code:
        return output.code(explained, arguments.code, os.path.basename(arguments.file))
    if arguments.diff:
        changes = output.differences(explained, chosen(explain(arguments.diff), arguments.layer, arguments.part))
        return json.dumps(changes, indent=2) if arguments.json else "\n".join(changes) or "the positions are the same"
    return json.dumps(explained, indent=2) if arguments.json else describe(explained, arguments.file)


def asked(file, layer=None, part=None):
    """The arguments of `check_rope` for the rotation of a model; ValueError if it has several, or one of a picture."""
    group = output.of_text(chosen(explain(file), layer, part))
    found = {"dim": output.attending(group), "layout": group["layout"], "frequencies": np.array(group["frequencies"])}
    width = 2 * len(group["frequencies"])
    unusual = {"rotary_dim": (width, found["dim"]), "magnitude": (group["magnitude"], 1.0), "sign": (group["sign"], 1)}
    return found | {name: value for name, (value, usual) in unusual.items() if value != usual}


def asked_axes(file, layer=None, part=None):
    """The settings of axes.rotate for a rotation that reads several positions; none for others."""
    (group,) = chosen(explain(file), layer, part)["layers"][:1]
    settings = presets.rotation(group)[1] if group.get("axes") else {}
    return {name: np.array(value) if isinstance(value, list) else value for name, value in settings.items()}


def chosen(explained, layer=None, part=None):
    """The explanation of some layers alone; ValueError if there are none of them."""
    kept = [group for group in explained["layers"] if part is None or group["part"] == part]
    kept = [group for group in kept if layer is None or layer in group["indices"]]
    if not kept and explained["layers"]:
        asked = f"part {part!r}" if layer is None else f"layer {layer}" + (f" of part {part!r}" if part is not None else "")
        there = [f"{runs(group['indices'])} of part {group['part']!r}" for group in explained["layers"]]
        raise ValueError(f"there is no {asked}; the layers are {'; '.join(dict.fromkeys(there))}")
    return {**explained, "layers": kept}
